#version 460
// SPDX-License-Identifier: MIT
// Pixel x, y shows number y * width + x of a buffer.
layout(std430, set = 0, binding = 2) readonly buffer numbers { uint list[]; };
layout(push_constant) uniform constants { uint width; };
layout(location = 0) in vec2 place;
layout(location = 0) out uint result;

void main() {
    uvec2 at = uvec2(gl_FragCoord.xy);
    result = list[at.y * width + at.x];
}
