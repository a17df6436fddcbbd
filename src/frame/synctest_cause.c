// SPDX-License-Identifier: MIT
// What does a tick depend on that a rewind does not bring back? Found by trying: with one piece of local state put to
// what it was when the tick first ran, does it end as it first did?

#include "synctest.h"

#include <stdio.h>
#include <string.h>

// Times that the tick is simulated from one and the same state to see whether it ends in one: a race that shows every
// other time is missed once in eight.
#define STEADY_TRY_COUNT 4

// Pieces that are put to what they were in the first run.
typedef enum pick_kind { PICK_NONE, PICK_ONE, PICK_ALL } pick_kind;

typedef struct pick {
    pick_kind kind;
    uint32_t index; // of PICK_ONE
} pick;

static bool is_candidate(const nbi_local *piece) { return piece->kind != NBI_LOCAL_ASIDE; }

static bool is_picked(const nbi_local *piece, uint32_t index, const void *user) {
    const pick *p = user;
    return is_candidate(piece) && (p->kind == PICK_ALL || (p->kind == PICK_ONE && p->index == index));
}

static bool is_local(const nbi_local *piece, uint32_t index, const void *user) {
    (void)index, (void)user;
    return is_candidate(piece);
}

// The hash that the tick ends with: from the state before it, with all that is local as it was when it ran again, but
// for what is picked.
static uint64_t try_tick(nbi_synctest *self, uint64_t tick, pick picked) {
    if (nb_history_rewind(self->engine->history, tick) != NB_OK) return 0;
    nbi_local_put(self, &self->local_again, is_local, NULL);
    nbi_local_put(self, &nbi_sync_slot_of(self, tick)->local, is_picked, &picked);
    nbi_sync_simulate(self, NBI_SYNC_TRY, tick);
    return self->engine->stats.tick_hash;
}

// --- the search ---

static nb_synctest_cause cause_of(const nbi_local *piece) {
    if (piece->kind == NBI_LOCAL_COLUMN) return NB_SYNCTEST_LOCAL_COLUMN;
    return piece->kind == NBI_LOCAL_TABLE ? NB_SYNCTEST_LOCAL_TABLE : NB_SYNCTEST_LOCAL_PROVIDER;
}

static void name_culprit(nb_synctest_report *report, const nbi_local *piece) {
    const char *dot = piece->column_name[0] != '\0' ? "." : "";
    snprintf(report->culprit, sizeof report->culprit, "%s%s%s", piece->name, dot, piece->column_name);
}

// One piece alone, or all together.
static nb_synctest_cause find_local(nbi_synctest *self, uint64_t tick, uint64_t hash) {
    const nbi_copy *first = &nbi_sync_slot_of(self, tick)->local, *again = &self->local_again;
    uint32_t index = 0;
    for (nbi_local piece = {0}; nbi_local_next(self->engine, &piece); ++index) {
        if (!is_candidate(&piece) || nbi_local_is_same(first, again, index)) continue;
        // Tables may be loaded meanwhile; what the cursor holds stays true.
        if (try_tick(self, tick, (pick){PICK_ONE, index}) != hash) continue;
        name_culprit(&self->report, &piece);
        return cause_of(&piece);
    }
    bool is_any = try_tick(self, tick, (pick){PICK_ALL, 0}) == hash;
    return is_any ? NB_SYNCTEST_LOCAL_SEVERAL : NB_SYNCTEST_UNREGISTERED;
}

static nb_synctest_cause find_cause(nbi_synctest *self, uint64_t tick) {
    uint64_t hash = nbi_sync_slot_of(self, tick + 1)->hash;
    const pick none = {PICK_NONE, 0};
    uint64_t again = try_tick(self, tick, none);
    for (uint32_t i = 1; i < STEADY_TRY_COUNT; ++i) {
        if (try_tick(self, tick, none) != again) return NB_SYNCTEST_UNSTEADY;
    }
    // As in the first run, with nothing put to what it was: what made the difference is in no piece.
    if (again == hash) return NB_SYNCTEST_UNREGISTERED;
    return find_local(self, tick, hash);
}

// --- telling ---

static const char *cause_text(nb_synctest_cause cause) {
    switch (cause) {
    case NB_SYNCTEST_LOCAL_COLUMN: return "the tick depends on a local column, which is not saved: ";
    case NB_SYNCTEST_LOCAL_TABLE: return "the tick depends on a local table, which is not saved: ";
    case NB_SYNCTEST_LOCAL_PROVIDER: return "the tick depends on a local provider, which is not saved: ";
    case NB_SYNCTEST_LOCAL_SEVERAL: return "the tick depends on several local states, which are not saved";
    case NB_SYNCTEST_UNREGISTERED:
        return "the tick depends on something not registered (a static or heap variable, time, thread order)";
    case NB_SYNCTEST_UNSTEADY:
        return "the tick is not deterministic (a race, time, or addresses; or a variable that is not registered and "
               "changes each time)";
    default: return "";
    }
}

static void tell(nb_synctest_report *report) {
    bool is_told = report->difference.kind != NB_DIFFERENCE_NONE;
    snprintf(report->text, sizeof report->text,
             "after going back %u ticks, tick %llu ended otherwise (here: first, there: again): %s; %s%s",
             (unsigned)report->back_count, (unsigned long long)report->tick,
             is_told ? report->difference.text : "no memory to tell where", cause_text(report->cause), report->culprit);
}

void nbi_sync_find(nbi_synctest *self, uint64_t tick, uint64_t from, uint64_t now) {
    nb_synctest_report *report = &self->report;
    const nbi_copy *first = &nbi_sync_slot_of(self, tick + 1)->state;
    report->tick = tick;
    report->back_count = (uint32_t)(now - from);
    report->again_count = (uint32_t)(tick + 1 - from);
    if (first->size_bytes != 0 && nbi_sync_save(self, &self->scratch))
        nb_states_compare(self->engine->states, first->bytes, first->size_bytes, self->scratch.bytes,
                          self->scratch.size_bytes, &report->difference);
    report->cause = find_cause(self, tick);
    tell(report);
}
