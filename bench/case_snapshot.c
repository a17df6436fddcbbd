// SPDX-License-Identifier: MIT
// Snapshots: what a publication costs by how much has changed, beside copying everything, and what a reader pays to
// hold the newest one while others are being published.

#include "bench.h"

#include <nebula/snapshot.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROWS ((size_t)100000)
#define ROW_BYTES ((size_t)64)
#define BLOCK_ROWS ((size_t)64)
#define BLOCKS ((ROWS + BLOCK_ROWS - 1) / BLOCK_ROWS)
#define STATE_BYTES (ROWS * ROW_BYTES)
// A third of a millisecond each where everything is copied.
#define PUBLISHES 25
#define WARM_PUBLISHES 4

typedef struct publish_fixture {
    unsigned char *rows;
    uint64_t versions[BLOCKS];
    unsigned char *copies[2]; // of the peer: the same two buffers in turn that two slots are
    nb_snapshots *snapshots;
    size_t cursor; // where the next run of changed rows begins
    uint64_t random;
    unsigned publish_count;
} publish_fixture;

static void close_publish(void *context) {
    publish_fixture *fixture = context;
    if (fixture == NULL) return;
    nb_snapshots_destroy(fixture->snapshots);
    free(fixture->rows);
    free(fixture->copies[0]);
    free(fixture->copies[1]);
    free(fixture);
}

static bool fill_fixture(publish_fixture *fixture) {
    uint32_t region;
    fixture->rows = aligned_alloc(4096, (STATE_BYTES + 4095) / 4096 * 4096);
    for (int i = 0; i < 2; ++i) fixture->copies[i] = aligned_alloc(4096, (STATE_BYTES + 4095) / 4096 * 4096);
    if (!fixture->rows || !fixture->copies[0] || !fixture->copies[1]) return false;
    memset(fixture->rows, 1, STATE_BYTES);
    nb_snapshot_region_desc desc = {.name = "rows",
                                    .base = fixture->rows,
                                    .size_bytes = STATE_BYTES,
                                    .block_size_bytes = BLOCK_ROWS * ROW_BYTES,
                                    .block_versions = fixture->versions};
    if (nb_snapshots_create(NULL, &fixture->snapshots) != NB_OK) return false;
    return nb_snapshots_region_add(fixture->snapshots, &desc, &region) == NB_OK;
}

static void *open_publish(void) {
    publish_fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture != NULL && !fill_fixture(fixture)) {
        close_publish(fixture);
        return NULL;
    }
    return fixture;
}

static void change_row(publish_fixture *fixture, size_t row) {
    ++fixture->rows[row * ROW_BYTES];
    ++fixture->versions[row / BLOCK_ROWS];
}

typedef struct change {
    size_t row_count;
    bool is_scattered;
} change;

// In one run that goes round, or anywhere.
static void change_rows(publish_fixture *fixture, const change *how) {
    for (size_t i = 0; i < how->row_count; ++i) {
        size_t row = how->is_scattered ? bench_random(&fixture->random) % ROWS : (fixture->cursor + i) % ROWS;
        change_row(fixture, row);
    }
    fixture->cursor = (fixture->cursor + how->row_count) % ROWS;
}

typedef bool publish_fn(publish_fixture *fixture);

static bool publish_nebula(publish_fixture *fixture) { return nb_snapshots_publish(fixture->snapshots, NULL) == NB_OK; }

static bool publish_memcpy(publish_fixture *fixture) {
    memcpy(fixture->copies[fixture->publish_count % 2], fixture->rows, STATE_BYTES);
    bench_keep(fixture->copies[fixture->publish_count % 2]);
    return true;
}

// The middle one of many: a single interruption is as long as a publication.
static double publish_us(publish_fixture *fixture, publish_fn *publish, const change *how) {
    double each_ns[PUBLISHES];
    for (int i = -WARM_PUBLISHES; i < PUBLISHES; ++i) {
        change_rows(fixture, how);
        ++fixture->publish_count;
        uint64_t start_ns = bench_now_ns();
        if (!publish(fixture)) return -1.0;
        if (i >= 0) each_ns[i] = (double)(bench_now_ns() - start_ns);
    }
    bench_sort(each_ns, PUBLISHES);
    return each_ns[PUBLISHES / 2] * 1e-3;
}

// In the order of the rows below.
static const change changes[] = {
    {ROWS, false}, {ROWS / 10, false}, {ROWS / 100, false}, {0, false}, {ROWS / 10, true}, {ROWS / 100, true},
};

typedef struct publisher {
    publish_fn *publish;
} publisher;

static bool run_publish(void *context, const void *argument, double *values) {
    publish_fixture *fixture = context;
    publish_fn *publish = ((const publisher *)argument)->publish;
    bool is_good = true;
    for (size_t i = 0; i < BENCH_COUNT(changes); ++i) {
        values[i] = publish_us(fixture, publish, &changes[i]);
        is_good = is_good && values[i] >= 0.0;
    }
    return is_good;
}

#define AGAINST_MEMCPY(limit) \
    { .kind = BENCH_GOAL_PEER, .factor = (limit), .peer = "memcpy" }

// Scattered rows make most blocks dirty: reported without a goal.
static const bench_row publish_rows[] = {
    {.name = "snapshot.publish100", .unit = "us", .goals = {AGAINST_MEMCPY(1.1)}},
    {.name = "snapshot.publish10", .unit = "us"},
    {.name = "snapshot.publish1", .unit = "us", .goals = {AGAINST_MEMCPY(0.15)}},
    {.name = "snapshot.publish0", .unit = "us"},
    {.name = "snapshot.scattered10", .unit = "us"},
    {.name = "snapshot.scattered1", .unit = "us"},
};
static const publisher nebula_publisher = {publish_nebula}, memcpy_publisher = {publish_memcpy};
static const bench_contender publish_contenders[] = {
    {"nebula", BENCH_NEBULA, run_publish, &nebula_publisher, NULL},
    {"memcpy", BENCH_PEER, run_publish, &memcpy_publisher, NULL},
};

// --- readers ---

#define ACQUIRES ((size_t)1 << 19)
// Copying it takes microseconds, so that both publish about as often, some hundred times faster than a game.
#define SMALL_BYTES ((size_t)65536)
#define MUTEX_SLOTS 4
#define PUBLISHER_CPU 1
#define PUBLISHES_LEAST 100 // a thousand and more are usual

// What a hand-written one looks like: a mutex around the number of the newest buffer and its readers.
typedef struct mutex_ring {
    pthread_mutex_t mutex;
    unsigned newest;
    unsigned reader_count[MUTEX_SLOTS];
    unsigned char bytes[MUTEX_SLOTS][SMALL_BYTES];
} mutex_ring;

typedef struct acquire_fixture {
    nb_snapshots *snapshots;
    mutex_ring ring;
    unsigned char state[SMALL_BYTES];
    atomic_bool is_over;
    atomic_uint publish_count; // of this run
} acquire_fixture;

static void *open_acquire(void) {
    acquire_fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL) return NULL;
    uint32_t region;
    nb_snapshot_region_desc desc = {.name = "state", .base = fixture->state, .size_bytes = SMALL_BYTES};
    bool is_good = nb_snapshots_create(NULL, &fixture->snapshots) == NB_OK &&
                   nb_snapshots_region_add(fixture->snapshots, &desc, &region) == NB_OK &&
                   nb_snapshots_publish(fixture->snapshots, NULL) == NB_OK &&
                   nb_snapshots_disown(fixture->snapshots) == NB_OK;
    pthread_mutex_init(&fixture->ring.mutex, NULL);
    if (is_good) return fixture;
    free(fixture);
    return NULL;
}

static void close_acquire(void *context) {
    acquire_fixture *fixture = context;
    nb_snapshots_destroy(fixture->snapshots);
    free(fixture);
}

static void mutex_publish(acquire_fixture *fixture) {
    mutex_ring *ring = &fixture->ring;
    unsigned slot = 0;
    pthread_mutex_lock(&ring->mutex);
    while (slot < MUTEX_SLOTS && (slot == ring->newest || ring->reader_count[slot] != 0)) ++slot;
    pthread_mutex_unlock(&ring->mutex);
    if (slot == MUTEX_SLOTS) return;
    memcpy(ring->bytes[slot], fixture->state, SMALL_BYTES);
    pthread_mutex_lock(&ring->mutex);
    ring->newest = slot;
    pthread_mutex_unlock(&ring->mutex);
}

static void mutex_read(acquire_fixture *fixture) {
    mutex_ring *ring = &fixture->ring;
    pthread_mutex_lock(&ring->mutex);
    unsigned slot = ring->newest;
    ++ring->reader_count[slot];
    pthread_mutex_unlock(&ring->mutex);
    bench_keep(ring->bytes[slot]);
    pthread_mutex_lock(&ring->mutex);
    --ring->reader_count[slot];
    pthread_mutex_unlock(&ring->mutex);
}

static void nebula_publish(acquire_fixture *fixture) { nb_snapshots_publish(fixture->snapshots, NULL); }

static void nebula_read(acquire_fixture *fixture) {
    const nb_snapshot *snapshot = nb_snapshots_acquire(fixture->snapshots);
    bench_keep(snapshot);
    nb_snapshot_release(snapshot);
}

typedef struct acquire_way {
    void (*publish)(acquire_fixture *fixture);
    void (*read)(acquire_fixture *fixture);
} acquire_way;

typedef struct publisher_thread {
    acquire_fixture *fixture;
    const acquire_way *way;
} publisher_thread;

static void *publish_until_over(void *user) {
    publisher_thread *self = user;
    bench_pin(PUBLISHER_CPU); // the reader is on 0
    while (!atomic_load_explicit(&self->fixture->is_over, memory_order_relaxed)) {
        self->way->publish(self->fixture);
        atomic_fetch_add_explicit(&self->fixture->publish_count, 1, memory_order_relaxed);
    }
    nb_snapshots_disown(self->fixture->snapshots);
    return NULL;
}

static double acquire_ns(acquire_fixture *fixture, const acquire_way *way) {
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < ACQUIRES; ++i) way->read(fixture);
    return (double)(bench_now_ns() - start_ns) / (double)ACQUIRES;
}

static bool run_acquire(void *context, const void *argument, double *values) {
    acquire_fixture *fixture = context;
    publisher_thread self = {fixture, argument};
    pthread_t thread;
    values[1] = acquire_ns(fixture, argument);
    atomic_store(&fixture->is_over, false);
    atomic_store(&fixture->publish_count, 0);
    if (pthread_create(&thread, NULL, publish_until_over, &self) != 0) return false;
    while (atomic_load(&fixture->publish_count) == 0) bench_keep(fixture);
    unsigned before = atomic_load(&fixture->publish_count);
    values[0] = acquire_ns(fixture, argument);
    // A publisher that other programs kept from its cpu all the time is not what this row is about.
    if (atomic_load(&fixture->publish_count) - before < PUBLISHES_LEAST) values[0] = BENCH_THROWN_AWAY;
    atomic_store(&fixture->is_over, true);
    pthread_join(thread, NULL);
    return true;
}

static const bench_row acquire_rows[] = {
    {.name = "snapshot.acquire", .unit = "ns"},
    {.name = "snapshot.acquire_quiet", .unit = "ns"},
};
static const acquire_way nebula_way = {nebula_publish, nebula_read}, mutex_way = {mutex_publish, mutex_read};
static const bench_contender acquire_contenders[] = {
    {"nebula", BENCH_NEBULA, run_acquire, &nebula_way, NULL},
    {"mutex", BENCH_PEER, run_acquire, &mutex_way, NULL},
};

static const bench_case cases[] = {
    {"snapshot.publish", "100,000 rows of 64 bytes, 100, 10, 1 and 0 percent changed, in a run or scattered",
     publish_rows, BENCH_COUNT(publish_rows), publish_contenders, BENCH_COUNT(publish_contenders), 1, open_publish,
     close_publish},
    {"snapshot.acquire", "acquire and release while another thread publishes 64 KiB without a pause, and alone",
     acquire_rows, BENCH_COUNT(acquire_rows), acquire_contenders, BENCH_COUNT(acquire_contenders), 2, open_acquire,
     close_acquire},
};

const bench_case *bench_snapshot_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
