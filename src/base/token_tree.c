// SPDX-License-Identifier: MIT
// Tokens in their tree: made and linked, taken out when nothing keeps them, their memory used again or freed.

#include "token.h"

#include <string.h>

// Labels up to this size with the final zero fit the tokens that a tree recycles: "chunk -12,4,107 terrain" and more.
#define LABEL_ROOM 40
#define SPARE_SIZE (offsetof(nbi_token, label) + LABEL_ROOM)

// Tokens a tree keeps for its next children: 10 KiB, and enough for the tasks in flight on a large machine. None under
// the address sanitizer, which can then point at the use of a released token.
#if defined(__SANITIZE_ADDRESS__)
#define SPARE_COUNT_MAX 0u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPARE_COUNT_MAX 0u
#endif
#endif
#if !defined(SPARE_COUNT_MAX)
#define SPARE_COUNT_MAX 64u
#endif

// Pauses granted to threads that are parked at the lock during a long walk: 10 to 20 us, of the 6 to 90 us that a woken
// thread needs to come. Whoever comes later is woken again after the next batch.
#define PASS_PAUSE_COUNT 512

static size_t plan_size(const nbi_token_plan *plan) {
    size_t size = offsetof(nbi_token, label) + plan->label_size + 1u;
    return size < SPARE_SIZE ? SPARE_SIZE : size;
}

// Everything but the place in the tree and the size.
static void token_fill(nbi_token *token, nbi_token_tree *tree, nbi_token *parent, const nbi_token_plan *plan) {
    nbi_atomic_store_relaxed_u32(&token->head.state, 0);
    token->code = 0;
    token->tree = tree;
    token->parent = parent;
    token->key = plan->key;
    token->life = NBI_TOKEN_ALIVE;
    for (int kind = 0; kind < NBI_TOKEN_DEADLINE_COUNT; ++kind) token->deadline_index[kind] = 0;
    token->shield_count = 0;
    token->label_size = plan->label_size;
    token->is_link = plan->target != NULL;
    token->is_expiring = false;
    if (token->is_link) token->target = plan->target;
    token->next_marked = NULL;
    nbi_atomic_store_relaxed_u32(&token->ref_count, 1);
    token->child_count = 0;
    token->hold_count = 0;
    token->next = token->previous = token->first_child = NULL;
    token->callbacks = NULL;
    nbi_atomic_store_relaxed_u64(&token->tasks, 0);
    memcpy(token->label, plan->label, plan->label_size + 1u);
}

nbi_token *nbi_token_make_root(const nbi_token_plan *plan, const nb_hooks *hooks, uint32_t link_count,
                               const char *function) {
    size_t root_size = (plan_size(plan) + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
    size_t size = sizeof(nbi_token_tree) + root_size + link_count * sizeof(nbi_token *);
    nbi_token_tree *tree = nbi_alloc(hooks, size, NB_ALIGNOF(nbi_token_tree), function);
    if (tree == NULL) return NULL;
    *tree = (nbi_token_tree){.hooks = *hooks};
    nbi_token *root = (nbi_token *)(void *)(tree + 1);
    root->size_bytes = (uint32_t)size;
    tree->source_links = (nbi_token **)(void *)((char *)root + root_size);
    token_fill(root, tree, NULL, plan);
    return root;
}

static nbi_token *spare_take(nbi_token_tree *tree, const nbi_token_plan *plan) {
    nbi_token *token = tree->spare;
    if (token == NULL || plan->label_size >= LABEL_ROOM) return NULL;
    tree->spare = token->next;
    --tree->spare_count;
    return token;
}

// Checks and links in one: a cancel that comes later finds the child, one that came earlier is inherited here.
static void child_link(nbi_token *child, nbi_token *parent) {
    uint32_t state = nbi_atomic_load_relaxed_u32(&parent->head.state);
    if (state & NBI_TOKEN_CANCELLED) {
        nbi_atomic_store_relaxed_u32(&child->head.state, state & ~NBI_TOKEN_WAITED);
        nbi_atomic_store_relaxed_u64(&child->tasks, NBI_TOKEN_TASKS_CLOSED);
        child->code = parent->code;
    }
    child->next = parent->first_child;
    if (child->next != NULL) child->next->previous = child;
    parent->first_child = child;
    if (child->is_link)
        ++parent->hold_count;
    else
        ++parent->child_count;
}

nbi_token *nbi_token_make_child(nbi_token *parent, const nbi_token_plan *plan, const char *function) {
    nbi_token_tree *tree = parent->tree;
    nbi_lock_acquire(&tree->lock);
    nbi_token *child = spare_take(tree, plan);
    if (child == NULL) {
        // The heap may be the host's: it is never called under the lock.
        nbi_lock_release(&tree->lock);
        size_t size = plan_size(plan);
        child = nbi_alloc(&tree->hooks, size, NB_ALIGNOF(nbi_token), function);
        if (child == NULL) return NULL;
        child->size_bytes = (uint32_t)size;
        nbi_lock_acquire(&tree->lock);
    }
    token_fill(child, tree, parent, plan);
    child_link(child, parent);
    nbi_lock_release(&tree->lock);
    return child;
}

// --- leaving the tree ---

void nbi_token_lock_pass(nbi_token *token) {
    nbi_token_tree *tree = token->tree;
    ++token->hold_count;
    bool is_contended = nbi_atomic_load_relaxed_u32(&tree->lock.word) == 2;
    nbi_lock_release(&tree->lock);
    // Without this the walker would have the lock back before the woken thread has even started to run. It does not
    // sleep or yield: a cancel must not wait for whatever else runs on the machine.
    for (int i = 0; is_contended && i < PASS_PAUSE_COUNT; ++i) {
        if (nbi_atomic_load_relaxed_u32(&tree->lock.word) != 0) break;
        nbi_cpu_relax();
    }
    nbi_lock_acquire(&tree->lock);
    --token->hold_count;
}

static bool is_kept(const nbi_token *token) {
    return token->child_count != 0 || token->hold_count != 0 || nbi_atomic_load_relaxed_u32(&token->ref_count) != 0;
}

static void child_unlink(nbi_token *child, nbi_token *parent) {
    if (child->previous != NULL)
        child->previous->next = child->next;
    else
        parent->first_child = child->next;
    if (child->next != NULL) child->next->previous = child->previous;
    if (child->is_link)
        --parent->hold_count;
    else
        --parent->child_count;
}

static void push_dead(nbi_token_tree *tree, nbi_token *token) {
    token->next = tree->dead;
    tree->dead = token;
}

static void push_spare_or_dead(nbi_token_tree *tree, nbi_token *token) {
    if (token->size_bytes != SPARE_SIZE || tree->spare_count + 1 > SPARE_COUNT_MAX) {
        push_dead(tree, token);
        return;
    }
    token->next = tree->spare;
    tree->spare = token;
    ++tree->spare_count;
}

static void spare_to_dead(nbi_token_tree *tree) {
    while (tree->spare != NULL) {
        nbi_token *token = tree->spare;
        tree->spare = token->next;
        push_dead(tree, token);
    }
    tree->spare_count = 0;
}

void nbi_token_collect(nbi_token *token) {
    uint32_t count = 0;
    while (token != NULL && !is_kept(token)) {
        nbi_token_tree *tree = token->tree;
        nbi_token *parent = token->parent;
        nbi_token_forget_deadlines(token);
        token->life = NBI_TOKEN_DEAD;
        if (parent != NULL) {
            child_unlink(token, parent);
            push_spare_or_dead(tree, token);
            // A parent on the point of going is nobody else's to end: breathe holds it.
            if (++count % NBI_TOKEN_BATCH == 0) nbi_token_lock_pass(parent);
        } else {
            spare_to_dead(tree);
            push_dead(tree, token);
        }
        token = parent;
    }
}

// The links of a linked token that is out of its tree. After this no cancel can come to it any more.
static void links_detach(nbi_token_tree *tree, nbi_token **drops) {
    for (uint32_t i = 0; i < tree->source_link_count; ++i) {
        nbi_token *link = tree->source_links[i];
        nbi_lock_acquire(&link->tree->lock);
        link->target = NULL;
        nbi_lock_release(&link->tree->lock);
        link->next_drop = *drops;
        *drops = link;
    }
}

static void free_dead(nbi_token *dead, const nb_hooks *hooks, nbi_token **drops) {
    while (dead != NULL) {
        nbi_token *token = dead;
        dead = token->next;
        if (token->parent != NULL) {
            nbi_free(hooks, token, token->size_bytes);
            continue;
        }
        nbi_token_tree *tree = token->tree;
        links_detach(tree, drops);
        for (int kind = 0; kind < NBI_TOKEN_DEADLINE_COUNT; ++kind) {
            const nbi_token_heap *heap = &tree->deadlines[kind];
            nbi_free(hooks, heap->items, heap->count_max * sizeof heap->items[0]);
        }
        nbi_free(hooks, tree, token->size_bytes);
    }
}

// Lets go of the lock and frees what was collected under it. The hooks are copied first: with the lock free, another
// thread may end the last token of the tree, and with it the tree.
static void unlock_and_free(nbi_token_tree *tree, nbi_token **drops) {
    nbi_token *dead = tree->dead;
    if (dead == NULL) {
        nbi_lock_release(&tree->lock);
        return;
    }
    tree->dead = NULL;
    nb_hooks hooks = tree->hooks;
    nbi_lock_release(&tree->lock);
    free_dead(dead, &hooks, drops);
}

// Takes one handle off and returns how many there were; 0 stays 0. A token borrowed by a match function may be retained
// at this very moment, and two threads may give the same handle back: neither may be overwritten.
static uint32_t ref_take(nbi_token *token) {
    uint32_t count = nbi_atomic_load_acquire_u32(&token->ref_count);
    // Read by the acquire load in nb_token_release: what this thread did with the token.
    while (count > 0 && !nbi_atomic_compare_exchange_acq_rel_u32(&token->ref_count, &count, count - 1)) {
    }
    return count;
}

static bool drop_handle(nbi_token *token, nbi_token **drops) {
    nbi_token_tree *tree = token->tree;
    nbi_lock_acquire(&tree->lock);
    uint32_t count = token->life == NBI_TOKEN_ALIVE ? ref_take(token) : 0;
    if (count == 1) nbi_token_collect(token);
    unlock_and_free(tree, drops);
    return count > 0;
}

// Ending a linked token ends its links, and these may end their sources, linked tokens themselves: a list, not a
// recursion.
static void drop_all(nbi_token *drops) {
    while (drops != NULL) {
        nbi_token *link = drops;
        drops = link->next_drop;
        drop_handle(link, &drops);
    }
}

bool nbi_token_drop_handle(nbi_token *token) {
    nbi_token *drops = NULL;
    bool is_dropped = drop_handle(token, &drops);
    drop_all(drops);
    return is_dropped;
}

void nbi_token_drop_hold(nbi_token *token) {
    nbi_token *drops = NULL;
    nbi_token_tree *tree = token->tree;
    nbi_lock_acquire(&tree->lock);
    --token->hold_count;
    nbi_token_collect(token);
    unlock_and_free(tree, &drops);
    drop_all(drops);
}

uint32_t nb_token_prune(nb_token *token) {
    if (NBI_TOKEN_CHECK(token) != NB_OK) return 0;
    nbi_token *node = nbi_token_of(token);
    nbi_token *drops = NULL;
    nbi_lock_acquire(&node->tree->lock);
    uint32_t count = node->child_count;
    spare_to_dead(node->tree);
    unlock_and_free(node->tree, &drops);
    drop_all(drops);
    return count;
}
