// SPDX-License-Identifier: MIT
// The planet, made from the head of a recording.

#include "replay_game.h"

#include <stdlib.h>
#include <string.h>

#include "../game/planet.h"

// "plnt", so that other bytes are no config.
#define MAGIC 0x746E6C70u
#define GAME_NAME "planet"

// Compilers may round differently where a game leaves them the choice: another one is another build.
#define BUILD_ID "nebula-demo, " __VERSION__

// Integers of files are little-endian.
static void put(unsigned char *at, uint64_t value, uint32_t size_bytes) {
    for (uint32_t i = 0; i < size_bytes; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *at, uint32_t size_bytes) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size_bytes; ++i) value |= (uint64_t)at[i] << 8 * i;
    return value;
}

nb_record_head replay_head(const replay_config *config, unsigned char bytes[REPLAY_CONFIG_BYTES]) {
    put(bytes, MAGIC, 4), put(bytes + 4, REPLAY_CONFIG_VERSION, 4), put(bytes + 8, config->seed, 8);
    put(bytes + 16, config->tick_rate.num, 4), put(bytes + 20, config->tick_rate.den, 4);
    put(bytes + 24, config->teleport_ticks, 8);
    return (nb_record_head){.build_id = BUILD_ID,
                            .game_name = GAME_NAME,
                            .tick_rate = config->tick_rate,
                            .seed = config->seed,
                            .config = bytes,
                            .config_bytes = REPLAY_CONFIG_BYTES};
}

bool replay_config_read(const nb_record_head *head, replay_config *config) {
    const unsigned char *bytes = head->config;
    if (head->config_bytes != REPLAY_CONFIG_BYTES) return false;
    if (get(bytes, 4) != MAGIC || get(bytes + 4, 4) != REPLAY_CONFIG_VERSION) return false;
    *config = (replay_config){.seed = get(bytes + 8, 8),
                              .tick_rate = {.num = (uint32_t)get(bytes + 16, 4), .den = (uint32_t)get(bytes + 20, 4)},
                              .teleport_ticks = get(bytes + 24, 8)};
    return true;
}

static nb_result begin(const nb_record_head *head, nb_engine_desc *desc, void **user) {
    replay_config config;
    if (!replay_config_read(head, &config)) return NB_ERR_UNSUPPORTED;
    planet *p = calloc(1, sizeof *p);
    if (p == NULL) return NB_ERR_MEMORY;
    p->seed = config.seed;
    p->teleport_ticks = config.teleport_ticks;
    desc->loop.tick_rate = config.tick_rate;
    desc->seed = config.seed;
    desc->is_headless = true;
    *user = p;
    return NB_OK;
}

static nb_result attach(void *user, nb_engine *engine) {
    planet *p = user;
    nb_result result = planet_attach(p, engine);
    return result == NB_OK ? planet_populate(p) : result;
}

static void end(void *user) {
    planet_end(user);
    free(user);
}

const nb_replay_game *nebula_replay_game(void) {
    static const nb_replay_game game = {
        .name = GAME_NAME, .build_id = BUILD_ID, .begin = begin, .attach = attach, .end = end};
    return &game;
}
