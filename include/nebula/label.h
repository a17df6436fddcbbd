// SPDX-License-Identifier: MIT
#pragma once

// Interned names: a label is a small number for a string that was copied into a table, so a name outlives the library
// or buffer it came from. The one rule: a label means something only to the table that gave it out, until that table
// is destroyed.
//
//     nb_labels *labels = NULL;
//     nb_label physics = {0};
//     if (nb_labels_create(NULL, &labels) == NB_OK) {
//         nb_labels_intern(labels, "physics", &physics);
//         printf("%u is %s\n", (unsigned)physics.id, nb_labels_name(labels, physics));
//         nb_labels_destroy(labels);
//     }

#include "nebula/hooks.h"
#include "nebula/types.h"

// Longest name in bytes, without the final zero: labels are shown to people, and a path is not a label.
#define NB_LABEL_SIZE_MAX 255

// Most labels a table may be asked to hold: beyond it somebody interns data instead of names.
#define NB_LABEL_COUNT_MAX ((1u << 20) - 1)

// A name's number; zero is the null label, whose name is "".
typedef struct nb_label {
    uint32_t id;
} nb_label;

typedef struct nb_labels nb_labels;

typedef struct nb_labels_desc {
    uint32_t label_count_max; // names, 1..NB_LABEL_COUNT_MAX; 0 = 4096, some ten times what a large game names
    uint32_t name_bytes_max;  // all names with their final zeros, in bytes; 0 = 32 a label, twice a typical name
    nb_hooks hooks;           // zero = defaults
} nb_labels_desc;

typedef struct nb_labels_stats {
    uint32_t label_count;     // names interned
    uint32_t label_count_max; // as created
    uint32_t name_bytes;      // used by them
    uint32_t name_bytes_max;  // as created
    uint64_t full_count;      // names refused because either limit was reached
} nb_labels_stats;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_labels_desc nb_labels_desc_default(void);

// Creates a table; all its memory is allocated here, in one piece. desc may be NULL.
// Thread: any. Owner: the caller, until nb_labels_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (out is NULL),
// NB_ERR_RANGE.
NB_API nb_result nb_labels_create(const nb_labels_desc *desc, nb_labels **out);

// Gives the label of a name, adding it the first time; the same bytes always give the same label, and "" the null
// label. A known name takes no lock.
// Thread: any. Owner: the name is copied. Fails: NB_FULL (counted; logged the first time), NB_ERR_RANGE (longer than
// NB_LABEL_SIZE_MAX), NB_ERR_MISUSE (NULL).
NB_API nb_result nb_labels_intern(nb_labels *labels, const char *name, nb_label *out);

// The name of a label: "" for the null label, "?" and a report for a number this table never gave out.
// Thread: any. Owner: the table, until nb_labels_destroy. Fails: "?".
NB_API const char *nb_labels_name(const nb_labels *labels, nb_label label);

// How full the table is, and what it was created with.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_labels_stats nb_labels_stats_get(const nb_labels *labels);

// Ends the table and every name it gave out; NULL is fine.
// Thread: one, when no other uses the table. Owner: the table is gone. Fails: never.
NB_API void nb_labels_destroy(nb_labels *labels);

NB_EXTERN_C_END
