// SPDX-License-Identifier: MIT
// nebula-replay: verifies recordings by simulating them again, and shows what is in them. Commands are a table: a
// further one is one more row.

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a scheduler has room for beside its coordinator, rounded down.
#define WORKERS_MAX 60ul

static const char help_text[] =
    "nebula-replay simulates a recording again and compares each tick with what was recorded.\n"
    "\n"
    "  nebula-replay FILE            verify it: the first tick, phase, state, column and row that differ\n"
    "  nebula-replay --seek T FILE   verify from the key state before tick T to T, and print the state's hash\n"
    "  nebula-replay --info FILE     the head, the ticks, the key states, and how it ends\n"
    "  nebula-replay --list FILE     the ticks: events, commands, hash\n"
    "  nebula-replay --diff A B      the first tick whose input or hash differs, and the state, column and row\n"
    "  nebula-replay --help          this text\n"
    "\n"
    "  --game LIBRARY    the game that recorded it, instead of the demo's planet: a shared library with the function\n"
    "                    const nb_replay_game *nebula_replay_game(void), see nebula/verify.h\n"
    "  --workers N       worker threads to simulate with, 0 to 60 (default: the machine's)\n"
    "\n"
    "Exit status: 0 the same and whole, 1 different, 2 wrong arguments, or not to be read or verified, 3 not whole:\n"
    "damaged, cut or ended early, and what is there is the same.\n";

int fail(const char *problem, const char *word) {
    fprintf(stderr, "nebula-replay: %s %s; see --help\n", problem, word);
    return EXIT_WRONG;
}

nb_replay *open_file(const char *path) {
    nb_replay *replay = NULL;
    return nb_replay_open(path, NULL, &replay) == NB_OK ? replay : NULL;
}

static int run_help(const options *o, char **words) {
    (void)o, (void)words;
    fputs(help_text, stdout);
    return EXIT_FINE;
}

typedef struct command {
    const char *option;
    int operand_count;
    int (*run)(const options *o, char **words);
} command;

static const command commands[] = {{"--info", 1, run_info},
                                   {"--list", 1, run_list},
                                   {"--seek", 2, run_seek},
                                   {"--diff", 2, run_diff},
                                   {"--help", 0, run_help}};
static const command verify_command = {"", 1, run_verify};

static const command *find_command(const char *word) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
        if (strcmp(word, commands[i].option) == 0) return &commands[i];
    }
    return NULL;
}

static bool read_workers(const char *word, uint32_t *worker_count) {
    char *rest = NULL;
    unsigned long count = strtoul(word, &rest, 10);
    if (word[0] < '0' || word[0] > '9' || *rest != '\0' || count > WORKERS_MAX) return false;
    *worker_count = count != 0 ? (uint32_t)count : NB_WORKER_COUNT_NONE;
    return true;
}

int main(int argc, char **argv) {
    options o = {0};
    const command *chosen = &verify_command;
    char *words[2] = {NULL, NULL};
    int word_count = 0;
    for (int i = 1; i < argc; ++i) {
        const command *found = find_command(argv[i]);
        bool has_value = strcmp(argv[i], "--game") == 0 || strcmp(argv[i], "--workers") == 0;
        if (has_value && i + 1 == argc) return fail("a value must follow", argv[i]);
        if (found != NULL) {
            chosen = found;
        } else if (strcmp(argv[i], "--game") == 0) {
            o.game_path = argv[++i];
        } else if (strcmp(argv[i], "--workers") == 0) {
            if (!read_workers(argv[++i], &o.worker_count))
                return fail("--workers takes a number from 0 to 60, not", argv[i]);
        } else if (argv[i][0] == '-') {
            return fail("unknown option", argv[i]);
        } else {
            if (word_count == 2) return fail("too many operands:", argv[i]);
            words[word_count++] = argv[i];
        }
    }
    if (word_count != chosen->operand_count)
        return fail(word_count < chosen->operand_count ? "an operand is missing for" : "too many operands for",
                    chosen->option[0] != '\0' ? chosen->option : "nebula-replay FILE");
    return chosen->run(&o, words);
}
