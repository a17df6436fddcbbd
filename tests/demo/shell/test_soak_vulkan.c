// SPDX-License-Identifier: MIT
// The whole demo flown at random over a real driver, with the validation layer on: sizes change, the device is lost and
// comes back, and what was taken is given back.

#include "demo/shell/demo_soak.h"

#include "gpu/vulkan/gpu_vulkan_fixture.h"

#define WIDTH 64u
#define HEIGHT 36u

// One frame of so many has all of the planet in it; the others have the sky and the uploads, as where nobody looks.
#define WHOLE_FRAMES 2u

// Where a device ends, the layer has a thread of its own that does not end in time for this sanitizer.
#if defined(__SANITIZE_THREAD__)
#define IS_VALIDATED false
#else
#define IS_VALIDATED true
#endif

static soak s;
static vulkan_log messages;

// Pipelines are made anew with every device, which takes a driver on the CPU half a second.
static void fail_now(uint64_t loss_frames) {
    if (s.frame % loss_frames == loss_frames - 10) {
        tap.lost_count = 1;
        tap.missing_count = soak_pick(&s, 2);
    }
    if (soak_pick(&s, 100) == 0) tap.refused_count = 1 + soak_pick(&s, 2); // the uploads too, or the picture alone
}

TEST(the_demo_survives_on_a_real_driver) {
    uint64_t frame_count = test_size(40, SOAK_CHECK_FRAMES(2000), 20000), loss_frames = test_size(30, 400, 400);
    if (is_vulkan_left_out() || !render_has_shaders()) skip();
    vulkan_keep_loaded();
    memset(&s, 0, sizeof s);
    s.name = "test_demo_soak_vulkan";
    s.seed = test_seed(s.name);
    tap_open(nb_gpu_vulkan_backend());
    nb_gpu_vulkan_desc vulkan = {.is_validated = IS_VALIDATED};
    nb_gpu_desc desc = {.backend_desc = &vulkan,
                        .width = WIDTH,
                        .height = HEIGHT,
                        .frame_bytes = (size_t)4 << 20,
                        .wait_ns = 60000 * MS, // no picture is left out because the machine is slow
                        .stuck_ns = 120000 * MS,
                        .hooks = vulkan_hooks(&messages, &s.main.r.heap)};
    uint64_t begin_ns = nbi_clock_now_ns();
    vulkan_skip_unless(soak_open(&s, desc, 1), messages.last[NB_LOG_ERROR]);
    while (s.frame < frame_count) {
        soak_disturb(&s, 2 * HEIGHT, 0);
        fail_now(loss_frames);
        s.view.is_blind = s.frame % WHOLE_FRAMES != 0;
        soak_frame(&s, soak_delta(&s));
        if (s.frame % 16 == 0) soak_check_whole(&s);
    }
    soak_calm(&s, WIDTH, HEIGHT);
    soak_travel(&s, soak_face(3), 300);
    tap.lost_count = 1; // everything is uploaded once more
    soak_frame(&s, 16 * MS);
    soak_settle(&s);
    SOAK_CHECK(&s, render_stats_get(s.view.render).chunk_count > 0); // the ground is in sight
    soak_tell(&s, (double)(nbi_clock_now_ns() - begin_ns) * 1e-9);
    SOAK_CHECK(&s, nb_gpu_stats_get(s.gpu).restored_count > 0);
    uint64_t retired_count = 0, reclaimed_count = 0;
    soak_close(&s, &retired_count, &reclaimed_count);
    assert_int_equal(retired_count, reclaimed_count);
    assert_int_equal(s.main.r.heap.live_count.value, 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u32(&messages.message_count), 0);
}
