// SPDX-License-Identifier: MIT
// Arenas: the plan's eight tests, alignment, bad input, growth, marks, cleanups, poison, threads.

#include "base/arena_support.h"

#include "base/poison.h"

// --- the plan's tests ---

TEST(test_alloc_returns_valid_pointer) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        void *memory = nb_arena_alloc(&arena, 64, 8);
        assert_non_null(memory);
        assert_true(is_aligned(memory, 8));
        memset(memory, 0x5A, 64);
        arena_close(&arena);
    }
}

TEST(test_multiple_allocations_dont_overlap) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        unsigned char *a = nb_arena_alloc(&arena, 128, 8);
        unsigned char *b = nb_arena_alloc(&arena, 128, 8);
        unsigned char *c = nb_arena_alloc(&arena, 128, 8);
        assert_non_null(a);
        assert_true(b >= a + 128);
        assert_true(c >= b + 128);
        arena_close(&arena);
    }
}

TEST(test_reset_frees_all_memory) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 256, 8));
        assert_true(nb_arena_bytes_used(&arena) > 0);
        assert_int_equal(nb_arena_reset(&arena), NB_OK);
        assert_int_equal(nb_arena_bytes_used(&arena), 0);
        assert_int_equal(nb_arena_bytes_remaining(&arena), nb_arena_capacity(&arena));
        assert_int_equal(nb_arena_capacity(&arena), 4096);
        arena_close(&arena);
    }
}

TEST(test_arena_respects_capacity) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 256, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 256, 1));
        assert_int_equal(nb_arena_bytes_remaining(&arena), 0);
        assert_null(nb_arena_alloc(&arena, 1, 1));
        assert_int_equal(nb_arena_bytes_used(&arena), 256);
        assert_int_equal(stats_of(&arena).refused_count, 1);
        arena_close(&arena);
    }
}

TEST(test_allocation_after_reset_reuses_memory) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        void *before = nb_arena_alloc(&arena, 64, 8);
        assert_int_equal(nb_arena_reset(&arena), NB_OK);
        assert_ptr_equal(nb_arena_alloc(&arena, 64, 8), before);
        arena_close(&arena);
    }
}

TEST(test_high_watermark_tracks_peak_usage) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        for (int i = 0; i < 3; ++i) assert_non_null(nb_arena_alloc(&arena, 100, 8));
        size_t peak = nb_arena_high_watermark(&arena);
        assert_true(peak >= 300);
        assert_int_equal(peak, nb_arena_bytes_used(&arena));
        nb_arena_reset(&arena);
        assert_int_equal(nb_arena_high_watermark(&arena), peak);
        assert_int_equal(nb_arena_high_watermark_reset(&arena), NB_OK);
        assert_int_equal(nb_arena_high_watermark(&arena), 0);
        arena_close(&arena);
    }
}

TEST(test_alloc_val_stores_value) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        uint64_t first = 42;
        uint64_t *value = nb_arena_array_fill(&arena, uint64_t, 1, &first);
        assert_non_null(value);
        assert_int_equal(*value, 42);
        *value = 99;
        assert_int_equal(*value, 99);
        uint64_t *zero = nb_arena_new(&arena, uint64_t);
        assert_non_null(zero);
        assert_int_equal(*zero, 0);
        assert_int_equal(*value, 99);
        arena_close(&arena);
    }
}

TEST(test_alloc_slice_initializes_values) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        uint32_t value = 0xDEAD;
        uint32_t *slice = nb_arena_array_fill(&arena, uint32_t, 10, &value);
        assert_non_null(slice);
        for (int i = 0; i < 10; ++i) assert_int_equal(slice[i], 0xDEAD);
        uint32_t *zeroed = nb_arena_array(&arena, uint32_t, 10);
        for (int i = 0; i < 10; ++i) assert_int_equal(zeroed[i], 0);
        assert_int_equal(stats_of(&arena).padding_bytes, 0);
        arena_close(&arena);
    }
}

// --- alignment, sizes ---

// The plan's arena aligned the offset: 48 of these 64 bases gave a misaligned pointer.
TEST(alignment_is_of_the_address_for_every_base) {
    static const size_t alignments[] = {1, 2, 8, 16, 32, 64, 128, 4096};
    for (size_t base = 0; base < 64; ++base) {
        for (size_t checks = NB_ARENA_CHECKS_OFF; checks <= NB_ARENA_CHECKS_ON; ++checks) {
            nb_arena arena;
            nb_arena_desc desc = {.buffer = buffer + base,
                                  .capacity_bytes = BUFFER_BYTES - 64,
                                  .checks = (nb_arena_checks)checks,
                                  .hooks = test_hooks(&arena_log, NULL)};
            assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
            for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; ++i) {
                nb_arena_reset(&arena);
                assert_non_null(nb_arena_alloc(&arena, 3, 1));
                unsigned char *memory = nb_arena_alloc(&arena, 40, alignments[i]);
                assert_non_null(memory);
                assert_true(is_aligned(memory, alignments[i]));
                memset(memory, 1, 40);
                assert_int_equal(stats_of(&arena).padding_bytes, nb_arena_bytes_used(&arena) - 43);
            }
            arena_close(&arena);
        }
    }
}

TEST(alignment_up_to_a_huge_page_is_served) {
    for (size_t k = 0; k < 2; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4 * NB_ARENA_ALIGNMENT_MAX, NB_ARENA_POLICY_FAIL);
        for (size_t alignment = 1; alignment <= NB_ARENA_ALIGNMENT_MAX; alignment *= 2) {
            unsigned char *memory = nb_arena_alloc(&arena, 1, alignment);
            assert_non_null(memory);
            assert_true(is_aligned(memory, alignment));
            *memory = 1;
        }
        arena_close(&arena);
    }
}

TEST(bad_sizes_and_alignments_change_nothing) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 5, 1));
        static const size_t sizes[] = {4097,         1u << 20,     SIZE_MAX / 2, SIZE_MAX - 4096,
                                       SIZE_MAX - 8, SIZE_MAX - 1, SIZE_MAX};
        static const size_t good[] = {1, 8, 64, 4096};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            for (size_t j = 0; j < 4; ++j) assert_null(nb_arena_alloc(&arena, sizes[i], good[j]));
        }
        assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_ARGUMENT), 0);
        static const size_t bad[] = {0, 3, 12, 4097, SIZE_MAX, SIZE_MAX / 2 + 1, NB_ARENA_ALIGNMENT_MAX * 2};
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
            volatile size_t alignment = bad[i];
            assert_null(nb_arena_alloc(&arena, 8, alignment));
            assert_null(nb_arena_alloc(&arena, 0, alignment));
        }
        assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_ARGUMENT), 14);
        // The products wrap to 8, to 0 and to a size near the top.
        static const size_t counts[] = {SIZE_MAX / 8 + 2, SIZE_MAX / 8 + 1, SIZE_MAX};
        for (size_t i = 0; i < 3; ++i) {
            uint64_t value = 1;
            assert_null(nb_arena_array(&arena, uint64_t, counts[i]));
            assert_null(nb_arena_array_fill(&arena, uint64_t, counts[i], &value));
        }
        assert_int_equal(nb_arena_bytes_used(&arena), 5);
        assert_int_equal(stats_of(&arena).allocation_count, 1);
        assert_int_equal(stats_of(&arena).padding_bytes, 0);
        assert_non_null(nb_arena_alloc(&arena, 4091, 1));
        arena_close(&arena);
    }
}

TEST(size_zero_gives_a_pointer_and_takes_nothing) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 256, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 3, 1));
        void *memory = nb_arena_alloc(&arena, 0, 64);
        assert_non_null(memory);
        assert_true(is_aligned(memory, 64));
        assert_non_null(nb_arena_array(&arena, uint32_t, 0));
        assert_non_null(nb_arena_memdup(&arena, "", 0, 1));
        assert_int_equal(nb_arena_bytes_used(&arena), 3);
        assert_int_equal(stats_of(&arena).allocation_count, 1);
        assert_non_null(nb_arena_alloc(&arena, 253, 1));
        assert_non_null(nb_arena_alloc(&arena, 0, 1));
        assert_int_equal(stats_of(&arena).overflow_count, 0);
        arena_close(&arena);
    }
}

TEST(padding_that_does_not_fit_is_refused) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 100, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 97, 1));
        assert_null(nb_arena_alloc(&arena, 1, 64));
        assert_null(nb_arena_alloc(&arena, SIZE_MAX - 2, 64));
        assert_int_equal(nb_arena_bytes_remaining(&arena), 3);
        assert_non_null(nb_arena_alloc(&arena, 3, 1));
        arena_close(&arena);
    }
}

TEST(copies_are_copies) {
    nb_arena arena;
    arena_open(&arena, kinds[3], 256, NB_ARENA_POLICY_FAIL);
    char *text = nb_arena_strdup(&arena, "nebula");
    assert_string_equal(text, "nebula");
    uint32_t numbers[3] = {1, 2, 3};
    uint32_t *copy = nb_arena_memdup(&arena, numbers, sizeof numbers, _Alignof(uint32_t));
    assert_memory_equal(copy, numbers, sizeof numbers);
    assert_null(nb_arena_strdup(&arena, NULL));
    assert_null(nb_arena_memdup(&arena, NULL, 4, 4));
    assert_null(nb_arena_fill(&arena, 1, 1, 1, NULL));
    arena_close(&arena);
}

// --- growth ---

TEST(growth_of_the_newest_block_keeps_its_address) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 1, 1));
        unsigned char *memory = nb_arena_alloc(&arena, 16, 8);
        memset(memory, 7, 16);
        size_t used = nb_arena_bytes_used(&arena);
        assert_ptr_equal(nb_arena_grow(&arena, memory, 16, 1000, 8), memory);
        assert_int_equal(nb_arena_bytes_used(&arena), used + 984);
        memset(memory + 16, 8, 984);
        assert_ptr_equal(nb_arena_grow(&arena, memory, 1000, 20, 8), memory);
        assert_int_equal(nb_arena_bytes_used(&arena), used + 4);
        assert_int_equal(nb_arena_high_watermark(&arena), used + 984);
        assert_int_equal(stats_of(&arena).allocation_count, 2);
        for (int i = 0; i < 16; ++i) assert_int_equal(memory[i], 7);
        assert_true((unsigned char *)nb_arena_alloc(&arena, 8, 1) >= memory + 20);
        arena_close(&arena);
    }
}

TEST(growth_of_an_older_block_copies_it) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        unsigned char *old = nb_arena_alloc(&arena, 16, 8);
        memset(old, 7, 16);
        unsigned char *newest = nb_arena_alloc(&arena, 16, 8);
        memset(newest, 9, 16);
        unsigned char *moved = nb_arena_grow(&arena, old, 16, 64, 8);
        assert_true(moved >= newest + 16);
        memset(moved + 16, 1, 48);
        for (int i = 0; i < 16; ++i) assert_true(moved[i] == 7 && newest[i] == 9 && old[i] == 7);
        assert_ptr_equal(nb_arena_grow(&arena, old, 16, 4, 8), old);
        arena_close(&arena);
    }
}

TEST(growth_that_does_not_fit_leaves_the_block) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 256, NB_ARENA_POLICY_FAIL);
        unsigned char *memory = nb_arena_alloc(&arena, 100, 1);
        memset(memory, 7, 100);
        assert_ptr_equal(nb_arena_grow(&arena, memory, 100, 256, 1), memory);
        assert_null(nb_arena_grow(&arena, memory, 256, 257, 1));
        assert_null(nb_arena_grow(&arena, memory, 256, SIZE_MAX, 1));
        assert_int_equal(nb_arena_bytes_used(&arena), 256);
        assert_int_equal(memory[99], 7);
        arena_close(&arena);
    }
}

TEST(growth_of_foreign_memory_is_refused) {
    nb_arena arena;
    arena_open(&arena, kinds[0], 256, NB_ARENA_POLICY_FAIL);
    unsigned char *memory = nb_arena_alloc(&arena, 16, 1);
    char elsewhere[16];
    assert_null(nb_arena_grow(&arena, elsewhere, 16, 32, 1));
    assert_null(nb_arena_grow(&arena, memory, 17, 32, 1));
    assert_null(nb_arena_grow(&arena, memory + 16, 8, 32, 1));
    assert_null(nb_arena_grow(&arena, memory, SIZE_MAX, 32, 1));
    assert_null(nb_arena_grow(&arena, memory, 16, 32, 3));
    assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_ARGUMENT), 5);
    assert_non_null(nb_arena_grow(&arena, NULL, 0, 32, 8));
    assert_int_equal(nb_arena_bytes_used(&arena), 48);
    // A stronger alignment than the block has moves it; sizes a caller makes up cannot upset the sums.
    unsigned char *moved = nb_arena_grow(&arena, memory, 16, 16, 64);
    assert_true(is_aligned(moved, 64));
    assert_ptr_equal(nb_arena_grow(&arena, memory, nb_arena_bytes_used(&arena), 8, 1), memory);
    assert_int_equal(nb_arena_bytes_used(&arena), 8);
    arena_close(&arena);
}

// --- release: marks, generations, poison, cleanups ---

TEST(rewind_releases_what_came_after_the_mark) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        unsigned char *kept = nb_arena_alloc(&arena, 10, 1);
        memset(kept, 3, 10);
        nb_arena_mark outer = nb_arena_save(&arena);
        void *first = nb_arena_alloc(&arena, 100, 8);
        nb_arena_mark inner = nb_arena_save(&arena);
        assert_non_null(nb_arena_alloc(&arena, 1000, 8));
        assert_int_equal(nb_arena_rewind(&arena, inner), NB_OK);
        assert_int_equal(stats_of(&arena).allocation_count, 2);
        assert_int_equal(nb_arena_rewind(&arena, outer), NB_OK);
        assert_int_equal(nb_arena_bytes_used(&arena), 10);
        assert_ptr_equal(nb_arena_alloc(&arena, 100, 8), first);
        assert_int_equal(nb_arena_rewind(&arena, outer), NB_OK);
        for (int i = 0; i < 10; ++i) assert_int_equal(kept[i], 3);
        assert_true(nb_arena_high_watermark(&arena) >= 1110);
        arena_close(&arena);
    }
}

TEST(stale_and_foreign_marks_are_refused) {
    nb_arena arena;
    nb_arena other;
    arena_open(&other, kinds[0], 4096, NB_ARENA_POLICY_FAIL);
    arena_open(&arena, kinds[0], 4096, NB_ARENA_POLICY_FAIL);
    nb_arena_mark outer = nb_arena_save(&arena);
    assert_non_null(nb_arena_alloc(&arena, 100, 1));
    nb_arena_mark inner = nb_arena_save(&arena);
    assert_int_equal(nb_arena_rewind(&arena, nb_arena_save(&other)), NB_ERR_STALE);
    assert_int_equal(nb_arena_rewind(&arena, (nb_arena_mark){0}), NB_ERR_STALE);
    assert_int_equal(nb_arena_rewind(&arena, outer), NB_OK);
    assert_int_equal(nb_arena_rewind(&arena, inner), NB_ERR_STALE);
    nb_arena_reset(&arena);
    assert_int_equal(nb_arena_rewind(&arena, outer), NB_ERR_STALE);
    assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_STALE), 4);
    arena_close(&arena);
    arena_close(&other);
}

static bool is_poisoned(const unsigned char *memory) {
#if NBI_WITH_ASAN
    return __asan_address_is_poisoned(memory);
#elif NBI_WITH_MSAN
    return __msan_test_shadow(memory, 1) == 0;
#else
    return *memory == NB_ARENA_POISON_BYTE;
#endif
}

TEST(released_memory_is_poisoned) {
    for (size_t k = 1; k < KIND_COUNT; k += 2) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_CHAIN);
        unsigned char *kept = nb_arena_alloc(&arena, 64, 8);
        memset(kept, 1, 64);
        nb_arena_mark mark = nb_arena_save(&arena);
        unsigned char *dropped = nb_arena_alloc(&arena, 64, 8);
        memset(dropped, 1, 64);
        unsigned char *chained = nb_arena_alloc(&arena, 8000, 8);
        memset(chained, 1, 8000);
        nb_arena_rewind(&arena, mark);
        assert_true(is_poisoned(dropped) && is_poisoned(dropped + 63));
        assert_true(is_poisoned(chained) && is_poisoned(chained + 7999));
        assert_false(is_poisoned(kept + 63));
        unsigned char *again = nb_arena_alloc(&arena, 64, 8);
        assert_ptr_equal(again, dropped);
        memset(again, 1, 64);
        assert_false(is_poisoned(again));
        assert_ptr_equal(nb_arena_grow(&arena, again, 64, 8, 8), again);
        assert_true(is_poisoned(again + 8));
        nb_arena_reset(&arena);
        assert_true(is_poisoned(kept) && is_poisoned(again));
        arena_close(&arena);
    }
    memset(buffer, 0, sizeof buffer); // the caller has the buffer back, whole
}

TEST(stale_reference_is_caught_after_reset) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        assert_non_null(nb_arena_alloc(&arena, 8, 8));
        nb_arena_mark mark = nb_arena_save(&arena);
        void *memory = nb_arena_alloc(&arena, 64, 8);
        nb_arena_ref ref = nb_arena_ref_make(&arena, memory);
        assert_ptr_equal(nb_arena_ref_get(&arena, ref), memory);
        nb_arena_rewind(&arena, mark);
        assert_null(nb_arena_ref_get(&arena, ref));
        uint64_t generation = nb_arena_generation(&arena);
        nb_arena_reset(&arena);
        assert_true(nb_arena_generation(&arena) > generation);
        assert_non_null(nb_arena_alloc(&arena, 4000, 8));
        assert_null(nb_arena_ref_get(&arena, ref));
        assert_null(nb_arena_ref_get(&arena, (nb_arena_ref){0}));
        assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_STALE), 3);
        assert_int_equal(nb_arena_ref_make(&arena, &arena).generation, 0);
        arena_close(&arena);
    }
}

typedef struct cleanup_log {
    int order[8];
    int count;
    nb_arena *arena;
    int refused;
} cleanup_log;

static cleanup_log cleanups;

static void note_cleanup(void *user) { cleanups.order[cleanups.count++] = *(int *)user; }

static int *defer_number(nb_arena *arena, int number) {
    int *memory = nb_arena_new(arena, int);
    assert_non_null(memory);
    *memory = number;
    assert_int_equal(nb_arena_defer(arena, note_cleanup, memory), NB_OK);
    return memory;
}

TEST(cleanups_run_newest_first) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        cleanups = (cleanup_log){0};
        nb_arena arena;
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        defer_number(&arena, 1);
        nb_arena_mark mark = nb_arena_save(&arena);
        defer_number(&arena, 2);
        defer_number(&arena, 3);
        nb_arena_rewind(&arena, mark);
        assert_int_equal(cleanups.count, 2);
        assert_true(cleanups.order[0] == 3 && cleanups.order[1] == 2);
        defer_number(&arena, 4);
        nb_arena_reset(&arena);
        assert_int_equal(cleanups.count, 4);
        assert_true(cleanups.order[2] == 4 && cleanups.order[3] == 1);
        nb_arena_reset(&arena);
        assert_int_equal(cleanups.count, 4);
        defer_number(&arena, 5);
        arena_close(&arena);
        assert_int_equal(cleanups.count, 5);
    }
}

static void call_the_arena(void *user) {
    (void)user;
    nb_arena *arena = cleanups.arena;
    cleanups.refused += nb_arena_alloc(arena, 1, 1) == NULL;
    cleanups.refused += nb_arena_reset(arena) == NB_ERR_MISUSE;
    cleanups.refused += nb_arena_deinit(arena) == NB_ERR_MISUSE;
    cleanups.refused += nb_arena_defer(arena, note_cleanup, NULL) == NB_ERR_MISUSE;
    cleanups.refused += nb_arena_trim(arena, 0) == NB_ERR_MISUSE;
    cleanups.refused += nb_arena_rewind(arena, nb_arena_save(arena)) == NB_ERR_MISUSE;
}

TEST(cleanup_that_calls_its_arena_is_refused) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        nb_arena arena;
        cleanups = (cleanup_log){.arena = &arena};
        arena_open(&arena, kinds[k], 4096, NB_ARENA_POLICY_FAIL);
        assert_int_equal(nb_arena_defer(&arena, call_the_arena, NULL), NB_OK);
        assert_int_equal(nb_arena_reset(&arena), NB_OK);
        assert_int_equal(cleanups.refused, 6);
        assert_int_equal(nb_arena_bytes_used(&arena), 0);
        assert_non_null(nb_arena_alloc(&arena, 4096, 1));
        assert_int_equal(nb_arena_defer(&arena, call_the_arena, NULL), NB_ERR_MEMORY);
        arena_close(&arena);
    }
}

// --- threads ---

typedef struct visitor {
    nb_arena *arena;
    void *memory;
    nb_result reset, adopt, owned_reset;
} visitor;

static void visit(void *user) {
    visitor *v = user;
    v->memory = nb_arena_alloc(v->arena, 8, 8);
    v->reset = nb_arena_reset(v->arena);
    v->adopt = nb_arena_adopt(v->arena);
    v->owned_reset = nb_arena_reset(v->arena);
}

TEST(foreign_thread_is_refused_until_it_adopts) {
    nb_arena arena;
    arena_open(&arena, kinds[1], 4096, NB_ARENA_POLICY_FAIL);
    assert_non_null(nb_arena_alloc(&arena, 100, 1));
    visitor v = {.arena = &arena};
    test_thread_run(visit, &v);
    assert_null(v.memory);
    assert_int_equal(v.reset, NB_ERR_THREAD);
    assert_int_equal(v.adopt, NB_OK);
    assert_int_equal(v.owned_reset, NB_OK);
    assert_null(nb_arena_alloc(&arena, 8, 8));
    assert_int_equal(nb_arena_deinit(&arena), NB_ERR_THREAD);
    assert_int_equal(test_log_count(&arena_log, NB_ITEM_ARENA_THREAD), 4);
    assert_int_equal(nb_arena_adopt(&arena), NB_OK);
    arena_close(&arena);
}

// --- bad objects ---

TEST(null_and_dead_arenas_are_refused) {
    nb_arena dead = {0};
    assert_int_equal(nb_arena_deinit(&dead), NB_OK);
    nb_arena *cases[] = {NULL, &dead};
    for (int i = 0; i < 2; ++i) {
        nb_arena *arena = cases[i];
        assert_null(nb_arena_alloc(arena, 8, 8));
        assert_null(nb_arena_alloc(arena, 0, 1));
        assert_null(nb_arena_array(arena, int, 4));
        assert_null(nb_arena_grow(arena, &dead, 1, 2, 1));
        assert_null(nb_arena_strdup(arena, "x"));
        assert_int_equal(nb_arena_defer(arena, note_cleanup, NULL), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_save(arena).generation, 0);
        assert_int_equal(nb_arena_rewind(arena, (nb_arena_mark){0}), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_reset(arena), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_trim(arena, 0), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_adopt(arena), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_bytes_used(arena), 0);
        assert_int_equal(nb_arena_bytes_remaining(arena), 0);
        assert_int_equal(nb_arena_capacity(arena), 0);
        assert_int_equal(nb_arena_high_watermark(arena), 0);
        assert_int_equal(nb_arena_high_watermark_reset(arena), NB_ERR_MISUSE);
        assert_int_equal(nb_arena_generation(arena), 0);
        assert_int_equal(nb_arena_ref_make(arena, &dead).generation, 0);
        assert_null(nb_arena_ref_get(arena, (nb_arena_ref){&dead, 1}));
        assert_int_equal(nb_arena_stats_get(arena).capacity_bytes, 0);
        assert_false(nb_arena_is_valid(arena));
    }
    assert_int_equal(nb_arena_deinit(NULL), NB_OK);
}

TEST(default_desc_is_what_zeros_mean) {
    nb_arena_desc desc = nb_arena_desc_default();
    assert_string_equal(desc.label, "arena");
    assert_int_equal(desc.policy, NB_ARENA_POLICY_FAIL);
    assert_non_null(desc.hooks.logger.log);
    nb_arena arena, zero;
    assert_int_equal(nb_arena_init(&arena, &desc), NB_OK);
    assert_int_equal(nb_arena_init(&zero, NULL), NB_OK);
    assert_int_equal(nb_arena_capacity(&arena), NB_ARENA_CAPACITY_DEFAULT);
    assert_int_equal(nb_arena_capacity(&zero), NB_ARENA_CAPACITY_DEFAULT);
    arena_close(&arena);
    arena_close(&zero);
    // A buffer whose size was forgotten is no buffer of 16 MiB.
    desc.buffer = buffer;
    assert_int_equal(nb_arena_init(&arena, &desc), NB_ERR_MISUSE);
}

TEST(bad_descs_are_refused) {
    test_log log = {0};
    nb_hooks hooks = test_hooks(&log, NULL);
    nb_arena arena = {0};
    nb_arena_desc zero_buffer = {.buffer = buffer, .hooks = hooks};
    nb_arena_desc bad_policy = {.policy = NB_ARENA_POLICY_COUNT, .hooks = hooks};
    nb_arena_desc bad_checks = {.checks = NB_ARENA_CHECKS_COUNT, .hooks = hooks};
    nb_arena_desc huge = {.capacity_bytes = SIZE_MAX, .hooks = hooks};
    nb_arena_desc unmappable = {.capacity_bytes = SIZE_MAX / 2, .hooks = hooks};
    assert_int_equal(nb_arena_init(&arena, &zero_buffer), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init(&arena, &bad_policy), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init(&arena, &bad_checks), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init(&arena, &huge), NB_ERR_RANGE);
    assert_int_equal(nb_arena_init(&arena, &unmappable), NB_ERR_MEMORY);
    assert_int_equal(test_log_count(&log, NB_ITEM_ARENA_ARGUMENT), 4);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
    assert_int_equal(nb_arena_init(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init_buffer(&arena, NULL, 10), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init_buffer(&arena, buffer, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_init_buffer(NULL, buffer, 10), NB_ERR_MISUSE);
    assert_false(nb_arena_is_valid(&arena));
    assert_int_equal(nb_arena_init_buffer(&arena, buffer, 10), NB_OK);
    arena_close(&arena);
}

// --- everything at once ---

#define LIVE_MAX 256

typedef struct model {
    nb_arena arena;
    struct {
        unsigned char *memory;
        size_t size;
        unsigned char fill;
    } live[LIVE_MAX];
    size_t count;
    nb_arena_mark mark;
    size_t count_at_mark;
    uint64_t random;
} model;

static bool is_intact(const model *m) {
    for (size_t i = 0; i < m->count; ++i) {
        for (size_t j = 0; j < m->live[i].size; ++j) {
            if (m->live[i].memory[j] != m->live[i].fill) return false;
        }
    }
    return true;
}

static void model_alloc(model *m) {
    size_t size = test_random(&m->random) % 200 + 1;
    size_t alignment = (size_t)1 << test_random(&m->random) % 8;
    unsigned char *memory = nb_arena_alloc(&m->arena, size, alignment);
    if (memory == NULL) return;
    assert_true(is_aligned(memory, alignment));
    unsigned char fill = (unsigned char)test_random(&m->random);
    memset(memory, fill, size);
    m->live[m->count].memory = memory;
    m->live[m->count].size = size;
    m->live[m->count++].fill = fill;
}

static void model_grow(model *m) {
    if (m->count == 0) return;
    // Blocks older than the mark may be grown too, but not moved behind it: the rewind would take them away.
    size_t i = m->mark.generation != 0 ? m->count - 1 : test_random(&m->random) % m->count;
    if (i < m->count_at_mark) return;
    size_t size = test_random(&m->random) % 300 + 1;
    unsigned char *memory = nb_arena_grow(&m->arena, m->live[i].memory, m->live[i].size, size, 1);
    if (memory == NULL) return;
    size_t kept = size < m->live[i].size ? size : m->live[i].size;
    for (size_t j = 0; j < kept; ++j) assert_int_equal(memory[j], m->live[i].fill);
    memset(memory + kept, m->live[i].fill, size - kept);
    m->live[i].memory = memory;
    m->live[i].size = size;
}

static void model_release(model *m, bool is_reset) {
    if (is_reset) {
        assert_int_equal(nb_arena_reset(&m->arena), NB_OK);
        m->count = 0;
    } else {
        if (m->mark.generation == 0) return;
        assert_int_equal(nb_arena_rewind(&m->arena, m->mark), NB_OK);
        m->count = m->count_at_mark;
    }
    m->mark = (nb_arena_mark){0};
    m->count_at_mark = 0;
}

static void model_step(model *m) {
    uint64_t choice = test_random(&m->random) % 100;
    if (choice < 70 && m->count < LIVE_MAX) {
        model_alloc(m);
    } else if (choice < 90) {
        model_grow(m);
    } else if (choice < 94 && m->mark.generation == 0) {
        m->mark = nb_arena_save(&m->arena);
        m->count_at_mark = m->count;
    } else if (choice < 98) {
        model_release(m, false);
    } else {
        model_release(m, true);
    }
}

TEST(random_use_never_overlaps_or_loses_bytes) {
    uint64_t seed = test_seed("random_use_never_overlaps_or_loses_bytes");
    uint64_t step_count = test_size(3000, 30000, 300000);
    for (size_t k = 0; k < KIND_COUNT * 2; ++k) {
        static model m;
        memset(&m, 0, sizeof m);
        m.random = seed + k;
        arena_open(&m.arena, kinds[k / 2], 8000, k % 2 == 0 ? NB_ARENA_POLICY_FAIL : NB_ARENA_POLICY_CHAIN);
        for (uint64_t step = 0; step < step_count; ++step) {
            model_step(&m);
            assert_true(nb_arena_is_valid(&m.arena));
            if (step % 16 == 0) assert_true(is_intact(&m));
        }
        arena_close(&m.arena);
    }
}
