// SPDX-License-Identifier: MIT
#pragma once

// What the tests share: cmocka, captured logs, a counting allocator that fails on demand, threads, seeds, sizes.
// cmocka's failures long-jump: assert from the main thread of a test only; other threads count and report.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "platform/platform.h"

#include "support/case.h"

// How much a stress or property test does: quick in `./dev test`, check in `./dev check`, full in `./dev check --full`.
// Chosen by the environment variable NB_TEST_SIZE; quick when unset.
static inline uint64_t test_size(uint64_t quick, uint64_t check, uint64_t full) {
    const char *size = getenv("NB_TEST_SIZE");
    if (size != NULL && strcmp(size, "full") == 0) return full;
    if (size != NULL && strcmp(size, "check") == 0) return check;
    return quick;
}

// The seed of a random test: NB_TEST_SEED where set, else fixed. Printed, so that a failure can be run again.
static inline uint64_t test_seed(const char *test_name) {
    const char *text = getenv("NB_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 0x9E3779B97F4A7C15u;
    fprintf(stderr, "%s: NB_TEST_SEED=0x%llx\n", test_name, (unsigned long long)seed);
    return seed;
}

// SplitMix64: any state is fine, each call is one step.
static inline uint64_t test_random(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Counts records per item; safe from any thread.
#define TEST_LOG_ITEM_MAX 2000
typedef struct test_log {
    nb_atomic_u32 counts[TEST_LOG_ITEM_MAX];
    char last_message[320], last_function[64]; // of the newest record; read it only when no other thread logs
    nb_atomic_u32 is_writing;                  // of threads that log at once one leaves its message
} test_log;

static inline void test_log_record(void *user, const nb_log_record *record) {
    test_log *log = (test_log *)user;
    if (record->item < TEST_LOG_ITEM_MAX) nbi_atomic_fetch_add_seq_cst_u32(&log->counts[record->item], 1);
    if (nbi_atomic_exchange_seq_cst_u32(&log->is_writing, 1) != 0) return;
    snprintf(log->last_message, sizeof log->last_message, "%s", record->message);
    snprintf(log->last_function, sizeof log->last_function, "%s", record->function);
    nbi_atomic_store_release_u32(&log->is_writing, 0); // read by the exchange above
}

static inline uint32_t test_log_count(const test_log *log, nb_log_item item) {
    return nbi_atomic_load_seq_cst_u32(&log->counts[item]);
}

// A heap that counts, and that fails the calls asked for.
typedef struct test_heap {
    nb_atomic_u64 live_count, live_bytes, call_count;
    uint64_t fail_at;   // this call fails (1 = the first); 0 = none
    uint64_t fail_from; // this call and all later ones fail; 0 = none
} test_heap;

static inline void *test_heap_alloc(void *user, size_t size_bytes, size_t alignment) {
    test_heap *heap = (test_heap *)user;
    uint64_t call = nbi_atomic_fetch_add_seq_cst_u64(&heap->call_count, 1) + 1;
    if (call == heap->fail_at || (heap->fail_from != 0 && call >= heap->fail_from)) return NULL;
    size_t rounded = (size_bytes + alignment - 1) & ~(alignment - 1);
    void *memory = aligned_alloc(alignment, rounded);
    if (memory == NULL) return NULL;
    memset(memory, 0xA5, rounded); // fresh memory is never zero: code that relies on it fails
    nbi_atomic_fetch_add_seq_cst_u64(&heap->live_count, 1);
    nbi_atomic_fetch_add_seq_cst_u64(&heap->live_bytes, size_bytes);
    return memory;
}

static inline void test_heap_free(void *user, void *memory, size_t size_bytes) {
    test_heap *heap = (test_heap *)user;
    nbi_atomic_fetch_sub_seq_cst_u64(&heap->live_count, 1);
    nbi_atomic_fetch_sub_seq_cst_u64(&heap->live_bytes, size_bytes);
    free(memory);
}

// A heap whose call n fails, and where it lasts all later ones.
static inline test_heap test_heap_failing(uint64_t n, bool is_lasting) {
    return (test_heap){.fail_at = is_lasting ? 0 : n, .fail_from = is_lasting ? n : 0};
}

// A call either works or has found no memory, and logs that once.
static inline void assert_ok_or_no_memory(nb_result result, const test_log *log) {
    if (result == NB_OK) return;
    assert_int_equal(result, NB_ERR_MEMORY);
    assert_int_equal(test_log_count(log, NB_ITEM_BASE_MEMORY), 1);
}

// Nothing came of a creation that found no memory, or no file, and it is logged once.
static inline void assert_not_created(const void *object, const test_heap *heap, const test_log *log,
                                      nb_log_item item) {
    assert_null(object);
    assert_int_equal(heap->live_count.value, 0);
    assert_int_equal(test_log_count(log, item), 1);
}

// Hooks that log into `log` and allocate from `heap`; either may be NULL.
static inline nb_hooks test_hooks(test_log *log, test_heap *heap) {
    nb_hooks hooks = {0};
    if (log != NULL) {
        hooks.logger.log = test_log_record;
        hooks.logger.user = log;
        hooks.logger.level_min = NB_LOG_TRACE;
    }
    if (heap != NULL) {
        hooks.allocator.alloc = test_heap_alloc;
        hooks.allocator.free = test_heap_free;
        hooks.allocator.user = heap;
    }
    return hooks;
}

// Runs `count` threads of one function with its own index each, and joins them.
typedef struct test_thread {
    void (*run)(void *user, uint32_t index);
    void *user;
    uint32_t index;
    nbi_thread thread;
} test_thread;

static inline void test_thread_main(void *user) {
    test_thread *thread = (test_thread *)user;
    thread->run(thread->user, thread->index);
}

static inline void test_threads_start(test_thread *threads, uint32_t count, void (*run)(void *, uint32_t), void *user) {
    for (uint32_t i = 0; i < count; ++i) {
        threads[i] = (test_thread){.run = run, .user = user, .index = i};
        nbi_thread_desc desc = {.run = test_thread_main, .user = &threads[i], .name = "test"};
        if (nbi_thread_start(&threads[i].thread, &desc) != NB_OK) abort();
    }
}

static inline void test_threads_join(test_thread *threads, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) nbi_thread_join(&threads[i].thread);
}

// Starts them and joins them.
static inline void test_threads_run(uint32_t count, void (*run)(void *, uint32_t), void *user) {
    test_thread threads[64];
    if (count > sizeof threads / sizeof threads[0]) abort();
    test_threads_start(threads, count, run, user);
    test_threads_join(threads, count);
}

// Calls a function from another thread, and waits for it.
static inline void test_thread_run(void (*run)(void *user), void *user) {
    nbi_thread thread = {0};
    nbi_thread_desc desc = {.run = run, .user = user, .name = "test"};
    if (nbi_thread_start(&thread, &desc) != NB_OK) abort();
    nbi_thread_join(&thread);
}

// A gate that lets `count` threads go at the same moment.
typedef struct test_gate {
    nb_atomic_u32 arrived;
} test_gate;

static inline void test_gate_pass(test_gate *gate, uint32_t count) {
    nbi_atomic_fetch_add_seq_cst_u32(&gate->arrived, 1);
    while (nbi_atomic_load_acquire_u32(&gate->arrived) < count) nbi_thread_yield();
}
