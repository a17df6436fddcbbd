#version 460
// SPDX-License-Identifier: MIT
layout(location = 0) in vec4 in_colour;
layout(location = 1) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

void main() {
    float edge = max(1.0 - dot(in_at, in_at), 0.0);
    out_colour = vec4(in_colour.rgb, in_colour.a * edge * edge);
}
