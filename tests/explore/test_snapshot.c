// SPDX-License-Identifier: MIT
// Snapshots under every kind of interleaving: publication, also failing and skipped, against readers that acquire,
// hold, hand on and release. Bytes are written and read in steps, so that a slot filled too early or read too late
// shows.

#include "explore.h"

#include "nebula/snapshot.h"
#include "platform/platform.h"

#define WORD_COUNT 3
#define HAND_COUNT 2

// The state and what publishes it. Both regions of a snapshot say which publication they belong to.
typedef struct theater {
    nb_snapshots *snapshots;
    uint32_t written, copied;        // regions: by a callback, word by word; by the library
    uint64_t state;                  // of the copied region
    uint64_t state_version;          // of its one block
    bool can_fail;                   // fillings fail now and then
    nb_atomic_u64 hands[HAND_COUNT]; // a snapshot on its way to another thread; 0 = none yet
    nb_atomic_u32 is_given[HAND_COUNT];
    uint32_t full_count, fail_count; // the publisher's
} theater;

static nb_result write_words(void *user, const nb_snapshot_fill *fill, size_t *size_bytes) {
    const theater *t = user;
    nb_atomic_u64 *words = fill->memory;
    bool fails = t->can_fail && explore_random() % 3 == 0;
    for (uint32_t i = 0; i < WORD_COUNT; ++i) {
        if (fails && i == WORD_COUNT - 1) return NB_ERR_STALE;
        nbi_atomic_store_relaxed_u64(&words[i], fill->version);
    }
    *size_bytes = WORD_COUNT * sizeof *words;
    return NB_OK;
}

static void theater_open(theater *t, uint32_t slot_count) {
    nb_hooks hooks = explore_hooks();
    hooks.logger.level_min = NB_LOG_OFF; // skips and failures are wanted here
    nb_snapshots_desc desc = {.slot_count = slot_count, .region_count_max = 2, .hooks = hooks};
    EXPLORE_CHECK(nb_snapshots_create(&desc, &t->snapshots) == NB_OK);
    nb_snapshot_region_desc written = {.name = "written", .size_bytes_max = 64, .fill = write_words, .user = t};
    nb_snapshot_region_desc copied = {
        .name = "copied", .base = &t->state, .size_bytes = sizeof t->state, .block_versions = &t->state_version};
    EXPLORE_CHECK(nb_snapshots_region_add(t->snapshots, &written, &t->written) == NB_OK);
    EXPLORE_CHECK(nb_snapshots_region_add(t->snapshots, &copied, &t->copied) == NB_OK);
    EXPLORE_CHECK(nb_snapshots_disown(t->snapshots) == NB_OK); // setup runs as nobody
}

static void theater_open_three(void *user) { theater_open(user, 3); }
static void theater_open_four(void *user) { theater_open(user, 4); }
static void theater_open_failing(void *user) {
    theater *t = user;
    theater_open(t, 3);
    t->can_fail = true;
}

static nb_result theater_publish(theater *t) {
    uint64_t version = nb_snapshots_version(t->snapshots) + 1;
    t->state = version;
    ++t->state_version;
    nb_result result = nb_snapshots_publish(t->snapshots, &(nb_snapshot_info){.frame = version});
    t->full_count += result == NB_FULL;
    t->fail_count += result == NB_ERR_STALE;
    EXPLORE_CHECK(result == NB_OK || result == NB_FULL || (t->can_fail && result == NB_ERR_STALE));
    EXPLORE_CHECK(nb_snapshots_version(t->snapshots) == version - (result != NB_OK));
    return result;
}

// All of it is of one publication, however long it takes to read.
static void theater_look(const theater *t, const nb_snapshot *snapshot) {
    uint64_t version = snapshot->version;
    const nb_atomic_u64 *words = snapshot->regions[t->written].base;
    const uint64_t *state = snapshot->regions[t->copied].base;
    EXPLORE_CHECK(version != 0 && snapshot->region_count == 2);
    EXPLORE_CHECK(snapshot->regions[t->written].size_bytes == WORD_COUNT * sizeof *words);
    for (uint32_t i = 0; i < WORD_COUNT; ++i) EXPLORE_CHECK(nbi_atomic_load_relaxed_u64(&words[i]) == version);
    EXPLORE_CHECK(*state == version && snapshot->info.frame == version && snapshot->version == version);
}

static void theater_close(void *user) {
    theater *t = user;
    nb_snapshots_stats stats = nb_snapshots_stats_get(t->snapshots);
    EXPLORE_CHECK(stats.pin_count == 0 && stats.pinned_slots == 0 && stats.oldest_pinned_version == 0);
    EXPLORE_CHECK(stats.skip_count == t->full_count && stats.fail_count == t->fail_count);
    EXPLORE_CHECK(stats.publish_count == stats.version);
    EXPLORE_CHECK(nb_snapshots_destroy(t->snapshots) == NB_OK);
}

static void theater_close_never_full(void *user) {
    EXPLORE_CHECK(((theater *)user)->full_count == 0);
    theater_close(user);
}

// --- readers take the newest one again and again ---

static void read_often(const theater *t, uint32_t count) {
    uint64_t newest = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t before = nb_snapshots_version(t->snapshots);
        const nb_snapshot *snapshot = nb_snapshots_acquire(t->snapshots);
        if (snapshot == NULL) {
            EXPLORE_CHECK(before == 0);
            continue;
        }
        EXPLORE_CHECK(snapshot->version >= newest && snapshot->version >= before);
        newest = snapshot->version;
        theater_look(t, snapshot);
        nb_snapshot_release(snapshot);
    }
}

static void readers_thread(void *user, uint32_t index) {
    theater *t = user;
    if (index != 0) {
        read_often(t, 2);
        return;
    }
    for (uint32_t i = 0; i < 5; ++i) theater_publish(t);
}

// --- a reader that knows an old version pins it at the moment the publisher takes its slot ---

static void late_thread(void *user, uint32_t index) {
    theater *t = user;
    if (index != 0) {
        read_often(t, 5);
        return;
    }
    for (uint32_t i = 0; i < 10; ++i) theater_publish(t);
}

// --- a reader holds one while it takes newer ones: two readers then hold all slots but none ---

static void hold_long(const theater *t) {
    const nb_snapshot *old = nb_snapshots_acquire(t->snapshots);
    read_often(t, 2);
    if (old != NULL) theater_look(t, old);
    nb_snapshot_release(old);
}

static void holders_thread(void *user, uint32_t index) {
    theater *t = user;
    if (index != 0) {
        hold_long(t);
        return;
    }
    for (uint32_t i = 0; i < 5; ++i) theater_publish(t);
}

// --- a snapshot goes from hand to hand ---

static void give(theater *t, uint32_t hand, const nb_snapshot *snapshot) {
    nbi_atomic_store_relaxed_u64(&t->hands[hand], (uint64_t)(uintptr_t)snapshot);
    nbi_atomic_store_release_u32(&t->is_given[hand], 1); // read by the acquire load in take
    nbi_unpark(&t->is_given[hand], UINT32_MAX);
}

static const nb_snapshot *take(const theater *t, uint32_t hand) {
    const nb_atomic_u32 *word = &t->is_given[hand];
    while (nbi_atomic_load_acquire_u32(word) == 0) nbi_park_until(word, 0, NB_NEVER_NS);
    return (const nb_snapshot *)(uintptr_t)nbi_atomic_load_relaxed_u64(&t->hands[hand]);
}

static void hand_on_thread(void *user, uint32_t index) {
    theater *t = user;
    if (index == 0) {
        for (uint32_t i = 0; i < 5; ++i) theater_publish(t);
        return;
    }
    if (index == 1) {
        const nb_snapshot *snapshot = nb_snapshots_acquire(t->snapshots);
        for (uint32_t i = 0; i < HAND_COUNT; ++i) give(t, i, snapshot != NULL ? nb_snapshot_retain(snapshot) : NULL);
        nb_snapshot_release(snapshot); // the others' pins keep it
        return;
    }
    const nb_snapshot *snapshot = take(t, index - 2);
    if (snapshot == NULL) return;
    theater_look(t, snapshot);
    nb_snapshot_release(snapshot);
}

EXPLORE(bytes_belong_together, 3, theater_open_three, readers_thread, theater_close, sizeof(theater))
EXPLORE(late_pin_keeps_its_slot, 3, theater_open_three, late_thread, theater_close, sizeof(theater))
EXPLORE(failed_filling_is_never_seen, 3, theater_open_failing, readers_thread, theater_close, sizeof(theater))
EXPLORE(held_snapshot_is_never_written, 3, theater_open_three, holders_thread, theater_close, sizeof(theater))
EXPLORE(two_readers_never_fill_four_slots, 3, theater_open_four, readers_thread, theater_close_never_full,
        sizeof(theater))
EXPLORE(handed_on_snapshot_stays, 4, theater_open_three, hand_on_thread, theater_close, sizeof(theater))
