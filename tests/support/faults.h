// SPDX-License-Identifier: MIT
#pragma once

// Calls of src/platform that fail on demand, in every test program: the linker hands them to tests/support/faults.c
// (--wrap), which counts them and asks here. A case starts with everything zero: nothing fails.
//
//     os.pages.fail_at = 3; // the third call that reserves, commits or protects pages fails
//
// Other stand-ins, five at most:
//   tests/explore/explore.c                 the whole platform, for the explorer and the simulation
//   tests/record/test_save_file.c           files, through the table that modules/record has for them
//   tests/gpu/vulkan/test_vulkan_engine.c   functions of Vulkan, in the table they are loaded into, as does
//                                           tests/window/test_vulkan_window.c

#include "support/support.h"

// Of one kind of call: counts since the case began, or since the case set call_count to 0.
typedef struct test_fault {
    nb_atomic_u64 call_count;
    uint64_t fail_at;               // this call fails (1 = the first); 0 = none
    uint64_t fail_from, fail_until; // these fail, the last one excluded; from 0 = none, until 0 = for ever
} test_fault;

typedef struct test_os {
    test_fault pages;        // reserve, commit and protect together
    test_fault protects;     // protect alone
    nbi_page_access protect; // only calls that ask for this access fail; NBI_PAGE_NONE = any
    test_fault threads;
    const char *thread_name; // only threads of this name count; NULL = all
    nb_atomic_u64 reserved_bytes;
    nb_atomic_u32 reserved_count, started_count;
    nb_atomic_u64 clock_offset_ns;                // added to the clock
    void (*change_program)(nbi_program *program); // changes what nbi_program_get returns; NULL = nothing
} test_os;

extern test_os os;

// While set, time hardly passes for the calling thread: its tasks count as short on any machine.
extern _Thread_local bool is_clock_slow;

static inline void os_reset(void) { memset(&os, 0, sizeof os); }
