// SPDX-License-Identifier: MIT
// The frame fence: a ring of slots, each one tally word {generation, turn, closed, mark, count}. A coordinator begins
// frames, takes units for work, seals and waits, now and then only until a deadline; workers give the units back and
// may take more meanwhile; watchers wait for each frame from beside, without a deadline; a latecomer takes a unit when
// it can; somebody may queue work that only the coordinator can do, or close the fence, with work that never comes
// back; and the fence is freed as soon as nothing is out. Sequentially consistent; each atomic block is one access to
// one word. Sleeping compares and sleeps in one step, as a futex does.
//
// Held: a frame that is complete, or replaced, has all its work done; no unit goes back to another frame; nobody sleeps
// for ever; nobody touches the fence after it is freed.
//
// run: three_frames -DTASKS=2 expect pass
// run: timeouts -DTIMEOUTS expect pass
// run: timeouts_and_watcher -DTIMEOUTS -DWATCHERS=1 -DFRAMES=2 expect pass
// run: two_watchers -DWATCHERS=2 -DFRAMES=2 expect pass gcc: -O2
// run: latecomer -DLATECOMER -DWATCHERS=1 -DFRAMES=2 expect pass
// run: ring_of_three -DTIMEOUTS -DSLOTS=3 -DFRAMES=4 expect pass gcc: -O2
// run: work_for_the_coordinator -DPOKER -DWATCHERS=2 -DFRAMES=1 -DTASKS=0 expect pass
// run: work_for_the_coordinator_and_others -DPOKER -DWATCHERS=2 -DFRAMES=1 expect pass size: full
// run: closing -DCLOSER -DWATCHERS=1 -DFRAMES=2 expect pass gcc: -O2
// run: closing_with_lost_work -DCLOSER -DLOST -DWATCHERS=1 -DFRAMES=2 expect pass gcc: -O2
// run: last_unit_wakes_nobody -DWAKES_NOBODY -DFRAMES=1 expect fail
// run: last_unit_wakes_one -DWAKES_ONE -DWATCHERS=2 -DFRAMES=1 expect fail
// run: mark_read_after_the_unit -DMARK_READ_LATER -DFRAMES=1 expect fail
// run: announced_without_a_look -DNO_LOOK -DFRAMES=1 expect fail
// run: mark_made_without_rmw -DMARK_STORED -DFRAMES=1 expect fail
// run: unit_added_after_a_check -DTAKE_CHECKS_THEN_ADDS -DLATECOMER -DFRAMES=1 expect fail
// run: units_added_to_an_ended_frame -DTAKE_AFTER_THE_END -DLATECOMER -DFRAMES=1 expect fail
// run: busy_slot_opened_again -DREOPENS_BUSY -DTIMEOUTS expect fail
// run: return_to_the_current_frame -DRETURNS_TO_CURRENT -DTIMEOUTS expect fail
// run: wake_taken_for_the_end -DWAKE_IS_END -DPOKER -DFRAMES=1 expect fail
// run: poke_without_a_turn -DPOKE_WITHOUT_TURN -DPOKER -DWATCHERS=1 -DFRAMES=1 -DTASKS=0 expect fail
// run: work_not_asked_for_again -DNO_SECOND_HELP -DPOKER -DFRAMES=1 -DTASKS=0 expect fail
// run: close_wakes_nobody -DCLOSE_WAKES_NOBODY -DCLOSER -DLOST -DFRAMES=1 expect fail

#ifndef FRAMES
#define FRAMES 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TASKS
#define TASKS 1
#endif
#ifndef WATCHERS
#define WATCHERS 0
#endif
#ifdef LATECOMER
#define OTHERS (WATCHERS + 1)
#else
#define OTHERS WATCHERS
#endif
#define WORKERS 2
#define TURNS 4
#define REFUSED 255

byte generation[SLOTS], count[SLOTS], turn[SLOTS];
bit mark[SLOTS], closed[SLOTS];
byte asleep[WATCHERS + 1]; // the slot a waiter sleeps on, + 1; waiter 0 is the coordinator
byte taken[FRAMES + 1], done[FRAMES + 1];
byte place[FRAMES + 1];    // the slot of a frame + 1; 0 = not begun, REFUSED = the ring was full
byte current;              // newest slot
byte ended_count;          // watchers and the latecomer
bool is_complete[FRAMES + 1]; // a wait has said so
bool is_freed, is_last, is_queued;
chan work = [FRAMES * (TASKS + 1) + 1] of { byte, byte }; // slot and frame of a unit on its way to a worker

inline wake(s, i) {
    atomic {
        for (i : 0 .. WATCHERS) {
            if
            :: asleep[i] == s + 1 ->
                asleep[i] = 0;
#ifdef WAKES_ONE
                break
#endif
            :: else
            fi
        }
        i = 0
    }
}

// Takes a unit; ok = false: the frame is over, replaced or closed.
inline take(s, f, ok) {
    atomic {
        assert(!is_freed);
#ifdef TAKE_AFTER_THE_END
        ok = generation[s] == f && !closed[s];
#else
        ok = generation[s] == f && !closed[s] && count[s] > 0;
#endif
#ifdef TAKE_CHECKS_THEN_ADDS
    }
    atomic {
#endif
        if
        :: ok -> assert(!is_complete[f]); count[s]++; taken[f]++
        :: else
        fi
    }
}

// Does a unit's work and gives it back.
inline give_back(s, f, ended, i) {
#ifdef RETURNS_TO_CURRENT
    s = current;
#endif
    atomic {
        assert(!is_freed);
        done[f]++;
        assert(generation[s] == f && count[s] > 0);
        count[s]--;
        ended = count[s] == 0 && mark[s]
#ifdef MARK_READ_LATER
        ; ended = count[s] == 0
#endif
    }
#ifdef MARK_READ_LATER
    if
    :: ended -> atomic { assert(!is_freed); ended = mark[s] }
    :: else
    fi;
#endif
#ifndef WAKES_NOBODY
    if
    :: ended -> wake(s, i)
    :: else
    fi;
#endif
    ended = false
}

// Work that only the coordinator can do.
inline help(me, s, f, helped, ended, i) {
    if
    :: me == 0 && is_queued ->
        is_queued = false;
        helped = true;
        give_back(s, f, ended, i)
    :: else
    fi
}

#define OVER(s, f) (generation[s] != f || count[s] == 0)

// is_timed: the deadline may pass at any moment. status: 1 complete or superseded, 2 closed, 3 timed out.
inline wait(me, s, f, is_timed, status, helped, over, seen_count, seen_turn, seen_closed, ended, i) {
    status = 0;
    do
    :: status != 0 -> break
    :: else ->
        atomic {
            assert(!is_freed);
            if
            :: OVER(s, f) -> assert(done[f] == taken[f]); is_complete[f] = true; status = 1
            :: !OVER(s, f) && closed[s] -> status = 2
            :: else
            fi
        }
        if
        :: status == 0 && is_timed -> status = 3
        :: status == 0 ->
            helped = false;
            help(me, s, f, helped, ended, i);
            if
            :: helped -> goto again
            :: else
            fi;
            atomic {
                seen_count = count[s]; seen_turn = turn[s]; seen_closed = closed[s]; over = OVER(s, f) || closed[s];
#ifdef MARK_STORED
            }
            atomic {
                count[s] = seen_count;
#endif
                mark[s] = 1
            }
#ifndef NO_LOOK
            if
            :: over -> goto again
            :: else
            fi;
#endif
#ifndef NO_SECOND_HELP
            help(me, s, f, helped, ended, i);
            if
            :: helped -> goto again
            :: else
            fi;
#endif
            atomic {
                assert(!is_freed);
                if
                :: mark[s] && count[s] == seen_count && turn[s] == seen_turn && closed[s] == seen_closed ->
                    asleep[me] = s + 1
                :: else
                fi
            }
            if
            :: asleep[me] == 0
            :: is_timed -> asleep[me] = 0
            fi;
#ifdef WAKE_IS_END
            status = 1;
            assert(done[f] == taken[f]);
#endif
again:      skip;
            atomic { over = false; seen_count = 0; seen_turn = 0; seen_closed = 0; helped = false }
        :: else
        fi
    od
}

inline find_slot(s, best) {
    atomic {
        best = SLOTS;
        for (s : 0 .. SLOTS - 1) {
            if
#ifdef REOPENS_BUSY
            :: (best == SLOTS || generation[s] < generation[best]) -> best = s
#else
            :: count[s] == 0 && (best == SLOTS || generation[s] < generation[best]) -> best = s
#endif
            :: else
            fi
        }
        s = best; best = 0
    }
}

proctype coordinator() {
    byte frame = 1, slot, status, seen_count, seen_turn, i, scratch;
    bool ok, ended, helped, over, is_timed;
    bit seen_closed;
    do
    :: frame > FRAMES -> break
    :: else ->
        find_slot(slot, scratch);
        if
        :: slot == SLOTS -> atomic { place[frame] = REFUSED; frame++; slot = 0 }
        :: else ->
            atomic {
                if
                :: closed[slot] -> break
                :: else
                fi;
#ifndef REOPENS_BUSY
                assert(count[slot] == 0);
#endif
                generation[slot] = frame; count[slot] = 1; taken[frame] = 1; mark[slot] = 0;
                turn[slot] = (turn[slot] + 1) % TURNS;
                current = slot; place[frame] = slot + 1;
                scratch = 0
            }
            do
            :: scratch == TASKS -> scratch = 0; break
            :: else ->
                take(slot, frame, ok);
                if
                :: ok -> work!slot,frame
                :: else
                fi;
                scratch++
            od;
#ifdef POKER
            take(slot, frame, ok); // the work's
            assert(ok);
            take(slot, frame, ok); // of who queues it, until that is told
            assert(ok);
            work!SLOTS,frame;
#endif
#ifdef LOST
            take(slot, frame, ok); // never comes back
#endif
            give_back(slot, frame, ended, i); // seals
#ifdef TIMEOUTS
            is_timed = true;
#endif
            wait(0, slot, frame, is_timed, status, helped, over, seen_count, seen_turn, seen_closed, ended, i);
            atomic { frame++; slot = 0; status = 0; ok = false }
        fi
    od;
    is_last = true;
#ifndef LOST
    // Freed as soon as nothing is out: without another wait, for a wait has just told so.
    if
    :: atomic {
        (ended_count == OTHERS && count[0] == 0 && count[1] == 0 && count[SLOTS - 1] == 0) -> is_freed = true
    }
    fi
#endif
}

proctype worker() {
    byte slot, frame, i;
    bool ok, ended;
    do
    :: work?slot,frame ->
        if
#ifdef POKER
        :: slot == SLOTS ->
            // Queues what only the coordinator can do, then tells it. Its own unit keeps the fence until then.
            atomic { slot = place[frame] - 1; is_queued = true }
            atomic {
                assert(!is_freed);
                ended = mark[slot];
                mark[slot] = 0;
#ifndef POKE_WITHOUT_TURN
                if
                :: ended -> turn[slot] = (turn[slot] + 1) % TURNS
                :: else
                fi
#endif
            }
            if
            :: ended -> wake(slot, i)
            :: else
            fi;
            give_back(slot, frame, ended, i)
#endif
        :: slot < SLOTS ->
            if
            :: true
            :: true -> // more work of the same frame, while it holds a unit of it
                take(slot, frame, ok);
                assert(ok || closed[slot]);
                if
                :: ok -> give_back(slot, frame, ended, i)
                :: else
                fi
            fi;
            give_back(slot, frame, ended, i)
        fi;
        atomic { slot = 0; frame = 0; ok = false }
    :: is_last && empty(work) -> break
    od
}

// Waits for every frame, whenever it comes to it.
proctype watcher(byte me) {
    byte frame = 1, slot, status, seen_count, seen_turn, i;
    bool ended, helped, over;
    bit seen_closed;
    do
    :: frame > FRAMES -> break
    :: else ->
        if
        :: place[frame] != 0 && place[frame] != REFUSED ->
            slot = place[frame] - 1;
            wait(me, slot, frame, false, status, helped, over, seen_count, seen_turn, seen_closed, ended, i)
        :: place[frame] == REFUSED
        :: is_last && place[frame] == 0 // closed before it
        fi;
        atomic { frame++; slot = 0; status = 0 }
    od;
    ended_count++
}

// A late taker: nobody of the frame, but it knows its name.
proctype latecomer() {
    byte slot, frame, i;
    bool ok, ended;
    frame = 1;
    place[1] != 0;
    slot = place[1] - 1;
    take(slot, frame, ok);
    if
    :: ok -> give_back(slot, frame, ended, i)
    :: else
    fi;
    ended_count++
}

proctype closer() {
    byte slot, i;
    bool ended;
    do
    :: slot == SLOTS -> break
    :: else ->
        atomic { closed[slot] = 1; ended = mark[slot] }
#ifndef CLOSE_WAKES_NOBODY
        if
        :: ended -> wake(slot, i)
        :: else
        fi;
#endif
        atomic { slot++; ended = false }
    od
}

init {
    byte i;
    atomic {
        run coordinator();
        for (i : 1 .. WORKERS) { run worker() }
#if WATCHERS > 0
        for (i : 1 .. WATCHERS) { run watcher(i) }
#endif
#ifdef LATECOMER
        run latecomer();
#endif
#ifdef CLOSER
        run closer();
#endif
    }
}
