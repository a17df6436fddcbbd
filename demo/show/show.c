// SPDX-License-Identifier: MIT
// A device, a window, and what is shown on it.

#include "show.h"

#include <stdlib.h>

#include "../draw/view.h"
#include "../players/keyboard.h"
#include "nebula/gpu_vulkan.h"
#include "nebula/report.h"
#include "shots.h"
#include "window.h"

// A device that draws on the CPU may take as long as a frame does on a slow machine; in lockstep it is waited for.
#define LOCKSTEP_WAIT_NS UINT64_C(60000000000)

struct show {
    demo_options options;
    nb_gpu_vulkan_desc vulkan; // a lost device is made anew with it
    nb_gpu *gpu;
    window *window;
    nb_engine *engine;
    picture *picture;
    nb_buttons buttons;
    shots shots;
    bool is_due; // a picture of the flight, in the frame that runs
    view view;
};

static void restored(nb_gpu *gpu, void *user) {
    (void)gpu;
    show *s = user;
    if (s->view.render != NULL) render_restored(s->view.render);
}

static uint64_t now_ns(void *user) {
    (void)user;
    return nb_clock_now_ns(NULL);
}

static nb_result make_device(show *s, const nb_gpu_backend *backend, const void *backend_desc) {
    const demo_options *o = &s->options;
    nb_gpu_desc desc = {.backend = backend,
                        .backend_desc = backend_desc,
                        .width = o->width,
                        .height = o->height,
                        .frame_bytes = (size_t)24 << 20,
                        .on_restored = restored,
                        .user = s};
    if (o->is_lockstep) desc.wait_ns = LOCKSTEP_WAIT_NS, desc.stuck_ns = 2 * LOCKSTEP_WAIT_NS;
    return nb_gpu_create(&desc, &s->gpu);
}

// A window where there is a display and nothing else was asked for.
static void make_window(show *s) {
    char why[WINDOW_WHY_SIZE] = "";
    if (s->options.is_windowless || s->options.is_virtual || !window_has_display()) return;
    window_desc desc = {.title = "Nebula", .width = s->options.width, .height = s->options.height, .now_ns = now_ns};
    if (window_open(&desc, &s->window, why) != NB_OK) fprintf(stderr, "nebula-demo: no window: %s\n", why);
}

static nb_result make_vulkan(show *s) {
    if (nb_gpu_vulkan_backend() == NULL || !render_has_shaders()) return NB_ERR_UNSUPPORTED;
    make_window(s);
    s->vulkan = (nb_gpu_vulkan_desc){.is_validated = s->options.is_validated, .window = window_vulkan(s->window)};
    return make_device(s, nb_gpu_vulkan_backend(), &s->vulkan);
}

static nb_result choose(show *s) {
    demo_gpu wanted = s->options.gpu;
    nb_result result = NB_ERR_UNSUPPORTED;
    if (wanted != DEMO_GPU_NULL) result = make_vulkan(s);
    if (result != NB_OK && wanted == DEMO_GPU_VULKAN) {
        fputs("nebula-demo: no Vulkan 1.3 device here (Debian: mesa-vulkan-drivers); --gpu null runs without\n",
              stderr);
        return NB_ERR_UNSUPPORTED;
    }
    if (result == NB_OK) return NB_OK;
    window_close(s->window);
    s->window = NULL;
    if (wanted == DEMO_GPU_DEFAULT)
        puts("no Vulkan 1.3 device here: the null device takes its place, without pictures");
    return make_device(s, NULL, NULL);
}

nb_result show_open(const demo_options *options, const script *flight, show **out) {
    *out = NULL;
    if (options->gpu == DEMO_GPU_NONE) return NB_OK;
    show *s = calloc(1, sizeof *s);
    if (s == NULL) return NB_ERR_MEMORY;
    s->options = *options;
    nb_result result = choose(s);
    bool has_pictures = result == NB_OK && s->window == NULL;
    if (has_pictures && !shots_open(&s->shots, options->picture_folder, s->gpu, flight)) result = NB_ERR_OS;
    if (result != NB_OK) {
        show_close(s);
        return result;
    }
    printf("device      %s\n", nb_gpu_name(s->gpu));
    *out = s;
    return NB_OK;
}

// The keys of the window, once a frame.
static nb_result read_keys(const nb_context *context, void *user) {
    show *s = user;
    nb_buttons_apply(&s->buttons, &context->input);
    if (nb_buttons_is_pressed(&s->buttons, KEYBOARD_F1)) s->view.page.is_shown = !s->view.page.is_shown;
    if (nb_buttons_is_pressed(&s->buttons, KEYBOARD_ESCAPE)) nb_engine_stop(context->engine);
    return NB_OK;
}

// Behind all passes of the picture, before the graph is compiled.
static nb_result ask(const nb_context *context, void *user) {
    (void)context;
    show *s = user;
    if (s->is_due) shots_ask(&s->shots);
    s->is_due = false;
    return NB_OK;
}

nb_result show_attach(show *s, nb_engine *engine, const show_scene *scene) {
    if (s == NULL) return NB_OK;
    s->engine = engine;
    s->picture = scene->images;
    // On the virtual clock files are there when the run is over, in their order.
    if (!s->options.is_virtual) s->shots.async = nb_engine_async(engine);
    nb_result result = nb_gpu_attach(s->gpu, engine);
    if (result == NB_OK && s->window != NULL && nb_engine_input(engine) == NULL) result = NB_ERR_MEMORY;
    if (result == NB_OK) result = view_attach(&s->view, engine, s->gpu, scene);
    nb_module_desc module = {.name = "show", .user = s, .priority = -1, .frame = read_keys};
    module.handlers[NB_PHASE_FRAME_GRAPH] = ask;
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}

// Where the display paces the frames, their times snap to its refresh: every frame then has the same number of ticks.
static void follow_refresh(show *s, const window_news *news) {
    nb_rate rate = {news->is_vsync_off ? 0 : news->refresh_hz, 1};
    nb_loop_set_refresh(nb_engine_loop(s->engine), rate);
}

bool show_has_window(const show *s) { return s != NULL && s->window != NULL; }

static bool poll_window(show *s, bool *is_back) {
    window_news news = window_poll(s->window, nb_engine_input(s->engine));
    if (news.is_resized) nb_gpu_resize(s->gpu, news.width, news.height);
    if (news.is_vsync_changed) nb_gpu_set_vsync(s->gpu, !news.is_vsync_off);
    if (news.is_refresh_changed || news.is_vsync_changed) follow_refresh(s, &news);
    if (news.is_focus_lost) nb_buttons_release_all(&s->buttons);
    *is_back = *is_back || nb_buttons_is_down(&s->buttons, KEYBOARD_R);
    return !news.is_closed;
}

bool show_begin(show *s, bool *is_back) {
    if (s == NULL) return true;
    nb_engine_stats stats = nb_engine_stats_get(s->engine);
    s->is_due = shots_is_due(&s->shots, stats.tick_count) && (!s->options.is_lockstep || view_is_settled(&s->view));
    s->view.is_blind = s->options.is_lockstep && !s->is_due;
    s->picture->is_restarted = s->options.is_lockstep && s->is_due;
    return s->window == NULL || poll_window(s, is_back);
}

nb_result show_end_frame(show *s) { return s == NULL ? NB_OK : shots_take(&s->shots, s->options.is_virtual); }

bool show_is_settled(const show *s) {
    if (s == NULL) return true;
    return view_is_settled(&s->view) && !shots_is_due(&s->shots, nb_engine_stats_get(s->engine).tick_count);
}

void show_measure(const show *s, numbers_frame *out) {
    if (s == NULL) return;
    render_stats drawn = render_stats_get(s->view.render);
    out->triangle_count = drawn.triangle_count;
    out->view_triangle_count = drawn.triangle_count + s->view.hidden_triangle_count;
    out->upload_bytes = drawn.upload_bytes_total;
    out->gpu_ns = nb_gpu_stats_get(s->gpu).gpu_ns;
}

void show_print(const show *s, FILE *to) {
    if (s == NULL) return;
    nb_gpu_stats stats = nb_gpu_stats_get(s->gpu);
    fprintf(to, "device      %llu pictures of %llu frames, %u triangles in the last\n", nb_llu(stats.submit_count),
            nb_llu(stats.frame_count), render_stats_get(s->view.render).triangle_count);
    if (s->shots.count > 0)
        fprintf(to, "pictures    %u in %s, hash %016llx\n", s->shots.count, s->shots.folder, nb_llu(s->shots.hash));
}

void show_close(show *s) {
    if (s == NULL) return;
    shots_close(&s->shots);
    view_end(&s->view);
    nb_gpu_destroy(s->gpu);
    window_close(s->window);
    free(s);
}
