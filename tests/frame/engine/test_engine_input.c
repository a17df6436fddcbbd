// SPDX-License-Identifier: MIT
// What enters ticks from outside: events by their time, and commands that other phases stage.

#include "frame/engine/engine_fixture.h"

#define TICK_NS UINT64_C(16666667)

typedef struct player {
    uint64_t seen[64]; // by code: how many ticks got the event
    uint32_t order[64], count;
    uint64_t frame_events; // seen in Gameplay
    uint64_t mistakes;
    uint32_t commands_per_frame;
    uint32_t command; // number of the next one
    nb_result results[NB_PHASE_COUNT];
} player;

static nb_result play_tick(const nb_context *context, void *user) {
    player *p = user;
    for (uint32_t i = 0; i < context->input.count; ++i) {
        const nb_input_event *event = &context->input.events[i];
        if (event->code < 64) ++p->seen[event->code];
        if (event->timestamp_ns >= context->tick->input_until_ns) ++p->mistakes;
    }
    for (uint32_t i = 0; i < context->commands.count; ++i) {
        if (p->count < 64) p->order[p->count++] = context->commands.events[i].code;
    }
    return NB_OK;
}

static nb_result play_frame(const nb_context *context, void *user) {
    player *p = user;
    p->frame_events += context->input.count;
    if (context->commands.count != 0) ++p->mistakes; // for ticks alone
    for (uint32_t i = 0; i < p->commands_per_frame; ++i) {
        nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = p->command++};
        nb_result result = nb_context_command(context, &command);
        if (result != NB_OK) --p->command;
        p->results[context->phase] = result;
    }
    return NB_OK;
}

static rig r; // of the case that runs

TEST(every_event_reaches_one_tick) {
    rig_open(&r, 0);
    player p = {0};
    attach(&r, (nb_module_desc){.name = "player", .tick = play_tick, .frame = play_frame, .user = &p});
    nb_input *input = nb_engine_input(r.engine);
    assert_non_null(input);
    assert_ptr_equal(nb_engine_input(r.engine), input);
    // Frames with no tick, one and three; an event at the start of each frame and one in its middle.
    static const uint64_t deltas[] = {TICK_NS, TICK_NS / 3, TICK_NS / 3, 3 * TICK_NS, TICK_NS, TICK_NS};
    uint64_t now_ns = 0;
    uint32_t code = 0;
    for (size_t i = 0; i < sizeof deltas / sizeof deltas[0]; ++i) {
        nb_input_event early = {.timestamp_ns = now_ns, .kind = NB_INPUT_PRESS, .code = code++};
        nb_input_event late = {.timestamp_ns = now_ns + deltas[i] / 2, .kind = NB_INPUT_PRESS, .code = code++};
        assert_int_equal(nb_input_send(input, &early), NB_OK);
        assert_int_equal(nb_input_send(input, &late), NB_OK);
        assert_int_equal(nb_engine_frame_delta(r.engine, deltas[i]), NB_OK);
        now_ns += deltas[i];
    }
    run_ticks(&r, 3);
    for (uint32_t i = 0; i < code; ++i) assert_int_equal(p.seen[i], 1);
    assert_int_equal(p.frame_events, code);
    assert_int_equal(p.mistakes, 0);
    rig_close(&r);
}

TEST(commands_enter_the_next_tick_in_their_order) {
    rig_open(&r, 0);
    player p = {.commands_per_frame = 2};
    attach(&r, (nb_module_desc){.name = "player", .tick = play_tick, .frame = play_frame, .user = &p});
    run_ticks(&r, 1);
    assert_int_equal(p.count, 0); // staged after the tick
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(p.count, 0); // no tick, nothing lost
    assert_int_equal(nb_engine_frame_delta(r.engine, 3 * TICK_NS), NB_OK);
    assert_int_equal(p.count, 6); // by the first of its ticks
    run_ticks(&r, 1);
    assert_int_equal(p.count, 8);
    for (uint32_t i = 0; i < p.count; ++i) assert_int_equal(p.order[i], i);
    assert_int_equal(rig_stats(&r).command_count, 8);
    assert_int_equal(p.mistakes, 0);
    rig_close(&r);
}

TEST(commands_have_a_bound) {
    nb_engine_desc desc = rig_desc(0);
    desc.command_count_max = 5;
    rig_open_desc(&r, desc);
    player p = {.commands_per_frame = 3};
    attach(&r, (nb_module_desc){.name = "player", .tick = play_tick, .frame = play_frame, .user = &p});
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
    assert_int_equal(p.results[NB_PHASE_GAMEPLAY], NB_FULL);
    assert_int_equal(rig_stats(&r).command_full_count, 4);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_ENGINE_FULL), 1);
    run_ticks(&r, 1);
    assert_int_equal(p.count, 5);
    for (uint32_t i = 0; i < p.count; ++i) assert_int_equal(p.order[i], i);
    rig_close(&r);
}

// --- who may ---

typedef struct speaker {
    nb_result results[NB_PHASE_COUNT], from_other_thread;
    nb_context kept;
} speaker;

static nb_result speak(const nb_context *context, void *user) {
    speaker *s = user;
    nb_input_event command = {.kind = NB_INPUT_COMMAND};
    s->results[context->phase] = nb_context_command(context, &command);
    s->kept = *context;
    return NB_OK;
}

static void speak_elsewhere(void *user) {
    speaker *s = user;
    nb_input_event command = {.kind = NB_INPUT_COMMAND};
    s->from_other_thread = nb_context_command(&s->kept, &command);
}

static nb_result carry(const nb_context *context, void *user) {
    speaker *s = user;
    s->kept = *context;
    test_thread_run(speak_elsewhere, s);
    return speak(context, user);
}

TEST(handlers_outside_ticks_may_command) {
    rig_open(&r, 0);
    speaker s = {.from_other_thread = NB_OK};
    nb_module_desc desc = {.name = "speaker", .parallel = speak, .record = speak, .user = &s};
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) desc.handlers[i] = speak;
    }
    desc.handlers[NB_PHASE_GAMEPLAY] = carry;
    attach(&r, desc);
    run_ticks(&r, 1);
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        bool is_refused = i == NB_PHASE_FIXED_SIM || i == NB_PHASE_PARALLEL_TASKS || i == NB_PHASE_COMMAND_RECORD;
        assert_int_equal(s.results[i], is_refused ? NB_ERR_PERMISSION : NB_OK);
    }
    assert_int_equal(s.from_other_thread, NB_ERR_THREAD);
    nb_input_event command = {.kind = NB_INPUT_COMMAND};
    assert_int_equal(nb_context_command(&s.kept, &command), NB_ERR_STALE);
    assert_int_equal(rig_stats(&r).violation_count, 3 + 1 + 1);
    rig_close(&r);
}

// --- deadlines ---

typedef struct timed {
    nb_clock_manual *clock;
    nb_token *token;
    uint32_t seen[NB_PHASE_COUNT];
} timed;

static nb_result see(const nb_context *context, void *user) {
    timed *t = user;
    t->seen[context->phase] = nb_token_is_cancelled(t->token);
    nb_clock_manual_advance(t->clock, 10);
    return NB_OK;
}

// A deadline that passes inside a frame is seen by the next phase.
TEST(deadlines_fire_before_the_next_phase) {
    nb_clock_manual clock;
    rig_open_clock(&r, &clock, 1000);
    timed t = {.clock = &clock};
    nb_module_desc module = {.name = "timed", .frame = see, .user = &t};
    module.handlers[NB_PHASE_INPUT] = module.handlers[NB_PHASE_TRANSFORMS] = module.handlers[NB_PHASE_FRAME_END] = see;
    attach(&r, module);
    assert_int_equal(nb_token_child(nb_engine_token(r.engine), "timed", &t.token), NB_OK);
    // Input at 1000, Gameplay at 1010, Transforms at 1020.
    assert_int_equal(nb_token_set_deadline(t.token, 1015, 0), NB_OK);
    assert_int_equal(nb_engine_frame(r.engine), NB_OK);
    assert_int_equal(t.seen[NB_PHASE_INPUT], 0);
    assert_int_equal(t.seen[NB_PHASE_GAMEPLAY], 0);
    assert_int_equal(t.seen[NB_PHASE_TRANSFORMS], 1);
    assert_int_equal(t.seen[NB_PHASE_FRAME_END], 1);
    nb_token_release(t.token);
    rig_close(&r);
}
