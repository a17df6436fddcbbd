// SPDX-License-Identifier: MIT
// The Vulkan backend by its own functions: what is recorded comes out as pixels and numbers, and the validation layer
// has nothing to say, which means something because it does speak up where something is wrong.

#include "gpu/vulkan/vulkan_rig.h"

#include "shaders/color.frag.h"
#include "shaders/fill.comp.h"
#include "shaders/mesh.vert.h"

#define SIDE 64u

typedef struct vertex {
    float place[4], color[4];
} vertex;

typedef struct constants {
    float move[4], tint[4];
} constants;

enum { TARGET, DEPTH };    // images
enum { VERTICES, PIXELS }; // buffers
enum { DRAW, DRAW_FLAT };  // pipelines

static const constants plain = {.tint = {1, 1, 1, 1}};

// The left upper half of the picture, below the diagonal nothing.
static const vertex corner[3] = {
    {{-1, -1, 0.5f, 1}, {1, 0, 0, 1}},
    {{-1, 1, 0.5f, 1}, {1, 0, 0, 1}},
    {{1, -1, 0.5f, 1}, {1, 0, 0, 1}},
};

static nb_gpu_pipeline_desc draw_desc(void) {
    return (nb_gpu_pipeline_desc){.name = "draw",
                                  .vertex = RIG_SHADER(mesh_vert),
                                  .fragment = RIG_SHADER(color_frag),
                                  .colors = {NB_GPU_FORMAT_RGBA8},
                                  .color_count = 1,
                                  .cull = NB_GPU_CULL_BACK,
                                  .push_bytes = sizeof(constants),
                                  .storage_mask = 1};
}

static void scene_open(rig *r) {
    rig_open_validated(r);
    rig_make_image(r, TARGET, NB_GPU_FORMAT_RGBA8, SIDE, NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_COPY_FROM);
    rig_make_buffer(r, VERTICES, sizeof corner, NB_GPU_MEMORY_DEVICE);
    rig_make_buffer(r, PIXELS, SIDE * SIDE * 4, NB_GPU_MEMORY_READBACK);
    nb_gpu_pipeline_desc desc = draw_desc();
    assert_int_equal(r->b->pipeline_create(r->self, DRAW, &desc), NB_OK);
}

static nb_gpu_upload corner_upload(rig *r) {
    memcpy(r->memory[r->slot], corner, sizeof corner);
    return (nb_gpu_upload){.to = VERTICES, .size_bytes = sizeof corner};
}

static void draw_corner(rig *r, const nb_gpu_item *item, const constants *push) {
    nb_gpu_bindings bindings = {.buffer_mask = 1, .buffers[0] = {.buffer = VERTICES}};
    r->b->set_pipeline(r->self, item, DRAW);
    assert_int_equal(r->b->set_bindings(r->self, item, DRAW, &bindings), NB_OK);
    r->b->push(r->self, item, DRAW, push, sizeof *push);
    r->b->draw(r->self, item, &(nb_gpu_draw_args){3, 1, 0, 0});
}

// Clears to a blue, draws in some buckets, copies the picture out: two steps.
static void picture_plan_of(rig *r, uint32_t bucket_count, float blue) {
    nb_graph_resource target =
        rig_image(r, "target", NB_GPU_FORMAT_RGBA8, SIDE, NB_GPU_ACCESS_NONE, NB_GPU_ACCESS_NONE);
    nb_graph_pass draw = rig_pass(r, "draw", NB_GPU_PASS_RENDER, bucket_count);
    nb_graph_pass copy = rig_pass(r, "copy", NB_GPU_PASS_COMPUTE, 1);
    rig_use(r, draw, target, NB_GPU_ACCESS_COLOR);
    rig_clear(r, draw, target, 0, 0, blue);
    rig_use(r, copy, target, NB_GPU_ACCESS_COPY_FROM);
    rig_compile(r);
    rig_is(r, target, TARGET);
    assert_int_equal(r->plan->step_count, 2);
}

static void picture_plan(rig *r) { picture_plan_of(r, 1, 1); }

static void picture_record(rig *r) {
    nb_gpu_item draw = rig_item_begin(r, 0, 0, 0);
    draw_corner(r, &draw, &plain);
    rig_item_end(r, &draw);
    nb_gpu_item copy = rig_item_begin(r, 1, 0, 1);
    r->b->copy_to_buffer(r->self, &copy, TARGET, PIXELS, 0);
    rig_item_end(r, &copy);
}

static uint32_t pixel_at(rig *r, uint32_t x, uint32_t y) {
    const uint8_t *pixel = (const uint8_t *)r->b->buffer_memory(r->self, PIXELS) + 4 * (y * SIDE + x);
    return (uint32_t)pixel[0] << 24 | (uint32_t)pixel[1] << 16 | (uint32_t)pixel[2] << 8 | pixel[3];
}

TEST(triangle_is_where_it_was_drawn) {
    static rig r;
    scene_open(&r);
    picture_plan(&r);
    nb_gpu_upload upload = corner_upload(&r);
    picture_record(&r);
    rig_submit(&r, &upload, 1);
    rig_finish(&r);
    // y runs down, so -1, -1 is the upper left corner.
    assert_int_equal(pixel_at(&r, 2, 2), 0xff0000ff);
    assert_int_equal(pixel_at(&r, 30, 30), 0xff0000ff);
    assert_int_equal(pixel_at(&r, 61, 61), 0x0000ffff);
    assert_int_equal(pixel_at(&r, 34, 34), 0x0000ffff);
    rig_close(&r);
}

// --- several recorders ---

// A pass in many buckets by two lanes, each with a triangle in its own place.
static uint32_t buckets_hash(rig *r, uint32_t bucket_count) {
    picture_plan_of(r, bucket_count, 0);
    nb_gpu_upload upload = corner_upload(r);
    const uint32_t draw_count = 24;
    for (uint32_t bucket = 0; bucket < bucket_count; ++bucket) {
        nb_gpu_item item = rig_item_begin(r, 0, bucket, bucket % 2);
        uint32_t first = draw_count * bucket / bucket_count, end = draw_count * (bucket + 1) / bucket_count;
        for (uint32_t i = first; i < end; ++i) {
            float part = (float)i / (float)draw_count;
            constants push = {.move = {part, 1 - 2 * part, 0, 0}, .tint = {part, 1, 1, 1}};
            draw_corner(r, &item, &push);
        }
        rig_item_end(r, &item);
    }
    nb_gpu_item item = rig_item_begin(r, 1, 0, 0);
    r->b->copy_to_buffer(r->self, &item, TARGET, PIXELS, 0);
    rig_item_end(r, &item);
    rig_submit(r, &upload, 1);
    rig_finish(r);
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < SIDE * SIDE; ++i) hash = (hash ^ pixel_at(r, i % SIDE, i / SIDE)) * 16777619u;
    return hash;
}

TEST(buckets_make_the_same_picture_as_one) {
    static rig r;
    scene_open(&r);
    uint32_t hash = buckets_hash(&r, 1);
    uint32_t set_count = r.v->lanes[0].shelves[0].pool_count;
    assert_int_equal(set_count, 1);
    assert_int_equal(buckets_hash(&r, 5), hash);
    assert_int_equal(buckets_hash(&r, 24), hash);
    rig_close(&r);
}

// --- uploads ---

TEST(uploads_keep_their_order_where_they_overlap) {
    static rig r;
    rig_open_validated(&r);
    enum { FROM, TO };
    rig_make_buffer(&r, FROM, 64, NB_GPU_MEMORY_DEVICE);
    rig_make_buffer(&r, TO, 64, NB_GPU_MEMORY_READBACK);
    nb_graph_resource from = rig_buffer(&r, "from", NB_GPU_ACCESS_COPY_TO, NB_GPU_ACCESS_NONE);
    nb_graph_pass copy = rig_pass(&r, "copy", NB_GPU_PASS_COMPUTE, 1);
    rig_use(&r, copy, from, NB_GPU_ACCESS_COPY_FROM);
    rig_compile(&r);
    rig_is(&r, from, FROM);
    memset(r.memory[0], 1, 64);
    memset((char *)r.memory[0] + 64, 2, 64);
    memset((char *)r.memory[0] + 128, 3, 64);
    nb_gpu_upload uploads[] = {
        {.from = 0, .to = FROM, .size_bytes = 64},
        {.from = 64, .to = FROM, .to_offset = 16, .size_bytes = 32},
        {.from = 128, .to = FROM, .to_offset = 32, .size_bytes = 4},
        {.from = 128, .to = FROM, .to_offset = 60, .size_bytes = 4},
    };
    rig_copy(&r, 0, FROM, TO, 64);
    rig_submit(&r, uploads, 4);
    rig_finish(&r);
    const char *found = (const char *)r.b->buffer_memory(r.self, TO);
    for (uint32_t i = 0; i < 64; ++i) {
        char expected = i >= 60 || (i >= 32 && i < 36) ? 3 : i >= 16 && i < 48 ? 2 : 1;
        assert_int_equal(found[i], expected);
    }
    rig_close(&r);
}

// --- what the validation layer finds ---

TEST(steps_without_transitions_are_reported) {
    static rig r;
    scene_open(&r);
    if (r.v->messenger == VK_NULL_HANDLE) skip();
    picture_plan(&r);
    nb_gpu_upload upload = corner_upload(&r);
    nb_graph_step steps[2] = {r.plan->steps[0], r.plan->steps[1]};
    nb_graph_plan broken = *r.plan;
    steps[1].transition_count = 0;
    broken.steps = steps;
    r.plan = &broken;
    nbi_atomic_store_release_u32(&r.log.is_quiet, 1);
    picture_record(&r);
    rig_submit(&r, &upload, 1);
    rig_finish(&r);
    assert_true(rig_close_count(&r) > 0);
}

// A buffer is written by one copy and read by the next. Not by a shader: newer layers follow shaders only when told to.
TEST(missing_barrier_between_copies_is_reported) {
    static rig r;
    enum { BETWEEN, TO };
    for (uint32_t is_broken = 0; is_broken < 2; ++is_broken) {
        rig_open_validated(&r);
        if (r.v->messenger == VK_NULL_HANDLE) skip();
        rig_make_buffer(&r, BETWEEN, 64, NB_GPU_MEMORY_DEVICE);
        rig_make_buffer(&r, TO, 64, NB_GPU_MEMORY_READBACK);
        nb_graph_resource between = rig_buffer(&r, "between", NB_GPU_ACCESS_NONE, NB_GPU_ACCESS_NONE);
        rig_use(&r, rig_pass(&r, "first", NB_GPU_PASS_COMPUTE, 1), between, NB_GPU_ACCESS_COPY_TO);
        rig_use(&r, rig_pass(&r, "second", NB_GPU_PASS_COMPUTE, 1), between, NB_GPU_ACCESS_COPY_FROM);
        rig_compile(&r);
        rig_is(&r, between, BETWEEN);
        nb_graph_step steps[2] = {r.plan->steps[0], r.plan->steps[1]};
        nb_graph_plan plan = *r.plan;
        plan.steps = steps;
        r.plan = &plan;
        if (is_broken) steps[1].transition_count = 0;
        nbi_atomic_store_release_u32(&r.log.is_quiet, is_broken);
        rig_copy(&r, 0, RIG_FRAME_BUFFER, BETWEEN, 64);
        rig_copy(&r, 1, BETWEEN, TO, 64);
        rig_submit(&r, NULL, 0);
        rig_finish(&r);
        assert_int_equal(rig_close_count(&r) > 0, is_broken);
    }
}

// --- computing ---

TEST(what_a_shader_writes_is_copied) {
    static rig r;
    enum { FILLED, TO };
    rig_open_validated(&r);
    rig_make_buffer(&r, FILLED, 1024, NB_GPU_MEMORY_DEVICE);
    rig_make_buffer(&r, TO, 1024, NB_GPU_MEMORY_READBACK);
    nb_gpu_pipeline_desc desc = {
        .name = "fill", .compute = RIG_SHADER(fill_comp), .push_bytes = 12, .storage_mask = 1u << 2};
    assert_int_equal(r.b->pipeline_create(r.self, 0, &desc), NB_OK);
    nb_graph_resource filled = rig_buffer(&r, "filled", NB_GPU_ACCESS_NONE, NB_GPU_ACCESS_NONE);
    rig_use(&r, rig_pass(&r, "fill", NB_GPU_PASS_COMPUTE, 1), filled, NB_GPU_ACCESS_STORAGE);
    rig_use(&r, rig_pass(&r, "copy", NB_GPU_PASS_COMPUTE, 1), filled, NB_GPU_ACCESS_COPY_FROM);
    rig_compile(&r);
    rig_is(&r, filled, FILLED);
    nb_gpu_item item = rig_item_begin(&r, 0, 0, 0);
    nb_gpu_bindings bindings = {.buffer_mask = 4, .buffers[2] = {.buffer = FILLED}};
    uint32_t push[3] = {256, 3, 7};
    r.b->set_pipeline(r.self, &item, 0);
    assert_int_equal(r.b->set_bindings(r.self, &item, 0, &bindings), NB_OK);
    r.b->push(r.self, &item, 0, push, sizeof push);
    r.b->dispatch(r.self, &item, 4, 1, 1);
    rig_item_end(&r, &item);
    rig_copy(&r, 1, FILLED, TO, 1024);
    rig_submit(&r, NULL, 0);
    rig_finish(&r);
    const uint32_t *found = (const uint32_t *)r.b->buffer_memory(r.self, TO);
    for (uint32_t i = 0; i < 256; ++i) assert_int_equal(found[i], 3 * i + 7);
    rig_close(&r);
}

// --- times ---

TEST(steps_have_times) {
    static rig r;
    scene_open(&r);
    nb_gpu_times times;
    assert_int_equal(r.b->times(r.self, &times), NB_EMPTY);
    for (uint32_t i = 0; i < 3; ++i) {
        picture_plan(&r);
        nb_gpu_upload upload = corner_upload(&r);
        picture_record(&r);
        rig_submit(&r, &upload, 1);
        rig_finish(&r);
        assert_int_equal(r.b->times(r.self, &times), NB_OK);
        assert_int_equal(times.value, i + 1);
        assert_int_equal(times.step_count, 2);
        if (times.begin_ns == NULL) continue;
        assert_int_equal(times.begin_ns[0], 0);
        assert_true(times.end_ns[0] <= times.begin_ns[1] && times.begin_ns[1] <= times.end_ns[1]);
        assert_true(times.end_ns[1] > 0);
    }
    rig_close(&r);
}
