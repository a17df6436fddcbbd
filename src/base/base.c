// SPDX-License-Identifier: MIT
// Result names, log items, default hooks and the one way to report a mistake.

#include "base.h"
#include "throttle.h"

#include "nebula/hash.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_OF(x) #x
#define VERSION_STRING(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *nb_version(void) { return VERSION_STRING(NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH); }

const char *nb_result_name(nb_result result) {
    switch (result) {
    case NB_OK: return "NB_OK";
    case NB_EMPTY: return "NB_EMPTY";
    case NB_FULL: return "NB_FULL";
    case NB_TIMEOUT: return "NB_TIMEOUT";
    case NB_CANCELLED: return "NB_CANCELLED";
    case NB_CLOSED: return "NB_CLOSED";
    case NB_BUSY: return "NB_BUSY";
    case NB_ERR_MEMORY: return "NB_ERR_MEMORY";
    case NB_ERR_MISUSE: return "NB_ERR_MISUSE";
    case NB_ERR_RANGE: return "NB_ERR_RANGE";
    case NB_ERR_STALE: return "NB_ERR_STALE";
    case NB_ERR_THREAD: return "NB_ERR_THREAD";
    case NB_ERR_OS: return "NB_ERR_OS";
    case NB_ERR_UNSUPPORTED: return "NB_ERR_UNSUPPORTED";
    case NB_ERR_DEADLOCK: return "NB_ERR_DEADLOCK";
    case NB_ERR_PERMISSION: return "NB_ERR_PERMISSION";
    case NB_ERR_LOST: return "NB_ERR_LOST";
    }
    return "unknown";
}

const char *nb_log_item_name(nb_log_item item) {
    switch (item) {
#define NBI_ITEM(upper, lower, number) \
    case NB_ITEM_##upper: return #lower;
        NB_LOG_ITEMS(NBI_ITEM)
#undef NBI_ITEM
    }
    return "unknown";
}

const char *nb_log_level_name(nb_log_level level) {
    switch (level) {
    case NB_LOG_DEFAULT: return "default";
    case NB_LOG_TRACE: return "trace";
    case NB_LOG_INFO: return "info";
    case NB_LOG_WARNING: return "warning";
    case NB_LOG_ERROR: return "error";
    case NB_LOG_OFF: return "off";
    }
    return "unknown";
}

static void *heap_alloc(void *user, size_t size_bytes, size_t alignment) {
    (void)user;
    // aligned_alloc wants a multiple of the alignment; a size so large that rounding wraps cannot be served anyway.
    if (size_bytes > SIZE_MAX - (alignment - 1)) return NULL;
    size_t rounded = (size_bytes + alignment - 1) & ~(alignment - 1);
    return aligned_alloc(alignment, rounded);
}

static void heap_free(void *user, void *memory, size_t size_bytes) {
    (void)user;
    (void)size_bytes;
    free(memory);
}

static void log_to_stderr(void *user, const nb_log_record *record) {
    (void)user;
    fprintf(stderr, "nebula: %s %d %s: %s: %s\n", nb_log_level_name(record->level), (int)record->item, record->name,
            record->function, record->message);
}

// The record is in the log already; a host that wants a debugger or an abort sets its own hook.
static void assert_logs_only(void *user, const nb_log_record *record) {
    (void)user;
    (void)record;
}

nb_hooks nb_hooks_default(void) {
    return (nb_hooks){
        .allocator = {.alloc = heap_alloc, .free = heap_free},
        .logger = {.log = log_to_stderr, .level_min = NB_LOG_WARNING},
        .assertion = {.failed = assert_logs_only},
    };
}

nb_hooks nb_hooks_resolve(const nb_hooks *hooks) {
    nb_hooks resolved = nb_hooks_default();
    if (hooks == NULL) return resolved;
    // alloc and free belong together: half a pair would free foreign memory, so it counts as none.
    if (hooks->allocator.alloc != NULL && hooks->allocator.free != NULL) resolved.allocator = hooks->allocator;
    if (hooks->logger.log != NULL) resolved.logger = hooks->logger;
    if (hooks->logger.level_min != NB_LOG_DEFAULT) resolved.logger.level_min = hooks->logger.level_min;
    if (resolved.logger.level_min == NB_LOG_DEFAULT) resolved.logger.level_min = NB_LOG_WARNING;
    if (hooks->assertion.failed != NULL) resolved.assertion = hooks->assertion;
    return resolved;
}

// Mistakes in a desc are reported before its hooks are resolved, and with NULL there are none: both are filled up here.
static const nb_hooks *usable(const nb_hooks *hooks, nb_hooks *filled) {
    bool is_whole = hooks != NULL && hooks->allocator.alloc != NULL && hooks->allocator.free != NULL &&
                    hooks->logger.log != NULL && hooks->logger.level_min != NB_LOG_DEFAULT &&
                    hooks->assertion.failed != NULL;
    if (is_whole) return hooks;
    *filled = nb_hooks_resolve(hooks);
    return filled;
}

// Who gets a record.
enum { TO_LOGGER = 1, TO_ASSERTION = 2 };
#define TO_ALL (NB_ASSERTIONS ? TO_LOGGER | TO_ASSERTION : TO_LOGGER)

// Formats and delivers one record. hooks: usable.
static void deliver(const nb_hooks *hooks, nb_log_record record, int to, const char *format, va_list args) {
    bool is_logged = (to & TO_LOGGER) != 0 && record.level >= hooks->logger.level_min;
    bool is_asserted = (to & TO_ASSERTION) != 0;
    if (!is_logged && !is_asserted) return;
    char message[NB_REPORT_MESSAGE_SIZE] = "?";
    if (format != NULL) vsnprintf(message, sizeof message, format, args);
    record.name = nb_log_item_name(record.item);
    record.message = message;
    if (record.function == NULL) record.function = "?";
    if (is_logged) hooks->logger.log(hooks->logger.user, &record);
    if (is_asserted) hooks->assertion.failed(hooks->assertion.user, &record);
}

void nb_report(const nb_hooks *hooks, nb_log_level level, nb_log_item item, const char *function, const char *format,
               ...) {
    nb_hooks filled;
    bool is_level = level >= NB_LOG_TRACE && level <= NB_LOG_ERROR;
    nb_log_record record = {.level = is_level ? level : NB_LOG_ERROR, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    deliver(usable(hooks, &filled), record, TO_LOGGER, format, args);
    va_end(args);
}

nb_result nb_report_failure(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                            const char *format, ...) {
    nb_hooks filled;
    nb_log_record record = {.level = NB_LOG_ERROR, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    deliver(usable(hooks, &filled), record, TO_LOGGER, format, args);
    va_end(args);
    return result;
}

nb_result nb_report_mistake(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                            const char *format, ...) {
    nb_hooks filled;
    nb_log_record record = {.level = NB_LOG_ERROR, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    deliver(usable(hooks, &filled), record, TO_ALL, format, args);
    va_end(args);
    return result;
}

void nbi_trap(const nb_hooks *hooks, bool is_logged, nb_log_item item, const char *function, const char *format, ...) {
    nb_log_record record = {.level = NB_LOG_ERROR, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    deliver(hooks, record, is_logged ? TO_LOGGER | TO_ASSERTION : TO_ASSERTION, format, args);
    va_end(args);
    if (hooks->assertion.failed == assert_logs_only) __builtin_trap();
}

// How many of `count` reports were logged before this one: the first, the 10th, the 100th ...
static uint64_t logged_before(uint64_t count) {
    uint64_t logged = 0;
    for (uint64_t power = 1; power < count; power *= 10) ++logged;
    return logged;
}

// Delivers a record whose place was noted `count` times; 0 = not to be logged.
static void deliver_counted(const nb_hooks *hooks, nb_log_record record, int to, uint64_t count, const char *format,
                            va_list args) {
    char counted[NB_REPORT_MESSAGE_SIZE];
    nb_hooks filled;
    if (count <= 1) {
        deliver(usable(hooks, &filled), record, count == 0 ? to & ~TO_LOGGER : to, format, args);
        return;
    }
    unsigned long long hidden = count - 1 - logged_before(count);
    snprintf(counted, sizeof counted, "%s (%llu times by now, %llu of them not logged)", format, nb_llu(count), hidden);
    deliver(usable(hooks, &filled), record, to, counted, args);
}

// The format tells mistakes of one function about one object apart.
static uint64_t note(nb_throttle *throttle, const nb_log_record *record, uint64_t object, const char *format) {
    if (throttle == NULL) return 1;
    return nbi_throttle_note(throttle, record->function, record->item, nb_hash64(format, strlen(format), object));
}

nb_result nb_report_throttled(const nb_hooks *hooks, nb_throttle *throttle, uint64_t object, bool is_mistake,
                              nb_log_item item, nb_result result, const char *function, const char *format, ...) {
    const char *text = format != NULL ? format : "?";
    nb_log_record record = {.level = NB_LOG_ERROR, .item = item, .function = function != NULL ? function : "?"};
    uint64_t count = note(throttle, &record, object, text);
    va_list args;
    va_start(args, format);
    deliver_counted(hooks, record, is_mistake ? TO_ALL : TO_LOGGER, count, text, args);
    va_end(args);
    return result;
}

void nbi_log_throttled(const nb_hooks *hooks, nbi_throttle *throttle, uint64_t object, nb_log_level level,
                       nb_log_item item, const char *function, const char *format, ...) {
    nb_log_record record = {.level = level, .item = item, .function = function};
    uint64_t count = note(throttle, &record, object, format);
    va_list args;
    va_start(args, format);
    deliver_counted(hooks, record, TO_LOGGER, count, format, args);
    va_end(args);
}

// Some allocators give NULL for nothing, which would read as a refusal. nb_hooks_free counts the same way.
static size_t whole_size(size_t size_bytes) { return size_bytes + (size_bytes == 0); }

void *nb_hooks_alloc(const nb_hooks *hooks, size_t size_bytes, size_t alignment, const char *function) {
    nb_hooks filled;
    hooks = usable(hooks, &filled);
    if (function == NULL) function = __func__;
    if (!nbi_is_power_of_two(alignment)) {
        nb_report_mistake(hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, function, "alignment %zu is no power of two",
                          alignment);
        return NULL;
    }
    void *memory = hooks->allocator.alloc(hooks->allocator.user, whole_size(size_bytes), alignment);
    if (memory == NULL) {
        nb_report(hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "no memory for %zu bytes", size_bytes);
    }
    return memory;
}

void nb_hooks_free(const nb_hooks *hooks, void *memory, size_t size_bytes) {
    if (memory == NULL) return;
    nb_hooks filled;
    hooks = usable(hooks, &filled);
    hooks->allocator.free(hooks->allocator.user, memory, whole_size(size_bytes));
}
