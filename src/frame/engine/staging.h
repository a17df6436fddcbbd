// SPDX-License-Identifier: MIT
#pragma once

// The rows that handlers have asked to spawn and despawn, until their tick or SceneMutation applies them: a stage for
// each handler and job, applied in that order. A stage grows in place from reserved pages up to desc.stage_bytes_max.

#include "nebula/store.h"

typedef struct nbi_staging {
    nb_store_stage *stages; // desc.stage_count_max; the first `count` are in use, in the order of taking
    nb_store_stage **order; // to those, for nbi_store_apply, which sorts them
    unsigned char *pages;   // of all stages, one behind the other; NULL = there is no world
    size_t stride_bytes;    // from the pages of one stage to those of the next
    uint32_t count;
    bool has_refused; // the handler that runs got no stage
} nbi_staging;

struct nb_engine;

nb_result nbi_staging_create(struct nb_engine *engine);
void nbi_staging_destroy(struct nb_engine *engine);

// Whether the handler at this place got no stage, or has one without room for a command.
bool nbi_stages_are_full(const struct nb_engine *engine, uint32_t handler_index);

// Applies what handlers have staged, or drops what the handler at this place has.
void nbi_stages_apply(struct nb_engine *engine);
void nbi_stages_drop(struct nb_engine *engine, uint32_t handler_index);
