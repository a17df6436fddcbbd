// SPDX-License-Identifier: MIT
// Interning under every kind of interleaving.

#include "explore.h"

#include "nebula/label.h"

#include <string.h>

typedef struct label_room {
    nb_labels *labels;
    uint32_t ids[3][2]; // [thread][name]
} label_room;

static const char *const names[2] = {"physics", "render"};

static void table_create(void *user) {
    nb_labels_desc desc = {.label_count_max = 4, .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_labels_create(&desc, &((label_room *)user)->labels) == NB_OK);
}

static void intern_both(void *user, uint32_t index) {
    label_room *room = user;
    for (uint32_t i = 0; i < 2; ++i) {
        uint32_t which = (i + index) % 2;
        nb_label label = {0};
        EXPLORE_CHECK(nb_labels_intern(room->labels, names[which], &label) == NB_OK);
        EXPLORE_CHECK(strcmp(nb_labels_name(room->labels, label), names[which]) == 0);
        room->ids[index][which] = label.id;
    }
}

static void one_label_each(void *user) {
    label_room *room = user;
    for (uint32_t thread = 1; thread < 3; ++thread) {
        EXPLORE_CHECK(memcmp(room->ids[thread], room->ids[0], sizeof room->ids[0]) == 0);
    }
    EXPLORE_CHECK(nb_labels_stats_get(room->labels).label_count == 2);
    nb_labels_destroy(room->labels);
}

EXPLORE(label_interned_by_three_is_one, .thread_count = 3, .setup = table_create, .thread = intern_both,
        .check = one_label_each, .user_size_bytes = sizeof(label_room))
