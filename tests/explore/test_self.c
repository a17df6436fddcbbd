// SPDX-License-Identifier: MIT
// The explorer itself: classic broken protocols that it must find, each within the ordinary number of schedules.

#include "explore.h"

#include <stdio.h>

#include "platform/platform.h"

typedef struct mailbox {
    nb_atomic_u32 is_full, waiters, sequence;
    nb_atomic_u64 counter;
    nb_atomic_u64 *block;
} mailbox;

// The waiter looks, then announces itself; the sender looks for waiters in between: nobody wakes it.
static void lost_wake_up(void *user, uint32_t index) {
    mailbox *box = user;
    if (index == 0) {
        nbi_atomic_store_release_u32(&box->is_full, 1);
        if (nbi_atomic_load_seq_cst_u32(&box->waiters) != 0) {
            nbi_atomic_fetch_add_seq_cst_u32(&box->sequence, 1);
            nbi_unpark(&box->sequence, 1);
        }
        return;
    }
    while (nbi_atomic_load_acquire_u32(&box->is_full) == 0) {
        uint32_t sequence = nbi_atomic_load_acquire_u32(&box->sequence);
        nbi_atomic_fetch_add_seq_cst_u32(&box->waiters, 1);
        nbi_park_until(&box->sequence, sequence, NBI_NEVER_NS);
    }
}

static void lost_update(void *user, uint32_t index) {
    (void)index;
    mailbox *box = user;
    uint64_t before = nbi_atomic_load_relaxed_u64(&box->counter);
    nbi_atomic_store_relaxed_u64(&box->counter, before + 1);
}

static void both_counted(void *user) { EXPLORE_CHECK(((mailbox *)user)->counter.value == 2); }

static void block_make(void *user) {
    nb_hooks hooks = explore_hooks();
    ((mailbox *)user)->block = hooks.allocator.alloc(hooks.allocator.user, sizeof(nb_atomic_u64), 16);
}

static void use_after_free(void *user, uint32_t index) {
    mailbox *box = user;
    nb_hooks hooks = explore_hooks();
    if (index == 0) {
        hooks.allocator.free(hooks.allocator.user, box->block, sizeof(nb_atomic_u64));
        nbi_atomic_store_release_u32(&box->is_full, 1);
    } else if (nbi_atomic_load_acquire_u32(&box->is_full) == 0) {
        nbi_atomic_fetch_add_relaxed_u64(box->block, 1);
    }
}

static void spin_for_ever(void *user, uint32_t index) {
    mailbox *box = user;
    while (index == 0 && nbi_atomic_load_acquire_u32(&box->is_full) == 0) nbi_cpu_relax();
}

static void leak(void *user, uint32_t index) {
    if (index == 0) block_make(user);
}

static void times_out(void *user, uint32_t index) {
    mailbox *box = user;
    nb_result result = NB_OK;
    while (result != NB_TIMEOUT) result = nbi_park_until(&box->is_full, 0, 5000000 + index);
    EXPLORE_CHECK(nbi_clock_now_ns() >= 5000000 + index);
}

// What is broken is found.
#define FOUND(case_name, ...)                                          \
    TEST(case_name##_is_found) {                                       \
        const explore_test broken = {.name = #case_name, __VA_ARGS__}; \
        assert_false(explore_passes(&broken));                         \
    }

FOUND(lost_wake_up, 2, NULL, lost_wake_up, NULL, sizeof(mailbox))
FOUND(lost_update, 2, NULL, lost_update, both_counted, sizeof(mailbox))
FOUND(use_after_free, 2, block_make, use_after_free, NULL, sizeof(mailbox))
FOUND(spin_for_ever, 2, NULL, spin_for_ever, NULL, sizeof(mailbox))
FOUND(leak, 1, NULL, leak, NULL, sizeof(mailbox))

EXPLORE(deadlines_pass, 3, NULL, times_out, NULL, sizeof(mailbox))
