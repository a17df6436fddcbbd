// SPDX-License-Identifier: MIT
// A model of the deque in src/tasks/queue.h: one owner pushes and takes the newest, thieves take the oldest.
//
// The owner pushes ITEMS entries in all, and pops whenever it likes; THIEVES thieves look and take. Every atomic access
// is one step. Indices are bytes that start two below their wrap. The owner's plain store to bottom goes through a store
// buffer and reaches the others any time later; its exchanges empty the buffer. Checked: every entry comes out exactly
// once, none while it is not in, and in the end the deque is empty.
//
// By hand: spin -a -DCAP=2 -DITEMS=4 -DTHIEVES=2 deque.pml; gcc -O2 -DSAFETY pan.c -o pan; ./pan -m1000000
// States: three_thieves 3.4 M, two_thieves 0.6 M, one_cell 0.2 M, four_cells 0.1 M.
//
// run: two_thieves    -DCAP=2 -DITEMS=4 -DTHIEVES=2 expect pass
// run: three_thieves  -DCAP=2 -DITEMS=3 -DTHIEVES=3 expect pass gcc: -O2
// run: one_cell       -DCAP=1 -DITEMS=4 -DTHIEVES=2 expect pass
// run: four_cells     -DCAP=4 -DITEMS=5 -DTHIEVES=1 expect pass
//
// Broken on purpose; each must be refuted:
// run: last_without_cas     -DCAP=2 -DITEMS=2 -DTHIEVES=1 -DLAST_WITHOUT_CAS expect fail
// run: take_without_cas     -DCAP=2 -DITEMS=2 -DTHIEVES=2 -DTAKE_WITHOUT_CAS expect fail
// run: pop_with_plain_store -DCAP=2 -DITEMS=3 -DTHIEVES=1 -DPOP_STORES expect fail
// run: bottom_read_first    -DCAP=2 -DITEMS=3 -DTHIEVES=1 -DBOTTOM_FIRST expect fail
// run: push_when_full       -DCAP=1 -DITEMS=3 -DTHIEVES=1 -DNO_FULL expect fail
// run: unsigned_compare     -DCAP=2 -DITEMS=3 -DTHIEVES=1 -DUNSIGNED expect fail
// run: bottom_not_restored  -DCAP=2 -DITEMS=3 -DTHIEVES=1 -DNOT_RESTORED expect fail

#ifndef CAP
#define CAP 2
#define ITEMS 4
#define THIEVES 2
#endif

#define FIRST 254
#define NONE 0
// The difference of two indices, as what it is modulo 256.
#define AHEAD(a, b) (((a) - (b) + 512) % 256)
#ifdef UNSIGNED
#define IS_ABOVE(difference) ((difference) != 0)
#else
#define IS_ABOVE(difference) ((difference) != 0 && (difference) < 128)
#endif

byte top = FIRST;
byte bottom = FIRST; // in memory
byte own = FIRST;    // as the owner sees it
bool is_buffered;    // `own` has not reached the memory
byte cells[CAP];
byte taken[ITEMS + 1];
bool is_through;
byte gone_count;

#define NOTE(entry)             \
    d_step {                    \
        assert(entry != NONE);  \
        assert(!taken[entry]);  \
        taken[entry] = 1;       \
        entry = NONE            \
    }

// An RMW of the owner on bottom: everything written before is there first.
inline exchange_bottom(value) {
    d_step {
        own = value;
        bottom = own;
        is_buffered = false
    }
}

// A plain store of the owner: the buffer keeps one, an older one must have reached the memory.
inline store_bottom(value) {
    atomic {
        !is_buffered;
        own = value;
        is_buffered = true
    }
}

inline push(entry) {
    t = top;
#ifdef NO_FULL
    was_full = false;
#else
    was_full = AHEAD(own, t) >= CAP;
#endif
    if
    :: was_full
    :: else ->
        cells[own % CAP] = entry;
        exchange_bottom((own + 1) % 256)
    fi
}

inline take_last() {
    got = cells[own % CAP];
#ifndef LAST_WITHOUT_CAS
    d_step {
        if
        :: top == t -> top = (t + 1) % 256
        :: else -> got = NONE
        fi
    }
#endif
}

inline pop() {
    got = NONE;
#ifdef POP_STORES
    store_bottom((own + 255) % 256);
#else
    exchange_bottom((own + 255) % 256);
#endif
    t = top;
    if
    :: IS_ABOVE(AHEAD(own, t)) -> got = cells[own % CAP]
    :: else ->
        if
        :: own == t -> take_last()
        :: else
        fi;
#ifndef NOT_RESTORED
        store_bottom((own + 1) % 256)
#endif
    fi;
    if
    :: got != NONE -> NOTE(got)
    :: else
    fi
}

active proctype owner() {
    byte next = 1, t, got;
    bool was_full;
    do
    :: next <= ITEMS ->
        push(next);
        if
        :: was_full -> pop()
        :: else -> next++
        fi
    :: next <= ITEMS -> pop()
    :: next > ITEMS -> break
    od;
    // Takes what is left. Empty means that thieves have the rest.
    do
    :: pop();
        if
        :: AHEAD(own, top) == 0 || AHEAD(own, top) >= 128 -> break
        :: else
        fi
    od;
    is_through = true
}

active proctype buffer() {
    do
    :: d_step { is_buffered -> bottom = own; is_buffered = false }
    :: is_through && !is_buffered -> break
    od
}

active [THIEVES] proctype thief() {
    byte t, b, got;
    do
    :: is_through -> break
    :: true ->
#ifdef BOTTOM_FIRST
        b = bottom;
        t = top;
#else
        t = top;
        b = bottom;
#endif
        if
        :: !IS_ABOVE(AHEAD(b, t))
        :: else ->
            got = cells[t % CAP];
#ifdef TAKE_WITHOUT_CAS
            if
            :: top == t ->
                top = (t + 1) % 256;
#else
            if
            :: atomic { top == t -> top = (t + 1) % 256 };
#endif
                NOTE(got)
            :: else -> got = NONE
            fi
        fi;
        d_step { t = 0; b = 0; got = NONE }
    od;
    gone_count++
}

// After everybody has gone.
active proctype judge() {
    byte i = 1;
    is_through && gone_count == THIEVES;
    do
    :: i <= ITEMS -> assert(taken[i]); i++
    :: else -> break
    od
}
