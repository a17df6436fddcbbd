// SPDX-License-Identifier: MIT
// Corrections at their edges: what they must not change, what cannot be played again, what comes in the wrong order,
// and what happens where memory is short.

#include "frame/rollback/rollback_fixture.h"

#include "nebula/effect.h"

// What arrives: in one frame an input, in one a state; 0 = in none. Many commands enter one tick.
typedef struct post {
    uint64_t input_frame, input_tick;
    uint32_t input_code;
    uint16_t input_size; // makes the list grow
    uint64_t state_frame, state_tick;
    const game_save *state;
    nb_result input_result, state_result;
    uint64_t flood_tick; // gets more commands than the history keeps
    bool is_scripted;
} post;

static void deliver(game *g, const nb_context *context) {
    post *p = g->mail_user;
    uint64_t frame = context->frame_index;
    nb_input_event event = game_event(p->input_code);
    event.device = p->input_size;
    nb_history_input input = {{NULL, 0}, {&event, 1}};
    if (p->is_scripted) game_script(g, context);
    if (p->flood_tick != 0 && game_now(g) == p->flood_tick) {
        for (uint32_t i = 0; i < 5; ++i) {
            nb_input_event command = game_event(i * 5 + 1);
            assert_int_equal(nb_context_command(context, &command), NB_OK);
        }
    }
    if (p->state_frame != 0 && frame == p->state_frame)
        p->state_result = nb_context_correct_state(context, p->state_tick, p->state->bytes, p->state->size_bytes);
    if (p->input_frame != 0 && frame == p->input_frame)
        p->input_result = nb_context_correct_input(context, p->input_tick, &input);
}

static void open_with(game *g, post *p) {
    game_open(g);
    g->mail = deliver;
    g->mail_user = p;
    p->input_result = p->state_result = NB_BUSY;
}

// What another machine has after so many ticks: other than what ours makes of them.
static void other_state(game_save *out, uint64_t tick_count, uint64_t score) {
    static game g;
    post p = {.is_scripted = true};
    open_with(&g, &p);
    run_ticks(&g.r, tick_count);
    if (score != 0) g.plain.score = score;
    game_save_to(&g, out);
    game_close(&g);
}

// --- what cannot be played again ---

TEST(ticks_whose_input_did_not_fit_are_not_played_again) {
    static game g;
    post p = {.flood_tick = 5, .input_frame = 10, .input_tick = 3, .input_code = 9};
    open_with(&g, &p);
    run_ticks(&g.r, 10);
    uint64_t hash = game_hash(&g);
    assert_int_equal(nb_engine_frame_delta(g.r.engine, 0), NB_OK);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    assert_true(game_hash(&g) == hash);
    assert_int_equal(game_rolled(&g).lost_count, 1);
    // Behind it there is a way back, and so there is once another past has taken its place.
    p = (post){.input_frame = 11, .input_tick = 6, .input_code = 9};
    run_ticks(&g.r, 1);
    assert_int_equal(p.input_result, NB_OK);
    assert_int_equal(nb_engine_rewind(g.r.engine, 4), NB_OK);
    p = (post){.input_frame = 15, .input_tick = 4, .input_code = 9};
    run_ticks(&g.r, 4);
    assert_int_equal(p.input_result, NB_OK);
    game_close(&g);
}

static nb_result add_one(const nb_context *context, void *user) {
    (void)context;
    ((game *)user)->plain.score += 1;
    return NB_OK;
}

TEST(modules_do_not_run_in_ticks_before_they_came) {
    static game g;
    post p = {.input_frame = 12, .input_tick = 7, .input_code = 9};
    open_with(&g, &p);
    run_ticks(&g.r, 10);
    nb_module_desc module = {.name = "late", .tick = add_one, .user = &g};
    nb_module_id handle = attach(&g.r, module);
    run_ticks(&g.r, 3);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    p = (post){.input_frame = 13, .input_tick = 10, .input_code = 9};
    run_ticks(&g.r, 1);
    assert_int_equal(p.input_result, NB_OK);
    assert_int_equal(nb_engine_module_replace(g.r.engine, handle, &module), NB_OK);
    p = (post){.input_frame = 15, .input_tick = 13, .input_code = 9};
    run_ticks(&g.r, 2);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    assert_int_equal(nb_engine_module_detach(g.r.engine, handle), NB_OK);
    p = (post){.input_frame = 17, .input_tick = 15, .input_code = 9};
    run_ticks(&g.r, 2);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    game_close(&g);
}

// --- states ---

TEST(state_of_now_is_taken) {
    static game_save sent;
    static game g;
    other_state(&sent, 10, 77);
    post p = {.is_scripted = true, .state_frame = 10, .state_tick = 10, .state = &sent};
    open_with(&g, &p);
    run_ticks(&g.r, 10);
    assert_int_equal(nb_engine_frame_delta(g.r.engine, 0), NB_OK);
    assert_int_equal(p.state_result, NB_OK);
    assert_int_equal(g.plain.score, 77);
    assert_true(rig_stats(&g.r).tick_hash == game_hash(&g));
    assert_int_equal(game_rolled(&g).correction_count, 1);
    assert_int_equal(game_rolled(&g).tick_count, 0);
    // And it is where the history goes on from.
    run_ticks(&g.r, 3);
    assert_int_equal(nb_engine_rewind(g.r.engine, 10), NB_OK);
    assert_int_equal(g.plain.score, 77);
    game_close(&g);
}

TEST(what_comes_later_about_earlier_ticks_knows_less) {
    static game_save sent, older;
    static game g;
    other_state(&sent, 10, 5000);
    other_state(&older, 9, 6000);
    post p = {.state_frame = 15, .state_tick = 10, .state = &sent};
    open_with(&g, &p);
    run_ticks(&g.r, 16);
    assert_int_equal(p.state_result, NB_OK);
    assert_int_equal(g.plain.score, 5000);
    p = (post){
        .input_frame = 16, .input_tick = 8, .input_code = 8, .state_frame = 17, .state_tick = 9, .state = &older};
    run_ticks(&g.r, 2);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    assert_int_equal(p.state_result, NB_ERR_RANGE);
    assert_int_equal(g.plain.score, 5000);
    assert_int_equal(game_rolled(&g).refuse_count, 2);
    game_close(&g);
}

// What a frame draws: local columns and previous values.
static void draw_values(const game *g, uint64_t *labels, int64_t *previous) {
    uint32_t count = nb_store_row_count(g->world, g->units);
    if (count == 0) return;
    memcpy(labels, NB_STORE_ROWS(g->world, g->units, UNIT_LABEL, uint64_t), count * sizeof *labels);
    memcpy(previous, NB_STORE_ROWS_PREVIOUS(g->world, g->units, UNIT_PLACE, int64_t), count * sizeof *previous);
}

static nb_result refuse_load(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_ERR_UNSUPPORTED;
}

static size_t save_nothing(void *user, void *bytes, size_t capacity_bytes) {
    (void)user, (void)bytes, (void)capacity_bytes;
    return 0;
}

enum { SAME, TORN, REFUSED, KIND_COUNT };

TEST(states_that_change_nothing_leave_what_is_drawn) {
    for (int kind = 0; kind < KIND_COUNT; ++kind) {
        static game g;
        static game_save sent;
        static uint64_t labels[2][UNIT_MAX];
        static int64_t previous[2][UNIT_MAX];
        post p = {.is_scripted = true};
        open_with(&g, &p);
        nb_provider_desc last = {.name = "z", .save = save_nothing, .load = refuse_load, .user = &g};
        if (kind == REFUSED) nb_states_add(nb_engine_states(g.r.engine), &last, NULL);
        run_ticks(&g.r, 45);
        if (kind == REFUSED) g.plain.score += 1; // so that it is other, were it taken
        game_save_to(&g, &sent);
        if (kind == REFUSED) g.plain.score -= 1;
        if (kind == TORN) sent.bytes[sent.size_bytes - 9] ^= 1;
        run_ticks(&g.r, 15);
        uint32_t count = nb_store_row_count(g.world, g.units);
        assert_true(count > 3);
        uint64_t *label = NB_STORE_ROWS_WRITE(g.world, g.units, UNIT_LABEL, uint64_t);
        NB_STORE_EACH_ROW(row, g.world, g.units) label[row] = row + 1000;
        draw_values(&g, labels[0], previous[0]);
        uint64_t hash = game_hash(&g);
        p = (post){.state_frame = 60, .state_tick = 45, .state = &sent};
        assert_int_equal(nb_engine_frame_delta(g.r.engine, 0), NB_OK);
        assert_int_equal(p.state_result, NB_OK);
        assert_int_equal(game_rolled(&g).same_count, kind == SAME ? 1 : 0);
        assert_int_equal(game_rolled(&g).fail_count, kind == SAME ? 0 : 1);
        draw_values(&g, labels[1], previous[1]);
        assert_memory_equal(labels[0], labels[1], count * sizeof labels[0][0]);
        assert_memory_equal(previous[0], previous[1], count * sizeof previous[0][0]);
        assert_true(game_hash(&g) == hash);
        game_close(&g);
    }
}

// Between frames, at the same tick: what was before it is of another game.
TEST(nobody_goes_back_behind_a_load) {
    static game_save loaded;
    static game g;
    other_state(&loaded, 10, 900);
    post p = {.input_frame = 12, .input_tick = 8, .input_code = 9};
    open_with(&g, &p);
    run_ticks(&g.r, 10);
    assert_int_equal(nb_states_load(nb_engine_states(g.r.engine), loaded.bytes, loaded.size_bytes), NB_OK);
    run_ticks(&g.r, 3);
    assert_int_equal(p.input_result, NB_ERR_RANGE);
    assert_int_equal(g.plain.score, 900);
    assert_int_equal(nb_engine_rewind(g.r.engine, 9), NB_ERR_RANGE);
    assert_int_equal(nb_engine_rewind(g.r.engine, 10), NB_OK);
    assert_int_equal(g.plain.score, 900);
    game_close(&g);
}

// --- memory ---

TEST(sent_states_without_memory_change_nothing) {
    static game_save sent;
    static game g;
    post other = {0};
    open_with(&g, &other);
    run_ticks(&g.r, 10);
    g.list_count = LIST_MAX;
    game_save_to(&g, &sent);
    game_close(&g);
    bool is_taken = false;
    for (uint64_t n = 1; n < 20 && !is_taken; ++n) {
        post p = {.state_frame = 15, .state_tick = 10, .state = &sent};
        open_with(&g, &p);
        run_ticks(&g.r, 15);
        uint64_t hash = game_hash(&g);
        g.r.heap.fail_from = g.r.heap.call_count.value + n;
        assert_int_equal(nb_engine_frame_delta(g.r.engine, 0), NB_OK);
        g.r.heap.fail_from = 0;
        is_taken = game_rolled(&g).correction_count == 1;
        assert_int_equal(game_rolled(&g).fail_count, is_taken ? 0 : 1);
        assert_int_equal(game_rolled(&g).same_count, 0);
        if (!is_taken) assert_true(game_hash(&g) == hash);
        game_close(&g);
    }
    assert_true(is_taken);
}

// A tick that cannot be kept is one that nobody can go back to; those behind it are simulated as they are.
TEST(ticks_simulated_again_without_memory_are_the_same) {
    static game g;
    uint64_t hash = 0;
    for (uint64_t n = 0; n < 12; ++n) {
        post p = {.is_scripted = true, .input_frame = 21, .input_tick = 8, .input_code = 403, .input_size = 200};
        open_with(&g, &p);
        run_ticks(&g.r, 21);
        uint64_t call = g.r.heap.call_count.value + (n + 1) / 2;
        if (n % 2 == 1) g.r.heap.fail_at = call;
        if (n % 2 == 0 && n != 0) g.r.heap.fail_from = call;
        nb_engine_frame_delta(g.r.engine, 0);
        g.r.heap.fail_at = g.r.heap.fail_from = 0;
        if (n == 0) hash = game_hash(&g);
        assert_int_equal(game_rolled(&g).tick_count, 13);
        assert_true(game_hash(&g) == hash);
        game_close(&g);
    }
}

TEST(engines_go_on_where_history_has_no_memory) {
    static game g;
    post p = {.is_scripted = true};
    open_with(&g, &p);
    run_ticks(&g.r, 5);
    g.r.heap.fail_from = g.r.heap.call_count.value + 1;
    for (uint32_t i = 0; i < 60; ++i) {
        if (i % 10 == 0) g.list_count = LIST_MAX;
        assert_int_equal(nb_engine_run_ticks(g.r.engine, 1), NB_OK);
    }
    assert_int_equal(game_now(&g), 65);
    g.r.heap.fail_from = 0;
    run_ticks(&g.r, 5);
    p = (post){.input_frame = 70, .input_tick = 67, .input_code = 9};
    run_ticks(&g.r, 1);
    assert_int_equal(p.input_result, NB_OK);
    game_close(&g);
}

// --- who is there ---

static nb_result do_nothing(const nb_context *context, void *user) {
    (void)context, (void)user;
    return NB_OK;
}

static nb_result fail_at_first(const nb_context *context, void *user) {
    (void)user;
    return context->tick->index < 2 ? NB_ERR_RANGE : NB_OK;
}

// In which places modules are, and who else is there, is nothing simulated.
TEST(state_of_modules_is_that_of_ticks) {
    uint64_t hashes[3];
    for (uint32_t i = 0; i < 3; ++i) {
        rig r;
        nb_engine_desc desc = rig_desc(0);
        desc.hashes_ticks = true;
        desc.failure_count_max = 2;
        rig_open_desc(&r, desc);
        nb_module_id gone = attach(&r, (nb_module_desc){.name = "gone", .tick = do_nothing});
        if (i == 1) attach(&r, (nb_module_desc){.name = "picture", .frame = do_nothing});
        attach(&r, (nb_module_desc){.name = i == 2 ? "b" : "a", .tick = fail_at_first});
        attach(&r, (nb_module_desc){.name = i == 2 ? "a" : "b", .tick = fail_at_first});
        nb_engine_module_detach(r.engine, gone);
        for (uint32_t tick = 0; tick < 4; ++tick) nb_engine_run_ticks(r.engine, 1);
        assert_int_equal(rig_stats(&r).disabled_count, 2);
        hashes[i] = rig_stats(&r).tick_hash;
        rig_close(&r);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(hashes[0] == hashes[2]);
}

TEST(worlds_that_come_late_are_kept_as_others) {
    rig r;
    rig_open_desc(&r, game_desc(0));
    run_ticks(&r, 2);
    nb_store *world = nb_engine_world(r.engine);
    nb_table table;
    nb_table_desc desc = {.name = "units", .row_count_max = 10, .columns = unit_columns, .column_count = UNIT_COLUMNS};
    assert_int_equal(nb_store_table_add(world, &desc, &table), NB_OK);
    nb_entity entity;
    assert_int_equal(nb_store_spawn(world, table, &entity), NB_OK);
    nb_entity_ref ref;
    assert_int_equal(nb_store_ref(world, entity, &ref), NB_OK);
    run_ticks(&r, 4);
    NB_STORE_ROWS_WRITE(world, table, UNIT_PLACE, int64_t)[0] = 5;
    assert_int_equal(nb_engine_rewind(r.engine, 4), NB_OK);
    uint32_t row;
    assert_int_equal(nb_store_resolve(world, ref, &row), NB_OK);
    assert_int_equal(NB_STORE_ROWS(world, table, UNIT_PLACE, int64_t)[0], 0);
    rig_close(&r);
}

TEST(history_that_cannot_be_is_told_at_creation) {
    nb_engine_desc desc = game_desc(0);
    test_log log = {0};
    desc.hooks = test_hooks(&log, NULL);
    desc.history.bytes_max = 1000;
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_ERR_RANGE);
    assert_int_equal(test_log_count(&log, NB_ITEM_HISTORY_ARGUMENT), 1);
    desc.keeps_history = false;
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    nb_engine_destroy(engine);
}

// --- effects ---

// A job that is late until ticks are simulated again, and then says something.
typedef struct talker {
    nb_atomic_u32 is_claimed, is_again, is_done;
    uint64_t main_thread;
    nb_result result;
} talker;

static nb_result talk(const nb_context *context, void *user) {
    talker *t = user;
    if (context->frame_index != 5) return NB_OK;
    if (nbi_thread_id() == t->main_thread) { // it helps; the others are to be late
        while (nbi_atomic_load_acquire_u32(&t->is_claimed) == 0) nbi_thread_yield();
        return NB_OK;
    }
    if (nbi_atomic_fetch_or_seq_cst_u32(&t->is_claimed, 1) != 0) return NB_OK;
    while (nbi_atomic_load_acquire_u32(&t->is_again) == 0) nbi_thread_yield();
    t->result = nb_context_log(context, NB_LOG_WARNING, "late");
    nbi_atomic_store_release_u32(&t->is_done, 1);
    return NB_OK;
}

static nb_result listen(const nb_context *context, void *user) {
    talker *t = user;
    if (!context->is_resimulated) return NB_OK;
    nbi_atomic_store_release_u32(&t->is_again, 1);
    while (nbi_atomic_load_acquire_u32(&t->is_done) == 0) nbi_thread_yield();
    return NB_OK;
}

TEST(late_jobs_are_in_no_tick) {
    static game g;
    static talker t;
    nb_engine_desc desc = game_desc(2);
    desc.fence_timeout_ns = 1000000;
    post p = {.input_frame = 6, .input_tick = 2, .input_code = 9};
    game_open_desc(&g, desc);
    g.mail = deliver;
    g.mail_user = &p;
    t = (talker){.main_thread = nbi_thread_id(), .result = NB_BUSY};
    attach(&g.r, (nb_module_desc){.name = "talker", .parallel = talk, .job_count = 4, .tick = listen, .user = &t});
    run_ticks(&g.r, 8);
    assert_int_equal(p.input_result, NB_OK);
    assert_int_equal(t.result, NB_OK);
    assert_int_equal(game_rolled(&g).effect_count, 0);
    game_close(&g);
}
