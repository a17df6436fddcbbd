// SPDX-License-Identifier: MIT
// The frame fence under every kind of interleaving: returns against waits, time-outs, new frames, closing, pokes and
// the end of the fence.

#include "explore.h"

#include "nebula/fence.h"
#include "platform/platform.h"

#define NO_LABEL ((nb_label){0})
#define POST_COUNT 4

// A value on its way to other threads, which sleep until it is there.
typedef struct post {
    nb_atomic_u64 value;
    nb_atomic_u32 is_there;
} post;

static void post_put(post *p, uint64_t value) {
    nbi_atomic_store_relaxed_u64(&p->value, value);
    nbi_atomic_store_release_u32(&p->is_there, 1); // read by the acquire load in post_get
    nbi_unpark(&p->is_there, UINT32_MAX);
}

static uint64_t post_get(const post *p) {
    while (nbi_atomic_load_acquire_u32(&p->is_there) == 0) nbi_park_until(&p->is_there, 0, NB_NEVER_NS);
    return nbi_atomic_load_relaxed_u64(&p->value);
}

typedef struct room {
    nb_fence *fence;
    post frame;
    post tickets[POST_COUNT];
    nb_atomic_u64 queued;     // the ticket of a piece of work that only one thread can do; 0 = none
    nb_atomic_u32 done_count; // pieces of work whose result is written
    nb_atomic_u32 ok_count, ended_count;
} room;

static void room_create_with(room *r, uint32_t slot_count, uint32_t slot_count_max) {
    nb_fence_desc desc = {.slot_count = slot_count,
                          .slot_count_max = slot_count_max,
                          .ticket_count_max = 4,
                          .timeout_ns = 500000,
                          .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_fence_create(&desc, &r->fence) == NB_OK);
}

static void room_create(void *user) { room_create_with(user, 2, 4); }

static nb_fence_frame room_begin(room *r) {
    nb_fence_frame frame = {0};
    EXPLORE_CHECK(nb_fence_begin(r->fence, &frame) == NB_OK);
    return frame;
}

static void room_begin_and_post(room *r, uint32_t count) {
    nb_fence_frame frame = room_begin(r);
    for (uint32_t i = 0; i < count; ++i) {
        nb_fence_ticket ticket;
        EXPLORE_CHECK(nb_fence_take(r->fence, frame, NO_LABEL, &ticket) == NB_OK);
        post_put(&r->tickets[i], ticket.value);
    }
    post_put(&r->frame, frame.value);
}

// The coordinator is whoever begins, and setup runs as nobody.
static void room_create_and_post(void *user) {
    room *r = user;
    room_create(r);
    room_begin_and_post(r, 2);
    EXPLORE_CHECK(nb_fence_disown(r->fence) == NB_OK);
}

static void room_destroy(void *user) {
    room *r = user;
    if (r->fence == NULL) return;
    nb_fence_stats stats = nb_fence_stats_get(r->fence);
    EXPLORE_CHECK(stats.ticket_count == 0 && stats.refused_count == 0);
    EXPLORE_CHECK(nb_fence_destroy(r->fence) == NB_OK);
}

static nb_fence_frame frame_of(const room *r) { return (nb_fence_frame){post_get(&r->frame)}; }

static nb_fence_ticket ticket_of(const room *r, uint32_t index) {
    return (nb_fence_ticket){post_get(&r->tickets[index])};
}

static void work_and_return(room *r, uint32_t index) {
    nb_fence_ticket ticket = ticket_of(r, index);
    nbi_atomic_fetch_add_relaxed_u32(&r->done_count, 1);
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket) == NB_OK);
}

// --- the end of the fence follows the wait at once, whatever the last returner still does ---

static void wait_and_destroy(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        work_and_return(r, index - 1);
        return;
    }
    room_begin_and_post(r, 2);
    nb_fence_report report;
    nb_fence_frame frame = nb_fence_current(r->fence);
    EXPLORE_CHECK(nb_fence_wait(r->fence, frame, NB_NEVER_NS, NULL, &report) == NB_OK);
    EXPLORE_CHECK(report.status == NB_FENCE_COMPLETE);
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->done_count) == 2);
    EXPLORE_CHECK(nb_fence_destroy(r->fence) == NB_OK);
    r->fence = NULL;
}

// --- several threads wait for one frame: the last return wakes all of them ---

static void many_wait(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        room_begin_and_post(r, 1);
        EXPLORE_CHECK(nb_fence_seal(r->fence) == NB_OK);
        return;
    }
    if (index == 1) {
        work_and_return(r, 0);
        return;
    }
    nb_fence_frame frame = frame_of(r);
    EXPLORE_CHECK(nb_fence_wait(r->fence, frame, NB_NEVER_NS, NULL, NULL) == NB_OK);
    EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->done_count) == 1);
}

// --- late tickets while the ring goes round: no frame is complete before its own work is done ---

typedef struct lap {
    post frame, ticket; // both 0 where the begin was refused
    nb_atomic_u32 is_done;
} lap;

#define LAP_COUNT 4

typedef struct race {
    room room;
    lap laps[LAP_COUNT];
} race;

static void race_create(void *user) {
    race *r = user;
    room_create_with(&r->room, 2, 3);
}

static void race_frames(race *r) {
    nb_fence *fence = r->room.fence;
    for (uint32_t i = 0; i < LAP_COUNT; ++i) {
        lap *own = &r->laps[i];
        nb_fence_frame frame;
        nb_fence_ticket ticket;
        nb_result result = nb_fence_begin(fence, &frame);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
        if (result == NB_FULL) {
            post_put(&own->frame, 0);
            post_put(&own->ticket, 0);
            continue;
        }
        EXPLORE_CHECK(nb_fence_frame_number(frame) == i + 1);
        EXPLORE_CHECK(nb_fence_take(fence, frame, NO_LABEL, &ticket) == NB_OK);
        post_put(&own->frame, frame.value);
        post_put(&own->ticket, ticket.value);
        uint64_t deadline_ns = nbi_clock_now_ns() + explore_random() % 2 * 300;
        nb_fence_report report;
        result = nb_fence_wait(fence, frame, deadline_ns, NULL, &report);
        EXPLORE_CHECK(result == NB_OK || result == NB_TIMEOUT);
        if (result == NB_OK) EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&own->is_done) == 1);
        if (result == NB_TIMEOUT) EXPLORE_CHECK(nbi_clock_now_ns() >= deadline_ns);
        EXPLORE_CHECK(nb_fence_is_degraded(fence, frame) == (result == NB_TIMEOUT));
    }
}

// Every second frame is done by each worker.
static void race_work(race *r, uint32_t worker) {
    for (uint32_t i = worker; i < LAP_COUNT; i += 2) {
        uint64_t value = post_get(&r->laps[i].ticket);
        if (value == 0) continue;
        nbi_atomic_store_relaxed_u32(&r->laps[i].is_done, 1);
        EXPLORE_CHECK(nb_fence_return(r->room.fence, (nb_fence_ticket){value}) == NB_OK);
        EXPLORE_CHECK(nb_fence_return(r->room.fence, (nb_fence_ticket){value}) == NB_ERR_STALE);
    }
}

// Waits for each frame too, from beside, and after it may have been replaced.
static void race_watch(race *r) {
    for (uint32_t i = 0; i < LAP_COUNT; ++i) {
        nb_fence_frame frame = {post_get(&r->laps[i].frame)};
        if (frame.value == 0) continue;
        EXPLORE_CHECK(nb_fence_wait(r->room.fence, frame, NB_NEVER_NS, NULL, NULL) == NB_OK);
        EXPLORE_CHECK(nbi_atomic_load_relaxed_u32(&r->laps[i].is_done) == 1);
    }
}

static void race_thread(void *user, uint32_t index) {
    race *r = user;
    if (index == 0) race_frames(r);
    if (index == 1 || index == 2) race_work(r, index - 1);
    if (index == 3) race_watch(r);
}

static void race_check(void *user) {
    race *r = user;
    nb_fence_stats stats = nb_fence_stats_get(r->room.fence);
    EXPLORE_CHECK(stats.frame_count + stats.full_count == LAP_COUNT);
    EXPLORE_CHECK(stats.refused_count == stats.frame_count);
    EXPLORE_CHECK(stats.ticket_count == 0 && stats.pending_slots == 0);
    EXPLORE_CHECK(nb_fence_destroy(r->room.fence) == NB_OK);
}

// --- one ticket, two returns: one of them counts ---

static void return_twice(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        EXPLORE_CHECK(nb_fence_wait(r->fence, nb_fence_current(r->fence), NB_NEVER_NS, NULL, NULL) == NB_CLOSED);
        return;
    }
    nb_fence_ticket ticket = ticket_of(r, 0);
    if (nb_fence_return(r->fence, ticket) == NB_OK) nbi_atomic_fetch_add_relaxed_u32(&r->ok_count, 1);
    // Its record is taken again meanwhile: the old ticket stays old.
    nb_fence_ticket mine;
    EXPLORE_CHECK(nb_fence_take(r->fence, (nb_fence_frame){0}, NO_LABEL, &mine) == NB_OK);
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket) == NB_ERR_STALE);
    EXPLORE_CHECK(nb_fence_return(r->fence, mine) == NB_OK);
    if (nbi_atomic_fetch_add_seq_cst_u32(&r->ended_count, 1) == 1) EXPLORE_CHECK(nb_fence_close(r->fence) == NB_OK);
}

static void return_twice_check(void *user) {
    room *r = user;
    EXPLORE_CHECK(r->ok_count.value == 1);
    nb_fence_stats stats = nb_fence_stats_get(r->fence);
    EXPLORE_CHECK(stats.ticket_count == 1 && stats.refused_count == 3);
    EXPLORE_CHECK(nb_fence_destroy(r->fence) == NB_BUSY);
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket_of(r, 1)) == NB_OK);
    EXPLORE_CHECK(nb_fence_destroy(r->fence) == NB_OK);
}

// --- records: no ticket is handed out twice, and a straggler is never half of two tickets ---

static void records_create(void *user) {
    room *r = user;
    nb_fence_desc desc = {.slot_count = 2, .ticket_count_max = 3, .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_fence_create(&desc, &r->fence) == NB_OK);
    nb_fence_frame frame = room_begin(r);
    post_put(&r->frame, frame.value);
    EXPLORE_CHECK(nb_fence_disown(r->fence) == NB_OK);
}

static bool take_labelled(room *r, nb_fence_frame frame, nb_fence_ticket *ticket) {
    nb_label label = {(uint32_t)nbi_thread_id()};
    nb_result result = nb_fence_take(r->fence, frame, label, ticket);
    EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
    return result == NB_OK;
}

// Two at once, the first given back first: the head of the free list is then the same with another one below.
static void take_two(room *r, nb_fence_frame frame) {
    nb_fence_ticket first, second;
    if (!take_labelled(r, frame, &first)) return;
    bool has_second = take_labelled(r, frame, &second);
    EXPLORE_CHECK(nb_fence_return(r->fence, first) == NB_OK);
    if (has_second) EXPLORE_CHECK(nb_fence_return(r->fence, second) == NB_OK);
}

static void records_shared(void *user, uint32_t index) {
    (void)index;
    room *r = user;
    for (int i = 0; i < 3; ++i) take_two(r, frame_of(r));
}

static void records_listed(void *user, uint32_t index) {
    room *r = user;
    if (index != 0) {
        records_shared(user, index);
        return;
    }
    for (int i = 0; i < 4; ++i) {
        nb_fence_report report;
        EXPLORE_CHECK(nb_fence_wait(r->fence, frame_of(r), 1, NULL, &report) == NB_TIMEOUT);
        for (uint32_t late = 0; late < report.straggler_count; ++late) {
            EXPLORE_CHECK(report.stragglers[late].thread_id == report.stragglers[late].label.id);
        }
    }
}

// --- work that only the waiting thread can do is not slept through ---

static bool run_queued(void *user, nb_fence_frame frame) {
    (void)frame;
    room *r = user;
    uint64_t value = nbi_atomic_exchange_acquire_u64(&r->queued, 0);
    if (value == 0) return false;
    EXPLORE_CHECK(nb_fence_return(r->fence, (nb_fence_ticket){value}) == NB_OK);
    return true;
}

static void poke_create(void *user) {
    room *r = user;
    room_create(r);
    nb_fence_frame frame = room_begin(r);
    nb_fence_ticket ticket;
    EXPLORE_CHECK(nb_fence_take(r->fence, frame, NO_LABEL, &ticket) == NB_OK);
    post_put(&r->tickets[0], ticket.value);
    post_put(&r->frame, frame.value);
    EXPLORE_CHECK(nb_fence_seal(r->fence) == NB_OK);
}

// Others wait too, and cannot do the work.
static void poke_thread(void *user, uint32_t index) {
    room *r = user;
    nb_fence_frame frame = frame_of(r);
    if (index == 1) {
        nbi_atomic_exchange_release_u64(&r->queued, ticket_of(r, 0).value);
        EXPLORE_CHECK(nb_fence_poke(r->fence, frame) == NB_OK);
        return;
    }
    nb_fence_help help = {.run = run_queued, .user = r};
    EXPLORE_CHECK(nb_fence_wait(r->fence, frame, NB_NEVER_NS, index == 0 ? &help : NULL, NULL) == NB_OK);
}

// --- a ticket taken at the last moment: refused, or waited for ---

static void last_moment_create(void *user) {
    room *r = user;
    room_create_and_post(r);
    // One ticket is enough: its return is the frame's last unless another is taken first.
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket_of(r, 1)) == NB_OK);
}

static void last_moment(void *user, uint32_t index) {
    room *r = user;
    nb_fence_frame frame = frame_of(r);
    if (index == 0) {
        // Also gives back the open unit, which setup's coordinator left.
        nb_fence_frame next;
        EXPLORE_CHECK(nb_fence_begin(r->fence, &next) == NB_OK);
        EXPLORE_CHECK(nb_fence_wait(r->fence, frame, NB_NEVER_NS, NULL, NULL) == NB_OK);
        nbi_atomic_fetch_add_seq_cst_u32(&r->ended_count, 1);
        return;
    }
    if (index == 1) {
        work_and_return(r, 0);
        return;
    }
    nb_fence_ticket ticket;
    nb_result result = nb_fence_take(r->fence, frame, NO_LABEL, &ticket);
    EXPLORE_CHECK(result == NB_OK || result == NB_CLOSED);
    if (result != NB_OK) return;
    EXPLORE_CHECK(nbi_atomic_load_acquire_u32(&r->ended_count) == 0);
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket) == NB_OK);
}

// --- closing ends waits and loses no ticket ---

static void close_thread(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) {
        EXPLORE_CHECK(nb_fence_close(r->fence) == NB_OK);
        return;
    }
    if (index == 1) {
        work_and_return(r, 0);
        return;
    }
    nb_fence_frame frame = frame_of(r);
    nb_fence_ticket ticket;
    if (nb_fence_take(r->fence, frame, NO_LABEL, &ticket) == NB_OK) {
        EXPLORE_CHECK(nb_fence_return(r->fence, ticket) == NB_OK);
    }
    EXPLORE_CHECK(nb_fence_wait(r->fence, frame, NB_NEVER_NS, NULL, NULL) == NB_CLOSED);
}

static void close_check(void *user) {
    room *r = user;
    nb_fence_frame frame;
    EXPLORE_CHECK(nb_fence_begin(r->fence, &frame) == NB_CLOSED);
    EXPLORE_CHECK(nb_fence_return(r->fence, ticket_of(r, 1)) == NB_OK);
    room_destroy(r);
}

// --- a coordinator that waits for a slot ---

static void slot_create(void *user) {
    room *r = user;
    nb_fence_desc desc = {.slot_count = 2,
                          .slot_count_max = 2,
                          .ticket_count_max = 4,
                          .timeout_ns = 100000000,
                          .policy = NB_FENCE_POLICY_WAIT,
                          .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_fence_create(&desc, &r->fence) == NB_OK);
}

static void slot_thread(void *user, uint32_t index) {
    room *r = user;
    if (index == 1) {
        for (uint32_t i = 0; i < POST_COUNT; ++i) work_and_return(r, i);
        return;
    }
    for (uint32_t i = 0; i < POST_COUNT; ++i) {
        nb_fence_frame frame = room_begin(r);
        nb_fence_ticket ticket;
        EXPLORE_CHECK(nb_fence_take(r->fence, frame, NO_LABEL, &ticket) == NB_OK);
        post_put(&r->tickets[i], ticket.value);
    }
}

EXPLORE(fence_ends_right_after_the_wait, 3, room_create, wait_and_destroy, room_destroy, sizeof(room))
EXPLORE(last_return_wakes_every_waiter, 4, room_create, many_wait, room_destroy, sizeof(room))
EXPLORE(late_work_never_touches_a_newer_frame, 4, race_create, race_thread, race_check, sizeof(race))
EXPLORE(one_of_two_returns_counts, 3, room_create_and_post, return_twice, return_twice_check, sizeof(room))
EXPLORE(records_are_shared_out_once, 3, records_create, records_shared, room_destroy, sizeof(room))
EXPLORE(straggler_is_one_ticket, 3, records_create, records_listed, room_destroy, sizeof(room))
EXPLORE(poke_reaches_the_thread_that_can_help, 5, poke_create, poke_thread, room_destroy, sizeof(room))
EXPLORE(late_take_is_refused_or_waited_for, 3, last_moment_create, last_moment, room_destroy, sizeof(room))
EXPLORE(closing_ends_waits_and_keeps_tickets, 3, room_create_and_post, close_thread, close_check, sizeof(room))
EXPLORE(begin_waits_for_the_oldest_frame, 2, slot_create, slot_thread, room_destroy, sizeof(room))
