// SPDX-License-Identifier: MIT
// What lies over the demo's picture, and pictures as files.

#include "support/support.h"

#include "demo/draw/overlay.h"
#include "demo/show/png.h"

static overlay canvas;

static bool is_inside(const overlay *o, int32_t width, int32_t height) {
    for (uint32_t i = 0; i < o->rect_count; ++i) {
        const overlay_rect *r = &o->rects[i];
        if (r->x0 < 0 || r->y0 < 0 || r->x1 > width || r->y1 > height || r->x0 >= r->x1 || r->y0 >= r->y1) return false;
    }
    return true;
}

static overlay_page page_of(uint32_t bars, uint32_t lines) {
    static const char *NAMES[] = {"Input", "FixedSim", "ParallelTasks", "CommandRecord"};
    overlay_page page = {.fps = 61.25f, .ups = 60, .worker_count = 2, .chunk_count = 200, .quality_count = 5};
    page.bar_count = bars;
    page.line_count = lines;
    for (uint32_t i = 0; i < bars && i < OVERLAY_BARS_MAX; ++i)
        page.bars[i] = (overlay_bar){NAMES[i % 4], (float)i * 0.125f - 0.25f, 0};
    for (uint32_t i = 0; i < lines && i < OVERLAY_LINES_MAX; ++i) page.lines[i] = "a line of its own";
    return page;
}

TEST(a_page_fits_pictures_of_all_sizes) {
    static const uint32_t SIZES[][2] = {{640, 360}, {960, 540}, {1280, 720}, {1920, 1080}, {3840, 2160}};
    for (uint32_t i = 0; i < 5; ++i) {
        overlay_page page = page_of(12, 4);
        overlay_clear(&canvas);
        overlay_draw_page(&canvas, &page, SIZES[i][0], SIZES[i][1]);
        overlay_draw_note(&canvas, "Cancelled 128 stale tasks", SIZES[i][0], SIZES[i][1]);
        assert_true(canvas.rect_count > 12);
        assert_int_equal(canvas.dropped_count, 0);
        assert_true(is_inside(&canvas, (int32_t)SIZES[i][0], (int32_t)SIZES[i][1]));
    }
}

// The bar of a colour, as wide as its value; none where that is nothing.
static int32_t bar_width(float value) {
    overlay_page page = page_of(1, 0);
    page.bars[0] = (overlay_bar){"x", value, 0x123456};
    overlay_clear(&canvas);
    overlay_draw_page(&canvas, &page, 640, 540);
    for (uint32_t i = 0; i < canvas.rect_count; ++i)
        if (canvas.rects[i].colour == 0xff123456u) return canvas.rects[i].x1 - canvas.rects[i].x0;
    return 0;
}

TEST(bars_are_as_long_as_their_share) {
    int32_t whole = bar_width(1);
    assert_true(whole > 50);
    assert_int_equal(bar_width(0.5f), whole / 2);
    assert_int_equal(bar_width(0), 0);
    assert_int_equal(bar_width(-3), 0);
    assert_int_equal(bar_width(7), whole);
}

TEST(text_is_as_wide_as_it_says) {
    const char *text = "Fps 60.0 (of 144) ~ {x}!";
    overlay_clear(&canvas);
    int32_t width = overlay_text(&canvas, 10, 10, 2, 0xffffffffu, text);
    assert_int_equal(width, overlay_text_width(text, 2));
    assert_int_equal(width, overlay_text_width(text, 1) * 2);
    assert_true(is_inside(&canvas, 10 + width, 64));
    if (overlay_has_letters()) assert_true(canvas.rect_count > 24);
}

TEST(letters_that_the_font_lacks_are_question_marks) {
    static overlay other;
    overlay_clear(&canvas);
    overlay_clear(&other);
    overlay_text(&canvas, 0, 0, 1, 1, "a\x01\xc3\xa4\x7f\n");
    overlay_text(&other, 0, 0, 1, 1, "a?????");
    assert_int_equal(canvas.rect_count, other.rect_count);
    assert_memory_equal(canvas.rects, other.rects, canvas.rect_count * sizeof(overlay_rect));
}

TEST(what_has_no_room_is_counted) {
    overlay_clear(&canvas);
    for (uint32_t i = 0; i < OVERLAY_RECTS_MAX + 7; ++i) overlay_add(&canvas, 0, 0, 1, 1, i);
    assert_int_equal(canvas.rect_count, OVERLAY_RECTS_MAX);
    assert_int_equal(canvas.dropped_count, 7);
    overlay_add(&canvas, 0, 0, 0, 5, 1);
    overlay_add(&canvas, 0, 0, 5, -1, 1);
    assert_int_equal(canvas.dropped_count, 7);
}

TEST(a_page_shows_the_numbers_of_the_frame) {
    static const char *EXPECTED[OVERLAY_NUMBER_LINES] = {
        "61.2 fps  60.0 ups  alpha 0.75",         "frame 4.20 ms  gpu 1.50 ms",
        "workers 2  load 38 %  queue 17",         "arenas 1.0 of 16.0 MiB  checksum 9abcdef0",
        "chunks 0 of 200  hidden 0  triangles 0", "cancelled 0  quality 1 of 5"};
    overlay_page page = page_of(0, 0);
    page.alpha = 0.75f, page.frame_ms = 4.2f, page.gpu_ms = 1.5f, page.busy_share = 0.375f, page.queued_count = 17;
    page.checksum = 0x9abcdef012345678u, page.arena_bytes = 1048576, page.arena_bytes_max = 16 * 1048576;
    char lines[OVERLAY_NUMBER_LINES][OVERLAY_LINE_SIZE];
    overlay_page_text(&page, lines);
    for (uint32_t i = 0; i < OVERLAY_NUMBER_LINES; ++i) assert_string_equal(lines[i], EXPECTED[i]);
    // Each of them is drawn.
    static overlay other;
    overlay_clear(&canvas);
    overlay_draw_page(&canvas, &page, 640, 360);
    page.busy_share = 0.625f;
    overlay_clear(&other);
    overlay_draw_page(&other, &page, 640, 360);
    bool is_same = canvas.rect_count == other.rect_count &&
                   memcmp(canvas.rects, other.rects, canvas.rect_count * sizeof canvas.rects[0]) == 0;
    if (overlay_has_letters()) assert_false(is_same);
}

TEST(odd_pages_do_no_harm) {
    overlay_page page = page_of(1000, 1000);
    overlay_clear(&canvas);
    overlay_draw_page(&canvas, &page, 1, 1);
    overlay_page empty = {0};
    empty.bar_count = 3; // without names
    empty.line_count = 2;
    overlay_draw_page(&canvas, &empty, 0, 0);
    overlay_add(&canvas, -100000, 100000, 900000, 5, 1);
    assert_int_equal(canvas.dropped_count, 0);
}

// --- pictures ---

static uint8_t *file_bytes(const char *path, size_t *size) {
    static uint8_t bytes[65536];
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    *size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return bytes;
}

TEST(a_picture_is_there_whole_or_not_at_all) {
    uint8_t pixels[8 * 4 * 4];
    for (uint32_t i = 0; i < sizeof pixels; ++i) pixels[i] = (uint8_t)(i * 7);
    nb_result result = png_write("test_demo_overlay.png", pixels, 8, 4);
    if (result == NB_ERR_UNSUPPORTED) skip(); // built without stb
    assert_int_equal(result, NB_OK);
    size_t size = 0;
    const uint8_t *bytes = file_bytes("test_demo_overlay.png", &size);
    static const uint8_t HEAD[16] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    static const uint8_t SIZE[10] = {0, 0, 0, 8, 0, 0, 0, 4, 8, 2}; // 8 x 4, 8 bits, red green blue
    assert_true(bytes != NULL && size > 60);
    assert_memory_equal(bytes, HEAD, sizeof HEAD);
    assert_memory_equal(bytes + 16, SIZE, sizeof SIZE);
    assert_memory_equal(bytes + size - 8, "IEND", 4);
    assert_null(file_bytes("test_demo_overlay.png.part", &size));
    remove("test_demo_overlay.png");
}

TEST(a_picture_that_cannot_be_written_says_so) {
    uint8_t pixel[4] = {0};
    if (png_write("no such folder/a.png", pixel, 1, 1) == NB_ERR_UNSUPPORTED) skip();
    assert_int_equal(png_write("no such folder/a.png", pixel, 1, 1), NB_ERR_OS);
    assert_int_equal(png_write("a.png", pixel, 0, 1), NB_ERR_RANGE);
    assert_int_equal(png_write("a.png", pixel, 1, 1u << 20), NB_ERR_RANGE);
    // A folder of that name is in the way.
    assert_int_equal(png_write("/", pixel, 1, 1), NB_ERR_OS);
}
