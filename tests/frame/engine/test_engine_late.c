// SPDX-License-Identifier: MIT
// Jobs that are late at random: held back over frames, over the end of their module and of the engine. Whatever the
// threads do, a frame gets outputs of its own jobs alone, or, where the module adopts late ones, first those, each set
// once and in order, and nothing is lost or freed too early. What depends on the speed of the machine is bounded, what
// does not is exact.

#include "frame/engine/engine_fixture.h"

#define JOB_COUNT 4u
#define WORKER_COUNT 2u
#define LIMIT_NS UINT64_C(10000000000)
#define CROWD_COUNT_MAX 64u
#define FRAME_COUNT 40u // of an engine

typedef struct late_test late_test;

// One life of the module. A job that holds writes its frame + 1 into `held`, and waits for that number in `may_end`.
typedef struct crowd {
    late_test *test;
    nb_module_id handle;
    bool is_leaving; // detached, by a call between frames
    nb_atomic_u32 is_gone;
    nb_atomic_u64 held[JOB_COUNT], may_end[JOB_COUNT];
    bool adopts;         // outputs of late jobs
    uint64_t next_place; // the least that may be merged next in this frame: frame, then index
    bool is_merged[FRAME_COUNT * JOB_COUNT];
} crowd;

struct late_test {
    rig rig;
    uint64_t seed, coordinator;
    uint64_t published; // the frame's number, in the snapshot
    crowd crowds[CROWD_COUNT_MAX];
    uint32_t crowd_count;
    nb_atomic_u32 is_calm; // nobody holds any more
    nb_atomic_u64 mistakes, run_count, hold_count;
    uint64_t merge_count;
};

static void mistake_if(late_test *t, bool is_wrong) {
    if (is_wrong) nbi_atomic_fetch_add_seq_cst_u64(&t->mistakes, 1);
}

static bool wants_to_hold(late_test *t, const nb_context *context) {
    uint64_t state = t->seed ^ (context->frame_index * JOB_COUNT + context->job_index);
    if (nbi_thread_id() == t->coordinator || nbi_atomic_load_acquire_u32(&t->is_calm) != 0) return false;
    return test_random(&state) % 6 == 0;
}

static void hold(crowd *c, uint32_t job, uint64_t number) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nbi_atomic_fetch_add_seq_cst_u64(&c->test->hold_count, 1);
    nbi_atomic_exchange_seq_cst_u64(&c->held[job], number);
    while (nbi_atomic_load_acquire_u64(&c->may_end[job]) != number) {
        if (nbi_clock_now_ns() > end_ns) break;
        nbi_thread_yield();
    }
    mistake_if(c->test, nbi_clock_now_ns() > end_ns);
    nbi_atomic_exchange_seq_cst_u64(&c->held[job], 0);
}

static uint64_t snapshot_value(const nb_context *context) {
    const uint64_t *value = context->snapshot != NULL ? nb_snapshot_region(context->snapshot, 0, NULL) : NULL;
    return value != NULL ? *value : UINT64_MAX;
}

static nb_result run(const nb_context *context, void *user) {
    crowd *c = user;
    late_test *t = c->test;
    nbi_atomic_fetch_add_seq_cst_u64(&t->run_count, 1);
    uint64_t *block = nb_output_add(context, 2 * sizeof *block);
    if (block == NULL) return NB_ERR_MEMORY;
    uint64_t frame = context->frame_index, value = snapshot_value(context);
    // So that workers get their share of so little work.
    for (int i = 0; i < 20 && nbi_thread_id() == t->coordinator; ++i) nbi_thread_yield();
    if (wants_to_hold(t, context)) hold(c, context->job_index, frame + 1);
    // Its own frame's, however late it is.
    mistake_if(t, context->frame_index != frame || context->time->index != frame);
    mistake_if(t, snapshot_value(context) != value);
    mistake_if(t, nb_context_check(context, NB_LAYER_FRAME) != NB_OK);
    mistake_if(t, nbi_atomic_load_seq_cst_u32(&c->is_gone) != 0);
    block[0] = frame, block[1] = context->job_index;
    return NB_OK;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    crowd *c = user;
    late_test *t = c->test;
    const uint64_t *block = nb_output_list_next(outputs, NULL, NULL);
    uint64_t made_in = context->frame_index - context->job_age, place = made_in * JOB_COUNT + context->job_index;
    mistake_if(t, block == NULL || block[0] != made_in || block[1] != context->job_index);
    mistake_if(t, context->job_age != 0 && !c->adopts);
    mistake_if(t, place < c->next_place || c->is_merged[place]);
    c->next_place = place + 1;
    c->is_merged[place] = true;
    if (context->job_age == 0) ++t->merge_count;
    return NB_OK;
}

static void on_detach(nb_engine *engine, void *user) {
    crowd *c = user;
    (void)engine;
    for (uint32_t i = 0; i < JOB_COUNT; ++i) {
        mistake_if(c->test, nbi_atomic_load_seq_cst_u64(&c->held[i]) != 0);
    }
    mistake_if(c->test, nbi_atomic_exchange_seq_cst_u32(&c->is_gone, 1) != 0);
}

static nb_module_desc crowd_desc(crowd *c) {
    return (nb_module_desc){.name = "crowd",
                            .parallel = run,
                            .merge = merge,
                            .job_count = JOB_COUNT,
                            .adopts_late = c->adopts,
                            .on_detach = on_detach,
                            .user = c};
}

static crowd *crowd_open(late_test *t) {
    crowd *c = &t->crowds[t->crowd_count++];
    c->test = t;
    c->adopts = (t->seed + t->crowd_count) % 2 != 0;
    c->handle = attach(&t->rig, crowd_desc(c));
    return c;
}

// Held now, and not told to end.
static bool is_blocked(const crowd *c, uint32_t job) {
    uint64_t number = nbi_atomic_load_seq_cst_u64(&c->held[job]);
    return number != 0 && nbi_atomic_load_relaxed_u64(&c->may_end[job]) != number;
}

static uint32_t blocked_count(const crowd *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < JOB_COUNT; ++i) count += is_blocked(c, i) ? 1 : 0;
    return count;
}

static void let_go(crowd *c, uint32_t job) {
    if (is_blocked(c, job)) nbi_atomic_store_release_u64(&c->may_end[job], nbi_atomic_load_seq_cst_u64(&c->held[job]));
}

static void frame(late_test *t, crowd *c) {
    nb_engine_stats before = rig_stats(&t->rig);
    uint32_t blocked = blocked_count(c);
    uint64_t merge_count = t->merge_count;
    t->published = before.frame_count;
    c->next_place = 0;
    assert_int_equal(nb_engine_frame_delta(t->rig.engine, 0), NB_OK);
    nb_engine_stats after = rig_stats(&t->rig);
    uint64_t late = after.late_job_count - before.late_job_count, started = after.job_count - before.job_count;
    assert_int_equal(late + started, JOB_COUNT);
    assert_true(late >= blocked);
    assert_true(t->merge_count - merge_count <= started);
    bool is_newly_held = false;
    for (uint32_t i = 0; i < JOB_COUNT; ++i) {
        is_newly_held = is_newly_held || nbi_atomic_load_seq_cst_u64(&c->held[i]) == before.frame_count + 1;
    }
    uint64_t degraded = after.degraded_count - before.degraded_count;
    assert_true(degraded <= 1 && (!is_newly_held || degraded == 1));
    if (degraded == 0) assert_int_equal(t->merge_count - merge_count, started);
    assert_int_equal(after.failure_count + after.violation_count, 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&t->mistakes), 0);
}

// Detaches a module, maybe while jobs of it run, and puts another of its name in its place.
static crowd *change_crowd(late_test *t, crowd *c) {
    bool is_blocked_now = blocked_count(c) != 0;
    nb_module_desc desc = crowd_desc(c);
    if (is_blocked_now) assert_int_equal(nb_engine_module_replace(t->rig.engine, c->handle, &desc), NB_BUSY);
    assert_int_equal(nb_engine_module_detach(t->rig.engine, c->handle), NB_OK);
    c->is_leaving = true;
    if (is_blocked_now) assert_int_equal(nbi_atomic_load_seq_cst_u32(&c->is_gone), 0);
    assert_int_equal(nb_engine_module_detach(t->rig.engine, c->handle), NB_ERR_STALE);
    return crowd_open(t);
}

static void late_open(late_test *t, uint64_t seed) {
    memset(t, 0, sizeof *t);
    nb_engine_desc desc = rig_desc(WORKER_COUNT);
    desc.fence_timeout_ns = 1000000;
    desc.shutdown_ns = 1000000;
    desc.is_headless = true;
    desc.output_bytes = 1 << 16;
    rig_open_desc(&t->rig, desc);
    t->seed = seed;
    t->coordinator = nbi_thread_id();
    uint32_t region = 0;
    nb_snapshot_region_desc published = {.name = "frame", .base = &t->published, .size_bytes = sizeof t->published};
    assert_int_equal(nb_snapshots_region_add(nb_engine_snapshots(t->rig.engine), &published, &region), NB_OK);
    assert_int_equal(region, 0);
}

// With jobs that still hold the engine says so; without, it ends, and everybody has left once.
static void late_close(late_test *t) {
    uint32_t blocked = 0;
    for (uint32_t i = 0; i < t->crowd_count; ++i) blocked += blocked_count(&t->crowds[i]);
    if (blocked != 0) {
        assert_int_equal(nb_engine_destroy(t->rig.engine), NB_BUSY);
        assert_true(test_log_count(&t->rig.log, NB_ITEM_ENGINE_LEFTOVER) >= 1);
    }
    nbi_atomic_store_release_u32(&t->is_calm, 1);
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    nb_result result = NB_BUSY;
    while (result == NB_BUSY && nbi_clock_now_ns() < end_ns) {
        for (uint32_t i = 0; i < t->crowd_count * JOB_COUNT; ++i) let_go(&t->crowds[i / JOB_COUNT], i % JOB_COUNT);
        result = nb_engine_destroy(t->rig.engine);
    }
    assert_int_equal(result, NB_OK);
    for (uint32_t i = 0; i < t->crowd_count; ++i) assert_int_equal(t->crowds[i].is_gone.value, 1);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&t->mistakes), 0);
    assert_int_equal(t->rig.heap.live_count.value, 0);
}

TEST(random_late_jobs_keep_the_rules) {
    static late_test test;
    late_test *t = &test;
    uint64_t seed = test_seed("random_late_jobs_keep_the_rules"), holds = 0;
    for (uint64_t i = 0; i < test_size(6, 60, 2000); ++i) {
        uint64_t random = seed + i;
        late_open(t, random);
        crowd *c = crowd_open(t);
        for (uint32_t j = 0; j < FRAME_COUNT; ++j) {
            frame(t, c);
            for (uint32_t k = 0; k < t->crowd_count * JOB_COUNT; ++k) {
                if (test_random(&random) % 4 == 0) let_go(&t->crowds[k / JOB_COUNT], k % JOB_COUNT);
            }
            if (test_random(&random) % 8 == 0) c = change_crowd(t, c);
        }
        holds += nbi_atomic_load_seq_cst_u64(&t->hold_count);
        late_close(t);
    }
    assert_true(holds > 0);
}

// --- an end that waits for ever ---

typedef struct loiterer {
    uint64_t coordinator;
    nb_atomic_u32 started, ended;
} loiterer;

// On the worker until the engine ends, and on for a while. The coordinator's waits for that one.
static nb_result loiter(const nb_context *context, void *user) {
    loiterer *l = user;
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    if (nbi_thread_id() == l->coordinator) {
        while (nbi_atomic_load_acquire_u32(&l->started) == 0 && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
        return NB_OK;
    }
    nbi_atomic_fetch_add_seq_cst_u32(&l->started, 1);
    while (!nb_token_is_cancelled(context->token) && nbi_clock_now_ns() < end_ns) nbi_thread_yield();
    for (int i = 0; i < 5000; ++i) nbi_thread_yield();
    nbi_atomic_fetch_add_seq_cst_u32(&l->ended, 1);
    return NB_OK;
}

TEST(endless_shutdown_waits_for_the_last_job) {
    rig r;
    loiterer l = {.coordinator = nbi_thread_id()};
    nb_engine_desc desc = rig_desc(1);
    desc.fence_timeout_ns = 1000000;
    desc.shutdown_ns = UINT64_MAX;
    rig_open_desc(&r, desc);
    attach(&r, (nb_module_desc){.name = "loiterer", .parallel = loiter, .job_count = 2, .user = &l});
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&l.started), 1);
    rig_close(&r);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&l.ended), 1);
}

// --- nothing to wait with ---

#define RECORD_COUNT 40u

typedef struct recorder {
    uint64_t coordinator;
    nb_atomic_u32 run_count, foreign_count;
    uint32_t submit_count;
} recorder;

static nb_result record(const nb_context *context, void *user) {
    recorder *r = user;
    (void)context;
    // Long enough for a worker to be in the middle of one that was handed to it.
    for (int i = 0; i < 200; ++i) nbi_thread_yield();
    nbi_atomic_fetch_add_seq_cst_u32(nbi_thread_id() == r->coordinator ? &r->run_count : &r->foreign_count, 1);
    return NB_OK;
}

static nb_result submit(const nb_context *context, void *user, const nb_output_list *outputs) {
    recorder *r = user;
    (void)outputs;
    return r->submit_count++ % RECORD_COUNT == context->job_index ? NB_OK : NB_ERR_MISUSE;
}

// A host that has taken every group of the scheduler costs speed, not commands.
TEST(recording_without_a_free_group_is_done_by_the_coordinator) {
    rig r;
    nb_group groups[16];
    uint32_t group_count = 0;
    recorder all = {.coordinator = nbi_thread_id()};
    nb_engine_desc desc = rig_desc(WORKER_COUNT);
    desc.scheduler_desc.group_count_max = 16;
    rig_open_desc(&r, desc);
    attach(&r, (nb_module_desc){
                   .name = "draw", .record = record, .submit = submit, .record_count = RECORD_COUNT, .user = &all});
    nb_scheduler *scheduler = nb_engine_scheduler(r.engine);
    while (group_count < 16 && nb_group_begin(scheduler, &groups[group_count]) == NB_OK) ++group_count;
    nb_group more;
    assert_int_not_equal(nb_group_begin(scheduler, &more), NB_OK);
    for (uint32_t i = 1; i <= 5; ++i) {
        assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
        assert_int_equal(nbi_atomic_load_seq_cst_u32(&all.run_count), i * RECORD_COUNT);
        assert_int_equal(all.submit_count, i * RECORD_COUNT);
    }
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&all.foreign_count), 0);
    for (uint32_t i = 0; i < group_count; ++i) {
        assert_int_equal(nb_group_end(scheduler, groups[i], NB_NEVER_NS), NB_OK);
    }
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(all.submit_count, 6 * RECORD_COUNT);
    rig_close(&r);
}
