// SPDX-License-Identifier: MIT
// Slots with generations. All state that matters lives in one pointer-free block {header, generations, links}, so a
// pool is saved, hashed and rewound as bytes. Because such bytes may come from outside, nothing here trusts an index it
// reads from the block.

#include "nebula/handle.h"

#include "base.h"

// Small enough to create without thought, large enough for a small game.
#define CAPACITY_DEFAULT 1024

// Ends the chain of waiting slots; never an index, which has 24 bits.
#define LINK_NONE UINT32_MAX

typedef struct header {
    uint32_t live_count;
    uint32_t used_count; // slots below it have been used; those above have generation 0
    uint32_t retired_count;
    uint32_t waiting_count;
    uint32_t waiting_first; // released longest ago, next to be used; LINK_NONE when none waits
    uint32_t waiting_last;
} header;

typedef struct pool {
    nb_handle_pool visible; // first: the public pointer is this one
    nb_hooks hooks;
    size_t memory_bytes;
    size_t state_bytes;
    uint64_t generation_last; // a slot released with it is retired
    header *state;
    uint64_t *generations; // odd = live, even = not; counts up by one at each acquire and release
    uint32_t *links; // of a waiting slot: the next one; 0 for every other slot, so that equal states are equal bytes
    uint64_t stale_count;
    uint64_t full_count;
} pool;

NB_STATIC_ASSERT(sizeof(pool) % 8 == 0 && sizeof(header) % 8 == 0, "the block and its generations stay aligned");

static pool *pool_of(nb_handle_pool *handle_pool) { return (pool *)(void *)handle_pool; }
static const pool *const_pool_of(const nb_handle_pool *handle_pool) { return (const pool *)(const void *)handle_pool; }

static nb_handle handle_of(uint64_t generation, uint32_t index) {
    return (nb_handle){generation << NB_HANDLE_INDEX_BITS | index};
}

nb_handle_pool_desc nb_handle_pool_desc_default(void) {
    return (nb_handle_pool_desc){
        .capacity = CAPACITY_DEFAULT, .use_count_max = NB_HANDLE_USE_COUNT_MAX, .hooks = nb_hooks_default()};
}

// Lays struct, header, generations and links out in one allocation. capacity <= 2^24: the sum stays below 2^28.
static pool *allocate(const nb_hooks *hooks, uint32_t capacity, uint64_t use_count_max) {
    size_t generations_bytes = capacity * sizeof(uint64_t);
    size_t state_bytes = sizeof(header) + generations_bytes + capacity * sizeof(uint32_t);
    char *memory = (char *)nbi_alloc(hooks, sizeof(pool) + state_bytes, NB_ALIGNOF(pool), "nb_handle_pool_create");
    if (memory == NULL) return NULL;
    pool *self = (pool *)(void *)memory;
    *self = (pool){
        .hooks = *hooks,
        .memory_bytes = sizeof(pool) + state_bytes,
        .state_bytes = state_bytes,
        .generation_last = 2 * use_count_max - 1,
        .state = (header *)(void *)(memory + sizeof(pool)),
        .generations = (uint64_t *)(void *)(memory + sizeof(pool) + sizeof(header)),
        .links = (uint32_t *)(void *)(memory + sizeof(pool) + sizeof(header) + generations_bytes),
    };
    self->visible = (nb_handle_pool){.generations = self->generations, .capacity = capacity};
    *self->state = (header){.waiting_first = LINK_NONE, .waiting_last = LINK_NONE};
    for (uint32_t i = 0; i < capacity; ++i) self->generations[i] = self->links[i] = 0;
    return self;
}

nb_result nb_handle_pool_create(const nb_handle_pool_desc *desc, nb_handle_pool **out) {
    nb_handle_pool_desc asked = desc != NULL ? *desc : (nb_handle_pool_desc){0};
    nb_hooks hooks = nbi_hooks_resolve(&asked.hooks);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_HANDLE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    if (asked.capacity == 0) asked.capacity = CAPACITY_DEFAULT;
    if (asked.use_count_max == 0) asked.use_count_max = NB_HANDLE_USE_COUNT_MAX;
    if (asked.capacity > NB_HANDLE_CAPACITY_MAX || asked.use_count_max > NB_HANDLE_USE_COUNT_MAX) {
        return NBI_FAIL(&hooks, NB_ITEM_HANDLE_ARGUMENT, NB_ERR_RANGE, "capacity %u or use_count_max %llu is too large",
                        asked.capacity, nb_llu(asked.use_count_max));
    }
    pool *self = allocate(&hooks, asked.capacity, asked.use_count_max);
    if (self == NULL) return NB_ERR_MEMORY;
    *out = &self->visible;
    return NB_OK;
}

// --- acquire and release ---

static bool is_waiting_slot(const pool *self, uint32_t index) {
    return index < self->visible.capacity && index < self->state->used_count && (self->generations[index] & 1) == 0 &&
           self->generations[index] < self->generation_last;
}

static nb_result fail_corrupt(const pool *self, uint32_t index, const char *function) {
    return nbi_fail(&self->hooks, NB_ITEM_BASE_CORRUPT, NB_ERR_RANGE, function, "slot %u has no or two roles", index);
}

static nb_result report_full(pool *self) {
    if (self->full_count++ == 0) {
        nbi_log(&self->hooks, NB_LOG_WARNING, NB_ITEM_HANDLE_FULL, "nb_handle_pool_acquire",
                "all %u slots are live or retired; further refusals are only counted", self->visible.capacity);
    }
    return NB_FULL;
}

static void unlink_first(pool *self, uint32_t index) {
    header *state = self->state;
    state->waiting_first = self->links[index];
    if (state->waiting_first == LINK_NONE) state->waiting_last = LINK_NONE;
    state->waiting_count -= 1;
    self->links[index] = 0;
}

nb_result nb_handle_pool_acquire(nb_handle_pool *handle_pool, nb_handle *out) {
    if (handle_pool == NULL) return NBI_FAIL_NULL("pool");
    pool *self = pool_of(handle_pool);
    header *state = self->state;
    if (out == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_HANDLE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    uint32_t index = state->waiting_first;
    if (index != LINK_NONE) {
        if (!is_waiting_slot(self, index)) return fail_corrupt(self, index, __func__);
        unlink_first(self, index);
    } else {
        index = state->used_count;
        if (index >= handle_pool->capacity) return report_full(self);
        if (self->generations[index] != 0) return fail_corrupt(self, index, __func__);
        state->used_count += 1;
    }
    self->generations[index] += 1;
    state->live_count += 1;
    *out = handle_of(self->generations[index], index);
    return NB_OK;
}

// Puts the slot behind all others that wait: the longer a slot rests, the likelier a stale handle meets an empty slot.
static nb_result link_last(pool *self, uint32_t index) {
    header *state = self->state;
    uint32_t last = state->waiting_last;
    if (last == LINK_NONE) {
        state->waiting_first = index;
    } else {
        if (!is_waiting_slot(self, last)) return fail_corrupt(self, last, "nb_handle_pool_release");
        self->links[last] = index;
    }
    self->links[index] = LINK_NONE;
    state->waiting_last = index;
    state->waiting_count += 1;
    return NB_OK;
}

nb_result nb_handle_pool_release(nb_handle_pool *handle_pool, nb_handle handle) {
    if (handle_pool == NULL) return NBI_FAIL_NULL("pool");
    pool *self = pool_of(handle_pool);
    if (!nb_handle_pool_is_live(handle_pool, handle)) {
        self->stale_count += 1;
        return NBI_FAIL(&self->hooks, NB_ITEM_HANDLE_STALE, NB_ERR_STALE, "handle 0x%llx is not live",
                        nb_llu(handle.value));
    }
    uint32_t index = nb_handle_index(handle);
    bool is_last_use = nb_handle_generation(handle) >= self->generation_last;
    nb_result result = NB_OK;
    if (is_last_use) {
        self->state->retired_count += 1;
    } else {
        result = link_last(self, index);
    }
    if (result != NB_OK) return result;
    self->generations[index] += 1;
    self->state->live_count -= 1;
    return NB_OK;
}

nb_result nb_handle_pool_find(nb_handle_pool *handle_pool, nb_handle handle, uint32_t *out_index) {
    if (handle_pool == NULL) return NBI_FAIL_NULL("pool");
    pool *self = pool_of(handle_pool);
    if (out_index == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_HANDLE_ARGUMENT, NB_ERR_MISUSE, "out_index is NULL");
    if (!nb_handle_pool_is_live(handle_pool, handle)) {
        // No report: asking whether an object still exists is what handles are for.
        self->stale_count += 1;
        return NB_ERR_STALE;
    }
    *out_index = nb_handle_index(handle);
    return NB_OK;
}

nb_handle nb_handle_pool_next(const nb_handle_pool *handle_pool, nb_handle after) {
    if (handle_pool == NULL) {
        NBI_FAIL_NULL("pool");
        return (nb_handle){0};
    }
    const pool *self = const_pool_of(handle_pool);
    uint32_t index = after.value == 0 ? 0 : nb_handle_index(after) + 1;
    uint64_t end = nbi_min_u64(self->state->used_count, handle_pool->capacity);
    for (; index < end; ++index) {
        if (self->generations[index] & 1) return handle_of(self->generations[index], index);
    }
    return (nb_handle){0};
}

// --- state and checks ---

nb_handle_pool_bytes nb_handle_pool_state(nb_handle_pool *handle_pool) {
    if (handle_pool == NULL) {
        NBI_FAIL_NULL("pool");
        return (nb_handle_pool_bytes){0};
    }
    pool *self = pool_of(handle_pool);
    return (nb_handle_pool_bytes){.bytes = self->state, .size_bytes = self->state_bytes};
}

// Counts the roles that the generations give, and compares them with the header.
static bool has_valid_counts(const pool *self) {
    const header *state = self->state;
    uint32_t live = 0, retired = 0, used = 0;
    for (uint32_t i = 0; i < self->visible.capacity; ++i) {
        uint64_t generation = self->generations[i];
        bool is_unused = i >= state->used_count;
        bool has_stray_link = self->links[i] != 0 && !is_waiting_slot(self, i);
        if (is_unused != (generation == 0) || generation > self->generation_last + 1 || has_stray_link) {
            fail_corrupt(self, i, "nb_handle_pool_is_valid");
            return false;
        }
        live += generation & 1;
        retired += generation > self->generation_last;
        used += !is_unused;
    }
    bool is_valid = state->live_count == live && state->retired_count == retired && state->used_count == used &&
                    (uint64_t)live + retired + state->waiting_count == used;
    if (!is_valid) {
        nbi_fail(&self->hooks, NB_ITEM_BASE_CORRUPT, NB_ERR_RANGE, "nb_handle_pool_is_valid",
                 "counts do not agree with the %u slots", self->visible.capacity);
    }
    return is_valid;
}

// Follows the chain: exactly waiting_count slots, all waiting, ending at waiting_last. A slot met twice would make it
// longer than that, so the bound also ends a ring.
static bool has_valid_chain(const pool *self) {
    const header *state = self->state;
    uint32_t index = state->waiting_first, previous = LINK_NONE;
    for (uint32_t i = 0; i < state->waiting_count; ++i) {
        if (!is_waiting_slot(self, index)) {
            fail_corrupt(self, index, "nb_handle_pool_is_valid");
            return false;
        }
        previous = index;
        index = self->links[index];
    }
    if (index == LINK_NONE && previous == state->waiting_last) return true;
    fail_corrupt(self, previous, "nb_handle_pool_is_valid");
    return false;
}

bool nb_handle_pool_is_valid(const nb_handle_pool *handle_pool) {
    if (handle_pool == NULL) {
        NBI_FAIL_NULL("pool");
        return false;
    }
    const pool *self = const_pool_of(handle_pool);
    return has_valid_counts(self) && has_valid_chain(self);
}

nb_handle_pool_stats nb_handle_pool_stats_get(const nb_handle_pool *handle_pool) {
    if (handle_pool == NULL) {
        NBI_FAIL_NULL("pool");
        return (nb_handle_pool_stats){0};
    }
    const pool *self = const_pool_of(handle_pool);
    return (nb_handle_pool_stats){
        .capacity = handle_pool->capacity,
        .live_count = self->state->live_count,
        .used_count = self->state->used_count,
        .retired_count = self->state->retired_count,
        .stale_count = self->stale_count,
        .full_count = self->full_count,
    };
}

void nb_handle_pool_destroy(nb_handle_pool *handle_pool) {
    if (handle_pool == NULL) return;
    pool *self = pool_of(handle_pool);
    nb_hooks hooks = self->hooks;
    nbi_free(&hooks, self, self->memory_bytes);
}
