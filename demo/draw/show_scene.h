// SPDX-License-Identifier: MIT
#pragma once

// What is shown: the planet, its chunks, what the jobs have made of the frame, and how the run goes.

#include "../chunks/streamer.h"
#include "../game/planet.h"
#include "../jobs/picture.h"
#include "../shell/status.h"

// All of it outlives the engine.
typedef struct show_scene {
    const planet *land;
    streamer *chunks;
    picture *images;
    const status *status;
} show_scene;
