// SPDX-License-Identifier: MIT
// Work that spans many frames: chunks of terrain are read from "disk" and built layer by layer while frames go by. The
// camera teleports in frame 3; what was being made for the old place is cancelled, and no result of it appears.

#include "nebula/async.h"

#include <stdio.h>

#define CHUNK_COUNT 24u
#define LAYER_COUNT 32u

typedef struct world {
    uint64_t place; // where the camera is; the generation of everything around it
    uint32_t visible_count, thrown_count, wrong_count;
    uint64_t height_sum;
} world;

// Everything that a step needs again after it was suspended.
typedef struct chunk {
    world *world;
    uint64_t place;
    uint32_t x, layer, seed;
    uint64_t height;
} chunk;

// On an io thread, where blocking is nobody's loss.
static nb_result read_seed(void *argument) {
    chunk *c = argument;
    c->seed = c->x * 2654435761u;
    return NB_OK;
}

// On any worker, in pieces.
static nb_async_status build(nb_async_call *call, void *state) {
    chunk *c = state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_IO(call, read_seed, c);
    if (call->result != NB_OK) NB_ASYNC_FAIL(call, call->result);
    for (c->layer = 0; c->layer < LAYER_COUNT; ++c->layer) {
        c->height += (c->seed >> c->layer & 1u) * c->layer;
        if (c->layer % 8 == 7) NB_ASYNC_FRAME(call); // enough for this frame
        NB_ASYNC_YIELD(call);                        // let others run; a cancelled chunk ends at either
    }
    NB_ASYNC_END(call);
}

// The rest on the thread that polls.
static bool is_wanted(void *user, uint64_t generation, const void *state) {
    (void)state;
    return ((world *)user)->place == generation;
}

static void show(void *host, void *state) {
    world *w = host;
    chunk *c = state;
    ++w->visible_count;
    w->height_sum += c->height;
    if (c->place != w->place) ++w->wrong_count;
}

static void throw_away(void *host, void *state, nb_result reason) {
    (void)state;
    (void)reason;
    ++((world *)host)->thrown_count;
}

static void request_chunks(nb_async *async, nb_token *token, world *w) {
    for (uint32_t x = 0; x < CHUNK_COUNT; ++x) {
        chunk c = {.world = w, .place = w->place, .x = x};
        nb_async_job_desc desc = {.step = build,
                                  .publish = show,
                                  .discard = throw_away,
                                  .is_wanted = is_wanted,
                                  .user = w,
                                  .state = &c,
                                  .state_size_bytes = sizeof c,
                                  .generation = w->place,
                                  .budget_class = NB_ASYNC_CLASS_GENERATION,
                                  .token = token};
        if (nb_async_submit(async, &desc, NULL) != NB_OK) ++w->wrong_count;
    }
}

static void teleport(nb_async *async, nb_token **token, world *w) {
    nb_token_cancel(*token, NB_CANCEL_STALE, 0, NULL);
    nb_token_release(*token);
    nb_token_create(NULL, token);
    ++w->place;
    w->visible_count = 0; // what was visible there is out of sight
    w->height_sum = 0;
    request_chunks(async, *token, w);
}

int main(void) {
    world w = {.place = 1};
    nb_scheduler *scheduler = NULL;
    nb_async *async = NULL;
    nb_token *token = NULL;
    if (nb_scheduler_create(NULL, &scheduler) != NB_OK || nb_token_create(NULL, &token) != NB_OK) return 1;
    if (nb_async_create(&(nb_async_desc){.scheduler = scheduler}, &async) != NB_OK) return 1;
    request_chunks(async, token, &w);
    nb_async_frame frame = {.host = &w};
    while (nb_async_stats_get(async).live_count != 0 || frame.frame_index < 3) {
        ++frame.frame_index;
        nb_async_publish(async, &frame); // the frame starts: results of earlier ones appear
        if (frame.frame_index == 3) teleport(async, &token, &w);
        nb_async_poll(async, &frame);                                   // the frame ends: finished jobs are prepared
        nb_clock_sleep_until_ns(NULL, nb_clock_now_ns(NULL) + 1000000); // and the rest of it
    }
    nb_async_stats stats = nb_async_stats_get(async);
    printf("%u chunks visible, %u thrown away, height %llu\n", (unsigned)w.visible_count, (unsigned)w.thrown_count,
           (unsigned long long)w.height_sum);
    bool is_right = w.visible_count == CHUNK_COUNT && w.thrown_count == CHUNK_COUNT && w.wrong_count == 0 &&
                    stats.publish_count + stats.discard_count == 2 * CHUNK_COUNT;
    nb_async_drain(async, &frame, nb_clock_now_ns(NULL) + 5000000000u);
    nb_async_destroy(async);
    nb_token_release(token);
    nb_scheduler_destroy(scheduler);
    return is_right ? 0 : 1;
}
