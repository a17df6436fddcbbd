// SPDX-License-Identifier: MIT
// What the log says of a host that makes the same mistake with a recording in each of a thousand frames: a bounded
// number of lines with the name of the recording, and the first other mistake all the same.

#define _DEFAULT_SOURCE // getpid

#include "record/record_fixture.h"
#include "support/log_lines.h"

#include <unistd.h>

#define FRAMES 1000

TEST(ticks_that_a_recorder_refuses_in_each_frame_are_throttled) {
    static log_lines log;
    memory_sink sink = {0};
    nb_recorder_desc desc = {.sink = sink_of(&sink), .hooks = log_lines_hooks(&log)};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    nb_record_tick first = {.index = 5}, gap = {.index = 9}, empty = {.index = 6, .input = {NULL, 1}};
    assert_int_equal(nb_recorder_push(recorder, &first), NB_OK);
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_recorder_push(recorder, &gap), NB_ERR_MISUSE);
    assert_throttled(&log, "recording into a sink: tick 9 was pushed and tick 6 follows; push each tick once");
    assert_int_equal(nb_recorder_push(recorder, &empty), NB_ERR_MISUSE);
    assert_int_equal(log_lines_saying(&log, "recording into a sink: tick 6: input has a count and no events"), 1);
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_recorder_push_state(recorder, 9, "x", 1), NB_ERR_MISUSE);
    assert_throttled(&log, "recording into a sink: state of 1 bytes before tick 9, where tick 6 follows");
    assert_int_equal(log.count.value, 2 * 4 + 1);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    free(sink.bytes);
}

TEST(questions_that_a_replay_refuses_in_each_frame_are_throttled_by_file) {
    static log_lines log;
    char paths[2][64];
    nb_replay *replays[2] = {NULL, NULL};
    nb_replay_desc desc = {.hooks = log_lines_hooks(&log)};
    for (int i = 0; i < 2; ++i) {
        snprintf(paths[i], sizeof paths[i], "/tmp/nebula_%d_match%d.nbr", (int)getpid(), i);
        nb_recorder_desc recorder_desc = {.path = paths[i], .hooks = test_hooks(NULL, NULL)};
        nb_recorder *recorder = NULL;
        nb_record_tick tick = {.index = 5};
        assert_int_equal(nb_recorder_create(&recorder_desc, &recorder), NB_OK);
        assert_int_equal(nb_recorder_push(recorder, &tick), NB_OK);
        assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
        assert_int_equal(nb_replay_open(paths[i], &desc, &replays[i]), NB_OK);
    }
    for (uint64_t i = 0; i < FRAMES; ++i) assert_int_equal(nb_replay_seek(replays[0], 7 + i), NB_ERR_RANGE);
    assert_throttled(&log, "_match0.nbr\": tick ");
    assert_int_equal(log_lines_saying(&log, "tick 7 is not in it; it has 1 ticks from tick 5"), 1);
    assert_int_equal(nb_replay_seek(replays[1], 7), NB_ERR_RANGE);
    assert_int_equal(log_lines_saying(&log, "_match1.nbr\": tick 7 is not in it"), 1);
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_replay_next(replays[0], NULL), NB_ERR_MISUSE);
    assert_throttled(&log, "_match0.nbr\": tick is NULL");
    assert_int_equal(log.count.value, 2 * 4 + 1);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(nb_replay_close(replays[i]), NB_OK);
        unlink(paths[i]);
    }
}
