// SPDX-License-Identifier: MIT
// nebula/arena.h: arenas that are none, foreign threads and memory, stale marks.

#include "bad_input/bad_input.h"

#include "nebula/arena.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define CAPACITY 4096

static const size_t bad_alignments[] = {0, 3, 24, NB_ARENA_ALIGNMENT_MAX + 1, NB_ARENA_ALIGNMENT_MAX * 2, SIZE_MAX};

static void nothing(void *user) { (void)user; }

static void arena_open(nb_arena *arena) {
    nb_arena_desc desc = {.capacity_bytes = CAPACITY, .checks = NB_ARENA_CHECKS_ON, .hooks = bad_hooks(NULL)};
    accepted(NB_OK, nb_arena_init(arena, &desc));
}

// What the arena held and counted is as before, and it still gives memory.
static void arena_still_works(nb_arena *arena, const nb_arena_stats *before) {
    nb_arena_stats after;
    silent(after = nb_arena_stats_get(arena));
    assert_int_equal(after.used_bytes, before->used_bytes);
    assert_int_equal(after.padding_bytes, before->padding_bytes);
    assert_int_equal(after.allocation_count, before->allocation_count);
    assert_int_equal(after.overflow_count, before->overflow_count);
    assert_int_equal(after.refused_count, before->refused_count);
    assert_int_equal(after.reset_count, before->reset_count);
    accepted(true, nb_arena_is_valid(arena));
    char *text = nb_arena_strdup(arena, "still there");
    assert_string_equal(text, "still there");
    accepted(NB_OK, nb_arena_reset(arena));
    accepted(true, nb_arena_is_valid(arena));
}

static nb_arena_stats stats_of(const nb_arena *arena) {
    nb_arena_stats stats;
    silent(stats = nb_arena_stats_get(arena));
    return stats;
}

TEST(arena_refuses_a_bad_desc) {
    unsigned char bytes[64];
    nb_arena arena;
    memset(&arena, 0x5A, sizeof arena);
    nb_arena_desc descs[5];
    for (size_t i = 0; i < COUNT_OF(descs); ++i) descs[i] = (nb_arena_desc){.hooks = bad_hooks(NULL)};
    descs[0].policy = NB_ARENA_POLICY_COUNT;
    descs[1].policy = (nb_arena_policy)-1;
    descs[2].checks = NB_ARENA_CHECKS_COUNT;
    descs[3].checks = (nb_arena_checks)-1;
    descs[4].buffer = bytes; // of no size
    for (size_t i = 0; i < COUNT_OF(descs); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_init(&arena, &descs[i]));
    }
    nb_arena_desc large = {.capacity_bytes = SIZE_MAX, .hooks = bad_hooks(NULL)};
    refused(NB_ERR_RANGE, NB_ITEM_ARENA_ARGUMENT, nb_arena_init(&arena, &large));
    large.capacity_bytes = SIZE_MAX / 2; // possible as a number, but no machine has it
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_arena_init(&arena, &large));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_arena_init(NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_arena_init_buffer(NULL, bytes, sizeof bytes));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_arena_init_buffer(&arena, NULL, sizeof bytes));
    refused_default(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_init_buffer(&arena, bytes, 0));
    refused_default(NB_ERR_RANGE, NB_ITEM_ARENA_ARGUMENT, nb_arena_init_buffer(&arena, bytes, SIZE_MAX));
    assert_untouched(arena, 0x5A);
}

static void bad_arena_gives_no_memory(nb_arena *arena, nb_log_item item) {
    int value = 1;
    refused_default(NULL, item, nb_arena_alloc(arena, 8, 8));
    refused_default(NULL, item, nb_arena_alloc(arena, 0, 8));
    refused_default(NULL, item, nb_arena_alloc_slow(arena, 8, 8));
    refused_default(NULL, item, nb_arena_calloc(arena, 1, 8, 8));
    refused_default(NULL, item, nb_arena_fill(arena, 1, sizeof value, 4, &value));
    refused_default(NULL, item, nb_arena_memdup(arena, &value, sizeof value, 4));
    refused_default(NULL, item, nb_arena_strdup(arena, "x"));
    refused_default(NULL, item, nb_arena_grow(arena, NULL, 0, 8, 8));
    refused_default(NULL, item, nb_arena_grow(arena, &value, 4, 8, 8));
}

static void assert_no_stats(const nb_arena_stats *stats) {
    assert_true(stats->capacity_bytes == 0 && stats->committed_bytes == 0 && stats->used_bytes == 0);
    assert_true(stats->padding_bytes == 0 && stats->allocation_count == 0 && stats->overflow_count == 0);
    assert_true(stats->refused_count == 0 && stats->high_watermark_bytes == 0 && stats->peak_p99_bytes == 0);
    assert_true(stats->reset_count == 0 && stats->chained_block_count == 0);
}

static void bad_arena_is_refused_everywhere(nb_arena *arena, nb_log_item item) {
    nb_arena_stats stats;
    nb_arena_mark mark;
    nb_arena_ref ref;
    memset(&stats, 0x5A, sizeof stats);
    refused_default(NB_ERR_MISUSE, item, nb_arena_adopt(arena));
    refused_default(NB_ERR_MISUSE, item, nb_arena_defer(arena, nothing, NULL));
    refused_default(NB_ERR_MISUSE, item, nb_arena_rewind(arena, (nb_arena_mark){0}));
    refused_default(NB_ERR_MISUSE, item, nb_arena_reset(arena));
    refused_default(NB_ERR_MISUSE, item, nb_arena_trim(arena, 0));
    refused_default(NB_ERR_MISUSE, item, nb_arena_high_watermark_reset(arena));
    reported_default(item, stats = nb_arena_stats_get(arena));
    assert_no_stats(&stats);
    refused_default(0, item, nb_arena_bytes_used(arena));
    refused_default(0, item, nb_arena_capacity(arena));
    refused_default(0, item, nb_arena_bytes_remaining(arena));
    refused_default(0, item, nb_arena_high_watermark(arena));
    refused_default(0, item, nb_arena_generation(arena));
    refused_default(NULL, item, nb_arena_ref_get(arena, (nb_arena_ref){&stats, 1}));
    refused_default(false, item, nb_arena_is_valid(arena));
    reported_default(item, mark = nb_arena_save(arena));
    assert_zero(mark);
    reported_default(item, ref = nb_arena_ref_make(arena, &stats));
    assert_zero(ref);
}

TEST(arena_functions_refuse_null_and_uninitialised_arenas) {
    nb_arena zeroed;
    memset(&zeroed, 0, sizeof zeroed);
    bad_arena_gives_no_memory(NULL, NB_ITEM_BASE_NULL);
    bad_arena_gives_no_memory(&zeroed, NB_ITEM_ARENA_ARGUMENT);
    bad_arena_is_refused_everywhere(NULL, NB_ITEM_BASE_NULL);
    bad_arena_is_refused_everywhere(&zeroed, NB_ITEM_ARENA_ARGUMENT);
    accepted(NB_OK, nb_arena_deinit(NULL));
    accepted(NB_OK, nb_arena_deinit(&zeroed));
    assert_zero(zeroed);
    arena_open(&zeroed);
    accepted(NB_OK, nb_arena_deinit(&zeroed));
    accepted(NB_OK, nb_arena_deinit(&zeroed)); // twice is fine
    refused_default(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_alloc(&zeroed, 8, 8));
}

TEST(arena_refuses_alignments_that_are_none) {
    const int value = 1;
    nb_arena arena;
    arena_open(&arena);
    void *memory = nb_arena_alloc(&arena, 100, 4);
    nb_arena_stats before = stats_of(&arena);
    for (size_t i = 0; i < COUNT_OF(bad_alignments); ++i) {
        size_t alignment = bad_alignments[i];
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_alloc(&arena, 8, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_alloc(&arena, 0, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_alloc_slow(&arena, 8, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_calloc(&arena, 1, 8, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_fill(&arena, 1, sizeof value, alignment, &value));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_memdup(&arena, &value, sizeof value, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_grow(&arena, memory, 100, 200, alignment));
        refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_grow(&arena, NULL, 0, 200, alignment));
    }
    arena_still_works(&arena, &before);
    nb_arena_deinit(&arena);
}

// A size too large is no mistake but a full arena: a warning, once, and counted. Either way nothing is taken.
TEST(arena_refuses_sizes_that_overflow) {
    const int value = 1;
    volatile size_t most = SIZE_MAX; // not a constant: compilers refuse such sizes by themselves
    for (int policy = NB_ARENA_POLICY_FAIL; policy < NB_ARENA_POLICY_COUNT; ++policy) {
        test_heap heap = {0};
        nb_arena arena;
        nb_arena_desc desc = {.capacity_bytes = CAPACITY, .policy = (nb_arena_policy)policy, .hooks = bad_hooks(&heap)};
        accepted(NB_OK, nb_arena_init(&arena, &desc));
        void *memory = nb_arena_alloc(&arena, 100, 1);
        accepted(NULL, nb_arena_alloc(&arena, most, 1));
        accepted(NULL, nb_arena_alloc(&arena, most - 1, NB_ARENA_ALIGNMENT_MAX));
        accepted(NULL, nb_arena_alloc_slow(&arena, most / 2, 64));
        accepted(NULL, nb_arena_calloc(&arena, most, 2, 1));
        accepted(NULL, nb_arena_calloc(&arena, most / 2 + 2, 2, 1)); // the product wraps to 2
        accepted(NULL, nb_arena_fill(&arena, most / 4 + 2, sizeof value, 4, &value));
        accepted(NULL, nb_arena_memdup(&arena, &value, most - 8, 4)); // refused before a byte is read
        accepted(NULL, nb_arena_grow(&arena, memory, 100, most, 1));
        assert_int_equal(heap.call_count.value, 0);
        nb_arena_stats stats = stats_of(&arena);
        assert_int_equal(stats.refused_count, 8);
        assert_int_equal(stats.used_bytes, 100);
        arena_still_works(&arena, &stats);
        nb_arena_deinit(&arena);
    }
}

TEST(arena_refuses_null_and_foreign_memory) {
    int foreign = 1;
    nb_arena arena, other;
    nb_arena_ref ref = {&foreign, 1};
    arena_open(&arena);
    arena_open(&other);
    char *theirs = nb_arena_strdup(&other, "theirs");
    char *own = nb_arena_strdup(&arena, "own");
    nb_arena_stats before = stats_of(&arena);
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_fill(&arena, 1, 4, 4, NULL));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_memdup(&arena, NULL, 0, 1));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_strdup(&arena, NULL));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_grow(&arena, &foreign, sizeof foreign, 8, 4));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_grow(&arena, theirs, 7, 8, 1));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_arena_grow(&arena, own, SIZE_MAX, 8, 1)); // larger than it is
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_defer(&arena, NULL, &foreign));
    reported(NB_ITEM_ARENA_ARGUMENT, ref = nb_arena_ref_make(&arena, NULL));
    assert_zero(ref);
    reported(NB_ITEM_ARENA_ARGUMENT, ref = nb_arena_ref_make(&arena, theirs));
    assert_zero(ref);
    refused(NULL, NB_ITEM_ARENA_STALE, nb_arena_ref_get(&arena, ref));
    refused(NULL, NB_ITEM_ARENA_STALE, nb_arena_ref_get(&arena, nb_arena_ref_make(&other, theirs)));
    assert_string_equal(own, "own");
    assert_string_equal(theirs, "theirs");
    arena_still_works(&arena, &before);
    nb_arena_deinit(&arena);
    nb_arena_deinit(&other);
}

TEST(arena_refuses_marks_and_references_that_ended) {
    nb_arena arena, other;
    arena_open(&arena);
    arena_open(&other);
    nb_arena_mark outer = nb_arena_save(&arena);
    char *text = nb_arena_strdup(&arena, "text");
    nb_arena_ref ref = nb_arena_ref_make(&arena, text);
    nb_arena_mark inner = nb_arena_save(&arena);
    nb_arena_alloc(&arena, 100, 1);
    refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_arena_rewind(&arena, (nb_arena_mark){0}));
    refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_arena_rewind(&arena, nb_arena_save(&other)));
    assert_string_equal(text, "text");
    accepted(NB_OK, nb_arena_rewind(&arena, outer));
    refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_arena_rewind(&arena, inner));
    refused(NULL, NB_ITEM_ARENA_STALE, nb_arena_ref_get(&arena, ref));
    accepted(NB_OK, nb_arena_reset(&arena));
    refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_arena_rewind(&arena, outer));
    nb_arena_stats before = stats_of(&arena);
    arena_still_works(&arena, &before);
    nb_arena_deinit(&arena);
    nb_arena_deinit(&other);
}

static void count_run(void *user) { ++*(int *)user; }

// The place of the stale mark is in use again, but the cleanup it names has run: going there would run older ones.
TEST(stale_mark_does_not_run_older_cleanups) {
    nb_arena arena;
    int older = 0, newer = 0;
    arena_open(&arena);
    accepted(NB_OK, nb_arena_defer(&arena, count_run, &older));
    nb_arena_mark outer = nb_arena_save(&arena);
    accepted(NB_OK, nb_arena_defer(&arena, count_run, &newer));
    nb_arena_mark inner = nb_arena_save(&arena);
    accepted(NB_OK, nb_arena_rewind(&arena, outer));
    nb_arena_alloc(&arena, 1000, 1);
    refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_arena_rewind(&arena, inner));
    assert_int_equal(newer, 1);
    assert_int_equal(older, 0);
    accepted(true, nb_arena_is_valid(&arena));
    nb_arena_deinit(&arena);
    assert_int_equal(older, 1);
}

// Every call that an arena refuses to whoever is not its owner, or calls it from its own cleanup.
typedef struct arena_caller {
    nb_arena *arena;
    nb_result results[7];
    void *blocks[4];
    uint64_t mark_generation;
} arena_caller;

// One report each: 7 results, 4 blocks, 1 mark.
#define ARENA_CALLER_REPORTS 12

static void call_arena(arena_caller *caller) {
    nb_arena *arena = caller->arena;
    nb_result results[] = {nb_arena_deinit(arena),
                           nb_arena_defer(arena, nothing, NULL),
                           nb_arena_rewind(arena, (nb_arena_mark){0}),
                           nb_arena_reset(arena),
                           nb_arena_trim(arena, 0),
                           nb_arena_high_watermark_reset(arena),
                           nb_arena_deinit(arena)};
    memcpy(caller->results, results, sizeof results);
    caller->blocks[0] = nb_arena_alloc(arena, 8, 8);
    caller->blocks[1] = nb_arena_alloc(arena, 0, 8);
    caller->blocks[2] = nb_arena_strdup(arena, "x");
    caller->blocks[3] = nb_arena_grow(arena, NULL, 0, 8, 8);
    caller->mark_generation = nb_arena_save(arena).generation;
}

static void call_arena_in_thread(void *user) { call_arena((arena_caller *)user); }

static void call_arena_in_cleanup(void *user) { call_arena((arena_caller *)user); }

static void assert_all_refused(const arena_caller *caller, nb_result result) {
    for (size_t i = 0; i < COUNT_OF(caller->results); ++i) assert_int_equal(caller->results[i], result);
    for (size_t i = 0; i < COUNT_OF(caller->blocks); ++i) assert_null(caller->blocks[i]);
    assert_int_equal(caller->mark_generation, 0);
}

TEST(arena_refuses_threads_that_do_not_own_it) {
    nb_arena arena;
    arena_open(&arena);
    nb_arena_stats before = stats_of(&arena);
    arena_caller caller = {.arena = &arena};
    LISTENED(OWN_LOGGER, NB_ITEM_ARENA_THREAD, ARENA_CALLER_REPORTS, test_thread_run(call_arena_in_thread, &caller));
    assert_all_refused(&caller, NB_ERR_THREAD);
    arena_still_works(&arena, &before);
    nb_arena_deinit(&arena);
}

TEST(arena_refuses_calls_from_its_own_cleanup) {
    nb_arena arena;
    arena_open(&arena);
    arena_caller caller = {.arena = &arena};
    accepted(NB_OK, nb_arena_defer(&arena, call_arena_in_cleanup, &caller));
    LISTENED(OWN_LOGGER, NB_ITEM_ARENA_ARGUMENT, ARENA_CALLER_REPORTS, nb_arena_reset(&arena));
    assert_all_refused(&caller, NB_ERR_MISUSE);
    nb_arena_stats before = stats_of(&arena);
    arena_still_works(&arena, &before);
    nb_arena_deinit(&arena);
}
