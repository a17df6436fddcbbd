#version 460
// SPDX-License-Identifier: MIT
layout(location = 0) in vec3 in_colour;
layout(location = 1) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

// A body on two pairs of legs, and a head.
void main() {
    bool is_body = in_at.y > 0.42 && in_at.y < 0.82 && abs(in_at.x + 0.1) < 0.72;
    bool is_leg = in_at.y < 0.5 && abs(abs(in_at.x + 0.1) - 0.55) < 0.14;
    bool is_head = in_at.y > 0.62 && in_at.x > 0.5;
    if (!is_body && !is_leg && !is_head) discard;
    out_colour = vec4(in_colour * (is_leg ? 0.6 : 1.0), 1.0);
}
