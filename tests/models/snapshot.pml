// SPDX-License-Identifier: MIT
// Snapshots: one publisher fills free slots {version, pins} in two steps and names the newest in `current`; readers pin
// what `current` names, read both halves of its bytes, hold them across anything, and release. A filling may fail half
// way. The publisher takes any free slot: whatever order the library prefers is among these. Sequentially consistent;
// each atomic block is one word access.
//
// run: two_readers expect pass
// run: four_publishes -DPUBLISHES=4 expect pass
// run: two_readers_twice -DPUBLISHES=4 -DROUNDS=2 expect pass size: full
// run: one_reader_thrice -DREADERS=1 -DROUNDS=3 -DPUBLISHES=5 expect pass
// run: four_slots -DSLOTS=4 expect pass
// run: three_readers -DREADERS=3 expect pass size: full
// run: pin_without_version -DPIN_WITHOUT_VERSION expect fail
// run: pin_checks_then_adds -DPIN_ADDS expect fail
// run: fill_ignores_pins -DFILL_IGNORES_PINS expect fail
// run: take_checks_then_stores -DTAKE_STORES expect fail
// run: take_the_current_slot -DTAKE_CURRENT expect fail
// run: publish_before_filled -DPUBLISH_EARLY expect fail
// run: failed_filling_keeps_its_version -DFAIL_KEEPS_VERSION expect fail
// run: release_stores -DRELEASE_STORES expect fail

#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef PUBLISHES
#define PUBLISHES 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define FILLING 255

byte version[SLOTS];  // of a slot's word; 0: no version
byte pins[SLOTS];     // the rest of the word
byte current_version; // one word; version 0: nothing is published
byte current_slot;
byte low[SLOTS];      // two bytes that belong together
byte high[SLOTS];
byte held[SLOTS];     // readers between pin and release: what the words are checked against

#ifdef FILL_IGNORES_PINS
#define UNPINNED(p) (true)
#else
#define UNPINNED(p) (p == 0)
#endif
#ifdef TAKE_CURRENT
#define TAKEABLE(s) (true)
#else
#define TAKEABLE(s) (current_version == 0 || s != current_slot)
#endif

inline publish_word() {
    atomic { version[slot] = next; pins[slot] = 0; }
    atomic { current_version = next; current_slot = slot; }
}

proctype publisher() {
    byte tries, next, slot, seen_version, seen_pins;
    bool is_taken;
    next = 1;
    do
    :: tries < PUBLISHES ->
        tries++;
        is_taken = false;
        // Any slot; one that turns out to be held is a skip, or another look: the same, seen from the readers.
        select(slot : 0 .. SLOTS - 1);
        if
        :: TAKEABLE(slot) ->
            atomic { seen_version = version[slot]; seen_pins = pins[slot]; }
            if
            :: UNPINNED(seen_pins) ->
#ifdef TAKE_STORES
                atomic { pins[slot] = FILLING; is_taken = true }
#else
                atomic {
                    if
                    :: version[slot] == seen_version && pins[slot] == seen_pins -> pins[slot] = FILLING; is_taken = true
                    :: else
                    fi
                }
#endif
            :: else
            fi
        :: else
        fi;
        if
        :: is_taken ->
#ifdef PUBLISH_EARLY
            publish_word();
#endif
            assert(held[slot] == 0);
            low[slot] = next;
            if
            :: true ->
                assert(held[slot] == 0);
                high[slot] = next;
#ifndef PUBLISH_EARLY
                publish_word();
#endif
                next++
#ifndef PUBLISH_EARLY
            :: true ->
                // The number is given again, to the next try.
#ifdef FAIL_KEEPS_VERSION
                pins[slot] = 0
#else
                atomic { version[slot] = 0; pins[slot] = 0; }
#endif
#endif
            fi
        :: else
        fi;
        d_step { slot = 0; seen_version = 0; seen_pins = 0; is_taken = false; }
    :: else -> break
    od
}

proctype reader() {
    byte round, want, slot, seen_version, seen_pins, newest;
    bool is_pinned;
    do
    :: round < ROUNDS ->
        round++;
        is_pinned = false;
        do
        :: !is_pinned ->
            atomic { want = current_version; slot = current_slot; }
            if
            :: want == 0 -> break
            :: else
            fi;
            do
            :: true ->
                atomic { seen_version = version[slot]; seen_pins = pins[slot]; }
                if
#ifdef PIN_WITHOUT_VERSION
                :: seen_pins == FILLING -> break
                :: seen_pins != FILLING ->
#else
                :: seen_pins == FILLING || seen_version != want -> break
                :: seen_pins != FILLING && seen_version == want ->
#endif
#ifdef PIN_ADDS
                    atomic { pins[slot] = pins[slot] + 1; held[slot]++; is_pinned = true }
                    break
#else
                    atomic {
                        if
                        :: version[slot] == seen_version && pins[slot] == seen_pins ->
                            pins[slot] = seen_pins + 1; held[slot]++; is_pinned = true
                        :: else
                        fi
                    }
                    if
                    :: is_pinned -> break
                    :: else
                    fi
#endif
                fi
            od;
            // Starting again means that a publication came between: readers never wait for the publisher.
            assert(is_pinned || current_version != want)
        :: else -> break
        od;
        if
        :: is_pinned ->
            assert(low[slot] == want);
            assert(high[slot] == want);
            assert(low[slot] == want && version[slot] == want && pins[slot] > 0 && pins[slot] != FILLING);
            assert(want >= newest);
            newest = want;
#ifdef RELEASE_STORES
            seen_pins = pins[slot];
            atomic { pins[slot] = seen_pins - 1; held[slot]-- }
#else
            atomic { pins[slot] = pins[slot] - 1; held[slot]-- }
#endif
        :: else
        fi;
        // Dead values would only multiply states.
        d_step { want = 0; slot = 0; seen_version = 0; seen_pins = 0; is_pinned = false; }
    :: else -> break
    od
}

init {
    byte i;
    atomic {
        run publisher();
        for (i : 1 .. READERS) { run reader() }
    }
}
