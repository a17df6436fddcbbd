// SPDX-License-Identifier: MIT
// Cancelling: the walk over a subtree and on over links to other trees, then the callbacks; bulk cancel and shields.

#include "token.h"

// One cancel on its way. The lists run through next_marked: a token is marked once in its life, so it is in one.
typedef struct cancel_run {
    nb_cancel_reason reason;
    nb_cancel_counts counts;
    nbi_token *called;   // marked tokens with callbacks, held
    nbi_token *followed; // links that were followed, held, and their targets with them
} cancel_run;

static void count_tasks(cancel_run *run, nbi_token *token) {
    // One order with the CAS in token_task.c: every task counted here is refused there, and no other.
    uint64_t tasks = nbi_atomic_fetch_or_seq_cst_u64(&token->tasks, NBI_TOKEN_TASKS_CLOSED);
    run->counts.task_running_count += tasks % NBI_TOKEN_TASK_QUEUED;
    run->counts.task_queued_count += tasks / NBI_TOKEN_TASK_QUEUED;
}

// False when it was cancelled before: then so is everything below it, because walks do not overlap. lock and walk_lock
// are held.
static bool mark(cancel_run *run, nbi_token *token) {
    if (nbi_token_is_marked(token)) return false;
    // Before the mark can be seen: a task that ends because of it is counted as running, and what waited for it does
    // not start.
    if (!token->is_link) count_tasks(run, token);
    token->code = run->reason.code;
    uint32_t mark_bits = NBI_TOKEN_CANCELLED | (uint32_t)run->reason.cause << NBI_TOKEN_CAUSE_SHIFT;
    // Publishes `code` and what the canceller wrote; read by the acquire load in nb_token_reason. One order with the
    // RMW that announces a waiter in nb_token_wait: it is seen here, or sees the mark.
    uint32_t state = nbi_atomic_fetch_or_seq_cst_u32(&token->head.state, mark_bits);
    if (state & NBI_TOKEN_WAITED) nbi_unpark(&token->head.state, UINT32_MAX);
    if (token->is_link) {
        ++token->hold_count;
        token->next_marked = token->tree->links;
        token->tree->links = token;
        return true;
    }
    ++run->counts.token_count;
    nbi_token_forget_deadlines(token);
    if (token->callbacks != NULL) {
        ++token->hold_count;
        token->next_marked = run->called;
        run->called = token;
    }
    return true;
}

// Marks `top` and everything below it, a parent always before its children; passes by shields, except that of `top`
// where pierces_shield says so. The place in the tree is the whole memory of the walk: however deep or wide, no stack
// and no list grows. walk_lock is held, and somebody holds `top`.
static void mark_subtree(cancel_run *run, nbi_token *top, bool pierces_shield) {
    nbi_lock *lock = &top->tree->lock;
    nbi_lock_acquire(lock);
    nbi_token *token = top;
    bool goes_down = (pierces_shield || top->shield_count == 0) && mark(run, top);
    for (uint32_t count = 1;; ++count) {
        nbi_token *from = token;
        if (goes_down && token->first_child != NULL)
            token = token->first_child;
        else if (token == top)
            break;
        else
            token = token->next != NULL ? token->next : token->parent;
        bool is_climb = token == from->parent;
        goes_down = !is_climb && token->shield_count == 0 && mark(run, token);
        // What was left may have lost its last handle while the lock was free, with only the walk to keep it.
        ++token->hold_count;
        nbi_token_collect(from);
        --token->hold_count;
        if (count % NBI_TOKEN_BATCH == 0) nbi_token_lock_pass(token);
    }
    nbi_lock_release(lock);
}

// The linked token behind a link, held, or NULL when it has ended. Locks both trees, the older one first.
static nbi_token *link_target_hold(nbi_token *link) {
    nbi_lock_acquire(&link->tree->lock);
    nbi_token *target = link->target;
    if (target != NULL) {
        nbi_lock_acquire(&target->tree->lock);
        if (target->life == NBI_TOKEN_ALIVE)
            ++target->hold_count;
        else
            link->target = NULL;
        nbi_lock_release(&target->tree->lock);
    }
    target = link->target;
    nbi_lock_release(&link->tree->lock);
    return target;
}

// Marks over links, tree after tree, until no marked link is left. Depth first, so that only the walk_locks on the way
// from the first tree to the current one are held, and these were made one after the other: no two walks can wait for
// each other. The first tree's walk_lock is held; all are free afterwards.
static void follow_links(cancel_run *run, nbi_token_tree *tree) {
    tree->walked_from = NULL;
    while (tree != NULL) {
        nbi_token *link = tree->links;
        if (link == NULL) {
            nbi_token_tree *from = tree->walked_from;
            nbi_lock_release(&tree->walk_lock);
            tree = from;
            continue;
        }
        tree->links = link->next_marked;
        link->next_marked = run->followed;
        run->followed = link;
        nbi_token *target = link_target_hold(link);
        if (target == NULL) continue;
        nbi_lock_acquire(&target->tree->walk_lock);
        target->tree->walked_from = tree;
        tree = target->tree;
        mark_subtree(run, target, false);
    }
}

static void end_run(cancel_run *run) {
    while (run->called != NULL) {
        nbi_token *token = run->called;
        run->called = token->next_marked;
        nbi_token_run_callbacks(token);
        nbi_token_drop_hold(token);
    }
    while (run->followed != NULL) {
        nbi_token *link = run->followed;
        run->followed = link->next_marked;
        // Held since link_target_hold, where it is not NULL. One that had ended by then may be cut off only now.
        nbi_lock_acquire(&link->tree->lock);
        nbi_token *target = link->target;
        nbi_lock_release(&link->tree->lock);
        if (target != NULL) nbi_token_drop_hold(target);
        nbi_token_drop_hold(link);
    }
}

static void counts_add(nb_cancel_counts *sum, const nb_cancel_counts *counts) {
    if (sum == NULL) return;
    sum->token_count += counts->token_count;
    sum->task_queued_count += counts->task_queued_count;
    sum->task_running_count += counts->task_running_count;
}

static void hold(nbi_token *token) {
    nbi_lock_acquire(&token->tree->lock);
    ++token->hold_count;
    nbi_lock_release(&token->tree->lock);
}

static void cancel_from(nbi_token *token, bool pierces_shield, nb_cancel_reason reason, nb_cancel_counts *counts) {
    cancel_run run = {.reason = reason};
    // A callback may give back the very handle this call came with.
    hold(token);
    nbi_lock_acquire(&token->tree->walk_lock);
    mark_subtree(&run, token, pierces_shield);
    follow_links(&run, token->tree);
    end_run(&run);
    if (run.counts.token_count != 0) {
        nbi_log(&token->tree->hooks, NB_LOG_TRACE, NB_ITEM_TOKEN_CANCELLED, "nb_token_cancel",
                "'%s' (%s, %u): %llu tokens, %llu queued and %llu running tasks", token->label,
                nb_cancel_cause_name(reason.cause), (unsigned)reason.code, nb_llu(run.counts.token_count),
                nb_llu(run.counts.task_queued_count), nb_llu(run.counts.task_running_count));
    }
    nbi_token_drop_hold(token);
    counts_add(counts, &run.counts);
}

void nbi_token_cancel_tree(nbi_token *token, nb_cancel_reason reason, nb_cancel_counts *counts) {
    cancel_from(token, true, reason, counts);
}

static nb_result arguments_check(const nb_token *token, nb_cancel_cause cause, const char *function) {
    nb_result result = nbi_token_check(token, function);
    if (result != NB_OK || (uint32_t)cause < NB_CANCEL_COUNT) return result;
    return nbi_fail(&nbi_token_of_const(token)->tree->hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_MISUSE, function,
                    "%d is no cause", (int)cause);
}

static nb_cancel_reason reason_of(nb_cancel_cause cause, uint32_t code) {
    return (nb_cancel_reason){.cause = cause != NB_CANCEL_NONE ? cause : NB_CANCEL_REQUESTED, .code = code};
}

nb_result nb_token_cancel(nb_token *token, nb_cancel_cause cause, uint32_t code, nb_cancel_counts *counts) {
    nb_result result = arguments_check(token, cause, __func__);
    if (result != NB_OK) return result;
    nb_cancel_counts sum = {0};
    nbi_token_cancel_tree(nbi_token_of(token), reason_of(cause, code), &sum);
    if (counts != NULL) *counts = sum;
    return NB_OK;
}

// --- many at once ---

// The next child from `token` on, itself included, held; NULL at the end.
static nbi_token *held_from(nbi_token *token) {
    if (token != NULL) ++token->hold_count;
    return token;
}

static nbi_token *first_child_held(nbi_token *parent) {
    nbi_lock_acquire(&parent->tree->lock);
    nbi_token *child = held_from(parent->first_child);
    nbi_lock_release(&parent->tree->lock);
    return child;
}

static nbi_token *next_sibling_held(nbi_token *child) {
    nbi_lock_acquire(&child->tree->lock);
    nbi_token *next = held_from(child->next);
    nbi_lock_release(&child->tree->lock);
    return next;
}

// New children come first in the list, so this ends however many are created meanwhile.
static void cancel_matching(nbi_token *parent, bool (*match)(void *user, nb_token *child), void *user,
                            nb_cancel_reason reason, nb_cancel_counts *counts) {
    nb_cancel_counts sum = {0};
    nbi_token *child = first_child_held(parent);
    while (child != NULL) {
        bool is_offered = !child->is_link && !nbi_token_is_marked(child);
        if (is_offered && match(user, &child->head)) nbi_token_cancel_tree(child, reason, &sum);
        nbi_token *next = next_sibling_held(child);
        nbi_token_drop_hold(child);
        child = next;
    }
    if (counts != NULL) *counts = sum;
}

nb_result nb_token_cancel_children(nb_token *parent, bool (*match)(void *user, nb_token *child), void *user,
                                   nb_cancel_cause cause, uint32_t code, nb_cancel_counts *counts) {
    if (match == NULL) return NBI_FAIL_NULL("match");
    nb_result result = arguments_check(parent, cause, __func__);
    if (result != NB_OK) return result;
    cancel_matching(nbi_token_of(parent), match, user, reason_of(cause, code), counts);
    return NB_OK;
}

static bool has_key(void *user, nb_token *child) { return nbi_token_of(child)->key == *(const uint64_t *)user; }

nb_result nb_token_cancel_key(nb_token *parent, uint64_t key, nb_cancel_cause cause, uint32_t code,
                              nb_cancel_counts *counts) {
    nb_result result = arguments_check(parent, cause, __func__);
    if (result != NB_OK) return result;
    cancel_matching(nbi_token_of(parent), has_key, &key, reason_of(cause, code), counts);
    return NB_OK;
}

// --- shields ---

nb_result nb_token_shield_begin(nb_token *token) {
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    nbi_lock_acquire(&node->tree->lock);
    bool is_late = nbi_token_is_marked(node);
    if (!is_late) ++node->shield_count;
    nbi_lock_release(&node->tree->lock);
    return is_late ? NB_CANCELLED : NB_OK;
}

// The reason of whatever is above the token: its parent, or any source. A source that is marked later finds the shield
// down when it follows its link.
static nb_cancel_reason reason_above(const nbi_token *token) {
    if (token->parent != NULL) return nb_token_reason(&token->parent->head);
    const nbi_token_tree *tree = token->tree;
    nb_cancel_reason reason = {0};
    for (uint32_t i = 0; i < tree->source_link_count && reason.cause == NB_CANCEL_NONE; ++i) {
        reason = nb_token_reason(&tree->source_links[i]->head);
    }
    return reason;
}

nb_result nb_token_shield_end(nb_token *token, nb_cancel_counts *counts) {
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    nbi_lock_acquire(&node->tree->lock);
    bool is_open = node->shield_count != 0;
    if (is_open) --node->shield_count;
    nb_cancel_reason reason = {0};
    if (is_open && node->shield_count == 0) reason = reason_above(node);
    nbi_lock_release(&node->tree->lock);
    if (!is_open) {
        return NBI_FAIL(&node->tree->hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_MISUSE, "'%s' has no open section",
                        node->label);
    }
    nb_cancel_counts sum = {0};
    // A section that was opened since then holds it back again, and passes it on at its own end.
    if (reason.cause != NB_CANCEL_NONE) cancel_from(node, false, reason, &sum);
    if (counts != NULL) *counts = sum;
    return NB_OK;
}
