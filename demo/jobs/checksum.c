// SPDX-License-Identifier: MIT
// A checksum of every frame, made by all threads.

#include "checksum.h"

#include "nebula/hash.h"

// What is simulated of an animal and drawn between two ticks: whole numbers, the same on every machine.
typedef struct rows {
    const int32_t *x, *y, *z;
    const uint8_t *face;
    uint32_t count;
} rows;

// Of the rows that belong to one job.
static uint64_t part_of(const rows *all, uint32_t job) {
    uint64_t first = (uint64_t)all->count * job / CHECKSUM_JOB_COUNT;
    uint64_t end = (uint64_t)all->count * (job + 1) / CHECKSUM_JOB_COUNT, count = end - first;
    uint64_t sum = nb_hash64(all->x + first, count * sizeof *all->x, job);
    sum = nb_hash64(all->y + first, count * sizeof *all->y, sum);
    sum = nb_hash64(all->z + first, count * sizeof *all->z, sum);
    return nb_hash64(all->face + first, count, sum);
}

static nb_result read_world(const nb_context *context, void *user) {
    (void)context;
    checksum *c = user;
    nb_store *world = c->planet->world;
    nb_table creatures = c->planet->creatures;
    rows all = {.x = NB_STORE_ROWS(world, creatures, CREATURE_X, int32_t),
                .y = NB_STORE_ROWS(world, creatures, CREATURE_Y, int32_t),
                .z = NB_STORE_ROWS(world, creatures, CREATURE_Z, int32_t),
                .face = NB_STORE_ROWS(world, creatures, CREATURE_FACE, uint8_t),
                .count = nb_store_row_count(world, creatures)};
    for (uint32_t i = 0; i < CHECKSUM_JOB_COUNT; ++i) c->expected[i] = part_of(&all, i);
    c->part_count = 0;
    return NB_OK;
}

static nb_result read_snapshot(const nb_context *context, void *user) {
    const checksum *c = user;
    const nb_snapshot *seen = context->snapshot;
    const nb_store *world = c->planet->world;
    nb_table creatures = c->planet->creatures;
    rows all = {.x = NB_STORE_VIEW(seen, world, creatures, CREATURE_X, int32_t),
                .y = NB_STORE_VIEW(seen, world, creatures, CREATURE_Y, int32_t),
                .z = NB_STORE_VIEW(seen, world, creatures, CREATURE_Z, int32_t),
                .face = NB_STORE_VIEW(seen, world, creatures, CREATURE_FACE, uint8_t),
                .count = nb_store_view_row_count(seen, world, creatures)};
    uint64_t *part = nb_output_add(context, sizeof *part);
    if (part == NULL) return NB_ERR_MEMORY;
    *part = part_of(&all, context->job_index);
    return NB_OK;
}

// A frame whose snapshot could not be published reads the one before, which is whole too, but of another tick.
static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    checksum *c = user;
    size_t size_bytes = 0;
    const uint64_t *part = nb_output_list_next(outputs, NULL, &size_bytes);
    if (part == NULL || context->snapshot->info.frame != context->frame_index) return NB_OK;
    c->parts[context->job_index] = *part;
    ++c->part_count;
    return NB_OK;
}

static nb_result compare(const nb_context *context, void *user) {
    (void)context;
    checksum *c = user;
    if (c->part_count != CHECKSUM_JOB_COUNT) {
        ++c->left_count;
        return NB_OK;
    }
    bool is_right = true;
    for (uint32_t i = 0; i < CHECKSUM_JOB_COUNT; ++i) is_right = is_right && c->parts[i] == c->expected[i];
    c->value = nb_hash64(c->parts, sizeof c->parts, 0);
    ++c->frame_count;
    c->wrong_count += !is_right;
    return NB_OK;
}

nb_result checksum_attach(checksum *c, nb_engine *engine, const planet *land) {
    *c = (checksum){.planet = land};
    nb_module_desc module = {
        .name = "checksum", .parallel = read_snapshot, .merge = merge, .job_count = CHECKSUM_JOB_COUNT, .user = c};
    module.handlers[NB_PHASE_SNAPSHOT] = read_world;
    module.handlers[NB_PHASE_POST_PARALLEL] = compare;
    return nb_engine_module_attach(engine, &module, NULL);
}
