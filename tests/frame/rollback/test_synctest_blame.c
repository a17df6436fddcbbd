// SPDX-License-Identifier: MIT
// A careless game reads what it should not in its ticks: each kind of it gets its own verdict, and variables get their
// names.

#include "frame/engine/engine_fixture.h"

#include "nebula/arena.h"
#include "nebula/clock.h"
#include "nebula/synctest.h"

#include "platform/platform.h"

#include <stdlib.h>

typedef enum fault {
    FAULT_WIND,      // a variable that every tick changes
    FAULT_SEASON,    // one that changes every 32 ticks
    FAULT_CAMERA,    // one that frames change
    FAULT_CLOCK,     // the time
    FAULT_ADDRESS,   // where a new block lies
    FAULT_ARENA,     // arena memory that it has not written
    FAULT_STACK,     // the same of a local variable
    FAULT_RACE,      // which of its tasks was first
    FAULT_HEAP,      // a variable on the heap that every tick changes
    FAULT_HEAP_RARE, // one that changes every 32 ticks
    FAULT_SPREAD,    // a variable goes into many places of what is registered
} fault;

// --- the game: what is registered, and what is not ---

#define FIELD_BYTES 20000

static struct { uint64_t sum, ticks; } score; // registered
static uint32_t wind;
static unsigned char field[FIELD_BYTES]; // registered, between variables that are not
static uint32_t season, camera;
static uint64_t ticks_run, frames_drawn; // written all the time, and read by no tick

typedef struct block {
    struct block *next;
    uint64_t value;
} block;

// Made once.
static block *heap_state;

typedef struct race {
    nb_atomic_u32 next;
    uint32_t order[64];
    bool has_workers;
} race;

// What a thread that is awake takes to come by, and more; without one the tick is as on one thread.
#define YIELD_COUNT_MAX 20000u

typedef struct game {
    rig r;
    fault fault;
    race race;
} game;

static void race_range(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    race *self = user;
    (void)context;
    for (uint64_t i = begin; i < end; ++i) {
        // The first lets another thread be before it, where there is one; then they take turns as the machine likes.
        uint32_t left = i == 0 && self->has_workers ? YIELD_COUNT_MAX : 1;
        while (left-- != 0 && (i != 0 || nbi_atomic_load_relaxed_u32(&self->next) == 0)) nbi_thread_yield();
        self->order[nbi_atomic_fetch_add_relaxed_u32(&self->next, 1)] = (uint32_t)i;
    }
}

static uint64_t race_sum(const nb_context *context, race *self) {
    nb_parallel_desc loop = {.run = race_range, .user = self, .count = 64, .grain = 1};
    uint64_t sum = 0;
    self->has_workers = nb_scheduler_stats_get(context->scheduler).worker_count != 0;
    nbi_atomic_store_relaxed_u32(&self->next, 0);
    assert_int_equal(nb_parallel_for(context->scheduler, &loop, NULL), NB_OK);
    for (uint32_t i = 0; i < 64; ++i) sum = sum * 31 + self->order[i];
    *self = (race){.has_workers = false}; // nothing is left of it
    return sum;
}

static uint64_t new_address(void) {
    block *fresh = malloc(sizeof *fresh);
    assert_non_null(fresh);
    *fresh = (block){.next = heap_state->next};
    heap_state->next = fresh;
    return (uint64_t)(uintptr_t)fresh;
}

static uint64_t arena_word(const nb_context *context) {
    uint64_t *words = nb_arena_alloc(context->arena, 64 * sizeof *words, 16);
    assert_non_null(words);
    uint64_t value = words[5];
    words[5] = context->tick->index;
    return value;
}

// Behind a pointer, so that no compiler knows what is not there.
static void *(*volatile same_place)(void *, int, size_t) = memset;

static uint64_t stack_word(void) {
    uint64_t words[1024];
    return ((uint64_t *)same_place(words, 1, sizeof words[0]))[512];
}

static void leave_on_stack(int value) {
    uint64_t words[2048];
    same_place(words, value, sizeof words);
}

static void spread(uint32_t value) {
    for (uint32_t i = 0; i < 12; ++i) memcpy(field + 800 + i * 1600, &value, sizeof value);
}

static uint64_t read_fault(game *g, const nb_context *context) {
    uint64_t tick = context->tick->index;
    switch (g->fault) {
    case FAULT_WIND: return ++wind;
    case FAULT_SEASON: season = tick % 32 == 31 ? (uint32_t)tick : season; return season;
    case FAULT_CAMERA: return camera;
    case FAULT_CLOCK: return nb_clock_now_ns(NULL);
    case FAULT_ADDRESS: return new_address();
    case FAULT_ARENA: return arena_word(context);
    case FAULT_STACK: return stack_word();
    case FAULT_RACE: return race_sum(context, &g->race);
    case FAULT_HEAP: return ++heap_state->value;
    case FAULT_HEAP_RARE: heap_state->value += tick % 32 == 31; return heap_state->value;
    case FAULT_SPREAD: spread(++wind); return wind;
    }
    return 0;
}

static nb_result game_tick(const nb_context *context, void *user) {
    score.sum = score.sum * 31 + read_fault(user, context);
    score.ticks += 1;
    field[context->tick->index * 64 % FIELD_BYTES] += 1;
    ++ticks_run;
    return NB_OK;
}

static nb_result game_frame(const nb_context *context, void *user) {
    (void)user;
    ++frames_drawn;
    if (context->frame_index % 32 == 31) camera += 7;
    leave_on_stack((int)frames_drawn);
    return NB_OK;
}

static void game_open(game *g, fault kind, uint32_t worker_count, uint32_t depth) {
    memset(g, 0, sizeof *g);
    memset(&score, 0, sizeof score);
    memset(field, 0, sizeof field);
    wind = season = camera = 0;
    ticks_run = frames_drawn = 0;
    heap_state = calloc(1, sizeof *heap_state);
    assert_non_null(heap_state);
    g->fault = kind;
    nb_engine_desc desc = rig_desc(worker_count);
    desc.synctest_depth = depth;
    desc.history = (nb_history_desc){.bytes_max = (size_t)4 << 20, .tick_count_max = 64};
    rig_open_desc(&g->r, desc);
    const nb_provider_desc states[] = {{.name = "score", .data = &score, .size_bytes = sizeof score},
                                       {.name = "field", .data = field, .size_bytes = sizeof field}};
    for (uint32_t i = 0; i < 2; ++i)
        assert_int_equal(nb_states_add(nb_engine_states(g->r.engine), &states[i], NULL), NB_OK);
    attach(&g->r, (nb_module_desc){.name = "game", .tick = game_tick, .frame = game_frame, .user = g});
}

static void game_close(game *g) {
    rig_close(&g->r);
    for (block *at = heap_state, *next; at != NULL; at = next) {
        next = at->next;
        free(at);
    }
}

// Runs until it is seen; the game itself goes on as it first ran.
static nb_synctest_report blame(fault kind, uint32_t worker_count, uint32_t depth) {
    static game g;
    nb_synctest_report report;
    game_open(&g, kind, worker_count, depth);
    for (uint32_t i = 0; i < 2000; ++i) {
        run_ticks(&g.r, 1);
        assert_int_equal(nb_engine_synctest_get(g.r.engine, &report), NB_OK);
        if (report.diverged_count != 0 && i > 50) break;
    }
    assert_true(report.diverged_count > 0);
    assert_int_equal(report.lost_count + report.outside_count, 0);
    assert_int_equal(test_log_count(&g.r.log, NB_ITEM_SYNCTEST_DIVERGED), 1);
    // The log has less room than the report, and says who it was.
    assert_memory_equal(g.r.log.last_message, report.text, 60);
    assert_non_null(strstr(g.r.log.last_message, report.culprit));
    assert_string_equal(report.difference.provider, kind == FAULT_SPREAD ? "field" : "score");
    bool is_compared = report.cause != NB_SYNCTEST_RACE && report.cause != NB_SYNCTEST_UNINITIALISED;
    assert_int_equal(report.program_bytes != 0, is_compared && nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY));
    game_close(&g);
    return report;
}

static bool says(const nb_synctest_report *report, const char *part) {
    if (strstr(report->text, part) != NULL) return true;
    print_message("%s\n", report->text);
    return false;
}

// --- what is found ---

// Without symbols or abilities it says what it compared, and no more.
static void check_variable(const nb_synctest_report *report, const char *name, bool is_steady) {
    if (!nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY)) {
        assert_int_equal(report->cause, is_steady ? NB_SYNCTEST_UNKNOWN : NB_SYNCTEST_UNSTEADY);
        assert_true(says(report, "cannot be compared here"));
        return;
    }
    assert_int_equal(report->cause, NB_SYNCTEST_UNREGISTERED);
    assert_true(says(report, name));
    assert_null(strstr(report->text, "field"));
    assert_null(strstr(report->text, "without a symbol"));
    if (nbi_platform_has(NBI_ABILITY_PROBE)) {
        assert_int_equal(report->variable_count, 1);
        assert_memory_equal(report->culprit, name, strlen(report->culprit));
        assert_true(says(report, "the tick depends on the unregistered variable "));
        assert_null(strstr(report->text, "ticks_run"));
        assert_null(strstr(report->text, "frames_drawn"));
        return;
    }
    assert_true(says(report, is_steady ? "have changed since it first ran" : "that each run of it changes"));
    assert_int_equal(strstr(report->text, "ticks_run") == NULL, is_steady);
}

TEST(variable_that_every_tick_changes_is_named) {
    for (uint32_t i = 0; i < 4; ++i) {
        nb_synctest_report report = blame(FAULT_WIND, i % 2 * 2, i / 2 * 7 + 1);
        check_variable(&report, "wind (0x0000", false);
    }
}

TEST(variable_that_rarely_changes_is_named) {
    for (uint32_t i = 0; i < 4; ++i) {
        nb_synctest_report report = blame(i < 2 ? FAULT_SEASON : FAULT_CAMERA, i % 2 * 2, 8);
        check_variable(&report,
                       i < 2 ? "season (0x00000000 before, 0x0000001f now)" : "camera (0x00000000 before, 0x000", true);
    }
}

// Although the game counts its ticks in a variable, which changes as often.
TEST(time_and_addresses_are_told_from_variables) {
    static const fault faults[] = {FAULT_CLOCK, FAULT_ADDRESS, FAULT_HEAP};
    for (uint32_t i = 0; i < 6; ++i) {
        nb_synctest_report report = blame(faults[i / 2], i % 2 * 2, 4);
        assert_true(says(&report, "time"));
        assert_true(says(&report, "addresses"));
        // Nobody can see without a probe that the count is not read; it is said.
        bool is_sure = nbi_platform_has(NBI_ABILITY_PROBE) || !nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY);
        assert_int_equal(report.cause, is_sure ? NB_SYNCTEST_UNSTEADY : NB_SYNCTEST_UNREGISTERED);
        if (is_sure) assert_string_equal(report.culprit, "");
    }
}

TEST(memory_that_was_not_written_is_told) {
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
    skip(); // that one stops at the first look
#endif
#endif
    for (uint32_t i = 0; i < 4; ++i) {
        nb_synctest_report report = blame(i < 2 ? FAULT_ARENA : FAULT_STACK, i % 2 * 2, 4);
        assert_int_equal(report.cause, NB_SYNCTEST_UNINITIALISED);
        assert_true(says(&report, "reads memory that it has not written"));
        assert_string_equal(report.culprit, "");
    }
}

TEST(race_is_told_from_time_and_variables) {
    for (uint32_t workers = 1; workers <= 3; workers += 2) {
        nb_synctest_report report = blame(FAULT_RACE, workers, 4);
        assert_int_equal(report.cause, NB_SYNCTEST_RACE);
        assert_true(says(&report, "which threads run its tasks"));
    }
}

TEST_ONE_THREAD(what_is_not_found_is_not_guessed) {
    nb_synctest_report report = blame(FAULT_HEAP_RARE, 0, 8);
    bool is_sure = nbi_platform_has(NBI_ABILITY_PROBE) || !nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY);
    if (!is_sure) return; // then what has changed since is listed
    assert_int_equal(report.cause, NB_SYNCTEST_UNKNOWN);
    assert_string_equal(report.culprit, "");
    assert_true(says(&report, report.program_bytes != 0 ? "no cause was found" : "something not registered"));
}

TEST_ONE_THREAD(every_place_that_differs_is_in_the_report) {
    nb_synctest_report report = blame(FAULT_SPREAD, 0, 1);
    const nb_difference *difference = &report.difference;
    assert_int_equal(difference->range_count, 12);
    assert_int_equal(difference->provider_count, 2);
    assert_string_equal(difference->others, "score");
    for (uint32_t i = 0; i < NB_DIFFERENCE_RANGE_MAX; ++i) {
        assert_int_equal(difference->ranges[i].offset_bytes, 800 + i * 1600);
        assert_int_equal(difference->ranges[i].here, 1);
        assert_int_equal(difference->ranges[i].there, 2);
    }
    assert_true(
        says(&report, "12 ranges, 12 bytes differ; 800 to 800: word 0x0000000000000001 here, 0x0000000000000002"));
    assert_true(says(&report, "; 4 more; also score"));
}
