// SPDX-License-Identifier: MIT
// Pages of the buffer that the ground's quads lie in.

#include "quad_pool.h"

#include <string.h>

#include "nebula/report.h"

static bool is_taken(const quad_pool *pool, uint32_t page) { return pool->words[page / 64] >> page % 64 & 1; }

static void mark(quad_pool *pool, uint32_t first, uint32_t count, bool is_used) {
    for (uint32_t page = first; page < first + count; ++page) {
        uint64_t bit = UINT64_C(1) << page % 64;
        pool->words[page / 64] = is_used ? pool->words[page / 64] | bit : pool->words[page / 64] & ~bit;
    }
}

nb_result quad_pool_init(quad_pool *pool, uint32_t page_count, const nb_hooks *hooks) {
    *pool = (quad_pool){.page_count = page_count, .word_count = page_count / 64 + 1, .hooks = nb_hooks_resolve(hooks)};
    pool->words = (uint64_t *)nb_hooks_alloc(&pool->hooks, pool->word_count * sizeof(uint64_t), 64, __func__);
    if (pool->words == NULL) return NB_ERR_MEMORY;
    memset(pool->words, 0, pool->word_count * sizeof(uint64_t));
    return NB_OK;
}

void quad_pool_deinit(quad_pool *pool) {
    nb_hooks_free(&pool->hooks, pool->words, pool->word_count * sizeof(uint64_t));
    pool->words = NULL;
}

// Free pages from `page` on, `wanted` at most.
static uint32_t run_at(const quad_pool *pool, uint32_t page, uint32_t wanted) {
    uint32_t count = 0;
    while (count < wanted && page + count < pool->page_count && !is_taken(pool, page + count)) ++count;
    return count;
}

nb_result quad_pool_take(quad_pool *pool, uint32_t page_count, uint32_t *first) {
    if (page_count == 0) {
        *first = 0;
        return NB_OK;
    }
    if (page_count > pool->page_count - pool->used_count) return NB_FULL;
    for (uint32_t page = pool->first_free; page + page_count <= pool->page_count;) {
        // A word that is full is stepped over at once.
        if (page % 64 == 0 && pool->words[page / 64] == UINT64_MAX) {
            page += 64;
            continue;
        }
        uint32_t run = run_at(pool, page, page_count);
        if (run < page_count) {
            page += run + 1;
            continue;
        }
        mark(pool, page, page_count, true);
        pool->used_count += page_count;
        if (page == pool->first_free) pool->first_free = page + page_count;
        *first = page;
        return NB_OK;
    }
    return NB_FULL;
}

void quad_pool_give(quad_pool *pool, uint32_t first, uint32_t page_count) {
    mark(pool, first, page_count, false);
    pool->used_count -= page_count;
    if (page_count > 0 && first < pool->first_free) pool->first_free = first;
}
