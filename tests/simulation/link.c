// SPDX-License-Identifier: MIT
// A tiny link. Each frame a peer sends what its ticks got lately, and now and then the state after a tick whose whole
// input it knows; each letter may be lost, come twice, late, or not be what was sent. Letters name ticks rather than
// carry bytes: what a tick got is in the log of its peer, and does not change.

#include "simulation.h"

#include "frame/engine/engine.h"

#include "platform/platform.h"

#include <string.h>

#define RESEND_TICKS (2u * WINDOW)

void compose(const peer *p, uint64_t tick, composed *out) {
    out->event_count = out->command_count = 0;
    for (uint32_t i = 0; i < PEER_COUNT; ++i) {
        bool is_known = p->index == REFERENCE || p->index == i || p->got[tick];
        if (!is_known) continue;
        const part *from = &p->sim->peers[i].own[tick];
        for (uint32_t j = 0; j < from->event_count; ++j) {
            nb_input_event *event = &out->events[out->event_count++];
            *event = from->events[j];
            event->device = (uint16_t)(i + 1);
        }
        for (uint32_t j = 0; j < from->command_count; ++j) {
            nb_input_event *command = &out->commands[out->command_count++];
            *command = from->commands[j];
            command->device = (uint16_t)(i + 1);
        }
    }
}

static nb_history_input input_of(const composed *c) {
    return (nb_history_input){{c->event_count != 0 ? c->events : NULL, c->event_count},
                              {c->command_count != 0 ? c->commands : NULL, c->command_count}};
}

static uint64_t tick_now(const peer *p) { return nb_loop_tick_count(nb_engine_loop(p->engine)); }
static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

// --- receiving ---

static void count_received(peer *p) {
    const peer *other = &p->sim->peers[1 - p->index];
    while (p->received < other->run_count && p->got[p->received]) ++p->received;
}

static void take_input(const nb_context *context, peer *p, uint64_t tick) {
    bool is_again = p->got[tick];
    if (tick < p->right_from || (is_again && !fault_happens(p->sim, FAULT_COPY))) return;
    p->got[tick] = true;
    if (tick >= tick_now(p)) return; // the tick will find it
    compose(p, tick, &p->message_input);
    nb_history_input input = input_of(&p->message_input);
    nb_rollback_stats before = nb_engine_rollback_stats(p->engine);
    nb_result result = nb_context_correct_input(context, tick, &input);
    say(p, "input of tick %llu: %s", (unsigned long long)tick, nb_result_name(result));
    if (result == NB_OK) {
        bool is_same = nb_engine_rollback_stats(p->engine).same_count != before.same_count;
        EXPLORE_CHECK(!is_again || is_same || tick >= p->corrected_from || p->right_until < tick);
        if (!is_same) p->corrected_from = min_u64(p->corrected_from, tick);
        return;
    }
    // Only where ticks were forgotten early, or there is little room for input.
    bool is_short = p->index == 1 && p->sim->config.history_events < PEER_COUNT * PART_MAX;
    EXPLORE_CHECK(result == NB_ERR_RANGE || (result == NB_FULL && is_short));
    nb_history_stats kept = nb_history_stats_get(nb_engine_history(p->engine));
    EXPLORE_CHECK(result == NB_FULL || tick_now(p) - tick > ROLLBACK_MAX || tick < p->engine->correction.oldest ||
                  !kept.has_begun || tick < kept.tick_oldest);
    if (is_again) return;
    p->refused[tick] = true;
    p->right_until = min_u64(p->right_until, tick);
}

// Since the state after so many ticks was made right.
static uint64_t first_refused(const peer *p, uint64_t tick) {
    while (tick < p->run_count && !p->refused[tick]) ++tick;
    return tick < p->run_count ? tick : UINT64_MAX;
}

// What nobody has done: it counts until the truth is heard again.
static void take_forgery(const nb_context *context, peer *p, const mail *m) {
    uint64_t now = tick_now(p), back = 1 + m->number % 8;
    if (now < back || now - back < p->right_from) return;
    uint64_t tick = now - back;
    compose(p, tick, &p->message_input);
    if (p->message_input.event_count == PEER_COUNT * PART_MAX) return;
    nb_input_event *event = &p->message_input.events[p->message_input.event_count++];
    *event = (nb_input_event){.kind = NB_INPUT_PRESS, .device = 2, .code = (uint32_t)m->number};
    nb_history_input input = input_of(&p->message_input);
    if (nb_context_correct_input(context, tick, &input) != NB_OK) return;
    say(p, "forged input of tick %llu", (unsigned long long)tick);
    p->corrected_from = min_u64(p->corrected_from, tick);
    p->got[tick] = false;
    p->received = min_u64(p->received, tick);
}

static void take_absurdity(const nb_context *context, peer *p, const mail *m) {
    uint64_t now = tick_now(p);
    const uint64_t ticks[] = {UINT64_MAX, (uint64_t)-10000, now, now + 1, now + 100000, now - ROLLBACK_MAX - 1};
    nb_input_event events[PEER_COUNT * PART_MAX + 1] = {{.kind = NB_INPUT_PRESS, .code = 5}};
    uint64_t tick = ticks[m->number % 6];
    nb_history_input input = {{events, 1}, {NULL, 0}};
    EXPLORE_CHECK(nb_context_correct_input(context, tick, &input) == NB_ERR_RANGE);
    // The state of now may be put right.
    if (tick != now) EXPLORE_CHECK(nb_context_correct_state(context, tick, events, sizeof events) == NB_ERR_RANGE);
    input.events.count = PEER_COUNT * PART_MAX + 1;
    nb_result result = nb_context_correct_input(context, now - 1, &input);
    EXPLORE_CHECK(result == NB_FULL || result == NB_ERR_RANGE);
}

static void take_state(const nb_context *context, peer *p, const mail *m) {
    const state_buffer *buffer = &p->sim->states[m->state];
    if (m->first < p->right_from) return; // older than what is known for sure
    nb_result result = nb_context_correct_state(context, m->first, buffer->bytes, buffer->size_bytes);
    EXPLORE_CHECK(result == NB_OK || result == NB_ERR_RANGE);
    say(p, "%s state after %llu ticks: %s",
        buffer->is_true    ? "true"
        : buffer->is_sound ? "forged"
                           : "damaged",
        (unsigned long long)m->first, nb_result_name(result));
    if (result != NB_OK || m->first < p->state_tick) return;
    p->state_tick = m->first;
    p->is_state_true = buffer->is_true, p->is_state_sound = buffer->is_sound;
    p->state_now = tick_now(p);
    if (!buffer->is_sound || buffer->is_true) return;
    p->right_until = min_u64(p->right_until, m->first - 1);
    if (m->first > p->forged_until) p->forged_until = m->first;
}

static void take(const nb_context *context, peer *p, const mail *m) {
    switch (m->kind) {
    case MAIL_INPUT:
        for (uint64_t i = 0; i < m->count; ++i) take_input(context, p, m->first + i);
        break;
    case MAIL_FORGED_INPUT: take_forgery(context, p, m); break;
    case MAIL_ABSURD: take_absurdity(context, p, m); break;
    default: take_state(context, p, m); break;
    }
}

nb_result link_reconcile(const nb_context *context, void *user) {
    peer *p = user;
    sim *s = p->sim;
    uint32_t start = (uint32_t)sim_random(MAIL_MAX); // those of one round in any order
    for (uint32_t i = 0; i < MAIL_MAX; ++i) {
        mail *m = &s->mails[(start + i) % MAIL_MAX];
        if (m->kind == MAIL_NONE || m->to != p->index || m->due_round > s->round) continue;
        take(context, p, m);
        if (m->kind == MAIL_STATE) --s->states[m->state].use_count;
        m->kind = MAIL_NONE;
    }
    count_received(p);
    return NB_OK;
}

// After the frame: what has become of the corrections that it brought.
void link_settle(peer *p) {
    nb_rollback_stats rolled = nb_engine_rollback_stats(p->engine);
    uint64_t fail_count = rolled.fail_count - p->rolled_before.fail_count;
    bool has_state = p->state_tick != 0;
    uint64_t expected_count = has_state && !p->is_state_sound ? 1 : 0;
    if (fail_count > expected_count) { // there was no memory
        EXPLORE_CHECK(p->heap_faults != 0);
        p->right_until = min_u64(p->right_until, p->corrected_from);
        if (has_state) p->right_until = min_u64(p->right_until, p->state_tick - 1);
    }
    EXPLORE_CHECK(fail_count >= expected_count); // damaged bytes are never taken
    // One that is as it was leaves later ticks as they were, with what was said of them.
    uint64_t again_count = rolled.tick_count - p->rolled_before.tick_count;
    bool is_last_word = p->state_tick >= p->forged_until || again_count >= p->state_now - p->state_tick;
    if (fail_count == 0 && has_state && p->is_state_true && is_last_word) {
        p->right_until = first_refused(p, p->state_tick);
        p->right_from = p->state_tick;
        for (uint64_t i = 0; i < p->state_tick; ++i) p->got[i] = true;
        count_received(p);
    }
    // Ticks before a state that was taken were not simulated again for what came with it.
    if (fail_count == 0 && has_state && !p->is_state_true)
        p->right_until = min_u64(p->right_until, min_u64(p->corrected_from, p->state_tick - 1));
    EXPLORE_CHECK(rolled.depth_max <= ROLLBACK_MAX);
    if (again_count != 0 || has_state)
        say(p, "now %llu, %llu ticks again, %llu failed; heard of %llu, right until %llx",
            (unsigned long long)tick_now(p), (unsigned long long)again_count, (unsigned long long)fail_count,
            (unsigned long long)p->received, (unsigned long long)p->right_until);
    p->corrected_from = UINT64_MAX;
    p->state_tick = 0;
}

// --- sending ---

static void post(sim *s, mail m) {
    bool is_parted = !s->is_calm && s->round < s->partition_until;
    if (is_parted || fault_happens(s, FAULT_LOSS)) return;
    uint32_t count = fault_happens(s, FAULT_COPY) ? 2 : 1;
    for (uint32_t i = 0; i < MAIL_MAX && count > 0; ++i) {
        if (s->mails[i].kind != MAIL_NONE) continue;
        m.due_round = s->round + 1 + (fault_happens(s, FAULT_DELAY) ? sim_random(8) : 0);
        s->mails[i] = m;
        if (m.kind == MAIL_STATE) ++s->states[m.state].use_count;
        --count;
    }
}

// The state after a tick of the past, fetched by going there and back again.
static bool fetch_state(peer *p, uint64_t tick, state_buffer *buffer) {
    nb_states *states = nb_engine_states(p->engine);
    uint64_t now = tick_now(p), hash_now = nb_states_hash(states);
    if (tick != now) peer_rewind(p, tick);
    EXPLORE_CHECK(nb_states_hash(states) == p->sim->truth_hash[tick]);
    EXPLORE_CHECK(game_raw_hash(&p->game) == p->sim->truth_raw[tick]);
    ++p->sim->checks;
    nb_result result = nb_states_save(states, buffer->bytes, sizeof buffer->bytes, &buffer->size_bytes);
    EXPLORE_CHECK(result == NB_OK);
    if (tick != now) peer_rewind(p, now);
    EXPLORE_CHECK(nb_states_hash(states) == hash_now && tick_now(p) == now);
    return true;
}

static void damage(state_buffer *buffer) {
    buffer->is_true = buffer->is_sound = false;
    if (sim_random(3) == 0)
        buffer->size_bytes = sim_random(buffer->size_bytes);
    else
        buffer->bytes[sim_random(buffer->size_bytes)] ^= (unsigned char)(1u << sim_random(8));
}

static void send_state(sim *s, peer *from) {
    state_buffer *buffer = NULL;
    for (uint32_t i = 0; i < STATE_MAX && buffer == NULL; ++i) {
        if (s->states[i].use_count == 0) buffer = &s->states[i];
    }
    uint64_t tick = min_u64(min_u64(from->received, tick_now(from)), from->right_until);
    nb_history *history = nb_engine_history(from->engine);
    if (buffer == NULL || history == NULL || tick == 0 || tick < from->right_from) return;
    nb_history_stats kept = nb_history_stats_get(history);
    // The newest tick is not kept where there was no memory for it.
    if (tick < kept.tick_oldest || kept.tick_newest != tick_now(from)) return;
    bool was_armed = from->is_heap_armed;
    from->is_heap_armed = false;
    bool is_fetched = fetch_state(from, tick, buffer);
    from->is_heap_armed = was_armed;
    if (!is_fetched) return;
    buffer->is_true = buffer->is_sound = true;
    mail m = {.kind = MAIL_STATE, .to = 1 - from->index, .first = tick, .state = (uint32_t)(buffer - s->states)};
    if (fault_happens(s, FAULT_CORRUPT)) damage(buffer);
    // The first peer is the one that is always right in the end: nobody lies to it.
    if (buffer->is_sound && m.to == 1 && fault_happens(s, FAULT_FORGED_STATE))
        buffer->is_true = false, m.first = tick + 1 + sim_random(2);
    post(s, m);
}

void link_send(sim *s, peer *from) {
    // What the other is known to have is sent a few times more, as copies of a kind.
    uint64_t first = from->run_count - min_u64(from->run_count, RESEND_TICKS);
    uint64_t count = from->run_count - min_u64(first, s->peers[1 - from->index].received);
    if (fault_happens(s, FAULT_PARTITION)) s->partition_until = s->round + sim_random(24);
    mail input = {.kind = MAIL_INPUT, .to = 1 - from->index, .first = from->run_count - count, .count = count};
    if (count != 0) post(s, input);
    mail odd = {.kind = MAIL_ABSURD, .to = 1 - from->index, .number = explore_random()};
    if (fault_happens(s, FAULT_ABSURD)) post(s, odd);
    odd.kind = MAIL_FORGED_INPUT;
    if (fault_happens(s, FAULT_FORGED_INPUT)) post(s, odd);
    if (!s->is_steady && (s->round + from->index) % s->config.state_period == 0) send_state(s, from);
}

bool link_is_quick(const sim *s) {
    for (uint32_t i = 0; i < MAIL_MAX; ++i) {
        const mail *m = &s->mails[i];
        bool is_odd = m->kind == MAIL_ABSURD || m->kind == MAIL_FORGED_INPUT; // of before the calm
        if (is_odd || (m->kind != MAIL_NONE && m->due_round > s->round + 1)) return false;
    }
    return true;
}
