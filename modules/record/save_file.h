// SPDX-License-Identifier: MIT
#pragma once

// What the files of the saves share: save_file.c reads, save_write.c writes.
//
//   0 magic (8)            8 version of the format (4)     12 the game's version (4)
//  16 layout hash (8)     24 tick (8)                      32 seed (8)
//  40 size of the content (8)                              48 size as stored (8)
//  56 hash of what is stored (8)                           64 hash of all before (8)
//  72 zstd of the content; nothing follows
//
// The content of version 2 is a command count (8), that many events as in a recording (32 each), and what
// nb_states_save wrote. In version 1 it is the latter alone: no commands waited.

#include "nebula/save_file.h"

#include "file.h"

#define NBI_SAVE_HEAD_BYTES 72u
// Of a content, before its events.
#define NBI_SAVE_COUNT_BYTES 8u

// A save that was read: unpacked, and checked as far as it can be without the states.
typedef struct nbi_save {
    nb_save_info info;
    unsigned char *content; // of the desc's hooks
    size_t content_bytes;
    nb_input_view commands; // in the content, as the rest
    const unsigned char *state;
    size_t state_bytes;
} nbi_save;

// Reads a file, or says in the log why not. Fails as nb_save_read. What it holds is freed by nbi_save_close.
nb_result nbi_save_open(const char *path, const nb_save_desc *desc, nbi_save *save);
void nbi_save_close(const nb_save_desc *desc, nbi_save *save);

// NB_OK where the save is of these states. Else the log says why not, and it is NB_ERR_UNSUPPORTED.
nb_result nbi_save_check_layout(const nb_save_desc *desc, const char *name, const nbi_save *save,
                                const nb_states *states);

// Says in the log that the states refuse a save.
void nbi_save_report_refusal(const nb_save_desc *desc, const char *name, nb_result result);

extern const unsigned char nbi_save_magic[8];

// A desc with every default filled in; NULL gives all of them.
nb_save_desc nbi_save_resolve(const nb_save_desc *given);

// With commands that wait, and with files of its own, for tests.
nb_result nbi_save_write(const char *path, nb_states *states, nb_input_view commands, const nb_save_desc *desc,
                         const nbi_file_ops *ops);
