// SPDX-License-Identifier: MIT
// Memory of tasks. A frame-bound task allocates from the thread arenas, in its own frame, which the frame's tickets
// keep from being used again; where somebody is told of the task's end, a pin keeps it until then. A floating task has
// no frame whose end it could wait for: its memory is a stack of the lane, given back when it returns. Tasks of one
// lane end in the reverse order of their starts, so a mark is enough.

#include "scheduler.h"

// Address space of a lane's scratch memory; more is chained.
#define SCRATCH_SIZE ((size_t)1 << 20)

// The memory of a task whose end is told stays until then: a late one may end, and its frame's memory be used again,
// before the host has looked at it. False: the frame has ended, or too many pins are out.
static bool keep_for_outcome(const nb_scheduler *scheduler, const nbi_running *running, nb_arena_frame frame) {
    if (running->id == 0) return true;
    uint32_t slot = nbi_hint_slot(running->id - 1);
    bool is_told = (nbi_atomic_load_relaxed_u32(&nbi_slot_at(scheduler, slot)->kind) & NBI_KIND_HAS_RESULT) != 0;
    nbi_outcome *outcome = &scheduler->outcomes[slot];
    if (!is_told || outcome->memory.value != 0) return true;
    if (nb_thread_arenas_pin(scheduler->desc.arenas, frame) != NB_OK) return false;
    outcome->memory = frame;
    return true;
}

void nbi_outcome_memory_end(const nb_scheduler *scheduler, const nbi_outcome *outcome) {
    if (outcome->memory.value != 0) nb_thread_arenas_unpin(scheduler->desc.arenas, outcome->memory);
}

static nb_arena *frame_arena(nbi_lane *lane, const nb_task_context *context) {
    nb_arena_frame frame = nb_fence_arena_frame(context->fence, context->frame);
    if (frame.value == 0) return NULL;
    if (lane->arena == NULL && nb_thread_arena_attach(lane->scheduler->desc.arenas, &lane->arena) != NB_OK) return NULL;
    nb_arena *arena = nb_thread_arena_at(lane->arena, frame);
    return arena != NULL && keep_for_outcome(lane->scheduler, lane->running, frame) ? arena : NULL;
}

static nb_arena *scratch_arena(nbi_lane *lane) {
    nbi_running *running = lane->running;
    if (!lane->has_scratch) {
        nb_arena_desc desc = {.label = "task scratch",
                              .capacity_bytes = SCRATCH_SIZE,
                              .policy = NB_ARENA_POLICY_CHAIN,
                              .hooks = lane->scheduler->desc.hooks};
        if (nb_arena_init(&lane->scratch, &desc) != NB_OK) return NULL;
        lane->has_scratch = true;
    }
    if (!running->has_scratch) {
        running->scratch_mark = nb_arena_save(&lane->scratch);
        running->has_scratch = true;
    }
    return &lane->scratch;
}

nb_arena *nb_task_arena(nb_task_context *context) {
    if (context == NULL) {
        NBI_FAIL_NULL("context");
        return NULL;
    }
    nbi_lane *lane = context->lane;
    // Never one for the other: a task that counts on the frame's end must not get memory that ends with itself.
    bool is_joined =
        lane->running->frame_tally != NULL && nbi_fence_arenas(context->fence) == lane->scheduler->desc.arenas;
    return is_joined ? frame_arena(lane, context) : scratch_arena(lane);
}

void nbi_scratch_end(nbi_lane *lane, const nbi_running *running) {
    nb_arena_rewind(&lane->scratch, running->scratch_mark);
}

void nbi_lane_memory_end(nbi_lane *lane) {
    if (lane->arena != NULL) nb_thread_arena_detach(lane->arena);
    lane->arena = NULL;
    if (lane->has_scratch) nb_arena_deinit(&lane->scratch);
    lane->has_scratch = false;
}
