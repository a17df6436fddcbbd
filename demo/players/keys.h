// SPDX-License-Identifier: MIT
#pragma once

// Keys of the terminal that the demo runs in. A terminal tells no releases: a key counts as held while it repeats.

#include "nebula/types.h"

#include <termios.h>

typedef struct keys {
    bool is_open;
    struct termios before; // how the terminal was
    uint64_t held_until_ns;
    bool is_back;         // r is held
    bool is_quit_pressed; // q or Ctrl-C
} keys;

// Takes the terminal's keys one by one, where both input and output are one; else there are no keys.
void keys_open(keys *k);

// What came since the last time.
void keys_read(keys *k, uint64_t now_ns);

// Leaves the terminal as it was.
void keys_close(keys *k);
