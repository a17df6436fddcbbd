#version 460
// SPDX-License-Identifier: MIT
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 2) writeonly buffer numbers { uint list[]; };
layout(push_constant) uniform constants { uint count, factor, add; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) list[i] = i * factor + add;
}
