// SPDX-License-Identifier: MIT
#pragma once

// From the planet to its picture: hands meshes to the renderer as chunks come and go, and in FrameGraph what the nine
// kinds of work have made of this frame. The one rule: it only reads; nothing simulated knows of it.

#include "nebula/engine.h"

#include "../chunks/streamer.h"
#include "../game/planet.h"
#include "../jobs/picture.h"
#include "render.h"
#include "show_scene.h"

#define VIEW_NOTE_SIZE 64

// What the page of numbers is made from, beside the engine's own.
typedef struct view_page {
    bool is_shown; // F1
    char note[VIEW_NOTE_SIZE];
    uint64_t note_frames; // for which the note stays
} view_page;

typedef struct view {
    nb_gpu *gpu;
    render *render;
    nb_engine *engine;
    const planet *planet;
    streamer *streamer;
    const picture *picture;
    const status *status;
    nb_store *world;
    view_page page;
    uint32_t bucket_count; // jobs that record the ground
    bool is_blind;         // nothing is drawn, while meshes are still uploaded: nobody looks at these frames
    uint64_t stale_count;  // told last
    render_mesh meshes[STREAMER_CHUNKS_MAX];  // by slot
    uint64_t frame_end;                       // of the frame that is drawn: its index + 1
    uint32_t hidden_count;                    // chunks in the camera's view that the land hides, in this frame
    uint32_t hidden_triangle_count;           // of them, which would have been drawn
    render_chunk chunks[STREAMER_CHUNKS_MAX]; // of this frame, as the rest
    render_creature creatures[RENDER_CREATURES_MAX];
    render_box boxes[RENDER_BOXES_MAX];
    render_impostor impostors[RENDER_IMPOSTORS_MAX];
    render_particle particles[PICTURE_PARTICLES];
    render_light lights[HOME_LIGHTS];
    overlay overlay;
} view;

// Makes a renderer for the device and attaches the module "view". The device is attached to the engine already.
// NB_ERR_UNSUPPORTED: built without shaders, and the device would need them.
nb_result view_attach(view *v, nb_engine *engine, nb_gpu *gpu, const show_scene *scene);

// Whether everything that is wanted is on the device: the picture does not change by waiting.
bool view_is_settled(const view *v);

// After the engine is destroyed, before the device is.
void view_end(view *v);
