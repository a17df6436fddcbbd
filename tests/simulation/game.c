// SPDX-License-Identifier: MIT
// The game that both peers play: units and shots in tables, one of a kind in singletons, a score in plain memory, a
// list behind callbacks, and puffs and a camera that only the machine itself has. What a tick does follows from the
// state, the input and the tick alone.

#include "simulation.h"

#include "nebula/random.h"

#include <string.h>

enum { UNIT_PLACE, UNIT_SPEED, UNIT_STAMP, UNIT_MARK, UNIT_COLUMNS };
enum { SHOT_LIFE, SHOT_OWNER, SHOT_COLUMNS };
enum { SKY_TICK, SKY_SUM, SKY_COLUMNS };
enum { PUFF_AGE, PUFF_COLUMNS };

#define RANGE_ROWS 16u
#define RANGE_MAX (UNIT_MAX / RANGE_ROWS)
#define STAGE_PUFFS 1u
#define TICK_SCRATCH_BYTES 6000u
#define STAGE_RANGES 2u

// --- states ---

static size_t list_save(void *user, void *bytes, size_t capacity_bytes) {
    const game *g = user;
    size_t size_bytes = g->list_count * sizeof g->list[0];
    if (bytes != NULL && size_bytes <= capacity_bytes && size_bytes != 0) memcpy(bytes, g->list, size_bytes);
    return size_bytes;
}

static nb_result list_load(void *user, const void *bytes, size_t size_bytes) {
    game *g = user;
    if (size_bytes % sizeof g->list[0] != 0 || size_bytes > sizeof g->list) return NB_ERR_RANGE;
    g->list_count = (uint32_t)(size_bytes / sizeof g->list[0]);
    if (size_bytes != 0) memcpy(g->list, bytes, size_bytes);
    return NB_OK;
}

static void list_push(game *g, uint32_t number, uint32_t payload) {
    if (g->list_count == LIST_MAX) g->list_count /= 2;
    g->list[g->list_count++] = (list_entry){number, payload};
}

static nb_result declare_tables(game *g) {
    const nb_column_desc units[UNIT_COLUMNS] = {
        {.name = "place", .size_bytes = sizeof(int64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
        {.name = "speed", .size_bytes = sizeof(int32_t)},
        {.name = "stamp", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_SNAPSHOT},
        {.name = "mark", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_LOCAL}};
    const nb_column_desc shots[SHOT_COLUMNS] = {{.name = "life", .size_bytes = sizeof(uint32_t)},
                                                {.name = "owner", .size_bytes = sizeof(nb_entity)}};
    const nb_column_desc sky[SKY_COLUMNS] = {
        {.name = "tick", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_SNAPSHOT},
        {.name = "sum", .size_bytes = sizeof(uint64_t)}};
    const nb_column_desc puffs[PUFF_COLUMNS] = {{.name = "age", .size_bytes = sizeof(uint64_t)}};
    const nb_column_desc camera[] = {{.name = "count", .size_bytes = sizeof(uint64_t)}};
    const nb_table_desc descs[] = {
        {.name = "units", .row_count_max = UNIT_MAX, .columns = units, .column_count = UNIT_COLUMNS},
        {.name = "shots", .row_count_max = SHOT_MAX, .columns = shots, .column_count = SHOT_COLUMNS},
        {.name = "sky", .columns = sky, .column_count = SKY_COLUMNS, .is_singleton = true},
        {.name = "puffs", .row_count_max = PUFF_MAX, .columns = puffs, .column_count = 1, .is_local = true},
        {.name = "camera", .columns = camera, .column_count = 1, .is_local = true, .is_singleton = true}};
    nb_table *const tables[] = {&g->units, &g->shots, &g->sky, &g->puffs, &g->camera};
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < 5 && result == NB_OK; ++i) result = nb_store_table_add(g->world, &descs[i], tables[i]);
    return result;
}

nb_result game_declare(game *g, nb_engine *engine) {
    memset(g, 0, sizeof *g);
    g->world = nb_engine_world(engine);
    if (g->world == NULL) return NB_ERR_MEMORY;
    nb_result result = declare_tables(g);
    nb_provider_desc plain = {.name = "plain", .data = &g->plain, .size_bytes = sizeof g->plain};
    nb_provider_desc list = {.name = "list", .save = list_save, .load = list_load, .user = g};
    if (result == NB_OK) result = nb_states_add(nb_engine_states(engine), &plain, NULL);
    if (result == NB_OK) result = nb_states_add(nb_engine_states(engine), &list, NULL);
    return result;
}

// Not the library's hash, and straight from memory: what that one overlooks is seen here.
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size_bytes) {
    const unsigned char *at = bytes;
    for (; size_bytes >= 8; size_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = mix(hash, word);
    }
    for (; size_bytes > 0; --size_bytes, ++at) hash = mix(hash, *at);
    return hash;
}

static uint64_t hash_column(uint64_t hash, const game *g, nb_table table, uint32_t column, size_t size_bytes) {
    const void *rows = nb_store_rows(g->world, table, column, size_bytes);
    return hash_bytes(hash, rows, size_bytes * nb_store_row_count(g->world, table));
}

uint64_t game_raw_hash(const game *g) {
    uint64_t hash = nb_store_row_count(g->world, g->units);
    hash = hash_column(hash, g, g->units, UNIT_PLACE, sizeof(int64_t));
    hash = hash_column(hash, g, g->units, UNIT_SPEED, sizeof(int32_t));
    hash = hash_column(hash, g, g->units, UNIT_STAMP, sizeof(uint64_t));
    hash = hash_column(hash, g, g->shots, SHOT_LIFE, sizeof(uint32_t));
    hash = hash_column(hash, g, g->shots, SHOT_OWNER, sizeof(nb_entity));
    hash = hash_column(hash, g, g->sky, SKY_TICK, sizeof(uint64_t));
    hash = hash_column(hash, g, g->sky, SKY_SUM, sizeof(uint64_t));
    NB_STORE_EACH_ROW(row, g->world, g->units) hash = mix(hash, nb_store_entity(g->world, g->units, row).value);
    NB_STORE_EACH_ROW(row, g->world, g->shots) hash = mix(hash, nb_store_entity(g->world, g->shots, row).value);
    hash = hash_bytes(hash, &g->plain, sizeof g->plain);
    return hash_bytes(mix(hash, g->list_count), g->list, g->list_count * sizeof g->list[0]);
}

// --- a tick ---

static void spawn_unit(const game *g, nb_store_stage *stage, int64_t place, int32_t speed, uint64_t stamp) {
    nb_staged staged;
    if (nb_store_stage_spawn(stage, g->units, &staged) != NB_OK) return;
    *NB_STORE_STAGED_WRITE(stage, staged, UNIT_PLACE, int64_t) = place;
    *NB_STORE_STAGED_WRITE(stage, staged, UNIT_SPEED, int32_t) = speed;
    *NB_STORE_STAGED_WRITE(stage, staged, UNIT_STAMP, uint64_t) = stamp;
}

static void apply(game *g, const nb_context *context, const nb_input_event *event) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    uint32_t count = nb_store_row_count(g->world, g->units);
    uint32_t row = count != 0 ? (uint32_t)event->payload.i32[1] % count : 0;
    nb_entity entity = nb_store_entity(g->world, g->units, row);
    switch (event->code % 8) {
    case 0:
    case 1: spawn_unit(g, stage, event->payload.i32[0], event->device, context->tick->index + 1); break;
    case 2:
        if (count != 0) nb_store_stage_despawn(stage, entity);
        break;
    case 3:
        if (count != 0) *NB_STORE_ROW_WRITE(g->world, g->units, UNIT_SPEED, int32_t, row) += event->payload.i32[0];
        break;
    case 4:
        if (count != 0) nb_store_teleport(g->world, entity);
        break;
    case 5:
        for (uint32_t i = 0; i < 5; ++i) list_push(g, event->code, (uint32_t)event->payload.i32[0] + i);
        break;
    case 6: g->list_count -= g->list_count != 0 ? 1 : 0; break;
    default: g->plain.score = mix(g->plain.score, (uint64_t)event->payload.i32[0]); break;
    }
    g->plain.digest[event->device % 3] = mix(g->plain.digest[event->device % 3], event->code);
}

typedef struct march {
    game *game;
    const nb_context *context;
    nb_store_stage *stages[RANGE_MAX];
} march;

// Some rows: on any thread, as ranges of it do not share a row or a stage.
static void march_range(march *m, uint32_t begin, uint32_t end) {
    game *g = m->game;
    nb_random random = nb_random_make(m->context->seed, m->context->tick->index, 1);
    int64_t *place = NB_STORE_RANGE_WRITE(g->world, g->units, UNIT_PLACE, int64_t, begin, end - begin);
    uint64_t *stamp = NB_STORE_RANGE_WRITE(g->world, g->units, UNIT_STAMP, uint64_t, begin, end - begin);
    const int32_t *speed = NB_STORE_ROWS(g->world, g->units, UNIT_SPEED, int32_t);
    nb_store_stage *stage = m->stages[begin / RANGE_ROWS];
    for (uint32_t row = begin; row < end; ++row) {
        place[row] += speed[row] + nb_random_between(random, row, -3, 3);
        stamp[row] = m->context->tick->index + 1;
        if (nb_random_range(random, UNIT_MAX + row, 24) != 0) continue;
        nb_staged staged;
        if (nb_store_stage_spawn(stage, g->shots, &staged) != NB_OK) continue;
        *NB_STORE_STAGED_WRITE(stage, staged, SHOT_LIFE, uint32_t) = 2 + row % 5;
        *NB_STORE_STAGED_WRITE(stage, staged, SHOT_OWNER, nb_entity) = nb_store_entity(g->world, g->units, row);
    }
}

static void march_task(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    march_range(user, (uint32_t)begin, (uint32_t)end);
}

static void march_all(peer *p, const nb_context *context) {
    march m = {.game = &p->game, .context = context};
    uint32_t count = nb_store_row_count(p->game.world, p->game.units);
    for (uint32_t i = 0; i * RANGE_ROWS < count; ++i) m.stages[i] = nb_context_stage(context, STAGE_RANGES + i);
    if (p->index == REFERENCE || !p->sim->config.has_tick_tasks) {
        for (uint32_t row = 0; row < count; row += RANGE_ROWS)
            march_range(&m, row, count - row < RANGE_ROWS ? count : row + RANGE_ROWS);
        return;
    }
    nb_parallel_desc desc = {.run = march_task,
                             .user = &m,
                             .count = count,
                             .grain = RANGE_ROWS,
                             .priority = NB_PRIORITY_CRITICAL,
                             .lifetime = NB_LIFETIME_FLOATING};
    nb_parallel_report report;
    EXPLORE_CHECK(nb_parallel_for(context->scheduler, &desc, &report) == NB_OK && report.done_count == count);
}

static void age_shots(game *g, const nb_context *context) {
    uint32_t *life = NB_STORE_ROWS_WRITE(g->world, g->shots, SHOT_LIFE, uint32_t);
    nb_store_stage *stage = nb_context_stage(context, 0);
    NB_STORE_EACH_ROW(row, g->world, g->shots) {
        if (--life[row] == 0) nb_store_stage_despawn(stage, nb_store_entity(g->world, g->shots, row));
    }
}

// Local: they come and go once, however often the tick is simulated.
static void blow_puffs(game *g, const nb_context *context) {
    uint64_t tick = context->tick->index;
    nb_store_stage *stage = nb_context_stage(context, STAGE_PUFFS);
    uint32_t count = nb_store_row_count(g->world, g->puffs);
    bool has_end = tick % 7 == 3 && count > 0;
    if (has_end) nb_store_stage_despawn(stage, nb_store_entity(g->world, g->puffs, (uint32_t)(tick % count)));
    nb_store_stage_spawn(stage, g->puffs, NULL);
    if (context->is_resimulated) return;
    if (has_end) --g->puff_count;
    if (g->puff_count < PUFF_MAX) ++g->puff_count;
}

static nb_result game_tick(const nb_context *context, void *user) {
    peer *p = user;
    game *g = &p->game;
    uint64_t tick = context->tick->index;
    oracle_glimpse(p, tick);
    say(p, "tick %llu%s: %u events, %u commands, %u units", (unsigned long long)tick,
        context->is_resimulated ? " again" : "", context->input.count, context->commands.count,
        nb_store_row_count(g->world, g->units));
    if (is_right(p, tick)) EXPLORE_CHECK(*NB_STORE_SINGLETON(g->world, g->sky, SKY_TICK, uint64_t) == tick);
    // All that the engine lends for a tick comes back with it: so much in each would not fit into a frame's.
    EXPLORE_CHECK(nb_arena_alloc(context->arena, TICK_SCRATCH_BYTES, 16) != NULL);
    march_all(p, context);
    age_shots(g, context);
    blow_puffs(g, context);
    for (uint32_t i = 0; i < context->input.count; ++i) apply(g, context, &context->input.events[i]);
    for (uint32_t i = 0; i < context->commands.count; ++i) apply(g, context, &context->commands.events[i]);
    *NB_STORE_SINGLETON_WRITE(g->world, g->sky, SKY_TICK, uint64_t) = tick + 1;
    uint64_t *sum = NB_STORE_SINGLETON_WRITE(g->world, g->sky, SKY_SUM, uint64_t);
    *sum = mix(*sum, nb_store_row_count(g->world, g->units));
    if (!p->sim->is_calm && p->index != REFERENCE && fault_happens(p->sim, FAULT_SLOW_TICK))
        nb_clock_manual_advance(&p->clock, sim_random(30) * 1000000);
    return NB_OK;
}

// Fails in some ticks, everywhere in the same ones; what it has staged by then is dropped.
static nb_result fragile_tick(const nb_context *context, void *user) {
    peer *p = user;
    uint64_t draw = mix(context->seed, context->tick->index);
    spawn_unit(&p->game, nb_context_stage(context, 0), (int64_t)(draw % 100), 1, context->tick->index + 1);
    p->game.plain.score += 1;
    bool fails = draw % 5 < 2;
    if (fails) ++p->failures_certain;
    return fails ? NB_ERR_OS : NB_OK;
}

nb_result game_attach(peer *p) {
    nb_module_desc desc = {.name = "game", .tick = game_tick, .user = p, .priority = 10};
    nb_module_desc fragile = {.name = "fragile", .tick = fragile_tick, .user = p};
    nb_result result = nb_engine_module_attach(p->engine, &desc, NULL);
    return result == NB_OK ? nb_engine_module_attach(p->engine, &fragile, NULL) : result;
}

void game_check_local(const peer *p) {
    const game *g = &p->game;
    EXPLORE_CHECK(nb_store_row_count(g->world, g->puffs) == g->puff_count);
    EXPLORE_CHECK(*NB_STORE_SINGLETON(g->world, g->camera, 0, uint64_t) == g->camera_count);
    // A mark is of the row's own life, or there is none.
    const uint64_t *marks = NB_STORE_ROWS(g->world, g->units, UNIT_MARK, uint64_t);
    NB_STORE_EACH_ROW(row, g->world, g->units) {
        nb_entity_ref ref;
        EXPLORE_CHECK(nb_store_ref(g->world, nb_store_entity(g->world, g->units, row), &ref) == NB_OK);
        EXPLORE_CHECK(marks[row] == 0 || marks[row] == ref.incarnation);
    }
}

// In Gameplay: marks what it sees for the first time.
nb_result game_mark(const nb_context *context, void *user) {
    peer *p = user;
    game *g = &p->game;
    uint64_t *marks = NB_STORE_ROWS_WRITE(g->world, g->units, UNIT_MARK, uint64_t);
    NB_STORE_EACH_ROW(row, g->world, g->units) {
        nb_entity_ref ref;
        if (nb_store_ref(g->world, nb_store_entity(g->world, g->units, row), &ref) != NB_OK) continue;
        EXPLORE_CHECK(marks[row] == 0 || marks[row] == ref.incarnation);
        marks[row] = ref.incarnation;
    }
    (void)context;
    return NB_OK;
}

// Every row was stamped by the same tick, which is the one that the snapshot is of.
bool snapshot_check(const peer *p, const nb_snapshot *snapshot, uint64_t *hash) {
    const game *g = &p->game;
    const uint64_t *tick = NB_STORE_VIEW(snapshot, g->world, g->sky, SKY_TICK, uint64_t);
    uint32_t count = nb_store_view_row_count(snapshot, g->world, g->units);
    const uint64_t *stamp = NB_STORE_VIEW(snapshot, g->world, g->units, UNIT_STAMP, uint64_t);
    const int64_t *place = NB_STORE_VIEW(snapshot, g->world, g->units, UNIT_PLACE, int64_t);
    const nb_entity *entities = nb_store_view_entities(snapshot, g->world, g->units);
    *hash = mix(snapshot->version, snapshot->info.tick);
    bool is_told_lies = p->sim->config.chances[FAULT_FORGED_STATE] != 0; // as a state of another tick
    if (tick == NULL || (*tick != snapshot->info.tick && !is_told_lies)) return false;
    for (uint32_t row = 0; row < count; ++row) {
        if (stamp[row] != *tick || entities[row].value == 0) return false;
        *hash = mix(*hash, (uint64_t)place[row] ^ entities[row].value);
    }
    return true;
}
