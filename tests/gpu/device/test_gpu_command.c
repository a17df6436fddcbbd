// SPDX-License-Identifier: MIT
// Commands: what a pass may do with what it has declared, and what the hash of all of them says.

#include "gpu/device/gpu_fixture.h"

typedef nb_result (*try_fn)(nb_gpu_command *command, void *user);

// One pass of either kind, with resources that it declares or does not.
typedef struct stage {
    gpu_rig r;
    try_fn run;
    nb_result result; // of the command that was tried
    nb_gpu_pass_kind kind;
    nb_gpu_buffer buffer, import, readback;
    nb_gpu_image image, target;
    nb_graph_resource temporary, pixels, imported, image_imported;
    nb_gpu_access import_access, pixels_access, image_access; // declared for the pass
    nb_gpu_access depth_access;
    nb_gpu_pipeline drawing, computing, with_all, depth_writer;
    nb_gpu_span span;
} stage;

static nb_result record_stage(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    stage *s = user;
    (void)bucket, (void)bucket_count;
    assert_ptr_equal(nb_gpu_command_device(command), s->r.gpu);
    s->result = s->run(command, s);
    return NB_OK;
}

static void stage_open(stage *s) {
    memset(s, 0, sizeof *s);
    gpu_rig_open(&s->r);
    nb_gpu *gpu = s->r.gpu;
    s->buffer = gpu_buffer(gpu, 1024, NB_GPU_MEMORY_DEVICE);
    s->import = gpu_buffer(gpu, 1024, NB_GPU_MEMORY_DEVICE);
    s->readback = gpu_buffer(gpu, 64 * 32 * 4, NB_GPU_MEMORY_READBACK);
    s->image = gpu_image(gpu, 8, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_STORAGE);
    s->target = gpu_image(gpu, 8, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_STORAGE);
    s->drawing = gpu_pipeline(gpu, gpu_drawing());
    s->computing = gpu_pipeline(gpu, (nb_gpu_pipeline_desc){.compute = {gpu_words, 16}});
    nb_gpu_pipeline_desc all = gpu_drawing();
    all.uniform_mask = 1, all.storage_mask = 2, all.sampled_mask = 1, all.push_bytes = 8;
    s->with_all = gpu_pipeline(gpu, all);
    nb_gpu_pipeline_desc depth = gpu_drawing();
    depth.depth_format = NB_GPU_FORMAT_DEPTH32F, depth.depth = NB_GPU_DEPTH_TEST_WRITE;
    s->depth_writer = gpu_pipeline(gpu, depth);
    s->kind = NB_GPU_PASS_RENDER;
    s->import_access = NB_GPU_ACCESS_STORAGE_READ;
    s->pixels_access = NB_GPU_ACCESS_SAMPLED;
    s->image_access = NB_GPU_ACCESS_SAMPLED;
}

static void declare_resources(stage *s, nb_graph_pass pass) {
    nb_graph *graph = nb_gpu_graph(s->r.gpu);
    nb_graph_import_desc import = {.name = "hills",
                                   .buffer = s->import,
                                   .is_buffer = true,
                                   .before = NB_GPU_ACCESS_STORAGE_READ,
                                   .after = NB_GPU_ACCESS_STORAGE_READ};
    assert_int_equal(nb_graph_import(graph, &import, &s->imported), NB_OK);
    nb_graph_import_desc image = {.name = "sky",
                                  .image = s->target,
                                  .format = NB_GPU_FORMAT_RGBA8,
                                  .width = 8,
                                  .height = 8,
                                  .before = NB_GPU_ACCESS_SAMPLED,
                                  .after = NB_GPU_ACCESS_SAMPLED};
    assert_int_equal(nb_graph_import(graph, &image, &s->image_imported), NB_OK);
    // Written by another pass, so that this one may read them; it declares the buffer for nothing.
    nb_graph_pass maker = {0};
    nb_graph_pass_desc desc = {.name = "maker", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    assert_int_equal(nb_graph_pass_add(graph, &desc, &maker), NB_OK);
    assert_int_equal(nb_graph_buffer_add(graph, &(nb_graph_buffer_desc){"dust", 512}, &s->temporary), NB_OK);
    nb_graph_image_desc pixels = {"glow", NB_GPU_FORMAT_RGBA8, 64, 32};
    assert_int_equal(nb_graph_image_add(graph, &pixels, &s->pixels), NB_OK);
    assert_int_equal(nb_graph_use(graph, maker, s->temporary, NB_GPU_ACCESS_STORAGE), NB_OK);
    assert_int_equal(nb_graph_use(graph, maker, s->pixels, NB_GPU_ACCESS_STORAGE), NB_OK);
    assert_int_equal(nb_graph_use(graph, maker, s->image_imported, NB_GPU_ACCESS_STORAGE_READ), NB_OK);
    assert_int_equal(nb_graph_use(graph, maker, s->imported, NB_GPU_ACCESS_STORAGE_READ), NB_OK);
    if (s->import_access != 0) assert_int_equal(nb_graph_use(graph, pass, s->imported, s->import_access), NB_OK);
    if (s->pixels_access != 0) assert_int_equal(nb_graph_use(graph, pass, s->pixels, s->pixels_access), NB_OK);
    if (s->image_access != 0) assert_int_equal(nb_graph_use(graph, pass, s->image_imported, s->image_access), NB_OK);
}

static void stage_frame(stage *s, try_fn run) {
    nb_gpu *gpu = s->r.gpu;
    s->run = run;
    s->result = NB_CANCELLED;
    assert_int_equal(nb_gpu_frame_begin(gpu), NB_OK);
    nb_graph *graph = nb_gpu_graph(gpu);
    nb_graph_pass pass = {0};
    nb_graph_pass_desc desc = {.name = "ground", .kind = s->kind, .record = record_stage, .user = s, .is_kept = true};
    assert_int_equal(nb_graph_pass_add(graph, &desc, &pass), NB_OK);
    nb_graph_resource back = nb_gpu_backbuffer(gpu, NULL, NULL);
    nb_gpu_access access = s->kind == NB_GPU_PASS_RENDER ? NB_GPU_ACCESS_COLOR : NB_GPU_ACCESS_COPY_FROM;
    assert_int_equal(nb_graph_use(graph, pass, back, access), NB_OK);
    if (s->depth_access != 0) {
        nb_graph_resource depth = {0};
        nb_graph_image_desc image = {"depth", NB_GPU_FORMAT_DEPTH32F, 64, 32};
        nb_graph_pass before = {0};
        nb_graph_pass_desc first = {.name = "depth first", .kind = NB_GPU_PASS_RENDER};
        assert_int_equal(nb_graph_image_add(graph, &image, &depth), NB_OK);
        assert_int_equal(nb_graph_pass_add(graph, &first, &before), NB_OK);
        assert_int_equal(nb_graph_use(graph, before, depth, NB_GPU_ACCESS_DEPTH), NB_OK);
        assert_int_equal(nb_graph_use(graph, pass, depth, s->depth_access), NB_OK);
    }
    declare_resources(s, pass);
    assert_int_equal(nb_gpu_frame_alloc(gpu, 256, 256, &s->span), NB_OK);
    assert_int_equal(gpu_finish(gpu), NB_OK);
}

// A command that is refused: with what, whether it is reported, and what the report names.
static void expect_refused(stage *s, try_fn run, nb_result expected, const char *resource) {
    uint64_t before = gpu_stats(&s->r).misuse_count;
    s->r.log.last_message[0] = '\0';
    stage_frame(s, run);
    assert_int_equal(s->result, expected);
    assert_int_equal(gpu_stats(&s->r).misuse_count, before + 1);
    if (resource == NULL) return;
    assert_non_null(strstr(s->r.log.last_message, "pass ground"));
    assert_non_null(strstr(s->r.log.last_message, resource));
}

static void expect_fine(stage *s, try_fn run) {
    uint64_t before = gpu_stats(&s->r).misuse_count;
    stage_frame(s, run);
    assert_int_equal(s->result, NB_OK);
    assert_int_equal(gpu_stats(&s->r).misuse_count, before);
}

// --- one command each ---

#define TRY(name, expression)                                    \
    static nb_result name(nb_gpu_command *command, void *user) { \
        const stage *s = user;                                   \
        (void)s;                                                 \
        return expression;                                       \
    }

TRY(bind_import, nb_gpu_set_buffer(command, 0, s->import, 0, 0))
TRY(bind_free, nb_gpu_set_buffer(command, 0, s->buffer, 256, 0))
TRY(bind_undeclared_resource, nb_gpu_set_resource(command, 0, s->temporary, NB_GPU_SAMPLER_NEAREST))
TRY(bind_pixels, nb_gpu_set_resource(command, 8, s->pixels, NB_GPU_SAMPLER_LINEAR))
TRY(bind_pixels_as_buffer, nb_gpu_set_resource(command, 0, s->pixels, NB_GPU_SAMPLER_LINEAR))
TRY(bind_sky, nb_gpu_set_image(command, 9, s->target, NB_GPU_SAMPLER_LINEAR))
TRY(bind_free_image, nb_gpu_set_image(command, 9, s->image, NB_GPU_SAMPLER_LINEAR))
TRY(bind_span, nb_gpu_set_span(command, 7, s->span))
TRY(bind_beyond, nb_gpu_set_buffer(command, 0, s->buffer, 1024, 0))
TRY(bind_much, nb_gpu_set_buffer(command, 0, s->buffer, 256, 1024))
TRY(bind_odd, nb_gpu_set_buffer(command, 0, s->buffer, 16, 0))
TRY(bind_eighth, nb_gpu_set_buffer(command, 8, s->buffer, 0, 0))
TRY(bind_image_low, nb_gpu_set_image(command, 7, s->image, NB_GPU_SAMPLER_LINEAR))
TRY(bind_image_high, nb_gpu_set_image(command, 16, s->image, NB_GPU_SAMPLER_LINEAR))
TRY(bind_sampler, nb_gpu_set_image(command, 8, s->image, NB_GPU_SAMPLER_COUNT))
TRY(bind_readback, nb_gpu_set_buffer(command, 0, s->readback, 0, 0))
TRY(bind_stale, nb_gpu_set_buffer(command, 0, (nb_gpu_buffer){12345}, 0, 0))
TRY(bind_stale_image, nb_gpu_set_image(command, 8, (nb_gpu_image){12345}, NB_GPU_SAMPLER_LINEAR))
TRY(bind_stale_resource, nb_gpu_set_resource(command, 8, (nb_graph_resource){7}, NB_GPU_SAMPLER_LINEAR))
TRY(bind_false_span, nb_gpu_set_span(command, 0, (nb_gpu_span){.buffer = s->buffer, .size_bytes = 16}))
TRY(set_computing, nb_gpu_set_pipeline(command, s->computing))
TRY(set_drawing, nb_gpu_set_pipeline(command, s->drawing))
TRY(set_depth, nb_gpu_set_pipeline(command, s->depth_writer))
TRY(set_stale, nb_gpu_set_pipeline(command, (nb_gpu_pipeline){99}))
TRY(draw_without, nb_gpu_draw(command, 3, 1, 0, 0))
TRY(dispatch_without, nb_gpu_dispatch(command, 1, 1, 1))
TRY(dispatch_much, nb_gpu_dispatch(command, 65536, 1, 1))
TRY(push_without, nb_gpu_push(command, s, 8))
TRY(view_beyond, nb_gpu_set_viewport(command, (nb_gpu_rect){0, 0, 65, 32}))
TRY(view_left, nb_gpu_set_scissor(command, (nb_gpu_rect){-1, 0, 8, 8}))
TRY(view_empty, nb_gpu_set_scissor(command, (nb_gpu_rect){0, 0, 0, 8}))
TRY(view_fine, nb_gpu_set_viewport(command, (nb_gpu_rect){32, 16, 32, 16}))
TRY(scissor_fine, nb_gpu_set_scissor(command, (nb_gpu_rect){0, 0, 64, 32}))
TRY(copy_fine, nb_gpu_copy_buffer(command, s->buffer, 0, s->readback, 0, 1024))
TRY(copy_self, nb_gpu_copy_buffer(command, s->buffer, 0, s->buffer, 512, 512))
TRY(copy_much, nb_gpu_copy_buffer(command, s->buffer, 4, s->readback, 0, 1024))
TRY(copy_to_memory, nb_gpu_copy_buffer(command, s->buffer, 0, s->span.buffer, 0, 16))
TRY(copy_import, nb_gpu_copy_buffer(command, s->import, 0, s->readback, 0, 16))
TRY(copy_pixels, nb_gpu_copy_to_buffer(command, s->pixels, s->readback, 0))
TRY(copy_pixels_beyond, nb_gpu_copy_to_buffer(command, s->pixels, s->readback, 4))
TRY(index_import, nb_gpu_set_indices(command, s->import, 0))
TRY(index_beyond, nb_gpu_set_indices(command, s->buffer, 1024))
TRY(index_odd, nb_gpu_set_indices(command, s->buffer, 2))

TEST(undeclared_resources_are_refused_by_name) {
    stage s;
    stage_open(&s);
    expect_fine(&s, bind_import);
    expect_fine(&s, bind_free);
    expect_fine(&s, bind_pixels);
    expect_fine(&s, bind_sky);
    expect_fine(&s, bind_free_image);
    expect_fine(&s, bind_span);
    expect_refused(&s, bind_undeclared_resource, NB_ERR_PERMISSION, "dust");
    s.import_access = NB_GPU_ACCESS_INDEX;
    expect_refused(&s, bind_import, NB_ERR_PERMISSION, "hills");
    expect_fine(&s, index_import);
    s.import_access = 0;
    // Logged the first time for each call, pass and resource, counted always.
    expect_refused(&s, index_import, NB_ERR_PERMISSION, "hills");
    assert_int_equal(test_log_count(&s.r.log, NB_ITEM_GPU_COMMAND), 3);
    expect_refused(&s, index_import, NB_ERR_PERMISSION, NULL);
    assert_int_equal(test_log_count(&s.r.log, NB_ITEM_GPU_COMMAND), 3);
    s.image_access = 0;
    expect_refused(&s, bind_sky, NB_ERR_PERMISSION, "sky");
    s.pixels_access = 0;
    expect_refused(&s, bind_pixels, NB_ERR_PERMISSION, "glow");
    gpu_rig_close(&s.r);
}

TEST(ranges_and_stale_handles_are_refused) {
    static const struct {
        try_fn run;
        nb_result expected;
        const char *resource;
    } rows[] = {
        {bind_beyond, NB_ERR_RANGE, "test"},
        {bind_much, NB_ERR_RANGE, NULL},
        {bind_odd, NB_ERR_RANGE, NULL},
        {bind_eighth, NB_ERR_RANGE, NULL},
        {bind_image_low, NB_ERR_RANGE, NULL},
        {bind_image_high, NB_ERR_RANGE, NULL},
        {bind_sampler, NB_ERR_RANGE, NULL},
        {bind_pixels_as_buffer, NB_ERR_RANGE, "glow"},
        {bind_readback, NB_ERR_PERMISSION, NULL},
        {bind_stale, NB_ERR_STALE, "a buffer"},
        {bind_stale_image, NB_ERR_STALE, "an image"},
        {bind_stale_resource, NB_ERR_STALE, "a resource"},
        {bind_false_span, NB_ERR_STALE, "a span"},
        {view_beyond, NB_ERR_RANGE, "a rectangle"},
        {view_left, NB_ERR_RANGE, NULL},
        {view_empty, NB_ERR_RANGE, NULL},
        {index_beyond, NB_ERR_RANGE, NULL},
        {index_odd, NB_ERR_RANGE, NULL},
    };
    stage s;
    stage_open(&s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        print_message("row %u\n", (unsigned)i);
        expect_refused(&s, rows[i].run, rows[i].expected, rows[i].resource);
    }
    expect_fine(&s, view_fine);
    expect_fine(&s, scissor_fine);
    gpu_rig_close(&s.r);
}

TEST(pipelines_must_fit_the_pass) {
    stage s;
    stage_open(&s);
    expect_fine(&s, set_drawing);
    expect_refused(&s, set_computing, NB_ERR_MISUSE, "pipeline");
    expect_refused(&s, set_stale, NB_ERR_STALE, "a pipeline");
    expect_refused(&s, set_depth, NB_ERR_MISUSE, NULL);
    s.depth_access = NB_GPU_ACCESS_DEPTH;
    expect_fine(&s, set_depth);
    expect_refused(&s, set_drawing, NB_ERR_MISUSE, NULL);
    // It writes depth, and the pass only tests it.
    s.depth_access = NB_GPU_ACCESS_DEPTH_READ;
    expect_refused(&s, set_depth, NB_ERR_MISUSE, NULL);
    s.depth_access = 0;
    expect_refused(&s, draw_without, NB_ERR_MISUSE, NULL);
    expect_refused(&s, dispatch_without, NB_ERR_MISUSE, NULL);
    expect_refused(&s, push_without, NB_ERR_MISUSE, NULL);
    expect_refused(&s, copy_fine, NB_ERR_MISUSE, NULL);
    s.kind = NB_GPU_PASS_COMPUTE;
    expect_fine(&s, set_computing);
    expect_refused(&s, set_drawing, NB_ERR_MISUSE, NULL);
    expect_refused(&s, draw_without, NB_ERR_MISUSE, NULL);
    expect_refused(&s, dispatch_without, NB_ERR_MISUSE, NULL);
    expect_refused(&s, dispatch_much, NB_ERR_RANGE, NULL);
    expect_refused(&s, view_fine, NB_ERR_MISUSE, NULL);
    gpu_rig_close(&s.r);
}

TEST(copies_are_checked) {
    stage s;
    stage_open(&s);
    s.kind = NB_GPU_PASS_COMPUTE;
    s.pixels_access = NB_GPU_ACCESS_COPY_FROM;
    expect_fine(&s, copy_fine);
    expect_refused(&s, copy_self, NB_ERR_RANGE, NULL);
    expect_refused(&s, copy_much, NB_ERR_RANGE, NULL);
    expect_refused(&s, copy_to_memory, NB_ERR_PERMISSION, NULL);
    expect_refused(&s, copy_import, NB_ERR_PERMISSION, "hills");
    expect_fine(&s, copy_pixels);
    expect_refused(&s, copy_pixels_beyond, NB_ERR_RANGE, NULL);
    s.pixels_access = NB_GPU_ACCESS_SAMPLED;
    expect_refused(&s, copy_pixels, NB_ERR_PERMISSION, "glow");
    gpu_rig_close(&s.r);
}

// --- drawing ---

// All that a draw needs, but for what `missing` says.
enum { HAS_ALL, NO_UNIFORM, NO_STORAGE, NO_IMAGE, NO_PUSH, SHORT_PUSH, OTHER_PUSH, REBOUND };

static nb_result draw_missing(nb_gpu_command *command, const stage *s, int missing) {
    const uint32_t constants[4] = {1, 2, 3, 4};
    assert_int_equal(nb_gpu_set_pipeline(command, s->with_all), NB_OK);
    if (missing != NO_UNIFORM) assert_int_equal(nb_gpu_set_span(command, 0, s->span), NB_OK);
    if (missing != NO_STORAGE) assert_int_equal(nb_gpu_set_buffer(command, 1, s->import, 0, 0), NB_OK);
    if (missing != NO_IMAGE) assert_int_equal(nb_gpu_set_resource(command, 8, s->pixels, NB_GPU_SAMPLER_LINEAR), NB_OK);
    if (missing == SHORT_PUSH) return nb_gpu_push(command, constants, 4);
    if (missing != NO_PUSH) assert_int_equal(nb_gpu_push(command, constants, 8), NB_OK);
    // Constants are those of a pipeline; what is bound stays.
    if (missing == OTHER_PUSH) assert_int_equal(nb_gpu_set_pipeline(command, s->with_all), NB_OK);
    if (missing == REBOUND) assert_int_equal(nb_gpu_set_buffer(command, 1, (nb_gpu_buffer){5}, 0, 0), NB_ERR_STALE);
    return nb_gpu_draw(command, 3, 1, 0, 0);
}

TRY(draw_all, draw_missing(command, s, HAS_ALL))
TRY(draw_no_uniform, draw_missing(command, s, NO_UNIFORM))
TRY(draw_no_storage, draw_missing(command, s, NO_STORAGE))
TRY(draw_no_image, draw_missing(command, s, NO_IMAGE))
TRY(draw_no_push, draw_missing(command, s, NO_PUSH))
TRY(draw_short_push, draw_missing(command, s, SHORT_PUSH))
TRY(draw_other_push, draw_missing(command, s, OTHER_PUSH))
TRY(draw_rebound, draw_missing(command, s, REBOUND))

static nb_result draw_by_indices(nb_gpu_command *command, const stage *s, uint32_t first, uint32_t count) {
    assert_int_equal(nb_gpu_set_pipeline(command, s->drawing), NB_OK);
    if (first == UINT32_MAX) return nb_gpu_draw_indexed(command, count, 1, 0, 0, 0);
    assert_int_equal(nb_gpu_set_indices(command, s->buffer, 512), NB_OK);
    return nb_gpu_draw_indexed(command, count, 1, first, -1, 0);
}

TRY(draw_indexed, draw_by_indices(command, s, 8, 120))
TRY(draw_indexed_beyond, draw_by_indices(command, s, 9, 120))
TRY(draw_indexed_far, draw_by_indices(command, s, UINT32_MAX - 1, UINT32_MAX))
TRY(draw_indexed_none, draw_by_indices(command, s, UINT32_MAX, 3))

static nb_result draw_from(nb_gpu_command *command, const stage *s, nb_gpu_buffer buffer, uint32_t count) {
    assert_int_equal(nb_gpu_set_pipeline(command, s->drawing), NB_OK);
    return nb_gpu_draw_indirect(command, buffer, 16, count);
}

TRY(draw_indirect, draw_from(command, s, s->buffer, 63))
TRY(draw_indirect_beyond, draw_from(command, s, s->buffer, 64))
TRY(draw_indirect_import, draw_from(command, s, s->import, 1))

TEST(draws_need_all_that_their_pipeline_has) {
    stage s;
    stage_open(&s);
    expect_fine(&s, draw_all);
    assert_int_equal(gpu_stats(&s.r).draw_count, 1);
    expect_refused(&s, draw_no_uniform, NB_ERR_MISUSE, "bindings");
    assert_int_equal(gpu_stats(&s.r).draw_count, 0);
    expect_refused(&s, draw_no_storage, NB_ERR_MISUSE, NULL);
    expect_refused(&s, draw_no_image, NB_ERR_MISUSE, NULL);
    expect_refused(&s, draw_no_push, NB_ERR_MISUSE, "constants");
    expect_refused(&s, draw_short_push, NB_ERR_RANGE, "constants");
    expect_refused(&s, draw_other_push, NB_ERR_MISUSE, NULL);
    // Two are refused: the binding, and the draw that needs it.
    uint64_t before = gpu_stats(&s.r).misuse_count;
    stage_frame(&s, draw_rebound);
    assert_int_equal(s.result, NB_ERR_MISUSE);
    assert_int_equal(gpu_stats(&s.r).misuse_count, before + 2);
    // Bound as what it is not declared for.
    s.import_access = NB_GPU_ACCESS_UNIFORM;
    expect_refused(&s, draw_all, NB_ERR_PERMISSION, "hills");
    s.import_access = NB_GPU_ACCESS_STORAGE_READ;
    expect_fine(&s, draw_indexed);
    expect_refused(&s, draw_indexed_beyond, NB_ERR_RANGE, "indices");
    expect_refused(&s, draw_indexed_far, NB_ERR_RANGE, NULL);
    expect_refused(&s, draw_indexed_none, NB_ERR_MISUSE, NULL);
    expect_fine(&s, draw_indirect);
    assert_int_equal(gpu_stats(&s.r).draw_count, 63);
    expect_refused(&s, draw_indirect_beyond, NB_ERR_RANGE, "test");
    expect_refused(&s, draw_indirect_import, NB_ERR_PERMISSION, NULL);
    gpu_rig_close(&s.r);
}

static nb_result dispatch_all(nb_gpu_command *command, void *user) {
    const stage *s = user;
    assert_int_equal(nb_gpu_set_pipeline(command, s->computing), NB_OK);
    return nb_gpu_dispatch(command, 4, 2, 1);
}

TEST(compute_passes_dispatch) {
    stage s;
    stage_open(&s);
    s.kind = NB_GPU_PASS_COMPUTE;
    expect_fine(&s, dispatch_all);
    assert_int_equal(gpu_stats(&s.r).draw_count, 1);
    gpu_rig_close(&s.r);
}

static nb_result copy_span_back(nb_gpu_command *command, void *user) {
    const stage *s = user;
    memset(s->span.memory, 0x5A, s->span.size_bytes);
    return nb_gpu_copy_buffer(command, s->span.buffer, s->span.offset + 16, s->readback, 64, 32);
}

TEST(frame_memory_can_be_read_back) {
    stage s;
    stage_open(&s);
    s.kind = NB_GPU_PASS_COMPUTE;
    assert_null(nb_gpu_buffer_memory(s.r.gpu, s.buffer));
    const unsigned char *bytes = nb_gpu_buffer_memory(s.r.gpu, s.readback);
    assert_non_null(bytes);
    expect_fine(&s, copy_span_back);
    assert_int_equal(bytes[63], 0);
    for (uint32_t i = 64; i < 96; ++i) assert_int_equal(bytes[i], 0x5A);
    assert_int_equal(bytes[96], 0);
    gpu_rig_close(&s.r);
}

// --- hashes ---

typedef struct scene {
    nb_gpu_pipeline pipeline;
    nb_gpu_buffer buffer;
    uint32_t draw_count;
    uint32_t odd; // one draw that differs
} scene;

static nb_result draw_scene(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const scene *s = user;
    nb_gpu_set_pipeline(command, s->pipeline);
    nb_gpu_set_buffer(command, 0, s->buffer, 0, 0);
    for (uint32_t i = bucket; i < s->draw_count; i += bucket_count) {
        nb_gpu_span span;
        if (nb_gpu_frame_alloc(nb_gpu_command_device(command), 16, 256, &span) == NB_OK)
            nb_gpu_set_span(command, 1, span);
        nb_gpu_push(command, &i, sizeof i);
        nb_gpu_draw(command, 3 + (i == s->odd ? 1 : 0), 1, 0, 0);
    }
    return NB_OK;
}

typedef struct lanes {
    nb_gpu *gpu;
    nb_atomic_u32 failed;
} lanes;

static void record_lane(void *user, uint32_t index) {
    lanes *l = user;
    if (nb_gpu_frame_record(l->gpu, index) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&l->failed, 1);
}

static uint64_t hash_with_lanes(gpu_rig *r, scene *s, uint32_t lane_count, uint32_t bucket_count) {
    assert_int_equal(nb_gpu_frame_begin(r->gpu), NB_OK);
    // Where spans are depends on who comes first: as if others had come before.
    nb_gpu_span other;
    assert_int_equal(nb_gpu_frame_alloc(r->gpu, 256 * lane_count, 256, &other), NB_OK);
    gpu_pass_add(r->gpu, (gpu_pass){.record = draw_scene, .user = s, .bucket_count = bucket_count});
    assert_int_equal(nb_gpu_frame_compile(r->gpu), NB_OK);
    lanes l = {.gpu = r->gpu};
    test_threads_run(lane_count, record_lane, &l);
    assert_int_equal(l.failed.value, 0);
    assert_int_equal(nb_gpu_frame_submit(r->gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_end(r->gpu), NB_OK);
    assert_int_equal(gpu_stats(r).draw_count, s->draw_count);
    return gpu_stats(r).command_hash;
}

TEST(hash_of_commands_is_the_same_for_any_lanes_and_another_for_other_commands) {
    gpu_rig r;
    nb_gpu_desc desc = gpu_rig_desc();
    desc.lane_count = 8;
    gpu_rig_open_as(&r, desc, (nb_gpu_null_desc){0});
    nb_gpu_pipeline_desc drawing = gpu_drawing();
    drawing.push_bytes = 4, drawing.storage_mask = 1, drawing.uniform_mask = 2;
    scene s = {gpu_pipeline(r.gpu, drawing), gpu_buffer(r.gpu, 1024, NB_GPU_MEMORY_DEVICE), 200, UINT32_MAX};
    uint64_t first = hash_with_lanes(&r, &s, 1, 16);
    for (uint32_t lane_count = 1; lane_count <= 8; ++lane_count)
        assert_int_equal(hash_with_lanes(&r, &s, lane_count, 16), first);
    s.odd = 150;
    assert_int_not_equal(hash_with_lanes(&r, &s, 4, 16), first);
    s.odd = UINT32_MAX;
    s.buffer = gpu_buffer(r.gpu, 1024, NB_GPU_MEMORY_DEVICE);
    assert_int_not_equal(hash_with_lanes(&r, &s, 4, 16), first);
    assert_int_equal(gpu_stats(&r).misuse_count, 0);
    gpu_rig_close(&r);
}
