// SPDX-License-Identifier: MIT
#pragma once

// What the token tests share: a heap and a log a test, small constructors, deep trees on a small stack.

#include "support/support.h"

#include "nebula/token.h"

// Deep trees are handled on a stack this small: anything that recursed over them would end the process.
#define SMALL_STACK_BYTES (64 * 1024)

typedef struct fixture {
    test_log log;
    test_heap heap;
    nb_hooks hooks;
} fixture;

static inline int token_setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->hooks = test_hooks(&f->log, &f->heap);
    *state = f;
    return 0;
}

// Whatever a test did, nothing may be left on the heap.
static inline int token_teardown(void **state) {
    fixture *f = *state;
    uint64_t live_count = f->heap.live_count.value;
    free(f);
    if (live_count != 0) fprintf(stderr, "%llu blocks leaked\n", (unsigned long long)live_count);
    return live_count == 0 ? 0 : -1;
}

#define token_test(function) cmocka_unit_test_setup_teardown(function, token_setup, token_teardown)

static inline nb_token *root_create(fixture *f, const char *label) {
    nb_token_desc desc = {.label = label, .hooks = f->hooks};
    nb_token *token = NULL;
    assert_int_equal(nb_token_create(&desc, &token), NB_OK);
    return token;
}

static inline nb_token *child_create(nb_token *parent, const char *label) {
    nb_token *token = NULL;
    assert_int_equal(nb_token_child(parent, label, &token), NB_OK);
    return token;
}

static inline nb_token *child_with_key(nb_token *parent, uint64_t key) {
    nb_token_desc desc = {.parent = parent, .key = key};
    nb_token *token = NULL;
    assert_int_equal(nb_token_create(&desc, &token), NB_OK);
    return token;
}

static inline nb_token *any_create(fixture *f, nb_token *const *sources, uint32_t source_count) {
    nb_token_desc desc = {.label = "any", .hooks = f->hooks};
    nb_token *token = NULL;
    assert_int_equal(nb_token_create_any(&desc, sources, source_count, &token), NB_OK);
    return token;
}

static inline nb_cancel_counts cancel(nb_token *token) {
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts), NB_OK);
    return counts;
}

static inline void run_on_small_stack(void (*run)(void *), void *user) {
    nbi_thread thread = {0};
    nbi_thread_desc desc = {.run = run, .user = user, .name = "small", .stack_size_bytes = SMALL_STACK_BYTES};
    assert_int_equal(nbi_thread_start(&thread, &desc), NB_OK);
    nbi_thread_join(&thread);
}

static inline uint64_t expire(nb_token *token, uint64_t now_ns, uint64_t frame) {
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_expire(token, now_ns, frame, &counts), NB_OK);
    return counts.token_count;
}

// A long chain of tokens and what became of it.
typedef struct deep_chain {
    fixture *f;
    uint32_t depth;
    uint64_t cancelled_count;
    uint32_t uncancelled_count, failed_count;
} deep_chain;
