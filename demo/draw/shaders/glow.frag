#version 460
// SPDX-License-Identifier: MIT
// What is brighter than the rest, at a quarter of the size and spread: the glow around fires and the sun. The first step
// takes the bright part of the scene, the second spreads it further.
layout(push_constant) uniform Glow {
    vec2 pixel;      // of what is read
    float threshold; // 0: all of it
    float spread;
} glow;

layout(binding = 8) uniform sampler2D from;
layout(location = 0) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

vec3 take(vec2 offset) {
    vec3 c = min(texture(from, in_at + offset * glow.pixel * glow.spread).rgb, vec3(7.0));
    float bright = max(c.r, max(c.g, c.b));
    return c * (max(bright - glow.threshold, 0.0) / max(bright, 1e-3));
}

void main() {
    vec3 near = take(vec2(-1.0, -1.0)) + take(vec2(1.0, -1.0)) + take(vec2(-1.0, 1.0)) + take(vec2(1.0, 1.0));
    vec3 mid = take(vec2(-2.6, 0.0)) + take(vec2(2.6, 0.0)) + take(vec2(0.0, -2.6)) + take(vec2(0.0, 2.6));
    vec3 far = take(vec2(-2.4, -2.4)) + take(vec2(2.4, -2.4)) + take(vec2(-2.4, 2.4)) + take(vec2(2.4, 2.4));
    out_colour = vec4(near * 0.12 + mid * 0.08 + far * 0.05, 1.0);
}
