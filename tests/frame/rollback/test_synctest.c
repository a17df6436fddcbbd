// SPDX-License-Identifier: MIT
// Ticks simulated again after every tick: a game that saves all it depends on passes and goes on as if nothing had been
// simulated twice; one that does not is caught, and goes on as it would have.

#include "frame/rollback/synctest_fixture.h"

#include "nebula/rollback.h"

TEST(clean_game_passes_at_any_depth_and_goes_on_as_without) {
    uint64_t tick_count = test_size(150, 400, 4000);
    uint64_t expected = town_plain_hash(tick_count, SIN_NONE);
    for (uint32_t workers = 0; workers <= 2; workers += 2) {
        for (uint32_t depth = 1; depth <= 16; depth += depth < 4 ? 1 : 4) {
            static town t;
            town_open(&t, workers, depth, SIN_NONE);
            run_ticks(&t.r, tick_count);
            nb_synctest_report report = town_report(&t);
            assert_string_equal(report.text, "");
            assert_int_equal(report.diverged_count + report.outside_count + report.lost_count, 0);
            assert_int_equal(report.skipped_count, 0);
            // Fewer at the beginning.
            assert_int_equal(report.checked_count, depth * tick_count - depth * (depth - 1) / 2);
            assert_int_equal(report.checked_count, t.again_runs);
            assert_int_equal(t.first_runs, tick_count);
            assert_int_equal(report.depth, depth);
            assert_true(report.memory_bytes > 0);
            assert_true(town_hash(&t) == expected);
            assert_int_equal(nb_engine_rollback_stats(t.r.engine).tick_count, 0);
            assert_int_equal(test_log_count(&t.r.log, NB_ITEM_SYNCTEST_DIVERGED), 0);
            town_close(&t);
        }
    }
}

TEST_ONE_THREAD(deepest_is_64_and_one_more_is_refused) {
    static town t;
    town_open(&t, 0, NB_SYNCTEST_DEPTH_MAX, SIN_NONE);
    run_ticks(&t.r, 80);
    assert_int_equal(town_report(&t).diverged_count, 0);
    assert_int_equal(town_report(&t).checked_count, 64 * 80 - 64 * 63 / 2);
    town_close(&t);
    nb_engine_desc desc = town_desc(0, NB_SYNCTEST_DEPTH_MAX + 1);
    test_log log = {0};
    desc.hooks = test_hooks(&log, NULL);
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_ERR_RANGE);
    assert_null(engine);
}

// One field is enough.
TEST_ONE_THREAD(history_and_hashes_come_with_it) {
    static town t;
    memset(&t, 0, sizeof t);
    nb_engine_desc desc = rig_desc(0);
    desc.synctest_depth = 3;
    rig_open_desc(&t.r, desc);
    town_fill(&t);
    run_ticks(&t.r, 20);
    assert_int_equal(town_report(&t).checked_count, 3 * 20 - 3);
    assert_true(rig_stats(&t.r).tick_hash != 0);
    town_close(&t);
}

// Several ticks in a frame, frames without one, workers.
TEST(frames_of_any_length_pass) {
    static town t;
    uint64_t random = test_seed(__func__);
    town_open(&t, 2, 5, SIN_NONE);
    for (uint64_t i = 0; i < test_size(100, 1000, 10000); ++i)
        nb_engine_frame_delta(t.r.engine, test_random(&random) % 60000000);
    nb_synctest_report report = town_report(&t);
    assert_int_equal(report.diverged_count + report.outside_count, 0);
    assert_true(report.checked_count > 100);
    town_close(&t);
}

typedef struct peek {
    uint64_t begin_count, end_count, hash;
} peek;

static void peek_begin(void *user, nb_tick_view *view) { (void)view, ++((peek *)user)->begin_count; }
static void peek_end(void *user, const nb_tick_view *view) {
    peek *p = user;
    ++p->end_count;
    p->hash = nb_hash64(&view->hash, sizeof view->hash, p->hash);
}

TEST_ONE_THREAD(watches_see_each_tick_once) {
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; ++i) {
        static town t;
        peek p = {0};
        town_open(&t, 0, i * 8, SIN_NONE);
        nb_tick_watch watch = {.begin = peek_begin, .end = peek_end, .again = peek_end, .user = &p};
        assert_int_equal(nb_engine_watch_add(t.r.engine, &watch), NB_OK);
        run_ticks(&t.r, 100);
        assert_int_equal(p.begin_count, 100);
        assert_int_equal(p.end_count, 100);
        hashes[i] = p.hash;
        town_close(&t);
    }
    assert_true(hashes[0] == hashes[1]);
}

// Handlers that fail are left out and disabled when they would have been.
TEST_ONE_THREAD(failing_handlers_are_counted_once) {
    nb_engine_stats stats[2];
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; ++i) {
        static town t;
        memset(&t, 0, sizeof t);
        nb_engine_desc desc = town_desc(0, i * 6);
        desc.failure_count_max = 3;
        rig_open_desc(&t.r, desc);
        town_fill(&t);
        t.has_failures = true;
        run_ticks(&t.r, 60);
        stats[i] = rig_stats(&t.r);
        hashes[i] = town_hash(&t);
        if (i == 1) assert_string_equal(town_report(&t).text, "");
        assert_int_equal(test_log_count(&t.r.log, NB_ITEM_ENGINE_DISABLED), 2); // its ticks, its frames
        assert_int_equal(test_log_count(&t.r.log, NB_ITEM_ENGINE_FAILURE), 2);
        town_close(&t);
    }
    assert_int_equal(stats[0].failure_count, 2 + 3); // ticks 20 and 21, then 50 to 52
    assert_int_equal(stats[1].failure_count, stats[0].failure_count);
    assert_int_equal(stats[1].disabled_count, 1);
    assert_true(hashes[0] == hashes[1]);
}

// --- what no tick made ---

TEST_ONE_THREAD(change_between_ticks_is_told_and_nothing_is_checked_across_it) {
    static town t;
    uint64_t expected = town_plain_hash(130, SIN_FRAME);
    town_open(&t, 0, 8, SIN_FRAME);
    run_ticks(&t.r, 130);
    nb_synctest_report report = town_report(&t);
    assert_int_equal(report.diverged_count, 0);
    assert_int_equal(report.outside_count, 1);
    assert_int_equal(report.checked_count, 2 * (8 * 8 - 8 * 7 / 2) + 8 * (130 - 16));
    assert_int_equal(test_log_count(&t.r.log, NB_ITEM_SYNCTEST_OUTSIDE), 1);
    assert_non_null(strstr(t.r.log.last_message, "before tick 100, by no tick"));
    assert_non_null(strstr(t.r.log.last_message, "score: byte 0 of 16"));
    assert_true(town_hash(&t) == expected);
    town_close(&t);
}

// More than the history has room for, in one tick.
static nb_result send_many(const nb_context *context, void *user) {
    (void)user;
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = 77};
    for (uint32_t i = 0; i < 6 && context->frame_index == 50; ++i) nb_context_command(context, &event);
    return NB_OK;
}

TEST_ONE_THREAD(tick_whose_input_was_not_kept_is_not_simulated_again) {
    static town t;
    town_open(&t, 0, 8, SIN_NONE);
    nb_module_desc module = {.name = "many"};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = send_many;
    attach(&t.r, module);
    run_ticks(&t.r, 100);
    nb_synctest_report report = town_report(&t);
    assert_string_equal(report.text, "");
    assert_int_equal(report.skipped_count, 1);
    assert_int_equal(report.checked_count, 8 * 50 - 28 + 8 * 49 - 28);
    town_close(&t);
}

static nb_result nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

static nb_result more_gold(const nb_context *context, void *user) {
    town *t = user;
    (void)context;
    if (nb_store_row_count(t->world, t->folk) > 0) *NB_STORE_ROW_WRITE(t->world, t->folk, GOLD, uint32_t, 0) += 1;
    return NB_OK;
}

TEST_ONE_THREAD(modules_and_providers_that_come_and_go_begin_anew) {
    static town t;
    uint64_t extra = 5, local = 6;
    nb_provider added = {0};
    town_open(&t, 0, 8, SIN_NONE);
    run_ticks(&t.r, 30);
    nb_module_id module = attach(&t.r, (nb_module_desc){.name = "more", .tick = more_gold, .user = &t});
    run_ticks(&t.r, 20);
    assert_int_equal(nb_engine_module_detach(t.r.engine, module), NB_OK);
    run_ticks(&t.r, 20);
    nb_provider_desc state_desc = {.name = "extra", .data = &extra, .size_bytes = sizeof extra};
    nb_provider_desc local_desc = {.name = "a", .data = &local, .size_bytes = sizeof local, .flags = NB_PROVIDER_LOCAL};
    assert_int_equal(nb_states_add(nb_engine_states(t.r.engine), &state_desc, &added), NB_OK);
    assert_int_equal(nb_states_add(nb_engine_states(t.r.engine), &local_desc, NULL), NB_OK);
    run_ticks(&t.r, 20);
    assert_int_equal(nb_states_remove(nb_engine_states(t.r.engine), added), NB_OK);
    run_ticks(&t.r, 20);
    attach(&t.r, (nb_module_desc){.name = "nothing", .frame = nothing});
    run_ticks(&t.r, 20);
    assert_string_equal(town_report(&t).text, "");
    assert_true(town_report(&t).checked_count > 700);
    town_close(&t);
}

// The past is put right by others, too: late inputs, a state that was sent, a rewind.
typedef struct mail {
    uint64_t frame, tick;
    const void *bytes;
    size_t size_bytes;
} mail;

static nb_result deliver(const nb_context *context, void *user) {
    const mail *m = user;
    if (context->frame_index != m->frame) return NB_OK;
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = 12345};
    nb_history_input input = {{NULL, 0}, {&event, 1}};
    return m->bytes != NULL ? nb_context_correct_state(context, m->tick, m->bytes, m->size_bytes)
                            : nb_context_correct_input(context, m->tick, &input);
}

TEST_ONE_THREAD(rollbacks_and_rewinds_pass) {
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; ++i) {
        static town t;
        static unsigned char bytes[1 << 13];
        size_t size_bytes = 0;
        town_open(&t, 0, i * 8, SIN_NONE);
        mail m = {.frame = 60, .tick = 51};
        nb_module_desc module = {.name = "mail", .user = &m};
        module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = deliver;
        attach(&t.r, module);
        run_ticks(&t.r, 100); // with a late input
        assert_int_equal(nb_engine_rollback_stats(t.r.engine).rollback_count, 1);
        assert_int_equal(nb_engine_rollback_stats(t.r.engine).tick_count, 9);
        t.score.sum += 1; // of another machine
        assert_int_equal(nb_states_save(nb_engine_states(t.r.engine), bytes, sizeof bytes, &size_bytes), NB_OK);
        t.score.sum -= 1;
        m = (mail){.frame = 107, .tick = 100, .bytes = bytes, .size_bytes = size_bytes};
        run_ticks(&t.r, 50);
        assert_int_equal(nb_engine_rollback_stats(t.r.engine).rollback_count, 2);
        assert_int_equal(nb_engine_rewind(t.r.engine, 130), NB_OK);
        run_ticks(&t.r, 10);
        assert_int_equal(nb_engine_rewind(t.r.engine, 137), NB_OK);
        hashes[i] = town_hash(&t); // with references to rows spawned in ticks that were simulated again
        run_ticks(&t.r, 30);
        if (i == 1) assert_string_equal(town_report(&t).text, "");
        if (i == 1) assert_int_equal(town_report(&t).outside_count, 0);
        hashes[i] = nb_hash64(&hashes[i], sizeof hashes[i], town_hash(&t));
        town_close(&t);
    }
    assert_true(hashes[0] == hashes[1]);
}

// --- memory ---

TEST_ONE_THREAD(steady_game_needs_no_heap) {
    static town t;
    town_open(&t, 0, 2, SIN_NONE);
    run_ticks(&t.r, 1500);
    uint64_t calls = nbi_atomic_load_relaxed_u64(&t.r.heap.call_count);
    size_t memory_bytes = town_report(&t).memory_bytes;
    run_ticks(&t.r, 300);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&t.r.heap.call_count), calls);
    assert_int_equal(town_report(&t).memory_bytes, memory_bytes);
    town_close(&t);
}

// Whichever call finds no memory: what is simulated is the same, and nothing leaks.
TEST_ONE_THREAD(no_memory_leaves_the_game_as_it_is) {
    static town t;
    uint64_t expected = 0, first_call = 0, last_call = 0;
    town_open(&t, 0, 3, SIN_NONE);
    run_ticks(&t.r, 40);
    expected = rig_stats(&t.r).run_hash;
    last_call = nbi_atomic_load_relaxed_u64(&t.r.heap.call_count);
    town_close(&t);
    town_open(&t, 0, 3, SIN_NONE);
    first_call = nbi_atomic_load_relaxed_u64(&t.r.heap.call_count);
    town_close(&t);
    assert_true(last_call > first_call + 10);
    for (uint64_t call = first_call + 1; call <= last_call; ++call) {
        town_open(&t, 0, 3, SIN_NONE);
        t.r.heap.fail_at = call;
        uint64_t ticks = 0;
        for (uint32_t i = 0; i < 60 && ticks < 40; ++i) {
            nb_result result = nb_engine_run_ticks(t.r.engine, 1); // may fail to begin, and then begin
            assert_true(result == NB_OK || result == NB_ERR_MEMORY);
            ticks = rig_stats(&t.r).tick_count;
        }
        assert_int_equal(ticks, 40);
        assert_int_equal(town_report(&t).diverged_count, 0);
        if (rig_stats(&t.r).run_hash != expected) // a hash may be 0 where there was no memory for it
            assert_true(nb_states_hash(nb_engine_states(t.r.engine)) != 0);
        town_close(&t);
    }
}
