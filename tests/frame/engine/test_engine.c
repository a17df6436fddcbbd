// SPDX-License-Identifier: MIT
// The engine: phases in their order, modules that come and go, failures that stay where they are.

#include "frame/engine/engine_fixture.h"

// --- the frame ---

static void fill_handlers(nb_module_desc *desc) {
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) desc->handlers[i] = write_journal;
    }
}

static rig r; // of the case that runs

TEST(phases_run_in_the_order_of_the_table) {
    for (uint32_t is_headless = 0; is_headless < 2; ++is_headless) {
        nb_engine_desc desc = rig_desc(0);
        desc.is_headless = is_headless != 0;
        rig_open_desc(&r, desc);
        journal j = {0};
        writer w = {.journal = &j, .name = 'a'};
        nb_module_desc all = {.name = "all", .user = &w};
        fill_handlers(&all);
        attach(&r, all);
        run_ticks(&r, 1);
        uint32_t at = 0;
        for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
            const nb_phase_info *info = nb_phase_info_get((nb_phase)i);
            bool is_left_out = is_headless && info->is_rendering;
            if (info->category == NB_CATEGORY_PARALLEL || is_left_out) continue;
            assert_true(at < j.count);
            assert_int_equal(j.entries[at++].phase, i);
        }
        assert_int_equal(at, j.count);
        assert_int_equal(nb_engine_phase(r.engine), NB_PHASE_NONE);
        rig_close(&r);
    }
}

typedef struct clockwork {
    uint64_t ticks, frames, ticks_in_frame_max, last_tick;
    bool is_gapless, saw_no_tick;
} clockwork;

static nb_result count_tick(const nb_context *context, void *user) {
    clockwork *c = user;
    if (context->tick->index != c->ticks) c->is_gapless = false;
    ++c->ticks;
    return NB_OK;
}

static nb_result count_frame(const nb_context *context, void *user) {
    clockwork *c = user;
    if (context->tick != NULL || context->frame_index != c->frames) c->saw_no_tick = false;
    if (context->time->tick_count > c->ticks_in_frame_max) c->ticks_in_frame_max = context->time->tick_count;
    ++c->frames;
    return NB_OK;
}

TEST(ticks_follow_time_and_frames_follow_the_host) {
    rig_open(&r, 0);
    clockwork c = {.is_gapless = true, .saw_no_tick = true};
    attach(&r, (nb_module_desc){.name = "clock", .tick = count_tick, .frame = count_frame, .user = &c});
    // Ten frames a second for a second: six ticks each.
    for (int i = 0; i <= 10; ++i) assert_int_equal(nb_engine_frame_delta(r.engine, 100000000), NB_OK);
    assert_int_equal(c.frames, 11);
    assert_int_equal(c.ticks, 66);
    assert_int_equal(c.ticks_in_frame_max, 6);
    // A thousand frames a second: most have none.
    for (int i = 0; i < 1000; ++i) assert_int_equal(nb_engine_frame_delta(r.engine, 1000000), NB_OK);
    assert_int_equal(c.ticks, 126);
    assert_true(c.is_gapless && c.saw_no_tick);
    run_ticks(&r, 10);
    assert_int_equal(c.ticks, 136);
    assert_int_equal(c.frames, 1021);
    assert_int_equal(rig_stats(&r).frame_count, 1021);
    assert_int_equal(rig_stats(&r).tick_count, 136);
    rig_close(&r);
}

static nb_result stop_at_third(const nb_context *context, void *user) {
    ++*(uint64_t *)user;
    return context->tick->index == 2 ? nb_engine_stop(context->engine) : NB_OK;
}

TEST(stop_ends_the_run_after_the_frame) {
    nb_engine_desc desc = rig_desc(1);
    desc.loop.tick_rate = (nb_rate){1000, 1};
    rig_open_desc(&r, desc);
    uint64_t ticks = 0;
    attach(&r, (nb_module_desc){.name = "stop", .tick = stop_at_third, .user = &ticks});
    assert_int_equal(nb_engine_run(r.engine), NB_OK);
    assert_true(ticks >= 3);
    assert_false(nb_engine_is_stopping(r.engine));
    uint64_t before = ticks;
    run_ticks(&r, 5); // a stop is spent
    assert_int_equal(ticks, before + 5);
    assert_int_equal(nb_engine_stop(r.engine), NB_OK);
    assert_true(nb_engine_is_stopping(r.engine));
    run_ticks(&r, 5);
    assert_int_equal(ticks, before + 5);
    rig_close(&r);
}

static nb_result quit_at_third(const nb_context *context, void *user) {
    ++*(uint64_t *)user;
    return context->tick->index == 2 ? nb_loop_quit(nb_engine_loop(context->engine)) : NB_OK;
}

static nb_result stop_in_the_end(const nb_context *context, void *user) {
    (void)user;
    return context->frame_index == 1000 ? nb_engine_stop(context->engine) : NB_OK;
}

// Else frames would go on for ever, without ticks.
TEST(quit_of_the_loop_ends_the_run_too) {
    nb_clock_manual clock;
    rig_open_clock(&r, &clock, 0);
    uint64_t ticks = 0;
    attach(&r, (nb_module_desc){.name = "quit", .tick = quit_at_third, .frame = stop_in_the_end, .user = &ticks});
    assert_int_equal(nb_engine_run(r.engine), NB_OK);
    assert_int_equal(ticks, 3);
    assert_in_range(rig_stats(&r).frame_count, 3, 10);
    assert_false(nb_engine_is_stopping(r.engine));
    run_ticks(&r, 5); // a quit is spent
    assert_int_equal(ticks, 8);
    assert_int_equal(nb_loop_quit(nb_engine_loop(r.engine)), NB_OK);
    assert_true(nb_engine_is_stopping(r.engine));
    run_ticks(&r, 5);
    assert_int_equal(ticks, 8);
    rig_close(&r);
}

static nb_result frame_inside(const nb_context *context, void *user) {
    nb_result *results = user;
    results[0] = nb_engine_frame(context->engine);
    results[1] = nb_engine_run(context->engine);
    results[2] = nb_engine_destroy(context->engine);
    return NB_OK;
}

TEST(frame_inside_a_frame_is_refused) {
    rig_open(&r, 0);
    nb_result results[3] = {NB_OK, NB_OK, NB_OK};
    attach(&r, (nb_module_desc){.name = "inside", .frame = frame_inside, .user = results});
    run_ticks(&r, 1);
    for (int i = 0; i < 3; ++i) assert_int_equal(results[i], NB_BUSY);
    rig_close(&r);
}

static void call_from_elsewhere(void *user, uint32_t index) {
    rig *own = user;
    (void)index;
    nb_module_desc desc = {.name = "late"};
    bool is_good = nb_engine_frame(own->engine) == NB_ERR_THREAD && nb_engine_run(own->engine) == NB_ERR_THREAD &&
                   nb_engine_module_attach(own->engine, &desc, NULL) == NB_ERR_THREAD &&
                   nb_engine_destroy(own->engine) == NB_ERR_THREAD && nb_engine_stop(own->engine) == NB_OK;
    if (!is_good) abort();
}

TEST(other_threads_are_refused) {
    rig_open(&r, 0);
    run_ticks(&r, 1);
    test_threads_run(1, call_from_elsewhere, &r);
    assert_true(nb_engine_is_stopping(r.engine));
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_THREAD), 4);
    rig_close(&r);
}

// --- order ---

TEST(order_follows_names_then_priority_then_attaching) {
    rig_open(&r, 0);
    journal j = {0};
    writer w[5] = {{&j, 'a', 0}, {&j, 'b', 0}, {&j, 'c', 0}, {&j, 'd', 0}, {&j, 'e', 0}};
    static const char *const after_a[] = {"a"}, *const before_b[] = {"b", "nobody"};
    attach(&r, (nb_module_desc){.name = "d", .frame = write_journal, .user = &w[3], .priority = -1});
    attach(&r,
           (nb_module_desc){
               .name = "c", .frame = write_journal, .user = &w[2], .after = after_a, .after_count = 1, .priority = 9});
    nb_module_id e = attach(
        &r,
        (nb_module_desc){.name = "e", .frame = write_journal, .user = &w[4], .before = before_b, .before_count = 2});
    attach(&r, (nb_module_desc){.name = "b", .frame = write_journal, .user = &w[1], .priority = 5});
    attach(&r, (nb_module_desc){.name = "a", .frame = write_journal, .user = &w[0]});
    run_ticks(&r, 1);
    assert_ran(&j, NB_PHASE_GAMEPLAY, "ebacd");
    nb_module_id order[8];
    assert_int_equal(nb_engine_order_get(r.engine, NB_PHASE_GAMEPLAY, order, 8), 5);
    assert_string_equal(nb_engine_module_name(r.engine, order[0]), "e");
    assert_string_equal(nb_engine_module_name(r.engine, order[4]), "d");
    assert_int_equal(nb_engine_order_get(r.engine, NB_PHASE_FIXED_SIM, NULL, 0), 0);
    assert_int_equal(nb_engine_module_detach(r.engine, e), NB_OK);
    assert_string_equal(nb_engine_module_name(r.engine, e), "");
    j.count = 0;
    run_ticks(&r, 1);
    assert_ran(&j, NB_PHASE_GAMEPLAY, "bacd");
    rig_close(&r);
}

TEST(cycle_is_refused_and_named) {
    rig_open(&r, 0);
    static const char *const after_c[] = {"c"}, *const after_a[] = {"a"}, *const after_b[] = {"b"};
    attach(&r, (nb_module_desc){.name = "z", .after = after_a, .after_count = 1});
    attach(&r, (nb_module_desc){.name = "a", .after = after_c, .after_count = 1});
    attach(&r, (nb_module_desc){.name = "b", .after = after_a, .after_count = 1});
    nb_module_desc c = {.name = "c", .after = after_b, .after_count = 1};
    assert_int_equal(nb_engine_module_attach(r.engine, &c, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_ORDER), 1);
    assert_non_null(strstr(r.log.last_message, "a after c after b after a"));
    assert_int_equal(rig_stats(&r).module_count, 3);
    run_ticks(&r, 1);
    c.after_count = 0;
    attach(&r, c);
    nb_module_desc self = {.name = "self", .after = (const char *const[]){"self"}, .after_count = 1};
    assert_int_equal(nb_engine_module_attach(r.engine, &self, NULL), NB_ERR_MISUSE);
    rig_close(&r);
}

// --- coming and going ---

typedef struct visitor {
    journal *journal;
    nb_module_desc guest;
    nb_module_id module;
    uint32_t attach_count, detach_count;
    nb_result on_attach;
} visitor;

static nb_result note_attach(nb_engine *engine, void *user) {
    (void)engine;
    visitor *v = user;
    ++v->attach_count;
    return v->on_attach;
}

static void note_detach(nb_engine *engine, void *user) {
    (void)engine;
    ++((visitor *)user)->detach_count;
}

static nb_result invite(const nb_context *context, void *user) {
    visitor *v = user;
    if (context->frame_index == 0) return nb_engine_module_attach(context->engine, &v->guest, &v->module);
    if (context->frame_index == 2) return nb_engine_module_detach(context->engine, v->module);
    return NB_OK;
}

TEST(modules_come_and_go_between_frames) {
    rig_open(&r, 0);
    journal j = {0};
    writer w = {&j, 'g', 0};
    visitor v = {.guest = {.name = "guest", .user = &w}};
    v.guest.handlers[NB_PHASE_FRAME_END] = write_journal;
    attach(&r, (nb_module_desc){
                   .name = "host", .frame = invite, .on_attach = note_attach, .on_detach = note_detach, .user = &v});
    for (uint32_t frame = 0; frame < 4; ++frame) {
        run_ticks(&r, 1);
        // Not in the frame that invited it, and to the end of the one that sent it away.
        assert_int_equal(j.count, frame < 1 ? 0 : frame < 3 ? frame : 2);
    }
    assert_int_equal(v.attach_count, 1);
    assert_int_equal(v.detach_count, 0);
    rig_close(&r);
    assert_int_equal(v.detach_count, 1);
}

TEST(refused_module_leaves_nothing) {
    rig_open(&r, 0);
    visitor v = {.on_attach = NB_ERR_OS};
    nb_module_desc desc = {.name = "v", .on_attach = note_attach, .on_detach = note_detach, .user = &v};
    assert_int_equal(nb_engine_module_attach(r.engine, &desc, NULL), NB_ERR_OS);
    assert_int_equal(v.detach_count, 0);
    assert_int_equal(rig_stats(&r).module_count, 0);
    v.on_attach = NB_OK;
    nb_module_id module = attach(&r, desc);
    nb_module_desc again = {.name = "v"};
    assert_int_equal(nb_engine_module_attach(r.engine, &again, NULL), NB_ERR_MISUSE); // the name is taken
    assert_int_equal(nb_engine_module_detach(r.engine, module), NB_OK);
    assert_int_equal(v.detach_count, 1);
    assert_int_equal(nb_engine_module_detach(r.engine, module), NB_ERR_STALE);
    nb_module_id other = attach(&r, again);
    assert_true(other.value != module.value);
    assert_string_equal(nb_engine_module_name(r.engine, module), "");
    rig_close(&r);
}

TEST(replaced_module_keeps_its_handle_and_place) {
    rig_open(&r, 0);
    journal j = {0};
    writer w[3] = {{&j, 'a', 0}, {&j, 'b', 0}, {&j, 'B', 0}};
    attach(&r, (nb_module_desc){.name = "a", .frame = write_journal, .user = &w[0]});
    nb_module_id b = attach(&r, (nb_module_desc){.name = "b", .frame = write_journal, .user = &w[1], .priority = 1});
    nb_module_desc next = {.name = "b", .frame = write_journal, .user = &w[2], .priority = 1};
    assert_int_equal(nb_engine_module_replace(r.engine, b, &next), NB_OK);
    run_ticks(&r, 1);
    assert_ran(&j, NB_PHASE_GAMEPLAY, "Ba");
    next.name = "c";
    assert_int_equal(nb_engine_module_replace(r.engine, b, &next), NB_ERR_MISUSE);
    assert_string_equal(nb_engine_module_name(r.engine, b), "b");
    rig_close(&r);
}

TEST(too_many_modules_are_refused) {
    nb_engine_desc desc = rig_desc(0);
    desc.module_count_max = 2;
    rig_open_desc(&r, desc);
    attach(&r, (nb_module_desc){.name = "a"});
    nb_module_id b = attach(&r, (nb_module_desc){.name = "b"});
    nb_module_desc c = {.name = "c"};
    assert_int_equal(nb_engine_module_attach(r.engine, &c, NULL), NB_FULL);
    assert_int_equal(nb_engine_module_detach(r.engine, b), NB_OK);
    attach(&r, c);
    run_ticks(&r, 3);
    rig_close(&r);
}

// --- failures ---

TEST(failing_handler_ends_its_module_for_the_frame) {
    rig_open(&r, 0);
    journal j = {0};
    writer bad = {&j, 'x', NB_ERR_RANGE}, good = {&j, 'g', NB_OK};
    nb_module_desc desc = {.name = "bad", .frame = write_journal, .user = &bad, .priority = 1};
    desc.handlers[NB_PHASE_TRANSFORMS] = write_journal;
    attach(&r, desc);
    desc.name = "good", desc.user = &good, desc.priority = 0;
    attach(&r, desc);
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_ERR_RANGE);
    assert_ran(&j, NB_PHASE_GAMEPLAY, "xg");
    assert_ran(&j, NB_PHASE_TRANSFORMS, "g");
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_FAILURE), 1);
    assert_non_null(strstr(r.log.last_message, "module bad failed in Gameplay of frame 0: NB_ERR_RANGE"));
    // The next frame is sound, and one that goes on failing is not told of again.
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_ERR_RANGE);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_FAILURE), 1);
    bad.returns = NB_OK;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    bad.returns = NB_ERR_OS;
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_ERR_OS);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_FAILURE), 2);
    assert_int_equal(rig_stats(&r).failure_count, 3);
    rig_close(&r);
}

// Fails in one phase of one frame.
typedef struct failer {
    nb_phase phase;
    uint64_t frame;
    nb_atomic_u64 seen[2]; // bits: phases it was called in, in that frame and in the next
} failer;

static nb_result fail_there(const nb_context *context, void *user) {
    failer *f = user;
    if (context->frame_index < f->frame || context->frame_index > f->frame + 1) return NB_OK;
    nbi_atomic_fetch_or_seq_cst_u64(&f->seen[context->frame_index - f->frame], (uint64_t)1 << context->phase);
    bool is_there = context->phase == f->phase && context->frame_index == f->frame;
    return is_there ? NB_ERR_MEMORY : NB_OK;
}

static nb_module_desc in_every_phase(const char *name, failer *f) {
    nb_module_desc desc = {.name = name, .parallel = fail_there, .record = fail_there, .user = f};
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) desc.handlers[i] = fail_there;
    }
    return desc;
}

// Phases up to and including one, without the row of none.
static uint64_t phases_to(nb_phase last) { return (((uint64_t)1 << (last + 1)) - 1) & ~(uint64_t)1; }

TEST(failure_in_any_phase_ends_the_frame_by_rule) {
    for (uint32_t phase = 1; phase < NB_PHASE_DETACHED_SERVICES; ++phase) {
        for (uint32_t workers = 0; workers < 2; ++workers) {
            rig_open(&r, workers);
            failer bad = {.phase = (nb_phase)phase, .frame = 2}, good = {.phase = NB_PHASE_NONE, .frame = 2};
            attach(&r, in_every_phase("bad", &bad));
            attach(&r, in_every_phase("good", &good));
            run_ticks(&r, 5);
            // The one goes as far as its failure, the other through the frame, and both through the next.
            // Ticks are not the frame's: they run whatever else has failed.
            assert_true(bad.seen[0].value == (phases_to((nb_phase)phase) | (uint64_t)1 << NB_PHASE_FIXED_SIM));
            assert_true(good.seen[0].value == phases_to(NB_PHASE_FRAME_END));
            assert_true(bad.seen[1].value == phases_to(NB_PHASE_FRAME_END));
            assert_true(good.seen[1].value == phases_to(NB_PHASE_FRAME_END));
            assert_int_equal(rig_stats(&r).frame_count, 5);
            assert_int_equal(rig_stats(&r).failure_count, 1);
            assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_FAILURE), 1);
            assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_BARRIER), 0);
            char expected[96];
            snprintf(expected, sizeof expected, "module bad failed in %s of frame 2: NB_ERR_MEMORY",
                     nb_phase_info_get((nb_phase)phase)->name);
            assert_non_null(strstr(r.log.last_message, expected));
            rig_close(&r);
        }
    }
}

TEST(module_that_fails_too_often_is_disabled_where_asked) {
    nb_engine_desc desc = rig_desc(0);
    desc.failure_count_max = 3;
    rig_open_desc(&r, desc);
    journal j = {0};
    writer bad = {&j, 'x', NB_ERR_RANGE};
    nb_module_id module = attach(&r, (nb_module_desc){.name = "bad", .frame = write_journal, .user = &bad});
    for (int i = 0; i < 6; ++i) {
        // A frame in between in which all is well: the count begins anew.
        bad.returns = i == 2 ? NB_OK : NB_ERR_RANGE;
        nb_engine_frame_delta(r.engine, 0);
    }
    for (int i = 0; i < 5; ++i) assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(j.count, 6);
    assert_int_equal(rig_stats(&r).disabled_count, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_DISABLED), 1);
    assert_int_equal(nb_engine_module_detach(r.engine, module), NB_OK);
    assert_int_equal(rig_stats(&r).disabled_count, 0);
    rig_close(&r);
}

// --- sharing ---

TEST(engines_share_a_scheduler) {
    enum { ROOMS = 200 };
    static rig rooms[ROOMS];
    static uint64_t ticks[ROOMS];
    nb_scheduler *scheduler = NULL;
    nb_scheduler_desc shared = {.worker_count = 2, .task_count_max = 1024, .group_count_max = 512};
    assert_int_equal(nb_scheduler_create(&shared, &scheduler), NB_OK);
    memset(ticks, 0, sizeof ticks);
    for (uint32_t i = 0; i < ROOMS; ++i) {
        rig_open_desc(&rooms[i], (nb_engine_desc){.scheduler = scheduler, .is_headless = true, .module_count_max = 4});
        attach(&rooms[i], (nb_module_desc){.name = "room", .tick = stop_at_third, .user = &ticks[i]});
    }
    for (uint32_t round = 0; round < 5; ++round) {
        for (uint32_t i = 0; i < ROOMS; ++i) assert_int_equal(nb_engine_run_ticks(rooms[i].engine, i % 3 + 1), NB_OK);
    }
    for (uint32_t i = 0; i < ROOMS; ++i) {
        assert_true(ticks[i] >= 5);
        rig_close(&rooms[i]);
    }
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
}

// --- memory ---

TEST(frames_use_no_heap) {
    rig_open(&r, 1);
    clockwork c = {.is_gapless = true};
    attach(&r, (nb_module_desc){.name = "clock", .tick = count_tick, .frame = count_frame, .user = &c});
    run_ticks(&r, 10);
    uint64_t before = nbi_atomic_load_seq_cst_u64(&r.heap.call_count);
    run_ticks(&r, test_size(200, 2000, 20000));
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&r.heap.call_count), before);
    rig_close(&r);
}

static nb_result create_and_attach(test_log *log, test_heap *heap) {
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = test_hooks(log, heap);
    nb_engine *engine = NULL;
    nb_result result = nb_engine_create(&desc, &engine);
    if (result != NB_OK) return result;
    nb_module_desc module = {
        .name = "m", .parallel = write_journal, .job_count = 2, .after = (const char *const[]){"n"}, .after_count = 1};
    result = nb_engine_module_attach(engine, &module, NULL);
    if (nb_engine_destroy(engine) != NB_OK) return NB_BUSY;
    return result;
}

TEST(every_allocation_may_fail) {
    test_log log = {0};
    test_heap heap = {0};
    assert_int_equal(create_and_attach(&log, &heap), NB_OK);
    uint64_t calls = heap.call_count.value;
    assert_true(calls > 5);
    for (uint64_t i = 1; i <= calls; ++i) {
        heap = (test_heap){.fail_at = i};
        assert_int_equal(create_and_attach(&log, &heap), NB_ERR_MEMORY);
        assert_int_equal(heap.live_count.value, 0);
    }
}
