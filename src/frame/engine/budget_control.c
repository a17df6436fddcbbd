// SPDX-License-Identifier: MIT
// Quality levels from measured times.
//
// Two looks at the same frames. The recent ones are a ring: as soon as over_frames of them are above the target, the
// level falls. The frames that are to prove room are counted in a row of raise_frames, of which the third slowest
// counts: if it leaves room, the level rises by one, on trial.
//
// What keeps it from swinging: a raise that has to be taken back during its trial leaves a mark, how slow the slow
// frames were before it. The same raise is not tried again before those frames are clearly faster than that. Under a
// constant load each level is therefore tried once at most. The wait between raises doubles with each failure, so that
// even a load made to mislead gets ever fewer tries. A level that passes its trial and then falls to a mild overload,
// as under noise that is over the target now and then, is on trial for twice as long as it lasted when it comes again.

#include "nebula/budget.h"

#include <string.h>

#include "../../base/base.h"

// A frame of ten times its target is as bad as any slower one; the limit keeps every product within 64 bits.
#define PERMILLE_MAX 10000u

// A load is clearly lighter than the one that failed where it is by an eighth: more than what the third slowest of a
// row of frames varies by under noise, less than what one level is expected to save.
#define LIGHTER_DIVISOR 8u

// Where a lowered level is meant to end up, in thousandths of the target: on the target itself noise would lift every
// second frame above it.
#define AIM_PERMILLE 950u

// How many rows of raise_frames a raise is on trial: four seconds of 60 Hz. In the first row the level shows what it
// costs; the others are for loads that come and go.
#define TRIAL_ROWS 6u
// How many rows no raise comes after the first that failed: two seconds of 60 Hz, longer than most bursts of load.
#define WAIT_ROWS 3u
// The longest trial, in frames: about twenty minutes of 60 Hz, more than the scene of most games.
#define TRIAL_FRAMES_MAX 65536u

nb_budget_desc nb_budget_desc_default(void) {
    return (nb_budget_desc){
        .level_count = NB_BUDGET_LEVEL_COUNT_DEFAULT,
        .target_ns = NB_BUDGET_TARGET_DEFAULT_NS,
        .window_frames = NB_BUDGET_WINDOW_DEFAULT,
        .over_frames = NB_BUDGET_OVER_DEFAULT,
        .raise_frames = NB_BUDGET_RAISE_FRAMES_DEFAULT,
        .room_permille = NB_BUDGET_ROOM_PERMILLE_DEFAULT,
        .gain_permille = NB_BUDGET_GAIN_PERMILLE_DEFAULT,
        .settle_frames = NB_BUDGET_SETTLE_FRAMES_DEFAULT,
        .generation_ns = NB_BUDGET_GENERATION_DEFAULT_NS,
        .meshing_ns = NB_BUDGET_MESHING_DEFAULT_NS,
        .hooks = nb_hooks_default(),
    };
}

static uint32_t or_default(uint32_t value, uint32_t fallback) { return value != 0 ? value : fallback; }
static uint64_t or_default_ns(uint64_t value, uint64_t fallback) { return value != 0 ? value : fallback; }

static void resolve_desc(const nb_budget_desc *given, nb_budget_desc *desc) {
    *desc = given != NULL ? *given : (nb_budget_desc){0};
    desc->hooks = nbi_hooks_resolve(&desc->hooks);
    desc->level_count = or_default(desc->level_count, NB_BUDGET_LEVEL_COUNT_DEFAULT);
    desc->target_ns = or_default_ns(desc->target_ns, NB_BUDGET_TARGET_DEFAULT_NS);
    desc->window_frames = or_default(desc->window_frames, NB_BUDGET_WINDOW_DEFAULT);
    uint64_t over_frames = nbi_min_u64(NB_BUDGET_OVER_DEFAULT, desc->window_frames);
    desc->over_frames = or_default(desc->over_frames, (uint32_t)over_frames);
    desc->raise_frames = or_default(desc->raise_frames, NB_BUDGET_RAISE_FRAMES_DEFAULT);
    desc->room_permille = or_default(desc->room_permille, NB_BUDGET_ROOM_PERMILLE_DEFAULT);
    desc->gain_permille = or_default(desc->gain_permille, NB_BUDGET_GAIN_PERMILLE_DEFAULT);
    desc->settle_frames = or_default(desc->settle_frames, NB_BUDGET_SETTLE_FRAMES_DEFAULT);
    desc->generation_ns = or_default_ns(desc->generation_ns, NB_BUDGET_GENERATION_DEFAULT_NS);
    desc->meshing_ns = or_default_ns(desc->meshing_ns, NB_BUDGET_MESHING_DEFAULT_NS);
}

static bool is_in_range(const nb_budget_desc *desc) {
    return desc->level_count <= NB_BUDGET_LEVEL_COUNT_MAX && desc->level_lowered < desc->level_count &&
           desc->window_frames <= NB_BUDGET_WINDOW_MAX && desc->over_frames <= desc->window_frames &&
           desc->raise_frames >= 3 && desc->raise_frames <= NB_BUDGET_WAIT_FRAMES_MAX && desc->room_permille < 1000 &&
           desc->gain_permille < 1000 && desc->settle_frames <= NB_BUDGET_WAIT_FRAMES_MAX;
}

static uint32_t wait_frames_first(const nb_budget_desc *desc) {
    return (uint32_t)nbi_min_u64(WAIT_ROWS * (uint64_t)desc->raise_frames, NB_BUDGET_WAIT_FRAMES_MAX);
}

static void forget_marks(nb_budget *budget) {
    for (uint32_t i = 0; i < NB_BUDGET_LEVEL_COUNT_MAX; ++i) {
        budget->failed_permille[i] = 0;
        budget->trial_frames[i] = TRIAL_ROWS * budget->desc.raise_frames;
    }
}

nb_result nb_budget_init(nb_budget *budget, const nb_budget_desc *given) {
    nb_budget_desc desc;
    resolve_desc(given, &desc);
    if (budget == NULL) return NBI_FAIL(&desc.hooks, NB_ITEM_BUDGET_ARGUMENT, NB_ERR_MISUSE, "budget is NULL");
    if (!is_in_range(&desc)) {
        return NBI_FAIL(&desc.hooks, NB_ITEM_BUDGET_ARGUMENT, NB_ERR_RANGE, "a number of the desc is out of its range");
    }
    memset(budget, 0, sizeof *budget);
    budget->desc = desc;
    budget->level = desc.level_count - 1 - desc.level_lowered;
    budget->wait_frames = wait_frames_first(&desc);
    forget_marks(budget);
    return NB_OK;
}

// --- what the frames say ---

static void forget_recent(nb_budget *budget) { budget->recent_count = budget->recent_next = 0; }

static void forget_room(nb_budget *budget) {
    budget->room_count = 0;
    memset(budget->slowest, 0, sizeof budget->slowest);
}

static void note_recent(nb_budget *budget, uint32_t permille) {
    budget->recent[budget->recent_next] = permille;
    budget->recent_next = (budget->recent_next + 1) % budget->desc.window_frames;
    if (budget->recent_count < budget->desc.window_frames) ++budget->recent_count;
}

static void note_room(nb_budget *budget, uint32_t permille) {
    uint32_t *slowest = budget->slowest;
    for (int i = 0; i < 3; ++i) {
        if (permille <= slowest[i]) continue;
        uint32_t faster = slowest[i];
        slowest[i] = permille;
        permille = faster;
    }
    ++budget->room_count;
}

// Whether the level is too high. *excess_permille: the second mildest of the frames over the target, the middle one of
// three. The slowest may be an accident, the fastest says least about the load.
static bool is_overloaded(const nb_budget *budget, uint32_t *excess_permille) {
    uint32_t over_count = 0, mildest = PERMILLE_MAX, second = PERMILLE_MAX;
    for (uint32_t i = 0; i < budget->recent_count; ++i) {
        uint32_t permille = budget->recent[i];
        if (permille <= 1000) continue;
        ++over_count;
        if (permille < second) second = permille;
        if (second < mildest) {
            second = mildest;
            mildest = permille;
        }
    }
    *excess_permille = over_count > 1 ? second : mildest;
    return over_count >= budget->desc.over_frames;
}

// --- changes ---

static void start_level(nb_budget *budget, uint32_t level) {
    budget->level = level;
    budget->settle_left = budget->desc.settle_frames;
    forget_recent(budget);
    forget_room(budget);
}

static void change_level(nb_budget *budget, uint32_t level, uint32_t permille) {
    nbi_log(&budget->desc.hooks, NB_LOG_INFO, NB_ITEM_BUDGET_LEVEL, "nb_budget_update",
            "quality from %u to %u at %u thousandths of the target", (unsigned)budget->level, (unsigned)level,
            (unsigned)permille);
    start_level(budget, level);
}

// The raise showed that the level does not fit the load: back by the one step, and not again before that is lighter.
static void take_back(nb_budget *budget, uint32_t permille) {
    uint32_t *failed = &budget->failed_permille[budget->level];
    if (*failed == 0 || budget->raised_permille < *failed) *failed = budget->raised_permille;
    budget->wait_left = budget->wait_frames;
    budget->wait_frames = (uint32_t)nbi_min_u64(budget->wait_frames * UINT64_C(2), NB_BUDGET_WAIT_FRAMES_MAX);
    budget->is_raised = false;
    ++budget->stats.fail_count;
    ++budget->stats.lower_count;
    change_level(budget, budget->level - 1, permille);
}

static void lower(nb_budget *budget, uint32_t excess_permille) {
    // The part of the frame that has to go, and the levels nearest to that. What is still missing follows within a few
    // frames; a level too low would last for seconds.
    uint32_t part = 1000 - AIM_PERMILLE * 1000 / excess_permille, gain = budget->desc.gain_permille;
    uint32_t step = or_default((part + gain / 2) / gain, 1);
    bool is_mild = part < gain;
    if (is_mild && budget->is_raised) {
        uint64_t trial_frames = nbi_min_u64(budget->raised_frames * UINT64_C(2), TRIAL_FRAMES_MAX);
        budget->trial_frames[budget->level] = (uint32_t)trial_frames;
    }
    budget->is_raised = false;
    ++budget->stats.lower_count;
    change_level(budget, budget->level > step ? budget->level - step : 0, excess_permille);
}

static void raise_on_trial(nb_budget *budget, uint32_t slow_permille) {
    budget->is_raised = true;
    budget->raised_frames = 0;
    // A frame that takes no time proves room as well as any, but 0 means "no mark".
    budget->raised_permille = or_default(slow_permille, 1);
    ++budget->stats.raise_count;
    change_level(budget, budget->level + 1, slow_permille);
}

static bool is_on_trial(const nb_budget *budget) {
    return budget->is_raised && budget->raised_frames < budget->trial_frames[budget->level];
}

static bool may_raise(const nb_budget *budget, uint32_t slow_permille) {
    if (budget->level + 1 >= budget->desc.level_count || budget->wait_left > 0) return false;
    uint32_t failed = budget->failed_permille[budget->level + 1];
    return failed == 0 || slow_permille < failed - failed / LIGHTER_DIVISOR;
}

static void age_raise(nb_budget *budget) {
    if (!budget->is_raised || budget->raised_frames == UINT32_MAX) return;
    if (++budget->raised_frames != budget->trial_frames[budget->level]) return;
    budget->failed_permille[budget->level] = 0;
    budget->wait_frames = wait_frames_first(&budget->desc);
}

static void decide(nb_budget *budget) {
    uint32_t excess_permille = 0;
    if (is_overloaded(budget, &excess_permille)) {
        if (budget->level == 0) return;
        if (is_on_trial(budget)) {
            take_back(budget, excess_permille);
        } else {
            lower(budget, excess_permille);
        }
        return;
    }
    age_raise(budget);
    uint32_t slow_permille = budget->slowest[2];
    bool has_room = slow_permille <= budget->desc.room_permille;
    if (has_room && budget->room_count < budget->desc.raise_frames) return;
    forget_room(budget); // the row is over, and begins again with the next frame
    if (has_room && may_raise(budget, slow_permille)) raise_on_trial(budget, slow_permille);
}

// What was learned belongs to the scene before; only the wait stays, so that many scenes do not make many tries.
static void forget_scene(nb_budget *budget) {
    forget_recent(budget);
    forget_room(budget);
    forget_marks(budget);
    budget->is_raised = false;
    budget->settle_left = budget->desc.settle_frames;
    ++budget->stats.ignored_count;
}

static uint32_t permille_of(uint64_t measured_ns, uint64_t target_ns) {
    // Cut to where the product fits 64 bits: a target of days is wrong, but not undefined.
    for (; target_ns >> 50 != 0; target_ns >>= 8) measured_ns >>= 8;
    if (measured_ns / target_ns >= PERMILLE_MAX / 1000) return PERMILLE_MAX;
    uint64_t permille = measured_ns * 1000 / target_ns;
    // Above the target by less than a thousandth is above it.
    return (uint32_t)(permille == 1000 && measured_ns > target_ns ? 1001 : permille);
}

nb_result nb_budget_update(nb_budget *budget, const nb_budget_sample *sample) {
    if (budget == NULL) return NBI_FAIL_NULL("budget");
    if (sample == NULL) {
        return NBI_FAIL(&budget->desc.hooks, NB_ITEM_BUDGET_ARGUMENT, NB_ERR_MISUSE, "sample is NULL");
    }
    if (sample->target_ns != 0) budget->desc.target_ns = sample->target_ns;
    budget->has_nothing_visible = sample->has_nothing_visible;
    ++budget->stats.frame_count;
    if (sample->is_discontinuity) {
        forget_scene(budget);
        return NB_OK;
    }
    uint32_t permille = permille_of(sample->measured_ns, budget->desc.target_ns);
    if (permille > 1000) ++budget->stats.over_count;
    if (budget->wait_left > 0) --budget->wait_left;
    if (budget->settle_left > 0) {
        --budget->settle_left;
        ++budget->stats.ignored_count;
        return NB_OK;
    }
    note_recent(budget, permille);
    note_room(budget, permille);
    decide(budget);
    return NB_OK;
}

nb_result nb_budget_set_level(nb_budget *budget, uint32_t level) {
    if (budget == NULL) return NBI_FAIL_NULL("budget");
    if (level >= budget->desc.level_count) {
        return NBI_FAIL(&budget->desc.hooks, NB_ITEM_BUDGET_ARGUMENT, NB_ERR_RANGE, "there is no level %u",
                        (unsigned)level);
    }
    budget->is_raised = false; // no raise of the controller's, so none that could fail
    start_level(budget, level);
    return NB_OK;
}

// --- what comes out ---

uint32_t nb_budget_level(const nb_budget *budget) {
    if (budget == NULL) NBI_FAIL_NULL("budget");
    return budget != NULL ? budget->level : 0;
}

uint64_t nb_budget_optional_ns(const nb_budget *budget, nb_budget_kind kind) {
    if (budget == NULL) {
        NBI_FAIL_NULL("budget");
        return 0;
    }
    if ((uint32_t)kind >= NB_BUDGET_KIND_COUNT) {
        NBI_FAIL(&budget->desc.hooks, NB_ITEM_BUDGET_ARGUMENT, NB_ERR_MISUSE, "%d is no kind", (int)kind);
        return 0;
    }
    uint64_t full_ns = kind == NB_BUDGET_KIND_GENERATION ? budget->desc.generation_ns : budget->desc.meshing_ns;
    if (budget->has_nothing_visible) {
        return full_ns <= UINT64_MAX / NB_BUDGET_UNSEEN_FACTOR ? full_ns * NB_BUDGET_UNSEEN_FACTOR : UINT64_MAX;
    }
    // By parts first: the product with the level might not fit.
    uint32_t count = budget->desc.level_count, parts = budget->level + 1;
    return full_ns / count * parts + full_ns % count * parts / count;
}

nb_budget_stats nb_budget_stats_get(const nb_budget *budget) {
    if (budget == NULL) {
        NBI_FAIL_NULL("budget");
        return (nb_budget_stats){0};
    }
    return budget->stats;
}
