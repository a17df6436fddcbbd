// SPDX-License-Identifier: MIT
// module: net
// Two players who push a ball, each in an engine of his own, over a bad network. Nobody waits: what the other does is
// guessed, and put right when it comes. In the end both have the same ball.

#include <nebula/engine.h>
#include <nebula/link.h>
#include <nebula/netplay.h>
#include <nebula/random.h>
#include <nebula/rollback.h>

#include <stdio.h>

#define MS UINT64_C(1000000)
#define TICK_NS UINT64_C(16666667)
#define TICKS 600u

typedef struct player {
    uint32_t index;
    nb_engine *engine;
    nb_netplay *netplay;
    nb_link *link; // to the other
    struct {
        int32_t place, speed;
    } ball; // what is simulated
} player;

// A tick reads commands, one for each player, and nothing that only this machine has.
static nb_result tick(const nb_context *context, void *user) {
    player *p = user;
    for (uint32_t i = 0; i < context->commands.count; ++i) p->ball.speed += context->commands.events[i].payload.i32[0];
    p->ball.speed -= p->ball.speed / 16;
    p->ball.place += p->ball.speed;
    return NB_OK;
}

// What this player does in this tick: here a die decides every quarter of a second, elsewhere a pad.
static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    const player *p = user;
    nb_random die = nb_random_make(1, view->tick->index / 15, p->index);
    event->kind = NB_INPUT_COMMAND;
    event->payload.i32[0] = (int32_t)nb_random_between(die, 0, -5, 5);
}

static bool player_begin(player *p, uint32_t index) {
    *p = (player){.index = index};
    nb_engine_desc desc = nb_engine_desc_default();
    desc.scheduler_desc.worker_count = NB_WORKER_COUNT_NONE;
    desc.is_headless = desc.hashes_ticks = desc.keeps_history = true;
    nb_provider_desc ball = {.name = "ball", .data = &p->ball, .size_bytes = sizeof p->ball};
    nb_module_desc game = {.name = "game", .tick = tick, .user = p};
    nb_netplay_desc match = {.player_count = 2, .local_player = index, .input_delay = 2, .sample = sample, .user = p};
    nb_link_desc link = {.seed = 5, .stream = index};
    link.conditions = (nb_link_conditions){.latency_ns = 60 * MS, .jitter_ns = 40 * MS, .loss_ppm = 200000};
    return nb_engine_create(&desc, &p->engine) == NB_OK &&
           nb_states_add(nb_engine_states(p->engine), &ball, NULL) == NB_OK &&
           nb_engine_module_attach(p->engine, &game, NULL) == NB_OK &&
           nb_netplay_create(p->engine, &match, &p->netplay) == NB_OK && nb_link_create(&link, &p->link) == NB_OK;
}

static void player_end(player *p) {
    nb_netplay_destroy(p->netplay);
    nb_link_destroy(p->link);
    if (p->engine != NULL) nb_engine_destroy(p->engine);
}

// A frame: take what has come, run a tick, tell the other.
static bool player_frame(player *p, nb_link *from, uint64_t now_ns, bool has_tick) {
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size_bytes = 0;
    while (nb_link_receive(from, now_ns, bytes, sizeof bytes, &size_bytes) == NB_OK)
        nb_netplay_receive(p->netplay, 1 - p->index, bytes, size_bytes);
    nb_result result = has_tick ? nb_engine_run_ticks(p->engine, 1) : nb_engine_frame_delta(p->engine, 0);
    if (result == NB_OK) result = nb_netplay_send(p->netplay, 1 - p->index, bytes, sizeof bytes, &size_bytes);
    if (result == NB_OK) nb_link_send(p->link, now_ns, bytes, size_bytes);
    return result == NB_OK;
}

int main(void) {
    static player players[2];
    bool is_fine = player_begin(&players[0], 0) && player_begin(&players[1], 1);
    // Some frames more than ticks, for the last messages to arrive.
    for (uint64_t frame = 0; frame < TICKS + 60 && is_fine; ++frame) {
        for (uint32_t i = 0; i < 2 && is_fine; ++i)
            is_fine = player_frame(&players[i], players[1 - i].link, frame * TICK_NS, frame < TICKS);
    }
    for (uint32_t i = 0; i < 2 && is_fine; ++i) {
        nb_netplay_stats stats = nb_netplay_stats_get(players[i].netplay);
        nb_rollback_stats rolled = nb_engine_rollback_stats(players[i].engine);
        printf("player %d: ball at %d, %d ticks confirmed, %d guesses wrong, %d ticks simulated again\n", (int)i,
               (int)players[i].ball.place, (int)stats.confirmed_count, (int)stats.mispredicted_count,
               (int)rolled.tick_count);
        is_fine = stats.confirmed_count == TICKS && !stats.has_desync && rolled.rollback_count > 0;
    }
    is_fine = is_fine && players[0].ball.place == players[1].ball.place;
    puts(is_fine ? "the same ball" : "something is wrong");
    player_end(&players[0]);
    player_end(&players[1]);
    return is_fine ? 0 : 1;
}
