#version 460
// SPDX-License-Identifier: MIT
// One triangle over the whole picture.
layout(location = 0) out vec2 out_at; // 0 to 1 from the upper left corner

void main() {
    out_at = vec2(gl_VertexIndex & 1, gl_VertexIndex >> 1) * 2.0;
    gl_Position = vec4(out_at * 2.0 - 1.0, 0.0, 1.0);
}
