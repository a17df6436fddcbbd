// SPDX-License-Identifier: MIT
// nebula/thread_arena.h: arenas that are none, foreign threads, stale frames.

#include "bad_input/bad_input.h"

#include "nebula/thread_arena.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#define CAPACITY 4096

static nb_thread_arenas *arenas_open(test_heap *heap) {
    nb_thread_arenas *arenas = NULL;
    nb_thread_arenas_desc desc = {.capacity_bytes = CAPACITY,
                                  .checks = NB_ARENA_CHECKS_ON,
                                  .slot_count = 2,
                                  .slot_count_max = 2,
                                  .thread_count_max = 1,
                                  .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_thread_arenas_create(&desc, &arenas));
    return arenas;
}

TEST(thread_arenas_refuse_a_bad_desc) {
    test_heap heap = {0};
    nb_thread_arenas *arenas = UNTOUCHED(nb_thread_arenas);
    nb_thread_arenas_desc descs[8];
    for (size_t i = 0; i < COUNT_OF(descs); ++i) descs[i] = (nb_thread_arenas_desc){.hooks = bad_hooks(&heap)};
    descs[0].policy = NB_ARENA_POLICY_COUNT;
    descs[1].checks = (nb_arena_checks)-1;
    descs[2].slot_count = 1;
    descs[3].slot_count = NB_THREAD_ARENA_SLOT_COUNT_MAX + 1;
    descs[4].slot_count_max = 7; // below the default slot_count
    descs[5].slot_count_max = UINT32_MAX;
    descs[6].frame_first = NB_ARENA_FRAME_NUMBER_MAX + 1;
    descs[7].capacity_bytes = SIZE_MAX;
    for (size_t i = 0; i < COUNT_OF(descs); ++i) {
        nb_result expected = i < 2 ? NB_ERR_MISUSE : NB_ERR_RANGE;
        refused(expected, NB_ITEM_ARENA_ARGUMENT, nb_thread_arenas_create(&descs[i], &arenas));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_thread_arenas_create(NULL, NULL));
    assert_int_equal(heap.call_count.value, 0);
    nb_thread_arenas_desc fine = {.hooks = bad_hooks(&heap)};
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_thread_arenas_create(&fine, NULL));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 1, arenas, nb_thread_arenas_create(&fine, &arenas));
}

TEST(thread_arena_functions_refuse_null) {
    nb_arena_frame frame = {0x5A5A};
    nb_thread_arena *thread = UNTOUCHED(nb_thread_arena);
    nb_thread_arenas_stats stats;
    memset(&stats, 0x5A, sizeof stats);
    accepted(NB_OK, nb_thread_arenas_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_thread_arenas_advance(NULL, &frame));
    refused_default(0, NB_ITEM_BASE_NULL, nb_thread_arenas_frame(NULL).value);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_thread_arenas_pin(NULL, frame));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_thread_arenas_unpin(NULL, frame));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_thread_arenas_stats_get(NULL));
    assert_zero(stats);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_thread_arena_attach(NULL, &thread));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_thread_arena_detach(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_thread_arena_refresh(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_thread_arena_get(NULL));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_thread_arena_alloc(NULL, 8, 8));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_thread_arena_at(NULL, frame));
    accepted(0, nb_arena_frame_number((nb_arena_frame){0}));
    assert_int_equal(frame.value, 0x5A5A);
    assert_ptr_equal(thread, UNTOUCHED(nb_thread_arena));
}

TEST(frames_that_ended_or_never_were_are_stale) {
    test_heap heap = {0};
    nb_thread_arenas *arenas = arenas_open(&heap);
    nb_thread_arena *thread = NULL;
    accepted(NB_OK, nb_thread_arena_attach(arenas, &thread));
    nb_arena_frame first = nb_thread_arenas_frame(arenas), now = {0};
    accepted(NB_OK, nb_thread_arenas_advance(arenas, NULL)); // frame may be NULL
    accepted(NB_OK, nb_thread_arenas_advance(arenas, &now));
    const nb_arena_frame frames[] = {{0}, first, {now.value + 256}, {now.value ^ 128}, {UINT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(frames); ++i) {
        refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_thread_arenas_pin(arenas, frames[i]));
        refused(NB_ERR_STALE, NB_ITEM_ARENA_STALE, nb_thread_arenas_unpin(arenas, frames[i]));
        refused(NULL, NB_ITEM_ARENA_STALE, nb_thread_arena_at(thread, frames[i]));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_thread_arenas_unpin(arenas, now)); // it has no pins
    nb_thread_arenas_stats stats;
    silent(stats = nb_thread_arenas_stats_get(arenas));
    assert_int_equal(stats.stale_count, 3 * COUNT_OF(frames));
    assert_int_equal(stats.pin_count, 0);
    assert_int_equal(stats.frame.value, now.value);
    assert_non_null(nb_thread_arena_alloc(thread, 8, 8));
    accepted(NB_OK, nb_thread_arena_detach(thread));
    accepted(NB_OK, nb_thread_arenas_destroy(arenas));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(thread_arenas_refuse_what_is_in_use_or_full) {
    test_heap heap = {0};
    nb_thread_arenas *arenas = arenas_open(&heap);
    nb_thread_arena *thread = NULL, *second = UNTOUCHED(nb_thread_arena);
    nb_arena_frame frame = nb_thread_arenas_frame(arenas), next = {0x5A5A};
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_thread_arena_attach(arenas, NULL));
    accepted(NB_OK, nb_thread_arena_attach(arenas, &thread));
    accepted(NB_FULL, nb_thread_arena_attach(arenas, &second)); // a warning
    assert_ptr_equal(second, UNTOUCHED(nb_thread_arena));
    refused(NB_BUSY, NB_ITEM_ARENA_PINNED, nb_thread_arenas_destroy(arenas)); // attached
    nb_arena *arena = nb_thread_arena_get(thread);
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_reset(arena)); // the context's to do
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_deinit(arena));
    refused(NB_ERR_MISUSE, NB_ITEM_ARENA_ARGUMENT, nb_arena_adopt(arena));
    refused(NULL, NB_ITEM_ARENA_ARGUMENT, nb_thread_arena_alloc(thread, 8, 3));
    accepted(NULL, nb_thread_arena_alloc(thread, SIZE_MAX, 1)); // a warning
    accepted(NB_OK, nb_thread_arenas_pin(arenas, frame));
    accepted(NB_OK, nb_thread_arenas_advance(arenas, NULL));
    accepted(NB_FULL, nb_thread_arenas_advance(arenas, &next)); // a warning
    assert_int_equal(next.value, 0x5A5A);
    assert_non_null(nb_thread_arena_alloc(thread, 8, 8));
    accepted(NB_OK, nb_thread_arena_detach(thread));
    refused(NB_ERR_THREAD, NB_ITEM_ARENA_THREAD, nb_thread_arena_detach(thread));
    refused(NB_BUSY, NB_ITEM_ARENA_PINNED, nb_thread_arenas_destroy(arenas)); // pinned
    accepted(NB_OK, nb_thread_arenas_unpin(arenas, frame));
    accepted(NB_OK, nb_thread_arenas_destroy(arenas));
    assert_int_equal(heap.live_count.value, 0);
}

typedef struct thread_caller {
    nb_thread_arena *thread;
    nb_arena_frame frame;
    nb_result result;
    void *blocks[3];
} thread_caller;

static void call_thread_arena(void *user) {
    thread_caller *caller = (thread_caller *)user;
    caller->result = nb_thread_arena_detach(caller->thread);
    caller->blocks[0] = nb_thread_arena_get(caller->thread);
    caller->blocks[1] = nb_thread_arena_alloc(caller->thread, 8, 8);
    caller->blocks[2] = nb_thread_arena_at(caller->thread, caller->frame);
}

TEST(thread_arena_refuses_every_thread_but_its_own) {
    test_heap heap = {0};
    nb_thread_arenas *arenas = arenas_open(&heap);
    thread_caller caller = {.frame = nb_thread_arenas_frame(arenas), .result = NB_OK};
    accepted(NB_OK, nb_thread_arena_attach(arenas, &caller.thread));
    LISTENED(OWN_LOGGER, NB_ITEM_ARENA_THREAD, 4, test_thread_run(call_thread_arena, &caller));
    assert_int_equal(caller.result, NB_ERR_THREAD);
    for (size_t i = 0; i < COUNT_OF(caller.blocks); ++i) assert_null(caller.blocks[i]);
    assert_non_null(nb_thread_arena_alloc(caller.thread, 8, 8));
    accepted(NB_OK, nb_thread_arena_detach(caller.thread));
    accepted(NB_OK, nb_thread_arenas_destroy(arenas));
    assert_int_equal(heap.live_count.value, 0);
}
