// SPDX-License-Identifier: MIT
// nebula/record.h, nebula/replay.h, nebula/verify.h and nebula/save_file.h: files, recorders and replays that are none.

#include "bad_input/bad_input.h"

#include "nebula/record.h"
#include "nebula/replay.h"
#include "nebula/save_file.h"
#include "nebula/verify.h"

static nb_result write_nothing(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_OK;
}

static nb_recorder_desc fine_desc(test_heap *heap) {
    return (nb_recorder_desc){.sink = {.write = write_nothing}, .hooks = bad_hooks(heap)};
}

TEST(null_is_refused_everywhere) {
    nb_recorder_desc desc = fine_desc(NULL);
    nb_recorder *recorder = UNTOUCHED(nb_recorder);
    nb_replay *replay = UNTOUCHED(nb_replay);
    nb_record_tick tick = {.index = 0};
    uint64_t number = 77;
    size_t size = 77;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_create(NULL, &recorder));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_create(&desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_attach(NULL, &desc, &recorder));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_push(NULL, &tick));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_push_state(NULL, 0, &number, 8));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_flush(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_recorder_stats_get(NULL).tick_count);
    accepted(NB_OK, nb_recorder_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_open(NULL, NULL, &replay));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_open("x", NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_open_memory(NULL, 0, NULL, &replay));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_open_memory("x", 1, NULL, NULL));
    accepted(NB_OK, nb_replay_close(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_replay_info_get(NULL).tick_count);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_next(NULL, &tick));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_seek(NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_key_find(NULL, 0, &number, &size));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_key_read(NULL, 0, &number, 8));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_load(NULL, 0, NULL, &number));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_attach(NULL, NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_replay_check_get(NULL).fed_count);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_jump(NULL, NULL, 0));
    assert_ptr_equal(recorder, UNTOUCHED(nb_recorder));
    assert_ptr_equal(replay, UNTOUCHED(nb_replay));
    assert_int_equal(number, 77);
    assert_int_equal(size, 77);
}

TEST(saves_without_path_or_states_are_refused) {
    nb_states *states = NULL;
    nb_save_info info;
    memset(&info, 0x5A, sizeof info);
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_write(NULL, states, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_write("x", NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_read(NULL, states, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_read("x", NULL, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_read_memory(NULL, 1, states, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_read_memory("x", 1, NULL, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_info_read(NULL, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_info_read("x", NULL, NULL));
    nb_engine *engine = UNTOUCHED(nb_engine); // not looked at
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_engine(NULL, engine, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_save_engine("x", NULL, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_load_engine(NULL, engine, NULL, &info));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_load_engine("x", NULL, NULL, &info));
    nb_save_desc desc = {.hooks = bad_hooks(NULL)}, high = desc;
    high.level = 20;
    static char long_path[NB_SAVE_PATH_SIZE_MAX + 2];
    memset(long_path, 'p', sizeof long_path - 1);
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_save_write("x", states, &high));
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_save_write("", states, &desc));
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_save_write(long_path, states, &desc));
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_RECORD_FORMAT, nb_save_read_memory("x", 1, states, &desc, &info));
    refused(NB_ERR_OS, NB_ITEM_RECORD_FILE, nb_save_read("/no/such/file", states, &desc, &info));
    assert_untouched(info, 0x5A);
    nb_states_destroy(states);
}

TEST(bad_descs_are_refused) {
    test_heap heap = {0};
    static char long_text[NB_RECORD_TEXT_SIZE_MAX + 2];
    memset(long_text, 't', sizeof long_text - 1);
    nb_recorder *recorder = UNTOUCHED(nb_recorder);
    nb_recorder_desc both = fine_desc(&heap), neither = fine_desc(&heap), empty = fine_desc(&heap);
    both.path = "x";
    neither.sink.write = NULL;
    empty.path = "", empty.sink.write = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_create(&both, &recorder));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_create(&neither, &recorder));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_create(&empty, &recorder));
    nb_recorder_desc config = fine_desc(&heap);
    config.head.config_bytes = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_create(&config, &recorder));
    nb_recorder_desc bad[9];
    for (int i = 0; i < 9; ++i) bad[i] = fine_desc(&heap);
    bad[0].head.build_id = long_text;
    bad[1].head.game_name = long_text;
    bad[2].head.config = long_text, bad[2].head.config_bytes = NB_RECORD_CONFIG_BYTES_MAX + 1;
    bad[3].block_bytes = NB_RECORD_BLOCK_BYTES_MAX + 1;
    bad[4].block_bytes = 1;
    bad[5].block_ticks = NB_RECORD_BLOCK_TICKS_MAX + 1;
    bad[6].queue_count = 1;
    bad[7].queue_count = NB_RECORD_QUEUE_COUNT_MAX + 1;
    bad[8].level = 20;
    for (int i = 0; i < 9; ++i) refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_create(&bad[i], &recorder));
    assert_ptr_equal(recorder, UNTOUCHED(nb_recorder));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(bad_ticks_are_refused_and_the_recording_goes_on) {
    test_heap heap = {0};
    nb_recorder_desc desc = fine_desc(&heap);
    nb_recorder *recorder = NULL;
    static nb_input_event event;
    static nb_record_hash hash;
    accepted(NB_OK, nb_recorder_create(&desc, &recorder));
    uint64_t bytes = 0;
    const nb_record_tick bad[] = {
        {.index = NB_TICK_COUNT_MAX},
        {.input = {&event, NB_INPUT_COUNT_LIMIT + 1}},
        {.commands = {&event, NB_COMMAND_COUNT_MAX + 1}},
        {.hashes = &hash, .hash_count = NB_RECORD_HASH_COUNT_MAX + 1},
        {.input = {NULL, 1}},
        {.commands = {NULL, 1}},
        {.hash_count = 1},
    };
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push(recorder, NULL));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i)
        refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push(recorder, &bad[i]));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push_state(recorder, 0, NULL, 8));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push_state(recorder, 0, &bytes, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push_state(recorder, NB_TICK_COUNT_MAX + 1, &bytes, 8));
    accepted(NB_ERR_RANGE, nb_recorder_push_state(recorder, 0, &bytes, NB_RECORD_STATE_BYTES_MAX + 1));
    nb_record_tick first = {.index = 5}, again = first, gap = {.index = 7};
    accepted(NB_OK, nb_recorder_push(recorder, &first));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push(recorder, &again));
    refused_again(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push(recorder, &gap));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_push_state(recorder, 5, &bytes, 8));
    accepted(NB_OK, nb_recorder_flush(recorder));
    accepted(NB_OK, nb_recorder_flush(recorder));
    assert_int_equal(nb_recorder_stats_get(recorder).tick_count, 1);
    accepted(NB_OK, nb_recorder_destroy(recorder));
    assert_int_equal(heap.live_count.value, 0);
}

typedef struct copy {
    unsigned char bytes[4096];
    size_t size;
} copy;

static nb_result write_copy(void *user, const void *bytes, size_t size_bytes) {
    copy *c = user;
    if (c->size + size_bytes > sizeof c->bytes) return NB_ERR_RANGE;
    memcpy(c->bytes + c->size, bytes, size_bytes);
    c->size += size_bytes;
    return NB_OK;
}

static void record_tick(copy *c, const nb_record_tick *tick) {
    nb_recorder_desc desc = {.sink = {.write = write_copy, .user = c}};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(nb_recorder_push(recorder, tick), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
}

TEST(bad_questions_to_a_replay_are_refused) {
    static copy c;
    nb_record_tick tick = {.index = 5};
    record_tick(&c, &tick);
    nb_replay_desc replay_desc = {.hooks = bad_hooks(NULL)};
    nb_replay *replay = UNTOUCHED(nb_replay);
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_RECORD_FORMAT, nb_replay_open_memory("x", 1, &replay_desc, &replay));
    refused(NB_ERR_OS, NB_ITEM_RECORD_FILE, nb_replay_open("/no/such/file", &replay_desc, &replay));
    nb_replay_desc small = replay_desc;
    small.file_bytes_max = 10;
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_FORMAT, nb_replay_open_memory(c.bytes, c.size, &small, &replay));
    assert_ptr_equal(replay, UNTOUCHED(nb_replay));
    accepted(NB_OK, nb_replay_open_memory(c.bytes, c.size, &replay_desc, &replay));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_next(replay, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_replay_seek(replay, 4));
    refused_again(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_replay_seek(replay, 7));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_key_read(replay, 5, NULL, 8));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_load(replay, 5, NULL, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_attach(replay, NULL));
    accepted(NB_EMPTY, nb_replay_key_find(replay, 5, NULL, NULL));
    accepted(NB_OK, nb_replay_next(replay, &tick));
    accepted(NB_EMPTY, nb_replay_next(replay, &tick));
    accepted(NB_OK, nb_replay_close(replay));
}

static nb_result attach_nothing(void *user, nb_engine *engine) {
    (void)user, (void)engine;
    return NB_OK;
}

TEST(bad_verifications_are_refused) {
    static copy c;
    nb_record_tick tick = {.index = 5};
    record_tick(&c, &tick);
    nb_replay_desc replay_desc = {.hooks = bad_hooks(NULL)};
    nb_replay *replay = NULL, *other = NULL;
    assert_int_equal(nb_replay_open_memory(c.bytes, c.size, &replay_desc, &replay), NB_OK);
    assert_int_equal(nb_replay_open_memory(c.bytes, c.size, &replay_desc, &other), NB_OK);
    nb_verify_desc fine = {.worker_count = NB_WORKER_COUNT_NONE, .hooks = bad_hooks(NULL)}, bad = fine;
    nb_replay_game game = {.attach = attach_nothing}, empty = {.name = "empty"};
    nb_verify_report report;
    nb_replay_diff diff;
    memset(&report, 0x5A, sizeof report);
    memset(&diff, 0x5A, sizeof diff);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_verify(NULL, &game, &fine, &report));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_verify(replay, &game, &fine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_verify(replay, NULL, &fine, &report));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_verify(replay, &empty, &fine, &report));
    static const uint64_t ranges[][2] = {{7, 0}, {UINT64_MAX, 0}, {0, 7}, {6, 5}, {0, 4}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i) {
        bad.from_tick = ranges[i][0], bad.until_tick = ranges[i][1];
        refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_replay_verify(replay, &game, &bad, &report));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_compare(NULL, other, NULL, &fine, &diff));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_compare(replay, NULL, NULL, &fine, &diff));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_replay_compare(replay, other, NULL, &fine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_compare(replay, replay, NULL, &fine, &diff));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_compare(replay, other, &empty, &fine, &diff));
    refused(NB_ERR_MISUSE, NB_ITEM_RECORD_ARGUMENT, nb_replay_jump(replay, NULL, 5));
    assert_untouched(report, 0x5A);
    assert_untouched(diff, 0x5A);
    assert_string_equal(nb_verdict_text(NB_VERDICT_NONE), "");
    assert_string_equal(nb_verdict_text(NB_VERDICT_COUNT), "");
    assert_string_equal(nb_verdict_text((nb_verdict)-1), "");
    // The first tick is 5, and there is no key state.
    accepted(NB_OK, nb_replay_verify(replay, &game, &fine, &report));
    assert_int_equal(report.verdict, NB_VERDICT_NO_START);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    assert_int_equal(nb_replay_close(other), NB_OK);
}

TEST(attaching_without_a_desc_is_refused) {
    nb_engine_desc engine_desc = {.scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}, .hooks = bad_hooks(NULL)};
    nb_engine *engine = NULL;
    assert_int_equal(nb_engine_create(&engine_desc, &engine), NB_OK);
    nb_recorder_desc desc = fine_desc(NULL);
    nb_recorder *recorder = UNTOUCHED(nb_recorder);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_attach(engine, NULL, &recorder));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_recorder_attach(engine, &desc, NULL));
    desc.level = 99;
    refused(NB_ERR_RANGE, NB_ITEM_RECORD_ARGUMENT, nb_recorder_attach(engine, &desc, &recorder));
    desc.level = 0;
    // All places are taken: what was begun is ended again.
    int users[NB_TICK_WATCH_COUNT_MAX];
    for (uint32_t i = 0; i < NB_TICK_WATCH_COUNT_MAX; ++i) {
        nb_tick_watch watch = {.user = &users[i]};
        accepted(NB_OK, nb_engine_watch_add(engine, &watch));
    }
    accepted(NB_FULL, nb_recorder_attach(engine, &desc, &recorder));
    assert_ptr_equal(recorder, UNTOUCHED(nb_recorder));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}
