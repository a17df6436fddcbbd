// SPDX-License-Identifier: MIT
#pragma once

// What the nine kinds of parallel work share. Each kind is a file work_<kind>.c: a function over plain arrays, the job
// and the merge that run it in every frame, and the module that names them. The one rule: a job writes its outputs
// alone, and merges run one after the other in the order of the jobs.
//
//     job_share mine = job_share_of(context, job_creature_count(context, p));
//     pose *poses = job_output(context, mine.count * sizeof *poses);
//     if (poses == NULL) return NB_ERR_MEMORY;

#include "picture.h"

// The modules, without their user: the picture.
extern const nb_module_desc work_pose_module, work_particles_module, work_visibility_module, work_lod_module,
    work_lights_module, work_materials_module, work_queries_module, work_upload_module, work_occlusion_module;

// The things that one job works on.
typedef struct job_share {
    uint32_t first, count;
} job_share;

// Splits `count` things evenly among the jobs of the context.
job_share job_share_of(const nb_context *context, uint32_t count);

// One block of outputs, of one byte at least, so that a share of nothing has a block too. NULL only where memory is at
// its end, which fails the job.
void *job_output(const nb_context *context, size_t size_bytes);

// Of the frame's snapshot: the eye, and the rows of animals and of chunks.
const planet_eye *job_eye(const nb_context *context, const picture *p);
uint32_t job_creature_count(const nb_context *context, const picture *p);
uint32_t job_chunk_count(const nb_context *context, const picture *p);

// The border of the finest level of detail, in metres: a lower quality level draws coarser.
float job_finest_distance(const nb_context *context);

// Whether a merge is the first of its kind, or of all, in this frame; *frame_end remembers the frame. The first job is
// merged first unless it is late.
bool merge_is_first(const nb_context *context, uint64_t *frame_end);

// Hashes the blocks of a job, so that two runs can be compared, and returns the first with its size. The first merge of
// a frame resets the numbers of the frame.
const void *merge_note(const nb_context *context, picture *p, const nb_output_list *outputs, size_t *size_bytes);

// Whether rows are still where the jobs saw them. False where readers hold every slot: the snapshot is then an older
// frame's.
bool merge_is_of_now(const nb_context *context);

// Counts a merge. Returns the index of this frame + 1 when all jobs are merged and have seen this frame; else 0.
uint64_t merge_parts_end(const nb_context *context, picture_parts *parts);
