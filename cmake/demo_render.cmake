# SPDX-License-Identifier: MIT
# The demo's picture, as part of nebula_demo_parts: over the module gpu, with glslc, stb and SDL2 where they are found.
# Without glslc only the null device can be used, without stb there are no PNGs and letters, without SDL2 no window.
target_link_libraries(nebula_demo_parts PUBLIC nebula_gpu)

if(nebula_has_shaders)
    file(GLOB demo_shaders CONFIGURE_DEPENDS
        ${PROJECT_SOURCE_DIR}/demo/draw/shaders/*.vert ${PROJECT_SOURCE_DIR}/demo/draw/shaders/*.frag)
    nebula_shaders(nebula_demo_parts ${demo_shaders})
    target_compile_definitions(nebula_demo_parts PRIVATE DEMO_HAS_SHADERS=1)
endif()

find_path(NEBULA_STB_INCLUDE stb_image_write.h PATH_SUFFIXES stb)
mark_as_advanced(NEBULA_STB_INCLUDE)
if(NEBULA_STB_INCLUDE)
    target_include_directories(nebula_demo_parts SYSTEM PRIVATE ${NEBULA_STB_INCLUDE})
    target_compile_definitions(nebula_demo_parts PRIVATE DEMO_HAS_STB=1)
else()
    message(STATUS "nebula: stb is missing (Debian: libstb-dev); the demo writes no pictures")
endif()

find_path(NEBULA_SDL2_INCLUDE SDL.h PATH_SUFFIXES SDL2)
find_library(NEBULA_SDL2_LIBRARY SDL2)
mark_as_advanced(NEBULA_SDL2_INCLUDE NEBULA_SDL2_LIBRARY)
if(NEBULA_SDL2_INCLUDE AND NEBULA_SDL2_LIBRARY)
    target_include_directories(nebula_demo_parts SYSTEM PRIVATE ${NEBULA_SDL2_INCLUDE})
    target_link_libraries(nebula_demo_parts PRIVATE ${NEBULA_SDL2_LIBRARY})
    target_compile_definitions(nebula_demo_parts PRIVATE DEMO_HAS_SDL2=1)
else()
    message(STATUS "nebula: SDL2 is missing (Debian: libsdl2-dev); the demo opens no window")
endif()
