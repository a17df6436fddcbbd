// SPDX-License-Identifier: MIT
// History, situation by situation: what comes back, how far it reaches, and what it does when it cannot.

#include "frame/history/history_fixture.h"

typedef struct plain {
    nb_states *states;
    nb_history *history;
    unsigned char bytes[8192];
} plain;

static void plain_open(plain *p, nb_history_desc desc) {
    memset(p, 0, sizeof *p);
    nb_provider_desc state = {.name = "bytes", .data = p->bytes, .size_bytes = sizeof p->bytes};
    assert_int_equal(nb_states_create(NULL, &p->states), NB_OK);
    assert_int_equal(nb_states_add(p->states, &state, NULL), NB_OK);
    desc.states = p->states;
    assert_int_equal(nb_history_create(&desc, &p->history), NB_OK);
}

static void plain_close(plain *p) {
    nb_history_destroy(p->history);
    nb_states_destroy(p->states);
}

static nb_history_desc small(uint32_t tick_count_max, size_t change_bytes) {
    return (nb_history_desc){
        .bytes_max = change_bytes, .tick_count_max = tick_count_max, .event_count_max = 2, .command_count_max = 2};
}

static plain p; // of the case that runs

// Saves the tick with this first byte.
static nb_result save_with(uint64_t tick, unsigned value) {
    p.bytes[0] = (unsigned char)value;
    return nb_history_save(p.history, tick);
}

// --- ticks ---

TEST(rewind_brings_back_every_kept_tick) {
    plain_open(&p, (nb_history_desc){0});
    for (uint64_t tick = 0; tick <= 100; ++tick) {
        p.bytes[tick * 80] = (unsigned char)(tick + 1);
        p.bytes[8191] = (unsigned char)tick;
        assert_int_equal(nb_history_save(p.history, tick), NB_OK);
    }
    for (uint64_t tick = 100; tick-- > 0;) {
        assert_int_equal(nb_history_rewind(p.history, tick), NB_OK);
        assert_int_equal(p.bytes[8191], tick);
        assert_int_equal(p.bytes[tick * 80], tick + 1);
        assert_int_equal(p.bytes[(tick + 1) * 80], 0);
    }
    assert_int_equal(nb_history_stats_get(p.history).rewind_count, 100);
    assert_int_equal(nb_history_stats_get(p.history).tick_newest, 0);
    plain_close(&p);
}

TEST(what_was_not_saved_is_gone) {
    plain_open(&p, (nb_history_desc){0});
    p.bytes[5] = 1;
    assert_int_equal(nb_history_save(p.history, 7), NB_OK);
    p.bytes[5] = 2;
    p.bytes[8000] = 3;
    assert_int_equal(nb_history_rewind(p.history, 7), NB_OK);
    assert_int_equal(p.bytes[5], 1);
    assert_int_equal(p.bytes[8000], 0);
    plain_close(&p);
}

TEST(rewind_goes_forward_until_the_next_save) {
    plain_open(&p, (nb_history_desc){0});
    for (uint64_t tick = 0; tick <= 10; ++tick) {
        assert_int_equal(save_with(tick, (unsigned)tick), NB_OK);
    }
    assert_int_equal(nb_history_rewind(p.history, 2), NB_OK);
    assert_int_equal(nb_history_stats_get(p.history).tick_last, 10);
    assert_int_equal(nb_history_rewind(p.history, 9), NB_OK);
    assert_int_equal(p.bytes[0], 9);
    assert_int_equal(nb_history_rewind(p.history, 3), NB_OK);
    assert_int_equal(save_with(4, 77), NB_OK);
    assert_int_equal(nb_history_stats_get(p.history).tick_last, 4);
    assert_int_equal(nb_history_rewind(p.history, 5), NB_ERR_RANGE);
    assert_int_equal(p.bytes[0], 77);
    assert_int_equal(nb_history_rewind(p.history, 3), NB_OK);
    assert_int_equal(p.bytes[0], 3);
    assert_int_equal(nb_history_rewind(p.history, 4), NB_OK);
    assert_int_equal(p.bytes[0], 77);
    plain_close(&p);
}

TEST(correction_belongs_to_its_tick) {
    plain_open(&p, (nb_history_desc){0});
    for (uint64_t tick = 1; tick <= 3; ++tick) {
        assert_int_equal(save_with(tick, (unsigned)tick), NB_OK);
    }
    assert_int_equal(nb_history_rewind(p.history, 2), NB_OK);
    p.bytes[0] = 20;
    p.bytes[1] = 21;
    assert_int_equal(nb_history_save(p.history, 2), NB_OK);
    assert_int_equal(save_with(3, 30), NB_OK);
    assert_int_equal(nb_history_rewind(p.history, 1), NB_OK);
    assert_int_equal(p.bytes[0], 1);
    assert_int_equal(p.bytes[1], 0);
    assert_int_equal(nb_history_rewind(p.history, 2), NB_OK);
    assert_int_equal(p.bytes[0], 20);
    assert_int_equal(p.bytes[1], 21);
    // Of the oldest tick there is nothing before: the correction is the tick.
    assert_int_equal(nb_history_confirm(p.history, 2), NB_OK);
    assert_int_equal(save_with(2, 22), NB_OK);
    assert_int_equal(save_with(3, 31), NB_OK);
    assert_int_equal(nb_history_rewind(p.history, 1), NB_ERR_RANGE);
    assert_int_equal(nb_history_rewind(p.history, 2), NB_OK);
    assert_int_equal(p.bytes[0], 22);
    plain_close(&p);
}

// The tick's own record has to go while its correction is written: then there is nothing before the tick.
TEST(correction_that_pushes_its_tick_out_is_the_oldest) {
    plain_open(&p, small(10, 4096));
    assert_int_equal(nb_history_save(p.history, 0), NB_OK);
    memset(p.bytes, 1, 3000);
    assert_int_equal(nb_history_save(p.history, 1), NB_OK);
    memset(p.bytes + 4000, 2, 3000);
    assert_int_equal(nb_history_save(p.history, 1), NB_OK);
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.tick_oldest, 1);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(stats.fallen_count, 1);
    assert_int_equal(stats.full_count, 0);
    memset(p.bytes, 3, 3000);
    assert_int_equal(nb_history_save(p.history, 2), NB_OK);
    assert_int_equal(nb_history_rewind(p.history, 0), NB_ERR_RANGE);
    assert_int_equal(nb_history_rewind(p.history, 1), NB_OK);
    assert_int_equal(p.bytes[2999], 1);
    assert_int_equal(p.bytes[6999], 2);
    plain_close(&p);
}

TEST(small_change_takes_little_room) {
    plain_open(&p, (nb_history_desc){0});
    nb_history_save(p.history, 0);
    nb_history_save(p.history, 1);
    assert_int_equal(nb_history_stats_get(p.history).changed_bytes, 0);
    assert_int_equal(nb_history_stats_get(p.history).used_bytes, 0);
    p.bytes[1000] = 1;
    nb_history_save(p.history, 2);
    assert_in_range(nb_history_stats_get(p.history).changed_bytes, 1, 256);
    assert_in_range(nb_history_stats_get(p.history).used_bytes, 1, 300);
    plain_close(&p);
}

// --- how far it reaches ---

// Against copies of every tick, with changes of all sizes in a ring that they fill many times over.
TEST(full_ring_lets_the_oldest_go) {
    static unsigned char copies[256][8192];
    plain_open(&p, small(200, 20000));
    uint64_t random = test_seed(__func__);
    uint64_t ticks = test_size(3000, 20000, 200000);
    assert_int_equal(nb_history_save(p.history, 0), NB_OK);
    for (uint64_t tick = 1; tick <= ticks; ++tick) {
        size_t size_bytes = test_random(&random) % (tick % 20 == 0 ? 4000 : 300);
        size_t at = test_random(&random) % (sizeof p.bytes - size_bytes);
        for (size_t i = 0; i < size_bytes; ++i) p.bytes[at + i] = (unsigned char)test_random(&random);
        assert_int_equal(nb_history_save(p.history, tick), NB_OK);
        memcpy(copies[tick % 256], p.bytes, sizeof p.bytes);
        nb_history_stats stats = nb_history_stats_get(p.history);
        assert_true(stats.used_bytes <= stats.change_bytes_max);
        assert_int_equal(stats.change_bytes_max, 20000);
        if (tick % 7 != 0) continue;
        uint64_t back = stats.tick_oldest + test_random(&random) % (tick - stats.tick_oldest + 1);
        assert_int_equal(nb_history_rewind(p.history, back), NB_OK);
        if (back != 0) assert_memory_equal(p.bytes, copies[back % 256], sizeof p.bytes);
        assert_int_equal(nb_history_rewind(p.history, tick), NB_OK);
        assert_memory_equal(p.bytes, copies[tick % 256], sizeof p.bytes);
    }
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.fallen_count, stats.tick_oldest);
    assert_true(stats.tick_oldest > 0);
    assert_int_equal(nb_history_rewind(p.history, stats.tick_oldest - 1), NB_ERR_RANGE);
    assert_int_equal(nb_history_stats_get(p.history).refuse_count, 1);
    assert_memory_equal(p.bytes, copies[ticks % 256], sizeof p.bytes);
    plain_close(&p);
}

TEST(count_of_ticks_is_a_bound_too) {
    plain_open(&p, small(4, 20000));
    for (uint64_t tick = 0; tick <= 20; ++tick) {
        assert_int_equal(save_with(tick, (unsigned)tick), NB_OK);
    }
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.tick_oldest, 16);
    assert_int_equal(stats.fallen_count, 16);
    assert_int_equal(nb_history_rewind(p.history, 15), NB_ERR_RANGE);
    assert_int_equal(nb_history_rewind(p.history, 16), NB_OK);
    assert_int_equal(p.bytes[0], 16);
    plain_close(&p);
}

TEST(tick_that_does_not_fit_begins_anew) {
    test_log log = {0};
    nb_history_desc desc = small(10, 6000);
    desc.hooks = test_hooks(&log, NULL);
    plain_open(&p, desc);
    for (uint64_t tick = 0; tick <= 5; ++tick) {
        assert_int_equal(save_with(tick, (unsigned)tick), NB_OK);
    }
    nb_history_input input = {0};
    assert_int_equal(nb_history_input_set(p.history, 6, &input), NB_OK);
    memset(p.bytes, 9, sizeof p.bytes);
    assert_int_equal(nb_history_save(p.history, 6), NB_FULL);
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.full_count, 1);
    assert_int_equal(stats.changed_bytes, sizeof p.bytes);
    assert_int_equal(stats.tick_oldest, 6);
    assert_int_equal(stats.tick_newest, 6);
    assert_int_equal(stats.used_bytes, 0);
    assert_int_equal(nb_history_rewind(p.history, 5), NB_ERR_RANGE);
    p.bytes[3] = 1;
    assert_int_equal(nb_history_save(p.history, 7), NB_OK);
    assert_int_equal(nb_history_rewind(p.history, 6), NB_OK);
    for (size_t i = 0; i < sizeof p.bytes; ++i) assert_int_equal(p.bytes[i], 9);
    memset(p.bytes, 10, sizeof p.bytes);
    assert_int_equal(nb_history_save(p.history, 7), NB_FULL);
    assert_int_equal(test_log_count(&log, NB_ITEM_HISTORY_FULL), 1);
    plain_close(&p);
}

TEST(confirmed_ticks_make_room) {
    plain_open(&p, (nb_history_desc){0});
    for (uint64_t tick = 0; tick <= 10; ++tick) {
        p.bytes[0] = (unsigned char)tick;
        nb_history_save(p.history, tick);
    }
    size_t used_bytes = nb_history_stats_get(p.history).used_bytes;
    assert_int_equal(nb_history_confirm(p.history, 4), NB_OK);
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.tick_oldest, 4);
    assert_int_equal(stats.confirmed_count, 4);
    assert_int_equal(stats.fallen_count, 0);
    assert_true(stats.used_bytes < used_bytes);
    assert_int_equal(nb_history_confirm(p.history, 2), NB_OK); // came late
    assert_int_equal(nb_history_stats_get(p.history).tick_oldest, 4);
    assert_int_equal(nb_history_confirm(p.history, 11), NB_ERR_RANGE);
    assert_int_equal(nb_history_rewind(p.history, 3), NB_ERR_RANGE);
    assert_int_equal(nb_history_rewind(p.history, 4), NB_OK);
    assert_int_equal(nb_history_confirm(p.history, 5), NB_ERR_RANGE); // not simulated again yet
    assert_int_equal(nb_history_rewind(p.history, 10), NB_OK);
    assert_int_equal(nb_history_confirm(p.history, 10), NB_OK);
    assert_int_equal(nb_history_stats_get(p.history).used_bytes, 0);
    assert_int_equal(nb_history_stats_get(p.history).refuse_count, 3);
    plain_close(&p);
}

TEST(left_out_ticks_begin_anew) {
    plain_open(&p, (nb_history_desc){0});
    for (uint64_t tick = 5; tick <= 8; ++tick) nb_history_save(p.history, tick);
    assert_int_equal(save_with(10, 1), NB_OK);
    nb_history_stats stats = nb_history_stats_get(p.history);
    assert_int_equal(stats.restart_count, 1);
    assert_int_equal(stats.tick_oldest, 10);
    assert_int_equal(nb_history_rewind(p.history, 8), NB_ERR_RANGE);
    assert_int_equal(nb_history_reset(p.history), NB_OK);
    assert_false(nb_history_stats_get(p.history).has_begun);
    assert_int_equal(nb_history_rewind(p.history, 10), NB_ERR_RANGE);
    assert_int_equal(save_with(3, 2), NB_OK); // earlier is fine now
    assert_int_equal(nb_history_stats_get(p.history).restart_count, 1);
    p.bytes[0] = 3;
    assert_int_equal(nb_history_rewind(p.history, 3), NB_OK);
    assert_int_equal(p.bytes[0], 2);
    plain_close(&p);
}

// --- inputs ---

TEST(inputs_stay_through_rewinds_and_can_be_replaced) {
    plain_open(&p, small(8, 20000));
    nb_input_event events[3] = {{.code = 1}, {.code = 2}, {.code = 3}};
    nb_history_input one = {.events = {events, 1}}, two = {.events = {events, 2}, .commands = {events + 1, 2}}, got;
    nb_history_input many = {.events = {events, 3}}, many_commands = {.commands = {events, 3}};
    assert_int_equal(nb_history_input_set(p.history, 1, &one), NB_ERR_RANGE); // nothing has begun
    nb_history_save(p.history, 0);
    assert_int_equal(nb_history_input_set(p.history, 0, &one), NB_ERR_RANGE);
    assert_int_equal(nb_history_input_set(p.history, 2, &one), NB_ERR_RANGE);
    assert_int_equal(nb_history_input_set(p.history, UINT64_MAX, &one), NB_ERR_RANGE);
    assert_int_equal(nb_history_input_set(p.history, 1, &many), NB_FULL);
    assert_int_equal(nb_history_input_set(p.history, 1, &many_commands), NB_FULL);
    assert_int_equal(nb_history_input_get(p.history, 1, &got), NB_EMPTY);
    for (uint64_t tick = 1; tick <= 20; ++tick) {
        events[0].code = (uint32_t)tick;
        assert_int_equal(nb_history_input_set(p.history, tick, tick % 2 == 0 ? &two : &one), NB_OK);
        assert_int_equal(save_with(tick, (unsigned)tick), NB_OK);
    }
    assert_int_equal(nb_history_input_get(p.history, 12, &got), NB_ERR_RANGE); // the oldest one's led to it
    assert_int_equal(nb_history_rewind(p.history, 13), NB_OK);
    events[0].code = 99;
    assert_int_equal(nb_history_input_set(p.history, 17, &two), NB_OK);
    for (uint64_t tick = 14; tick <= 20; ++tick) {
        assert_int_equal(nb_history_input_get(p.history, tick, &got), NB_OK);
        assert_int_equal(got.events.count, tick % 2 == 0 || tick == 17 ? 2 : 1);
        assert_int_equal(got.commands.count, tick % 2 == 0 || tick == 17 ? 2 : 0);
        assert_int_equal(got.events.events[0].code, tick == 17 ? 99 : tick);
        if (got.commands.count != 0) assert_int_equal(got.commands.events[1].code, 3);
        assert_int_equal(nb_history_input_set(p.history, tick, &got), NB_OK); // onto itself
        assert_int_equal(nb_history_save(p.history, tick), NB_OK);
    }
    assert_int_equal(nb_history_input_get(p.history, 21, &got), NB_EMPTY);
    assert_int_equal(nb_history_input_get(p.history, 22, &got), NB_ERR_RANGE);
    assert_int_equal(nb_history_reset(p.history), NB_OK);
    nb_history_save(p.history, 13);
    assert_int_equal(nb_history_input_get(p.history, 14, &got), NB_EMPTY);
    plain_close(&p);
}

// --- providers ---

TEST(providers_that_come_or_go_begin_anew) {
    plain_open(&p, (nb_history_desc){0});
    uint32_t more = 1;
    nb_provider handle;
    nb_provider_desc desc = {.name = "more", .data = &more, .size_bytes = sizeof more};
    nb_history_save(p.history, 0);
    nb_history_save(p.history, 1);
    assert_int_equal(nb_states_add(p.states, &desc, &handle), NB_OK);
    assert_false(nb_history_stats_get(p.history).has_begun);
    assert_int_equal(nb_history_rewind(p.history, 0), NB_ERR_RANGE);
    assert_int_equal(nb_history_stats_get(p.history).restart_count, 1);
    nb_history_save(p.history, 2);
    more = 2;
    nb_history_save(p.history, 3);
    assert_int_equal(nb_history_rewind(p.history, 2), NB_OK);
    assert_int_equal(more, 1);
    // Its memory may be gone with it: nothing of it is touched again.
    assert_int_equal(nb_states_remove(p.states, handle), NB_OK);
    more = 5;
    assert_int_equal(nb_history_save(p.history, 3), NB_OK);
    assert_int_equal(nb_history_stats_get(p.history).restart_count, 2);
    assert_int_equal(nb_history_stats_get(p.history).tick_oldest, 3);
    assert_int_equal(nb_history_rewind(p.history, 3), NB_OK);
    assert_int_equal(more, 5);
    // As many as before, but others.
    assert_int_equal(nb_states_add(p.states, &desc, &handle), NB_OK);
    nb_history_save(p.history, 4);
    assert_int_equal(nb_states_remove(p.states, handle), NB_OK);
    desc.name = "other";
    assert_int_equal(nb_states_add(p.states, &desc, &handle), NB_OK);
    nb_history_input input;
    assert_int_equal(nb_history_input_get(p.history, 5, &input), NB_ERR_RANGE);
    assert_int_equal(nb_history_confirm(p.history, 4), NB_ERR_RANGE);
    assert_int_equal(nb_history_stats_get(p.history).restart_count, 4);
    plain_close(&p);
}

TEST(list_comes_back_at_its_size) {
    static list l;
    memset(&l, 0, sizeof l);
    nb_states *states = NULL;
    nb_history *history = NULL;
    nb_provider_desc desc = {.name = "list", .save = list_save, .load = list_load, .user = &l};
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    assert_int_equal(nb_states_add(states, &desc, NULL), NB_OK);
    nb_history_desc history_desc = {.states = states};
    assert_int_equal(nb_history_create(&history_desc, &history), NB_OK);
    static const size_t sizes[] = {0, 1, 2000, 7, 0, 3000, 300, 299, 301, 0};
    for (uint32_t i = 0; i < 10; ++i) {
        l.size_bytes = sizes[i];
        memset(l.bytes, 0, sizeof l.bytes);
        memset(l.bytes, (int)i + 1, l.size_bytes);
        assert_int_equal(nb_history_save(history, i), NB_OK);
    }
    uint64_t random = test_seed(__func__);
    for (uint32_t i = 0; i < 200; ++i) {
        uint32_t tick = (uint32_t)(test_random(&random) % 10);
        assert_int_equal(nb_history_rewind(history, tick), NB_OK);
        assert_int_equal(l.size_bytes, sizes[tick]);
        for (size_t j = 0; j < l.size_bytes; ++j) assert_int_equal(l.bytes[j], tick + 1);
    }
    // What is as it should be is not loaded again.
    uint32_t load_count = l.load_count;
    nb_history_rewind(history, nb_history_stats_get(history).tick_newest);
    assert_int_equal(l.load_count, load_count);
    nb_history_destroy(history);
    nb_states_destroy(states);
}

TEST(refused_load_puts_everything_back) {
    static game g;
    test_log log = {0};
    uint64_t deep_hashes[32];
    game_open(&g, 100, (nb_history_desc){.hooks = test_hooks(&log, NULL)});
    for (uint64_t tick = 0; tick <= 30; ++tick) {
        g.first.size_bytes = tick + 1;
        g.first.bytes[0] = g.second.bytes[0] = (unsigned char)tick;
        g.second.size_bytes = 40 - tick;
        game_step(&g, tick, tick * 17);
        deep_hashes[tick] = game_deep_hash(&g);
    }
    game_tick(&g, 31, 5); // not saved, and there afterwards all the same
    g.first.bytes[0] ^= 85;
    g.first.size_bytes = 17;
    uint64_t hash = game_hash(&g), deep_hash = game_deep_hash(&g);
    g.second.refuse_count = 1;
    assert_int_equal(nb_history_rewind(g.history, 10), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&log, NB_ITEM_HISTORY_LOAD), 1);
    assert_int_equal(game_deep_hash(&g), deep_hash);
    assert_int_equal(game_hash(&g), hash);
    assert_true(nb_store_is_valid(g.f.world));
    nb_history_stats stats = nb_history_stats_get(g.history);
    assert_int_equal(stats.tick_newest, 30);
    assert_int_equal(stats.rewind_count, 0);
    // It goes on as if nothing had been.
    game_step(&g, 31, 6);
    deep_hashes[31] = game_deep_hash(&g);
    for (uint64_t tick = 32; tick-- > 0;) {
        assert_int_equal(nb_history_rewind(g.history, tick), NB_OK);
        assert_int_equal(game_deep_hash(&g), deep_hashes[tick]);
        assert_true(nb_store_is_valid(g.f.world));
    }
    game_close(&g);
}

static size_t greedy_save(void *user, void *bytes, size_t capacity_bytes) {
    (void)user, (void)bytes;
    return capacity_bytes + 1;
}

TEST(provider_that_is_never_content_is_refused) {
    test_log log = {0};
    plain_open(&p, (nb_history_desc){.hooks = test_hooks(&log, NULL)});
    nb_provider_desc desc = {.name = "greedy", .save = greedy_save, .load = list_load};
    assert_int_equal(nb_states_add(p.states, &desc, NULL), NB_OK);
    assert_int_equal(nb_history_save(p.history, 0), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_HISTORY_LOAD), 1);
    assert_false(nb_history_stats_get(p.history).has_begun);
    plain_close(&p);
}

// --- images ---

typedef struct dense {
    unsigned char bytes[16384];
    nb_states *states;
    nb_history *history;
} dense;

static void dense_open(dense *d, size_t bytes_max) {
    memset(d, 0, sizeof *d);
    assert_int_equal(nb_states_create(NULL, &d->states), NB_OK);
    nb_provider_desc state = {.name = "bytes", .data = d->bytes, .size_bytes = sizeof d->bytes};
    assert_int_equal(nb_states_add(d->states, &state, NULL), NB_OK);
    nb_history_desc desc = {.states = d->states,
                            .bytes_max = bytes_max,
                            .tick_count_max = 1000,
                            .event_count_max = 1,
                            .command_count_max = 1};
    assert_int_equal(nb_history_create(&desc, &d->history), NB_OK);
    assert_int_equal(nb_history_save(d->history, 0), NB_OK);
}

static void dense_close(dense *d) {
    nb_history_destroy(d->history);
    nb_states_destroy(d->states);
}

static uint64_t dense_step(dense *d, uint64_t tick, bool is_storm) {
    for (size_t i = 0; i < (is_storm ? sizeof d->bytes : 1); ++i) d->bytes[i] = (unsigned char)(tick * 7 + i);
    assert_int_equal(nb_history_save(d->history, tick), NB_OK);
    return nb_history_stats_get(d->history).changed_bytes;
}

// Room for some twenty of them: a hundred times as many go through it, back and forth.
TEST(images_are_used_again) {
    dense d;
    dense_open(&d, (size_t)512 << 10);
    uint64_t random = test_seed(__func__), tick = 0, least = UINT64_MAX;
    for (uint32_t round = 0; round < 500; ++round) {
        for (uint32_t i = 0; i < 5; ++i) dense_step(&d, ++tick, true);
        nb_history_stats stats = nb_history_stats_get(d.history);
        assert_true(stats.used_bytes <= stats.change_bytes_max);
        uint64_t depth = tick - stats.tick_oldest;
        if (round > 10 && depth < least) least = depth;
        uint64_t back = tick - test_random(&random) % (depth < 3 ? depth + 1 : 4);
        assert_int_equal(nb_history_rewind(d.history, back), NB_OK);
        for (size_t i = 0; i < sizeof d.bytes; ++i) assert_int_equal(d.bytes[i], (unsigned char)(back * 7 + i));
        tick = back;
    }
    assert_true(least >= 15); // of 384 KiB in images of 16
    dense_close(&d);
}

TEST(images_are_for_what_changes_much) {
    dense d;
    dense_open(&d, (size_t)16 << 20);
    uint64_t tick = 0;
    for (uint32_t i = 0; i < 10; ++i) assert_true(dense_step(&d, ++tick, true) > 16000);
    // In the calm that follows it is compared again, at the latest after sixteen more.
    for (uint32_t i = 0; i < 20; ++i) dense_step(&d, ++tick, false);
    for (uint32_t i = 0; i < 10; ++i) assert_true(dense_step(&d, ++tick, false) <= 64);
    for (uint64_t back = tick + 1; back-- > 0;) {
        assert_int_equal(nb_history_rewind(d.history, back), NB_OK);
        if (back != 0) assert_int_equal(d.bytes[0], (unsigned char)(back * 7));
    }
    assert_int_equal(nb_history_rewind(d.history, tick), NB_OK);
    assert_int_equal(d.bytes[0], (unsigned char)(tick * 7));
    dense_close(&d);
}
