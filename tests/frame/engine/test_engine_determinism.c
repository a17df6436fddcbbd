// SPDX-License-Identifier: MIT
// The same state after every tick: for any number of workers, any frame rate, and with jobs that are held up.

#include "frame/engine/engine_fixture.h"

#define CELL_COUNT 512u
#define JOB_COUNT 5u

// Simulated: cells that depend on their neighbours, and their sum. Local: what jobs saw of it, and how often.
typedef struct planet {
    struct {
        uint32_t cells[2][CELL_COUNT];
        uint64_t sum;
        uint32_t current, pad;
    } simulated;
    uint64_t seen; // local
    bool has_stalls;
    uint32_t region; // of the sum, in snapshots
} planet;

static void grow(nb_task_context *context, void *user, uint64_t begin, uint64_t end) {
    (void)context;
    planet *p = user;
    const uint32_t *from = p->simulated.cells[p->simulated.current];
    uint32_t *to = p->simulated.cells[p->simulated.current ^ 1];
    for (uint64_t i = begin; i < end; ++i) {
        uint32_t left = from[(i + CELL_COUNT - 1) % CELL_COUNT], right = from[(i + 1) % CELL_COUNT];
        to[i] = (from[i] * 1664525u + (left ^ right >> 3)) + 1013904223u;
    }
}

static void add_up(nb_task_context *context, void *user, uint64_t begin, uint64_t end, void *value) {
    (void)context;
    const planet *p = user;
    for (uint64_t i = begin; i < end; ++i) {
        *(uint64_t *)value = *(uint64_t *)value * 31 + p->simulated.cells[p->simulated.current][i];
    }
}

static void merge_sums(void *user, void *value, const void *later) {
    (void)user;
    *(uint64_t *)value = *(uint64_t *)value * 131 + *(const uint64_t *)later;
}

// A tick handler that hands out work and waits for it.
static nb_result simulate(const nb_context *context, void *user) {
    planet *p = user;
    p->simulated.cells[p->simulated.current][context->tick->index % CELL_COUNT] ^= (uint32_t)context->tick->index;
    nb_parallel_desc loop = {.run = grow, .user = p, .count = CELL_COUNT, .grain = 64};
    nb_result result = nb_parallel_for(context->scheduler, &loop, NULL);
    if (result != NB_OK) return NB_ERR_OS;
    p->simulated.current ^= 1;
    uint64_t zero = 0;
    nb_reduce_desc sum = {.run = add_up,
                          .merge = merge_sums,
                          .user = p,
                          .count = CELL_COUNT,
                          .initial = &zero,
                          .value_size_bytes = sizeof zero};
    result = nb_parallel_reduce(context->scheduler, &sum, &p->simulated.sum);
    return result == NB_OK ? NB_OK : NB_ERR_OS;
}

// Once a frame, so at another rate for each frame rate: must not leave a trace in what is simulated.
// It reads the snapshot: a job that is late may still be at it in the next tick.
static nb_result watch(const nb_context *context, void *user) {
    const planet *p = user;
    const uint64_t *sum = context->snapshot != NULL ? nb_snapshot_region(context->snapshot, p->region, NULL) : NULL;
    if (p->has_stalls && (context->frame_index + context->job_index) % 7 == 0) {
        for (int i = 0; i < 50; ++i) nbi_thread_yield();
    }
    uint64_t *out = nb_output_add(context, sizeof *out);
    if (out == NULL || sum == NULL) return NB_ERR_MEMORY;
    *out = *sum + context->job_index;
    return NB_OK;
}

static nb_result note(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context;
    return mix_first(&((planet *)user)->seen, outputs);
}

// Runs some ticks at a frame rate; 0 = one tick a frame.
static uint64_t run_hash_of(uint32_t workers, uint64_t rate, bool has_stalls, uint64_t tick_count) {
    static planet p;
    p = (planet){.has_stalls = has_stalls};
    rig r;
    rig_open_hashed(&r, workers);
    nb_provider_desc state = {.name = "planet", .data = &p.simulated, .size_bytes = sizeof p.simulated};
    nb_provider_desc local = {.name = "seen", .data = &p.seen, .size_bytes = sizeof p.seen, .flags = NB_PROVIDER_LOCAL};
    assert_int_equal(nb_states_add(nb_engine_states(r.engine), &state, NULL), NB_OK);
    assert_int_equal(nb_states_add(nb_engine_states(r.engine), &local, NULL), NB_OK);
    nb_snapshot_region_desc sum = {.name = "sum", .base = &p.simulated.sum, .size_bytes = sizeof p.simulated.sum};
    assert_int_equal(nb_snapshots_region_add(nb_engine_snapshots(r.engine), &sum, &p.region), NB_OK);
    attach(
        &r,
        (nb_module_desc){
            .name = "planet", .tick = simulate, .parallel = watch, .merge = note, .job_count = JOB_COUNT, .user = &p});
    if (rate == 0) {
        run_ticks(&r, tick_count);
    } else {
        uint64_t now_ns = 0;
        for (uint64_t frame = 1; rig_stats(&r).tick_count < tick_count; ++frame) {
            uint64_t next_ns = frame * 1000000000 / rate;
            assert_int_equal(nb_engine_frame_delta(r.engine, next_ns - now_ns), NB_OK);
            now_ns = next_ns;
        }
    }
    nb_engine_stats stats = rig_stats(&r);
    assert_int_equal(stats.failure_count, 0);
    assert_int_equal(stats.tick_count, tick_count);
    assert_true(stats.tick_hash == nb_states_hash(nb_engine_states(r.engine)));
    rig_close(&r);
    return stats.run_hash;
}

TEST(state_is_the_same_for_any_workers_and_frame_rate) {
#if defined(__SANITIZE_THREAD__)
    // Races are the same at any rate, and none without workers: the other presets compare all.
    static const uint32_t workers[] = {2, 8};
    static const uint64_t rates[] = {0, 60};
#else
    static const uint32_t workers[] = {0, 1, 2, 4, 8};
    static const uint64_t rates[] = {0, 24, 60, 144};
#endif
    uint64_t tick_count = test_size(120, 1200, 12000); // whole frames at each rate: 2 s, 20 s, 200 s
    uint64_t expected = run_hash_of(0, 0, false, tick_count);
    assert_true(expected != 0);
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; ++i) {
        for (size_t j = 0; j < sizeof rates / sizeof rates[0]; ++j) {
            assert_true(run_hash_of(workers[i], rates[j], (i + j) % 2 == 1, tick_count) == expected);
        }
    }
    assert_true(run_hash_of(2, 0, false, tick_count - 1) != expected);
}
