#version 460
// SPDX-License-Identifier: MIT
// Rectangles in pixels.
layout(std430, binding = 1) readonly buffer Rects { uvec4 rects[]; }; // x0 | y0 << 16, x1 | y1 << 16, colour, 0

layout(push_constant) uniform Screen {
    vec2 scale; // 2 / size
    uint is_linear;
} screen;

layout(location = 0) flat out vec4 out_colour;

vec2 unpack(uint bits) { return vec2(int(bits << 16) >> 16, int(bits) >> 16); }

void main() {
    uint n = uint(gl_VertexIndex) % 6u, slot = n < 3u ? n : n == 3u ? 2u : n == 4u ? 1u : 3u;
    uvec4 rect = rects[uint(gl_VertexIndex) / 6u];
    vec2 low = unpack(rect.x), high = unpack(rect.y);
    vec2 at = vec2((slot & 1u) == 0u ? low.x : high.x, (slot >> 1) == 0u ? low.y : high.y);
    vec4 colour = vec4(rect.z >> 16 & 255u, rect.z >> 8 & 255u, rect.z & 255u, rect.z >> 24) * (1.0 / 255.0);
    if (screen.is_linear != 0u) colour.rgb *= colour.rgb * (colour.rgb * 0.305306 + 0.694694);
    out_colour = colour;
    gl_Position = vec4(at * screen.scale - 1.0, 0.0, 1.0);
}
