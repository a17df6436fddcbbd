// SPDX-License-Identifier: MIT
// Levels of detail and impostors.

#include "work_lod.h"

#include <string.h>

#include "picture_job.h"

// Shares of a border's distance beyond which a level changes: to a coarser one, and to a finer one.
#define COARSER_SHARE 1.1f
#define FINER_SHARE 0.9f

// The level at a distance, where every border stands at `share` of its place.
static uint32_t level_at(float distance, float border, float share) {
    uint32_t level = 0;
    for (border *= share; level < LOD_LEVEL_IMPOSTOR && distance > border; border *= 2) ++level;
    return level;
}

static uint32_t next_level(uint32_t old, float distance, float border) {
    uint32_t coarsest = level_at(distance, border, FINER_SHARE), finest = level_at(distance, border, COARSER_SHARE);
    if (old > coarsest) return coarsest;
    return old < finest ? finest : old;
}

// Eighths of a circle, by comparing alone.
static uint32_t direction_of(float x, float z) {
    float size_x = x < 0 ? -x : x, size_z = z < 0 ? -z : z;
    // tan(22.5 degrees): what lies nearer to an axis than that belongs to it.
    const float slope = 0.41421357f;
    if (size_z <= size_x * slope) return x >= 0 ? 0 : 4;
    if (size_x <= size_z * slope) return z >= 0 ? 2 : 6;
    if (z >= 0) return x >= 0 ? 1 : 3;
    return x < 0 ? 5 : 7;
}

void lod_run(const lod_input *input, uint32_t first, uint32_t count, lod_output *out) {
    for (uint32_t i = first; i < first + count; ++i) {
        const pose_body *body = &input->bodies[i];
        vec3 line = vec3_sub(input->viewer, body->feet), right = vec3_cross(body->forward, body->up);
        float distance = vec3_length(line);
        uint32_t level = input->levels != NULL ? next_level(input->levels[i], distance, input->distance_1)
                                               : level_at(distance, input->distance_1, 1);
        out->levels[out->level_count++] = (uint8_t)level;
        if (level == LOD_LEVEL_IMPOSTOR)
            out->impostors[out->impostor_count++] =
                (lod_impostor){i, direction_of(vec3_dot(line, body->forward), vec3_dot(line, right))};
    }
}

void lod_append(lod_output *whole, const lod_output *part) {
    memcpy(whole->levels + whole->level_count, part->levels, part->level_count);
    memcpy(whole->impostors + whole->impostor_count, part->impostors, part->impostor_count * sizeof(lod_impostor));
    whole->level_count += part->level_count;
    whole->impostor_count += part->impostor_count;
}

// --- in every frame ---

static nb_result lod_job(const nb_context *context, void *user) {
    const picture *p = user;
    job_share mine = job_share_of(context, job_creature_count(context, p));
    nb_table creatures = p->planet->creatures;
    lod_input input = {.bodies = NB_STORE_VIEW(context->snapshot, p->world, creatures, CREATURE_BODY, pose_body),
                       .levels = NB_STORE_VIEW(context->snapshot, p->world, creatures, CREATURE_LEVEL, uint8_t),
                       .viewer = job_eye(context, p)->camera.position,
                       .distance_1 = job_finest_distance(context)};
    if (p->is_restarted) input.levels = NULL;
    uint32_t *count = job_output(context, sizeof *count);
    lod_output out = {.levels = job_output(context, mine.count),
                      .impostors = job_output(context, mine.count * sizeof(lod_impostor))};
    if (count == NULL || out.levels == NULL || out.impostors == NULL) return NB_ERR_MEMORY;
    lod_run(&input, mine.first, mine.count, &out);
    *count = out.impostor_count;
    return NB_OK;
}

// Nothing moves rows between the snapshot of this frame and here: the levels belong to the same ones.
static nb_result lod_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint32_t *count = merge_note(context, p, outputs, &size_bytes);
    const uint8_t *levels = nb_output_list_next(outputs, count, NULL);
    job_share mine = job_share_of(context, job_creature_count(context, p));
    if (merge_is_of_now(context) && mine.count != 0) {
        uint8_t *own =
            NB_STORE_RANGE_WRITE(p->world, p->planet->creatures, CREATURE_LEVEL, uint8_t, mine.first, mine.count);
        memcpy(own + mine.first, levels, mine.count);
    }
    const lod_impostor *impostors = nb_output_list_next(outputs, levels, NULL);
    memcpy(p->made.impostors + p->now.impostor_count, impostors, *count * sizeof *impostors);
    p->now.impostor_count += *count;
    return NB_OK;
}

const nb_module_desc work_lod_module = {.name = "detail", .parallel = lod_job, .merge = lod_merge, .job_count = 2};
