// SPDX-License-Identifier: MIT
// Images, and the addresses in states that are none.

#include "state_image.h"

#include "../../platform/platform.h"
#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/report.h"

#include <stdio.h>
#include <string.h>

nbi_image nbi_image_of(const void *data) {
    nbi_program program = nbi_program_get();
    uint64_t build = program.identity != NULL ? nb_hash64(program.identity, program.identity_bytes, 0) : 0;
    return (nbi_image){.address = (uintptr_t)data, .program_address = program.address, .build = build};
}

void nbi_image_write(const nbi_image *image, unsigned char bytes[NBI_IMAGE_BYTES]) {
    nb_bytes_put_u64(bytes, image->address), nb_bytes_put_u64(bytes + 8, image->program_address);
    nb_bytes_put_u64(bytes + 16, image->build);
}

nbi_image nbi_image_read(const unsigned char bytes[NBI_IMAGE_BYTES]) {
    return (nbi_image){nb_bytes_get_u64(bytes), nb_bytes_get_u64(bytes + 8), nb_bytes_get_u64(bytes + 16)};
}

uint64_t nbi_image_layout(const nbi_image *image, uint64_t layout_hash) {
    unsigned char bytes[NBI_IMAGE_BYTES];
    nbi_image_write(image, bytes);
    return nb_hash64(bytes, sizeof bytes, layout_hash);
}

bool nbi_image_describe(const nbi_image *saved, const nbi_image *here, const char *name, char *text,
                        size_t size_bytes) {
    if (memcmp(saved, here, sizeof *saved) == 0) return false;
    snprintf(text, size_bytes,
             "image \"%s\" was saved at address 0x%llx by build %016llx at 0x%llx; here it is at address 0x%llx in "
             "build %016llx at 0x%llx",
             name, nb_llu(saved->address), nb_llu(saved->build), nb_llu(saved->program_address), nb_llu(here->address),
             nb_llu(here->build), nb_llu(here->program_address));
    return true;
}

// --- addresses ---

uint32_t nbi_spans_of_program(nbi_span *spans) {
    nbi_segment segments[NBI_SPAN_COUNT_MAX / 2];
    uint32_t count = nbi_program_segments(segments, NBI_SPAN_COUNT_MAX / 2);
    for (uint32_t i = 0; i < count; ++i) spans[i] = (nbi_span){segments[i].begin, segments[i].end, NULL};
    return count;
}

static const nbi_span *span_of(uint64_t word, const nbi_span *spans, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (word >= spans[i].begin && word < spans[i].end) return &spans[i];
    }
    return NULL;
}

size_t nbi_find_address(const unsigned char *bytes, size_t at, size_t size_bytes, const nbi_span *spans, uint32_t count,
                        const nbi_span **found) {
    for (uint64_t word; at < size_bytes && size_bytes - at >= sizeof word; at += sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (word >> 32 == 0) continue;
        *found = span_of(word, spans, count);
        if (*found != NULL) return at;
    }
    return size_bytes;
}
