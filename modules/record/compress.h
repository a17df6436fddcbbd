// SPDX-License-Identifier: MIT
#pragma once

// zstd, with memory through the hooks. One call, one frame: sizes are known on both sides.

#include "nebula/hooks.h"
#include "nebula/types.h"

// zstd's own default; higher ones cost the frame's cores more than the disk gains.
#define NBI_SQUEEZE_LEVEL_DEFAULT 3
#define NBI_SQUEEZE_LEVEL_MAX 19

typedef struct nbi_squeeze {
    nb_hooks hooks;
    void *writer; // zstd's contexts, made by the first call that needs one
    void *reader;
} nbi_squeeze;

// The most that size_bytes become.
size_t nbi_squeeze_bound(size_t size_bytes);

// Fails: NB_ERR_MEMORY, NB_ERR_RANGE (capacity_bytes is below the bound).
nb_result nbi_squeeze_pack(nbi_squeeze *squeeze, int level, const void *raw, size_t raw_bytes, void *packed,
                           size_t capacity_bytes, size_t *packed_bytes);

// Whether it says of itself that it is one frame of raw_bytes: asked before there is memory for them.
bool nbi_squeeze_is(const void *packed, size_t packed_bytes, uint64_t raw_bytes);

// Unpacks into exactly raw_bytes. Fails: NB_ERR_MEMORY, NB_ERR_RANGE (not one frame of that many bytes).
nb_result nbi_squeeze_unpack(nbi_squeeze *squeeze, const void *packed, size_t packed_bytes, void *raw,
                             size_t raw_bytes);

void nbi_squeeze_end(nbi_squeeze *squeeze);
