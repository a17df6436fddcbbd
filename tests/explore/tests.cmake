# SPDX-License-Identifier: MIT
# The explorer runs the library's own sources over a virtual scheduler: its runtime (tests/explore/explore.c) replaces
# src/platform/platform_<os>.c. scripts/mutants.sh has the same recipe. Not with sanitizers: the explorer watches memory by
# itself, the thread sanitizer cannot follow its fibers, and the others find nothing more in the same sources. There its own
# sources alone are compiled, and only by the undefined-behaviour preset, for the warnings of clang.
if(NEBULA_SANITIZE)
    if(NEBULA_SANITIZE STREQUAL "undefined")
        file(GLOB sources CONFIGURE_DEPENDS explore/*.c simulation/*.c)
        add_library(explore_sources OBJECT ${sources})
        nebula_private_flags(explore_sources)
        nebula_test_flags(explore_sources)
        target_compile_definitions(explore_sources PRIVATE NB_EXPLORE)
        target_include_directories(explore_sources PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
            ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/modules ${PROJECT_SOURCE_DIR}/modules/net/include)
        target_include_directories(explore_sources SYSTEM PRIVATE ${CMOCKA_INCLUDE})
    endif()
    return()
endif()

file(GLOB_RECURSE library CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
list(FILTER library EXCLUDE REGEX "/platform_[a-z]+\\.c$")
# An archive: what a program does not use needs no stand-in in the runtime.
add_library(nebula_explore STATIC ${library} explore/explore.c)
nebula_private_flags(nebula_explore)
target_compile_definitions(nebula_explore PUBLIC NB_EXPLORE)
# Explores three times as many schedules with -O1. The checked longjmp of libc would end a jump between fibers.
target_compile_options(nebula_explore PRIVATE $<$<CONFIG:Debug>:-O1> -U_FORTIFY_SOURCE)
target_include_directories(nebula_explore PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
target_include_directories(nebula_explore SYSTEM PUBLIC ${CMOCKA_INCLUDE})
target_link_libraries(nebula_explore PUBLIC Threads::Threads)

file(GLOB sources CONFIGURE_DEPENDS explore/test_*.c)
add_executable(test_explore ${sources} support/runner.c)
nebula_private_flags(test_explore)
nebula_test_flags(test_explore)
target_link_libraries(test_explore PRIVATE nebula_explore ${CMOCKA_LIBRARY})
foreach(source IN LISTS sources)
    get_filename_component(stem ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" stem ${stem})
    nebula_test_file(explore/${stem} test_explore "" "")
    set_tests_properties(explore/${stem} PROPERTIES LABELS explore)
endforeach()

# The whole runtime under faults, over the same scheduler.
file(GLOB parts CONFIGURE_DEPENDS simulation/*.c)
file(GLOB_RECURSE net CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/modules/net/*.c)
add_executable(simulate ${parts} ${net})
nebula_private_flags(simulate)
target_link_libraries(simulate PRIVATE nebula_explore)
target_include_directories(simulate PRIVATE ${PROJECT_SOURCE_DIR}/modules ${PROJECT_SOURCE_DIR}/modules/net/include)
target_compile_options(simulate PRIVATE $<$<CONFIG:Debug>:-O1>)
add_test(NAME simulate COMMAND simulate)
set_tests_properties(simulate PROPERTIES TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS explore)
