// SPDX-License-Identifier: MIT
// Shadows: the sun's picture has what is nearest to it; what is behind that is dark.
layout(binding = 8) uniform sampler2D sun_picture;

// 1 in the sun to 0 in the shadow.
float sun_on(vec3 relative, vec3 normal) {
    // From a little before the surface, or it would lie in a shadow of its own.
    vec4 at = frame.shadow * vec4(relative + normal * frame.shadow_size.w, 1.0);
    vec2 edge = abs(at.xy);
    float fade = smoothstep(0.8, 1.0, max(edge.x, edge.y));
    if (fade >= 1.0 || at.z <= 0.0 || at.z >= 1.0) return 1.0;
    vec2 texel = (at.xy * 0.5 + 0.5) * frame.shadow_size.x - 0.5;
    vec2 part = fract(texel);
    vec4 near = textureGather(sun_picture, (floor(texel) + 1.0) * frame.shadow_size.y);
    vec4 lit = vec4(lessThanEqual(near, vec4(at.z + frame.shadow_size.z)));
    // The four are the lower left, lower right, upper right and upper left of a square.
    float sun = mix(mix(lit.w, lit.z, part.x), mix(lit.x, lit.y, part.x), part.y);
    return mix(sun, 1.0, fade);
}
