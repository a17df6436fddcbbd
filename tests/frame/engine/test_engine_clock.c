// SPDX-License-Identifier: MIT
// Engines on clocks that cannot be trusted: they step back and forth, stand still, jump, answer -1, and hosts compute
// deltas from them. No time is simulated twice, and none of it stops the game.

#include "frame/engine/engine_fixture.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)
#define FRAME_NS UINT64_C(16666667)
#define CLAMP_NS (250 * MS)

static nb_result count_tick(const nb_context *context, void *user) {
    (void)context;
    ++*(uint64_t *)user;
    return NB_OK;
}

static void open_counting(rig *r, nb_clock clock, nb_rate tick_rate, uint64_t *ticks) {
    nb_engine_desc desc = rig_desc(0);
    desc.loop.clock = clock;
    desc.loop.tick_rate = tick_rate;
    rig_open_desc(r, desc);
    attach(r, (nb_module_desc){.name = "counter", .tick = count_tick, .user = ticks});
}

static nb_loop_report report_of(const rig *r) {
    const nb_loop *loop = nb_engine_loop(r->engine);
    assert_true(nb_loop_is_valid(loop));
    return nb_loop_report_get(loop);
}

// --- the model ---

// What the header of the loop promises, in as few words as possible: time is what passes beyond the largest reading, a
// frame's share of it is clamped, and eight readings in a row below it are believed.
typedef struct model {
    bool has_begun, has_sums; // has_sums: deltas, whose sum has no place of its own
    uint64_t largest_ns, reading_ns;
    uint32_t behind_count;
    uint64_t admitted_ns; // in total
    uint64_t backwards_count, adopt_count;
} model;

static uint64_t model_pass(model *m, uint64_t reading_ns) {
    bool is_behind = reading_ns - m->largest_ns > INT64_MAX;
    m->reading_ns = reading_ns;
    if (!is_behind) {
        uint64_t passed_ns = reading_ns - m->largest_ns;
        m->largest_ns = reading_ns;
        m->behind_count = 0;
        return passed_ns < CLAMP_NS ? passed_ns : CLAMP_NS;
    }
    ++m->backwards_count;
    if (++m->behind_count < 8) return 0;
    ++m->adopt_count;
    m->behind_count = 0;
    if (m->has_sums)
        m->reading_ns = m->largest_ns;
    else
        m->largest_ns = reading_ns;
    return 0;
}

static void model_read(model *m, uint64_t reading_ns) {
    if (reading_ns == UINT64_MAX) {
        ++m->backwards_count;
        return;
    }
    if (!m->has_begun) m->largest_ns = reading_ns;
    m->has_begun = true;
    m->admitted_ns += model_pass(m, reading_ns);
}

static void assert_agrees(const rig *r, const model *m, nb_rate rate, uint64_t ticks) {
    nb_loop_report report = report_of(r);
    assert_int_equal(ticks, m->admitted_ns * rate.num / rate.den / S);
    assert_int_equal(report.clock_backwards_count, m->backwards_count);
    assert_int_equal(report.clock_adopt_count, m->adopt_count);
    assert_int_equal(report.dropped_tick_count, 0);
}

// What a broken clock shows in a frame, where a good one shows now_ns. *shift_ns lasts.
static uint64_t bad_reading(uint64_t now_ns, uint64_t *shift_ns, uint64_t *seed) {
    uint64_t kind = test_random(seed) % 40, amount_ns = test_random(seed) % (300 * MS);
    if (kind == 0) return UINT64_MAX;
    if (kind == 1) return now_ns + *shift_ns - amount_ns;
    if (kind == 2) return now_ns + *shift_ns + amount_ns;
    if (kind == 3) return 0;
    if (kind == 4) return now_ns + *shift_ns + (test_random(seed) >> (1 + test_random(seed) % 63)); // up to centuries
    if (kind == 5) *shift_ns -= amount_ns;
    if (kind == 6) *shift_ns += amount_ns;
    if (kind == 7 && test_random(seed) % 8 == 0) *shift_ns = 3600 * S * (test_random(seed) % 48) - now_ns;
    return now_ns + *shift_ns;
}

// Once the clock is good, time runs again within the eight frames that a lasting step costs.
static void assert_recovered(uint64_t before, uint64_t after, nb_rate rate) {
    assert_true((after - before) * rate.den * S >= 50 * FRAME_NS * rate.num);
}

static rig r; // of the case that runs

TEST(random_clock_runs_the_ticks_of_the_model) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t run = 0; run < test_size(10, 100, 1000); ++run) {
        nb_clock_manual clock;
        nb_rate rate = {20 + (uint32_t)(test_random(&seed) % 40), 1};
        uint64_t ticks = 0, now_ns = 100 * 3600 * S, shift_ns = 0, before = 0;
        model m = {.has_begun = false};
        nb_clock_manual_init(&clock, now_ns);
        open_counting(&r, nb_clock_manual_get(&clock), rate, &ticks);
        for (uint32_t frame = 0; frame < 400; ++frame, now_ns += FRAME_NS) {
            bool is_good = frame >= 340;
            if (frame == 340) before = ticks;
            if (test_random(&seed) % 16 == 0) now_ns -= FRAME_NS; // stands still
            uint64_t reading_ns = is_good ? now_ns + shift_ns : bad_reading(now_ns, &shift_ns, &seed);
            nb_clock_manual_set(&clock, reading_ns);
            assert_int_equal(nb_engine_frame(r.engine), NB_OK);
            model_read(&m, reading_ns);
            assert_agrees(&r, &m, rate, ticks);
        }
        // Of 60 good frames four may stand still, and eight follow a step.
        assert_true((ticks - before) * S >= 40 * FRAME_NS * rate.num);
        rig_close(&r);
    }
}

TEST(random_deltas_run_the_ticks_of_the_model) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t run = 0; run < test_size(10, 100, 1000); ++run) {
        nb_rate rate = {20 + (uint32_t)(test_random(&seed) % 40), 1};
        uint64_t ticks = 0, now_ns = 100 * 3600 * S, shift_ns = 0, last_ns = now_ns, before = 0;
        model m = {.has_begun = true, .has_sums = true};
        open_counting(&r, (nb_clock){0}, rate, &ticks);
        for (uint32_t frame = 0; frame < 400; ++frame, now_ns += FRAME_NS) {
            if (frame == 340) before = ticks;
            uint64_t host_ns = frame >= 340 ? now_ns + shift_ns : bad_reading(now_ns, &shift_ns, &seed);
            uint64_t delta_ns = host_ns - last_ns; // a host that takes no care
            last_ns = host_ns;
            assert_int_equal(nb_engine_frame_delta(r.engine, delta_ns), NB_OK);
            model_read(&m, m.reading_ns + delta_ns);
            assert_agrees(&r, &m, rate, ticks);
        }
        assert_recovered(before, ticks, rate);
        rig_close(&r);
    }
}

// --- each trouble alone ---

TEST(one_underflowed_delta_costs_one_frame) {
    uint64_t ticks = 0;
    open_counting(&r, (nb_clock){0}, (nb_rate){50, 1}, &ticks);
    for (int i = 0; i < 50; ++i) nb_engine_frame_delta(r.engine, 20 * MS);
    assert_int_equal(nb_engine_frame_delta(r.engine, 0 - 10 * MS), NB_OK);
    assert_int_equal(ticks, 50);
    assert_int_equal(report_of(&r).clock_backwards_count, 1);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_LOOP_CLOCK_BACKWARDS), 1);
    nb_engine_frame_delta(r.engine, 30 * MS); // the host's clock is 20 ms past where it was
    assert_int_equal(ticks, 51);
    for (int i = 0; i < 50; ++i) nb_engine_frame_delta(r.engine, 20 * MS);
    assert_int_equal(ticks, 101);
    rig_close(&r);
}

TEST(clock_without_an_answer_costs_nothing_once_it_answers) {
    nb_clock_manual clock;
    uint64_t ticks = 0;
    nb_clock_manual_init(&clock, UINT64_MAX); // already at the first frame
    open_counting(&r, nb_clock_manual_get(&clock), (nb_rate){50, 1}, &ticks);
    assert_int_equal(nb_engine_frame(r.engine), NB_OK);
    for (uint64_t frame = 0; frame < 100; ++frame) {
        bool is_mute = frame % 10 == 5 || (frame >= 40 && frame < 50);
        nb_clock_manual_set(&clock, is_mute ? UINT64_MAX : 5 * S + frame * 20 * MS);
        assert_int_equal(nb_engine_frame(r.engine), NB_OK);
    }
    assert_int_equal(ticks, 99);
    assert_int_equal(report_of(&r).clock_adopt_count, 0);
    assert_int_equal(report_of(&r).clock_backwards_count, 1 + 9 + 10);
    rig_close(&r);
}

// A clock that is off in single readings, wherever the engine takes them: pacing, frames, costs of ticks.
typedef struct shaky_clock {
    uint64_t now_ns, seed;
    uint32_t wrong_one_in;
} shaky_clock;

static uint64_t shaky_now(void *user) {
    shaky_clock *clock = user;
    clock->now_ns += 1000;
    uint64_t dice = test_random(&clock->seed);
    if (clock->wrong_one_in == 0 || dice % clock->wrong_one_in != 0) return clock->now_ns;
    if (dice >> 62 == 0) return UINT64_MAX;
    return clock->now_ns + (dice >> 8) % (20 * MS) - 10 * MS;
}

static void shaky_sleep(void *user, uint64_t deadline_ns) {
    shaky_clock *clock = user;
    assert_true(deadline_ns < clock->now_ns + S); // nothing sleeps for ever
    if (clock->now_ns < deadline_ns) clock->now_ns = deadline_ns;
}

static nb_result stop_at_end(const nb_context *context, void *user) {
    const shaky_clock *clock = user;
    return clock->now_ns >= 11 * S ? nb_engine_stop(context->engine) : NB_OK;
}

TEST(glitches_of_ten_seconds_neither_add_nor_take_ticks) {
    for (uint32_t paced = 0; paced < 2; ++paced) {
        shaky_clock clock = {.now_ns = S, .seed = test_seed(__func__)};
        uint64_t ticks = 0;
        open_counting(&r, (nb_clock){shaky_now, shaky_sleep, &clock}, (nb_rate){60, 1}, &ticks);
        attach(&r, (nb_module_desc){.name = "end", .frame = stop_at_end, .user = &clock});
        nb_engine_frame(r.engine); // the first one is right, the one that time counts from
        clock.wrong_one_in = 60;
        if (paced != 0) assert_int_equal(nb_engine_run(r.engine), NB_OK);
        for (clock.now_ns += 5 * MS; !paced && clock.now_ns < 11 * S; clock.now_ns += 5 * MS) nb_engine_frame(r.engine);
        assert_in_range(ticks, 598, 602);
        if (!paced) assert_true(report_of(&r).clock_backwards_count > 5); // else the grid hides them
        assert_in_range(report_of(&r).pace_skip_count, 0, 60);
        rig_close(&r);
    }
}

// Nothing can run while it stands; afterwards time goes on as if the clock had never stopped.
TEST(clock_that_stands_still_is_counted_and_told_once) {
    nb_clock_manual clock;
    uint64_t ticks = 0, frames = NB_LOOP_STILL_COUNT_MAX + 500;
    nb_clock_manual_init(&clock, S);
    open_counting(&r, nb_clock_manual_get(&clock), (nb_rate){50, 1}, &ticks);
    for (uint64_t i = 0; i < frames; ++i) nb_engine_frame(r.engine);
    assert_int_equal(ticks, 0);
    // The first reading is like none before it, or like the one that came with the clock.
    assert_in_range(report_of(&r).clock_still_count, frames - 1, frames);
    assert_int_equal(report_of(&r).clock_backwards_count, 0);
    assert_int_equal(test_log_count(&r.log, NB_ITEM_LOOP_CLOCK_BACKWARDS), 1);
    for (int i = 0; i < 50; ++i, nb_clock_manual_advance(&clock, 20 * MS)) nb_engine_frame(r.engine);
    assert_in_range(ticks, 49, 50);
    rig_close(&r);
}

static nb_result count_events(const nb_context *context, void *user) {
    *(uint64_t *)user += context->input.count;
    return NB_OK;
}

// Events from before a clock was set back by an hour do not wait for that hour.
TEST(events_before_a_lasting_step_back_reach_a_tick) {
    nb_clock_manual clock;
    uint64_t ticks = 0, events = 0;
    nb_clock_manual_init(&clock, 3610 * S);
    open_counting(&r, nb_clock_manual_get(&clock), (nb_rate){50, 1}, &ticks);
    attach(&r, (nb_module_desc){.name = "reader", .tick = count_events, .user = &events});
    nb_engine_frame(r.engine);
    nb_input_event before = {.timestamp_ns = 3610 * S, .kind = NB_INPUT_PRESS, .code = 1};
    assert_int_equal(nb_input_send(nb_engine_input(r.engine), &before), NB_OK);
    nb_clock_manual_set(&clock, 10 * S);
    for (int i = 0; i < 12; ++i, nb_clock_manual_advance(&clock, 20 * MS)) nb_engine_frame(r.engine);
    assert_true(ticks > 0);
    assert_int_equal(events, 1);
    nb_input_event after = {.timestamp_ns = 11 * S, .kind = NB_INPUT_RELEASE, .code = 1}; // waits for its tick as ever
    assert_int_equal(nb_input_send(nb_engine_input(r.engine), &after), NB_OK);
    nb_engine_frame(r.engine);
    assert_int_equal(events, 1);
    for (int i = 0; i < 60; ++i, nb_clock_manual_advance(&clock, 20 * MS)) nb_engine_frame(r.engine);
    assert_int_equal(events, 2);
    rig_close(&r);
}
