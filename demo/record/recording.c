// SPDX-License-Identifier: MIT
// --record and --replay.

#include "recording.h"

#include <stdio.h>

#include "nebula/record.h"
#include "nebula/replay.h"
#include "nebula/report.h"
#include "replay_game.h"

// --- replay ---

static bool fail_replay(const demo_options *options, const char *why) {
    fprintf(stderr, "nebula-demo: '%s' cannot be replayed: %s\n", options->replay_path, why);
    return false;
}

static void keep_quiet(void *user, const nb_log_record *record) { (void)user, (void)record; }

bool recording_open(recording *r, demo_options *options) {
    if (options->replay_path == NULL) return true;
    nb_replay_desc desc = {.hooks = {.logger = {.log = keep_quiet, .level_min = NB_LOG_ERROR}}}; // it is said here
    nb_result result = nb_replay_open(options->replay_path, &desc, &r->replay);
    if (result == NB_ERR_OS) return fail_replay(options, "it cannot be read");
    if (result != NB_OK) return fail_replay(options, "it is no recording, or damaged in its head");
    nb_replay_info info = nb_replay_info_get(r->replay);
    replay_config config;
    if (!replay_config_read(&info.head, &config)) return fail_replay(options, "it is of another game or version");
    if (info.tick_count == 0 || info.first_tick != 0) return fail_replay(options, "it does not begin with tick 0");
    options->seed = config.seed;
    options->tick_rate = config.tick_rate;
    options->teleport_ticks = config.teleport_ticks;
    options->tick_count = info.tick_count;
    return true;
}

static nb_result end_replay(recording *r) {
    nb_replay_check check = nb_replay_check_get(r->replay);
    nb_replay_info info = nb_replay_info_get(r->replay);
    bool is_same = check.diverged_count == 0 && check.compared_count > 0;
    if (is_same)
        printf("replayed    %llu ticks, every hash the same\n", nb_llu(check.compared_count));
    else
        printf("DIVERGED    in tick %llu; nebula-replay says more\n", nb_llu(check.diverged_tick));
    if (info.end != NB_REPLAY_END_WHOLE) printf("            the recording is not whole: %s\n", info.reason);
    return is_same ? NB_OK : NB_ERR_MISUSE;
}

// --- record ---

static nb_result begin_recorder(recording *r, nb_engine *engine, const demo_options *options) {
    unsigned char bytes[REPLAY_CONFIG_BYTES];
    replay_config config = {
        .seed = options->seed, .tick_rate = options->tick_rate, .teleport_ticks = options->teleport_ticks};
    nb_recorder_desc desc = {.path = options->record_path, .head = replay_head(&config, bytes), .hashes_states = true};
    return nb_recorder_attach(engine, &desc, &r->recorder);
}

static nb_result end_recorder(recording *r, const demo_options *options) {
    nb_result result = nb_recorder_flush(r->recorder);
    nb_recorder_stats stats = nb_recorder_stats_get(r->recorder);
    nb_result ended = nb_recorder_destroy(r->recorder);
    r->recorder = NULL;
    if (result == NB_OK) result = ended;
    if (result == NB_OK)
        printf("recorded    %s, %llu key states\n", options->record_path, nb_llu(stats.key_count));
    else
        fprintf(stderr, "nebula-demo: the recording is not whole: %s\n", nb_result_name(result));
    return result;
}

// --- both ---

nb_result recording_attach(recording *r, nb_engine *engine, const demo_options *options) {
    nb_result result = r->replay != NULL ? nb_replay_attach(r->replay, engine) : NB_OK;
    if (result == NB_OK && options->record_path != NULL) result = begin_recorder(r, engine, options);
    return result;
}

nb_result recording_close(recording *r, const demo_options *options) {
    nb_result replayed = r->replay != NULL ? end_replay(r) : NB_OK;
    nb_result recorded = r->recorder != NULL ? end_recorder(r, options) : NB_OK;
    nb_replay_close(r->replay);
    r->replay = NULL;
    return replayed != NB_OK ? replayed : recorded;
}
