// SPDX-License-Identifier: MIT
// Loops over all threads: every index once, stopped where asked, and sums that do not depend on who adds.

#include "support/support.h"

#include "tasks/tasks_fixture.h"

#define COUNT_MAX 100003

typedef struct marks {
    nb_atomic_u32 seen[COUNT_MAX];
    nb_atomic_u32 wrong; // calls of a size that the grain does not allow
    uint64_t count, grain;
} marks;

static void run_mark(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    marks *m = user;
    bool is_last = end == m->count;
    bool is_right = begin < end && (m->grain == 0 || end - begin == m->grain || (is_last && end - begin < m->grain));
    if (!is_right) nbi_atomic_fetch_add_seq_cst_u32(&m->wrong, 1);
    for (uint64_t i = begin; i < end; ++i) nbi_atomic_fetch_add_relaxed_u32(&m->seen[i], 1);
}

TEST(every_index_is_visited_once) {
    static const uint64_t counts[] = {1, 2, 3, 63, 1000, COUNT_MAX}, grains[] = {0, 1, 7, 256, UINT64_MAX};
    static marks m;
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        for (uint32_t i = 0; i < 6 * 5; ++i) {
            memset(&m, 0, sizeof m);
            m.count = counts[i % 6], m.grain = grains[i / 6];
            nb_parallel_desc desc = {.run = run_mark, .user = &m, .count = m.count, .grain = m.grain};
            nb_parallel_report report;
            assert_int_equal(nb_parallel_for(t->scheduler, &desc, &report), NB_OK);
            assert_int_equal(report.done_count, m.count);
            assert_int_equal(m.wrong.value, 0);
            assert_in_range(report.thread_count, 1, workers + 1);
            if (m.grain != 0) assert_int_equal(report.call_count, (m.count - 1) / m.grain + 1);
            for (uint64_t k = 0; k < m.count; ++k) assert_int_equal(m.seen[k].value, 1);
        }
        nb_parallel_desc none = {.run = run_mark, .user = &m};
        assert_int_equal(nb_parallel_for(t->scheduler, &none, NULL), NB_OK);
        tasks_close(t);
    }
}

// Few steps of the shared index, however many items there are.
TEST(automatic_grain_makes_few_calls) {
    static marks m;
    tasks *t = tasks_open(2);
    memset(&m, 0, sizeof m);
    m.count = COUNT_MAX;
    nb_parallel_desc desc = {.run = run_mark, .user = &m, .count = m.count};
    nb_parallel_report report;
    assert_int_equal(nb_parallel_for(t->scheduler, &desc, &report), NB_OK);
    assert_in_range(report.call_count, 2, 200);
    tasks_close(t);
}

typedef struct stopping {
    nb_token *token;
    uint64_t at;
    nb_atomic_u64 done_count;
    nb_result result; // NB_CANCELLED: by the token; else what the range sets
} stopping;

static void run_until(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    stopping *s = user;
    nbi_atomic_fetch_add_seq_cst_u64(&s->done_count, end - begin);
    if (begin > s->at || end <= s->at) return;
    if (s->result == NB_CANCELLED)
        nb_token_cancel(s->token, NB_CANCEL_STALE, 0, NULL);
    else
        nb_task_set_result(context, s->result);
}

TEST(loop_says_how_much_was_done_and_why_it_stopped) {
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        for (int i = 0; i < 2; ++i) {
            stopping s = {.at = 500, .result = i == 0 ? NB_CANCELLED : NB_ERR_OS};
            assert_int_equal(nb_token_create(NULL, &s.token), NB_OK);
            nb_parallel_desc desc = {
                .run = run_until, .user = &s, .count = (uint64_t)1 << 40, .grain = 1, .token = s.token};
            nb_parallel_report report;
            assert_int_equal(nb_parallel_for(t->scheduler, &desc, &report), s.result);
            assert_int_equal(report.done_count, s.done_count.value);
            assert_in_range(report.done_count, 1, ((uint64_t)1 << 40) - 1);
            nb_token_release(s.token);
        }
        tasks_close(t);
    }
}

static void run_outer(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    nb_atomic_u64 *sum = user;
    for (uint64_t i = begin; i < end; ++i) {
        static marks inner[64]; // one for each index of the outer loop
        marks *m = &inner[i];
        memset(m, 0, sizeof *m);
        m->count = 100;
        nb_parallel_desc desc = {.run = run_mark, .user = m, .count = 100, .grain = 0};
        nb_parallel_report report = {0};
        nb_result result = nb_parallel_for(context->scheduler, &desc, &report);
        nbi_atomic_fetch_add_seq_cst_u64(sum, result == NB_OK ? report.done_count : 0);
    }
}

TEST(loops_nest) {
    for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
        tasks *t = tasks_open(workers);
        nb_atomic_u64 sum = {0};
        nb_parallel_desc desc = {.run = run_outer, .user = &sum, .count = 64, .grain = 1};
        assert_int_equal(nb_parallel_for(t->scheduler, &desc, NULL), NB_OK);
        assert_int_equal(sum.value, 6400);
        tasks_close(t);
    }
}

// A full pool only means that nobody helps.
TEST(loop_without_room_is_done_alone) {
    static marks m;
    tasks *t = tasks_open_desc((nb_scheduler_desc){.worker_count = 1, .task_count_max = 1, .group_count_max = 1});
    memset(&m, 0, sizeof m);
    m.count = 1000;
    nb_group group;
    group = group_begin(t); // the only one
    nb_parallel_desc desc = {.run = run_mark, .user = &m, .count = m.count};
    nb_parallel_report report;
    assert_int_equal(nb_parallel_for(t->scheduler, &desc, &report), NB_OK);
    assert_int_equal(report.thread_count, 1);
    assert_int_equal(report.done_count, 1000);
    assert_int_equal(nb_group_end(t->scheduler, group, NB_NEVER_NS), NB_OK);
    tasks_close(t);
}

// --- sums ---

// Neither addition nor this is associative in floating point: another order gives other bits.
static void add_floats(nb_task_context *context, void *user, uint64_t begin, uint64_t end, void *value) {
    (void)context;
    const float *items = user;
    float sum = *(float *)value;
    for (uint64_t i = begin; i < end; ++i) sum += items[i];
    *(float *)value = sum;
}

static void merge_floats(void *user, void *value, const void *later) {
    (void)user;
    *(float *)value += *(const float *)later;
}

TEST(sum_has_the_same_bits_for_any_number_of_threads) {
    static float items[20000];
    uint64_t seed = test_seed(__func__);
    for (int i = 0; i < 20000; ++i) items[i] = (float)(test_random(&seed) % 1000000) / 997.0f;
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 1000, 20000};
    for (int c = 0; c < 7; ++c) {
        float first = 0;
        for (uint32_t workers = 0; workers <= WORKER_COUNTS_MAX; ++workers) {
            tasks *t = tasks_open(workers);
            const float zero = 0;
            nb_reduce_desc desc = {.run = add_floats,
                                   .merge = merge_floats,
                                   .user = items,
                                   .count = counts[c],
                                   .initial = &zero,
                                   .value_size_bytes = sizeof zero};
            for (int again = 0; again < 5; ++again) {
                float sum = -1;
                assert_int_equal(nb_parallel_reduce(t->scheduler, &desc, &sum), NB_OK);
                if (workers == 0 && again == 0) first = sum;
                assert_memory_equal(&sum, &first, sizeof sum);
            }
            tasks_close(t);
        }
    }
}
