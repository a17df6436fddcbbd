// SPDX-License-Identifier: MIT
// Cancellation tokens under every kind of interleaving: children made, released, linked, waited for and called back
// while their tree is being cancelled.

#include "explore.h"

#include "nebula/token.h"
#include "platform/platform.h"

typedef struct grove {
    nb_token *root, *middle, *leaf, *other, *linked;
    nb_token *made[2];
    nb_token_callback callback;
    nb_atomic_u32 calls, is_unregistered, tasks_run, tasks_refused;
    nb_atomic_u64 tokens, tasks;
} grove;

static nb_token *root_make(const char *label) {
    nb_token_desc desc = {.label = label, .hooks = explore_hooks()};
    nb_token *token = NULL;
    EXPLORE_CHECK(nb_token_create(&desc, &token) == NB_OK);
    return token;
}

static nb_token *child_make(nb_token *parent) {
    nb_token *child = NULL;
    EXPLORE_CHECK(nb_token_child(parent, "child", &child) == NB_OK);
    return child;
}

static void cancel_and_count(grove *g, nb_token *token) {
    nb_cancel_counts counts = {0};
    EXPLORE_CHECK(nb_token_cancel(token, NB_CANCEL_STALE, 7, &counts) == NB_OK);
    EXPLORE_CHECK(nb_token_is_cancelled(token));
    nbi_atomic_fetch_add_seq_cst_u64(&g->tokens, counts.token_count);
    nbi_atomic_fetch_add_seq_cst_u64(&g->tasks, counts.task_queued_count + counts.task_running_count);
}

static void plant(void *user) {
    grove *g = user;
    g->root = root_make("root");
    g->middle = child_make(g->root);
    g->leaf = child_make(g->middle);
}

static void uproot(grove *g) {
    nb_token_release(g->leaf);
    nb_token_release(g->middle);
    nb_token_release(g->root);
}

// A child made during the cancel is found by it or born cancelled.
static void make_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 2)
        cancel_and_count(g, g->root);
    else
        g->made[index] = child_make(index == 0 ? g->root : g->leaf);
}

static void no_child_escaped(void *user) {
    grove *g = user;
    for (int i = 0; i < 2; ++i) {
        EXPLORE_CHECK(nb_token_is_cancelled(g->made[i]));
        EXPLORE_CHECK(nb_token_reason(g->made[i]).code == 7);
        nb_token_release(g->made[i]);
    }
    uproot(g);
}

// Whoever calls cancel, everything below is cancelled when it returns, and each token is counted once.
static void cancel_two_levels(void *user, uint32_t index) {
    grove *g = user;
    cancel_and_count(g, index == 0 ? g->root : g->middle);
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
}

static void three_were_counted(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->tokens.value == 3);
    uproot(g);
}

// Handles are given back while the walk passes by; the middle token is kept alive only by its child.
static void release_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0)
        nb_token_release(g->leaf);
    else if (index == 1)
        nb_token_release(g->middle);
    else
        cancel_and_count(g, g->root);
}

static void only_the_root_is_left(void *user) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_child_count(g->root) == 0);
    nb_token_release(g->root);
}

static void wait_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0)
        cancel_and_count(g, g->root);
    else
        EXPLORE_CHECK(nb_token_wait(index == 1 ? g->root : g->leaf, NB_NEVER_NS) == NB_OK);
}

static void uproot_check(void *user) { uproot(user); }

static void called(void *user, nb_token *token) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_is_cancelled(token));
    EXPLORE_CHECK(nbi_atomic_load_seq_cst_u32(&g->is_unregistered) == 0);
    nbi_atomic_fetch_add_seq_cst_u32(&g->calls, 1);
    // Still running: an unregister that returned already would be caught here.
    EXPLORE_CHECK(nbi_atomic_load_seq_cst_u32(&g->is_unregistered) == 0);
}

static void plant_with_callback(void *user) {
    grove *g = user;
    plant(g);
    EXPLORE_CHECK(nb_token_callback_register(g->leaf, &g->callback, called, g) == NB_OK);
}

static void unregister_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    EXPLORE_CHECK(nb_token_callback_unregister(&g->callback) == NB_OK);
    nbi_atomic_store_release_u32(&g->is_unregistered, 1);
}

static void called_at_most_once(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->calls.value <= 1);
    uproot(g);
}

static void register_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    nb_result result = nb_token_callback_register(g->leaf, &g->callback, called, g);
    EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED);
}

static void called_exactly_once(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->calls.value == 1);
    EXPLORE_CHECK(nb_token_callback_unregister(&g->callback) == NB_OK);
    uproot(g);
}

// Two sources in two trees, one linked token, ended while a source is cancelled.
static void plant_linked(void *user) {
    grove *g = user;
    g->root = root_make("first");
    g->other = root_make("second");
    nb_token *sources[2] = {g->root, g->other};
    nb_token_desc desc = {.label = "any", .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_token_create_any(&desc, sources, 2, &g->linked) == NB_OK);
    g->leaf = child_make(g->linked);
}

static void cancel_sources_or_look(void *user, uint32_t index) {
    grove *g = user;
    if (index == 2) {
        nb_token_release(g->linked);
        return;
    }
    cancel_and_count(g, index == 0 ? g->root : g->other);
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
}

// Two calls for the same source: the one that comes second returns no earlier than the links are followed.
static void cancel_one_source_twice(void *user, uint32_t index) {
    (void)index;
    grove *g = user;
    cancel_and_count(g, g->root);
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
}

static void one_source_is_left(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->tokens.value == 3);
    EXPLORE_CHECK(!nb_token_is_cancelled(g->other));
    nb_token_release(g->linked);
    nb_token_release(g->leaf);
    nb_token_release(g->root);
    nb_token_release(g->other);
}

static void linked_tree_counted_once(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->tokens.value == 4);
    nb_token_release(g->leaf);
    nb_token_release(g->root);
    nb_token_release(g->other);
}

static void end_linked_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0)
        cancel_and_count(g, g->root);
    else if (index == 1)
        nb_token_release(g->linked);
    else
        nb_token_release(g->leaf);
}

static void sources_are_left(void *user) {
    grove *g = user;
    nb_token_release(g->root);
    nb_token_release(g->other);
}

// Every task is either run or counted as stopped while queued; one that runs may also be counted as running.
static void run_task_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    if (nb_token_task_enter(g->leaf) != NB_OK) {
        nbi_atomic_fetch_add_seq_cst_u32(&g->tasks_refused, 1);
        return;
    }
    if (nb_token_task_start(g->leaf) != NB_OK) return; // counted by the cancel as queued
    EXPLORE_CHECK(nb_token_task_leave(g->leaf) == NB_OK);
    nbi_atomic_fetch_add_seq_cst_u32(&g->tasks_run, 1);
}

static void tasks_add_up(void *user) {
    grove *g = user;
    // Two tasks: refused at the door, stopped in the queue, or run (then counted as running or over before the cancel).
    EXPLORE_CHECK(g->tasks_refused.value + g->tasks_run.value <= 2);
    EXPLORE_CHECK(g->tasks_refused.value + g->tasks_run.value + g->tasks.value >= 2);
    EXPLORE_CHECK(g->tasks_refused.value + g->tasks.value <= 2);
    uproot(g);
}

// A task that ends because of the cancel is one that it counts, and none starts that has seen the mark.
static void plant_tasks(void *user) {
    grove *g = user;
    plant(user);
    for (int i = 0; i < 2; ++i) EXPLORE_CHECK(nb_token_task_enter(g->leaf) == NB_OK);
    EXPLORE_CHECK(nb_token_task_start(g->leaf) == NB_OK);
}

static void end_for_the_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 1) {
        cancel_and_count(g, g->root);
        return;
    }
    EXPLORE_CHECK(nb_token_wait(g->leaf, NBI_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_token_task_leave(g->leaf) == NB_OK);
    EXPLORE_CHECK(nb_token_task_start(g->leaf) == NB_CANCELLED);
}

static void both_were_counted(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->tasks.value == 2);
    uproot(g);
}

// What a shield holds back arrives at its end.
static void shield_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    if (nb_token_shield_begin(g->leaf) != NB_OK) {
        EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
        return;
    }
    EXPLORE_CHECK(!nb_token_is_cancelled(g->leaf));
    nbi_cpu_relax();
    EXPLORE_CHECK(!nb_token_is_cancelled(g->leaf));
    nb_cancel_counts counts = {0};
    EXPLORE_CHECK(nb_token_shield_end(g->leaf, &counts) == NB_OK);
    nbi_atomic_fetch_add_seq_cst_u64(&g->tokens, counts.token_count);
}

static void shielded_counted_once(void *user) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
    EXPLORE_CHECK(g->tokens.value == 3);
    uproot(g);
}

// A deadline fires once, against the release of its token and a second expiry.
static void expire_or_release(void *user, uint32_t index) {
    grove *g = user;
    nb_cancel_counts counts = {0};
    if (index == 0) {
        nb_token_release(g->leaf);
        return;
    }
    EXPLORE_CHECK(nb_token_expire(g->root, 100, 0, &counts) == NB_OK);
    nbi_atomic_fetch_add_seq_cst_u64(&g->tokens, counts.token_count);
}

static void plant_with_deadline(void *user) {
    grove *g = user;
    plant(g);
    EXPLORE_CHECK(nb_token_set_deadline(g->leaf, 50, 0) == NB_OK);
}

static void expired_at_most_once(void *user) {
    grove *g = user;
    EXPLORE_CHECK(g->tokens.value <= 1);
    nb_token_release(g->middle);
    nb_token_release(g->root);
}

// Two sections on one token: the end of one must not let a cancel into the other.
static void reopen_shield_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    if (nb_token_shield_begin(g->leaf) != NB_OK) return;
    for (int i = 0; i < 4; ++i) {
        EXPLORE_CHECK(!nb_token_is_cancelled(g->leaf));
        nbi_cpu_relax();
    }
    EXPLORE_CHECK(nb_token_shield_end(g->leaf, NULL) == NB_OK);
}

static void all_is_cancelled(void *user) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf));
    uproot(g);
}

// A match function may keep the child it is offered, while the child's only other handle is given back.
static bool keep_offered(void *user, nb_token *child) {
    ((grove *)user)->made[0] = nb_token_retain(child);
    return false;
}

static void plant_two(void *user) {
    grove *g = user;
    g->root = root_make("root");
    g->middle = child_make(g->root);
}

static void keep_or_release(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        nb_token_release(g->middle);
        return;
    }
    EXPLORE_CHECK(nb_token_cancel_children(g->root, keep_offered, g, NB_CANCEL_STALE, 0, NULL) == NB_OK);
    if (g->made[0] == NULL) return;
    EXPLORE_CHECK(!nb_token_is_cancelled(g->made[0]));
    EXPLORE_CHECK(nb_token_child_count(g->root) == 1);
    nb_token_release(g->made[0]);
}

static bool register_offered(void *user, nb_token *child) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_callback_register(child, &g->callback, called, g) == NB_OK);
    return false;
}

static void register_or_release(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        nb_token_release(g->middle);
        return;
    }
    EXPLORE_CHECK(nb_token_cancel_children(g->root, register_offered, g, NB_CANCEL_STALE, 0, NULL) == NB_OK);
    if (g->callback.token == NULL) return; // it was gone before it could be offered
    EXPLORE_CHECK(nb_token_child_count(g->root) == 1);
    EXPLORE_CHECK(nb_token_callback_unregister(&g->callback) == NB_OK);
}

// A deadline that was moved on with NB_OK no longer fires.
static void extend_or_expire(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        EXPLORE_CHECK(nb_token_expire(g->root, 100, 0, NULL) == NB_OK);
        return;
    }
    nb_result result = nb_token_set_deadline(g->leaf, 1000, 0);
    EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED);
    nbi_atomic_store_relaxed_u32(&g->calls, result == NB_OK);
}

static void extended_is_not_cancelled(void *user) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_is_cancelled(g->leaf) == (g->calls.value == 0));
    uproot(g);
}

// A token linked to its source while that is cancelled is cancelled too.
static void link_or_cancel(void *user, uint32_t index) {
    grove *g = user;
    if (index == 0) {
        cancel_and_count(g, g->root);
        return;
    }
    nb_token_desc desc = {.label = "any", .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_token_create_any(&desc, &g->leaf, 1, &g->linked) == NB_OK);
}

static void linked_is_cancelled(void *user) {
    grove *g = user;
    EXPLORE_CHECK(nb_token_is_cancelled(g->linked));
    EXPLORE_CHECK(nb_token_reason(g->linked).code == 7);
    nb_token_release(g->linked);
    uproot(g);
}

EXPLORE(token_child_never_escapes, 3, plant, make_or_cancel, no_child_escaped, sizeof(grove))
EXPLORE(token_concurrent_cancels_count_once, 3, plant, cancel_two_levels, three_were_counted, sizeof(grove))
EXPLORE(token_released_during_a_cancel, 3, plant, release_or_cancel, only_the_root_is_left, sizeof(grove))
EXPLORE(token_waiters_wake, 4, plant, wait_or_cancel, uproot_check, sizeof(grove))
EXPLORE(token_callback_not_running_after_unregister, 2, plant_with_callback, unregister_or_cancel, called_at_most_once,
        sizeof(grove))
EXPLORE(token_callback_called_exactly_once, 2, plant, register_or_cancel, called_exactly_once, sizeof(grove))
EXPLORE(token_linked_cancelled_by_either_source, 3, plant_linked, cancel_sources_or_look, linked_tree_counted_once,
        sizeof(grove))
EXPLORE(token_linked_cancelled_when_any_call_returns, 2, plant_linked, cancel_one_source_twice, one_source_is_left,
        sizeof(grove))
EXPLORE(token_linked_ended_during_a_cancel, 3, plant_linked, end_linked_or_cancel, sources_are_left, sizeof(grove))
EXPLORE(token_tasks_add_up, 3, plant, run_task_or_cancel, tasks_add_up, sizeof(grove))
EXPLORE(token_counts_what_it_stops, 2, plant_tasks, end_for_the_cancel, both_were_counted, sizeof(grove))
EXPLORE(token_shield_holds_back, 2, plant, shield_or_cancel, shielded_counted_once, sizeof(grove))
EXPLORE(token_shield_opened_again_holds_back, 3, plant, reopen_shield_or_cancel, all_is_cancelled, sizeof(grove))
EXPLORE(token_retained_while_offered, 2, plant_two, keep_or_release, only_the_root_is_left, sizeof(grove))
EXPLORE(token_registered_while_offered, 2, plant_two, register_or_release, only_the_root_is_left, sizeof(grove))
EXPLORE(token_extended_deadline_does_not_fire, 2, plant_with_deadline, extend_or_expire, extended_is_not_cancelled,
        sizeof(grove))
EXPLORE(token_linked_during_a_cancel, 2, plant, link_or_cancel, linked_is_cancelled, sizeof(grove))
EXPLORE(token_deadline_fires_once, 3, plant_with_deadline, expire_or_release, expired_at_most_once, sizeof(grove))
