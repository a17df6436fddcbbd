// SPDX-License-Identifier: MIT
#pragma once

// What a tick gets from outside, by its index alone, and how late that comes to those who simulate it.

#include "nebula/input.h"

#define SCRIPT_EVENT_MAX 4u
#define SCRIPT_COMMAND_MAX 2u
#define SCRIPT_LATE_MAX 9u

typedef struct script {
    nb_input_event events[SCRIPT_EVENT_MAX]; // by time
    nb_input_event commands[SCRIPT_COMMAND_MAX];
    uint32_t event_count, command_count;
    uint32_t late; // ticks after which it is known; 0 = in time
} script;

// start_ns: of the slice of time in which its events happen.
script script_of(uint64_t tick, uint64_t start_ns, uint64_t tick_ns);
