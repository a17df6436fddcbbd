// SPDX-License-Identifier: MIT
#pragma once

// The phases of a frame, in their order, and what is allowed in each. One table says it all: the engine runs by it,
// checks permissions by it, names trace spans by it, and docs/frame.md is printed from it. The one rule: state changes
// in ordered phases on the coordinator; parallel phases read a snapshot and write outputs of their own.
//
//     for (int phase = 1; phase < NB_PHASE_COUNT; ++phase) {
//         const nb_phase_info *info = nb_phase_info_get((nb_phase)phase);
//         printf("%2d %-22s %c\n", phase, info->name, nb_phase_category_letter(info->category));
//     }

#include "nebula/types.h"

typedef enum nb_phase {
    NB_PHASE_NONE = 0, // between frames
    NB_PHASE_FRAME_START,
    NB_PHASE_INPUT,
    NB_PHASE_NETWORK_RECONCILIATION,
    NB_PHASE_RANDOM_SEED,
    NB_PHASE_FIXED_SIM,
    NB_PHASE_GAMEPLAY,
    NB_PHASE_SCENE_MUTATION,
    NB_PHASE_TRANSFORMS,
    NB_PHASE_SNAPSHOT,
    NB_PHASE_PARALLEL_TASKS,
    NB_PHASE_POST_PARALLEL,
    NB_PHASE_FRAME_GRAPH,
    NB_PHASE_COMMAND_RECORD,
    NB_PHASE_PRESENT,
    NB_PHASE_ASYNC_POLL,
    NB_PHASE_BUDGET_ADAPT,
    NB_PHASE_FRAME_END,
    NB_PHASE_DETACHED_SERVICES, // beside the frame, not in it
    NB_PHASE_COUNT,
} nb_phase;

typedef enum nb_phase_category {
    NB_CATEGORY_NONE = 0,
    NB_CATEGORY_ORDERED,  // A: handlers one after the other on the coordinator
    NB_CATEGORY_PARALLEL, // B: jobs on all threads over a snapshot, joined before the phase ends
    NB_CATEGORY_ASYNC,    // C: work of many frames, polled and committed on the coordinator
    NB_CATEGORY_DETACHED, // D: threads of their own, messages only
    NB_CATEGORY_COUNT,
} nb_phase_category;

// Where the code of a phase runs.
typedef enum nb_phase_threads {
    NB_THREADS_NONE = 0,
    NB_THREADS_COORDINATOR, // on the coordinator, which may hand out tasks and wait for them inside the phase
    NB_THREADS_ALL,         // on every thread
    NB_THREADS_OWN,         // on threads of its own
    NB_THREADS_COUNT,
} nb_phase_threads;

// What there is to change. Bits.
#define NB_LAYER_SIMULATED 1u // state of the game that ticks compute, alike on every machine
#define NB_LAYER_GAME 2u      // state of the game that only this machine has
#define NB_LAYER_FRAME 4u     // what this frame makes for itself: outputs, plans, command lists
#define NB_LAYER_ENGINE 8u    // the engine's own: frame number, registries, budgets, surfaces

// What a handler may be given the right to do, in the phases whose row names it. Bits.
#define NB_CAPABILITY_ADVANCE 1u       // move the frame number and the epochs
#define NB_CAPABILITY_PUBLISH 2u       // make a snapshot, or what jobs of many frames have made, visible
#define NB_CAPABILITY_SUBMIT 4u        // hand recorded commands on, in their order
#define NB_CAPABILITY_MUTATE_ENGINE 8u // change NB_LAYER_ENGINE where the row says "with the capability"
#define NB_CAPABILITY_ALL 15u

// Barriers, each closed by the end of one phase.
#define NB_BARRIER_COUNT 8
#define NB_BARRIER_NONE (-1)

// A row of the table.
typedef struct nb_phase_info {
    nb_phase phase;
    const char *name;    // as in traces
    const char *summary; // what happens in it
    nb_phase_category category;
    nb_phase_threads threads;
    uint32_t mutates;      // NB_LAYER_* that its handlers may change
    uint32_t conditional;  // NB_LAYER_* that they may change with the capability
    uint32_t capabilities; // NB_CAPABILITY_* that a handler may have in it
    int32_t barrier;       // 0 to 7, closed when it ends; NB_BARRIER_NONE
    bool is_rendering;     // left out by an engine without a picture
} nb_phase_info;

NB_EXTERN_C_BEGIN

// The row of a phase.
// Thread: any. Owner: the library; it never changes. Fails: the row of NB_PHASE_NONE for what is no phase.
NB_API const nb_phase_info *nb_phase_info_get(nb_phase phase);

// The phase that a barrier is the end of.
// Thread: any. Owner: nothing. Fails: NB_PHASE_NONE for what is no barrier.
NB_API nb_phase nb_barrier_phase(int32_t barrier);

// The name of a barrier, such as "InputSnapshot".
// Thread: any. Owner: the library; it never changes. Fails: "" for what is no barrier.
NB_API const char *nb_barrier_name(int32_t barrier);

// 'A' to 'D'.
// Thread: any. Owner: nothing. Fails: '-' for what is no category.
NB_API char nb_phase_category_letter(nb_phase_category category);

// Whether the table lets a handler with these capabilities change a layer (one NB_LAYER_* bit) in a phase.
// Thread: any. Owner: nothing. Fails: false for what is no phase or no layer.
NB_API bool nb_phase_may_mutate(nb_phase phase, uint32_t layer, uint32_t capabilities);

// Whether a capability (one NB_CAPABILITY_* bit) means anything in a phase.
// Thread: any. Owner: nothing. Fails: false for what is no phase or no capability.
NB_API bool nb_phase_has_capability(nb_phase phase, uint32_t capability);

NB_EXTERN_C_END
