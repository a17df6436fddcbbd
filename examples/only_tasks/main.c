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
        desc.runs_inline = true; // where the scheduler is full, the piece is done here
        nb_task_submit(scheduler, &desc, NULL);
    }
    if (nb_group_end(scheduler, group, NB_NEVER_NS) != NB_OK) return false; // this thread works too, then sleeps
    for (int i = 0; i < PIECE_COUNT; ++i) sum += squares[i];
    printf("group: %d squares, sum %llu\n", PIECE_COUNT, (unsigned long long)sum);
    return sum == 140;
}

static void halve(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    float *numbers = user;
    for (uint64_t i = begin; i < end; ++i) numbers[i] = (float)i / 2;
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

static void load(nb_task_context *context, void *argument) {
    (void)context;
    **(uint64_t **)argument = 21;
}

static void build(nb_task_context *context, void *argument) {
    const piece *mine = argument;
    *mine->output *= 2;
    if (*mine->output != 42) nb_task_set_result(context, NB_ERR_MISUSE); // it ran before what it depends on
}

static void on_built(void *user, const nb_task_result *result) {
    const piece *built = result->argument;
    printf("built: %llu, %s\n", (unsigned long long)*built->output, nb_result_name(result->status));
    *(bool *)user = result->status == NB_OK;
}

static bool run_dependency(nb_scheduler *scheduler) {
    uint64_t value = 0, *pointer = &value;
    bool is_built = false;
    piece made = {.output = &value};
    nb_task loading, building;
    nb_task_desc first = {.run = load, .argument = &pointer, .argument_size_bytes = sizeof pointer};
    if (nb_task_submit(scheduler, &first, &loading) != NB_OK) return false;
    nb_task_desc second = {.run = build, .argument = &made, .argument_size_bytes = sizeof made};
    second.dependencies = &loading;
    second.dependency_count = 1;
    second.on_complete = on_built;
    second.user = &is_built;
    // The tasks write to this stack, so a failed submit must still wait for the first.
    nb_result result = nb_task_submit(scheduler, &second, &building);
    nb_task_wait(scheduler, result == NB_OK ? building : loading, NB_NEVER_NS);
    nb_scheduler_drain(scheduler, 0, NULL); // the place where results are told
    return is_built;
}

// Looks at the terrain until nobody wants it any more.
static void survey(nb_task_context *context, void *argument) {
    (void)argument;
    while (!nb_task_should_stop(context)) nb_token_wait(context->token, NB_NEVER_NS);
}

static void generate(nb_task_context *context, void *argument) {
    (void)context, (void)argument;
    puts("a chunk was generated although its planet is gone");
}

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
    nb_result result = nb_group_end(scheduler, group, NB_NEVER_NS);
    printf("group: %s\n", nb_result_name(result));
    nb_token_release(planet);
    return result == NB_CANCELLED && stopped == CHUNK_COUNT + 1;
}

int main(void) {
    nb_scheduler *scheduler = NULL;
    if (nb_scheduler_create(NULL, &scheduler) != NB_OK) return 1;
    bool is_good = run_group(scheduler) && run_range(scheduler);
    is_good = is_good && run_dependency(scheduler) && run_cancelled(scheduler);
    return nb_scheduler_destroy(scheduler) == NB_OK && is_good ? 0 : 1;
}
