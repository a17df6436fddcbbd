# SPDX-License-Identifier: MIT
# examples/<name>/main.c or main.cpp becomes the program example_<name>. Each ends by itself, so each is a test too.
file(GLOB example_mains CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/examples/*/main.c ${PROJECT_SOURCE_DIR}/examples/*/main.cpp)
foreach(main IN LISTS example_mains)
    get_filename_component(folder ${main} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(main MATCHES "cpp$" AND NOT CMAKE_CXX_COMPILER)
        continue()
    endif()
    file(GLOB example_sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.cpp)
    nebula_program(example_${name} ${example_sources})
    if(NEBULA_BUILD_TESTS)
        add_test(NAME example.${name} COMMAND example_${name})
        set_tests_properties(example.${name} PROPERTIES TIMEOUT 120 LABELS program)
    endif()
endforeach()
