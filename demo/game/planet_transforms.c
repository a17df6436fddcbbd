// SPDX-License-Identifier: MIT
// Bodies and the eye between two ticks.

#include "planet_transforms.h"

#include "nebula/rollback.h"

#include "../planet/sun.h"

// Rows of a task: as many as those of a tick, which take as long.
#define BODY_GRAIN 256

// Animals nearer than this, in metres, have their feet put on the ground one by one.
#define FEET_DISTANCE 48.0

// Half the angle the camera sees.
#define EYE_TAN_X 0.9f
#define EYE_TAN_Y 0.50625f

// The nearest that is drawn: this, and a share of the height.
#define EYE_NEAR 0.25
#define EYE_NEAR_SHARE 0.05

static vec3d blend(vec3d before, vec3d now, double alpha) {
    return vec3d_add(before, vec3d_scale(vec3d_sub(now, before), alpha));
}

typedef struct drawing {
    const planet *planet;
    double alpha;
    vec3d eye;
} drawing;

static vec3d place_of_row(uint8_t face, int32_t x, int32_t y, int32_t z) {
    return sphere_position(face, (double)x / TERRAIN_ONE, (double)z / TERRAIN_ONE, (double)y / TERRAIN_ONE);
}

// Feet of animals that are near stand on the ground below each of them.
static void put_feet(const planet *p, vec3d place, pose_body *body) {
    double ground = vec3d_length(place) - SPHERE_RADIUS;
    for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) {
        vec3 foot = vec3_add(body->feet, pose_leg_offset(body, leg));
        vec3d towards = vec3d_normal((vec3d){foot.x, foot.y, foot.z}, place);
        double below = terrain_height_towards(p->seed, towards) + 1 - ground;
        body->ground[leg] = (float)(below < -POSE_REACH ? -POSE_REACH : below > POSE_REACH ? POSE_REACH : below);
    }
}

static void draw_rows(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    const drawing *d = user;
    nb_store *w = d->planet->world;
    nb_table t = d->planet->creatures;
    const uint8_t *face = NB_STORE_ROWS(w, t, CREATURE_FACE, uint8_t);
    const uint8_t *face0 = NB_STORE_ROWS_PREVIOUS(w, t, CREATURE_FACE, uint8_t);
    const int32_t *x = NB_STORE_ROWS(w, t, CREATURE_X, int32_t),
                  *x0 = NB_STORE_ROWS_PREVIOUS(w, t, CREATURE_X, int32_t);
    const int32_t *y = NB_STORE_ROWS(w, t, CREATURE_Y, int32_t),
                  *y0 = NB_STORE_ROWS_PREVIOUS(w, t, CREATURE_Y, int32_t);
    const int32_t *z = NB_STORE_ROWS(w, t, CREATURE_Z, int32_t),
                  *z0 = NB_STORE_ROWS_PREVIOUS(w, t, CREATURE_Z, int32_t);
    const uint32_t *id = NB_STORE_ROWS(w, t, CREATURE_ID, uint32_t);
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    vec3 *place = NB_STORE_RANGE_WRITE(w, t, CREATURE_PLACE, vec3, first, count);
    pose_body *body = NB_STORE_RANGE_WRITE(w, t, CREATURE_BODY, pose_body, first, count);
    for (uint32_t row = first; row < first + count; ++row) {
        vec3d before = place_of_row(face0[row], x0[row], y0[row], z0[row]);
        vec3d now = place_of_row(face[row], x[row], y[row], z[row]), at = blend(before, now, d->alpha);
        vec3d up = vec3d_normal(at, (vec3d){0, 1, 0}), step = vec3d_sub(now, before);
        // Along the ground; who stands looks along its face.
        step = vec3d_sub(step, vec3d_scale(up, vec3d_dot(step, up)));
        vec3d along = sphere_axis(face[row], 0);
        along = vec3d_sub(along, vec3d_scale(up, vec3d_dot(along, up)));
        bool is_moving = vec3d_length(step) > 1e-3;
        place[row] = vec3_of(at);
        body[row] =
            (pose_body){.feet = place[row],
                        .up = vec3_of(up),
                        .forward = vec3_of(vec3d_normal(is_moving ? step : along, (vec3d){1, 0, 0})),
                        .phase = (float)((x[row] + z[row]) % (64 * TERRAIN_ONE)) / TERRAIN_ONE + (float)(id[row] % 16),
                        .is_moving = is_moving ? 1.0f : 0.0f};
        vec3d line = vec3d_sub(at, d->eye);
        if (vec3d_dot(line, line) < FEET_DISTANCE * FEET_DISTANCE) put_feet(d->planet, at, &body[row]);
    }
}

// --- corrections ---

static void place_of(const explorer *e, float out[3]) {
    vec3d at = explorer_position(e);
    out[0] = (float)at.x;
    out[1] = (float)at.y;
    out[2] = (float)at.z;
}

nb_result planet_predict(const nb_context *context, void *user) {
    planet *p = user;
    (void)context;
    const explorer *explorers = NB_STORE_ROWS(p->world, p->explorers, 0, explorer);
    NB_STORE_EACH_ROW(row, p->world, p->explorers) place_of(&explorers[row], p->predicted[row]);
    return NB_OK;
}

nb_result planet_correct(const nb_context *context, void *user) {
    planet *p = user;
    uint64_t rollback_count = nb_engine_rollback_stats(context->engine).rollback_count;
    if (rollback_count == p->rollback_count) return NB_OK;
    p->rollback_count = rollback_count;
    const explorer *explorers = NB_STORE_ROWS(p->world, p->explorers, 0, explorer);
    NB_STORE_EACH_ROW(row, p->world, p->explorers) {
        float after[3];
        place_of(&explorers[row], after);
        nb_smooth_correct(&p->smooth, row, p->predicted[row], after);
    }
    return NB_OK;
}

// --- the eye ---

static uint32_t nearest_home(const planet *p, vec3d up) {
    uint32_t best = 0;
    double nearest = -2;
    for (uint32_t i = 0; i < HOME_COUNT; ++i) {
        double cosine = vec3d_dot(home_direction(p->homes[i]), up);
        if (cosine > nearest) best = i, nearest = cosine;
    }
    return best;
}

// From the nearest that is drawn to behind the horizon, with the mountains there.
static void set_depths(double altitude, double above, camera *c) {
    double high = SPHERE_RADIUS + altitude, limb = SPHERE_RADIUS + RELIEF_MIN, top = SPHERE_RADIUS + TERRAIN_Y_END;
    double to_limb = high > limb ? sqrt(high * high - limb * limb) : 0;
    c->near = (float)(EYE_NEAR + EYE_NEAR_SHARE * (above > 0 ? above : 0));
    c->far = (float)(to_limb + sqrt(top * top - limb * limb));
}

// Where the camera is between two ticks; corrections are blended in.
static planet_eye eye_between(planet *p, const nb_context *context) {
    double alpha = context->time->alpha;
    const explorer *now = NB_STORE_ROWS(p->world, p->explorers, 0, explorer) + p->player;
    const explorer *before = NB_STORE_ROWS_PREVIOUS(p->world, p->explorers, 0, explorer) + p->player;
    vec3d exact = blend(explorer_position(before), explorer_position(now), alpha);
    float at[3] = {(float)exact.x, (float)exact.y, (float)exact.z}, smooth[3] = {at[0], at[1], at[2]};
    nb_smooth_advance(&p->smooth, context->time->delta_ns);
    nb_smooth_apply(&p->smooth, p->player, smooth);
    // Only what the correction adds: a float is too coarse for the place itself.
    vec3d moved = {smooth[0] - at[0], smooth[1] - at[1], smooth[2] - at[2]}, position = vec3d_add(exact, moved);
    vec3d gaze = blend(explorer_gaze(before), explorer_gaze(now), alpha), up = vec3d_normal(position, now->up);
    uint64_t tick = nb_loop_tick_count(nb_engine_loop(context->engine));
    vec3d sun = sun_direction((double)tick + alpha);
    planet_eye eye = {.position = position,
                      .sun = vec3_of(sun),
                      .altitude = vec3d_length(position) - SPHERE_RADIUS,
                      .ground = now->ground,
                      .home = nearest_home(p, up),
                      .journey = now->journey,
                      .tick = tick};
    double light = vec3d_dot(up, sun) * 4 + 0.5;
    eye.daylight = (float)(light < 0 ? 0 : light > 1 ? 1 : light);
    eye.camera = (camera){.position = vec3_of(position),
                          .forward = vec3_normal(vec3_of(gaze), vec3_of(now->forward)),
                          .up = vec3_of(up),
                          .tan_half_x = EYE_TAN_X,
                          .tan_half_y = EYE_TAN_Y};
    set_depths(eye.altitude, eye.altitude - eye.ground, &eye.camera);
    return eye;
}

nb_result planet_transform(const nb_context *context, void *user) {
    planet *p = user;
    planet_eye eye = eye_between(p, context);
    drawing d = {.planet = p, .alpha = context->time->alpha, .eye = eye.position};
    nb_parallel_desc rows = {
        .run = draw_rows, .user = &d, .count = nb_store_row_count(p->world, p->creatures), .grain = BODY_GRAIN};
    if (nb_parallel_for(context->scheduler, &rows, NULL) != NB_OK) return NB_ERR_OS;
    *NB_STORE_SINGLETON_WRITE(p->world, p->eye, 0, planet_eye) = eye;
    return NB_OK;
}
