// SPDX-License-Identifier: MIT
// Save files of whole engines.

#include "nebula/report.h"
#include "nebula/rollback.h"
#include "nebula/save_file.h"
#include "save_file.h"

nb_result nb_save_engine(const char *path, nb_engine *engine, const nb_save_desc *given) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (nb_engine_phase(engine) != NB_PHASE_NONE) return NB_BUSY;
    nb_save_desc desc = nbi_save_resolve(given);
    desc.tick = nb_loop_tick_count(nb_engine_loop(engine));
    desc.seed = nb_engine_desc_get(engine)->seed;
    nbi_file_ops ops = nbi_file_ops_default();
    return nbi_save_write(path, nb_engine_states(engine), nb_engine_commands(engine), &desc, &ops);
}

// All that can be wrong is found before the engine changes.
static nb_result load(const char *path, nb_engine *engine, const nb_save_desc *desc, const nbi_save *save) {
    if (save->info.seed != nb_engine_desc_get(engine)->seed)
        return nb_report_failure(&desc->hooks, NB_ITEM_SAVE_LAYOUT, NB_ERR_UNSUPPORTED, "nb_load_engine",
                                 "%s is of seed %llu, the engine of another", path, nb_llu(save->info.seed));
    nb_result result = nbi_save_check_layout(desc, path, save, nb_engine_states(engine));
    if (result != NB_OK) return result;
    result = nb_engine_load(engine, save->info.tick, save->state, save->state_bytes, save->commands);
    if (result < 0) nbi_save_report_refusal(desc, path, result);
    return result;
}

nb_result nb_load_engine(const char *path, nb_engine *engine, const nb_save_desc *given, nb_save_info *info) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (nb_engine_phase(engine) != NB_PHASE_NONE) return NB_BUSY;
    nb_save_desc desc = nbi_save_resolve(given);
    nbi_save save;
    nb_result result = nbi_save_open(path, &desc, &save);
    if (result != NB_OK) return result;
    result = load(path, engine, &desc, &save);
    if (result == NB_OK && info != NULL) *info = save.info;
    nbi_save_close(&desc, &save);
    return result;
}
