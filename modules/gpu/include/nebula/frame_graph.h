// SPDX-License-Identifier: MIT
#pragma once

// The frame graph: passes say which named resources they read and write, in any order; compiling it leaves out what
// nobody needs, puts the rest in order and plans the transitions between uses. It plans and nothing more, so it works
// without a device. The one rule: who writes a resource runs before all who read it, whatever the order of adding;
// those who write the same one run in the order of adding.
//
//     nb_graph *graph = NULL;
//     if (nb_graph_create(NULL, &graph) != NB_OK) return 1;
//     nb_graph_begin(graph);
//     nb_graph_resource depth, color;
//     nb_graph_image_add(graph, &(nb_graph_image_desc){"depth", NB_GPU_FORMAT_DEPTH32F, 640, 360}, &depth);
//     nb_graph_image_add(graph, &(nb_graph_image_desc){"color", NB_GPU_FORMAT_RGBA8, 640, 360}, &color);
//     nb_graph_pass ground;
//     nb_graph_pass_add(graph, &(nb_graph_pass_desc){.name = "ground", .kind = NB_GPU_PASS_RENDER}, &ground);
//     nb_graph_use(graph, ground, depth, NB_GPU_ACCESS_DEPTH);
//     nb_graph_use(graph, ground, color, NB_GPU_ACCESS_COLOR);
//     nb_graph_keep(graph, color);
//     const nb_graph_plan *plan = NULL;
//     if (nb_graph_compile(graph, &plan) == NB_OK) printf("%u passes\n", plan->step_count);
//     nb_graph_destroy(graph);

#include "nebula/gpu_types.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Where the desc gives none: a large renderer has a hundred passes.
#define NB_GRAPH_PASS_COUNT_DEFAULT 256u
#define NB_GRAPH_RESOURCE_COUNT_DEFAULT 512u
#define NB_GRAPH_USE_COUNT_DEFAULT 2048u
#define NB_GRAPH_PASS_COUNT_MAX 65536u
#define NB_GRAPH_RESOURCE_COUNT_MAX 65536u
#define NB_GRAPH_USE_COUNT_MAX (1u << 20)

// Colour attachments of one pass: what every Vulkan device has.
#define NB_GRAPH_COLOR_COUNT_MAX 4u

// More than any device has: images of 32768 pixels a side, buffers of a tebibyte.
#define NB_GRAPH_IMAGE_SIZE_MAX 32768u
#define NB_GRAPH_BUFFER_BYTES_MAX (UINT64_C(1) << 40)

// The slot of what has none: imports, and what is not used.
#define NB_GRAPH_SLOT_NONE UINT32_MAX

// Buckets of one pass that are recorded side by side: what keeps 64 threads busy to the end.
#define NB_GRAPH_BUCKET_COUNT_MAX 256u

// A graph: assembled and compiled anew for every frame, in the same memory.
typedef struct nb_graph nb_graph;

// Passes and resources of one assembly; null is zero. Those of an earlier one are stale.
typedef struct nb_graph_pass {
    uint64_t value; // private
} nb_graph_pass;

typedef struct nb_graph_resource {
    uint64_t value; // private
} nb_graph_resource;

typedef struct nb_graph_desc {
    uint32_t pass_count_max;     // 0 = NB_GRAPH_PASS_COUNT_DEFAULT
    uint32_t resource_count_max; // 0 = NB_GRAPH_RESOURCE_COUNT_DEFAULT
    uint32_t use_count_max;      // pairs of pass and resource, and nb_graph_after; 0 = NB_GRAPH_USE_COUNT_DEFAULT
    nb_hooks hooks;              // all memory is allocated at creation
} nb_graph_desc;

// Records the commands of one bucket of a pass; on any thread, buckets of one pass at once. A failure leaves the whole
// picture of this frame out.
typedef nb_result (*nb_graph_record_fn)(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user);

typedef struct nb_graph_pass_desc {
    const char *name; // unique among the passes of the assembly; copied
    nb_gpu_pass_kind kind;
    nb_graph_record_fn record; // NULL: it only clears, or orders others
    void *user;
    uint32_t bucket_count; // 0 = 1
    bool is_kept;          // it has effects beside its resources and is never left out
} nb_graph_pass_desc;

// An image that lives within the frame: its contents are undefined before its first write. Those alike that are never
// alive at the same time share one slot.
typedef struct nb_graph_image_desc {
    const char *name; // unique among the resources of the assembly; copied
    nb_gpu_format format;
    uint32_t width, height; // in pixels, 1 to NB_GRAPH_IMAGE_SIZE_MAX
} nb_graph_image_desc;

typedef struct nb_graph_buffer_desc {
    const char *name;    // as of an image
    uint64_t size_bytes; // 1 to NB_GRAPH_BUFFER_BYTES_MAX
} nb_graph_buffer_desc;

// A resource that was there before the frame, and stays.
typedef struct nb_graph_import_desc {
    const char *name;     // as of an image
    nb_gpu_image image;   // the one or the other, or neither where the graph is used without a device
    nb_gpu_buffer buffer; // the same
    bool is_buffer;
    nb_gpu_format format;   // of an image
    uint32_t width, height; // of an image
    uint64_t size_bytes;    // of a buffer; 0 = not said
    nb_gpu_access before;   // how it was used last; NB_GPU_ACCESS_NONE: its contents are not needed
    nb_gpu_access after;    // what it is to be left for; NB_GPU_ACCESS_NONE: as its last use leaves it
} nb_graph_import_desc;

// From one use of a resource to the next. The layout of an image is that of all of `after` together.
typedef struct nb_graph_transition {
    uint32_t resource;    // index into the plan's resources
    nb_gpu_access before; // what is to be waited for: all uses of the same memory since its last transition
    nb_gpu_access after;  // what is to wait: all uses until the next
    bool is_discarded;    // nobody needs what is there, `before` may even be of another resource in the same slot
} nb_graph_transition;

typedef struct nb_graph_attachment {
    uint32_t resource;    // index into the plan's resources
    nb_gpu_access access; // of the whole pass, with NB_GPU_ACCESS_SAMPLED where depth is read both ways
    bool is_cleared;      // by `clear`
    bool is_discarded;    // there is nothing that could be kept, and it is not cleared either
    nb_gpu_clear clear;
} nb_graph_attachment;

// A pass that runs, in the order of the plan.
typedef struct nb_graph_step {
    const char *name;
    uint32_t pass; // in the order of adding
    nb_gpu_pass_kind kind;
    nb_graph_record_fn record;
    void *user;
    uint32_t bucket_count;
    uint32_t transition_first, transition_count; // before it
    uint32_t color_count;
    nb_graph_attachment colors[NB_GRAPH_COLOR_COUNT_MAX]; // in the order of declaring
    nb_graph_attachment depth;                            // access 0: none
    uint32_t width, height;                               // of the attachments; 0 without
} nb_graph_step;

typedef struct nb_graph_plan_resource {
    const char *name;
    bool is_buffer, is_imported;
    bool is_used;       // by a pass that runs
    nb_gpu_image image; // of an import
    nb_gpu_buffer buffer;
    nb_gpu_format format;
    uint32_t width, height;
    uint64_t size_bytes;
    nb_gpu_access access;           // all uses in the plan
    uint32_t step_first, step_last; // its life, where it is used
    uint32_t root;                  // the resource that it is the renewed memory of; itself where it is not renewed
    uint32_t slot;                  // equal slots are the same memory at different times; NB_GRAPH_SLOT_NONE without
} nb_graph_plan_resource;

// Memory of what lives within the frame.
typedef struct nb_graph_slot {
    bool is_buffer;
    nb_gpu_format format;
    uint32_t width, height;
    uint64_t size_bytes;
    nb_gpu_access access;      // all uses of all who share it
    nb_gpu_access access_last; // at the end; what the next frame waits for, where it has the same memory
} nb_graph_slot;

// What is to be done. Valid until the next nb_graph_begin.
typedef struct nb_graph_plan {
    const nb_graph_step *steps;
    uint32_t step_count;
    const nb_graph_transition *transitions;
    uint32_t transition_count;         // in all
    uint32_t final_first, final_count; // those after the last step
    const nb_graph_plan_resource *resources;
    uint32_t resource_count;
    const nb_graph_slot *slots;
    uint32_t slot_count;
    uint32_t culled_count; // passes that nobody needed
} nb_graph_plan;

// What went wrong, where nb_graph_compile fails; also in the log.
typedef struct nb_graph_error {
    nb_result result;
    char pass[NB_GPU_NAME_SIZE_MAX + 1];     // "" where it is of none
    char resource[NB_GPU_NAME_SIZE_MAX + 1]; // likewise
    char text[256];                          // one line for a person
} nb_graph_error;

// Takes a piece of text; `size_bytes` without a final zero.
typedef void (*nb_graph_write_fn)(void *user, const char *text, size_t size_bytes);

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_graph_desc nb_graph_desc_default(void);

// Makes a graph; all its memory is allocated here. desc may be NULL.
// Thread: any. Owner: the caller, until nb_graph_destroy. Fails: NB_ERR_MEMORY, NB_ERR_RANGE, NB_ERR_MISUSE.
NB_API nb_result nb_graph_create(const nb_graph_desc *desc, nb_graph **out);

// Ends it. NULL is fine.
// Thread: one at a time. Owner: the graph and its plan are gone. Fails: never.
NB_API void nb_graph_destroy(nb_graph *graph);

// Begins an assembly: what was there is gone, the newest plan too.
// Thread: one at a time. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_graph_begin(nb_graph *graph);

// Adds an image that lives within the frame.
// Thread: one at a time. Owner: the graph; the name is copied. Fails: NB_FULL, NB_ERR_MISUSE (no name, a name that is
// taken, no format, not begun, compiled already), NB_ERR_RANGE (no size, or too large a one).
NB_API nb_result nb_graph_image_add(nb_graph *graph, const nb_graph_image_desc *desc, nb_graph_resource *out);

// Adds a buffer that lives within the frame.
// Thread: one at a time. Owner: as above. Fails: as above.
NB_API nb_result nb_graph_buffer_add(nb_graph *graph, const nb_graph_buffer_desc *desc, nb_graph_resource *out);

// Adds what was there before. It counts as written.
// Thread: one at a time. Owner: as above; the image or buffer stays its owner's. Fails: as above, NB_ERR_MISUSE (a
// `before` or `after` that is not of its kind, or of two layouts).
NB_API nb_result nb_graph_import(nb_graph *graph, const nb_graph_import_desc *desc, nb_graph_resource *out);

// The same memory under a new name, for those who write over it: they run after all who use it under the old one, and
// what they find is what was left there. What an import is left with is what its newest name has.
// Thread: one at a time. Owner: as above. Fails: as above, NB_ERR_STALE, NB_ERR_MISUSE (it has a successor already).
NB_API nb_result nb_graph_renew(nb_graph *graph, nb_graph_resource resource, const char *name, nb_graph_resource *out);

// The newest name of the memory: the last successor of a resource, itself where it was not renewed.
// Thread: one at a time. Owner: nothing. Fails: NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_graph_newest(nb_graph *graph, nb_graph_resource resource, nb_graph_resource *out);

// The resource of a name, for modules that do not know each other.
// Thread: one at a time. Owner: nothing. Fails: NB_EMPTY (there is none), NB_ERR_MISUSE.
NB_API nb_result nb_graph_resource_find(nb_graph *graph, const char *name, nb_graph_resource *out);

// Adds a pass.
// Thread: one at a time. Owner: the graph; user stays the caller's, until the frame is recorded. Fails: NB_FULL,
// NB_ERR_MISUSE (no name, a name that is taken, no kind, not begun, compiled already), NB_ERR_RANGE (buckets).
NB_API nb_result nb_graph_pass_add(nb_graph *graph, const nb_graph_pass_desc *desc, nb_graph_pass *out);

// Says how a pass uses a resource; several calls for the same add up, and who writes and reads it counts as one who
// writes. Attachments are numbered in the order of their calls.
// Thread: one at a time. Owner: unchanged. Fails: NB_FULL, NB_ERR_STALE, NB_ERR_MISUSE (an access that is none, not of
// images or not of buffers, not of the format, or an attachment of a pass that does not render), NB_ERR_RANGE (too many
// attachments).
NB_API nb_result nb_graph_use(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_access access);

// Clears an attachment of the pass before it draws: what was written before is not needed for it.
// Thread: one at a time. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_MISUSE (it is no attachment that the pass
// writes).
NB_API nb_result nb_graph_clear(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_clear clear);

// Puts a pass behind another, where no resource says so. That is the order of recording: the device waits for what
// resources say, and it does not keep that other pass from being left out.
// Thread: one at a time. Owner: unchanged. Fails: NB_FULL, NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_graph_after(nb_graph *graph, nb_graph_pass pass, nb_graph_pass earlier);

// Says that a resource is wanted: whatever makes it is not left out, and its memory is nobody else's until the end.
// Imports with an `after` are wanted by themselves.
// Thread: one at a time. Owner: unchanged. Fails: NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_graph_keep(nb_graph *graph, nb_graph_resource resource);

// Plans the frame. A pass runs where it is kept, makes what is wanted, or writes what a pass that runs finds in a
// resource: what was written before a clear is found by nobody. Passes keep the order of adding wherever resources
// leave it open, so the plan is the same for the same assembly. Mistakes of passes that are left out are not looked
// for. out may be NULL; a second call gives the same.
// Thread: one at a time. Owner: the graph, until the next nb_graph_begin. Fails: NB_ERR_DEADLOCK (passes wait for
// each other in a circle), NB_ERR_MISUSE (a pass reads what nobody has written, uses one image in ways that exclude
// each other, or has attachments of different sizes; not begun); which pass and which resource is in the log and in
// nb_graph_error_get.
NB_API nb_result nb_graph_compile(nb_graph *graph, const nb_graph_plan **out);

// Why nb_graph_compile failed.
// Thread: one at a time. Owner: the graph, until the next nb_graph_begin. Fails: NULL where it did not.
NB_API const nb_graph_error *nb_graph_error_get(const nb_graph *graph);

// The access that a pass, by its number in the order of adding, has declared for a resource; 0 for none. How undeclared
// use is found while recording: one look into a table.
// Thread: any, between compile and begin. Owner: nothing. Fails: 0 for what is stale or NULL.
NB_API nb_gpu_access nb_graph_declared(const nb_graph *graph, uint32_t pass, nb_graph_resource resource);

// The index of a resource in the plan.
// Thread: any, between compile and begin. Owner: nothing. Fails: NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_graph_resource_index(const nb_graph *graph, nb_graph_resource resource, uint32_t *out);

// Writes the plan as a table for people: passes in order, their resources, transitions, what was left out.
// Thread: one at a time. Owner: unchanged. Fails: NB_ERR_MISUSE (not compiled).
NB_API nb_result nb_graph_print(const nb_graph *graph, nb_graph_write_fn write, void *user);

// Writes the graph in the DOT language: passes as boxes, resources as ellipses, what was left out in grey.
// Thread: one at a time. Owner: unchanged. Fails: NB_ERR_MISUSE (not compiled).
NB_API nb_result nb_graph_dot(const nb_graph *graph, nb_graph_write_fn write, void *user);

NB_EXTERN_C_END
