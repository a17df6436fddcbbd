// SPDX-License-Identifier: MIT
// Outputs of late jobs that a module adopts: merged in the frame in which the job has ended, oldest first, with their
// age; over pauses, failures, loads and jumps, quarantine, and the end of the module. Without the module's wish they
// are dropped.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

#define JOB_COUNT 4u
#define WORKER_COUNT 3u
#define WORD_COUNT 32u
#define LIMIT_NS UINT64_C(20000000000)
#define MERGE_MAX 64u
#define HELD_MAX 8u

typedef struct merged {
    uint64_t frame, age; // frame: for which the outputs were made
    uint32_t index;
} merged;

// Jobs that hold do so on workers, as many as the frame asks for, until all are let go.
typedef struct town {
    rig rig;
    nb_fence *fence;
    nb_module_id handle;
    uint64_t coordinator;
    uint64_t commands_seen, value, total_count;
    nb_atomic_u32 hold_left;           // of the running frame
    nb_atomic_u32 held_count, may_end; // now, and ever
    nb_atomic_u32 mistakes;
    nb_atomic_u64 held_index[HELD_MAX]; // of the newest ones: (frame + 1) << 32 | index
    bool fails_late, fails_first_merge, sends_commands, checks_rights;
    merged merges[MERGE_MAX];
    uint32_t merge_count;
} town;

static void mistake_if(town *t, bool is_wrong) {
    if (is_wrong) nbi_atomic_fetch_add_seq_cst_u32(&t->mistakes, 1);
}

static void await(town *t, const nb_atomic_u32 *value, uint32_t least) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_acquire_u32(value) < least && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    mistake_if(t, nbi_atomic_load_acquire_u32(value) < least);
}

static bool claim_hold(town *t) {
    uint32_t left = nbi_atomic_load_relaxed_u32(&t->hold_left);
    while (left != 0) {
        if (nbi_atomic_compare_exchange_acq_rel_u32(&t->hold_left, &left, left - 1)) return true;
    }
    return false;
}

static void hold(town *t, const nb_context *context) {
    uint32_t place = nbi_atomic_fetch_add_seq_cst_u32(&t->held_count, 1);
    nbi_atomic_exchange_seq_cst_u64(&t->held_index[place % HELD_MAX],
                                    (context->frame_index + 1) << 32 | context->job_index);
    await(t, &t->may_end, place + 1);
}

static void await_no_holds_left(town *t) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    while (nbi_atomic_load_acquire_u32(&t->hold_left) != 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    mistake_if(t, nbi_atomic_load_acquire_u32(&t->hold_left) != 0);
}

static nb_result build(const nb_context *context, void *user) {
    town *t = user;
    uint64_t *words = nb_output_add(context, WORD_COUNT * sizeof *words);
    if (words == NULL) return NB_ERR_MEMORY;
    bool is_held = nbi_thread_id() != t->coordinator && claim_hold(t);
    if (is_held) hold(t, context);
    // The coordinator takes no job away from the workers that are to hold one.
    if (nbi_thread_id() == t->coordinator) await_no_holds_left(t);
    for (uint32_t i = 0; i < WORD_COUNT; ++i) words[i] = context->frame_index << 32 | context->job_index << 8 | i;
    return is_held && t->fails_late ? NB_ERR_MISUSE : NB_OK;
}

static void check_rights(town *t, const nb_context *context) {
    mistake_if(t, nb_context_check(context, NB_LAYER_SIMULATED) != NB_ERR_PERMISSION);
    mistake_if(t, nb_context_check(context, NB_LAYER_GAME) != NB_OK);
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    town *t = user;
    uint64_t frame = context->frame_index - context->job_age;
    size_t size_bytes = 0;
    const uint64_t *words = nb_output_list_next(outputs, NULL, &size_bytes);
    mistake_if(t, words == NULL || size_bytes != WORD_COUNT * sizeof *words || context->job_count != JOB_COUNT);
    for (uint32_t i = 0; i < WORD_COUNT && words != NULL; ++i) {
        mistake_if(t, words[i] != (frame << 32 | context->job_index << 8 | i));
    }
    mistake_if(t, context->phase != NB_PHASE_POST_PARALLEL || nb_output_list_next(outputs, words, NULL) != NULL);
    ++t->total_count;
    if (t->merge_count < MERGE_MAX) t->merges[t->merge_count++] = (merged){frame, context->job_age, context->job_index};
    if (t->checks_rights) check_rights(t, context);
    nb_input_event command = {.code = (uint32_t)context->job_age};
    if (t->sends_commands && context->job_age != 0) mistake_if(t, nb_context_command(context, &command) != NB_OK);
    bool fails = t->fails_first_merge;
    t->fails_first_merge = false;
    return fails ? NB_ERR_MISUSE : NB_OK;
}

static nb_result tick(const nb_context *context, void *user) {
    town *t = user;
    t->commands_seen += context->commands.count;
    return NB_OK;
}

static nb_result note_fence(const nb_context *context, void *user) {
    ((town *)user)->fence = context->fence;
    return NB_OK;
}

static nb_module_desc town_desc(town *t, bool adopts) {
    nb_module_desc desc = {.name = "town", .tick = tick, .frame = note_fence, .user = t};
    desc.parallel = build, desc.merge = merge, desc.job_count = JOB_COUNT, desc.adopts_late = adopts;
    return desc;
}

static void open_desc(town *t, bool adopts, nb_engine_desc desc) {
    memset(t, 0, sizeof *t);
    t->coordinator = nbi_thread_id();
    desc.fence_timeout_ns = 2000000;
    desc.is_headless = true;
    desc.output_bytes = 1 << 16;
    rig_open_desc(&t->rig, desc);
    t->handle = attach(&t->rig, town_desc(t, adopts));
}

static void open(town *t, bool adopts) { open_desc(t, adopts, rig_desc(WORKER_COUNT)); }

static void close(town *t) {
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&t->mistakes), 0);
    rig_close(&t->rig);
}

static uint32_t held_now(const town *t) {
    uint32_t ended = nbi_atomic_load_seq_cst_u32(&t->may_end);
    return nbi_atomic_load_seq_cst_u32(&t->held_count) - ended;
}

// Until only those that hold are left of what the scheduler has to do.
static void settle(const town *t) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nb_scheduler *scheduler = nb_engine_scheduler(t->rig.engine);
    while (nb_scheduler_stats_get(scheduler).alive_count != held_now(t) && nbi_clock_now_ns() < end_ns) {
        nbi_thread_yield();
    }
    assert_int_equal(nb_scheduler_stats_get(scheduler).alive_count, held_now(t));
}

static void let_go(town *t) {
    nbi_atomic_exchange_seq_cst_u32(&t->may_end, nbi_atomic_load_seq_cst_u32(&t->held_count));
    settle(t);
}

// By frame, then by index: adopted outputs, oldest first, and then the frame's own. On a busy machine there may be more
// late ones than the test has asked for, and fewer of its own.
static void assert_in_order(const town *t) {
    for (uint32_t i = 1; i < t->merge_count; ++i) {
        const merged *m = &t->merges[i], *before = m - 1;
        assert_true(m->frame > before->frame || (m->frame == before->frame && m->index > before->index));
    }
}

// So many of its jobs do not end before the frame. One that ended before they had begun is followed by another one.
static void frame(town *t, uint32_t hold_count) {
    nbi_atomic_exchange_seq_cst_u32(&t->hold_left, hold_count);
    do {
        t->merge_count = 0;
        assert_int_equal(nb_engine_frame_delta(t->rig.engine, 0), NB_OK);
        assert_in_order(t);
        if (hold_count != 0) settle(t);
    } while (nbi_atomic_load_seq_cst_u32(&t->hold_left) != 0);
}

static nb_result failing_frame(town *t) {
    t->merge_count = 0;
    return nb_engine_frame_delta(t->rig.engine, 0);
}

// How often the outputs of a job that was held were merged in the newest frame.
static uint32_t merged_count(const town *t, uint32_t place) {
    uint64_t job = nbi_atomic_load_seq_cst_u64(&t->held_index[place % HELD_MAX]);
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->merge_count; ++i) {
        const merged *m = &t->merges[i];
        count += ((m->frame + 1) << 32 | m->index) == job && m->age != 0 ? 1 : 0;
    }
    return count;
}

static uint32_t own_count(const town *t) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->merge_count; ++i) count += t->merges[i].age == 0 ? 1 : 0;
    return count;
}

TEST(late_outputs_are_adopted_oldest_first_then_by_index) {
    static town t;
    open(&t, true);
    t.checks_rights = true;
    frame(&t, 1);
    frame(&t, 2);
    assert_int_equal(held_now(&t), 3);
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(merged_count(&t, i), 0);
    let_go(&t);
    nb_engine_stats before = rig_stats(&t.rig);
    assert_int_equal(nb_loop_pause(nb_engine_loop(t.rig.engine)), NB_OK);
    frame(&t, 0);
    nb_engine_stats after = rig_stats(&t.rig);
    assert_int_equal(after.job_count - before.job_count, JOB_COUNT); // every place is free again
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(merged_count(&t, i), 1);
    assert_int_equal(after.adopted_count - before.adopted_count, t.merge_count - own_count(&t));
    assert_int_equal(after.late_drop_count, 0);
    settle(&t);
    frame(&t, 0);
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(merged_count(&t, i), 0); // once
    settle(&t);
    close(&t);
}

TEST(late_outputs_are_dropped_where_nobody_adopts_them) {
    static town t;
    open(&t, false);
    frame(&t, 1);
    frame(&t, 2);
    let_go(&t);
    frame(&t, 0);
    assert_int_equal(own_count(&t), t.merge_count);
    assert_int_equal(rig_stats(&t.rig).adopted_count, 0);
    assert_true(rig_stats(&t.rig).late_drop_count >= 3);
    settle(&t);
    close(&t);
}

// Each frame adopts what the one before it has left, and has late jobs of its own: two sets of outputs for a place.
TEST(a_place_that_is_late_in_every_frame_loses_nothing) {
    static town t;
    open(&t, true);
    for (uint32_t f = 0; f < 20; ++f) {
        frame(&t, 2);
        let_go(&t);
    }
    frame(&t, 0);
    assert_int_equal(merged_count(&t, 38) + merged_count(&t, 39), 2);
    assert_true(rig_stats(&t.rig).adopted_count >= 20 * 2);
    assert_int_equal(rig_stats(&t.rig).late_drop_count, 0);
    settle(&t);
    close(&t);
}

// What late outputs change of the simulation goes through commands of a later tick.
TEST(commands_of_adopted_outputs_reach_a_tick) {
    static town t;
    open(&t, true);
    t.sends_commands = true;
    frame(&t, 2);
    let_go(&t);
    frame(&t, 0);
    assert_int_equal(t.commands_seen, 0);
    settle(&t);
    run_ticks(&t.rig, 1);
    assert_true(t.commands_seen >= 2);
    settle(&t);
    close(&t);
}

// --- failures ---

TEST(failed_late_job_is_a_failure_of_the_frame_it_returns_in) {
    static town t;
    open(&t, true);
    t.fails_late = true;
    frame(&t, 1);
    let_go(&t);
    assert_int_equal(rig_stats(&t.rig).failure_count, 0);
    assert_int_equal(failing_frame(&t), NB_ERR_MISUSE);
    assert_int_equal(rig_stats(&t.rig).failure_count, 1);
    assert_int_equal(rig_stats(&t.rig).late_drop_count, 1);
    assert_int_equal(own_count(&t) + merged_count(&t, 0), 0);
    settle(&t);
    frame(&t, 0);
    assert_int_equal(merged_count(&t, 0), 0);
    settle(&t);
    close(&t);
}

// The rest of what is there is merged in the next frame.
TEST(failed_merge_keeps_the_other_late_outputs) {
    static town t;
    open(&t, true);
    frame(&t, 2);
    let_go(&t);
    t.fails_first_merge = true;
    assert_int_equal(failing_frame(&t), NB_ERR_MISUSE);
    assert_int_equal(t.merge_count, 1);
    uint32_t first = merged_count(&t, 0), second = merged_count(&t, 1);
    settle(&t);
    frame(&t, 0);
    assert_int_equal(first + merged_count(&t, 0), 1);
    assert_int_equal(second + merged_count(&t, 1), 1);
    settle(&t);
    close(&t);
}

// --- loads and jumps ---

typedef enum cut { CUT_LOAD, CUT_REWIND, CUT_SET_TICK, CUT_COUNT } cut;

static void make_cut(town *t, uint32_t by, const void *save, size_t save_bytes) {
    nb_engine *engine = t->rig.engine;
    if (by == CUT_LOAD) assert_int_equal(nb_states_load(nb_engine_states(engine), save, save_bytes), NB_OK);
    if (by == CUT_REWIND) assert_int_equal(nb_engine_rewind(engine, 2), NB_OK);
    if (by == CUT_SET_TICK) assert_int_equal(nb_engine_set_tick(engine, 1000), NB_OK);
}

// is_running: while the late jobs run; else when they have returned and nothing has looked at what they have made.
static void late_outputs_do_not_survive_a_cut(uint32_t by, bool is_running) {
    static town t;
    nb_engine_desc desc = rig_desc(WORKER_COUNT);
    unsigned char save[1024];
    size_t save_bytes = 0;
    desc.keeps_history = true;
    open_desc(&t, true, desc);
    nb_provider_desc provider = {.name = "value", .data = &t.value, .size_bytes = sizeof t.value};
    assert_int_equal(nb_states_add(nb_engine_states(t.rig.engine), &provider, NULL), NB_OK);
    run_ticks(&t.rig, 4);
    settle(&t);
    assert_int_equal(nb_states_save(nb_engine_states(t.rig.engine), save, sizeof save, &save_bytes), NB_OK);
    frame(&t, 2);
    if (is_running) make_cut(&t, by, save, save_bytes);
    if (is_running) frame(&t, 0);
    let_go(&t);
    if (!is_running) make_cut(&t, by, save, save_bytes);
    frame(&t, 0);
    assert_int_equal(merged_count(&t, 0) + merged_count(&t, 1), 0);
    assert_true(rig_stats(&t.rig).late_drop_count >= 2);
    settle(&t);
    close(&t);
}

TEST(late_outputs_of_an_abandoned_run_are_dropped) {
    for (uint32_t by = 0; by < CUT_COUNT; ++by) {
        late_outputs_do_not_survive_a_cut(by, false);
        late_outputs_do_not_survive_a_cut(by, true);
    }
}

// --- the module ---

TEST(module_takes_its_late_outputs_along) {
    static town t;
    for (int is_replaced = 0; is_replaced <= 1; ++is_replaced) {
        open(&t, true);
        frame(&t, 2);
        let_go(&t);
        nb_module_desc desc = town_desc(&t, true);
        if (is_replaced)
            assert_int_equal(nb_engine_module_replace(t.rig.engine, t.handle, &desc), NB_OK);
        else
            assert_int_equal(nb_engine_module_detach(t.rig.engine, t.handle), NB_OK);
        frame(&t, 0);
        assert_int_equal(merged_count(&t, 0) + merged_count(&t, 1), 0);
        assert_true(rig_stats(&t.rig).late_drop_count >= 2);
        settle(&t);
        close(&t);
    }
}

// In quarantine no frame waits for the jobs, and what they make is late, but not lost.
TEST(outputs_of_jobs_in_quarantine_are_adopted) {
    static town t;
    nb_engine_desc desc = rig_desc(WORKER_COUNT);
    desc.strike_count_max = 1;
    open_desc(&t, true, desc);
    frame(&t, 1);
    let_go(&t);
    assert_int_equal(rig_stats(&t.rig).quarantine_count, 1);
    uint64_t degraded = rig_stats(&t.rig).degraded_count, total = t.total_count;
    for (uint32_t f = 0; f < 10; ++f) {
        frame(&t, 0);
        settle(&t); // all have returned
    }
    frame(&t, 0);
    assert_int_equal(rig_stats(&t.rig).degraded_count, degraded);
    assert_int_equal(rig_stats(&t.rig).late_drop_count, 0);
    assert_true(t.total_count - total >= 10 * JOB_COUNT); // none is lost
    assert_int_equal(nb_fence_forgive(t.fence, true), NB_OK);
    settle(&t);
    close(&t);
}

TEST(adopting_frames_leave_the_heap_alone) {
    static town t;
    open(&t, true);
    uint64_t calls = 0;
    for (uint32_t f = 0; f < 20; ++f) {
        if (f == 6) calls = nbi_atomic_load_seq_cst_u64(&t.rig.heap.call_count);
        frame(&t, 1);
        let_go(&t);
    }
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&t.rig.heap.call_count), calls);
    close(&t);
}
