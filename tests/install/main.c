// SPDX-License-Identifier: MIT
// A user's program: public headers only, whatever way the library was found.
#include <nebula/nebula.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", NB_VERSION_MAJOR, NB_VERSION_MINOR, NB_VERSION_PATCH);
    if (strcmp(nb_version(), expected) != 0) return 1;
    printf("nebula %s, %s\n", nb_version(), nb_result_name(NB_OK));
    return 0;
}
