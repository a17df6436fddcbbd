// SPDX-License-Identifier: MIT
#pragma once

// A log that keeps the text of its records, for tests of what a report says. Safe from any thread; read it when no
// other thread logs.

#include "support/support.h"

#define LOG_LINE_MAX 512
typedef struct log_line {
    nb_log_item item;
    char function[64];
    char message[320];
} log_line;

typedef struct log_lines {
    nb_atomic_u32 count; // of all; only the first LOG_LINE_MAX are kept
    log_line lines[LOG_LINE_MAX];
} log_lines;

static inline void log_lines_record(void *user, const nb_log_record *record) {
    log_lines *log = (log_lines *)user;
    uint32_t index = nbi_atomic_fetch_add_seq_cst_u32(&log->count, 1);
    if (index >= LOG_LINE_MAX) return;
    log_line *line = &log->lines[index];
    line->item = record->item;
    snprintf(line->function, sizeof line->function, "%s", record->function);
    snprintf(line->message, sizeof line->message, "%s", record->message);
}

static inline nb_hooks log_lines_hooks(log_lines *log) {
    memset(log, 0, sizeof *log);
    return (nb_hooks){.logger = {.log = log_lines_record, .user = log, .level_min = NB_LOG_WARNING}};
}

static inline uint32_t log_lines_count(const log_lines *log, nb_log_item item) {
    uint32_t total = nbi_atomic_load_seq_cst_u32(&log->count), count = 0;
    for (uint32_t i = 0; i < total && i < LOG_LINE_MAX; ++i) count += log->lines[i].item == item ? 1 : 0;
    return count;
}

// The first record of an item; fails the test where there is none.
static inline const log_line *log_lines_first(const log_lines *log, nb_log_item item) {
    uint32_t total = nbi_atomic_load_seq_cst_u32(&log->count);
    for (uint32_t i = 0; i < total && i < LOG_LINE_MAX; ++i) {
        if (log->lines[i].item == item) return &log->lines[i];
    }
    fail_msg("no record of item %d in %u", (int)item, (unsigned)total);
    return NULL;
}

static inline void assert_says(const log_lines *log, nb_log_item item, const char *text) {
    const log_line *line = log_lines_first(log, item);
    if (strstr(line->message, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, line->message);
}

static inline void assert_never_says(const log_lines *log, nb_log_item item, const char *text) {
    const log_line *line = log_lines_first(log, item);
    if (strstr(line->message, text) != NULL) fail_msg("\"%s\" is in \"%s\"", text, line->message);
}

// How many of the records that were kept contain a text.
static inline uint32_t log_lines_saying(const log_lines *log, const char *text) {
    uint32_t total = nbi_atomic_load_seq_cst_u32(&log->count), count = 0;
    for (uint32_t i = 0; i < total && i < LOG_LINE_MAX; ++i) count += strstr(log->lines[i].message, text) != NULL;
    return count;
}

// A thousand reports that contain this text are logged the 1st, 10th, 100th and 1000th time, with their count.
static inline void assert_throttled(const log_lines *log, const char *text) {
    uint32_t total = nbi_atomic_load_seq_cst_u32(&log->count), last = 0;
    if (log_lines_saying(log, text) != 4) fail_msg("%u times \"%s\"", (unsigned)log_lines_saying(log, text), text);
    for (uint32_t i = 0; i < total && i < LOG_LINE_MAX; ++i) {
        if (strstr(log->lines[i].message, text) != NULL) last = i;
    }
    static const char counted[] = "(1000 times by now, 996 of them not logged)";
    if (strstr(log->lines[last].message, counted) == NULL) fail_msg("no count in \"%s\"", log->lines[last].message);
}
