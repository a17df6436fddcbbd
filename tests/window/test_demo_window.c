// SPDX-License-Identifier: MIT
// The demo's window. ctest gives it a display of its own (xvfb-run); without a display its cases are skipped.

#define _DEFAULT_SOURCE // setenv

#include "support/support.h"

#include <SDL2/SDL.h>

#include "nebula/gpu.h"
#include "nebula/gpu_vulkan.h"
#include "nebula/input.h"

#include "demo/draw/render.h"
#include "demo/show/window.h"

// Displays are not built for sanitizers: what these see of their memory is only a part.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define TEST_HAS_MSAN 1
#endif
#endif

// Polls until what is asked for has come: a display answers when it likes.
#define POLLS_MAX 400

static window *w;
static nb_input *input;
static uint64_t clock_ns;

static uint64_t now(void *user) {
    (void)user;
    return clock_ns;
}

// The memory sanitizer does not see what SDL and its libraries write.
static bool can_use_sdl(void) {
#ifdef TEST_HAS_MSAN
    return false;
#else
    return true;
#endif
}

static int window_setup(void **state) {
    (void)state;
    if (!can_use_sdl() || !window_has_display()) return 0;
    char why[WINDOW_WHY_SIZE] = "";
    clock_ns = UINT64_C(5000000000000);
    window_desc desc = {.title = "test", .width = 320, .height = 180, .now_ns = now};
    if (window_open(&desc, &w, why) != NB_OK) {
        fprintf(stderr, "no window: %s\n", why);
        return -1;
    }
    return nb_input_create(&(nb_input_desc){.event_count_max = 32}, &input) == NB_OK ? 0 : -1;
}

static void window_need(void) {
    if (w == NULL) skip();
}

static int window_teardown(void **state) {
    (void)state;
    if (w == NULL) return 0;
    nb_input_destroy(input);
    window_close(w);
    w = NULL;
    input = NULL;
    return 0;
}

// What has come so far is not of the test.
static void drain(void) {
    for (int i = 0; i < 20; ++i) {
        SDL_WaitEventTimeout(NULL, 5);
        window_poll(w, NULL);
    }
}

static void push_key(uint32_t type, SDL_Scancode code, uint16_t mod, uint8_t repeat) {
    SDL_Event e = {.key = {.type = type, .timestamp = SDL_GetTicks(), .repeat = repeat}};
    e.key.keysym.scancode = code;
    e.key.keysym.mod = mod;
    assert_int_equal(SDL_PushEvent(&e), 1);
}

static nb_input_view take(void) {
    nb_input_view view = {0};
    assert_int_equal(nb_input_take_tick(input, UINT64_MAX, &view), NB_OK);
    return view;
}

TEST(without_a_display_it_says_so) {
    if (!can_use_sdl()) skip();
    const char *display = getenv("DISPLAY");
    char kept[256], why[WINDOW_WHY_SIZE] = "";
    snprintf(kept, sizeof kept, "%s", display != NULL ? display : "");
    unsetenv("DISPLAY");
    window *none = NULL;
    bool has_display = window_has_display();
    nb_result result = window_open(&(window_desc){0}, &none, why);
    setenv("DISPLAY", "nowhere:99", 1);
    nb_result nowhere = window_open(&(window_desc){0}, &none, why);
    setenv("DISPLAY", kept, 1);
    assert_false(has_display);
    assert_int_equal(result, NB_ERR_UNSUPPORTED);
    assert_int_equal(nowhere, NB_ERR_UNSUPPORTED);
    assert_true(why[0] != 0);
    assert_null(none);
    window_close(NULL);
    assert_int_equal(window_vulkan(NULL).extension_count, 0);
}

TEST_IN(window, a_window_has_its_size_and_a_surface) {
    window_need();
    drain();
    window_news news = window_poll(w, input);
    assert_int_equal(news.width, 320);
    assert_int_equal(news.height, 180);
    assert_false(news.is_closed || news.is_resized || news.is_minimised);
    nb_gpu_vulkan_window surface = window_vulkan(w);
    assert_true(surface.extension_count >= 2);
    assert_true(surface.surface_create != NULL);
}

TEST_IN(window, keys_come_once_with_their_time) {
    window_need();
    drain();
    push_key(SDL_KEYDOWN, SDL_SCANCODE_W, 0, 0);
    push_key(SDL_KEYDOWN, SDL_SCANCODE_W, 0, 1); // held: it repeats
    push_key(SDL_KEYUP, SDL_SCANCODE_W, 0, 0);
    window_news news = window_poll(w, input);
    assert_int_equal(news.event_count, 2);
    nb_input_view view = take();
    assert_int_equal(view.count, 2);
    assert_int_equal(view.events[0].kind, NB_INPUT_PRESS);
    assert_int_equal(view.events[1].kind, NB_INPUT_RELEASE);
    for (uint32_t i = 0; i < 2; ++i) {
        assert_int_equal(view.events[i].code, 26); // W by its usage id
        assert_int_equal(view.events[i].device, WINDOW_DEVICE_KEYS);
        assert_true(view.events[i].timestamp_ns <= clock_ns && view.events[i].timestamp_ns > clock_ns - 4000000000u);
    }
}

TEST_IN(window, pointer_wheel_and_gamepad_are_events_too) {
    window_need();
    drain();
    uint32_t t = SDL_GetTicks();
    SDL_Event events[] = {
        {.motion = {.type = SDL_MOUSEMOTION, .timestamp = t, .xrel = 3, .yrel = -4}},
        {.button = {.type = SDL_MOUSEBUTTONDOWN, .timestamp = t, .button = SDL_BUTTON_RIGHT}},
        {.wheel = {.type = SDL_MOUSEWHEEL, .timestamp = t, .y = 1}},
        {.cbutton = {.type = SDL_CONTROLLERBUTTONDOWN, .timestamp = t, .button = 2}},
        {.caxis = {.type = SDL_CONTROLLERAXISMOTION, .timestamp = t, .axis = 1, .value = -32768}},
        {.caxis = {.type = SDL_CONTROLLERAXISMOTION, .timestamp = t, .axis = 0, .value = 900}},
    };
    for (uint32_t i = 0; i < 6; ++i) assert_int_equal(SDL_PushEvent(&events[i]), 1);
    assert_int_equal(window_poll(w, input).event_count, 6);
    nb_input_view view = take();
    assert_int_equal(view.count, 6);
    const nb_input_event *e = view.events;
    assert_true(e[0].code == WINDOW_MOTION_POINTER && e[0].payload.f32[0] == 3 && e[0].payload.f32[1] == -4);
    assert_true(e[1].kind == NB_INPUT_PRESS && e[1].code == WINDOW_CODE_MOUSE + 3);
    assert_true(e[2].code == WINDOW_MOTION_WHEEL && e[2].payload.f32[1] == -1);
    assert_true(e[3].kind == NB_INPUT_PRESS && e[3].code == WINDOW_CODE_PAD + 2);
    assert_true(e[4].code == WINDOW_MOTION_PAD + 1 && e[4].payload.f32[0] == -1);
    assert_true(e[5].code == WINDOW_MOTION_PAD && e[5].payload.f32[0] == 0); // as good as let go
}

TEST_IN(window, a_full_queue_is_counted) {
    window_need();
    drain();
    for (uint32_t i = 0; i < 40; ++i) push_key(SDL_KEYDOWN, SDL_SCANCODE_A, 0, 0);
    window_news news = window_poll(w, input);
    assert_int_equal(news.event_count, 32);
    assert_int_equal(news.dropped_count, 8);
}

TEST_IN(window, keys_change_the_screen_and_the_pace) {
    window_need();
    drain();
    push_key(SDL_KEYDOWN, SDL_SCANCODE_F11, 0, 0);
    assert_true(window_poll(w, input).is_fullscreen);
    push_key(SDL_KEYDOWN, SDL_SCANCODE_RETURN, 0, 0);
    assert_true(window_poll(w, input).is_fullscreen);
    push_key(SDL_KEYDOWN, SDL_SCANCODE_RETURN, KMOD_LALT, 0);
    assert_false(window_poll(w, input).is_fullscreen);
    push_key(SDL_KEYDOWN, SDL_SCANCODE_V, 0, 0);
    window_news news = window_poll(w, input);
    assert_true(news.is_vsync_changed && news.is_vsync_off);
    news = window_poll(w, input);
    assert_true(!news.is_vsync_changed && news.is_vsync_off);
}

static window_news poll_until_resized(void) {
    window_news news = {0};
    for (uint32_t i = 0; i < POLLS_MAX && !news.is_resized; ++i) {
        SDL_WaitEventTimeout(NULL, 10);
        news = window_poll(w, NULL);
    }
    return news;
}

TEST_IN(window, another_size_is_news_once) {
    window_need();
    drain();
    SDL_SetWindowSize(SDL_GetWindowFromID(1), 400, 300);
    window_news news = poll_until_resized();
    assert_true(news.is_resized);
    assert_int_equal(news.width, 400);
    assert_int_equal(news.height, 300);
    assert_false(window_poll(w, NULL).is_resized);
}

TEST_IN(window, the_refresh_of_the_display_is_news_once) {
    window_need();
    SDL_DisplayMode mode;
    assert_int_equal(SDL_GetCurrentDisplayMode(0, &mode), 0);
    window_news first = window_poll(w, input);
    assert_int_equal(first.refresh_hz, mode.refresh_rate > 0 ? mode.refresh_rate : 0);
    assert_int_equal(first.is_refresh_changed, first.refresh_hz != 0);
    print_message("the display refreshes %u times a second\n", first.refresh_hz);
    assert_false(window_poll(w, input).is_refresh_changed);
}

TEST_IN(window, closing_and_losing_the_focus_are_news) {
    window_need();
    drain();
    SDL_Event quit = {.type = SDL_QUIT};
    SDL_Event lost = {.window = {.type = SDL_WINDOWEVENT, .windowID = 1, .event = SDL_WINDOWEVENT_FOCUS_LOST}};
    SDL_PushEvent(&lost);
    assert_true(window_poll(w, NULL).is_focus_lost);
    SDL_PushEvent(&quit);
    assert_true(window_poll(w, NULL).is_closed);
    window_news news = window_poll(w, NULL);
    assert_false(news.is_closed || news.is_focus_lost);
    window_hold_pointer(w, true);
    window_hold_pointer(w, false);
    assert_false(window_poll(w, NULL).is_pointer_held);
}

// --- a picture in it ---

static uint32_t shown;

static void draw(nb_gpu *gpu, render *r, const render_frame *frame) {
    if (nb_gpu_frame_begin(gpu) == NB_OK && render_add(r, frame) == NB_OK) {
        assert_int_equal(nb_gpu_frame_compile(gpu), NB_OK);
        assert_int_equal(nb_gpu_frame_record(gpu, 0), NB_OK);
        assert_int_equal(nb_gpu_frame_submit(gpu), NB_OK);
        ++shown;
    }
    nb_gpu_frame_end(gpu);
}

TEST_IN(window, a_picture_is_drawn_through_sizes) {
    window_need();
    if (!render_has_shaders() || nb_gpu_vulkan_backend() == NULL) skip();
    nb_gpu_vulkan_desc vulkan = {.is_validated = true, .window = window_vulkan(w)};
    nb_gpu_desc desc = {.backend = nb_gpu_vulkan_backend(), .backend_desc = &vulkan, .width = 320, .height = 180};
    desc.wait_ns = desc.stuck_ns = UINT64_C(60000000000);
    desc.hooks = test_hooks(NULL, NULL);
    nb_gpu *gpu = NULL;
    if (nb_gpu_create(&desc, &gpu) != NB_OK) skip(); // no driver
    render *r = NULL;
    assert_int_equal(render_create(&(render_desc){.gpu = gpu, .quad_count_max = 1024}, &r), NB_OK);
    render_frame frame = {.sun = {0, 1, 0}};
    frame.camera.position = (vec3d){0, 5000, 0};
    camera_aim(&frame.camera, (vec3){0, -1, 0}, (vec3){0, 0, 1});
    shown = 0;
    for (int i = 0; i < 12; ++i) {
        if (i == 4) SDL_SetWindowSize(SDL_GetWindowFromID(1), 200, 150);
        if (i == 6) window_set_fullscreen(w, true);
        if (i == 8) assert_int_equal(nb_gpu_set_vsync(gpu, false), NB_OK);
        if (i == 4 || i == 6) SDL_WaitEventTimeout(NULL, 100);
        window_news news = window_poll(w, NULL);
        if (news.is_resized) nb_gpu_resize(gpu, news.width, news.height);
        draw(gpu, r, &frame);
    }
    assert_true(shown >= 6);
    nb_gpu_wait_idle(gpu, UINT64_C(60000000000));
    assert_int_equal(nb_gpu_stats_get(gpu).misuse_count, 0);
    assert_int_equal(nb_gpu_vulkan_message_count(gpu), 0);
    render_destroy(r);
    assert_int_equal(nb_gpu_destroy(gpu), NB_OK);
}
