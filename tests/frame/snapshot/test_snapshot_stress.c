// SPDX-License-Identifier: MIT
// Snapshots under real threads: readers that take the newest again and again, hold some for a while and hand them on,
// against a publisher that never waits.

#include "support/support.h"

#include "nebula/snapshot.h"

#define READER_COUNT 2
#define READS_LEAST 2000 // of each reader while there are publications: on a busy machine it may begin late
#define CELL_COUNT 256
#define BLOCK_CELLS 8
#define BLOCK_COUNT (CELL_COUNT / BLOCK_CELLS)

typedef struct arena_of_threads {
    nb_snapshots *snapshots;
    test_log log; // skips are expected, and kept from the screen; nothing else is
    uint32_t cells_region, sum_region;
    uint64_t cells[CELL_COUNT];
    uint64_t versions[BLOCK_COUNT];
    uint64_t sum; // of all cells: belongs to them
    uint64_t seed;
    uint64_t publish_count; // at least so many tries; then the tries there were
    nb_atomic_u32 is_over;
    nb_atomic_u64 bad_count;
    nb_atomic_u64 read_counts[READER_COUNT];
    uint64_t skip_count; // the publisher's
    test_gate gate;
} arena_of_threads;

static void arena_open(arena_of_threads *a, uint32_t slot_count) {
    nb_snapshots_desc desc = {.slot_count = slot_count, .hooks = test_hooks(&a->log, NULL)};
    assert_int_equal(nb_snapshots_create(&desc, &a->snapshots), NB_OK);
    nb_snapshot_region_desc cells = {.name = "cells",
                                     .base = a->cells,
                                     .size_bytes = sizeof a->cells,
                                     .block_size_bytes = BLOCK_CELLS * sizeof a->cells[0],
                                     .block_versions = a->versions};
    nb_snapshot_region_desc sum = {.name = "sum", .base = &a->sum, .size_bytes = sizeof a->sum};
    assert_int_equal(nb_snapshots_region_add(a->snapshots, &cells, &a->cells_region), NB_OK);
    assert_int_equal(nb_snapshots_region_add(a->snapshots, &sum, &a->sum_region), NB_OK);
}

static void change_cells(arena_of_threads *a, uint64_t *random) {
    for (uint64_t n = 1 + test_random(random) % 8; n > 0; --n) {
        uint64_t cell = test_random(random) % CELL_COUNT, value = test_random(random);
        a->sum += value - a->cells[cell];
        a->cells[cell] = value;
        ++a->versions[cell / BLOCK_CELLS];
    }
}

static bool has_read_enough(const arena_of_threads *a) {
    for (uint32_t i = 0; i < READER_COUNT; ++i) {
        if (nbi_atomic_load_relaxed_u64(&a->read_counts[i]) < READS_LEAST) return false;
    }
    return true;
}

static void publish_all(arena_of_threads *a) {
    uint64_t random = a->seed, tries = 0;
    // Bounded also where readers make no progress, which the counts then tell.
    for (; tries < a->publish_count || (tries < 1000 * a->publish_count && !has_read_enough(a)); ++tries) {
        uint64_t version = nb_snapshots_version(a->snapshots) + 1;
        change_cells(a, &random);
        nb_result result = nb_snapshots_publish(a->snapshots, &(nb_snapshot_info){.frame = version});
        if (result == NB_FULL) {
            ++a->skip_count;
            nbi_thread_yield(); // on one core the readers would never get to let go
        } else if (result != NB_OK) {
            nbi_atomic_fetch_add_seq_cst_u64(&a->bad_count, 1);
        }
    }
    a->publish_count = tries;
    nbi_atomic_store_release_u32(&a->is_over, 1); // read by the acquire loads of the readers
}

// One publication from end to end.
static bool is_whole(const arena_of_threads *a, const nb_snapshot *snapshot) {
    const uint64_t *cells = snapshot->regions[a->cells_region].base;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < CELL_COUNT; ++i) sum += cells[i];
    return sum == *(const uint64_t *)snapshot->regions[a->sum_region].base &&
           snapshot->info.frame == snapshot->version && snapshot->region_count == 2;
}

// Reads the newest, holds every eighth or so while taking others, and looks again before it lets go.
static void read_all(arena_of_threads *a, uint32_t index) {
    uint64_t random = a->seed + index, newest = 0, bad = 0;
    const nb_snapshot *held = NULL;
    uint64_t held_version = 0;
    bool is_over = false;
    while (!is_over) {
        is_over = nbi_atomic_load_acquire_u32(&a->is_over) != 0;
        const nb_snapshot *snapshot = nb_snapshots_acquire(a->snapshots);
        if (snapshot == NULL) {
            nbi_thread_yield();
            continue;
        }
        nbi_atomic_fetch_add_relaxed_u64(&a->read_counts[index], 1);
        bad += snapshot->version < newest || !is_whole(a, snapshot);
        newest = snapshot->version;
        if (test_random(&random) % 8 == 0) {
            bad += held != NULL && (held->version != held_version || !is_whole(a, held));
            nb_snapshot_release(held);
            held = nb_snapshot_retain(snapshot);
            held_version = held != NULL ? held->version : 0;
            bad += held == NULL;
        }
        nb_snapshot_release(snapshot);
    }
    bad += newest != nb_snapshots_version(a->snapshots); // the last read came after the last publication
    nb_snapshot_release(held);
    nbi_atomic_fetch_add_seq_cst_u64(&a->bad_count, bad);
}

static void run_part(void *user, uint32_t index) {
    arena_of_threads *a = user;
    test_gate_pass(&a->gate, READER_COUNT + 1);
    if (index == 0)
        publish_all(a);
    else
        read_all(a, index - 1);
}

static void run_arena(arena_of_threads *a) {
    test_thread threads[READER_COUNT + 1];
    assert_int_equal(nb_snapshots_disown(a->snapshots), NB_OK);
    test_threads_start(threads, READER_COUNT + 1, run_part, a);
    test_threads_join(threads, READER_COUNT + 1);
    assert_int_equal(a->bad_count.value, 0);
    assert_true(has_read_enough(a));
    nb_snapshots_stats stats = nb_snapshots_stats_get(a->snapshots);
    assert_int_equal(stats.publish_count + stats.skip_count, a->publish_count);
    assert_int_equal(stats.skip_count, a->skip_count);
    assert_int_equal(stats.version, stats.publish_count);
    assert_int_equal(stats.pin_count, 0);
    assert_int_equal(test_log_count(&a->log, NB_ITEM_SNAPSHOT_STALE), 0); // every release had its pin
    assert_int_equal(nb_snapshots_destroy(a->snapshots), NB_OK);
}

TEST(two_readers_never_see_a_torn_snapshot) {
    arena_of_threads a = {.seed = test_seed("two_readers_never_see_a_torn_snapshot"),
                          .publish_count = test_size(100000, 1000000, 10000000)};
    arena_open(&a, 6);
    run_arena(&a);
    // Each reader holds two at most: with one more for the newest and one to fill there is always room.
    assert_int_equal(a.skip_count, 0);
}

TEST(scarce_slots_skip_and_never_tear) {
    arena_of_threads a = {.seed = test_seed("scarce_slots_skip_and_never_tear"),
                          .publish_count = test_size(100000, 1000000, 10000000)};
    arena_open(&a, 3);
    run_arena(&a);
    assert_true(test_log_count(&a.log, NB_ITEM_SNAPSHOT_SKIPPED) <= a.skip_count);
    assert_int_equal(test_log_count(&a.log, NB_ITEM_SNAPSHOT_SKIPPED) == 0, a.skip_count == 0);
}
