// SPDX-License-Identifier: MIT
// The engine alone: no world, no window. A server with three rooms on one set of threads, modules that say in which
// order they run, one that fails and is left out for the frame, and one that comes later.

#include "nebula/engine.h"

#include <stdio.h>

#define ROOM_COUNT 3

typedef struct room {
    uint64_t messages, orders, pings;
} room;

static nb_result receive(const nb_context *context, void *user) {
    ((room *)user)->messages += 3;
    (void)context;
    return NB_OK;
}

// After the network, whatever the order of attaching.
static nb_result obey(const nb_context *context, void *user) {
    room *r = user;
    r->orders += r->messages;
    (void)context;
    return NB_OK;
}

static nb_result ping(const nb_context *context, void *user) {
    ++((room *)user)->pings;
    return context->frame_index == 5 ? NB_ERR_OS : NB_OK; // told once; the frame goes on without it
}

int main(void) {
    nb_scheduler *scheduler = NULL;
    if (nb_scheduler_create(NULL, &scheduler) != NB_OK) return 1;
    nb_engine *engines[ROOM_COUNT] = {NULL};
    room rooms[ROOM_COUNT] = {{0, 0, 0}};
    static const char *const after[] = {"network"};
    for (int i = 0; i < ROOM_COUNT; ++i) {
        nb_engine_desc desc = {.scheduler = scheduler, .is_headless = true};
        if (nb_engine_create(&desc, &engines[i]) != NB_OK) return 1;
        nb_module_desc rules = {.name = "rules", .tick = obey, .user = &rooms[i], .after = after, .after_count = 1};
        nb_module_desc network = {.name = "network", .tick = receive, .user = &rooms[i]};
        nb_engine_module_attach(engines[i], &rules, NULL);
        nb_engine_module_attach(engines[i], &network, NULL);
    }
    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < ROOM_COUNT; ++i) {
            nb_module_desc late = {.name = "ping", .frame = ping, .user = &rooms[i]};
            if (round == 2) nb_engine_module_attach(engines[i], &late, NULL);
            nb_engine_run_ticks(engines[i], 1);
        }
    }
    bool is_good = true;
    for (int i = 0; i < ROOM_COUNT; ++i) {
        nb_engine_stats stats = nb_engine_stats_get(engines[i]);
        printf("room %d: %llu ticks, %llu messages, %llu orders, %llu pings, %llu failures\n", i,
               (unsigned long long)stats.tick_count, (unsigned long long)rooms[i].messages,
               (unsigned long long)rooms[i].orders, (unsigned long long)rooms[i].pings,
               (unsigned long long)stats.failure_count);
        is_good = is_good && rooms[i].orders == 165 && rooms[i].pings == 8 && stats.failure_count == 1;
        nb_engine_destroy(engines[i]);
    }
    nb_scheduler_destroy(scheduler);
    return is_good ? 0 : 1;
}
