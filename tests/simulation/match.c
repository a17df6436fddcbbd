// SPDX-License-Identifier: MIT
// A match of three small engines beside the peers, in the seeds in which one player forges messages. Its own engine is
// honest, and its messages come too, so the match must go on: what is forged stops nobody, and nobody but the forger is
// named by a log item, a count or a verdict.

#include "simulation.h"

#include "nebula/random.h"

#include "net/message.h"

#include <stdio.h>
#include <string.h>

#define SESSION 77u

// Rounds of a quiet match between an input and its confirmation everywhere, and one to spare.
#define CONFIRM_ROUNDS 4u

static bool is_open(const sim *s) { return s->match.seats[0].engine != NULL; }

// --- a player ---

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    const match_seat *seat = user;
    nb_random random = nb_random_make(SESSION, view->tick->index / 3, seat->index);
    event->kind = NB_INPUT_COMMAND;
    event->payload.i32[0] = (int32_t)nb_random_between(random, 0, -9, 9);
}

static nb_result tick(const nb_context *context, void *user) {
    match_seat *seat = user;
    for (uint32_t i = 0; i < context->commands.count; ++i)
        seat->sum = seat->sum * 31 + (uint64_t)(int64_t)context->commands.events[i].payload.i32[0];
    return NB_OK;
}

// Nothing is wrong but what the forger sends.
static void hear(void *user, const nb_log_record *record) {
    const match_seat *seat = user;
    bool is_known = record->item == NB_ITEM_NETPLAY_REFUSED || record->item == NB_ITEM_NETPLAY_DESYNC ||
                    record->item == NB_ITEM_NETPLAY_SUSPECT;
    if (record->level < NB_LOG_WARNING || (is_known && seat->index != FORGER && strstr(record->message, "player 2")))
        return;
    if (is_known && seat->index == FORGER) return; // of what answers its own forgeries
    char text[200];
    snprintf(text, sizeof text, "player %u of the match: %s: %s", seat->index, record->name, record->message);
    explore_fail(__FILE__, __LINE__, text);
}

static void open_seat(sim *s, uint32_t index) {
    match_seat *seat = &s->match.seats[index];
    *seat = (match_seat){.index = index};
    nb_hooks hooks = explore_hooks();
    hooks.logger = (nb_logger){.log = hear, .user = seat, .level_min = NB_LOG_WARNING};
    nb_engine_desc desc = {
        .scheduler = s->scheduler,
        .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 16, .group_count_max = 16},
        .is_headless = true,
        .hashes_ticks = true,
        .keeps_history = true,
        .history = {.bytes_max = 1u << 16,
                    .tick_count_max = 80,
                    .event_count_max = 1,
                    .command_count_max = MATCH_SEATS},
        .hooks = hooks};
    nb_provider_desc state = {.name = "sum", .data = &seat->sum, .size_bytes = sizeof seat->sum};
    nb_module_desc module = {.name = "game", .tick = tick, .user = seat};
    nb_netplay_desc netplay = {.player_count = MATCH_SEATS,
                               .local_player = index,
                               .input_delay = index,
                               .session = SESSION,
                               .sample = sample,
                               .user = seat,
                               .hooks = hooks};
    EXPLORE_CHECK(nb_engine_create(&desc, &seat->engine) == NB_OK);
    EXPLORE_CHECK(nb_states_add(nb_engine_states(seat->engine), &state, NULL) == NB_OK);
    EXPLORE_CHECK(nb_engine_module_attach(seat->engine, &module, NULL) == NB_OK);
    EXPLORE_CHECK(nb_netplay_create(seat->engine, &netplay, &seat->play) == NB_OK);
}

void match_open(sim *s) {
    for (uint32_t i = 0; i < MATCH_SEATS && s->config.chances[FAULT_FORGED_MESSAGE] != 0; ++i) open_seat(s, i);
}

void match_close(sim *s) {
    for (uint32_t i = 0; i < MATCH_SEATS && is_open(s); ++i)
        EXPLORE_CHECK(nb_netplay_destroy(s->match.seats[i].play) == NB_OK);
    for (uint32_t i = MATCH_SEATS; i > 0 && is_open(s); --i) {
        EXPLORE_CHECK(nb_engine_destroy(s->match.seats[i - 1].engine) == NB_OK);
        s->match.seats[i - 1].engine = NULL;
    }
}

// --- messages ---

static void post(sim *s, const match_letter *letter) {
    bool is_parted = !s->is_calm && s->round < s->partition_until;
    if (is_parted || fault_happens(s, FAULT_LOSS)) return;
    uint32_t count = fault_happens(s, FAULT_COPY) ? 2 : 1;
    for (uint32_t i = 0; i < MATCH_MAIL_MAX && count > 0; ++i) {
        match_letter *place = &s->match.letters[i];
        if (place->size_bytes != 0) continue;
        *place = *letter;
        place->due_round = s->round + 1 + (fault_happens(s, FAULT_DELAY) ? sim_random(8) : 0);
        --count;
    }
}

// Another number in one field. Its inputs stay, or it would have told two stories and be out of the match.
static void distort(nbi_message *m) {
    uint64_t *fields[] = {&m->tick_count, &m->echo, &m->input_acked, &m->hash_acked, &m->hash_first};
    uint64_t *field = fields[sim_random(5)];
    switch (sim_random(8)) {
    case 0: m->from = (uint32_t)sim_random(MATCH_SEATS); break;
    case 1: m->advantage = (int32_t)(uint32_t)explore_random(); break;
    case 2: m->digests[sim_random(MATCH_SEATS)] ^= 1; break;
    case 3: *field = explore_random() >> 1; break;
    default: *field += sim_random(200) - 100;
    }
    if (m->hash_first > UINT64_MAX - m->hash_count) m->hash_first = 0;
}

static void forge(sim *s, const match_letter *letter) {
    static nbi_message m;
    static match_letter forged;
    forged = *letter;
    EXPLORE_CHECK(nbi_message_read(letter->bytes, letter->size_bytes, SESSION, &m));
    distort(&m);
    forged.size_bytes = nbi_message_write(&m, SESSION, forged.bytes);
    post(s, &forged);
}

static void send(sim *s, uint32_t from) {
    static match_letter letter;
    for (uint32_t to = 0; to < MATCH_SEATS; ++to) {
        if (to == from) continue;
        letter = (match_letter){.from = from, .to = to};
        nb_result result =
            nb_netplay_send(s->match.seats[from].play, to, letter.bytes, sizeof letter.bytes, &letter.size_bytes);
        EXPLORE_CHECK(result == NB_OK);
        post(s, &letter);
        if (from == FORGER && fault_happens(s, FAULT_FORGED_MESSAGE)) forge(s, &letter);
    }
}

static void receive(sim *s, uint32_t to) {
    for (uint32_t i = 0; i < MATCH_MAIL_MAX; ++i) {
        match_letter *letter = &s->match.letters[i];
        if (letter->size_bytes == 0 || letter->to != to || letter->due_round > s->round) continue;
        nb_result result = nb_netplay_receive(s->match.seats[to].play, letter->from, letter->bytes, letter->size_bytes);
        EXPLORE_CHECK(result == NB_OK || letter->from == FORGER || to == FORGER);
        trace(s, letter->from * 100 + to * 10 + (result == NB_OK));
        letter->size_bytes = 0;
    }
}

// --- what must hold ---

static void check_seat(sim *s, match_seat *seat) {
    nb_netplay_stats stats = nb_netplay_stats_get(seat->play);
    EXPLORE_CHECK(stats.tick_count <= stats.confirmed_count + NB_NETPLAY_WINDOW_MAX && !stats.has_lost);
    if (seat->index == FORGER) return;
    EXPLORE_CHECK(!stats.has_desync || stats.desync_player == FORGER);
    // The two honest ones have the same states, and those of the clean run are the first that either confirms.
    for (; seat->checked < stats.confirmed_count; ++seat->checked) {
        uint64_t hash = 0, *truth = &s->match.truth[(seat->checked + 1) % MATCH_TRUTH_MAX];
        EXPLORE_CHECK(nb_netplay_hash_get(seat->play, seat->checked + 1, &hash) == NB_OK);
        if (seat->checked == s->match.truth_count) *truth = hash, ++s->match.truth_count;
        EXPLORE_CHECK(hash == *truth);
        ++s->checks;
    }
}

const char *match_unwell(const sim *s) {
    for (uint32_t i = 0; i < MATCH_SEATS && is_open(s); ++i) {
        nb_netplay_stats stats = nb_netplay_stats_get(s->match.seats[i].play);
        if (stats.tick_count == s->match.seats[i].ticks_before) return "a player of the match stands still";
        if (stats.tick_count > stats.confirmed_count + CONFIRM_ROUNDS) return "a player of the match waits for another";
    }
    return NULL;
}

// One that is ahead waits in the calm, as its advice would have it, until the others are as far.
static bool has_tick(const sim *s, uint32_t index) {
    uint64_t least = UINT64_MAX, own = nb_netplay_stats_get(s->match.seats[index].play).tick_count;
    for (uint32_t i = 0; i < MATCH_SEATS; ++i) {
        uint64_t count = nb_netplay_stats_get(s->match.seats[i].play).tick_count;
        if (count < least) least = count;
    }
    return s->is_calm ? own <= least + 1 : !fault_happens(s, FAULT_CLOCK_STALL);
}

void match_round(sim *s) {
    for (uint32_t i = 0; i < MATCH_SEATS && is_open(s); ++i) {
        match_seat *seat = &s->match.seats[i];
        seat->ticks_before = nb_netplay_stats_get(seat->play).tick_count;
        receive(s, i);
        uint64_t count = !has_tick(s, i) ? 0 : fault_happens(s, FAULT_CLOCK_JUMP) ? 6 : 1;
        nb_result result =
            count != 0 ? nb_engine_run_ticks(seat->engine, count) : nb_engine_frame_delta(seat->engine, 0);
        EXPLORE_CHECK(result == NB_OK);
        check_seat(s, seat);
        send(s, i);
    }
}
