#version 460
// SPDX-License-Identifier: MIT
// Flames, smoke and dust: round sprites that face the camera.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"

struct sprite {
    vec4 middle; // relative to the camera; w = size
    uvec4 look;  // colour with alpha, kind
};
layout(std430, binding = 1) readonly buffer Sprites { sprite sprites[]; };

layout(location = 0) out vec4 out_colour;
layout(location = 1) out vec2 out_at;

void main() {
    uint number = uint(gl_VertexIndex) / 6u, n = uint(gl_VertexIndex) % 6u;
    uint slot = n < 3u ? n : n == 3u ? 2u : n == 4u ? 1u : 3u;
    sprite s = sprites[number];
    out_at = vec2((slot & 1u) == 0u ? -1.0 : 1.0, (slot >> 1) == 0u ? -1.0 : 1.0);
    vec3 relative = s.middle.xyz + (frame.right.xyz * out_at.x + frame.up.xyz * out_at.y) * s.middle.w;
    float alpha = float(s.look.x >> 24) * (1.0 / 255.0);
    vec3 colour = from_screen(s.look.x & 0xffffffu);
    if (s.look.y == 0u) {
        out_colour = vec4(colour * 1.5, alpha);
    } else {
        vec3 place = s.middle.xyz + frame.camera.xyz, away = normalize(place);
        float height = length(place) - RADIUS;
        place_light here = light_at(away, height);
        vec3 light = here.sun * (0.45 * max(here.rise + 0.3, 0.0)) + here.sky;
        air_veil veil = veil_to(relative, height, here);
        out_colour = vec4(colour * light * veil.through + veil.light, alpha);
    }
    gl_Position = to_clip(relative);
}
