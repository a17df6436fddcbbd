// SPDX-License-Identifier: MIT
#include "game.h"

#include "nebula/random.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// Rows of one range of a parallel loop, and so of one stage.
#define RANGE_ROWS 32u
#define WATCH_JOB_COUNT 3u
#define SPARK_MAX 64u
#define SEASON_TICKS 500u

enum { PLACE, SPEED, PUSH, TARGET, TAG, GLOW, BODY_COLUMN_COUNT };
enum { WIND, WEATHER_COLUMN_COUNT };
enum { AGE, SPARK_COLUMN_COUNT };
enum { STREAM_BODIES = 1, STREAM_SPAWN, STREAM_TREE };

typedef struct vec {
    float x, y, z;
} vec;

// With padding between its fields.
typedef struct tag {
    uint8_t kind;
    uint32_t life;
    uint16_t jumps;
} tag;

typedef struct wind {
    vec force;
    uint32_t storm_count;
} wind;

static const nb_store_field tag_fields[] = {NB_STORE_FIELD(tag, kind), NB_STORE_FIELD(tag, life),
                                            NB_STORE_FIELD(tag, jumps)};
static const nb_column_desc body_columns[BODY_COLUMN_COUNT] = {
    {"place", sizeof(vec), NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE, NULL, 0},
    {"speed", sizeof(vec), NB_COLUMN_DEFAULT, NULL, 0},
    {"push", sizeof(vec), NB_COLUMN_DEFAULT, NULL, 0},
    {"target", sizeof(nb_entity), NB_COLUMN_DEFAULT, NULL, 0},
    {"tag", sizeof(tag), NB_COLUMN_SNAPSHOT, tag_fields, 3},
    {"glow", sizeof(float), NB_COLUMN_LOCAL, NULL, 0},
};
static const nb_column_desc weather_columns[WEATHER_COLUMN_COUNT] = {
    {"wind", sizeof(wind), NB_COLUMN_DEFAULT, NULL, 0}};
static const nb_column_desc spark_columns[SPARK_COLUMN_COUNT] = {
    {"age", sizeof(uint32_t), NB_COLUMN_SNAPSHOT, NULL, 0}};

static vec vec_add(vec a, vec b) { return (vec){a.x + b.x, a.y + b.y, a.z + b.z}; }
static vec vec_sub(vec a, vec b) { return (vec){a.x - b.x, a.y - b.y, a.z - b.z}; }
static vec vec_scale(vec a, float by) { return (vec){a.x * by, a.y * by, a.z * by}; }
// Three products and two sums: where a compiler fuses them, the last bits differ.
static float vec_dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static vec vec_random(nb_random random, uint32_t index, float size) {
    nb_random_block block = nb_random_words(random, index);
    float unit = size / 8388608.0f;
    return (vec){(float)(int32_t)(block.words[0] >> 8) * unit - size,
                 (float)(int32_t)(block.words[1] >> 8) * unit - size,
                 (float)(int32_t)(block.words[2] >> 8) * unit - size};
}

static nb_random random_of(const nb_context *context, uint32_t stream) {
    return nb_random_make(context->seed, context->tick->index, stream);
}

static void note(game *g, uint32_t value) {
    if (g->note_count == GAME_NOTE_MAX) {
        g->note_count /= 3; // so that it shrinks, too
        memmove(g->notes, g->notes + GAME_NOTE_MAX - g->note_count, g->note_count * sizeof *g->notes);
    }
    g->notes[g->note_count++] = value;
}

// --- input: what happens depends on the order of events ---

static void spawn(game *g, nb_store_stage *stage, vec place, vec speed, uint32_t life, nb_entity target) {
    nb_staged staged;
    if (nb_store_stage_spawn(stage, g->bodies, &staged) != NB_OK) return;
    *NB_STORE_STAGED_WRITE(stage, staged, PLACE, vec) = place;
    *NB_STORE_STAGED_WRITE(stage, staged, SPEED, vec) = speed;
    *NB_STORE_STAGED_WRITE(stage, staged, TARGET, nb_entity) = target;
    tag *t = NB_STORE_STAGED_WRITE(stage, staged, TAG, tag);
    t->kind = (uint8_t)(life % 5), t->life = life;
}

static void take_event(game *g, const nb_input_event *event) {
    g->score.event_sum = g->score.event_sum * 31 + event->code + ((uint64_t)event->kind << 20);
    if (event->kind != NB_INPUT_MOTION) return;
    wind *w = NB_STORE_SINGLETON_WRITE(g->world, g->weather, WIND, wind);
    w->force.x = (w->force.x + event->payload.f32[0]) * 0.75f;
    w->force.z = (w->force.z - event->payload.f32[1]) / 1.25f;
    ++w->storm_count;
}

static void take_command(game *g, const nb_context *context, const nb_input_event *command) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    uint32_t count = nb_store_row_count(g->world, g->bodies);
    uint32_t row = count != 0 ? command->code % count : 0;
    nb_entity chosen = nb_store_entity(g->world, g->bodies, row);
    vec place = {command->payload.f32[0], command->payload.f32[1], command->payload.f32[2]};
    g->score.command_sum = g->score.command_sum * 131 + command->code;
    note(g, command->code);
    if (count == 0 || command->code % 4 != 0) {
        for (uint32_t i = 0; i <= command->code % 3; ++i)
            spawn(g, stage, vec_scale(place, 1.0f + (float)i), place, 40 + command->code % 90, chosen);
    } else {
        nb_store_stage_despawn(stage, chosen);
        nb_store_stage_despawn(stage, chosen); // finds it gone
    }
}

static nb_result input_tick(const nb_context *context, void *user) {
    game *g = user;
    if (context->commands.count != 0 && nb_context_stage(context, 0) == NULL) return NB_ERR_MEMORY;
    nb_buttons_apply(&g->buttons, &context->input);
    for (uint32_t i = 0; i < context->input.count; ++i) take_event(g, &context->input.events[i]);
    for (uint32_t i = 0; i < context->commands.count; ++i) take_command(g, context, &context->commands.events[i]);
    note(g, (uint32_t)context->tick->index ^ (uint32_t)g->score.event_sum);
    return NB_OK;
}

// --- bodies ---

typedef struct body_work {
    game *g;
    const nb_context *context;
    nb_store_stage *stages[GAME_BODY_MAX / RANGE_ROWS];
} body_work;

// Reads places alone, writes pushes alone.
static void push_range(nb_task_context *task, void *user, uint64_t begin, uint64_t end) {
    (void)task;
    const body_work *work = user;
    game *g = work->g;
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    const vec *place = NB_STORE_ROWS(g->world, g->bodies, PLACE, vec);
    const nb_entity *target = NB_STORE_ROWS(g->world, g->bodies, TARGET, nb_entity);
    vec *push = NB_STORE_RANGE_WRITE(g->world, g->bodies, PUSH, vec, first, count);
    float *glow = NB_STORE_RANGE_WRITE(g->world, g->bodies, GLOW, float, first, count);
    vec force = NB_STORE_SINGLETON(g->world, g->weather, WIND, wind)->force;
    for (uint32_t row = first; row < first + count; ++row) {
        uint32_t other = 0;
        bool has_target = nb_store_find(g->world, target[row], &other) == NB_OK;
        vec way = vec_sub(has_target ? place[other] : (vec){0, 0, 0}, place[row]);
        float length = sqrtf(vec_dot(way, way) + 1.0f);
        push[row] = vec_add(vec_scale(way, 3.0f / length), vec_scale(force, 0.125f));
        glow[row] = glow[row] * 0.5f + length; // local: never read by a tick
    }
}

// What becomes of a body after it has moved, by its own random numbers.
static void live(body_work *work, nb_store_stage *stage, uint32_t row, vec *place, vec speed, tag *t) {
    game *g = work->g;
    nb_entity self = nb_store_entity(g->world, g->bodies, row);
    nb_random_block draw = nb_random_words(random_of(work->context, STREAM_BODIES), row);
    nb_random spawns = random_of(work->context, STREAM_SPAWN);
    t->life = t->life != 0 ? t->life - 1 : 0;
    if (draw.words[0] % 97 == 0) {
        *place = vec_random(spawns, row, 50.0f);
        ++t->jumps;
        nb_store_teleport(g->world, self);
    }
    if (t->life == 0) nb_store_stage_despawn(stage, self);
    // In summer more come than there is room for, in winter many places are empty.
    uint32_t rarity = work->context->tick->index / SEASON_TICKS % 2 == 0 ? 61 : 509;
    if (draw.words[1] % rarity == 0) {
        spawn(g, stage, vec_add(*place, vec_random(spawns, row + GAME_BODY_MAX, 2.0f)), vec_scale(speed, -0.5f),
              20 + draw.words[2] % 150, self);
    }
    if (draw.words[3] % 211 == 0) nb_store_stage_spawn(stage, g->sparks, NULL);
}

static void move_range(nb_task_context *task, void *user, uint64_t begin, uint64_t end) {
    (void)task;
    body_work *work = user;
    game *g = work->g;
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    float dt = (float)work->context->tick->dt_s;
    const vec *push = NB_STORE_ROWS(g->world, g->bodies, PUSH, vec);
    vec *place = NB_STORE_RANGE_WRITE(g->world, g->bodies, PLACE, vec, first, count);
    vec *speed = NB_STORE_RANGE_WRITE(g->world, g->bodies, SPEED, vec, first, count);
    tag *tags = NB_STORE_RANGE_WRITE(g->world, g->bodies, TAG, tag, first, count);
    for (uint32_t row = first; row < first + count; ++row) {
        speed[row] = vec_scale(vec_add(speed[row], vec_scale(push[row], dt)), 0.995f);
        place[row] = vec_add(place[row], vec_scale(speed[row], dt));
        live(work, work->stages[begin / RANGE_ROWS], row, &place[row], speed[row], &tags[row]);
    }
}

static nb_result bodies_tick(const nb_context *context, void *user) {
    game *g = user;
    body_work work = {.g = g, .context = context};
    uint32_t count = nb_store_row_count(g->world, g->bodies);
    for (uint32_t i = 0; i * RANGE_ROWS < count; ++i) {
        work.stages[i] = nb_context_stage(context, i);
        if (work.stages[i] == NULL) return NB_ERR_MEMORY;
    }
    nb_parallel_desc loop = {.run = push_range, .user = &work, .count = count, .grain = RANGE_ROWS};
    nb_result result = nb_parallel_for(context->scheduler, &loop, NULL);
    loop.run = move_range;
    if (result == NB_OK) result = nb_parallel_for(context->scheduler, &loop, NULL);
    return result == NB_OK ? NB_OK : NB_ERR_OS;
}

// --- census: sums in the order of rows, and a tree of tasks that wait for each other ---

typedef struct census {
    double energy;
    float reach, pad;
    uint64_t mix;
} census;

static void census_range(nb_task_context *task, void *user, uint64_t begin, uint64_t end, void *value) {
    (void)task;
    const game *g = user;
    census *sum = value;
    const vec *place = NB_STORE_ROWS(g->world, g->bodies, PLACE, vec);
    const vec *speed = NB_STORE_ROWS(g->world, g->bodies, SPEED, vec);
    const tag *tags = NB_STORE_ROWS(g->world, g->bodies, TAG, tag);
    for (uint64_t row = begin; row < end; ++row) {
        sum->energy += (double)vec_dot(speed[row], speed[row]) * 0.5 / (double)(1 + tags[row].kind);
        sum->reach += sqrtf(vec_dot(place[row], place[row]));
        sum->mix = sum->mix * 31 + tags[row].life;
    }
}

// Sums of floats, and a mix that is another in another order.
static void census_merge(void *user, void *value, const void *later) {
    (void)user;
    census *sum = value;
    const census *more = later;
    sum->energy += more->energy;
    sum->reach += more->reach;
    sum->mix = sum->mix * 1000003 + more->mix;
}

typedef struct tree_job {
    uint64_t *tree;
    uint64_t index;
    nb_random random;
} tree_job;

// Leaves are the last places; each other one is made of the two below it, one of them alone for place 1.
static void tree_run(nb_task_context *task, void *argument) {
    (void)task;
    const tree_job *job = argument;
    uint64_t below = job->index * 2;
    uint64_t draw = nb_random_u64(job->random, (uint32_t)job->index);
    if (below < 2 * GAME_LEAF_COUNT) draw ^= job->tree[below] * 31 + job->tree[below + 1];
    job->tree[job->index] = draw;
}

static nb_result tree_tick(game *g, const nb_context *context) {
    nb_group group;
    nb_task tasks[2 * GAME_LEAF_COUNT] = {{0}};
    nb_result result = nb_group_begin(context->scheduler, &group);
    if (result != NB_OK) return NB_ERR_MEMORY;
    for (uint64_t i = 2 * GAME_LEAF_COUNT - 1; i > 0 && result == NB_OK; --i) {
        tree_job job = {g->tree, i, random_of(context, STREAM_TREE)};
        bool is_leaf = i >= GAME_LEAF_COUNT;
        nb_task_desc desc = {.run = tree_run,
                             .argument = &job,
                             .argument_size_bytes = sizeof job,
                             .priority = i % 2 == 0 ? NB_PRIORITY_HIGH : NB_PRIORITY_NORMAL,
                             .group = group,
                             .dependencies = is_leaf ? NULL : &tasks[2 * i],
                             .dependency_count = is_leaf ? 0 : 2};
        result = nb_task_submit(context->scheduler, &desc, &tasks[i]);
    }
    nb_result ended = nb_group_end(context->scheduler, group, NB_NEVER_NS);
    g->score.tree = g->score.tree * 31 + g->tree[1];
    return result == NB_OK && ended == NB_OK ? NB_OK : NB_ERR_OS;
}

static nb_result census_tick(const nb_context *context, void *user) {
    game *g = user;
    census zero = {0}, sum = {0};
    nb_reduce_desc desc = {.run = census_range,
                           .merge = census_merge,
                           .user = g,
                           .count = nb_store_row_count(g->world, g->bodies),
                           .initial = &zero,
                           .value_size_bytes = sizeof zero};
    if (nb_parallel_reduce(context->scheduler, &desc, &sum) != NB_OK) return NB_ERR_OS;
    g->score.energy = g->score.energy * 0.5 + sum.energy;
    g->score.reach = sum.reach;
    g->score.census = g->score.census * 31 + sum.mix;
    // Local rows go again; their stage is this handler's.
    nb_store_stage *stage = nb_context_stage(context, 0);
    if (stage == NULL) return NB_ERR_MEMORY;
    if (nb_store_row_count(g->world, g->sparks) > SPARK_MAX / 2)
        nb_store_stage_despawn(stage, nb_store_entity(g->world, g->sparks, 0));
    return tree_tick(g, context);
}

// --- frames: they look, at any rate, and leave no trace ---

static nb_result watch_job(const nb_context *context, void *user) {
    const game *g = user;
    const vec *place = NB_STORE_VIEW(context->snapshot, g->world, g->bodies, PLACE, vec);
    uint32_t count = nb_store_view_row_count(context->snapshot, g->world, g->bodies);
    uint64_t *out = nb_output_add(context, sizeof *out);
    if (out == NULL) return NB_ERR_MEMORY;
    for (uint32_t row = context->job_index; place != NULL && row < count; row += context->job_count)
        *out += place[row].x > 0;
    return NB_OK;
}

static nb_result watch_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context;
    const uint64_t *seen = nb_output_list_next(outputs, NULL, NULL);
    ((game *)user)->seen += seen != NULL ? *seen : 0;
    return NB_OK;
}

static nb_result watch_frame(const nb_context *context, void *user) {
    game *g = user;
    uint32_t *age = NB_STORE_ROWS_WRITE(g->world, g->sparks, AGE, uint32_t);
    NB_STORE_EACH_ROW(row, g->world, g->sparks) age[row] += (uint32_t)context->frame_index;
    if (context->frame_index % 16 == 0) {
        nb_store_stage *stage = nb_context_stage(context, 0);
        if (stage == NULL) return NB_ERR_MEMORY;
        nb_store_stage_spawn(stage, g->sparks, NULL);
    }
    return NB_OK;
}

// --- the list, behind callbacks ---

static size_t notes_save(void *user, void *bytes, size_t capacity_bytes) {
    const game *g = user;
    size_t size_bytes = g->note_count * sizeof *g->notes;
    if (bytes != NULL && size_bytes <= capacity_bytes) memcpy(bytes, g->notes, size_bytes);
    return size_bytes;
}

static nb_result notes_load(void *user, const void *bytes, size_t size_bytes) {
    game *g = user;
    if (size_bytes > sizeof g->notes || size_bytes % sizeof *g->notes != 0) return NB_ERR_RANGE;
    memcpy(g->notes, bytes, size_bytes);
    g->note_count = (uint32_t)(size_bytes / sizeof *g->notes);
    return NB_OK;
}

// --- the whole ---

static bool open_states(game *g) {
    nb_table_desc bodies = {
        .name = "bodies", .row_count_max = GAME_BODY_MAX, .columns = body_columns, .column_count = BODY_COLUMN_COUNT};
    nb_table_desc weather = {.name = "weather",
                             .row_count_max = 1,
                             .columns = weather_columns,
                             .column_count = WEATHER_COLUMN_COUNT,
                             .is_singleton = true};
    nb_table_desc sparks = {.name = "sparks",
                            .row_count_max = SPARK_MAX,
                            .columns = spark_columns,
                            .column_count = SPARK_COLUMN_COUNT,
                            .is_local = true};
    nb_provider_desc score = {.name = "score", .data = &g->score, .size_bytes = sizeof g->score};
    nb_provider_desc buttons = {.name = "buttons", .data = &g->buttons, .size_bytes = sizeof g->buttons};
    nb_provider_desc notes = {.name = "notes", .save = notes_save, .load = notes_load, .user = g};
    nb_provider_desc seen = {
        .name = "seen", .data = &g->seen, .size_bytes = sizeof g->seen, .flags = NB_PROVIDER_LOCAL};
    nb_states *states = nb_engine_states(g->engine);
    g->world = nb_engine_world(g->engine);
    return g->world != NULL && nb_store_table_add(g->world, &bodies, &g->bodies) == NB_OK &&
           nb_store_table_add(g->world, &weather, &g->weather) == NB_OK &&
           nb_store_table_add(g->world, &sparks, &g->sparks) == NB_OK && nb_states_add(states, &score, NULL) == NB_OK &&
           nb_states_add(states, &buttons, NULL) == NB_OK && nb_states_add(states, &notes, NULL) == NB_OK &&
           nb_states_add(states, &seen, NULL) == NB_OK;
}

bool game_open(game *g, nb_engine *engine) {
    static const char *const after_input[] = {"input"}, *const after_bodies[] = {"bodies"};
    memset(g, 0, sizeof *g);
    g->engine = engine;
    // Attached against their order.
    nb_module_desc modules[] = {
        {.name = "census", .after = after_bodies, .after_count = 1, .tick = census_tick, .user = g},
        {.name = "bodies", .after = after_input, .after_count = 1, .tick = bodies_tick, .user = g},
        {.name = "input", .tick = input_tick, .user = g},
        {.name = "watch",
         .frame = watch_frame,
         .parallel = watch_job,
         .merge = watch_merge,
         .job_count = WATCH_JOB_COUNT,
         .user = g},
    };
    bool is_open = open_states(g);
    for (uint32_t i = 0; is_open && i < sizeof modules / sizeof modules[0]; ++i)
        is_open = nb_engine_module_attach(engine, &modules[i], NULL) == NB_OK;
    return is_open;
}
