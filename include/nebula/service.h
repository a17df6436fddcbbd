// SPDX-License-Identifier: MIT
#pragma once

// Services: named threads beside the frame, each with a mailbox, supervised. A service function that returns a failure
// is run again after a pause, up to a limit; then the service counts as failed and is reported, once. The one rule: a
// service is reached by messages only and touches no state of the frame; sending never blocks.
//
//     nb_services *services = NULL;
//     nb_service *service = NULL;
//     nb_service_desc desc = nb_service_desc_default();
//     desc.name = "telemetry";
//     desc.run = my_service; // receives until NB_CLOSED, then returns NB_OK
//     if (nb_services_create(NULL, &services) < 0) return 1;
//     if (nb_service_start(services, &desc, &service) == NB_OK) {
//         uint64_t message = 7;
//         if (nb_service_send(service, &message) != NB_OK) printf("not now\n");
//     }
//     nb_services_stop(services, nb_clock_now_ns(NULL) + 1000000000u);
//     nb_services_destroy(services);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Services of a set where the desc gives no number: a handful is usual. Each is a thread, so hundreds are a mistake.
#define NB_SERVICE_COUNT_DEFAULT 16
#define NB_SERVICE_COUNT_MAX 256

// Longest name in bytes, without the final zero. The operating system may show less of it.
#define NB_SERVICE_NAME_SIZE_MAX 31

// Messages of a mailbox, and bytes of one, where the desc gives no number: a number or a pointer each.
#define NB_SERVICE_MAILBOX_DEFAULT 256
#define NB_SERVICE_MESSAGE_SIZE_DEFAULT 8

// Restarts within the window before a service counts as failed: five within a minute are no accident.
#define NB_SERVICE_RESTART_LIMIT_DEFAULT 5
#define NB_SERVICE_RESTART_LIMIT_MAX 64
#define NB_SERVICE_RESTART_WINDOW_DEFAULT_NS UINT64_C(60000000000)
// As restart_limit: the first failure is the end.
#define NB_SERVICE_RESTART_NEVER UINT32_MAX

// The pause before a restart: doubles with each restart of the window, from what a busy file or port needs to come free
// to what a person waits for.
#define NB_SERVICE_PAUSE_DEFAULT_NS UINT64_C(10000000)
#define NB_SERVICE_PAUSE_MAX_DEFAULT_NS UINT64_C(5000000000)

// How long nb_services_destroy waits for services that were not stopped before.
#define NB_SERVICE_STOP_DEFAULT_NS UINT64_C(5000000000)

// A set of services, and one of them; a service lives as long as its set.
typedef struct nb_services nb_services;
typedef struct nb_service nb_service;

typedef enum nb_service_state {
    NB_SERVICE_STATE_NONE = 0,
    NB_SERVICE_STATE_STARTING, // its thread has not come to run it
    NB_SERVICE_STATE_RUNNING,
    NB_SERVICE_STATE_PAUSED,  // failed, and waits to be restarted
    NB_SERVICE_STATE_STOPPED, // asked to, or done by itself; for good
    NB_SERVICE_STATE_FAILED,  // too many failures; for good
    NB_SERVICE_STATE_COUNT,
} nb_service_state;

// The service itself, in its own thread. Not negative: done, not to be run again. Negative: a failure. What it left in
// the mailbox is there for the next run.
typedef nb_result (*nb_service_fn)(nb_service *service, void *user);

typedef struct nb_services_desc {
    uint32_t service_count_max; // 1..NB_SERVICE_COUNT_MAX; 0 = 16
    nb_hooks hooks;             // the services' threads log, too; not to a logger that runs in one of them
} nb_services_desc;

typedef struct nb_service_desc {
    const char *name;              // copied, unique in its set, up to NB_SERVICE_NAME_SIZE_MAX bytes; required
    nb_service_fn run;             // required
    void *user;                    // handed to run and destroyed
    void (*destroyed)(void *user); // called once by nb_services_destroy, after the thread has ended; NULL = nothing
    uint32_t message_size_bytes;   // of one message; 0 = 8
    uint32_t mailbox_count;        // messages, rounded up to a power of two; 0 = 256
    uint32_t restart_limit;        // restarts within the window, up to 64 or NB_SERVICE_RESTART_NEVER; 0 = 5
    uint64_t restart_window_ns;    // 0 = a minute
    uint64_t pause_ns;             // before the first restart; 0 = 10 ms
    uint64_t pause_max_ns;         // the longest; 0 = 5 s
    size_t stack_size_bytes;       // 0 = the operating system's
    bool is_kept_while_down;       // messages sent during a pause wait in the mailbox; default: they are refused
    bool is_stopped_last;          // nb_services_stop stops it after the others, who may need it; default false
} nb_service_desc;

// Counters since the start. Read while others work, they are not one moment of all of them.
typedef struct nb_service_stats {
    nb_service_state state;
    uint64_t run_count;         // times the function was called
    uint64_t fail_count;        // times it returned a failure
    uint64_t sent_count;        // messages accepted
    uint64_t full_count;        // messages refused because the mailbox was full
    uint64_t down_count;        // messages refused because the service was down or stopping
    uint64_t undelivered_count; // messages left over at the end
} nb_service_stats;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_services_desc nb_services_desc_default(void);

// The defaults, spelled out; name and run are left for the caller.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_service_desc nb_service_desc_default(void);

// Makes an empty set. desc may be NULL.
// Thread: any. Owner: the caller, until nb_services_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE, NB_ERR_RANGE.
NB_API nb_result nb_services_create(const nb_services_desc *desc, nb_services **out);

// Starts a service in a thread of its own.
// Thread: one at a time. Owner: the set. Fails: NB_FULL, NB_CLOSED (the set is stopped, or the call comes from the
// on_detach of a module that was replaced), NB_ERR_MEMORY, NB_ERR_OS (no thread; reported), NB_ERR_MISUSE (no name or
// function, or a name that is taken), NB_ERR_RANGE.
NB_API nb_result nb_service_start(nb_services *services, const nb_service_desc *desc, nb_service **out);

// Copies a message of message_size_bytes into the mailbox, if there is room now. NB_OK means that it will be received,
// or counted as undelivered at the end. Never blocks.
// Thread: any. Owner: the message is copied on NB_OK, else still the caller's. Fails: NB_FULL, NB_CLOSED (down,
// stopping or ended; counted), NB_ERR_MISUSE.
NB_API nb_result nb_service_send(nb_service *service, const void *message);

// Takes the next message, waiting for one until deadline_ns of the machine's monotonic clock; 0 does not wait,
// NB_NEVER_NS waits for ever. NB_CLOSED: the service is asked to stop, and nothing is left to receive.
// Thread: the service's own. Owner: the message is copied. Fails: NB_EMPTY (only with deadline 0), NB_TIMEOUT,
// NB_CLOSED, NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_service_recv(nb_service *service, void *message, uint64_t deadline_ns);

// Whether the service is asked to stop: for work between messages that takes long.
// Thread: any. Owner: nothing. Fails: true for NULL.
NB_API bool nb_service_should_stop(const nb_service *service);

// Asks one service to stop, refuses further messages, and waits for its end until deadline_ns. What was accepted before
// can still be received, also by a service that has not come to run yet. It is never killed:
// NB_TIMEOUT means that it still runs and was named in the log (NB_ITEM_SERVICE_STUCK); ask again later.
// Thread: any but the service's own. Owner: unchanged. Fails: NB_TIMEOUT, NB_ERR_DEADLOCK (its own thread),
// NB_ERR_MISUSE.
NB_API nb_result nb_service_stop(nb_service *service, uint64_t deadline_ns);

// Stops all services at once and lets no more start. Those with is_stopped_last follow when the others have ended, or
// when three quarters of the time have passed.
// Thread: one at a time, none of a service. Owner: unchanged. Fails: NB_TIMEOUT (each that did not stop is named),
// NB_ERR_DEADLOCK, NB_ERR_MISUSE.
NB_API nb_result nb_services_stop(nb_services *services, uint64_t deadline_ns);

// The service of a name, or NULL.
// Thread: any. Owner: the set's. Fails: NULL.
NB_API nb_service *nb_services_find(const nb_services *services, const char *name);

// The service's name.
// Thread: any. Owner: the service's string. Fails: "" for NULL.
NB_API const char *nb_service_name(const nb_service *service);

// Reads the counters.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_service_stats nb_service_stats_get(const nb_service *service);

// Stops what still runs, for five seconds at most, and frees the set in the reverse order of the starts. If a service
// does not stop, nothing is freed, for it may use its mailbox: NB_BUSY, and the call may be made again. NULL is fine.
// Thread: one, while no other is inside a call but the services. Owner: the set ends on NB_OK. Fails: NB_BUSY,
// NB_ERR_DEADLOCK.
NB_API nb_result nb_services_destroy(nb_services *services);

NB_EXTERN_C_END
