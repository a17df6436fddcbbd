// SPDX-License-Identifier: MIT
#pragma once

// Chunks that come and go around the explorer: generated layer by layer and meshed side by side in jobs of many frames,
// published into a local table that the picture is made from. A teleport cancels what is under way. The one rule: what
// is loaded depends on the machine, so nothing simulated looks at it.

#include "nebula/engine.h"

#include "chunk_table.h"
#include "mesher.h"
#include "planet.h"
#include "work_materials.h"
#include "work_upload.h"

// Chunks around the explorer in each direction: as far as it sees, on a machine of two cores within seconds.
#define STREAMER_RADIUS 5

// Slots: what is wanted, and the margin before a chunk goes.
#define STREAMER_CHUNKS_MAX 2048u

// Quads kept of a chunk: land has some hundred, a forest of caves some thousand. More are dropped, and counted.
#define STREAMER_QUADS_MAX 4096u

// Jobs under way: enough for every core, few enough that a teleport does not wait.
#define STREAMER_JOBS_MAX 64u

// Chunks, and quads of them, that one frame hands to the upload; more wait for the next frame.
#define STREAMER_FRESH_MAX 64u
#define STREAMER_FRESH_QUADS_MAX 32768u

// Columns of the local table "chunks".
typedef enum chunk_column {
    CHUNK_COORD,   // a chunk_coord
    CHUNK_DRAW,    // a material_draw
    CHUNK_SIGHT,   // a byte: the newest occlusion_result
    CHUNK_HISTORY, // a byte: of the last eight
    CHUNK_SLOT,    // a uint32_t: its slot
    CHUNK_COLUMN_COUNT,
} chunk_column;

// Memory of one job, from its start to the chunk's end or its mesh's publication.
typedef struct streamer_buffer {
    terrain_columns columns;
    uint8_t voxels[TERRAIN_PADDED_VOXELS];
    mesh_quad quads[STREAMER_QUADS_MAX];
    struct streamer_buffer *next; // that is free
} streamer_buffer;

typedef struct streamer {
    const planet *planet;
    nb_async *async;
    nb_world *world;
    nb_table chunks;
    nb_trace *trace; // NULL = none
    nb_label generate_label, mesh_label;
    nb_token *journey; // what is under way hangs from it
    uint32_t journey_number;
    stream_area area;
    chunk_table table;
    nb_entity *rows;           // by slot; null = no row yet
    mesh_quad *quads;          // by slot, STREAMER_QUADS_MAX each
    streamer_buffer **buffers; // by slot: held for it
    streamer_buffer *buffer_memory, *free_buffer;
    void *memory[5]; // to be freed
    // For the upload of this frame, published.
    upload_item fresh[STREAMER_FRESH_MAX]; // quads is a number of fresh_quads, see streamer_fresh
    uint32_t fresh_first[STREAMER_FRESH_MAX];
    uint32_t fresh_count, fresh_quad_count;
    mesh_quad *fresh_quads;
    uint32_t fresh_region, fresh_first_region, fresh_quads_region;
    upload_ring ring;
    uint64_t ready_count, cancelled_count, dropped_quad_count, late_upload_count;
} streamer;

// Adds the table "chunks" to the planet's world and attaches the module "streamer".
nb_result streamer_attach(streamer *s, nb_engine *engine, const planet *land);

// Frees what streamer_attach took, after the engine is destroyed.
void streamer_end(streamer *s);
