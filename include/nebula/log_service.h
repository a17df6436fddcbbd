// SPDX-License-Identifier: MIT
#pragma once

// A logger that never makes its caller wait: records are copied into the mailbox of a service and written by its
// thread. When the mailbox is full records are dropped and counted, and the output says how many. The one rule: the set
// that runs it logs elsewhere, and the nb_log_service outlives everybody who logs through it.
//
//     nb_services *services = NULL;
//     nb_log_service log;
//     if (nb_services_create(NULL, &services) < 0) return 1;
//     if (nb_log_service_start(&log, services, NULL) < 0) return 1;
//     nb_loop loop;
//     nb_loop_desc desc = nb_loop_desc_default();
//     desc.hooks.logger = nb_log_service_logger(&log); // for every object of the program
//     nb_loop_init(&loop, &desc);
//     nb_services_destroy(services); // last: what was logged is written

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "nebula/service.h"
#include "nebula/types.h"

// Records that wait to be written where the desc gives no number: a burst of some frames, a quarter of a megabyte.
#define NB_LOG_SERVICE_RECORDS_DEFAULT 512

typedef struct nb_log_service_desc {
    const char *name;       // of the service; default "log"
    nb_logger sink;         // who writes, in the service's thread alone; zero = stderr
    nb_log_level level_min; // of the records taken; default NB_LOG_WARNING
    uint32_t record_count;  // that may wait; 0 = 512
} nb_log_service_desc;

// In the caller's storage. Fields are private.
typedef struct nb_log_service {
    nb_atomic_ptr service; // NULL once the set is destroyed
    nb_logger sink;
    nb_log_level level_min;
    uint64_t told_count; // drops that the output told of; the service's thread's
    nb_atomic_u64 written_count, dropped_count;
} nb_log_service;

typedef struct nb_log_service_stats {
    uint64_t written_count; // records handed to the sink, those about drops left out
    uint64_t dropped_count; // records lost: the mailbox was full, or the service stopped
} nb_log_service_stats;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_log_service_desc nb_log_service_desc_default(void);

// Starts the service in a set, which stops it after the others. desc may be NULL.
// Thread: one at a time. Owner: the caller's storage, until the set is destroyed and nobody logs. Fails: as
// nb_service_start; *log is then untouched.
NB_API nb_result nb_log_service_start(nb_log_service *log, nb_services *services, const nb_log_service_desc *desc);

// The logger to put into the hooks of other objects. A record it gets after the stop is dropped and counted.
// Thread: any. Owner: the caller gets a value. Fails: a zero logger for NULL, which is the default one.
NB_API nb_logger nb_log_service_logger(nb_log_service *log);

// Reads the counters.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_log_service_stats nb_log_service_stats_get(const nb_log_service *log);

NB_EXTERN_C_END
