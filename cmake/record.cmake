# SPDX-License-Identifier: MIT
# The module record: nebula_record, also known as nebula::record, with zstd. On where zstd is found.
find_path(NEBULA_ZSTD_INCLUDE zstd.h)
find_library(NEBULA_ZSTD_LIBRARY zstd)
mark_as_advanced(NEBULA_ZSTD_INCLUDE NEBULA_ZSTD_LIBRARY)
set(nebula_has_zstd OFF)
if(NEBULA_ZSTD_INCLUDE AND NEBULA_ZSTD_LIBRARY)
    set(nebula_has_zstd ON)
endif()
option(NEBULA_BUILD_RECORD "Build the module record (needs zstd)" ${nebula_has_zstd})
if(NOT nebula_has_zstd)
    message(STATUS "nebula: zstd is missing (Debian: libzstd-dev); the module record is left out")
    return()
endif()
if(NOT NEBULA_BUILD_RECORD)
    return()
endif()

# A target of its own: what is exported names it, not where it is on this machine.
add_library(nebula::zstd UNKNOWN IMPORTED)
set_target_properties(nebula::zstd PROPERTIES IMPORTED_LOCATION ${NEBULA_ZSTD_LIBRARY})
nebula_module(record nebula::zstd)
target_include_directories(nebula_record SYSTEM PRIVATE ${NEBULA_ZSTD_INCLUDE})
