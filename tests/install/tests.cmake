# SPDX-License-Identifier: MIT
# Four ways to use Nebula, each by a project of a few lines. The installed tree is moved before it is used.
set(install_script ${CMAKE_CURRENT_SOURCE_DIR}/install/check_install.sh)
set(install_work ${CMAKE_CURRENT_BINARY_DIR}/install)

function(nebula_install_test way)
    add_test(NAME install.${way} COMMAND ${CMAKE_COMMAND} -E env
        CC=${CMAKE_C_COMPILER} CXX=${CMAKE_CXX_COMPILER} CMAKE=${CMAKE_COMMAND} GENERATOR=${CMAKE_GENERATOR}
        sh ${install_script} ${way} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${install_work})
    set_tests_properties(install.${way} PROPERTIES TIMEOUT 120 LABELS install)
endfunction()

nebula_install_test(stage)
set_tests_properties(install.stage PROPERTIES FIXTURES_SETUP nebula_stage)
nebula_install_test(find_package)
nebula_install_test(pkg_config)
set_tests_properties(install.find_package install.pkg_config PROPERTIES FIXTURES_REQUIRED nebula_stage)
nebula_install_test(add_subdirectory)
nebula_install_test(plain_cc)
