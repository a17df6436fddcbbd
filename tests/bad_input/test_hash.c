// SPDX-License-Identifier: MIT
// nebula/hash.h: no bytes, no state, and states that were not initialised.

#include "bad_input/bad_input.h"

#include "nebula/hash.h"

TEST(hash_of_null_is_reported_and_empty) {
    uint64_t hash64 = 0;
    nb_digest128 hash128 = {0}, empty128 = nb_hash128("", 0, 3);
    reported_default(NB_ITEM_BASE_NULL, hash64 = nb_hash64(NULL, SIZE_MAX, 3));
    assert_true(hash64 == nb_hash64("", 0, 3));
    reported_default(NB_ITEM_BASE_NULL, hash128 = nb_hash128(NULL, 1, 3));
    assert_true(hash128.low == empty128.low && hash128.high == empty128.high);
    silent(hash64 = nb_hash64(NULL, 0, 3), hash128 = nb_hash128(NULL, 0, 3));
    assert_true(hash64 == nb_hash64("", 0, 3) && hash128.low == empty128.low);
}

TEST(hash_state_is_refused_until_it_was_initialised) {
    nb_hash_state hash = {0};
    nb_digest128 digest = {1, 1};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_hash_init(NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_hash_update(NULL, "x", 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_hash_update(&hash, "x", 1));
    refused_default(0, NB_ITEM_BASE_NULL, nb_hash_digest64(NULL));
    refused_default(0, NB_ITEM_BASE_ARGUMENT, nb_hash_digest64(&hash));
    reported_default(NB_ITEM_BASE_NULL, digest = nb_hash_digest128(NULL));
    assert_zero(digest);
    digest.low = 1;
    reported_default(NB_ITEM_BASE_ARGUMENT, digest = nb_hash_digest128(&hash));
    assert_zero(digest);
    assert_zero(hash);
    accepted(NB_OK, nb_hash_init(&hash, 0));
    accepted(NB_OK, nb_hash_update(&hash, "hello", 5));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_hash_update(&hash, NULL, 5));
    accepted(NB_OK, nb_hash_update(&hash, NULL, 0));
    assert_true(nb_hash_digest64(&hash) == nb_hash64("hello", 5, 0));
}
