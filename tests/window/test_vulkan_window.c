// SPDX-License-Identifier: MIT
// The Vulkan device and a window of X11: what is drawn is what is to be seen, and resizing, hiding and losing the
// surface are survived.

#include "gpu/vulkan/gpu_vulkan_stage.h"

#include "gpu/device/gpu.h"
#include "gpu/vulkan/vulkan.h"

// --- as much of X11 as is needed; found at run time ---

typedef unsigned long x_window;

typedef struct x_window_system {
    void *library;
    void *(*open_display)(const char *name);
    int (*close_display)(void *display);
    x_window (*default_root)(void *display);
    x_window (*create_window)(void *display, x_window parent, int x, int y, unsigned width, unsigned height,
                              unsigned border, unsigned long border_color, unsigned long color);
    int (*map_window)(void *display, x_window window);
    int (*resize_window)(void *display, x_window window, unsigned width, unsigned height);
    int (*sync)(void *display, int discard);
    void *(*get_image)(void *display, x_window window, int x, int y, unsigned width, unsigned height,
                       unsigned long planes, int format);
    unsigned long (*get_pixel)(void *image, int x, int y);
    int (*destroy_image)(void *image);
    void *display;
    x_window window;
    uint32_t surface_count;
    bool is_refusing; // there is no surface at the moment
} x_window_system;

static void find(const x_window_system *x, const char *name, void *function) {
    void *symbol = dlsym(x->library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool x_open(x_window_system *x, uint32_t width, uint32_t height) {
    *x = (x_window_system){.library = dlopen("libX11.so.6", RTLD_NOW | RTLD_NODELETE)};
    if (x->library == NULL) return false;
    find(x, "XOpenDisplay", &x->open_display);
    find(x, "XCloseDisplay", &x->close_display);
    find(x, "XDefaultRootWindow", &x->default_root);
    find(x, "XCreateSimpleWindow", &x->create_window);
    find(x, "XMapWindow", &x->map_window);
    find(x, "XResizeWindow", &x->resize_window);
    find(x, "XSync", &x->sync);
    find(x, "XGetImage", &x->get_image);
    find(x, "XGetPixel", &x->get_pixel);
    find(x, "XDestroyImage", &x->destroy_image);
    // A display without any client may begin anew, and refuses the next one meanwhile: one stays.
    static void *stays;
    if (stays == NULL) stays = x->open_display(NULL);
    x->display = stays != NULL ? x->open_display(NULL) : NULL;
    if (x->display == NULL) return false;
    x->window = x->create_window(x->display, x->default_root(x->display), 0, 0, width, height, 0, 0, 0);
    x->map_window(x->display, x->window);
    x->sync(x->display, 0);
    return true;
}

static uint32_t x_pixel(x_window_system *x, int column, int row) {
    const int z_pixmap = 2;
    x->sync(x->display, 0);
    void *image = x->get_image(x->display, x->window, column, row, 1, 1, ~0ul, z_pixmap);
    assert_non_null(image);
    uint32_t pixel = (uint32_t)(x->get_pixel(image, 0, 0) & 0xffffff);
    x->destroy_image(image);
    return pixel;
}

// --- the window for Vulkan ---

// As VkXlibSurfaceCreateInfoKHR, which needs the headers of X11.
typedef struct xlib_surface_info {
    VkStructureType type;
    const void *next;
    VkFlags flags;
    void *display;
    x_window window;
} xlib_surface_info;

typedef VkResult(VKAPI_PTR *create_surface_fn)(VkInstance, const xlib_surface_info *, const VkAllocationCallbacks *,
                                               VkSurfaceKHR *);

static bool create_surface(void *user, void *instance, uint64_t *surface) {
    x_window_system *x = (x_window_system *)user;
    if (x->is_refusing) return false;
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW);
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol = dlsym(loader, "vkGetInstanceProcAddr");
    memcpy(&get, &symbol, sizeof symbol);
    create_surface_fn create = (create_surface_fn)get((VkInstance)instance, "vkCreateXlibSurfaceKHR");
    dlclose(loader);
    xlib_surface_info info = {VK_STRUCTURE_TYPE_XLIB_SURFACE_CREATE_INFO_KHR, NULL, 0, x->display, x->window};
    VkSurfaceKHR made = VK_NULL_HANDLE;
    if (create == NULL || create((VkInstance)instance, &info, NULL, &made) != VK_SUCCESS) return false;
    memcpy(surface, &made, sizeof made);
    ++x->surface_count;
    return true;
}

static const char *const extensions[] = {"VK_KHR_surface", "VK_KHR_xlib_surface"};

typedef struct show {
    stage s;
    x_window_system x;
} show;

static void show_open(show *w, uint32_t width, uint32_t height) {
    memset(w, 0, sizeof *w);
    if (!x_open(&w->x, width, height)) {
        fprintf(stderr, "no display here, skipped\n");
        skip();
    }
    nb_gpu_vulkan_desc desc = {
        .window = {.extensions = extensions, .extension_count = 2, .surface_create = create_surface, .user = &w->x}};
    stage_open_as(&w->s, stage_desc(width, height), desc);
}

static void show_close(show *w) {
    stage_close(&w->s);
    w->x.close_display(w->x.display);
}

static nbi_vulkan *vulkan_of(show *w) { return (nbi_vulkan *)nbi_gpu_backend_self(w->s.gpu, nb_gpu_vulkan_backend()); }

// A frame that is all of one colour; frames without a picture are counted by the device.
static nb_result show_frame(show *w, float red, float green, float blue) {
    nb_result begun = nb_gpu_frame_begin(w->s.gpu);
    if (begun == NB_OK) {
        nb_graph *graph = nb_gpu_graph(w->s.gpu);
        nb_graph_resource back = nb_gpu_backbuffer(w->s.gpu, NULL, NULL);
        nb_graph_pass pass = stage_pass(graph, "clear", NB_GPU_PASS_RENDER, NULL, NULL);
        stage_use(graph, pass, back, NB_GPU_ACCESS_COLOR);
        nb_gpu_clear clear = {{red, green, blue, 1}};
        assert_int_equal(nb_graph_clear(graph, pass, back, clear), NB_OK);
        assert_int_equal(nb_gpu_frame_compile(w->s.gpu), NB_OK);
        assert_int_equal(nb_gpu_frame_record(w->s.gpu, 0), NB_OK);
        begun = nb_gpu_frame_submit(w->s.gpu);
    }
    nb_gpu_frame_end(w->s.gpu);
    return begun;
}

// Frames until the window shows the colour, or there were too many.
static bool is_shown(show *w, uint32_t rgb, int column, int row) {
    for (uint32_t i = 0; i < 2000; ++i) {
        show_frame(w, (float)(rgb >> 16) / 255, (float)(rgb >> 8 & 0xff) / 255, (float)(rgb & 0xff) / 255);
        if (nb_gpu_wait_idle(w->s.gpu, STAGE_WAIT_NS) != NB_OK) continue;
        if (x_pixel(&w->x, column, row) == rgb) return true;
    }
    return false;
}

static void size_of(show *w, uint32_t *width, uint32_t *height) {
    *width = vulkan_of(w)->surface.extent.width;
    *height = vulkan_of(w)->surface.extent.height;
}

TEST(window_shows_what_is_drawn) {
    static show w;
    show_open(&w, 64, 48);
    assert_true(is_shown(&w, 0xff0000, 5, 5));
    assert_true(is_shown(&w, 0x0080ff, 63, 47));
    // With captures in between.
    assert_int_equal(nb_gpu_frame_begin(w.s.gpu), NB_OK);
    stage_draw(&w.s, NULL, NULL);
    nb_gpu_capture picture = stage_capture(&w.s);
    assert_int_equal(picture.width, 64);
    assert_int_equal(stage_pixel(&picture, 9, 9), 0x0000ffff);
    for (uint32_t i = 0; i < 6; ++i) {
        assert_int_equal(nb_gpu_set_vsync(w.s.gpu, i % 2 == 0), NB_OK);
        assert_true(is_shown(&w, i % 2 == 0 ? 0x00ff00 : 0xff00ff, 30, 30));
    }
    show_close(&w);
}

TEST(resized_window_is_drawn_to_in_its_new_size) {
    static show w;
    show_open(&w, 64, 48);
    const uint32_t sizes[][2] = {{100, 70}, {31, 200}, {64, 48}, {300, 300}};
    for (uint32_t i = 0; i < 4; ++i) {
        assert_true(is_shown(&w, 0x00ff00, 5, 5));
        w.x.resize_window(w.x.display, w.x.window, sizes[i][0], sizes[i][1]);
        w.x.sync(w.x.display, 0);
        // Half of the times the game says so, half of the times the surface does.
        if (i % 2 == 0) assert_int_equal(nb_gpu_resize(w.s.gpu, sizes[i][0], sizes[i][1]), NB_OK);
        assert_true(is_shown(&w, 0x0000ff, (int)sizes[i][0] - 1, (int)sizes[i][1] - 1));
        uint32_t width = 0, height = 0;
        size_of(&w, &width, &height);
        assert_int_equal(width, sizes[i][0]);
        assert_int_equal(height, sizes[i][1]);
    }
    assert_true(nb_gpu_stats_get(w.s.gpu).resize_count >= 4);
    show_close(&w);
}

// --- what the driver says ---

static VkResult answer;

static VKAPI_ATTR VkResult VKAPI_CALL acquire_failing(VkDevice device, VkSwapchainKHR swapchain, uint64_t timeout,
                                                      VkSemaphore semaphore, VkFence fence, uint32_t *index) {
    (void)device, (void)swapchain, (void)timeout, (void)semaphore, (void)fence, (void)index;
    return answer;
}

static PFN_vkQueuePresentKHR real_present;

static VKAPI_ATTR VkResult VKAPI_CALL present_failing(VkQueue queue, const VkPresentInfoKHR *info) {
    // It is shown, or else its semaphore stays as it is; then the driver has changed its mind.
    real_present(queue, info);
    return answer;
}

TEST(surface_that_is_lost_is_made_anew) {
    static show w;
    show_open(&w, 64, 48);
    const VkResult answers[] = {VK_NOT_READY, VK_TIMEOUT, VK_ERROR_OUT_OF_DATE_KHR, VK_ERROR_SURFACE_LOST_KHR};
    for (uint32_t i = 0; i < 4; ++i) {
        assert_true(is_shown(&w, 0x00ff00, 5, 5));
        uint32_t surface_count = w.x.surface_count;
        nbi_vulkan *v = vulkan_of(&w);
        PFN_vkAcquireNextImageKHR real = v->vk.AcquireNextImageKHR;
        answer = answers[i];
        v->vk.AcquireNextImageKHR = acquire_failing;
        assert_int_not_equal(show_frame(&w, 1, 1, 1), NB_OK);
        v->vk.AcquireNextImageKHR = real;
        assert_true(is_shown(&w, 0x0000ff, 5, 5));
        assert_int_equal(w.x.surface_count > surface_count, answer == VK_ERROR_SURFACE_LOST_KHR);
    }
    const VkResult presents[] = {VK_SUBOPTIMAL_KHR, VK_ERROR_OUT_OF_DATE_KHR, VK_ERROR_SURFACE_LOST_KHR};
    for (uint32_t i = 0; i < 3; ++i) {
        nbi_vulkan *v = vulkan_of(&w);
        real_present = v->vk.QueuePresentKHR;
        answer = presents[i];
        v->vk.QueuePresentKHR = present_failing;
        show_frame(&w, 1, 0, 0);
        v->vk.QueuePresentKHR = real_present;
        assert_true(is_shown(&w, 0x00ffff, 5, 5));
    }
    // A window that has no surface for a while.
    answer = VK_ERROR_SURFACE_LOST_KHR;
    nbi_vulkan *v = vulkan_of(&w);
    PFN_vkAcquireNextImageKHR real = v->vk.AcquireNextImageKHR;
    w.x.is_refusing = true;
    v->vk.AcquireNextImageKHR = acquire_failing;
    for (uint32_t i = 0; i < 5; ++i) assert_int_not_equal(show_frame(&w, 1, 1, 1), NB_OK);
    v->vk.AcquireNextImageKHR = real;
    w.x.is_refusing = false;
    assert_true(is_shown(&w, 0xffff00, 5, 5));
    assert_int_equal(nb_gpu_stats_get(w.s.gpu).lost_count, 0);
    show_close(&w);
}

// A frame that computes and does not draw to the window keeps its image for the next one that does.
TEST(frame_that_is_not_shown_keeps_its_image) {
    static show w;
    show_open(&w, 64, 48);
    for (uint32_t i = 0; i < 12; ++i) {
        assert_int_equal(nb_gpu_frame_begin(w.s.gpu), NB_OK);
        stage_pass(nb_gpu_graph(w.s.gpu), "nothing", NB_GPU_PASS_COMPUTE, NULL, NULL);
        stage_end(&w.s);
        if (i % 4 == 3) assert_true(is_shown(&w, 0x00ff00 + i, 5, 5));
    }
    show_close(&w);
}

TEST(lost_device_gets_its_window_back) {
    static show w;
    show_open(&w, 64, 48);
    assert_true(is_shown(&w, 0x00ff00, 5, 5));
    nbi_atomic_store_relaxed_u32(&vulkan_of(&w)->is_lost, 1);
    assert_true(is_shown(&w, 0x0000ff, 5, 5));
    assert_int_equal(nb_gpu_stats_get(w.s.gpu).restored_count, 1);
    show_close(&w);
}
