// SPDX-License-Identifier: MIT
#pragma once

// The commands that handlers have sent to the next tick.

#include "nebula/input.h"

typedef struct nbi_commands {
    nb_input_event *all; // desc.command_count_max
    uint32_t count;
} nbi_commands;

struct nb_engine;

nb_result nbi_commands_create(struct nb_engine *engine);
void nbi_commands_destroy(struct nb_engine *engine);

// Puts other commands in the place of those that wait; at most desc.command_count_max. They may be a part of these.
void nbi_commands_replace(struct nb_engine *engine, nb_input_view commands);
