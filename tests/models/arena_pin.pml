// SPDX-License-Identifier: MIT
// Thread arenas: one coordinator advances frames over slots {number, pins}, one owner fills its arena of the current
// frame's slot and resets what is older, readers pin a posted frame and read its block. Two slots, growing to three; a
// frame lives without a pin for one more frame. Sequentially consistent; each line of an atomic block is one word access.
//
// run: two_readers expect pass gcc: -O2
// run: one_reader_twice -DREADERS=1 -DROUNDS=2 -DFRAMES=5 expect pass
// run: advance_ignores_pins -DADVANCE_IGNORES_PINS expect fail
// run: advance_checks_then_stores -DADVANCE_STORES expect fail
// run: pin_checks_then_adds -DPIN_ADDS expect fail
// run: pin_ignores_number -DPIN_IGNORES_NUMBER expect fail
// run: coordinator_resets -DCOORDINATOR_RESETS expect fail

#ifndef READERS
#define READERS 2
#endif
#ifndef FRAMES
#define FRAMES 4
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define SLOTS 3
#define KEPT 2
#define NO_FRAME 255

byte number[SLOTS];    // of a slot's word
byte pins[SLOTS];      // the rest of the word; NO_FRAME: none lives there
byte current_number;   // the published frame, one word
byte current_slot;
byte post_number;      // the block the owner shows, one word; NO_FRAME: none yet
byte post_slot;
byte content[SLOTS];   // of the owner's arena in each slot: the frame its block was written in; NO_FRAME: reset
byte opened = KEPT;

#ifdef ADVANCE_IGNORES_PINS
#define UNPINNED(p) (true)
#else
#define UNPINNED(p) (p == 0)
#endif
#define OLD(n, next) (n + KEPT <= next)

proctype coordinator() {
    byte next, slot, seen_number, seen_pins;
    bool is_open;
    next = 1;
    do
    :: next <= FRAMES ->
        d_step { is_open = false; slot = 0; }
        do
        :: slot < opened && !is_open ->
            atomic { seen_number = number[slot]; seen_pins = pins[slot]; }
            if
            :: seen_pins == NO_FRAME || (UNPINNED(seen_pins) && OLD(seen_number, next)) ->
#ifdef COORDINATOR_RESETS
                content[slot] = NO_FRAME;
#endif
#ifdef ADVANCE_STORES
                atomic { number[slot] = next; pins[slot] = 0; }
                is_open = true;
#else
                atomic {
                    if
                    :: number[slot] == seen_number && pins[slot] == seen_pins ->
                        number[slot] = next; pins[slot] = 0; is_open = true
                    :: else
                    fi
                }
#endif
            :: else
            fi;
            if
            :: is_open -> atomic { current_number = next; current_slot = slot; seen_number = 0; seen_pins = 0; }
            :: else -> atomic { slot++; seen_number = 0; seen_pins = 0; }
            fi
        :: else -> break
        od;
        if
        :: !is_open && opened < SLOTS ->
            atomic { number[opened] = next; pins[opened] = 0; }
            atomic { current_number = next; current_slot = opened; }
            d_step { opened++; is_open = true; }
        :: else
        fi;
        // Full: the frame stays open. A later advance is the same as none, seen from the others.
        if
        :: is_open -> next++
        :: else -> break
        fi
    :: else -> break
    od
}

proctype owner() {
    byte round, frame, slot;
    byte stamp[SLOTS];
    stamp[0] = NO_FRAME; stamp[1] = NO_FRAME; stamp[2] = NO_FRAME;
    do
    :: round < FRAMES ->
        atomic { frame = current_number; slot = current_slot; }
        if
        :: stamp[slot] != frame -> content[slot] = NO_FRAME; stamp[slot] = frame
        :: else
        fi;
        content[slot] = frame;
        atomic { post_number = frame; post_slot = slot; }
        d_step { round++; frame = 0; slot = 0; }
    :: else -> break
    od
}

proctype reader() {
    byte frame, slot, seen_number, seen_pins;
    bool is_pinned;
    byte round;
    do
    :: round < ROUNDS ->
        atomic { round++; frame = post_number; slot = post_slot; }
        if
        :: frame != NO_FRAME ->
            is_pinned = false;
            do
            :: !is_pinned ->
                atomic { seen_number = number[slot]; seen_pins = pins[slot]; }
                if
                :: seen_pins == NO_FRAME -> break
#ifndef PIN_IGNORES_NUMBER
                :: seen_pins != NO_FRAME && seen_number != frame -> break
                :: seen_pins != NO_FRAME && seen_number == frame ->
#else
                :: seen_pins != NO_FRAME ->
#endif
#ifdef PIN_ADDS
                    pins[slot] = pins[slot] + 1;
                    is_pinned = true
#else
                    atomic {
                        if
                        :: number[slot] == seen_number && pins[slot] == seen_pins ->
                            pins[slot] = seen_pins + 1; is_pinned = true
                        :: else
                        fi
                    }
#endif
                fi
            :: else -> break
            od;
            if
            :: is_pinned ->
                assert(content[slot] == frame);
                assert(content[slot] == frame);
                assert(number[slot] == frame && pins[slot] > 0);
                pins[slot] = pins[slot] - 1
            :: else
            fi;
            // Dead values would only multiply states.
            d_step { frame = 0; slot = 0; seen_number = 0; seen_pins = 0; is_pinned = false; }
        :: else
        fi
    :: else -> break
    od
}

init {
    byte i;
    atomic {
        pins[1] = NO_FRAME; pins[2] = NO_FRAME;
        content[0] = NO_FRAME; content[1] = NO_FRAME; content[2] = NO_FRAME;
        post_number = NO_FRAME;
        run coordinator();
        run owner();
        for (i : 1 .. READERS) { run reader() }
    }
}
