// SPDX-License-Identifier: MIT
#pragma once

// Cancellation tokens: a tree of flags that running work polls and that somebody else raises. Cancelling a token
// cancels everything below it; a child keeps its parents alive and leaves the tree by itself when it is released.
// The one rule: cancellation is cooperative, so work that never asks nb_token_is_cancelled never stops.
//
//     nb_token *planet = NULL, *chunk = NULL;
//     nb_token_desc desc = nb_token_desc_default();
//     desc.label = "planet";
//     if (nb_token_create(&desc, &planet) == NB_OK && nb_token_child(planet, "chunk", &chunk) == NB_OK) {
//         for (int layer = 0; layer < 32 && !nb_token_is_cancelled(chunk); ++layer) {
//             if (layer == 8) nb_token_cancel(planet, NB_CANCEL_STALE, 0, NULL);
//         }
//     }
//     nb_token_release(chunk);
//     nb_token_release(planet);

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Longest label in bytes, without the final zero: labels are shown to people, and a path is made of several.
#define NB_TOKEN_LABEL_SIZE_MAX 255

// Most tokens one linked token can watch: beyond it a common parent is the better tree.
#define NB_TOKEN_SOURCE_COUNT_MAX 1024

// One cancellation flag. Only the word that nb_token_is_cancelled reads is visible; the rest of the object follows it.
typedef struct nb_token {
    nb_atomic_u32 state; // private: bit 0 is the flag
} nb_token;

// Why a token was cancelled.
typedef enum nb_cancel_cause {
    NB_CANCEL_NONE = 0,       // not cancelled; as an argument: NB_CANCEL_REQUESTED
    NB_CANCEL_REQUESTED,      // somebody asked
    NB_CANCEL_STALE,          // the result is no longer wanted: the camera moved, the chunk was unloaded
    NB_CANCEL_FAILED,         // work that belongs together has failed elsewhere
    NB_CANCEL_SHUTDOWN,       // the program ends
    NB_CANCEL_DEADLINE_TIME,  // nb_token_expire was called with a time at or past the deadline
    NB_CANCEL_DEADLINE_FRAME, // nb_token_expire was called with a frame at or past the deadline
    NB_CANCEL_COUNT,
} nb_cancel_cause;

// What the first cancel wrote; later ones change nothing.
typedef struct nb_cancel_reason {
    nb_cancel_cause cause;
    uint32_t code; // the caller's own number, 0 for deadlines
} nb_cancel_reason;

// What one call has stopped. A token or task is counted by exactly one of all calls that race for it.
typedef struct nb_cancel_counts {
    uint64_t token_count;        // tokens newly cancelled, linked ones included
    uint64_t task_queued_count;  // tasks of theirs that had not started, and now never do
    uint64_t task_running_count; // tasks of theirs that were running, and stop at their next check
} nb_cancel_counts;

typedef struct nb_token_desc {
    const char *label; // copied, at most NB_TOKEN_LABEL_SIZE_MAX bytes; NULL = "token"
    nb_token *parent;  // NULL = the root of a new tree
    uint64_t key;      // what the token stands for, such as a chunk's id: for nb_token_cancel_key and predicates
    nb_hooks hooks;    // for a root; a child uses its root's. Zero = defaults
} nb_token_desc;

// A function to call when a token is cancelled; the caller's storage, zeroed before its first use.
typedef struct nb_token_callback {
    void (*run)(void *user, nb_token *token); // private from here on
    void *user;
    nb_token *token;                // held while registered
    struct nb_token_callback *next; // next on the same token
    struct nb_token_callback **at;  // the pointer that points here
    nb_atomic_u32 state;            // idle, listed, running, running and waited for
    uint64_t thread_id;             // who runs it
    bool *is_gone;                  // set by the callback when it unregisters itself
    void *owner;                    // of the module in whose call it was registered
} nb_token_callback;

NB_EXTERN_C_BEGIN

// The defaults, spelled out.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_token_desc nb_token_desc_default(void);

// Creates a token: the root of a new tree, or a child of desc->parent, which is born cancelled under a cancelled
// parent. desc may be NULL. A tree has one lock: trees that share nothing do not contend.
// Thread: any. Owner: the caller, one handle, until nb_token_release. Fails: NB_ERR_MEMORY, NB_ERR_RANGE (label),
// NB_ERR_MISUSE, NB_ERR_STALE (parent).
NB_API nb_result nb_token_create(const nb_token_desc *desc, nb_token **out);

// The same, already cancelled.
// Thread: any. Owner: the caller, one handle, until nb_token_release. Fails: as nb_token_create; NB_ERR_MISUSE also for
// a cause outside the enum.
NB_API nb_result nb_token_create_cancelled(const nb_token_desc *desc, nb_cancel_cause cause, uint32_t code,
                                           nb_token **out);

// The same, linked: cancelled as soon as any of `sources` is, with that one's reason. It keeps its sources alive, not
// they it, and they may be of any tree. It is the root of its own tree, so desc->parent must be NULL, and its own
// deadlines need an nb_token_expire of its own; a deadline on a source needs nothing.
// Thread: any. Owner: the caller, one handle, until nb_token_release. Fails: as nb_token_create; NB_ERR_RANGE
// (source_count is 0 or over NB_TOKEN_SOURCE_COUNT_MAX).
NB_API nb_result nb_token_create_any(const nb_token_desc *desc, nb_token *const *sources, uint32_t source_count,
                                     nb_token **out);

// Creates a child with a label; NULL = "token". Its root recycles tokens with labels under 40 bytes, so short-lived
// children cost no heap call.
// Thread: any. Owner: the caller, one handle, until nb_token_release. Fails: as nb_token_create.
NB_API nb_result nb_token_child(nb_token *parent, const char *label, nb_token **out);

// Takes one more handle and returns the same pointer.
// Thread: any that has a handle. Owner: the caller, until nb_token_release. Fails: NULL for NULL or a stale token.
NB_API nb_token *nb_token_retain(nb_token *token);

// Gives a handle back. The last one takes the token out of its tree at once, together with every parent that only it
// kept alive; with children left, the token stays until they go. NULL is fine.
// Thread: any. Owner: the handle is gone. Fails: logged, for a token released too often (found while its tree lives,
// unless the memory is in use again).
NB_API void nb_token_release(nb_token *token);

// True once the token is cancelled, for ever. One relaxed load: enough to stop, but what the canceller wrote before is
// visible only after nb_token_reason. NULL is a token that is never cancelled.
// Thread: any. Owner: unchanged. Fails: never.
NB_INLINE bool nb_token_is_cancelled(const nb_token *token) {
    // A choice between two addresses moves out of the caller's loop, where a test for NULL would double its cost.
    static const nb_token never = {{0}};
    const nb_token *source = token != NULL ? token : &never;
    return (nbi_atomic_load_relaxed_u32(&source->state) & 1u) != 0;
}

// Why the token was cancelled; the cause is NB_CANCEL_NONE while it is not. Whatever the winning canceller wrote before
// its call is visible after this.
// Thread: any. Owner: the caller gets a value. Fails: never; NULL is not cancelled.
NB_API nb_cancel_reason nb_token_reason(const nb_token *token);

// The name of a cause, such as "stale"; "unknown" for a value outside the enum.
// Thread: any. Owner: a static string. Fails: never.
NB_API const char *nb_cancel_cause_name(nb_cancel_cause cause);

// The token's label.
// Thread: any. Owner: the token, while a handle is held. Fails: "" for NULL or a stale token.
NB_API const char *nb_token_label(const nb_token *token);

// The key the token was created with.
// Thread: any. Owner: the caller gets a value. Fails: 0 for NULL or a stale token.
NB_API uint64_t nb_token_key(const nb_token *token);

// Writes the labels from the root down, such as "root/planet/face3/chunkA", cut to size_bytes with the final zero, and
// returns the whole length. A buffer of 0 bytes may be NULL.
// Thread: any. Owner: the buffer stays the caller's. Fails: 0 and "" for NULL or a stale token.
NB_API size_t nb_token_path(const nb_token *token, char *buffer, size_t size_bytes);

// How many direct children are alive, cancelled or not. A linked token is no child of its sources.
// Thread: any. Owner: the caller gets a value. Fails: 0 for NULL or a stale token.
NB_API uint32_t nb_token_child_count(const nb_token *token);

// Gives the tree's recycled memory back to the heap and returns nb_token_child_count. Released children are gone
// without it.
// Thread: any. Owner: unchanged. Fails: 0 for NULL or a stale token.
NB_API uint32_t nb_token_prune(nb_token *token);

// Cancels the token and everything below it, linked tokens too. Only the first call has an effect. When any call
// returns, every descendant reads cancelled, whoever won: cancels of one tree take turns. A child created meanwhile is
// born cancelled. A raised shield is the one exception. Callbacks run in the winner's call, after the walk, and
// outside all locks; a losing call does not wait for them. The tree's lock is held for at most 2048 tokens at a time.
// counts may be NULL; all zero means that it was cancelled before.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_cancel(nb_token *token, nb_cancel_cause cause, uint32_t code, nb_cancel_counts *counts);

// Cancels the direct children for which `match` says true; cancelled ones are not offered, nor are linked tokens.
// match runs outside all locks and may use any token; children created meanwhile are not offered.
// Thread: any. Owner: the child is borrowed by match. Fails: NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_cancel_children(nb_token *parent, bool (*match)(void *user, nb_token *child), void *user,
                                          nb_cancel_cause cause, uint32_t code, nb_cancel_counts *counts);

// Cancels the direct children created with this key.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_cancel_key(nb_token *parent, uint64_t key, nb_cancel_cause cause, uint32_t code,
                                     nb_cancel_counts *counts);

// Sets the moments at which nb_token_expire cancels the token: a time of the caller's clock, a frame number, or both;
// 0 = none. A second call replaces the first. When a tree's list of deadlines is full it is copied into one twice as
// long, 16 bytes a deadline, under the tree's lock.
// Thread: any. Owner: unchanged. Fails: NB_CANCELLED (it is, or its old deadline has just been found due),
// NB_ERR_MEMORY, NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_set_deadline(nb_token *token, uint64_t deadline_ns, uint64_t deadline_frame);

// Cancels every token of the whole tree whose deadline is at or before now_ns or frame; `token` may be any token of
// the tree. Costs two comparisons when nothing is due, however many deadlines there are. counts may be NULL.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_expire(nb_token *token, uint64_t now_ns, uint64_t frame, nb_cancel_counts *counts);

// Has `run` called once when the token is cancelled, on the canceller's thread. On a cancelled token it is called at
// once, before this returns, and the callback is not registered. run may use any token, and may unregister itself.
// Thread: any. Owner: *callback is the library's until it is unregistered; it keeps the token alive. Fails:
// NB_CANCELLED (run was called), NB_ERR_MISUSE (NULL, or registered already), NB_ERR_STALE, NB_CLOSED (in the on_detach
// of a module that was replaced).
NB_API nb_result nb_token_callback_register(nb_token *token, nb_token_callback *callback,
                                            void (*run)(void *user, nb_token *token), void *user);

// Ends a registration; needed after every NB_OK, also when run was called. When it returns, run is not running on
// another thread and will not be called any more, so *callback may be freed: inside its own run too. A callback that is
// not registered is fine.
// Thread: any, but one at a time for a callback. Owner: *callback is the caller's again. Fails: NB_ERR_MISUSE (NULL).
NB_API nb_result nb_token_callback_unregister(nb_token_callback *callback);

// Sleeps until the token is cancelled or the absolute time of the OS's monotonic clock (Linux: CLOCK_MONOTONIC) has
// passed. 0 only looks, NB_NEVER_NS waits for ever. NB_OK means cancelled.
// Thread: any that may block. Owner: unchanged. Fails: NB_TIMEOUT, NB_ERR_MISUSE, NB_ERR_STALE.
NB_API nb_result nb_token_wait(nb_token *token, uint64_t deadline_ns);

// Opens an uncancellable section: until its end, cancelling the token's parents or sources does not reach it or its
// children. Cancelling the token itself still does, so work shields a child of its own token. Sections nest.
// Thread: any. Owner: unchanged. Fails: NB_CANCELLED (too late, no section was opened), NB_ERR_MISUSE,
// NB_ERR_STALE.
NB_API nb_result nb_token_shield_begin(nb_token *token);

// Closes a section. The last one to close passes on what was held back; counts may be NULL.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE (also when no section is open), NB_ERR_STALE.
NB_API nb_result nb_token_shield_end(nb_token *token, nb_cancel_counts *counts);

// Counts one queued task under the token, so that a cancel can say what it stopped. For schedulers and job systems.
// NULL tokens count nothing, here and below.
// Thread: any. Owner: unchanged. Fails: NB_CANCELLED (do not queue it; not counted), NB_ERR_RANGE (2^30 tasks),
// NB_ERR_STALE.
NB_API nb_result nb_token_task_enter(nb_token *token);

// Turns a queued task into a running one. On NB_CANCELLED the cancel counted it as queued: it must not run, and it is
// no longer counted here.
// Thread: any. Owner: unchanged. Fails: NB_CANCELLED, NB_ERR_MISUSE (no task is queued), NB_ERR_STALE.
NB_API nb_result nb_token_task_start(nb_token *token);

// Ends a running task.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE (no task is running), NB_ERR_STALE.
NB_API nb_result nb_token_task_leave(nb_token *token);

// Takes a queued task back, unstarted.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE (no task is queued), NB_ERR_STALE.
NB_API nb_result nb_token_task_withdraw(nb_token *token);

NB_EXTERN_C_END
