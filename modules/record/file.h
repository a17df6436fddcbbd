// SPDX-License-Identifier: MIT
#pragma once

// The files of the module, through a table, so that a test can be a disk that is full or a machine that loses power.
// file_posix.c is the only file of the module with headers of the operating system.

#include "nebula/types.h"

// A file being written. Zero is none.
typedef struct nbi_file {
    intptr_t os; // descriptor + 1
} nbi_file;

// Every function but read returns 0 or the operating system's error number.
typedef struct nbi_file_ops {
    // For writing, emptied; does not follow a link, and never waits: refuses a FIFO.
    int (*open)(void *user, const char *path, nbi_file *file);
    int (*write)(void *user, nbi_file file, const void *bytes, size_t size_bytes);
    int (*sync)(void *user, nbi_file file);
    int (*close)(void *user, nbi_file file);
    int (*rename)(void *user, const char *from, const char *to);
    int (*sync_folder)(void *user, const char *path); // of the folder that the path is in
    int (*remove)(void *user, const char *path);
    void *user;
} nbi_file_ops;

nbi_file_ops nbi_file_ops_default(void);

// How long a regular file is; an error number for anything else.
int nbi_file_size(const char *path, uint64_t *size_bytes);

// Reads the first size_bytes of a file; *read_bytes is less where it has become shorter.
int nbi_file_read(const char *path, void *bytes, size_t size_bytes, size_t *read_bytes);

// What an error number means.
void nbi_file_error_text(int error, char *text, size_t size_bytes);
