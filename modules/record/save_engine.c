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
    return nb_save_write(path, nb_engine_states(engine), &desc);
}

nb_result nb_load_engine(const char *path, nb_engine *engine, const nb_save_desc *given, nb_save_info *info) {
    if (path == NULL) return NB_FAIL_NULL("path");
    if (engine == NULL) return NB_FAIL_NULL("engine");
    if (nb_engine_phase(engine) != NB_PHASE_NONE) return NB_BUSY;
    nb_save_desc desc = nbi_save_resolve(given);
    nb_save_info found;
    nb_result result = nb_save_info_read(path, &desc, &found);
    if (result != NB_OK) return result;
    if (found.seed != nb_engine_desc_get(engine)->seed)
        return nb_report_failure(&desc.hooks, NB_ITEM_SAVE_LAYOUT, NB_ERR_UNSUPPORTED, __func__,
                                 "%s is of seed %llu, the engine of another", path, (unsigned long long)found.seed);
    result = nb_save_read(path, nb_engine_states(engine), &desc, &found);
    if (result == NB_OK) result = nb_engine_set_tick(engine, found.tick);
    if (result == NB_OK && info != NULL) *info = found;
    return result;
}
