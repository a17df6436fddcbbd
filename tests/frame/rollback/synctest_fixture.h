// SPDX-License-Identifier: MIT
#pragma once

// A game of everything that synctest goes back over: rows that come, go, move and teleport, a struct, a list behind
// callbacks, and local state of each kind that ticks write. Its tick depends on the state and its input alone, unless
// it is asked to sin.

#include "frame/engine/engine_fixture.h"

#include "nebula/hash.h"
#include "nebula/synctest.h"

#define FOLK_MAX 150u
#define HOARD_MAX 400u
#define REF_COUNT 16u

typedef enum sin {
    SIN_NONE,
    SIN_COLUMN,   // reads a local column
    SIN_TABLE,    // reads a local table
    SIN_PROVIDER, // reads a local provider
    SIN_SEVERAL,  // reads two of them
    SIN_VARIABLE, // reads what it left in a variable one tick before
    SIN_COUNTER,  // reads a variable that counts up
    SIN_TURN,     // what comes out depends on a variable that each run turns over
    SIN_LENS,     // reads a local provider that a frame changes, once, 20 ticks after it first sins
    SIN_FRAME,    // a frame writes what is simulated, once
} sin;

enum { PLACE, GOLD, NOTE, MOOD, FOLK_COLUMNS };
enum { AGE, PUFF_COLUMNS };
enum { PRICE, CHART_COLUMNS };
enum { NOW, CLOCK_COLUMNS };

typedef struct padded {
    uint8_t kind;
    uint64_t number;
} padded;

typedef struct town {
    rig r;
    sin sin;
    uint64_t sin_from; // the tick from which on it sins
    nb_store *world;
    nb_table folk, puffs, charts, clock;
    struct {
        uint64_t sum, count;
    } score;
    struct {
        unsigned char bytes[HOARD_MAX];
        size_t size_bytes;
    } hoard;
    uint64_t camera;                 // a local provider, which ticks move
    uint64_t lens;                   // another one, which frames turn
    uint64_t variable;               // nobody registers it
    uint32_t flag, order[2];         // of SIN_TURN
    uint64_t first_runs, again_runs; // of the tick handler
    nb_entity_ref refs[REF_COUNT];   // of rows that were new, kept outside
    uint32_t ref_count;
    bool has_failures; // the handler fails in ticks 20 and 21 and from 50 on
} town;

// --- providers ---

static inline size_t hoard_save(void *user, void *bytes, size_t capacity_bytes) {
    const town *t = user;
    if (bytes != NULL && t->hoard.size_bytes <= capacity_bytes) memcpy(bytes, t->hoard.bytes, t->hoard.size_bytes);
    return t->hoard.size_bytes;
}

static inline nb_result hoard_load(void *user, const void *bytes, size_t size_bytes) {
    town *t = user;
    if (size_bytes > HOARD_MAX) return NB_ERR_RANGE;
    memset(t->hoard.bytes, 0, sizeof t->hoard.bytes);
    memcpy(t->hoard.bytes, bytes, size_bytes);
    t->hoard.size_bytes = size_bytes;
    return NB_OK;
}

// --- a tick ---

typedef struct walk {
    town *town;
    uint64_t tick;
} walk;

static inline void walk_range(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    const walk *w = user;
    town *t = w->town;
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    uint64_t *place = NB_STORE_RANGE_WRITE(t->world, t->folk, PLACE, uint64_t, first, count);
    uint32_t *mood = NB_STORE_RANGE_WRITE(t->world, t->folk, MOOD, uint32_t, first, count);
    for (uint64_t row = begin; row < end; ++row) {
        place[row] = place[row] * 3 + (w->tick ^ row);
        mood[row] += 1 + (uint32_t)(row % 3);
    }
}

static inline void turn_range(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    town *t = user;
    for (uint64_t i = begin; i < end; ++i) t->order[(i ^ t->flag) & 1] = (uint32_t)i;
}

static inline void commit_sin(town *t, const nb_context *context) {
    uint32_t count = nb_store_row_count(t->world, t->folk);
    if (count < 8 || context->tick->index < t->sin_from) return;
    uint32_t *gold = NB_STORE_ROW_WRITE(t->world, t->folk, GOLD, uint32_t, 5);
    uint32_t mood = *NB_STORE_ROW(t->world, t->folk, MOOD, uint32_t, 5);
    uint32_t price = *NB_STORE_SINGLETON(t->world, t->charts, PRICE, uint32_t);
    if (t->sin == SIN_COLUMN || t->sin == SIN_SEVERAL) *gold += mood;
    if (t->sin == SIN_TABLE || t->sin == SIN_SEVERAL) *gold += price * 7;
    if (t->sin == SIN_PROVIDER) *gold += (uint32_t)t->camera;
    if (t->sin == SIN_LENS) *gold += (uint32_t)t->lens;
    if (t->sin == SIN_COUNTER) *gold += (uint32_t)++t->variable;
    if (t->sin == SIN_VARIABLE) {
        *gold += (uint32_t)t->variable;
        t->variable = context->tick->index * 3;
    }
    if (t->sin == SIN_TURN) {
        t->flag ^= 1;
        nb_parallel_desc loop = {.run = turn_range, .user = t, .count = 2, .grain = 1};
        assert_int_equal(nb_parallel_for(context->scheduler, &loop, NULL), NB_OK);
        *gold = *gold * 31 + t->order[0] * 7 + t->order[1];
    }
}

static inline void town_rows(town *t, const nb_context *context, uint64_t *random) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    uint32_t count = nb_store_row_count(t->world, t->folk);
    uint64_t spawns = test_random(random) % (context->tick->index / 64 % 2 == 0 ? 5 : 3);
    uint64_t despawns = test_random(random) % 4;
    for (uint64_t i = 0; i < spawns && count + i < FOLK_MAX; ++i) {
        nb_staged staged;
        if (nb_store_stage_spawn(stage, t->folk, &staged) != NB_OK) continue;
        *NB_STORE_STAGED_WRITE(stage, staged, GOLD, uint32_t) = (uint32_t)test_random(random);
    }
    for (uint64_t i = 0; count > 10 && i < despawns; ++i)
        nb_store_stage_despawn(stage, nb_store_entity(t->world, t->folk, (uint32_t)(test_random(random) % count)));
    for (uint64_t i = test_random(random) % 4; count > 0 && i > 0; --i) {
        uint32_t row = (uint32_t)(test_random(random) % count);
        *NB_STORE_ROW_WRITE(t->world, t->folk, GOLD, uint32_t, row) += (uint32_t)i;
        padded *note = NB_STORE_ROW_WRITE(t->world, t->folk, NOTE, padded, row);
        memset(note, (int)i, sizeof *note); // padding too
        note->number = test_random(random);
        if (note->number % 3 == 0) nb_store_teleport(t->world, nb_store_entity(t->world, t->folk, row));
    }
    // Local rows come and go with ticks.
    nb_store_stage_spawn(nb_context_stage(context, 1), t->puffs, NULL);
    if (nb_store_row_count(t->world, t->puffs) > 20)
        nb_store_stage_despawn(nb_context_stage(context, 1), nb_store_entity(t->world, t->puffs, 3));
}

static inline void town_local(town *t) {
    uint32_t *age = NB_STORE_ROWS_WRITE(t->world, t->puffs, AGE, uint32_t);
    NB_STORE_EACH_ROW(row, t->world, t->puffs) age[row] += 1;
    *NB_STORE_SINGLETON_WRITE(t->world, t->charts, PRICE, uint32_t) += 3;
    t->camera += 5;
}

static inline nb_result town_tick(const nb_context *context, void *user) {
    town *t = user;
    uint64_t random = context->tick->index ^ t->score.sum ^ *NB_STORE_SINGLETON(t->world, t->clock, NOW, uint64_t) << 7;
    for (uint32_t i = 0; i < context->commands.count; ++i) random ^= context->commands.events[i].code * 1000003u;
    walk w = {t, context->tick->index};
    uint32_t count = nb_store_row_count(t->world, t->folk);
    nb_parallel_desc loop = {.run = walk_range, .user = &w, .count = count, .grain = 64};
    if (count != 0) assert_int_equal(nb_parallel_for(context->scheduler, &loop, NULL), NB_OK);
    commit_sin(t, context);
    town_rows(t, context, &random);
    town_local(t);
    *NB_STORE_SINGLETON_WRITE(t->world, t->clock, NOW, uint64_t) = context->tick->index * 3 + context->commands.count;
    t->score.sum = t->score.sum * 31 + random;
    t->score.count += 1;
    if (random % 3 == 0) t->hoard.size_bytes = random / 3 % HOARD_MAX;
    memset(t->hoard.bytes, (int)(random & 255), t->hoard.size_bytes);
    context->is_resimulated ? ++t->again_runs : ++t->first_runs;
    uint64_t index = context->tick->index;
    bool has_failed = t->has_failures && (index == 20 || index == 21 || index >= 50);
    return has_failed ? NB_ERR_OS : NB_OK;
}

// --- frames ---

static inline nb_result town_reconcile(const nb_context *context, void *user) {
    (void)user;
    uint64_t tick = nb_loop_tick_count(nb_engine_loop(context->engine));
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)(tick * 2654435761u >> 5)};
    return tick % 3 == 0 ? NB_OK : nb_context_command(context, &event);
}

static inline nb_result town_frame(const nb_context *context, void *user) {
    town *t = user;
    uint32_t count = nb_store_row_count(t->world, t->folk);
    if (count > 0)
        nb_store_ref(t->world, nb_store_entity(t->world, t->folk, count - 1), &t->refs[t->ref_count++ % REF_COUNT]);
    uint64_t tick_count = nb_loop_tick_count(nb_engine_loop(context->engine));
    if (t->sin == SIN_FRAME && tick_count == t->sin_from) t->score.sum += 1;
    if (t->sin == SIN_LENS && tick_count == t->sin_from + 20) t->lens = 9;
    return NB_OK;
}

// --- the whole ---

static inline void town_tables(town *t) {
    static const nb_store_field padded_fields[] = {NB_STORE_FIELD(padded, kind), NB_STORE_FIELD(padded, number)};
    static const nb_column_desc folk[FOLK_COLUMNS] = {
        {.name = "place", .size_bytes = sizeof(uint64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
        {.name = "gold", .size_bytes = sizeof(uint32_t)},
        {.name = "note", .size_bytes = sizeof(padded), .fields = padded_fields, .field_count = 2},
        {.name = "mood", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_LOCAL | NB_COLUMN_INTERPOLATE},
    };
    static const nb_column_desc puffs[] = {
        {.name = "age", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_INTERPOLATE}};
    static const nb_column_desc charts[] = {{.name = "price", .size_bytes = sizeof(uint32_t)}};
    static const nb_column_desc clock[] = {{.name = "now", .size_bytes = sizeof(uint64_t)}};
    const nb_table_desc descs[] = {
        {.name = "folk", .row_count_max = FOLK_MAX, .columns = folk, .column_count = FOLK_COLUMNS},
        {.name = "puffs", .columns = puffs, .column_count = 1, .is_local = true},
        {.name = "charts", .columns = charts, .column_count = 1, .is_local = true, .is_singleton = true},
        {.name = "clock", .columns = clock, .column_count = 1, .is_singleton = true},
    };
    nb_table *const tables[] = {&t->folk, &t->puffs, &t->charts, &t->clock};
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(nb_store_table_add(t->world, &descs[i], tables[i]), NB_OK);
}

static inline void town_fill(town *t) {
    t->world = nb_engine_world(t->r.engine);
    town_tables(t);
    const nb_provider_desc states[] = {
        {.name = "score", .data = &t->score, .size_bytes = sizeof t->score},
        {.name = "hoard", .save = hoard_save, .load = hoard_load, .user = t},
        {.name = "camera", .data = &t->camera, .size_bytes = sizeof t->camera, .flags = NB_PROVIDER_LOCAL},
        {.name = "lens", .data = &t->lens, .size_bytes = sizeof t->lens, .flags = NB_PROVIDER_LOCAL},
    };
    for (uint32_t i = 0; i < 4; ++i)
        assert_int_equal(nb_states_add(nb_engine_states(t->r.engine), &states[i], NULL), NB_OK);
    nb_module_desc module = {.name = "town", .tick = town_tick, .frame = town_frame, .user = t};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = town_reconcile;
    attach(&t->r, module);
}

static inline nb_engine_desc town_desc(uint32_t workers, uint32_t depth) {
    nb_engine_desc desc = rig_desc(workers);
    desc.hashes_ticks = desc.keeps_history = true;
    desc.history = (nb_history_desc){.bytes_max = (size_t)4 << 20, .tick_count_max = 128, .command_count_max = 4};
    desc.synctest_depth = depth;
    return desc;
}

static inline void town_open(town *t, uint32_t workers, uint32_t depth, sin kind) {
    memset(t, 0, sizeof *t);
    t->sin = kind;
    t->sin_from = 100;
    rig_open_desc(&t->r, town_desc(workers, depth));
    town_fill(t);
}

static inline nb_synctest_report town_report(const town *t) {
    nb_synctest_report report;
    assert_int_equal(nb_engine_synctest_get(t->r.engine, &report), NB_OK);
    return report;
}

// Of all that a run leaves, simulated or not: also the values to interpolate from, and which references are true.
static inline uint64_t town_hash(const town *t) {
    uint32_t count = nb_store_row_count(t->world, t->folk), puffs = nb_store_row_count(t->world, t->puffs);
    nb_store_stats stats = nb_store_stats_get(t->world);
    uint64_t hash = rig_stats(&t->r).run_hash + stats.spawn_count * 3 + stats.despawn_count * 5 + stats.stale_count;
    hash = nb_hash64(NB_STORE_ROWS(t->world, t->folk, MOOD, uint32_t), count * sizeof(uint32_t), hash);
    hash = nb_hash64(NB_STORE_ROWS_PREVIOUS(t->world, t->folk, MOOD, uint32_t), count * sizeof(uint32_t), hash);
    hash = nb_hash64(NB_STORE_ROWS_PREVIOUS(t->world, t->folk, PLACE, uint64_t), count * sizeof(uint64_t), hash);
    hash = nb_hash64(NB_STORE_ROWS(t->world, t->puffs, AGE, uint32_t), puffs * sizeof(uint32_t), hash);
    hash = nb_hash64(NB_STORE_ROWS_PREVIOUS(t->world, t->puffs, AGE, uint32_t), puffs * sizeof(uint32_t), hash);
    for (uint32_t row = 0; row < puffs; ++row) {
        nb_entity puff = nb_store_entity(t->world, t->puffs, row);
        hash = nb_hash64(&puff, sizeof puff, hash);
    }
    for (uint32_t i = 0; i < REF_COUNT; ++i) {
        uint32_t row = UINT32_MAX;
        if (i < t->ref_count) nb_store_resolve(t->world, t->refs[i], &row);
        hash = nb_hash64(&row, sizeof row, hash);
    }
    uint32_t price = *NB_STORE_SINGLETON(t->world, t->charts, PRICE, uint32_t);
    return nb_hash64(&t->camera, sizeof t->camera, hash + price);
}

static inline void town_close(town *t) {
    assert_true(nb_store_is_valid(t->world));
    rig_close(&t->r);
}

// The same game without synctest.
static inline uint64_t town_plain_hash(uint64_t tick_count, sin kind) {
    static town t;
    town_open(&t, 0, 0, kind);
    run_ticks(&t.r, tick_count);
    uint64_t hash = town_hash(&t);
    town_close(&t);
    return hash;
}
