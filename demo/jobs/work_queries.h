// SPDX-License-Identifier: MIT
#pragma once

// Batches of questions that an animal's mind asks about the planet: who is nearest to me, also over the edge of a face,
// where are those around me, and is that place in sight. The animals are found through a grid that is built once for
// all questions.

#include <stdbool.h>
#include <stdint.h>

#include "../planet/terrain.h"

// Cells of 32 columns; an animal is looked for in the cell of the question and in the eight around it.
#define QUERY_CELL_SIZE 32
#define QUERY_RADIUS QUERY_CELL_SIZE

// The grid repeats itself: two cells 64 apart, and those of all faces, share a list. Nothing is found wrongly by it:
// distances are compared.
#define QUERY_GRID_SIZE 64
#define QUERY_GRID_CELLS (QUERY_GRID_SIZE * QUERY_GRID_SIZE)

// Those nearer than this many columns pull at who asks; and nearer than the second, less and less again, so that one
// who comes through another does not tear at it.
#define QUERY_PULL_RADIUS 8
#define QUERY_PULL_NEAR 1.0

#define QUERY_NONE UINT32_MAX

// Points looked at along a line of sight: every metre up to 32 away, and fewer beyond.
#define QUERY_SIGHT_STEPS 32

typedef enum query_kind {
    QUERY_NEAREST = 0, // the nearest animal within QUERY_RADIUS, but `self`, and the pull of all around
    QUERY_SIGHT,       // whether the ground leaves `to` in sight of `from`
    QUERY_KIND_COUNT,
} query_kind;

typedef struct query {
    query_kind kind;
    uint32_t face;  // of who asks for the nearest, and where on it, in TERRAIN_ONE
    int32_t x, z;   //
    uint32_t self;  // the animal that asks; QUERY_NONE = nobody
    vec3d from, to; // of a sight, metres from the planet's middle
} query;

typedef struct query_answer {
    uint32_t nearest;          // its row; QUERY_NONE = nobody
    uint32_t is_seen;          // 0 or 1
    uint64_t distance_squared; // to the nearest, along the columns; in TERRAIN_ONE squared
    // The directions to all within QUERY_PULL_RADIUS, on the face of who asks: of length up to 1 for one of them, and
    // added up. Moves with them and never jumps, but where three faces meet.
    float pull_x, pull_z;
} query_answer;

// The animals by cell.
typedef struct query_grid {
    uint32_t first[QUERY_GRID_CELLS + 1]; // of each cell, in rows
    uint32_t *rows;                       // the animals' rows, cell by cell, ascending
} query_grid;

typedef struct queries_input {
    uint64_t seed; // of the land
    const query *queries;
    const uint8_t *face; // of the animals
    const int32_t *x, *z;
    const query_grid *grid;
} queries_input;

typedef struct queries_output {
    query_answer *answers; // room for count
    uint32_t answer_count;
} queries_output;

// Sorts `count` animals into cells. `rows` has room for count and must stay.
void query_grid_build(query_grid *grid, uint32_t *rows, const int32_t *x, const int32_t *z, uint32_t count);

// Appends the answers to queries first to first + count - 1. Of two that are equally near the lower row is named.
void queries_run(const queries_input *input, uint32_t first, uint32_t count, queries_output *out);

// Appends a job's output to that of the jobs before it.
void queries_append(queries_output *whole, const queries_output *part);
