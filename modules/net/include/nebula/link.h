// SPDX-License-Identifier: MIT
#pragma once

// A link that is as bad as it is told to be: messages go in with the time of sending and come out when they have
// arrived, late, out of order, twice or never. For tests, demos and games on one machine. The one rule: time is what
// the caller says, and chance is what the seed says, so a run is the same on every machine.
//
//     nb_link *link = NULL;
//     nb_link_desc desc = {.seed = 7, .conditions = {.latency_ns = 50000000, .loss_ppm = 300000}};
//     if (nb_link_create(&desc, &link) != NB_OK) return 1;
//     nb_link_send(link, 0, "hello", 5);
//     char text[NB_LINK_MESSAGE_BYTES_DEFAULT];
//     size_t size_bytes = 0;
//     while (nb_link_receive(link, 60000000, text, sizeof text, &size_bytes) == NB_OK)
//         printf("%.*s after 60 ms\n", (int)size_bytes, text);
//     nb_link_destroy(link);
//
// One link is one direction; two of them are a connection.

#include "nebula/hooks.h"
#include "nebula/types.h"

// Chances are parts of a million: whole numbers are the same everywhere.
#define NB_LINK_ALWAYS_PPM 1000000u

// Longest latency, jitter and delay of reordering: an hour, later than anything is waited for.
#define NB_LINK_NS_MAX UINT64_C(3600000000000)

// Messages on their way where the desc gives none: four seconds of 60 messages.
#define NB_LINK_MESSAGE_COUNT_DEFAULT 256u
#define NB_LINK_MESSAGE_COUNT_MAX 65536u

// Bytes of one message where the desc gives none: more than a datagram carries without being cut in two.
#define NB_LINK_MESSAGE_BYTES_DEFAULT 2048u
#define NB_LINK_MESSAGE_BYTES_MAX 65536u

// How bad it is now. All zero: messages arrive at once, in order.
typedef struct nb_link_conditions {
    uint64_t latency_ns;    // from sending to arriving, at least; up to NB_LINK_NS_MAX
    uint64_t jitter_ns;     // of each message, 0 to this much more; it alone brings messages out of order
    uint64_t reorder_ns;    // by which a message that is held back comes later
    uint32_t reorder_ppm;   // chance that one is held back
    uint32_t loss_ppm;      // that one never comes
    uint32_t duplicate_ppm; // that one comes twice, each with a jitter of its own
    uint32_t corrupt_ppm;   // that one bit of it is wrong when it comes
    bool is_cut;            // nothing that is sent now arrives; what is on its way does
} nb_link_conditions;

typedef struct nb_link_desc {
    nb_link_conditions conditions; // to begin with
    uint64_t seed;                 // of all chances
    uint32_t stream;               // tells links with one seed apart
    uint32_t message_count_max;    // on their way; more are dropped
    uint32_t message_bytes_max;    // of one message
    size_t bytes_max;              // of all that are on their way; more are dropped; default: count times bytes of one
    nb_hooks hooks;                // zero = defaults
} nb_link_desc;

// sent + duplicated = received + lost + dropped + waiting.
typedef struct nb_link_stats {
    uint64_t sent_count;       // messages that were accepted or dropped
    uint64_t received_count;   // handed out
    uint64_t lost_count;       // by chance, or cut off
    uint64_t dropped_count;    // the queue was full
    uint64_t duplicated_count; // came, or would have come, a second time
    uint64_t reordered_count;  // held back
    uint64_t corrupted_count;  // with a wrong bit
    uint64_t waiting_count;    // on their way
    uint64_t waiting_bytes;    // the same in bytes
    uint64_t sent_bytes;       // in all
} nb_link_stats;

typedef struct nb_link nb_link;

NB_EXTERN_C_BEGIN

// A desc with every default spelled out: a perfect link.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_link_desc nb_link_desc_default(void);

// Creates a link with all the memory it will use. desc may be NULL.
// Thread: any; then one at a time. Owner: the caller, until nb_link_destroy. Fails: NB_ERR_MEMORY, NB_ERR_RANGE,
// NB_ERR_MISUSE.
NB_API nb_result nb_link_create(const nb_link_desc *desc, nb_link **out);

// Ends a link with what is on its way; NULL is fine.
// Thread: the link's. Owner: the link is gone. Fails: never.
NB_API void nb_link_destroy(nb_link *link);

// The weather changes, for what is sent from now on.
// Thread: the link's. Owner: the conditions are copied. Fails: NB_ERR_RANGE (a time or a chance too large: nothing has
// changed), NB_ERR_MISUSE.
NB_API nb_result nb_link_conditions_set(nb_link *link, const nb_link_conditions *conditions);

// The weather now.
// Thread: the link's. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_link_conditions nb_link_conditions_get(const nb_link *link);

// Sends a message at a time. What is lost on its way is NB_OK too: a sender does not know. Empty messages are fine.
// Thread: the link's. Owner: the bytes are copied. Fails: NB_FULL (dropped: too many on their way; counted),
// NB_ERR_RANGE (too large), NB_ERR_MISUSE.
NB_API nb_result nb_link_send(nb_link *link, uint64_t now_ns, const void *bytes, size_t size_bytes);

// Hands out the message that arrived first, of those that have by now; those of the same time in the order of sending.
// Thread: the link's. Owner: the bytes are the caller's. Fails: NB_EMPTY, NB_FULL (larger than capacity_bytes: it
// stays, and *size_bytes is untouched), NB_ERR_MISUSE.
NB_API nb_result nb_link_receive(nb_link *link, uint64_t now_ns, void *bytes, size_t capacity_bytes,
                                 size_t *size_bytes);

// When the next message arrives; UINT64_MAX: none is on its way.
// Thread: the link's. Owner: nothing. Fails: UINT64_MAX, reported, for NULL.
NB_API uint64_t nb_link_next_ns(const nb_link *link);

// The numbers of the link.
// Thread: the link's. Owner: the caller gets a value. Fails: zeros, reported, for NULL.
NB_API nb_link_stats nb_link_stats_get(const nb_link *link);

NB_EXTERN_C_END
