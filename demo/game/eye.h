// SPDX-License-Identifier: MIT
#pragma once

// What the explorer that is followed sees in a frame: a camera, and what is around it. It is made between two ticks,
// from the explorer's state; nothing simulated reads it.

#include <stdint.h>

#include "../planet/vec.h"

typedef struct camera {
    vec3 position;                // metres from the planet's middle
    vec3 forward;                 // of length 1, not straight up or down
    vec3 up;                      // of length 1, away from the ground
    float tan_half_x, tan_half_y; // of the angles it sees to each side
    float near, far;              // metres
} camera;

// The table "eye" has one row of it, local to this machine and published in snapshots.
typedef struct planet_eye {
    camera camera;
    vec3d position;   // of the camera, metres from the planet's middle: what is near is drawn relative to it
    vec3 sun;         // of length 1, towards it
    float daylight;   // 0 night to 1 day, where the camera is
    double altitude;  // metres above the sea
    double ground;    // metres above the sea, below the camera
    uint32_t home;    // the nearest of planet's homes
    uint32_t journey; // as the explorer's
    uint64_t tick;    // the newest that was simulated
} planet_eye;
