// SPDX-License-Identifier: MIT
// Hands on the controls.

#include "pilot.h"

#include <string.h>

#include "flight.h"
#include "keyboard.h"

// A turn for each pixel that the mouse moves: a hand's width is half a turn.
#define MOUSE_TURN 12.0f

static int32_t cut(float value, int32_t limit) {
    if (value > (float)limit) return limit;
    return value < (float)-limit ? -limit : (int32_t)value;
}

static float side(const nb_buttons *b, uint32_t more, uint32_t less) {
    return (nb_buttons_is_down(b, more) ? 1.0f : 0.0f) - (nb_buttons_is_down(b, less) ? 1.0f : 0.0f);
}

static bool is_looking(const nb_buttons *b) {
    return nb_buttons_is_down(b, KEYBOARD_MOUSE_LEFT) || nb_buttons_is_down(b, KEYBOARD_MOUSE_RIGHT);
}

// Moves of the mouse add up over a frame; the gamepad says where its sticks are.
static void read_motions(pilot *p, const nb_input_view *input) {
    p->look_x = p->look_y = 0;
    for (uint32_t i = 0; i < input->count; ++i) {
        const nb_input_event *event = &input->events[i];
        if (event->kind != NB_INPUT_MOTION) continue;
        uint32_t axis = event->code - KEYBOARD_MOTION_PAD;
        if (event->code == KEYBOARD_MOTION_POINTER && is_looking(&p->buttons)) {
            p->look_x += event->payload.f32[0];
            p->look_y -= event->payload.f32[1];
        } else if (event->code >= KEYBOARD_MOTION_PAD && axis < sizeof p->axes / sizeof p->axes[0]) {
            p->axes[axis] = event->payload.f32[0];
        }
    }
}

// Turn, look, pace, climb.
static void read_steering(const pilot *p, int32_t out[4]) {
    const nb_buttons *b = &p->buttons;
    float turn = side(b, KEYBOARD_D, KEYBOARD_A) + side(b, KEYBOARD_RIGHT, KEYBOARD_LEFT) + p->axes[0] + p->axes[2];
    float look = side(b, KEYBOARD_UP, KEYBOARD_DOWN) - p->axes[3];
    float pace = side(b, KEYBOARD_W, KEYBOARD_S) - p->axes[1];
    float climb = side(b, KEYBOARD_SPACE, KEYBOARD_C) + p->axes[5] - p->axes[4];
    out[0] = cut(turn * PLANET_TURN_MAX + p->look_x * MOUSE_TURN, PLANET_TURN_MAX);
    out[1] = cut(look * PLANET_TURN_MAX + p->look_y * MOUSE_TURN, PLANET_TURN_MAX);
    out[2] = cut(pace * PLANET_PACE_MAX, PLANET_PACE_MAX);
    out[3] = cut(climb * PLANET_PACE_MAX, PLANET_PACE_MAX);
}

static void command(const nb_context *context, nb_input_event event) { nb_context_command(context, &event); }

// Keys that do something once.
static bool press(pilot *p, const nb_context *context) {
    const nb_buttons *b = &p->buttons;
    int32_t altitude = 0;
    bool is_journey = true;
    if (nb_buttons_is_pressed(b, KEYBOARD_T))
        p->home = (p->home + 1) % HOME_COUNT;
    else if (nb_buttons_is_pressed(b, KEYBOARD_O))
        altitude = FLIGHT_ORBIT;
    else
        is_journey = false;
    for (uint32_t i = 0; i < 9 && i < HOME_COUNT; ++i) {
        if (!nb_buttons_is_pressed(b, KEYBOARD_1 + i)) continue;
        p->home = i;
        is_journey = true;
    }
    bool is_mode = nb_buttons_is_pressed(b, KEYBOARD_F);
    if (is_mode) p->mode = p->mode == EXPLORER_FLIES ? EXPLORER_WALKS : EXPLORER_FLIES;
    if (is_journey) command(context, planet_teleport(p->player, p->planet->homes[p->home], altitude));
    if (is_mode) command(context, planet_move(p->player, p->sent[3], p->mode));
    return is_journey || is_mode;
}

static nb_result steer(const nb_context *context, void *user) {
    pilot *p = user;
    int32_t wanted[4];
    nb_buttons_apply(&p->buttons, &context->input);
    read_motions(p, &context->input);
    read_steering(p, wanted);
    bool is_new = memcmp(wanted, p->sent, sizeof wanted) != 0;
    p->is_flying = press(p, context) || is_new || p->is_flying;
    if (memcmp(wanted, p->sent, 3 * sizeof wanted[0]) != 0)
        command(context, planet_steer(p->player, wanted[0], wanted[1], wanted[2]));
    if (wanted[3] != p->sent[3]) command(context, planet_move(p->player, wanted[3], p->mode));
    memcpy(p->sent, wanted, sizeof wanted);
    return NB_OK;
}

nb_result pilot_attach(pilot *p, nb_engine *engine, const planet *land, uint32_t player) {
    *p = (pilot){.planet = land, .player = player};
    if (nb_engine_input(engine) == NULL) return NB_ERR_MEMORY;
    nb_module_desc module = {.name = "pilot", .frame = steer, .user = p};
    return nb_engine_module_attach(engine, &module, NULL);
}
