// SPDX-License-Identifier: MIT
#pragma once

// The planet shown: a device, a window where there is a display, and pictures of the flight as files where there is
// none. The one rule: nothing simulated depends on it; without a device the demo runs as it does with one.
//
//     show *s = NULL; // stays NULL where nothing is to be shown
//     bool is_back = false;
//     if (show_open(&options, NULL, &s) < 0) return 1;
//     show_attach(s, engine, &scene); // after the modules that it shows
//     while (show_begin(s, &is_back)) nb_engine_frame(engine), show_end_frame(s);
//     show_close(s); // after the engine

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "nebula/engine.h"

#include "../draw/show_scene.h"
#include "../players/script.h"
#include "../shell/numbers.h"
#include "../shell/options.h"

typedef struct show show;

// Chooses a device as the options say, and says which one. NULL in *out where there is none to be, or where the demo
// was built without the module gpu. NB_ERR_UNSUPPORTED: the one that was asked for is not here;
// NB_ERR_OS: no place for pictures. One line tells why.
// flight = which says when pictures are taken, and outlives it; NULL = the built-in one.
nb_result show_open(const demo_options *options, const script *flight, show **out);

// Attaches it to an engine, behind the modules that it shows.
nb_result show_attach(show *s, nb_engine *engine, const show_scene *scene);

// Whether a window shows it: a display then paces the frames.
bool show_has_window(const show *s);

// Before a frame: takes what happened to the window. Also sets *is_back while the key that rewinds is held. False: the
// user has closed it.
bool show_begin(show *s, bool *is_back);

// After a frame: keeps a picture where one is due. Tells of a file that could not be written.
nb_result show_end_frame(show *s);

// Whether the next picture would be the same after a wait: everything that is wanted is on the device.
bool show_is_settled(const show *s);

// What the newest picture was like: triangles, time on the device, and uploads so far. Zeros where nothing is shown.
void show_measure(const show *s, numbers_frame *out);

// Writes what was shown, and where pictures are.
void show_print(const show *s, FILE *to);

// After the engine is destroyed. NULL is fine.
void show_close(show *s);
