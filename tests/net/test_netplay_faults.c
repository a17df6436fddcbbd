// SPDX-License-Identifier: MIT
// Networks from a seed that are as bad as can be and then are not, and players who compute something else.

#include "net/netplay_fixture.h"

#define MS UINT64_C(1000000)

// --- networks ---

#define FAULT_STEPS 60u
#define SEED_TICKS 256u

static party_desc desc_of(uint64_t seed) {
    nb_random random = nb_random_make(seed, 0, 300);
    party_desc desc = {.player_count = 2, .seed = seed, .is_uneven = true, .tick_count = SEED_TICKS};
    if (nb_random_range(random, 0, 8) == 0) desc.player_count = 2 + (uint32_t)nb_random_range(random, 1, 3);
    for (uint32_t i = 0; i < desc.player_count; ++i) desc.delays[i] = (uint32_t)nb_random_range(random, 10 + i, 4);
    desc.conditions = (nb_link_conditions){.latency_ns = nb_random_range(random, 2, 101) * MS,
                                           .jitter_ns = 300 * MS,
                                           .reorder_ns = 100 * MS,
                                           .reorder_ppm = 100000,
                                           .loss_ppm = 300000,
                                           .duplicate_ppm = 100000,
                                           .corrupt_ppm = 10000};
    return desc;
}

// Everything that anybody had done when the faults stopped is known to everybody, and everybody knows that.
static void check_converged(party *p, const uint64_t *done) {
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        uint64_t least = ticks_of(&p->seats[i]) - 1; // a frame confirms before its own tick
        for (uint32_t j = 0; j < p->desc.player_count; ++j) {
            nb_netplay_peer seen = {0}, back = {0};
            if (done[j] < least) least = done[j];
            if (i == j) continue;
            nb_netplay_peer_get(p->seats[i].play, j, &seen);
            nb_netplay_peer_get(p->seats[j].play, i, &back);
            if (seen.known_count < done[j]) party_fail(p, "inputs are missing", seen.known_count, done[j]);
            if (back.acked_count < done[j]) party_fail(p, "nobody knows they came", back.acked_count, done[j]);
        }
        uint64_t confirmed = play_stats(&p->seats[i]).confirmed_count;
        if (confirmed < least) party_fail(p, "ticks are open", confirmed, least);
    }
}

static void run_seed(party *p, uint64_t seed) {
    party_desc desc = desc_of(seed);
    party_open(p, &desc);
    party_run(p, FAULT_STEPS);
    // From here on messages take their time and nothing else happens to them.
    nb_link_conditions calm = {.latency_ns = desc.conditions.latency_ns};
    party_weather(p, &calm);
    p->desc.is_uneven = false;
    uint64_t done[PARTY_MAX], rtt = (2 * calm.latency_ns + PARTY_TICK_NS - 1) / PARTY_TICK_NS;
    for (uint32_t i = 0; i < desc.player_count; ++i) done[i] = ticks_of(&p->seats[i]) + desc.delays[i];
    party_run(p, rtt + 2);
    check_converged(p, done);
}

static void close_seed(party *p, uint64_t *rolled) {
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        nb_netplay_stats stats = play_stats(&p->seats[i]);
        *rolled += roll_stats(&p->seats[i]).tick_count;
        if (stats.has_desync) party_fail(p, "desync", stats.desync_tick, i);
        if (stats.in_absurd_count + stats.in_foreign_count != 0) party_fail(p, "refused", stats.in_absurd_count, i);
        if (roll_stats(&p->seats[i]).refuse_count != 0) party_fail(p, "a correction was refused", i, 0);
    }
    party_close(p);
}

// Half the links' round trip is the way there, the other half says that it came; the two ticks are the frame in which a
// message waits to be sent and the one in which it waits to be taken.
TEST(network_seeds_converge_within_a_round_trip) {
    bool is_alone = getenv("NB_TEST_SEED") != NULL;
    uint64_t first = is_alone ? test_seed(__func__) : 1, rolled = 0;
    uint64_t count = is_alone ? 1 : test_size(60, 10000, 100000);
    for (uint64_t seed = first; seed < first + count; ++seed) {
        static party p;
        run_seed(&p, seed);
        close_seed(&p, &rolled);
        if (p.problem[0] != '\0') {
            print_error("%s\nagain: NB_TEST_SEED=0x%llx test_netplay_faults network_seeds*\n", p.problem,
                        (unsigned long long)seed);
            fail();
        }
    }
    print_message("%llu networks, %llu ticks simulated again\n", (unsigned long long)count, (unsigned long long)rolled);
    assert_true(rolled > count * 100);
}

// Nothing arrives for a time at one of them only; the others wait for it, and all go on.
TEST(one_way_that_is_cut_holds_everybody) {
    static party p;
    party_open(&p, &(party_desc){.player_count = 3, .seed = 21, .conditions = {.latency_ns = 30 * MS}});
    party_run(&p, 30);
    nb_link_conditions cut = {.is_cut = true}, calm = {.latency_ns = 30 * MS};
    nb_link_conditions_set(p.links[0][1], &cut);
    party_run(&p, 300);
    for (uint32_t i = 0; i < 3; ++i) assert_true(ticks_of(&p.seats[i]) <= 30 + 3 * NB_NETPLAY_WINDOW_MAX);
    assert_true(play_stats(&p.seats[1]).stall_count > 100);
    nb_link_conditions_set(p.links[0][1], &calm);
    party_run(&p, 200);
    for (uint32_t i = 0; i < 3; ++i) assert_true(ticks_of(&p.seats[i]) > 250);
    party_settle(&p);
    assert_agreed(&p);
    party_close(&p);
}

// --- desync ---

static void play_wrong(uint32_t count, uint64_t seed, uint32_t wrong_player, uint64_t wrong_tick) {
    static party p;
    party_desc desc = desc_of(seed);
    desc.player_count = count;
    desc.is_broken = true;
    party_open(&p, &desc);
    p.seats[wrong_player].wrong_tick = wrong_tick;
    party_run(&p, 120);
    party_settle(&p);
    party_step(&p, false);
    for (uint32_t i = 0; i < count; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_true(stats.has_desync);
        assert_int_equal(stats.desync_tick, wrong_tick);
        assert_int_equal(test_log_count(&p.seats[i].r.log, NB_ITEM_NETPLAY_DESYNC), 1);
        // Among three the one that is alone is named, by itself too. One of two cannot know.
        assert_int_equal(stats.desync_player, count > 2 ? wrong_player : 1 - i);
        assert_int_equal(stats.desync_blame, count > 2 ? NB_NETPLAY_BLAME_STATE : NB_NETPLAY_BLAME_NONE);
        assert_int_equal(test_log_count(&p.seats[i].r.log, NB_ITEM_NETPLAY_SUSPECT), count > 2);
    }
    assert_true(p.problem[0] == '\0');
    party_close(&p);
}

TEST(player_who_computes_something_else_is_found) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t i = 0; i < test_size(12, 60, 600); ++i)
        play_wrong(2 + (uint32_t)(i % 3), seed + i, (uint32_t)(i % 2), 1 + i * 7 % 60);
}

TEST(first_tick_may_be_the_wrong_one) { play_wrong(2, 5, 0, 0); }

// --- a host that goes elsewhere in time ---

static unsigned char saved[4096];
static size_t saved_bytes;

static nb_result go_far(seat *s) { return nb_engine_set_tick(s->r.engine, UINT64_C(1000000000000)); }
static nb_result go_back(seat *s) { return nb_engine_rewind(s->r.engine, ticks_of(s) - 1); }
static nb_result go_behind_the_engine(seat *s) {
    return nb_loop_set_tick(nb_engine_loop(s->r.engine), UINT64_C(1000000000000));
}

static nb_result load_other(seat *s, uint64_t tick) {
    return nb_engine_load(s->r.engine, tick, saved, saved_bytes, (nb_input_view){NULL, 0});
}

static nb_result load_old(seat *s) { return load_other(s, 10); }
static nb_result load_here(seat *s) { return load_other(s, ticks_of(s)); }
static nb_result set_tick_here(seat *s) { return nb_engine_set_tick(s->r.engine, ticks_of(s)); }

// The very state that the engine stands at, saved a moment ago.
static nb_result load_same(seat *s) {
    nb_result result = nb_states_save(nb_engine_states(s->r.engine), saved, sizeof saved, &saved_bytes);
    return result == NB_OK ? load_here(s) : result;
}

// By hand, without a word to the engine.
static nb_result load_states(seat *s) { return nb_states_load(nb_engine_states(s->r.engine), saved, saved_bytes); }

static void go_elsewhere(nb_result (*go)(seat *s), bool is_held) {
    static party p;
    static const party_desc desc = {.player_count = 2, .seed = 3, .is_broken = true, .tick_count = 256};
    party_open(&p, &desc);
    party_run(&p, 10);
    assert_int_equal(nb_states_save(nb_engine_states(p.seats[0].r.engine), saved, sizeof saved, &saved_bytes), NB_OK);
    party_run(&p, 30);
    seat *mover = &p.seats[0], *other = &p.seats[1];
    // Where nothing comes from the other player the window fills, and the loop is held.
    for (uint32_t i = 0; is_held && i < NB_NETPLAY_WINDOW_MAX + 2; ++i) nb_engine_run_ticks(mover->r.engine, 1);
    assert_true(nb_netplay_advice_get(mover->play).must_wait == is_held);
    uint64_t sampled = mover->sample_count, tick_count = ticks_of(mover);
    assert_int_equal(go(mover), NB_OK);
    uint64_t place = nb_loop_tick_count(nb_engine_loop(mover->r.engine));
    for (uint32_t i = 0; i < 20; ++i) {
        seat_receive(mover);
        assert_int_equal(nb_engine_frame_delta(mover->r.engine, PARTY_TICK_NS), NB_OK);
    }
    // It has left, once and for all; its ticks run, and nobody was asked for inputs of ticks that are not there.
    nb_netplay_stats stats = play_stats(mover);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = 0;
    assert_true(stats.has_left);
    assert_int_equal(stats.tick_count, tick_count);
    assert_int_equal(mover->sample_count, sampled);
    assert_in_range(nb_loop_tick_count(nb_engine_loop(mover->r.engine)) - place, 18, 20);
    assert_int_equal(test_log_count(&mover->r.log, NB_ITEM_NETPLAY_LOST), 1);
    assert_false(stats.has_lost);
    assert_int_equal(nb_netplay_send(mover->play, 1, bytes, sizeof bytes, &size), NB_CLOSED);
    assert_false(nb_netplay_advice_get(mover->play).must_wait);
    // The other one has what was confirmed, and waits.
    nb_netplay_stats left = play_stats(other);
    assert_false(left.has_left || left.has_lost || left.has_desync);
    party_close(&p);
}

TEST(an_engine_that_goes_elsewhere_in_time_leaves_the_match) {
    for (int is_held = 0; is_held < 2; ++is_held) {
        go_elsewhere(go_far, is_held != 0);
        go_elsewhere(go_back, is_held != 0);
        go_elsewhere(go_behind_the_engine, is_held != 0);
        go_elsewhere(load_old, is_held != 0);
    }
}

// The tick index alone does not tell.
TEST(an_engine_that_gets_other_states_at_its_tick_leaves_the_match) {
    for (int is_held = 0; is_held < 2; ++is_held) {
        go_elsewhere(load_here, is_held != 0);
        go_elsewhere(load_same, is_held != 0);
        go_elsewhere(load_states, is_held != 0);
        go_elsewhere(set_tick_here, is_held != 0);
    }
}

// With a delay all inputs are there in time, and no tick of the past is needed: the next tick tells.
TEST(an_engine_that_has_confirmed_all_and_gets_other_states_leaves_the_match) {
    static party p;
    static const party_desc desc = {
        .player_count = 2, .seed = 3, .delays = {4, 4}, .is_broken = true, .tick_count = 256};
    nb_result (*const ways[])(seat *) = {load_here, load_same, load_states, set_tick_here};
    for (uint32_t way = 0; way < 4; ++way) {
        party_open(&p, &desc);
        party_run(&p, 10);
        saved_bytes = 0;
        assert_int_equal(nb_states_save(nb_engine_states(p.seats[0].r.engine), saved, sizeof saved, &saved_bytes),
                         NB_OK);
        party_run(&p, 30);
        party_step(&p, false);
        seat *mover = &p.seats[0];
        assert_int_equal(play_stats(mover).confirmed_count, ticks_of(mover));
        assert_int_equal(ways[way](mover), NB_OK);
        assert_int_equal(nb_engine_run_ticks(mover->r.engine, 1), NB_OK);
        assert_true(play_stats(mover).has_left);
        assert_int_equal(test_log_count(&mover->r.log, NB_ITEM_NETPLAY_LOST), 1);
        party_close(&p);
    }
}

// --- a peer that vanished ---

static nb_result rewind_here(seat *s) { return nb_engine_rewind(s->r.engine, ticks_of(s)); }
static nb_result rewind_and_return(seat *s) {
    nb_result result = nb_engine_rewind(s->r.engine, ticks_of(s) - 1);
    return result == NB_OK ? nb_engine_rewind(s->r.engine, ticks_of(s)) : result;
}
static nb_result rewind_and_set_tick(seat *s) {
    nb_result result = nb_engine_rewind(s->r.engine, ticks_of(s) - 1);
    return result == NB_OK ? set_tick_here(s) : result;
}

// The last player sends nothing any more, so that the others are held with a full window.
static void vanish(party *p, uint32_t player_count) {
    static const nb_link_conditions cut = {.is_cut = true};
    party_open(p, &(party_desc){.player_count = player_count, .seed = 3, .is_broken = true, .tick_count = 256});
    party_run(p, 40);
    saved_bytes = 0;
    for (uint32_t to = 0; to + 1 < player_count; ++to)
        assert_int_equal(nb_link_conditions_set(p->links[player_count - 1][to], &cut), NB_OK);
    party_run(p, NB_NETPLAY_WINDOW_MAX + 10);
    for (uint32_t i = 0; i + 1 < player_count; ++i) assert_true(nb_netplay_advice_get(p->seats[i].play).must_wait);
}

static void run_alone(seat *s, uint32_t frame_count) {
    for (uint32_t i = 0; i < frame_count; ++i)
        assert_int_equal(nb_engine_frame_delta(s->r.engine, PARTY_TICK_NS), NB_OK);
}

static void leave_a_held_match(uint32_t player_count, nb_result (*go)(seat *s)) {
    static party p;
    vanish(&p, player_count);
    seat *mover = &p.seats[0];
    uint64_t tick_count = ticks_of(mover);
    assert_int_equal(go(mover), NB_OK);
    run_alone(mover, 20);
    assert_true(play_stats(mover).has_left);
    assert_false(play_stats(mover).has_lost);
    assert_int_equal(test_log_count(&mover->r.log, NB_ITEM_NETPLAY_LOST), 1);
    assert_in_range(nb_loop_tick_count(nb_engine_loop(mover->r.engine)), tick_count + 18, tick_count + 20);
    for (uint32_t i = 1; i + 1 < player_count; ++i) {
        run_alone(&p.seats[i], 20);
        assert_false(play_stats(&p.seats[i]).has_left);
        assert_true(nb_netplay_advice_get(p.seats[i].play).must_wait);
    }
    party_close(&p);
}

TEST(a_load_at_the_tick_where_a_match_is_held_ends_it) {
    for (uint32_t player_count = 2; player_count <= 3; ++player_count) {
        leave_a_held_match(player_count, load_same);
        leave_a_held_match(player_count, set_tick_here);
        leave_a_held_match(player_count, rewind_and_set_tick);
    }
}

// A rewind to the tick of now changes nothing, and other states than those of the match came in nowhere.
static void stay_in_a_held_match(nb_result (*go)(seat *s)) {
    static party p;
    vanish(&p, 3);
    assert_int_equal(go(&p.seats[0]), NB_OK);
    run_alone(&p.seats[0], 20);
    assert_false(play_stats(&p.seats[0]).has_left);
    assert_true(nb_netplay_advice_get(p.seats[0].play).must_wait);
    static const nb_link_conditions clean;
    party_weather(&p, &clean);
    party_run(&p, 40);
    for (uint32_t i = 0; i < 3; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_false(stats.has_left || stats.has_lost || stats.has_desync);
        assert_true(stats.tick_count > 120);
    }
    party_close(&p);
}

static nb_result add_state(seat *s) {
    static uint64_t memory;
    nb_provider_desc state = {.name = "late", .data = &memory, .size_bytes = sizeof memory};
    return nb_states_add(nb_engine_states(s->r.engine), &state, NULL);
}

TEST(a_rewind_to_the_tick_where_a_match_is_held_keeps_it) {
    stay_in_a_held_match(rewind_here);
    stay_in_a_held_match(rewind_and_return);
}

// The history forgets its ticks then, too, but no state came in from outside.
TEST(a_state_that_is_added_to_a_held_match_does_not_end_it) {
    static party p;
    vanish(&p, 3);
    assert_int_equal(add_state(&p.seats[0]), NB_OK);
    run_alone(&p.seats[0], 20);
    assert_false(play_stats(&p.seats[0]).has_left);
    assert_true(nb_netplay_advice_get(p.seats[0].play).must_wait);
    party_close(&p);
}

TEST(a_match_may_begin_with_a_load) {
    static party p;
    static const party_desc desc = {.player_count = 2, .seed = 4, .is_broken = true, .tick_count = 256};
    party_open(&p, &desc);
    saved_bytes = 0;
    assert_int_equal(nb_states_save(nb_engine_states(p.seats[0].r.engine), saved, sizeof saved, &saved_bytes), NB_OK);
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(load_other(&p.seats[i], 0), NB_OK);
    party_run(&p, 40);
    for (uint32_t i = 0; i < 2; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_false(stats.has_left || stats.has_lost || stats.has_desync);
        assert_int_equal(stats.tick_count, 40);
    }
    assert_true(p.problem[0] == '\0');
    party_close(&p);
}
