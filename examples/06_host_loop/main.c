// SPDX-License-Identifier: MIT
// A host that owns the loop: a window system calls back once a picture, and says how long the last one took. Whatever
// the rate, the same ticks run.

#include "nebula/engine.h"

#include <stdio.h>

static nb_result tick(const nb_context *context, void *user) {
    uint64_t *state = user;
    *state = *state * 6364136223846793005u + context->tick->index;
    return NB_OK;
}

// One second of pictures at a rate, as a display would give them.
static uint64_t play(uint64_t pictures_a_second) {
    nb_engine *engine = NULL;
    uint64_t state = 1;
    if (nb_engine_create(NULL, &engine) != NB_OK) return 0;
    nb_module_desc module = {.name = "game", .tick = tick, .user = &state};
    nb_engine_module_attach(engine, &module, NULL);
    uint64_t now_ns = 0;
    for (uint64_t i = 1; i <= pictures_a_second; ++i) {
        uint64_t next_ns = i * 1000000000 / pictures_a_second;
        nb_engine_frame_delta(engine, next_ns - now_ns);
        now_ns = next_ns;
    }
    printf("%3llu pictures a second: %llu ticks, state %016llx\n", (unsigned long long)pictures_a_second,
           (unsigned long long)nb_engine_stats_get(engine).tick_count, (unsigned long long)state);
    nb_engine_destroy(engine);
    return state;
}

int main(void) {
    uint64_t slow = play(24), usual = play(60), quick = play(144);
    return slow == usual && usual == quick ? 0 : 1;
}
