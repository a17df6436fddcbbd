// SPDX-License-Identifier: MIT
// Verifying: a run through the recording; where that diverges, a second one from the key state before, with probes, and
// from both what can be said about it.

#include "verify_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

nb_verify_desc nb_verify_desc_default(void) { return (nb_verify_desc){.hooks = nb_hooks_default()}; }

const char *nb_verdict_text(nb_verdict verdict) {
    static const char *const texts[NB_VERDICT_COUNT] = {
        [NB_VERDICT_NONE] = "",
        [NB_VERDICT_SAME] = "every tick is as recorded",
        [NB_VERDICT_DIVERGED] = "diverged: this build computes another state than the recording has, each time",
        [NB_VERDICT_NOT_DETERMINISTIC] =
            "not deterministic: two runs of this build differ, by a race or by a value that no state has",
        [NB_VERDICT_OTHER_GAME] = "recorded by another game, and not simulated: verify it with that game",
        [NB_VERDICT_OTHER_LAYOUT] =
            "recorded with other states or another layout of them, and not simulated: verify it with the build that "
            "recorded it",
        [NB_VERDICT_NO_START] =
            "begins after tick 0 without a key state, and was not simulated: record from tick 0 or with key states "
            "(nb_recorder_desc.key_ticks)",
        [NB_VERDICT_NO_HASHES] =
            "no tick has a hash to compare with: record an engine with nb_engine_desc.hashes_ticks",
    };
    return (uint32_t)verdict < NB_VERDICT_COUNT ? texts[verdict] : "";
}

// --- what is said ---

// Appends as much as there is room for.
static void say(nb_verify_report *report, const char *format, ...) NB_PRINTF(2, 3);
static void say(nb_verify_report *report, const char *format, ...) {
    size_t used = strlen(report->text);
    va_list args;
    va_start(args, format);
    vsnprintf(report->text + used, sizeof report->text - used, format, args);
    va_end(args);
}

static void say_location(nb_verify_report *report) {
    const nb_difference *difference = &report->difference;
    bool is_before = report->phase == NB_PHASE_NONE;
    say(report, ": tick %llu, %s", nb_llu(report->tick),
        is_before ? "before it began" : nb_phase_info_get(report->phase)->name);
    if (report->provider[0] != '\0') say(report, ", %s", report->provider);
    if (report->table[0] != '\0') say(report, "/%s", report->table);
    if (report->column[0] != '\0') say(report, ".%s", report->column);
    if (report->column_count > 1) say(report, " (%u columns)", report->column_count);
    if (difference->kind == NB_DIFFERENCE_NONE)
        say(report, "; the row is not known: no later key state shows it; record more of them "
                    "(nb_recorder_desc.key_ticks)");
    else
        say(report, "; before tick %llu: %s", nb_llu(report->difference_tick), difference->text);
}

static const char *advice_of(nb_verdict verdict) {
    if (verdict == NB_VERDICT_DIVERGED) return "; look at what writes it in that phase and has changed since";
    if (verdict == NB_VERDICT_NOT_DETERMINISTIC)
        return "; run it with nb_engine_desc.synctest_depth and under a thread sanitizer";
    return "";
}

static void say_all(nb_verify_report *report, const nb_replay *replay) {
    const nb_replay_info *info = &replay->info;
    bool is_other = report->verdict == NB_VERDICT_DIVERGED || report->verdict == NB_VERDICT_NOT_DETERMINISTIC;
    say(report, "recording %s: %s", replay->name.text, nb_verdict_text(report->verdict));
    if (is_other) say_location(report);
    if (report->verdict == NB_VERDICT_SAME)
        say(report, ": %llu ticks from tick %llu", nb_llu(report->compared_count), nb_llu(report->from_tick));
    say(report, "%s", advice_of(report->verdict));
    if ((report->notes & NB_VERIFY_OTHER_BUILD) != 0)
        say(report, "; recorded by another build: %s", info->head.build_id);
    if ((report->notes & NB_VERIFY_RECORDING_CUT) != 0)
        say(report, "; the recording is not whole: %s; ticks behind that were not compared", info->reason);
}

// --- where it diverged ---

// The place of a difference, where it is exact or nothing else is known.
static void put_location(nb_verify_report *report) {
    const nb_difference *difference = &report->difference;
    memcpy(report->provider, difference->provider, sizeof report->provider);
    memcpy(report->table, difference->table, sizeof report->table);
    memcpy(report->column, difference->column, sizeof report->column);
    report->column_count = (uint32_t)difference->column_count;
}

// Compares what a run has saved with a key state. NB_EMPTY: they are the same.
static nb_result compare_key(nb_verify_report *report, const nbi_run *run, const nbi_saved *here, const nbi_key *key) {
    nb_result result = nb_states_compare(nb_engine_states(run->engine), here->bytes, here->size_bytes, key->bytes,
                                         key->size_bytes, &report->difference);
    report->difference_tick = key->tick;
    return result;
}

// The game's own beginning, where the recording has it, too.
static nb_result compare_beginning(nb_verify_report *report, const nbi_run *run) {
    nbi_key key;
    nb_result result = nbi_replay_key_next(run->replay, 0, &key);
    if (result != NB_OK) return result;
    result = key.tick == 0 ? compare_key(report, run, &run->before, &key) : NB_EMPTY;
    nb_hooks_free(&run->replay->hooks, key.bytes, key.size_bytes);
    return result;
}

// The next key state of the recording, after simulating on to it.
static nb_result compare_next(nb_verify_report *report, nbi_run *run) {
    nbi_key key;
    nb_result result = nbi_replay_key_next(run->replay, report->tick + 1, &key);
    if (result != NB_OK) return result;
    run->keep_tick = key.tick - 1;
    result = nbi_run_to(run, key.tick);
    if (result == NB_OK) result = compare_key(report, run, &run->kept, &key);
    // By then other columns may differ, too.
    bool is_other = result == NB_OK && nbi_row_is_of_other_column(&report->difference, report->table, report->column);
    nb_result found = is_other ? nbi_row_find(run, report->table, report->column, &key, &report->difference) : result;
    nb_hooks_free(&run->replay->hooks, key.bytes, key.size_bytes);
    return found == NB_ERR_MEMORY ? found : result;
}

static nb_result judge_same_twice(nb_verify_report *report, nbi_run *second) {
    report->verdict = NB_VERDICT_DIVERGED;
    nb_result result = compare_next(report, second);
    if (result == NB_OK && report->provider[0] == '\0') put_location(report);
    // A key state that cannot be read leaves the row unknown.
    return result == NB_ERR_MEMORY ? result : NB_OK;
}

static nb_result judge(nb_verify_report *report, const nbi_run *first, nbi_run *second) {
    uint64_t tick = report->tick;
    if (second->has_leak && second->leak_tick <= tick) {
        report->verdict = NB_VERDICT_DIVERGED;
        report->phase = second->leak_phase;
        report->difference = second->leak;
        report->difference_tick = second->leak_tick;
        put_location(report);
        return NB_OK;
    }
    nb_result result = nb_states_compare(nb_engine_states(second->engine), first->kept.bytes, first->kept.size_bytes,
                                         second->kept.bytes, second->kept.size_bytes, &report->difference);
    bool has_diverged_there = second->has_diverged && second->diverged_tick == tick;
    if (result == NB_EMPTY && has_diverged_there) return judge_same_twice(report, second);
    if (result < 0) return result;
    report->verdict = NB_VERDICT_NOT_DETERMINISTIC;
    report->difference_tick = tick + 1;
    if (result == NB_OK) put_location(report);
    return NB_OK;
}

// Where a second run begins: with a key state that is at least a tick older, so that what the frame of the tick before
// does is seen; but with none that the first run may have missed already.
static uint64_t second_tick(const nbi_run *first) {
    uint64_t tick = first->diverged_tick > first->from_tick ? first->diverged_tick - 1 : first->from_tick;
    return tick < first->same_tick ? tick : first->same_tick;
}

static nb_result find_out(nb_verify_report *report, const nbi_run *first) {
    nbi_run made = {.replay = first->replay, .game = first->game, .desc = first->desc, .is_probing = true};
    nbi_run *second = NULL;
    uint64_t tick = first->diverged_tick;
    report->tick = tick;
    report->phase = NB_PHASE_FIXED_SIM;
    memcpy(report->provider, first->location.provider, sizeof first->location.provider);
    memcpy(report->table, first->location.table, sizeof first->location.table);
    memcpy(report->column, first->location.column, sizeof first->location.column);
    report->column_count = first->location.column_count;
    made.desc.progress = NULL;
    made.keep_tick = tick;
    nb_verdict why;
    nb_result result = nbi_run_open(&made, second_tick(first), &second, &why);
    if (result != NB_OK) return result;
    bool is_beginning = tick == 0 && compare_beginning(report, second) == NB_OK;
    if (is_beginning) {
        report->verdict = NB_VERDICT_DIVERGED;
        report->phase = NB_PHASE_NONE;
        put_location(report);
    } else {
        result = nbi_run_to(second, tick + 1);
        if (result == NB_OK) result = judge(report, first, second);
    }
    nb_result ended = nbi_run_end(second);
    if (ended != NB_OK) return ended;
    nbi_run_free(second);
    return result;
}

// --- all of it ---

static nb_result run_all(const nbi_run *made, nb_verify_report *report) {
    const nb_replay_info *info = &made->replay->info;
    uint64_t tick_end = made->desc.until_tick != 0 ? made->desc.until_tick : info->first_tick + info->tick_count;
    uint64_t from_tick = made->desc.from_tick > info->first_tick ? made->desc.from_tick : info->first_tick;
    nbi_run *first = NULL;
    nb_result result = nbi_run_open(made, from_tick, &first, &report->verdict);
    bool is_said = result == NB_EMPTY && report->verdict != NB_VERDICT_NONE;
    if (result != NB_OK) return is_said ? NB_OK : result;
    result = nbi_run_to(first, tick_end);
    nb_result ended = nbi_run_end(first);
    if (ended != NB_OK) return ended;
    report->from_tick = first->from_tick;
    report->tick_count = first->tick_count;
    report->compared_count = first->compared_count;
    report->hash = first->hash;
    report->verdict = first->compared_count != 0 ? NB_VERDICT_SAME : NB_VERDICT_NO_HASHES;
    if (result == NB_OK && first->has_diverged) result = find_out(report, first);
    nbi_run_free(first);
    return result;
}

static bool is_text(const char *text) { return text != NULL && text[0] != '\0'; }

bool nbi_game_fits(const nb_replay_game *game, const nb_replay *replay) {
    return !is_text(game->name) || strcmp(game->name, replay->info.head.game_name) == 0;
}

static uint32_t notes_of(const nb_replay_info *info, const nb_replay_game *game) {
    bool is_known = is_text(game->build_id) && is_text(info->head.build_id);
    bool is_other = is_known && strcmp(game->build_id, info->head.build_id) != 0;
    return (is_other ? NB_VERIFY_OTHER_BUILD : 0) | (info->end != NB_REPLAY_END_WHOLE ? NB_VERIFY_RECORDING_CUT : 0);
}

static nb_result check_call(const nb_replay *replay, const nb_replay_game *game, const nb_verify_desc *desc) {
    const nb_replay_info *info = &replay->info;
    if (game == NULL || game->attach == NULL) {
        return nb_report_mistake(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_MISUSE, "nb_replay_verify",
                                 "recording %s: the game is NULL or has no attach; set nb_replay_game.attach",
                                 replay->name.text);
    }
    if (replay->engine != NULL) return NB_BUSY;
    uint64_t tick_end = info->first_tick + info->tick_count;
    bool is_outside = desc->from_tick > tick_end || desc->until_tick > tick_end;
    bool is_backwards =
        desc->until_tick != 0 && (desc->until_tick < desc->from_tick || desc->until_tick < info->first_tick);
    if (!is_outside && !is_backwards) return NB_OK;
    return nb_report_mistake(&desc->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_RANGE, "nb_replay_verify",
                             "recording %s: ticks %llu to %llu are not in it; it has ticks %llu to %llu",
                             replay->name.text, nb_llu(desc->from_tick), nb_llu(desc->until_tick),
                             nb_llu(info->first_tick), nb_llu(tick_end));
}

nb_result nb_replay_verify(nb_replay *replay, const nb_replay_game *game, const nb_verify_desc *given,
                           nb_verify_report *out) {
    if (replay == NULL) return NB_FAIL_NULL("replay");
    if (out == NULL) return NB_FAIL_NULL("out");
    nbi_run made = {.replay = replay, .game = game, .stops = true, .keep_tick = NBI_TICK_NONE};
    if (given != NULL) made.desc = *given;
    made.desc.hooks = nb_hooks_resolve(&made.desc.hooks);
    nb_result result = check_call(replay, game, &made.desc);
    if (result != NB_OK) return result;
    const nb_replay_info *info = &replay->info;
    nb_verify_report report = {.notes = notes_of(info, game), .from_tick = info->first_tick};
    if (!nbi_game_fits(game, replay))
        report.verdict = NB_VERDICT_OTHER_GAME;
    else
        result = run_all(&made, &report);
    replay->next_tick = info->first_tick;
    if (result != NB_OK) return result;
    say_all(&report, replay);
    *out = report;
    return NB_OK;
}
