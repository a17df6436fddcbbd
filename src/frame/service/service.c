// SPDX-License-Identifier: MIT
// Services: threads with a mailbox that are run again when they fail.
//
// A service's own thread supervises it: it calls the function, pauses, calls it again. Whoever wants it to stop raises
// is_stopping, closes the mailbox and changes `event`, on which the thread sleeps during a pause; in the mailbox's wait
// it is woken by the close. At its end the thread closes the mailbox, empties it, stores its last state and changes
// `event` once more. It is joined before anything of it is freed.

#include "service.h"

#include <stdio.h>
#include <string.h>

#include "../../base/base.h"

struct nb_services {
    nb_hooks hooks;
    size_t size_bytes;
    uint32_t service_count_max;
    nb_atomic_u32 service_count;
    nb_atomic_u32 is_stopping; // nothing starts any more
    nb_service *services[];    // in the order of their starts
};

#define REFUSE(set, result, ...) NBI_FAIL(&(set)->hooks, NB_ITEM_SERVICE_ARGUMENT, (result), __VA_ARGS__)

// Where reports of a service's own thread come from: nobody has called anything.
#define RUN "nb_service_desc.run"

nb_services_desc nb_services_desc_default(void) {
    return (nb_services_desc){.service_count_max = NB_SERVICE_COUNT_DEFAULT, .hooks = nb_hooks_default()};
}

nb_service_desc nb_service_desc_default(void) {
    return (nb_service_desc){
        .message_size_bytes = NB_SERVICE_MESSAGE_SIZE_DEFAULT,
        .mailbox_count = NB_SERVICE_MAILBOX_DEFAULT,
        .restart_limit = NB_SERVICE_RESTART_LIMIT_DEFAULT,
        .restart_window_ns = NB_SERVICE_RESTART_WINDOW_DEFAULT_NS,
        .pause_ns = NB_SERVICE_PAUSE_DEFAULT_NS,
        .pause_max_ns = NB_SERVICE_PAUSE_MAX_DEFAULT_NS,
    };
}

nb_result nb_services_create(const nb_services_desc *desc, nb_services **out) {
    nb_hooks hooks = nbi_hooks_resolve(desc != NULL ? &desc->hooks : NULL);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_SERVICE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    uint32_t count_max =
        desc != NULL && desc->service_count_max != 0 ? desc->service_count_max : NB_SERVICE_COUNT_DEFAULT;
    if (count_max > NB_SERVICE_COUNT_MAX) {
        return NBI_FAIL(&hooks, NB_ITEM_SERVICE_ARGUMENT, NB_ERR_RANGE, "%u services are too many",
                        (unsigned)count_max);
    }
    size_t size_bytes = sizeof(nb_services) + count_max * sizeof(nb_service *);
    nb_services *set = nbi_alloc(&hooks, size_bytes, NB_CACHE_LINE, __func__);
    if (set == NULL) return NB_ERR_MEMORY;
    memset(set, 0, size_bytes);
    set->hooks = hooks;
    set->size_bytes = size_bytes;
    set->service_count_max = count_max;
    *out = set;
    return NB_OK;
}

// --- starting ---

static void resolve_desc(nb_service_desc *desc) {
    nb_service_desc defaults = nb_service_desc_default();
    if (desc->message_size_bytes == 0) desc->message_size_bytes = defaults.message_size_bytes;
    if (desc->mailbox_count == 0) desc->mailbox_count = defaults.mailbox_count;
    if (desc->restart_limit == 0) desc->restart_limit = defaults.restart_limit;
    if (desc->restart_limit == NB_SERVICE_RESTART_NEVER) desc->restart_limit = 0;
    if (desc->restart_window_ns == 0) desc->restart_window_ns = defaults.restart_window_ns;
    if (desc->pause_ns == 0) desc->pause_ns = defaults.pause_ns;
    if (desc->pause_max_ns == 0) desc->pause_max_ns = defaults.pause_max_ns;
}

static nb_result check_desc(const nb_services *set, const nb_service_desc *desc) {
    static const char *const function = "nb_service_start";
    nb_log_item item = NB_ITEM_SERVICE_ARGUMENT;
    if (desc->name == NULL || desc->name[0] == '\0' || desc->run == NULL) {
        return nbi_fail(&set->hooks, item, NB_ERR_MISUSE, function, "a service needs a name and a function");
    }
    if (strlen(desc->name) > NB_SERVICE_NAME_SIZE_MAX) {
        return nbi_fail(&set->hooks, item, NB_ERR_RANGE, function, "the name %s is too long", desc->name);
    }
    if (desc->restart_limit > NB_SERVICE_RESTART_LIMIT_MAX) {
        return nbi_fail(&set->hooks, item, NB_ERR_RANGE, function, "%s: %u restarts are too many", desc->name,
                        (unsigned)desc->restart_limit);
    }
    if (nb_services_find(set, desc->name) != NULL) {
        return nbi_fail(&set->hooks, item, NB_ERR_MISUSE, function, "the name %s is taken", desc->name);
    }
    return NB_OK;
}

static nb_service *service_alloc(nb_services *set, const nb_service_desc *desc) {
    size_t times_bytes = desc->restart_limit * sizeof(uint64_t);
    size_t size_bytes = sizeof(nb_service) + times_bytes;
    if (!nbi_size_add(size_bytes, desc->message_size_bytes, &size_bytes)) return NULL;
    nb_service *service = nbi_alloc(&set->hooks, size_bytes, NB_CACHE_LINE, "nb_service_start");
    if (service == NULL) return NULL;
    memset(service, 0, size_bytes);
    service->set = set;
    service->desc = *desc;
    service->size_bytes = size_bytes;
    service->restart_times = (uint64_t *)(void *)(service + 1);
    service->scratch = (unsigned char *)(service + 1) + times_bytes;
    snprintf(service->name, sizeof service->name, "%s", desc->name);
    service->desc.name = service->name;
    service->state.value = NB_SERVICE_STATE_STARTING;
    return service;
}

static void service_free(nb_service *service) {
    nb_services *set = service->set;
    nb_channel_destroy(service->mailbox);
    nbi_free(&set->hooks, service, service->size_bytes);
}

nb_result nbi_service_open(nb_services *set, const nb_service_desc *given, nb_service **out) {
    nb_service_desc desc = *given;
    resolve_desc(&desc);
    nb_result result = check_desc(set, &desc);
    if (result != NB_OK) return result;
    if (nbi_atomic_load_acquire_u32(&set->service_count) == set->service_count_max) return NB_FULL;
    nb_service *service = service_alloc(set, &desc);
    if (service == NULL) return NB_ERR_MEMORY;
    nb_channel_desc mailbox = {.name = service->name,
                               .kind = NB_CHANNEL_KIND_MPSC,
                               .capacity = desc.mailbox_count,
                               .item_size_bytes = desc.message_size_bytes,
                               .hooks = set->hooks};
    // That a mailbox closes is no news; what is left inside is reported here, with more to say.
    if (mailbox.hooks.logger.level_min < NB_LOG_WARNING) mailbox.hooks.logger.level_min = NB_LOG_WARNING;
    result = nb_channel_create(&mailbox, &service->mailbox);
    if (result != NB_OK) {
        service_free(service);
        return result;
    }
    *out = service;
    return NB_OK;
}

void nbi_service_add(nb_service *service) {
    nb_services *set = service->set;
    uint32_t index = nbi_atomic_load_relaxed_u32(&set->service_count);
    set->services[index] = service;
    // Publishes the entry; read by the acquire loads of the count.
    nbi_atomic_store_release_u32(&set->service_count, index + 1);
}

nb_result nb_service_start(nb_services *set, const nb_service_desc *desc, nb_service **out) {
    if (set == NULL) return NBI_FAIL_NULL("services");
    if (desc == NULL || out == NULL) return REFUSE(set, NB_ERR_MISUSE, "desc or out is NULL");
    if (nbi_atomic_load_acquire_u32(&set->is_stopping) != 0 || nbi_owner_is_closed()) return NB_CLOSED;
    nb_service *service = NULL;
    nb_result result = nbi_service_open(set, desc, &service);
    if (result != NB_OK) return result;
    nbi_thread_desc thread = {
        .run = nbi_service_main, .user = service, .name = service->name, .stack_size_bytes = desc->stack_size_bytes};
    service->owner = nbi_owner_take(NBI_OWNED_SERVICE);
    result = nbi_thread_start(&service->thread, &thread);
    if (result != NB_OK) {
        nbi_log(&set->hooks, NB_LOG_ERROR, NB_ITEM_SERVICE_OS, __func__,
                "service \"%s\": its thread could not be started", service->name);
        nbi_owner_give(service->owner, NBI_OWNED_SERVICE);
        service_free(service);
        return result;
    }
    nbi_service_add(service);
    *out = service;
    return NB_OK;
}

// --- the service's own thread ---

static bool is_asked_to_stop(const nb_service *service) {
    // Pairs with the exchange in ask_to_stop.
    return nbi_atomic_load_acquire_u32(&service->is_stopping) != 0;
}

static void set_state(nb_service *service, nb_service_state state) {
    // Read by the acquire loads of the state: who sees the end sees all that the service did.
    nbi_atomic_store_release_u32(&service->state, (uint32_t)state);
}

static void change_event(nb_service *service) {
    nbi_atomic_fetch_add_seq_cst_u32(&service->event, 1);
    nbi_unpark(&service->event, UINT32_MAX);
}

// Restarts that fell into the window that ends now.
static uint32_t recent_restarts(const nb_service *service, uint64_t now_ns) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < service->restart_count; ++i) {
        if (now_ns - service->restart_times[i] < service->desc.restart_window_ns) ++count;
    }
    return count;
}

static void note_restart(nb_service *service, uint64_t now_ns) {
    uint32_t limit = service->desc.restart_limit;
    service->restart_times[service->restart_next] = now_ns;
    service->restart_next = (service->restart_next + 1) % limit;
    if (service->restart_count < limit) ++service->restart_count;
}

// Doubles by the number of recent restarts, without running over.
static uint64_t pause_after(const nb_service *service, uint32_t recent_count) {
    uint64_t pause_ns = service->desc.pause_ns, max_ns = service->desc.pause_max_ns;
    for (uint32_t i = 0; i < recent_count && pause_ns < max_ns; ++i) pause_ns *= pause_ns > UINT64_MAX / 2 ? 1 : 2;
    return nbi_min_u64(pause_ns, max_ns);
}

// False: asked to stop.
static bool pause_until(nb_service *service, uint64_t deadline_ns) {
    for (;;) {
        // Before the look: a request after it changes the event, too, and the park returns at once.
        uint32_t event = nbi_atomic_load_acquire_u32(&service->event);
        if (is_asked_to_stop(service)) return false;
        if (nbi_clock_now_ns() >= deadline_ns) return true;
        nbi_park_until(&service->event, event, deadline_ns);
    }
}

// True: run it again, the pause is over.
static bool survive_failure(nb_service *service, nb_result failure, nb_service_state *last) {
    const nb_hooks *hooks = &service->set->hooks;
    uint64_t now_ns = nbi_clock_now_ns();
    uint32_t recent_count = recent_restarts(service, now_ns);
    if (recent_count >= service->desc.restart_limit) {
        nbi_log(hooks, NB_LOG_ERROR, NB_ITEM_SERVICE_FAILED, RUN,
                "service \"%s\" failed with %s after %u restarts within %llu ms; it is not run again", service->name,
                nb_result_name(failure), (unsigned)recent_count, nb_llu(service->desc.restart_window_ns / 1000000));
        *last = NB_SERVICE_STATE_FAILED;
        return false;
    }
    uint64_t pause_ns = pause_after(service, recent_count);
    nbi_log(hooks, NB_LOG_WARNING, NB_ITEM_SERVICE_RESTARTED, RUN,
            "service \"%s\" failed with %s; restart %u of %u in %llu ms", service->name, nb_result_name(failure),
            (unsigned)(recent_count + 1), (unsigned)service->desc.restart_limit, nb_llu(pause_ns / 1000000));
    set_state(service, NB_SERVICE_STATE_PAUSED);
    note_restart(service, now_ns);
    bool is_over = pause_until(service, pause_ns < UINT64_MAX - now_ns ? now_ns + pause_ns : NB_NEVER_NS);
    *last = NB_SERVICE_STATE_STOPPED;
    return is_over;
}

// The first run comes even if the stop is faster: what was accepted before it is received.
static nb_service_state run_to_the_end(nb_service *service) {
    nb_service_state last = NB_SERVICE_STATE_STOPPED;
    for (;;) {
        set_state(service, NB_SERVICE_STATE_RUNNING);
        nbi_atomic_fetch_add_relaxed_u64(&service->run_count, 1);
        nb_result result = service->desc.run(service, service->desc.user);
        if (result >= 0) return NB_SERVICE_STATE_STOPPED;
        nbi_atomic_fetch_add_relaxed_u64(&service->fail_count, 1);
        if (is_asked_to_stop(service)) return NB_SERVICE_STATE_STOPPED;
        if (!survive_failure(service, result, &last)) return last;
    }
}

// Nothing can be sent any more; counts what nobody will receive.
static void empty_mailbox(nb_service *service) {
    nb_channel_close(service->mailbox);
    uint64_t count = 0;
    for (;;) {
        nb_result result = nb_channel_try_recv(service->mailbox, service->scratch);
        if (result == NB_OK) {
            ++count;
        } else if (result == NB_EMPTY) {
            nbi_thread_yield(); // a sender is copying
        } else {
            break;
        }
    }
    if (count == 0) return;
    nbi_atomic_fetch_add_relaxed_u64(&service->undelivered_count, count);
    nbi_log(&service->set->hooks, NB_LOG_WARNING, NB_ITEM_SERVICE_UNDELIVERED, RUN,
            "service \"%s\" has ended: %llu messages were not delivered", service->name, nb_llu(count));
}

void nbi_service_main(void *user) {
    nb_service *service = user;
    nbi_atomic_store_release_u64(&service->thread_id, nbi_thread_id()); // read by is_own_thread
    nbi_owner_enter(service->owner);                                    // for good: the thread runs nothing else
    nb_service_state last = run_to_the_end(service);
    // Before the end can be seen. One with `destroyed` is in flight until that was called.
    if (service->desc.destroyed == NULL) nbi_owner_give(service->owner, NBI_OWNED_SERVICE);
    empty_mailbox(service);
    set_state(service, last);
    change_event(service);
}

nb_result nb_service_recv(nb_service *service, void *message, uint64_t deadline_ns) {
    if (service == NULL) return NBI_FAIL_NULL("service");
    if (message == NULL) return REFUSE(service->set, NB_ERR_MISUSE, "%s: message is NULL", service->name);
    if (nbi_thread_id() != nbi_atomic_load_acquire_u64(&service->thread_id)) {
        return REFUSE(service->set, NB_ERR_THREAD, "%s: only its own thread receives", service->name);
    }
    return nb_channel_recv(service->mailbox, message, deadline_ns);
}

bool nb_service_should_stop(const nb_service *service) {
    if (service == NULL) NBI_FAIL_NULL("service");
    return service == NULL || is_asked_to_stop(service);
}

// --- sending ---

static nb_result count_refusal(nb_service *service, nb_result result) {
    nb_atomic_u64 *count = result == NB_FULL ? &service->full_count : &service->down_count;
    nbi_atomic_fetch_add_relaxed_u64(count, 1);
    return result;
}

nb_result nb_service_send(nb_service *service, const void *message) {
    if (service == NULL) return NBI_FAIL_NULL("service");
    if (message == NULL) return REFUSE(service->set, NB_ERR_MISUSE, "%s: message is NULL", service->name);
    bool is_paused = nbi_atomic_load_acquire_u32(&service->state) == NB_SERVICE_STATE_PAUSED;
    if (is_paused && !service->desc.is_kept_while_down) return count_refusal(service, NB_CLOSED);
    nb_result result = nb_channel_try_send(service->mailbox, message);
    if (result != NB_OK) return count_refusal(service, result);
    nbi_atomic_fetch_add_relaxed_u64(&service->sent_count, 1);
    return NB_OK;
}

// --- stopping ---

static bool has_ended(const nb_service *service) {
    // Pairs with the release store in set_state.
    uint32_t state = nbi_atomic_load_acquire_u32(&service->state);
    return state == NB_SERVICE_STATE_STOPPED || state == NB_SERVICE_STATE_FAILED;
}

static bool is_own_thread(const nb_service *service) {
    return !has_ended(service) && nbi_atomic_load_acquire_u64(&service->thread_id) == nbi_thread_id();
}

static void ask_to_stop(nb_service *service) {
    // Before the event; read by the acquire load in is_asked_to_stop.
    nbi_atomic_exchange_seq_cst_u32(&service->is_stopping, 1);
    nb_channel_close(service->mailbox);
    change_event(service);
}

static bool await_end(nb_service *service, uint64_t deadline_ns) {
    for (;;) {
        uint32_t event = nbi_atomic_load_acquire_u32(&service->event);
        if (has_ended(service)) return true;
        if (deadline_ns != NB_NEVER_NS && nbi_clock_now_ns() >= deadline_ns) return false;
        nbi_park_until(&service->event, event, deadline_ns);
    }
}

static void report_stuck(const nb_service *service, const char *function) {
    nbi_log(&service->set->hooks, NB_LOG_ERROR, NB_ITEM_SERVICE_STUCK, function, "service \"%s\" has not stopped",
            service->name);
}

nb_result nb_service_stop(nb_service *service, uint64_t deadline_ns) {
    if (service == NULL) return NBI_FAIL_NULL("service");
    if (is_own_thread(service)) {
        return REFUSE(service->set, NB_ERR_DEADLOCK, "%s: cannot wait for its own end", service->name);
    }
    ask_to_stop(service);
    if (await_end(service, deadline_ns)) return NB_OK;
    report_stuck(service, __func__);
    return NB_TIMEOUT;
}

// Those that stop last, or the others: all are asked, then each is waited for.
static void stop_part(nb_services *set, bool is_last, uint64_t deadline_ns) {
    uint32_t count = nbi_atomic_load_acquire_u32(&set->service_count);
    for (uint32_t i = count; i-- > 0;) {
        if (set->services[i]->desc.is_stopped_last == is_last) ask_to_stop(set->services[i]);
    }
    for (uint32_t i = count; i-- > 0;) {
        if (set->services[i]->desc.is_stopped_last == is_last) await_end(set->services[i], deadline_ns);
    }
}

static bool is_called_by_a_service(const nb_services *set) {
    uint32_t count = nbi_atomic_load_acquire_u32(&set->service_count);
    for (uint32_t i = 0; i < count; ++i) {
        if (is_own_thread(set->services[i])) return true;
    }
    return false;
}

// NB_TIMEOUT, and a report for each, if any has not ended.
static nb_result report_all_stuck(const nb_services *set, const char *function) {
    nb_result result = NB_OK;
    uint32_t count = nbi_atomic_load_acquire_u32(&set->service_count);
    for (uint32_t i = 0; i < count; ++i) {
        if (has_ended(set->services[i])) continue;
        report_stuck(set->services[i], function);
        result = NB_TIMEOUT;
    }
    return result;
}

nb_result nb_services_stop(nb_services *set, uint64_t deadline_ns) {
    if (set == NULL) return NBI_FAIL_NULL("services");
    if (is_called_by_a_service(set)) return REFUSE(set, NB_ERR_DEADLOCK, "a service cannot wait for its own end");
    nbi_atomic_exchange_seq_cst_u32(&set->is_stopping, 1); // read by nb_service_start
    uint64_t now_ns = nbi_clock_now_ns(), left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    bool is_endless = deadline_ns == NB_NEVER_NS;
    stop_part(set, false, is_endless ? deadline_ns : deadline_ns - left_ns / 4);
    stop_part(set, true, deadline_ns);
    return report_all_stuck(set, __func__);
}

// --- questions and the end ---

nb_service *nb_services_find(const nb_services *set, const char *name) {
    if (set == NULL || name == NULL) {
        NBI_FAIL_NULL(set == NULL ? "services" : "name");
        return NULL;
    }
    uint32_t count = nbi_atomic_load_acquire_u32(&set->service_count);
    for (uint32_t i = 0; i < count; ++i) {
        if (strcmp(set->services[i]->name, name) == 0) return set->services[i];
    }
    return NULL;
}

const char *nbi_services_owned(const nb_services *set, const nbi_owner *owner) {
    uint32_t count = set != NULL ? nbi_atomic_load_acquire_u32(&set->service_count) : 0;
    for (uint32_t i = 0; i < count; ++i) {
        const nb_service *service = set->services[i];
        if (service->owner == owner && (!has_ended(service) || service->desc.destroyed != NULL)) return service->name;
    }
    return NULL;
}

const char *nb_service_name(const nb_service *service) {
    if (service == NULL) NBI_FAIL_NULL("service");
    return service != NULL ? service->name : "";
}

nb_service_stats nb_service_stats_get(const nb_service *service) {
    if (service == NULL) {
        NBI_FAIL_NULL("service");
        return (nb_service_stats){NB_SERVICE_STATE_NONE, 0, 0, 0, 0, 0, 0};
    }
    return (nb_service_stats){
        .state = (nb_service_state)nbi_atomic_load_acquire_u32(&service->state),
        .run_count = nbi_atomic_load_relaxed_u64(&service->run_count),
        .fail_count = nbi_atomic_load_relaxed_u64(&service->fail_count),
        .sent_count = nbi_atomic_load_relaxed_u64(&service->sent_count),
        .full_count = nbi_atomic_load_relaxed_u64(&service->full_count),
        .down_count = nbi_atomic_load_relaxed_u64(&service->down_count),
        .undelivered_count = nbi_atomic_load_relaxed_u64(&service->undelivered_count),
    };
}

nb_result nb_services_destroy(nb_services *set) {
    if (set == NULL) return NB_OK;
    nb_result result = nb_services_stop(set, nbi_clock_now_ns() + NB_SERVICE_STOP_DEFAULT_NS);
    if (result != NB_OK) return result == NB_TIMEOUT ? NB_BUSY : result;
    // All have ended: the threads are on their way out, and are joined before what they used is freed.
    for (uint32_t i = nbi_atomic_load_relaxed_u32(&set->service_count); i-- > 0;) {
        nb_service *service = set->services[i];
        nbi_thread_join(&service->thread);
        if (service->desc.destroyed != NULL) {
            service->desc.destroyed(service->desc.user);
            nbi_owner_give(service->owner, NBI_OWNED_SERVICE);
        }
        service_free(service);
    }
    nb_hooks hooks = set->hooks;
    nbi_free(&hooks, set, set->size_bytes);
    return NB_OK;
}
