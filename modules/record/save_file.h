// SPDX-License-Identifier: MIT
#pragma once

// What the files of the saves share: save_file.c reads, save_write.c writes.
//
//   0 magic (8)            8 version of the format (4)     12 the game's version (4)
//  16 layout hash (8)     24 tick (8)                      32 seed (8)
//  40 size of the state (8)                                48 size as stored (8)
//  56 hash of what is stored (8)                           64 hash of all before (8)
//  72 zstd of what nb_states_save wrote; nothing follows

#include "nebula/save_file.h"

#include "file.h"

#define NBI_SAVE_HEAD_BYTES 72u

extern const unsigned char nbi_save_magic[8];

// A desc with every default filled in; NULL gives all of them.
nb_save_desc nbi_save_resolve(const nb_save_desc *given);

// With files of its own, for tests.
nb_result nbi_save_write(const char *path, nb_states *states, const nb_save_desc *desc, const nbi_file_ops *ops);
