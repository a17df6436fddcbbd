// SPDX-License-Identifier: MIT
// Animation and inverse kinematics.

#include "work_pose.h"

#include <string.h>

#include "picture_job.h"

#define STEP_LENGTH 0.30f
#define STEP_HEIGHT 0.18f

// A leg that is fully straight or folded has no direction to bend in.
#define REACH_SHARE 0.999f
#define REACH_MIN 0.06f

pose_leg pose_solve(vec3 hip, vec3 foot, vec3 bend) {
    const float thigh = POSE_THIGH_LENGTH, shin = POSE_SHIN_LENGTH, longest = (thigh + shin) * REACH_SHARE;
    vec3 down = {0, -1, 0}, line = vec3_sub(foot, hip), along = vec3_normal(line, down);
    float reach = vec3_length(line);
    if (reach > longest) reach = longest;
    if (reach < REACH_MIN) reach = REACH_MIN;
    // The triangle of both bones over the line from hip to foot: how far along it the knee is, and how far beside it.
    float share = (thigh * thigh - shin * shin + reach * reach) / (2 * reach);
    float square = thigh * thigh - share * share, height = square > 0 ? sqrtf(square) : 0;
    vec3 side = vec3_sub(bend, vec3_scale(along, vec3_dot(bend, along)));
    vec3 out = vec3_normal(side, (vec3){along.y, -along.x, 0});
    pose_leg leg = {.hip = hip, .foot = vec3_add(hip, vec3_scale(along, reach))};
    leg.knee = vec3_add(vec3_add(hip, vec3_scale(along, share)), vec3_scale(out, height));
    return leg;
}

// Where a foot is in its step: -1 to 1 along it, and 0 to 1 above the ground. On the ground it goes back at an even
// speed, in the air it comes forward in an arc.
static void step_at(float phase, float *along, float *above) {
    float turn = phase - floorf(phase);
    float swing = (turn - 0.5f) * 2;
    *along = turn < 0.5f ? 1 - 4 * turn : 2 * swing - 1;
    *above = turn < 0.5f ? 0 : 4 * swing * (1 - swing);
}

// On a slope the body sinks with its lowest foot: legs bend more than they stretch.
static float sink_of(const pose_body *body) {
    float lowest = 0;
    for (uint32_t i = 0; i < POSE_LEG_COUNT; ++i) lowest = body->ground[i] < lowest ? body->ground[i] : lowest;
    return lowest;
}

static pose_leg leg_of(const pose_body *body, uint32_t number) {
    // Diagonal legs step together, as in a trot.
    float along = 0, above = 0;
    step_at(body->phase + (number == 0 || number == 3 ? 0.0f : 0.5f), &along, &above);
    vec3 level = vec3_add(body->feet, pose_leg_offset(body, number));
    vec3 hip = vec3_add(level, vec3_scale(body->up, POSE_HIP_HEIGHT + sink_of(body)));
    vec3 foot = vec3_add(level, vec3_scale(body->forward, along * STEP_LENGTH * body->is_moving));
    foot = vec3_add(foot, vec3_scale(body->up, body->ground[number] + above * STEP_HEIGHT * body->is_moving));
    // Knees of front legs point forward, those of hind legs back.
    return pose_solve(hip, foot, number < 2 ? body->forward : vec3_scale(body->forward, -1));
}

void pose_run(const pose_input *input, uint32_t first, uint32_t count, pose_output *out) {
    for (uint32_t i = first; i < first + count; ++i) {
        pose *made = &out->poses[out->pose_count++];
        for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) made->legs[leg] = leg_of(&input->bodies[i], leg);
    }
}

void pose_append(pose_output *whole, const pose_output *part) {
    memcpy(whole->poses + whole->pose_count, part->poses, part->pose_count * sizeof(pose));
    whole->pose_count += part->pose_count;
}

// --- in every frame ---

static nb_result pose_job(const nb_context *context, void *user) {
    const picture *p = user;
    job_share mine = job_share_of(context, job_creature_count(context, p));
    pose_input input = {NB_STORE_VIEW(context->snapshot, p->world, p->planet->creatures, CREATURE_BODY, pose_body)};
    pose_output out = {.poses = job_output(context, mine.count * sizeof(pose))};
    if (out.poses == NULL) return NB_ERR_MEMORY;
    pose_run(&input, mine.first, mine.count, &out);
    return NB_OK;
}

static nb_result pose_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const pose *poses = merge_note(context, p, outputs, &size_bytes);
    job_share mine = job_share_of(context, job_creature_count(context, p));
    memcpy(p->made.poses + mine.first, poses, mine.count * sizeof *poses);
    p->now.pose_count += mine.count;
    return NB_OK;
}

const nb_module_desc work_pose_module = {
    .name = "animation", .parallel = pose_job, .merge = pose_merge, .job_count = 4};
