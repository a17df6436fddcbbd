// SPDX-License-Identifier: MIT
#pragma once

// What a library of test_reload.c and its host agree on. All memory is the host's; only code comes and goes.

#include "nebula/engine.h"

#define RELOAD_CALLBACK_COUNT 8u

// Work of one kind, over all libraries.
typedef struct reload_count {
    nb_atomic_u32 begun, ended;
} reload_count;

typedef struct reload_shared {
    reload_count tasks, results, bound, jobs, callbacks, parts;
    nb_label label;        // of everything that a library begins
    nb_atomic_u32 is_held; // tasks wait
    bool is_quiet;         // begin nothing
    uint32_t version;      // of the library whose frame ran last
    uint32_t attach_count, detach_count;
    nb_token_callback tokens[RELOAD_CALLBACK_COUNT];
    nb_token *token_of[RELOAD_CALLBACK_COUNT];
} reload_shared;

static inline void reload_begin(reload_count *count) { nbi_atomic_fetch_add_seq_cst_u32(&count->begun, 1); }
static inline void reload_end(reload_count *count) { nbi_atomic_fetch_add_seq_cst_u32(&count->ended, 1); }

// The one function of a library: the module "game".
#define RELOAD_FUNCTION "reload_module"
typedef nb_module_desc reload_module_fn(reload_shared *shared);
