// SPDX-License-Identifier: MIT
// What does a tick depend on that a rewind does not bring back? Found by trying: the same tick from the same state,
// with one thing changed each time. First what it does by itself, on one thread: ends it alike each time, whatever lies
// in memory that it has not written? Then with all threads. Then with one piece of local state put to what it was when
// the tick first ran. What is left is compared: the program's variables.

#include "synctest.h"

#include "../../base/arena.h"

#include <stdio.h>
#include <string.h>

// Times that the tick is simulated from one and the same state to see whether it ends in one: a race that shows every
// other time is missed once in eight.
#define STEADY_TRY_COUNT 4

// What a tick's own locals take of the stack, and it must have: a thread of a game has 256 KiB and more.
#define PAINT_STACK_BYTES 32768

// More than a tick allocates from its arena before it writes.
#define PAINT_ARENA_BYTES ((size_t)1 << 20)

// Two patterns that differ in every bit, and are no small numbers.
#define PAINT_ONE 0x5Au
#define PAINT_OTHER 0xA5u

// Pieces that are put to what they were in the first run.
typedef enum pick_kind { PICK_NONE, PICK_ONE, PICK_ALL } pick_kind;

typedef struct pick {
    pick_kind kind;
    uint32_t index; // of PICK_ONE
} pick;

// One run of the tick.
typedef struct trial {
    pick picked;
    unsigned char paint;    // in memory that it has not written
    nb_scheduler *solo;     // NULL = with all threads
    nbi_copy *program_copy; // gets the program's variables before it; may be NULL
    bool puts_variables;    // in a copy of the process: puts this place
    uint32_t range_index;
} trial;

static bool is_candidate(const nbi_local *piece) { return piece->kind != NBI_LOCAL_STASHED; }

static bool is_picked(const nbi_local *piece, uint32_t index, const void *user) {
    const pick *p = user;
    return is_candidate(piece) && (p->kind == PICK_ALL || (p->kind == PICK_ONE && p->index == index));
}

static bool is_local(const nbi_local *piece, uint32_t index, const void *user) {
    (void)index, (void)user;
    return is_candidate(piece);
}

// Leaves a pattern where the next calls have their locals. Volatile, or it would be left out. Never a part of its
// caller, or the pattern would lie in the caller's locals, and the next calls have theirs below those.
static NB_NOINLINE void paint_stack(unsigned char byte) {
    volatile unsigned char bytes[PAINT_STACK_BYTES];
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = byte;
}

// The hash that the tick ends with: from the state before it, with all that is local as it was when it ran again, but
// for what is picked.
static uint64_t try_tick(nbi_synctest *self, uint64_t tick, const trial *t) {
    nb_engine *engine = self->engine;
    if (nb_history_rewind(engine->history, tick) != NB_OK) return 0;
    nbi_local_put(self, &self->local_resimulated, is_local, NULL);
    nbi_local_put(self, &nbi_sync_slot_of(self, tick)->local, is_picked, &t->picked);
    if (t->program_copy != NULL) nbi_sync_program_keep(self, t->program_copy);
    if (t->puts_variables) nbi_sync_program_put(self, t->range_index);
    engine->solo = t->solo;
    nbi_arena_paint(&engine->arena, t->paint, PAINT_ARENA_BYTES);
    paint_stack(t->paint);
    nbi_sync_simulate(self, NBI_SYNC_TRY, tick);
    engine->solo = NULL;
    return engine->stats.tick_hash;
}

// What is looked for.
typedef struct search {
    nbi_synctest *self;
    uint64_t tick;
    uint64_t hash;       // of the first run
    uint64_t tried_hash; // of the tries
    nb_scheduler *solo;  // NULL: there are no other threads, or no memory
} search;

// --- the program's variables ---

// For all copies of the process together: one takes milliseconds, and may wait for a lock that nobody opens.
#define PROBE_NS UINT64_C(10000000000)

typedef struct probe {
    search *s;
    trial t;
    uint64_t deadline_ns;
} probe;

static uint64_t probe_run(void *user) {
    const probe *p = user;
    return try_tick(p->s->self, p->s->tick, &p->t);
}

// The hash that the tick ends with in a copy of the process, with a place put back. Fails as nbi_probe.
static nb_result probe_range(probe *p, uint32_t range_index, uint64_t *hash) {
    // Other threads are not in the copy.
    if (p->s->solo == NULL && !p->s->self->engine->is_alone) return NB_ERR_UNSUPPORTED;
    p->t.range_index = range_index;
    return nbi_probe(probe_run, p, p->deadline_ns, hash);
}

// The variable that alone makes the tick end as it did, or all that may. False: none does.
static bool find_variable(search *s, bool is_steady) {
    nbi_synctest *self = s->self;
    nbi_sync_program *program = &self->program;
    uint64_t hash = 0, wanted = is_steady ? s->hash : s->tried_hash;
    uint32_t count = nbi_sync_program_search(self, &nbi_sync_slot_of(self, s->tick)->program, is_steady);
    if (count == 0) return false;
    probe p = {.s = s, .deadline_ns = nbi_clock_now_ns() + PROBE_NS};
    p.t = (trial){.paint = PAINT_ONE, .solo = s->solo, .puts_variables = true};
    nb_result result = probe_range(&p, NBI_SYNC_ALL, &hash);
    if (result == NB_OK && hash != wanted) return false;
    program->is_proven = result == NB_OK;
    for (uint32_t i = 0; i < count && i < NBI_SYNC_RANGE_MAX; ++i) {
        if (probe_range(&p, i, &hash) != NB_OK || hash != wanted) continue;
        program->is_proven = true;
        nbi_sync_program_describe(self, i);
        return true;
    }
    nbi_sync_program_describe(self, NBI_SYNC_ALL);
    return true;
}

// --- the tick by itself ---

static bool ends_alike(search *s, const trial *t) {
    for (uint32_t i = 0; i < STEADY_TRY_COUNT; ++i) {
        if (try_tick(s->self, s->tick, t) != s->tried_hash) return false;
    }
    return true;
}

// NONE: it ends alike, however it is run.
static nb_synctest_cause find_unsteady(search *s) {
    nbi_synctest *self = s->self;
    trial t = {.paint = PAINT_ONE, .solo = s->solo, .program_copy = &self->program.tries[0]};
    s->tried_hash = try_tick(self, s->tick, &t);
    t.program_copy = &self->program.tries[1];
    bool is_same = try_tick(self, s->tick, &t) == s->tried_hash;
    t.program_copy = NULL;
    if (!is_same || !ends_alike(s, &t))
        return find_variable(s, false) ? NB_SYNCTEST_UNREGISTERED : NB_SYNCTEST_UNSTEADY;
    t.paint = PAINT_OTHER;
    if (try_tick(self, s->tick, &t) != s->tried_hash) return NB_SYNCTEST_UNINITIALISED;
    t = (trial){.paint = PAINT_ONE};
    return s->solo == NULL || ends_alike(s, &t) ? NB_SYNCTEST_NONE : NB_SYNCTEST_RACE;
}

// --- what is local ---

static nb_synctest_cause cause_of(const nbi_local *piece) {
    if (piece->kind == NBI_LOCAL_COLUMN) return NB_SYNCTEST_LOCAL_COLUMN;
    return piece->kind == NBI_LOCAL_TABLE ? NB_SYNCTEST_LOCAL_TABLE : NB_SYNCTEST_LOCAL_PROVIDER;
}

static void name_culprit(nb_synctest_report *report, const nbi_local *piece) {
    const char *dot = piece->column_name[0] != '\0' ? "." : "";
    snprintf(report->culprit, sizeof report->culprit, "%s%s%s", piece->name, dot, piece->column_name);
}

// One piece alone, or all together.
static nb_synctest_cause find_local(search *s) {
    nbi_synctest *self = s->self;
    const nbi_copy *first = &nbi_sync_slot_of(self, s->tick)->local, *resimulated = &self->local_resimulated;
    uint32_t index = 0;
    trial t = {.paint = PAINT_ONE, .solo = s->solo};
    for (nbi_local piece = {0}; nbi_local_next(self->engine, &piece); ++index) {
        if (!is_candidate(&piece) || nbi_local_is_same(first, resimulated, index)) continue;
        // Tables may be loaded meanwhile; what the cursor holds stays true.
        t.picked = (pick){PICK_ONE, index};
        if (try_tick(self, s->tick, &t) != s->hash) continue;
        name_culprit(&self->report, &piece);
        return cause_of(&piece);
    }
    t.picked = (pick){PICK_ALL, 0};
    return try_tick(self, s->tick, &t) == s->hash ? NB_SYNCTEST_LOCAL_SEVERAL : NB_SYNCTEST_NONE;
}

static nb_synctest_cause search_all(search *s) {
    nb_synctest_cause cause = find_unsteady(s);
    if (cause != NB_SYNCTEST_NONE) return cause;
    // As in the first run, with nothing put to what it was: what made the difference is in no piece.
    if (s->tried_hash != s->hash) cause = find_local(s);
    if (cause != NB_SYNCTEST_NONE) return cause;
    // Where it ends as it first did whatever is done, nothing can be shown by putting something back.
    bool is_variable = s->tried_hash != s->hash && find_variable(s, true);
    return is_variable ? NB_SYNCTEST_UNREGISTERED : NB_SYNCTEST_UNKNOWN;
}

static nb_synctest_cause find_cause(nbi_synctest *self, uint64_t tick) {
    nb_engine *engine = self->engine;
    search s = {.self = self, .tick = tick, .hash = nbi_sync_slot_of(self, tick + 1)->hash};
    nb_scheduler_desc desc = engine->desc.scheduler_desc;
    desc.worker_count = NB_WORKER_COUNT_NONE;
    desc.affinity = NULL;
    desc.on_start = desc.on_stop = NULL;
    desc.labels = engine->labels;
    desc.hooks = engine->hooks;
    if (!engine->is_alone && nb_scheduler_create(&desc, &s.solo) != NB_OK) s.solo = NULL;
    nb_synctest_cause cause = search_all(&s);
    if (s.solo != NULL) nb_scheduler_destroy(s.solo);
    return cause;
}

// --- telling ---

static const char *cause_text(const nb_synctest_report *report) {
    bool is_compared = report->program_bytes != 0;
    switch (report->cause) {
    case NB_SYNCTEST_LOCAL_COLUMN: return "the tick depends on a local column, which is not saved: ";
    case NB_SYNCTEST_LOCAL_TABLE: return "the tick depends on a local table, which is not saved: ";
    case NB_SYNCTEST_LOCAL_PROVIDER: return "the tick depends on a local provider, which is not saved: ";
    case NB_SYNCTEST_LOCAL_SEVERAL: return "the tick depends on several local states, which are not saved";
    case NB_SYNCTEST_RACE:
        return "the tick depends on which threads run its tasks: on one thread it ends alike each time, on all of them "
               "it does not";
    case NB_SYNCTEST_UNINITIALISED:
        return "the tick reads memory that it has not written: it ends otherwise where its stack and its arena have "
               "other bytes in them";
    case NB_SYNCTEST_UNSTEADY:
        return is_compared ? "the tick depends on time, addresses or heap memory: on one thread, with the same state "
                             "and the same variables of the program, it ends otherwise each time"
                           : "the tick depends on time, addresses or an unregistered variable: on one thread, with "
                             "the same state, it ends otherwise each time; the program's variables cannot be compared "
                             "here";
    default:
        return is_compared ? "no cause was found: the tick ends alike each time, on one thread and on all, and neither "
                             "local state nor the program's variables, put back, make it end as it first did; left "
                             "are heap memory, variables of one thread, files, and a race that rarely shows"
                           : "the tick depends on something not registered: no local state makes it end as it first "
                             "did; the program's variables cannot be compared here";
    }
}

// Variables with their values; how sure it is depends on what could be tried.
static void describe_variables(const nbi_synctest *self, char *text, size_t size_bytes) {
    const nbi_sync_program *program = &self->program;
    bool is_one = self->report.variable_count == 1;
    const char *begin =
        "the tick ends otherwise each time, on one thread too; unregistered variables that each run of it "
        "changes: ";
    const char *end = "; where it reads none of them, it depends on time or addresses";
    if (program->is_steady) {
        begin = "the tick ends alike each time; unregistered variables that have changed since it first ran: ";
        end = "; it may depend on one of them";
    }
    if (program->is_proven) {
        begin =
            is_one ? "the tick depends on the unregistered variable " : "the tick depends on unregistered variables: ";
        end = is_one ? "; with it put back, it ends as it did" : "; with all of them put back, it ends as it did";
    }
    snprintf(text, size_bytes, "%s%s%s", begin, program->text, end);
}

static void describe_cause(const nbi_synctest *self, char *text, size_t size_bytes) {
    const nb_synctest_report *report = &self->report;
    if (report->cause == NB_SYNCTEST_UNREGISTERED)
        describe_variables(self, text, size_bytes);
    else
        snprintf(text, size_bytes, "%s%s", cause_text(report), report->culprit);
}

static void describe(nbi_synctest *self) {
    nb_synctest_report *report = &self->report;
    bool is_compared = report->difference.kind != NB_DIFFERENCE_NONE;
    char cause[1600];
    describe_cause(self, cause, sizeof cause);
    // The cause comes first: a log may have no room for all of it.
    snprintf(report->text, sizeof report->text,
             "tick %llu ended otherwise after going back %u ticks: %s; here (first) and there (again): %s",
             nb_llu(report->tick), (unsigned)report->back_count, cause,
             is_compared ? report->difference.text : "no memory to tell where");
}

void nbi_sync_find(nbi_synctest *self, uint64_t tick, uint64_t from, uint64_t now) {
    nb_synctest_report *report = &self->report;
    const nbi_copy *first = &nbi_sync_slot_of(self, tick + 1)->state;
    report->tick = tick;
    report->back_count = (uint32_t)(now - from);
    report->again_count = (uint32_t)(tick + 1 - from);
    if (first->size_bytes != 0 && nbi_sync_save(self, &self->scratch))
        nb_states_compare(self->engine->states, first->bytes, first->size_bytes, self->scratch.bytes,
                          self->scratch.size_bytes, &report->difference);
    report->cause = find_cause(self, tick);
    describe(self);
}
