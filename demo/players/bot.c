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
    return planet_steer(player, turn, 0, is_resting ? 0 : PLANET_PACE_MAX);
}

static void play(void *user, nb_tick_view *view) {
    bots *b = user;
    if (b->is_over != NULL && *b->is_over) return;
    uint64_t tick = view->tick->index;
    uint32_t count = b->script != NULL ? script_commands(b->script, 0, tick, b->events)
                                       : flight_commands(b->seed, 0, tick, b->events);
    for (uint32_t i = 1; i < PLANET_EXPLORERS && tick % BOT_HOLD_TICKS == 0; ++i)
        b->events[count++] = bot_steer(b->seed, i, tick);
    if (count > 0) view->commands = (nb_input_view){b->events, count};
}

nb_result bots_attach(bots *b, nb_engine *engine, uint64_t seed) {
    b->seed = seed;
    nb_tick_watch watch = {.begin = play, .user = b};
    return nb_engine_watch_add(engine, &watch);
}
