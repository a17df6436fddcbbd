// SPDX-License-Identifier: MIT
// What a tick does once, however often it is simulated.

#include "nebula/effect.h"

#include "../engine/engine.h"

#include <stdarg.h>
#include <stdio.h>

// Longest line of a note: two of a terminal.
#define NOTE_SIZE 256

// NB_EMPTY: the tick has done it before.
static nb_result check_effect(const nb_context *context, const char *function) {
    nb_result result = nbi_context_check_call(context);
    if (result != NB_OK) nbi_context_report(context, function, NBI_VIOLATION_EFFECT, result);
    nb_engine *engine = context->engine;
    // Jobs are in no tick, also where a late one runs beside ticks that are simulated again.
    if (result != NB_OK || context->call != &engine->call || !engine->is_resimulating) return result;
    ++engine->rollback.effect_count;
    return NB_EMPTY;
}

nb_result nb_context_submit(const nb_context *context, const nb_async_job_desc *desc, nb_async_job *out) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_result result = check_effect(context, __func__);
    if (result != NB_OK) return result;
    nb_async *async = nb_engine_async(context->engine);
    return async != NULL ? nb_async_submit(async, desc, out) : NB_ERR_MEMORY;
}

nb_result nb_context_log(const nb_context *context, nb_log_level level, const char *format, ...) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    const nb_hooks *hooks = &context->engine->hooks;
    if (format == NULL || level < NB_LOG_TRACE || level > NB_LOG_ERROR)
        return nbi_context_fail(context, __func__, "format is NULL, or no level");
    nb_result result = check_effect(context, __func__);
    if (result != NB_OK || level < hooks->logger.level_min) return result;
    char text[NOTE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    nbi_log(hooks, level, NB_ITEM_ENGINE_NOTE, __func__, "%s", text);
    return NB_OK;
}
