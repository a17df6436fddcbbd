// SPDX-License-Identifier: MIT
// Recordings of engines that go back: what is written is what each tick got in the end, with key states to match.

#include "frame/engine/engine_fixture.h"
#include "record/record_fixture.h"

#include "nebula/rollback.h"

#define TICKS 120u
#define LAG 7u
#define KEY_TICKS 20u // more than wait: one key at a time waits with them

typedef struct game {
    rig r;
    struct {
        uint64_t sum, count;
    } state;
    uint64_t lag;               // ticks by which a tick's command comes too late; 0 = in time
    uint32_t twist;             // added to each command
    uint64_t hashes[TICKS + 1]; // of the state after so many ticks, as last seen
} game;

static nb_input_event script(const game *g, uint64_t tick) {
    return (nb_input_event){.kind = NB_INPUT_COMMAND, .code = (uint32_t)(tick * 2654435761u >> 5) + g->twist};
}

static nb_result tick(const nb_context *context, void *user) {
    game *g = user;
    for (uint32_t i = 0; i < context->commands.count; ++i) g->state.sum += context->commands.events[i].code;
    g->state.sum = g->state.sum * 31 + context->tick->index;
    ++g->state.count;
    return NB_OK;
}

static nb_result reconcile(const nb_context *context, void *user) {
    game *g = user;
    uint64_t now = nb_loop_tick_count(nb_engine_loop(context->engine));
    if (now < g->lag) return NB_OK;
    nb_input_event event = script(g, now - g->lag);
    if (g->lag == 0) return nb_context_command(context, &event);
    nb_history_input input = {{NULL, 0}, {&event, 1}};
    return nb_context_correct_input(context, now - g->lag, &input);
}

static void see(void *user, const nb_tick_view *view) { ((game *)user)->hashes[view->tick->index + 1] = view->hash; }

static void game_open(game *g, uint64_t lag, bool is_played) {
    memset(g, 0, sizeof *g);
    g->lag = lag;
    nb_engine_desc desc = rig_desc(0);
    desc.hashes_ticks = desc.keeps_history = true;
    desc.history = (nb_history_desc){
        .bytes_max = (size_t)1 << 20, .tick_count_max = 128, .event_count_max = 2, .command_count_max = 2};
    desc.rollback_count_max = 16;
    rig_open_desc(&g->r, desc);
    nb_provider_desc state = {.name = "game", .data = &g->state, .size_bytes = sizeof g->state};
    assert_int_equal(nb_states_add(nb_engine_states(g->r.engine), &state, NULL), NB_OK);
    nb_module_desc module = {.name = "game", .tick = tick, .user = g};
    if (is_played) module.handlers[NB_PHASE_NETWORK_RECONCILIATION] = reconcile;
    attach(&g->r, module);
    nb_tick_watch watch = {.end = see, .again = see, .user = g};
    assert_int_equal(nb_engine_watch_add(g->r.engine, &watch), NB_OK);
}

static nb_recorder *record(game *g, memory_sink *sink) {
    memset(sink, 0, sizeof *sink);
    nb_recorder_desc desc = {
        .sink = sink_of(sink), .key_ticks = KEY_TICKS, .block_ticks = 5, .queue_count = 64, .hashes_states = true};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(g->r.engine, &desc, &recorder), NB_OK);
    return recorder;
}

// The writer is waited for: no key state is late.
static void run_slowly(game *g, const nb_recorder *recorder, uint64_t tick_count) {
    for (uint64_t i = 0; i < tick_count; ++i) {
        run_ticks(&g->r, 1);
        for (uint32_t j = 0; j < NBI_KEY_SLOT_COUNT; ++j)
            while (nbi_atomic_load_acquire_u32(&recorder->keys[j].is_busy) != 0) nbi_thread_yield();
    }
}

// Plays a recording again, without a history, and compares each tick with it and with what the game saw.
static void assert_replays(const game *g, const memory_sink *sink, uint64_t tick_count) {
    static game fresh;
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink->bytes, sink->size_bytes, NULL, &replay), NB_OK);
    assert_int_equal(nb_replay_info_get(replay).tick_count, tick_count);
    game_open(&fresh, 0, false);
    assert_int_equal(nb_replay_attach(replay, fresh.r.engine), NB_OK);
    run_ticks(&fresh.r, tick_count);
    nb_replay_check check = nb_replay_check_get(replay);
    assert_int_equal(check.compared_count, tick_count);
    assert_int_equal(check.diverged_count, 0);
    for (uint64_t i = 1; i <= tick_count; ++i) assert_true(fresh.hashes[i] == g->hashes[i]);
    for (uint64_t i = KEY_TICKS; i < tick_count; i += KEY_TICKS) {
        uint64_t at = 0;
        nb_states *states = nb_engine_states(fresh.r.engine);
        assert_int_equal(nb_replay_key_find(replay, i, &at, NULL), NB_OK);
        assert_int_equal(nb_replay_load(replay, at, states, NULL), NB_OK);
        if (at > 0) assert_true(nb_states_hash(states) == g->hashes[at]);
    }
    assert_int_equal(nb_replay_close(replay), NB_OK);
    rig_close(&fresh.r);
}

TEST(late_input_is_recorded_where_it_belongs) {
    static const uint64_t lags[] = {0, 1, LAG, 16};
    for (size_t i = 0; i < sizeof lags / sizeof lags[0]; ++i) {
        static game g;
        memory_sink sink;
        game_open(&g, lags[i], true);
        nb_recorder *recorder = record(&g, &sink);
        run_slowly(&g, recorder, TICKS);
        nb_recorder_stats stats = nb_recorder_stats_get(recorder);
        assert_int_equal(stats.key_count, 1 + (TICKS - 16) / KEY_TICKS);
        assert_int_equal(stats.tick_count, TICKS - 16); // the others wait
        assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
        assert_replays(&g, &sink, TICKS);
        rig_close(&g.r);
        free(sink.bytes);
    }
}

// A tick larger than a history keeps cannot be gone back behind: what waits before it is written, and it as well.
TEST(large_ticks_do_not_wait) {
    static game g;
    memory_sink sink;
    game_open(&g, 0, true);
    nb_input *input = nb_engine_input(g.r.engine);
    nb_recorder *recorder = record(&g, &sink);
    run_ticks(&g.r, 20);
    for (uint32_t i = 0; i < 1000; ++i)
        assert_int_equal(nb_input_send(input, &(nb_input_event){.kind = NB_INPUT_MOTION, .code = i}), NB_OK);
    assert_int_equal(nb_engine_frame_delta(g.r.engine, 16666667), NB_OK);
    assert_int_equal(nb_recorder_stats_get(recorder).tick_count, 21);
    run_ticks(&g.r, 9);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_replays(&g, &sink, 30);
    rig_close(&g.r);
    free(sink.bytes);
}

// --- time that was turned back ---

// Runs 60 ticks, goes back to another, and on from there with other commands, or the same.
static nb_result run_rewound(game *g, memory_sink *sink, uint64_t back_to, uint32_t twist, nb_recorder_stats *stats) {
    game_open(g, 0, true);
    nb_recorder *recorder = record(g, sink);
    run_slowly(g, recorder, 60);
    g->twist = twist;
    assert_int_equal(nb_engine_rewind(g->r.engine, back_to), NB_OK);
    run_ticks(&g->r, 40);
    *stats = nb_recorder_stats_get(recorder);
    return nb_recorder_destroy(recorder);
}

TEST(another_future_is_recorded_instead) {
    for (uint64_t back_to = 44; back_to < 60; ++back_to) { // 44 ticks are written, the others wait
        static game g;
        memory_sink sink;
        nb_recorder_stats stats;
        assert_int_equal(run_rewound(&g, &sink, back_to, 3, &stats), NB_OK);
        assert_int_equal(stats.repeat_count, 0);
        assert_replays(&g, &sink, back_to + 40);
        rig_close(&g.r);
        free(sink.bytes);
    }
}

TEST(the_same_future_goes_on) {
    static game g;
    memory_sink sink;
    nb_recorder_stats stats;
    assert_int_equal(run_rewound(&g, &sink, 30, 0, &stats), NB_OK);
    assert_int_equal(stats.repeat_count, 14);
    assert_replays(&g, &sink, 70);
    rig_close(&g.r);
    free(sink.bytes);
}

TEST(another_future_of_what_is_written_ends_the_recording) {
    static game g;
    memory_sink sink;
    nb_recorder_stats stats;
    assert_int_equal(run_rewound(&g, &sink, 30, 3, &stats), NB_ERR_RANGE);
    assert_int_equal(stats.stop, NB_RECORD_STOP_REWOUND);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    nb_replay_info info = nb_replay_info_get(replay);
    assert_int_equal(info.tick_count, 44);
    assert_int_equal(info.end, NB_REPLAY_END_STOPPED);
    assert_int_equal(info.stop, NB_RECORD_STOP_REWOUND);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    rig_close(&g.r);
    free(sink.bytes);
}

// Counts what the frame's thread takes; the writer has its own ways.
typedef struct counted_heap {
    uint64_t thread_id, call_count;
} counted_heap;

static void *counted_alloc(void *user, size_t size_bytes, size_t alignment) {
    counted_heap *heap = user;
    if (nbi_thread_id() == heap->thread_id) ++heap->call_count;
    return aligned_alloc(alignment, (size_bytes + alignment - 1) / alignment * alignment);
}

static void counted_free(void *user, void *memory, size_t size_bytes) {
    (void)user, (void)size_bytes;
    free(memory);
}

TEST(waiting_ticks_need_no_heap) {
    static game g;
    memory_sink sink;
    counted_heap heap = {.thread_id = nbi_thread_id()};
    game_open(&g, LAG, true);
    nb_recorder_desc desc = {
        .sink = sink_of(&sink), .key_ticks = KEY_TICKS, .hooks = {.allocator = {counted_alloc, counted_free, &heap}}};
    memset(&sink, 0, sizeof sink);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(g.r.engine, &desc, &recorder), NB_OK);
    run_slowly(&g, recorder, 60);
    assert_int_equal(nb_recorder_flush(recorder), NB_OK);
    uint64_t calls = heap.call_count, engine_calls = g.r.heap.call_count.value;
    assert_true(calls > 0);
    run_slowly(&g, recorder, 50);
    assert_int_equal(heap.call_count, calls);
    assert_int_equal(g.r.heap.call_count.value, engine_calls);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    rig_close(&g.r);
    free(sink.bytes);
}
