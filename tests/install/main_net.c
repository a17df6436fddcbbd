// SPDX-License-Identifier: MIT
// A user's program with the module net.
#include <nebula/link.h>
#include <nebula/netplay.h>
#include <stdio.h>

int main(void) {
    nb_link *link = NULL;
    char text[8];
    size_t size_bytes = 0;
    if (nb_link_create(NULL, &link) != NB_OK || nb_link_send(link, 0, "hello", 5) != NB_OK) return 1;
    if (nb_link_receive(link, 0, text, sizeof text, &size_bytes) != NB_OK) return 1;
    printf("%.*s, %u players\n", (int)size_bytes, text, nb_netplay_desc_default().player_count);
    nb_link_destroy(link);
    return size_bytes == 5 ? 0 : 1;
}
