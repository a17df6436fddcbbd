// SPDX-License-Identifier: MIT
#pragma once

// What a handler is told about the frame it runs in, and the outputs of parallel jobs. The one rule: a context is valid
// until the handler returns, in the thread that got it.
//
//     typedef struct ship { double x, speed; } ship;
//     static nb_result move(const nb_context *context, void *user) {
//         ship *mine = (ship *)user;
//         mine->x += mine->speed * context->tick->dt_s; // a tick handler: the same at any frame rate
//         return NB_OK;
//     }

#include "nebula/arena.h"
#include "nebula/fence.h"
#include "nebula/input.h"
#include "nebula/loop.h"
#include "nebula/phase.h"
#include "nebula/snapshot.h"
#include "nebula/store.h"
#include "nebula/tasks.h"
#include "nebula/token.h"
#include "nebula/types.h"

typedef struct nb_engine nb_engine;

// One module of one engine. Zero is null.
typedef struct nb_module_id {
    uint64_t value; // private: number and place
} nb_module_id;

// What one job of a parallel handler has made in this frame: a list of blocks, in the order of nb_output_add.
typedef struct nb_output_list nb_output_list;

// What a tick makes of frame_index, frame, time or quality_level depends on frames and their times: a tick that is to
// be the same in every run reads tick, world, input, commands and seed.
typedef struct nb_context {
    nb_engine *engine;
    nb_module_id module;         // whose handler this is
    nb_phase phase;              // in which it runs
    uint64_t frame_index;        // frames ended before this one
    nb_fence_frame frame;        // of the engine's fence; null when every slot of it has late work
    const nb_loop_frame *time;   // of this frame
    const nb_loop_tick *tick;    // in FixedSim; else NULL
    nb_arena *arena;             // memory until the frame ends; in FixedSim until the tick does, in a job until its
                                 // outputs are merged
    nb_token *token;             // of the engine; cancelled when it stops
    nb_scheduler *scheduler;     // for tasks that the handler waits for before it returns
    nb_fence *fence;             // for frame-bound tasks
    bool is_resimulated;         // in FixedSim: this tick has run before, see rollback.h
    nb_store *world;             // of the engine; NULL = it has none
    nb_input_view input;         // in FixedSim the tick's events; else those that came since the frame before
    nb_input_view commands;      // in FixedSim: what nb_context_command has staged since the tick before
    const nb_snapshot *snapshot; // of this frame's Snapshot, from there on and in jobs; NULL = nothing is published
    uint64_t seed;               // of the engine, for nb_random_make(seed, tick, stream)
    uint32_t quality_level;      // of the budget: higher is better
    uint32_t capabilities;       // NB_CAPABILITY_* that the handler has here
    uint32_t job_index;          // of a job, or of the job whose outputs are merged; else 0
    uint32_t job_count;          // of the handler; 0 outside jobs and merges
    uint64_t job_age;            // of a late job whose outputs are merged: frames since its own; else 0
    nb_output_list *outputs;     // of a job: for nb_output_add; else NULL
    void *call;                  // private
    uint64_t serial;             // private
} nb_context;

NB_EXTERN_C_BEGIN

// Adds a block of zeroed bytes to the outputs of a job, 16-byte aligned. It can be written until the job returns, and
// is handed to the handler's merge in PostParallel, or to its submit at the end of CommandRecord. Those of a late job
// are dropped, or merged in a later frame: see nb_module_desc.adopts_late.
// Thread: the one that runs the job. Owner: the engine, until that phase of that frame has ended. Fails: NULL where
// memory is exhausted (counted, and the job fails with NB_ERR_MEMORY), where the job has returned or runs on another
// thread (counted and reported like a refusal of nb_context_check), and where the call does not come from a job.
NB_API void *nb_output_add(const nb_context *context, size_t size_bytes);

// The block behind another, or the first for NULL; *size_bytes (may be NULL) is its length.
// Thread: the one that runs the merge. Owner: the engine, as nb_output_add. Fails: NULL at the end.
NB_API const void *nb_output_list_next(const nb_output_list *outputs, const void *block, size_t *size_bytes);

// Where this handler stages rows to be spawned or despawned: in FixedSim they are applied when the tick ends, in
// Gameplay, for local tables, in SceneMutation; ordered by handler, then `job`, then by the order of staging. `job` is
// 0 for the handler itself; a handler with tasks takes a stage for each before it starts them.
// Thread: the handler's; the stage is then filled by one thread. Owner: the engine, until it is applied. Fails: NULL,
// reported: no world when the frame began, another phase, a stale context, stage_count_max are there.
NB_API nb_store_stage *nb_context_stage(const nb_context *context, uint32_t job);

// Stages a command: it enters the next tick that runs, as part of that tick's input, in context->commands. This is how
// Gameplay, PostParallel and AsyncPoll change what is simulated. Every handler on the coordinator may, but not in
// ticks.
// Thread: the handler's. Owner: the command is copied. Fails: NB_FULL (counted), NB_ERR_PERMISSION, NB_ERR_THREAD,
// NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_context_command(const nb_context *context, const nb_input_event *command);

// Whether the handler may change a layer (one NB_LAYER_* bit) here: right phase, right thread, and with the capability
// where the table asks for one. A refusal is counted and reported by the engine's policy, once a place.
// Thread: any. Owner: unchanged. Fails: NB_ERR_PERMISSION, NB_ERR_THREAD, NB_ERR_STALE (the handler has returned),
// NB_ERR_MISUSE.
NB_API nb_result nb_context_check(const nb_context *context, uint32_t layer);

// The same for what needs a capability itself (one NB_CAPABILITY_* bit).
// Thread: any. Owner: unchanged. Fails: as nb_context_check.
NB_API nb_result nb_context_check_capability(const nb_context *context, uint32_t capability);

NB_EXTERN_C_END
