// SPDX-License-Identifier: MIT
// Making and ending a scheduler, and its numbers.

#include "scheduler.h"
#include "host.h"

#include <stdio.h>
#include <string.h>

nb_scheduler_desc nb_scheduler_desc_default(void) {
    uint32_t cpus = nbi_cpu_count();
    uint32_t beside = cpus > 1 ? cpus - 1 : 1;
    return (nb_scheduler_desc){
        .worker_count = beside < NB_SCHEDULER_THREAD_COUNT_MAX - 2 ? beside : NB_SCHEDULER_THREAD_COUNT_MAX - 2,
        .task_count_max = NB_TASK_COUNT_DEFAULT,
        .group_count_max = NB_GROUP_COUNT_DEFAULT,
        .dependency_count_max = NB_DEPENDENCY_COUNT_DEFAULT,
        .stack_size_bytes = NB_WORKER_STACK_SIZE_DEFAULT,
        .hooks = nb_hooks_default(),
    };
}

#define REFUSE_DESC(hooks, result, ...) \
    nbi_fail((hooks), NB_ITEM_TASK_ARGUMENT, (result), "nb_scheduler_create", __VA_ARGS__)

static nb_result resolve_desc(const nb_scheduler_desc *given, nb_scheduler_desc *desc) {
    nb_scheduler_desc defaults = nb_scheduler_desc_default();
    *desc = given != NULL ? *given : (nb_scheduler_desc){0};
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
    if (desc->worker_count == 0) desc->worker_count = defaults.worker_count;
    if (desc->worker_count == NB_WORKER_COUNT_NONE) desc->worker_count = 0;
    if (desc->task_count_max == 0) desc->task_count_max = NB_TASK_COUNT_DEFAULT;
    if (desc->group_count_max == 0) desc->group_count_max = NB_GROUP_COUNT_DEFAULT;
    if (desc->dependency_count_max == 0) desc->dependency_count_max = NB_DEPENDENCY_COUNT_DEFAULT;
    if (desc->stack_size_bytes == 0) desc->stack_size_bytes = NB_WORKER_STACK_SIZE_DEFAULT;
    // With a single worker there is none to spare.
    if (desc->floating_worker_count_max == 0) {
        desc->floating_worker_count_max = desc->worker_count > 1 ? desc->worker_count - 1 : 1;
    }
    // One lane more must be left for threads that only come to wait.
    if (desc->worker_count > NB_SCHEDULER_THREAD_COUNT_MAX - 2) {
        return REFUSE_DESC(&desc->hooks, NB_ERR_RANGE, "worker_count %u is over %d", (unsigned)desc->worker_count,
                           NB_SCHEDULER_THREAD_COUNT_MAX - 2);
    }
    if (desc->task_count_max > NB_TASK_COUNT_MAX || desc->group_count_max > NB_TASK_COUNT_MAX ||
        desc->dependency_count_max > NB_TASK_COUNT_MAX) {
        return REFUSE_DESC(&desc->hooks, NB_ERR_RANGE, "a count of tasks, groups or dependencies is over %u",
                           NB_TASK_COUNT_MAX);
    }
    return NB_OK;
}

static size_t pools_bytes(const nb_scheduler *scheduler) {
    size_t size =
        scheduler->slot_count * (sizeof(nbi_slot) + sizeof(nbi_slot_more) + sizeof(nbi_outcome) + sizeof(uint32_t));
    size += scheduler->group_count * sizeof(nbi_group) + scheduler->edge_count * sizeof(nbi_edge);
    size += NBI_OWNER_COUNT * sizeof(nbi_owner_place);
    size_t page = nbi_page_size();
    return (size + page - 1) / page * page;
}

static nb_result pools_create(nb_scheduler *scheduler) {
    scheduler->pages_bytes = pools_bytes(scheduler);
    scheduler->pages = nbi_pages_reserve(scheduler->pages_bytes);
    if (scheduler->pages == NULL || nbi_pages_commit(scheduler->pages, scheduler->pages_bytes) != NB_OK) {
        if (scheduler->pages != NULL) nbi_pages_release(scheduler->pages, scheduler->pages_bytes);
        scheduler->pages = NULL;
        nbi_log(&scheduler->desc.hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, "nb_scheduler_create",
                "no pages for %zu bytes", scheduler->pages_bytes);
        return NB_ERR_MEMORY;
    }
    // Widest alignment first.
    scheduler->slots = scheduler->pages;
    scheduler->groups = (nbi_group *)(void *)(scheduler->slots + scheduler->slot_count);
    scheduler->more = (nbi_slot_more *)(void *)(scheduler->groups + scheduler->group_count);
    scheduler->outcomes = (nbi_outcome *)(void *)(scheduler->more + scheduler->slot_count);
    scheduler->owners = (nbi_owner_place *)(void *)(scheduler->outcomes + scheduler->slot_count);
    scheduler->edges = (nbi_edge *)(void *)(scheduler->owners + NBI_OWNER_COUNT);
    scheduler->free_slots = (uint32_t *)(void *)(scheduler->edges + scheduler->edge_count);
    return NB_OK;
}

// Tasks of a frame have memory until that ends, whoever made the scheduler and its fences.
static nb_result arenas_create(nb_scheduler *scheduler) {
    nb_scheduler_desc *desc = &scheduler->desc;
    if (desc->arenas != NULL) return NB_OK;
    nb_thread_arenas_desc arenas_desc = {.slot_count = NBI_ARENA_SLOT_COUNT, .hooks = desc->hooks};
    nb_result result = nb_thread_arenas_create(&arenas_desc, &desc->arenas);
    scheduler->owns_arenas = result == NB_OK;
    return result;
}

static nb_result workers_start(nb_scheduler *scheduler) {
    for (uint32_t i = 0; i < scheduler->worker_count; ++i) {
        nbi_lane *lane = scheduler->lanes[1 + i];
        uint64_t mask = scheduler->desc.affinity != NULL ? scheduler->desc.affinity[i] : 0;
        char name[32];
        snprintf(name, sizeof name, "nebula-worker-%u", (unsigned)i);
        nbi_thread_desc desc = {.run = nbi_worker_main,
                                .user = lane,
                                .name = name,
                                .stack_size_bytes = scheduler->desc.stack_size_bytes,
                                .affinity_mask = mask};
        lane->is_worker = true;
        nbi_atomic_store_relaxed_u64(&lane->affinity_mask, scheduler->cpu_mask);
        nb_result result = nbi_thread_start(&lane->thread, &desc);
        if (result != NB_OK) {
            nbi_log(&scheduler->desc.hooks, NB_LOG_ERROR, NB_ITEM_TASK_OS, "nb_scheduler_create",
                    "worker %u of %u could not be started", (unsigned)(i + 1), (unsigned)scheduler->worker_count);
            return result;
        }
    }
    return NB_OK;
}

static void workers_end(nb_scheduler *scheduler) {
    // Read by the acquire load in is_stopping of park.c.
    nbi_atomic_fetch_or_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_WORKERS);
    nbi_wake_all(scheduler);
    for (uint32_t i = 1; i <= scheduler->worker_count; ++i) {
        if (scheduler->lanes[i] != NULL) nbi_thread_join(&scheduler->lanes[i]->thread);
    }
}

static void free_all(nb_scheduler *scheduler) {
    for (uint32_t i = 0; i < NBI_LANE_COUNT_MAX; ++i) nbi_lane_destroy(scheduler->lanes[i]);
    if (scheduler->pages != NULL) nbi_owners_end(scheduler);
    if (scheduler->pages != NULL) nbi_pages_release(scheduler->pages, scheduler->pages_bytes);
    if (scheduler->owns_arenas) nb_thread_arenas_destroy(scheduler->desc.arenas);
    nb_hooks hooks = scheduler->desc.hooks;
    nbi_free(&hooks, scheduler, sizeof *scheduler);
}

static nb_result lanes_create(nb_scheduler *scheduler) {
    nb_result result = nbi_lane_create(scheduler, NBI_LANE_OUTSIDE);
    for (uint32_t i = 0; i <= scheduler->worker_count && result == NB_OK; ++i) result = nbi_lane_create(scheduler, i);
    if (result != NB_OK) return result;
    // Read by the acquire loads of lane_count.
    nbi_atomic_store_release_u32(&scheduler->lane_count, 1 + scheduler->worker_count);
    nbi_lane_own_by_caller(scheduler->lanes[0]);
    return NB_OK;
}

nb_scheduler_desc nbi_scheduler_desc(const nb_scheduler *scheduler) { return scheduler->desc; }

nb_result nb_scheduler_create(const nb_scheduler_desc *desc, nb_scheduler **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_scheduler_desc resolved;
    nb_result result = resolve_desc(desc, &resolved);
    if (result != NB_OK) return result;
    nb_scheduler *scheduler = nbi_alloc(&resolved.hooks, sizeof *scheduler, NB_CACHE_LINE, __func__);
    if (scheduler == NULL) return NB_ERR_MEMORY;
    memset(scheduler, 0, sizeof *scheduler);
    scheduler->desc = resolved;
    scheduler->closed_owner.is_closed = true;
    scheduler->slot_count = resolved.task_count_max;
    scheduler->group_count = resolved.group_count_max;
    scheduler->edge_count = resolved.dependency_count_max;
    scheduler->worker_count = resolved.worker_count;
    scheduler->floating_max = resolved.floating_worker_count_max;
    scheduler->stamp = nbi_clock_now_ns();
    // Any number that two schedulers hardly share: spread by a multiplication with 2^64 / golden ratio.
    uint64_t mixed = (scheduler->stamp ^ (uint64_t)(uintptr_t)scheduler) * 0x9E3779B97F4A7C15u;
    scheduler->handle_salt = mixed >> NBI_HINT_SLOT_BITS << NBI_HINT_SLOT_BITS & ~NBI_HINT_LAP;
    bool is_placed = resolved.affinity == NULL && !resolved.is_unplaced;
    scheduler->cpu_mask = is_placed && nbi_platform_has(NBI_ABILITY_THREAD_AFFINITY) ? nbi_cpu_mask() : 0;
    scheduler->ring_capacity = 1;
    while (scheduler->ring_capacity < scheduler->slot_count) scheduler->ring_capacity *= 2;
    result = pools_create(scheduler);
    if (result == NB_OK) result = arenas_create(scheduler);
    if (result == NB_OK) result = lanes_create(scheduler);
    if (result == NB_OK) {
        result = workers_start(scheduler);
        if (result != NB_OK) workers_end(scheduler);
    }
    if (result != NB_OK) {
        free_all(scheduler);
        return result;
    }
    *out = scheduler;
    return NB_OK;
}

nb_result nb_scheduler_stop(nb_scheduler *scheduler) {
    if (scheduler == NULL) return NBI_FAIL_NULL("scheduler");
    nbi_atomic_fetch_or_seq_cst_u32(&scheduler->is_stopping, NBI_STOP_SUBMITS);
    nbi_task_cancel_all(scheduler);
    return NB_OK;
}

static bool is_attached(const nb_scheduler *scheduler) {
    uint32_t count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    for (uint32_t i = 1 + scheduler->worker_count; i < count; ++i) {
        if (nbi_atomic_load_relaxed_u64(&scheduler->lanes[i]->thread_id) != 0) return true;
    }
    return false;
}

nb_result nb_scheduler_destroy(nb_scheduler *scheduler) {
    if (scheduler == NULL) return NB_OK;
    nbi_lane *lane = nbi_lane_own(scheduler);
    if (lane == NULL || lane->index != 0 || lane->running != NULL) {
        return NBI_FAIL(&scheduler->desc.hooks, NB_ITEM_TASK_THREAD, NB_ERR_THREAD,
                        "called by another thread than the one that created the scheduler, or inside a task");
    }
    if (is_attached(scheduler)) return NB_BUSY;
    nb_scheduler_stop(scheduler);
    workers_end(scheduler);
    // What came in between the last look of the stop and the end of the workers.
    nbi_task_cancel_all(scheduler);
    nb_scheduler_drain(scheduler, 0, NULL);
    nbi_lane_disown(lane);
    free_all(scheduler);
    return NB_OK;
}

nb_thread_arenas *nbi_scheduler_arenas(const nb_scheduler *scheduler) { return scheduler->desc.arenas; }

// --- numbers ---

nb_labels *nb_scheduler_labels(const nb_scheduler *scheduler) {
    if (scheduler == NULL) NBI_FAIL_NULL("scheduler");
    return scheduler != NULL ? scheduler->desc.labels : NULL;
}

// Everything but the submits.
static void add_ends(nb_scheduler_stats *stats, const nbi_lane_counts *counts) {
    stats->run_count += nbi_atomic_load_acquire_u64(&counts->run_count);
    stats->cancel_count += nbi_atomic_load_acquire_u64(&counts->cancel_count);
    stats->refuse_count += nbi_atomic_load_relaxed_u64(&counts->refuse_count);
    stats->full_count += nbi_atomic_load_relaxed_u64(&counts->full_count);
    stats->inline_count += nbi_atomic_load_relaxed_u64(&counts->inline_count);
    stats->wake_count += nbi_atomic_load_relaxed_u64(&counts->wake_count);
}

nb_scheduler_stats nb_scheduler_stats_get(const nb_scheduler *scheduler) {
    nb_scheduler_stats stats = {0};
    if (scheduler == NULL) {
        NBI_FAIL_NULL("scheduler");
        return stats;
    }
    uint32_t count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    const nbi_lane *outside = scheduler->lanes[NBI_LANE_OUTSIDE];
    add_ends(&stats, &outside->counts);
    for (uint32_t i = 0; i < count; ++i) add_ends(&stats, &scheduler->lanes[i]->counts);
    // After all ends: of a task that was seen to end the submit is seen, too.
    stats.submit_count = nbi_atomic_load_acquire_u64(&outside->counts.submit_count);
    count = nbi_atomic_load_acquire_u32(&scheduler->lane_count);
    for (uint32_t i = 0; i < count; ++i) {
        stats.submit_count += nbi_atomic_load_acquire_u64(&scheduler->lanes[i]->counts.submit_count);
    }
    stats.worker_count = scheduler->worker_count;
    stats.thread_count = count;
    // What was submitted and ended between the two looks would count as alive: never more than there is room for.
    uint64_t alive_count = stats.submit_count - stats.run_count - stats.cancel_count;
    stats.alive_count = nbi_min_u64(alive_count, scheduler->slot_count);
    stats.held_count = nbi_atomic_load_relaxed_u32(&scheduler->held_count);
    stats.result_count = nbi_atomic_load_relaxed_u64(&scheduler->result_count);
    stats.stale_count = nbi_atomic_load_relaxed_u64(&scheduler->stale_count);
    stats.poke_count = nbi_atomic_load_relaxed_u64(&scheduler->poke_count);
    return stats;
}

static uint64_t queued_count(const nbi_queue *queue) {
    // The heads first: they can only grow, so the differences are never below zero; and never more than there is room
    // for, whatever came and went between the two looks.
    uint64_t head = nbi_atomic_load_acquire_u64(&queue->ring.head),
             top = nbi_atomic_load_acquire_u64(&queue->deque.top);
    uint64_t in_ring = nbi_atomic_load_acquire_u64(&queue->ring.tail) - head;
    int64_t in_deque = (int64_t)(nbi_atomic_load_acquire_u64(&queue->deque.bottom) - top);
    return nbi_min_u64(in_ring, queue->ring.mask + 1) +
           nbi_min_u64(in_deque > 0 ? (uint64_t)in_deque : 0, queue->deque.mask + 1);
}

// A worker that never runs out of work would otherwise tell nothing for as long as that lasts.
static void add_period(nb_thread_stats *stats, uint64_t period) {
    uint64_t now_ns = nbi_clock_now_ns(), begin_ns = period >> 1;
    if (period == 0 || now_ns < begin_ns) return;
    if (period & 1)
        stats->busy_ns += now_ns - begin_ns;
    else
        stats->idle_ns += now_ns - begin_ns;
}

nb_thread_stats nb_scheduler_thread_stats_get(const nb_scheduler *scheduler, uint32_t thread_index) {
    nb_thread_stats stats = {0};
    if (scheduler == NULL) {
        NBI_FAIL_NULL("scheduler");
        return stats;
    }
    if (thread_index >= nbi_atomic_load_acquire_u32(&scheduler->lane_count)) return stats;
    const nbi_lane_counts *counts = &scheduler->lanes[thread_index]->counts;
    stats.run_count = nbi_atomic_load_relaxed_u64(&counts->run_count);
    stats.steal_count = nbi_atomic_load_relaxed_u64(&counts->steal_count);
    stats.overrun_count = nbi_atomic_load_relaxed_u64(&counts->overrun_count);
    stats.help_count = nbi_atomic_load_relaxed_u64(&counts->help_count);
    stats.park_count = nbi_atomic_load_relaxed_u64(&counts->park_count);
    stats.busy_ns = nbi_atomic_load_relaxed_u64(&counts->busy_ns);
    stats.idle_ns = nbi_atomic_load_relaxed_u64(&counts->idle_ns);
    add_period(&stats, nbi_atomic_load_relaxed_u64(&counts->period));
    const nbi_lane *lane = scheduler->lanes[thread_index];
    for (uint32_t i = 0; i < NBI_QUEUE_COUNT; ++i) stats.queued_count += queued_count(&lane->queues[i]);
    return stats;
}
