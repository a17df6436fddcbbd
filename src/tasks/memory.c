// SPDX-License-Identifier: MIT
// Memory of tasks. A frame-bound task allocates from the thread arenas, in its own frame, which the frame's tickets
// keep from being used again. A floating task has no frame whose end it could wait for: its memory is a stack of the
// lane, given back when it returns. Tasks of one lane end in the reverse order of their starts, so a mark is enough.

#include "scheduler.h"

// Address space of a lane's scratch memory; more is chained.
#define SCRATCH_SIZE ((size_t)1 << 20)

static nb_arena *frame_arena(nbi_lane *lane, const nb_task_context *context) {
    nb_thread_arenas *arenas = lane->scheduler->desc.arenas;
    nb_arena_frame frame = nb_fence_arena_frame(context->fence, context->frame);
    if (frame.value == 0) return NULL;
    if (lane->arena == NULL && nb_thread_arena_attach(arenas, &lane->arena) != NB_OK) return NULL;
    return nb_thread_arena_at(lane->arena, frame);
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
    bool is_framed = lane->running->frame_tally != NULL && lane->scheduler->desc.arenas != NULL;
    nb_arena *arena = is_framed ? frame_arena(lane, context) : NULL;
    return arena != NULL ? arena : scratch_arena(lane);
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
