// SPDX-License-Identifier: MIT
// Watches of an engine's ticks: they see what each tick got and gave, and may put other input in its place.

#include "frame/engine/engine_fixture.h"

// A 60th of a second, rounded up: each frame has a tick.
#define TICK_NS UINT64_C(16666667)

// Frames with time: events reach a tick by it.
static void run_frames(rig *r, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(nb_engine_frame_delta(r->engine, TICK_NS), NB_OK);
}

typedef struct witness {
    rig *rig;
    uint64_t *order; // all witnesses write their number here, begin and end
    uint64_t number;
    uint64_t begin_count, end_count, tick, hash;
    uint32_t input_count, command_count;
    nb_input_event replacement;
    bool replaces;
    nb_result add_result, remove_result;
} witness;

static void see_begin(void *user, nb_tick_view *view) {
    witness *w = user;
    ++w->begin_count;
    *w->order = *w->order * 10 + w->number;
    assert_int_equal(view->hash, 0);
    if (w->replaces) {
        view->input = (nb_input_view){&w->replacement, 1};
        view->commands = (nb_input_view){&w->replacement, 1};
    }
}

static void see_end(void *user, const nb_tick_view *view) {
    witness *w = user;
    ++w->end_count;
    w->tick = view->tick->index;
    w->hash = view->hash;
    w->input_count += view->input.count;
    w->command_count += view->commands.count;
    nb_tick_watch other = {.user = &w->order};
    w->add_result = nb_engine_watch_add(w->rig->engine, &other);
    w->remove_result = nb_engine_watch_remove(w->rig->engine, w);
}

typedef struct player {
    uint64_t seen, state;
} player;

static nb_result play(const nb_context *context, void *user) {
    player *p = user;
    for (uint32_t i = 0; i < context->input.count; ++i) p->seen += context->input.events[i].code;
    for (uint32_t i = 0; i < context->commands.count; ++i) p->seen += 1000 * context->commands.events[i].code;
    ++p->state;
    return NB_OK;
}

static void open_watched(rig *r, player *p) {
    rig_open_hashed(r, 0);
    *p = (player){0};
    nb_provider_desc state = {.name = "player", .data = &p->state, .size_bytes = 8};
    assert_int_equal(nb_states_add(nb_engine_states(r->engine), &state, NULL), NB_OK);
    attach(r, (nb_module_desc){.name = "player", .tick = play, .user = p});
}

static void add_witness(rig *r, witness *w) {
    nb_tick_watch watch = {.begin = see_begin, .end = see_end, .user = w};
    w->rig = r;
    assert_int_equal(nb_engine_watch_add(r->engine, &watch), NB_OK);
}

TEST(a_watch_sees_each_tick_and_its_hash) {
    rig r;
    player p;
    uint64_t order = 0;
    witness w = {.order = &order, .number = 1};
    open_watched(&r, &p);
    run_frames(&r, 2);
    add_witness(&r, &w);
    nb_input_event event = {.kind = NB_INPUT_PRESS, .code = 3};
    assert_int_equal(nb_input_send(nb_engine_input(r.engine), &event), NB_OK);
    run_frames(&r, 3);
    assert_int_equal(w.begin_count, 3);
    assert_int_equal(w.end_count, 3);
    assert_int_equal(w.tick, 4);
    assert_int_equal(w.input_count, 1);
    assert_int_equal(w.hash, rig_stats(&r).tick_hash);
    assert_int_equal(w.hash, nb_states_hash(nb_engine_states(r.engine)));
    // Not from inside a frame.
    assert_int_equal(w.add_result, NB_BUSY);
    assert_int_equal(w.remove_result, NB_BUSY);
    assert_int_equal(nb_engine_watch_remove(r.engine, &w), NB_OK);
    run_frames(&r, 2);
    assert_int_equal(w.end_count, 3);
    rig_close(&r);
}

TEST(a_watch_puts_other_input_in_place) {
    rig r;
    player p;
    uint64_t order = 0;
    witness w = {.order = &order, .number = 1, .replaces = true, .replacement = {.code = 7}};
    witness after = {.order = &order, .number = 2};
    open_watched(&r, &p);
    add_witness(&r, &w);
    add_witness(&r, &after);
    nb_input_event event = {.kind = NB_INPUT_PRESS, .code = 3};
    for (int i = 0; i < 5; ++i) assert_int_equal(nb_input_send(nb_engine_input(r.engine), &event), NB_OK);
    run_frames(&r, 2);
    assert_int_equal(p.seen, 2 * 7007);
    assert_int_equal(after.input_count, 2); // the others see what the tick got
    assert_int_equal(after.command_count, 2);
    assert_int_equal(order, 1212);
    // The first one leaves: the second stays, and the engine's own input is back.
    assert_int_equal(nb_engine_watch_remove(r.engine, &w), NB_OK);
    assert_int_equal(nb_input_send(nb_engine_input(r.engine), &event), NB_OK);
    run_frames(&r, 1);
    assert_int_equal(p.seen, 2 * 7007 + 3);
    assert_int_equal(order, 12122);
    rig_close(&r);
}

TEST(watches_have_a_limit) {
    rig r;
    player p;
    open_watched(&r, &p);
    int users[NB_TICK_WATCH_COUNT_MAX + 1];
    for (uint32_t i = 0; i <= NB_TICK_WATCH_COUNT_MAX; ++i) {
        nb_tick_watch watch = {.user = &users[i]};
        assert_int_equal(nb_engine_watch_add(r.engine, &watch), i < NB_TICK_WATCH_COUNT_MAX ? NB_OK : NB_FULL);
    }
    run_ticks(&r, 2); // none has a function
    rig_close(&r);
}
