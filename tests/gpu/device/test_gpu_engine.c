// SPDX-License-Identifier: MIT
// The device in an engine: its places in the frame, recording by jobs, late jobs, and the end in any order.

#include "frame/engine/engine_fixture.h"
#include "gpu/device/gpu_fixture.h"

#define LIMIT_NS UINT64_C(10000000000)

typedef struct gpu_engine {
    rig rig;
    gpu_rig r;
    nb_gpu_pipeline pipeline;
    nb_result record_result;
    uint32_t bucket_count, draw_count;
    uint32_t pass_refused_count; // nb_graph_pass_add that came too late
    bool is_without_pass;
} gpu_engine;

static nb_result draw(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    gpu_engine *e = user;
    nb_gpu_set_pipeline(command, e->pipeline);
    for (uint32_t i = bucket; i < e->draw_count; i += bucket_count) {
        nb_gpu_span span;
        if (nb_gpu_frame_alloc(nb_gpu_command_device(command), 16, 256, &span) != NB_OK) return NB_ERR_MEMORY;
        memset(span.memory, (int)i, span.size_bytes);
        nb_gpu_set_span(command, 0, span);
        nb_gpu_push(command, &i, sizeof i);
        nb_gpu_draw(command, 3 + i, 1, 0, 0);
    }
    return bucket == 0 ? e->record_result : NB_OK;
}

static nb_result add_passes(const nb_context *context, void *user) {
    gpu_engine *e = user;
    (void)context;
    if (nb_gpu_graph(e->r.gpu) == NULL || e->is_without_pass) return NB_OK;
    gpu_pass_add(e->r.gpu, (gpu_pass){.record = draw, .user = e, .bucket_count = e->bucket_count});
    return NB_OK;
}

static void open_as(gpu_engine *e, nb_engine_desc desc, nb_gpu_desc gpu_desc, nb_gpu_null_desc null_desc) {
    memset(e, 0, sizeof *e);
    rig_open_desc(&e->rig, desc);
    gpu_rig_open_as(&e->r, gpu_desc, null_desc);
    nb_gpu_pipeline_desc drawing = gpu_drawing();
    drawing.push_bytes = 4, drawing.uniform_mask = 1;
    e->pipeline = gpu_pipeline(e->r.gpu, drawing);
    e->bucket_count = 16;
    e->draw_count = 64;
    assert_int_equal(nb_gpu_attach(e->r.gpu, e->rig.engine), NB_OK);
    nb_module_desc renderer = {.name = "renderer", .user = e};
    renderer.handlers[NB_PHASE_FRAME_GRAPH] = add_passes;
    attach(&e->rig, renderer);
}

static nb_gpu_desc wide_desc(void) {
    nb_gpu_desc desc = gpu_rig_desc();
    desc.lane_count = 9;
    return desc;
}

static void open_workers(gpu_engine *e, uint32_t worker_count) {
    open_as(e, rig_desc(worker_count), wide_desc(), (nb_gpu_null_desc){.latency_frames = 1});
}

static void run(gpu_engine *e, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(nb_engine_frame_delta(e->rig.engine, 0), NB_OK);
}

static void close_both(gpu_engine *e) {
    gpu_rig_close(&e->r);
    rig_close(&e->rig);
}

// The modules of the device have failed nowhere, whatever the device did.
static void check_engine(gpu_engine *e) {
    nb_engine_stats stats = rig_stats(&e->rig);
    nb_gpu_stats device = gpu_stats(&e->r);
    assert_int_equal(stats.failure_count, 0);
    assert_int_equal(stats.violation_count, 0);
    assert_accounted(&device);
}

// --- the frame ---

TEST(engine_draws_what_other_modules_add) {
    gpu_engine e;
    open_workers(&e, 2);
    // The device's places are around all others.
    nb_module_id order[4];
    assert_int_equal(nb_engine_order_get(e.rig.engine, NB_PHASE_FRAME_GRAPH, order, 4), 2);
    assert_string_equal(nb_engine_module_name(e.rig.engine, order[0]), "renderer");
    assert_string_equal(nb_engine_module_name(e.rig.engine, order[1]), "gpu.record");
    assert_int_equal(nb_gpu_attach(e.r.gpu, e.rig.engine), NB_BUSY);
    run(&e, 10);
    nb_gpu_stats stats = gpu_stats(&e.r);
    assert_int_equal(stats.frame_count, 10);
    assert_int_equal(stats.submit_count, 10);
    assert_int_equal(stats.draw_count, 64);
    assert_int_equal(stats.misuse_count, 0);
    // By hand nothing goes any more.
    assert_int_equal(nb_gpu_frame_begin(e.r.gpu), NB_ERR_MISUSE);
    assert_int_equal(nb_gpu_frame_end(e.r.gpu), NB_ERR_MISUSE);
    check_engine(&e);
    gpu_rig_close(&e.r); // detaches
    assert_int_equal(nb_engine_order_get(e.rig.engine, NB_PHASE_FRAME_GRAPH, order, 4), 1);
    rig_close(&e.rig);
}

static nb_result add_late_pass(const nb_context *context, void *user) {
    gpu_engine *e = user;
    nb_graph_pass pass;
    nb_graph_pass_desc desc = {.name = "late", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    (void)context;
    bool is_first = e->pass_refused_count == 0; // the device has said so just before
    if (is_first) assert_string_equal(e->r.log.last_function, "nb_engine_frame");
    if (is_first) assert_non_null(strstr(e->r.log.last_message, "module \"latecomer\" runs behind \"gpu.record\""));
    if (nb_graph_pass_add(nb_gpu_graph(e->r.gpu), &desc, &pass) != NB_OK) ++e->pass_refused_count;
    return NB_OK;
}

TEST(who_runs_behind_the_device_is_reported) {
    gpu_engine e;
    open_workers(&e, 0);
    static const char *const after[1] = {"gpu.record"};
    nb_module_desc late = {.name = "latecomer", .after = after, .after_count = 1, .user = &e};
    late.handlers[NB_PHASE_FRAME_GRAPH] = add_late_pass;
    attach(&e.rig, late);
    run(&e, 3);
    assert_int_equal(test_log_count(&e.r.log, NB_ITEM_GPU_ORDER), 1);
    assert_int_equal(e.pass_refused_count, 3);
    assert_int_equal(gpu_stats(&e.r).submit_count, 3);
    close_both(&e);
}

static nb_result add_bad_pass(const nb_context *context, void *user) {
    nb_graph *graph = nb_gpu_graph(((gpu_engine *)user)->r.gpu);
    nb_graph_pass_desc pass_desc = {.name = "bloom", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    nb_graph_image_desc image_desc = {.name = "glow", .format = NB_GPU_FORMAT_RGBA8, .width = 8, .height = 8};
    nb_graph_pass pass;
    nb_graph_resource image;
    (void)context;
    if (graph == NULL) return NB_OK;
    assert_int_equal(nb_graph_pass_add(graph, &pass_desc, &pass), NB_OK);
    assert_int_equal(nb_graph_image_add(graph, &image_desc, &image), NB_OK);
    return nb_graph_use(graph, pass, image, NB_GPU_ACCESS_SAMPLED);
}

TEST(mistakes_in_a_frame_are_throttled_and_name_their_object_and_the_frame) {
    gpu_engine e;
    open_workers(&e, 0);
    const test_log *log = &e.r.log;
    e.record_result = NB_ERR_RANGE;
    run(&e, 20);
    assert_int_equal(test_log_count(log, NB_ITEM_GPU_RECORD), 2); // the 1st and 10th time
    assert_string_equal(log->last_function, "nb_engine_frame");
    assert_non_null(strstr(log->last_message, "pass \"main\", bucket 0: NB_ERR_RANGE"));
    assert_non_null(strstr(log->last_message, "(10 times by now, 8 of them not logged)"));
    e.record_result = NB_OK;
    nb_module_desc bad = {.name = "bad", .user = &e};
    bad.handlers[NB_PHASE_FRAME_GRAPH] = add_bad_pass;
    nb_module_id module = attach(&e.rig, bad);
    run(&e, 20);
    assert_int_equal(test_log_count(log, NB_ITEM_GRAPH_UNWRITTEN), 2);
    assert_string_equal(log->last_function, "nb_engine_frame");
    assert_non_null(strstr(log->last_message, "pass 'bloom' reads 'glow', which no pass writes"));
    assert_int_equal(nb_engine_module_detach(e.rig.engine, module), NB_OK);
    run(&e, 3);
    assert_int_equal(nb_gpu_null_fail(e.r.control, NB_GPU_NULL_JUMP, 0), NB_OK);
    run(&e, 1);
    assert_int_equal(test_log_count(log, NB_ITEM_GPU_VALUE), 1);
    assert_int_equal(test_log_count(log, NB_ITEM_GPU_LOST), 1);
    assert_string_equal(log->last_function, "nb_engine_frame");
    check_engine(&e);
    close_both(&e);
}

TEST(hash_of_commands_is_the_same_for_any_number_of_workers) {
    enum { FRAME_COUNT = 12 };
    uint64_t hashes[FRAME_COUNT];
    for (uint32_t worker_count = 0; worker_count <= 8; ++worker_count) {
        gpu_engine e;
        open_workers(&e, worker_count);
        for (uint32_t i = 0; i < FRAME_COUNT; ++i) {
            e.draw_count = 20 + 7 * i;
            e.bucket_count = 1 + 5 * i;
            run(&e, 1);
            uint64_t hash = gpu_stats(&e.r).command_hash;
            if (worker_count == 0) hashes[i] = hash;
            assert_int_equal(hash, hashes[i]);
            if (i > 0) assert_int_not_equal(hash, hashes[i - 1]);
        }
        check_engine(&e);
        close_both(&e);
    }
}

TEST(frames_in_the_steady_state_take_no_heap) {
    gpu_engine e;
    open_workers(&e, 2);
    run(&e, 10);
    uint64_t engine_calls = e.rig.heap.call_count.value, gpu_calls = e.r.heap.call_count.value;
    run(&e, 50);
    assert_int_equal(e.rig.heap.call_count.value, engine_calls);
    assert_int_equal(e.r.heap.call_count.value, gpu_calls);
    close_both(&e);
}

TEST(failed_recording_leaves_out_one_picture_and_no_handler) {
    gpu_engine e;
    open_workers(&e, 2);
    run(&e, 3);
    e.record_result = NB_ERR_OS;
    run(&e, 2);
    e.record_result = NB_OK;
    run(&e, 3);
    nb_gpu_stats stats = gpu_stats(&e.r);
    assert_int_equal(stats.submit_count, 6);
    assert_int_equal(stats.skipped_failed_count, 2);
    check_engine(&e);
    close_both(&e);
}

TEST(headless_engine_has_no_pictures) {
    gpu_engine e;
    nb_engine_desc desc = rig_desc(0);
    desc.is_headless = true;
    open_as(&e, desc, gpu_rig_desc(), (nb_gpu_null_desc){0});
    nb_gpu_buffer buffer = gpu_buffer(e.r.gpu, 16, NB_GPU_MEMORY_DEVICE);
    run(&e, 2);
    assert_int_equal(nb_gpu_buffer_destroy(e.r.gpu, buffer), NB_OK);
    run(&e, 2);
    assert_int_equal(gpu_stats(&e.r).frame_count, 0);
    assert_int_equal(gpu_stats(&e.r).reclaimed_count, 1);
    close_both(&e);
}

// --- order ---

static nb_gpu_backend watching;
static uint64_t submit_thread;
static uint32_t submit_item_count, submit_mistake_count;

static nb_result watch_submit(void *self, const nb_gpu_submit *submit) {
    submit_thread = nbi_thread_id();
    submit_item_count = submit->item_count;
    for (uint32_t i = 0; i < submit->item_count; ++i) {
        const nb_gpu_item *item = &submit->items[i];
        bool is_right = item->index == i && item->step == i / 16 && item->bucket == i % 16 && item->lane < 9;
        submit_mistake_count += is_right ? 0 : 1;
    }
    return nb_gpu_null_backend()->submit(self, submit);
}

TEST(items_are_handed_over_by_the_coordinator_in_the_order_of_the_plan) {
    gpu_engine e;
    watching = *nb_gpu_null_backend();
    watching.submit = watch_submit;
    submit_mistake_count = 0;
    nb_gpu_desc desc = wide_desc();
    desc.backend = &watching;
    open_as(&e, rig_desc(4), desc, (nb_gpu_null_desc){0});
    for (uint32_t i = 0; i < 20; ++i) {
        run(&e, 1);
        assert_int_equal(submit_thread, nbi_thread_id());
        assert_int_equal(submit_item_count, 16);
    }
    assert_int_equal(submit_mistake_count, 0);
    close_both(&e);
}

TEST(attach_without_memory_leaves_the_device_as_it_was) {
    gpu_rig r;
    rig engine;
    gpu_rig_open(&r);
    uint32_t refused_count = 0;
    for (bool is_attached = false; !is_attached; refused_count += is_attached ? 0 : 1) {
        rig_open(&engine, 0);
        engine.heap.fail_at = engine.heap.call_count.value + 1 + refused_count;
        nb_result result = nb_gpu_attach(r.gpu, engine.engine);
        is_attached = result == NB_OK;
        if (is_attached) break;
        assert_int_equal(result, NB_ERR_MEMORY);
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
        assert_int_equal(nb_engine_order_get(engine.engine, NB_PHASE_FRAME_START, NULL, 0), 0);
        rig_close(&engine);
    }
    assert_true(refused_count >= 3);
    rig_close(&engine);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    gpu_rig_close(&r);
}

// --- timelines ---

TEST(what_is_destroyed_is_reclaimed_with_the_timelines_of_the_engine) {
    gpu_engine e;
    open_workers(&e, 0);
    run(&e, 3);
    uint32_t alive = nb_gpu_null_object_count(e.r.control);
    nb_gpu_buffer buffer = gpu_buffer(e.r.gpu, 16, NB_GPU_MEMORY_DEVICE);
    run(&e, 1);
    assert_int_equal(nb_gpu_buffer_destroy(e.r.gpu, buffer), NB_OK);
    assert_int_equal(nb_timelines_stats_get(nb_engine_timelines(e.rig.engine)).pending_count, 1);
    // Picture 4 is over when picture 5 has been handed over; the frame after that reclaims.
    run(&e, 1);
    assert_int_equal(nb_gpu_null_object_count(e.r.control), alive + 1);
    run(&e, 1);
    assert_int_equal(nb_gpu_null_object_count(e.r.control), alive);
    nb_gpu_stats stats = gpu_stats(&e.r);
    assert_int_equal(stats.retired_count, 1);
    assert_int_equal(stats.reclaimed_count, 1);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(e.r.gpu)), stats.completed_value);
    close_both(&e);
}

TEST(device_outlives_its_engine_and_gets_another) {
    gpu_engine e;
    open_workers(&e, 1);
    run(&e, 3);
    nb_gpu_buffer buffer = gpu_buffer(e.r.gpu, 16, NB_GPU_MEMORY_DEVICE);
    assert_int_equal(nb_gpu_buffer_destroy(e.r.gpu, buffer), NB_OK);
    rig_close(&e.rig);
    assert_int_equal(test_log_count(&e.rig.log, NB_ITEM_TIMELINE_UNREACHED), 0);
    nb_gpu_stats stats = gpu_stats(&e.r);
    assert_int_equal(stats.reclaimed_count, stats.retired_count);
    assert_int_equal(stats.completed_value, 3);
    // By hand meanwhile.
    assert_int_equal(gpu_frame(e.r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(e.r.gpu)), 3);
    buffer = gpu_buffer(e.r.gpu, 16, NB_GPU_MEMORY_DEVICE);
    assert_int_equal(nb_gpu_buffer_destroy(e.r.gpu, buffer), NB_OK);
    rig_open(&e.rig, 1);
    assert_int_equal(nb_gpu_attach(e.r.gpu, e.rig.engine), NB_OK);
    stats = gpu_stats(&e.r);
    assert_int_equal(stats.reclaimed_count, stats.retired_count);
    nb_module_desc renderer = {.name = "renderer", .user = &e};
    renderer.handlers[NB_PHASE_FRAME_GRAPH] = add_passes;
    attach(&e.rig, renderer);
    run(&e, 3);
    assert_int_equal(gpu_stats(&e.r).submitted_value, 7);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(e.r.gpu)), 6);
    close_both(&e);
}

typedef struct destroyer {
    nb_gpu *gpu;
    nb_result results[2];
} destroyer;

static nb_result destroy_inside(const nb_context *context, void *user) {
    destroyer *d = user;
    (void)context;
    for (uint32_t i = 0; i < 2; ++i) d->results[i] = nb_gpu_destroy(d->gpu);
    return NB_OK;
}

TEST(destroy_inside_a_frame_of_the_engine_is_refused) {
    for (uint32_t i = 0; i < 2; ++i) {
        gpu_engine e;
        open_workers(&e, 0);
        destroyer d = {.gpu = e.r.gpu};
        nb_module_desc module = {.name = "destroyer", .user = &d};
        module.handlers[i == 0 ? NB_PHASE_GAMEPLAY : NB_PHASE_ASYNC_POLL] = destroy_inside;
        attach(&e.rig, module);
        run(&e, 1);
        assert_int_equal(d.results[0], NB_BUSY);
        assert_int_equal(d.results[1], NB_BUSY);
        close_both(&e);
    }
}

// --- late jobs ---

// Two jobs, of which the one on a worker is held, and writes to its span meanwhile.
typedef struct straggler {
    gpu_engine e;
    uint64_t coordinator;
    nb_atomic_u32 is_armed, is_held, may_try, has_tried, may_end, has_ended, mistakes;
    nb_result alloc_result, late_result;
} straggler;

static bool spin_until(const nb_atomic_u32 *flag) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_acquire_u32(flag) == 0) {
        if (nbi_clock_now_ns() > end_ns) return false;
        nbi_thread_yield();
    }
    return true;
}

static nb_result maybe_hold(const nb_context *context, void *user) {
    straggler *s = user;
    if (nbi_atomic_load_acquire_u32(&s->is_armed) == 0) return NB_OK;
    if (nbi_thread_id() == s->coordinator) return spin_until(&s->is_held) ? NB_OK : NB_ERR_DEADLOCK;
    if (nbi_atomic_exchange_seq_cst_u32(&s->is_armed, 0) == 0) return NB_OK; // the other one holds
    nb_gpu_span span, more;
    s->alloc_result = nb_gpu_frame_alloc_at(s->e.r.gpu, context->frame, 4096, 16, &span);
    if (s->alloc_result != NB_OK) return NB_OK;
    memset(span.memory, 0x5A, span.size_bytes);
    nbi_atomic_exchange_seq_cst_u32(&s->is_held, 1);
    // Of a newer frame it gets nothing.
    bool is_let_go = spin_until(&s->may_try);
    s->late_result = nb_gpu_frame_alloc_at(s->e.r.gpu, context->frame, 16, 16, &more);
    nbi_atomic_exchange_seq_cst_u32(&s->has_tried, 1);
    is_let_go &= spin_until(&s->may_end);
    // Nobody else has written there meanwhile.
    const unsigned char *bytes = span.memory;
    bool is_whole = true;
    for (size_t i = 0; i < span.size_bytes; ++i) is_whole &= bytes[i] == 0x5A;
    if (!is_let_go || !is_whole) nbi_atomic_fetch_add_seq_cst_u32(&s->mistakes, 1);
    nbi_atomic_exchange_seq_cst_u32(&s->has_ended, 1);
    return NB_OK;
}

// In the frame after that of the held job, while memory can be taken.
static nb_result let_try(const nb_context *context, void *user) {
    straggler *s = user;
    (void)context;
    if (nbi_atomic_load_acquire_u32(&s->is_held) == 0) return NB_OK;
    nbi_atomic_store_release_u32(&s->may_try, 1);
    return spin_until(&s->has_tried) ? NB_OK : NB_ERR_DEADLOCK;
}

// Writes over all memory of the frame that is left.
static nb_result fill_memory(const nb_context *context, void *user) {
    straggler *s = user;
    (void)context;
    nb_gpu_span span;
    while (nb_gpu_frame_alloc(s->e.r.gpu, 1024, 16, &span) == NB_OK) memset(span.memory, 0xEE, span.size_bytes);
    return NB_OK;
}

static void open_straggler(straggler *s, uint32_t frames_in_flight) {
    memset(s, 0, sizeof *s);
    nb_engine_desc desc = rig_desc(1);
    desc.fence_timeout_ns = 1000000;
    nb_gpu_desc gpu_desc = gpu_rig_desc();
    gpu_desc.frames_in_flight = frames_in_flight;
    open_as(&s->e, desc, gpu_desc, (nb_gpu_null_desc){0});
    s->e.draw_count = 0; // memory is the filler's
    s->coordinator = nbi_thread_id();
    nb_module_desc jobs = {.name = "jobs", .frame = let_try, .parallel = maybe_hold, .job_count = 2, .user = s};
    jobs.handlers[NB_PHASE_POST_PARALLEL] = fill_memory;
    attach(&s->e.rig, jobs);
    run(&s->e, 3);
    // In the next frame a job is late, and has a span of it.
    nbi_atomic_store_release_u32(&s->is_armed, 1);
    run(&s->e, 1);
    assert_int_equal(nbi_atomic_load_acquire_u32(&s->is_held), 1);
    assert_int_equal(s->alloc_result, NB_OK);
}

// Until the engine knows that the job is back.
static void let_go(straggler *s) {
    nb_gpu_stats before = gpu_stats(&s->e.r);
    nbi_atomic_store_release_u32(&s->may_end, 1);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (gpu_stats(&s->e.r).submit_count < before.submit_count + 3 && nbi_clock_now_ns() < end_ns) run(&s->e, 1);
    assert_true(gpu_stats(&s->e.r).submit_count >= before.submit_count + 3);
}

static void close_straggler(straggler *s) {
    assert_true(spin_until(&s->has_ended));
    assert_int_equal(s->mistakes.value, 0);
    check_engine(&s->e);
    rig_close(&s->e.rig);
    gpu_rig_close(&s->e.r);
}

TEST(memory_that_a_late_job_writes_to_is_not_used_again) {
    straggler s;
    open_straggler(&s, 2);
    // The other slot does for both.
    uint64_t before = gpu_stats(&s.e.r).submit_count;
    run(&s.e, 6);
    assert_int_equal(s.late_result, NB_ERR_STALE);
    assert_int_equal(gpu_stats(&s.e.r).submit_count, before + 6);
    assert_int_equal(gpu_stats(&s.e.r).skipped_late_count, 0);
    let_go(&s);
    close_straggler(&s);
}

TEST(picture_is_left_out_where_all_memory_is_of_late_jobs) {
    straggler s;
    open_straggler(&s, 1);
    uint64_t before = gpu_stats(&s.e.r).submit_count;
    nb_gpu_span span;
    run(&s.e, 5);
    assert_int_equal(gpu_stats(&s.e.r).submit_count, before);
    assert_int_equal(gpu_stats(&s.e.r).skipped_late_count, 5);
    assert_int_equal(nb_gpu_frame_alloc(s.e.r.gpu, 16, 0, &span), NB_EMPTY);
    // Nor is it freed.
    assert_int_equal(nb_gpu_destroy(s.e.r.gpu), NB_BUSY);
    let_go(&s);
    close_straggler(&s);
}

TEST(lost_device_keeps_its_memory_for_late_jobs) {
    straggler s;
    open_straggler(&s, 2);
    assert_int_equal(nb_gpu_null_fail(s.e.r.control, NB_GPU_NULL_LOST, 0), NB_OK);
    run(&s.e, 5);
    nb_gpu_stats stats = gpu_stats(&s.e.r);
    assert_int_equal(stats.skipped_lost_count, 5);
    assert_int_equal(stats.restored_count, 0);
    let_go(&s);
    assert_int_equal(gpu_stats(&s.e.r).restored_count, 1);
    close_straggler(&s);
}

// --- the budget ---

#define LEVELS 4u
#define MS UINT64_C(1000000)

// A game whose picture has two passes more with each level, under a display of 60 Hz that Present waits for.
typedef struct paced {
    gpu_engine e;
    nb_clock_manual clock;
    uint64_t work_ns; // of the CPU, in each frame
} paced;

static nb_result work(const nb_context *context, void *user) {
    paced *p = user;
    (void)context;
    nb_clock_manual_advance(&p->clock, p->work_ns);
    return NB_OK;
}

static nb_result add_passes_of_level(const nb_context *context, void *user) {
    paced *p = user;
    nb_graph *graph = nb_gpu_graph(p->e.r.gpu);
    nb_graph_resource back = nb_gpu_backbuffer(p->e.r.gpu, NULL, NULL);
    for (uint32_t i = 0; graph != NULL && i < 1 + 2 * context->quality_level; ++i) {
        char name[16];
        snprintf(name, sizeof name, "pass %u", i);
        nb_graph_pass pass;
        nb_graph_pass_desc desc = {.name = name, .kind = NB_GPU_PASS_RENDER, .record = draw, .user = &p->e};
        assert_int_equal(nb_graph_pass_add(graph, &desc, &pass), NB_OK);
        assert_int_equal(nb_graph_use(graph, pass, back, NB_GPU_ACCESS_COLOR), NB_OK);
        nb_gpu_clear clear = {{0}};
        if (i == 0) assert_int_equal(nb_graph_clear(graph, pass, back, clear), NB_OK);
    }
    return NB_OK;
}

static nb_result wait_for_display(const nb_context *context, void *user) {
    paced *p = user;
    (void)context;
    nb_clock clock = nb_clock_manual_get(&p->clock);
    nb_clock_manual_set(&p->clock, (nb_clock_now_ns(&clock) / 16666667 + 1) * 16666667);
    return NB_OK;
}

// The level that a game comes to whose device takes so long for each pass.
static uint32_t level_after(uint64_t work_ns, uint64_t pass_ns, bool is_on_cpu, uint32_t frame_count) {
    paced p = {.work_ns = work_ns};
    nb_clock_manual_init(&p.clock, 0);
    nb_engine_desc desc = rig_desc(0);
    desc.loop.clock = nb_clock_manual_get(&p.clock);
    desc.adapts_budget = true;
    desc.budget.level_count = LEVELS;
    open_as(&p.e, desc, wide_desc(), (nb_gpu_null_desc){.pass_ns = pass_ns, .is_on_cpu = is_on_cpu});
    p.e.is_without_pass = true; // its own are added below
    p.e.draw_count = 1;
    nb_module_desc game = {.name = "game", .frame = work, .user = &p};
    game.handlers[NB_PHASE_FRAME_GRAPH] = add_passes_of_level;
    game.handlers[NB_PHASE_PRESENT] = wait_for_display;
    attach(&p.e.rig, game);
    for (uint32_t i = 0; i < frame_count; ++i) assert_int_equal(nb_engine_frame(p.e.rig.engine), NB_OK);
    uint32_t level = nb_budget_level(nb_engine_budget(p.e.rig.engine));
    check_engine(&p.e);
    gpu_rig_close(&p.e.r);
    rig_close(&p.e.rig);
    return level;
}

TEST(work_of_the_device_counts_and_waits_for_the_display_do_not) {
    assert_int_equal(level_after(MS / 10, 0, false, 60), 3);      // nothing is known of the device
    assert_int_equal(level_after(MS / 10, MS, false, 60), 3);     // 7 ms
    assert_int_equal(level_after(MS / 10, 3 * MS, false, 60), 2); // 21 ms of seven passes are too much, 15 of five fit
    assert_int_equal(level_after(9 * MS, MS, false, 60), 3);      // beside the CPU's work
    assert_int_equal(level_after(13 * MS, MS, true, 60), 1);      // in its place: 13 and 3
}
