// SPDX-License-Identifier: MIT
// Goes back after every tick, simulates again and compares. Each tick's first run leaves its hash, its states and what
// was local before it in a ring of slots.

#include "synctest.h"

#include "../state/state.h"
#include "nebula/hash.h"
#include "nebula/rollback.h"

#include <string.h>

// --- memory ---

bool nbi_copy_reserve(nbi_synctest *self, nbi_copy *copy, size_t size_bytes) {
    copy->size_bytes = 0;
    if (size_bytes <= copy->capacity_bytes) return true;
    const nb_hooks *hooks = &self->engine->hooks;
    // Half as much again: a state that grows by a row a tick is not to need the heap each time.
    size_t capacity_bytes = size_bytes + size_bytes / 2 + 64;
    unsigned char *bytes = nbi_alloc(hooks, capacity_bytes, 16, "nb_engine_frame");
    if (bytes == NULL) return false;
    if (copy->bytes != NULL) nbi_free(hooks, copy->bytes, copy->capacity_bytes);
    self->report.memory_bytes += capacity_bytes - copy->capacity_bytes;
    copy->bytes = bytes;
    copy->capacity_bytes = capacity_bytes;
    return true;
}

static void copy_free(const nb_hooks *hooks, const nbi_copy *copy) {
    if (copy->bytes != NULL) nbi_free(hooks, copy->bytes, copy->capacity_bytes);
}

static uint32_t slot_count(const nb_engine *engine) { return engine->desc.synctest_depth + 1; }

static size_t slots_bytes(const nb_engine *engine) { return slot_count(engine) * sizeof(nbi_sync_slot); }

static void init(nbi_synctest *self, nb_engine *engine) {
    self->engine = engine;
    self->report.depth = engine->desc.synctest_depth;
    self->report.memory_bytes = sizeof *self + slots_bytes(engine);
    memset(self->slots, 0, slots_bytes(engine));
    for (uint32_t i = 0; i < slot_count(engine); ++i) self->slots[i].tick_count = UINT64_MAX;
}

nb_result nbi_synctest_begin(nb_engine *engine) {
    if (engine->desc.synctest_depth == 0 || engine->synctest != NULL) return NB_OK;
    const nb_hooks *hooks = &engine->hooks;
    nbi_synctest *self = nbi_alloc(hooks, sizeof *self, 16, "nb_engine_frame");
    if (self == NULL) return NB_ERR_MEMORY;
    *self = (nbi_synctest){.slots = nbi_alloc(hooks, slots_bytes(engine), 16, "nb_engine_frame")};
    if (self->slots == NULL) {
        nbi_free(hooks, self, sizeof *self);
        return NB_ERR_MEMORY;
    }
    init(self, engine);
    engine->synctest = self;
    return NB_OK;
}

void nbi_synctest_end(nb_engine *engine) {
    nbi_synctest *self = engine->synctest;
    const nb_hooks *hooks = &engine->hooks;
    if (self == NULL) return;
    for (uint32_t i = 0; i < slot_count(engine); ++i) {
        copy_free(hooks, &self->slots[i].state);
        copy_free(hooks, &self->slots[i].local);
        copy_free(hooks, &self->slots[i].program);
    }
    for (uint32_t i = 0; i < 2; ++i) copy_free(hooks, &self->program.tries[i]);
    copy_free(hooks, &self->local_resimulated);
    copy_free(hooks, &self->scratch);
    nbi_free(hooks, self->slots, slots_bytes(engine));
    nbi_free(hooks, self, sizeof *self);
    engine->synctest = NULL;
}

// --- first runs ---

nbi_sync_slot *nbi_sync_slot_of(const nbi_synctest *self, uint64_t tick_count) {
    return &self->slots[tick_count % slot_count(self->engine)];
}

bool nbi_sync_save(nbi_synctest *self, nbi_copy *copy) {
    nb_states *states = self->engine->states;
    size_t size_bytes = 0;
    nb_states_save(states, NULL, 0, &size_bytes);
    bool is_saved = nbi_copy_reserve(self, copy, size_bytes) &&
                    nb_states_save(states, copy->bytes, copy->capacity_bytes, &size_bytes) == NB_OK;
    copy->size_bytes = is_saved ? size_bytes : 0;
    return is_saved;
}

// What decides which handlers run over which memory, beside the state.
static uint64_t setup_of(const nb_engine *engine) {
    const uint64_t parts[] = {engine->order_serial, nbi_states_added_count(engine->states),
                              nb_states_count(engine->states), engine->is_world_joined ? 1 : 0};
    return nb_hash64(parts, sizeof parts, 0);
}

// By no tick: by whoever wrote between ticks, which a rewind forgets. From here on it counts.
static void note_outside(nbi_synctest *self, nbi_sync_slot *slot) {
    nb_engine *engine = self->engine;
    self->tick_first = slot->tick_count;
    if (engine->is_resimulating) return; // a correction, which the history knows of
    nb_history_save(engine->history, slot->tick_count);
    if (self->report.outside_count++ != 0) return;
    nb_difference difference = {.text = "no memory to tell where"};
    if (slot->state.size_bytes != 0 && nbi_sync_save(self, &self->scratch))
        nb_states_compare(engine->states, slot->state.bytes, slot->state.size_bytes, self->scratch.bytes,
                          self->scratch.size_bytes, &difference);
    nbi_log(&engine->hooks, NB_LOG_WARNING, NB_ITEM_SYNCTEST_OUTSIDE, "nb_engine_frame",
            "simulated state has changed before tick %llu, by no tick; further ones are only counted: %s",
            nb_llu(slot->tick_count), difference.text);
}

static void before_first(nbi_synctest *self, uint64_t tick_count) {
    nb_engine *engine = self->engine;
    nbi_sync_slot *slot = nbi_sync_slot_of(self, tick_count);
    uint64_t hash = nb_states_hash(engine->states), setup = setup_of(engine);
    bool is_known = slot->tick_count == tick_count && hash != 0;
    if (is_known && slot->hash != hash) note_outside(self, slot);
    bool is_new = !is_known || self->setup != setup || self->tick_first > tick_count;
    if (is_new) self->tick_first = tick_count;
    self->setup = setup;
    slot->tick_count = tick_count;
    slot->hash = hash;
    nbi_local_keep(self, &slot->local);
    nbi_sync_program_keep(self, &slot->program);
}

static void after_first(nbi_synctest *self, uint64_t tick_count) {
    nbi_sync_slot *slot = nbi_sync_slot_of(self, tick_count);
    slot->hash = self->engine->stats.tick_hash;
    slot->tick_count = slot->hash != 0 ? tick_count : UINT64_MAX; // 0: there was no memory to hash a provider
    nbi_sync_save(self, &slot->state);
}

void nbi_synctest_restart(nb_engine *engine, uint64_t tick_count) {
    if (engine->synctest != NULL) nbi_sync_slot_of(engine->synctest, tick_count)->tick_count = UINT64_MAX;
}

// --- again ---

static bool is_stashed(const nbi_local *piece, uint32_t index, const void *user) {
    (void)index, (void)user;
    return piece->kind == NBI_LOCAL_STASHED;
}

// A tick that ended as before has the rows of before, and gives them the lives they had: references stay true.
static void after_resimulated(nbi_synctest *self, uint64_t tick_count) {
    const nbi_sync_slot *slot = nbi_sync_slot_of(self, tick_count);
    self->has_diverged = slot->hash != self->engine->stats.tick_hash;
    if (self->has_diverged) return;
    ++self->report.checked_count;
    nbi_local_put(self, &slot->local, is_stashed, NULL);
}

void nbi_synctest_before(nb_engine *engine) {
    nbi_synctest *self = engine->synctest;
    if (self == NULL) return;
    if (self->mode == NBI_SYNC_FIRST) before_first(self, engine->tick->index);
    if (self->mode == NBI_SYNC_RESIMULATE) nbi_local_keep(self, &self->local_resimulated);
}

void nbi_synctest_after(nb_engine *engine) {
    nbi_synctest *self = engine->synctest;
    if (self == NULL) return;
    if (self->mode == NBI_SYNC_FIRST) after_first(self, engine->tick->index + 1);
    if (self->mode == NBI_SYNC_RESIMULATE) after_resimulated(self, engine->tick->index + 1);
}

void nbi_sync_simulate(nbi_synctest *self, nbi_sync_mode mode, uint64_t tick) {
    self->mode = mode;
    nbi_tick_resimulate(self->engine, tick, false);
    self->mode = NBI_SYNC_FIRST;
}

// --- back to the first run ---

static bool put_state(nbi_synctest *self, uint64_t tick_count) {
    nb_engine *engine = self->engine;
    const nbi_sync_slot *slot = nbi_sync_slot_of(self, tick_count);
    if (slot->state.size_bytes == 0) return false;
    if (nb_states_load(engine->states, slot->state.bytes, slot->state.size_bytes) != NB_OK) return false;
    nbi_engine_own_load(engine);
    nbi_local_put(self, &slot->local, NULL, NULL);
    return nb_history_save(engine->history, tick_count) >= 0;
}

// Every state behind the tick's beginning, in the history too. False: one could not be put back, and the states are
// those of ticks run again.
static bool put_states(nbi_synctest *self, uint64_t tick, uint64_t now) {
    nb_history_rewind(self->engine->history, tick);
    uint64_t tick_count = tick + 1;
    while (tick_count <= now && put_state(self, tick_count)) ++tick_count;
    if (tick_count > now) return true;
    ++self->report.lost_count;
    nb_history_rewind(self->engine->history, tick_count - 1);
    for (; tick_count <= now; ++tick_count) nbi_sync_simulate(self, NBI_SYNC_TRY, tick_count - 1);
    nbi_sync_slot_of(self, now)->tick_count = UINT64_MAX; // the next tick begins anew
    return false;
}

// --- a pass ---

// What the engine knows of the frame, and is to know afterwards.
typedef struct saved_frame {
    nb_engine_stats stats;
    nb_rollback_stats rollback;
    nb_result failure;
    nb_log_level level_min;
    nb_input_view input, commands;
    const nb_loop_tick *tick;
    uint64_t spawn_count, despawn_count, stale_count; // of the world
} saved_frame;

static saved_frame frame_save(nbi_synctest *self) {
    nb_engine *engine = self->engine;
    saved_frame kept = {.stats = engine->stats,
                        .rollback = engine->rollback,
                        .failure = engine->failure,
                        .level_min = engine->hooks.logger.level_min,
                        .input = engine->tick_input,
                        .commands = engine->tick_commands,
                        .tick = engine->tick};
    if (engine->world != NULL) {
        const nbi_store *world = nbi_store_of(engine->world);
        kept.spawn_count = world->spawn_count;
        kept.despawn_count = world->despawn_count;
        kept.stale_count = world->stale_count;
    }
    engine->hooks.logger.level_min = NB_LOG_OFF; // what handlers are told off for was said when they first did it
    return kept;
}

static void frame_restore(nbi_synctest *self, const saved_frame *kept) {
    nb_engine *engine = self->engine;
    engine->stats = kept->stats;
    engine->rollback = kept->rollback;
    engine->failure = kept->failure;
    engine->hooks.logger.level_min = kept->level_min;
    engine->tick_input = kept->input;
    engine->tick_commands = kept->commands;
    engine->tick = kept->tick;
    if (engine->world != NULL) {
        nbi_store *world = nbi_store_of(engine->world);
        world->spawn_count = kept->spawn_count;
        world->despawn_count = kept->despawn_count;
        world->stale_count = kept->stale_count;
    }
}

// The history keeps so many events and no more; a tick without all of its input is another one.
static bool is_input_kept(const nb_engine *engine, uint64_t now) {
    nb_history_input kept = {{NULL, 0}, {NULL, 0}};
    nb_history_input_get(engine->history, now, &kept);
    return kept.events.count == engine->tick_input.count && kept.commands.count == engine->tick_commands.count;
}

// As far as the desc says, the history reaches and slots are of this past: after a rewind some are of what came then.
static uint64_t begin_of(const nbi_synctest *self, uint64_t now) {
    nb_history_stats stats = nb_history_stats_get(self->engine->history);
    uint64_t depth = self->report.depth, begin = now;
    uint64_t end = nbi_max_u64(now > depth ? now - depth : 0, nbi_max_u64(self->tick_first, stats.tick_oldest));
    if (stats.tick_newest != now || nbi_sync_slot_of(self, now)->tick_count != now) return now;
    while (begin > end && nbi_sync_slot_of(self, begin - 1)->tick_count == begin - 1) --begin;
    return begin;
}

static void check_resimulated(nbi_synctest *self, uint64_t from, uint64_t now) {
    uint64_t tick = from;
    self->has_diverged = false;
    for (; tick < now; ++tick) {
        nbi_sync_simulate(self, NBI_SYNC_RESIMULATE, tick);
        if (self->has_diverged) break;
    }
    if (self->has_diverged) {
        if (self->report.diverged_count++ == 0) nbi_sync_find(self, tick, from, now);
        if (!put_states(self, tick, now)) return;
    }
    nbi_local_put(self, &nbi_sync_slot_of(self, now)->local, NULL, NULL);
}

void nbi_synctest_run(nb_engine *engine, uint64_t now) {
    nbi_synctest *self = engine->synctest;
    if (self == NULL) return;
    if (!is_input_kept(engine, now)) self->tick_first = now;
    uint64_t from = begin_of(self, now), diverged_count = self->report.diverged_count;
    if (from >= now) {
        ++self->report.skipped_count;
        return;
    }
    nbi_local_keep(self, &nbi_sync_slot_of(self, now)->local);
    saved_frame kept = frame_save(self);
    engine->is_resimulating = true;
    if (nb_history_rewind(engine->history, from) == NB_OK)
        check_resimulated(self, from, now);
    else
        ++self->report.skipped_count;
    engine->is_resimulating = false;
    frame_restore(self, &kept);
    if (diverged_count == 0 && self->report.diverged_count != 0)
        nbi_log(&engine->hooks, NB_LOG_ERROR, NB_ITEM_SYNCTEST_DIVERGED, "nb_engine_frame",
                "%s; further ones are only counted", self->report.text);
}

nb_result nb_engine_synctest_get(const nb_engine *engine, nb_synctest_report *out) {
    if (engine == NULL) return NBI_FAIL_NULL("engine");
    if (out == NULL) return NBI_FAIL(&engine->hooks, NB_ITEM_ENGINE_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    if (engine->synctest == NULL) return NB_ERR_UNSUPPORTED;
    *out = engine->synctest->report;
    return NB_OK;
}
