// SPDX-License-Identifier: MIT
// From what the planet's modules have made to what the renderer draws.

#include "view.h"

#include "nebula/report.h"

#include <stdio.h>
#include <string.h>

#include "../chunks/quality.h"
#include "../game/tick_colour.h"
#include "../planet/sun.h"
#include "view_mills.h"

// Uploads of one frame: a millisecond or two of copying.
#define UPLOAD_BYTES (2u << 20)

// How long a note stays, in frames: about two seconds.
#define NOTE_FRAMES 120u

// What one sees to each side at 16 by 9; a wider picture shows less above and below instead of more at the sides, where
// nothing was looked for.
#define WIDE_ASPECT (16.0f / 9.0f)

#define TURN 6.28318530718

_Static_assert(sizeof(render_quad) == sizeof(mesh_quad), "quads are handed over as they are");
_Static_assert(sizeof(render_cluster) == sizeof(light_cluster), "and so are clusters");
_Static_assert(sizeof(render_material) == sizeof(material_block), "and materials");
_Static_assert(MESH_FACE_COUNT == RENDER_FACE_COUNT, "and directions");
_Static_assert(RENDER_CLUSTER_LIGHTS_MAX == LIGHT_CLUSTER_LIGHTS_MAX, "of the same lists");
_Static_assert(TERRAIN_MATERIAL_COUNT <= RENDER_MATERIALS_MAX, "every material has a place");

// --- meshes ---

static bool take_mesh(void *user, uint32_t slot, const material_draw *draw, const mesh_quad *quads) {
    view *v = user;
    if (v->meshes[slot].value == 0) {
        const render_quad *first = (const render_quad *)(const void *)quads;
        render_mesh_desc desc = {.face = draw->node.face,
                                 .level = draw->node.level,
                                 .x = draw->node.x,
                                 .y = draw->node.y,
                                 .base = draw->base,
                                 .step = draw->step,
                                 .quads = first,
                                 .quad_count = draw->quad_count,
                                 .water = first + draw->quad_count,
                                 .water_count = draw->water_count};
        if (render_mesh_add(v->render, &desc, &v->meshes[slot]) != NB_OK) return false;
    }
    return render_mesh_is_ready(v->render, v->meshes[slot]);
}

static void drop_mesh(void *user, uint32_t slot) {
    view *v = user;
    if (v->meshes[slot].value != 0) render_mesh_remove(v->render, v->meshes[slot]);
    v->meshes[slot] = (render_mesh){0};
}

static streamer_room room_for(void *user, nb_fence_frame frame, size_t size_bytes) {
    const view *v = user;
    nb_gpu_span span;
    if (nb_gpu_frame_alloc_at(v->gpu, frame, size_bytes, 16, &span) != NB_OK) return (streamer_room){0};
    return (streamer_room){span.memory, span.buffer.value, span.offset, span.size_bytes};
}

static void mesh_filled(void *user, uint32_t slot, const streamer_room *room) {
    view *v = user;
    nb_gpu_span span = {room->memory, {room->buffer}, room->offset, room->size_bytes};
    render_mesh_fill(v->render, v->meshes[slot], span);
}

// --- the lists of a frame ---

// A chunk as its job has packed it; where one of the jobs is late all of it is drawn.
static render_chunk chunk_of(const view *v, uint32_t row, uint32_t slot) {
    const picture_made *made = &v->picture->made;
    if (made->draws_end != v->frame_end) return (render_chunk){v->meshes[slot], RENDER_FACES_ALL, 0};
    return (render_chunk){v->meshes[slot], made->draws[row].faces, made->draws[row].distance};
}

// Those in sight, and those near ones that may throw a shadow into it.
static uint32_t list_chunks(view *v, bool has_shadows) {
    const picture_made *made = &v->picture->made;
    nb_table t = v->streamer->chunks;
    const material_draw *draws = NB_STORE_ROWS(v->world, t, CHUNK_DRAW, material_draw);
    const lod_bounds *bounds = NB_STORE_ROWS(v->world, t, CHUNK_BOUNDS, lod_bounds);
    const uint8_t *is_drawn = NB_STORE_ROWS(v->world, t, CHUNK_IS_DRAWN, uint8_t);
    uint32_t count = 0, row_count = nb_store_row_count(v->world, t), next = 0;
    for (uint32_t row = 0; row < row_count; ++row) {
        bool is_visible = next < v->picture->now.visible_count && made->visible[next] == row;
        next += is_visible;
        if (!is_visible && !(has_shadows && is_drawn[row])) continue;
        render_chunk chunk = chunk_of(v, row, draws[row].slot);
        bool is_hidden = is_visible && !picture_is_seen(made, v->frame_end, row);
        v->hidden_count += is_hidden;
        if (is_hidden) v->hidden_triangle_count += render_mesh_triangles(v->render, chunk.mesh, chunk.faces);
        if (is_hidden || !is_visible) chunk.faces = 0;
        bool is_caster = has_shadows && chunk.distance - (float)bounds[row].radius < RENDER_SHADOW_REACH;
        if (chunk.faces != 0 || is_caster) v->chunks[count++] = chunk;
    }
    return count;
}

// Coats, as a screen shows them.
static uint32_t coat_of(uint32_t id) {
    static const uint32_t coats[] = {0xc8a878, 0x8a6a4a, 0xe8e0d0, 0x707888, 0xa8754a, 0x4a4038, 0xd8c8a0, 0x9a8a7a};
    return coats[(id * 2654435761u) >> 29];
}

static vec3d wide(vec3 a) { return (vec3d){a.x, a.y, a.z}; }

static render_creature creature_of(const pose_body *body, const pose *legs, vec3 look, uint32_t id) {
    render_creature out = {.position = wide(body->feet),
                           .up = body->up,
                           .forward = body->forward,
                           .look = look,
                           .size = POSE_HIP_HEIGHT + 0.25f,
                           .colour = coat_of(id)};
    for (uint32_t i = 0; i < RENDER_LEG_COUNT; ++i) {
        const pose_leg *leg = &legs->legs[i];
        out.legs[i] = (render_leg){vec3_sub(leg->hip, body->feet), vec3_sub(leg->knee, body->feet),
                                   vec3_sub(leg->foot, body->feet)};
    }
    return out;
}

static render_impostor impostor_of(const pose_body *body, uint32_t direction, uint32_t id) {
    return (render_impostor){wide(body->feet), POSE_HIP_HEIGHT + 0.25f, coat_of(id), direction};
}

static void list_creatures(view *v, render_frame *frame) {
    const picture_made *made = &v->picture->made;
    const picture_numbers *counts = &v->picture->now;
    uint32_t chunk_count = nb_store_row_count(v->world, v->streamer->chunks);
    nb_table t = v->planet->creatures;
    const pose_body *bodies = NB_STORE_ROWS(v->world, t, CREATURE_BODY, pose_body);
    const uint32_t *ids = NB_STORE_ROWS(v->world, t, CREATURE_ID, uint32_t);
    uint32_t row_count = nb_store_row_count(v->world, t), next = 0;
    for (uint32_t i = 0; i < counts->visible_count; ++i) {
        if (made->visible[i] < chunk_count || !picture_is_seen(made, v->frame_end, made->visible[i])) continue;
        uint32_t row = made->visible[i] - chunk_count;
        if (row >= row_count) continue;
        while (next < counts->impostor_count && made->impostors[next].number < row) ++next;
        bool is_far = next < counts->impostor_count && made->impostors[next].number == row;
        if (!is_far && frame->creature_count < RENDER_CREATURES_MAX)
            v->creatures[frame->creature_count++] =
                creature_of(&bodies[row], &made->poses[row], made->looks[row], ids[row]);
        else if (frame->impostor_count < RENDER_IMPOSTORS_MAX)
            v->impostors[frame->impostor_count++] =
                impostor_of(&bodies[row], is_far ? made->impostors[next].direction : 0, ids[row]);
    }
}

// A flame is wide below and thin above; what is left of it at its end is smoke.
static render_particle particle_of(const particle_sprite *sprite) {
    float left = (float)(sprite->colour >> 24) / 255.0f;
    if ((sprite->colour & 0xffffff) != PICTURE_FIRE_COLOUR)
        return (render_particle){wide(sprite->position), 0.12f, sprite->colour, RENDER_PARTICLE_DUST};
    uint32_t alpha = (uint32_t)(80.0f * left), green = 60 + (uint32_t)(150.0f * left);
    if (left > 0.3f)
        return (render_particle){wide(sprite->position), 0.10f + 0.14f * left,
                                 alpha << 24 | 0xff0000 | green << 8 | (uint32_t)(60.0f * left), RENDER_PARTICLE_FLAME};
    return (render_particle){wide(sprite->position), 0.35f - 0.3f * left, (uint32_t)(120.0f * left) << 24 | 0x606060,
                             RENDER_PARTICLE_SMOKE};
}

static float depth_of(const render_frame *frame, const render_particle *it) {
    return vec3_dot(camera_relative(&frame->camera, it->position), frame->camera.forward);
}

// The farthest first, by Shell's way: no memory, and some ten thousand steps for all of them.
static void sort_particles(const render_frame *frame, render_particle *all, uint32_t count) {
    for (uint32_t gap = count / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < count; ++i) {
            render_particle held = all[i];
            float depth = depth_of(frame, &held);
            uint32_t at = i;
            for (; at >= gap && depth_of(frame, &all[at - gap]) < depth; at -= gap) all[at] = all[at - gap];
            all[at] = held;
        }
    }
}

static uint32_t list_particles(view *v, const render_frame *frame) {
    uint32_t count = v->picture->now.sprite_count;
    for (uint32_t i = 0; i < count; ++i) v->particles[i] = particle_of(&v->picture->made.sprites[i]);
    sort_particles(frame, v->particles, count);
    return count;
}

// In the order of the clusters' numbers.
static uint32_t list_lights(view *v, const planet_eye *eye) {
    const light *on_planet = v->picture->lights[eye->home], *seen = v->picture->made.lights;
    uint32_t count = v->picture->now.light_count;
    for (uint32_t i = 0; i < count; ++i) {
        vec3 fire = {5.2f, 2.5f, 0.85f}, firefly = {0.5f, 1.1f, 0.25f};
        v->lights[i] = (render_light){wide(on_planet[i].position), seen[i].radius, i < HOME_FIRES ? fire : firefly};
    }
    return count;
}

// --- a frame ---

static camera_view camera_of(const planet_eye *eye, uint32_t width, uint32_t height) {
    camera_view out = {.position = eye->position, .tan_half_y = eye->camera.tan_half_y, .near = eye->camera.near};
    float aspect = height > 0 ? (float)width / (float)height : WIDE_ASPECT;
    if (aspect > WIDE_ASPECT) out.tan_half_y *= WIDE_ASPECT / aspect;
    camera_aim(&out, eye->camera.forward, eye->camera.up);
    return out;
}

static void note_stale(view *v) {
    uint64_t count = v->streamer->stale_count - v->stale_count;
    v->stale_count = v->streamer->stale_count;
    if (count == 0) return;
    snprintf(v->page.note, sizeof v->page.note, "Cancelled %llu stale tasks", nb_llu(count));
    v->page.note_frames = NOTE_FRAMES;
}

static void fill_bars(const nb_engine_stats *stats, overlay_page *page) {
    for (int phase = 1; phase < NB_PHASE_COUNT && page->bar_count < OVERLAY_BARS_MAX; ++phase) {
        if (stats->phase_ns[phase] * 200 < stats->frame_ns) continue;
        page->bars[page->bar_count++] =
            (overlay_bar){.name = nb_phase_info_get((nb_phase)phase)->name,
                          .value = (float)stats->phase_ns[phase] / (float)(stats->frame_ns + 1)};
    }
}

static void draw_page(view *v, uint32_t width, uint32_t height) {
    nb_engine_stats stats = nb_engine_stats_get(v->engine);
    const nb_engine_desc *desc = nb_engine_desc_get(v->engine);
    overlay_page page = {.fps = (float)v->status->fps,
                         .ups = (float)v->status->ups,
                         .alpha = v->status->alpha,
                         .busy_share = (float)v->status->busy_share,
                         .queued_count = v->status->queued_count,
                         .checksum = v->status->checksum,
                         .frame_ms = (float)stats.frame_ns * 1e-6f,
                         .gpu_ms = (float)nb_gpu_stats_get(v->gpu).gpu_ns * 1e-6f,
                         .worker_count = nb_scheduler_stats_get(nb_engine_scheduler(v->engine)).worker_count,
                         .arena_bytes = stats.frame_peak_bytes,
                         .arena_bytes_max = desc->frame_bytes,
                         .chunk_count = v->streamer->choices[v->streamer->choice].node_count,
                         .chunk_ready_count = v->streamer->table.state_counts[CHUNK_READY],
                         .hidden_count = v->hidden_count,
                         .triangle_count = render_stats_get(v->render).triangle_count,
                         .cancelled_count = v->streamer->cancelled_count,
                         .quality = nb_budget_level(nb_engine_budget(v->engine)),
                         .quality_count = QUALITY_COUNT};
    fill_bars(&stats, &page);
    overlay_draw_page(&v->overlay, &page, width, height);
}

static const overlay *draw_overlay(view *v, uint32_t width, uint32_t height) {
    note_stale(v);
    overlay_clear(&v->overlay);
    if (v->page.is_shown) draw_page(v, width, height);
    if (v->page.note_frames > 0) {
        --v->page.note_frames;
        overlay_draw_note(&v->overlay, v->page.note, width, height);
    }
    return &v->overlay;
}

static void list_things(view *v, const planet_eye *eye, render_frame *frame) {
    frame->chunk_count = list_chunks(v, render_has_shadows(frame->quality));
    frame->materials = (const render_material *)(const void *)v->picture->made.materials;
    frame->material_count = TERRAIN_MATERIAL_COUNT;
    list_creatures(v, frame);
    frame->box_count = view_mills(&v->planet->mills, eye->position, v->boxes, RENDER_BOXES_MAX);
    frame->particle_count = list_particles(v, frame);
    frame->light_count = list_lights(v, eye);
    frame->clusters = (render_clusters){(const render_cluster *)(const void *)v->picture->made.clusters,
                                        LIGHT_CLUSTERS_X,
                                        LIGHT_CLUSTERS_Y,
                                        LIGHT_CLUSTERS_Z,
                                        eye->camera.near,
                                        eye->camera.near + PICTURE_LIGHTS_FAR};
    uint32_t width = 0, height = 0;
    nb_gpu_backbuffer(v->gpu, &width, &height);
    frame->overlay = draw_overlay(v, width, height);
}

static nb_result draw(const nb_context *context, void *user) {
    view *v = user;
    uint32_t width = 0, height = 0;
    nb_gpu_backbuffer(v->gpu, &width, &height);
    const planet_eye *eye = NB_STORE_SINGLETON(v->world, v->planet->eye, 0, planet_eye);
    double tick = (double)eye->tick + context->time->alpha;
    render_frame frame = {.camera = camera_of(eye, width, height),
                          .sun = eye->sun,
                          .turn = (float)(tick / SUN_DAY_TICKS * TURN),
                          .time_s = (float)(tick / 60),
                          .tick_pulse = (float)colour_level(eye->tick) / COLOUR_RISE_TICKS,
                          .quality = quality_of(context->quality_level).render,
                          .bucket_count = v->bucket_count,
                          .chunks = v->chunks,
                          .creatures = v->creatures,
                          .boxes = v->boxes,
                          .impostors = v->impostors,
                          .particles = v->particles,
                          .lights = v->lights};
    v->frame_end = context->frame_index + 1;
    v->hidden_count = v->hidden_triangle_count = 0;
    if (!v->is_blind) list_things(v, eye, &frame);
    nb_result result = render_add(v->render, &frame);
    return result < 0 ? result : NB_OK; // without a picture the frame goes on
}

// --- beginning and end ---

static nb_result make_renderer(view *v) {
    render_desc desc = {.gpu = v->gpu,
                        .quad_count_max = STREAMER_QUADS_TOTAL,
                        .mesh_count_max = STREAMER_CHUNKS_MAX,
                        .upload_bytes_max = UPLOAD_BYTES,
                        .hooks = nb_engine_desc_get(v->engine)->hooks};
    return render_create(&desc, &v->render);
}

nb_result view_attach(view *v, nb_engine *engine, nb_gpu *gpu, const show_scene *scene) {
    memset(v, 0, sizeof *v);
    v->gpu = gpu;
    v->engine = engine;
    v->planet = scene->land;
    v->streamer = scene->chunks;
    v->picture = scene->images;
    v->status = scene->status;
    v->world = v->planet->world;
    nb_result result = make_renderer(v);
    if (result != NB_OK) return result;
    v->streamer->device = (streamer_device){take_mesh, drop_mesh, room_for, mesh_filled, v};
    v->bucket_count = nb_scheduler_stats_get(nb_engine_scheduler(engine)).worker_count + 1;
    nb_module_desc module = {.name = "view", .user = v};
    module.handlers[NB_PHASE_FRAME_GRAPH] = draw;
    return nb_engine_module_attach(engine, &module, NULL);
}

bool view_is_settled(const view *v) {
    return streamer_is_settled(v->streamer) && render_stats_get(v->render).pending_bytes == 0;
}

void view_end(view *v) {
    render_destroy(v->render);
    v->render = NULL;
}
