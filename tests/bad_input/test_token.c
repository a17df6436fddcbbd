// SPDX-License-Identifier: MIT
// nebula/token.h: memory that is no token, bad descs, ends without a begin.

#include "bad_input/bad_input.h"

#include "nebula/token.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static nb_token *root_open(test_heap *heap) {
    nb_token *root = NULL;
    nb_token_desc desc = {.label = "root", .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_token_create(&desc, &root));
    return root;
}

// The token was neither cancelled nor given children, and a cancel finds it alone.
static void root_close(nb_token *root, test_heap *heap) {
    nb_cancel_counts counts = {0};
    accepted(false, nb_token_is_cancelled(root));
    accepted(0, nb_token_child_count(root));
    accepted(NB_OK, nb_token_cancel(root, NB_CANCEL_NONE, 0, &counts));
    assert_int_equal(counts.token_count, 1);
    assert_int_equal(counts.task_queued_count + counts.task_running_count, 0);
    nb_token_release(root);
    assert_int_equal(heap->live_count.value, 0);
}

static bool match_none(void *user, nb_token *child) {
    (void)user;
    (void)child;
    return false;
}

static void never_run(void *user, nb_token *token) {
    (void)user;
    (void)token;
    abort();
}

// Zeroed memory of a token's size, and memory full of a pattern: neither has ever been a token.
typedef struct foreign {
    uint64_t words[64];
} foreign;

static nb_token *foreign_token(foreign *memory, int filled_with) {
    memset(memory, filled_with, sizeof *memory);
    return (nb_token *)(void *)memory;
}

static test_heap heap; // of the case that runs

// --- creating ---

TEST(token_creation_refuses_a_bad_desc) {
    foreign memory;
    nb_token *out = UNTOUCHED(nb_token), *root = root_open(&heap);
    char label[NB_TOKEN_LABEL_SIZE_MAX + 1];
    memset(label, 'x', sizeof label); // no final zero: no byte past the longest label may be read
    nb_token_desc long_label = {.label = label, .hooks = bad_hooks(&heap)};
    nb_token_desc stale_parent = {.parent = foreign_token(&memory, 0), .hooks = bad_hooks(&heap)};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_create(NULL, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create(&long_label, &out));
    refused_default(NB_ERR_STALE, NB_ITEM_TOKEN_STALE, nb_token_create(&stale_parent, &out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_create_cancelled(NULL, NB_CANCEL_STALE, 0, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create_cancelled(&long_label, NB_CANCEL_STALE, 0, &out));
    nb_token_desc fine = {.hooks = bad_hooks(&heap)};
    const nb_cancel_cause causes[] = {NB_CANCEL_COUNT, (nb_cancel_cause)-1};
    for (size_t i = 0; i < COUNT_OF(causes); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create_cancelled(&fine, causes[i], 0, &out));
        const char *name = NULL;
        silent(name = nb_cancel_cause_name(causes[i]));
        assert_string_equal(name, "unknown");
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_child(NULL, "child", &out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_child(root, "child", NULL));
    refused_default(NB_ERR_STALE, NB_ITEM_TOKEN_STALE, nb_token_child(stale_parent.parent, "child", &out));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT, nb_token_child(root, label, &out));
    heap.fail_from = 1;
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_token_create(&fine, &out));
    heap.fail_from = 0;
    assert_ptr_equal(out, UNTOUCHED(nb_token));
    assert_zero(memory);
    root_close(root, &heap);
}

TEST(linked_token_refuses_bad_sources) {
    foreign memory;
    nb_token *out = UNTOUCHED(nb_token), *root = root_open(&heap);
    nb_token *sources[] = {root, NULL}, *stale_sources[] = {root, foreign_token(&memory, 0)};
    nb_token_desc desc = {.hooks = bad_hooks(&heap)}, with_parent = {.parent = root, .hooks = bad_hooks(&heap)};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_create_any(&desc, sources, 1, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_create_any(&desc, NULL, 1, &out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_create_any(&desc, sources, 2, &out));
    refused_default(NB_ERR_STALE, NB_ITEM_TOKEN_STALE, nb_token_create_any(&desc, stale_sources, 2, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create_any(&desc, sources, 0, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT,
            nb_token_create_any(&desc, sources, NB_TOKEN_SOURCE_COUNT_MAX + 1, &out));
    refused(NB_ERR_RANGE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create_any(&desc, sources, UINT32_MAX, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_create_any(&with_parent, sources, 1, &out));
    assert_ptr_equal(out, UNTOUCHED(nb_token));
    root_close(root, &heap);
}

// --- no token ---

// NULL gives NB_ERR_MISUSE, memory that is no token NB_ERR_STALE.
static void bad_token_is_refused_everywhere(nb_token *token, nb_result result, nb_log_item item) {
    nb_cancel_counts counts;
    nb_token_callback callback = {0};
    const char *label = NULL;
    char path[4] = "abc";
    memset(&counts, 0x5A, sizeof counts);
    refused_default(NULL, item, nb_token_retain(token));
    reported_default(item, label = nb_token_label(token));
    assert_string_equal(label, "");
    refused_default(0, item, nb_token_key(token));
    refused_default(0, item, nb_token_path(token, path, sizeof path));
    assert_string_equal(path, "");
    refused_default(0, item, nb_token_path(token, NULL, SIZE_MAX));
    refused_default(0, item, nb_token_child_count(token));
    refused_default(0, item, nb_token_prune(token));
    refused_default(result, item, nb_token_cancel(token, NB_CANCEL_STALE, 0, &counts));
    refused_default(result, item, nb_token_cancel_children(token, match_none, NULL, NB_CANCEL_STALE, 0, &counts));
    refused_default(result, item, nb_token_cancel_key(token, 1, NB_CANCEL_STALE, 0, &counts));
    refused_default(result, item, nb_token_set_deadline(token, 1, 1));
    refused_default(result, item, nb_token_expire(token, 1, 1, &counts));
    refused_default(result, item, nb_token_callback_register(token, &callback, never_run, NULL));
    refused_default(result, item, nb_token_wait(token, NB_NEVER_NS));
    refused_default(result, item, nb_token_shield_begin(token));
    refused_default(result, item, nb_token_shield_end(token, &counts));
    assert_untouched(counts, 0x5A);
    assert_null(callback.token);
}

static nb_result (*const task_functions[])(nb_token *) = {nb_token_task_enter, nb_token_task_start, nb_token_task_leave,
                                                          nb_token_task_withdraw};

TEST(token_functions_refuse_null) {
    bad_token_is_refused_everywhere(NULL, NB_ERR_MISUSE, NB_ITEM_BASE_NULL);
    // No token is a token that is never cancelled and counts no tasks.
    accepted(false, nb_token_is_cancelled(NULL));
    accepted(NB_CANCEL_NONE, nb_token_reason(NULL).cause);
    silent(nb_token_release(NULL));
    for (size_t i = 0; i < COUNT_OF(task_functions); ++i) accepted(NB_OK, task_functions[i](NULL));
}

TEST(token_functions_refuse_memory_that_is_no_token) {
    static const int patterns[] = {0, 0xA5};
    for (size_t i = 0; i < COUNT_OF(patterns); ++i) {
        foreign memory;
        nb_token *token = foreign_token(&memory, patterns[i]);
        bad_token_is_refused_everywhere(token, NB_ERR_STALE, NB_ITEM_TOKEN_STALE);
        reported_default(NB_ITEM_TOKEN_STALE, nb_token_release(token));
        for (size_t j = 0; j < COUNT_OF(task_functions); ++j) {
            refused_default(NB_ERR_STALE, NB_ITEM_TOKEN_STALE, task_functions[j](token));
        }
        assert_untouched(memory, patterns[i]);
    }
}

// --- bad arguments for a good token ---

TEST(cancelling_refuses_causes_that_are_none) {
    nb_token *root = root_open(&heap);
    nb_cancel_counts counts;
    memset(&counts, 0x5A, sizeof counts);
    const nb_cancel_cause causes[] = {NB_CANCEL_COUNT, (nb_cancel_cause)-1};
    for (size_t i = 0; i < COUNT_OF(causes); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_cancel(root, causes[i], 0, &counts));
        refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_cancel_key(root, 0, causes[i], 0, &counts));
        refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT,
                nb_token_cancel_children(root, match_none, NULL, causes[i], 0, &counts));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL,
                    nb_token_cancel_children(root, NULL, NULL, NB_CANCEL_STALE, 0, &counts));
    assert_untouched(counts, 0x5A);
    root_close(root, &heap);
}

TEST(callbacks_refuse_null_and_a_second_registration) {
    nb_token *root = root_open(&heap);
    nb_token_callback callback = {0};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_callback_register(root, NULL, never_run, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_callback_register(root, &callback, NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_token_callback_unregister(NULL));
    accepted(NB_OK, nb_token_callback_unregister(&callback)); // never registered
    accepted(NB_OK, nb_token_callback_register(root, &callback, never_run, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_callback_register(root, &callback, never_run, NULL));
    accepted(NB_OK, nb_token_callback_unregister(&callback));
    accepted(NB_OK, nb_token_callback_unregister(&callback)); // twice is fine
    assert_null(callback.token);
    root_close(root, &heap);
}

TEST(tasks_and_shields_refuse_an_end_without_a_begin) {
    nb_token *root = root_open(&heap);
    nb_cancel_counts counts;
    memset(&counts, 0x5A, sizeof counts);
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_shield_end(root, &counts));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_task_start(root));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_task_leave(root));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_task_withdraw(root));
    accepted(NB_OK, nb_token_task_enter(root));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_task_leave(root)); // queued, not running
    accepted(NB_OK, nb_token_task_start(root));
    refused(NB_ERR_MISUSE, NB_ITEM_TOKEN_ARGUMENT, nb_token_task_withdraw(root)); // running, not queued
    accepted(NB_OK, nb_token_task_leave(root));
    assert_untouched(counts, 0x5A);
    root_close(root, &heap);
}

TEST(wait_and_deadline_at_their_limits) {
    nb_token *root = root_open(&heap);
    nb_cancel_counts counts;
    accepted(NB_TIMEOUT, nb_token_wait(root, 0));
    accepted(NB_TIMEOUT, nb_token_wait(root, 1)); // long past
    heap.fail_from = 1;
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_token_set_deadline(root, 1, 1));
    heap.fail_from = 0;
    accepted(NB_OK, nb_token_expire(root, UINT64_MAX, UINT64_MAX, &counts)); // the failed call left none
    assert_int_equal(counts.token_count, 0);
    accepted(NB_OK, nb_token_set_deadline(root, UINT64_MAX, 0));
    accepted(NB_OK, nb_token_expire(root, UINT64_MAX - 1, UINT64_MAX, NULL));
    accepted(NB_OK, nb_token_set_deadline(root, 0, 0));
    accepted(NB_OK, nb_token_expire(root, UINT64_MAX, UINT64_MAX, NULL));
    root_close(root, &heap);
}

// A child keeps its released parent: such a handle is known to be gone for certain.
TEST(handle_given_back_twice_is_reported) {
    nb_token *root = root_open(&heap), *child = NULL;
    accepted(NB_OK, nb_token_child(root, "child", &child));
    silent(nb_token_release(root));
    reported(NB_ITEM_TOKEN_STALE, nb_token_release(root));
    refused(NULL, NB_ITEM_TOKEN_STALE, nb_token_retain(root));
    char path[16];
    accepted(10, nb_token_path(child, path, sizeof path));
    assert_string_equal(path, "root/child");
    silent(nb_token_release(child));
    assert_int_equal(heap.live_count.value, 0);
}
