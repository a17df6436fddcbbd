// SPDX-License-Identifier: MIT
// Hashing memory that is in the cache already: what hashing state at the end of a tick looks like.

#include "bench.h"
#include "peers/peers.h"

#include <nebula/hash.h>

#include <stdlib.h>

#define SIZE_COUNT 3
// Bytes hashed per size and run: some milliseconds of work at 10 GB/s and more.
#define RUN_BYTES ((size_t)64 << 20)

static const size_t sizes[SIZE_COUNT] = {(size_t)1 << 20, (size_t)1 << 10, 64};

typedef struct hash_pair {
    hash_fn *hash64;
    hash_fn *hash128;
} hash_pair;

static uint64_t nebula_64(const void *data, size_t size_bytes) { return nb_hash64(data, size_bytes, 0); }

static uint64_t nebula_128(const void *data, size_t size_bytes) {
    nb_digest128 digest = nb_hash128(data, size_bytes, 0);
    return digest.low ^ digest.high;
}

static const hash_pair nebula_pair = {nebula_64, nebula_128};
#if BENCH_HAVE_XXHASH
static const hash_pair xxhash_pair = {peer_xxhash_64, peer_xxhash_128};
#endif

static void *open_fixture(void) {
    unsigned char *data = aligned_alloc(64, sizes[0]);
    uint64_t random = 2;
    for (size_t i = 0; data && i < sizes[0]; ++i) data[i] = (unsigned char)bench_random(&random);
    return data;
}

// GB/s over blocks of one size. The sum keeps every call alive.
static double rate_of(hash_fn *hash, const unsigned char *data, size_t size_bytes) {
    size_t call_count = RUN_BYTES / size_bytes;
    size_t mask = sizes[0] / size_bytes - 1;
    uint64_t sum = 0;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < call_count; ++i) sum += hash(data + (i & mask) * size_bytes, size_bytes);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    bench_keep((const void *)(uintptr_t)sum);
    return (double)RUN_BYTES / (double)elapsed_ns;
}

static bool run_hash(void *context, const void *argument, double *values) {
    const hash_pair *pair = argument;
    for (size_t i = 0; i < SIZE_COUNT; ++i) {
        values[i] = rate_of(pair->hash64, context, sizes[i]);
        values[SIZE_COUNT + i] = rate_of(pair->hash128, context, sizes[i]);
    }
    // A hash that is fast and wrong is no contender.
    return pair->hash64(context, 4099) == nebula_64(context, 4099) &&
           pair->hash128(context, 99) == nebula_128(context, 99);
}

#define HASH_GOAL                                                       \
    {                                                                   \
        { .kind = BENCH_GOAL_PEER, .factor = 1.5, .peer = "libxxhash" } \
    }

static const bench_row rows[] = {
    {.name = "hash.bulk", .unit = "GB/s, 64 bit, 1 MiB", .is_rate = true, .goals = HASH_GOAL},
    {.name = "hash.bulk_64_1k", .unit = "GB/s, 64 bit, 1 KiB", .is_rate = true, .goals = HASH_GOAL},
    {.name = "hash.bulk_64_64b", .unit = "GB/s, 64 bit, 64 B", .is_rate = true, .goals = HASH_GOAL},
    {.name = "hash.bulk_128_1m", .unit = "GB/s, 128 bit, 1 MiB", .is_rate = true, .goals = HASH_GOAL},
    {.name = "hash.bulk_128_1k", .unit = "GB/s, 128 bit, 1 KiB", .is_rate = true, .goals = HASH_GOAL},
    {.name = "hash.bulk_128_64b", .unit = "GB/s, 128 bit, 64 B", .is_rate = true, .goals = HASH_GOAL},
};

static const bench_contender contenders[] = {
    {"nebula", BENCH_NEBULA, run_hash, &nebula_pair, NULL},
    BENCH_CONTENDER_IF(BENCH_HAVE_XXHASH, "libxxhash", BENCH_PEER, run_hash, &xxhash_pair, "libxxhash-dev"),
};

static const bench_case cases[] = {
    {"hash.bulk", "XXH3, 64 and 128 bit, of 1 MiB, 1 KiB and 64 B blocks", rows, BENCH_COUNT(rows), contenders,
     BENCH_COUNT(contenders), 1, open_fixture, free},
};

const bench_case *bench_hash_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
