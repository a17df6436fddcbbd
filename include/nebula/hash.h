// SPDX-License-Identifier: MIT
#pragma once

// XXH3, 64 and 128 bits: a fast hash with the same result on every machine, for state, labels and save files.
// The one rule: it finds accidents, not attackers; never use it where somebody may choose the input to collide.
//
//     uint64_t whole = nb_hash64("hello world", 11, 0);
//
//     nb_hash_state state;
//     nb_hash_init(&state, 0);
//     nb_hash_update(&state, "hello ", 6);
//     nb_hash_update(&state, "world", 5);
//     if (nb_hash_digest64(&state) != whole) abort();

#include "nebula/types.h"

// Both sizes come from the algorithm: its secret, and four 64-byte stripes, the least that also holds an input short
// enough (240 bytes) to be hashed in another way.
#define NB_HASH_SECRET_SIZE 192
#define NB_HASH_BUFFER_SIZE 256

// 128 bits as two halves; equal when both are. The canonical bytes are high then low, most significant first.
typedef struct nb_digest128 {
    uint64_t low;
    uint64_t high;
} nb_digest128;

// A hash under way, in the caller's storage; no field is for callers. Copying it forks the hash.
typedef struct nb_hash_state {
    uint64_t lanes[8];                   // the eight running sums
    uint64_t seed;                       // as given to nb_hash_init
    uint64_t total_bytes;                // taken so far
    uint32_t buffered_bytes;             // at the start of buffer, not yet mixed into the lanes
    uint32_t block_stripes;              // stripes of the current block already mixed in, 0..15
    uint32_t mark;                       // tells an initialised state from arbitrary bytes
    uint32_t reserved;                   // zero
    uint8_t secret[NB_HASH_SECRET_SIZE]; // derived from the seed
    uint8_t buffer[NB_HASH_BUFFER_SIZE]; // newest bytes; its last 64 stay readable after they were mixed in
} nb_hash_state;

NB_EXTERN_C_BEGIN

// The 64-bit hash of size_bytes bytes. data may be NULL where size_bytes is 0; any alignment will do.
// Thread: any. Owner: the caller keeps data. Fails: NULL data with a size is reported and hashed as empty.
NB_API uint64_t nb_hash64(const void *data, size_t size_bytes, uint64_t seed);

// The 128-bit hash of size_bytes bytes.
// Thread: any. Owner: the caller keeps data. Fails: NULL data with a size is reported and hashed as empty.
NB_API nb_digest128 nb_hash128(const void *data, size_t size_bytes, uint64_t seed);

// Starts, or starts again, a hash in pieces. There is no deinit: the state holds nothing.
// Thread: one at a time for each state. Owner: the caller keeps the state. Fails: NB_ERR_MISUSE (NULL).
NB_API nb_result nb_hash_init(nb_hash_state *state, uint64_t seed);

// Takes the next piece; any cut of the same bytes gives the same digest.
// Thread: one at a time for each state. Owner: data may change after the call. Fails: NB_ERR_MISUSE (NULL, a state
// without nb_hash_init); the state is unchanged.
NB_API nb_result nb_hash_update(nb_hash_state *state, const void *data, size_t size_bytes);

// The 64-bit hash of everything taken so far, equal to nb_hash64 of it in one piece. More may follow.
// Thread: one at a time for each state. Owner: the state is unchanged. Fails: 0 and a report on NULL or a state without
// nb_hash_init.
NB_API uint64_t nb_hash_digest64(const nb_hash_state *state);

// The 128-bit hash of everything taken so far, equal to nb_hash128 of it in one piece. More may follow.
// Thread: one at a time for each state. Owner: the state is unchanged. Fails: zeros and a report on NULL or a state
// without nb_hash_init.
NB_API nb_digest128 nb_hash_digest128(const nb_hash_state *state);

NB_EXTERN_C_END
