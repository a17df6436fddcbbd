// SPDX-License-Identifier: MIT
// nebula/snapshot.h: sets and snapshots that are none, bad regions, stale pointers, foreign threads.

#include "bad_input/bad_input.h"

#include "nebula/snapshot.h"

static nb_snapshots *ring_open(test_heap *heap) {
    nb_snapshots *snapshots = NULL;
    nb_snapshots_desc desc = {.slot_count = 3, .region_count_max = 2, .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_snapshots_create(&desc, &snapshots));
    return snapshots;
}

// Still empty, and works.
static void ring_end(nb_snapshots *snapshots, test_heap *heap) {
    const nb_snapshot *snapshot;
    accepted(NB_OK, nb_snapshots_publish(snapshots, NULL));
    silent(snapshot = nb_snapshots_acquire(snapshots));
    assert_non_null(snapshot);
    silent(nb_snapshot_release(snapshot));
    accepted(NB_OK, nb_snapshots_destroy(snapshots));
    assert_int_equal(heap->live_count.value, 0);
}

static test_heap heap; // of the case that runs

TEST(creation_refuses_a_bad_desc) {
    nb_snapshots *out = UNTOUCHED(nb_snapshots);
    nb_snapshots_desc desc = {.slot_count = 2, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_create(&desc, &out));
    desc.slot_count = NB_SNAPSHOT_SLOT_COUNT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_create(&desc, &out));
    desc.slot_count = 0;
    desc.region_count_max = NB_SNAPSHOT_REGION_COUNT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_create(&desc, &out));
    desc.region_count_max = 0;
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_create(&desc, NULL));
    refused_memory(heap, 1, out, nb_snapshots_create(&desc, &out));
}

TEST(functions_refuse_null) {
    uint32_t region = 0x5A5A;
    size_t size = 5;
    nb_snapshot_place place;
    nb_snapshots_stats stats;
    nb_snapshot_region_desc desc = {.name = "x", .base = "x", .size_bytes = 1};
    accepted(NB_OK, nb_snapshots_destroy(NULL));
    silent(nb_snapshot_release(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_region_add(NULL, &desc, &region));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_region_move(NULL, 0, "x", 1, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_region_find(NULL, "x", &region));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_publish(NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_disown(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_snapshots_locate(NULL, "x", &place));
    refused_default(0, NB_ITEM_BASE_NULL, nb_snapshots_version(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_snapshots_acquire(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_snapshot_retain(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_snapshot_region(NULL, 0, &size));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_snapshots_stats_get(NULL));
    assert_int_equal(stats.slot_count + stats.publish_count, 0);
    assert_int_equal(region, 0x5A5A);
    assert_int_equal(size, 0);
}

TEST(out_pointers_and_names_may_not_be_null) {
    nb_snapshots *snapshots = ring_open(&heap);
    uint32_t region = 0x5A5A;
    nb_snapshot_region_desc desc = {.name = "x", .base = "x", .size_bytes = 1};
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_add(snapshots, &desc, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_add(snapshots, NULL, &region));
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_find(snapshots, "x", NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_find(snapshots, NULL, &region));
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_locate(snapshots, "x", NULL));
    accepted(NB_EMPTY, nb_snapshots_region_find(snapshots, "x", &region));
    assert_int_equal(region, 0x5A5A);
    ring_end(snapshots, &heap);
}

static nb_result fill_nothing(void *user, const nb_snapshot_fill *fill, size_t *size_bytes) {
    (void)user;
    (void)fill;
    *size_bytes = 0;
    return NB_OK;
}

TEST(adding_refuses_what_cannot_be_copied) {
    nb_snapshots *snapshots = ring_open(&heap);
    char name[NB_SNAPSHOT_NAME_SIZE_MAX + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    uint64_t versions[1] = {0};
    const struct {
        nb_result expected;
        nb_snapshot_region_desc desc;
    } bad[] = {
        {NB_ERR_MISUSE, {.base = "x", .size_bytes = 1}},
        {NB_ERR_MISUSE, {.name = "", .base = "x", .size_bytes = 1}},
        {NB_ERR_RANGE, {.name = name, .base = "x", .size_bytes = 1}},
        {NB_ERR_MISUSE, {.name = "x", .size_bytes = 1}},
        {NB_ERR_RANGE, {.name = "x", .base = "x"}},
        {NB_ERR_RANGE, {.name = "x", .fill = fill_nothing}},
        {NB_ERR_RANGE, {.name = "x", .base = "x", .size_bytes = 2, .size_bytes_max = 1}},
        {NB_ERR_MISUSE, {.name = "x", .base = "x", .size_bytes = 1, .fill = fill_nothing}},
        {NB_ERR_MISUSE, {.name = "x", .size_bytes_max = 1, .fill = fill_nothing, .block_versions = versions}},
        {NB_ERR_RANGE, {.name = "x", .base = "x", .size_bytes = 1, .size_bytes_max = SIZE_MAX}},
        {NB_ERR_RANGE, {.name = "x", .base = "x", .size_bytes = 1, .size_bytes_max = SIZE_MAX / 2}},
        {NB_ERR_RANGE,
         {.name = "x",
          .base = "x",
          .size_bytes = 1,
          .size_bytes_max = SIZE_MAX / 8,
          .block_size_bytes = 1,
          .block_versions = versions}},
    };
    uint32_t region = 0x5A5A;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        refused(bad[i].expected, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_add(snapshots, &bad[i].desc, &region));
    }
    assert_int_equal(region, 0x5A5A);
    assert_int_equal(heap.live_count.value, 1);
    // A name that is taken, and more regions than the desc said.
    nb_snapshot_region_desc desc = {.name = "x", .base = "x", .size_bytes = 1};
    accepted(NB_OK, nb_snapshots_region_add(snapshots, &desc, &region));
    refused(NB_ERR_MISUSE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_add(snapshots, &desc, &region));
    desc.name = "y";
    accepted(NB_OK, nb_snapshots_region_add(snapshots, &desc, &region));
    desc.name = "z";
    refused(NB_ERR_RANGE, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshots_region_add(snapshots, &desc, &region));
    ring_end(snapshots, &heap);
}

TEST(moving_refuses_what_does_not_fit) {
    nb_snapshots *snapshots = ring_open(&heap);
    uint32_t plain, filled;
    uint64_t versions[1] = {0};
    nb_snapshot_region_desc desc = {.name = "plain", .base = "x", .size_bytes = 1, .size_bytes_max = 2};
    accepted(NB_OK, nb_snapshots_region_add(snapshots, &desc, &plain));
    nb_snapshot_region_desc fill = {.name = "filled", .size_bytes_max = 2, .fill = fill_nothing};
    accepted(NB_OK, nb_snapshots_region_add(snapshots, &fill, &filled));
    const nb_log_item item = NB_ITEM_SNAPSHOT_ARGUMENT;
    refused(NB_ERR_MISUSE, item, nb_snapshots_region_move(snapshots, 2, "x", 1, NULL));
    refused(NB_ERR_MISUSE, item, nb_snapshots_region_move(snapshots, UINT32_MAX, "x", 1, NULL));
    refused(NB_ERR_MISUSE, item, nb_snapshots_region_move(snapshots, filled, "x", 1, NULL));
    refused(NB_ERR_RANGE, item, nb_snapshots_region_move(snapshots, plain, "xyz", 3, NULL));
    refused(NB_ERR_MISUSE, item, nb_snapshots_region_move(snapshots, plain, NULL, 1, NULL));
    refused(NB_ERR_MISUSE, item, nb_snapshots_region_move(snapshots, plain, "x", 1, versions));
    accepted(NB_OK, nb_snapshots_region_move(snapshots, plain, "xy", 2, NULL));
    ring_end(snapshots, &heap);
}

TEST(snapshot_nobody_holds_is_refused) {
    nb_snapshots *snapshots = ring_open(&heap);
    const nb_snapshot *snapshot;
    accepted(NB_OK, nb_snapshots_publish(snapshots, NULL));
    silent(snapshot = nb_snapshots_acquire(snapshots));
    refused(0, NB_ITEM_SNAPSHOT_ARGUMENT, nb_snapshot_region(snapshot, 0, NULL));
    refused(NB_BUSY, NB_ITEM_SNAPSHOT_BUSY, nb_snapshots_destroy(snapshots));
    silent(nb_snapshot_release(snapshot));
    reported(NB_ITEM_SNAPSHOT_STALE, nb_snapshot_release(snapshot));
    refused(0, NB_ITEM_SNAPSHOT_STALE, nb_snapshot_retain(snapshot));
    assert_int_equal(nb_snapshots_stats_get(snapshots).pin_count, 0);
    ring_end(snapshots, &heap);
}

typedef struct stranger {
    nb_snapshots *snapshots;
    nb_result add, move, publish;
    const nb_snapshot *snapshot;
} stranger;

static void act_as_stranger(void *user) {
    stranger *s = user;
    uint32_t region;
    nb_snapshot_region_desc desc = {.name = "new", .base = "x", .size_bytes = 1};
    s->add = nb_snapshots_region_add(s->snapshots, &desc, &region);
    s->move = nb_snapshots_region_move(s->snapshots, 0, "x", 1, NULL);
    s->publish = nb_snapshots_publish(s->snapshots, NULL);
    s->snapshot = nb_snapshots_acquire(s->snapshots); // allowed
}

TEST(other_threads_are_not_the_publisher) {
    stranger s = {.snapshots = ring_open(&heap)};
    accepted(NB_OK, nb_snapshots_publish(s.snapshots, NULL));
    LISTENED(OWN_LOGGER, NB_ITEM_SNAPSHOT_THREAD, 3, test_thread_run(act_as_stranger, &s));
    assert_int_equal(s.add, NB_ERR_THREAD);
    assert_int_equal(s.move, NB_ERR_THREAD);
    assert_int_equal(s.publish, NB_ERR_THREAD);
    assert_int_equal(s.snapshot->version, 1);
    silent(nb_snapshot_release(s.snapshot));
    accepted(NB_OK, nb_snapshots_disown(s.snapshots));
    test_thread_run(act_as_stranger, &s);
    assert_int_equal(s.publish, NB_OK);
    silent(nb_snapshot_release(s.snapshot));
    accepted(NB_OK, nb_snapshots_disown(s.snapshots));
    ring_end(s.snapshots, &heap);
}
