// SPDX-License-Identifier: MIT
#pragma once

// Which parts of one large buffer are taken: pages of a fixed size, a mesh takes as many as it needs, side by side. The
// lowest place that fits is taken, so what is used stays together.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/hooks.h"
#include "nebula/types.h"

// Quads of a page: 1 KiB. A node of the ground has some hundred quads, so little is wasted.
#define QUAD_POOL_PAGE 128u

typedef struct quad_pool {
    uint64_t *words; // a bit a page: taken
    uint32_t page_count;
    uint32_t used_count;
    uint32_t word_count;
    uint32_t first_free; // no page below it is free
    nb_hooks hooks;
} quad_pool;

// Pages for this many quads.
static inline uint32_t quad_pool_pages(uint32_t quad_count) {
    return quad_count / QUAD_POOL_PAGE + (quad_count % QUAD_POOL_PAGE != 0);
}

// NB_ERR_MEMORY.
nb_result quad_pool_init(quad_pool *pool, uint32_t page_count, const nb_hooks *hooks);
void quad_pool_deinit(quad_pool *pool);

// NB_FULL: no such row of pages is free. 0 pages are nowhere: page 0.
nb_result quad_pool_take(quad_pool *pool, uint32_t page_count, uint32_t *first);
void quad_pool_give(quad_pool *pool, uint32_t first, uint32_t page_count);
