// SPDX-License-Identifier: MIT
// An engine with the game, its clock and its input.

#include "simulation.h"

#include "platform/platform.h"

#include <string.h>

// --- what ticks get ---

// What was sent in a pause, or found the queue full while no tick came, is for frames only: it was received last.
void peer_forget_folded(peer *p) {
    uint64_t folded_count = nb_input_stats_get(p->input).folded_count;
    EXPLORE_CHECK(folded_count - p->folded_count <= p->watched_count);
    p->watched_count -= (uint32_t)(folded_count - p->folded_count);
    p->folded_count = folded_count;
}

// Every other event that was accepted comes once, in the first tick that ends behind its time. What comes beside them
// is what folded ones have changed.
static void check_events(peer *p, const nb_tick_view *view) {
    for (uint32_t i = 0; i < view->input.count; ++i) {
        const nb_input_event *event = &view->input.events[i];
        uint32_t at = 0;
        if (event->payload.i32[3] != EVENT_MARK) {
            EXPLORE_CHECK(event->kind == NB_INPUT_PRESS && p->folded_count != 0);
            continue;
        }
        while (at < p->watched_count && p->watched[at].payload.i32[2] != event->payload.i32[2]) ++at;
        EXPLORE_CHECK(at < p->watched_count);
        memmove(&p->watched[at], &p->watched[at + 1], (--p->watched_count - at) * sizeof p->watched[0]);
        if (!p->was_input_full) EXPLORE_CHECK(event->timestamp_ns < view->tick->input_until_ns);
        if (i != 0) EXPLORE_CHECK(view->input.events[i - 1].timestamp_ns <= event->timestamp_ns);
    }
    for (uint32_t i = 0; i < p->watched_count && !p->was_input_full; ++i)
        EXPLORE_CHECK(p->watched[i].timestamp_ns >= view->tick->input_until_ns);
}

// All commands that were accepted since the tick before, in their order.
static void check_commands(peer *p, const nb_tick_view *view) {
    EXPLORE_CHECK(view->commands.count == p->command_serial - p->command_first);
    for (uint32_t i = 0; i < view->commands.count; ++i)
        EXPLORE_CHECK(view->commands.events[i].payload.i32[2] == (int32_t)(p->command_first + i));
    p->command_first = p->command_serial;
}

static void backlog_add(backlog *b, nb_input_view view) {
    for (uint32_t i = 0; i < view.count && b->count < BACKLOG_MAX; ++i) b->events[b->count++] = view.events[i];
}

// When all is to be well, no more than the smallest history has room for.
static uint32_t backlog_take(backlog *b, nb_input_event *events, bool is_calm) {
    uint32_t count_max = is_calm ? PART_MAX / 2 : PART_MAX, count = b->count < count_max ? b->count : count_max;
    memcpy(events, b->events, count * sizeof *events);
    memmove(b->events, b->events + count, (b->count - count) * sizeof *events);
    b->count -= count;
    return count;
}

static void tick_begin(void *user, nb_tick_view *view) {
    peer *p = user;
    uint64_t tick = view->tick->index;
    EXPLORE_CHECK(tick < TICK_LIMIT && tick <= p->run_count);
    if (p->index != REFERENCE) {
        peer_forget_folded(p);
        check_events(p, view);
        check_commands(p, view);
        backlog_add(&p->events, view->input);
        backlog_add(&p->commands, view->commands);
        part *own = &p->own[tick];
        // One that was rewound gets what it got before: the other has been told.
        if (tick == p->run_count) own->event_count = backlog_take(&p->events, own->events, p->sim->is_calm);
        if (tick == p->run_count) own->command_count = backlog_take(&p->commands, own->commands, p->sim->is_calm);
    }
    compose(p, tick, &p->tick_input);
    const composed *c = &p->tick_input;
    view->input = (nb_input_view){c->event_count != 0 ? c->events : NULL, c->event_count};
    view->commands = (nb_input_view){c->command_count != 0 ? c->commands : NULL, c->command_count};
}

static void tick_end(void *user, const nb_tick_view *view) {
    peer *p = user;
    uint64_t tick_count = view->tick->index + 1;
    if (tick_count > p->run_count) p->run_count = tick_count;
    trace(p->sim, view->hash);
    if (p->index != REFERENCE) return;
    p->sim->truth_hash[tick_count] = view->hash;
    p->sim->truth_raw[tick_count] = game_raw_hash(&p->game);
    p->sim->truth_count = tick_count;
}

static void watcher_begin(void *user, nb_tick_view *view) {
    watcher *w = user;
    if (w->has_tick) EXPLORE_CHECK(view->tick->index == w->tick_next);
    EXPLORE_CHECK(view->hash == 0 && view->input.count <= PEER_COUNT * PART_MAX);
}

static void watcher_end(void *user, const nb_tick_view *view) {
    watcher *w = user;
    w->has_tick = true;
    w->tick_next = view->tick->index + 1;
    EXPLORE_CHECK(view->hash == nb_engine_stats_get(w->owner->engine).tick_hash);
}

static void turn_watcher(peer *p) {
    watcher *w = &p->watcher;
    nb_tick_watch watch = {.begin = watcher_begin, .end = watcher_end, .user = w};
    if (w->is_watching)
        EXPLORE_CHECK(nb_engine_watch_remove(p->engine, w) == NB_OK);
    else
        EXPLORE_CHECK(nb_engine_watch_add(p->engine, &watch) == NB_OK);
    *w = (watcher){.owner = p, .is_watching = !w->is_watching};
}

// --- opening ---

static nb_engine_desc peer_desc(peer *p) {
    const sim_config *c = &p->sim->config;
    bool is_reference = p->index == REFERENCE;
    nb_engine_desc desc = {
        .loop = {.tick_rate = {50, 1}, .tick_count_max = FRAME_TICK_MAX, .clock = nb_clock_manual_get(&p->clock)},
        .scheduler = is_reference ? NULL : p->sim->scheduler,
        .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE,
                           .task_count_max = c->task_count,
                           .group_count_max = 64,
                           .dependency_count_max = 64},
        .fence_timeout_ns = FENCE_TIMEOUT_NS,
        .module_count_max = 12,
        .output_bytes = 4096,
        .frame_bytes = 16384,
        .shutdown_ns = 100000000,
        .failure_count_max = c->disables ? 3 : 0,
        .command_count_max = c->command_count,
        .stage_bytes_max = 4096,
        .stage_count_max = 12,
        .hashes_ticks = true,
        .world = {.table_count_max = 8},
        .snapshots = {.region_count_max = 16},
        .input = {.event_count_max = c->input_count},
        .async = {.job_count_max = c->errand_count, .io_thread_count = 1},
        .adapts_budget = !is_reference && c->has_reader,
        .seed = 7,
        .hooks = peer_hooks(p)};
    if (is_reference) return desc;
    if (c->worker_count != 0) desc.scheduler_desc.worker_count = c->worker_count;
    desc.keeps_history = true;
    desc.rollback_count_max = ROLLBACK_MAX;
    desc.history = (nb_history_desc){.bytes_max = p->index == 0 ? 512 * 1024 : c->history_bytes,
                                     .tick_count_max = 2 * ROLLBACK_MAX,
                                     .event_count_max = PEER_COUNT * PART_MAX,
                                     .command_count_max = PEER_COUNT * PART_MAX};
    if (p->index == 1) desc.history.event_count_max = desc.history.command_count_max = c->history_events;
    return desc;
}

// NB_ERR_MEMORY and others: nothing of it is left.
static nb_result open_once(peer *p) {
    nb_engine_desc desc = peer_desc(p);
    nb_result result = nb_engine_create(&desc, &p->engine);
    if (result != NB_OK) return result;
    nb_tick_watch watch = {.begin = tick_begin, .end = tick_end, .user = p};
    result = game_declare(&p->game, p->engine);
    if (result == NB_OK) result = nb_engine_watch_add(p->engine, &watch);
    if (result == NB_OK) result = game_attach(p);
    if (result == NB_OK && p->index != REFERENCE) {
        p->snapshots = nb_engine_snapshots(p->engine);
        p->async = nb_engine_async(p->engine);
        p->input = nb_engine_input(p->engine);
        bool has_all = p->snapshots != NULL && p->async != NULL && p->input != NULL;
        result = has_all && nb_engine_timelines(p->engine) != NULL ? crowd_attach(p) : NB_ERR_MEMORY;
    }
    if (result == NB_OK) return NB_OK;
    EXPLORE_CHECK(nb_engine_destroy(p->engine) == NB_OK);
    p->engine = NULL;
    return result;
}

void peer_open(sim *s, uint32_t index) {
    peer *p = &s->peers[index];
    p->sim = s, p->index = index;
    p->right_until = p->corrected_from = UINT64_MAX;
    nb_clock_manual_init(&p->clock, 1000000000);
    size_t live_count = explore_heap_live_count();
    nb_result result = NB_ERR_MEMORY;
    for (uint32_t i = 0; result != NB_OK; ++i) {
        p->is_heap_armed = index != REFERENCE && i < 4;
        explore_refuse_threads(p->is_heap_armed && fault_happens(s, FAULT_THREAD));
        result = open_once(p);
        explore_refuse_threads(false);
        EXPLORE_CHECK(result == NB_OK || p->is_heap_armed);
        if (result != NB_OK) EXPLORE_CHECK(explore_heap_live_count() == live_count);
    }
    p->is_heap_armed = false;
    if (index == REFERENCE) s->truth_hash[0] = nb_states_hash(nb_engine_states(p->engine));
    if (index == REFERENCE) s->truth_raw[0] = game_raw_hash(&p->game);
}

// --- input and commands ---

void peer_send_input(peer *p) {
    if (p->sim->is_steady) return; // what is sent makes states grow
    bool is_flood = fault_happens(p->sim, FAULT_INPUT_FLOOD);
    uint64_t count = is_flood ? 20 : sim_random(3), now_ns = nbi_atomic_load_relaxed_u64(&p->clock.now_ns);
    if (p->sim->is_calm) count = count > 1 ? 1 : count;
    for (uint64_t i = 0; i < count && p->watched_count < WATCHED_MAX; ++i) {
        nb_input_event event = {.kind = NB_INPUT_PRESS, .code = (uint32_t)explore_random()};
        event.timestamp_ns = now_ns + sim_random(50) * 1000000 - 25000000;
        event.payload.i32[0] = (int32_t)sim_random(1000) - 500;
        event.payload.i32[1] = (int32_t)sim_random(1000);
        event.payload.i32[2] = (int32_t)p->event_serial;
        event.payload.i32[3] = EVENT_MARK;
        nb_result result = nb_input_send(p->input, &event);
        EXPLORE_CHECK(result == NB_OK || (result == NB_FULL && p->sim->config.chances[FAULT_INPUT_FLOOD] != 0));
        // From here on some may wait, or be early, for want of room.
        if (p->sim->config.chances[FAULT_INPUT_FLOOD] != 0) p->was_input_full = true;
        if (result != NB_OK) continue;
        p->watched[p->watched_count++] = event;
        ++p->event_serial;
    }
}

nb_result peer_command(const nb_context *context, peer *p) {
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)explore_random()};
    command.payload.i32[0] = (int32_t)sim_random(1000) - 500;
    command.payload.i32[1] = (int32_t)sim_random(1000);
    command.payload.i32[2] = (int32_t)p->command_serial;
    bool is_full = p->command_serial - p->command_first == p->sim->config.command_count;
    if (p->sim->is_steady || (p->sim->is_calm && !is_full && sim_random(4) != 0)) return NB_OK;
    nb_result result = nb_context_command(context, &command);
    EXPLORE_CHECK(result == (is_full ? NB_FULL : NB_OK));
    if (result == NB_OK) ++p->command_serial;
    return result;
}

// --- time ---

static void advance_clock(peer *p) {
    const sim *s = p->sim;
    uint64_t now_ns = nbi_atomic_load_relaxed_u64(&p->clock.now_ns), delta_ns = TICK_NS;
    if (!s->is_calm) delta_ns += sim_random(5) * 1000000 - 2000000;
    if (fault_happens(s, FAULT_CLOCK_STALL)) delta_ns = sim_random(2) * 1000000;
    if (fault_happens(s, FAULT_CLOCK_JUMP))
        delta_ns = sim_random(8) == 0 ? UINT64_C(3600000000000) : sim_random(400) * 1000000;
    if (fault_happens(s, FAULT_CLOCK_BACK)) delta_ns = 0 - sim_random(100) * 1000000;
    nb_clock_manual_set(&p->clock, now_ns + delta_ns);
}

// A peer that is too far ahead waits for the other.
static void keep_pace(peer *p) {
    nb_loop *loop = nb_engine_loop(p->engine);
    if (fault_happens(p->sim, FAULT_PAUSE)) p->pause_left = 1 + (uint32_t)sim_random(6);
    if (p->sim->is_calm) p->pause_left = 0;
    uint32_t window = p->sim->is_calm ? WINDOW / 4 : WINDOW;
    bool is_paused = p->pause_left != 0, is_waiting = nb_loop_tick_count(loop) >= p->received + window;
    if (is_paused) --p->pause_left;
    EXPLORE_CHECK((is_paused ? nb_loop_pause(loop) : nb_loop_resume(loop)) == NB_OK);
    EXPLORE_CHECK(nb_loop_hold(loop, is_waiting) == NB_OK);
    uint32_t num = 1 + (uint32_t)sim_random(2), den = 1 + (uint32_t)sim_random(2);
    if (fault_happens(p->sim, FAULT_PAUSE)) EXPLORE_CHECK(nb_loop_set_scale(loop, num, den) == NB_OK);
    if (p->sim->is_calm) EXPLORE_CHECK(nb_loop_set_scale(loop, 1, 1) == NB_OK);
    p->is_paused = is_paused || is_waiting;
}

void peer_rewind(peer *p, uint64_t tick) {
    EXPLORE_CHECK(nb_engine_rewind(p->engine, tick) == NB_OK);
    EXPLORE_CHECK(nb_engine_commands(p->engine).count == 0);
    p->watched_count = 0;
    p->command_first = p->command_serial;
}

// Goes back in time, looks, and returns at once or by playing it again.
void peer_go_back(peer *p) {
    nb_history *history = nb_engine_history(p->engine);
    if (history == NULL || !fault_happens(p->sim, FAULT_REWIND)) return;
    nb_loop *loop = nb_engine_loop(p->engine);
    nb_states *states = nb_engine_states(p->engine);
    nb_history_stats stats = nb_history_stats_get(history);
    uint64_t now = nb_loop_tick_count(loop),
             first = stats.tick_oldest > p->right_from ? stats.tick_oldest : p->right_from;
    if (now <= first || stats.tick_newest != now) return; // where there was no memory, now is not kept
    uint64_t depth = 1 + sim_random(now - first), hash_now = nb_states_hash(states);
    if (depth > WINDOW) return;
    say(p, "goes back from %llu to %llu", (unsigned long long)now, (unsigned long long)(now - depth));
    peer_rewind(p, now - depth);
    EXPLORE_CHECK(nb_loop_tick_count(loop) == now - depth);
    if (is_right(p, now - depth)) EXPLORE_CHECK(nb_states_hash(states) == p->sim->truth_hash[now - depth]);
    p->watcher.has_tick = false;
    if (sim_random(2) == 0) return;
    peer_rewind(p, now);
    EXPLORE_CHECK(nb_states_hash(states) == hash_now);
}

// --- snapshots that somebody keeps ---

static void turn_held(peer *p) {
    uint32_t i = (uint32_t)sim_random(HELD_MAX);
    if (p->held[i] == NULL && !p->sim->is_calm) {
        p->held[i] = nb_snapshots_acquire(p->snapshots);
        if (p->held[i] != NULL) EXPLORE_CHECK(snapshot_check(p, p->held[i], &p->held_hash[i]));
        return;
    }
    uint64_t hash = 0;
    if (p->held[i] != NULL) EXPLORE_CHECK(snapshot_check(p, p->held[i], &hash) && hash == p->held_hash[i]);
    nb_snapshot_release(p->held[i]);
    p->held[i] = NULL;
}

// --- a frame ---

static void disturb(peer *p) {
    p->is_heap_armed = true;
    crowd_churn(p);
    errands_disturb(p);
    p->is_heap_armed = false;
    if (fault_happens(p->sim, FAULT_READER)) turn_held(p);
    if (p->sim->is_calm) turn_held(p);
    if (fault_happens(p->sim, FAULT_WATCH)) turn_watcher(p);
    peer_go_back(p);
}

void peer_frame(peer *p) {
    disturb(p);
    advance_clock(p);
    keep_pace(p);
    peer_send_input(p);
    oracle_before(p);
    p->is_heap_armed = p->index == 1; // what the first one forgets nobody else would know
    explore_refuse_threads(fault_happens(p->sim, FAULT_THREAD));
    p->frame_result = nb_engine_frame(p->engine);
    explore_refuse_threads(false);
    p->is_heap_armed = false;
    if (nb_engine_stats_get(p->engine).frame_count != p->before.frame_count) link_settle(p);
    oracle_truth_advance(p->sim);
    oracle_after(p);
}

// --- closing ---

void peer_close(peer *p) {
    const nb_snapshot *pin = p->snapshots != NULL ? nb_snapshots_acquire(p->snapshots) : NULL;
    if (pin != NULL) EXPLORE_CHECK(nb_engine_destroy(p->engine) == NB_BUSY);
    nb_snapshot_release(pin);
    for (uint32_t i = 0; i < HELD_MAX; ++i) nb_snapshot_release(p->held[i]);
    for (uint32_t i = 0; i < TOKEN_COUNT; ++i) nb_token_release(p->tokens[i]);
    nb_result result = NB_BUSY;
    for (uint32_t i = 0; i < 20 && result == NB_BUSY; ++i) result = nb_engine_destroy(p->engine);
    EXPLORE_CHECK(result == NB_OK);
    p->engine = NULL;
    crowd_check(p);
    for (uint32_t i = 0; i < p->errand_count; ++i) EXPLORE_CHECK(!p->errands[i].is_live);
}
