#version 460
// SPDX-License-Identifier: MIT
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"

layout(location = 0) in vec3 in_way;
layout(location = 1) in vec3 in_air;
layout(location = 2) in vec3 in_haze;
layout(location = 3) in vec3 in_through;
layout(location = 4) flat in vec3 in_sun;
layout(location = 0) out vec4 out_colour;

void main() {
    float toward = dot(normalize(in_way), frame.sun.xyz);
    // Evenings: the redder the sun and the thicker the air, the warmer the sky on its side.
    float near_side = 0.5 + 0.5 * toward, red = 1.0 - in_sun.b / max(in_sun.r, 1e-3);
    float warm = clamp(red * 1.5, 0.0, 1.0) * near_side * near_side * (1.0 - in_through.b);
    vec3 tint = mix(vec3(1.02, 1.12, 1.22), vec3(1.35, 0.72, 0.34), warm);
    vec3 light = frame.clear.rgb + in_air * (phase_air(toward) * tint) + in_haze * in_sun * (phase_haze(toward) * 1.6);
    // The disc, and the glare around it that an eye sees even in space.
    float glare = max(toward, 0.0);
    glare *= glare;
    glare *= glare;
    glare *= glare;
    glare *= glare;
    float disc = smoothstep(0.99955, 0.99975, toward);
    float near = max(toward - 0.98, 0.0) * 50.0;
    float halo = glare * 0.03 + near * near * near * near * 0.9;
    light += in_through * in_sun * (vec3(42.0, 40.0, 36.0) * disc + vec3(1.1, 0.95, 0.76) * halo);
    out_colour = vec4(light, 1.0);
}
