// SPDX-License-Identifier: MIT
// Windmills as boxes: those near the eye, whole, and no more than there is room for.

#include "frame/engine/engine_fixture.h"

#include "demo/draw/view_mills.h"
#include "demo/game/mill_site.h"

#define SEED UINT64_C(1)

typedef struct farm {
    rig r;
    mills m;
    creature_home homes[HOME_COUNT];
} farm;

static void farm_open(farm *f) {
    rig_open(&f->r, 0);
    for (uint32_t i = 0; i < HOME_COUNT; ++i) f->homes[i] = home_of(SEED, i);
    assert_int_equal(mills_attach(&f->m, f->r.engine, SEED), NB_OK);
    assert_int_equal(mills_populate(&f->m, f->homes), NB_OK);
    run_ticks(&f->r, 1);
}

static void farm_close(farm *f) {
    rig_close(&f->r);
    mills_end(&f->m);
}

TEST(mills_near_the_eye_are_boxes) {
    static farm f;
    static render_box boxes[RENDER_BOXES_MAX];
    farm_open(&f);
    for (uint32_t i = 0; i < HOME_COUNT; ++i) {
        mill_site site = mill_site_of(SEED, f.homes[i]);
        vec3d aside = vec3d_cross(site.up, site.facing), eye = vec3d_add(site.ground, vec3d_scale(aside, 60));
        uint32_t count = view_mills(&f.m, eye, boxes, RENDER_BOXES_MAX);
        assert_true(count > 0 && count % VIEW_MILLS_BOXES_EACH == 0);
        double highest = 0;
        for (uint32_t box = 0; box < count; ++box) {
            const render_box *b = &boxes[box];
            // Right angles, turned as the renderer wants it.
            vec3 z = vec3_normal(vec3_cross(b->x, b->y), (vec3){0});
            assert_true(vec3_dot(vec3_normal(b->z, (vec3){0}), z) > 0.9999f);
            vec3d line = vec3d_sub(b->position, site.ground);
            if (vec3d_length(line) > 15) continue; // another mill
            double above = vec3d_dot(line, site.up);
            highest = above > highest ? above : highest;
        }
        assert_true(highest > 7 && highest < 13);
    }
    farm_close(&f);
}

TEST(far_mills_are_left_out_and_room_is_kept) {
    static farm f;
    static render_box boxes[VIEW_MILLS_BOXES_EACH];
    farm_open(&f);
    mill_site site = mill_site_of(SEED, f.homes[0]);
    vec3d above = vec3d_add(site.ground, vec3d_scale(site.up, VIEW_MILLS_FAR + 20));
    assert_int_equal(view_mills(&f.m, above, boxes, VIEW_MILLS_BOXES_EACH), 0);
    for (uint32_t room = 0; room < VIEW_MILLS_BOXES_EACH; ++room) {
        boxes[room].colour = 0xabcdef;
        assert_int_equal(view_mills(&f.m, site.ground, boxes, room), room);
        assert_int_equal(boxes[room].colour, 0xabcdef);
    }
    farm_close(&f);
}
