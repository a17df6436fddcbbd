// SPDX-License-Identifier: MIT
#pragma once

// What the files of the device share. gpu.c makes and ends it; gpu_object.c has buffers, images and pipelines;
// gpu_value.c the fence; gpu_frame.c one frame, with gpu_surface.c, gpu_memory.c, gpu_upload.c, gpu_plan.c,
// gpu_record.c, gpu_command.c and gpu_capture.c for its parts; gpu_restore.c what follows a lost device; gpu_attach.c
// the engine's side.

#include "nebula/atomic.h"
#include "nebula/gpu.h"
#include "nebula/gpu_backend.h"
#include "nebula/gpu_command.h"
#include "nebula/hash.h"
#include "nebula/report.h"

#include <string.h>

#define NBI_NONE_INDEX UINT32_MAX

// --- objects ---

typedef enum nbi_gpu_kind {
    NBI_GPU_BUFFER = 0,
    NBI_GPU_IMAGE,
    NBI_GPU_PIPELINE,
    NBI_GPU_KIND_COUNT,
} nbi_gpu_kind;

typedef enum nbi_gpu_life {
    NBI_GPU_FREE = 0,
    NBI_GPU_LIVE,
    NBI_GPU_RETIRED, // its handle has ended, the device may still use it
} nbi_gpu_life;

typedef enum nbi_gpu_role {
    NBI_GPU_USERS = 0,
    NBI_GPU_OWN,     // of the device: memory of the graph, the back buffer, a capture
    NBI_GPU_MEMORY,  // of a frame: made by frame_memory
    NBI_GPU_SURFACE, // an image of the surface: made by acquire
} nbi_gpu_role;

typedef struct nbi_gpu_object {
    uint64_t serial; // of its handle: the n-th object of the device
    nbi_gpu_kind kind;
    nbi_gpu_life life;
    nbi_gpu_role role;
    bool is_made;            // it is there in the backend
    uint64_t made_value;     // `submitted` when it was made there
    uint32_t next_free;      // of a free one
    uint64_t upload_picture; // the newest picture with an upload to it
    uint64_t import_picture; // the newest picture whose graph has it,
    uint32_t import_root;    // as this resource
    char name[NB_GPU_NAME_SIZE_MAX + 1];
    union {
        nb_gpu_buffer_desc buffer;
        nb_gpu_image_desc image;
        nb_gpu_pipeline_desc pipeline; // its words are the object's
    } desc;
} nbi_gpu_object;

typedef struct nbi_gpu_table {
    nbi_gpu_object *objects;
    uint32_t capacity;             // with the device's own
    uint32_t user_max, user_count; // alive or retired
    uint32_t live_count;           // of users
    uint32_t free_first, free_last;
} nbi_gpu_table;

// In a handle: [ is memory of a frame 1 | serial 39 | index 24 ]. Of memory of a frame the serial is its picture's.
#define NBI_GPU_INDEX_BITS 24
#define NBI_GPU_INDEX_MASK ((UINT64_C(1) << NBI_GPU_INDEX_BITS) - 1)
#define NBI_GPU_MEMORY_BIT (UINT64_C(1) << 63)
// In a serial: an object of the device's own.
#define NBI_GPU_OWN_BIT (UINT64_C(1) << 38)
// Bits of a picture's number in such a handle, and in the word that memory is taken from: half a year of 60 a second.
#define NBI_GPU_TAG_MASK ((UINT64_C(1) << 30) - 1)

// Takes a free slot of the table; NB_FULL. name may be NULL.
nb_result nbi_gpu_object_take(nb_gpu *gpu, nbi_gpu_kind kind, nbi_gpu_role role, const char *name, uint32_t *index);
// Gives back a slot whose object is not in the backend.
void nbi_gpu_object_free(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index);
// Makes the object of a slot in the backend. NB_ERR_LOST is noted.
nb_result nbi_gpu_object_make(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index);
// Retires it. NB_FULL: it is still there.
nb_result nbi_gpu_object_retire(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index);
// The object of a handle, or NULL.
nbi_gpu_object *nbi_gpu_object_find(const nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle, uint32_t *index);
// What reports call the object of a handle, also after its end until its place is taken again; else "unknown".
const char *nbi_gpu_object_name(const nb_gpu *gpu, nbi_gpu_kind kind, uint64_t handle);
const char *nbi_gpu_kind_name(nbi_gpu_kind kind);
// Takes a slot for the device itself and makes it.
nb_result nbi_gpu_own_buffer(nb_gpu *gpu, const nb_gpu_buffer_desc *desc, uint32_t *index);
nb_result nbi_gpu_own_image(nb_gpu *gpu, const nb_gpu_image_desc *desc, uint32_t *index);
uint64_t nbi_gpu_handle_of(const nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index);
nb_result nbi_gpu_tables_create(nb_gpu *gpu);
void nbi_gpu_tables_destroy(nb_gpu *gpu);
// What a desc has wrong, or NULL; *result is what to return.
const char *nbi_gpu_buffer_problem(const nb_gpu_buffer_desc *desc, nb_result *result);
const char *nbi_gpu_image_problem(const nb_gpu_image_desc *desc, nb_result *result);
const char *nbi_gpu_pipeline_problem(const nb_gpu_pipeline_desc *desc, nb_result *result);

// --- the frame ---

typedef enum nbi_gpu_frame_state {
    NBI_GPU_FRAME_NONE = 0,
    NBI_GPU_FRAME_BEGUN,
    NBI_GPU_FRAME_COMPILED,
    NBI_GPU_FRAME_SUBMITTED,
} nbi_gpu_frame_state;

// One of the frames in flight.
typedef struct nbi_gpu_slot {
    uint64_t value;       // that the device is through with it at
    nb_fence_frame frame; // of the engine that used it last
    void *memory;         // of the frame
    uint32_t buffer;      // its number
    uint32_t surface;     // number of the surface's image
    uint32_t step_count;
    char (*steps)[NB_GPU_NAME_SIZE_MAX + 1]; // names, for times
} nbi_gpu_slot;

// Memory of the graph, kept over frames.
typedef struct nbi_gpu_transient {
    bool is_used; // the slot
    bool is_buffer;
    uint32_t index;   // of the object
    uint64_t picture; // that took it last
    uint64_t frame;   // frame_count then
} nbi_gpu_transient;

typedef struct nbi_gpu_recorded {
    nb_result result;
    bool is_done;
    bool is_lost; // the backend said so
    uint32_t draw_count;
    uint64_t hash;
} nbi_gpu_recorded;

typedef enum nbi_gpu_capture_state {
    NBI_CAPTURE_NONE = 0,
    NBI_CAPTURE_ASKED,  // in this frame
    NBI_CAPTURE_FLYING, // handed over
    NBI_CAPTURE_READY,
    NBI_CAPTURE_LOST,
} nbi_gpu_capture_state;

typedef struct nbi_gpu_capturing {
    nbi_gpu_capture_state state;
    uint32_t buffer; // NBI_NONE_INDEX: none yet
    uint64_t value, frame;
    uint32_t width, height;
    nb_graph_resource from;
    uint8_t *pixels;
    size_t pixel_bytes;
} nbi_gpu_capturing;

struct nb_gpu {
    nb_gpu_desc desc; // resolved
    const nb_hooks *hooks;
    nb_gpu_limits limits;
    const nb_gpu_backend *backend;
    void *self; // the backend's; NULL: it has none now
    nb_gpu_backend_info info;
    char name[160];
    nb_gpu_stats stats;
    nbi_gpu_table tables[NBI_GPU_KIND_COUNT];
    uint64_t object_serial, own_serial;
    nb_graph *graph;

    nb_timelines *own; // without an engine
    nb_timeline *own_timeline, *timeline;
    nb_engine *engine;  // NULL: not attached
    const char *caller; // what reports name: the function that the user called last on the frame's thread
    nb_module_id modules[2];
    nb_fence *fence; // of the engine, once a frame has begun

    // Values of the device; the backend's count from `base`.
    uint64_t base, submitted, completed;
    uint64_t progress_ns; // when `completed` grew last, or something was handed over to an idle device

    bool is_lost;
    bool is_unrestored_reported;
    uint64_t retry_at_ns, retry_pause_ns;

    nbi_gpu_frame_state frame_state;
    bool has_picture; // of this frame
    bool is_handed;   // the picture was handed over
    bool is_counted;  // as left out
    bool is_shown;
    uint64_t picture; // number of the newest
    uint32_t slot;
    nbi_gpu_slot slots[NB_GPU_FRAMES_MAX];

    uint32_t width, height; // wanted
    bool is_surface_stale;
    uint32_t back; // the image without a surface; NBI_NONE_INDEX
    uint32_t back_width, back_height;
    nb_graph_resource back_resource;

    nb_atomic_u64 span_word;  // see gpu_memory.c
    nb_atomic_u64 span_frame; // of the engine
    nb_atomic_u64 span_full_count;

    nb_gpu_upload *uploads;
    uint32_t upload_count;
    uint64_t upload_hash, upload_bytes;

    const nb_graph_plan *plan;
    nb_gpu_index *resources; // by resource of the plan
    uint32_t *versions;      // by resource of the plan: the next of the same root
    uint32_t *slot_objects;  // by slot of the plan
    nbi_gpu_transient *transients;
    uint32_t transient_max, transient_cursor;
    nb_gpu_item *items;
    nbi_gpu_recorded *recorded;
    uint32_t item_count;
    nb_atomic_u32 claimed;
    nb_atomic_u64 misuse_count;
    nb_throttle throttle; // of reports that frames repeat

    nb_gpu_pass_time *times;
    uint32_t time_count;
    nbi_gpu_capturing capture;
};

// gpu_frame.c: what the public functions and the engine's modules do.
nb_result nbi_gpu_begin(nb_gpu *gpu, nb_fence_frame frame);
nb_result nbi_gpu_compile(nb_gpu *gpu);
nb_result nbi_gpu_submit_picture(nb_gpu *gpu);
nb_result nbi_gpu_end(nb_gpu *gpu);

// gpu_record.c
nb_result nbi_gpu_record(nb_gpu *gpu, uint32_t lane);

// gpu_value.c
uint64_t nbi_gpu_now_ns(const nb_gpu *gpu);
// Reads how far the device is. NB_ERR_LOST.
nb_result nbi_gpu_poll(nb_gpu *gpu);
// Waits for a value. NB_BUSY, NB_ERR_LOST.
nb_result nbi_gpu_wait(nb_gpu *gpu, uint64_t value, uint64_t timeout_ns);
// Notes that the device is lost: nothing of it is used any more, and all that waits for it is over.
nb_result nbi_gpu_lose(nb_gpu *gpu, const char *why);
// NB_ERR_LOST from the backend is noted; anything else is returned as it is.
nb_result nbi_gpu_note_result(nb_gpu *gpu, nb_result result, const char *what);

// gpu_restore.c
// Makes backend, memory of the frames and all objects alive; a failure leaves no backend.
nb_result nbi_gpu_make(nb_gpu *gpu);
void nbi_gpu_unmake(nb_gpu *gpu);
nb_result nbi_gpu_restore(nb_gpu *gpu);
// Whether a late job of the engine may still write to memory of a slot, or of any.
bool nbi_gpu_is_late(nb_gpu *gpu, uint32_t slot);
bool nbi_gpu_is_any_late(nb_gpu *gpu);

// gpu_surface.c
// The image of this picture. NB_BUSY (*is_hidden: there is none), NB_ERR_LOST, NB_ERR_MEMORY.
nb_result nbi_gpu_surface_take(nb_gpu *gpu, bool *is_hidden);
uint32_t nbi_gpu_back_index(const nb_gpu *gpu);
nb_result nbi_gpu_back_import(nb_gpu *gpu);
void nbi_gpu_surface_show(nb_gpu *gpu);

// gpu_memory.c
void nbi_gpu_spans_open(nb_gpu *gpu, nb_fence_frame frame);
void nbi_gpu_spans_close(nb_gpu *gpu);

// gpu_upload.c
void nbi_gpu_uploads_drop(nb_gpu *gpu, nbi_gpu_kind kind, uint32_t index);

// gpu_plan.c: objects for the resources of the plan, and what is to be recorded.
nb_result nbi_gpu_plan_resolve(nb_gpu *gpu);
void nbi_gpu_transients_trim(nb_gpu *gpu);

// gpu_capture.c
nb_result nbi_gpu_capture_add(nb_gpu *gpu);
void nbi_gpu_capture_note(nb_gpu *gpu, bool is_handed);

// gpu_attach.c: between frames. NB_BUSY.
nb_result nbi_gpu_detach(nb_gpu *gpu);

// --- hashes and reports ---

// One step of the hash of commands.
static inline uint64_t nbi_gpu_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

// The backend's object where the device's backend is that one, else NULL.
void *nbi_gpu_backend_self(const nb_gpu *gpu, const nb_gpu_backend *backend);

// What a throttle tells objects apart by: their names.
static inline uint64_t nbi_gpu_key(const char *name, const char *part) {
    return nb_hash64(part, strlen(part), nb_hash64(name, strlen(name), 0));
}

// Mistakes of the caller and failures of the device, by the object that they name; frames may repeat both.
#define NBI_GPU_MISTAKE(gpu, object, item, result, function, ...) \
    nb_report_throttled((gpu)->hooks, &(gpu)->throttle, (object), true, (item), (result), (function), __VA_ARGS__)
#define NBI_GPU_FAILURE(gpu, object, item, result, ...) \
    nb_report_throttled((gpu)->hooks, &(gpu)->throttle, (object), false, (item), (result), (gpu)->caller, __VA_ARGS__)

#define NBI_GPU_REFUSE(gpu, name, result, ...) \
    NBI_GPU_MISTAKE((gpu), nbi_gpu_key((name), ""), NB_ITEM_GPU_ARGUMENT, (result), __func__, __VA_ARGS__)
#define NBI_GPU_REFUSE_STATE(gpu, what) \
    NBI_GPU_MISTAKE((gpu), 0, NB_ITEM_GPU_MOMENT, NB_ERR_MISUSE, __func__, "device \"%s\": %s", (gpu)->name, (what))
