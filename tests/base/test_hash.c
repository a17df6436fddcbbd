// SPDX-License-Identifier: MIT
// XXH3 against libxxhash on every length, in one piece and in pieces, and what happens with bad input.

#include "support/support.h"

#include "nebula/hash.h"

#include <xxhash.h>

#define LENGTH_MAX 4096
#define BULK_SIZE ((size_t)3 << 20)

static const uint64_t seeds[] = {0, 1, 0x9E3779B185EBCA87u, UINT64_MAX};
#define SEED_COUNT (sizeof seeds / sizeof seeds[0])

static uint8_t *random_bytes(size_t size, uint64_t seed) {
    uint8_t *bytes = (uint8_t *)malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; ++i) bytes[i] = (uint8_t)(test_random(&seed) >> 32);
    return bytes;
}

static void assert_equals_reference(const uint8_t *data, size_t size, uint64_t seed) {
    XXH128_hash_t expected = XXH3_128bits_withSeed(data, size, seed);
    nb_digest128 digest = nb_hash128(data, size, seed);
    bool is_equal = nb_hash64(data, size, seed) == XXH3_64bits_withSeed(data, size, seed) &&
                    digest.low == expected.low64 && digest.high == expected.high64;
    if (!is_equal) fail_msg("size %zu, seed 0x%llx differs from libxxhash", size, (unsigned long long)seed);
}

TEST(hash_of_every_length_equals_libxxhash) {
    uint8_t *data = random_bytes(LENGTH_MAX, test_seed(__func__));
    for (size_t size = 0; size <= LENGTH_MAX; ++size) {
        for (size_t i = 0; i < SEED_COUNT; ++i) assert_equals_reference(data, size, seeds[i]);
    }
    free(data);
}

TEST(hash_of_unaligned_data_equals_libxxhash) {
    uint8_t *data = random_bytes(LENGTH_MAX + 64, test_seed(__func__));
    for (size_t offset = 1; offset < 64; ++offset) {
        for (size_t size = 0; size <= LENGTH_MAX; size += 1 + size / 7) {
            assert_equals_reference(data + offset, size, seeds[2]);
        }
    }
    free(data);
}

TEST(hash_of_megabytes_equals_libxxhash) {
    uint8_t *data = random_bytes(BULK_SIZE, test_seed(__func__));
    for (size_t i = 0; i < SEED_COUNT; ++i) {
        assert_equals_reference(data, BULK_SIZE, seeds[i]);
        assert_equals_reference(data + 1, BULK_SIZE - 13, seeds[i]);
    }
    free(data);
}

// The values are part of save files: they may never change, with or without libxxhash to compare with.
TEST(hash_of_known_input_is_golden) {
    uint8_t data[2000];
    for (size_t i = 0; i < sizeof data; ++i) data[i] = (uint8_t)(i * 7);
    assert_int_equal(nb_hash64(NULL, 0, 0), 0x2D06800538D394C2u);
    assert_int_equal(nb_hash128(NULL, 0, 0).low, 0x6001C324468D497Fu);
    assert_int_equal(nb_hash128(NULL, 0, 0).high, 0x99AA06D3014798D8u);
    assert_int_equal(nb_hash64(data, sizeof data, 7), 0x94C3E42EF94FCCA7u);
    assert_int_equal(nb_hash128(data, sizeof data, 7).high, 0x840ACB5EECA08482u);
}

// Feeds data in random pieces, some empty, most short, a few of many blocks.
static void feed_in_pieces(nb_hash_state *state, const uint8_t *data, size_t size, uint64_t *random) {
    size_t done = 0;
    while (done < size) {
        uint64_t pick = test_random(random);
        size_t limit = pick % 8 == 0 ? size : pick % 8 < 4 ? 300 : 70;
        size_t piece = (size_t)((pick >> 8) % (limit + 1));
        if (piece > size - done) piece = size - done;
        assert_int_equal(nb_hash_update(state, data + done, piece), NB_OK);
        done += piece;
    }
}

TEST(hash_in_random_pieces_equals_one_piece) {
    uint64_t random = test_seed(__func__);
    uint64_t rounds = test_size(3000, 30000, 300000);
    uint8_t *data = random_bytes(LENGTH_MAX, random);
    for (uint64_t round = 0; round < rounds; ++round) {
        size_t size = (size_t)(test_random(&random) % (LENGTH_MAX + 1));
        uint64_t seed = seeds[round % SEED_COUNT];
        nb_hash_state state;
        assert_int_equal(nb_hash_init(&state, seed), NB_OK);
        feed_in_pieces(&state, data, size, &random);
        XXH128_hash_t expected = XXH3_128bits_withSeed(data, size, seed);
        nb_digest128 digest = nb_hash_digest128(&state);
        assert_int_equal(nb_hash_digest64(&state), XXH3_64bits_withSeed(data, size, seed));
        assert_int_equal(digest.low, expected.low64);
        assert_int_equal(digest.high, expected.high64);
    }
    free(data);
}

TEST(hash_digest_after_every_byte_leaves_the_state_going) {
    uint8_t *data = random_bytes(LENGTH_MAX, test_seed(__func__));
    nb_hash_state state;
    assert_int_equal(nb_hash_init(&state, 3), NB_OK);
    for (size_t size = 0; size < LENGTH_MAX; ++size) {
        assert_int_equal(nb_hash_digest64(&state), XXH3_64bits_withSeed(data, size, 3));
        assert_int_equal(nb_hash_digest128(&state).high, XXH3_128bits_withSeed(data, size, 3).high64);
        assert_int_equal(nb_hash_update(&state, data + size, 1), NB_OK);
    }
    free(data);
}

TEST(hash_state_copied_and_restarted_is_independent) {
    uint8_t *data = random_bytes(1000, test_seed(__func__));
    nb_hash_state state;
    nb_hash_init(&state, 0);
    nb_hash_update(&state, data, 700);
    nb_hash_state fork = state;
    nb_hash_update(&state, data + 700, 300);
    assert_int_equal(nb_hash_digest64(&fork), nb_hash64(data, 700, 0));
    assert_int_equal(nb_hash_digest64(&state), nb_hash64(data, 1000, 0));
    nb_hash_init(&state, 9);
    assert_int_equal(nb_hash_digest64(&state), nb_hash64(NULL, 0, 9));
    free(data);
}

TEST(hash_of_bad_arguments_is_defined) {
    assert_int_equal(nb_hash64(NULL, 5, 1), nb_hash64(NULL, 0, 1));
    assert_int_equal(nb_hash128(NULL, SIZE_MAX, 1).high, nb_hash128(NULL, 0, 1).high);
    assert_int_equal(nb_hash_init(NULL, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_hash_update(NULL, "x", 1), NB_ERR_MISUSE);
    assert_int_equal(nb_hash_digest64(NULL), 0);
    assert_int_equal(nb_hash_digest128(NULL).low, 0);

    nb_hash_state state = {0};
    assert_int_equal(nb_hash_update(&state, "x", 1), NB_ERR_MISUSE);
    assert_int_equal(nb_hash_digest64(&state), 0);
    assert_int_equal(nb_hash_digest128(&state).high, 0);

    nb_hash_init(&state, 0);
    assert_int_equal(nb_hash_update(&state, NULL, 1), NB_ERR_MISUSE);
    assert_int_equal(nb_hash_update(&state, NULL, 0), NB_OK);
    assert_int_equal(nb_hash_digest64(&state), nb_hash64("", 0, 0));
}
