// SPDX-License-Identifier: MIT
// Rectangles and letters over the picture.

#include "overlay.h"

#include "nebula/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef DEMO_HAS_STB
#include <stb_easy_font.h>
#endif

#define LINE_HEIGHT 12
#define BAR_WIDTH 150

#define WHITE 0xfff2f5faU
#define GREY 0xffa7b4c4U
#define PANEL 0x9c0a0e16U
#define TRACK 0x60303a48U

// Colours of bars that have none, far from each other.
static const uint32_t BAR_COLOURS[8] = {0x4fc3f7, 0xffb74d, 0x81c784, 0xe57373, 0xba68c8, 0xfff176, 0x4db6ac, 0x90a4ae};

void overlay_clear(overlay *o) { o->rect_count = o->dropped_count = 0; }

static int16_t cut(int32_t value) { return (int16_t)(value < -32768 ? -32768 : value > 32767 ? 32767 : value); }

void overlay_add(overlay *o, int32_t x, int32_t y, int32_t width, int32_t height, uint32_t colour) {
    if (width <= 0 || height <= 0) return;
    if (o->rect_count == OVERLAY_RECTS_MAX) {
        ++o->dropped_count;
        return;
    }
    o->rects[o->rect_count++] = (overlay_rect){cut(x), cut(y), cut(x + width), cut(y + height), colour};
}

#ifdef DEMO_HAS_STB
// A corner as stb writes it; four are a rectangle, the first and the third lie across.
typedef struct font_corner {
    float x, y, z;
    uint8_t colour[4];
} font_corner;

// A letter has some ten strokes at most.
#define LETTER_RECTS_MAX 16

static int32_t letter_width(char c, int32_t scale) {
    char text[2] = {c, 0};
    return stb_easy_font_width(text) * scale;
}

static int32_t letter(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, char c) {
    char text[2] = {c, 0};
    font_corner corners[LETTER_RECTS_MAX * 4];
    int count = stb_easy_font_print(0, 0, text, NULL, corners, (int)sizeof corners);
    for (int i = 0; i < count; ++i) {
        const font_corner *low = &corners[i * 4], *high = &corners[i * 4 + 2];
        overlay_add(o, x + (int32_t)low->x * scale, y + (int32_t)low->y * scale, (int32_t)(high->x - low->x) * scale,
                    (int32_t)(high->y - low->y) * scale, colour);
    }
    return letter_width(c, scale);
}

bool overlay_has_letters(void) { return true; }
#else
static int32_t letter_width(char c, int32_t scale) {
    (void)c;
    return 6 * scale;
}

static int32_t letter(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, char c) {
    (void)o, (void)x, (void)y, (void)colour;
    return letter_width(c, scale);
}

bool overlay_has_letters(void) { return false; }
#endif

// The font has the letters of ASCII and no others.
static char known(char c) { return (char)(c >= 32 && c < 127 ? c : '?'); }

int32_t overlay_text(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, const char *text) {
    int32_t at = x;
    for (uint32_t i = 0; text[i] != 0 && i < OVERLAY_LINE_SIZE - 1; ++i)
        at += letter(o, at, y, scale, colour, known(text[i]));
    return at - x;
}

int32_t overlay_text_width(const char *text, int32_t scale) {
    int32_t width = 0;
    for (uint32_t i = 0; text[i] != 0 && i < OVERLAY_LINE_SIZE - 1; ++i) width += letter_width(known(text[i]), scale);
    return width;
}

int32_t overlay_print(overlay *o, int32_t x, int32_t y, int32_t scale, uint32_t colour, const char *format, ...) {
    char text[OVERLAY_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return overlay_text(o, x, y, scale, colour, text);
}

// --- the page ---

typedef struct page_pen {
    overlay *o;
    int32_t x, y, scale;
} page_pen;

static void line(page_pen *pen, uint32_t colour, const char *text) {
    overlay_text(pen->o, pen->x, pen->y, pen->scale, colour, text);
    pen->y += LINE_HEIGHT * pen->scale;
}

static float within(float value) { return value > 0 ? (value < 1 ? value : 1) : 0; }

static void bar(page_pen *pen, const overlay_bar *b, uint32_t number) {
    int32_t s = pen->scale, left = pen->x + 92 * s, height = 7 * s;
    uint32_t colour = b->colour != 0 ? b->colour : BAR_COLOURS[number % 8];
    overlay_text(pen->o, pen->x, pen->y, s, GREY, b->name != NULL ? b->name : "");
    overlay_add(pen->o, left, pen->y, BAR_WIDTH * s, height, TRACK);
    overlay_add(pen->o, left, pen->y, (int32_t)(within(b->value) * (float)(BAR_WIDTH * s)), height,
                0xff000000u | colour);
    pen->y += 10 * s;
}

static uint32_t bar_count(const overlay_page *page) {
    return page->bar_count < OVERLAY_BARS_MAX ? page->bar_count : OVERLAY_BARS_MAX;
}

static uint32_t line_count(const overlay_page *page) {
    return page->line_count < OVERLAY_LINES_MAX ? page->line_count : OVERLAY_LINES_MAX;
}

void overlay_page_text(const overlay_page *p, char lines[OVERLAY_NUMBER_LINES][OVERLAY_LINE_SIZE]) {
    snprintf(lines[0], OVERLAY_LINE_SIZE, "%.1f fps  %.1f ups  alpha %.2f", (double)p->fps, (double)p->ups,
             (double)p->alpha);
    snprintf(lines[1], OVERLAY_LINE_SIZE, "frame %.2f ms  gpu %.2f ms", (double)p->frame_ms, (double)p->gpu_ms);
    snprintf(lines[2], OVERLAY_LINE_SIZE, "workers %u  load %.0f %%  queue %llu", p->worker_count,
             100 * (double)p->busy_share, nb_llu(p->queued_count));
    snprintf(lines[3], OVERLAY_LINE_SIZE, "arenas %.1f of %.1f MiB  checksum %08llx",
             (double)p->arena_bytes / 1048576.0, (double)p->arena_bytes_max / 1048576.0, nb_llu(p->checksum >> 32));
    snprintf(lines[4], OVERLAY_LINE_SIZE, "chunks %u of %u  hidden %u  triangles %u", p->chunk_ready_count,
             p->chunk_count, p->hidden_count, p->triangle_count);
    snprintf(lines[5], OVERLAY_LINE_SIZE, "cancelled %llu  quality %u of %u", nb_llu(p->cancelled_count),
             p->quality + 1, p->quality_count);
}

static void numbers(page_pen *pen, const overlay_page *p) {
    char lines[OVERLAY_NUMBER_LINES][OVERLAY_LINE_SIZE];
    overlay_page_text(p, lines);
    for (uint32_t i = 0; i < OVERLAY_NUMBER_LINES; ++i) line(pen, i == 0 ? WHITE : GREY, lines[i]);
}

static int32_t scale_of(uint32_t width, uint32_t height) {
    uint32_t by_height = height / 540, by_width = width / 640, scale = by_height < by_width ? by_height : by_width;
    return scale > 0 ? (int32_t)scale : 1;
}

void overlay_draw_page(overlay *o, const overlay_page *page, uint32_t width, uint32_t height) {
    int32_t s = scale_of(width, height);
    page_pen pen = {o, 14 * s, 14 * s, s};
    int32_t lines = (int32_t)(OVERLAY_NUMBER_LINES + line_count(page));
    int32_t tall = lines * LINE_HEIGHT + (int32_t)bar_count(page) * 10 + 12;
    overlay_add(o, 8 * s, 8 * s, 256 * s, tall * s, PANEL);
    numbers(&pen, page);
    pen.y += 2 * s;
    for (uint32_t i = 0; i < bar_count(page); ++i) bar(&pen, &page->bars[i], i);
    for (uint32_t i = 0; i < line_count(page); ++i) line(&pen, GREY, page->lines[i] != NULL ? page->lines[i] : "");
}

void overlay_draw_note(overlay *o, const char *text, uint32_t width, uint32_t height) {
    int32_t s = scale_of(width, height) + 1, wide = overlay_text_width(text, s);
    int32_t x = ((int32_t)width - wide) / 2, y = (int32_t)height - 34 * s;
    overlay_add(o, x - 8 * s, y - 5 * s, wide + 16 * s, 17 * s, PANEL);
    overlay_text(o, x, y, s, WHITE, text);
}
