# SPDX-License-Identifier: MIT
include(CMakePackageConfigHelpers)

set_target_properties(nebula PROPERTIES EXPORT_NAME static)
set_target_properties(nebula_shared PROPERTIES EXPORT_NAME shared)
install(TARGETS nebula nebula_shared EXPORT nebula-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/nebula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/nebula)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nebula)
install(EXPORT nebula-targets NAMESPACE nebula:: DESTINATION ${package_dir})
configure_package_config_file(cmake/nebula-config.cmake.in ${PROJECT_BINARY_DIR}/nebula-config.cmake
    INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/nebula-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/nebula-config.cmake ${PROJECT_BINARY_DIR}/nebula-config-version.cmake
    DESTINATION ${package_dir})

# Each module has an export of its own: its third-party libraries are asked for only by those who use it.
foreach(module record net scene gpu)
    if(TARGET nebula_${module})
        set_target_properties(nebula_${module} PROPERTIES EXPORT_NAME ${module})
        install(TARGETS nebula_${module} EXPORT nebula-${module}-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
        install(EXPORT nebula-${module}-targets NAMESPACE nebula:: DESTINATION ${package_dir})
        install(DIRECTORY modules/${module}/include/nebula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            FILES_MATCHING PATTERN "*.h")
    endif()
endforeach()

# The prefix is told from the .pc file's own place, so that an installed tree may be moved.
file(RELATIVE_PATH nebula_pc_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
string(REGEX REPLACE "/$" "" nebula_pc_prefix "${nebula_pc_prefix}")
set(nebula_pc_cflags "")
if(NOT NEBULA_TRACE)
    set(nebula_pc_cflags " -DNB_TRACE=0")
endif()
configure_file(cmake/nebula.pc.in ${PROJECT_BINARY_DIR}/nebula.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nebula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(module record net scene gpu)
    if(TARGET nebula_${module})
        configure_file(cmake/nebula-${module}.pc.in ${PROJECT_BINARY_DIR}/nebula-${module}.pc @ONLY)
        install(FILES ${PROJECT_BINARY_DIR}/nebula-${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    endif()
endforeach()
