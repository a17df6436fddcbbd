// SPDX-License-Identifier: MIT
// Timelines, who waits for them, and what is destroyed when they get there.
//
// Retired objects pass through a channel, so that any thread may retire without a lock. Reclaim moves them into a list
// that it alone touches, in the order of the channel, which is the order of retirement. A place is reserved before the
// send and given back after the callback, and channel and list both have room for all places: neither can be full.

#include "nebula/timeline.h"

#include <stdio.h>
#include <string.h>

#include "nebula/channel.h"

#include "../../base/base.h"
#include "../../platform/platform.h"

struct nb_timeline {
    nb_atomic_u64 value;
    nb_atomic_u32 event;        // changes with each signal that finds waiters; they park on it
    nb_atomic_u32 waiter_count; // inside nb_timeline_wait
    nb_atomic_u32 guest_count;  // inside nb_timeline_signal; the set is not freed under them
    uint64_t reached;           // the value as of the beginning of the running reclaim; the coordinator's
    nb_timelines *set;
    char name[NB_TIMELINE_NAME_SIZE_MAX + 1];
};

typedef struct retired {
    nb_timeline *timeline;
    uint64_t value;
    void *object;
    nb_timeline_destroy_fn destroy;
    void *user;
} retired;

NB_CHANNEL_DEFINE(inbox, retired);

struct nb_timelines {
    nb_hooks hooks;
    size_t size_bytes;
    nb_timeline *timelines;
    uint32_t timeline_count_max, retire_count_max;
    inbox inbox;
    retired *pending;             // oldest first; the coordinator's
    uint32_t listed_count;        // of pending
    nb_atomic_u32 timeline_count; // open
    nb_atomic_u32 is_reclaiming;  // also while the set is destroyed
    nb_atomic_u32 reserved_count; // reserved: being sent, in the inbox, in the list, or being destroyed
    nb_atomic_u32 reserved_peak;
    nb_atomic_u64 retire_count, reclaim_count, full_count, backwards_count;
};

#define REFUSE(set, result, ...) NBI_FAIL(&(set)->hooks, NB_ITEM_TIMELINE_ARGUMENT, (result), __VA_ARGS__)

nb_timelines_desc nb_timelines_desc_default(void) {
    return (nb_timelines_desc){
        .timeline_count_max = NB_TIMELINE_COUNT_DEFAULT,
        .retire_count_max = NB_TIMELINE_RETIRE_COUNT_DEFAULT,
        .hooks = nb_hooks_default(),
    };
}

static nb_result resolve_desc(const nb_timelines_desc *given, nb_timelines_desc *desc) {
    *desc = given != NULL ? *given : (nb_timelines_desc){0};
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
    if (desc->timeline_count_max == 0) desc->timeline_count_max = NB_TIMELINE_COUNT_DEFAULT;
    if (desc->retire_count_max == 0) desc->retire_count_max = NB_TIMELINE_RETIRE_COUNT_DEFAULT;
    if (desc->timeline_count_max > NB_TIMELINE_COUNT_MAX || desc->retire_count_max > NB_TIMELINE_RETIRE_COUNT_MAX) {
        return nbi_fail(&desc->hooks, NB_ITEM_TIMELINE_ARGUMENT, NB_ERR_RANGE, "nb_timelines_create",
                        "%u timelines or %u objects are too many", (unsigned)desc->timeline_count_max,
                        (unsigned)desc->retire_count_max);
    }
    return NB_OK;
}

nb_result nb_timelines_create(const nb_timelines_desc *given, nb_timelines **out) {
    nb_timelines_desc desc;
    nb_result result = resolve_desc(given, &desc);
    if (result != NB_OK) return result;
    if (out == NULL) return nbi_fail(&desc.hooks, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, __func__, "out is NULL");
    nb_channel_desc inbox_desc = {.name = "retired",
                                  .kind = NB_CHANNEL_KIND_MPMC, // several threads may reclaim, one after the other
                                  .capacity = desc.retire_count_max,
                                  .hooks = desc.hooks};
    // The inbox is a private matter: when it closes is no news.
    if (inbox_desc.hooks.logger.level_min < NB_LOG_WARNING) inbox_desc.hooks.logger.level_min = NB_LOG_WARNING;
    inbox queue = {NULL};
    result = inbox_create(&inbox_desc, &queue);
    if (result != NB_OK) return result;
    // Within the limits of the desc nothing here can overflow.
    size_t list_bytes = desc.retire_count_max * sizeof(retired);
    size_t size_bytes = sizeof(nb_timelines) + desc.timeline_count_max * sizeof(nb_timeline) + list_bytes;
    nb_timelines *set = nbi_alloc(&desc.hooks, size_bytes, NB_CACHE_LINE, __func__);
    if (set == NULL) {
        nb_channel_destroy(queue.base);
        return NB_ERR_MEMORY;
    }
    memset(set, 0, size_bytes - list_bytes);
    set->hooks = desc.hooks;
    set->size_bytes = size_bytes;
    set->timeline_count_max = desc.timeline_count_max;
    set->retire_count_max = desc.retire_count_max;
    set->timelines = (nb_timeline *)(void *)(set + 1);
    set->pending = (retired *)(void *)(set->timelines + desc.timeline_count_max);
    set->inbox = queue;
    *out = set;
    return NB_OK;
}

NB_STATIC_ASSERT(sizeof(nb_timelines) % 8 == 0 && sizeof(nb_timeline) % 8 == 0, "all in one allocation");

nb_result nb_timelines_open(nb_timelines *set, const char *name, nb_timeline **out) {
    if (set == NULL) return NBI_FAIL_NULL("timelines");
    if (out == NULL) return REFUSE(set, NB_ERR_MISUSE, "out is NULL");
    uint32_t index = nbi_atomic_load_acquire_u32(&set->timeline_count);
    if (index == set->timeline_count_max) return NB_FULL;
    nb_timeline *timeline = &set->timelines[index];
    timeline->set = set;
    snprintf(timeline->name, sizeof timeline->name, "%s", name != NULL ? name : "timeline");
    // Publishes the timeline; read by the acquire load in look_at_values.
    nbi_atomic_store_release_u32(&set->timeline_count, index + 1);
    *out = timeline;
    return NB_OK;
}

// --- values ---

static bool is_value(uint64_t value) { return value <= NB_TIMELINE_VALUE_MAX; }

// False: the value reached is above; it is left in *reached.
static bool raise_value(nb_timeline *timeline, uint64_t value, uint64_t *reached) {
    *reached = nbi_atomic_load_relaxed_u64(&timeline->value);
    do {
        if (*reached > value) return false;
        // Publishes what is over; read by the acquire loads of the value. seq_cst: one half of the pair "raise, or see
        // that somebody waits"; the other is the count in nb_timeline_wait.
    } while (!nbi_atomic_compare_exchange_seq_cst_u64(&timeline->value, reached, value));
    return true;
}

static void wake_waiters(nb_timeline *timeline) {
    if (nbi_atomic_load_seq_cst_u32(&timeline->waiter_count) == 0) return;
    // After the value; read by the acquire load in nb_timeline_wait, which comes before its look at the value.
    nbi_atomic_fetch_add_seq_cst_u32(&timeline->event, 1);
    nbi_unpark(&timeline->event, UINT32_MAX);
}

nb_result nb_timeline_signal(nb_timeline *timeline, uint64_t value) {
    if (timeline == NULL) return NBI_FAIL_NULL("timeline");
    nb_timelines *set = timeline->set;
    if (!is_value(value)) return REFUSE(set, NB_ERR_RANGE, "%s: a lost device is no value", timeline->name);
    // Before the value: who is woken by it may destroy the set, which waits for this count.
    nbi_atomic_fetch_add_seq_cst_u32(&timeline->guest_count, 1);
    uint64_t reached = 0;
    bool is_raised = raise_value(timeline, value, &reached);
    nb_result result = NB_OK;
    if (is_raised) {
        wake_waiters(timeline);
    } else {
        nbi_atomic_fetch_add_relaxed_u64(&set->backwards_count, 1);
        result = NBI_FAIL(&set->hooks, NB_ITEM_TIMELINE_BACKWARDS, NB_ERR_RANGE, "%s: %llu after %llu", timeline->name,
                          nb_llu(value), nb_llu(reached));
    }
    nbi_atomic_fetch_sub_release_u32(&timeline->guest_count, 1); // read by wait_for_guests
    return result;
}

uint64_t nb_timeline_value(const nb_timeline *timeline) {
    if (timeline == NULL) NBI_FAIL_NULL("timeline");
    // Pairs with the compare-exchange in raise_value.
    return timeline != NULL ? nbi_atomic_load_acquire_u64(&timeline->value) : 0;
}

static nb_result wait_for_value(nb_timeline *timeline, uint64_t value, uint64_t deadline_ns) {
    for (;;) {
        // Before the look: a signal after it changes the event, too, and the park returns at once.
        uint32_t event = nbi_atomic_load_acquire_u32(&timeline->event);
        if (nbi_atomic_load_seq_cst_u64(&timeline->value) >= value) return NB_OK;
        if (deadline_ns != NB_NEVER_NS && nbi_clock_now_ns() >= deadline_ns) return NB_TIMEOUT;
        nbi_park_until(&timeline->event, event, deadline_ns);
    }
}

nb_result nb_timeline_wait(nb_timeline *timeline, uint64_t value, uint64_t deadline_ns) {
    if (timeline == NULL) return NBI_FAIL_NULL("timeline");
    if (!is_value(value)) return REFUSE(timeline->set, NB_ERR_RANGE, "%s: never reached", timeline->name);
    if (nbi_atomic_load_acquire_u64(&timeline->value) >= value) return NB_OK;
    if (deadline_ns == 0) return NB_TIMEOUT;
    // seq_cst, before the look at the value: the other half of the pair in raise_value.
    nbi_atomic_fetch_add_seq_cst_u32(&timeline->waiter_count, 1);
    nb_result result = wait_for_value(timeline, value, deadline_ns);
    nbi_atomic_fetch_sub_seq_cst_u32(&timeline->waiter_count, 1);
    return result;
}

const char *nb_timeline_name(const nb_timeline *timeline) {
    if (timeline == NULL) NBI_FAIL_NULL("timeline");
    return timeline != NULL ? timeline->name : "";
}

// --- objects ---

static bool reserve_slot(nb_timelines *set) {
    uint32_t count = nbi_atomic_load_relaxed_u32(&set->reserved_count);
    do {
        if (count >= set->retire_count_max) return false;
        // Pairs with the release in run_one: the places of channel and list that it used are free.
    } while (!nbi_atomic_compare_exchange_acquire_u32(&set->reserved_count, &count, count + 1));
    uint32_t peak = nbi_atomic_load_relaxed_u32(&set->reserved_peak);
    while (peak <= count && !nbi_atomic_compare_exchange_relaxed_u32(&set->reserved_peak, &peak, count + 1)) continue;
    return true;
}

nb_result nb_timeline_retire(nb_timeline *timeline, uint64_t value, void *object, nb_timeline_destroy_fn destroy,
                             void *user) {
    if (timeline == NULL) return NBI_FAIL_NULL("timeline");
    nb_timelines *set = timeline->set;
    if (destroy == NULL) return REFUSE(set, NB_ERR_MISUSE, "%s: destroy is NULL", timeline->name);
    if (!is_value(value)) return REFUSE(set, NB_ERR_RANGE, "%s: never reached", timeline->name);
    if (!reserve_slot(set)) {
        bool is_first = nbi_atomic_fetch_add_relaxed_u64(&set->full_count, 1) == 0;
        if (is_first) {
            nbi_log(&set->hooks, NB_LOG_WARNING, NB_ITEM_TIMELINE_FULL, __func__,
                    "%s at %llu: %u objects are waiting, which is all there is room for", timeline->name,
                    nb_llu(nb_timeline_value(timeline)), (unsigned)set->retire_count_max);
        }
        return NB_FULL;
    }
    retired entry = {.timeline = timeline, .value = value, .object = object, .destroy = destroy, .user = user};
    // Counted first: an object is never seen destroyed before it is seen retired.
    nbi_atomic_fetch_add_relaxed_u64(&set->retire_count, 1);
    return inbox_try_send(set->inbox, &entry);
}

// One value for the whole call: what becomes of an object does not depend on when its turn comes.
static void look_at_values(nb_timelines *set) {
    uint32_t count = nbi_atomic_load_acquire_u32(&set->timeline_count);
    for (uint32_t i = 0; i < count; ++i) {
        // Pairs with the compare-exchange in raise_value: what was over before the signal happened before the callback.
        set->timelines[i].reached = nbi_atomic_load_acquire_u64(&set->timelines[i].value);
    }
}

// Bounded by the places there are: nobody can retire more than that meanwhile.
static void empty_inbox(nb_timelines *set) {
    while (set->listed_count < set->retire_count_max) {
        if (inbox_try_recv(set->inbox, &set->pending[set->listed_count]) != NB_OK) return;
        ++set->listed_count;
    }
}

static void run_one(nb_timelines *set, const retired *entry) {
    entry->destroy(entry->object, entry->user);
    nbi_atomic_fetch_add_relaxed_u64(&set->reclaim_count, 1);
    nbi_atomic_fetch_sub_release_u32(&set->reserved_count, 1); // read by reserve_slot
}

// Destroys what is due, up to count_max, and closes the gaps behind.
static uint32_t run_due(nb_timelines *set, uint32_t count_max, bool is_all) {
    uint32_t done_count = 0, kept_count = 0, listed_count = set->listed_count;
    for (uint32_t i = 0; i < listed_count; ++i) {
        retired entry = set->pending[i];
        bool is_due = is_all || entry.value <= entry.timeline->reached;
        if (is_due && done_count < count_max) {
            run_one(set, &entry);
            ++done_count;
        } else {
            set->pending[kept_count++] = entry;
        }
    }
    set->listed_count = kept_count;
    return done_count;
}

// acquire: the list as the last reclaim left it, perhaps in another thread; read from the release in reclaim_end.
static bool reclaim_begin(nb_timelines *set) { return nbi_atomic_exchange_acquire_u32(&set->is_reclaiming, 1) == 0; }

static void reclaim_end(nb_timelines *set) { nbi_atomic_store_release_u32(&set->is_reclaiming, 0); }

nb_result nb_timelines_reclaim(nb_timelines *set, uint32_t count_max, uint32_t *reclaimed_count) {
    if (set == NULL) return NBI_FAIL_NULL("timelines");
    if (!reclaim_begin(set)) return NB_BUSY;
    // The values first: an object retired before the signal that is seen here is not missed below.
    look_at_values(set);
    empty_inbox(set);
    uint32_t done_count = run_due(set, count_max != 0 ? count_max : UINT32_MAX, false);
    reclaim_end(set);
    if (reclaimed_count != NULL) *reclaimed_count = done_count;
    return NB_OK;
}

nb_timelines_stats nb_timelines_stats_get(const nb_timelines *set) {
    if (set == NULL) {
        NBI_FAIL_NULL("timelines");
        return (nb_timelines_stats){0};
    }
    uint64_t reclaim_count = nbi_atomic_load_acquire_u64(&set->reclaim_count);
    return (nb_timelines_stats){
        .timeline_count = nbi_atomic_load_acquire_u32(&set->timeline_count),
        .pending_count = nbi_atomic_load_relaxed_u32(&set->reserved_count),
        .pending_peak = nbi_atomic_load_relaxed_u32(&set->reserved_peak),
        .retire_count = nbi_atomic_load_relaxed_u64(&set->retire_count),
        .reclaim_count = reclaim_count,
        .full_count = nbi_atomic_load_relaxed_u64(&set->full_count),
        .backwards_count = nbi_atomic_load_relaxed_u64(&set->backwards_count),
    };
}

// --- the end ---

static void report_unreached(nb_timelines *set) {
    const retired *first = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->listed_count; ++i) {
        const retired *entry = &set->pending[i];
        if (entry->value <= entry->timeline->reached) continue;
        if (first == NULL) first = entry;
        ++count;
    }
    if (first == NULL) return;
    nbi_log(&set->hooks, NB_LOG_WARNING, NB_ITEM_TIMELINE_UNREACHED, "nb_timelines_destroy",
            "%u objects were never reached, the first at %llu of %s, which stands at %llu", (unsigned)count,
            nb_llu(first->value), first->timeline->name, nb_llu(first->timeline->reached));
}

// A signal may still be on its way out although the wait that it ended has returned.
static void wait_for_guests(nb_timelines *set) {
    uint32_t count = nbi_atomic_load_acquire_u32(&set->timeline_count);
    for (uint32_t i = 0; i < count; ++i) {
        while (nbi_atomic_load_acquire_u32(&set->timelines[i].guest_count) != 0) nbi_thread_yield();
    }
}

nb_result nb_timelines_destroy(nb_timelines *set) {
    if (set == NULL) return NB_OK;
    if (!reclaim_begin(set)) return NB_BUSY;
    wait_for_guests(set);
    look_at_values(set);
    empty_inbox(set);
    report_unreached(set);
    // Callbacks may retire more. Each round destroys all there was; who retires for ever is cut off by the number of
    // rounds, as many as there are places, and the inbox reports what is left.
    for (uint32_t round = 0; set->listed_count > 0 && round < set->retire_count_max; ++round) {
        run_due(set, UINT32_MAX, true);
        empty_inbox(set);
    }
    nb_channel_destroy(set->inbox.base);
    nb_hooks hooks = set->hooks;
    nbi_free(&hooks, set, set->size_bytes);
    return NB_OK;
}
