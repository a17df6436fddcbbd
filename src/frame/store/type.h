// SPDX-License-Identifier: MIT
#pragma once

#include "nebula/store.h"
#include "nebula/type.h"

// The values inside a type, without padding: appends them to the fields, from base_bytes on. False: there are more than
// count_max.
bool nbi_type_fields(const nb_type *type, uint32_t base_bytes, nb_store_field *fields, uint32_t count_max,
                     uint32_t *count);
