# SPDX-License-Identifier: MIT
# tools/nebula-<name> becomes the program nebula-<name>, where the module it is for is built.
if(TARGET nebula_record)
    file(GLOB_RECURSE replay_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/nebula-replay/*.c)
    nebula_program(nebula_replay ${replay_sources})
    target_link_libraries(nebula_replay PRIVATE nebula_record ${CMAKE_DL_LIBS})
    set_target_properties(nebula_replay PROPERTIES OUTPUT_NAME nebula-replay ENABLE_EXPORTS ON)
    # All of the core is in the program, and exported: the libraries of games use it from there.
    get_property(layers GLOBAL PROPERTY nebula_layers)
    foreach(layer IN LISTS layers)
        target_sources(nebula_replay PRIVATE $<TARGET_OBJECTS:${layer}>)
    endforeach()
    target_link_libraries(nebula_replay PRIVATE Threads::Threads)
    # The demo's planet is built in, where the demo is built.
    if(TARGET nebula_demo_parts)
        target_link_libraries(nebula_replay PRIVATE nebula_demo_parts)
        target_compile_definitions(nebula_replay PRIVATE TOOL_HAS_GAME=1)
    endif()
    if(NEBULA_INSTALL)
        install(TARGETS nebula_replay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endif()
