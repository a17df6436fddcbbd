// SPDX-License-Identifier: MIT
// Single hashes: taken, and compared with recorded ones.

#include "tick_hashes.h"

#include "nebula/hash.h"

#include <string.h>

// "world/", two names of the world, a dot.
#define PART_NAME_SIZE (6 + 2 * NB_STORE_NAME_SIZE)

nb_store *nbi_hashes_world(nb_engine *engine) {
    nb_states *states = nb_engine_states(engine);
    const char *name = "";
    for (uint32_t i = 0; i < nb_states_count(states); ++i) {
        nb_states_at(states, i, &name);
        if (strcmp(name, "world") == 0) return nb_engine_world(engine);
    }
    return NULL;
}

static uint64_t name_hash(const char *name) { return nb_hash64(name, strlen(name), 0); }

static uint64_t part_name_hash(const nb_store_hash_part *part) {
    char name[PART_NAME_SIZE];
    size_t table_size = strlen(part->table_name), column_size = strlen(part->column_name), size = 6;
    memcpy(name, "world/", size);
    memcpy(name + size, part->table_name, table_size);
    size += table_size;
    if (part->column != NB_STORE_COLUMN_NONE) {
        name[size++] = '.';
        memcpy(name + size, part->column_name, column_size);
        size += column_size;
    }
    return nb_hash64(name, size, 0);
}

uint32_t nbi_hashes_count_max(const nb_store *world) {
    uint32_t count = NB_PROVIDER_COUNT_MAX + (world != NULL ? nb_store_hash_count(world) : 0);
    return count < NB_RECORD_HASH_COUNT_MAX ? count : NB_RECORD_HASH_COUNT_MAX;
}

uint32_t nbi_hashes_take(nb_states *states, const nb_store *world, nb_record_hash *hashes) {
    uint32_t count = 0, part_count = world != NULL ? nb_store_hash_count(world) : 0;
    for (uint32_t i = 0; i < nb_states_count(states); ++i) {
        const char *name;
        nb_provider state = nb_states_at(states, i, &name);
        if ((nb_provider_flags(states, state) & NB_PROVIDER_LOCAL) != 0) continue;
        hashes[count++] = (nb_record_hash){name_hash(name), nb_provider_hash(states, state)};
    }
    // The world's were made with its state's.
    for (uint32_t i = 0; i < part_count && count < NB_RECORD_HASH_COUNT_MAX; ++i) {
        nb_store_hash_part part;
        if (nb_store_hash_at(world, i, &part) == NB_OK)
            hashes[count++] = (nb_record_hash){part_name_hash(&part), part.hash};
    }
    return count;
}

static const nb_record_hash *find(const nb_record_tick *tick, uint64_t name) {
    for (uint32_t i = 0; i < tick->hash_count; ++i) {
        if (tick->hashes[i].name_hash == name) return &tick->hashes[i];
    }
    return NULL;
}

// Whether both have the name, and with another hash. `now` is what stands for `here` where that is NULL.
static bool is_other(const nb_record_tick *here, const nb_record_tick *recorded, uint64_t name, uint64_t now) {
    const nb_record_hash *there = find(recorded, name), *found = here != NULL ? find(here, name) : NULL;
    if (there == NULL || (here != NULL && found == NULL)) return false;
    return there->hash != (found != NULL ? found->hash : now);
}

nbi_hash_location nbi_hashes_compare(nb_states *states, const nb_store *world, const nb_record_tick *here,
                                     const nb_record_tick *recorded) {
    nbi_hash_location location = {.provider = ""};
    uint32_t part_count = world != NULL ? nb_store_hash_count(world) : 0;
    for (uint32_t i = 0; i < nb_states_count(states); ++i) {
        const char *name;
        nb_provider state = nb_states_at(states, i, &name);
        uint64_t now = here == NULL ? nb_provider_hash(states, state) : 0;
        bool is_first = location.provider[0] == '\0' && is_other(here, recorded, name_hash(name), now);
        if (is_first) memcpy(location.provider, name, strlen(name) + 1);
    }
    for (uint32_t i = 0; i < part_count; ++i) {
        nb_store_hash_part part;
        if (nb_store_hash_at(world, i, &part) != NB_OK) continue;
        if (!is_other(here, recorded, part_name_hash(&part), part.hash)) continue;
        if (location.table[0] == '\0') {
            memcpy(location.table, part.table_name, strlen(part.table_name) + 1);
            memcpy(location.column, part.column_name, strlen(part.column_name) + 1);
        }
        if (part.column != NB_STORE_COLUMN_NONE) ++location.column_count;
    }
    return location;
}
