// SPDX-License-Identifier: MIT
#pragma once

// Codes of buttons and motions, as the window sends them: keys are USB usage ids, whatever is printed on them.

#define KEYBOARD_A 4u
#define KEYBOARD_C 6u
#define KEYBOARD_D 7u
#define KEYBOARD_F 9u
#define KEYBOARD_O 18u
#define KEYBOARD_R 21u
#define KEYBOARD_S 22u
#define KEYBOARD_T 23u
#define KEYBOARD_W 26u
#define KEYBOARD_1 30u // to 9: 38
#define KEYBOARD_ESCAPE 41u
#define KEYBOARD_SPACE 44u
#define KEYBOARD_F1 58u
#define KEYBOARD_RIGHT 79u
#define KEYBOARD_LEFT 80u
#define KEYBOARD_DOWN 81u
#define KEYBOARD_UP 82u

// Buttons of the mouse, above all keys, and what moves.
#define KEYBOARD_MOUSE 320u // + button, from 1: left, middle, right
#define KEYBOARD_MOUSE_LEFT (KEYBOARD_MOUSE + 1)
#define KEYBOARD_MOUSE_RIGHT (KEYBOARD_MOUSE + 3)
#define KEYBOARD_MOTION_POINTER 1u
#define KEYBOARD_MOTION_PAD 16u // + axis: left x and y, right x and y, left and right trigger
