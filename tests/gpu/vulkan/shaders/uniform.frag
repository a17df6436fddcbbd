#version 460
// SPDX-License-Identifier: MIT
layout(set = 0, binding = 1) uniform block { vec4 value; };
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 result;

void main() { result = value; }
