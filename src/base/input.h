// SPDX-License-Identifier: MIT
#pragma once

// The private side of the input queue: input.c moves events from senders to frames and ticks, input_held.c knows which
// buttons are down. Folding means that an event reaches frames only, and ticks get the net change of its button.

#include "base.h"
#include "nebula/input.h"

// --- folding ---

// Which events reach frames only. Ticks get what they come to in the end: one event for each button whose state
// changed.
typedef enum nbi_input_fold {
    NBI_INPUT_FOLD_NONE = 0,
    NBI_INPUT_FOLD_EXCESS, // those beyond event_count_max: no tick comes to take them
    NBI_INPUT_FOLD_ALL,
} nbi_input_fold;

// Until the next call.
void nbi_input_fold_set(nb_input *input, nbi_input_fold fold);

// As nb_input_discard, because the game goes on from other state.
void nbi_input_restart(nb_input *input);

// --- held buttons ---

// Buttons that are down for ticks, or were pressed or released in a pause: all keys of a keyboard, a mouse and eight
// pads. A search looks at all of them, but there are few: a hand has five fingers.
#define NBI_HELD_COUNT_MAX 256u

typedef struct nbi_held_button {
    uint64_t timestamp_ns, arrival; // of the newest event that was folded
    uint32_t code;
    uint16_t device;
    bool is_down;    // for ticks
    bool is_unsure;  // the game may have other state since
    bool is_folded;  // an event was folded that no tick knows of
    bool is_pressed; // by that event
} nbi_held_button;

typedef struct nbi_held {
    nbi_held_button buttons[NBI_HELD_COUNT_MAX]; // in any order; each is down or folded
    uint32_t count;
    uint32_t folded_count;
    uint64_t lost_count; // changes of buttons that found no room
} nbi_held;

static inline bool nbi_is_button(const nb_input_event *event) {
    return event->kind == NB_INPUT_PRESS || event->kind == NB_INPUT_RELEASE;
}

// A tick gets the event of a button.
void nbi_held_deliver(nbi_held *held, const nb_input_event *event);

// No tick gets it; `arrival` as of its send.
void nbi_held_fold(nbi_held *held, const nb_input_event *event, uint64_t arrival);

// The game goes on from other state: what ticks got before is not in it.
void nbi_held_mark_unsure(nbi_held *held);

// Whether the event of a button is news for the ticks.
bool nbi_held_is_change(const nbi_held *held, const nb_input_event *event);

// Takes one button that was folded. False: there is none.
bool nbi_held_take(nbi_held *held, nbi_held_button *out);
