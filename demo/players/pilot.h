// SPDX-License-Identifier: MIT
#pragma once

// Somebody's hands: keys, mouse and gamepad of the window become commands for an explorer. From the first one on the
// flight is over. The one rule: hands reach the simulation as commands only, so a recording holds them.
//
//     W S A D, left stick   ahead, back, turn          mouse with a button held, right stick   look around
//     Space, C, triggers    up and down in flight      F        walk or fly
//     T, 1 to 9             to another herd at once    O        to orbit

#include "nebula/engine.h"

#include "../game/planet.h"

typedef struct pilot {
    const planet *planet;
    uint32_t player;
    bool is_flying; // hands are on: the flight by itself is over
    explorer_mode mode;
    uint32_t home;        // that T leads to
    float axes[6];        // of the gamepad, -1 to 1
    float look_x, look_y; // of the mouse, since the frame before
    int32_t sent[4];      // turn, look, pace, climb
    nb_buttons buttons;
} pilot;

// Attaches the module "pilot": it reads the engine's input in every frame.
nb_result pilot_attach(pilot *p, nb_engine *engine, const planet *land, uint32_t player);
