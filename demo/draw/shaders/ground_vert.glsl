// SPDX-License-Identifier: MIT
// The ground: light and air for each corner, so that a pixel has little left to do.
#include "frame.glsl"
#include "air.glsl"
#include "quad.glsl"

layout(location = 0) out vec3 out_lit;    // what the ground throws back, behind the air
layout(location = 1) out vec3 out_veil;   // light of the air before it
layout(location = 2) out vec3 out_cell;   // place in the quad; z = how much cells differ
layout(location = 3) flat out uint out_seed;
#ifdef HAS_SHADOWS
layout(location = 7) out vec3 out_sun; // what the ground throws back of the sun alone
#endif
#ifdef HAS_LIGHTS
layout(location = 4) out vec3 out_relative;
layout(location = 5) flat out vec3 out_normal;
layout(location = 6) out vec3 out_colour;
#endif

void main() {
    quad_corner c = quad_open(uint(gl_VertexIndex));
    vec3 relative = c.place - frame.camera.xyz;
    vec4 look = materials[c.material * 2u], matter = materials[c.material * 2u + 1u];
    float open = 0.42 + c.open * (0.36 + 0.22 * c.open);
    place_light here = light_at(c.away, c.height);
    vec3 around = light_around(c.normal, c.away, open, here) + matter.z;
    vec3 straight = light_straight(c.normal, open, here);
    air_veil veil = veil_to(relative, c.height, here);
#ifdef HAS_SHADOWS
    out_lit = look.rgb * around * veil.through;
    out_sun = look.rgb * straight * veil.through;
#else
    out_lit = look.rgb * (around + straight) * veil.through;
#endif
    out_veil = veil.light;
    // Cells smaller than some pixels would only flicker.
    float cells = float(1u << node.square.y) * frame.size.y / max(length(relative), 1.0);
    out_cell = vec3(c.cell, look.w * clamp(cells * 0.35 - 0.5, 0.0, 1.0));
    out_seed = c.seed;
#ifdef HAS_LIGHTS
    out_relative = relative;
    out_normal = c.normal;
    out_colour = look.rgb * open;
#endif
    gl_Position = to_clip(relative);
}
