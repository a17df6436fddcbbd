// SPDX-License-Identifier: MIT
// An engine for a store of one's own: entities of many kinds in memory that Nebula knows nothing about. Two callbacks,
// save and load, are enough for a hash of every tick, for saves, and for going back to one.

#include "nebula/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- the store: a list of components of any kind, as somebody might have written it ---

typedef enum component_kind { KIND_ROCK = 1, KIND_BIRD } component_kind;

typedef struct component {
    uint32_t entity, kind;
    int32_t x, speed;
} component;

typedef struct store {
    component *components; // grows
    uint32_t count, capacity, next_entity;
} store;

static bool store_reserve(store *s, uint32_t count) {
    if (count <= s->capacity) return true;
    component *larger = realloc(s->components, 2 * (size_t)count * sizeof *larger);
    if (larger == NULL) return false;
    s->components = larger;
    s->capacity = 2 * count;
    return true;
}

static bool store_add(store *s, component_kind kind, int32_t x, int32_t speed) {
    if (!store_reserve(s, s->count + 1)) return false;
    s->components[s->count++] = (component){s->next_entity++, (uint32_t)kind, x, speed};
    return true;
}

// --- what the engine needs of it ---

// How many bytes it takes; written where they fit. No pointers in them, no padding: the same store, the same bytes.
static size_t save(void *user, void *bytes, size_t capacity_bytes) {
    const store *s = user;
    uint32_t head[2] = {s->count, s->next_entity};
    size_t size_bytes = sizeof head + s->count * sizeof *s->components;
    if (bytes == NULL || size_bytes > capacity_bytes) return size_bytes;
    memcpy(bytes, head, sizeof head);
    if (s->count != 0) memcpy((char *)bytes + sizeof head, s->components, s->count * sizeof *s->components);
    return size_bytes;
}

// All or nothing.
static nb_result load(void *user, const void *bytes, size_t size_bytes) {
    store *s = user;
    uint32_t head[2];
    if (size_bytes < sizeof head) return NB_ERR_RANGE;
    memcpy(head, bytes, sizeof head);
    if ((size_bytes - sizeof head) / sizeof *s->components != head[0]) return NB_ERR_RANGE;
    if (!store_reserve(s, head[0])) return NB_ERR_MEMORY;
    s->count = head[0], s->next_entity = head[1];
    if (s->count != 0) memcpy(s->components, (const char *)bytes + sizeof head, s->count * sizeof *s->components);
    return NB_OK;
}

// --- the game ---

static nb_result fly(const nb_context *context, void *user) {
    store *s = user;
    for (uint32_t i = 0; i < s->count; ++i) {
        component *c = &s->components[i];
        if (c->kind != KIND_BIRD) continue;
        c->x += c->speed;
        if (c->x % 100 == 0) c->speed = -c->speed;
    }
    bool is_added = context->tick->index % 10 != 0 || store_add(s, KIND_BIRD, (int32_t)context->tick->index + 1, 3);
    return is_added ? NB_OK : NB_ERR_MEMORY;
}

int main(void) {
    store s = {.next_entity = 1};
    nb_engine_desc desc = {.is_headless = true, .hashes_ticks = true};
    nb_engine *engine = NULL;
    if (!store_add(&s, KIND_ROCK, 5, 0) || nb_engine_create(&desc, &engine) != NB_OK) return 1;
    nb_provider_desc state = {.name = "store", .save = save, .load = load, .user = &s};
    nb_module_desc module = {.name = "birds", .tick = fly, .user = &s};
    nb_states *states = nb_engine_states(engine);
    nb_result result = nb_states_add(states, &state, NULL);
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    if (result == NB_OK) result = nb_engine_run_ticks(engine, 100);

    size_t size_bytes = 0;
    nb_states_save(states, NULL, 0, &size_bytes); // how much?
    void *kept = malloc(size_bytes);
    if (result == NB_OK) result = kept != NULL ? nb_states_save(states, kept, size_bytes, &size_bytes) : NB_ERR_MEMORY;
    uint64_t then = nb_engine_stats_get(engine).tick_hash;
    printf("tick 100: %u components, state %016llx\n", s.count, (unsigned long long)then);
    if (result == NB_OK) result = nb_engine_run_ticks(engine, 50);
    uint64_t later = nb_engine_stats_get(engine).tick_hash;
    printf("tick 150: %u components, state %016llx\n", s.count, (unsigned long long)later);
    if (result == NB_OK) result = nb_states_load(states, kept, size_bytes);
    printf("back:     %u components, state %016llx\n", s.count, (unsigned long long)nb_states_hash(states));
    bool is_good = result == NB_OK && nb_states_hash(states) == then && later != then;
    is_good = nb_engine_destroy(engine) == NB_OK && is_good;
    free(kept);
    free(s.components);
    return is_good ? 0 : 1;
}
