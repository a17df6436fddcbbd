// SPDX-License-Identifier: MIT
#pragma once

// Images: raw memory that contains addresses, and so means nothing but at its own address in its own program.

#include "nebula/types.h"

// Where an image is, and in which program.
typedef struct nbi_image {
    uint64_t address;         // of its memory
    uint64_t program_address; // by which the program was moved
    uint64_t build;           // hash of its build id; 0 = not known on this platform
} nbi_image;

// Of an image in a save, before its bytes.
#define NBI_IMAGE_BYTES 24u

// What an image at this address is now.
nbi_image nbi_image_of(const void *data);

// A layout hash that only the same image has.
uint64_t nbi_image_layout(const nbi_image *image, uint64_t layout_hash);

void nbi_image_write(const nbi_image *image, unsigned char bytes[NBI_IMAGE_BYTES]);
nbi_image nbi_image_read(const unsigned char bytes[NBI_IMAGE_BYTES]);

// Says why a saved image is not the one here. False: it is the same one.
bool nbi_image_describe(const nbi_image *saved, const nbi_image *here, const char *name, char *text, size_t size_bytes);

// A piece of memory that a word may point into; name NULL = the program or a library.
typedef struct nbi_span {
    uintptr_t begin, end;
    const char *name;
} nbi_span;

// Of all pieces that are looked at: the segments of a program with a few dozen libraries, and as many states.
#define NBI_SPAN_COUNT_MAX 256u

// The segments of program and libraries, up to half of NBI_SPAN_COUNT_MAX; returns how many.
uint32_t nbi_spans_of_program(nbi_span *spans);

// The first word from `at` up to size_bytes, in steps of 8 bytes, that is an address inside one of the spans, which
// *found is then. size_bytes: there is none. Below 4 GiB numbers and addresses look alike: those are left out.
size_t nbi_find_address(const unsigned char *bytes, size_t at, size_t size_bytes, const nbi_span *spans, uint32_t count,
                        const nbi_span **found);
