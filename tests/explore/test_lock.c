// SPDX-License-Identifier: MIT
// The futex lock under every kind of interleaving.

#include "explore.h"

#include "base/base.h"
#include "base/lock.h"

typedef struct lock_room {
    nbi_lock lock;
    nb_atomic_u32 inside; // how many threads are in the section
    uint64_t count;       // protected by lock
} lock_room;

static void enter_twice(void *user, uint32_t index) {
    (void)index;
    lock_room *room = user;
    for (int round = 0; round < 2; ++round) {
        nbi_lock_acquire(&room->lock);
        EXPLORE_CHECK(nbi_atomic_fetch_add_seq_cst_u32(&room->inside, 1) == 0);
        room->count += 1;
        EXPLORE_CHECK(nbi_atomic_fetch_sub_seq_cst_u32(&room->inside, 1) == 1);
        nbi_lock_release(&room->lock);
    }
}

static void all_entered(void *user) {
    lock_room *room = user;
    EXPLORE_CHECK(room->count == 6);
    EXPLORE_CHECK(room->lock.word.value == 0);
}

// The next holder may free the lock's memory at once: release must not touch it after its exchange.
typedef struct shared_block {
    nbi_lock lock;
    uint32_t users; // protected by lock
} shared_block;

typedef struct block_owner {
    shared_block *block;
} block_owner;

static void block_create(void *user) {
    block_owner *owner = user;
    nb_hooks hooks = explore_hooks();
    owner->block = nbi_alloc(&hooks, sizeof *owner->block, 16, __func__);
    *owner->block = (shared_block){.users = 2};
}

static void last_user_frees(void *user, uint32_t index) {
    (void)index;
    shared_block *block = ((block_owner *)user)->block;
    nbi_lock_acquire(&block->lock);
    bool is_last = --block->users == 0;
    nbi_lock_release(&block->lock);
    nb_hooks hooks = explore_hooks();
    if (is_last) nbi_free(&hooks, block, sizeof *block);
}

EXPLORE(lock_admits_one_at_a_time, .thread_count = 3, .thread = enter_twice, .check = all_entered,
        .user_size_bytes = sizeof(lock_room))
EXPLORE(lock_is_not_touched_after_release, .thread_count = 2, .setup = block_create, .thread = last_user_frees,
        .user_size_bytes = sizeof(block_owner))
