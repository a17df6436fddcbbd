// SPDX-License-Identifier: MIT
// Staged changes: what they hold, in which order they come out, and that threads have no part in it.

#include "frame/store/store_fixture.h"

#define STAGE_BYTES 4096

static test_log stage_log; // of the fixture that has one

typedef struct stage_memory {
    nb_store_stage stage;
    unsigned char bytes[STAGE_BYTES + 1];
} stage_memory;

// The memory starts at an odd address: the stage aligns what it needs.
static nb_store_stage *stage_open(stage_memory *m, fixture *f, uint32_t handler, uint32_t job) {
    nb_store_stage_desc desc = {.handler = handler, .job = job, .memory = m->bytes + 1, .size_bytes = STAGE_BYTES};
    assert_int_equal(nb_store_stage_init(&m->stage, f->world, &desc), NB_OK);
    return &m->stage;
}

// The only one of its test.
static nb_store_stage *stage_of(fixture *f) {
    static stage_memory m;
    return stage_open(&m, f, 1, 0);
}

static nb_staged stage_unit(nb_store_stage *stage, const fixture *f, uint32_t health) {
    nb_staged staged = {0};
    assert_int_equal(nb_store_stage_spawn(stage, f->units, &staged), NB_OK);
    *NB_STORE_STAGED_WRITE(stage, staged, HEALTH, uint32_t) = health;
    return staged;
}

TEST(staged_row_comes_with_its_values_when_applied) {
    fixture f = fixture_plain(10);
    stage_memory m;
    nb_store_stage *stage = stage_open(&m, &f, 1, 0);
    nb_staged staged = stage_unit(stage, &f, 42);
    nb_entity entity = {0};
    *NB_STORE_STAGED_WRITE(stage, staged, POSITION, vec3) = (vec3){1, 2, 3};
    assert_int_equal((uintptr_t)NB_STORE_STAGED_WRITE(stage, staged, NOTE, padded) % NB_ALIGNOF(padded), 0);
    NB_STORE_STAGED_WRITE(stage, staged, NOTE, padded)->number = 5;
    assert_int_equal(nb_store_row_count(f.world, f.units), 0);
    assert_int_equal(nb_store_stage_entity(stage, staged, &entity), NB_EMPTY);
    assert_int_equal(nb_store_tick_begin(f.world), NB_OK);
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_OK);
    assert_int_equal(nb_store_tick_end(f.world), NB_OK);
    assert_int_equal(nb_store_stage_entity(stage, staged, &entity), NB_OK);
    assert_int_equal(unit_health(&f, entity), 42);
    assert_int_equal(NB_STORE_ROW(f.world, f.units, NOTE, padded, 0)->number, 5);
    assert_int_equal(*NB_STORE_ROW(f.world, f.units, CACHE, uint16_t, 0), 0);
    // A new row has no way behind it.
    assert_true(NB_STORE_ROWS_PREVIOUS(f.world, f.units, POSITION, vec3)[0].z == 3.0f);
    // Nor has a local one that is applied between ticks.
    assert_int_equal(nb_store_stage_reset(stage), NB_OK);
    assert_int_equal(nb_store_stage_spawn(stage, f.sparks, &staged), NB_OK);
    NB_STORE_STAGED_WRITE(stage, staged, SPARK_PLACE, vec3)->x = 7.0f;
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_OK);
    assert_true(NB_STORE_ROWS_PREVIOUS(f.world, f.sparks, SPARK_PLACE, vec3)[0].x == 7.0f);
    assert_true(nb_store_is_valid(f.world));
    nb_store_destroy(f.world);
}

TEST(staged_values_are_aligned_for_any_type_of_their_size) {
    static const nb_column_desc columns[] = {{.name = "byte", .size_bytes = 1},
                                             {.name = "line", .size_bytes = 64},
                                             {.name = "odd", .size_bytes = 3},
                                             {.name = "pair", .size_bytes = 16}};
    nb_table_desc desc = {.name = "mixed", .columns = columns, .column_count = 4};
    nb_store *world = NULL;
    nb_table table;
    static unsigned char memory[1024];
    assert_int_equal(nb_store_create(NULL, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_OK);
    for (uint32_t shift = 0; shift < 64; ++shift) {
        nb_store_stage stage;
        nb_staged staged;
        nb_store_stage_desc stage_desc = {.memory = memory + shift, .size_bytes = sizeof memory - shift};
        assert_int_equal(nb_store_stage_init(&stage, world, &stage_desc), NB_OK);
        while (nb_store_stage_spawn(&stage, table, &staged) == NB_OK) {
            assert_int_equal((uintptr_t)nb_store_stage_write(&stage, staged, 1, 64) % 64, 0);
            assert_int_equal((uintptr_t)nb_store_stage_write(&stage, staged, 3, 16) % 16, 0);
            for (uint32_t i = 0; i < 4; ++i)
                memset(nb_store_stage_write(&stage, staged, i, columns[i].size_bytes), 1, 1);
        }
        assert_in_range(stage.command_count, 4, 1024 / 84);
    }
    nb_store_destroy(world);
}

TEST(stages_are_applied_by_handler_job_and_sequence) {
    fixture f = fixture_plain(10);
    static stage_memory m[4];
    nb_store_stage *stages[4] = {stage_open(&m[0], &f, 2, 0), stage_open(&m[1], &f, 1, 7), stage_open(&m[2], &f, 1, 2),
                                 stage_open(&m[3], &f, 0, UINT32_MAX)};
    stage_unit(stages[0], &f, 6);
    stage_unit(stages[1], &f, 4);
    stage_unit(stages[1], &f, 5);
    stage_unit(stages[2], &f, 2);
    stage_unit(stages[2], &f, 3);
    stage_unit(stages[3], &f, 1);
    assert_int_equal(nb_store_apply(f.world, stages, 4), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), 6);
    NB_STORE_EACH_ROW(row, f.world, f.units) {
        assert_int_equal(*NB_STORE_ROW(f.world, f.units, HEALTH, uint32_t, row), row + 1);
    }
    nb_store_destroy(f.world);
}

TEST(linked_rows_have_each_others_entity_wherever_they_end) {
    static const nb_column_desc columns[] = {
        {.name = "tag", .size_bytes = 4},
        {.name = "parent", .size_bytes = sizeof(nb_entity), .flags = NB_COLUMN_INTERPOLATE}};
    nb_table_desc desc = {.name = "nodes", .row_count_max = 3, .columns = columns, .column_count = 2};
    nb_store *world = NULL;
    nb_table table;
    static unsigned char memory[512];
    nb_store_stage stage, *stages[] = {&stage};
    nb_store_stage_desc stage_desc = {.memory = memory, .size_bytes = sizeof memory};
    nb_staged a, b, late;
    nb_entity old, entity_a, entity_b;
    assert_int_equal(nb_store_create(NULL, &world), NB_OK);
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_OK);
    assert_int_equal(nb_store_spawn(world, table, &old), NB_OK);
    assert_int_equal(nb_store_stage_init(&stage, world, &stage_desc), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, table, &a), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, table, &b), NB_OK);
    assert_int_equal(nb_store_stage_despawn(&stage, old), NB_OK); // b moves to row 0
    assert_int_equal(nb_store_stage_link(&stage, a, 1, b), NB_OK);
    assert_int_equal(nb_store_stage_link(&stage, b, 1, a), NB_OK);
    for (int i = 0; i < 2; ++i) assert_int_equal(nb_store_stage_spawn(&stage, table, &late), NB_OK); // one too many
    NB_STORE_STAGED_WRITE(&stage, a, 0, uint32_t)[0] = 5;
    assert_int_equal(nb_store_apply(world, stages, 1), NB_FULL);
    assert_int_equal(nb_store_stage_entity(&stage, a, &entity_a), NB_OK);
    assert_int_equal(nb_store_stage_entity(&stage, b, &entity_b), NB_OK);
    assert_int_equal(nb_store_stage_entity(&stage, late, &old), NB_FULL);
    const nb_entity *parents = NB_STORE_ROWS(world, table, 1, nb_entity);
    const nb_entity *before = NB_STORE_ROWS_PREVIOUS(world, table, 1, nb_entity);
    assert_int_equal(nb_store_entity(world, table, 0).value, entity_b.value);
    assert_int_equal(parents[0].value, entity_a.value);
    assert_int_equal(parents[1].value, entity_b.value);
    assert_int_equal(parents[2].value, 0);
    assert_int_equal(before[0].value, entity_a.value);
    assert_int_equal(*NB_STORE_ROW(world, table, 0, uint32_t, 1), 5);
    // What a full table made nothing of leaves the value as it was written.
    assert_int_equal(nb_store_stage_reset(&stage), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, table, &late), NB_OK);
    assert_int_equal(nb_store_stage_despawn(&stage, entity_a), NB_OK);
    assert_int_equal(nb_store_stage_spawn(&stage, table, &a), NB_OK);
    NB_STORE_STAGED_WRITE(&stage, a, 1, nb_entity)->value = 99;
    assert_int_equal(nb_store_stage_link(&stage, a, 1, late), NB_OK);
    assert_int_equal(nb_store_stage_link(&stage, late, 1, a), NB_OK); // and gets none
    assert_int_equal(nb_store_apply(world, stages, 1), NB_FULL);
    assert_int_equal(parents[2].value, 99);
    assert_true(nb_store_is_valid(world));
    nb_store_destroy(world);
}

TEST(despawn_staged_twice_is_counted_not_repeated) {
    fixture f = fixture_plain(10);
    static stage_memory m[2];
    nb_entity a = unit_spawn(&f, 1), b = unit_spawn(&f, 2);
    nb_store_stage *stages[2] = {stage_open(&m[0], &f, 1, 0), stage_open(&m[1], &f, 2, 0)};
    assert_int_equal(nb_store_stage_despawn(stages[0], a), NB_OK);
    assert_int_equal(nb_store_stage_despawn(stages[1], a), NB_OK);
    stage_unit(stages[1], &f, 3); // takes the slot of a, under another generation
    assert_int_equal(nb_store_stage_despawn(stages[1], a), NB_OK);
    assert_int_equal(nb_store_apply(f.world, stages, 2), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), 2);
    assert_int_equal(unit_health(&f, b), 2);
    assert_int_equal(nb_store_stats_get(f.world).stale_count, 2);
    nb_store_destroy(f.world);
}

TEST(full_stage_refuses_and_keeps_what_it_has) {
    fixture f = fixture_logged(1000, &stage_log);
    nb_store_stage *stage = stage_of(&f);
    uint32_t count = 0;
    nb_staged staged = {0x5A}, last = {0};
    nb_entity entity;
    while (nb_store_stage_spawn(stage, f.units, &staged) == NB_OK) {
        last = staged;
        *NB_STORE_STAGED_WRITE(stage, staged, HEALTH, uint32_t) = ++count;
    }
    assert_in_range(count, 20, STAGE_BYTES / 34); // 34 bytes of values each
    assert_int_equal(staged.value, last.value);
    assert_int_equal(nb_store_stage_spawn(stage, f.units, NULL), NB_FULL);
    assert_int_equal(test_log_count(&stage_log, NB_ITEM_STORE_STAGE), 1);
    assert_int_equal(stage->full_count, 2);
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), count);
    assert_int_equal(nb_store_stage_entity(stage, last, &entity), NB_OK);
    assert_int_equal(unit_health(&f, entity), count);
    nb_store_destroy(f.world);
}

TEST(full_table_skips_staged_rows_and_applies_the_rest) {
    fixture f = fixture_plain(2);
    nb_entity a = unit_spawn(&f, 1), entity = {0x5A};
    nb_store_stage *stage = stage_of(&f);
    stage_unit(stage, &f, 2);
    nb_staged refused = stage_unit(stage, &f, 3);
    assert_int_equal(nb_store_stage_despawn(stage, a), NB_OK);
    nb_staged taken = stage_unit(stage, &f, 4);
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_FULL);
    assert_int_equal(nb_store_stage_entity(stage, refused, &entity), NB_FULL);
    assert_int_equal(entity.value, 0x5A);
    assert_int_equal(nb_store_stage_entity(stage, taken, &entity), NB_OK);
    assert_int_equal(unit_health(&f, entity), 4);
    assert_int_equal(nb_store_row_count(f.world, f.units), 2);
    assert_int_equal(nb_store_stats_get(f.world).full_count, 1);
    nb_store_destroy(f.world);
}

TEST(reset_stage_is_empty_and_what_it_held_is_stale) {
    fixture f = fixture_logged(10, &stage_log);
    nb_store_stage *stage = stage_of(&f);
    nb_staged old = stage_unit(stage, &f, 1);
    nb_entity entity;
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_OK);
    assert_int_equal(nb_store_stage_spawn(stage, f.units, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_ERR_MISUSE);
    assert_null(NB_STORE_STAGED_WRITE(stage, old, HEALTH, uint32_t));
    assert_int_equal(nb_store_stage_reset(stage), NB_OK);
    nb_staged young = stage_unit(stage, &f, 2);
    assert_int_not_equal(young.value, old.value);
    assert_null(NB_STORE_STAGED_WRITE(stage, old, HEALTH, uint32_t));
    assert_int_equal(nb_store_stage_entity(stage, old, &entity), NB_ERR_STALE);
    assert_int_equal(nb_store_apply(f.world, &stage, 1), NB_OK);
    assert_int_equal(nb_store_row_count(f.world, f.units), 2);
    nb_store_destroy(f.world);
}

TEST(two_stages_of_one_job_are_refused_before_anything_changes) {
    fixture f = fixture_logged(10, &stage_log);
    static stage_memory m[3];
    nb_store_stage *stages[3] = {stage_open(&m[0], &f, 1, 3), stage_open(&m[1], &f, 1, 1), stage_open(&m[2], &f, 1, 3)};
    for (int i = 0; i < 3; ++i) stage_unit(stages[i], &f, 1);
    assert_int_equal(nb_store_apply(f.world, stages, 3), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&stage_log, NB_ITEM_STORE_STAGE), 1);
    assert_int_equal(nb_store_row_count(f.world, f.units), 0);
    nb_store_destroy(f.world);
}

// --- threads ---

// Jobs of a tick: each stages spawns and despawns that depend on its number and the tick alone.
#define JOB_COUNT 24

typedef struct tick_run {
    fixture f;
    nb_atomic_u32 next;
    uint32_t tick, thread_count;
    uint32_t shuffle; // jobs are taken in another order
    nb_store_stage stages[JOB_COUNT];
    unsigned char memory[JOB_COUNT][STAGE_BYTES];
} tick_run;

static void run_job(tick_run *run, uint32_t job) {
    nb_store_stage *stage = &run->stages[job];
    uint64_t random = (uint64_t)run->tick << 32 | job;
    uint32_t count = nb_store_row_count(run->f.world, run->f.units);
    for (uint32_t i = 0; i < 12; ++i) {
        nb_staged staged;
        uint64_t dice = test_random(&random);
        if (count != 0 && dice % 2 == 0) {
            nb_store_stage_despawn(stage, nb_store_entity(run->f.world, run->f.units, (uint32_t)(dice >> 32) % count));
        } else if (nb_store_stage_spawn(stage, run->f.units, &staged) == NB_OK) {
            *NB_STORE_STAGED_WRITE(stage, staged, HEALTH, uint32_t) = (uint32_t)dice;
        }
    }
    for (uint32_t row = job; row < count; row += JOB_COUNT) {
        *NB_STORE_ROW_WRITE(run->f.world, run->f.units, HEALTH, uint32_t, row) += job + run->tick;
    }
}

static void run_jobs(void *user, uint32_t index) {
    tick_run *run = user;
    (void)index;
    for (;;) {
        uint32_t job = nbi_atomic_fetch_add_seq_cst_u32(&run->next, 1);
        if (job >= JOB_COUNT) return;
        run_job(run, (job * 7 + run->shuffle) % JOB_COUNT); // 7 and 24 have no common factor: each job once
    }
}

static void run_tick(tick_run *run) {
    nb_store_stage *stages[JOB_COUNT];
    test_thread threads[8];
    nbi_atomic_store_release_u32(&run->next, 0);
    assert_int_equal(nb_store_tick_begin(run->f.world), NB_OK);
    for (uint32_t i = 0; i < JOB_COUNT; ++i) {
        uint32_t handler = i / 10, job = i % 10;
        nb_store_stage_desc desc = {
            .handler = handler, .job = job, .memory = run->memory[i], .size_bytes = STAGE_BYTES};
        assert_int_equal(nb_store_stage_init(&run->stages[i], run->f.world, &desc), NB_OK);
        stages[(i * 5 + run->shuffle) % JOB_COUNT] = &run->stages[i];
    }
    if (run->thread_count == 0) run_jobs(run, 0);
    test_threads_start(threads, run->thread_count, run_jobs, run);
    test_threads_join(threads, run->thread_count);
    nb_result result = nb_store_apply(run->f.world, stages, JOB_COUNT);
    assert_true(result == NB_OK || result == NB_FULL);
    assert_int_equal(nb_store_tick_end(run->f.world), NB_OK);
}

// Keeps the hash of every tick in `hashes`. The table of 300 rows is full in some ticks.
static void run_world(uint32_t thread_count, uint32_t shuffle, uint64_t *hashes, uint32_t tick_count) {
    static tick_run run;
    memset(&run, 0, sizeof run);
    run.f = fixture_plain(300);
    run.thread_count = thread_count;
    run.shuffle = shuffle;
    for (run.tick = 0; run.tick < tick_count; ++run.tick) {
        run_tick(&run);
        hashes[run.tick] = nb_store_hash(run.f.world);
    }
    assert_true(nb_store_is_valid(run.f.world));
    assert_true(nb_store_stats_get(run.f.world).full_count > 0);
    nb_store_destroy(run.f.world);
}

#define TICKS_MAX 2000

TEST(any_number_of_threads_gives_the_same_hash_in_every_tick) {
    static uint64_t expected[TICKS_MAX], got[TICKS_MAX];
    static const uint32_t threads[] = {0, 1, 2, 3, 4, 8};
    uint32_t tick_count = (uint32_t)test_size(60, 300, TICKS_MAX);
    run_world(0, 0, expected, tick_count);
    for (uint32_t i = 0; i < sizeof threads / sizeof threads[0]; ++i) {
        run_world(threads[i], 5 * i, got, tick_count);
        assert_memory_equal(got, expected, tick_count * sizeof *got);
    }
}
