// SPDX-License-Identifier: MIT
// The two queues of a lane, by themselves: each entry is taken exactly once, whoever takes it, also in the smallest
// buffer and where the indices wrap.

#include "support/support.h"

#include "tasks/queue.h"

#define ITEM_MAX 65536
#define CAPACITY_MAX 1024
#define THIEF_COUNT 3

static nb_atomic_u64 cells[CAPACITY_MAX];
static nb_atomic_u32 taken[ITEM_MAX];

static void reset(void) {
    memset(cells, 0, sizeof cells);
    memset(taken, 0, sizeof taken);
}

static void note(nbi_hint hint) {
    uint64_t item = nbi_hint_generation(hint);
    // A value that was never put in is as bad as one found twice.
    if (item >= ITEM_MAX || nbi_hint_slot(hint) != (uint32_t)item % 1000) item = ITEM_MAX - 1;
    nbi_atomic_fetch_add_relaxed_u32(&taken[item], 1);
}

static nbi_hint item_of(uint64_t number) { return nbi_hint_of(number, (uint32_t)number % 1000); }

static void assert_each_once(uint64_t count) {
    for (uint64_t i = 0; i < ITEM_MAX; ++i) {
        uint32_t times = nbi_atomic_load_relaxed_u32(&taken[i]);
        if (times != (i < count ? 1u : 0u)) fail_msg("item %u was taken %u times", (unsigned)i, (unsigned)times);
    }
}

// --- alone ---

TEST(hint_keeps_slot_and_generation) {
    static const uint64_t generations[] = {0, 1, (1u << 20) - 1, ((uint64_t)1 << 35) - 1};
    static const uint32_t slots[] = {0, 1, 12345, (1u << NBI_HINT_SLOT_BITS) - 2};
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            nbi_hint hint = nbi_hint_of(generations[i], slots[j]);
            assert_int_equal(nbi_hint_slot(hint), slots[j]);
            assert_int_equal(nbi_hint_generation(hint), generations[i]);
            assert_int_equal(hint & NBI_HINT_LAP, 0);
            assert_true(hint != NBI_HINT_NONE);
        }
    }
}

TEST(ring_is_first_in_first_out_and_says_full) {
    for (uint64_t capacity = 1; capacity <= 16; capacity *= 2) {
        reset();
        nbi_ring ring;
        nbi_ring_init(&ring, cells, capacity);
        uint64_t in = 0, out = 0, index = 0;
        assert_true(nbi_ring_peek(&ring, &index) == NBI_HINT_NONE);
        for (int round = 0; round < 100; ++round) {
            while (nbi_ring_push(&ring, item_of(in))) ++in;
            assert_int_equal(in - out, capacity);
            for (uint64_t i = 0; i <= (uint64_t)round % capacity; ++i) {
                assert_true(nbi_ring_peek(&ring, &index) == item_of(out));
                assert_true(nbi_ring_take(&ring, index));
                assert_false(nbi_ring_take(&ring, index));
                ++out;
            }
        }
        while (nbi_ring_peek(&ring, &index) != NBI_HINT_NONE) assert_true(nbi_ring_take(&ring, index)), ++out;
        assert_int_equal(out, in);
    }
}

TEST(deque_gives_its_owner_the_newest_and_thieves_the_oldest) {
    static const uint64_t firsts[] = {0, UINT64_MAX - 3, UINT64_MAX, (uint64_t)INT64_MAX - 2, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; ++i) {
        for (uint64_t capacity = 2; capacity <= 16; capacity *= 2) {
            reset();
            nbi_deque deque;
            nbi_deque_init(&deque, cells, capacity, firsts[i]);
            uint64_t index = 0;
            for (int round = 0; round < 20; ++round) {
                assert_true(nbi_deque_pop(&deque) == NBI_HINT_NONE);
                assert_true(nbi_deque_newest(&deque) == NBI_HINT_NONE);
                assert_true(nbi_deque_peek(&deque, &index) == NBI_HINT_NONE);
                for (uint64_t n = 0; n < capacity; ++n) assert_true(nbi_deque_push(&deque, item_of(n)));
                assert_false(nbi_deque_push(&deque, item_of(99)));
                assert_true(nbi_deque_newest(&deque) == item_of(capacity - 1));
                assert_true(nbi_deque_pop(&deque) == item_of(capacity - 1));
                assert_true(nbi_deque_peek(&deque, &index) == item_of(0));
                assert_true(nbi_deque_take(&deque, index));
                assert_false(nbi_deque_take(&deque, index));
                assert_true(nbi_deque_push(&deque, item_of(50)));
                assert_true(nbi_deque_pop(&deque) == item_of(50));
                for (uint64_t n = capacity - 1; n-- > 1;) assert_true(nbi_deque_pop(&deque) == item_of(n));
            }
        }
    }
}

// --- with others ---

typedef struct contest {
    nbi_ring *ring;
    nbi_deque *deque;
    uint64_t count;       // items to put in
    uint32_t owner_takes; // of 8 steps, those in which the owner takes
    test_gate gate;
    nb_atomic_u32 is_over;
} contest;

static void deque_owner(contest *c) {
    uint64_t random = c->count + c->owner_takes;
    for (uint64_t in = 0; in < c->count;) {
        bool takes = test_random(&random) % 8 < c->owner_takes;
        if (!takes && nbi_deque_push(c->deque, item_of(in))) {
            ++in;
            continue;
        }
        nbi_hint hint = nbi_deque_pop(c->deque);
        if (hint != NBI_HINT_NONE) note(hint);
    }
    for (nbi_hint hint; (hint = nbi_deque_pop(c->deque)) != NBI_HINT_NONE;) note(hint);
    nbi_atomic_store_release_u32(&c->is_over, 1);
}

static void deque_thread(void *user, uint32_t index) {
    contest *c = user;
    test_gate_pass(&c->gate, 1 + THIEF_COUNT);
    if (index == 0) {
        deque_owner(c);
        return;
    }
    for (uint64_t at; nbi_atomic_load_acquire_u32(&c->is_over) == 0;) {
        nbi_hint hint = nbi_deque_peek(c->deque, &at);
        if (hint != NBI_HINT_NONE && nbi_deque_take(c->deque, at)) note(hint);
    }
}

// T1 and T2: the owner against three thieves, mostly about the last entry.
TEST(deque_gives_each_entry_to_one_thread) {
    uint64_t rounds = test_size(8, 40, 2000), seed = test_seed("deque_gives_each_entry_to_one_thread");
    for (uint64_t round = 0; round < rounds; ++round) {
        reset();
        nbi_deque deque;
        uint64_t capacity = (uint64_t)2 << (round % 3);
        nbi_deque_init(&deque, cells, capacity, round % 2 == 0 ? UINT64_MAX - test_random(&seed) % 1000 : 0);
        contest c = {.deque = &deque, .count = 20000, .owner_takes = 2 + (uint32_t)round % 3};
        test_thread threads[1 + THIEF_COUNT];
        test_threads_start(threads, 1 + THIEF_COUNT, deque_thread, &c);
        test_threads_join(threads, 1 + THIEF_COUNT);
        assert_each_once(c.count);
    }
}

static void ring_thread(void *user, uint32_t index) {
    contest *c = user;
    test_gate_pass(&c->gate, 1 + THIEF_COUNT);
    if (index == 0) {
        for (uint64_t in = 0; in < c->count;) {
            if (nbi_ring_push(c->ring, item_of(in)))
                ++in;
            else
                nbi_thread_yield();
        }
        nbi_atomic_store_release_u32(&c->is_over, 1);
        return;
    }
    uint64_t last = 0;
    for (uint64_t at;;) {
        bool is_over = nbi_atomic_load_acquire_u32(&c->is_over) != 0;
        nbi_hint hint = nbi_ring_peek(c->ring, &at);
        if (hint == NBI_HINT_NONE) {
            if (is_over) break;
            nbi_thread_yield();
            continue;
        }
        if (!nbi_ring_take(c->ring, at)) continue;
        note(hint);
        // What one thread takes, it takes in order.
        if (nbi_hint_generation(hint) < last) nbi_atomic_fetch_add_relaxed_u32(&taken[0], 1);
        last = nbi_hint_generation(hint);
    }
}

TEST(ring_gives_each_entry_to_one_thread_in_order) {
    uint64_t rounds = test_size(8, 40, 2000);
    for (uint64_t round = 0; round < rounds; ++round) {
        reset();
        nbi_ring ring;
        nbi_ring_init(&ring, cells, (uint64_t)1 << (round % 5));
        contest c = {.ring = &ring, .count = 20000};
        test_thread threads[1 + THIEF_COUNT];
        test_threads_start(threads, 1 + THIEF_COUNT, ring_thread, &c);
        test_threads_join(threads, 1 + THIEF_COUNT);
        assert_each_once(c.count);
    }
}
