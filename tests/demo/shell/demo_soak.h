// SPDX-License-Identifier: MIT
#pragma once

// The whole demo as one program, put together as its main.c and show.c do: planet, chunks, picture, a device and the
// view, flown at random. Beside it a twin without any device, which has to come to the same state in every frame. A
// test says what the device does wrong; this watches that it costs pictures and nothing else.

#include "frame/engine/engine_fixture.h"
#include "support/resident.h"

#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"
#include "nebula/rollback.h"

#include "demo/chunks/quality.h"
#include "demo/chunks/streamer.h"
#include "demo/draw/render_internal.h"
#include "demo/draw/view.h"
#include "demo/game/planet.h"
#include "demo/jobs/picture.h"
#include "demo/players/rewind.h"

#define MS UINT64_C(1000000)

// Frames in `./dev check`: the whole length is for the sanitizer that watches memory.
#if defined(__SANITIZE_ADDRESS__)
#define SOAK_CHECK_FRAMES(count) (count)
#else
#define SOAK_CHECK_FRAMES(count) ((count) / 5)
#endif

// Animals that stay of those at the beginning: the ticks of thousands are tested elsewhere, and take their time.
#define SOAK_CREATURES 200u

// Frames in which everything that is wanted comes, at most; each does some of it, however slow the machine is.
#define SOAK_SETTLE_FRAMES_MAX 200000u

// What there may be at once. Objects: buffers and pipelines of the renderer, some 20, and what the graph of a frame
// has, before a resize and after it. Memory of the device: the quads, 16 MiB of shadows and small images. The
// heap: what the engine and the device take at their beginning, a copy of the quads, and the pixels of a picture.
#define SOAK_WAITING_MAX 16u
#define SOAK_OBJECTS_MAX 48u
#define SOAK_DEVICE_BYTES_MAX (((uint64_t)32 << 20) + STREAMER_QUADS_TOTAL * sizeof(mesh_quad))
#define SOAK_HEAP_BYTES_MAX (((uint64_t)48 << 20) + STREAMER_QUADS_TOTAL * sizeof(mesh_quad))
#define SOAK_HEAP_COUNT_MAX 200u

// --- what the device has ---

// Buffers of the renderer.
enum { SOAK_QUADS, SOAK_INDICES, SOAK_BUFFER_COUNT };

// A backend around another one. It keeps what was uploaded to the ground's quads, as a device would that can be read,
// and which buffers have got anything; nothing of it survives a lost device. And it fails where the other one cannot be
// told to.
typedef struct soak_tap {
    const nb_gpu_backend *real;
    nb_gpu_backend backend;
    uint8_t *frames[NB_GPU_FRAMES_MAX]; // memory of the frames in flight
    uint8_t *quads;
    uint64_t quads_bytes;
    nb_gpu_index indices[SOAK_BUFFER_COUNT];
    bool is_filled[SOAK_BUFFER_COUNT];
    uint32_t lost_count, refused_count, missing_count; // submits and devices to come that fail
} soak_tap;

static soak_tap tap;

static bool tap_fails(uint32_t *count) {
    if (*count == 0) return false;
    --*count;
    return true;
}

static nb_result tap_create(const nb_gpu_backend_create *create, void **out, nb_gpu_backend_info *info) {
    if (tap.quads != NULL) memset(tap.quads, 0xDB, tap.quads_bytes);
    if (tap_fails(&tap.missing_count)) return NB_ERR_UNSUPPORTED;
    return tap.real->create(create, out, info);
}

static nb_result tap_frame_memory(void *self, uint32_t slot, nb_gpu_index index, void **memory) {
    nb_result result = tap.real->frame_memory(self, slot, index, memory);
    if (result == NB_OK) tap.frames[slot] = (uint8_t *)*memory;
    return result;
}

static nb_result tap_buffer_create(void *self, nb_gpu_index index, const nb_gpu_buffer_desc *desc) {
    static const char *const names[SOAK_BUFFER_COUNT] = {"quads", "quad indices"};
    for (uint32_t i = 0; i < SOAK_BUFFER_COUNT; ++i) {
        if (strcmp(desc->name, names[i]) != 0) continue;
        tap.indices[i] = index;
        tap.is_filled[i] = false;
        if (i == SOAK_QUADS && tap.quads == NULL) tap.quads = (uint8_t *)malloc(tap.quads_bytes = desc->size_bytes);
    }
    return tap.real->buffer_create(self, index, desc);
}

static nb_result tap_submit(void *self, const nb_gpu_submit *submit) {
    if (tap_fails(&tap.lost_count)) return NB_ERR_LOST;
    if (tap_fails(&tap.refused_count)) return NB_ERR_MEMORY;
    nb_result result = tap.real->submit(self, submit);
    for (uint32_t i = 0; result == NB_OK && i < submit->upload_count; ++i) {
        const nb_gpu_upload *upload = &submit->uploads[i];
        for (uint32_t j = 0; j < SOAK_BUFFER_COUNT; ++j) tap.is_filled[j] |= upload->to == tap.indices[j];
        if (upload->to != tap.indices[SOAK_QUADS]) continue;
        memcpy(tap.quads + upload->to_offset, tap.frames[submit->slot] + upload->from, upload->size_bytes);
    }
    return result;
}

static inline void tap_open(const nb_gpu_backend *real) {
    tap = (soak_tap){.real = real, .backend = *real};
    tap.backend.create = tap_create;
    tap.backend.frame_memory = tap_frame_memory;
    tap.backend.buffer_create = tap_buffer_create;
    tap.backend.submit = tap_submit;
}

// --- the flight ---

// What is steered depends on the seed and the tick alone, so the twin flies the same.
typedef struct soak_flight {
    uint64_t seed;
    const planet *planet;
    bool is_over;        // nobody steers any more,
    nb_input_event last; // but for this, in the next tick; its kind is 0 where there is none
    nb_input_event events[2 * PLANET_EXPLORERS + 1];
} soak_flight;

static inline uint32_t soak_below(uint64_t *random, uint32_t below) {
    return (uint32_t)((test_random(random) >> 16) % below);
}

static inline int32_t soak_pace(uint64_t *random) {
    return (int32_t)soak_below(random, 2 * PLANET_PACE_MAX + 1) - PLANET_PACE_MAX;
}

// To a herd, or anywhere: on the ground, over it, in orbit.
static inline nb_input_event soak_journey(soak_flight *f, uint64_t *random, uint32_t player) {
    static const int32_t altitudes[6] = {0, 0, 40, 400, 4300, 12000};
    creature_home home = f->planet->homes[soak_below(random, HOME_COUNT)];
    bool is_anywhere = soak_below(random, 2) == 0;
    if (is_anywhere) {
        home.face = soak_below(random, SPHERE_FACE_COUNT);
        home.x = (int32_t)soak_below(random, (uint32_t)SPHERE_FACE_COLUMNS);
        home.z = (int32_t)soak_below(random, (uint32_t)SPHERE_FACE_COLUMNS);
    }
    return planet_teleport(player, home, altitudes[soak_below(random, 6)]);
}

static void soak_fly(void *user, nb_tick_view *tick) {
    soak_flight *f = (soak_flight *)user;
    uint64_t random = f->seed ^ tick->tick->index * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t count = 0;
    for (uint32_t player = 0; player < PLANET_EXPLORERS && !f->is_over; ++player) {
        if (soak_below(&random, 12) != 0) continue;
        uint32_t kind = soak_below(&random, 32);
        if (kind < 16)
            f->events[count++] = planet_steer(player, soak_pace(&random), soak_pace(&random), soak_pace(&random));
        if (kind >= 30) f->events[count++] = soak_journey(f, &random, player);
        if (kind >= 16 && kind != 30)
            f->events[count++] =
                planet_move(player, soak_pace(&random), (explorer_mode)soak_below(&random, EXPLORER_MODE_COUNT));
    }
    if (f->last.kind != 0) f->events[count++] = f->last;
    f->last.kind = 0;
    if (count > 0) tick->commands = (nb_input_view){f->events, count};
}

// --- the program ---

// One engine with the planet, steered.
typedef struct soak_world {
    rig r;
    nb_clock_manual clock;
    planet planet;
    soak_flight flight;
    rewind_plan rewind;
} soak_world;

// The most that there was at once.
typedef struct soak_peaks {
    uint64_t waiting_count; // objects retired and not reclaimed
    uint64_t device_bytes, heap_bytes, heap_count, resident_bytes;
    uint32_t object_count, mesh_count, quad_count, chunk_count, hidden_count;
} soak_peaks;

typedef struct soak {
    const char *name; // of the test
    uint64_t seed, random, frame;
    soak_world main, twin;
    nb_gpu *gpu;
    nb_clock_manual device_clock; // goes on while that of the engine stands still
    streamer streamer;
    picture picture;
    checksum sums;
    status status;
    view view;
    bool wants_capture, is_captured;
    uint64_t capture_count, capture_lost_count;
    uint64_t submit_count; // before the frame that runs
    uint32_t back_frames;  // that the key for going back is still held
    soak_peaks peaks;
} soak;

// What a failure needs to be seen again: what ran, and in which frame it failed.
static inline void soak_fail(const soak *s, const char *what, const char *file, int line) {
    const char *size = getenv("NB_TEST_SIZE");
    fprintf(stderr, "frame %llu: %s\nagain: NB_TEST_SEED=0x%llx NB_TEST_SIZE=%s %s\n", (unsigned long long)s->frame,
            what, (unsigned long long)s->seed, size != NULL ? size : "quick", s->name);
    _fail(file, line);
}

#define SOAK_CHECK(s, condition) ((condition) ? (void)0 : soak_fail((s), #condition, __FILE__, __LINE__))

static inline uint32_t soak_pick(soak *s, uint32_t below) { return soak_below(&s->random, below); }

static void soak_restored(nb_gpu *gpu, void *user) {
    (void)gpu;
    soak *s = (soak *)user;
    if (s->view.render != NULL) render_restored(s->view.render);
}

// As the shots of the demo ask for pictures.
static nb_result soak_ask(const nb_context *context, void *user) {
    (void)context;
    soak *s = (soak *)user;
    if (s->wants_capture && !s->is_captured) s->is_captured = nb_gpu_capture_ask(s->gpu) == NB_OK;
    s->wants_capture = false;
    return NB_OK;
}

static inline void soak_world_open(soak_world *w, uint64_t seed, uint32_t worker_count, bool is_headless) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.is_headless = is_headless;
    desc.hashes_ticks = true;
    desc.keeps_history = true;
    desc.output_bytes = (size_t)4 << 20;
    desc.seed = seed;
    desc.budget =
        (nb_budget_desc){.level_count = QUALITY_COUNT, .level_lowered = QUALITY_COUNT - 1, .window_frames = 1};
    nb_clock_manual_init(&w->clock, 0);
    desc.loop.clock = nb_clock_manual_get(&w->clock);
    rig_open_desc(&w->r, desc);
    w->planet = (planet){.seed = seed % 16};
    w->flight = (soak_flight){.seed = seed, .planet = &w->planet};
    w->rewind = (rewind_plan){0};
    assert_int_equal(planet_attach(&w->planet, w->r.engine), NB_OK);
}

static inline void soak_world_fill(soak_world *w) {
    nb_tick_watch watch = {.begin = soak_fly, .user = &w->flight};
    assert_int_equal(planet_populate(&w->planet), NB_OK);
    while (nb_store_row_count(w->planet.world, w->planet.creatures) > SOAK_CREATURES)
        assert_int_equal(
            nb_store_despawn(w->planet.world, nb_store_entity(w->planet.world, w->planet.creatures, SOAK_CREATURES)),
            NB_OK);
    assert_int_equal(nb_engine_watch_add(w->r.engine, &watch), NB_OK);
}

// The backend is that of tap_open.
static inline nb_result soak_open(soak *s, nb_gpu_desc desc, uint32_t worker_count) {
    s->random = s->seed;
    soak_world_open(&s->twin, s->seed, 0, true);
    soak_world_open(&s->main, s->seed, worker_count, false);
    nb_engine *engine = s->main.r.engine;
    desc.backend = &tap.backend;
    desc.on_restored = soak_restored;
    desc.user = s;
    if (desc.hooks.allocator.alloc == NULL) desc.hooks = nb_engine_desc_get(engine)->hooks;
    nb_result result = nb_gpu_create(&desc, &s->gpu);
    if (result != NB_OK) return result;
    assert_int_equal(streamer_attach(&s->streamer, engine, &s->main.planet), NB_OK);
    assert_int_equal(picture_attach(&s->picture, engine, &s->main.planet, &s->streamer), NB_OK);
    assert_int_equal(nb_gpu_attach(s->gpu, engine), NB_OK);
    assert_int_equal(checksum_attach(&s->sums, engine, &s->main.planet), NB_OK);
    show_scene scene = {&s->main.planet, &s->streamer, &s->picture, &s->status};
    assert_int_equal(view_attach(&s->view, engine, s->gpu, &scene), NB_OK);
    nb_module_desc module = {.name = "show", .user = s, .priority = -1};
    module.handlers[NB_PHASE_FRAME_GRAPH] = soak_ask;
    attach(&s->main.r, module);
    soak_world_fill(&s->main);
    soak_world_fill(&s->twin);
    return NB_OK;
}

// --- what has to hold ---

static inline void soak_raise(uint64_t *peak, uint64_t value) {
    if (value > *peak) *peak = value;
}

static inline void soak_raise_u32(uint32_t *peak, uint32_t value) {
    if (value > *peak) *peak = value;
}

// Bounds of what there may be at once; a run of any length has to stay within them.
static inline void soak_check_peaks(const soak *s) {
    const soak_peaks *p = &s->peaks;
    SOAK_CHECK(s, p->waiting_count <= SOAK_WAITING_MAX && p->object_count <= SOAK_OBJECTS_MAX);
    SOAK_CHECK(s, p->device_bytes <= SOAK_DEVICE_BYTES_MAX);
    SOAK_CHECK(s, p->heap_bytes <= SOAK_HEAP_BYTES_MAX && p->heap_count <= SOAK_HEAP_COUNT_MAX);
    SOAK_CHECK(s, p->chunk_count <= LOD_NODES_MAX + STREAMER_JOBS_MAX && p->mesh_count <= p->chunk_count);
    SOAK_CHECK(s, p->quad_count <= s->view.render->desc.quad_count_max / 2);
}

// After every frame.
static inline void soak_check_frame(soak *s) {
    nb_gpu_stats gpu = nb_gpu_stats_get(s->gpu);
    nb_engine_stats main = rig_stats(&s->main.r), twin = rig_stats(&s->twin.r);
    SOAK_CHECK(s, main.tick_count == twin.tick_count && main.run_hash == twin.run_hash);
    SOAK_CHECK(s, main.failure_count == 0 && main.violation_count == 0 && main.degraded_count == 0);
    SOAK_CHECK(s, s->sums.wrong_count == 0 && s->sums.frame_count + s->sums.left_count == main.frame_count);
    SOAK_CHECK(s, gpu.frame_count == gpu.submit_count + gpu.skipped_behind_count + gpu.skipped_late_count +
                                         gpu.skipped_hidden_count + gpu.skipped_lost_count + gpu.skipped_failed_count);
    SOAK_CHECK(s, gpu.misuse_count == 0 && gpu.reclaimed_count <= gpu.retired_count);
    render_stats drawn = render_stats_get(s->view.render);
    soak_raise(&s->peaks.waiting_count, gpu.retired_count - gpu.reclaimed_count);
    soak_raise(&s->peaks.device_bytes, gpu.memory_bytes);
    if (s->frame % 16 == 0) soak_raise(&s->peaks.resident_bytes, resident_bytes());
    soak_raise(&s->peaks.heap_bytes, nbi_atomic_load_relaxed_u64(&s->main.r.heap.live_bytes));
    soak_raise(&s->peaks.heap_count, nbi_atomic_load_relaxed_u64(&s->main.r.heap.live_count));
    soak_raise_u32(&s->peaks.mesh_count, drawn.mesh_count);
    soak_raise_u32(&s->peaks.quad_count, drawn.quad_count);
    soak_raise_u32(&s->peaks.chunk_count, s->streamer.table.slot_count);
    soak_raise_u32(&s->peaks.hidden_count, s->view.hidden_count);
    soak_check_peaks(s);
}

// Meshes of the renderer are those of chunks that are there, and each has its own pages.
static inline void soak_check_meshes(const soak *s) {
    const render *r = s->view.render;
    uint32_t mesh_count = 0, page_count = 0;
    for (uint32_t slot = 0; slot < STREAMER_CHUNKS_MAX; ++slot) {
        const chunk_slot *chunk = &s->streamer.table.slots[slot];
        bool has_mesh = s->view.meshes[slot].value != 0;
        bool is_meshed = chunk->is_used && (chunk->state == CHUNK_MESHED || chunk->state == CHUNK_READY);
        if (!has_mesh) {
            SOAK_CHECK(s, !chunk->is_used || chunk->state != CHUNK_READY);
            continue;
        }
        const mesh_slot *mesh = render_mesh_of(r, s->view.meshes[slot]);
        SOAK_CHECK(s, is_meshed && mesh != NULL);
        ++mesh_count;
        page_count += mesh->page_count;
    }
    SOAK_CHECK(s, mesh_count == r->mesh_count && page_count == r->pool.used_count);
}

// What is to be drawn is on the device, quad by quad. After a frame whose picture was handed over.
static inline void soak_check_device(const soak *s) {
    const render *r = s->view.render;
    SOAK_CHECK(s, tap.is_filled[SOAK_INDICES]);
    for (uint32_t slot = 0; slot < STREAMER_CHUNKS_MAX; ++slot) {
        if (!render_mesh_is_ready(r, s->view.meshes[slot])) continue;
        const mesh_slot *mesh = render_mesh_of(r, s->view.meshes[slot]);
        size_t first = mesh->quad_first * sizeof(render_quad);
        size_t bytes = (mesh->quad_count + (size_t)mesh->water_count) * sizeof(render_quad);
        SOAK_CHECK(s, memcmp(tap.quads + first, &r->copy[mesh->quad_first], bytes) == 0);
    }
}

static inline uint32_t soak_free_buffers(const soak *s) {
    uint32_t count = 0;
    for (const streamer_buffer *b = s->streamer.free_buffer; b != NULL && count <= STREAMER_JOBS_MAX; b = b->next)
        ++count;
    return count;
}

static inline void soak_check_whole(const soak *s) {
    const uint32_t *counts = s->streamer.table.state_counts;
    uint32_t held = counts[CHUNK_GENERATING] + counts[CHUNK_GENERATED] + counts[CHUNK_MESHING];
    SOAK_CHECK(s, nb_store_is_valid(s->main.planet.world));
    SOAK_CHECK(s, soak_free_buffers(s) + held <= STREAMER_JOBS_MAX);
    SOAK_CHECK(s, nb_store_row_count(s->main.planet.world, s->streamer.chunks) == counts[CHUNK_READY]);
    SOAK_CHECK(s, s->streamer.dropped_quad_count == 0 && s->streamer.table.full_count == 0);
    soak_check_meshes(s);
    if (nb_gpu_stats_get(s->gpu).submit_count > s->submit_count) soak_check_device(s);
}

// --- frames ---

static inline void soak_world_frame(const soak *s, soak_world *w, uint64_t delta_ns) {
    nb_clock_manual_advance(&w->clock, delta_ns);
    SOAK_CHECK(s, rewind_step(&w->rewind, w->r.engine, s->back_frames > 0) == NB_OK);
    SOAK_CHECK(s, nb_engine_frame(w->r.engine) == NB_OK);
}

static inline void soak_take(soak *s) {
    nb_gpu_capture capture;
    if (!s->is_captured) return;
    nb_result result = nb_gpu_capture_take(s->gpu, 0, &capture);
    SOAK_CHECK(s, result == NB_OK || result == NB_BUSY || result == NB_ERR_LOST);
    if (result == NB_BUSY) return;
    s->is_captured = false;
    s->capture_count += result == NB_OK;
    s->capture_lost_count += result == NB_ERR_LOST;
    if (result == NB_OK) SOAK_CHECK(s, capture.pixels != NULL && capture.width > 0 && capture.height > 0);
}

static inline void soak_frame(soak *s, uint64_t delta_ns) {
    s->submit_count = nb_gpu_stats_get(s->gpu).submit_count;
    nb_clock_manual_advance(&s->device_clock, delta_ns + MS);
    soak_world_frame(s, &s->main, delta_ns);
    soak_world_frame(s, &s->twin, delta_ns);
    soak_take(s);
    if (s->back_frames > 0) --s->back_frames;
    ++s->frame;
    soak_check_frame(s);
}

static inline void soak_set_quality(soak *s, uint32_t level) {
    SOAK_CHECK(s, nb_budget_set_level(nb_engine_budget(s->main.r.engine), level) == NB_OK);
}

static inline uint64_t soak_delta(soak *s) {
    static const uint64_t deltas_ns[8] = {0, 4 * MS, 8 * MS, 16 * MS, 17 * MS, 17 * MS, 33 * MS, 50 * MS};
    return soak_pick(s, 200) == 0 ? 2000 * MS : deltas_ns[soak_pick(s, 8)];
}

// What somebody in front of it does: sizes of the window, the page of numbers, pictures, going back in time.
static inline void soak_disturb(soak *s, uint32_t size_max, uint32_t quality_max) {
    if (soak_pick(s, 25) == 0) {
        bool is_minimised = soak_pick(s, 6) == 0;
        uint32_t width = 1 + soak_pick(s, size_max), height = 1 + soak_pick(s, size_max);
        SOAK_CHECK(s, nb_gpu_resize(s->gpu, is_minimised ? 0 : width, is_minimised ? 0 : height) == NB_OK);
    }
    if (soak_pick(s, 100) == 0) nb_gpu_set_vsync(s->gpu, soak_pick(s, 2) == 0);
    if (soak_pick(s, 50) == 0) s->view.page.is_shown = !s->view.page.is_shown;
    if (soak_pick(s, 50) == 0) s->view.is_blind = !s->view.is_blind;
    if (soak_pick(s, 30) == 0) s->wants_capture = true;
    if (soak_pick(s, 150) == 0) s->back_frames = 1 + soak_pick(s, 20);
    if (quality_max == 0 || soak_pick(s, 100) != 0) return;
    soak_set_quality(s, soak_pick(s, 8) == 0 ? soak_pick(s, quality_max + 1) : 0);
}

// --- the end ---

// Nobody steers any more, and one looks at everything.
static inline void soak_calm(soak *s, uint32_t width, uint32_t height) {
    s->main.flight.is_over = s->twin.flight.is_over = true;
    s->back_frames = 0;
    s->view.is_blind = false;
    soak_set_quality(s, 0);
    SOAK_CHECK(s, nb_gpu_resize(s->gpu, width, height) == NB_OK);
}

// The middle of a face.
static inline creature_home soak_face(uint32_t face) {
    return (creature_home){face, SPHERE_FACE_COLUMNS / 2, SPHERE_FACE_COLUMNS / 2};
}

// Somewhere else, so many metres above the ground: other chunks are wanted, and most of the old ones go.
static inline void soak_travel(soak *s, creature_home far, int32_t height) {
    uint64_t tick_count = rig_stats(&s->main.r).tick_count;
    s->main.flight.last = s->twin.flight.last = planet_teleport(0, far, height);
    for (uint32_t i = 0; i < 16 && rig_stats(&s->main.r).tick_count == tick_count; ++i) soak_frame(s, 17 * MS);
    SOAK_CHECK(s, s->main.flight.last.kind == 0 && s->twin.flight.last.kind == 0);
}

// Nothing fails any more: everything that is wanted comes, and every frame has a picture.
static inline void soak_settle(soak *s) {
    uint64_t end = s->frame + SOAK_SETTLE_FRAMES_MAX;
    bool is_settled = false;
    while (s->frame < end && !is_settled) {
        soak_frame(s, 0);
        bool has_picture = nb_gpu_stats_get(s->gpu).submit_count > s->submit_count;
        // Jobs that were cancelled end in their own time.
        is_settled = has_picture && view_is_settled(&s->view) && soak_free_buffers(s) == STREAMER_JOBS_MAX;
    }
    SOAK_CHECK(s, is_settled);
    uint64_t submit_count = nb_gpu_stats_get(s->gpu).submit_count;
    s->wants_capture = true; // of this size: the buffer for larger ones goes
    for (uint32_t i = 0; i < 20; ++i) soak_frame(s, 0);
    SOAK_CHECK(s, nb_gpu_stats_get(s->gpu).submit_count == submit_count + 20);
    render_stats drawn = render_stats_get(s->view.render);
    SOAK_CHECK(s, drawn.skipped_count == 0 && drawn.mesh_ready_count == drawn.mesh_count);
    soak_check_whole(s);
}

static inline void soak_tell(const soak *s, double seconds) {
    nb_gpu_stats gpu = nb_gpu_stats_get(s->gpu);
    const soak_peaks *p = &s->peaks;
    fprintf(stderr,
            "%s: %llu frames, %llu pictures, %llu ticks; left out: behind %llu, hidden %llu, lost %llu, failed %llu; "
            "%llu devices lost, %llu back; %llu chunks, %llu cancelled; captures %llu, lost %llu\n",
            s->name, (unsigned long long)s->frame, (unsigned long long)gpu.submit_count,
            (unsigned long long)rig_stats(&s->main.r).tick_count, (unsigned long long)gpu.skipped_behind_count,
            (unsigned long long)gpu.skipped_hidden_count, (unsigned long long)gpu.skipped_lost_count,
            (unsigned long long)gpu.skipped_failed_count, (unsigned long long)gpu.lost_count,
            (unsigned long long)gpu.restored_count, (unsigned long long)s->streamer.ready_count,
            (unsigned long long)s->streamer.cancelled_count, (unsigned long long)s->capture_count,
            (unsigned long long)s->capture_lost_count);
    fprintf(
        stderr,
        "%s: at most %llu retired, %u objects, %llu bytes on the device, %llu bytes in %llu blocks of the heap, %llu "
        "resident, %u meshes, %u quads, %u chunks, %u of them hidden; retired %llu; %.1f s\n",
        s->name, (unsigned long long)p->waiting_count, p->object_count, (unsigned long long)p->device_bytes,
        (unsigned long long)p->heap_bytes, (unsigned long long)p->heap_count, (unsigned long long)p->resident_bytes,
        p->mesh_count, p->quad_count, p->chunk_count, p->hidden_count, (unsigned long long)gpu.retired_count, seconds);
}

// Nothing is left of anything, and all that was retired was reclaimed.
static inline void soak_close(soak *s, uint64_t *retired_count, uint64_t *reclaimed_count) {
    assert_int_equal(nb_engine_destroy(s->main.r.engine), NB_OK);
    nb_gpu_stats gpu = nb_gpu_stats_get(s->gpu);
    *retired_count = gpu.retired_count;
    *reclaimed_count = gpu.reclaimed_count;
    view_end(&s->view);
    assert_int_equal(nb_gpu_destroy(s->gpu), NB_OK);
    streamer_end(&s->streamer);
    picture_end(&s->picture);
    planet_end(&s->main.planet);
    assert_int_equal(nb_engine_destroy(s->twin.r.engine), NB_OK);
    planet_end(&s->twin.planet);
    assert_int_equal(s->twin.r.heap.live_count.value, 0);
    free(tap.quads);
    tap.quads = NULL;
}
