// SPDX-License-Identifier: MIT
// From readings of a clock, or deltas of a host, to the time that passes in a frame. Clocks are not trusted: they step
// back and forth, stand still, answer nonsense. Time is measured from the largest reading so far, so that no time
// passes twice, and a clock that stays behind is followed after a few frames, so that time never stops for good.

#include "loop.h"

static void log_behind(nb_loop *loop, uint64_t behind_ns, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_BACKWARDS, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLOCK_BACKWARDS, function,
            "the clock is %.3f ms behind its largest reading: no time passes in this frame (%llu reports held back)",
            (double)behind_ns / 1e6, nb_llu(suppressed));
}

static void log_no_answer(nb_loop *loop, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_BACKWARDS, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLOCK_BACKWARDS, function,
            "the clock answered UINT64_MAX: no time passes in this frame (%llu reports held back)", nb_llu(suppressed));
}

static void log_adopted(nb_loop *loop, uint64_t behind_ns, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_ADOPTED, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLOCK_BACKWARDS, function,
            "the clock was %.3f ms behind its largest reading for %u frames: time goes on from its new place (%llu "
            "reports held back)",
            (double)behind_ns / 1e6, NB_LOOP_BEHIND_COUNT_MAX, nb_llu(suppressed));
}

static void log_still(nb_loop *loop, const char *function) {
    uint64_t suppressed;
    if (!nbi_loop_may_log(loop, NBI_QUIET_STILL, &suppressed)) return;
    nbi_log(&loop->hooks, NB_LOG_WARNING, NB_ITEM_LOOP_CLOCK_BACKWARDS, function,
            "the clock has stood still for %u frames: no tick runs until it moves (%llu reports held back)",
            NB_LOOP_STILL_COUNT_MAX, nb_llu(suppressed));
}

// Input that waits for clock time which is not reached again for long is due in the next tick. The slices after it go
// on from the new time, or every event until the old one would be late. A sum of deltas has no place of its own: its
// time goes on.
static void adopt(nb_loop *loop) {
    ++loop->adopt_count;
    loop->behind_count = 0;
    if (loop->source == NBI_SOURCE_DELTA) {
        loop->reading_ns = loop->now_ns;
        return;
    }
    loop->is_slice_open = true;
    loop->slice_end_ns = 0;
    loop->now_ns = loop->reading_ns;
}

// Differences are modulo 2^64: readings may wrap, and a step back shows as more than half of the range.
static uint64_t advance(nb_loop *loop, uint64_t reading_ns, const char *function) {
    uint64_t ahead_ns = reading_ns - loop->now_ns;
    bool is_still = loop->source == NBI_SOURCE_CLOCK && reading_ns == loop->reading_ns;
    loop->still_total += is_still;
    loop->still_count = is_still ? loop->still_count + 1 : 0;
    if (loop->still_count == NB_LOOP_STILL_COUNT_MAX) log_still(loop, function);
    loop->reading_ns = reading_ns;
    if (ahead_ns <= INT64_MAX) {
        loop->now_ns = reading_ns;
        loop->behind_count = 0;
        return ahead_ns;
    }
    ++loop->backwards_count;
    if (++loop->behind_count < NB_LOOP_BEHIND_COUNT_MAX) {
        log_behind(loop, 0 - ahead_ns, function);
    } else {
        log_adopted(loop, 0 - ahead_ns, function);
        adopt(loop);
    }
    return 0;
}

// A new source of time starts with zero: what passed before it is not known.
static void change_source(nb_loop *loop, uint8_t source, uint64_t now_ns) {
    loop->source = source;
    loop->slice_end_ns = 0;
    loop->behind_count = loop->still_count = 0;
    loop->now_ns = loop->reading_ns = now_ns;
}

uint64_t nbi_loop_read(nb_loop *loop, uint64_t reading_ns, const char *function) {
    if (reading_ns == NBI_NO_READING) {
        ++loop->backwards_count;
        log_no_answer(loop, function);
        return 0;
    }
    if (loop->source != NBI_SOURCE_CLOCK) change_source(loop, NBI_SOURCE_CLOCK, reading_ns);
    return advance(loop, reading_ns, function);
}

uint64_t nbi_loop_read_delta(nb_loop *loop, uint64_t delta_ns, const char *function) {
    if (loop->source != NBI_SOURCE_DELTA) change_source(loop, NBI_SOURCE_DELTA, 0);
    return advance(loop, loop->reading_ns + delta_ns, function);
}
