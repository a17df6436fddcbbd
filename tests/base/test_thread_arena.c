// SPDX-License-Identifier: MIT
// Thread arenas: lazy reset, pins, slots, threads that come and go, failing memory, races.

#include "support/faults.h"
#include "support/resident.h"

#include "nebula/thread_arena.h"

// --- fixture ---

typedef struct room {
    nb_thread_arenas *arenas;
    nb_thread_arena *mine;
    test_log log;
    test_heap heap;
} room;

static void room_open_with(room *r, nb_thread_arenas_desc desc) {
    memset(r, 0, sizeof *r);
    desc.hooks = test_hooks(&r->log, &r->heap);
    assert_int_equal(nb_thread_arenas_create(&desc, &r->arenas), NB_OK);
    assert_int_equal(nb_thread_arena_attach(r->arenas, &r->mine), NB_OK);
}

static void room_open(room *r) { room_open_with(r, nb_thread_arenas_desc_default()); }

static void room_close(room *r) {
    assert_int_equal(nb_thread_arena_detach(r->mine), NB_OK);
    assert_int_equal(nb_thread_arenas_destroy(r->arenas), NB_OK);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&r->heap.live_count), 0);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&r->heap.live_bytes), 0);
}

static nb_arena_frame advance(room *r) {
    nb_arena_frame frame = {0};
    assert_int_equal(nb_thread_arenas_advance(r->arenas, &frame), NB_OK);
    assert_int_equal(frame.value, nb_thread_arenas_frame(r->arenas).value);
    return frame;
}

static nb_thread_arenas_stats stats_of(room *r) {
    nb_thread_arenas_stats stats = nb_thread_arenas_stats_get(r->arenas);
    assert_int_not_equal(stats.frame.value, 0); // not the zeros of a bad context
    return stats;
}

static size_t used_now(room *r) {
    nb_arena *arena = nb_thread_arena_get(r->mine);
    assert_non_null(arena);
    assert_true(nb_arena_is_valid(arena));
    return nb_arena_bytes_used(arena);
}

static uint64_t *write_number(nb_thread_arena *thread, uint64_t number) {
    uint64_t *memory = nb_thread_arena_alloc(thread, sizeof *memory, _Alignof(uint64_t));
    if (memory != NULL) *memory = number;
    return memory;
}

// --- frames ---

TEST(first_frame_is_open_and_numbers_count_up) {
    room r;
    room_open(&r);
    assert_int_not_equal(nb_thread_arenas_frame(r.arenas).value, 0);
    assert_int_equal(nb_arena_frame_number(nb_thread_arenas_frame(r.arenas)), 0);
    assert_non_null(nb_thread_arena_alloc(r.mine, 100, 8));
    for (uint64_t number = 1; number < 100; ++number) assert_int_equal(nb_arena_frame_number(advance(&r)), number);
    assert_int_equal(nb_thread_arenas_advance(r.arenas, NULL), NB_OK);
    room_close(&r);
}

typedef struct worker {
    room *r;
    nb_atomic_u32 turn; // counts up: even = the worker's, odd = the test's
    nb_thread_arena *thread;
    size_t used_before, used_after;
    uint64_t *memory;
    nb_result detached;
} worker;

static void wait_turn(worker *w, uint32_t turn) {
    while (nbi_atomic_load_acquire_u32(&w->turn) != turn) nbi_thread_yield();
}

static void give_turn(worker *w) { nbi_atomic_fetch_add_seq_cst_u32(&w->turn, 1); }

static void allocate_in_two_frames(void *user, uint32_t index) {
    (void)index;
    worker *w = user;
    if (nb_thread_arena_attach(w->r->arenas, &w->thread) != NB_OK) abort();
    nb_thread_arena_alloc(w->thread, 1000, 1);
    w->used_before = nb_arena_bytes_used(nb_thread_arena_get(w->thread));
    give_turn(w);
    wait_turn(w, 2);
    w->used_after = nb_arena_bytes_used(nb_thread_arena_get(w->thread));
    w->detached = nb_thread_arena_detach(w->thread);
}

// The plan's reset function reached the calling thread only: a worker's arena stayed at 1000 bytes.
TEST(advance_reaches_every_threads_arena) {
    room r;
    room_open(&r);
    worker w = {.r = &r};
    test_thread thread;
    assert_non_null(nb_thread_arena_alloc(r.mine, 500, 1));
    test_threads_start(&thread, 1, allocate_in_two_frames, &w);
    wait_turn(&w, 1);
    advance(&r);
    give_turn(&w);
    test_threads_join(&thread, 1);
    assert_int_equal(w.used_before, 1000);
    assert_int_equal(w.used_after, 0);
    assert_int_equal(w.detached, NB_OK);
    assert_int_equal(used_now(&r), 0);
    room_close(&r);
}

TEST(slot_comes_back_with_the_same_memory_and_reset) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 3});
    void *first[3];
    for (int frame = 0; frame < 30; ++frame) {
        assert_int_equal(used_now(&r), 0);
        void *memory = nb_thread_arena_alloc(r.mine, 64, 8);
        if (frame < 3) first[frame] = memory;
        assert_ptr_equal(memory, first[frame % 3]);
        assert_non_null(nb_thread_arena_alloc(r.mine, 100000, 8));
        advance(&r);
    }
    assert_int_equal(stats_of(&r).slot_count, 3);
    room_close(&r);
}

TEST(frame_that_was_skipped_is_reset_too) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    assert_non_null(nb_thread_arena_alloc(r.mine, 1000, 1));
    for (int i = 0; i < 2000; ++i) advance(&r); // the thread sleeps through them
    assert_int_equal(used_now(&r), 0);
    room_close(&r);
}

TEST(block_lives_for_the_frames_of_the_other_slots) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 4});
    uint64_t *numbers[4] = {0};
    for (uint64_t frame = 0; frame < 100; ++frame) {
        for (uint64_t back = 1; back < 4 && back <= frame; ++back) {
            assert_int_equal(*numbers[(frame - back) % 4], frame - back);
        }
        numbers[frame % 4] = write_number(r.mine, frame);
        for (int i = 0; i < 5; ++i) assert_non_null(write_number(r.mine, UINT64_MAX));
        advance(&r);
    }
    room_close(&r);
}

TEST(frame_numbers_wrap) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 3, .frame_first = NB_ARENA_FRAME_NUMBER_MAX - 5});
    nb_arena_frame pinned = advance(&r);
    uint64_t *number = write_number(r.mine, 77);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, pinned), NB_OK);
    for (int i = 0; i < 20; ++i) {
        assert_non_null(write_number(r.mine, 1));
        advance(&r);
    }
    assert_int_equal(nb_arena_frame_number(nb_thread_arenas_frame(r.arenas)), 15);
    assert_int_equal(*number, 77);
    assert_int_equal(stats_of(&r).slot_count, 4);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, pinned), NB_OK);
    room_close(&r);
}

// --- pins ---

TEST(pinned_frame_is_never_reused) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    nb_arena_frame frame = advance(&r);
    uint64_t *number = write_number(r.mine, 42);
    for (int i = 0; i < 2; ++i) assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_OK);
    for (int i = 0; i < 200; ++i) {
        advance(&r);
        assert_non_null(write_number(r.mine, 1));
        if (i == 100) assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_OK);
    }
    assert_int_equal(*number, 42);
    assert_int_equal(stats_of(&r).slot_count, 3);
    assert_int_equal(stats_of(&r).pin_count, 1);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_OK);
    advance(&r);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_ERR_STALE);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_ERR_STALE);
    assert_int_equal(stats_of(&r).stale_count, 2);
    room_close(&r);
}

TEST(stale_frame_cannot_touch_the_next_one_in_its_slot) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    nb_arena_frame old = advance(&r);
    advance(&r);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, old), NB_OK); // not current, but young
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, old), NB_OK);
    nb_arena_frame next = advance(&r);
    assert_int_equal(old.value & 0xFF, next.value & 0xFF);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, next), NB_OK);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, old), NB_ERR_STALE);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, old), NB_ERR_STALE);
    assert_null(nb_thread_arena_at(r.mine, old));
    assert_int_equal(stats_of(&r).pin_count, 1);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, next), NB_OK);
    room_close(&r);
}

TEST(pinned_work_allocates_in_its_own_frame) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    nb_arena_frame frame = advance(&r);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_OK);
    for (int i = 0; i < 10; ++i) advance(&r);
    uint64_t *late = nb_arena_new(nb_thread_arena_at(r.mine, frame), uint64_t);
    *late = 5;
    for (int i = 0; i < 10; ++i) {
        advance(&r);
        assert_non_null(write_number(r.mine, 1));
    }
    assert_int_equal(*late, 5);
    assert_int_equal(nb_arena_bytes_used(nb_thread_arena_at(r.mine, frame)), 8);
    assert_ptr_equal(nb_thread_arena_at(r.mine, nb_thread_arenas_frame(r.arenas)), nb_thread_arena_get(r.mine));
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_OK);
    advance(&r);
    assert_null(nb_thread_arena_at(r.mine, frame));
    assert_null(nb_thread_arena_at(r.mine, (nb_arena_frame){0}));
    room_close(&r);
}

TEST(pins_open_slots_up_to_the_limit_then_full) {
    room r;
    room_open(&r);
    nb_arena_frame frames[64];
    uint32_t count = 0;
    nb_result result = NB_OK;
    while (result == NB_OK) {
        frames[count] = nb_thread_arenas_frame(r.arenas);
        assert_non_null(write_number(r.mine, count));
        assert_int_equal(nb_thread_arenas_pin(r.arenas, frames[count++]), NB_OK);
        assert_true(count <= 64);
        result = nb_thread_arenas_advance(r.arenas, NULL);
    }
    assert_int_equal(result, NB_FULL);
    assert_int_equal(count, 64);
    nb_arena_frame untouched = {123};
    assert_int_equal(nb_thread_arenas_advance(r.arenas, &untouched), NB_FULL);
    assert_int_equal(untouched.value, 123);
    assert_int_equal(stats_of(&r).full_count, 2);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ARENA_PINNED), 1);
    // The last frame stays open and serves on.
    assert_int_equal(used_now(&r), 8);
    assert_non_null(write_number(r.mine, 64));
    assert_int_equal(used_now(&r), 16);
    // One pin back: its slot is the next.
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frames[10]), NB_OK);
    advance(&r);
    assert_int_equal(used_now(&r), 0);
    for (uint32_t i = 0; i < 64; ++i) {
        if (i != 10) assert_int_equal(nb_thread_arenas_unpin(r.arenas, frames[i]), NB_OK);
    }
    room_close(&r);
}

TEST(slots_fall_out_of_use_when_pins_are_back) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    nb_arena_frame frames[20];
    for (int i = 0; i < 20; ++i) {
        frames[i] = nb_thread_arenas_frame(r.arenas);
        assert_non_null(write_number(r.mine, 1));
        assert_int_equal(nb_thread_arenas_pin(r.arenas, frames[i]), NB_OK);
        advance(&r);
    }
    assert_int_equal(stats_of(&r).slot_count, 21);
    for (int i = 0; i < 20; ++i) assert_int_equal(nb_thread_arenas_unpin(r.arenas, frames[i]), NB_OK);
    for (int i = 0; i < 70; ++i) {
        advance(&r);
        assert_non_null(write_number(r.mine, 1));
    }
    assert_int_equal(stats_of(&r).live_slot_count, 2);
    // The context, the record, and an arena for each of the two slots.
    assert_int_equal(nbi_atomic_load_relaxed_u64(&r.heap.live_count), 4);
    room_close(&r);
}

TEST(bad_pins_change_nothing) {
    room r;
    room_open(&r);
    nb_arena_frame frame = nb_thread_arenas_frame(r.arenas);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_ERR_MISUSE);
    static const uint64_t forged[] = {0, 1, 65, 255, 256, UINT64_MAX, 5 << 8 | 1, 2};
    for (size_t i = 1; i < sizeof forged / sizeof forged[0]; ++i) {
        if (forged[i] == frame.value) continue;
        assert_int_equal(nb_thread_arenas_pin(r.arenas, (nb_arena_frame){forged[i]}), NB_ERR_STALE);
        assert_int_equal(nb_thread_arenas_unpin(r.arenas, (nb_arena_frame){forged[i]}), NB_ERR_STALE);
        assert_null(nb_thread_arena_at(r.mine, (nb_arena_frame){forged[i]}));
    }
    assert_int_equal(nb_thread_arenas_pin(r.arenas, (nb_arena_frame){0}), NB_ERR_STALE);
    assert_int_equal(stats_of(&r).pin_count, 0);
    assert_int_equal(nb_thread_arenas_pin(NULL, frame), NB_ERR_MISUSE);
    assert_int_equal(nb_thread_arenas_unpin(NULL, frame), NB_ERR_MISUSE);
    room_close(&r);
}

TEST(pin_counter_cannot_run_over) {
    room r;
    room_open(&r);
    nb_arena_frame frame = nb_thread_arenas_frame(r.arenas);
    for (uint32_t i = 0; i < NB_THREAD_ARENA_PIN_COUNT_MAX; ++i) {
        if (nb_thread_arenas_pin(r.arenas, frame) != NB_OK) fail();
    }
    assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_FULL);
    assert_int_equal(stats_of(&r).pin_count, NB_THREAD_ARENA_PIN_COUNT_MAX);
    for (uint32_t i = 0; i < NB_THREAD_ARENA_PIN_COUNT_MAX; ++i) {
        if (nb_thread_arenas_unpin(r.arenas, frame) != NB_OK) fail();
    }
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_ERR_MISUSE);
    room_close(&r);
}

// --- threads that come and go ---

static void leave_a_block(void *user, uint32_t index) {
    (void)index;
    worker *w = user;
    if (nb_thread_arena_attach(w->r->arenas, &w->thread) != NB_OK) abort();
    w->memory = write_number(w->thread, 4711);
    w->detached = nb_thread_arena_detach(w->thread);
}

TEST(block_outlives_the_thread_while_pinned) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    nb_arena_frame frame = advance(&r);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_OK);
    worker w = {.r = &r};
    test_threads_run(1, leave_a_block, &w);
    assert_int_equal(w.detached, NB_OK);
    for (int i = 0; i < 50; ++i) advance(&r);
    assert_int_equal(*w.memory, 4711);
    assert_int_equal(stats_of(&r).idle_count, 1);
    // Another thread takes the memory over and leaves the pinned block alone.
    worker second = {.r = &r};
    test_threads_run(1, leave_a_block, &second);
    assert_int_equal(stats_of(&r).idle_count, 1);
    assert_ptr_not_equal(second.memory, w.memory);
    assert_int_equal(*w.memory, 4711);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_OK);
    for (int i = 0; i < 3; ++i) advance(&r);
    assert_int_equal(stats_of(&r).idle_count, 0);
    room_close(&r);
}

TEST(block_outlives_the_thread_in_its_frames) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 3});
    worker w[2] = {{.r = &r}, {.r = &r}};
    for (int i = 0; i < 2; ++i) {
        test_thread thread;
        test_threads_start(&thread, 1, leave_a_block, &w[i]);
        test_threads_join(&thread, 1);
    }
    // Both threads used one record in one frame: their blocks stand side by side.
    assert_ptr_equal(w[1].memory, w[0].memory + 1);
    for (int i = 0; i < 2; ++i) advance(&r);
    assert_true(*w[0].memory == 4711 && *w[1].memory == 4711);
    advance(&r);
    assert_int_equal(stats_of(&r).idle_count, 0);
    room_close(&r);
}

static uint32_t cleanup_count;
static void count_cleanup(void *user) { cleanup_count += *(uint32_t *)user; }

TEST(cleanups_of_a_frame_run_when_it_ends) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2});
    cleanup_count = 0;
    for (uint32_t frame = 0; frame < 10; ++frame) {
        nb_arena *arena = nb_thread_arena_get(r.mine);
        uint32_t *one = nb_arena_new(arena, uint32_t);
        *one = 1;
        assert_int_equal(nb_arena_defer(arena, count_cleanup, one), NB_OK);
        assert_int_equal(cleanup_count, frame < 2 ? 0 : frame - 1);
        advance(&r);
    }
    room_close(&r);
    assert_int_equal(cleanup_count, 10);
}

// What a cleanup got when it asked its own thread for memory.
typedef struct greedy {
    nb_thread_arena *thread;
    uint32_t call_count, served_count;
} greedy;

static void ask_for_memory(void *user) {
    greedy *g = user;
    ++g->call_count;
    if (nb_thread_arena_alloc(g->thread, 64, 16) != NULL) ++g->served_count;
}

TEST(cleanup_gets_no_memory_of_its_own_arena) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.slot_count = 2, .slot_count_max = 2});
    greedy g = {.thread = r.mine};
    nb_arena *arena = nb_thread_arena_get(r.mine);
    for (int i = 0; i < 2; ++i) assert_int_equal(nb_arena_defer(arena, ask_for_memory, &g), NB_OK);
    for (int i = 0; i < 2; ++i) advance(&r);
    // The frame's first use resets the slot, and the cleanups run inside.
    assert_non_null(nb_thread_arena_alloc(r.mine, 64, 16));
    assert_int_equal(g.call_count, 2);
    assert_int_equal(g.served_count, 0);
    room_close(&r);
}

TEST(destroy_is_refused_while_in_use) {
    room r;
    room_open(&r);
    nb_arena_frame frame = nb_thread_arenas_frame(r.arenas);
    uint64_t *number = write_number(r.mine, 9);
    assert_int_equal(nb_thread_arenas_destroy(r.arenas), NB_BUSY);
    assert_int_equal(nb_thread_arenas_pin(r.arenas, frame), NB_OK);
    assert_int_equal(nb_thread_arena_detach(r.mine), NB_OK);
    assert_int_equal(nb_thread_arenas_destroy(r.arenas), NB_BUSY);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ARENA_PINNED), 2);
    assert_int_equal(*number, 9);
    assert_int_equal(nb_thread_arenas_unpin(r.arenas, frame), NB_OK);
    assert_int_equal(nb_thread_arena_attach(r.arenas, &r.mine), NB_OK);
    room_close(&r);
}

TEST(frame_arena_belongs_to_the_context) {
    room r;
    room_open(&r);
    nb_arena *arena = nb_thread_arena_get(r.mine);
    nb_arena_mark mark = nb_arena_save(arena);
    assert_non_null(write_number(r.mine, 1));
    assert_int_equal(nb_arena_reset(arena), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_deinit(arena), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_adopt(arena), NB_ERR_MISUSE);
    assert_int_equal(nb_arena_bytes_used(arena), 8);
    assert_int_equal(nb_arena_rewind(arena, mark), NB_OK);
    // Full is served: thread arenas chain by default.
    assert_non_null(nb_arena_alloc(arena, NB_ARENA_CAPACITY_DEFAULT + 1, 8));
    room_close(&r);
}

static void intrude(void *user) {
    worker *w = user;
    w->memory = nb_thread_arena_alloc(w->r->mine, 8, 8);
    w->detached = nb_thread_arena_detach(w->r->mine);
}

TEST(foreign_thread_is_refused) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.checks = NB_ARENA_CHECKS_ON});
    for (int round = 0; round < 2; ++round) { // first without an arena, then with one
        worker w = {.r = &r};
        test_thread_run(intrude, &w);
        assert_null(w.memory);
        assert_int_equal(w.detached, NB_ERR_THREAD);
        assert_non_null(write_number(r.mine, 1));
    }
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ARENA_THREAD), 4);
    room_close(&r);
}

TEST(threads_beyond_the_limit_are_refused) {
    room r;
    room_open_with(&r, (nb_thread_arenas_desc){.thread_count_max = 2});
    nb_thread_arena *second = NULL;
    nb_thread_arena *third = NULL;
    assert_int_equal(nb_thread_arena_attach(r.arenas, &second), NB_OK);
    assert_int_equal(nb_thread_arena_attach(r.arenas, &third), NB_FULL);
    assert_int_equal(nb_thread_arena_attach(r.arenas, &third), NB_FULL);
    assert_null(third);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ARENA_FULL), 1); // once in a row
    assert_int_equal(nb_thread_arena_detach(second), NB_OK);
    assert_int_equal(nb_thread_arena_attach(r.arenas, &third), NB_OK);
    assert_int_equal(nb_thread_arena_attach(r.arenas, &second), NB_FULL);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ARENA_FULL), 2);
    assert_int_equal(nb_thread_arena_detach(third), NB_OK);
    room_close(&r);
}

TEST(default_desc_is_spelled_out) {
    nb_thread_arenas_desc desc = nb_thread_arenas_desc_default();
    assert_int_equal(desc.capacity_bytes, NB_ARENA_CAPACITY_DEFAULT);
    assert_int_equal(desc.policy, NB_ARENA_POLICY_CHAIN);
    assert_int_equal(desc.slot_count, NB_THREAD_ARENA_SLOT_COUNT_DEFAULT);
    assert_int_equal(desc.slot_count_max, NB_THREAD_ARENA_SLOT_COUNT_MAX);
    assert_int_equal(desc.thread_count_max, NB_THREAD_ARENA_THREAD_COUNT_DEFAULT);
    assert_non_null(desc.hooks.allocator.alloc);
}

TEST(null_and_bad_descs_are_refused) {
    nb_thread_arenas *arenas = NULL;
    nb_thread_arena *thread = NULL;
    assert_int_equal(nb_thread_arenas_create(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_thread_arenas_destroy(NULL), NB_OK);
    assert_int_equal(nb_thread_arenas_advance(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_thread_arenas_frame(NULL).value, 0);
    assert_int_equal(nb_thread_arenas_stats_get(NULL).slot_count, 0);
    assert_int_equal(nb_thread_arena_attach(NULL, &thread), NB_ERR_MISUSE);
    assert_int_equal(nb_thread_arena_detach(NULL), NB_ERR_MISUSE);
    assert_null(nb_thread_arena_get(NULL));
    assert_null(nb_thread_arena_alloc(NULL, 8, 8));
    assert_null(nb_thread_arena_at(NULL, (nb_arena_frame){1}));
    const nb_thread_arenas_desc range[] = {{.slot_count = 1},
                                           {.slot_count = 65},
                                           {.slot_count = 10, .slot_count_max = 9},
                                           {.slot_count_max = 65},
                                           {.frame_first = NB_ARENA_FRAME_NUMBER_MAX + 1},
                                           {.capacity_bytes = SIZE_MAX}};
    for (size_t i = 0; i < sizeof range / sizeof range[0]; ++i) {
        assert_int_equal(nb_thread_arenas_create(&range[i], &arenas), NB_ERR_RANGE);
    }
    const nb_thread_arenas_desc misuse[] = {{.policy = NB_ARENA_POLICY_COUNT}, {.checks = NB_ARENA_CHECKS_COUNT}};
    for (size_t i = 0; i < 2; ++i) assert_int_equal(nb_thread_arenas_create(&misuse[i], &arenas), NB_ERR_MISUSE);
    assert_null(arenas);
    assert_int_equal(nb_thread_arenas_create(NULL, &arenas), NB_OK);
    assert_int_equal(nb_thread_arena_attach(arenas, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_thread_arenas_stats_get(arenas).slot_count, NB_THREAD_ARENA_SLOT_COUNT_DEFAULT);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
}

// --- memory ---

static void touch_the_arena(void *user, uint32_t index) {
    (void)index;
    room *r = user;
    nb_thread_arena *thread = NULL;
    if (nb_thread_arena_attach(r->arenas, &thread) != NB_OK) abort();
    void *memory = nb_thread_arena_alloc(thread, 256 << 10, 64);
    if (memory == NULL) abort();
    memset(memory, 1, 256 << 10);
    if (nb_thread_arena_detach(thread) != NB_OK) abort();
}

static void run_short_threads(room *r, uint64_t count) {
    for (uint64_t done = 0; done < count; done += 4) {
        test_threads_run(4, touch_the_arena, r);
        advance(r);
    }
}

TEST(ten_thousand_short_threads_leave_no_memory) {
    room r;
    room_open(&r);
    run_short_threads(&r, 200); // what the C library keeps for threads is part of the baseline
    for (int i = 0; i < 8; ++i) advance(&r);
    uint64_t heap_before = nbi_atomic_load_relaxed_u64(&r.heap.live_bytes);
    size_t before = resident_bytes();
    run_short_threads(&r, test_size(1000, 10000, 10000));
    for (int i = 0; i < 8; ++i) advance(&r);
    size_t after = resident_bytes();
    assert_int_equal(stats_of(&r).thread_count, 1);
    assert_int_equal(stats_of(&r).idle_count, 0);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&r.heap.live_bytes), heap_before);
    if (IS_RESIDENT_SIZE_MEANINGFUL) assert_true(after <= before + (1u << 20));
    room_close(&r);
}

// Frames with a thread of their own each, some pinned. Returns how often something was refused for want of memory.
static uint32_t run_frames(test_log *log, test_heap *heap) {
    nb_thread_arenas *arenas = NULL;
    nb_thread_arenas_desc desc = {.slot_count = 2, .capacity_bytes = 1 << 16, .hooks = test_hooks(log, heap)};
    nb_result result = nb_thread_arenas_create(&desc, &arenas);
    if (result != NB_OK) {
        assert_int_equal(result, NB_ERR_MEMORY);
        return 1;
    }
    uint32_t refused = 0;
    nb_arena_frame pinned = nb_thread_arenas_frame(arenas);
    assert_int_equal(nb_thread_arenas_pin(arenas, pinned), NB_OK);
    for (int frame = 0; frame < 6; ++frame) {
        nb_thread_arena *thread = NULL;
        result = nb_thread_arena_attach(arenas, &thread);
        assert_int_equal(result, thread != NULL ? NB_OK : NB_ERR_MEMORY);
        if (thread == NULL) ++refused;
        for (int i = 0; i < 3 && thread != NULL; ++i) {
            unsigned char *memory = nb_thread_arena_alloc(thread, 40000, 8);
            if (memory != NULL) memory[39999] = 1;
            if (memory == NULL) ++refused;
        }
        if (thread != NULL) assert_int_equal(nb_thread_arena_detach(thread), NB_OK);
        assert_int_equal(nb_thread_arenas_advance(arenas, NULL), NB_OK);
    }
    assert_int_equal(nb_thread_arenas_unpin(arenas, pinned), NB_OK);
    assert_int_equal(nb_thread_arenas_destroy(arenas), NB_OK);
    return refused;
}

TEST(failing_memory_is_survived_at_every_call) {
    for (int from_on = 0; from_on < 2; ++from_on) {
        bool has_failed = true;
        for (uint64_t call = 1; has_failed; ++call) {
            assert_true(call < 200);
            test_log log = {0};
            test_heap heap = test_heap_failing(call, from_on);
            uint32_t refused = run_frames(&log, &heap);
            has_failed = nbi_atomic_load_relaxed_u64(&heap.call_count) >= call;
            assert_int_equal(refused != 0, has_failed);
            assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
        }
    }
}

TEST(failing_pages_are_survived_at_every_call) {
    for (int from_on = 0; from_on < 2; ++from_on) {
        bool has_failed = true;
        for (uint64_t call = 1; has_failed; ++call) {
            assert_true(call < 200);
            test_log log = {0};
            test_heap heap = {0};
            os.pages.call_count.value = 0;
            os.pages.fail_at = from_on ? 0 : call;
            os.pages.fail_from = from_on ? call : 0;
            run_frames(&log, &heap);
            has_failed = os.pages.call_count.value >= call;
            assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY) != 0, has_failed);
            assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
        }
    }
    os.pages.fail_at = os.pages.fail_from = 0;
}

// --- races ---

// Writers put a number into a block of the current frame and post {frame, block} for its slot. Readers pin a posted
// frame; where that succeeds, the block must hold the number of that frame until the unpin.
#define RACE_WORDS 64

typedef struct post {
    nb_atomic_u64 frame; // 0 = being changed
    nb_atomic_ptr block;
} post;

typedef struct race {
    nb_thread_arenas *arenas;
    post posts[2][64]; // [writer][slot of the frame value]
    nb_atomic_u32 stop;
    nb_atomic_u64 wrong, pinned, stale, failed;
    uint64_t seed;
} race;

static void race_write(race *c, uint32_t writer) {
    nb_thread_arena *thread = NULL;
    if (nb_thread_arena_attach(c->arenas, &thread) != NB_OK) {
        nbi_atomic_fetch_add_relaxed_u64(&c->failed, 1);
        return;
    }
    for (uint32_t round = 0; nbi_atomic_load_acquire_u32(&c->stop) == 0; ++round) {
        uint64_t *block = nb_thread_arena_alloc(thread, RACE_WORDS * sizeof *block, 8);
        if (block == NULL) { // a long frame may fill even the chain
            nbi_thread_yield();
            continue;
        }
        uint64_t frame = thread->frame;
        post *p = &c->posts[writer][(frame & 0xFF) - 1];
        for (uint32_t i = 0; i < RACE_WORDS; ++i) block[i] = frame;
        nbi_atomic_store_release_u64(&p->frame, 0);
        nbi_atomic_store_release_ptr(&p->block, block);
        nbi_atomic_store_release_u64(&p->frame, frame);
        // Now and then a thread leaves and another takes its arenas over.
        if (round % 64 == 63) {
            nb_thread_arena_detach(thread);
            if (nb_thread_arena_attach(c->arenas, &thread) != NB_OK) return;
        }
    }
    nb_thread_arena_detach(thread);
}

static bool race_holds(const uint64_t *block, uint64_t frame) {
    for (uint32_t i = 0; i < RACE_WORDS; ++i) {
        if (block[i] != frame) return false;
    }
    return true;
}

static void race_read(race *c, uint32_t reader) {
    uint64_t random = c->seed + reader;
    while (nbi_atomic_load_acquire_u32(&c->stop) == 0) {
        uint64_t number = test_random(&random);
        const post *p = &c->posts[number % 2][number / 2 % 4];
        uint64_t frame = nbi_atomic_load_acquire_u64(&p->frame);
        if (frame == 0) continue;
        if (nb_thread_arenas_pin(c->arenas, (nb_arena_frame){frame}) != NB_OK) {
            nbi_atomic_fetch_add_relaxed_u64(&c->stale, 1);
            continue;
        }
        const uint64_t *block = nbi_atomic_load_acquire_ptr(&p->block);
        bool is_posted = nbi_atomic_load_acquire_u64(&p->frame) == frame;
        for (int look = 0; is_posted && look < 4; ++look) {
            if (!race_holds(block, frame)) nbi_atomic_fetch_add_relaxed_u64(&c->wrong, 1);
            if (look % 2 == 1) nbi_thread_yield();
        }
        nbi_atomic_fetch_add_relaxed_u64(&c->pinned, 1);
        if (nb_thread_arenas_unpin(c->arenas, (nb_arena_frame){frame}) != NB_OK) {
            nbi_atomic_fetch_add_relaxed_u64(&c->wrong, 1);
        }
    }
}

static void race_run(void *user, uint32_t index) {
    if (index < 2) race_write(user, index);
    if (index >= 2) race_read(user, index);
}

TEST(pin_against_advance_keeps_every_pinned_block) {
    static race c;
    memset(&c, 0, sizeof c);
    c.seed = test_seed("pin_against_advance_keeps_every_pinned_block");
    test_log log = {0};
    test_heap heap = {0};
    nb_thread_arenas_desc desc = {.slot_count = 2, .capacity_bytes = 1 << 16, .hooks = test_hooks(&log, &heap)};
    desc.hooks.logger.level_min = NB_LOG_OFF; // stale pins are the point here
    assert_int_equal(nb_thread_arenas_create(&desc, &c.arenas), NB_OK);
    test_thread threads[5];
    test_threads_start(threads, 5, race_run, &c);
    uint64_t rounds = test_size(10000, 100000, 5000000);
    for (uint64_t i = 0; i < rounds; ++i) {
        nb_result result = nb_thread_arenas_advance(c.arenas, NULL);
        if (result != NB_OK && result != NB_FULL) nbi_atomic_fetch_add_relaxed_u64(&c.failed, 1);
        if (i % 16 == 0) nbi_thread_yield();
    }
    nbi_atomic_store_release_u32(&c.stop, 1);
    test_threads_join(threads, 5);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&c.wrong), 0);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&c.failed), 0);
    assert_true(nbi_atomic_load_relaxed_u64(&c.pinned) > 0);
    nb_thread_arenas_stats stats = nb_thread_arenas_stats_get(c.arenas);
    assert_int_equal(stats.pin_count, 0);
    assert_int_equal(nb_thread_arenas_destroy(c.arenas), NB_OK);
    assert_int_equal(nbi_atomic_load_relaxed_u64(&heap.live_count), 0);
}
