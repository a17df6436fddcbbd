// SPDX-License-Identifier: MIT
#pragma once

// Pictures as files.

#include <stdint.h>

#include "nebula/types.h"

// Writes rows from above, four bytes a pixel: red, green, blue, and one that is not kept. The file is there whole or
// not at all. NB_ERR_OS: it could not be written; NB_ERR_UNSUPPORTED: built without stb; NB_ERR_MEMORY, NB_ERR_RANGE.
nb_result png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height);
