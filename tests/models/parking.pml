// SPDX-License-Identifier: MIT
// A model of src/tasks/park.c and wait.c: workers that go to sleep for want of work, threads that sleep in a wait, and
// submitters that wake the one or poke the other. Every atomic access is one step.
//
// Two submitters submit TASKS tasks, the first one of them. WORKERS workers look for tasks; WAITERS waiters wait for a
// group that all tasks belong to, and may run any of them. Each task runs until all have started, so with as many tasks
// as threads everybody is needed: a wake-up that is lost, or given to one who is awake already, leaves a task in the
// queue for ever. With -DONE_SHORT the task that starts first ends at once. The queue is a number; that entries are
// neither lost nor doubled is the matter of deque.pml and of the explorer. With -DCEILING one submitter submits all,
// one worker at a time may run floating tasks, which are all but one and end at once; the last, bound, runs until they
// have. With -DAWAITED too, one background task runs until all others have; those belong to a group, and a sealer, who
// submits them, begins to wait for the group after the first: from then on the ceiling is none for them (awaited.c).
// With -DSTOP the workers are sent home at any time, and nobody sleeps on.
//
// A futex is modelled as it is: who finds the word as expected sleeps until somebody wakes it, whatever the word does
// meanwhile. Checked when nothing moves any more: all tasks have run, all waits have returned, with -DSTOP all workers
// have gone.
//
// By hand: spin -a -DWORKERS=2 -DTASKS=2 parking.pml; gcc -O2 -DSAFETY pan.c -o pan; ./pan -m1000000
// States: ceiling 9.1 M (0.8 GB), first_is_short 4.1 M, awaited 0.5 M, the others below that.
//
// run: workers         -DWORKERS=2 -DTASKS=2 expect pass
// run: first_is_short  -DWORKERS=2 -DTASKS=3 -DONE_SHORT expect pass gcc: -O2
// run: waiter          -DWORKERS=1 -DWAITERS=1 -DTASKS=2 expect pass
// run: waiters_alone   -DWORKERS=0 -DWAITERS=2 -DTASKS=2 expect pass
// run: ceiling         -DWORKERS=2 -DCEILING -DTASKS=3 expect pass gcc: -O2
// run: awaited         -DWORKERS=2 -DCEILING -DAWAITED -DTASKS=3 expect pass
// run: stop            -DWORKERS=2 -DTASKS=1 -DSTOP expect pass
//
// Broken on purpose; each must be refuted:
// run: no_last_look      -DWORKERS=1 -DTASKS=1 -DNO_LAST_LOOK expect fail
// run: event_after_look  -DWORKERS=1 -DTASKS=1 -DEVENT_AFTER_LOOK expect fail
// run: mask_seen_first   -DWORKERS=1 -DTASKS=1 -DMASK_FIRST expect fail
// run: bit_stays_up      -DWORKERS=2 -DTASKS=3 -DONE_SHORT -DBIT_STAYS_UP expect fail
// run: wake_not_passed   -DWORKERS=2 -DTASKS=2 -DNOT_PASSED_ON expect fail
// run: no_poke           -DWORKERS=1 -DWAITERS=1 -DTASKS=2 -DNO_POKE expect fail
// run: listed_after_look -DWORKERS=0 -DWAITERS=1 -DTASKS=1 -DLISTED_AFTER_LOOK expect fail
// run: poke_keeps_turn   -DWORKERS=0 -DWAITERS=2 -DTASKS=2 -DTURN_STAYS expect fail
// run: overshoot         -DWORKERS=2 -DCEILING -DTASKS=3 -DOVERSHOOT expect fail
// run: left_unseen       -DWORKERS=2 -DCEILING -DTASKS=3 -DLEFT_UNSEEN expect fail
// run: seal_is_silent  -DWORKERS=2 -DCEILING -DAWAITED -DTASKS=2 -DSEAL_IS_SILENT expect fail
// run: kept_after_look -DWORKERS=2 -DCEILING -DAWAITED -DTASKS=2 -DKEPT_AFTER_LOOK expect fail
// run: kept_unseen     -DWORKERS=2 -DCEILING -DAWAITED -DTASKS=2 -DKEPT_UNSEEN expect fail
// run: stop_not_seen     -DWORKERS=1 -DTASKS=1 -DSTOP -DSTOP_NOT_SEEN expect fail

#ifndef WAITERS
#define WAITERS 0
#endif
#define THREADS (WORKERS + WAITERS)
#define FLOATING_MAX 1

#ifdef STOP_NOT_SEEN
#define IS_STOP_SEEN false
#else
#define IS_STOP_SEEN is_stopping
#endif

#define NOTHING 0
#define BOUND 1
#define FLOAT 2
#define GROUPED 3  // floating, and of the group
#define OF_GROUP 2 // as is_floating: perhaps one of those

byte bound_queued, floating_queued, grouped_queued;
bool is_sealed; // somebody waits for the group
byte kept;      // bit = worker that has passed floating work by
byte started_count, done_count;
byte parked;            // bit = worker
byte event[THREADS];    // of workers
bool is_asleep[THREADS];
bool is_busy[THREADS];  // counted in busy_count
byte busy_count;        // workers busy with floating tasks
bool is_stopping;
byte gone_count, returned_count;

// The group's word: units out, the sleepers' mark, the turn.
byte units = TASKS;
bool is_marked;
byte turn;
byte listed_count; // threads in the list of sleepers

// --- waking ---

inline wake_parked() {
    do
    :: mask == 0 || is_woken -> break
    :: else ->
        // Any of them: nothing may depend on the order.
        if
        :: mask & 1 -> w = 0
        :: mask & 2 -> w = 1
        fi;
        d_step {
            mask = parked & ~(1 << w);
            is_woken = (parked >> w) & 1;
            parked = mask
        };
        if
        :: is_woken ->
            // The event, then the futex: nobody can fall asleep on the new event in between, and go on by the wake.
            d_step { event[w] = (event[w] + 1) % 4; is_asleep[w] = false }
        :: else
        fi
    od
}

inline unpark_waiters() {
    d_step {
        w = WORKERS;
        do
        :: w < THREADS -> is_asleep[w] = false; w++
        :: else -> break
        od;
        w = 0
    }
}

// Under the list's lock; an RMW on the word of who is in the list.
inline poke() {
    if
    :: listed_count != 0 ->
        d_step {
            w = is_marked;
            if
            :: is_marked ->
                is_marked = false;
#ifndef TURN_STAYS
                turn = (turn + 1) % 4
#endif
            :: else
            fi
        };
        if
        :: w -> unpark_waiters()
        :: else
        fi
    :: else
    fi
}

// With `mask` as parked was seen.
inline wake_one(is_floating) {
    is_woken = false;
    if
#ifdef AWAITED
    :: is_floating && mask != 0 && busy_count >= FLOATING_MAX ->
#ifndef KEPT_UNSEEN
        kept = kept | mask;
#endif
        if
        :: is_floating == OF_GROUP && is_sealed -> wake_parked(); skip
        :: else
        fi
    :: mask == 0
    :: mask != 0 && !(is_floating && busy_count >= FLOATING_MAX) -> wake_parked()
#elif defined(CEILING)
    :: is_floating && mask != 0 && busy_count >= FLOATING_MAX
    :: mask == 0
    :: mask != 0 && !(is_floating && busy_count >= FLOATING_MAX) -> wake_parked()
#else
    :: mask == 0
    :: else -> wake_parked()
#endif
    fi;
#ifdef NO_POKE
    skip;
#else
    if
#ifdef CEILING
    :: is_woken && !is_floating
#else
    :: is_woken
#endif
    :: else -> poke()
    fi;
#endif
    d_step { mask = 0; is_woken = false; w = 0 }
}

// --- submitters ---

inline submit(is_floating) {
#ifdef MASK_FIRST
    mask = parked;
#endif
    if
    :: is_floating -> floating_queued++
    :: else -> bound_queued++
    fi;
#ifndef MASK_FIRST
    mask = parked;
#endif
    wake_one(is_floating)
}

proctype submitter(byte bound_left; byte floating_left) {
    byte mask, w;
    bool is_woken;
    do
    :: bound_left > 0 -> bound_left--; submit(false)
    :: floating_left > 0 -> floating_left--; submit(true)
    :: bound_left + floating_left == 0 -> break
    od
}

#ifdef AWAITED
inline submit_grouped() {
    grouped_queued++;
    mask = parked;
    wake_one(OF_GROUP)
}

// The first before it waits; the others as a task of the group would.
proctype sealer(byte left) {
    byte mask, w;
    bool is_woken;
    submit_grouped();
    is_sealed = true;
#ifndef SEAL_IS_SILENT
    mask = kept;
    mask = mask & parked;
    if
    :: mask != 0 && floating_queued + grouped_queued > 0 -> wake_parked(); skip
    :: else
    fi;
    d_step { mask = 0; is_woken = false; w = 0 };
#endif
    do
    :: left > 1 -> left--; submit_grouped()
    :: else -> break
    od
}
#endif

proctype stopper() {
    byte mask, w;
    bool is_woken;
    is_stopping = true;
    do
    :: mask = parked;
        if
        :: mask == 0 -> break
        :: else -> wake_parked(); is_woken = false; mask = 0
        fi
    od
}

// --- running and looking for tasks ---

inline run_task() {
    d_step { started_count++; w = started_count };
#ifdef AWAITED
    if
    :: found == FLOAT -> done_count == TASKS - 1
    :: found != FLOAT
    fi;
#elif defined(CEILING)
    if
    :: found == FLOAT
    :: found == BOUND -> done_count == TASKS - 1
    fi;
#else
#ifdef ONE_SHORT
    if
    :: w == 1
    :: w != 1 -> started_count == TASKS
    fi;
#else
    started_count == TASKS;
#endif
#endif
    d_step {
        done_count++;
        units--;
        w = units == 0 && is_marked;
        found = NOTHING
    };
    if
    :: w -> unpark_waiters()
    :: else
    fi
}

inline take_bound() {
    d_step {
        found = NOTHING;
        if
        :: bound_queued > 0 -> bound_queued--; found = BOUND
        :: else
        fi
    }
}

#ifdef CEILING
inline enter_floating() {
#ifdef OVERSHOOT
    d_step { w = busy_count; busy_count++ };
    if
    :: w < FLOATING_MAX -> is_busy[id] = true
    :: else -> busy_count--
    fi;
    w = 0
#else
    d_step {
        if
        :: busy_count < FLOATING_MAX -> busy_count++; is_busy[id] = true
        :: else
        fi
    }
#endif
}

#ifdef AWAITED
// No place: what is awaited is taken all the same. The worker keeps itself only beside something.
inline pass_by() {
#ifndef KEPT_AFTER_LOOK
    if
    :: floating_queued + grouped_queued > 0 -> kept = kept | (1 << id)
    :: else
    fi;
#endif
    if
    :: is_sealed ->
        d_step {
            if
            :: grouped_queued > 0 -> grouped_queued--; found = GROUPED
            :: else
            fi
        }
    :: else
    fi
#ifdef KEPT_AFTER_LOOK
    ;
    if
    :: floating_queued + grouped_queued > 0 -> kept = kept | (1 << id)
    :: else
    fi
#endif
}
#endif

// Bound tasks first, then floating ones, if there is a place. The summary bits may be old, so a worker also takes a
// place where there is nothing; it leaves it then, and looks whether something came while it was counted.
inline search() {
    do
    :: take_bound();
        if
        :: found != NOTHING && is_busy[id] ->
            d_step { is_busy[id] = false; busy_count-- };
            if
            :: floating_queued + grouped_queued > 0 -> mask = parked; wake_one(OF_GROUP)
            :: else
            fi;
            break
        :: found != NOTHING && !is_busy[id] -> break
        :: else
        fi;
        if
        :: !is_busy[id] -> enter_floating()
        :: else
        fi;
        if
        :: !is_busy[id] ->
#ifdef AWAITED
            pass_by();
#endif
            break
        :: else
        fi;
        d_step {
            if
            :: floating_queued > 0 -> floating_queued--; found = FLOAT
            :: floating_queued == 0 && grouped_queued > 0 -> grouped_queued--; found = GROUPED
            :: else
            fi
        };
        if
        :: found != NOTHING -> break
        :: else
        fi;
        d_step { is_busy[id] = false; busy_count-- };
#ifndef LEFT_UNSEEN
        if
        :: floating_queued + grouped_queued > 0
        :: else -> break
        fi
#else
        break
#endif
    od
}
#else
inline search() { take_bound() }
#endif

// --- workers ---

inline lower_bit() {
    d_step {
        had_bit = (parked >> id) & 1;
        parked = parked & ~(1 << id);
        kept = kept & ~(1 << id)
    }
}

// After the last look: sleeps, or goes on with what it found.
inline sleep_or_go() {
    if
    :: found == NOTHING && !IS_STOP_SEEN ->
        d_step {
            if
            :: event[id] == old_event -> is_asleep[id] = true
            :: else
            fi
        };
end_asleep:
        !is_asleep[id];
#ifdef BIT_STAYS_UP
        had_bit = true
#else
        lower_bit()
#endif
    :: else -> lower_bit()
    fi;
#ifndef NOT_PASSED_ON
    if
    :: !had_bit && found != NOTHING -> mask = parked; wake_one(false)
    :: else
    fi;
#endif
    d_step { old_event = 0; had_bit = false; is_last = false }
}

proctype worker(byte id) {
    byte found, mask, w, old_event;
    bool is_woken, had_bit, is_last;
    do
    :: search();
        if
        :: is_last ->
#ifdef EVENT_AFTER_LOOK
            old_event = event[id];
#endif
#ifdef NO_LAST_LOOK
            parked = parked | (1 << id);
#endif
            sleep_or_go();
            if
            :: found != NOTHING -> run_task()
            :: found == NOTHING && is_stopping -> break
            :: found == NOTHING && !is_stopping
            fi
        :: !is_last && found != NOTHING -> run_task()
        :: !is_last && found == NOTHING && is_stopping -> break
        :: !is_last && found == NOTHING && !is_stopping ->
#ifndef EVENT_AFTER_LOOK
            old_event = event[id];
#endif
#ifndef NO_LAST_LOOK
            parked = parked | (1 << id);
#endif
            is_last = true
        fi
    od;
    gone_count++
}

// --- waiters ---

proctype waiter(byte id) {
    byte found, w, word_units, word_turn;
    do
    :: units == 0 -> break
    :: else ->
        take_bound();
        if
        :: found != NOTHING -> run_task()
        :: else ->
            listed_count++;
            d_step { is_marked = true; word_units = units; word_turn = turn };
            if
            :: word_units == 0
            :: else ->
#ifndef LISTED_AFTER_LOOK
                take_bound();
#endif
                if
                :: found != NOTHING -> run_task()
                :: else ->
                    d_step {
                        if
                        :: units == word_units && turn == word_turn && is_marked -> is_asleep[id] = true
                        :: else
                        fi
                    };
end_waiting:
                    !is_asleep[id]
                fi
            fi;
            listed_count--;
            d_step { word_units = 0; word_turn = 0 }
        fi
    od;
    returned_count++
}

init {
    byte i = 0;
    atomic {
        do
        :: i < WORKERS -> run worker(i); i++
        :: i >= WORKERS && i < THREADS -> run waiter(i); i++
        :: else -> break
        od;
        i = 0;
#ifdef AWAITED
        floating_queued = 1;
        run sealer(TASKS - 1);
#elif defined(CEILING)
        run submitter(1, TASKS - 1);
#else
        run submitter(1, 0);
        if
        :: TASKS > 1 -> run submitter(TASKS - 1, 0)
        :: else
        fi;
#endif
#ifdef STOP
        run stopper();
#endif
        i = 0
    };
    timeout;
#ifdef STOP
    assert(gone_count == WORKERS);
    assert(done_count + bound_queued == TASKS)
#else
    assert(done_count == TASKS && busy_count == 0);
    assert(returned_count == WAITERS && listed_count == 0)
#endif
}
