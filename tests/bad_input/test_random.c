// SPDX-License-Identifier: MIT
// nebula/random.h: ranges that hold nothing.

#include "bad_input/bad_input.h"

#include "nebula/random.h"

TEST(random_refuses_an_empty_range) {
    nb_random random = nb_random_make(1, 2, 3);
    refused_default(0, NB_ITEM_BASE_ARGUMENT, nb_random_range(random, 0, 0));
    refused_default(5, NB_ITEM_BASE_ARGUMENT, nb_random_between(random, 0, 5, 4));
    refused_default(INT64_MAX, NB_ITEM_BASE_ARGUMENT, nb_random_between(random, 0, INT64_MAX, INT64_MIN));
    accepted(0, nb_random_range(random, 0, 1));
    accepted(5, nb_random_between(random, 0, 5, 5));
}
