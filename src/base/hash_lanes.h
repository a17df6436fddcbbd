// SPDX-License-Identifier: MIT
#pragma once

// The inner loop of XXH3: eight 64-bit lanes that take 64 bytes at a time. One portable form, and SSE2 and NEON forms
// of the same sums, because compilers do not find the 32 x 32 -> 64 bit multiplication in the portable loop at -O2.

#include "nebula/types.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>
#endif

#define NBI_LANE_COUNT 8
#define NBI_STRIPE_SIZE 64

// Input and secret are little-endian whatever the machine is. The swap is its own inverse: it serves both ways.
static inline uint64_t nbi_to_le64(uint64_t value) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(value);
#else
    return value;
#endif
}

static inline uint64_t nbi_read_le64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return nbi_to_le64(value);
}

#if defined(__SSE2__)

// One 16-byte pair of lanes: each gets the product of the halves of (input xor secret), and its neighbour's input.
static inline __m128i nbi_lane_pair(__m128i lanes, const uint8_t *input, const uint8_t *secret) {
    __m128i data = _mm_loadu_si128((const __m128i *)(const void *)input);
    __m128i keyed = _mm_xor_si128(data, _mm_loadu_si128((const __m128i *)(const void *)secret));
    __m128i product = _mm_mul_epu32(keyed, _mm_srli_epi64(keyed, 32));
    __m128i neighbour = _mm_shuffle_epi32(data, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm_add_epi64(product, _mm_add_epi64(lanes, neighbour));
}

// Mixes `count` stripes into the lanes; the secret moves on by 8 bytes a stripe.
static inline void nbi_lanes_accumulate(uint64_t *lanes, const uint8_t *input, const uint8_t *secret, size_t count) {
    __m128i *stored = (__m128i *)(void *)lanes;
    __m128i a = _mm_loadu_si128(stored), b = _mm_loadu_si128(stored + 1);
    __m128i c = _mm_loadu_si128(stored + 2), d = _mm_loadu_si128(stored + 3);
    for (size_t i = 0; i < count; ++i, input += NBI_STRIPE_SIZE, secret += 8) {
        a = nbi_lane_pair(a, input, secret);
        b = nbi_lane_pair(b, input + 16, secret + 16);
        c = nbi_lane_pair(c, input + 32, secret + 32);
        d = nbi_lane_pair(d, input + 48, secret + 48);
    }
    _mm_storeu_si128(stored, a);
    _mm_storeu_si128(stored + 1, b);
    _mm_storeu_si128(stored + 2, c);
    _mm_storeu_si128(stored + 3, d);
}

#elif defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)

static inline uint64x2_t nbi_lane_pair(uint64x2_t lanes, const uint8_t *input, const uint8_t *secret) {
    uint64x2_t data = vreinterpretq_u64_u8(vld1q_u8(input));
    uint64x2_t keyed = veorq_u64(data, vreinterpretq_u64_u8(vld1q_u8(secret)));
    uint64x2_t sum = vaddq_u64(lanes, vextq_u64(data, data, 1));
    return vmlal_u32(sum, vmovn_u64(keyed), vshrn_n_u64(keyed, 32));
}

static inline void nbi_lanes_accumulate(uint64_t *lanes, const uint8_t *input, const uint8_t *secret, size_t count) {
    uint64x2_t a = vld1q_u64(lanes), b = vld1q_u64(lanes + 2), c = vld1q_u64(lanes + 4), d = vld1q_u64(lanes + 6);
    for (size_t i = 0; i < count; ++i, input += NBI_STRIPE_SIZE, secret += 8) {
        a = nbi_lane_pair(a, input, secret);
        b = nbi_lane_pair(b, input + 16, secret + 16);
        c = nbi_lane_pair(c, input + 32, secret + 32);
        d = nbi_lane_pair(d, input + 48, secret + 48);
    }
    vst1q_u64(lanes, a);
    vst1q_u64(lanes + 2, b);
    vst1q_u64(lanes + 4, c);
    vst1q_u64(lanes + 6, d);
}

#else

static inline void nbi_lanes_accumulate(uint64_t *lanes, const uint8_t *input, const uint8_t *secret, size_t count) {
    for (size_t i = 0; i < count; ++i, input += NBI_STRIPE_SIZE, secret += 8) {
        for (size_t lane = 0; lane < NBI_LANE_COUNT; ++lane) {
            uint64_t data = nbi_read_le64(input + 8 * lane);
            uint64_t keyed = data ^ nbi_read_le64(secret + 8 * lane);
            lanes[lane ^ 1] += data;
            lanes[lane] += (keyed & 0xFFFFFFFFu) * (keyed >> 32);
        }
    }
}

#endif

// Once a block: spreads the high bits, which the sums alone would never carry down.
static inline void nbi_lanes_scramble(uint64_t *lanes, const uint8_t *secret) {
    const uint64_t prime = 0x9E3779B1u;
    for (size_t lane = 0; lane < NBI_LANE_COUNT; ++lane) {
        uint64_t mixed = lanes[lane] ^ (lanes[lane] >> 47);
        lanes[lane] = (mixed ^ nbi_read_le64(secret + 8 * lane)) * prime;
    }
}
