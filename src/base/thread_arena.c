// SPDX-License-Identifier: MIT
// Thread arenas: frame slots that pins keep from being reused, and per thread one arena for each slot.
//
// A slot is one 64-bit word {frame number, pins}. Pin and reuse are both compare-exchanges on it, so one of them loses:
// a pin that comes first keeps the slot, a pin that comes later finds another number. An arena of a slot is reset by
// its own thread when that thread meets the slot with a newer number, which cannot happen while the slot is pinned.

#include "nebula/thread_arena.h"

#include "../platform/platform.h"
#include "arena.h"
#include "base.h"
#include "lock.h"

#define SLOT_MAX NB_THREAD_ARENA_SLOT_COUNT_MAX
#define NUMBER_MASK NB_ARENA_FRAME_NUMBER_MAX

// A slot word: the low 24 bits count pins, the rest is the frame number. All pin bits set means that no frame lives in
// the slot.
#define PIN_BITS 24
#define PIN_MASK (((uint64_t)1 << PIN_BITS) - 1)
#define PINS_NO_FRAME PIN_MASK

NB_STATIC_ASSERT(NB_THREAD_ARENA_PIN_COUNT_MAX == PINS_NO_FRAME - 1, "every count below the mark of a free slot");

// A frame value: the low 8 bits are slot + 1, so that no frame is zero.
#define FRAME_SLOT_BITS 8

typedef struct frame_slot {
    nb_atomic_u64 word;
    // Pins of different frames come from different threads; they do not share a line.
    unsigned char padding[NB_CACHE_LINE - sizeof(nb_atomic_u64)];
} frame_slot;

typedef struct thread_slot {
    nb_arena *arena; // NULL = no memory yet
    uint64_t frame;  // value of the frame the contents belong to
} thread_slot;

typedef struct thread_record {
    nb_thread_arena head; // what the public header sees; first, so that both have one address
    nb_thread_arenas *context;
    struct thread_record *next; // in the idle list
    uint64_t owner;             // thread id; 0 = idle
    uint32_t swept_slot;        // where release_unused_slot goes on
    thread_slot slots[SLOT_MAX];
} thread_record;

NB_STATIC_ASSERT(offsetof(thread_record, head) == 0, "a record and its public part share their address");

struct nb_thread_arenas {
    nb_atomic_u64 current; // frame value; read by every allocation, written once a frame
    unsigned char padding[NB_CACHE_LINE - sizeof(nb_atomic_u64)];
    frame_slot slots[SLOT_MAX];
    nb_atomic_u64 stale_count;

    nbi_lock lock;                // protects everything up to the settings, and orders advances
    thread_record *idle;          // newest first
    bool is_full_reported;        // by the newest advance
    bool is_attach_full_reported; // by the newest attach
    nb_atomic_u32 idle_count;     // this and the next three: statistics read them without the lock
    nb_atomic_u32 thread_count;
    nb_atomic_u32 slot_count; // opened so far
    nb_atomic_u64 full_count;

    uint32_t slot_count_min; // settings, constant after creation
    uint32_t slot_count_max;
    uint32_t thread_count_max;
    nb_arena_desc arena_desc;
    nb_hooks hooks;
};

NB_STATIC_ASSERT(sizeof(frame_slot) == NB_CACHE_LINE, "one slot a line");
NB_STATIC_ASSERT(offsetof(nb_thread_arenas, slots) == NB_CACHE_LINE, "the hot word has a line of its own");

// --- words ---

static uint64_t slot_word(uint64_t number, uint64_t pins) { return number << PIN_BITS | pins; }
static uint64_t word_number(uint64_t word) { return word >> PIN_BITS; }
static uint64_t word_pins(uint64_t word) { return word & PIN_MASK; }

static uint64_t frame_value(uint64_t number, uint32_t slot) { return number << FRAME_SLOT_BITS | (slot + 1); }
static uint32_t frame_slot_index(uint64_t frame) { return (uint32_t)(frame & ((1u << FRAME_SLOT_BITS) - 1)) - 1; }
static uint64_t frame_number(uint64_t frame) { return frame >> FRAME_SLOT_BITS; }

// False for zero and for values no frame can have; what follows may index with the slot.
static bool is_frame_value(uint64_t frame) {
    return frame_slot_index(frame) < SLOT_MAX && frame_number(frame) <= NUMBER_MASK;
}

static bool is_frame_in_word(uint64_t frame, uint64_t word) {
    return word_number(word) == frame_number(frame) && word_pins(word) != PINS_NO_FRAME;
}

// Whether the frame's blocks are to be kept: its slot has not gone on to another one. Pairs with the release in
// take_slot.
static bool is_frame_alive(const nb_thread_arenas *arenas, uint64_t frame) {
    return is_frame_in_word(frame, nbi_atomic_load_acquire_u64(&arenas->slots[frame_slot_index(frame)].word));
}

// --- context ---

nb_thread_arenas_desc nb_thread_arenas_desc_default(void) {
    return (nb_thread_arenas_desc){
        .capacity_bytes = NB_ARENA_CAPACITY_DEFAULT,
        .policy = NB_ARENA_POLICY_CHAIN,
        .slot_count = NB_THREAD_ARENA_SLOT_COUNT_DEFAULT,
        .slot_count_max = NB_THREAD_ARENA_SLOT_COUNT_MAX,
        .thread_count_max = NB_THREAD_ARENA_THREAD_COUNT_DEFAULT,
        .hooks = nb_hooks_default(),
    };
}

static void resolve_desc(nb_thread_arenas_desc *desc) {
    const nb_thread_arenas_desc defaults = nb_thread_arenas_desc_default();
    if (desc->capacity_bytes == 0) desc->capacity_bytes = defaults.capacity_bytes;
    if (desc->policy == NB_ARENA_POLICY_DEFAULT) desc->policy = defaults.policy;
    if (desc->slot_count == 0) desc->slot_count = defaults.slot_count;
    if (desc->slot_count_max == 0) desc->slot_count_max = defaults.slot_count_max;
    if (desc->thread_count_max == 0) desc->thread_count_max = defaults.thread_count_max;
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
}

static nb_result check_desc(const nb_thread_arenas_desc *desc, const char *function) {
    const char *problem = NULL;
    if ((unsigned)desc->policy >= NB_ARENA_POLICY_COUNT) problem = "policy is not an nb_arena_policy";
    if ((unsigned)desc->checks >= NB_ARENA_CHECKS_COUNT) problem = "checks is not an nb_arena_checks";
    if (problem != NULL) {
        return nbi_fail(&desc->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, function, "%s", problem);
    }
    if (desc->slot_count < 2 || desc->slot_count_max < desc->slot_count || desc->slot_count_max > SLOT_MAX) {
        problem = "slot_count must be 2 or more and slot_count_max from there to 64";
    }
    if (desc->frame_first > NUMBER_MASK) problem = "frame_first has more than 40 bits";
    if (desc->capacity_bytes > SIZE_MAX / 2) problem = "capacity_bytes exceeds half the address space";
    if (problem != NULL) {
        return nbi_fail(&desc->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_RANGE, function, "%s", problem);
    }
    return NB_OK;
}

nb_result nb_thread_arenas_create(const nb_thread_arenas_desc *desc, nb_thread_arenas **arenas) {
    nb_thread_arenas_desc resolved = desc != NULL ? *desc : nb_thread_arenas_desc_default();
    resolve_desc(&resolved);
    if (arenas == NULL) return NBI_FAIL(&resolved.hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "arenas is NULL");
    nb_result result = check_desc(&resolved, __func__);
    if (result != NB_OK) return result;

    nb_thread_arenas *context =
        (nb_thread_arenas *)nbi_alloc(&resolved.hooks, sizeof *context, NB_CACHE_LINE, __func__);
    if (context == NULL) return NB_ERR_MEMORY;
    *context = (nb_thread_arenas){
        .current = {frame_value(resolved.frame_first, 0)},
        .slot_count = {resolved.slot_count},
        .slot_count_min = resolved.slot_count,
        .slot_count_max = resolved.slot_count_max,
        .thread_count_max = resolved.thread_count_max,
        .arena_desc = {.label = "thread arena",
                       .capacity_bytes = resolved.capacity_bytes,
                       .policy = resolved.policy,
                       .checks = resolved.checks,
                       .hooks = resolved.hooks},
        .hooks = resolved.hooks,
    };
    for (uint32_t i = 1; i < SLOT_MAX; ++i) context->slots[i].word.value = PINS_NO_FRAME;
    context->slots[0].word.value = slot_word(resolved.frame_first, 0);
    *arenas = context;
    return NB_OK;
}

static void slot_release(thread_record *record, uint32_t slot) {
    nb_arena *arena = record->slots[slot].arena;
    if (arena == NULL) return;
    // Out of the slot first: a cleanup may come back here through the thread's next allocation.
    record->slots[slot] = (thread_slot){0};
    nbi_arena_deinit_managed(arena);
    nbi_free(&record->context->hooks, arena, sizeof *arena);
}

static void record_destroy(thread_record *record) {
    for (uint32_t i = 0; i < SLOT_MAX; ++i) slot_release(record, i);
    nbi_free(&record->context->hooks, record, sizeof *record);
}

static uint64_t pins_out(const nb_thread_arenas *arenas, uint32_t *live_count) {
    uint64_t pins = 0;
    *live_count = 0;
    for (uint32_t i = 0; i < SLOT_MAX; ++i) {
        uint64_t word = nbi_atomic_load_acquire_u64(&arenas->slots[i].word);
        if (word_pins(word) == PINS_NO_FRAME) continue;
        pins += word_pins(word);
        ++*live_count;
    }
    return pins;
}

nb_result nb_thread_arenas_destroy(nb_thread_arenas *arenas) {
    if (arenas == NULL) return NB_OK;
    // With the lock: a thread that is no longer counted must be done with the context.
    nbi_lock_acquire(&arenas->lock);
    nb_thread_arenas_stats stats = nb_thread_arenas_stats_get(arenas);
    nbi_lock_release(&arenas->lock);
    if (stats.thread_count != 0 || stats.pin_count != 0) {
        return NBI_FAIL(&arenas->hooks, NB_ITEM_ARENA_PINNED, NB_BUSY, "%u threads attached, %llu pins out",
                        (unsigned)stats.thread_count, nb_llu(stats.pin_count));
    }
    while (arenas->idle != NULL) {
        thread_record *record = arenas->idle;
        arenas->idle = record->next;
        record_destroy(record);
    }
    nb_hooks hooks = arenas->hooks;
    nbi_free(&hooks, arenas, sizeof *arenas);
    return NB_OK;
}

nb_thread_arenas_stats nb_thread_arenas_stats_get(const nb_thread_arenas *arenas) {
    if (arenas == NULL) {
        NBI_FAIL_NULL("arenas");
        return (nb_thread_arenas_stats){0};
    }
    nb_thread_arenas_stats stats = {
        .frame = nb_thread_arenas_frame(arenas),
        .slot_count = nbi_atomic_load_relaxed_u32(&arenas->slot_count),
        .thread_count = nbi_atomic_load_relaxed_u32(&arenas->thread_count),
        .idle_count = nbi_atomic_load_relaxed_u32(&arenas->idle_count),
        .full_count = nbi_atomic_load_relaxed_u64(&arenas->full_count),
        .stale_count = nbi_atomic_load_relaxed_u64(&arenas->stale_count),
    };
    stats.pin_count = pins_out(arenas, &stats.live_slot_count);
    return stats;
}

// --- frames ---

nb_arena_frame nb_thread_arenas_frame(const nb_thread_arenas *arenas) {
    if (arenas == NULL) {
        NBI_FAIL_NULL("arenas");
        return (nb_arena_frame){0};
    }
    // Pairs with the release in nb_thread_arenas_advance.
    return (nb_arena_frame){nbi_atomic_load_acquire_u64(&arenas->current)};
}

static bool is_reusable(const nb_thread_arenas *arenas, uint64_t word, uint64_t next_number) {
    if (word_pins(word) == PINS_NO_FRAME) return true;
    uint64_t age = (next_number - word_number(word)) & NUMBER_MASK;
    return word_pins(word) == 0 && age >= arenas->slot_count_min;
}

// Moves an unpinned old slot on. A pin that came since the word was read makes it fail.
// The release publishes the end of the old frame to is_frame_alive; the acquire sees all reads before the unpins.
static bool take_slot(nb_thread_arenas *arenas, uint32_t slot, uint64_t next_number, uint64_t desired) {
    uint64_t word = nbi_atomic_load_acquire_u64(&arenas->slots[slot].word);
    if (!is_reusable(arenas, word, next_number) || word == desired) return false;
    return nbi_atomic_compare_exchange_acq_rel_u64(&arenas->slots[slot].word, &word, desired);
}

// The lowest slot whose frame is old and unpinned gets the new frame; others like it end theirs. So the slots that pins
// made necessary fall out of use when the pins are back. Returns SLOT_MAX where there is none.
static uint32_t open_frame(nb_thread_arenas *arenas, uint64_t number, uint64_t pins) {
    uint32_t chosen = SLOT_MAX;
    uint32_t slot_count = nbi_atomic_load_relaxed_u32(&arenas->slot_count);
    for (uint32_t i = 0; i < slot_count; ++i) {
        if (chosen != SLOT_MAX) {
            take_slot(arenas, i, number, PINS_NO_FRAME);
        } else if (take_slot(arenas, i, number, slot_word(number, pins))) {
            chosen = i;
        }
    }
    if (chosen == SLOT_MAX && slot_count < arenas->slot_count_max) {
        chosen = slot_count;
        nbi_atomic_store_relaxed_u32(&arenas->slot_count, slot_count + 1);
        take_slot(arenas, chosen, number, slot_word(number, pins));
    }
    return chosen;
}

// Releases memory of threads that have left, as far as its frames have ended. Cleanups are the user's code, so the
// records are taken off the list and worked on without the lock; an attach meanwhile makes a new record.
static void sweep_idle(nb_thread_arenas *arenas) {
    nbi_lock_acquire(&arenas->lock);
    thread_record *list = arenas->idle;
    uint32_t count = nbi_atomic_load_relaxed_u32(&arenas->idle_count);
    arenas->idle = NULL;
    nbi_atomic_store_relaxed_u32(&arenas->idle_count, 0);
    nbi_lock_release(&arenas->lock);
    if (list == NULL) return;

    thread_record **link = &list;
    while (*link != NULL) {
        thread_record *record = *link;
        bool is_empty = true;
        for (uint32_t i = 0; i < SLOT_MAX; ++i) {
            thread_slot *slot = &record->slots[i];
            if (slot->arena != NULL && !is_frame_alive(arenas, slot->frame)) slot_release(record, i);
            is_empty = is_empty && slot->arena == NULL;
        }
        if (is_empty) {
            *link = record->next;
            record_destroy(record);
            --count;
        } else {
            link = &record->next;
        }
    }
    nbi_lock_acquire(&arenas->lock);
    *link = arenas->idle;
    arenas->idle = list;
    nbi_atomic_fetch_add_relaxed_u32(&arenas->idle_count, count);
    nbi_lock_release(&arenas->lock);
}

// One more pin of a frame. NB_ERR_STALE: it has ended; NB_FULL: too many are out.
static nb_result pin_frame(nb_thread_arenas *arenas, uint64_t frame) {
    nb_atomic_u64 *slot = &arenas->slots[frame_slot_index(frame)].word;
    uint64_t word = nbi_atomic_load_acquire_u64(slot);
    do {
        if (!is_frame_in_word(frame, word)) return NB_ERR_STALE;
        if (word_pins(word) == NB_THREAD_ARENA_PIN_COUNT_MAX) return NB_FULL;
    } while (!nbi_atomic_compare_exchange_acq_rel_u64(slot, &word, word + 1));
    return NB_OK;
}

// Opens the next frame with so many pins, or, where there is no slot, pins the one that stays open; zero in *frame
// where it has no room for a pin. False: it was refused.
static bool advance(nb_thread_arenas *arenas, uint64_t pins, nb_arena_frame *frame, const char *function) {
    nbi_lock_acquire(&arenas->lock);
    uint64_t current = nbi_atomic_load_relaxed_u64(&arenas->current);
    uint64_t number = (frame_number(current) + 1) & NUMBER_MASK;
    uint32_t slot = open_frame(arenas, number, pins);
    bool is_open = slot != SLOT_MAX;
    bool is_report_due = !is_open && !arenas->is_full_reported;
    arenas->is_full_reported = !is_open;
    if (!is_open) nbi_atomic_fetch_add_relaxed_u64(&arenas->full_count, 1);
    uint64_t opened = is_open ? frame_value(number, slot) : current;
    // Publishes the new frame; read by the acquire load in nb_thread_arena_get.
    if (is_open) nbi_atomic_store_release_u64(&arenas->current, opened);
    // The current frame does not end while the lock is held.
    bool is_pinned = is_open || pins == 0 || pin_frame(arenas, current) == NB_OK;
    *frame = (nb_arena_frame){is_pinned ? opened : 0};
    nbi_lock_release(&arenas->lock);

    if (is_report_due) {
        nbi_log(&arenas->hooks, NB_LOG_WARNING, NB_ITEM_ARENA_PINNED, function,
                "all %u slots are pinned or young: frame %llu stays open", (unsigned)arenas->slot_count_max,
                nb_llu(frame_number(current)));
    }
    if (is_open) sweep_idle(arenas);
    return is_open;
}

nb_result nb_thread_arenas_advance(nb_thread_arenas *arenas, nb_arena_frame *frame) {
    if (arenas == NULL) return NBI_FAIL_NULL("arenas");
    nb_arena_frame opened;
    if (!advance(arenas, 0, &opened, __func__)) return NB_FULL;
    if (frame != NULL) *frame = opened;
    return NB_OK;
}

nb_arena_frame nbi_thread_arenas_advance_pinned(nb_thread_arenas *arenas) {
    nb_arena_frame frame;
    advance(arenas, 1, &frame, "nb_thread_arenas_advance");
    return frame;
}

static nb_result fail_stale(nb_thread_arenas *arenas, nb_arena_frame frame, const char *function) {
    nbi_atomic_fetch_add_relaxed_u64(&arenas->stale_count, 1);
    return nbi_fail(&arenas->hooks, NB_ITEM_ARENA_STALE, NB_ERR_STALE, function, "frame %llu has ended",
                    nb_llu(frame_number(frame.value)));
}

nb_result nb_thread_arenas_pin(nb_thread_arenas *arenas, nb_arena_frame frame) {
    if (arenas == NULL) return NBI_FAIL_NULL("arenas");
    nb_result result = is_frame_value(frame.value) ? pin_frame(arenas, frame.value) : NB_ERR_STALE;
    return result == NB_ERR_STALE ? fail_stale(arenas, frame, __func__) : result;
}

nb_result nb_thread_arenas_unpin(nb_thread_arenas *arenas, nb_arena_frame frame) {
    if (arenas == NULL) return NBI_FAIL_NULL("arenas");
    if (!is_frame_value(frame.value)) return fail_stale(arenas, frame, __func__);
    nb_atomic_u64 *slot = &arenas->slots[frame_slot_index(frame.value)].word;
    uint64_t word = nbi_atomic_load_acquire_u64(slot);
    do {
        if (!is_frame_in_word(frame.value, word)) return fail_stale(arenas, frame, __func__);
        if (word_pins(word) == 0) {
            return NBI_FAIL(&arenas->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "frame %llu has no pins",
                            nb_llu(frame_number(frame.value)));
        }
        // Publishes the end of this reader's reads; read by the acquire in take_slot.
    } while (!nbi_atomic_compare_exchange_acq_rel_u64(slot, &word, word - 1));
    return NB_OK;
}

// --- threads ---

static thread_record *record_of(nb_thread_arena *thread) { return (thread_record *)(void *)thread; }

static void record_take(thread_record *record) {
    record->owner = nbi_thread_id();
    record->next = NULL;
    for (uint32_t i = 0; i < SLOT_MAX; ++i) {
        if (record->slots[i].arena != NULL) record->slots[i].arena->owner = record->owner;
    }
}

// Counts the thread in, and takes an idle record where there is one. False: too many threads, reported where the attach
// before was not refused too.
static bool reserve_thread(nb_thread_arenas *arenas, thread_record **record) {
    nbi_lock_acquire(&arenas->lock);
    bool has_room = nbi_atomic_load_relaxed_u32(&arenas->thread_count) < arenas->thread_count_max;
    bool is_report_due = !has_room && !arenas->is_attach_full_reported;
    arenas->is_attach_full_reported = !has_room;
    if (has_room) {
        nbi_atomic_fetch_add_relaxed_u32(&arenas->thread_count, 1);
        *record = arenas->idle;
    }
    if (*record != NULL) {
        arenas->idle = (*record)->next;
        nbi_atomic_fetch_sub_relaxed_u32(&arenas->idle_count, 1);
    }
    nbi_lock_release(&arenas->lock);
    if (is_report_due) {
        nbi_log(&arenas->hooks, NB_LOG_WARNING, NB_ITEM_ARENA_FULL, "nb_thread_arena_attach",
                "%u threads are attached already", (unsigned)arenas->thread_count_max);
    }
    return has_room;
}

nb_result nb_thread_arena_attach(nb_thread_arenas *arenas, nb_thread_arena **thread) {
    if (arenas == NULL) return NBI_FAIL_NULL("arenas");
    if (thread == NULL) return NBI_FAIL(&arenas->hooks, NB_ITEM_ARENA_ARGUMENT, NB_ERR_MISUSE, "thread is NULL");
    thread_record *record = NULL;
    if (!reserve_thread(arenas, &record)) return NB_FULL;
    if (record == NULL) {
        record = (thread_record *)nbi_alloc(&arenas->hooks, sizeof *record, NB_CACHE_LINE, __func__);
        if (record == NULL) {
            nbi_lock_acquire(&arenas->lock);
            nbi_atomic_fetch_sub_relaxed_u32(&arenas->thread_count, 1);
            nbi_lock_release(&arenas->lock);
            return NB_ERR_MEMORY;
        }
        *record = (thread_record){.head = {.current = &arenas->current}, .context = arenas};
    }
    record_take(record);
    *thread = &record->head;
    return NB_OK;
}

static nb_result check_thread(nb_thread_arena *thread, const char *function) {
    if (thread == NULL) return nbi_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, function, "thread is NULL");
    thread_record *record = record_of(thread);
    if (record->owner == nbi_thread_id()) return NB_OK;
    return nbi_fail(&record->context->hooks, NB_ITEM_ARENA_THREAD, NB_ERR_THREAD, function,
                    "called from a thread that is not the attached one");
}

nb_result nb_thread_arena_detach(nb_thread_arena *thread) {
    nb_result result = check_thread(thread, __func__);
    if (result != NB_OK) return result;
    thread_record *record = record_of(thread);
    nb_thread_arenas *arenas = record->context;
    record->owner = 0;
    nbi_lock_acquire(&arenas->lock);
    record->next = arenas->idle;
    arenas->idle = record;
    nbi_atomic_fetch_add_relaxed_u32(&arenas->idle_count, 1);
    nbi_atomic_fetch_sub_relaxed_u32(&arenas->thread_count, 1);
    nbi_lock_release(&arenas->lock);
    return NB_OK;
}

// Makes the arena of a slot at its first use; reserves address space, no memory.
static nb_arena *slot_create(thread_record *record, uint32_t slot, const char *function) {
    const nb_thread_arenas *arenas = record->context;
    nb_arena *arena = (nb_arena *)nbi_alloc(&arenas->hooks, sizeof *arena, NB_CACHE_LINE, function);
    if (arena == NULL) return NULL;
    if (nb_arena_init(arena, &arenas->arena_desc) != NB_OK) {
        nbi_free(&arenas->hooks, arena, sizeof *arena);
        return NULL;
    }
    arena->is_managed = true;
    record->slots[slot].arena = arena;
    return arena;
}

// The thread's arena for a frame. What it holds of an older frame in the same slot is released: the slot would not have
// a newer frame if the old one were pinned or young.
static nb_arena *arena_for(thread_record *record, uint64_t frame, const char *function) {
    thread_slot *slot = &record->slots[frame_slot_index(frame)];
    if (slot->arena == NULL) {
        if (slot_create(record, frame_slot_index(frame), function) == NULL) return NULL;
        slot->frame = frame;
    } else if (slot->frame != frame) {
        // Before the reset: a cleanup that allocates comes back here, and must not reset a second time.
        slot->frame = frame;
        nbi_arena_reset_managed(slot->arena);
    }
    return slot->arena;
}

// Slots beyond the usual ones are opened for pinned frames and then fall out of use; their memory goes back, one slot a
// frame. The usual ones are used again and again, and their arenas shrink by themselves.
static void release_unused_slot(thread_record *record) {
    const nb_thread_arenas *arenas = record->context;
    uint32_t extra_count = SLOT_MAX - arenas->slot_count_min;
    if (extra_count == 0) return;
    record->swept_slot = (record->swept_slot + 1) % extra_count;
    uint32_t index = arenas->slot_count_min + record->swept_slot;
    const thread_slot *slot = &record->slots[index];
    if (slot->arena != NULL && !is_frame_alive(arenas, slot->frame)) slot_release(record, index);
}

nb_arena *nb_thread_arena_refresh(nb_thread_arena *thread) {
    if (check_thread(thread, "nb_thread_arena_get") != NB_OK) return NULL;
    thread_record *record = record_of(thread);
    // Pairs with the release in nb_thread_arenas_advance.
    uint64_t frame = nbi_atomic_load_acquire_u64(thread->current);
    // Before the frame's own arena is chosen: a thread this late may find that very slot unused.
    release_unused_slot(record);
    nb_arena *arena = arena_for(record, frame, "nb_thread_arena_get");
    if (arena == NULL) return NULL;
    thread->arena = arena;
    thread->frame = frame;
    return arena;
}

nb_arena *nb_thread_arena_at(nb_thread_arena *thread, nb_arena_frame frame) {
    if (check_thread(thread, __func__) != NB_OK) return NULL;
    thread_record *record = record_of(thread);
    if (!is_frame_value(frame.value) || !is_frame_alive(record->context, frame.value)) {
        fail_stale(record->context, frame, __func__);
        return NULL;
    }
    return arena_for(record, frame.value, __func__);
}
