// SPDX-License-Identifier: MIT
// Races of the scheduler. Each test here has mutants in tests/mutants that it must catch. Threads and tasks count
// failures instead of asserting, because cmocka may only be left from the main thread.

#define _POSIX_C_SOURCE 200809L // opendir

#include "tasks/tasks_fixture.h"

#include <dirent.h>

#include "nebula/fence.h"

static nb_atomic_u32 failures;

static void expect_at(bool condition, const char *what, int line) {
    if (condition) return;
    if (nbi_atomic_fetch_add_seq_cst_u32(&failures, 1) < 5) fprintf(stderr, "line %d: %s\n", line, what);
}
#define expect(condition) expect_at((condition), #condition, __LINE__)

static void stress_begin(void) { nbi_atomic_store_relaxed_u32(&failures, 0); }
static bool has_failed(void) { return nbi_atomic_load_relaxed_u32(&failures) != 0; }

static void pause_for(uint64_t *random, uint64_t length_max) {
    uint64_t length = test_random(random) % length_max;
    for (uint64_t i = 0; i < length; ++i) nbi_cpu_relax();
}

// --- a worker that is about to sleep ---

static void run_stamp(nb_task_context *context, void *argument) {
    (void)context;
    event_set(pointer_of(argument));
}

// The pause goes through all lengths around the time after which a worker sleeps.
static void submit_one_by_one(tasks *t, uint64_t rounds, uint64_t seed) {
    event runs = {0}, *pointer = &runs;
    nb_task_desc desc = {.run = run_stamp, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    for (uint32_t i = 0; i < rounds && !has_failed(); ++i) {
        uint64_t start_ns = nbi_clock_now_ns();
        expect(nb_task_submit(t->scheduler, &desc, NULL) == NB_OK);
        expect(event_await(&runs, i + 1));
        expect(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
        uint64_t until_ns = nbi_clock_now_ns() + test_random(&seed) % 40000;
        while (nbi_clock_now_ns() < until_ns) nbi_cpu_relax();
    }
}

typedef struct parking {
    tasks *t;
    uint64_t rounds;
} parking;

static void submit_from_outside(void *user, uint32_t index) {
    parking *p = user;
    submit_one_by_one(p->t, p->rounds, 77 + index);
}

// T3, from the coordinator and from threads that are not attached.
TEST(submit_reaches_a_worker_that_is_about_to_sleep) {
    uint64_t rounds = test_size(2000, 20000, 1000000), seed = test_seed("submit_reaches_a_worker");
    stress_begin();
    for (uint32_t workers = 1; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        submit_one_by_one(t, rounds, seed);
        parking p = {t, rounds};
        test_threads_run(2, submit_from_outside, &p);
        assert_int_equal(failures.value, 0);
        assert_true(parks_of(t, 1) > 0);
        tasks_close(t);
    }
}

// --- strict priority under load ---

typedef struct flood {
    nb_atomic_u32 low_started, low_at_critical;
    event critical, go;
} flood;

static void run_low(nb_task_context *context, void *argument) {
    (void)context;
    flood *f = pointer_of(argument);
    nbi_atomic_fetch_add_seq_cst_u32(&f->low_started, 1);
}

static void run_low_until(nb_task_context *context, void *argument) {
    run_low(context, argument);
    expect(event_await(&((flood *)pointer_of(argument))->go, 1));
}

static void run_critical(nb_task_context *context, void *argument) {
    (void)context;
    flood *f = pointer_of(argument);
    nbi_atomic_store_relaxed_u32(&f->low_at_critical, nbi_atomic_load_seq_cst_u32(&f->low_started));
    event_set(&f->critical);
}

// T4: one worker, so at most the one Low task that it had chosen already comes first.
TEST(critical_overtakes_a_flood_of_low) {
    uint32_t count = (uint32_t)test_size(4000, 20000, 100000);
    uint64_t rounds = test_size(5, 20, 200), seed = test_seed("critical_overtakes_a_flood_of_low");
    for (uint64_t round = 0; round < rounds; ++round) {
        tasks *t = tasks_open_desc((nb_scheduler_desc){.worker_count = 1});
        flood f = {0};
        // In turns: a worker that is held until all is there, and one that is in the middle of it, or has done it all.
        bool is_held = round % 2 == 0;
        submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, is_held ? run_low_until : run_low, &f);
        if (is_held) AWAIT(nbi_atomic_load_seq_cst_u32(&f.low_started) == 1);
        for (uint32_t i = 1; i < count; ++i) {
            submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, run_low, &f);
        }
        if (!is_held) pause_for(&seed, 20000);
        submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_CRITICAL}, run_critical, &f);
        uint32_t before = nbi_atomic_load_seq_cst_u32(&f.low_started);
        event_set(&f.go);
        assert_true(event_await(&f.critical, 1));
        assert_in_range(f.low_at_critical.value, 0, before + 1);
        AWAIT(nbi_atomic_load_seq_cst_u32(&f.low_started) == count);
        tasks_close(t);
    }
}

// --- each task once ---

#define MIX_TASKS 512
#define MIX_THREADS 3

typedef struct mix {
    tasks *t;
    nb_task handles[MIX_TASKS];
    nb_atomic_u32 runs[MIX_TASKS], cancels[MIX_TASKS], claims[MIX_TASKS];
    nb_token *token;
    uint64_t seed;
    test_gate gate;
    nb_cancel_counts counts;
} mix;

typedef struct mix_entry {
    mix *m;
    uint32_t index;
} mix_entry;

static void run_mix(nb_task_context *context, void *argument) {
    (void)context;
    mix_entry entry;
    memcpy(&entry, argument, sizeof entry);
    nbi_atomic_fetch_add_relaxed_u32(&entry.m->runs[entry.index], 1);
}

// Does all that can be done to tasks by their handles, in an order of its own.
static void meddle(void *user, uint32_t index) {
    mix *m = user;
    nb_scheduler *scheduler = m->t->scheduler;
    uint64_t random = m->seed + index;
    test_gate_pass(&m->gate, MIX_THREADS + 1);
    for (uint32_t i = 0; i < MIX_TASKS; ++i) {
        uint32_t at = (uint32_t)test_random(&random) % MIX_TASKS;
        nb_task task = m->handles[at];
        uint64_t what = test_random(&random) % 8;
        if (what <= 1 && nb_task_cancel(scheduler, task) == NB_OK) {
            nbi_atomic_fetch_add_relaxed_u32(&m->cancels[at], 1);
        } else if (what <= 3 && nb_task_claim(scheduler, task) == NB_OK) {
            nbi_atomic_fetch_add_relaxed_u32(&m->claims[at], 1);
        } else if (what <= 5) {
            nb_result result = nb_task_promote(scheduler, task, (nb_priority)(1 + test_random(&random) % 4));
            expect(result == NB_OK || result == NB_BUSY || result == NB_EMPTY || result == NB_FULL);
        } else if (what == 6) {
            expect(nb_task_wait(scheduler, task, nbi_clock_now_ns() + LIMIT_NS) == NB_OK);
            expect(nb_task_is_complete(scheduler, task));
        }
    }
    if (index == 0) nb_token_cancel(m->token, NB_CANCEL_STALE, 0, &m->counts);
}

static void mix_submit(mix *m, nb_group group) {
    for (uint32_t i = 0; i < MIX_TASKS; ++i) {
        mix_entry entry = {m, i};
        nb_task_desc desc = {.run = run_mix,
                             .argument = &entry,
                             .argument_size_bytes = sizeof entry,
                             .group = group,
                             .token = i % 2 == 0 ? m->token : NULL,
                             .priority = (nb_priority)(1 + i % 4)};
        expect(nb_task_submit(m->t->scheduler, &desc, &m->handles[i]) == NB_OK);
    }
}

static void mix_inspect(const mix *m) {
    uint32_t stopped = 0;
    for (uint32_t i = 0; i < MIX_TASKS; ++i) {
        uint32_t runs = m->runs[i].value, cancels = m->cancels[i].value, claims = m->claims[i].value;
        expect(runs + cancels <= 1);
        expect(claims <= 1 && claims + cancels <= 1);
        expect(nb_task_is_complete(m->t->scheduler, m->handles[i]));
        // Only a token stops a task without anybody's cancel.
        if (runs + cancels == 0) ++stopped;
        expect(runs + cancels == 1 || i % 2 == 0);
    }
    expect(stopped <= m->counts.task_queued_count);
}

TEST(task_ends_once_whoever_meddles) {
    uint64_t rounds = test_size(30, 300, 20000), seed = test_seed("task_ends_once_whoever_meddles");
    static mix m;
    stress_begin();
    for (uint32_t workers = 0; workers <= 3 && !has_failed(); ++workers) {
        tasks *t = tasks_open(workers);
        nb_token_desc token_desc = {.hooks = test_hooks(NULL, &t->heap)};
        for (uint64_t round = 0; round < rounds && !has_failed(); ++round) {
            memset(&m, 0, sizeof m);
            m.t = t, m.seed = test_random(&seed);
            nb_group group = {0};
            expect(nb_token_create(&token_desc, &m.token) == NB_OK);
            expect(nb_group_begin(t->scheduler, &group) == NB_OK);
            nb_scheduler_stats before = stats_of(t);
            test_thread threads[MIX_THREADS];
            mix_submit(&m, group);
            test_threads_start(threads, MIX_THREADS, meddle, &m);
            test_gate_pass(&m.gate, MIX_THREADS + 1);
            nb_result result = nb_group_end(t->scheduler, group, nbi_clock_now_ns() + LIMIT_NS);
            expect(result == NB_OK || result == NB_CANCELLED);
            test_threads_join(threads, MIX_THREADS);
            mix_inspect(&m);
            nb_scheduler_stats after = stats_of(t);
            expect(after.submit_count - before.submit_count == MIX_TASKS);
            expect(after.run_count - before.run_count + after.cancel_count - before.cancel_count == MIX_TASKS);
            nb_token_release(m.token);
        }
        assert_int_equal(failures.value, 0);
        tasks_close(t);
    }
}

// What the cancel counted as queued never ran, all else did.
TEST(cancel_in_the_middle_counts_exactly) {
    uint64_t rounds = test_size(200, 2000, 100000), seed = test_seed("cancel_in_the_middle_counts_exactly");
    for (uint32_t workers = 1; workers <= 3; ++workers) {
        tasks *t = tasks_open(workers);
        nb_token_desc token_desc = {.hooks = test_hooks(NULL, &t->heap)};
        for (uint64_t round = 0; round < rounds; ++round) {
            nb_token *token = NULL;
            event runs = {0};
            nb_cancel_counts counts = {0};
            assert_int_equal(nb_token_create(&token_desc, &token), NB_OK);
            nb_group group = group_begin(t);
            for (int i = 0; i < 50; ++i) {
                submit_pointer(t, (nb_task_desc){.token = token, .group = group}, run_event, &runs);
            }
            pause_for(&seed, 300);
            assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts), NB_OK);
            nb_result result = nb_group_end(t->scheduler, group, NB_NEVER_NS);
            assert_int_equal(event_count(&runs) + counts.task_queued_count, 50);
            assert_int_equal(result, counts.task_queued_count != 0 ? NB_CANCELLED : NB_OK);
            nb_token_release(token);
        }
        tasks_close(t);
    }
}

// --- nested waits ---

typedef struct fib {
    uint32_t n;
    bool by_handle; // waits for one child by its handle
    uint64_t *out;
} fib;

static void run_fib(nb_task_context *context, void *argument) {
    fib self;
    memcpy(&self, argument, sizeof self);
    if (self.n < 2) {
        if (self.n == 0) nbi_thread_yield(); // who waits for it may run meanwhile, on one core too
        *self.out = self.n;
        return;
    }
    uint64_t values[2] = {0, 0};
    fib children[2] = {{self.n - 1, !self.by_handle, &values[0]}, {self.n - 2, self.by_handle, &values[1]}};
    nb_scheduler *scheduler = context->scheduler;
    nb_task tasks_of[2] = {{0}, {0}};
    nb_group group = {0};
    if (!self.by_handle) expect(nb_group_begin(scheduler, &group) == NB_OK);
    for (int i = 0; i < 2; ++i) {
        nb_task_desc desc = {
            .run = run_fib, .argument = &children[i], .argument_size_bytes = sizeof children[i], .group = group};
        expect(nb_task_submit(scheduler, &desc, self.by_handle ? &tasks_of[i] : NULL) == NB_OK);
    }
    for (int i = 0; i < 2 && self.by_handle; ++i) expect(nb_task_wait(scheduler, tasks_of[i], NB_NEVER_NS) == NB_OK);
    if (!self.by_handle) expect(nb_group_end(scheduler, group, NB_NEVER_NS) == NB_OK);
    *self.out = values[0] + values[1];
}

TEST(nested_waits_compute_the_right_value) {
    uint64_t rounds = test_size(5, 40, 2000);
    stress_begin();
    for (uint32_t workers = 0; workers <= 4; ++workers) {
        tasks *t = tasks_open(workers);
        for (uint64_t round = 0; round < rounds; ++round) {
            uint64_t value = 0;
            fib root = {17, round % 2 == 0, &value};
            nb_task_desc desc = {.run = run_fib, .argument = &root, .argument_size_bytes = sizeof root};
            nb_task task = {0};
            assert_int_equal(nb_task_submit(t->scheduler, &desc, &task), NB_OK);
            assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
            assert_int_equal(value, 1597);
        }
        assert_int_equal(failures.value, 0);
        tasks_close(t);
    }
}

// --- frames ---

#define FRAME_TASKS 24
typedef struct frame_work {
    uint64_t values[FRAME_TASKS * 2]; // plain memory: only the fence orders it
    uint64_t frame;
} frame_work;

typedef struct frame_entry {
    frame_work *work;
    uint32_t index;
    bool spawns;
} frame_entry;

static void run_frame_task(nb_task_context *context, void *argument) {
    frame_entry entry;
    memcpy(&entry, argument, sizeof entry);
    entry.work->values[entry.index] = entry.work->frame * 1000 + entry.index;
    if (!entry.spawns) return;
    frame_entry child = {entry.work, entry.index + FRAME_TASKS, false};
    nb_task_desc desc = {.run = run_frame_task,
                         .argument = &child,
                         .argument_size_bytes = sizeof child,
                         .priority = NB_PRIORITY_CRITICAL};
    expect(nb_task_submit(context->scheduler, &desc, NULL) == NB_OK);
}

static void frame_submit(tasks *t, nb_fence *fence, frame_work *work) {
    for (uint32_t i = 0; i < FRAME_TASKS; ++i) {
        frame_entry entry = {work, i, i % 2 == 0};
        nb_task_desc desc = {.run = run_frame_task,
                             .argument = &entry,
                             .argument_size_bytes = sizeof entry,
                             .fence = fence,
                             .priority = NB_PRIORITY_CRITICAL};
        assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    }
}

// B1: no wait returns early, none is late by more than a second.
TEST(fence_waits_for_every_task_of_every_frame) {
    uint64_t frames = test_size(1500, 20000, 2500000), seed = test_seed("fence_waits_for_every_task");
    stress_begin();
    static const uint32_t worker_counts[] = {1, 2, 4, 8};
    for (int i = 0; i < 4; ++i) {
        tasks *t = tasks_open(worker_counts[i]);
        nb_fence *fence = NULL;
        nb_fence_desc fence_desc = {.hooks = test_hooks(&t->log, &t->heap)};
        assert_int_equal(nb_fence_create(&fence_desc, &fence), NB_OK);
        static frame_work work;
        for (uint64_t number = 1; number <= frames; ++number) {
            nb_fence_frame frame;
            memset(&work, 0, sizeof work);
            work.frame = number;
            assert_int_equal(nb_fence_begin(fence, &frame), NB_OK);
            frame_submit(t, fence, &work);
            pause_for(&seed, 200);
            uint64_t start_ns = nbi_clock_now_ns();
            assert_int_equal(nb_scheduler_frame_wait(t->scheduler, fence, frame, start_ns + LIMIT_NS, NULL), NB_OK);
            uint64_t waited_ns = nbi_clock_now_ns() - start_ns;
            if (waited_ns > WAKE_LIMIT_NS) {
                fail_msg("frame %u of %u workers: waited %u ms", (unsigned)number, (unsigned)worker_counts[i],
                         (unsigned)(waited_ns / 1000000));
            }
            for (uint32_t k = 0; k < FRAME_TASKS; ++k) {
                assert_int_equal(work.values[k], number * 1000 + k);
                if (k % 2 == 0) assert_int_equal(work.values[k + FRAME_TASKS], number * 1000 + k + FRAME_TASKS);
            }
        }
        assert_int_equal(failures.value, 0);
        assert_int_equal(nb_fence_destroy(fence), NB_OK);
        tasks_close(t);
    }
}

// --- groups used again at once ---

typedef struct group_entry {
    nb_atomic_u32 *live; // tasks of this group that have not run
} group_entry;

static void run_group_task(nb_task_context *context, void *argument) {
    (void)context;
    group_entry entry;
    memcpy(&entry, argument, sizeof entry);
    nbi_atomic_fetch_sub_seq_cst_u32(entry.live, 1);
}

static void cycle_group(nb_scheduler *scheduler, uint32_t count) {
    nb_atomic_u32 live = {count};
    nb_group group = {0};
    expect(nb_group_begin(scheduler, &group) == NB_OK);
    group_entry entry = {&live};
    nb_task_desc desc = {
        .run = run_group_task, .argument = &entry, .argument_size_bytes = sizeof entry, .group = group};
    for (uint32_t i = 0; i < count; ++i) expect(nb_task_submit(scheduler, &desc, NULL) == NB_OK);
    expect(nb_group_end(scheduler, group, nbi_clock_now_ns() + LIMIT_NS) == NB_OK);
    expect(nbi_atomic_load_seq_cst_u32(&live) == 0);
}

typedef struct cycles {
    tasks *t;
    uint64_t rounds;
    test_gate gate;
} cycles;

static void cycle_groups(void *user, uint32_t index) {
    cycles *c = user;
    bool is_attached = index % 2 == 0 && nb_scheduler_attach(c->t->scheduler) == NB_OK;
    test_gate_pass(&c->gate, 5);
    for (uint64_t i = 0; i < c->rounds && !has_failed(); ++i) cycle_group(c->t->scheduler, (uint32_t)(1 + i % 3));
    if (is_attached) expect(nb_scheduler_detach(c->t->scheduler) == NB_OK);
}

TEST(group_may_be_used_again_at_once) {
    uint64_t rounds = test_size(5000, 40000, 1000000);
    stress_begin();
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open_desc((nb_scheduler_desc){
            .worker_count = worker_count_of(workers), .task_count_max = 256, .group_count_max = 24});
        cycles c = {.t = t, .rounds = rounds};
        test_thread threads[4];
        test_threads_start(threads, 4, cycle_groups, &c);
        test_gate_pass(&c.gate, 5);
        for (uint64_t i = 0; i < rounds && !has_failed(); ++i) cycle_group(t->scheduler, (uint32_t)(1 + i % 3));
        test_threads_join(threads, 4);
        assert_int_equal(failures.value, 0);
        tasks_close(t);
    }
}

// --- a submit from outside into a group that is being ended ---

typedef struct late_submit {
    tasks *t;
    nb_group group;
    nb_atomic_u32 accepted, ran, round;
    uint64_t rounds;
    event begun, done;
} late_submit;

static void run_late(nb_task_context *context, void *argument) {
    (void)context;
    late_submit *l = pointer_of(argument);
    nbi_thread_yield();
    nbi_atomic_fetch_add_seq_cst_u32(&l->ran, 1);
}

static void submit_late(void *user, uint32_t index) {
    (void)index;
    late_submit *l = user;
    nb_task_desc desc = {.run = run_late, .argument = &user, .argument_size_bytes = sizeof user};
    for (uint32_t round = 1; round <= l->rounds; ++round) {
        if (!event_await(&l->begun, round)) return;
        desc.group = l->group;
        for (int i = 0; i < 1000; ++i) {
            nb_result result = nb_task_submit(l->t->scheduler, &desc, NULL);
            if (result == NB_FULL) continue;
            if (result != NB_OK) {
                expect(result == NB_CLOSED || result == NB_ERR_STALE);
                break;
            }
            nbi_atomic_fetch_add_seq_cst_u32(&l->accepted, 1);
        }
        event_set(&l->done);
    }
}

// Accepted means waited for: when the end has returned, every task that was let in has run.
TEST(submit_into_a_group_that_is_being_ended) {
    stress_begin();
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        static late_submit l;
        memset(&l, 0, sizeof l);
        l.t = t, l.rounds = test_size(600, 6000, 300000);
        test_thread thread;
        test_threads_start(&thread, 1, submit_late, &l);
        uint32_t early = 0;
        for (uint32_t round = 1; round <= l.rounds; ++round) {
            l.group = group_begin(t);
            submit_pointer(t, (nb_task_desc){.group = l.group}, run_event, &(event){0});
            event_set(&l.begun);
            nb_result result = nb_group_end(t->scheduler, l.group, nbi_clock_now_ns() + LIMIT_NS);
            uint32_t ran = nbi_atomic_load_seq_cst_u32(&l.ran);
            // Nothing more can be let in; what was is counted by the submitter a moment later.
            if (result != NB_OK || !event_await(&l.done, round)) break;
            if (ran != nbi_atomic_load_seq_cst_u32(&l.accepted)) ++early;
        }
        test_threads_join(&thread, 1);
        assert_int_equal(early, 0);
        assert_int_equal(failures.value, 0);
        assert_int_equal(event_count(&l.done), l.rounds);
        tasks_close(t);
    }
}

// --- waiting by handle, with slots that are used again at once ---

typedef struct watch {
    tasks *t;
    nb_atomic_u64 handle;
    event submitted;
    nb_atomic_u32 is_over;
} watch;

static void watch_tasks(void *user, uint32_t index) {
    (void)index;
    watch *w = user;
    for (uint32_t seen = 0; nbi_atomic_load_acquire_u32(&w->is_over) == 0 && !has_failed();) {
        expect(event_await(&w->submitted, seen + 1));
        seen = event_count(&w->submitted);
        nb_task task = {nbi_atomic_load_acquire_u64(&w->handle)};
        uint64_t start_ns = nbi_clock_now_ns();
        expect(nb_task_wait(w->t->scheduler, task, start_ns + LIMIT_NS) == NB_OK);
        expect(nbi_clock_now_ns() - start_ns < WAKE_LIMIT_NS);
        expect(nb_task_is_complete(w->t->scheduler, task));
    }
}

static void run_short(nb_task_context *context, void *argument) {
    (void)context;
    uint64_t until_ns = nbi_clock_now_ns() + 60000; // longer than a waiting thread spins, so that it sleeps
    event *runs = pointer_of(argument);
    if (event_count(runs) % 4 == 0) {
        while (nbi_clock_now_ns() < until_ns) nbi_thread_yield();
    }
    nbi_atomic_fetch_add_seq_cst_u32(&runs->count, 1);
}

TEST(waiters_on_handles_see_every_end) {
    uint64_t rounds = test_size(1500, 15000, 500000);
    stress_begin();
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open_room(workers, 8);
        watch w = {.t = t};
        event runs = {0};
        test_thread threads[3];
        test_threads_start(threads, 3, watch_tasks, &w);
        for (uint64_t i = 0; i < rounds && !has_failed(); ++i) {
            event *pointer = &runs;
            nb_task_desc desc = {.run = run_short, .argument = &pointer, .argument_size_bytes = sizeof pointer};
            nb_task task = {0};
            nb_result result = nb_task_submit(t->scheduler, &desc, &task);
            if (result == NB_FULL) {
                --i;
                nbi_thread_yield();
                continue;
            }
            expect(result == NB_OK);
            nbi_atomic_store_release_u64(&w.handle, task.value);
            event_set(&w.submitted);
            if (i % 2 == 0) expect(nb_task_wait(t->scheduler, task, nbi_clock_now_ns() + LIMIT_NS) == NB_OK);
        }
        nbi_atomic_store_release_u32(&w.is_over, 1);
        event_set(&w.submitted);
        test_threads_join(threads, 3);
        while (nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL) == NB_OK) {
        }
        AWAIT(stats_of(t).alive_count == 0);
        assert_int_equal(failures.value, 0);
        assert_int_equal(event_count(&runs), rounds);
        tasks_close(t);
    }
}

// --- threads that come and go ---

#define GUEST_TASKS 8
typedef struct guests {
    tasks *t;
    uint64_t rounds;
    nb_atomic_u32 ran;
} guests;

static void run_guest_task(nb_task_context *context, void *argument) {
    (void)context;
    guests *g = pointer_of(argument);
    nbi_atomic_fetch_add_relaxed_u32(&g->ran, 1);
}

static void come_and_go(void *user, uint32_t index) {
    guests *g = user;
    uint64_t random = index;
    nb_task_desc desc = {.run = run_guest_task, .argument = &user, .argument_size_bytes = sizeof user};
    for (uint64_t i = 0; i < g->rounds; ++i) {
        bool is_attached = test_random(&random) % 2 == 0;
        if (is_attached) expect(nb_scheduler_attach(g->t->scheduler) == NB_OK);
        nb_task task = {0};
        for (int k = 0; k < GUEST_TASKS; ++k) {
            desc.priority = (nb_priority)(1 + test_random(&random) % 4);
            while (nb_task_submit(g->t->scheduler, &desc, &task) == NB_FULL) nbi_thread_yield();
            nbi_thread_yield(); // others come while this one is here
        }
        if (i % 4 == 0) expect(nb_task_wait(g->t->scheduler, task, nbi_clock_now_ns() + LIMIT_NS) == NB_OK);
        if (is_attached) expect(nb_scheduler_detach(g->t->scheduler) == NB_OK);
    }
}

TEST(threads_may_come_and_go) {
    stress_begin();
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open(workers);
        guests g = {.t = t, .rounds = test_size(300, 3000, 200000)};
        test_thread threads[4];
        test_threads_start(threads, 4, come_and_go, &g);
        uint64_t end_ns = nbi_clock_now_ns() + 6 * LIMIT_NS;
        uint64_t wanted = 4 * GUEST_TASKS * g.rounds;
        // The coordinator only helps: with no workers somebody must.
        while (nbi_atomic_load_relaxed_u32(&g.ran) < wanted && nbi_clock_now_ns() < end_ns) {
            if (nb_scheduler_help(t->scheduler, 100000, NULL) == NB_EMPTY) nbi_thread_yield();
        }
        test_threads_join(threads, 4);
        assert_int_equal(failures.value, 0);
        AWAIT(stats_of(t).alive_count == 0);
        assert_int_equal(nbi_atomic_load_seq_cst_u32(&g.ran), wanted);
        assert_in_range(stats_of(t).thread_count, 1 + workers, 1 + workers + 4);
        tasks_close(t);
    }
}

// --- numbers ---

typedef struct reading {
    tasks *t;
    nb_atomic_u32 is_over, count;
} reading;

static void read_numbers(void *user, uint32_t index) {
    (void)index;
    reading *r = user;
    uint64_t last = 0;
    while (nbi_atomic_load_acquire_u32(&r->is_over) == 0) {
        nb_scheduler_stats stats = stats_of(r->t);
        expect(stats.alive_count <= 4096);
        expect(stats.run_count + stats.cancel_count <= stats.submit_count);
        expect(stats.run_count >= last);
        last = stats.run_count;
        for (uint32_t i = 0; i < stats.thread_count; ++i) {
            expect(nb_scheduler_thread_stats_get(r->t->scheduler, i).queued_count <= 8 * 4096);
        }
        nbi_atomic_fetch_add_relaxed_u32(&r->count, 1);
        nbi_thread_yield();
    }
}

// Whenever they are read, the numbers are possible ones.
TEST(numbers_are_possible_at_any_moment) {
    uint64_t rounds = test_size(200, 2000, 50000);
    stress_begin();
    tasks *t = tasks_open(2);
    reading r = {.t = t};
    test_thread thread;
    test_threads_start(&thread, 1, read_numbers, &r);
    // Until the reader, too, has had its turns.
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    for (uint64_t i = 0; !has_failed() && nbi_clock_now_ns() < end_ns; ++i) {
        if (i >= rounds && nbi_atomic_load_relaxed_u32(&r.count) >= rounds) break;
        cycle_group(t->scheduler, 500);
    }
    assert_true(nbi_atomic_load_relaxed_u32(&r.count) >= 200);
    nbi_atomic_store_release_u32(&r.is_over, 1);
    test_threads_join(&thread, 1);
    assert_int_equal(failures.value, 0);
    tasks_close(t);
}

// --- the end of a scheduler ---

static uint32_t thread_count(void) {
    uint32_t count = 0;
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

typedef struct ending {
    nb_atomic_u32 accepted, ran;
    nb_token *token;
} ending;

// Submits more, waits for some of it, and does not ask whether it should stop.
static void run_ending(nb_task_context *context, void *argument) {
    ending *e = pointer_of(argument);
    uint32_t number = nbi_atomic_fetch_add_seq_cst_u32(&e->ran, 1);
    if (number > 3000) return;
    nb_group group = {0};
    bool waits = number % 3 == 0 && nb_group_begin(context->scheduler, &group) == NB_OK;
    nb_task_desc desc = {.run = run_ending,
                         .argument = argument,
                         .argument_size_bytes = sizeof(void *),
                         .token = e->token,
                         .group = group,
                         .priority = (nb_priority)(1 + number % 4)};
    for (int i = 0; i < 2; ++i) {
        if (nb_task_submit(context->scheduler, &desc, NULL) == NB_OK) {
            nbi_atomic_fetch_add_seq_cst_u32(&e->accepted, 1);
        }
    }
    if (waits) nb_group_end(context->scheduler, group, NB_NEVER_NS);
}

// T6, B13: at any moment, with tasks queued, running, waiting and submitting.
TEST(scheduler_ends_at_any_moment) {
    uint64_t rounds = test_size(60, 600, 10000), seed = test_seed("scheduler_ends_at_any_moment");
    // The first thread of all: a sanitizer may start one of its own with it.
    tasks_close(tasks_open(1));
    uint32_t baseline = thread_count();
    for (uint64_t round = 0; round < rounds; ++round) {
        tasks *t = tasks_open((uint32_t)(test_random(&seed) % 5));
        nb_token_desc token_desc = {.hooks = test_hooks(NULL, &t->heap)};
        ending e = {0};
        assert_int_equal(nb_token_create(&token_desc, &e.token), NB_OK);
        uint64_t count = test_random(&seed) % 200;
        for (uint64_t i = 0; i < count; ++i) submit_pointer(t, (nb_task_desc){.token = e.token}, run_ending, &e);
        nbi_atomic_fetch_add_seq_cst_u32(&e.accepted, (uint32_t)count);
        pause_for(&seed, 20000);
        if (round % 3 == 0) nb_scheduler_help(t->scheduler, 20000, NULL);
        if (round % 4 == 0) assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
        uint64_t start_ns = nbi_clock_now_ns();
        assert_int_equal(nb_scheduler_destroy(t->scheduler), NB_OK);
        assert_true(nbi_clock_now_ns() - start_ns < 5 * WAKE_LIMIT_NS);
        assert_true(e.ran.value <= e.accepted.value);
        // Every task has given its token back, once.
        nb_cancel_counts counts = {0};
        assert_int_equal(nb_token_cancel(e.token, NB_CANCEL_STALE, 0, &counts), NB_OK);
        assert_int_equal(counts.task_queued_count + counts.task_running_count, 0);
        nb_token_release(e.token);
        assert_int_equal(t->heap.live_count.value, 0);
        free(t);
    }
    AWAIT(thread_count() == baseline);
}

typedef struct stopping {
    tasks *t;
    nb_atomic_u32 accepted, ran, stop;
    event ready;
} stopping;

static void run_stopping(nb_task_context *context, void *argument) {
    (void)context;
    stopping *s = pointer_of(argument);
    nbi_atomic_fetch_add_relaxed_u32(&s->ran, 1);
}

static void submit_until_closed(void *user, uint32_t index) {
    (void)index;
    stopping *s = user;
    nb_task_desc desc = {.run = run_stopping, .argument = &user, .argument_size_bytes = sizeof user};
    for (uint64_t i = 0;; ++i) {
        nb_result result = nb_task_submit(s->t->scheduler, &desc, NULL);
        if (i == 20) event_set(&s->ready);
        if (result == NB_OK) nbi_atomic_fetch_add_relaxed_u32(&s->accepted, 1);
        if (result == NB_FULL) nbi_thread_yield();
        if (result == NB_CLOSED) break;
        expect(result == NB_OK || result == NB_FULL);
    }
}

TEST(stop_meets_submits_from_outside) {
    uint64_t rounds = test_size(60, 600, 20000);
    stress_begin();
    for (uint64_t round = 0; round < rounds; ++round) {
        tasks *t = tasks_open_room((uint32_t)(round % 3), 1024);
        stopping s = {.t = t};
        test_thread threads[2];
        test_threads_start(threads, 2, submit_until_closed, &s);
        assert_true(event_await(&s.ready, 2));
        assert_int_equal(nb_scheduler_stop(t->scheduler), NB_OK);
        test_threads_join(threads, 2);
        assert_int_equal(failures.value, 0);
        // A submit that had passed the flag may have come after the cancel.
        while (nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL) == NB_OK) {
        }
        AWAIT(stats_of(t).alive_count == 0);
        assert_int_equal(stats_of(t).submit_count, nbi_atomic_load_seq_cst_u32(&s.accepted));
        assert_int_equal(stats_of(t).run_count, nbi_atomic_load_seq_cst_u32(&s.ran));
        tasks_close(t);
    }
}
