// SPDX-License-Identifier: MIT
// Snapshots whose memory or pages fail to come: a clean error, nothing left behind, and the next try works. And frames
// that call neither heap nor pages.

#include "support/faults.h"

#include "nebula/snapshot.h"

static void assert_nothing_left(const test_heap *heap) {
    assert_int_equal(heap->live_count.value, 0);
    assert_int_equal(heap->live_bytes.value, 0);
    assert_int_equal(os.reserved_bytes.value, 0);
    assert_int_equal(os.reserved_count.value, 0);
}

static char memory[10000];
static uint64_t versions[100];

static nb_snapshot_region_desc region_desc(const char *name) {
    return (nb_snapshot_region_desc){
        .name = name, .base = memory, .size_bytes = sizeof memory, .block_size_bytes = 100, .block_versions = versions};
}

// Everything that takes memory, once; stops at what fails and ends cleanly. The stages done tell how far it came.
static uint32_t take_everything(test_log *log, test_heap *heap, nb_result *result) {
    nb_snapshots *snapshots = NULL;
    uint32_t region = 0x5A5A, done = 0;
    nb_snapshots_desc desc = {.slot_count = 3, .is_protected = true, .hooks = test_hooks(log, heap)};
    *result = nb_snapshots_create(&desc, &snapshots);
    if (*result != NB_OK) {
        assert_null(snapshots);
        return done;
    }
    const char *const names[] = {"first", "second"};
    for (uint32_t i = 0; i < 2 && *result == NB_OK; ++i) {
        nb_snapshot_region_desc added = region_desc(names[i]);
        *result = nb_snapshots_region_add(snapshots, &added, &region);
        assert_int_equal(nb_snapshots_stats_get(snapshots).region_count, *result == NB_OK ? i + 1 : i);
        if (*result == NB_OK) ++done;
    }
    if (*result == NB_OK) *result = nb_snapshots_publish(snapshots, NULL);
    if (*result == NB_OK) ++done;
    nb_snapshots_stats stats = nb_snapshots_stats_get(snapshots);
    assert_int_equal(stats.version, done > 2);
    assert_int_equal(stats.fail_count, done == 2);
    // What failed works when tried again, unless the failure lasts.
    if (os.pages.fail_from == 0 && heap->fail_from == 0 && done == 2) {
        assert_int_equal(nb_snapshots_publish(snapshots, NULL), NB_OK);
        const nb_snapshot *snapshot = nb_snapshots_acquire(snapshots);
        assert_memory_equal(snapshot->regions[1].base, memory, sizeof memory);
        nb_snapshot_release(snapshot);
    }
    assert_int_equal(nb_snapshots_destroy(snapshots), NB_OK);
    return done;
}

static uint32_t fail_in_turn(bool is_heap, bool is_lasting) {
    static test_log log;
    for (uint32_t n = 1;; ++n) {
        os_reset();
        memset(&log, 0, sizeof log);
        test_heap heap = {0};
        if (is_heap && is_lasting) heap.fail_from = n;
        if (is_heap && !is_lasting) heap.fail_at = n;
        if (!is_heap && is_lasting) os.pages.fail_from = n;
        if (!is_heap && !is_lasting) os.pages.fail_at = n;
        nb_result result;
        uint32_t done = take_everything(&log, &heap, &result);
        assert_nothing_left(&heap);
        if (result == NB_OK) {
            assert_int_equal(done, 3);
            return n - 1;
        }
        if (done < 2) {
            assert_int_equal(result, NB_ERR_MEMORY);
            assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
        } else {
            assert_int_equal(result, NB_ERR_OS);
            assert_true(test_log_count(&log, NB_ITEM_SNAPSHOT_OS) >= 1);
        }
    }
}

TEST(every_failed_allocation_is_clean) {
    // The ring and, for each region, what its slots have seen.
    assert_int_equal(fail_in_turn(true, false), 3);
    assert_int_equal(fail_in_turn(true, true), 3);
}

TEST(every_failed_page_call_is_clean) {
    // A reservation and a commit for each region, and each region made writable and read-only again.
    assert_int_equal(fail_in_turn(false, false), 8);
    assert_int_equal(fail_in_turn(false, true), 8);
}

TEST(frames_call_neither_heap_nor_pages) {
    os_reset();
    test_log log = {0};
    test_heap heap = {0};
    nb_snapshots *snapshots = NULL;
    uint32_t region;
    nb_snapshots_desc desc = {.slot_count = 4, .hooks = test_hooks(&log, &heap)};
    assert_int_equal(nb_snapshots_create(&desc, &snapshots), NB_OK);
    nb_snapshot_region_desc added = region_desc("first");
    assert_int_equal(nb_snapshots_region_add(snapshots, &added, &region), NB_OK);
    uint64_t heap_calls = heap.call_count.value, os_calls = os.pages.call_count.value;
    const nb_snapshot *held[3] = {NULL};
    for (uint32_t i = 0; i < 1000; ++i) {
        ++versions[i % 100];
        nb_snapshots_region_move(snapshots, region, memory, sizeof memory - i, versions);
        assert_int_equal(nb_snapshots_publish(snapshots, NULL), NB_OK);
        nb_snapshot_release(held[i % 2]);
        held[i % 2] = nb_snapshots_acquire(snapshots);
    }
    for (int i = 0; i < 3; ++i) nb_snapshot_release(held[i]);
    assert_int_equal(heap.call_count.value, heap_calls);
    assert_int_equal(os.pages.call_count.value, os_calls);
    assert_int_equal(nb_snapshots_destroy(snapshots), NB_OK);
    assert_nothing_left(&heap);
}
