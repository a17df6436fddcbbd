// SPDX-License-Identifier: MIT
#pragma once

// What the frame graph, the device and its backends agree on: handles, formats, and the ways a pass uses a resource.
//
//     nb_gpu_access wanted = NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_FROM;
//     if ((wanted & NB_GPU_ACCESS_WRITES) == 0) puts("reads only");

#include "nebula/types.h"

// Handles: zero is null, one of an object that was destroyed is refused as stale.
typedef struct nb_gpu_buffer {
    uint64_t value; // private
} nb_gpu_buffer;

typedef struct nb_gpu_image {
    uint64_t value; // private
} nb_gpu_image;

typedef struct nb_gpu_pipeline {
    uint64_t value; // private
} nb_gpu_pipeline;

typedef enum nb_gpu_format {
    NB_GPU_FORMAT_NONE = 0,
    NB_GPU_FORMAT_R8,    // unorm
    NB_GPU_FORMAT_RGBA8, // unorm
    NB_GPU_FORMAT_RGBA8_SRGB,
    NB_GPU_FORMAT_BGRA8, // unorm; what most surfaces have
    NB_GPU_FORMAT_BGRA8_SRGB,
    NB_GPU_FORMAT_RGBA16F,
    NB_GPU_FORMAT_R32F,
    NB_GPU_FORMAT_R32_UINT,
    NB_GPU_FORMAT_DEPTH32F,
    NB_GPU_FORMAT_COUNT,
} nb_gpu_format;

// How a pass uses a resource. Bits, of which a declaration takes one or more.
typedef uint32_t nb_gpu_access;
#define NB_GPU_ACCESS_NONE 0u           // contents undefined: before the first use
#define NB_GPU_ACCESS_COLOR 0x001u      // a colour attachment, written; what was there stays where it is not cleared
#define NB_GPU_ACCESS_DEPTH 0x002u      // the depth attachment, tested and written
#define NB_GPU_ACCESS_DEPTH_READ 0x004u // the depth attachment, tested only
#define NB_GPU_ACCESS_SAMPLED 0x008u    // read through a sampler
#define NB_GPU_ACCESS_STORAGE_READ 0x010u
#define NB_GPU_ACCESS_STORAGE 0x020u // read and written by shaders
#define NB_GPU_ACCESS_UNIFORM 0x040u
#define NB_GPU_ACCESS_VERTEX 0x080u
#define NB_GPU_ACCESS_INDEX 0x100u
#define NB_GPU_ACCESS_INDIRECT 0x200u
#define NB_GPU_ACCESS_COPY_FROM 0x400u
#define NB_GPU_ACCESS_COPY_TO 0x800u
#define NB_GPU_ACCESS_PRESENT 0x1000u // of an image that is shown: never declared, only in transitions
#define NB_GPU_ACCESS_WRITES (NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_COPY_TO)
#define NB_GPU_ACCESS_ALL 0x1fffu

// What images may be used as, and what buffers may.
#define NB_GPU_ACCESS_OF_IMAGES                                                                     \
    (NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ | NB_GPU_ACCESS_SAMPLED | \
     NB_GPU_ACCESS_STORAGE_READ | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_COPY_FROM | NB_GPU_ACCESS_COPY_TO)
#define NB_GPU_ACCESS_OF_BUFFERS                                                                         \
    (NB_GPU_ACCESS_STORAGE_READ | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_UNIFORM | NB_GPU_ACCESS_VERTEX | \
     NB_GPU_ACCESS_INDEX | NB_GPU_ACCESS_INDIRECT | NB_GPU_ACCESS_COPY_FROM | NB_GPU_ACCESS_COPY_TO)

typedef enum nb_gpu_pass_kind {
    NB_GPU_PASS_NONE = 0,
    NB_GPU_PASS_RENDER,  // draws into attachments
    NB_GPU_PASS_COMPUTE, // dispatches and copies
    NB_GPU_PASS_KIND_COUNT,
} nb_gpu_pass_kind;

// Four numbers for colour; the first for depth.
typedef struct nb_gpu_clear {
    float value[4];
} nb_gpu_clear;

// Longest name of a pass or resource in bytes, without the final zero; longer ones are cut. Control characters become
// question marks, so that a name is always part of one line.
#define NB_GPU_NAME_SIZE_MAX 31

// Records what one pass, or one bucket of it, does: see gpu_command.h.
typedef struct nb_gpu_command nb_gpu_command;

NB_EXTERN_C_BEGIN

// The name of a format, such as "rgba8".
// Thread: any. Owner: a static string. Fails: "unknown" for what is none.
NB_API const char *nb_gpu_format_name(nb_gpu_format format);

// Bytes of one pixel.
// Thread: any. Owner: nothing. Fails: 0 for what is no format.
NB_API uint32_t nb_gpu_format_bytes(nb_gpu_format format);

// The name of one access bit, such as "sampled".
// Thread: any. Owner: a static string. Fails: "none" for 0, "several" for more than one, "unknown" for what is no bit.
NB_API const char *nb_gpu_access_name(nb_gpu_access access);

NB_EXTERN_C_END
