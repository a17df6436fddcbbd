// SPDX-License-Identifier: MIT
// The arithmetic of poses, against doubles and its own rules.

#include "scene/scene_fixture.h"

static void assert_near(const nb_matrix34 *is, const plain_matrix *wanted, double size) {
    for (int i = 0; i < 12; ++i) {
        double difference = fabs((double)is->m[i] - wanted->m[i / 4][i % 4]);
        if (difference > 1e-5 * size) fail_msg("element %d: %g beside", i, difference);
    }
}

TEST(poses_compose_as_their_matrices_do) {
    uint64_t random = test_seed(__func__);
    for (uint32_t i = 0; i < 2000; ++i) {
        nb_transform a = any_transform(&random), b = any_transform(&random);
        if (i % 10 == 0) memset(a.rotation, 0, sizeof a.rotation);
        if (i % 15 == 0) memset(b.rotation, 0, sizeof b.rotation);
        nb_transform both = nb_transform_compose(a, b);
        nb_matrix34 of_a = nb_transform_matrix(a), of_b = nb_transform_matrix(b);
        nb_matrix34 product = nb_matrix34_multiply(of_a, of_b), composed = nb_transform_matrix(both);
        plain_matrix plain_a = plain_of(&a), plain_b = plain_of(&b), wanted = plain_times(&plain_a, &plain_b);
        assert_near(&of_a, &plain_a, 10);
        assert_near(&product, &wanted, 40);
        assert_near(&composed, &wanted, 40);
        float point[3] = {1, -2, 3}, by_pose[3], by_matrix[3];
        nb_transform_point(both, point, by_pose);
        nb_matrix34_point(product, point, by_matrix);
        for (int j = 0; j < 3; ++j) assert_true(fabsf(by_pose[j] - by_matrix[j]) < 1e-3f);
        nb_transform_point(both, point, point); // in place
        nb_matrix34_point(of_a, by_matrix, by_matrix);
        for (int j = 0; j < 3; ++j) assert_true(point[j] == by_pose[j]);
    }
}

TEST(inverse_leads_back) {
    uint64_t random = test_seed(__func__);
    for (uint32_t i = 0; i < 2000; ++i) {
        nb_transform a = any_transform(&random);
        nb_transform back = nb_transform_compose(nb_transform_invert(a), a);
        nb_matrix34 is = nb_transform_matrix(back);
        nb_transform identity = nb_transform_identity();
        plain_matrix wanted = plain_of(&identity);
        assert_near(&is, &wanted, 40);
    }
    nb_transform flat = nb_transform_identity();
    flat.scale = 0;
    flat.position[1] = 5;
    nb_transform inverse = nb_transform_invert(flat);
    assert_true(inverse.scale == 0 && inverse.position[1] == 0); // no infinities
}

TEST(mixed_poses_begin_and_end_right) {
    uint64_t random = test_seed(__func__);
    for (uint32_t i = 0; i < 500; ++i) {
        nb_transform a = any_transform(&random), b = any_transform(&random);
        nb_transform begin = nb_transform_mix(a, b, 0), end = nb_transform_mix(a, b, 1);
        nb_matrix34 is_begin = nb_transform_matrix(begin), is_end = nb_transform_matrix(end);
        plain_matrix from = plain_of(&a), to = plain_of(&b);
        assert_near(&is_begin, &from, 10);
        assert_near(&is_end, &to, 10);
    }
}

TEST(turns_add_up_and_keep_their_length) {
    nb_transform t = nb_transform_identity();
    uint32_t count = 100000; // 10,000 rounds of 0.01 radians would not be a whole number of turns
    for (uint32_t i = 0; i < count; ++i) t = nb_transform_turn(t, 0, 0, 0.01f);
    const float *q = t.rotation;
    assert_true(fabsf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-4f);
    // tan(angle / 2) of each step is half the angle; the sum is short by angle^3 / 12 a step.
    double angle = count * 2 * atan(0.005), is = 2 * atan2((double)q[2], (double)q[3]);
    assert_true(fabs(remainder(is - angle, 2 * 3.14159265358979323846)) < 0.02);
    // From a quaternion of zero, and from a long one, it comes to length 1.
    nb_transform zero = {.scale = 1}, large = {.scale = 1, .rotation = {30, 0, 0, 40}};
    zero = nb_transform_turn(zero, 0.1f, 0, 0);
    assert_true(fabsf(zero.rotation[3] - 1) < 0.01f);
    for (uint32_t i = 0; i < 30; ++i) large = nb_transform_turn(large, 0, 0, 0);
    assert_true(fabsf(large.rotation[0] - 0.6f) < 1e-3f && fabsf(large.rotation[3] - 0.8f) < 1e-3f);
}
