# SPDX-License-Identifier: MIT
# A folder below examples with a main.c or main.cpp becomes the program example_<its name>, with all sources below it. Each
# ends by itself, so each is a test too.
file(GLOB_RECURSE example_mains CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/examples/main.c ${PROJECT_SOURCE_DIR}/examples/main.cpp)
foreach(main IN LISTS example_mains)
    get_filename_component(folder ${main} DIRECTORY)
    get_filename_component(name ${folder} NAME)
    if(main MATCHES "cpp$" AND NOT CMAKE_CXX_COMPILER)
        continue()
    endif()
    file(GLOB_RECURSE example_sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.cpp)
    # A line such as `// module: record` names the module that an example shows.
    file(STRINGS ${main} module REGEX "^// module:" LIMIT_COUNT 1)
    string(REGEX REPLACE "^// module: *" "" module "${module}")
    if(module AND NOT TARGET nebula_${module})
        continue()
    endif()
    nebula_program(example_${name} ${example_sources})
    if(module)
        target_link_libraries(example_${name} PRIVATE nebula_${module})
    endif()
    if(NEBULA_BUILD_TESTS)
        add_test(NAME example.${name} COMMAND example_${name})
        set_tests_properties(example.${name} PROPERTIES TIMEOUT 120 LABELS program)
    endif()
endforeach()
