// SPDX-License-Identifier: MIT
// Verifying recordings that are not what they should be: cut, flipped, forged. Nothing crashes, nothing wrong is said,
// and memory stays below that of a whole recording, the file and a constant.

#include "record/peak_heap.h"
#include "record/verify_fixture.h"

#include "record/verify_run.h"

// Beside what a whole recording needs: a key state that is too large is never unpacked.
#define STATE_BYTES_MAX ((size_t)1 << 20)
#define MEMORY_CONSTANT ((uint64_t)2 * STATE_BYTES_MAX)

typedef struct outcome {
    nb_result opened, result;
    nb_verify_report report;
    uint64_t peak_bytes;
} outcome;

// Verifies bytes as they are, from the start or from a tick on.
static outcome verify_bytes(const unsigned char *bytes, size_t size_bytes, uint64_t from_tick) {
    test_log log = {0};
    peak_heap heap = {0};
    outcome found = {.result = NB_ERR_MISUSE};
    nb_hooks hooks = test_hooks(&log, NULL);
    hooks.allocator = (nb_allocator){peak_alloc, peak_free, &heap};
    nb_replay_desc replay_desc = {.state_bytes_max = STATE_BYTES_MAX, .hooks = hooks};
    nb_verify_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .from_tick = from_tick, .hooks = hooks};
    // Exactly as large as it says: a byte too far is seen by the sanitizer.
    unsigned char *copy = malloc(size_bytes != 0 ? size_bytes : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size_bytes);
    nb_replay *replay = NULL;
    found.opened = nb_replay_open_memory(copy, size_bytes, &replay_desc, &replay);
    if (found.opened == NB_OK) found.result = nb_replay_verify(replay, &ship_replay_game, &desc, &found.report);
    nb_replay_close(replay);
    free(copy);
    found.peak_bytes = heap.peak_bytes;
    assert_int_equal(heap.heap.live_count.value, 0);
    assert_int_equal(game_fault.live_count, 0);
    return found;
}

static const ship_recording small = {.tick_count = 24, .key_ticks = 8, .has_single = true};

TEST(cut_at_each_byte_it_is_verified_up_to_there) {
    memory_sink sink;
    ship_record(&small, &sink);
    outcome whole = verify_bytes(sink.bytes, sink.size_bytes, 0);
    assert_int_equal(whole.report.verdict, NB_VERDICT_SAME);
    assert_int_equal(whole.report.compared_count, 24);
    uint64_t before = 0;
    for (size_t size = 0; size < sink.size_bytes; size += (size_t)test_size(5, 1, 1)) {
        outcome found = verify_bytes(sink.bytes, size, 0);
        assert_true(found.peak_bytes <= whole.peak_bytes + size + MEMORY_CONSTANT);
        if (found.opened != NB_OK) continue;
        assert_int_equal(found.result, NB_OK);
        assert_int_equal(found.report.notes, NB_VERIFY_RECORDING_CUT);
        bool has_ticks = found.report.compared_count != 0;
        assert_int_equal(found.report.verdict, has_ticks ? NB_VERDICT_SAME : NB_VERDICT_NO_HASHES);
        assert_true(found.report.compared_count >= before && found.report.compared_count % 8 == 0);
        before = found.report.compared_count;
    }
    assert_int_equal(before, 24);
    free(sink.bytes);
}

TEST(a_flipped_bit_never_makes_it_diverge) {
    memory_sink sink;
    ship_record(&small, &sink);
    uint64_t count = 0;
    for (size_t i = 0; i < sink.size_bytes; i += (size_t)test_size(5, 1, 1)) {
        sink.bytes[i] ^= (unsigned char)(1u << i % 8);
        outcome found = verify_bytes(sink.bytes, sink.size_bytes, 0);
        sink.bytes[i] ^= (unsigned char)(1u << i % 8);
        if (found.opened != NB_OK) continue;
        ++count;
        assert_int_equal(found.result, NB_OK);
        assert_true(found.report.verdict == NB_VERDICT_SAME || found.report.verdict == NB_VERDICT_NO_HASHES);
        assert_int_equal(found.report.notes, NB_VERIFY_RECORDING_CUT);
    }
    assert_true(count > 100);
    free(sink.bytes);
}

// --- forged: checksums are right, for a recorder made them ---

typedef struct forgery {
    uint64_t key_tick;    // this key state is
    size_t key_bytes;     // of so many bytes instead; 0 = with a bit flipped
    bool has_key;         // any of it
    uint64_t hash_tick;   // the hash after this tick is another; NBI_TICK_NONE = none
    uint64_t input_tick;  // this tick has one more event; the same
    uint64_t hash_step;   // only every so many ticks have a hash; 0 = all
    uint32_t event_count; // in every tick: so many more, of any kind
    uint64_t *random;     // every number that there is may be another; NULL = none is
} forgery;

#define FORGED_EVENTS_MAX 64u
static nb_input_event forged_events[FORGED_EVENTS_MAX];

static void forge_tick(const forgery *f, nb_record_tick *tick) {
    bool is_more = tick->index == f->input_tick || f->event_count != 0;
    if (tick->index == f->hash_tick) ++tick->hash;
    if (f->hash_step != 0 && tick->index % f->hash_step != 0) tick->hash = 0;
    if (is_more) {
        uint32_t count = f->event_count != 0 ? f->event_count : 1;
        tick->input = (nb_input_view){forged_events, count};
    }
    if (f->random == NULL) return;
    if (test_random(f->random) % 16 == 0) tick->hash = test_random(f->random);
    if (test_random(f->random) % 16 == 0) tick->hash = 0;
    if (test_random(f->random) % 16 == 0) tick->hash_count = 0;
    if (test_random(f->random) % 16 != 0) return;
    uint32_t count = (uint32_t)(test_random(f->random) % FORGED_EVENTS_MAX);
    make_events(forged_events, count, f->random);
    tick->commands = (nb_input_view){count != 0 ? forged_events : NULL, count};
}

static void forge_key(const forgery *f, uint64_t tick, unsigned char **bytes, size_t *size_bytes) {
    bool is_this = f->has_key && tick == f->key_tick;
    if (f->random != NULL) is_this = test_random(f->random) % 4 == 0;
    if (!is_this) return;
    size_t at = f->random != NULL ? (size_t)(test_random(f->random) % *size_bytes) : *size_bytes / 2;
    (*bytes)[at] ^= 1;
    if (f->random != NULL) *size_bytes -= (size_t)(test_random(f->random) % 2);
    if (f->key_bytes == 0) return;
    free(*bytes);
    *bytes = calloc(1, f->key_bytes);
    assert_non_null(*bytes);
    *size_bytes = f->key_bytes;
}

static void copy_key(const forgery *f, nb_replay *replay, nb_recorder *recorder, uint64_t tick) {
    uint64_t key_tick = 0;
    size_t size_bytes = 0;
    if (nb_replay_key_find(replay, tick, &key_tick, &size_bytes) != NB_OK || key_tick != tick) return;
    unsigned char *bytes = malloc(size_bytes);
    assert_non_null(bytes);
    assert_int_equal(nb_replay_key_read(replay, tick, bytes, size_bytes), NB_OK);
    forge_key(f, tick, &bytes, &size_bytes);
    wait_for_writer(recorder);
    assert_int_equal(nb_recorder_push_state(recorder, tick, bytes, size_bytes), NB_OK);
    free(bytes);
}

static void forge(const forgery *f, const memory_sink *from, memory_sink *to) {
    test_log log = {0};
    nb_replay *replay = ship_open(from, &log);
    nb_recorder_desc desc = {
        .head = nb_replay_info_get(replay).head, .sink = sink_of(to), .block_ticks = 8, .queue_count = 256};
    nb_recorder *recorder = NULL;
    nb_record_tick tick;
    memset(to, 0, sizeof *to);
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    copy_key(f, replay, recorder, 0);
    while (nb_replay_next(replay, &tick) == NB_OK) {
        forge_tick(f, &tick);
        wait_for_writer(recorder);
        assert_int_equal(nb_recorder_push(recorder, &tick), NB_OK);
        copy_key(f, replay, recorder, tick.index + 1);
    }
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    nb_replay_close(replay);
}

static outcome verify_forged(const forgery *f, uint64_t from_tick) {
    memory_sink sink, forged;
    ship_record(&small, &sink);
    forge(f, &sink, &forged);
    outcome found = verify_bytes(forged.bytes, forged.size_bytes, from_tick);
    assert_int_equal(found.opened, NB_OK);
    free(sink.bytes);
    free(forged.bytes);
    return found;
}

#define NOTHING .hash_tick = NBI_TICK_NONE, .input_tick = NBI_TICK_NONE

TEST(forged_ticks_are_found_out) {
    outcome found = verify_forged(&(forgery){NOTHING}, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_SAME);
    // Only its hash is another: state and keys say that it is the same.
    found = verify_forged(&(forgery){.hash_tick = 13, .input_tick = NBI_TICK_NONE}, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(found.report.tick, 13);
    assert_string_equal(found.report.provider, "");
    assert_int_equal(found.report.difference.kind, NB_DIFFERENCE_NONE);
    found = verify_forged(&(forgery){.hash_tick = NBI_TICK_NONE, .input_tick = 13}, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(found.report.tick, 13);
    assert_string_equal(found.report.provider, "score");
    // More events than any tick of this game: they are fed, and it is another game.
    found = verify_forged(&(forgery){NOTHING, .event_count = FORGED_EVENTS_MAX}, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(found.report.tick, 0);
}

TEST(forged_input_is_told_from_other_states) {
    memory_sink sink, forged;
    test_log log = {0};
    ship_record(&small, &sink);
    uint64_t random = 3;
    for (uint32_t i = 0; i < 2; ++i) {
        forgery f = {.hash_tick = NBI_TICK_NONE, .input_tick = 13};
        if (i == 1) f = (forgery){NOTHING, .random = &random};
        forge(&f, &sink, &forged);
        nb_replay *here = ship_open(&sink, &log), *there = ship_open(&forged, &log);
        nb_replay_diff diff;
        assert_int_equal(nb_replay_compare(here, there, NULL, NULL, &diff), NB_OK);
        if (i == 0) assert_int_equal(diff.kind, NB_REPLAY_DIFF_INPUT);
        if (i == 0) assert_int_equal(diff.tick, 13);
        if (i == 1) assert_true(diff.kind == NB_REPLAY_DIFF_COMMANDS || diff.kind == NB_REPLAY_DIFF_HASH);
        nb_replay_close(here);
        nb_replay_close(there);
        free(forged.bytes);
    }
    free(sink.bytes);
}

TEST(hashes_now_and_then_find_it_later) {
    // A key state lies between what went wrong and the hash that shows it: it is the recording's, not this run's.
    forgery f = {.hash_tick = NBI_TICK_NONE, .input_tick = 13, .hash_step = 10};
    outcome found = verify_forged(&f, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(found.report.tick, 20);
    assert_int_equal(found.report.compared_count, 3);
    assert_string_equal(found.report.provider, "score");
    assert_int_equal(found.report.difference_tick, 24);
}

// Where a block of ticks begins that has this tick first.
static size_t block_of(const memory_sink *sink, uint64_t tick, nbi_block *block) {
    size_t at = nb_bytes_get_u32(sink->bytes + 12);
    uint64_t head_hash = nb_bytes_get_u64(sink->bytes + at - 8);
    for (;; at += NBI_BLOCK_BYTES + (size_t)block->stored_bytes) {
        assert_true(at + NBI_BLOCK_BYTES <= sink->size_bytes);
        assert_null(nbi_block_read(sink->bytes + at, head_hash, block));
        if (block->kind == NBI_BLOCK_TICKS && block->first_tick == tick) return at;
    }
}

// Puts another number where the first tick of a block says how many events it has; all checksums are made right.
static void forge_block(const memory_sink *from, uint64_t tick, uint32_t event_count, memory_sink *to) {
    nbi_block block;
    size_t at = block_of(from, tick, &block), behind = at + NBI_BLOCK_BYTES + (size_t)block.stored_bytes;
    size_t raw_bytes = (size_t)block.raw_bytes, stored = 0;
    unsigned char *raw = malloc(raw_bytes);
    nbi_compress compress = {.hooks = nb_hooks_default()};
    *to = (memory_sink){.bytes = malloc(from->size_bytes + nbi_compress_bound(raw_bytes))};
    assert_true(raw != NULL && to->bytes != NULL);
    assert_int_equal(
        nbi_compress_unpack(&compress, from->bytes + at + NBI_BLOCK_BYTES, (size_t)block.stored_bytes, raw, raw_bytes),
        NB_OK);
    nb_bytes_put_u32(raw, event_count);
    unsigned char *content = to->bytes + at + NBI_BLOCK_BYTES;
    assert_int_equal(nbi_compress_pack(&compress, 3, raw, raw_bytes, content, nbi_compress_bound(raw_bytes), &stored),
                     NB_OK);
    block.stored_bytes = stored;
    block.stored_hash = nb_hash64(content, stored, 0);
    memcpy(to->bytes, from->bytes, at);
    nbi_block_write(&block, nb_bytes_get_u64(from->bytes + nb_bytes_get_u32(from->bytes + 12) - 8), to->bytes + at);
    memcpy(content + stored, from->bytes + behind, from->size_bytes - behind);
    to->size_bytes = at + NBI_BLOCK_BYTES + stored + from->size_bytes - behind;
    nbi_compress_end(&compress);
    free(raw);
}

TEST(forged_counts_are_refused) {
    memory_sink sink, forged;
    test_log log = {0};
    ship_record(&small, &sink);
    outcome whole = verify_bytes(sink.bytes, sink.size_bytes, 0);
    static const uint32_t counts[] = {60000, NB_INPUT_COUNT_LIMIT + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        forge_block(&sink, 8, counts[i], &forged);
        outcome found = verify_bytes(forged.bytes, forged.size_bytes, 0);
        assert_int_equal(found.opened, NB_OK);
        assert_int_equal(found.result, NB_ERR_RANGE);
        assert_true(found.peak_bytes <= whole.peak_bytes + forged.size_bytes + MEMORY_CONSTANT);
        // What lies behind it is right.
        found = verify_bytes(forged.bytes, forged.size_bytes, 16);
        assert_int_equal(found.report.verdict, NB_VERDICT_SAME);
        nb_replay *here = ship_open(&sink, &log), *there = ship_open(&forged, &log);
        nb_replay_diff diff;
        assert_int_equal(nb_replay_compare(here, there, NULL, NULL, &diff), NB_ERR_RANGE);
        assert_int_equal(nb_replay_compare(there, here, NULL, NULL, &diff), NB_ERR_RANGE);
        nb_replay_close(here);
        nb_replay_close(there);
        free(forged.bytes);
    }
    free(sink.bytes);
}

TEST(forged_key_states_are_refused) {
    // Not looked at where it begins at the start.
    forgery flipped = {NOTHING, .has_key = true, .key_tick = 16};
    assert_int_equal(verify_forged(&flipped, 0).report.verdict, NB_VERDICT_SAME);
    assert_int_equal(verify_forged(&flipped, 20).result, NB_ERR_RANGE);
    assert_int_equal(verify_forged(&flipped, 15).report.verdict, NB_VERDICT_SAME);
    forgery other = {NOTHING, .has_key = true, .key_tick = 16, .key_bytes = 4000};
    assert_true(verify_forged(&other, 20).result < 0);
    // Some bytes of file claim more than is unpacked.
    forgery large = {NOTHING, .has_key = true, .key_tick = 16, .key_bytes = 64u << 20};
    outcome whole = verify_forged(&(forgery){NOTHING}, 20), found = verify_forged(&large, 20);
    assert_int_equal(found.result, NB_ERR_RANGE);
    assert_true(found.peak_bytes <= whole.peak_bytes + MEMORY_CONSTANT);
    // Where it would name the row, the row is not known.
    large.hash_tick = 13;
    found = verify_forged(&large, 0);
    assert_int_equal(found.report.verdict, NB_VERDICT_DIVERGED);
    assert_int_equal(found.report.tick, 13);
    assert_int_equal(found.report.difference.kind, NB_DIFFERENCE_NONE);
    assert_true(found.peak_bytes <= whole.peak_bytes + whole.peak_bytes + MEMORY_CONSTANT);
}

TEST(whatever_is_forged_nothing_crashes) {
    uint64_t random = test_seed("whatever_is_forged_nothing_crashes");
    memory_sink sink;
    ship_record(&small, &sink);
    uint32_t seen[NB_VERDICT_COUNT] = {0}, refused_count = 0;
    for (uint64_t i = 0; i < test_size(60, 600, 6000); ++i) {
        forgery f = {NOTHING, .random = &random};
        memory_sink forged;
        forge(&f, &sink, &forged);
        outcome found = verify_bytes(forged.bytes, forged.size_bytes, i % 3 == 0 ? 20 : 0);
        assert_int_equal(found.opened, NB_OK);
        assert_true(found.result == NB_OK || found.result == NB_ERR_RANGE || found.result == NB_ERR_UNSUPPORTED);
        if (found.result == NB_OK)
            ++seen[found.report.verdict];
        else
            ++refused_count;
        free(forged.bytes);
    }
    assert_true(seen[NB_VERDICT_DIVERGED] > 10 && refused_count > 2);
    assert_int_equal(seen[NB_VERDICT_NOT_DETERMINISTIC], 0);
    assert_int_equal(seen[NB_VERDICT_NONE], 0);
    free(sink.bytes);
}

TEST(every_failed_allocation_is_survived) {
    memory_sink sink;
    ship_record(&(ship_recording){.tick_count = 130, .has_single = true}, &sink);
    bool is_over = false;
    uint32_t memory_count = 0;
    for (uint64_t fail_at = 1; !is_over; fail_at += test_size(3, 1, 1)) {
        test_log log = {0};
        test_heap heap = {.fail_at = fail_at};
        nb_replay_desc replay_desc = quiet_replay(&log, &heap);
        nb_replay *replay = NULL;
        nb_result result = nb_replay_open_memory(sink.bytes, sink.size_bytes, &replay_desc, &replay);
        nb_verify_desc desc = {.worker_count = NB_WORKER_COUNT_NONE, .hooks = test_hooks(&log, &heap)};
        nb_verify_report report;
        game_fault.fault = FAULT_SPEED;
        if (result == NB_OK) result = nb_replay_verify(replay, &ship_replay_game, &desc, &report);
        game_fault.fault = FAULT_NONE;
        is_over = heap.call_count.value < fail_at;
        if (is_over) assert_int_equal(report.difference.row, FAULT_ROW);
        assert_true(result == NB_OK || result == NB_ERR_MEMORY);
        if (result == NB_OK) assert_true(report.verdict == NB_VERDICT_DIVERGED && report.tick == FAULT_TICK);
        memory_count += result == NB_ERR_MEMORY;
        nb_replay_close(replay);
        assert_int_equal(heap.live_count.value, 0);
        assert_int_equal(game_fault.live_count, 0);
    }
    assert_true(memory_count > 10);
    free(sink.bytes);
}
