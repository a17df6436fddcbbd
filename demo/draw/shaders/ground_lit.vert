#version 460
// SPDX-License-Identifier: MIT
#extension GL_GOOGLE_include_directive : require
#define HAS_LIGHTS
#include "ground_vert.glsl"
