// SPDX-License-Identifier: MIT
// Loader, instance, validation layer, and the choice of the device.

#include "vulkan.h"

#include "nebula/report.h"

#include <string.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

// Layers, extensions and devices that are looked at: more than any machine has; what is beyond is not seen.
#define EXTENSION_COUNT_MAX 512u
#define PHYSICAL_COUNT_MAX 16u
#define FAMILY_COUNT_MAX 16u
#define INSTANCE_EXTENSION_COUNT_MAX 16u

#define UNSUPPORTED(v, item, ...) nb_report_failure(&(v)->hooks, (item), NB_ERR_UNSUPPORTED, "vulkan", __VA_ARGS__)

// --- validation ---

// On any thread that calls Vulkan. What the loader says about itself is no message of the validation.
static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT type,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    nbi_vulkan *v = (nbi_vulkan *)user;
    bool is_validation = (type & VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT) != 0;
    bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    // Read when recording is over, which orders it: no more than a count.
    if (is_validation) nbi_atomic_fetch_add_relaxed_u64(&v->message_count, 1);
    nb_log_level level = !is_validation ? NB_LOG_INFO : is_error ? NB_LOG_ERROR : NB_LOG_WARNING;
    nb_report(&v->hooks, level, NB_ITEM_VULKAN_MESSAGE, "vulkan", "%s: %s",
              data->pMessageIdName != NULL ? data->pMessageIdName : "", data->pMessage);
    return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(nbi_vulkan *v) {
    return (VkDebugUtilsMessengerCreateInfoEXT){.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                                                   VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                                                               VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
                                                .pfnUserCallback = on_message,
                                                .pUserData = v};
}

static bool has_validation_layer(nbi_vulkan *v) {
    VkLayerProperties layers[64];
    uint32_t count = 64;
    if (v->vk.EnumerateInstanceLayerProperties(&count, layers) < 0) return false;
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(layers[i].layerName, VALIDATION_LAYER) == 0) return true;
    }
    return false;
}

// --- instance ---

static nb_result instance_create(nbi_vulkan *v, const nb_gpu_vulkan_desc *desc, bool is_validated) {
    const char *extensions[INSTANCE_EXTENSION_COUNT_MAX];
    uint32_t count = 0;
    if (desc->window.extension_count > INSTANCE_EXTENSION_COUNT_MAX - 2)
        return UNSUPPORTED(v, NB_ITEM_VULKAN_SURFACE, "the window asks for too many extensions");
    for (uint32_t i = 0; i < desc->window.extension_count; ++i) extensions[count++] = desc->window.extensions[i];
    if (is_validated) {
        extensions[count++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        extensions[count++] = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
    }
    VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(v);
    VkValidationFeatureEnableEXT enabled = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                        .pNext = &messenger,
                                        .enabledValidationFeatureCount = 1,
                                        .pEnabledValidationFeatures = &enabled};
    const char *layer = VALIDATION_LAYER;
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "nebula", .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pNext = is_validated ? &features : NULL,
                                 .pApplicationInfo = &application,
                                 .enabledLayerCount = is_validated ? 1 : 0,
                                 .ppEnabledLayerNames = &layer,
                                 .enabledExtensionCount = count,
                                 .ppEnabledExtensionNames = extensions};
    VkResult result = v->vk.CreateInstance(&info, NULL, &v->instance);
    if (result == VK_SUCCESS) return NB_OK;
    v->instance = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "no instance (is a driver installed?): vkCreateInstance");
}

static nb_result instance_open(nbi_vulkan *v, const nb_gpu_vulkan_desc *desc) {
    const char *missing = NULL;
    if (!nbi_vulkan_load(desc->loader, &v->library, &v->vk, &missing))
        return UNSUPPORTED(v, NB_ITEM_VULKAN_LOADER, "no Vulkan here: %s is not to be found", missing);
    uint32_t version = 0;
    VkResult result = v->vk.EnumerateInstanceVersion(&version);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkEnumerateInstanceVersion");
    if (version < VK_API_VERSION_1_3)
        return UNSUPPORTED(v, NB_ITEM_VULKAN_LOADER, "the loader is older than Vulkan 1.3");
    bool is_validated = desc->is_validated && has_validation_layer(v);
    if (desc->is_validated && !is_validated)
        nb_report(&v->hooks, NB_LOG_WARNING, NB_ITEM_VULKAN_LAYER, "vulkan",
                  "%s is not installed: nothing is validated", VALIDATION_LAYER);
    nb_result made = instance_create(v, desc, is_validated);
    if (made != NB_OK) return made;
    if (!nbi_vulkan_load_instance(&v->vk, v->instance, &missing))
        return UNSUPPORTED(v, NB_ITEM_VULKAN_LOADER, "the loader has no %s", missing);
    if (!is_validated) return NB_OK;
    VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(v);
    result = v->vk.CreateDebugUtilsMessengerEXT(v->instance, &info, NULL, &v->messenger);
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkCreateDebugUtilsMessengerEXT");
}

static nb_result window_open(nbi_vulkan *v) {
    if (v->window.surface_create == NULL) return NB_OK;
    uint64_t surface = 0;
    if (!v->window.surface_create(v->window.user, v->instance, &surface) || surface == 0)
        return UNSUPPORTED(v, NB_ITEM_VULKAN_SURFACE, "the window has no surface for Vulkan");
    memcpy(&v->surface.handle, &surface, sizeof v->surface.handle);
    return NB_OK;
}

// --- choice of the device ---

// What a device has of what is asked for.
typedef struct candidate {
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceFeatures features;
    bool has_maintenance4, has_budget;
    uint32_t family, timestamp_bits;
    uint32_t rank;       // the higher, the better
    const char *missing; // NULL: it will do
} candidate;

static bool can_show(nbi_vulkan *v, VkPhysicalDevice physical, uint32_t family) {
    if (v->surface.handle == VK_NULL_HANDLE) return true;
    VkBool32 can = VK_FALSE;
    VkResult result = v->vk.GetPhysicalDeviceSurfaceSupportKHR(physical, family, v->surface.handle, &can);
    return result == VK_SUCCESS && can == VK_TRUE;
}

static bool family_find(nbi_vulkan *v, candidate *c) {
    VkQueueFamilyProperties families[FAMILY_COUNT_MAX];
    uint32_t count = FAMILY_COUNT_MAX;
    v->vk.GetPhysicalDeviceQueueFamilyProperties(c->physical, &count, families);
    for (uint32_t i = 0; i < count; ++i) {
        VkQueueFlags wanted = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
        if ((families[i].queueFlags & wanted) != wanted || !can_show(v, c->physical, i)) continue;
        c->family = i;
        c->timestamp_bits = families[i].timestampValidBits;
        return true;
    }
    return false;
}

// Room for the extensions of a device: too large for the stack.
typedef struct extension_list {
    VkExtensionProperties items[EXTENSION_COUNT_MAX];
    uint32_t count;
} extension_list;

static void extensions_read(nbi_vulkan *v, VkPhysicalDevice physical, extension_list *list) {
    list->count = EXTENSION_COUNT_MAX;
    if (v->vk.EnumerateDeviceExtensionProperties(physical, NULL, &list->count, list->items) < 0) list->count = 0;
}

static bool has_extension(const extension_list *list, const char *name) {
    for (uint32_t i = 0; i < list->count; ++i) {
        if (strcmp(list->items[i].extensionName, name) == 0) return true;
    }
    return false;
}

static void features_check(nbi_vulkan *v, candidate *c) {
    VkPhysicalDeviceVulkan13Features v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = &v13};
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v12};
    v->vk.GetPhysicalDeviceFeatures2(c->physical, &all);
    c->features = all.features;
    c->has_maintenance4 = v13.maintenance4 == VK_TRUE;
    if (!v13.dynamicRendering) c->missing = "dynamicRendering";
    if (!v13.synchronization2) c->missing = "synchronization2";
    if (!v12.timelineSemaphore) c->missing = "timelineSemaphore";
}

static uint32_t rank_of(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 5;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 4;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 3;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 2;
    default: return 1;
    }
}

static candidate look_at(nbi_vulkan *v, VkPhysicalDevice physical, const char *wanted_name, extension_list *list) {
    candidate c = {.physical = physical};
    v->vk.GetPhysicalDeviceProperties(physical, &c.properties);
    c.rank = rank_of(c.properties.deviceType);
    if (wanted_name != NULL && strstr(c.properties.deviceName, wanted_name) == NULL) {
        c.missing = "the name that is asked for";
    } else if (c.properties.apiVersion < VK_API_VERSION_1_3) {
        c.missing = "Vulkan 1.3";
    } else {
        extensions_read(v, physical, list);
        features_check(v, &c);
        if (!family_find(v, &c)) c.missing = "a queue that draws, computes and shows";
        bool has_window = v->surface.handle != VK_NULL_HANDLE;
        if (has_window && !has_extension(list, VK_KHR_SWAPCHAIN_EXTENSION_NAME)) c.missing = "swapchains";
        c.has_budget = has_extension(list, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    }
    return c;
}

static nb_result choose_of(nbi_vulkan *v, const char *wanted_name, extension_list *extensions, candidate *best) {
    VkPhysicalDevice list[PHYSICAL_COUNT_MAX];
    uint32_t count = PHYSICAL_COUNT_MAX;
    VkResult result = v->vk.EnumeratePhysicalDevices(v->instance, &count, list);
    if (result < 0) return nbi_vulkan_fail(v, result, "vkEnumeratePhysicalDevices");
    for (uint32_t i = 0; i < count; ++i) {
        candidate c = look_at(v, list[i], wanted_name, extensions);
        if (c.missing != NULL) {
            nb_report(&v->hooks, NB_LOG_WARNING, NB_ITEM_VULKAN_DEVICE, "vulkan",
                      "device \"%s\" is not used: it lacks %s", c.properties.deviceName, c.missing);
        } else if (c.rank > best->rank) {
            *best = c;
        }
    }
    if (best->rank > 0) return NB_OK;
    if (wanted_name != NULL)
        return UNSUPPORTED(v, NB_ITEM_VULKAN_DEVICE, "no device with \"%s\" in its name will do", wanted_name);
    return UNSUPPORTED(v, NB_ITEM_VULKAN_DEVICE, "no Vulkan 1.3 device is here");
}

static nb_result choose(nbi_vulkan *v, const char *wanted_name, candidate *best) {
    extension_list *list = (extension_list *)nb_hooks_alloc(&v->hooks, sizeof *list, NB_CACHE_LINE, "vulkan");
    if (list == NULL) return NB_ERR_MEMORY;
    nb_result result = choose_of(v, wanted_name, list, best);
    nb_hooks_free(&v->hooks, list, sizeof *list);
    return result;
}

// --- device ---

// Of what a device may have, what shaders of this module may use.
static VkPhysicalDeviceFeatures features_wanted(const VkPhysicalDeviceFeatures *there) {
    return (VkPhysicalDeviceFeatures){
        .multiDrawIndirect = there->multiDrawIndirect,
        .drawIndirectFirstInstance = there->drawIndirectFirstInstance,
        .fragmentStoresAndAtomics = there->fragmentStoresAndAtomics,
        .vertexPipelineStoresAndAtomics = there->vertexPipelineStoresAndAtomics,
        .shaderStorageImageReadWithoutFormat = there->shaderStorageImageReadWithoutFormat,
        .shaderStorageImageWriteWithoutFormat = there->shaderStorageImageWriteWithoutFormat,
    };
}

static nb_result device_create(nbi_vulkan *v, const candidate *c) {
    v->physical = c->physical;
    v->properties = c->properties;
    v->family = c->family;
    v->timestamp_bits = c->timestamp_bits;
    v->features = features_wanted(&c->features);
    const char *extensions[2];
    uint32_t count = 0;
    if (v->surface.handle != VK_NULL_HANDLE) extensions[count++] = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    if (c->has_budget) extensions[count++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    VkPhysicalDeviceVulkan13Features v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                            .dynamicRendering = VK_TRUE,
                                            .synchronization2 = VK_TRUE,
                                            .maintenance4 = c->has_maintenance4};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13, .timelineSemaphore = VK_TRUE};
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = c->family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &v12,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = count,
                               .ppEnabledExtensionNames = extensions,
                               .pEnabledFeatures = &v->features};
    VkResult result = v->vk.CreateDevice(c->physical, &info, NULL, &v->device);
    if (result == VK_SUCCESS) return NB_OK;
    v->device = VK_NULL_HANDLE;
    return nbi_vulkan_fail(v, result, "vkCreateDevice");
}

static nb_result timeline_create(nbi_vulkan *v) {
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    VkResult result = v->vk.CreateSemaphore(v->device, &info, NULL, &v->timeline);
    if (result != VK_SUCCESS) return nbi_vulkan_fail(v, result, "vkCreateSemaphore");
    VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    result = v->vk.CreatePipelineCache(v->device, &cache, NULL, &v->cache);
    return result == VK_SUCCESS ? NB_OK : nbi_vulkan_fail(v, result, "vkCreatePipelineCache");
}

nb_result nbi_vulkan_device_open(nbi_vulkan *v, const nb_gpu_vulkan_desc *desc) {
    candidate best = {0};
    nb_result result = instance_open(v, desc);
    if (result == NB_OK) result = window_open(v);
    if (result == NB_OK) result = choose(v, desc->device, &best);
    if (result == NB_OK) result = device_create(v, &best);
    if (result != NB_OK) return result;
    const char *missing = NULL;
    if (!nbi_vulkan_load_device(&v->vk, v->device, &missing)) {
        if (v->vk.DestroyDevice != NULL) v->vk.DestroyDevice(v->device, NULL);
        v->device = VK_NULL_HANDLE;
        return UNSUPPORTED(v, NB_ITEM_VULKAN_DEVICE, "the device has no %s", missing);
    }
    v->vk.GetDeviceQueue(v->device, v->family, 0, &v->queue);
    VkPhysicalDeviceVulkan13Properties v13 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &v13};
    v->vk.GetPhysicalDeviceProperties2(v->physical, &all);
    v->buffer_bytes_max = v13.maxBufferSize;
    nbi_vulkan_memory_open(v, desc->memory_bytes_max, best.has_budget);
    return timeline_create(v);
}

void nbi_vulkan_device_close(nbi_vulkan *v) {
    if (v->device != VK_NULL_HANDLE) {
        for (uint32_t i = 0; i < NB_GPU_SAMPLER_COUNT; ++i) v->vk.DestroySampler(v->device, v->samplers[i], NULL);
        v->vk.DestroyPipelineCache(v->device, v->cache, NULL);
        v->vk.DestroySemaphore(v->device, v->timeline, NULL);
        v->vk.DestroyDevice(v->device, NULL);
    }
    if (v->surface.handle != VK_NULL_HANDLE) v->vk.DestroySurfaceKHR(v->instance, v->surface.handle, NULL);
    if (v->messenger != VK_NULL_HANDLE) v->vk.DestroyDebugUtilsMessengerEXT(v->instance, v->messenger, NULL);
    if (v->instance != VK_NULL_HANDLE && v->vk.DestroyInstance != NULL) v->vk.DestroyInstance(v->instance, NULL);
    nbi_vulkan_library_close(v->library);
}
