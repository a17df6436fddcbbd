// SPDX-License-Identifier: MIT
// What the small pieces do with bad arguments: names, reports, clocks, statistics, poses, hashes, handles, labels.
// Together with test_bad_input_*.c this calls every public function at least once with something it must refuse;
// scripts/check_bad_input.sh sees to that.

#include "bad_input/bad_input.h"

#include "nebula/bytes.h"
#include "nebula/clock.h"
#include "nebula/frame_stats.h"
#include "nebula/handle.h"
#include "nebula/hash.h"
#include "nebula/interpolate.h"
#include "nebula/label.h"
#include "nebula/report.h"

// --- names ---

TEST(values_outside_an_enum_are_named_unknown) {
    static const int values[] = {-1000, 9999, 12345, INT32_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        const char *name = NULL;
        silent(name = nb_result_name((nb_result)values[i]));
        assert_string_equal(name, "unknown");
        silent(name = nb_log_item_name((nb_log_item)values[i]));
        assert_string_equal(name, "unknown");
        silent(name = nb_log_level_name((nb_log_level)values[i]));
        assert_string_equal(name, "unknown");
    }
}

// --- hooks, reports and bytes ---

TEST(reports_without_hooks_or_words_are_delivered) {
    const nb_hooks hooks = bad_hooks(NULL);
    const char *none = NULL;
    reported_default(NB_ITEM_BASE_OS, nb_report(NULL, NB_LOG_ERROR, NB_ITEM_BASE_OS, "nb_f", "x"));
    refused_default(NB_ERR_OS, NB_ITEM_BASE_OS, nb_report_failure(NULL, NB_ITEM_BASE_OS, NB_ERR_OS, "nb_f", "x"));
    refused_default(NB_ERR_OS, NB_ITEM_BASE_ARGUMENT,
                    nb_report_mistake(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, "nb_f", "x"));
    refused(NB_ERR_OS, NB_ITEM_RECORD_FILE, nb_report_failure(&hooks, NB_ITEM_RECORD_FILE, NB_ERR_OS, "nb_f", none, 1));
    refused(NB_ERR_OS, NB_ITEM_BASE_ARGUMENT,
            nb_report_mistake(&hooks, NB_ITEM_BASE_ARGUMENT, NB_ERR_OS, "nb_f", none, 1));
    const nb_log_level levels[] = {NB_LOG_DEFAULT, NB_LOG_OFF, (nb_log_level)77, (nb_log_level)-1};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; ++i) {
        reported(NB_ITEM_RECORD_FILE, nb_report(&hooks, levels[i], NB_ITEM_RECORD_FILE, "nb_f", "x"));
    }
    listen_begin();
    nb_report(&hooks, NB_LOG_ERROR, NB_ITEM_BASE_OS, none, none, 1);
    listen_end();
    assert_int_equal(bad_heard.own_count, 1);
    assert_string_equal(bad_heard.own_function, "?");
}

TEST(memory_of_no_alignment_is_refused) {
    test_heap heap = {0};
    const nb_hooks hooks = nb_hooks_resolve(&(nb_hooks){.logger.log = bad_log, .assertion.failed = bad_assertion});
    assert_int_equal(hooks.logger.level_min, NB_LOG_WARNING);
    const size_t alignments[] = {0, 3, 24, SIZE_MAX};
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; ++i) {
        refused(NULL, NB_ITEM_BASE_ARGUMENT, nb_hooks_alloc(&hooks, 8, alignments[i], "nb_f"));
        refused_default(NULL, NB_ITEM_BASE_ARGUMENT, nb_hooks_alloc(NULL, 8, alignments[i], NULL));
    }
    refused(NULL, NB_ITEM_BASE_MEMORY, nb_hooks_alloc(&hooks, SIZE_MAX, 64, NULL));
    refused_default(NULL, NB_ITEM_BASE_MEMORY, nb_hooks_alloc(NULL, SIZE_MAX, 64, NULL));
    void *memory = NULL;
    silent(memory = nb_hooks_alloc(NULL, 8, 8, NULL));
    assert_non_null(memory);
    silent(nb_hooks_free(NULL, memory, 8));
    const nb_hooks counted = bad_hooks(&heap);
    silent(nb_hooks_free(&counted, NULL, 8));
    assert_int_equal(heap.live_bytes.value, 0);
}

TEST(integers_of_no_bytes_are_zero) {
    silent(nb_bytes_put_u16(NULL, 1), nb_bytes_put_u32(NULL, 1), nb_bytes_put_u64(NULL, 1));
    accepted(0, nb_bytes_get_u16(NULL));
    accepted(0, nb_bytes_get_u32(NULL));
    accepted(0, nb_bytes_get_u64(NULL));
}

// --- clock ---

static uint64_t stopped_clock(void *user) {
    (void)user;
    return 5;
}

TEST(clock_without_an_object_is_the_machines) {
    nb_clock zero = {0};
    uint64_t first_ns = 0, second_ns = 0;
    silent(first_ns = nb_clock_now_ns(NULL), second_ns = nb_clock_now_ns(&zero));
    assert_true(first_ns != 0 && second_ns >= first_ns);
    accepted(NB_OK, nb_clock_sleep_until_ns(NULL, 0));
    accepted(NB_OK, nb_clock_sleep_until_ns(&zero, first_ns));
    nb_clock sleepless = {.now_ns = stopped_clock};
    refused_default(NB_ERR_UNSUPPORTED, NB_ITEM_BASE_ARGUMENT, nb_clock_sleep_until_ns(&sleepless, 10));
}

TEST(manual_clock_refuses_null_and_stops_at_the_end) {
    nb_clock clock;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_init(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_advance(NULL, 1));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_clock_manual_set(NULL, 1));
    reported_default(NB_ITEM_BASE_NULL, clock = nb_clock_manual_get(NULL));
    assert_zero(clock);
    nb_clock_manual manual;
    accepted(NB_OK, nb_clock_manual_init(&manual, UINT64_MAX - 1));
    accepted(NB_OK, nb_clock_manual_advance(&manual, UINT64_MAX));
    clock = nb_clock_manual_get(&manual);
    assert_true(nb_clock_now_ns(&clock) == UINT64_MAX);
}

// --- frame statistics ---

TEST(frame_stats_refuse_null_and_keep_their_frames) {
    static nb_frame_stats stats;
    nb_frame_record record = {.frame_ns = UINT64_MAX, .tick_count = 1};
    nb_frame_summary summary;
    memset(&summary, 0x5A, sizeof summary);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_init(NULL));
    accepted(NB_OK, nb_frame_stats_init(&stats));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_add(NULL, &record));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_add(&stats, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_summarise(NULL, 0, &summary));
    accepted(NB_EMPTY, nb_frame_stats_summarise(&stats, 0, &summary));
    accepted(NB_OK, nb_frame_stats_add(&stats, &record)); // the longest frame there is
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_frame_stats_summarise(&stats, 0, NULL));
    assert_untouched(summary, 0x5A);
    accepted(NB_OK, nb_frame_stats_summarise(&stats, UINT32_MAX, &summary));
    assert_int_equal(summary.frame_count, 1);
}

// --- poses ---

#define POSE_ROWS 2
#define POSE_FLOATS 3

TEST(pose_buffer_refuses_descs_with_a_gap) {
    float memory[2 * POSE_ROWS * POSE_FLOATS];
    uint8_t marks[POSE_ROWS];
    nb_poses poses;
    memset(&poses, 0x5A, sizeof poses);
    const nb_poses_desc whole = {POSE_ROWS, POSE_FLOATS, memory, marks};
    nb_poses_desc gaps[] = {whole, whole, whole, whole, nb_poses_desc_default()};
    gaps[0].row_count = 0;
    gaps[1].float_count = 0;
    gaps[2].memory = NULL;
    gaps[3].marks = NULL;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; ++i) {
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_init(&poses, &gaps[i]));
    }
    nb_poses_desc huge = whole;
    huge.row_count = huge.float_count = UINT32_MAX;
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_poses_init(&poses, &huge));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_init(&poses, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_init(NULL, &whole));
    assert_untouched(poses, 0x5A);
}

static void bad_pose_buffers_are_refused(nb_poses *poses) {
    float out[POSE_ROWS * POSE_FLOATS];
    memset(out, 0x5A, sizeof out);
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_poses_begin_tick(poses));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_teleport(poses, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_sample(poses, 0, 0.5f, NB_POSE_INTERPOLATE, out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_poses_sample_all(poses, 0.5f, NB_POSE_INTERPOLATE, out));
    assert_untouched(out, 0x5A);
}

TEST(pose_buffer_refuses_rows_and_modes_it_has_not) {
    nb_poses zeroed = {0}, poses;
    bad_pose_buffers_are_refused(NULL);
    bad_pose_buffers_are_refused(&zeroed);
    float memory[2 * POSE_ROWS * POSE_FLOATS], out[POSE_ROWS * POSE_FLOATS];
    uint8_t marks[POSE_ROWS];
    memset(out, 0x5A, sizeof out);
    accepted(NB_OK, nb_poses_init(&poses, &(nb_poses_desc){POSE_ROWS, POSE_FLOATS, memory, marks}));
    nb_poses_begin_tick(&poses)[0] = 1.0f;
    const nb_pose_mode modes[] = {NB_POSE_MODE_COUNT, (nb_pose_mode)-1};
    for (size_t i = 0; i < 2; ++i) {
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample(&poses, 0, 0.5f, modes[i], out));
        refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample_all(&poses, 0.5f, modes[i], out));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample(&poses, 0, 0.5f, NB_POSE_INTERPOLATE, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_ARGUMENT, nb_poses_sample_all(&poses, 0.5f, NB_POSE_EXTRAPOLATE, NULL));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT,
                    nb_poses_sample(&poses, POSE_ROWS, 0.5f, NB_POSE_INTERPOLATE, out));
    refused_default(NB_ERR_RANGE, NB_ITEM_BASE_ARGUMENT, nb_poses_teleport(&poses, UINT32_MAX));
    assert_untouched(out, 0x5A);
    accepted(NB_OK, nb_poses_sample(&poses, 0, -1.0f, NB_POSE_INTERPOLATE, out));
    assert_true(out[0] == 1.0f);
}

// --- hash ---

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

// --- handles ---

static const nb_handle bad_handles[] = {
    {0},                                                                  // null
    {7},                                                                  // an index without a generation
    {(uint64_t)2 << NB_HANDLE_INDEX_BITS},                                // a generation of a slot that is not live
    {(uint64_t)9 << NB_HANDLE_INDEX_BITS},                                // one the slot has never had
    {(uint64_t)1 << NB_HANDLE_INDEX_BITS | (NB_HANDLE_CAPACITY_MAX - 1)}, // an index past the end
    {UINT64_MAX},
};
#define BAD_HANDLE_COUNT (sizeof bad_handles / sizeof bad_handles[0])

TEST(handle_pool_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_handle_pool *pool = UNTOUCHED(nb_handle_pool);
    nb_handle_pool_desc fine = {.capacity = 4, .hooks = bad_hooks(&heap)}, bad[] = {fine, fine, fine};
    bad[0].capacity = NB_HANDLE_CAPACITY_MAX + 1;
    bad[1].capacity = UINT32_MAX;
    bad[2].use_count_max = NB_HANDLE_USE_COUNT_MAX + 1;
    for (int i = 0; i < 3; ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(&bad[i], &pool));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(&fine, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_create(NULL, NULL));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 1, pool, nb_handle_pool_create(&fine, &pool));
    silent(nb_handle_pool_destroy(NULL));
}

TEST(handle_functions_refuse_a_null_pool) {
    nb_handle handle = {0x5A5A};
    uint32_t index = 0x5A;
    nb_handle_pool_bytes bytes = {&handle, 1};
    nb_handle_pool_stats stats = {.capacity = 1};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_acquire(NULL, &handle));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_find(NULL, handle, &index));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_handle_pool_release(NULL, handle));
    refused_default(0, NB_ITEM_BASE_NULL, nb_handle_pool_next(NULL, handle).value);
    refused_default(false, NB_ITEM_BASE_NULL, nb_handle_pool_is_valid(NULL));
    reported_default(NB_ITEM_BASE_NULL, bytes = nb_handle_pool_state(NULL));
    assert_zero(bytes);
    reported_default(NB_ITEM_BASE_NULL, stats = nb_handle_pool_stats_get(NULL));
    assert_zero(stats);
    accepted(false, nb_handle_pool_is_live(NULL, handle)); // a question, asked too often to be reported
    assert_int_equal(handle.value, 0x5A5A);
    assert_int_equal(index, 0x5A);
}

TEST(bad_handles_leave_the_pool_as_it_is) {
    nb_handle_pool *pool = NULL;
    nb_handle live = {0}, gone = {0};
    uint32_t index = 0x5A;
    assert_int_equal(nb_handle_pool_create(&(nb_handle_pool_desc){.capacity = 4, .hooks = bad_hooks(NULL)}, &pool),
                     NB_OK);
    nb_handle_pool_acquire(pool, &gone);
    nb_handle_pool_acquire(pool, &live);
    nb_handle_pool_release(pool, gone);
    refused(NB_ERR_STALE, NB_ITEM_HANDLE_STALE, nb_handle_pool_release(pool, gone));
    for (size_t i = 0; i < BAD_HANDLE_COUNT; ++i) {
        refused(NB_ERR_STALE, NB_ITEM_HANDLE_STALE, nb_handle_pool_release(pool, bad_handles[i]));
        accepted(NB_ERR_STALE, nb_handle_pool_find(pool, bad_handles[i], &index)); // counted, not reported
        accepted(false, nb_handle_pool_is_live(pool, bad_handles[i]));
    }
    assert_int_equal(nb_handle_pool_stats_get(pool).stale_count, 2 * BAD_HANDLE_COUNT + 1);
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_find(pool, live, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_HANDLE_ARGUMENT, nb_handle_pool_acquire(pool, NULL));
    accepted(0, nb_handle_pool_next(pool, bad_handles[4]).value); // behind the last slot
    accepted(0, nb_handle_index(bad_handles[0]) + nb_handle_generation(bad_handles[0]));
    assert_int_equal(index, 0x5A);
    assert_true(nb_handle_pool_is_valid(pool));
    assert_int_equal(nb_handle_pool_find(pool, live, &index), NB_OK);
    assert_int_equal(index, 1);
    assert_int_equal(nb_handle_pool_stats_get(pool).live_count, 1);
    nb_handle_pool_destroy(pool);
}

// Bytes that a save file may hold: each 32-bit word of the header in turn is nonsense.
TEST(handle_pool_survives_a_state_that_makes_no_sense) {
    nb_handle_pool *pool = NULL;
    nb_handle handles[3] = {{0}};
    assert_int_equal(nb_handle_pool_create(&(nb_handle_pool_desc){.capacity = 4, .hooks = bad_hooks(NULL)}, &pool),
                     NB_OK);
    for (int i = 0; i < 3; ++i) nb_handle_pool_acquire(pool, &handles[i]);
    nb_handle_pool_release(pool, handles[0]);
    nb_handle_pool_bytes bytes = nb_handle_pool_state(pool);
    unsigned char saved[256];
    assert_true(bytes.size_bytes <= sizeof saved);
    memcpy(saved, bytes.bytes, bytes.size_bytes);
    for (size_t word = 0; word < 6; ++word) {
        memset((unsigned char *)bytes.bytes + 4 * word, 0xFE, 4);
        refused(false, NB_ITEM_BASE_CORRUPT, nb_handle_pool_is_valid(pool));
        nb_handle handle = {0};
        listen_begin();
        nb_result acquired = nb_handle_pool_acquire(pool, &handle);
        nb_result released = nb_handle_pool_release(pool, handles[1]);
        listen_end();
        assert_true(acquired == NB_OK || acquired == NB_FULL || acquired == NB_ERR_RANGE);
        assert_true(released == NB_OK || released == NB_ERR_RANGE);
        memcpy(bytes.bytes, saved, bytes.size_bytes);
    }
    assert_true(nb_handle_pool_is_valid(pool));
    nb_handle_pool_destroy(pool);
}

// --- labels ---

TEST(label_table_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_labels *labels = UNTOUCHED(nb_labels);
    nb_labels_desc desc = {.label_count_max = NB_LABEL_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(&desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(NULL, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(&desc, &labels));
    assert_int_equal(heap.call_count.value, 0);
    desc.label_count_max = 1;
    refused_memory(heap, 1, labels, nb_labels_create(&desc, &labels));
    silent(nb_labels_destroy(NULL));
}

TEST(label_functions_refuse_null_and_foreign_labels) {
    nb_labels *labels = NULL;
    nb_label label = {0x5A};
    nb_labels_stats stats = {.label_count = 1};
    const char *name = NULL;
    char text[NB_LABEL_SIZE_MAX + 2];
    memset(text, 'x', sizeof text); // no final zero: no byte past the longest name may be read
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_labels_intern(NULL, "a", &label));
    reported_default(NB_ITEM_BASE_NULL, name = nb_labels_name(NULL, label));
    assert_string_equal(name, "?");
    reported_default(NB_ITEM_BASE_NULL, stats = nb_labels_stats_get(NULL));
    assert_zero(stats);
    assert_int_equal(nb_labels_create(&(nb_labels_desc){.label_count_max = 1, .hooks = bad_hooks(NULL)}, &labels),
                     NB_OK);
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, NULL, &label));
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, "a", NULL));
    refused(NB_ERR_RANGE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, text, &label));
    assert_int_equal(label.id, 0x5A);
    reported(NB_ITEM_LABEL_ARGUMENT, name = nb_labels_name(labels, label));
    assert_string_equal(name, "?");
    reported(NB_ITEM_LABEL_ARGUMENT, name = nb_labels_name(labels, (nb_label){UINT32_MAX}));
    assert_string_equal(name, "?");
    accepted(NB_OK, nb_labels_intern(labels, "a", &label));
    nb_label other = {0x5A};
    accepted(NB_FULL, nb_labels_intern(labels, "b", &other)); // a warning, once
    assert_int_equal(other.id, 0x5A);
    assert_string_equal(nb_labels_name(labels, label), "a");
    nb_labels_destroy(labels);
}
