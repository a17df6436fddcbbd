// SPDX-License-Identifier: MIT
// The loader is opened by name, and every function is asked for by name.

#include "vulkan_load.h"

#define DEFAULT_LOADER "libvulkan.so.1"

bool nbi_vulkan_load(const char *loader, void **library, nbi_vulkan_functions *vk, const char **missing) {
    if (loader == NULL) loader = DEFAULT_LOADER;
    *missing = loader;
    *library = nbi_vulkan_library_open(loader);
    if (*library == NULL) return false;
    *missing = "vkGetInstanceProcAddr";
    vk->GetInstanceProcAddr = (PFN_vkGetInstanceProcAddr)nbi_vulkan_library_symbol(*library, *missing);
    if (vk->GetInstanceProcAddr == NULL) return false;
#define LOAD(name)                                                              \
    *missing = "vk" #name;                                                      \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(VK_NULL_HANDLE, *missing); \
    if (vk->name == NULL) return false;
    NBI_VULKAN_GLOBAL_FUNCTIONS(LOAD)
#undef LOAD
    return true;
}

bool nbi_vulkan_load_instance(nbi_vulkan_functions *vk, VkInstance instance, const char **missing) {
#define LOAD(name) vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(instance, "vk" #name);
#define NEED(name)         \
    LOAD(name)             \
    *missing = "vk" #name; \
    if (vk->name == NULL) return false;
    NBI_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(LOAD)
    NBI_VULKAN_INSTANCE_FUNCTIONS(NEED)
#undef LOAD
#undef NEED
    return true;
}

bool nbi_vulkan_load_device(nbi_vulkan_functions *vk, VkDevice device, const char **missing) {
#define LOAD(name) vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name);
#define NEED(name)         \
    LOAD(name)             \
    *missing = "vk" #name; \
    if (vk->name == NULL) return false;
    NBI_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(LOAD)
    NBI_VULKAN_DEVICE_FUNCTIONS(NEED)
#undef LOAD
#undef NEED
    return true;
}

const char *nbi_vulkan_result_name(VkResult result) {
    switch (result) {
#define NAME(value) \
    case value: return #value;
        NAME(VK_SUCCESS)
        NAME(VK_NOT_READY)
        NAME(VK_TIMEOUT)
        NAME(VK_INCOMPLETE)
        NAME(VK_SUBOPTIMAL_KHR)
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        NAME(VK_ERROR_INITIALIZATION_FAILED)
        NAME(VK_ERROR_DEVICE_LOST)
        NAME(VK_ERROR_MEMORY_MAP_FAILED)
        NAME(VK_ERROR_LAYER_NOT_PRESENT)
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        NAME(VK_ERROR_TOO_MANY_OBJECTS)
        NAME(VK_ERROR_FORMAT_NOT_SUPPORTED)
        NAME(VK_ERROR_FRAGMENTED_POOL)
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
        NAME(VK_ERROR_SURFACE_LOST_KHR)
        NAME(VK_ERROR_NATIVE_WINDOW_IN_USE_KHR)
        NAME(VK_ERROR_OUT_OF_DATE_KHR)
        NAME(VK_ERROR_FULL_SCREEN_EXCLUSIVE_MODE_LOST_EXT)
        NAME(VK_ERROR_INVALID_SHADER_NV)
#undef NAME
    default: return "another VkResult";
    }
}
