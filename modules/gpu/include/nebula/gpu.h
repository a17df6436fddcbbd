// SPDX-License-Identifier: MIT
#pragma once

// The device: resources, memory of a frame, and the frame itself from its graph to the display. Attached to an engine
// it takes its places in the phases: passes are added in FrameGraph, recorded by jobs on all threads in CommandRecord,
// handed over in the order of the plan, shown in Present. Whatever the device does, the frame goes on: a picture may be
// left out, the simulation never waits. The one rule: a resource that is destroyed lives on until the device is through
// with it.
//
//     nb_gpu *gpu = NULL;
//     nb_gpu_desc desc = {.backend = NULL, .width = 640, .height = 360}; // the null backend
//     if (nb_gpu_create(&desc, &gpu) != NB_OK) return 1;
//     nb_gpu_attach(gpu, engine);
//     while (nb_engine_frame(engine) == NB_OK) {
//     }
//     nb_gpu_destroy(gpu);

#include "nebula/clock.h"
#include "nebula/engine.h"
#include "nebula/frame_graph.h"
#include "nebula/gpu_types.h"
#include "nebula/hooks.h"
#include "nebula/timeline.h"
#include "nebula/types.h"

// Frames that the device may be behind, where the desc gives none: one that it draws and one that waits.
#define NB_GPU_FRAMES_DEFAULT 2u
#define NB_GPU_FRAMES_MAX 4u

// Memory of a frame where the desc gives none: uploads of some hundred chunks and what is drawn with.
#define NB_GPU_FRAME_BYTES_DEFAULT ((size_t)16 << 20)
#define NB_GPU_FRAME_BYTES_MAX ((size_t)1 << 30)

// Uploads of one frame: thousands of chunks, which would take longer than a frame to copy.
#define NB_GPU_UPLOAD_COUNT_MAX 4096u

// Layers of an image, and groups of a dispatch along one axis: what every device has.
#define NB_GPU_LAYER_COUNT_MAX 256u
#define NB_GPU_GROUP_COUNT_MAX 65535u

// Recorded passes and buckets of one frame, beside one for each pass: 64 threads, finely cut, in some dozen passes.
#define NB_GPU_BUCKET_COUNT_MAX 4096u

#define NB_GPU_BUFFER_COUNT_DEFAULT 1024u
#define NB_GPU_IMAGE_COUNT_DEFAULT 256u
#define NB_GPU_PIPELINE_COUNT_DEFAULT 128u
#define NB_GPU_OBJECT_COUNT_MAX 65536u

// How long the start of a frame waits for the device before the picture is left out, and how long it may be stuck
// before it counts as lost, where the desc gives none.
#define NB_GPU_WAIT_NS_DEFAULT UINT64_C(100000000)
#define NB_GPU_STUCK_NS_DEFAULT UINT64_C(5000000000)

// Between two tries to make a lost device anew: at first one frame at 60 a second or so, then twice as long each time.
#define NB_GPU_RETRY_NS_MIN UINT64_C(16000000)
#define NB_GPU_RETRY_NS_MAX UINT64_C(2000000000)

// Frames after which memory of the graph that nobody has used is given back.
#define NB_GPU_IDLE_FRAMES_MAX 8u

// Threads that record at once, at most: lanes, each with its own memory for commands.
#define NB_GPU_LANE_COUNT_MAX 64u

// Bytes of constants that a draw or dispatch gets by value: what every device has.
#define NB_GPU_PUSH_BYTES_MAX 128u

// Buffers and images that one draw or dispatch sees: bindings 0 to 7 are buffers, 8 to 15 images.
#define NB_GPU_BUFFER_BINDING_COUNT 8u
#define NB_GPU_IMAGE_BINDING_COUNT 8u

typedef struct nb_gpu nb_gpu;
typedef struct nb_gpu_backend nb_gpu_backend; // gpu_backend.h

typedef enum nb_gpu_memory {
    NB_GPU_MEMORY_DEVICE = 0, // filled by copies
    NB_GPU_MEMORY_READBACK,   // read by the CPU after the frame that wrote it is over
    NB_GPU_MEMORY_COUNT,
} nb_gpu_memory;

typedef struct nb_gpu_buffer_desc {
    const char *name; // for reports; copied; NULL = "buffer"
    uint64_t size_bytes;
    nb_gpu_memory memory;
} nb_gpu_buffer_desc;

typedef struct nb_gpu_image_desc {
    const char *name; // for reports; copied; NULL = "image"
    nb_gpu_format format;
    uint32_t width, height;
    uint32_t layer_count; // 0 = 1; above, an array
    nb_gpu_access access; // all it will be used for
} nb_gpu_image_desc;

typedef enum nb_gpu_topology {
    NB_GPU_TOPOLOGY_TRIANGLES = 0,
    NB_GPU_TOPOLOGY_TRIANGLE_STRIP,
    NB_GPU_TOPOLOGY_LINES,
    NB_GPU_TOPOLOGY_POINTS,
    NB_GPU_TOPOLOGY_COUNT,
} nb_gpu_topology;

typedef enum nb_gpu_blend {
    NB_GPU_BLEND_NONE = 0, // replaces
    NB_GPU_BLEND_ALPHA,    // straight alpha
    NB_GPU_BLEND_ADD,
    NB_GPU_BLEND_COUNT,
} nb_gpu_blend;

typedef enum nb_gpu_cull {
    NB_GPU_CULL_NONE = 0,
    NB_GPU_CULL_BACK, // front faces run counter-clockwise as they are seen
    NB_GPU_CULL_FRONT,
    NB_GPU_CULL_COUNT,
} nb_gpu_cull;

// Depth is reversed: 1 is near, 0 is far, cleared to 0, and nearer passes with "greater or equal".
typedef enum nb_gpu_depth {
    NB_GPU_DEPTH_NONE = 0,
    NB_GPU_DEPTH_TEST,
    NB_GPU_DEPTH_TEST_WRITE,
    NB_GPU_DEPTH_COUNT,
} nb_gpu_depth;

// Clip space is Vulkan's: x from -1 at the left to 1, y from -1 at the top to 1 at the bottom. Where y is to go up, the
// projection turns it round; nothing here does. SPIR-V, entry point "main". Vertices are pulled from storage buffers;
// there are no vertex attributes.
typedef struct nb_gpu_shader {
    const uint32_t *words; // copied
    size_t size_bytes;
} nb_gpu_shader;

typedef struct nb_gpu_pipeline_desc {
    const char *name;               // for reports; copied; NULL = "pipeline"
    nb_gpu_shader vertex, fragment; // of a pipeline that draws
    nb_gpu_shader compute;          // of one that computes: then the others are empty
    nb_gpu_format colors[NB_GRAPH_COLOR_COUNT_MAX];
    uint32_t color_count;
    nb_gpu_format depth_format; // NONE: without depth
    nb_gpu_topology topology;
    nb_gpu_blend blend;
    nb_gpu_cull cull;
    nb_gpu_depth depth;
    uint32_t push_bytes;         // up to NB_GPU_PUSH_BYTES_MAX
    uint32_t uniform_mask;       // bits 0..7: buffer bindings that are uniform buffers
    uint32_t storage_mask;       // bits 0..7: buffer bindings that are storage buffers
    uint32_t sampled_mask;       // bits 0..7: image bindings (8 + bit) that are sampled
    uint32_t storage_image_mask; // bits 0..7: image bindings that are storage images
} nb_gpu_pipeline_desc;

// A piece of the frame's memory: the CPU writes it, the device reads it in this frame, as any kind of buffer or as what
// is copied from.
typedef struct nb_gpu_span {
    void *memory;
    nb_gpu_buffer buffer;
    uint64_t offset;
    size_t size_bytes;
} nb_gpu_span;

typedef struct nb_gpu_desc {
    const nb_gpu_backend *backend; // nb_gpu_null_backend() or nb_gpu_vulkan_backend(); NULL = null
    const void *backend_desc;      // as that one says; NULL = its defaults
    uint32_t width, height;        // of the back buffer where there is no surface; 0 = 640 x 360
    bool is_vsync_off;             // of a surface
    uint32_t frames_in_flight;     // 1 to NB_GPU_FRAMES_MAX
    size_t frame_bytes;            // memory of each frame in flight
    uint32_t buffer_count_max, image_count_max, pipeline_count_max;
    uint32_t lane_count; // threads that record, at most; 0 = as many as this machine has
    uint64_t wait_ns;    // default NB_GPU_WAIT_NS_DEFAULT
    uint64_t stuck_ns;   // default NB_GPU_STUCK_NS_DEFAULT
    nb_clock clock;      // for stuck_ns and the pauses between tries; zero = the machine's
    nb_graph_desc graph; // its hooks are these
    // Called after the device was lost and made anew: resources and pipelines are there again under the same handles,
    // their contents are not. On the thread of the frame, before this one's memory can be taken: it notes what is to be
    // uploaded again.
    void (*on_restored)(nb_gpu *gpu, void *user);
    void *user;
    nb_hooks hooks;
} nb_gpu_desc;

// Since creation, unless said otherwise.
typedef struct nb_gpu_stats {
    uint64_t frame_count;                    // frames begun
    uint64_t submit_count;                   // pictures handed over
    uint64_t skipped_behind_count;           // pictures left out because the device was behind
    uint64_t skipped_late_count;             // because late jobs of the engine may still write to the frame's memory
    uint64_t skipped_hidden_count;           // because there was nothing to show it on: no size, or no surface
    uint64_t skipped_lost_count;             // because it was lost
    uint64_t skipped_failed_count;           // because the graph or a recording failed, or memory for it
    uint64_t present_failed_count;           // pictures that could not be shown
    uint64_t resize_count;                   // surfaces made anew
    uint64_t lost_count;                     // devices lost
    uint64_t restored_count;                 // and made anew
    uint64_t value_refused_count;            // fence values that went backwards, or beyond what was handed over
    uint64_t misuse_count;                   // commands refused: undeclared resources, wrong state
    uint64_t span_full_count;                // nb_gpu_frame_alloc without memory
    uint64_t upload_bytes;                   // copied to resources
    uint64_t upload_lost_bytes;              // of uploads that could not be handed over
    uint64_t retired_count, reclaimed_count; // resources
    uint64_t submitted_value;                // of the newest frame handed over
    uint64_t completed_value;                // of the newest that the device is through with
    uint32_t buffer_count, image_count, pipeline_count;              // alive, without the device's own
    uint64_t memory_bytes;                                           // of the device, in use
    uint64_t memory_budget_bytes;                                    // as the driver says; 0 = unknown
    uint32_t pass_count, culled_count, draw_count, transition_count; // of the newest picture
    uint64_t command_hash; // of its commands in their order: the same for any number of threads
    uint64_t gpu_ns;       // of the newest that is over: from its first pass to its last; 0 = unknown
} nb_gpu_stats;

// Time of one pass of the newest picture that is over.
typedef struct nb_gpu_pass_time {
    char name[NB_GPU_NAME_SIZE_MAX + 1];
    uint64_t begin_ns, end_ns; // since the first pass began
} nb_gpu_pass_time;

// Pixels of a picture, row by row from above, four bytes each: red, green, blue, alpha.
typedef struct nb_gpu_capture {
    const uint8_t *pixels;
    uint32_t width, height;
    uint64_t frame; // the frame_count it was taken in
} nb_gpu_capture;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_gpu_desc nb_gpu_desc_default(void);

// Makes a device. desc may be NULL: a null device.
// Thread: any; the thread of the frames from then on. Owner: the caller, until nb_gpu_destroy. Fails: NB_ERR_MEMORY,
// NB_ERR_RANGE, NB_ERR_MISUSE, NB_ERR_UNSUPPORTED (no driver, or one that lacks what is needed: the log says what).
NB_API nb_result nb_gpu_create(const nb_gpu_desc *desc, nb_gpu **out);

// Detaches it from its engine, waits for the device (stuck_ns at most), destroys what is left of it and it. NULL is
// fine.
// Thread: that of the frames, between frames. Owner: all handles end. Fails: NB_BUSY (a frame is begun, or a late job
// of the engine may still write to memory of a frame: nothing is done; inside a frame of the engine it is detached with
// the end of that: call again), NB_ERR_THREAD.
NB_API nb_result nb_gpu_destroy(nb_gpu *gpu);

// Attaches the device to an engine as two modules: "gpu", of the highest priority, begins the frame in FrameStart;
// "gpu.record", of the lowest, compiles the graph in FrameGraph, records and hands over in CommandRecord and shows the
// picture in Present. Handlers between them add passes in FrameGraph to nb_gpu_graph. What is destroyed is reclaimed
// with the engine's timelines. On a headless engine there are no pictures. Detaching one of the two modules
// detaches the other and the device.
// Thread: the coordinator, between frames. Owner: the engine borrows the device until nb_gpu_destroy, or its own end,
// which detaches the device and waits for it. Fails: as nb_engine_module_attach; NB_BUSY (attached already, a frame by
// hand is begun, or the device has work that does not end), NB_FULL (no timeline is left), NB_ERR_MEMORY.
NB_API nb_result nb_gpu_attach(nb_gpu *gpu, nb_engine *engine);

// --- without an engine: the frame by hand; attached, the modules do these, and the calls are refused as misuse ---

// Begins a frame: reads how far the device is, reclaims, restores what was lost, takes the next image of the surface.
// Not NB_OK: there is no picture in this frame, everything else may go on, nb_gpu_frame_end is still due.
// Thread: that of the frames. Owner: unchanged. Fails: NB_BUSY (the device is behind, the surface has no size, or late
// jobs have the memory), NB_ERR_LOST (and is not there again yet), NB_ERR_MEMORY, NB_ERR_MISUSE.
NB_API nb_result nb_gpu_frame_begin(nb_gpu *gpu);

// Compiles the graph and makes its resources.
// Thread: that of the frames. Owner: unchanged. Fails: as nb_graph_compile; NB_ERR_MEMORY; NB_EMPTY (no picture).
NB_API nb_result nb_gpu_frame_compile(nb_gpu *gpu);

// Records passes and buckets until none is left; called once for each lane, by as many threads as there are lanes.
// Thread: any, one for each lane. Owner: unchanged. Fails: what a record function returned; NB_EMPTY (no picture).
NB_API nb_result nb_gpu_frame_record(nb_gpu *gpu, uint32_t lane);

// Hands over what was recorded, in the order of the plan. After all lanes have returned.
// Thread: that of the frames. Owner: unchanged. Fails: NB_ERR_LOST, NB_ERR_MEMORY, NB_EMPTY (no picture).
NB_API nb_result nb_gpu_frame_submit(nb_gpu *gpu);

// Shows the picture and ends the frame. A surface that no longer fits is made anew with the next frame.
// Thread: that of the frames. Owner: unchanged. Fails: NB_ERR_LOST, NB_ERR_MISUSE (no frame).
NB_API nb_result nb_gpu_frame_end(nb_gpu *gpu);

// --- of the frame ---

// The graph of the frame, to be added to until it is compiled.
// Thread: that of the frames. Owner: the device. Fails: NULL where this frame has no picture.
NB_API nb_graph *nb_gpu_graph(nb_gpu *gpu);

// What is shown in the end, an import named "backbuffer", and its size.
// Thread: that of the frames. Owner: the graph. Fails: null where this frame has no picture.
NB_API nb_graph_resource nb_gpu_backbuffer(nb_gpu *gpu, uint32_t *width, uint32_t *height);

// The format of the back buffer.
// Thread: that of the frames. Owner: nothing. Fails: NB_GPU_FORMAT_NONE for NULL.
NB_API nb_gpu_format nb_gpu_backbuffer_format(const nb_gpu *gpu);

// Memory of this frame; alignment is a power of two up to 256, 0 = 16; what is bound needs 256. Taken by record
// functions too: no lock, no order.
// Thread: any, from nb_gpu_frame_begin to nb_gpu_frame_submit. Owner: the device, until it is through with the frame.
// Fails: NB_FULL (counted), NB_EMPTY (no picture in this frame), NB_ERR_MISUSE.
NB_API nb_result nb_gpu_frame_alloc(nb_gpu *gpu, size_t size_bytes, size_t alignment, nb_gpu_span *out);

// The same for a job of ParallelTasks, which may be late: refused where the engine is not in `frame` (the job's
// context->frame) any more, so that it never writes to a newer one. What it was given in time it may write to as late
// as it likes: until it has returned that memory is not used again, and counts for skipped_late_count where there is no
// other. Null is any frame.
// Thread: any. Owner: as above. Fails: as above, NB_ERR_STALE (not reported).
NB_API nb_result nb_gpu_frame_alloc_at(nb_gpu *gpu, nb_fence_frame frame, size_t size_bytes, size_t alignment,
                                       nb_gpu_span *out);

// Copies a span to a buffer before the frame's passes, in the order of the calls. Also where the picture is left out
// after that, because the graph or a recording failed.
// Thread: that of the frames, before nb_gpu_frame_compile. Owner: unchanged. Fails: NB_FULL, NB_ERR_STALE,
// NB_ERR_RANGE, NB_ERR_MISUSE (a span of another frame, a buffer for reading back), NB_EMPTY (no picture).
NB_API nb_result nb_gpu_upload_buffer(nb_gpu *gpu, nb_gpu_span span, nb_gpu_buffer buffer, uint64_t offset);

// Copies a span to one layer of an image, all of it, rows without gaps.
// Thread: as above. Owner: unchanged. Fails: as above.
NB_API nb_result nb_gpu_upload_image(nb_gpu *gpu, nb_gpu_span span, nb_gpu_image image, uint32_t layer);

// --- resources ---

// Makes a buffer. Contents are undefined. Like all that make and destroy it is refused while a frame is recorded.
// Thread: that of the frames. Owner: the caller, until nb_gpu_buffer_destroy or nb_gpu_destroy. Fails: NB_FULL,
// NB_ERR_MEMORY, NB_ERR_RANGE, NB_ERR_MISUSE, NB_ERR_LOST, NB_BUSY (between nb_gpu_frame_compile and
// nb_gpu_frame_submit).
NB_API nb_result nb_gpu_buffer_create(nb_gpu *gpu, const nb_gpu_buffer_desc *desc, nb_gpu_buffer *out);

// Retires a buffer: the handle ends at once, the memory when the device is through with it. Uploads to it in this frame
// are dropped.
// Thread: that of the frames. Owner: the device. Fails: NB_ERR_STALE, NB_FULL (too many wait; it is still there),
// NB_BUSY.
NB_API nb_result nb_gpu_buffer_destroy(nb_gpu *gpu, nb_gpu_buffer buffer);

// The memory of a NB_GPU_MEMORY_READBACK buffer: as the newest frame that is over has left it.
// Thread: that of the frames. Owner: the device, until the buffer is destroyed. Fails: NULL.
NB_API const void *nb_gpu_buffer_memory(nb_gpu *gpu, nb_gpu_buffer buffer);

// Makes an image.
// Thread: that of the frames. Owner: as a buffer. Fails: as a buffer; NB_ERR_UNSUPPORTED (format and access).
NB_API nb_result nb_gpu_image_create(nb_gpu *gpu, const nb_gpu_image_desc *desc, nb_gpu_image *out);

// Retires an image.
// Thread: that of the frames. Owner: as a buffer. Fails: as a buffer.
NB_API nb_result nb_gpu_image_destroy(nb_gpu *gpu, nb_gpu_image image);

// Makes a pipeline; it takes milliseconds, so not in the middle of the game.
// Thread: that of the frames. Owner: as a buffer. Fails: as a buffer; NB_ERR_MISUSE (shaders that the driver refuses).
NB_API nb_result nb_gpu_pipeline_create(nb_gpu *gpu, const nb_gpu_pipeline_desc *desc, nb_gpu_pipeline *out);

// Retires a pipeline.
// Thread: that of the frames. Owner: as a buffer. Fails: as a buffer.
NB_API nb_result nb_gpu_pipeline_destroy(nb_gpu *gpu, nb_gpu_pipeline pipeline);

// --- around it ---

// Another size of the back buffer, from the next frame on. 0 x 0: minimised, no pictures.
// Thread: that of the frames. Owner: unchanged. Fails: NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_gpu_resize(nb_gpu *gpu, uint32_t width, uint32_t height);

// Whether the surface waits for the display, from the next frame on.
// Thread: that of the frames. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_gpu_set_vsync(nb_gpu *gpu, bool is_on);

// Asks for the pixels of this frame's picture, before nb_gpu_frame_compile. The graph gets a pass "capture" then.
// Thread: that of the frames. Owner: unchanged. Fails: NB_BUSY (one is under way), NB_EMPTY (no picture),
// NB_ERR_MEMORY, NB_ERR_UNSUPPORTED (the surface has other pixels than four bytes).
NB_API nb_result nb_gpu_capture_ask(nb_gpu *gpu);

// The pixels, when the device is through with that frame; wait_ns 0 does not wait.
// Thread: that of the frames. Owner: the device, until the next nb_gpu_capture_ask. Fails: NB_EMPTY (none was asked
// for), NB_BUSY (not yet), NB_ERR_LOST (that picture was never drawn).
NB_API nb_result nb_gpu_capture_take(nb_gpu *gpu, uint64_t wait_ns, nb_gpu_capture *out);

// Waits until the device has nothing to do.
// Thread: that of the frames, between frames. Owner: unchanged. Fails: NB_TIMEOUT, NB_ERR_LOST.
NB_API nb_result nb_gpu_wait_idle(nb_gpu *gpu, uint64_t timeout_ns);

// The timeline of the device: n is reached when it is through with the n-th picture, or the uploads of one that failed,
// or has lost it. Another one from nb_gpu_attach on, until it is detached.
// Thread: that of the frames; what it returns, any. Owner: the device. Fails: NULL for NULL.
NB_API nb_timeline *nb_gpu_timeline(nb_gpu *gpu);

// Counters.
// Thread: that of the frames. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_gpu_stats nb_gpu_stats_get(const nb_gpu *gpu);

// Times of the passes of the newest picture that is over: up to count_max of them, and how many there are.
// Thread: that of the frames. Owner: the caller's array. Fails: 0.
NB_API uint32_t nb_gpu_pass_times(const nb_gpu *gpu, nb_gpu_pass_time *times, uint32_t count_max);

// The name of the backend and of the device, such as "vulkan: llvmpipe".
// Thread: any. Owner: the device. Fails: "" for NULL.
NB_API const char *nb_gpu_name(const nb_gpu *gpu);

NB_EXTERN_C_END
