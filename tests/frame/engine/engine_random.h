// SPDX-License-Identifier: MIT
#pragma once

// Random programs for an engine, and a model of what they do. A program has modules (units) with handlers in random
// phases; what each call does is a script that follows from the program's seed and the call's place alone. So the model
// knows every call of a frame before the frame runs, and every operation's result before it is asked for.
//
// The model is written from the documentation of the engine, not from its sources: its table of permissions is its own.

#include "frame/engine/engine_fixture.h"

#define UNIT_COUNT_MAX 160u // ever attached in one program
#define NAME_COUNT 9u       // so that names clash
#define PLACE_COUNT 8u      // module_count_max: attaching finds it full now and then; one is the host's
#define JOB_MAX 5u
#define OP_MAX 5u
#define HELD_MAX 6u
#define VERSION_MAX 1024u
#define CELL_COUNT 4u
#define TICK_NS UINT64_C(10000000)
#define PLAN_MAX 2048u

typedef struct program program;

typedef enum call_kind { CALL_HANDLER, CALL_JOB, CALL_MERGE } call_kind;

// One call that the model expects of the coordinator.
typedef struct plan_entry {
    uint32_t unit;
    nb_phase phase;
    call_kind kind;
    uint32_t job;
    uint64_t tick;
} plan_entry;

typedef enum op_kind {
    OP_LAYER,
    OP_CAPABILITY,
    OP_FORGE,
    OP_KEEP,
    OP_USE_KEPT,
    OP_USE_JOB_KEPT,
    OP_OTHER_THREAD,
    OP_OUTPUT,
    OP_OUTPUT_HUGE,
    OP_ATTACH,
    OP_DETACH,
    OP_REPLACE,
    OP_STOP,
    OP_ACQUIRE,
    OP_RELEASE,
    OP_REENTER,
} op_kind;

typedef struct op {
    op_kind kind;
    uint64_t number; // whatever the kind needs
} op;

typedef struct script {
    op ops[OP_MAX];
    uint32_t count;
    nb_result result; // of the call; a job without memory fails with NB_ERR_MEMORY whatever it returns
} script;

typedef enum unit_state { UNIT_FREE, UNIT_ATTACHED, UNIT_LEAVING, UNIT_GONE } unit_state;

// Of a unit, in ticks and in the other phases: both fail, and are disabled, by their own count.
typedef struct unit_health {
    bool has_failed, is_disabled;
    uint32_t streak;
} unit_health;

typedef struct unit {
    program *owner;
    uint32_t id, name; // place in program.units; 'm' and a digit
    nb_module_desc desc;
    const char *after[2], *before[2];
    nb_module_id handle;
    uint64_t number; // order of attaching; a replacement keeps it
    unit_state state;
    bool refuses; // on_attach fails
    unit_health ticks, frames;
    uint32_t attach_seen, detach_seen, attach_expected, detach_expected;
    nb_context job_kept[2][JOB_MAX]; // of parallel, of record
    bool has_kept[2][JOB_MAX];
    nb_atomic_u32 job_runs[2][JOB_MAX]; // in this frame
    uint32_t job_expected[2][JOB_MAX];
} unit;

typedef struct held_pin {
    const nb_snapshot *snapshot;
    uint64_t version;
} held_pin;

struct program {
    rig rig;
    uint64_t seed;
    bool is_clean;    // operations that the model knows to be illegal are left out
    bool is_headless; // as the engine
    uint32_t failure_count_max;
    nb_atomic_ptr mistake; // the first thing that was not as the model has it, as text

    unit units[UNIT_COUNT_MAX];
    uint32_t unit_count;
    uint64_t number_last;

    // The frame that runs.
    bool is_in_frame;
    plan_entry plan[PLAN_MAX];
    uint32_t plan_count, plan_next;
    uint32_t frame_ticks;    // of this frame; UINT32_MAX: granted, one
    nb_result frame_failure; // the first expected
    uint64_t call;           // counts calls on the coordinator
    nb_context kept;
    uint64_t kept_call; // 0 = nothing kept

    // What should be.
    uint64_t frame_count, tick_count, time_ns, failure_count, job_count, full_count, skip_count;
    nb_atomic_u64 violation_count;
    bool is_stopping;
    uint64_t sim[CELL_COUNT], game[CELL_COUNT];             // the engine's
    uint64_t model_sim[CELL_COUNT], model_game[CELL_COUNT]; // the model's
    uint64_t version;
    uint64_t published[VERSION_MAX][CELL_COUNT];
    held_pin held[HELD_MAX];
    uint32_t region;
    char detached[UNIT_COUNT_MAX + 1]; // names in the order in which they left, at the end
    uint32_t detached_count;
    bool is_ending;
};

// Notes the first mistake; from any thread.
static inline void mistake(program *p, const char *text) {
    void *none = NULL;
    nbi_atomic_compare_exchange_seq_cst_ptr(&p->mistake, &none, (void *)(uintptr_t)text);
}
#define EXPECT(p, condition) ((condition) ? (void)0 : mistake((p), #condition))

// --- who may do what ---

typedef struct rights {
    uint32_t mutates, conditional, capabilities;
} rights;

#define S NB_LAYER_SIMULATED
#define G NB_LAYER_GAME
#define F NB_LAYER_FRAME
#define E NB_LAYER_ENGINE

static inline rights rights_of(nb_phase phase) {
    switch (phase) {
    case NB_PHASE_FRAME_START: return (rights){G | E, 0, NB_CAPABILITY_ADVANCE};
    case NB_PHASE_INPUT:
    case NB_PHASE_NETWORK_RECONCILIATION:
    case NB_PHASE_RANDOM_SEED:
    case NB_PHASE_GAMEPLAY:
    case NB_PHASE_SCENE_MUTATION:
    case NB_PHASE_TRANSFORMS: return (rights){G, 0, 0};
    case NB_PHASE_FIXED_SIM: return (rights){S | G, 0, 0};
    case NB_PHASE_SNAPSHOT: return (rights){0, 0, NB_CAPABILITY_PUBLISH};
    case NB_PHASE_PARALLEL_TASKS: return (rights){F, 0, 0};
    case NB_PHASE_POST_PARALLEL: return (rights){G | F, E, NB_CAPABILITY_MUTATE_ENGINE};
    case NB_PHASE_FRAME_GRAPH: return (rights){F | E, 0, 0};
    case NB_PHASE_COMMAND_RECORD: return (rights){F, E, NB_CAPABILITY_SUBMIT | NB_CAPABILITY_MUTATE_ENGINE};
    case NB_PHASE_PRESENT: return (rights){0, E, NB_CAPABILITY_MUTATE_ENGINE};
    case NB_PHASE_ASYNC_POLL: return (rights){E, 0, NB_CAPABILITY_PUBLISH};
    case NB_PHASE_BUDGET_ADAPT:
    case NB_PHASE_FRAME_END: return (rights){E, 0, 0};
    default: return (rights){0, 0, 0};
    }
}

#undef S
#undef G
#undef F
#undef E

static inline bool is_single(uint64_t bits) { return bits == 1 || bits == 2 || bits == 4 || bits == 8; }

static inline uint32_t capabilities_of(const unit *u, nb_phase phase, call_kind kind) {
    return kind == CALL_JOB ? 0 : u->desc.capabilities & rights_of(phase).capabilities;
}

static inline bool may_change(const unit *u, nb_phase phase, call_kind kind, uint64_t layer) {
    rights r = rights_of(phase);
    bool has_capability = (capabilities_of(u, phase, kind) & NB_CAPABILITY_MUTATE_ENGINE) != 0;
    return is_single(layer) && ((r.mutates & layer) != 0 || ((r.conditional & layer) != 0 && has_capability));
}

// --- scripts ---

static inline uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t state = a * 0x9E3779B97F4A7C15u ^ b;
    return test_random(&state);
}

static inline op_kind op_kind_make(uint64_t draw, call_kind kind, nb_phase phase) {
    uint64_t percent = draw % 100;
    if (kind == CALL_JOB) {
        if (percent < 45) return OP_OUTPUT;
        if (percent < 47) return OP_OUTPUT_HUGE;
        if (percent < 60) return OP_CAPABILITY;
        if (percent < 80) return OP_LAYER;
        if (percent < 90) return OP_KEEP;
        return percent < 99 ? OP_USE_KEPT : OP_OTHER_THREAD;
    }
    if (percent < 40) return OP_LAYER;
    if (percent < 55) return OP_CAPABILITY;
    if (percent < 60) return OP_FORGE;
    if (percent < 67) return OP_KEEP;
    if (percent < 74) return OP_USE_KEPT;
    if (percent < 79) return OP_USE_JOB_KEPT;
    if (percent < 80) return OP_OTHER_THREAD;
    if (percent < 83) return OP_ATTACH;
    if (percent < 86) return OP_DETACH;
    if (percent < 87) return OP_REPLACE;
    if (percent < 88) return OP_STOP;
    if (percent < 91) return OP_REENTER;
    if (phase == NB_PHASE_SNAPSHOT) return OP_LAYER; // the publication comes behind its handlers
    return percent < 95 ? OP_ACQUIRE : OP_RELEASE;
}

// What the call at that place does.
static inline script script_make(const program *p, const unit *u, nb_phase phase, call_kind kind, uint64_t tick,
                                 uint32_t job) {
    uint64_t state = mixed(mixed(p->seed, u->id), mixed(p->frame_count, (uint64_t)phase << 8 | (uint64_t)kind));
    state = mixed(state, tick * 64 + job);
    script s = {.count = (uint32_t)(test_random(&state) % (OP_MAX + 1))};
    for (uint32_t i = 0; i < s.count; ++i) {
        s.ops[i].kind = op_kind_make(test_random(&state), kind, phase);
        s.ops[i].number = test_random(&state);
    }
    static const nb_result failures[] = {NB_ERR_OS, NB_ERR_RANGE, NB_ERR_PERMISSION, NB_ERR_MISUSE};
    uint64_t draw = test_random(&state) % 60;
    if (draw == 0) s.result = failures[test_random(&state) % 4];
    if (draw == 1) s.result = NB_EMPTY; // positive: no failure
    for (uint32_t i = 0; kind == CALL_JOB && i < s.count; ++i) {
        if (s.ops[i].kind == OP_OUTPUT_HUGE) s.result = NB_ERR_MEMORY;
    }
    return s;
}

static inline uint64_t layer_of(uint64_t number) {
    uint64_t draw = number % 19; // now and then no layer, two, or one that does not exist
    return draw < 16 ? (uint64_t)1 << draw % 4 : draw == 16 ? 0 : draw == 17 ? 3 : 16;
}

// --- order ---

static inline bool has_name(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static inline bool must_precede(const unit *a, const unit *b) {
    return has_name(b->after, b->desc.after_count, a->desc.name) ||
           has_name(a->before, a->desc.before_count, b->desc.name);
}

static inline bool is_placeable(const program *p, const unit *u, const bool *is_done) {
    for (uint32_t i = 0; i < p->unit_count; ++i) {
        const unit *other = &p->units[i];
        if (other->state == UNIT_ATTACHED && !is_done[i] && must_precede(other, u)) return false;
    }
    return true;
}

// The units in the order in which they should run. False: there is a cycle.
static inline bool order_make(const program *p, uint32_t *order, uint32_t *count) {
    bool is_done[UNIT_COUNT_MAX] = {false};
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->unit_count; ++i) left += p->units[i].state == UNIT_ATTACHED ? 1 : 0;
    for (*count = 0; left > 0; --left) {
        const unit *best = NULL;
        for (uint32_t i = 0; i < p->unit_count; ++i) {
            const unit *u = &p->units[i];
            if (u->state != UNIT_ATTACHED || is_done[i] || !is_placeable(p, u, is_done)) continue;
            bool is_better = best == NULL || u->desc.priority > best->desc.priority ||
                             (u->desc.priority == best->desc.priority && u->number < best->number);
            if (is_better) best = u;
        }
        if (best == NULL) return false;
        is_done[best->id] = true;
        order[(*count)++] = best->id;
    }
    return true;
}

// --- the plan of a frame ---

static inline void plan_add(program *p, const unit *u, nb_phase phase, call_kind kind, uint64_t tick, uint32_t job) {
    if (p->plan_count == PLAN_MAX) mistake(p, "the plan is too long");
    if (p->plan_count == PLAN_MAX) return;
    p->plan[p->plan_count++] = (plan_entry){u->id, phase, kind, job, tick};
}

static inline void plan_failure(program *p, unit *u, nb_result result) {
    if (result >= 0) return;
    ++p->failure_count;
    if (p->frame_failure == NB_OK) p->frame_failure = result;
    u->frames.has_failed = true;
}

static inline void health_note(const program *p, unit_health *health) {
    health->streak = health->has_failed ? health->streak + 1 : 0;
    health->has_failed = false;
    if (p->failure_count_max != 0 && health->streak >= p->failure_count_max) health->is_disabled = true;
}

static inline bool has_handler(const unit *u, nb_phase phase) {
    if (phase == NB_PHASE_FIXED_SIM && u->desc.tick != NULL) return true;
    if (phase == NB_PHASE_GAMEPLAY && u->desc.frame != NULL) return true;
    return u->desc.handlers[phase] != NULL;
}

static inline void plan_handlers(program *p, const uint32_t *order, uint32_t count, nb_phase phase, uint64_t tick) {
    for (uint32_t i = 0; i < count; ++i) {
        unit *u = &p->units[order[i]];
        unit_health *health = phase == NB_PHASE_FIXED_SIM ? &u->ticks : &u->frames;
        if (!has_handler(u, phase) || health->has_failed || health->is_disabled) continue;
        plan_add(p, u, phase, CALL_HANDLER, tick, 0);
        nb_result result = script_make(p, u, phase, CALL_HANDLER, tick, 0).result;
        plan_failure(p, u, result);
        if (result < 0) health->has_failed = true;
    }
}

static inline void plan_ticks(program *p, const uint32_t *order, uint32_t count) {
    for (uint32_t tick = 0; tick < p->frame_ticks; ++tick) {
        plan_handlers(p, order, count, NB_PHASE_FIXED_SIM, p->tick_count + tick);
        for (uint32_t i = 0; i < p->unit_count; ++i) health_note(p, &p->units[i].ticks);
    }
}

// Jobs of all units that take part, then what merges them.
static inline void plan_jobs(program *p, const uint32_t *order, uint32_t count, nb_phase phase, nb_phase merge_phase) {
    uint32_t which = phase == NB_PHASE_COMMAND_RECORD ? 1 : 0;
    bool is_in[UNIT_COUNT_MAX] = {false};
    for (uint32_t i = 0; i < count; ++i) {
        unit *u = &p->units[order[i]];
        is_in[u->id] =
            (which ? u->desc.record : u->desc.parallel) != NULL && !u->frames.has_failed && !u->frames.is_disabled;
        uint32_t job_count = which ? u->desc.record_count : u->desc.job_count;
        for (uint32_t job = 0; is_in[u->id] && job < job_count; ++job) {
            u->job_expected[which][job] = 1;
            ++p->job_count;
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        unit *u = &p->units[order[i]];
        uint32_t job_count = which ? u->desc.record_count : u->desc.job_count;
        for (uint32_t job = 0; is_in[u->id] && job < job_count && !u->frames.has_failed; ++job) {
            nb_result result = script_make(p, u, phase, CALL_JOB, 0, job).result;
            bool has_merge = (which ? u->desc.submit : u->desc.merge) != NULL;
            if (result >= 0) result = NB_OK;
            if (result >= 0 && has_merge) {
                plan_add(p, u, merge_phase, CALL_MERGE, 0, job);
                result = script_make(p, u, merge_phase, CALL_MERGE, 0, job).result;
            }
            plan_failure(p, u, result);
        }
    }
}

static inline bool is_drawn(nb_phase phase) {
    return phase == NB_PHASE_FRAME_GRAPH || phase == NB_PHASE_COMMAND_RECORD || phase == NB_PHASE_PRESENT;
}

// Everything that the coordinator will be called for in the frame that begins.
static inline void plan_make(program *p) {
    uint32_t order[UNIT_COUNT_MAX], count = 0;
    p->plan_count = p->plan_next = 0;
    p->frame_failure = NB_OK;
    EXPECT(p, order_make(p, order, &count));
    for (int i = NB_PHASE_FRAME_START; i <= NB_PHASE_FRAME_END; ++i) {
        nb_phase phase = (nb_phase)i;
        if (p->is_headless && is_drawn(phase)) continue;
        if (phase == NB_PHASE_PARALLEL_TASKS) plan_jobs(p, order, count, phase, NB_PHASE_POST_PARALLEL);
        if (phase == NB_PHASE_COMMAND_RECORD) plan_jobs(p, order, count, phase, phase);
        if (phase == NB_PHASE_FIXED_SIM)
            plan_ticks(p, order, count);
        else
            plan_handlers(p, order, count, phase, 0);
    }
}
