// SPDX-License-Identifier: MIT
#pragma once

// zstd, with memory through the hooks. One call, one frame: sizes are known on both sides.

#include "nebula/hooks.h"
#include "nebula/types.h"

// zstd's own default; higher ones cost the frame's cores more than the disk gains.
#define NBI_COMPRESS_LEVEL_DEFAULT 3
#define NBI_COMPRESS_LEVEL_MAX 19

typedef struct nbi_compress {
    nb_hooks hooks;
    void *writer; // zstd's contexts, made by the first call that needs one
    void *reader;
} nbi_compress;

// The most that size_bytes become.
size_t nbi_compress_bound(size_t size_bytes);

// Fails: NB_ERR_MEMORY, NB_ERR_RANGE (capacity_bytes is below the bound).
nb_result nbi_compress_pack(nbi_compress *compress, int level, const void *raw, size_t raw_bytes, void *packed,
                            size_t capacity_bytes, size_t *packed_bytes);

// Whether it says of itself that it is one frame of raw_bytes: asked before there is memory for them.
bool nbi_compress_is(const void *packed, size_t packed_bytes, uint64_t raw_bytes);

// Unpacks into exactly raw_bytes. Fails: NB_ERR_MEMORY, NB_ERR_RANGE (not one frame of that many bytes).
nb_result nbi_compress_unpack(nbi_compress *compress, const void *packed, size_t packed_bytes, void *raw,
                              size_t raw_bytes);

void nbi_compress_end(nbi_compress *compress);
