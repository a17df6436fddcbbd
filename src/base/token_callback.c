// SPDX-License-Identifier: MIT
// Being told of a cancel: callbacks and waiting.

#include "owner.h"
#include "token.h"

// nb_token_callback.state. Changes under the tree's lock, except that the end of a run is an exchange.
enum {
    CALLBACK_IDLE,    // not registered, or its run is over
    CALLBACK_LISTED,  // in the token's list
    CALLBACK_RUNNING, // taken from the list by the canceller
    CALLBACK_AWAITED, // the same, and nb_token_callback_unregister is parked on the word
};

static void callback_link(nbi_token *token, nb_token_callback *callback) {
    callback->next = token->callbacks;
    if (callback->next != NULL) callback->next->at = &callback->next;
    callback->at = &token->callbacks;
    token->callbacks = callback;
}

static void callback_unlink(nb_token_callback *callback) {
    *callback->at = callback->next;
    if (callback->next != NULL) callback->next->at = callback->at;
}

nb_result nb_token_callback_register(nb_token *token, nb_token_callback *callback,
                                     void (*run)(void *user, nb_token *token), void *user) {
    if (callback == NULL) return NBI_FAIL_NULL("callback");
    if (run == NULL) return NBI_FAIL_NULL("run");
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    if (nbi_owner_is_closed()) return NB_CLOSED;
    nbi_token *node = nbi_token_of(token);
    if (callback->token != NULL) {
        return NBI_FAIL(&node->tree->hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_MISUSE, "callback is registered already");
    }
    nbi_lock_acquire(&node->tree->lock);
    // Looked at under the lock that the mark is made under: the canceller finds the callback, or it is run here.
    bool is_late = nbi_token_is_marked(node);
    if (!is_late) {
        *callback = (nb_token_callback){.run = run, .user = user, .token = token};
        callback->owner = nbi_owner_take(NBI_OWNED_TOKEN_CALLBACK);
        nbi_atomic_store_relaxed_u32(&callback->state, CALLBACK_LISTED);
        nbi_atomic_fetch_add_relaxed_u32(&node->ref_count, 1);
        callback_link(node, callback);
    }
    nbi_lock_release(&node->tree->lock);
    if (!is_late) return NB_OK;
    run(user, token);
    return NB_CANCELLED;
}

// Takes the first callback off the token's list and runs it. False when there is none.
static bool run_first(nbi_token *token) {
    nbi_lock_acquire(&token->tree->lock);
    nb_token_callback *callback = token->callbacks;
    if (callback == NULL) {
        nbi_lock_release(&token->tree->lock);
        return false;
    }
    bool is_gone = false;
    callback_unlink(callback);
    callback->thread_id = nbi_thread_id();
    callback->is_gone = &is_gone;
    nbi_atomic_store_relaxed_u32(&callback->state, CALLBACK_RUNNING);
    nbi_owner *owner = callback->owner, *before = nbi_owner_enter(owner);
    nbi_lock_release(&token->tree->lock);
    callback->run(callback->user, &token->head);
    nbi_owner_leave(before);
    nbi_owner_give(owner, NBI_OWNED_TOKEN_CALLBACK);
    if (is_gone) return true;
    // Publishes the end of the run; read by the acquire loads in nb_token_callback_unregister and await_run. The last
    // touch: the memory may be freed now.
    uint32_t state = nbi_atomic_exchange_seq_cst_u32(&callback->state, CALLBACK_IDLE);
    if (state == CALLBACK_AWAITED) nbi_unpark(&callback->state, 1);
    return true;
}

void nbi_token_run_callbacks(nbi_token *token) {
    // A cancelled token takes no new callbacks, so this ends.
    while (run_first(token)) {
    }
}

static void await_run(nb_token_callback *callback) {
    uint32_t running = CALLBACK_RUNNING;
    nbi_atomic_compare_exchange_seq_cst_u32(&callback->state, &running, CALLBACK_AWAITED);
    while (nbi_atomic_load_acquire_u32(&callback->state) == CALLBACK_AWAITED) {
        nbi_park_until(&callback->state, CALLBACK_AWAITED, NBI_NEVER_NS);
    }
}

nb_result nb_token_callback_unregister(nb_token_callback *callback) {
    if (callback == NULL) return NBI_FAIL_NULL("callback");
    if (callback->token == NULL) return NB_OK;
    nb_token *token = callback->token;
    nbi_token *node = nbi_token_of(token);
    nbi_lock_acquire(&node->tree->lock);
    // Read by this acquire: the end of a run that is already over.
    uint32_t state = nbi_atomic_load_acquire_u32(&callback->state);
    if (state == CALLBACK_LISTED) {
        callback_unlink(callback);
        nbi_owner_give(callback->owner, NBI_OWNED_TOKEN_CALLBACK);
    }
    bool is_own = state == CALLBACK_RUNNING && callback->thread_id == nbi_thread_id();
    if (is_own) *callback->is_gone = true;
    nbi_lock_release(&node->tree->lock);
    if (state == CALLBACK_RUNNING && !is_own) await_run(callback);
    *callback = (nb_token_callback){0};
    nb_token_release(token);
    return NB_OK;
}

nb_result nb_token_wait(nb_token *token, uint64_t deadline_ns) {
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    // Pairs with the mark's RMW in token_cancel.c, like the other looks below: after NB_OK the caller sees the memory
    // that the canceller wrote before the cancel.
    if ((nbi_atomic_load_acquire_u32(&node->head.state) & NBI_TOKEN_CANCELLED) != 0) return NB_OK;
    if (deadline_ns == 0) return NB_TIMEOUT;
    // One order with the mark's RMW in token_cancel.c. The bit stays: the next cancel makes one wake-up too many at
    // most.
    uint32_t state = nbi_atomic_fetch_or_seq_cst_u32(&node->head.state, NBI_TOKEN_WAITED) | NBI_TOKEN_WAITED;
    while ((state & NBI_TOKEN_CANCELLED) == 0) {
        result = nbi_park_until(&node->head.state, state, deadline_ns);
        state = nbi_atomic_load_acquire_u32(&node->head.state);
        if (result == NB_TIMEOUT) return (state & NBI_TOKEN_CANCELLED) != 0 ? NB_OK : NB_TIMEOUT;
    }
    return NB_OK;
}
