// SPDX-License-Identifier: MIT
#include "frame.glsl"
#ifdef HAS_LIGHTS
#include "lights.glsl"
#endif
#ifdef HAS_SHADOWS
#include "shadow.glsl"
#endif

layout(location = 0) in vec3 in_lit;
layout(location = 1) in vec3 in_veil;
layout(location = 2) in vec3 in_cell;
layout(location = 3) flat in uint in_seed;
#ifdef HAS_LIGHTS
layout(location = 4) in vec3 in_relative;
layout(location = 5) flat in vec3 in_normal;
layout(location = 6) in vec3 in_colour;
#endif
#ifdef HAS_SHADOWS
layout(location = 7) in vec3 in_sun;
#endif
layout(location = 0) out vec4 out_colour;

void main() {
    vec3 lit = in_lit;
#ifdef HAS_LIGHTS
    lit += in_colour * lights_on(in_relative, in_normal, gl_FragCoord.xy * frame.size.zw);
#endif
#ifdef HAS_SHADOWS
    lit += in_sun * sun_on(in_relative, in_normal);
#endif
    if (in_cell.z > 0.0) {
        uvec2 cell = uvec2(max(in_cell.xy, 0.0));
        lit *= 1.0 + in_cell.z * (chance(in_seed + cell.x * 0x9e3779b1u + cell.y * 0x85ebca6bu) * 2.0 - 1.0);
    }
    out_colour = vec4(lit + in_veil, 1.0);
}
