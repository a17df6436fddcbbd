// SPDX-License-Identifier: MIT
#pragma once

// The planet as a game of recordings: what a recording has to say about it, and how it is made from that, for
// nebula-replay and for replays in the demo itself. The one rule: whatever changes what is simulated is in the config.

#include "nebula/loop.h"
#include "nebula/record.h"
#include "nebula/verify.h"

// The bytes of a config in the head of a recording, and their version: larger where the rules of the game change.
#define REPLAY_CONFIG_BYTES 32u
#define REPLAY_CONFIG_VERSION 3u

typedef struct replay_config {
    uint64_t seed;           // of the world
    nb_rate tick_rate;       // ticks a second
    uint64_t teleport_ticks; // between teleports; 0 = never
} replay_config;

// The head of a recording: game, build, rate, seed, and the config, which is written to `bytes`.
nb_record_head replay_head(const replay_config *config, unsigned char bytes[REPLAY_CONFIG_BYTES]);

// The config of a recording. False: it is of another version, or not of this game.
bool replay_config_read(const nb_record_head *head, replay_config *config);

// The game by the name that nebula-replay looks for: only what is simulated, without streaming and picture.
const nb_replay_game *nebula_replay_game(void);
