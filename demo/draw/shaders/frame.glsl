// SPDX-License-Identifier: MIT
// What all shaders of a frame know: frame_constants of render_internal.h, field by field.
layout(std140, binding = 0) uniform Frame {
    mat4 clip;            // from what is relative to the camera
    vec4 camera;          // its place; w = metres above the sea
    vec4 sun;             // towards it; w = time in seconds
    vec4 clear;           // empty space; w = how much haze the air near the ground has
    vec4 right;           // of the camera; w = tangent of half the angle it sees across
    vec4 up;              // w = the same from top to bottom
    vec4 forward;         // w = the near plane
    vec4 size;            // of the scene in pixels, and 1 / it
    vec4 clusters;        // near, far, lights that one pixel asks at most
    vec4 cluster_counts;  // x, y, z; z is 0 where there are no lights
    vec4 stars;           // cosine and sine of their turn, strength
    mat4 shadow;          // from what is relative to the camera to the sun's picture
    vec4 shadow_size;     // pixels of a side, 1 / it, bias in depth, and in metres
} frame;

vec4 to_clip(vec3 relative) { return frame.clip * vec4(relative, 1.0); }

// 0 to 1, from any number.
float chance(uint n) {
    n ^= n >> 16;
    n *= 0x7feb352du;
    n ^= n >> 15;
    n *= 0x846ca68bu;
    n ^= n >> 16;
    return float(n >> 8) * (1.0 / 16777216.0);
}

vec3 from_screen(uint colour) {
    vec3 c = vec3(colour >> 16 & 255u, colour >> 8 & 255u, colour & 255u) * (1.0 / 255.0);
    return c * c * (c * 0.305306 + 0.694694);
}
