// SPDX-License-Identifier: MIT
// nebula/bytes.h: integers that have no bytes.

#include "bad_input/bad_input.h"

#include "nebula/bytes.h"

TEST(integers_of_no_bytes_are_zero) {
    silent(nb_bytes_put_u16(NULL, 1), nb_bytes_put_u32(NULL, 1), nb_bytes_put_u64(NULL, 1));
    accepted(0, nb_bytes_get_u16(NULL));
    accepted(0, nb_bytes_get_u32(NULL));
    accepted(0, nb_bytes_get_u64(NULL));
}
