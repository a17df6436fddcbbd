// SPDX-License-Identifier: MIT
#pragma once

// What the explorer and the engine need of a service beside the public functions.

#include "nebula/channel.h"
#include "nebula/service.h"

#include "../../base/owner.h"

#include "../../platform/platform.h"

struct nb_service {
    nb_services *set;
    nb_service_desc desc; // resolved
    char name[NB_SERVICE_NAME_SIZE_MAX + 1];
    size_t size_bytes;
    nb_channel *mailbox;
    nbi_thread thread;
    nb_atomic_u64 thread_id;   // of the thread inside nbi_service_main; 0 = none yet
    nb_atomic_u32 state;       // nb_service_state
    nb_atomic_u32 is_stopping; // never taken back
    nb_atomic_u32 event;       // changes when the service is asked to stop and when it has ended; both sides park on it
    uint64_t *restart_times;   // ring of restart_limit; its own thread's, as all below
    uint32_t restart_next, restart_count;
    unsigned char *scratch; // one message
    nbi_owner *owner;       // whose it is, see ../base/owner.h
    nb_atomic_u64 run_count, fail_count, sent_count, full_count, down_count, undelivered_count;
};

// The parts of nb_service_start: making a service, and adding it to its set once it has a thread.
nb_result nbi_service_open(nb_services *services, const nb_service_desc *desc, nb_service **out);
void nbi_service_add(nb_service *service);

// The name of a service of an owner that is in flight, or NULL.
const char *nbi_services_owned(const nb_services *services, const nbi_owner *owner);

// What the thread runs.
void nbi_service_main(void *service);
