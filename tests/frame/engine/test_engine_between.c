// SPDX-License-Identifier: MIT
// Between the frames of a run the host does what frames refuse: it saves, loads, rewinds, attaches and detaches.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

typedef struct house {
    rig r;
    uint64_t sum; // simulated: the indices of all ticks
    nb_module_id guest;
    uint32_t call_count, guest_count;
    uint64_t saved[8];
    size_t saved_bytes;
    uint64_t saved_sum;
    bool has_loaded, has_rewound;
    uint64_t last_tick; // the run is stopped there
    nb_result returns;
} house;

static nb_result count_tick(const nb_context *context, void *user) {
    ((house *)user)->sum += context->tick->index;
    return NB_OK;
}

static nb_result count_frame(const nb_context *context, void *user) {
    (void)context;
    ++((house *)user)->guest_count;
    return NB_OK;
}

static uint64_t sum_below(uint64_t tick_count) { return tick_count * (tick_count - 1) / 2; }
static uint64_t tick_count(const house *h) { return nb_loop_tick_count(nb_engine_loop(h->r.engine)); }

static nb_engine_desc house_desc(house *h, nb_result (*between)(nb_engine *engine, void *user)) {
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = true;
    desc.between = between;
    desc.between_user = h;
    return desc;
}

static void house_open(house *h, nb_engine_desc desc) {
    memset(h, 0, sizeof *h);
    rig_open_desc(&h->r, desc);
    nb_provider_desc state = {.name = "sum", .data = &h->sum, .size_bytes = sizeof h->sum};
    assert_int_equal(nb_states_add(nb_engine_states(h->r.engine), &state, NULL), NB_OK);
    attach(&h->r, (nb_module_desc){.name = "count", .tick = count_tick, .user = h});
}

// Saves at 5, loads that at 20, rewinds at 30 by ten ticks, and has a guest in between.
static nb_result live(nb_engine *engine, void *user) {
    house *h = user;
    nb_module_desc guest = {.name = "guest", .frame = count_frame, .user = h};
    ++h->call_count;
    assert_int_equal(nb_engine_phase(engine), NB_PHASE_NONE);
    assert_int_equal(h->sum, sum_below(tick_count(h)));
    if (tick_count(h) == 5 && h->saved_bytes == 0) {
        assert_int_equal(nb_states_save(nb_engine_states(engine), h->saved, sizeof h->saved, &h->saved_bytes), NB_OK);
        h->saved_sum = h->sum;
        assert_int_equal(nb_engine_module_attach(engine, &guest, &h->guest), NB_OK);
    }
    if (tick_count(h) == 20 && !h->has_loaded) {
        h->has_loaded = true;
        assert_int_equal(nb_engine_load(engine, 5, h->saved, h->saved_bytes, (nb_input_view){NULL, 0}), NB_OK);
        assert_int_equal(h->sum, h->saved_sum);
        assert_int_equal(nb_engine_module_detach(engine, h->guest), NB_OK);
    }
    if (tick_count(h) == 30 && !h->has_rewound) {
        h->has_rewound = true;
        assert_int_equal(nb_engine_rewind(engine, 20), NB_OK);
        assert_int_equal(h->sum, sum_below(20));
    }
    if (tick_count(h) == h->last_tick) return nb_engine_stop(engine);
    return NB_OK;
}

TEST(a_run_is_saved_loaded_and_rewound) {
    static house h;
    nb_clock_manual clock;
    nb_clock_manual_init(&clock, 0);
    nb_engine_desc desc = house_desc(&h, live);
    desc.loop.clock = nb_clock_manual_get(&clock);
    house_open(&h, desc);
    h.last_tick = 40;
    assert_int_equal(nb_engine_run(h.r.engine), NB_OK);
    assert_true(h.has_loaded && h.has_rewound);
    assert_int_equal(tick_count(&h), 40);
    assert_int_equal(h.sum, sum_below(40));
    assert_true(h.guest_count >= 15);
    assert_int_equal(nb_engine_stats_get(h.r.engine).module_count, 1);
    rig_close(&h.r);
}

TEST(ticks_that_are_run_have_frames_between_them_too) {
    static house h;
    house_open(&h, house_desc(&h, live));
    h.last_tick = UINT64_MAX;
    assert_int_equal(nb_engine_run_ticks(h.r.engine, 55), NB_OK);
    assert_int_equal(h.call_count, 55);
    assert_int_equal(tick_count(&h), 55 - 15 - 10);
    rig_close(&h.r);
}

static nb_result end_with(nb_engine *engine, void *user) {
    house *h = user;
    ++h->call_count;
    // Runs and the end of the engine wait until this has returned.
    assert_int_equal(nb_engine_run_ticks(engine, 1), NB_BUSY);
    assert_int_equal(nb_engine_frame(engine), NB_BUSY);
    assert_int_equal(nb_engine_destroy(engine), NB_BUSY);
    return h->call_count == 3 ? h->returns : NB_OK;
}

TEST(a_failure_between_frames_ends_the_run) {
    static const nb_result results[] = {NB_ERR_OS, NB_ERR_RANGE};
    for (size_t i = 0; i < 2; ++i) {
        static house h;
        house_open(&h, house_desc(&h, end_with));
        h.returns = results[i];
        assert_int_equal(nb_engine_run_ticks(h.r.engine, 10), results[i]);
        assert_int_equal(h.call_count, 3);
        assert_int_equal(tick_count(&h), 3);
        h.returns = NB_OK;
        assert_int_equal(nb_engine_run_ticks(h.r.engine, 10), NB_OK); // the engine goes on
        assert_int_equal(tick_count(&h), 13);
        rig_close(&h.r);
    }
}
