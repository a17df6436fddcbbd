// SPDX-License-Identifier: MIT
// A simulation of a recording.

#include "verify_run.h"

#include "nebula/rollback.h"

// Progress is told a hundred times, but not for less than a tick or more than this: seconds of a slow game.
#define SLICE_COUNT 100u
#define SLICE_TICKS_MAX 256u

// No job is late, however slow the machine is.
#define FENCE_NS UINT64_C(600000000000)

// --- ticks ---

static void fail(nbi_run *run, nb_result result) {
    if (run->result == NB_OK) run->result = result;
    nb_engine_stop(run->engine);
}

nb_result nbi_run_save(nbi_run *run, nbi_saved *saved) {
    nb_states *states = nb_engine_states(run->engine);
    nb_result result = nb_states_save(states, saved->bytes, saved->capacity_bytes, &saved->size_bytes);
    if (result != NB_FULL) return result;
    // Half as much again: a state that grows by a row a tick is not to need the heap each time.
    size_t capacity_bytes = saved->size_bytes + saved->size_bytes / 2;
    unsigned char *bytes = nb_hooks_alloc(&run->desc.hooks, capacity_bytes, NB_CACHE_LINE, "nb_replay_verify");
    if (bytes == NULL) return NB_ERR_MEMORY;
    nb_hooks_free(&run->desc.hooks, saved->bytes, saved->capacity_bytes);
    saved->bytes = bytes, saved->capacity_bytes = capacity_bytes;
    return nb_states_save(states, saved->bytes, saved->capacity_bytes, &saved->size_bytes);
}

static void begin(void *user, nb_tick_view *view) {
    nbi_run *run = user;
    nb_clock_manual_set(&run->clock, view->tick->start_ns);
    nb_result result = nbi_replay_feed(run->replay, view);
    if (result != NB_OK) fail(run, result);
}

static void compare(nbi_run *run, const nb_tick_view *view) {
    const nb_record_tick *recorded = &run->replay->fed;
    if (recorded->hash == 0 || view->hash == 0) return;
    ++run->compared_count;
    bool is_same = recorded->hash == view->hash;
    if (is_same && !run->has_diverged) run->same_tick = view->tick->index + 1;
    if (is_same || run->has_diverged) return;
    run->has_diverged = true;
    run->diverged_tick = view->tick->index;
    run->location = nbi_hashes_compare(nb_engine_states(run->engine), run->world, NULL, recorded);
    if (!run->stops) return;
    run->keep_tick = run->diverged_tick;
    nb_engine_stop(run->engine);
}

static void end(void *user, const nb_tick_view *view) {
    nbi_run *run = user;
    if (!run->replay->is_fed) return;
    ++run->tick_count;
    run->hash = view->hash;
    compare(run, view);
    nb_result result = view->tick->index == run->keep_tick ? nbi_run_save(run, &run->kept) : NB_OK;
    if (result != NB_OK) fail(run, result);
    if (run->is_probing) nbi_probes_note(run);
}

// --- the engine ---

static nb_engine_desc engine_desc(nbi_run *run, const nb_engine_desc *given) {
    nb_engine_desc desc = *given;
    desc.loop.clock = nb_clock_manual_get(&run->clock);
    desc.scheduler = NULL;
    desc.scheduler_desc.worker_count = run->desc.worker_count;
    desc.fence_timeout_ns = FENCE_NS;
    desc.hashes_ticks = true;
    desc.adapts_budget = false;
    desc.hooks = run->desc.hooks;
    return desc;
}

static nb_result make_engine(nbi_run *run) {
    const nb_record_head *head = &run->replay->info.head;
    nb_engine_desc desc = {.loop = {.tick_rate = head->tick_rate}, .seed = head->seed};
    nb_result result = run->game->begin != NULL ? run->game->begin(head, &desc, &run->user) : NB_OK;
    if (result != NB_OK) return result;
    run->has_begun = true;
    nb_clock_manual_init(&run->clock, 0);
    desc = engine_desc(run, &desc);
    result = nb_engine_create(&desc, &run->engine);
    if (result == NB_OK) result = run->game->attach(run->user, run->engine);
    return result;
}

// NB_EMPTY: there is none.
static nb_result make_state(nbi_run *run, uint64_t tick) {
    uint64_t key_tick = 0, first = run->replay->info.first_tick;
    nb_result result = nb_replay_key_find(run->replay, tick, &key_tick, NULL);
    bool is_beginning = first == 0 && (result == NB_EMPTY || key_tick == 0);
    if (is_beginning) return NB_OK;
    if (result == NB_OK) result = nbi_replay_restore(run->replay, run->engine, key_tick, &key_tick);
    run->from_tick = run->same_tick = key_tick;
    return result;
}

static nb_result start(nbi_run *run, uint64_t tick, nb_verdict *why) {
    nb_result result = make_engine(run);
    if (result != NB_OK) return result;
    nb_states *states = nb_engine_states(run->engine);
    uint64_t recorded = run->replay->info.head.layout_hash;
    *why = NB_VERDICT_OTHER_LAYOUT;
    if (recorded != 0 && recorded != nb_states_layout_hash(states)) return NB_EMPTY;
    run->world = nbi_hashes_world(run->engine);
    if (run->is_idle) return NB_OK;
    *why = NB_VERDICT_NO_START;
    result = make_state(run, tick);
    if (result != NB_OK) return result;
    run->hash = nb_states_hash(states);
    nb_tick_watch watch = {.begin = begin, .end = end, .user = run};
    result = nb_engine_watch_add(run->engine, &watch);
    if (result != NB_OK || !run->is_probing) return result;
    nbi_probes_note(run);
    return run->result == NB_OK ? nbi_probes_attach(run) : run->result;
}

nb_result nbi_run_open(const nbi_run *made, uint64_t tick, nbi_run **out, nb_verdict *why) {
    nbi_run *run = nb_hooks_alloc(&made->desc.hooks, sizeof *run, NB_CACHE_LINE, "nb_replay_verify");
    if (run == NULL) return NB_ERR_MEMORY;
    *run = *made;
    nb_result result = start(run, tick, why);
    if (result == NB_OK) {
        *out = run;
        return NB_OK;
    }
    nb_result ended = nbi_run_end(run);
    if (ended != NB_OK) return ended;
    nbi_run_free(run);
    return result;
}

nb_result nbi_run_to(nbi_run *run, uint64_t tick) {
    nb_loop *loop = nb_engine_loop(run->engine);
    uint64_t first = nb_loop_tick_count(loop), slice = (tick - first) / SLICE_COUNT + 1;
    if (slice > SLICE_TICKS_MAX) slice = SLICE_TICKS_MAX;
    for (uint64_t next = first; next < tick;) {
        nb_result result = nb_engine_run_ticks(run->engine, tick - next < slice ? tick - next : slice);
        if (result == NB_OK) result = run->result;
        if (result != NB_OK) return result;
        if (nb_loop_tick_count(loop) <= next) return NB_CANCELLED; // the game has stopped it, or gone back
        next = nb_loop_tick_count(loop);
        if (run->desc.progress != NULL) run->desc.progress(run->desc.user, next - first, tick - first);
        if (run->stops && run->has_diverged) return NB_OK;
    }
    return NB_OK;
}

nb_result nbi_run_end(nbi_run *run) {
    nb_result result = nb_engine_destroy(run->engine);
    if (result != NB_OK) return result;
    run->engine = NULL;
    if (run->has_begun && run->game->end != NULL) run->game->end(run->user);
    run->has_begun = false;
    return NB_OK;
}

void nbi_run_free(nbi_run *run) {
    nb_hooks hooks = run->desc.hooks;
    nb_hooks_free(&hooks, run->kept.bytes, run->kept.capacity_bytes);
    nb_hooks_free(&hooks, run->before.bytes, run->before.capacity_bytes);
    nb_hooks_free(&hooks, run, sizeof *run);
}
