// SPDX-License-Identifier: MIT
// How the demo runs at this moment.

#include "status.h"

// Threads' numbers are read at different moments: a share is kept to what a share can be.
static void read_load(status *s, const nb_scheduler *scheduler) {
    uint64_t busy_ns = 0, total_ns = 0;
    uint32_t thread_count = nb_scheduler_stats_get(scheduler).thread_count;
    s->queued_count = 0;
    for (uint32_t i = 0; i < thread_count; ++i) {
        nb_thread_stats stats = nb_scheduler_thread_stats_get(scheduler, i);
        busy_ns += stats.busy_ns;
        total_ns += stats.busy_ns + stats.idle_ns;
        s->queued_count += stats.queued_count;
    }
    if (s->frame_count++ % STATUS_FRAMES != 0) return;
    uint64_t more_busy = busy_ns > s->busy_ns ? busy_ns - s->busy_ns : 0;
    uint64_t more = total_ns > s->total_ns ? total_ns - s->total_ns : 0;
    double share = more != 0 ? (double)more_busy / (double)more : 0;
    s->busy_share = share < 1 ? share : 1;
    s->busy_ns = busy_ns;
    s->total_ns = total_ns;
}

void status_read(status *s, nb_engine *engine, const nb_frame_stats *frames, const checksum *sums) {
    nb_frame_summary newest;
    if (nb_frame_stats_summarise(frames, STATUS_FRAMES, &newest) == NB_OK) {
        s->fps = newest.fps;
        s->ups = newest.ups;
        s->alpha = newest.alpha;
    }
    s->checksum = sums->value;
    read_load(s, nb_engine_scheduler(engine));
}
