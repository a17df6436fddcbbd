// SPDX-License-Identifier: MIT
#pragma once

// Comparing: where two saved states differ, as fields and as one line to read: the first difference, then how many
// ranges or rows there are of its kind, the first of them with the words of both sides, and the names of what else
// differs. Nothing that lives is read or changed but what is declared: providers, tables, columns. The one rule: both
// were saved by what is registered now.
//
//     static uint32_t score = 3;
//     static unsigned char before[256], after[256];
//     size_t before_bytes = 0, after_bytes = 0;
//     nb_states *states = NULL;
//     nb_provider_desc desc = {.name = "score", .data = &score, .size_bytes = sizeof score};
//     if (nb_states_create(NULL, &states) != NB_OK || nb_states_add(states, &desc, NULL) != NB_OK) return 1;
//     nb_states_save(states, before, sizeof before, &before_bytes);
//     score = 4;
//     nb_states_save(states, after, sizeof after, &after_bytes);
//     nb_difference difference;
//     nb_result result = nb_states_compare(states, before, before_bytes, after, after_bytes, &difference);
//     if (result == NB_OK) printf("%s\n", difference.text); // score: byte 0 of 4: 03 here, 04 there
//     nb_states_destroy(states);

#include "nebula/state.h"
#include "nebula/store.h"
#include "nebula/types.h"

// Bytes of a value that are kept: a vector of four floats, or a key with its number.
#define NB_DIFFERENCE_VALUE_SIZE 16

// Ranges that are listed; further ones are counted.
#define NB_DIFFERENCE_RANGE_MAX 8

// Names of what else differs, as far as there is room.
#define NB_DIFFERENCE_OTHERS_SIZE 192

// Three names of 63 bytes, two entities, two values, the ranges, the others, and the words between them.
#define NB_DIFFERENCE_TEXT_SIZE 1280

typedef enum nb_difference_kind {
    NB_DIFFERENCE_NONE = 0,
    NB_DIFFERENCE_BYTES,     // bytes at an offset of what a provider saved
    NB_DIFFERENCE_SIZE,      // a provider saved more: the same as far as the shorter one goes
    NB_DIFFERENCE_VALUE,     // a column has another value in a row
    NB_DIFFERENCE_ROW_COUNT, // a table has more or fewer rows
    NB_DIFFERENCE_ROW_ORDER, // a row belongs to another entity
    NB_DIFFERENCE_TELEPORT,  // a row's teleport mark
    NB_DIFFERENCE_HANDLES,   // the rows are the same, but entities to come will be others
    NB_DIFFERENCE_KIND_COUNT,
} nb_difference_kind;

// Bytes that differ, in one row of them: less than a word apart; or the value of one row of a column.
typedef struct nb_difference_range {
    size_t offset_bytes; // in what the provider saved; of VALUE in the value, from the first byte that differs
    size_t size_bytes;
    uint32_t row;         // of VALUE; else UINT32_MAX
    uint64_t here, there; // the aligned word that the range begins in, little-endian; a shorter value as it is
} nb_difference_range;

// "Here" is the first of the two that were compared, "there" the second.
typedef struct nb_difference {
    nb_difference_kind kind;
    char provider[NB_PROVIDER_NAME_SIZE_MAX + 1]; // whose state it is; "world" from nb_store_compare
    char table[NB_PROVIDER_NAME_SIZE_MAX + 1];    // "" for BYTES and SIZE, unless the provider tells
    char column[NB_PROVIDER_NAME_SIZE_MAX + 1];   // of VALUE; else "", unless the provider tells
    // In a table with a type: the value inside the column, such as "x" of a pose; "" = the column is the value.
    char member[NB_PROVIDER_NAME_SIZE_MAX + 1];
    nb_kind value_kind;                  // of here and there, in a table with a type
    bool is_single;                      // the table is one struct with a type: the text leaves out column and row
    uint32_t row;                        // of VALUE, TELEPORT, ROW_ORDER; the first other one of ROW_COUNT
    nb_entity entity_here, entity_there; // of that row; null where there is none
    uint64_t count_here, count_there;    // rows of the table; bytes of the provider for BYTES and SIZE
    uint64_t row_count;                  // rows of the table in which this column, entity or mark differs
    uint64_t column_count;               // columns of all tables that differ in rows of the same entities
    size_t offset_bytes;  // of the first byte that differs, in the value (of the member) or the provider's bytes
    size_t size_bytes;    // of the whole value; 0 = there is none
    uint32_t value_bytes; // how many of here and there are filled
    // The value from its beginning where it fits; else from the first byte that differs.
    unsigned char here[NB_DIFFERENCE_VALUE_SIZE], there[NB_DIFFERENCE_VALUE_SIZE];
    // All that differs of BYTES in this provider, of VALUE in this column; the first ones are listed.
    nb_difference_range ranges[NB_DIFFERENCE_RANGE_MAX];
    uint64_t range_count;     // of all
    uint64_t differing_bytes; // of BYTES: in all ranges
    uint32_t provider_count;  // providers that differ
    // "provider, provider" or, of VALUE, "table.column, table.column": those that differ beside this one.
    char others[NB_DIFFERENCE_OTHERS_SIZE];
    char text[NB_DIFFERENCE_TEXT_SIZE]; // all of it in one line
} nb_difference;

NB_EXTERN_C_BEGIN

// Compares two results of nb_states_save. *out names the first difference in the order of providers, tables, columns
// and rows, with all ranges of that provider; of a provider with `locate` what that tells. The bytes may come from
// anywhere.
// Thread: the registry's. Owner: the caller's bytes are read; *out is a value, written on NB_OK alone. Fails: NB_EMPTY
// (they are the same), NB_ERR_UNSUPPORTED (other providers or layouts, or no save at all), NB_ERR_RANGE (cut short, or
// changed on the way), NB_ERR_MISUSE, what a provider's locate returned.
NB_API nb_result nb_states_compare(const nb_states *states, const void *here, size_t here_bytes, const void *there,
                                   size_t there_bytes, nb_difference *out);

// Compares two results of nb_store_save, of either kind; incarnations do not count.
// Thread: any, while no table is declared. Owner: as nb_states_compare. Fails: NB_EMPTY (they are the same),
// NB_ERR_UNSUPPORTED (another layout), NB_ERR_RANGE (cut short or damaged), NB_ERR_MISUSE.
NB_API nb_result nb_store_compare(const nb_store *world, const void *here, size_t here_bytes, const void *there,
                                  size_t there_bytes, nb_difference *out);

NB_EXTERN_C_END
