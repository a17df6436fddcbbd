// SPDX-License-Identifier: MIT
// The ring of frame records and its summary.

#include "frame_stats.h"

#include <string.h>

#include "base.h"

// Frames before the first one may count as a hitch: the mean of fewer says little.
#define HITCH_WARMUP_COUNT 16

nb_result nb_frame_stats_init(nb_frame_stats *stats) {
    if (stats == NULL) return NBI_FAIL_NULL("stats");
    memset(stats, 0, sizeof *stats);
    return NB_OK;
}

static bool is_hitch(const nb_frame_stats *stats, uint64_t frame_ns) {
    uint32_t held = nbi_frame_stats_held(stats);
    if (held < HITCH_WARMUP_COUNT) return false;
    return frame_ns / NB_FRAME_HITCH_FACTOR > stats->window_ns / held;
}

nb_result nb_frame_stats_add(nb_frame_stats *stats, const nb_frame_record *record) {
    if (stats == NULL) return NBI_FAIL_NULL("stats");
    if (record == NULL) return NBI_FAIL_NULL("record");
    if (is_hitch(stats, record->frame_ns)) ++stats->hitch_count;
    nb_frame_record *slot = &stats->records[stats->total_count % NB_FRAME_STATS_COUNT_MAX];
    stats->window_ns -= slot->frame_ns; // zero while the ring fills
    *slot = *record;
    // A sum that wrapped would make every later mean nonsense: one frame may weigh at most its share of 64 bits.
    slot->frame_ns = nbi_min_u64(slot->frame_ns, UINT64_MAX / NB_FRAME_STATS_COUNT_MAX);
    stats->window_ns += slot->frame_ns;
    ++stats->total_count;
    return NB_OK;
}

static void sift_down(uint64_t *heap, uint32_t count, uint32_t root) {
    for (uint32_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && heap[child + 1] > heap[child]) ++child;
        if (heap[root] >= heap[child]) return;
        uint64_t larger = heap[child];
        heap[child] = heap[root];
        heap[root] = larger;
        root = child;
    }
}

// Heap sort: in place, no recursion, no heap memory (libc's qsort may allocate), the same cost for any order.
static void sort(uint64_t *values, uint32_t count) {
    for (uint32_t i = count / 2; i-- > 0;) sift_down(values, count, i);
    for (uint32_t end = count; end > 1; --end) {
        uint64_t largest = values[0];
        values[0] = values[end - 1];
        values[end - 1] = largest;
        sift_down(values, end - 1, 0);
    }
}

void nbi_frame_stats_sorted(const nb_frame_stats *stats, uint32_t count, uint64_t *out_ns) {
    for (uint32_t i = 0; i < count; ++i) out_ns[i] = nbi_frame_stats_newest(stats, i)->frame_ns;
    sort(out_ns, count);
}

// Nearest rank: the ceil(p * count)-th smallest, p in thousandths.
static uint64_t percentile(const uint64_t *sorted, uint32_t count, uint32_t per_mille) {
    uint32_t rank = (count * per_mille + 999) / 1000;
    return sorted[rank == 0 ? 0 : rank - 1];
}

static double per_second(uint64_t count, uint64_t time_ns) {
    return time_ns == 0 ? 0.0 : (double)count * 1e9 / (double)time_ns;
}

// Everything that needs the frames in order of length.
static void summarise_order(nb_frame_summary *out, const uint64_t *sorted) {
    uint32_t count = out->frame_count;
    out->min_ns = sorted[0];
    out->max_ns = sorted[count - 1];
    out->p50_ns = percentile(sorted, count, 500);
    out->p95_ns = percentile(sorted, count, 950);
    out->p99_ns = percentile(sorted, count, 990);
    out->p999_ns = percentile(sorted, count, 999);
    uint32_t slow_count = (count + 99) / 100;
    uint64_t slow_ns = 0;
    for (uint32_t i = count - slow_count; i < count; ++i) slow_ns += sorted[i];
    out->low_1_percent_fps = per_second(slow_count, slow_ns);
}

nb_result nb_frame_stats_summarise(const nb_frame_stats *stats, uint32_t frame_count, nb_frame_summary *out) {
    if (stats == NULL) return NBI_FAIL_NULL("stats");
    if (out == NULL) return NBI_FAIL_NULL("out");
    uint32_t held = nbi_frame_stats_held(stats);
    if (held == 0) return NB_EMPTY;
    uint32_t count = frame_count == 0 || frame_count > held ? held : frame_count;
    const nb_frame_record *newest = nbi_frame_stats_newest(stats, 0);
    *out = (nb_frame_summary){.frame_count = count,
                              .frame_ns = newest->frame_ns,
                              .tick_count = newest->tick_count,
                              .alpha = newest->alpha,
                              .hitch_count = stats->hitch_count};
    uint64_t time_ns = 0, tick_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const nb_frame_record *record = nbi_frame_stats_newest(stats, i);
        time_ns += record->frame_ns;
        tick_count += record->tick_count;
    }
    out->mean_ns = time_ns / count;
    out->fps = per_second(count, time_ns);
    out->ups = per_second(tick_count, time_ns);
    uint64_t sorted[NB_FRAME_STATS_COUNT_MAX];
    nbi_frame_stats_sorted(stats, count, sorted);
    summarise_order(out, sorted);
    return NB_OK;
}
