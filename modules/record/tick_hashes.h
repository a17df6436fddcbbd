// SPDX-License-Identifier: MIT
#pragma once

// The single hashes of a tick: of each state that is not local, by its name; then of each part of the world that was
// hashed, by "world/table" (which rows there are) and "world/table.column". What a recorder writes and what a replay
// compares.

#include "nebula/engine.h"
#include "nebula/record.h"

// The engine's world where it has one, else NULL; makes none. Between frames.
nb_store *nbi_hashes_world(nb_engine *engine);

// How many there may be, also of states that are still to come: up to NB_RECORD_HASH_COUNT_MAX. The world may be NULL.
uint32_t nbi_hashes_count_max(const nb_store *world);

// Hashes all states and writes up to NB_RECORD_HASH_COUNT_MAX; returns how many. The world may be NULL.
uint32_t nbi_hashes_take(nb_states *states, const nb_store *world, nb_record_hash *hashes);

// Where states are not those of a recorded tick.
typedef struct nbi_hash_location {
    char provider[NB_PROVIDER_NAME_SIZE_MAX + 1]; // the first that differs; "" = none does, or none was recorded
    char table[NB_STORE_NAME_SIZE];               // the first of the world that differs
    char column[NB_STORE_NAME_SIZE];              // of it; "" = its rows
    uint32_t column_count;                        // columns that differ
} nbi_hash_location;

// `here` is another recorded tick; NULL = the states of now. Names are those of the states and the world.
nbi_hash_location nbi_hashes_compare(nb_states *states, const nb_store *world, const nb_record_tick *here,
                                     const nb_record_tick *recorded);
