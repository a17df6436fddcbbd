// SPDX-License-Identifier: MIT
// Replays of bytes that are not what they should be: cut, flipped, forged. Nothing wrong is handed out, nothing
// crashes, and memory stays below the file and a constant.

#include "record/peak_heap.h"
#include "record/record_fixture.h"

#include "nebula/state.h"

#include <stdio.h>

// What a reader may have beside the file: the replay itself, one block, its events, zstd's context.
#define MEMORY_CONSTANT ((uint64_t)(NB_RECORD_BLOCK_BYTES_MAX + (1u << 20)))

typedef struct reading {
    nb_result opened, last;
    nb_replay_info info;
    uint64_t count;
} reading;

static void read_keys(const recording *r, nb_replay *replay, nb_replay_info info) {
    uint64_t tick = UINT64_MAX;
    for (uint32_t i = 0; i < info.key_count; ++i) {
        uint64_t key_tick = 0;
        size_t size = 0;
        nb_result found = nb_replay_key_find(replay, tick, &key_tick, &size);
        if (found != NB_OK) break;
        unsigned char bytes[STATE_BYTES], expected[STATE_BYTES];
        nb_result result = nb_replay_key_read(replay, key_tick, bytes, sizeof bytes);
        if (result == NB_OK && r != NULL) {
            make_state(expected, key_tick);
            assert_int_equal(size, STATE_BYTES);
            assert_memory_equal(bytes, expected, sizeof expected);
        }
        if (key_tick == 0) break;
        tick = key_tick - 1;
    }
}

// Reads everything there is. With a recording: what is handed out is what was recorded.
static reading read_bytes(const recording *r, const unsigned char *bytes, size_t size_bytes) {
    test_log log = {0};
    peak_heap heap = {0};
    nb_replay_desc desc = {.hooks = test_hooks(&log, NULL)};
    desc.hooks.allocator = (nb_allocator){peak_alloc, peak_free, &heap};
    reading found = {0};
    // Exactly as large as it says: a byte too far is seen by the sanitizer.
    unsigned char *copy = malloc(size_bytes != 0 ? size_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size_bytes);
    nb_replay *replay = NULL;
    found.opened = nb_replay_open_memory(copy, size_bytes, &desc, &replay);
    if (found.opened == NB_OK) {
        found.info = nb_replay_info_get(replay);
        assert_non_null(found.info.reason);
        assert_true(found.info.end > NB_REPLAY_END_NONE && found.info.end < NB_REPLAY_END_COUNT);
        assert_true(found.info.whole_bytes <= size_bytes);
        if (r != NULL) {
            found.count = recording_read(r, replay, &found.last);
        } else {
            nb_record_tick tick;
            while ((found.last = nb_replay_next(replay, &tick)) == NB_OK) ++found.count;
        }
        read_keys(r, replay, found.info);
    } else {
        assert_null(replay);
        assert_int_equal(test_log_count(&log, NB_ITEM_RECORD_FORMAT), 1);
        assert_true(strlen(log.last_message) > 0);
    }
    nb_replay_close(replay);
    free(copy);
    assert_int_equal(heap.heap.live_count.value, 0);
    assert_true(heap.peak_bytes <= size_bytes + MEMORY_CONSTANT);
    return found;
}

static const recording small = {.seed = 21, .first_tick = 100, .tick_count = 12, .block_ticks = 4, .key_ticks = 8};

TEST(cut_at_each_byte_it_plays_to_its_last_whole_block) {
    memory_sink sink;
    recording_make(&small, &sink);
    uint64_t before = 0;
    for (size_t size = 0; size < sink.size_bytes; ++size) {
        reading found = read_bytes(&small, sink.bytes, size);
        if (found.opened != NB_OK) {
            assert_true(found.opened == NB_ERR_RANGE || (size < 8 && found.opened == NB_ERR_UNSUPPORTED));
            assert_int_equal(before, 0);
            continue;
        }
        assert_int_equal(found.last, NB_EMPTY);
        assert_int_equal(found.info.end, NB_REPLAY_END_CUT);
        assert_true(found.count >= before && found.count % 4 == 0);
        before = found.count;
    }
    assert_int_equal(before, 12);
    free(sink.bytes);
}

TEST(each_flipped_bit_is_noticed) {
    memory_sink sink;
    recording_make(&small, &sink);
    for (size_t i = 0; i < sink.size_bytes; ++i) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            if (test_size(0, 1, 1) == 0 && bit != i % 8) continue;
            sink.bytes[i] ^= (unsigned char)(1u << bit);
            reading found = read_bytes(&small, sink.bytes, sink.size_bytes);
            if (found.opened == NB_OK) {
                assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
                assert_int_equal(found.last, NB_EMPTY);
            }
            sink.bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    assert_int_equal(read_bytes(&small, sink.bytes, sink.size_bytes).info.end, NB_REPLAY_END_WHOLE);
    free(sink.bytes);
}

// --- forged: checksums that are right ---

// Where block `number` begins.
static size_t block_at(const memory_sink *sink, uint32_t number) {
    size_t at = nb_bytes_get_u32(sink->bytes + 12);
    for (uint32_t i = 0; i < number; ++i) at += NBI_BLOCK_BYTES + (size_t)nb_bytes_get_u64(sink->bytes + at + 32);
    return at;
}

static void sign_block(memory_sink *sink, size_t at) {
    uint64_t head_hash = nb_bytes_get_u64(sink->bytes + nb_bytes_get_u32(sink->bytes + 12) - 8);
    nb_bytes_put_u64(sink->bytes + at + 56, nb_hash64(sink->bytes + at, 56, head_hash));
}

static reading forge_u64(uint32_t number, size_t offset, uint64_t value, bool is_u32) {
    memory_sink sink;
    recording_make(&small, &sink);
    size_t at = block_at(&sink, number);
    if (is_u32)
        nb_bytes_put_u32(sink.bytes + at + offset, (uint32_t)value);
    else
        nb_bytes_put_u64(sink.bytes + at + offset, value);
    sign_block(&sink, at);
    reading found = read_bytes(NULL, sink.bytes, sink.size_bytes);
    assert_int_equal(found.opened, NB_OK);
    free(sink.bytes);
    return found;
}

// The last ticks that there can be are recorded and read; one more is forged.
TEST(ticks_beyond_all_games_are_damage) {
    recording last = small;
    last.first_tick = NB_TICK_COUNT_MAX - last.tick_count;
    memory_sink sink;
    recording_make(&last, &sink);
    reading whole = read_bytes(&last, sink.bytes, sink.size_bytes);
    assert_int_equal(whole.info.end, NB_REPLAY_END_WHOLE);
    assert_int_equal(whole.count, last.tick_count);
    // The first two blocks, a key and its ticks, follow each other wherever they are.
    static const uint64_t far_ticks[] = {NB_TICK_COUNT_MAX - 3, NB_TICK_COUNT_MAX + 1, UINT64_MAX / 2, UINT64_MAX - 4};
    for (size_t i = 0; i < sizeof far_ticks / sizeof far_ticks[0]; ++i) {
        for (uint32_t block = 0; block < 2; ++block) {
            nb_bytes_put_u64(sink.bytes + block_at(&sink, block) + 8, far_ticks[i]);
            sign_block(&sink, block_at(&sink, block));
        }
        reading found = read_bytes(NULL, sink.bytes, sink.size_bytes);
        assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
        assert_int_equal(found.count, 0);
        assert_string_equal(found.info.reason, "a block's ticks are beyond NB_TICK_COUNT_MAX");
    }
    free(sink.bytes);
}

// Blocks of `small`: key 100, ticks 100..103, 104..107, key 108, ticks 108..111, end.
TEST(forged_heads_of_blocks_end_it_there) {
    static const struct {
        size_t offset;
        uint64_t value;
        bool is_u32;
    } cases[] = {
        {4, 0, true},
        {4, 9, true},
        {4, 2, true},
        {4, 3, true},
        {8, 0, false},
        {8, 105, false},
        {8, UINT64_MAX, false},
        {8, UINT64_MAX - 3, false},
        {16, 0, true},
        {16, 70000, true},
        {16, UINT32_MAX, true},
        {20, 1, true},
        {24, 0, false},
        {24, 95, false},
        {24, UINT64_MAX, false},
        {24, (16u << 20) + 1, false},
        {32, 0, false},
        {32, 1, false},
        {32, UINT64_MAX, false},
        {32, 1u << 30, false},
        {40, 0, false},
        {48, 0, false},
        {48, 9, false},
        {48, UINT64_MAX, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        reading found = forge_u64(2, cases[i].offset, cases[i].value, cases[i].is_u32);
        assert_true(found.info.end == NB_REPLAY_END_DAMAGED || found.info.end == NB_REPLAY_END_CUT);
        assert_int_equal(found.count, 4); // the block before it
        assert_int_equal(found.last, NB_EMPTY);
    }
}

TEST(forged_ends_are_noticed) {
    assert_int_equal(forge_u64(5, 4, NBI_BLOCK_ERROR, true).info.end, NB_REPLAY_END_DAMAGED); // without a reason
    assert_int_equal(forge_u64(5, 20, 1, true).info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(forge_u64(5, 8, 7, false).info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(forge_u64(5, 16, 1, true).info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(forge_u64(5, 24, 1, false).info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(forge_u64(5, 32, 1, false).info.end, NB_REPLAY_END_DAMAGED);
    memory_sink sink;
    recording_make(&small, &sink);
    unsigned char *longer = calloc(1, sink.size_bytes + 1);
    assert_non_null(longer);
    memcpy(longer, sink.bytes, sink.size_bytes);
    reading found = read_bytes(&small, longer, sink.size_bytes + 1);
    assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(found.count, 12);
    // An error block with each reason, and with none that there is.
    size_t at = block_at(&sink, 5);
    for (uint32_t stop = 1; stop <= NB_RECORD_STOP_COUNT; ++stop) {
        nb_bytes_put_u32(sink.bytes + at + 4, NBI_BLOCK_ERROR);
        nb_bytes_put_u32(sink.bytes + at + 20, stop);
        sign_block(&sink, at);
        found = read_bytes(&small, sink.bytes, sink.size_bytes);
        assert_int_equal(found.info.end, stop < NB_RECORD_STOP_COUNT ? NB_REPLAY_END_STOPPED : NB_REPLAY_END_DAMAGED);
        assert_int_equal(found.count, 12);
    }
    free(longer);
    free(sink.bytes);
}

// A recording of one block of ticks with this content, signed as it should be.
static size_t forge_content(unsigned char *file, size_t capacity, const void *raw, size_t raw_bytes,
                            uint64_t said_bytes, uint32_t tick_count) {
    nb_record_head head = {.tick_rate = {60, 1}};
    size_t head_bytes = nbi_head_size(&head);
    uint64_t head_hash = nbi_head_write(&head, file);
    nbi_compress compress = {.hooks = nb_hooks_default()};
    size_t stored = 0;
    unsigned char *at = file + head_bytes;
    assert_int_equal(nbi_compress_pack(&compress, 3, raw, raw_bytes, at + NBI_BLOCK_BYTES,
                                       capacity - head_bytes - NBI_BLOCK_BYTES, &stored),
                     NB_OK);
    nbi_compress_end(&compress);
    nbi_block block = {.kind = NBI_BLOCK_TICKS,
                       .tick_count = tick_count,
                       .raw_bytes = said_bytes,
                       .stored_bytes = stored,
                       .stored_hash = nb_hash64(at + NBI_BLOCK_BYTES, stored, 0)};
    nbi_block_write(&block, head_hash, at);
    return head_bytes + NBI_BLOCK_BYTES + stored;
}

TEST(forged_ticks_are_refused) {
    static unsigned char file[4096], raw[512];
    static const struct {
        uint32_t events, commands, hashes, zero, ticks;
        uint64_t size, said;
        nb_result expected;
    } cases[] = {
        {0, 0, 0, 0, 1, 24, 24, NB_EMPTY}, // a right one
        {1, 1, 1, 0, 1, 104, 104, NB_EMPTY},
        {1, 0, 0, 0, 1, 24, 24, NB_ERR_RANGE},
        {0, 1, 0, 0, 1, 24, 24, NB_ERR_RANGE},
        {0, 0, 1, 0, 1, 24, 24, NB_ERR_RANGE},
        {0, 0, 0, 1, 1, 24, 24, NB_ERR_RANGE},
        {UINT32_MAX, 0, 0, 0, 1, 512, 512, NB_ERR_RANGE},
        {0, UINT32_MAX, 0, 0, 1, 512, 512, NB_ERR_RANGE},
        {0, 0, UINT32_MAX, 0, 1, 512, 512, NB_ERR_RANGE},
        {NB_INPUT_COUNT_LIMIT + 1, 0, 0, 0, 1, 512, 512, NB_ERR_RANGE},
        {0, 0, 0, 0, 1, 25, 25, NB_ERR_RANGE}, // a byte behind the last tick
        {0, 0, 0, 0, 2, 48, 48, NB_EMPTY},
        {0, 0, 0, 0, 1, 48, 48, NB_ERR_RANGE},
        {2, 0, 0, 0, 2, 48, 48, NB_ERR_RANGE}, // the first does not fit, and a second would be behind it
        {1, 0, 0, 0, 2, 72, 72, NB_ERR_RANGE}, // the second does not fit
        {0, 0, 0, 0, 1, 24, 48, NB_ERR_RANGE}, // less in the frame than said
        {0, 0, 0, 0, 1, 48, 24, NB_ERR_RANGE}, // more
        {0, 0, 0, 0, 1, 24, 16u << 20, NB_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        memset(raw, 0, sizeof raw);
        nb_bytes_put_u32(raw, cases[i].events), nb_bytes_put_u32(raw + 4, cases[i].commands);
        nb_bytes_put_u32(raw + 16, cases[i].hashes), nb_bytes_put_u32(raw + 20, cases[i].zero);
        size_t size = forge_content(file, sizeof file, raw, (size_t)cases[i].size, cases[i].said, cases[i].ticks);
        reading found = read_bytes(NULL, file, size);
        assert_int_equal(found.opened, NB_OK);
        assert_int_equal(found.last, cases[i].expected);
        assert_int_equal(found.count, cases[i].expected == NB_EMPTY ? cases[i].ticks : 0);
    }
}

TEST(a_forged_frame_is_refused) {
    static unsigned char file[4096], raw[24];
    size_t size = forge_content(file, sizeof file, raw, sizeof raw, sizeof raw, 1);
    nb_record_head head = {.tick_rate = {60, 1}};
    size_t at = nbi_head_size(&head);
    uint64_t head_hash = nb_bytes_get_u64(file + at - 8);
    // Each byte of the zstd frame, with checksums that are right.
    for (size_t i = at + NBI_BLOCK_BYTES; i < size; ++i) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            file[i] ^= (unsigned char)(1u << bit);
            nb_bytes_put_u64(file + at + 40, nb_hash64(file + at + NBI_BLOCK_BYTES, size - at - NBI_BLOCK_BYTES, 0));
            nb_bytes_put_u64(file + at + 56, nb_hash64(file + at, 56, head_hash));
            reading found = read_bytes(NULL, file, size);
            assert_int_equal(found.opened, NB_OK);
            assert_true(found.last == NB_ERR_RANGE || found.last == NB_EMPTY);
            file[i] ^= (unsigned char)(1u << bit);
        }
    }
}

TEST(forged_heads_are_refused) {
    memory_sink sink;
    recording_make(&small, &sink);
    static const struct {
        size_t offset;
        uint32_t value;
        nb_result expected;
    } cases[] = {
        {0, 0, NB_ERR_UNSUPPORTED},     {8, 0, NB_ERR_UNSUPPORTED},     {8, 2, NB_ERR_UNSUPPORTED},
        {12, 0, NB_ERR_RANGE},          {12, UINT32_MAX, NB_ERR_RANGE}, {48, 256, NB_ERR_RANGE},
        {52, UINT32_MAX, NB_ERR_RANGE}, {56, UINT32_MAX, NB_ERR_RANGE}, {56, (1u << 20) + 1, NB_ERR_RANGE},
        {60, 16, NB_ERR_RANGE},         {32, 0, NB_ERR_RANGE},          {36, 1, NB_ERR_RANGE},
        {40, 0, NB_ERR_RANGE},          {44, 1, NB_ERR_RANGE},
    };
    uint32_t head_bytes = nb_bytes_get_u32(sink.bytes + 12);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        uint32_t before = nb_bytes_get_u32(sink.bytes + cases[i].offset);
        nb_bytes_put_u32(sink.bytes + cases[i].offset, cases[i].value);
        nb_bytes_put_u64(sink.bytes + head_bytes - 8, nb_hash64(sink.bytes, head_bytes - 8, 0));
        assert_int_equal(read_bytes(NULL, sink.bytes, sink.size_bytes).opened, cases[i].expected);
        nb_bytes_put_u32(sink.bytes + cases[i].offset, before);
    }
    free(sink.bytes);
}

TEST(a_block_of_another_file_does_not_pass) {
    recording other = small;
    memory_sink sink, foreign;
    recording_make(&small, &sink);
    other.seed = small.seed;
    memset(&foreign, 0, sizeof foreign);
    nb_recorder_desc desc = recording_desc(&other, &foreign);
    desc.head.seed = 1; // another head
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(&other, recorder), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_int_equal(foreign.size_bytes, sink.size_bytes);
    size_t at = block_at(&sink, 2);
    memcpy(sink.bytes + at, foreign.bytes + at, sink.size_bytes - at);
    reading found = read_bytes(&small, sink.bytes, sink.size_bytes);
    assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(found.count, 4);
    free(sink.bytes);
    free(foreign.bytes);
}

TEST(a_block_that_is_missing_or_twice_is_noticed) {
    memory_sink sink;
    recording_make(&small, &sink);
    size_t second = block_at(&sink, 1), third = block_at(&sink, 2);
    unsigned char *other = malloc(2 * sink.size_bytes);
    assert_non_null(other);
    memcpy(other, sink.bytes, second);
    memcpy(other + second, sink.bytes + third, sink.size_bytes - third);
    reading found = read_bytes(NULL, other, sink.size_bytes - (third - second));
    assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(found.count, 0);
    memcpy(other, sink.bytes, third);
    memcpy(other + third, sink.bytes + second, sink.size_bytes - second);
    found = read_bytes(&small, other, sink.size_bytes + third - second);
    assert_int_equal(found.info.end, NB_REPLAY_END_DAMAGED);
    assert_int_equal(found.count, 4);
    free(other);
    free(sink.bytes);
}

// --- seeking ---

TEST(seeking_finds_each_tick) {
    recording r = {.seed = 5, .first_tick = 1000, .tick_count = 300, .block_ticks = 7, .key_ticks = 50};
    memory_sink sink;
    recording_make(&r, &sink);
    test_log log = {0};
    nb_replay_desc desc = quiet_replay(&log, NULL);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, &desc, &replay), NB_OK);
    uint64_t random = test_seed("seeking_finds_each_tick");
    made_tick made;
    nb_record_tick tick;
    for (uint32_t i = 0; i < 2000; ++i) {
        uint64_t wanted = 1000 + test_random(&random) % 300;
        assert_int_equal(nb_replay_seek(replay, wanted), NB_OK);
        for (uint64_t j = test_random(&random) % 4; j > 0 && wanted < 1300; --j, ++wanted) {
            assert_int_equal(nb_replay_next(replay, &tick), NB_OK);
            assert_true(ticks_equal(&tick, make_tick(&made, r.seed, wanted)));
        }
        uint64_t key_tick = 0;
        size_t size = 0;
        if (wanted < 1300) assert_int_equal(nb_replay_key_find(replay, wanted, &key_tick, &size), NB_OK);
        if (wanted < 1300) assert_int_equal(key_tick, 1000 + (wanted - 1000) / 50 * 50);
    }
    assert_int_equal(nb_replay_seek(replay, 1300), NB_OK);
    assert_int_equal(nb_replay_next(replay, &tick), NB_EMPTY);
    assert_int_equal(nb_replay_seek(replay, 999), NB_ERR_RANGE);
    assert_int_equal(nb_replay_seek(replay, 1301), NB_ERR_RANGE);
    assert_int_equal(nb_replay_seek(replay, UINT64_MAX), NB_ERR_RANGE);
    assert_int_equal(nb_replay_next(replay, &tick), NB_EMPTY); // where it was
    assert_int_equal(nb_replay_key_find(replay, 999, NULL, NULL), NB_EMPTY);
    unsigned char bytes[STATE_BYTES];
    assert_int_equal(nb_replay_key_read(replay, 1001, bytes, sizeof bytes), NB_EMPTY);
    assert_int_equal(nb_replay_key_read(replay, 1050, bytes, sizeof bytes - 1), NB_FULL);
    assert_int_equal(nb_replay_key_read(replay, 1050, bytes, sizeof bytes), NB_OK);
    nb_replay_close(replay);
    free(sink.bytes);
}

TEST(a_recording_without_key_states_has_none) {
    recording r = {.seed = 5, .tick_count = 30, .block_ticks = 7};
    memory_sink sink;
    recording_make(&r, &sink);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    assert_int_equal(nb_replay_key_find(replay, 29, NULL, NULL), NB_EMPTY);
    nb_states *states = NULL;
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    assert_int_equal(nb_replay_load(replay, 29, states, NULL), NB_EMPTY);
    nb_states_destroy(states);
    nb_replay_close(replay);
    free(sink.bytes);
}

TEST(a_forged_block_leaves_the_place_where_it_was) {
    static unsigned char file[4096], raw[48];
    nb_bytes_put_u32(raw, 1); // an event that is not there
    size_t size = forge_content(file, sizeof file, raw, 24, 24, 1);
    test_log log = {0};
    nb_replay_desc desc = quiet_replay(&log, NULL);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(file, size, &desc, &replay), NB_OK);
    assert_int_equal(nb_replay_seek(replay, 1), NB_OK);
    assert_int_equal(nb_replay_seek(replay, 0), NB_ERR_RANGE);
    nb_record_tick tick;
    assert_int_equal(nb_replay_next(replay, &tick), NB_EMPTY);
    nb_replay_close(replay);
}

// --- key states into memory ---

TEST(a_key_state_above_the_limit_takes_no_memory) {
    memory_sink sink = {0};
    recording r = {.block_ticks = 4};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    size_t size = (size_t)8 << 20; // of zeros: some hundred bytes in the file
    void *zeros = calloc(1, size);
    assert_non_null(zeros);
    assert_int_equal(nb_recorder_push_state(recorder, 0, zeros, size), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_true(sink.size_bytes < 4096);
    peak_heap heap = {0};
    test_log log = {0};
    nb_replay_desc replay_desc = {.state_bytes_max = 1u << 20, .hooks = test_hooks(&log, NULL)};
    replay_desc.hooks.allocator = (nb_allocator){peak_alloc, peak_free, &heap};
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, &replay_desc, &replay), NB_OK);
    nb_states *states = NULL;
    nb_states_desc states_desc = {.hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_states_create(&states_desc, &states), NB_OK);
    assert_int_equal(nb_replay_load(replay, 0, states, NULL), NB_ERR_RANGE);
    assert_true(heap.peak_bytes < 1u << 20);
    nb_replay_close(replay);
    // Within the limit it is unpacked, and is no save of these states.
    replay_desc.state_bytes_max = size;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, &replay_desc, &replay), NB_OK);
    assert_int_equal(nb_replay_load(replay, 0, states, NULL), NB_ERR_UNSUPPORTED);
    nb_replay_close(replay);
    assert_int_equal(heap.heap.live_count.value, 0);
    nb_states_destroy(states);
    free(zeros);
    free(sink.bytes);
}

TEST(a_forged_key_state_is_refused) {
    memory_sink sink;
    recording_make(&small, &sink);
    size_t at = block_at(&sink, 0);
    nb_bytes_put_u64(sink.bytes + at + 24, STATE_BYTES + 1);
    sign_block(&sink, at);
    test_log log = {0};
    test_heap heap = {0};
    nb_replay_desc desc = quiet_replay(&log, &heap);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, &desc, &replay), NB_OK);
    unsigned char bytes[STATE_BYTES + 1];
    assert_int_equal(nb_replay_key_read(replay, 100, bytes, sizeof bytes), NB_ERR_RANGE);
    nb_states *states = NULL;
    assert_int_equal(nb_states_create(NULL, &states), NB_OK);
    assert_int_equal(nb_replay_load(replay, 100, states, NULL), NB_ERR_RANGE);
    nb_states_destroy(states);
    nb_replay_close(replay);
    assert_int_equal(heap.live_count.value, 0);
    free(sink.bytes);
}

// --- files and memory ---

TEST(files_are_read) {
    char path[] = "test_replay_file.nbr";
    recording r = {.seed = 5, .tick_count = 30, .block_ticks = 7, .key_ticks = 10};
    nb_recorder_desc desc = recording_desc(&r, NULL);
    desc.sink.write = NULL;
    desc.path = path;
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    memset(path, 'x', strlen(path)); // the caller's strings are no longer needed
    assert_int_equal(recording_feed(&r, recorder), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    test_log log = {0};
    test_heap heap = {0};
    nb_replay_desc replay_desc = quiet_replay(&log, &heap);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open("test_replay_file.nbr", &replay_desc, &replay), NB_OK);
    nb_result last;
    assert_int_equal(recording_read(&r, replay, &last), 30);
    nb_replay_close(replay);
    replay = NULL;
    replay_desc.file_bytes_max = 100;
    assert_int_equal(nb_replay_open("test_replay_file.nbr", &replay_desc, &replay), NB_ERR_RANGE);
    assert_int_equal(nb_replay_open("no_such_file.nbr", &replay_desc, &replay), NB_ERR_OS);
    assert_int_equal(nb_replay_open("/", &replay_desc, &replay), NB_ERR_OS);
    assert_int_equal(nb_replay_open("/dev/zero", &replay_desc, &replay), NB_ERR_OS);
    FILE *empty = fopen("test_replay_file.nbr", "w");
    assert_non_null(empty);
    fclose(empty);
    assert_int_equal(nb_replay_open("test_replay_file.nbr", &replay_desc, &replay), NB_ERR_UNSUPPORTED);
    assert_null(replay);
    assert_int_equal(heap.live_count.value, 0);
    remove("test_replay_file.nbr");
}

TEST(every_failed_allocation_is_survived) {
    memory_sink sink;
    recording_make(&small, &sink);
    bool has_passed = false;
    for (uint64_t fail_at = 1; fail_at < 50 && !has_passed; ++fail_at) {
        test_log log = {0};
        test_heap heap = {.fail_at = fail_at};
        nb_replay_desc desc = quiet_replay(&log, &heap);
        nb_replay *replay = NULL;
        nb_result result = nb_replay_open_memory(sink.bytes, sink.size_bytes, &desc, &replay);
        unsigned char bytes[STATE_BYTES];
        if (result == NB_OK) {
            nb_record_tick tick;
            for (uint32_t i = 0; i < 2 && result == NB_OK; ++i) result = nb_replay_seek(replay, 100 + i * 11);
            if (result == NB_OK) result = nb_replay_next(replay, &tick);
            if (result == NB_OK) result = nb_replay_key_read(replay, 108, bytes, sizeof bytes);
            // Again: what had no memory is there now.
            if (result == NB_ERR_MEMORY) assert_int_equal(nb_replay_seek(replay, 100), NB_OK);
            if (result == NB_ERR_MEMORY) assert_int_equal(nb_replay_next(replay, &tick), NB_OK);
        } else {
            assert_null(replay);
        }
        assert_true(result == NB_OK || result == NB_ERR_MEMORY);
        nb_replay_close(replay);
        has_passed = heap.call_count.value < fail_at;
        assert_int_equal(heap.live_count.value, 0);
    }
    assert_true(has_passed);
    free(sink.bytes);
}

// Random changes with checksums made right again: what a test by hand does not think of.
TEST(random_forgeries_are_survived) {
    uint64_t random = test_seed("random_forgeries_are_survived");
    memory_sink sink;
    recording_make(&small, &sink);
    unsigned char *before = malloc(sink.size_bytes);
    assert_non_null(before);
    memcpy(before, sink.bytes, sink.size_bytes);
    for (uint64_t i = 0, count = test_size(4000, 40000, 400000); i < count; ++i) {
        for (uint64_t j = 1 + test_random(&random) % 3; j > 0; --j)
            sink.bytes[test_random(&random) % sink.size_bytes] = (unsigned char)test_random(&random);
        for (uint32_t b = 0; b < 6; ++b) {
            size_t at = block_at(&(memory_sink){.bytes = before}, b);
            size_t stored = (size_t)nb_bytes_get_u64(before + at + 32);
            nb_bytes_put_u64(sink.bytes + at + 40, nb_hash64(sink.bytes + at + NBI_BLOCK_BYTES, stored, 0));
            nb_bytes_put_u32(sink.bytes + 12, nb_bytes_get_u32(before + 12));
            sign_block(&sink, at);
        }
        read_bytes(NULL, sink.bytes, sink.size_bytes);
        memcpy(sink.bytes, before, sink.size_bytes);
    }
    free(before);
    free(sink.bytes);
}
