// SPDX-License-Identifier: MIT
#pragma once

// From the nodes of windmills, as they are between two ticks, to the boxes that the renderer draws.

#include "../game/mills.h"
#include "render.h"

// Metres from the eye; from farther away a mill is a few pixels high.
#define VIEW_MILLS_FAR 500.0

// Boxes of a mill.
#define VIEW_MILLS_BOXES_EACH 54u

// Writes the boxes of the mills that are near enough, up to count_max; returns how many.
uint32_t view_mills(const mills *m, vec3d eye, render_box *boxes, uint32_t count_max);
