// SPDX-License-Identifier: MIT
// The device without an engine: objects, frames by hand, memory of a frame, uploads, captures.

#include "gpu/device/gpu_fixture.h"

static nb_result draw_nothing(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    (void)command, (void)bucket, (void)bucket_count;
    if (user != NULL) ++*(uint32_t *)user;
    return NB_OK;
}

TEST(frames_are_drawn_and_counted) {
    gpu_rig r;
    gpu_rig_open(&r);
    assert_string_equal(nb_gpu_name(r.gpu), "null: nothing");
    uint32_t count = 0;
    for (uint32_t i = 0; i < 10; ++i)
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){.record = draw_nothing, .user = &count, .bucket_count = 3}),
                         NB_OK);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(count, 30);
    assert_int_equal(stats.frame_count, 10);
    assert_int_equal(stats.submit_count, 10);
    assert_int_equal(stats.submitted_value, 10);
    assert_int_equal(stats.completed_value, 10);
    assert_int_equal(stats.pass_count, 1);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(r.gpu)), 10);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(frame_without_passes_is_a_picture_that_is_not_shown) {
    gpu_rig r;
    gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.has_surface = true});
    assert_int_equal(nb_gpu_null_fail(r.control, NB_GPU_NULL_PRESENT, 0), NB_OK);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(gpu_stats(&r).submit_count, 1);
    // No present was asked for: the order for it still waits.
    assert_int_equal(gpu_stats(&r).present_failed_count, 0);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(gpu_stats(&r).present_failed_count, 1);
    gpu_rig_close(&r);
}

// --- objects ---

TEST(destroyed_object_is_stale_at_once_and_gone_when_the_device_is_through) {
    gpu_rig r;
    gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.latency_frames = 1});
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    uint32_t before = nb_gpu_null_object_count(r.control);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_DEVICE);
    assert_int_equal(nb_gpu_null_object_count(r.control), before + 1);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_OK);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_ERR_STALE);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_STALE), 1);
    assert_int_equal(gpu_stats(&r).buffer_count, 0);
    // The third picture is still under way.
    assert_int_equal(gpu_stats(&r).completed_value, 2);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before + 1);
    assert_int_equal(gpu_stats(&r).reclaimed_count, 0);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before);
    assert_int_equal(gpu_stats(&r).reclaimed_count, 1);
    // Its place is taken again last, and its handle never.
    for (uint32_t i = 0; i < 64; ++i) {
        nb_gpu_buffer other = gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_DEVICE);
        assert_int_not_equal(other.value, buffer.value);
    }
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_ERR_STALE);
    gpu_rig_close(&r);
}

// A backend may do something to all that is new with the next picture: what has ended before must not be there then.
TEST(what_no_picture_has_seen_leaves_the_device_at_once) {
    gpu_rig r;
    gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.latency_frames = 1});
    for (uint32_t i = 0; i < 3; ++i) assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    uint32_t before = nb_gpu_null_object_count(r.control);
    nb_gpu_image image = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED), seen = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED);
    assert_int_equal(nb_gpu_image_destroy(r.gpu, image), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before + 1);
    assert_int_equal(gpu_stats(&r).reclaimed_count, 0); // its place waits as any other
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_gpu_image_destroy(r.gpu, seen), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before + 1);
    // On a device that is new itself so is all that it has, also what pictures on the old one have seen.
    nb_gpu_image old = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_gpu_null_fail(r.control, NB_GPU_NULL_LOST, 0), NB_OK);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_ERR_LOST);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before + 1);
    assert_int_equal(nb_gpu_image_destroy(r.gpu, old), NB_OK);
    assert_int_equal(nb_gpu_null_object_count(r.control), before);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(gpu_stats(&r).reclaimed_count, 3);
    assert_int_equal(gpu_stats(&r).retired_count, 3);
    gpu_rig_close(&r);
}

TEST(pools_are_full_and_have_room_again) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_image images[32], more = {77};
    nb_gpu_image_desc desc = {.name = "atlas",
                              .format = NB_GPU_FORMAT_R8,
                              .width = 1,
                              .height = 1,
                              .access = NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO};
    for (uint32_t i = 0; i < 32; ++i) images[i] = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED);
    assert_int_equal(nb_gpu_image_create(r.gpu, &desc, &more), NB_FULL);
    assert_int_equal(nb_gpu_image_create(r.gpu, &desc, &more), NB_FULL);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_FULL), 1);
    assert_non_null(strstr(r.log.last_message, "\"atlas\" has no room: 32 are alive"));
    assert_int_equal(more.value, 77);
    desc.layer_count = NB_GPU_LAYER_COUNT_MAX + 1;
    assert_true(nb_gpu_image_create(r.gpu, &desc, &more) < 0);
    assert_non_null(strstr(r.log.last_message, "image \"atlas\": "));
    desc.layer_count = 1;
    assert_int_equal(nb_gpu_image_destroy(r.gpu, images[7]), NB_OK);
    // It waits for the device, or at least for the next frame.
    assert_int_equal(nb_gpu_image_create(r.gpu, &desc, &more), NB_FULL);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(nb_gpu_image_create(r.gpu, &desc, &more), NB_OK);
    // The device's own are beside these.
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(gpu_stats(&r).image_count, 32);
    gpu_rig_close(&r);
}

TEST(objects_are_not_made_while_a_frame_is_recorded) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 16, NB_GPU_MEMORY_DEVICE), other = {0};
    nb_gpu_buffer_desc desc = {.size_bytes = 16};
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_compile(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_buffer_create(r.gpu, &desc, &other), NB_BUSY);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_BUSY);
    assert_int_equal(nb_gpu_frame_submit(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_OK);
    assert_int_equal(nb_gpu_frame_end(r.gpu), NB_OK);
    gpu_rig_close(&r);
}

TEST(failed_backend_object_leaves_no_handle) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_pipeline pipeline = {0};
    nb_gpu_pipeline_desc desc = gpu_drawing();
    uint64_t live = r.heap.live_count.value;
    assert_int_equal(nb_gpu_null_fail(r.control, NB_GPU_NULL_MEMORY, 0), NB_OK);
    assert_int_equal(nb_gpu_pipeline_create(r.gpu, &desc, &pipeline), NB_ERR_MEMORY);
    assert_int_equal(pipeline.value, 0);
    assert_int_equal(r.heap.live_count.value, live);
    assert_int_equal(gpu_stats(&r).pipeline_count, 0);
    pipeline = gpu_pipeline(r.gpu, desc);
    assert_int_equal(nb_gpu_pipeline_destroy(r.gpu, pipeline), NB_OK);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    assert_int_equal(r.heap.live_count.value, live);
    gpu_rig_close(&r);
}

// --- memory of a frame ---

TEST(spans_are_apart_aligned_and_of_their_frame) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_span a = {0}, b = {0}, c = {0};
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 16, 0, &a), NB_EMPTY);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 3, 1, &a), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 100, 0, &b), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 100, 256, &c), NB_OK);
    assert_int_equal(a.offset, 0);
    assert_int_equal(b.offset, 16);
    assert_int_equal(c.offset, 256);
    assert_int_equal((uintptr_t)c.memory % 256, 0);
    assert_ptr_equal((char *)a.memory + 16, b.memory);
    memset(c.memory, 1, c.size_bytes);
    nb_gpu_span rest = {0};
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 65536 - 356, 1, &rest), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 1, 1, &rest), NB_FULL);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, SIZE_MAX, 1, &rest), NB_FULL);
    assert_int_equal(gpu_stats(&r).span_full_count, 2);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 16, 0, &rest), NB_EMPTY);
    // The next frame has another memory, the one after it the first again: its spans are others all the same.
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
        assert_int_equal(nb_gpu_frame_alloc(r.gpu, 3, 1, &b), NB_OK);
        assert_int_equal(b.memory == a.memory, i == 1);
        assert_int_not_equal(a.buffer.value, b.buffer.value);
        assert_int_equal(nb_gpu_upload_buffer(r.gpu, a, (nb_gpu_buffer){0}, 0), NB_ERR_MISUSE);
        assert_int_equal(gpu_finish(r.gpu), NB_OK);
    }
    gpu_rig_close(&r);
}

typedef struct taker {
    nb_gpu *gpu;
    uint64_t offsets[4][500];
    nb_atomic_u32 failed;
} taker;

static void take_many(void *user, uint32_t index) {
    taker *t = user;
    for (uint32_t i = 0; i < 500; ++i) {
        nb_gpu_span span;
        if (nb_gpu_frame_alloc(t->gpu, 24, 8, &span) != NB_OK) nbi_atomic_fetch_add_seq_cst_u32(&t->failed, 1);
        memset(span.memory, (int)index, span.size_bytes);
        t->offsets[index][i] = span.offset;
    }
}

TEST(threads_take_spans_without_overlap) {
    gpu_rig r;
    gpu_rig_open(&r);
    static taker t;
    t = (taker){.gpu = r.gpu};
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    test_threads_run(4, take_many, &t);
    assert_int_equal(t.failed.value, 0);
    static bool is_taken[65536 / 24];
    memset(is_taken, 0, sizeof is_taken);
    for (uint32_t i = 0; i < 4 * 500; ++i) {
        uint64_t place = t.offsets[i / 500][i % 500] / 24;
        assert_int_equal(t.offsets[i / 500][i % 500] % 24, 0);
        assert_false(is_taken[place]);
        is_taken[place] = true;
    }
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    gpu_rig_close(&r);
}

// --- uploads ---

TEST(uploads_are_checked_counted_and_bounded) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 100, NB_GPU_MEMORY_DEVICE);
    nb_gpu_buffer back = gpu_buffer(r.gpu, 100, NB_GPU_MEMORY_READBACK);
    nb_gpu_image image = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_TO);
    nb_gpu_image fixed = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    nb_gpu_span span = {0}, pixels = {0}, false_span;
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 40, 0, &span), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 64, 0, &pixels), NB_OK);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 60), NB_OK);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 64), NB_ERR_RANGE);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, UINT64_MAX), NB_ERR_RANGE);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 2), NB_ERR_RANGE);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, back, 0), NB_ERR_MISUSE);
    assert_int_equal(nb_gpu_upload_image(r.gpu, pixels, image, 0), NB_OK);
    assert_int_equal(nb_gpu_upload_image(r.gpu, pixels, image, 1), NB_ERR_RANGE);
    assert_int_equal(nb_gpu_upload_image(r.gpu, span, image, 0), NB_ERR_RANGE);
    assert_int_equal(nb_gpu_upload_image(r.gpu, pixels, fixed, 0), NB_ERR_MISUSE);
    false_span = span;
    false_span.offset = 65536;
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, false_span, buffer, 0), NB_ERR_RANGE);
    false_span = span;
    false_span.buffer = buffer;
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, false_span, buffer, 0), NB_ERR_MISUSE);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(gpu_stats(&r).upload_bytes, 104);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 0), NB_EMPTY);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 4, 0, &span), NB_OK);
    for (uint32_t i = 0; i < NB_GPU_UPLOAD_COUNT_MAX; ++i)
        assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 0), NB_OK);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 0), NB_FULL);
    // Those to what is destroyed are not handed over.
    assert_int_equal(nb_gpu_upload_image(r.gpu, span, image, 0), NB_FULL);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_OK);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(gpu_stats(&r).upload_bytes, 104);
    gpu_rig_close(&r);
}

static nb_result fail_one(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    (void)command, (void)bucket_count, (void)user;
    return bucket == 1 ? NB_ERR_OS : NB_OK;
}

TEST(failed_recording_costs_the_picture_and_not_the_uploads) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 100, NB_GPU_MEMORY_DEVICE);
    nb_gpu_span span = {0};
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_alloc(r.gpu, 40, 0, &span), NB_OK);
    assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 0), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){.name = "doomed", .record = fail_one, .bucket_count = 3});
    assert_int_equal(nb_gpu_frame_compile(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_record(r.gpu, 1), NB_ERR_OS);
    assert_int_equal(nb_gpu_frame_submit(r.gpu), NB_ERR_OS);
    assert_non_null(strstr(r.log.last_message, "pass \"doomed\", bucket 1"));
    assert_int_equal(nb_gpu_frame_end(r.gpu), NB_OK);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.submit_count, 0);
    assert_int_equal(stats.skipped_failed_count, 1);
    assert_int_equal(stats.upload_bytes, 40);
    assert_int_equal(stats.submitted_value, 1);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){.record = draw_nothing}), NB_OK);
    // The same failure is not told twice.
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){.name = "doomed", .record = fail_one, .bucket_count = 3}), NB_ERR_OS);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_RECORD), 1);
    // Nor is anything lost where nobody records at all.
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
    assert_int_equal(nb_gpu_frame_compile(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_submit(r.gpu), NB_ERR_MISUSE);
    assert_int_equal(nb_gpu_frame_end(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_end(r.gpu), NB_OK);
    stats = gpu_stats(&r);
    assert_int_equal(stats.skipped_failed_count, 4);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

// --- the graph's memory ---

TEST(memory_of_the_graph_is_kept_and_given_back) {
    gpu_rig r;
    gpu_rig_open(&r);
    uint64_t calls = 0;
    for (uint32_t i = 0; i < 40; ++i) {
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
        nb_graph *graph = nb_gpu_graph(r.gpu);
        nb_graph_pass pass = gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
        if (i < 20) {
            nb_graph_resource depth = {0}, list = {0};
            nb_graph_image_desc desc = {"depth", NB_GPU_FORMAT_DEPTH32F, 64, 32};
            nb_graph_buffer_desc buffer = {"list", 1025 + i}; // grows a little with every frame
            assert_int_equal(nb_graph_image_add(graph, &desc, &depth), NB_OK);
            assert_int_equal(nb_graph_use(graph, pass, depth, NB_GPU_ACCESS_DEPTH), NB_OK);
            assert_int_equal(nb_graph_buffer_add(graph, &buffer, &list), NB_OK);
            assert_int_equal(nb_graph_use(graph, pass, list, NB_GPU_ACCESS_STORAGE), NB_OK);
        }
        assert_int_equal(gpu_finish(r.gpu), NB_OK);
        if (i == 3) calls = r.heap.call_count.value;
        if (i < 20) assert_int_equal(nb_gpu_null_object_count(r.control), 3);
    }
    assert_int_equal(nb_gpu_null_object_count(r.control), 1);
    assert_int_equal(r.heap.call_count.value, calls);
    gpu_rig_close(&r);
}

TEST(graph_that_does_not_compile_costs_the_picture) {
    gpu_rig r;
    gpu_rig_open(&r);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    nb_graph *graph = nb_gpu_graph(r.gpu);
    nb_graph_pass pass = gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
    nb_graph_resource never = {0};
    nb_graph_image_desc desc = {"never", NB_GPU_FORMAT_RGBA8, 4, 4};
    assert_int_equal(nb_graph_image_add(graph, &desc, &never), NB_OK);
    assert_int_equal(nb_graph_use(graph, pass, never, NB_GPU_ACCESS_SAMPLED), NB_OK);
    assert_int_equal(nb_gpu_frame_compile(r.gpu), NB_ERR_MISUSE);
    assert_null(nb_gpu_graph(r.gpu));
    assert_int_equal(nb_gpu_frame_record(r.gpu, 0), NB_EMPTY);
    assert_int_equal(nb_gpu_frame_submit(r.gpu), NB_EMPTY);
    assert_int_equal(nb_gpu_frame_end(r.gpu), NB_OK);
    assert_int_equal(gpu_stats(&r).skipped_failed_count, 1);
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
    gpu_rig_close(&r);
}

static nb_result import_and_finish(gpu_rig *r, nb_graph_import_desc desc, bool is_twice) {
    assert_int_equal(nb_gpu_frame_begin(r->gpu), NB_OK);
    nb_graph *graph = nb_gpu_graph(r->gpu);
    nb_graph_pass pass = gpu_pass_add(r->gpu, (gpu_pass){.record = draw_nothing});
    nb_graph_resource resource = {0};
    assert_int_equal(nb_graph_import(graph, &desc, &resource), NB_OK);
    assert_int_equal(nb_graph_use(graph, pass, resource, NB_GPU_ACCESS_SAMPLED), NB_OK);
    desc.name = "again";
    if (is_twice) {
        assert_int_equal(nb_graph_import(graph, &desc, &resource), NB_OK);
        assert_int_equal(nb_graph_use(graph, pass, resource, NB_GPU_ACCESS_SAMPLED), NB_OK);
    }
    return gpu_finish(r->gpu);
}

TEST(imports_that_are_not_what_they_say_are_refused) {
    gpu_rig r;
    gpu_rig_open(&r);
    nb_gpu_image image = gpu_image(r.gpu, 8, NB_GPU_ACCESS_SAMPLED), gone = gpu_image(r.gpu, 8, NB_GPU_ACCESS_SAMPLED);
    nb_graph_import_desc fine = {.name = "photo",
                                 .image = image,
                                 .format = NB_GPU_FORMAT_RGBA8,
                                 .width = 8,
                                 .height = 8,
                                 .before = NB_GPU_ACCESS_SAMPLED};
    assert_int_equal(import_and_finish(&r, fine, false), NB_OK);
    assert_int_equal(import_and_finish(&r, fine, true), NB_ERR_MISUSE);
    nb_graph_import_desc bad = fine;
    bad.width = 4;
    assert_int_equal(import_and_finish(&r, bad, false), NB_ERR_MISUSE);
    assert_non_null(strstr(r.log.last_message, "photo"));
    bad = fine;
    bad.image = (nb_gpu_image){0};
    assert_int_equal(import_and_finish(&r, bad, false), NB_ERR_MISUSE);
    bad.image = gone;
    assert_int_equal(nb_gpu_image_destroy(r.gpu, gone), NB_OK);
    assert_int_equal(import_and_finish(&r, bad, false), NB_ERR_STALE);
    assert_int_equal(import_and_finish(&r, fine, false), NB_OK);
    assert_int_equal(gpu_stats(&r).skipped_failed_count, 4);
    gpu_rig_close(&r);
}

// --- captures ---

TEST(capture_has_the_colour_of_the_first_clear) {
    gpu_rig r;
    gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.latency_frames = 1});
    nb_gpu_capture capture = {0};
    assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_EMPTY);
    assert_int_equal(nb_gpu_capture_take(r.gpu, 0, &capture), NB_EMPTY);
    for (uint32_t i = 0; i < 3; ++i) {
        if (i == 2) assert_int_equal(nb_gpu_resize(r.gpu, 16, 8), NB_OK);
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
        assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_OK);
        assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_BUSY);
        gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
        assert_int_equal(gpu_finish(r.gpu), NB_OK);
        assert_int_equal(nb_gpu_capture_take(r.gpu, 0, &capture), NB_BUSY);
        assert_int_equal(nb_gpu_capture_take(r.gpu, 1, &capture), NB_OK);
        assert_int_equal(capture.width, i == 2 ? 16 : 64);
        assert_int_equal(capture.height, i == 2 ? 8 : 32);
        assert_int_equal(capture.frame, i + 1);
        const uint8_t *last = capture.pixels + (size_t)capture.width * capture.height * 4 - 4;
        const uint8_t expected[4] = {64, 128, 255, 255};
        assert_memory_equal(capture.pixels, expected, 4);
        assert_memory_equal(last, expected, 4);
    }
    // A picture that was left out has no pixels.
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){.record = fail_one, .bucket_count = 2});
    assert_int_equal(gpu_finish(r.gpu), NB_ERR_OS);
    assert_int_equal(nb_gpu_capture_take(r.gpu, 1, &capture), NB_ERR_LOST);
    gpu_rig_close(&r);
}

// --- sizes ---

TEST(resized_back_buffer_is_there_with_the_next_frame) {
    for (uint32_t has_surface = 0; has_surface < 2; ++has_surface) {
        gpu_rig r;
        gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.has_surface = has_surface != 0});
        uint32_t width = 0, height = 0;
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
        assert_int_equal(nb_gpu_resize(r.gpu, 100, 50), NB_OK);
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
        assert_int_not_equal(nb_gpu_backbuffer(r.gpu, &width, &height).value, 0);
        assert_int_equal(width, 100);
        assert_int_equal(height, 50);
        // In the middle of a frame it is for the next.
        assert_int_equal(nb_gpu_resize(r.gpu, 0, 0), NB_OK);
        gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
        assert_int_equal(gpu_finish(r.gpu), NB_OK);
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_BUSY);
        assert_int_equal(nb_gpu_backbuffer(r.gpu, NULL, NULL).value, 0);
        assert_int_equal(nb_gpu_resize(r.gpu, 100, 50), NB_OK);
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
        assert_int_equal(nb_gpu_resize(r.gpu, 10, 0), NB_ERR_RANGE);
        assert_int_equal(nb_gpu_set_vsync(r.gpu, false), NB_OK);
        assert_int_equal(gpu_frame(r.gpu, (gpu_pass){0}), NB_OK);
        nb_gpu_stats stats = gpu_stats(&r);
        assert_int_equal(stats.skipped_hidden_count, 1);
        assert_int_equal(stats.resize_count, has_surface != 0 ? 3 : 1);
        assert_int_equal(nb_gpu_backbuffer_format(r.gpu), NB_GPU_FORMAT_RGBA8);
        assert_accounted(&stats);
        gpu_rig_close(&r);
    }
}

// --- the end ---

TEST(destroy_is_refused_inside_a_frame) {
    gpu_rig r;
    gpu_rig_open(&r);
    gpu_buffer(r.gpu, 16, NB_GPU_MEMORY_DEVICE); // left over
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_destroy(r.gpu), NB_BUSY);
    assert_int_equal(nb_gpu_wait_idle(r.gpu, 1), NB_ERR_MISUSE);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_wait_idle(r.gpu, 1), NB_OK);
    gpu_rig_close(&r);
}

TEST(every_failed_allocation_is_survived) {
    uint64_t fail_at = 1;
    for (;; ++fail_at) {
        gpu_rig r;
        memset(&r, 0, sizeof r);
        nb_clock_manual_init(&r.clock, 1);
        assert_int_equal(nb_gpu_null_create(NULL, &r.control), NB_OK);
        r.heap.fail_at = fail_at;
        nb_result result = gpu_rig_try(&r, gpu_rig_desc(), (nb_gpu_null_desc){0});
        if (result != NB_OK) {
            assert_int_equal(result, NB_ERR_MEMORY);
            assert_null(r.gpu);
        } else {
            nb_gpu_pipeline_desc desc = gpu_drawing();
            nb_gpu_pipeline pipeline = {0};
            nb_result made = nb_gpu_pipeline_create(r.gpu, &desc, &pipeline);
            assert_true(made == NB_OK || made == NB_ERR_MEMORY);
            assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
            nb_result asked = nb_gpu_capture_ask(r.gpu);
            assert_true(asked == NB_OK || asked == NB_ERR_MEMORY);
            if (asked != NB_OK) assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_OK);
            gpu_pass_add(r.gpu, (gpu_pass){.record = draw_nothing});
            assert_int_equal(gpu_finish(r.gpu), NB_OK);
            assert_int_equal(nb_gpu_destroy(r.gpu), NB_OK);
        }
        assert_int_equal(r.heap.live_count.value, 0);
        assert_int_equal(nb_gpu_null_object_count(r.control), 0);
        nb_gpu_null_destroy(r.control);
        if (r.heap.call_count.value < fail_at) break; // none has failed
    }
    assert_true(fail_at > 20);
}
