// SPDX-License-Identifier: MIT
// Stages grow from reserved pages: a handler gets the room it needs, up to a limit at which it fails by name.

#include "frame/engine/engine_fixture.h"
#include "support/faults.h"

#define ROW_COUNT_MAX 100000u

enum { VALUE, COLUMN_COUNT };
static const nb_column_desc columns[COLUMN_COUNT] = {{.name = "value", .size_bytes = sizeof(uint64_t)}};

typedef struct quarry {
    rig r;
    nb_store *world;
    nb_table rocks;
} quarry;

typedef struct digger {
    quarry *quarry;
    uint32_t wanted_count; // rows to stage in each tick
    uint32_t staged_count; // in the newest tick
    nb_result returns;
} digger;

static nb_result dig(const nb_context *context, void *user) {
    digger *d = user;
    nb_store_stage *stage = nb_context_stage(context, 0);
    d->staged_count = 0;
    for (uint32_t i = 0; i < d->wanted_count; ++i) {
        nb_staged staged = {0};
        if (stage == NULL || nb_store_stage_spawn(stage, d->quarry->rocks, &staged) != NB_OK) continue;
        *NB_STORE_STAGED_WRITE(stage, staged, VALUE, uint64_t) = i;
        ++d->staged_count;
    }
    return d->returns;
}

static void quarry_open(quarry *q, size_t stage_bytes_max) {
    memset(q, 0, sizeof *q);
    nb_engine_desc desc = rig_desc(0);
    desc.stage_bytes_max = stage_bytes_max;
    rig_open_desc(&q->r, desc);
    q->world = nb_engine_world(q->r.engine);
    nb_table_desc rocks = {
        .name = "rocks", .row_count_max = ROW_COUNT_MAX, .columns = columns, .column_count = COLUMN_COUNT};
    assert_int_equal(nb_store_table_add(q->world, &rocks, &q->rocks), NB_OK);
}

static void quarry_close(quarry *q) {
    assert_true(nb_store_is_valid(q->world));
    rig_close(&q->r);
}

static uint32_t rock_count(const quarry *q) { return nb_store_row_count(q->world, q->rocks); }

TEST(a_stage_grows_to_what_its_handler_needs) {
    quarry q;
    quarry_open(&q, 0);
    digger d = {.quarry = &q, .wanted_count = 40000};
    attach(&q.r, (nb_module_desc){.name = "digger", .tick = dig, .user = &d});
    run_ticks(&q.r, 2);
    assert_int_equal(rock_count(&q), 80000);
    assert_int_equal(rig_stats(&q.r).failure_count, 0);
    const uint64_t *values = NB_STORE_ROWS(q.world, q.rocks, VALUE, uint64_t);
    for (uint32_t row = 0; row < 80000; ++row) assert_int_equal(values[row], row % 40000);
    quarry_close(&q);
}

TEST(memory_of_a_grown_stage_is_asked_for_once) {
    quarry q;
    quarry_open(&q, 0);
    digger d = {.quarry = &q, .wanted_count = 5000};
    attach(&q.r, (nb_module_desc){.name = "digger", .tick = dig, .user = &d});
    run_ticks(&q.r, 1);
    os.pages.call_count.value = 0;
    run_ticks(&q.r, 10);
    assert_int_equal(os.pages.call_count.value, 0);
    assert_int_equal(rock_count(&q), 55000);
    quarry_close(&q);
}

TEST(a_handler_that_needs_more_fails_and_leaves_nothing) {
    quarry q;
    quarry_open(&q, 65536);
    digger greedy = {.quarry = &q, .wanted_count = 20000}, modest = {.quarry = &q, .wanted_count = 10};
    attach(&q.r, (nb_module_desc){.name = "greedy", .tick = dig, .user = &greedy});
    attach(&q.r, (nb_module_desc){.name = "modest", .tick = dig, .user = &modest});
    nb_result result = nb_engine_frame_delta(q.r.engine, 20000000);
    assert_int_equal(result, NB_ERR_MEMORY);
    assert_int_equal(rock_count(&q), 10);
    assert_int_equal(rig_stats(&q.r).failure_count, 1);
    greedy.wanted_count = 100; // and its next tick is as good as any
    run_ticks(&q.r, 1);
    assert_int_equal(rock_count(&q), 120);
    assert_int_equal(rig_stats(&q.r).failure_count, 1);
    quarry_close(&q);
}

// As many rows as in a stage that does not grow, whatever the size of a page.
TEST(the_limit_is_exact) {
    static const size_t limits[] = {4096, 5000, 16384, 16385, 40000};
    static unsigned char memory[40000];
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
        quarry q;
        quarry_open(&q, limits[i]);
        digger d = {.quarry = &q, .wanted_count = 2000};
        attach(&q.r, (nb_module_desc){.name = "digger", .tick = dig, .user = &d});
        nb_engine_frame_delta(q.r.engine, 20000000);
        assert_int_equal(rock_count(&q), 0);
        nb_store_stage stage;
        nb_store_stage_desc fixed = {.memory = memory, .size_bytes = limits[i]};
        assert_int_equal(nb_store_stage_init(&stage, q.world, &fixed), NB_OK);
        uint32_t count = 0;
        while (nb_store_stage_spawn(&stage, q.rocks, NULL) == NB_OK) ++count;
        assert_int_equal(d.staged_count, count);
        quarry_close(&q);
    }
}

TEST(pages_that_the_os_refuses_fail_one_tick) {
    for (uint64_t call = 1; call < 8; ++call) {
        quarry q;
        quarry_open(&q, 0);
        digger d = {.quarry = &q, .wanted_count = 20000};
        attach(&q.r, (nb_module_desc){.name = "digger", .tick = dig, .user = &d});
        run_ticks(&q.r, 0);
        os.pages.call_count.value = 0;
        os.pages.fail_at = call;
        nb_result result = nb_engine_frame_delta(q.r.engine, 20000000);
        bool has_failed = os.pages.call_count.value >= call;
        os_reset();
        assert_int_equal(rock_count(&q), has_failed ? 0 : 20000);
        assert_int_equal(result, has_failed ? NB_ERR_MEMORY : NB_OK);
        run_ticks(&q.r, 1);
        assert_int_equal(rock_count(&q), has_failed ? 20000 : 40000);
        quarry_close(&q);
    }
}

TEST(a_failed_handler_drops_what_grew) {
    quarry q;
    quarry_open(&q, 0);
    digger d = {.quarry = &q, .wanted_count = 5000, .returns = NB_ERR_RANGE};
    attach(&q.r, (nb_module_desc){.name = "digger", .tick = dig, .user = &d});
    run_ticks(&q.r, 3);
    assert_int_equal(rock_count(&q), 0);
    d.returns = NB_OK;
    run_ticks(&q.r, 1);
    assert_int_equal(rock_count(&q), 5000);
    quarry_close(&q);
}
