#version 460
// SPDX-License-Identifier: MIT
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"

layout(location = 0) in vec3 in_relative;
layout(location = 1) in vec3 in_away;
layout(location = 2) in vec3 in_body;
layout(location = 3) in vec3 in_sky;
layout(location = 4) in vec3 in_sun;
layout(location = 5) in vec3 in_veil;
layout(location = 6) in vec3 in_through;
layout(location = 0) out vec4 out_colour;

// How the water leans: three waves of different directions, bent by a slow one so that they never repeat. Far away they
// are too small to see and only spread the sun.
vec3 waves(vec3 place, float far) {
    float t = frame.sun.w;
    vec3 p = place + 1.9 * sin(place.yzx * 0.31 + t * 0.35);
    vec3 lean = vec3(0.62, 0.21, -0.75) * sin(dot(p, vec3(0.62, 0.21, -0.75)) * 1.3 + t * 1.1);
    lean += vec3(-0.41, 0.83, 0.37) * sin(dot(p, vec3(-0.41, 0.83, 0.37)) * 2.3 + t * 1.6);
    lean += vec3(0.30, -0.52, 0.80) * (0.6 * sin(dot(p, vec3(0.30, -0.52, 0.80)) * 4.7 - t * 2.3));
    return lean * (0.05 / (1.0 + far * 0.02));
}

void main() {
    float far = length(in_relative);
    vec3 view = in_relative / far;
    vec3 normal = normalize(in_away + waves(in_relative + frame.camera.xyz, far));
    float facing = clamp(-dot(view, normal), 0.0, 1.0);
    float edge = 1.0 - facing, mirror = 0.03 + 0.72 * edge * edge * edge * edge * edge;
    vec3 mirrored = reflect(view, normal);
    float sun = max(dot(mirrored, frame.sun.xyz), 0.0);
    float rough = clamp(far * 0.0012, 0.0, 1.0);
    float glint = pow(sun, mix(420.0, 36.0, rough)) * mix(9.0, 1.1, rough) + pow(sun, 8.0) * 0.06;
    // The flatter one looks, the longer the way to the bottom.
    float clear = exp2(-1.5 / max(facing, 0.05)) * (1.0 - rough * 0.6);
    float opacity = clamp(1.0 - clear + glint * 0.3, 0.0, 1.0);
    vec3 light = mix(in_body, in_sky, mirror) + in_sun * glint * (0.25 + mirror);
    out_colour = vec4(light * in_through + in_veil, opacity);
}
