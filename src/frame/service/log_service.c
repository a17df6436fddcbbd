// SPDX-License-Identifier: MIT
// A logger in a thread of its own.

#include "nebula/log_service.h"

#include <stdio.h>
#include <string.h>

#include "../../base/base.h"

// A record by value. The message is as long as the library's own can be (320); names are cut where a line would be
// unreadable anyway.
typedef struct entry {
    nb_log_level level;
    nb_log_item item;
    char name[40], function[56];
    char message[320];
} entry;

nb_log_service_desc nb_log_service_desc_default(void) {
    return (nb_log_service_desc){
        .name = "log",
        .sink = nb_hooks_default().logger,
        .level_min = NB_LOG_WARNING,
        .record_count = NB_LOG_SERVICE_RECORDS_DEFAULT,
    };
}

static void copy_text(char *to, size_t size_bytes, const char *from) {
    snprintf(to, size_bytes, "%s", from != NULL ? from : "");
}

// What objects call. It copies, tries, and returns.
static void take_record(void *user, const nb_log_record *record) {
    nb_log_service *log = user;
    // Pairs with the release store in forget_service.
    nb_service *service = nbi_atomic_load_acquire_ptr(&log->service);
    entry copy = {.level = record->level, .item = record->item};
    copy_text(copy.name, sizeof copy.name, record->name);
    copy_text(copy.function, sizeof copy.function, record->function);
    copy_text(copy.message, sizeof copy.message, record->message);
    if (service != NULL && nb_service_send(service, &copy) == NB_OK) return;
    nbi_atomic_fetch_add_relaxed_u64(&log->dropped_count, 1);
}

static void write_entry(const nb_log_service *log, const entry *copy) {
    nb_log_record record = {.level = copy->level,
                            .item = copy->item,
                            .name = copy->name,
                            .function = copy->function,
                            .message = copy->message};
    log->sink.log(log->sink.user, &record);
}

static void report_drops(nb_log_service *log) {
    uint64_t count = nbi_atomic_load_relaxed_u64(&log->dropped_count);
    if (count == log->told_count) return;
    entry notice = {.level = NB_LOG_WARNING, .item = NB_ITEM_SERVICE_LOG_DROPPED};
    copy_text(notice.name, sizeof notice.name, nb_log_item_name(notice.item));
    copy_text(notice.function, sizeof notice.function, "nb_log_service_logger");
    snprintf(notice.message, sizeof notice.message, "%llu records were dropped here", nb_llu(count - log->told_count));
    log->told_count = count;
    write_entry(log, &notice);
}

static nb_result write_records(nb_service *service, void *user) {
    nb_log_service *log = user;
    entry copy;
    while (nb_service_recv(service, &copy, NB_NEVER_NS) == NB_OK) {
        write_entry(log, &copy);
        nbi_atomic_fetch_add_relaxed_u64(&log->written_count, 1);
        // At once, and not after all that waits: the drops happened while this record was written.
        report_drops(log);
    }
    report_drops(log);
    return NB_OK;
}

static void forget_service(void *user) {
    nb_log_service *log = user;
    nbi_atomic_store_release_ptr(&log->service, NULL); // read by the acquire load in take_record
}

nb_result nb_log_service_start(nb_log_service *log, nb_services *services, const nb_log_service_desc *given) {
    if (log == NULL) return NBI_FAIL_NULL("log");
    if (services == NULL) return NBI_FAIL_NULL("services");
    nb_log_service_desc defaults = nb_log_service_desc_default();
    nb_log_service_desc desc = given != NULL ? *given : defaults;
    nb_service_desc service_desc = {
        .name = desc.name != NULL ? desc.name : defaults.name,
        .run = write_records,
        .user = log,
        .destroyed = forget_service,
        .message_size_bytes = sizeof(entry),
        .mailbox_count = desc.record_count != 0 ? desc.record_count : defaults.record_count,
        .is_stopped_last = true,
    };
    // The thread reads *log from its first record on, and there is none before this function returns; a failed start
    // puts back what was there.
    nb_log_service before;
    memcpy(&before, log, sizeof before);
    *log = (nb_log_service){.sink = desc.sink.log != NULL ? desc.sink : defaults.sink,
                            .level_min = desc.level_min != NB_LOG_DEFAULT ? desc.level_min : defaults.level_min};
    nb_service *service = NULL;
    nb_result result = nb_service_start(services, &service_desc, &service);
    if (result != NB_OK) {
        memcpy(log, &before, sizeof before);
        return result;
    }
    nbi_atomic_store_release_ptr(&log->service, service); // read by the acquire load in take_record
    return NB_OK;
}

nb_logger nb_log_service_logger(nb_log_service *log) {
    if (log == NULL) {
        NBI_FAIL_NULL("log");
        return (nb_logger){NULL, NULL, NB_LOG_DEFAULT};
    }
    return (nb_logger){.log = take_record, .user = log, .level_min = log->level_min};
}

nb_log_service_stats nb_log_service_stats_get(const nb_log_service *log) {
    if (log == NULL) {
        NBI_FAIL_NULL("log");
        return (nb_log_service_stats){0, 0};
    }
    return (nb_log_service_stats){
        .written_count = nbi_atomic_load_relaxed_u64(&log->written_count),
        .dropped_count = nbi_atomic_load_relaxed_u64(&log->dropped_count),
    };
}
