// SPDX-License-Identifier: MIT
#pragma once

// A store's saved bytes, read piece by piece: whatever they say, nothing behind their end is read.

#include "store.h"

typedef struct nbi_reader {
    const unsigned char *next;
    size_t left_bytes;
    bool is_short; // more was asked for than there is
} nbi_reader;

// Where the parts of one saved table lie.
typedef struct nbi_saved_table {
    uint32_t row_count, used_count;
    const unsigned char *header, *generations, *links, *entities;
    const unsigned char *incarnations; // NULL in a file
    const unsigned char *marks;        // NULL without interpolated columns
    const unsigned char *columns;      // the simulated ones, one after the other
} nbi_saved_table;

// Checks the head of saved bytes. NB_ERR_UNSUPPORTED, NB_ERR_RANGE: reported in the name of `function`.
nb_result nbi_saved_open(const nbi_store *self, const void *bytes, size_t size_bytes, const char *function,
                         nbi_reader *body, nb_save_kind *kind);

// The parts of the next table, which is this one. False: it cannot be.
bool nbi_saved_table_take(nbi_reader *from, const nbi_table *table, nb_save_kind kind, nbi_saved_table *out);

// One table as it is, incarnations too: the size, and the bytes where `out` is not NULL. Of a local one all columns.
size_t nbi_table_save(const nbi_table *table, unsigned char *out);

// The same rows again. False: those are no bytes of this table; nothing has changed.
bool nbi_table_load(nbi_store *self, nbi_table *table, const void *bytes, size_t size_bytes);
