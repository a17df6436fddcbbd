// SPDX-License-Identifier: MIT
// Commands: how handlers outside ticks change what is simulated.

#include "command.h"

#include "engine.h"

#include <string.h>

static size_t list_bytes(const nb_engine *engine) {
    return engine->desc.command_count_max * sizeof *engine->commands.all;
}

nb_result nbi_commands_create(nb_engine *engine) {
    engine->commands.all = nbi_alloc(&engine->hooks, list_bytes(engine), NB_CACHE_LINE, "nb_engine_create");
    return engine->commands.all != NULL ? NB_OK : NB_ERR_MEMORY;
}

void nbi_commands_destroy(nb_engine *engine) {
    if (engine->commands.all != NULL) nbi_free(&engine->hooks, engine->commands.all, list_bytes(engine));
    engine->commands = (nbi_commands){NULL, 0};
}

void nbi_commands_replace(nb_engine *engine, nb_input_view commands) {
    if (commands.count != 0)
        memmove(engine->commands.all, commands.events, commands.count * sizeof *engine->commands.all);
    engine->commands.count = commands.count;
}

nb_input_view nb_engine_commands(const nb_engine *engine) {
    if (engine == NULL) NBI_FAIL_NULL("engine");
    if (engine == NULL || engine->commands.count == 0) return (nb_input_view){NULL, 0};
    return (nb_input_view){engine->commands.all, engine->commands.count};
}

nb_result nb_context_command(const nb_context *context, const nb_input_event *command) {
    if (context == NULL || context->engine == NULL) return NBI_FAIL_NULL("context");
    nb_engine *engine = context->engine;
    if (command == NULL) return nbi_context_fail(context, __func__, "command is NULL");
    nb_result result = nbi_context_check_call(context);
    const nbi_call *call = context->call;
    // Ticks write what is simulated themselves; jobs have outputs, which are merged on the coordinator.
    bool is_allowed = result == NB_OK && call == &engine->call && call->phase != NB_PHASE_FIXED_SIM;
    if (!is_allowed) {
        result = result == NB_OK ? NB_ERR_PERMISSION : result;
        nbi_context_report(context, __func__, NBI_VIOLATION_COMMAND, result);
        return result;
    }
    if (engine->commands.count == engine->desc.command_count_max) {
        if (engine->stats.command_full_count++ == 0) {
            nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_ENGINE_FULL, __func__,
                    "module \"%s\": %u commands wait for a tick; raise nb_engine_desc.command_count_max; further "
                    "refusals are only counted",
                    call->module < engine->module_limit ? engine->modules[call->module].name : "",
                    engine->commands.count);
        }
        return NB_FULL;
    }
    engine->commands.all[engine->commands.count++] = *command;
    return NB_OK;
}
