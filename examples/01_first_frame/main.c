// SPDX-License-Identifier: MIT
// The first program: a ball that falls and bounces, simulated at 60 ticks a second, drawn as often as there are frames.

#include "nebula/engine.h"

#include <stdio.h>

typedef struct ball {
    double height_m, speed_m_s;
    double before_m; // height one tick ago: a picture lies between two ticks
    uint64_t picture_count;
} ball;

static nb_result fall(const nb_context *context, void *user) {
    ball *b = user;
    double dt_s = context->tick->dt_s;
    b->before_m = b->height_m;
    b->speed_m_s -= 9.81 * dt_s;
    b->height_m += b->speed_m_s * dt_s;
    if (b->height_m < 0 && b->speed_m_s < 0) b->height_m = -b->height_m, b->speed_m_s *= -0.8;
    return context->tick->index == 119 ? nb_engine_stop(context->engine) : NB_OK; // two seconds
}

static nb_result draw(const nb_context *context, void *user) {
    ball *b = user;
    double height_m = b->before_m + (b->height_m - b->before_m) * context->time->alpha;
    if (b->picture_count++ % 20 == 0)
        printf("frame %3llu: %5.2f m\n", (unsigned long long)context->frame_index, height_m);
    return NB_OK;
}

int main(void) {
    nb_engine *engine = NULL;
    if (nb_engine_create(NULL, &engine) != NB_OK) return 1;
    ball b = {.height_m = 2, .before_m = 2};
    nb_module_desc module = {.name = "ball", .tick = fall, .frame = draw, .user = &b};
    nb_result result = nb_engine_module_attach(engine, &module, NULL);
    if (result == NB_OK) result = nb_engine_run(engine);
    nb_engine_stats stats = nb_engine_stats_get(engine);
    printf("%llu ticks, %llu pictures, the ball is at %.6f m\n", (unsigned long long)stats.tick_count,
           (unsigned long long)b.picture_count, b.height_m);
    nb_engine_destroy(engine);
    return result == NB_OK && stats.tick_count == 120 ? 0 : 1;
}
