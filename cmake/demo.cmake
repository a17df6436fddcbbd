# SPDX-License-Identifier: MIT
# Everything but main.c is a library of its own, which the demo's tests link.
file(GLOB demo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/demo/*.c)
list(FILTER demo_sources EXCLUDE REGEX "/main\\.c$")
if(demo_sources)
    add_library(nebula_demo_parts STATIC ${demo_sources})
    nebula_private_flags(nebula_demo_parts)
    target_link_libraries(nebula_demo_parts PUBLIC nebula m)
    nebula_program(nebula_demo ${PROJECT_SOURCE_DIR}/demo/main.c)
    target_link_libraries(nebula_demo PRIVATE nebula_demo_parts)
    set_target_properties(nebula_demo PROPERTIES OUTPUT_NAME nebula-demo)
endif()
