// SPDX-License-Identifier: MIT
// The only file that knows zstd.

#include "compress.h"

// For ZSTD_customMem: memory goes through the hooks.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <string.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
// zstd is not instrumented, so what it writes has to be declared as written.
#define WRITTEN(memory, size_bytes) __msan_unpoison((memory), (size_bytes))
#endif
#endif
#if !defined(WRITTEN)
#define WRITTEN(memory, size_bytes) ((void)0)
#endif

// zstd frees without a size, the hooks want it: it stands in front.
#define PREFIX_BYTES 16u

static void *zstd_alloc(void *user, size_t size_bytes) {
    const nb_hooks *hooks = user;
    if (size_bytes > SIZE_MAX - PREFIX_BYTES) return NULL;
    size_t whole_bytes = size_bytes + PREFIX_BYTES;
    unsigned char *memory = hooks->allocator.alloc(hooks->allocator.user, whole_bytes, 16);
    if (memory == NULL) return NULL;
    memcpy(memory, &whole_bytes, sizeof whole_bytes);
    return memory + PREFIX_BYTES;
}

static void zstd_free(void *user, void *memory) {
    const nb_hooks *hooks = user;
    if (memory == NULL) return;
    unsigned char *start = (unsigned char *)memory - PREFIX_BYTES;
    size_t whole_bytes;
    memcpy(&whole_bytes, start, sizeof whole_bytes);
    hooks->allocator.free(hooks->allocator.user, start, whole_bytes);
}

static ZSTD_customMem memory_of(nbi_compress *compress) {
    return (ZSTD_customMem){zstd_alloc, zstd_free, &compress->hooks};
}

size_t nbi_compress_bound(size_t size_bytes) { return ZSTD_compressBound(size_bytes); }

nb_result nbi_compress_pack(nbi_compress *compress, int level, const void *raw, size_t raw_bytes, void *packed,
                            size_t capacity_bytes, size_t *packed_bytes) {
    if (compress->writer == NULL) compress->writer = ZSTD_createCCtx_advanced(memory_of(compress));
    if (compress->writer == NULL) return NB_ERR_MEMORY;
    size_t size = ZSTD_compressCCtx(compress->writer, packed, capacity_bytes, raw, raw_bytes, level);
    if (ZSTD_isError(size))
        return ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation ? NB_ERR_MEMORY : NB_ERR_RANGE;
    WRITTEN(packed, size);
    *packed_bytes = size;
    return NB_OK;
}

bool nbi_compress_is(const void *packed, size_t packed_bytes, uint64_t raw_bytes) {
    // The frame says its size itself, and is the only one: what differs from the head was forged.
    return ZSTD_getFrameContentSize(packed, packed_bytes) == raw_bytes &&
           ZSTD_findFrameCompressedSize(packed, packed_bytes) == packed_bytes;
}

nb_result nbi_compress_unpack(nbi_compress *compress, const void *packed, size_t packed_bytes, void *raw,
                              size_t raw_bytes) {
    if (!nbi_compress_is(packed, packed_bytes, raw_bytes)) return NB_ERR_RANGE;
    if (compress->reader == NULL) compress->reader = ZSTD_createDCtx_advanced(memory_of(compress));
    if (compress->reader == NULL) return NB_ERR_MEMORY;
    size_t size = ZSTD_decompressDCtx(compress->reader, raw, raw_bytes, packed, packed_bytes);
    if (ZSTD_isError(size) || size != raw_bytes) return NB_ERR_RANGE;
    WRITTEN(raw, raw_bytes);
    return NB_OK;
}

void nbi_compress_end(nbi_compress *compress) {
    ZSTD_freeCCtx(compress->writer);
    ZSTD_freeDCtx(compress->reader);
    compress->writer = compress->reader = NULL;
}
