// SPDX-License-Identifier: MIT
#pragma once

#include "nebula/store.h"
#include "nebula/type.h"

// A value inside a type: a member that is no struct, with the names of the structs around it, such as "to[1].x".
typedef struct nbi_leaf {
    uint32_t offset_bytes, size_bytes;
    nb_kind kind;
    char name[NB_STORE_NAME_SIZE]; // cut where it does not fit
} nbi_leaf;

typedef struct nbi_leaves {
    nbi_leaf *all;
    uint32_t count, count_max;
} nbi_leaves;

// Appends the values of a type that lies at base_bytes and is called `name`; "" = its members need no name in front.
// False: there are more than count_max.
bool nbi_type_leaves(const nb_type *type, uint32_t base_bytes, const char *name, nbi_leaves *out);
