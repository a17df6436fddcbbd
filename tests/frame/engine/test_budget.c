// SPDX-License-Identifier: MIT
// The budget controller under computed loads: steps, ramps, noise, spikes, loads made to mislead, discontinuities.

#include "support/support.h"

#include "nebula/budget.h"
#include "nebula/random.h"

#define TARGET_NS UINT64_C(16000000)
#define LEVELS 4

// What a frame costs, in thousandths of the target.
typedef struct world {
    uint32_t level_permille[LEVELS]; // at load 1000
    uint32_t load_permille;          // multiplies it
    uint32_t noise_permille;         // of the cost, to either side
    uint32_t spike_every;            // frames; 0 = never
} world;

// Levels of about 15 % each, the highest at nine tenths of the target.
static const world plain = {{553, 650, 765, 900}, 1000, 0, 0};

typedef struct run {
    nb_budget budget;
    world world;
    uint32_t frame;        // of all
    uint32_t over_count;   // frames over the target
    uint32_t over_last;    // the newest of them
    uint32_t change_count; // of the level
    uint32_t change_last;  // the newest
} run;

static run run_of(world w) {
    run r = {.world = w};
    nb_budget_desc desc = {.level_count = LEVELS, .target_ns = TARGET_NS};
    assert_int_equal(nb_budget_init(&r.budget, &desc), NB_OK);
    assert_int_equal(nb_budget_level(&r.budget), LEVELS - 1);
    return r;
}

static uint64_t cost_ns(const run *r) {
    const world *w = &r->world;
    uint64_t permille = (uint64_t)w->level_permille[nb_budget_level(&r->budget)] * w->load_permille / 1000;
    if (w->noise_permille != 0) {
        uint64_t part = nb_random_range(nb_random_make(11, r->frame, 0), 0, 2 * w->noise_permille + 1);
        permille = permille * (1000 - w->noise_permille + part) / 1000;
    }
    if (w->spike_every != 0 && r->frame % w->spike_every == 0) permille *= 10;
    return permille * TARGET_NS / 1000;
}

static void feed(run *r, uint64_t measured_ns) {
    uint32_t before = nb_budget_level(&r->budget);
    nb_budget_sample sample = {.measured_ns = measured_ns};
    assert_int_equal(nb_budget_update(&r->budget, &sample), NB_OK);
    ++r->frame;
    if (measured_ns > TARGET_NS) {
        ++r->over_count;
        r->over_last = r->frame;
    }
    if (nb_budget_level(&r->budget) != before) {
        ++r->change_count;
        r->change_last = r->frame;
    }
}

static void run_frames(run *r, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) feed(r, cost_ns(r));
}

// --- loads ---

TEST(load_that_fits_changes_nothing) {
    run r = run_of(plain);
    run_frames(&r, 10000);
    assert_int_equal(r.change_count, 0);
    assert_int_equal(r.over_count, 0);
}

TEST(step_of_half_is_answered_within_a_few_frames) {
    run r = run_of(plain);
    run_frames(&r, 600);
    r.world.load_permille = 1500;
    run_frames(&r, 5000);
    // Three frames to be sure, then two levels at once.
    assert_int_equal(r.over_count, 3);
    assert_int_equal(r.over_last, 603);
    assert_int_equal(nb_budget_level(&r.budget), 1);
    assert_int_equal(r.change_count, 1);
}

TEST(overload_beyond_all_levels_ends_at_the_lowest) {
    run r = run_of(plain);
    r.world.load_permille = 5000;
    run_frames(&r, 2000);
    assert_int_equal(nb_budget_level(&r.budget), 0);
    assert_in_range(r.change_last, 1, 20);
}

TEST(quality_comes_back_after_the_load_is_gone) {
    run r = run_of((world){{400, 480, 580, 700}, 1000, 0, 0});
    run_frames(&r, 600);
    r.world.load_permille = 2000;
    run_frames(&r, 1000);
    assert_int_equal(nb_budget_level(&r.budget), 1);
    r.world.load_permille = 1000;
    run_frames(&r, 2 * (3 * NB_BUDGET_RAISE_FRAMES_DEFAULT + 2 * NB_BUDGET_SETTLE_FRAMES_DEFAULT));
    assert_int_equal(nb_budget_level(&r.budget), 3);
    run_frames(&r, 5000);
    assert_int_equal(r.change_count, 3); // down by two, up one by one
}

// Up by a thousandth a frame and down again.
TEST(ramp_is_followed_both_ways) {
    run r = run_of((world){{350, 430, 530, 650}, 1000, 0, 0});
    for (; r.world.load_permille < 2400; ++r.world.load_permille) run_frames(&r, 1);
    assert_in_range(nb_budget_level(&r.budget), 0, 1);
    // A few frames for each level on the way.
    assert_in_range(r.over_count, 3, 3 * 8);
    for (; r.world.load_permille > 1000; --r.world.load_permille) run_frames(&r, 1);
    run_frames(&r, 2000);
    assert_int_equal(nb_budget_level(&r.budget), 3);
    uint32_t changes = r.change_count;
    run_frames(&r, 10000);
    assert_int_equal(r.change_count, changes);
}

TEST(noise_within_the_target_changes_nothing) {
    run r = run_of((world){{553, 650, 765, 850}, 1000, 150, 0});
    run_frames(&r, 50000);
    assert_int_equal(r.change_count, 0);
}

// Over the target now and then, at every level's edge in turn: a few tries, then quiet.
TEST(noise_across_the_target_settles) {
    for (uint32_t load = 900; load <= 1700; load += 10) {
        run r = run_of((world){{553, 650, 765, 900}, load, 120, 0});
        run_frames(&r, 100000);
        assert_in_range(r.change_count, 0, 14);
        uint32_t changes = r.change_count, overs = r.over_count;
        run_frames(&r, 50000);
        assert_in_range(r.change_count - changes, 0, 2);
        if (nb_budget_level(&r.budget) > 0) assert_in_range(r.over_count - overs, 0, 50000 / 5);
    }
}

// Over the target so rarely that the highest level passes its trials: it must not be dropped and lifted for ever.
TEST(level_that_fails_rarely_is_given_up) {
    for (uint32_t top = 925; top <= 932; ++top) {
        run r = run_of((world){{400, 500, 690, top}, 1000, 80, 0});
        run_frames(&r, 300000);
        assert_in_range(r.change_count, 0, 13);
    }
}

TEST(lone_spikes_change_nothing) {
    run r = run_of(plain);
    r.world.spike_every = 8; // two in each window
    run_frames(&r, 20000);
    assert_int_equal(r.change_count, 0);
    assert_int_equal(r.over_count, 2500);
}

TEST(frequent_spikes_lower) {
    run r = run_of(plain);
    r.world.spike_every = 5;
    run_frames(&r, 100);
    assert_true(nb_budget_level(&r.budget) < LEVELS - 1);
}

// Spikes do not keep the level down for ever either: two of a row are left out.
TEST(rare_spikes_do_not_stop_a_raise) {
    run r = run_of((world){{400, 480, 580, 700}, 2000, 0, 0});
    run_frames(&r, 1000);
    r.world.load_permille = 1000;
    r.world.spike_every = 20;
    run_frames(&r, 3000);
    assert_int_equal(nb_budget_level(&r.budget), 3);
}

// --- what must not swing ---

// There is room at a level and none at the next: one try, whatever the time.
TEST(level_that_does_not_fit_is_tried_once) {
    run r = run_of((world){{400, 500, 700, 1100}, 1000, 0, 0});
    run_frames(&r, 200000);
    nb_budget_stats stats = nb_budget_stats_get(&r.budget);
    assert_int_equal(nb_budget_level(&r.budget), 2);
    assert_int_equal(stats.raise_count, 1);
    assert_int_equal(stats.fail_count, 1);
    assert_int_equal(stats.lower_count, 2);
    assert_true(r.change_last < 1000);
}

// A lighter load is tried again, and kept if it fits.
TEST(level_is_tried_again_under_a_lighter_load) {
    run r = run_of((world){{400, 500, 700, 1100}, 1000, 0, 0});
    run_frames(&r, 2000);
    assert_int_equal(nb_budget_level(&r.budget), 2);
    r.world.load_permille = 950; // lighter, but not clearly
    run_frames(&r, 5000);
    assert_int_equal(nb_budget_level(&r.budget), 2);
    r.world.load_permille = 860;
    run_frames(&r, 5000);
    assert_int_equal(nb_budget_level(&r.budget), 3);
    assert_int_equal(r.change_count, 4);
}

// A load that gets lighter each time a raise has failed and heavier with each raise. The waits double, so the tries
// become rare.
TEST(misleading_load_gets_ever_fewer_tries) {
    run r = run_of(plain);
    uint32_t light = 700, before = LEVELS - 1, raise_frame[64] = {0}, raise_count = 0;
    for (uint32_t i = 0; i < 200000; ++i) {
        uint32_t level = nb_budget_level(&r.budget);
        if (level < before) light = light > 20 ? light * 8 / 10 : 700;
        if (level > before && raise_count < 64) raise_frame[raise_count++] = i;
        before = level;
        feed(&r, (level == LEVELS - 1 ? 1200 : light) * TARGET_NS / 1000);
    }
    assert_in_range(raise_count, 3, 40);
    uint32_t last_gap = raise_frame[raise_count - 1] - raise_frame[raise_count - 2];
    assert_true(last_gap >= NB_BUDGET_WAIT_FRAMES_MAX);
    assert_in_range(r.over_count, 1, raise_count * 8 + 8);
}

static void level_is_as_good_as_it_can_be(const run *r) {
    uint32_t level = nb_budget_level(&r->budget);
    const world *w = &r->world;
    if (level > 0) assert_true(w->level_permille[level] * w->load_permille / 1000 <= 1000);
    if (level + 1 == LEVELS) return;
    bool has_room = w->level_permille[level] * w->load_permille / 1000 <= NB_BUDGET_ROOM_PERMILLE_DEFAULT;
    bool next_fits = w->level_permille[level + 1] * w->load_permille / 1000 <= 1000;
    assert_false(has_room && next_fits);
}

TEST(constant_load_settles_and_stays) {
    uint64_t seed = test_seed("constant_load_settles_and_stays");
    for (uint64_t i = 0; i < test_size(300, 3000, 30000); ++i) {
        world w = {{0}, 1000, 0, 0};
        uint32_t permille = 100 + (uint32_t)(test_random(&seed) % 1000);
        for (uint32_t level = 0; level < LEVELS; ++level) {
            w.level_permille[level] = permille;
            permille = permille * (1010 + (uint32_t)(test_random(&seed) % 600)) / 1000;
        }
        run r = run_of(w);
        run_frames(&r, 5000);
        uint32_t changes = r.change_count;
        assert_in_range(changes, 0, 2 * LEVELS + 2);
        level_is_as_good_as_it_can_be(&r);
        run_frames(&r, 5000);
        assert_int_equal(r.change_count, changes);
    }
}

// --- discontinuities ---

static void jump(run *r, uint64_t measured_ns) {
    nb_budget_sample sample = {.measured_ns = measured_ns, .is_discontinuity = true};
    assert_int_equal(nb_budget_update(&r->budget, &sample), NB_OK);
}

TEST(discontinuities_are_not_overload) {
    run r = run_of(plain);
    for (int i = 0; i < 1000; ++i) {
        jump(&r, 100 * TARGET_NS);
        // The frames right after it are slow, too.
        feed(&r, 3 * TARGET_NS);
        feed(&r, 2 * TARGET_NS);
        run_frames(&r, 5);
    }
    assert_int_equal(r.change_count, 0);
    nb_budget_stats stats = nb_budget_stats_get(&r.budget);
    assert_int_equal(stats.over_count, 2000);
    assert_int_equal(stats.ignored_count, 5000);
    assert_int_equal(stats.frame_count, 8000);
}

TEST(frames_of_two_scenes_are_not_counted_together) {
    run r = run_of(plain);
    run_frames(&r, 100);
    for (int i = 0; i < 100; ++i) {
        feed(&r, 2 * TARGET_NS);
        feed(&r, 2 * TARGET_NS);
        jump(&r, 0);
        run_frames(&r, 4);
    }
    assert_int_equal(r.change_count, 0);
}

// A new scene may have what the old one had not, but the wait stays: many scenes do not make many tries.
TEST(new_scene_forgets_what_failed_but_not_the_wait) {
    run r = run_of((world){{400, 500, 700, 1100}, 1000, 0, 0});
    run_frames(&r, 3000);
    assert_int_equal(nb_budget_stats_get(&r.budget).fail_count, 1);
    jump(&r, 0);
    r.world.level_permille[3] = 900;
    run_frames(&r, 1000);
    assert_int_equal(nb_budget_level(&r.budget), 3);
    r = run_of((world){{400, 500, 700, 1100}, 1000, 0, 0});
    for (int scene = 0; scene < 100; ++scene) {
        run_frames(&r, 200);
        jump(&r, 0);
    }
    assert_in_range(nb_budget_stats_get(&r.budget).fail_count, 2, 10);
}

// --- outputs and inputs ---

TEST(optional_work_follows_level_and_sight) {
    run r = run_of(plain);
    nb_budget *budget = &r.budget;
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION), 4000000);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_MESHING), 3000000);
    nb_budget_sample unseen = {.measured_ns = TARGET_NS / 2, .has_nothing_visible = true};
    nb_budget_update(budget, &unseen);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION), 16000000);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_MESHING), 12000000);
    r.world.load_permille = 5000;
    run_frames(&r, 100);
    assert_int_equal(nb_budget_level(budget), 0);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION), 1000000);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_MESHING), 750000);
    nb_budget_update(budget, &unseen);
    assert_int_equal(nb_budget_optional_ns(budget, NB_BUDGET_KIND_MESHING), 12000000);
    nb_budget_desc huge = {.generation_ns = UINT64_MAX, .level_count = 3};
    assert_int_equal(nb_budget_init(budget, &huge), NB_OK);
    assert_true(nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION) == UINT64_MAX);
    nb_budget_update(budget, &unseen);
    assert_true(nb_budget_optional_ns(budget, NB_BUDGET_KIND_GENERATION) == UINT64_MAX);
}

TEST(target_may_change_at_any_time) {
    run r = run_of(plain);
    run_frames(&r, 100);
    // From 62.5 to 125 Hz: what fitted is now twice too long, down to the lowest level.
    nb_budget_sample sample = {.target_ns = TARGET_NS / 2};
    for (int i = 0; i < 100; ++i) {
        sample.measured_ns = cost_ns(&r);
        nb_budget_update(&r.budget, &sample);
        sample.target_ns = 0; // stays
    }
    assert_int_equal(nb_budget_level(&r.budget), 0);
}

TEST(times_at_the_ends_of_their_range) {
    static const uint64_t times[] = {0,         1, 999, TARGET_NS, UINT64_C(1) << 50, UINT64_MAX / 1000, UINT64_MAX - 1,
                                     UINT64_MAX};
    for (size_t t = 0; t < 8; ++t) {
        for (size_t m = 0; m < 8; ++m) {
            run r = run_of(plain);
            nb_budget_sample sample = {.measured_ns = times[m], .target_ns = times[t]};
            for (int i = 0; i < 3; ++i) nb_budget_update(&r.budget, &sample);
            uint64_t target_ns = times[t] != 0 ? times[t] : TARGET_NS;
            bool is_clearly_over = times[m] / 2 > target_ns;
            if (is_clearly_over) assert_true(nb_budget_level(&r.budget) < LEVELS - 1);
            if (times[m] <= target_ns) assert_int_equal(nb_budget_level(&r.budget), LEVELS - 1);
        }
    }
    run r = run_of(plain);
    for (int i = 0; i < 100; ++i) feed(&r, TARGET_NS); // exactly on target is within it
    assert_int_equal(r.change_count, 0);
    for (int i = 0; i < 3; ++i) feed(&r, TARGET_NS + 1);
    assert_int_equal(r.change_count, 1);
}

TEST(single_level_never_changes) {
    nb_budget budget;
    nb_budget_desc desc = {.level_count = 1, .window_frames = 1};
    assert_int_equal(nb_budget_init(&budget, &desc), NB_OK);
    for (int i = 0; i < 1000; ++i) {
        nb_budget_sample sample = {.measured_ns = i < 500 ? UINT64_C(1000000000) : 1};
        nb_budget_update(&budget, &sample);
        assert_int_equal(nb_budget_level(&budget), 0);
    }
    nb_budget_stats stats = nb_budget_stats_get(&budget);
    assert_int_equal(stats.lower_count + stats.raise_count, 0);
}

TEST(same_times_give_the_same_bytes) {
    static run a, b;
    memset(&a, 0, sizeof a);
    memset(&b, 0xFF, sizeof b);
    nb_budget_desc desc = {.level_count = LEVELS, .target_ns = TARGET_NS};
    nb_budget_init(&a.budget, &desc);
    nb_budget_init(&b.budget, &desc);
    a.world = b.world = (world){{553, 650, 765, 900}, 1200, 200, 7};
    a.frame = b.frame = 0;
    for (int i = 0; i < 20000; ++i) {
        run_frames(&a, 1);
        run_frames(&b, 1);
        assert_memory_equal(&a.budget.stats, &b.budget.stats, sizeof a.budget.stats);
        assert_int_equal(nb_budget_level(&a.budget), nb_budget_level(&b.budget));
    }
}

TEST(level_changes_are_logged_for_who_asks) {
    test_log log = {0};
    nb_budget budget;
    nb_budget_desc desc = {.hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_budget_init(&budget, &desc), NB_OK);
    nb_budget_sample sample = {.measured_ns = 20000000};
    for (int i = 0; i < 3; ++i) nb_budget_update(&budget, &sample);
    assert_int_equal(test_log_count(&log, NB_ITEM_BUDGET_LEVEL), 1);
}
