// SPDX-License-Identifier: MIT
// What must hold, whatever goes wrong: after each frame in both modes, and of the whole when the faults have stopped.

#include "simulation.h"

#include "frame/engine/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// More than ten times what the longest frames of ten thousand seeds took: beyond it something does not end.
#define FRAME_STEP_MAX 200000u

void say(const peer *p, const char *format, ...) {
    if (!p->sim->is_told) return;
    va_list arguments;
    va_start(arguments, format);
    printf("    round %llu, peer %u: ", (unsigned long long)p->sim->round, p->index);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

// --- the reference ---

bool is_right(const peer *p, uint64_t tick_count) {
    return p->index == REFERENCE || (tick_count <= p->received && tick_count <= p->right_until);
}

// Runs the ticks whose input is known of both.
void oracle_truth_advance(sim *s) {
    peer *reference = &s->peers[REFERENCE];
    uint64_t known = s->peers[0].run_count < s->peers[1].run_count ? s->peers[0].run_count : s->peers[1].run_count;
    if (known > s->truth_count) EXPLORE_CHECK(nb_engine_run_ticks(reference->engine, known - s->truth_count) == NB_OK);
    EXPLORE_CHECK(s->truth_count == known);
}

// At the start of a tick: the state is that after so many. Looked at again when the frame is over.
void oracle_glimpse(peer *p, uint64_t tick_count) {
    if (p->index == REFERENCE || !is_right(p, tick_count)) return;
    EXPLORE_CHECK(p->glimpse_count < sizeof p->glimpses / sizeof p->glimpses[0]);
    p->glimpses[p->glimpse_count++] = (glimpse){tick_count, game_raw_hash(&p->game)};
}

static void compare(const peer *p, uint64_t tick_count, uint64_t raw_hash, const char *when) {
    ++p->sim->checks;
    if (raw_hash == p->sim->truth_raw[tick_count]) return;
    char text[200];
    snprintf(text, sizeof text,
             "%s, peer %u differs from the reference after %llu ticks (heard of %llu, sure from %llu, again %llu)",
             when, p->index, (unsigned long long)tick_count, (unsigned long long)p->received,
             (unsigned long long)p->right_from,
             (unsigned long long)(nb_engine_rollback_stats(p->engine).tick_count - p->rolled_before.tick_count));
    explore_fail(__FILE__, __LINE__, text);
}

static void check_glimpses(peer *p) {
    for (uint32_t i = 0; i < p->glimpse_count; ++i) {
        const glimpse *g = &p->glimpses[i];
        if (g->tick_count <= p->sim->truth_count) compare(p, g->tick_count, g->raw_hash, "in a tick");
    }
    p->glimpse_count = 0;
}

static void check_state(peer *p) {
    const sim *s = p->sim;
    uint64_t now = nb_loop_tick_count(nb_engine_loop(p->engine));
    if (!is_right(p, now) || now > s->truth_count) return;
    compare(p, now, game_raw_hash(&p->game), "after a frame");
    EXPLORE_CHECK(nb_states_hash(nb_engine_states(p->engine)) == s->truth_hash[now]);
}

// --- the log ---

#define F(kind) (UINT64_C(1) << FAULT_##kind)

typedef struct allowed {
    nb_log_item item;
    uint64_t faults; // one of them explains it
} allowed;

static const allowed log_allowed[] = {
    {NB_ITEM_BASE_MEMORY, F(HEAP)},
    {NB_ITEM_BASE_OS, F(THREAD)},
    {NB_ITEM_LOOP_CLAMPED, F(CLOCK_JUMP) | F(SLOW_TICK) | F(PAUSE)},
    {NB_ITEM_LOOP_DISCONTINUITY, F(CLOCK_JUMP)},
    {NB_ITEM_LOOP_CLOCK_BACKWARDS, F(CLOCK_BACK)},
    {NB_ITEM_LOOP_OVERRUN, F(SLOW_TICK)},
    {NB_ITEM_INPUT_FULL, F(INPUT_FLOOD)},
    {NB_ITEM_ARENA_FULL, F(OUTPUT)},
    {NB_ITEM_TASK_OS, F(THREAD)},
    {NB_ITEM_FENCE_TIMEOUT, F(LATE_JOB) | F(ERRAND_HANG)},
    {NB_ITEM_FENCE_FULL, F(LATE_JOB) | F(ERRAND_HANG) | F(TASK_FLOOD)},
    {NB_ITEM_FENCE_QUARANTINED, F(LATE_JOB) | F(ERRAND_HANG)},
    {NB_ITEM_ENGINE_FAILURE, UINT64_MAX}, // ticks fail in every run
    {NB_ITEM_ENGINE_DISABLED, UINT64_MAX},
    {NB_ITEM_ENGINE_VIOLATION, F(VIOLATION)},
    // A peer that waits for the other for long has no tick to give its commands to.
    {NB_ITEM_ENGINE_FULL, F(COMMAND_FLOOD) | F(PARTITION) | F(LOSS) | F(DELAY) | F(PAUSE) | F(CLOCK_STALL)},
    {NB_ITEM_ENGINE_LEFTOVER, F(LATE_JOB)},
    {NB_ITEM_STATE_SAVE, F(CORRUPT)},
    {NB_ITEM_STORE_LAYOUT, F(CORRUPT)},
    {NB_ITEM_STORE_CORRUPT, F(CORRUPT)},
    {NB_ITEM_STORE_DENIED, F(VIOLATION)},
    {NB_ITEM_STORE_FULL, UINT64_MAX}, // the tables are small
    {NB_ITEM_SNAPSHOT_SKIPPED, F(READER) | F(LATE_JOB)},
    {NB_ITEM_SNAPSHOT_BUSY, UINT64_MAX}, // at the end of the engine, on purpose
    {NB_ITEM_ASYNC_STUCK, F(ERRAND_HANG)},
    {NB_ITEM_ASYNC_OS, F(THREAD)},
    {NB_ITEM_BUDGET_LEVEL, UINT64_MAX},
    {NB_ITEM_TIMELINE_UNREACHED, UINT64_MAX}, // the end comes before the last objects' frames
    {NB_ITEM_HISTORY_RESTARTED, F(HEAP)},
    {NB_ITEM_HISTORY_FULL, UINT64_MAX},
};

void oracle_log(peer *p, const nb_log_record *record) {
    uint64_t faults = 0;
    if (record->level < NB_LOG_WARNING) return;
    say(p, "log: %s: %s: %s", record->name, record->function, record->message);
    for (uint32_t i = 0; i < FAULT_COUNT; ++i) faults |= p->sim->config.chances[i] != 0 ? UINT64_C(1) << i : 0;
    for (uint32_t i = 0; i < sizeof log_allowed / sizeof log_allowed[0]; ++i) {
        if (log_allowed[i].item != record->item) continue;
        bool is_free = log_allowed[i].faults == UINT64_MAX;
        if (!is_free) ++p->log_count;
        if (is_free || (log_allowed[i].faults & faults) != 0) return;
    }
    char text[200];
    snprintf(text, sizeof text, "nothing explains the log item %s: %s: %s", record->name, record->function,
             record->message);
    explore_fail(__FILE__, __LINE__, text);
}

// --- around a frame ---

void oracle_before(peer *p) {
    p->before = nb_engine_stats_get(p->engine);
    p->backwards_before = nb_loop_report_get(nb_engine_loop(p->engine)).clock_backwards_count;
    p->rolled_before = nb_engine_rollback_stats(p->engine);
    p->failures_certain = p->failures_possible = 0;
    p->heap_calls_in_frame = (uint32_t)p->heap_calls;
    p->logs_in_frame = (uint32_t)p->log_count;
    p->steps_max = explore_step_count();
    p->frame_start_ns = nbi_clock_now_ns();
}

// Nobody sleeps in these seeds: who waits until a time-out has missed a wake-up.
static void check_time(const peer *p) {
    const uint32_t *chances = p->sim->config.chances;
    bool has_sleepers = chances[FAULT_LATE_JOB] != 0 || chances[FAULT_ERRAND_HANG] != 0;
    uint64_t frame_ns = nbi_clock_now_ns() - p->frame_start_ns;
    if (!has_sleepers) EXPLORE_CHECK(frame_ns < FENCE_TIMEOUT_NS);
}

static void check_numbers(peer *p) {
    nb_engine_stats stats = nb_engine_stats_get(p->engine);
    uint64_t failed = stats.failure_count - p->before.failure_count;
    EXPLORE_CHECK(stats.violation_count == p->violation_count);
    EXPLORE_CHECK(failed >= p->failures_certain);
    // Those of late jobs may come in a later frame, or never.
    if (p->sim->config.chances[FAULT_LATE_JOB] == 0 && p->sim->config.chances[FAULT_ERRAND_HANG] == 0)
        EXPLORE_CHECK(failed <= p->failures_certain + p->failures_possible);
    // What fails in a tick that is simulated again is no failure of this frame.
    bool has_again = nb_engine_rollback_stats(p->engine).tick_count != p->rolled_before.tick_count;
    EXPLORE_CHECK(p->frame_result == NB_OK || failed != 0);
    EXPLORE_CHECK(p->frame_result != NB_OK || failed == 0 || has_again);
    peer_forget_folded(p);
    nb_input_stats input = nb_input_stats_get(p->input);
    uint64_t known_count = input.delivered_count + input.discarded_count + input.folded_count + input.waiting_count;
    EXPLORE_CHECK(input.sent_count == known_count);
    EXPLORE_CHECK(input.sent_count == p->event_serial && input.waiting_count == p->watched_count);
    EXPLORE_CHECK(p->bound_run_count <= p->bound_count && p->reclaimed_count <= p->retired_count);
    EXPLORE_CHECK(nb_scheduler_stats_get(nb_engine_scheduler(p->engine)).alive_count <= p->sim->config.task_count);
}

void oracle_after(peer *p) {
    nb_engine_stats stats = nb_engine_stats_get(p->engine);
    bool has_run = stats.frame_count == p->before.frame_count + 1;
    p->heap_calls_in_frame = (uint32_t)p->heap_calls - p->heap_calls_in_frame;
    p->logs_in_frame = (uint32_t)p->log_count - p->logs_in_frame;
    p->steps_max = explore_step_count() - p->steps_max;
    EXPLORE_CHECK(p->steps_max < FRAME_STEP_MAX);
    // Before its first frame an engine makes what it needs for all of them.
    EXPLORE_CHECK(has_run || (p->frame_result == NB_ERR_MEMORY && p->heap_faults != 0));
    if (!has_run) return;
    EXPLORE_CHECK(nb_store_is_valid(p->game.world) && nb_loop_is_valid(nb_engine_loop(p->engine)));
    check_time(p);
    check_numbers(p);
    errands_check(p);
    game_check_local(p);
    check_glimpses(p);
    check_state(p);
    trace(p->sim, stats.failure_count + stats.degraded_count * 1000 + stats.job_count * 1000000);
}

// --- when all should be well ---

// Events that wait for a tick become the tick's all at once, for example when a clock that was set back is followed.
bool oracle_has_backlog(const peer *p) { return p->watched_count + p->events.count > 8 || p->commands.count > 8; }

const char *oracle_unwell(const peer *p) {
    nb_engine_stats stats = nb_engine_stats_get(p->engine);
    nb_fence_stats fence = nb_fence_stats_get(p->engine->fence);
    nb_snapshots_stats snapshots = nb_snapshots_stats_get(p->snapshots);
    uint64_t now = nb_loop_tick_count(nb_engine_loop(p->engine));
    const peer *other = &p->sim->peers[1 - p->index];
    if (p->frame_result < 0 && p->failures_certain == 0) return "a frame fails";
    if (stats.degraded_count != p->before.degraded_count) return "a frame is degraded";
    if (stats.late_job_count != p->before.late_job_count) return "a job is late";
    if (fence.pending_slots != 0) return "tickets of the fence are out";
    if (p->running_jobs != 0) return "a job runs";
    if (p->bound_run_count != p->bound_count) return "a task of a frame has not run";
    if (nb_async_stats_get(p->async).live_count != 0) return "a job of many frames is alive";
    if (oracle_has_backlog(p)) return "input waits";
    if (snapshots.pin_count != 0) return "a snapshot is held";
    if (snapshots.version == 0) return "nothing was ever published";
    if (p->right_until != UINT64_MAX) return "the state is wrong";
    // The loop follows a clock that was set back after some frames; until then it runs no tick, and the other soon
    // waits.
    if (nb_loop_report_get(nb_engine_loop(p->engine)).clock_backwards_count != p->backwards_before)
        return "its clock is behind";
    if (p->is_paused) return "it waits for the other";
    if (now != p->run_count) return "it has not caught up with itself";
    if (p->received + 4 < other->run_count) return "it has not heard of the other";
    if (p->received + WINDOW / 2 < now) return "it is far ahead of what it has heard";
    if (!link_is_quick(p->sim)) return "letters are long under way";
    return NULL;
}
