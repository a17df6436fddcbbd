// SPDX-License-Identifier: MIT
// The demo's animals: the same for any split and order, on the ground, and neither dying out nor exploding.

#include "support/support.h"

#include "demo/game/creatures.h"

#define SEED 1
#define ROWS 600
#define RANGE 300

// Grass land, and an edge between two faces with grass on both sides.
static const creature_home HOME = {3, 357, 1364}, EDGE = {0, 700, 0};

typedef struct herd {
    uint32_t id[ROWS];
    uint8_t face[ROWS];
    int32_t x[ROWS], y[ROWS], z[ROWS], speed_x[ROWS], speed_z[ROWS], energy[ROWS];
    uint16_t heading[ROWS];
    uint8_t is_teleported[ROWS], decision[ROWS];
} herd;

static creature_columns columns_of(herd *h) {
    return (creature_columns){h->id,     h->face,          h->x,       h->y, h->z, h->speed_x, h->speed_z, h->heading,
                              h->energy, h->is_teleported, h->decision};
}

static void herd_spawn_at(herd *h, creature_home home, uint32_t range) {
    memset(h, 0, sizeof *h);
    creature_columns columns = columns_of(h);
    for (uint32_t row = 0; row < ROWS; ++row) creature_spawn(SEED, 0, 1000 + row * 7, home, range, row, &columns);
}

static void herd_spawn(herd *h) { herd_spawn_at(h, HOME, RANGE); }

static void herd_step(herd *h, uint64_t tick, uint32_t first, uint32_t count) {
    creature_columns columns = columns_of(h);
    creatures_step(SEED, tick, &columns, first, count, &columns);
}

TEST(any_split_and_order_gives_the_same_bytes) {
    static herd whole, split;
    uint64_t random = test_seed("any_split_and_order");
    herd_spawn(&whole);
    split = whole;
    for (uint64_t tick = 1; tick < 60; ++tick) {
        herd_step(&whole, tick, 0, ROWS);
        uint32_t cut_1 = (uint32_t)(test_random(&random) % (ROWS + 1)), cut_2 = (uint32_t)(test_random(&random) % ROWS);
        uint32_t low = cut_1 < cut_2 ? cut_1 : cut_2, high = cut_1 < cut_2 ? cut_2 : cut_1;
        herd_step(&split, tick, high, ROWS - high);
        herd_step(&split, tick, 0, low);
        herd_step(&split, tick, low, high - low);
        assert_memory_equal(&whole, &split, sizeof whole);
    }
}

typedef struct crew {
    herd *h;
    uint64_t tick;
    test_gate gate;
} crew;

#define THREADS 4

static void crew_run(void *user, uint32_t index) {
    crew *c = (crew *)user;
    test_gate_pass(&c->gate, THREADS);
    herd_step(c->h, c->tick, index * ROWS / THREADS, ROWS / THREADS);
}

TEST(threads_over_ranges_give_the_same_bytes) {
    static herd whole, split;
    herd_spawn(&whole);
    split = whole;
    for (uint64_t tick = 1; tick < 10; ++tick) {
        crew c = {.h = &split, .tick = tick};
        herd_step(&whole, tick, 0, ROWS);
        test_threads_run(THREADS, crew_run, &c);
        assert_memory_equal(&whole, &split, sizeof whole);
    }
}

// A world moves rows when it removes one: an animal's life must not depend on where it stands in the table.
TEST(an_animals_life_does_not_depend_on_its_row) {
    static herd a, b;
    herd_spawn(&a);
    creature_columns from = columns_of(&a), to = columns_of(&b);
    memset(&b, 0, sizeof b);
    for (uint32_t row = 0; row < ROWS; ++row)
        creature_spawn(SEED, 0, 1000 + (ROWS - 1 - row) * 7, HOME, RANGE, row, &to);
    for (uint64_t tick = 1; tick < 100; ++tick) {
        creatures_step(SEED, tick, &from, 0, ROWS, &from);
        creatures_step(SEED, tick, &to, 0, ROWS, &to);
    }
    for (uint32_t row = 0; row < ROWS; ++row) {
        assert_int_equal(a.x[row], b.x[ROWS - 1 - row]);
        assert_int_equal(a.energy[row], b.energy[ROWS - 1 - row]);
    }
}

TEST(input_stays_as_it_is_where_the_output_is_another) {
    static herd before, in, out;
    herd_spawn(&in);
    before = in;
    creature_columns from = columns_of(&in), to = columns_of(&out);
    memcpy(out.id, in.id, sizeof out.id);
    creatures_step(SEED, 1, &from, 0, ROWS, &to);
    assert_memory_equal(&in, &before, sizeof in);
    herd_step(&in, 1, 0, ROWS);
    assert_memory_equal(&in, &out, sizeof in);
}

static int32_t gap(int32_t a, int32_t b) { return a < b ? b - a : a - b; }

TEST(animals_walk_on_the_ground_and_stay_dry) {
    static herd h, before;
    herd_spawn(&h);
    uint32_t moved = 0, teleports = 0;
    for (uint64_t tick = 1; tick <= 300; ++tick) {
        before = h;
        herd_step(&h, tick, 0, ROWS);
        for (uint32_t row = 0; row < ROWS; ++row) {
            int32_t ground = terrain_height(SEED, h.face[row], terrain_voxel_of(h.x[row]), terrain_voxel_of(h.z[row]));
            assert_int_equal(h.y[row], (ground + 1) * TERRAIN_ONE);
            int32_t old_ground = before.y[row] / TERRAIN_ONE - 1;
            if (!terrain_is_wet(old_ground)) assert_false(terrain_is_wet(ground));
            moved += h.x[row] != before.x[row];
            teleports += h.is_teleported[row];
            if (h.is_teleported[row]) continue;
            // Without a teleport nobody is faster than a walk, or climbs a wall.
            assert_in_range(gap(h.x[row], before.x[row]), 0, TERRAIN_ONE / 16);
            assert_in_range(gap(h.y[row], before.y[row]), 0, 2 * TERRAIN_ONE);
        }
    }
    assert_true(moved > ROWS * 200);
    assert_in_range(teleports, 5, 100); // 22 expected
}

static vec3d place_of(const herd *h, uint32_t row) {
    return sphere_position(h->face[row], (h->x[row] + 0.5) / TERRAIN_ONE, (h->z[row] + 0.5) / TERRAIN_ONE, 0);
}

// Over an edge they go on as they were: in space no step is longer than another, and no way bends.
TEST(animals_walk_on_over_the_edge_of_a_face) {
    static herd h, before;
    herd_spawn_at(&h, EDGE, 24);
    uint32_t crossed = 0;
    for (uint64_t tick = 1; tick <= test_size(600, 3000, 20000); ++tick) {
        before = h;
        herd_step(&h, tick, 0, ROWS);
        for (uint32_t row = 0; row < ROWS; ++row) {
            assert_in_range(h.x[row], 0, TERRAIN_FACE_ONES - 1);
            assert_in_range(h.z[row], 0, TERRAIN_FACE_ONES - 1);
            if (h.face[row] == before.face[row] || h.is_teleported[row]) continue;
            vec3d step = vec3d_sub(place_of(&h, row), place_of(&before, row));
            assert_true(vec3d_length(step) < 0.07);
            // Its speed on the new face leads where the step has led.
            herd next = h;
            next.x[row] += h.speed_x[row], next.z[row] += h.speed_z[row];
            vec3d on = vec3d_sub(place_of(&next, row), place_of(&h, row));
            assert_true(vec3d_dot(step, on) > 0.7 * vec3d_length(step) * vec3d_length(on));
            ++crossed;
        }
    }
    print_message("%u crossings\n", crossed);
    assert_true(crossed > 20);
}

TEST(animals_turn_every_way) {
    static herd h;
    herd_spawn(&h);
    uint32_t quarters[4] = {0};
    for (uint64_t tick = 1; tick <= 200; ++tick) herd_step(&h, tick, 0, ROWS);
    for (uint32_t row = 0; row < ROWS; ++row) ++quarters[(h.speed_x[row] < 0) * 2 + (h.speed_z[row] < 0)];
    for (uint32_t i = 0; i < 4; ++i) assert_in_range(quarters[i], ROWS / 8, ROWS / 2);
}

// What a world does with the decisions: the dead make room for the newly born.
TEST(births_and_deaths_keep_the_herd_alive) {
    static herd h;
    static uint32_t births[ROWS], deaths[ROWS];
    herd_spawn(&h);
    creature_columns columns = columns_of(&h);
    enum { MOST = 200 };
    uint32_t next_id = 100000, count = MOST, born = 0, died = 0;
    // Several lives of 8192 ticks: a herd that shrinks at all would be gone.
    for (uint64_t tick = 1; tick <= test_size(40000, 100000, 300000); ++tick) {
        creatures_step(SEED, tick, &columns, 0, count, &columns);
        uint32_t birth_count = creatures_collect(h.decision, count, CREATURE_BIRTH, births, ROWS);
        uint32_t death_count = creatures_collect(h.decision, count, CREATURE_DEATH, deaths, ROWS);
        for (uint32_t i = 0; i < birth_count && count < MOST; ++i, ++born)
            creature_spawn_young(next_id++, births[i], count++, &columns);
        // From the back, so that the row which fills the hole is alive.
        for (uint32_t i = death_count; i > 0; --i, ++died) {
            uint32_t row = deaths[i - 1], last = --count;
            h.id[row] = h.id[last], h.face[row] = h.face[last], h.x[row] = h.x[last], h.y[row] = h.y[last],
            h.z[row] = h.z[last];
            h.speed_x[row] = h.speed_x[last], h.speed_z[row] = h.speed_z[last], h.energy[row] = h.energy[last];
            h.heading[row] = h.heading[last];
        }
    }
    print_message("%u born, %u died, %u alive\n", born, died, count);
    assert_true(born > 10 && died > 10 && count > MOST / 2);
}

TEST(decisions_become_lists_in_order) {
    const uint8_t decisions[8] = {0, 2, 1, 1, 0, 2, 0, 1};
    uint32_t rows[3] = {9, 9, 9};
    assert_int_equal(creatures_collect(decisions, 8, CREATURE_BIRTH, rows, 3), 3);
    assert_true(rows[0] == 2 && rows[1] == 3 && rows[2] == 7);
    rows[1] = 9;
    assert_int_equal(creatures_collect(decisions, 8, CREATURE_DEATH, rows, 1), 2); // one did not fit
    assert_true(rows[0] == 1 && rows[1] == 9);
}

TEST(the_starving_die) {
    static herd h;
    herd_spawn(&h);
    for (uint32_t row = 0; row < ROWS; ++row) h.energy[row] = 1;
    herd_step(&h, 1, 0, ROWS);
    uint32_t dead = 0;
    for (uint32_t row = 0; row < ROWS; ++row) {
        assert_true((h.energy[row] <= 0) <= (h.decision[row] == CREATURE_DEATH));
        dead += h.decision[row] == CREATURE_DEATH;
    }
    assert_in_range(dead, ROWS * 9 / 10, ROWS); // the others found grass
}

TEST(spawns_are_on_dry_land_where_there_is_some) {
    static herd h;
    herd_spawn(&h);
    for (uint32_t row = 0; row < ROWS; ++row) {
        assert_false(terrain_is_wet(h.y[row] / TERRAIN_ONE - 1));
        assert_int_equal(h.face[row], HOME.face);
        assert_in_range(gap(h.x[row], HOME.x * TERRAIN_ONE), 0, RANGE * TERRAIN_ONE);
        assert_in_range(gap(h.z[row], HOME.z * TERRAIN_ONE), 0, RANGE * TERRAIN_ONE);
        assert_int_equal(h.is_teleported[row], 1);
    }
}
