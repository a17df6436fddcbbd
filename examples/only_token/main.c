// SPDX-License-Identifier: MIT
// Tokens alone: a player teleports while terrain is being generated, and the work for the old place is cancelled.
// The job queue here is an array; a real one does the same three things: enter, start, leave.

#include "nebula/token.h"

#include <stdio.h>

#define CHUNK_COUNT 64
#define LOAD_RADIUS 8

typedef struct job {
    nb_token *token; // NULL: done or dropped
    int layer;       // next of the chunk's 32 layers
} job;

static bool is_out_of_reach(void *user, nb_token *chunk) {
    int64_t distance = (int64_t)nb_token_key(chunk) - *(const int64_t *)user;
    return distance < -LOAD_RADIUS || distance > LOAD_RADIUS;
}

static void on_session_end(void *user, nb_token *session) {
    (void)user;
    printf("session ended: %s\n", nb_cancel_cause_name(nb_token_reason(session).cause));
}

// Runs a job for a few layers. The check is one load, so asking once a layer costs nothing.
static void job_run(job *chunk, int layers) {
    while (layers-- > 0 && chunk->layer < 32 && !nb_token_is_cancelled(chunk->token)) ++chunk->layer;
}

// Ends what is finished or cancelled, and returns how many layers were never generated.
static int job_end(job *chunk, bool has_started) {
    if (has_started)
        nb_token_task_leave(chunk->token);
    else
        nb_token_task_start(chunk->token); // refused: it was cancelled in the queue
    nb_token_release(chunk->token);
    chunk->token = NULL;
    return 32 - chunk->layer;
}

int main(void) {
    nb_token *game = NULL, *planet = NULL, *session = NULL;
    nb_token_desc desc = nb_token_desc_default();
    desc.label = "game";
    if (nb_token_create(&desc, &game) != NB_OK) return 1;
    if (nb_token_child(game, "planet", &planet) != NB_OK || nb_token_child(game, "session", &session) != NB_OK)
        return 1;

    job jobs[CHUNK_COUNT] = {0};
    for (int i = 0; i < CHUNK_COUNT; ++i) {
        nb_token_desc chunk = {.label = "chunk", .parent = planet, .key = (uint64_t)i};
        if (nb_token_create(&chunk, &jobs[i].token) != NB_OK) return 1;
        nb_token_task_enter(jobs[i].token);
    }
    for (int i = 0; i < 12; ++i) {
        nb_token_task_start(jobs[i].token);
        job_run(&jobs[i], 5);
    }

    int64_t player = 50; // chunks 42 to 58 are in reach of the new place
    nb_cancel_counts counts;
    nb_token_cancel_children(planet, is_out_of_reach, &player, NB_CANCEL_STALE, 0, &counts);
    printf("Cancelled %u stale tasks (%u running, %u queued)\n",
           (unsigned)(counts.task_running_count + counts.task_queued_count), (unsigned)counts.task_running_count,
           (unsigned)counts.task_queued_count);

    int saved = 0;
    for (int i = 0; i < CHUNK_COUNT; ++i) {
        if (nb_token_is_cancelled(jobs[i].token)) saved += job_end(&jobs[i], i < 12);
    }
    char path[64];
    nb_token_path(planet, path, sizeof path);
    printf("%d layers saved; %u chunks left below %s\n", saved, (unsigned)nb_token_child_count(planet), path);

    // The session may last until frame 600; whoever runs the frame says which one it is.
    nb_token_callback callback = {0};
    nb_token_callback_register(session, &callback, on_session_end, NULL);
    nb_token_set_deadline(session, 0, 600);
    for (uint64_t frame = 598; frame <= 600; ++frame) nb_token_expire(game, 0, frame, NULL);
    nb_token_callback_unregister(&callback);

    nb_token_cancel(game, NB_CANCEL_SHUTDOWN, 0, &counts);
    printf("shutdown: %u tokens, %u tasks\n", (unsigned)counts.token_count, (unsigned)counts.task_queued_count);
    for (int i = 0; i < CHUNK_COUNT; ++i) {
        if (jobs[i].token != NULL) job_end(&jobs[i], false);
    }
    nb_token_release(session);
    nb_token_release(planet);
    nb_token_release(game);
    return 0;
}
