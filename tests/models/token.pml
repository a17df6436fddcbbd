// SPDX-License-Identifier: MIT
// A token tree: makers link a child below the root and another below that, and give both back, oldest first; cancellers
// walk the tree. The walk lets go of the lock after every token, where the real one does so after 2048. Tokens, handles,
// holds and sibling lists are those of src/base/token_tree.c and token_cancel.c; linked tokens, callbacks and tasks are
// left out. Sequentially consistent: all of it happens under locks.
//
// Checked: no token is touched after its end; when a cancel returns, whoever won, every token alive is cancelled; each is
// counted once; nothing is left at the end but the root; no deadlock.
//
// By hand: spin -a token.pml && gcc -O2 -DSAFETY pan.c -o pan && ./pan -m100000
// States stored: two_makers 198069 (0.7 s), one_maker_three_cancels 18571, two_makers_three_cancels 1034026 (1.7 s, 244 MB).
//
// run: two_makers expect pass
// run: one_maker_three_cancels -DMAKERS=1 -DCANCELS=3 expect pass
// run: two_makers_three_cancels -DCANCELS=3 expect pass
// run: child_checked_before_the_lock -DCHECK_FIRST expect fail
// run: child_does_not_keep_its_parent -DPARENT_NOT_KEPT expect fail
// run: handle_ends_outside_the_lock -DDROP_OUTSIDE expect fail
// run: walk_without_the_lock -DWALK_UNLOCKED expect fail
// run: walk_does_not_hold_its_place -DPLACE_NOT_HELD expect fail
// run: left_token_not_collected -DLEFT_NOT_COLLECTED expect fail
// run: losing_cancel_does_not_wait -DLOSER_RETURNS expect fail
// run: marked_after_the_children -DMARK_LAST expect fail

#ifndef MAKERS
#define MAKERS 2
#endif
#ifndef CANCELS
#define CANCELS 2
#endif
#define ROOT 0
#define TOKENS 5 // the root and two a maker
#define NONE 255

bool alive[TOKENS];
bool marked[TOKENS];
byte refs[TOKENS];   // handles
byte kids[TOKENS];   // children
byte holds[TOKENS];  // of the walk
byte parent[TOKENS];
byte first[TOKENS];  // newest child
byte next[TOKENS];   // next older sibling
byte counted[TOKENS];
bool lock, walk_lock; // taken
byte done;            // processes that have ended

#define LOCK(l) atomic { !l -> l = true }
#define UNLOCK(l) l = false

#ifdef PARENT_NOT_KEPT
#define KEPT(t) (refs[t] != 0 || holds[t] != 0)
#else
#define KEPT(t) (refs[t] != 0 || holds[t] != 0 || kids[t] != 0)
#endif

inline unlink(t, p, s) {
    if
    :: first[p] == t -> first[p] = next[t]
    :: else ->
        s = first[p];
        do
        :: s != NONE && next[s] != t -> s = next[s]
        :: else -> break
        od;
        assert(s != NONE);
        next[s] = next[t]
    fi;
    kids[p]--
}

// Under the lock. t, p and s are the caller's.
inline collect(t, p, s) {
    assert(alive[t]);
    do
    :: t != NONE && !KEPT(t) ->
        assert(alive[t]);
        p = parent[t];
        alive[t] = false;
        if
        :: p != NONE -> assert(alive[p]); unlink(t, p, s)
        :: else
        fi;
        t = p
    :: else -> break
    od
}

inline make(t, p, is_marked) {
#ifdef CHECK_FIRST
    is_marked = marked[p];
    LOCK(lock);
#else
    LOCK(lock);
    is_marked = marked[p];
#endif
    d_step {
        assert(alive[p]);
        alive[t] = true;
        marked[t] = is_marked;
        refs[t] = 1;
        parent[t] = p;
        first[t] = NONE;
        next[t] = first[p];
        first[p] = t;
        kids[p]++
    };
    UNLOCK(lock)
}

inline release(t, c, p, s) {
#ifdef DROP_OUTSIDE
    refs[t]--;
    LOCK(lock);
    atomic { c = t; collect(c, p, s) };
#else
    LOCK(lock);
    atomic { refs[t]--; c = t; collect(c, p, s) };
#endif
    UNLOCK(lock)
}

proctype maker(byte a; byte b) {
    byte c, p, s;
    bool is_marked;
    make(a, ROOT, is_marked);
    make(b, a, is_marked);
    release(a, c, p, s);
    release(b, c, p, s);
    done++
}

inline mark(t) {
    marked[t] = true;
    counted[t]++
}

inline everything_is_marked(t) {
    d_step {
        t = 0;
        do
        :: t < TOKENS -> assert(!alive[t] || marked[t]); t++
        :: else -> break
        od;
        t = 0
    }
}

proctype canceller() {
    byte at, from, p, s;
    bool goes_down;
#ifdef LOSER_RETURNS
    if
    :: marked[ROOT] -> goto over
    :: else
    fi;
#endif
    LOCK(walk_lock);
#ifndef WALK_UNLOCKED
    LOCK(lock);
#endif
    atomic {
        at = ROOT;
        goes_down = !marked[ROOT];
#ifndef MARK_LAST
        if
        :: goes_down -> mark(ROOT)
        :: else
        fi
#endif
    };
    do
    :: atomic {
            !(at == ROOT && !(goes_down && first[at] != NONE)) ->
            from = at;
            assert(alive[at]);
            if
            :: goes_down && first[at] != NONE -> at = first[at]; goes_down = true
            :: !(goes_down && first[at] != NONE) && next[at] != NONE -> at = next[at]; goes_down = true
            :: else -> at = parent[at]; goes_down = false
            fi;
            assert(alive[at]);
            goes_down = goes_down && !marked[at];
            if
            :: goes_down -> mark(at)
            :: else
            fi;
#ifndef LEFT_NOT_COLLECTED
            holds[at]++;
            collect(from, p, s);
            holds[at]--;
#endif
            from = 0;
            p = 0;
            s = 0
        };
#ifndef WALK_UNLOCKED
#ifndef PLACE_NOT_HELD
        holds[at]++;
#endif
        UNLOCK(lock);
        LOCK(lock);
#ifndef PLACE_NOT_HELD
        holds[at]--;
#endif
#endif
    :: else -> break
    od;
#ifndef WALK_UNLOCKED
    UNLOCK(lock);
#endif
#ifdef MARK_LAST
    LOCK(lock);
    if
    :: !marked[ROOT] -> mark(ROOT)
    :: else
    fi;
    UNLOCK(lock);
#endif
    UNLOCK(walk_lock);
over:
    everything_is_marked(at);
    done++
}

init {
    byte t;
    atomic {
        do
        :: t < TOKENS -> first[t] = NONE; next[t] = NONE; parent[t] = NONE; t++
        :: else -> break
        od;
        alive[ROOT] = true;
        refs[ROOT] = 1;
        t = 0;
        do
        :: t < MAKERS -> run maker(1 + 2 * t, 2 + 2 * t); t++
        :: else -> break
        od;
        t = 0;
        do
        :: t < CANCELS -> run canceller(); t++
        :: else -> break
        od
    };
    done == MAKERS + CANCELS;
    d_step {
        assert(marked[ROOT] && kids[ROOT] == 0 && first[ROOT] == NONE && holds[ROOT] == 0);
        t = 0;
        do
        :: t < TOKENS -> assert(counted[t] <= 1 && (t == ROOT || !alive[t])); t++
        :: else -> break
        od
    }
}
