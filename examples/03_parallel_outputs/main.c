// SPDX-License-Identifier: MIT
// A module with parallel jobs: each looks for ships in its part of the sky and writes what it found into outputs of its
// own; the outputs are merged in the order of the jobs, so the list is the same with any number of threads.

#include "nebula/engine.h"

#include <stdio.h>

#define STAR_COUNT 100000u
#define JOB_COUNT 8u

typedef struct sky {
    uint32_t stars[STAR_COUNT];
    uint64_t found_count, check; // what the merge makes of the outputs
} sky;

typedef struct finding {
    uint32_t star, brightness;
} finding;

// On any thread: reads the sky, writes outputs.
static nb_result look(const nb_context *context, void *user) {
    const sky *s = user;
    uint32_t begin = STAR_COUNT / context->job_count * context->job_index;
    uint32_t end = STAR_COUNT / context->job_count * (context->job_index + 1);
    for (uint32_t i = begin; i < end; ++i) {
        if (s->stars[i] % 1000 != 7) continue;
        finding *found = nb_output_add(context, sizeof *found);
        if (found == NULL) return NB_ERR_MEMORY;
        *found = (finding){i, s->stars[i]};
    }
    return NB_OK;
}

// On the coordinator, once for each job, in their order.
static nb_result list(const nb_context *context, void *user, const nb_output_list *outputs) {
    sky *s = user;
    (void)context;
    for (const finding *f = nb_output_list_next(outputs, NULL, NULL); f != NULL;
         f = nb_output_list_next(outputs, f, NULL)) {
        ++s->found_count;
        s->check = s->check * 31 + f->star;
    }
    return NB_OK;
}

// Finds the same with any number of workers.
static uint64_t run_with(uint32_t worker_count, sky *s) {
    // A frame does not wait for ever: jobs that are late by this much are left out of it. Here none is to be.
    nb_engine_desc desc = {
        .scheduler_desc = {.worker_count = worker_count}, .is_headless = true, .fence_timeout_ns = 60000000000};
    nb_engine *engine = NULL;
    if (nb_engine_create(&desc, &engine) != NB_OK) return 0;
    s->found_count = s->check = 0;
    nb_module_desc module = {.name = "sky", .parallel = look, .merge = list, .job_count = JOB_COUNT, .user = s};
    nb_engine_module_attach(engine, &module, NULL);
    nb_engine_run_ticks(engine, 3);
    nb_engine_destroy(engine);
    return s->check;
}

int main(void) {
    static sky s;
    for (uint32_t i = 0, state = 1; i < STAR_COUNT; ++i) s.stars[i] = (state = state * 1664525u + 1013904223u) >> 8;
    uint64_t alone = run_with(NB_WORKER_COUNT_NONE, &s);
    uint64_t together = run_with(3, &s);
    printf("%llu ships in three frames; %016llx alone, %016llx with three workers\n", (unsigned long long)s.found_count,
           (unsigned long long)alone, (unsigned long long)together);
    return alone == together && alone != 0 ? 0 : 1;
}
