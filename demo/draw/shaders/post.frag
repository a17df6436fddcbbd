#version 460
// SPDX-License-Identifier: MIT
// From light to what a screen shows.
layout(push_constant) uniform Post {
    vec2 pixel;     // of the scene
    float exposure;
    float glow;     // strength; 0 = none was made
    uint samples;   // of the scene a pixel: 1 or 4
    uint is_linear; // the target encodes by itself
} post;

layout(binding = 8) uniform sampler2D scene;
layout(binding = 9) uniform sampler2D glow_near;
layout(binding = 10) uniform sampler2D glow_far;
layout(location = 0) in vec2 in_at;
layout(location = 0) out vec4 out_colour;

// Bright light bends over softly, and loses some of its colour, as on film.
vec3 film(vec3 light) {
    vec3 c = light * post.exposure;
    float bright = dot(c, vec3(0.25, 0.62, 0.13));
    c = mix(c, vec3(bright), clamp(bright * 0.05, 0.0, 0.4));
    vec3 curve = c * (1.0 + c * 0.16) / (0.72 + c * (0.86 + c * 0.16));
    return clamp(curve, 0.0, 1.0);
}

// The curve of a screen, within a hundredth: powers cost more than all the rest here.
vec3 encode(vec3 c) {
    vec3 root = sqrt(c);
    return min(c * 12.92, root * 1.29824 - sqrt(root) * 0.0767 - c * 0.22879);
}

float grain(vec2 at) { return fract(52.98 * fract(dot(at, vec2(0.0671, 0.00584)))) - 0.5; }

void main() {
    vec3 extra = vec3(0.0);
    if (post.glow > 0.0) extra = (texture(glow_near, in_at).rgb + texture(glow_far, in_at).rgb) * post.glow;
    vec3 c;
    if (post.samples > 1u) {
        // Each sample by itself: an edge against the sun stays an edge.
        vec2 o = post.pixel * 0.5;
        c = film(texture(scene, in_at + vec2(-o.x, -o.y)).rgb + extra) + film(texture(scene, in_at + vec2(o.x, -o.y)).rgb + extra) +
            film(texture(scene, in_at + vec2(-o.x, o.y)).rgb + extra) + film(texture(scene, in_at + o).rgb + extra);
        c *= 0.25;
    } else {
        c = film(texture(scene, in_at).rgb + extra);
    }
    vec2 from_middle = in_at - 0.5;
    c *= 1.0 - 0.28 * dot(from_middle, from_middle);
    vec3 shown = post.is_linear != 0u ? c : encode(c) + grain(gl_FragCoord.xy) * (1.0 / 255.0);
    out_colour = vec4(shown, 1.0);
}
