// SPDX-License-Identifier: MIT
// The demo's two players end on the same planet, whatever happens to their messages.

#include "support/support.h"

#include "demo/net/two_players.h"

#define MS UINT64_C(1000000)

static players_result play(uint64_t lag_ns, uint64_t jitter_ns, double loss, uint32_t worker_count) {
    demo_options options = {.tick_count = test_size(60, 300, 3000),
                            .seed = 7,
                            .tick_rate = {60, 1},
                            .render_rate = {60, 1},
                            .worker_count = worker_count != 0 ? worker_count : UINT32_MAX,
                            .teleport_ticks = 50,
                            .has_players = true,
                            .lag_ns = lag_ns,
                            .jitter_ns = jitter_ns,
                            .loss = loss,
                            .is_virtual = true};
    players_result result = {0};
    assert_int_equal(players_run(&options, &result), 0);
    assert_int_equal(result.tick_count, options.tick_count);
    assert_int_equal(result.differ_count, 0);
    return result;
}

TEST(planet_does_not_depend_on_the_network) {
    players_result near = play(0, 0, 0, 0), far = play(100 * MS, 50 * MS, 0, 0), bad = play(200 * MS, 100 * MS, 0.4, 2);
    assert_int_equal(near.rollback_count, 0);
    assert_int_equal(near.lost_count, 0);
    assert_true(far.rollback_count > 2 && far.depth_max >= 4 && far.depth_max <= 12);
    assert_true(bad.lost_count > bad.sent_count / 4 && bad.again_count > far.again_count);
    assert_true(near.state_hash == far.state_hash && near.state_hash == bad.state_hash);
}
