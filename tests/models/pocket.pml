// SPDX-License-Identifier: MIT
// A model of groups and pockets (src/tasks/tally.h, task.c, wait.c): threads keep units of a group in a pocket and give
// them back together, and the group's place is used for the next group as soon as its owner has seen the end.
//
// The owner opens GROUPS groups one after the other in the same word, submits TASKS tasks to each, gives back the open
// unit and waits, running what it finds. A worker runs tasks too; each first-level task submits one child, with a unit
// from the pocket or with units taken 1 + EXTRA at a time. -DSTRANGER: a task of no group submits into the first group
// and then stays until the owner has returned. -DOTHER: the worker may turn to a task of another group that lasts as
// long. -DPASSER: a thread runs one task by its handle and goes back to its own code for good.
//
// That a sleeping waiter hears of new tasks is the matter of parking.pml: here it sleeps while there are none. Checked:
// a wait that returns finds every accepted task of its group ended; a unit is given back to the group it was taken
// from; and everybody comes to the end.
//
// By hand: spin -a -DTASKS=2 -DGROUPS=2 pocket.pml; gcc -O2 -DSAFETY pan.c -o pan; ./pan -m1000000
// States: other_group 1.1 M, all and two_workers 0.5 M, the others below 0.2 M.
//
// run: two_groups  -DTASKS=3 -DGROUPS=2 expect pass
// run: two_workers -DTASKS=2 -DGROUPS=2 -DTWO_WORKERS expect pass
// run: stranger    -DTASKS=2 -DGROUPS=2 -DSTRANGER expect pass
// run: other_group -DTASKS=2 -DGROUPS=2 -DOTHER -DTWO_WORKERS expect pass
// run: passer      -DTASKS=2 -DGROUPS=2 -DPASSER expect pass
// run: all         -DTASKS=2 -DGROUPS=1 -DSTRANGER -DOTHER -DPASSER expect pass
//
// Broken on purpose; each must be refuted:
// run: own_pocket_believed  -DTASKS=1 -DGROUPS=2 -DSTRANGER -DBELIEVED expect fail
// run: stranger_hoards      -DTASKS=1 -DGROUPS=1 -DSTRANGER -DHOARDS expect fail
// run: idle_keeps           -DTASKS=1 -DGROUPS=1 -DIDLE_KEEPS expect fail
// run: turns_without        -DTASKS=1 -DGROUPS=1 -DOTHER -DTURNS_WITHOUT expect fail
// run: returns_with         -DTASKS=1 -DGROUPS=1 -DPASSER -DRETURNS_WITH expect fail
// run: sleeps_with          -DTASKS=1 -DGROUPS=1 -DSLEEPS_WITH expect fail
// run: child_without_unit   -DTASKS=1 -DGROUPS=1 -DCHILD_WITHOUT expect fail
// run: unit_before_the_end  -DTASKS=1 -DGROUPS=1 -DUNIT_FIRST expect fail
// run: generation_ignored   -DTASKS=1 -DGROUPS=2 -DSTRANGER -DANY_GENERATION expect fail
// run: marked_after_look    -DTASKS=1 -DGROUPS=1 -DMARKED_LATE expect fail

#define EXTRA 1
#define POCKET_MAX 3

// The word.
byte count, generation;
bool is_marked;

bool is_asleep; // the owner
byte parents_queued, children_queued;
byte accepted[GROUPS + 1], ended[GROUPS + 1];
byte returned_count; // waits of the owner
bool is_other_queued = true;
bool can_work = true; // the worker has something to look for

#define QUEUED (parents_queued + children_queued)

// Gives back n units of the generation g; the last wakes.
inline sub(n, g) {
    d_step {
        assert(generation == g && count >= n);
        count = count - n;
        is_last = count == 0;
        must_wake = is_last && is_marked
    };
    if
    :: must_wake -> is_asleep = false
    :: else
    fi
}

inline empty_pocket() {
    is_last = false;
    if
    :: pocket > 0 -> n = pocket; pocket = 0; sub(n, its)
    :: else
    fi;
    n = 0
}

inline put() {
    pocket++;
    if
    :: pocket > POCKET_MAX -> empty_pocket()
    :: else
    fi
}

inline take_task() {
    d_step {
        found = 0;
        if
        :: parents_queued > 0 -> parents_queued--; found = 2
        :: parents_queued == 0 && children_queued > 0 -> children_queued--; found = 1
        :: else
        fi;
        // A task that is queued has a unit out: its group is the current one, or the model has found a mistake.
        its = (found != 0 -> generation : its)
    }
}

// Runs what was found. The task of a group holds one of its units.
inline run_task() {
    if
    :: found == 2 ->
#ifndef CHILD_WITHOUT
        if
        :: pocket > 0 -> pocket--
        :: else -> d_step { assert(generation == its && count > 0); count = count + 1 + EXTRA; pocket = EXTRA }
        fi;
#endif
        accepted[its]++;
        children_queued++
    :: else
    fi;
    found = 0;
#ifdef UNIT_FIRST
    sub(1, its);
    ended[its]++
#else
    ended[its]++;
    put()
#endif
}

proctype worker() {
    byte found, pocket, its, n;
    bool is_last, must_wake;
    do
    :: QUEUED > 0 ->
        take_task();
        if
        :: found != 0 -> run_task()
        :: else
        fi
#ifdef OTHER
    :: is_other_queued ->
        is_other_queued = false;
#ifndef TURNS_WITHOUT
        empty_pocket();
#endif
        returned_count == GROUPS
#endif
    :: QUEUED == 0 ->
#ifndef IDLE_KEEPS
        empty_pocket();
#endif
        QUEUED > 0 || returned_count == GROUPS;
        if
        :: returned_count == GROUPS && QUEUED == 0 -> break
        :: else
        fi
    od
}

#ifdef STRANGER
// Adds to the first group if that is not over.
proctype stranger() {
    byte pocket, its = 1, n;
    bool is_last, must_wake, is_in;
    generation >= 1;
    d_step {
#ifdef ANY_GENERATION
        is_in = count > 0;
#else
        is_in = generation == 1 && count > 0;
#endif
        if
        :: is_in ->
            accepted[1]++;
            count++;
#ifdef HOARDS
            count = count + EXTRA;
            pocket = EXTRA
#endif
        :: else
        fi
    };
    if
    :: is_in -> children_queued++
    :: else
    fi;
    returned_count == GROUPS;
    empty_pocket()
}
#endif

#ifdef PASSER
proctype passer() {
    byte found, pocket, its, n;
    bool is_last, must_wake;
    QUEUED > 0 || returned_count == GROUPS;
    take_task();
    if
    :: found != 0 -> run_task()
    :: else
    fi;
#ifndef RETURNS_WITH
    empty_pocket()
#endif
}
#endif

// Whether the group is over, or everything outstanding is in the own pocket: given back then.
inline look() {
    is_over = count == 0 || generation != own;
    if
    :: !is_over && pocket > 0 && pocket == count ->
#ifdef BELIEVED
        empty_pocket();
        is_over = true
#else
        empty_pocket();
        is_over = is_last
#endif
    :: else
    fi
}

inline sleep_on() {
#ifdef MARKED_LATE
    word = count;
    is_over = word == 0;
    is_marked = true;
#else
    d_step { is_marked = true; word = count; is_over = count == 0 };
#endif
    if
    :: is_over || QUEUED > 0
    :: else ->
        d_step {
            if
#ifdef MARKED_LATE
            :: is_marked -> is_asleep = true
#else
            :: count == word && is_marked -> is_asleep = true
#endif
            :: else
            fi
        };
        !is_asleep || QUEUED > 0;
        is_asleep = false
    fi;
    word = 0
}

inline wait_for_group() {
    do
    :: look();
        if
        :: is_over -> break
        :: else
        fi;
        take_task();
        if
        :: found != 0 -> run_task()
        :: else ->
#ifndef SLEEPS_WITH
            empty_pocket();
#endif
            sleep_on()
        fi
    od
}

proctype owner() {
    byte found, pocket, its, n, own = 1, i, word;
    bool is_last, must_wake, is_over;
    do
    :: own > GROUPS -> break
    :: else ->
        d_step { count = 1; generation = own; is_marked = false };
        i = 0;
        do
        :: i < TASKS ->
            d_step { count++; accepted[own]++; i++ };
            parents_queued++
        :: else -> break
        od;
        its = own;
        put(); // the open unit
        wait_for_group();
        assert(pocket == 0 && accepted[own] == ended[own]);
        own++;
        returned_count++
    od
}

init {
    atomic {
        run owner();
        run worker();
#ifdef TWO_WORKERS
        run worker();
#endif
#ifdef STRANGER
        run stranger();
#endif
#ifdef PASSER
        run passer()
#endif
    }
}
