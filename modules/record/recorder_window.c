// SPDX-License-Identifier: MIT
// The newest ticks of an engine that can go back: they wait, for a correction may still change what they got, and are
// written when none can any more. A key state among them waits with its tick, and is taken anew where that is simulated
// again.

#include "recorder.h"

#include "nebula/state.h"
#include "tick_hashes.h"

#include <string.h>

// --- cells ---

static unsigned char *cell_of(const nbi_window *window, uint64_t tick) {
    return window->memory + tick % window->limit * window->cell_bytes;
}

// The largest tick that a history keeps: one that is larger cannot be gone back behind, and does not wait.
static size_t cell_bytes_of(const nb_history_desc *history, uint32_t hash_count) {
    uint32_t events = history->event_count_max != 0 ? history->event_count_max : NB_HISTORY_INPUT_COUNT_DEFAULT;
    uint32_t commands = history->command_count_max != 0 ? history->command_count_max : NB_HISTORY_INPUT_COUNT_DEFAULT;
    return NBI_TICK_BYTES + ((size_t)events + commands) * NBI_EVENT_BYTES + (size_t)hash_count * NBI_HASH_BYTES;
}

nb_result nbi_window_create(nb_recorder *recorder, const nb_engine_desc *engine, uint32_t hash_count) {
    nbi_window *window = &recorder->window;
    if (!engine->keeps_history) return NB_OK;
    window->limit = engine->rollback_count_max;
    window->cell_bytes = cell_bytes_of(&engine->history, hash_count);
    window->memory =
        nb_hooks_alloc(&recorder->hooks, window->limit * window->cell_bytes, NB_CACHE_LINE, "nb_recorder_attach");
    return window->memory != NULL ? NB_OK : NB_ERR_MEMORY;
}

void nbi_window_end(nb_recorder *recorder) {
    nb_hooks_free(&recorder->hooks, recorder->window.memory, recorder->window.limit * recorder->window.cell_bytes);
}

// --- key states ---

// NB_BUSY: the writer has two already.
static nb_result save_key(nb_recorder *recorder) {
    nb_states *states = nb_engine_states(recorder->engine);
    nbi_window *window = &recorder->window;
    nb_result result;
    size_t size_bytes = 0;
    window->key = nbi_recorder_key_begin(recorder, 1, &result);
    if (window->key == NULL) return result;
    result = nb_states_save(states, window->key->bytes, window->key->capacity_bytes, &size_bytes);
    if (result == NB_FULL) {
        window->key = nbi_recorder_key_begin(recorder, size_bytes, &result);
        if (window->key == NULL) return result;
        result = nb_states_save(states, window->key->bytes, window->key->capacity_bytes, &size_bytes);
    }
    window->key_bytes = size_bytes;
    if (result != NB_OK) window->key = NULL;
    return result;
}

// The state of now, before `tick`.
static void key_if_due(nb_recorder *recorder, uint64_t tick) {
    nbi_window *window = &recorder->window;
    if (tick < recorder->next_key_tick || window->key != NULL || recorder->stats.stop != NB_RECORD_STOP_NONE) return;
    if (save_key(recorder) == NB_BUSY) {
        ++recorder->stats.key_late_count;
        return;
    }
    window->key_tick = tick;
    uint64_t step = recorder->desc.key_ticks;
    recorder->next_key_tick = tick > UINT64_MAX - step ? UINT64_MAX : tick + step;
}

// Hands the key over where all ticks before it are written.
static void key_write(nb_recorder *recorder, uint64_t written_tick) {
    nbi_window *window = &recorder->window;
    if (window->key == NULL || window->key_tick != written_tick) return;
    nbi_recorder_key_end(recorder, window->key, window->key_tick, window->key_bytes);
    window->key = NULL;
}

// --- ticks ---

static void write_oldest(nb_recorder *recorder) {
    nbi_window *window = &recorder->window;
    nbi_recorder_push_cell(recorder, window->first, cell_of(window, window->first));
    ++window->first;
    --window->count;
    key_write(recorder, window->first);
}

void nbi_window_write(nb_recorder *recorder) {
    while (recorder->window.count > 0) write_oldest(recorder);
}

static nb_record_tick tick_of(nb_recorder *recorder, const nb_tick_view *view) {
    nb_record_tick tick = {
        .index = view->tick->index, .input = view->input, .commands = view->commands, .hash = view->hash};
    if (recorder->hashes == NULL) return tick;
    tick.hashes = recorder->hashes;
    tick.hash_count = nbi_hashes_take(nb_engine_states(recorder->engine), recorder->world, recorder->hashes);
    return tick;
}

// A recording is one run: where another begins it ends. What waits cannot change any more, and is written.
static void end_before(nb_recorder *recorder, uint64_t index) {
    nbi_window_write(recorder);
    nbi_recorder_jump(recorder, index);
}

void nbi_window_begin(nb_recorder *recorder, const nb_tick_view *view) {
    uint64_t index = view->tick->index;
    bool has_begun = recorder->has_tick || recorder->window.count != 0 || recorder->window.key != NULL;
    if (has_begun && view->is_new_run) end_before(recorder, index);
    if (has_begun) return;
    key_if_due(recorder, index);
    key_write(recorder, index);
}

// Time was turned back to before `tick`: what waits from there on is not to be.
static void cut(nb_recorder *recorder, uint64_t tick) {
    nbi_window *window = &recorder->window;
    if (window->count > 0 && tick < window->first + window->count)
        window->count = tick > window->first ? (uint32_t)(tick - window->first) : 0;
    if (window->key == NULL || window->key_tick <= tick) return;
    window->key = NULL;
    recorder->next_key_tick = window->key_tick;
}

void nbi_window_add(nb_recorder *recorder, const nb_tick_view *view) {
    nbi_window *window = &recorder->window;
    uint64_t index = view->tick->index;
    if (recorder->stats.stop != NB_RECORD_STOP_NONE) {
        ++recorder->stats.lost_count;
        return;
    }
    cut(recorder, index);
    nb_record_tick tick = tick_of(recorder, view);
    if (recorder->has_tick && index < recorder->next_tick) {
        nbi_recorder_repeat(recorder, &tick);
        return;
    }
    size_t size_bytes = nbi_tick_size(&tick);
    if (window->limit == 0 || size_bytes > window->cell_bytes) {
        nbi_window_write(recorder);
        nb_recorder_push(recorder, &tick);
    } else {
        if (window->count == window->limit) write_oldest(recorder);
        if (window->count++ == 0) window->first = index;
        nbi_tick_write(&tick, cell_of(window, index));
    }
    key_if_due(recorder, index + 1);
    if (window->count == 0) key_write(recorder, index + 1);
}

void nbi_window_change(nb_recorder *recorder, const nb_tick_view *view) {
    nbi_window *window = &recorder->window;
    uint64_t index = view->tick->index;
    bool is_waiting = window->count > 0 && index >= window->first && index - window->first < window->count;
    if (!is_waiting) return;
    nb_record_tick tick = tick_of(recorder, view);
    nbi_tick_write(&tick, cell_of(window, index));
    if (window->key != NULL && window->key_tick == index + 1 && save_key(recorder) != NB_OK) window->key = NULL;
}
