// SPDX-License-Identifier: MIT
#pragma once

// What comparing states and comparing worlds share.

#include "nebula/compare.h"

// The first byte in which two pieces of memory differ; size_bytes where none does.
size_t nbi_differ_at(const void *here, const void *there, size_t size_bytes);

// Notes a value of `size_bytes` that differs first at offset_bytes.
void nbi_difference_value(nb_difference *self, const unsigned char *here, const unsigned char *there, size_t size_bytes,
                          size_t offset_bytes);

// Makes the text of the other fields.
void nbi_difference_describe(nb_difference *self);
