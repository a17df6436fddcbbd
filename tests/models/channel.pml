// SPDX-License-Identifier: MIT
// A model of src/base/channel.c and channel_wait.c: claiming cells, closing, parking, waking, destroying.
//
// SENDERS senders send ITEMS items each and wait when there is no room; RECEIVERS receivers receive until closed. The
// last sender closes, or with -DCLOSER a thread of its own at any time. Each atomic access is one step, except that an
// index and the sequence it points to are loaded together: a claim fails if the index has moved meanwhile, and a cell
// found behind at the second load was behind at the first. A batch or a drain is several claims at once and has no model
// of its own. Checked: every accepted item is received exactly once
// and in its sender's order; CLOSED is said only when nothing is left; nobody sleeps for ever (invalid end states); with
// -DDESTROY (after the last item) and -DDESTROY_CLOSED (after CLOSED) no access after the receiver has freed the channel.
//
// The futex event is modelled without a counter: a bump takes `fresh` away from everybody who has read the event, and a
// park sleeps only while fresh. A sleep in slices (another thread is copying) may end at any time; a sleep for good ends
// by a wake only. Store buffers need no variant of their own: after its claim, an RMW, a thread publishes with one store,
// and a late store is a long copy, which the time between claim and publication already is; every wake comes after a
// further RMW.
//
// By hand: spin -a -DSENDERS=2 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 channel.pml
//          gcc -O2 -DSAFETY -DMEMLIM=3072 pan.c -o pan; ./pan -m1000000
// States: one_cell_senders 16.3 M, gives_up 6.4 M, one_cell_receivers 4.4 M, patient_receivers 3.8 M, closer_senders
// 2.2 M, two_cells_receivers 1.7 M, closer_receivers 1.4 M, the others below 0.1 M; 37 s for the largest.
//
// run: one_cell_senders     -DSENDERS=2 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 expect pass gcc: -O2
// run: one_cell_receivers   -DSENDERS=1 -DRECEIVERS=2 -DCAP=1 -DITEMS=2 expect pass gcc: -O2
// run: two_cells_receivers  -DSENDERS=1 -DRECEIVERS=2 -DCAP=2 -DITEMS=2 expect pass
// run: closer_senders       -DSENDERS=2 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DCLOSER expect pass
// run: closer_receivers     -DSENDERS=1 -DRECEIVERS=2 -DCAP=1 -DITEMS=1 -DCLOSER expect pass
// run: gives_up             -DSENDERS=1 -DRECEIVERS=2 -DCAP=1 -DITEMS=2 -DTIMED expect pass gcc: -O2
// run: patient_pair         -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=3 -DPATIENT expect pass
// run: patient_receivers    -DSENDERS=1 -DRECEIVERS=2 -DCAP=1 -DITEMS=2 -DPATIENT expect pass gcc: -O2
// run: destroy              -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DDESTROY expect pass
// run: destroy_closed       -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DDESTROY_CLOSED expect pass
//
// Broken on purpose; each must be refuted:
// run: no_look_after_flag   -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DNO_LOOK expect fail
// run: event_after_look     -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DEVENT_AFTER_LOOK expect fail
// run: no_slices            -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DNO_SLICES expect fail
// run: wake_not_passed_on   -DSENDERS=2 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DNO_PASS_ON expect fail
// run: no_wake_on_close     -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DNO_WAKE_ON_CLOSE expect fail
// run: wake_one_on_close    -DSENDERS=1 -DRECEIVERS=2 -DCAP=1 -DITEMS=1 -DWAKE_ONE_ON_CLOSE expect fail
// run: flag_ignored         -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DFLAG_IGNORED expect fail
// run: close_beside_tail    -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DCLOSER -DCLOSE_BESIDE_TAIL expect fail
// run: closed_before_items  -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DCLOSED_BEFORE_ITEMS expect fail
// run: claim_without_cas    -DSENDERS=2 -DRECEIVERS=1 -DCAP=2 -DITEMS=1 -DNO_CAS expect fail
// run: sequence_not_looked  -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DNO_SEQUENCE expect fail
// run: lost_item            -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DPATIENT -DLOST_ITEM expect fail
// run: no_guests            -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=2 -DDESTROY -DNO_GUESTS expect fail
// run: no_guests_closed     -DSENDERS=1 -DRECEIVERS=1 -DCAP=1 -DITEMS=1 -DDESTROY_CLOSED -DNO_GUESTS expect fail

#define DONE 0
#define UNREADY 1
#define CLOSED 2
#define TIMED_OUT 3

#define THREADS (SENDERS + RECEIVERS)

// The two index words: position, WAITING, and CLOSED for the tail.
byte tail, head;
bool tail_waiting, head_waiting, tail_closed;
bool is_closed; // the copy receivers look at
// Sequence of a cell: 2p free for position p, 2p + 1 held.
byte sequence[CAP];
byte cell[CAP];

bool fresh[THREADS], parked[THREADS];
byte waiters_send, waiters_recv, guests;
bool is_freed;

bool is_accepted[SENDERS * ITEMS];
bool is_received[SENDERS * ITEMS];
byte newest[RECEIVERS * SENDERS];
byte senders_left = SENDERS;
byte threads_left = THREADS;

#if defined(DESTROY) || defined(DESTROY_CLOSED)
#define HAS_END
#define TOUCH assert(!is_freed);
#else
#define TOUCH
#endif

inline bump(first, count) {
    d_step {
        TOUCH
        for (k : first .. (first + count - 1)) { fresh[k] = false }
        k = 0;
    }
}

// Any one that is parked. The word is only an address here: no TOUCH.
inline unpark_one(first, count) {
    if
    :: parked[first] -> parked[first] = false
    :: count == 2 && parked[first + count - 1] -> parked[first + count - 1] = false
    :: else
    fi
}

inline unpark_all(first, count) {
    d_step {
        for (k : first .. (first + count - 1)) { parked[k] = false }
        k = 0;
    }
}

inline guest_enter() {
#if defined(HAS_END) && !defined(NO_GUESTS)
    d_step { TOUCH guests++ }
#else
    skip
#endif
}

inline guest_leave() {
#if defined(HAS_END) && !defined(NO_GUESTS)
    d_step { TOUCH guests-- }
#else
    skip
#endif
}

inline wake_receiver() { bump(SENDERS, RECEIVERS); unpark_one(SENDERS, RECEIVERS) }
inline wake_sender() { bump(0, SENDERS); unpark_one(0, SENDERS) }

// nbi_channel_put with one item
inline put(item) {
    do
    :: true ->
        d_step {
            TOUCH
            word = tail; word_waiting = tail_waiting; word_closed = tail_closed;
            found = sequence[word % CAP];
#ifdef NO_SEQUENCE
            // looks at the indices alone: full or not
            if
            :: word - head < CAP -> found = 2 * word
            :: else
            fi
#endif
        }
        if
        :: word_closed -> result = CLOSED; break
        :: else
        fi;
        if
        :: found < 2 * word -> result = UNREADY; break
        :: found > 2 * word // another sender was faster: again
        :: found == 2 * word ->
#ifdef NO_CAS
            is_claimed = true;
            d_step { tail = word + 1; tail_waiting = false }
#else
            d_step {
                TOUCH
                is_claimed = (tail == word && tail_waiting == word_waiting && tail_closed == word_closed);
                if
                :: is_claimed -> tail = word + 1; tail_waiting = false
                :: else
                fi
            }
#endif
#ifdef FLAG_IGNORED
            word_waiting = false;
#endif
            if
            :: is_claimed ->
                if
                :: word_waiting -> guest_enter()
                :: else
                fi;
                d_step {
                    TOUCH
                    assert(sequence[word % CAP] == 2 * word); // free, and nobody else's
                    cell[word % CAP] = item; result = DONE;
#ifdef LOST_ITEM
                    sequence[word % CAP] = (word == 1 -> 2 * word : 2 * word + 1) // the second is never published
#else
                    sequence[word % CAP] = 2 * word + 1
#endif
                }
                if
                :: word_waiting -> wake_receiver(); guest_leave()
                :: else
                fi;
                break
            :: else
            fi
        fi
    od;
    atomic { word = 0; word_waiting = false; word_closed = false; found = 0; is_claimed = false }
}

// nbi_channel_take with one item
inline take(item) {
    do
    :: true ->
#ifdef CLOSED_BEFORE_ITEMS
        if
        :: is_closed -> result = CLOSED; break
        :: else
        fi;
#endif
        d_step { TOUCH word = head; word_waiting = head_waiting; found = sequence[word % CAP] }
        if
        :: found < 2 * word + 1 ->
            result = UNREADY;
            if
            :: is_closed ->
                d_step { TOUCH found = tail }
                d_step { TOUCH result = (found == head -> CLOSED : UNREADY) }
            :: else
            fi;
            break
        :: found > 2 * word + 1
        :: found == 2 * word + 1 ->
            d_step {
                TOUCH
                is_claimed = (head == word && head_waiting == word_waiting);
                if
                :: is_claimed -> head = word + 1; head_waiting = false
                :: else
                fi
            }
            if
            :: is_claimed ->
                if
                :: word_waiting -> guest_enter()
                :: else
                fi;
                d_step { TOUCH item = cell[word % CAP]; sequence[word % CAP] = 2 * (word + CAP); result = DONE }
                if
                :: word_waiting -> wake_sender(); guest_leave()
                :: else
                fi;
                break
            :: else
            fi
        fi
    od;
    atomic { word = 0; word_waiting = false; found = 0; is_claimed = false }
}

// raise_flag
inline raise_send() {
    d_step { TOUCH word = head; head_waiting = true }
    d_step { TOUCH is_copying = (tail - word < CAP); word = 0 }
}
inline raise_recv() {
    d_step { TOUCH word = tail; tail_waiting = true }
    d_step { TOUCH is_copying = (word > head); word = 0 }
}

// With -DPATIENT a slice ends only when there is something to do: a thread that would go from slice to slice for ever is
// then found as an invalid end state.
#ifdef PATIENT
#define SLICE_ENDS(is_ready) (is_ready)
#else
#define SLICE_ENDS(is_ready) true
#endif
#define SEND_READY (sequence[tail % CAP] == 2 * tail || tail_closed)
#define RECV_READY (sequence[head % CAP] == 2 * head + 1 || (is_closed && head == tail))

// park: sleeps while fresh; in slices if somebody is copying, until a deadline if the thread has one
inline park(has_deadline, is_ready) {
#ifdef NO_SLICES
    is_copying = false;
#endif
    d_step { TOUCH parked[me] = fresh[me]; fresh[me] = false }
    if
    :: !parked[me]
    :: is_copying && SLICE_ENDS(is_ready) -> parked[me] = false
    :: has_deadline -> d_step { parked[me] = false; is_late = true }
    fi
}

#ifdef NO_LOOK
#define LOOK(call) result = UNREADY
#else
#define LOOK(call) call
#endif

#if defined(EVENT_AFTER_LOOK)
#define PREPARE(raise, call) raise; call; fresh[me] = true
#else
#define PREPARE(raise, call) fresh[me] = true; raise; LOOK(call)
#endif

// nbi_channel_wait
#define WAIT(raise, call, waiters, wake, has_deadline, is_ready) \
    guest_enter();                                            \
    d_step { TOUCH waiters++ }                               \
    do                                                        \
    :: true ->                                                \
        PREPARE(raise, call);                                 \
        if                                                    \
        :: result != UNREADY -> break                         \
        :: else                                               \
        fi;                                                   \
        park(has_deadline, is_ready);                         \
        call;                                                 \
        if                                                    \
        :: result != UNREADY -> break                         \
        :: result == UNREADY && is_late -> result = TIMED_OUT; break \
        :: else                                               \
        fi                                                    \
    od;                                                       \
    atomic { TOUCH waiters--; has_others = waiters > 0; fresh[me] = false } \
    PASS_ON(raise, wake);                                     \
    guest_leave();                                            \
    d_step { is_copying = false; has_others = false; is_late = false }

#ifdef NO_PASS_ON
#define PASS_ON(raise, wake) skip
#else
#define PASS_ON(raise, wake)             \
    if                                   \
    :: has_others ->                     \
        raise;                           \
        if                               \
        :: is_copying -> wake            \
        :: else                          \
        fi                               \
    :: else                              \
    fi
#endif

// nb_channel_close
inline close_channel() {
    guest_enter();
#ifdef CLOSE_BESIDE_TAIL
    skip;
#else
    d_step { TOUCH tail_closed = true }
#endif
    d_step { TOUCH is_closed = true }
#if defined(NO_WAKE_ON_CLOSE)
    skip;
#elif defined(WAKE_ONE_ON_CLOSE)
    bump(0, SENDERS); unpark_one(0, SENDERS);
    bump(SENDERS, RECEIVERS); unpark_one(SENDERS, RECEIVERS);
#else
    bump(0, SENDERS); unpark_all(0, SENDERS);
    bump(SENDERS, RECEIVERS); unpark_all(SENDERS, RECEIVERS);
#endif
    guest_leave()
}

#define LOCALS                                                      \
    byte word, found, result, k;                                    \
    bool word_waiting, word_closed, is_claimed, is_copying, has_others, is_late

proctype sender(byte me) {
    LOCALS;
    byte number, item;
    do
    :: number < ITEMS ->
        item = me * ITEMS + number;
#ifdef CLOSE_BESIDE_TAIL
        // check, then act
        if
        :: is_closed -> break
        :: else
        fi;
#endif
        put(item);
        if
        :: result == UNREADY -> WAIT(raise_send(), put(item), waiters_send, wake_sender(), false, SEND_READY)
        :: else
        fi;
        if
        :: result == DONE -> is_accepted[item] = true; number++
        :: else -> assert(result == CLOSED); break
        fi
    :: else -> break
    od;
#if !defined(CLOSER) && !defined(DESTROY)
    atomic { senders_left--; number = senders_left }
    if
    :: number == 0 -> close_channel()
    :: else
    fi;
#endif
    threads_left--
}

proctype receiver(byte me) {
    LOCALS;
    byte item;
#ifdef DESTROY
    byte left = SENDERS * ITEMS;
#endif
    do
    :: true ->
        take(item);
        if
#ifdef TIMED
        :: result == UNREADY -> WAIT(raise_recv(), take(item), waiters_recv, wake_receiver(), (me == SENDERS), RECV_READY)
#else
        :: result == UNREADY -> WAIT(raise_recv(), take(item), waiters_recv, wake_receiver(), false, RECV_READY)
#endif
        :: else
        fi;
        if
        :: result == DONE ->
            d_step {
                assert(!is_received[item]);
                is_received[item] = true;
                // Per receiver and sender, numbers grow.
                assert(newest[(me - SENDERS) * SENDERS + item / ITEMS] <= item % ITEMS);
                newest[(me - SENDERS) * SENDERS + item / ITEMS] = item % ITEMS + 1;
                item = 0
            }
#ifdef DESTROY
            left--;
            if
            :: left == 0 -> close_channel(); break
            :: else
            fi
#endif
        :: result == CLOSED -> assert(is_closed && head == tail); break
        :: result == TIMED_OUT -> break // gives up for good
        fi
    od;
#ifdef HAS_END
    guests == 0;
    is_freed = true;
#endif
    threads_left--
}

#ifdef CLOSER
proctype closer() {
    byte k;
    close_channel()
}
#endif

init {
    byte i;
    atomic {
        for (i : 0 .. (CAP - 1)) { sequence[i] = 2 * i }
        for (i : 0 .. (SENDERS - 1)) { run sender(i) }
        for (i : 0 .. (RECEIVERS - 1)) { run receiver(SENDERS + i) }
#ifdef CLOSER
        run closer()
#endif
    }
    threads_left == 0;
    for (i : 0 .. (SENDERS * ITEMS - 1)) { assert(is_accepted[i] == is_received[i]) }
}
