#version 460
// SPDX-License-Identifier: MIT
// As the sun sees it: depth alone.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"
#include "quad.glsl"

void main() {
    quad_corner c = quad_open(uint(gl_VertexIndex));
    gl_Position = frame.shadow * vec4(c.place - frame.camera.xyz, 1.0);
}
