// SPDX-License-Identifier: MIT
// A guard names the write that should not have been, and the process ends where it was made. Every fault happens in a
// child process, whose standard error and end are looked at here.

#define _DEFAULT_SOURCE // sigaction, fork, setrlimit

#include "frame/engine/engine_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame/engine/thread_owner.h"
#include "nebula/guard.h"

// --- children ---

// What a child says with its exit code: sanitizers and cmocka use others.
enum { CHILD_WRITE_WENT_THROUGH = 60, CHILD_FAULT_PASSED_ON = 61, CHILD_BROKEN = 63 };

typedef struct ending {
    int code, signal; // one of them is 0
    char text[2048];  // standard error
} ending;

// Runs `act` in a child whose SIGSEGV is as the OS has it: cmocka has a handler of its own.
static ending child_run(int (*act)(const void *argument), const void *argument) {
    ending end = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        _exit(act(argument));
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got = 1; got > 0 && length < sizeof end.text - 1; length += (size_t)(got > 0 ? got : 0)) {
        got = read(ends[0], end.text + length, sizeof end.text - 1 - length);
    }
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) end.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    return end;
}

static void assert_named(const ending *end, const char *text) {
    assert_string_equal(end->text, text);
    assert_int_equal(end->signal, SIGSEGV);
}

// --- what is guarded ---

typedef struct vec3 {
    float x, y, z;
} vec3;

enum { POSITION, HEALTH };

typedef struct scene {
    nb_store *world;
    nb_table ships;
    nb_snapshots *snapshots;
    const nb_snapshot *snapshot;
    nb_guard *guard;
} scene;

static uint32_t live[100];

static bool world_open(scene *s) {
    const nb_column_desc columns[] = {{.name = "position", .size_bytes = sizeof(vec3), .flags = NB_COLUMN_INTERPOLATE},
                                      {.name = "health", .size_bytes = sizeof(uint32_t)}};
    nb_table_desc first = {.name = "first", .columns = columns, .column_count = 1, .is_singleton = true};
    nb_table_desc ships = {.name = "ships", .row_count_max = 200, .columns = columns, .column_count = 2};
    nb_store_desc desc = {.is_protectable = true};
    nb_entity entity;
    if (nb_store_create(&desc, &s->world) != NB_OK) return false;
    if (nb_store_table_add(s->world, &first, &s->ships) != NB_OK) return false;
    if (nb_store_table_add(s->world, &ships, &s->ships) != NB_OK) return false;
    for (int i = 0; i < 100; ++i) {
        if (nb_store_spawn(s->world, s->ships, &entity) != NB_OK) return false;
    }
    return true;
}

static bool snapshots_open(scene *s) {
    nb_snapshots_desc desc = {.is_protected = true};
    nb_snapshot_region_desc state = {.name = "state", .base = live, .size_bytes = sizeof live};
    uint32_t region;
    if (nb_snapshots_create(&desc, &s->snapshots) != NB_OK) return false;
    if (nb_snapshots_region_add(s->snapshots, &state, &region) != NB_OK) return false;
    if (nb_snapshots_publish(s->snapshots, NULL) != NB_OK) return false;
    s->snapshot = nb_snapshots_acquire(s->snapshots);
    return s->snapshot != NULL;
}

static bool scene_open(scene *s, nb_guard_who_fn *who, void *user) {
    *s = (scene){0};
    if (!world_open(s) || !snapshots_open(s)) return false;
    nb_guard_desc desc = {.store = s->world, .snapshots = s->snapshots, .who = who, .user = user};
    return nb_guard_create(&desc, &s->guard) == NB_OK && nb_store_protect(s->world, true) == NB_OK;
}

static void scene_close(scene *s) {
    nb_guard_destroy(s->guard);
    nb_snapshot_release(s->snapshot);
    assert_int_equal(nb_snapshots_destroy(s->snapshots), NB_OK);
    nb_store_destroy(s->world);
}

static const char *painter(void *user, uint64_t thread_id, uint32_t *job_index) {
    if (thread_id != nbi_thread_id() || *job_index != NB_GUARD_NO_JOB) return "wrong";
    *job_index = 3;
    return (const char *)user;
}

static const char *nameless(void *user, uint64_t thread_id, uint32_t *job_index) {
    (void)thread_id;
    *job_index = 7; // of nobody
    return (const char *)user;
}

static const char *handler(void *user, uint64_t thread_id, uint32_t *job_index) {
    (void)thread_id;
    (void)job_index;
    return (const char *)user;
}

static void poke(const void *address) { *(volatile unsigned char *)(uintptr_t)address ^= 1; }

// --- illegal writes ---

enum { TO_ROW, TO_PREVIOUS, TO_ENTITY, TO_MARK, TO_TAIL, TO_SNAPSHOT };

static const void *target_of(const scene *s, int target) {
    nb_column_view view = {0};
    if (target == TO_ROW) return &NB_STORE_ROW(s->world, s->ships, POSITION, vec3, 17)->y;
    if (target == TO_SNAPSHOT) return (const char *)s->snapshot->regions[0].base + 5;
    if (target == TO_PREVIOUS) nb_store_previous_view(s->world, s->ships, POSITION, &view);
    if (target == TO_ENTITY) nb_store_entity_view(s->world, s->ships, &view);
    if (target == TO_MARK) nb_store_teleport_view(s->world, s->ships, &view);
    if (target == TO_TAIL) nb_store_column_view(s->world, s->ships, HEALTH, &view);
    return (const char *)view.base + (target == TO_TAIL ? 255 : 99) * view.stride_bytes;
}

static int write_to(const void *argument) {
    scene s;
    char name[] = "painter";
    if (!scene_open(&s, painter, name)) return CHILD_BROKEN;
    poke(target_of(&s, *(const int *)argument));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(illegal_write_names_job_and_place) {
    static const char *const lines[] = {
        "nebula: illegal write by painter, job 3 to ships.position[17], byte 4\n",
        "nebula: illegal write by painter, job 3 to ships.position (previous)[99], byte 0\n",
        "nebula: illegal write by painter, job 3 to ships.entities[99], byte 0\n",
        "nebula: illegal write by painter, job 3 to ships.teleports[99], byte 0\n",
        "nebula: illegal write by painter, job 3 to ships.health[255], byte 0\n",
        "nebula: illegal write by painter, job 3 to snapshot 1 of state, byte 5\n",
    };
    for (int target = TO_ROW; target <= TO_SNAPSHOT; ++target) {
        ending end = child_run(write_to, &target);
        assert_named(&end, lines[target]);
    }
}

// What asks for a row to write still gets it, so that the fault is at the write and has its row.
static int write_through_the_macro(const void *argument) {
    (void)argument;
    scene s;
    char name[] = "painter";
    if (!scene_open(&s, handler, name)) return CHILD_BROKEN;
    uint32_t *health = NB_STORE_ROWS_WRITE(s.world, s.ships, HEALTH, uint32_t);
    *(volatile uint32_t *)&health[42] = 1;
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(fault_comes_with_the_write_and_has_its_row) {
    ending end = child_run(write_through_the_macro, NULL);
    assert_named(&end, "nebula: illegal write by painter to ships.health[42], byte 0\n");
}

static int write_to_first_table(const void *argument) {
    (void)argument;
    scene s;
    if (!scene_open(&s, NULL, NULL)) return CHILD_BROKEN;
    poke(NB_STORE_SINGLETON(s.world, nb_store_table_find(s.world, "first"), 0, vec3));
    return CHILD_WRITE_WENT_THROUGH;
}

static int write_as_nobody(const void *argument) {
    scene s;
    (void)argument;
    if (!scene_open(&s, nameless, NULL)) return CHILD_BROKEN;
    poke(target_of(&s, TO_ROW));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(thread_stands_in_for_an_unknown_name) {
    char line[160];
    // The child's first thread has the number of this one.
    snprintf(line, sizeof line, "nebula: illegal write by thread 0x%llx to first.position[0], byte 0\n",
             (unsigned long long)nbi_thread_id());
    ending end = child_run(write_to_first_table, NULL);
    assert_named(&end, line);
    snprintf(line, sizeof line, "nebula: illegal write by thread 0x%llx to ships.position[17], byte 4\n",
             (unsigned long long)nbi_thread_id());
    end = child_run(write_as_nobody, NULL);
    assert_named(&end, line);
}

static int write_with_a_long_name(const void *argument) {
    scene s;
    static char name[2000];
    (void)argument;
    memset(name, 'x', sizeof name - 1);
    if (!scene_open(&s, handler, name)) return CHILD_BROKEN;
    poke(target_of(&s, TO_ROW));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(long_name_is_cut) {
    ending end = child_run(write_with_a_long_name, NULL);
    assert_int_equal(end.signal, SIGSEGV);
    assert_int_equal(strlen(end.text), 512);
    assert_int_equal(end.text[511], '\n');
    assert_int_equal(end.text[510], 'x');
}

static void poke_elsewhere(void *user) { poke(target_of(user, TO_ROW)); }

static int write_on_another_thread(const void *argument) {
    scene s;
    char name[] = "other";
    (void)argument;
    if (!scene_open(&s, painter, name)) return CHILD_BROKEN;
    test_thread_run(poke_elsewhere, &s);
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(other_thread_is_named) {
    ending end = child_run(write_on_another_thread, NULL);
    assert_named(&end, "nebula: illegal write by other, job 3 to ships.position[17], byte 4\n");
}

static int write_unprotected(const void *argument) {
    scene s;
    (void)argument;
    if (!scene_open(&s, NULL, NULL) || nb_store_protect(s.world, false) != NB_OK) return CHILD_BROKEN;
    for (int target = TO_ROW; target < TO_SNAPSHOT; ++target) poke(target_of(&s, target));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(unprotected_world_is_written) {
    ending end = child_run(write_unprotected, NULL);
    assert_int_equal(end.code, CHILD_WRITE_WENT_THROUGH);
    assert_string_equal(end.text, "");
}

// Pages that are gone stand in for an OS that refuses: the tables before them are as they were.
static int protect_half(const void *argument) {
    scene s = {0};
    nb_column_view view;
    bool is_protected = *(const int *)argument != 0;
    if (!world_open(&s) || nb_store_protect(s.world, !is_protected) != NB_OK) return CHILD_BROKEN;
    nb_store_column_view(s.world, s.ships, POSITION, &view);
    nbi_pages_release((void *)(uintptr_t)view.base, nbi_page_size());
    if (nb_store_protect(s.world, is_protected) != NB_ERR_OS) return CHILD_BROKEN;
    nb_guard_desc desc = {.store = s.world, .who = handler, .user = (void *)(uintptr_t) "half"};
    if (nb_guard_create(&desc, &s.guard) != NB_OK) return CHILD_BROKEN;
    poke(NB_STORE_SINGLETON(s.world, nb_store_table_find(s.world, "first"), 0, vec3));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(refused_protection_leaves_everything_as_it_was) {
    int is_protected = 1;
    ending end = child_run(protect_half, &is_protected);
    assert_int_equal(end.code, CHILD_WRITE_WENT_THROUGH);
    is_protected = 0;
    end = child_run(protect_half, &is_protected);
    assert_int_equal(end.signal, SIGSEGV);
}

// --- other faults ---

static void on_fault_with_info(int number, siginfo_t *info, void *context) {
    (void)context;
    _exit(number == SIGSEGV && info != NULL ? CHILD_FAULT_PASSED_ON : CHILD_BROKEN);
}

static void on_fault_plain(int number) { _exit(number == SIGSEGV ? CHILD_FAULT_PASSED_ON : CHILD_BROKEN); }

enum { BEFORE_NOTHING, BEFORE_PLAIN, BEFORE_INFO, BEFORE_IGNORED };

static void handler_install(int kind) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    if (kind == BEFORE_NOTHING) return;
    if (kind == BEFORE_INFO) action.sa_flags = SA_SIGINFO;
    if (kind == BEFORE_INFO) action.sa_sigaction = on_fault_with_info;
    if (kind == BEFORE_PLAIN) action.sa_handler = on_fault_plain;
    if (kind == BEFORE_IGNORED) action.sa_handler = SIG_IGN;
    sigaction(SIGSEGV, &action, NULL);
}

static int write_elsewhere(const void *argument) {
    scene s;
    handler_install(*(const int *)argument);
    if (!scene_open(&s, NULL, NULL)) return CHILD_BROKEN;
    void *pages = nbi_pages_reserve(nbi_page_size()); // no access at all
    poke(pages);
    return CHILD_WRITE_WENT_THROUGH;
}

static int signal_sent(const void *argument) {
    scene s;
    handler_install(*(const int *)argument);
    if (!scene_open(&s, NULL, NULL)) return CHILD_BROKEN;
    kill(getpid(), SIGSEGV);
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(other_faults_go_to_whoever_had_them) {
    for (int kind = BEFORE_NOTHING; kind <= BEFORE_IGNORED; ++kind) {
        bool is_caught = kind == BEFORE_PLAIN || kind == BEFORE_INFO;
        ending fault = child_run(write_elsewhere, &kind), sent = child_run(signal_sent, &kind);
        assert_int_equal(fault.signal, is_caught ? 0 : SIGSEGV);
        assert_int_equal(fault.code, is_caught ? CHILD_FAULT_PASSED_ON : 0);
        assert_string_equal(fault.text, "");
        if (kind == BEFORE_NOTHING) assert_int_equal(sent.signal, SIGSEGV);
        if (is_caught) assert_int_equal(sent.code, CHILD_FAULT_PASSED_ON);
        if (kind == BEFORE_IGNORED) assert_int_equal(sent.code, CHILD_WRITE_WENT_THROUGH);
        assert_string_equal(sent.text, "");
    }
}

// A write that is named ends the process, whoever handles other faults.
static int write_with_a_handler(const void *argument) {
    handler_install(BEFORE_INFO);
    return write_to(argument);
}

TEST(named_write_ends_the_process_at_its_instruction) {
    int target = TO_ROW;
    ending end = child_run(write_with_a_handler, &target);
    assert_named(&end, "nebula: illegal write by painter, job 3 to ships.position[17], byte 4\n");
}

// --- coming and going ---

static bool handler_is(void (*expected)(int, siginfo_t *, void *)) {
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == expected;
}

static int come_and_go(const void *argument) {
    scene first, second;
    (void)argument;
    handler_install(BEFORE_INFO);
    for (int i = 0; i < 3; ++i) {
        if (!scene_open(&first, NULL, NULL) || handler_is(on_fault_with_info)) return CHILD_BROKEN;
        if (!scene_open(&second, NULL, NULL)) return CHILD_BROKEN;
        nb_guard_destroy(i == 1 ? first.guard : second.guard);
        if (handler_is(on_fault_with_info)) return CHILD_BROKEN; // the other still stands
        nb_guard_destroy(i == 1 ? second.guard : first.guard);
        if (!handler_is(on_fault_with_info)) return CHILD_BROKEN;
    }
    poke(target_of(&first, TO_ROW));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(last_guard_leaves_the_handler_from_before) {
    ending end = child_run(come_and_go, NULL);
    assert_int_equal(end.code, CHILD_FAULT_PASSED_ON);
    assert_string_equal(end.text, "");
}

static struct sigaction handler_below;
static void on_fault_chained(int number, siginfo_t *info, void *context) {
    if ((handler_below.sa_flags & SA_SIGINFO) == 0) _exit(CHILD_BROKEN);
    handler_below.sa_sigaction(number, info, context);
}

// One that came later stays, and may go on calling ours after the last guard is gone.
static int be_overtaken(const void *argument) {
    scene s;
    handler_install(BEFORE_INFO);
    if (!scene_open(&s, painter, (void *)(uintptr_t) "painter")) return CHILD_BROKEN;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_fault_chained;
    sigaction(SIGSEGV, &action, &handler_below);
    bool is_again = *(const int *)argument != 0;
    nb_guard_destroy(s.guard);
    if (!handler_is(on_fault_chained)) return CHILD_BROKEN;
    if (is_again) {
        nb_guard_desc desc = {.store = s.world, .who = painter, .user = (void *)(uintptr_t) "again"};
        if (nb_guard_create(&desc, &s.guard) != NB_OK || !handler_is(on_fault_chained)) return CHILD_BROKEN;
    }
    poke(target_of(&s, TO_ROW));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(later_handler_stays_and_may_pass_on) {
    int is_again = 0;
    ending end = child_run(be_overtaken, &is_again);
    assert_int_equal(end.code, CHILD_FAULT_PASSED_ON);
    assert_string_equal(end.text, "");
    is_again = 1;
    end = child_run(be_overtaken, &is_again);
    assert_named(&end, "nebula: illegal write by again, job 3 to ships.position[17], byte 4\n");
}

static int write_to_one_of_two(const void *argument) {
    scene both[2];
    char names[2][6] = {"left", "right"};
    int target = *(const int *)argument;
    for (int i = 0; i < 2; ++i) {
        if (!scene_open(&both[i], handler, names[i])) return CHILD_BROKEN;
    }
    if (target == 2) nb_guard_destroy(both[0].guard); // and then nobody names it
    poke(target_of(&both[target % 2], TO_SNAPSHOT));
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(each_guard_names_its_own) {
    static const char *const lines[] = {"nebula: illegal write by left to snapshot 1 of state, byte 5\n",
                                        "nebula: illegal write by right to snapshot 1 of state, byte 5\n", ""};
    for (int target = 0; target < 3; ++target) {
        ending end = child_run(write_to_one_of_two, &target);
        assert_named(&end, lines[target]);
    }
}

TEST(guards_are_counted_and_leave_nothing) {
    test_log log = {0};
    test_heap heap = {0};
    scene s = {0};
    assert_true(world_open(&s));
    nb_guard *guards[NB_GUARD_COUNT_MAX] = {0}, *more = NULL;
    nb_guard_desc desc = {.store = s.world, .hooks = test_hooks(&log, &heap)};
    for (int turn = 0; turn < 3; ++turn) {
        for (uint32_t i = 0; i < NB_GUARD_COUNT_MAX; ++i) assert_int_equal(nb_guard_create(&desc, &guards[i]), NB_OK);
        assert_int_equal(nb_guard_create(&desc, &more), NB_FULL);
        assert_int_equal(test_log_count(&log, NB_ITEM_GUARD_FULL), turn + 1);
        assert_int_equal(heap.live_count.value, NB_GUARD_COUNT_MAX);
        for (uint32_t i = 0; i < NB_GUARD_COUNT_MAX; ++i) nb_guard_destroy(guards[i]);
        assert_int_equal(heap.live_count.value, 0);
    }
    heap.fail_from = heap.call_count.value + 1;
    assert_int_equal(nb_guard_create(&desc, &more), NB_ERR_MEMORY);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
    assert_null(more);
    nb_store_destroy(s.world);
}

TEST(guarded_scene_is_read_and_published) {
    scene s;
    assert_true(scene_open(&s, NULL, NULL));
    nb_guard_destroy(s.guard);
    nb_guard_desc desc = nb_guard_desc_default();
    desc.snapshots = s.snapshots; // no world
    assert_int_equal(nb_guard_create(&desc, &s.guard), NB_OK);
    for (uint32_t i = 0; i < 20; ++i) {
        live[0] = i;
        assert_int_equal(nb_snapshots_publish(s.snapshots, NULL), NB_OK);
        const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
        assert_int_equal(*(const uint32_t *)snapshot->regions[0].base, i);
        nb_snapshot_release(snapshot);
        assert_true(NB_STORE_ROW(s.world, s.ships, POSITION, vec3, 17)->y == 0.0f);
    }
    scene_close(&s);
}

// --- with an engine ---

typedef struct frame_scene {
    scene *scene;
    uint32_t bad_job; // that writes; UINT32_MAX = the merge does
} frame_scene;

static nb_result protect(const nb_context *context, void *user) {
    (void)context;
    return nb_store_protect(((frame_scene *)user)->scene->world, true);
}

static nb_result work(const nb_context *context, void *user) {
    frame_scene *f = user;
    if (context->job_index == f->bad_job) poke(target_of(f->scene, TO_ROW));
    return NB_OK;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context;
    (void)outputs;
    poke(target_of(((frame_scene *)user)->scene, TO_MARK));
    return NB_OK;
}

typedef struct engine_case {
    uint32_t worker_count, bad_job;
} engine_case;

static int write_in_a_frame(const void *argument) {
    const engine_case *c = argument;
    scene s = {0};
    nb_engine *engine = NULL;
    nb_engine_desc engine_desc = rig_desc(c->worker_count);
    if (!world_open(&s) || nb_engine_create(&engine_desc, &engine) != NB_OK) return CHILD_BROKEN;
    nb_guard_desc desc = {.store = s.world, .who = nbi_engine_thread_owner, .user = engine};
    frame_scene f = {&s, c->bad_job};
    nb_module_desc other = {.name = "other", .parallel = work, .job_count = 8, .user = &(frame_scene){&s, UINT32_MAX}};
    nb_module_desc module = {.name = "culling", .parallel = work, .merge = merge, .job_count = 8, .user = &f};
    module.handlers[NB_PHASE_SNAPSHOT] = protect;
    if (nb_guard_create(&desc, &s.guard) != NB_OK) return CHILD_BROKEN;
    if (nb_engine_module_attach(engine, &other, NULL) != NB_OK) return CHILD_BROKEN;
    if (nb_engine_module_attach(engine, &module, NULL) != NB_OK) return CHILD_BROKEN;
    nb_engine_run_ticks(engine, 1);
    return CHILD_WRITE_WENT_THROUGH;
}

TEST(engine_names_module_and_job) {
    for (uint32_t workers = 0; workers <= 2; ++workers) {
        engine_case in_job = {workers, 5}, in_merge = {workers, UINT32_MAX};
        ending end = child_run(write_in_a_frame, &in_job);
        assert_named(&end, "nebula: illegal write by culling, job 5 to ships.position[17], byte 4\n");
        end = child_run(write_in_a_frame, &in_merge);
        assert_named(&end, "nebula: illegal write by culling to ships.teleports[99], byte 0\n");
    }
}

// --- in an engine ---

static const nb_column_desc crate_columns[] = {
    {.name = "weight", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_SNAPSHOT}};

typedef enum misdeed { WRITES_NOTHING, WRITES_LIVE_IN_PARALLEL, WRITES_LIVE_IN_RECORD, WRITES_SNAPSHOT } misdeed;

typedef struct yard {
    nb_table crates;
    misdeed misdeed;
    bool is_guarded, is_headless;
    uint32_t workers;
} yard;

static yard current_yard;

static nb_result load_crates(const nb_context *context, void *user) {
    const yard *y = user;
    uint32_t *weight = NB_STORE_ROWS_WRITE(context->world, y->crates, 0, uint32_t);
    NB_STORE_EACH_ROW(row, context->world, y->crates) weight[row] += 1; // between parallel phases all is as ever
    return NB_OK;
}

static nb_result misbehave(const nb_context *context, void *user) {
    const yard *y = user;
    bool is_live = (y->misdeed == WRITES_LIVE_IN_PARALLEL && context->phase == NB_PHASE_PARALLEL_TASKS) ||
                   (y->misdeed == WRITES_LIVE_IN_RECORD && context->phase == NB_PHASE_COMMAND_RECORD);
    if (context->frame_index < 2 || context->job_index != 1) return NB_OK;
    if (is_live) poke(NB_STORE_ROW(context->world, y->crates, 0, uint32_t, 17));
    if (y->misdeed == WRITES_SNAPSHOT) poke(NB_STORE_VIEW(context->snapshot, context->world, y->crates, 0, uint32_t));
    return NB_OK;
}

static int run_yard(const void *argument) {
    const yard *asked = argument;
    current_yard = *asked;
    nb_engine_desc desc = rig_desc(asked->workers);
    desc.is_guarded = asked->is_guarded;
    desc.is_headless = asked->is_headless;
    nb_engine *engine = NULL;
    if (nb_engine_create(&desc, &engine) != NB_OK) return CHILD_BROKEN;
    nb_table_desc crates = {.name = "crates", .row_count_max = 100, .columns = crate_columns, .column_count = 1};
    nb_store *world = nb_engine_world(engine);
    nb_entity entity;
    if (world == NULL || nb_store_table_add(world, &crates, &current_yard.crates) != NB_OK) return CHILD_BROKEN;
    for (uint32_t i = 0; i < 50; ++i) {
        if (nb_store_spawn(world, current_yard.crates, &entity) != NB_OK) return CHILD_BROKEN;
    }
    nb_module_desc module = {.name = "yard",
                             .tick = load_crates,
                             .parallel = misbehave,
                             .record = misbehave,
                             .job_count = 3,
                             .record_count = 3,
                             .user = &current_yard};
    if (nb_engine_module_attach(engine, &module, NULL) != NB_OK) return CHILD_BROKEN;
    if (nb_engine_run_ticks(engine, 5) != NB_OK) return CHILD_BROKEN;
    return nb_engine_destroy(engine) == NB_OK ? CHILD_WRITE_WENT_THROUGH : CHILD_BROKEN;
}

TEST(engine_names_the_job_and_the_column) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        yard y = {.is_guarded = true, .workers = workers, .misdeed = WRITES_LIVE_IN_PARALLEL};
        ending end = child_run(run_yard, &y);
        assert_named(&end, "nebula: illegal write by yard, job 1 to crates.weight[17], byte 0\n");
        y.misdeed = WRITES_LIVE_IN_RECORD;
        end = child_run(run_yard, &y);
        assert_named(&end, "nebula: illegal write by yard, job 1 to crates.weight[17], byte 0\n");
        y.misdeed = WRITES_SNAPSHOT;
        end = child_run(run_yard, &y);
        assert_named(&end, "nebula: illegal write by yard, job 1 to snapshot 3 of crates.weight, byte 0\n");
        y.misdeed = WRITES_NOTHING;
        assert_int_equal(child_run(run_yard, &y).code, CHILD_WRITE_WENT_THROUGH);
        y.is_headless = true; // without recording
        assert_int_equal(child_run(run_yard, &y).code, CHILD_WRITE_WENT_THROUGH);
        y.is_guarded = y.is_headless = false;
        y.misdeed = WRITES_LIVE_IN_PARALLEL;
        assert_int_equal(child_run(run_yard, &y).code, CHILD_WRITE_WENT_THROUGH); // nobody looks
    }
}
