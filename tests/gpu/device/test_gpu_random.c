// SPDX-License-Identifier: MIT
// An engine with a null device, from a seed: passes, objects, uploads, sizes and captures at random, and every fault a
// device can show. Nothing is leaked, everything that was retired is reclaimed, and after each fault there are pictures
// again.

#include "frame/engine/engine_fixture.h"
#include "gpu/device/gpu_fixture.h"

#define OBJECT_COUNT 24u
#define PASS_COUNT 6u
// More than all pauses that 16 orders can lead to, at 16 ms a frame.
#define CALM_FRAME_COUNT_MAX 3000u

typedef struct soak {
    rig rig;
    gpu_rig r;
    uint64_t random;
    bool is_calm; // nothing new goes wrong
    nb_gpu_buffer buffers[OBJECT_COUNT];
    nb_gpu_image images[OBJECT_COUNT];
    nb_gpu_pipeline pipelines[2]; // kept
    uint32_t restored_count;
    uint32_t fault_counts[NB_GPU_NULL_FAULT_COUNT];
    nb_atomic_u32 mistakes;
} soak;

// What one pass of a frame records.
typedef struct work {
    soak *s;
    nb_graph_resource read; // null: nothing
    uint32_t draw_count;
    nb_result result;
} work;

static work works[PASS_COUNT]; // of the frame

static uint64_t below(soak *s, uint64_t limit) { return test_random(&s->random) % limit; }

static bool happens(soak *s, uint64_t in) { return !s->is_calm && below(s, in) == 0; }

// --- what is recorded ---

static nb_result record(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const work *w = user;
    nb_gpu_set_pipeline(command, w->s->pipelines[0]);
    if (w->read.value != 0) {
        nb_result bound = nb_gpu_set_resource(command, 8, w->read, NB_GPU_SAMPLER_LINEAR);
        if (bound != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&w->s->mistakes, 1);
    }
    for (uint32_t i = bucket; i < w->draw_count; i += bucket_count) {
        nb_gpu_span span;
        nb_result taken = nb_gpu_frame_alloc(nb_gpu_command_device(command), 64, 256, &span);
        if (taken == NB_OK) memset(span.memory, (int)i, span.size_bytes);
        if (taken == NB_OK) nb_gpu_set_span(command, 0, span);
        nb_gpu_push(command, &i, sizeof i);
        nb_gpu_draw(command, 3, 1, 0, 0);
    }
    return bucket == 0 ? w->result : NB_OK;
}

static void add_transient(soak *s, nb_graph *graph, uint32_t i, nb_graph_pass pass, nb_graph_resource *previous) {
    static const char *const names[PASS_COUNT] = {"r0", "r1", "r2", "r3", "r4", "r5"};
    uint32_t size = 8u << below(s, 3);
    nb_graph_image_desc desc = {names[i], NB_GPU_FORMAT_RGBA8, size, size};
    nb_graph_resource resource = {0};
    if (previous->value != 0) nb_graph_use(graph, pass, *previous, NB_GPU_ACCESS_SAMPLED);
    works[i].read = *previous;
    if (nb_graph_image_add(graph, &desc, &resource) != NB_OK) return;
    nb_graph_use(graph, pass, resource, NB_GPU_ACCESS_COLOR);
    *previous = resource;
}

// Each pass draws to memory of its own and reads that of the one before; the last one draws to the back buffer.
static void add_graph(soak *s) {
    static const char *const names[PASS_COUNT] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    nb_graph *graph = nb_gpu_graph(s->r.gpu);
    nb_graph_resource previous = {0};
    uint32_t count = 1 + (uint32_t)below(s, PASS_COUNT);
    for (uint32_t i = 0; i < count; ++i) {
        works[i] = (work){.s = s, .draw_count = (uint32_t)below(s, 20), .result = happens(s, 150) ? NB_ERR_OS : NB_OK};
        if (i + 1 == count) {
            nb_graph_pass last = gpu_pass_add(s->r.gpu, (gpu_pass){names[i], record, &works[i], 1 + below(s, 5) % 4});
            if (previous.value != 0) nb_graph_use(graph, last, previous, NB_GPU_ACCESS_SAMPLED);
            works[i].read = previous;
            return;
        }
        nb_graph_pass pass;
        nb_graph_pass_desc desc = {.name = names[i],
                                   .kind = NB_GPU_PASS_RENDER,
                                   .record = record,
                                   .user = &works[i],
                                   .bucket_count = 1 + (uint32_t)below(s, 4)};
        if (nb_graph_pass_add(graph, &desc, &pass) == NB_OK) add_transient(s, graph, i, pass, &previous);
    }
}

static void add_failure(soak *s) {
    nb_graph *graph = nb_gpu_graph(s->r.gpu);
    nb_graph_pass pass;
    nb_graph_resource never;
    nb_graph_pass_desc desc = {.name = "bad", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    if (nb_graph_image_add(graph, &(nb_graph_image_desc){"never", NB_GPU_FORMAT_R8, 4, 4}, &never) != NB_OK) return;
    if (nb_graph_pass_add(graph, &desc, &pass) == NB_OK) nb_graph_use(graph, pass, never, NB_GPU_ACCESS_SAMPLED);
}

// --- what happens in a frame ---

static void change_objects(soak *s) {
    uint32_t i = (uint32_t)below(s, OBJECT_COUNT);
    nb_gpu_buffer_desc buffer = {.size_bytes = 64 + below(s, 4096) * 4,
                                 .memory = below(s, 8) == 0 ? NB_GPU_MEMORY_READBACK : NB_GPU_MEMORY_DEVICE};
    nb_gpu_image_desc image = {
        .format = NB_GPU_FORMAT_R8, .width = 16, .height = 16, .access = NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO};
    if (s->buffers[i].value == 0) {
        nb_gpu_buffer_create(s->r.gpu, &buffer, &s->buffers[i]);
    } else if (nb_gpu_buffer_destroy(s->r.gpu, s->buffers[i]) == NB_OK) {
        s->buffers[i].value = 0;
    }
    if (s->images[i].value == 0) {
        nb_gpu_image_create(s->r.gpu, &image, &s->images[i]);
    } else if (below(s, 2) == 0 && nb_gpu_image_destroy(s->r.gpu, s->images[i]) == NB_OK) {
        s->images[i].value = 0;
    }
}

static void upload(soak *s) {
    uint32_t i = (uint32_t)below(s, OBJECT_COUNT);
    nb_gpu_span span;
    if (nb_gpu_frame_alloc(s->r.gpu, 256, 16, &span) != NB_OK) return;
    memset(span.memory, 7, span.size_bytes);
    if (s->images[i].value != 0) nb_gpu_upload_image(s->r.gpu, span, s->images[i], 0);
    span.size_bytes = 64;
    if (s->buffers[i].value != 0) nb_gpu_upload_buffer(s->r.gpu, span, s->buffers[i], 0);
}

static void order_fault(soak *s) {
    nb_gpu_null_fault fault = (nb_gpu_null_fault)(1 + below(s, NB_GPU_NULL_FAULT_COUNT - 1));
    if (nb_gpu_null_fail(s->r.control, fault, (uint32_t)below(s, 4)) != NB_OK) return;
    ++s->fault_counts[fault];
    // Half of those that get stuck go on by themselves.
    if (fault == NB_GPU_NULL_STUCK && below(s, 2) == 0)
        nb_gpu_null_fail(s->r.control, NB_GPU_NULL_GO, 4 + (uint32_t)below(s, 8));
}

static nb_result play(const nb_context *context, void *user) {
    soak *s = user;
    (void)context;
    for (uint64_t i = below(s, 4); i > 0; --i) change_objects(s);
    for (uint64_t i = below(s, 4); i > 0; --i) upload(s);
    if (happens(s, 40)) nb_gpu_resize(s->r.gpu, 16u << below(s, 3), 16);
    if (happens(s, 80)) nb_gpu_resize(s->r.gpu, 0, 0);
    if (happens(s, 80)) nb_gpu_set_vsync(s->r.gpu, below(s, 2) == 0);
    if (happens(s, 25)) order_fault(s);
    return NB_OK;
}

static nb_result add_passes(const nb_context *context, void *user) {
    soak *s = user;
    (void)context;
    nb_gpu_capture capture;
    nb_gpu_capture_take(s->r.gpu, 0, &capture);
    if (nb_gpu_graph(s->r.gpu) == NULL) return NB_OK;
    if (below(s, 20) == 0) nb_gpu_capture_ask(s->r.gpu);
    add_graph(s);
    if (happens(s, 150)) add_failure(s);
    return NB_OK;
}

// --- the run ---

static void count_restored(nb_gpu *gpu, void *user) {
    soak *s = user;
    if (gpu != s->r.gpu) nbi_atomic_fetch_add_seq_cst_u32(&s->mistakes, 1);
    ++s->restored_count;
}

static void open_soak(soak *s, uint64_t seed, bool has_surface) {
    memset(s, 0, sizeof *s);
    s->random = seed;
    rig_open(&s->rig, 2);
    nb_gpu_desc desc = gpu_rig_desc();
    desc.stuck_ns = 200000000;
    desc.frames_in_flight = 1 + (uint32_t)(seed % 3);
    desc.on_restored = count_restored;
    desc.user = s;
    gpu_rig_open_as(&s->r, desc,
                    (nb_gpu_null_desc){.latency_frames = seed % 4 < 3 ? 1 : 2, .has_surface = has_surface});
    nb_gpu_pipeline_desc drawing = gpu_drawing();
    drawing.push_bytes = 4, drawing.uniform_mask = 1;
    s->pipelines[0] = gpu_pipeline(s->r.gpu, drawing);
    s->pipelines[1] = gpu_pipeline(s->r.gpu, (nb_gpu_pipeline_desc){.compute = {gpu_words, 16}});
    assert_int_equal(nb_gpu_attach(s->r.gpu, s->rig.engine), NB_OK);
    nb_module_desc game = {.name = "game", .frame = play, .user = s};
    game.handlers[NB_PHASE_FRAME_GRAPH] = add_passes;
    attach(&s->rig, game);
}

static void run_frame(soak *s) {
    nb_clock_manual_advance(&s->r.clock, 16000000);
    assert_int_equal(nb_engine_frame_delta(s->rig.engine, 0), NB_OK);
}

// Whatever was ordered has shown by the end, or waits for what never comes; pictures come in any case.
static void calm_down(soak *s) {
    s->is_calm = true;
    assert_int_equal(nb_gpu_resize(s->r.gpu, 32, 16), NB_OK);
    uint64_t goal = gpu_stats(&s->r).submit_count + 5;
    for (uint32_t i = 0; i < CALM_FRAME_COUNT_MAX && gpu_stats(&s->r).submit_count < goal; ++i) run_frame(s);
    nb_gpu_stats stats = gpu_stats(&s->r);
    assert_true(stats.submit_count >= goal);
    assert_int_equal(stats.restored_count, s->restored_count);
    assert_true(stats.restored_count <= stats.lost_count);
    assert_accounted(&stats);
    s->is_calm = false;
}

static void destroy_all(soak *s) {
    for (uint32_t i = 0; i < OBJECT_COUNT; ++i) {
        if (s->buffers[i].value != 0) assert_int_equal(nb_gpu_buffer_destroy(s->r.gpu, s->buffers[i]), NB_OK);
        if (s->images[i].value != 0) assert_int_equal(nb_gpu_image_destroy(s->r.gpu, s->images[i]), NB_OK);
        s->buffers[i].value = s->images[i].value = 0;
    }
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(nb_gpu_pipeline_destroy(s->r.gpu, s->pipelines[i]), NB_OK);
}

static void close_soak(soak *s) {
    calm_down(s);
    destroy_all(s);
    nb_engine_stats engine = rig_stats(&s->rig);
    assert_int_equal(engine.failure_count, 0);
    assert_int_equal(engine.violation_count, 0);
    rig_close(&s->rig);
    nb_gpu_stats stats = gpu_stats(&s->r);
    assert_int_equal(stats.retired_count, stats.reclaimed_count);
    assert_int_equal(stats.buffer_count + stats.image_count + stats.pipeline_count, 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&s->mistakes), 0);
    gpu_rig_close(&s->r);
}

TEST(everything_at_random_leaves_nothing_behind) {
    uint64_t seed = test_seed("test_gpu_random"), frame_count = test_size(300, 20000, 60000);
    uint32_t fault_counts[NB_GPU_NULL_FAULT_COUNT] = {0};
    uint64_t run_count = test_size(4, 12, 24), lost = 0, failed = 0;
    for (uint64_t run = 0; run < run_count; ++run) {
        static soak s;
        open_soak(&s, seed + run, run % 2 == 1);
        for (uint64_t i = 0; i < frame_count / run_count; ++i) {
            run_frame(&s);
            if (i % 100 == 99) calm_down(&s);
        }
        lost += gpu_stats(&s.r).lost_count;
        failed += gpu_stats(&s.r).skipped_failed_count;
        for (uint32_t i = 0; i < NB_GPU_NULL_FAULT_COUNT; ++i) fault_counts[i] += s.fault_counts[i];
        close_soak(&s);
    }
    // The seeds have done what they are for.
    if (getenv("NB_TEST_SEED") != NULL) return;
    assert_true(lost > 0 && failed > 0);
    for (uint32_t i = 1; i < NB_GPU_NULL_FAULT_COUNT && frame_count >= 20000; ++i) assert_true(fault_counts[i] > 0);
}
