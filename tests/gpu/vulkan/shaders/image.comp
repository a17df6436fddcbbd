#version 460
// SPDX-License-Identifier: MIT
// Adds to every pixel of an image of numbers, and writes what it finds to a buffer.
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 8, r32ui) uniform uimage2D image;
layout(push_constant) uniform constants { uint count, factor, add; };

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    ivec2 size = imageSize(image);
    if (any(greaterThanEqual(at, size))) return;
    uint value = imageLoad(image, at).x;
    imageStore(image, at, uvec4(value * factor + add + uint(at.y * size.x + at.x), 0, 0, 0));
}
