#version 460
// SPDX-License-Identifier: MIT
// Vertices from a storage buffer: a place in clip space and a colour each; all of them moved by a constant.
struct vertex {
    vec4 place;
    vec4 color;
};
layout(std430, set = 0, binding = 0) readonly buffer vertices { vertex list[]; };
layout(push_constant) uniform constants {
    vec4 move;
    vec4 tint;
};
layout(location = 0) out vec4 color;

void main() {
    vertex v = list[gl_VertexIndex];
    gl_Position = v.place + move;
    color = v.color * tint;
}
