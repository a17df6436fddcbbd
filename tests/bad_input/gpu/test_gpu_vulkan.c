// SPDX-License-Identifier: MIT
// nebula/gpu_vulkan.h: devices that cannot be. A machine without Vulkan refuses the same ones.

#include "bad_input/bad_input.h"
#include "gpu/vulkan/gpu_vulkan_fixture.h"

#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"

TEST(messages_of_no_device_are_none) {
    nb_gpu *gpu = NULL;
    assert_int_equal(nb_gpu_create(NULL, &gpu), NB_OK);
    assert_int_equal(nb_gpu_vulkan_message_count(NULL), 0);
    assert_int_equal(nb_gpu_vulkan_message_count(gpu), 0);
    assert_int_equal(nb_gpu_destroy(gpu), NB_OK);
}

static nb_result create(const nb_gpu_vulkan_desc *vulkan) {
    nb_gpu *gpu = NULL;
    nb_gpu_desc desc = {.backend = nb_gpu_vulkan_backend(), .backend_desc = vulkan, .hooks = bad_hooks(NULL)};
    nb_result result = nb_gpu_create(&desc, &gpu);
    assert_true((result == NB_OK) == (gpu != NULL));
    return result;
}

static bool no_surface(void *user, void *instance, uint64_t *surface) {
    (void)user, (void)instance, (void)surface;
    return false;
}

TEST(devices_that_cannot_be_are_refused) {
    if (is_vulkan_left_out()) skip();
    vulkan_keep_loaded();
    assert_int_equal(create(&(nb_gpu_vulkan_desc){.loader = ""}), NB_ERR_UNSUPPORTED);
    assert_int_equal(create(&(nb_gpu_vulkan_desc){.loader = "/dev/null"}), NB_ERR_UNSUPPORTED);
    assert_int_equal(create(&(nb_gpu_vulkan_desc){.device = "\n"}), NB_ERR_UNSUPPORTED);
    const char *extensions[20] = {0};
    nb_gpu_vulkan_window window = {.extensions = extensions, .extension_count = 20, .surface_create = no_surface};
    assert_int_equal(create(&(nb_gpu_vulkan_desc){.window = window}), NB_ERR_UNSUPPORTED);
    window.extension_count = 0;
    assert_int_equal(create(&(nb_gpu_vulkan_desc){.window = window}), NB_ERR_UNSUPPORTED);
}
