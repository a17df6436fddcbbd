// SPDX-License-Identifier: MIT
#pragma once

// Rollback: what came too late for its tick still counts. In NetworkReconciliation a handler (nb_module_desc.handlers)
// says what a past tick got, or what the state was after it; the engine goes back, puts it right and simulates again up
// to now, within the same frame. The one rule: what a tick handler does beside simulated state (sounds, jobs, messages)
// it does only where context->is_resimulated is false, or it happens twice; effect.h helps.
//
//     static nb_result reconcile(const nb_context *context, void *user) {
//         const nb_input_event *late = (const nb_input_event *)user; // of a player, for tick 100
//         nb_history_input input = {{late, 1}, {NULL, 0}}; // all that tick 100 got, not only what is new
//         nb_result result = nb_context_correct_input(context, 100, &input);
//         return result == NB_ERR_RANGE ? NB_OK : result; // too old: the server will send its state
//     }
//
// An engine keeps the ticks to go back to where desc.keeps_history says so; desc.hashes_ticks hashes those that are
// simulated again, too.

#include "nebula/context.h"
#include "nebula/engine.h"
#include "nebula/history.h"
#include "nebula/types.h"

typedef struct nb_rollback_stats {
    uint64_t correction_count; // accepted, and other than what was there
    uint64_t same_count;       // that were as it had been: nothing was simulated again
    uint64_t refuse_count;     // of ticks that are not kept, too far back or still to come
    uint64_t fail_count;       // that could not be applied: the state is as it was before
    uint64_t lost_count;       // ticks with more input than desc.history keeps: nothing before them is simulated again
    uint64_t rollback_count;   // frames that went back
    uint64_t tick_count;       // ticks simulated again
    uint64_t depth_max;        // most ticks at once
    uint64_t effect_count;     // jobs and log lines that they left out, see effect.h
} nb_rollback_stats;

NB_EXTERN_C_BEGIN

// The past ticks of the engine: T in it is the state after T ticks, with the input of tick T - 1. Saving, rewinding and
// setting inputs is the engine's.
// Thread: the coordinator. Owner: the engine; it begins anew, as another, in the first frame of a world that came late.
// Fails: NULL for NULL, without desc.keeps_history, and before the first frame.
NB_API nb_history *nb_engine_history(nb_engine *engine);

// Says what the tick of this index got: all of it, events and commands, in place of what it had. To add to that, begin
// with what nb_history_input_get of nb_engine_history has for tick + 1. The same as it was changes nothing; else all
// ticks from it on are simulated again when the phase ends.
// Thread: the handler's, in NetworkReconciliation. Owner: events are copied. Fails: NB_ERR_RANGE (not kept, more than
// desc.rollback_count_max back, not run yet, before a state that was sent, before the newest change of who has a tick
// handler, or before a tick whose input did not fit; counted, not reported), NB_FULL (more events than desc.history
// allows), NB_ERR_PERMISSION, NB_ERR_THREAD, NB_ERR_STALE, NB_ERR_MISUSE.
NB_API nb_result nb_context_correct_input(const nb_context *context, uint64_t tick, const nb_history_input *input);

// Says what the state was after so many ticks, up to that of now: bytes of nb_states_save. Of several in one frame the
// newest tick's counts; what comes later about ticks before it is refused. What it makes of the states needs the heap.
// Where it is other than ours all rows of the world are new: local columns are zero, refs are stale.
// Thread: the handler's, in NetworkReconciliation. Owner: the bytes must stay until the phase ends. Fails: as
// nb_context_correct_input. Bytes that do not load are counted, reported, and change nothing.
NB_API nb_result nb_context_correct_state(const nb_context *context, uint64_t tick_count, const void *bytes,
                                          size_t size_bytes);

// Goes back (or forward again) to where so many ticks had run: state and tick index. What was rewound is forgotten with
// the next tick: those that run now get input of their own, not what ticks of their index got before.
//
// Commands that wait for the next tick, and events of nb_engine_input that no tick got, belong to the run that ends
// here: nb_engine_rewind, nb_engine_set_tick and nb_engine_load drop them and count them (stats.command_dropped_count,
// discarded_count of the input). The next frame view still shows such events. A button that the restored state holds
// down gets no release of its own: call nb_buttons_release_all. Time owed, alpha, local columns, tables and providers,
// jobs of many frames and services go on. The game cancels a job whose result must not reach the restored state.
// Thread: the coordinator, between frames. Owner: unchanged. Fails: NB_ERR_RANGE (not kept), NB_BUSY (inside a frame,
// or a callback of a module or provider), NB_ERR_UNSUPPORTED (without history), NB_ERR_THREAD, NB_ERR_MISUSE, as
// nb_history_rewind; NB_ERR_OS as nb_engine_frame.
NB_API nb_result nb_engine_rewind(nb_engine *engine, uint64_t tick_count);

// Says that the host has put other states in place by itself, those after so many ticks: the next tick has that index,
// and the history begins again. Waiting commands and events are dropped as by nb_engine_rewind. A recording ends before
// the next tick, and the engine leaves a match of netplay.
// Thread: the coordinator, between frames. Owner: unchanged. Fails: NB_BUSY (inside a frame, or a callback of a
// module or provider), NB_ERR_RANGE (more than NB_TICK_COUNT_MAX), NB_ERR_THREAD, NB_ERR_MISUSE; NB_ERR_OS as
// nb_engine_frame.
NB_API nb_result nb_engine_set_tick(nb_engine *engine, uint64_t tick_count);

// Goes on from a saved state: `bytes` of nb_states_save after so many ticks, and the commands that waited for the next
// tick. Commands and events that wait here are dropped as by nb_engine_rewind, the history begins again, a recording
// ends before the next tick, and the engine leaves a match of netplay. Rows of the world are new: local columns are
// zero, refs are stale. The heap is needed for as much as the states take.
// Thread: the coordinator, between frames. Owner: bytes and commands are copied; commands may be nb_engine_commands.
// Fails: NB_BUSY (inside a frame, or a callback of a module or provider), NB_ERR_RANGE (more than NB_TICK_COUNT_MAX,
// more commands than desc.command_count_max), NB_ERR_THREAD, NB_ERR_MISUSE, as nb_states_load, NB_ERR_OS as
// nb_engine_frame; nothing has changed then.
NB_API nb_result nb_engine_load(nb_engine *engine, uint64_t tick_count, const void *bytes, size_t size_bytes,
                                nb_input_view commands);

// The commands that wait for the next tick, in the order of staging.
// Thread: the coordinator. Owner: the engine; valid until the next command, tick, rewind or load. Fails: none for NULL.
NB_API nb_input_view nb_engine_commands(const nb_engine *engine);

// The numbers of rollback.
// Thread: the coordinator. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_rollback_stats nb_engine_rollback_stats(const nb_engine *engine);

NB_EXTERN_C_END
