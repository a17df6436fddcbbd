// SPDX-License-Identifier: MIT
// Where an arena's memory comes from: full and chained blocks, pages, peaks and shrinking, memory that fails.

#include "base/arena_support.h"
#include "support/faults.h"

#include "base/poison.h"

// --- full: FAIL and CHAIN ---

TEST(full_is_counted_and_logged_once_a_frame) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 256, NB_ARENA_POLICY_DEFAULT);
        for (uint32_t frame = 1; frame <= 3; ++frame) {
            assert_non_null(nb_arena_alloc(&arena, 200, 1));
            for (int i = 0; i < 5; ++i) assert_null(nb_arena_alloc(&arena, 100, 1));
            assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_FULL), frame);
            assert_int_equal(stats_of(&arena).overflow_count, frame * 5);
            assert_int_equal(stats_of(&arena).refused_count, frame * 5);
            nb_arena_reset(&arena);
        }
        arena_close(&arena);
    }
}

TEST(chain_serves_overflow_and_reset_returns_to_the_first_block) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        test_heap heap = {0};
        memset(&arena_log, 0, sizeof arena_log);
        nb_arena_desc desc = {.buffer = kinds[k].is_buffer ? buffer : NULL,
                              .capacity_bytes = 4096,
                              .policy = NB_ARENA_POLICY_CHAIN,
                              .checks = kinds[k].checks,
                              .hooks = test_hooks(&arena_log, &heap)};
        nb_arena arena;
        assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
        void *first = NULL;
        uint64_t calls = 0;
        for (int frame = 0; frame < 20; ++frame) {
            void *start = nb_arena_alloc(&arena, 64, 64);
            if (frame == 0) first = start;
            assert_ptr_equal(start, first);
            for (int i = 0; i < 40; ++i) memset(nb_arena_alloc(&arena, 1000, 16), frame, 1000);
            memset(nb_arena_alloc(&arena, 10000, 4096), frame, 10000);
            assert_true(nb_arena_is_valid(&arena));
            assert_int_equal(nb_arena_bytes_used(&arena) + nb_arena_bytes_remaining(&arena), nb_arena_capacity(&arena));
            assert_int_equal(stats_of(&arena).allocation_count, 42);
            assert_int_equal(stats_of(&arena).padding_bytes, nb_arena_bytes_used(&arena) - 50064);
            nb_arena_reset(&arena);
            // Later frames fill the kept blocks: no heap calls, no log.
            if (frame == 0) calls = nbi_atomic_load_relaxed_u64(&heap.call_count);
            assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.call_count), calls);
            assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_FULL), 1);
        }
        assert_true(stats_of(&arena).chained_block_count >= 10);
        assert_int_equal(stats_of(&arena).refused_count, 0);
        arena_close(&arena);
        assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
    }
}

TEST(kept_block_that_is_too_small_waits_for_its_turn) {
    nb_arena arena;
    arena_open(&arena, kinds[0], 4096, NB_ARENA_POLICY_CHAIN);
    assert_non_null(nb_arena_alloc(&arena, 4096, 1));
    assert_non_null(nb_arena_alloc(&arena, 100, 1));
    nb_arena_reset(&arena);
    assert_int_equal(stats_of(&arena).chained_block_count, 1);
    memset(nb_arena_alloc(&arena, 50000, 1), 1, 50000);
    assert_int_equal(stats_of(&arena).chained_block_count, 2);
    assert_true(nb_arena_is_valid(&arena));
    memset(nb_arena_alloc(&arena, 100, 1), 1, 100);
    assert_int_equal(stats_of(&arena).chained_block_count, 2);
    arena_close(&arena);
}

TEST(chain_is_bounded) {
    memset(&arena_log, 0, sizeof arena_log);
    nb_arena_desc desc = {.buffer = buffer,
                          .capacity_bytes = 1024,
                          .policy = NB_ARENA_POLICY_CHAIN,
                          .chain_block_bytes = 4096,
                          .chain_bytes_max = 10000,
                          .hooks = test_hooks(&arena_log, NULL)};
    nb_arena arena;
    assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
    assert_null(nb_arena_alloc(&arena, 10001, 1));
    assert_null(nb_arena_alloc(&arena, SIZE_MAX, 4096));
    assert_null(nb_arena_alloc(&arena, SIZE_MAX - 64, 4096));
    assert_null(nb_arena_alloc(&arena, 1, NB_ARENA_ALIGNMENT_MAX));
    assert_non_null(nb_arena_alloc(&arena, 4096, 1));
    assert_non_null(nb_arena_alloc(&arena, 4096, 1));
    assert_null(nb_arena_alloc(&arena, 4096, 1));
    assert_int_equal(stats_of(&arena).refused_count, 5);
    assert_int_equal(nb_arena_capacity(&arena), 1024 + 8192);
    arena_close(&arena);
}

TEST(marks_and_growth_work_across_chained_blocks) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 1024, NB_ARENA_POLICY_CHAIN);
        unsigned char *memory = nb_arena_alloc(&arena, 1000, 1);
        memset(memory, 5, 1000);
        nb_arena_mark mark = nb_arena_save(&arena);
        unsigned char *moved = nb_arena_grow(&arena, memory, 1000, 3000, 1);
        assert_ptr_not_equal(moved, memory);
        for (int i = 0; i < 1000; ++i) assert_int_equal(moved[i], 5);
        nb_arena_mark late = nb_arena_save(&arena);
        assert_non_null(nb_arena_alloc(&arena, 20000, 1));
        assert_int_equal(nb_arena_rewind(&arena, late), NB_OK);
        assert_ptr_equal(nb_arena_grow(&arena, moved, 3000, 4000, 1), moved);
        assert_int_equal(nb_arena_rewind(&arena, mark), NB_OK);
        assert_int_equal(nb_arena_bytes_used(&arena), 1000);
        // The late mark's block is freed now; the mark is compared, never followed.
        assert_int_equal(nb_arena_trim(&arena, 0), NB_OK);
        assert_int_equal(stats_of(&arena).chained_block_count, 0);
        assert_int_equal(nb_arena_rewind(&arena, late), NB_ERR_STALE);
        arena_close(&arena);
    }
}

// --- pages, peaks, shrinking ---

TEST(pages_are_committed_as_needed) {
    nb_arena arena;
    arena_open(&arena, kinds[0], 0, NB_ARENA_POLICY_DEFAULT);
    assert_int_equal(nb_arena_capacity(&arena), NB_ARENA_CAPACITY_DEFAULT);
    assert_int_equal(stats_of(&arena).committed_bytes, 0);
    memset(nb_arena_alloc(&arena, 1, 1), 1, 1);
    size_t step = stats_of(&arena).committed_bytes;
    assert_true(step > 0 && step <= NB_ARENA_CAPACITY_DEFAULT / 16);
    memset(nb_arena_alloc(&arena, 3 * step, 1), 1, 3 * step);
    assert_int_equal(stats_of(&arena).committed_bytes, 4 * step);
    assert_non_null(nb_arena_alloc(&arena, nb_arena_bytes_remaining(&arena), 1));
    assert_null(nb_arena_alloc(&arena, 1, 1));
    arena_close(&arena);
}

static void frame_using(nb_arena *arena, size_t size_bytes) {
    assert_non_null(nb_arena_alloc(arena, size_bytes, 1));
    nb_arena_reset(arena);
}

TEST(peak_percentile_leaves_one_outlier_out) {
    nb_arena arena;
    arena_open(&arena, kinds[0], 1 << 20, NB_ARENA_POLICY_FAIL);
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 0);
    frame_using(&arena, 5000);
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 5000);
    for (int i = 0; i < 126; ++i) frame_using(&arena, (size_t)(1000 + i));
    frame_using(&arena, 3000);
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 3000);
    frame_using(&arena, 4000); // the oldest, 5000, has left the ring
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 3000);
    frame_using(&arena, 4500);
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 4000);
    assert_int_equal(nb_arena_high_watermark(&arena), 5000);
    arena_close(&arena);
}

TEST(frame_peak_counts_what_was_rewound) {
    nb_arena arena;
    arena_open(&arena, kinds[2], 4096, NB_ARENA_POLICY_FAIL);
    nb_arena_mark mark = nb_arena_save(&arena);
    assert_non_null(nb_arena_alloc(&arena, 3000, 1));
    nb_arena_rewind(&arena, mark);
    nb_arena_high_watermark_reset(&arena);
    assert_int_equal(nb_arena_high_watermark(&arena), 0);
    frame_using(&arena, 10);
    assert_int_equal(stats_of(&arena).peak_p99_bytes, 3000);
    assert_int_equal(nb_arena_high_watermark(&arena), 10);
    arena_close(&arena);
}

TEST(memory_that_128_frames_did_not_need_goes_back) {
    for (size_t k = 0; k < 2; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4 << 20, NB_ARENA_POLICY_CHAIN);
        frame_using(&arena, 4 << 20);
        assert_non_null(nb_arena_alloc(&arena, 4 << 20, 1));
        frame_using(&arena, 1 << 20);
        size_t peak = stats_of(&arena).committed_bytes;
        assert_true(peak >= 5u << 20);
        for (int i = 0; i < 120; ++i) frame_using(&arena, 1 << 20);
        assert_int_equal(stats_of(&arena).committed_bytes, peak);
        for (int i = 0; i < 140; ++i) frame_using(&arena, 1 << 20);
        assert_int_equal(stats_of(&arena).committed_bytes, 1 << 20);
        assert_int_equal(stats_of(&arena).chained_block_count, 0);
        // It comes back when it is needed.
        memset(nb_arena_alloc(&arena, 4 << 20, 1), 1, 4 << 20);
        arena_close(&arena);
    }
}

TEST(swinging_load_keeps_its_memory) {
    nb_arena arena;
    arena_open(&arena, kinds[0], 4 << 20, NB_ARENA_POLICY_FAIL);
    frame_using(&arena, 4 << 20);
    os.pages.call_count.value = 0;
    for (int i = 0; i < 1000; ++i) frame_using(&arena, i % 100 == 0 ? 4 << 20 : 1 << 10);
    assert_int_equal(stats_of(&arena).committed_bytes, 4 << 20);
    assert_int_equal(os.pages.call_count.value, 0);
    arena_close(&arena);

    nb_arena_desc desc = {.capacity_bytes = 4 << 20, .keep_committed = true};
    assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
    frame_using(&arena, 4 << 20);
    for (int i = 0; i < 1000; ++i) frame_using(&arena, 1);
    assert_int_equal(stats_of(&arena).committed_bytes, 4 << 20);
    nb_arena_mark mark = nb_arena_save(&arena);
    memset(nb_arena_alloc(&arena, 1 << 20, 1), 1, 1 << 20);
    assert_int_equal(nb_arena_trim(&arena, 0), NB_OK);
    assert_int_equal(stats_of(&arena).committed_bytes, 1 << 20);
    nb_arena_rewind(&arena, mark);
    assert_int_equal(nb_arena_trim(&arena, 1 << 19), NB_OK);
    assert_int_equal(stats_of(&arena).committed_bytes, 1 << 19);
    arena_close(&arena);
}

// The fast path adds bytes and count into the halves of one word; together they may exceed what a half holds.
TEST(counters_stay_exact_beyond_4_gib) {
    if (NBI_WITH_ASAN || NBI_WITH_MSAN || sizeof(void *) < 8) skip();
    nb_arena arena;
    size_t block = (size_t)4 << 20;
    size_t count = 1500;
    nb_arena_desc desc = {.capacity_bytes = block * count, .checks = NB_ARENA_CHECKS_OFF};
    assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
    for (int frame = 0; frame < 2; ++frame) { // the second finds everything committed and stays in the fast path
        for (size_t i = 0; i < count; ++i) assert_non_null(nb_arena_alloc(&arena, block - 8, 16));
        assert_int_equal(stats_of(&arena).allocation_count, count);
        assert_int_equal(stats_of(&arena).padding_bytes, (count - 1) * 8);
        assert_true(nb_arena_is_valid(&arena));
        nb_arena_reset(&arena);
    }
    arena_close(&arena);
}

// --- failing memory ---

// Ten frames on a chained arena of pages. Returns how many allocations were refused.
static uint32_t run_frames(test_log *log, test_heap *heap) {
    nb_arena arena;
    nb_arena_desc desc = {.capacity_bytes = 1 << 20, .policy = NB_ARENA_POLICY_CHAIN, .hooks = test_hooks(log, heap)};
    nb_result result = nb_arena_init(&arena, &desc);
    if (result == NB_ERR_MEMORY) return 1;
    assert_int_equal(result, NB_OK);
    uint32_t refused = 0;
    for (int frame = 0; frame < 10; ++frame) {
        for (int i = 0; i < 8; ++i) {
            size_t used = nb_arena_bytes_used(&arena);
            unsigned char *memory = nb_arena_alloc(&arena, 300000, 64);
            if (memory == NULL) {
                ++refused;
                assert_int_equal(nb_arena_bytes_used(&arena), used);
            } else {
                memory[0] = memory[299999] = 1;
            }
            assert_true(nb_arena_is_valid(&arena));
        }
        nb_arena_reset(&arena);
    }
    arena_close(&arena);
    return refused;
}

TEST(failing_memory_is_survived_at_every_call) {
    for (int from_on = 0; from_on < 2; ++from_on) {
        bool has_failed = true;
        for (uint64_t call = 1; has_failed; ++call) {
            assert_true(call < 100);
            test_log log = {0};
            test_heap heap = test_heap_failing(call, from_on);
            uint32_t refused = run_frames(&log, &heap);
            has_failed = nbi_atomic_load_relaxed_u64(&heap.call_count) >= call;
            assert_int_equal(refused != 0, has_failed);
            assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY) != 0, has_failed);
            assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
        }
    }
}

TEST(failing_pages_are_survived_at_every_call) {
    for (int from_on = 0; from_on < 2; ++from_on) {
        bool has_failed = true;
        for (uint64_t call = 1; has_failed; ++call) {
            assert_true(call < 100);
            test_log log = {0};
            test_heap heap = {0};
            os.pages.call_count.value = 0;
            os.pages.fail_at = from_on ? 0 : call;
            os.pages.fail_from = from_on ? call : 0;
            uint32_t refused = run_frames(&log, &heap);
            has_failed = os.pages.call_count.value >= call;
            // The first call reserves, and nothing can be had without it; where commits fail the chain serves.
            assert_int_equal(refused != 0, has_failed && call == 1);
            assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY) != 0, has_failed);
            assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
        }
    }
    os.pages.fail_at = os.pages.fail_from = 0;
}

TEST(failing_commit_is_refused_and_works_later) {
    nb_arena arena;
    arena_open(&arena, kinds[1], 1 << 20, NB_ARENA_POLICY_FAIL);
    os.pages.call_count.value = 0;
    os.pages.fail_from = 1;
    assert_null(nb_arena_alloc(&arena, 100, 8));
    assert_int_equal(nb_arena_bytes_used(&arena), 0);
    os.pages.fail_from = 0;
    memset(nb_arena_alloc(&arena, 1 << 20, 8), 1, 1 << 20);
    arena_close(&arena);
}
