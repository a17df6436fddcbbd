// SPDX-License-Identifier: MIT
#pragma once

// The null backend: a device without a picture, for servers and for tests. It takes everything a real one takes, is
// through with it after as many frames as it is told, and fails where it is told to. It draws nothing and copies
// nothing but two things, for tools that read back: an image is all of the first colour that it was cleared to in the
// frame, and memory of the frame can be copied to a buffer for reading back. Waiting takes no time: what is waited for
// is over, unless the device is stuck.
//
//     nb_gpu_null *faults = NULL;
//     nb_gpu_null_create(NULL, &faults);
//     nb_gpu_desc desc = {.backend = nb_gpu_null_backend(), .backend_desc = &(nb_gpu_null_desc){.control = faults}};
//     nb_gpu_null_fail(faults, NB_GPU_NULL_LOST, 9); // with the tenth submit from here
//     nb_gpu_null_destroy(faults);

#include "nebula/gpu.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

typedef enum nb_gpu_null_fault {
    NB_GPU_NULL_NONE = 0,
    NB_GPU_NULL_STUCK,       // a read of the fence: it does not move any more, until NB_GPU_NULL_GO
    NB_GPU_NULL_GO,          // a read of the fence: ends NB_GPU_NULL_STUCK
    NB_GPU_NULL_JUMP,        // a read of the fence: it is beyond all that was handed over, once
    NB_GPU_NULL_BACK,        // a read of the fence that is above 0: it goes back by one, once
    NB_GPU_NULL_LOST,        // a submit: the device is lost
    NB_GPU_NULL_NO_DEVICE,   // the making of a device: there is none
    NB_GPU_NULL_MEMORY,      // an object or a submit: no memory
    NB_GPU_NULL_PRESENT,     // a present: it fails
    NB_GPU_NULL_OUT_OF_DATE, // a present, or the taking of an image: the surface has to be made anew
    NB_GPU_NULL_FAULT_COUNT,
} nb_gpu_null_fault;

// Faults that can wait: two of each kind, nearly.
#define NB_GPU_NULL_ORDER_COUNT_MAX 16u

// Outlives the devices it is given to: a lost one is made anew under the same orders.
typedef struct nb_gpu_null nb_gpu_null;

typedef struct nb_gpu_null_desc {
    nb_gpu_null *control;    // may be NULL
    uint32_t latency_frames; // submits after which one is over, 0 = at once; with frames in flight the device is behind
    bool has_surface;        // as if it was shown
    uint64_t pass_ns;        // how long it says that each pass took; 0 = it has no clock
    bool is_on_cpu;          // it says that it draws on the CPU
} nb_gpu_null_desc;

NB_EXTERN_C_BEGIN

// The backend.
// Thread: any. Owner: a static struct. Fails: never.
NB_API const nb_gpu_backend *nb_gpu_null_backend(void);

// Makes what gives orders to null devices. hooks may be NULL.
// Thread: any. Owner: the caller, until nb_gpu_null_destroy, after its devices. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE.
NB_API nb_result nb_gpu_null_create(const nb_hooks *hooks, nb_gpu_null **out);

// Ends it. NULL is fine.
// Thread: any. Owner: gone. Fails: never.
NB_API void nb_gpu_null_destroy(nb_gpu_null *control);

// Orders a fault, after `after` more calls that could show it (0 = the next), once.
// Thread: that of the frames. Owner: unchanged. Fails: NB_FULL (NB_GPU_NULL_ORDER_COUNT_MAX wait), NB_ERR_MISUSE.
NB_API nb_result nb_gpu_null_fail(nb_gpu_null *control, nb_gpu_null_fault fault, uint32_t after);

// Objects alive in the backend: to see that nothing is left.
// Thread: that of the frames. Owner: nothing. Fails: 0.
NB_API uint32_t nb_gpu_null_object_count(const nb_gpu_null *control);

NB_EXTERN_C_END
