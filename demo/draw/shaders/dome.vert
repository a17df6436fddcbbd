#version 460
// SPDX-License-Identifier: MIT
// The sky as rings around the point straight below, close together at the horizon, where the air is thick. What changes
// slowly is found for each corner.
#extension GL_GOOGLE_include_directive : require
#include "frame.glsl"
#include "air.glsl"

layout(push_constant) uniform Dome {
    uint rings, segments, steps;
} dome;

layout(location = 0) out vec3 out_way;
layout(location = 1) out vec3 out_air;
layout(location = 2) out vec3 out_haze;
layout(location = 3) out vec3 out_through;
layout(location = 4) flat out vec3 out_sun; // its colour from where the camera is

const float PI = 3.14159265;

// No branch here depends on what changes from frame to frame and nothing else: drivers that draw on the CPU would compile
// the shader anew for each value.

// The angle from straight down of a ring, 0 to 1.
float ring_angle(float ring, float from_middle) {
    float horizon = asin(clamp(RADIUS / from_middle, 0.0, 1.0));
    float top = mix(horizon + 1.0, asin(min((RADIUS + AIR_TOP) / from_middle, 1.0)), from_middle > RADIUS + AIR_TOP);
    float first = max(horizon - 0.10 * (top - horizon) - 0.01, 0.0);
    if (ring > 0.75) return mix(top, PI, (ring - 0.75) * 4.0);
    float part = ring * (1.0 / 0.75);
    return mix(first, top, part * part * 0.6 + part * 0.4);
}

void air_along(vec3 way, float first, float last) {
    vec3 air = vec3(0.0), haze = vec3(0.0);
    float depth = 0.0, part = (last - first) / float(dome.steps);
    for (uint i = 0u; i < dome.steps; ++i) {
        vec3 place = frame.camera.xyz + way * (first + (float(i) + 0.5) * part);
        float from_middle = length(place), height = max(from_middle - RADIUS, 0.0);
        float here = air_density(height) * part / AIR_HEIGHT;
        vec3 through = exp(-(AIR_DEPTH + HAZE_DEPTH) * (depth + 0.5 * here));
        float rise = dot(place, frame.sun.xyz) / from_middle;
        vec3 light = (sun_at(height, rise) + sky_light(rise) * 0.06) * through * here;
        air += light * AIR_DEPTH;
        haze += light * HAZE_DEPTH;
        depth += here;
    }
    out_air = air * SUN_LIGHT;
    out_haze = haze * SUN_LIGHT;
    out_through = exp(-(AIR_DEPTH + HAZE_DEPTH) * depth);
}

void main() {
    uint quad = uint(gl_VertexIndex) / 6u, n = uint(gl_VertexIndex) % 6u;
    uint slot = n < 3u ? n : n == 3u ? 2u : n == 4u ? 1u : 3u;
    uvec2 at = uvec2(quad % dome.segments + (slot & 1u), quad / dome.segments + (slot >> 1));
    float from_middle = max(length(frame.camera.xyz), RADIUS + 1.0);
    vec3 away = normalize(frame.camera.xyz);
    vec3 other = mix(vec3(1, 0, 0), vec3(0, 1, 0), bvec3(abs(away.y) < 0.9));
    vec3 flat_sun = frame.sun.xyz - away * dot(away, frame.sun.xyz);
    vec3 x = normalize(mix(cross(away, other), flat_sun, bvec3(dot(flat_sun, flat_sun) > 1e-4)));
    vec3 y = cross(away, x);
    float angle = ring_angle(float(at.y) / float(dome.rings), from_middle);
    float turn = float(at.x) * (2.0 * PI / float(dome.segments));
    vec3 way = -away * cos(angle) + (x * cos(turn) + y * sin(turn)) * sin(angle);

    // Where the way enters the air and leaves it; the planet itself is drawn over what lies behind it.
    float along = -dot(frame.camera.xyz, way), square = from_middle * from_middle - along * along;
    float half_way = sqrt(max((RADIUS + AIR_TOP) * (RADIUS + AIR_TOP) - square, 0.0));
    air_along(way, max(along - half_way, 0.0), max(along + half_way, 0.0));
    out_way = way;
    out_sun = sun_at(max(frame.camera.w, 0.0), dot(away, frame.sun.xyz));
    gl_Position = frame.clip * vec4(way, 0.0);
}
