// SPDX-License-Identifier: MIT
// Recordings that end early under a host that goes on as if nothing had happened: the cause is said once, and every
// tick that the file does not have is counted.

#include "frame/engine/engine_fixture.h"
#include "record/record_fixture.h"

#include "nebula/rollback.h"

typedef struct game {
    nb_engine *engine;
    uint64_t sum;
    test_heap heap;
    // The recorder's own.
    test_log log;
    char first[320]; // message of the log
    uint32_t log_count, assertion_count;
    nb_recorder *recorder;
} game;

static void note_log(void *user, const nb_log_record *record) {
    game *g = user;
    if (g->log_count++ == 0) snprintf(g->first, sizeof g->first, "%s", record->message);
    test_log_record(&g->log, record);
}

static void note_assertion(void *user, const nb_log_record *record) {
    (void)record;
    ++((game *)user)->assertion_count;
}

static nb_result game_tick(const nb_context *context, void *user) {
    ((game *)user)->sum += context->tick->index + 1;
    return NB_OK;
}

static void game_open(game *g, nb_recorder_desc desc, bool keeps_history) {
    memset(g, 0, sizeof *g);
    nb_engine_desc engine = rig_desc(0);
    engine.hashes_ticks = true;
    engine.keeps_history = keeps_history;
    engine.history.bytes_max = (size_t)8 << 20;
    engine.hooks = test_hooks(&g->log, &g->heap);
    engine.hooks.logger.level_min = NB_LOG_WARNING;
    assert_int_equal(nb_engine_create(&engine, &g->engine), NB_OK);
    nb_provider_desc state = {.name = "sum", .data = &g->sum, .size_bytes = sizeof g->sum};
    assert_int_equal(nb_states_add(nb_engine_states(g->engine), &state, NULL), NB_OK);
    nb_module_desc module = {.name = "game", .tick = game_tick, .user = g};
    assert_int_equal(nb_engine_module_attach(g->engine, &module, NULL), NB_OK);
    desc.key_ticks = NB_RECORD_KEY_TICKS_NEVER;
    desc.hooks = test_hooks(&g->log, &g->heap);
    desc.hooks.logger = (nb_logger){.log = note_log, .user = g, .level_min = NB_LOG_WARNING};
    desc.hooks.assertion = (nb_assert_hook){.failed = note_assertion, .user = g};
    assert_int_equal(nb_recorder_attach(g->engine, &desc, &g->recorder), NB_OK);
}

// Returns the recorder's last result, and how many ticks it has lost.
static nb_result game_close(game *g, uint64_t *lost_count) {
    // Those that wait in a history are lost with the recording's end, and counted there: the last look is after it.
    nbi_window_write(g->recorder);
    *lost_count = nb_recorder_stats_get(g->recorder).lost_count;
    nb_result result = nb_recorder_destroy(g->recorder);
    assert_int_equal(nb_engine_destroy(g->engine), NB_OK);
    assert_int_equal(g->heap.live_count.value, 0);
    return result;
}

static void wait_until_failed(const nb_recorder *recorder) {
    while (nb_recorder_stats_get(recorder).result == NB_OK) nbi_thread_yield();
}

// Until the writer has taken all that came over.
static void wait_until_idle(const nb_recorder *recorder) {
    for (uint32_t i = 0; i < recorder->desc.queue_count; ++i) {
        while (nbi_atomic_load_acquire_u32(&recorder->batches[i].is_busy) != 0) nbi_thread_yield();
    }
}

static uint64_t ticks_in(const memory_sink *sink, nb_replay_info *info) {
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink->bytes, sink->size_bytes, NULL, &replay), NB_OK);
    *info = nb_replay_info_get(replay);
    nb_replay_close(replay);
    return info->tick_count;
}

static void said_once(const game *g, nb_log_item item, const char *text) {
    assert_string_equal(g->log.last_function, g->engine != NULL ? "nb_engine_frame" : "nb_recorder_push");
    assert_int_equal(g->log_count, 1);
    assert_int_equal(g->assertion_count, 0);
    assert_int_equal(test_log_count(&g->log, item), 1);
    if (strstr(g->first, text) == NULL) fail_msg("\"%s\" is not in: %s", text, g->first);
}

TEST(a_full_disk_is_said_once_and_all_ticks_are_lost) {
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) skip(); // only Linux has it
    fclose(full);
    for (int keeps_history = 0; keeps_history < 2; ++keeps_history) {
        static game g;
        game_open(&g, (nb_recorder_desc){.path = "/dev/full"}, keeps_history != 0);
        assert_int_equal(nb_engine_run_ticks(g.engine, 3), NB_OK);
        wait_until_failed(g.recorder);
        assert_int_equal(nb_engine_run_ticks(g.engine, 300), NB_OK);
        nb_record_tick late = {.index = 303};
        if (keeps_history == 0) assert_int_equal(nb_recorder_push(g.recorder, &late), NB_CLOSED);
        assert_int_equal(nb_recorder_flush(g.recorder), NB_CLOSED);
        uint64_t lost_count = 0;
        assert_int_equal(game_close(&g, &lost_count), NB_ERR_OS);
        assert_int_equal(lost_count, keeps_history == 0 ? 304 : 303);
        said_once(&g, NB_ITEM_RECORD_FILE,
                  "recording \"/dev/full\": ends at its beginning: writing failed after 0 byte");
    }
}

TEST(a_slow_writer_is_said_once_and_all_ticks_are_counted) {
    for (int keeps_history = 0; keeps_history < 2; ++keeps_history) {
        static game g;
        memory_sink sink = {.is_held = {1}};
        game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink), .block_ticks = 5, .queue_count = 2},
                  keeps_history != 0);
        assert_int_equal(nb_engine_run_ticks(g.engine, 1000), NB_OK);
        nbi_atomic_store_release_u32(&sink.is_held, 0);
        assert_int_equal(nb_engine_run_ticks(g.engine, 1000), NB_OK);
        uint64_t lost_count = 0;
        assert_int_equal(game_close(&g, &lost_count), NB_FULL);
        said_once(&g, NB_ITEM_RECORD_STOPPED,
                  "recording into a sink: ends before tick 10: writing is too slow, and all 2 blocks wait for it");
        nb_replay_info info;
        assert_int_equal(ticks_in(&sink, &info) + lost_count, 2000);
        assert_int_equal(info.stop, NB_RECORD_STOP_QUEUE_FULL);
        free(sink.bytes);
    }
}

// Whichever write fails: what is not in the file is counted as lost.
TEST(a_failed_write_loses_what_the_file_does_not_have) {
    for (uint32_t fail_at = 2; fail_at < 22; ++fail_at) {
        static game g;
        memory_sink sink = {.fail_at = fail_at};
        game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink), .block_ticks = 3}, fail_at % 2 != 0);
        for (uint64_t i = 0; i < 200; ++i) {
            assert_int_equal(nb_engine_run_ticks(g.engine, 1), NB_OK);
            wait_until_idle(g.recorder);
        }
        uint64_t lost_count = 0;
        assert_int_equal(game_close(&g, &lost_count), NB_ERR_OS);
        char text[80];
        snprintf(text, sizeof text, "ends before tick %u: nb_record_sink.write failed after", (fail_at - 2) * 3);
        said_once(&g, NB_ITEM_RECORD_FILE, text);
        nb_replay_info info;
        assert_int_equal(ticks_in(&sink, &info), (fail_at - 2) * 3);
        assert_int_equal(info.tick_count + lost_count, 200);
        free(sink.bytes);
    }
}

// Ticks that the recorder has lost when the game ends some ticks after it failed.
static uint64_t lost_behind_failure(game *g, uint64_t tick_count) {
    uint64_t lost_count = 0;
    wait_until_failed(g->recorder);
    assert_int_equal(nb_engine_run_ticks(g->engine, tick_count), NB_OK);
    assert_int_equal(game_close(g, &lost_count), NB_ERR_OS);
    return lost_count;
}

TEST(ticks_that_wait_for_their_block_are_lost_with_it) {
    static game g;
    memory_sink sink = {.is_held = {1}, .fail_at = 1};
    game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink)}, false);
    assert_int_equal(nb_engine_run_ticks(g.engine, 7), NB_OK);
    nbi_atomic_store_release_u32(&sink.is_held, 0);
    assert_int_equal(lost_behind_failure(&g, 13), 20);
    said_once(&g, NB_ITEM_RECORD_FILE, "ends at its beginning: nb_record_sink.write failed after 0 bytes");
}

static nb_result no_sync(void *user) {
    (void)user;
    return NB_ERR_OS;
}

TEST(a_sink_that_cannot_be_flushed_is_said) {
    static game g;
    memory_sink sink = {0};
    nb_recorder_desc desc = {.sink = sink_of(&sink), .block_ticks = 3, .is_synced = true};
    desc.sink.sync = no_sync;
    game_open(&g, desc, false);
    assert_int_equal(nb_engine_run_ticks(g.engine, 3), NB_OK);
    assert_int_equal(lost_behind_failure(&g, 20), 23);
    said_once(&g, NB_ITEM_RECORD_FILE, "ends before tick 0: nb_record_sink.sync failed after");
    free(sink.bytes);
}

// A host of its own, which does not look at results: ticks go on behind the one that was too large.
TEST(an_oversized_tick_is_said_once_with_its_size) {
    static game g;
    memset(&g, 0, sizeof g);
    memory_sink sink = {0};
    nb_recorder_desc desc = {.sink = sink_of(&sink), .block_bytes = NB_RECORD_BLOCK_BYTES_MIN};
    desc.hooks.logger = (nb_logger){.log = note_log, .user = &g, .level_min = NB_LOG_WARNING};
    desc.hooks.assertion = (nb_assert_hook){.failed = note_assertion, .user = &g};
    assert_int_equal(nb_recorder_create(&desc, &g.recorder), NB_OK);
    static nb_input_event events[64];
    unsigned char key[8] = {0};
    for (uint64_t i = 0; i < 3000; ++i) {
        nb_record_tick tick = {.index = i, .input = {i == 7 ? events : NULL, i == 7 ? 64 : 0}};
        nb_result wanted = i < 7 ? NB_OK : i == 7 ? NB_ERR_RANGE : NB_CLOSED;
        assert_int_equal(nb_recorder_push(g.recorder, &tick), wanted);
        if (i > 7) assert_int_equal(nb_recorder_push_state(g.recorder, i + 1, key, sizeof key), NB_CLOSED);
    }
    char text[120];
    nb_record_tick large = {.index = 7, .input = {events, 64}};
    snprintf(text, sizeof text, "ends before tick 7: the tick takes %zu bytes and a block has 1024",
             nbi_tick_size(&large));
    assert_int_equal(nb_recorder_stats_get(g.recorder).lost_count, 2993);
    assert_int_equal(nb_recorder_destroy(g.recorder), NB_ERR_RANGE);
    said_once(&g, NB_ITEM_RECORD_STOPPED, text);
    free(sink.bytes);
}

// What is no end stays a mistake of the caller's, and the recording goes on.
TEST(a_tick_left_out_by_the_caller_ends_nothing) {
    static game g;
    memset(&g, 0, sizeof g);
    memory_sink sink = {0};
    nb_recorder_desc desc = {.sink = sink_of(&sink), .hooks = test_hooks(&g.log, NULL)};
    assert_int_equal(nb_recorder_create(&desc, &g.recorder), NB_OK);
    nb_record_tick tick = {.index = 5};
    assert_int_equal(nb_recorder_push(g.recorder, &tick), NB_OK);
    tick.index = 7;
    assert_int_equal(nb_recorder_push(g.recorder, &tick), NB_ERR_MISUSE);
    tick.index = 6;
    assert_int_equal(nb_recorder_push(g.recorder, &tick), NB_OK);
    assert_int_equal(nb_recorder_stats_get(g.recorder).lost_count, 0);
    assert_int_equal(nb_recorder_destroy(g.recorder), NB_OK);
    free(sink.bytes);
}

TEST(ticks_left_out_by_the_engine_end_the_recording) {
    for (int keeps_history = 0; keeps_history < 2; ++keeps_history) {
        static game g;
        memory_sink sink = {0};
        game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink)}, keeps_history != 0);
        assert_int_equal(nb_engine_run_ticks(g.engine, 20), NB_OK);
        assert_int_equal(nb_engine_set_tick(g.engine, 500), NB_OK);
        assert_int_equal(nb_engine_run_ticks(g.engine, 100), NB_OK);
        assert_int_equal(nb_engine_set_tick(g.engine, 900), NB_OK);
        assert_int_equal(nb_engine_run_ticks(g.engine, 100), NB_OK);
        uint64_t lost_count = 0;
        assert_int_equal(game_close(&g, &lost_count), NB_ERR_RANGE);
        assert_int_equal(lost_count, 200);
        said_once(&g, NB_ITEM_RECORD_STOPPED, "ends before tick 20: tick 500 follows");
        nb_replay_info info;
        assert_int_equal(ticks_in(&sink, &info), 20);
        assert_int_equal(info.stop, NB_RECORD_STOP_JUMPED);
        free(sink.bytes);
    }
}

// A host that loads in the middle of a recording, to whichever tick, and with or without saying so.
typedef struct jump {
    uint64_t tick;
    bool is_quiet; // the states alone are loaded
} jump;

TEST(another_state_ends_the_recording) {
    static const jump jumps[] = {{20, false}, {5, false}, {19, false}, {300, false}, {20, true}};
    for (uint32_t i = 0; i < 2 * sizeof jumps / sizeof jumps[0]; ++i) {
        static game g;
        memory_sink sink = {0};
        const jump *to = &jumps[i / 2];
        unsigned char saved[256];
        size_t saved_bytes = 0;
        game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink)}, i % 2 != 0);
        nb_states *states = nb_engine_states(g.engine);
        assert_int_equal(nb_engine_run_ticks(g.engine, 4), NB_OK);
        assert_int_equal(nb_states_save(states, saved, sizeof saved, &saved_bytes), NB_OK);
        assert_int_equal(nb_engine_run_ticks(g.engine, 16), NB_OK);
        nb_input_view none = {NULL, 0};
        nb_result result = to->is_quiet ? nb_states_load(states, saved, saved_bytes)
                                        : nb_engine_load(g.engine, to->tick, saved, saved_bytes, none);
        assert_int_equal(result, NB_OK);
        assert_int_equal(nb_engine_run_ticks(g.engine, 100), NB_OK);
        uint64_t lost_count = 0;
        assert_int_equal(game_close(&g, &lost_count), NB_ERR_RANGE);
        assert_int_equal(lost_count, 100);
        char text[64];
        snprintf(text, sizeof text, "ends before tick 20: tick %u follows", (unsigned)to->tick);
        said_once(&g, NB_ITEM_RECORD_STOPPED, text);
        nb_replay_info info;
        assert_int_equal(ticks_in(&sink, &info), 20);
        assert_int_equal(info.stop, NB_RECORD_STOP_JUMPED);
        free(sink.bytes);
    }
}

TEST(a_recording_may_begin_after_a_load) {
    static game g;
    memory_sink sink = {0};
    unsigned char saved[256];
    size_t saved_bytes = 0;
    game_open(&g, (nb_recorder_desc){.sink = sink_of(&sink)}, true);
    assert_int_equal(nb_states_save(nb_engine_states(g.engine), saved, sizeof saved, &saved_bytes), NB_OK);
    assert_int_equal(nb_engine_load(g.engine, 70, saved, saved_bytes, (nb_input_view){NULL, 0}), NB_OK);
    assert_int_equal(nb_engine_run_ticks(g.engine, 30), NB_OK);
    uint64_t lost_count = 0;
    assert_int_equal(game_close(&g, &lost_count), NB_OK);
    nb_replay_info info;
    assert_int_equal(ticks_in(&sink, &info), 30);
    assert_int_equal(info.first_tick, 70);
    assert_int_equal(lost_count, 0);
    free(sink.bytes);
}
