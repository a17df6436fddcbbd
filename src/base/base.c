// SPDX-License-Identifier: MIT
// Result names, log items, default hooks and the one way to report a mistake.

#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Longest message handed to a logger; longer ones are cut. One line of a wide terminal, twice.
#define MESSAGE_SIZE 320

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

nb_hooks nbi_hooks_resolve(const nb_hooks *hooks) {
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

// Formats and delivers one record; *record is left filled for the assertion hook, its message in `buffer`.
static void deliver(const nb_hooks *hooks, nb_log_record *record, char *buffer, const char *format, va_list args) {
    vsnprintf(buffer, MESSAGE_SIZE, format, args);
    record->name = nb_log_item_name(record->item);
    record->message = buffer;
    hooks->logger.log(hooks->logger.user, record);
}

void nbi_log(const nb_hooks *hooks, nb_log_level level, nb_log_item item, const char *function, const char *format,
             ...) {
    nb_hooks fallback;
    if (hooks == NULL) {
        fallback = nb_hooks_default();
        hooks = &fallback;
    }
    if (level < hooks->logger.level_min) return;
    char buffer[MESSAGE_SIZE];
    nb_log_record record = {.level = level, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    deliver(hooks, &record, buffer, format, args);
    va_end(args);
}

nb_result nbi_fail(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function, const char *format,
                   ...) {
    nb_hooks fallback;
    if (hooks == NULL) {
        fallback = nb_hooks_default();
        hooks = &fallback;
    }
    if (NB_LOG_ERROR < hooks->logger.level_min && !NB_ASSERTIONS) return result;
    char buffer[MESSAGE_SIZE];
    nb_log_record record = {.level = NB_LOG_ERROR, .item = item, .function = function};
    va_list args;
    va_start(args, format);
    if (NB_LOG_ERROR >= hooks->logger.level_min) {
        deliver(hooks, &record, buffer, format, args);
    } else {
        vsnprintf(buffer, MESSAGE_SIZE, format, args);
        record.name = nb_log_item_name(item);
        record.message = buffer;
    }
    va_end(args);
#if NB_ASSERTIONS
    hooks->assertion.failed(hooks->assertion.user, &record);
#endif
    return result;
}

void *nbi_alloc(const nb_hooks *hooks, size_t size_bytes, size_t alignment, const char *function) {
    void *memory = hooks->allocator.alloc(hooks->allocator.user, size_bytes, alignment);
    if (memory == NULL) {
        nbi_log(hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "no memory for %zu bytes", size_bytes);
    }
    return memory;
}

void nbi_free(const nb_hooks *hooks, void *memory, size_t size_bytes) {
    if (memory != NULL) hooks->allocator.free(hooks->allocator.user, memory, size_bytes);
}
