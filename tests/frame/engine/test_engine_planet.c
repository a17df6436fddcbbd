// SPDX-License-Identifier: MIT
// A small planet in a world: herds that move, are born and die in tasks of ticks, driven by timed input and random
// numbers; jobs, local dust and stalls beside it. The same state after every tick, for any number of workers and any
// frame rate.

#include "frame/engine/engine_fixture.h"
#include "support/async_job.h"

#include "nebula/random.h"

#define HERD_MAX 400u
#define PART_COUNT 4u
#define JOB_COUNT 3u

enum { PLACE, ENERGY, HERD_COLUMNS };
enum { STREAM_MOVE = 1, STREAM_BIRTH };

typedef struct place {
    int32_t x, y;
} place;

static const nb_column_desc herd_columns[HERD_COLUMNS] = {
    {.name = "place", .size_bytes = sizeof(place), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE},
    {.name = "energy", .size_bytes = sizeof(uint32_t), .flags = NB_COLUMN_SNAPSHOT}};
static const nb_column_desc weather_columns[] = {{.name = "wind", .size_bytes = sizeof(place)}};
static const nb_column_desc dust_columns[] = {{.name = "age", .size_bytes = sizeof(uint32_t)}};

typedef struct planet {
    nb_store *world;
    nb_table herd, weather, dust;
    nb_store_stage *stages[PART_COUNT];
    uint64_t tick_index, seed;
    uint64_t seen;                          // local: what jobs saw
    uint64_t era;                           // local: what surveys of an older one are not wanted for
    uint64_t surveys, published, discarded; // local: jobs of many frames
    uint64_t mistakes;
    bool has_stalls;
} planet;

static void stall(const planet *p, uint64_t number) {
    if (!p->has_stalls || number % 31 != 0) return;
    for (int i = 0; i < 20; ++i) nbi_thread_yield();
}

// Rows of one part, on any thread: moves them, and stages who comes and goes.
static void move_part(planet *p, uint32_t part) {
    uint32_t count = nb_store_row_count(p->world, p->herd);
    uint32_t first = count * part / PART_COUNT, end = count * (part + 1) / PART_COUNT;
    const place *wind = NB_STORE_SINGLETON(p->world, p->weather, 0, place);
    place *places = NB_STORE_RANGE_WRITE(p->world, p->herd, PLACE, place, first, end - first);
    uint32_t *energy = NB_STORE_RANGE_WRITE(p->world, p->herd, ENERGY, uint32_t, first, end - first);
    nb_random move = nb_random_make(p->seed, p->tick_index, STREAM_MOVE);
    nb_random birth = nb_random_make(p->seed, p->tick_index, STREAM_BIRTH);
    for (uint32_t row = first; row < end; ++row) {
        nb_entity entity = nb_store_entity(p->world, p->herd, row);
        uint32_t step = nb_random_u32(move, row);
        places[row].x += (int32_t)(step % 7) - 3 + wind->x;
        places[row].y += (int32_t)(step / 7 % 7) - 3 + wind->y;
        energy[row] += step % 5 == 0 ? 3 : 0;
        if (step % 97 == 0) nb_store_teleport(p->world, entity);
        if (energy[row] > 0) energy[row] -= 1;
        uint32_t chance = nb_random_u32(birth, row) % 64;
        if (energy[row] == 0 && chance < 8) nb_store_stage_despawn(p->stages[part], entity);
        if (chance >= 60) {
            nb_staged child;
            if (nb_store_stage_spawn(p->stages[part], p->herd, &child) != NB_OK) continue;
            *NB_STORE_STAGED_WRITE(p->stages[part], child, PLACE, place) = (place){places[row].y, places[row].x};
            *NB_STORE_STAGED_WRITE(p->stages[part], child, ENERGY, uint32_t) = 1 + chance % 3;
        }
    }
    stall(p, p->tick_index + part);
}

static void move_parts(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    for (uint64_t part = begin; part < end; ++part) move_part(user, (uint32_t)part);
}

static nb_result tick(const nb_context *context, void *user) {
    planet *p = user;
    p->tick_index = context->tick->index;
    p->seed = context->seed;
    place *wind = NB_STORE_SINGLETON_WRITE(p->world, p->weather, 0, place);
    for (uint32_t i = 0; i < context->input.count; ++i) {
        wind->x = context->input.events[i].payload.i32[0];
        wind->y = -wind->y + (int32_t)context->input.events[i].code;
    }
    for (uint32_t i = 0; i < PART_COUNT; ++i) p->stages[i] = nb_context_stage(context, i);
    nb_parallel_desc parts = {.run = move_parts, .user = p, .count = PART_COUNT, .grain = 1};
    if (nb_parallel_for(context->scheduler, &parts, NULL) != NB_OK) return NB_ERR_OS;
    return p->stages[PART_COUNT - 1] != NULL ? NB_OK : NB_ERR_MEMORY;
}

// --- surveys: jobs of many frames, whose results are dust ---

typedef struct survey {
    planet *planet;
    uint64_t number, sum;
    uint32_t round;
} survey;

static nb_async_status look_around(nb_async_call *call, void *state) {
    survey *s = state;
    NB_ASYNC_BEGIN(call);
    for (s->round = 0; s->round < 3; ++s->round) {
        s->sum = s->sum * 31 + s->number;
        stall(s->planet, s->number + s->round);
        if (s->number % 2 == 0) NB_ASYNC_FRAME(call);
        NB_ASYNC_YIELD(call);
    }
    NB_ASYNC_END(call);
}

static nb_result commit_survey(void *host, void *state) {
    (void)host;
    return ((survey *)state)->sum % 13 == 5 ? NB_ERR_RANGE : NB_OK;
}

static void publish_survey(void *host, void *state) {
    const nb_context *context = host;
    planet *p = ((survey *)state)->planet;
    nb_entity entity;
    ++p->published;
    if (nb_store_row_count(p->world, p->dust) > 100)
        p->mistakes += nb_store_despawn(p->world, nb_store_entity(p->world, p->dust, 50)) != NB_OK;
    p->mistakes += context->phase != NB_PHASE_FRAME_START || nb_store_spawn(p->world, p->dust, &entity) != NB_OK;
}

static void discard_survey(void *host, void *state, nb_result reason) {
    (void)host, (void)reason;
    ++((survey *)state)->planet->discarded;
}

static bool is_of_this_era(void *user, uint64_t generation, const void *state) {
    (void)state;
    return ((const planet *)user)->era == generation;
}

static nb_result start_survey(const nb_context *context, planet *p) {
    survey state = {.planet = p, .number = p->surveys};
    nb_async_job_desc desc =
        async_job_of(look_around, commit_survey, publish_survey, discard_survey, &state, sizeof state);
    desc.is_wanted = is_of_this_era, desc.user = p, desc.generation = p->era;
    desc.budget_class = (nb_async_class)(p->surveys % NB_ASYNC_CLASS_COUNT);
    nb_async_job job;
    nb_result result = nb_async_submit(nb_engine_async(context->engine), &desc, &job);
    if (result != NB_OK) return result == NB_FULL ? NB_OK : result;
    if (++p->surveys % 5 == 0) nb_async_cancel(nb_engine_async(context->engine), job);
    return NB_OK;
}

// Once a frame: dust that nobody else has.
static nb_result sprinkle(const nb_context *context, void *user) {
    planet *p = user;
    if (context->frame_index % 40 == 39) ++p->era;
    nb_result result = start_survey(context, p);
    if (result != NB_OK) return result;
    nb_store_stage *stage = nb_context_stage(context, 0);
    if (nb_store_row_count(p->world, p->dust) > 20)
        nb_store_stage_despawn(stage, nb_store_entity(p->world, p->dust, (uint32_t)(context->frame_index % 20)));
    return nb_store_stage_spawn(stage, p->dust, NULL) == NB_OK ? NB_OK : NB_ERR_MEMORY;
}

// A job: adds up what the snapshot shows.
static nb_result watch(const nb_context *context, void *user) {
    const planet *p = user;
    uint64_t *sum = nb_output_add(context, sizeof *sum);
    uint32_t count = nb_store_view_row_count(context->snapshot, context->world, p->herd);
    if (sum == NULL) return NB_ERR_MEMORY;
    if (count == 0) return NB_OK;
    const place *places = NB_STORE_VIEW(context->snapshot, context->world, p->herd, PLACE, place);
    const uint32_t *energy = NB_STORE_VIEW(context->snapshot, context->world, p->herd, ENERGY, uint32_t);
    for (uint32_t row = context->job_index; row < count; row += context->job_count)
        *sum = *sum * 31 + (uint32_t)places[row].x + energy[row];
    stall(p, context->frame_index + context->job_index);
    return NB_OK;
}

static nb_result add_up(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context;
    return mix_first(&((planet *)user)->seen, outputs);
}

static void populate(planet *p) {
    nb_table_desc herd = {.name = "herd", .row_count_max = HERD_MAX, .columns = herd_columns, .column_count = 2};
    nb_table_desc weather = {.name = "weather", .columns = weather_columns, .column_count = 1, .is_singleton = true};
    nb_table_desc dust = {.name = "dust", .columns = dust_columns, .column_count = 1, .is_local = true};
    assert_int_equal(nb_store_table_add(p->world, &herd, &p->herd), NB_OK);
    assert_int_equal(nb_store_table_add(p->world, &weather, &p->weather), NB_OK);
    assert_int_equal(nb_store_table_add(p->world, &dust, &p->dust), NB_OK);
    for (uint32_t i = 0; i < 200; ++i) {
        nb_entity entity;
        assert_int_equal(nb_store_spawn(p->world, p->herd, &entity), NB_OK);
        *NB_STORE_ROW_WRITE(p->world, p->herd, ENERGY, uint32_t, i) = i % 9;
    }
}

// Sends what happens from one moment to another: an event each 70 ms.
static void send_until(nb_input *input, uint64_t from_ns, uint64_t to_ns) {
    static const uint64_t each_ns = 70000000;
    for (uint64_t at = (from_ns + each_ns - 1) / each_ns * each_ns; at < to_ns; at += each_ns) {
        nb_input_event event = {.timestamp_ns = at, .kind = NB_INPUT_MOTION, .code = (uint32_t)(at / each_ns % 3)};
        event.payload.i32[0] = (int32_t)(at / each_ns % 5) - 2;
        assert_int_equal(nb_input_send(input, &event), NB_OK);
    }
}

typedef struct outcome {
    uint64_t run_hash, seen;
    uint64_t spawn_count, despawn_count;
} outcome;

static outcome run(uint32_t workers, uint64_t rate, bool has_stalls, uint64_t tick_count) {
    static planet p;
    p = (planet){.has_stalls = has_stalls};
    rig r;
    nb_engine_desc desc = rig_desc(workers);
    desc.hashes_ticks = true;
    desc.seed = 77;
    desc.async.job_count_max = 64;
    rig_open_desc(&r, desc);
    p.world = nb_engine_world(r.engine);
    populate(&p);
    nb_input *input = nb_engine_input(r.engine);
    assert_non_null(nb_engine_async(r.engine));
    attach(&r, (nb_module_desc){.name = "planet",
                                .tick = tick,
                                .frame = sprinkle,
                                .parallel = watch,
                                .merge = add_up,
                                .job_count = JOB_COUNT,
                                .user = &p});
    uint64_t now_ns = 0, heap_calls = 0;
    for (uint64_t frame = 1; rig_stats(&r).tick_count < tick_count; ++frame) {
        uint64_t next_ns = frame * 1000000000 / rate;
        send_until(input, now_ns, next_ns);
        assert_int_equal(nb_engine_frame_delta(r.engine, next_ns - now_ns), NB_OK);
        now_ns = next_ns;
        if (frame == 20) heap_calls = r.heap.call_count.value;
    }
    assert_int_equal(r.heap.call_count.value, heap_calls); // none once it is warm
    assert_int_equal(rig_stats(&r).tick_count, tick_count);
    assert_int_equal(rig_stats(&r).violation_count, 0);
    assert_true(nb_store_is_valid(p.world));
    nb_store_stats world = nb_store_stats_get(p.world);
    outcome out = {rig_stats(&r).run_hash, p.seen, world.spawn_count, world.despawn_count};
    // On a busy machine the workers may not have had a turn yet. No tick runs in these frames.
    for (uint32_t i = 0; i < 1000000 && tick_count >= 1000 && p.published == 0; ++i) {
        assert_int_equal(nb_engine_frame_delta(r.engine, 0), NB_OK);
        nbi_thread_yield();
    }
    assert_true(tick_count < 1000 || p.published > 0);
    rig_close(&r);
    assert_int_equal(p.published + p.discarded, p.surveys);
    assert_int_equal(p.mistakes, 0);
    return out;
}

static void compare(const outcome *expected, uint32_t workers, uint64_t rate, bool has_stalls, uint64_t tick_count) {
    outcome other = run(workers, rate, has_stalls, tick_count);
    assert_true(other.run_hash == expected->run_hash);
    // What jobs have seen depends on the frames, and on nothing else.
    if (rate == 60) assert_true(other.seen == expected->seen);
}

static const uint32_t worker_counts[] = {0, 1, 2, 4, 8, 16};
static const uint64_t rates[] = {24, 60, 144};
#define WORKER_COUNTS (sizeof worker_counts / sizeof worker_counts[0])
#define RATES (sizeof rates / sizeof rates[0])

TEST(planet_is_the_same_for_any_workers_and_frame_rate) {
    uint64_t tick_count = test_size(120, 3000, 100020); // whole seconds
    outcome expected = run(0, 60, false, tick_count);
    assert_true(expected.spawn_count > tick_count / 10 && expected.despawn_count > tick_count / 10);
    for (size_t i = 0; i < WORKER_COUNTS; ++i) {
        for (size_t j = 0; j < RATES; ++j) {
            compare(&expected, worker_counts[i], rates[j], (i + j) % 2 == 1, tick_count);
        }
    }
}

// Each rate, and as many workers as a small machine runs at a time; more of them wait for each other at every tick, and
// are left to the full size above.
TEST(planet_is_the_same_after_a_hundred_thousand_ticks) {
    uint64_t tick_count = test_size(600, 100020, 100020);
    outcome expected = run(0, 60, false, tick_count);
    for (size_t i = 0; i < 3; ++i) compare(&expected, worker_counts[i], rates[i % RATES], i % 2 == 1, tick_count);
}
