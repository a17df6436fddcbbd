# SPDX-License-Identifier: MIT
file(GLOB demo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/demo/*.c)
if(demo_sources)
    nebula_program(nebula_demo ${demo_sources})
    set_target_properties(nebula_demo PROPERTIES OUTPUT_NAME nebula-demo)
endif()
