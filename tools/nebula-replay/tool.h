// SPDX-License-Identifier: MIT
#pragma once

// What the files of nebula-replay share. main.c reads the command line, show.c prints what is in a recording, verify.c
// simulates it again, game.c finds the game that does.

#include <nebula/verify.h>

// What the program ends with.
enum {
    EXIT_FINE = 0,
    EXIT_DIFFERENT = 1, // it diverged; --diff: they differ
    EXIT_WRONG = 2,     // wrong arguments, a file that cannot be read, or one that cannot be verified
    EXIT_PARTIAL = 3,   // all that is there is the same, but it is not whole: cut, damaged, or ended early
};

typedef struct options {
    const char *game_path; // of --game; NULL = the game that is built in
    uint32_t worker_count; // as in nb_scheduler_desc
} options;

// Opens a recording; NULL where that fails, with its reason in the log, which is stderr.
nb_replay *open_file(const char *path);

// EXIT_FINE where the recording is whole, else EXIT_PARTIAL.
int end_status(const nb_replay *replay);

// Prints one line about a mistake to stderr; returns EXIT_WRONG.
int fail(const char *problem, const char *word);

// --- show.c; each gets its operands ---

int run_info(const options *o, char **words);
int run_list(const options *o, char **words);

// --- verify.c ---

int run_verify(const options *o, char **words);
int run_seek(const options *o, char **words);
int run_diff(const options *o, char **words);

// --- game.c ---

// The game to simulate with: that of the library, or the one that is built in; NULL where there is none, after one line
// on stderr unless is_optional. It stays until the program ends.
const nb_replay_game *find_game(const options *o, bool is_optional);
