// SPDX-License-Identifier: MIT
// Occlusion reduction.

#include "work_occlusion.h"

#include <string.h>

static uint8_t history_next(uint8_t history, uint8_t result) {
    if (result == OCCLUSION_UNTESTED) return history;
    return (uint8_t)(history << 1 | (result == OCCLUSION_SEEN));
}

void occlusion_run(const occlusion_input *input, uint32_t first, uint32_t count, occlusion_output *out) {
    for (uint32_t number = first; number < first + count; ++number) {
        uint32_t start = number * OCCLUSION_WORD_THINGS, left = input->thing_count - start;
        uint32_t things = left < OCCLUSION_WORD_THINGS ? left : OCCLUSION_WORD_THINGS;
        uint64_t word = 0;
        for (uint32_t i = 0; i < things; ++i) {
            uint8_t history = history_next(input->histories[start + i], input->results[start + i]);
            out->histories[out->history_count++] = history;
            word |= (uint64_t)(history != 0) << i;
            out->seen_count += history != 0;
        }
        out->words[out->word_count++] = word;
    }
}

void occlusion_append(occlusion_output *whole, const occlusion_output *part) {
    memcpy(whole->words + whole->word_count, part->words, part->word_count * sizeof(uint64_t));
    memcpy(whole->histories + whole->history_count, part->histories, part->history_count);
    whole->word_count += part->word_count;
    whole->history_count += part->history_count;
    whole->seen_count += part->seen_count;
}
