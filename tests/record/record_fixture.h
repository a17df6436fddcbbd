// SPDX-License-Identifier: MIT
#pragma once

// What the tests of recordings share: ticks made from a seed, a sink in memory, and recordings of both.

#include "support/support.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/record.h"
#include "nebula/replay.h"
#include "record/compress.h"
#include "record/recorder.h"
#include "record/recording_format.h"

#define TICK_EVENTS_MAX 6u
#define TICK_HASHES_MAX 3u

// A tick with memory of its own.
typedef struct made_tick {
    nb_record_tick tick;
    nb_input_event events[TICK_EVENTS_MAX], commands[TICK_EVENTS_MAX];
    nb_record_hash hashes[TICK_HASHES_MAX];
} made_tick;

static inline void make_events(nb_input_event *events, uint32_t count, uint64_t *random) {
    for (uint32_t i = 0; i < count; ++i) {
        memset(&events[i], 0, sizeof events[i]);
        events[i].timestamp_ns = test_random(random);
        events[i].kind = (uint16_t)test_random(random);
        events[i].device = (uint16_t)test_random(random);
        events[i].code = (uint32_t)test_random(random);
        for (uint32_t j = 0; j < 16; ++j) events[i].payload.bytes[j] = (uint8_t)test_random(random);
    }
}

// The same for the same seed and index, whatever came before.
static inline const nb_record_tick *make_tick(made_tick *made, uint64_t seed, uint64_t index) {
    uint64_t random = seed ^ index * 0x9E3779B97F4A7C15u;
    uint32_t event_count = (uint32_t)(test_random(&random) % TICK_EVENTS_MAX);
    uint32_t command_count = (uint32_t)(test_random(&random) % 3);
    uint32_t hash_count = (uint32_t)(test_random(&random) % (TICK_HASHES_MAX + 1));
    make_events(made->events, event_count, &random);
    make_events(made->commands, command_count, &random);
    for (uint32_t i = 0; i < hash_count; ++i)
        made->hashes[i] = (nb_record_hash){test_random(&random), test_random(&random)};
    made->tick = (nb_record_tick){.index = index,
                                  .input = {event_count != 0 ? made->events : NULL, event_count},
                                  .commands = {command_count != 0 ? made->commands : NULL, command_count},
                                  .hash = test_random(&random),
                                  .hashes = hash_count != 0 ? made->hashes : NULL,
                                  .hash_count = hash_count};
    return &made->tick;
}

static inline bool views_equal(nb_input_view a, nb_input_view b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.events, b.events, a.count * sizeof *a.events) == 0);
}

static inline bool ticks_equal(const nb_record_tick *a, const nb_record_tick *b) {
    if (a->index != b->index || a->hash != b->hash || a->hash_count != b->hash_count) return false;
    if (!views_equal(a->input, b->input) || !views_equal(a->commands, b->commands)) return false;
    return a->hash_count == 0 || memcmp(a->hashes, b->hashes, a->hash_count * sizeof *a->hashes) == 0;
}

// A file in memory, which can fail, and which can be held.
typedef struct memory_sink {
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
    uint32_t write_count, fail_at; // this write fails (1 = the first); 0 = none
    nb_atomic_u32 is_held;         // writes wait while it is 1
} memory_sink;

static inline nb_result sink_write(void *user, const void *bytes, size_t size_bytes) {
    memory_sink *sink = (memory_sink *)user;
    while (nbi_atomic_load_acquire_u32(&sink->is_held) != 0) nbi_thread_yield();
    if (++sink->write_count == sink->fail_at) return NB_ERR_OS;
    if (sink->size_bytes + size_bytes > sink->capacity_bytes) {
        sink->capacity_bytes = (sink->size_bytes + size_bytes) * 2;
        sink->bytes = (unsigned char *)realloc(sink->bytes, sink->capacity_bytes);
        if (sink->bytes == NULL) abort();
    }
    memcpy(sink->bytes + sink->size_bytes, bytes, size_bytes);
    sink->size_bytes += size_bytes;
    return NB_OK;
}

static inline nb_record_sink sink_of(memory_sink *sink) { return (nb_record_sink){.write = sink_write, .user = sink}; }

// The state before a tick, made from its number.
#define STATE_BYTES 48u
static inline void make_state(unsigned char *state, uint64_t tick) {
    uint64_t random = tick;
    for (uint32_t i = 0; i < STATE_BYTES; ++i) state[i] = (unsigned char)(test_random(&random) & 0x3);
}

typedef struct recording {
    uint64_t seed, first_tick, tick_count;
    uint64_t key_ticks; // a key state before every this many; 0 = none
    uint32_t block_ticks;
} recording;

#define RECORD_CONFIG "width=640"

static inline nb_recorder_desc recording_desc(const recording *r, memory_sink *sink) {
    return (nb_recorder_desc){.sink = sink_of(sink),
                              .head = {.build_id = "build 7",
                                       .game_name = "test",
                                       .tick_rate = {30, 1},
                                       .seed = 99,
                                       .layout_hash = 1234,
                                       .config = RECORD_CONFIG,
                                       .config_bytes = sizeof RECORD_CONFIG},
                              .block_ticks = r->block_ticks};
}

static inline bool is_queue_full(const nb_recorder *recorder) {
    if (recorder->filling != NULL) return false;
    for (uint32_t i = 0; i < recorder->desc.queue_count; ++i) {
        if (nbi_atomic_load_acquire_u32(&recorder->batches[i].is_busy) == 0) return false;
    }
    return true;
}

// Feeds all ticks; stops at the first that is refused. Waits where the writer is behind: these
// recordings are not about a slow one.
static inline nb_result recording_feed(const recording *r, nb_recorder *recorder) {
    for (uint64_t i = 0; i < r->tick_count; ++i) {
        uint64_t tick = r->first_tick + i;
        if (r->key_ticks != 0 && i % r->key_ticks == 0) {
            unsigned char state[STATE_BYTES];
            make_state(state, tick);
            nb_result result;
            while ((result = nb_recorder_push_state(recorder, tick, state, sizeof state)) == NB_BUSY)
                nbi_thread_yield();
            if (result != NB_OK) return result;
        }
        while (is_queue_full(recorder)) nbi_thread_yield();
        made_tick made;
        nb_result result = nb_recorder_push(recorder, make_tick(&made, r->seed, tick));
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

static inline void recording_make(const recording *r, memory_sink *sink) {
    memset(sink, 0, sizeof *sink);
    nb_recorder_desc desc = recording_desc(r, sink);
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_create(&desc, &recorder), NB_OK);
    assert_int_equal(recording_feed(r, recorder), NB_OK);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
}

static inline nb_replay_desc quiet_replay(test_log *log, test_heap *heap) {
    return (nb_replay_desc){.hooks = test_hooks(log, heap)};
}

// Reads what is there. Every tick must be one that was recorded, in its place; returns how many there were, and the
// result after the last.
static inline uint64_t recording_read(const recording *r, nb_replay *replay, nb_result *last) {
    nb_record_tick tick;
    uint64_t count = 0;
    while ((*last = nb_replay_next(replay, &tick)) == NB_OK) {
        made_tick made;
        assert_true(ticks_equal(&tick, make_tick(&made, r->seed, r->first_tick + count)));
        ++count;
    }
    return count;
}
