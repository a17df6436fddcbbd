// SPDX-License-Identifier: MIT
#pragma once

// Occlusion reduction: the results of many small sight tests become one bit a thing: drawn or hidden. A test sees one
// point of a thing in one frame; a thing counts as hidden only when none of its last eight tests saw it, so that it
// does not blink when a test misses. The one rule: jobs work on whole words of 64 things, so no two write the same
// word.

#include <stdint.h>

#define OCCLUSION_WORD_THINGS 64

typedef enum occlusion_result {
    OCCLUSION_UNTESTED = 0, // its history stays as it is
    OCCLUSION_HIDDEN,
    OCCLUSION_SEEN,
} occlusion_result;

typedef struct occlusion_input {
    const uint8_t *results;   // an occlusion_result for each thing
    const uint8_t *histories; // a bit for each of its last eight tests, the newest lowest; 0xff for a new thing
    uint32_t thing_count;
} occlusion_input;

typedef struct occlusion_output {
    uint64_t *words; // a bit a thing: 1 = drawn; room for count. Bits past thing_count are 0
    uint32_t word_count;
    uint8_t *histories; // of the things of those words, for the next frame; room for 64 * count
    uint32_t history_count;
    uint32_t seen_count; // bits set
} occlusion_output;

// Words that `thing_count` things need.
static inline uint32_t occlusion_word_count(uint32_t thing_count) {
    return thing_count / OCCLUSION_WORD_THINGS + (thing_count % OCCLUSION_WORD_THINGS != 0);
}

// Appends words first to first + count - 1, and the histories of their things.
void occlusion_run(const occlusion_input *input, uint32_t first, uint32_t count, occlusion_output *out);

// Appends a job's output to that of the jobs before it.
void occlusion_append(occlusion_output *whole, const occlusion_output *part);
