# SPDX-License-Identifier: MIT
# tools/nebula-<name> becomes the program nebula-<name>, where the module it is for is built.
if(TARGET nebula_record)
    file(GLOB replay_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/nebula-replay/*.c)
    nebula_program(nebula_replay ${replay_sources})
    target_link_libraries(nebula_replay PRIVATE nebula_record)
    set_target_properties(nebula_replay PROPERTIES OUTPUT_NAME nebula-replay)
    if(NEBULA_INSTALL)
        install(TARGETS nebula_replay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endif()
