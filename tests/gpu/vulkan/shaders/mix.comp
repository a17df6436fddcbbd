#version 460
// SPDX-License-Identifier: MIT
// out[i] = a[i] * factor + b[count - 1 - i] + add
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) readonly buffer first { uint a[]; };
layout(std430, set = 0, binding = 1) readonly buffer second { uint b[]; };
layout(std430, set = 0, binding = 2) buffer third { uint result[]; };
layout(push_constant) uniform constants { uint count, factor, add; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) result[i] = a[i] * factor + b[count - 1 - i] + add;
}
