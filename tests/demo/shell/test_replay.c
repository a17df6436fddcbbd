// SPDX-License-Identifier: MIT
// The planet as a game of recordings: what is recorded of it is enough to simulate it again.

#include "frame/engine/engine_fixture.h"
#include "record/record_fixture.h"

#include "demo/game/planet.h"
#include "demo/record/replay_game.h"

static const replay_config config = {.seed = 7, .tick_rate = {60, 1}, .teleport_ticks = 25};

// Explorers are steered by a handler of frames, as by a player.
static nb_result steer(const nb_context *context, void *user) {
    (void)user;
    if (context->frame_index % 5 != 0) return NB_OK;
    nb_input_event command = planet_steer(0, (int32_t)context->frame_index, 3, PLANET_PACE_MAX / 2);
    return nb_context_command(context, &command);
}

static void record_planet(memory_sink *sink, uint64_t tick_count) {
    rig r;
    planet p = {.seed = config.seed, .teleport_ticks = config.teleport_ticks};
    nb_engine_desc desc = rig_desc(2);
    desc.loop.tick_rate = config.tick_rate;
    desc.seed = config.seed;
    desc.is_headless = true;
    desc.hashes_ticks = true;
    desc.scheduler_desc = (nb_scheduler_desc){.worker_count = 2};
    rig_open_desc(&r, desc);
    assert_int_equal(planet_attach(&p, r.engine), NB_OK);
    assert_int_equal(planet_populate(&p), NB_OK);
    attach(&r, (nb_module_desc){.name = "player", .frame = steer});
    unsigned char bytes[REPLAY_CONFIG_BYTES];
    memset(sink, 0, sizeof *sink);
    nb_recorder_desc recorder_desc = {.sink = sink_of(sink),
                                      .head = replay_head(&config, bytes),
                                      .key_ticks = 20,
                                      .queue_count = 256,
                                      .hashes_states = true};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(r.engine, &recorder_desc, &recorder), NB_OK);
    run_ticks(&r, tick_count);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    rig_close(&r);
    planet_end(&p);
}

TEST(a_recorded_planet_is_the_same_again) {
    memory_sink sink;
    uint64_t tick_count = test_size(60, 600, 3000);
    record_planet(&sink, tick_count);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    static const uint32_t worker_counts[] = {NB_WORKER_COUNT_NONE, 3};
    for (size_t i = 0; i < 2; ++i) {
        nb_verify_desc desc = {.worker_count = worker_counts[i], .from_tick = i == 0 ? 0 : tick_count / 2};
        nb_verify_report report;
        assert_int_equal(nb_replay_verify(replay, nebula_replay_game(), &desc, &report), NB_OK);
        assert_int_equal(report.verdict, NB_VERDICT_SAME);
        assert_int_equal(report.notes, 0);
        assert_int_equal(report.compared_count, tick_count - report.from_tick);
    }
    nb_replay_close(replay);
    free(sink.bytes);
}

TEST(another_config_is_another_planet) {
    unsigned char bytes[REPLAY_CONFIG_BYTES];
    nb_record_head head = replay_head(&config, bytes);
    replay_config read = {0};
    assert_true(replay_config_read(&head, &read));
    assert_int_equal(read.seed, 7);
    assert_int_equal(read.tick_rate.num, 60);
    assert_int_equal(read.tick_rate.den, 1);
    assert_int_equal(read.teleport_ticks, 25);
    assert_string_equal(head.game_name, nebula_replay_game()->name);
    assert_string_equal(head.build_id, nebula_replay_game()->build_id);
    nb_engine_desc desc = {0};
    void *user = NULL;
    assert_int_equal(nebula_replay_game()->begin(&head, &desc, &user), NB_OK);
    assert_int_equal(desc.seed, 7);
    nebula_replay_game()->end(user);
    for (uint32_t at = 0; at < 8; ++at) { // what it is, and its version
        bytes[at] ^= 1;
        assert_false(replay_config_read(&head, &read));
        assert_int_equal(nebula_replay_game()->begin(&head, &desc, &user), NB_ERR_UNSUPPORTED);
        bytes[at] ^= 1;
    }
    head.config_bytes = 0, head.config = NULL;
    assert_false(replay_config_read(&head, &read));
}
