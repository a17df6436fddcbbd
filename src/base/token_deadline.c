// SPDX-License-Identifier: MIT
// Deadlines: two binary heaps a tree, earliest first, so that asking costs nothing while nothing is due and a token
// leaves in O(log n) when it is released, cancelled or given another deadline.

#include "token.h"

#include <string.h>

// First room of a heap; it doubles from there. Most trees have a handful of deadlines.
#define HEAP_COUNT_FIRST 16u

// Most deadlines of one kind in a tree: that many tokens are 10 GiB, and the array's size fits 32 bits.
#define HEAP_COUNT_MAX (1u << 26)

static void heap_put(nbi_token_heap *heap, nbi_token_deadline_kind kind, uint32_t index, nbi_token_deadline item) {
    heap->items[index] = item;
    item.token->deadline_index[kind] = index + 1;
}

// Finds the slot for an item from a gap at `index`, first up, then down.
static void heap_settle(nbi_token_heap *heap, nbi_token_deadline_kind kind, uint32_t index, nbi_token_deadline item) {
    while (index > 0 && item.at < heap->items[(index - 1) / 2].at) {
        heap_put(heap, kind, index, heap->items[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    for (;;) {
        uint32_t below = 2 * index + 1;
        if (below + 1 < heap->count && heap->items[below + 1].at < heap->items[below].at) ++below;
        if (below >= heap->count || item.at <= heap->items[below].at) break;
        heap_put(heap, kind, index, heap->items[below]);
        index = below;
    }
    heap_put(heap, kind, index, item);
}

void nbi_token_forget_deadline(nbi_token *token, nbi_token_deadline_kind kind) {
    nbi_token_heap *heap = &token->tree->deadlines[kind];
    uint32_t index = token->deadline_index[kind];
    token->deadline_index[kind] = 0;
    nbi_token_deadline last = heap->items[--heap->count];
    if (last.token != token) heap_settle(heap, kind, index - 1, last);
}

static void heap_insert(nbi_token *token, nbi_token_deadline_kind kind, uint64_t at) {
    nbi_token_heap *heap = &token->tree->deadlines[kind];
    nbi_token_deadline item = {.at = at, .token = token};
    heap_settle(heap, kind, heap->count++, item);
}

// Doubles a heap that was full at count_max. The heap is allocated without the lock; another thread may have been
// faster.
static nb_result heap_grow(nbi_token_tree *tree, nbi_token_heap *heap, uint32_t count_max, const char *function) {
    uint32_t room = count_max != 0 ? count_max * 2 : HEAP_COUNT_FIRST;
    if (room > HEAP_COUNT_MAX) return NB_ERR_MEMORY;
    nbi_token_deadline *items = nbi_alloc(&tree->hooks, room * sizeof *items, NB_ALIGNOF(nbi_token_deadline), function);
    if (items == NULL) return NB_ERR_MEMORY;
    nbi_token_deadline *unused = items;
    uint32_t unused_room = room;
    nbi_lock_acquire(&tree->lock);
    if (heap->count_max < room) {
        if (heap->count != 0) memcpy(items, heap->items, heap->count * sizeof *items);
        unused = heap->items;
        unused_room = heap->count_max;
        heap->items = items;
        heap->count_max = room;
    }
    nbi_lock_release(&tree->lock);
    nbi_free(&tree->hooks, unused, unused_room * sizeof *items);
    return NB_OK;
}

// The heap that has no room for this token's new deadlines, or NULL.
static nbi_token_heap *full_heap(nbi_token *token, const uint64_t *at) {
    for (int kind = 0; kind < NBI_TOKEN_DEADLINE_COUNT; ++kind) {
        nbi_token_heap *heap = &token->tree->deadlines[kind];
        bool grows = at[kind] != 0 && token->deadline_index[kind] == 0;
        if (grows && heap->count == heap->count_max) return heap;
    }
    return NULL;
}

static void replace_deadlines(nbi_token *token, const uint64_t *at) {
    nbi_token_forget_deadlines(token);
    for (int kind = 0; kind < NBI_TOKEN_DEADLINE_COUNT; ++kind) {
        if (at[kind] != 0) heap_insert(token, (nbi_token_deadline_kind)kind, at[kind]);
    }
}

nb_result nb_token_set_deadline(nb_token *token, uint64_t deadline_ns, uint64_t deadline_frame) {
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    const uint64_t at[NBI_TOKEN_DEADLINE_COUNT] = {deadline_ns, deadline_frame};
    // Each round doubles a heap that was full, so this ends.
    for (;;) {
        nbi_lock_acquire(&node->tree->lock);
        bool is_late = nbi_token_is_marked(node) || node->is_expiring;
        nbi_token_heap *full = is_late ? NULL : full_heap(node, at);
        uint32_t count_max = full != NULL ? full->count_max : 0;
        if (!is_late && full == NULL) replace_deadlines(node, at);
        nbi_lock_release(&node->tree->lock);
        if (is_late) return NB_CANCELLED;
        if (full == NULL) return NB_OK;
        result = heap_grow(node->tree, full, count_max, __func__);
        if (result != NB_OK) return result;
    }
}

static bool is_due(const nbi_token_tree *tree, nbi_token_deadline_kind kind, uint64_t now) {
    return tree->deadlines[kind].count != 0 && tree->deadlines[kind].items[0].at <= now;
}

// The next token of a heap that is due, taken out and held; NULL when there is none.
static nbi_token *take_due(nbi_token_tree *tree, nbi_token_deadline_kind kind, uint64_t now) {
    nbi_token *due = NULL;
    nbi_lock_acquire(&tree->lock);
    if (is_due(tree, kind, now)) {
        due = tree->deadlines[kind].items[0].token;
        nbi_token_forget_deadline(due, kind);
        // The cancel comes when the lock is free: a new deadline set in between would be too late, and is told so.
        due->is_expiring = true;
        ++due->hold_count;
    }
    nbi_lock_release(&tree->lock);
    return due;
}

static void expire_kind(nbi_token_tree *tree, nbi_token_deadline_kind kind, uint64_t now, uint32_t count_max,
                        nb_cancel_counts *counts) {
    static const nb_cancel_cause causes[NBI_TOKEN_DEADLINE_COUNT] = {NB_CANCEL_DEADLINE_TIME, NB_CANCEL_DEADLINE_FRAME};
    for (uint32_t i = 0; i < count_max; ++i) {
        nbi_token *due = take_due(tree, kind, now);
        if (due == NULL) return;
        nbi_token_cancel_tree(due, (nb_cancel_reason){.cause = causes[kind]}, counts);
        nbi_token_drop_hold(due);
    }
}

nb_result nb_token_expire(nb_token *token, uint64_t now_ns, uint64_t frame, nb_cancel_counts *counts) {
    nb_result result = NBI_TOKEN_CHECK(token);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(token);
    nbi_token_tree *tree = node->tree;
    nbi_lock_acquire(&tree->lock);
    bool has_due = is_due(tree, NBI_TOKEN_DEADLINE_TIME, now_ns) || is_due(tree, NBI_TOKEN_DEADLINE_FRAME, frame);
    // A callback may set deadlines that are due at once: those wait for the next call, or this one might never end.
    uint32_t time_count = tree->deadlines[NBI_TOKEN_DEADLINE_TIME].count;
    uint32_t frame_count = tree->deadlines[NBI_TOKEN_DEADLINE_FRAME].count;
    // A callback may also give back the very handle this call came with.
    if (has_due) ++node->hold_count;
    nbi_lock_release(&tree->lock);
    nb_cancel_counts sum = {0};
    if (has_due) {
        expire_kind(tree, NBI_TOKEN_DEADLINE_TIME, now_ns, time_count, &sum);
        expire_kind(tree, NBI_TOKEN_DEADLINE_FRAME, frame, frame_count, &sum);
        nbi_token_drop_hold(node);
    }
    if (counts != NULL) *counts = sum;
    return NB_OK;
}
