#version 460
// SPDX-License-Identifier: MIT
// The layers of an array side by side.
layout(set = 0, binding = 8) uniform sampler2DArray image;
layout(location = 0) in vec2 place;
layout(location = 0) out vec4 result;

void main() {
    float count = float(textureSize(image, 0).z);
    result = texture(image, vec3(place.x, place.y, floor(place.x * count)));
}
