// SPDX-License-Identifier: MIT
// Random numbers of a range. The rest is inline in the header.

#include "nebula/random.h"

#include "../../base/base.h"

NB_STATIC_ASSERT(sizeof(nb_random) == 20, "it is saved and hashed as bytes: no padding");

// Blocks tried before giving up. Each holds two candidates, each good with more than one half: not in 2^-128 of all
// draws is this bound met, and then the result is one that is allowed, if not exactly as likely.
#define ATTEMPT_COUNT_MAX 64

// The smallest 2^n - 1 that is not below value.
static uint64_t mask_above(uint64_t value) {
    for (unsigned shift = 1; shift < 64; shift *= 2) value |= value >> shift;
    return value;
}

static uint64_t half_of(const nb_random_block *block, unsigned half) {
    return (uint64_t)block->words[2 * half + 1] << 32 | block->words[2 * half];
}

// Cuts to the next power of two and throws away what is still too large: with a remainder instead, the low numbers of a
// range that does not divide 2^64 would come more often.
static uint64_t up_to(nb_random random, uint32_t index, uint64_t last) {
    uint64_t mask = mask_above(last);
    nb_random_block block = nb_random_words(random, index);
    for (int attempt = 0; attempt < ATTEMPT_COUNT_MAX; ++attempt) {
        for (unsigned half = 0; half < 2; ++half) {
            uint64_t candidate = half_of(&block, half) & mask;
            if (candidate <= last) return candidate;
        }
        // The next block has to depend on this index alone: the neighbours' belong to their own draws. The cipher of
        // the block itself is as good as new.
        block = nbi_philox(block, random.seed[0], random.seed[1]);
    }
    return half_of(&block, 0) % (last + 1);
}

uint64_t nb_random_range(nb_random random, uint32_t index, uint64_t count) {
    if (count == 0) {
        NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, "count is 0");
        return 0;
    }
    return up_to(random, index, count - 1);
}

int64_t nb_random_between(nb_random random, uint32_t index, int64_t low, int64_t high) {
    if (high < low) {
        NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_MISUSE, "%lld is above %lld", (long long)low, (long long)high);
        return low;
    }
    // Unsigned: the distance of two signed numbers may not fit a signed one. The way back to signed does not overflow
    // either, because it is done on either side of zero.
    uint64_t offset = up_to(random, index, (uint64_t)high - (uint64_t)low);
    uint64_t value = (uint64_t)low + offset;
    return value <= INT64_MAX ? (int64_t)value : -(int64_t)(UINT64_MAX - value) - 1;
}
