// SPDX-License-Identifier: MIT
// The demo's parallel work.

#include "work.h"

// A chunk is 200 to 600 steps of about 5 us: 1 to 3 ms in all, and a teleport is noticed after one step.
#define CHUNK_STEPS_MIN 200
#define CHUNK_STEPS_MORE 401
#define STEP_ROUNDS 4000

// An odd number with well mixed bits: 2^64 divided by the golden ratio.
#define MIX 0x9e3779b97f4a7c15u

typedef struct slice {
    demo_work *work;
    uint64_t frame_number;
    uint32_t index;
} slice;

// What stands at an index in a frame; it is different in the next one, so nothing old can pass for new.
static uint64_t value_of(uint64_t frame_number, uint64_t index) {
    uint64_t value = (frame_number << 20 ^ index) * MIX;
    return value ^ value >> 29;
}

static uint64_t sum_add(uint64_t sum, uint64_t value) { return (sum ^ value) * MIX; }

static void fill_slice(nb_task_context *context, void *argument) {
    (void)context;
    const slice *mine = (const slice *)argument;
    uint64_t first = (uint64_t)mine->index * DEMO_SLICE_SIZE, sum = 0;
    for (uint64_t i = first; i < first + DEMO_SLICE_SIZE; ++i) {
        mine->work->values[i] = value_of(mine->frame_number, i);
        sum = sum_add(sum, mine->work->values[i]);
    }
    mine->work->sums[mine->index] = sum;
}

static bool is_slice_right(const demo_work *work, uint64_t frame_number, uint32_t index) {
    uint64_t first = (uint64_t)index * DEMO_SLICE_SIZE, expected = 0, read = 0;
    for (uint64_t i = first; i < first + DEMO_SLICE_SIZE; ++i) {
        expected = sum_add(expected, value_of(frame_number, i));
        read = sum_add(read, work->values[i]);
    }
    return read == expected && work->sums[index] == expected;
}

// A task that could not be submitted leaves the frame before in its slice, which counts as wrong.
static void run_frame_tasks(demo_work *work, uint64_t frame_number) {
    nb_frame frame;
    if (nb_fence_begin(work->fence, &frame) != NB_OK) return;
    nb_task_desc desc = {.run = fill_slice, .priority = NB_PRIORITY_CRITICAL, .lifetime = NB_LIFETIME_FRAME};
    desc.fence = work->fence;
    desc.frame = frame;
    for (uint32_t i = 0; i < DEMO_SLICE_COUNT; ++i) {
        slice next = {work, frame_number, i};
        desc.argument = &next;
        desc.argument_size_bytes = sizeof next;
        nb_task_submit(work->scheduler, &desc, NULL);
    }
    // The next frame's tasks write to the same array, so this wait has no deadline.
    nb_scheduler_frame_wait(work->scheduler, work->fence, frame, NB_NEVER_NS, NULL);
}

static void generate_chunk(nb_task_context *context, void *argument) {
    uint64_t value = *(const uint64_t *)argument * MIX;
    uint32_t step_count = CHUNK_STEPS_MIN + (uint32_t)(value >> 32) % CHUNK_STEPS_MORE;
    for (uint32_t step = 0; step < step_count; ++step) {
        if (nb_task_should_stop(context)) {
            nb_task_set_result(context, NB_CANCELLED);
            return;
        }
        for (uint32_t i = 0; i < STEP_ROUNDS; ++i) value = sum_add(value, i);
    }
    *(uint64_t *)argument = value; // into the task's copy, where a result would be read
}

static void on_chunk_end(void *user, const nb_task_result *result) {
    (void)result;
    --((demo_work *)user)->chunk_count;
}

static nb_result add_chunk(demo_work *work) {
    nb_token_desc chunk = {.label = "chunk", .parent = work->planet, .key = work->chunk_next};
    nb_token *token = NULL;
    nb_result result = nb_token_create(&chunk, &token);
    if (result != NB_OK) return result;
    nb_task_desc desc = {.run = generate_chunk, .token = token, .on_complete = on_chunk_end, .user = work};
    desc.argument = &work->chunk_next;
    desc.argument_size_bytes = sizeof work->chunk_next;
    // One in four is near the camera.
    desc.priority = work->chunk_next % 4 == 0 ? NB_PRIORITY_NORMAL : NB_PRIORITY_LOW;
    result = nb_task_submit(work->scheduler, &desc, NULL);
    nb_token_release(token); // the task has a handle of its own
    if (result != NB_OK) return result;
    ++work->chunk_next;
    ++work->chunk_count;
    return NB_OK;
}

nb_result demo_work_start(demo_work *work, uint32_t worker_count, bool has_chunks) {
    *work = (demo_work){.has_chunks = has_chunks};
    nb_token_desc game = {.label = "game"};
    nb_scheduler_desc desc = nb_scheduler_desc_default();
    if (worker_count > 0) desc.worker_count = worker_count;
    nb_result result = nb_token_create(&game, &work->game);
    if (result == NB_OK) result = nb_token_child(work->game, "planet", &work->planet);
    if (result == NB_OK) result = nb_fence_create(NULL, &work->fence);
    if (result == NB_OK) result = nb_scheduler_create(&desc, &work->scheduler);
    if (result == NB_OK) work->worker_count = nb_scheduler_stats_get(work->scheduler).worker_count;
    return result;
}

void demo_work_frame(demo_work *work, uint64_t frame_number) {
    // Without workers the coordinator generates one chunk a frame: a fixed amount, so virtual runs stay the same.
    if (work->worker_count == 0) nb_scheduler_help(work->scheduler, 0, NULL);
    nb_scheduler_drain(work->scheduler, 0, NULL);
    while (work->has_chunks && work->chunk_count < DEMO_CHUNK_COUNT && add_chunk(work) == NB_OK) {
    }
    run_frame_tasks(work, frame_number);
    bool is_right = true;
    for (uint32_t i = 0; i < DEMO_SLICE_COUNT; ++i) is_right = is_slice_right(work, frame_number, i) && is_right;
    ++work->checked;
    if (!is_right) ++work->wrong;
}

uint64_t demo_work_teleport(demo_work *work) {
    nb_cancel_counts counts = {0};
    nb_token *next = NULL;
    if (nb_token_child(work->game, "planet", &next) != NB_OK) return 0;
    nb_token_cancel(work->planet, NB_CANCEL_STALE, 0, &counts);
    // Without workers nobody else finds out. All that is queued now is stale, so nothing runs here.
    while (work->worker_count == 0 && nb_scheduler_help(work->scheduler, 0, NULL) == NB_OK) {
    }
    nb_token_release(work->planet);
    work->planet = next;
    return counts.task_queued_count + counts.task_running_count;
}

demo_load demo_work_load_get(demo_work *work) {
    uint64_t busy_ns = 0, total_ns = 0;
    demo_load load = {0};
    for (uint32_t i = 0; i <= work->worker_count; ++i) { // 0 is the coordinator: it has queues, too
        nb_thread_stats stats = nb_scheduler_thread_stats_get(work->scheduler, i);
        busy_ns += stats.busy_ns;
        total_ns += stats.busy_ns + stats.idle_ns;
        load.queued_count += stats.queued_count;
    }
    // The numbers of different threads are read at different moments, so a share is kept to what a share can be.
    if (busy_ns > work->busy_ns && total_ns > work->total_ns) {
        double share = (double)(busy_ns - work->busy_ns) / (double)(total_ns - work->total_ns);
        load.busy_share = share < 1 ? share : 1;
    }
    work->busy_ns = busy_ns;
    work->total_ns = total_ns;
    return load;
}

nb_result demo_work_stop(demo_work *work) {
    if (work->game != NULL) nb_token_cancel(work->game, NB_CANCEL_SHUTDOWN, 0, NULL);
    nb_result result = nb_scheduler_destroy(work->scheduler);
    nb_result fence_result = nb_fence_destroy(work->fence); // its tickets are back, now that the tasks are gone
    nb_token_release(work->planet);
    nb_token_release(work->game);
    return result != NB_OK ? result : fence_result;
}
