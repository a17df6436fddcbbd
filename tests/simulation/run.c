// SPDX-License-Identifier: MIT
// One run: both peers open, round by round a frame of each, the end.

#include "simulation.h"

#include "platform/platform.h"

#include <stdio.h>
#include <string.h>

// A round of both peers is followed by the rest of a tick's time: whoever is late or hangs has that long to come on.
static void run_round(sim *s) {
    uint64_t start_ns = nbi_clock_now_ns();
    for (uint32_t i = 0; i < PEER_COUNT; ++i) {
        peer *p = &s->peers[(i + s->round) % PEER_COUNT];
        peer_frame(p);
        link_send(s, p);
    }
    match_round(s);
    ++s->round;
    nbi_sleep_until_ns(start_ns + TICK_NS);
}

// --- a reader beside the frames ---

static void read_once(sim *s, peer *p) {
    const nb_snapshot *snapshot = nb_snapshots_acquire(p->snapshots);
    if (snapshot == NULL) return;
    uint64_t hash = 0, hash_after = 0;
    EXPLORE_CHECK(snapshot_check(p, snapshot, &hash));
    uint64_t hold_ms = fault_happens(s, FAULT_READER) ? 1 + sim_random(200) : 1;
    nbi_sleep_until_ns(nbi_clock_now_ns() + hold_ms * 1000000);
    EXPLORE_CHECK(snapshot_check(p, snapshot, &hash_after) && hash == hash_after);
    nb_snapshot_release(snapshot);
}

static void reader_main(void *user) {
    sim *s = user;
    while (nbi_atomic_load_acquire_u32(&s->is_reader_off) == 0) {
        read_once(s, &s->peers[sim_random(PEER_COUNT)]);
        // Beside the frames, too: in the middle of a publication, perhaps.
        for (uint32_t i = 0; i < 4; ++i) {
            if (fault_happens(s, FAULT_ERRAND_CANCEL)) errands_cancel_one(&s->peers[sim_random(PEER_COUNT)]);
        }
        nbi_sleep_until_ns(nbi_clock_now_ns() + (1 + sim_random(40)) * 1000000);
    }
}

// --- parts of a run ---

static void run_faults(sim *s) {
    const uint64_t round_max = 3 * (uint64_t)s->config.tick_count;
    for (uint64_t i = 0; i < round_max; ++i) {
        bool is_far = s->peers[0].run_count >= s->config.tick_count && s->peers[1].run_count >= s->config.tick_count;
        if (is_far) break;
        run_round(s);
    }
}

static const char *unwell(const sim *s) {
    const char *first = oracle_unwell(&s->peers[0]);
    if (first == NULL) first = oracle_unwell(&s->peers[1]);
    return first != NULL ? first : match_unwell(s);
}

static void fail_with(const char *what, const char *detail) {
    char text[160];
    snprintf(text, sizeof text, "%s: %s", what, detail);
    explore_fail(__FILE__, __LINE__, text);
}

static bool has_backlog(const sim *s) { return oracle_has_backlog(&s->peers[0]) || oracle_has_backlog(&s->peers[1]); }

// The faults have stopped: how long does it take?
static void run_recovery(sim *s) {
    s->is_calm = true;
    nbi_atomic_store_release_u32(&s->is_reader_off, 1);
    const char *trouble = "nothing was tried";
    uint32_t well_count = 0;
    // What was sent in a flood goes into the ticks two by two, as fast as a small history has room for it: that is no
    // time of the engine's.
    for (uint32_t i = 0; i < BACKLOG_ROUNDS && has_backlog(s); ++i) run_round(s);
    for (uint32_t i = 0; i < RECOVER_ROUNDS && well_count < 3; ++i) {
        run_round(s);
        trouble = unwell(s);
        well_count = trouble == NULL ? well_count + 1 : 0;
    }
    if (well_count < 3) fail_with("not recovered in time", trouble != NULL ? trouble : "only just now");
}

// And then nothing happens any more that does not belong into a quiet frame.
static void run_steady(sim *s) {
    for (uint32_t i = 0; i < STEADY_ROUNDS; ++i) {
        s->is_steady = true;
        run_round(s);
        const char *trouble = unwell(s);
        if (trouble != NULL) fail_with("well again, but not for long", trouble);
        for (uint32_t j = 0; j < PEER_COUNT && i >= STEADY_ROUNDS / 2; ++j) {
            EXPLORE_CHECK(s->peers[j].heap_calls_in_frame == 0);
            EXPLORE_CHECK(s->peers[j].logs_in_frame == 0);
        }
    }
}

// Nothing new comes, and both go to the same tick: they must be alike.
static void run_agreement(sim *s) {
    uint64_t last = s->peers[0].run_count > s->peers[1].run_count ? s->peers[0].run_count : s->peers[1].run_count;
    for (uint32_t i = 0; i < 2 * WINDOW; ++i) {
        bool is_there = true;
        for (uint32_t j = 0; j < PEER_COUNT; ++j) {
            nb_loop *loop = nb_engine_loop(s->peers[j].engine);
            if (nb_loop_tick_count(loop) < last)
                is_there = false;
            else
                s->peers[j].is_paused = nb_loop_pause(loop) == NB_OK;
            if (s->peers[j].received < last) is_there = false;
        }
        if (is_there) break;
        for (uint32_t j = 0; j < PEER_COUNT; ++j) {
            peer *p = &s->peers[j];
            uint64_t left = nb_loop_tick_count(nb_engine_loop(p->engine)) < last ? TICK_NS : 0;
            oracle_before(p);
            p->frame_result = nb_engine_frame_delta(p->engine, left);
            link_settle(p);
            oracle_truth_advance(s);
            oracle_after(p);
            link_send(s, p);
        }
        ++s->round;
    }
    uint64_t hashes[PEER_COUNT];
    for (uint32_t j = 0; j < PEER_COUNT; ++j) {
        EXPLORE_CHECK(nb_loop_tick_count(nb_engine_loop(s->peers[j].engine)) == last && s->peers[j].received >= last);
        hashes[j] = nb_states_hash(nb_engine_states(s->peers[j].engine));
    }
    EXPLORE_CHECK(hashes[0] == hashes[1] && hashes[0] == s->truth_hash[last]);
}

// --- the whole ---

static void open_scheduler(sim *s) {
    const sim_config *c = &s->config;
    if (!c->shares_scheduler) return;
    nb_scheduler_desc desc = {.worker_count = c->worker_count != 0 ? c->worker_count : NB_WORKER_COUNT_NONE,
                              .task_count_max = c->task_count,
                              .group_count_max = 64,
                              .dependency_count_max = 64,
                              .hooks = explore_hooks()};
    EXPLORE_CHECK(nb_scheduler_create(&desc, &s->scheduler) == NB_OK);
}

static void close_all(sim *s) {
    s->is_calm = true;
    match_close(s);
    for (uint32_t i = 0; i < PEER_COUNT + 1; ++i) peer_close(&s->peers[i]);
    if (s->scheduler == NULL) return;
    nb_scheduler_stats stats = nb_scheduler_stats_get(s->scheduler);
    EXPLORE_CHECK(stats.submit_count == stats.run_count + stats.cancel_count && stats.alive_count == 0);
    EXPLORE_CHECK(nb_scheduler_destroy(s->scheduler) == NB_OK);
}

void run_main(void *user, uint32_t index) {
    sim *s = user;
    (void)index;
    nbi_thread reader = {0};
    nbi_thread_desc reader_desc = {.run = reader_main, .user = s, .name = "reader"};
    open_scheduler(s);
    peer_open(s, REFERENCE);
    for (uint32_t i = 0; i < PEER_COUNT; ++i) peer_open(s, i);
    match_open(s);
    if (s->config.has_reader) EXPLORE_CHECK(nbi_thread_start(&reader, &reader_desc) == NB_OK);
    run_faults(s);
    if (s->config.mode == MODE_LIVENESS) {
        run_recovery(s);
        run_steady(s);
        run_agreement(s);
    }
    nbi_atomic_store_release_u32(&s->is_reader_off, 1);
    nbi_thread_join(&reader);
    close_all(s);
    trace(s, s->checks);
}
