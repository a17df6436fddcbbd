// SPDX-License-Identifier: MIT
// Pictures and numbers through the device, on Vulkan: what is asked for is what comes out, and the validation layer has
// nothing to say.

#include "gpu/vulkan/gpu_vulkan_stage.h"

#include "shaders/color.frag.h"
#include "shaders/fill.comp.h"
#include "shaders/image.comp.h"
#include "shaders/layers.frag.h"
#include "shaders/mesh.vert.h"
#include "shaders/numbers.frag.h"
#include "shaders/screen.vert.h"
#include "shaders/texture.frag.h"
#include "shaders/uniform.frag.h"

#define WIDTH 40u
#define HEIGHT 24u

#define RED 0xff0000ffu
#define GREEN 0x00ff00ffu
#define BLUE 0x0000ffffu // what stage_draw clears to

typedef struct constants {
    float move[4], tint[4];
} constants;

// A triangle over all of the picture at depth 0, and one over its left half; counter-clockwise as seen.
static const float vertices[][8] = {
    {-1, -1, 0, 1, 1, 1, 1, 1}, {-1, 3, 0, 1, 1, 1, 1, 1}, {3, -1, 0, 1, 1, 1, 1, 1},
    {-1, -1, 0, 1, 1, 1, 1, 1}, {-1, 1, 0, 1, 1, 1, 1, 1}, {0, -1, 0, 1, 1, 1, 1, 1},
};

typedef struct scene {
    stage s;
    nb_gpu_buffer mesh, indices, readback;
    nb_gpu_pipeline flat, deep;
    nb_gpu_pipeline special; // of the one test
    nb_gpu_image texture;
    nb_graph_resource resource, other;
    nb_gpu_span span;
    nb_gpu_sampler sampler;
} scene;

static nb_gpu_pipeline_desc mesh_desc(void) {
    return (nb_gpu_pipeline_desc){.name = "mesh",
                                  .vertex = STAGE_SHADER(mesh_vert),
                                  .fragment = STAGE_SHADER(color_frag),
                                  .colors = {NB_GPU_FORMAT_RGBA8},
                                  .color_count = 1,
                                  .push_bytes = sizeof(constants),
                                  .storage_mask = 1};
}

static scene *scene_open(void) {
    static scene opened;
    scene *c = &opened;
    memset(c, 0, sizeof *c);
    stage_open(&c->s, WIDTH, HEIGHT);
    c->mesh = stage_buffer(&c->s, sizeof vertices, NB_GPU_MEMORY_DEVICE);
    c->readback = stage_buffer(&c->s, 65536, NB_GPU_MEMORY_READBACK);
    nb_gpu_pipeline_desc desc = mesh_desc();
    c->flat = stage_pipeline(&c->s, desc);
    desc.depth_format = NB_GPU_FORMAT_DEPTH32F;
    desc.depth = NB_GPU_DEPTH_TEST_WRITE;
    c->deep = stage_pipeline(&c->s, desc);
    stage_begin(&c->s);
    stage_upload(&c->s, c->mesh, 0, vertices, sizeof vertices);
    return c;
}

static void draw_mesh(nb_gpu_command *command, uint32_t first_vertex, float depth, float red, float green, float blue) {
    constants push = {.move = {0, 0, depth, 0}, .tint = {red, green, blue, 1}};
    nb_gpu_push(command, &push, sizeof push);
    nb_gpu_draw(command, 3, 1, first_vertex, 0);
}

static void push_tint(nb_gpu_command *command, float red, float green, float blue, float alpha) {
    constants push = {.tint = {red, green, blue, alpha}};
    nb_gpu_push(command, &push, sizeof push);
}

static void set_mesh(nb_gpu_command *command, const scene *c, nb_gpu_pipeline pipeline) {
    nb_gpu_set_pipeline(command, pipeline);
    nb_gpu_set_buffer(command, 0, c->mesh, 0, 0);
}

// --- drawing ---

// A picture of a pipeline of its own; of the first one the frame has begun.
static nb_gpu_capture draw_special(scene *c, nb_gpu_pipeline_desc desc, bool is_first, nb_graph_record_fn record) {
    c->special = stage_pipeline(&c->s, desc);
    if (!is_first) stage_begin(&c->s);
    stage_draw(&c->s, record, c);
    return stage_capture(&c->s);
}

static nb_result record_faces(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    set_mesh(command, c, c->special);
    draw_mesh(command, 3, 0, 1, 0, 0);
    return NB_OK;
}

TEST(faces_are_culled_by_their_winding) {
    scene *c = scene_open();
    for (uint32_t cull = 0; cull < NB_GPU_CULL_COUNT; ++cull) {
        nb_gpu_pipeline_desc desc = mesh_desc();
        desc.cull = (nb_gpu_cull)cull;
        nb_gpu_capture picture = draw_special(c, desc, cull == 0, record_faces);
        assert_int_equal(picture.width, WIDTH);
        assert_int_equal(stage_pixel(&picture, 1, 1), cull == NB_GPU_CULL_FRONT ? BLUE : RED);
        assert_int_equal(stage_pixel(&picture, WIDTH - 2, 1), BLUE);
    }
    stage_close(&c->s);
}

static nb_result record_indexed(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    set_mesh(command, c, c->flat);
    nb_gpu_set_indices(command, c->indices, 4);
    push_tint(command, 0, 1, 0, 1);
    // Indices from the third on, each moved by three vertices: the triangle of the left half.
    nb_gpu_draw_indexed(command, 3, 1, 2, 3, 0);
    nb_gpu_set_scissor(command, (nb_gpu_rect){.x = (int32_t)WIDTH - 4, .width = 4, .height = 4});
    push_tint(command, 1, 0, 0, 1);
    // The second and the third of the draws in the buffer: nothing, and all of the picture.
    nb_gpu_draw_indirect(command, c->indices, 64 + sizeof(nb_gpu_draw_args), 2);
    return NB_OK;
}

TEST(draws_by_indices_and_from_buffers) {
    scene *c = scene_open();
    c->indices = stage_buffer(&c->s, 128, NB_GPU_MEMORY_DEVICE);
    uint32_t bytes[32] = {9, 9, 9, 0, 1, 2};
    nb_gpu_draw_args args[3] = {{3, 1, 0, 0}, {3, 0, 0, 0}, {3, 1, 0, 0}};
    memcpy(&bytes[16], args, sizeof args);
    stage_upload(&c->s, c->indices, 0, bytes, sizeof bytes);
    stage_draw(&c->s, record_indexed, c);
    nb_gpu_capture picture = stage_capture(&c->s);
    assert_int_equal(stage_pixel(&picture, 1, 1), GREEN);
    assert_int_equal(stage_pixel(&picture, WIDTH / 2, HEIGHT - 1), BLUE);
    assert_int_equal(stage_pixel(&picture, WIDTH - 1, 0), RED);
    assert_int_equal(stage_pixel(&picture, WIDTH - 1, 5), BLUE);
    stage_close(&c->s);
}

static nb_result record_blended(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    set_mesh(command, c, c->special);
    push_tint(command, 1, 0, 0, 0.5f);
    nb_gpu_set_viewport(command, (nb_gpu_rect){.x = 10, .y = 6, .width = 10, .height = 6});
    nb_gpu_set_scissor(command, (nb_gpu_rect){.x = 2, .y = 1, .width = 13, .height = 20});
    nb_gpu_draw(command, 3, 1, 0, 0);
    return NB_OK;
}

TEST(blends_in_its_viewport_and_scissor) {
    scene *c = scene_open();
    for (uint32_t blend = 0; blend < NB_GPU_BLEND_COUNT; ++blend) {
        nb_gpu_pipeline_desc desc = mesh_desc();
        desc.blend = (nb_gpu_blend)blend;
        nb_gpu_capture picture = draw_special(c, desc, blend == 0, record_blended);
        uint32_t inside = stage_pixel(&picture, 12, 8);
        if (blend == NB_GPU_BLEND_NONE) assert_int_equal(inside & 0xffffff00u, 0xff000000u);
        if (blend == NB_GPU_BLEND_ADD) assert_int_equal(inside & 0xffffff00u, 0xff00ff00u);
        if (blend == NB_GPU_BLEND_ALPHA) {
            assert_in_range(inside >> 24, 126, 129);
            assert_in_range(inside >> 8 & 0xff, 126, 129);
        }
        // Outside of the viewport, and outside of the scissor.
        assert_int_equal(stage_pixel(&picture, 8, 8), BLUE);
        assert_int_equal(stage_pixel(&picture, 16, 8), BLUE);
    }
    stage_close(&c->s);
}

// --- depth ---

static nb_result record_depth(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    set_mesh(command, c, c->deep);
    draw_mesh(command, 3, 0.75f, 1, 0, 0); // the left half, near
    draw_mesh(command, 0, 0.25f, 0, 1, 0); // everything, further away
    return NB_OK;
}

static nb_result record_behind(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    set_mesh(command, c, c->special);
    draw_mesh(command, 0, 0.5f, 1, 1, 1); // between the two
    return NB_OK;
}

TEST(nearer_hides_what_is_further_away) {
    scene *c = scene_open();
    nb_gpu_pipeline_desc desc = mesh_desc();
    desc.depth_format = NB_GPU_FORMAT_DEPTH32F;
    desc.depth = NB_GPU_DEPTH_TEST;
    c->special = stage_pipeline(&c->s, desc);
    for (uint32_t i = 0; i < 2; ++i) {
        if (i > 0) stage_begin(&c->s);
        nb_graph *graph = nb_gpu_graph(c->s.gpu);
        nb_graph_resource depth = stage_transient(graph, "depth", NB_GPU_FORMAT_DEPTH32F, WIDTH, HEIGHT);
        nb_graph_pass draw = stage_draw(&c->s, record_depth, c);
        stage_use(graph, draw, depth, NB_GPU_ACCESS_DEPTH);
        assert_int_equal(nb_graph_clear(graph, draw, depth, (nb_gpu_clear){{0}}), NB_OK);
        if (i == 1) {
            nb_graph_pass behind = stage_pass(graph, "behind", NB_GPU_PASS_RENDER, record_behind, c);
            stage_use(graph, behind, nb_gpu_backbuffer(c->s.gpu, NULL, NULL), NB_GPU_ACCESS_COLOR);
            stage_use(graph, behind, depth, NB_GPU_ACCESS_DEPTH_READ);
        }
        nb_gpu_capture picture = stage_capture(&c->s);
        assert_int_equal(stage_pixel(&picture, 1, 1), RED);
        assert_int_equal(stage_pixel(&picture, WIDTH - 1, 1), i == 0 ? GREEN : 0xffffffffu);
    }
    stage_close(&c->s);
}

// --- textures ---

static nb_result record_texture(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    nb_gpu_set_pipeline(command, c->special);
    nb_gpu_set_image(command, 8, c->texture, c->sampler);
    nb_gpu_draw(command, 3, 1, 0, 0);
    return NB_OK;
}

static nb_gpu_pipeline_desc screen_desc(const uint32_t *fragment, size_t size_bytes) {
    return (nb_gpu_pipeline_desc){.name = "screen",
                                  .vertex = STAGE_SHADER(screen_vert),
                                  .fragment = {fragment, size_bytes},
                                  .colors = {NB_GPU_FORMAT_RGBA8},
                                  .color_count = 1,
                                  .sampled_mask = 1};
}

static void upload_image(scene *c, uint32_t layer, const void *pixels, size_t size_bytes) {
    nb_gpu_span span = stage_span(&c->s, pixels, size_bytes, 0);
    assert_int_equal(nb_gpu_upload_image(c->s.gpu, span, c->texture, layer), NB_OK);
}

TEST(textures_are_sampled) {
    scene *c = scene_open();
    c->texture = stage_image(&c->s, NB_GPU_FORMAT_RGBA8, 2, 2, 1, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO);
    c->special = stage_pipeline(&c->s, screen_desc(texture_frag, sizeof texture_frag));
    const uint8_t pixels[16] = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 0, 255, 255, 255, 255, 255};
    // Before anything is uploaded it may be drawn with all the same, whatever it shows.
    stage_draw(&c->s, record_texture, c);
    stage_end(&c->s);
    stage_begin(&c->s);
    upload_image(c, 0, pixels, sizeof pixels);
    stage_draw(&c->s, record_texture, c);
    nb_gpu_capture picture = stage_capture(&c->s);
    assert_int_equal(stage_pixel(&picture, 1, 1), RED);
    assert_int_equal(stage_pixel(&picture, WIDTH - 1, 1), GREEN);
    assert_int_equal(stage_pixel(&picture, 1, HEIGHT - 1), 0x000000ffu);
    assert_int_equal(stage_pixel(&picture, WIDTH - 1, HEIGHT - 1), 0xffffffffu);
    c->sampler = NB_GPU_SAMPLER_LINEAR;
    stage_begin(&c->s);
    stage_draw(&c->s, record_texture, c);
    picture = stage_capture(&c->s);
    uint32_t middle = stage_pixel(&picture, WIDTH / 2, 1);
    assert_in_range(middle >> 24, 100, 155);
    assert_in_range(middle >> 16 & 0xff, 100, 155);
    stage_close(&c->s);
}

TEST(layers_are_uploaded_one_by_one) {
    scene *c = scene_open();
    c->texture = stage_image(&c->s, NB_GPU_FORMAT_RGBA8, 1, 1, 4, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO);
    c->special = stage_pipeline(&c->s, screen_desc(layers_frag, sizeof layers_frag));
    const uint8_t colors[4][4] = {{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {9, 9, 9, 255}};
    // The first twice: the later one counts.
    upload_image(c, 0, colors[3], 4);
    for (uint32_t i = 0; i < 3; ++i) upload_image(c, i, colors[i], 4);
    stage_draw(&c->s, record_texture, c);
    stage_end(&c->s);
    stage_begin(&c->s);
    // The others stay as they are.
    upload_image(c, 3, colors[3], 4);
    stage_draw(&c->s, record_texture, c);
    nb_gpu_capture picture = stage_capture(&c->s);
    const uint32_t expected[4] = {RED, GREEN, BLUE, 0x090909ffu};
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(stage_pixel(&picture, i * WIDTH / 4 + 2, 3), expected[i]);
    stage_close(&c->s);
}

// Columns that are 4 pixels wide: each draw has a colour of its own, from the frame's memory or from an image.
static nb_result record_columns(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    for (uint32_t i = 0; i < WIDTH / 4; ++i) {
        nb_gpu_span span = c->span;
        // Every third draw has what the one before had.
        span.offset += 256 * (uint64_t)(i - i % 3 / 2);
        span.size_bytes = 16;
        bool is_image = i % 5 == 4;
        nb_gpu_set_viewport(command, (nb_gpu_rect){.x = (int32_t)(4 * i), .width = 4, .height = HEIGHT});
        nb_gpu_set_scissor(command, (nb_gpu_rect){.x = (int32_t)(4 * i), .width = 4, .height = HEIGHT});
        nb_gpu_set_pipeline(command, is_image ? c->deep : c->special);
        nb_gpu_set_span(command, 1, span);
        nb_gpu_set_image(command, 8, c->texture, NB_GPU_SAMPLER_NEAREST);
        nb_gpu_draw(command, 3, 1, 0, 0);
    }
    return NB_OK;
}

TEST(every_draw_sees_what_was_bound_for_it) {
    scene *c = scene_open();
    nb_gpu_pipeline_desc desc = screen_desc(uniform_frag, sizeof uniform_frag);
    desc.sampled_mask = 0;
    desc.uniform_mask = 1u << 1;
    c->special = stage_pipeline(&c->s, desc);
    c->deep = stage_pipeline(&c->s, screen_desc(texture_frag, sizeof texture_frag));
    c->texture = stage_image(&c->s, NB_GPU_FORMAT_RGBA8, 1, 1, 1, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO);
    const uint8_t white[4] = {255, 255, 255, 255};
    upload_image(c, 0, white, 4);
    assert_int_equal(nb_gpu_frame_alloc(c->s.gpu, 256 * (WIDTH / 4), 256, &c->span), NB_OK);
    for (uint32_t i = 0; i < WIDTH / 4; ++i) {
        float color[4] = {(float)(i + 1) / 255.0f, 0, 0, 1};
        memcpy((unsigned char *)c->span.memory + 256 * (size_t)i, color, sizeof color);
    }
    stage_draw(&c->s, record_columns, c);
    nb_gpu_capture picture = stage_capture(&c->s);
    for (uint32_t i = 0; i < WIDTH / 4; ++i) {
        uint32_t expected = i % 5 == 4 ? 0xffffffffu : (i - i % 3 / 2 + 1) << 24 | 0xff;
        assert_int_equal(stage_pixel(&picture, 4 * i + 1, 5), expected);
    }
    stage_close(&c->s);
}

// --- computing ---

static nb_result record_fill(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    const uint32_t push[3] = {WIDTH * HEIGHT, 5, 1000};
    nb_gpu_set_pipeline(command, c->special);
    nb_gpu_set_resource(command, 2, c->resource, NB_GPU_SAMPLER_NEAREST);
    nb_gpu_push(command, push, sizeof push);
    nb_gpu_dispatch(command, (WIDTH * HEIGHT + 63) / 64, 1, 1);
    return NB_OK;
}

static nb_result record_numbers(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    const uint32_t width = WIDTH;
    nb_gpu_set_pipeline(command, c->flat);
    nb_gpu_set_resource(command, 2, c->resource, NB_GPU_SAMPLER_NEAREST);
    nb_gpu_push(command, &width, sizeof width);
    nb_gpu_draw(command, 3, 1, 0, 0);
    return NB_OK;
}

static nb_result record_image(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    const uint32_t push[3] = {0, 2, 7};
    nb_gpu_set_pipeline(command, c->deep);
    nb_gpu_set_resource(command, 8, c->other, NB_GPU_SAMPLER_NEAREST);
    nb_gpu_push(command, push, sizeof push);
    nb_gpu_dispatch(command, (WIDTH + 7) / 8, (HEIGHT + 7) / 8, 1);
    return NB_OK;
}

static nb_result record_copy(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    return nb_gpu_copy_to_buffer(command, c->other, c->readback, 256);
}

// Numbers go from a shader that computes to one that draws, to an image, through another shader and to the CPU.
TEST(numbers_go_through_all_kinds_of_passes) {
    scene *c = scene_open();
    c->special = stage_pipeline(
        &c->s, (nb_gpu_pipeline_desc){.compute = STAGE_SHADER(fill_comp), .push_bytes = 12, .storage_mask = 1u << 2});
    c->flat = stage_pipeline(&c->s, (nb_gpu_pipeline_desc){.vertex = STAGE_SHADER(screen_vert),
                                                           .fragment = STAGE_SHADER(numbers_frag),
                                                           .colors = {NB_GPU_FORMAT_R32_UINT},
                                                           .color_count = 1,
                                                           .push_bytes = 4,
                                                           .storage_mask = 1u << 2});
    c->deep = stage_pipeline(
        &c->s, (nb_gpu_pipeline_desc){.compute = STAGE_SHADER(image_comp), .push_bytes = 12, .storage_image_mask = 1});
    for (uint32_t frame = 0; frame < 3; ++frame) {
        if (frame > 0) stage_begin(&c->s);
        nb_graph *graph = nb_gpu_graph(c->s.gpu);
        c->resource = stage_transient_buffer(graph, "numbers", sizeof(uint32_t) * WIDTH * HEIGHT);
        c->other = stage_transient(graph, "image", NB_GPU_FORMAT_R32_UINT, WIDTH, HEIGHT);
        nb_graph_resource first = c->other;
        nb_graph_pass fill = stage_pass(graph, "fill", NB_GPU_PASS_COMPUTE, record_fill, c);
        stage_use(graph, fill, c->resource, NB_GPU_ACCESS_STORAGE);
        nb_graph_pass draw = stage_pass(graph, "numbers", NB_GPU_PASS_RENDER, record_numbers, c);
        stage_use(graph, draw, c->resource, NB_GPU_ACCESS_STORAGE_READ);
        stage_use(graph, draw, first, NB_GPU_ACCESS_COLOR);
        assert_int_equal(nb_graph_renew(graph, first, "image, again", &c->other), NB_OK);
        nb_graph_pass compute = stage_pass(graph, "image", NB_GPU_PASS_COMPUTE, record_image, c);
        stage_use(graph, compute, c->other, NB_GPU_ACCESS_STORAGE);
        nb_graph_pass copy = stage_pass(graph, "copy", NB_GPU_PASS_COMPUTE, record_copy, c);
        stage_use(graph, copy, c->other, NB_GPU_ACCESS_COPY_FROM);
        stage_end(&c->s);
    }
    stage_wait(&c->s);
    const uint32_t *found = (const uint32_t *)nb_gpu_buffer_memory(c->s.gpu, c->readback) + 64;
    for (uint32_t i = 0; i < WIDTH * HEIGHT; ++i) assert_int_equal(found[i], (5 * i + 1000) * 2 + 7 + i);
    stage_close(&c->s);
}

// --- frames ---

static nb_result record_span(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    nb_gpu_set_pipeline(command, c->special);
    nb_gpu_set_span(command, 1, c->span);
    nb_gpu_draw(command, 3, 1, 0, 0);
    return NB_OK;
}

typedef struct copy_job {
    scene *c;
    uint64_t offset;
} copy_job;

static nb_result record_copy_at(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const copy_job *job = (const copy_job *)user;
    (void)bucket, (void)bucket_count;
    return nb_gpu_copy_to_buffer(command, job->c->resource, job->c->readback, job->offset);
}

// No frame is waited for but by the device itself: each has the colour that was in its memory.
TEST(frames_in_flight_keep_their_own_memory) {
    scene *c = scene_open();
    nb_gpu_pipeline_desc desc = screen_desc(uniform_frag, sizeof uniform_frag);
    desc.sampled_mask = 0;
    desc.uniform_mask = 1u << 1;
    c->special = stage_pipeline(&c->s, desc);
    const uint32_t frame_count = 30;
    for (uint32_t i = 0; i < frame_count; ++i) {
        if (i > 0) stage_begin(&c->s);
        nb_graph *graph = nb_gpu_graph(c->s.gpu);
        float color[4] = {(float)i / 255.0f, (float)(2 * i) / 255.0f, 0, 1};
        // At another place in every frame.
        for (uint32_t j = 0; j <= i % 5; ++j) c->span = stage_span(&c->s, color, sizeof color, 256);
        c->resource = stage_transient(graph, "pixel", NB_GPU_FORMAT_RGBA8, 1, 1);
        nb_graph_pass draw = stage_pass(graph, "draw", NB_GPU_PASS_RENDER, record_span, c);
        stage_use(graph, draw, c->resource, NB_GPU_ACCESS_COLOR);
        copy_job job = {c, 4 * i};
        nb_graph_pass copy = stage_pass(graph, "copy", NB_GPU_PASS_COMPUTE, record_copy_at, &job);
        stage_use(graph, copy, c->resource, NB_GPU_ACCESS_COPY_FROM);
        stage_end(&c->s);
    }
    stage_wait(&c->s);
    const uint8_t *found = (const uint8_t *)nb_gpu_buffer_memory(c->s.gpu, c->readback);
    for (uint32_t i = 0; i < frame_count; ++i) {
        assert_int_equal(found[4 * i], i);
        assert_int_equal(found[4 * i + 1], 2 * i);
        assert_int_equal(found[4 * i + 3], 255);
    }
    stage_close(&c->s);
}

static nb_result record_parts(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    scene *c = (scene *)user;
    (void)bucket, (void)bucket_count;
    return nb_gpu_copy_buffer(command, c->indices, 0, c->readback, 0, 1024);
}

TEST(uploads_change_only_their_part) {
    scene *c = scene_open();
    c->indices = stage_buffer(&c->s, 1024, NB_GPU_MEMORY_DEVICE);
    uint8_t model[1024];
    memset(model, 7, sizeof model);
    stage_upload(&c->s, c->indices, 0, model, sizeof model);
    uint64_t random = test_seed(__func__);
    for (uint32_t frame = 0; frame < 12; ++frame) {
        if (frame > 0) stage_begin(&c->s);
        for (uint32_t i = 0; i < 8; ++i) {
            uint64_t r = test_random(&random);
            size_t offset = (size_t)(4 * (r % 200)), size_bytes = (size_t)(4 * (1 + (r >> 16) % 50));
            uint8_t bytes[200];
            memset(bytes, (int)(r >> 32 & 0xff), sizeof bytes);
            memcpy(model + offset, bytes, size_bytes);
            stage_upload(&c->s, c->indices, offset, bytes, size_bytes);
        }
        stage_pass(nb_gpu_graph(c->s.gpu), "copy", NB_GPU_PASS_COMPUTE, record_parts, c);
        stage_end(&c->s);
        if (frame % 4 != 3) continue;
        stage_wait(&c->s);
        assert_memory_equal(nb_gpu_buffer_memory(c->s.gpu, c->readback), model, sizeof model);
    }
    stage_close(&c->s);
}

TEST(back_buffer_has_the_size_it_is_given) {
    scene *c = scene_open();
    c->special = c->flat;
    const uint32_t sizes[][2] = {{WIDTH, HEIGHT}, {16, 100}, {1, 1}, {0, 0}, {300, 7}};
    for (uint32_t i = 0; i < 5; ++i) {
        if (i > 0) {
            assert_int_equal(nb_gpu_resize(c->s.gpu, sizes[i][0], sizes[i][1]), NB_OK);
            nb_result begun = nb_gpu_frame_begin(c->s.gpu);
            if (sizes[i][0] == 0) {
                assert_int_equal(begun, NB_BUSY);
                assert_int_equal(nb_gpu_frame_end(c->s.gpu), NB_OK);
                continue;
            }
            assert_int_equal(begun, NB_OK);
        }
        stage_draw(&c->s, record_faces, c);
        nb_gpu_capture picture = stage_capture(&c->s);
        assert_int_equal(picture.width, sizes[i][0]);
        assert_int_equal(picture.height, sizes[i][1]);
        assert_int_equal(stage_pixel(&picture, picture.width - 1, picture.height - 1), BLUE);
    }
    stage_close(&c->s);
}

TEST(passes_have_times) {
    scene *c = scene_open();
    c->special = c->flat;
    stage_draw(&c->s, record_faces, c);
    stage_capture(&c->s);
    stage_wait(&c->s);
    stage_begin(&c->s);
    nb_gpu_pass_time times[4];
    uint32_t count = nb_gpu_pass_times(c->s.gpu, times, 4);
    assert_int_equal(count, 2);
    assert_string_equal(times[0].name, "draw");
    assert_string_equal(times[1].name, "capture");
    assert_true(times[0].begin_ns <= times[0].end_ns && times[0].end_ns <= times[1].begin_ns);
    assert_true(nb_gpu_stats_get(c->s.gpu).gpu_ns > 0);
    stage_end(&c->s);
    stage_close(&c->s);
}
