// SPDX-License-Identifier: MIT
// Memory of frame-bound tasks in an engine: results are left behind as pointers, and read in PostParallel, at the end
// of the frame, and by on_complete. Late tasks, threads that come and go, exhausted pools; an own and a borrowed
// scheduler, with and without workers.

#include "frame/engine/engine_fixture.h"

#define TASK_COUNT 24u
#define WORD_COUNT 64u
#define LIMIT_NS UINT64_C(20000000000)

// A task's result: where it is, and what must stand there.
typedef struct page {
    uint64_t *words;
    uint64_t stamp;
} page;

typedef struct setting {
    uint32_t worker_count;
    bool is_borrowed;
} setting;

static const setting settings[] = {{0, false}, {1, false}, {2, false}, {0, true}, {1, true}, {2, true}};
#define SETTING_COUNT (sizeof settings / sizeof settings[0])

typedef struct writers {
    rig rig;
    nb_scheduler *borrowed;
    page pages[2 * TASK_COUNT]; // of this frame, by Gameplay and by a job
    nb_fence *fence;            // of the engine
    nb_task late;
    nb_fence_ticket tickets[NB_FENCE_SLOT_COUNT_MAX];
    page pages_kept[NB_FENCE_SLOT_COUNT_MAX];
    uint32_t ticket_count;
    uint32_t barrier_count; // tasks of each frame that wait for each other; 0 = none
    bool is_impatient;      // its frames do not wait long
    bool is_inline, takes_tickets, starts_late, has_told_late;
    uint64_t coordinator;
    uint32_t read_count, wrong_count, refused_count, told_count;
    nb_atomic_u32 refused_in_job, arrived, may_end, has_started, is_over, mistakes;
} writers;

static void await(writers *w, const nb_atomic_u32 *flag, uint32_t value) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_acquire_u32(flag) < value && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    if (nbi_atomic_load_acquire_u32(flag) < value) nbi_atomic_fetch_add_seq_cst_u32(&w->mistakes, 1);
}

static bool is_written(const page *p) {
    if (p->words == NULL) return false;
    for (uint32_t i = 0; i < WORD_COUNT; ++i) {
        if (p->words[i] != p->stamp + i) return false;
    }
    return true;
}

static void write_page(nb_task_context *context, page *p) {
    nb_arena *arena = nb_task_arena(context);
    p->words = arena != NULL ? nb_arena_alloc(arena, WORD_COUNT * sizeof *p->words, 8) : NULL;
    for (uint32_t i = 0; i < WORD_COUNT && p->words != NULL; ++i) p->words[i] = p->stamp + i;
}

typedef struct order {
    writers *w;
    page *to; // of the host; NULL = only in the argument
    page page;
    bool is_late, has_barrier;
} order;

static void run_write(nb_task_context *context, void *argument) {
    order *o = argument;
    write_page(context, &o->page);
    if (o->has_barrier) {
        nbi_atomic_fetch_add_seq_cst_u32(&o->w->arrived, 1);
        await(o->w, &o->w->arrived, o->w->barrier_count);
    }
    if (o->is_late) {
        nbi_atomic_fetch_add_seq_cst_u32(&o->w->has_started, 1);
        await(o->w, &o->w->may_end, 1);
        if (!is_written(&o->page)) nbi_atomic_fetch_add_seq_cst_u32(&o->w->mistakes, 1);
    }
    if (o->to != NULL) *o->to = o->page;
}

static void on_written(void *user, const nb_task_result *result) {
    writers *w = user;
    const order *o = NB_RESULT_AS(order, result);
    ++w->told_count;
    w->has_told_late |= o->is_late;
    if (result->status != NB_OK || !is_written(&o->page)) ++w->wrong_count;
}

static nb_task_desc desc_of(const nb_context *context, order *o) {
    return (nb_task_desc){.run = run_write,
                          .argument = o,
                          .argument_size_bytes = sizeof *o,
                          .lifetime = NB_LIFETIME_FRAME,
                          .fence = context->fence,
                          .on_complete = o->w->is_inline ? NULL : on_written,
                          .user = o->w,
                          .runs_inline = o->w->is_inline};
}

// The task of this number in the frame. Where tasks may be late, they write into nothing that the next frame writes to.
static nb_result submit(const nb_context *context, writers *w, uint32_t number) {
    order o = {.w = w,
               .to = w->is_impatient ? NULL : &w->pages[number],
               .page.stamp = context->frame_index << 32 | (uint64_t)number << 16,
               .has_barrier = w->barrier_count != 0};
    nb_task_desc desc = desc_of(context, &o);
    return nb_task_submit(context->scheduler, &desc, NULL);
}

static void start_late(const nb_context *context, writers *w) {
    order o = {.w = w, .page.stamp = 77, .is_late = true};
    nb_task_desc desc = desc_of(context, &o);
    w->starts_late = false;
    if (nb_task_submit(context->scheduler, &desc, &w->late) != NB_OK) ++w->wrong_count;
    await(w, &w->has_started, 1); // by another thread than this one
}

// Leaves a page in the frame, and keeps that late.
static void take_ticket(const nb_context *context, writers *w) {
    order o = {.w = w, .to = &w->pages_kept[w->ticket_count], .page.stamp = context->frame_index << 32};
    nb_task_desc desc = desc_of(context, &o);
    desc.on_complete = NULL;
    nb_fence_ticket *ticket = &w->tickets[w->ticket_count++];
    if (nb_task_run(context->scheduler, &desc) != NB_OK) ++w->wrong_count;
    if (nb_fence_take(context->fence, context->frame, (nb_label){0}, ticket) != NB_OK) ++w->wrong_count;
}

static nb_result start(const nb_context *context, void *user) {
    writers *w = user;
    w->fence = context->fence;
    nbi_atomic_exchange_seq_cst_u32(&w->arrived, 0);
    memset(w->pages, 0, sizeof w->pages);
    for (uint32_t i = 0; i < (w->barrier_count != 0 ? w->barrier_count : TASK_COUNT); ++i) {
        if (submit(context, w, i) != NB_OK) ++w->refused_count;
    }
    if (w->starts_late) start_late(context, w);
    if (w->takes_tickets && context->frame.value != 0) take_ticket(context, w);
    return NB_OK;
}

// --- loops ---

static void write_range(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    writers *w = user;
    for (uint64_t i = begin; i < end; ++i) {
        w->pages[i].stamp = i << 16;
        write_page(context, &w->pages[i]);
    }
}

static nb_result loop(const nb_context *context, void *user) {
    writers *w = user;
    memset(w->pages, 0, sizeof w->pages);
    nb_parallel_desc desc = {.run = write_range,
                             .user = w,
                             .count = 2 * TASK_COUNT,
                             .grain = 1,
                             .lifetime = NB_LIFETIME_FRAME,
                             .fence = context->fence};
    return nb_parallel_for(context->scheduler, &desc, NULL);
}

// What a job submits belongs to its frame, too.
static nb_result start_in_job(const nb_context *context, void *user) {
    writers *w = user;
    for (uint32_t i = 0; i < TASK_COUNT && w->barrier_count == 0; ++i) {
        nb_result result = submit(context, w, TASK_COUNT + i);
        if (result != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&w->refused_in_job, 1);
    }
    return NB_OK;
}

static nb_result read_pages(const nb_context *context, void *user) {
    writers *w = user;
    uint32_t count = w->barrier_count != 0 ? w->barrier_count : 2 * TASK_COUNT;
    (void)context;
    for (uint32_t i = 0; i < count && !w->is_impatient; ++i) {
        if (is_written(&w->pages[i])) ++w->read_count;
    }
    return NB_OK;
}

static void open_with(writers *w, setting by, nb_engine_desc desc, nb_module_desc module) {
    memset(w, 0, sizeof *w);
    w->coordinator = nbi_thread_id();
    desc.is_headless = true;
    if (by.is_borrowed) {
        assert_int_equal(nb_scheduler_create(&desc.scheduler_desc, &w->borrowed), NB_OK);
        desc.scheduler = w->borrowed;
    }
    rig_open_desc(&w->rig, desc);
    attach(&w->rig, module);
}

static void open_desc(writers *w, setting by, nb_engine_desc desc) {
    nb_module_desc module = {.name = "writers",
                             .frame = start,
                             .parallel = start_in_job,
                             .handlers = {[NB_PHASE_POST_PARALLEL] = read_pages,
                                          [NB_PHASE_ASYNC_POLL] = read_pages,
                                          [NB_PHASE_FRAME_END] = read_pages},
                             .user = w};
    open_with(w, by, desc, module);
}

static void open(writers *w, setting by) { open_desc(w, by, rig_desc(by.worker_count)); }

static void close(writers *w) {
    assert_int_equal(w->wrong_count, 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&w->mistakes), 0);
    rig_close(&w->rig);
    assert_int_equal(nb_scheduler_destroy(w->borrowed), NB_OK);
}

static void frame(writers *w) { assert_int_equal(nb_engine_frame_delta(w->rig.engine, 0), NB_OK); }

TEST(memory_of_tasks_lives_to_the_end_of_their_frame) {
    static writers w;
    for (uint32_t i = 0; i < SETTING_COUNT; ++i) {
        open(&w, settings[i]);
        for (uint32_t f = 1; f <= 20; ++f) {
            if (f == 10) assert_int_equal(nb_loop_pause(nb_engine_loop(w.rig.engine)), NB_OK);
            frame(&w);
            assert_int_equal(w.wrong_count, 0);
            assert_int_equal(w.read_count, f * 3 * 2 * TASK_COUNT);
            assert_int_equal(w.told_count, f * 2 * TASK_COUNT);
        }
        assert_int_equal(w.refused_count + nbi_atomic_load_seq_cst_u32(&w.refused_in_job), 0);
        close(&w);
    }
}

// The share of the calling thread is the frame's as well.
TEST(memory_of_loops_lives_to_the_end_of_their_frame) {
    static writers w;
    for (uint32_t i = 0; i < SETTING_COUNT; ++i) {
        open_with(
            &w, settings[i], rig_desc(settings[i].worker_count),
            (nb_module_desc){.name = "loop",
                             .frame = loop,
                             .handlers = {[NB_PHASE_POST_PARALLEL] = read_pages, [NB_PHASE_FRAME_END] = read_pages},
                             .user = &w});
        for (uint32_t f = 1; f <= 10; ++f) frame(&w);
        assert_int_equal(w.read_count, 10 * 2 * 2 * TASK_COUNT);
        close(&w);
    }
}

// A pool without room: what is run in the submit leaves its memory as the others do.
TEST(tasks_run_inline_leave_their_memory_to_the_frame) {
    static writers w;
    for (uint32_t i = 0; i < SETTING_COUNT; ++i) {
        nb_engine_desc desc = rig_desc(settings[i].worker_count);
        desc.scheduler_desc.task_count_max = 8;
        open_desc(&w, settings[i], desc);
        w.is_inline = true;
        for (uint32_t f = 1; f <= 10; ++f) frame(&w);
        assert_int_equal(w.read_count, 10 * 3 * 2 * TASK_COUNT);
        if (settings[i].worker_count == 0) {
            assert_true(nb_scheduler_stats_get(nb_engine_scheduler(w.rig.engine)).inline_count > 0);
        }
        close(&w);
    }
}

// What cannot be had is refused. Scratch memory in its place would be gone before the frame ends.
TEST(task_without_memory_gets_none_and_the_next_frame_has_it) {
    static writers w;
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        open(&w, (setting){workers, false});
        w.is_inline = true; // no on_complete
        w.rig.heap.fail_from = nbi_atomic_load_seq_cst_u64(&w.rig.heap.call_count) + 1;
        frame(&w);
        for (uint32_t i = 0; i < 2 * TASK_COUNT; ++i) assert_null(w.pages[i].words);
        w.rig.heap.fail_from = 0;
        w.read_count = 0;
        frame(&w);
        assert_int_equal(w.read_count, 3 * 2 * TASK_COUNT);
        close(&w);
    }
}

// --- late tasks ---

// A thread of the host that joins the scheduler, and leaves when it has run the late task.
static void lend_a_hand(void *user, uint32_t index) {
    writers *w = user;
    nb_scheduler *scheduler = nb_engine_scheduler(w->rig.engine);
    (void)index;
    if (nb_scheduler_attach(scheduler) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&w->mistakes, 1);
    while (nbi_atomic_load_acquire_u32(&w->is_over) == 0) {
        if (nb_scheduler_help(scheduler, 0, NULL) != NB_OK) nbi_thread_yield();
    }
    if (nb_scheduler_detach(scheduler) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&w->mistakes, 1);
}

static void open_impatient(writers *w, setting by) {
    nb_engine_desc desc = rig_desc(by.worker_count);
    desc.fence_timeout_ns = 1000000;
    open_desc(w, by, desc);
    w->is_impatient = true;
}

TEST(late_tasks_keep_their_memory_until_they_are_told) {
    static writers w;
    for (uint32_t i = 0; i < SETTING_COUNT; ++i) {
        bool has_helper = settings[i].worker_count == 0;
        test_thread helper;
        open_impatient(&w, settings[i]);
        if (has_helper) test_threads_start(&helper, 1, lend_a_hand, &w);
        w.starts_late = true;
        frame(&w);
        assert_true(rig_stats(&w.rig).degraded_count >= 1);
        for (uint32_t f = 0; f < 20; ++f) frame(&w);
        assert_false(nb_task_is_complete(nb_engine_scheduler(w.rig.engine), w.late));
        nbi_atomic_store_release_u32(&w.may_end, 1);
        uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
        while (!nb_task_is_complete(nb_engine_scheduler(w.rig.engine), w.late) && nbi_clock_now_ns() < end_ns) {
            nbi_thread_yield();
        }
        nbi_atomic_store_release_u32(&w.is_over, 1);
        if (has_helper) test_threads_join(&helper, 1); // its memory is nobody's now
        frame(&w);                                     // on_complete reads what the task has left
        assert_true(w.has_told_late);
        close(&w);
    }
}

// --- every slot has late work ---

TEST(memory_of_frames_with_tickets_out_is_not_used_again) {
    static writers w;
    open_impatient(&w, settings[1]);
    w.takes_tickets = true;
    for (uint32_t f = 0; f < NB_FENCE_SLOT_COUNT_MAX + 4; ++f) frame(&w);
    assert_int_equal(w.ticket_count, NB_FENCE_SLOT_COUNT_MAX);
    assert_true(w.refused_count > 0); // the last frames have no slot, and no tasks of their own
    w.takes_tickets = false;
    for (uint32_t i = 0; i < w.ticket_count; ++i) assert_true(is_written(&w.pages_kept[i]));
    for (uint32_t i = 0; i < w.ticket_count; ++i) {
        assert_int_equal(nb_fence_return(w.fence, w.tickets[i]), NB_OK);
    }
    frame(&w);
    close(&w);
}

// --- the heap ---

TEST(frames_with_task_memory_leave_the_heap_alone) {
    static writers w;
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        open(&w, (setting){workers, false});
        w.barrier_count = workers + 1; // so that each thread runs one, in every frame
        for (uint32_t f = 0; f < 16; ++f) frame(&w);
        uint64_t calls = nbi_atomic_load_seq_cst_u64(&w.rig.heap.call_count);
        for (uint32_t f = 0; f < 50; ++f) frame(&w);
        assert_int_equal(nbi_atomic_load_seq_cst_u64(&w.rig.heap.call_count), calls);
        assert_int_equal(w.told_count, 66 * (workers + 1));
        close(&w);
    }
}

// --- whose arenas ---

TEST(engine_joins_the_arenas_that_its_scheduler_is_given) {
    static writers w;
    nb_thread_arenas *arenas = NULL;
    assert_int_equal(nb_thread_arenas_create(NULL, &arenas), NB_OK);
    nb_engine_desc desc = rig_desc(1);
    desc.scheduler_desc.arenas = arenas;
    open_desc(&w, (setting){1, false}, desc);
    uint64_t first = nb_arena_frame_number(nb_thread_arenas_frame(arenas));
    for (uint32_t f = 0; f < 5; ++f) frame(&w);
    assert_int_equal(nb_arena_frame_number(nb_thread_arenas_frame(arenas)), first + 5);
    assert_int_equal(nb_arena_frame_number(nb_fence_arena_frame(w.fence, nb_fence_current(w.fence))), first + 5);
    close(&w);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
}

// Two engines on one scheduler share its arenas: the frames of one do not end those of the other.
TEST(frames_of_another_engine_end_nobody_elses_memory) {
    static writers first, second;
    nb_engine_desc desc = rig_desc(1);
    nb_scheduler *scheduler = NULL;
    assert_int_equal(nb_scheduler_create(&desc.scheduler_desc, &scheduler), NB_OK);
    desc.scheduler = scheduler;
    open_desc(&first, (setting){1, false}, desc);
    open_desc(&second, (setting){1, false}, desc);
    for (uint32_t f = 0; f < 10; ++f) {
        frame(&first);
        for (uint32_t i = 0; i < 10; ++i) frame(&second);
        // The frame of the first has ended, and lasts until it begins the next one.
        for (uint32_t i = 0; i < 2 * TASK_COUNT; ++i) assert_true(is_written(&first.pages[i]));
    }
    close(&first);
    close(&second);
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
}
