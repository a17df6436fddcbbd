// SPDX-License-Identifier: MIT
// Timelines under every schedule: waits beside signals, objects retired beside a reclaim, the end of the set.

#include "explore.h"

#include "nebula/timeline.h"
#include "platform/platform.h"

#define OBJECT_MAX 16

typedef struct room {
    nb_timelines *set;
    nb_timeline *cpu, *gpu;
    uint32_t destroyed_counts[OBJECT_MAX];
    uint32_t last_of_thread[4]; // objects of one thread end in its order
    bool is_retired[OBJECT_MAX];
    bool is_gone;
} room;

typedef struct cargo {
    room *room;
    uint32_t thread, number;
    uint64_t value;
} cargo;

static cargo cargos[OBJECT_MAX]; // refilled by each schedule's setup

static void open_set(void *user, uint32_t retire_count_max) {
    room *r = user;
    nb_timelines_desc desc = {.timeline_count_max = 2, .retire_count_max = retire_count_max, .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_timelines_create(&desc, &r->set) == NB_OK);
    EXPLORE_CHECK(nb_timelines_open(r->set, "cpu", &r->cpu) == NB_OK);
    EXPLORE_CHECK(nb_timelines_open(r->set, "gpu", &r->gpu) == NB_OK);
    for (uint32_t i = 0; i < OBJECT_MAX; ++i) cargos[i] = (cargo){.room = r, .thread = i / 4, .number = i % 4 + 1};
}

static void open_large(void *user) { open_set(user, 8); }
static void open_small(void *user) { open_set(user, 2); }

static void close_set(void *user) {
    room *r = user;
    if (!r->is_gone) {
        EXPLORE_CHECK(nb_timeline_signal(r->gpu, 100) == NB_OK);
        EXPLORE_CHECK(nb_timelines_reclaim(r->set, 0, NULL) == NB_OK);
        nb_timelines_stats stats = nb_timelines_stats_get(r->set);
        EXPLORE_CHECK(stats.pending_count == 0 && stats.retire_count == stats.reclaim_count);
        EXPLORE_CHECK(nb_timelines_destroy(r->set) == NB_OK);
    }
    for (uint32_t i = 0; i < OBJECT_MAX; ++i) EXPLORE_CHECK(r->destroyed_counts[i] == (r->is_retired[i] ? 1u : 0u));
}

static void destroy_cargo(void *object, void *user) {
    cargo *c = object;
    room *r = user;
    EXPLORE_CHECK(r == c->room);
    EXPLORE_CHECK(r->last_of_thread[c->thread] < c->number);
    r->last_of_thread[c->thread] = c->number;
    ++r->destroyed_counts[c - cargos];
}

// --- waits ---

static void wait_beside_signals(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        nb_timeline_signal(r->gpu, 1);
        nb_timeline_signal(r->gpu, 3);
        return;
    }
    EXPLORE_CHECK(nb_timeline_wait(r->gpu, index, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_timeline_value(r->gpu) >= index);
}

static void two_owners(void *user, uint32_t index) {
    room *r = user;
    if (index < 2) {
        // Whoever is later finds the value above its own.
        nb_result result = nb_timeline_signal(r->gpu, 2 + index);
        EXPLORE_CHECK(result == NB_OK || (index == 0 && result == NB_ERR_RANGE));
        EXPLORE_CHECK(nb_timeline_value(r->gpu) >= 2 + index);
        return;
    }
    EXPLORE_CHECK(nb_timeline_wait(r->gpu, 3, NB_NEVER_NS) == NB_OK);
}

static void wait_with_a_deadline(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        nb_timeline_signal(r->gpu, 1);
        return;
    }
    uint64_t deadline_ns = index == 1 ? nbi_clock_now_ns() + explore_random() % 20000 : NB_NEVER_NS;
    nb_result result = nb_timeline_wait(r->gpu, 1, deadline_ns);
    EXPLORE_CHECK(result == NB_OK || (index == 1 && result == NB_TIMEOUT));
    EXPLORE_CHECK(result == NB_OK || nbi_clock_now_ns() >= deadline_ns);
}

static void waiter_destroys(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        nb_timeline_signal(r->gpu, 1);
        return;
    }
    EXPLORE_CHECK(nb_timeline_wait(r->gpu, 1, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_timelines_destroy(r->set) == NB_OK);
    r->is_gone = true;
}

// --- objects ---

static void retire_one(room *r, uint32_t thread, uint32_t number, uint64_t value) {
    cargo *c = &cargos[thread * 4 + number - 1];
    c->value = value;
    // Before the call: it may be destroyed before this thread goes on.
    r->is_retired[c - cargos] = true;
    nb_result result = nb_timeline_retire(r->gpu, value, c, destroy_cargo, r);
    EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
    if (result != NB_OK) r->is_retired[c - cargos] = false;
}

static void retire_beside_reclaim(void *user, uint32_t index) {
    room *r = user;
    if (index > 0) {
        for (uint32_t number = 1; number <= 3; ++number) retire_one(r, index, number, number);
        return;
    }
    for (uint64_t value = 1; value <= 3; ++value) {
        nb_timeline_signal(r->gpu, value);
        uint32_t count = 0;
        EXPLORE_CHECK(nb_timelines_reclaim(r->set, value == 2 ? 1 : 0, &count) == NB_OK);
        EXPLORE_CHECK(value != 2 || count <= 1);
        for (uint32_t i = 0; i < OBJECT_MAX; ++i)
            EXPLORE_CHECK(r->destroyed_counts[i] == 0 || cargos[i].value <= value);
        EXPLORE_CHECK(nb_timelines_stats_get(r->set).pending_peak <= 8);
    }
}

// Retired first, signalled then: the reclaim that sees the value sees the object.
static void signalled_after_the_retirement(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        retire_one(r, 0, 1, 1);
        nb_timeline_signal(r->gpu, 1);
        return;
    }
    EXPLORE_CHECK(nb_timeline_wait(r->gpu, 1, NB_NEVER_NS) == NB_OK);
    EXPLORE_CHECK(nb_timelines_reclaim(r->set, 0, NULL) == NB_OK);
    EXPLORE_CHECK(r->destroyed_counts[0] == 1);
}

// Two coordinators by mistake: one is told, nothing ends twice.
static void two_reclaim(void *user, uint32_t index) {
    room *r = user;
    if (index == 2) {
        for (uint32_t number = 1; number <= 3; ++number) retire_one(r, 0, number, 0);
        return;
    }
    for (int i = 0; i < 2; ++i) {
        nb_result result = nb_timelines_reclaim(r->set, 0, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_BUSY);
    }
}

EXPLORE(wait_beside_signals, 4, open_large, wait_beside_signals, close_set, sizeof(room))
EXPLORE(signals_of_two_owners, 3, open_large, two_owners, close_set, sizeof(room))
EXPLORE(wait_with_a_deadline, 3, open_large, wait_with_a_deadline, close_set, sizeof(room))
EXPLORE(waiter_destroys_the_set, 2, open_large, waiter_destroys, close_set, sizeof(room))
EXPLORE(retire_beside_reclaim, 3, open_large, retire_beside_reclaim, close_set, sizeof(room))
EXPLORE(retire_into_a_full_set, 3, open_small, retire_beside_reclaim, close_set, sizeof(room))
EXPLORE(signalled_after_the_retirement, 2, open_large, signalled_after_the_retirement, close_set, sizeof(room))
EXPLORE(two_reclaim_at_once, 3, open_large, two_reclaim, close_set, sizeof(room))
