// SPDX-License-Identifier: MIT
#include "host.h"

#include "nebula/random.h"
#include "nebula/rollback.h"
#include "script.h"

#include <string.h>

#define TICK_NS (UINT64_C(1000000000) / GAME_TICK_RATE)
// Nothing is later than this: SCRIPT_LATE_MAX, a frame's ticks and a way back on top of each other, with room.
#define FINAL_AFTER 64u
#define REWIND_MAX 12u
#define FRAME_NS_MAX UINT64_C(70000000)

enum { STREAM_FRAME = 201, STREAM_REWIND, STREAM_STATE, STREAM_AGAIN };

static uint64_t draw_of(uint64_t tick, uint32_t stream) {
    return nb_random_u64(nb_random_make(GAME_SEED, tick, stream), 0);
}

static host_slot *slot_of(host *h, uint64_t tick) { return &h->slots[tick % HOST_SLOT_COUNT]; }

static uint64_t now_of(const host *h) { return nb_loop_tick_count(nb_engine_loop(h->engine)); }

// The oldest tick that may still be wrong.
static uint64_t oldest_of(const host *h) {
    uint64_t now = now_of(h);
    return now > FINAL_AFTER ? now - FINAL_AFTER : 0;
}

static void complain(host *h, const char *problem) {
    if (h->problem == NULL) h->problem = problem;
}

// What the tick should get; its run says when its events happen.
static script script_at(const host *h, uint64_t tick, uint64_t run) {
    script s = script_of(tick, run * TICK_NS, TICK_NS);
    if (h->desc.is_in_time) s.late = 0;
    return s;
}

// --- ticks ---

// Before all others in each tick, also in those simulated again: the engine's hash is still that of the tick before.
static nb_result note_hash(const nb_context *context, void *user) {
    host *h = user;
    uint64_t tick = context->tick->index;
    if (h->tick_before + 1 == tick) slot_of(h, h->tick_before)->hash = nb_engine_stats_get(h->engine).tick_hash;
    h->tick_before = tick;
    return NB_OK;
}

static bool is_same(nb_input_view view, const nb_input_event *events, uint32_t count) {
    return view.count == count && (count == 0 || memcmp(view.events, events, count * sizeof *events) == 0);
}

static void tick_ended(void *user, const nb_tick_view *view) {
    host *h = user;
    host_slot *slot = slot_of(h, view->tick->index);
    slot->run = h->run_count++;
    script s = script_at(h, view->tick->index, slot->run);
    slot->is_wrong =
        !is_same(view->input, s.events, s.event_count) || !is_same(view->commands, s.commands, s.command_count);
}

// --- putting right ---

static void correct(host *h, const nb_context *context, uint64_t tick) {
    host_slot *slot = slot_of(h, tick);
    script s = script_at(h, tick, slot->run);
    bool is_due = slot->is_wrong && tick + s.late <= now_of(h);
    bool is_again = !slot->is_wrong && (draw_of(tick, STREAM_AGAIN) + now_of(h)) % 128 == 0; // sent twice
    if (!is_due && !is_again) return;
    nb_history_input input = {{s.events, s.event_count}, {s.commands, s.command_count}};
    nb_result result = nb_context_correct_input(context, tick, &input);
    bool is_known = !slot->is_wrong && tick < h->sent_tick; // what comes twice, and is in a state that was sent
    if (result != NB_OK && !(result == NB_ERR_RANGE && is_known)) complain(h, "an input was refused");
    if (result == NB_ERR_RANGE) ++h->refuse_count;
    slot->is_wrong = false;
}

// The state after doubt_tick is sent wrong first, then right; where there is no wrong one yet, right twice.
static void correct_state(host *h, const nb_context *context) {
    if (h->doubt == DOUBT_NONE || now_of(h) <= h->doubt_tick) return;
    bool is_wrong = h->doubt == DOUBT_SAVED && h->wrong.size_bytes != 0;
    const host_state *sent = is_wrong ? &h->wrong : &h->right;
    if (nb_context_correct_state(context, h->doubt_tick, sent->bytes, sent->size_bytes) != NB_OK)
        complain(h, "a state was refused");
    ++h->state_count;
    h->sent_tick = h->doubt_tick;
    h->doubt = h->doubt == DOUBT_SAVED ? DOUBT_WRONG : DOUBT_NONE;
}

static nb_result reconcile(const nb_context *context, void *user) {
    host *h = user;
    uint64_t now = now_of(h);
    for (uint64_t tick = oldest_of(h); tick < now; ++tick) correct(h, context, tick);
    correct_state(h, context);
    script s = script_at(h, now, 0);
    if (s.late != 0 || h->staged_for == now + 1) return NB_OK;
    h->staged_for = now + 1;
    for (uint32_t i = 0; i < s.command_count; ++i) {
        if (nb_context_command(context, &s.commands[i]) != NB_OK) complain(h, "a command was refused");
    }
    return NB_OK;
}

// --- between frames ---

// In no order: the queue puts them right by their times.
static void send_events(host *h, uint64_t until_ns) {
    uint64_t now = now_of(h);
    for (; (h->run_count + h->send_next - now) * TICK_NS < until_ns; ++h->send_next) {
        script s = script_at(h, h->send_next, h->run_count + h->send_next - now);
        for (uint32_t i = 0; s.late == 0 && i < s.event_count; ++i) {
            const nb_input_event *event = &s.events[(i + h->send_next) % s.event_count];
            if (nb_input_send(nb_engine_input(h->engine), event) != NB_OK) complain(h, "an event was refused");
        }
    }
}

// Back, half of it forth again, and on from there.
static void go_back(host *h, uint64_t now) {
    uint64_t draw = draw_of(now, STREAM_REWIND) / 64;
    uint64_t back = 1 + draw % REWIND_MAX, place = now - back + draw / REWIND_MAX % back / 2;
    nb_result result = nb_engine_rewind(h->engine, now - back);
    if (result == NB_OK) result = nb_engine_rewind(h->engine, place);
    if (result != NB_OK) complain(h, "no way back");
    for (uint64_t tick = place; tick < now; ++tick) slot_of(h, tick)->is_wrong = false; // they run again
    nb_input_discard(nb_engine_input(h->engine));
    h->send_next = place;
    ++h->rewind_count;
}

static bool has_wrong(host *h) {
    for (uint64_t tick = oldest_of(h); tick < now_of(h); ++tick) {
        if (slot_of(h, tick)->is_wrong) return true;
    }
    return false;
}

// Our own state is one to be sent where every tick up to it got what it should.
static void save_state(host *h, uint64_t now) {
    if (has_wrong(h)) return;
    h->wrong = h->right;
    if (nb_states_save(nb_engine_states(h->engine), h->right.bytes, sizeof h->right.bytes, &h->right.size_bytes) !=
        NB_OK)
        complain(h, "the state was not saved");
    h->doubt = DOUBT_SAVED;
    h->doubt_tick = now;
}

// Each tick is looked at once, so that what begins there happens once, however often it runs.
static void look(host *h) {
    uint64_t now = now_of(h);
    bool is_back = false, is_saved = false;
    for (; h->looked_at < now; ++h->looked_at) {
        is_back = is_back || draw_of(h->looked_at, STREAM_REWIND) % 64 == 0;
        is_saved = is_saved || draw_of(h->looked_at, STREAM_STATE) % 128 == 0;
    }
    if (h->desc.is_in_time || h->doubt != DOUBT_NONE || now <= REWIND_MAX) return;
    if (is_saved)
        save_state(h, now);
    else if (is_back)
        go_back(h, now);
}

static uint64_t frame_end_ns(const host *h) {
    uint64_t draw = draw_of(h->frame_count, STREAM_FRAME);
    if (h->desc.frame_rate == 0) return h->now_ns + 1 + draw % FRAME_NS_MAX;
    return (h->frame_count + 1) * UINT64_C(1000000000) / h->desc.frame_rate;
}

bool host_frame(host *h) {
    uint64_t end_ns = frame_end_ns(h);
    send_events(h, end_ns);
    if (nb_engine_frame_delta(h->engine, end_ns - h->now_ns) < 0) complain(h, "a frame failed");
    h->now_ns = end_ns;
    ++h->frame_count;
    look(h);
    return h->problem == NULL;
}

uint64_t host_final_count(const host *h) { return oldest_of(h); }

uint64_t host_hash(const host *h, uint64_t tick) { return h->slots[tick % HOST_SLOT_COUNT].hash; }

// --- life ---

static nb_engine_desc engine_desc(const host_desc *desc) {
    nb_engine_desc engine = {.fence_timeout_ns = UINT64_C(60000000000), .seed = GAME_SEED, .hashes_ticks = true};
    engine.loop.tick_rate = (nb_rate){GAME_TICK_RATE, 1};
    engine.loop.tick_budget_ns = NB_LOOP_UNLIMITED; // a slow machine runs the same ticks
    engine.scheduler_desc.worker_count = desc->worker_count != 0 ? desc->worker_count : NB_WORKER_COUNT_NONE;
    engine.scheduler_desc.task_count_max = 1024;
    engine.keeps_history = true;
    engine.history = (nb_history_desc){.bytes_max = (size_t)8 << 20,
                                       .tick_count_max = 128,
                                       .event_count_max = 4 * SCRIPT_EVENT_MAX,
                                       .command_count_max = 4 * SCRIPT_COMMAND_MAX};
    engine.hooks.logger.level_min = NB_LOG_ERROR; // tables are full now and then: that is part of the game
    return engine;
}

bool host_open(host *h, const host_desc *desc) {
    memset(h, 0, sizeof *h);
    h->desc = *desc;
    h->tick_before = UINT64_MAX;
    static const char *const others[] = {"input", "bodies", "census"};
    nb_engine_desc engine = engine_desc(desc);
    nb_module_desc first = {.name = "hash", .before = others, .before_count = 3, .tick = note_hash, .user = h};
    first.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    nb_tick_watch watch = {.end = tick_ended, .user = h};
    return nb_engine_create(&engine, &h->engine) == NB_OK && game_open(&h->game, h->engine) &&
           nb_engine_module_attach(h->engine, &first, NULL) == NB_OK && nb_engine_watch_add(h->engine, &watch) == NB_OK;
}

bool host_close(host *h) {
    nb_engine_stats stats = nb_engine_stats_get(h->engine);
    nb_rollback_stats rollback = nb_engine_rollback_stats(h->engine);
    if (stats.failure_count != 0 || stats.violation_count != 0) complain(h, "a handler failed");
    if (rollback.fail_count != 0 || rollback.refuse_count != h->refuse_count) complain(h, "a correction failed");
    if (!nb_store_is_valid(h->game.world)) complain(h, "the world is not valid");
    if (nb_engine_destroy(h->engine) != NB_OK) complain(h, "the engine did not end");
    return h->problem == NULL;
}
