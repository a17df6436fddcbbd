// SPDX-License-Identifier: MIT
// A quad of the ground, as the mesher packs it, on the planet, as sphere.h bends it.
layout(std430, binding = 1) readonly buffer Quads { uvec2 quads[]; };
// rgb and speckle, then opacity, roughness, glow.
layout(std140, binding = 2) uniform Materials { vec4 materials[128]; };

layout(push_constant) uniform Node {
    uvec4 square; // face, level, x, y
    ivec4 layers; // base, step
} node;

struct quad_corner {
    vec3 place;    // from the middle of the planet
    vec3 away;     // of length 1
    vec3 normal;
    float height;  // above the sea
    float open;    // light in the corner, 0 to 1
    vec2 cell;     // in cells of the quad, for what differs from cell to cell
    uint material;
    uint seed;     // of the quad's place: the same for the same cells
};

const vec3 AXES[18] = vec3[18](
    vec3(0, 0, 1), vec3(0, 1, 0), vec3(1, 0, 0), vec3(0, 0, -1), vec3(0, 1, 0), vec3(-1, 0, 0),
    vec3(1, 0, 0), vec3(0, 0, 1), vec3(0, 1, 0), vec3(-1, 0, 0), vec3(0, 0, 1), vec3(0, -1, 0),
    vec3(-1, 0, 0), vec3(0, 1, 0), vec3(0, 0, 1), vec3(1, 0, 0), vec3(0, 1, 0), vec3(0, 0, -1));

float warp(float s) {
    float q = s * s;
    return s * (807.0 + q * (145.0 + q * 72.0)) * (1.0 / 1024.0);
}

float slope(uint bits) { return (float((bits & 7u) ^ 4u) - 4.0) * 0.25; }

// Which corner the n-th vertex is. The quad is cut along its brighter diagonal, or shadows look torn, and three
// directions run the other way round.
uint corner_of(uint n, uint face, uint light) {
    uvec4 open = uvec4(light, light >> 2, light >> 4, light >> 6) & 3u;
    bool is_crossed = open.x + open.w > open.y + open.z;
    bool is_turned = face == 1u || face == 3u || face == 4u;
    uint turned = (n & 1u) << 1 | n >> 1;
    uint at = is_turned != is_crossed ? turned : n;
    return is_crossed ? at ^ 1u : at;
}

quad_corner quad_open(uint vertex) {
    uvec2 q = quads[vertex >> 2];
    uint face = q.x >> 23 & 7u, light = q.y >> 8 & 255u;
    uint corner = corner_of(vertex & 3u, face, light);
    uvec3 low = uvec3(q.x, q.x >> 10, q.x >> 5) & uvec3(31u, 255u, 31u);
    uvec2 size = uvec2((q.x >> 18 & 31u) + 1u, (q.y & 255u) + 1u) * uvec2(corner & 1u, corner >> 1);
    uint axis = face >> 1;
    uvec3 offset = axis == 0u ? uvec3(0u, size.y, size.x) : axis == 1u ? uvec3(size.x, 0u, size.y) : uvec3(size, 0u);
    offset[axis] += face & 1u;

    uvec3 at = low + offset;
    uvec2 column = (node.square.zw * 32u + at.xz) << node.square.y;
    vec2 st = vec2(column) * (1.0 / 2048.0) - 1.0;
    float a = warp(st.x), b = warp(st.y);
    uint f = node.square.x * 3u;
    vec3 along = AXES[f], across = AXES[f + 1u], out_of = AXES[f + 2u];

    quad_corner c;
    c.height = float(node.layers.x + node.layers.y * int(at.y));
    c.away = normalize(out_of + along * a + across * b);
    // The face's own directions, bent to the sphere.
    vec3 u = normalize(along - c.away * dot(c.away, along)), v = normalize(across - c.away * dot(c.away, across));
    vec3 top = normalize(c.away - u * slope(q.y >> 16) - v * slope(q.y >> 19));
    vec3 normal = axis == 0u ? u : axis == 1u ? top : v;
    c.normal = (face & 1u) == 0u ? -normal : normal;
    // Each quad is a third of a pixel larger than it is, so that no light comes through where a long side meets short
    // ones. Sides do not grow upwards, or those that hang below a border would show above the ground.
    c.place = c.away * (RADIUS + c.height);
    float grow = length(c.place - frame.camera.xyz) * frame.up.w * frame.size.w * 0.7;
    vec2 way = vec2(corner & 1u, corner >> 1) * (2.0 * grow) - grow;
    if (axis != 1u) way.y = min(way.y, 0.0);
    c.place += (axis == 0u ? v : u) * way.x + (axis == 1u ? v : c.away) * way.y;
    c.open = float(light >> (corner * 2u) & 3u) * (1.0 / 3.0);
    c.cell = vec2(size);
    c.material = q.x >> 26;
    uvec2 first = (node.square.zw * 32u + low.xz) << node.square.y;
    c.seed = first.x * 0x9e3779b1u ^ first.y * 0x85ebca6bu ^ low.y * 0xc2b2ae35u ^ node.square.x * 0x27d4eb2fu ^ face;
    return c;
}
