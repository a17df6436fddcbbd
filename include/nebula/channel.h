// SPDX-License-Identifier: MIT
#pragma once

// Channels: bounded queues that carry items by value between threads. The one rule: NB_OK from a send means the item
// will be received or drained, whatever closes the channel; any other result means the sender still has it. A full
// channel drops nothing: results that must arrive get a channel of their own with room for all that can be under way.
//
//     NB_CHANNEL_DEFINE(scores, uint32_t);
//     nb_channel_desc desc = nb_channel_desc_default();
//     desc.name = "scores";
//     desc.kind = NB_CHANNEL_KIND_MPSC;
//     scores channel = {NULL};
//     if (scores_create(&desc, &channel) < 0) return 1;
//     uint32_t score = 7;
//     scores_send(channel, &score, NB_NEVER_NS); // any thread
//     nb_channel_close(channel.base);
//     while (scores_try_recv(channel, &score) == NB_OK) printf("%u\n", (unsigned)score);
//     nb_channel_destroy(channel.base);

#include <string.h>

#include "nebula/atomic.h"
#include "nebula/hooks.h"
#include "nebula/types.h"

// Items a channel holds where the desc gives no number: enough for the results of one frame's tasks.
#define NB_CHANNEL_CAPACITY_DEFAULT ((size_t)256)

// Most items a channel may hold: a count of them fits 32 bits, signed or not, and memory runs out long before.
#define NB_CHANNEL_CAPACITY_MAX ((size_t)1 << 30)

// Longest name in bytes, without the final zero; longer ones are cut. Names are shown to people.
#define NB_CHANNEL_NAME_SIZE_MAX 47

// Who may call at the same time: the first letter pair is the sending end, the second the receiving end. A single end
// belongs to the first thread that uses it (nb_channel_disown passes it on); a library built with assertions refuses
// any other thread with NB_ERR_THREAD. Nothing is corrupted without that check.
typedef enum nb_channel_kind {
    NB_CHANNEL_KIND_DEFAULT = 0, // MPMC
    NB_CHANNEL_KIND_SPSC,        // one sender, one receiver
    NB_CHANNEL_KIND_MPSC,        // any senders, one receiver
    NB_CHANNEL_KIND_MPMC,        // any senders, any receivers
    NB_CHANNEL_KIND_COUNT,
} nb_channel_kind;

typedef struct nb_channel_desc {
    const char *name;       // for logs and reports, copied; default "channel"
    nb_channel_kind kind;   // default MPMC
    size_t capacity;        // items, rounded up to a power of two; default 256
    size_t item_size_bytes; // required; larger things travel as a pointer or a handle
    size_t item_alignment;  // of drained items, a power of two up to NB_ARENA_ALIGNMENT_MAX; default the largest that
                            // divides the size, at most 16
    nb_hooks hooks;         // one allocation at creation, none later
} nb_channel_desc;

// Counters since creation. A snapshot taken while others send and receive is not one moment of all of them.
typedef struct nb_channel_stats {
    uint64_t sent_count;      // items accepted, those being written included
    uint64_t received_count;  // items taken, drained ones included
    uint64_t drained_count;   // the part of received_count that nb_channel_drain took
    uint64_t full_count;      // sends that found no room: refused with NB_FULL, or made to wait
    uint64_t depth;           // items inside now
    uint64_t depth_peak;      // most items inside, as seen by drains, by refused sends and by every 64th send
    uint64_t send_park_count; // times a sender went to sleep
    uint64_t recv_park_count; // times a receiver went to sleep
} nb_channel_stats;

struct nb_arena;

// Each index has two cache lines to itself: x86 fetches lines in pairs.
#define NBI_CHANNEL_LINE (2 * NB_CACHE_LINE)
#if defined(__cplusplus)
#define NBI_CHANNEL_ALIGNED alignas(NBI_CHANNEL_LINE)
#else
#define NBI_CHANNEL_ALIGNED _Alignas(NBI_CHANNEL_LINE)
#endif

// A queue of items. Fields are private; visible only for the inline functions below. More of the object follows.
//
// Positions count in steps of NBI_CHANNEL_STEP and wrap at 2^64; the bits below are flags. `tail` is the position of
// the next send, with NBI_CHANNEL_WAITING while receivers may be parked and NBI_CHANNEL_CLOSED once closed. `head` is
// the position of the next receive, with NBI_CHANNEL_WAITING while senders may be parked. Moving an index is one CAS on
// the word that also holds the flags, so whoever moves it cannot miss a flag set before.
typedef struct nb_channel {
    NBI_CHANNEL_ALIGNED unsigned char *cells; // ring of nbi_channel_cell
    uint64_t index_mask;                      // capacity - 1
    uint64_t fast_mask;      // a send at a position with none of these bits takes the long way; 0: all calls do
    size_t item_size_bytes;  // of one item
    nb_atomic_u32 is_closed; // copy of the flag in tail, so that an idle receiver leaves the senders' line alone
    NBI_CHANNEL_ALIGNED nb_atomic_u64 tail;
    NBI_CHANNEL_ALIGNED nb_atomic_u64 head;
} nb_channel;

// A place in the ring; the item's bytes follow. For the send at position p it is free while sequence == p, holds the
// item while sequence == p + NBI_CHANNEL_HELD, and is free for the next lap at p + capacity steps.
typedef struct nbi_channel_cell {
    nb_atomic_u64 sequence;
} nbi_channel_cell;

#define NBI_CHANNEL_STEP ((uint64_t)4)
#define NBI_CHANNEL_WAITING ((uint64_t)1)
#define NBI_CHANNEL_CLOSED ((uint64_t)2)
#define NBI_CHANNEL_FLAGS (NBI_CHANNEL_WAITING | NBI_CHANNEL_CLOSED)
#define NBI_CHANNEL_HELD ((uint64_t)1)

NB_EXTERN_C_BEGIN

// A desc with every default spelled out. item_size_bytes is left for the caller, and item_alignment stays 0, for it
// follows from the size.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_channel_desc nb_channel_desc_default(void);

// Makes an open, empty channel.
// Thread: any. Owner: the caller, until nb_channel_destroy. Fails: NB_ERR_MEMORY, NB_ERR_MISUSE (NULL, no item size, an
// alignment that is no power of two, an unknown kind), NB_ERR_RANGE.
NB_API nb_result nb_channel_create(const nb_channel_desc *desc, nb_channel **channel);

// Closes the channel and frees it. Items still inside are lost and reported (NB_ITEM_CHANNEL_UNDRAINED). A receiver may
// destroy the channel as soon as it has received what it waited for, or NB_CLOSED: the call that handed the item over
// or closed the channel may still be on its way out, and is waited for. NULL is fine.
// Thread: any, while no other is inside a call or begins one, but for those on their way out. Owner: the channel ends.
// Fails: never.
NB_API void nb_channel_destroy(nb_channel *channel);

// Copies an item in, if there is room now. NB_FULL may also mean that the oldest item is still being copied out.
// Thread: a sender. Owner: the item is copied on NB_OK, else still the caller's. Fails: NB_FULL, NB_CLOSED,
// NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_channel_try_send(nb_channel *channel, const void *item);

// Copies an item out, if there is one now. NB_EMPTY may also mean that the next item is still being copied in.
// NB_CLOSED means that nothing is left and nothing will come.
// Thread: a receiver. Owner: the item is the caller's on NB_OK. Fails: NB_EMPTY, NB_CLOSED, NB_ERR_MISUSE,
// NB_ERR_THREAD.
NB_API nb_result nb_channel_try_recv(nb_channel *channel, void *item);

// Like nb_channel_try_send, but waits for room until deadline_ns of the machine's monotonic clock (nb_clock_now_ns).
// 0 does not wait, NB_NEVER_NS waits for ever. A channel that is closed meanwhile ends the wait.
// Thread: a sender that may block. Owner: the item is copied on NB_OK, else still the caller's. Fails: NB_FULL (only
// with deadline 0), NB_TIMEOUT, NB_CLOSED, NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_channel_send(nb_channel *channel, const void *item, uint64_t deadline_ns);

// Like nb_channel_try_recv, but waits for an item until deadline_ns, as nb_channel_send does.
// Thread: a receiver that may block. Owner: the item is the caller's on NB_OK. Fails: NB_EMPTY (only with deadline 0),
// NB_TIMEOUT, NB_CLOSED, NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_channel_recv(nb_channel *channel, void *item, uint64_t deadline_ns);

// Copies in as many of `count` items as there is room for, at least one on NB_OK; they stay together and in order.
// Thread: a sender. Owner: the first *sent_count items are copied on NB_OK. Fails: NB_FULL, NB_CLOSED, NB_ERR_MISUSE
// (also for count 0), NB_ERR_THREAD.
NB_API nb_result nb_channel_try_send_many(nb_channel *channel, const void *items, size_t count, size_t *sent_count);

// Copies out up to count_max items, at least one on NB_OK.
// Thread: a receiver. Owner: *received_count items are the caller's on NB_OK. Fails: NB_EMPTY, NB_CLOSED,
// NB_ERR_MISUSE (also for count_max 0), NB_ERR_THREAD.
NB_API nb_result nb_channel_try_recv_many(nb_channel *channel, void *items, size_t count_max, size_t *received_count);

// Takes what is inside now, all of it, into one array from the arena. When the arena has no room the items stay in the
// channel. With several receivers the array's memory may be longer than what was left to take.
// Thread: a receiver that owns the arena. Owner: the array is the arena's. Fails: NB_EMPTY, NB_CLOSED, NB_ERR_MEMORY,
// NB_ERR_MISUSE, NB_ERR_THREAD.
NB_API nb_result nb_channel_drain(nb_channel *channel, struct nb_arena *arena, void **items, size_t *count);

// Like nb_channel_drain, but takes count_max items at most.
// Thread: a receiver that owns the arena. Owner: the array is the arena's. Fails: as nb_channel_drain; NB_ERR_MISUSE
// also for count_max 0.
NB_API nb_result nb_channel_drain_max(nb_channel *channel, struct nb_arena *arena, size_t count_max, void **items,
                                      size_t *count);

// Refuses all further sends and wakes everybody. Items sent before can still be received. Closing twice is fine.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_channel_close(nb_channel *channel);

// Whether nb_channel_close was called; items may be left inside.
// Thread: any. Owner: nothing. Fails: true for NULL.
NB_API bool nb_channel_is_closed(const nb_channel *channel);

// Forgets which threads own the single ends; the next sender and the next receiver own them.
// Thread: any, while no other calls. Owner: unchanged. Fails: NB_ERR_MISUSE.
NB_API nb_result nb_channel_disown(nb_channel *channel);

// The name given at creation.
// Thread: any. Owner: the channel's string. Fails: "" for NULL.
NB_API const char *nb_channel_name(const nb_channel *channel);

// How many items it holds: the desc's number, rounded up.
// Thread: any. Owner: nothing. Fails: 0 for NULL.
NB_API size_t nb_channel_capacity(const nb_channel *channel);

// Reads the counters.
// Thread: any. Owner: the caller gets a value. Fails: zeros for NULL.
NB_API nb_channel_stats nb_channel_stats_get(const nb_channel *channel);

// Cells keep their sequence numbers aligned; the item inside is only ever copied, so it needs no alignment of its own.
NB_INLINE size_t nbi_channel_cell_size(size_t item_size_bytes) {
    return sizeof(nbi_channel_cell) + ((item_size_bytes + 7) & ~(size_t)7);
}

NB_INLINE nbi_channel_cell *nbi_channel_cell_at(const nb_channel *channel, uint64_t position, size_t item_size_bytes) {
    size_t index = (size_t)((position / NBI_CHANNEL_STEP) & channel->index_mask);
    return (nbi_channel_cell *)(void *)(channel->cells + index * nbi_channel_cell_size(item_size_bytes));
}

// The way of a send that meets nobody: no flag is up, the cell is free, no other sender is faster. False means that
// nothing was done, and that the long way decides. With a constant size the copy is a few moves instead of a call.
NB_INLINE bool nbi_channel_send_fast(nb_channel *channel, const void *item, size_t item_size_bytes) {
    if (NB_UNLIKELY(channel == NULL || item == NULL)) return false;
    uint64_t tail = nbi_atomic_load_relaxed_u64(&channel->tail);
    if (NB_UNLIKELY((tail & channel->fast_mask) == 0 || (tail & NBI_CHANNEL_FLAGS) != 0)) return false;
    nbi_channel_cell *cell = nbi_channel_cell_at(channel, tail, item_size_bytes);
    // Pairs with the release store of the receiver that has copied the cell's last item out.
    if (NB_UNLIKELY(nbi_atomic_load_acquire_u64(&cell->sequence) != tail)) return false;
    uint64_t position = tail;
    // seq_cst: one half of the pair "claim, or see that the other end parks"; the other is raise_flag in
    // channel_wait.c.
    if (NB_UNLIKELY(!nbi_atomic_compare_exchange_seq_cst_u64(&channel->tail, &tail, tail + NBI_CHANNEL_STEP))) {
        return false;
    }
    memcpy(cell + 1, item, item_size_bytes);
    // Publishes the item; read by the acquire load of the sequence in a receive.
    nbi_atomic_store_release_u64(&cell->sequence, position + NBI_CHANNEL_HELD);
    return true;
}

// The way of a receive that meets nobody; mirrors nbi_channel_send_fast. NB_BUSY means that nothing was done, and that
// the long way decides. NB_EMPTY is answered here: a thread that polls would otherwise pay a call for each look.
NB_INLINE nb_result nbi_channel_recv_fast(nb_channel *channel, void *item, size_t item_size_bytes) {
    if (NB_UNLIKELY(channel == NULL || item == NULL)) return NB_BUSY;
    uint64_t head = nbi_atomic_load_relaxed_u64(&channel->head);
    if (NB_UNLIKELY(channel->fast_mask == 0 || (head & NBI_CHANNEL_FLAGS) != 0)) return NB_BUSY;
    nbi_channel_cell *cell = nbi_channel_cell_at(channel, head, item_size_bytes);
    // Pairs with the release store of the sender that has filled the cell.
    uint64_t sequence = nbi_atomic_load_acquire_u64(&cell->sequence);
    if (sequence != head + NBI_CHANNEL_HELD) {
        bool is_behind = (int64_t)(sequence - head) <= 0; // ahead: another receiver was faster
        return is_behind && nbi_atomic_load_acquire_u32(&channel->is_closed) == 0 ? NB_EMPTY : NB_BUSY;
    }
    uint64_t position = head;
    // seq_cst: as in nbi_channel_send_fast, for senders that park.
    if (NB_UNLIKELY(!nbi_atomic_compare_exchange_seq_cst_u64(&channel->head, &head, head + NBI_CHANNEL_STEP))) {
        return NB_BUSY;
    }
    memcpy(item, cell + 1, item_size_bytes);
    // Frees the cell for the next lap; read by the acquire load of the sequence in a send.
    nbi_atomic_store_release_u64(&cell->sequence, position + (channel->index_mask + 1) * NBI_CHANNEL_STEP);
    return NB_OK;
}

NB_EXTERN_C_END

#if defined(__GNUC__)
#define NBI_CHANNEL_FUNCTION __attribute__((unused)) static inline
#else
#define NBI_CHANNEL_FUNCTION static inline
#endif

// Declares `name`, a channel of `type` by value, and its functions; name.base is the channel for every other call. A
// type is plain data: its bytes are copied. The names inside end in an underscore, so that a type called "item" is not
// hidden by a parameter.
#define NB_CHANNEL_DEFINE(name, type)                                                                          \
    typedef struct name {                                                                                      \
        nb_channel *base;                                                                                      \
    } name;                                                                                                    \
    NBI_CHANNEL_FUNCTION nb_result name##_create(const nb_channel_desc *desc_, name *channel_) {               \
        nb_channel_desc sized_ = desc_ != NULL ? *desc_ : nb_channel_desc_default();                           \
        sized_.item_size_bytes = sizeof(type);                                                                 \
        sized_.item_alignment = NB_ALIGNOF(type);                                                              \
        return nb_channel_create(&sized_, channel_ != NULL ? &channel_->base : NULL);                          \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_try_send(name channel_, const type *item_) {                         \
        bool is_sent_ = nbi_channel_send_fast(channel_.base, item_, sizeof(type));                             \
        return is_sent_ ? NB_OK : nb_channel_try_send(channel_.base, item_);                                   \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_try_recv(name channel_, type *item_) {                               \
        nb_result result_ = nbi_channel_recv_fast(channel_.base, item_, sizeof(type));                         \
        return result_ != NB_BUSY ? result_ : nb_channel_try_recv(channel_.base, item_);                       \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_send(name channel_, const type *item_, uint64_t deadline_ns_) {      \
        bool is_sent_ = nbi_channel_send_fast(channel_.base, item_, sizeof(type));                             \
        return is_sent_ ? NB_OK : nb_channel_send(channel_.base, item_, deadline_ns_);                         \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_recv(name channel_, type *item_, uint64_t deadline_ns_) {            \
        nb_result result_ = nbi_channel_recv_fast(channel_.base, item_, sizeof(type));                         \
        return result_ == NB_OK ? NB_OK : nb_channel_recv(channel_.base, item_, deadline_ns_);                 \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_try_send_many(name channel_, const type *items_, size_t count_,      \
                                                        size_t *sent_count_) {                                 \
        return nb_channel_try_send_many(channel_.base, items_, count_, sent_count_);                           \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_try_recv_many(name channel_, type *items_, size_t count_max_,        \
                                                        size_t *received_count_) {                             \
        return nb_channel_try_recv_many(channel_.base, items_, count_max_, received_count_);                   \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_drain_max(name channel_, struct nb_arena *arena_, size_t count_max_, \
                                                    type **items_, size_t *count_) {                           \
        void *memory_ = NULL;                                                                                  \
        nb_result result_ =                                                                                    \
            nb_channel_drain_max(channel_.base, arena_, count_max_, items_ != NULL ? &memory_ : NULL, count_); \
        if (result_ == NB_OK) *items_ = (type *)memory_;                                                       \
        return result_;                                                                                        \
    }                                                                                                          \
    NBI_CHANNEL_FUNCTION nb_result name##_drain(name channel_, struct nb_arena *arena_, type **items_,         \
                                                size_t *count_) {                                              \
        return name##_drain_max(channel_, arena_, SIZE_MAX, items_, count_);                                   \
    }                                                                                                          \
    NB_STATIC_ASSERT(sizeof(type) > 0, "an item has a size")
