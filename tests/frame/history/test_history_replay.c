// SPDX-License-Identifier: MIT
// The harness against unsaved state: after every tick eight are taken back and simulated again, and every one of them
// ends in the same hash.

#include "frame/history/history_fixture.h"

#define DEPTH 8

TEST(every_tick_is_simulated_nine_times) {
    static game g;
    uint64_t random = test_seed(__func__), hashes[DEPTH + 1];
    uint64_t ticks = test_size(10000, 100000, 1000000);
    game_open(&g, 100, (nb_history_desc){.tick_count_max = 64, .event_count_max = 2, .bytes_max = 4 << 20});
    assert_int_equal(nb_history_save(g.history, 0), NB_OK);
    for (uint64_t tick = 1; tick <= ticks; ++tick) {
        nb_input_event event = {.timestamp_ns = test_random(&random)};
        nb_history_input input = {.events = {&event, 1}};
        assert_int_equal(nb_history_input_set(g.history, tick, &input), NB_OK);
        game_step(&g, tick, event.timestamp_ns);
        hashes[tick % (DEPTH + 1)] = game_hash(&g);
        uint64_t back = tick > DEPTH ? tick - DEPTH : 0;
        assert_int_equal(nb_history_rewind(g.history, back), NB_OK);
        if (back != 0) assert_int_equal(game_hash(&g), hashes[back % (DEPTH + 1)]);
        for (uint64_t next = back + 1; next <= tick; ++next) {
            assert_int_equal(nb_history_input_get(g.history, next, &input), NB_OK);
            game_step(&g, next, input.events.events[0].timestamp_ns);
            assert_int_equal(game_hash(&g), hashes[next % (DEPTH + 1)]);
        }
        if (tick % 1000 == 0) assert_true(nb_store_is_valid(g.f.world));
    }
    nb_history_stats stats = nb_history_stats_get(g.history);
    assert_int_equal(stats.full_count, 0);
    assert_int_equal(stats.restart_count, 0);
    assert_int_equal(stats.refuse_count, 0);
    assert_int_equal(stats.tick_oldest, ticks - 64);
    game_close(&g);
}
