// SPDX-License-Identifier: MIT
// Whole token trees under every kind of interleaving: wide ones, linked ones, shields and deadlines. Walks let go of
// the lock after every token here.

#include "explore.h"

#include "nebula/token.h"

static nb_token *make_root(const char *label) {
    nb_token_desc desc = {.label = label, .hooks = explore_hooks()};
    nb_token *token = NULL;
    EXPLORE_CHECK(nb_token_create(&desc, &token) == NB_OK);
    return token;
}

static nb_token *make_child(nb_token *parent) {
    nb_token *token = NULL;
    EXPLORE_CHECK(nb_token_child(parent, "child", &token) == NB_OK);
    return token;
}

static nb_token *make_any(nb_token *const *sources, uint32_t count) {
    nb_token_desc desc = {.hooks = explore_hooks()};
    nb_token *token = NULL;
    EXPLORE_CHECK(nb_token_create_any(&desc, sources, count, &token) == NB_OK);
    return token;
}

// A wide tree whose children are released while it is cancelled by two, each of which must find everything cancelled.
#define CROWD 6
typedef struct crowd {
    nb_token *root, *children[CROWD], *kept;
    nb_atomic_u32 token_count;
} crowd;

static void crowd_setup(void *user) {
    crowd *c = user;
    c->root = make_root("root");
    for (int i = 0; i < CROWD; ++i) c->children[i] = make_child(i % 2 == 0 ? c->root : c->children[i - 1]);
    c->kept = make_child(c->root);
}

static void crowd_thread(void *user, uint32_t index) {
    crowd *c = user;
    if (index < 2) {
        for (uint32_t i = index; i < CROWD; i += 2) nb_token_release(c->children[i]);
        return;
    }
    nb_cancel_counts counts = {0};
    nb_token_cancel(c->root, NB_CANCEL_STALE, 0, &counts);
    nbi_atomic_fetch_add_seq_cst_u32(&c->token_count, (uint32_t)counts.token_count);
    EXPLORE_CHECK(nb_token_is_cancelled(c->root) && nb_token_is_cancelled(c->kept));
}

static void crowd_check(void *user) {
    crowd *c = user;
    EXPLORE_CHECK(c->token_count.value >= 2 && c->token_count.value <= CROWD + 2);
    EXPLORE_CHECK(nb_token_child_count(c->root) == 1);
    nb_token_release(c->kept);
    nb_token_release(c->root);
}

// A linked token that is released while both of its sources are cancelled.
typedef struct linkage {
    nb_token *sources[2], *any, *below, *second;
    nb_atomic_u32 token_count;
} linkage;

static void linkage_setup(void *user) {
    linkage *l = user;
    l->sources[0] = make_root("a");
    l->sources[1] = make_root("b");
    l->any = make_any(l->sources, 2);
    l->below = make_child(l->any);
    nb_token *both[2] = {l->below, l->sources[0]};
    l->second = make_any(both, 2);
}

static void linkage_thread(void *user, uint32_t index) {
    linkage *l = user;
    if (index < 2) {
        nb_cancel_counts counts = {0};
        nb_token_cancel(l->sources[index], NB_CANCEL_STALE, 0, &counts);
        nbi_atomic_fetch_add_seq_cst_u32(&l->token_count, (uint32_t)counts.token_count);
        EXPLORE_CHECK(nb_token_is_cancelled(l->second));
        nb_token_release(l->sources[index]);
    } else if (index == 2) {
        nb_token_release(l->any);
        nb_token_release(l->below);
    }
}

static void linkage_check(void *user) {
    linkage *l = user;
    EXPLORE_CHECK(l->token_count.value == 5);
    nb_token_release(l->second);
}

static void linkage_free_thread(void *user, uint32_t index) {
    linkage *l = user;
    if (index < 2) {
        nb_token_cancel(l->sources[index], NB_CANCEL_STALE, 0, NULL);
        nb_token_release(l->sources[index]);
    } else {
        nb_token_release(l->any);
        nb_token_release(l->second);
        nb_token_release(l->below);
    }
}

// Every task is counted by the cancel exactly if the task was let in and had not left.
typedef struct task_room {
    nb_token *root, *child;
    nb_atomic_u32 counted_queued, counted_running, refused_at_start, left;
} task_room;

static void task_setup(void *user) {
    task_room *room = user;
    room->root = make_root("root");
    room->child = make_child(room->root);
}

static void task_thread(void *user, uint32_t index) {
    task_room *room = user;
    if (index < 2) {
        nb_cancel_counts counts = {0};
        nb_token_cancel(index == 0 ? room->root : room->child, NB_CANCEL_STALE, 0, &counts);
        nbi_atomic_fetch_add_seq_cst_u32(&room->counted_queued, (uint32_t)counts.task_queued_count);
        nbi_atomic_fetch_add_seq_cst_u32(&room->counted_running, (uint32_t)counts.task_running_count);
        return;
    }
    if (nb_token_task_enter(room->child) != NB_OK) return;
    if (nb_token_task_start(room->child) == NB_CANCELLED) {
        nbi_atomic_fetch_add_seq_cst_u32(&room->refused_at_start, 1);
        return;
    }
    if (nb_token_is_cancelled(room->child)) nbi_atomic_fetch_add_seq_cst_u32(&room->left, 1);
    nb_token_task_leave(room->child);
}

static void task_check(void *user) {
    task_room *room = user;
    EXPLORE_CHECK(room->refused_at_start.value == room->counted_queued.value);
    EXPLORE_CHECK(room->left.value <= room->counted_running.value + 2);
    nb_token_release(room->child);
    nb_token_release(room->root);
}

// Shields against cancels: whatever the order, all is cancelled when the section is over.
typedef struct shield_room {
    nb_token *root, *any, *section, *below;
} shield_room;

static void shield_setup(void *user) {
    shield_room *room = user;
    room->root = make_root("root");
    room->any = make_any(&room->root, 1);
    room->section = make_child(room->any);
    room->below = make_child(room->section);
}

static void shield_thread(void *user, uint32_t index) {
    shield_room *room = user;
    if (index == 0) {
        nb_token_cancel(room->root, NB_CANCEL_STALE, 0, NULL);
        return;
    }
    nb_token *token = index == 1 ? room->any : room->section;
    if (nb_token_shield_begin(token) == NB_OK) {
        nb_token_shield_end(token, NULL);
    }
}

static void shield_check(void *user) {
    shield_room *room = user;
    EXPLORE_CHECK(nb_token_is_cancelled(room->any) && nb_token_is_cancelled(room->section));
    EXPLORE_CHECK(nb_token_is_cancelled(room->below));
    nb_token_release(room->any);
    nb_token_release(room->below);
    nb_token_release(room->section);
    nb_token_release(room->root);
}

// Deadlines from two threads at once, with one of the tokens being released.
typedef struct deadline_room {
    nb_token *root, *children[3];
    nb_atomic_u32 token_count;
} deadline_room;

static void deadline_setup(void *user) {
    deadline_room *room = user;
    room->root = make_root("root");
    for (int i = 0; i < 3; ++i) room->children[i] = make_child(room->root);
    for (int i = 0; i < 2; ++i) EXPLORE_CHECK(nb_token_set_deadline(room->children[i], 5, 5) == NB_OK);
}

static void deadline_thread(void *user, uint32_t index) {
    deadline_room *room = user;
    if (index < 2) {
        nb_cancel_counts counts = {0};
        nb_token_expire(room->root, 5, 5, &counts);
        nbi_atomic_fetch_add_seq_cst_u32(&room->token_count, (uint32_t)counts.token_count);
    } else {
        nb_token_release(room->children[0]);
        nb_token_set_deadline(room->children[2], 9, 9);
    }
}

static void deadline_check(void *user) {
    deadline_room *room = user;
    EXPLORE_CHECK(room->token_count.value == 1 || room->token_count.value == 2);
    EXPLORE_CHECK(nb_token_is_cancelled(room->children[1]));
    EXPLORE_CHECK(!nb_token_is_cancelled(room->children[2]));
    nb_token_release(room->children[1]);
    nb_token_release(room->children[2]);
    nb_token_release(room->root);
}

EXPLORE(token_released_under_a_walk, 4, crowd_setup, crowd_thread, crowd_check, sizeof(crowd))
EXPLORE(token_linked_is_cancelled_once, 3, linkage_setup, linkage_thread, linkage_check, sizeof(linkage))
EXPLORE(token_linked_ends_under_a_walk, 3, linkage_setup, linkage_free_thread, NULL, sizeof(linkage))
EXPLORE(token_tasks_are_counted_once, 4, task_setup, task_thread, task_check, sizeof(task_room))
EXPLORE(token_shield_passes_on, 3, shield_setup, shield_thread, shield_check, sizeof(shield_room))
EXPLORE(token_deadline_fires_once, 3, deadline_setup, deadline_thread, deadline_check, sizeof(deadline_room))
