// SPDX-License-Identifier: MIT
// Tasks that belong to a frame: Gameplay hands out questions, every core answers them while the frame goes on, and the
// fence at the end of ParallelTasks waits for exactly these. PostParallel finds all answers there.

#include "nebula/engine.h"

#include <stdio.h>

#define QUESTION_COUNT 16u

typedef struct question {
    uint64_t number;
    uint64_t *answer;
} question;

typedef struct oracle {
    uint64_t answers[QUESTION_COUNT];
    uint64_t sum, frame_count, refused_count;
} oracle;

// On any thread. The longest walk to 1 among the thousand numbers from `number` on: halve it, or triple it and add one.
static void answer(nb_task_context *context, void *argument) {
    (void)context;
    const question *asked = argument;
    uint64_t longest = 0;
    for (uint64_t start = asked->number; start < asked->number + 1000; ++start) {
        uint64_t steps = 0;
        for (uint64_t at = start; at != 1; ++steps) at = at % 2 == 0 ? at / 2 : 3 * at + 1;
        if (steps > longest) longest = steps;
    }
    *asked->answer = longest;
}

static nb_result ask(const nb_context *context, void *user) {
    oracle *o = user;
    for (uint32_t i = 0; i < QUESTION_COUNT; ++i) {
        question next = {.number = context->frame_index * 16000 + i * 1000 + 1, .answer = &o->answers[i]};
        nb_task_desc task = {.run = answer,
                             .argument = &next, // copied
                             .argument_size_bytes = sizeof next,
                             .lifetime = NB_LIFETIME_FRAME,
                             .fence = context->fence,
                             .frame = context->frame};
        if (nb_task_submit(context->scheduler, &task, NULL) != NB_OK) ++o->refused_count;
    }
    return NB_OK;
}

static nb_result collect(const nb_context *context, void *user) {
    oracle *o = user;
    (void)context;
    for (uint32_t i = 0; i < QUESTION_COUNT; ++i) o->sum += o->answers[i];
    ++o->frame_count;
    return NB_OK;
}

int main(void) {
    // Answers are written into memory of this program: better a long frame than one that goes on without them.
    nb_engine_desc desc = {.is_headless = true, .fence_timeout_ns = 60000000000};
    nb_engine *engine = NULL;
    if (nb_engine_create(&desc, &engine) != NB_OK) return 1;
    oracle o = {.sum = 0};
    nb_module_desc module = {.name = "oracle", .frame = ask, .user = &o};
    module.handlers[NB_PHASE_POST_PARALLEL] = collect;
    nb_result result = nb_engine_module_attach(engine, &module, NULL);
    if (result == NB_OK) result = nb_engine_run_ticks(engine, 10);
    nb_engine_stats stats = nb_engine_stats_get(engine);
    printf("%llu frames, %u questions each: the longest walks add up to %llu steps\n",
           (unsigned long long)o.frame_count, QUESTION_COUNT, (unsigned long long)o.sum);
    bool is_good = result == NB_OK && stats.degraded_count == 0 && o.refused_count == 0 && o.sum == 47801;
    return nb_engine_destroy(engine) == NB_OK && is_good ? 0 : 1;
}
