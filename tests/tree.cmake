# SPDX-License-Identifier: MIT
# Checks of the sources themselves; each is a script that also runs by hand.
set(scripts ${PROJECT_SOURCE_DIR}/scripts)

function(nebula_tree_test name)
    add_test(NAME tree.${name} COMMAND ${CMAKE_COMMAND} -E env
        CC=${CMAKE_C_COMPILER} CXX=${CMAKE_CXX_COMPILER} NM=${CMAKE_NM} ${ARGN})
    set_tests_properties(tree.${name} PROPERTIES TIMEOUT 120 LABELS tree)
endfunction()

nebula_tree_test(layers sh ${scripts}/check_layers.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(docs sh ${scripts}/check_docs.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(bad_input sh ${scripts}/check_bad_input.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(style sh ${scripts}/check_style.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(headers sh ${scripts}/check_headers.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(sketches sh ${scripts}/check_sketches.sh ${PROJECT_SOURCE_DIR})
set(module_libraries)
foreach(module record net scene gpu)
    if(TARGET nebula_${module})
        list(APPEND module_libraries $<TARGET_FILE:nebula_${module}>)
    endif()
endforeach()
nebula_tree_test(symbols sh ${scripts}/check_symbols.sh
    ${PROJECT_SOURCE_DIR} $<TARGET_FILE:nebula> $<TARGET_FILE:nebula_shared> ${module_libraries})
nebula_tree_test(readme sh ${scripts}/check_readme.sh ${PROJECT_SOURCE_DIR} $<TARGET_FILE:nebula>)
nebula_tree_test(dev sh ${scripts}/check_dev.sh ${PROJECT_SOURCE_DIR})
nebula_tree_test(selftest sh ${scripts}/selftest.sh ${PROJECT_SOURCE_DIR})
set_tests_properties(tree.selftest PROPERTIES TIMEOUT 300)

# Of an optimised build, and where those are tested: not with the checks of the sources.
if(nebula_is_hardened AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
    set(hardened $<TARGET_FILE:nebula_shared>)
    foreach(program nebula_demo nebula_replay)
        if(TARGET ${program})
            list(APPEND hardened $<TARGET_FILE:${program}>)
        endif()
    endforeach()
    nebula_tree_test(hardening sh ${scripts}/check_hardening.sh ${hardened})
    set_tests_properties(tree.hardening PROPERTIES LABELS program)
endif()
