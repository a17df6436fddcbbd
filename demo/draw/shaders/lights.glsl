// SPDX-License-Identifier: MIT
// Fires and lamps: a point asks the lights of its block of the picture.
struct point_light {
    vec4 place;  // relative to the camera; w = radius
    vec4 colour;
};
layout(std430, binding = 3) readonly buffer Lights { point_light lights[]; };
// By block: where its numbers begin, and above bit 24 how many there are.
layout(std430, binding = 4) readonly buffer Blocks { uint blocks[]; };
layout(std430, binding = 5) readonly buffer Numbers { uint numbers[]; };

uint block_of(vec2 screen, float depth) {
    float z = sqrt(max(depth - frame.clusters.x, 0.0) / (frame.clusters.y - frame.clusters.x)) * frame.cluster_counts.z;
    if (!(z < frame.cluster_counts.z)) return 0xffffffffu; // always, where there are no lights: z is 0 or no number
    // Blocks count upwards, pixels downwards.
    vec2 xy = min(vec2(screen.x, 1.0 - screen.y) * frame.cluster_counts.xy, frame.cluster_counts.xy - 1.0);
    uvec3 at = uvec3(vec3(max(xy, 0.0), z));
    return (at.z * uint(frame.cluster_counts.y) + at.y) * uint(frame.cluster_counts.x) + at.x;
}

// `screen` is 0 to 1 from the upper left corner.
vec3 lights_on(vec3 relative, vec3 normal, vec2 screen) {
    uint block = block_of(screen, dot(relative, frame.forward.xyz));
    if (block == 0xffffffffu) return vec3(0.0);
    uint list = blocks[block], count = min(list >> 24, uint(frame.clusters.z));
    vec3 sum = vec3(0.0);
    for (uint i = 0u; i < count; ++i) {
        point_light l = lights[numbers[(list & 0xffffffu) + i]];
        vec3 way = l.place.xyz - relative;
        float square = dot(way, way), edge = 1.0 - square / (l.place.w * l.place.w);
        if (edge <= 0.0) continue;
        float facing = max(dot(normal, way) * inversesqrt(square + 1e-4) * 0.75 + 0.25, 0.0);
        sum += l.colour.rgb * (facing * edge * edge / (1.0 + square * 0.35));
    }
    return sum;
}
