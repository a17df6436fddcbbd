// SPDX-License-Identifier: MIT
#pragma once

// Chunks that come and go around the explorer, as coarse as they are far: nodes of the planet's quadtrees, generated
// row by row and meshed side by side in jobs of many frames, uploaded within a budget, and then published into a local
// table that the picture is made from. A teleport cancels what is under way. The one rule: what is loaded depends on
// the machine, so nothing simulated looks at it.

#include "nebula/engine.h"

#include "../game/planet.h"
#include "chunk_table.h"
#include "lod.h"
#include "material_draw.h"
#include "mesher.h"
#include "quad_pool.h"
#include "upload_ring.h"
#include "volume.h"

// Slots: those that are not wanted any more, but still drawn, need some too.
#define STREAMER_CHUNKS_MAX 8192u

// Quads kept of a chunk: land has two thousand, a mountain side of steps some eight. More are dropped, and counted.
#define STREAMER_QUADS_MAX 10240u
#define STREAMER_WATER_MAX (NODE_CELLS * NODE_CELLS)
#define STREAMER_SLOT_QUADS (STREAMER_QUADS_MAX + STREAMER_WATER_MAX)

// Quads of all chunks: 8000 nodes of some two thousand each, and room for those that are mountains: 128 MiB. A chunk
// that finds no room is made again later.
#define STREAMER_QUADS_TOTAL (16u << 20)

// Jobs under way: enough for every core, few enough that a teleport does not wait.
#define STREAMER_JOBS_MAX 64u

// Chunks, and quads of them, that one frame hands to the upload; more wait for the next frame.
#define STREAMER_FRESH_MAX 128u
#define STREAMER_FRESH_QUADS_MAX (2u << 17) // 2 MiB: a millisecond or two of copying

_Static_assert(LOD_NODES_MAX + 2 * STREAMER_JOBS_MAX <= STREAMER_CHUNKS_MAX, "what is wanted fits beside what goes");
_Static_assert(STREAMER_SLOT_QUADS <= STREAMER_FRESH_QUADS_MAX, "every chunk fits a frame's upload");

// Columns of the local table "chunks": those that are uploaded.
typedef enum chunk_column {
    CHUNK_BOUNDS,   // a lod_bounds
    CHUNK_DRAW,     // a material_draw
    CHUNK_IS_DRAWN, // a byte: in this frame it is drawn, where it is visible
    CHUNK_LAND,     // an occlusion_land
    CHUNK_COLUMN_COUNT,
} chunk_column;

// Memory of one job, from its start to the chunk's end or its mesh's publication.
typedef struct streamer_buffer {
    volume volume;
    mesh_quad quads[STREAMER_QUADS_MAX];
    mesh_quad water[STREAMER_WATER_MAX];
    struct streamer_buffer *next; // that is free
} streamer_buffer;

// What is known of a chunk beside the table, by slot.
typedef struct streamer_slot {
    nb_entity row;           // null = no row yet
    streamer_buffer *buffer; // held for it, from its start to its mesh's publication
    material_draw draw;      // once it is meshed
    int16_t low, high;       // metres above the sea
    int16_t solid;           // the same: below it all is opaque
    uint32_t page_first;     // of its quads in the pool
    uint32_t page_count;     // 0 = none yet
    uint64_t order;          // of the meshed ones: who waits longest
    bool is_drawn;
    bool is_sent; // its mesh was handed to the jobs that upload
} streamer_slot;

// Memory that a device reads in one frame, as the device names it.
typedef struct streamer_room {
    void *memory; // NULL = none
    uint64_t buffer, offset;
    size_t size_bytes;
} streamer_room;

// Where meshes are drawn from, if anywhere: a chunk is ready once it is there. On the coordinator, in Gameplay, but for
// `room`. What jobs have filled is uploaded from there; where one had no room, or came late, the device copies itself.
typedef struct streamer_device {
    // Takes the mesh of a slot, or is asked again about one that it took: whether it can be drawn now.
    bool (*take)(void *user, uint32_t slot, const material_draw *draw, const mesh_quad *quads);
    void (*drop)(void *user, uint32_t slot); // one that was taken, or is not known
    // On any thread, for jobs of a frame: memory for so many bytes.
    streamer_room (*room)(void *user, nb_fence_frame frame, size_t size_bytes);
    // On the coordinator, later in that frame: all quads of a slot lie there.
    void (*filled)(void *user, uint32_t slot, const streamer_room *room);
    void *user;
} streamer_device;

typedef struct streamer {
    const planet *planet;
    streamer_device device; // all zero: nobody draws
    nb_async *async;
    nb_store *world;
    nb_table chunks;
    nb_trace *trace; // NULL = none
    nb_label generate_label, mesh_label;
    nb_token *journey; // what is under way hangs from it
    uint32_t journey_number;
    lod_choice choices[2]; // of this frame and the one before
    uint32_t choice;       // which is of this frame
    vec3d eye;             // that it was made for
    double split;          // the same
    bool is_exact;         // of each frame's eye alone: the same picture whatever was chosen before
    uint8_t coarse;        // nodes are wanted so in this frame; those that are not go when these are ready
    lod_ready ready;
    lod_node drawn[LOD_NODES_MAX];
    uint32_t drawn_count;
    uint32_t missing_count; // wanted, and not ready
    chunk_table table;
    streamer_slot *slots; // by slot
    quad_pool pool;       // of the quads of all chunks
    mesh_quad *quads;     // its memory
    streamer_buffer *buffer_memory, *free_buffer;
    void *memory[4]; // to be freed
    // For the upload of this frame, published.
    upload_item fresh[STREAMER_FRESH_MAX]; // quads is a number of fresh_quads, see fresh_first
    uint32_t fresh_first[STREAMER_FRESH_MAX];
    uint32_t fresh_count, fresh_quad_count;
    mesh_quad *fresh_quads;
    uint32_t fresh_region, fresh_first_region, fresh_quads_region;
    upload_ring ring;
    uint64_t meshed_count; // so far: what gives slots their order
    uint64_t ready_count, cancelled_count, dropped_quad_count;
    uint64_t full_count;  // meshes that found no room in the pool
    uint64_t stale_count; // jobs that teleports have cancelled
} streamer;

// Adds the table "chunks" to the planet's world and attaches the module "streamer".
nb_result streamer_attach(streamer *s, nb_engine *engine, const planet *land);

// Whether everything that is wanted is ready: the picture does not change by waiting.
static inline bool streamer_is_settled(const streamer *s) {
    return s->choices[s->choice].node_count > 0 && s->missing_count == 0;
}

// Frees what streamer_attach took, after the engine is destroyed.
void streamer_end(streamer *s);
