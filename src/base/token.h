// SPDX-License-Identifier: MIT
#pragma once

// What the token files share. Four rules carry them:
// - A token is alive while it has handles, children, or holds (a short reference the library itself takes). All three
//   are compared under the tree's lock, and the last handle is given back under it, so exactly one thread finds that
//   nothing is left and takes the token out.
// - Whether a parent is cancelled is looked at under the same lock that links the child, and a walk marks a token
//   before it goes on to the token's children. So a child is either found by the walk or born cancelled.
// - `walk_lock` lets one cancel at a time through a tree and is kept until everything reachable is marked, so a caller
//   that comes second and finds the mark has nothing left to wait for. `lock` is let go every NBI_TOKEN_BATCH tokens.
// - Linked tokens: each source gets a small child, the link, that points to the linked token. A linked token is the
//   root of a tree made after those of its sources, and locks of two trees are only taken from older to newer.
//
// token.c is the face, token_tree.c links and unlinks, token_cancel.c cancels, token_callback.c calls and waits,
// token_deadline.c expires, token_task.c counts tasks.

#include "nebula/token.h"

#include "base.h"
#include "lock.h"

// Tokens handled in one go under a tree's lock: about 25 us (8 to 20 ns each, more where the cache misses), which is
// what a thread that has to park loses anyway. A cancel of a million tokens so delays no child() or release() visibly.
#if defined(NB_EXPLORE)
#define NBI_TOKEN_BATCH 1u // so that small explored trees are let go in the middle, too
#else
#define NBI_TOKEN_BATCH 2048u
#endif

#define NBI_TOKEN_CANCELLED 1u // in nb_token.state; nb_token_is_cancelled tests the same bit
#define NBI_TOKEN_WAITED 2u    // somebody has parked on the word, once
#define NBI_TOKEN_CAUSE_SHIFT 8

// In nbi_token.tasks: running tasks in the low half, queued ones above, and the mark of the cancel that counted them.
#define NBI_TOKEN_TASK_RUNNING ((uint64_t)1)
#define NBI_TOKEN_TASK_QUEUED ((uint64_t)1 << 32)
#define NBI_TOKEN_TASKS_CLOSED ((uint64_t)1 << 63)

// Two ways to come to a deadline, each with its own heap.
typedef enum nbi_token_deadline_kind {
    NBI_TOKEN_DEADLINE_TIME,
    NBI_TOKEN_DEADLINE_FRAME,
    NBI_TOKEN_DEADLINE_COUNT,
} nbi_token_deadline_kind;

typedef struct nbi_token_tree nbi_token_tree;
typedef struct nbi_token nbi_token;

// The first 64 bytes are rarely written, so that polling a token does not miss whenever a neighbour in the tree comes
// or goes. Fields without a note are fixed when the token is made.
struct nbi_token {
    nb_token head;
    uint32_t code; // of the reason; written under lock before the state word says cancelled
    nbi_token_tree *tree;
    nbi_token *parent; // kept alive by child_count, or by hold_count for a link; NULL for a root
    union {
        uint64_t key;
        nbi_token *target; // of a link: the linked token; NULL when that is gone (tree->lock)
    };
    uint32_t life; // NBI_TOKEN_ALIVE or anything else (tree->lock)
    uint32_t size_bytes;
    uint32_t deadline_index[NBI_TOKEN_DEADLINE_COUNT]; // place in the heap + 1; 0 = none (tree->lock)
    uint32_t shield_count;                             // open uncancellable sections (tree->lock)
    uint16_t label_size;
    bool is_link;
    bool is_expiring;       // its deadline was found due; the cancel is on its way (tree->lock)
    nbi_token *next_marked; // in a list of the cancel that has marked this token; only that thread reads it

    nb_atomic_u32 ref_count;                  // handles; reaches 0 only under tree->lock
    uint32_t child_count;                     // direct children without links (tree->lock)
    uint32_t hold_count;                      // links below, and holds of the library itself (tree->lock)
    nbi_token *next, *previous, *first_child; // siblings newest first; `next` also chains spare and dead (tree->lock)
    union {
        nb_token_callback *callbacks; // (tree->lock)
        nbi_token *next_drop;         // of a link: in a list of the thread that ends the linked token
    };
    nb_atomic_u64 tasks;
    char label[];
};

NB_STATIC_ASSERT(offsetof(nbi_token, head) == 0, "a token's handle is its address");
NB_STATIC_ASSERT(offsetof(nbi_token, ref_count) >= NB_CACHE_LINE,
                 "polling must not share a line with the tree's lists");

#define NBI_TOKEN_ALIVE 0x544F4B4Eu // any number unlikely to be found in freed or foreign memory
#define NBI_TOKEN_DEAD 0x44454144u

typedef struct nbi_token_deadline {
    uint64_t at; // ns or frame
    nbi_token *token;
} nbi_token_deadline;

// A binary heap, earliest first.
typedef struct nbi_token_heap {
    nbi_token_deadline *items;
    uint32_t count, count_max;
} nbi_token_heap;

// One allocation with the root token, which is the last of its tree to go.
struct nbi_token_tree {
    nbi_lock lock; // protects what is marked with it; never held across user code, at most NBI_TOKEN_BATCH tokens long
    nbi_lock walk_lock;          // one cancel at a time; taken before lock, never held across user code
    nbi_token *spare;            // tokens to use again (lock)
    uint32_t spare_count;        // (lock)
    nbi_token *dead;             // out of the tree, to be freed when the lock is free (lock)
    nbi_token *links;            // marked links that the walk has still to follow (walk_lock)
    nbi_token_tree *walked_from; // the tree from which the walk came here over a link (walk_lock)
    nbi_token **source_links;    // of a linked token: its links; fixed when it is made
    uint32_t source_link_count;  // of those, made so far
    nbi_token_heap deadlines[NBI_TOKEN_DEADLINE_COUNT]; // (lock)
    nb_hooks hooks;
};

// Handles are addresses of nbi_token.
static inline nbi_token *nbi_token_of(nb_token *token) { return (nbi_token *)(void *)token; }
static inline const nbi_token *nbi_token_of_const(const nb_token *token) {
    return (const nbi_token *)(const void *)token;
}

// NB_OK for a handle, else a report and NB_ERR_MISUSE (NULL) or NB_ERR_STALE. What is found in freed memory is luck;
// under a sanitizer it is a report of its own.
nb_result nbi_token_check(const nb_token *token, const char *function);
#define NBI_TOKEN_CHECK(token) nbi_token_check((token), __func__)

static inline bool nbi_token_is_marked(const nbi_token *token) {
    return (nbi_atomic_load_relaxed_u32(&token->head.state) & NBI_TOKEN_CANCELLED) != 0;
}

// What a new token is made from, checked.
typedef struct nbi_token_plan {
    const char *label;
    uint16_t label_size; // without the final zero
    uint64_t key;
    nbi_token *target; // makes it a link; else NULL
} nbi_token_plan;

// A tree with its root, one handle; NULL without memory. hooks are resolved. source_links is left to be filled.
nbi_token *nbi_token_make_root(const nbi_token_plan *plan, const nb_hooks *hooks, uint32_t link_count,
                               const char *function);

// A child, one handle, born cancelled under a cancelled parent; NULL without memory. No lock is held.
nbi_token *nbi_token_make_child(nbi_token *parent, const nbi_token_plan *plan, const char *function);

// Lets other threads at the tree's lock for a moment. `token` is held meanwhile and still there afterwards.
void nbi_token_lock_pass(nbi_token *token);

// Takes the token and every parent that only it kept alive out of the tree, if nothing keeps it. The lock is held, and
// may be let go and taken again. Dead tokens wait in tree->dead for the next nbi_token_drop_*.
void nbi_token_collect(nbi_token *token);

// Ends one handle or one hold; the last of both frees the token. No lock is held. False: there was no handle left.
bool nbi_token_drop_handle(nbi_token *token);
void nbi_token_drop_hold(nbi_token *token);

// Cancels the token, whatever shields it, and everything below it, and adds to *counts (may be NULL). No lock is held;
// the caller has a handle or a hold.
void nbi_token_cancel_tree(nbi_token *token, nb_cancel_reason reason, nb_cancel_counts *counts);

// Runs the callbacks of a cancelled token that the caller holds. No lock is held.
void nbi_token_run_callbacks(nbi_token *token);

// Forgets the token's deadline of one kind. The lock is held.
void nbi_token_forget_deadline(nbi_token *token, nbi_token_deadline_kind kind);

// Forgets both; most tokens have none. The lock is held.
static inline void nbi_token_forget_deadlines(nbi_token *token) {
    for (int kind = 0; kind < NBI_TOKEN_DEADLINE_COUNT; ++kind) {
        if (token->deadline_index[kind] != 0) nbi_token_forget_deadline(token, (nbi_token_deadline_kind)kind);
    }
}
