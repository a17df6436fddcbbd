// SPDX-License-Identifier: MIT
#pragma once

// What the tests of rollback share: a small game with rows that come and go, a struct beside them and a provider with
// callbacks whose size changes, and mail that arrives too late.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

#define UNIT_MAX 200u
#define LIST_MAX 512u

enum { UNIT_PLACE, UNIT_LABEL, UNIT_COLUMNS };

static const nb_column_desc unit_columns[UNIT_COLUMNS] = {
    {.name = "place", .size_bytes = sizeof(int64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    {.name = "label", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_LOCAL}};

typedef struct game game;
typedef void (*game_mail)(game *g, const nb_context *context);

struct game {
    rig r;
    nb_store *world;
    nb_table units;
    struct {
        uint64_t score, tick_sum;
    } plain;
    uint32_t list_count; // a provider with callbacks, whose size changes
    uint64_t list[LIST_MAX];
    game_mail mail; // in each NetworkReconciliation
    void *mail_user;
    nb_result mail_result;
    uint64_t again_count;
};

static size_t list_save(void *user, void *bytes, size_t capacity_bytes) {
    const game *g = user;
    size_t size_bytes = g->list_count * sizeof g->list[0];
    if (bytes != NULL && size_bytes <= capacity_bytes) memcpy(bytes, g->list, size_bytes);
    return size_bytes;
}

static nb_result list_load(void *user, const void *bytes, size_t size_bytes) {
    game *g = user;
    if (size_bytes % sizeof g->list[0] != 0 || size_bytes > sizeof g->list) return NB_ERR_RANGE;
    g->list_count = (uint32_t)(size_bytes / sizeof g->list[0]);
    if (size_bytes != 0) memcpy(g->list, bytes, size_bytes);
    return NB_OK;
}

static void game_order(game *g, const nb_context *context, const nb_input_event *event) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    uint32_t count = nb_store_row_count(g->world, g->units);
    g->plain.score = g->plain.score * 7 + event->code;
    nb_staged staged;
    if (event->code % 4 == 1 && nb_store_stage_spawn(stage, g->units, &staged) == NB_OK)
        *NB_STORE_STAGED_WRITE(stage, staged, UNIT_PLACE, int64_t) = event->payload.i32[0];
    if (event->code % 4 == 2 && count > 0)
        nb_store_stage_despawn(stage, nb_store_entity(g->world, g->units, event->code % count));
    uint32_t added = event->code % 4 == 3 ? 1 + event->device : 0;
    for (uint32_t i = 0; i < added && g->list_count < LIST_MAX; ++i) g->list[g->list_count++] = event->code;
    if (event->code % 16 == 4 && g->list_count > 0) g->list_count /= 2;
}

static nb_result game_tick(const nb_context *context, void *user) {
    game *g = user;
    int64_t *place = NB_STORE_ROWS_WRITE(g->world, g->units, UNIT_PLACE, int64_t);
    NB_STORE_EACH_ROW(row, g->world, g->units)
    place[row] = place[row] * 3 % 1000003 + (int64_t)(context->tick->index + row);
    g->plain.tick_sum = g->plain.tick_sum * 31 + context->tick->index;
    g->again_count += context->is_resimulated ? 1 : 0;
    for (uint32_t i = 0; i < context->input.count; ++i) game_order(g, context, &context->input.events[i]);
    for (uint32_t i = 0; i < context->commands.count; ++i) game_order(g, context, &context->commands.events[i]);
    return NB_OK;
}

static nb_result game_reconcile(const nb_context *context, void *user) {
    game *g = user;
    if (g->mail != NULL) g->mail(g, context);
    return NB_OK;
}

static inline nb_engine_desc game_desc(uint32_t workers) {
    nb_engine_desc desc = rig_desc(workers);
    desc.hashes_ticks = desc.keeps_history = true;
    desc.history = (nb_history_desc){
        .bytes_max = (size_t)1 << 20, .tick_count_max = 128, .event_count_max = 4, .command_count_max = 4};
    return desc;
}

static inline void game_open_desc(game *g, nb_engine_desc desc) {
    memset(g, 0, sizeof *g);
    rig_open_desc(&g->r, desc);
    g->world = nb_engine_world(g->r.engine);
    nb_table_desc units = {
        .name = "units", .row_count_max = UNIT_MAX, .columns = unit_columns, .column_count = UNIT_COLUMNS};
    assert_int_equal(nb_store_table_add(g->world, &units, &g->units), NB_OK);
    nb_states *states = nb_engine_states(g->r.engine);
    nb_provider_desc plain = {.name = "plain", .data = &g->plain, .size_bytes = sizeof g->plain};
    nb_provider_desc list = {.name = "list", .save = list_save, .load = list_load, .user = g};
    assert_int_equal(nb_states_add(states, &plain, NULL), NB_OK);
    assert_int_equal(nb_states_add(states, &list, NULL), NB_OK);
    nb_module_desc module = {.name = "game", .tick = game_tick, .user = g};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = game_reconcile;
    attach(&g->r, module);
}

static inline void game_open(game *g) { game_open_desc(g, game_desc(0)); }

static inline void game_close(game *g) {
    assert_true(nb_store_is_valid(g->world));
    rig_close(&g->r);
}

static inline uint64_t game_hash(const game *g) { return nb_states_hash(nb_engine_states(g->r.engine)); }
static inline uint64_t game_now(const game *g) { return nb_loop_tick_count(nb_engine_loop(g->r.engine)); }
static inline nb_rollback_stats game_rolled(const game *g) { return nb_engine_rollback_stats(g->r.engine); }

static inline nb_input_event game_event(uint32_t code) {
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = code};
    event.payload.i32[0] = (int32_t)(code * 13);
    return event;
}

typedef struct game_save {
    unsigned char bytes[8192]; // four times what the largest game here saves
    size_t size_bytes;
} game_save;

static inline void game_save_to(game *g, game_save *out) {
    assert_int_equal(nb_states_save(nb_engine_states(g->r.engine), out->bytes, sizeof out->bytes, &out->size_bytes),
                     NB_OK);
}

// The command of a tick, in time: more rows come than go.
static inline void game_script(game *g, const nb_context *context) {
    uint32_t code = (uint32_t)(game_now(g) * 2654435761u >> 5);
    nb_input_event event = game_event(game_now(g) % 2 == 0 ? code / 4 * 4 + 1 : code);
    g->mail_result = nb_context_command(context, &event);
}
