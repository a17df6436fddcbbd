// SPDX-License-Identifier: MIT
// Smoke and dust, which cover what is behind them, then flames, which add their light.

#include "render_internal.h"

static uint32_t count_of(const render_frame *frame, uint32_t total, bool is_flame) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < total; ++i) count += (frame->particles[i].kind == RENDER_PARTICLE_FLAME) == is_flame;
    return count;
}

static render_list list_fill(render *r, const render_frame *frame, uint32_t total, bool is_flame) {
    render_list list = render_list_take(r, count_of(frame, total, is_flame), sizeof(render_sprite));
    render_sprite *next = (render_sprite *)list.span.memory;
    if (list.count == 0) return list;
    for (uint32_t i = 0; i < total; ++i) {
        const render_particle *p = &frame->particles[i];
        if ((p->kind == RENDER_PARTICLE_FLAME) != is_flame) continue;
        vec3 at = camera_relative(&r->camera, p->position);
        *next++ = (render_sprite){{at.x, at.y, at.z}, p->size, p->colour, (uint32_t)p->kind, {0, 0}};
    }
    return list;
}

void render_particles_prepare(render *r, const render_frame *frame) {
    uint32_t total = frame->particle_count < RENDER_PARTICLES_MAX ? frame->particle_count : RENDER_PARTICLES_MAX;
    r->stats.dropped_count += frame->particle_count - total;
    r->smoke = list_fill(r, frame, total, false);
    r->flames = list_fill(r, frame, total, true);
    r->stats.triangle_count += (r->smoke.count + r->flames.count) * 2;
}

static void draw_list(const render *r, nb_gpu_command *command, render_pipeline pipeline, const render_list *list) {
    if (list->count == 0) return;
    render_bind(r, command, pipeline);
    nb_gpu_set_span(command, BINDING_DATA, list->span);
    nb_gpu_draw(command, list->count * 6, 1, 0, 0);
}

static nb_result record_particles(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const render *r = (const render *)user;
    (void)bucket, (void)bucket_count;
    draw_list(r, command, PIPELINE_SMOKE, &r->smoke);
    draw_list(r, command, PIPELINE_FLAME, &r->flames);
    return NB_OK;
}

nb_result render_particles_add(render *r) {
    if (r->smoke.count == 0 && r->flames.count == 0) return NB_OK;
    nb_graph_pass pass;
    return render_pass_add(r, "particles", record_particles, 1, NB_GPU_ACCESS_DEPTH_READ, &pass);
}
