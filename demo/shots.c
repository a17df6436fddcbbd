// SPDX-License-Identifier: MIT
// Pictures of the flight.

#include "shots.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "flight.h"
#include "nebula/hash.h"
#include "png.h"

// A device that is slow, or draws on the CPU.
#define TAKE_NS UINT64_C(30000000000)

// In the middle of each part of the flight, or where it has got somewhere.
static const struct {
    const char *name;
    uint32_t tick;
} PLAN[] = {
    {"1_orbit", 180},
    {"2_descent", FLIGHT_DESCENT + 200},
    {"3_ground", FLIGHT_GROUND + 200},
    {"4_teleport", FLIGHT_TELEPORT + 100},
    {"5_night", FLIGHT_NIGHT + 200},
};
#define PLAN_COUNT (sizeof PLAN / sizeof PLAN[0])

// Each folder of the path that is missing.
static bool make_folders(const char *path) {
    char part[SHOTS_PATH_SIZE];
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof part - 32) return false;
    for (size_t i = 1; i <= size; ++i) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
    }
    return true;
}

bool shots_open(shots *s, const char *folder, nb_gpu *gpu) {
    *s = (shots){.folder = folder, .gpu = gpu};
    if (folder == NULL || make_folders(folder)) return true;
    fprintf(stderr, "nebula-demo: cannot make the folder '%s'\n", folder);
    s->folder = NULL;
    return false;
}

bool shots_is_due(const shots *s, uint64_t tick_count) {
    return s->folder != NULL && !s->is_asked && s->next < PLAN_COUNT && tick_count >= PLAN[s->next].tick;
}

void shots_ask(shots *s) { s->is_asked = nb_gpu_capture_ask(s->gpu) == NB_OK; }

nb_result shots_take(shots *s, bool wait) {
    nb_gpu_capture capture;
    if (!s->is_asked) return NB_OK;
    nb_result result = nb_gpu_capture_take(s->gpu, wait ? TAKE_NS : 0, &capture);
    if (result == NB_BUSY) return NB_OK;
    s->is_asked = false;
    if (result != NB_OK) return NB_OK; // that picture was never drawn: it is asked for again
    char path[SHOTS_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s.png", s->folder, PLAN[s->next].name);
    s->hash = nb_hash64(capture.pixels, (size_t)capture.width * capture.height * 4, s->hash);
    result = png_write(path, capture.pixels, capture.width, capture.height);
    if (result != NB_OK) return result;
    printf("picture     %s\n", path);
    fflush(stdout);
    ++s->next;
    ++s->count;
    return NB_OK;
}
