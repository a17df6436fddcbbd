#version 460
// SPDX-License-Identifier: MIT
// Animals far away: one flat figure each, upright and turned to the camera, of the side that the camera is on.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"

struct sprite {
    vec4 middle; // relative to the camera; w = size
    uvec4 look;  // colour, and eighths of a turn from where it looks to its right
};
layout(std430, binding = 1) readonly buffer Sprites { sprite sprites[]; };

layout(location = 0) out vec3 out_colour;
layout(location = 1) out vec2 out_at; // -1 to 1 across, 0 to 1 up
layout(location = 2) flat out vec2 out_turn; // how much of it is seen from ahead, and from its right

void main() {
    uint number = uint(gl_VertexIndex) / 6u, n = uint(gl_VertexIndex) % 6u;
    uint slot = n < 3u ? n : n == 3u ? 2u : n == 4u ? 1u : 3u;
    sprite s = sprites[number];
    vec3 place = s.middle.xyz + frame.camera.xyz, away = normalize(place);
    vec3 side = normalize(cross(s.middle.xyz, away) + vec3(1e-5));
    out_at = vec2((slot & 1u) == 0u ? -1.0 : 1.0, float(slot >> 1));
    vec3 relative = s.middle.xyz + side * (out_at.x * s.middle.w * 0.8) + away * (out_at.y * s.middle.w * 1.2);
    float height = length(place) - RADIUS;
    place_light here = light_at(away, height);
    vec3 light = light_on(normalize(away - normalize(relative) * 0.6), away, 0.9, here);
    air_veil veil = veil_to(relative, height, here);
    out_colour = from_screen(s.look.x) * light * veil.through + veil.light;
    float turn = float(s.look.y & 7u) * 0.78539816;
    out_turn = vec2(cos(turn), sin(turn));
    gl_Position = to_clip(relative);
}
