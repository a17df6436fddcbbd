// SPDX-License-Identifier: MIT
// Chunks on their way: jobs of many frames, and what becomes of their results.

#include "streamer.h"

#include <stdlib.h>
#include <string.h>

#include "occlusion_land.h"
#include "quality.h"

// Quads of the ring that uploads go through: three frames of the most.
#define RING_QUADS (4 * STREAMER_FRESH_QUADS_MAX)

// Metres that an eye may move before the choice is made anew, and more for each metre that it is above the ground: a
// hundredth of the smallest node.
#define EYE_REACH 0.3
#define EYE_REACH_PER_METRE 0.003

// Rows of a padded node, and how many a job makes before it looks whether it is still wanted.
#define ROW_FIRST (-1)
#define ROW_END (NODE_CELLS + 1)

static const nb_column_desc chunk_columns[CHUNK_COLUMN_COUNT] = {
    [CHUNK_BOUNDS] = {.name = "bounds", .size_bytes = sizeof(lod_bounds), .flags = NB_COLUMN_SNAPSHOT},
    [CHUNK_DRAW] = {.name = "draw", .size_bytes = sizeof(material_draw), .flags = NB_COLUMN_SNAPSHOT},
    [CHUNK_IS_DRAWN] = {.name = "is_drawn", .size_bytes = 1, .flags = NB_COLUMN_SNAPSHOT},
    [CHUNK_LAND] = {.name = "land", .size_bytes = sizeof(occlusion_land), .flags = NB_COLUMN_SNAPSHOT},
};

// What a job carries; one for generating and one for meshing.
typedef struct chunk_job {
    streamer *streamer;
    streamer_buffer *buffer;
    uint64_t seed;
    chunk_ref ref;
    lod_node node;
    int32_t step;        // row, or face
    uint32_t page_first; // of the pool, from the commit to the publication
    uint32_t page_count;
    mesh_output mesh;
    uint64_t material_bits; // of what was meshed
    int16_t solid;          // metres above the sea: below it all is opaque
} chunk_job;

// --- on any thread ---

static nb_trace_thread *span_begin(const chunk_job *job, nb_label label) {
    nb_trace *trace = job->streamer->trace;
    nb_trace_thread *thread = trace != NULL ? nb_trace_current(trace) : NULL;
    if (thread != NULL) nb_trace_begin(thread, label);
    return thread;
}

static void span_end(nb_trace_thread *thread) {
    if (thread != NULL) nb_trace_end(thread);
}

static void make_columns(chunk_job *job) {
    nb_trace_thread *span = span_begin(job, job->streamer->generate_label);
    volume_columns(&job->buffer->volume, job->step);
    span_end(span);
}

static void make_cells(chunk_job *job) {
    nb_trace_thread *span = span_begin(job, job->streamer->generate_label);
    volume_fit(&job->buffer->volume);
    for (int32_t z = ROW_FIRST; z < ROW_END; ++z) volume_fill(&job->buffer->volume, z);
    span_end(span);
}

static void make_face(chunk_job *job) {
    nb_trace_thread *span = span_begin(job, job->streamer->mesh_label);
    mesh_input input = volume_mesh_input(&job->buffer->volume);
    mesher_face(&input, (mesh_face)job->step, &job->mesh);
    span_end(span);
}

static uint64_t material_bits_of(const mesh_quad *quads, uint32_t count) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < count; ++i) bits |= (uint64_t)1 << mesh_quad_material(quads[i]);
    return bits;
}

static void describe_mesh(chunk_job *job) {
    const volume *v = &job->buffer->volume;
    const mesh_output *m = &job->mesh;
    job->material_bits = material_bits_of(m->quads, m->quad_count) | material_bits_of(m->water, m->water_count);
    // What has holes hides nothing.
    uint32_t solid_layers = m->dropped_count == 0 ? volume_mesh_input(v).open_layer : 0;
    job->solid = (int16_t)(v->base + (int32_t)solid_layers * v->step);
}

static nb_async_status generate(nb_async_call *call, void *state) {
    chunk_job *job = state;
    NB_ASYNC_BEGIN(call);
    volume_begin(&job->buffer->volume, job->seed, job->node);
    for (job->step = ROW_FIRST; job->step < ROW_END; ++job->step) {
        NB_ASYNC_CHECK(call); // ends here once nobody wants the chunk
        make_columns(job);
    }
    NB_ASYNC_CHECK(call);
    make_cells(job);
    NB_ASYNC_END(call);
}

static nb_async_status mesh(nb_async_call *call, void *state) {
    chunk_job *job = state;
    NB_ASYNC_BEGIN(call);
    job->mesh = (mesh_output){.quads = job->buffer->quads,
                              .quad_count_max = STREAMER_QUADS_MAX,
                              .water = job->buffer->water,
                              .water_count_max = STREAMER_WATER_MAX};
    for (job->step = 0; job->step < MESH_FACE_COUNT; ++job->step) {
        make_face(job);
        NB_ASYNC_CHECK(call);
    }
    describe_mesh(job);
    NB_ASYNC_END(call);
}

// --- buffers, on the coordinator ---

static streamer_buffer *buffer_take(streamer *s) {
    streamer_buffer *buffer = s->free_buffer;
    if (buffer != NULL) s->free_buffer = buffer->next;
    return buffer;
}

static void buffer_give(streamer *s, streamer_buffer *buffer) {
    buffer->next = s->free_buffer;
    s->free_buffer = buffer;
}

// Takes a chunk out of the table, and its row. A job under way finds that it is not wanted, and keeps its buffer.
static void unload(streamer *s, uint32_t slot) {
    chunk_ref ref = {slot, s->table.slots[slot].generation};
    streamer_slot *own = &s->slots[slot];
    if (s->table.slots[slot].state == CHUNK_GENERATED) buffer_give(s, own->buffer);
    if (own->row.value != 0) nb_store_despawn(s->world, own->row);
    quad_pool_give(&s->pool, own->page_first, own->page_count);
    if (s->device.drop != NULL) s->device.drop(s->device.user, slot);
    *own = (streamer_slot){0};
    chunk_table_remove(&s->table, ref);
}

// --- results, on the coordinator ---

static bool is_wanted(void *user, uint64_t generation, const void *state) {
    (void)generation;
    const streamer *s = user;
    return chunk_table_get(&s->table, ((const chunk_job *)state)->ref) != NULL;
}

static void discard(void *host, void *state, nb_result reason) {
    (void)host, (void)reason;
    const chunk_job *job = state;
    streamer *s = job->streamer;
    ++s->cancelled_count;
    buffer_give(s, job->buffer);
    quad_pool_give(&s->pool, job->page_first, job->page_count);
    // Cancelled by a teleport, but perhaps near where that has led: it may come again.
    if (chunk_table_get(&s->table, job->ref) != NULL) chunk_table_remove(&s->table, job->ref);
}

static void publish_generated(void *host, void *state) {
    (void)host;
    const chunk_job *job = state;
    chunk_table_advance(&job->streamer->table, job->ref, CHUNK_GENERATED);
    job->streamer->slots[job->ref.slot].buffer = job->buffer;
}

static mesh_quad *page_quads(const streamer *s, uint32_t page) { return s->quads + (size_t)page * QUAD_POOL_PAGE; }
static mesh_quad *quads_of(const streamer *s, uint32_t slot) { return page_quads(s, s->slots[slot].page_first); }

// The mesh moves from the job's memory to the chunk's own: this is what takes time.
static nb_result commit_mesh(void *host, void *state) {
    (void)host;
    chunk_job *job = state;
    streamer *s = job->streamer;
    uint32_t pages = quad_pool_pages(job->mesh.quad_count + job->mesh.water_count);
    if (quad_pool_take(&s->pool, pages, &job->page_first) != NB_OK) {
        ++s->full_count;
        return NB_FULL;
    }
    job->page_count = pages;
    mesh_quad *own = page_quads(s, job->page_first);
    memcpy(own, job->mesh.quads, job->mesh.quad_count * sizeof *own);
    memcpy(own + job->mesh.quad_count, job->mesh.water, job->mesh.water_count * sizeof *own);
    s->dropped_quad_count += job->mesh.dropped_count;
    return NB_OK;
}

static void publish_mesh(void *host, void *state) {
    (void)host;
    const chunk_job *job = state;
    streamer *s = job->streamer;
    const volume *v = &job->buffer->volume;
    uint32_t slot = job->ref.slot;
    uint32_t count = job->mesh.quad_count, water = job->mesh.water_count;
    chunk_table_advance(&s->table, job->ref, CHUNK_MESHED);
    s->slots[slot] = (streamer_slot){.draw = {.node = job->node,
                                              .base = (int16_t)v->base,
                                              .step = (int16_t)v->step,
                                              .material_bits = job->material_bits,
                                              .quad_count = count,
                                              .water_count = water,
                                              .slot = slot},
                                     .low = (int16_t)v->base,
                                     .high = (int16_t)v->high,
                                     .solid = job->solid,
                                     .page_first = job->page_first,
                                     .page_count = job->page_count,
                                     .order = s->meshed_count++};
    buffer_give(s, job->buffer);
}

// --- uploads, on the coordinator ---

// Hands a mesh to this frame's upload, where there is room for it.
static bool add_fresh(streamer *s, uint32_t slot) {
    upload_range range = {0, 0};
    uint32_t quad_count = s->slots[slot].draw.quad_count + s->slots[slot].draw.water_count;
    bool has_room = s->fresh_count < STREAMER_FRESH_MAX && quad_count <= STREAMER_FRESH_QUADS_MAX - s->fresh_quad_count;
    if (!has_room || !upload_reserve(&s->ring, quad_count, &range)) return false;
    uint32_t first = s->fresh_quad_count;
    memcpy(s->fresh_quads + first, quads_of(s, slot), quad_count * sizeof *s->fresh_quads);
    s->fresh_first[s->fresh_count] = first;
    s->fresh[s->fresh_count++] = (upload_item){.quad_count = quad_count, .slot = slot, .range = range};
    s->fresh_quad_count += quad_count;
    return true;
}

// Uploaded in this frame, it can be drawn in this frame.
static bool make_ready(streamer *s, uint32_t slot) {
    streamer_slot *own = &s->slots[slot];
    uint32_t row;
    if (nb_store_spawn(s->world, s->chunks, &own->row) != NB_OK) return false;
    if (nb_store_find(s->world, own->row, &row) != NB_OK) return false;
    *NB_STORE_ROW_WRITE(s->world, s->chunks, CHUNK_BOUNDS, lod_bounds, row) =
        lod_bounds_of(own->draw.node, own->low, own->high);
    *NB_STORE_ROW_WRITE(s->world, s->chunks, CHUNK_DRAW, material_draw, row) = own->draw;
    *NB_STORE_ROW_WRITE(s->world, s->chunks, CHUNK_LAND, occlusion_land, row) =
        occlusion_land_of(own->draw.node, own->solid);
    chunk_table_advance(&s->table, (chunk_ref){slot, s->table.slots[slot].generation}, CHUNK_READY);
    ++s->ready_count;
    return true;
}

// The slot that has waited longest with its mesh, of those after `after`; slot_count_max = none does.
static uint32_t oldest_meshed(const streamer *s, uint64_t after) {
    uint32_t found = s->table.slot_count_max;
    for (uint32_t slot = 0; slot < s->table.slot_count_max; ++slot) {
        if (!s->table.slots[slot].is_used || s->table.slots[slot].state != CHUNK_MESHED) continue;
        if (s->slots[slot].order < after) continue;
        if (found == s->table.slot_count_max || s->slots[slot].order < s->slots[found].order) found = slot;
    }
    return found;
}

// Whether it can be drawn; if not, it is on its way there after this.
static bool is_on_device(streamer *s, uint32_t slot) {
    streamer_slot *own = &s->slots[slot];
    if (s->device.take == NULL) return add_fresh(s, slot);
    if (s->device.take(s->device.user, slot, &own->draw, quads_of(s, slot))) return true;
    if (!own->is_sent) own->is_sent = add_fresh(s, slot);
    return false;
}

static void hand_out(streamer *s) {
    uint64_t after = 0;
    while (s->table.state_counts[CHUNK_MESHED] > 0) {
        uint32_t slot = oldest_meshed(s, after);
        if (slot == s->table.slot_count_max) return;
        after = s->slots[slot].order + 1;
        if (is_on_device(s, slot) && !make_ready(s, slot)) return;
    }
}

// --- what is drawn ---

static lod_node as_wanted(const streamer *s, lod_node node) {
    node.coarse = s->coarse;
    return node;
}

// Whether the same place is ready as it is wanted now, and this is another picture of it.
static bool is_replaced(const streamer *s, lod_node node) {
    if (node.coarse == s->coarse) return false;
    chunk_ref other = chunk_table_find(&s->table, as_wanted(s, node));
    return other.generation != 0 && s->table.slots[other.slot].state == CHUNK_READY;
}

static void set_drawn(streamer *s, uint32_t slot, bool is_drawn) {
    streamer_slot *own = &s->slots[slot];
    uint32_t row;
    if (own->is_drawn == is_drawn || nb_store_find(s->world, own->row, &row) != NB_OK) return;
    *NB_STORE_ROW_WRITE(s->world, s->chunks, CHUNK_IS_DRAWN, uint8_t, row) = is_drawn;
    own->is_drawn = is_drawn;
}

static void choose_drawn(streamer *s) {
    lod_set shown;
    memset(&shown, 0, sizeof shown);
    lod_ready_clear(&s->ready);
    for (uint32_t slot = 0; slot < s->table.slot_count_max; ++slot) {
        const chunk_slot *at = &s->table.slots[slot];
        if (at->is_used && at->state == CHUNK_READY) lod_ready_add(&s->ready, at->node);
    }
    s->drawn_count = lod_drawn(&s->choices[s->choice], &s->ready, s->drawn);
    for (uint32_t i = 0; i < s->drawn_count; ++i) lod_add(&shown, s->drawn[i]);
    for (uint32_t slot = 0; slot < s->table.slot_count_max; ++slot) {
        const chunk_slot *at = &s->table.slots[slot];
        if (at->is_used && at->state == CHUNK_READY)
            set_drawn(s, slot, lod_has(&shown, at->node) && !is_replaced(s, at->node));
    }
}

// --- jobs ---

static bool submit(streamer *s, chunk_ref ref, streamer_buffer *buffer, bool is_mesh) {
    const chunk_slot *slot = chunk_table_get(&s->table, ref);
    chunk_job state = {.streamer = s, .buffer = buffer, .seed = s->planet->seed, .ref = ref, .node = slot->node};
    nb_async_job_desc desc = {.step = is_mesh ? mesh : generate,
                              .commit = is_mesh ? commit_mesh : NULL,
                              .publish = is_mesh ? publish_mesh : publish_generated,
                              .discard = discard,
                              .is_wanted = is_wanted,
                              .user = s,
                              .state = &state,
                              .state_size_bytes = sizeof state,
                              .generation = ref.generation,
                              .priority = NB_PRIORITY_LOW,
                              .budget_class = is_mesh ? NB_ASYNC_CLASS_MESHING : NB_ASYNC_CLASS_GENERATION,
                              .token = s->journey};
    if (nb_async_submit(s->async, &desc, NULL) != NB_OK) return false;
    return chunk_table_advance(&s->table, ref, is_mesh ? CHUNK_MESHING : CHUNK_GENERATING);
}

// The most important chunks first; as many as there are buffers.
static void request(streamer *s) {
    const lod_choice *choice = &s->choices[s->choice];
    s->missing_count = 0;
    bool has_room = true;
    for (uint32_t i = 0; i < choice->node_count; ++i) {
        lod_node node = as_wanted(s, choice->nodes[i]);
        chunk_ref ref = chunk_table_find(&s->table, node);
        if (ref.generation != 0) {
            s->missing_count += s->table.slots[ref.slot].state != CHUNK_READY;
            continue;
        }
        ++s->missing_count;
        if (!has_room || s->free_buffer == NULL) continue;
        ref = chunk_table_add(&s->table, node);
        has_room = ref.generation != 0;
        if (!has_room) continue;
        streamer_buffer *buffer = buffer_take(s);
        if (submit(s, ref, buffer, false)) continue;
        buffer_give(s, buffer);
        chunk_table_remove(&s->table, ref);
        has_room = false;
    }
}

// Another picture of a place than the wanted one is kept only where it is there already.
static bool is_needed(const streamer *s, const chunk_slot *at) {
    if (!lod_is_wanted(&s->choices[s->choice], at->node)) return false;
    return at->node.coarse == s->coarse || (at->state == CHUNK_READY && !is_replaced(s, at->node));
}

// What is neither needed nor drawn goes; those that have cells get their mesh.
static void look_after(streamer *s) {
    for (uint32_t slot = 0; slot < s->table.slot_count_max; ++slot) {
        const chunk_slot *at = &s->table.slots[slot];
        if (!at->is_used) continue;
        if (!is_needed(s, at) && !s->slots[slot].is_drawn)
            unload(s, slot);
        else if (at->state == CHUNK_GENERATED)
            submit(s, (chunk_ref){slot, at->generation}, s->slots[slot].buffer, true);
    }
}

static nb_result begin_journey(streamer *s, const nb_context *context, uint32_t number) {
    if (s->journey != NULL) {
        s->stale_count += s->table.state_counts[CHUNK_GENERATING] + s->table.state_counts[CHUNK_MESHING];
        nb_token_cancel(s->journey, NB_CANCEL_STALE, 0, NULL);
        nb_token_release(s->journey);
        s->journey = NULL;
    }
    s->journey_number = number;
    return nb_token_child(context->token, "journey", &s->journey);
}

// Whether what is wanted may be something else by now. Many frames a second choose the same.
static bool has_moved(const streamer *s, const lod_view *view, double height) {
    double reach = EYE_REACH + EYE_REACH_PER_METRE * (height > 0 ? height : 0);
    bool is_same = s->choices[s->choice].node_count > 0 && s->split >= view->split && s->split <= view->split;
    return s->is_exact || !is_same || vec3d_length(vec3d_sub(view->eye, s->eye)) > reach;
}

static void choose(streamer *s, const lod_view *view) {
    const lod_choice *before = &s->choices[s->choice];
    bool has_past = before->node_count > 0 && !s->is_exact;
    s->choice = 1 - s->choice;
    s->eye = view->eye;
    s->split = view->split;
    lod_choose(view, has_past ? before : NULL, &s->choices[s->choice]);
}

static nb_result stream(const nb_context *context, void *user) {
    streamer *s = user;
    const explorer *e = NB_STORE_ROWS(s->world, s->planet->explorers, 0, explorer) + s->planet->player;
    if (s->journey == NULL || e->journey != s->journey_number) {
        nb_result result = begin_journey(s, context, e->journey);
        if (result != NB_OK) return result;
    }
    quality_level quality = quality_of(context->quality_level);
    double height = e->altitude - e->ground;
    lod_view view = {explorer_position(e), e->ground, quality_split(quality, height)};
    bool is_new = s->coarse != quality.coarse || has_moved(s, &view, height);
    s->coarse = quality.coarse;
    if (is_new) choose(s, &view);
    uint64_t ready_count = s->ready_count;
    hand_out(s);
    if (is_new || s->ready_count != ready_count) choose_drawn(s);
    look_after(s);
    if (is_new || s->missing_count > 0) request(s);
    return NB_OK;
}

// What this frame uploads, as the snapshot is to have it.
static nb_result show_fresh(const nb_context *context, void *user) {
    streamer *s = user;
    nb_snapshots *to = nb_engine_snapshots(context->engine);
    nb_result result =
        nb_snapshots_region_move(to, s->fresh_region, s->fresh, s->fresh_count * sizeof s->fresh[0], NULL);
    if (result == NB_OK)
        result = nb_snapshots_region_move(to, s->fresh_first_region, s->fresh_first,
                                          s->fresh_count * sizeof s->fresh_first[0], NULL);
    if (result == NB_OK)
        result = nb_snapshots_region_move(to, s->fresh_quads_region, s->fresh_quads,
                                          s->fresh_quad_count * sizeof s->fresh_quads[0], NULL);
    return result;
}

// Uploaded: the next frame has a list of its own, and nobody draws from the ring here.
static nb_result forget_fresh(const nb_context *context, void *user) {
    (void)context;
    streamer *s = user;
    s->fresh_count = s->fresh_quad_count = 0;
    upload_release(&s->ring, s->ring.head);
    return NB_OK;
}

// --- beginning and end ---

static void *take_memory(streamer *s, uint32_t number, size_t size_bytes) {
    return s->memory[number] = calloc(1, size_bytes);
}

static bool take_all(streamer *s) {
    void *table = take_memory(s, 0, chunk_table_size_bytes(STREAMER_CHUNKS_MAX));
    s->slots = take_memory(s, 1, STREAMER_CHUNKS_MAX * sizeof *s->slots);
    s->quads = take_memory(s, 2, (STREAMER_QUADS_TOTAL + STREAMER_FRESH_QUADS_MAX) * sizeof *s->quads);
    s->buffer_memory = take_memory(s, 3, STREAMER_JOBS_MAX * sizeof *s->buffer_memory);
    if (!table || !s->slots || !s->quads || !s->buffer_memory) return false;
    s->fresh_quads = s->quads + STREAMER_QUADS_TOTAL;
    if (quad_pool_init(&s->pool, quad_pool_pages(STREAMER_QUADS_TOTAL), NULL) != NB_OK) return false;
    for (uint32_t i = 0; i < STREAMER_JOBS_MAX; ++i) buffer_give(s, &s->buffer_memory[i]);
    s->ring.quad_count_max = RING_QUADS;
    return chunk_table_init(&s->table, table, STREAMER_CHUNKS_MAX);
}

static nb_result add_regions(streamer *s, nb_engine *engine) {
    nb_snapshots *to = nb_engine_snapshots(engine);
    if (to == NULL) return NB_ERR_MEMORY;
    nb_snapshot_region_desc fresh = {.name = "fresh", .size_bytes_max = sizeof s->fresh};
    nb_snapshot_region_desc first = {.name = "fresh.first", .size_bytes_max = sizeof s->fresh_first};
    nb_snapshot_region_desc quads = {.name = "fresh.quads",
                                     .size_bytes_max = STREAMER_FRESH_QUADS_MAX * sizeof *s->fresh_quads};
    nb_result result = nb_snapshots_region_add(to, &fresh, &s->fresh_region);
    if (result == NB_OK) result = nb_snapshots_region_add(to, &first, &s->fresh_first_region);
    if (result == NB_OK) result = nb_snapshots_region_add(to, &quads, &s->fresh_quads_region);
    return result;
}

nb_result streamer_attach(streamer *s, nb_engine *engine, const planet *land) {
    memset(s, 0, sizeof *s);
    s->planet = land;
    s->world = land->world;
    s->async = nb_engine_async(engine);
    if (s->async == NULL || !take_all(s)) return NB_ERR_MEMORY;
    nb_table_desc chunks = {.name = "chunks",
                            .row_count_max = STREAMER_CHUNKS_MAX,
                            .columns = chunk_columns,
                            .column_count = CHUNK_COLUMN_COUNT,
                            .is_local = true};
    nb_result result = nb_store_table_add(s->world, &chunks, &s->chunks);
    if (result == NB_OK) result = add_regions(s, engine);
    s->trace = nb_engine_desc_get(engine)->trace;
    if (s->trace != NULL) {
        nb_labels_intern(nb_trace_labels(s->trace), "generate", &s->generate_label);
        nb_labels_intern(nb_trace_labels(s->trace), "mesh", &s->mesh_label);
    }
    nb_module_desc module = {.name = "streamer", .frame = stream, .user = s};
    module.handlers[NB_PHASE_SNAPSHOT] = show_fresh;
    module.handlers[NB_PHASE_FRAME_END] = forget_fresh;
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}

void streamer_end(streamer *s) {
    if (s->journey != NULL) nb_token_release(s->journey);
    for (uint32_t i = 0; i < sizeof s->memory / sizeof s->memory[0]; ++i) free(s->memory[i]);
    if (s->pool.words != NULL) quad_pool_deinit(&s->pool);
    memset(s, 0, sizeof *s);
}
