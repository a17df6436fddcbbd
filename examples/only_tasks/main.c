// SPDX-License-Identifier: MIT
// Tasks alone, without frames: work that is waited for together, work over a range, work that waits for other work,
// a result told where the program wants it, and work that is no longer wanted.

#include "nebula/tasks.h"

#include <stdio.h>

#define PIECE_COUNT 8
#define NUMBER_COUNT 100000
#define CHUNK_COUNT 46

// Arguments are copied into the task; what a task writes goes behind a pointer.
typedef struct piece {
    uint64_t input;
    uint64_t *output;
} piece;

static void square(nb_task_context *context, void *argument) {
    (void)context;
    const piece *mine = argument;
    *mine->output = mine->input * mine->input;
}

static bool run_group(nb_scheduler *scheduler) {
    uint64_t squares[PIECE_COUNT] = {0}, sum = 0;
    nb_group group;
    if (nb_group_begin(scheduler, &group) != NB_OK) return false;
    for (uint64_t i = 0; i < PIECE_COUNT; ++i) {
        piece next = {.input = i, .output = &squares[i]};
        nb_task_desc desc = {.run = square, .argument = &next, .argument_size_bytes = sizeof next, .group = group};
        nb_task_submit(scheduler, &desc, NULL);
    }
    if (nb_group_end(scheduler, group, NB_NEVER_NS) != NB_OK) return false; // this thread works too, then sleeps
    for (int i = 0; i < PIECE_COUNT; ++i) sum += squares[i];
    printf("group: %d squares, sum %llu\n", PIECE_COUNT, (unsigned long long)sum);
    return sum == 140;
}

static void halve(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    for (uint64_t i = begin; i < end; ++i) ((float *)user)[i] = (float)i / 2;
}

static bool run_range(nb_scheduler *scheduler) {
    static float numbers[NUMBER_COUNT];
    nb_parallel_desc desc = {.run = halve, .user = numbers, .count = NUMBER_COUNT};
    nb_parallel_report report;
    if (nb_parallel_for(scheduler, &desc, &report) != NB_OK) return false;
    printf("range: %llu numbers, the last one %.1f\n", (unsigned long long)report.done_count,
           numbers[NUMBER_COUNT - 1]);
    return report.done_count == NUMBER_COUNT;
}

static void load(nb_task_context *context, void *argument) { (void)context, **(uint64_t **)argument = 21; }
static void build(nb_task_context *context, void *argument) { (void)context, **(uint64_t **)argument *= 2; }

static void on_built(void *user, const nb_task_result *result) {
    (void)user;
    printf("built: %llu, %s\n", (unsigned long long)**NB_RESULT_AS(uint64_t *, result), nb_result_name(result->status));
}

static bool run_dependency(nb_scheduler *scheduler) {
    uint64_t value = 0, *pointer = &value;
    nb_task loading, building = {0};
    nb_task_desc desc = {.run = load, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    if (nb_task_submit(scheduler, &desc, &loading) != NB_OK) return false;
    desc.run = build;
    desc.dependencies = &loading;
    desc.dependency_count = 1;
    desc.on_complete = on_built;
    nb_task_submit(scheduler, &desc, &building);
    nb_task_wait(scheduler, loading, NB_NEVER_NS); // both write to this stack
    nb_task_wait(scheduler, building, NB_NEVER_NS);
    return nb_scheduler_drain(scheduler, 0, NULL) == NB_OK && value == 42; // the place where results are told
}

// Looks at the terrain until nobody wants it any more.
static void survey(nb_task_context *context, void *argument) {
    (void)argument;
    while (!nb_task_should_stop(context)) nb_token_wait(context->token, NB_NEVER_NS);
}
static void generate(nb_task_context *context, void *argument) { (void)context, (void)argument; }

static bool run_cancelled(nb_scheduler *scheduler) {
    nb_token *planet = NULL;
    nb_group group;
    nb_task first;
    nb_cancel_counts counts = {0};
    if (nb_token_create(NULL, &planet) != NB_OK || nb_group_begin(scheduler, &group) != NB_OK) return false;
    nb_task_desc desc = {.run = survey, .token = planet, .group = group};
    if (nb_task_submit(scheduler, &desc, &first) != NB_OK) return false;
    desc.run = generate;
    desc.dependencies = &first;
    desc.dependency_count = 1;
    for (int i = 0; i < CHUNK_COUNT; ++i) nb_task_submit(scheduler, &desc, NULL);
    nb_token_cancel(planet, NB_CANCEL_STALE, 0, &counts);
    uint64_t stopped = counts.task_queued_count + counts.task_running_count;
    printf("Cancelled %llu stale tasks\n", (unsigned long long)stopped);
    nb_token_release(planet);
    return nb_group_end(scheduler, group, NB_NEVER_NS) == NB_CANCELLED && stopped == CHUNK_COUNT + 1;
}

int main(void) {
    nb_scheduler *scheduler = NULL;
    if (nb_scheduler_create(NULL, &scheduler) != NB_OK) return 1;
    bool is_good =
        run_group(scheduler) && run_range(scheduler) && run_dependency(scheduler) && run_cancelled(scheduler);
    return nb_scheduler_destroy(scheduler) == NB_OK && is_good ? 0 : 1;
}
