// SPDX-License-Identifier: MIT
#pragma once

// State providers: register your state once, as a struct or as two callbacks, and it can be hashed, saved and loaded;
// with the engine also snapshot, rewound and replayed. The one rule: bytes that mean the same are the same, so padding
// is zero and pointers stay out, or the memory is an image (NB_PROVIDER_IMAGE).
//
//     typedef struct score { uint32_t left, right; } score;
//     static score game;
//     nb_states *states = NULL;
//     if (nb_states_create(NULL, &states) != NB_OK) return 1;
//     nb_provider_desc desc = {.name = "score", .data = &game, .size_bytes = sizeof game};
//     nb_states_add(states, &desc, NULL);
//     uint64_t before = nb_states_hash(states);
//     game.left = 3;
//     printf("%s\n", nb_states_hash(states) != before ? "somebody scored" : "nothing happened");
//     nb_states_destroy(states);

#include "nebula/hooks.h"
#include "nebula/types.h"

// Providers of one registry where the desc gives none; a game has a handful.
#define NB_PROVIDER_COUNT_DEFAULT 64u
#define NB_PROVIDER_COUNT_MAX 1024u

// Longest name in bytes, without the final zero.
#define NB_PROVIDER_NAME_SIZE_MAX 63

// In nb_provider_desc.flags: only this machine has it, so it is neither hashed nor part of what is saved.
#define NB_PROVIDER_LOCAL 1u

// In nb_provider_desc.flags: memory (data, size_bytes) that contains addresses. Its own address, where the program is
// loaded, and the program's build id (Linux: of its file; without one a hash of its code; elsewhere 0) are part of its
// layout: a save of another address or build is refused, and the log has both. So a save of an image loads into another
// run only where both put it at the same address: reserve the memory at a fixed one, and link the program without
// -pie. Addresses of libraries and of the heap are not checked: keep them out, or load them at fixed places too.
#define NB_PROVIDER_IMAGE 2u

// One provider. Zero is null.
typedef struct nb_provider {
    uint64_t value; // private: number and place
} nb_provider;

typedef struct nb_states nb_states;

struct nb_difference; // of compare.h

typedef struct nb_provider_desc {
    const char *name; // unique; copied, up to NB_PROVIDER_NAME_SIZE_MAX bytes. Providers go in the order of their names
    uint32_t flags;   // NB_PROVIDER_*
    // Of what the bytes mean: changes when an old save can no longer be read. 0 = by name and size, or asked for when
    // it is needed.
    uint64_t layout_hash;
    uint64_t (*layout)(void *user); // instead of layout_hash, where that is not known yet; may be NULL
    // Either memory, which is saved and loaded as it is,
    void *data;
    size_t size_bytes;
    // or callbacks. save returns how many bytes it needs, and writes them if they fit; load gets what save wrote, and
    // changes nothing where it fails.
    size_t (*save)(void *user, void *bytes, size_t capacity_bytes);
    nb_result (*load)(void *user, const void *bytes, size_t size_bytes);
    uint64_t (*hash)(void *user); // of the state now, where that is cheaper than saving; NULL = of what save writes
    // Names the place where two saves of this provider differ: *out has the offset and the bytes already; it may say a
    // kind, a table, a column and a row in their place. NULL = the offset will do. See nb_states_compare.
    nb_result (*locate)(void *user, const void *here, size_t here_bytes, const void *there, size_t there_bytes,
                        struct nb_difference *out);
    void *user;
} nb_provider_desc;

typedef struct nb_states_desc {
    uint32_t state_count_max;
    nb_hooks hooks;
} nb_states_desc;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_states_desc nb_states_desc_default(void);

// Creates a registry. desc may be NULL.
// Thread: any; then one at a time. Owner: the caller, until nb_states_destroy. Fails: NB_ERR_MEMORY, NB_ERR_RANGE,
// NB_ERR_MISUSE.
NB_API nb_result nb_states_create(const nb_states_desc *desc, nb_states **out);

// Ends a registry; the providers' memory is their own. NULL is fine.
// Thread: the registry's. Owner: handles end. Fails: does nothing, and logs, inside a callback of a provider.
NB_API void nb_states_destroy(nb_states *states);

// Registers a provider; *out (may be NULL) is its handle.
// Thread: the registry's. Owner: the name is copied; memory and user stay the caller's, until nb_states_remove. Fails:
// NB_FULL, NB_ERR_MISUSE (no name, a name that is taken, neither or both of memory and callbacks), NB_ERR_RANGE,
// NB_BUSY (inside a callback of a provider).
NB_API nb_result nb_states_add(nb_states *states, const nb_provider_desc *desc, nb_provider *out);

// Ends a registration.
// Thread: the registry's. Owner: the handle ends. Fails: NB_ERR_STALE, NB_ERR_MISUSE, NB_BUSY (inside a callback of a
// provider).
NB_API nb_result nb_states_remove(nb_states *states, nb_provider state);

// Providers registered.
// Thread: the registry's. Owner: nothing. Fails: 0 for NULL.
NB_API uint32_t nb_states_count(const nb_states *states);

// The handle and the name of a provider by its place in the order of names; null and "" beyond the last.
// Thread: the registry's. Owner: the registry, while it is registered. Fails: null.
NB_API nb_provider nb_states_at(const nb_states *states, uint32_t index, const char **name);

// The NB_PROVIDER_* flags that a provider was registered with.
// Thread: the registry's. Owner: nothing. Fails: 0 for NULL and for a stale handle, reported.
NB_API uint32_t nb_provider_flags(const nb_states *states, nb_provider state);

// The hash of one provider's state now. The first time, and when it has grown, a provider with callbacks and no hash of
// its own needs memory.
// Thread: the registry's. Owner: nothing. Fails: 0 for a stale handle, and where there is no memory.
NB_API uint64_t nb_provider_hash(nb_states *states, nb_provider state);

// The hash of all that is not local: names and states, in the order of names.
// Thread: the registry's. Owner: nothing. Fails: 0 for NULL, and where there is no memory.
NB_API uint64_t nb_states_hash(nb_states *states);

// The hash of what a save means: names and layouts of all that is not local, in the order of names. A save of another
// layout cannot be loaded.
// Thread: the registry's. Owner: nothing. Fails: 0 for NULL.
NB_API uint64_t nb_states_layout_hash(const nb_states *states);

// Saves all that is not local; *size_bytes is what it needs, also where that does not fit. With assertions (Debug,
// RelWithDebInfo) each save searches up to 64 KiB of each state that is no image, from where the one before ended, for
// addresses: 64-bit words, at multiples of 8 bytes, that point into the program, its libraries or a state in memory.
// The log names the first one of each state once (state_address). It misses addresses of the heap and of stacks, and
// all below 4 GiB, where numbers look alike; a number that happens to be such an address is a false alarm.
// Thread: the registry's. Owner: the bytes are the caller's. Fails: NB_FULL (more than capacity_bytes; bytes may be
// NULL then), NB_ERR_MISUSE.
NB_API nb_result nb_states_save(nb_states *states, void *bytes, size_t capacity_bytes, size_t *size_bytes);

// Whether nb_states_load would take these bytes, as far as that can be known without asking a provider. The log names
// the first state that was saved otherwise.
// Thread: the registry's. Owner: the bytes are read. Fails: NB_ERR_UNSUPPORTED, NB_ERR_RANGE, NB_ERR_MISUSE, as
// nb_states_load.
NB_API nb_result nb_states_check(const nb_states *states, const void *bytes, size_t size_bytes);

// Loads what nb_states_save wrote, with the same providers registered. What is there now is kept aside, on the heap,
// and put back where a provider refuses: first come the providers with callbacks, in the order of their names, then the
// world of an engine, and memory last, so that a refusal undoes as little as possible.
// Thread: the registry's. Owner: unchanged. Fails: NB_ERR_UNSUPPORTED (other providers or layouts, or no save at all),
// NB_ERR_RANGE (cut short, or changed on the way), NB_ERR_MEMORY, what a provider returned; nothing has changed then.
NB_API nb_result nb_states_load(nb_states *states, const void *bytes, size_t size_bytes);

NB_EXTERN_C_END
