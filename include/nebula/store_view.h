// SPDX-License-Identifier: MIT
#pragma once

// A store's rows as a snapshot has them: what jobs and other threads read while the store itself goes on changing.
// Columns flagged NB_COLUMN_SNAPSHOT are published, interpolated ones with the values of the tick before. The one rule:
// what nb_store_view_* returns is valid as long as the snapshot is held.
//
//     const nb_column_desc columns[] = {{"x", sizeof(float), NB_COLUMN_SNAPSHOT}};
//     nb_table_desc desc = {.name = "ships", .row_count_max = 1000, .columns = columns, .column_count = 1};
//     nb_store *store = NULL;
//     nb_snapshots *snapshots = NULL;
//     nb_table ships = {0};
//     if (nb_store_create(NULL, &store) != NB_OK || nb_snapshots_create(NULL, &snapshots) != NB_OK) return 1;
//     nb_store_table_add(store, &desc, &ships);
//     nb_store_views_add(store, snapshots);
//     nb_store_views_publish(store, NULL); // once a frame; an engine does both
//     const nb_snapshot *seen = nb_snapshots_acquire(snapshots); // on any thread
//     const float *x = NB_STORE_VIEW(seen, store, ships, 0, float);
//     uint32_t count = nb_store_view_row_count(seen, store, ships);
//     for (uint32_t row = 0; row < count; ++row) printf("ship at %f\n", (double)x[row]);
//     nb_snapshot_release(seen);

#include "nebula/snapshot.h"
#include "nebula/store.h"
#include "nebula/types.h"

// All rows of a column as the snapshot has them. `type` must have the column's size.
#define NB_STORE_VIEW(snapshot, store, table, column, type) \
    ((const type *)nb_store_view_rows((snapshot), (store), (table), (column), sizeof(type)))

// The same as of the tick before, for a column that is also NB_COLUMN_INTERPOLATE: draw previous + (now - previous) *
// snapshot->info.alpha. Rows that teleported have their values of now.
#define NB_STORE_VIEW_PREVIOUS(snapshot, store, table, column, type) \
    ((const type *)nb_store_view_rows_previous((snapshot), (store), (table), (column), sizeof(type)))

NB_EXTERN_C_BEGIN

// Adds every column flagged NB_COLUMN_SNAPSHOT to the snapshots, and of tables that have one the entities and teleport
// marks. No table can be declared afterwards. Regions are called "table.column", "table.column.previous",
// "table.entities" and "table.teleports".
// Thread: the publisher, while no other uses the store. Owner: the store outlives the snapshots' last publication.
// Fails: NB_ERR_MISUSE (NULL; of other snapshots already), what nb_snapshots_region_add returns; the call may be
// repeated then, and goes on where it stopped.
NB_API nb_result nb_store_views_add(nb_store *store, nb_snapshots *snapshots);

// Tells the snapshots how many rows there are, publishes, and advances the store's version. info may be NULL.
// Thread: the publisher, while no other writes. Owner: unchanged. Fails: as nb_snapshots_publish; NB_ERR_MISUSE (NULL,
// before nb_store_views_add).
NB_API nb_result nb_store_views_publish(nb_store *store, const nb_snapshot_info *info);

// How many rows a table had; 0 for one without a published column.
// Thread: any that holds the snapshot. Owner: nothing. Fails: 0 for NULL, no table, or a snapshot without the table.
NB_API uint32_t nb_store_view_row_count(const nb_snapshot *snapshot, const nb_store *store, nb_table table);

// The entities, by row.
// Thread: any that holds the snapshot. Owner: the snapshot. Fails: NULL as nb_store_view_row_count.
NB_API const nb_entity *nb_store_view_entities(const nb_snapshot *snapshot, const nb_store *store, nb_table table);

// The teleport marks, by row: 1 = jumped in the newest tick.
// Thread: any that holds the snapshot. Owner: the snapshot. Fails: NULL as nb_store_view_row_count, and for a table
// without interpolated columns.
NB_API const uint8_t *nb_store_view_teleports(const nb_snapshot *snapshot, const nb_store *store, nb_table table);

// What NB_STORE_VIEW calls.
// Thread: any that holds the snapshot. Owner: the snapshot. Fails: NULL for NULL and for a snapshot without rows of it;
// reported where there is no such column, it is not published, or its size is another.
NB_API const void *nb_store_view_rows(const nb_snapshot *snapshot, const nb_store *store, nb_table table,
                                      uint32_t column, size_t size_bytes);

// What NB_STORE_VIEW_PREVIOUS calls.
// Thread: any that holds the snapshot. Owner: the snapshot. Fails: as nb_store_view_rows, also for a column that is not
// interpolated.
NB_API const void *nb_store_view_rows_previous(const nb_snapshot *snapshot, const nb_store *store, nb_table table,
                                               uint32_t column, size_t size_bytes);

NB_EXTERN_C_END
