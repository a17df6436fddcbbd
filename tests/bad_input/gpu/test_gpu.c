// SPDX-License-Identifier: MIT
// nebula/gpu.h, with nebula/gpu_command.h and nebula/gpu_null.h: devices and objects that are none, bad descs, calls at
// the wrong moment.

#include "bad_input/bad_input.h"

#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"
#include "nebula/gpu_command.h"
#include "nebula/gpu_null.h"

static const uint32_t words[4] = {0x07230203, 1, 2, 3};

static nb_gpu_desc small_desc(test_heap *heap) {
    return (nb_gpu_desc){.frame_bytes = 4096,
                         .buffer_count_max = 4,
                         .image_count_max = 4,
                         .pipeline_count_max = 4,
                         .lane_count = 2,
                         .graph = {.pass_count_max = 8, .resource_count_max = 8, .use_count_max = 16},
                         .hooks = bad_hooks(heap)};
}

TEST(null_is_refused_everywhere) {
    nb_gpu_span span = {0};
    nb_gpu_capture capture;
    nb_gpu_pass_time time;
    memset(&capture, 0x5A, sizeof capture);
    const int none = NB_ERR_MISUSE;
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_create(NULL, NULL));
    accepted(NB_OK, nb_gpu_destroy(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_attach(NULL, NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_begin(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_compile(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_record(NULL, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_submit(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_end(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, (intptr_t)nb_gpu_graph(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_gpu_backbuffer(NULL, NULL, NULL).value);
    refused_default(NB_GPU_FORMAT_NONE, NB_ITEM_BASE_NULL, nb_gpu_backbuffer_format(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_alloc(NULL, 16, 0, &span));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_frame_alloc_at(NULL, (nb_fence_frame){0}, 16, 0, &span));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_upload_buffer(NULL, span, (nb_gpu_buffer){0}, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_upload_image(NULL, span, (nb_gpu_image){0}, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_buffer_create(NULL, NULL, NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_buffer_destroy(NULL, (nb_gpu_buffer){0}));
    refused_default(0, NB_ITEM_BASE_NULL, (intptr_t)nb_gpu_buffer_memory(NULL, (nb_gpu_buffer){0}));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_image_create(NULL, NULL, NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_image_destroy(NULL, (nb_gpu_image){0}));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_pipeline_create(NULL, NULL, NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_pipeline_destroy(NULL, (nb_gpu_pipeline){0}));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_resize(NULL, 1, 1));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_vsync(NULL, true));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_capture_ask(NULL));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_capture_take(NULL, 0, &capture));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_wait_idle(NULL, 0));
    refused_default(0, NB_ITEM_BASE_NULL, (intptr_t)nb_gpu_timeline(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_gpu_stats_get(NULL).frame_count);
    refused_default(0, NB_ITEM_BASE_NULL, nb_gpu_pass_times(NULL, &time, 1));
    refused_default(0, NB_ITEM_BASE_NULL, nb_gpu_name(NULL)[0]);
    assert_untouched(capture, 0x5A);
}

TEST(null_commands_are_refused) {
    const int none = NB_ERR_MISUSE;
    const nb_gpu_rect rect = {0, 0, 1, 1};
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_pipeline(NULL, (nb_gpu_pipeline){0}));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_buffer(NULL, 0, (nb_gpu_buffer){0}, 0, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_span(NULL, 0, (nb_gpu_span){0}));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_image(NULL, 8, (nb_gpu_image){0}, NB_GPU_SAMPLER_LINEAR));
    refused_default(none, NB_ITEM_BASE_NULL,
                    nb_gpu_set_resource(NULL, 8, (nb_graph_resource){0}, NB_GPU_SAMPLER_LINEAR));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_indices(NULL, (nb_gpu_buffer){0}, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_push(NULL, words, 4));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_viewport(NULL, rect));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_set_scissor(NULL, rect));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_draw(NULL, 3, 1, 0, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_draw_indexed(NULL, 3, 1, 0, 0, 0));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_draw_indirect(NULL, (nb_gpu_buffer){0}, 0, 1));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_dispatch(NULL, 1, 1, 1));
    refused_default(none, NB_ITEM_BASE_NULL, nb_gpu_copy_buffer(NULL, (nb_gpu_buffer){0}, 0, (nb_gpu_buffer){0}, 0, 4));
    refused_default(none, NB_ITEM_BASE_NULL,
                    nb_gpu_copy_to_buffer(NULL, (nb_graph_resource){0}, (nb_gpu_buffer){0}, 0));
    refused_default(0, NB_ITEM_BASE_NULL, (intptr_t)nb_gpu_command_device(NULL));
}

TEST(orders_that_are_none_are_refused) {
    test_heap heap = {0};
    nb_hooks hooks = bad_hooks(&heap);
    nb_gpu_null *control = UNTOUCHED(nb_gpu_null);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_gpu_null_create(NULL, NULL));
    silent(nb_gpu_null_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_gpu_null_fail(NULL, NB_GPU_NULL_LOST, 0));
    refused_default(0, NB_ITEM_BASE_NULL, nb_gpu_null_object_count(NULL));
    refused_memory(heap, 1, control, nb_gpu_null_create(&hooks, &control));
    accepted(NB_OK, nb_gpu_null_create(&hooks, &control));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_null_fail(control, NB_GPU_NULL_NONE, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_null_fail(control, NB_GPU_NULL_FAULT_COUNT, 0));
    for (uint32_t i = 0; i < NB_GPU_NULL_ORDER_COUNT_MAX; ++i)
        accepted(NB_OK, nb_gpu_null_fail(control, NB_GPU_NULL_NO_DEVICE, 0));
    accepted(NB_FULL, nb_gpu_null_fail(control, NB_GPU_NULL_LOST, 0));
    // There is no device, and the reason is the backend's.
    nb_gpu *gpu = UNTOUCHED(nb_gpu);
    nb_gpu_null_desc null_desc = {.control = control};
    nb_gpu_desc desc = small_desc(&heap);
    desc.backend = nb_gpu_null_backend();
    desc.backend_desc = &null_desc;
    accepted(NB_ERR_UNSUPPORTED, nb_gpu_create(&desc, &gpu));
    assert_ptr_equal(gpu, UNTOUCHED(nb_gpu));
    nb_gpu_null_destroy(control);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(impossible_devices_are_refused) {
    test_heap heap = {0};
    nb_gpu *gpu = UNTOUCHED(nb_gpu);
    nb_gpu_desc bad[11];
    for (int i = 0; i < 11; ++i) bad[i] = small_desc(&heap);
    bad[0].width = 100;
    bad[1].height = 100;
    bad[2].width = NB_GRAPH_IMAGE_SIZE_MAX + 1, bad[2].height = 1;
    bad[3].frames_in_flight = NB_GPU_FRAMES_MAX + 1;
    bad[4].frame_bytes = NB_GPU_FRAME_BYTES_MAX + 1;
    bad[5].buffer_count_max = NB_GPU_OBJECT_COUNT_MAX + 1;
    bad[6].image_count_max = UINT32_MAX;
    bad[7].pipeline_count_max = NB_GPU_OBJECT_COUNT_MAX + 1;
    bad[8].lane_count = NB_GPU_LANE_COUNT_MAX + 1;
    bad[9].graph.pass_count_max = NB_GRAPH_PASS_COUNT_MAX + 1;
    bad[10].graph.resource_count_max = UINT32_MAX;
    for (int i = 0; i < 11; ++i) refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_create(&bad[i], &gpu));
    assert_ptr_equal(gpu, UNTOUCHED(nb_gpu));
    assert_int_equal(heap.live_count.value, 0);
}

static nb_gpu *open_gpu(test_heap *heap) {
    nb_gpu *gpu = NULL;
    nb_gpu_desc desc = small_desc(heap);
    assert_int_equal(nb_gpu_create(&desc, &gpu), NB_OK);
    return gpu;
}

// Of objects that are wrong in the same way: each is reported by itself.
static const char *const names[16] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"};

static void close_gpu(nb_gpu *gpu, const test_heap *heap) {
    assert_int_equal(nb_gpu_destroy(gpu), NB_OK);
    assert_int_equal(heap->live_count.value, 0);
}

TEST(impossible_buffers_and_images_are_refused) {
    test_heap heap = {0};
    nb_gpu *gpu = open_gpu(&heap);
    nb_gpu_buffer buffer = {77};
    nb_gpu_image image = {77};
    nb_gpu_buffer_desc fine = {.size_bytes = 16}, empty = {.name = "empty"}, odd = fine;
    nb_gpu_buffer_desc huge = {.name = "huge", .size_bytes = UINT64_MAX};
    odd.memory = NB_GPU_MEMORY_COUNT;
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_buffer_create(gpu, NULL, &buffer));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_buffer_create(gpu, &fine, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_buffer_create(gpu, &empty, &buffer));
    refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_buffer_create(gpu, &huge, &buffer));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_buffer_create(gpu, &odd, &buffer));
    nb_gpu_image_desc good = {.format = NB_GPU_FORMAT_RGBA8, .width = 4, .height = 4, .access = NB_GPU_ACCESS_SAMPLED};
    nb_gpu_image_desc bad[7];
    for (int i = 0; i < 7; ++i) bad[i] = good, bad[i].name = names[i];
    bad[0].format = NB_GPU_FORMAT_NONE;
    bad[1].format = NB_GPU_FORMAT_COUNT;
    bad[2].access = 0;
    bad[3].access = NB_GPU_ACCESS_VERTEX;
    bad[4].width = 0;
    bad[5].height = NB_GRAPH_IMAGE_SIZE_MAX + 1;
    bad[6].layer_count = NB_GPU_LAYER_COUNT_MAX + 1;
    for (int i = 0; i < 4; ++i) refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_image_create(gpu, &bad[i], &image));
    for (int i = 4; i < 7; ++i) refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_image_create(gpu, &bad[i], &image));
    bad[0] = bad[1] = good;
    bad[0].name = "depth", bad[1].name = "color";
    bad[0].access = NB_GPU_ACCESS_DEPTH;
    bad[1].format = NB_GPU_FORMAT_DEPTH32F, bad[1].access = NB_GPU_ACCESS_COLOR;
    for (int i = 0; i < 2; ++i)
        refused(NB_ERR_UNSUPPORTED, NB_ITEM_GPU_ARGUMENT, nb_gpu_image_create(gpu, &bad[i], &image));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_image_create(gpu, &good, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_image_create(gpu, NULL, &image));
    assert_int_equal(buffer.value, 77);
    assert_int_equal(image.value, 77);
    refused(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_buffer_destroy(gpu, buffer));
    refused(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_image_destroy(gpu, image));
    refused_again(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_image_destroy(gpu, (nb_gpu_image){UINT64_MAX}));
    refused_again(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_buffer_destroy(gpu, (nb_gpu_buffer){UINT64_MAX}));
    accepted(0, (intptr_t)nb_gpu_buffer_memory(gpu, (nb_gpu_buffer){UINT64_MAX}));
    close_gpu(gpu, &heap);
}

TEST(impossible_pipelines_are_refused) {
    test_heap heap = {0};
    nb_gpu *gpu = open_gpu(&heap);
    nb_gpu_pipeline pipeline = {77};
    nb_gpu_pipeline_desc fine = {
        .vertex = {words, 16}, .fragment = {words, 16}, .colors = {NB_GPU_FORMAT_RGBA8}, .color_count = 1};
    nb_gpu_pipeline_desc bad[16];
    for (int i = 0; i < 16; ++i) bad[i] = fine, bad[i].name = names[i];
    bad[0].vertex = (nb_gpu_shader){NULL, 0};
    bad[1].vertex.size_bytes = 15;
    bad[2].fragment = (nb_gpu_shader){NULL, 0};
    bad[3].compute = (nb_gpu_shader){words, 16};
    bad[4].colors[0] = NB_GPU_FORMAT_DEPTH32F;
    bad[5].colors[0] = NB_GPU_FORMAT_NONE;
    bad[6].depth_format = NB_GPU_FORMAT_R8;
    bad[7].depth = NB_GPU_DEPTH_TEST;
    bad[8].topology = NB_GPU_TOPOLOGY_COUNT;
    bad[9].blend = NB_GPU_BLEND_COUNT;
    bad[10].cull = NB_GPU_CULL_COUNT;
    bad[11].uniform_mask = bad[11].storage_mask = 4;
    bad[12].sampled_mask = bad[12].storage_image_mask = 1;
    for (int i = 0; i < 13; ++i)
        refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_pipeline_create(gpu, &bad[i], &pipeline));
    bad[13].color_count = NB_GRAPH_COLOR_COUNT_MAX + 1;
    bad[14].push_bytes = NB_GPU_PUSH_BYTES_MAX + 4;
    bad[15].uniform_mask = 0x100;
    for (int i = 13; i < 16; ++i)
        refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_pipeline_create(gpu, &bad[i], &pipeline));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_pipeline_create(gpu, NULL, &pipeline));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_pipeline_create(gpu, &fine, NULL));
    refused(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_pipeline_destroy(gpu, pipeline));
    heap.fail_at = heap.call_count.value + 1;
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_gpu_pipeline_create(gpu, &fine, &pipeline));
    assert_int_equal(pipeline.value, 77);
    accepted(NB_OK, nb_gpu_pipeline_create(gpu, &fine, &pipeline));
    close_gpu(gpu, &heap);
}

TEST(calls_at_the_wrong_moment_are_refused) {
    test_heap heap = {0};
    nb_gpu *gpu = open_gpu(&heap);
    nb_gpu_span span = {0};
    nb_gpu_capture capture;
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_compile(gpu));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_record(gpu, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_submit(gpu));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_end(gpu));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_attach(gpu, NULL));
    accepted(NB_OK, nb_gpu_frame_begin(gpu));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_begin(gpu));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_record(gpu, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_wait_idle(gpu, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_frame_alloc(gpu, 0, 0, &span));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_frame_alloc(gpu, 16, 3, &span));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_frame_alloc(gpu, 16, 512, &span));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_frame_alloc(gpu, 16, 16, NULL));
    accepted(NB_ERR_STALE, nb_gpu_frame_alloc_at(gpu, (nb_fence_frame){99}, 16, 16, &span));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_upload_buffer(gpu, span, (nb_gpu_buffer){0}, 0));
    accepted(NB_OK, nb_gpu_frame_alloc(gpu, 16, 16, &span));
    refused(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_upload_buffer(gpu, span, (nb_gpu_buffer){0}, 0));
    refused_again(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_upload_buffer(gpu, span, span.buffer, 0));
    refused(NB_ERR_STALE, NB_ITEM_GPU_STALE, nb_gpu_upload_image(gpu, span, (nb_gpu_image){0}, 0));
    span.offset = UINT64_MAX;
    refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_upload_buffer(gpu, span, (nb_gpu_buffer){0}, 0));
    accepted(NB_OK, nb_gpu_frame_compile(gpu));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_compile(gpu));
    refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_frame_record(gpu, 2));
    accepted(NB_OK, nb_gpu_frame_record(gpu, 1));
    accepted(NB_OK, nb_gpu_frame_submit(gpu));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GPU_MOMENT, nb_gpu_frame_submit(gpu));
    accepted(NB_OK, nb_gpu_frame_end(gpu));
    accepted(NB_EMPTY, nb_gpu_capture_ask(gpu));
    refused(NB_ERR_MISUSE, NB_ITEM_GPU_ARGUMENT, nb_gpu_capture_take(gpu, 0, NULL));
    accepted(NB_EMPTY, nb_gpu_capture_take(gpu, 0, &capture));
    refused(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_resize(gpu, 5, 0));
    refused_again(NB_ERR_RANGE, NB_ITEM_GPU_ARGUMENT, nb_gpu_resize(gpu, UINT32_MAX, 5));
    accepted(0, nb_gpu_pass_times(gpu, NULL, 5));
    close_gpu(gpu, &heap);
}
