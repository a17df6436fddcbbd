// SPDX-License-Identifier: MIT
#pragma once

// What follows the visible part of a channel, and a way for tests to start its positions near a wrap.

#include "nebula/channel.h"

typedef enum nbi_channel_end {
    NBI_CHANNEL_SEND,
    NBI_CHANNEL_RECV,
    NBI_CHANNEL_END_COUNT,
} nbi_channel_end;

// Where the threads of one end wait. Cold: touched only while somebody waits or uses the end's debug check.
typedef struct nbi_channel_gate {
    nb_atomic_u32 event;        // futex word; changes with every wake
    nb_atomic_u32 waiter_count; // threads inside wait_for_turn
    nb_atomic_u64 park_count;   // statistics
    nb_atomic_u64 owner;        // the one thread that may use a single end; 0 = not used yet
} nbi_channel_gate;

typedef struct nbi_channel {
    nb_channel ring; // first: a public pointer is a pointer to this
    nbi_channel_gate gates[NBI_CHANNEL_END_COUNT];
    nb_atomic_u32 guest_count; // threads that may still touch the channel after the step that lets another free it
    nb_atomic_u64 full_count;
    nb_atomic_u64 drained_count;
    nb_atomic_u64 depth_peak;
    uint64_t sample_mask; // sends at positions with none of these bits look at the depth
    uint64_t first_position;
    size_t item_alignment;
    size_t size_bytes; // of the whole allocation, cells included
    nb_channel_kind kind;
    nb_hooks hooks;
    char name[NB_CHANNEL_NAME_SIZE_MAX + 1];
} nbi_channel;

// nb_channel_create with the position of the first send; for tests of the wrap. A multiple of NBI_CHANNEL_STEP.
nb_result nbi_channel_create_at(const nb_channel_desc *desc, uint64_t first_position, nb_channel **channel);

// The two halves of a call without checks: used by the waiting calls too. Both give NB_FULL, NB_EMPTY or NB_CLOSED as
// the public functions do; *done_count is written on NB_OK only.
nb_result nbi_channel_put(nbi_channel *channel, const void *items, size_t count, size_t *done_count);
nb_result nbi_channel_take(nbi_channel *channel, void *items, size_t count_max, size_t *done_count);

// Wakes one thread that waits at an end; UINT32_MAX wakes all.
void nbi_channel_wake(nbi_channel *channel, nbi_channel_end end, uint32_t count);

// Waits for the turn of an end and uses it for one item. Gives NB_OK, NB_CLOSED or NB_TIMEOUT.
nb_result nbi_channel_wait(nbi_channel *channel, nbi_channel_end end, void *item, uint64_t deadline_ns);
