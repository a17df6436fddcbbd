// SPDX-License-Identifier: MIT
// Two recordings, compared without simulating anything.

#include "verify_run.h"

#include <stdio.h>
#include <string.h>

static bool is_same_view(nb_input_view a, nb_input_view b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.events, b.events, a.count * sizeof *a.events) == 0);
}

static nb_replay_diff_kind compare_ticks(const nb_record_tick *here, const nb_record_tick *there) {
    if (!is_same_view(here->input, there->input)) return NB_REPLAY_DIFF_INPUT;
    if (!is_same_view(here->commands, there->commands)) return NB_REPLAY_DIFF_COMMANDS;
    return here->hash != there->hash ? NB_REPLAY_DIFF_HASH : NB_REPLAY_DIFF_NONE;
}

// Finds the first tick that differs; both ticks are then in *here and *there.
static nb_result walk(nb_replay *a, nb_replay *b, nb_replay_diff *diff, nb_record_tick *here, nb_record_tick *there) {
    if (a->info.first_tick != b->info.first_tick) {
        diff->kind = NB_REPLAY_DIFF_START;
        diff->tick = a->info.first_tick < b->info.first_tick ? a->info.first_tick : b->info.first_tick;
        return NB_OK;
    }
    diff->tick = a->info.first_tick;
    for (;; ++diff->tick, ++diff->tick_count) {
        nb_result result_a = nb_replay_next(a, here), result_b = nb_replay_next(b, there);
        if (result_a < 0 || result_b < 0) return result_a < 0 ? result_a : result_b;
        if (result_a != result_b) diff->kind = NB_REPLAY_DIFF_END;
        if (result_a != NB_OK || result_b != NB_OK) return NB_OK;
        diff->kind = compare_ticks(here, there);
        if (diff->kind != NB_REPLAY_DIFF_NONE) return NB_OK;
    }
}

// Compares key states of one tick. NB_EMPTY: they are the same.
static nb_result compare_pair(nbi_run *names, const nbi_key *here, const nbi_key *there, nb_replay_diff *diff) {
    nb_states *states = nb_engine_states(names->engine);
    nb_result result =
        nb_states_compare(states, here->bytes, here->size_bytes, there->bytes, there->size_bytes, &diff->difference);
    diff->difference_tick = here->tick;
    // By then other columns may differ, too.
    if (result != NB_OK || !nbi_row_is_of_other_column(&diff->difference, diff->table, diff->column)) return result;
    nb_result found = nb_states_load(states, here->bytes, here->size_bytes);
    if (found == NB_OK) found = nbi_run_save(names, &names->kept);
    if (found == NB_OK) found = nbi_row_find(names, diff->table, diff->column, there, &diff->difference);
    return found == NB_ERR_MEMORY ? found : result;
}

// Compares the first key states behind the tick that both have. NB_EMPTY: there are none, or they are the same.
static nb_result compare_keys(nbi_run *names, nb_replay *b, nb_replay_diff *diff) {
    nb_replay *a = names->replay;
    for (uint64_t tick = diff->tick + 1;;) {
        nbi_key here, there;
        nb_result result = nbi_replay_key_next(a, tick, &here);
        if (result != NB_OK) return result;
        result = nbi_replay_key_next(b, here.tick, &there);
        bool is_common = result == NB_OK && here.tick == there.tick, is_over = result != NB_OK || is_common;
        if (result == NB_OK) tick = there.tick;
        nb_result compared = is_common ? compare_pair(names, &here, &there, diff) : result;
        if (result == NB_OK) nb_hooks_free(&b->hooks, there.bytes, there.size_bytes);
        nb_hooks_free(&a->hooks, here.bytes, here.size_bytes);
        if (is_over) return compared;
    }
}

static nb_result name_location(const nbi_run *made, nb_replay *b, const nb_record_tick *here,
                               const nb_record_tick *there, nb_replay_diff *diff) {
    nbi_run *names = NULL;
    nb_verdict why;
    nb_result result = nbi_run_open(made, 0, &names, &why);
    if (result != NB_OK) return result == NB_EMPTY ? NB_OK : result; // of another layout: nothing can be named
    nbi_hash_location location = nbi_hashes_compare(nb_engine_states(names->engine), names->world, here, there);
    memcpy(diff->provider, location.provider, sizeof location.provider);
    memcpy(diff->table, location.table, sizeof location.table);
    memcpy(diff->column, location.column, sizeof location.column);
    diff->column_count = location.column_count;
    result = compare_keys(names, b, diff);
    nb_result ended = nbi_run_end(names);
    if (ended != NB_OK) return ended;
    nbi_run_free(names);
    // A key state that cannot be read leaves the row unknown.
    return result == NB_ERR_MEMORY ? result : NB_OK;
}

static void put_text(nb_replay_diff *diff, const nb_replay *a, const nb_replay *b) {
    static const char *const texts[NB_REPLAY_DIFF_COUNT] = {
        [NB_REPLAY_DIFF_NONE] = "no difference",
        [NB_REPLAY_DIFF_START] = "only one has it; they begin with different ticks, so record both from one tick",
        [NB_REPLAY_DIFF_END] = "the first ends before it",
        [NB_REPLAY_DIFF_INPUT] = "the input differs",
        [NB_REPLAY_DIFF_COMMANDS] = "the commands differ",
        [NB_REPLAY_DIFF_HASH] = "the same input, another hash",
    };
    const char *text = texts[diff->kind];
    bool is_second = diff->kind == NB_REPLAY_DIFF_END && b->info.tick_count < a->info.tick_count;
    char location[3 * NB_PROVIDER_NAME_SIZE_MAX + 32] = "", more[NB_DIFFERENCE_TEXT_SIZE + 48] = "";
    if (is_second) text = "the second ends before it";
    if (diff->provider[0] != '\0') {
        snprintf(location, sizeof location, ": %s%s%s%s%s", diff->provider, diff->table[0] != '\0' ? "/" : "",
                 diff->table, diff->column[0] != '\0' ? "." : "", diff->column);
    }
    if (diff->difference.kind != NB_DIFFERENCE_NONE) {
        snprintf(more, sizeof more, "; before tick %llu: %s", nb_llu(diff->difference_tick), diff->difference.text);
    }
    const char *here = a->name.text, *there = b->name.text;
    bool is_nameless = diff->kind == NB_REPLAY_DIFF_HASH && location[0] == '\0' && more[0] == '\0';
    const char *advice = is_nameless ? "; compare them with the game to name the state" : "";
    if (diff->kind == NB_REPLAY_DIFF_NONE)
        snprintf(diff->text, sizeof diff->text, "recordings %s and %s: %s in %llu ticks", here, there, text,
                 nb_llu(diff->tick_count));
    else
        snprintf(diff->text, sizeof diff->text, "recordings %s and %s: tick %llu: %s%s%s%s", here, there,
                 nb_llu(diff->tick), text, location, more, advice);
}

nb_result nb_replay_compare(nb_replay *here, nb_replay *there, const nb_replay_game *game, const nb_verify_desc *given,
                            nb_replay_diff *out) {
    if (here == NULL) return NB_FAIL_NULL("here");
    if (there == NULL) return NB_FAIL_NULL("there");
    if (out == NULL) return NB_FAIL_NULL("out");
    if (here == there || (game != NULL && game->attach == NULL)) {
        return NB_FAIL(&here->hooks, NB_ITEM_RECORD_ARGUMENT, NB_ERR_MISUSE, "recording %s: %s", here->name.text,
                       here == there ? "it was given twice; open the second one by itself"
                                     : "the game has no attach; set nb_replay_game.attach, or pass NULL");
    }
    if (here->engine != NULL || there->engine != NULL) return NB_BUSY;
    nbi_run made = {.replay = here, .game = game, .is_idle = true};
    if (given != NULL) made.desc = *given;
    made.desc.hooks = nb_hooks_resolve(&made.desc.hooks);
    nb_replay_diff diff = {.kind = NB_REPLAY_DIFF_NONE};
    nb_record_tick tick_here, tick_there;
    here->next_tick = here->info.first_tick, there->next_tick = there->info.first_tick;
    nb_result result = walk(here, there, &diff, &tick_here, &tick_there);
    bool is_named = result == NB_OK && diff.kind == NB_REPLAY_DIFF_HASH && game != NULL && nbi_game_fits(game, here);
    if (is_named) result = name_location(&made, there, &tick_here, &tick_there, &diff);
    here->next_tick = here->info.first_tick, there->next_tick = there->info.first_tick;
    if (result != NB_OK) return result;
    put_text(&diff, here, there);
    *out = diff;
    return NB_OK;
}
