// SPDX-License-Identifier: MIT
#pragma once

// Random numbers without state: each is a function of (seed, tick, stream, index) and of nothing else, so neither the
// order of the calls nor the thread matters, and a tick that is simulated again draws the same numbers. The one rule:
// two uses in one tick differ in stream or index. A system takes a stream; the index is an entity, a job, or a counter
// that the caller holds.
//
//     nb_random random = nb_random_make(1234, 60, 7); // seed of the world, tick, stream of this system
//     uint32_t draw = 0;
//     uint64_t face = 1 + nb_random_range(random, draw++, 6);
//     float chance = nb_random_float(random, draw++); // 0 <= chance < 1
//     int64_t offset = nb_random_between(random, draw++, -3, 3);
//
// The function is Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2,
// 3", SC 2011): a small block cipher whose key is the seed and whose plain text is {index, stream, tick}. It was chosen
// because it passes every published battery on exactly such inputs, counters that differ in one bit; because distinct
// counters cannot give the same block, so that no two streams overlap; and because it needs nothing but 32-bit
// multiplications and exclusive ors, which every compiler and CPU does alike.

#include "nebula/types.h"

// One stream of one tick. Plain words without padding: it may be copied, saved and hashed.
typedef struct nb_random {
    uint32_t seed[2]; // low and high half
    uint32_t tick[2]; // low and high half
    uint32_t stream;
} nb_random;

// The 128 bits of one index. The functions for numbers below use the first two words; take the block for more.
typedef struct nb_random_block {
    uint32_t words[4];
} nb_random_block;

// The two multipliers and the two key increments of Philox 4x32; the increments are the golden ratio and sqrt(3) - 1.
#define NBI_PHILOX_MULTIPLIER_0 0xD2511F53u
#define NBI_PHILOX_MULTIPLIER_1 0xCD9E8D57u
#define NBI_PHILOX_INCREMENT_0 0x9E3779B9u
#define NBI_PHILOX_INCREMENT_1 0xBB67AE85u
// The authors found 7 to be enough for every battery and recommend 10.
#define NBI_PHILOX_ROUNDS 10

NB_EXTERN_C_BEGIN

NB_INLINE nb_random_block nbi_philox(nb_random_block counter, uint32_t key_0, uint32_t key_1) {
    for (int round = 0; round < NBI_PHILOX_ROUNDS; ++round) {
        uint64_t product_0 = (uint64_t)NBI_PHILOX_MULTIPLIER_0 * counter.words[0];
        uint64_t product_1 = (uint64_t)NBI_PHILOX_MULTIPLIER_1 * counter.words[2];
        counter.words[0] = (uint32_t)(product_1 >> 32) ^ counter.words[1] ^ key_0;
        counter.words[1] = (uint32_t)product_1;
        counter.words[2] = (uint32_t)(product_0 >> 32) ^ counter.words[3] ^ key_1;
        counter.words[3] = (uint32_t)product_0;
        key_0 += NBI_PHILOX_INCREMENT_0;
        key_1 += NBI_PHILOX_INCREMENT_1;
    }
    return counter;
}

// Names one stream of one tick. Costs nothing: the mixing happens in each draw.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_random nb_random_make(uint64_t seed, uint64_t tick, uint32_t stream) {
    nb_random random;
    random.seed[0] = (uint32_t)seed;
    random.seed[1] = (uint32_t)(seed >> 32);
    random.tick[0] = (uint32_t)tick;
    random.tick[1] = (uint32_t)(tick >> 32);
    random.stream = stream;
    return random;
}

// All 128 bits of an index: four numbers for the price of one.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_INLINE nb_random_block nb_random_words(nb_random random, uint32_t index) {
    nb_random_block counter;
    counter.words[0] = index;
    counter.words[1] = random.stream;
    counter.words[2] = random.tick[0];
    counter.words[3] = random.tick[1];
    return nbi_philox(counter, random.seed[0], random.seed[1]);
}

// 32 random bits.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint32_t nb_random_u32(nb_random random, uint32_t index) { return nb_random_words(random, index).words[0]; }

// 64 random bits; the low half is nb_random_u32 of the same index.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE uint64_t nb_random_u64(nb_random random, uint32_t index) {
    nb_random_block block = nb_random_words(random, index);
    return (uint64_t)block.words[1] << 32 | block.words[0];
}

// A multiple of 2^-24 in [0, 1): as many bits as a float holds, so that no value is rounded, up to 1 least of all.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE float nb_random_float(nb_random random, uint32_t index) {
    return (float)(nb_random_u32(random, index) >> 8) * (1.0f / 16777216.0f);
}

// A multiple of 2^-53 in [0, 1).
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE double nb_random_double(nb_random random, uint32_t index) {
    return (double)(nb_random_u64(random, index) >> 11) * (1.0 / 9007199254740992.0);
}

// A number in [0, count), each exactly as likely as any other.
// Thread: any. Owner: nothing. Fails: 0 for count 0, reported.
NB_API uint64_t nb_random_range(nb_random random, uint32_t index, uint64_t count);

// A number in [low, high], both included, each exactly as likely as any other.
// Thread: any. Owner: nothing. Fails: low where high is below it, reported.
NB_API int64_t nb_random_between(nb_random random, uint32_t index, int64_t low, int64_t high);

NB_EXTERN_C_END
