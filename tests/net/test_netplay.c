// SPDX-License-Identifier: MIT
// Players who never wait for each other, and end in the same states as if all inputs had been in time.

#include "net/netplay_fixture.h"

#define MS UINT64_C(1000000)

static const nb_link_conditions clean;
static const nb_link_conditions bad = {.latency_ns = 50 * MS,
                                       .jitter_ns = 100 * MS,
                                       .reorder_ns = 60 * MS,
                                       .reorder_ppm = 100000,
                                       .loss_ppm = 200000,
                                       .duplicate_ppm = 100000,
                                       .corrupt_ppm = 50000};

// --- the same states ---

TEST(players_over_a_bad_network_agree_with_the_clean_run) {
    uint64_t seed = test_seed(__func__);
    for (uint32_t count = 2; count <= test_size(4, 8, 8); ++count) {
        static party p;
        party_open(&p,
                   &(party_desc){.player_count = count, .seed = seed + count, .conditions = bad, .is_uneven = true});
        party_run(&p, 300);
        party_settle(&p);
        assert_agreed(&p);
        for (uint32_t i = 0; i < count; ++i) {
            nb_netplay_stats stats = play_stats(&p.seats[i]);
            nb_rollback_stats rolled = roll_stats(&p.seats[i]);
            assert_true(stats.confirmed_count >= 200 && stats.mispredicted_count > 0 && stats.in_damaged_count > 0);
            assert_true(stats.predicted_count >= stats.mispredicted_count);
            assert_true(rolled.rollback_count > 0 && rolled.depth_max <= NB_NETPLAY_WINDOW_MAX);
            assert_int_equal(rolled.refuse_count + rolled.fail_count + rolled.same_count, 0);
            assert_true(stats.compared_count >= (count - 1) * 150);
            // What is confirmed needs no room any more.
            nb_history_stats kept = nb_history_stats_get(nb_engine_history(p.seats[i].r.engine));
            assert_int_equal(kept.tick_oldest, stats.confirmed_count);
        }
        party_close(&p);
    }
}

TEST(inputs_in_time_need_no_guess) {
    static party p;
    // A message takes two ticks, and is taken in the frame after.
    nb_link_conditions link = {.latency_ns = 2 * PARTY_TICK_NS};
    party_open(&p, &(party_desc){.player_count = 2, .seed = 3, .conditions = link, .delays = {3, 3}});
    party_run(&p, 200);
    for (uint32_t i = 0; i < 2; ++i) {
        // Only the first ones, before anything had come.
        assert_true(play_stats(&p.seats[i]).predicted_count <= 3);
        assert_int_equal(play_stats(&p.seats[i]).mispredicted_count, 0);
        assert_int_equal(roll_stats(&p.seats[i]).rollback_count, 0);
        assert_int_equal(play_stats(&p.seats[i]).stall_count, 0);
        assert_int_equal(p.seats[i].sample_count, 200);
    }
    party_settle(&p);
    assert_agreed(&p);
    party_close(&p);
}

TEST(each_player_may_have_a_delay_of_his_own) {
    static party p;
    party_open(&p,
               &(party_desc){.player_count = 3, .seed = 5, .conditions = bad, .delays = {0, 5, NB_NETPLAY_DELAY_MAX}});
    party_run(&p, 200);
    party_settle(&p);
    assert_agreed(&p);
    // Who has a long delay is guessed less often.
    nb_netplay_stats first = play_stats(&p.seats[0]);
    assert_true(first.predicted_count > 0);
    party_close(&p);
}

static nb_result carry_in(const nb_context *context, void *user) {
    (void)context;
    seat_receive(user);
    return NB_OK;
}

static nb_result carry_out(const nb_context *context, void *user) {
    (void)context;
    seat_send(user);
    return NB_OK;
}

// As in an engine that runs by itself: messages come and go in handlers, and frames have as many ticks as time has
// passed, from none to six.
TEST(handlers_may_carry_the_messages) {
    uint64_t random = test_seed(__func__);
    for (uint64_t round = 0; round < test_size(3, 30, 300); ++round) {
        static party p;
        party_open(&p, &(party_desc){.player_count = 2, .seed = 100 + round, .conditions = bad, .delays = {0, 3}});
        for (uint32_t i = 0; i < 2; ++i) {
            nb_module_desc carrier = {.name = "carrier", .user = &p.seats[i]};
            carrier.handlers[NB_PHASE_FRAME_START] = carry_in;
            carrier.handlers[NB_PHASE_FRAME_END] = carry_out;
            attach(&p.seats[i].r, carrier);
        }
        for (; p.step < 300; ++p.step, p.now_ns += PARTY_TICK_NS) {
            for (uint32_t i = 0; i < 2; ++i) {
                static const uint32_t ticks[16] = {0, 1, 0, 1, 2, 1, 1, 0, 6, 1, 0, 1, 0, 1, 1, 0};
                uint64_t delta_ns = ticks[test_random(&random) % 16] * PARTY_TICK_NS + test_random(&random) % 1000;
                assert_int_equal(nb_engine_frame_delta(p.seats[i].r.engine, delta_ns), NB_OK);
                seat_check(&p.seats[i]);
            }
        }
        party_settle(&p);
        assert_agreed(&p);
        // Who has drifted ahead guesses, the other has little to guess.
        uint64_t rollback_count = roll_stats(&p.seats[0]).rollback_count + roll_stats(&p.seats[1]).rollback_count;
        assert_true(ticks_of(&p.seats[0]) > 150 && rollback_count > 20);
        assert_int_equal(roll_stats(&p.seats[0]).refuse_count + roll_stats(&p.seats[1]).refuse_count, 0);
        party_close(&p);
    }
}

// --- guesses ---

TEST(guess_is_what_the_player_did_last) {
    static party p;
    // The first player runs before the second, and is known up to the tick before.
    nb_link_conditions link = {.latency_ns = PARTY_TICK_NS};
    party_open(&p, &(party_desc){.player_count = 2, .seed = 3, .conditions = link});
    party_run(&p, 400);
    nb_netplay_stats stats = play_stats(&p.seats[1]);
    uint64_t changes = 1; // the first one, after nothing
    for (uint64_t tick = 1; tick < 399; ++tick) {
        nb_input_event before = party_input(3, tick - 1, 0), now = party_input(3, tick, 0);
        changes += memcmp(&before, &now, sizeof now) != 0;
    }
    assert_in_range(changes, 80, 120);
    assert_int_equal(stats.predicted_count, 400);
    assert_int_equal(stats.mispredicted_count, changes);
    party_settle(&p);
    assert_agreed(&p);
    party_close(&p);
}

// --- the window ---

TEST(window_that_is_full_holds_the_ticks) {
    static party p;
    party_open(&p, &(party_desc){.player_count = 2, .seed = 9, .window = 20});
    party_run(&p, 50);
    assert_false(nb_netplay_advice_get(p.seats[0].play).must_wait);
    nb_link_conditions cut = {.is_cut = true};
    party_weather(&p, &cut);
    party_run(&p, 60);
    for (uint32_t i = 0; i < 2; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_int_equal(stats.tick_count, stats.confirmed_count + 20);
        assert_true(stats.stall_count >= 35 && stats.stall_count <= 42);
        assert_true(nb_netplay_advice_get(p.seats[i].play).must_wait);
    }
    party_weather(&p, &clean);
    party_run(&p, 50);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_true(ticks_of(&p.seats[i]) >= 115);
        assert_true(roll_stats(&p.seats[i]).depth_max <= 20 && roll_stats(&p.seats[i]).depth_max >= 15);
        assert_false(nb_netplay_advice_get(p.seats[i].play).must_wait);
    }
    party_settle(&p);
    assert_agreed(&p);
    party_close(&p);
}

// The same by the clock, where the loop itself has to be held, also in the middle of a frame of many ticks.
TEST(loop_that_was_held_goes_on) {
    static party p;
    party_open(&p, &(party_desc){.player_count = 2, .seed = 11, .window = 10});
    nb_link_conditions cut = {.is_cut = true};
    party_weather(&p, &cut);
    nb_loop *loop = nb_engine_loop(p.seats[0].r.engine);
    for (int i = 0; i < 10; ++i) {
        assert_int_equal(nb_engine_frame_delta(p.seats[0].r.engine, 4 * PARTY_TICK_NS), NB_OK);
        seat_check(&p.seats[0]);
    }
    assert_int_equal(ticks_of(&p.seats[0]), 10);
    assert_true(loop->is_held);
    party_weather(&p, &clean);
    party_run(&p, 5);
    for (int i = 0; i < 4; ++i) {
        seat_frame(&p.seats[1], true);
        seat_receive(&p.seats[0]);
        assert_int_equal(nb_engine_frame_delta(p.seats[0].r.engine, PARTY_TICK_NS), NB_OK);
        seat_send(&p.seats[0]);
    }
    assert_false(loop->is_held);
    assert_true(ticks_of(&p.seats[0]) >= 14);
    party_settle(&p);
    assert_agreed(&p);
    // Who leaves while he is held goes on by himself.
    party_weather(&p, &cut);
    for (int i = 0; i < 10; ++i) nb_engine_frame_delta(p.seats[0].r.engine, 4 * PARTY_TICK_NS);
    assert_true(loop->is_held);
    assert_int_equal(nb_netplay_destroy(p.seats[0].play), NB_OK);
    p.seats[0].play = NULL;
    assert_false(loop->is_held);
    party_close(&p);
}

// --- time ---

TEST(player_who_is_ahead_is_told_to_hold_back) {
    static party p;
    nb_link_conditions link = {.latency_ns = 3 * PARTY_TICK_NS};
    party_open(&p, &(party_desc){.player_count = 2, .seed = 13, .conditions = link, .follows_advice = true});
    for (int i = 0; i < 20; ++i) seat_frame(&p.seats[0], true);
    party_run(&p, 400);
    nb_netplay_peer peer;
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, 1, &peer), NB_OK);
    uint64_t first = ticks_of(&p.seats[0]), second = ticks_of(&p.seats[1]);
    assert_true(first >= second && first - second <= 2);
    assert_true(peer.ahead_ticks >= -1 && peer.ahead_ticks <= 2);
    // There and back, and up to a frame at each end.
    assert_true(peer.rtt_ticks >= 6 && peer.rtt_ticks <= 7);
    // Who was behind has never been held.
    assert_int_equal(second, 400);
    party_settle(&p);
    assert_agreed(&p);
    party_close(&p);
}

TEST(players_in_step_are_not_held) {
    static party p;
    party_open(&p, &(party_desc){
                       .player_count = 3, .seed = 17, .conditions = {.latency_ns = 80 * MS}, .follows_advice = true});
    party_run(&p, 300);
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(ticks_of(&p.seats[i]), 300);
    party_close(&p);
}

// --- what an engine gets, memory, ends ---

typedef struct typist {
    uint32_t event_count, command_count, tick_input_count;
} typist;

static void type(void *user, const nb_tick_view *view, nb_input_event *event) {
    typist *t = user;
    t->event_count += view->input.count;
    t->command_count += view->commands.count;
    event->code = view->commands.count != 0 ? view->commands.events[0].code : 0;
}

static nb_result type_command(const nb_context *context, void *user) {
    (void)user;
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = 5};
    return nb_context_command(context, &command);
}

static nb_result type_tick(const nb_context *context, void *user) {
    typist *t = user;
    t->tick_input_count += context->input.count;
    if (context->tick->index > 0 && context->commands.events[1].code != 5) return NB_ERR_RANGE;
    return context->commands.count == 2 ? NB_OK : NB_ERR_RANGE;
}

TEST(own_input_reaches_the_sample_alone) {
    rig r;
    typist t = {0};
    rig_open_desc(&r, party_engine_desc());
    nb_module_desc module = {.name = "typist", .tick = type_tick, .frame = type_command, .user = &t};
    attach(&r, module);
    nb_netplay_desc desc = {.player_count = 2, .local_player = 1, .sample = type, .user = &t};
    nb_netplay *play = NULL;
    assert_int_equal(nb_netplay_create(r.engine, &desc, &play), NB_OK);
    for (uint64_t i = 0; i < 10; ++i) {
        nb_input_event press = {.kind = NB_INPUT_PRESS, .code = 1};
        assert_int_equal(nb_input_send(nb_engine_input(r.engine), &press), NB_OK);
        assert_int_equal(nb_engine_frame_delta(r.engine, PARTY_TICK_NS), NB_OK);
    }
    assert_int_equal(t.event_count, 10);
    assert_int_equal(t.command_count, 9);
    assert_int_equal(t.tick_input_count, 0);
    assert_int_equal(rig_stats(&r).failure_count, 0);
    // The engine may end first.
    assert_int_equal(nb_engine_destroy(r.engine), NB_OK);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = 0;
    assert_int_equal(nb_netplay_send(play, 0, bytes, sizeof bytes, &size), NB_CLOSED);
    assert_int_equal(nb_netplay_stats_get(play).tick_count, 10);
    assert_int_equal(nb_netplay_destroy(play), NB_OK);
}

TEST(match_uses_no_heap) {
    static party p;
    party_open(&p, &(party_desc){.player_count = 3, .seed = 19, .conditions = bad, .is_uneven = true});
    party_run(&p, 40);
    uint64_t calls = p.link_heap.call_count.value;
    for (uint32_t i = 0; i < 3; ++i) calls += p.seats[i].r.heap.call_count.value;
    party_run(&p, 200);
    assert_true(roll_stats(&p.seats[0]).rollback_count > 50);
    uint64_t after = p.link_heap.call_count.value;
    for (uint32_t i = 0; i < 3; ++i) after += p.seats[i].r.heap.call_count.value;
    assert_int_equal(after, calls);
    party_close(&p);
}

TEST(match_may_begin_at_any_tick) {
    rig r[2];
    typist t = {0};
    nb_netplay *plays[2] = {NULL, NULL};
    for (uint32_t i = 0; i < 2; ++i) {
        rig_open_desc(&r[i], party_engine_desc());
        run_ticks(&r[i], 33);
        nb_netplay_desc desc = {.player_count = 2, .local_player = i, .input_delay = 2, .sample = type, .user = &t};
        assert_int_equal(nb_netplay_create(r[i].engine, &desc, &plays[i]), NB_OK);
    }
    for (int step = 0; step < 20; ++step) {
        for (uint32_t i = 0; i < 2; ++i) {
            unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
            size_t size = 0;
            run_ticks(&r[i], 1);
            assert_int_equal(nb_netplay_send(plays[i], 1 - i, bytes, sizeof bytes, &size), NB_OK);
            assert_int_equal(nb_netplay_receive(plays[1 - i], i, bytes, size), NB_OK);
        }
    }
    uint64_t hash = 0;
    assert_true(nb_netplay_stats_get(plays[0]).confirmed_count >= 33 + 19);
    assert_int_equal(nb_netplay_hash_get(plays[0], 33, &hash), NB_ERR_RANGE);
    assert_int_equal(nb_netplay_hash_get(plays[0], 34, &hash), NB_OK);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_true(nb_netplay_stats_get(plays[i]).compared_count > 15);
        assert_false(nb_netplay_stats_get(plays[i]).has_desync);
        assert_int_equal(nb_netplay_destroy(plays[i]), NB_OK);
        rig_close(&r[i]);
    }
}

TEST(engine_without_hashes_plays_all_the_same) {
    rig r[2];
    typist t = {0};
    nb_netplay *plays[2] = {NULL, NULL};
    nb_engine_desc engine = party_engine_desc();
    engine.hashes_ticks = false;
    for (uint32_t i = 0; i < 2; ++i) {
        rig_open_desc(&r[i], engine);
        nb_netplay_desc desc = {.player_count = 2, .local_player = i, .sample = type, .user = &t};
        assert_int_equal(nb_netplay_create(r[i].engine, &desc, &plays[i]), NB_OK);
    }
    for (uint32_t i = 0; i < 60; ++i) {
        unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
        size_t size = 0;
        run_ticks(&r[i % 2], 1);
        assert_int_equal(nb_netplay_send(plays[i % 2], 1 - i % 2, bytes, sizeof bytes, &size), NB_OK);
        assert_int_equal(nb_netplay_receive(plays[1 - i % 2], i % 2, bytes, size), NB_OK);
    }
    uint64_t hash = 0;
    assert_int_equal(nb_netplay_hash_get(plays[0], 10, &hash), NB_ERR_UNSUPPORTED);
    assert_true(nb_netplay_stats_get(plays[0]).confirmed_count >= 28);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(nb_netplay_stats_get(plays[i]).compared_count, 0);
        assert_int_equal(nb_netplay_destroy(plays[i]), NB_OK);
        rig_close(&r[i]);
    }
}

// A history that has to forget what may still be wrong: it is said, once.
typedef struct hog {
    unsigned char bytes[8192];
} hog;

static nb_result hog_tick(const nb_context *context, void *user) {
    hog *h = user;
    for (size_t i = 0; i < sizeof h->bytes; ++i)
        h->bytes[i] = (unsigned char)(h->bytes[i] * 5 + context->tick->index + context->commands.events[0].code + i);
    return NB_OK;
}

TEST(history_that_is_too_short_is_told) {
    rig r;
    typist t = {0};
    static hog h;
    nb_engine_desc engine = party_engine_desc();
    engine.history.bytes_max = (size_t)1 << 16;
    rig_open_desc(&r, engine);
    nb_provider_desc hog_state = {.name = "hog", .data = &h, .size_bytes = sizeof h};
    assert_int_equal(nb_states_add(nb_engine_states(r.engine), &hog_state, NULL), NB_OK);
    attach(&r, (nb_module_desc){.name = "hog", .tick = hog_tick, .user = &h});
    nb_netplay_desc desc = {.player_count = 2, .sample = type, .user = &t, .hooks = test_hooks(&r.log, NULL)};
    nb_netplay *play = NULL, *other = NULL;
    assert_int_equal(nb_netplay_create(r.engine, &desc, &play), NB_OK);
    rig far;
    rig_open_desc(&far, party_engine_desc());
    attach(&far, (nb_module_desc){.name = "typist", .frame = type_command});
    desc.local_player = 1;
    assert_int_equal(nb_netplay_create(far.engine, &desc, &other), NB_OK);
    run_ticks(&r, 40), run_ticks(&far, 40);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = 0;
    assert_int_equal(nb_netplay_send(other, 0, bytes, sizeof bytes, &size), NB_OK);
    assert_int_equal(nb_netplay_receive(play, 1, bytes, size), NB_OK);
    run_ticks(&r, 5);
    assert_true(nb_netplay_stats_get(play).has_lost);
    assert_int_equal(nb_netplay_stats_get(play).lost_tick, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_NETPLAY_LOST), 1);
    assert_int_equal(nb_netplay_destroy(play), NB_OK);
    assert_int_equal(nb_netplay_destroy(other), NB_OK);
    rig_close(&r), rig_close(&far);
}
