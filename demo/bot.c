// SPDX-License-Identifier: MIT
// Players who are no people.

#include "bot.h"

#include "nebula/random.h"

#define BOT_STREAM 310 // of nb_random

nb_input_event bot_steer(uint64_t seed, uint32_t player, uint64_t tick) {
    nb_random_block block = nb_random_words(nb_random_make(seed, tick / BOT_HOLD_TICKS, BOT_STREAM), player);
    int32_t side = (int32_t)(block.words[0] % 3) - 1;
    int32_t turn = side * (int32_t)(block.words[1] % PLANET_TURN_MAX);
    bool is_resting = block.words[2] % 8 == 0;
    return planet_steer(player, turn, is_resting ? 0 : PLANET_PACE_MAX);
}

static void play(void *user, nb_tick_view *view) {
    bots *b = user;
    if (view->tick->index % BOT_HOLD_TICKS != 0) return;
    for (uint32_t i = 0; i < PLANET_EXPLORERS; ++i) b->events[i] = bot_steer(b->seed, i, view->tick->index);
    view->commands = (nb_input_view){b->events, PLANET_EXPLORERS};
}

nb_result bots_attach(bots *b, nb_engine *engine, uint64_t seed) {
    b->seed = seed;
    nb_tick_watch watch = {.begin = play, .user = b};
    return nb_engine_watch_add(engine, &watch);
}
