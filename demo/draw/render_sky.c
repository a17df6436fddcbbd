// SPDX-License-Identifier: MIT
// The sky behind everything: air, sun, stars.

#include "render_internal.h"

typedef struct dome_constants {
    uint32_t rings, segments, steps, reserved;
} dome_constants;

static nb_result record_sky(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    dome_constants dome = {r->level.rings, r->level.segments, r->level.steps, 0};
    render_bind(r, command, PIPELINE_DOME);
    nb_gpu_push(command, &dome, sizeof dome);
    nb_gpu_draw(command, dome.rings * dome.segments * 6, 1, 0, 0);
    render_bind(r, command, PIPELINE_STARS);
    // A star is a pixel of the picture, which may be two by two of the scene.
    nb_gpu_draw(command, r->level.stars, r->level.scale > 4 ? 4 : 1, 0, 0);
    return NB_OK;
}

nb_result render_sky_add(render *r) {
    nb_graph_pass pass;
    r->stats.triangle_count += r->level.rings * r->level.segments * 2;
    return render_pass_add(r, "sky", record_sky, 1, NB_GPU_ACCESS_DEPTH_READ, &pass);
}
