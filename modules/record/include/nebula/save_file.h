// SPDX-License-Identifier: MIT
#pragma once

// Save files: the whole simulated state, compressed and checked. The one rule: at any moment, also after a crash or a
// loss of power, there is the old file or the new one under its name, never a part of one; and a file that is not
// exactly a save of these states changes nothing.
//
//     nb_save_desc desc = nb_save_desc_default();
//     desc.version = 3; // of the game's own rules
//     desc.tick = 600;
//     if (nb_save_write("slot1.nbs", states, &desc) != NB_OK) printf("not saved; the old save is still there\n");
//     nb_save_info info;
//     if (nb_save_read("slot1.nbs", states, NULL, &info) == NB_OK) printf("tick %u\n", (unsigned)info.tick);

#include "nebula/engine.h"
#include "nebula/hooks.h"
#include "nebula/record.h"
#include "nebula/state.h"
#include "nebula/types.h"

// Of the file format that is written, and the oldest one that is read: version 1 has no waiting commands.
#define NB_SAVE_VERSION 2u
#define NB_SAVE_VERSION_OLDEST 1u

// Largest state that is unpacked where the desc gives none: a forged file of some bytes can claim any size.
#define NB_SAVE_STATE_BYTES_DEFAULT ((size_t)256 << 20)

// Bytes of a path, without the final zero: what is added for the temporary file has to fit, too.
#define NB_SAVE_PATH_SIZE_MAX 4000u

typedef struct nb_save_desc {
    uint32_t version;       // the game's own, kept in the file for nb_save_info_read; never compared; 0 is fine
    uint64_t tick;          // kept in the file: which tick is the next, up to NB_TICK_COUNT_MAX
    uint64_t seed;          // kept in the file
    int level;              // of zstd, 1 to 19; 0 = 3
    size_t state_bytes_max; // largest state that is read, whatever a file says, with 32 bytes for each waiting command
                            // and 8 for their number; 0 = NB_SAVE_STATE_BYTES_DEFAULT
    nb_hooks hooks;
} nb_save_desc;

typedef struct nb_save_info {
    uint32_t format; // NB_SAVE_VERSION_OLDEST to NB_SAVE_VERSION
    uint32_t version;
    uint64_t tick;
    uint64_t seed;
    uint64_t layout_hash; // of the states
    uint64_t state_bytes; // before compression, with the waiting commands
    uint64_t file_bytes;
} nb_save_info;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_save_desc nb_save_desc_default(void);

// Saves to a file: writes PATH.tmp, flushes it to the disk, and renames it. One call at a time for each path. desc may
// be NULL.
// Thread: the states'. Owner: unchanged. Fails: NB_ERR_OS, NB_ERR_MEMORY, NB_ERR_RANGE (more than
// NB_RECORD_STATE_BYTES_MAX, a path too long, a tick too large), NB_ERR_MISUSE; what was there is still there. Where
// only the last flush, that of the folder, fails, it is NB_ERR_OS too: the new file is there, but may be the old one
// after a loss of power.
NB_API nb_result nb_save_write(const char *path, nb_states *states, const nb_save_desc *desc);

// Loads the states of a file; commands that waited in a saved engine are left out. desc (hooks and state_bytes_max of
// it) and info may be NULL.
// Thread: the states'. Owner: unchanged. Fails: NB_ERR_OS (it cannot be read), NB_ERR_UNSUPPORTED (no save, of another
// version, or of states with another layout), NB_ERR_RANGE (cut, damaged or forged, too large), NB_ERR_MEMORY,
// NB_ERR_MISUSE, what a provider returned; the states have not changed then, and the log says why in one line.
NB_API nb_result nb_save_read(const char *path, nb_states *states, const nb_save_desc *desc, nb_save_info *info);

// The same with bytes in memory.
// Thread: the states'. Owner: unchanged. Fails: as nb_save_read.
NB_API nb_result nb_save_read_memory(const void *bytes, size_t size_bytes, nb_states *states, const nb_save_desc *desc,
                                     nb_save_info *info);

// What a file says of itself, by its head alone, for a menu of saves.
// Thread: any. Owner: the caller gets values. Fails: as nb_save_read.
NB_API nb_result nb_save_info_read(const char *path, const nb_save_desc *desc, nb_save_info *info);

// Saves an engine: all its states, with its tick, its seed, and the commands that wait for that tick. Events that wait
// in nb_engine_input are of this machine's clock, and not in it.
// Thread: the engine's coordinator, between frames. Owner: unchanged. Fails: NB_BUSY (inside a frame), as
// nb_save_write.
NB_API nb_result nb_save_engine(const char *path, nb_engine *engine, const nb_save_desc *desc);

// Loads an engine as nb_engine_load does: its next tick is that of the save and gets the commands that waited then;
// nothing that waits now reaches it. All of the file is checked before anything changes. A save of another seed is
// refused.
// Thread: the engine's coordinator, between frames. Owner: unchanged. Fails: NB_BUSY (inside a frame, or a callback of
// a module), NB_ERR_UNSUPPORTED (another seed), NB_ERR_RANGE (more commands than the engine has room for), as
// nb_save_read and nb_engine_load; the engine has not changed then.
NB_API nb_result nb_load_engine(const char *path, nb_engine *engine, const nb_save_desc *desc, nb_save_info *info);

NB_EXTERN_C_END
