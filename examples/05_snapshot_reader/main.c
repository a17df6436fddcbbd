// SPDX-License-Identifier: MIT
// A reader on another thread: the game's tables are published with every frame, a service reads whichever copy is
// newest, for as long as it likes, and neither ever waits for the other.

#include "nebula/engine.h"

#include <stdio.h>

#define SHIP_COUNT 1000u

enum { POSITION };

static const nb_column_desc ship_columns[] = {
    {.name = "position", .size_bytes = sizeof(double), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE}};

typedef struct game {
    nb_store *world;
    nb_table ships;
    nb_snapshots *snapshots;
    uint64_t torn_count; // the watcher's
} game;

static nb_result move(const nb_context *context, void *user) {
    const game *g = user;
    double *position = NB_STORE_ROWS_WRITE(context->world, g->ships, POSITION, double);
    NB_STORE_EACH_ROW(row, context->world, g->ships) position[row] += row + 1;
    return context->tick->index == 29 ? nb_engine_stop(context->engine) : NB_OK; // half a second
}

// Every ship has moved as often as the first one, and is one step further than a tick ago, whatever the game does
// meanwhile. A picture would show it at before + (now - before) * snapshot->info.alpha.
static bool is_whole(const game *g, const nb_snapshot *snapshot) {
    const double *now = NB_STORE_VIEW(snapshot, g->world, g->ships, POSITION, double);
    const double *before = NB_STORE_VIEW_PREVIOUS(snapshot, g->world, g->ships, POSITION, double);
    uint32_t count = nb_store_view_row_count(snapshot, g->world, g->ships);
    bool has_moved = snapshot->info.tick > 0;
    for (uint32_t row = 0; row < count; ++row) {
        if (now[row] != now[0] * (row + 1)) return false;
        if (now[row] - before[row] != (has_moved ? row + 1 : 0)) return false;
    }
    return count == SHIP_COUNT;
}

static nb_result watch(nb_service *service, void *user) {
    game *g = user;
    uint64_t seen_count = 0, newest = 0;
    while (!nb_service_should_stop(service)) {
        const nb_snapshot *snapshot = nb_snapshots_acquire(g->snapshots);
        if (snapshot != NULL && snapshot->version != newest) {
            newest = snapshot->version;
            ++seen_count;
            if (!is_whole(g, snapshot)) ++g->torn_count;
        }
        nb_snapshot_release(snapshot);
    }
    printf("the watcher saw %s of the frames, %llu of them torn\n", seen_count > 0 ? "some" : "none",
           (unsigned long long)g->torn_count);
    return NB_OK;
}

int main(void) {
    game g = {.world = NULL};
    nb_engine *engine = NULL;
    nb_engine_desc desc = {.is_headless = true};
    if (nb_engine_create(&desc, &engine) != NB_OK) return 1;
    g.world = nb_engine_world(engine);
    g.snapshots = nb_engine_snapshots(engine);
    nb_table_desc ships = {.name = "ships", .row_count_max = SHIP_COUNT, .columns = ship_columns, .column_count = 1};
    nb_service_desc watcher = {.name = "watcher", .run = watch, .user = &g};
    nb_module_desc module = {.name = "game", .tick = move, .user = &g};
    nb_service *service = NULL;
    nb_entity ship;
    nb_result result = nb_store_table_add(g.world, &ships, &g.ships);
    for (uint32_t i = 0; i < SHIP_COUNT && result == NB_OK; ++i) result = nb_store_spawn(g.world, g.ships, &ship);
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    if (result == NB_OK) result = nb_engine_run_ticks(engine, 1); // the watcher may look from the first frame on
    if (result == NB_OK) result = nb_service_start(nb_engine_services(engine), &watcher, &service);
    if (result == NB_OK) result = nb_engine_run(engine);
    nb_snapshots_stats stats = nb_snapshots_stats_get(g.snapshots);
    printf("%llu frames published, %llu left out because every copy was held\n",
           (unsigned long long)stats.publish_count, (unsigned long long)stats.skip_count);
    bool is_ended = nb_engine_destroy(engine) == NB_OK; // stops the watcher first
    return result == NB_OK && is_ended && g.torn_count == 0 ? 0 : 1;
}
