// SPDX-License-Identifier: MIT
// Input: every event reaches exactly one tick, whatever the frames do, whoever sends.

#include "support/support.h"

#include "nebula/input.h"
#include "nebula/loop.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

static nb_input *input_with(uint32_t event_count_max, test_log *log) {
    nb_input *input = NULL;
    nb_input_desc desc = {.event_count_max = event_count_max, .hooks = test_hooks(log, NULL)};
    assert_int_equal(nb_input_create(&desc, &input), NB_OK);
    return input;
}

static nb_input_event event_at(uint64_t timestamp_ns, uint32_t code) {
    return (nb_input_event){.timestamp_ns = timestamp_ns, .kind = NB_INPUT_COMMAND, .code = code};
}

static nb_result send(nb_input *input, uint64_t timestamp_ns, uint32_t code) {
    nb_input_event event = event_at(timestamp_ns, code);
    return nb_input_send(input, &event);
}

static nb_input_view take(nb_input *input, uint64_t until_ns) {
    nb_input_view view;
    assert_int_equal(nb_input_take_tick(input, until_ns, &view), NB_OK);
    return view;
}

static nb_input_stats stats_of(const nb_input *input) {
    assert_non_null(input);
    return nb_input_stats_get(input);
}

static void assert_adds_up(const nb_input *input) {
    nb_input_stats r = stats_of(input);
    assert_int_equal(r.sent_count, r.delivered_count + r.discarded_count + r.waiting_count);
}

// --- slices ---

TEST(tick_gets_its_slice_in_order_of_time) {
    nb_input *input = input_with(16, NULL);
    send(input, 30, 3);
    send(input, 10, 1);
    send(input, 20, 21);
    send(input, 20, 22); // the same time: by arrival
    send(input, 40, 4);
    nb_input_view view = take(input, 40);
    const uint32_t expected[] = {1, 21, 22, 3};
    assert_int_equal(view.count, 4);
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(view.events[i].code, expected[i]);
    view = take(input, 41); // the end of a slice does not belong to it
    assert_true(view.count == 1 && view.events[0].code == 4);
    assert_int_equal(take(input, UINT64_MAX).count, 0);
    assert_null(take(input, UINT64_MAX).events);
    assert_adds_up(input);
    nb_input_destroy(input);
}

TEST(late_events_go_to_the_next_tick_and_future_ones_wait) {
    nb_input *input = input_with(16, NULL);
    take(input, 1000);
    send(input, 500, 1); // sent after its tick
    send(input, 5000, 2);
    nb_input_view view = take(input, 2000);
    assert_true(view.count == 1 && view.events[0].code == 1);
    assert_int_equal(stats_of(input).late_count, 1);
    assert_int_equal(take(input, 3000).count, 0);
    assert_int_equal(stats_of(input).waiting_count, 1);
    assert_int_equal(take(input, 6000).count, 1);
    assert_int_equal(stats_of(input).late_count, 1);
    nb_input_destroy(input);
}

// Runs the due ticks of one frame; `tick_of[code]` gets the tick each event came in.
static void deliver_frame(nb_loop *loop, nb_input *input, uint64_t delta_ns, uint64_t *tick_of) {
    nb_loop_begin_delta(loop, delta_ns);
    nb_loop_tick tick;
    while (nb_loop_next_tick(loop, &tick)) {
        nb_input_view view = take(input, tick.input_until_ns);
        for (uint32_t i = 0; i < view.count; ++i) tick_of[view.events[i].code] = tick.index;
    }
    nb_loop_end(loop);
}

TEST(event_reaches_the_tick_of_its_time_at_any_frame_rate) {
    uint64_t seed = test_seed(__func__);
    const nb_rate rates[] = {{60, 1}, {64, 1}, {60000, 1001}};
    static uint64_t tick_of[4000], time_of[4000];
    for (size_t r = 0; r < 3; ++r) {
        nb_loop loop;
        nb_loop_desc desc = {.tick_rate = rates[r]};
        nb_loop_init(&loop, &desc);
        nb_input *input = input_with(1024, NULL);
        uint64_t now_ns = 0;
        uint32_t sent = 0;
        for (int frame = 0; frame < 1000; ++frame) {
            uint64_t delta_ns = test_random(&seed) % (test_random(&seed) % 2 == 0 ? 5 * MS : 90 * MS);
            for (uint32_t i = 0; i < 3 && delta_ns > 0; ++i) {
                time_of[sent] = now_ns + test_random(&seed) % delta_ns;
                assert_int_equal(send(input, time_of[sent], sent), NB_OK);
                ++sent;
            }
            now_ns += delta_ns;
            deliver_frame(&loop, input, delta_ns, tick_of);
        }
        deliver_frame(&loop, input, 100 * MS, tick_of);
        for (uint32_t i = 0; i < sent; ++i) {
            assert_int_equal(tick_of[i], time_of[i] * rates[r].num / (S * rates[r].den));
        }
        assert_int_equal(stats_of(input).late_count, 0);
        nb_input_destroy(input);
    }
}

TEST(frames_without_ticks_lose_nothing) {
    nb_loop loop;
    nb_loop_init(&loop, NULL);
    nb_input *input = input_with(64, NULL);
    static uint64_t tick_of[64];
    memset(tick_of, 0xFF, sizeof tick_of);
    for (uint32_t i = 0; i < 8; ++i) { // eight frames of 2 ms: not one tick
        send(input, i * 2 * MS + MS, i);
        deliver_frame(&loop, input, 2 * MS, tick_of);
        assert_int_equal(stats_of(input).delivered_count, 0);
    }
    deliver_frame(&loop, input, 2 * MS, tick_of);
    for (uint32_t i = 0; i < 8; ++i) assert_int_equal(tick_of[i], 0);
    nb_input_destroy(input);
}

TEST(events_of_dropped_time_go_to_the_next_tick) {
    nb_loop loop;
    nb_loop_desc desc = {.tick_rate = {50, 1}};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    nb_loop_init(&loop, &desc);
    nb_input *input = input_with(64, NULL);
    static uint64_t tick_of[64];
    send(input, 100 * MS, 0); // in the 750 ms that the clamp drops
    send(input, 755 * MS, 1); // in the first tick of the last 250 ms
    send(input, 995 * MS, 2); // in the half tick that is left
    deliver_frame(&loop, input, S, tick_of);
    assert_int_equal(nb_loop_tick_count(&loop), 12);
    assert_true(tick_of[0] == 0 && tick_of[1] == 0);
    assert_int_equal(stats_of(input).waiting_count, 1);
    deliver_frame(&loop, input, 10 * MS, tick_of);
    assert_int_equal(tick_of[2], 12);
    // While paused, events wait; a stepped tick gets all of them.
    nb_loop_pause(&loop);
    send(input, 1500 * MS, 3);
    deliver_frame(&loop, input, S, tick_of);
    assert_int_equal(stats_of(input).waiting_count, 1);
    nb_loop_step(&loop, 1);
    deliver_frame(&loop, input, 20 * MS, tick_of);
    assert_int_equal(tick_of[3], 13);
    nb_input_destroy(input);
}

// --- the property, against a model ---

#define MODEL_MAX 512

typedef struct model {
    nb_input_event waiting[MODEL_MAX]; // in order of arrival
    uint32_t count;
    uint32_t next_code;
    uint64_t delivered_count;
} model;

// The events due before until_ns leave the model, first by time, then by arrival; they must be what the tick got.
static void model_take(model *m, uint64_t until_ns, nb_input_view view) {
    for (uint32_t k = 0; k < view.count; ++k) {
        uint32_t first = UINT32_MAX;
        for (uint32_t i = 0; i < m->count; ++i) {
            bool is_due = m->waiting[i].timestamp_ns < until_ns;
            bool is_first = first == UINT32_MAX || m->waiting[i].timestamp_ns < m->waiting[first].timestamp_ns;
            if (is_due && is_first) first = i;
        }
        assert_int_not_equal(first, UINT32_MAX);
        assert_memory_equal(&m->waiting[first], &view.events[k], sizeof view.events[k]);
        memmove(&m->waiting[first], &m->waiting[first + 1], (m->count - first - 1) * sizeof m->waiting[0]);
        --m->count;
        ++m->delivered_count;
    }
    for (uint32_t i = 0; i < m->count; ++i) assert_true(m->waiting[i].timestamp_ns >= until_ns);
}

static void model_send(model *m, nb_input *input, uint64_t now_ns, uint64_t *seed) {
    uint64_t kind = test_random(seed) % 10, offset_ns = test_random(seed) % (50 * MS);
    uint64_t timestamp_ns = now_ns > offset_ns ? now_ns - offset_ns : 0; // mostly in this frame or late
    if (kind == 0) timestamp_ns = now_ns + offset_ns * 4;                // in the future
    if (kind == 1) timestamp_ns = now_ns / MS * MS;                      // likely the same as another
    nb_input_event event = event_at(timestamp_ns, m->next_code++);
    if (m->count == MODEL_MAX) return;
    assert_int_equal(nb_input_send(input, &event), NB_OK);
    m->waiting[m->count++] = event;
}

static void random_control(nb_loop *loop, uint64_t *seed) {
    uint64_t choice = test_random(seed) % 60, value = test_random(seed);
    if (choice == 0) nb_loop_pause(loop);
    if (choice <= 2) nb_loop_step(loop, value % 3);
    if (choice >= 3 && choice <= 6) nb_loop_resume(loop);
    if (choice == 7) nb_loop_set_scale(loop, 1 + (uint32_t)(value % 4), 1 + (uint32_t)(value / 8 % 4));
    if (choice == 8) nb_loop_resync(loop);
    if (choice == 9) nb_loop_exclude(loop, value % (100 * MS));
    if (choice == 10) nb_loop_set_refresh(loop, (nb_rate){(uint32_t)(value % 2) * 60, 1});
}

TEST(every_event_reaches_exactly_one_tick) {
    uint64_t seed = test_seed(__func__), frame_count = test_size(20000, 200000, 2000000);
    nb_loop loop;
    nb_loop_desc desc = {.tick_count_max = 6};
    desc.hooks.logger.level_min = NB_LOG_OFF;
    nb_loop_init(&loop, &desc);
    nb_input *input = input_with(MODEL_MAX, NULL);
    static model m;
    memset(&m, 0, sizeof m);
    uint64_t now_ns = 0, last_until_ns = 0;
    for (uint64_t i = 0; i < frame_count; ++i) {
        random_control(&loop, &seed);
        uint64_t sort = test_random(&seed) % 40;
        uint64_t delta_ns = test_random(&seed) % (sort == 0 ? 3 * S : sort < 20 ? 4 * MS : 40 * MS);
        now_ns += delta_ns;
        for (uint64_t n = test_random(&seed) % 4; n > 0; --n) model_send(&m, input, now_ns, &seed);
        nb_loop_begin_delta(&loop, delta_ns);
        nb_loop_tick tick;
        while (nb_loop_next_tick(&loop, &tick)) {
            assert_true(tick.input_until_ns >= last_until_ns); // slices follow each other
            last_until_ns = tick.input_until_ns;
            model_take(&m, tick.input_until_ns, take(input, tick.input_until_ns));
        }
        nb_loop_end(&loop);
    }
    model_take(&m, UINT64_MAX, take(input, UINT64_MAX));
    assert_int_equal(m.count, 0);
    assert_int_equal(m.delivered_count, stats_of(input).sent_count);
    assert_int_equal(stats_of(input).early_count, 0);
    assert_true(m.delivered_count > frame_count / 2);
    assert_adds_up(input);
    nb_input_destroy(input);
}

// --- the frame's view ---

TEST(every_event_is_in_one_frame_view_and_one_tick) {
    uint64_t seed = test_seed(__func__);
    nb_input *input = input_with(256, NULL);
    static uint8_t in_frame[20000], in_tick[20000];
    memset(in_frame, 0, sizeof in_frame);
    memset(in_tick, 0, sizeof in_tick);
    uint32_t sent = 0;
    nb_input_view view;
    for (uint64_t i = 1; i <= 2001; ++i) {
        uint64_t now_ns = i * 10 * MS;
        for (uint64_t n = test_random(&seed) % 5; n > 0; --n, ++sent) send(input, now_ns + n, sent);
        assert_int_equal(nb_input_begin_frame(input, &view), NB_OK);
        for (uint32_t k = 0; k < view.count; ++k) {
            assert_true(k == 0 || view.events[k].code == view.events[k - 1].code + 1); // by arrival
            ++in_frame[view.events[k].code];
        }
        // More arrives between the frame's start and its ticks.
        for (uint64_t n = test_random(&seed) % 3; n > 0; --n, ++sent) send(input, now_ns - n, sent);
        uint64_t until_ns = i > 2000 ? UINT64_MAX : i % 3 == 0 ? now_ns : 0; // ticks in some frames only
        nb_input_view slice = take(input, until_ns);
        for (uint32_t k = 0; k < slice.count; ++k) ++in_tick[slice.events[k].code];
    }
    nb_input_begin_frame(input, &view);
    for (uint32_t k = 0; k < view.count; ++k) ++in_frame[view.events[k].code];
    for (uint32_t i = 0; i < sent; ++i) assert_true(in_frame[i] == 1 && in_tick[i] == 1);
    assert_int_equal(stats_of(input).frame_missed_count, 0);
    nb_input_destroy(input);
}

// --- bounds ---

TEST(full_queue_refuses_counts_and_recovers) {
    test_log log = {0};
    nb_input *input = input_with(8, &log);
    for (uint32_t i = 0; i < 8; ++i) assert_int_equal(send(input, i, i), NB_OK);
    for (uint32_t i = 0; i < 5; ++i) assert_int_equal(send(input, i, 99), NB_FULL);
    assert_int_equal(stats_of(input).full_count, 5);
    assert_int_equal(stats_of(input).sent_count, 8);
    assert_int_equal(test_log_count(&log, NB_ITEM_INPUT_FULL), 3); // 1, 2 and 4
    nb_input_view view = take(input, 100);
    assert_int_equal(view.count, 8);
    for (uint32_t i = 0; i < 8; ++i) assert_int_equal(view.events[i].code, i);
    for (uint32_t round = 0; round < 100; ++round) { // around the ring many times
        for (uint32_t i = 0; i < 5; ++i) assert_int_equal(send(input, round, i), NB_OK);
        assert_int_equal(take(input, round + 1).count, 5);
    }
    assert_adds_up(input);
    nb_input_destroy(input);
}

TEST(events_from_the_future_cannot_shut_the_others_out) {
    nb_input *input = input_with(8, NULL);
    for (uint32_t i = 0; i < 8; ++i) send(input, UINT64_MAX - i, i);
    assert_int_equal(take(input, 10).count, 0); // full of them, but nobody waits behind
    send(input, 5, 100);
    assert_int_equal(take(input, 10).count, 8); // early rather than never
    assert_int_equal(stats_of(input).early_count, 8);
    assert_int_equal(take(input, 10).count, 1);
    // Seven of them and due events behind: those come first, and nothing is early.
    for (uint32_t i = 0; i < 7; ++i) send(input, UINT64_MAX - 1, i);
    send(input, 12, 1);
    take(input, 11);
    for (uint32_t i = 0; i < 8; ++i) send(input, 13 + i, 200 + i);
    nb_input_view view = take(input, 50);
    assert_true(view.count == 1 && view.events[0].code == 1);
    for (uint32_t i = 0; i < 8; ++i) { // one place is left for them: one a tick
        view = take(input, 50);
        assert_true(view.count == 1 && view.events[0].code == 200 + i);
    }
    assert_int_equal(stats_of(input).early_count, 8);
    assert_adds_up(input);
    nb_input_destroy(input);
}

TEST(discard_empties_the_queue) {
    nb_input *input = input_with(16, NULL);
    for (uint32_t i = 0; i < 5; ++i) send(input, 1000, i);
    take(input, 10); // now they wait behind the ring
    for (uint32_t i = 0; i < 3; ++i) send(input, 1, i);
    assert_int_equal(nb_input_discard(input), NB_OK);
    assert_int_equal(take(input, UINT64_MAX).count, 0);
    assert_int_equal(stats_of(input).discarded_count, 8);
    assert_adds_up(input);
    nb_input_destroy(input);
}

TEST(storage_may_be_the_callers) {
    test_heap heap = {0};
    size_t size_bytes = nb_input_memory_size(64);
    uint8_t *memory = (uint8_t *)aligned_alloc(NB_CACHE_LINE, (size_bytes + 127) / 64 * 64);
    memset(memory, 0xA5, size_bytes + 64);
    nb_input_desc desc = {.event_count_max = 64, .memory = memory, .memory_bytes = size_bytes};
    desc.hooks = test_hooks(NULL, &heap);
    nb_input *input = NULL;
    assert_int_equal(nb_input_create(&desc, &input), NB_OK);
    for (uint32_t i = 0; i < 64; ++i) assert_int_equal(send(input, i, i), NB_OK);
    nb_input_view view;
    nb_input_begin_frame(input, &view);
    assert_int_equal(view.count, 64);
    assert_int_equal(take(input, 1000).count, 64);
    for (size_t i = size_bytes; i < size_bytes + 64; ++i) assert_int_equal(memory[i], 0xA5);
    nb_input_destroy(input);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&heap.call_count), 0);
    desc.memory = memory + 8;
    assert_int_equal(nb_input_create(&desc, &input), NB_ERR_MISUSE);
    desc.memory = memory;
    desc.memory_bytes = size_bytes - 1;
    assert_int_equal(nb_input_create(&desc, &input), NB_ERR_RANGE);
    free(memory);
}

TEST(failed_allocation_leaves_nothing) {
    for (int from = 0; from < 2; ++from) {
        test_log log = {0};
        test_heap heap = {.fail_at = from == 0, .fail_from = (uint64_t)from};
        nb_input_desc desc = {.hooks = test_hooks(&log, &heap)};
        nb_input *input = (nb_input *)&heap;
        assert_int_equal(nb_input_create(&desc, &input), NB_ERR_MEMORY);
        assert_ptr_equal(input, &heap);
        assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
        assert_int_equal(nbi_atomic_load_seq_cst_u64(&heap.live_count), 0);
    }
    test_heap heap = {0};
    nb_input_desc desc = {.hooks = test_hooks(NULL, &heap)};
    nb_input *input = NULL;
    assert_int_equal(nb_input_create(&desc, &input), NB_OK);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&heap.live_count), 1);
    nb_input_destroy(input);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&heap.live_count), 0);
    assert_int_equal(nbi_atomic_load_seq_cst_u64(&heap.live_bytes), 0);
}

// --- buttons ---

static void button(nb_input *input, uint64_t timestamp_ns, nb_input_kind kind, uint32_t code) {
    nb_input_event event = {.timestamp_ns = timestamp_ns, .kind = (uint16_t)kind, .code = code};
    assert_int_equal(nb_input_send(input, &event), NB_OK);
}

// down, pressed, released of a button after the tick that ends at until_ns
static void assert_button(nb_input *input, nb_buttons *buttons, uint64_t until_ns, const char *expected) {
    nb_input_view view = take(input, until_ns);
    assert_int_equal(nb_buttons_apply(buttons, &view), NB_OK);
    char actual[4] = {nb_buttons_is_down(buttons, 30) ? 'd' : '-', nb_buttons_is_pressed(buttons, 30) ? 'p' : '-',
                      nb_buttons_is_released(buttons, 30) ? 'r' : '-', 0};
    assert_string_equal(actual, expected);
}

TEST(edges_last_exactly_one_tick) {
    nb_input *input = input_with(64, NULL);
    nb_buttons buttons = {0};
    button(input, 5, NB_INPUT_PRESS, 30);
    assert_button(input, &buttons, 10, "dp-");
    assert_button(input, &buttons, 20, "d--");
    button(input, 22, NB_INPUT_PRESS, 30); // key repeat
    assert_button(input, &buttons, 30, "d--");
    button(input, 35, NB_INPUT_RELEASE, 30);
    assert_button(input, &buttons, 40, "--r");
    assert_button(input, &buttons, 50, "---");
    button(input, 51, NB_INPUT_PRESS, 30); // a tap shorter than a tick is not swallowed
    button(input, 52, NB_INPUT_RELEASE, 30);
    assert_button(input, &buttons, 60, "-pr");
    assert_button(input, &buttons, 70, "---");
    button(input, 71, NB_INPUT_PRESS, 30);
    assert_button(input, &buttons, 80, "dp-");
    button(input, 81, NB_INPUT_RELEASE, 30);
    button(input, 82, NB_INPUT_PRESS, 30);
    assert_button(input, &buttons, 90, "dpr");
    nb_buttons_release_all(&buttons);
    assert_true(!nb_buttons_is_down(&buttons, 30) && nb_buttons_is_released(&buttons, 30));
    button(input, 91, NB_INPUT_RELEASE, 30); // up already
    assert_button(input, &buttons, 100, "---");
    nb_input_destroy(input);
}

TEST(buttons_keep_to_their_device_and_codes) {
    nb_buttons buttons = {.device = 2};
    nb_input_event events[] = {
        {.kind = NB_INPUT_PRESS, .device = 1, .code = 5},
        {.kind = NB_INPUT_PRESS, .device = 2, .code = 6},
        {.kind = NB_INPUT_PRESS, .device = 2, .code = NB_BUTTON_COUNT_MAX},
        {.kind = NB_INPUT_MOTION, .device = 2, .code = 7},
        {.kind = NB_INPUT_PRESS, .device = 2, .code = NB_BUTTON_COUNT_MAX - 1},
    };
    nb_input_view view = {.events = events, .count = 5};
    nb_buttons_apply(&buttons, &view);
    assert_false(nb_buttons_is_down(&buttons, 5));
    assert_true(nb_buttons_is_down(&buttons, 6));
    assert_false(nb_buttons_is_down(&buttons, 7));
    assert_true(nb_buttons_is_down(&buttons, NB_BUTTON_COUNT_MAX - 1));
    assert_false(nb_buttons_is_down(&buttons, UINT32_MAX));
    assert_int_equal(buttons.ignored_count, 1);
}

// --- several senders ---

#define SENDERS 3

typedef struct crowd {
    nb_input *input;
    uint64_t per_sender;
    nb_atomic_u32 finished;
    uint8_t *seen[SENDERS];
    uint64_t wrong_count, received_count;
} crowd;

static uint32_t check_of(uint64_t timestamp_ns, uint32_t code, uint32_t sender) {
    return (uint32_t)(timestamp_ns * 2654435761u) ^ (code * 40503u) ^ (sender + 77u);
}

static void crowd_send(void *user, uint32_t index) {
    crowd *c = (crowd *)user;
    for (uint32_t i = 0; i < c->per_sender; ++i) {
        nb_input_event event = event_at(i, i);
        event.device = (uint16_t)index;
        for (int k = 0; k < 4; ++k) event.payload.i32[k] = (int32_t)check_of(i, i, index);
        while (nb_input_send(c->input, &event) == NB_FULL) nbi_thread_yield();
    }
    nbi_atomic_fetch_add_seq_cst_u32(&c->finished, 1);
}

static void crowd_receive(crowd *c, nb_input_view view, uint64_t *last_time_of) {
    for (uint32_t i = 0; i < view.count; ++i) {
        const nb_input_event *e = &view.events[i];
        bool is_whole = e->device < SENDERS && e->code < c->per_sender && e->timestamp_ns == e->code;
        for (int k = 0; k < 4; ++k) {
            is_whole = is_whole && e->payload.i32[k] == (int32_t)check_of(e->timestamp_ns, e->code, e->device);
        }
        bool is_ordered = i == 0 || view.events[i - 1].timestamp_ns <= e->timestamp_ns;
        if (!is_whole || !is_ordered || c->seen[e->device][e->code]++ != 0) {
            ++c->wrong_count;
            continue;
        }
        // What one sender sends is received in its order.
        if (e->code != last_time_of[e->device]++) ++c->wrong_count;
    }
    c->received_count += view.count;
}

TEST(events_of_many_threads_arrive_once_and_whole) {
    crowd c = {.per_sender = test_size(30000, 300000, 3000000)};
    test_seed(__func__);
    c.input = input_with(64, NULL); // small: it wraps and fills all the time
    for (int i = 0; i < SENDERS; ++i) c.seen[i] = (uint8_t *)calloc(c.per_sender, 1);
    uint64_t last_time_of[SENDERS] = {0};
    test_thread threads[SENDERS];
    test_threads_start(threads, SENDERS, crowd_send, &c);
    uint64_t deadline_ns = nbi_clock_now_ns() + 60 * S;
    bool is_over = false;
    while (!is_over && nbi_clock_now_ns() < deadline_ns) {
        is_over = nbi_atomic_load_seq_cst_u32(&c.finished) == SENDERS; // read before the last taking
        uint64_t before = c.received_count;
        crowd_receive(&c, take(c.input, UINT64_MAX), last_time_of);
        if (c.received_count == before) nbi_thread_yield();
    }
    assert_true(is_over);
    test_threads_join(threads, SENDERS);
    crowd_receive(&c, take(c.input, UINT64_MAX), last_time_of);
    assert_int_equal(c.wrong_count, 0);
    assert_int_equal(c.received_count, SENDERS * c.per_sender);
    assert_adds_up(c.input);
    for (int i = 0; i < SENDERS; ++i) free(c.seen[i]);
    nb_input_destroy(c.input);
}

// --- misuse ---

TEST(bad_arguments_have_defined_results) {
    test_log log = {0};
    nb_input *input = input_with(8, &log), *untouched = input;
    nb_input_view view = {0};
    nb_input_event event = {0};
    nb_buttons buttons = {0};
    const uint32_t bad_counts[] = {3, 100, NB_INPUT_COUNT_LIMIT * 2, UINT32_MAX};
    for (int i = 0; i < 4; ++i) {
        nb_input_desc desc = {.event_count_max = bad_counts[i], .hooks = test_hooks(&log, NULL)};
        nb_result expected = bad_counts[i] == NB_INPUT_COUNT_LIMIT * 2 ? NB_ERR_RANGE : NB_ERR_MISUSE;
        assert_int_equal(nb_input_create(&desc, &untouched), expected);
        assert_int_equal(nb_input_memory_size(bad_counts[i]), 0);
    }
    assert_ptr_equal(untouched, input);
    assert_int_equal(test_log_count(&log, NB_ITEM_INPUT_ARGUMENT), 4);
    assert_int_equal(nb_input_memory_size(0), nb_input_memory_size(1024));
    assert_int_equal(nb_input_create(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_send(NULL, &event), NB_ERR_MISUSE);
    assert_int_equal(nb_input_send(input, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_begin_frame(NULL, &view), NB_ERR_MISUSE);
    assert_int_equal(nb_input_begin_frame(input, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_take_tick(NULL, 1, &view), NB_ERR_MISUSE);
    assert_int_equal(nb_input_take_tick(input, 1, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_discard(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_stats_get(NULL).sent_count, 0);
    assert_int_equal(nb_buttons_apply(NULL, &view), NB_ERR_MISUSE);
    assert_int_equal(nb_buttons_apply(&buttons, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_buttons_release_all(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_input_desc_default().event_count_max, 1024);
    nb_input_destroy(NULL);
    nb_input_destroy(input);
}
