// SPDX-License-Identifier: MIT
// Keys of a POSIX terminal.

#include "keys.h"

#include <unistd.h>

// Terminals begin to repeat after a quarter to half a second, then some thirty times a second.
#define KEY_FIRST_NS UINT64_C(600000000)
#define KEY_REPEAT_NS UINT64_C(150000000)

#define KEY_CTRL_C 3

void keys_open(keys *k) {
    *k = (keys){0};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &k->before) != 0) return;
    struct termios raw = k->before;
    // Without signals: one that ended the program would leave the terminal like this.
    raw.c_lflag &= (tcflag_t) ~(tcflag_t)(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    k->is_open = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void take(keys *k, unsigned char key, uint64_t now_ns) {
    if (key == 'q' || key == KEY_CTRL_C) k->is_quit_pressed = true;
    if (key != 'r') return;
    k->held_until_ns = now_ns + (k->is_back ? KEY_REPEAT_NS : KEY_FIRST_NS);
    k->is_back = true;
}

void keys_read(keys *k, uint64_t now_ns) {
    if (!k->is_open) return;
    unsigned char read_keys[64];
    ssize_t count = read(STDIN_FILENO, read_keys, sizeof read_keys);
    if (now_ns >= k->held_until_ns) k->is_back = false;
    for (ssize_t i = 0; i < count; ++i) take(k, read_keys[i], now_ns);
}

void keys_close(keys *k) {
    if (k->is_open) tcsetattr(STDIN_FILENO, TCSANOW, &k->before);
    k->is_open = false;
}
