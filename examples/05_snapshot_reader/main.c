// SPDX-License-Identifier: MIT
// A reader on another thread: the game publishes its state with every frame, a service reads whichever copy is newest,
// for as long as it likes, and neither ever waits for the other.

#include "nebula/engine.h"

#include <stdio.h>

#define SHIP_COUNT 1000u

typedef struct game {
    double x[SHIP_COUNT];
    uint32_t region;
    nb_snapshots *snapshots;
} game;

static nb_result move(const nb_context *context, void *user) {
    game *g = user;
    for (uint32_t i = 0; i < SHIP_COUNT; ++i) g->x[i] = (double)(context->tick->index + 1) * (i + 1);
    return context->tick->index == 29 ? nb_engine_stop(context->engine) : NB_OK; // half a second
}

// Every ship has moved as often as the first one, whatever the game does meanwhile.
static bool is_whole(const game *g, const nb_snapshot *snapshot) {
    const double *x = nb_snapshot_region(snapshot, g->region, NULL);
    for (uint32_t i = 0; i < SHIP_COUNT; ++i) {
        if (x[i] != x[0] * (i + 1)) return false;
    }
    return true;
}

static nb_result watch(nb_service *service, void *user) {
    const game *g = user;
    uint64_t seen_count = 0, torn_count = 0, newest = 0;
    while (!nb_service_should_stop(service)) {
        const nb_snapshot *snapshot = nb_snapshots_acquire(g->snapshots);
        if (snapshot != NULL && snapshot->version != newest) {
            newest = snapshot->version;
            ++seen_count;
            if (!is_whole(g, snapshot)) ++torn_count;
        }
        nb_snapshot_release(snapshot);
    }
    printf("the watcher saw %s of the frames, %llu of them torn\n", seen_count > 0 ? "some" : "none",
           (unsigned long long)torn_count);
    return NB_OK;
}

int main(void) {
    static game g;
    nb_engine *engine = NULL;
    nb_engine_desc desc = {.is_headless = true};
    if (nb_engine_create(&desc, &engine) != NB_OK) return 1;
    g.snapshots = nb_engine_snapshots(engine);
    nb_snapshot_region_desc region = {.name = "ships", .base = g.x, .size_bytes = sizeof g.x};
    nb_service_desc watcher = {.name = "watcher", .run = watch, .user = &g};
    nb_module_desc module = {.name = "game", .tick = move, .user = &g};
    nb_service *service = NULL;
    nb_result result = nb_snapshots_region_add(g.snapshots, &region, &g.region);
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    if (result == NB_OK) result = nb_service_start(nb_engine_services(engine), &watcher, &service);
    if (result == NB_OK) result = nb_engine_run(engine);
    nb_snapshots_stats stats = nb_snapshots_stats_get(g.snapshots);
    printf("%llu frames published, %llu left out because every copy was held\n",
           (unsigned long long)stats.publish_count, (unsigned long long)stats.skip_count);
    bool is_ended = nb_engine_destroy(engine) == NB_OK; // stops the watcher first
    return result == NB_OK && is_ended ? 0 : 1;
}
