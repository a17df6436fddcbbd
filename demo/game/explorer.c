// SPDX-License-Identifier: MIT
// How an explorer is steered and moves.

#include "explorer.h"

#include "../planet/angle.h"

// Metres a tick at full pace: on foot, in flight near the ground, and more for each metre above it.
#define WALK_SPEED 0.1
#define FLY_SPEED 0.2
#define FLY_SPEED_PER_METRE 0.01

// Share of its height that a climb adds or takes a tick at most: from orbit to the ground in five seconds.
#define CLIMB_SHARE 0.02
#define CLIMB_SPEED 0.05

// Metres of the eyes above the ground: on foot, at least in flight, and where a flight begins.
#define EYE_HEIGHT 1.8
#define FLY_MIN 2.5
#define FLY_START 40

// Who is this high looks down at the planet, nearly straight.
#define HIGH_ALTITUDE 400
#define PITCH_HIGH (-15000)
#define PITCH_LOW (-900)

static int32_t within(int32_t value, int32_t low, int32_t high) {
    return value < low ? low : value > high ? high : value;
}

static double ground_below(uint64_t seed, vec3d up) {
    int32_t height = terrain_height_towards(seed, up) + 1;
    return height > TERRAIN_SEA_Y ? height : TERRAIN_SEA_Y;
}

// After many small turns both are still of length 1, and stand on each other.
static void straighten(explorer *e) {
    e->up = vec3d_normal(e->up, (vec3d){0, 1, 0});
    vec3d along = vec3d_sub(e->forward, vec3d_scale(e->up, vec3d_dot(e->forward, e->up)));
    // Any direction that is not up, where there was none.
    vec3d other = {e->up.y, -e->up.x, 0};
    if (vec3d_dot(other, other) < 0.01) other = (vec3d){0, e->up.z, -e->up.y};
    e->forward = vec3d_normal(along, vec3d_normal(other, (vec3d){1, 0, 0}));
}

void explorer_put(explorer *e, uint64_t seed, creature_home at, int32_t altitude) {
    e->up = sphere_direction(at.face, at.x + 0.5, at.z + 0.5);
    e->forward = (vec3d){0, 1, 0}; // north; at a pole any way
    straighten(e);
    e->ground = ground_below(seed, e->up);
    double above = altitude > 0 ? within(altitude, 0, PLANET_ALTITUDE_MAX) : FLY_START;
    e->altitude = e->ground + (e->mode == EXPLORER_WALKS ? EYE_HEIGHT : above);
    e->pitch = e->altitude - e->ground > HIGH_ALTITUDE ? PITCH_HIGH : PITCH_LOW;
}

void explorer_turn(explorer *e, int32_t turn) {
    double sine = 0, cosine = 0;
    angle_of((double)turn / 65536, &sine, &cosine);
    vec3d right = vec3d_cross(e->forward, e->up);
    e->forward = vec3d_add(vec3d_scale(e->forward, cosine), vec3d_scale(right, sine));
}

bool explorer_command(explorer *e, uint64_t seed, const nb_input_event *command) {
    const int32_t *words = command->payload.i32;
    if (command->code == PLANET_STEER) {
        e->turn = within(words[1], -PLANET_TURN_MAX, PLANET_TURN_MAX);
        e->look = within(words[2], -PLANET_TURN_MAX, PLANET_TURN_MAX);
        e->pace = within(words[3], -PLANET_PACE_MAX, PLANET_PACE_MAX);
    } else if (command->code == PLANET_MOVE) {
        e->climb = within(words[1], -PLANET_PACE_MAX, PLANET_PACE_MAX);
        e->mode = (uint32_t)within(words[2], 0, EXPLORER_MODE_COUNT - 1);
    } else if (command->code == PLANET_TELEPORT && words[1] >= 0 && words[1] < SPHERE_FACE_COUNT) {
        uint32_t place = (uint32_t)words[2] % 0x10000000u;
        creature_home at = {(uint32_t)words[1], (int32_t)(place % SPHERE_FACE_COLUMNS),
                            (int32_t)(place / 65536 % SPHERE_FACE_COLUMNS)};
        explorer_put(e, seed, at, words[3]);
        return true;
    }
    return false;
}

// Ahead by so many metres of its own height's circle: both directions turn around the planet's middle.
static void advance(explorer *e, double metres) {
    double sine = 0, cosine = 0;
    // 2 pi times the radius is a full turn.
    angle_of(metres / (6.283185307179586 * (SPHERE_RADIUS + e->altitude)), &sine, &cosine);
    vec3d up = e->up;
    e->up = vec3d_add(vec3d_scale(up, cosine), vec3d_scale(e->forward, sine));
    e->forward = vec3d_sub(vec3d_scale(e->forward, cosine), vec3d_scale(up, sine));
    straighten(e);
}

static void fly(explorer *e, double above) {
    double share = (double)e->climb / PLANET_PACE_MAX;
    e->altitude += share * (CLIMB_SHARE * above + CLIMB_SPEED);
    double low = e->ground + FLY_MIN, high = PLANET_ALTITUDE_MAX;
    if (e->altitude < low) e->altitude += (low - e->altitude) / 4;
    if (e->altitude > high) e->altitude = high;
}

void explorer_step(explorer *e, uint64_t seed) {
    bool is_walking = e->mode == EXPLORER_WALKS;
    double above = e->altitude - e->ground;
    double speed = is_walking ? WALK_SPEED : FLY_SPEED + FLY_SPEED_PER_METRE * (above > 0 ? above : 0);
    explorer_turn(e, e->turn);
    e->pitch = within(e->pitch + e->look, -PLANET_PITCH_MAX, PLANET_PITCH_MAX);
    advance(e, speed * e->pace / PLANET_PACE_MAX);
    e->ground = ground_below(seed, e->up);
    if (is_walking)
        e->altitude += (e->ground + EYE_HEIGHT - e->altitude) / 6; // steps are not felt as jolts
    else
        fly(e, above);
}

vec3d explorer_position(const explorer *e) { return vec3d_scale(e->up, SPHERE_RADIUS + e->altitude); }

vec3d explorer_gaze(const explorer *e) {
    double sine = 0, cosine = 0;
    angle_of((double)e->pitch / 65536, &sine, &cosine);
    return vec3d_add(vec3d_scale(e->forward, cosine), vec3d_scale(e->up, sine));
}

static nb_input_event command_of(uint32_t code, uint32_t player, int32_t a, int32_t b, int32_t c) {
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = code};
    event.payload.i32[0] = (int32_t)player;
    event.payload.i32[1] = a;
    event.payload.i32[2] = b;
    event.payload.i32[3] = c;
    return event;
}

nb_input_event planet_steer(uint32_t player, int32_t turn, int32_t look, int32_t pace) {
    return command_of(PLANET_STEER, player, turn, look, pace);
}

nb_input_event planet_move(uint32_t player, int32_t climb, explorer_mode mode) {
    return command_of(PLANET_MOVE, player, climb, (int32_t)mode, 0);
}

nb_input_event planet_teleport(uint32_t player, creature_home at, int32_t altitude) {
    return command_of(PLANET_TELEPORT, player, (int32_t)at.face, at.x | at.z * 65536, altitude);
}
