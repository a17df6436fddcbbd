// SPDX-License-Identifier: MIT
// The checksum of the demo's frames: the same for any workers, right in every frame, and wrong where a job reads what
// is not whole.

#include "frame/engine/engine_fixture.h"

#include "demo/jobs/checksum.h"
#include "demo/shell/status.h"

#define FRAMES 40u

typedef struct ground {
    rig r;
    planet land;
    checksum sums;
} ground;

static void ground_open(ground *g, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.is_headless = true;
    rig_open_desc(&g->r, desc);
    g->land = (planet){.seed = 1};
    assert_int_equal(planet_attach(&g->land, g->r.engine), NB_OK);
    assert_int_equal(planet_populate(&g->land), NB_OK);
    assert_int_equal(checksum_attach(&g->sums, g->r.engine, &g->land), NB_OK);
}

static void ground_close(ground *g) {
    rig_close(&g->r);
    planet_end(&g->land);
}

// The checksums of all frames, hashed in their order.
static uint64_t run_frames(ground *g) {
    uint64_t run = 0;
    for (uint32_t i = 0; i < FRAMES; ++i) {
        // Not a whole tick each: frames without one, and with two.
        assert_int_equal(nb_engine_frame_delta(g->r.engine, (i % 3 + 1) * UINT64_C(9000000)), NB_OK);
        run = run * 31 + g->sums.value;
    }
    return run;
}

TEST(every_frame_is_right_and_the_same_for_any_workers) {
    static ground g;
    uint64_t expected = 0;
    for (uint32_t worker_count = 0; worker_count < 4; ++worker_count) {
        ground_open(&g, worker_count);
        uint64_t run = run_frames(&g);
        if (worker_count == 0) expected = run;
        assert_true(run == expected);
        assert_int_equal(g.sums.frame_count, FRAMES);
        assert_int_equal(g.sums.wrong_count, 0);
        assert_int_equal(g.sums.left_count, 0);
        ground_close(&g);
    }
}

// Writes into one row of the snapshot, ahead of the jobs that read it.
static nb_result tear(const nb_context *context, void *user) {
    const planet *land = user;
    const int32_t *x = NB_STORE_VIEW(context->snapshot, land->world, land->creatures, CREATURE_X, int32_t);
    uint32_t row = nb_store_view_row_count(context->snapshot, land->world, land->creatures) - 1;
    if (context->frame_index == 7) ++((int32_t *)(uintptr_t)x)[row];
    return NB_OK;
}

TEST(a_torn_read_makes_the_frame_wrong) {
    static ground g;
    ground_open(&g, 0);
    nb_module_desc module = {.name = "tear", .parallel = tear, .user = &g.land, .priority = 1};
    attach(&g.r, module);
    run_frames(&g);
    assert_int_equal(g.sums.frame_count, FRAMES);
    assert_true(g.sums.wrong_count >= 1);
    ground_close(&g);
}

// The numbers of the status line, on a clock of the test's own.
TEST(the_status_follows_the_engine) {
    static nb_frame_stats frames;
    rig r;
    status s = {0};
    checksum sums = {.value = 77};
    nb_clock_manual manual;
    nb_clock_manual_init(&manual, 0);
    assert_int_equal(nb_frame_stats_init(&frames), NB_OK);
    nb_engine_desc desc = rig_desc(0);
    desc.loop = (nb_loop_desc){.clock = nb_clock_manual_get(&manual), .stats = &frames};
    rig_open_desc(&r, desc);
    for (uint32_t i = 0; i < 120; ++i) {
        assert_int_equal(nb_engine_frame_delta(r.engine, UINT64_C(10000000)), NB_OK);
        status_read(&s, r.engine, &frames, &sums);
    }
    assert_true(s.fps > 99.9 && s.fps < 100.1);
    assert_true(s.ups > 58 && s.ups < 62);
    assert_true(s.alpha >= 0 && s.alpha < 1);
    assert_int_equal(s.checksum, 77);
    assert_true(s.busy_share >= 0 && s.busy_share <= 1);
    assert_int_equal(s.queued_count, 0);
    rig_close(&r);
}
