// SPDX-License-Identifier: MIT
// The nine kinds of parallel work of the demo: however the items are cut into jobs, in whatever order and on whatever
// thread these run, joining their outputs by index gives the same bytes as one job.

#include "support/support.h"

#include "demo/jobs/work_lights.h"
#include "demo/jobs/work_lod.h"
#include "demo/jobs/work_materials.h"
#include "demo/jobs/work_particles.h"
#include "demo/jobs/work_pose.h"
#include "demo/jobs/work_queries.h"
#include "demo/jobs/work_upload.h"
#include "demo/jobs/work_visibility.h"

#define PARTS 5
#define ITEMS 700
#define ROUNDS 20

// Memory that is never zero by accident, freed by end_case.
static void *blocks[4 * ROUNDS * (PARTS + 2)];
static uint32_t block_count;

static void *take(size_t size_bytes) {
    assert_in_range(block_count, 0, sizeof blocks / sizeof blocks[0] - 1);
    void *memory = malloc(size_bytes + 1);
    assert_non_null(memory);
    memset(memory, 0xA5, size_bytes);
    blocks[block_count++] = memory;
    return memory;
}

static void end_case(void) {
    while (block_count > 0) free(blocks[--block_count]);
}

// Cuts 0..count into PARTS ranges, some of them empty.
static void cut(uint64_t *random, uint32_t count, uint32_t *ends) {
    for (uint32_t i = 0; i < PARTS; ++i) {
        uint32_t end = i + 1 == PARTS ? count : (uint32_t)(test_random(random) % (count + 1)), at = i;
        for (; at > 0 && ends[at - 1] > end; --at) ends[at] = ends[at - 1];
        ends[at] = end;
    }
}

static float real(uint64_t *random, float low, float high) {
    return low + (high - low) * (float)(test_random(random) >> 40) / 16777216.0f;
}

static vec3 place(uint64_t *random, float reach) {
    float x = real(random, -reach, reach), y = real(random, -reach, reach), z = real(random, -reach, reach);
    return (vec3){x, y, z};
}

static void same(const void *a, const void *b, size_t size_bytes) {
    if (size_bytes > 0) assert_memory_equal(a, b, size_bytes);
}

static void same_items(const void *a, uint32_t a_count, const void *b, uint32_t b_count, size_t size_bytes) {
    assert_int_equal(a_count, ITEMS);
    assert_int_equal(b_count, ITEMS);
    same(a, b, ITEMS * size_bytes);
}

// Each case: one job's output, then ROUNDS times the outputs of PARTS jobs, run from the last to the first, or by a
// thread each, and joined from the first to the last. `make` gives an empty output, `check` compares two.
#define SPLIT_CASE(kind, make, check)                                                                             \
    typedef struct kind##_crew {                                                                                  \
        const kind##_input *input;                                                                                \
        kind##_output *parts;                                                                                     \
        uint32_t ends[PARTS];                                                                                     \
        test_gate gate;                                                                                           \
    } kind##_crew;                                                                                                \
    static void kind##_run_part(void *user, uint32_t i) {                                                         \
        kind##_crew *crew = (kind##_crew *)user;                                                                  \
        uint32_t first = i == 0 ? 0 : crew->ends[i - 1];                                                          \
        kind##_run(crew->input, first, crew->ends[i] - first, &crew->parts[i]);                                   \
    }                                                                                                             \
    static void kind##_run_part_in_thread(void *user, uint32_t i) {                                               \
        test_gate_pass(&((kind##_crew *)user)->gate, PARTS);                                                      \
        kind##_run_part(user, i);                                                                                 \
    }                                                                                                             \
    static void kind##_check_splits(const kind##_input *input, uint32_t count, uint64_t *random) {                \
        kind##_output whole = make(count);                                                                        \
        kind##_run(input, 0, count, &whole);                                                                      \
        for (uint32_t round = 0; round < ROUNDS; ++round) {                                                       \
            kind##_output parts[PARTS], joined = make(count);                                                     \
            kind##_crew crew = {.input = input, .parts = parts};                                                  \
            cut(random, count, crew.ends);                                                                        \
            for (uint32_t i = 0; i < PARTS; ++i) parts[i] = make(crew.ends[i] - (i == 0 ? 0 : crew.ends[i - 1])); \
            test_thread threads[PARTS];                                                                           \
            if (round % 2 == 0) {                                                                                 \
                for (uint32_t i = PARTS; i > 0; --i) kind##_run_part(&crew, i - 1);                               \
            } else {                                                                                              \
                test_threads_start(threads, PARTS, kind##_run_part_in_thread, &crew);                             \
                test_threads_join(threads, PARTS);                                                                \
            }                                                                                                     \
            for (uint32_t i = 0; i < PARTS; ++i) kind##_append(&joined, &parts[i]);                               \
            check(&whole, &joined);                                                                               \
        }                                                                                                         \
        end_case();                                                                                               \
    }

// --- animation ---

static pose_output pose_make(uint32_t count) { return (pose_output){.poses = take(count * sizeof(pose))}; }

static void pose_same(const pose_output *a, const pose_output *b) {
    same_items(a->poses, a->pose_count, b->poses, b->pose_count, sizeof(pose));
}

SPLIT_CASE(pose, pose_make, pose_same)

TEST(poses_are_the_same_for_any_split) {
    static pose_body bodies[ITEMS];
    uint64_t random = test_seed("poses");
    for (uint32_t i = 0; i < ITEMS; ++i) {
        vec3 forward = place(&random, 1);
        forward.y = 0;
        bodies[i] = (pose_body){.feet = place(&random, 500),
                                .up = {0, 1, 0},
                                .forward = vec3_normal(forward, (vec3){1, 0, 0}),
                                .phase = real(&random, 0, 50),
                                .is_moving = real(&random, 0, 1)};
    }
    pose_input input = {bodies};
    pose_check_splits(&input, ITEMS, &random);
}

// --- particles ---

static particles_output particles_make(uint32_t count) {
    return (particles_output){.particles = take(count * sizeof(particle)),
                              .sprites = take(count * sizeof(particle_sprite))};
}

static void particles_same(const particles_output *a, const particles_output *b) {
    assert_int_equal(a->particle_count, ITEMS);
    assert_in_range(a->sprite_count, 1, ITEMS - 1);
    assert_int_equal(a->particle_count, b->particle_count);
    assert_int_equal(a->sprite_count, b->sprite_count);
    same(a->particles, b->particles, a->particle_count * sizeof(particle));
    same(a->sprites, b->sprites, a->sprite_count * sizeof(particle_sprite));
}

SPLIT_CASE(particles, particles_make, particles_same)

TEST(particles_are_the_same_for_any_split) {
    static particle pool[ITEMS];
    particle_emitter emitters[3];
    uint64_t random = test_seed("particles");
    memset(pool, 0, sizeof pool);
    for (uint32_t i = 0; i < 3; ++i)
        emitters[i] = (particle_emitter){place(&random, 100), {0, 1, 0}, 5, 2, 9, 0x112233u * i};
    for (uint32_t i = 0; i < ITEMS; i += 2)
        pool[i] = (particle){place(&random, 100), place(&random, 3), real(&random, 0, 1), 1};
    particles_input input = {pool, emitters, 3, 0.016f, 1, 77};
    particles_check_splits(&input, ITEMS, &random);
}

// --- visibility ---

static visibility_output visibility_make(uint32_t count) {
    return (visibility_output){.visible = take(count * sizeof(uint32_t))};
}

static void visibility_same(const visibility_output *a, const visibility_output *b) {
    assert_in_range(a->visible_count, 1, ITEMS - 1);
    assert_int_equal(a->visible_count, b->visible_count);
    same(a->visible, b->visible, a->visible_count * sizeof(uint32_t));
}

SPLIT_CASE(visibility, visibility_make, visibility_same)

TEST(visible_sets_are_the_same_for_any_split) {
    static lod_bounds chunks[ITEMS];
    static uint8_t is_drawn[ITEMS];
    static vec3 spheres[ITEMS];
    uint64_t random = test_seed("visible sets");
    vec3d eye = sphere_position(0, 2048, 2048, 30);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        chunks[i] = lod_bounds_of((lod_node){0, 0, (uint8_t)(58 + i % 13), (uint8_t)(58 + i / 13 % 13), 0}, 0, 40);
        is_drawn[i] = i % 5 != 0;
        spheres[i] = vec3_add(vec3_of(eye), place(&random, 200));
    }
    camera from = {.position = vec3_of(eye),
                   .forward = vec3_normal((vec3){-0.2f, 1, 0.4f}, (vec3){1, 0, 0}),
                   .up = {1, 0, 0},
                   .tan_half_x = 0.9f,
                   .tan_half_y = 0.5f,
                   .near = 0.1f,
                   .far = 250};
    visibility_input input = {frustum_of(&from), eye, chunks, is_drawn, 300, spheres, ITEMS - 300, 1};
    visibility_check_splits(&input, ITEMS, &random);
}

// --- levels of detail ---

static lod_output lod_make(uint32_t count) {
    return (lod_output){.levels = take(count), .impostors = take(count * sizeof(lod_impostor))};
}

static void lod_same(const lod_output *a, const lod_output *b) {
    assert_int_equal(a->level_count, ITEMS);
    assert_in_range(a->impostor_count, 1, ITEMS - 1);
    assert_int_equal(a->level_count, b->level_count);
    assert_int_equal(a->impostor_count, b->impostor_count);
    same(a->levels, b->levels, a->level_count);
    same(a->impostors, b->impostors, a->impostor_count * sizeof(lod_impostor));
}

SPLIT_CASE(lod, lod_make, lod_same)

TEST(levels_of_detail_are_the_same_for_any_split) {
    static pose_body bodies[ITEMS];
    static uint8_t levels[ITEMS];
    uint64_t random = test_seed("levels of detail");
    for (uint32_t i = 0; i < ITEMS; ++i) {
        bodies[i] = (pose_body){.feet = place(&random, 300), .up = {0, 1, 0}, .forward = {1, 0, 0}};
        levels[i] = (uint8_t)(i % LOD_LEVEL_COUNT);
    }
    lod_input input = {bodies, levels, {1, 2, 3}, 32};
    lod_check_splits(&input, ITEMS, &random);
}

// --- lights ---

static lights_output lights_make(uint32_t count) {
    return (lights_output){.clusters = take(count * sizeof(light_cluster))};
}

static void lights_same(const lights_output *a, const lights_output *b) {
    assert_int_equal(a->cluster_count, LIGHT_CLUSTER_COUNT);
    assert_true(a->dropped_count > 0);
    assert_int_equal(a->cluster_count, b->cluster_count);
    assert_int_equal(a->dropped_count, b->dropped_count);
    same(a->clusters, b->clusters, a->cluster_count * sizeof(light_cluster));
}

SPLIT_CASE(lights, lights_make, lights_same)

TEST(light_lists_are_the_same_for_any_split) {
    static light lights[300];
    uint64_t random = test_seed("light lists");
    for (uint32_t i = 0; i < 300; ++i)
        lights[i] = (light){vec3_add(place(&random, 60), (vec3){0, 0, 50}), real(&random, 15, 40)};
    lights_input input = {lights, 300, 1.2f, 0.7f, 0.5f, 300};
    lights_check_splits(&input, LIGHT_CLUSTER_COUNT, &random);
}

// --- materials ---

static materials_output materials_make(uint32_t count) {
    return (materials_output){.blocks = take(count * sizeof(draw_block))};
}

static void materials_same(const materials_output *a, const materials_output *b) {
    material_block packed_a[TERRAIN_MATERIAL_COUNT], packed_b[TERRAIN_MATERIAL_COUNT];
    same_items(a->blocks, a->block_count, b->blocks, b->block_count, sizeof(draw_block));
    same(a->draw_counts, b->draw_counts, sizeof a->draw_counts);
    memset(packed_a, 0, sizeof packed_a);
    memset(packed_b, 0, sizeof packed_b);
    assert_int_equal(materials_pack(a, packed_a), materials_pack(b, packed_b));
    same(packed_a, packed_b, sizeof packed_a);
}

SPLIT_CASE(materials, materials_make, materials_same)

TEST(uniform_blocks_are_the_same_for_any_split) {
    static material_draw draws[ITEMS];
    uint64_t random = test_seed("uniform blocks");
    for (uint32_t i = 0; i < ITEMS; ++i) {
        draws[i] = (material_draw){.node = {(uint8_t)(i % 6), 2, (uint8_t)(i % 32), (uint8_t)(i / 32), 0},
                                   .material_bits = test_random(&random) & 0x1ffffe,
                                   .quad_count = i * 3,
                                   .slot = i};
    }
    materials_input input = {draws, sphere_position(0, 400, 300, 20)};
    materials_check_splits(&input, ITEMS, &random);
}

// --- questions ---

static queries_output queries_make(uint32_t count) {
    return (queries_output){.answers = take(count * sizeof(query_answer))};
}

static void queries_same(const queries_output *a, const queries_output *b) {
    same_items(a->answers, a->answer_count, b->answers, b->answer_count, sizeof(query_answer));
}

SPLIT_CASE(queries, queries_make, queries_same)

TEST(answers_are_the_same_for_any_split) {
    static query queries[ITEMS];
    static uint8_t face[ITEMS];
    static int32_t x[ITEMS], z[ITEMS];
    static uint32_t rows[ITEMS];
    static query_grid grid;
    uint64_t random = test_seed("answers");
    for (uint32_t i = 0; i < ITEMS; ++i) {
        // Around the corner of three faces.
        int32_t at_x = (int32_t)(test_random(&random) % (400 * TERRAIN_ONE)) - 200 * TERRAIN_ONE;
        int32_t at_z = (int32_t)(test_random(&random) % (400 * TERRAIN_ONE)) - 200 * TERRAIN_ONE;
        sphere_cell at = sphere_fold(0, at_x, at_z, TERRAIN_FACE_ONES);
        face[i] = (uint8_t)at.face, x[i] = at.x, z[i] = at.z;
    }
    query_grid_build(&grid, rows, x, z, ITEMS);
    for (uint32_t i = 0; i < ITEMS; ++i) {
        uint32_t other = (i * 31 + 7) % ITEMS;
        queries[i] =
            (query){.kind = i % 4 == 0 ? QUERY_SIGHT : QUERY_NEAREST, .face = face[i], .x = x[i], .z = z[i], .self = i};
        queries[i].from = sphere_position(face[i], x[i] / 4096.0, z[i] / 4096.0, 60);
        queries[i].to = sphere_position(face[other], x[other] / 4096.0, z[other] / 4096.0, 25);
    }
    queries_input input = {1, queries, face, x, z, &grid};
    queries_check_splits(&input, ITEMS, &random);
}

// --- uploads: jobs share the buffer, and write only inside their own ranges ---

#define RING (ITEMS * 12)
static mesh_quad buffers[1 + ROUNDS][RING];
static uint32_t buffer_number;

// The output of one job first, then, for each round, all parts and the joined one share a buffer.
static upload_output upload_make(uint32_t count) {
    (void)count;
    upload_output out = {.buffer = buffers[(buffer_number + PARTS) / (PARTS + 1)]};
    ++buffer_number;
    return out;
}

static void upload_same(const upload_output *a, const upload_output *b) {
    assert_true(a->buffer != b->buffer);
    assert_int_equal(a->item_count, ITEMS);
    assert_int_equal(a->item_count, b->item_count);
    assert_int_equal(a->quad_count, b->quad_count);
    same(a->buffer, b->buffer, sizeof buffers[0]);
}

SPLIT_CASE(upload, upload_make, upload_same)

TEST(uploads_are_the_same_for_any_split) {
    static upload_item items[ITEMS];
    static mesh_quad quads[16];
    uint64_t random = test_seed("uploads");
    upload_ring ring = {.quad_count_max = RING};
    memset(buffers, 0xA5, sizeof buffers);
    buffer_number = 0;
    for (uint32_t i = 0; i < 16; ++i) {
        mesh_rect rect = {.x = i, .y = 2, .z = 31, .w = 1, .h = 32, .face = i % 6, .material = 3, .light = 255};
        quads[i] = mesh_quad_pack(&rect);
    }
    for (uint32_t i = 0; i < ITEMS; ++i) {
        items[i] = (upload_item){.quads = quads, .quad_count = 1 + i % 11};
        assert_true(upload_reserve(&ring, items[i].quad_count, &items[i].range));
    }
    upload_input input = {items};
    upload_check_splits(&input, ITEMS, &random);
}
