// SPDX-License-Identifier: MIT
// Hooks, memory and reports of the module.

#include "report.h"

#include <stdarg.h>
#include <stdio.h>

// As in the core: one line of a wide terminal, twice.
#define MESSAGE_SIZE 320

// Assertion hooks fire in Debug and RelWithDebInfo, as in the core.
#if !defined(NB_ASSERTIONS)
#if defined(NDEBUG)
#define NB_ASSERTIONS 0
#else
#define NB_ASSERTIONS 1
#endif
#endif

nb_hooks nbi_net_hooks(const nb_hooks *hooks) {
    nb_hooks resolved = nb_hooks_default();
    if (hooks == NULL) return resolved;
    if (hooks->allocator.alloc != NULL && hooks->allocator.free != NULL) resolved.allocator = hooks->allocator;
    if (hooks->logger.log != NULL) resolved.logger = hooks->logger;
    if (hooks->logger.level_min != NB_LOG_DEFAULT) resolved.logger.level_min = hooks->logger.level_min;
    if (resolved.logger.level_min == NB_LOG_DEFAULT) resolved.logger.level_min = NB_LOG_WARNING;
    if (hooks->assertion.failed != NULL) resolved.assertion = hooks->assertion;
    return resolved;
}

static nb_result deliver(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                         const char *format, va_list args, bool is_mistake) {
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof message, format, args);
    nb_log_record record = {
        .level = NB_LOG_ERROR, .item = item, .name = nb_log_item_name(item), .function = function, .message = message};
    if (hooks->logger.level_min <= NB_LOG_ERROR) hooks->logger.log(hooks->logger.user, &record);
    if (is_mistake && NB_ASSERTIONS) hooks->assertion.failed(hooks->assertion.user, &record);
    return result;
}

nb_result nbi_net_log(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    deliver(hooks, item, result, function, format, args, false);
    va_end(args);
    return result;
}

nb_result nbi_net_fail(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                       const char *format, ...) {
    nb_hooks fallback = nb_hooks_default();
    va_list args;
    va_start(args, format);
    deliver(hooks != NULL ? hooks : &fallback, item, result, function, format, args, true);
    va_end(args);
    return result;
}

void *nbi_net_alloc(const nb_hooks *hooks, size_t size_bytes, const char *function) {
    void *memory = hooks->allocator.alloc(hooks->allocator.user, size_bytes, NB_CACHE_LINE);
    if (memory == NULL)
        nbi_net_log(hooks, NB_ITEM_BASE_MEMORY, NB_ERR_MEMORY, function, "%zu bytes are not to be had", size_bytes);
    return memory;
}

void nbi_net_free(const nb_hooks *hooks, void *memory, size_t size_bytes) {
    if (memory != NULL) hooks->allocator.free(hooks->allocator.user, memory, size_bytes);
}
