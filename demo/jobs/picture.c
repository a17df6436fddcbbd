// SPDX-License-Identifier: MIT
// The nine kinds of parallel work as modules of an engine.

#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "picture_job.h"

// The numbers of a whole frame.
static nb_result end_picture(const nb_context *context, void *user) {
    (void)context;
    picture *p = user;
    p->last = p->now;
    return NB_OK;
}

// All of them, for frames that do not know which are in use.
static void pack_all_materials(picture *p) {
    materials_output all = {.block_count = 0};
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) all.draw_counts[m] = 1;
    materials_pack(&all, p->made.materials);
}

nb_result picture_attach(picture *p, nb_engine *engine, const planet *land, const streamer *chunks) {
    memset(p, 0, sizeof *p);
    p->planet = land;
    p->streamer = chunks;
    p->world = land->world;
    pack_all_materials(p);
    for (uint32_t i = 0; i < HOME_COUNT; ++i) home_lights_place(land->seed, land->homes[i], p->lights[i]);
    p->upload = calloc(chunks->ring.quad_count_max, sizeof *p->upload);
    nb_snapshots *snapshots = nb_engine_snapshots(engine);
    if (p->upload == NULL || snapshots == NULL) return NB_ERR_MEMORY;
    nb_snapshot_region_desc region = {.name = "particles", .base = p->particles, .size_bytes = sizeof p->particles};
    nb_result result = nb_snapshots_region_add(snapshots, &region, &p->particles_region);
    static const nb_module_desc *const kinds[PICTURE_KIND_COUNT] = {
        &work_pose_module,    &work_particles_module, &work_visibility_module,
        &work_lod_module,     &work_lights_module,    &work_materials_module,
        &work_queries_module, &work_upload_module,    &work_occlusion_module,
    };
    for (uint32_t i = 0; i < PICTURE_KIND_COUNT && result == NB_OK; ++i) {
        nb_module_desc module = *kinds[i];
        module.user = p;
        if (i + 1 == PICTURE_KIND_COUNT) module.handlers[NB_PHASE_FRAME_END] = end_picture;
        result = nb_engine_module_attach(engine, &module, NULL);
    }
    return result;
}

void picture_end(picture *p) {
    free(p->upload);
    p->upload = NULL;
}
