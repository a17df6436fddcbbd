// SPDX-License-Identifier: MIT
#pragma once

// A small game for the tests of verifying: ships in a table, a score in a struct, input and commands, tasks in ticks.
// It can be made to go wrong in many ways; what it was recorded with is right.

#include "frame/engine/engine_fixture.h"
#include "record/record_fixture.h"

#include "nebula/verify.h"

#define SHIP_COUNT 20u
#define FAULT_ROW 7u
#define FAULT_TICK 100u

typedef enum fault {
    FAULT_NONE = 0,
    FAULT_CONSTANT, // from FAULT_TICK on a ship is faster
    FAULT_SPEED,    // from FAULT_TICK on a ship's speed is another, which moves it in later ticks
    FAULT_BOTH,     // the same, and a ship more in the tick behind
    FAULT_SCORE,    // from FAULT_TICK on the score is another
    FAULT_ROWS,     // in FAULT_TICK a ship more is spawned
    FAULT_RACE,     // from FAULT_TICK on a ship's speed is when its task ran, by a counter that no state has
    FAULT_ONCE,     // only the first run has another score in FAULT_TICK
    FAULT_PHASE,    // from FAULT_TICK on game_fault.phase changes the score
    FAULT_JOB,      // the same by a parallel job
    FAULT_MERGE,    // the same by the merge of one
    FAULT_START,    // a ship is elsewhere at the beginning
    FAULT_LAYOUT,   // one more state
    FAULT_BEGIN,    // begin fails
    FAULT_ATTACH,   // attach fails
    FAULT_STUCK,    // the game goes back to the same tick again and again
} fault;

// What the game that is made next does wrong; one test at a time.
typedef struct game_faults {
    fault fault;
    nb_phase phase;
    uint32_t run_count;    // games made
    uint32_t live_count;   // of them, not yet ended
    uint32_t worker_count; // of the newest game's engine, as resolved
    nb_atomic_u64 counter; // never goes back
    bool is_full;          // there is no room for a further module
} game_faults;

static game_faults game_fault;

enum { SHIP_X, SHIP_SPEED, SHIP_DRAWN };

typedef struct ship_game {
    nb_store *world;
    nb_table ships;
    struct {
        uint64_t sum, bonus;
    } score;
    uint32_t more;
    uint32_t run;  // its number
    uint64_t tick; // that runs
} ship_game;

static inline bool is_wrong(fault kind, uint64_t tick) { return game_fault.fault == kind && tick >= FAULT_TICK; }

static inline void move_ships(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    ship_game *g = (ship_game *)user;
    uint32_t first = (uint32_t)begin, count = (uint32_t)(end - begin);
    int32_t *x = NB_STORE_RANGE_WRITE(g->world, g->ships, SHIP_X, int32_t, first, count);
    const int32_t *speed = NB_STORE_ROWS(g->world, g->ships, SHIP_SPEED, int32_t);
    for (uint64_t row = begin; row < end; ++row) x[row] += speed[row];
    if (!is_wrong(FAULT_RACE, g->tick)) return;
    int32_t number = 1000 + (int32_t)nbi_atomic_fetch_add_seq_cst_u64(&game_fault.counter, 1);
    bool is_its = begin <= FAULT_ROW && FAULT_ROW < end;
    if (is_its) *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_SPEED, int32_t, FAULT_ROW) = number;
}

static inline void go_wrong(ship_game *g, const nb_context *context) {
    uint64_t tick = context->tick->index;
    if (is_wrong(FAULT_CONSTANT, tick)) *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_X, int32_t, FAULT_ROW) += 1;
    if (is_wrong(FAULT_SPEED, tick) || is_wrong(FAULT_BOTH, tick))
        *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_SPEED, int32_t, FAULT_ROW) += 1;
    bool is_more = is_wrong(FAULT_BOTH, tick) && tick == FAULT_TICK + 1;
    if (is_more) nb_store_stage_spawn(nb_context_stage(context, 0), g->ships, NULL);
    if (is_wrong(FAULT_SCORE, tick)) ++g->score.bonus;
    if (is_wrong(FAULT_ROWS, tick) && tick == FAULT_TICK)
        nb_store_stage_spawn(nb_context_stage(context, 0), g->ships, NULL);
    if (is_wrong(FAULT_ONCE, tick) && tick == FAULT_TICK && g->run == 0) ++g->score.sum;
}

static inline nb_result ship_tick(const nb_context *context, void *user) {
    ship_game *g = (ship_game *)user;
    for (uint32_t i = 0; i < context->input.count; ++i)
        g->score.sum = g->score.sum * 31 + context->input.events[i].code;
    for (uint32_t i = 0; i < context->commands.count; ++i) g->score.sum += context->commands.events[i].code;
    g->tick = context->tick->index;
    nb_parallel_desc rows = {.run = move_ships, .user = g, .count = SHIP_COUNT, .grain = 4};
    nb_result result = nb_parallel_for(context->scheduler, &rows, NULL);
    *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_SPEED, int32_t, (uint32_t)(context->tick->index % SHIP_COUNT)) += 1;
    go_wrong(g, context);
    return result;
}

// Commands come by frames: only the recording can bring them back.
static inline nb_result ship_frame(const nb_context *context, void *user) {
    (void)user;
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)context->frame_index};
    return context->frame_index % 3 == 0 ? nb_context_command(context, &command) : NB_OK;
}

static inline bool is_late_enough(const nb_context *context) {
    return nb_loop_tick_count(nb_engine_loop(context->engine)) >= FAULT_TICK;
}

static inline nb_result write_in_phase(const nb_context *context, void *user) {
    if (is_late_enough(context)) ++((ship_game *)user)->score.bonus;
    return NB_OK;
}

static inline nb_result merge_nothing(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)outputs;
    return game_fault.fault == FAULT_MERGE ? write_in_phase(context, user) : NB_OK;
}

static inline nb_result job(const nb_context *context, void *user) {
    return game_fault.fault == FAULT_JOB ? write_in_phase(context, user) : NB_OK;
}

static inline nb_result go_back(const nb_context *context, void *user) {
    (void)user;
    return nb_loop_set_tick(nb_engine_loop(context->engine), 10);
}

static inline nb_result attach_faults(ship_game *g, nb_engine *engine) {
    nb_module_desc desc = {.name = "fault", .user = g};
    if (game_fault.fault == FAULT_PHASE && game_fault.phase == NB_PHASE_COMMAND_RECORD) {
        desc.record = write_in_phase;
    } else if (game_fault.fault == FAULT_PHASE) {
        desc.handlers[game_fault.phase] = write_in_phase;
    }
    if (game_fault.fault == FAULT_JOB || game_fault.fault == FAULT_MERGE)
        desc.parallel = job, desc.merge = merge_nothing;
    if (game_fault.fault == FAULT_STUCK) desc.handlers[NB_PHASE_FRAME_END] = go_back;
    return nb_engine_module_attach(engine, &desc, NULL);
}

static inline nb_result ship_declare(ship_game *g, nb_engine *engine) {
    static const nb_column_desc columns[] = {{.name = "x", .size_bytes = 4},
                                             {.name = "speed", .size_bytes = 4},
                                             {.name = "drawn", .size_bytes = 4, .flags = NB_COLUMN_LOCAL}};
    nb_table_desc table = {.name = "ships", .row_count_max = 100, .columns = columns, .column_count = 3};
    nb_provider_desc score = {.name = "score", .data = &g->score, .size_bytes = sizeof g->score};
    nb_provider_desc more = {.name = "more", .data = &g->more, .size_bytes = sizeof g->more};
    g->world = nb_engine_world(engine);
    if (g->world == NULL) return NB_ERR_MEMORY;
    nb_result result = nb_store_table_add(g->world, &table, &g->ships);
    if (result == NB_OK) result = nb_states_add(nb_engine_states(engine), &score, NULL);
    if (result == NB_OK && game_fault.fault == FAULT_LAYOUT)
        result = nb_states_add(nb_engine_states(engine), &more, NULL);
    return result;
}

static inline nb_result ship_attach(void *user, nb_engine *engine) {
    ship_game *g = (ship_game *)user;
    game_fault.worker_count = nb_engine_desc_get(engine)->scheduler_desc.worker_count;
    if (game_fault.fault == FAULT_ATTACH) return NB_ERR_OS;
    nb_result result = ship_declare(g, engine);
    for (uint32_t i = 0; result == NB_OK && i < SHIP_COUNT; ++i) {
        nb_entity entity;
        result = nb_store_spawn(g->world, g->ships, &entity);
        if (result == NB_OK) *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_SPEED, int32_t, i) = (int32_t)i;
    }
    if (result == NB_OK && game_fault.fault == FAULT_START)
        *NB_STORE_ROW_WRITE(g->world, g->ships, SHIP_X, int32_t, FAULT_ROW) = 5;
    nb_module_desc module = {.name = "ships", .tick = ship_tick, .frame = ship_frame, .user = g};
    if (result == NB_OK) result = nb_engine_module_attach(engine, &module, NULL);
    return result == NB_OK ? attach_faults(g, engine) : result;
}

static inline nb_result ship_begin(const nb_record_head *head, nb_engine_desc *desc, void **user) {
    if (game_fault.fault == FAULT_BEGIN || head->config_bytes != sizeof RECORD_CONFIG) return NB_ERR_UNSUPPORTED;
    nb_engine_desc small = rig_desc(0);
    desc->scheduler_desc = small.scheduler_desc;
    desc->failure_count_max = 3;
    desc->module_count_max = game_fault.is_full ? 2 : 0;
    ship_game *g = (ship_game *)calloc(1, sizeof *g);
    if (g == NULL) return NB_ERR_MEMORY;
    g->run = game_fault.run_count++;
    ++game_fault.live_count;
    *user = g;
    return NB_OK;
}

static inline void ship_end(void *user) {
    --game_fault.live_count;
    free(user);
}

static const nb_replay_game ship_replay_game = {
    .name = "ships", .build_id = "build 7", .begin = ship_begin, .attach = ship_attach, .end = ship_end};

#define SHIP_TICK_NS UINT64_C(16666667)

// A live run: frames of no, one or two ticks, input now and then.
typedef struct ship_recording {
    uint64_t tick_count;
    uint64_t key_ticks;  // 0 = 40
    uint64_t skip_ticks; // that run before it is recorded
    bool has_single;     // hashes of states and columns
    bool has_no_hashes;
} ship_recording;

// These recordings are not about a slow writer: it is waited for.
static inline void wait_for_writer(const nb_recorder *recorder) {
    bool is_busy = recorder != NULL;
    while (is_busy) {
        is_busy = nbi_atomic_load_acquire_u32(&recorder->keys[0].is_busy) != 0 &&
                  nbi_atomic_load_acquire_u32(&recorder->keys[1].is_busy) != 0;
        is_busy |= is_queue_full(recorder);
        if (is_busy) nbi_thread_yield();
    }
}

static inline void ship_live(nb_engine *engine, const nb_recorder *recorder, uint64_t tick_end) {
    nb_input *input = nb_engine_input(engine);
    uint64_t random = 5, now_ns = 0;
    while (nb_loop_tick_count(nb_engine_loop(engine)) < tick_end) {
        nb_input_event event = {.timestamp_ns = now_ns, .kind = NB_INPUT_PRESS, .code = (uint32_t)test_random(&random)};
        if (event.code % 2 == 0) assert_int_equal(nb_input_send(input, &event), NB_OK);
        uint64_t left = tick_end - nb_loop_tick_count(nb_engine_loop(engine));
        uint64_t delta_ns = left < 2 || event.code % 4 == 0 ? SHIP_TICK_NS : SHIP_TICK_NS * (event.code % 3);
        now_ns += delta_ns;
        wait_for_writer(recorder);
        assert_int_equal(nb_engine_frame_delta(engine, delta_ns), NB_OK);
    }
}

static inline void ship_record(const ship_recording *r, memory_sink *sink) {
    nb_record_head head = {.build_id = "build 7",
                           .game_name = "ships",
                           .tick_rate = {60, 1},
                           .seed = 3,
                           .config = RECORD_CONFIG,
                           .config_bytes = sizeof RECORD_CONFIG};
    nb_engine_desc desc = {.loop = {.tick_rate = head.tick_rate}, .seed = 3, .hashes_ticks = !r->has_no_hashes};
    nb_engine *engine = NULL;
    void *user = NULL;
    memset(sink, 0, sizeof *sink);
    assert_int_equal(ship_begin(&head, &desc, &user), NB_OK);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    assert_int_equal(ship_attach(user, engine), NB_OK);
    ship_live(engine, NULL, r->skip_ticks);
    nb_recorder_desc recorder_desc = {.sink = sink_of(sink),
                                      .head = head,
                                      .key_ticks = r->key_ticks != 0 ? r->key_ticks : 40,
                                      .block_ticks = 8,
                                      .queue_count = 256,
                                      .hashes_states = r->has_single};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(engine, &recorder_desc, &recorder), NB_OK);
    ship_live(engine, recorder, r->skip_ticks + r->tick_count);
    assert_int_equal(nb_recorder_stats_get(recorder).key_late_count, 0);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    ship_end(user);
    game_fault.run_count = 0;
}

static inline nb_replay *ship_open(const memory_sink *sink, test_log *log) {
    nb_replay_desc desc = quiet_replay(log, NULL);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink->bytes, sink->size_bytes, &desc, &replay), NB_OK);
    return replay;
}
