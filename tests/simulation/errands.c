// SPDX-License-Identifier: MIT
// Jobs of many frames: they yield, wait, block, hang, fail and are cancelled. Each that was accepted is published or
// discarded, once; one whose cancel was accepted is never published.

#include "simulation.h"
#include "support/async_job.h"

#include "platform/platform.h"

#include <string.h>

static nb_result block(void *argument) {
    const errand *e = argument;
    if (e->number % 3 == 0) nbi_sleep_until_ns(nbi_clock_now_ns() + 5000000);
    return NB_OK;
}

static nb_async_status errand_step(nb_async_call *call, void *state) {
    errand *e = state;
    const peer *p = call->user;
    EXPLORE_CHECK(p->errands[e->number].is_live);
    if (call->step >= e->step_count) return NB_ASYNC_STATUS_DONE;
    switch (e->steps[call->step++]) {
    case STEP_YIELD: return NB_ASYNC_STATUS_YIELD;
    case STEP_CHECK: return NB_ASYNC_STATUS_CHECK;
    case STEP_FRAME: return NB_ASYNC_STATUS_FRAME;
    case STEP_IO:
        call->io_run = block;
        call->io_argument = e;
        return NB_ASYNC_STATUS_IO;
    case STEP_HANG:
        if (!p->sim->is_calm) nbi_sleep_until_ns(nbi_clock_now_ns() + (1 + e->number % 8) * UINT64_C(20000000));
        return NB_ASYNC_STATUS_YIELD;
    default: call->result = NB_ERR_OS; return NB_ASYNC_STATUS_FAILED;
    }
}

static nb_result errand_commit(void *host, void *state) {
    const nb_context *context = host;
    const errand *e = state;
    EXPLORE_CHECK(context->phase == NB_PHASE_ASYNC_POLL);
    return e->commit_fails ? NB_ERR_RANGE : NB_OK;
}

static peer *owner_of(const nb_context *context) {
    sim *s = explore_user();
    return context->engine == s->peers[0].engine ? &s->peers[0] : &s->peers[1];
}

static void end_errand(peer *p, const errand *e) {
    errand_record *record = &p->errands[e->number];
    EXPLORE_CHECK(record->is_live);
    record->is_live = false;
    ++p->errand_ended;
}

static void errand_publish(void *host, void *state) {
    const nb_context *context = host;
    const errand *e = state;
    peer *p = owner_of(context);
    EXPLORE_CHECK(!p->errands[e->number].is_cancelled && !e->commit_fails);
    EXPLORE_CHECK(context->phase == NB_PHASE_FRAME_START);
    end_errand(p, e);
    ++p->published_count;
    uint64_t *count = NB_STORE_SINGLETON_WRITE(p->game.world, p->game.camera, 0, uint64_t);
    EXPLORE_CHECK(count != NULL);
    ++*count, ++p->game.camera_count;
    if (e->number % 2 == 0) peer_command(context, p);
}

static void errand_discard(void *host, void *state, nb_result reason) {
    const errand *e = state;
    peer *p = owner_of(host);
    bool is_explained = reason == NB_CANCELLED || reason < 0;
    EXPLORE_CHECK(is_explained);
    end_errand(p, e);
    ++p->discarded_count;
}

// --- submitting ---

static errand errand_plan(const peer *p) {
    const sim *s = p->sim;
    errand e = {.number = p->errand_count, .step_count = (uint32_t)sim_random(5)};
    for (uint32_t i = 0; i < e.step_count; ++i) {
        e.steps[i] = (uint8_t)sim_random(STEP_HANG);
        if (fault_happens(s, FAULT_ERRAND_HANG)) e.steps[i] = STEP_HANG;
        if (fault_happens(s, FAULT_ERRAND)) e.steps[i] = STEP_FAIL;
    }
    e.commit_fails = fault_happens(s, FAULT_ERRAND);
    return e;
}

static void submit_one(peer *p) {
    if (p->errand_count == ERRAND_MAX) return;
    errand e = errand_plan(p);
    errand_record *record = &p->errands[e.number];
    uint32_t token = (uint32_t)sim_random(TOKEN_COUNT + 2);
    bool has_token = token < TOKEN_COUNT && p->tokens[token] != NULL;
    nb_async_job_desc desc = async_job_of(errand_step, errand_commit, errand_publish, errand_discard, &e, sizeof e);
    desc.user = p, desc.token = has_token ? p->tokens[token] : NULL;
    desc.priority = (nb_priority)(1 + sim_random(NB_PRIORITY_COUNT - 1));
    desc.budget_class = (nb_async_class)sim_random(NB_ASYNC_CLASS_COUNT);
    *record = (errand_record){.is_live = true, .token = has_token ? token + 1 : 0};
    ++p->errand_count; // before the submit: its step may run within it
    nb_result result = nb_async_submit(p->async, &desc, &record->job);
    if (result == NB_OK) return;
    EXPLORE_CHECK(result == NB_FULL || result == NB_CLOSED || (result == NB_CANCELLED && has_token));
    EXPLORE_CHECK(record->is_live);
    record->is_live = false;
    --p->errand_count;
}

void errands_submit(const nb_context *context, peer *p) {
    (void)context;
    if (p->sim->is_calm) return;
    uint64_t count = fault_happens(p->sim, FAULT_ERRAND_FLOOD) ? 6 : sim_random(5) / 3;
    for (uint64_t i = 0; i < count; ++i) submit_one(p);
}

// --- between frames ---

void errands_cancel_one(peer *p) {
    if (p->errand_count == 0) return;
    errand_record *record = &p->errands[sim_random(p->errand_count)];
    bool was_live = record->is_live;
    nb_result result = nb_async_cancel(p->async, record->job);
    EXPLORE_CHECK(result == NB_OK || result == NB_CANCELLED || result == NB_EMPTY);
    EXPLORE_CHECK(was_live || result == NB_EMPTY);
    if (result == NB_OK) record->is_cancelled = true;
}

static void turn_token(peer *p) {
    uint32_t i = (uint32_t)sim_random(TOKEN_COUNT);
    if (p->tokens[i] == NULL) {
        nb_result result = nb_token_child(nb_engine_token(p->engine), "errands", &p->tokens[i]);
        EXPLORE_CHECK(result == NB_OK || (result == NB_ERR_MEMORY && p->heap_faults != 0));
        if (result != NB_OK) p->tokens[i] = NULL;
        p->is_token_cancelled[i] = false;
        return;
    }
    if (sim_random(2) == 0) EXPLORE_CHECK(nb_token_cancel(p->tokens[i], NB_CANCEL_REQUESTED, 0, NULL) == NB_OK);
    for (uint32_t j = 0; j < p->errand_count && nb_token_is_cancelled(p->tokens[i]); ++j) {
        // Cancelled before any later publish looks.
        if (p->errands[j].token == i + 1 && p->errands[j].is_live) p->errands[j].is_cancelled = true;
    }
    for (uint32_t j = 0; j < p->errand_count; ++j) {
        if (p->errands[j].token == i + 1) p->errands[j].token = 0;
    }
    nb_token_release(p->tokens[i]);
    p->tokens[i] = NULL;
}

void errands_disturb(peer *p) {
    if (fault_happens(p->sim, FAULT_ERRAND_CANCEL)) errands_cancel_one(p);
    if (fault_happens(p->sim, FAULT_CANCEL)) turn_token(p);
}

// The library's numbers are ours.
void errands_check(const peer *p) {
    nb_async_stats stats = nb_async_stats_get(p->async);
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < p->errand_count; ++i) live_count += p->errands[i].is_live ? 1 : 0;
    EXPLORE_CHECK(stats.submit_count == p->errand_count && stats.live_count == live_count);
    EXPLORE_CHECK(stats.publish_count == p->published_count && stats.discard_count == p->discarded_count);
    EXPLORE_CHECK(stats.submit_count == stats.publish_count + stats.discard_count + stats.live_count);
    EXPLORE_CHECK(stats.discard_count == stats.cancel_count + stats.fail_count + stats.unwanted_count);
}
