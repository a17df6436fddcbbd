// SPDX-License-Identifier: MIT
// Where the game comes from. A library of a game has one function by the name NB_REPLAY_GAME_FUNCTION; the functions of
// Nebula that it needs are this program's own, so it is linked without Nebula:
//
//     cc -shared -fPIC my_game.c -o my_game.so

#include "tool.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#if TOOL_HAS_GAME
// Of the game that is linked in.
const nb_replay_game *nebula_replay_game(void);
static const nb_replay_game *built_in(void) { return nebula_replay_game(); }
#else
static const nb_replay_game *built_in(void) { return NULL; }
#endif

static const nb_replay_game *load(const char *path) {
    // The library stays loaded: the game is code of it.
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail("the game cannot be loaded: name a shared library with --game LIBRARY:", dlerror());
        return NULL;
    }
    const nb_replay_game *(*function)(void) = NULL;
    void *symbol = dlsym(library, NB_REPLAY_GAME_FUNCTION);
    memcpy(&function, &symbol, sizeof function); // ISO C has no other way from one to the other
    const nb_replay_game *game = function != NULL ? function() : NULL;
    if (game == NULL)
        fail("no " NB_REPLAY_GAME_FUNCTION " in: export that function, which nebula/verify.h describes, from", path);
    return game;
}

const nb_replay_game *find_game(const options *o, bool is_optional) {
    if (o->game_path != NULL) return load(o->game_path);
    const nb_replay_game *game = built_in();
    if (game == NULL && !is_optional) fail("no game is built in: name the one that recorded it with", "--game LIBRARY");
    return game;
}
