# SPDX-License-Identifier: MIT
# Pictures of the demo: in lockstep always the same, and on lavapipe those of tests/golden/pictures. Not with sanitizers: a
# flight takes minutes there, and the other tests of the demo show them the same code.
if(NOT TARGET nebula_demo OR NOT TARGET nebula_gpu OR NEBULA_SANITIZE)
    return()
endif()
if(NOT EXISTS "${NEBULA_STB_INCLUDE}/stb_image.h")
    return()
endif()

add_executable(compare_pictures pictures/compare_pictures.c)
nebula_private_flags(compare_pictures)
target_include_directories(compare_pictures SYSTEM PRIVATE ${NEBULA_STB_INCLUDE})
target_link_libraries(compare_pictures PRIVATE m)

add_test(NAME golden.pictures
    COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/pictures/golden.sh $<TARGET_FILE:nebula_demo> $<TARGET_FILE:compare_pictures>
        ${CMAKE_CURRENT_SOURCE_DIR}/golden/pictures ${CMAKE_CURRENT_BINARY_DIR}/pictures)
add_test(NAME demo.lockstep COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/pictures/lockstep.sh $<TARGET_FILE:nebula_demo>)
set_tests_properties(golden.pictures demo.lockstep PROPERTIES
    TIMEOUT ${NEBULA_TEST_TIMEOUT_S} LABELS pictures SKIP_RETURN_CODE 77)
