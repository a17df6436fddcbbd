// SPDX-License-Identifier: MIT
// Ticks that depend on what a rewind does not bring back: caught, placed, and the culprit named by trying.

#include "frame/rollback/synctest_fixture.h"

#include "nebula/rollback.h"

#include "platform/platform.h"

static bool is_in(const char *text, const char *part) { return strstr(text, part) != NULL; }

// Runs a game that sins from tick 100 on, and checks what is the same of each sin.
static nb_synctest_report report_of(sin kind, uint32_t workers, uint32_t depth, bool is_put_back) {
    static town t;
    town_open(&t, workers, depth, kind);
    run_ticks(&t.r, 140);
    nb_synctest_report report = town_report(&t);
    assert_true(report.diverged_count > 0);
    assert_int_equal(report.lost_count + report.outside_count, 0);
    assert_int_equal(report.tick, 100); // the first that sins, which was the newest then
    assert_int_equal(report.back_count, depth);
    assert_int_equal(report.again_count, depth);
    assert_int_equal(test_log_count(&t.r.log, NB_ITEM_SYNCTEST_DIVERGED), 1);
    assert_int_equal(report.difference.kind, NB_DIFFERENCE_VALUE);
    assert_string_equal(report.difference.provider, "world");
    assert_string_equal(report.difference.table, "folk");
    assert_string_equal(report.difference.column, "gold");
    assert_int_equal(report.difference.row, 5);
    assert_true(is_in(report.text, "folk.gold, row 5 (entity 0x"));
    assert_true(is_in(report.text, report.culprit));
    // The game goes on as it would have, the past too.
    uint64_t now_hash = rig_stats(&t.r).tick_hash;
    assert_true(nb_states_hash(nb_engine_states(t.r.engine)) == now_hash);
    if (is_put_back) {
        assert_true(town_hash(&t) == town_plain_hash(140, kind));
        assert_true(nb_history_stats_get(nb_engine_history(t.r.engine)).tick_oldest <= 140 - 100);
    }
    town_close(&t);
    return report;
}

static void assert_cause(const nb_synctest_report *report, nb_synctest_cause cause, const char *culprit,
                         const char *text) {
    assert_int_equal(report->cause, cause);
    assert_string_equal(report->culprit, culprit);
    if (!is_in(report->text, text)) fail_msg("\"%s\" is not in \"%s\"", text, report->text);
}

TEST(unsaved_column_is_named) {
    static const uint32_t depths[] = {1, 2, 7, 16};
    for (uint32_t i = 0; i < 8; ++i) {
        nb_synctest_report report = report_of(SIN_COLUMN, i % 2 * 2, depths[i / 2], true);
        assert_cause(&report, NB_SYNCTEST_LOCAL_COLUMN, "folk.mood",
                     "the tick depends on a local column, which is not saved: folk.mood");
    }
}

TEST_ONE_THREAD(unsaved_table_is_named) {
    nb_synctest_report report = report_of(SIN_TABLE, 0, 8, true);
    assert_cause(&report, NB_SYNCTEST_LOCAL_TABLE, "charts", "a local table, which is not saved: charts");
}

TEST(unsaved_provider_is_named) {
    nb_synctest_report report = report_of(SIN_PROVIDER, 2, 8, true);
    assert_cause(&report, NB_SYNCTEST_LOCAL_PROVIDER, "camera", "a local provider, which is not saved: camera");
}

TEST_ONE_THREAD(several_unsaved_states_are_told_as_such) {
    nb_synctest_report report = report_of(SIN_SEVERAL, 0, 3, true);
    assert_cause(&report, NB_SYNCTEST_LOCAL_SEVERAL, "", "several local states");
}

// Where the program's variables can be read they are named; test_synctest_blame.c has more of them.
static void check_variable(const nb_synctest_report *report, bool is_steady) {
    bool is_compared = nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY);
    nb_synctest_cause unknown = is_steady ? NB_SYNCTEST_UNKNOWN : NB_SYNCTEST_UNSTEADY;
    assert_int_equal(report->cause, is_compared ? NB_SYNCTEST_UNREGISTERED : unknown);
    assert_true(is_in(report->text, "registered"));
    if (is_compared) assert_true(is_in(report->culprit, "+0x")); // in the game's struct
    if (!is_compared) assert_string_equal(report->culprit, "");
}

TEST_ONE_THREAD(variable_is_told_as_not_registered) {
    for (uint32_t depth = 1; depth < 10; depth += 4) {
        nb_synctest_report report = report_of(SIN_VARIABLE, 0, depth, false);
        check_variable(&report, true);
    }
}

TEST(variable_of_each_run_is_told_as_not_registered) {
    for (uint32_t workers = 0; workers < 3; workers += 2) {
        nb_synctest_report report = report_of(SIN_TURN, workers, 4, false);
        check_variable(&report, false);
    }
    nb_synctest_report report = report_of(SIN_COUNTER, 0, 4, false);
    check_variable(&report, false);
}

// Nothing changes for 20 ticks; then a frame turns it, and the oldest tick that is simulated again shows it.
TEST_ONE_THREAD(unsaved_state_that_frames_change_is_named) {
    static town t;
    town_open(&t, 0, 8, SIN_LENS);
    run_ticks(&t.r, 120);
    assert_int_equal(town_report(&t).diverged_count, 0);
    run_ticks(&t.r, 20);
    nb_synctest_report report = town_report(&t);
    assert_int_equal(report.tick, 113); // when 121 had run
    assert_int_equal(report.back_count, 8);
    assert_int_equal(report.again_count, 1);
    assert_int_equal(report.cause, NB_SYNCTEST_LOCAL_PROVIDER);
    assert_string_equal(report.culprit, "lens");
    assert_string_equal(report.difference.column, "gold");
    assert_int_equal(report.diverged_count, 7); // until none of the ticks before it is simulated again
    assert_true(town_hash(&t) == town_plain_hash(140, SIN_LENS));
    town_close(&t);
}

// Each state of the last ticks is that of the first run, lives and local values included.
TEST_ONE_THREAD(past_is_that_of_the_first_run) {
    static town t, plain;
    town_open(&t, 0, 8, SIN_COLUMN);
    run_ticks(&t.r, 140);
    for (uint64_t tick = 139; tick > 120; --tick) {
        assert_int_equal(nb_engine_rewind(t.r.engine, tick), NB_OK);
        town_open(&plain, 0, 0, SIN_COLUMN);
        run_ticks(&plain.r, tick);
        assert_true(nb_states_hash(nb_engine_states(t.r.engine)) == rig_stats(&plain.r).tick_hash);
        town_close(&plain);
    }
    town_close(&t);
}

// No memory while it is looked into: the game goes on, whatever could be told.
TEST_ONE_THREAD(no_memory_while_looking_loses_nothing_but_the_search) {
    static town t;
    town_open(&t, 0, 3, SIN_COLUMN);
    run_ticks(&t.r, 100);
    uint64_t first_call = nbi_atomic_load_relaxed_u64(&t.r.heap.call_count);
    run_ticks(&t.r, 8);
    uint64_t last_call = nbi_atomic_load_relaxed_u64(&t.r.heap.call_count), lost_count = 0;
    assert_true(last_call > first_call);
    town_close(&t);
    for (uint64_t call = first_call + 1; call <= last_call; ++call) {
        town_open(&t, 0, 3, SIN_COLUMN);
        run_ticks(&t.r, 100);
        t.r.heap.fail_at = call;
        run_ticks(&t.r, 20);
        assert_true(town_report(&t).diverged_count > 0);
        assert_true(nb_store_is_valid(t.world));
        assert_true(nb_states_hash(nb_engine_states(t.r.engine)) == rig_stats(&t.r).tick_hash);
        lost_count += town_report(&t).lost_count;
        town_close(&t);
    }
    assert_true(lost_count > 0);
}
