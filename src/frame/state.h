// SPDX-License-Identifier: MIT
#pragma once

// What others of the library read of a registry of states.

#include "nebula/state.h"

// The desc and the name of a provider by its place; NULL beyond the last. desc->name is NULL.
const nb_state_desc *nbi_states_desc_at(const nb_states *states, uint32_t index, const char **name);

// How many were ever added: with the number there are it tells whether any came or went.
uint64_t nbi_states_added_count(const nb_states *states);
