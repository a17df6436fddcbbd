// SPDX-License-Identifier: MIT
// nebula/phase.h: phases that are none.

#include "bad_input/bad_input.h"

#include "nebula/phase.h"

TEST(phases_that_are_none_give_the_row_of_none) {
    accepted(NB_PHASE_NONE, nb_phase_info_get((nb_phase)77)->phase);
    accepted(NB_PHASE_NONE, nb_barrier_phase(77));
    accepted(0, nb_barrier_name(-5)[0]);
    accepted('-', nb_phase_category_letter((nb_phase_category)77));
    accepted(false, nb_phase_may_mutate((nb_phase)77, NB_LAYER_GAME, NB_CAPABILITY_ALL));
    accepted(false, nb_phase_has_capability((nb_phase)-3, NB_CAPABILITY_SUBMIT));
}
