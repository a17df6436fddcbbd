// SPDX-License-Identifier: MIT
// What a device does wrong, and that it costs pictures and nothing else.

#include "gpu/device/gpu_fixture.h"

#define MS UINT64_C(1000000)

static void order(gpu_rig *r, nb_gpu_null_fault fault, uint32_t after) {
    assert_int_equal(nb_gpu_null_fail(r->control, fault, after), NB_OK);
}

static nb_result frame(gpu_rig *r) { return gpu_frame(r->gpu, (gpu_pass){0}); }

static void frames(gpu_rig *r, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(frame(r), NB_OK);
}

static uint32_t restored; // how often the device came back

static void count_restored(nb_gpu *gpu, void *user) {
    (void)gpu;
    ++*(uint32_t *)user;
}

static void open_counting(gpu_rig *r, uint32_t latency_frames) {
    nb_gpu_desc desc = gpu_rig_desc();
    desc.on_restored = count_restored;
    desc.user = &restored;
    desc.stuck_ns = 1000 * MS;
    gpu_rig_open_as(r, desc, (nb_gpu_null_desc){.latency_frames = latency_frames});
}

static gpu_rig r; // of the case that runs

// --- the fence ---

TEST(device_that_is_behind_costs_pictures_until_it_goes_on) {
    open_counting(&r, 1);
    frames(&r, 4);
    order(&r, NB_GPU_NULL_STUCK, 0);
    frames(&r, 1); // one more fits into what is in flight
    nb_gpu_span span;
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_BUSY);
        assert_null(nb_gpu_graph(r.gpu));
        assert_int_equal(nb_gpu_frame_alloc(r.gpu, 16, 0, &span), NB_EMPTY);
        assert_int_equal(gpu_finish(r.gpu), NB_EMPTY);
        nb_clock_manual_advance(&r.clock, 100 * MS);
    }
    assert_int_equal(gpu_stats(&r).skipped_behind_count, 5);
    assert_int_equal(gpu_stats(&r).completed_value, 3);
    order(&r, NB_GPU_NULL_GO, 0);
    frames(&r, 3);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.lost_count, 0);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(device_that_is_stuck_is_made_anew) {
    open_counting(&r, 1);
    frames(&r, 4);
    order(&r, NB_GPU_NULL_STUCK, 0);
    frames(&r, 1);
    assert_int_equal(frame(&r), NB_BUSY);
    nb_clock_manual_advance(&r.clock, 999 * MS);
    assert_int_equal(frame(&r), NB_BUSY);
    nb_clock_manual_advance(&r.clock, 1 * MS);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    assert_int_equal(gpu_stats(&r).lost_count, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_LOST), 1);
    assert_int_equal(restored, 0);
    frames(&r, 3);
    assert_int_equal(restored, 1);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.restored_count, 1);
    assert_int_equal(stats.skipped_behind_count, 2);
    assert_int_equal(stats.skipped_lost_count, 1);
    assert_int_equal(stats.submitted_value, 8);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(fence_beyond_what_was_handed_over_is_not_believed) {
    open_counting(&r, 1);
    frames(&r, 3);
    order(&r, NB_GPU_NULL_JUMP, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.value_refused_count, 1);
    assert_int_equal(stats.lost_count, 1);
    assert_int_equal(stats.completed_value, 3);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(r.gpu)), 3);
    frames(&r, 3);
    assert_int_equal(restored, 1);
    assert_int_equal(gpu_stats(&r).submitted_value, 6);
    gpu_rig_close(&r);
}

TEST(fence_that_goes_back_is_not_believed) {
    gpu_rig_open(&r);
    frames(&r, 3);
    for (uint32_t i = 0; i < 3; ++i) {
        order(&r, NB_GPU_NULL_BACK, 0);
        frames(&r, 1);
    }
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.value_refused_count, 3);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_VALUE), 1);
    assert_string_equal(r.log.last_function, "nb_gpu_frame_begin");
    assert_non_null(strstr(r.log.last_message, "reported fence value 2 after 3 (submitted 3): ignored"));
    assert_int_equal(stats.lost_count, 0);
    assert_int_equal(stats.completed_value, 6);
    assert_int_equal(nb_timeline_value(nb_gpu_timeline(r.gpu)), 6);
    gpu_rig_close(&r);
}

// --- lost ---

TEST(lost_device_is_made_anew_with_all_that_was_alive) {
    open_counting(&r, 1);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_DEVICE), gone = gpu_buffer(r.gpu, 64, 0);
    nb_gpu_buffer readback = gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_READBACK);
    nb_gpu_image image = gpu_image(r.gpu, 4, NB_GPU_ACCESS_SAMPLED);
    nb_gpu_pipeline pipeline = gpu_pipeline(r.gpu, gpu_drawing());
    frames(&r, 3);
    uint32_t alive = nb_gpu_null_object_count(r.control);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, gone), NB_OK); // waits for the device
    order(&r, NB_GPU_NULL_LOST, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.lost_count, 1);
    assert_int_equal(stats.skipped_lost_count, 1);
    // Between loss and return nothing can be made, and nothing is readable.
    nb_gpu_buffer_desc desc = {.size_bytes = 16};
    nb_gpu_buffer other = {0};
    assert_int_equal(nb_gpu_buffer_create(r.gpu, &desc, &other), NB_ERR_LOST);
    assert_null(nb_gpu_buffer_memory(r.gpu, readback));
    assert_int_equal(nb_gpu_wait_idle(r.gpu, 1), NB_ERR_LOST);
    frames(&r, 1);
    assert_int_equal(restored, 1);
    assert_int_equal(gpu_stats(&r).value_refused_count, 0); // the new fence begins again
    assert_int_equal(nb_gpu_null_object_count(r.control), alive - 1);
    assert_non_null(nb_gpu_buffer_memory(r.gpu, readback));
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_OK);
    assert_int_equal(nb_gpu_image_destroy(r.gpu, image), NB_OK);
    assert_int_equal(nb_gpu_pipeline_destroy(r.gpu, pipeline), NB_OK);
    frames(&r, 3);
    stats = gpu_stats(&r);
    assert_int_equal(stats.retired_count, 4);
    assert_int_equal(stats.reclaimed_count, 4);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(tries_to_get_a_device_back_are_further_and_further_apart) {
    open_counting(&r, 0);
    frames(&r, 2);
    order(&r, NB_GPU_NULL_LOST, 0);
    for (uint32_t i = 0; i < 12; ++i) order(&r, NB_GPU_NULL_NO_DEVICE, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    assert_int_equal(frame(&r), NB_ERR_LOST); // the first try
    uint64_t pause_ns = NB_GPU_RETRY_NS_MIN;
    for (uint32_t i = 1; i < 12; ++i) {
        // A moment too early nothing is tried, and so none of the orders is used up.
        nb_clock_manual_advance(&r.clock, pause_ns - 1);
        assert_int_equal(frame(&r), NB_ERR_LOST);
        nb_clock_manual_advance(&r.clock, 1);
        assert_int_equal(frame(&r), NB_ERR_LOST);
        pause_ns = pause_ns * 2 < NB_GPU_RETRY_NS_MAX ? pause_ns * 2 : NB_GPU_RETRY_NS_MAX;
    }
    assert_int_equal(pause_ns, NB_GPU_RETRY_NS_MAX);
    assert_int_equal(restored, 0);
    nb_clock_manual_advance(&r.clock, pause_ns - 1);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    nb_clock_manual_advance(&r.clock, 1);
    frames(&r, 2);
    assert_int_equal(restored, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_UNRESTORED), 1);
    // The next loss begins with the first pause again.
    order(&r, NB_GPU_NULL_LOST, 0);
    order(&r, NB_GPU_NULL_NO_DEVICE, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    nb_clock_manual_advance(&r.clock, NB_GPU_RETRY_NS_MIN);
    frames(&r, 1);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.lost_count, 2);
    assert_int_equal(stats.restored_count, 2);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(device_without_memory_for_what_was_alive_is_tried_again) {
    open_counting(&r, 0);
    for (uint32_t i = 0; i < 5; ++i) gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_DEVICE);
    frames(&r, 2);
    order(&r, NB_GPU_NULL_LOST, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    order(&r, NB_GPU_NULL_MEMORY, 3);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    assert_int_equal(nb_gpu_null_object_count(r.control), 0);
    nb_clock_manual_advance(&r.clock, NB_GPU_RETRY_NS_MIN);
    frames(&r, 1);
    assert_int_equal(restored, 1);
    assert_int_equal(gpu_stats(&r).buffer_count, 5);
    gpu_rig_close(&r);
}

TEST(capture_of_a_lost_picture_is_lost) {
    open_counting(&r, 2);
    nb_gpu_capture capture;
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){0});
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    order(&r, NB_GPU_NULL_LOST, 0);
    assert_int_equal(frame(&r), NB_ERR_LOST);
    assert_int_equal(nb_gpu_capture_take(r.gpu, 1, &capture), NB_ERR_LOST);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_capture_ask(r.gpu), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){0});
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(nb_gpu_capture_take(r.gpu, 1, &capture), NB_OK);
    assert_int_equal(capture.pixels[0], 64);
    gpu_rig_close(&r);
}

// --- memory ---

TEST(submit_without_memory_costs_the_picture_and_not_the_uploads) {
    gpu_rig_open(&r);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 64, NB_GPU_MEMORY_DEVICE);
    frames(&r, 1);
    for (uint32_t fault_count = 1; fault_count <= 2; ++fault_count) {
        nb_gpu_span span;
        assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
        assert_int_equal(nb_gpu_frame_alloc(r.gpu, 64, 0, &span), NB_OK);
        assert_int_equal(nb_gpu_upload_buffer(r.gpu, span, buffer, 0), NB_OK);
        gpu_pass_add(r.gpu, (gpu_pass){0});
        for (uint32_t i = 0; i < fault_count; ++i) order(&r, NB_GPU_NULL_MEMORY, 0);
        assert_int_equal(gpu_finish(r.gpu), NB_ERR_MEMORY);
    }
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.skipped_failed_count, 2);
    assert_int_equal(stats.upload_bytes, 64);      // without the picture
    assert_int_equal(stats.upload_lost_bytes, 64); // nor without it
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_UPLOAD), 1);
    frames(&r, 2);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(graph_without_memory_costs_the_picture) {
    gpu_rig_open(&r);
    order(&r, NB_GPU_NULL_MEMORY, 0); // for the back buffer
    assert_int_equal(frame(&r), NB_ERR_MEMORY);
    frames(&r, 1);
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    nb_graph_resource depth;
    nb_graph_image_desc desc = {"depth", NB_GPU_FORMAT_DEPTH32F, 64, 32};
    nb_graph_pass pass = gpu_pass_add(r.gpu, (gpu_pass){0});
    assert_int_equal(nb_graph_image_add(nb_gpu_graph(r.gpu), &desc, &depth), NB_OK);
    assert_int_equal(nb_graph_use(nb_gpu_graph(r.gpu), pass, depth, NB_GPU_ACCESS_DEPTH), NB_OK);
    order(&r, NB_GPU_NULL_MEMORY, 0);
    assert_int_equal(gpu_finish(r.gpu), NB_ERR_MEMORY);
    frames(&r, 1);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.skipped_failed_count, 2);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

// --- the surface ---

TEST(surfaces_that_do_not_fit_are_made_anew) {
    gpu_rig_open_as(&r, gpu_rig_desc(), (nb_gpu_null_desc){.has_surface = true, .latency_frames = 1});
    frames(&r, 3);
    order(&r, NB_GPU_NULL_PRESENT, 0);
    frames(&r, 2);
    assert_int_equal(gpu_stats(&r).present_failed_count, 1);
    // Seen when the image is taken: made anew in the same frame.
    order(&r, NB_GPU_NULL_OUT_OF_DATE, 0);
    frames(&r, 1);
    assert_int_equal(gpu_stats(&r).resize_count, 1);
    // Seen when the picture is shown: made anew with the next frame.
    order(&r, NB_GPU_NULL_OUT_OF_DATE, 1);
    frames(&r, 1);
    assert_int_equal(gpu_stats(&r).resize_count, 1);
    frames(&r, 1);
    assert_int_equal(gpu_stats(&r).resize_count, 2);
    // One that does not fit when it is new either costs a picture.
    order(&r, NB_GPU_NULL_OUT_OF_DATE, 0);
    order(&r, NB_GPU_NULL_OUT_OF_DATE, 0);
    assert_int_equal(frame(&r), NB_BUSY);
    frames(&r, 1);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.skipped_hidden_count, 1);
    assert_int_equal(stats.present_failed_count, 1);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

// --- a backend between the device and the null one ---

static nb_gpu_backend wrapped;
static nb_result item_result, bindings_result;
static uint64_t time_value;

static nb_result wrapped_item_end(void *self, uint32_t slot, const nb_gpu_item *item) {
    (void)self, (void)slot, (void)item;
    return item_result;
}

static nb_result wrapped_set_bindings(void *self, const nb_gpu_item *item, nb_gpu_index pipeline,
                                      const nb_gpu_bindings *bindings) {
    (void)self, (void)item, (void)pipeline, (void)bindings;
    return bindings_result;
}

static nb_result wrapped_times(void *self, nb_gpu_times *out) {
    static const uint64_t begin_ns[2] = {0, 50}, end_ns[2] = {40, 90};
    (void)self;
    *out = (nb_gpu_times){time_value, 2, begin_ns, end_ns};
    return NB_OK;
}

static void open_wrapped(void) {
    wrapped = *nb_gpu_null_backend();
    wrapped.item_end = wrapped_item_end;
    wrapped.set_bindings = wrapped_set_bindings;
    wrapped.times = wrapped_times;
    item_result = bindings_result = NB_OK;
    time_value = 0;
    nb_gpu_desc desc = gpu_rig_desc();
    desc.backend = &wrapped;
    gpu_rig_open_as(&r, desc, (nb_gpu_null_desc){0});
}

static nb_result draw_one(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    (void)bucket, (void)bucket_count;
    nb_gpu_set_pipeline(command, *(nb_gpu_pipeline *)user);
    nb_gpu_draw(command, 3, 1, 0, 0);
    return NB_OK;
}

static nb_result give(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    (void)command, (void)bucket, (void)bucket_count;
    return *(nb_result *)user;
}

TEST(failures_while_recording_cost_the_picture_or_the_device) {
    open_wrapped();
    nb_gpu_pipeline pipeline = gpu_pipeline(r.gpu, gpu_drawing());
    gpu_pass pass = {.record = draw_one, .user = &pipeline};
    assert_int_equal(gpu_frame(r.gpu, pass), NB_OK);
    item_result = NB_ERR_MEMORY;
    assert_int_equal(gpu_frame(r.gpu, pass), NB_ERR_MEMORY);
    item_result = NB_OK;
    // A draw that the backend could not bind for is missing: what is left is no picture.
    bindings_result = NB_ERR_MEMORY;
    assert_int_equal(gpu_frame(r.gpu, pass), NB_ERR_MEMORY);
    bindings_result = NB_OK;
    assert_int_equal(gpu_stats(&r).lost_count, 0);
    // What a record function returns says nothing of the device.
    nb_result given = NB_ERR_LOST;
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){.record = give, .user = &given}), NB_ERR_LOST);
    assert_int_equal(gpu_stats(&r).lost_count, 0);
    given = NB_FULL; // no failure
    assert_int_equal(gpu_frame(r.gpu, (gpu_pass){.record = give, .user = &given}), NB_OK);
    item_result = NB_ERR_LOST;
    assert_int_equal(gpu_frame(r.gpu, pass), NB_ERR_LOST);
    item_result = NB_OK;
    assert_int_equal(gpu_stats(&r).lost_count, 1);
    assert_int_equal(gpu_frame(r.gpu, pass), NB_OK);
    nb_gpu_stats stats = gpu_stats(&r);
    assert_int_equal(stats.skipped_failed_count, 3);
    assert_int_equal(stats.skipped_lost_count, 1);
    assert_accounted(&stats);
    gpu_rig_close(&r);
}

TEST(times_have_the_names_of_their_passes) {
    open_wrapped();
    nb_gpu_pass_time times[4];
    assert_int_equal(nb_gpu_pass_times(r.gpu, times, 4), 0);
    time_value = 1;
    assert_int_equal(nb_gpu_frame_begin(r.gpu), NB_OK);
    gpu_pass_add(r.gpu, (gpu_pass){.name = "first"});
    gpu_pass_add(r.gpu, (gpu_pass){.name = "second"});
    nb_graph_pass pass;
    nb_graph_pass_desc kept = {.name = "kept", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    assert_int_equal(nb_graph_pass_add(nb_gpu_graph(r.gpu), &kept, &pass), NB_OK);
    assert_int_equal(gpu_finish(r.gpu), NB_OK);
    assert_int_equal(gpu_stats(&r).pass_count, 2); // the first is cleared over by the second
    assert_int_equal(nb_gpu_pass_times(r.gpu, times, 1), 2);
    assert_int_equal(nb_gpu_pass_times(r.gpu, times, 4), 2);
    assert_string_equal(times[0].name, "second");
    assert_string_equal(times[1].name, "kept");
    assert_int_equal(times[1].begin_ns, 50);
    assert_int_equal(gpu_stats(&r).gpu_ns, 90);
    gpu_rig_close(&r);
}

TEST(device_that_never_ends_its_work_is_destroyed_as_lost) {
    open_counting(&r, 1);
    nb_gpu_buffer buffer = gpu_buffer(r.gpu, 16, NB_GPU_MEMORY_DEVICE);
    order(&r, NB_GPU_NULL_STUCK, 0);
    frames(&r, 2);
    assert_int_equal(nb_gpu_buffer_destroy(r.gpu, buffer), NB_OK);
    assert_int_equal(nb_gpu_wait_idle(r.gpu, 1), NB_TIMEOUT);
    gpu_rig_close(&r);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_GPU_LOST), 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_TIMELINE_UNREACHED), 0);
}
