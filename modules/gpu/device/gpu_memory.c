// SPDX-License-Identifier: MIT
// Memory of a frame: one buffer for each frame in flight, given out from below by moving one word,
//   [ picture 30 | slot 2 | offset 32 ],
// so that who comes with yesterday's picture in mind can take nothing of today's.

#include "gpu.h"

#define CLOSED UINT64_MAX
#define OFFSET_BITS 32
#define SLOT_BITS 2
#define OFFSET_MASK ((UINT64_C(1) << OFFSET_BITS) - 1)

NB_STATIC_ASSERT(NB_GPU_FRAMES_MAX <= 1u << SLOT_BITS, "a slot has its bits");
NB_STATIC_ASSERT(NB_GPU_FRAME_BYTES_MAX < OFFSET_MASK, "an offset has its bits");

// Without the engine's slots in it: a frame of a fence has its number there.
void nbi_gpu_spans_open(nb_gpu *gpu, nb_fence_frame frame) {
    uint64_t word = (gpu->picture & NBI_GPU_TAG_MASK) << (OFFSET_BITS + SLOT_BITS) | (uint64_t)gpu->slot << OFFSET_BITS;
    // Carries the CLOSED of nbi_gpu_spans_close with it; read by the acquire load in take. A thread that finds this
    // frame can no longer exchange the word of an earlier picture. Relaxed, the store may become visible before CLOSED
    // does.
    nbi_atomic_store_release_u64(&gpu->span_frame, frame.value);
    // Publishes the frame and the slot's memory; read by the acquire loads in nb_gpu_frame_alloc_at.
    nbi_atomic_store_release_u64(&gpu->span_word, word);
}

void nbi_gpu_spans_close(nb_gpu *gpu) { nbi_atomic_store_release_u64(&gpu->span_word, CLOSED); }

static nb_result no_room(nb_gpu *gpu) {
    nbi_atomic_fetch_add_relaxed_u64(&gpu->span_full_count, 1);
    return NB_FULL;
}

static void fill(const nb_gpu *gpu, uint64_t word, uint64_t offset, size_t size_bytes, nb_gpu_span *out) {
    const nbi_gpu_slot *slot = &gpu->slots[word >> OFFSET_BITS & ((1u << SLOT_BITS) - 1)];
    uint64_t tag = word >> (OFFSET_BITS + SLOT_BITS);
    out->memory = (char *)slot->memory + offset;
    out->buffer.value = NBI_GPU_MEMORY_BIT | tag << NBI_GPU_INDEX_BITS | slot->buffer;
    out->offset = offset;
    out->size_bytes = size_bytes;
}

static nb_result take(nb_gpu *gpu, nb_fence_frame frame, size_t size_bytes, size_t alignment, nb_gpu_span *out) {
    uint64_t word = nbi_atomic_load_acquire_u64(&gpu->span_word);
    for (;;) {
        if (word == CLOSED) return NB_EMPTY;
        // Reads the release store in nbi_gpu_spans_open. Where that store is newer than `word`, so is the word that
        // this thread sees from here on, and the exchange below fails.
        bool is_now = frame.value == 0 || frame.value == nbi_atomic_load_acquire_u64(&gpu->span_frame);
        if (!is_now) return NB_ERR_STALE;
        uint64_t offset = ((word & OFFSET_MASK) + alignment - 1) & ~(uint64_t)(alignment - 1);
        if (size_bytes > gpu->desc.frame_bytes || offset > gpu->desc.frame_bytes - size_bytes) return no_room(gpu);
        uint64_t next = (word & ~OFFSET_MASK) | (offset + size_bytes);
        if (!nbi_atomic_compare_exchange_acquire_u64(&gpu->span_word, &word, next)) continue;
        fill(gpu, word, offset, size_bytes, out);
        return NB_OK;
    }
}

nb_result nb_gpu_frame_alloc_at(nb_gpu *gpu, nb_fence_frame frame, size_t size_bytes, size_t alignment,
                                nb_gpu_span *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    if (out == NULL) return NBI_GPU_REFUSE(gpu, gpu->name, NB_ERR_MISUSE, "device \"%s\": out is NULL", gpu->name);
    if (alignment == 0) alignment = 16;
    bool is_sane = size_bytes != 0 && (alignment & (alignment - 1)) == 0 && alignment <= NB_GPU_OFFSET_ALIGNMENT;
    if (!is_sane)
        return NBI_GPU_REFUSE(
            gpu, gpu->name, NB_ERR_MISUSE,
            "device \"%s\": %zu bytes at a multiple of %zu; ask for at least 1 byte, at a power of two "
            "up to NB_GPU_OFFSET_ALIGNMENT",
            gpu->name, size_bytes, alignment);
    return take(gpu, frame, size_bytes, alignment, out);
}

nb_result nb_gpu_frame_alloc(nb_gpu *gpu, size_t size_bytes, size_t alignment, nb_gpu_span *out) {
    if (gpu == NULL) return NB_FAIL_NULL("gpu");
    return nb_gpu_frame_alloc_at(gpu, (nb_fence_frame){0}, size_bytes, alignment, out);
}
