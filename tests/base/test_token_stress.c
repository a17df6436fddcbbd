// SPDX-License-Identifier: MIT
// Races of cancellation tokens. Each test here has mutants in tests/mutants that it must catch.

#include "support/support.h"

#include "nebula/token.h"

#define THREAD_COUNT_MAX 8

// Rounds: thread 0 prepares one, all threads run it at once, thread 0 looks at what came of it. Threads count failures
// instead of asserting, because cmocka may only be left from the main thread.
typedef struct rounds rounds;

typedef struct race_steps {
    void (*prepare)(rounds *r); // finds the user zeroed; may be NULL
    void (*run)(rounds *r, uint32_t index);
    void (*inspect)(rounds *r); // may be NULL
    size_t user_size_bytes;
} race_steps;

struct rounds {
    race_steps steps;
    uint32_t thread_count;
    uint64_t round_count;
    void *user;
    nb_token *root; // of each round: made before prepare, released after inspect
    nb_hooks hooks;
    uint64_t seed, round;
    test_gate gate;
    nb_atomic_u32 failure_count;
    nb_atomic_u32 progress; // steps of all threads in this round
};

static void expect(rounds *r, bool condition) {
    if (!condition) nbi_atomic_fetch_add_seq_cst_u32(&r->failure_count, 1);
}

static nb_token *root_create(rounds *r) {
    nb_token_desc desc = {.label = "root", .hooks = r->hooks};
    nb_token *token = NULL;
    expect(r, nb_token_create(&desc, &token) == NB_OK);
    return token;
}

static void rounds_thread(void *user, uint32_t index) {
    rounds *r = user;
    uint32_t passes = 0;
    for (uint64_t round = 0; round < r->round_count; ++round) {
        if (index == 0) {
            r->round = round;
            nbi_atomic_store_relaxed_u32(&r->progress, 0);
            memset(r->user, 0, r->steps.user_size_bytes);
            r->root = root_create(r);
            if (r->steps.prepare != NULL) r->steps.prepare(r);
        }
        test_gate_pass(&r->gate, ++passes * r->thread_count);
        r->steps.run(r, index);
        test_gate_pass(&r->gate, ++passes * r->thread_count);
        if (index == 0) {
            if (r->steps.inspect != NULL) r->steps.inspect(r);
            nb_token_release(r->root);
        }
        // Nobody may go on with a test that has failed: a mutant would spin in the ruins.
        if (nbi_atomic_load_seq_cst_u32(&r->failure_count) != 0) r->round_count = 0;
        test_gate_pass(&r->gate, ++passes * r->thread_count);
    }
}

// Runs all rounds and expects no failure, no leak and no log record.
static void rounds_run(const char *name, race_steps steps, uint32_t thread_count, uint64_t round_count) {
    static test_log log;
    test_heap heap = {0};
    rounds r = {.steps = steps, .thread_count = thread_count, .round_count = round_count, .seed = test_seed(name)};
    r.user = malloc(steps.user_size_bytes);
    assert_non_null(r.user);
    r.hooks = test_hooks(&log, &heap);
    r.hooks.logger.level_min = NB_LOG_WARNING;
    test_threads_run(thread_count, rounds_thread, &r);
    free(r.user);
    if (r.failure_count.value != 0) fprintf(stderr, "%s: round %llu\n", name, (unsigned long long)r.round);
    assert_int_equal(r.failure_count.value, 0);
    assert_int_equal(heap.live_count.value, 0);
    for (int item = 1; item < TEST_LOG_ITEM_MAX; ++item) assert_int_equal(log.counts[item].value, 0);
}

static nb_token *child_create(rounds *r, nb_token *parent) {
    nb_token *token = NULL;
    expect(r, nb_token_child(parent, "child", &token) == NB_OK);
    return token;
}

static nb_token *any_create(rounds *r, nb_token *const *sources, uint32_t source_count) {
    nb_token_desc desc = {.label = "any", .hooks = r->hooks};
    nb_token *token = NULL;
    expect(r, nb_token_create_any(&desc, sources, source_count, &token) == NB_OK);
    return token;
}

// Waits until the others have come a random part of their way, so that they are in the middle of it. On a machine that
// runs one thread at a time, long ways matter too: a round must be likely to be interrupted.
static void await_progress(rounds *r, uint32_t step_count) {
    uint64_t random = r->seed ^ r->round;
    uint64_t enough = test_random(&random) % step_count;
    while (nbi_atomic_load_relaxed_u32(&r->progress) < enough) nbi_thread_yield();
}

static void progress(rounds *r) { nbi_atomic_fetch_add_relaxed_u32(&r->progress, 1); }

// A pause of random length, so that threads that start together meet at different places.
static void stagger(rounds *r, uint32_t index, uint32_t length_max) {
    uint64_t random = r->seed ^ (r->round * THREAD_COUNT_MAX + index);
    uint64_t length = test_random(&random) % length_max;
    for (uint64_t i = 0; i < length; ++i) nbi_cpu_relax();
}

// --- children created while their parent is cancelled: none may escape ---

#define RACE_CHILDREN 256
typedef struct child_race {
    nb_token *children[THREAD_COUNT_MAX][RACE_CHILDREN]; // the newest of each thread
} child_race;

// Creates until one is born cancelled, so the cancel always comes into the middle of it.
static void child_race_run(rounds *r, uint32_t index) {
    child_race *race = r->user;
    if (index == 0) {
        await_progress(r, 4 * RACE_CHILDREN);
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    nb_token **child = NULL;
    for (uint32_t i = 0; child == NULL || !nb_token_is_cancelled(*child); ++i) {
        child = &race->children[index][i % RACE_CHILDREN];
        nb_token_release(*child);
        *child = child_create(r, r->root);
        progress(r);
    }
}

static void child_race_inspect(rounds *r) {
    child_race *race = r->user;
    for (uint32_t index = 1; index < r->thread_count; ++index) {
        for (int i = 0; i < RACE_CHILDREN; ++i) {
            nb_token *child = race->children[index][i];
            expect(r, child == NULL || nb_token_is_cancelled(child));
            nb_token_release(child);
        }
    }
}

TEST(child_race_lets_no_child_escape) {
    race_steps steps = {NULL, child_race_run, child_race_inspect, sizeof(child_race)};
    rounds_run("child_race_lets_no_child_escape", steps, 3, test_size(80, 166, 50000));
}

// --- children and parents released while the tree is cancelled ---

// Several batches of the walk, so that it lets go of the lock in between.
#define RELEASE_TOKENS 9000
typedef struct release_race {
    nb_token *tokens[RELEASE_TOKENS], *kept[8];
} release_race;

static void release_race_prepare(rounds *r) {
    release_race *race = r->user;
    uint64_t random = r->seed + r->round;
    for (uint32_t i = 0; i < RELEASE_TOKENS; ++i) {
        uint64_t up = test_random(&random) % 8;
        nb_token *parent = i > up && up < 5 ? race->tokens[i - 1 - up] : r->root;
        race->tokens[i] = child_create(r, parent);
    }
    for (uint32_t i = 0; i < 8; ++i) race->kept[i] = child_create(r, race->tokens[i * RELEASE_TOKENS / 8]);
}

static void release_race_run(rounds *r, uint32_t index) {
    release_race *race = r->user;
    if (index % 4 == 3) {
        await_progress(r, RELEASE_TOKENS);
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        // Also for the one that came second.
        for (uint32_t i = 0; i < 8; ++i) expect(r, nb_token_is_cancelled(race->kept[i]));
        return;
    }
    uint32_t step = r->thread_count - r->thread_count / 4;
    for (uint32_t i = index - index / 4; i < RELEASE_TOKENS; i += step) {
        nb_token_release(race->tokens[i]);
        progress(r);
    }
}

static void release_race_inspect(rounds *r) {
    release_race *race = r->user;
    for (uint32_t i = 0; i < 8; ++i) nb_token_release(race->kept[i]);
    expect(r, nb_token_child_count(r->root) == 0);
}

TEST(release_during_cancel_is_safe) {
    race_steps steps = {release_race_prepare, release_race_run, release_race_inspect, sizeof(release_race)};
    rounds_run("release_during_cancel_is_safe", steps, 8, test_size(30, 66, 10000));
}

// The same with one child a round and very many rounds.
static void drop_race_prepare(rounds *r) {
    release_race *race = r->user;
    for (uint32_t i = 0; i < r->thread_count; ++i) race->tokens[i] = child_create(r, r->root);
}

static void drop_race_run(rounds *r, uint32_t index) {
    release_race *race = r->user;
    if (index % 2 == 0) nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
    nb_token_release(race->tokens[index]);
}

TEST(child_dropped_while_parent_cancels) {
    race_steps steps = {drop_race_prepare, drop_race_run, NULL, sizeof(release_race)};
    rounds_run("child_dropped_while_parent_cancels", steps, 8, test_size(2000, 5000, 1000000));
}

// --- several cancels at once: whoever returns, all is cancelled, and each token and task is counted by one ---

#define COUNT_TOKENS 9000
typedef struct count_race {
    nb_token *tokens[COUNT_TOKENS];
    nb_atomic_u64 token_count, queued_count, running_count;
} count_race;

static void count_race_prepare(rounds *r) {
    count_race *race = r->user;
    for (uint32_t i = 0; i < COUNT_TOKENS; ++i) {
        race->tokens[i] = child_create(r, i % 3 == 0 ? r->root : race->tokens[i - 1]);
        nb_token_task_enter(race->tokens[i]);
        nb_token_task_enter(race->tokens[i]);
        if (i % 2 == 0) nb_token_task_start(race->tokens[i]);
    }
}

static void count_race_run(rounds *r, uint32_t index) {
    count_race *race = r->user;
    nb_cancel_counts counts = {0};
    // Half of them begin at the root, the others somewhere below.
    nb_token *top = index % 2 == 0 ? r->root : race->tokens[index * COUNT_TOKENS / THREAD_COUNT_MAX];
    stagger(r, index, 512);
    expect(r, nb_token_cancel(top, NB_CANCEL_STALE, index, &counts) == NB_OK);
    nbi_atomic_fetch_add_relaxed_u64(&race->token_count, counts.token_count);
    nbi_atomic_fetch_add_relaxed_u64(&race->queued_count, counts.task_queued_count);
    nbi_atomic_fetch_add_relaxed_u64(&race->running_count, counts.task_running_count);
    if (top != r->root) return;
    for (uint32_t i = 0; i < COUNT_TOKENS; ++i) expect(r, nb_token_is_cancelled(race->tokens[i]));
}

static void count_race_inspect(rounds *r) {
    count_race *race = r->user;
    expect(r, race->token_count.value == COUNT_TOKENS + 1);
    expect(r, race->queued_count.value == COUNT_TOKENS + COUNT_TOKENS / 2);
    expect(r, race->running_count.value == COUNT_TOKENS / 2);
    for (uint32_t i = 0; i < COUNT_TOKENS; ++i) nb_token_release(race->tokens[i]);
}

TEST(eight_cancels_count_each_token_and_task_once) {
    race_steps steps = {count_race_prepare, count_race_run, count_race_inspect, sizeof(count_race)};
    rounds_run("eight_cancels_count_each_token_and_task_once", steps, 8, test_size(20, 66, 5000));
}

// --- a long cancel lets others at the tree ---

#define LONG_TOKENS 200000
#define LONG_ROUNDS_MAX 60
typedef struct long_race {
    nb_token *root, *last, *tokens[LONG_TOKENS];
    nb_atomic_u32 is_let_in;
} long_race;

static void long_race_cancel(void *user, uint32_t index) {
    long_race *race = user;
    if (index == 0) {
        nb_token_cancel(race->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    while (!nb_token_is_cancelled(race->root)) nbi_thread_yield();
    // Needs the tree's lock. Whoever gets it only at the end of the walk finds the last token cancelled.
    nb_token_child_count(race->root);
    if (!nb_token_is_cancelled(race->last)) nbi_atomic_store_release_u32(&race->is_let_in, 1);
}

// Whether a thread comes in during one cancel is the machine's choice; that none ever does is a lock held throughout.
TEST(long_cancel_lets_others_in) {
    static long_race race;
    int round = 0;
    for (; round < LONG_ROUNDS_MAX && race.is_let_in.value == 0; ++round) {
        assert_int_equal(nb_token_create(NULL, &race.root), NB_OK);
        for (uint32_t i = 0; i < LONG_TOKENS; ++i) {
            assert_int_equal(nb_token_child(race.root, "child", &race.tokens[i]), NB_OK);
        }
        race.last = race.tokens[0]; // the walk begins with the newest
        test_threads_run(2, long_race_cancel, &race);
        for (uint32_t i = 0; i < LONG_TOKENS; ++i) nb_token_release(race.tokens[i]);
        nb_token_release(race.root);
    }
    assert_true(round < LONG_ROUNDS_MAX);
}

// --- the reason and what was written before the cancel ---

typedef struct reason_race {
    uint32_t data[THREAD_COUNT_MAX];
} reason_race;

static void reason_race_run(rounds *r, uint32_t index) {
    reason_race *race = r->user;
    if (index >= 2) {
        race->data[index] = index * 11;
        nb_token_cancel(r->root, NB_CANCEL_FAILED, index, NULL);
        return;
    }
    while (!nb_token_is_cancelled(r->root)) nbi_thread_yield();
    nb_cancel_reason reason = nb_token_reason(r->root);
    expect(r, reason.cause == NB_CANCEL_FAILED && reason.code >= 2 && reason.code < r->thread_count);
    // Plain memory of the winner: the thread sanitizer knows whether it may be read here.
    if (reason.code < THREAD_COUNT_MAX) expect(r, race->data[reason.code] == reason.code * 11);
}

TEST(reason_and_data_are_visible_to_who_sees_the_flag) {
    race_steps steps = {NULL, reason_race_run, NULL, sizeof(reason_race)};
    rounds_run("reason_and_data_are_visible_to_who_sees_the_flag", steps, 5, test_size(3000, 10000, 500000));
}

// --- tasks coming and going while the token is cancelled ---

#define TASKS_A_THREAD 2000
typedef struct task_race {
    nb_token *token;
    nb_cancel_counts counts;
    nb_atomic_u32 refused_at_start, running;
} task_race;

static void task_race_prepare(rounds *r) {
    task_race *race = r->user;
    race->token = child_create(r, r->root);
}

// Nothing leaves in this test, so all that started are running when the cancel counts.
static void task_race_start(task_race *race) {
    bool is_started = nb_token_task_start(race->token) == NB_OK;
    nbi_atomic_fetch_add_relaxed_u32(is_started ? &race->running : &race->refused_at_start, 1);
}

static void task_race_run(rounds *r, uint32_t index) {
    task_race *race = r->user;
    if (index == 0) {
        await_progress(r, (r->thread_count - 1) * TASKS_A_THREAD);
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, &race->counts);
        return;
    }
    uint32_t queued_count = 0;
    for (int i = 0; i < TASKS_A_THREAD; ++i) {
        progress(r);
        if (i % 64 == 0) nbi_thread_yield(); // the cancel comes in the middle, on one core too
        if (nb_token_task_enter(race->token) != NB_OK) continue;
        // A few stay queued, for the cancel to find.
        if (++queued_count < 8) continue;
        --queued_count;
        task_race_start(race);
    }
    while (!nb_token_is_cancelled(race->token)) nbi_thread_yield();
    for (; queued_count != 0; --queued_count) task_race_start(race);
}

static void task_race_inspect(rounds *r) {
    task_race *race = r->user;
    expect(r, race->counts.task_queued_count == race->refused_at_start.value);
    expect(r, race->counts.task_running_count == race->running.value);
    for (uint32_t i = 0; i < race->running.value; ++i) expect(r, nb_token_task_leave(race->token) == NB_OK);
    nb_token_release(race->token);
}

TEST(tasks_are_counted_or_refused_never_both) {
    race_steps steps = {task_race_prepare, task_race_run, task_race_inspect, sizeof(task_race)};
    rounds_run("tasks_are_counted_or_refused_never_both", steps, 4, test_size(200, 333, 50000));
}

// --- callbacks ---

typedef struct callback_race {
    struct callback_storage {
        nb_token_callback callback;
        nb_atomic_u32 is_valid;  // while the callback may run
        nb_atomic_u32 run_count; // how often it did
        rounds *r;
        uint32_t pause;
    } storage[THREAD_COUNT_MAX];
} callback_race;

static void callback_race_called(void *user, nb_token *token) {
    struct callback_storage *storage = user;
    expect(storage->r, nb_token_is_cancelled(token));
    expect(storage->r, nbi_atomic_load_seq_cst_u32(&storage->is_valid) == 1);
    nbi_atomic_fetch_add_seq_cst_u32(&storage->run_count, 1);
    // Long enough for the other side to come to the end of its unregister, should that not wait.
    for (uint32_t i = 0; i < storage->pause; ++i) nbi_thread_yield();
    expect(storage->r, nbi_atomic_load_seq_cst_u32(&storage->is_valid) == 1);
}

static void callback_race_prepare(rounds *r) {
    callback_race *race = r->user;
    for (uint32_t i = 0; i < THREAD_COUNT_MAX; ++i) {
        race->storage[i].r = r;
        race->storage[i].pause = (uint32_t)(r->round % 3);
    }
}

static void callback_race_run(rounds *r, uint32_t index) {
    callback_race *race = r->user;
    struct callback_storage *storage = &race->storage[index];
    stagger(r, index, 64);
    if (index == 0) {
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    nbi_atomic_store_release_u32(&storage->is_valid, 1);
    nb_result result = nb_token_callback_register(r->root, &storage->callback, callback_race_called, storage);
    if (result == NB_CANCELLED) expect(r, nbi_atomic_load_seq_cst_u32(&storage->run_count) == 1);
    nbi_thread_yield();
    expect(r, nb_token_callback_unregister(&storage->callback) == NB_OK);
    nbi_atomic_store_release_u32(&storage->is_valid, 0);
    // The storage is the thread's again.
    memset(&storage->callback, 0xEE, sizeof storage->callback);
}

static void callback_race_inspect(rounds *r) {
    callback_race *race = r->user;
    for (uint32_t i = 1; i < r->thread_count; ++i) expect(r, race->storage[i].run_count.value <= 1);
}

TEST(callback_never_runs_after_its_unregister) {
    race_steps steps = {callback_race_prepare, callback_race_run, callback_race_inspect, sizeof(callback_race)};
    rounds_run("callback_never_runs_after_its_unregister", steps, 4, test_size(3000, 6666, 500000));
}

// Registers again and again until the cancel has come; the last one must have run exactly once. Mostly there is no
// other callback on the token, so one that the cancel overlooks is not picked up by chance.
#define ONCE_STEPS 5000
typedef struct once_race {
    nb_token_callback callbacks[THREAD_COUNT_MAX];
    nb_atomic_u32 run_counts[THREAD_COUNT_MAX];
} once_race;

static void once_race_called(void *user, nb_token *token) {
    (void)token;
    nbi_atomic_fetch_add_relaxed_u32((nb_atomic_u32 *)user, 1);
}

static void once_race_run(rounds *r, uint32_t index) {
    once_race *race = r->user;
    if (index == 0) {
        await_progress(r, (r->thread_count - 1) * ONCE_STEPS);
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    nb_token_callback *callback = &race->callbacks[index];
    nb_atomic_u32 *run_count = &race->run_counts[index];
    for (int i = 0; i < ONCE_STEPS; ++i) {
        progress(r);
        nbi_atomic_store_relaxed_u32(run_count, 0);
        nb_result result = nb_token_callback_register(r->root, callback, once_race_called, run_count);
        if (result == NB_CANCELLED) expect(r, nbi_atomic_load_relaxed_u32(run_count) == 1);
        if (result != NB_OK || nb_token_is_cancelled(r->root)) break;
        // Left registered at the end of the way, for a cancel that comes later.
        if (i + 1 < ONCE_STEPS) nb_token_callback_unregister(callback);
    }
}

static void once_race_inspect(rounds *r) {
    once_race *race = r->user;
    for (uint32_t index = 1; index < r->thread_count; ++index) {
        expect(r, race->run_counts[index].value == 1);
        nb_token_callback_unregister(&race->callbacks[index]);
    }
}

TEST(callback_registered_during_cancel_runs_once) {
    race_steps steps = {NULL, once_race_run, once_race_inspect, sizeof(once_race)};
    rounds_run("callback_registered_during_cancel_runs_once", steps, 3, test_size(100, 333, 20000));
}

// --- waiting ---

typedef struct wait_race {
    nb_token *token;
    uint64_t note; // plain memory that the canceller writes before the cancel
} wait_race;

static void wait_race_prepare(rounds *r) {
    wait_race *race = r->user;
    race->token = child_create(r, r->root);
}

static void wait_race_run(rounds *r, uint32_t index) {
    wait_race *race = r->user;
    if (index == 0) {
        // Every other round late enough that the waiters are parked.
        stagger(r, index, 128);
        if (r->round % 2 == 0) nbi_thread_yield();
        race->note = r->round + 1;
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    // One waiter finds the token cancelled at its first look.
    while (index == 1 && r->round % 4 == 0 && !nb_token_is_cancelled(race->token)) nbi_thread_yield();
    uint64_t start_ns = nbi_clock_now_ns();
    expect(r, nb_token_wait(race->token, start_ns + 10000000000u) == NB_OK);
    expect(r, nbi_clock_now_ns() - start_ns < 1000000000u);
    expect(r, race->note == r->round + 1);
}

static void wait_race_inspect(rounds *r) {
    wait_race *race = r->user;
    nb_token_release(race->token);
}

TEST(waiters_are_woken_and_see_what_the_canceller_wrote) {
    race_steps steps = {wait_race_prepare, wait_race_run, wait_race_inspect, sizeof(wait_race)};
    rounds_run("waiters_are_woken_and_see_what_the_canceller_wrote", steps, 3, test_size(3000, 6666, 500000));
}

// --- linked tokens ---

#define LINK_GROUPS 200
typedef struct link_group {
    nb_token *sources[2], *any, *below, *second;
} link_group;

typedef struct link_race {
    link_group groups[LINK_GROUPS];
    nb_atomic_u64 token_count;
} link_race;

// In every other round the linked tokens end while their sources are cancelled.
static bool linked_tokens_end(const rounds *r) { return r->round % 2 == 1; }

static void link_race_prepare(rounds *r) {
    link_race *race = r->user;
    for (int i = 0; i < LINK_GROUPS; ++i) {
        link_group *group = &race->groups[i];
        for (int source = 0; source < 2; ++source) group->sources[source] = root_create(r);
        group->any = any_create(r, group->sources, 2);
        group->below = child_create(r, group->any);
        nb_token *both[2] = {group->sources[1], group->below};
        group->second = any_create(r, both, 2);
    }
}

static void link_group_release(link_group *group) {
    nb_token_release(group->any);
    nb_token_release(group->second);
    nb_token_release(group->below);
}

// Threads 0 and 2 cancel the same source: the one that comes second must not return before the linked tokens are
// marked.
static void link_race_run(rounds *r, uint32_t index) {
    link_race *race = r->user;
    for (int i = 0; i < LINK_GROUPS; ++i) {
        link_group *group = &race->groups[i];
        if (index == 3) {
            if (linked_tokens_end(r)) link_group_release(group);
            continue;
        }
        nb_cancel_counts counts = {0};
        nb_token_cancel(group->sources[index % 2], NB_CANCEL_STALE, 0, &counts);
        nbi_atomic_fetch_add_relaxed_u64(&race->token_count, counts.token_count);
        if (!linked_tokens_end(r)) expect(r, nb_token_is_cancelled(group->second));
    }
}

static void link_race_inspect(rounds *r) {
    link_race *race = r->user;
    if (!linked_tokens_end(r)) expect(r, race->token_count.value == 5 * LINK_GROUPS);
    for (int i = 0; i < LINK_GROUPS; ++i) {
        for (int source = 0; source < 2; ++source) nb_token_release(race->groups[i].sources[source]);
        if (!linked_tokens_end(r)) link_group_release(&race->groups[i]);
    }
}

TEST(linked_tokens_end_or_are_cancelled_once) {
    race_steps steps = {link_race_prepare, link_race_run, link_race_inspect, sizeof(link_race)};
    rounds_run("linked_tokens_end_or_are_cancelled_once", steps, 4, test_size(60, 133, 20000));
}

// A cancel that comes second returns when the first has marked everything, behind every link.
#define LINKED_TOKENS 10000
typedef struct linked_race {
    nb_token *linked[LINKED_TOKENS];
} linked_race;

static void linked_race_prepare(rounds *r) {
    linked_race *race = r->user;
    for (int i = 0; i < LINKED_TOKENS; ++i) race->linked[i] = any_create(r, &r->root, 1);
}

static void linked_race_run(rounds *r, uint32_t index) {
    linked_race *race = r->user;
    while (index != 0 && !nb_token_is_cancelled(r->root)) nbi_thread_yield();
    nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
    for (int i = 0; i < LINKED_TOKENS; ++i) expect(r, nb_token_is_cancelled(race->linked[i]));
}

static void linked_race_inspect(rounds *r) {
    linked_race *race = r->user;
    for (int i = 0; i < LINKED_TOKENS; ++i) nb_token_release(race->linked[i]);
}

TEST(losing_cancel_waits_for_linked_tokens) {
    race_steps steps = {linked_race_prepare, linked_race_run, linked_race_inspect, sizeof(linked_race)};
    rounds_run("losing_cancel_waits_for_linked_tokens", steps, 2, test_size(5, 16, 500));
}

// --- deadlines and shields ---

// Some deadlines are there from the start; two threads add the others, so that the heaps grow meanwhile.
#define DEADLINE_TOKENS 2000
#define DEADLINE_TOKENS_FIRST 8
typedef struct deadline_race {
    nb_token *tokens[DEADLINE_TOKENS];
    nb_atomic_u64 token_count;
} deadline_race;

static void deadline_race_set(rounds *r, uint32_t i) {
    deadline_race *race = r->user;
    // Every fourth is not due in this test.
    uint64_t at = i % 4 == 0 ? DEADLINE_TOKENS + 1 : 1 + i;
    nb_result result = nb_token_set_deadline(race->tokens[i], at, at);
    expect(r, result == NB_OK);
}

static void deadline_race_prepare(rounds *r) {
    deadline_race *race = r->user;
    for (uint32_t i = 0; i < DEADLINE_TOKENS; ++i) race->tokens[i] = child_create(r, r->root);
    for (uint32_t i = 0; i < DEADLINE_TOKENS_FIRST; ++i) deadline_race_set(r, i);
}

static void deadline_race_expire(rounds *r) {
    deadline_race *race = r->user;
    nb_cancel_counts counts = {0};
    expect(r, nb_token_expire(r->root, DEADLINE_TOKENS, DEADLINE_TOKENS, &counts) == NB_OK);
    nbi_atomic_fetch_add_relaxed_u64(&race->token_count, counts.token_count);
}

static void deadline_race_run(rounds *r, uint32_t index) {
    if (index < 2) {
        do deadline_race_expire(r);
        while (nbi_atomic_load_relaxed_u32(&r->progress) < DEADLINE_TOKENS - DEADLINE_TOKENS_FIRST);
        return;
    }
    for (uint32_t i = DEADLINE_TOKENS_FIRST + index - 2; i < DEADLINE_TOKENS; i += 2) {
        deadline_race_set(r, i);
        progress(r);
    }
}

static void deadline_race_inspect(rounds *r) {
    deadline_race *race = r->user;
    deadline_race_expire(r);
    for (uint32_t i = 0; i < DEADLINE_TOKENS; ++i) {
        expect(r, nb_token_is_cancelled(race->tokens[i]) == (i % 4 != 0));
        nb_token_release(race->tokens[i]);
    }
    expect(r, race->token_count.value == DEADLINE_TOKENS - DEADLINE_TOKENS / 4);
}

TEST(expiring_from_several_threads_counts_once) {
    race_steps steps = {deadline_race_prepare, deadline_race_run, deadline_race_inspect, sizeof(deadline_race)};
    rounds_run("expiring_from_several_threads_counts_once", steps, 4, test_size(20, 66, 5000));
}

typedef struct shield_race {
    nb_token *any, *section, *below;
} shield_race;

static void shield_race_prepare(rounds *r) {
    shield_race *race = r->user;
    race->any = any_create(r, &r->root, 1);
    race->section = child_create(r, race->any);
    race->below = child_create(r, race->section);
}

static void shield_race_run(rounds *r, uint32_t index) {
    shield_race *race = r->user;
    if (index == 0) {
        await_progress(r, 200);
        nb_token_cancel(r->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    nb_token *token = index == 1 ? race->any : race->section;
    while (nb_token_shield_begin(token) == NB_OK) {
        progress(r);
        expect(r, nb_token_shield_end(token, NULL) == NB_OK);
        if (nb_token_is_cancelled(r->root)) break;
    }
}

static void shield_race_inspect(rounds *r) {
    shield_race *race = r->user;
    expect(r, nb_token_is_cancelled(race->any));
    expect(r, nb_token_is_cancelled(race->section));
    expect(r, nb_token_is_cancelled(race->below));
    nb_token_release(race->section);
    nb_token_release(race->below);
    nb_token_release(race->any);
}

TEST(cancel_is_not_lost_at_the_end_of_a_shield) {
    race_steps steps = {shield_race_prepare, shield_race_run, shield_race_inspect, sizeof(shield_race)};
    rounds_run("cancel_is_not_lost_at_the_end_of_a_shield", steps, 3, test_size(100, 166, 50000));
}
