// SPDX-License-Identifier: MIT
// A service under every schedule: stops beside restarts, pauses, sends and its own end.

#include "explore.h"

#include "frame/service/service.h"
#include "platform/platform.h"

typedef struct room {
    nb_services *set;
    nb_service *service;
    uint32_t accepted_count, received_count, late_run_count;
    uint32_t fail_every; // a run fails after so many messages; 0 = never
    bool is_running, is_stopped;
} room;

static nb_result serve(nb_service *service, void *user) {
    room *r = user;
    EXPLORE_CHECK(!r->is_stopped && !r->is_running);
    r->is_running = true;
    uint64_t message = 0;
    nb_result result = NB_OK, outcome = NB_OK;
    for (uint32_t count = 1; outcome == NB_OK; ++count) {
        result = nb_service_recv(service, &message, NB_NEVER_NS);
        if (result != NB_OK) break;
        ++r->received_count;
        if (count == r->fail_every) outcome = NB_ERR_OS;
    }
    EXPLORE_CHECK(result == NB_OK || (result == NB_CLOSED && nb_service_should_stop(service)));
    r->is_running = false;
    return outcome;
}

// One run may begin at the very moment of the stop; none after it.
static nb_result run_and_fail(nb_service *service, void *user) {
    room *r = user;
    EXPLORE_CHECK(!r->is_stopped && !r->is_running);
    if (nb_service_should_stop(service)) EXPLORE_CHECK(++r->late_run_count == 1);
    return NB_ERR_OS;
}

static nb_result done(nb_service *service, void *user) {
    (void)service;
    (void)user;
    return NB_OK;
}

static void open_service(void *user, nb_service_desc desc) {
    room *r = user;
    nb_services_desc set_desc = {.service_count_max = 1, .hooks = explore_hooks()};
    set_desc.hooks.logger.level_min = NB_LOG_OFF;
    EXPLORE_CHECK(nb_services_create(&set_desc, &r->set) == NB_OK);
    desc.name = "service";
    desc.user = r;
    desc.mailbox_count = 2;
    EXPLORE_CHECK(nbi_service_open(r->set, &desc, &r->service) == NB_OK);
    nbi_service_add(r->service);
}

static void open_healthy(void *user) { open_service(user, (nb_service_desc){.run = serve}); }
static void open_done(void *user) { open_service(user, (nb_service_desc){.run = done}); }

static void open_crashing(void *user) {
    open_service(user, (nb_service_desc){.run = run_and_fail, .restart_limit = 2, .pause_ns = 1000});
}

// A pause that only a stop can end: a stop that is missed is a deadlock.
static void open_pausing(void *user) {
    open_service(user, (nb_service_desc){.run = run_and_fail, .pause_ns = UINT64_MAX, .pause_max_ns = UINT64_MAX});
}

static void open_flaky(void *user) {
    room *r = user;
    r->fail_every = 1;
    open_service(
        user, (nb_service_desc){
                  .run = serve, .restart_limit = 2, .pause_ns = 1000, .is_kept_while_down = explore_random() % 2 == 0});
}

static void send_some(room *r, uint32_t count) {
    for (uint64_t i = 0; i < count; ++i) {
        nb_result result = nb_service_send(r->service, &i);
        EXPLORE_CHECK(result == NB_OK || result == NB_FULL || result == NB_CLOSED);
        if (result == NB_OK) ++r->accepted_count;
    }
}

static bool is_final(const room *r) {
    nb_service_state state = nb_service_stats_get(r->service).state;
    return state == NB_SERVICE_STATE_STOPPED || state == NB_SERVICE_STATE_FAILED;
}

static void check_ended(room *r) {
    uint64_t message = 0;
    EXPLORE_CHECK(is_final(r) && !r->is_running);
    EXPLORE_CHECK(nb_service_send(r->service, &message) == NB_CLOSED);
}

static void stop_for_good(room *r) {
    EXPLORE_CHECK(nb_service_stop(r->service, NB_NEVER_NS) == NB_OK);
    check_ended(r);
    r->is_stopped = true;
}

static void part(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) nbi_service_main(r->service);
    if (index == 1) stop_for_good(r);
    if (index >= 2) send_some(r, 2);
}

static void two_stops(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) nbi_service_main(r->service);
    if (index == 1) stop_for_good(r);
    if (index == 2) EXPLORE_CHECK(nb_services_stop(r->set, NB_NEVER_NS) == NB_OK);
}

static void stop_with_a_deadline(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) nbi_service_main(r->service);
    if (index == 1) {
        nb_result result = nb_service_stop(r->service, nbi_clock_now_ns() + explore_random() % 20000);
        EXPLORE_CHECK(result == NB_OK || result == NB_TIMEOUT);
        stop_for_good(r);
    }
    if (index == 2) send_some(r, 2);
}

static void end_is_seen_whole(void *user, uint32_t index) {
    room *r = user;
    if (index == 0) nbi_service_main(r->service);
    if (index == 1) {
        for (;;) {
            uint32_t event = nbi_atomic_load_acquire_u32(&r->service->event);
            if (is_final(r)) break;
            nbi_park_until(&r->service->event, event, NB_NEVER_NS);
        }
        check_ended(r);
    }
    if (index == 2) send_some(r, 1);
}

static void destroy(void *user) {
    room *r = user;
    nb_service_stats stats = nb_service_stats_get(r->service);
    EXPLORE_CHECK(stats.sent_count == r->accepted_count);
    EXPLORE_CHECK(r->accepted_count == r->received_count + stats.undelivered_count);
    // One that does not fail receives all that was accepted.
    if (r->service->desc.run == serve && r->fail_every == 0) EXPLORE_CHECK(stats.undelivered_count == 0);
    EXPLORE_CHECK(stats.fail_count <= 3);
    EXPLORE_CHECK(nb_services_destroy(r->set) == NB_OK);
}

EXPLORE(stop_beside_sends, 4, open_healthy, part, destroy, sizeof(room))
EXPLORE(stop_beside_restarts, 2, open_crashing, part, destroy, sizeof(room))
EXPLORE(stop_in_a_pause, 2, open_pausing, part, destroy, sizeof(room))
EXPLORE(sends_beside_restarts_and_a_stop, 4, open_flaky, part, destroy, sizeof(room))
EXPLORE(two_stops_at_once, 3, open_healthy, two_stops, destroy, sizeof(room))
EXPLORE(two_stops_in_a_pause, 3, open_pausing, two_stops, destroy, sizeof(room))
EXPLORE(stop_with_a_deadline, 3, open_healthy, stop_with_a_deadline, destroy, sizeof(room))
EXPLORE(stop_with_a_deadline_in_a_pause, 3, open_pausing, stop_with_a_deadline, destroy, sizeof(room))
EXPLORE(stop_beside_its_own_end, 3, open_done, part, destroy, sizeof(room))
EXPLORE(end_is_seen_whole, 3, open_done, end_is_seen_whole, destroy, sizeof(room))
EXPLORE(failure_is_seen_whole, 3, open_crashing, end_is_seen_whole, destroy, sizeof(room))
