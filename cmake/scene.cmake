# SPDX-License-Identifier: MIT
# The module scene: nebula_scene, also known as nebula::scene, with nothing but libc.
option(NEBULA_BUILD_SCENE "Build the module scene" ON)
if(NEBULA_BUILD_SCENE)
    nebula_module(scene)
endif()
