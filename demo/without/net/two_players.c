// SPDX-License-Identifier: MIT
// The demo without the module net: `--lag` and its siblings are refused.

#include "../../net/two_players.h"

#include <stdio.h>

int players_run(const demo_options *options, players_result *result) {
    (void)options, (void)result;
    fprintf(stderr, "nebula-demo: built without the module net: there are no players\n");
    return 1;
}
