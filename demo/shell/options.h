// SPDX-License-Identifier: MIT
#pragma once

// The demo's command line.

#include "nebula/loop.h"

// Which device draws the picture.
typedef enum demo_gpu {
    DEMO_GPU_DEFAULT = 0, // Vulkan where there is one, else the null device; none on the virtual clock
    DEMO_GPU_NONE,
    DEMO_GPU_NULL,
    DEMO_GPU_VULKAN,
    DEMO_GPU_COUNT,
} demo_gpu;

typedef struct demo_options {
    uint64_t duration_ns;     // as given; 0 = not
    uint64_t frame_count;     // as given, at the rate of the ticks; 0 = not
    uint64_t tick_count;      // how long to run: the shorter of both, in ticks, so that the end is the same state
    uint64_t seed;            // of the world
    nb_rate tick_rate;        // ticks a second
    nb_rate render_rate;      // frames a second
    uint32_t worker_count;    // as in nb_scheduler_desc: 0 = the machine's, NB_WORKER_COUNT_NONE = none
    uint64_t teleport_ns;     // as given, between teleports beside those of the flight; 0 = never
    uint64_t teleport_ticks;  // the same in ticks
    const char *trace_path;   // where a trace goes; NULL = none
    const char *summary_path; // where the summary goes beside the output; NULL = nowhere
    const char *record_path;  // where a recording goes; NULL = none
    const char *replay_path;  // of a recording to be played again; NULL = none
    const char *script_path;  // of a flight that is flown instead of the built-in one; NULL = none
    uint64_t rewind_ns;       // as given, when time turns; 0 = never
    uint64_t rewind_tick;     // the same in ticks
    uint32_t synctest_depth;  // ticks that each tick simulates again; 0 = none
    bool has_players;         // two of them over a virtual link, with:
    uint64_t lag_ns;          // one way
    uint64_t jitter_ns;       // up to, on top of it
    bool has_jitter;          // it was given
    double loss;              // of messages, 0 to 1
    demo_gpu gpu;
    uint32_t width, height;     // of the picture
    const char *picture_folder; // where pictures of the flight go, where there is no window; NULL = none
    uint32_t quality;           // level that it begins with, see quality.h
    bool is_quality_fixed;      // and that it stays at
    bool is_windowless;         // no window, though there is a display
    bool is_validated;          // with Vulkan's validation layer
    bool is_lockstep;           // on the virtual clock, and frames wait for what is to be drawn
    bool is_virtual;            // a clock that jumps: the same output on every machine
    bool has_tick_lines;        // one line a tick, with its hash
    bool is_help;               // the help was printed; nothing is to be done
} demo_options;

// Reads the command line; strings are argv's. On false one line about the mistake is on stderr, and the program should
// exit with 2.
bool demo_options_read(int argc, char **argv, demo_options *out);
