// SPDX-License-Identifier: MIT
// Inputs and states that come too late: the engine goes back, puts them right and ends where it would have been. And
// what comes from nowhere changes nothing.

#include "frame/engine/engine_fixture.h"

#include "nebula/rollback.h"

#define PAWN_MAX 64u
#define MAIL_MAX 64u

enum { PLACE, PAWN_COLUMNS };

static const nb_column_desc pawn_columns[PAWN_COLUMNS] = {
    {.name = "place", .size_bytes = sizeof(int64_t), .flags = NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE}};
static const nb_column_desc puff_columns[] = {{.name = "age", .size_bytes = sizeof(uint32_t)}};

// A letter that arrives in a frame: the input of a tick, or the state after so many.
typedef struct letter {
    uint64_t frame, tick;
    nb_input_event event;
    const void *bytes; // of a state; NULL = the event is a tick's input
    size_t size_bytes;
    nb_result result; // of handing it in
} letter;

typedef struct match {
    rig r;
    nb_store *world;
    nb_table pawns, puffs;
    struct {
        uint64_t score, tick_sum;
    } plain;               // a state beside the world
    bool is_told;          // ticks get their input in time, from script()
    letter mail[MAIL_MAX]; // by frame
    uint32_t mail_count;
    uint64_t first_runs, again_runs; // of the tick handler
} match;

// What the player does in a tick, known to everybody in the end.
static nb_input_event script(uint64_t tick) {
    nb_input_event event = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)(tick * 2654435761u >> 3 & 7)};
    event.payload.i32[0] = (int32_t)(tick % 11) - 5;
    return event;
}

static void play(match *m, const nb_context *context, const nb_input_event *event) {
    nb_store_stage *stage = nb_context_stage(context, 0);
    uint32_t count = nb_store_row_count(m->world, m->pawns);
    if (event->code < 3 && count < PAWN_MAX) {
        nb_staged staged;
        if (nb_store_stage_spawn(stage, m->pawns, &staged) == NB_OK)
            *NB_STORE_STAGED_WRITE(stage, staged, PLACE, int64_t) = event->payload.i32[0];
    }
    if (event->code == 3 && count > 0)
        nb_store_stage_despawn(stage, nb_store_entity(m->world, m->pawns, (uint32_t)(context->tick->index % count)));
    m->plain.score += event->code;
}

static nb_result tick(const nb_context *context, void *user) {
    match *m = user;
    int64_t *place = NB_STORE_ROWS_WRITE(m->world, m->pawns, PLACE, int64_t);
    NB_STORE_EACH_ROW(row, m->world, m->pawns)
    place[row] = place[row] * 3 % 1000003 + (int64_t)(context->tick->index + row);
    m->plain.tick_sum = m->plain.tick_sum * 31 + context->tick->index;
    for (uint32_t i = 0; i < context->commands.count; ++i) play(m, context, &context->commands.events[i]);
    context->is_resimulated ? ++m->again_runs : ++m->first_runs;
    nb_store_stage_spawn(nb_context_stage(context, 1), m->puffs, NULL);
    if (context->tick->index % 10 == 9)
        nb_store_stage_despawn(nb_context_stage(context, 1), nb_store_entity(m->world, m->puffs, 0));
    return NB_OK;
}

// In time: the command for the next tick. Too late: what the mail brings.
static nb_result reconcile(const nb_context *context, void *user) {
    match *m = user;
    for (uint32_t i = 0; i < m->mail_count; ++i) {
        letter *l = &m->mail[i];
        if (l->frame != context->frame_index) continue;
        nb_history_input input = {{NULL, 0}, {&l->event, 1}};
        l->result = l->bytes != NULL ? nb_context_correct_state(context, l->tick, l->bytes, l->size_bytes)
                                     : nb_context_correct_input(context, l->tick, &input);
    }
    if (!m->is_told) return NB_OK;
    nb_input_event event = script(nb_loop_tick_count(nb_engine_loop(context->engine)));
    return nb_context_command(context, &event);
}

static void match_open_limit(match *m, uint32_t workers, bool is_told, uint32_t failure_count_max) {
    memset(m, 0, sizeof *m);
    m->is_told = is_told;
    nb_engine_desc desc = rig_desc(workers);
    desc.hashes_ticks = desc.keeps_history = true;
    desc.failure_count_max = failure_count_max;
    desc.history = (nb_history_desc){
        .bytes_max = (size_t)1 << 20, .tick_count_max = 256, .event_count_max = 4, .command_count_max = 4};
    rig_open_desc(&m->r, desc);
    m->world = nb_engine_world(m->r.engine);
    nb_table_desc pawns = {.name = "pawns", .row_count_max = PAWN_MAX, .columns = pawn_columns, .column_count = 1};
    nb_table_desc puffs = {.name = "puffs", .columns = puff_columns, .column_count = 1, .is_local = true};
    assert_int_equal(nb_store_table_add(m->world, &pawns, &m->pawns), NB_OK);
    assert_int_equal(nb_store_table_add(m->world, &puffs, &m->puffs), NB_OK);
    nb_provider_desc plain = {.name = "plain", .data = &m->plain, .size_bytes = sizeof m->plain};
    assert_int_equal(nb_states_add(nb_engine_states(m->r.engine), &plain, NULL), NB_OK);
    nb_module_desc module = {.name = "match", .tick = tick, .user = m};
    module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    attach(&m->r, module);
}

static void match_open(match *m, uint32_t workers, bool is_told) { match_open_limit(m, workers, is_told, 0); }

static void match_close(match *m) {
    assert_true(nb_store_is_valid(m->world));
    rig_close(&m->r);
}

static uint64_t hash_of(const match *m) { return rig_stats(&m->r).tick_hash; }
static nb_rollback_stats rolled(const match *m) { return nb_engine_rollback_stats(m->r.engine); }

// The hash after so many ticks, with everything in time.
static uint64_t hash_in_time(uint64_t tick_count) {
    static match m;
    match_open(&m, 0, true);
    run_ticks(&m.r, tick_count);
    assert_int_equal(rolled(&m).rollback_count, 0);
    uint64_t hash = hash_of(&m);
    match_close(&m);
    return hash;
}

static letter *post(match *m, uint64_t frame, uint64_t tick_index) {
    assert_true(m->mail_count < MAIL_MAX);
    letter *l = &m->mail[m->mail_count++];
    *l = (letter){.frame = frame, .tick = tick_index, .event = script(tick_index), .result = NB_BUSY};
    return l;
}

// --- inputs ---

TEST(late_inputs_end_in_the_same_state) {
    for (uint32_t workers = 0; workers < 3; ++workers) {
        static match m;
        match_open(&m, workers, false);
        // Each input comes 1 to 8 frames after its tick, in no order; one run has 40 ticks and 10 frames for the rest.
        uint64_t random = test_seed(__func__);
        for (uint64_t i = 0; i < 40; ++i) post(&m, i + 1 + test_random(&random) % 8, i);
        run_ticks(&m.r, 50);
        for (uint32_t i = 0; i < m.mail_count; ++i) assert_int_equal(m.mail[i].result, NB_OK);
        nb_rollback_stats stats = rolled(&m);
        assert_int_equal(stats.refuse_count + stats.fail_count + stats.same_count, 0);
        assert_int_equal(stats.correction_count, 40);
        assert_int_equal(stats.tick_count, m.again_runs);
        assert_true(stats.depth_max <= 8 && stats.rollback_count <= 40);
        assert_int_equal(m.first_runs, 50);
        // Local rows come once a tick and go once a tick, however often it is simulated.
        assert_int_equal(nb_store_row_count(m.world, m.puffs), 50 - 5);
        assert_int_equal(rig_stats(&m.r).violation_count, 0);
        uint64_t hash = hash_of(&m);
        match_close(&m);
        // The others ran without input.
        static match clean;
        match_open(&clean, 0, false);
        for (uint64_t i = 0; i < 40; ++i) post(&clean, i + 1, i);
        run_ticks(&clean.r, 50);
        assert_true(hash_of(&clean) == hash);
        match_close(&clean);
    }
}

TEST(input_known_already_changes_nothing) {
    static match m;
    match_open(&m, 0, true);
    for (uint64_t i = 0; i < 20; ++i) post(&m, i + 3, i), post(&m, i + 4, i); // duplicated, of what was in time
    run_ticks(&m.r, 30);
    assert_int_equal(rolled(&m).same_count, 40);
    assert_int_equal(rolled(&m).rollback_count, 0);
    assert_true(hash_of(&m) == hash_in_time(30));
    match_close(&m);
}

TEST(input_of_no_tick_is_refused) {
    static match m;
    match_open(&m, 0, true);
    static const uint64_t ticks[] = {UINT64_MAX, (uint64_t)-10000, 100, 101, 0, 35};
    for (uint32_t i = 0; i < 6; ++i) post(&m, 100, ticks[i])->event.code = 77;
    run_ticks(&m.r, 110);
    // The last: 100 - 35 is more than the most it goes back.
    for (uint32_t i = 0; i < 6; ++i) assert_int_equal(m.mail[i].result, NB_ERR_RANGE);
    assert_int_equal(rolled(&m).refuse_count, 6);
    assert_int_equal(rolled(&m).rollback_count, 0);
    assert_true(hash_of(&m) == hash_in_time(110));
    match_close(&m);
}

// --- watches ---

#define CHRONICLE_MAX 64u

typedef struct chronicle {
    uint64_t hashes[CHRONICLE_MAX];
    uint32_t codes[CHRONICLE_MAX]; // of the tick's command; 0 = none
    uint64_t first_count, again_count;
} chronicle;

static void write_down(chronicle *c, const nb_tick_view *view) {
    c->hashes[view->tick->index] = view->hash;
    c->codes[view->tick->index] = view->commands.count != 0 ? view->commands.events[0].code : 0;
}

static void write_first(void *user, const nb_tick_view *view) {
    ++((chronicle *)user)->first_count;
    write_down(user, view);
}

static void write_again(void *user, const nb_tick_view *view) {
    ++((chronicle *)user)->again_count;
    write_down(user, view);
}

static void chronicle_of(chronicle *c, bool is_told) {
    static match m;
    memset(c, 0, sizeof *c);
    match_open(&m, 0, is_told);
    for (uint64_t i = 0; i < 50 && !is_told; ++i) post(&m, i + 5, i);
    nb_tick_watch watch = {.end = write_first, .again = write_again, .user = c};
    assert_int_equal(nb_engine_watch_add(m.r.engine, &watch), NB_OK);
    run_ticks(&m.r, 56);
    assert_int_equal(c->again_count, rolled(&m).tick_count);
    match_close(&m);
}

// Of a tick that was put right, the last that is told is right.
TEST(watches_hear_of_ticks_that_are_put_right) {
    static chronicle in_time, late;
    chronicle_of(&in_time, true);
    chronicle_of(&late, false);
    assert_int_equal(in_time.first_count, 56);
    assert_int_equal(in_time.again_count, 0);
    assert_int_equal(late.first_count, 56);
    assert_int_equal(late.again_count, 50 * 5);
    for (uint32_t i = 0; i < 50; ++i) {
        assert_true(in_time.hashes[i] == late.hashes[i]);
        assert_int_equal(in_time.codes[i], late.codes[i]);
    }
}

// --- states ---

typedef struct saved {
    unsigned char bytes[16384];
    size_t size_bytes;
} saved;

static void save_after(saved *out, uint64_t tick_count) {
    static match m;
    match_open(&m, 0, true);
    run_ticks(&m.r, tick_count);
    assert_int_equal(nb_states_save(nb_engine_states(m.r.engine), out->bytes, sizeof out->bytes, &out->size_bytes),
                     NB_OK);
    match_close(&m);
}

static letter *post_state(match *m, uint64_t frame, uint64_t tick_count, const saved *s) {
    letter *l = post(m, frame, tick_count);
    l->bytes = s->bytes;
    l->size_bytes = s->size_bytes;
    return l;
}

// Ours missed inputs 10 to 19; the state after 20 comes at 25, and what came in since is played again.
TEST(authoritative_state_replaces_ours) {
    static saved s;
    save_after(&s, 20);
    static match m;
    match_open(&m, 0, true);
    for (uint64_t i = 10; i < 20; ++i) {
        letter *l = post(&m, i + 1, i);
        l->event.code = 7, l->event.payload.i32[0] = 99; // a wrong guess, put in place of what was right
    }
    post_state(&m, 25, 20, &s);
    run_ticks(&m.r, 25);
    assert_true(hash_of(&m) != hash_in_time(25));
    run_ticks(&m.r, 10);
    assert_int_equal(m.mail[10].result, NB_OK);
    assert_true(hash_of(&m) == hash_in_time(35));
    assert_int_equal(rolled(&m).fail_count, 0);
    match_close(&m);
}

TEST(authoritative_state_like_ours_changes_nothing) {
    static saved s;
    save_after(&s, 20);
    static match m;
    match_open(&m, 0, true);
    post_state(&m, 25, 20, &s);
    run_ticks(&m.r, 40);
    assert_int_equal(rolled(&m).same_count, 1);
    assert_int_equal(rolled(&m).tick_count, 0);
    assert_true(hash_of(&m) == hash_in_time(40));
    match_close(&m);
}

// What an input of long ago would change is not in the state that the other side has sent.
TEST(authoritative_state_outweighs_older_inputs) {
    static saved s;
    save_after(&s, 20);
    static match m;
    match_open(&m, 0, true);
    post(&m, 25, 12)->event.code ^= 1;
    post_state(&m, 25, 20, &s);
    run_ticks(&m.r, 40);
    assert_int_equal(rolled(&m).correction_count, 1);
    assert_int_equal(rolled(&m).same_count, 1);
    assert_int_equal(rolled(&m).tick_count, 5);
    assert_true(hash_of(&m) == hash_in_time(40));
    match_close(&m);
}

TEST(state_that_is_none_changes_nothing) {
    static saved s;
    save_after(&s, 20);
    for (size_t cut = 0; cut < 3; ++cut) {
        static match m;
        match_open(&m, 0, true);
        letter *l = post_state(&m, 25, 20, &s);
        if (cut == 0) l->size_bytes /= 2;
        if (cut == 1) l->tick = 5000;
        if (cut == 2) s.bytes[s.size_bytes - 3] ^= 1;
        run_ticks(&m.r, 40);
        assert_int_equal(rolled(&m).fail_count, cut == 1 ? 0 : 1);
        assert_int_equal(rolled(&m).refuse_count, cut == 1 ? 1 : 0);
        assert_int_equal(rolled(&m).tick_count, 0);
        assert_true(hash_of(&m) == hash_in_time(40));
        match_close(&m);
    }
}

// --- modules that fail ---

typedef struct weak {
    match *match;
    uint64_t first, end; // ticks in which it fails
    uint64_t call_count;
} weak;

static nb_result fail_at_times(const nb_context *context, void *user) {
    weak *w = user;
    ++w->call_count;
    w->match->plain.score += 16;
    return context->tick->index >= w->first && context->tick->index < w->end ? NB_ERR_RANGE : NB_OK;
}

// Ticks one by one: a frame with a failure says so.
static void run_weak(match *m, uint64_t tick_count) {
    for (uint64_t i = 0; i < tick_count; ++i) nb_engine_run_ticks(m->r.engine, 1);
}

TEST(failures_are_not_counted_again) {
    uint64_t hashes[2];
    for (uint32_t is_late = 0; is_late < 2; ++is_late) {
        static match m;
        weak w = {&m, 10, 13, 0};
        match_open_limit(&m, 0, true, 5);
        attach(&m.r, (nb_module_desc){.name = "weak", .tick = fail_at_times, .user = &w});
        for (uint64_t i = 10; i < 20 && is_late; ++i) post(&m, i + 3, i)->event.code = 6; // other than it was,
        for (uint64_t i = 10; i < 20 && is_late; ++i) post(&m, i + 5, i);                 // and right again
        run_weak(&m, 40);
        assert_int_equal(rolled(&m).rollback_count > 0, is_late);
        assert_int_equal(rig_stats(&m.r).disabled_count, 0);
        hashes[is_late] = hash_of(&m);
        match_close(&m);
    }
    assert_true(hashes[0] == hashes[1]);
}

TEST(rewound_modules_are_not_yet_disabled) {
    static match m;
    weak w = {&m, 10, 18, 0};
    match_open_limit(&m, 0, true, 5);
    attach(&m.r, (nb_module_desc){.name = "weak", .tick = fail_at_times, .user = &w});
    run_weak(&m, 30);
    uint64_t hash = hash_of(&m);
    assert_int_equal(w.call_count, 15); // the fifth failure is the last
    assert_int_equal(nb_engine_rewind(m.r.engine, 12), NB_OK);
    run_weak(&m, 18);
    assert_int_equal(w.call_count, 15 + 3);
    assert_true(hash_of(&m) == hash);
    match_close(&m);
}

// --- going back ---

TEST(rewound_engine_goes_on_from_there) {
    static match m;
    match_open(&m, 0, true);
    assert_null(nb_engine_history(m.r.engine));
    run_ticks(&m.r, 60);
    assert_non_null(nb_engine_history(m.r.engine));
    assert_int_equal(nb_engine_rewind(m.r.engine, 20), NB_OK);
    assert_int_equal(nb_loop_tick_count(nb_engine_loop(m.r.engine)), 20);
    assert_true(nb_states_hash(nb_engine_states(m.r.engine)) == hash_in_time(20));
    assert_true(hash_of(&m) == hash_in_time(20));
    assert_int_equal(nb_engine_rewind(m.r.engine, 45), NB_OK); // forward again
    assert_true(nb_states_hash(nb_engine_states(m.r.engine)) == hash_in_time(45));
    assert_int_equal(nb_engine_rewind(m.r.engine, 30), NB_OK);
    run_ticks(&m.r, 25);
    assert_int_equal(nb_loop_tick_count(nb_engine_loop(m.r.engine)), 55);
    assert_true(hash_of(&m) == hash_in_time(55));
    assert_int_equal(nb_engine_rewind(m.r.engine, 56), NB_ERR_RANGE);
    assert_true(nb_loop_is_valid(nb_engine_loop(m.r.engine)));
    match_close(&m);
}

// Loaded where the history has the same number of ticks, but another past.
TEST(loaded_state_has_no_past) {
    static saved s;
    save_after(&s, 30);
    static match m;
    match_open(&m, 0, false);
    run_ticks(&m.r, 30);
    assert_true(hash_of(&m) != hash_in_time(30));
    assert_int_equal(nb_states_load(nb_engine_states(m.r.engine), s.bytes, s.size_bytes), NB_OK);
    assert_int_equal(nb_engine_set_tick(m.r.engine, 30), NB_OK);
    assert_true(hash_of(&m) == hash_in_time(30));
    m.is_told = true;
    run_ticks(&m.r, 5);
    assert_true(hash_of(&m) == hash_in_time(35));
    assert_int_equal(nb_engine_rewind(m.r.engine, 29), NB_ERR_RANGE);
    assert_int_equal(nb_engine_rewind(m.r.engine, 30), NB_OK);
    assert_true(hash_of(&m) == hash_in_time(30));
    assert_int_equal(nb_engine_set_tick(m.r.engine, 1000), NB_OK); // as if it were so
    run_ticks(&m.r, 2);
    assert_int_equal(nb_loop_tick_count(nb_engine_loop(m.r.engine)), 1002);
    assert_int_equal(nb_history_stats_get(nb_engine_history(m.r.engine)).tick_oldest, 1000);
    // Put there by other hands than nb_states_load, at the tick where it is.
    m.plain.score += 5;
    assert_int_equal(nb_engine_set_tick(m.r.engine, 1002), NB_OK);
    run_ticks(&m.r, 1);
    assert_int_equal(nb_engine_rewind(m.r.engine, 1001), NB_ERR_RANGE);
    assert_int_equal(nb_engine_rewind(m.r.engine, 1002), NB_OK);
    match_close(&m);
}

// --- rights ---

typedef struct meddler {
    nb_result results[NB_PHASE_COUNT];
} meddler;

static nb_result meddle(const nb_context *context, void *user) {
    meddler *m = user;
    nb_history_input input = {{NULL, 0}, {NULL, 0}};
    m->results[context->phase] = nb_context_correct_input(context, 0, &input);
    return NB_OK;
}

TEST(corrections_have_their_phase) {
    rig r;
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = true;
    rig_open_desc(&r, desc);
    meddler m = {.results = {NB_OK}};
    nb_module_desc module = {.name = "meddler", .parallel = meddle, .record = meddle, .user = &m};
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        if (i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD) module.handlers[i] = meddle;
    }
    attach(&r, module);
    run_ticks(&r, 3);
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i)
        assert_int_equal(m.results[i], i == NB_PHASE_NETWORK_RECONCILIATION ? NB_OK : NB_ERR_PERMISSION);
    assert_int_equal(rig_stats(&r).violation_count, 3 * 16);
    rig_close(&r);
}

TEST(without_history_there_is_no_way_back) {
    rig r;
    rig_open(&r, 0);
    run_ticks(&r, 3);
    assert_null(nb_engine_history(r.engine));
    assert_int_equal(nb_engine_rewind(r.engine, 1), NB_ERR_UNSUPPORTED);
    rig_close(&r);
}

TEST(frames_with_history_use_no_heap) {
    static match m;
    match_open(&m, 1, true);
    for (uint64_t i = 20; i < 60; ++i) post(&m, i + 5, i)->event.code ^= 1;
    run_ticks(&m.r, 20);
    uint64_t calls = m.r.heap.call_count.value;
    run_ticks(&m.r, 60);
    assert_int_equal(rolled(&m).rollback_count, 40);
    assert_int_equal(m.r.heap.call_count.value, calls);
    match_close(&m);
}

// --- how far back ---

#define LAND_BYTES 100000
#define STORM_BYTES 6000
#define REACH_TICKS 600

static unsigned char land[LAND_BYTES], storm[STORM_BYTES]; // a large state that changes little, a small one that does

static nb_result weather_tick(const nb_context *context, void *user) {
    (void)user;
    uint64_t tick = context->tick->index;
    for (uint32_t i = 0; i < 20; ++i) land[(tick * 7919 + i * 4513) % LAND_BYTES] += 1;
    for (uint32_t i = 0; tick >= 200 && i < STORM_BYTES; ++i) storm[i] += (unsigned char)(i + tick);
    return NB_OK;
}

// How many ticks the game can go back, and that the oldest one is what it was.
static uint64_t reach_of(uint32_t tick_count_max) {
    static uint64_t hashes[REACH_TICKS + 1];
    rig r;
    nb_engine_desc desc = rig_desc(0);
    desc.keeps_history = desc.hashes_ticks = true;
    desc.history = (nb_history_desc){.bytes_max = (size_t)2 << 20, .tick_count_max = tick_count_max};
    memset(land, 0, sizeof land);
    memset(storm, 0, sizeof storm);
    rig_open_desc(&r, desc);
    const nb_provider_desc states[] = {{.name = "land", .data = land, .size_bytes = sizeof land},
                                       {.name = "storm", .data = storm, .size_bytes = sizeof storm}};
    for (uint32_t i = 0; i < 2; ++i)
        assert_int_equal(nb_states_add(nb_engine_states(r.engine), &states[i], NULL), NB_OK);
    attach(&r, (nb_module_desc){.name = "weather", .tick = weather_tick});
    for (uint64_t tick = 1; tick <= REACH_TICKS; ++tick) {
        run_ticks(&r, 1);
        hashes[tick] = rig_stats(&r).tick_hash;
    }
    uint64_t oldest = nb_history_stats_get(nb_engine_history(r.engine)).tick_oldest;
    assert_int_equal(nb_engine_rewind(r.engine, oldest), NB_OK);
    assert_true(rig_stats(&r).tick_hash == hashes[oldest]);
    run_ticks(&r, REACH_TICKS - oldest);
    assert_true(rig_stats(&r).tick_hash == hashes[REACH_TICKS]);
    rig_close(&r);
    return REACH_TICKS - oldest;
}

TEST(higher_tick_limit_never_shortens_the_past) {
    uint64_t reach = reach_of(256);
    assert_int_equal(reach, 256);
    for (uint32_t tick_count_max = 512; tick_count_max <= 8192; tick_count_max *= 4) {
        uint64_t further = reach_of(tick_count_max);
        if (further < reach) fail_msg("%u ticks keep %u, fewer %u", tick_count_max, (unsigned)further, (unsigned)reach);
        reach = further;
    }
    // 2 MiB of some 7.6 KiB a tick.
    assert_true(reach >= 270);
}
