// SPDX-License-Identifier: MIT
#pragma once

// What others of the library read of a registry of states.

#include "nebula/state.h"

// The desc and the name of a provider by its place; NULL beyond the last. desc->name is NULL.
const nb_provider_desc *nbi_states_desc_at(const nb_states *states, uint32_t index, const char **name);

const nb_hooks *nbi_states_hooks(const nb_states *states);

// How many were ever added: with the number there are it tells whether any came or went.
uint64_t nbi_states_added_count(const nb_states *states);

// Whether the bytes are a whole save of exactly these providers: NB_OK, NB_ERR_UNSUPPORTED, NB_ERR_RANGE.
nb_result nbi_states_check(const nb_states *states, const void *bytes, size_t size_bytes);

// One provider's part of a save.
typedef struct nbi_saved_part {
    uint32_t provider_end; // its place + 1
    const unsigned char *bytes;
    size_t size_bytes;
    size_t end; // where the next part begins
} nbi_saved_part;

// Goes to the next part of a save that was checked; zeros before the first. False behind the last.
bool nbi_saved_part_next(const nb_states *states, const void *bytes, nbi_saved_part *part);

// A load comes to this provider when no other can refuse any more: it checks all of its part before it changes.
void nbi_states_load_last(nb_states *states, nb_provider state);

// How often other state was loaded.
uint64_t nbi_states_load_count(const nb_states *states);

// nb_states_load for `function`, which reports name.
nb_result nbi_states_load(nb_states *states, const void *bytes, size_t size_bytes, const char *function);

// Whether a provider is being called, by whomever: an engine does nothing under it that changes or ends it.
bool nbi_states_are_calling(const nb_states *states);
