// SPDX-License-Identifier: MIT
#pragma once

// Arenas of every kind for their tests: over pages or a buffer, with and without checks.

#include "support/support.h"

#include "nebula/arena.h"

#define BUFFER_BYTES 8192

typedef struct kind {
    bool is_buffer;
    nb_arena_checks checks;
} kind;

static const kind kinds[] = {
    {false, NB_ARENA_CHECKS_OFF},
    {false, NB_ARENA_CHECKS_ON},
    {true, NB_ARENA_CHECKS_OFF},
    {true, NB_ARENA_CHECKS_ON},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static _Alignas(64) unsigned char buffer[BUFFER_BYTES];
static test_log arena_log;

static inline void arena_open(nb_arena *arena, kind which, size_t capacity_bytes, nb_arena_policy policy) {
    memset(&arena_log, 0, sizeof arena_log);
    assert_true(!which.is_buffer || capacity_bytes <= BUFFER_BYTES);
    nb_arena_desc desc = {
        .buffer = which.is_buffer ? buffer : NULL,
        .capacity_bytes = capacity_bytes,
        .policy = policy,
        .checks = which.checks,
        .hooks = test_hooks(&arena_log, NULL),
    };
    assert_int_equal(nb_arena_init(arena, &desc), NB_OK);
    assert_true(nb_arena_is_valid(arena));
}

static inline void arena_close(nb_arena *arena) {
    assert_true(nb_arena_is_valid(arena));
    assert_int_equal(nb_arena_deinit(arena), NB_OK);
}

static inline nb_arena_stats stats_of(const nb_arena *arena) {
    nb_arena_stats stats = nb_arena_stats_get(arena);
    assert_int_equal(stats.capacity_bytes, nb_arena_capacity(arena)); // not the zeros of a bad arena
    return stats;
}

static inline bool is_aligned(const void *pointer, size_t alignment) { return (uintptr_t)pointer % alignment == 0; }
