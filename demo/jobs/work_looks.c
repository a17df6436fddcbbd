// SPDX-License-Identifier: MIT
// Where animals look.

#include "work_looks.h"

#include <string.h>

// The pull that turns a head by seven tenths of the way: that of one animal between five and six metres away.
#define PULL_MOST 0.25f

// How much more an explorer pulls than an animal.
#define EXPLORER_PULL 4.0f

// Nearer than this many metres the explorer pulls less and less again, as QUERY_PULL_NEAR.
#define EXPLORER_NEAR 1.0f

// The cosines of 70 and 110 degrees from straight ahead: up to the first a head follows, from the second on it turns
// back, until it looks ahead while something is right behind it. Else it would jump from one side to the other there.
#define FOLLOW_COSINE 0.3420201f
#define LEAVE_COSINE -0.3420201f

// --- questions ---

static vec3d head_at(const pose_body *body) {
    vec3 head = vec3_add(body->feet, vec3_scale(body->up, LOOK_EYE_HEIGHT));
    return (vec3d){head.x, head.y, head.z};
}

static bool is_near(const looks_input *input, uint32_t row) {
    vec3d line = vec3d_sub(input->eye, head_at(&input->bodies[row]));
    return vec3d_dot(line, line) < (double)LOOK_REACH * LOOK_REACH;
}

uint32_t looks_ask(const looks_input *input, uint32_t first, uint32_t count, query *out) {
    // Those before count too: who is left out does not depend on how the animals are shared out.
    uint32_t asked = 0, near_count = 0;
    for (uint32_t row = 0; row < first; ++row) near_count += is_near(input, row);
    for (uint32_t row = first; row < first + count; ++row) {
        out[asked++] = (query){
            .kind = QUERY_NEAREST, .face = input->face[row], .x = input->x[row], .z = input->z[row], .self = row};
        if (near_count >= LOOK_SIGHTS_MAX || !is_near(input, row)) continue;
        out[asked++] =
            (query){.kind = QUERY_SIGHT, .self = row, .from = head_at(&input->bodies[row]), .to = input->eye};
        ++near_count;
    }
    return asked;
}

// --- pulls ---

// An axis of a face, along the ground.
static vec3 ground_axis(uint32_t face, uint32_t which, vec3 up) {
    vec3 axis = vec3_of(sphere_axis(face, which));
    return vec3_normal(vec3_sub(axis, vec3_scale(up, vec3_dot(axis, up))), axis);
}

static vec3 pull_of_others(const query *asked, const query_answer *answer, vec3 up) {
    vec3 along_x = vec3_scale(ground_axis(asked->face, 0, up), answer->pull_x);
    return vec3_add(along_x, vec3_scale(ground_axis(asked->face, 1, up), answer->pull_z));
}

static vec3 pull_of_explorer(const query *asked, const query_answer *answer) {
    vec3 line = vec3_of(vec3d_sub(asked->to, asked->from));
    float square = vec3_dot(line, line), share = 1 - square / (LOOK_REACH * LOOK_REACH);
    if (!answer->is_seen || share <= 0) return (vec3){0, 0, 0};
    return vec3_scale(line, EXPLORER_PULL * share * share / sqrtf(square + EXPLORER_NEAR * EXPLORER_NEAR));
}

// --- looks ---

// From a direction on the ground, of length 1, to one that a neck can turn to.
static void neck_turn(float *ahead, float *side) {
    if (*ahead >= FOLLOW_COSINE) return;
    float share = *ahead > LEAVE_COSINE ? 1 : (1 + *ahead) / (1 + LEAVE_COSINE);
    if (share < 0) share = 0;
    float sine = LOOK_SIDE_MAX * share * share * (3 - 2 * share);
    *ahead = sqrtf(1 - sine * sine);
    *side = *side < 0 ? -sine : sine;
}

vec3 look_of(const pose_body *body, vec3 pull) {
    vec3 right = vec3_cross(body->forward, body->up);
    float ahead = vec3_dot(pull, body->forward), side = vec3_dot(pull, right), rise = vec3_dot(pull, body->up);
    float square = ahead * ahead + side * side, length = sqrtf(square), calm = PULL_MOST * PULL_MOST;
    float share = length / sqrtf(square + calm), up = rise / sqrtf(rise * rise + square + calm);
    if (up > LOOK_RISE_MAX) up = LOOK_RISE_MAX;
    if (up < -LOOK_RISE_MAX) up = -LOOK_RISE_MAX;
    // A pull without a direction along the ground has no share either.
    ahead = length > 1e-6f ? ahead / length : 1;
    side = length > 1e-6f ? side / length : 0;
    neck_turn(&ahead, &side);
    ahead = 1 + (ahead - 1) * share;
    side *= share;
    float level = sqrtf(1 - up * up) / sqrtf(ahead * ahead + side * side);
    return (vec3){ahead * level, up, side * level};
}

void looks_run(const looks_input *input, uint32_t first, uint32_t count, const query *queries,
               const queries_output *answers, looks_output *out) {
    vec3 *looks = out->looks + out->look_count;
    memset(looks, 0, count * sizeof *looks);
    for (uint32_t i = 0; i < answers->answer_count; ++i) {
        const query *asked = &queries[i];
        const query_answer *answer = &answers->answers[i];
        vec3 *sum = &looks[asked->self - first], up = input->bodies[asked->self].up;
        bool is_sight = asked->kind == QUERY_SIGHT;
        *sum = vec3_add(*sum, is_sight ? pull_of_explorer(asked, answer) : pull_of_others(asked, answer, up));
    }
    for (uint32_t i = 0; i < count; ++i) looks[i] = look_of(&input->bodies[first + i], looks[i]);
    out->look_count += count;
}
