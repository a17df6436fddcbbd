// SPDX-License-Identifier: MIT
// The air: it takes light away and scatters it, blue most. All of it is thinner by e every AIR_HEIGHT metres.
const float RADIUS = 2607.5945876;
const float AIR_HEIGHT = 48.0;
const float AIR_TOP = 330.0;
// Light of each colour that is scattered on the way straight up, as an exponent, and by haze of every colour.
const vec3 AIR_DEPTH = vec3(0.050, 0.118, 0.285);
const float HAZE_DEPTH = 0.030;
const vec3 SUN_LIGHT = vec3(1.0, 0.955, 0.88) * 3.4;

float air_density(float height) { return exp2(-height * (1.442695 / AIR_HEIGHT)); }

// How low the horizon lies below the level, as a sine.
float horizon_dip(float height) {
    float q = RADIUS / (RADIUS + max(height, 0.0));
    return sqrt(max(1.0 - q * q, 0.0));
}

// Sunlight that gets to a height; `rise` is the sine of how high the sun stands there. Near the horizon its way through
// the air is some fifteen times as long, and it goes down softly.
vec3 sun_at(float height, float rise) {
    float dip = horizon_dip(height), low = max(rise + 0.3 * dip, 0.0);
    // More of it than there is: evenings are to be red high up, too.
    float way = air_density(height * 0.4) * (0.55 / (low + 0.05) + 0.16 / (low * low + 0.03) - 0.3);
    return exp(-(AIR_DEPTH + HAZE_DEPTH) * way) * smoothstep(-0.07, 0.09, rise + dip);
}

// Light of the whole sky by day, at dusk and by night, on what looks straight up.
vec3 sky_light(float rise) {
    float day = smoothstep(-0.20, 0.35, rise);
    float dusk = smoothstep(-0.25, -0.02, rise) * (1.0 - smoothstep(0.0, 0.35, rise));
    return vec3(0.012, 0.017, 0.034) + day * vec3(0.26, 0.40, 0.66) + dusk * vec3(0.10, 0.05, 0.06);
}

float phase_air(float cosine) { return 0.75 + 0.75 * cosine * cosine; }

// Haze scatters forward: bright around the sun.
float phase_haze(float cosine) {
    float d = 1.36 - 1.20 * cosine;
    return 0.22 * inversesqrt(d * d * d);
}

struct air_veil {
    vec3 light;   // that comes from the air between the eye and a point
    vec3 through; // share of the point's own light that gets through
};

// What a place near the ground gets from above; found once, used for all that is there.
struct place_light {
    float rise; // sine of how high the sun stands
    vec3 sun, sky;
};

place_light light_at(vec3 away, float height) {
    place_light l;
    l.rise = dot(away, frame.sun.xyz);
    l.sun = SUN_LIGHT * sun_at(max(height, 0.0), l.rise);
    l.sky = sky_light(l.rise);
    return l;
}

// The air between the camera and a point near the ground, without a loop: it is found for each vertex.
air_veil veil_to(vec3 relative, float height, place_light here) {
    float far = length(relative);
    float a = frame.camera.w, b = max(height, 0.0);
    // From above the air only the part within counts.
    float inside = far * clamp((AIR_TOP - b) / max(a - b, AIR_TOP - b), 0.0, 1.0);
    float top = min(max(a, 0.0), AIR_TOP), fall = top - b;
    float mean = abs(fall) < 2.0 ? air_density(b) : (air_density(b) - air_density(top)) * AIR_HEIGHT / fall;
    vec3 depth = (AIR_DEPTH + HAZE_DEPTH) * (mean * inside * frame.clear.w / AIR_HEIGHT);
    float toward = dot(relative, frame.sun.xyz) / max(far, 1e-3);
    air_veil veil;
    veil.through = exp(-depth);
    vec3 bright = here.sun * (phase_air(toward) * 0.16 + phase_haze(toward) * 0.10) + here.sky * 0.22;
    veil.light = bright * (1.0 - veil.through) * vec3(0.62, 0.92, 1.25);
    return veil;
}

// Light on a surface from all around, and straight from the sun. `open` is how much of its surroundings is free, 0 to 1.
vec3 light_around(vec3 normal, vec3 away, float open, place_light here) {
    float level = 0.74 + 0.26 * dot(normal, away);
    // Light that the ground throws back.
    vec3 back = here.sun * (max(here.rise, 0.0) * 0.11);
    return (here.sky * level + back) * open;
}

vec3 light_straight(vec3 normal, float open, place_light here) {
    return here.sun * (max(dot(normal, frame.sun.xyz), 0.0) * (0.5 + 0.5 * open));
}

vec3 light_on(vec3 normal, vec3 away, float open, place_light here) {
    return light_around(normal, away, open, here) + light_straight(normal, open, here);
}
