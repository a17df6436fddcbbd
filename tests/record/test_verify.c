// SPDX-License-Identifier: MIT
// Recordings that are simulated again: the same for any number of workers, and where not, named as exactly as can be.

#include "record/verify_fixture.h"

static const ship_recording plain = {.tick_count = 200, .has_single = true};

// Verifies with a fault; the report is there on NB_OK.
static nb_result verify(const memory_sink *sink, fault kind, nb_verify_desc desc, nb_verify_report *report) {
    test_log log = {0};
    test_heap heap = {0};
    nb_replay *replay = ship_open(sink, &log);
    desc.hooks = test_hooks(&log, &heap);
    if (desc.worker_count == 0) desc.worker_count = NB_WORKER_COUNT_NONE;
    game_fault.fault = kind;
    game_fault.run_count = 0;
    nb_result result = nb_replay_verify(replay, &ship_replay_game, &desc, report);
    game_fault.fault = FAULT_NONE;
    assert_int_equal(game_fault.live_count, 0);
    assert_int_equal(heap.live_count.value, 0);
    // Once more: it is at its beginning again.
    nb_record_tick tick;
    if (nb_replay_info_get(replay).tick_count != 0 && result == NB_OK) {
        assert_int_equal(nb_replay_next(replay, &tick), NB_OK);
        assert_int_equal(tick.index, nb_replay_info_get(replay).first_tick);
    }
    nb_replay_close(replay);
    return result;
}

static nb_verify_report verify_fault(const ship_recording *r, fault kind) {
    memory_sink sink;
    nb_verify_report report;
    ship_record(r, &sink);
    assert_int_equal(verify(&sink, kind, (nb_verify_desc){0}, &report), NB_OK);
    free(sink.bytes);
    return report;
}

// The same of one that is named, with its tick.
static nb_verify_report verify_named(const ship_recording *r, fault kind) {
    nb_verify_report report = verify_fault(r, kind);
    assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(report.tick, FAULT_TICK);
    return report;
}

static void assert_names_x(const char *provider, const char *table, const char *column, uint32_t column_count) {
    assert_string_equal(provider, "world");
    assert_string_equal(table, "ships");
    assert_string_equal(column, "x");
    assert_int_equal(column_count, 1);
}

static bool has_text(const nb_verify_report *report, const char *text) { return strstr(report->text, text) != NULL; }

// --- what is right ---

TEST(a_clean_recording_is_the_same_for_any_number_of_workers) {
    memory_sink sink;
    ship_record(&plain, &sink);
    static const uint32_t worker_counts[] = {NB_WORKER_COUNT_NONE, 1, 3};
    for (size_t i = 0; i < sizeof worker_counts / sizeof worker_counts[0]; ++i) {
        nb_verify_report report;
        assert_int_equal(verify(&sink, FAULT_NONE, (nb_verify_desc){.worker_count = worker_counts[i]}, &report), NB_OK);
        assert_int_equal(report.verdict, NB_VERDICT_SAME);
        assert_int_equal(report.notes, 0);
        assert_int_equal(report.from_tick, 0);
        assert_int_equal(report.tick_count, 200);
        assert_int_equal(report.compared_count, 200);
        assert_string_equal(report.text, "recording in memory: every tick is as recorded: 200 ticks from tick 0");
        assert_int_equal(game_fault.worker_count, worker_counts[i]);
        assert_int_equal(game_fault.run_count, 1);
    }
    free(sink.bytes);
}

typedef struct progress {
    uint64_t count, done, total;
} progress;

static void note_progress(void *user, uint64_t done_count, uint64_t total_count) {
    progress *p = user;
    assert_true(done_count > p->done && done_count <= total_count);
    p->done = done_count;
    p->total = total_count;
    ++p->count;
}

TEST(it_begins_at_the_key_state_before_and_ends_where_asked) {
    memory_sink sink;
    ship_record(&plain, &sink);
    nb_verify_report whole, report;
    progress p = {0};
    nb_verify_desc desc = {.until_tick = 131, .progress = note_progress, .user = &p};
    assert_int_equal(verify(&sink, FAULT_NONE, desc, &whole), NB_OK);
    assert_int_equal(whole.tick_count, 131);
    assert_int_equal(p.done, 131);
    assert_int_equal(p.total, 131);
    assert_true(p.count >= 10);
    desc = (nb_verify_desc){.from_tick = 130, .until_tick = 131};
    assert_int_equal(verify(&sink, FAULT_NONE, desc, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_SAME);
    assert_int_equal(report.from_tick, 120);
    assert_int_equal(report.tick_count, 11);
    assert_int_equal(report.compared_count, 11);
    assert_int_equal(report.hash, whole.hash);
    // A key state with nothing behind it: its own hash.
    desc = (nb_verify_desc){.from_tick = 120, .until_tick = 120};
    assert_int_equal(verify(&sink, FAULT_NONE, desc, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_NO_HASHES);
    desc.from_tick = 0;
    assert_int_equal(verify(&sink, FAULT_NONE, desc, &whole), NB_OK);
    assert_int_equal(report.hash, whole.hash);
    free(sink.bytes);
}

TEST(one_that_begins_later_begins_with_its_key_state) {
    ship_recording later = {.tick_count = 100, .skip_ticks = 33, .has_single = true};
    nb_verify_report report = verify_fault(&later, FAULT_NONE);
    assert_int_equal(report.verdict, NB_VERDICT_SAME);
    assert_int_equal(report.from_tick, 33);
    assert_int_equal(report.compared_count, 100);
    later.key_ticks = NB_RECORD_KEY_TICKS_NEVER;
    report = verify_fault(&later, FAULT_NONE);
    assert_int_equal(report.verdict, NB_VERDICT_NO_START);
    assert_int_equal(report.tick_count, 0);
}

TEST(without_hashes_there_is_nothing_to_say) {
    nb_verify_report report = verify_fault(&(ship_recording){.tick_count = 20, .has_no_hashes = true}, FAULT_NONE);
    assert_int_equal(report.verdict, NB_VERDICT_NO_HASHES);
    assert_int_equal(report.tick_count, 20);
    assert_int_equal(report.compared_count, 0);
}

TEST(a_cut_recording_is_verified_up_to_the_cut) {
    memory_sink sink;
    ship_record(&plain, &sink);
    sink.size_bytes -= sink.size_bytes / 4;
    nb_verify_report report;
    assert_int_equal(verify(&sink, FAULT_NONE, (nb_verify_desc){0}, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_SAME);
    assert_int_equal(report.notes, NB_VERIFY_RECORDING_CUT);
    assert_true(report.compared_count > 20 && report.compared_count < 200);
    assert_true(has_text(
        &report, "; the recording is not whole: it is cut inside a block; ticks behind that were not compared"));
    free(sink.bytes);
}

TEST(another_build_is_noted) {
    memory_sink sink;
    ship_record(&plain, &sink);
    test_log log = {0};
    nb_replay *replay = ship_open(&sink, &log);
    nb_replay_game game = ship_replay_game;
    nb_verify_report report;
    nb_verify_desc desc = nb_verify_desc_default();
    desc.worker_count = NB_WORKER_COUNT_NONE;
    game.build_id = "build 8";
    assert_int_equal(nb_replay_verify(replay, &game, &desc, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_SAME);
    assert_int_equal(report.notes, NB_VERIFY_OTHER_BUILD);
    assert_true(has_text(&report, "; recorded by another build: build 7"));
    game.name = "boats";
    assert_int_equal(nb_replay_verify(replay, &game, &desc, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_OTHER_GAME);
    game.name = NULL;
    assert_int_equal(nb_replay_verify(replay, &game, &desc, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_SAME);
    nb_replay_close(replay);
    free(sink.bytes);
}

// --- jumping ---

typedef struct ship_rig {
    nb_engine *engine;
    void *user;
} ship_rig;

static ship_rig rig_ships(nb_replay *replay) {
    ship_rig r = {NULL, NULL};
    nb_engine_desc desc = {.hashes_ticks = true};
    nb_replay_info info = nb_replay_info_get(replay);
    assert_int_equal(ship_begin(&info.head, &desc, &r.user), NB_OK);
    assert_int_equal(nb_engine_create(&desc, &r.engine), NB_OK);
    assert_int_equal(ship_attach(r.user, r.engine), NB_OK);
    return r;
}

TEST(a_replay_jumps_and_runs_on_as_recorded) {
    memory_sink sink;
    test_log log = {0};
    ship_record(&plain, &sink);
    nb_replay *replay = ship_open(&sink, &log);
    ship_rig r = rig_ships(replay);
    assert_int_equal(nb_replay_jump(replay, r.engine, 10), NB_ERR_MISUSE); // not attached
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_OK);
    static const uint64_t ticks[] = {150, 7, 160, 200, 0, 199, 41, 40, 39};
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; ++i) {
        uint64_t fed_count = nb_replay_check_get(replay).fed_count;
        assert_int_equal(nb_replay_jump(replay, r.engine, ticks[i]), NB_OK);
        assert_int_equal(nb_loop_tick_count(nb_engine_loop(r.engine)), ticks[i]);
        assert_int_equal(nb_replay_check_get(replay).fed_count - fed_count, ticks[i] % 40);
        uint64_t left = 200 - ticks[i];
        assert_int_equal(nb_engine_run_ticks(r.engine, left < 25 ? left : 25), NB_OK);
        assert_int_equal(nb_replay_check_get(replay).diverged_count, 0);
    }
    assert_int_equal(nb_replay_jump(replay, r.engine, 201), NB_ERR_RANGE);
    assert_int_equal(nb_replay_verify(replay, &ship_replay_game, NULL, &(nb_verify_report){0}), NB_BUSY);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    assert_int_equal(nb_engine_destroy(r.engine), NB_OK);
    ship_end(r.user);
    free(sink.bytes);
}

static nb_result stop_at_140(const nb_context *context, void *user) {
    (void)user;
    return context->tick->index == 140 ? nb_engine_stop(context->engine) : NB_OK;
}

static nb_result jump_inside(const nb_context *context, void *user) {
    return nb_replay_jump(user, context->engine, 5) == NB_BUSY ? NB_OK : NB_ERR_MISUSE;
}

TEST(a_jump_that_cannot_be_made_says_so) {
    memory_sink sink;
    test_log log = {0};
    ship_record(&(ship_recording){.tick_count = 200, .skip_ticks = 9}, &sink);
    nb_replay *replay = ship_open(&sink, &log);
    ship_rig r = rig_ships(replay);
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_OK);
    assert_int_equal(nb_replay_jump(replay, r.engine, 8), NB_ERR_RANGE);
    nb_module_desc stopper = {.name = "stopper", .tick = stop_at_140, .user = replay};
    stopper.handlers[NB_PHASE_GAMEPLAY] = jump_inside;
    assert_int_equal(nb_engine_module_attach(r.engine, &stopper, NULL), NB_OK);
    assert_int_equal(nb_replay_jump(replay, r.engine, 150), NB_CANCELLED);
    assert_int_equal(nb_loop_tick_count(nb_engine_loop(r.engine)), 141);
    assert_int_equal(nb_replay_jump(replay, r.engine, 120), NB_OK);
    assert_int_equal(nb_engine_stats_get(r.engine).failure_count, 0);
    assert_int_equal(nb_replay_check_get(replay).diverged_count, 0);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    free(sink.bytes);
    ship_record(&(ship_recording){.tick_count = 20, .key_ticks = NB_RECORD_KEY_TICKS_NEVER}, &sink);
    replay = ship_open(&sink, &log);
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_OK);
    assert_int_equal(nb_replay_jump(replay, r.engine, 5), NB_EMPTY);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    assert_int_equal(nb_engine_destroy(r.engine), NB_OK);
    ship_end(r.user);
    free(sink.bytes);
}

// --- single hashes ---

static uint64_t hash_of(const nb_record_tick *tick, const char *name) {
    for (uint32_t i = 0; i < tick->hash_count; ++i) {
        if (tick->hashes[i].name_hash == nb_hash64(name, strlen(name), 0)) return tick->hashes[i].hash;
    }
    return 0;
}

TEST(each_state_and_each_simulated_column_has_a_hash) {
    memory_sink sink;
    test_log log = {0};
    ship_record(&plain, &sink);
    nb_replay *replay = ship_open(&sink, &log);
    nb_record_tick tick;
    uint64_t before = 0; // beside those below there is one of the modules that failed
    for (uint64_t i = 0; i < 3; ++i) {
        assert_int_equal(nb_replay_next(replay, &tick), NB_OK);
        assert_int_equal(tick.hash_count, 6);
        uint64_t x = hash_of(&tick, "world/ships.x");
        assert_true(x != 0 && x != before);
        before = x;
        assert_true(hash_of(&tick, "world/ships.speed") != 0);
        assert_true(hash_of(&tick, "world/ships") != 0);
        assert_true(hash_of(&tick, "world") != 0);
        assert_true(hash_of(&tick, "score") != 0);
        assert_int_equal(hash_of(&tick, "world/ships.drawn"), 0); // local
    }
    nb_replay_close(replay);
    free(sink.bytes);
}

// --- what is wrong ---

TEST(a_changed_constant_is_named_with_column_and_row) {
    nb_verify_report report = verify_named(&plain, FAULT_CONSTANT);
    assert_int_equal(report.tick_count, FAULT_TICK + 1);
    assert_int_equal(report.phase, NB_PHASE_FIXED_SIM);
    assert_names_x(report.provider, report.table, report.column, report.column_count);
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_VALUE);
    assert_int_equal(report.difference.row, FAULT_ROW);
    assert_string_equal(report.difference.column, "x");
    assert_int_equal(report.difference_tick, 120); // the next key state
    int32_t here, there;
    memcpy(&here, report.difference.here, 4), memcpy(&there, report.difference.there, 4);
    assert_int_equal(here - there, 20); // this build is the faster one
    assert_true(has_text(&report, "recording in memory: diverged: "));
    assert_true(has_text(&report, ": tick 100, FixedSim, world/ships.x; before tick 120: "));
    assert_true(has_text(&report, "; look at what writes it in that phase"));
    assert_int_equal(game_fault.run_count, 2);
}

TEST(the_row_is_that_of_the_column_that_diverged_first) {
    // By the next key state the ship is elsewhere, too, and that column comes first.
    nb_verify_report report = verify_named(&plain, FAULT_SPEED);
    assert_string_equal(report.column, "speed");
    assert_string_equal(report.difference.column, "speed");
    assert_int_equal(report.difference.row, FAULT_ROW);
    assert_int_equal(report.difference_tick, 120);
    int32_t here, there;
    memcpy(&here, report.difference.here, 4), memcpy(&there, report.difference.there, 4);
    assert_int_equal(here - there, 20);
    // Where the rows are others by then, they are what is said.
    report = verify_fault(&plain, FAULT_BOTH);
    assert_int_equal(report.tick, FAULT_TICK);
    assert_string_equal(report.column, "speed");
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_ROW_COUNT);
}

TEST(a_fault_is_named_from_a_key_state_on) {
    memory_sink sink;
    nb_verify_report report;
    ship_record(&plain, &sink);
    assert_int_equal(verify(&sink, FAULT_SCORE, (nb_verify_desc){.from_tick = 90, .worker_count = 1}, &report), NB_OK);
    assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(report.from_tick, 80);
    assert_int_equal(report.tick, FAULT_TICK);
    assert_string_equal(report.provider, "score");
    assert_string_equal(report.table, "");
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_BYTES);
    assert_int_equal(report.difference.offset_bytes, 8);
    free(sink.bytes);
}

TEST(without_single_hashes_the_next_key_state_names_the_column) {
    nb_verify_report report = verify_named(&(ship_recording){.tick_count = 200}, FAULT_CONSTANT);
    assert_string_equal(report.provider, "world");
    assert_string_equal(report.column, "x");
    assert_int_equal(report.difference.row, FAULT_ROW);
}

TEST(without_a_later_key_state_the_row_is_not_known) {
    nb_verify_report report = verify_named(&(ship_recording){.tick_count = 110, .has_single = true}, FAULT_CONSTANT);
    assert_string_equal(report.column, "x");
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_NONE);
    assert_true(has_text(&report, "; the row is not known: no later key state shows it; record more of them"));
    // Without single hashes, too, there is the tick.
    report = verify_named(&(ship_recording){.tick_count = 110, .key_ticks = NB_RECORD_KEY_TICKS_NEVER}, FAULT_CONSTANT);
    assert_string_equal(report.provider, "");
}

TEST(a_row_too_many_is_named) {
    nb_verify_report report = verify_named(&plain, FAULT_ROWS);
    assert_string_equal(report.table, "ships");
    assert_string_equal(report.column, "");
    assert_int_equal(report.column_count, 2);
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_ROW_COUNT);
    assert_int_equal(report.difference.row, SHIP_COUNT);
}

TEST(a_racy_handler_is_not_deterministic) {
    for (uint32_t workers = 0; workers < 4; workers += 3) {
        memory_sink sink;
        nb_verify_report report;
        ship_record(&plain, &sink);
        assert_int_equal(verify(&sink, FAULT_RACE, (nb_verify_desc){.worker_count = workers}, &report), NB_OK);
        assert_int_equal(report.verdict, NB_VERDICT_NOT_DETERMINISTIC);
        assert_int_equal(report.tick, FAULT_TICK);
        assert_int_equal(report.phase, NB_PHASE_FIXED_SIM);
        assert_string_equal(report.provider, "world");
        assert_string_equal(report.table, "ships");
        assert_string_equal(report.column, "speed");
        assert_int_equal(report.difference.kind, NB_DIFFERENCE_VALUE);
        assert_int_equal(report.difference.row, FAULT_ROW);
        assert_int_equal(report.difference_tick, FAULT_TICK + 1);
        assert_true(has_text(&report, "not deterministic"));
        assert_true(has_text(&report, "; run it with nb_engine_desc.synctest_depth"));
        free(sink.bytes);
    }
}

TEST(a_second_run_that_is_right_is_not_deterministic) {
    nb_verify_report report = verify_fault(&plain, FAULT_ONCE);
    assert_int_equal(report.verdict, NB_VERDICT_NOT_DETERMINISTIC);
    assert_int_equal(report.tick, FAULT_TICK);
    assert_string_equal(report.provider, "score");
    assert_int_equal(report.difference.offset_bytes, 0);
}

TEST(a_write_outside_ticks_is_named_with_its_phase) {
    memory_sink sink;
    ship_record(&plain, &sink);
    for (uint32_t phase = NB_PHASE_FRAME_START; phase < NB_PHASE_DETACHED_SERVICES; ++phase) {
        if (phase == NB_PHASE_FIXED_SIM || phase == NB_PHASE_PARALLEL_TASKS) continue;
        nb_verify_report report;
        game_fault.phase = (nb_phase)phase;
        assert_int_equal(verify(&sink, FAULT_PHASE, (nb_verify_desc){0}, &report), NB_OK);
        assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
        assert_int_equal(report.phase, phase);
        // Phases before the tick's come too soon for the tick before: they see its index already.
        assert_int_equal(report.tick, FAULT_TICK);
        assert_string_equal(report.provider, "score");
        assert_int_equal(report.difference.kind, NB_DIFFERENCE_BYTES);
        assert_int_equal(report.difference.offset_bytes, 8);
        assert_true(has_text(&report, nb_phase_info_get((nb_phase)phase)->name));
    }
    free(sink.bytes);
}

TEST(a_write_just_before_a_key_state_is_named) {
    ship_recording keys = plain;
    keys.key_ticks = FAULT_TICK / 2;
    game_fault.phase = NB_PHASE_GAMEPLAY;
    nb_verify_report report = verify_named(&keys, FAULT_PHASE);
    assert_int_equal(report.phase, NB_PHASE_GAMEPLAY);
    assert_int_equal(report.difference_tick, FAULT_TICK);
}

TEST(a_job_and_its_merge_are_told_apart) {
    nb_verify_report report = verify_fault(&plain, FAULT_JOB);
    assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(report.phase, NB_PHASE_PARALLEL_TASKS);
    assert_string_equal(report.provider, "score");
    report = verify_fault(&plain, FAULT_MERGE);
    assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(report.phase, NB_PHASE_POST_PARALLEL);
}

TEST(without_room_for_probes_the_phase_is_not_known) {
    game_fault.is_full = true;
    game_fault.phase = NB_PHASE_GAMEPLAY;
    nb_verify_report report = verify_fault(&plain, FAULT_PHASE);
    game_fault.is_full = false;
    assert_int_equal(report.tick, FAULT_TICK);
    assert_int_equal(report.phase, NB_PHASE_FIXED_SIM);
    assert_string_equal(report.provider, "score");
}

TEST(another_beginning_is_named) {
    nb_verify_report report = verify_fault(&plain, FAULT_START);
    assert_int_equal(report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(report.tick, 0);
    assert_int_equal(report.phase, NB_PHASE_NONE);
    assert_string_equal(report.column, "x");
    assert_int_equal(report.difference.row, FAULT_ROW);
    assert_int_equal(report.difference_tick, 0);
    assert_true(has_text(&report, ": tick 0, before it began, world/ships.x"));
}

TEST(another_layout_is_refused) {
    nb_verify_report report = verify_fault(&plain, FAULT_LAYOUT);
    assert_int_equal(report.verdict, NB_VERDICT_OTHER_LAYOUT);
    assert_int_equal(report.tick_count, 0);
    assert_true(has_text(&report, "recording in memory: recorded with other states"));
    assert_true(has_text(&report, nb_verdict_text(NB_VERDICT_OTHER_LAYOUT)));
}

TEST(a_game_that_fails_leaves_nothing) {
    memory_sink sink;
    nb_verify_report report;
    memset(&report, 0x5A, sizeof report);
    ship_record(&plain, &sink);
    assert_int_equal(verify(&sink, FAULT_BEGIN, (nb_verify_desc){0}, &report), NB_ERR_UNSUPPORTED);
    assert_int_equal(verify(&sink, FAULT_ATTACH, (nb_verify_desc){0}, &report), NB_ERR_OS);
    assert_int_equal(verify(&sink, FAULT_STUCK, (nb_verify_desc){0}, &report), NB_CANCELLED);
    for (size_t i = 0; i < sizeof report; ++i) assert_int_equal(((unsigned char *)&report)[i], 0x5A);
    free(sink.bytes);
}

// --- two recordings ---

// Records with and without a fault, and compares.
static nb_replay_diff compare(const ship_recording *a, fault fault_a, const ship_recording *b, fault fault_b,
                              const nb_replay_game *game) {
    memory_sink sinks[2];
    test_log log = {0};
    test_heap heap = {0};
    game_fault.fault = fault_a;
    ship_record(a, &sinks[0]);
    game_fault.fault = fault_b;
    ship_record(b, &sinks[1]);
    game_fault.fault = FAULT_NONE;
    nb_replay *here = ship_open(&sinks[0], &log), *there = ship_open(&sinks[1], &log);
    nb_verify_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .hooks = test_hooks(&log, &heap)};
    nb_replay_diff diff, again;
    assert_int_equal(nb_replay_compare(here, there, game, &desc, &diff), NB_OK);
    assert_int_equal(nb_replay_compare(here, there, game, &desc, &again), NB_OK); // both are at their beginning
    assert_memory_equal(&diff, &again, sizeof diff);
    assert_int_equal(heap.live_count.value, 0);
    assert_int_equal(game_fault.live_count, 0);
    nb_replay_close(here);
    nb_replay_close(there);
    free(sinks[0].bytes);
    free(sinks[1].bytes);
    return diff;
}

TEST(two_recordings_differ_where_they_do) {
    const nb_replay_game *game = &ship_replay_game;
    nb_replay_diff diff = compare(&plain, FAULT_NONE, &plain, FAULT_NONE, game);
    assert_int_equal(diff.kind, NB_REPLAY_DIFF_NONE);
    assert_int_equal(diff.tick_count, 200);
    diff = compare(&plain, FAULT_NONE, &plain, FAULT_CONSTANT, game);
    assert_int_equal(diff.kind, NB_REPLAY_DIFF_HASH);
    assert_int_equal(diff.tick, FAULT_TICK);
    assert_names_x(diff.provider, diff.table, diff.column, diff.column_count);
    assert_int_equal(diff.difference.kind, NB_DIFFERENCE_VALUE);
    assert_int_equal(diff.difference.row, FAULT_ROW);
    assert_int_equal(diff.difference_tick, 120);
    diff = compare(&plain, FAULT_SPEED, &plain, FAULT_NONE, game);
    assert_string_equal(diff.column, "speed");
    assert_string_equal(diff.difference.column, "speed");
    assert_int_equal(diff.difference.row, FAULT_ROW);
    assert_true(diff.difference.here[0] - diff.difference.there[0] == 20);
    diff = compare(&plain, FAULT_SCORE, &plain, FAULT_NONE, game);
    assert_string_equal(diff.provider, "score");
    assert_string_equal(diff.table, "");
    assert_int_equal(diff.difference.range_count, 1);
    assert_int_equal(diff.difference.ranges[0].offset_bytes, 8);
    assert_int_equal(diff.difference.ranges[0].here - diff.difference.ranges[0].there,
                     20); // the word, not its first byte
    // No names without the game, or with another one; no row without a key state that both have.
    diff = compare(&plain, FAULT_NONE, &plain, FAULT_CONSTANT, NULL);
    assert_string_equal(diff.text,
                        "recordings in memory and in memory: tick 100: the same input, another hash; compare "
                        "them with the game to name the state");
    nb_replay_game other = ship_replay_game;
    other.name = "boats";
    assert_string_equal(compare(&plain, FAULT_NONE, &plain, FAULT_CONSTANT, &other).provider, "");
    ship_recording keys = plain;
    keys.key_ticks = 90;
    diff = compare(&plain, FAULT_CONSTANT, &keys, FAULT_NONE, game);
    assert_string_equal(diff.column, "x");
    assert_int_equal(diff.difference.kind, NB_DIFFERENCE_NONE);
    keys.key_ticks = 60; // 120 and 180
    assert_int_equal(compare(&plain, FAULT_CONSTANT, &keys, FAULT_NONE, game).difference_tick, 120);
    keys.key_ticks = 50; // 200
    assert_int_equal(compare(&plain, FAULT_CONSTANT, &keys, FAULT_NONE, game).difference_tick, 200);
    keys.key_ticks = NB_RECORD_KEY_TICKS_NEVER;
    assert_int_equal(compare(&keys, FAULT_CONSTANT, &plain, FAULT_NONE, game).difference.kind, NB_DIFFERENCE_NONE);
}

TEST(two_recordings_may_begin_and_end_elsewhere) {
    ship_recording later = plain;
    later.skip_ticks = 20;
    nb_replay_diff diff = compare(&later, FAULT_NONE, &plain, FAULT_NONE, NULL);
    assert_int_equal(diff.kind, NB_REPLAY_DIFF_START);
    assert_int_equal(diff.tick, 0);
    memory_sink sink;
    test_log log = {0};
    ship_record(&plain, &sink);
    nb_replay *whole = ship_open(&sink, &log);
    sink.size_bytes -= sink.size_bytes / 4;
    nb_replay *cut = ship_open(&sink, &log);
    uint64_t tick_count = nb_replay_info_get(cut).tick_count;
    assert_int_equal(nb_replay_compare(whole, cut, NULL, NULL, &diff), NB_OK);
    assert_int_equal(diff.kind, NB_REPLAY_DIFF_END);
    assert_int_equal(diff.tick, tick_count);
    assert_int_equal(diff.tick_count, tick_count);
    assert_non_null(strstr(diff.text, "the second ends before it"));
    assert_int_equal(nb_replay_compare(cut, whole, NULL, NULL, &diff), NB_OK);
    assert_non_null(strstr(diff.text, "the first ends before it"));
    nb_replay_close(whole);
    nb_replay_close(cut);
    free(sink.bytes);
}
