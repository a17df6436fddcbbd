# SPDX-License-Identifier: MIT
# The libraries that test_reload loads and unloads: their functions are the program's, as those of a game's library.
function(nebula_reload_library name version)
    add_library(${name} MODULE reload/library.c)
    nebula_private_flags(${name})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    target_compile_definitions(${name} PRIVATE RELOAD_VERSION=${version})
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" C_VISIBILITY_PRESET hidden)
    target_compile_definitions(test_reload PRIVATE ${name}_path="$<TARGET_FILE:${name}>")
    add_dependencies(test_reload ${name})
endfunction()

if(TARGET test_reload)
    set_target_properties(test_reload PROPERTIES ENABLE_EXPORTS ON)
    target_link_libraries(test_reload PRIVATE ${CMAKE_DL_LIBS})
    nebula_reload_library(reload_broken 0)
    nebula_reload_library(reload_one 1)
    nebula_reload_library(reload_two 2)
endif()
