// SPDX-License-Identifier: MIT
// A history's memory: every failed allocation is a clean error, and none happens once it is in use.

#include "frame/history/history_fixture.h"

static nb_result begin(game *g, const nb_hooks *hooks, nb_history **history) {
    nb_history_desc desc = {.states = g->states, .world = g->f.world, .hooks = *hooks};
    nb_result result = nb_history_create(&desc, history);
    return result == NB_OK ? nb_history_save(*history, 1) : result;
}

static uint32_t begin_with_failing_heap(game *g, bool is_lasting) {
    static test_log log;
    for (uint32_t n = 1;; ++n) {
        memset(&log, 0, sizeof log);
        test_heap heap = test_heap_failing(n, is_lasting);
        nb_hooks hooks = test_hooks(&log, &heap);
        nb_history *history = NULL;
        uint64_t hash = game_deep_hash(g);
        nb_result result = begin(g, &hooks, &history);
        assert_ok_or_no_memory(result, &log);
        heap.fail_at = heap.fail_from = 0;
        if (result != NB_OK && history != NULL) { // the next one is the first
            assert_false(nb_history_stats_get(history).has_begun);
            assert_int_equal(nb_history_rewind(history, 1), NB_ERR_RANGE);
            assert_int_equal(nb_history_save(history, 2), NB_OK);
            assert_int_equal(nb_history_stats_get(history).tick_oldest, 2);
            g->board[0] ^= 1;
            assert_int_equal(nb_history_rewind(history, 2), NB_OK);
        }
        assert_int_equal(game_deep_hash(g), hash);
        nb_history_destroy(history);
        assert_int_equal(heap.live_count.value, 0);
        assert_int_equal(heap.live_bytes.value, 0);
        if (result == NB_OK) return n - 1;
    }
}

TEST(beginning_survives_every_failed_allocation) {
    static game g;
    game_open(&g, 100, (nb_history_desc){0});
    for (uint64_t tick = 0; tick < 20; ++tick) game_tick(&g, tick, tick);
    assert_int_equal(begin_with_failing_heap(&g, false), 4); // itself; its regions; two providers with callbacks
    assert_int_equal(begin_with_failing_heap(&g, true), 4);
    game_close(&g);
}

// A provider that has grown needs more: without it the tick is not saved, and nothing else is lost.
TEST(growth_without_memory_keeps_what_was) {
    static game g;
    test_heap heap = {0};
    game_open(&g, 100, (nb_history_desc){.hooks = test_hooks(NULL, &heap)});
    for (uint64_t tick = 0; tick <= 10; ++tick) {
        game_tick(&g, tick, tick);
        g.first.size_bytes = 10;
        g.first.bytes[0] = (unsigned char)tick;
        assert_int_equal(nb_history_save(g.history, tick), NB_OK);
    }
    uint64_t hash = game_deep_hash(&g);
    g.first.size_bytes = LIST_BYTES_MAX;
    heap.fail_from = heap.call_count.value + 1;
    assert_int_equal(nb_history_save(g.history, 11), NB_ERR_MEMORY);
    assert_int_equal(nb_history_rewind(g.history, 3), NB_ERR_MEMORY);
    assert_int_equal(g.first.size_bytes, LIST_BYTES_MAX);
    assert_int_equal(nb_history_stats_get(g.history).tick_newest, 10);
    heap.fail_from = 0;
    assert_int_equal(nb_history_save(g.history, 11), NB_OK);
    assert_int_equal(nb_history_rewind(g.history, 10), NB_OK);
    assert_int_equal(game_deep_hash(&g), hash);
    assert_int_equal(nb_history_rewind(g.history, 3), NB_OK);
    assert_int_equal(g.first.bytes[0], 3);
    game_close(&g);
    assert_int_equal(heap.live_count.value, 0);
}

// More address space than any machine has.
TEST(pages_that_are_not_there_are_a_clean_error) {
    const size_t too_much = (size_t)1 << 60;
    test_log log = {0};
    test_heap heap = {0};
    uint32_t data = 0;
    nb_states *states = NULL;
    nb_history *history = NULL;
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    nb_history_desc desc = nb_history_desc_default();
    assert_int_equal(desc.bytes_max, NB_HISTORY_BYTES_DEFAULT);
    desc.states = states;
    desc.hooks = test_hooks(&log, &heap);
    desc.bytes_max = too_much;
    assert_int_equal(nb_history_create(&desc, &history), NB_ERR_MEMORY);
    assert_null(history);
    assert_int_equal(heap.live_count.value, 0);
    desc.bytes_max = NB_HISTORY_BYTES_DEFAULT;
    assert_int_equal(nb_history_create(&desc, &history), NB_OK);
    nb_provider huge_state;
    nb_provider_desc huge = {.name = "huge", .data = &data, .size_bytes = too_much}; // never read
    assert_int_equal(nb_states_add(states, &huge, &huge_state), NB_OK);
    assert_int_equal(nb_history_save(history, 0), NB_ERR_MEMORY);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 2);
    assert_int_equal(nb_states_remove(states, huge_state), NB_OK);
    assert_int_equal(nb_history_save(history, 0), NB_OK); // with nothing to keep
    assert_int_equal(nb_history_rewind(history, 0), NB_OK);
    nb_history_destroy(history);
    assert_int_equal(heap.live_count.value, 0);
    nb_states_destroy(states);
}

TEST(running_history_calls_no_heap) {
    static game g;
    test_heap heap = {0};
    nb_hooks hooks = test_hooks(NULL, &heap);
    game_open(&g, 100, (nb_history_desc){.hooks = hooks, .tick_count_max = 50});
    g.first.size_bytes = g.second.size_bytes = LIST_BYTES_MAX; // as large as they get
    assert_int_equal(nb_history_save(g.history, 0), NB_OK);
    uint64_t calls = heap.call_count.value;
    for (uint64_t tick = 1; tick <= 300; ++tick) {
        nb_input_event event = {.code = (uint32_t)tick};
        nb_history_input input = {.events = {&event, 1}, .commands = {&event, 1}};
        assert_int_equal(nb_history_input_set(g.history, tick, &input), NB_OK);
        game_step(&g, tick, tick * 31);
        if (tick % 10 != 0) continue;
        assert_int_equal(nb_history_rewind(g.history, tick - 9), NB_OK);
        for (uint64_t next = tick - 8; next <= tick; ++next) game_step(&g, next, next * 31);
        nb_history_confirm(g.history, tick - 20 < tick ? tick - 20 : 0);
    }
    assert_int_equal(heap.call_count.value, calls);
    game_close(&g);
    assert_int_equal(heap.live_count.value, 0);
}

// Ticks are simulated again, and one of them is not saved: those behind it still get their input.
TEST(tick_without_memory_forgets_no_later_input) {
    static game g;
    test_heap heap = {0};
    game_open(&g, 100, (nb_history_desc){.hooks = test_hooks(NULL, &heap)});
    g.first.size_bytes = 10;
    for (uint64_t tick = 0; tick <= 8; ++tick) {
        nb_input_event event = {.code = (uint32_t)tick};
        nb_history_input input = {{&event, 1}, {NULL, 0}};
        if (tick > 0) assert_int_equal(nb_history_input_set(g.history, tick, &input), NB_OK);
        assert_int_equal(nb_history_save(g.history, tick), NB_OK);
    }
    assert_int_equal(nb_history_rewind(g.history, 3), NB_OK);
    g.first.size_bytes = 800;
    heap.fail_from = 1;
    assert_int_equal(nb_history_save(g.history, 4), NB_ERR_MEMORY);
    assert_int_equal(nb_history_save(g.history, 5), NB_ERR_MEMORY);
    heap.fail_from = 0;
    for (uint64_t tick = 6; tick <= 8; ++tick) {
        nb_history_input input = {{NULL, 0}, {NULL, 0}};
        assert_int_equal(nb_history_input_get(g.history, tick, &input), NB_OK);
        assert_int_equal(input.events.count, 1);
        assert_int_equal(input.events.events[0].code, tick);
        assert_int_equal(nb_history_save(g.history, tick), NB_OK);
    }
    assert_int_equal(nb_history_stats_get(g.history).tick_oldest, 6);
    assert_int_equal(nb_history_stats_get(g.history).restart_count, 1);
    game_close(&g);
}
