// SPDX-License-Identifier: MIT
#pragma once

// What lies over the picture: rectangles and text made of rectangles, in pixels from the upper left corner. The one
// rule: what has no room is left out and counted; nothing fails.

#include <stdbool.h>
#include <stdint.h>

#include "nebula/types.h"

// A page of text is some 2000 letters of 5 strokes each.
#define OVERLAY_RECTS_MAX 12000u
#define OVERLAY_BARS_MAX 24u
#define OVERLAY_LINES_MAX 16u
#define OVERLAY_LINE_SIZE 128

typedef struct overlay_rect {
    int16_t x0, y0, x1, y1; // x1 and y1 are beyond it
    uint32_t colour;        // 0xAARRGGBB as a screen shows it
} overlay_rect;

typedef struct overlay {
    overlay_rect rects[OVERLAY_RECTS_MAX];
    uint32_t rect_count;
    uint32_t dropped_count;
} overlay;

typedef struct overlay_bar {
    const char *name;
    float value;     // share of the whole width, 0 to 1
    uint32_t colour; // 0xRRGGBB; 0 = by its number
} overlay_bar;

// The page that F1 shows.
typedef struct overlay_page {
    float fps, ups;
    float alpha; // how far the frame is between two ticks, 0 to 1
    float frame_ms, gpu_ms;
    overlay_bar bars[OVERLAY_BARS_MAX]; // phases: share of the frame
    uint32_t bar_count;
    uint32_t worker_count;
    float busy_share;      // of the workers' time, 0 to 1
    uint64_t queued_count; // tasks that wait
    uint64_t checksum;     // of the frame before
    uint64_t arena_bytes, arena_bytes_max;
    uint32_t chunk_count, chunk_ready_count, triangle_count;
    uint32_t hidden_count; // chunks in view, by hills
    uint64_t cancelled_count;
    uint32_t quality, quality_count;
    const char *lines[OVERLAY_LINES_MAX]; // more, as they are
    uint32_t line_count;
} overlay_page;

void overlay_clear(overlay *o);

void overlay_add(overlay *o, int32_t x, int32_t y, int32_t width, int32_t height, uint32_t colour);

// One line, cut at OVERLAY_LINE_SIZE; scale 1 is letters of 7 pixels. Returns its width in pixels.
int32_t overlay_text(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, const char *text);
int32_t overlay_print(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, const char *format, ...)
    NB_PRINTF(6, 7);

// The width it would have.
int32_t overlay_text_width(const char *text, int32_t scale);

// The page, in the upper left corner of a picture of this size: the larger it is, the larger the letters.
void overlay_draw_page(overlay *o, const overlay_page *page, uint32_t width, uint32_t height);

// Its numbers as text, one line after the other.
#define OVERLAY_NUMBER_LINES 6u
void overlay_page_text(const overlay_page *page, char lines[OVERLAY_NUMBER_LINES][OVERLAY_LINE_SIZE]);

// A line in the middle of the lower edge, such as "Cancelled 12 stale tasks".
void overlay_draw_note(overlay *o, const char *text, uint32_t width, uint32_t height);

// False where the demo was built without stb: bars without letters.
bool overlay_has_letters(void);
