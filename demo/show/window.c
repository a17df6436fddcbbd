// SPDX-License-Identifier: MIT
// A window over SDL2.

#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool window_has_display(void) {
    const char *x11 = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x11 != NULL && x11[0] != 0) || (wayland != NULL && wayland[0] != 0);
}

#ifdef DEMO_HAS_SDL2
#include <SDL.h>
#include <SDL_vulkan.h>

#define EXTENSIONS_MAX 16

// A trigger or a stick that is let go never rests exactly in its middle.
#define PAD_DEAD 0.12f

struct window {
    SDL_Window *sdl;
    SDL_GameController *pad;
    window_desc desc;
    const char *extensions[EXTENSIONS_MAX];
    uint32_t extension_count;
    window_news news;
    nb_input *input;        // of the poll that runs
    uint64_t poll_ns;       // when that began, by desc.now_ns,
    uint32_t poll_ticks_ms; // and by SDL
};

// SDL's own text is gone when SDL is.
static nb_result refuse(window *w, const char *reason, char why[WINDOW_WHY_SIZE]) {
    if (why != NULL) snprintf(why, WINDOW_WHY_SIZE, "%s", reason);
    window_close(w);
    return NB_ERR_UNSUPPORTED;
}

static void size_read(window *w) {
    int width = 0, height = 0;
    SDL_Vulkan_GetDrawableSize(w->sdl, &width, &height);
    bool is_small = (SDL_GetWindowFlags(w->sdl) & SDL_WINDOW_MINIMIZED) != 0 || width <= 0 || height <= 0;
    uint32_t new_width = is_small ? 0 : (uint32_t)width, new_height = is_small ? 0 : (uint32_t)height;
    w->news.is_resized |= new_width != w->news.width || new_height != w->news.height;
    w->news.is_minimised = is_small;
    w->news.width = new_width;
    w->news.height = new_height;
}

// Asked at each poll: a window is dragged to another display, or the display gets another mode.
static void refresh_read(window *w) {
    SDL_DisplayMode mode;
    int display = SDL_GetWindowDisplayIndex(w->sdl);
    bool is_known = display >= 0 && SDL_GetCurrentDisplayMode(display, &mode) == 0 && mode.refresh_rate > 0;
    uint32_t refresh_hz = is_known ? (uint32_t)mode.refresh_rate : 0;
    w->news.is_refresh_changed = refresh_hz != w->news.refresh_hz;
    w->news.refresh_hz = refresh_hz;
}

static bool extensions_read(window *w) {
    unsigned count = EXTENSIONS_MAX;
    if (!SDL_Vulkan_GetInstanceExtensions(w->sdl, &count, w->extensions)) return false;
    w->extension_count = count;
    return true;
}

nb_result window_open(const window_desc *desc, window **out, char why[WINDOW_WHY_SIZE]) {
    window *w = (window *)calloc(1, sizeof *w);
    if (w == NULL) return NB_ERR_MEMORY;
    w->desc = *desc;
    if (!window_has_display()) return refuse(w, "no display: neither DISPLAY nor WAYLAND_DISPLAY is set", why);
    // Ctrl-C is the program's own.
    SDL_SetHint(SDL_HINT_NO_SIGNAL_HANDLERS, "1");
    if (SDL_InitSubSystem(SDL_INIT_VIDEO) != 0) return refuse(w, SDL_GetError(), why);
    uint32_t flags = SDL_WINDOW_VULKAN | SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
    flags |= desc->is_hidden ? SDL_WINDOW_HIDDEN : SDL_WINDOW_SHOWN;
    if (desc->is_fullscreen) flags |= SDL_WINDOW_FULLSCREEN_DESKTOP;
    int width = desc->width > 0 ? (int)desc->width : 1280, height = desc->height > 0 ? (int)desc->height : 720;
    w->sdl = SDL_CreateWindow(desc->title != NULL ? desc->title : "Nebula", SDL_WINDOWPOS_CENTERED,
                              SDL_WINDOWPOS_CENTERED, width, height, flags);
    if (w->sdl == NULL || !extensions_read(w)) return refuse(w, SDL_GetError(), why);
    // A gamepad is welcome, not needed.
    if (SDL_InitSubSystem(SDL_INIT_GAMECONTROLLER) != 0) SDL_ClearError();
    w->news.is_fullscreen = desc->is_fullscreen;
    size_read(w);
    w->news.is_resized = false;
    *out = w;
    return NB_OK;
}

void window_close(window *w) {
    if (w == NULL) return;
    if (w->pad != NULL) SDL_GameControllerClose(w->pad);
    if (w->sdl != NULL) SDL_DestroyWindow(w->sdl);
    if (SDL_WasInit(SDL_INIT_GAMECONTROLLER) != 0) SDL_QuitSubSystem(SDL_INIT_GAMECONTROLLER);
    if (SDL_WasInit(SDL_INIT_VIDEO) != 0) SDL_QuitSubSystem(SDL_INIT_VIDEO);
    free(w);
}

static bool surface_create(void *user, void *instance, uint64_t *surface) {
    const window *w = (const window *)user;
    VkSurfaceKHR made;
    if (!SDL_Vulkan_CreateSurface(w->sdl, (VkInstance)instance, &made)) return false;
    // A pointer on some machines, a number on others.
    *surface = 0;
    memcpy(surface, &made, sizeof made);
    return true;
}

nb_gpu_vulkan_window window_vulkan(window *w) {
    if (w == NULL) return (nb_gpu_vulkan_window){0};
    return (nb_gpu_vulkan_window){w->extensions, w->extension_count, surface_create, w};
}

void window_set_fullscreen(window *w, bool is_on) {
    if (SDL_SetWindowFullscreen(w->sdl, is_on ? SDL_WINDOW_FULLSCREEN_DESKTOP : 0) == 0) w->news.is_fullscreen = is_on;
}

void window_hold_pointer(window *w, bool is_on) {
    if (SDL_SetRelativeMouseMode(is_on ? SDL_TRUE : SDL_FALSE) == 0) w->news.is_pointer_held = is_on;
}

// --- events ---

// SDL stamps in its own milliseconds; the loop has another clock. Both are read once a poll: read for each event, they
// would make an event older than the one before it whenever a millisecond begins between the two.
static uint64_t time_of(const window *w, uint32_t stamp_ms) {
    if (w->desc.now_ns == NULL) return (uint64_t)stamp_ms * 1000000u;
    int32_t age_ms = (int32_t)(w->poll_ticks_ms - stamp_ms); // below 0: it came while the poll runs
    uint64_t age_ns = age_ms > 0 ? (uint64_t)age_ms * 1000000u : 0;
    return w->poll_ns > age_ns ? w->poll_ns - age_ns : 0;
}

static void send(window *w, const SDL_Event *e, nb_input_kind kind, uint16_t device, uint32_t code, float x, float y) {
    if (w->input == NULL) return;
    nb_input_event event = {time_of(w, e->common.timestamp), (uint16_t)kind, device, code, {{0}}};
    event.payload.f32[0] = x;
    event.payload.f32[1] = y;
    if (nb_input_send(w->input, &event) == NB_OK)
        ++w->news.event_count;
    else
        ++w->news.dropped_count;
}

static void on_key(window *w, const SDL_Event *e) {
    const SDL_Keysym *key = &e->key.keysym;
    bool is_down = e->type == SDL_KEYDOWN;
    if (e->key.repeat != 0) return;
    if ((uint32_t)key->scancode < WINDOW_CODE_MOUSE)
        send(w, e, is_down ? NB_INPUT_PRESS : NB_INPUT_RELEASE, WINDOW_DEVICE_KEYS, (uint32_t)key->scancode, 0, 0);
    bool is_enter = key->scancode == SDL_SCANCODE_RETURN && (key->mod & KMOD_ALT) != 0;
    if (is_down && (key->scancode == SDL_SCANCODE_F11 || is_enter)) window_set_fullscreen(w, !w->news.is_fullscreen);
    if (is_down && key->scancode == SDL_SCANCODE_V) {
        w->news.is_vsync_off = !w->news.is_vsync_off;
        w->news.is_vsync_changed = true;
    }
}

static void on_pointer(window *w, const SDL_Event *e) {
    bool is_down = e->type == SDL_MOUSEBUTTONDOWN;
    if (e->type == SDL_MOUSEMOTION)
        send(w, e, NB_INPUT_MOTION, WINDOW_DEVICE_MOUSE, WINDOW_MOTION_POINTER, (float)e->motion.xrel,
             (float)e->motion.yrel);
    else if (e->type == SDL_MOUSEWHEEL)
        send(w, e, NB_INPUT_MOTION, WINDOW_DEVICE_MOUSE, WINDOW_MOTION_WHEEL, (float)e->wheel.x, (float)-e->wheel.y);
    else
        send(w, e, is_down ? NB_INPUT_PRESS : NB_INPUT_RELEASE, WINDOW_DEVICE_MOUSE,
             WINDOW_CODE_MOUSE + e->button.button, (float)e->button.x, (float)e->button.y);
}

static void on_pad(window *w, const SDL_Event *e) {
    if (e->type == SDL_CONTROLLERDEVICEADDED && w->pad == NULL) w->pad = SDL_GameControllerOpen(e->cdevice.which);
    if (e->type == SDL_CONTROLLERDEVICEREMOVED && w->pad != NULL) {
        SDL_GameControllerClose(w->pad);
        w->pad = NULL;
    }
    if (e->type == SDL_CONTROLLERBUTTONDOWN || e->type == SDL_CONTROLLERBUTTONUP)
        send(w, e, e->type == SDL_CONTROLLERBUTTONDOWN ? NB_INPUT_PRESS : NB_INPUT_RELEASE, WINDOW_DEVICE_PAD,
             WINDOW_CODE_PAD + e->cbutton.button, 0, 0);
    if (e->type == SDL_CONTROLLERAXISMOTION) {
        float at = (float)e->caxis.value / 32767.0f;
        at = at < -1 ? -1 : at;
        send(w, e, NB_INPUT_MOTION, WINDOW_DEVICE_PAD, WINDOW_MOTION_PAD + e->caxis.axis,
             at < PAD_DEAD && at > -PAD_DEAD ? 0 : at, 0);
    }
}

static void on_window(window *w, const SDL_Event *e) {
    if (e->window.event == SDL_WINDOWEVENT_CLOSE) w->news.is_closed = true;
    if (e->window.event == SDL_WINDOWEVENT_FOCUS_LOST) w->news.is_focus_lost = true;
}

static void on_event(window *w, const SDL_Event *e) {
    switch (e->type) {
    case SDL_QUIT: w->news.is_closed = true; break;
    case SDL_WINDOWEVENT: on_window(w, e); break;
    case SDL_KEYDOWN:
    case SDL_KEYUP: on_key(w, e); break;
    case SDL_MOUSEMOTION:
    case SDL_MOUSEWHEEL:
    case SDL_MOUSEBUTTONDOWN:
    case SDL_MOUSEBUTTONUP: on_pointer(w, e); break;
    default: on_pad(w, e); break;
    }
}

window_news window_poll(window *w, nb_input *input) {
    w->news.is_closed = w->news.is_resized = w->news.is_vsync_changed = w->news.is_focus_lost = false;
    w->news.event_count = w->news.dropped_count = 0;
    w->input = input;
    w->poll_ns = w->desc.now_ns != NULL ? w->desc.now_ns(w->desc.user) : 0;
    w->poll_ticks_ms = SDL_GetTicks();
    SDL_Event event;
    while (SDL_PollEvent(&event) != 0) on_event(w, &event);
    w->input = NULL;
    size_read(w);
    refresh_read(w);
    return w->news;
}

#else

nb_result window_open(const window_desc *desc, window **out, char why[WINDOW_WHY_SIZE]) {
    (void)desc, (void)out;
    if (why != NULL) snprintf(why, WINDOW_WHY_SIZE, "built without SDL2");
    return NB_ERR_UNSUPPORTED;
}

void window_close(window *w) { (void)w; }

nb_gpu_vulkan_window window_vulkan(window *w) {
    (void)w;
    return (nb_gpu_vulkan_window){0};
}

window_news window_poll(window *w, nb_input *input) {
    (void)w, (void)input;
    return (window_news){0};
}

void window_set_fullscreen(window *w, bool is_on) { (void)w, (void)is_on; }

void window_hold_pointer(window *w, bool is_on) { (void)w, (void)is_on; }

#endif
