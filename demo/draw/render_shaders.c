// SPDX-License-Identifier: MIT
// The shaders, compiled into the program.

#include "render_internal.h"

#ifdef DEMO_HAS_SHADERS
#include "shaders/box.frag.h"
#include "shaders/box.vert.h"
#include "shaders/box_lit.vert.h"
#include "shaders/box_rich.vert.h"
#include "shaders/dome.frag.h"
#include "shaders/dome.vert.h"
#include "shaders/glow.frag.h"
#include "shaders/ground.frag.h"
#include "shaders/ground.vert.h"
#include "shaders/ground_lit.frag.h"
#include "shaders/ground_lit.vert.h"
#include "shaders/ground_rich.frag.h"
#include "shaders/ground_rich.vert.h"
#include "shaders/impostor.frag.h"
#include "shaders/impostor.vert.h"
#include "shaders/overlay.frag.h"
#include "shaders/overlay.vert.h"
#include "shaders/particle.frag.h"
#include "shaders/particle.vert.h"
#include "shaders/post.frag.h"
#include "shaders/screen.vert.h"
#include "shaders/shadow_box.vert.h"
#include "shaders/shadow_ground.vert.h"
#include "shaders/stars.frag.h"
#include "shaders/stars.vert.h"
#include "shaders/water.frag.h"
#include "shaders/water.vert.h"

#define SHADER(name) \
    { name, sizeof name }
#else
// What the null device takes for a shader.
static const uint32_t NOTHING[5] = {0x07230203, 0x00010600, 0, 1, 0};
#define SHADER(name) \
    { NOTHING, sizeof NOTHING }
#endif

static const nb_gpu_shader SHADERS[SHADER_COUNT] = {
    [SHADER_GROUND_VERT] = SHADER(ground_vert),
    [SHADER_GROUND_FRAG] = SHADER(ground_frag),
    [SHADER_GROUND_LIT_VERT] = SHADER(ground_lit_vert),
    [SHADER_GROUND_LIT_FRAG] = SHADER(ground_lit_frag),
    [SHADER_GROUND_RICH_VERT] = SHADER(ground_rich_vert),
    [SHADER_GROUND_RICH_FRAG] = SHADER(ground_rich_frag),
    [SHADER_SHADOW_GROUND_VERT] = SHADER(shadow_ground_vert),
    [SHADER_SHADOW_BOX_VERT] = SHADER(shadow_box_vert),
    [SHADER_WATER_VERT] = SHADER(water_vert),
    [SHADER_WATER_FRAG] = SHADER(water_frag),
    [SHADER_DOME_VERT] = SHADER(dome_vert),
    [SHADER_DOME_FRAG] = SHADER(dome_frag),
    [SHADER_STARS_VERT] = SHADER(stars_vert),
    [SHADER_STARS_FRAG] = SHADER(stars_frag),
    [SHADER_BOX_VERT] = SHADER(box_vert),
    [SHADER_BOX_LIT_VERT] = SHADER(box_lit_vert),
    [SHADER_BOX_RICH_VERT] = SHADER(box_rich_vert),
    [SHADER_BOX_FRAG] = SHADER(box_frag),
    [SHADER_IMPOSTOR_VERT] = SHADER(impostor_vert),
    [SHADER_IMPOSTOR_FRAG] = SHADER(impostor_frag),
    [SHADER_PARTICLE_VERT] = SHADER(particle_vert),
    [SHADER_PARTICLE_FRAG] = SHADER(particle_frag),
    [SHADER_SCREEN_VERT] = SHADER(screen_vert),
    [SHADER_GLOW_FRAG] = SHADER(glow_frag),
    [SHADER_POST_FRAG] = SHADER(post_frag),
    [SHADER_OVERLAY_VERT] = SHADER(overlay_vert),
    [SHADER_OVERLAY_FRAG] = SHADER(overlay_frag),
};

nb_gpu_shader render_shader_of(render_shader shader) {
    return shader < SHADER_COUNT ? SHADERS[shader] : (nb_gpu_shader){0};
}

bool render_has_shaders(void) {
#ifdef DEMO_HAS_SHADERS
    return true;
#else
    return false;
#endif
}
