// SPDX-License-Identifier: MIT
// Hands on the demo's controls: what is pressed becomes commands of ticks, once, and the flight by itself is over.

#include "frame/engine/engine_fixture.h"

#include "demo/players/bot.h"
#include "demo/players/keyboard.h"
#include "demo/players/pilot.h"

#define TICK_NS UINT64_C(20000000)

typedef struct cabin {
    rig r;
    nb_clock_manual clock;
    planet p;
    pilot pilot;
    bots bots;
} cabin;

static void cabin_open(cabin *c) {
    nb_engine_desc desc = rig_desc(0);
    nb_clock_manual_init(&c->clock, TICK_NS);
    desc.is_headless = true;
    desc.loop = (nb_loop_desc){.tick_rate = {50, 1}, .clock = nb_clock_manual_get(&c->clock)};
    rig_open_desc(&c->r, desc);
    c->p = (planet){.seed = 1};
    assert_int_equal(planet_attach(&c->p, c->r.engine), NB_OK);
    assert_int_equal(pilot_attach(&c->pilot, c->r.engine, &c->p, 0), NB_OK);
    c->bots = (bots){.is_over = &c->pilot.is_flying};
    assert_int_equal(bots_attach(&c->bots, c->r.engine, 1), NB_OK);
    assert_int_equal(planet_populate(&c->p), NB_OK);
    assert_int_equal(nb_engine_frame(c->r.engine), NB_OK);
}

static void cabin_close(cabin *c) {
    rig_close(&c->r);
    planet_end(&c->p);
}

static void send(cabin *c, nb_input_kind kind, uint32_t code, float x, float y) {
    nb_input_event event = {0, (uint16_t)kind, 0, code, {{0}}}; // long ago: it is the next frame's
    event.payload.f32[0] = x;
    event.payload.f32[1] = y;
    assert_int_equal(nb_input_send(nb_engine_input(c->r.engine), &event), NB_OK);
}

static void frames(cabin *c, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        nb_clock_manual_advance(&c->clock, TICK_NS);
        assert_int_equal(nb_engine_frame(c->r.engine), NB_OK);
    }
}

static explorer me(const cabin *c) { return *NB_STORE_ROWS(c->p.world, c->p.explorers, 0, explorer); }

TEST(without_hands_the_flight_goes_on) {
    static cabin c;
    cabin_open(&c);
    frames(&c, FLIGHT_DESCENT + 10);
    assert_false(c.pilot.is_flying);
    assert_true(me(&c).climb != 0 || me(&c).pace != 0);
    cabin_close(&c);
}

TEST(keys_steer_while_they_are_held) {
    static cabin c;
    cabin_open(&c);
    frames(&c, 2);
    send(&c, NB_INPUT_PRESS, KEYBOARD_W, 0, 0);
    send(&c, NB_INPUT_PRESS, KEYBOARD_D, 0, 0);
    send(&c, NB_INPUT_PRESS, KEYBOARD_SPACE, 0, 0);
    frames(&c, 3);
    assert_true(c.pilot.is_flying);
    assert_int_equal(me(&c).pace, PLANET_PACE_MAX);
    assert_int_equal(me(&c).turn, PLANET_TURN_MAX);
    assert_int_equal(me(&c).climb, PLANET_PACE_MAX);
    uint64_t commands = rig_stats(&c.r).command_count;
    frames(&c, 10);
    assert_int_equal(rig_stats(&c.r).command_count, commands); // what is held is said once
    send(&c, NB_INPUT_RELEASE, KEYBOARD_W, 0, 0);
    send(&c, NB_INPUT_RELEASE, KEYBOARD_D, 0, 0);
    send(&c, NB_INPUT_RELEASE, KEYBOARD_SPACE, 0, 0);
    frames(&c, FLIGHT_DESCENT + 10); // and the flight does not come back
    assert_int_equal(me(&c).pace, 0);
    assert_int_equal(me(&c).turn, 0);
    assert_int_equal(me(&c).climb, 0);
    cabin_close(&c);
}

TEST(mouse_turns_only_with_a_button_and_only_as_far_as_it_moved) {
    static cabin c;
    cabin_open(&c);
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_POINTER, 5, 0);
    frames(&c, 2);
    assert_false(c.pilot.is_flying);
    send(&c, NB_INPUT_PRESS, KEYBOARD_MOUSE_RIGHT, 0, 0);
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_POINTER, 3, -2);
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_POINTER, 2, -2);
    frames(&c, 1);
    frames(&c, 1);
    assert_true(c.pilot.is_flying);
    frames(&c, 2);
    assert_int_equal(me(&c).turn, 0); // at rest again
    assert_int_equal(me(&c).look, 0);
    cabin_close(&c);
}

TEST(sticks_go_all_the_way_and_not_beyond) {
    static cabin c;
    cabin_open(&c);
    send(&c, NB_INPUT_PRESS, KEYBOARD_W, 0, 0);
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_PAD + 1, -1, 0); // ahead, too
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_PAD + 2, -0.5f, 0);
    send(&c, NB_INPUT_MOTION, KEYBOARD_MOTION_PAD + 6, 1, 0); // an axis that there is not
    frames(&c, 3);
    assert_int_equal(me(&c).pace, PLANET_PACE_MAX);
    assert_int_equal(me(&c).turn, -PLANET_TURN_MAX / 2);
    cabin_close(&c);
}

TEST(journeys_and_modes_come_once_a_press) {
    static cabin c;
    cabin_open(&c);
    frames(&c, 2);
    uint32_t journey = me(&c).journey;
    send(&c, NB_INPUT_PRESS, KEYBOARD_T, 0, 0);
    frames(&c, 5);
    assert_int_equal(me(&c).journey, journey + 1);
    send(&c, NB_INPUT_RELEASE, KEYBOARD_T, 0, 0);
    send(&c, NB_INPUT_PRESS, KEYBOARD_1 + 2, 0, 0);
    frames(&c, 5);
    assert_int_equal(me(&c).journey, journey + 2);
    assert_int_equal(c.pilot.home, 2);
    send(&c, NB_INPUT_PRESS, KEYBOARD_O, 0, 0);
    frames(&c, 3);
    assert_int_equal(me(&c).journey, journey + 3);
    assert_true(me(&c).altitude > FLIGHT_ORBIT / 2);
    uint32_t mode = me(&c).mode;
    send(&c, NB_INPUT_PRESS, KEYBOARD_F, 0, 0);
    frames(&c, 5);
    assert_int_not_equal(me(&c).mode, mode);
    cabin_close(&c);
}
