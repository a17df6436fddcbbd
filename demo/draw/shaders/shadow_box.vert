#version 460
// SPDX-License-Identifier: MIT
// As the sun sees it: depth alone.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "box.glsl"

void main() {
    box_corner c = box_open(uint(gl_VertexIndex));
    gl_Position = frame.shadow * vec4(c.relative, 1.0);
}
