// SPDX-License-Identifier: MIT
// Corrections that are blended, that jump, and that come one upon the other.

#include "support/support.h"

#include <math.h>

#include "nebula/smooth.h"

#define ROWS 3
#define WIDTH 2
#define MS UINT64_C(1000000)

typedef struct fixture {
    float memory[ROWS * WIDTH];
    uint64_t left_ns[ROWS];
    nb_smooth smooth;
} fixture;

static void fixture_init(fixture *f, float snap_distance) {
    memset(f, 0xA5, sizeof *f);
    nb_smooth_desc desc = {.row_count = ROWS,
                           .float_count = WIDTH,
                           .memory = f->memory,
                           .left_ns = f->left_ns,
                           .snap_distance = snap_distance};
    assert_int_equal(nb_smooth_init(&f->smooth, &desc), NB_OK);
}

static void correct(fixture *f, uint32_t row, float from, float to) {
    float before[WIDTH] = {from, 0}, after[WIDTH] = {to, 0};
    assert_int_equal(nb_smooth_correct(&f->smooth, row, before, after), NB_OK);
}

// Where a row whose state is `value` is drawn.
static float drawn(const fixture *f, uint32_t row, float value) {
    float out[WIDTH] = {value, 7};
    assert_int_equal(nb_smooth_apply(&f->smooth, row, out), NB_OK);
    assert_true(out[1] == 7);
    return out[0];
}

static void advance(fixture *f, uint64_t ms) { assert_int_equal(nb_smooth_advance(&f->smooth, ms * MS), NB_OK); }

TEST(small_corrections_blend_over_a_tenth_of_a_second) {
    fixture f;
    fixture_init(&f, 10);
    assert_true(drawn(&f, 1, 4) == 4);
    correct(&f, 1, 8, 4);
    assert_true(drawn(&f, 1, 4) == 8); // at first nothing is seen of it
    assert_true(drawn(&f, 0, 4) == 4);
    advance(&f, 25);
    assert_true(drawn(&f, 1, 4) == 7);
    assert_true(drawn(&f, 1, 104) == 107); // it goes on moving with the state
    advance(&f, 50);
    assert_true(drawn(&f, 1, 4) == 5);
    advance(&f, 25);
    assert_true(drawn(&f, 1, 4) == 4);
    advance(&f, 1000);
    assert_true(drawn(&f, 1, 4) == 4);
    nb_smooth_stats stats = nb_smooth_stats_get(&f.smooth);
    assert_int_equal(stats.blend_count, 1);
    assert_int_equal(stats.snap_count + stats.same_count, 0);
    assert_true(stats.distance_max == 4);
}

TEST(corrections_on_the_way_do_not_jump) {
    fixture f;
    fixture_init(&f, 0);
    correct(&f, 2, 8, 0);
    for (uint32_t i = 0; i < 20; ++i) {
        advance(&f, 50);
        float before = drawn(&f, 2, (float)i);
        correct(&f, 2, (float)i, (float)i + 1);
        assert_true(fabsf(drawn(&f, 2, (float)i + 1) - before) < 1e-5f);
    }
    advance(&f, 100);
    assert_true(drawn(&f, 2, 20) == 20);
}

TEST(large_corrections_jump) {
    fixture f;
    fixture_init(&f, 10);
    correct(&f, 0, 5, 0);
    correct(&f, 0, 11, 0); // and what was left of the one before is gone
    assert_true(drawn(&f, 0, 0) == 0);
    correct(&f, 0, 10, 0);
    assert_true(drawn(&f, 0, 0) == 10);
    correct(&f, 0, INFINITY, 0);
    assert_true(drawn(&f, 0, 0) == 0);
    correct(&f, 0, NAN, 0);
    assert_true(drawn(&f, 0, 0) == 0);
    nb_smooth_stats stats = nb_smooth_stats_get(&f.smooth);
    assert_int_equal(stats.blend_count, 2);
    assert_int_equal(stats.snap_count, 3);
    assert_true(stats.distance_max == 10);
}

TEST(corrections_that_move_nothing_leave_a_blend_alone) {
    fixture f;
    fixture_init(&f, 10);
    correct(&f, 1, 4, 0);
    advance(&f, 50);
    correct(&f, 1, 3, 3);
    assert_true(drawn(&f, 1, 0) == 2);
    advance(&f, 50);
    assert_true(drawn(&f, 1, 0) == 0);
    assert_int_equal(nb_smooth_stats_get(&f.smooth).same_count, 1);
}

TEST(rows_in_new_use_begin_where_they_are) {
    fixture f;
    fixture_init(&f, 0);
    correct(&f, 0, 4, 0);
    correct(&f, 1, 4, 0);
    assert_int_equal(nb_smooth_reset(&f.smooth, 0), NB_OK);
    assert_true(drawn(&f, 0, 0) == 0 && drawn(&f, 1, 0) == 4);
    correct(&f, 0, 1, 0);
    assert_true(drawn(&f, 0, 0) == 1);
}

TEST(offsets_without_end_are_forgotten) {
    float memory[1];
    uint64_t left_ns[1];
    nb_smooth smooth;
    nb_smooth_desc desc = {.row_count = 1, .float_count = 1, .memory = memory, .left_ns = left_ns};
    assert_int_equal(nb_smooth_init(&smooth, &desc), NB_OK);
    const float far = 3e38f, near = 1, zero = 0;
    float drawn = 5;
    nb_smooth_correct(&smooth, 0, &far, &zero);
    nb_smooth_correct(&smooth, 0, &far, &zero); // together more than a float has
    assert_int_equal(nb_smooth_stats_get(&smooth).snap_count, 1);
    nb_smooth_apply(&smooth, 0, &drawn);
    assert_true(drawn == 5);
    nb_smooth_correct(&smooth, 0, &near, &zero);
    nb_smooth_apply(&smooth, 0, &drawn);
    assert_true(drawn == 6);
}
