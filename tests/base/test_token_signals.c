// SPDX-License-Identifier: MIT
// What reaches a token and who hears of it, one thread at a time: deadlines, linked tokens, callbacks, waiting,
// shields.

#include "base/token_fixture.h"

// --- deadlines ---

TEST_IN(token, deadlines_fire_at_their_time_or_frame) {
    nb_token *root = root_create(*state, "root");
    nb_token *timed = child_create(root, "timed");
    nb_token *framed = child_create(root, "framed");
    nb_token *both = child_create(root, "both");
    nb_token *below = child_create(both, "below");
    assert_int_equal(nb_token_set_deadline(timed, 1000, 0), NB_OK);
    assert_int_equal(nb_token_set_deadline(framed, 0, 10), NB_OK);
    assert_int_equal(nb_token_set_deadline(both, 5000, 20), NB_OK);
    assert_int_equal(expire(root, 999, 9), 0);
    assert_int_equal(expire(below, 1000, 9), 1); // any token of the tree will do
    assert_int_equal(nb_token_reason(timed).cause, NB_CANCEL_DEADLINE_TIME);
    assert_int_equal(expire(root, 1000, 10), 1);
    assert_int_equal(nb_token_reason(framed).cause, NB_CANCEL_DEADLINE_FRAME);
    assert_int_equal(expire(root, 1000, 20), 2);
    assert_int_equal(nb_token_reason(below).cause, NB_CANCEL_DEADLINE_FRAME);
    assert_int_equal(expire(root, UINT64_MAX, UINT64_MAX), 0);
    assert_false(nb_token_is_cancelled(root));
    assert_int_equal(nb_token_set_deadline(timed, 1, 1), NB_CANCELLED);
    nb_token_release(below);
    nb_token_release(both);
    nb_token_release(framed);
    nb_token_release(timed);
    nb_token_release(root);
}

TEST_IN(token, deadline_can_be_replaced_and_taken_away) {
    nb_token *root = root_create(*state, "root");
    nb_token *token = child_create(root, "token");
    nb_token_set_deadline(token, 100, 5);
    nb_token_set_deadline(token, 200, 0);
    assert_int_equal(expire(root, 150, 50), 0);
    nb_token_set_deadline(token, 0, 0);
    assert_int_equal(expire(root, UINT64_MAX, UINT64_MAX), 0);
    nb_token_set_deadline(token, 300, 0);
    nb_token *gone = child_create(root, "gone");
    nb_token_set_deadline(gone, 1, 1);
    nb_token_release(gone);
    assert_int_equal(expire(root, 299, 1), 0);
    assert_int_equal(expire(root, 300, 1), 1);
    nb_token_release(token);
    nb_token_release(root);
}

// Random deadlines, changes and releases against a plain array.
#define DEADLINE_COUNT 300
TEST_IN(token, random_deadlines_agree_with_a_model) {
    uint64_t random = test_seed("random_deadlines_agree_with_a_model");
    nb_token *root = root_create(*state, "root");
    nb_token *tokens[DEADLINE_COUNT];
    uint64_t at_ns[DEADLINE_COUNT] = {0}, at_frame[DEADLINE_COUNT] = {0};
    for (int i = 0; i < DEADLINE_COUNT; ++i) tokens[i] = child_create(root, "token");
    uint64_t now = 1;
    uint64_t step_count = test_size(20000, 200000, 2000000);
    for (uint64_t step = 0; step < step_count; ++step) {
        uint32_t i = (uint32_t)(test_random(&random) % DEADLINE_COUNT);
        uint64_t what = test_random(&random) % 100;
        if (what < 80) {
            at_ns[i] = test_random(&random) % 2 ? now + 1 + test_random(&random) % 1000 : 0;
            at_frame[i] = test_random(&random) % 2 ? now / 10 + 1 + test_random(&random) % 100 : 0;
            assert_int_equal(nb_token_set_deadline(tokens[i], at_ns[i], at_frame[i]), NB_OK);
        } else if (what < 90) {
            nb_token_release(tokens[i]);
            tokens[i] = child_create(root, "token");
            at_ns[i] = at_frame[i] = 0;
        } else {
            now += test_random(&random) % 20;
            uint64_t due = 0;
            for (int j = 0; j < DEADLINE_COUNT; ++j) {
                bool is_due = (at_ns[j] != 0 && at_ns[j] <= now) || (at_frame[j] != 0 && at_frame[j] <= now / 10);
                if (!is_due) continue;
                ++due;
                at_ns[j] = at_frame[j] = 0;
            }
            assert_int_equal(expire(root, now, now / 10), due);
            for (int j = 0; due != 0 && j < DEADLINE_COUNT; ++j) {
                if (!nb_token_is_cancelled(tokens[j])) continue;
                nb_token_release(tokens[j]);
                tokens[j] = child_create(root, "token");
                --due;
            }
            assert_int_equal(due, 0);
        }
    }
    for (int i = 0; i < DEADLINE_COUNT; ++i) nb_token_release(tokens[i]);
    nb_token_release(root);
}

// A heap that, asked for a larger array of deadlines, first lets somebody else be faster and need one larger still.
#define FASTER_COUNT 60
typedef struct faster_heap {
    test_heap heap;
    nb_token *tokens[FASTER_COUNT];
    bool is_armed;
} faster_heap;

static void *faster_alloc(void *user, size_t size_bytes, size_t alignment) {
    faster_heap *faster = user;
    if (faster->is_armed) {
        faster->is_armed = false;
        for (uint64_t i = 0; i < FASTER_COUNT; ++i) {
            assert_int_equal(nb_token_set_deadline(faster->tokens[i], 10 + i, 10 + i), NB_OK);
        }
    }
    return test_heap_alloc(&faster->heap, size_bytes, alignment);
}

static void faster_free(void *user, void *memory, size_t size_bytes) {
    test_heap_free(&((faster_heap *)user)->heap, memory, size_bytes);
}

TEST_IN(token, array_of_deadlines_grown_meanwhile_is_kept) {
    faster_heap faster = {0};
    nb_token_desc desc = {.hooks = {.allocator = {.alloc = faster_alloc, .free = faster_free, .user = &faster}}};
    nb_token *root = NULL;
    assert_int_equal(nb_token_create(&desc, &root), NB_OK);
    nb_token *first = child_create(root, "first");
    for (int i = 0; i < FASTER_COUNT; ++i) faster.tokens[i] = child_create(root, "faster");
    faster.is_armed = true;
    assert_int_equal(nb_token_set_deadline(first, 5, 5), NB_OK);
    assert_int_equal(expire(root, 5, 0), 1);
    assert_int_equal(expire(root, 10 + FASTER_COUNT, 0), FASTER_COUNT);
    for (int i = 0; i < FASTER_COUNT; ++i) nb_token_release(faster.tokens[i]);
    nb_token_release(first);
    nb_token_release(root);
    assert_int_equal(faster.heap.live_count.value, 0);
}

static void arm_the_next(void *user, nb_token *token) {
    nb_token **next = user;
    (void)token;
    if (nb_token_child(*next, "armed", next) == NB_OK) nb_token_set_deadline(*next, 1, 0);
}

TEST_IN(token, deadline_set_while_expiring_waits_for_the_next_call) {
    nb_token *root = root_create(*state, "root");
    nb_token *token = child_create(root, "token");
    nb_token *next = root;
    nb_token_callback callback = {0};
    assert_int_equal(nb_token_callback_register(token, &callback, arm_the_next, &next), NB_OK);
    nb_token_set_deadline(token, 1, 0);
    assert_int_equal(expire(root, 10, 0), 1);
    assert_ptr_not_equal(next, root);
    assert_false(nb_token_is_cancelled(next));
    assert_int_equal(expire(root, 10, 0), 1);
    assert_true(nb_token_is_cancelled(next));
    nb_token_callback_unregister(&callback);
    nb_token_release(next);
    nb_token_release(token);
    nb_token_release(root);
}

// --- linked tokens ---

TEST_IN(token, linked_token_follows_any_source) {
    for (int which = 0; which < 3; ++which) {
        nb_token *sources[3] = {root_create(*state, "a"), root_create(*state, "b"), NULL};
        sources[2] = child_create(sources[1], "c");
        nb_token *any = any_create(*state, sources, 3);
        nb_token *below = child_create(any, "below");
        assert_false(nb_token_is_cancelled(any));
        nb_cancel_counts counts = {0};
        nb_token_cancel(sources[which], NB_CANCEL_FAILED, 77, &counts);
        assert_int_equal(counts.token_count, which == 1 ? 4 : 3);
        assert_true(nb_token_is_cancelled(below));
        assert_int_equal(nb_token_reason(any).cause, NB_CANCEL_FAILED);
        assert_int_equal(nb_token_reason(any).code, 77);
        assert_int_equal(cancel(sources[2]).token_count, which == 0 ? 1 : 0);
        nb_token_release(below);
        nb_token_release(any);
        for (int i = 0; i < 3; ++i) nb_token_release(sources[i]);
    }
}

TEST_IN(token, linked_token_does_not_cancel_its_sources) {
    nb_token *sources[2] = {root_create(*state, "a"), root_create(*state, "b")};
    nb_token *any = any_create(*state, sources, 2);
    assert_int_equal(cancel(any).token_count, 1);
    assert_false(nb_token_is_cancelled(sources[0]));
    assert_int_equal(nb_token_child_count(sources[0]), 0);
    assert_int_equal(cancel(sources[0]).token_count, 1);
    for (int i = 0; i < 2; ++i) nb_token_release(sources[i]);
    nb_token_release(any);
}

TEST_IN(token, linked_token_of_a_cancelled_source_is_born_cancelled) {
    nb_token *sources[2] = {root_create(*state, "a"), root_create(*state, "b")};
    nb_token_cancel(sources[1], NB_CANCEL_SHUTDOWN, 5, NULL);
    nb_token *any = any_create(*state, sources, 2);
    assert_int_equal(nb_token_reason(any).cause, NB_CANCEL_SHUTDOWN);
    assert_int_equal(nb_token_reason(any).code, 5);
    for (int i = 0; i < 2; ++i) nb_token_release(sources[i]);
    nb_token_release(any);
}

TEST_IN(token, linked_token_leaves_nothing_on_its_sources) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    nb_token *source = child_create(root, "source");
    for (int i = 0; i < 1000; ++i) {
        nb_token *sources[2] = {source, root};
        nb_token_release(any_create(f, sources, 2));
    }
    nb_token_prune(root);
    assert_int_equal(f->heap.live_count.value, 2);
    // It keeps its sources, even when nobody else does.
    nb_token *any = any_create(f, &source, 1);
    nb_token_release(source);
    assert_int_equal(nb_token_child_count(root), 1);
    assert_int_equal(cancel(root).token_count, 3);
    assert_true(nb_token_is_cancelled(any));
    nb_token_release(any);
    assert_int_equal(nb_token_child_count(root), 0);
    nb_token_release(root);
}

TEST_IN(token, diamond_of_linked_tokens_counts_each_once) {
    nb_token *root = root_create(*state, "root");
    nb_token *middle[3];
    for (int i = 0; i < 3; ++i) middle[i] = any_create(*state, &root, 1);
    nb_token *last = any_create(*state, middle, 3);
    assert_int_equal(cancel(root).token_count, 5);
    assert_true(nb_token_is_cancelled(last));
    nb_token_release(root);
    for (int i = 0; i < 3; ++i) nb_token_release(middle[i]);
    nb_token_release(last);
}

// A token that watches a token that watches a token ...
static void linked_chain_life(void *user) {
    deep_chain *chain = user;
    nb_token_desc desc = {.hooks = chain->f->hooks};
    nb_token *first = NULL;
    nb_token_create(&desc, &first);
    nb_token *last = nb_token_retain(first);
    for (uint32_t i = 0; i < chain->depth; ++i) {
        nb_token *next = NULL;
        if (nb_token_create_any(&desc, &last, 1, &next) != NB_OK) ++chain->failed_count;
        nb_token_release(last);
        last = next;
    }
    nb_cancel_counts counts = {0};
    nb_token_cancel(first, NB_CANCEL_STALE, 0, &counts);
    chain->cancelled_count = counts.token_count;
    if (!nb_token_is_cancelled(last)) ++chain->uncancelled_count;
    nb_token_release(first);
    nb_token_release(last);
}

TEST_IN(token, long_chain_of_linked_tokens_needs_no_stack) {
    deep_chain chain = {.f = *state, .depth = (uint32_t)test_size(50000, 200000, 1000000)};
    run_on_small_stack(linked_chain_life, &chain);
    assert_int_equal(chain.failed_count, 0);
    assert_int_equal(chain.uncancelled_count, 0);
    assert_int_equal(chain.cancelled_count, chain.depth + 1u);
}

// --- callbacks and waiting ---

typedef struct callback_log {
    uint32_t count;
    nb_token *token;
    nb_cancel_cause cause;
    nb_token *to_cancel, *to_release;
    nb_token_callback *to_free;
} callback_log;

static void on_cancel(void *user, nb_token *token) {
    callback_log *log = user;
    ++log->count;
    log->token = token;
    log->cause = nb_token_reason(token).cause;
    if (log->to_cancel != NULL) nb_token_cancel(log->to_cancel, NB_CANCEL_STALE, 0, NULL);
    nb_token_release(log->to_release);
    log->to_release = NULL;
    if (log->to_free == NULL) return;
    nb_token_callback_unregister(log->to_free);
    free(log->to_free);
    log->to_free = NULL;
}

TEST_IN(token, callback_runs_once_at_the_cancel) {
    nb_token *root = root_create(*state, "root");
    nb_token *child = child_create(root, "child");
    callback_log log = {0}, second = {0}, never = {0};
    nb_token_callback callback = {0}, other = {0}, removed = {0};
    assert_int_equal(nb_token_callback_register(child, &callback, on_cancel, &log), NB_OK);
    assert_int_equal(nb_token_callback_register(child, &removed, on_cancel, &never), NB_OK);
    assert_int_equal(nb_token_callback_register(child, &other, on_cancel, &second), NB_OK);
    assert_int_equal(nb_token_callback_unregister(&removed), NB_OK);
    assert_int_equal(nb_token_callback_unregister(&removed), NB_OK);
    nb_token_cancel(root, NB_CANCEL_FAILED, 0, NULL);
    nb_token_cancel(root, NB_CANCEL_FAILED, 0, NULL);
    assert_int_equal(log.count, 1);
    assert_int_equal(second.count, 1);
    assert_int_equal(never.count, 0);
    assert_ptr_equal(log.token, child);
    assert_int_equal(log.cause, NB_CANCEL_FAILED);
    nb_token_release(child);
    nb_token_release(root);
    // The registration keeps the token.
    assert_true(nb_token_is_cancelled(child));
    nb_token_callback_unregister(&callback);
    nb_token_callback_unregister(&other);
}

TEST_IN(token, callback_on_a_cancelled_token_runs_at_once) {
    nb_token *root = root_create(*state, "root");
    cancel(root);
    callback_log log = {0};
    nb_token_callback callback = {0};
    assert_int_equal(nb_token_callback_register(root, &callback, on_cancel, &log), NB_CANCELLED);
    assert_int_equal(log.count, 1);
    assert_int_equal(nb_token_callback_unregister(&callback), NB_OK);
    nb_token_release(root);
}

TEST_IN(token, callback_may_free_itself_and_end_every_token) {
    nb_token *root = root_create(*state, "root");
    nb_token *other = root_create(*state, "other");
    nb_token_callback *callback = calloc(1, sizeof *callback);
    callback_log log = {.to_cancel = other, .to_release = root, .to_free = callback};
    assert_int_equal(nb_token_callback_register(root, callback, on_cancel, &log), NB_OK);
    // The only handle, which this call itself uses, is given back inside the callback.
    assert_int_equal(cancel(root).token_count, 1);
    assert_int_equal(log.count, 1);
    assert_true(nb_token_is_cancelled(other));
    nb_token_release(other);
}

TEST_IN(token, callback_may_end_the_tree_it_expires_in) {
    nb_token *root = root_create(*state, "root");
    nb_token_callback *callback = calloc(1, sizeof *callback);
    callback_log log = {.to_release = root, .to_free = callback};
    assert_int_equal(nb_token_callback_register(root, callback, on_cancel, &log), NB_OK);
    nb_token_set_deadline(root, 1, 1);
    assert_int_equal(expire(root, 1, 1), 1);
    assert_int_equal(log.count, 1);
}

// All tokens read cancelled before the first callback runs, linked ones too.
typedef struct everyone {
    nb_token *tokens[4];
    uint32_t uncancelled_count;
} everyone;

static void look_at_everyone(void *user, nb_token *token) {
    everyone *all = user;
    (void)token;
    for (int i = 0; i < 4; ++i) all->uncancelled_count += nb_token_is_cancelled(all->tokens[i]) ? 0u : 1u;
}

TEST_IN(token, callbacks_run_after_the_whole_walk) {
    everyone all = {.tokens = {root_create(*state, "root")}};
    all.tokens[1] = child_create(all.tokens[0], "child");
    all.tokens[2] = any_create(*state, &all.tokens[1], 1);
    all.tokens[3] = child_create(all.tokens[2], "below");
    nb_token_callback callbacks[4] = {0};
    for (int i = 0; i < 4; ++i) nb_token_callback_register(all.tokens[i], &callbacks[i], look_at_everyone, &all);
    assert_int_equal(cancel(all.tokens[0]).token_count, 4);
    assert_int_equal(all.uncancelled_count, 0);
    for (int i = 0; i < 4; ++i) nb_token_callback_unregister(&callbacks[i]);
    for (int i = 0; i < 4; ++i) nb_token_release(all.tokens[i]);
}

TEST_IN(token, wait_ends_at_its_deadline_or_at_the_cancel) {
    nb_token *root = root_create(*state, "root");
    assert_int_equal(nb_token_wait(root, 0), NB_TIMEOUT);
    uint64_t deadline_ns = nbi_clock_now_ns() + 2000000;
    assert_int_equal(nb_token_wait(root, deadline_ns), NB_TIMEOUT);
    assert_true(nbi_clock_now_ns() >= deadline_ns);
    cancel(root);
    assert_int_equal(nb_token_wait(root, 0), NB_OK);
    assert_int_equal(nb_token_wait(root, NB_NEVER_NS), NB_OK);
    assert_int_equal(nb_token_reason(root).cause, NB_CANCEL_STALE);
    nb_token_release(root);
}

// --- shields ---

TEST_IN(token, shield_holds_a_cancel_back_until_its_end) {
    nb_token *root = root_create(*state, "root");
    nb_token *section = child_create(root, "save");
    nb_token *below = child_create(section, "below");
    assert_int_equal(nb_token_shield_begin(section), NB_OK);
    assert_int_equal(nb_token_shield_begin(section), NB_OK);
    assert_int_equal(cancel(root).token_count, 1);
    assert_false(nb_token_is_cancelled(section));
    assert_false(nb_token_is_cancelled(below));
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_shield_end(section, &counts), NB_OK);
    assert_int_equal(counts.token_count, 0);
    assert_false(nb_token_is_cancelled(below));
    assert_int_equal(nb_token_shield_end(section, &counts), NB_OK);
    assert_int_equal(counts.token_count, 2);
    assert_true(nb_token_is_cancelled(below));
    assert_int_equal(nb_token_reason(below).cause, NB_CANCEL_STALE);
    assert_int_equal(nb_token_shield_begin(section), NB_CANCELLED);
    assert_int_equal(nb_token_shield_end(section, &counts), NB_ERR_MISUSE);
    nb_token_release(below);
    nb_token_release(section);
    nb_token_release(root);
}

TEST_IN(token, shield_does_not_stop_a_cancel_of_its_own_token) {
    nb_token *root = root_create(*state, "root");
    nb_token *section = child_create(root, "save");
    nb_token_shield_begin(section);
    assert_int_equal(cancel(section).token_count, 1);
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_shield_end(section, &counts), NB_OK);
    assert_int_equal(counts.token_count, 0);
    nb_token_release(section);
    nb_token_release(root);
}

TEST_IN(token, shield_holds_back_a_source_too) {
    nb_token *sources[2] = {root_create(*state, "a"), root_create(*state, "b")};
    nb_token *any = any_create(*state, sources, 2);
    nb_token_shield_begin(any);
    assert_int_equal(cancel(sources[1]).token_count, 1);
    assert_false(nb_token_is_cancelled(any));
    assert_int_equal(nb_token_shield_end(any, NULL), NB_OK);
    assert_true(nb_token_is_cancelled(any));
    nb_token_release(any);
    for (int i = 0; i < 2; ++i) nb_token_release(sources[i]);
}
