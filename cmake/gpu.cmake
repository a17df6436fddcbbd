# SPDX-License-Identifier: MIT
# The module gpu: nebula_gpu, also known as nebula::gpu, with nothing but libc. The Vulkan backend is in it where the
# headers of Vulkan are found; the loader is opened at run time.
option(NEBULA_BUILD_GPU "Build the module gpu" ON)
if(NOT NEBULA_BUILD_GPU)
    return()
endif()
nebula_module(gpu)
include(cmake/vulkan.cmake)
