#version 460
// SPDX-License-Identifier: MIT
layout(location = 0) in vec3 in_colour;
layout(location = 1) in vec2 in_at;
layout(location = 2) flat in vec2 in_turn;
layout(location = 0) out vec4 out_colour;

// A body on four legs, and a head: long from the side, narrow from ahead and from behind.
void main() {
    float along = abs(in_turn.y), across = abs(in_turn.x), x = in_at.x + 0.1 * in_turn.y;
    bool is_body = in_at.y > 0.42 && in_at.y < 0.82 && abs(x) < 0.72 * along + 0.28 * across;
    bool is_leg = in_at.y < 0.5 && abs(abs(abs(x) - 0.55 * along) - 0.17 * across) < 0.13;
    bool is_head = in_at.y > 0.62 && abs(in_at.x - 0.75 * in_turn.y) < 0.25 * along + 0.19 * across;
    if (!is_body && !is_leg && !is_head) discard;
    // The head is the lighter part, and before the body where it looks this way.
    bool is_before = is_head && (in_turn.x > 0.1 || !is_body);
    out_colour = vec4(in_colour * (is_before ? 1.1 : is_leg && !is_body ? 0.6 : 1.0), 1.0);
}
