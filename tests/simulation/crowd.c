// SPDX-License-Identifier: MIT
// The modules around the game: one whose jobs read snapshots and make outputs, one whose handlers fail and do what they
// must not, and guests that come and go.

#include "simulation.h"

#include "platform/platform.h"

#include <string.h>

typedef struct crowd_output {
    uint64_t frame, job, hash;
} crowd_output;

// --- jobs ---

static void sleep_a_while(uint64_t ms_max) {
    nbi_sleep_until_ns(nbi_clock_now_ns() + (1 + sim_random(ms_max)) * UINT64_C(1000000));
}

static nb_result crowd_job(const nb_context *context, void *user) {
    peer *p = user;
    const sim *s = p->sim;
    uint64_t frame = context->frame_index, hash = 0, hash_after = 0;
    ++p->running_jobs;
    crowd_output *output = nb_output_add(context, sizeof *output);
    EXPLORE_CHECK(output != NULL && output->hash == 0);
    *output = (crowd_output){.frame = frame, .job = context->job_index};
    if (context->snapshot != NULL) EXPLORE_CHECK(snapshot_check(p, context->snapshot, &hash));
    if (fault_happens(s, FAULT_LATE_JOB)) sleep_a_while(70);
    if (context->snapshot != NULL) EXPLORE_CHECK(snapshot_check(p, context->snapshot, &hash_after));
    EXPLORE_CHECK(hash == hash_after && context->frame_index == frame && output->frame == frame);
    output->hash = hash;
    --p->running_jobs;
    bool is_greedy = fault_happens(s, FAULT_OUTPUT), fails = fault_happens(s, FAULT_JOB);
    if (is_greedy) EXPLORE_CHECK(nb_output_add(context, (size_t)1 << 20) == NULL);
    if (is_greedy || fails) ++p->failures_possible;
    return fails ? NB_ERR_OS : NB_OK;
}

static nb_result crowd_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    peer *p = user;
    size_t size_bytes = 0;
    const crowd_output *output = nb_output_list_next(outputs, NULL, &size_bytes);
    EXPLORE_CHECK(output != NULL && size_bytes == sizeof *output);
    EXPLORE_CHECK(output->frame == context->frame_index - context->job_age && output->job == context->job_index);
    EXPLORE_CHECK(nb_output_list_next(outputs, output, NULL) == NULL);
    EXPLORE_CHECK(context->job_age == 0 || p->adopts_late);
    if (p->merge_frame != context->frame_index) p->merge_next = 0;
    uint64_t place = output->frame * JOB_COUNT + context->job_index; // late ones first, the oldest ahead
    EXPLORE_CHECK(place >= p->merge_next);
    p->merge_frame = context->frame_index;
    p->merge_next = place + 1;
    if (context->phase == NB_PHASE_COMMAND_RECORD && context->job_index == 1) p->merge_next = 0;
    if (sim_random(8) == 0) peer_command(context, p);
    return NB_OK;
}

static nb_result crowd_record(const nb_context *context, void *user) {
    (void)user;
    crowd_output *output = nb_output_add(context, sizeof *output);
    EXPLORE_CHECK(output != NULL);
    *output = (crowd_output){.frame = context->frame_index, .job = context->job_index};
    return NB_OK;
}

static nb_result crowd_submit(const nb_context *context, void *user, const nb_output_list *outputs) {
    peer *p = user;
    if (context->job_index == 0) p->merge_next = 0;
    return crowd_merge(context, p, outputs);
}

// --- Gameplay ---

typedef struct bound_note {
    peer *peer;
    uint64_t frame;
    uint32_t index;
} bound_note;

static uint64_t page_value(uint64_t frame, uint32_t index) { return frame * BOUND_MAX + index + 1; }

// What it has made lies in the frame's memory. Without memory there is none.
static void bound_task(nb_task_context *context, void *argument) {
    const bound_note *note = argument;
    peer *p = note->peer;
    ++p->bound_run_count;
    nb_arena *arena = nb_task_arena(context);
    uint64_t *page = arena != NULL ? nb_arena_alloc(arena, sizeof *page, 8) : NULL;
    if (page == NULL) return;
    *page = page_value(note->frame, note->index);
    if (note->frame == p->bound_frame) p->bound_pages[note->index] = page;
}

static nb_result crowd_read(const nb_context *context, void *user) {
    const peer *p = user;
    for (uint32_t i = 0; i < BOUND_MAX && p->bound_frame == context->frame_index; ++i) {
        if (p->bound_pages[i] != NULL) EXPLORE_CHECK(*p->bound_pages[i] == page_value(context->frame_index, i));
    }
    return NB_OK;
}

// They are done when the frame is.
static void submit_tasks(const nb_context *context, peer *p) {
    uint64_t count = fault_happens(p->sim, FAULT_TASK_FLOOD) ? BOUND_MAX : sim_random(3);
    p->bound_frame = context->frame_index;
    memset(p->bound_pages, 0, sizeof p->bound_pages);
    for (uint32_t i = 0; i < count && context->frame.value != 0; ++i) {
        bound_note note = {p, context->frame_index, i};
        nb_task_desc desc = {.run = bound_task,
                             .argument = &note,
                             .argument_size_bytes = sizeof note,
                             .priority = NB_PRIORITY_CRITICAL,
                             .lifetime = NB_LIFETIME_FRAME,
                             .fence = context->fence,
                             .frame = context->frame};
        nb_result result = nb_task_submit(context->scheduler, &desc, NULL);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
        if (result == NB_OK) ++p->bound_count;
    }
}

static void reclaim(void *object, void *user) {
    peer *p = user;
    EXPLORE_CHECK(object == p);
    ++p->reclaimed_count;
}

static void retire(const nb_context *context, peer *p) {
    nb_timeline *epochs = nb_engine_epochs(context->engine);
    if (epochs == NULL) return;
    nb_result result = nb_timeline_retire(epochs, context->frame_index + 1 + sim_random(3), p, reclaim, p);
    EXPLORE_CHECK(result == NB_OK || result == NB_FULL);
    if (result == NB_OK) ++p->retired_count;
}

static nb_result crowd_frame(const nb_context *context, void *user) {
    peer *p = user;
    game_mark(context, p);
    if (p->sim->is_steady) return NB_OK;
    uint64_t count = fault_happens(p->sim, FAULT_COMMAND_FLOOD) ? 12 : sim_random(4) / 2;
    for (uint64_t i = 0; i < count; ++i) peer_command(context, p);
    submit_tasks(context, p);
    errands_submit(context, p);
    retire(context, p);
    return NB_OK;
}

// --- what fails, and what must not be ---

static void misbehave(const nb_context *context, peer *p) {
    nb_history_input input = {{NULL, 0}, {NULL, 0}};
    nb_store *world = p->game.world;
    bool is_stage_phase = context->phase == NB_PHASE_GAMEPLAY;
    switch (sim_random(4)) {
    case 0: EXPLORE_CHECK(nb_context_check(context, NB_LAYER_SIMULATED) == NB_ERR_PERMISSION); break;
    case 1:
        if (context->phase == NB_PHASE_NETWORK_RECONCILIATION) return;
        EXPLORE_CHECK(nb_context_correct_input(context, 0, &input) == NB_ERR_PERMISSION);
        break;
    case 2: EXPLORE_CHECK(NB_STORE_SINGLETON_WRITE(world, p->game.sky, 0, uint64_t) == NULL); break;
    default:
        if (is_stage_phase) return;
        EXPLORE_CHECK(nb_context_stage(context, 0) == NULL);
        break;
    }
    ++p->violation_count;
}

static nb_result moody_handler(const nb_context *context, void *user) {
    peer *p = user;
    EXPLORE_CHECK(nb_engine_phase(context->engine) == context->phase);
    if (fault_happens(p->sim, FAULT_VIOLATION)) misbehave(context, p);
    if (!fault_happens(p->sim, FAULT_HANDLER)) return NB_OK;
    ++p->failures_certain;
    return NB_ERR_OS;
}

static nb_result crowd_attach_moody(peer *p) {
    nb_module_desc desc = {.name = "moody", .frame = moody_handler, .user = p, .priority = (int32_t)sim_random(3) - 1};
    for (uint32_t i = NB_PHASE_FRAME_START; i <= NB_PHASE_FRAME_END; ++i) {
        bool has_other = i == NB_PHASE_FIXED_SIM || i == NB_PHASE_GAMEPLAY || i == NB_PHASE_PARALLEL_TASKS ||
                         i == NB_PHASE_COMMAND_RECORD;
        if (!has_other) desc.handlers[i] = moody_handler;
    }
    return nb_engine_module_attach(p->engine, &desc, NULL);
}

// --- guests ---

static bool is_there(const guest *g) { return g->attach_count > g->detach_count; }

static nb_result guest_job(const nb_context *context, void *user) {
    guest *g = user;
    (void)context;
    EXPLORE_CHECK(is_there(g));
    if (fault_happens(g->owner->sim, FAULT_LATE_JOB)) sleep_a_while(70);
    EXPLORE_CHECK(is_there(g));
    return NB_OK;
}

static nb_result guest_frame(const nb_context *context, void *user) {
    guest *g = user;
    EXPLORE_CHECK(is_there(g));
    if (!fault_happens(g->owner->sim, FAULT_MODULE)) return NB_OK;
    if (!g->is_wanted) return NB_OK;
    g->is_wanted = false;
    EXPLORE_CHECK(nb_engine_module_detach(context->engine, g->handle) == NB_OK);
    return NB_OK;
}

static nb_result guest_attach(nb_engine *engine, void *user) {
    guest *g = user;
    (void)engine;
    if (g->refuses) return NB_ERR_UNSUPPORTED;
    ++g->attach_count;
    return NB_OK;
}

static void guest_detach(nb_engine *engine, void *user) {
    guest *g = user;
    (void)engine;
    ++g->detach_count;
    EXPLORE_CHECK(g->detach_count <= g->attach_count);
}

static nb_module_desc guest_desc(guest *g) {
    static const char *const names[GUEST_COUNT] = {"guest0", "guest1", "guest2"};
    static const char *const others[] = {"crowd", "moody"};
    nb_module_desc desc = {
        .name = names[g->index], .frame = guest_frame, .on_attach = guest_attach, .on_detach = guest_detach, .user = g};
    // One by one: in an initialiser their order would be the compiler's.
    if (sim_random(2) == 0) desc.parallel = guest_job;
    desc.job_count = 1 + (uint32_t)sim_random(2);
    desc.priority = (int32_t)sim_random(5) - 2;
    if (sim_random(2) == 0) desc.after = &others[sim_random(2)], desc.after_count = 1;
    return desc;
}

static void guest_enter(peer *p, guest *g) {
    nb_module_desc desc = guest_desc(g);
    g->refuses = sim_random(8) == 0;
    nb_result result = nb_engine_module_attach(p->engine, &desc, &g->handle);
    g->is_wanted = result == NB_OK;
    bool is_explained = result == NB_OK || (g->refuses && result == NB_ERR_UNSUPPORTED) || result == NB_ERR_MEMORY;
    EXPLORE_CHECK(is_explained);
    EXPLORE_CHECK(result != NB_ERR_MEMORY || p->heap_faults != 0);
}

static void guest_replace(peer *p, guest *g) {
    nb_module_desc desc = guest_desc(g);
    g->refuses = sim_random(8) == 0;
    nb_result result = nb_engine_module_replace(p->engine, g->handle, &desc);
    EXPLORE_CHECK(result == NB_OK || result == NB_BUSY || (g->refuses && result == NB_ERR_UNSUPPORTED) ||
                  (result == NB_ERR_MEMORY && p->heap_faults != 0));
    // Where the new one is refused, the old one stays.
}

void crowd_churn(peer *p) {
    if (!fault_happens(p->sim, FAULT_MODULE)) return;
    guest *g = &p->guests[sim_random(GUEST_COUNT)];
    if (!g->is_wanted) {
        guest_enter(p, g);
    } else if (sim_random(2) == 0) {
        guest_replace(p, g);
    } else {
        g->is_wanted = false;
        EXPLORE_CHECK(nb_engine_module_detach(p->engine, g->handle) == NB_OK);
    }
}

// After the engine's end.
void crowd_check(const peer *p) {
    for (uint32_t i = 0; i < GUEST_COUNT; ++i) EXPLORE_CHECK(p->guests[i].attach_count == p->guests[i].detach_count);
    EXPLORE_CHECK(p->running_jobs == 0);
    EXPLORE_CHECK(p->retired_count == p->reclaimed_count);
}

nb_result crowd_attach(peer *p) {
    nb_module_desc net = {.name = "net", .user = p, .priority = 20};
    net.handlers[NB_PHASE_NETWORK_RECONCILIATION] = link_reconcile;
    p->adopts_late = sim_random(2) == 0;
    nb_module_desc crowd = {.name = "crowd",
                            .frame = crowd_frame,
                            .parallel = crowd_job,
                            .merge = crowd_merge,
                            .job_count = JOB_COUNT,
                            .adopts_late = p->adopts_late,
                            .record = crowd_record,
                            .submit = crowd_submit,
                            .record_count = 2,
                            .user = p};
    crowd.handlers[NB_PHASE_POST_PARALLEL] = crowd_read;
    crowd.handlers[NB_PHASE_FRAME_END] = crowd_read;
    for (uint32_t i = 0; i < GUEST_COUNT; ++i) p->guests[i] = (guest){.owner = p, .index = i};
    nb_result result = nb_engine_module_attach(p->engine, &net, NULL);
    if (result == NB_OK) result = nb_engine_module_attach(p->engine, &crowd, &p->crowd);
    return result == NB_OK ? crowd_attach_moody(p) : result;
}
