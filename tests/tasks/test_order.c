// SPDX-License-Identifier: MIT
// In which order tasks start: strictly by priority, first in first out, and the one exception for an old Low task. The
// clock can be moved, so nothing here takes the time it is about.

#include "support/faults.h"
#include "tasks/tasks_fixture.h"

static void clock_advance_ms(uint64_t ms) { nbi_atomic_fetch_add_relaxed_u64(&os.clock_offset_ns, ms * 1000000); }

static void help_all(tasks *t) {
    nb_result result = nb_scheduler_help(t->scheduler, NB_NEVER_NS, NULL);
    assert_true(result == NB_OK || result == NB_EMPTY);
}

static nb_result help_one_in_no_time(nb_scheduler *scheduler) {
    is_clock_slow = true;
    nb_result result = nb_scheduler_help(scheduler, 0, NULL);
    is_clock_slow = false;
    return result;
}

// --- strict ---

TEST(test_critical_before_normal) {
    tasks *t = tasks_open(0);
    order ran = {0};
    for (uint32_t i = 0; i < 20; ++i) submit_order(t, (nb_task_desc){0}, &ran, 100 + i);
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_CRITICAL}, &ran, 1);
    help_all(t);
    assert_int_equal(ran.count.value, 21);
    assert_int_equal(ran.ids[0], 1);
    tasks_close(t);
}

TEST(start_order_is_by_level_then_by_submit) {
    tasks *t = tasks_open(0);
    uint64_t random = test_seed("start_order_is_by_level_then_by_submit");
    for (int round = 0; round < 5; ++round) {
        static order ran;
        ran.count.value = 0;
        uint32_t expected[ORDER_MAX], counts[NB_PRIORITY_COUNT] = {0}, at = 0;
        // An id is level * 1000 + number within the level.
        for (uint32_t i = 0; i < 400; ++i) {
            nb_priority level = (nb_priority)(NB_PRIORITY_LOW + test_random(&random) % 4);
            submit_order(t, (nb_task_desc){.priority = level}, &ran, (uint32_t)level * 1000 + counts[level]++);
        }
        for (uint32_t level = NB_PRIORITY_CRITICAL; level >= NB_PRIORITY_LOW; --level) {
            for (uint32_t i = 0; i < counts[level]; ++i) expected[at++] = level * 1000 + i;
        }
        help_all(t);
        assert_int_equal(ran.count.value, 400);
        assert_memory_equal(ran.ids, expected, 400 * sizeof expected[0]);
    }
    tasks_close(t);
}

TEST(one_task_at_a_time_keeps_the_order) {
    tasks *t = tasks_open(0);
    static order ran;
    ran.count.value = 0;
    for (uint32_t i = 0; i < 10; ++i) submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, i);
    for (uint32_t i = 0; i < 5; ++i) assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, &ran, 100);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, NULL), NB_OK);
    help_all(t);
    static const uint32_t expected[] = {0, 1, 2, 3, 4, 100, 5, 6, 7, 8, 9};
    assert_memory_equal(ran.ids, expected, sizeof expected);
    tasks_close(t);
}

// --- several submitters ---

typedef struct submitter {
    tasks *t;
    order *ran;
    bool is_attached;
    uint32_t count;
    nb_atomic_u32 failures;
} submitter;

#define SUBMITTER_TASKS 300

static void submit_in_order(void *user, uint32_t index) {
    submitter *s = user;
    nb_scheduler *scheduler = s->t->scheduler;
    if (s->is_attached) nb_scheduler_attach(scheduler);
    for (uint32_t i = 0; i < s->count; ++i) {
        order_entry entry = {s->ran, index * 1000 + i};
        nb_task_desc desc = {.run = run_order, .argument = &entry, .argument_size_bytes = sizeof entry};
        if (nb_task_submit(scheduler, &desc, NULL) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&s->failures, 1);
    }
    if (s->is_attached) nb_scheduler_detach(scheduler);
}

TEST(each_submitter_is_served_in_its_order) {
    for (int is_attached = 0; is_attached <= 1; ++is_attached) {
        tasks *t = tasks_open(0);
        static order ran;
        ran.count.value = 0;
        submitter s = {.t = t, .ran = &ran, .is_attached = is_attached != 0, .count = SUBMITTER_TASKS};
        test_threads_run(3, submit_in_order, &s);
        assert_int_equal(s.failures.value, 0);
        while (help_one_in_no_time(t->scheduler) == NB_OK) {
        }
        assert_int_equal(ran.count.value, 3 * SUBMITTER_TASKS);
        uint32_t next[3] = {0};
        for (uint32_t i = 0; i < 3 * SUBMITTER_TASKS; ++i) {
            uint32_t from = ran.ids[i] / 1000;
            assert_int_equal(ran.ids[i] % 1000, next[from]++);
        }
        tasks_close(t);
    }
}

// --- several threads that take ---

// They take one task each in turn, so what comes of it does not depend on their speed.
#define TURN_THREADS 3 // and the coordinator

typedef struct turns {
    tasks *t;
    event turn[TURN_THREADS], done;
    nb_atomic_u32 is_over;
} turns;

static void take_turns(void *user, uint32_t index) {
    turns *all = user;
    bool is_fine = nb_scheduler_attach(all->t->scheduler) == NB_OK;
    for (uint32_t i = 1; is_fine && event_await(&all->turn[index], i); ++i) {
        if (nbi_atomic_load_acquire_u32(&all->is_over) != 0) break;
        help_one_in_no_time(all->t->scheduler);
        event_set(&all->done);
    }
    if (is_fine) nb_scheduler_detach(all->t->scheduler);
}

// By a thread without a lane, so that all who take them are thieves.
static void submit_round(turns *all, order *ran, uint32_t count) {
    ran->count.value = 0;
    submitter s = {.t = all->t, .ran = ran, .count = count};
    test_threads_run(1, submit_in_order, &s);
    assert_int_equal(s.failures.value, 0);
}

// One task by one thread.
static void take_one(turns *all, uint32_t index) {
    if (index == TURN_THREADS) {
        assert_int_equal(help_one_in_no_time(all->t->scheduler), NB_OK);
        return;
    }
    uint32_t done_count = event_count(&all->done);
    event_set(&all->turn[index]);
    assert_true(event_await(&all->done, done_count + 1));
}

static void take_in_turn(turns *all, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) take_one(all, i % (TURN_THREADS + 1));
}

static void take_by_one_thread(turns *all, uint32_t count) {
    take_one(all, TURN_THREADS);
    for (uint32_t i = 1; i < count; ++i) take_one(all, 0);
}

// Fills `ran` with the start order of `count` tasks.
static void run_by(void (*take)(turns *all, uint32_t count), uint32_t count, order *ran) {
    tasks *t = tasks_open(0);
    turns all = {.t = t};
    test_thread threads[TURN_THREADS];
    test_threads_start(threads, TURN_THREADS, take_turns, &all);
    submit_round(&all, ran, SUBMITTER_TASKS);
    take_in_turn(&all, SUBMITTER_TASKS); // after which they know that the tasks are short
    submit_round(&all, ran, count);
    take(&all, count);
    assert_int_equal(ran->count.value, count);
    nbi_atomic_store_release_u32(&all.is_over, 1); // read in take_turns
    for (uint32_t i = 0; i < TURN_THREADS; ++i) event_set(&all.turn[i]);
    test_threads_join(threads, TURN_THREADS);
    tasks_close(t);
}

TEST(short_queue_keeps_its_order_among_thieves) {
    static order ran;
    run_by(take_in_turn, 32, &ran);
    for (uint32_t i = 0; i < 32; ++i) assert_int_equal(ran.ids[i], i);
}

// How far from its place any task has started.
static uint32_t distance_max(const order *ran) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < ran->count.value; ++i) {
        uint32_t distance = ran->ids[i] > i ? ran->ids[i] - i : i - ran->ids[i];
        if (distance > most) most = distance;
    }
    return most;
}

// Where more than 32 are queued, a thief takes eight at once.
TEST(long_queue_is_out_of_order_by_eight_a_thread_at_most) {
    static order ran;
    static once seen;
    memset(&seen, 0, sizeof seen);
    run_by(take_in_turn, SUBMITTER_TASKS, &ran);
    for (uint32_t i = 0; i < SUBMITTER_TASKS; ++i) once_note(&seen, ran.ids[i]);
    assert_in_range(distance_max(&ran), 1, 8 * (TURN_THREADS + 1));
    assert_true(once_is_exact(&seen, SUBMITTER_TASKS));
}

// The coordinator takes some, runs one and does something else: the others come back for them before the queue is
// empty, one of seven at every fourth look, and each look is for eight tasks.
TEST(tasks_taken_by_a_busy_thread_are_not_forgotten) {
    static order ran;
    run_by(take_by_one_thread, 3000, &ran);
    assert_in_range(distance_max(&ran), 1, 7 * 4 * 8);
}

// Small pools have small rings: there is less in them than a thief would take at once.
TEST(tasks_of_small_pools_run_once_under_thieves) {
    for (uint32_t room = 8; room <= 64; room *= 2) {
        tasks *t = tasks_open_room(3, room);
        static once seen;
        memset(&seen, 0, sizeof seen);
        const uint32_t count = 2000;
        for (uint32_t i = 0; i < count; ++i) {
            once_entry entry = {&seen, i};
            nb_task_desc desc = {.run = run_once, .argument = &entry, .argument_size_bytes = sizeof entry};
            uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
            nb_result result = NB_FULL;
            while (result == NB_FULL && nbi_clock_now_ns() < end_ns) {
                result = nb_task_submit(t->scheduler, &desc, NULL);
                if (result == NB_FULL) nbi_thread_yield();
            }
            assert_int_equal(result, NB_OK);
        }
        AWAIT(stats_of(t).alive_count == 0);
        assert_true(once_is_exact(&seen, count));
        tasks_close(t);
    }
}

// --- tasks that tasks submit ---

typedef struct spawner {
    order *ran;
    uint32_t count;
    nb_priority priority;
} spawner;

static void run_spawner(nb_task_context *context, void *argument) {
    spawner *s = pointer_of(argument);
    for (uint32_t i = 0; i < s->count; ++i) {
        order_entry entry = {s->ran, 1000 + i};
        nb_task_desc desc = {
            .run = run_order, .argument = &entry, .argument_size_bytes = sizeof entry, .priority = s->priority};
        nb_task_submit(context->scheduler, &desc, NULL);
    }
}

TEST(tasks_of_a_task_start_newest_first) {
    tasks *t = tasks_open(0);
    order ran = {0};
    spawner s = {&ran, 20, NB_PRIORITY_NORMAL};
    submit_pointer(t, (nb_task_desc){0}, run_spawner, &s);
    submit_order(t, (nb_task_desc){0}, &ran, 5); // was there before, and has come from outside
    help_all(t);
    assert_int_equal(ran.count.value, 21);
    for (uint32_t i = 0; i < 20; ++i) assert_int_equal(ran.ids[i], 1000 + 19 - i);
    assert_int_equal(ran.ids[20], 5);
    tasks_close(t);
}

TEST(task_of_a_task_overtakes_lower_levels) {
    tasks *t = tasks_open(0);
    order ran = {0};
    spawner s = {&ran, 1, NB_PRIORITY_CRITICAL};
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_NORMAL}, &ran, 1);
    submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_spawner, &s);
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, &ran, 2);
    help_all(t);
    static const uint32_t expected[] = {1000, 2, 1};
    assert_memory_equal(ran.ids, expected, sizeof expected);
    tasks_close(t);
}

// More than a deque holds: the rest goes another way, and none is lost.
TEST(task_may_submit_more_than_a_deque_holds) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        tasks *t = tasks_open_room(workers, 16384);
        static order ran;
        memset(&ran, 0, sizeof ran);
        spawner s = {&ran, 10000, NB_PRIORITY_NORMAL};
        nb_task task = submit_pointer(t, (nb_task_desc){0}, run_spawner, &s);
        assert_int_equal(nb_task_wait(t->scheduler, task, NB_NEVER_NS), NB_OK);
        help_all(t);
        AWAIT(stats_of(t).alive_count == 0);
        assert_int_equal(ran.count.value, 10000);
        assert_int_equal(stats_of(t).run_count, 10001);
        tasks_close(t);
    }
}

// --- Low ---

static uint32_t place_of(const order *ran, uint32_t id) {
    for (uint32_t i = 0; i < ran->count.value; ++i) {
        if (ran->ids[i] == id) return i;
    }
    return UINT32_MAX;
}

// Endless High work, 10 ms each, and one Low task: it starts when it is 500 ms old, and within a second.
static void run_high_forever(nb_task_context *context, void *argument) {
    spawner *s = pointer_of(argument);
    clock_advance_ms(10);
    order_entry entry = {s->ran, 7};
    run_order(context, &entry);
    if (s->count-- == 0) return;
    nb_task_desc desc = {
        .run = run_high_forever, .argument = &s, .argument_size_bytes = sizeof s, .priority = NB_PRIORITY_HIGH};
    nb_task_submit(context->scheduler, &desc, NULL);
}

TEST(old_low_task_goes_first) {
    for (int round = 0; round < 2; ++round) {
        tasks *t = tasks_open(0);
        static order ran;
        ran.count.value = 0;
        spawner s = {&ran, 300, NB_PRIORITY_HIGH};
        submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 1);
        submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 2);
        submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_high_forever, &s);
        if (round == 1) clock_advance_ms(10000); // it was old before anybody looked
        help_all(t);
        uint32_t first = place_of(&ran, 1), second = place_of(&ran, 2);
        print_message("Low tasks went %u. and %u.\n", first, second);
        if (round == 0) assert_in_range(first, 49, 100);
        if (round == 1) assert_in_range(first, 0, 100);
        // One at a time.
        assert_in_range(second, first + 49, first + 150);
        tasks_close(t);
    }
}

// Idleness makes no task old: it was submitted a moment ago.
TEST(young_low_task_waits_though_the_scheduler_was_idle) {
    tasks *t = tasks_open(0);
    static order ran;
    ran.count.value = 0;
    for (uint32_t i = 0; i < 200; ++i) submit_order(t, (nb_task_desc){0}, &ran, i);
    help_all(t);
    clock_advance_ms(60000);
    ran.count.value = 0;
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 1);
    for (uint32_t i = 0; i < 200; ++i) submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, &ran, 1000);
    help_all(t);
    assert_int_equal(ran.count.value, 201);
    assert_int_equal(ran.ids[200], 1);
    tasks_close(t);
}

// Long tasks are no excuse: 30 ms each, the Low one starts within a second.
static void run_long_high_forever(nb_task_context *context, void *argument) {
    spawner *s = pointer_of(argument);
    clock_advance_ms(30);
    order_entry entry = {s->ran, 7};
    run_order(context, &entry);
    if (s->count-- == 0) return;
    nb_task_desc desc = {
        .run = run_long_high_forever, .argument = &s, .argument_size_bytes = sizeof s, .priority = NB_PRIORITY_HIGH};
    nb_task_submit(context->scheduler, &desc, NULL);
}

TEST(low_task_starts_within_a_second_behind_long_tasks) {
    tasks *t = tasks_open(0);
    static order ran;
    ran.count.value = 0;
    spawner s = {&ran, 200, NB_PRIORITY_HIGH};
    submit_order(t, (nb_task_desc){.priority = NB_PRIORITY_LOW}, &ran, 1);
    submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_long_high_forever, &s);
    help_all(t);
    assert_in_range(place_of(&ran, 1), 16, 33);
    tasks_close(t);
}

TEST(help_stops_when_its_budget_is_spent) {
    tasks *t = tasks_open(0);
    static order ran;
    ran.count.value = 0;
    spawner s = {&ran, 200, NB_PRIORITY_HIGH};
    submit_pointer(t, (nb_task_desc){.priority = NB_PRIORITY_HIGH}, run_high_forever, &s);
    uint64_t count = 0;
    assert_int_equal(nb_scheduler_help(t->scheduler, 95000000, &count), NB_OK);
    assert_in_range(count, 9, 10); // 10 ms each; the real time that passes counts too
    assert_int_equal(nb_scheduler_help(t->scheduler, 1, &count), NB_OK);
    assert_int_equal(count, 1);
    assert_int_equal(nb_scheduler_help(t->scheduler, 0, &count), NB_OK);
    assert_int_equal(count, 1);
    tasks_close(t);
}

// --- turns ---

typedef struct endless {
    nb_scheduler *scheduler;
    nb_atomic_u32 is_started, is_submitted, is_over;
    nb_atomic_u32 count; // how often it has run since the other was submitted
} endless;

// Its own successor, unless the other has run, or has been forgotten for far too long.
static void run_again(nb_task_context *context, void *argument) {
    endless *e = *(endless **)argument;
    nbi_atomic_store_release_u32(&e->is_started, 1);
    if (nbi_atomic_load_acquire_u32(&e->is_over) != 0) return;
    if (nbi_atomic_load_acquire_u32(&e->is_submitted) != 0) nbi_atomic_fetch_add_relaxed_u32(&e->count, 1);
    if (nbi_atomic_load_relaxed_u32(&e->count) > 100000) return;
    nb_task_desc desc = {
        .run = run_again, .argument = &e, .argument_size_bytes = sizeof e, .lifetime = NB_LIFETIME_FLOATING};
    nb_task_submit(context->scheduler, &desc, NULL);
}

static void run_other(nb_task_context *context, void *argument) {
    (void)context;
    nbi_atomic_store_release_u32(&(*(endless **)argument)->is_over, 1);
}

static void do_nothing(nb_task_context *context, void *argument) { (void)context, (void)argument; }

static void let_others_run(bool has_bulk) {
    tasks *t = tasks_open(1);
    // Many short ones, which a worker takes several at a time.
    for (uint32_t i = 0; has_bulk && i < 5000; ++i) {
        nb_task_desc nothing = {.run = do_nothing, .lifetime = NB_LIFETIME_FLOATING};
        while (nb_task_submit(t->scheduler, &nothing, NULL) == NB_FULL) nbi_thread_yield();
    }
    endless e = {.scheduler = t->scheduler}, *pointer = &e;
    nb_task_desc desc = {.run = run_again,
                         .argument = &pointer,
                         .argument_size_bytes = sizeof pointer,
                         .lifetime = NB_LIFETIME_FLOATING};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    while (nbi_atomic_load_acquire_u32(&e.is_started) == 0) nbi_thread_yield();
    desc.run = run_other;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    nbi_atomic_store_release_u32(&e.is_submitted, 1);
    while (nbi_atomic_load_acquire_u32(&e.is_over) == 0 && nbi_atomic_load_relaxed_u32(&e.count) <= 100000)
        nbi_thread_yield();
    assert_int_equal(e.is_over.value, 1);
    tasks_close(t);
    assert_in_range(e.count.value, 0, 1000); // some rounds of turns, and the moment between the two stores
}

TEST(task_that_spawns_itself_lets_others_run) { let_others_run(false); }

TEST(others_get_their_turn_after_a_bulk) {
    for (uint32_t i = 0; i < 20; ++i) let_others_run(true);
}

// The endless one is in the middle of what a worker takes at a time: the rest of that lies below its successors.
typedef struct crowd {
    nb_atomic_u32 is_held, other_count, count;
} crowd;

#define CROWD_COUNT 600u

static void wait_in_front(nb_task_context *context, void *argument) {
    (void)context;
    while (nbi_atomic_load_acquire_u32(&(*(crowd **)argument)->is_held) != 0) nbi_thread_yield();
}

static void run_in_crowd(nb_task_context *context, void *argument) {
    (void)context;
    nbi_atomic_fetch_add_seq_cst_u32(&(*(crowd **)argument)->other_count, 1);
}

static void run_on_and_on(nb_task_context *context, void *argument) {
    crowd *c = *(crowd **)argument;
    bool is_over = nbi_atomic_load_acquire_u32(&c->other_count) == CROWD_COUNT;
    if (is_over || nbi_atomic_fetch_add_relaxed_u32(&c->count, 1) > 100000) return;
    nb_task_desc desc = {
        .run = run_on_and_on, .argument = &c, .argument_size_bytes = sizeof c, .lifetime = NB_LIFETIME_FLOATING};
    nb_task_submit(context->scheduler, &desc, NULL);
}

TEST(rest_of_a_bulk_gets_its_turn) {
    tasks *t = tasks_open(1);
    crowd c = {.is_held = {1}}, *pointer = &c;
    nb_task_desc desc = {.run = wait_in_front,
                         .argument = &pointer,
                         .argument_size_bytes = sizeof pointer,
                         .lifetime = NB_LIFETIME_FLOATING};
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    for (uint32_t i = 0; i <= CROWD_COUNT; ++i) {
        desc.run = i == CROWD_COUNT / 2 ? run_on_and_on : run_in_crowd;
        assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    }
    nbi_atomic_store_release_u32(&c.is_held, 0);
    AWAIT(nbi_atomic_load_acquire_u32(&c.other_count) == CROWD_COUNT);
    tasks_close(t);
    assert_in_range(c.count.value, 0, CROWD_COUNT * 64);
}

// A worker that is held up has announced work that is gone: the search of that queue must not use up every turn.
static void spawn_and_wait(nb_task_context *context, void *argument) {
    crowd *c = *(crowd **)argument;
    nb_task_desc desc = {.run = run_in_crowd,
                         .argument = &c,
                         .argument_size_bytes = sizeof c,
                         .priority = NB_PRIORITY_HIGH,
                         .lifetime = NB_LIFETIME_FLOATING};
    nb_task_submit(context->scheduler, &desc, NULL);
    wait_in_front(context, argument);
}

static void let_others_run_beside(uint32_t shift) {
    tasks *t = tasks_open(2);
    crowd c = {.is_held = {1}}, *waiting = &c;
    nb_task_desc desc = {.run = spawn_and_wait, .argument = &waiting, .argument_size_bytes = sizeof waiting};
    desc.priority = NB_PRIORITY_HIGH, desc.lifetime = NB_LIFETIME_FLOATING;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    AWAIT(nbi_atomic_load_acquire_u32(&c.other_count) == 1);
    for (uint32_t i = 0; i < shift; ++i) {
        nb_task_desc nothing = {.run = do_nothing, .lifetime = NB_LIFETIME_FLOATING};
        assert_int_equal(nb_task_submit(t->scheduler, &nothing, NULL), NB_OK);
    }
    endless e = {.scheduler = t->scheduler}, *pointer = &e;
    desc.run = run_again, desc.argument = &pointer, desc.priority = NB_PRIORITY_NORMAL;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    AWAIT(nbi_atomic_load_acquire_u32(&e.is_started) != 0);
    desc.run = run_other;
    assert_int_equal(nb_task_submit(t->scheduler, &desc, NULL), NB_OK);
    nbi_atomic_store_release_u32(&e.is_submitted, 1);
    AWAIT(nbi_atomic_load_acquire_u32(&e.is_over) != 0 || nbi_atomic_load_relaxed_u32(&e.count) > 100000);
    nbi_atomic_store_release_u32(&c.is_held, 0);
    tasks_close(t);
    assert_in_range(e.count.value, 0, 1000);
}

TEST(turns_come_to_each_queue) {
    // Where counts begin depends on who came first: one time in eight the turns would go astray.
    for (uint32_t round = 0; round < 128; ++round) let_others_run_beside(round % 16);
}
