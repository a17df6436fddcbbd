// SPDX-License-Identifier: MIT
#pragma once

// A flight that somebody has written down: a text file that steers the first explorer and says when pictures are taken.
// It is read once, at the start; from then on a tick's commands follow from the file, the seed and the tick alone. The
// one rule: times never go back.
//
//     # when   what
//     0        fly                      walk, fly
//     0        teleport 48.5 -120 900   latitude, longitude, metres above the ground; or: teleport home 3 [metres]
//     0.5      pace 50                  percent of full speed ahead; climb: up
//     +1       turn -20                 a second later: degrees a second to the right; look: up
//     +2.5     shot coast               a picture coast.png; stop: all that holds ends
//
//     char why[SCRIPT_WHY_SIZE];
//     if (!script_read(&s, "flight.txt", seed, tick_rate, why)) fprintf(stderr, "%s\n", why);
//     count = script_commands(&s, 0, tick, events);

#include <stdbool.h>
#include <stdint.h>

#include "nebula/input.h"
#include "nebula/loop.h"

// A line with its comment; commands of a file, of one tick, and pictures: ten times what a long flight has.
#define SCRIPT_LINE_MAX 200u
#define SCRIPT_COMMANDS_MAX 2048u
#define SCRIPT_TICK_COMMANDS_MAX 16u
#define SCRIPT_EVENTS_MAX (SCRIPT_TICK_COMMANDS_MAX + 1)
#define SCRIPT_SHOTS_MAX 128u

// A picture's name with the end of its text.
#define SCRIPT_NAME_SIZE 48

// What is wrong with a file, with its path and line.
#define SCRIPT_WHY_SIZE 512

// The last second that a line may name: as long as a run may last.
#define SCRIPT_SECONDS_MAX 3600

typedef struct script_command {
    uint64_t tick; // that takes it
    nb_input_event event;
} script_command;

typedef struct script_shot {
    char name[SCRIPT_NAME_SIZE]; // letters, digits, '_' and '-'
    uint64_t tick_count;         // it is due when so many ticks have run: those of its line are among them
} script_shot;

typedef struct script {
    script_command commands[SCRIPT_COMMANDS_MAX]; // in the order of their ticks
    uint32_t command_count;
    script_shot shots[SCRIPT_SHOTS_MAX]; // in the order of their ticks
    uint32_t shot_count;
    uint64_t tick_last; // of the last line
} script;

// Reads a file for a planet and a rate of ticks. False, with one line in `why`, where it cannot be read or is wrong.
bool script_read(script *s, const char *path, uint64_t seed, nb_rate tick_rate, char why[SCRIPT_WHY_SIZE]);

// The commands for a player in a tick; ticks may be asked for in any order. Returns how many there are. Tick 0 has one
// more: who flies by a script stands still until it says otherwise.
uint32_t script_commands(const script *s, uint32_t player, uint64_t tick, nb_input_event events[SCRIPT_EVENTS_MAX]);
