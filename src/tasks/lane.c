// SPDX-License-Identifier: MIT
// Lanes: which thread has which, and their memory.

#include "scheduler.h"

#include <string.h>

#if !defined(NB_EXPLORE)
_Thread_local nbi_lane_note nbi_lane_noted;
#endif

static void note(nbi_lane *lane, const nb_scheduler *scheduler) {
#if !defined(NB_EXPLORE)
    nbi_lane_noted = (nbi_lane_note){scheduler, scheduler->stamp, lane};
#else
    (void)lane, (void)scheduler;
#endif
}

nbi_lane *nbi_lane_find_own(nb_scheduler *scheduler) {
    uint64_t id = nbi_thread_id();
    uint32_t count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    for (uint32_t i = 0; i < count; ++i) {
        nbi_lane *lane = scheduler->lanes[i];
        if (nbi_atomic_load_relaxed_u64(&lane->thread_id) == id) {
            note(lane, scheduler);
            return lane;
        }
    }
    note(NULL, scheduler);
    return NULL;
}

nbi_lane *nbi_lane_enter_outside(nb_scheduler *scheduler) {
    nbi_lock_acquire(&scheduler->outside_lock);
    return scheduler->lanes[NBI_LANE_OUTSIDE];
}

void nbi_lane_own_by_caller(nbi_lane *lane) {
    nbi_atomic_store_relaxed_u64(&lane->thread_id, nbi_thread_id());
    note(lane, lane->scheduler);
}

void nbi_lane_disown(nbi_lane *lane) {
    nbi_lane_empty_pockets(lane);
    nbi_lane_memory_end(lane);
    nbi_span_forget(lane);
    nbi_atomic_store_relaxed_u64(&lane->thread_id, 0);
    note(NULL, lane->scheduler);
}

// A lane that nobody has, owned by the caller then; a new one where there is none. NB_FULL, NB_ERR_MEMORY.
static nb_result take_free(nb_scheduler *scheduler, nbi_lane **out) {
    nb_result result = NB_OK;
    nbi_lock_acquire(&scheduler->lock);
    uint32_t count = nbi_atomic_load_relaxed_u32(&scheduler->lane_count);
    nbi_lane *lane = NULL;
    for (uint32_t i = 1 + scheduler->worker_count; i < count && lane == NULL; ++i) {
        if (nbi_atomic_load_relaxed_u64(&scheduler->lanes[i]->thread_id) == 0) lane = scheduler->lanes[i];
    }
    if (lane == NULL) {
        result = count < NBI_LANE_OUTSIDE ? nbi_lane_create(scheduler, count) : NB_FULL;
        lane = result == NB_OK ? scheduler->lanes[count] : NULL;
        // Publishes the lane; read by the acquire loads of lane_count.
        if (lane != NULL) nbi_atomic_store_release_u32(&scheduler->lane_count, count + 1);
    }
    if (lane != NULL) nbi_lane_own_by_caller(lane);
    nbi_lock_release(&scheduler->lock);
    *out = lane;
    return result;
}

static void give_up(nbi_lane *lane) {
    nb_scheduler *scheduler = lane->scheduler;
    nbi_lane_memory_end(lane); // without the lock: the heap may be the host's
    nbi_lock_acquire(&scheduler->lock);
    nbi_lane_disown(lane);
    nbi_lock_release(&scheduler->lock);
}

nbi_lane *nbi_lane_borrow_free(nb_scheduler *scheduler) {
    nbi_lane *lane = NULL;
    if (take_free(scheduler, &lane) != NB_OK) return NULL;
    lane->is_borrowed = true, lane->borrow_count = 1;
    lane->fp_mode = nbi_fp_enter();
    return lane;
}

void nbi_lane_return_free(nbi_lane *lane) {
    lane->is_borrowed = false;
    give_up(lane);
}

nb_result nb_scheduler_attach(nb_scheduler *scheduler) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    if (nbi_lane_own(scheduler) != NULL) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_THREAD, NB_ERR_MISUSE, "the thread is attached already");
    }
    nbi_lane *lane = NULL;
    return take_free(scheduler, &lane);
}

nb_result nb_scheduler_detach(nb_scheduler *scheduler) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_lane *lane = nbi_lane_own(scheduler);
    if (lane == NULL || lane->index <= scheduler->worker_count) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_THREAD, NB_ERR_THREAD, "the thread is not attached");
    }
    if (lane->running != NULL || lane->borrow_count != 0) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_THREAD, NB_ERR_MISUSE, "called inside a task");
    }
    give_up(lane);
    return NB_OK;
}

// --- memory ---

static size_t round_to_pages(size_t size_bytes) {
    size_t page = nbi_page_size();
    return (size_bytes + page - 1) / page * page;
}

// Of one queue: the cells of its ring, then those of its deque.
static size_t queue_cells(const nb_scheduler *scheduler) { return scheduler->ring_capacity + NBI_DEQUE_CAPACITY; }

static size_t lane_pages_bytes(const nb_scheduler *scheduler) {
    size_t cells_bytes = NBI_QUEUE_COUNT * (queue_cells(scheduler) + scheduler->ring_capacity) * sizeof(nb_atomic_u64);
    size_t births_bytes = NBI_OWNER_COUNT * sizeof(nb_atomic_u32);
    return round_to_pages(NBI_QUEUE_COUNT * (sizeof(nbi_queue) + sizeof(nbi_ring)) + cells_bytes + births_bytes);
}

nb_result nbi_lane_create(nb_scheduler *scheduler, uint32_t index) {
    nbi_lane *lane = nbi_alloc(&scheduler->desc.hooks, sizeof *lane, NB_CACHE_LINE, "nb_scheduler_create");
    if (lane == NULL) return NB_ERR_MEMORY;
    memset(lane, 0, sizeof *lane);
    size_t size = lane_pages_bytes(scheduler);
    // Reserved for the largest case and committed at once: the OS gives memory only to what is touched.
    lane->pages = nbi_pages_reserve(size);
    if (lane->pages == NULL || nbi_pages_commit(lane->pages, size) != NB_OK) {
        if (lane->pages != NULL) nbi_pages_release(lane->pages, size);
        nbi_free(&scheduler->desc.hooks, lane, sizeof *lane);
        nbi_log(&scheduler->desc.hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, "nb_scheduler_create",
                "no pages for %zu bytes", size);
        return NB_ERR_MEMORY;
    }
    lane->scheduler = scheduler;
    lane->index = index;
    lane->spare_max = nbi_slot_spare_max(scheduler);
    lane->group_batch = nbi_group_batch(scheduler);
    lane->queues = lane->pages;
    lane->inbox = (nbi_ring *)(void *)(lane->queues + NBI_QUEUE_COUNT);
    nb_atomic_u64 *cells = (nb_atomic_u64 *)(void *)(lane->inbox + NBI_QUEUE_COUNT);
    for (uint32_t i = 0; i < NBI_QUEUE_COUNT; ++i, cells += scheduler->ring_capacity) {
        nbi_ring_init(&lane->inbox[i], cells, scheduler->ring_capacity);
    }
    for (uint32_t i = 0; i < NBI_QUEUE_COUNT; ++i, cells += queue_cells(scheduler)) {
        nbi_ring_init(&lane->queues[i].ring, cells, scheduler->ring_capacity);
        nbi_deque_init(&lane->queues[i].deque, cells + scheduler->ring_capacity, NBI_DEQUE_CAPACITY, 0);
    }
    lane->births = (nb_atomic_u32 *)(void *)cells;
    scheduler->lanes[index] = lane;
    return NB_OK;
}

void nbi_lane_destroy(nbi_lane *lane) {
    if (lane == NULL) return;
    nb_scheduler *scheduler = lane->scheduler;
    nbi_pages_release(lane->pages, lane_pages_bytes(scheduler));
    nbi_free(&scheduler->desc.hooks, lane, sizeof *lane);
}
