// SPDX-License-Identifier: MIT
#pragma once

// What the tests of netplay share: a party of engines in one process with a link for each way between two of them, and
// the states that a run with all inputs in time has, to which every confirmed tick of everybody is compared.

#include "frame/engine/engine_fixture.h"

#include "nebula/hash.h"
#include "nebula/link.h"
#include "nebula/netplay.h"
#include "nebula/random.h"
#include "nebula/rollback.h"

#define PARTY_MAX NB_NETPLAY_PLAYER_COUNT_MAX
#define PARTY_TICKS_MAX 2048u
#define PARTY_TICK_NS UINT64_C(16666667)
#define NEVER UINT64_MAX

typedef struct game {
    uint64_t sum;
    uint64_t places[PARTY_MAX];
} game;

typedef struct party_desc {
    uint32_t player_count;
    uint64_t seed;
    uint32_t delays[PARTY_MAX];
    uint32_t window;               // 0 = default
    nb_link_conditions conditions; // of all links
    bool is_uneven;                // frames are left out and come twice
    bool follows_advice;
    bool is_broken;      // somebody computes something else: states are not compared with the clean run
    uint32_t mute_count; // the last so many players have engines without hashes
    uint64_t tick_count; // of the clean run; 0 = PARTY_TICKS_MAX
} party_desc;

typedef struct party party;

typedef struct seat {
    party *party;
    uint32_t index;
    rig r;
    nb_netplay *play;
    game state;
    uint64_t wrong_tick; // in which this one computes something else
    uint64_t checked;    // tick counts whose confirmed hash was compared
    uint32_t hold_count; // ticks to hold back
    uint64_t sample_count;
} seat;

// What a dishonest player makes of a message before it is sent. Size 0: it sends none.
typedef size_t (*party_tamper)(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size);

struct party {
    party_desc desc;
    seat seats[PARTY_MAX];
    nb_link *links[PARTY_MAX][PARTY_MAX]; // from, to
    test_heap link_heap;
    uint64_t now_ns, step;
    uint64_t reference[PARTY_TICKS_MAX]; // hashes, by tick count
    char problem[200];                   // the first one
    party_tamper tamper;                 // of a dishonest player; may be NULL
};

static inline bool is_mute(const party *p, uint32_t player) {
    return player + p->desc.mute_count >= p->desc.player_count;
}

// What a player does when asked in a tick: held for some ticks, as people do.
static inline nb_input_event party_input(uint64_t seed, uint64_t tick, uint32_t player) {
    nb_random random = nb_random_make(seed, tick / (1 + (seed + player) % 4), 100 + player);
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)nb_random_range(random, 0, 5)};
    event.payload.i32[0] = (int32_t)nb_random_between(random, 1, -100, 100);
    return event;
}

static inline void game_step(game *g, uint64_t tick, nb_input_view commands) {
    g->sum = g->sum * 31 + tick;
    for (uint32_t i = 0; i < commands.count; ++i) {
        const nb_input_event *event = &commands.events[i];
        g->places[i] = g->places[i] * 3 + (uint64_t)event->payload.i32[0];
        g->sum = g->sum * 17 + event->code * (i + 1) + event->kind;
    }
}

static inline void party_fail(party *p, const char *what, uint64_t a, uint64_t b) {
    if (p->problem[0] != '\0') return;
    snprintf(p->problem, sizeof p->problem, "step %llu: %s (%llu, %llu)", (unsigned long long)p->step, what,
             (unsigned long long)a, (unsigned long long)b);
}

// The clean run: one state, all inputs in time.
static inline void party_reference(party *p) {
    game g = {0};
    nb_states *states = NULL;
    nb_provider_desc state = {.name = "game", .data = &g, .size_bytes = sizeof g};
    if (nb_states_create(NULL, &states) != NB_OK || nb_states_add(states, &state, NULL) != NB_OK) abort();
    uint64_t end = p->desc.tick_count != 0 ? p->desc.tick_count : PARTY_TICKS_MAX;
    for (uint64_t tick = 0; tick + 1 < end; ++tick) {
        nb_input_event commands[PARTY_MAX] = {{0}};
        for (uint32_t i = 0; i < p->desc.player_count; ++i) {
            uint32_t delay = p->desc.delays[i];
            if (tick >= delay) commands[i] = party_input(p->desc.seed, tick - delay, i);
        }
        game_step(&g, tick, (nb_input_view){commands, p->desc.player_count});
        p->reference[tick + 1] = nb_states_hash(states);
    }
    nb_states_destroy(states);
}

static inline nb_result seat_tick(const nb_context *context, void *user) {
    seat *s = user;
    game_step(&s->state, context->tick->index, context->commands);
    if (context->tick->index == s->wrong_tick) s->state.sum ^= 1;
    if (context->commands.count != s->party->desc.player_count || context->input.count != 0)
        party_fail(s->party, "commands of a tick", context->commands.count, context->tick->index);
    for (uint32_t i = 0; i < context->commands.count; ++i) {
        if (context->commands.events[i].timestamp_ns != 0) party_fail(s->party, "a time of one machine", i, s->index);
    }
    return NB_OK;
}

static inline void seat_sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    seat *s = user;
    *event = party_input(s->party->desc.seed, view->tick->index, s->index);
    event->timestamp_ns = 77 + s->index; // of no meaning to others
    ++s->sample_count;
}

static inline nb_engine_desc party_engine_desc(void) {
    nb_engine_desc desc = rig_desc(0);
    desc.hashes_ticks = desc.keeps_history = true;
    desc.is_headless = true;
    desc.scheduler_desc.task_count_max = 16;
    desc.scheduler_desc.group_count_max = 16;
    desc.history = (nb_history_desc){
        .bytes_max = (size_t)1 << 17, .tick_count_max = 128, .event_count_max = 1, .command_count_max = PARTY_MAX};
    return desc;
}

static inline nb_netplay_desc seat_netplay_desc(seat *s) {
    const party_desc *d = &s->party->desc;
    return (nb_netplay_desc){.player_count = d->player_count,
                             .local_player = s->index,
                             .input_delay = d->delays[s->index],
                             .window = d->window,
                             .session = d->seed,
                             .sample = seat_sample,
                             .user = s,
                             .hooks = test_hooks(&s->r.log, &s->r.heap)};
}

static inline void seat_open(party *p, uint32_t index) {
    seat *s = &p->seats[index];
    *s = (seat){.party = p, .index = index, .wrong_tick = NEVER};
    nb_engine_desc engine = party_engine_desc();
    engine.hashes_ticks = !is_mute(p, index);
    rig_open_desc(&s->r, engine);
    nb_provider_desc state = {.name = "game", .data = &s->state, .size_bytes = sizeof s->state};
    assert_int_equal(nb_states_add(nb_engine_states(s->r.engine), &state, NULL), NB_OK);
    attach(&s->r, (nb_module_desc){.name = "game", .tick = seat_tick, .user = s});
    nb_netplay_desc desc = seat_netplay_desc(s);
    assert_int_equal(nb_netplay_create(s->r.engine, &desc, &s->play), NB_OK);
}

static inline void party_open(party *p, const party_desc *desc) {
    memset(p, 0, sizeof *p);
    p->desc = *desc;
    for (uint32_t i = 0; i < desc->player_count; ++i) seat_open(p, i);
    for (uint32_t i = 0; i < desc->player_count * desc->player_count; ++i) {
        uint32_t from = i / desc->player_count, to = i % desc->player_count;
        nb_link_desc link = {.conditions = desc->conditions, .seed = desc->seed, .stream = i};
        link.message_count_max = 128, link.message_bytes_max = NB_NETPLAY_MESSAGE_BYTES_MAX;
        link.hooks = test_hooks(NULL, &p->link_heap);
        if (from != to) assert_int_equal(nb_link_create(&link, &p->links[from][to]), NB_OK);
    }
    party_reference(p);
}

static inline void party_weather(party *p, const nb_link_conditions *conditions) {
    for (uint32_t from = 0; from < p->desc.player_count; ++from) {
        for (uint32_t to = 0; to < p->desc.player_count; ++to) {
            if (from != to) assert_int_equal(nb_link_conditions_set(p->links[from][to], conditions), NB_OK);
        }
    }
}

static inline nb_netplay_stats play_stats(const seat *s) { return nb_netplay_stats_get(s->play); }
static inline nb_rollback_stats roll_stats(const seat *s) { return nb_engine_rollback_stats(s->r.engine); }

static inline void party_close(party *p) {
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        assert_int_equal(nb_netplay_destroy(p->seats[i].play), NB_OK);
        rig_close(&p->seats[i].r);
        for (uint32_t to = 0; to < p->desc.player_count; ++to) nb_link_destroy(p->links[i][to]);
    }
    assert_int_equal(p->link_heap.live_count.value, 0);
}

// --- running ---

static inline void seat_receive(seat *s) {
    party *p = s->party;
    for (uint32_t from = 0; from < p->desc.player_count; ++from) {
        unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
        size_t size = 0;
        if (from == s->index) continue;
        while (nb_link_receive(p->links[from][s->index], p->now_ns, bytes, sizeof bytes, &size) == NB_OK)
            nb_netplay_receive(s->play, from, bytes, size);
    }
}

static inline void seat_send(seat *s) {
    party *p = s->party;
    for (uint32_t to = 0; to < p->desc.player_count; ++to) {
        unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
        size_t size = 0;
        if (to == s->index) continue;
        if (nb_netplay_send(s->play, to, bytes, sizeof bytes, &size) != NB_OK) party_fail(p, "send", s->index, to);
        if (p->tamper != NULL) size = p->tamper(p, s->index, to, bytes, size);
        if (size != 0) nb_link_send(p->links[s->index][to], p->now_ns, bytes, size);
    }
}

// Every tick that is confirmed has the state of the clean run, and nothing was simulated that cannot be put right.
static inline void seat_check(seat *s) {
    nb_netplay_stats stats = play_stats(s);
    uint64_t window = s->party->desc.window != 0 ? s->party->desc.window : NB_NETPLAY_WINDOW_MAX;
    if (stats.tick_count > stats.confirmed_count + window) party_fail(s->party, "window", stats.tick_count, s->index);
    if (stats.has_lost) party_fail(s->party, "lost", stats.lost_tick, s->index);
    if (is_mute(s->party, s->index)) return;
    while (s->checked < stats.confirmed_count && !s->party->desc.is_broken) {
        uint64_t hash = 0, tick_count = ++s->checked;
        if (nb_netplay_hash_get(s->play, tick_count, &hash) != NB_OK || hash != s->party->reference[tick_count])
            party_fail(s->party, "a confirmed state is not that of the clean run", tick_count, s->index);
    }
}

// A frame with one tick, or with none.
static inline void seat_frame(seat *s, bool has_tick) {
    seat_receive(s);
    if (s->party->desc.follows_advice) s->hold_count += nb_netplay_advice_get(s->play).hold_tick_count;
    if (has_tick && s->hold_count != 0) --s->hold_count, has_tick = false;
    nb_result result = has_tick ? nb_engine_run_ticks(s->r.engine, 1) : nb_engine_frame_delta(s->r.engine, 0);
    if (result != NB_OK) party_fail(s->party, "frame", s->index, (uint64_t)-result);
    seat_check(s);
    seat_send(s);
}

static inline uint32_t frames_of(const party *p, uint32_t player) {
    if (!p->desc.is_uneven) return 1;
    uint64_t draw = nb_random_range(nb_random_make(p->desc.seed, p->step, 200 + player), 0, 16);
    return draw == 0 ? 0 : draw == 1 ? 2 : 1;
}

static inline void party_step(party *p, bool has_tick) {
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        for (uint32_t count = frames_of(p, i); count > 0; --count) seat_frame(&p->seats[i], has_tick);
    }
    p->now_ns += PARTY_TICK_NS;
    ++p->step;
}

static inline void party_run(party *p, uint64_t step_count) {
    for (uint64_t i = 0; i < step_count && p->problem[0] == '\0'; ++i) party_step(p, true);
}

// The quiet end: links are perfect, and frames go on without ticks until all that was sent has arrived.
static inline void party_settle(party *p) {
    static const nb_link_conditions clean;
    party_weather(p, &clean);
    for (int i = 0; i < 8; ++i) party_step(p, false);
}

static inline uint64_t ticks_of(const seat *s) { return play_stats(s).tick_count; }

// All have confirmed what the slowest has run.
static inline void assert_agreed(party *p) {
    uint64_t least = NEVER;
    for (uint32_t i = 0; i < p->desc.player_count; ++i)
        least = ticks_of(&p->seats[i]) < least ? ticks_of(&p->seats[i]) : least;
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        nb_netplay_stats stats = play_stats(&p->seats[i]);
        if (stats.confirmed_count < least) party_fail(p, "not confirmed", stats.confirmed_count, least);
        if (stats.has_desync) party_fail(p, "desync", stats.desync_tick, i);
        if (stats.in_absurd_count + stats.in_foreign_count != 0) party_fail(p, "refused", stats.in_absurd_count, i);
        if (stats.compared_count == 0) party_fail(p, "nothing compared", i, 0);
        if (test_log_count(&p->seats[i].r.log, NB_ITEM_NETPLAY_DESYNC) != 0) party_fail(p, "desync told", i, 0);
    }
    if (p->problem[0] != '\0') print_error("%s\n", p->problem);
    assert_true(p->problem[0] == '\0');
}
