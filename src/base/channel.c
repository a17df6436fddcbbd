// SPDX-License-Identifier: MIT
// Creating and ending channels, sending, receiving, draining. One ring serves every kind.
//
// Two indices, `tail` for sends and `head` for receives, and a sequence number in each cell. A call claims cells with a
// CAS on its index, copies, and hands each cell to the other end with a release store of its sequence: nobody waits for
// another's copy, and an index word carries the flags of those who wait for it to move (channel_wait.c).
// Closing is a flag in `tail`: a claim that lost against it fails, one that came first will be published, so what the
// closing fetch_or found in `tail` is the exact end of the stream.

#include "channel.h"

#include <string.h>

#include "../platform/platform.h"
#include "base.h"
#include "nebula/arena.h"

NB_STATIC_ASSERT(offsetof(nb_channel, tail) % NB_CACHE_LINE == 0, "senders' index starts a line");
NB_STATIC_ASSERT(offsetof(nb_channel, head) % NB_CACHE_LINE == 0, "receivers' index starts a line");
NB_STATIC_ASSERT(offsetof(nb_channel, tail) >= NBI_CHANNEL_LINE, "senders' index shares no line with the constants");
NB_STATIC_ASSERT(offsetof(nb_channel, head) - offsetof(nb_channel, tail) >= NBI_CHANNEL_LINE, "indices share no line");
NB_STATIC_ASSERT(sizeof(nb_channel) - offsetof(nb_channel, head) >= NBI_CHANNEL_LINE, "nor the cold part with head");
NB_STATIC_ASSERT(sizeof(nbi_channel) % NB_CACHE_LINE == 0, "cells start a line");
NB_STATIC_ASSERT(NBI_CHANNEL_FLAGS < NBI_CHANNEL_STEP, "flags fit below a step");

// Every so many sends look at the depth, and every lap of a smaller ring. The look reads the receivers' cache line, a
// miss that takes about as long as two sends: at 64 it costs 3 %, at 8 it was measured to halve the throughput.
#define SAMPLE_PERIOD_MAX 64

// Drained arrays of items without a stated alignment: what malloc gives.
#define DRAIN_ALIGNMENT_MAX ((size_t)16)

#define NAME_DEFAULT "channel"

static nbi_channel *whole(nb_channel *channel) { return (nbi_channel *)(void *)channel; }
static const nbi_channel *whole_const(const nb_channel *channel) { return (const nbi_channel *)(const void *)channel; }

static uint64_t position_of(uint64_t word) { return word & ~NBI_CHANNEL_FLAGS; }

static uint64_t lap_of(const nb_channel *ring) { return (ring->index_mask + 1) * NBI_CHANNEL_STEP; }

static nbi_channel_cell *cell_at(const nb_channel *ring, uint64_t position) {
    return nbi_channel_cell_at(ring, position, ring->item_size_bytes);
}

// --- life ---

nb_channel_desc nb_channel_desc_default(void) {
    return (nb_channel_desc){
        .name = NAME_DEFAULT,
        .kind = NB_CHANNEL_KIND_MPMC,
        .capacity = NB_CHANNEL_CAPACITY_DEFAULT,
        .hooks = nb_hooks_default(),
    };
}

// The record names the public function, whichever helper finds the mistake.
#define REFUSE_DESC(hooks, result, ...) \
    nbi_fail((hooks), NB_ITEM_CHANNEL_ARGUMENT, (result), "nb_channel_create", __VA_ARGS__)

static nb_result check_desc(const nb_channel_desc *desc, const nb_hooks *hooks) {
    if (desc->item_size_bytes == 0) {
        return REFUSE_DESC(hooks, NB_ERR_MISUSE, "item_size_bytes is 0");
    }
    if (desc->item_alignment != 0 && !nbi_is_power_of_two(desc->item_alignment)) {
        return REFUSE_DESC(hooks, NB_ERR_MISUSE, "item_alignment %zu is no power of two", desc->item_alignment);
    }
    if ((int)desc->kind < 0 || desc->kind >= NB_CHANNEL_KIND_COUNT) {
        return REFUSE_DESC(hooks, NB_ERR_MISUSE, "kind %d does not exist", (int)desc->kind);
    }
    if (desc->item_alignment > NB_ARENA_ALIGNMENT_MAX) { // no arena could take a drained array
        return REFUSE_DESC(hooks, NB_ERR_RANGE, "item_alignment %zu is more than %zu", desc->item_alignment,
                           NB_ARENA_ALIGNMENT_MAX);
    }
    if (desc->capacity > NB_CHANNEL_CAPACITY_MAX) {
        return REFUSE_DESC(hooks, NB_ERR_RANGE, "capacity %zu is more than %zu", desc->capacity,
                           NB_CHANNEL_CAPACITY_MAX);
    }
    return NB_OK;
}

static size_t resolve_capacity(size_t wanted) {
    if (wanted == 0) wanted = NB_CHANNEL_CAPACITY_DEFAULT;
    size_t capacity = 1;
    while (capacity < wanted) capacity *= 2;
    return capacity;
}

static size_t resolve_alignment(const nb_channel_desc *desc) {
    if (desc->item_alignment != 0) return desc->item_alignment;
    size_t divisor = desc->item_size_bytes & (~desc->item_size_bytes + 1); // the lowest bit set
    return divisor < DRAIN_ALIGNMENT_MAX ? divisor : DRAIN_ALIGNMENT_MAX;
}

// One allocation: the object, then its cells.
static bool total_size(size_t item_size_bytes, size_t capacity, size_t *size_bytes) {
    size_t cells_bytes = 0;
    if (item_size_bytes > SIZE_MAX / 2) return false; // the cell's size would wrap
    if (!nbi_size_mul(nbi_channel_cell_size(item_size_bytes), capacity, &cells_bytes)) return false;
    return nbi_size_add(sizeof(nbi_channel), cells_bytes, size_bytes);
}

static void copy_name(char *target, const char *name) {
    if (name == NULL) name = NAME_DEFAULT;
    size_t length = 0;
    while (length < NB_CHANNEL_NAME_SIZE_MAX && name[length] != '\0') ++length;
    memcpy(target, name, length);
    target[length] = '\0';
}

static void init_ring(nbi_channel *channel, size_t capacity, uint64_t first_position) {
    nb_channel *ring = &channel->ring;
    ring->cells = (unsigned char *)(channel + 1);
    ring->index_mask = capacity - 1;
    for (size_t i = 0; i < capacity; ++i) {
        uint64_t position = first_position + i * NBI_CHANNEL_STEP;
        nbi_atomic_store_relaxed_u64(&cell_at(ring, position)->sequence, position);
    }
    nbi_atomic_store_relaxed_u64(&ring->tail, first_position);
    nbi_atomic_store_relaxed_u64(&ring->head, first_position);
    channel->sample_mask = (nbi_min_u64(capacity, SAMPLE_PERIOD_MAX) - 1) * NBI_CHANNEL_STEP;
    // The owner check is in the long way only.
    bool is_checked = NB_ASSERTIONS && channel->kind != NB_CHANNEL_KIND_MPMC;
    ring->fast_mask = is_checked ? 0 : channel->sample_mask;
}

nb_result nbi_channel_create_at(const nb_channel_desc *desc, uint64_t first_position, nb_channel **channel) {
    nb_hooks hooks = nbi_hooks_resolve(&desc->hooks);
    if (channel == NULL) return REFUSE_DESC(&hooks, NB_ERR_MISUSE, "channel is NULL");
    nb_result result = check_desc(desc, &hooks);
    if (result != NB_OK) return result;
    size_t capacity = resolve_capacity(desc->capacity);
    size_t size_bytes = 0;
    if (!total_size(desc->item_size_bytes, capacity, &size_bytes)) {
        return REFUSE_DESC(&hooks, NB_ERR_RANGE, "%zu items of %zu bytes are too much", capacity,
                           desc->item_size_bytes);
    }
    nbi_channel *created = (nbi_channel *)nbi_alloc(&hooks, size_bytes, NBI_CHANNEL_LINE, "nb_channel_create");
    if (created == NULL) return NB_ERR_MEMORY;
    memset(created, 0, sizeof *created);
    created->ring.item_size_bytes = desc->item_size_bytes;
    created->kind = desc->kind == NB_CHANNEL_KIND_DEFAULT ? NB_CHANNEL_KIND_MPMC : desc->kind;
    created->item_alignment = resolve_alignment(desc);
    created->first_position = first_position;
    created->size_bytes = size_bytes;
    created->hooks = hooks;
    copy_name(created->name, desc->name);
    init_ring(created, capacity, first_position);
    *channel = &created->ring;
    return NB_OK;
}

nb_result nb_channel_create(const nb_channel_desc *desc, nb_channel **channel) {
    if (desc == NULL) return NBI_FAIL_NULL("desc");
    return nbi_channel_create_at(desc, 0, channel);
}

static uint64_t depth_now(const nb_channel *ring) {
    // head first: it can only grow, so the difference is never below zero.
    uint64_t head = position_of(nbi_atomic_load_acquire_u64(&ring->head));
    uint64_t tail = position_of(nbi_atomic_load_acquire_u64(&ring->tail));
    return nbi_min_u64((tail - head) / NBI_CHANNEL_STEP, ring->index_mask + 1);
}

void nb_channel_destroy(nb_channel *channel) {
    if (channel == NULL) return;
    nb_channel_close(channel);
    nbi_channel *self = whole(channel);
    // Pairs with the release decrements by which guests leave. They are awake: the close has woken all.
    while (nbi_atomic_load_acquire_u32(&self->guest_count) != 0) nbi_thread_yield();
    uint64_t depth = depth_now(channel);
    if (depth != 0) {
        nbi_log(&self->hooks, NB_LOG_WARNING, NB_ITEM_CHANNEL_UNDRAINED, __func__, "%s: %llu items were still inside",
                self->name, nb_llu(depth));
    }
    nb_hooks hooks = self->hooks;
    nbi_free(&hooks, self, self->size_bytes);
}

// --- claiming, filling and emptying cells ---

typedef struct claim {
    uint64_t position; // of the first cell
    uint64_t count;
    bool must_wake; // the claim took down the flag of the other end's waiters
} claim;

// How many cells from `position` on are in the state `ready` (0 free, NBI_CHANNEL_HELD filled) of their lap. Such a
// cell stays so until its position is claimed.
static uint64_t ready_count(const nb_channel *ring, uint64_t position, uint64_t ready, uint64_t count_max) {
    uint64_t count = 0;
    while (count < count_max) {
        uint64_t at = position + count * NBI_CHANNEL_STEP;
        // Pairs with the release stores in fill_cells and empty_cells.
        if (nbi_atomic_load_acquire_u64(&cell_at(ring, at)->sequence) != at + ready) break;
        ++count;
    }
    return count;
}

// A cell that is not ready is behind (the other end is not done with it) or ahead (another thread of this end took it).
static bool is_behind(const nb_channel *ring, uint64_t position, uint64_t ready) {
    uint64_t sequence = nbi_atomic_load_acquire_u64(&cell_at(ring, position)->sequence);
    return (int64_t)(sequence - (position + ready)) < 0;
}

// Claims up to count_max ready cells at an index. NB_BUSY: the first is not ready. Every further round means that
// another thread of this end made progress, or that a flag was set.
static nb_result claim_cells(nb_channel *ring, nb_atomic_u64 *index, uint64_t ready, uint64_t count_max, claim *out) {
    // acquire: a thread that finds the channel closed may destroy it, and must see the closing thread as a guest.
    uint64_t word = nbi_atomic_load_acquire_u64(index);
    for (;;) {
        if ((word & NBI_CHANNEL_CLOSED) != 0) return NB_CLOSED; // never set in head
        uint64_t position = position_of(word);
        uint64_t count = ready_count(ring, position, ready, count_max);
        if (count == 0) {
            if (is_behind(ring, position, ready)) return NB_BUSY;
            word = nbi_atomic_load_acquire_u64(index);
            continue;
        }
        // seq_cst: one half of the pair "claim, or see that the other end parks"; the other is raise_flag. Taking the
        // flag down here makes this thread the one that wakes.
        if (nbi_atomic_compare_exchange_seq_cst_u64(index, &word, position + count * NBI_CHANNEL_STEP)) {
            *out = (claim){position, count, (word & NBI_CHANNEL_WAITING) != 0};
            return NB_OK;
        }
    }
}

static void fill_cells(nb_channel *ring, const claim *claimed, const unsigned char *items) {
    size_t size_bytes = ring->item_size_bytes;
    for (uint64_t i = 0; i < claimed->count; ++i) {
        uint64_t position = claimed->position + i * NBI_CHANNEL_STEP;
        nbi_channel_cell *cell = cell_at(ring, position);
        memcpy(cell + 1, items + i * size_bytes, size_bytes);
        // Publishes the item; read by the acquire load of the sequence in ready_count and nbi_channel_recv_fast.
        nbi_atomic_store_release_u64(&cell->sequence, position + NBI_CHANNEL_HELD);
    }
}

static void empty_cells(nb_channel *ring, const claim *claimed, unsigned char *items) {
    size_t size_bytes = ring->item_size_bytes;
    for (uint64_t i = 0; i < claimed->count; ++i) {
        uint64_t position = claimed->position + i * NBI_CHANNEL_STEP;
        nbi_channel_cell *cell = cell_at(ring, position);
        memcpy(items + i * size_bytes, cell + 1, size_bytes);
        // Frees the cell; read by the acquire load of the sequence in ready_count and nbi_channel_send_fast.
        nbi_atomic_store_release_u64(&cell->sequence, position + lap_of(ring));
    }
}

// The other end may destroy the channel as soon as the first cell is handed over, unless it finds a guest: a call that
// has more cells to hand over, or somebody to wake.
static bool is_guest(const claim *claimed) { return claimed->must_wake || claimed->count > 1; }

static void guest_enter(nbi_channel *channel, const claim *claimed) {
    if (is_guest(claimed)) nbi_atomic_fetch_add_relaxed_u32(&channel->guest_count, 1);
}

static void guest_wake_and_leave(nbi_channel *channel, const claim *claimed, nbi_channel_end end) {
    if (!is_guest(claimed)) return;
    if (claimed->must_wake) nbi_channel_wake(channel, end, 1);
    nbi_atomic_fetch_sub_release_u32(&channel->guest_count, 1); // read by nb_channel_destroy
}

static void note_depth(nbi_channel *channel, uint64_t depth) {
    uint64_t peak = nbi_atomic_load_relaxed_u64(&channel->depth_peak);
    while (depth > peak && !nbi_atomic_compare_exchange_relaxed_u64(&channel->depth_peak, &peak, depth)) {
    }
}

nb_result nbi_channel_put(nbi_channel *channel, const void *items, size_t count, size_t *done_count) {
    nb_channel *ring = &channel->ring;
    claim claimed;
    nb_result result = claim_cells(ring, &ring->tail, 0, nbi_min_u64(count, ring->index_mask + 1), &claimed);
    if (result != NB_OK) return result == NB_BUSY ? NB_FULL : result;
    bool is_sample = claimed.count > 1 || (claimed.position & channel->sample_mask) == 0;
    if (is_sample) note_depth(channel, depth_now(ring));
    guest_enter(channel, &claimed);
    fill_cells(ring, &claimed, (const unsigned char *)items);
    guest_wake_and_leave(channel, &claimed, NBI_CHANNEL_RECV);
    *done_count = (size_t)claimed.count;
    return NB_OK;
}

// Closed, and every item sent has been claimed by a receiver? Then nothing will come: a closed tail never moves.
static bool is_exhausted(const nb_channel *ring) {
    // Pairs with the release store in nb_channel_close, which comes after the flag in tail.
    if (nbi_atomic_load_acquire_u32(&ring->is_closed) == 0) return false;
    uint64_t tail = nbi_atomic_load_acquire_u64(&ring->tail);
    return position_of(tail) == position_of(nbi_atomic_load_acquire_u64(&ring->head));
}

nb_result nbi_channel_take(nbi_channel *channel, void *items, size_t count_max, size_t *done_count) {
    nb_channel *ring = &channel->ring;
    uint64_t limit = nbi_min_u64(count_max, ring->index_mask + 1);
    claim claimed;
    if (claim_cells(ring, &ring->head, NBI_CHANNEL_HELD, limit, &claimed) != NB_OK) {
        return is_exhausted(ring) ? NB_CLOSED : NB_EMPTY;
    }
    guest_enter(channel, &claimed);
    empty_cells(ring, &claimed, (unsigned char *)items);
    guest_wake_and_leave(channel, &claimed, NBI_CHANNEL_SEND);
    *done_count = (size_t)claimed.count;
    return NB_OK;
}

// --- calls ---

// A single end belongs to the first thread that uses it. Once closed anybody may collect what is left.
static bool may_use(nbi_channel *channel, nbi_channel_end end) {
#if NB_ASSERTIONS
    bool is_single =
        channel->kind == NB_CHANNEL_KIND_SPSC || (channel->kind == NB_CHANNEL_KIND_MPSC && end == NBI_CHANNEL_RECV);
    if (!is_single || nbi_atomic_load_acquire_u32(&channel->ring.is_closed) != 0) return true;
    uint64_t self = nbi_thread_id();
    uint64_t owner = 0;
    if (nbi_atomic_compare_exchange_relaxed_u64(&channel->gates[end].owner, &owner, self)) return true;
    return owner == self;
#else
    (void)channel;
    (void)end;
    return true;
#endif
}

// What every call checks first; `function` is the public one.
static nb_result check_call(nb_channel *channel, nbi_channel_end end, const void *items, size_t count,
                            const size_t *done_count, const char *function) {
    if (channel == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "channel is NULL");
    nbi_channel *self = whole(channel);
    if (items == NULL || count == 0 || done_count == NULL) {
        return nbi_fail(&self->hooks, NB_ITEM_CHANNEL_ARGUMENT, NB_ERR_MISUSE, function,
                        "%s: a pointer is NULL or the count is 0", self->name);
    }
    if (!may_use(self, end)) {
        return nbi_fail(&self->hooks, NB_ITEM_CHANNEL_THREAD, NB_ERR_THREAD, function,
                        "%s: this end belongs to another thread", self->name);
    }
    return NB_OK;
}

static nb_result send_checked(nb_channel *channel, const void *items, size_t count, size_t *sent_count) {
    nbi_channel *self = whole(channel);
    nb_result result = nbi_channel_put(self, items, count, sent_count);
    if (result == NB_FULL) {
        nbi_atomic_fetch_add_relaxed_u64(&self->full_count, 1);
        note_depth(self, channel->index_mask + 1);
    }
    return result;
}

nb_result nb_channel_try_send(nb_channel *channel, const void *item) {
    size_t sent_count = 0;
    nb_result result = check_call(channel, NBI_CHANNEL_SEND, item, 1, &sent_count, __func__);
    return result == NB_OK ? send_checked(channel, item, 1, &sent_count) : result;
}

nb_result nb_channel_try_send_many(nb_channel *channel, const void *items, size_t count, size_t *sent_count) {
    nb_result result = check_call(channel, NBI_CHANNEL_SEND, items, count, sent_count, __func__);
    return result == NB_OK ? send_checked(channel, items, count, sent_count) : result;
}

nb_result nb_channel_send(nb_channel *channel, const void *item, uint64_t deadline_ns) {
    size_t sent_count = 0;
    nb_result result = check_call(channel, NBI_CHANNEL_SEND, item, 1, &sent_count, __func__);
    if (result != NB_OK) return result;
    result = send_checked(channel, item, 1, &sent_count);
    if (result != NB_FULL || deadline_ns == 0) return result;
    return nbi_channel_wait(whole(channel), NBI_CHANNEL_SEND, (void *)(uintptr_t)item, deadline_ns);
}

nb_result nb_channel_try_recv(nb_channel *channel, void *item) {
    size_t received_count = 0;
    nb_result result = check_call(channel, NBI_CHANNEL_RECV, item, 1, &received_count, __func__);
    return result == NB_OK ? nbi_channel_take(whole(channel), item, 1, &received_count) : result;
}

nb_result nb_channel_try_recv_many(nb_channel *channel, void *items, size_t count_max, size_t *received_count) {
    nb_result result = check_call(channel, NBI_CHANNEL_RECV, items, count_max, received_count, __func__);
    return result == NB_OK ? nbi_channel_take(whole(channel), items, count_max, received_count) : result;
}

nb_result nb_channel_recv(nb_channel *channel, void *item, uint64_t deadline_ns) {
    size_t received_count = 0;
    nb_result result = check_call(channel, NBI_CHANNEL_RECV, item, 1, &received_count, __func__);
    if (result != NB_OK) return result;
    result = nbi_channel_take(whole(channel), item, 1, &received_count);
    if (result != NB_EMPTY || deadline_ns == 0) return result;
    return nbi_channel_wait(whole(channel), NBI_CHANNEL_RECV, item, deadline_ns);
}

nb_result nb_channel_drain_max(nb_channel *channel, nb_arena *arena, size_t count_max, void **items, size_t *count) {
    nb_result result = check_call(channel, NBI_CHANNEL_RECV, items, count_max, count, __func__);
    if (result != NB_OK) return result;
    nbi_channel *self = whole(channel);
    if (arena == NULL) return NBI_FAIL(&self->hooks, NB_ITEM_CHANNEL_ARGUMENT, NB_ERR_MISUSE, "arena is NULL");
    note_depth(self, depth_now(channel));
    // Memory first: what cannot be stored is not taken. For a single receiver the number is exact.
    uint64_t head = position_of(nbi_atomic_load_relaxed_u64(&channel->head));
    uint64_t present = ready_count(channel, head, NBI_CHANNEL_HELD, nbi_min_u64(count_max, channel->index_mask + 1));
    if (present == 0) return is_exhausted(channel) ? NB_CLOSED : NB_EMPTY;
    void *memory = nb_arena_alloc(arena, (size_t)present * channel->item_size_bytes, self->item_alignment);
    if (memory == NULL) return NB_ERR_MEMORY;
    result = nbi_channel_take(self, memory, (size_t)present, count);
    if (result != NB_OK) return result;
    nbi_atomic_fetch_add_relaxed_u64(&self->drained_count, *count);
    *items = memory;
    return NB_OK;
}

nb_result nb_channel_drain(nb_channel *channel, nb_arena *arena, void **items, size_t *count) {
    return nb_channel_drain_max(channel, arena, SIZE_MAX, items, count);
}

nb_result nb_channel_close(nb_channel *channel) {
    if (channel == NULL) return NBI_FAIL_NULL("channel");
    nbi_channel *self = whole(channel);
    nbi_atomic_fetch_add_relaxed_u32(&self->guest_count, 1);
    uint64_t tail = nbi_atomic_fetch_or_seq_cst_u64(&channel->tail, NBI_CHANNEL_CLOSED);
    // Read by the acquire load in is_exhausted; the flag in tail must be set before.
    nbi_atomic_store_release_u32(&channel->is_closed, 1);
    if ((tail & NBI_CHANNEL_CLOSED) == 0) {
        nbi_log(&self->hooks, NB_LOG_INFO, NB_ITEM_CHANNEL_CLOSED, __func__, "%s: closed with %llu items inside",
                self->name, nb_llu(depth_now(channel)));
    }
    // Also when it was closed before: the thread that closed first may not have come this far.
    nbi_channel_wake(self, NBI_CHANNEL_SEND, UINT32_MAX);
    nbi_channel_wake(self, NBI_CHANNEL_RECV, UINT32_MAX);
    nbi_atomic_fetch_sub_release_u32(&self->guest_count, 1); // read by nb_channel_destroy
    return NB_OK;
}

nb_result nb_channel_disown(nb_channel *channel) {
    if (channel == NULL) return NBI_FAIL_NULL("channel");
    for (uint32_t end = 0; end < NBI_CHANNEL_END_COUNT; ++end) {
        nbi_atomic_store_relaxed_u64(&whole(channel)->gates[end].owner, 0);
    }
    return NB_OK;
}

// --- questions ---

bool nb_channel_is_closed(const nb_channel *channel) {
    if (channel == NULL) return NBI_FAIL_NULL("channel") != NB_OK;
    return (nbi_atomic_load_acquire_u64(&channel->tail) & NBI_CHANNEL_CLOSED) != 0;
}

const char *nb_channel_name(const nb_channel *channel) {
    if (channel == NULL) NBI_FAIL_NULL("channel");
    return channel != NULL ? whole_const(channel)->name : "";
}

size_t nb_channel_capacity(const nb_channel *channel) {
    if (channel == NULL) NBI_FAIL_NULL("channel");
    return channel != NULL ? (size_t)(channel->index_mask + 1) : 0;
}

nb_channel_stats nb_channel_stats_get(const nb_channel *channel) {
    if (channel == NULL) {
        NBI_FAIL_NULL("channel");
        return (nb_channel_stats){0};
    }
    const nbi_channel *self = whole_const(channel);
    uint64_t head = position_of(nbi_atomic_load_acquire_u64(&channel->head));
    uint64_t tail = position_of(nbi_atomic_load_acquire_u64(&channel->tail));
    uint64_t depth = depth_now(channel);
    return (nb_channel_stats){
        .sent_count = (tail - self->first_position) / NBI_CHANNEL_STEP,
        .received_count = (head - self->first_position) / NBI_CHANNEL_STEP,
        .drained_count = nbi_atomic_load_relaxed_u64(&self->drained_count),
        .full_count = nbi_atomic_load_relaxed_u64(&self->full_count),
        .depth = depth,
        .depth_peak = nbi_max_u64(nbi_atomic_load_relaxed_u64(&self->depth_peak), depth),
        .send_park_count = nbi_atomic_load_relaxed_u64(&self->gates[NBI_CHANNEL_SEND].park_count),
        .recv_park_count = nbi_atomic_load_relaxed_u64(&self->gates[NBI_CHANNEL_RECV].park_count),
    };
}
