// SPDX-License-Identifier: MIT
#pragma once

// What comparing states and comparing worlds share.

#include "nebula/compare.h"

// A line that is cut where it does not fit.
typedef struct nbi_line {
    char *text;
    size_t size_bytes, used_bytes;
} nbi_line;

NB_PRINTF(2, 3) void nbi_line_add(nbi_line *self, const char *format, ...);

// The first byte in which two pieces of memory differ; size_bytes where none does.
size_t nbi_differ_at(const void *here, const void *there, size_t size_bytes);

// Notes a value of `size_bytes` that differs first at offset_bytes.
void nbi_difference_value(nb_difference *self, const unsigned char *here, const unsigned char *there, size_t size_bytes,
                          size_t offset_bytes);

// Counts a range, and lists it where there is room.
void nbi_difference_range(nb_difference *self, const nb_difference_range *range);

// The aligned word at an offset of so many bytes, or what there is of it.
uint64_t nbi_difference_word(const void *bytes, size_t size_bytes, size_t offset_bytes);

// Names something else that differs.
void nbi_difference_other(nb_difference *self, const char *name, const char *part);

// Makes the text of the other fields.
void nbi_difference_describe(nb_difference *self);
