# SPDX-License-Identifier: MIT
# How a layer, a library and a program of this project are made.

# PROJECT_IS_TOP_LEVEL exists only from CMake 3.21 on.
if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
    set(nebula_is_top ON)
else()
    set(nebula_is_top OFF)
endif()

find_package(Threads REQUIRED)
include(GNUInstallDirs)

# A macro: it sets variables and directory options of the caller.
macro(nebula_defaults)
    if(nebula_is_top AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
        set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
    endif()
    if(nebula_is_top)
        set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    endif()
    if(NEBULA_SANITIZE)
        # An unrecovered report ends the test with a failure; frame pointers make its stack readable. A report needs the
        # lines alone: to compile all of the debug information takes a fifth longer.
        add_compile_options(-fsanitize=${NEBULA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
        add_link_options(-fsanitize=${NEBULA_SANITIZE})
        # Some fifty programs with a sanitizer's runtime in each: mold links them in a fifth of the time.
        find_program(NEBULA_MOLD mold)
        mark_as_advanced(NEBULA_MOLD)
        if(NEBULA_MOLD)
            add_link_options(-fuse-ld=mold)
        endif()
        # Clang's runtime in a library of its own, as gcc's is: linked into each program it has 10 MB of variables, which
        # synctest compares around each tick.
        if(CMAKE_C_COMPILER_ID STREQUAL "Clang" AND NEBULA_SANITIZE STREQUAL "undefined")
            execute_process(COMMAND ${CMAKE_C_COMPILER} -print-runtime-dir
                OUTPUT_VARIABLE nebula_runtime_dir OUTPUT_STRIP_TRAILING_WHITESPACE)
            add_link_options(-shared-libsan -Wl,-rpath,${nebula_runtime_dir})
        endif()
    endif()
endmacro()

# What attackers of a bug find in the way, in optimised builds without a sanitizer: stack protector, checked copies of
# libc, and tables of the dynamic linker that are read-only once a program runs. scripts/check_hardening.sh looks for it in
# what was built.
option(NEBULA_HARDENING "Harden optimised builds: stack protector, _FORTIFY_SOURCE, full RELRO" ON)
set(nebula_is_hardened OFF)
if(NEBULA_HARDENING AND NOT NEBULA_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES "GNU|Clang" AND UNIX AND NOT APPLE)
    set(nebula_is_hardened ON)
endif()
set(nebula_is_optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
function(nebula_harden target)
    if(nebula_is_hardened)
        # Level 2: of what clang 14 and gcc 12 both know. A distribution's own level would be defined twice.
        target_compile_options(${target} PRIVATE
            "$<${nebula_is_optimised}:-fstack-protector-strong;-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
        target_link_options(${target} PRIVATE "$<${nebula_is_optimised}:-Wl,-z,relro,-z,now>")
    endif()
endfunction()

# Flags of our own targets; none of them reaches a user of the library.
function(nebula_private_flags target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 17 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
        CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
    # Contraction to fused multiply-add would make a state hash depend on the CPU.
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wshadow -ffp-contract=off
        $<$<BOOL:${NEBULA_WERROR}>:-Werror>)
    # Assertion hooks stay on in RelWithDebInfo, where CMake defines NDEBUG; the tests are told, too.
    target_compile_definitions(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:NB_ASSERTIONS=1>)
endfunction()

# One object library per layer, with all sources below its folder, shared by libnebula.a and libnebula.so.
function(nebula_layer layer)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.c)
    add_library(nebula_${layer} OBJECT ${sources})
    nebula_private_flags(nebula_${layer})
    nebula_harden(nebula_${layer})
    target_include_directories(nebula_${layer} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    set_target_properties(nebula_${layer} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_compile_definitions(nebula_${layer} PRIVATE $<$<NOT:$<BOOL:${NEBULA_TRACE}>>:NB_TRACE=0>)
    set_property(GLOBAL APPEND PROPERTY nebula_layers nebula_${layer})
endfunction()

function(nebula_library target kind)
    get_property(layers GLOBAL PROPERTY nebula_layers)
    add_library(${target} ${kind})
    foreach(layer IN LISTS layers)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer}>)
    endforeach()
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${target} PRIVATE Threads::Threads)
    nebula_harden(${target})
    # Only a build without the trace differs from what the headers say by themselves.
    if(NOT NEBULA_TRACE)
        target_compile_definitions(${target} PUBLIC NB_TRACE=0)
    endif()
    set_target_properties(${target} PROPERTIES
        LINKER_LANGUAGE C
        VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    # Sanitizer runtimes are resolved at load time.
    if(kind STREQUAL "SHARED" AND NOT NEBULA_SANITIZE AND NOT APPLE AND NOT WIN32)
        target_link_options(${target} PRIVATE -Wl,--no-undefined)
    endif()
endfunction()

# nebula_module(NAME LIBRARY...): the sources below modules/<name> as the static library nebula_<name> over the core's public headers,
# with its own in modules/<name>/include.
function(nebula_module name)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/modules/${name}/*.c)
    add_library(nebula_${name} STATIC ${sources})
    add_library(nebula::${name} ALIAS nebula_${name})
    nebula_private_flags(nebula_${name})
    nebula_harden(nebula_${name})
    target_include_directories(nebula_${name} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/modules/${name}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    get_target_property(core nebula::nebula ALIASED_TARGET)
    target_link_libraries(nebula_${name} PUBLIC ${core} PRIVATE ${ARGN})
    set_target_properties(nebula_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    # A parent project builds it by linking it.
    if(NOT nebula_is_top)
        set_target_properties(nebula_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
endfunction()

# A program against the public headers and the static library.
function(nebula_program target)
    add_executable(${target} ${ARGN})
    nebula_private_flags(${target})
    nebula_harden(${target})
    target_link_libraries(${target} PRIVATE nebula)
endfunction()

# C++ is for one example, a consumer test and the benchmark's peers; without a compiler those are left out.
macro(nebula_enable_cxx)
    include(CheckLanguage)
    check_language(CXX)
    if(CMAKE_CXX_COMPILER)
        enable_language(CXX)
    else()
        message(STATUS "nebula: no C++ compiler: C++ examples and peers are left out")
    endif()
endmacro()
