// SPDX-License-Identifier: MIT
// The quality level of engines on a virtual clock: displays that block in Present, other waits, targets, and how soon
// quality comes back.

#include "frame/engine/engine_fixture.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define LEVELS 4u

// A game, and a display that shows a picture every period_ns.
typedef struct game {
    rig r;
    nb_clock_manual clock;
    uint64_t period_ns; // 0 = Present does not block
    uint64_t work_ns, work_range_ns, seed;
    uint64_t wait_ns; // in FrameStart
    bool is_wait_enclosed, is_wait_left_open;
    nb_result wait_result;
} game;

static nb_result wait_for_image(const nb_context *context, void *user) {
    game *g = user;
    if (g->is_wait_enclosed) g->wait_result = nb_engine_wait_begin(context->engine);
    nb_clock_manual_advance(&g->clock, g->wait_ns);
    bool is_ended = g->is_wait_enclosed && !g->is_wait_left_open;
    if (is_ended && g->wait_result == NB_OK) g->wait_result = nb_engine_wait_end(context->engine);
    return NB_OK;
}

static nb_result work(const nb_context *context, void *user) {
    game *g = user;
    (void)context;
    uint64_t more_ns = g->work_range_ns != 0 ? test_random(&g->seed) % g->work_range_ns : 0;
    nb_clock_manual_advance(&g->clock, g->work_ns + more_ns);
    return NB_OK;
}

static nb_result present(const nb_context *context, void *user) {
    game *g = user;
    (void)context;
    if (g->period_ns == 0) return NB_OK;
    nb_clock clock = nb_clock_manual_get(&g->clock);
    nb_clock_manual_set(&g->clock, (nb_clock_now_ns(&clock) / g->period_ns + 1) * g->period_ns);
    return NB_OK;
}

static void game_open(game *g, nb_engine_desc desc) {
    *g = (game){.seed = test_seed(__func__)};
    nb_clock_manual_init(&g->clock, 0);
    desc.loop.clock = nb_clock_manual_get(&g->clock);
    desc.adapts_budget = true;
    desc.budget.level_count = LEVELS;
    rig_open_desc(&g->r, desc);
    nb_module_desc module = {.name = "game", .frame = work, .user = g};
    module.handlers[NB_PHASE_FRAME_START] = wait_for_image;
    module.handlers[NB_PHASE_PRESENT] = present;
    attach(&g->r, module);
}

static uint32_t level_of(const game *g) { return nb_budget_level(nb_engine_budget(g->r.engine)); }

static void frames(game *g, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) assert_int_equal(nb_engine_frame(g->r.engine), NB_OK);
}

// Frames until the level is another one, `count_max` at most.
static uint32_t frames_until_change(game *g, uint32_t count_max) {
    uint32_t before = level_of(g), count = 0;
    for (; count < count_max && level_of(g) == before; ++count) frames(g, 1);
    return count;
}

// --- waits ---

TEST(display_that_blocks_in_present_costs_no_quality) {
    game g;
    game_open(&g, rig_desc(0));
    g.period_ns = 16666667;
    g.work_ns = 100 * US;
    frames(&g, 600);
    assert_int_equal(level_of(&g), LEVELS - 1);
    assert_int_equal(nb_budget_stats_get(nb_engine_budget(g.r.engine)).over_count, 0);
    assert_int_equal(rig_stats(&g.r).work_ns, 100 * US);
    assert_int_equal(rig_stats(&g.r).frame_ns, 16666667);
    g.work_ns = 20 * MS; // two refreshes for each frame
    assert_in_range(frames_until_change(&g, 100), 1, 30);
    assert_true(level_of(&g) < LEVELS - 1);
    frames(&g, 100);
    assert_int_equal(level_of(&g), 0);
    g.work_ns = 100 * US;
    assert_in_range(frames_until_change(&g, 200), 1, 60);
    assert_int_equal(level_of(&g), 1);
    rig_close(&g.r);
}

TEST(slow_display_costs_no_quality) {
    game g;
    game_open(&g, rig_desc(0));
    g.period_ns = 50 * MS; // a display of 20 Hz, or a device that is late: not for the game to mend
    g.work_ns = 15 * MS;
    frames(&g, 300);
    assert_int_equal(level_of(&g), LEVELS - 1);
    rig_close(&g.r);
}

TEST(waits_that_the_host_encloses_are_no_work) {
    game g;
    game_open(&g, rig_desc(0));
    g.work_ns = MS;
    g.wait_ns = 30 * MS;
    frames(&g, 30);
    assert_true(level_of(&g) < LEVELS - 1); // nobody has said that it waits
    rig_close(&g.r);
    for (uint32_t is_left_open = 0; is_left_open < 2; ++is_left_open) {
        game_open(&g, rig_desc(0));
        g.work_ns = MS;
        g.wait_ns = 30 * MS;
        g.is_wait_enclosed = true;
        g.is_wait_left_open = is_left_open != 0; // it ends with its phase
        frames(&g, 100);
        assert_int_equal(g.wait_result, NB_OK);
        assert_int_equal(level_of(&g), LEVELS - 1);
        assert_int_equal(rig_stats(&g.r).work_ns, MS);
        g.work_ns = 20 * MS;
        frames(&g, 30);
        assert_true(level_of(&g) < LEVELS - 1);
        rig_close(&g.r);
    }
}

typedef struct nester {
    game *g;
    nb_result results[8];
} nester;

static nb_result nest(const nb_context *context, void *user) {
    nester *n = user;
    n->results[0] = nb_engine_wait_begin(context->engine);
    n->results[1] = nb_engine_wait_begin(context->engine);
    nb_clock_manual_advance(&n->g->clock, 5 * MS);
    n->results[2] = nb_engine_wait_end(context->engine);
    nb_clock_manual_advance(&n->g->clock, 5 * MS);
    n->results[3] = nb_engine_wait_end(context->engine);
    n->results[4] = nb_engine_wait_end(context->engine);
    nb_clock_manual_advance(&n->g->clock, MS);
    return NB_OK;
}

TEST(waits_nest_and_end_once) {
    static const nb_phase phases[] = {NB_PHASE_INPUT, NB_PHASE_GAMEPLAY, NB_PHASE_PRESENT, NB_PHASE_ASYNC_POLL};
    for (uint32_t i = 0; i < 4; ++i) {
        game g;
        game_open(&g, rig_desc(0));
        nester n = {.g = &g};
        nb_module_desc module = {.name = "nester", .user = &n};
        module.handlers[phases[i]] = nest;
        attach(&g.r, module);
        frames(&g, 2);
        for (uint32_t k = 0; k < 4; ++k) assert_int_equal(n.results[k], NB_OK);
        assert_int_equal(n.results[4], NB_ERR_MISUSE);
        assert_int_equal(rig_stats(&g.r).work_ns, phases[i] == NB_PHASE_PRESENT ? 0 : MS);
        assert_int_equal(nb_engine_wait_begin(g.r.engine), NB_ERR_MISUSE); // between frames
        assert_int_equal(nb_engine_wait_end(g.r.engine), NB_ERR_MISUSE);
        rig_close(&g.r);
    }
}

// --- targets ---

static uint32_t level_under(nb_engine_desc desc, uint64_t work_ns, bool is_paced) {
    game g;
    game_open(&g, desc);
    g.work_ns = work_ns;
    for (uint32_t i = 0; i < 60; ++i) {
        if (is_paced) assert_int_equal(nb_loop_pace(nb_engine_loop(g.r.engine)), NB_OK);
        frames(&g, 1);
    }
    uint32_t level = level_of(&g);
    rig_close(&g.r);
    return level;
}

TEST(target_follows_the_length_of_a_frame) {
    nb_engine_desc desc = rig_desc(0);
    assert_int_equal(level_under(desc, 20 * MS, false), 0); // nothing known: 60 Hz
    assert_int_equal(level_under(desc, 16 * MS, false), LEVELS - 1);
    desc.loop.pace_rate = (nb_rate){30, 1};
    assert_int_equal(level_under(desc, 20 * MS, true), LEVELS - 1);
    assert_int_equal(level_under(desc, 20 * MS, false), LEVELS - 1);
    assert_int_equal(level_under(desc, 40 * MS, true), 0);
    desc.loop.refresh_rate = (nb_rate){60, 1}; // every second picture of the display
    assert_int_equal(level_under(desc, 20 * MS, true), LEVELS - 1);
    desc.budget.target_ns = 16 * MS;
    assert_int_equal(level_under(desc, 20 * MS, true), 0);
    desc = nb_engine_desc_default();
    desc.scheduler_desc = rig_desc(0).scheduler_desc;
    desc.loop.tick_rate = (nb_rate){30, 1}; // the default of the pace
    assert_int_equal(level_under(desc, 20 * MS, true), LEVELS - 1);
    desc.loop.refresh_rate = (nb_rate){144, 1};
    desc.loop.pace_rate = (nb_rate){144, 1};
    assert_int_equal(level_under(desc, 10 * MS, false), 0);
}

TEST(target_moves_to_another_display_with_the_window) {
    game g;
    nb_engine_desc desc = rig_desc(0);
    desc.loop.refresh_rate = (nb_rate){60, 1};
    game_open(&g, desc);
    g.work_ns = 12 * MS;
    frames(&g, 100);
    assert_int_equal(level_of(&g), LEVELS - 1);
    assert_int_equal(nb_loop_set_refresh(nb_engine_loop(g.r.engine), (nb_rate){120, 1}), NB_OK);
    frames(&g, 100);
    assert_int_equal(level_of(&g), 0);
    rig_close(&g.r);
}

// An estimate says what the display does now; one that was shorter is no measure for the next display.
TEST(target_comes_back_with_a_slower_display_that_is_estimated) {
    static nb_frame_stats stats;
    game g;
    nb_engine_desc desc = rig_desc(0);
    assert_int_equal(nb_frame_stats_init(&stats), NB_OK);
    desc.loop.stats = &stats;
    desc.loop.is_refresh_estimated = true;
    game_open(&g, desc);
    g.work_ns = MS;
    g.period_ns = 6944444;
    frames(&g, 1200);
    assert_int_equal(nb_loop_report_get(nb_engine_loop(g.r.engine)).refresh_rate.num, 144);
    g.period_ns = 16666667;
    frames(&g, 2400);
    assert_int_equal(nb_loop_report_get(nb_engine_loop(g.r.engine)).refresh_rate.num, 60);
    g.work_ns = 12 * MS;
    frames(&g, 100);
    assert_int_equal(level_of(&g), LEVELS - 1);
    rig_close(&g.r);
    // The host's own pace is no estimate.
    nb_frame_stats_init(&stats);
    desc.loop.pace_rate = (nb_rate){30, 1};
    assert_int_equal(level_under(desc, 20 * MS, true), LEVELS - 1);
}

static nb_result read_left(const nb_context *context, void *user) {
    *(uint64_t *)user = context->snapshot->info.budget_ns;
    return NB_OK;
}

TEST(target_follows_the_length_of_a_frame_where_nothing_adapts) {
    rig r;
    uint64_t left_ns = 0;
    nb_clock_manual clock;
    nb_clock_manual_init(&clock, 0);
    nb_engine_desc desc = rig_desc(0);
    desc.loop.clock = nb_clock_manual_get(&clock);
    desc.loop.refresh_rate = (nb_rate){25, 1};
    rig_open_desc(&r, desc);
    assert_non_null(nb_engine_snapshots(r.engine));
    nb_module_desc module = {.name = "reader", .user = &left_ns};
    module.handlers[NB_PHASE_POST_PARALLEL] = read_left;
    attach(&r, module);
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(nb_engine_frame(r.engine), NB_OK);
    assert_int_equal(left_ns, 40 * MS);
    rig_close(&r);
}

// --- the host's choice ---

static nb_result read_level(const nb_context *context, void *user) {
    *(uint32_t *)user = context->quality_level;
    return NB_OK;
}

TEST(level_that_the_host_sets_is_where_the_budget_goes_on) {
    game g;
    uint32_t seen = 0;
    game_open(&g, rig_desc(0));
    attach(&g.r, (nb_module_desc){.name = "reader", .frame = read_level, .user = &seen});
    nb_budget *budget = nb_engine_budget(g.r.engine);
    g.work_ns = 14 * MS; // fits, without room for more
    frames(&g, 60);
    assert_int_equal(nb_budget_set_level(budget, 1), NB_OK);
    frames(&g, 300);
    assert_int_equal(seen, 1);
    assert_int_equal(nb_budget_set_level(budget, LEVELS), NB_ERR_RANGE);
    g.work_ns = 20 * MS; // the highest does not fit
    assert_int_equal(nb_budget_set_level(budget, LEVELS - 1), NB_OK);
    frames(&g, 1);
    assert_int_equal(seen, LEVELS - 1);
    assert_in_range(frames_until_change(&g, 100), 1, 30);
    g.work_ns = MS;
    assert_int_equal(nb_budget_set_level(budget, 0), NB_OK);
    frames(&g, 180);
    assert_int_equal(level_of(&g), LEVELS - 1);
    rig_close(&g.r);
}

TEST(level_stays_where_the_host_sets_it_if_nothing_adapts) {
    rig r;
    uint32_t seen = 0;
    rig_open(&r, 0);
    attach(&r, (nb_module_desc){.name = "reader", .frame = read_level, .user = &seen});
    assert_int_equal(nb_budget_set_level(nb_engine_budget(r.engine), 1), NB_OK);
    run_ticks(&r, 300);
    assert_int_equal(seen, 1);
    rig_close(&r);
}

// --- and back ---

TEST(quality_that_fits_is_back_within_seconds) {
    game g;
    game_open(&g, rig_desc(0));
    g.period_ns = 16666667;
    g.work_ns = 40 * MS; // a level is built
    frames(&g, 300);
    assert_int_equal(level_of(&g), 0);
    g.work_ns = 7 * MS;
    g.work_range_ns = 3 * MS;
    assert_in_range(frames_until_change(&g, 600), 1, 60);
    frames(&g, 180 - 60);
    assert_int_equal(level_of(&g), LEVELS - 1);
    frames(&g, 2000);
    assert_int_equal(nb_budget_stats_get(nb_engine_budget(g.r.engine)).raise_count, LEVELS - 1);
    rig_close(&g.r);
}
