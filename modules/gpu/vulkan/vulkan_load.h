// SPDX-License-Identifier: MIT
#pragma once

// The functions of Vulkan, found at run time: nothing here links to the loader. A field has the name of its function
// without the "vk".

#include "nebula/types.h"

#define VK_NO_PROTOTYPES 1
#include <vulkan/vulkan.h>

#define NBI_VULKAN_GLOBAL_FUNCTIONS(X)  \
    X(CreateInstance)                   \
    X(EnumerateInstanceVersion)         \
    X(EnumerateInstanceLayerProperties) \
    X(EnumerateInstanceExtensionProperties)

#define NBI_VULKAN_INSTANCE_FUNCTIONS(X)      \
    X(DestroyInstance)                        \
    X(EnumeratePhysicalDevices)               \
    X(GetPhysicalDeviceProperties)            \
    X(GetPhysicalDeviceProperties2)           \
    X(GetPhysicalDeviceFeatures2)             \
    X(GetPhysicalDeviceMemoryProperties)      \
    X(GetPhysicalDeviceMemoryProperties2)     \
    X(GetPhysicalDeviceFormatProperties)      \
    X(GetPhysicalDeviceQueueFamilyProperties) \
    X(EnumerateDeviceExtensionProperties)     \
    X(CreateDevice)                           \
    X(GetDeviceProcAddr)

// There where their extensions are: with validation, and with a window.
#define NBI_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(X) \
    X(CreateDebugUtilsMessengerEXT)               \
    X(DestroyDebugUtilsMessengerEXT)              \
    X(SetDebugUtilsObjectNameEXT)                 \
    X(DestroySurfaceKHR)                          \
    X(GetPhysicalDeviceSurfaceSupportKHR)         \
    X(GetPhysicalDeviceSurfaceCapabilitiesKHR)    \
    X(GetPhysicalDeviceSurfaceFormatsKHR)         \
    X(GetPhysicalDeviceSurfacePresentModesKHR)

#define NBI_VULKAN_DEVICE_FUNCTIONS(X) \
    X(DestroyDevice)                   \
    X(DeviceWaitIdle)                  \
    X(GetDeviceQueue)                  \
    X(QueueSubmit2)                    \
    X(AllocateMemory)                  \
    X(FreeMemory)                      \
    X(MapMemory)                       \
    X(CreateBuffer)                    \
    X(DestroyBuffer)                   \
    X(GetBufferMemoryRequirements)     \
    X(BindBufferMemory)                \
    X(CreateImage)                     \
    X(DestroyImage)                    \
    X(GetImageMemoryRequirements)      \
    X(BindImageMemory)                 \
    X(CreateImageView)                 \
    X(DestroyImageView)                \
    X(CreateSampler)                   \
    X(DestroySampler)                  \
    X(CreateShaderModule)              \
    X(DestroyShaderModule)             \
    X(CreatePipelineCache)             \
    X(DestroyPipelineCache)            \
    X(CreateGraphicsPipelines)         \
    X(CreateComputePipelines)          \
    X(DestroyPipeline)                 \
    X(CreatePipelineLayout)            \
    X(DestroyPipelineLayout)           \
    X(CreateDescriptorSetLayout)       \
    X(DestroyDescriptorSetLayout)      \
    X(CreateDescriptorPool)            \
    X(DestroyDescriptorPool)           \
    X(ResetDescriptorPool)             \
    X(AllocateDescriptorSets)          \
    X(UpdateDescriptorSets)            \
    X(CreateCommandPool)               \
    X(DestroyCommandPool)              \
    X(ResetCommandPool)                \
    X(AllocateCommandBuffers)          \
    X(BeginCommandBuffer)              \
    X(EndCommandBuffer)                \
    X(CreateSemaphore)                 \
    X(DestroySemaphore)                \
    X(GetSemaphoreCounterValue)        \
    X(WaitSemaphores)                  \
    X(CreateQueryPool)                 \
    X(DestroyQueryPool)                \
    X(GetQueryPoolResults)             \
    X(CmdBindPipeline)                 \
    X(CmdBindDescriptorSets)           \
    X(CmdBindIndexBuffer)              \
    X(CmdPushConstants)                \
    X(CmdSetViewport)                  \
    X(CmdSetScissor)                   \
    X(CmdDraw)                         \
    X(CmdDrawIndexed)                  \
    X(CmdDrawIndirect)                 \
    X(CmdDispatch)                     \
    X(CmdCopyBuffer)                   \
    X(CmdCopyBufferToImage)            \
    X(CmdCopyImageToBuffer)            \
    X(CmdPipelineBarrier2)             \
    X(CmdBeginRendering)               \
    X(CmdEndRendering)                 \
    X(CmdExecuteCommands)              \
    X(CmdResetQueryPool)               \
    X(CmdWriteTimestamp2)

#define NBI_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(X) \
    X(CreateSwapchainKHR)                       \
    X(DestroySwapchainKHR)                      \
    X(GetSwapchainImagesKHR)                    \
    X(AcquireNextImageKHR)                      \
    X(QueuePresentKHR)

typedef struct nbi_vulkan_functions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define NBI_VULKAN_FIELD(name) PFN_vk##name name;
    NBI_VULKAN_GLOBAL_FUNCTIONS(NBI_VULKAN_FIELD)
    NBI_VULKAN_INSTANCE_FUNCTIONS(NBI_VULKAN_FIELD)
    NBI_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(NBI_VULKAN_FIELD)
    NBI_VULKAN_DEVICE_FUNCTIONS(NBI_VULKAN_FIELD)
    NBI_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(NBI_VULKAN_FIELD)
#undef NBI_VULKAN_FIELD
} nbi_vulkan_functions;

// Opens the loader and finds what needs no instance. On failure *missing names what is not there: the library or a
// function; *library is to be closed also then.
bool nbi_vulkan_load(const char *loader, void **library, nbi_vulkan_functions *vk, const char **missing);

// Finds what an instance has, and what a device has; false: *missing is not there.
bool nbi_vulkan_load_instance(nbi_vulkan_functions *vk, VkInstance instance, const char **missing);
bool nbi_vulkan_load_device(nbi_vulkan_functions *vk, VkDevice device, const char **missing);

// The identifier of a result, such as "VK_ERROR_DEVICE_LOST".
const char *nbi_vulkan_result_name(VkResult result);

// Shared libraries of the system.
void *nbi_vulkan_library_open(const char *name);
void (*nbi_vulkan_library_symbol(void *library, const char *name))(void);
void nbi_vulkan_library_close(void *library);
