// SPDX-License-Identifier: MIT
// A source compiled with NB_TRACE=0: the same lines, and nothing is recorded.

#define NB_TRACE 0

#include "support/support.h"

#include "nebula/trace.h"

static void count_event(void *user, const nb_trace_event *event) {
    (void)event;
    *(uint32_t *)user += 1;
}

TEST(trace_compiled_out_records_nothing) {
    nb_trace *trace = NULL;
    nb_trace_thread *thread = NULL;
    nb_label label = {0};
    nb_trace_desc desc = {.record_count_max = 16};
    assert_int_equal(nb_trace_create(&desc, &trace), NB_OK);
    assert_int_equal(nb_trace_attach(trace, "main", &thread), NB_OK);
    assert_int_equal(nb_labels_intern(nb_trace_labels(trace), "work", &label), NB_OK);
    {
        NB_TRACE_SCOPE(thread, label);
        nb_trace_begin(thread, label);
        nb_trace_instant(thread, label);
        nb_trace_counter(thread, label, 1);
        nb_trace_counter_f64(thread, label, 1.5);
        nb_trace_frame(thread, 1);
        nb_trace_end(thread);
    }
    uint32_t count = 0;
    assert_int_equal(nb_trace_read(trace, count_event, &count), NB_OK);
    assert_int_equal(count, 0);
    assert_int_equal(nb_trace_stats_get(trace).recorded_count, 0);
    assert_int_equal(nb_trace_destroy(trace), NB_OK);
}
