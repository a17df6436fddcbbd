// SPDX-License-Identifier: MIT
// The engine used carelessly: callbacks that call back, handlers that fail for long, calls that are refused, threads
// that change. Nothing of it may outlive the call that was wrong.

#include "frame/engine/engine_fixture.h"
#include "support/async_job.h"

#include "nebula/rollback.h"

static const nb_column_desc number_columns[] = {
    {.name = "number", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE}};

static nb_table table_add(rig *r, const char *name, bool is_local) {
    nb_table table = {0};
    nb_table_desc desc = {.name = name, .columns = number_columns, .column_count = 1, .is_local = is_local};
    assert_int_equal(nb_store_table_add(nb_engine_world(r->engine), &desc, &table), NB_OK);
    return table;
}

// --- stages of handlers that fail ---

typedef struct stager {
    nb_table table;
    nb_result returns;
    uint32_t null_count;
} stager;

static nb_result stage_one(const nb_context *context, void *user) {
    stager *s = user;
    nb_store_stage *stage = nb_context_stage(context, 0);
    if (stage == NULL) ++s->null_count;
    if (stage != NULL) nb_store_stage_spawn(stage, s->table, NULL);
    return s->returns;
}

static void open_with_four_stages(rig *r) {
    nb_engine_desc desc = rig_desc(0);
    desc.stage_count_max = 4;
    rig_open_desc(r, desc);
}

static rig r; // of the case that runs

TEST(stages_of_failed_handlers_leave_their_memory) {
    open_with_four_stages(&r);
    stager s = {.table = table_add(&r, "things", false), .returns = NB_ERR_RANGE};
    stager dust = {.table = table_add(&r, "dust", true), .returns = NB_ERR_RANGE};
    attach(&r, (nb_module_desc){.name = "ticks", .tick = stage_one, .user = &s});
    attach(&r, (nb_module_desc){.name = "frames", .frame = stage_one, .user = &dust});
    run_ticks(&r, 20);
    s.returns = dust.returns = NB_OK;
    run_ticks(&r, 3);
    assert_int_equal(s.null_count, 0);
    assert_int_equal(dust.null_count, 0);
    assert_int_equal(rig_stats(&r).stage_full_count, 0);
    assert_int_equal(nb_store_row_count(nb_engine_world(r.engine), s.table), 3);
    rig_close(&r);
}

static nb_result stage_four(const nb_context *context, void *user) {
    stager *s = user;
    for (uint32_t job = 0; job < 4; ++job) {
        if (nb_context_stage(context, job) == NULL) ++s->null_count;
    }
    return s->returns;
}

TEST(stages_of_failed_handlers_leave_room_in_their_tick) {
    open_with_four_stages(&r);
    nb_engine_world(r.engine);
    stager bad = {.returns = NB_ERR_RANGE}, good = {.returns = NB_OK};
    attach(&r, (nb_module_desc){.name = "bad", .tick = stage_four, .user = &bad});
    attach(&r, (nb_module_desc){.name = "good", .tick = stage_four, .user = &good});
    run_ticks(&r, 3);
    assert_int_equal(bad.null_count, 0);
    assert_int_equal(good.null_count, 0);
    rig_close(&r);
}

// --- modules whose callbacks change modules ---

enum { LEAVE_DETACH, LEAVE_ATTACH, LEAVE_DESTROY, LEAVE_FRAME, LEAVE_NOTHING };

typedef struct leaver {
    nb_engine *engine;
    nb_module_id other;
    uint32_t attach_count, detach_count;
    nb_result result;
    uint32_t what; // LEAVE_*
} leaver;

static void on_leave(nb_engine *engine, void *user) {
    leaver *l = user;
    if (++l->detach_count > 3) return;
    nb_module_desc desc = {.name = "new"};
    if (l->what == LEAVE_DETACH) l->result = nb_engine_module_detach(engine, l->other);
    if (l->what == LEAVE_ATTACH) l->result = nb_engine_module_attach(engine, &desc, NULL);
    if (l->what == LEAVE_DESTROY) l->result = nb_engine_destroy(engine);
    if (l->what == LEAVE_FRAME) l->result = nb_engine_frame_delta(engine, 0);
}

TEST(detach_that_detaches_another_is_told_once) {
    rig_open(&r, 0);
    leaver second = {.what = LEAVE_NOTHING}, first = {.what = LEAVE_DETACH};
    nb_module_id one = attach(&r, (nb_module_desc){.name = "one", .on_detach = on_leave, .user = &first});
    first.other = attach(&r, (nb_module_desc){.name = "two", .on_detach = on_leave, .user = &second});
    assert_int_equal(nb_engine_module_detach(r.engine, one), NB_OK);
    assert_int_equal(first.detach_count, 1);
    assert_int_equal(second.detach_count, 1);
    assert_int_equal(first.result, NB_OK);
    assert_int_equal(rig_stats(&r).module_count, 0);
    rig_close(&r);
}

TEST(detach_that_attaches_another_is_told_once) {
    rig_open(&r, 0);
    leaver first = {.what = LEAVE_ATTACH};
    nb_module_id one = attach(&r, (nb_module_desc){.name = "one", .on_detach = on_leave, .user = &first});
    assert_int_equal(nb_engine_module_detach(r.engine, one), NB_OK);
    assert_int_equal(first.detach_count, 1);
    assert_int_equal(first.result, NB_OK);
    assert_int_equal(rig_stats(&r).module_count, 1);
    rig_close(&r);
}

TEST(detach_cannot_end_the_engine_or_run_it) {
    for (uint32_t what = LEAVE_DESTROY; what <= LEAVE_FRAME; ++what) {
        rig_open(&r, 0);
        leaver first = {.what = what}, second = {.what = what};
        nb_module_id one = attach(&r, (nb_module_desc){.name = "one", .on_detach = on_leave, .user = &first});
        attach(&r, (nb_module_desc){.name = "two", .on_detach = on_leave, .user = &second});
        assert_int_equal(nb_engine_module_detach(r.engine, one), NB_OK);
        assert_int_equal(first.detach_count, 1);
        assert_int_equal(first.result, NB_BUSY);
        run_ticks(&r, 1);
        rig_close(&r); // "two" tries it from inside
        assert_int_equal(second.detach_count, 1);
        assert_int_equal(second.result, NB_BUSY);
    }
}

// --- replacing ---

static nb_result always_fail(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_ERR_RANGE;
}

TEST(replaced_module_is_not_counted_as_disabled) {
    nb_engine_desc desc = rig_desc(0);
    desc.failure_count_max = 2;
    rig_open_desc(&r, desc);
    nb_module_id module = attach(&r, (nb_module_desc){.name = "one", .tick = always_fail});
    nb_engine_run_ticks(r.engine, 3);
    assert_int_equal(rig_stats(&r).disabled_count, 1);
    nb_module_desc better = {.name = "one"};
    assert_int_equal(nb_engine_module_replace(r.engine, module, &better), NB_OK);
    assert_int_equal(rig_stats(&r).disabled_count, 0);
    rig_close(&r);
}

// --- calls that are refused ---

static void run_elsewhere(void *user) {
    rig *own = user;
    nb_engine_run(own->engine);
    nb_engine_run_ticks(own->engine, 1);
}

TEST(refused_run_does_not_spend_the_stop) {
    rig_open(&r, 0);
    run_ticks(&r, 1);
    assert_int_equal(nb_engine_stop(r.engine), NB_OK);
    test_thread_run(run_elsewhere, &r);
    assert_true(nb_engine_is_stopping(r.engine));
    rig_close(&r);
}

// A world that comes between two frames of a run, with more columns than its snapshots take.
typedef struct latecomer {
    nb_module_id self;
} latecomer;

static nb_result leave_in_a_frame(const nb_context *context, void *user) {
    return nb_engine_module_detach(context->engine, ((latecomer *)user)->self);
}

static void make_too_many_columns(nb_engine *engine, void *user) {
    (void)user;
    nb_table table = {0};
    nb_table_desc many = {.name = "many", .columns = number_columns, .column_count = 1};
    nb_store_table_add(nb_engine_world(engine), &many, &table);
}

TEST(run_ends_where_no_frame_can_begin) {
    for (int is_paced = 0; is_paced < 2; ++is_paced) {
        nb_engine_desc desc = rig_desc(0);
        desc.snapshots.region_count_max = 1; // and a column has its entities beside it
        rig_open_desc(&r, desc);
        latecomer one = {{0}};
        nb_module_desc module = {
            .name = "one", .frame = leave_in_a_frame, .on_detach = make_too_many_columns, .user = &one};
        one.self = attach(&r, module);
        nb_result result = is_paced != 0 ? nb_engine_run(r.engine) : nb_engine_run_ticks(r.engine, 5);
        assert_int_equal(result, NB_ERR_RANGE);
        assert_int_equal(rig_stats(&r).frame_count, 1);
        // Nor does the next begin.
        assert_int_equal(nb_engine_run_ticks(r.engine, 5), NB_ERR_RANGE);
        assert_int_equal(nb_engine_run(r.engine), NB_ERR_RANGE);
        assert_int_equal(nb_engine_frame(r.engine), NB_ERR_RANGE);
        assert_int_equal(rig_stats(&r).frame_count, 1);
        rig_close(&r);
    }
}

TEST(table_after_the_first_frame_is_refused) {
    rig_open(&r, 0);
    nb_store *world = nb_engine_world(r.engine);
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    nb_table table = {0};
    nb_table_desc desc = {.name = "late", .columns = number_columns, .column_count = 1};
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_ERR_MISUSE);
    rig_close(&r);
}

// --- reports ---

static nb_async_status end_at_once(nb_async_call *call, void *state) {
    (void)call, (void)state;
    return NB_ASYNC_STATUS_DONE;
}

static void bad_publish(void *host, void *state) {
    ++**(uint32_t **)state;
    nb_context_check(host, NB_LAYER_SIMULATED);
}

TEST(violations_of_async_callbacks_are_told_once) {
    rig_open(&r, 0);
    uint32_t publishes = 0, *pointer = &publishes;
    nb_async_job_desc desc = {
        .step = end_at_once, .publish = bad_publish, .state = &pointer, .state_size_bytes = sizeof pointer};
    for (uint32_t i = 0; i < 5; ++i) assert_int_equal(nb_async_submit(nb_engine_async(r.engine), &desc, NULL), NB_OK);
    for (uint32_t i = 0; i < 100 && publishes < 5; ++i) run_ticks(&r, 1);
    assert_int_equal(publishes, 5);
    assert_int_equal(rig_stats(&r).violation_count, 5);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION), 1);
    rig_close(&r);
}

static nb_result check_no_layer(const nb_context *context, void *user) {
    (void)user;
    nb_context_check(context, 0);
    nb_context_check(context, 1u << 20);
    nb_context_check_capability(context, 1u << 20);
    return NB_OK;
}

TEST(layers_that_do_not_exist_are_told_once) {
    rig_open(&r, 0);
    attach(&r, (nb_module_desc){.name = "one", .tick = check_no_layer});
    run_ticks(&r, 5);
    assert_int_equal(rig_stats(&r).violation_count, 15);
    assert_in_range(test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION), 1, 3);
    rig_close(&r);
}

// --- a scheduler of somebody else's ---

static nb_scheduler *scheduler_of(uint32_t worker_count, uint32_t group_count) {
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc desc = rig_desc(worker_count).scheduler_desc;
    if (group_count != 0) desc.group_count_max = group_count;
    assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
    return scheduler;
}

static nb_result use_arena(const nb_context *context, void *user) {
    if (nb_arena_alloc(context->arena, 64, 16) == NULL) ++*(uint32_t *)user;
    return NB_OK;
}

typedef struct moved {
    rig r;
    stager s;
    uint32_t null_count;
    nb_result result, destroy_result;
} moved;

static void run_moved(void *user, uint32_t index) {
    moved *m = user;
    (void)index;
    m->result = nb_engine_run_ticks(m->r.engine, 3);
    m->destroy_result = nb_engine_destroy(m->r.engine);
}

TEST(engine_made_on_another_thread_has_its_arenas) {
    moved m;
    memset(&m, 0, sizeof m);
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler = scheduler_of(1, 0);
    rig_open_desc(&m.r, desc);
    m.s.table = table_add(&m.r, "things", false);
    attach(&m.r, (nb_module_desc){.name = "one", .frame = use_arena, .user = &m.null_count});
    attach(&m.r, (nb_module_desc){.name = "two", .tick = stage_one, .user = &m.s});
    test_threads_run(1, run_moved, &m);
    assert_int_equal(m.result, NB_OK);
    assert_int_equal(m.destroy_result, NB_OK);
    assert_int_equal(m.null_count, 0);
    assert_int_equal(m.s.null_count, 0);
    assert_int_equal(test_log_count(&m.r.log, NB_ITEM_ARENA_THREAD), 0);
    assert_int_equal(m.r.heap.live_count.value, 0);
    assert_int_equal(nb_scheduler_destroy(desc.scheduler), NB_OK);
}

static void count_run(nb_task_context *context, void *argument) {
    (void)context;
    nbi_atomic_fetch_add_seq_cst_u32(*(nb_atomic_u32 **)argument, 1);
}

TEST(borrowed_scheduler_without_workers_runs_floating_tasks) {
    nb_engine_desc desc = rig_desc(2);
    desc.scheduler = scheduler_of(0, 0);
    rig_open_desc(&r, desc);
    nb_atomic_u32 count = {0}, *pointer = &count;
    nb_task_desc task = {.run = count_run,
                         .argument = &pointer,
                         .argument_size_bytes = sizeof pointer,
                         .lifetime = NB_LIFETIME_FLOATING};
    assert_int_equal(nb_task_submit(desc.scheduler, &task, NULL), NB_OK);
    run_ticks(&r, 3);
    assert_int_equal(count.value, 1);
    rig_close(&r);
    assert_int_equal(nb_scheduler_destroy(desc.scheduler), NB_OK);
}

static nb_result slow_record(const nb_context *context, void *user) {
    (void)user;
    uint32_t *out = nb_output_add(context, sizeof *out);
    if (out == NULL) return NB_ERR_MEMORY;
    for (uint32_t i = 0; i < 20; ++i) nbi_thread_yield();
    *out = context->job_index + 1;
    return NB_OK;
}

static nb_result sum_records(const nb_context *context, void *user, const nb_output_list *outputs) {
    const uint32_t *value = nb_output_list_next(outputs, NULL, NULL);
    if (value != NULL && *value == context->job_index + 1) ++*(uint32_t *)user;
    return NB_OK;
}

TEST(recording_without_a_group_runs_all_jobs) {
    nb_engine_desc desc = rig_desc(2);
    desc.scheduler = scheduler_of(2, 8);
    nb_group groups[64];
    uint32_t group_count = 0, sum = 0;
    while (group_count < 64 && nb_group_begin(desc.scheduler, &groups[group_count]) == NB_OK) ++group_count;
    assert_in_range(group_count, 1, 63);
    rig_open_desc(&r, desc);
    attach(&r, (nb_module_desc){
                   .name = "one", .record = slow_record, .submit = sum_records, .record_count = 4, .user = &sum});
    run_ticks(&r, 3);
    assert_int_equal(sum, 12);
    rig_close(&r);
    for (uint32_t i = 0; i < group_count; ++i) nb_group_end(desc.scheduler, groups[i], NB_NEVER_NS);
    assert_int_equal(nb_scheduler_destroy(desc.scheduler), NB_OK);
}

// --- what a tick has must not depend on how many share its frame ---

static nb_result use_much(const nb_context *context, void *user) {
    if (nb_arena_alloc(context->arena, 3u << 20, 16) == NULL) ++*(uint32_t *)user;
    return NB_OK;
}

TEST(ticks_of_a_long_frame_have_as_much_memory) {
    nb_engine_desc desc = rig_desc(0);
    desc.loop.tick_count_max = 16;
    rig_open_desc(&r, desc);
    uint32_t null_count = 0;
    attach(&r, (nb_module_desc){.name = "one", .tick = use_much, .user = &null_count});
    assert_int_equal(nb_engine_frame_delta(r.engine, 8 * UINT64_C(16666667)), NB_OK);
    assert_int_equal(rig_stats(&r).tick_count, 8);
    assert_int_equal(null_count, 0);
    rig_close(&r);
}

// --- a context that is kept ---

typedef struct keeper {
    nb_context kept;
    uint32_t block_count, stale_count;
} keeper;

static nb_result keep_context(const nb_context *context, void *user) {
    ((keeper *)user)->kept = *context;
    return nb_output_add(context, 8) != NULL ? NB_OK : NB_ERR_MEMORY;
}

static nb_result use_kept(const nb_context *context, void *user, const nb_output_list *outputs) {
    keeper *k = user;
    (void)context;
    if (nb_output_add(&k->kept, 8) == NULL) ++k->stale_count;
    for (const void *block = nb_output_list_next(outputs, NULL, NULL); block != NULL;
         block = nb_output_list_next(outputs, block, NULL)) {
        ++k->block_count;
    }
    return NB_OK;
}

TEST(kept_context_adds_no_outputs) {
    rig_open(&r, 0);
    keeper k;
    memset(&k, 0, sizeof k);
    attach(&r, (nb_module_desc){.name = "one", .parallel = keep_context, .merge = use_kept, .user = &k});
    run_ticks(&r, 3);
    assert_int_equal(k.block_count, 3);
    assert_int_equal(k.stale_count, 3);
    assert_int_equal(rig_stats(&r).violation_count, 3);
    assert_int_equal(rig_stats(&r).failure_count, 0);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_VIOLATION), 1);
    rig_close(&r);
}

TEST(handle_that_never_was_is_stale) {
    rig_open(&r, 0);
    attach(&r, (nb_module_desc){.name = "one"});
    nb_module_id two = attach(&r, (nb_module_desc){.name = "two"});
    assert_int_equal(nb_engine_module_detach(r.engine, two), NB_OK);
    nb_module_id forged = {1}; // of the place that is free now
    assert_int_equal(nb_engine_module_detach(r.engine, forged), NB_ERR_STALE);
    assert_string_equal(nb_engine_module_name(r.engine, forged), "");
    rig_close(&r);
}

// --- discards between frames ---

typedef struct detacher {
    nb_module_id module;
    nb_result detach_result, destroy_result;
    uint32_t detach_count;
} detacher;

static void discard_and_detach(void *host, void *state, nb_result reason) {
    const nb_context *context = host;
    detacher *d = *(detacher **)state;
    (void)reason;
    d->detach_result = nb_engine_module_detach(context->engine, d->module);
    d->destroy_result = nb_engine_destroy(context->engine);
}

static void count_detach(nb_engine *engine, void *user) {
    (void)engine;
    ++((detacher *)user)->detach_count;
}

TEST(discard_at_the_end_detaches_a_module_that_ends) {
    rig_open(&r, 0);
    detacher d = {.detach_count = 0}, *pointer = &d;
    nb_module_desc module = {.name = "one", .on_detach = count_detach, .user = &d};
    d.module = attach(&r, module);
    nb_async_job_desc job = {.step = async_pause_for_ever,
                             .discard = discard_and_detach,
                             .state = &pointer,
                             .state_size_bytes = sizeof pointer};
    assert_int_equal(nb_async_submit(nb_engine_async(r.engine), &job, NULL), NB_OK);
    run_ticks(&r, 3);
    rig_close(&r);
    assert_int_equal(d.detach_result, NB_OK);
    assert_int_equal(d.destroy_result, NB_BUSY);
    assert_int_equal(d.detach_count, 1);
}

// --- providers that call back ---

// A state with callbacks that try everything which changes the engine under them.
typedef struct meddler {
    rig r;
    uint64_t value;
    unsigned char save[256];
    size_t save_bytes;
    nb_provider handle;
    bool is_inside, is_armed;
    bool is_registry; // nb_states_* asks, not the history
    uint32_t busy_count, other_count;
} meddler;

static void meddle(meddler *m) {
    if (!m->is_armed || m->is_inside) return;
    m->is_inside = true;
    nb_engine *engine = m->r.engine;
    nb_input_view none = {NULL, 0};
    nb_result results[] = {nb_engine_frame_delta(engine, 1), nb_engine_run_ticks(engine, 1),
                           nb_engine_rewind(engine, 0), nb_engine_set_tick(engine, 7),
                           nb_engine_load(engine, 7, m->save, m->save_bytes, none)};
    uint32_t other_count = 0;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; ++i) other_count += results[i] != NB_BUSY;
    // The list of providers is being walked.
    if (m->is_registry) {
        nb_provider_desc more = {.name = "more", .data = &m->value, .size_bytes = sizeof m->value};
        other_count += nb_states_add(nb_engine_states(engine), &more, NULL) != NB_BUSY;
        other_count += nb_states_remove(nb_engine_states(engine), m->handle) != NB_BUSY;
    }
    if (other_count == 0) other_count += nb_engine_destroy(engine) != NB_BUSY;
    m->other_count += other_count;
    ++m->busy_count;
    m->is_inside = false;
}

static size_t meddle_save(void *user, void *bytes, size_t capacity_bytes) {
    meddler *m = user;
    if (bytes != NULL && capacity_bytes >= sizeof m->value) memcpy(bytes, &m->value, sizeof m->value);
    meddle(m);
    return sizeof m->value;
}

static nb_result meddle_load(void *user, const void *bytes, size_t size_bytes) {
    meddler *m = user;
    if (size_bytes != sizeof m->value) return NB_ERR_RANGE;
    memcpy(&m->value, bytes, size_bytes);
    meddle(m);
    return NB_OK;
}

static uint64_t meddle_layout(void *user) {
    meddle(user);
    return 5;
}

static nb_result count_tick(const nb_context *context, void *user) {
    ((meddler *)user)->value += context->tick->index + 1;
    return NB_OK;
}

static void assert_meddled(meddler *m) {
    assert_int_not_equal(m->busy_count, 0);
    assert_int_equal(m->other_count, 0);
    m->busy_count = 0;
}

TEST(provider_cannot_end_the_engine_or_run_it) {
    meddler m;
    memset(&m, 0, sizeof m);
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = desc.hashes_ticks = true;
    rig_open_desc(&m.r, desc);
    nb_engine *engine = m.r.engine;
    nb_states *states = nb_engine_states(engine);
    nb_provider_desc provider = {
        .name = "meddler", .save = meddle_save, .load = meddle_load, .layout = meddle_layout, .user = &m};
    assert_int_equal(nb_states_add(states, &provider, &m.handle), NB_OK);
    attach(&m.r, (nb_module_desc){.name = "ticks", .tick = count_tick, .user = &m});
    assert_int_equal(nb_states_save(states, m.save, sizeof m.save, &m.save_bytes), NB_OK);
    m.is_armed = m.is_registry = true;
    // What a save file asks of it, with no call of the engine around it.
    nb_states_layout_hash(states);
    assert_meddled(&m);
    assert_int_equal(nb_states_save(states, m.save, sizeof m.save, &m.save_bytes), NB_OK);
    assert_meddled(&m);
    assert_int_not_equal(nb_states_hash(states), 0);
    assert_meddled(&m);
    m.is_registry = false;
    assert_int_equal(nb_engine_frame_delta(engine, 0), NB_OK); // its history begins
    assert_meddled(&m);
    run_ticks(&m.r, 3);
    assert_meddled(&m);
    assert_int_equal(nb_engine_rewind(engine, 1), NB_OK);
    assert_meddled(&m);
    assert_int_equal(nb_engine_load(engine, 7, m.save, m.save_bytes, (nb_input_view){NULL, 0}), NB_OK);
    assert_meddled(&m);
    assert_int_equal(m.value, 0);
    assert_int_equal(nb_engine_set_tick(engine, 20), NB_OK);
    assert_meddled(&m);
    run_ticks(&m.r, 1);
    assert_int_equal(m.value, 21);
    m.is_armed = false;
    rig_close(&m.r);
}
