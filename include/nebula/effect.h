// SPDX-License-Identifier: MIT
#pragma once

// What a tick does beside simulated state, once: a tick that is simulated again (see rollback.h) has done it already.
// Rows staged for local tables are left out by themselves; anything else, such as a sound, asks
// context->is_resimulated. The one rule: what was wrong about the past is not taken back, and what was missing in it
// does not come any more; an effect that must follow the truth is drawn from the state instead.
//
//     static nb_async_status load(nb_async_call *call, void *state) {
//         (void)call, (void)state;
//         return NB_ASYNC_STATUS_DONE;
//     }
//     static nb_result tick(const nb_context *context, void *user) {
//         nb_async_job_desc job = {.step = load, .user = user};
//         nb_context_log(context, NB_LOG_INFO, "a door opens in tick %u", (unsigned)context->tick->index);
//         nb_result result = nb_context_submit(context, &job, NULL);
//         return result < 0 ? result : NB_OK; // NB_EMPTY: it runs, or has run
//     }

#include "nebula/async.h"
#include "nebula/context.h"
#include "nebula/types.h"

NB_EXTERN_C_BEGIN

// Starts a job of the engine's nb_engine_async, as nb_async_submit; in a tick that is simulated again it starts
// nothing.
// Thread: the handler's. Owner: as nb_async_submit. Fails: NB_EMPTY (this tick has run before; counted), as
// nb_async_submit, NB_ERR_THREAD, NB_ERR_STALE.
NB_API nb_result nb_context_submit(const nb_context *context, const nb_async_job_desc *desc, nb_async_job *out);

// Logs a line through the engine's hooks, as item engine_note; in a tick that is simulated again it logs nothing.
// Thread: the handler's. Owner: the text is copied. Fails: NB_EMPTY (this tick has run before; counted),
// NB_ERR_THREAD, NB_ERR_STALE, NB_ERR_MISUSE (NULL, no level).
NB_API nb_result nb_context_log(const nb_context *context, nb_log_level level, const char *format, ...) NB_PRINTF(3, 4);

NB_EXTERN_C_END
