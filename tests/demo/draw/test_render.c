// SPDX-License-Identifier: MIT
// The demo's renderer over the null device: passes for all that a frame may hold, uploads within their budget, pages.

#include "support/support.h"

#include <math.h>

#include "nebula/gpu.h"
#include "nebula/gpu_null.h"

#include "demo/chunks/quad_pool.h"
#include "demo/draw/render.h"
#include "demo/draw/render_internal.h"
#include "demo/jobs/picture.h"
#include "demo/jobs/work_materials.h"
#include "demo/planet/sphere.h"

#define QUADS 2000u

typedef struct rig {
    test_heap heap;
    test_log log;
    nb_gpu_null *faults;
    nb_gpu_null_desc null; // lives as long as the device, which may be made anew
    nb_gpu *gpu;
    render *r;
    render_frame frame;
} rig;

static rig g;
static render_quad quads[QUADS];
static render_chunk chunks[256];
static overlay canvas;

static void on_restored(nb_gpu *gpu, void *user) {
    (void)gpu;
    render_restored(((rig *)user)->r);
}

static void rig_open(const render_desc *given, size_t frame_bytes) {
    memset(&g, 0, sizeof g);
    nb_hooks hooks = test_hooks(&g.log, &g.heap);
    assert_int_equal(nb_gpu_null_create(&hooks, &g.faults), NB_OK);
    g.null = (nb_gpu_null_desc){.control = g.faults};
    nb_gpu_desc desc = {.backend = nb_gpu_null_backend(),
                        .backend_desc = &g.null,
                        .width = 64,
                        .height = 36,
                        .frame_bytes = frame_bytes,
                        .lane_count = 4,
                        .on_restored = on_restored,
                        .user = &g,
                        .hooks = hooks};
    assert_int_equal(nb_gpu_create(&desc, &g.gpu), NB_OK);
    render_desc made = *given;
    made.gpu = g.gpu;
    made.hooks = hooks;
    assert_int_equal(render_create(&made, &g.r), NB_OK);
    g.frame.camera.position = (vec3d){0, SPHERE_RADIUS + 100, 0};
    camera_aim(&g.frame.camera, (vec3){1, -1, 0}, (vec3){0, 1, 0});
    g.frame.sun = (vec3){0, 1, 0};
    g.frame.quality = 2;
}

static void rig_close(void) {
    render_destroy(g.r);
    assert_int_equal(nb_gpu_destroy(g.gpu), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(g.faults), 0);
    nb_gpu_null_destroy(g.faults);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&g.heap.live_count), 0);
}

static void record(void *user, uint32_t lane) { (void)nb_gpu_frame_record((nb_gpu *)user, lane); }

// A frame that has begun; `lane_count` threads record it.
static nb_result finish_frame(uint32_t lane_count) {
    nb_result result = render_add(g.r, &g.frame);
    assert_int_equal(nb_gpu_frame_compile(g.gpu), NB_OK);
    if (lane_count > 1) {
        test_threads_run(lane_count, record, g.gpu);
    } else {
        record(g.gpu, 0);
    }
    assert_int_equal(nb_gpu_frame_submit(g.gpu), NB_OK);
    nb_gpu_frame_end(g.gpu);
    return result;
}

static nb_result run_frame(uint32_t lane_count) {
    if (nb_gpu_frame_begin(g.gpu) == NB_OK) return finish_frame(lane_count);
    nb_result result = render_add(g.r, &g.frame);
    nb_gpu_frame_end(g.gpu);
    return result;
}

// Directions one after the other, as the mesher gives them.
static void quads_fill(render_quad *out, uint32_t count, uint64_t *seed) {
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t face = i * 6 / count;
        uint32_t bits = (uint32_t)test_random(seed);
        out[i] = (render_quad){(bits & 0x3ffff) | face << 23, (bits >> 10 & 0xff00)};
    }
}

static render_mesh add(uint32_t x, uint32_t y, uint32_t quad_count, uint32_t water_count) {
    render_mesh mesh = {0};
    render_mesh_desc desc = {.face = 2, .x = (uint8_t)x, .y = (uint8_t)y, .base = -4, .step = 1, .quads = quads};
    desc.quad_count = quad_count;
    desc.water = quads;
    desc.water_count = water_count;
    assert_int_equal(render_mesh_add(g.r, &desc, &mesh), NB_OK);
    return mesh;
}

// A frame of all of them, as the camera sees them.
static void chunks_list(render_frame *frame, const render_mesh *meshes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const mesh_slot *slot = render_mesh_of(g.r, meshes[i]);
        chunks[i] = (render_chunk){.mesh = meshes[i], .faces = RENDER_FACES_ALL};
        if (slot == NULL) continue;
        const node_constants *n = &slot->node;
        lod_node node = {(uint8_t)n->face, (uint8_t)n->level, (uint8_t)n->x, (uint8_t)n->y, 0};
        chunks[i].faces = material_faces(frame->camera.position, node);
        chunks[i].distance = (float)vec3d_length(vec3d_sub(slot->middle, frame->camera.position));
    }
    frame->chunks = chunks;
    frame->chunk_count = count;
}

// --- passes ---

enum {
    HAS_GROUND = 1,
    HAS_WATER = 2,
    HAS_CREATURES = 4,
    HAS_IMPOSTORS = 8,
    HAS_SMOKE = 16,
    HAS_FLAMES = 32,
    HAS_LIGHTS = 64,
    HAS_OVERLAY = 128,
    SUBSETS = 256
};

static render_creature creatures[3];
static render_impostor impostors[5];
static render_particle particles[8];
static render_light lights[2];
static render_cluster clusters[4 * 2 * 3];

static void inputs_make(void) {
    for (uint32_t i = 0; i < 3; ++i)
        creatures[i] = (render_creature){
            .position = {1, SPHERE_RADIUS, (double)i}, .up = {0, 1, 0}, .forward = {1, 0, 0}, .size = 1};
    for (uint32_t i = 0; i < 5; ++i) impostors[i] = (render_impostor){{20, SPHERE_RADIUS, (double)i}, 1, 0xffffff, i};
    for (uint32_t i = 0; i < 8; ++i)
        particles[i] = (render_particle){
            {5, SPHERE_RADIUS, (double)i}, 1, 0xff00ff00u, i < 4 ? RENDER_PARTICLE_FLAME : RENDER_PARTICLE_DUST};
    for (uint32_t i = 0; i < 2; ++i) lights[i] = (render_light){{5, SPHERE_RADIUS, (double)i}, 8, {1, 1, 1}};
    memset(clusters, 0, sizeof clusters);
    for (uint32_t i = 0; i < 24; ++i) clusters[i] = (render_cluster){.light_count = 2, .lights = {0, 1}};
    overlay_clear(&canvas);
    overlay_add(&canvas, 1, 1, 5, 5, 0xffffffffu);
}

static render_frame frame_of(uint32_t subset, const render_mesh *meshes) {
    render_frame f = g.frame;
    chunks_list(&f, meshes + (subset & HAS_GROUND ? 0 : 1),
                (subset & HAS_GROUND ? 1u : 0) + (subset & HAS_WATER ? 1u : 0));
    if (subset & HAS_CREATURES) f.creatures = creatures, f.creature_count = 3;
    if (subset & HAS_IMPOSTORS) f.impostors = impostors, f.impostor_count = 5;
    if (subset & HAS_FLAMES) f.particles = particles, f.particle_count = 4;
    if (subset & HAS_SMOKE) f.particles = particles + 4, f.particle_count = 4;
    if ((subset & HAS_SMOKE) && (subset & HAS_FLAMES)) f.particles = particles, f.particle_count = 8;
    if (subset & HAS_LIGHTS) {
        f.lights = lights, f.light_count = 2;
        f.clusters = (render_clusters){clusters, 4, 2, 3, 0.5f, 100};
    }
    if (subset & HAS_OVERLAY) f.overlay = &canvas;
    return f;
}

static uint32_t passes_of(uint32_t subset, uint32_t quality) {
    uint32_t count = 3; // ground, which clears, sky, post
    if (subset & HAS_WATER) ++count;
    if (subset & (HAS_CREATURES | HAS_IMPOSTORS)) ++count;
    if (subset & (HAS_SMOKE | HAS_FLAMES)) ++count;
    if (subset & HAS_OVERLAY) ++count;
    // The glow, and shadows of the ground.
    return count + (quality >= 3 ? 2 : 0) + (quality >= 3 && (subset & (HAS_GROUND | HAS_WATER)) ? 1 : 0);
}

TEST(any_part_of_a_frame_makes_a_picture) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    inputs_make();
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    render_mesh meshes[2] = {add(64, 64, 300, 0), add(65, 64, 0, 40)}; // ground alone, water alone
    g.frame.bucket_count = 3;
    render_frame plain = g.frame;
    for (uint32_t i = 0; i < SUBSETS * RENDER_QUALITY_COUNT; ++i) {
        uint32_t subset = i % SUBSETS, quality = i / SUBSETS;
        g.frame = plain;
        g.frame.quality = quality;
        g.frame = frame_of(subset, meshes);
        assert_int_equal(run_frame(1), NB_OK);
        nb_gpu_stats stats = nb_gpu_stats_get(g.gpu);
        assert_int_equal(stats.misuse_count, 0);
        assert_int_equal(stats.culled_count, 0);
        assert_int_equal(stats.pass_count, passes_of(subset, quality));
        assert_int_equal(stats.submit_count, i + 1);
    }
    rig_close();
}

TEST(buckets_and_threads_draw_the_same) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    inputs_make();
    rig_open(&(render_desc){.quad_count_max = 1u << 20, .mesh_count_max = 256}, 4 << 20);
    render_mesh meshes[100];
    for (uint32_t i = 0; i < 100; ++i) meshes[i] = add(60 + i % 10, 60 + i / 10, 100 + i, i % 3 == 0 ? 20 : 0);
    g.frame = frame_of(SUBSETS - 1, meshes);
    chunks_list(&g.frame, meshes, 100);
    uint32_t draws = 0;
    static const uint32_t BUCKETS[] = {1, 2, 3, 16, 64, 1000};
    for (uint32_t i = 0; i < 6; ++i) {
        g.frame.bucket_count = BUCKETS[i];
        // The hash knows which of the two frames in flight it is: every other frame is compared.
        for (uint32_t j = 0; j < 3; ++j) assert_int_equal(run_frame(1), NB_OK);
        nb_gpu_stats one = nb_gpu_stats_get(g.gpu);
        for (uint32_t j = 0; j < 2; ++j) assert_int_equal(run_frame(4), NB_OK);
        nb_gpu_stats four = nb_gpu_stats_get(g.gpu);
        assert_int_equal(one.command_hash, four.command_hash);
        assert_int_equal(four.misuse_count, 0);
        if (i > 0) assert_int_equal(four.draw_count, draws);
        draws = four.draw_count;
    }
    assert_true(draws > 100);
    rig_close();
}

TEST(a_frame_without_a_picture_changes_nothing) {
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    render_mesh mesh = add(64, 64, 300, 0);
    assert_int_equal(nb_gpu_resize(g.gpu, 0, 0), NB_OK);
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(run_frame(1), NB_EMPTY);
    assert_false(render_mesh_is_ready(g.r, mesh));
    assert_int_equal(nb_gpu_resize(g.gpu, 80, 45), NB_OK);
    assert_int_equal(run_frame(1), NB_OK);
    assert_true(render_mesh_is_ready(g.r, mesh));
    assert_int_equal(render_stats_get(g.r).width, 80);
    rig_close();
}

// --- meshes ---

TEST(uploads_stay_within_their_budget) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    const uint32_t budget = 1000 * sizeof(render_quad);
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 64, .upload_bytes_max = budget}, 4 << 20);
    render_mesh meshes[20];
    uint32_t total = 0;
    for (uint32_t i = 0; i < 20; ++i) {
        uint32_t count = (uint32_t)(test_random(&seed) % 2000), water = (uint32_t)(test_random(&seed) % 100);
        meshes[i] = add(i, 0, count, water);
        total += count + water;
    }
    chunks_list(&g.frame, meshes, 20);
    uint32_t frames = 0;
    for (uint64_t before = 0; render_stats_get(g.r).pending_bytes > 0; ++frames) {
        assert_true(frames < 100);
        assert_int_equal(run_frame(1), NB_OK);
        render_stats stats = render_stats_get(g.r);
        assert_true(stats.upload_bytes <= budget);
        assert_int_equal(stats.upload_bytes_total - before, stats.upload_bytes);
        assert_int_equal(stats.chunk_count, stats.mesh_ready_count);
        assert_int_equal(stats.chunk_count + stats.skipped_count, 20);
        // First come, first served.
        for (uint32_t i = 0; i < 20; ++i) assert_int_equal(render_mesh_is_ready(g.r, meshes[i]), i < stats.chunk_count);
        before = stats.upload_bytes_total;
    }
    assert_int_equal(frames, (total + 999) / 1000);
    assert_int_equal(render_stats_get(g.r).upload_bytes_total, (uint64_t)total * sizeof(render_quad));
    rig_close();
}

TEST(meshes_come_and_go_at_random) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    rig_open(&(render_desc){.quad_count_max = 20 * 128, .mesh_count_max = 12, .upload_bytes_max = 4096}, 4 << 20);
    render_mesh live[12], gone = {0};
    uint32_t count = 0, pages = 0, counts[12], rounds = (uint32_t)test_size(600, 6000, 60000);
    for (uint32_t round = 0; round < rounds; ++round) {
        uint32_t what = (uint32_t)(test_random(&seed) % 4), size = (uint32_t)(test_random(&seed) % 700);
        if (what <= 1) {
            render_mesh_desc desc = {.face = 1, .x = 1, .y = 1, .step = 1, .quads = quads, .quad_count = size};
            render_mesh mesh = {0};
            nb_result result = render_mesh_add(g.r, &desc, &mesh);
            if (result == NB_OK) {
                assert_true(mesh.value != gone.value && mesh.value != 0);
                counts[count] = size;
                live[count++] = mesh;
                pages += quad_pool_pages(size);
            } else {
                assert_int_equal(result, NB_FULL);
                assert_true(count == 12 || pages + quad_pool_pages(size) > 20 || count > 0);
            }
        } else if (what == 2 && count > 0) {
            uint32_t i = (uint32_t)(test_random(&seed) % count);
            gone = live[i];
            render_mesh_remove(g.r, gone);
            render_mesh_remove(g.r, gone); // a second time is nothing
            assert_false(render_mesh_is_ready(g.r, gone));
            pages -= quad_pool_pages(counts[i]);
            live[i] = live[--count];
            counts[i] = counts[count];
        } else {
            chunks_list(&g.frame, live, count);
            assert_int_equal(run_frame(1), NB_OK);
        }
        render_stats stats = render_stats_get(g.r);
        assert_int_equal(stats.mesh_count, count);
        assert_int_equal(stats.quad_count, pages * QUAD_POOL_PAGE);
    }
    assert_int_equal(nb_gpu_stats_get(g.gpu).misuse_count, 0);
    rig_close();
}

TEST(what_is_no_node_is_refused) {
    rig_open(&(render_desc){.quad_count_max = 1024, .mesh_count_max = 4}, 4 << 20);
    render_mesh mesh = {0};
    render_mesh_desc bad[] = {{.face = 6}, {.level = 8}, {.x = 128}, {.y = 64, .level = 1}, {.quad_count = 2000}};
    for (uint32_t i = 0; i < 5; ++i) {
        bad[i].quads = bad[i].water = quads;
        assert_int_equal(render_mesh_add(g.r, &bad[i], &mesh), NB_ERR_RANGE);
    }
    render_mesh_remove(g.r, (render_mesh){0});
    render_mesh_remove(g.r, (render_mesh){0xffffffffu});
    assert_false(render_mesh_is_ready(g.r, (render_mesh){77}));
    rig_close();
    render *none = NULL;
    assert_int_equal(render_create(NULL, &none), NB_ERR_MISUSE);
}

// A frame that may fail at any of its steps.
static void try_frame(void) {
    nb_result begun = nb_gpu_frame_begin(g.gpu);
    (void)render_add(g.r, &g.frame);
    if (begun == NB_OK && nb_gpu_frame_compile(g.gpu) == NB_OK) {
        record(g.gpu, 0);
        (void)nb_gpu_frame_submit(g.gpu);
    }
    nb_gpu_frame_end(g.gpu);
}

TEST(a_lost_device_is_filled_again) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    render_mesh meshes[5];
    for (uint32_t i = 0; i < 5; ++i) meshes[i] = add(i, 9, 500, 10);
    chunks_list(&g.frame, meshes, 5);
    assert_int_equal(run_frame(1), NB_OK);
    uint64_t once = render_stats_get(g.r).upload_bytes_total;
    assert_int_equal(once, 5 * 510 * sizeof(render_quad));
    nb_gpu_null_fail(g.faults, NB_GPU_NULL_LOST, 0);
    for (uint32_t i = 0; i < 20 && nb_gpu_stats_get(g.gpu).restored_count == 0; ++i) try_frame();
    assert_int_equal(nb_gpu_stats_get(g.gpu).restored_count, 1);
    assert_int_equal(run_frame(1), NB_OK);
    render_stats stats = render_stats_get(g.r);
    assert_int_equal(stats.chunk_count, 5);
    assert_true(stats.upload_bytes_total >= 2 * once);
    rig_close();
}

// What a job has put into memory of the frame is uploaded from there, and not once more.
TEST(meshes_are_filled_from_memory_of_the_frame) {
    rig_open(&(render_desc){.quad_count_max = 4096, .mesh_count_max = 8, .upload_bytes_max = 8}, 1 << 20);
    nb_gpu_span span, small;
    render_mesh mesh = add(1, 1, 100, 28), other = add(2, 1, 10, 0);
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(g.gpu, 128 * sizeof(render_quad), 16, &span), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(g.gpu, 127 * sizeof(render_quad), 16, &small), NB_OK);
    assert_false(render_mesh_fill(g.r, mesh, small));
    assert_false(render_mesh_fill(g.r, (render_mesh){0}, span));
    assert_false(render_mesh_is_ready(g.r, mesh));
    assert_true(render_mesh_fill(g.r, mesh, span));
    assert_false(render_mesh_fill(g.r, mesh, span));
    assert_true(render_mesh_is_ready(g.r, mesh));
    assert_int_equal(finish_frame(1), NB_OK);
    // One quad a frame of the other one, and nothing more of this one.
    render_stats stats = render_stats_get(g.r);
    assert_int_equal(stats.upload_bytes, 129 * sizeof(render_quad));
    assert_int_equal(stats.filled_bytes_total, 128 * sizeof(render_quad));
    assert_int_equal(stats.pending_bytes, 9 * sizeof(render_quad));
    assert_false(render_mesh_is_ready(g.r, other));
    render_restored(g.r);
    assert_false(render_mesh_is_ready(g.r, mesh));
    render_mesh_remove(g.r, mesh);
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(g.gpu, 128 * sizeof(render_quad), 16, &span), NB_OK);
    assert_false(render_mesh_fill(g.r, mesh, span));
    nb_gpu_frame_end(g.gpu);
    rig_close();
}

TEST(uploads_that_got_lost_are_made_again) {
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(run_frame(1), NB_OK);
    render_mesh mesh = add(3, 9, 500, 10);
    // No memory for the picture, nor for its uploads alone.
    nb_gpu_null_fail(g.faults, NB_GPU_NULL_MEMORY, 0);
    nb_gpu_null_fail(g.faults, NB_GPU_NULL_MEMORY, 1);
    try_frame();
    uint64_t lost = nb_gpu_stats_get(g.gpu).upload_lost_bytes;
    assert_int_equal(lost, 510 * sizeof(render_quad));
    assert_int_equal(run_frame(1), NB_OK);
    assert_int_equal(render_stats_get(g.r).upload_bytes, 510 * sizeof(render_quad));
    assert_true(render_mesh_is_ready(g.r, mesh));
    assert_int_equal(run_frame(1), NB_OK);
    assert_int_equal(render_stats_get(g.r).upload_bytes, 0);
    rig_close();
}

TEST(little_memory_leaves_things_out) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    inputs_make();
    // Room for the fixed buffers and little more.
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 256 << 10);
    render_mesh meshes[2] = {add(64, 64, 1500, 0), add(65, 64, 0, 40)};
    static render_impostor many[RENDER_IMPOSTORS_MAX + 10];
    g.frame = frame_of(SUBSETS - 1, meshes);
    g.frame.impostors = many;
    g.frame.impostor_count = RENDER_IMPOSTORS_MAX + 10;
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(run_frame(1), NB_OK);
    assert_true(render_stats_get(g.r).dropped_count >= 10);
    assert_int_equal(nb_gpu_stats_get(g.gpu).misuse_count, 0);
    assert_true(render_mesh_is_ready(g.r, meshes[0]));
    rig_close();
}

// Half a kilobyte is left when the picture is made: its constants, and not the materials.
TEST(without_materials_there_is_no_ground) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 256 << 10);
    render_mesh mesh = add(64, 64, 300, 40);
    g.frame.quality = 3; // with shadows
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(run_frame(1), NB_OK);
    chunks_list(&g.frame, &mesh, 1);
    assert_int_equal(run_frame(1), NB_OK);
    assert_true(render_stats_get(g.r).draw_count > 0);
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    nb_gpu_span span;
    assert_int_equal(nb_gpu_frame_alloc(g.gpu, 512, 256, &span), NB_OK);
    while (nb_gpu_frame_alloc(g.gpu, 1024, 256, &span) == NB_OK) continue;
    assert_int_equal(finish_frame(1), NB_OK);
    assert_int_equal(render_stats_get(g.r).draw_count, 0);
    assert_int_equal(nb_gpu_stats_get(g.gpu).misuse_count, 0);
    assert_int_equal(run_frame(1), NB_OK);
    assert_true(render_stats_get(g.r).draw_count > 0); // and in the next frame it is there again
    rig_close();
}

// The packed boxes of the frame, before it is drawn.
static const render_instance *packed(void) { return (const render_instance *)g.r->boxes.span.memory; }

TEST(boxes_are_drawn_up_to_their_bound) {
    static render_box many[RENDER_BOXES_MAX + 7];
    inputs_make();
    for (uint32_t i = 0; i < RENDER_BOXES_MAX + 7; ++i)
        many[i] = (render_box){{i, SPHERE_RADIUS, 5}, {1, 0, 0}, {0, 2, 0}, {0, 0, 3}, i};
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    g.frame.boxes = many;
    assert_int_equal(run_frame(1), NB_OK);
    uint32_t plain_count = render_stats_get(g.r).triangle_count;
    for (uint32_t more = 0; more < 2; ++more) {
        g.frame.box_count = RENDER_BOXES_MAX + 7 * more;
        assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
        assert_int_equal(finish_frame(1), NB_OK);
        render_stats stats = render_stats_get(g.r);
        assert_int_equal(stats.dropped_count, 7 * more);
        assert_int_equal(stats.triangle_count, plain_count + RENDER_BOXES_MAX * 12);
        assert_int_equal(g.r->boxes.count, RENDER_BOXES_MAX);
        assert_int_equal(nb_gpu_stats_get(g.gpu).pass_count, 4); // ground, boxes, sky, post
        assert_int_equal(nb_gpu_stats_get(g.gpu).misuse_count, 0);
    }
    // Behind those of animals, and relative to the camera.
    g.frame.creatures = creatures, g.frame.creature_count = 1, g.frame.box_count = 2;
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    assert_int_equal(render_add(g.r, &g.frame), NB_OK);
    assert_true(g.r->boxes.count > 2 && g.r->boxes.count <= RENDER_BOXES_EACH + 2);
    const render_instance *last = &packed()[g.r->boxes.count - 1];
    assert_true(last->middle[0] == 1 && last->middle[1] == -100 && last->middle[2] == 5 && last->colour == 1);
    assert_true(last->x[0] == 1 && last->y[1] == 2 && last->z[2] == 3 && last->x[3] == 0);
    nb_gpu_frame_end(g.gpu);
    rig_close();
}

// Body, head with its muzzle, ears and eyes, tail and neck, legs: in that order.
static const render_instance *animal_packed(vec3 look) {
    creatures[0].look = look;
    g.frame.creatures = creatures, g.frame.creature_count = 1;
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    assert_int_equal(render_add(g.r, &g.frame), NB_OK);
    assert_int_equal(g.r->boxes.count, 17);
    return packed();
}

static vec3 three(const float from[3]) { return (vec3){from[0], from[1], from[2]}; }

// The corner of a box that is farthest from the animal's feet.
static float farthest(const render_instance *box) {
    float most = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        vec3 at = vec3_add(three(box->middle), vec3_scale(three(box->x), i & 1 ? 1 : -1));
        at = vec3_add(at, vec3_scale(three(box->y), i & 2 ? 1 : -1));
        at = vec3_add(at, vec3_scale(three(box->z), i & 4 ? 1 : -1));
        most = fmaxf(most, vec3_length(at));
    }
    return most;
}

TEST(heads_turn_about_the_neck_and_the_rest_stays) {
    static render_instance ahead[17];
    static const vec3 LOOKS[] = {
        {1, 0, 0}, {0.8f, 0, 0.6f}, {0.8f, 0, -0.6f}, {0.96f, 0.28f, 0}, {0.48f, -0.36f, 0.8f}};
    inputs_make();
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    g.frame.camera.position = (vec3d){1, SPHERE_RADIUS, 0}; // where the animal is: it looks along +x, +z is right
    memcpy(ahead, animal_packed((vec3){0, 0, 0}), sizeof ahead);
    nb_gpu_frame_end(g.gpu);
    const vec3 neck = {0.66f, 0.96f, 0};
    for (uint32_t i = 0; i < 5; ++i) {
        const render_instance *boxes = animal_packed(LOOKS[i]);
        for (uint32_t k = 0; k < 17; ++k) {
            assert_true(farthest(&boxes[k]) < PICTURE_CREATURE_RADIUS);
            bool is_head = k >= 1 && k <= 6;
            if (!is_head) assert_memory_equal(&boxes[k], &ahead[k], sizeof ahead[k]);
            if (!is_head) continue;
            vec3 arm = vec3_sub(three(boxes[k].middle), neck), before = vec3_sub(three(ahead[k].middle), neck);
            assert_true(fabsf(vec3_length(arm) - vec3_length(before)) < 1e-5f);
            // Its own forward is where it looks, its sides are as long as they were, and its top is up.
            vec3 x = three(boxes[k].x), y = three(boxes[k].y), z = three(boxes[k].z);
            assert_true(fabsf(vec3_dot(x, LOOKS[i]) - ahead[k].x[0]) < 1e-5f);
            assert_true(fabsf(vec3_length(y) - ahead[k].y[1]) < 1e-5f && y.y > 0);
            assert_true(fabsf(vec3_length(z) - ahead[k].z[2]) < 1e-5f && fabsf(z.y) < 1e-5f);
            assert_true(vec3_dot(arm, LOOKS[i]) > before.x - 1e-5f);
        }
        nb_gpu_frame_end(g.gpu);
    }
    rig_close();
}

TEST(far_animals_keep_their_side) {
    inputs_make();
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    g.frame.impostors = impostors, g.frame.impostor_count = 5;
    assert_int_equal(nb_gpu_frame_begin(g.gpu), NB_OK);
    assert_int_equal(render_add(g.r, &g.frame), NB_OK);
    assert_int_equal(g.r->impostors.count, 5);
    const render_sprite *sprites = (const render_sprite *)g.r->impostors.span.memory;
    for (uint32_t i = 0; i < 5; ++i) assert_true(sprites[i].kind == i && sprites[i].middle[2] == (float)i);
    nb_gpu_frame_end(g.gpu);
    rig_close();
}

TEST(a_steady_frame_takes_no_memory) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    inputs_make();
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    render_mesh meshes[2] = {add(64, 64, 300, 0), add(65, 64, 0, 40)};
    g.frame = frame_of(SUBSETS - 1, meshes);
    g.frame.quality = RENDER_QUALITY_BEST;
    for (uint32_t i = 0; i < 8; ++i) assert_int_equal(run_frame(1), NB_OK);
    uint64_t before = nbi_atomic_load_seq_cst_u64(&g.heap.call_count);
    for (uint32_t i = 0; i < 100; ++i) {
        assert_int_equal(run_frame(1), NB_OK);
        render_mesh other = add(i % 100, 3, 200, 5);
        render_mesh_remove(g.r, other);
    }
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&g.heap.call_count), before);
    rig_close();
}

// Every allocation that can fail, one after the other: nothing leaks.
TEST(failed_memory_leaves_nothing_behind) {
    for (uint64_t fail = 1; fail < 40; ++fail) {
        memset(&g, 0, sizeof g);
        nb_hooks quiet = test_hooks(&g.log, NULL), failing = test_hooks(&g.log, &g.heap);
        nb_gpu_desc desc = {.backend = nb_gpu_null_backend(), .hooks = quiet};
        assert_int_equal(nb_gpu_create(&desc, &g.gpu), NB_OK);
        g.heap.fail_at = fail;
        nb_result result = render_create(&(render_desc){.gpu = g.gpu, .mesh_count_max = 4, .hooks = failing}, &g.r);
        if (result == NB_OK)
            render_destroy(g.r);
        else
            assert_int_equal(result, NB_ERR_MEMORY);
        assert_int_equal(nbi_atomic_load_seq_cst_u64(&g.heap.live_count), 0);
        assert_int_equal(nb_gpu_destroy(g.gpu), NB_OK);
        if (result == NB_OK) return;
    }
    fail_msg("it never succeeded");
}

// --- directions ---

typedef struct plane_of_quad {
    vec3d at, normal;
} plane_of_quad;

// Where a quad is and looks to, from the planet's shape alone.
static plane_of_quad plane_of(const node_constants *n, render_quad q) {
    uint32_t face = q.place >> 23 & 7;
    double size = 1u << n->level, step = face & 1 ? 1 : 0;
    double x = n->x * 32 + (q.place & 31), y = q.place >> 10 & 255, z = n->y * 32 + (q.place >> 5 & 31);
    if (face / 2 == 0) x += step;
    if (face / 2 == 1) y += step;
    if (face / 2 == 2) z += step;
    double h = n->base + n->step * y;
    vec3d at = sphere_position(n->face, x * size, z * size, h);
    vec3d along = vec3d_sub(sphere_position(n->face, (x + 1) * size, z * size, h), at);
    vec3d across = vec3d_sub(sphere_position(n->face, x * size, (z + 1) * size, h), at);
    vec3d up = vec3d_normal(at, at);
    vec3d normal = face / 2 == 0 ? vec3d_cross(up, across) : face / 2 == 1 ? up : vec3d_cross(along, up);
    vec3d forward = face / 2 == 0 ? along : face / 2 == 1 ? up : across;
    if (vec3d_dot(normal, forward) < 0) normal = vec3d_scale(normal, -1);
    if ((face & 1) == 0) normal = vec3d_scale(normal, -1);
    return (plane_of_quad){at, vec3d_normal(normal, up)};
}

static bool is_drawn(const render *r, uint32_t quad) {
    for (uint32_t i = 0; i < r->draw_count; ++i)
        if (quad >= r->draws[i].first && quad < r->draws[i].first + r->draws[i].count) return true;
    return false;
}

TEST(what_can_be_seen_is_drawn) {
    uint64_t seed = test_seed(__func__);
    rig_open(&(render_desc){.quad_count_max = 4096, .mesh_count_max = 4}, 4 << 20);
    uint64_t rounds = test_size(300, 3000, 30000), left_out = 0, drawn = 0;
    for (uint64_t round = 0; round < rounds; ++round) {
        quads_fill(quads, 120, &seed);
        uint32_t level = (uint32_t)(test_random(&seed) % 8), count = 128u >> level;
        render_mesh_desc desc = {.face = (uint8_t)(test_random(&seed) % 6),
                                 .level = (uint8_t)level,
                                 .x = (uint8_t)(test_random(&seed) % count),
                                 .y = (uint8_t)(test_random(&seed) % count),
                                 .base = -4,
                                 .step = 1,
                                 .quads = quads,
                                 .quad_count = 120};
        render_mesh mesh;
        assert_int_equal(render_mesh_add(g.r, &desc, &mesh), NB_OK);
        double far = 1 + (double)(test_random(&seed) % 1000) / 250.0;
        vec3d way = sphere_direction((uint32_t)(test_random(&seed) % 6), (double)(test_random(&seed) % 4096),
                                     (double)(test_random(&seed) % 4096));
        g.frame.camera.position = vec3d_scale(way, SPHERE_RADIUS * far + 20);
        chunks_list(&g.frame, &mesh, 1);
        assert_int_equal(run_frame(1), NB_OK);
        const mesh_slot *slot = render_mesh_of(g.r, mesh);
        for (uint32_t i = 0; i < 120; ++i) {
            plane_of_quad p = plane_of(&slot->node, quads[i]);
            bool is_seen = vec3d_dot(p.normal, vec3d_sub(g.frame.camera.position, p.at)) > 1e-6;
            if (is_drawn(g.r, slot->quad_first + i)) {
                ++drawn;
            } else {
                ++left_out;
                assert_false(is_seen);
            }
        }
        render_mesh_remove(g.r, mesh);
    }
    assert_true(left_out * 5 > drawn); // and much is left out
    rig_close();
}

// Beside the sun's picture of them there is nothing to draw.
TEST(what_only_casts_shadows_is_not_drawn) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    rig_open(&(render_desc){.quad_count_max = 65536, .mesh_count_max = 16}, 4 << 20);
    render_mesh meshes[2] = {add(64, 64, 300, 20), add(65, 64, 200, 40)};
    g.frame.quality = 3;
    chunks_list(&g.frame, meshes, 2);
    assert_int_equal(run_frame(1), NB_OK);
    render_stats both = render_stats_get(g.r);
    uint64_t both_draws = nb_gpu_stats_get(g.gpu).draw_count;
    assert_int_equal(both.chunk_count, 2);
    uint32_t own_count = render_mesh_triangles(g.r, meshes[1], chunks[1].faces);
    chunks[1].faces = 0;
    assert_int_equal(run_frame(1), NB_OK);
    render_stats one = render_stats_get(g.r);
    assert_int_equal(one.chunk_count, 2);
    assert_true(own_count > 2 * 40 && one.draw_count < both.draw_count);
    assert_int_equal(one.triangle_count, both.triangle_count - own_count);
    assert_int_equal(render_mesh_triangles(g.r, meshes[1], 0), 0);
    assert_int_equal(render_mesh_triangles(g.r, (render_mesh){0}, RENDER_FACES_ALL), 0);
    // Of its draws the one for the sun is left.
    uint64_t one_draws = nb_gpu_stats_get(g.gpu).draw_count;
    assert_int_equal(both_draws - one_draws, both.draw_count - one.draw_count + 1);
    chunks[0].faces = 0;
    assert_int_equal(run_frame(1), NB_OK);
    assert_int_equal(render_stats_get(g.r).draw_count, 0);
    rig_close();
}

TEST(the_nearest_ground_comes_first) {
    uint64_t seed = test_seed(__func__);
    quads_fill(quads, QUADS, &seed);
    rig_open(&(render_desc){.quad_count_max = 1u << 20, .mesh_count_max = 256}, 4 << 20);
    render_mesh meshes[200];
    for (uint32_t i = 0; i < 200; ++i)
        meshes[i] = add((uint32_t)(test_random(&seed) % 128), (uint32_t)(test_random(&seed) % 128), 30, 0);
    chunks_list(&g.frame, meshes, 200);
    assert_int_equal(run_frame(1), NB_OK);
    assert_int_equal(g.r->chunk_count, 200);
    double before = 0;
    for (uint32_t i = 0; i < g.r->chunk_count; ++i) {
        double far = vec3d_length(vec3d_sub(g.r->meshes[g.r->order[i]].middle, g.frame.camera.position));
        assert_true(far >= before - 0.51);
        before = far;
    }
    rig_close();
}

// --- pages ---

TEST(pages_are_taken_once_and_given_back) {
    uint64_t seed = test_seed(__func__);
    enum { PAGES = 333, RUNS = 64 };
    static uint8_t owner[PAGES];
    quad_pool pool;
    struct {
        uint32_t first, count;
    } runs[RUNS] = {{0, 0}};
    memset(owner, 0, sizeof owner);
    assert_int_equal(quad_pool_init(&pool, PAGES, NULL), NB_OK);
    uint64_t rounds = test_size(20000, 200000, 2000000);
    for (uint64_t round = 0; round < rounds; ++round) {
        uint32_t i = (uint32_t)(test_random(&seed) % RUNS), wanted = (uint32_t)(test_random(&seed) % 24) + 1;
        if (runs[i].count > 0) {
            quad_pool_give(&pool, runs[i].first, runs[i].count);
            memset(&owner[runs[i].first], 0, runs[i].count);
            runs[i].count = 0;
            continue;
        }
        // The lowest place that fits, by looking at each.
        uint32_t best = 0, run = 0;
        while (best + run < PAGES && run < wanted) {
            if (owner[best + run] == 0)
                ++run;
            else
                best += run + 1, run = 0;
        }
        uint32_t first = 0;
        nb_result result = quad_pool_take(&pool, wanted, &first);
        assert_int_equal(result, run == wanted ? NB_OK : NB_FULL);
        if (result != NB_OK) continue;
        assert_int_equal(first, best);
        memset(&owner[first], 1, wanted);
        runs[i].first = first;
        runs[i].count = wanted;
    }
    uint32_t used = 0, first = 0;
    for (uint32_t i = 0; i < PAGES; ++i) used += owner[i];
    assert_int_equal(pool.used_count, used);
    assert_int_equal(quad_pool_take(&pool, 0, &first), NB_OK);
    assert_int_equal(quad_pool_take(&pool, PAGES + 1, &first), NB_FULL);
    quad_pool_deinit(&pool);
}
