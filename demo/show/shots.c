// SPDX-License-Identifier: MIT
// Pictures of the flight.

#include "shots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../players/flight.h"
#include "nebula/hash.h"
#include "png.h"

// A device that is slow, or draws on the CPU.
#define TAKE_NS UINT64_C(30000000000)

// In the middle of each part of the flight, or where it has got somewhere.
static const script_shot PLAN[] = {
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
    if (size == 0 || size >= sizeof part - sizeof "/.png" - SCRIPT_NAME_SIZE) return false;
    for (size_t i = 1; i <= size; ++i) {
        if (path[i] != '/' && path[i] != '\0') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
    }
    return true;
}

bool shots_open(shots *s, const char *folder, nb_gpu *gpu, const script *flight) {
    *s = (shots){.folder = folder, .gpu = gpu, .plan = PLAN, .plan_count = PLAN_COUNT};
    if (flight != NULL) s->plan = flight->shots, s->plan_count = flight->shot_count;
    if (folder == NULL || make_folders(folder)) return true;
    fprintf(stderr, "nebula-demo: cannot make the folder '%s'\n", folder);
    s->folder = NULL;
    return false;
}

bool shots_is_due(const shots *s, uint64_t tick_count) {
    bool is_free = s->folder != NULL && !s->is_asked && !s->is_writing;
    return is_free && s->next < s->plan_count && tick_count >= s->plan[s->next].tick_count;
}

void shots_ask(shots *s) { s->is_asked = nb_gpu_capture_ask(s->gpu) == NB_OK; }

// --- writing ---

// On a thread that may block.
static nb_result write_file(void *argument) {
    shots *s = argument;
    return png_write(s->path, s->pixels, s->width, s->height);
}

static void note_written(shots *s, nb_result result) {
    s->is_writing = false;
    s->result = result;
    if (result != NB_OK) return;
    ++s->count;
    printf("picture     %s\n", s->path);
    fflush(stdout);
}

static nb_async_status write_step(nb_async_call *call, void *state) {
    shots *s = *(shots **)state;
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_IO(call, write_file, s);
    if (call->result != NB_OK) NB_ASYNC_FAIL(call, call->result);
    NB_ASYNC_END(call);
}

static void written(void *host, void *state) {
    (void)host;
    note_written(*(shots **)state, NB_OK);
}

// Cancelled, because the demo ends: then there is time to wait for the disk.
static void not_written(void *host, void *state, nb_result reason) {
    (void)host;
    shots *s = *(shots **)state;
    note_written(s, reason == NB_CANCELLED ? write_file(s) : reason);
}

static void write_out(shots *s) {
    nb_async_job_desc desc = {.step = write_step,
                              .publish = written,
                              .discard = not_written,
                              .state = &s,
                              .state_size_bytes = sizeof s,
                              .priority = NB_PRIORITY_LOW};
    s->is_writing = true;
    bool is_job = s->async != NULL && nb_async_submit(s->async, &desc, NULL) == NB_OK;
    if (!is_job) note_written(s, write_file(s));
}

// The device's memory is its own again with the next picture.
static bool keep(shots *s, const nb_gpu_capture *capture) {
    size_t size_bytes = (size_t)capture->width * capture->height * 4;
    if (size_bytes > s->pixel_bytes) {
        free(s->pixels);
        s->pixels = malloc(size_bytes);
        s->pixel_bytes = s->pixels != NULL ? size_bytes : 0;
    }
    if (s->pixels == NULL) return false;
    memcpy(s->pixels, capture->pixels, size_bytes);
    s->width = capture->width;
    s->height = capture->height;
    s->hash = nb_hash64(s->pixels, size_bytes, s->hash);
    return true;
}

nb_result shots_take(shots *s, bool wait) {
    nb_gpu_capture capture;
    if (!s->is_asked) return s->result;
    nb_result result = nb_gpu_capture_take(s->gpu, wait ? TAKE_NS : 0, &capture);
    if (result == NB_BUSY) return s->result;
    s->is_asked = false;
    if (result != NB_OK) return s->result; // that picture was never drawn: it is asked for again
    if (!keep(s, &capture)) return NB_ERR_MEMORY;
    snprintf(s->path, sizeof s->path, "%s/%s.png", s->folder, s->plan[s->next++].name);
    write_out(s);
    return s->result;
}

void shots_close(shots *s) {
    free(s->pixels);
    s->pixels = NULL;
}
