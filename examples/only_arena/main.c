// SPDX-License-Identifier: MIT
// Arenas alone: frame scratch over pages, a parser over a buffer on the stack with no heap at all, and one thread's
// frame arenas with a block that a late reader pins.

#include "nebula/arena.h"
#include "nebula/thread_arena.h"

#include <stdio.h>

typedef struct entity {
    float x, distance;
} entity;

// Sixty frames of culling: lists of any length, and one reset gives them all back.
static int cull_for_a_second(void) {
    nb_arena arena;
    if (nb_arena_init(&arena, NULL) != NB_OK) return 1;
    for (int frame = 0; frame < 60; ++frame) {
        size_t count = 0;
        entity *visible = NULL;
        for (int i = 0; i < 1000; ++i) {
            float x = (float)((i * 37 + frame) % 100);
            if (x >= 50.0f) continue;
            // The list is the newest block, so it grows where it is.
            size_t size = count * sizeof(entity);
            entity *grown = (entity *)nb_arena_grow(&arena, visible, size, size + sizeof(entity), NB_ALIGNOF(entity));
            if (grown == NULL) return 1;
            visible = grown;
            visible[count++] = (entity){.x = x, .distance = 50.0f - x};
        }
        nb_arena_reset(&arena);
    }
    nb_arena_stats stats = nb_arena_stats_get(&arena);
    printf("pages: %llu frames, peak %zu bytes, %zu KiB committed of %zu reserved\n",
           (unsigned long long)stats.reset_count, stats.high_watermark_bytes, stats.committed_bytes / 1024,
           stats.capacity_bytes / 1024);
    nb_arena_deinit(&arena);
    return 0;
}

// A buffer on the stack is enough; when it is full, the answer is NULL and a count.
static int split_words(const char *text) {
    unsigned char storage[256];
    nb_arena arena;
    if (nb_arena_init_buffer(&arena, storage, sizeof storage) != NB_OK) return 1;
    char *copy = nb_arena_strdup(&arena, text);
    char **words = nb_arena_array(&arena, char *, 8);
    if (copy == NULL || words == NULL) return 1;
    size_t count = 0;
    for (char *at = copy; *at != '\0' && count < 8; ++at) {
        if (*at == ' ') *at = '\0';
        if (*at != '\0' && (at == copy || at[-1] == '\0')) words[count++] = at;
    }
    printf("buffer: %zu words, the last is \"%s\", %zu of %zu bytes used\n", count, words[count - 1],
           nb_arena_bytes_used(&arena), nb_arena_capacity(&arena));
    nb_arena_deinit(&arena);
    return 0;
}

// A frame's blocks live for the frames in flight, and longer while the frame is pinned.
static int keep_a_late_result(void) {
    nb_thread_arenas *arenas = NULL;
    nb_thread_arena *mine = NULL;
    if (nb_thread_arenas_create(NULL, &arenas) != NB_OK) return 1;
    if (nb_thread_arena_attach(arenas, &mine) != NB_OK) return 1;
    nb_arena_frame frame = nb_thread_arenas_frame(arenas);
    int *result = nb_arena_new(nb_thread_arena_get(mine), int);
    if (result == NULL || nb_thread_arenas_pin(arenas, frame) != NB_OK) return 1;
    *result = 42;
    for (int i = 0; i < 100; ++i) {
        nb_thread_arenas_advance(arenas, NULL);
        nb_thread_arena_alloc(mine, 1000, NB_ARENA_ALIGNMENT_DEFAULT);
    }
    printf("frames: 100 frames later the pinned result is %d\n", *result);
    nb_thread_arenas_unpin(arenas, frame);
    nb_thread_arena_detach(mine);
    return nb_thread_arenas_destroy(arenas) == NB_OK ? 0 : 1;
}

int main(void) {
    int failures = cull_for_a_second() + split_words("an arena over a buffer needs no heap") + keep_a_late_result();
    return failures == 0 ? 0 : 1;
}
