// SPDX-License-Identifier: MIT
// Making and ending tokens, and what can be asked of them.

#include "token.h"

#include <string.h>

// Handles of one token; far beyond it only a lost release explains the number.
#define REF_COUNT_MAX (UINT32_MAX / 2)

#define DEFAULT_LABEL "token"

nb_result nbi_token_check(const nb_token *token, const char *function) {
    if (token == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "token is NULL");
    if (nbi_token_of_const(token)->life == NBI_TOKEN_ALIVE) return NB_OK;
    return nbi_fail(NULL, NB_ITEM_TOKEN_STALE, NB_ERR_STALE, function, "token %p was released, or is no token",
                    (const void *)token);
}

nb_token_desc nb_token_desc_default(void) {
    return (nb_token_desc){.label = DEFAULT_LABEL, .hooks = nb_hooks_default()};
}

static nb_result plan_make(nbi_token_plan *plan, const char *label, uint64_t key, const nb_hooks *hooks,
                           const char *function) {
    if (label == NULL) label = DEFAULT_LABEL;
    const char *end = memchr(label, 0, NB_TOKEN_LABEL_SIZE_MAX + 1);
    if (end == NULL) {
        return nbi_fail(hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_RANGE, function, "label is longer than %d bytes",
                        NB_TOKEN_LABEL_SIZE_MAX);
    }
    *plan = (nbi_token_plan){.label = label, .label_size = (uint16_t)(end - label), .key = key};
    return NB_OK;
}

nb_result nb_token_create(const nb_token_desc *desc, nb_token **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_token_desc none = {0};
    if (desc == NULL) desc = &none;
    nb_result result = desc->parent != NULL ? NBI_TOKEN_CHECK(desc->parent) : NB_OK;
    if (result != NB_OK) return result;
    nbi_token *parent = nbi_token_of(desc->parent);
    nb_hooks hooks = parent != NULL ? parent->tree->hooks : nbi_hooks_resolve(&desc->hooks);
    nbi_token_plan plan;
    result = plan_make(&plan, desc->label, desc->key, &hooks, __func__);
    if (result != NB_OK) return result;
    nbi_token *token = parent != NULL ? nbi_token_make_child(parent, &plan, __func__)
                                      : nbi_token_make_root(&plan, &hooks, 0, __func__);
    if (token == NULL) return NB_ERR_MEMORY;
    *out = &token->head;
    return NB_OK;
}

nb_result nb_token_create_cancelled(const nb_token_desc *desc, nb_cancel_cause cause, uint32_t code, nb_token **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_token *token = NULL;
    nb_result result = nb_token_create(desc, &token);
    if (result != NB_OK) return result;
    result = nb_token_cancel(token, cause, code, NULL);
    if (result != NB_OK) {
        nb_token_release(token);
        return result;
    }
    *out = token;
    return NB_OK;
}

nb_result nb_token_child(nb_token *parent, const char *label, nb_token **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_result result = NBI_TOKEN_CHECK(parent);
    if (result != NB_OK) return result;
    nbi_token *node = nbi_token_of(parent);
    nbi_token_plan plan;
    result = plan_make(&plan, label, 0, &node->tree->hooks, __func__);
    if (result != NB_OK) return result;
    nbi_token *child = nbi_token_make_child(node, &plan, __func__);
    if (child == NULL) return NB_ERR_MEMORY;
    *out = &child->head;
    return NB_OK;
}

static nb_result sources_check(const nb_token_desc *desc, nb_token *const *sources, uint32_t source_count,
                               const char *function) {
    if (sources == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "sources is NULL");
    if (source_count == 0 || source_count > NB_TOKEN_SOURCE_COUNT_MAX) {
        return nbi_fail(&desc->hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_RANGE, function,
                        "%u sources; 1 to %d are possible", (unsigned)source_count, NB_TOKEN_SOURCE_COUNT_MAX);
    }
    if (desc->parent != NULL) {
        return nbi_fail(&desc->hooks, NB_ITEM_TOKEN_ARGUMENT, NB_ERR_MISUSE, function,
                        "a linked token has sources and no parent");
    }
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < source_count && result == NB_OK; ++i) result = nbi_token_check(sources[i], function);
    return result;
}

// One link below every source. A source cancelled from now on finds `token` through its link; one that was cancelled
// before has made its link cancelled, and is passed on here.
static nb_result sources_link(nbi_token *token, nb_token *const *sources, uint32_t source_count, const char *function) {
    nbi_token_tree *tree = token->tree;
    const nbi_token_plan plan = {.label = "", .target = token};
    for (uint32_t i = 0; i < source_count; ++i) {
        nbi_token *link = nbi_token_make_child(nbi_token_of(sources[i]), &plan, function);
        if (link == NULL) return NB_ERR_MEMORY;
        tree->source_links[tree->source_link_count++] = link;
        if (nbi_token_is_marked(link)) nbi_token_cancel_tree(token, nb_token_reason(&link->head), NULL);
    }
    return NB_OK;
}

nb_result nb_token_create_any(const nb_token_desc *desc, nb_token *const *sources, uint32_t source_count,
                              nb_token **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_token_desc filled = desc != NULL ? *desc : (nb_token_desc){0};
    filled.hooks = nbi_hooks_resolve(&filled.hooks);
    nb_result result = sources_check(&filled, sources, source_count, __func__);
    if (result != NB_OK) return result;
    nbi_token_plan plan;
    result = plan_make(&plan, filled.label, filled.key, &filled.hooks, __func__);
    if (result != NB_OK) return result;
    nbi_token *token = nbi_token_make_root(&plan, &filled.hooks, source_count, __func__);
    if (token == NULL) return NB_ERR_MEMORY;
    result = sources_link(token, sources, source_count, __func__);
    if (result != NB_OK) {
        nb_token_release(&token->head);
        return result;
    }
    *out = &token->head;
    return NB_OK;
}

nb_token *nb_token_retain(nb_token *token) {
    if (NBI_TOKEN_CHECK(token) != NB_OK) return NULL;
    nbi_token *node = nbi_token_of(token);
    // Never from 0: a token that only its children keep has no handle to be copied from.
    uint32_t count = nbi_atomic_load_relaxed_u32(&node->ref_count);
    while (count > 0 && count < REF_COUNT_MAX) {
        if (nbi_atomic_compare_exchange_relaxed_u32(&node->ref_count, &count, count + 1)) return token;
    }
    NBI_FAIL(&node->tree->hooks, NB_ITEM_TOKEN_STALE, NB_ERR_STALE, "token has %u handles", (unsigned)count);
    return NULL;
}

void nb_token_release(nb_token *token) {
    if (token == NULL || NBI_TOKEN_CHECK(token) != NB_OK) return;
    nbi_token *node = nbi_token_of(token);
    // Read by this acquire: what other threads did with the token before their release below.
    uint32_t count = nbi_atomic_load_acquire_u32(&node->ref_count);
    while (count > 1) {
        // Read by the acquire load above, in the thread that ends the last handle.
        if (nbi_atomic_compare_exchange_acq_rel_u32(&node->ref_count, &count, count - 1)) return;
    }
    if (count == 0) {
        NBI_FAIL(&node->tree->hooks, NB_ITEM_TOKEN_STALE, NB_ERR_STALE, "token was released too often");
        return;
    }
    if (nbi_token_drop_handle(node)) return;
    // Two threads gave back the same last handle; the token, and its hooks, may be gone.
    NBI_FAIL(NULL, NB_ITEM_TOKEN_STALE, NB_ERR_STALE, "token %p was released too often", (const void *)token);
}

// --- questions ---

nb_cancel_reason nb_token_reason(const nb_token *token) {
    if (token == NULL) return (nb_cancel_reason){0};
    // Read by this acquire: the release half of the mark in token_cancel.c, and with it `code` and the canceller's
    // data.
    uint32_t state = nbi_atomic_load_acquire_u32(&token->state);
    if ((state & NBI_TOKEN_CANCELLED) == 0) return (nb_cancel_reason){0};
    return (nb_cancel_reason){.cause = (nb_cancel_cause)(state >> NBI_TOKEN_CAUSE_SHIFT),
                              .code = nbi_token_of_const(token)->code};
}

const char *nb_cancel_cause_name(nb_cancel_cause cause) {
    static const char *const names[NB_CANCEL_COUNT] = {"none",     "requested",     "stale",         "failed",
                                                       "shutdown", "deadline_time", "deadline_frame"};
    return (uint32_t)cause < NB_CANCEL_COUNT ? names[cause] : "unknown";
}

const char *nb_token_label(const nb_token *token) {
    return NBI_TOKEN_CHECK(token) == NB_OK ? nbi_token_of_const(token)->label : "";
}

uint64_t nb_token_key(const nb_token *token) {
    return NBI_TOKEN_CHECK(token) == NB_OK ? nbi_token_of_const(token)->key : 0;
}

// The bytes of `text` that fall inside the buffer when the text starts at byte `at`.
static void write_at(char *buffer, size_t room, size_t at, const char *text, size_t size) {
    if (at >= room) return;
    memcpy(buffer + at, text, size < room - at ? size : room - at);
}

size_t nb_token_path(const nb_token *token, char *buffer, size_t size_bytes) {
    if (buffer == NULL) size_bytes = 0;
    if (size_bytes != 0) buffer[0] = 0;
    if (NBI_TOKEN_CHECK(token) != NB_OK) return 0;
    const nbi_token *node = nbi_token_of_const(token);
    // No lock: labels and parents never change, and a child keeps its parents.
    size_t length = 0;
    for (const nbi_token *at = node; at != NULL; at = at->parent) {
        length += at->label_size + (at->parent != NULL ? 1u : 0u);
    }
    if (size_bytes == 0) return length;
    size_t room = size_bytes - 1;
    size_t end = length;
    for (const nbi_token *at = node; at != NULL; at = at->parent) {
        end -= at->label_size;
        write_at(buffer, room, end, at->label, at->label_size);
        if (at->parent != NULL) write_at(buffer, room, --end, "/", 1);
    }
    buffer[length < room ? length : room] = 0;
    return length;
}

uint32_t nb_token_child_count(const nb_token *token) {
    if (NBI_TOKEN_CHECK(token) != NB_OK) return 0;
    const nbi_token *node = nbi_token_of_const(token);
    nbi_lock_acquire(&node->tree->lock);
    uint32_t count = node->child_count;
    nbi_lock_release(&node->tree->lock);
    return count;
}
