// SPDX-License-Identifier: MIT
// Random games with random rewinds: at every kept tick the state is again what it was, down to incarnations; simulated
// again with the same inputs it goes the same way, and whoever copies by versions sees it all.

#include "frame/history/history_fixture.h"

#define TICKS_KEPT 4096 // a power of two above what the histories here keep

typedef struct run {
    game g;
    mirror mirror;
    fixture fresh; // loads what the game saves
    uint64_t random, newest;
    bool is_corrected[TICKS_KEPT]; // was changed from outside, which no replay does
    uint64_t inputs[TICKS_KEPT], hashes[TICKS_KEPT], deep_hashes[TICKS_KEPT];
    uint16_t caches[512];
    uint64_t lives[512];
} run;

static uint64_t pick(run *r, uint64_t count) { return test_random(&r->random) % count; }

static nb_history_input input_of(const nb_input_event *event) { return (nb_history_input){.commands = {event, 1}}; }

static void set_input(run *r, uint64_t tick, uint64_t input) {
    nb_input_event event = {.timestamp_ns = input, .kind = NB_INPUT_COMMAND};
    nb_history_input given = input_of(&event);
    assert_int_equal(nb_history_input_set(r->g.history, tick, &given), NB_OK);
    r->inputs[tick % TICKS_KEPT] = input;
}

static uint64_t get_input(run *r, uint64_t tick) {
    nb_history_input input;
    assert_int_equal(nb_history_input_get(r->g.history, tick, &input), NB_OK);
    assert_int_equal(input.events.count, 0);
    assert_int_equal(input.commands.count, 1);
    assert_int_equal(input.commands.events[0].timestamp_ns, r->inputs[tick % TICKS_KEPT]);
    return input.commands.events[0].timestamp_ns;
}

static void note(run *r, uint64_t tick) {
    r->hashes[tick % TICKS_KEPT] = game_hash(&r->g);
    r->deep_hashes[tick % TICKS_KEPT] = game_deep_hash(&r->g);
}

// Something local for each life, written between ticks.
static void write_caches(run *r) {
    fixture *f = &r->g.f;
    NB_STORE_EACH_ROW(row, f->world, f->units) {
        nb_entity_ref ref;
        assert_int_equal(nb_store_ref(f->world, nb_store_entity(f->world, f->units, row), &ref), NB_OK);
        *NB_STORE_ROW_WRITE(f->world, f->units, CACHE, uint16_t, row) = (uint16_t)(ref.incarnation * 7 + 1);
    }
}

static void keep_lives(run *r) {
    fixture *f = &r->g.f;
    memset(r->lives, 0, sizeof r->lives);
    NB_STORE_EACH_ROW(row, f->world, f->units) {
        nb_entity_ref ref;
        assert_int_equal(nb_store_ref(f->world, nb_store_entity(f->world, f->units, row), &ref), NB_OK);
        r->lives[row] = ref.incarnation;
        r->caches[row] = *NB_STORE_ROW(f->world, f->units, CACHE, uint16_t, row);
    }
}

// A row that is still the same life has what it had; any other has nothing.
static void check_lives(run *r) {
    fixture *f = &r->g.f;
    NB_STORE_EACH_ROW(row, f->world, f->units) {
        nb_entity_ref ref;
        assert_int_equal(nb_store_ref(f->world, nb_store_entity(f->world, f->units, row), &ref), NB_OK);
        uint16_t expected = r->lives[row] == ref.incarnation ? r->caches[row] : 0;
        assert_int_equal(*NB_STORE_ROW(f->world, f->units, CACHE, uint16_t, row), expected);
    }
}

// The hash that is kept from block to block is that of the same state in a world that has never been anything else.
static void check_fresh(run *r) {
    saved bytes = fixture_save(&r->g.f, NB_SAVE_FILE);
    assert_int_equal(nb_store_load(r->fresh.world, bytes.bytes, bytes.size_bytes), NB_OK);
    assert_int_equal(nb_store_hash(r->fresh.world), nb_store_hash(r->g.f.world));
    free(bytes.bytes);
}

static void go_on(run *r) {
    for (uint64_t i = pick(r, 20) + 1; i > 0; --i) {
        r->newest += 1;
        set_input(r, r->newest, test_random(&r->random));
        game_step(&r->g, r->newest, get_input(r, r->newest));
        note(r, r->newest);
        r->is_corrected[r->newest % TICKS_KEPT] = false;
        if (pick(r, 4) == 0) write_caches(r);
    }
}

// What is not saved is gone after a rewind, wherever it was written.
static void scribble(run *r) {
    game *g = &r->g;
    nb_entity entity;
    g->board[pick(r, BOARD_BYTES)] ^= 1;
    list_change(&g->first, &r->random);
    if (pick(r, 2) == 0) nb_store_spawn(g->f.world, g->f.units, &entity);
    if (nb_store_row_count(g->f.world, g->f.units) > 3) {
        NB_STORE_ROW_WRITE(g->f.world, g->f.units, POSITION, vec3, 1)->z += 1.0f;
        nb_store_despawn(g->f.world, nb_store_entity(g->f.world, g->f.units, 2));
    }
    if (pick(r, 2) == 0) game_hash(g);
    if (pick(r, 2) == 0) game_tick(g, r->newest + 1, r->random);
}

static void rewind_to(run *r, uint64_t tick) {
    keep_lives(r);
    uint64_t local = r->g.local = (uint32_t)r->random;
    assert_int_equal(nb_history_rewind(r->g.history, tick), NB_OK);
    check_lives(r);
    assert_true(nb_store_is_valid(r->g.f.world));
    assert_int_equal(game_deep_hash(&r->g), r->deep_hashes[tick % TICKS_KEPT]);
    if (pick(r, 2) == 0) mirror_follow(&r->mirror, &r->g.f);
    assert_int_equal(game_hash(&r->g), r->hashes[tick % TICKS_KEPT]);
    assert_int_equal(r->g.local, local);
}

static void replay(run *r, uint64_t tick, bool is_same) {
    bool has_other = !is_same;
    uint64_t last = r->newest;
    if (!is_same) last = tick + pick(r, last - tick + 1);
    for (uint64_t next = tick + 1; next <= last; ++next) {
        if (has_other && pick(r, 3) == 0) set_input(r, next, test_random(&r->random));
        game_step(&r->g, next, get_input(r, next));
        is_same = is_same && !r->is_corrected[next % TICKS_KEPT];
        if (is_same) assert_int_equal(game_hash(&r->g), r->hashes[next % TICKS_KEPT]);
        r->is_corrected[next % TICKS_KEPT] = false;
        note(r, next); // incarnations are new ones
    }
    r->newest = last;
}

static void round_trip(run *r) {
    nb_history_stats stats = nb_history_stats_get(r->g.history);
    assert_int_equal(stats.tick_newest, r->newest);
    uint64_t depth = stats.tick_newest - stats.tick_oldest;
    if (pick(r, 3) == 0) scribble(r);
    uint64_t tick = r->newest - pick(r, depth + 1);
    rewind_to(r, tick);
    while (pick(r, 3) == 0) rewind_to(r, tick = stats.tick_oldest + pick(r, depth + 1)); // back and forth
    if (pick(r, 8) == 0) nb_history_confirm(r->g.history, tick - pick(r, tick - stats.tick_oldest + 1));
    replay(r, tick, pick(r, 2) == 0);
    if (pick(r, 8) == 0) check_fresh(r);
    if (pick(r, 4) == 0) mirror_follow(&r->mirror, &r->g.f);
}

// A correction: the newest tick's state becomes another, and is saved as that tick's.
static void correct(run *r) {
    game *g = &r->g;
    if (nb_store_row_count(g->f.world, g->f.units) > 1) {
        *NB_STORE_ROW_WRITE(g->f.world, g->f.units, HEALTH, uint32_t, 1) = (uint32_t)test_random(&r->random);
        nb_store_despawn(g->f.world, nb_store_entity(g->f.world, g->f.units, 0));
    }
    g->board[7] += 1;
    r->is_corrected[r->newest % TICKS_KEPT] = true;
    nb_result result = nb_history_save(g->history, r->newest);
    assert_true(result == NB_OK || result == NB_FULL);
    note(r, r->newest);
}

// Adds to the numbers of what became full.
static void play(uint64_t seed, uint64_t rounds, nb_history_desc desc, nb_history_stats *sum) {
    static run r;
    memset(&r, 0, sizeof r);
    r.random = seed;
    game_open(&r.g, (uint32_t)(60 + pick(&r, 200)), desc);
    r.fresh = fixture_plain(r.g.f.unit_count_max);
    mirror_open(&r.mirror, &r.g.f);
    r.newest = pick(&r, 1000);
    for (uint64_t i = pick(&r, 60); i > 0; --i) unit_spawn(&r.g.f, (uint32_t)i % 50);
    assert_int_equal(nb_history_save(r.g.history, r.newest), NB_OK);
    note(&r, r.newest);
    for (uint64_t round = 0; round < rounds; ++round) {
        go_on(&r);
        if (pick(&r, 8) == 0) correct(&r);
        round_trip(&r);
    }
    nb_history_stats stats = nb_history_stats_get(r.g.history);
    sum->fallen_count += stats.fallen_count;
    sum->full_count += stats.full_count;
    sum->confirmed_count += stats.confirmed_count;
    mirror_close(&r.mirror);
    nb_store_destroy(r.fresh.world);
    game_close(&r.g);
}

TEST(random_rewinds_bring_back_what_was) {
    uint64_t seed = test_seed(__func__);
    nb_history_stats sum = {0};
    uint64_t runs = test_size(12, 60, 1000);
    for (uint64_t i = 0; i < runs; ++i) {
        // Large, with few images, small enough that ticks fall off, so small that some do not fit.
        static const size_t sizes[] = {NB_HISTORY_BYTES_DEFAULT, 300 << 10, 64 << 10, 4800};
        nb_history_desc desc = {.tick_count_max = i % 4 == 3 ? 10 : 100,
                                .event_count_max = 1,
                                .command_count_max = 1,
                                .bytes_max = sizes[i / 2 % 4]};
        play(seed + i, test_size(200, 500, 2000), desc, &sum);
    }
    assert_true(sum.fallen_count > 0 && sum.full_count > 0 && sum.confirmed_count > 0);
}
