#version 460
// SPDX-License-Identifier: MIT
// Water, seen from above or from below.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"
#include "quad.glsl"

layout(location = 0) out vec3 out_relative;
layout(location = 1) out vec3 out_away;
layout(location = 2) out vec3 out_body;    // light that comes back out of the water
layout(location = 3) out vec3 out_sky;     // that it mirrors
layout(location = 4) out vec3 out_sun;
layout(location = 5) out vec3 out_veil;
layout(location = 6) out vec3 out_through;

void main() {
    quad_corner c = quad_open(uint(gl_VertexIndex));
    // A little below the brim: beaches get an edge.
    vec3 place = c.place - c.away * 0.18;
    vec3 relative = place - frame.camera.xyz;
    place_light here = light_at(c.away, c.height);
    air_veil veil = veil_to(relative, c.height, here);
    out_relative = relative;
    out_away = c.away;
    out_body = materials[c.material * 2u].rgb * (here.sun * (max(here.rise, 0.0) * 0.42) + here.sky * 0.6);
    out_sky = here.sky * 0.9;
    out_sun = here.sun;
    out_veil = veil.light;
    out_through = veil.through;
    gl_Position = to_clip(relative);
}
