// SPDX-License-Identifier: MIT
// Recordings simulated again, and compared with each other.

#define _POSIX_C_SOURCE 200809L // isatty

#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BAR_WIDTH 40

typedef struct progress {
    bool is_bar;      // on a terminal; else a line every 10 %
    uint64_t percent; // told last
} progress;

static void print_progress(void *user, uint64_t done_count, uint64_t total_count) {
    progress *p = user;
    uint64_t percent = total_count != 0 ? done_count * 100 / total_count : 100;
    if (p->is_bar) {
        char bar[BAR_WIDTH + 1];
        for (uint64_t i = 0; i < BAR_WIDTH; ++i) bar[i] = i * 100 < percent * BAR_WIDTH ? '=' : ' ';
        bar[BAR_WIDTH] = '\0';
        fprintf(stderr, "\r[%s] %3" PRIu64 " %%", bar, percent);
        fflush(stderr);
    } else if (percent / 10 != p->percent / 10) {
        fprintf(stderr, "%" PRIu64 " %%\n", percent / 10 * 10);
    }
    p->percent = percent;
}

static void print_location(const nb_verify_report *report) {
    printf("tick      %" PRIu64 "\n", report->tick);
    printf("phase     %s\n",
           report->phase != NB_PHASE_NONE ? nb_phase_info_get(report->phase)->name : "before the first");
    printf("state     %s\n",
           report->provider[0] != '\0' ? report->provider : "not known: record with nb_recorder_desc.hashes_states");
    if (report->table[0] != '\0')
        printf("column    %s.%s\n", report->table, report->column[0] != '\0' ? report->column : "(rows)");
    if (report->difference.kind != NB_DIFFERENCE_NONE)
        printf("row       before tick %" PRIu64 ": %s\n", report->difference_tick, report->difference.text);
    else
        printf("row       not known: no later key state shows it; record more of them (nb_recorder_desc.key_ticks)\n");
}

static void print_report(const nb_verify_report *report, const nb_replay_info *info) {
    bool is_located = report->verdict == NB_VERDICT_DIVERGED || report->verdict == NB_VERDICT_NOT_DETERMINISTIC;
    printf("verdict   %s\n", nb_verdict_text(report->verdict));
    printf("ticks     %" PRIu64 " from %" PRIu64 ", %" PRIu64 " compared\n", report->tick_count, report->from_tick,
           report->compared_count);
    printf("hash      %016" PRIx64 "\n", report->hash);
    if (is_located) print_location(report);
    if ((report->notes & NB_VERIFY_OTHER_BUILD) != 0)
        printf("note      recorded by another build: %s\n", info->head.build_id);
    if ((report->notes & NB_VERIFY_RECORDING_CUT) != 0)
        printf("note      not whole: %s; ticks behind that were not compared\n", info->reason);
}

// A script that looks at the status alone must not take a part of a recording for all of it.
static int status_of(nb_verdict verdict, const nb_replay *replay) {
    if (verdict == NB_VERDICT_SAME) return end_status(replay);
    bool is_other = verdict == NB_VERDICT_DIVERGED || verdict == NB_VERDICT_NOT_DETERMINISTIC;
    return is_other ? EXIT_DIFFERENT : EXIT_WRONG;
}

static int verify(const options *o, const char *path, nb_replay *replay, nb_verify_desc *desc) {
    const nb_replay_game *game = find_game(o, false);
    if (game == NULL) return EXIT_WRONG;
    progress p = {.is_bar = isatty(2) != 0};
    nb_replay_info info = nb_replay_info_get(replay);
    nb_verify_report report;
    desc->worker_count = o->worker_count;
    desc->progress = print_progress;
    desc->user = &p;
    nb_result result = nb_replay_verify(replay, game, desc, &report);
    if (p.is_bar) fputs("\r\033[K", stderr); // the bar goes
    if (result != NB_OK) {
        fprintf(stderr, "nebula-replay: %s cannot be simulated: %s%s\n", path, nb_result_name(result),
                result == NB_CANCELLED ? ": the game stopped the engine or moved its tick" : "");
        return EXIT_WRONG;
    }
    printf("file      %s\n", path);
    print_report(&report, &info);
    return status_of(report.verdict, replay);
}

// --- commands ---

int run_verify(const options *o, char **words) {
    nb_replay *replay = open_file(words[0]);
    if (replay == NULL) return EXIT_WRONG;
    nb_verify_desc desc = {0};
    int status = verify(o, words[0], replay, &desc);
    nb_replay_close(replay);
    return status;
}

static void print_recorded(nb_replay *replay, uint64_t tick) {
    uint64_t key_tick = 0;
    size_t size_bytes = 0;
    nb_record_tick recorded;
    if (nb_replay_key_find(replay, tick, &key_tick, &size_bytes) == NB_OK)
        printf("key       %" PRIu64 " of %zu bytes\n", key_tick, size_bytes);
    else
        printf("key       none before tick %" PRIu64 "\n", tick);
    if (nb_replay_next(replay, &recorded) == NB_OK) printf("recorded  %016" PRIx64 "\n", recorded.hash);
}

int run_seek(const options *o, char **words) {
    char *rest = NULL;
    uint64_t tick = strtoull(words[0], &rest, 10);
    if (words[0][0] < '0' || words[0][0] > '9' || *rest != '\0')
        return fail("--seek takes a tick, a number, not", words[0]);
    nb_replay *replay = open_file(words[1]);
    if (replay == NULL) return EXIT_WRONG;
    nb_replay_info info = nb_replay_info_get(replay);
    int status = EXIT_WRONG;
    bool is_recorded = tick >= info.first_tick && tick - info.first_tick < info.tick_count;
    if (!is_recorded) {
        fprintf(stderr, "nebula-replay: %s: tick %s is not in it; it has %" PRIu64 " ticks from tick %" PRIu64 "\n",
                words[1], words[0], info.tick_count, info.first_tick);
    } else if (nb_replay_seek(replay, tick) == NB_OK) {
        print_recorded(replay, tick);
        nb_verify_desc desc = {.from_tick = tick, .until_tick = tick + 1};
        status = verify(o, words[1], replay, &desc);
    }
    nb_replay_close(replay);
    return status;
}

int run_diff(const options *o, char **words) {
    nb_replay *a = open_file(words[0]), *b = a != NULL ? open_file(words[1]) : NULL;
    const nb_replay_game *game = find_game(o, true);
    bool is_fine = b != NULL && (game != NULL || o->game_path == NULL);
    int status = EXIT_WRONG;
    nb_replay_diff diff;
    nb_verify_desc desc = {.worker_count = NB_WORKER_COUNT_NONE};
    nb_result result = is_fine ? nb_replay_compare(a, b, game, &desc, &diff) : NB_ERR_MISUSE;
    if (is_fine && result != NB_OK)
        fprintf(stderr, "nebula-replay: %s and %s cannot be compared: %s\n", words[0], words[1],
                nb_result_name(result));
    if (result == NB_OK) puts(diff.text);
    if (result == NB_OK) status = diff.kind == NB_REPLAY_DIFF_NONE ? end_status(a) : EXIT_DIFFERENT;
    if (status == EXIT_FINE) status = end_status(b);
    nb_replay_close(a);
    nb_replay_close(b);
    return status;
}
