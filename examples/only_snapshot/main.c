// SPDX-License-Identifier: MIT
// Snapshots alone: a simulation moves particles at its own pace while a slow reader on another thread draws them. The
// reader holds one snapshot for many frames, and what it reads never changes under it.

#include <pthread.h>
#include <stdio.h>

#include "nebula/snapshot.h"

#define PARTICLE_COUNT 10000
#define BLOCK_PARTICLES 64
#define BLOCK_COUNT ((PARTICLE_COUNT + BLOCK_PARTICLES - 1) / BLOCK_PARTICLES)
#define FRAME_COUNT 2000

typedef struct particle {
    long position, age;
} particle;

typedef struct world {
    nb_snapshots *snapshots;
    uint32_t particles_region;
    particle particles[PARTICLE_COUNT];
    uint64_t versions[BLOCK_COUNT]; // raised with every write to the block
} world;

// In each frame one part of the world moves. What one particle gains its neighbour loses: the sum of all stays 0.
static void simulate(world *w, uint64_t frame) {
    for (unsigned i = 0; i < 100; i += 2) {
        unsigned at = (unsigned)(frame * 100 + i) % PARTICLE_COUNT;
        w->particles[at].position += (long)frame;
        w->particles[at + 1].position -= (long)frame;
        ++w->particles[at].age;
        ++w->versions[at / BLOCK_PARTICLES]; // both are in this block
    }
}

// What a renderer, an autosave or a pathfinder would do: read for a long time.
static bool draw(const world *w, const nb_snapshot *snapshot) {
    const particle *particles = (const particle *)snapshot->regions[w->particles_region].base;
    long sum = 0;
    for (unsigned i = 0; i < PARTICLE_COUNT; ++i) sum += particles[i].position;
    return sum == 0;
}

static void *draw_until_the_last_frame(void *user) {
    world *w = user;
    static bool is_good = true;
    for (uint64_t frame = 0; is_good && frame < FRAME_COUNT;) {
        const nb_snapshot *snapshot = nb_snapshots_acquire(w->snapshots);
        if (snapshot == NULL) continue;
        is_good = snapshot->info.frame >= frame && draw(w, snapshot);
        frame = snapshot->info.frame;
        nb_snapshot_release(snapshot);
    }
    return is_good ? &is_good : NULL;
}

int main(void) {
    static world w;
    pthread_t reader;
    nb_snapshot_region_desc region = {.name = "particles",
                                      .base = w.particles,
                                      .size_bytes = sizeof w.particles,
                                      .block_size_bytes = BLOCK_PARTICLES * sizeof(particle),
                                      .block_versions = w.versions};
    if (nb_snapshots_create(NULL, &w.snapshots) != NB_OK) return 1;
    if (nb_snapshots_region_add(w.snapshots, &region, &w.particles_region) != NB_OK) return 1;
    if (pthread_create(&reader, NULL, draw_until_the_last_frame, &w) != 0) return 1;
    for (uint64_t frame = 1; frame <= FRAME_COUNT; ++frame) {
        simulate(&w, frame);
        // One reader holds one of four slots: there is always a free one.
        nb_snapshot_info info = {.frame = frame, .tick = frame};
        if (nb_snapshots_publish(w.snapshots, &info) != NB_OK) return 1;
    }
    void *reader_result = NULL;
    pthread_join(reader, &reader_result);
    nb_snapshots_stats stats = nb_snapshots_stats_get(w.snapshots);
    printf("%llu publications, %.1f of %d blocks copied on average\n", (unsigned long long)stats.publish_count,
           (double)stats.copied_blocks_total / (double)stats.publish_count, BLOCK_COUNT);
    return nb_snapshots_destroy(w.snapshots) == NB_OK && reader_result != NULL ? 0 : 1;
}
