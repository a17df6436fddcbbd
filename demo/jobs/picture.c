// SPDX-License-Identifier: MIT
// Nine kinds of parallel work as modules: each job takes a share of the numbers, and each merge appends.

#include "picture.h"

#include <stdlib.h>
#include <string.h>

#include "nebula/hash.h"
#include "nebula/random.h"
#include "work_looks.h"
#include "work_upload.h"

// Where a frame takes nothing from those before: particles that are there after five seconds at this rate. None lives
// as long.
#define ANEW_STEPS 300u
#define ANEW_STEP_S (1.0f / 60)

// A share of `count` things for one job.
typedef struct share {
    uint32_t first, count;
} share;

static share share_of(const nb_context *context, uint32_t count) {
    uint32_t first = (uint32_t)((uint64_t)count * context->job_index / context->job_count);
    uint32_t end = (uint32_t)((uint64_t)count * (context->job_index + 1) / context->job_count);
    return (share){first, end - first};
}

// One block of outputs; NULL only where memory is at its end, which fails the job. At least a byte, so that a share of
// nothing has a block too.
static void *output(const nb_context *context, size_t size_bytes) {
    return nb_output_add(context, size_bytes != 0 ? size_bytes : 1);
}

static const planet_eye *eye_of(const nb_context *context, const picture *p) {
    return NB_VIEW(context->snapshot, p->world, p->planet->eye, 0, planet_eye);
}

static uint32_t creature_count(const nb_context *context, const picture *p) {
    return nb_view_row_count(context->snapshot, p->world, p->planet->creatures);
}

static uint32_t chunk_count(const nb_context *context, const picture *p) {
    return nb_view_row_count(context->snapshot, p->world, p->streamer->chunks);
}

// Whether a merge is the first of its kind, or of all, in this frame. That of the first job, as a rule; but that one
// may be late.
static bool is_first(const nb_context *context, uint64_t *frame_end) {
    bool is_new = *frame_end != context->frame_index + 1;
    *frame_end = context->frame_index + 1;
    return is_new;
}

// A merge: notes the bytes, which tell whether two runs made the same, and gives the first block. The first of a frame
// begins its numbers, by which the others append.
static const void *note(const nb_context *context, picture *p, const nb_outputs *outputs, size_t *size_bytes) {
    const void *first = NULL;
    if (is_first(context, &p->now_end)) p->now = (picture_numbers){.hash = p->now.hash};
    for (const void *block = nb_outputs_next(outputs, NULL, size_bytes); block != NULL;
         block = nb_outputs_next(outputs, block, size_bytes)) {
        p->now.hash = nb_hash64(block, *size_bytes, p->now.hash);
        if (first == NULL) first = block;
    }
    nb_outputs_next(outputs, NULL, size_bytes);
    return first;
}

// Whether rows are still where the jobs saw them. Where readers hold every slot the snapshot is that of a frame before.
static bool is_of_now(const nb_context *context) { return context->snapshot->info.frame == context->frame_index; }

// Counts a merge. The end of this frame where it was the last of all jobs and they saw this frame; else 0.
static uint64_t parts_end(const nb_context *context, picture_parts *parts) {
    if (is_first(context, &parts->frame_end)) parts->count = 0;
    bool is_whole = ++parts->count == context->job_count && is_of_now(context);
    return is_whole ? context->frame_index + 1 : 0;
}

// --- animation ---

static nb_result pose_job(const nb_context *context, void *user) {
    const picture *p = user;
    share mine = share_of(context, creature_count(context, p));
    pose_input input = {NB_VIEW(context->snapshot, p->world, p->planet->creatures, CREATURE_BODY, pose_body)};
    pose_output out = {.poses = output(context, mine.count * sizeof(pose))};
    if (out.poses == NULL) return NB_ERR_MEMORY;
    pose_run(&input, mine.first, mine.count, &out);
    return NB_OK;
}

static nb_result pose_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const pose *poses = note(context, p, outputs, &size_bytes);
    share mine = share_of(context, creature_count(context, p));
    memcpy(p->made.poses + mine.first, poses, mine.count * sizeof *poses);
    p->now.pose_count += mine.count;
    return NB_OK;
}

// --- particles ---

static vec3 up_at(vec3 place) { return vec3_normal(place, (vec3){0, 1, 0}); }

// The border of the finest level: a lower quality level draws coarser.
static float finest_distance(const nb_context *context) { return 8.0f * (float)(context->quality_level + 1); }

// The campfires of the nearest home send up sparks, and the first animals that are near and walk raise dust.
static uint32_t place_emitters(const nb_context *context, const picture *p, particle_emitter *emitters) {
    nb_table creatures = p->planet->creatures;
    const planet_eye *eye = eye_of(context, p);
    const pose_body *bodies = NB_VIEW(context->snapshot, p->world, creatures, CREATURE_BODY, pose_body);
    float reach = 2 * finest_distance(context);
    uint32_t count = 0, animals = creature_count(context, p);
    for (uint32_t i = 0; i < HOME_FIRES; ++i) {
        vec3 at = p->lights[eye->home][i].position;
        emitters[count++] = (particle_emitter){.position = at,
                                               .up = up_at(at),
                                               .speed = 2.0f,
                                               .spread = 0.6f,
                                               .gravity = -0.8f,
                                               .colour = PICTURE_FIRE_COLOUR};
    }
    for (uint32_t row = 0; row < animals && count < PICTURE_EMITTERS; ++row) {
        vec3 line = vec3_sub(bodies[row].feet, eye->camera.position);
        if (bodies[row].is_moving <= 0 || vec3_length(line) > reach) continue;
        emitters[count++] = (particle_emitter){.position = bodies[row].feet,
                                               .up = bodies[row].up,
                                               .speed = 0.8f,
                                               .spread = 0.5f,
                                               .gravity = 2.5f,
                                               .colour = PICTURE_DUST_COLOUR};
    }
    return count;
}

typedef struct particles_head {
    uint32_t particle_count, sprite_count;
} particles_head;

static nb_result particles_job(const nb_context *context, void *user) {
    const picture *p = user;
    particle_emitter emitters[PICTURE_EMITTERS];
    uint32_t emitter_count = place_emitters(context, p, emitters);
    share mine = share_of(context, PICTURE_PARTICLES);
    particles_input input = {.particles = nb_snapshot_region(context->snapshot, p->particles_region, NULL),
                             .emitters = emitters,
                             .emitter_count = emitter_count,
                             .dt_s = (float)context->time->delta_ns / 1e9f,
                             .seed = p->planet->seed,
                             .frame = context->frame_index};
    particles_head *head = output(context, sizeof *head);
    particles_output out = {.particles = output(context, mine.count * sizeof(particle)),
                            .sprites = output(context, mine.count * sizeof(particle_sprite))};
    if (head == NULL || out.particles == NULL || out.sprites == NULL) return NB_ERR_MEMORY;
    if (p->is_anew) {
        input.dt_s = ANEW_STEP_S, input.frame = eye_of(context, p)->tick;
        particles_run_anew(&input, ANEW_STEPS, mine.first, mine.count, &out);
    } else {
        particles_run(&input, mine.first, mine.count, &out);
    }
    *head = (particles_head){out.particle_count, out.sprite_count};
    return NB_OK;
}

static nb_result particles_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    if (is_first(context, &p->particles_end)) p->particle_count = 0;
    const particles_head *head = note(context, p, outputs, &size_bytes);
    const particle *moved = nb_outputs_next(outputs, head, NULL);
    memcpy(p->particles + p->particle_count, moved, head->particle_count * sizeof *moved);
    p->particle_count += head->particle_count;
    const particle_sprite *sprites = nb_outputs_next(outputs, moved, NULL);
    memcpy(p->made.sprites + p->now.sprite_count, sprites, head->sprite_count * sizeof *sprites);
    p->now.sprite_count += head->sprite_count;
    return NB_OK;
}

// --- visibility ---

static nb_result visibility_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    const planet_eye *eye = eye_of(context, p);
    visibility_input input = {.frustum = frustum_of(&eye->camera),
                              .eye = eye->position,
                              .chunks = NB_VIEW(seen, p->world, p->streamer->chunks, CHUNK_BOUNDS, lod_bounds),
                              .is_drawn = NB_VIEW(seen, p->world, p->streamer->chunks, CHUNK_IS_DRAWN, uint8_t),
                              .chunk_count = chunk_count(context, p),
                              .spheres = NB_VIEW(seen, p->world, p->planet->creatures, CREATURE_PLACE, vec3),
                              .sphere_count = creature_count(context, p),
                              .sphere_radius = PICTURE_CREATURE_RADIUS};
    share mine = share_of(context, input.chunk_count + input.sphere_count);
    uint32_t *count = output(context, sizeof *count);
    visibility_output out = {.visible = output(context, mine.count * sizeof(uint32_t))};
    if (count == NULL || out.visible == NULL) return NB_ERR_MEMORY;
    visibility_run(&input, mine.first, mine.count, &out);
    *count = out.visible_count;
    return NB_OK;
}

static nb_result visibility_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint32_t *count = note(context, p, outputs, &size_bytes), *visible = nb_outputs_next(outputs, count, NULL);
    memcpy(p->made.visible + p->now.visible_count, visible, *count * sizeof *visible);
    p->now.visible_count += *count;
    return NB_OK;
}

// --- levels of detail ---

static nb_result lod_job(const nb_context *context, void *user) {
    const picture *p = user;
    share mine = share_of(context, creature_count(context, p));
    nb_table creatures = p->planet->creatures;
    lod_input input = {.bodies = NB_VIEW(context->snapshot, p->world, creatures, CREATURE_BODY, pose_body),
                       .levels = NB_VIEW(context->snapshot, p->world, creatures, CREATURE_LEVEL, uint8_t),
                       .viewer = eye_of(context, p)->camera.position,
                       .distance_1 = finest_distance(context)};
    if (p->is_anew) input.levels = NULL;
    uint32_t *count = output(context, sizeof *count);
    lod_output out = {.levels = output(context, mine.count),
                      .impostors = output(context, mine.count * sizeof(lod_impostor))};
    if (count == NULL || out.levels == NULL || out.impostors == NULL) return NB_ERR_MEMORY;
    lod_run(&input, mine.first, mine.count, &out);
    *count = out.impostor_count;
    return NB_OK;
}

// Nothing moves rows between the snapshot of this frame and here: the levels belong to the same ones.
static nb_result lod_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint32_t *count = note(context, p, outputs, &size_bytes);
    const uint8_t *levels = nb_outputs_next(outputs, count, NULL);
    share mine = share_of(context, creature_count(context, p));
    if (is_of_now(context) && mine.count != 0) {
        uint8_t *own = NB_RANGE_WRITE(p->world, p->planet->creatures, CREATURE_LEVEL, uint8_t, mine.first, mine.count);
        memcpy(own + mine.first, levels, mine.count);
    }
    const lod_impostor *impostors = nb_outputs_next(outputs, levels, NULL);
    memcpy(p->made.impostors + p->now.impostor_count, impostors, *count * sizeof *impostors);
    p->now.impostor_count += *count;
    return NB_OK;
}

// --- lights ---

static nb_result lights_job(const nb_context *context, void *user) {
    const picture *p = user;
    const planet_eye *eye = eye_of(context, p);
    light *lights = nb_arena_alloc(context->arena, HOME_LIGHTS * sizeof *lights, 16);
    share mine = share_of(context, LIGHT_CLUSTER_COUNT);
    lights_output out = {.clusters = output(context, mine.count * sizeof(light_cluster))};
    if (lights == NULL || out.clusters == NULL) return NB_ERR_MEMORY;
    lights_input input = {.lights = lights,
                          .light_count = home_lights_seen(p->lights[eye->home], eye, p->planet->seed, lights),
                          .tan_half_x = eye->camera.tan_half_x,
                          .tan_half_y = eye->camera.tan_half_y,
                          .near = eye->camera.near,
                          .far = eye->camera.near + PICTURE_LIGHTS_FAR};
    lights_run(&input, mine.first, mine.count, &out);
    return NB_OK;
}

static nb_result lights_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const planet_eye *eye = eye_of(context, p);
    const light_cluster *clusters = note(context, p, outputs, &size_bytes);
    memcpy(p->made.clusters + share_of(context, LIGHT_CLUSTER_COUNT).first, clusters, size_bytes);
    p->now.light_count = home_lights_seen(p->lights[eye->home], eye, p->planet->seed, p->made.lights);
    for (uint32_t i = 0; i < size_bytes / sizeof *clusters; ++i) p->now.lit_count += clusters[i].light_count != 0;
    return NB_OK;
}

// --- materials ---

static nb_result materials_job(const nb_context *context, void *user) {
    const picture *p = user;
    const planet_eye *eye = eye_of(context, p);
    const nb_snapshot *seen = context->snapshot;
    materials_input input = {.draws = NB_VIEW(seen, p->world, p->streamer->chunks, CHUNK_DRAW, material_draw),
                             .camera = eye->position};
    share mine = share_of(context, chunk_count(context, p));
    materials_output *out = output(context, sizeof *out);
    draw_block *blocks = output(context, mine.count * sizeof *blocks);
    if (out == NULL || blocks == NULL) return NB_ERR_MEMORY;
    materials_output made = {.blocks = blocks};
    materials_run(&input, mine.first, mine.count, &made);
    made.blocks = NULL; // an address is not the same in every run
    *out = made;
    return NB_OK;
}

static nb_result materials_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const materials_output *made = note(context, p, outputs, &size_bytes);
    p->made.draws_end = parts_end(context, &p->draw_parts);
    if (p->draw_parts.count == 1) memset(p->draw_counts, 0, sizeof p->draw_counts);
    for (uint32_t i = 0; i < TERRAIN_MATERIAL_COUNT; ++i) p->draw_counts[i] += made->draw_counts[i];
    const draw_block *blocks = nb_outputs_next(outputs, made, NULL);
    memcpy(p->made.draws + share_of(context, chunk_count(context, p)).first, blocks,
           made->block_count * sizeof *blocks);
    p->now.draw_count += made->block_count;
    if (context->job_index + 1 < context->job_count) return NB_OK;
    materials_output whole = {.block_count = p->now.draw_count};
    memcpy(whole.draw_counts, p->draw_counts, sizeof whole.draw_counts);
    p->now.material_count = materials_pack(&whole, p->made.materials);
    return NB_OK;
}

// --- questions ---

// Each animal asks who is near, and those near the explorer whether they see it; their heads turn to the answers.
static nb_result queries_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    nb_table creatures = p->planet->creatures;
    uint32_t count = creature_count(context, p);
    looks_input who = {.bodies = NB_VIEW(seen, p->world, creatures, CREATURE_BODY, pose_body),
                       .face = NB_VIEW(seen, p->world, creatures, CREATURE_FACE, uint8_t),
                       .x = NB_VIEW(seen, p->world, creatures, CREATURE_X, int32_t),
                       .z = NB_VIEW(seen, p->world, creatures, CREATURE_Z, int32_t),
                       .eye = eye_of(context, p)->position};
    share mine = share_of(context, count);
    query_grid *grid = nb_arena_alloc(context->arena, sizeof *grid, 16);
    uint32_t *rows = nb_arena_alloc(context->arena, (count + 1) * sizeof *rows, 16);
    query *queries = nb_arena_alloc(context->arena, (mine.count + LOOK_SIGHTS_MAX) * sizeof *queries, 16);
    if (grid == NULL || rows == NULL || queries == NULL) return NB_ERR_MEMORY;
    uint32_t query_count = looks_ask(&who, mine.first, mine.count, queries);
    looks_output out = {.looks = output(context, mine.count * sizeof(vec3))};
    queries_output answers = {.answers = output(context, query_count * sizeof(query_answer))};
    if (out.looks == NULL || answers.answers == NULL) return NB_ERR_MEMORY;
    query_grid_build(grid, rows, who.x, who.z, count);
    queries_input input = {p->planet->seed, queries, who.face, who.x, who.z, grid};
    queries_run(&input, 0, query_count, &answers);
    looks_run(&who, mine.first, mine.count, queries, &answers, &out);
    return NB_OK;
}

static nb_result queries_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const vec3 *looks = note(context, p, outputs, &size_bytes);
    share mine = share_of(context, creature_count(context, p));
    memcpy(p->made.looks + mine.first, looks, mine.count * sizeof *looks);
    nb_outputs_next(outputs, looks, &size_bytes);
    p->now.answer_count += (uint32_t)(size_bytes / sizeof(query_answer));
    return NB_OK;
}

// --- upload ---

typedef struct upload_head {
    uint32_t item_count, quad_count;
} upload_head;

// Straight into memory that the device reads.
static nb_result upload_to_device(const nb_context *context, const streamer *s, upload_item *items, uint32_t count) {
    streamer_room *rooms = output(context, count * sizeof *rooms);
    if (rooms == NULL) return NB_ERR_MEMORY;
    for (uint32_t i = 0; i < count; ++i) {
        rooms[i] = s->device.room(s->device.user, context->frame, items[i].quad_count * sizeof(mesh_quad));
        items[i].range = (upload_range){0, items[i].quad_count};
        upload_output out = {.buffer = rooms[i].memory};
        if (out.buffer != NULL) upload_run(&(upload_input){&items[i]}, 0, 1, &out);
        items[i].quads = NULL; // an address is not the same in every run
    }
    return NB_OK;
}

static nb_result upload_job(const nb_context *context, void *user) {
    const picture *p = user;
    const streamer *s = p->streamer;
    size_t fresh_bytes = 0;
    const upload_item *fresh = nb_snapshot_region(context->snapshot, s->fresh_region, &fresh_bytes);
    const uint32_t *first = nb_snapshot_region(context->snapshot, s->fresh_first_region, NULL);
    const mesh_quad *quads = nb_snapshot_region(context->snapshot, s->fresh_quads_region, NULL);
    share mine = share_of(context, (uint32_t)(fresh_bytes / sizeof *fresh));
    upload_head *head = output(context, sizeof *head);
    upload_item *items = output(context, mine.count * sizeof *items);
    if (head == NULL || items == NULL) return NB_ERR_MEMORY;
    uint32_t quad_count = 0;
    for (uint32_t i = 0; i < mine.count; ++i) {
        items[i] = fresh[mine.first + i];
        items[i].quads = quads + first[mine.first + i];
        items[i].range.first = quad_count; // within this job's block; the merge knows the place in the ring
        quad_count += items[i].quad_count;
    }
    *head = (upload_head){mine.count, quad_count};
    if (s->device.room != NULL) return upload_to_device(context, s, items, mine.count);
    upload_output out = {.buffer = output(context, quad_count * sizeof(mesh_quad))};
    if (out.buffer == NULL) return NB_ERR_MEMORY;
    upload_run(&(upload_input){items}, 0, mine.count, &out);
    for (uint32_t i = 0; i < mine.count; ++i) {
        items[i].quads = NULL; // an address is not the same in every run
        items[i].range = fresh[mine.first + i].range;
    }
    return NB_OK;
}

static nb_result upload_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const upload_head *head = note(context, p, outputs, &size_bytes);
    const upload_item *items = nb_outputs_next(outputs, head, NULL);
    const void *block = nb_outputs_next(outputs, items, NULL);
    const streamer_device *device = &p->streamer->device;
    const streamer_room *rooms = device->room != NULL ? block : NULL;
    const mesh_quad *quads = device->room == NULL ? block : NULL;
    p->now.uploaded_quads += head->quad_count;
    for (uint32_t i = 0; i < head->item_count && rooms != NULL && is_of_now(context); ++i)
        if (rooms[i].memory != NULL) device->filled(device->user, items[i].slot, &rooms[i]);
    for (uint32_t i = 0; i < head->item_count && quads != NULL; ++i) {
        memcpy(p->upload + items[i].range.first, quads, items[i].quad_count * sizeof *quads);
        quads += items[i].quad_count;
    }
    return NB_OK;
}

// --- occlusion ---

static nb_result occlusion_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    const planet_eye *eye = eye_of(context, p);
    nb_table chunks = p->streamer->chunks;
    occlusion_input input = {.eye = eye->position,
                             .frustum = frustum_of(&eye->camera),
                             .bounds = NB_VIEW(seen, p->world, chunks, CHUNK_BOUNDS, lod_bounds),
                             .lands = NB_VIEW(seen, p->world, chunks, CHUNK_LAND, occlusion_land),
                             .is_drawn = NB_VIEW(seen, p->world, chunks, CHUNK_IS_DRAWN, uint8_t),
                             .land_count = chunk_count(context, p),
                             .spheres = NB_VIEW(seen, p->world, p->planet->creatures, CREATURE_PLACE, vec3),
                             .sphere_count = creature_count(context, p),
                             .sphere_radius = PICTURE_CREATURE_RADIUS};
    uint32_t count = input.land_count + input.sphere_count, stride = context->job_count;
    occlusion_room room = {.horizon =
                               nb_arena_alloc(context->arena, occlusion_horizon_count(stride) * sizeof(float), 16),
                           .outlines = nb_arena_alloc(context->arena, (count + 1) * sizeof(occlusion_outline), 16)};
    uint64_t *words = output(context, occlusion_word_count(count) * sizeof *words);
    if (room.horizon == NULL || room.outlines == NULL || words == NULL) return NB_ERR_MEMORY;
    occlusion_run(&input, context->job_index, stride, &room, words);
    return NB_OK;
}

static nb_result occlusion_merge(const nb_context *context, void *user, const nb_outputs *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const uint64_t *words = note(context, p, outputs, &size_bytes);
    uint32_t count = occlusion_word_count(chunk_count(context, p) + creature_count(context, p));
    // Until all have told what they see, nothing is known to be hidden.
    p->made.seen_end = parts_end(context, &p->seen_parts);
    if (p->seen_parts.count == 1) memset(p->made.seen, 0, sizeof p->made.seen);
    occlusion_append(p->made.seen, words, count);
    return NB_OK;
}

// --- all nine ---

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
    static const nb_module_desc kinds[PICTURE_KIND_COUNT] = {
        {.name = "animation", .parallel = pose_job, .merge = pose_merge, .job_count = 4},
        {.name = "particles", .parallel = particles_job, .merge = particles_merge, .job_count = 2},
        {.name = "visibility", .parallel = visibility_job, .merge = visibility_merge, .job_count = 2},
        {.name = "detail", .parallel = lod_job, .merge = lod_merge, .job_count = 2},
        {.name = "lights", .parallel = lights_job, .merge = lights_merge, .job_count = 4},
        {.name = "materials", .parallel = materials_job, .merge = materials_merge, .job_count = 2},
        {.name = "questions", .parallel = queries_job, .merge = queries_merge, .job_count = 4},
        {.name = "upload", .parallel = upload_job, .merge = upload_merge, .job_count = 4},
        {.name = "occlusion", .parallel = occlusion_job, .merge = occlusion_merge, .job_count = 2},
    };
    for (uint32_t i = 0; i < PICTURE_KIND_COUNT && result == NB_OK; ++i) {
        nb_module_desc module = kinds[i];
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
