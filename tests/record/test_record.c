// SPDX-License-Identifier: MIT
// Recorders: what goes in comes out, the frame never waits, failures end a recording and never leave a gap.

#define _DEFAULT_SOURCE // fork, kill, mkfifo, MAP_ANONYMOUS

#include "record/record_fixture.h"

#include "frame/engine/engine_fixture.h"
#include "nebula/save_file.h"
#include "record/recorder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_whole(const recording *r, memory_sink *sink) {
    test_log log = {0};
    test_heap heap = {0};
    nb_replay_desc desc = quiet_replay(&log, &heap);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink->bytes, sink->size_bytes, &desc, &replay), NB_OK);
    nb_replay_info info = nb_replay_info_get(replay);
    assert_int_equal(info.end, NB_REPLAY_END_WHOLE);
    assert_int_equal(info.tick_count, r->tick_count);
    assert_int_equal(info.whole_bytes, sink->size_bytes);
    assert_string_equal(info.head.build_id, "build 7");
    assert_string_equal(info.head.game_name, "test");
    assert_int_equal(info.head.tick_rate.num, 30);
    assert_int_equal(info.head.seed, 99);
    assert_int_equal(info.head.layout_hash, 1234);
    assert_int_equal(info.head.config_bytes, sizeof RECORD_CONFIG);
    assert_memory_equal(info.head.config, RECORD_CONFIG, sizeof RECORD_CONFIG);
    nb_result last;
    assert_int_equal(recording_read(r, replay, &last), r->tick_count);
    assert_int_equal(last, NB_EMPTY);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(random_recordings_come_back) {
    uint64_t random = test_seed("random_recordings_come_back");
    uint64_t count = test_size(40, 400, 4000);
    for (uint64_t i = 0; i < count; ++i) {
        recording r = {.seed = test_random(&random),
                       .first_tick = test_random(&random) >> (test_random(&random) % 64),
                       .tick_count = 1 + test_random(&random) % 200,
                       .key_ticks = test_random(&random) % 40,
                       .block_ticks = (uint32_t)(1 + test_random(&random) % 20)};
        r.first_tick %= NB_TICK_COUNT_MAX - 1000;
        memory_sink sink;
        recording_make(&r, &sink);
        expect_whole(&r, &sink);
        free(sink.bytes);
    }
}

TEST(an_empty_recording_is_whole) {
    recording r = {.block_ticks = 4};
    memory_sink sink;
    recording_make(&r, &sink);
    expect_whole(&r, &sink);
    free(sink.bytes);
}

TEST(a_tick_that_does_not_fit_begins_the_next_block) {
    recording r = {.seed = 5, .tick_count = 300, .block_ticks = 60000};
    memory_sink sink = {0};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    desc.block_bytes = NB_RECORD_BLOCK_BYTES_MIN;
    desc.queue_count = NB_RECORD_QUEUE_COUNT_MAX;
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(&r, recorder), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    expect_whole(&r, &sink);
    free(sink.bytes);
}

// --- a writer that is too slow ---

TEST(a_slow_writer_ends_the_recording_and_never_blocks) {
    test_log log = {0};
    memory_sink sink = {.is_held = {1}};
    recording r = {.seed = 7, .tick_count = 1000, .block_ticks = 1};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    desc.queue_count = 4;
    desc.hooks = test_hooks(&log, NULL);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    made_tick made;
    nb_result result = NB_OK;
    uint64_t taken = 0;
    for (; taken < 1000 && result == NB_OK; ++taken)
        result = nb_recorder_push(recorder, make_tick(&made, r.seed, taken));
    --taken;
    assert_int_equal(result, NB_FULL);
    assert_int_equal(taken, 4);
    // For good: what would follow now has a gap before it.
    nbi_atomic_store_release_u32(&sink.is_held, 0);
    for (int i = 0; i < 5; ++i)
        assert_int_equal(nb_recorder_push(recorder, make_tick(&made, r.seed, taken)), NB_CLOSED);
    assert_int_equal(nb_recorder_flush(recorder), NB_CLOSED);
    nb_recorder_stats stats = nb_recorder_stats_get(recorder);
    assert_int_equal(stats.stop, NB_RECORD_STOP_QUEUE_FULL);
    assert_int_equal(stats.lost_count, 6);
    assert_int_equal(stats.tick_count, taken);
    assert_int_equal(stats.queue_peak_count, 4);
    assert_int_equal(test_log_count(&log, NB_ITEM_RECORD_STOPPED), 1);
    assert_int_equal(nb_recorder_destroy(recorder), NB_FULL);

    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    nb_replay_info info = nb_replay_info_get(replay);
    assert_int_equal(info.end, NB_REPLAY_END_STOPPED);
    assert_int_equal(info.stop, NB_RECORD_STOP_QUEUE_FULL);
    nb_result last;
    assert_int_equal(recording_read(&r, replay, &last), taken);
    nb_replay_close(replay);
    free(sink.bytes);
}

TEST(a_tick_larger_than_a_block_ends_the_recording) {
    test_log log = {0};
    memory_sink sink = {0};
    recording r = {.seed = 7, .tick_count = 3, .block_ticks = 8};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    desc.block_bytes = NB_RECORD_BLOCK_BYTES_MIN;
    desc.hooks = test_hooks(&log, NULL);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(&r, recorder), NB_OK);
    static nb_input_event events[64];
    nb_record_tick large = {.index = 3, .input = {events, 64}};
    assert_int_equal(nb_recorder_push(recorder, &large), NB_ERR_RANGE);
    assert_int_equal(nb_recorder_push(recorder, &large), NB_CLOSED);
    assert_int_equal(nb_recorder_destroy(recorder), NB_ERR_RANGE);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    assert_int_equal(nb_replay_info_get(replay).stop, NB_RECORD_STOP_TOO_LARGE);
    nb_result last;
    assert_int_equal(recording_read(&r, replay, &last), 3);
    nb_replay_close(replay);
    free(sink.bytes);
}

TEST(a_writer_that_hangs_is_waited_for_and_asked_again) {
    test_log log = {0};
    test_heap heap = {0};
    memory_sink sink = {.is_held = {1}};
    recording r = {.seed = 7, .tick_count = 10, .block_ticks = 4};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    desc.hooks = test_hooks(&log, &heap);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(&r, recorder), NB_OK);
    recorder->close_ns = 1000000;
    assert_int_equal(nb_recorder_destroy(recorder), NB_BUSY);
    nbi_atomic_store_release_u32(&sink.is_held, 0);
    recorder->close_ns = NB_RECORD_CLOSE_NS;
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
    expect_whole(&r, &sink);
    free(sink.bytes);
}

TEST(key_states_wait_for_the_writer) {
    memory_sink sink = {.is_held = {1}};
    recording r = {.seed = 7, .block_ticks = 4};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    unsigned char bytes[STATE_BYTES];
    make_state(bytes, 0);
    assert_int_equal(nb_recorder_push_state(recorder, 0, bytes, sizeof bytes), NB_OK);
    assert_int_equal(nb_recorder_push_state(recorder, 0, bytes, sizeof bytes), NB_OK);
    assert_int_equal(nb_recorder_push_state(recorder, 0, bytes, sizeof bytes), NB_BUSY);
    nbi_atomic_store_release_u32(&sink.is_held, 0);
    nb_result result;
    while ((result = nb_recorder_push_state(recorder, 0, bytes, sizeof bytes)) == NB_BUSY) nbi_thread_yield();
    assert_int_equal(result, NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    free(sink.bytes);
}

// --- writing that fails ---

TEST(a_failed_write_leaves_a_file_that_is_right_up_to_there) {
    recording r = {.seed = 3, .tick_count = 60, .block_ticks = 5, .key_ticks = 20};
    uint32_t failed_count = 0;
    for (uint32_t fail_at = 1; fail_at < 40; ++fail_at) {
        test_log log = {0};
        test_heap heap = {0};
        memory_sink sink = {.fail_at = fail_at};
        nb_recorder_desc desc = recording_desc(&r, &sink);
        desc.hooks = test_hooks(&log, &heap);
        nb_recorder *recorder = NULL;
        assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
        nb_result fed = recording_feed(&r, recorder);
        assert_true(fed == NB_OK || fed == NB_ERR_OS);
        nb_result result = nb_recorder_destroy(recorder);
        assert_int_equal(heap.live_count.value, 0);
        bool has_failed = sink.write_count >= fail_at;
        assert_int_equal(result, has_failed ? NB_ERR_OS : NB_OK);
        assert_int_equal(sink.write_count, has_failed ? fail_at : sink.write_count); // nothing after the failure
        failed_count += has_failed;
        if (fail_at > 1) {
            nb_replay *replay = NULL;
            assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
            nb_result last;
            uint64_t count = recording_read(&r, replay, &last);
            assert_int_equal(last, NB_EMPTY);
            if (!has_failed) assert_int_equal(count, 60);
            if (has_failed) assert_int_equal(nb_replay_info_get(replay).end, NB_REPLAY_END_CUT);
            nb_replay_close(replay);
        }
        free(sink.bytes);
    }
    assert_int_equal(failed_count, 17); // head, 12 blocks, 3 key states, the end
}

TEST(a_full_disk_ends_the_recording) {
    FILE *full = fopen("/dev/full", "w");
    if (full == NULL) skip();
    fclose(full);
    test_log log = {0};
    recording r = {.seed = 3, .tick_count = 200, .block_ticks = 5};
    nb_recorder_desc desc = recording_desc(&r, NULL);
    desc.sink.write = NULL;
    desc.path = "/dev/full";
    desc.hooks = test_hooks(&log, NULL);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    nb_result fed = NB_OK;
    made_tick made;
    uint64_t taken = 0;
    // The head is refused at once; the frame hears of it.
    while (nb_recorder_stats_get(recorder).result == NB_OK) nbi_thread_yield();
    for (; taken < 10 && fed == NB_OK; ++taken) fed = nb_recorder_push(recorder, make_tick(&made, r.seed, taken));
    assert_int_equal(fed, NB_ERR_OS);
    assert_int_equal(nb_recorder_stats_get(recorder).stop, NB_RECORD_STOP_WRITE);
    assert_int_equal(nb_recorder_destroy(recorder), NB_ERR_OS);
    assert_int_equal(test_log_count(&log, NB_ITEM_RECORD_FILE), 1);
}

TEST(a_path_that_cannot_be_made_is_refused) {
    test_log log = {0};
    test_heap heap = {0};
    nb_recorder_desc desc = {.path = "/no/such/folder/file.nbr", .hooks = test_hooks(&log, &heap)};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_ERR_OS);
    assert_not_created(recorder, &heap, &log, NB_ITEM_RECORD_FILE);
}

TEST(every_failed_allocation_is_survived) {
    recording r = {.seed = 3, .tick_count = 40, .block_ticks = 5, .key_ticks = 20};
    bool has_passed = false;
    for (uint64_t fail_at = 1; fail_at < 100 && !has_passed; ++fail_at) {
        test_log log = {0};
        test_heap heap = {.fail_at = fail_at};
        memory_sink sink = {0};
        nb_recorder_desc desc = recording_desc(&r, &sink);
        desc.hashes_states = true;
        desc.hooks = test_hooks(&log, &heap);
        nb_recorder *recorder = NULL;
        nb_result result = nb_recorder_create(&desc, &recorder);
        if (result == NB_OK) {
            nb_result fed = recording_feed(&r, recorder);
            assert_true(fed == NB_OK || fed == NB_ERR_MEMORY || fed == NB_ERR_OS);
            result = nb_recorder_destroy(recorder);
            if (fed == NB_ERR_MEMORY) assert_int_equal(result, NB_OK); // a key state less, and ended by the test
            has_passed = heap.call_count.value < fail_at;
            if (has_passed) assert_int_equal(result, NB_OK);
        } else {
            assert_int_equal(result, NB_ERR_MEMORY);
            assert_null(recorder);
        }
        assert_int_equal(heap.live_count.value, 0);
        free(sink.bytes);
    }
    assert_true(has_passed);
}

// Calls of one thread: the writer may take memory, the frame not.
typedef struct thread_heap {
    test_heap heap;
    uint64_t thread_id, own_count;
} thread_heap;

static void *thread_heap_alloc(void *user, size_t size_bytes, size_t alignment) {
    thread_heap *h = user;
    if (nbi_thread_id() == h->thread_id) ++h->own_count;
    return test_heap_alloc(&h->heap, size_bytes, alignment);
}

static void thread_heap_free(void *user, void *memory, size_t size_bytes) {
    test_heap_free(&((thread_heap *)user)->heap, memory, size_bytes);
}

TEST(pushing_needs_no_heap) {
    thread_heap h = {.thread_id = nbi_thread_id()};
    memory_sink sink = {0};
    recording r = {.seed = 3, .tick_count = 200, .block_ticks = 5, .key_ticks = 20};
    nb_recorder_desc desc = recording_desc(&r, &sink);
    desc.hooks.allocator = (nb_allocator){thread_heap_alloc, thread_heap_free, &h};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(&r, recorder), NB_OK);
    uint64_t calls = h.own_count;
    recording more = {.seed = 3, .first_tick = 200, .tick_count = 1000, .block_ticks = 5, .key_ticks = 20};
    assert_int_equal(recording_feed(&more, recorder), NB_OK);
    assert_int_equal(h.own_count, calls);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    assert_int_equal(h.heap.live_count.value, 0);
    free(sink.bytes);
}

#define KILLED_PATH "test_record_killed.nbr"

// Records until somebody ends the process; *pushed counts the ticks that the recorder has taken.
static void record_for_ever(const recording *r, nb_atomic_u64 *pushed) {
    nb_recorder_desc desc = recording_desc(r, NULL);
    desc.sink.write = NULL;
    desc.path = KILLED_PATH;
    nb_recorder *recorder = NULL;
    if (nb_recorder_create(&desc, &recorder) != NB_OK) _exit(1);
    made_tick made;
    for (uint64_t tick = 0; tick < UINT32_MAX; ++tick) {
        while (is_queue_full(recorder)) nbi_thread_yield();
        if (nb_recorder_push(recorder, make_tick(&made, r->seed, tick)) != NB_OK) _exit(1);
        nbi_atomic_store_relaxed_u64(pushed, tick + 1);
    }
    _exit(1);
}

TEST(a_killed_process_loses_the_blocks_of_the_queue_at_most) {
    recording r = {.seed = 17, .block_ticks = 3};
    nb_atomic_u64 *pushed = mmap(NULL, sizeof *pushed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(pushed != MAP_FAILED);
    for (int size_bytes = 1000; size_bytes < 20000; size_bytes += 3700) {
        remove(KILLED_PATH);
        nbi_atomic_store_relaxed_u64(pushed, 0);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) record_for_ever(&r, pushed);
        struct stat status = {0};
        int ended = 0;
        while ((stat(KILLED_PATH, &status) != 0 || status.st_size < size_bytes) && waitpid(child, &ended, WNOHANG) == 0)
            nbi_thread_yield();
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &ended, 0), child);
        nb_replay *replay = NULL;
        assert_int_equal(nb_replay_open(KILLED_PATH, NULL, &replay), NB_OK);
        nb_replay_info info = nb_replay_info_get(replay);
        assert_int_equal(info.end, NB_REPLAY_END_CUT);
        assert_true(info.size_bytes >= (uint64_t)size_bytes);
        nb_result last;
        uint64_t count = recording_read(&r, replay, &last);
        assert_int_equal(last, NB_EMPTY);
        assert_true(count > 0 && count % 3 == 0);
        assert_int_equal(count, info.tick_count);
        uint64_t taken = nbi_atomic_load_relaxed_u64(pushed);
        assert_true(taken <= count + NB_RECORD_QUEUE_COUNT_DEFAULT * r.block_ticks);
        nb_replay_close(replay);
    }
    remove(KILLED_PATH);
    munmap(pushed, sizeof *pushed);
}

// --- a disk of the test's own ---

typedef struct disk {
    int open_error, sync_error, close_error;
    int folder_error;
    uint32_t sync_count, write_count, folder_count;
} disk;

static int disk_open(void *user, const char *path, nbi_file *file) {
    (void)path;
    file->os = 1;
    return ((disk *)user)->open_error;
}

static int disk_write(void *user, nbi_file file, const void *bytes, size_t size_bytes) {
    (void)file, (void)bytes, (void)size_bytes;
    ++((disk *)user)->write_count;
    return 0;
}

static int disk_sync(void *user, nbi_file file) {
    (void)file;
    ++((disk *)user)->sync_count;
    return ((disk *)user)->sync_error;
}

static int disk_close(void *user, nbi_file file) {
    (void)file;
    return ((disk *)user)->close_error;
}

static int disk_sync_folder(void *user, const char *path) {
    assert_string_equal(path, "disk");
    assert_int_equal(((disk *)user)->write_count, 0); // the name lasts before the first byte does
    ++((disk *)user)->folder_count;
    return ((disk *)user)->folder_error;
}

static nb_result record_to(disk *d, bool is_synced) {
    test_log log = {0};
    recording r = {.seed = 3, .tick_count = 20, .block_ticks = 5};
    nb_recorder_desc desc = recording_desc(&r, NULL);
    desc.sink.write = NULL;
    desc.path = "disk";
    desc.is_synced = is_synced;
    desc.hooks = test_hooks(&log, NULL);
    nbi_file_ops ops = {.open = disk_open, .write = disk_write, .sync = disk_sync, .close = disk_close, .user = d};
    ops.sync_folder = disk_sync_folder;
    nb_recorder *recorder = NULL;
    nb_result result = nbi_recorder_create(&desc, &ops, false, &recorder);
    if (result != NB_OK) return result;
    recording_feed(&r, recorder);
    return nb_recorder_destroy(recorder);
}

TEST(blocks_are_flushed_where_that_is_asked_for) {
    disk plain = {0}, synced = {0}, bad_sync = {.sync_error = 5}, bad_close = {.close_error = 5};
    disk bad_open = {.open_error = 13}, bad_folder = {.folder_error = 5};
    assert_int_equal(record_to(&plain, false), NB_OK);
    assert_int_equal(plain.sync_count, 1);
    assert_int_equal(plain.write_count, 6);
    assert_int_equal(plain.folder_count, 1);
    assert_int_equal(record_to(&synced, true), NB_OK);
    assert_int_equal(synced.sync_count, 6);
    assert_int_equal(record_to(&bad_sync, false), NB_ERR_OS);
    bad_sync = (disk){.sync_error = 5};
    assert_int_equal(record_to(&bad_sync, true), NB_ERR_OS);
    assert_int_equal(record_to(&bad_close, false), NB_ERR_OS);
    assert_int_equal(record_to(&bad_open, false), NB_ERR_OS);
    assert_int_equal(record_to(&bad_folder, false), NB_ERR_OS);
    assert_int_equal(bad_folder.write_count, 0);
}

// --- an engine ---

typedef struct game {
    uint64_t sum, ticks;
    uint64_t disturb_at; // this tick goes wrong; UINT64_MAX = none
} game;

// A 60th of a second, rounded up: each frame has a tick.
#define TICK_NS UINT64_C(16666667)

// What is registered: the first two fields.
#define GAME_BYTES 16u

static nb_result game_tick(const nb_context *context, void *user) {
    game *g = user;
    for (uint32_t i = 0; i < context->input.count; ++i) g->sum = g->sum * 31 + context->input.events[i].code;
    for (uint32_t i = 0; i < context->commands.count; ++i) g->sum = g->sum * 37 + context->commands.events[i].code;
    g->sum += context->tick->index;
    ++g->ticks;
    if (context->tick->index == g->disturb_at) ++g->sum;
    return NB_OK;
}

// Commands depend on frames, not on ticks: only the recording can bring them back.
static nb_result game_frame(const nb_context *context, void *user) {
    (void)user;
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = (uint32_t)context->frame_index * 7};
    return context->frame_index % 3 == 0 ? nb_context_command(context, &command) : NB_OK;
}

static void game_open(rig *r, game *g, bool has_commands) {
    nb_engine_desc desc = rig_desc(0);
    desc.hashes_ticks = true;
    desc.seed = 77;
    rig_open_desc(r, desc);
    *g = (game){.disturb_at = UINT64_MAX};
    nb_provider_desc state = {.name = "game", .data = g, .size_bytes = GAME_BYTES};
    nb_provider_desc score = {.name = "zero", .data = &g->disturb_at, .size_bytes = 8, .flags = NB_PROVIDER_LOCAL};
    assert_int_equal(nb_states_add(nb_engine_states(r->engine), &state, NULL), NB_OK);
    assert_int_equal(nb_states_add(nb_engine_states(r->engine), &score, NULL), NB_OK);
    attach(r,
           (nb_module_desc){.name = "game", .tick = game_tick, .frame = has_commands ? game_frame : NULL, .user = g});
}

static void game_run(rig *r, uint64_t ticks, uint64_t *random) {
    nb_input *input = nb_engine_input(r->engine);
    for (uint64_t i = 0; i < ticks; ++i) {
        nb_input_event event = {.timestamp_ns = 0, .kind = NB_INPUT_PRESS, .code = (uint32_t)test_random(random)};
        if (event.code % 2 == 0) assert_int_equal(nb_input_send(input, &event), NB_OK);
        assert_int_equal(nb_engine_frame_delta(r->engine, TICK_NS), NB_OK);
    }
}

static void record_game(memory_sink *sink, uint64_t *run_hash, bool hashes_states) {
    rig r;
    game g;
    uint64_t random = 11;
    game_open(&r, &g, true);
    memset(sink, 0, sizeof *sink);
    nb_recorder_desc desc = {.sink = sink_of(sink),
                             .key_ticks = 20,
                             .hashes_states = hashes_states,
                             .queue_count = 64,
                             .hooks = test_hooks(&r.log, &r.heap)};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(r.engine, &desc, &recorder), NB_OK);
    game_run(&r, 100, &random);
    assert_int_equal(nb_recorder_stats_get(recorder).tick_count, 100);
    *run_hash = rig_stats(&r).run_hash;
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    rig_close(&r);
}

TEST(an_engine_replays_to_the_same_hash_of_each_tick) {
    memory_sink sink;
    uint64_t recorded_hash;
    record_game(&sink, &recorded_hash, false);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    nb_replay_info info = nb_replay_info_get(replay);
    assert_int_equal(info.tick_count, 100);
    nb_record_tick tick;
    uint32_t event_count = 0, command_count = 0;
    while (nb_replay_next(replay, &tick) == NB_OK) {
        event_count += tick.input.count;
        command_count += tick.commands.count;
    }
    assert_true(event_count > 20 && command_count > 20);
    assert_int_equal(info.head.seed, 77);
    assert_int_equal(info.head.tick_rate.num, 60);
    assert_true(info.key_count >= 2);
    rig r;
    game g;
    game_open(&r, &g, false);
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_OK);
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_BUSY);
    uint64_t other = 99; // live input, which the recording replaces
    game_run(&r, 100, &other);
    assert_int_equal(rig_stats(&r).run_hash, recorded_hash);
    nb_replay_check check = nb_replay_check_get(replay);
    assert_int_equal(check.fed_count, 100);
    assert_int_equal(check.compared_count, 100);
    assert_int_equal(check.diverged_count, 0);
    // Behind the end the engine goes on with what it has itself.
    game_run(&r, 10, &other);
    assert_int_equal(nb_replay_check_get(replay).fed_count, 100);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    run_ticks(&r, 3);
    rig_close(&r);
    // With other frames and with commands of its own, which depend on them, it is still the recorded game.
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    game_open(&r, &g, true);
    assert_int_equal(nb_replay_attach(replay, r.engine), NB_OK);
    for (int i = 0; i < 20; ++i) assert_int_equal(nb_engine_frame_delta(r.engine, 5 * TICK_NS), NB_OK);
    assert_int_equal(rig_stats(&r).tick_count, 100);
    assert_int_equal(rig_stats(&r).run_hash, recorded_hash);
    assert_int_equal(nb_replay_check_get(replay).diverged_count, 0);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    rig_close(&r);
    free(sink.bytes);
}

// A replay of a recorded game, with a log, and a game to feed.
typedef struct replayed {
    memory_sink sink;
    test_log log;
    nb_replay *replay;
    rig r;
    game g;
} replayed;

static void replayed_open(replayed *p, bool is_hashed) {
    uint64_t recorded_hash;
    record_game(&p->sink, &recorded_hash, is_hashed);
    nb_replay_desc desc = quiet_replay(&p->log, NULL);
    assert_int_equal(nb_replay_open_memory(p->sink.bytes, p->sink.size_bytes, &desc, &p->replay), NB_OK);
    game_open(&p->r, &p->g, false);
}

static void replayed_close(replayed *p) {
    nb_replay_close(p->replay);
    rig_close(&p->r);
    free(p->sink.bytes);
}

TEST(a_divergence_is_named) {
    static replayed p;
    replayed_open(&p, true);
    p.g.disturb_at = 41;
    assert_int_equal(nb_replay_attach(p.replay, p.r.engine), NB_OK);
    run_ticks(&p.r, 100);
    nb_replay_check check = nb_replay_check_get(p.replay);
    assert_int_equal(check.compared_count, 100);
    assert_int_equal(check.diverged_tick, 41);
    assert_int_equal(check.diverged_count, 59);
    assert_string_equal(check.state_name, "game");
    assert_int_equal(test_log_count(&p.log, NB_ITEM_RECORD_DIVERGED), 1);
    replayed_close(&p);
}

TEST(key_states_are_those_of_their_ticks) {
    static replayed p;
    replayed_open(&p, false);
    uint64_t key_tick = 99;
    assert_int_equal(nb_replay_load(p.replay, 19, nb_engine_states(p.r.engine), &key_tick), NB_OK);
    assert_int_equal(key_tick, 0);
    assert_int_equal(p.g.ticks, 0);
    assert_int_equal(nb_replay_load(p.replay, 20, nb_engine_states(p.r.engine), &key_tick), NB_OK);
    assert_int_equal(key_tick, 20);
    assert_int_equal(p.g.ticks, 20);
    nb_record_tick tick;
    assert_int_equal(nb_replay_next(p.replay, &tick), NB_OK);
    assert_int_equal(tick.index, 20);
    // The hash of the state before tick 20 is the one recorded after tick 19.
    assert_int_equal(nb_replay_seek(p.replay, 19), NB_OK);
    assert_int_equal(nb_replay_next(p.replay, &tick), NB_OK);
    assert_int_equal(tick.hash, nb_states_hash(nb_engine_states(p.r.engine)));
    replayed_close(&p);
}

TEST(another_layout_is_not_fed) {
    static replayed p;
    replayed_open(&p, false);
    uint32_t more = 0;
    nb_provider_desc added = {.name = "more", .data = &more, .size_bytes = 4};
    assert_int_equal(nb_states_add(nb_engine_states(p.r.engine), &added, NULL), NB_OK);
    assert_int_equal(nb_replay_attach(p.replay, p.r.engine), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&p.log, NB_ITEM_SAVE_LAYOUT), 1);
    uint64_t key_tick = 77;
    assert_true(nb_replay_load(p.replay, 50, nb_engine_states(p.r.engine), &key_tick) < 0);
    assert_int_equal(key_tick, 77);
    replayed_close(&p);
}

// A recorder inside the frame that destroys it, and ticks that run again.
static nb_result destroy_in_tick(const nb_context *context, void *user) {
    (void)context;
    nb_recorder **recorder = user;
    return *recorder != NULL && nb_recorder_destroy(*recorder) == NB_BUSY ? NB_OK : NB_ERR_MISUSE;
}

TEST(a_recorder_is_not_destroyed_inside_a_frame) {
    rig r;
    game g;
    game_open(&r, &g, false);
    memory_sink sink = {0};
    nb_recorder_desc desc = {.sink = sink_of(&sink), .key_ticks = NB_RECORD_KEY_TICKS_NEVER};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(r.engine, &desc, &recorder), NB_OK);
    attach(&r, (nb_module_desc){.name = "destroyer", .tick = destroy_in_tick, .user = &recorder});
    run_ticks(&r, 3);
    assert_int_equal(rig_stats(&r).failure_count, 0);
    assert_int_equal(nb_recorder_stats_get(recorder).key_count, 0);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    recorder = NULL;
    rig_close(&r);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open_memory(sink.bytes, sink.size_bytes, NULL, &replay), NB_OK);
    assert_int_equal(nb_replay_info_get(replay).tick_count, 3);
    nb_replay_close(replay);
    free(sink.bytes);
}

#define FIFO_PATH "test_record_fifo"

// Everything that a game may write or read under a path that is a FIFO.
static void use_fifo(rig *r) {
    nb_recorder *recorder = NULL;
    nb_recorder_desc desc = {.path = FIFO_PATH, .hooks = test_hooks(&r->log, &r->heap)};
    assert_int_equal(nb_recorder_attach(r->engine, &desc, &recorder), NB_ERR_OS);
    assert_non_null(strstr(r->log.last_message, "not a regular file"));
    nb_save_desc save = {.hooks = test_hooks(&r->log, &r->heap)};
    assert_int_equal(nb_save_engine("test_record_save", r->engine, &save), NB_ERR_OS);
    nb_replay_desc quiet = quiet_replay(&r->log, &r->heap);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open(FIFO_PATH, &quiet, &replay), NB_ERR_OS);
    assert_int_equal(nb_load_engine(FIFO_PATH, r->engine, &save, NULL), NB_ERR_OS);
    assert_non_null(strstr(r->log.last_message, "not a regular file"));
}

TEST(a_fifo_is_refused_and_never_waited_for) {
    rig r;
    game g;
    game_open(&r, &g, false);
    uint64_t random = 5;
    remove(FIFO_PATH), remove("test_record_save.tmp");
    assert_int_equal(mkfifo(FIFO_PATH, 0600), 0);
    assert_int_equal(mkfifo("test_record_save.tmp", 0600), 0); // where a save is written before it gets its name
    use_fifo(&r);
    game_run(&r, 3, &random);
    assert_int_equal(mkfifo("test_record_save.tmp", 0600), -1); // a refused save removes nothing that it has not made
    int reader = open(FIFO_PATH, O_RDONLY | O_NONBLOCK);
    int other = open("test_record_save.tmp", O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0 && other >= 0);
    use_fifo(&r);
    game_run(&r, 3, &random);
    char byte;
    assert_int_equal(read(reader, &byte, 1), 0); // nothing was written, and nobody holds the other end
    assert_int_equal(read(other, &byte, 1), 0);
    close(reader), close(other);
    remove(FIFO_PATH), remove("test_record_save.tmp");
    rig_close(&r);
}
