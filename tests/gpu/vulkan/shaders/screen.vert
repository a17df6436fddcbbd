#version 460
// SPDX-License-Identifier: MIT
// One triangle over all of the picture; place is 0 to 1 from the upper left corner.
layout(location = 0) out vec2 place;

void main() {
    place = vec2((gl_VertexIndex << 1) & 2, gl_VertexIndex & 2);
    gl_Position = vec4(2.0 * place - 1.0, 0.0, 1.0);
}
