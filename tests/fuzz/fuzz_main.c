// SPDX-License-Identifier: MIT
// fuzz_main [-runs=N] FOLDER_OR_FILE...: stands in for libFuzzer where the compiler has none. Runs every file as it is,
// then N random changes of them. Not guided by coverage.

#define _POSIX_C_SOURCE 200809L

#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX 65536u
#define FILE_COUNT_MAX 512u

typedef struct seed {
    uint8_t *bytes;
    size_t size;
} seed;

static seed seeds[FILE_COUNT_MAX];
static size_t seed_count;

static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void add_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || seed_count == FILE_COUNT_MAX) {
        if (file != NULL) fclose(file);
        return;
    }
    uint8_t *bytes = malloc(FILE_BYTES_MAX);
    if (bytes == NULL) abort();
    seeds[seed_count++] = (seed){bytes, fread(bytes, 1, FILE_BYTES_MAX, file)};
    fclose(file);
}

static void add(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        add_file(path);
        return;
    }
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') add_file(name);
    }
    if (folder != NULL) closedir(folder);
}

static size_t change(uint8_t *bytes, size_t size, uint64_t *random) {
    static const uint8_t special[] = {0, 1, 0x7F, 0x80, 0xFF};
    for (uint64_t i = 1 + next(random) % 6; i > 0 && size != 0; --i) {
        size_t at = next(random) % size;
        switch (next(random) % 4) {
        case 0: bytes[at] ^= (uint8_t)(1u << next(random) % 8); break;
        case 1: bytes[at] = special[next(random) % sizeof special]; break;
        case 2: bytes[at] = (uint8_t)next(random); break;
        default: size = 1 + next(random) % size; break;
        }
    }
    return size;
}

int main(int argc, char **argv) {
    uint64_t runs = 0, random = 1;
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], "-runs=", 6) == 0)
            runs = strtoull(argv[i] + 6, NULL, 10);
        else if (argv[i][0] != '-')
            add(argv[i]);
    }
    for (size_t i = 0; i < seed_count; ++i) LLVMFuzzerTestOneInput(seeds[i].bytes, seeds[i].size);
    uint8_t *bytes = malloc(FILE_BYTES_MAX);
    if (bytes == NULL || seed_count == 0) return 1;
    for (uint64_t i = 0; i < runs; ++i) {
        const seed *from = &seeds[next(&random) % seed_count];
        memcpy(bytes, from->bytes, from->size);
        LLVMFuzzerTestOneInput(bytes, change(bytes, from->size, &random));
    }
    printf("%zu files, %llu changes\n", seed_count, (unsigned long long)runs);
    free(bytes);
    for (size_t i = 0; i < seed_count; ++i) free(seeds[i].bytes);
    return 0;
}
