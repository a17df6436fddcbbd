// SPDX-License-Identifier: MIT
// Engines that are paused while their player goes on typing: the frame sees all of it, the game nothing, and no button
// is left in a state that it has not.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

#define FRAME_NS UINT64_C(20000000) // a tick
#define KEYS 8u
#define VIEWS_MAX 4096u

// A host with a keyboard, and a game that keeps what its ticks got.
typedef struct game {
    rig r;
    nb_input *input;
    uint64_t now_ns;                   // the host's clock
    nb_buttons buttons;                // simulated
    uint64_t presses, releases, moves; // events that ticks got
    uint64_t order_mistakes;
    uint64_t frame_events; // events that frames saw
    uint64_t ticks;
    nb_buttons real; // as the host sent it
    bool pauses_in_tick, has_wrong_stamps;
    uint64_t sent;
} game;

static nb_result play(const nb_context *context, void *user) {
    game *g = user;
    const nb_input_view *view = &context->input;
    for (uint32_t i = 0; i < view->count; ++i) {
        const nb_input_event *event = &view->events[i];
        g->presses += event->kind == NB_INPUT_PRESS;
        g->releases += event->kind == NB_INPUT_RELEASE;
        g->moves += event->kind == NB_INPUT_MOTION;
        bool is_late = event->timestamp_ns >= context->tick->input_until_ns;
        bool is_before = i != 0 && event->timestamp_ns < view->events[i - 1].timestamp_ns;
        if (!g->has_wrong_stamps && (is_late || is_before)) ++g->order_mistakes;
    }
    ++g->ticks;
    if (g->pauses_in_tick) nb_loop_pause(nb_engine_loop(context->engine));
    return nb_buttons_apply(&g->buttons, view);
}

static nb_result look(const nb_context *context, void *user) {
    game *g = user;
    g->frame_events += context->input.count;
    return NB_OK;
}

static size_t save_buttons(void *user, void *bytes, size_t capacity_bytes) {
    if (bytes != NULL && capacity_bytes >= sizeof(nb_buttons)) memcpy(bytes, user, sizeof(nb_buttons));
    return sizeof(nb_buttons);
}

static nb_result load_buttons(void *user, const void *bytes, size_t size_bytes) {
    if (size_bytes != sizeof(nb_buttons)) return NB_ERR_MISUSE;
    memcpy(user, bytes, size_bytes);
    return NB_OK;
}

static void game_open_desc(game *g, nb_engine_desc desc) {
    memset(g, 0, sizeof *g);
    desc.loop.tick_rate = (nb_rate){50, 1};
    desc.hashes_ticks = true;
    rig_open_desc(&g->r, desc);
    nb_provider_desc state = {.name = "buttons", .save = save_buttons, .load = load_buttons, .user = &g->buttons};
    assert_int_equal(nb_states_add(nb_engine_states(g->r.engine), &state, NULL), NB_OK);
    attach(&g->r, (nb_module_desc){.name = "game", .tick = play, .frame = look, .user = g});
    g->input = nb_engine_input(g->r.engine);
    assert_non_null(g->input);
}

static void game_open(game *g) { game_open_desc(g, rig_desc(0)); }

static nb_loop *loop_of(game *g) { return nb_engine_loop(g->r.engine); }

static nb_input_stats stats_of(const game *g) {
    nb_input_stats s = nb_input_stats_get(g->input);
    assert_int_equal(s.sent_count, s.delivered_count + s.discarded_count + s.folded_count + s.waiting_count);
    return s;
}

static void send(game *g, uint16_t kind, uint32_t code) {
    nb_input_event event = {.timestamp_ns = g->now_ns, .kind = kind, .code = code};
    assert_int_equal(nb_input_send(g->input, &event), NB_OK);
    nb_input_view view = {&event, 1};
    nb_buttons_apply(&g->real, &view);
    ++g->sent;
}

static void frame(game *g) {
    g->now_ns += FRAME_NS;
    assert_int_equal(nb_engine_frame_delta(g->r.engine, FRAME_NS), NB_OK);
    assert_int_equal(g->order_mistakes, 0);
}

static void frames(game *g, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) frame(g);
}

static void assert_agrees(const game *g) { assert_memory_equal(g->buttons.down, g->real.down, sizeof g->real.down); }

// --- pauses ---

TEST(long_pause_loses_no_event_and_fills_no_queue) {
    game g;
    game_open(&g);
    send(&g, NB_INPUT_PRESS, 'w');
    send(&g, NB_INPUT_PRESS, 'd');
    frames(&g, 3);
    assert_true(nb_buttons_is_down(&g.buttons, 'w'));
    uint64_t ticks = g.ticks, before_pause = g.sent;
    nb_loop_pause(loop_of(&g));
    uint64_t heap_calls = g.r.heap.call_count.value;
    send(&g, NB_INPUT_RELEASE, 'w');
    send(&g, NB_INPUT_PRESS, 'a'); // held on
    for (uint64_t i = 0; i < test_size(6000, 20000, 180000); ++i) {
        for (uint32_t k = 0; k < 8; ++k) send(&g, NB_INPUT_MOTION, k);
        send(&g, NB_INPUT_PRESS, 1);
        send(&g, NB_INPUT_RELEASE, 1);
        uint64_t seen = g.frame_events;
        frame(&g);
        assert_in_range(g.frame_events - seen, 10, 12); // each frame has its own
    }
    assert_int_equal(g.frame_events, g.sent);
    assert_int_equal(g.ticks, ticks);
    nb_input_stats s = stats_of(&g);
    assert_int_equal(s.full_count, 0);
    assert_int_equal(s.frame_missed_count, 0);
    assert_int_equal(s.folded_count, g.sent - before_pause);
    assert_int_equal(g.r.heap.call_count.value, heap_calls);
    nb_loop_resume(loop_of(&g));
    frames(&g, 3);
    assert_agrees(&g);
    assert_false(nb_buttons_is_down(&g.buttons, 'w'));
    assert_true(nb_buttons_is_down(&g.buttons, 'd') && nb_buttons_is_down(&g.buttons, 'a'));
    // Beside the two before: one release, one press, no click and no motion.
    assert_int_equal(g.presses, 2 + 1);
    assert_int_equal(g.releases, 1);
    assert_int_equal(g.moves, 0);
    assert_int_equal(stats_of(&g).net_count, 2);
    rig_close(&g.r);
}

// The host takes events in, finds a click on its menu, resumes, and runs a frame.
TEST(click_on_resume_is_no_shot) {
    game g;
    game_open(&g);
    frames(&g, 2);
    nb_loop_pause(loop_of(&g));
    frames(&g, 5);
    send(&g, NB_INPUT_PRESS, 1);
    send(&g, NB_INPUT_RELEASE, 1);
    nb_loop_resume(loop_of(&g));
    frames(&g, 3);
    assert_int_equal(g.presses + g.releases, 0);
    assert_int_equal(g.frame_events, 2);
    send(&g, NB_INPUT_PRESS, 1); // this one is meant
    send(&g, NB_INPUT_RELEASE, 1);
    frames(&g, 2);
    assert_int_equal(g.presses, 1);
    assert_int_equal(g.releases, 1);
    rig_close(&g.r);
}

// What happened before the pause is the game's, though no tick has come for it; what comes after it follows the rest.
TEST(events_around_a_pause_keep_their_order) {
    for (uint32_t way = 0; way < 8; ++way) {
        game g;
        game_open(&g);
        frames(&g, 2);
        uint16_t first = way & 1 ? NB_INPUT_RELEASE : NB_INPUT_PRESS;
        uint16_t second = way & 2 ? NB_INPUT_RELEASE : NB_INPUT_PRESS;
        uint16_t third = way & 4 ? NB_INPUT_RELEASE : NB_INPUT_PRESS;
        send(&g, NB_INPUT_PRESS, 2);
        g.now_ns += FRAME_NS / 4;
        assert_int_equal(nb_engine_frame_delta(g.r.engine, FRAME_NS / 4), NB_OK); // no tick
        send(&g, first, 2);
        assert_int_equal(nb_engine_frame_delta(g.r.engine, FRAME_NS / 4), NB_OK);
        g.now_ns += FRAME_NS / 4;
        nb_loop_pause(loop_of(&g));
        send(&g, NB_INPUT_MOTION, 2);
        frame(&g);
        send(&g, second, 2);
        frames(&g, 2);
        nb_loop_resume(loop_of(&g));
        assert_int_equal(nb_engine_frame_delta(g.r.engine, 0), NB_OK);
        send(&g, third, 2); // no tick has run since the pause
        frames(&g, 3);
        assert_agrees(&g);
        assert_int_equal(g.moves, 0);
        rig_close(&g.r);
    }
}

// Ticks that are stepped in a pause see the buttons as they are, and no click.
TEST(stepped_ticks_see_the_buttons_as_they_are) {
    game g;
    game_open(&g);
    send(&g, NB_INPUT_PRESS, 'w');
    frames(&g, 2);
    nb_loop_pause(loop_of(&g));
    send(&g, NB_INPUT_RELEASE, 'w');
    send(&g, NB_INPUT_PRESS, 1);
    send(&g, NB_INPUT_RELEASE, 1);
    frames(&g, 10);
    uint64_t ticks = g.ticks;
    assert_int_equal(nb_loop_step(loop_of(&g), 1), NB_OK);
    frame(&g);
    assert_int_equal(g.ticks, ticks + 1);
    assert_int_equal(g.presses, 1);
    assert_agrees(&g);
    send(&g, NB_INPUT_PRESS, 'w');
    assert_int_equal(nb_loop_run_to_tick(loop_of(&g), nb_loop_tick_count(loop_of(&g)) + 5), NB_OK);
    frames(&g, 3);
    assert_int_equal(g.ticks, ticks + 6);
    assert_agrees(&g);
    send(&g, NB_INPUT_RELEASE, 'w');
    assert_int_equal(nb_engine_run_ticks(g.r.engine, 3), NB_OK); // in the pause, and it stays one
    assert_true(loop_of(&g)->is_paused);
    frames(&g, 2);
    assert_int_equal(g.ticks, ticks + 9);
    nb_loop_resume(loop_of(&g));
    frames(&g, 2);
    assert_agrees(&g);
    rig_close(&g.r);
}

// nb_engine_run_ticks pauses the loop for itself: input waits for its tick, as ever.
TEST(ticks_without_time_are_no_pause) {
    game g;
    game_open(&g);
    frames(&g, 2);
    send(&g, NB_INPUT_PRESS, 1);
    send(&g, NB_INPUT_RELEASE, 1);
    g.now_ns += FRAME_NS / 2;
    assert_int_equal(nb_engine_frame_delta(g.r.engine, FRAME_NS / 2), NB_OK); // it is before now, and no tick came
    send(&g, NB_INPUT_MOTION, 1);
    assert_int_equal(nb_engine_run_ticks(g.r.engine, 2), NB_OK);
    assert_int_equal(g.presses, 1);
    assert_int_equal(g.releases, 1);
    frames(&g, 3);
    assert_int_equal(g.moves, 1);
    assert_int_equal(stats_of(&g).folded_count, 0);
    rig_close(&g.r);
}

// --- held loops, slow motion ---

// A match that waits for the other player: what the player does waits too, but the frames do not go blind over it.
TEST(held_ticks_get_their_events_later) {
    game g;
    nb_engine_desc desc = rig_desc(0);
    desc.input.event_count_max = 64;
    game_open_desc(&g, desc);
    frames(&g, 2);
    nb_loop_hold(loop_of(&g), true);
    for (uint32_t i = 0; i < 4; ++i) {
        send(&g, NB_INPUT_PRESS, i);
        send(&g, NB_INPUT_RELEASE, i);
        frame(&g);
    }
    nb_loop_pause(loop_of(&g)); // the player pauses and resumes meanwhile: the hold stays
    frame(&g);
    nb_loop_resume(loop_of(&g));
    uint64_t ticks = g.ticks;
    assert_int_equal(nb_loop_step(loop_of(&g), 1), NB_OK);
    frame(&g);
    nb_loop_resume(loop_of(&g));
    assert_int_equal(g.ticks, ticks);
    nb_loop_hold(loop_of(&g), false);
    frames(&g, 2);
    assert_int_equal(g.presses, 4);
    assert_int_equal(g.releases, 4);
    assert_int_equal(stats_of(&g).folded_count, 0);
    // For very long: the queue is full, and what comes on top is for the frames.
    nb_loop_hold(loop_of(&g), true);
    send(&g, NB_INPUT_PRESS, 3);
    for (uint32_t i = 0; i < 1000; ++i) {
        send(&g, NB_INPUT_MOTION, i);
        uint64_t seen = g.frame_events;
        frame(&g);
        assert_true(g.frame_events > seen);
    }
    send(&g, NB_INPUT_RELEASE, 3);
    send(&g, NB_INPUT_PRESS, 4);
    frame(&g);
    nb_loop_hold(loop_of(&g), false);
    frames(&g, 3);
    assert_agrees(&g);
    assert_int_equal(g.moves, 63);
    assert_int_equal(stats_of(&g).full_count, 0);
    assert_int_equal(stats_of(&g).waiting_count, 0);
    rig_close(&g.r);
}

TEST(slowest_motion_shows_frames_their_events) {
    game g;
    game_open(&g);
    frames(&g, 2);
    assert_int_equal(nb_loop_set_scale(loop_of(&g), 1, NB_LOOP_SCALE_MAX), NB_OK); // a tick in twenty seconds
    for (uint32_t i = 0; i < 3000; ++i) {
        for (uint32_t k = 0; k < 9; ++k) send(&g, NB_INPUT_MOTION, k);
        send(&g, i % 2 == 0 ? NB_INPUT_PRESS : NB_INPUT_RELEASE, 5);
        uint64_t seen = g.frame_events;
        frame(&g);
        assert_true(g.frame_events - seen >= 9);
    }
    send(&g, NB_INPUT_PRESS, 6);
    assert_int_equal(nb_loop_set_scale(loop_of(&g), 1, 1), NB_OK);
    frames(&g, 4);
    assert_agrees(&g);
    assert_int_equal(stats_of(&g).full_count, 0);
    assert_int_equal(g.frame_events, g.sent);
    rig_close(&g.r);
}

static nb_result send_late(const nb_context *context, void *user) {
    game *g = user;
    (void)context;
    send(g, NB_INPUT_MOTION, 0);
    return NB_OK;
}

// The queue is full of events with times to come: what changed in the pause does not wait behind them.
TEST(full_queue_loses_no_button) {
    game g;
    nb_engine_desc desc = rig_desc(0);
    desc.input.event_count_max = 4;
    game_open_desc(&g, desc);
    g.has_wrong_stamps = true;
    frames(&g, 2);
    g.now_ns += 1000 * FRAME_NS;
    for (uint32_t i = 0; i < 4; ++i) send(&g, NB_INPUT_MOTION, i);
    frame(&g);
    nb_loop_pause(loop_of(&g));
    g.now_ns -= 1000 * FRAME_NS;
    send(&g, NB_INPUT_PRESS, 'w');
    send(&g, NB_INPUT_PRESS, 'd');
    frame(&g);
    nb_module_desc module = {.name = "sender", .user = &g};
    module.handlers[NB_PHASE_RANDOM_SEED] = send_late;
    attach(&g.r, module);
    nb_loop_resume(loop_of(&g));
    frame(&g);
    assert_agrees(&g);
    frames(&g, 2);
    assert_true(g.moves >= 4);
    rig_close(&g.r);
}

// --- any use ---

// More buttons than are known by name: counted, and those that are known stay right.
TEST(hands_of_hundreds_are_counted) {
    game g;
    game_open(&g);
    for (uint32_t i = 0; i < 300; ++i) send(&g, NB_INPUT_PRESS, i);
    frames(&g, 2);
    assert_int_equal(stats_of(&g).lost_button_count, 300 - 256);
    nb_loop_pause(loop_of(&g));
    for (uint32_t i = 0; i < 300; ++i) send(&g, NB_INPUT_RELEASE, i);
    frames(&g, 2);
    nb_loop_resume(loop_of(&g));
    frames(&g, 2);
    for (uint32_t i = 0; i < 256; ++i) assert_false(nb_buttons_is_down(&g.buttons, i));
    assert_int_equal(stats_of(&g).lost_button_count, 2 * (300 - 256));
    rig_close(&g.r);
}

typedef struct tape {
    nb_input_event events[VIEWS_MAX];
    uint32_t ends[VIEWS_MAX]; // of each tick's events
    uint64_t hashes[VIEWS_MAX];
    uint64_t count, mistakes;
} tape;

static void tape_write(void *user, const nb_tick_view *view) {
    tape *t = user;
    uint64_t tick = view->tick->index;
    uint32_t at = tick == 0 ? 0 : t->ends[tick - 1];
    if (tick >= VIEWS_MAX || at + view->input.count > VIEWS_MAX) return;
    if (view->input.count != 0) memcpy(&t->events[at], view->input.events, view->input.count * sizeof t->events[0]);
    t->ends[tick] = at + view->input.count;
    t->hashes[tick] = view->hash;
    t->count = tick + 1;
}

static void tape_feed(void *user, nb_tick_view *view) {
    tape *t = user;
    uint64_t tick = view->tick->index;
    uint32_t at = tick == 0 ? 0 : t->ends[tick - 1];
    view->input = (nb_input_view){&t->events[at], t->ends[tick] - at};
}

static void tape_compare(void *user, const nb_tick_view *view) {
    tape *t = user;
    if (t->hashes[view->tick->index] != view->hash) ++t->mistakes;
}

static void do_something(game *g, uint64_t *seed) {
    nb_loop *loop = loop_of(g);
    switch (test_random(seed) % 12) {
    case 0: nb_loop_pause(loop); break;
    case 1: nb_loop_resume(loop); break;
    case 2: nb_loop_step(loop, test_random(seed) % 3); break;
    case 3: nb_loop_run_to_tick(loop, nb_loop_tick_count(loop) + test_random(seed) % 4); break;
    case 4: nb_loop_hold(loop, test_random(seed) % 3 == 0); break;
    case 5: nb_loop_set_scale(loop, 1 + (uint32_t)(test_random(seed) % 3), 2); break;
    case 6: assert_int_equal(nb_engine_run_ticks(g->r.engine, test_random(seed) % 3), NB_OK); break;
    case 7: g->pauses_in_tick = test_random(seed) % 4 == 0; break;
    default: break;
    }
    for (uint64_t i = test_random(seed) % 6; i > 0; --i) {
        uint32_t code = (uint32_t)(test_random(seed) % KEYS);
        bool is_down = nb_buttons_is_down(&g->real, code);
        send(g, is_down ? NB_INPUT_RELEASE : NB_INPUT_PRESS, code);
        g->now_ns += 1000;
    }
    uint64_t now_ns = g->now_ns, delta_ns = test_random(seed) % (2 * FRAME_NS);
    g->now_ns += 1000 * FRAME_NS;
    for (uint32_t i = 0; g->has_wrong_stamps && i < 4; ++i) send(g, NB_INPUT_MOTION, i); // they fill the queue
    g->now_ns = now_ns;
    g->now_ns = nb_loop_frame_get(loop).now_ns + delta_ns;
    assert_int_equal(nb_engine_frame_delta(g->r.engine, delta_ns), NB_OK);
}

// The player lets go of a key in the menu, loads a game in which it is up, and holds it again before going on.
TEST(key_held_after_a_load_in_a_pause_is_down) {
    for (uint32_t is_rewind = 0; is_rewind < 2; ++is_rewind) {
        game g;
        unsigned char save[4096];
        size_t save_bytes = 0;
        nb_engine_desc desc = rig_desc(0);
        desc.keeps_history = true;
        game_open_desc(&g, desc);
        nb_engine *engine = g.r.engine;
        frames(&g, 3);
        uint64_t tick = g.ticks;
        assert_int_equal(nb_states_save(nb_engine_states(engine), save, sizeof save, &save_bytes), NB_OK);
        send(&g, NB_INPUT_PRESS, 'w');
        frames(&g, 3);
        assert_agrees(&g);
        nb_loop_pause(loop_of(&g));
        frames(&g, 2);
        send(&g, NB_INPUT_RELEASE, 'w');
        frames(&g, 2);
        nb_input_view none = {NULL, 0};
        nb_result result =
            is_rewind ? nb_engine_rewind(engine, tick) : nb_engine_load(engine, tick, save, save_bytes, none);
        assert_int_equal(result, NB_OK);
        assert_false(nb_buttons_is_down(&g.buttons, 'w'));
        send(&g, NB_INPUT_PRESS, 'w');
        frames(&g, 2);
        nb_loop_resume(loop_of(&g));
        frames(&g, 3);
        assert_agrees(&g);
        // From here on what ticks know of it is known again: a click in a pause is none of their business.
        nb_loop_pause(loop_of(&g));
        frames(&g, 2);
        send(&g, NB_INPUT_RELEASE, 'w');
        send(&g, NB_INPUT_PRESS, 'w');
        uint64_t presses = g.presses;
        frames(&g, 2);
        nb_loop_resume(loop_of(&g));
        frames(&g, 3);
        assert_int_equal(g.presses, presses);
        assert_agrees(&g);
        rig_close(&g.r);
    }
}

// Whatever a host does: in the end the game's buttons are the real ones, and a replay of its ticks is the same game.
TEST(buttons_are_right_after_any_pauses_and_replay_the_same) {
    static tape t;
    uint64_t seed = test_seed(__func__);
    for (uint64_t run = 0; run < test_size(40, 200, 4000); ++run) {
        game g;
        memset(&t, 0, sizeof t);
        nb_engine_desc desc = rig_desc(0);
        if (run % 2 == 0) desc.input.event_count_max = run % 4 == 0 ? 32 : 16;
        game_open_desc(&g, desc);
        nb_tick_watch to_tape = {.end = tape_write, .user = &t};
        assert_int_equal(nb_engine_watch_add(g.r.engine, &to_tape), NB_OK);
        g.has_wrong_stamps = run % 4 == 0;
        for (uint32_t i = 0; i < 60; ++i) do_something(&g, &seed);
        g.pauses_in_tick = false;
        nb_loop_hold(loop_of(&g), false);
        nb_loop_resume(loop_of(&g));
        nb_loop_set_scale(loop_of(&g), 1, 1);
        frames(&g, 6);
        assert_agrees(&g);
        if (!g.has_wrong_stamps) assert_int_equal(stats_of(&g).waiting_count, 0);
        assert_int_equal(g.ticks, t.count);
        uint64_t hash = rig_stats(&g.r).run_hash;
        rig_close(&g.r);
        game_open(&g);
        nb_tick_watch from_tape = {.begin = tape_feed, .end = tape_compare, .user = &t};
        assert_int_equal(nb_engine_watch_add(g.r.engine, &from_tape), NB_OK);
        if (t.count != 0) run_ticks(&g.r, t.count);
        assert_int_equal(t.mistakes, 0);
        assert_true(rig_stats(&g.r).run_hash == hash);
        rig_close(&g.r);
    }
}
