// SPDX-License-Identifier: MIT
// Batches of questions.

#include "work_queries.h"

#include <string.h>

#include "picture_job.h"
#include "work_looks.h"

#define CELL_ONES (QUERY_CELL_SIZE * TERRAIN_ONE)
#define FACE_CELLS (SPHERE_FACE_COLUMNS / QUERY_CELL_SIZE)

static uint32_t cell_number(int32_t cell_x, int32_t cell_z) {
    return (uint32_t)cell_z % QUERY_GRID_SIZE * QUERY_GRID_SIZE + (uint32_t)cell_x % QUERY_GRID_SIZE;
}

static int32_t cell_of(int32_t place) { return place / CELL_ONES; }

void query_grid_build(query_grid *grid, uint32_t *rows, const int32_t *x, const int32_t *z, uint32_t count) {
    grid->rows = rows;
    memset(grid->first, 0, sizeof grid->first);
    for (uint32_t i = 0; i < count; ++i) ++grid->first[cell_number(cell_of(x[i]), cell_of(z[i])) + 1];
    for (uint32_t i = 0; i < QUERY_GRID_CELLS; ++i) grid->first[i + 1] += grid->first[i];
    // From the back, each cell's end moving down to its first: equal cells keep the order of the rows.
    for (uint32_t i = count; i > 0; --i) {
        uint32_t cell = cell_number(cell_of(x[i - 1]), cell_of(z[i - 1]));
        rows[--grid->first[cell + 1]] = i - 1;
    }
    // Now first[cell + 1] is where the cell starts: move all down by one.
    memmove(grid->first, grid->first + 1, QUERY_GRID_CELLS * sizeof grid->first[0]);
    grid->first[QUERY_GRID_CELLS] = count;
}

static uint64_t square(int32_t from, int32_t to) {
    int64_t span = (int64_t)to - from;
    return (uint64_t)(span * span);
}

// One cell as who asks sees it, and where that is, if it lies beyond the edge of the face.
typedef struct seen_cell {
    int32_t x, z; // its first place, on the face of who asks
    sphere_cell actual;
} seen_cell;

// Where an animal of the cell would be if its face lay flat beside that of who asks.
static void unfold(const seen_cell *cell, int32_t *x, int32_t *z) {
    // From the cell's middle, doubled so that it is whole; then back by the turns that led there.
    int32_t from_x = 2 * (*x - cell->actual.x * CELL_ONES) + 1 - CELL_ONES;
    int32_t from_z = 2 * (*z - cell->actual.z * CELL_ONES) + 1 - CELL_ONES;
    sphere_turn((4 - cell->actual.turns) % 4, &from_x, &from_z);
    *x = cell->x + (from_x + CELL_ONES - 1) / 2;
    *z = cell->z + (from_z + CELL_ONES - 1) / 2;
}

// Falls to 0 at the edge, with its slope.
static void pull_add(double x, double z, query_answer *answer) {
    const double reach = QUERY_PULL_RADIUS, near = QUERY_PULL_NEAR;
    double square = x * x + z * z, share = 1 - square / (reach * reach);
    if (share <= 0) return;
    double weight = share * share / sqrt(square + near * near);
    answer->pull_x += (float)(x * weight);
    answer->pull_z += (float)(z * weight);
}

static void search_cell(const queries_input *input, const query *asked, const seen_cell *seen, query_answer *best) {
    uint32_t cell = cell_number(seen->actual.x, seen->actual.z);
    for (uint32_t i = input->grid->first[cell]; i < input->grid->first[cell + 1]; ++i) {
        uint32_t row = input->grid->rows[i];
        int32_t x = input->x[row], z = input->z[row];
        bool is_here =
            input->face[row] == seen->actual.face && cell_of(x) == seen->actual.x && cell_of(z) == seen->actual.z;
        if (row == asked->self || !is_here) continue;
        unfold(seen, &x, &z);
        pull_add((double)(x - asked->x) / TERRAIN_ONE, (double)(z - asked->z) / TERRAIN_ONE, best);
        uint64_t distance = square(asked->x, x) + square(asked->z, z);
        bool is_tie = distance == best->distance_squared;
        if (distance > best->distance_squared || (is_tie && row > best->nearest)) continue;
        best->nearest = row;
        best->distance_squared = distance;
    }
}

static query_answer nearest(const queries_input *input, const query *asked) {
    const uint64_t reach = (uint64_t)QUERY_RADIUS * TERRAIN_ONE;
    query_answer best = {.nearest = QUERY_NONE, .distance_squared = reach * reach};
    int32_t cell_x = cell_of(asked->x), cell_z = cell_of(asked->z);
    for (int32_t i = 0; i < 9; ++i) {
        int32_t x = cell_x + i % 3 - 1, z = cell_z + i / 3 - 1;
        seen_cell seen = {x * CELL_ONES, z * CELL_ONES, sphere_fold(asked->face, x, z, FACE_CELLS)};
        search_cell(input, asked, &seen, &best);
    }
    if (best.nearest == QUERY_NONE) best.distance_squared = 0;
    return best;
}

static query_answer answer_of(const queries_input *input, const query *asked) {
    if (asked->kind == QUERY_NEAREST) return nearest(input, asked);
    query_answer answer = {.nearest = QUERY_NONE};
    if (asked->kind == QUERY_SIGHT)
        answer.is_seen = terrain_sees(input->seed, asked->from, asked->to, QUERY_SIGHT_STEPS);
    return answer;
}

void queries_run(const queries_input *input, uint32_t first, uint32_t count, queries_output *out) {
    for (uint32_t i = first; i < first + count; ++i)
        out->answers[out->answer_count++] = answer_of(input, &input->queries[i]);
}

void queries_append(queries_output *whole, const queries_output *part) {
    memcpy(whole->answers + whole->answer_count, part->answers, part->answer_count * sizeof(query_answer));
    whole->answer_count += part->answer_count;
}

// --- in every frame ---

// Each animal asks who is near, and those near the explorer whether they see it; their heads turn to the answers.
static nb_result queries_job(const nb_context *context, void *user) {
    const picture *p = user;
    const nb_snapshot *seen = context->snapshot;
    nb_table creatures = p->planet->creatures;
    uint32_t count = job_creature_count(context, p);
    looks_input looks = {.bodies = NB_STORE_VIEW(seen, p->world, creatures, CREATURE_BODY, pose_body),
                         .face = NB_STORE_VIEW(seen, p->world, creatures, CREATURE_FACE, uint8_t),
                         .x = NB_STORE_VIEW(seen, p->world, creatures, CREATURE_X, int32_t),
                         .z = NB_STORE_VIEW(seen, p->world, creatures, CREATURE_Z, int32_t),
                         .eye = job_eye(context, p)->position};
    job_share mine = job_share_of(context, count);
    query_grid *grid = nb_arena_alloc(context->arena, sizeof *grid, 16);
    uint32_t *rows = nb_arena_alloc(context->arena, (count + 1) * sizeof *rows, 16);
    query *queries = nb_arena_alloc(context->arena, (mine.count + LOOK_SIGHTS_MAX) * sizeof *queries, 16);
    if (grid == NULL || rows == NULL || queries == NULL) return NB_ERR_MEMORY;
    uint32_t query_count = looks_ask(&looks, mine.first, mine.count, queries);
    looks_output out = {.looks = job_output(context, mine.count * sizeof(vec3))};
    queries_output answers = {.answers = job_output(context, query_count * sizeof(query_answer))};
    if (out.looks == NULL || answers.answers == NULL) return NB_ERR_MEMORY;
    query_grid_build(grid, rows, looks.x, looks.z, count);
    queries_input input = {p->planet->seed, queries, looks.face, looks.x, looks.z, grid};
    queries_run(&input, 0, query_count, &answers);
    looks_run(&looks, mine.first, mine.count, queries, &answers, &out);
    return NB_OK;
}

static nb_result queries_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    picture *p = user;
    size_t size_bytes = 0;
    const vec3 *looks = merge_note(context, p, outputs, &size_bytes);
    job_share mine = job_share_of(context, job_creature_count(context, p));
    memcpy(p->made.looks + mine.first, looks, mine.count * sizeof *looks);
    nb_output_list_next(outputs, looks, &size_bytes);
    p->now.answer_count += (uint32_t)(size_bytes / sizeof(query_answer));
    return NB_OK;
}

const nb_module_desc work_queries_module = {
    .name = "questions", .parallel = queries_job, .merge = queries_merge, .job_count = 4};
