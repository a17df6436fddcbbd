// SPDX-License-Identifier: MIT
// A logger in a thread of its own: order, drops, the end.

#include "support/support.h"

#include "nebula/clock.h"
#include "nebula/label.h"
#include "nebula/log_service.h"

#define SECOND_NS UINT64_C(1000000000)
#define LINE_MAX 64

// Keeps what is written; may be made to stand still.
typedef struct paper {
    char lines[LINE_MAX][128];
    nb_log_item items[LINE_MAX];
    uint32_t count;
    nb_atomic_u32 is_held, is_inside;
} paper;

static void write_down(void *user, const nb_log_record *record) {
    paper *p = user;
    nbi_atomic_store_release_u32(&p->is_inside, 1);
    while (nbi_atomic_load_acquire_u32(&p->is_held) != 0) nbi_thread_yield();
    if (p->count < LINE_MAX) {
        p->items[p->count] = record->item;
        snprintf(p->lines[p->count], sizeof p->lines[0], "%s|%s|%s", record->name, record->function, record->message);
    }
    ++p->count;
}

typedef struct fixture {
    test_heap heap;
    nb_services *set;
    nb_log_service log;
    nb_logger logger;
    paper paper;
} fixture;

static void begin(fixture *f, uint32_t record_count) {
    memset(f, 0, sizeof *f);
    nb_services_desc desc = {.hooks = test_hooks(NULL, &f->heap)};
    assert_int_equal(nb_services_create(&desc, &f->set), NB_OK);
    nb_log_service_desc log_desc = {
        .sink = {.log = write_down, .user = &f->paper}, .level_min = NB_LOG_INFO, .record_count = record_count};
    assert_int_equal(nb_log_service_start(&f->log, f->set, &log_desc), NB_OK);
    f->logger = nb_log_service_logger(&f->log);
}

static void end(fixture *f) {
    assert_int_equal(nb_services_destroy(f->set), NB_OK);
    assert_int_equal(f->heap.live_count.value, 0);
}

static void log_number(fixture *f, int number) {
    char message[32], function[] = "nb_function", name[] = "name";
    snprintf(message, sizeof message, "message %d", number);
    nb_log_record record = {NB_LOG_INFO, NB_ITEM_LOOP_CLAMPED, name, function, message};
    f->logger.log(f->logger.user, &record);
    // All pointers end with the call.
    memset(message, 'x', sizeof message);
    memset(function, 'x', sizeof function);
    memset(name, 'x', sizeof name);
}

TEST(records_are_written_in_order_and_before_the_end) {
    fixture f;
    begin(&f, 64);
    assert_int_equal(f.logger.level_min, NB_LOG_INFO);
    uint64_t calls = f.heap.call_count.value;
    for (int i = 0; i < 50; ++i) log_number(&f, i);
    assert_int_equal(f.heap.call_count.value, calls);
    assert_int_equal(nb_services_stop(f.set, nb_clock_now_ns(NULL) + 10 * SECOND_NS), NB_OK);
    assert_int_equal(f.paper.count, 50);
    for (int i = 0; i < 50; ++i) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "name|nb_function|message %d", i);
        assert_string_equal(f.paper.lines[i], wanted);
    }
    assert_int_equal(nb_log_service_stats_get(&f.log).written_count, 50);
    assert_int_equal(nb_log_service_stats_get(&f.log).dropped_count, 0);
    end(&f);
}

// The writer stands still: the caller does not.
TEST(flood_is_dropped_counted_and_told) {
    fixture f;
    begin(&f, 8);
    nbi_atomic_store_release_u32(&f.paper.is_held, 1);
    log_number(&f, 0);
    while (nbi_atomic_load_acquire_u32(&f.paper.is_inside) == 0) nbi_thread_yield();
    for (int i = 1; i <= 1000; ++i) log_number(&f, i);
    assert_int_equal(nb_log_service_stats_get(&f.log).dropped_count, 992);
    nbi_atomic_store_release_u32(&f.paper.is_held, 0);
    assert_int_equal(nb_services_stop(f.set, nb_clock_now_ns(NULL) + 10 * SECOND_NS), NB_OK);
    assert_int_equal(f.paper.count, 10);
    assert_int_equal(f.paper.items[1], NB_ITEM_SERVICE_LOG_DROPPED);
    assert_non_null(strstr(f.paper.lines[1], "992 records were dropped"));
    assert_non_null(strstr(f.paper.lines[2], "message 1"));
    assert_non_null(strstr(f.paper.lines[9], "message 8"));
    assert_int_equal(nb_log_service_stats_get(&f.log).written_count, 9);
    end(&f);
}

TEST(records_after_the_end_are_dropped_and_counted) {
    fixture f;
    begin(&f, 8);
    log_number(&f, 1);
    assert_int_equal(nb_services_stop(f.set, nb_clock_now_ns(NULL) + 10 * SECOND_NS), NB_OK);
    log_number(&f, 2);
    end(&f);
    log_number(&f, 3); // the set is gone, the log is not
    assert_int_equal(nb_log_service_stats_get(&f.log).written_count, 1);
    assert_int_equal(nb_log_service_stats_get(&f.log).dropped_count, 2);
}

static nb_result log_at_the_end(nb_service *service, void *user) {
    uint64_t message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) continue;
    log_number(user, 99);
    return NB_OK;
}

TEST(last_words_of_other_services_are_written) {
    fixture f;
    begin(&f, 8);
    nb_service *service = NULL;
    nb_service_desc desc = {.name = "other", .run = log_at_the_end, .user = &f};
    assert_int_equal(nb_service_start(f.set, &desc, &service), NB_OK);
    end(&f);
    assert_int_equal(f.paper.count, 1);
    assert_non_null(strstr(f.paper.lines[0], "message 99"));
}

TEST(objects_log_through_it) {
    fixture f;
    begin(&f, 8);
    nb_labels_desc desc = {.label_count_max = NB_LABEL_COUNT_MAX + 1, .hooks = {.logger = f.logger}};
    nb_labels *labels = NULL;
    assert_int_equal(nb_labels_create(&desc, &labels), NB_ERR_RANGE);
    end(&f);
    assert_int_equal(f.paper.count, 1);
    assert_int_equal(f.paper.items[0], NB_ITEM_LABEL_ARGUMENT);
}

TEST(long_texts_are_cut) {
    fixture f;
    begin(&f, 8);
    char text[1000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    nb_log_record record = {NB_LOG_ERROR, NB_ITEM_NONE, text, text, text};
    f.logger.log(f.logger.user, &record);
    record = (nb_log_record){NB_LOG_ERROR, NB_ITEM_NONE, NULL, NULL, NULL};
    f.logger.log(f.logger.user, &record);
    end(&f);
    assert_int_equal(f.paper.count, 2);
    assert_string_equal(f.paper.lines[1], "||");
}

TEST(start_survives_every_failed_allocation) {
    uint64_t n = 2; // the first is the set's
    for (bool is_done = false; !is_done; ++n) {
        test_heap heap = {.fail_at = n};
        static test_log log;
        nb_services_desc desc = {.hooks = test_hooks(&log, &heap)};
        nb_services *set = NULL;
        nb_log_service service;
        memset(&service, 0x5A, sizeof service);
        assert_int_equal(nb_services_create(&desc, &set), NB_OK);
        nb_result result = nb_log_service_start(&service, set, NULL);
        is_done = result == NB_OK;
        if (!is_done) assert_int_equal(result, NB_ERR_MEMORY);
        if (!is_done) assert_int_equal(service.told_count, 0x5A5A5A5A5A5A5A5A);
        assert_int_equal(nb_services_destroy(set), NB_OK);
        assert_int_equal(heap.live_count.value, 0);
    }
    assert_int_equal(n, 5);
}

typedef struct flood {
    fixture f;
    test_gate gate;
    uint64_t record_count;
} flood;

static void log_many(void *user, uint32_t index) {
    flood *fl = user;
    test_gate_pass(&fl->gate, 4);
    for (uint64_t i = 0; i < fl->record_count; ++i) log_number(&fl->f, (int)index);
}

TEST(records_of_many_threads_are_written_or_counted) {
    static flood fl;
    begin(&fl.f, 32);
    fl.record_count = test_size(2000, 20000, 200000);
    test_thread threads[3];
    test_threads_start(threads, 3, log_many, &fl);
    test_gate_pass(&fl.gate, 4);
    test_threads_join(threads, 3);
    end(&fl.f);
    nb_log_service_stats stats = nb_log_service_stats_get(&fl.f.log);
    assert_int_equal(stats.written_count + stats.dropped_count, 3 * fl.record_count);
    assert_true(fl.f.paper.count >= stats.written_count);
}
