// SPDX-License-Identifier: MIT
// Counter-based random numbers: known values, and whether neighbours in any direction look alike. All inputs are fixed,
// so a bound that holds once always holds.

#include "support/support.h"

#include "nebula/random.h"

// --- known values ---

// The cipher's published test vectors: key and counter all zeros, all ones, and the digits of pi.
TEST(cipher_gives_the_published_values) {
    static const struct {
        uint64_t seed, tick;
        uint32_t stream, index;
        uint32_t words[4];
    } known[] = {
        {0, 0, 0, 0, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
        {UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
        {0x299F31D0A4093822,
         0x0370734413198A2E,
         0x85A308D3,
         0x243F6A88,
         {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
        nb_random random = nb_random_make(known[i].seed, known[i].tick, known[i].stream);
        nb_random_block block = nb_random_words(random, known[i].index);
        assert_memory_equal(block.words, known[i].words, sizeof block.words);
    }
}

// What replays and saved games depend on.
TEST(numbers_stay_what_they_are) {
    nb_random random = nb_random_make(1234, 60, 7);
    assert_int_equal(nb_random_u32(random, 0), 0xB3D22E52);
    assert_true(nb_random_u64(random, 0) == UINT64_C(0xB60905AAB3D22E52));
    assert_true(nb_random_float(random, 1) == 0x1.694186p-1f);
    assert_true(nb_random_double(random, 1) == 0x1.6e83df2769418p-1);
    assert_true(nb_random_range(random, 2, 1000) == 722);
    assert_true(nb_random_range(random, 3, UINT64_C(3) << 62) == UINT64_C(0x3AD31AC91DA1EF79));
    assert_true(nb_random_between(random, 4, -50, 50) == 35);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 1000; ++i) {
        sum = sum * 31 + nb_random_u64(nb_random_make(i, i * UINT64_C(0x100000001), i % 7), i * 3);
        sum = sum * 31 + nb_random_range(nb_random_make(5, i, 1), i, 1 + i * UINT64_C(0x123456789ABCDE));
    }
    assert_true(sum == UINT64_C(0x4F4BAC05608FF67F));
}

TEST(u32_is_the_low_half_of_u64) {
    nb_random random = nb_random_make(9, 8, 7);
    for (uint32_t i = 0; i < 100; ++i) assert_int_equal(nb_random_u32(random, i), (uint32_t)nb_random_u64(random, i));
}

// --- statistics ---

#define SAMPLE_COUNT ((uint32_t)1 << 17)
#define BUCKET_COUNT 256

// Which of the four numbers runs.
typedef enum direction { BY_INDEX, BY_TICK, BY_TICK_HIGH, BY_STREAM, BY_SEED, BY_SEED_HIGH, DIRECTION_COUNT } direction;

static uint64_t number_at(direction along, uint32_t i) {
    static const uint64_t seed = 42, tick = 1000;
    switch (along) {
    case BY_TICK: return nb_random_u64(nb_random_make(seed, tick + i, 3), 0);
    case BY_TICK_HIGH: return nb_random_u64(nb_random_make(seed, (uint64_t)i << 32, 3), 0);
    case BY_STREAM: return nb_random_u64(nb_random_make(seed, tick, i), 0);
    case BY_SEED: return nb_random_u64(nb_random_make(i, tick, 3), 0);
    case BY_SEED_HIGH: return nb_random_u64(nb_random_make((uint64_t)i << 32, tick, 3), 0);
    default: return nb_random_u64(nb_random_make(seed, tick, 3), i);
    }
}

static double chi_square(const uint32_t *counts, uint32_t bucket_count, uint32_t sample_count) {
    double expected = (double)sample_count / bucket_count, sum = 0;
    for (uint32_t i = 0; i < bucket_count; ++i) {
        double off = counts[i] - expected;
        sum += off * off / expected;
    }
    return sum;
}

// 255 degrees of freedom: mean 255, deviation 22.6. Both tails at about 4.5 deviations; too even is not random either.
static void assert_even(const uint32_t *counts) {
    double sum = chi_square(counts, BUCKET_COUNT, SAMPLE_COUNT);
    assert_true(sum > 155 && sum < 360);
}

TEST(every_byte_is_even_in_every_direction) {
    for (direction along = 0; along < DIRECTION_COUNT; ++along) {
        uint32_t counts[8][BUCKET_COUNT] = {{0}};
        for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
            uint64_t number = number_at(along, i);
            for (uint32_t byte = 0; byte < 8; ++byte) ++counts[byte][number >> 8 * byte & 255];
        }
        for (uint32_t byte = 0; byte < 8; ++byte) assert_even(counts[byte]);
    }
}

// Each bit is set in half of the numbers, within 4.5 deviations of sqrt(n) / 2 = 181.
TEST(every_bit_is_balanced_in_every_direction) {
    for (direction along = 0; along < DIRECTION_COUNT; ++along) {
        uint32_t counts[64] = {0};
        for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
            uint64_t number = number_at(along, i);
            for (uint32_t bit = 0; bit < 64; ++bit) counts[bit] += (uint32_t)(number >> bit & 1);
        }
        for (uint32_t bit = 0; bit < 64; ++bit)
            assert_in_range(counts[bit], SAMPLE_COUNT / 2 - 815, SAMPLE_COUNT / 2 + 815);
    }
}

// The top four bits of a number say nothing about those of its neighbour, whichever way that lies.
TEST(neighbours_are_independent_in_every_direction) {
    for (direction along = 0; along < DIRECTION_COUNT; ++along) {
        uint32_t counts[BUCKET_COUNT] = {0}, low_counts[BUCKET_COUNT] = {0};
        for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
            uint64_t own = number_at(along, 2 * i), next = number_at(along, 2 * i + 1);
            ++counts[own >> 60 << 4 | next >> 60];
            ++low_counts[(own & 15) << 4 | (next & 15)];
        }
        assert_even(counts);
        assert_even(low_counts);
    }
}

static uint32_t bits_set(uint64_t word) {
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) ++count;
    return count;
}

// One changed bit of any input changes each output bit with one half: 32 of 64 on average. The mean of 2000 has a
// deviation of 4 / sqrt(2000) = 0.09.
TEST(one_changed_input_bit_changes_half_of_the_output) {
    for (uint32_t bit = 0; bit < 192; ++bit) {
        uint64_t total = 0;
        for (uint32_t i = 0; i < 2000; ++i) {
            uint64_t seed = i * 3 + 1, tick = i * 5 + 2;
            uint32_t stream = i % 11, index = i;
            uint64_t before = nb_random_u64(nb_random_make(seed, tick, stream), index);
            if (bit < 64) seed ^= UINT64_C(1) << bit;
            if (bit >= 64 && bit < 128) tick ^= UINT64_C(1) << (bit - 64);
            if (bit >= 128 && bit < 160) stream ^= UINT32_C(1) << (bit - 128);
            if (bit >= 160) index ^= UINT32_C(1) << (bit - 160);
            total += bits_set(before ^ nb_random_u64(nb_random_make(seed, tick, stream), index));
        }
        assert_in_range(total, 2000 * 31.6, 2000 * 32.4);
    }
}

// Blocks are one to one with counters, and halves of them nearly so: 2^17 draws of 64 bits do not meet.
TEST(equal_numbers_do_not_come) {
    enum { TABLE = 1 << 19 };
    uint64_t *table = calloc(TABLE, sizeof *table);
    assert_non_null(table);
    for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
        uint64_t number = nb_random_u64(nb_random_make(77, i >> 10, i >> 5 & 31), i & 31);
        size_t at = (size_t)number % TABLE;
        for (; table[at] != 0; at = (at + 1) % TABLE) assert_true(table[at] != number);
        table[at] = number;
    }
    free(table);
}

// --- ranges and fractions ---

TEST(range_is_even_where_it_divides_nothing) {
    nb_random random = nb_random_make(3, 1, 4);
    static const uint32_t sizes[] = {3, 5, 6, 7, 10, 100, 255};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
        uint32_t counts[256] = {0}, size = sizes[s];
        for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
            uint64_t number = nb_random_range(random, i, size);
            assert_true(number < size);
            ++counts[number];
        }
        double freedom = size - 1, sum = chi_square(counts, size, SAMPLE_COUNT);
        // Mean and variance of chi-square are n and 2n; the squared distance avoids a root. The tail of few degrees is
        // longer, hence the 20.
        assert_true((sum - freedom) * (sum - freedom) < 20 * (2 * freedom + 2));
    }
}

// A remainder would give each number below 2^62 twice as often as any other.
TEST(large_range_is_not_tilted_to_its_low_end) {
    nb_random random = nb_random_make(3, 2, 4);
    uint32_t thirds[3] = {0};
    for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
        uint64_t number = nb_random_range(random, i, UINT64_C(3) << 62);
        assert_true(number < UINT64_C(3) << 62);
        ++thirds[number >> 62];
    }
    assert_true(chi_square(thirds, 3, SAMPLE_COUNT) < 20);
}

// What is drawn again does not come from the neighbours: equal draws of different indices would show as pairs.
TEST(rejected_draws_do_not_lean_on_neighbours) {
    nb_random random = nb_random_make(3, 3, 4);
    uint64_t count = (UINT64_C(1) << 63) + 1; // the worst case: nearly half of all candidates are thrown away
    for (uint32_t i = 0; i + 4 < SAMPLE_COUNT; ++i) {
        uint64_t number = nb_random_range(random, i, count);
        for (uint32_t next = 1; next <= 3; ++next) assert_true(number != nb_random_range(random, i + next, count));
    }
}

TEST(ranges_at_their_ends) {
    nb_random random = nb_random_make(1, 2, 3);
    bool has_low = false, has_high = false, has_negative = false, has_positive = false;
    for (uint32_t i = 0; i < 1000; ++i) {
        assert_true(nb_random_range(random, i, 1) == 0);
        assert_true(nb_random_range(random, i, 2) < 2);
        assert_true(nb_random_range(random, i, UINT64_MAX) < UINT64_MAX);
        assert_true(nb_random_between(random, i, -7, -7) == -7);
        assert_true(nb_random_between(random, i, INT64_MIN, INT64_MIN) == INT64_MIN);
        assert_true(nb_random_between(random, i, INT64_MAX, INT64_MAX) == INT64_MAX);
        assert_true(nb_random_between(random, i, INT64_MIN, INT64_MIN + 1) <= INT64_MIN + 1);
        int64_t few = nb_random_between(random, i, -1, 1), any = nb_random_between(random, i, INT64_MIN, INT64_MAX);
        assert_true(few >= -1 && few <= 1);
        has_low |= few == -1;
        has_high |= few == 1;
        has_negative |= any < 0;
        has_positive |= any > 0;
    }
    assert_true(has_low && has_high && has_negative && has_positive);
}

TEST(fractions_stay_below_one_and_are_even) {
    uint32_t counts[BUCKET_COUNT] = {0}, double_counts[BUCKET_COUNT] = {0};
    for (uint32_t i = 0; i < SAMPLE_COUNT; ++i) {
        nb_random random = nb_random_make(5, i, 0);
        float small = nb_random_float(random, 9);
        double large = nb_random_double(random, 9);
        assert_true(small >= 0.0f && small < 1.0f && large >= 0.0 && large < 1.0);
        ++counts[(uint32_t)(small * BUCKET_COUNT)];
        ++double_counts[(uint32_t)(large * BUCKET_COUNT)];
    }
    assert_even(counts);
    assert_even(double_counts);
}
