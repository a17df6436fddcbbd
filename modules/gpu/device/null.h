// SPDX-License-Identifier: MIT
#pragma once

// What the null backend and its control share.

#include "nebula/gpu_backend.h"
#include "nebula/gpu_null.h"

// Whether a call shows an ordered fault; counts it down where it does not yet. control may be NULL.
bool nbi_null_shows(nb_gpu_null *control, nb_gpu_null_fault fault);
// Objects made and destroyed.
void nbi_null_count(nb_gpu_null *control, int32_t change);
