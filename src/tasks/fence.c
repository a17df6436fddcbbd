// SPDX-License-Identifier: MIT
// Frames: a ring of slots, opened one after another by the coordinator.
//
// A slot's tally carries the whole protocol of a frame (tally.h): tickets and tasks hold units of it, the coordinator
// holds the open unit until it seals the frame, and a slot is opened again only when its count is 0. So begin never
// takes anything away from late work; it finds another slot, and adds one when all are busy. Everything else here is
// what may be asked about a frame, and the thread arenas' frame that is kept for as long.

#include "fence_state.h"

#include "../base/arena.h"

// --- life ---

nb_fence_desc nb_fence_desc_default(void) {
    return (nb_fence_desc){
        .slot_count = NB_FENCE_SLOT_COUNT_DEFAULT,
        .slot_count_max = NB_FENCE_SLOT_COUNT_MAX,
        .ticket_count_max = NB_FENCE_TICKET_COUNT_DEFAULT,
        .timeout_ns = NB_FENCE_TIMEOUT_NS_DEFAULT,
        .policy = NB_FENCE_POLICY_FAIL,
        .hooks = nb_hooks_default(),
    };
}

static void resolve_desc(nb_fence_desc *desc) {
    const nb_fence_desc defaults = nb_fence_desc_default();
    if (desc->slot_count == 0) desc->slot_count = defaults.slot_count;
    if (desc->slot_count_max == 0) desc->slot_count_max = defaults.slot_count_max;
    if (desc->ticket_count_max == 0) desc->ticket_count_max = defaults.ticket_count_max;
    if (desc->timeout_ns == 0) desc->timeout_ns = defaults.timeout_ns;
    if (desc->policy == NB_FENCE_POLICY_DEFAULT) desc->policy = defaults.policy;
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
}

static nb_result check_desc(const nb_fence_desc *desc, uint64_t frame_first, const char *function) {
    if ((unsigned)desc->policy >= NB_FENCE_POLICY_COUNT) {
        return nbi_fail(&desc->hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_MISUSE, function,
                        "policy is not an nb_fence_policy");
    }
    const char *problem = NULL;
    if (desc->slot_count < 2 || desc->slot_count_max < desc->slot_count || desc->slot_count_max > NBI_FENCE_SLOT_MAX) {
        problem = "slot_count must be 2 or more and slot_count_max from there to 64";
    }
    if (desc->ticket_count_max > NB_FENCE_TICKET_COUNT_MAX) problem = "ticket_count_max has more than 22 bits";
    if (frame_first == 0 || frame_first > NBI_FENCE_NUMBER_MAX) problem = "the first frame's number is out of range";
    if (problem == NULL) return NB_OK;
    return nbi_fail(&desc->hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_RANGE, function, "%s", problem);
}

static void init_slots(nb_fence *fence, uint64_t number) {
    for (uint32_t i = 0; i < NBI_FENCE_SLOT_MAX; ++i) {
        // A slot without a frame looks like one whose frame is over, with the number before the first.
        uint64_t word = (number & NBI_TALLY_GENERATION_MASK) << NBI_TALLY_GENERATION_SHIFT;
        fence->slots[i] = (nbi_fence_slot){.tally = {.word = {word}}, .number = number};
    }
}

static nb_result create_at(const nb_fence_desc *desc, uint64_t frame_first, nb_fence **out, const char *function) {
    nb_fence_desc resolved = desc != NULL ? *desc : nb_fence_desc_default();
    resolve_desc(&resolved);
    if (out == NULL) {
        return nbi_fail(&resolved.hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_MISUSE, function, "out is NULL");
    }
    nb_result result = check_desc(&resolved, frame_first, function);
    if (result != NB_OK) return result;

    // Cannot wrap: at most 2^22 records.
    size_t size_bytes = sizeof(nb_fence) + resolved.ticket_count_max * sizeof(nbi_fence_record);
    nb_fence *fence = (nb_fence *)nbi_alloc(&resolved.hooks, size_bytes, NB_CACHE_LINE, function);
    if (fence == NULL) return NB_ERR_MEMORY;
    *fence = (nb_fence){
        .hooks = resolved.hooks,
        .desc = resolved,
        .records = (nbi_fence_record *)(void *)(fence + 1),
        .size_bytes = size_bytes,
        .number = {frame_first - 1},
        .slot_count = {resolved.slot_count},
    };
    init_slots(fence, frame_first - 1);
    nbi_fence_records_init(fence);
    *out = fence;
    return NB_OK;
}

nb_result nb_fence_create(const nb_fence_desc *desc, nb_fence **out) { return create_at(desc, 1, out, __func__); }

nb_result nbi_fence_create_at(const nb_fence_desc *desc, uint64_t frame_first, nb_fence **out) {
    return create_at(desc, frame_first, out, "nb_fence_create");
}

// Work of a slot's frame that is not back, without the coordinator's open unit.
static uint32_t slot_pending(const nb_fence *fence, uint32_t index) {
    // Pairs with the release of each unit given back, so that what comes next comes after all of that work.
    uint64_t word = nbi_atomic_load_acquire_u64(&fence->slots[index].tally.word);
    uint32_t count = nbi_tally_count(word);
    nb_fence_frame current = {nbi_atomic_load_relaxed_u64(&fence->current)};
    bool is_current = (current.value & ((1u << NBI_FENCE_SLOT_BITS) - 1)) == index + 1;
    uint32_t open_units = is_current ? nbi_fence_open_units(fence, current) : 0;
    return count > open_units ? count - open_units : 0;
}

// The coordinator alone: the arenas' frame is no longer needed by this slot.
static void unpin(nb_fence *fence, nbi_fence_slot *slot) {
    if (!slot->is_pinned) return;
    slot->is_pinned = false;
    nb_arena_frame arena_frame = {nbi_atomic_load_relaxed_u64(&slot->arena_frame)};
    nb_thread_arenas_unpin(fence->desc.arenas, arena_frame);
}

nb_result nb_fence_destroy(nb_fence *fence) {
    if (fence == NULL) return NB_OK;
    uint64_t pending = 0;
    for (uint32_t i = 0; i < NBI_FENCE_SLOT_MAX; ++i) pending += slot_pending(fence, i);
    // Tickets in quarantine are in no tally. Pairs with the release in nb_fence_return, their last touch.
    uint64_t ticket_count = nbi_atomic_load_acquire_u64(&fence->ticket_count);
    if (pending != 0 || ticket_count != 0) {
        return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_BUSY, NB_BUSY, "%llu tickets and %llu units of work are out",
                        (unsigned long long)ticket_count, (unsigned long long)pending);
    }
    for (uint32_t i = 0; i < NBI_FENCE_SLOT_MAX; ++i) unpin(fence, &fence->slots[i]);
    nb_hooks hooks = fence->hooks;
    nbi_free(&hooks, fence, fence->size_bytes);
    return NB_OK;
}

// --- frames ---

static bool is_closed(const nb_fence *fence) { return nbi_atomic_load_relaxed_u32(&fence->is_closed) != 0; }

// Makes the caller the coordinator where there is none.
static bool claim_coordinator(nb_fence *fence) {
    uint64_t owner = 0, self = nbi_thread_id();
    if (nbi_atomic_load_relaxed_u64(&fence->owner) == self) return true;
    // Pairs with the release in nb_fence_disown: the last coordinator's plain fields are the new one's.
    return nbi_atomic_compare_exchange_acquire_u64(&fence->owner, &owner, self);
}

bool nbi_fence_seal_current(nb_fence *fence) {
    nb_fence_frame frame = {nbi_atomic_load_relaxed_u64(&fence->current)};
    if (nbi_fence_open_units(fence, frame) == 0 || frame.value == 0) return false;
    // First: after the unit is back, a wait may return and the fence be gone.
    nbi_atomic_store_relaxed_u64(&fence->sealed, frame.value);
    nbi_tally_sub(&nbi_fence_slot_of(fence, frame)->tally, 1);
    return true;
}

static bool is_slot_free(const nbi_fence_slot *slot) {
    // Pairs with the release of the last unit given back.
    return nbi_tally_count(nbi_atomic_load_acquire_u64(&slot->tally.word)) == 0;
}

// Memory of frames whose work is all back may be used again. Only here: whoever gave back the last unit may not touch
// the fence afterwards.
static void sweep(nb_fence *fence) {
    if (fence->desc.arenas == NULL) return;
    uint32_t slot_count = nbi_atomic_load_relaxed_u32(&fence->slot_count);
    for (uint32_t i = 0; i < slot_count; ++i) {
        nbi_fence_slot *slot = &fence->slots[i];
        if (slot->is_pinned && is_slot_free(slot)) unpin(fence, slot);
    }
}

// The free slot whose frame is the oldest, so that who waits late still finds COMPLETE; a new one where all are busy.
// NULL: none.
static nbi_fence_slot *find_slot(nb_fence *fence) {
    nbi_fence_slot *found = NULL;
    uint32_t slot_count = nbi_atomic_load_relaxed_u32(&fence->slot_count);
    for (uint32_t i = 0; i < slot_count; ++i) {
        nbi_fence_slot *slot = &fence->slots[i];
        if ((found == NULL || slot->number < found->number) && is_slot_free(slot)) found = slot;
    }
    if (found != NULL || slot_count == fence->desc.slot_count_max) return found;
    nbi_atomic_store_relaxed_u32(&fence->slot_count, slot_count + 1);
    return &fence->slots[slot_count];
}

static nb_fence_frame frame_in(const nb_fence *fence, const nbi_fence_slot *slot, uint64_t number) {
    return (nb_fence_frame){number << NBI_FENCE_SLOT_BITS | ((uint64_t)(slot - fence->slots) + 1)};
}

// Only the oldest frame's return ends the sleep: the one most likely to be next. Others are found at the deadline.
static nbi_fence_slot *await_slot(nb_fence *fence) {
    const nbi_fence_slot *oldest = &fence->slots[0];
    for (uint32_t i = 1; i < fence->desc.slot_count_max; ++i) {
        if (fence->slots[i].number < oldest->number) oldest = &fence->slots[i];
    }
    uint64_t now_ns = nb_clock_now_ns(&fence->desc.clock);
    uint64_t timeout_ns = nbi_min_u64(fence->desc.timeout_ns, NB_NEVER_NS - now_ns);
    nbi_fence_wait_quietly(fence, frame_in(fence, oldest, oldest->number), now_ns + timeout_ns);
    return find_slot(fence);
}

static nb_result refuse_begin(nb_fence *fence) {
    nbi_atomic_fetch_add_relaxed_u64(&fence->full_count, 1);
    nbi_atomic_store_release_u64(&fence->current, 0); // read by the acquire load in nb_fence_current
    if (!fence->is_full_reported) {
        fence->is_full_reported = true;
        nbi_log(&fence->hooks, NB_LOG_WARNING, NB_ITEM_FENCE_FULL, "nb_fence_begin",
                "all %u slots have late work: frame %llu goes on without any", (unsigned)fence->desc.slot_count_max,
                (unsigned long long)nbi_atomic_load_relaxed_u64(&fence->number));
    }
    return NB_FULL;
}

// Advances the thread arenas with the frame. Where that is refused their frame stays open, and is this frame's too.
static void advance_arenas(nb_fence *fence, nbi_fence_slot *slot) {
    nb_thread_arenas *arenas = fence->desc.arenas;
    if (arenas == NULL) return;
    if (slot == NULL) {
        nb_thread_arenas_advance(arenas, NULL);
        return;
    }
    nb_arena_frame arena_frame = nbi_thread_arenas_advance_pinned(arenas);
    slot->is_pinned = arena_frame.value != 0;
    nbi_atomic_store_relaxed_u64(&slot->arena_frame, arena_frame.value);
}

nb_result nb_fence_begin(nb_fence *fence, nb_fence_frame *frame) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    if (frame == NULL) return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_MISUSE, "frame is NULL");
    if (!claim_coordinator(fence)) {
        return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_THREAD, NB_ERR_THREAD, "another thread is the coordinator");
    }
    if (is_closed(fence)) return NB_CLOSED;
    nbi_fence_seal_current(fence);
    sweep(fence);
    uint64_t number = nbi_atomic_load_relaxed_u64(&fence->number) + 1;
    nbi_atomic_store_relaxed_u64(&fence->number, number);
    nbi_fence_slot *slot = find_slot(fence);
    if (slot == NULL && fence->desc.policy == NB_FENCE_POLICY_WAIT) slot = await_slot(fence);
    if (slot != NULL) unpin(fence, slot); // it may have become free after the sweep
    advance_arenas(fence, slot);
    if (slot == NULL) return refuse_begin(fence);

    slot->number = number;
    // Publishes the slot's fields; read by the acquire load in nbi_tally_add.
    if (!nbi_tally_open(&slot->tally, number)) return NB_CLOSED; // closed at this moment; destroy sees to the pin
    fence->is_full_reported = false;
    // Only the coordinator writes it.
    nbi_atomic_store_relaxed_u64(&fence->frame_count, nbi_atomic_load_relaxed_u64(&fence->frame_count) + 1);
    *frame = frame_in(fence, slot, number);
    nbi_atomic_store_release_u64(&fence->current, frame->value); // read by the acquire load in nb_fence_current
    return NB_OK;
}

nb_result nb_fence_disown(nb_fence *fence) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    nbi_atomic_store_release_u64(&fence->owner, 0); // read by the acquire in claim_coordinator
    return NB_OK;
}

nb_result nb_fence_seal(nb_fence *fence) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    bool has_frame = nbi_atomic_load_relaxed_u64(&fence->current) != 0;
    if (has_frame && !nbi_fence_is_coordinator(fence)) {
        return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_THREAD, NB_ERR_THREAD, "this thread is not the coordinator");
    }
    if (has_frame && nbi_fence_seal_current(fence)) return NB_OK;
    return NBI_FAIL(&fence->hooks, NB_ITEM_FENCE_ARGUMENT, NB_ERR_MISUSE, "there is no frame, or it is sealed already");
}

nb_result nb_fence_close(nb_fence *fence) {
    if (fence == NULL) return NBI_FAIL_NULL("fence");
    // Before the slots: a begin that does not see it opens a slot that is not closed yet, or finds it closed.
    nbi_atomic_store_release_u32(&fence->is_closed, 1);
    for (uint32_t i = 0; i < NBI_FENCE_SLOT_MAX; ++i) nbi_tally_close(&fence->slots[i].tally);
    return NB_OK;
}

// --- questions ---

nb_fence_frame nb_fence_current(const nb_fence *fence) {
    if (fence == NULL) {
        NBI_FAIL_NULL("fence");
        return (nb_fence_frame){0};
    }
    // Pairs with the release stores in nb_fence_begin.
    return (nb_fence_frame){nbi_atomic_load_acquire_u64(&fence->current)};
}

nb_thread_arenas *nbi_fence_arenas(const nb_fence *fence) { return fence->desc.arenas; }

nb_arena_frame nb_fence_arena_frame(const nb_fence *fence, nb_fence_frame frame) {
    if (fence == NULL) {
        NBI_FAIL_NULL("fence");
        return (nb_arena_frame){0};
    }
    const nbi_fence_slot *slot = nbi_fence_slot_of((nb_fence *)(uintptr_t)fence, frame);
    if (slot == NULL) return (nb_arena_frame){0};
    bool is_there = nbi_fence_is_in(frame, nbi_atomic_load_acquire_u64(&slot->tally.word));
    return (nb_arena_frame){is_there ? nbi_atomic_load_relaxed_u64(&slot->arena_frame) : 0};
}

bool nb_fence_is_degraded(const nb_fence *fence, nb_fence_frame frame) {
    if (fence == NULL) return NBI_FAIL_NULL("fence") == NB_OK;
    const nbi_fence_slot *slot = nbi_fence_slot_of((nb_fence *)(uintptr_t)fence, frame);
    if (slot == NULL || nbi_atomic_load_relaxed_u64(&slot->degraded) != frame.value) return false;
    return nbi_fence_is_in(frame, nbi_atomic_load_acquire_u64(&slot->tally.word));
}

nb_fence_stats nb_fence_stats_get(const nb_fence *fence) {
    if (fence == NULL) {
        NBI_FAIL_NULL("fence");
        return (nb_fence_stats){0};
    }
    nb_fence_stats stats = {
        .frame = nb_fence_current(fence),
        .slot_count = nbi_atomic_load_relaxed_u32(&fence->slot_count),
        .frame_count = nbi_atomic_load_relaxed_u64(&fence->frame_count),
        .degraded_count = nbi_atomic_load_relaxed_u64(&fence->degraded_count),
        .full_count = nbi_atomic_load_relaxed_u64(&fence->full_count),
        .ticket_count = nbi_atomic_load_relaxed_u64(&fence->ticket_count),
        .ticket_count_peak = nbi_atomic_load_relaxed_u64(&fence->ticket_count_peak),
        .ticket_full_count = nbi_atomic_load_relaxed_u64(&fence->ticket_full_count),
        .late_count = nbi_atomic_load_relaxed_u64(&fence->late_count),
        .refused_count = nbi_atomic_load_relaxed_u64(&fence->refused_count),
        .wait_count = nbi_atomic_load_relaxed_u64(&fence->wait_count),
        .park_count = nbi_atomic_load_relaxed_u64(&fence->park_count),
        .overrun_count = nbi_atomic_load_relaxed_u64(&fence->overrun_count),
        .quarantine_count = nbi_atomic_load_relaxed_u32(&fence->quarantine_count),
    };
    for (uint32_t i = 0; i < stats.slot_count; ++i) stats.pending_slots += slot_pending(fence, i) != 0;
    return stats;
}
