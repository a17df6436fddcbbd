// SPDX-License-Identifier: MIT
// The table of phases.

#include "nebula/phase.h"

#define SIMULATED NB_LAYER_SIMULATED
#define GAME NB_LAYER_GAME
#define FRAME NB_LAYER_FRAME
#define ENGINE NB_LAYER_ENGINE

#define ADVANCE NB_CAPABILITY_ADVANCE
#define PUBLISH NB_CAPABILITY_PUBLISH
#define SUBMIT NB_CAPABILITY_SUBMIT
#define MUTATE NB_CAPABILITY_MUTATE_ENGINE

#define A NB_CATEGORY_ORDERED, NB_THREADS_COORDINATOR
#define B NB_CATEGORY_PARALLEL, NB_THREADS_ALL
#define C NB_CATEGORY_ASYNC, NB_THREADS_COORDINATOR
#define D NB_CATEGORY_DETACHED, NB_THREADS_OWN
#define NO_BARRIER NB_BARRIER_NONE

// What handlers may change, what they may change with the capability, and the capabilities they may have.
#define ROW(upper, name, category, mutates, conditional, capabilities, barrier, is_rendering, summary) \
    [NB_PHASE_##upper] = {NB_PHASE_##upper, name,         summary, category,    mutates,               \
                          conditional,      capabilities, barrier, is_rendering}

static const nb_phase_info rows[NB_PHASE_COUNT] = {
    [NB_PHASE_NONE] = {.name = "None", .summary = "between frames", .barrier = NO_BARRIER},
    ROW(FRAME_START, "FrameStart", A, GAME | ENGINE, 0, ADVANCE, NO_BARRIER, false,
        "a new frame: what was retired is reclaimed, what was committed is seen"),
    ROW(INPUT, "Input", A, GAME, 0, 0, 0, false, "events are sorted into the ticks they belong to"),
    ROW(NETWORK_RECONCILIATION, "NetworkReconciliation", A, GAME, 0, 0, NO_BARRIER, false,
        "what a server said is applied: rewind, simulate again"),
    ROW(RANDOM_SEED, "RandomSeed", A, GAME, 0, 0, 1, false, "the seed of the coming ticks"),
    ROW(FIXED_SIM, "FixedSim", A, SIMULATED | GAME, 0, 0, 2, false,
        "the ticks that are due; each ends with its structural changes"),
    ROW(GAMEPLAY, "Gameplay", A, GAME, 0, 0, NO_BARRIER, false,
        "once a frame: what is not simulated, and commands for a later tick"),
    ROW(SCENE_MUTATION, "SceneMutation", A, GAME, 0, 0, 3, false, "structural changes that Gameplay has asked for"),
    ROW(TRANSFORMS, "Transforms", A, GAME, 0, 0, NO_BARRIER, false, "hierarchies are worked out"),
    ROW(SNAPSHOT, "Snapshot", A, 0, 0, PUBLISH, 4, false, "the state of now is copied and published"),
    ROW(PARALLEL_TASKS, "ParallelTasks", B, FRAME, 0, 0, 5, false,
        "jobs read the snapshot and write outputs of their own"),
    ROW(POST_PARALLEL, "PostParallel", A, GAME | FRAME, ENGINE, MUTATE, NO_BARRIER, false,
        "outputs are merged, by handler and job index"),
    ROW(FRAME_GRAPH, "FrameGraph", A, FRAME | ENGINE, 0, 0, NO_BARRIER, true, "what is to be drawn is planned"),
    ROW(COMMAND_RECORD, "CommandRecord", B, FRAME, ENGINE, SUBMIT | MUTATE, 6, true,
        "commands are recorded by all threads, submitted in index order"),
    ROW(PRESENT, "Present", A, 0, ENGINE, MUTATE, NO_BARRIER, true, "the picture is shown"),
    ROW(ASYNC_POLL, "AsyncPoll", C, ENGINE, 0, PUBLISH, 7, false,
        "jobs of many frames are polled, finished ones committed for the next frame"),
    ROW(BUDGET_ADAPT, "BudgetAdapt", A, ENGINE, 0, 0, NO_BARRIER, false, "budgets follow the measured times"),
    ROW(FRAME_END, "FrameEnd", A, ENGINE, 0, 0, NO_BARRIER, false, "counters, and marks for what may be reclaimed"),
    ROW(DETACHED_SERVICES, "DetachedServices", D, 0, 0, 0, NO_BARRIER, false,
        "services on threads of their own, by messages only"),
};

static const char *const barrier_names[NB_BARRIER_COUNT] = {"InputSnapshot", "NetworkReconciled", "SimulationComplete",
                                                            "SceneStable",   "SnapshotReady",     "ParallelComplete",
                                                            "CommandReady",  "AsyncPublishReady"};

const nb_phase_info *nb_phase_info_get(nb_phase phase) {
    return &rows[(uint32_t)phase < NB_PHASE_COUNT ? phase : NB_PHASE_NONE];
}

nb_phase nb_barrier_phase(int32_t barrier) {
    for (uint32_t i = 1; barrier != NB_BARRIER_NONE && i < NB_PHASE_COUNT; ++i) {
        if (rows[i].barrier == barrier) return rows[i].phase;
    }
    return NB_PHASE_NONE;
}

const char *nb_barrier_name(int32_t barrier) {
    return barrier >= 0 && barrier < NB_BARRIER_COUNT ? barrier_names[barrier] : "";
}

char nb_phase_category_letter(nb_phase_category category) {
    bool is_one = category > NB_CATEGORY_NONE && category < NB_CATEGORY_COUNT;
    return is_one ? "ABCD"[category - NB_CATEGORY_ORDERED] : '-';
}

static bool is_one_bit(uint32_t bits) { return bits != 0 && (bits & (bits - 1)) == 0; }

bool nb_phase_may_mutate(nb_phase phase, uint32_t layer, uint32_t capabilities) {
    const nb_phase_info *info = nb_phase_info_get(phase);
    if (!is_one_bit(layer)) return false;
    if ((info->mutates & layer) != 0) return true;
    bool has_capability = (info->capabilities & capabilities & NB_CAPABILITY_MUTATE_ENGINE) != 0;
    return (info->conditional & layer) != 0 && has_capability;
}

bool nb_phase_has_capability(nb_phase phase, uint32_t capability) {
    return is_one_bit(capability) && (nb_phase_info_get(phase)->capabilities & capability) != 0;
}
