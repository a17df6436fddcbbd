// SPDX-License-Identifier: MIT
// Two players over a virtual link.

#include "two_players.h"

#include <stdio.h>

#include "../game/planet.h"
#include "../players/bot.h"
#include "nebula/engine.h"
#include "nebula/link.h"
#include "nebula/netplay.h"
#include "nebula/report.h"
#include "nebula/rollback.h"

#define PLAYERS 2u

// Own steering counts two ticks later: nobody feels it, and most guesses of short ways are spared.
#define INPUT_DELAY 2u

// Seconds that may pass at the end until all is confirmed: where most messages are lost it takes some tries.
#define TAIL_SECONDS 30u

#define PPM 1e6

typedef struct player {
    uint32_t index;
    uint64_t seed;
    nb_engine *engine;
    planet planet;
    nb_netplay *netplay;
    nb_link *link;       // from this one to the other
    uint32_t hold_count; // ticks to hold back, because this one is ahead
} player;

typedef struct players {
    const demo_options *options;
    nb_scheduler *scheduler;
    player each[PLAYERS];
    uint64_t step;            // frames of each so far
    uint64_t second;          // printed last
    uint64_t compared_count;  // ticks that both have confirmed
    uint64_t differ_count;    // of them, those with different states,
    uint64_t differ_tick;     // the first,
    uint64_t hashes[PLAYERS]; // and the states after the newest
} players;

// --- beginning and end ---

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    const player *p = user;
    *event = bot_steer(p->seed, p->index, view->tick->index);
}

static nb_result link_begin(player *p, const demo_options *o) {
    nb_link_desc desc = {.seed = o->seed, .stream = p->index, .message_bytes_max = NB_NETPLAY_MESSAGE_BYTES_MAX};
    desc.conditions = (nb_link_conditions){
        .latency_ns = o->lag_ns, .jitter_ns = o->jitter_ns, .loss_ppm = (uint32_t)(o->loss * PPM + 0.5)};
    return nb_link_create(&desc, &p->link);
}

static nb_result player_begin(player *p, uint32_t index, const demo_options *o, nb_scheduler *scheduler) {
    *p = (player){.index = index, .seed = o->seed};
    nb_engine_desc desc = {.loop = {.tick_rate = o->tick_rate},
                           .scheduler = scheduler,
                           .is_headless = true,
                           .hashes_ticks = true,
                           .keeps_history = true,
                           .seed = o->seed};
    nb_result result = nb_engine_create(&desc, &p->engine);
    p->planet.seed = o->seed;
    p->planet.teleport_ticks = o->teleport_ticks;
    p->planet.player = index;
    if (result == NB_OK) result = planet_attach(&p->planet, p->engine);
    if (result == NB_OK) result = planet_populate(&p->planet);
    nb_netplay_desc netplay = {.player_count = PLAYERS,
                               .local_player = index,
                               .input_delay = INPUT_DELAY,
                               .session = o->seed,
                               .sample = sample,
                               .user = p};
    if (result == NB_OK) result = nb_netplay_create(p->engine, &netplay, &p->netplay);
    return result == NB_OK ? link_begin(p, o) : result;
}

static nb_result begin(players *all, const demo_options *o) {
    *all = (players){.options = o};
    nb_scheduler_desc scheduler = {.worker_count = o->worker_count};
    nb_result result = nb_scheduler_create(&scheduler, &all->scheduler);
    for (uint32_t i = 0; i < PLAYERS && result == NB_OK; ++i)
        result = player_begin(&all->each[i], i, o, all->scheduler);
    return result;
}

static nb_result end(players *all) {
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < PLAYERS && result == NB_OK; ++i) {
        player *p = &all->each[i];
        result = nb_netplay_destroy(p->netplay);
        nb_link_destroy(p->link);
        if (result == NB_OK && p->engine != NULL) result = nb_engine_destroy(p->engine);
        if (result == NB_OK) planet_end(&p->planet);
    }
    if (result == NB_OK && all->scheduler != NULL) result = nb_scheduler_destroy(all->scheduler);
    return result;
}

// --- a step: a frame of each ---

static uint64_t now_ns(const players *all) {
    nb_rate rate = all->options->tick_rate;
    return all->step * UINT64_C(1000000000) * rate.den / rate.num;
}

static void receive(const players *all, player *p) {
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size_bytes = 0;
    nb_link *from = all->each[1 - p->index].link;
    while (nb_link_receive(from, now_ns(all), bytes, sizeof bytes, &size_bytes) == NB_OK)
        nb_netplay_receive(p->netplay, 1 - p->index, bytes, size_bytes);
}

static nb_result send(const players *all, player *p) {
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size_bytes = 0;
    nb_result result = nb_netplay_send(p->netplay, 1 - p->index, bytes, sizeof bytes, &size_bytes);
    if (result == NB_OK) nb_link_send(p->link, now_ns(all), bytes, size_bytes); // full is lost, too
    return result;
}

// One tick, or none where the player is at the end or ahead of the other.
static nb_result frame(const players *all, player *p) {
    receive(all, p);
    uint64_t end_tick = all->options->tick_count;
    bool has_tick = end_tick == 0 || nb_netplay_stats_get(p->netplay).tick_count < end_tick;
    p->hold_count += nb_netplay_advice_get(p->netplay).hold_tick_count;
    if (has_tick && p->hold_count != 0) --p->hold_count, has_tick = false;
    nb_result result = has_tick ? nb_engine_run_ticks(p->engine, 1) : nb_engine_frame_delta(p->engine, 0);
    return result == NB_OK ? send(all, p) : result;
}

static uint64_t confirmed_of(const players *all) {
    uint64_t first = nb_netplay_stats_get(all->each[0].netplay).confirmed_count;
    uint64_t second = nb_netplay_stats_get(all->each[1].netplay).confirmed_count;
    return first < second ? first : second;
}

// Every tick that both have confirmed.
static nb_result compare(players *all) {
    uint64_t confirmed = confirmed_of(all);
    while (all->compared_count < confirmed) {
        uint64_t tick_count = all->compared_count + 1;
        for (uint32_t i = 0; i < PLAYERS; ++i) {
            nb_result result = nb_netplay_hash_get(all->each[i].netplay, tick_count, &all->hashes[i]);
            if (result != NB_OK) return result;
        }
        bool is_same = all->hashes[0] == all->hashes[1];
        if (!is_same && all->differ_count++ == 0) all->differ_tick = tick_count - 1;
        all->compared_count = tick_count;
    }
    return NB_OK;
}

// --- output ---

static players_result sum_up(const players *all) {
    players_result s = {.tick_count = all->compared_count,
                        .differ_count = all->differ_count,
                        .differ_tick = all->differ_tick,
                        .state_hash = all->hashes[0]};
    for (uint32_t i = 0; i < PLAYERS; ++i) {
        nb_rollback_stats rolled = nb_engine_rollback_stats(all->each[i].engine);
        nb_netplay_stats played = nb_netplay_stats_get(all->each[i].netplay);
        nb_link_stats sent = nb_link_stats_get(all->each[i].link);
        s.rollback_count += rolled.rollback_count;
        s.depth_max = rolled.depth_max > s.depth_max ? rolled.depth_max : s.depth_max;
        s.again_count += rolled.tick_count;
        s.wrong_count += played.mispredicted_count;
        s.sent_count += sent.sent_count;
        s.lost_count += sent.lost_count + sent.dropped_count;
        s.stall_count += played.stall_count;
        nb_smooth_stats drawn = nb_smooth_stats_get(&all->each[i].planet.smooth);
        s.blend_count += drawn.blend_count;
        s.snap_count += drawn.snap_count;
    }
    return s;
}

static void print_header(const demo_options *o) {
    printf("two players, %.0f ms apart and up to %.0f ms more, %.0f %% of their messages lost\n",
           (double)o->lag_ns / 1e6, (double)o->jitter_ns / 1e6, o->loss * 100);
    puts("  time    tick  confirmed  rollbacks  deepest    again    wrong    lost  stalls        state hash");
}

// A line for each second that both have come to.
static void print_second(players *all) {
    uint64_t first = nb_netplay_stats_get(all->each[0].netplay).tick_count;
    uint64_t second = nb_netplay_stats_get(all->each[1].netplay).tick_count;
    uint64_t tick_count = first < second ? first : second;
    nb_rate rate = all->options->tick_rate;
    uint64_t time_s = tick_count * rate.den / rate.num;
    if (time_s == all->second) return;
    all->second = time_s;
    players_result s = sum_up(all);
    printf("%4llu s  %6llu  %9llu  %9llu  %7llu  %7llu  %7llu  %6llu  %6llu  %016llx %s\n", nb_llu(time_s),
           nb_llu(tick_count), nb_llu(all->compared_count), nb_llu(s.rollback_count), nb_llu(s.depth_max),
           nb_llu(s.again_count), nb_llu(s.wrong_count), nb_llu(s.lost_count), nb_llu(s.stall_count),
           nb_llu(all->hashes[0]), all->hashes[0] == all->hashes[1] ? "agreed" : "DIFFERENT");
    fflush(stdout);
}

static void print_summary(const players *all) {
    players_result s = sum_up(all);
    nb_netplay_peer peer = {0};
    nb_netplay_peer_get(all->each[0].netplay, 1, &peer);
    printf("ticks       %llu confirmed by both\n", nb_llu(s.tick_count));
    printf("messages    %llu sent, %llu lost, %u ticks there and back\n", nb_llu(s.sent_count), nb_llu(s.lost_count),
           peer.rtt_ticks);
    printf("guesses     %llu wrong, put right in %llu rollbacks of %llu ticks, %llu at most\n", nb_llu(s.wrong_count),
           nb_llu(s.rollback_count), nb_llu(s.again_count), nb_llu(s.depth_max));
    printf("drawn       %llu corrections blended, %llu jumped\n", nb_llu(s.blend_count), nb_llu(s.snap_count));
    if (s.differ_count != 0)
        printf("DIFFERENT   from tick %llu on\n", nb_llu(s.differ_tick));
    else
        printf("state hash  %016llx, the same after every tick\n", nb_llu(s.state_hash));
}

// --- the run ---

static bool is_done(const players *all) {
    uint64_t end_tick = all->options->tick_count;
    return end_tick != 0 && all->compared_count == end_tick;
}

static nb_result step(players *all) {
    nb_result result = all->options->is_virtual ? NB_OK : nb_loop_pace(nb_engine_loop(all->each[0].engine));
    for (uint32_t i = 0; i < PLAYERS && result == NB_OK; ++i) result = frame(all, &all->each[i]);
    if (result == NB_OK) result = compare(all);
    ++all->step;
    return result;
}

// As long as the ticks take, and then some.
static nb_result run(players *all) {
    nb_rate rate = all->options->tick_rate;
    uint64_t step_max = 4 * all->options->tick_count + TAIL_SECONDS * rate.num / rate.den;
    nb_result result = NB_OK;
    while (result == NB_OK && !is_done(all)) {
        if (all->options->tick_count != 0 && all->step == step_max) return NB_TIMEOUT;
        result = step(all);
        print_second(all);
    }
    return result;
}

int players_run(const demo_options *options, players_result *result) {
    static players all; // its planets are large
    nb_result ran = begin(&all, options);
    print_header(options);
    if (ran == NB_OK) ran = run(&all);
    if (ran == NB_OK) print_summary(&all);
    if (ran == NB_OK && result != NULL) *result = sum_up(&all);
    if (ran != NB_OK) fprintf(stderr, "nebula-demo: %s\n", nb_result_name(ran));
    bool is_agreed = ran == NB_OK && all.differ_count == 0;
    nb_result ended = end(&all);
    return is_agreed && ended == NB_OK ? 0 : 1;
}
