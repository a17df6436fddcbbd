# SPDX-License-Identifier: MIT
# The command line of nebula-replay, with a recording of version 1 of the format and with a game of its own.
if(NOT TARGET nebula_replay)
    return()
endif()

function(nebula_tiny_game name)
    add_library(${name} MODULE tools/tiny_game.c)
    nebula_private_flags(${name})
    # Only headers: the functions are the program's that loads it.
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/modules/record/include)
    target_compile_definitions(${name} PRIVATE ${ARGN})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so")
endfunction()

nebula_program(tiny_recorder tools/tiny_game.c)
target_link_libraries(tiny_recorder PRIVATE nebula_record)
target_compile_definitions(tiny_recorder PRIVATE TINY_RECORDER)
nebula_program(tiny_recorder_wrong tools/tiny_game.c)
target_link_libraries(tiny_recorder_wrong PRIVATE nebula_record)
target_compile_definitions(tiny_recorder_wrong PRIVATE TINY_RECORDER TINY_WRONG=1)
nebula_tiny_game(tiny_game)
nebula_tiny_game(tiny_game_wrong TINY_WRONG=1)
nebula_tiny_game(tiny_game_other TINY_OTHER=1)
nebula_tiny_game(tiny_game_none TINY_NONE)

set(has_planet no)
if(TARGET nebula_demo_parts)
    set(has_planet yes)
endif()
add_test(NAME tool.nebula_replay COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/tools/nebula_replay.sh
    $<TARGET_FILE:nebula_replay> ${CMAKE_CURRENT_SOURCE_DIR}/golden/recording_v1.nbr ${CMAKE_CURRENT_BINARY_DIR} ${has_planet})
set_tests_properties(tool.nebula_replay PROPERTIES TIMEOUT 60 LABELS program)
