// SPDX-License-Identifier: MIT
#pragma once

// What the files of the engine share. Start reading in frame.c: one frame, phase by phase. handler.c runs the handlers
// of a phase and keeps the barriers; tick.c runs a tick, with its commands (command.c), its staged rows (staging.c) and
// those that watch it (watch.c); engine_world.c keeps the world; job.c runs parallel handlers and merges their outputs;
// module.c keeps modules and their order, module_work.c looks for what they have in flight; context.c decides which
// handler may do what; engine.c makes and ends it all.

#include "nebula/engine.h"
#include "nebula/guard.h"
#include "nebula/rollback.h"

#include "../../base/base.h"
#include "../../base/owner.h"
#include "../../base/throttle.h"
#include "../../platform/platform.h"
#include "../state/state.h"
#include "command.h"
#include "staging.h"
#include "watch.h"

// A handler or job that runs, or the last one that did: what a context is checked against.
typedef struct nbi_call {
    nb_atomic_u64 serial;    // of the context that is valid now; 0 = none
    nb_atomic_u64 thread_id; // on which
    // Of the call, for its own thread.
    nb_phase phase;
    uint32_t capabilities;
    uint32_t module;        // index
    uint32_t handler_index; // of the handler among those of its phase
    uint32_t fp_mode;       // of the thread before it
    nbi_owner *owner;       // of the thread before the call
} nbi_call;

// A block of outputs; its bytes follow.
typedef struct nbi_output {
    struct nbi_output *next;
    size_t size_bytes;
} nbi_output;

// The bytes behind it are 16-byte aligned like itself.
NB_STATIC_ASSERT(sizeof(nbi_output) % 16 == 0, "outputs are 16-byte aligned");

struct nb_output_list {
    nbi_output *first, *last;
};

// What a late job has made, until it is adopted.
typedef struct nbi_late {
    nb_output_list outputs;
    nb_result result;
    uint64_t frame_index, run_number; // of the frame for which it was started
    bool is_pending;
} nbi_late;

// One job of a parallel handler: the same place in every frame.
typedef struct nbi_job {
    nb_engine *engine;
    nb_handler run;
    void *user;
    nbi_call call;
    nb_arena arenas[2]; // of the outputs; the second one where late ones are adopted
    uint32_t arena_count;
    nb_arena *arena; // of these the one for `outputs`; the other one is that of `late`
    nb_output_list outputs;
    nbi_late late;
    uint32_t index, count, module;
    nb_phase phase;
    nb_loop_frame time; // of the frame for which it was started, as is `frame`
    nb_fence_frame frame;
    const nb_snapshot *snapshot; // held for it
    uint32_t quality_level;
    nb_task task; // that runs it
    // The coordinator's.
    uint64_t run_number;   // of the engine when it was started
    bool is_started;       // in this frame
    bool is_awaited;       // the frame waits for it: its module is not in quarantine
    bool is_late;          // its frame has gone on without it, and nobody has looked at what it has made
    nb_atomic_u32 is_busy; // its task has not ended; a late one stays so into later frames
    nb_result result;      // valid once it is not busy
} nbi_job;

// The jobs of one handler.
typedef struct nbi_jobs {
    nbi_job *jobs;
    uint32_t count;
} nbi_jobs;

// Failures of a module's handlers. Those of ticks are counted by ticks, for what is simulated must not depend on
// frames.
typedef enum nbi_health_kind {
    NBI_HEALTH_TICKS,
    NBI_HEALTH_FRAMES,
    NBI_HEALTH_COUNT,
} nbi_health_kind;

typedef struct nbi_health {
    bool has_failed;      // in this tick or frame: left out for the rest of it
    bool is_disabled;     // after too many failures
    uint32_t fail_streak; // ticks or frames in a row with a failure
} nbi_health;

typedef struct nbi_module {
    nb_module_desc desc; // name, after and before point into `names`
    char name[NB_MODULE_NAME_SIZE_MAX + 1];
    char *names; // of after and before, one behind the other
    size_t names_bytes;
    uint64_t number; // how many were attached before, + 1; 0 = the place is free
    nb_label label;
    nbi_jobs parallel, record;
    nbi_owner *owner; // of the work that it submits, see ../base/owner.h
    bool is_leaving;  // detached; gone when nothing of it runs any more
    bool is_inside;   // its on_attach: it leaves when that has returned
    bool was_refused; // a replacement, in or after the frame before refuse_frame
    uint64_t refuse_frame;
    nbi_health health[NBI_HEALTH_COUNT];
    bool is_ordered;                          // while modules are put in order
    uint32_t pending_count;                   // to be placed before it
    nb_atomic_u32 violations[NB_PHASE_COUNT]; // layers, capabilities << 4 and NBI_VIOLATION_* that were reported
} nbi_module;

// The modules with something to do in a phase, in their order.
typedef struct nbi_order {
    uint32_t *modules; // indices
    uint32_t count;
} nbi_order;

typedef struct nbi_synctest nbi_synctest; // of synctest.h

// The corrections that handlers have made in this frame, until nbi_rollback applies them.
typedef struct nbi_correction {
    bool has_input; // the rollback simulates ticks again, beginning with `from`
    uint64_t from;
    uint64_t oldest;   // ticks before it cannot be simulated again as they were: see nbi_rollback_floor_set
    const void *bytes; // of the state after state_tick ticks; NULL = none
    size_t size_bytes;
    uint64_t state_tick;
} nbi_correction;

struct nb_engine {
    nb_engine_desc desc; // resolved
    nb_hooks hooks;
    nb_scheduler *scheduler;
    bool owns_scheduler;
    nbi_owner *owner;         // of its tasks there, and of what is called without a module
    bool is_host_stopped;     // its tasks are to end
    uint64_t end_ns;          // inside nb_engine_destroy: its deadline; else 0
    nb_thread_arenas *arenas; // of the scheduler and of the fence
    bool owns_arenas;
    nb_fence *fence;
    nb_labels *labels; // of desc.labels, trace or scheduler, or its own
    bool owns_labels;
    nb_token *token;
    nb_states *states;
    nb_guard *guard;     // where desc.is_guarded and there is a world
    bool is_guard_off;   // the OS has refused to change pages: the world is not made read-only any more
    bool is_world_stuck; // it is read-only, and the OS does not make it writable
    nb_store *world;     // these are NULL until somebody asks for them
    nb_input *input;
    nb_snapshots *snapshots;
    nb_timelines *timelines;
    nb_services *services;
    nb_async *async;
    nb_history *history;     // where desc.keeps_history, from the first frame on
    nbi_synctest *synctest;  // where desc.synctest_depth is not 0, the same
    uint64_t load_count;     // of the states, as the history knows it
    uint64_t run_tick;       // index of the tick that goes on with the present run; UINT64_MAX = none does
    uint64_t run_load_count; // of the states in this run: a larger one means that another run was loaded
    uint64_t run_number;     // how often the game went on from somewhere else: a load or a jump between frames
    uint64_t run_loads;      // of the states, when the newest frame ended
    uint64_t run_forgiven;   // run_number in the newest frame
    nb_timeline *epochs;
    nb_budget budget;
    bool follows_loop; // the budget's target is the length of a frame of the loop
    nb_loop loop;
    nb_arena arena;       // of the frame
    bool has_arena;       // it was made
    bool is_world_joined; // its tables are known: ticks and snapshots have it
    bool is_world_viewed; // it is published
    uint64_t coordinator; // thread id; 0 = not known yet
    bool is_alone;        // the scheduler has no workers

    nbi_module *modules;
    uint32_t module_count, module_limit; // limit: places that were ever used
    uint64_t module_number;
    bool is_order_old;
    bool is_tick_order_old; // and tick handlers came or went
    bool is_running;        // inside a call that runs frames
    bool is_calling;  // between frames a module's on_attach or on_detach, providers, or what nb_engine_destroy waits
                      // for: nothing may be freed under it
    bool is_draining; // the last: no module leaves before that is over
    bool is_ending;   // nb_engine_destroy has begun
    uint32_t *order;  // all modules
    uint32_t order_count;
    uint64_t order_serial; // how often they were put in order
    nbi_order orders[NB_PHASE_COUNT];

    // Of the frame that runs.
    bool is_in_frame;
    nb_atomic_u32 phase;                        // nb_phase
    uint32_t closed_barriers;                   // bits
    uint32_t required_barriers[NB_PHASE_COUNT]; // bits: those that earlier phases close
    nb_fence_frame frame;
    nb_loop_frame time;
    const nb_loop_tick *tick;
    const nb_snapshot *snapshot; // held from Snapshot to FrameEnd
    nb_input_view frame_input, tick_input, tick_commands;
    bool was_paused;       // by the game or its player, when Input was open last
    bool is_pause_own;     // it is nb_engine_run_ticks that has paused the loop
    bool is_idle;          // no tick ran in the newest frame
    nbi_commands commands; // for the next tick
    nbi_staging staging;
    uint64_t frame_start_ns;
    nb_result failure; // the first of this frame
    bool is_degraded;  // jobs of it were late
    bool is_resimulating;
    nb_scheduler *solo; // without workers, in place of the scheduler's own, where synctest runs a tick on one thread
    nbi_correction correction;
    nb_rollback_stats rollback;
    bool has_nothing_visible;
    nbi_call call;
    uint64_t serial;
    uint64_t phase_start_ns;
    uint64_t wait_start_ns, wait_ns; // of the waits that are open; of this frame's that have ended
    uint32_t wait_depth;             // waits that are open, one inside the other
    uint64_t device_ns;              // of this frame: work of the device
    bool is_device_on_cpu;           // it takes the CPU's time
    nb_trace_thread *trace;          // the coordinator's ring for this frame; NULL = none
    nb_trace_thread *trace_own;      // the one that it got from the engine
    nb_label phase_labels[NB_PHASE_COUNT];

    nbi_throttle throttle; // of mistakes of handlers
    nb_atomic_u32 is_stopping;
    nb_atomic_u64 violation_count, output_full_count;
    nb_atomic_u32 violations[NB_PHASE_COUNT]; // as nbi_module.violations, of what is no module
    nb_atomic_u64 job_serial;
    nb_engine_stats stats;

    nbi_watches watches;
};

// --- health.c ---

// At the end of a tick or frame: counts failures in a row, and disables where there are too many.
void nbi_modules_note(nb_engine *engine, nbi_health_kind kind);

// Which tick handlers are disabled, as a state; where the desc disables any.
#define NBI_HEALTH_NAME "modules"
nb_result nbi_health_create(nb_engine *engine);
bool nbi_module_is_disabled(const nbi_module *module);

// --- module.c ---

// Between frames: ends modules that were detached and have nothing running; puts the others in order.
void nbi_modules_settle(nb_engine *engine);

// Whether no job of any module runs, or is queued.
bool nbi_modules_are_idle(const nb_engine *engine);

// Ends all. NB_BUSY: jobs of one still run; those that could be ended are.
nb_result nbi_modules_end(nb_engine *engine);

// --- module_work.c ---

// Whether anything of a module may still call its code: jobs, tasks, async jobs, services, token callbacks. Where there
// is, says what, in up to size_bytes bytes.
#define NBI_WORK_TEXT_SIZE 192 // what the rest of a message leaves
bool nbi_module_is_idle(const nb_engine *engine, const nbi_module *module, char *what, size_t size_bytes);

// --- handler.c ---

// A whole phase: opens it, calls all handlers, with what the engine itself does before and after them (may be NULL),
// and closes its barrier.
void nbi_phase_run(nb_engine *engine, nb_phase phase, void (*before)(nb_engine *engine),
                   void (*after)(nb_engine *engine));

// The handlers of the phase that is open.
void nbi_handlers_run(nb_engine *engine, nb_phase phase);

// In the place of a module's index: what the engine itself calls.
#define NBI_MODULE_NONE UINT32_MAX

// A context for the coordinator, valid until nbi_call_end.
nb_context nbi_call_begin(nb_engine *engine, uint32_t module, nb_phase phase);
void nbi_call_end(nb_engine *engine);

// Notes that a handler or job has failed; its module takes no further part in this frame.
void nbi_module_failed(nb_engine *engine, nbi_module *module, nb_phase phase, nb_result result);

static inline nbi_health_kind nbi_health_of(nb_phase phase) {
    return phase == NB_PHASE_FIXED_SIM ? NBI_HEALTH_TICKS : NBI_HEALTH_FRAMES;
}

// --- tick.c ---

// One tick: input, handlers, what they have staged, hash.
void nbi_tick_run(nb_engine *engine, const nb_loop_tick *tick);

// The part of a tick that is the same whenever it is simulated: tick, tick_input and tick_commands are set.
void nbi_tick_simulate(nb_engine *engine);

// --- engine_world.c ---

// Between frames: makes a new world part of snapshots and ticks. Fails as nb_store_views_add.
nb_result nbi_store_join(nb_engine *engine);

// Makes the world read-only for jobs, or writable again; where desc.is_guarded. NB_ERR_OS: it cannot be written,
// is_world_stuck is set, and until this succeeds nothing may run that writes to it.
void nbi_store_guard(nb_engine *engine);
nb_result nbi_store_unguard(nb_engine *engine);

// Lets the world be written as the table says of the phase; NB_PHASE_NONE: all of it.
void nbi_store_allow(nb_engine *engine, nb_phase phase);

// Frees world and stages.
void nbi_store_end(nb_engine *engine);

// --- rollback.c ---

// The engine itself has loaded states of the present run: to history and watches that is no other run.
void nbi_engine_own_load(nb_engine *engine);

// Before a frame that `function` runs: makes the history, and its first tick.
nb_result nbi_history_begin(nb_engine *engine, const char *function);

// After the tick of this index.
void nbi_history_keep(nb_engine *engine, uint64_t tick);

// From here on ticks before the loop's next one are not simulated again: what they need is not known any more.
void nbi_rollback_floor_set(nb_engine *engine);

// Applies what handlers have corrected.
void nbi_rollback(nb_engine *engine);

// The tick of this index with the input that was kept for it, from the state before it; is_resimulating is set.
// is_watched: the watches are called.
void nbi_tick_resimulate(nb_engine *engine, uint64_t index, bool is_watched);

// --- synctest.c ---

// Before a frame: makes it, where desc.synctest_depth is not 0. The others do nothing without it.
nb_result nbi_synctest_begin(nb_engine *engine);
void nbi_synctest_end(nb_engine *engine);

// Another state begins with this tick: that of a run before is not compared with it.
void nbi_synctest_restart(nb_engine *engine, uint64_t tick_count);

// Around every tick, whoever simulates it: before it begins, and after its hash, before it is kept.
void nbi_synctest_before(nb_engine *engine);
void nbi_synctest_after(nb_engine *engine);

// Goes back and simulates again, after a tick of the game, when `now` ticks have run.
void nbi_synctest_run(nb_engine *engine, uint64_t now);

// --- async_frame.c ---

void nbi_frame_async_publish(nb_engine *engine);
void nbi_frame_async_poll(nb_engine *engine);

// Ends all jobs, within desc.shutdown_ns. NB_BUSY: one did not stop; said in the log.
nb_result nbi_frame_async_end(nb_engine *engine);

// --- context.c ---

// Beside layers and capabilities, what nbi_module.violations has a bit for.
#define NBI_VIOLATION_STAGE (1u << 8)
#define NBI_VIOLATION_COMMAND (1u << 9)
#define NBI_VIOLATION_CORRECTION (1u << 12)
#define NBI_VIOLATION_UNKNOWN (1u << 10) // a layer or capability that does not exist
#define NBI_VIOLATION_OUTPUT (1u << 11)
#define NBI_VIOLATION_EFFECT (1u << 13)

// NB_OK: the context belongs to a call that this thread is in.
nb_result nbi_context_check_call(const nb_context *context);

// A handler's mistake in a call of `function`, which it may make in each frame.
nb_result nbi_context_fail(const nb_context *context, const char *function, const char *what);

// Counts and reports a call of `function` that is refused.
void nbi_context_report(const nb_context *context, const char *function, uint32_t bit, nb_result result);

// --- job.c ---

nb_result nbi_jobs_create(nb_engine *engine, nbi_module *module);
bool nbi_jobs_are_idle(const nbi_module *module);
void nbi_jobs_destroy(nb_engine *engine, nbi_module *module);

// Hands out the jobs of all modules in a phase; those of ParallelTasks belong to the frame.
void nbi_jobs_start(nb_engine *engine, nb_phase phase);

// Calls on_complete for the engine's tasks that have ended when the call begins.
void nbi_task_results_deliver(nb_engine *engine);

// Waits for the jobs of ParallelTasks, and everything else that belongs to the frame.
void nbi_jobs_await(nb_engine *engine);

// Records, waits, and submits in order.
void nbi_jobs_record(nb_engine *engine);

// Merges the outputs of the jobs of ParallelTasks.
void nbi_jobs_merge(nb_engine *engine);

// Whether the job has returned, or never will because its task was cancelled with its scheduler.
bool nbi_job_is_settled(nbi_job *job);

// Hands outputs of a job that have this age to its module.
nb_result nbi_job_merge(nb_engine *engine, const nbi_job *job, const nb_output_list *outputs, uint64_t age,
                        nb_phase phase, nb_merge_handler merge);

// --- late.c ---

// A late job has returned: its outputs are put aside for the merge, or dropped.
void nbi_late_return(nb_engine *engine, nbi_job *job);

// Merges what late jobs of a module have made.
void nbi_late_merge(nb_engine *engine, nbi_module *module);

// --- work.c ---

// The time, on the clock of the loop.
static inline uint64_t nbi_engine_now_ns(const nb_engine *engine) { return nb_clock_now_ns(&engine->desc.loop.clock); }

// Present: the whole phase is a wait.
void nbi_work_present(nb_engine *engine);

// At the end of a phase, which is now: no wait lasts longer.
void nbi_work_phase_end(nb_engine *engine, uint64_t now_ns);

// Time of this frame until the phase that runs, without waits.
uint64_t nbi_work_ns(const nb_engine *engine);

// Sets the budget's target to the length of the loop's frames, unless the desc has given one.
void nbi_work_follow(nb_engine *engine);

// Feeds the budget.
void nbi_work_adapt(nb_engine *engine);

// --- frame.c ---

// One frame, for a loop whose frame has begun. Returns the first failure of a handler.
nb_result nbi_frame_run(nb_engine *engine);

static inline bool nbi_is_coordinator(const nb_engine *engine) {
    return engine->coordinator == 0 || engine->coordinator == nbi_thread_id();
}

// Inside a callback between frames.
static inline bool nbi_engine_is_calling(const nb_engine *engine) {
    return engine->is_calling || nbi_states_are_calling(engine->states);
}

static inline nb_result nbi_check_coordinator(const nb_engine *engine, const char *function) {
    if (nbi_is_coordinator(engine)) return NB_OK;
    return nbi_fail(&engine->hooks, NB_ITEM_ENGINE_THREAD, NB_ERR_THREAD, function, "called on another thread");
}

// When a shutdown that begins now is over; inside one, when that is.
static inline uint64_t nbi_shutdown_deadline_ns(const nb_engine *engine) {
    if (engine->end_ns != 0) return engine->end_ns;
    uint64_t now_ns = nbi_clock_now_ns();
    return now_ns + nbi_min_u64(engine->desc.shutdown_ns, UINT64_MAX - now_ns); // for ever is for ever
}
