// SPDX-License-Identifier: MIT
#pragma once

// Timelines: numbers that only grow, such as the frame the CPU has finished or the value a GPU fence has reached, and
// what has to wait for them. An object that others may still use is retired with the value at which they are through,
// and destroyed by a later reclaim. The one rule: reclaim calls back only for values that were signalled before it;
// whoever signals a value vouches that everything up to it is over.
//
//     nb_timelines *timelines = NULL;
//     nb_timeline *gpu = NULL;
//     if (nb_timelines_create(NULL, &timelines) < 0) return 1;
//     nb_timelines_open(timelines, "gpu", &gpu);
//     void *buffer = malloc(64);
//     nb_timeline_retire(gpu, 7, buffer, my_destroy, NULL); // the GPU is through with it at 7
//     nb_timeline_signal(gpu, 7);                           // as read from its fence
//     nb_timelines_reclaim(timelines, 0, NULL);             // at the start of a frame: destroys the buffer
//     nb_timelines_destroy(timelines);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Timelines of a set where the desc gives no number: one for the CPU's frames, one for each queue of a GPU or two.
#define NB_TIMELINE_COUNT_DEFAULT 8
// Each reclaim looks at all of them.
#define NB_TIMELINE_COUNT_MAX 256

// Objects waiting where the desc gives no number: three frames in flight with a thousand replaced resources each.
#define NB_TIMELINE_RETIRE_COUNT_DEFAULT 4096
#define NB_TIMELINE_RETIRE_COUNT_MAX (1u << 20)

// The largest value. The one above it is what graphics drivers report for a device that was lost: taken for a value, it
// would free everything at once.
#define NB_TIMELINE_VALUE_MAX (UINT64_MAX - 1)

// Longest name in bytes, without the final zero; longer ones are cut.
#define NB_TIMELINE_NAME_SIZE_MAX 31

// A set of timelines and the objects that wait for them.
typedef struct nb_timelines nb_timelines;

// One of them; lives as long as its set.
typedef struct nb_timeline nb_timeline;

typedef struct nb_timelines_desc {
    uint32_t timeline_count_max; // 1..NB_TIMELINE_COUNT_MAX; 0 = 8
    uint32_t retire_count_max;   // objects waiting at once, 1..NB_TIMELINE_RETIRE_COUNT_MAX; 0 = 4096
    nb_hooks hooks;              // two allocations at creation, none later
} nb_timelines_desc;

// Ends an object. It may retire others, but neither reclaim nor destroy the set.
typedef void (*nb_timeline_destroy_fn)(void *object, void *user);

// Counters since creation. Read while others work, they are not one moment of all of them.
typedef struct nb_timelines_stats {
    uint32_t timeline_count;  // open
    uint32_t pending_count;   // objects waiting now
    uint32_t pending_peak;    // most at once
    uint64_t retire_count;    // objects accepted
    uint64_t reclaim_count;   // objects destroyed
    uint64_t full_count;      // objects refused because as many as possible were waiting
    uint64_t backwards_count; // signals refused because their value was below the one reached
} nb_timelines_stats;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_timelines_desc nb_timelines_desc_default(void);

// Makes a set without timelines; all its memory is allocated here. desc may be NULL.
// Thread: any. Owner: the caller, until nb_timelines_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (out is NULL),
// NB_ERR_RANGE.
NB_API nb_result nb_timelines_create(const nb_timelines_desc *desc, nb_timelines **out);

// Adds a timeline that stands at 0. The name is for reports; NULL is "timeline".
// Thread: one at a time. Owner: the set; the name is copied. Fails: NB_FULL, NB_ERR_MISUSE.
NB_API nb_result nb_timelines_open(nb_timelines *timelines, const char *name, nb_timeline **out);

// Says that everything up to `value` is over, and wakes who waits for that. The value may stay or grow by any step. A
// smaller one changes nothing and is counted: a number from the past must not make the present uncertain.
// Thread: any; meant for the timeline's one owner. Owner: unchanged. Fails: NB_ERR_RANGE (below the value reached, or
// above NB_TIMELINE_VALUE_MAX), NB_ERR_MISUSE.
NB_API nb_result nb_timeline_signal(nb_timeline *timeline, uint64_t value);

// The value reached. What was done before its signal is seen by the caller.
// Thread: any. Owner: nothing. Fails: 0 for NULL.
NB_API uint64_t nb_timeline_value(const nb_timeline *timeline);

// Waits until `value` is reached, or until deadline_ns of the machine's monotonic clock (nb_clock_now_ns). 0 does not
// wait, NB_NEVER_NS waits for ever. The set may be destroyed once all waits have returned, even if the signal that
// ended them has not.
// Thread: any that may block. Owner: nothing. Fails: NB_TIMEOUT, NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_timeline_wait(nb_timeline *timeline, uint64_t value, uint64_t deadline_ns);

// The name it was opened with.
// Thread: any. Owner: the set's string. Fails: "" for NULL.
NB_API const char *nb_timeline_name(const nb_timeline *timeline);

// Hands over an object to be destroyed after `value` is reached: never within this call, even if it is already. It
// takes no lock. object may be NULL: the callback then does something at that time.
// Thread: any. Owner: the set on NB_OK; else still the caller. Fails: NB_FULL (counted; logged the first time),
// NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_timeline_retire(nb_timeline *timeline, uint64_t value, void *object, nb_timeline_destroy_fn destroy,
                                    void *user);

// Destroys the objects whose value is reached, in the order in which they were retired, across all timelines; those
// whose value is not stay in their order. At most count_max of them, the rest next time; 0 is all. *reclaimed_count,
// where not NULL, is how many.
// Thread: one at a time, the coordinator at the start of a frame; callbacks run in it, with no lock held. Owner: the
// objects end. Fails: NB_BUSY (inside another reclaim), NB_ERR_MISUSE.
NB_API nb_result nb_timelines_reclaim(nb_timelines *timelines, uint32_t count_max, uint32_t *reclaimed_count);

// Reads the counters.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_timelines_stats nb_timelines_stats_get(const nb_timelines *timelines);

// Destroys every object that still waits, reached or not, in the order of retirement, and then the set. Nothing may use
// those objects any more; how many were never reached is reported (NB_ITEM_TIMELINE_UNREACHED), with the first
// timeline among them and its values. NULL is fine.
// Thread: one, while no other is inside a call, but for signals on their way out. Owner: the set ends. Fails: NB_BUSY
// (inside a reclaim; nothing is done).
NB_API nb_result nb_timelines_destroy(nb_timelines *timelines);

NB_EXTERN_C_END
