// SPDX-License-Identifier: MIT
// The whole demo flown at random over the null device, which does everything wrong that it can: pictures are left out
// and come back, the planet goes its way, and what was taken is given back.

#include "demo/shell/demo_soak.h"

#include "nebula/gpu_null.h"

#define WIDTH 160u
#define HEIGHT 90u

// What the process holds at most, for any length of a run. Pools are touched piece by piece: the histories of both
// engines, 64 MiB each, as their ticks go round. Beside them: the heap of the engine with the picture, the copy of the
// quads that the tap keeps, the heap of the twin, which has no quads, and 16 MiB of program, stacks and queues.
#define SOAK_RESIDENT_BYTES_MAX                                                                      \
    (2 * NB_HISTORY_BYTES_DEFAULT + SOAK_HEAP_BYTES_MAX + STREAMER_QUADS_TOTAL * sizeof(mesh_quad) + \
     ((uint64_t)48 << 20) + ((uint64_t)16 << 20))

static soak s;
static nb_gpu_null *control;
static nb_gpu_null_desc null_desc; // a lost device is made anew with it

static void order(nb_gpu_null_fault fault, uint32_t after) {
    nb_result result = nb_gpu_null_fail(control, fault, after);
    SOAK_CHECK(&s, result == NB_OK || result == NB_FULL);
}

// One that stands still goes on again in time, or not: then it counts as lost.
static void order_stuck(void) {
    order(NB_GPU_NULL_STUCK, soak_pick(&s, 4));
    if (soak_pick(&s, 3) != 0) order(NB_GPU_NULL_GO, soak_pick(&s, 40));
}

// Lost, and sometimes not to be had again at once; or without memory for all that was there.
static void order_lost(void) {
    null_desc.latency_frames = soak_pick(&s, 3);
    order(NB_GPU_NULL_LOST, soak_pick(&s, 3));
    for (uint32_t i = soak_pick(&s, 4); i > 1; --i) order(NB_GPU_NULL_NO_DEVICE, 0);
    if (soak_pick(&s, 3) == 0) order(NB_GPU_NULL_MEMORY, 1 + soak_pick(&s, 20));
}

static void order_fault(void) {
    switch (soak_pick(&s, 9)) {
    case 0: order_stuck(); break;
    case 1: order(NB_GPU_NULL_JUMP, soak_pick(&s, 6)); break;
    case 2: order(NB_GPU_NULL_BACK, soak_pick(&s, 6)); break;
    case 3: order_lost(); break;
    case 4:
    case 5: order(NB_GPU_NULL_MEMORY, soak_pick(&s, 8)); break;
    case 6: // the picture, and what was to be uploaded with it
        order(NB_GPU_NULL_MEMORY, 0);
        order(NB_GPU_NULL_MEMORY, 0);
        break;
    case 7:
        if (null_desc.has_surface) order(NB_GPU_NULL_PRESENT, soak_pick(&s, 4));
        break;
    default:
        if (null_desc.has_surface) order(NB_GPU_NULL_OUT_OF_DATE, soak_pick(&s, 4));
        break;
    }
}

// Orders are carried out until pictures come in a row, more of them than any order waits for.
static void end_faults(void) {
    uint32_t row_count = 0;
    soak_calm(&s, WIDTH, HEIGHT);
    for (uint32_t i = 0; i < 2000 && row_count < 40; ++i) {
        if (i % 40 == 0) order(NB_GPU_NULL_GO, 0);
        soak_frame(&s, 50 * MS);
        row_count = nb_gpu_stats_get(s.gpu).submit_count > s.submit_count ? row_count + 1 : 0;
    }
    SOAK_CHECK(&s, row_count == 40);
}

// Uploads that the device has no memory for, neither with the picture nor without it, are made again. In two of three
// frames of a journey, until some have got lost: without workers all chunks come in the second one.
static void lose_uploads(void) {
    uint64_t lost_bytes = nb_gpu_stats_get(s.gpu).upload_lost_bytes;
    uint32_t lost_count = 0;
    for (uint32_t face = 0; face < SPHERE_FACE_COUNT && lost_count < 3; ++face) {
        soak_travel(&s, soak_face(face), 300);
        for (uint32_t i = 0; i < SOAK_SETTLE_FRAMES_MAX && !streamer_is_settled(&s.streamer); ++i) {
            bool is_there = nb_gpu_stats_get(s.gpu).lost_count == nb_gpu_stats_get(s.gpu).restored_count;
            for (uint32_t j = 0; j < 2 && i % 3 != 2 && is_there; ++j) order(NB_GPU_NULL_MEMORY, 0);
            soak_frame(&s, 0);
            if (i % 3 == 2) soak_check_whole(&s);
            lost_count += nb_gpu_stats_get(s.gpu).upload_lost_bytes > lost_bytes;
            lost_bytes = nb_gpu_stats_get(s.gpu).upload_lost_bytes;
        }
    }
    SOAK_CHECK(&s, lost_count > 0);
}

static void end_flight(void) {
    lose_uploads();
    soak_settle(&s);
    order(NB_GPU_NULL_LOST, 0); // the last of all: everything is uploaded once more
    soak_frame(&s, 16 * MS);
    soak_settle(&s);
    SOAK_CHECK(&s, render_stats_get(s.view.render).chunk_count > 0); // the ground is in sight
    for (uint32_t home = 0; home < HOME_COUNT && s.view.hidden_count == 0; ++home) {
        soak_travel(&s, s.main.planet.homes[home], 4);
        soak_settle(&s);
    }
    SOAK_CHECK(&s, s.view.hidden_count > 0); // behind hills
}

static void soak_null(const char *name, uint64_t frame_count, uint32_t worker_count, bool has_surface) {
    memset(&s, 0, sizeof s);
    s.name = name;
    s.seed = test_seed(name);
    assert_int_equal(nb_gpu_null_create(NULL, &control), NB_OK);
    null_desc = (nb_gpu_null_desc){.control = control, .has_surface = has_surface, .latency_frames = 1};
    tap_open(nb_gpu_null_backend());
    nb_gpu_desc desc = {.backend_desc = &null_desc,
                        .width = WIDTH,
                        .height = HEIGHT,
                        .frame_bytes = (size_t)4 << 20,
                        .stuck_ns = 500 * MS,
                        .clock = nb_clock_manual_get(&s.device_clock)};
    nb_clock_manual_init(&s.device_clock, 1);
    uint64_t begin_ns = nbi_clock_now_ns();
    assert_int_equal(soak_open(&s, desc, worker_count), NB_OK);
    for (uint32_t i = 0; i < 4; ++i) soak_frame(&s, 16 * MS);
    uint32_t object_count = nb_gpu_null_object_count(control);
    uint64_t device_bytes = nb_gpu_stats_get(s.gpu).memory_bytes;
    while (s.frame < frame_count) {
        soak_disturb(&s, 2 * WIDTH, 4);
        if (soak_pick(&s, s.frame < 300 ? 8 : 25) == 0) order_fault(); // the quick size has some of each
        soak_raise_u32(&s.peaks.object_count, nb_gpu_null_object_count(control));
        soak_frame(&s, soak_delta(&s));
        if (s.frame % 16 == 0) soak_check_whole(&s);
    }
    end_faults();
    end_flight();
    SOAK_CHECK(&s, render_stats_get(s.view.render).filled_bytes_total > 0); // jobs have had a share in the uploads
    soak_tell(&s, (double)(nbi_clock_now_ns() - begin_ns) * 1e-9);
    SOAK_CHECK(&s, !IS_RESIDENT_SIZE_MEANINGFUL || s.peaks.resident_bytes <= SOAK_RESIDENT_BYTES_MAX);
    // What there was at the beginning, and a buffer for pictures that are read.
    SOAK_CHECK(&s, nb_gpu_null_object_count(control) <= object_count + 1);
    SOAK_CHECK(&s, nb_gpu_stats_get(s.gpu).memory_bytes <= device_bytes + WIDTH * HEIGHT * 4);
    uint64_t retired_count = 0, reclaimed_count = 0;
    soak_close(&s, &retired_count, &reclaimed_count);
    assert_int_equal(retired_count, reclaimed_count);
    assert_int_equal(nb_gpu_null_object_count(control), 0);
    nb_gpu_null_destroy(control);
    assert_int_equal(s.main.r.heap.live_count.value, 0);
}

TEST(the_demo_survives_a_bad_window) {
    soak_null("test_demo_soak '*bad_window'", test_size(300, SOAK_CHECK_FRAMES(20000), 200000), 1, true);
}

TEST(the_demo_survives_a_bad_device) {
#if defined(__SANITIZE_THREAD__)
    skip(); // it has one thread
#endif
    soak_null("test_demo_soak '*bad_device'", test_size(150, SOAK_CHECK_FRAMES(2000), 20000), 0, false);
}
