// SPDX-License-Identifier: MIT
#pragma once

// A tally: how much work is outstanding, in one 64-bit word that threads can sleep on. The frames of a fence and the
// groups of a scheduler are tallies.
//
//     [ generation 35 | count 23 | turn 4 | closed 1 | mark 1 ]
//
// Who opens a tally holds its first unit, the open unit, until nothing more will be added from outside. Work holds one
// unit each. The count rises only while it is above 0, so 0 is final for the generation; the last unit given back wakes
// everybody who sleeps. Three rules make it safe:
// - A unit names its generation, and a generation with units out is never replaced: late work cannot touch newer work.
// - A sleeper announces itself with an RMW on the word it sleeps on and looks at what that RMW returned, so nothing can
//   come between the look and the sleep.
// - Whoever gives back the last unit uses the word only as an address afterwards: the memory may already be gone.
//
// The futex is the low half: flags, turn, count and 3 bits of generation. The turn changes with each poke and each
// generation, so that a mark put up again by another sleeper does not hide either from one who is on the way to sleep.
// A sleeper preempted on that way for exactly 16 of them, with the mark up and the same count again, sleeps on, and is
// woken with those others.

#include "nebula/atomic.h"

#include "../platform/platform.h"

#define NBI_TALLY_MARK ((uint64_t)1)
#define NBI_TALLY_CLOSED ((uint64_t)2)
#define NBI_TALLY_TURN ((uint64_t)4)
#define NBI_TALLY_TURN_MASK (15 * NBI_TALLY_TURN)
// All that sleepers and pokes change: what a word is compared without. 0 in it: nobody sleeps.
#define NBI_TALLY_WAITED (NBI_TALLY_MARK | NBI_TALLY_TURN_MASK)
#define NBI_TALLY_COUNT_SHIFT 6
#define NBI_TALLY_COUNT_MAX ((1u << 23) - 1)
// Units out at once. Half of what the bits hold, so that threads that overstep it for a moment in nbi_tally_add_held
// cannot reach the generation.
#define NBI_TALLY_UNIT_MAX (NBI_TALLY_COUNT_MAX / 2)
#define NBI_TALLY_GENERATION_SHIFT 29
#define NBI_TALLY_GENERATION_MASK (((uint64_t)1 << 35) - 1)

typedef union nbi_tally {
    nb_atomic_u64 word;
    nb_atomic_u32 halves[2]; // only as the address of a futex
} nbi_tally;

static inline uint32_t nbi_tally_count(uint64_t word) {
    return (uint32_t)(word >> NBI_TALLY_COUNT_SHIFT) & NBI_TALLY_COUNT_MAX;
}
// What `count` units are in a word.
static inline uint64_t nbi_tally_units(uint32_t count) { return (uint64_t)count << NBI_TALLY_COUNT_SHIFT; }
static inline uint64_t nbi_tally_generation(uint64_t word) { return word >> NBI_TALLY_GENERATION_SHIFT; }

static inline uint64_t nbi_tally_next_turn(uint64_t word) { return (word + NBI_TALLY_TURN) & NBI_TALLY_TURN_MASK; }

static inline const nb_atomic_u32 *nbi_tally_futex(const nbi_tally *tally) {
    const uint16_t probe = 1;
    return &tally->halves[*(const unsigned char *)&probe == 1 ? 0 : 1];
}

// Starts a generation with its open unit. Only while the count is 0, by the one thread that opens. False: it was
// closed, and stays so. A mark of sleepers is dropped: those of the last generation were woken with its last unit.
static inline bool nbi_tally_open(nbi_tally *tally, uint64_t generation) {
    uint64_t opened = (generation & NBI_TALLY_GENERATION_MASK) << NBI_TALLY_GENERATION_SHIFT | nbi_tally_units(1);
    uint64_t word = nbi_atomic_load_relaxed_u64(&tally->word);
    do {
        if ((word & NBI_TALLY_CLOSED) != 0) return false;
        // Publishes what the opener prepared; read by the acquire load in nbi_tally_add.
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&tally->word, &word, opened | nbi_tally_next_turn(word)));
    return true;
}

// Takes `count` more units of a generation. NB_ERR_STALE: it is over and replaced; NB_CLOSED: its count has reached 0,
// or it was closed; NB_FULL: more than NBI_TALLY_UNIT_MAX. Nothing is changed then.
static inline nb_result nbi_tally_add(nbi_tally *tally, uint64_t generation, uint32_t count) {
    uint64_t word = nbi_atomic_load_acquire_u64(&tally->word);
    do {
        if (nbi_tally_generation(word) != (generation & NBI_TALLY_GENERATION_MASK)) return NB_ERR_STALE;
        if ((word & NBI_TALLY_CLOSED) != 0 || nbi_tally_count(word) == 0) return NB_CLOSED;
        if (nbi_tally_count(word) + (uint64_t)count > NBI_TALLY_UNIT_MAX) return NB_FULL;
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&tally->word, &word, word + nbi_tally_units(count)));
    return NB_OK;
}

// Takes `count` more units where the caller holds one already, so that the generation cannot change and only the bound
// is to be looked at. False: full.
static inline bool nbi_tally_add_held(nbi_tally *tally, uint32_t count) {
    uint64_t word = nbi_atomic_fetch_add_seq_cst_u64(&tally->word, nbi_tally_units(count));
    if (NB_LIKELY(nbi_tally_count(word) + count <= NBI_TALLY_UNIT_MAX)) return true;
    nbi_atomic_fetch_sub_seq_cst_u64(&tally->word, nbi_tally_units(count));
    return false;
}

// Gives back `count` units that the caller holds. True: they were the last ones.
static inline bool nbi_tally_sub(nbi_tally *tally, uint32_t count) {
    const nb_atomic_u32 *futex = nbi_tally_futex(tally);
    // Release: what was done under the units; read by the acquire in nbi_tally_is_over. seq_cst: one order with the RMW
    // that announces a sleeper in nbi_tally_announce. The word is not read after this.
    uint64_t word = nbi_atomic_fetch_sub_seq_cst_u64(&tally->word, nbi_tally_units(count));
    if (nbi_tally_count(word) != count) return false;
    if ((word & NBI_TALLY_MARK) != 0) nbi_unpark(futex, UINT32_MAX);
    return true;
}

// The generation is over: its count was 0 at the moment `word` was read, or it has been replaced since.
static inline bool nbi_tally_is_over(uint64_t word, uint64_t generation) {
    return nbi_tally_count(word) == 0 || nbi_tally_generation(word) != (generation & NBI_TALLY_GENERATION_MASK);
}

// Says that the caller is going to sleep, and returns the word with that mark in it. If the generation is not over and
// there is nothing else to do, nbi_tally_sleep follows.
static inline uint64_t nbi_tally_announce(nbi_tally *tally) {
    return nbi_atomic_fetch_or_seq_cst_u64(&tally->word, NBI_TALLY_MARK) | NBI_TALLY_MARK;
}

// Sleeps until the word differs from `word`, a wake or the deadline. Callers loop. NB_TIMEOUT past the deadline.
static inline nb_result nbi_tally_sleep(const nbi_tally *tally, uint64_t word, uint64_t deadline_ns) {
    return nbi_park_until(nbi_tally_futex(tally), (uint32_t)word, deadline_ns);
}

// Makes everybody who sleeps look again. The next turn changes the word, so one who is on the way to sleep does not
// fall asleep either. The caller knows that the tally's memory is there.
static inline void nbi_tally_poke(nbi_tally *tally) {
    uint64_t word = nbi_atomic_load_relaxed_u64(&tally->word), poked;
    do {
        // Without sleepers too, as the same word: one order with the RMW of a sleeper that announces itself.
        bool is_waited = (word & NBI_TALLY_MARK) != 0;
        poked = is_waited ? (word & ~NBI_TALLY_MARK & ~NBI_TALLY_TURN_MASK) | nbi_tally_next_turn(word) : word;
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&tally->word, &word, poked));
    if ((word & NBI_TALLY_MARK) != 0) nbi_unpark(nbi_tally_futex(tally), UINT32_MAX);
}

// Refuses further units and wakes everybody who sleeps. Units that are out may still be given back.
static inline void nbi_tally_close(nbi_tally *tally) {
    uint64_t word = nbi_atomic_fetch_or_seq_cst_u64(&tally->word, NBI_TALLY_CLOSED);
    if ((word & NBI_TALLY_MARK) != 0) nbi_unpark(nbi_tally_futex(tally), UINT32_MAX);
}
