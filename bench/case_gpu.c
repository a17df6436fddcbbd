// SPDX-License-Identifier: MIT
// Recording 10,000 draws in 64 buckets by 1 to 16 threads, on a backend that does nothing with them: what remains is
// what the device itself costs, its checks and its hash. Beside it the same draws by one thread straight through the
// backend's functions, which checks nothing.

#include "bench.h"

#include <stdlib.h>

#if BENCH_HAVE_GPU

#include <nebula/gpu.h>
#include <nebula/gpu_backend.h>
#include <nebula/gpu_command.h>
#include <nebula/gpu_null.h>
#include <nebula/tasks.h>

#define DRAWS 10000u
#define BUCKETS 64u
#define FRAMES 31

// Threads of each row.
static const uint32_t thread_counts[] = {1, 2, 4, 8, 16};

typedef struct constants {
    float place[3];
    uint32_t number;
} constants;

typedef struct fixture {
    nb_gpu *gpu;
    nb_gpu_pipeline pipeline;
    nb_gpu_buffer buffer;
    void *self; // a backend without a device
    constants draws[DRAWS];
} fixture;

static void close_fixture(void *context) {
    fixture *f = context;
    if (f->self != NULL) nb_gpu_null_backend()->destroy(f->self);
    nb_gpu_destroy(f->gpu);
    free(f);
}

static bool open_device(fixture *f) {
    static const uint32_t words[] = {0x07230203};
    nb_gpu_desc desc = {.lane_count = 16};
    nb_gpu_pipeline_desc pipeline = {.vertex = {words, sizeof words},
                                     .fragment = {words, sizeof words},
                                     .colors = {NB_GPU_FORMAT_RGBA8},
                                     .color_count = 1,
                                     .push_bytes = sizeof(constants),
                                     .storage_mask = 1};
    if (nb_gpu_create(&desc, &f->gpu) != NB_OK) return false;
    return nb_gpu_pipeline_create(f->gpu, &pipeline, &f->pipeline) == NB_OK &&
           nb_gpu_buffer_create(f->gpu, &(nb_gpu_buffer_desc){.size_bytes = 4096}, &f->buffer) == NB_OK;
}

static bool open_backend(fixture *f) {
    nb_hooks hooks = nb_hooks_default();
    nb_gpu_backend_create create = {.limits = {.frames_in_flight = 2,
                                               .lane_count = 1,
                                               .buffer_count_max = 1,
                                               .image_count_max = 1,
                                               .pipeline_count_max = 1,
                                               .pass_count_max = 1,
                                               .item_count_max = BUCKETS,
                                               .frame_bytes = 4096},
                                    .width = 640,
                                    .height = 360,
                                    .hooks = &hooks};
    nb_gpu_backend_info info;
    return nb_gpu_null_backend()->create(&create, &f->self, &info) == NB_OK;
}

static void *open_fixture(void) {
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return NULL;
    for (uint32_t i = 0; i < DRAWS; ++i) f->draws[i] = (constants){{(float)i, 0.0f, 1.0f}, i};
    if (open_device(f) && open_backend(f)) return f;
    close_fixture(f);
    return NULL;
}

// --- nebula ---

static nb_result draw(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const fixture *f = user;
    nb_gpu_set_pipeline(command, f->pipeline);
    nb_gpu_set_buffer(command, 0, f->buffer, 0, 0);
    for (uint32_t i = bucket; i < DRAWS; i += bucket_count) {
        nb_gpu_push(command, &f->draws[i], sizeof f->draws[i]);
        nb_gpu_draw(command, 36, 1, 0, i);
    }
    return NB_OK;
}

static void record_lanes(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    for (uint64_t lane = begin; lane < end; ++lane) nb_gpu_frame_record((nb_gpu *)user, (uint32_t)lane);
}

// Nanoseconds of recording one frame; negative: it failed.
static double record_frame(fixture *f, nb_scheduler *scheduler, uint32_t thread_count) {
    nb_graph_pass pass;
    nb_graph_pass_desc desc = {
        .name = "main", .kind = NB_GPU_PASS_RENDER, .record = draw, .user = f, .bucket_count = BUCKETS};
    if (nb_gpu_frame_begin(f->gpu) != NB_OK) return -1;
    nb_graph *graph = nb_gpu_graph(f->gpu);
    nb_graph_pass_add(graph, &desc, &pass);
    nb_graph_use(graph, pass, nb_gpu_backbuffer(f->gpu, NULL, NULL), NB_GPU_ACCESS_COLOR);
    // Workers come from ParallelTasks, awake.
    if (thread_count > 1) nb_scheduler_prewake(scheduler, 0);
    bool is_good = nb_gpu_frame_compile(f->gpu) == NB_OK;
    nb_parallel_desc lanes = {.run = record_lanes, .user = f->gpu, .count = thread_count, .grain = 1};
    uint64_t start_ns = bench_now_ns();
    if (thread_count == 1)
        is_good &= nb_gpu_frame_record(f->gpu, 0) == NB_OK;
    else
        is_good &= nb_parallel_for(scheduler, &lanes, NULL) == NB_OK;
    uint64_t end_ns = bench_now_ns();
    is_good &= nb_gpu_frame_submit(f->gpu) == NB_OK && nb_gpu_frame_end(f->gpu) == NB_OK;
    return is_good && nb_gpu_stats_get(f->gpu).draw_count == DRAWS ? (double)(end_ns - start_ns) : -1;
}

static bool record_with(fixture *f, uint32_t thread_count, double *value) {
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc desc = {.worker_count = thread_count > 1 ? thread_count - 1 : NB_WORKER_COUNT_NONE};
    if (nb_scheduler_create(&desc, &scheduler) != NB_OK) return false;
    double costs_ns[FRAMES];
    bool is_good = true;
    for (int i = 0; i < FRAMES; ++i) {
        costs_ns[i] = record_frame(f, scheduler, thread_count);
        is_good &= costs_ns[i] >= 0;
    }
    nb_scheduler_destroy(scheduler);
    bench_sort(costs_ns, FRAMES);
    *value = costs_ns[FRAMES / 2] / DRAWS;
    return is_good;
}

// More threads than the machine has say nothing.
static bool run_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    bool is_good = true;
    bench_unpin(); // workers would be bound to the same cpu
    for (size_t i = 0; i < BENCH_COUNT(thread_counts); ++i) {
        values[i] = BENCH_THROWN_AWAY;
        if (i > 0 && thread_counts[i] > bench_cpu_count()) continue;
        is_good &= record_with(context, thread_counts[i], &values[i]);
    }
    bench_pin(0);
    return is_good;
}

// --- straight ---

static void straight_frame(fixture *f) {
    const nb_gpu_backend *backend = nb_gpu_null_backend();
    nb_gpu_bindings bindings = {.buffer_mask = 1};
    backend->frame_reset(f->self, 0);
    for (uint32_t bucket = 0; bucket < BUCKETS; ++bucket) {
        nb_gpu_item item = {.bucket = bucket, .index = bucket};
        backend->item_begin(f->self, 0, &item, NULL, NULL);
        backend->set_pipeline(f->self, &item, 0);
        backend->set_bindings(f->self, &item, 0, &bindings);
        for (uint32_t i = bucket; i < DRAWS; i += BUCKETS) {
            nb_gpu_draw_args args = {36, 1, 0, i};
            backend->push(f->self, &item, 0, &f->draws[i], sizeof f->draws[i]);
            backend->draw(f->self, &item, &args);
        }
        backend->item_end(f->self, 0, &item);
    }
}

static bool run_straight(void *context, const void *argument, double *values) {
    double costs_ns[FRAMES];
    (void)argument;
    for (int i = 0; i < FRAMES; ++i) {
        uint64_t start_ns = bench_now_ns();
        straight_frame(context);
        costs_ns[i] = (double)(bench_now_ns() - start_ns);
    }
    bench_sort(costs_ns, FRAMES);
    values[0] = costs_ns[FRAMES / 2] / DRAWS;
    for (size_t i = 1; i < BENCH_COUNT(thread_counts); ++i) values[i] = BENCH_THROWN_AWAY;
    return true;
}

#else
static void *open_fixture(void) { return malloc(1); }
static void close_fixture(void *context) { free(context); }
#endif

// 10,000 draws in a millisecond are a tenth of a frame at 100 Hz.
static const bench_row rows[] = {
    {.name = "gpu.record1", .unit = "ns a draw", .goals = {{.kind = BENCH_GOAL_LIMIT, .factor = 100}}},
    {.name = "gpu.record2", .unit = "ns a draw"},
    {.name = "gpu.record4", .unit = "ns a draw"},
    {.name = "gpu.record8", .unit = "ns a draw"},
    {.name = "gpu.record16", .unit = "ns a draw"},
};

static const bench_contender contenders[] = {
#if BENCH_HAVE_GPU
    {"nebula", BENCH_NEBULA, run_nebula, NULL, NULL},
    {"straight, unchecked", BENCH_SHOWN, run_straight, NULL, NULL},
#else
    {"nebula", BENCH_NEBULA, NULL, NULL, "the module gpu"},
#endif
};

static const bench_case cases[] = {
    {"gpu.record", "10,000 draws with 16 bytes of constants each, recorded in 64 buckets by 1 to 16 threads", rows,
     BENCH_COUNT(rows), contenders, BENCH_COUNT(contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_gpu_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
