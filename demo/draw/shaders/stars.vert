#version 460
// SPDX-License-Identifier: MIT
// Stars: points at the end of space, half of them in the band of a galaxy. They turn around the planet's axis.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"

layout(location = 0) out vec3 out_colour;

void main() {
    uint n = uint(gl_VertexIndex);
    float a = chance(n * 4u + 1u), b = chance(n * 4u + 2u), c = chance(n * 4u + 3u), d = chance(n * 4u + 4u);
    float level = b * 2.0 - 1.0;
    // The band: what is far from its middle is drawn nearer to it.
    if ((n & 1u) == 1u) level = level * level * level * 0.45;
    float turn = a * 6.2831853, flat_part = sqrt(max(1.0 - level * level, 0.0));
    vec3 way = vec3(cos(turn) * flat_part, level, sin(turn) * flat_part);
    way = vec3(way.x * 0.6 - way.y * 0.8, way.x * 0.8 + way.y * 0.6, way.z);
    way = vec3(way.x * frame.stars.x - way.z * frame.stars.y, way.y, way.x * frame.stars.y + way.z * frame.stars.x);
    float bright = 0.04 + c * c * c * c * c * c * 1.4;
    if ((n & 1u) == 1u) bright *= 0.6;
    // Air takes the light of those near the horizon.
    float rise = dot(way, normalize(frame.camera.xyz));
    float low = smoothstep(0.0, 0.25, rise + frame.camera.w * 0.004);
    out_colour = mix(vec3(1.0, 0.78, 0.58), vec3(0.68, 0.80, 1.0), d) * (bright * frame.stars.z * low);
    // No branch, see dome.vert.
    gl_Position = mix(vec4(2.0, 2.0, 0.0, 1.0), frame.clip * vec4(way, 0.0), bvec4(frame.stars.z > 0.0));
    // With four samples a pixel a star is four points.
    gl_Position.xy += vec2(gl_InstanceIndex & 1, gl_InstanceIndex >> 1) * 2.0 * frame.size.zw * gl_Position.w;
    gl_PointSize = 1.0;
}
