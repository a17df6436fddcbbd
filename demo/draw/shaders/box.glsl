// SPDX-License-Identifier: MIT
// Boxes: the bodies and bones of animals, and what is built.
struct box {
    vec4 middle;  // relative to the camera; w = colour as bits
    vec4 x, y, z; // from the middle to the sides; x.w = light of its own
};
layout(std430, binding = 1) readonly buffer Boxes { box boxes[]; };

struct box_corner {
    vec3 relative, normal;
    uint colour;
    float glow;
};

// Corners of a side, two bits each: the sign of the second and the third axis.
const uint CORNERS[6] = uint[6](0u, 1u, 2u, 2u, 1u, 3u);

box_corner box_open(uint vertex) {
    uint number = vertex / 36u, n = vertex % 36u;
    uint side = n / 6u, corner = CORNERS[n % 6u], axis = side >> 1;
    box b = boxes[number];
    float out_way = (side & 1u) == 0u ? -1.0 : 1.0;
    vec3 first = axis == 0u ? b.x.xyz : axis == 1u ? b.y.xyz : b.z.xyz;
    vec3 second = axis == 0u ? b.y.xyz : axis == 1u ? b.z.xyz : b.x.xyz;
    vec3 third = axis == 0u ? b.z.xyz : axis == 1u ? b.x.xyz : b.y.xyz;
    float u = (corner & 1u) == 0u ? -1.0 : 1.0, v = (corner >> 1) == 0u ? -1.0 : 1.0;
    box_corner c;
    c.relative = b.middle.xyz + first * out_way + second * (u * out_way) + third * v;
    c.normal = normalize(first) * out_way;
    c.colour = floatBitsToUint(b.middle.w);
    c.glow = b.x.w;
    return c;
}
