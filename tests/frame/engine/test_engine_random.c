// SPDX-License-Identifier: MIT
// Random programs against a model of the engine: which handlers run in which order, which operations are allowed, what
// failures do, what is published, who is attached. What is illegal is refused, counted once, and has no effect: the
// same program without its illegal operations, on another number of threads, ends in the same state.

#include "frame/engine/engine_random.h"

static const char *const unit_names[NAME_COUNT] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"};

// --- operations ---

static void count_violation(program *p) { nbi_atomic_fetch_add_relaxed_u64(&p->violation_count, 1); }

static void change_cell(program *p, uint64_t layer, uint64_t number, bool is_engine) {
    uint64_t *sim = is_engine ? p->sim : p->model_sim, *game = is_engine ? p->game : p->model_game;
    uint64_t *cells = layer == NB_LAYER_SIMULATED ? sim : layer == NB_LAYER_GAME ? game : NULL;
    if (cells != NULL) cells[number / 64 % CELL_COUNT] = mixed(cells[number / 64 % CELL_COUNT], number);
}

static void do_layer(program *p, const unit *u, const nb_context *context, call_kind kind, uint64_t number) {
    uint64_t layer = layer_of(number);
    bool is_allowed = may_change(u, context->phase, kind, layer);
    if (!is_allowed && p->is_clean) return;
    nb_result result = nb_context_check(context, (uint32_t)layer);
    EXPECT(p, result == (is_allowed ? NB_OK : NB_ERR_PERMISSION));
    if (!is_allowed) count_violation(p);
    if (result == NB_OK) change_cell(p, layer, number, true);
    if (is_allowed) change_cell(p, layer, number, false);
}

static void do_capability(program *p, const unit *u, const nb_context *context, call_kind kind, uint64_t number) {
    uint64_t capability = layer_of(number);
    bool is_allowed = is_single(capability) && (capabilities_of(u, context->phase, kind) & capability) != 0;
    if (!is_allowed && p->is_clean) return;
    nb_result result = nb_context_check_capability(context, (uint32_t)capability);
    EXPECT(p, result == (is_allowed ? NB_OK : NB_ERR_PERMISSION));
    if (!is_allowed) count_violation(p);
}

// What a context says of itself decides nothing.
static void do_forge(program *p, const unit *u, const nb_context *context, call_kind kind, uint64_t number) {
    nb_context forged = *context;
    uint64_t layer = layer_of(number);
    bool is_allowed = may_change(u, context->phase, kind, layer);
    if (p->is_clean) return;
    forged.phase = (nb_phase)(number / 64 % NB_PHASE_COUNT);
    forged.capabilities = NB_CAPABILITY_ALL;
    EXPECT(p, nb_context_check(&forged, (uint32_t)layer) == (is_allowed ? NB_OK : NB_ERR_PERMISSION));
    if (!is_allowed) count_violation(p);
}

static void use_stale(program *p, const nb_context *kept, uint64_t number) {
    if (p->is_clean) return;
    EXPECT(p, nb_context_check(kept, (uint32_t)layer_of(number)) == NB_ERR_STALE);
    EXPECT(p, nb_context_check_capability(kept, NB_CAPABILITY_PUBLISH) == NB_ERR_STALE);
    count_violation(p);
    count_violation(p);
    if (kept->outputs == NULL) return;
    EXPECT(p, nb_output_add(kept, 16) == NULL);
    count_violation(p);
}

typedef struct carried {
    const nb_context *context;
    nb_result results[2];
    void *output;
} carried;

static void use_elsewhere(void *user) {
    carried *c = user;
    c->results[0] = nb_context_check(c->context, NB_LAYER_GAME);
    c->results[1] = nb_context_check_capability(c->context, NB_CAPABILITY_SUBMIT);
    c->output = c->context->outputs != NULL ? nb_output_add(c->context, 16) : NULL;
}

static void do_other_thread(program *p, const nb_context *context) {
    carried c = {.context = context};
    if (p->is_clean) return;
    test_thread_run(use_elsewhere, &c);
    EXPECT(p, c.results[0] == NB_ERR_THREAD && c.results[1] == NB_ERR_THREAD && c.output == NULL);
    for (int i = 0; i < (context->outputs != NULL ? 3 : 2); ++i) count_violation(p);
}

// --- snapshots ---

static void pin_acquire(program *p, uint64_t number) {
    held_pin *pin = &p->held[number % HELD_MAX];
    if (pin->snapshot != NULL) return;
    pin->snapshot = nb_snapshots_acquire(nb_engine_snapshots(p->rig.engine));
    pin->version = p->version;
    EXPECT(p, (pin->snapshot != NULL) == (p->version != 0));
    EXPECT(p, pin->snapshot == NULL || pin->snapshot->version == p->version);
}

static void pin_release(program *p, uint64_t number) {
    held_pin *pin = &p->held[number % HELD_MAX];
    if (pin->snapshot == NULL) return;
    const void *bytes = nb_snapshot_region(pin->snapshot, p->region, NULL);
    EXPECT(p, pin->snapshot->version == pin->version);
    EXPECT(p, memcmp(bytes, p->published[pin->version], sizeof p->game) == 0);
    nb_snapshot_release(pin->snapshot);
    pin->snapshot = NULL;
}

// What the Snapshot phase does: four slots, of which the newest and the held ones stay.
static void model_publish(program *p) {
    uint32_t held_count = 0;
    for (uint32_t i = 0; i < HELD_MAX; ++i) {
        bool is_counted = p->held[i].snapshot != NULL && p->held[i].version != p->version;
        for (uint32_t j = 0; is_counted && j < i; ++j) {
            if (p->held[j].snapshot != NULL && p->held[j].version == p->held[i].version) is_counted = false;
        }
        held_count += is_counted ? 1 : 0;
    }
    if (held_count >= 3) {
        ++p->skip_count;
        return;
    }
    memcpy(p->published[++p->version], p->model_game, sizeof p->model_game);
}

// --- modules come and go ---

static nb_result on_call(const nb_context *context, void *user);
static nb_result on_job(const nb_context *context, void *user);
static nb_result on_merge(const nb_context *context, void *user, const nb_output_list *outputs);

static nb_result on_attach(nb_engine *engine, void *user) {
    unit *u = user;
    ++u->attach_seen;
    EXPECT(u->owner, engine == u->owner->rig.engine);
    return u->refuses ? NB_ERR_UNSUPPORTED : NB_OK;
}

static void on_detach(nb_engine *engine, void *user) {
    unit *u = user;
    program *p = u->owner;
    (void)engine;
    ++u->detach_seen;
    if (p->is_ending) p->detached[p->detached_count++] = u->desc.name[1];
}

static void unit_handlers(unit *u, uint64_t *state) {
    for (uint32_t i = NB_PHASE_FRAME_START; i <= NB_PHASE_FRAME_END; ++i) {
        bool has_jobs = i == NB_PHASE_PARALLEL_TASKS || i == NB_PHASE_COMMAND_RECORD;
        uint64_t draw = test_random(state);
        if (has_jobs || draw % 3 != 0) continue;
        if (i == NB_PHASE_FIXED_SIM && draw % 2 == 0)
            u->desc.tick = on_call;
        else if (i == NB_PHASE_GAMEPLAY && draw % 2 == 0)
            u->desc.frame = on_call;
        else
            u->desc.handlers[i] = on_call;
    }
    if (test_random(state) % 2 == 0) u->desc.parallel = on_job;
    if (test_random(state) % 3 == 0) u->desc.record = on_job;
    if (test_random(state) % 5 != 0) u->desc.merge = on_merge;
    if (test_random(state) % 5 != 0) u->desc.submit = on_merge;
    u->desc.job_count = 1 + (uint32_t)(test_random(state) % JOB_MAX);
    u->desc.record_count = 1 + (uint32_t)(test_random(state) % JOB_MAX);
}

// A unit that nobody has attached yet; NULL when there were enough.
static unit *unit_make(program *p, uint64_t number, uint32_t name) {
    if (p->unit_count == UNIT_COUNT_MAX) return NULL;
    uint64_t state = mixed(p->seed, number);
    unit *u = &p->units[p->unit_count];
    *u = (unit){.owner = p, .id = p->unit_count++, .name = name};
    u->desc = (nb_module_desc){.name = unit_names[name], .user = u, .on_attach = on_attach, .on_detach = on_detach};
    u->desc.priority = (int32_t)(test_random(&state) % 5) - 2;
    u->desc.after_count = (uint32_t)(test_random(&state) % 3);
    u->desc.before_count = (uint32_t)(test_random(&state) % 2);
    for (uint32_t i = 0; i < 2; ++i) {
        u->after[i] = unit_names[test_random(&state) % NAME_COUNT];
        u->before[i] = unit_names[test_random(&state) % NAME_COUNT];
    }
    u->desc.after = u->after, u->desc.before = u->before;
    u->desc.capabilities = (uint32_t)(test_random(&state) % (NB_CAPABILITY_ALL + 1));
    u->refuses = test_random(&state) % 12 == 0;
    unit_handlers(u, &state);
    return u;
}

// Puts a unit in, as far as the model knows.
static nb_result model_enter(program *p, unit *u, uint64_t number) {
    uint32_t order[UNIT_COUNT_MAX], count = 0;
    u->state = UNIT_ATTACHED;
    u->number = number;
    nb_result result = order_make(p, order, &count) ? NB_OK : NB_ERR_MISUSE;
    if (result == NB_OK) ++u->attach_expected;
    if (result == NB_OK && u->refuses) result = NB_ERR_UNSUPPORTED;
    if (result != NB_OK) u->state = UNIT_GONE;
    return result;
}

static nb_result model_attach(program *p, unit *u) {
    uint32_t place_count = 1; // the host
    for (uint32_t i = 0; i < p->unit_count; ++i) {
        const unit *other = &p->units[i];
        if (other->state == UNIT_ATTACHED && other->name == u->name) return NB_ERR_MISUSE;
        place_count += other->state == UNIT_ATTACHED || other->state == UNIT_LEAVING ? 1 : 0;
    }
    if (place_count == PLACE_COUNT) return NB_FULL;
    return model_enter(p, u, ++p->number_last);
}

static void do_attach(program *p, uint64_t number) {
    unit *u = unit_make(p, number, (uint32_t)(number % NAME_COUNT));
    if (u == NULL) return;
    nb_result expected = model_attach(p, u);
    EXPECT(p, nb_engine_module_attach(p->rig.engine, &u->desc, &u->handle) == expected);
    EXPECT(p, (u->handle.value != 0) == (expected == NB_OK));
    EXPECT(p, u->attach_seen == u->attach_expected);
}

static unit *unit_pick(program *p, uint64_t number) {
    unit *u = p->unit_count != 0 ? &p->units[number % p->unit_count] : NULL;
    return u != NULL && u->handle.value != 0 ? u : NULL;
}

static void do_detach(program *p, uint64_t number) {
    unit *u = unit_pick(p, number);
    if (u == NULL) return;
    bool is_there = u->state == UNIT_ATTACHED;
    EXPECT(p, nb_engine_module_detach(p->rig.engine, u->handle) == (is_there ? NB_OK : NB_ERR_STALE));
    if (!is_there) return;
    u->state = p->is_in_frame ? UNIT_LEAVING : UNIT_GONE;
    u->detach_expected += p->is_in_frame ? 0 : 1;
    EXPECT(p, u->detach_seen == u->detach_expected);
}

static void do_replace(program *p, uint64_t number) {
    unit *old = unit_pick(p, number);
    unit *u = old != NULL ? unit_make(p, number, old->name) : NULL;
    if (u == NULL) return;
    nb_result expected = old->state != UNIT_ATTACHED ? NB_ERR_STALE : p->is_in_frame ? NB_BUSY : NB_OK;
    nb_module_id handle = old->handle;
    if (expected == NB_OK) {
        old->state = UNIT_GONE;
        expected = model_enter(p, u, old->number);
        if (expected == NB_OK) {
            u->handle = handle;
            old->handle = (nb_module_id){0}; // the new one has it
            ++old->detach_expected;
        } else {
            old->state = UNIT_ATTACHED; // it stays as it was
        }
    }
    EXPECT(p, nb_engine_module_replace(p->rig.engine, handle, &u->desc) == expected);
    EXPECT(p, old->detach_seen == old->detach_expected && u->attach_seen == u->attach_expected);
}

static void do_reenter(program *p, uint64_t number) {
    nb_engine *engine = p->rig.engine;
    if (p->is_clean) return;
    if (number % 4 == 0) EXPECT(p, nb_engine_frame_delta(engine, TICK_NS) == NB_BUSY);
    if (number % 4 == 1) EXPECT(p, nb_engine_run_ticks(engine, 2) == NB_BUSY);
    if (number % 4 == 2) EXPECT(p, nb_engine_run(engine) == NB_BUSY);
    if (number % 4 == 3) EXPECT(p, nb_engine_destroy(engine) == NB_BUSY);
    EXPECT(p, nb_engine_is_stopping(engine) == p->is_stopping);
}

// --- calls ---

static void keep(program *p, unit *u, const nb_context *context, call_kind kind) {
    uint32_t which = context->phase == NB_PHASE_COMMAND_RECORD ? 1 : 0;
    if (kind == CALL_JOB) {
        u->job_kept[which][context->job_index] = *context;
        u->has_kept[which][context->job_index] = true;
        return;
    }
    p->kept = *context;
    p->kept_call = p->call;
}

static void use_kept(program *p, unit *u, const nb_context *context, call_kind kind, uint64_t number) {
    uint32_t which = context->phase == NB_PHASE_COMMAND_RECORD ? 1 : 0;
    if (kind == CALL_JOB) {
        const nb_context *kept = &u->job_kept[which][context->job_index];
        bool is_old = u->has_kept[which][context->job_index] && kept->frame_index != context->frame_index;
        if (is_old) use_stale(p, kept, number);
        return;
    }
    if (p->kept_call != 0 && p->kept_call != p->call) use_stale(p, &p->kept, number);
}

// Of a job of anybody, also of a module that is gone.
static void use_job_kept(program *p, uint64_t number) {
    const unit *u = p->unit_count != 0 ? &p->units[number % p->unit_count] : NULL;
    uint32_t which = (uint32_t)(number / 1024 % 2), job = (uint32_t)(number / 4096 % JOB_MAX);
    if (u != NULL && u->has_kept[which][job]) use_stale(p, &u->job_kept[which][job], number);
}

static void do_output(program *p, const nb_context *context, uint64_t number, bool is_huge) {
    size_t size_bytes = is_huge ? (size_t)1 << 40 : 8 + number % 100;
    uint64_t *block = nb_output_add(context, size_bytes);
    EXPECT(p, (block == NULL) == is_huge);
    if (block != NULL) *block = number;
}

// On the coordinator only.
static void do_host_op(program *p, const op *o) {
    switch (o->kind) {
    case OP_ATTACH: do_attach(p, o->number); break;
    case OP_DETACH: do_detach(p, o->number); break;
    case OP_REPLACE: do_replace(p, o->number); break;
    case OP_ACQUIRE: pin_acquire(p, o->number); break;
    case OP_RELEASE: pin_release(p, o->number); break;
    case OP_REENTER: do_reenter(p, o->number); break;
    case OP_USE_JOB_KEPT: use_job_kept(p, o->number); break;
    case OP_STOP:
        EXPECT(p, nb_engine_stop(p->rig.engine) == NB_OK);
        p->is_stopping = true;
        break;
    default: break;
    }
}

static nb_result run_script(const nb_context *context, unit *u, const script *s, call_kind kind) {
    program *p = u->owner;
    for (uint32_t i = 0; i < s->count; ++i) {
        const op *o = &s->ops[i];
        switch (o->kind) {
        case OP_LAYER: do_layer(p, u, context, kind, o->number); break;
        case OP_CAPABILITY: do_capability(p, u, context, kind, o->number); break;
        case OP_FORGE: do_forge(p, u, context, kind, o->number); break;
        case OP_KEEP: keep(p, u, context, kind); break;
        case OP_USE_KEPT: use_kept(p, u, context, kind, o->number); break;
        case OP_OTHER_THREAD: do_other_thread(p, context); break;
        case OP_OUTPUT:
        case OP_OUTPUT_HUGE: do_output(p, context, o->number, o->kind == OP_OUTPUT_HUGE); break;
        default: do_host_op(p, o); break;
        }
    }
    bool is_memory = kind == CALL_JOB && s->result == NB_ERR_MEMORY; // known to the engine
    return is_memory ? NB_OK : s->result;
}

static void check_context(program *p, const unit *u, const nb_context *context, call_kind kind) {
    bool is_after = context->phase > NB_PHASE_SNAPSHOT;
    uint64_t version = context->snapshot != NULL ? context->snapshot->version : 0;
    EXPECT(p, context->engine == p->rig.engine && context->module.value == u->handle.value);
    EXPECT(p, context->frame_index == p->frame_count && context->time->index == p->frame_count);
    EXPECT(p, context->capabilities == capabilities_of(u, context->phase, kind));
    EXPECT(p, version == (is_after ? p->version : 0));
    EXPECT(p, (context->tick != NULL) == (context->phase == NB_PHASE_FIXED_SIM));
    EXPECT(p, (context->outputs != NULL) == (kind == CALL_JOB));
}

// The coordinator is called: is it what the plan says?
static nb_result run_planned(const nb_context *context, unit *u, call_kind kind) {
    program *p = u->owner;
    uint64_t tick = context->tick != NULL ? context->tick->index : 0;
    uint32_t job = kind == CALL_MERGE ? context->job_index : 0;
    const plan_entry *next = p->plan_next < p->plan_count ? &p->plan[p->plan_next] : NULL;
    EXPECT(p, next != NULL); // nobody was expected any more
    if (next == NULL) return NB_OK;
    ++p->plan_next;
    ++p->call;
    EXPECT(p, next->unit == u->id);
    EXPECT(p, next->phase == context->phase);
    EXPECT(p, next->kind == kind && next->job == job);
    EXPECT(p, next->tick == tick);
    EXPECT(p, nb_engine_phase(p->rig.engine) == context->phase);
    check_context(p, u, context, kind);
    script s = script_make(p, u, context->phase, kind, tick, job);
    return run_script(context, u, &s, kind);
}

static nb_result on_call(const nb_context *context, void *user) { return run_planned(context, user, CALL_HANDLER); }

static nb_result on_job(const nb_context *context, void *user) {
    unit *u = user;
    program *p = u->owner;
    uint32_t which = context->phase == NB_PHASE_COMMAND_RECORD ? 1 : 0;
    EXPECT(p, context->job_index < (which ? u->desc.record_count : u->desc.job_count));
    nbi_atomic_fetch_add_relaxed_u32(&u->job_runs[which][context->job_index], 1);
    check_context(p, u, context, CALL_JOB);
    script s = script_make(p, u, context->phase, CALL_JOB, 0, context->job_index);
    return run_script(context, u, &s, CALL_JOB);
}

// The outputs are those of the job's script, in their order.
static void check_outputs(program *p, const unit *u, const nb_context *context, const nb_output_list *outputs) {
    bool is_record = context->phase == NB_PHASE_COMMAND_RECORD;
    script s = script_make(p, u, is_record ? NB_PHASE_COMMAND_RECORD : NB_PHASE_PARALLEL_TASKS, CALL_JOB, 0,
                           context->job_index);
    const void *block = NULL;
    for (uint32_t i = 0; i < s.count; ++i) {
        if (s.ops[i].kind != OP_OUTPUT) continue;
        size_t size_bytes = 0;
        block = nb_output_list_next(outputs, block, &size_bytes);
        EXPECT(p, block != NULL && size_bytes == 8 + s.ops[i].number % 100);
        if (block == NULL) return;
        EXPECT(p, *(const uint64_t *)block == s.ops[i].number);
    }
    bool has_any = block != NULL || nb_output_list_next(outputs, NULL, NULL) != NULL;
    EXPECT(p, !has_any || nb_output_list_next(outputs, block, NULL) == NULL);
}

static nb_result on_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    unit *u = user;
    check_outputs(u->owner, u, context, outputs);
    nb_result result = run_planned(context, u, CALL_MERGE);
    check_outputs(u->owner, u, context, outputs); // nothing came to it
    return result;
}

// --- frames ---

static void check_numbers(program *p) {
    nb_engine_stats stats = rig_stats(&p->rig);
    uint32_t module_count = 1, disabled_count = 0;
    for (uint32_t i = 0; i < p->unit_count; ++i) {
        const unit *u = &p->units[i];
        EXPECT(p, u->attach_seen == u->attach_expected && u->detach_seen == u->detach_expected);
        if (u->state != UNIT_ATTACHED) continue;
        ++module_count;
        disabled_count += u->ticks.is_disabled || u->frames.is_disabled ? 1 : 0;
    }
    EXPECT(p, stats.frame_count == p->frame_count && stats.tick_count == p->tick_count);
    EXPECT(p, stats.failure_count == p->failure_count);
    EXPECT(p, stats.violation_count == nbi_atomic_load_relaxed_u64(&p->violation_count));
    EXPECT(p, stats.job_count == p->job_count);
    EXPECT(p, stats.output_full_count == p->full_count);
    EXPECT(p, stats.degraded_count == 0 && stats.late_job_count == 0);
    EXPECT(p, stats.module_count == module_count);
    EXPECT(p, stats.disabled_count == disabled_count);
    nb_snapshots_stats snapshots = nb_snapshots_stats_get(nb_engine_snapshots(p->rig.engine));
    EXPECT(p, snapshots.version == p->version && snapshots.skip_count == p->skip_count);
    EXPECT(p, memcmp(p->sim, p->model_sim, sizeof p->sim) == 0);
    EXPECT(p, memcmp(p->game, p->model_game, sizeof p->game) == 0);
}

static void finish_jobs(program *p, unit *u) {
    for (uint32_t which = 0; which < 2; ++which) {
        for (uint32_t job = 0; job < JOB_MAX; ++job) {
            uint32_t runs = nbi_atomic_load_relaxed_u32(&u->job_runs[which][job]);
            EXPECT(p, runs == u->job_expected[which][job]);
            nb_phase phase = which ? NB_PHASE_COMMAND_RECORD : NB_PHASE_PARALLEL_TASKS;
            script s = script_make(p, u, phase, CALL_JOB, 0, job);
            for (uint32_t i = 0; runs != 0 && i < s.count; ++i)
                p->full_count += s.ops[i].kind == OP_OUTPUT_HUGE ? 1 : 0;
            nbi_atomic_store_relaxed_u32(&u->job_runs[which][job], 0);
            u->job_expected[which][job] = 0;
        }
    }
}

static void frame_finish(program *p) {
    if (!p->is_in_frame) return;
    EXPECT(p, p->plan_next == p->plan_count);
    for (uint32_t i = 0; i < p->unit_count; ++i) {
        unit *u = &p->units[i];
        finish_jobs(p, u);
        health_note(p, &u->frames);
        if (u->state != UNIT_LEAVING) continue;
        u->state = UNIT_GONE;
        ++u->detach_expected;
    }
    p->is_in_frame = false;
    p->tick_count += p->frame_ticks;
    ++p->frame_count;
    check_numbers(p);
}

static nb_result host_begin(const nb_context *context, void *user) {
    program *p = user;
    (void)context;
    frame_finish(p); // of nb_engine_run_ticks
    plan_make(p);
    p->is_in_frame = true;
    return NB_OK;
}

static nb_result host_publish(const nb_context *context, void *user) {
    (void)context;
    model_publish(user);
    return NB_OK;
}

// --- steps ---

static void step_frame(program *p, uint64_t number) {
    uint64_t delta_ns = number % 4 == 0 ? 0 : number / 8 % (3 * TICK_NS);
    p->time_ns += delta_ns;
    p->frame_ticks = (uint32_t)(p->time_ns / TICK_NS);
    p->time_ns %= TICK_NS;
    nb_result result = nb_engine_frame_delta(p->rig.engine, delta_ns);
    nb_result expected = p->frame_failure;
    frame_finish(p);
    EXPECT(p, result == expected);
}

static void step_run(program *p, uint64_t number) {
    uint64_t wanted = number % 4, frames_before = p->frame_count;
    bool was_stopping = p->is_stopping;
    p->frame_ticks = 1;
    EXPECT(p, nb_engine_run_ticks(p->rig.engine, wanted) == NB_OK);
    frame_finish(p);
    uint64_t ran = p->frame_count - frames_before;
    EXPECT(p, !was_stopping || ran == 0);
    EXPECT(p, ran <= wanted);
    EXPECT(p, was_stopping || p->is_stopping || ran == wanted);
    EXPECT(p, !nb_engine_is_stopping(p->rig.engine));
    p->is_stopping = false;
}

static void call_elsewhere(void *user, uint32_t index) {
    program *p = user;
    nb_engine *engine = p->rig.engine;
    nb_module_desc desc = {.name = "foreign"};
    (void)index;
    EXPECT(p, nb_engine_frame_delta(engine, TICK_NS) == NB_ERR_THREAD);
    EXPECT(p, nb_engine_run_ticks(engine, 1) == NB_ERR_THREAD);
    EXPECT(p, nb_engine_module_attach(engine, &desc, NULL) == NB_ERR_THREAD);
    EXPECT(p, nb_engine_destroy(engine) == NB_ERR_THREAD);
}

static void step_elsewhere(program *p) {
    if (p->is_clean) return;
    test_threads_run(1, call_elsewhere, p);
    EXPECT(p, nb_engine_is_stopping(p->rig.engine) == p->is_stopping);
}

static void step(program *p, uint64_t *state) {
    uint64_t draw = test_random(state) % 100, number = test_random(state);
    if (draw < 55)
        step_frame(p, number);
    else if (draw < 65)
        step_run(p, number);
    else if (draw < 78)
        do_attach(p, number);
    else if (draw < 84)
        do_detach(p, number);
    else if (draw < 90)
        do_replace(p, number);
    else if (draw < 94)
        pin_acquire(p, number);
    else if (draw < 97)
        pin_release(p, number);
    else if (draw < 98)
        step_elsewhere(p);
    else
        use_job_kept(p, number);
    check_numbers(p);
}

// --- programs ---

static nb_engine_desc program_desc(const program *p, uint64_t *state, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.loop.tick_rate = (nb_rate){100, 1};
    desc.loop.tick_budget_ns = NB_LOOP_UNLIMITED;
    desc.module_count_max = PLACE_COUNT;
    desc.output_bytes = 1 << 16;
    desc.hashes_ticks = true;
    desc.is_headless = p->is_headless;
    desc.failure_count_max = p->failure_count_max;
    desc.violation_policy = test_random(state) % 2 == 0 ? NB_VIOLATION_REPORT : NB_VIOLATION_COUNT_ONLY;
    // Now and then too small for all jobs of a frame: the coordinator runs the rest.
    if (test_random(state) % 4 == 0) desc.scheduler_desc.task_count_max = 8;
    return desc;
}

// Jobs report at the same time: only counted, and only what must be there.
static void count_record(void *user, const nb_log_record *record) {
    program *p = user;
    if (record->item == NB_ITEM_ENGINE_BARRIER) mistake(p, "a barrier was open");
    nbi_atomic_fetch_add_seq_cst_u32(&p->rig.log.counts[record->item], 1);
}

static void program_open(program *p, uint64_t seed, uint32_t worker_count, bool is_clean) {
    uint64_t state = seed;
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->is_clean = is_clean;
    p->is_headless = test_random(&state) % 4 == 0;
    p->failure_count_max = (uint32_t)(test_random(&state) % 4);
    nb_engine_desc desc = program_desc(p, &state, worker_count);
    desc.hooks = test_hooks(NULL, &p->rig.heap);
    desc.hooks.logger = (nb_logger){.log = count_record, .user = p, .level_min = NB_LOG_WARNING};
    assert_int_equal(nb_engine_create(&desc, &p->rig.engine), NB_OK);
    nb_module_desc host = {.name = "host", .priority = INT32_MAX, .user = p};
    host.handlers[NB_PHASE_FRAME_START] = host_begin;
    host.handlers[NB_PHASE_SNAPSHOT] = host_publish;
    attach(&p->rig, host);
    nb_provider_desc sim = {.name = "sim", .data = p->sim, .size_bytes = sizeof p->sim};
    nb_snapshot_region_desc game = {.name = "game", .base = p->game, .size_bytes = sizeof p->game};
    assert_int_equal(nb_states_add(nb_engine_states(p->rig.engine), &sim, NULL), NB_OK);
    assert_int_equal(nb_snapshots_region_add(nb_engine_snapshots(p->rig.engine), &game, &p->region), NB_OK);
}

static void assert_no_mistake(program *p, uint64_t step_index) {
    const char *text = nbi_atomic_load_seq_cst_ptr(&p->mistake);
    if (text == NULL) return;
    print_error("program 0x%llx, step %llu, frame %llu, %u modules so far: not so: %s\n", (unsigned long long)p->seed,
                (unsigned long long)step_index, (unsigned long long)p->frame_count, p->unit_count, text);
    fail();
}

// Modules leave in the reverse of their order, each once; a snapshot that is held keeps the engine.
static void program_close(program *p) {
    uint32_t order[UNIT_COUNT_MAX], count = 0;
    bool is_held = false;
    EXPECT(p, order_make(p, order, &count));
    for (uint32_t i = 0; i < HELD_MAX; ++i) is_held = is_held || p->held[i].snapshot != NULL;
    p->is_ending = true;
    if (is_held) EXPECT(p, nb_engine_destroy(p->rig.engine) == NB_BUSY);
    for (uint64_t i = 0; i < HELD_MAX; ++i) pin_release(p, i);
    assert_int_equal(nb_engine_destroy(p->rig.engine), NB_OK);
    EXPECT(p, p->detached_count == count);
    for (uint32_t i = 0; i < count; ++i) EXPECT(p, p->detached[i] == p->units[order[count - 1 - i]].desc.name[1]);
    for (uint32_t i = 0; i < p->unit_count; ++i) {
        const unit *u = &p->units[i];
        EXPECT(p, u->detach_seen == u->detach_expected + (u->state == UNIT_ATTACHED ? 1u : 0u));
    }
    assert_no_mistake(p, UINT64_MAX);
    assert_int_equal(p->rig.heap.live_count.value, 0);
}

static uint64_t program_run(program *p, uint64_t step_count) {
    uint64_t state = mixed(p->seed, 1);
    for (uint64_t i = 0; i < step_count; ++i) {
        step(p, &state);
        assert_no_mistake(p, i);
    }
    return rig_stats(&p->rig).run_hash;
}

TEST(random_programs_follow_the_model) {
    static program first, second;
    uint64_t seed = test_seed("random_programs_follow_the_model");
    uint64_t calls = 0, violations = 0, failures = 0, skips = 0;
    for (uint64_t i = 0; i < test_size(150, 600, 50000); ++i) {
        uint64_t program_seed = mixed(seed, i), step_count = 30 + program_seed % 90;
        program_open(&first, program_seed, (uint32_t)(program_seed / 7 % 4), false);
        program_open(&second, program_seed, (uint32_t)(program_seed / 11 % 3), true);
        uint64_t hash = program_run(&first, step_count);
        assert_true(hash == program_run(&second, step_count));
        assert_memory_equal(first.game, second.game, sizeof first.game);
        assert_true(first.version == second.version && first.failure_count == second.failure_count);
        assert_int_equal(rig_stats(&second.rig).violation_count, 0);
        calls += first.call, violations += first.violation_count.value;
        failures += first.failure_count, skips += first.skip_count;
        program_close(&first);
        program_close(&second);
    }
    // Programs that do nothing prove nothing.
    assert_true(calls > 100 && violations > 100 && failures > 10 && skips > 0);
}

// --- modules that take others along ---

typedef struct family {
    nb_module_id child;
    uint32_t parent_left, child_left;
    bool brings_another;
} family;

static void child_leaves(nb_engine *engine, void *user) {
    (void)engine;
    ++((family *)user)->child_left;
}

static void parent_leaves(nb_engine *engine, void *user) {
    family *f = user;
    ++f->parent_left;
    nb_engine_module_detach(engine, f->child);
    nb_module_desc heir = {.name = "heir"};
    if (f->brings_another) nb_engine_module_attach(engine, &heir, NULL);
}

static nb_result detach_parent(const nb_context *context, void *user) {
    return nb_engine_module_detach(context->engine, *(nb_module_id *)user);
}

TEST(leaving_module_takes_others_along) {
    enum { BETWEEN_FRAMES, INSIDE_A_FRAME, AT_THE_END };
    for (int when = BETWEEN_FRAMES; when <= AT_THE_END; ++when) {
        rig r;
        family f = {.brings_another = when != AT_THE_END};
        rig_open(&r, 0);
        nb_module_id parent = attach(&r, (nb_module_desc){.name = "parent", .on_detach = parent_leaves, .user = &f});
        f.child = attach(&r, (nb_module_desc){.name = "child", .on_detach = child_leaves, .user = &f});
        if (when == BETWEEN_FRAMES) assert_int_equal(nb_engine_module_detach(r.engine, parent), NB_OK);
        if (when == INSIDE_A_FRAME) {
            nb_module_id last = attach(&r, (nb_module_desc){.name = "last", .frame = detach_parent, .user = &parent});
            assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
            assert_int_equal(nb_engine_module_detach(r.engine, last), NB_OK);
        }
        if (when != AT_THE_END) {
            assert_int_equal(f.parent_left, 1);
            assert_int_equal(f.child_left, 1);
            assert_int_equal(rig_stats(&r).module_count, 1); // the heir
            assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
        }
        rig_close(&r);
        assert_int_equal(f.parent_left, 1);
        assert_int_equal(f.child_left, 1);
    }
}
