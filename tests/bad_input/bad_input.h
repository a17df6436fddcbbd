// SPDX-License-Identifier: MIT
#pragma once

// One suite, with a file per public header, that gives each public function arguments it must refuse;
// scripts/check_bad_input.sh names the functions that are missing.
//
// What its files share: one call at a time, what it gives, and what it reports, to the object's own logger
// or, where there is no object, to the default one on stderr. Every report is an error with a number, in the name of a
// public function, and where assertions are compiled in the object's assertion hook hears of it too.
//
// Stderr is captured during each call, and with it what a sanitizer has to say before it ends the process: set
// NB_TEST_SHOW_STDERR to see that; the default logger is then not looked at.

#define _POSIX_C_SOURCE 200809L // fileno, ftruncate

#include "support/support.h"

#include <unistd.h>

#include "nebula/label.h"

// What was heard during one call.
typedef struct heard {
    int own_count, default_count, assertion_count; // error records, and calls of the assertion hook
    int own_item, default_item;                    // of the newest record
    char own_function[64], default_function[64];   // the same
} heard;

static heard bad_heard;
static FILE *bad_capture; // what stands in for stderr; one file for all calls, gone with the process
static int bad_stderr = -1;

static inline void bad_log(void *user, const nb_log_record *record) {
    (void)user;
    if (record->level < NB_LOG_ERROR) return;
    ++bad_heard.own_count;
    bad_heard.own_item = (int)record->item;
    snprintf(bad_heard.own_function, sizeof bad_heard.own_function, "%s", record->function);
}

static inline void bad_assertion(void *user, const nb_log_record *record) {
    (void)user;
    (void)record;
    ++bad_heard.assertion_count;
}

// Hooks of every object here; the heap may be NULL.
static inline nb_hooks bad_hooks(test_heap *heap) {
    nb_hooks hooks = test_hooks(NULL, heap);
    hooks.logger.log = bad_log;
    hooks.assertion.failed = bad_assertion;
    return hooks;
}

static inline bool is_stderr_shown(void) { return getenv("NB_TEST_SHOW_STDERR") != NULL; }

static inline void listen_begin(void) {
    memset(&bad_heard, 0, sizeof bad_heard);
    if (is_stderr_shown()) return;
    if (bad_capture == NULL) bad_capture = tmpfile();
    if (bad_capture == NULL) abort();
    fflush(stderr);
    bad_stderr = dup(2);
    if (bad_stderr < 0 || dup2(fileno(bad_capture), 2) < 0) abort();
}

static inline void listen_end(void) {
    if (is_stderr_shown()) return;
    fflush(stderr);
    dup2(bad_stderr, 2);
    close(bad_stderr);
    rewind(bad_capture);
    char line[512];
    while (fgets(line, sizeof line, bad_capture) != NULL) {
        heard *now = &bad_heard;
        bool is_error =
            sscanf(line, "nebula: error %d %*[^:]: %63[^:]:", &now->default_item, now->default_function) == 2;
        if (is_error) ++now->default_count;
    }
    rewind(bad_capture);
    if (ftruncate(fileno(bad_capture), 0) != 0) abort();
}

// The library and the test may be built with different flags, so the library is asked.
static inline bool has_assertions(void) {
    heard before = bad_heard;
    nb_labels_desc desc = {.hooks = bad_hooks(NULL)};
    nb_labels_create(&desc, NULL);
    bool has_any = bad_heard.assertion_count > before.assertion_count;
    bad_heard = before;
    return has_any;
}

typedef enum logger_kind { NO_LOGGER, OWN_LOGGER, DEFAULT_LOGGER, THROTTLED } logger_kind;

// What the allocator or the operating system refuses, and what is in a file, is nobody's mistake: it is logged, not
// asserted.
static inline bool is_mistake(int item) {
    switch (item) {
    case NB_ITEM_BASE_MEMORY:
    case NB_ITEM_TRACE_WRITE:
    case NB_ITEM_RECORD_FILE:
    case NB_ITEM_RECORD_FORMAT:
    case NB_ITEM_RECORD_STOPPED:
    case NB_ITEM_STATE_LAYOUT:
    case NB_ITEM_SAVE_LAYOUT: return false;
    default: return true;
    }
}

static inline bool is_heard(logger_kind logger, int item, int count) {
    int own_count = logger == OWN_LOGGER ? count : 0;
    int default_count = logger == DEFAULT_LOGGER && !is_stderr_shown() ? count : 0;
    if (bad_heard.own_count != own_count || bad_heard.default_count != default_count) return false;
    if (own_count > 0 && (bad_heard.own_item != item || strncmp(bad_heard.own_function, "nb_", 3) != 0)) return false;
    if (default_count > 0 && (bad_heard.default_item != item || strncmp(bad_heard.default_function, "nb_", 3) != 0)) {
        return false;
    }
    int mistake_count = logger == THROTTLED ? count : own_count;
    return bad_heard.assertion_count == (has_assertions() && is_mistake(item) ? mistake_count : 0);
}

static inline void check_heard(logger_kind logger, int item, int count, const char *call, const char *file, int line) {
    if (is_heard(logger, item, count)) return;
    static const char *const names[] = {"no report", "its own logger", "the default logger",
                                        "the assertion hook alone"};
    print_error("%s\n  expected: %d of item %d to %s\n", call, count, item, names[logger]);
    print_error(
        "  heard: %d of item %d in %s to its own logger, %d of item %d in %s to the default one, %d assertions\n",
        bad_heard.own_count, bad_heard.own_item, bad_heard.own_function, bad_heard.default_count,
        bad_heard.default_item, bad_heard.default_function, bad_heard.assertion_count);
    _fail(file, line);
}

// Runs statements and looks at their `count` reports, all to one logger.
#define LISTENED(logger, item, count, ...)                                             \
    do {                                                                               \
        listen_begin();                                                                \
        __VA_ARGS__;                                                                   \
        listen_end();                                                                  \
        check_heard((logger), (int)(item), (count), #__VA_ARGS__, __FILE__, __LINE__); \
    } while (0)

#define reported(item, ...) LISTENED(OWN_LOGGER, item, 1, __VA_ARGS__)
#define reported_default(item, ...) LISTENED(DEFAULT_LOGGER, item, 1, __VA_ARGS__)
#define silent(...) LISTENED(NO_LOGGER, 0, 0, __VA_ARGS__)

// The same for one call with a number or a pointer as its result, compared with the expected one.
#define GIVES(logger, item, expected, ...)                                                           \
    do {                                                                                             \
        intptr_t given_ = 0;                                                                         \
        listen_begin();                                                                              \
        given_ = (intptr_t)(__VA_ARGS__);                                                            \
        listen_end();                                                                                \
        check_heard((logger), (int)(item), (logger) != NO_LOGGER, #__VA_ARGS__, __FILE__, __LINE__); \
        if (given_ != (intptr_t)(expected)) {                                                        \
            print_error("%s gave %lld, not %s\n", #__VA_ARGS__, (long long)given_, #expected);       \
            _fail(__FILE__, __LINE__);                                                               \
        }                                                                                            \
    } while (0)

// refused: reported by the object. refused_default: there is no object to report it. accepted: nothing to report.
#define refused(expected, item, ...) GIVES(OWN_LOGGER, item, expected, __VA_ARGS__)
// refused_again: the object has reported the same mistake before, so the assertion hook alone hears of it.
#define refused_again(expected, item, ...) GIVES(THROTTLED, item, expected, __VA_ARGS__)
// refused_nth: refused for nth 0, refused_again for all others, in loops over one mistake.
#define refused_nth(nth, expected, item, ...) GIVES((nth) == 0 ? OWN_LOGGER : THROTTLED, item, expected, __VA_ARGS__)
#define refused_default(expected, item, ...) GIVES(DEFAULT_LOGGER, item, expected, __VA_ARGS__)
#define accepted(expected, ...) GIVES(NO_LOGGER, 0, expected, __VA_ARGS__)

// Every byte has the value that the storage was filled with before the call.
static inline bool is_untouched(const void *memory, size_t size_bytes, int filled_with) {
    for (size_t i = 0; i < size_bytes; ++i) {
        if (((const unsigned char *)memory)[i] != (unsigned char)filled_with) return false;
    }
    return true;
}

#define assert_untouched(object, filled_with) assert_true(is_untouched(&(object), sizeof(object), filled_with))

// Not for values with padding between their fields, which a function may return with anything in it.
#define assert_zero(object) assert_untouched(object, 0)

// A pointer that no call writes over where it fails.
#define UNTOUCHED(type) ((type *)(uintptr_t)0x5A5A)

// A creation finds no memory from a call of the heap on, touches nothing and leaves nothing.
#define refused_memory(heap, call, out, ...)                      \
    do {                                                          \
        (heap).fail_from = call;                                  \
        refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, __VA_ARGS__); \
        (heap).fail_from = 0;                                     \
        assert_ptr_equal(out, UNTOUCHED(void));                   \
        assert_int_equal((heap).live_count.value, 0);             \
    } while (0)
