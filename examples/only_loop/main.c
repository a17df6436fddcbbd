// SPDX-License-Identifier: MIT
// The loop alone: no heap, no threads, the host owns the frames. A ball falls for two seconds at 100 ticks a second; it
// lands on the same height to the last bit whether frames come 30, 60 or 144 times a second, because only ticks move
// it.

#include "nebula/loop.h"

#include <stdio.h>

typedef struct ball {
    double height, height_before, speed;
} ball;

static void fall(ball *b, const nb_loop_tick *tick) {
    b->height_before = b->height;
    b->speed -= 9.81 * tick->dt_s;
    b->height += b->speed * tick->dt_s;
    if (b->height < 0.0) {
        b->height = -b->height;
        b->speed = -b->speed * 0.8;
    }
}

// Two seconds in frames of a given rate; returns the final height.
static double play(uint64_t frame_rate) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = {100, 1}};
    if (nb_loop_init(&loop, &desc) != NB_OK) return -1.0;
    ball b = {.height = 10.0, .height_before = 10.0};
    double shown = b.height;
    for (uint64_t frame = 1; frame <= 2 * frame_rate; ++frame) {
        uint64_t delta_ns = frame * 1000000000u / frame_rate - (frame - 1) * 1000000000u / frame_rate;
        nb_loop_begin_delta(&loop, delta_ns);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) fall(&b, &tick);
        shown = b.height_before + (b.height - b.height_before) * nb_loop_alpha(&loop);
        nb_loop_end(&loop);
    }
    printf("%3llu frames a second: %llu frames, %llu ticks, height %.17g, drawn at %.4f\n",
           (unsigned long long)frame_rate, (unsigned long long)nb_loop_frame_count(&loop),
           (unsigned long long)nb_loop_tick_count(&loop), b.height, shown);
    return b.height;
}

// Twenty frames on the machine's own clock, 100 a second: pacing sleeps between them.
static int play_paced(void) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = {100, 1}};
    if (nb_loop_init(&loop, &desc) != NB_OK) return 1;
    for (int frame = 0; frame < 20; ++frame) {
        nb_loop_pace(&loop);
        nb_loop_begin(&loop);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) continue;
        nb_loop_end(&loop);
    }
    nb_loop_report report = nb_loop_report_get(&loop);
    printf("paced: %llu ticks in %.0f ms, %.1f ms of it asleep\n", (unsigned long long)report.tick_count,
           (double)report.elapsed_ns / 1e6, (double)report.pace_sleep_ns / 1e6);
    return 0;
}

int main(void) {
    double height = play(60);
    if (play(30) != height || play(144) != height) return 1;
    return play_paced();
}
