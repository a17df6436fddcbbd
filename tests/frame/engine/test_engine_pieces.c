// SPDX-License-Identifier: MIT
// What the engine does with snapshots, timelines, budget and services: published, reclaimed, adapted and stopped with
// the frames.

#include "frame/engine/engine_fixture.h"

#include "nebula/random.h"

#define LIMIT_NS ((uint64_t)10000000000)

// --- snapshots ---

typedef struct scene {
    uint64_t cells[64]; // all the same number: a copy that was torn shows
    uint32_t region;
    nb_snapshots *snapshots;
    const nb_snapshot *kept;
    uint64_t merged, mistakes;
    bool has_seen_early;
} scene;

static nb_result paint(const nb_context *context, void *user) {
    scene *s = user;
    for (uint32_t i = 0; i < 64; ++i) s->cells[i] = context->tick->index + 1;
    if (context->snapshot != NULL) s->has_seen_early = true; // that of the last frame is not this one's
    return NB_OK;
}

static nb_result view(const nb_context *context, void *user) {
    const scene *s = user;
    uint64_t *out = nb_output_add(context, sizeof *out);
    if (out == NULL || context->snapshot == NULL) return NB_ERR_MEMORY;
    const uint64_t *cells = nb_snapshot_region(context->snapshot, s->region, NULL);
    if (cells == NULL) return NB_ERR_STALE;
    for (uint32_t i = 1; i < 64; ++i) {
        if (cells[i] != cells[0]) return NB_ERR_STALE;
    }
    *out = cells[0];
    return context->snapshot->info.frame == context->frame_index && cells[0] == context->snapshot->info.tick
               ? NB_OK
               : NB_ERR_RANGE;
}

static nb_result compare(const nb_context *context, void *user, const nb_output_list *outputs) {
    scene *s = user;
    ++s->merged;
    if (*(const uint64_t *)nb_output_list_next(outputs, NULL, NULL) != context->snapshot->info.tick) ++s->mistakes;
    return NB_OK;
}

static void open_scene(rig *r, scene *s, uint32_t workers) {
    rig_open(r, workers);
    memset(s, 0, sizeof *s);
    s->snapshots = nb_engine_snapshots(r->engine);
    assert_non_null(s->snapshots);
    assert_ptr_equal(nb_engine_snapshots(r->engine), s->snapshots);
    nb_snapshot_region_desc region = {.name = "cells", .base = s->cells, .size_bytes = sizeof s->cells};
    assert_int_equal(nb_snapshots_region_add(s->snapshots, &region, &s->region), NB_OK);
    attach(r, (nb_module_desc){
                  .name = "scene", .tick = paint, .parallel = view, .merge = compare, .job_count = 3, .user = s});
}

TEST(jobs_read_the_snapshot_of_their_frame) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        rig r;
        scene s;
        open_scene(&r, &s, workers);
        run_ticks(&r, 50);
        assert_int_equal(s.merged, 150);
        assert_int_equal(s.mistakes, 0);
        assert_false(s.has_seen_early);
        assert_int_equal(rig_stats(&r).failure_count, 0);
        assert_int_equal(nb_snapshots_stats_get(s.snapshots).publish_count, 50);
        assert_int_equal(nb_snapshots_stats_get(s.snapshots).pin_count, 0);
        for (uint32_t i = 0; i < TEST_LOG_ITEM_MAX; ++i) assert_int_equal(r.log.counts[i].value, 0);
        rig_close(&r);
    }
}

TEST(held_snapshots_stay_and_frames_go_on) {
    rig r;
    scene s;
    open_scene(&r, &s, 1);
    run_ticks(&r, 1);
    const nb_snapshot *held[8];
    uint32_t count = 0;
    // Until every slot is held: then publications are left out, and jobs see the last one there was.
    while (count < 8 && nb_snapshots_stats_get(s.snapshots).skip_count == 0) {
        held[count] = nb_snapshots_acquire(s.snapshots);
        assert_non_null(held[count++]);
        nb_engine_run_ticks(r.engine, 1);
    }
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t *cells = nb_snapshot_region(held[i], s.region, NULL);
        assert_int_equal(cells[0], i + 1);
        assert_int_equal(cells[63], i + 1);
    }
    assert_int_equal(nb_engine_destroy(r.engine), NB_BUSY);
    for (uint32_t i = 0; i < count; ++i) nb_snapshot_release(held[i]);
    rig_close(&r);
}

// --- timelines ---

static void note_end(void *object, void *user) {
    (void)object;
    ++*(uint32_t *)user;
}

TEST(retired_things_are_reclaimed_after_their_frame) {
    rig r;
    rig_open(&r, 0);
    run_ticks(&r, 2);
    uint32_t ended = 0;
    nb_timeline *epochs = nb_engine_epochs(r.engine);
    assert_non_null(epochs);
    assert_int_equal(nb_timeline_value(epochs), 2);
    assert_int_equal(nb_timeline_retire(epochs, 4, NULL, note_end, &ended), NB_OK);
    run_ticks(&r, 2);
    assert_int_equal(nb_timeline_value(epochs), 4);
    assert_int_equal(ended, 0); // reached with the end of this frame, reclaimed with the start of the next
    run_ticks(&r, 1);
    assert_int_equal(ended, 1);
    assert_int_equal(nb_timeline_retire(epochs, 6, NULL, note_end, &ended), NB_OK);
    run_ticks(&r, 1);
    rig_close(&r);
    assert_int_equal(ended, 2);
}

// --- budget ---

typedef struct load {
    uint32_t level;
    uint64_t random;
} load;

static nb_result work_hard(const nb_context *context, void *user) {
    load *l = user;
    l->level = context->quality_level;
    nb_random random = nb_random_make(context->seed, context->frame_index, 1);
    l->random = nb_random_u64(random, 0);
    uint64_t end_ns = nbi_clock_now_ns() + 200000;
    while (nbi_clock_now_ns() < end_ns) nbi_cpu_relax();
    return NB_OK;
}

TEST(quality_follows_the_frame_time_where_asked) {
    for (uint32_t adapts = 0; adapts < 2; ++adapts) {
        rig r;
        nb_engine_desc desc = rig_desc(0);
        desc.adapts_budget = adapts != 0;
        desc.budget.level_count = 3;
        desc.budget.target_ns = 100000; // half of what the module takes, at least
        desc.seed = 77;
        rig_open_desc(&r, desc);
        load l = {0};
        attach(&r, (nb_module_desc){.name = "load", .frame = work_hard, .user = &l});
        run_ticks(&r, 60);
        assert_int_equal(l.level, adapts ? 0 : 2);
        assert_int_equal(nb_budget_level(nb_engine_budget(r.engine)), adapts ? 0 : 2);
        nb_random random = nb_random_make(77, 59, 1);
        assert_true(l.random == nb_random_u64(random, 0));
        rig_close(&r);
    }
}

// --- services ---

static nb_result serve(nb_service *service, void *user) {
    uint64_t message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) {
        nbi_atomic_fetch_add_seq_cst_u64(user, message);
    }
    return NB_OK;
}

TEST(services_are_stopped_with_the_engine) {
    rig r;
    rig_open(&r, 1);
    nb_atomic_u64 sum = {0};
    nb_service *service = NULL;
    nb_service_desc desc = {.name = "sums", .run = serve, .user = &sum};
    assert_int_equal(nb_service_start(nb_engine_services(r.engine), &desc, &service), NB_OK);
    for (uint64_t i = 1; i <= 10; ++i) {
        assert_int_equal(nb_service_send(service, &i), NB_OK);
        run_ticks(&r, 1);
    }
    rig_close(&r); // what was accepted is still served
    assert_int_equal(sum.value, 55);
}

// --- the desc that is read back ---

TEST(desc_that_is_read_back_has_no_field_left_to_a_default) {
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(NULL, &engine), NB_OK);
    const nb_engine_desc *desc = nb_engine_desc_get(engine);
    assert_int_equal(desc->loop.tick_rate.num, 60);
    assert_int_equal(desc->loop.tick_rate.den, 1);
    assert_true(desc->loop.frame_ns_max != 0 && desc->loop.tick_count_max != 0 && desc->loop.gap_ns != 0);
    assert_true(desc->scheduler_desc.worker_count != 0 && desc->scheduler_desc.task_count_max != 0);
    assert_int_equal(desc->budget.target_ns, 16666667);
    assert_true(desc->budget.level_count != 0 && desc->budget.window_frames != 0);
    assert_true(desc->world.table_count_max != 0 && desc->snapshots.slot_count != 0);
    assert_true(desc->input.event_count_max != 0 && desc->async.job_count_max != 0 && desc->history.bytes_max != 0);
    assert_true(desc->stage_bytes_max == NB_STAGE_BYTES_MAX_DEFAULT && desc->shutdown_ns == NB_SHUTDOWN_NS_DEFAULT);
    // An engine made of it is the same one.
    nb_engine_desc copy = *desc;
    copy.labels = copy.scheduler_desc.labels = NULL;
    copy.scheduler_desc.arenas = NULL;
    nb_engine *other = NULL;
    assert_int_equal(nb_engine_create(&copy, &other), NB_OK);
    assert_int_equal(nb_engine_desc_get(other)->scheduler_desc.worker_count, desc->scheduler_desc.worker_count);
    assert_int_equal(nb_engine_destroy(other), NB_OK);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

TEST(desc_that_is_read_back_says_that_there_are_no_workers) {
    nb_engine_desc desc = {.scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}, .loop = {.pace_rate = {30, 1}}};
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    assert_int_equal(nb_engine_desc_get(engine)->scheduler_desc.worker_count, NB_WORKER_COUNT_NONE);
    assert_int_equal(nb_engine_desc_get(engine)->budget.target_ns, 33333333);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}
