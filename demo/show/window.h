// SPDX-License-Identifier: MIT
#pragma once

// A window for the picture, where there is a display: a thin layer over SDL2. The one rule: window_poll once a frame,
// before the ticks; what was pressed comes as timestamped events, what happened to the window as a window_news.
//
//     window *w = NULL;
//     char why[WINDOW_WHY_SIZE];
//     if (window_open(&(window_desc){.title = "Nebula"}, &w, why) != NB_OK) puts(why); // and there is no window

#include <stdbool.h>
#include <stdint.h>

#include "nebula/gpu_vulkan.h"
#include "nebula/input.h"

#include "../players/keyboard.h"

// Codes of events. Keys are USB usage ids, as SDL's scancodes: 4 is A, 26 is W.
#define WINDOW_CODE_MOUSE KEYBOARD_MOUSE // + button, from 1: left, middle, right
#define WINDOW_CODE_PAD 336u             // + button of a gamepad
#define WINDOW_CODE_COUNT 368u

// Codes of NB_INPUT_MOTION. Of the pointer and the wheel f32[0] and f32[1] are how far it moved, right and down; of a
// gamepad's axis f32[0] is where it is, -1 to 1.
#define WINDOW_MOTION_POINTER KEYBOARD_MOTION_POINTER
#define WINDOW_MOTION_WHEEL 2u
#define WINDOW_MOTION_PAD KEYBOARD_MOTION_PAD // + axis

// Numbers of devices in the events.
#define WINDOW_DEVICE_KEYS 1
#define WINDOW_DEVICE_MOUSE 2
#define WINDOW_DEVICE_PAD 3

#define WINDOW_WHY_SIZE 256

typedef struct window window;

typedef struct window_desc {
    const char *title;      // NULL = "Nebula"
    uint32_t width, height; // 0 = 1280 x 720
    bool is_fullscreen;
    bool is_hidden; // for tests
    // The clock of the loop, for the events' times; NULL = SDL's own.
    uint64_t (*now_ns)(void *user);
    void *user;
} window_desc;

// What happened since the last poll, and how it is now.
typedef struct window_news {
    bool is_closed;  // the user wants to leave
    bool is_resized; // width and height are new: nb_gpu_resize
    bool is_vsync_changed;
    bool is_refresh_changed; // refresh_hz is new: also with the first poll
    bool is_focus_lost;      // buttons that are held will not be released: nb_buttons_release_all
    uint32_t width, height;  // of the picture; 0 x 0 while minimised
    bool is_minimised, is_fullscreen, is_vsync_off, is_pointer_held;
    uint32_t refresh_hz;                 // of the display that the window is on; 0 = unknown
    uint32_t event_count, dropped_count; // sent; refused by a full queue
} window_news;

// NB_ERR_UNSUPPORTED: no display, or built without SDL2; `why`, where it is not NULL, gets one line for a person.
// NB_ERR_MEMORY.
nb_result window_open(const window_desc *desc, window **out, char why[WINDOW_WHY_SIZE]);

// After the device that draws to it. NULL is fine.
void window_close(window *w);

// Whether there is a display to open a window on.
bool window_has_display(void);

// For nb_gpu_vulkan_desc.window: what the device needs to draw to it. All zero for NULL. Lives as long as the window.
nb_gpu_vulkan_window window_vulkan(window *w);

// Takes what has happened: events go to `input` (may be NULL). F11 and Alt+Enter change between window and whole
// screen, V whether it waits for the display; both reach `input` as well.
window_news window_poll(window *w, nb_input *input);

void window_set_fullscreen(window *w, bool is_on);

// Holds the pointer in the window and hides it, to look around.
void window_hold_pointer(window *w, bool is_on);
