// SPDX-License-Identifier: MIT
// Snapshots whose published slots are read-only memory: an illegal write ends in a fault, whose handler can name the
// region; the publisher still writes, and readers still read. The writes are made in a child process.

#define _POSIX_C_SOURCE 200809L // sigaction, fork

#include "support/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nebula/snapshot.h"

// What the child says with its exit code: sanitizers and cmocka use others.
enum { CHILD_WRITE_WENT_THROUGH = 60, CHILD_FAULT_NAMED = 61, CHILD_FAULT_ELSEWHERE = 62, CHILD_BROKEN = 63 };

static nb_snapshots *watched; // for the handler, which gets no argument of its own

static void on_fault(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    nb_snapshot_place place;
    bool is_there = nb_snapshots_locate(watched, info->si_addr, &place) == NB_OK;
    bool is_named = is_there && strcmp(place.name, "state") == 0 && place.offset_bytes == 5 && place.version != 0;
    _exit(is_named ? CHILD_FAULT_NAMED : CHILD_FAULT_ELSEWHERE);
}

static char live[10000];

static nb_snapshots *ring_open(bool is_protected) {
    nb_snapshots *snapshots = NULL;
    uint32_t region;
    nb_snapshots_desc desc = {.slot_count = 3, .is_protected = is_protected};
    nb_snapshot_region_desc state = {.name = "state", .base = live, .size_bytes = sizeof live};
    if (nb_snapshots_create(&desc, &snapshots) != NB_OK) return NULL;
    return nb_snapshots_region_add(snapshots, &state, &region) == NB_OK ? snapshots : NULL;
}

// Publishes twice and writes to the newest, or to the one before.
static int write_as_child(bool is_protected, bool to_older) {
    watched = ring_open(is_protected);
    if (watched == NULL || nb_snapshots_publish(watched, NULL) != NB_OK) return CHILD_BROKEN;
    const nb_snapshot *older = nb_snapshots_acquire(watched);
    if (nb_snapshots_publish(watched, NULL) != NB_OK) return CHILD_BROKEN;
    const nb_snapshot *newer = nb_snapshots_acquire(watched);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    volatile char *bytes = (volatile char *)(uintptr_t)(to_older ? older : newer)->regions[0].base;
    bytes[5] = 1;
    return CHILD_WRITE_WENT_THROUGH;
}

static int child_exit_code(bool is_protected, bool to_older) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(write_as_child(is_protected, to_older));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(illegal_write_faults_and_is_named) {
    if (!nbi_platform_has(NBI_ABILITY_PAGE_PROTECT)) skip();
    assert_int_equal(child_exit_code(true, false), CHILD_FAULT_NAMED);
    assert_int_equal(child_exit_code(true, true), CHILD_FAULT_NAMED);
}

TEST(without_protection_nothing_faults) { assert_int_equal(child_exit_code(false, false), CHILD_WRITE_WENT_THROUGH); }

TEST(protected_ring_goes_on_publishing) {
    if (!nbi_platform_has(NBI_ABILITY_PAGE_PROTECT)) skip();
    nb_snapshots *snapshots = ring_open(true);
    assert_non_null(snapshots);
    const nb_snapshot *held = NULL;
    for (int i = 0; i < 100; ++i) {
        memset(live, i, sizeof live);
        assert_int_equal(nb_snapshots_publish(snapshots, NULL), NB_OK);
        if (i == 50) held = nb_snapshots_acquire(snapshots);
        const nb_snapshot *snapshot = nb_snapshots_acquire(snapshots);
        assert_memory_equal(snapshot->regions[0].base, live, sizeof live);
        nb_snapshot_release(snapshot);
    }
    assert_int_equal(*(const char *)held->regions[0].base, 50);
    nb_snapshot_release(held);
    assert_int_equal(nb_snapshots_destroy(snapshots), NB_OK);
}
