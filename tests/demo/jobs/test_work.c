// SPDX-License-Identifier: MIT
// The nine kinds of parallel work of the demo, each against what it stands for, worked out in the plainest way.

#include "support/support.h"

#include "demo/jobs/home_lights.h"
#include "demo/jobs/work_lights.h"
#include "demo/jobs/work_lod.h"
#include "demo/jobs/work_materials.h"
#include "demo/jobs/work_particles.h"
#include "demo/jobs/work_pose.h"
#include "demo/jobs/work_queries.h"
#include "demo/jobs/work_upload.h"
#include "demo/jobs/work_visibility.h"

static float real(uint64_t *random, float low, float high) {
    return low + (high - low) * (float)(test_random(random) >> 40) / 16777216.0f;
}

static vec3 place(uint64_t *random, float reach) {
    float x = real(random, -reach, reach), y = real(random, -reach, reach), z = real(random, -reach, reach);
    return (vec3){x, y, z};
}

static void assert_near(float value, float expected, float tolerance) {
    if (!(value > expected - tolerance && value < expected + tolerance)) fail_msg("%g is not %g", value, expected);
}

// --- animation ---

TEST(bones_keep_their_length_and_meet_in_a_knee) {
    uint64_t random = test_seed("bones_keep_their_length");
    for (uint32_t i = 0; i < 5000; ++i) {
        vec3 hip = place(&random, 50), foot = vec3_add(hip, place(&random, 0.7f)), wish = place(&random, 1);
        vec3 bend = vec3_normal(wish, (vec3){1, 0, 0}), line = vec3_sub(foot, hip);
        pose_leg leg = pose_solve(hip, foot, bend);
        assert_near(vec3_length(vec3_sub(leg.knee, leg.hip)), POSE_THIGH_LENGTH, 1e-3f);
        assert_near(vec3_length(vec3_sub(leg.foot, leg.knee)), POSE_SHIN_LENGTH, 1e-3f);
        bool is_reached = vec3_length(line) > 0.07f && vec3_length(line) < POSE_THIGH_LENGTH + POSE_SHIN_LENGTH - 0.01f;
        if (is_reached) assert_near(vec3_length(vec3_sub(leg.foot, foot)), 0, 1e-4f);
        // Bent towards where it should, not away from it.
        vec3 across = vec3_sub(leg.knee, leg.hip), along = vec3_normal(line, (vec3){0, -1, 0});
        across = vec3_sub(across, vec3_scale(along, vec3_dot(across, along)));
        assert_true(vec3_dot(across, bend) > -1e-3f);
    }
}

TEST(legs_out_of_reach_or_without_direction_are_still_legs) {
    vec3 hip = {1, 2, 3}, bend = {0, -1, 0};
    vec3 feet[] = {{1, 2, 3}, {1, -50, 3}, {1, 1.5f, 3}}; // no distance, far too far, and straight along `bend`
    for (uint32_t i = 0; i < 3; ++i) {
        pose_leg leg = pose_solve(hip, feet[i], bend);
        assert_near(vec3_length(vec3_sub(leg.knee, leg.hip)), POSE_THIGH_LENGTH, 1e-3f);
        assert_near(vec3_length(vec3_sub(leg.foot, leg.knee)), POSE_SHIN_LENGTH, 1e-3f);
    }
}

TEST(feet_that_carry_weight_are_on_the_ground) {
    pose_body bodies[40];
    pose poses[40];
    // On a wall, for whom up is another way.
    vec3 up = {0.6f, 0.8f, 0}, along = {0, 0, 1};
    for (uint32_t i = 0; i < 40; ++i)
        bodies[i] = (pose_body){.feet = vec3_scale(up, 20),
                                .up = up,
                                .forward = along,
                                .phase = (float)i / 40,
                                .is_moving = i > 0 ? 1.0f : 0};
    pose_input input = {bodies};
    pose_output out = {.poses = poses};
    pose_run(&input, 0, 40, &out);
    for (uint32_t i = 0; i < 40; ++i) {
        uint32_t low = 0;
        for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) {
            float height = vec3_dot(poses[i].legs[leg].foot, up);
            assert_true(height > 19.99f && height < 20.2f);
            low += height < 20.01f;
        }
        assert_in_range(low, i == 0 ? 4 : 2, 4);
    }
}

TEST(feet_find_the_ground_where_it_is_uneven) {
    uint64_t random = test_seed("feet_find_the_ground");
    for (uint32_t i = 0; i < 500; ++i) {
        pose made;
        pose_body body = {.feet = {3, 50, 4}, .up = {0, 1, 0}, .forward = {1, 0, 0}};
        for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) body.ground[leg] = real(&random, -POSE_REACH, POSE_REACH);
        pose_output out = {.poses = &made};
        pose_run(&(pose_input){&body}, 0, 1, &out);
        for (uint32_t leg = 0; leg < POSE_LEG_COUNT; ++leg) {
            vec3 at = vec3_add(body.feet, pose_leg_offset(&body, leg));
            assert_near(made.legs[leg].foot.y, 50 + body.ground[leg], 0.02f);
            assert_near(made.legs[leg].foot.x, at.x, 0.02f);
        }
    }
}

// --- particles ---

TEST(particles_rise_fall_fade_and_come_again) {
    static particle pools[2][64];
    static particle_sprite sprites[64];
    particle_emitter emitter = {{10, 20, 30}, {0, 0, 1}, 6, 1, 9.81f, 0xff8000};
    uint32_t births = 0, deaths = 0, highest_alpha = 0;
    for (uint64_t frame = 0; frame < 600; ++frame) {
        const particle *before = pools[frame % 2];
        particle *after = pools[(frame + 1) % 2];
        particles_input input = {before, &emitter, 1, 1.0f / 60, 1, frame};
        particles_output out = {.particles = after, .sprites = sprites};
        particles_run(&input, 0, 64, &out);
        uint32_t alive = 0;
        for (uint32_t i = 0; i < 64; ++i) {
            births += before[i].life_s <= 0 && after[i].life_s > 0;
            deaths += before[i].life_s > 0 && after[i].life_s <= 0;
            alive += after[i].life_s > 0;
            if (before[i].life_s > 0 && after[i].life_s > 0) assert_true(after[i].speed.z < before[i].speed.z);
        }
        assert_int_equal(out.sprite_count, alive);
        for (uint32_t i = 0; i < alive; ++i) {
            assert_int_equal(sprites[i].colour & 0xffffff, 0xff8000);
            highest_alpha = sprites[i].colour >> 24 > highest_alpha ? sprites[i].colour >> 24 : highest_alpha;
        }
    }
    assert_true(births > 200 && deaths > 200 && highest_alpha > 250);
}

TEST(without_emitters_nothing_is_born) {
    particle before[2] = {{{0, 0, 0}, {0, 0, 0}, 0, 0}, {{1, 1, 1}, {1, 1, 1}, 0, 1}}, after[2];
    particle_sprite sprites[2];
    particles_input input = {before, NULL, 0, 0.1f, 1, 1};
    particles_output out = {.particles = after, .sprites = sprites};
    particles_run(&input, 0, 2, &out);
    assert_int_equal(out.sprite_count, 1);
    assert_true(after[0].life_s <= 0 && after[1].life_s > 0);
}

// By the number of the last step alone: what the frames before were, and how many, does not show. Many are alive, of
// all ages, as in a pool that has run for long.
TEST(particles_anew_are_the_same_whatever_was_before) {
    static particle pools[2][64], after[2][64];
    static particle_sprite sprites[2][64];
    particle_emitter emitter = {{10, 20, 30}, {0, 0, 1}, 6, 1, 9.81f, 0xff8000};
    for (uint32_t i = 0; i < 64; ++i) pools[1][i] = (particle){{1, 2, 3}, {0, 0, 1}, 0.1f, 1};
    uint32_t counts[2], young = 0, old = 0;
    for (uint32_t i = 0; i < 2; ++i) {
        particles_input input = {pools[i], &emitter, 1, 1.0f / 60, 1, 180};
        particles_output out = {.particles = after[i], .sprites = sprites[i]};
        particles_restart(&input, 300, 0, 64, &out);
        counts[i] = out.sprite_count;
    }
    assert_memory_equal(after[0], after[1], sizeof after[0]);
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(sprites[0], sprites[1], counts[0] * sizeof sprites[0][0]);
    for (uint32_t i = 0; i < 64; ++i) {
        young += after[0][i].life_s > 0 && after[0][i].age_s < after[0][i].life_s / 2;
        old += after[0][i].life_s > 0 && after[0][i].age_s > after[0][i].life_s / 2;
    }
    assert_true(young > 12 && old > 12 && counts[0] > 48);
}

// Step by step it is what frames of the same numbers come to.
TEST(particles_anew_are_those_of_as_many_frames) {
    static particle pools[2][64], anew[64];
    static particle_sprite sprites[64];
    particle_emitter emitter = {{10, 20, 30}, {0, 0, 1}, 6, 1, 9.81f, 0xff8000};
    for (uint64_t frame = 0; frame < 100; ++frame) {
        particles_input input = {pools[frame % 2], &emitter, 1, 1.0f / 60, 1, frame};
        particles_output out = {.particles = pools[(frame + 1) % 2], .sprites = sprites};
        particles_run(&input, 0, 64, &out);
    }
    particles_input input = {NULL, &emitter, 1, 1.0f / 60, 1, 99};
    particles_output out = {.particles = anew, .sprites = sprites};
    particles_restart(&input, 100, 0, 64, &out);
    assert_memory_equal(anew, pools[0], sizeof anew);
}

// --- visibility ---

// How a point looks to the camera, without any plane.
static bool camera_sees(const camera *eye, vec3 point) {
    vec3 right = vec3_normal(vec3_cross(eye->forward, eye->up), (vec3){1, 0, 0});
    vec3 top = vec3_cross(right, eye->forward), line = vec3_sub(point, eye->position);
    float depth = vec3_dot(line, eye->forward), x = vec3_dot(line, right), y = vec3_dot(line, top);
    if (depth < eye->near || depth > eye->far) return false;
    return fabsf(x) <= depth * eye->tan_half_x && fabsf(y) <= depth * eye->tan_half_y;
}

static camera any_camera(uint64_t *random, vec3d *eye) {
    double u = real(random, 0, 4096), v = real(random, 0, 4096), h = real(random, 2, 100);
    *eye = sphere_position((uint32_t)(test_random(random) % 6), u, v, h);
    vec3 up = vec3_normal(vec3_of(*eye), (vec3){0, 1, 0}), way = vec3_normal(place(random, 1), (vec3){1, 0, 0});
    // Down rather than up.
    vec3 forward = vec3_normal(vec3_sub(way, vec3_scale(up, 0.4f)), (vec3){1, 0, 0});
    return (camera){vec3_of(*eye), forward, up, 0.9f, 0.5f, 0.5f, 400};
}

TEST(nothing_that_a_camera_sees_is_culled) {
    uint64_t random = test_seed("nothing_that_a_camera_sees");
    uint32_t points_seen = 0, chunks_culled = 0;
    for (uint32_t i = 0; i < 3000; ++i) {
        vec3d at;
        camera eye = any_camera(&random, &at);
        frustum area = frustum_of(&eye);
        sphere_place below = sphere_locate(at);
        uint32_t level = i % 3;
        lod_node node = {(uint8_t)below.face, (uint8_t)level, (uint8_t)(sphere_column(below.u) / node_columns(level)),
                         (uint8_t)(sphere_column(below.v) / node_columns(level)), 0};
        // A neighbour of where the camera is, on the same face.
        node.x = (uint8_t)((node.x + test_random(&random) % 5) % (128u >> level));
        lod_bounds bounds = lod_bounds_of(node, -10, 90);
        uint8_t is_drawn = i % 7 != 0;
        uint32_t visible[1];
        visibility_output out = {.visible = visible};
        visibility_run(&(visibility_input){area, at, &bounds, &is_drawn, 1, NULL, 0, 1}, 0, 1, &out);
        bool is_kept = out.visible_count == 1, is_seen = false;
        if (!is_drawn) assert_false(is_kept);
        for (uint32_t k = 0; k < 27; ++k) {
            double width = node_columns(level) / 2.0, u = (node.x * 2 + k % 3) * width,
                   v = (node.y * 2 + k / 3 % 3) * width;
            // Up to the highest: over the limb is what is above the sea.
            vec3 point = vec3_of(sphere_position(node.face, u, v, k / 9 * 45.0));
            bool is_point_seen =
                camera_sees(&eye, point) && lod_point_is_over_horizon(at, (vec3d){point.x, point.y, point.z});
            is_seen = is_seen || is_point_seen;
            points_seen += is_point_seen;
            if (is_point_seen) assert_true(frustum_has_sphere(&area, point, 0.01f));
            // Something so small beside the picture is culled.
            if (!camera_sees(&eye, point)) assert_false(frustum_has_sphere(&area, point, -0.1f));
        }
        if (is_seen && is_drawn) assert_true(is_kept);
        chunks_culled += !is_kept;
    }
    assert_true(points_seen > 1000);
    assert_in_range(chunks_culled, 500, 2900); // much of the planet is behind the camera or beside it
}

TEST(what_is_behind_the_planet_is_culled) {
    // From orbit one sees all of the near side, and nothing of the far one.
    vec3d eye = sphere_position(0, 2048, 2048, 4000);
    camera from = {vec3_of(eye), {-1, 0, 0}, {0, 1, 0}, 0.9f, 0.9f, 0.5f, 12000};
    lod_bounds chunks[6];
    uint8_t is_drawn[6] = {1, 1, 1, 1, 1, 1};
    vec3 animals[2] = {vec3_of(sphere_position(0, 2100, 2000, 5)), vec3_of(sphere_position(1, 2100, 2000, 5))};
    for (uint32_t face = 0; face < 6; ++face)
        chunks[face] = lod_bounds_of((lod_node){(uint8_t)face, 2, 15, 15, 0}, 0, 90);
    uint32_t visible[8];
    visibility_output out = {.visible = visible};
    visibility_run(&(visibility_input){frustum_of(&from), eye, chunks, is_drawn, 6, animals, 2, 1}, 0, 8, &out);
    assert_int_equal(out.visible_count, 2);
    assert_int_equal(visible[0], 0);
    assert_int_equal(visible[1], 6);
}

// --- levels of detail ---

static uint8_t lod_once(float distance, uint8_t before, lod_output *out) {
    static uint8_t level;
    static lod_impostor impostor;
    pose_body at = {.feet = {distance, 0, 0}, .up = {0, 1, 0}, .forward = {1, 0, 0}};
    lod_input input = {&at, &before, {0, 0, 0}, 32};
    *out = (lod_output){.levels = &level, .impostors = &impostor};
    lod_run(&input, 0, 1, out);
    return level;
}

TEST(levels_follow_the_distance_with_hysteresis) {
    lod_output out;
    uint8_t level = 0;
    float up[LOD_LEVEL_COUNT] = {0}, down[LOD_LEVEL_COUNT] = {0};
    for (float d = 0; d < 600; d += 0.25f) {
        uint8_t next = lod_once(d, level, &out);
        assert_true(next == level || next == level + 1);
        if (next != level) up[next] = d;
        level = next;
        assert_int_equal(out.impostor_count, level == LOD_LEVEL_IMPOSTOR);
    }
    assert_int_equal(level, LOD_LEVEL_IMPOSTOR);
    for (float d = 600; d >= 0; d -= 0.25f) {
        uint8_t next = lod_once(d, level, &out);
        assert_true(next == level || next + 1 == level);
        if (next != level) down[level] = d;
        level = next;
    }
    assert_int_equal(level, 0);
    for (uint32_t i = 1; i < LOD_LEVEL_COUNT; ++i) {
        float border = 32.0f * (float)(1 << (i - 1));
        assert_near(up[i], border * 1.1f, 0.5f);
        assert_near(down[i], border * 0.9f, 0.5f);
    }
    assert_int_equal(lod_once(5, 255, &out), 0); // a new thing
}

TEST(without_levels_before_the_distance_alone_decides) {
    for (int32_t distance = 1; distance < 600; ++distance) {
        uint8_t level = 0;
        lod_impostor impostor;
        pose_body at = {.feet = {(float)distance, 0, 0}, .up = {0, 1, 0}, .forward = {1, 0, 0}};
        lod_input input = {&at, NULL, {0, 0, 0}, 32};
        lod_output out = {.levels = &level, .impostors = &impostor};
        lod_run(&input, 0, 1, &out);
        assert_int_equal(level, (distance > 32) + (distance > 64) + (distance > 128) + (distance > 256));
        assert_int_equal(out.impostor_count, distance > 256);
    }
}

TEST(impostors_show_the_side_the_viewer_is_on) {
    // Around the thing at the origin, from ahead of it to its right.
    static const float AROUND[8][2] = {{9, 1}, {7, 6}, {1, 9}, {-6, 7}, {-9, -1}, {-7, -6}, {-1, -9}, {6, -7}};
    for (uint32_t i = 0; i < LOD_DIRECTION_COUNT; ++i) {
        pose_body at = {.up = {0, 1, 0}, .forward = {1, 0, 0}};
        uint8_t before = LOD_LEVEL_IMPOSTOR, level = 0;
        lod_impostor impostor = {0};
        lod_input input = {&at, &before, {AROUND[i][0] * 100, 3, AROUND[i][1] * 100}, 32};
        lod_output out = {.levels = &level, .impostors = &impostor};
        lod_run(&input, 0, 1, &out);
        assert_int_equal(out.impostor_count, 1);
        assert_int_equal(impostor.direction, i);
    }
}

// --- lights ---

static light_cluster clusters[LIGHT_CLUSTER_COUNT];

// Lights anywhere before the camera, in their clusters.
static lights_input light_up(light *lights, uint32_t count, float radius_max, uint64_t *random, lights_output *out) {
    for (uint32_t i = 0; i < count; ++i)
        lights[i] = (light){vec3_add(place(random, 80), (vec3){0, 0, 80}), real(random, 1, radius_max)};
    lights_input input = {lights, count, 1.2f, 0.7f, 0.5f, 200};
    *out = (lights_output){.clusters = clusters};
    lights_run(&input, 0, LIGHT_CLUSTER_COUNT, out);
    return input;
}

TEST(every_lit_point_finds_its_light_in_its_cluster) {
    static light lights[100];
    uint64_t random = test_seed("every_lit_point");
    lights_output out;
    lights_input input = light_up(lights, 100, 6, &random, &out);
    assert_int_equal(out.dropped_count, 0);
    uint32_t lit = 0;
    for (uint32_t i = 0; i < 100000; ++i) {
        const light *from = &lights[i % 100];
        vec3 p = vec3_add(from->position, place(&random, from->radius));
        vec3 line = vec3_sub(p, from->position);
        float x = (p.x / (p.z * 1.2f) + 1) / 2, y = (p.y / (p.z * 0.7f) + 1) / 2;
        if (vec3_length(line) > from->radius * 0.999f || p.z < 0.5f || p.z >= 200) continue;
        if (!(x >= 0 && x < 1 && y >= 0 && y < 1)) continue;
        uint32_t z = 0;
        while (p.z >= light_depth(&input, z + 1)) ++z;
        uint32_t number = (z * LIGHT_CLUSTERS_Y + (uint32_t)(y * 9)) * LIGHT_CLUSTERS_X + (uint32_t)(x * 16);
        bool is_listed = false;
        for (uint32_t k = 0; k < clusters[number].light_count; ++k)
            is_listed = is_listed || clusters[number].lights[k] == i % 100;
        assert_true(is_listed);
        ++lit;
    }
    assert_true(lit > 10000);
}

TEST(light_lists_hold_only_what_touches_their_box) {
    static light lights[50];
    uint64_t random = test_seed("light_lists_hold");
    lights_output out;
    lights_input input = light_up(lights, 50, 20, &random, &out);
    for (uint32_t number = 0; number < LIGHT_CLUSTER_COUNT; ++number) {
        vec3 low, high;
        light_cluster_box(&input, number, &low, &high);
        uint32_t listed = 0;
        for (uint32_t i = 0; i < 50; ++i) {
            vec3 p = lights[i].position;
            vec3 nearest = {fminf(fmaxf(p.x, low.x), high.x), fminf(fmaxf(p.y, low.y), high.y),
                            fminf(fmaxf(p.z, low.z), high.z)};
            float gap = vec3_length(vec3_sub(p, nearest)) - lights[i].radius;
            bool is_listed = listed < clusters[number].light_count && clusters[number].lights[listed] == i;
            if (fabsf(gap) > 1e-3f) assert_int_equal(is_listed, gap <= 0); // nearer than that rounding decides
            listed += is_listed;
        }
        assert_int_equal(listed, clusters[number].light_count);
    }
}

TEST(a_full_light_list_counts_what_it_leaves_out) {
    static light lights[LIGHT_CLUSTER_LIGHTS_MAX + 9];
    static light_cluster cluster;
    for (uint32_t i = 0; i < LIGHT_CLUSTER_LIGHTS_MAX + 9; ++i) lights[i] = (light){{0, 0, 50}, 500};
    lights_input input = {lights, LIGHT_CLUSTER_LIGHTS_MAX + 9, 1.2f, 0.7f, 0.5f, 200};
    lights_output out = {.clusters = &cluster};
    lights_run(&input, 1000, 1, &out);
    assert_int_equal(cluster.light_count, LIGHT_CLUSTER_LIGHTS_MAX);
    assert_int_equal(cluster.dropped_count, 9);
    assert_int_equal(out.dropped_count, 9);
    for (uint32_t i = 0; i < LIGHT_CLUSTER_LIGHTS_MAX; ++i) assert_int_equal(cluster.lights[i], i);
}

// Where they are does not change; how far away they are is what the camera sees.
TEST(lights_of_a_home_burn_by_night_and_fires_by_day) {
    static light lights[HOME_LIGHTS], seen[HOME_LIGHTS];
    creature_home home = home_of(1, 3);
    home_lights_place(1, home, lights);
    vec3d at = vec3d_scale(home_direction(home), SPHERE_RADIUS + 30);
    planet_eye eye = {.camera = {.position = vec3_of(at), .forward = {0, 0, 1}, .up = {0, 1, 0}}, .daylight = 1};
    assert_int_equal(home_lights_seen(lights, &eye, 1, seen), HOME_FIRES);
    eye.daylight = 0;
    assert_int_equal(home_lights_seen(lights, &eye, 1, seen), HOME_LIGHTS);
    for (uint32_t i = 0; i < HOME_LIGHTS; ++i) {
        vec3 line = vec3_sub(lights[i].position, eye.camera.position);
        assert_near(vec3_length(seen[i].position), vec3_length(line), 0.01f);
        assert_near(seen[i].position.z, line.z, 0.01f);
        assert_true(vec3_length(line) < 150);
        assert_true(seen[i].radius > lights[i].radius * 0.8f && seen[i].radius < lights[i].radius * 1.2f);
        sphere_place place = sphere_locate((vec3d){lights[i].position.x, lights[i].position.y, lights[i].position.z});
        double above = place.h - terrain_height(1, place.face, sphere_column(place.u), sphere_column(place.v)) - 1;
        if (place.h > 5) assert_true(above > 0.4 && above < 4.6);
    }
}

// --- materials ---

TEST(materials_in_use_are_packed_by_their_numbers) {
    const uint64_t grass = (uint64_t)1 << TERRAIN_GRASS, water = (uint64_t)1 << TERRAIN_WATER;
    material_draw draws[3] = {{.node = {0, 0, 64, 64, 0}, .material_bits = grass, .slot = 7},
                              {.node = {0, 0, 65, 64, 0}, .material_bits = grass | water, .slot = 9},
                              {.node = {0, 1, 40, 32, 0}, .material_bits = grass, .slot = 2}};
    draw_block blocks[3];
    material_block packed[TERRAIN_MATERIAL_COUNT];
    memset(packed, 0, sizeof packed);
    // Above the middle of the first.
    materials_input input = {draws, sphere_position(0, 64 * 32 + 16, 64 * 32 + 16, 5)};
    materials_output out = {.blocks = blocks};
    materials_run(&input, 0, 3, &out);
    assert_int_equal(materials_pack(&out, packed), 2);
    assert_int_equal(out.draw_counts[TERRAIN_GRASS], 3);
    assert_int_equal(out.draw_counts[TERRAIN_WATER], 1);
    for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m) {
        bool is_used = m == TERRAIN_GRASS || m == TERRAIN_WATER;
        const palette_entry *look = palette_of(m);
        assert_true(packed[m].opacity == (is_used ? look->opacity : 0));
        assert_true(packed[m].colour[1] == (is_used ? look->colour[1] : 0));
    }
    assert_near(blocks[0].distance, 5, 1e-3f);
    assert_near(blocks[1].distance, 32.4f, 0.5f);
    assert_true(blocks[2].distance > 500);
    // From above all four sides; from beside it only what looks there.
    assert_int_equal(blocks[0].faces, (1 << MESH_FACE_COUNT) - 1);
    assert_int_equal(blocks[1].faces & (1u << MESH_FACE_X_NEGATIVE), 1u << MESH_FACE_X_NEGATIVE);
    assert_int_equal(blocks[1].faces & (1u << MESH_FACE_X_POSITIVE), 0);
}

// --- questions ---

enum { ANIMALS = 900 };
static uint8_t animal_face[ANIMALS];
static int32_t animal_x[ANIMALS], animal_z[ANIMALS];
static uint32_t animal_rows[ANIMALS];
static query_grid animal_grid;

static query_answer ask(uint32_t self) {
    query asked = {.kind = QUERY_NEAREST, .face = animal_face[self], .x = animal_x[self], .z = animal_z[self]};
    asked.self = self;
    query_answer answer;
    queries_input input = {1, &asked, animal_face, animal_x, animal_z, &animal_grid};
    queries_output out = {.answers = &answer};
    queries_run(&input, 0, 1, &out);
    return answer;
}

TEST(the_nearest_animal_is_the_one_a_full_search_finds) {
    uint64_t random = test_seed("the_nearest_animal"), reach = (uint64_t)QUERY_RADIUS * TERRAIN_ONE;
    for (uint32_t i = 0; i < ANIMALS; ++i) {
        // On a coarse grid, so that some are equally near; and some where cells share a list, or on another face.
        animal_face[i] = i % 11 == 0 ? 3 : 2;
        animal_x[i] = ((int32_t)(test_random(&random) % 80) + 20) * 8 * TERRAIN_ONE;
        animal_z[i] = ((int32_t)(test_random(&random) % 80) + 20) * 8 * TERRAIN_ONE;
        if (i % 7 == 0) animal_x[i] += QUERY_GRID_SIZE * QUERY_CELL_SIZE * TERRAIN_ONE;
    }
    query_grid_build(&animal_grid, animal_rows, animal_x, animal_z, ANIMALS);
    uint32_t found = 0, lonely = 0;
    for (uint32_t i = 0; i < ANIMALS; ++i) {
        query_answer answer = ask(i);
        uint32_t best = QUERY_NONE;
        uint64_t distance = reach * reach;
        for (uint32_t k = 0; k < ANIMALS; ++k) {
            int64_t dx = (int64_t)animal_x[k] - animal_x[i], dz = (int64_t)animal_z[k] - animal_z[i];
            uint64_t square = (uint64_t)(dx * dx + dz * dz);
            if (k == i || animal_face[k] != animal_face[i]) continue;
            if (square > distance || (square == distance && best != QUERY_NONE)) continue;
            best = k;
            distance = square;
        }
        assert_int_equal(answer.nearest, best);
        if (best != QUERY_NONE) assert_int_equal(answer.distance_squared, distance);
        found += best != QUERY_NONE;
        lonely += best == QUERY_NONE;
    }
    assert_true(found > 100);
    print_message("%u have a neighbour, %u have none\n", found, lonely);
}

// Over the edge of a face the nearest along the columns is about the nearest in space: at an edge columns are narrower
// along it than across, by a third.
TEST(the_nearest_animal_may_be_on_another_face) {
    uint64_t random = test_seed("another_face");
    uint32_t across = 0;
    for (uint32_t edge = 0; edge < 24; ++edge) {
        for (uint32_t i = 0; i < ANIMALS; ++i) {
            int32_t side = (int32_t)(test_random(&random) % (60 * TERRAIN_ONE)) - 30 * TERRAIN_ONE;
            int32_t along = (2000 * TERRAIN_ONE) + (int32_t)(test_random(&random) % (400 * TERRAIN_ONE));
            if (edge % 2 == 1) side += TERRAIN_FACE_ONES;
            sphere_cell at =
                sphere_fold(edge / 4, edge % 4 < 2 ? side : along, edge % 4 < 2 ? along : side, TERRAIN_FACE_ONES);
            animal_face[i] = (uint8_t)at.face, animal_x[i] = at.x, animal_z[i] = at.z;
        }
        query_grid_build(&animal_grid, animal_rows, animal_x, animal_z, ANIMALS);
        for (uint32_t i = 0; i < ANIMALS; i += 9) {
            query_answer answer = ask(i);
            assert_true(answer.nearest != QUERY_NONE);
            vec3d own = sphere_position(animal_face[i], animal_x[i] / 4096.0, animal_z[i] / 4096.0, 0);
            double best = 1e9, named = 0;
            for (uint32_t k = 0; k < ANIMALS; ++k) {
                vec3d other = sphere_position(animal_face[k], animal_x[k] / 4096.0, animal_z[k] / 4096.0, 0);
                double distance = vec3d_length(vec3d_sub(other, own));
                if (k != i && distance < best) best = distance;
                if (k == answer.nearest) named = distance;
            }
            assert_true(named < best * 1.45 + 0.01);
            across += animal_face[answer.nearest] != animal_face[i];
        }
    }
    print_message("%u are on another face\n", across);
    assert_true(across > 50);
}

TEST(sight_questions_ask_the_land) {
    query asked[3] = {
        {.kind = QUERY_SIGHT, .from = sphere_position(0, 9, 9, 200), .to = sphere_position(0, 99, 9, 200)},
        {.kind = QUERY_SIGHT, .from = sphere_position(0, 9, 9, 150), .to = sphere_position(0, 9, 9, -64)},
        {.kind = QUERY_SIGHT, .from = sphere_position(0, 9, 9, 500), .to = sphere_position(1, 9, 9, 500)}};
    query_answer answers[3];
    queries_input input = {.seed = 1, .queries = asked};
    queries_output out = {.answers = answers};
    queries_run(&input, 0, 3, &out);
    assert_int_equal(answers[0].is_seen, 1);
    assert_int_equal(answers[1].is_seen, 0); // it is under the ground
    assert_int_equal(answers[2].is_seen, 0); // it is on the planet's other side
}

// --- uploads ---

TEST(the_ring_never_hands_out_what_is_in_use) {
    enum { SIZE = 1000, FRAMES = 3 };
    static uint32_t owner[SIZE]; // the frame + 1 whose quads are there
    uint64_t random = test_seed("the_ring_never"), heads[FRAMES] = {0};
    upload_ring ring = {.quad_count_max = SIZE};
    uint32_t reserved = 0, refused = 0;
    memset(owner, 0, sizeof owner);
    for (uint32_t frame = 0; frame < 5000; ++frame) {
        // What was reserved FRAMES frames ago has been drawn.
        if (frame >= FRAMES) {
            upload_release(&ring, heads[frame % FRAMES]);
            for (uint32_t i = 0; i < SIZE; ++i) owner[i] = owner[i] == frame - FRAMES + 1 ? 0 : owner[i];
        }
        for (uint64_t count = test_random(&random) % 6; count > 0; --count) {
            upload_range range;
            uint32_t size = 1 + (uint32_t)(test_random(&random) % 200);
            bool has_room = upload_reserve(&ring, size, &range);
            reserved += has_room;
            refused += !has_room;
            assert_int_equal(range.count, has_room ? size : 0);
            assert_true(range.first + range.count <= SIZE);
            for (uint32_t i = range.first; i < range.first + range.count; ++i) {
                assert_int_equal(owner[i], 0);
                owner[i] = frame + 1;
            }
        }
        heads[frame % FRAMES] = ring.head;
        assert_true(ring.head - ring.tail <= SIZE);
    }
    assert_int_equal(ring.full_count, refused);
    assert_true(reserved > 1000 && refused > 100);
}

TEST(wrong_sizes_and_releases_change_nothing) {
    upload_ring ring = {.quad_count_max = 100};
    upload_range range;
    assert_false(upload_reserve(&ring, 0, &range));
    assert_false(upload_reserve(&ring, 101, &range));
    assert_true(upload_reserve(&ring, 100, &range));
    upload_release(&ring, 101); // more than was ever reserved
    assert_false(upload_reserve(&ring, 1, &range));
    upload_release(&ring, 100);
    assert_true(upload_reserve(&ring, 1, &range));
    upload_release(&ring, 50); // older than what is released
    assert_int_equal(ring.tail, 100);
}
