// SPDX-License-Identifier: MIT
#pragma once

// Runs the game as a player far away would: some inputs come too late and are put right, states are sent that are wrong
// and then right, the host goes back in time and on again, and frames are of any length. What comes out is the hash
// after each tick once nothing can change it any more: the same as if everything had been in time.

#include "game.h"

#define HOST_STATE_BYTES_MAX (1u << 16)
#define HOST_SLOT_COUNT 256u

typedef struct host_desc {
    uint32_t worker_count;
    uint32_t frame_rate; // frames a second; 0 = of irregular lengths
    bool is_in_time;     // nothing is late, nobody goes back
} host_desc;

typedef struct host_slot {
    uint64_t hash;
    uint64_t run;  // how many ticks had run before it
    bool is_wrong; // it got another input than it should have
} host_slot;

typedef struct host_state {
    unsigned char bytes[HOST_STATE_BYTES_MAX];
    size_t size_bytes;
} host_state;

typedef enum host_doubt { DOUBT_NONE, DOUBT_SAVED, DOUBT_WRONG } host_doubt;

typedef struct host {
    host_desc desc;
    nb_engine *engine;
    game game;
    host_slot slots[HOST_SLOT_COUNT]; // by tick
    uint64_t tick_before;             // whose handlers ran last; UINT64_MAX = none
    uint64_t run_count;               // ticks run, without those simulated again
    uint64_t send_next;               // whose events were not sent yet
    uint64_t staged_for;              // whose commands were staged, + 1
    uint64_t now_ns, frame_count;
    uint64_t looked_at; // ticks that were looked at for going back, and for states
    host_doubt doubt;
    uint64_t doubt_tick;
    uint64_t sent_tick;    // of the newest state that was sent
    uint64_t refuse_count; // inputs from before it
    host_state right, wrong;
    uint64_t rewind_count, state_count;
    const char *problem; // the first thing that should not have happened
} host;

// False: out of memory or threads.
bool host_open(host *h, const host_desc *desc);

// One frame. False: see problem.
bool host_frame(host *h);

// Ticks whose hashes are final.
uint64_t host_final_count(const host *h);
uint64_t host_hash(const host *h, uint64_t tick);

// False: see problem.
bool host_close(host *h);
