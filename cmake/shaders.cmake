# SPDX-License-Identifier: MIT
# Shaders are built with glslc, checked with spirv-val, and included by C files as numbers: nothing is read at run time.
find_program(NEBULA_GLSLC glslc)
find_program(NEBULA_SPIRV_VAL spirv-val)
mark_as_advanced(NEBULA_GLSLC NEBULA_SPIRV_VAL)
set(nebula_has_shaders OFF)
if(NEBULA_GLSLC AND NEBULA_SPIRV_VAL)
    set(nebula_has_shaders ON)
else()
    message(STATUS "nebula: glslc or spirv-val is missing (Debian: glslc spirv-tools); what has shaders is left out")
endif()

# nebula_shaders(TARGET FILE...): each sky.frag becomes a header "shaders/sky.frag.h" for the sources of the target, with
#     static const uint32_t sky_frag[];
# A file that does not compile, or is no valid SPIR-V for Vulkan 1.3, fails the build.
function(nebula_shaders target)
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.shaders)
    file(MAKE_DIRECTORY ${folder}/shaders)
    foreach(file IN LISTS ARGN)
        get_filename_component(source ${file} ABSOLUTE)
        get_filename_component(name ${file} NAME)
        string(REPLACE "." "_" variable ${name})
        set(base ${folder}/shaders/${name})
        # Written only where it is another one.
        file(CONFIGURE OUTPUT ${base}.h @ONLY
            CONTENT "#pragma once\n#include <stdint.h>\nstatic const uint32_t ${variable}[] =\n#include \"${name}.inc\"\n    ;\n")
        set(options -O --target-env=vulkan1.3)
        add_custom_command(OUTPUT ${base}.inc
            COMMAND ${NEBULA_GLSLC} ${options} -MD -MF ${base}.d -MT ${base}.inc -o ${base}.spv ${source}
            COMMAND ${NEBULA_SPIRV_VAL} --target-env vulkan1.3 ${base}.spv
            COMMAND ${CMAKE_COMMAND} -D INPUT=${base}.spv -D OUTPUT=${base}.inc -P ${PROJECT_SOURCE_DIR}/cmake/spirv_words.cmake
            MAIN_DEPENDENCY ${source}
            DEPENDS ${PROJECT_SOURCE_DIR}/cmake/spirv_words.cmake
            DEPFILE ${base}.d
            COMMENT "Building shader ${name}"
            VERBATIM)
        target_sources(${target} PRIVATE ${base}.inc)
    endforeach()
    target_include_directories(${target} PRIVATE ${folder})
endfunction()
