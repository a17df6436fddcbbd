// SPDX-License-Identifier: MIT
// Boxes, with light for each corner.
#include "frame.glsl"
#include "air.glsl"
#include "box.glsl"
#ifdef HAS_LIGHTS
#include "lights.glsl"
#endif
#ifdef HAS_SHADOWS
#include "shadow.glsl"
#endif

layout(location = 0) out vec3 out_colour;

void main() {
    box_corner c = box_open(uint(gl_VertexIndex));
    vec3 place = c.relative + frame.camera.xyz, away = normalize(place);
    float height = length(place) - RADIUS;
    place_light here = light_at(away, height);
    vec3 light = light_around(c.normal, away, 0.92, here) + c.glow;
#ifdef HAS_SHADOWS
    light += light_straight(c.normal, 0.92, here) * sun_on(c.relative, c.normal);
#else
    light += light_straight(c.normal, 0.92, here);
#endif
    gl_Position = to_clip(c.relative);
#ifdef HAS_LIGHTS
    vec2 screen = gl_Position.xy / max(gl_Position.w, 1e-3) * 0.5 + 0.5;
    light += lights_on(c.relative, c.normal, screen);
#endif
    air_veil veil = veil_to(c.relative, height, here);
    out_colour = from_screen(c.colour) * light * veil.through + veil.light;
}
