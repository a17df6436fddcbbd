// SPDX-License-Identifier: MIT
// nebula-replay: what is in a recording. Commands are a table: a further one, such as a re-simulation by a game that is
// linked in, is one more row.

#include <nebula/replay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the program ends with.
enum {
    EXIT_FINE = 0,
    EXIT_DIFFERENT = 1, // --diff: they differ
    EXIT_USAGE = 2,
    EXIT_UNREADABLE = 3, // a file cannot be opened
    EXIT_PARTIAL = 4,    // it is not whole: cut, damaged, or ended early
};

static const char help_text[] =
    "nebula-replay shows what is in a recording.\n"
    "\n"
    "  nebula-replay FILE            list the ticks: events, commands, hash\n"
    "  nebula-replay --info FILE     the head, the ticks, the key states, and how it ends\n"
    "  nebula-replay --seek T FILE   list from tick T on, and name the key state to begin from\n"
    "  nebula-replay --diff A B      the first tick whose input or hash differs\n"
    "  nebula-replay --help          this text\n"
    "\n"
    "Exit status: 0 fine, 1 different, 2 wrong arguments, 3 not to be opened, 4 not whole.\n";

static int usage(const char *problem, const char *word) {
    fprintf(stderr, "nebula-replay: %s '%s'; see --help\n", problem, word);
    return EXIT_USAGE;
}

// Its reason is in the log, which is stderr.
static nb_replay *open_file(const char *path) {
    nb_replay *replay = NULL;
    return nb_replay_open(path, NULL, &replay) == NB_OK ? replay : NULL;
}

static const char *end_name(nb_replay_end end) {
    switch (end) {
    case NB_REPLAY_END_WHOLE: return "whole";
    case NB_REPLAY_END_STOPPED: return "stopped";
    case NB_REPLAY_END_CUT: return "cut";
    case NB_REPLAY_END_DAMAGED: return "damaged";
    default: return "unknown";
    }
}

static int end_status(const nb_replay *replay) {
    return nb_replay_info_get(replay).end == NB_REPLAY_END_WHOLE ? EXIT_FINE : EXIT_PARTIAL;
}

static int list_ticks(nb_replay *replay) {
    nb_record_tick tick;
    nb_result result;
    while ((result = nb_replay_next(replay, &tick)) == NB_OK) {
        printf("tick %" PRIu64 " events %u commands %u hash %016" PRIx64 "\n", tick.index, (unsigned)tick.input.count,
               (unsigned)tick.commands.count, tick.hash);
    }
    return result == NB_EMPTY ? end_status(replay) : EXIT_PARTIAL;
}

// --- commands; each gets its operands ---

static int run_list(char **words) {
    nb_replay *replay = open_file(words[0]);
    if (replay == NULL) return EXIT_UNREADABLE;
    int status = list_ticks(replay);
    nb_replay_close(replay);
    return status;
}

static int run_info(char **words) {
    nb_replay *replay = open_file(words[0]);
    if (replay == NULL) return EXIT_UNREADABLE;
    nb_replay_info info = nb_replay_info_get(replay);
    printf("game      %s\n", info.head.game_name);
    printf("build     %s\n", info.head.build_id);
    printf("format    %u\n", (unsigned)info.version);
    printf("rate      %u/%u ticks a second\n", (unsigned)info.head.tick_rate.num, (unsigned)info.head.tick_rate.den);
    printf("seed      %" PRIu64 "\n", info.head.seed);
    printf("layout    %016" PRIx64 "\n", info.head.layout_hash);
    printf("config    %zu bytes\n", info.head.config_bytes);
    printf("ticks     %" PRIu64 " from %" PRIu64 "\n", info.tick_count, info.first_tick);
    printf("keys      %u\n", (unsigned)info.key_count);
    printf("blocks    %u\n", (unsigned)info.block_count);
    printf("bytes     %" PRIu64 " of %" PRIu64 "\n", info.whole_bytes, info.size_bytes);
    printf("end       %s: %s\n", end_name(info.end), info.reason);
    int status = end_status(replay);
    nb_replay_close(replay);
    return status;
}

static int run_seek(char **words) {
    char *rest = NULL;
    uint64_t tick = strtoull(words[0], &rest, 10);
    if (words[0][0] < '0' || words[0][0] > '9' || *rest != '\0') return usage("not a tick", words[0]);
    nb_replay *replay = open_file(words[1]);
    if (replay == NULL) return EXIT_UNREADABLE;
    uint64_t key_tick = 0;
    size_t size_bytes = 0;
    int status = EXIT_USAGE;
    if (nb_replay_key_find(replay, tick, &key_tick, &size_bytes) == NB_OK)
        printf("key %" PRIu64 " of %zu bytes\n", key_tick, size_bytes);
    else
        printf("no key state before it\n");
    if (nb_replay_seek(replay, tick) == NB_OK) status = list_ticks(replay);
    nb_replay_close(replay);
    return status;
}

static bool is_same_view(nb_input_view a, nb_input_view b) {
    return a.count == b.count && (a.count == 0 || memcmp(a.events, b.events, a.count * sizeof *a.events) == 0);
}

// What differs first, or NULL.
static const char *difference(const nb_record_tick *a, const nb_record_tick *b) {
    if (a->index != b->index) return "another index";
    if (!is_same_view(a->input, b->input)) return "other input";
    if (!is_same_view(a->commands, b->commands)) return "other commands";
    return a->hash != b->hash ? "the same input, another hash" : NULL;
}

static int diff_ticks(nb_replay *a, nb_replay *b) {
    nb_record_tick tick_a, tick_b;
    for (;;) {
        nb_result result_a = nb_replay_next(a, &tick_a), result_b = nb_replay_next(b, &tick_b);
        if (result_a < 0 || result_b < 0) return EXIT_PARTIAL;
        if (result_a == NB_EMPTY && result_b == NB_EMPTY) {
            puts("no difference");
            return EXIT_FINE;
        }
        if (result_a == NB_EMPTY || result_b == NB_EMPTY) {
            printf("%s ends before tick %" PRIu64 "\n", result_a == NB_EMPTY ? "the first" : "the second",
                   result_a == NB_EMPTY ? tick_b.index : tick_a.index);
            return EXIT_DIFFERENT;
        }
        const char *what = difference(&tick_a, &tick_b);
        if (what == NULL) continue;
        printf("tick %" PRIu64 ": %s\n", tick_a.index, what);
        return EXIT_DIFFERENT;
    }
}

static int run_diff(char **words) {
    nb_replay *a = open_file(words[0]), *b = a != NULL ? open_file(words[1]) : NULL;
    int status = b != NULL ? diff_ticks(a, b) : EXIT_UNREADABLE;
    nb_replay_close(a);
    nb_replay_close(b);
    return status;
}

static int run_help(char **words) {
    (void)words;
    fputs(help_text, stdout);
    return EXIT_FINE;
}

static const struct command {
    const char *option;
    int operand_count;
    int (*run)(char **words);
} commands[] = {{"--info", 1, run_info}, {"--seek", 2, run_seek}, {"--diff", 2, run_diff}, {"--help", 0, run_help}};

int main(int argc, char **argv) {
    if (argc < 2) return usage("no file", "");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        if (strcmp(argv[1], commands[i].option) != 0) continue;
        return argc - 2 == commands[i].operand_count ? commands[i].run(argv + 2) : usage("wrong operands of", argv[1]);
    }
    if (argv[1][0] == '-') return usage("unknown option", argv[1]);
    return argc == 2 ? run_list(argv + 1) : usage("more than one file", argv[2]);
}
