// SPDX-License-Identifier: MIT
#pragma once

// The engine: hand it modules, it runs the frame. A module is a struct of handlers, one for each phase it cares about;
// ticks run at a fixed rate, parallel jobs on every core, and everything that belongs to a frame ends with it. The one
// rule: only tick handlers change what is simulated, so the same input gives the same state at any frame rate.
//
//     static nb_result count(const nb_context *context, void *user) {
//         ++*(uint64_t *)user; // once a tick
//         return context->tick->index == 59 ? nb_engine_stop(context->engine) : NB_OK;
//     }
//     nb_engine *engine = NULL;
//     if (nb_engine_create(NULL, &engine) != NB_OK) return 1;
//     uint64_t ticks = 0;
//     nb_module_desc module = {.name = "counter", .tick = count, .user = &ticks};
//     nb_engine_module_attach(engine, &module, NULL);
//     nb_engine_run(engine); // one second
//     nb_engine_destroy(engine);

#include "nebula/async.h"
#include "nebula/budget.h"
#include "nebula/context.h"
#include "nebula/history.h"
#include "nebula/hooks.h"
#include "nebula/input.h"
#include "nebula/label.h"
#include "nebula/loop.h"
#include "nebula/phase.h"
#include "nebula/service.h"
#include "nebula/snapshot.h"
#include "nebula/state.h"
#include "nebula/store.h"
#include "nebula/store_view.h"
#include "nebula/tasks.h"
#include "nebula/timeline.h"
#include "nebula/trace.h"
#include "nebula/types.h"

// Modules of one engine where the desc gives none: a large game has a few dozen.
#define NB_MODULE_COUNT_DEFAULT 64u
#define NB_MODULE_COUNT_MAX 1024u

// Longest module name in bytes, without the final zero.
#define NB_MODULE_NAME_SIZE_MAX 63

// Jobs of one parallel handler, at most: what keeps 64 threads busy to the end.
#define NB_JOB_COUNT_MAX 256u

// Memory of one job's outputs where the desc gives none: address space, committed as it is used.
#define NB_OUTPUT_BYTES_DEFAULT ((size_t)1 << 20)

// Memory of a frame on the coordinator where the desc gives none; as above.
#define NB_FRAME_BYTES_DEFAULT ((size_t)16 << 20)

// Commands between two ticks where the desc gives none: a frame's clicks and finished jobs are tens.
#define NB_COMMAND_COUNT_DEFAULT 256u
#define NB_COMMAND_COUNT_MAX 65536u

// Stages of one tick, and bytes of one stage, by default: up to 256 handlers or jobs that stage some ten thousand rows
// each. This is address space; a stage takes memory as it is filled.
#define NB_STAGE_COUNT_DEFAULT 256u
#define NB_STAGE_BYTES_MAX_DEFAULT ((size_t)1 << 22)
#define NB_STAGE_BYTES_MAX_LEAST ((size_t)1 << 12)
#define NB_STAGE_BYTES_MAX_LIMIT ((size_t)1 << 30)
#define NB_STAGE_COUNT_MAX 65536u

// Regions of the engine's snapshots where the desc gives none: the columns of a few dozen tables.
#define NB_ENGINE_REGION_COUNT_DEFAULT 256u

// Labels of the engine's own table: modules, phases and what the game itself names, some tens each.
#define NB_ENGINE_LABEL_COUNT_DEFAULT 1024u

// Ticks simulated again in one frame where the desc gives none: a second of 60 Hz, later than any game is playable.
#define NB_ROLLBACK_COUNT_DEFAULT 64u

// Ticks that synctest goes back: as many as a rollback may.
#define NB_SYNCTEST_DEPTH_MAX NB_ROLLBACK_COUNT_DEFAULT

// How long nb_engine_destroy waits for tasks that do not stop, where the desc gives none.
#define NB_SHUTDOWN_NS_DEFAULT UINT64_C(5000000000)

// Without workers, the least time that a frame gives to floating tasks, even where it is over its target: they go on.
#define NB_FLOATING_NS_MIN UINT64_C(1000000)

// A negative result is a failure, and reported: the module is left out for the rest of the frame, but for its ticks,
// which are the same whatever frames they fall into. A tick handler that fails is called again in the next tick; what
// it has staged is dropped.
typedef nb_result (*nb_handler)(const nb_context *context, void *user);

// Merges what one job has made; called for each job in the order of job_index.
typedef nb_result (*nb_merge_handler)(const nb_context *context, void *user, const nb_output_list *outputs);

typedef struct nb_module_desc {
    const char *name; // unique in the engine, up to NB_MODULE_NAME_SIZE_MAX bytes; copied
    int32_t priority; // higher runs earlier where `after` and `before` leave it open; then the order of attaching
    const char *const *after;  // names of modules whose handlers run before this one's; unknown ones are ignored
    const char *const *before; // and after it
    uint32_t after_count, before_count;
    nb_handler tick;  // FixedSim: once for every tick
    nb_handler frame; // Gameplay: once for every frame
    // ParallelTasks: job_count jobs on all threads. They read the snapshot and what never changes, not the state of the
    // game: one that is late may run on while the next frame has begun.
    nb_handler parallel;
    nb_merge_handler merge; // PostParallel, before its handlers: what the jobs have made, by index
    uint32_t job_count;     // of `parallel`; 0 = 1
    // Outputs of a late job are merged in the frame in which the job has ended, ahead of that frame's own: oldest
    // first, then by index; nb_context.job_age says how old they are. A load, a rewind or nb_engine_set_tick since the
    // job was started drops them. false = they are always dropped.
    bool adopts_late;
    nb_handler record;                   // CommandRecord: record_count jobs on all threads
    nb_merge_handler submit;             // at the end of CommandRecord: what the jobs have recorded, by index
    uint32_t record_count;               // of `record`; 0 = 1
    nb_handler handlers[NB_PHASE_COUNT]; // by nb_phase, for phases that have none of the above
    uint32_t capabilities;               // NB_CAPABILITY_* it asks for; given in the phases that know them
    nb_result (*on_attach)(nb_engine *engine, void *user); // before its first frame; a failure refuses the module
    // After its last frame: the last call that gets `user`. It comes once for each module that was attached.
    void (*on_detach)(nb_engine *engine, void *user);
    void *user; // may be freed in on_detach, not before
} nb_module_desc;

// What becomes of an operation that a phase does not allow. It never has an effect.
typedef enum nb_violation_policy {
    NB_VIOLATION_DEFAULT = 0, // REPORT
    NB_VIOLATION_REPORT,      // an error, counted, and logged the first time at each place
    NB_VIOLATION_COUNT_ONLY,  // an error, counted
    // An error, counted; calls the hooks' assertion function each time, in every build. Where the hooks have none, the
    // process traps.
    NB_VIOLATION_TRAP,
    NB_VIOLATION_POLICY_COUNT,
} nb_violation_policy;

typedef struct nb_engine_desc {
    nb_loop_desc loop;       // tick rate, clamps, pacing, clock; its hooks are the engine's
    nb_scheduler *scheduler; // borrowed, for several engines; NULL = one of its own, by the next field
    // Hooks are the engine's. Without workers, floating tasks run in AsyncPoll, for the rest of the budget's target
    // and at least NB_FLOATING_NS_MIN; on a borrowed scheduler without workers for NB_FLOATING_NS_MIN.
    nb_scheduler_desc scheduler_desc;
    uint64_t fence_timeout_ns;     // how long ParallelTasks waits for late jobs; default 100 ms
    uint32_t fence_timeout_frames; // the same in frames of the budget's target; 0 = fence_timeout_ns decides
    // Frames in a row in which work of one label is late, after which no frame waits for that label any more: see
    // nb_fence_is_quarantined. A module's jobs have its name as label. 0 = never. Late work of a frame after a
    // discontinuity, a load, a rewind or nb_engine_set_tick does not count. nb_fence_forgive, called by a handler with
    // context->fence, ends quarantine.
    uint32_t strike_count_max;
    // The time that a degraded frame spends in ParallelTasks is left out of the coming ticks (nb_loop_exclude), and the
    // budget ignores that frame. Else the ticks catch up, and the quality level may fall.
    bool excludes_degraded_time;
    uint32_t module_count_max;
    size_t output_bytes;        // of each job; twice where its module adopts late outputs
    size_t frame_bytes;         // of the coordinator's arena
    size_t task_bytes;          // of each thread's memory for the frame-bound tasks of one frame, see nb_task_arena;
                                // more is chained; default NB_ARENA_CAPACITY_DEFAULT. Without effect on a borrowed
                                // scheduler and on scheduler_desc.arenas
    uint64_t shutdown_ns;       // bounds all waiting in nb_engine_destroy; default NB_SHUTDOWN_NS_DEFAULT
    uint32_t failure_count_max; // ticks or frames in a row with a failure after which a module's tick handler, or its
                                // other handlers, are disabled; 0 = never. Which tick handlers are is then
                                // simulated state, as the provider "modules"
    uint32_t command_count_max; // between two ticks
    // A stage grows up to this size. A handler that needs more, or gets no stage, fails: its staged rows are dropped,
    // and the log has the module and the field to raise. What it wrote directly stays. Default
    // NB_STAGE_BYTES_MAX_DEFAULT, NB_STAGE_BYTES_MAX_LEAST to NB_STAGE_BYTES_MAX_LIMIT.
    size_t stage_bytes_max;
    uint32_t stage_count_max; // of a tick
    nb_violation_policy violation_policy;
    bool is_headless; // a server: phases that only make a picture are left out
    // For debugging: the world's columns and published snapshots are read-only memory while jobs run. Whoever writes to
    // them ends the process there, after a line that says which job and which column: see guard.h. Where the OS refuses
    // to change pages, the guard is switched off, as item engine_guard of the log; while it does not make the world
    // writable again, no handler runs and frames fail with NB_ERR_OS.
    bool is_guarded;
    bool hashes_ticks; // hash all states after each tick, for stats.tick_hash and run_hash
    // Past ticks are kept, to go back to: see rollback.h. States and world of `history` are the engine's, as its hooks.
    bool keeps_history;
    nb_history_desc history;
    uint32_t rollback_count_max; // ticks simulated again in one frame; default NB_ROLLBACK_COUNT_DEFAULT
    // For debugging: after each tick so many are simulated again and compared, up to NB_SYNCTEST_DEPTH_MAX: see
    // synctest.h. Sets keeps_history and hashes_ticks. 0 = none.
    uint32_t synctest_depth;
    // The quality level follows the work of frames: all their time but Present and what nb_engine_wait_begin and
    // nb_engine_wait_end enclose. Else it stays at the highest.
    bool adapts_budget;
    // Its hooks are the engine's. target_ns 0 = the length of a frame: that of loop.refresh_rate or, where it is
    // longer, of the pace. An estimated refresh rate only shortens it. Where neither is known, 16666667.
    nb_budget_desc budget;
    nb_store_desc world; // of nb_engine_world, nb_engine_snapshots and nb_engine_input; hooks as above
    nb_snapshots_desc snapshots;
    nb_input_desc input;
    nb_async_desc async; // of nb_engine_async; scheduler, token, labels and hooks are the engine's
    // Called on the coordinator after each frame of nb_engine_run and nb_engine_run_ticks. No frame runs then, so the
    // host may save, load, rewind, and attach and detach modules. Frames, runs and nb_engine_destroy stay NB_BUSY. A
    // negative result ends the run, which returns it. NULL = nothing is called.
    nb_result (*between)(nb_engine *engine, void *user);
    void *between_user;
    uint64_t seed; // of all random numbers of the game
    // Spans of phases, handlers, jobs, tasks, steps and blocking calls of async jobs, by their labels; borrowed, must
    // outlive the engine, may be NULL. The engine attaches the coordinator, its io threads and the workers, also those
    // of a borrowed scheduler, and detaches them when it is destroyed; a thread that the host has attached keeps its
    // ring. Where several engines share a scheduler, each trace has the tasks of its own engine's frames and all tasks
    // of no frame. Those are named "task" where the engines have different tables of labels.
    nb_trace *trace;
    // The one table of labels for modules, tasks, async jobs, trace and log; borrowed, must outlive the engine. NULL =
    // that of trace, or of the borrowed scheduler, else one of NB_ENGINE_LABEL_COUNT_DEFAULT labels that the engine
    // owns: see nb_engine_labels. Where several of these are given, they must be the same table.
    nb_labels *labels;
    nb_hooks hooks;
} nb_engine_desc;

// Those that watch an engine's ticks, at most: a recorder, a replay, a history and one for tests.
#define NB_TICK_WATCH_COUNT_MAX 4u

// A tick as its watchers see it.
typedef struct nb_tick_view {
    const nb_loop_tick *tick;
    nb_input_view input;    // its events
    nb_input_view commands; // its commands
    uint64_t hash;          // of all states after it, where desc.hashes_ticks; else, and in begin, 0
    // In begin: this tick does not go on from a state that the engine came to, because nb_engine_load, nb_states_load
    // or nb_engine_set_tick was called since the tick before. False after nb_engine_rewind.
    bool is_new_run;
} nb_tick_view;

// Called on the coordinator around each tick, in the order of adding. After nb_engine_rewind the ticks that follow have
// indices that were there before.
typedef struct nb_tick_watch {
    // Before the handlers run. What it puts in the place of the views must stay valid until end; may be NULL.
    void (*begin)(void *user, nb_tick_view *view);
    // After all of the tick has been applied and hashed; the states may be read and saved. May be NULL.
    void (*end)(void *user, const nb_tick_view *view);
    // The same after a tick that ran before was simulated again, because a correction came (see rollback.h): what it
    // got, and its hash, are these now. begin is not called then. May be NULL.
    void (*again)(void *user, const nb_tick_view *view);
    void *user; // tells watches apart: each has its own
} nb_tick_watch;

typedef struct nb_engine_stats {
    uint64_t frame_count;              // frames ended
    uint64_t tick_count;               // ticks run; a rewind or a load makes it what it was then
    uint64_t degraded_count;           // frames whose jobs were not all done in time
    uint64_t failure_count;            // handlers and jobs that failed
    uint64_t violation_count;          // operations refused because of phase, thread or capability, also by the world
    uint64_t late_job_count;           // jobs left out because the one of an earlier frame still runs, or, of a
                                       // module in quarantine, because there is no room for their tasks
    uint64_t adopted_count;            // late jobs whose outputs were merged in a later frame
    uint64_t late_drop_count;          // late jobs whose outputs were dropped
    uint64_t job_count;                // jobs run
    uint64_t output_full_count;        // nb_output_add without memory
    uint64_t command_count;            // commands that a tick got
    uint64_t command_full_count;       // commands refused because command_count_max were waiting
    uint64_t command_dropped_count;    // commands that waited when their run ended: see rollback.h
    uint64_t stage_full_count;         // nb_context_stage without memory
    size_t frame_peak_bytes;           // most memory that the coordinator's arena had in use in one frame
    size_t output_peak_bytes;          // most memory that one job's arena had in use
    uint32_t quarantine_count;         // labels that frames do not wait for: see desc.strike_count_max
    uint32_t module_count;             // attached
    uint32_t disabled_count;           // of them, with handlers disabled after too many failures
    uint64_t tick_hash;                // of all states after the newest tick, where desc.hashes_ticks; else 0
    uint64_t run_hash;                 // of all tick hashes so far, those simulated again as well: two runs that agree
                                       // here agreed in every tick
    uint64_t frame_ns;                 // of the newest frame: time inside it, on the loop's clock
    uint64_t work_ns;                  // of it, without Present and other waits
    uint64_t phase_ns[NB_PHASE_COUNT]; // of it, in each phase
} nb_engine_stats;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_engine_desc nb_engine_desc_default(void);

// Creates an engine. The thread that runs its first frame is its coordinator. desc may be NULL.
// Thread: any; with a scheduler of its own the caller becomes that one's coordinator and is to run the frames. Owner:
// the caller, until nb_engine_destroy. Fails: NB_ERR_MEMORY, NB_ERR_OS, NB_ERR_RANGE, NB_ERR_MISUSE (out is NULL; two
// tables of labels), NB_FULL (2047 engines and modules use desc.scheduler, counting those that have gone and left
// work).
NB_API nb_result nb_engine_create(const nb_engine_desc *desc, nb_engine **out);

// Cancels the engine's token, ends its tasks that have not started, waits for its jobs and tasks, detaches the modules
// in the reverse of their order and frees everything. All waiting together takes at most desc.shutdown_ns, and
// nb_task_should_stop is true meanwhile. With its own scheduler the engine waits for every task. With a borrowed one it
// waits for those that its handlers, modules and services have submitted, and for what those tasks submit; tasks that
// the host submits between frames are nobody's. A process may exit while a task is stuck: nothing waits for it then.
// NULL is fine.
// Thread: the coordinator, between frames. Owner: the engine is gone. Fails: NB_ERR_THREAD, NB_BUSY (inside a call that
// runs frames or a callback of a module, job or provider; jobs, tasks or services did not stop, a snapshot is held, or
// a thread is attached to its own scheduler). After NB_BUSY the log names the cause, nothing that may still be used is
// freed, and the call may be repeated. No module is detached while a floating task runs, else those without a running
// job are;
// none can be attached any more.
NB_API nb_result nb_engine_destroy(nb_engine *engine);

// Returns the desc that the engine runs with: no field is left to a default, also not those of its parts. worker_count
// is NB_WORKER_COUNT_NONE without workers, loop.pace_rate stays 0 where none was given, and budget.target_ns is the
// present one where it follows the loop. Before you create another engine with a copy, set labels, async.labels,
// scheduler_desc.labels and scheduler_desc.arenas to NULL: they may be this engine's own.
// Thread: the coordinator. Owner: the engine, as long as it lives. Fails: NULL for NULL.
NB_API const nb_engine_desc *nb_engine_desc_get(const nb_engine *engine);

// Adds a module; from inside a frame it takes part from the next one on, so a tick that is to be the same at any frame
// rate attaches and detaches nothing. on_attach may attach and detach others.
// Thread: the coordinator. Owner: the desc is copied; user stays the caller's, until on_detach. Fails: NB_FULL (also
// where 2047 engines and modules use the scheduler, those counted that have gone and left work),
// NB_ERR_MISUSE (no name, a name that is taken, an order that would be a cycle: the log names it), NB_ERR_RANGE,
// NB_ERR_MEMORY, NB_ERR_THREAD, NB_CLOSED (the engine is being destroyed), what on_attach returned.
NB_API nb_result nb_engine_module_attach(nb_engine *engine, const nb_module_desc *desc, nb_module_id *module);

// Removes a module. Between frames on_detach has been called when this returns, also where the call comes from a
// callback of another module. It is called later where the module is in use: from inside a frame when that frame has
// ended, from inside the module's own on_attach when that has returned, inside nb_engine_destroy before that returns,
// and where a job of it still runs, when that has. So free `user` in on_detach or later, never before. on_detach may
// attach and detach others.
// Thread: the coordinator. Owner: the handle ends. Fails: NB_ERR_STALE (logged, unless the module is leaving already),
// NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_engine_module_detach(nb_engine *engine, nb_module_id module);

// Puts new handlers and a new user in the place of a module's, under the same name and handle: a reloaded library. The
// new on_attach is called first, then the old on_detach. If the new module fails to attach, the old one goes on as
// before. On NB_OK nothing calls the old code any more, and its library can be unloaded.
//
// Refused with NB_BUSY while work of the old module is in flight; the log says what it is. Nothing is cancelled, so run
// frames and try again. Work belongs to the module in whose call it was submitted: in a handler, job, merge, submit,
// on_attach or on_detach of the module, or in work of the module itself. Work that the host submits belongs to nobody
// and goes on, as the work of other modules does. In flight are jobs of its handlers, tasks of the engine's scheduler
// until on_complete was called, async jobs, services, and token callbacks that may still be called. A service with
// `destroyed` is in flight until that was called. In the old on_detach nothing of these can be begun: NB_CLOSED.
// States, watches, snapshot regions and retired objects are not work: on_detach takes back what the module has
// registered.
// Thread: the coordinator. Owner: as attach. Fails: NB_ERR_STALE, NB_ERR_MISUSE (another name), NB_BUSY (inside a frame
// or a callback, or work is in flight: nothing is replaced); as attach, where the old module stays. An on_attach that
// fails ends what it has begun; what it has left is logged, and its code must stay until that has ended.
NB_API nb_result nb_engine_module_replace(nb_engine *engine, nb_module_id module, const nb_module_desc *desc);

// The modules with a handler in a phase, in the order in which they run: up to count_max of them, and how many there
// are. modules may be NULL.
// Thread: the coordinator. Owner: unchanged. Fails: 0.
NB_API uint32_t nb_engine_order_get(const nb_engine *engine, nb_phase phase, nb_module_id *modules, uint32_t count_max);

// The name of a module.
// Thread: the coordinator. Owner: the engine, until it is detached. Fails: "" for a stale handle.
NB_API const char *nb_engine_module_name(const nb_engine *engine, nb_module_id module);

// Runs frames until nb_engine_stop, paced as desc.loop says. Failures of handlers do not end it.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_BUSY (inside a frame), NB_ERR_UNSUPPORTED (a
// clock that cannot sleep); what kept a frame from beginning, as nb_engine_frame.
NB_API nb_result nb_engine_run(nb_engine *engine);

// Runs frames of exactly one tick each, as fast as they go, until tick_count more ticks have run or nb_engine_stop: for
// tests, servers that catch up, and replays. No time passes meanwhile: an event of nb_engine_input reaches these ticks
// only where it happened before the last frame that had time. Commands and watches reach them all.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_BUSY, NB_ERR_MISUSE; as nb_engine_run.
NB_API nb_result nb_engine_run_ticks(nb_engine *engine, uint64_t tick_count);

// Runs one frame with the time passed on the loop's clock: for a host that owns the loop.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_THREAD, NB_BUSY (inside a frame); what
// nb_store_views_add failed with for a new world: no frame was run; the first failure of a handler, after a whole
// frame; NB_ERR_OS (desc.is_guarded, and the OS does not make the world writable).
NB_API nb_result nb_engine_frame(nb_engine *engine);

// The same with a given time: no clock decides how many ticks run.
// Thread: the coordinator. Owner: unchanged. Fails: as nb_engine_frame.
NB_API nb_result nb_engine_frame_delta(nb_engine *engine, uint64_t delta_ns);

// Ends nb_engine_run and nb_engine_run_ticks after the present frame. Nothing is cancelled yet.
// Thread: any, also a signal handler. Owner: unchanged. Fails: NB_ERR_MISUSE, not logged.
NB_API nb_result nb_engine_stop(nb_engine *engine);

// Whether nb_engine_stop was called, or nb_loop_quit for the engine's loop, since the last run has returned: for a host
// that owns the loop.
// Thread: any. Owner: unchanged. Fails: false for NULL.
NB_API bool nb_engine_is_stopping(const nb_engine *engine);

// The loop of the engine: pause, scale, step, run to a tick, reports. nb_loop_quit is nb_engine_stop without the ticks
// that are left of the frame.
// Thread: the coordinator. Owner: the engine; begin, next_tick and end are not the caller's. Fails: NULL for NULL.
NB_API nb_loop *nb_engine_loop(nb_engine *engine);

// The scheduler that runs the engine's tasks, its own or the borrowed one. The engine calls on_complete for tasks that
// have ended on the coordinator, in FrameStart and PostParallel, ahead of merges and handlers of these phases, and in
// nb_engine_destroy before modules are detached: results of frame-bound tasks arrive in the PostParallel of their own
// frame. Each phase tells the results that are there when it begins; later ones wait for the next phase. Of an own
// scheduler the engine tells all results. Of a borrowed one it tells results of tasks submitted with the engine's
// fence; the host calls nb_scheduler_drain for the others. on_complete may write what its phase allows, submit tasks,
// attach and detach modules; running a frame and nb_engine_destroy are NB_BUSY in it.
// Thread: any. Owner: the engine, or whose it is. Fails: NULL for NULL.
NB_API nb_scheduler *nb_engine_scheduler(nb_engine *engine);

// The token that everything of the engine hangs from: cancelled by nb_engine_destroy. Deadlines of its children, on the
// loop's clock, fire before each phase.
// Thread: any. Owner: the engine; a caller that keeps it retains it. Fails: NULL for NULL.
NB_API nb_token *nb_engine_token(nb_engine *engine);

// The states of the engine's game: what is hashed with each tick.
// Thread: the coordinator; providers come and go between frames. Owner: the engine. Fails: NULL for NULL.
NB_API nb_states *nb_engine_states(nb_engine *engine);

// The world: tables declared before its first frame, which is the next one to begin. Its ticks, stages, snapshots, hash
// and saves are the engine's from then on, and what may be written follows the phases. It is the state "world". Made by
// the first call, which is not inside a frame.
// Thread: the coordinator; what it returns, as world.h says. Owner: the engine. Fails: NULL for NULL, inside a frame,
// where there is no memory, and where a state "world" is there already.
NB_API nb_store *nb_engine_world(nb_engine *engine);

// The input: what is sent to it reaches the tick in whose time it happened, as context->input, and the next frame's
// handlers. In a pause of the loop it reaches frames only, and so does what was sent between the last frame of the
// pause and the next one. The first tick after it, or one that is stepped in the pause, gets one event without a
// payload for each button whose state has changed. While the loop is held, or so slow that frames pass without a tick,
// events wait for the tick; only those beyond event_count_max are treated as in a pause. Made by the first call.
// Thread: the coordinator; nb_input_send any, taking events is the engine's. Owner: the engine. Fails: NULL for NULL,
// and where there is no memory.
NB_API nb_input *nb_engine_input(nb_engine *engine);

// The snapshots: memory added to them is published in the Snapshot phase of each frame, for jobs and for readers on any
// thread. Made by the first call.
// Thread: the coordinator; what it returns, any. Owner: the engine. Fails: NULL for NULL, and where there is no memory.
NB_API nb_snapshots *nb_engine_snapshots(nb_engine *engine);

// The jobs that span many frames: committed in AsyncPoll within the budget's times, published in the next FrameStart,
// ended with the engine. Their callbacks get a `const nb_context *` as host: a publish may write local tables, every
// callback in a frame may stage commands. Made by the first call.
// Thread: the coordinator; nb_async_submit and nb_async_cancel any, polling is the engine's. Owner: the engine. Fails:
// NULL for NULL, and where there is no memory.
NB_API nb_async *nb_engine_async(nb_engine *engine);

// Encloses a wait that is no work of the frame: the time until nb_engine_wait_end is not charged to the budget. Enclose
// waits for the display outside Present. Enclose a wait for the device only where nb_engine_note_device reports its
// work, or a game that is limited by the device keeps its quality. Waits may be nested; an open wait ends with its
// phase.
// Thread: the coordinator, inside a frame. Owner: unchanged. Fails: NB_ERR_MISUSE (between frames), NB_ERR_THREAD.
NB_API nb_result nb_engine_wait_begin(nb_engine *engine);

// Ends the wait that nb_engine_wait_begin has begun in the same phase.
// Thread: as nb_engine_wait_begin. Owner: unchanged. Fails: NB_ERR_MISUSE (also where none has begun), NB_ERR_THREAD.
NB_API nb_result nb_engine_wait_end(nb_engine *engine);

// Reports how long the device worked on its newest picture. The budget takes the larger of this and the frame's own
// work, or their sum for a device that draws on the CPU. Call it in each frame that has a picture; the module gpu does.
// Thread: the coordinator, inside a frame. Owner: unchanged. Fails: NB_ERR_MISUSE (between frames), NB_ERR_THREAD.
NB_API nb_result nb_engine_note_device(nb_engine *engine, uint64_t work_ns, bool is_on_cpu);

// Says that nothing is to be seen for now, such as behind a loading screen: optional work may take four times as long.
// Thread: the coordinator. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_engine_set_blind(nb_engine *engine, bool is_blind);

// The timelines: what was retired is reclaimed in FrameStart. Made by the first call.
// Thread: the coordinator; what it returns, any. Owner: the engine. Fails: NULL for NULL, and where there is no memory.
NB_API nb_timelines *nb_engine_timelines(nb_engine *engine);

// The timeline of frames: n is reached when n frames have ended. Made with the timelines.
// Thread: the coordinator; what it returns, any. Owner: the engine. Fails: NULL as nb_engine_timelines.
NB_API nb_timeline *nb_engine_epochs(nb_engine *engine);

// The services, which are stopped when the engine is destroyed. Made by the first call.
// Thread: the coordinator; what it returns, any. Owner: the engine. Fails: NULL for NULL, and where there is no memory.
NB_API nb_services *nb_engine_services(nb_engine *engine);

// The budget: quality level and time for optional work. nb_budget_set_level holds from the next handler on, and where
// desc.adapts_budget is false, for good.
// Thread: the coordinator. Owner: the engine; updating is the engine's. Fails: NULL for NULL.
NB_API nb_budget *nb_engine_budget(nb_engine *engine);

// Watches the ticks from the next one on: a recorder reads what went into them, a replay puts other input in its place.
// Thread: the coordinator, between frames. Owner: the watch is copied; user stays the caller's until it is removed.
// Fails: NB_FULL, NB_BUSY (inside a frame), NB_ERR_THREAD, NB_ERR_MISUSE (no user, or one that watches already).
NB_API nb_result nb_engine_watch_add(nb_engine *engine, const nb_tick_watch *watch);

// Ends the watch of this user.
// Thread: the coordinator, between frames. Owner: user is free. Fails: NB_ERR_STALE (it does not watch), NB_BUSY,
// NB_ERR_THREAD, NB_ERR_MISUSE.
NB_API nb_result nb_engine_watch_remove(nb_engine *engine, const void *user);

// The table that names the engine's work. Intern the labels of tasks and async jobs here: a label of another table
// shows up in the log under another name.
// Thread: any. Owner: the engine, or as desc.labels. Fails: NULL for NULL.
NB_API nb_labels *nb_engine_labels(nb_engine *engine);

// The phase that runs now; NB_PHASE_NONE between frames.
// Thread: any; a moment old on others than the coordinator. Owner: unchanged. Fails: NB_PHASE_NONE for NULL.
NB_API nb_phase nb_engine_phase(const nb_engine *engine);

// The engine's numbers.
// Thread: the coordinator. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_engine_stats nb_engine_stats_get(const nb_engine *engine);

NB_EXTERN_C_END
