// SPDX-License-Identifier: MIT
// nebula/trace.h: traces that are none, foreign threads, labels of other tables.

#include "bad_input/bad_input.h"

#include "nebula/trace.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static nb_trace *trace_open(test_heap *heap) {
    nb_trace *trace = NULL;
    nb_trace_desc desc = {.thread_count_max = 1, .record_count_max = 16, .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_trace_create(&desc, &trace));
    return trace;
}

static void count_event(void *user, const nb_trace_event *event) {
    (void)event;
    ++*(int *)user;
}

static bool refuse_output(void *user, const char *bytes, size_t size_bytes) {
    (void)user;
    (void)bytes;
    (void)size_bytes;
    return false;
}

static void no_sink(void *user, const nb_trace_event *event) {
    (void)user;
    (void)event;
}

TEST(trace_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_trace *trace = UNTOUCHED(nb_trace);
    const nb_trace_desc fine = {.thread_count_max = 1, .record_count_max = 16, .hooks = bad_hooks(&heap)};
    nb_trace_desc out_of_range[] = {fine, fine, fine};
    out_of_range[0].thread_count_max = NB_TRACE_THREAD_COUNT_MAX + 1;
    out_of_range[1].record_count_max = NB_TRACE_RECORD_COUNT_MIN / 2;
    out_of_range[2].record_count_max = NB_TRACE_RECORD_COUNT_MAX * 2;
    for (size_t i = 0; i < COUNT_OF(out_of_range); ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_TRACE_ARGUMENT, nb_trace_create(&out_of_range[i], &trace));
    }
    nb_trace_desc wrong[] = {fine, fine, fine, fine, fine};
    wrong[0].record_count_max = 48;
    wrong[1].record_count_max = UINT32_MAX;
    wrong[2].clock = NB_TRACE_CLOCK_CUSTOM; // without `now`
    wrong[3].clock = NB_TRACE_CLOCK_COUNT;
    wrong[4].clock = (nb_trace_clock)-1;
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_create(&wrong[i], &trace));
    }
    nb_trace_desc unsupported = fine;
    unsupported.clock = NB_TRACE_CLOCK_TSC;
    unsupported.sink = no_sink; // which gets nanoseconds, so there can be no counter
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_TRACE_ARGUMENT, nb_trace_create(&unsupported, &trace));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_create(&fine, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_create(NULL, NULL));
    assert_int_equal(heap.call_count.value, 0);
    for (uint64_t call = 1; call <= 2; ++call) {
        heap.fail_at = heap.call_count.value + call;
        refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_trace_create(&fine, &trace));
        assert_int_equal(heap.live_count.value, 0);
    }
    assert_ptr_equal(trace, UNTOUCHED(nb_trace));
    accepted(NB_OK, nb_trace_destroy(NULL));
}

TEST(trace_functions_refuse_null) {
    nb_trace_thread *thread = UNTOUCHED(nb_trace_thread);
    nb_trace_stats stats = {.thread_count = 1};
    int count = 0;
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_trace_labels(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_trace_attach(NULL, "main", &thread));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_trace_current(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_trace_read(NULL, count_event, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_trace_write_json(NULL, refuse_output, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_trace_write_json_file(NULL, "/nowhere/trace.json"));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_trace_detach(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_trace_stats_get(NULL));
    assert_int_equal(stats.thread_count, 0);
    assert_ptr_equal(thread, UNTOUCHED(nb_trace_thread));
    assert_int_equal(count, 0);
    // A thread that is not traced records nothing, and need not ask.
    const nb_label label = {1};
    silent(nb_trace_begin(NULL, label), nb_trace_end(NULL), nb_trace_instant(NULL, label));
    silent(nb_trace_counter(NULL, label, 1), nb_trace_counter_f64(NULL, label, 1.0), nb_trace_frame(NULL, 1));
    silent(nb_trace_write(NULL, NB_TRACE_KIND_COUNT, label, 0));
}

TEST(trace_refuses_null_and_a_second_attach) {
    test_heap heap = {0};
    nb_trace *trace = trace_open(&heap);
    nb_trace_thread *thread = UNTOUCHED(nb_trace_thread), *own = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_attach(trace, NULL, &thread));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_attach(trace, "main", NULL));
    accepted(NULL, nb_trace_current(trace)); // not attached: counted
    accepted(NB_OK, nb_trace_attach(trace, "main", &own));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_attach(trace, "main", &thread));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_read(trace, NULL, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_write_json(trace, NULL, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_TRACE_ARGUMENT, nb_trace_write_json_file(trace, NULL));
    refused(NB_ERR_OS, NB_ITEM_TRACE_WRITE, nb_trace_write_json(trace, refuse_output, NULL));
    refused(NB_ERR_OS, NB_ITEM_TRACE_WRITE, nb_trace_write_json_file(trace, "/nowhere/trace.json"));
    assert_ptr_equal(thread, UNTOUCHED(nb_trace_thread));
    accepted(NB_OK, nb_trace_detach(own));
    refused(NB_ERR_THREAD, NB_ITEM_TRACE_ARGUMENT, nb_trace_detach(own)); // twice
    silent(nb_trace_write(own, NB_TRACE_KIND_INSTANT, (nb_label){0}, 0)); // detached: counted
    nb_trace_stats stats = nb_trace_stats_get(trace);
    assert_int_equal(stats.dropped_count, 2);
    assert_int_equal(stats.recorded_count, 0);
    assert_int_equal(stats.thread_count, 0);
    accepted(NB_OK, nb_trace_destroy(trace));
    assert_int_equal(heap.live_count.value, 0);
}

static void expect_question_mark(void *user, const nb_trace_event *event) {
    if (strcmp(event->name, "?") == 0) ++*(int *)user;
}

TEST(trace_refuses_unknown_kinds_and_names_foreign_labels_so) {
    test_heap heap = {0};
    nb_trace *trace = trace_open(&heap);
    nb_trace_thread *thread = NULL;
    accepted(NB_OK, nb_trace_attach(trace, "main", &thread));
    const nb_trace_kind kinds[] = {NB_TRACE_KIND_NONE, NB_TRACE_KIND_COUNT, (nb_trace_kind)-1, (nb_trace_kind)15};
    for (size_t i = 0; i < COUNT_OF(kinds); ++i) {
        reported(NB_ITEM_TRACE_ARGUMENT, nb_trace_write(thread, kinds[i], (nb_label){0}, 0));
    }
    assert_int_equal(nb_trace_stats_get(trace).recorded_count, 0);
    silent(nb_trace_write(thread, NB_TRACE_KIND_INSTANT, (nb_label){77}, 0));
    silent(nb_trace_write(thread, NB_TRACE_KIND_COUNTER_I64, (nb_label){UINT32_MAX}, 1));
    silent(nb_trace_write(thread, NB_TRACE_KIND_END, (nb_label){0}, 0)); // of no span
    int count = 0;
    accepted(NB_OK, nb_trace_read(trace, expect_question_mark, &count));
    assert_int_equal(count, 2);
    accepted(NB_OK, nb_trace_destroy(trace)); // the calling thread need not detach
    assert_int_equal(heap.live_count.value, 0);
}

typedef struct foreign_caller {
    nb_trace *trace;
    nb_trace_thread *thread, *attached;
    nb_result detach, attach, destroy;
} foreign_caller;

static void call_trace(void *user, uint32_t index) {
    (void)index;
    foreign_caller *caller = (foreign_caller *)user;
    caller->detach = nb_trace_detach(caller->thread);
    caller->attach = nb_trace_attach(caller->trace, "second", &caller->attached); // a warning
    caller->destroy = nb_trace_destroy(caller->trace);
}

TEST(trace_refuses_to_end_what_another_thread_uses) {
    test_heap heap = {0};
    foreign_caller caller = {.trace = trace_open(&heap), .attached = UNTOUCHED(nb_trace_thread)};
    accepted(NB_OK, nb_trace_attach(caller.trace, "main", &caller.thread));
    test_thread thread;
    LISTENED(OWN_LOGGER, NB_ITEM_TRACE_ARGUMENT, 2, test_threads_start(&thread, 1, call_trace, &caller),
             test_threads_join(&thread, 1));
    assert_int_equal(caller.detach, NB_ERR_THREAD);
    assert_int_equal(caller.attach, NB_FULL);
    assert_int_equal(caller.destroy, NB_BUSY);
    assert_ptr_equal(caller.attached, UNTOUCHED(nb_trace_thread));
    assert_ptr_equal(nb_trace_current(caller.trace), caller.thread);
    accepted(NB_OK, nb_trace_detach(caller.thread));
    accepted(NB_OK, nb_trace_destroy(caller.trace));
    assert_int_equal(heap.live_count.value, 0);
}

static void read_again(void *user, const nb_trace_event *event) {
    (void)event;
    nb_trace *trace = *(nb_trace **)user;
    assert_int_equal(nb_trace_read(trace, count_event, NULL), NB_BUSY);
    assert_int_equal(nb_trace_destroy(trace), NB_BUSY);
}

TEST(trace_refuses_a_read_within_a_read) {
    test_heap heap = {0};
    nb_trace *trace = trace_open(&heap);
    nb_trace_thread *thread = NULL;
    accepted(NB_OK, nb_trace_attach(trace, "main", &thread));
    nb_trace_write(thread, NB_TRACE_KIND_FRAME, (nb_label){0}, UINT64_MAX);
    assert_int_equal(nb_trace_read(trace, read_again, &trace), NB_OK);
    int count = 0;
    accepted(NB_OK, nb_trace_read(trace, count_event, &count));
    assert_int_equal(count, 1);
    accepted(NB_OK, nb_trace_destroy(trace));
    assert_int_equal(heap.live_count.value, 0);
}
