// SPDX-License-Identifier: MIT
// Messages of a match: made of what the other side has not acknowledged, and taken only where all of it can be.

#include "netplay.h"

#include <string.h>

// A new sample is an eighth of the average.
#define RTT_PARTS 8

// What the other side may be ahead: of what it guesses at most, and of its delay.
#define AHEAD_MAX (NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX)

// An advantage beyond this says nothing more.
#define ADVANTAGE_MAX ((int32_t)NB_NETPLAY_KEEP_COUNT * NBI_TICK_PARTS)

static bool is_other(const nb_netplay *netplay, uint32_t player) {
    return player < netplay->desc.player_count && player != netplay->desc.local_player;
}

// --- making ---

static void fill(const nb_netplay *netplay, uint32_t player, nbi_message *m) {
    const nbi_player *to = &netplay->players[player], *local = &netplay->players[netplay->desc.local_player];
    bool has_hashes = netplay->has_hashes && netplay->confirmed >= to->hash_acked &&
                      netplay->tick_count - to->hash_acked < NB_NETPLAY_KEEP_COUNT;
    uint64_t hash_count = has_hashes ? netplay->confirmed + 1 - to->hash_acked : 0;
    m->from = netplay->desc.local_player, m->to = player, m->player_count = netplay->desc.player_count;
    m->advantage = (int32_t)to->advantage;
    m->tick_count = netplay->tick_count;
    m->echo = to->tick_count;
    m->echo_age =
        (uint32_t)nbi_min_u64(netplay->tick_count - nbi_min_u64(to->tick_seen_at, netplay->tick_count), UINT32_MAX);
    m->input_acked = to->known, m->hash_acked = to->hash_known;
    m->input_first = to->acked, m->hash_first = to->hash_acked;
    m->input_count = (uint32_t)nbi_min_u64(local->known - to->acked, NBI_MESSAGE_INPUTS_MAX);
    m->hash_count = (uint32_t)nbi_min_u64(hash_count, NBI_MESSAGE_HASHES_MAX);
    for (uint32_t i = 0; i < m->input_count; ++i) m->inputs[i] = local->inputs[(to->acked + i) & NBI_KEEP_MASK];
    for (uint32_t i = 0; i < m->hash_count; ++i)
        m->hashes[i] = (uint32_t)netplay->hashes[(to->hash_acked + i) & NBI_KEEP_MASK];
}

nb_result nb_netplay_send(nb_netplay *netplay, uint32_t player, void *bytes, size_t capacity_bytes,
                          size_t *size_bytes) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (bytes == NULL || size_bytes == NULL)
        return NB_FAIL(&netplay->hooks, NB_ITEM_NETPLAY_ARGUMENT, NB_ERR_MISUSE, "no place for a message");
    if (!is_other(netplay, player) || capacity_bytes < NB_NETPLAY_MESSAGE_BYTES_MAX)
        return NB_FAIL(&netplay->hooks, NB_ITEM_NETPLAY_ARGUMENT, NB_ERR_RANGE,
                       "no other player, or less room than a message may need");
    if (netplay->engine == NULL || netplay->stats.has_left) return NB_CLOSED;
    fill(netplay, player, &netplay->message);
    *size_bytes = nbi_message_write(&netplay->message, netplay->desc.session, bytes);
    ++netplay->stats.out_count;
    netplay->stats.out_bytes += *size_bytes;
    return NB_OK;
}

// --- taking ---

// What is there already is the same: nobody changes what he did.
static bool is_consistent(const nbi_player *from, const nbi_message *m) {
    uint64_t oldest = from->known > NB_NETPLAY_KEEP_COUNT ? from->known - NB_NETPLAY_KEEP_COUNT : 0;
    uint64_t end = nbi_min_u64(m->input_first + m->input_count, from->known);
    for (uint64_t tick = nbi_max_u64(m->input_first, oldest); tick < end; ++tick) {
        const nb_input_event *known = &from->inputs[tick & NBI_KEEP_MASK];
        if (memcmp(known, &m->inputs[tick - m->input_first], sizeof *known) != 0) return false;
    }
    return true;
}

// Nobody acknowledges what was not sent, is ahead of what he may guess, or leaves ticks out.
static bool is_possible(const nb_netplay *netplay, const nbi_player *from, const nbi_message *m) {
    uint64_t local = netplay->players[netplay->desc.local_player].known;
    bool has_no_gap = m->input_first <= from->known && m->hash_first <= from->hash_known;
    bool is_acked =
        m->input_acked <= local && m->hash_acked <= netplay->confirmed + 1 && m->echo <= netplay->tick_count;
    uint64_t input_end = m->input_first + m->input_count;
    bool is_near = m->tick_count <= local + AHEAD_MAX && input_end <= local + AHEAD_MAX &&
                   input_end <= netplay->confirmed + NB_NETPLAY_KEEP_COUNT;
    bool has_seen = m->hash_first + m->hash_count <= local + 1;
    return has_no_gap && is_acked && is_near && has_seen && is_consistent(from, m);
}

static void take_rtt(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    uint64_t ticks = netplay->tick_count + 1 - m->echo;
    if (m->echo_age > ticks) return;
    int64_t rtt = (int64_t)nbi_min_u64(ticks - m->echo_age, NB_NETPLAY_KEEP_COUNT) * NBI_TICK_PARTS;
    from->rtt = from->has_rtt ? from->rtt + (rtt - from->rtt) / RTT_PARTS : rtt;
    from->has_rtt = true;
}

static void take_time(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    if (m->tick_count <= from->tick_count) return;
    from->tick_count = m->tick_count;
    from->tick_seen_at = netplay->tick_count + 1; // messages come before a tick and go after it
    bool is_said = m->advantage <= ADVANTAGE_MAX && m->advantage >= -ADVANTAGE_MAX;
    if (is_said) from->advantage_theirs = m->advantage;
    if (m->echo > netplay->base) take_rtt(netplay, from, m);
}

// False: nothing of it is new.
static bool take(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    uint64_t input_end = m->input_first + m->input_count, hash_end = m->hash_first + m->hash_count;
    bool is_new = input_end > from->known || hash_end > from->hash_known || m->input_acked > from->acked ||
                  m->hash_acked > from->hash_acked || m->tick_count > from->tick_count;
    for (; from->known < input_end; ++from->known)
        from->inputs[from->known & NBI_KEEP_MASK] = m->inputs[from->known - m->input_first];
    for (; from->hash_known < hash_end; ++from->hash_known)
        from->hashes[from->hash_known & NBI_KEEP_MASK] = m->hashes[from->hash_known - m->hash_first];
    from->acked = nbi_max_u64(from->acked, m->input_acked);
    from->hash_acked = nbi_max_u64(from->hash_acked, m->hash_acked);
    take_time(netplay, from, m);
    return is_new;
}

nb_result nb_netplay_receive(nb_netplay *netplay, const void *bytes, size_t size_bytes) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (bytes == NULL) return NB_FAIL(&netplay->hooks, NB_ITEM_NETPLAY_ARGUMENT, NB_ERR_MISUSE, "bytes is NULL");
    nbi_message *m = &netplay->message;
    if (!nbi_message_read(bytes, size_bytes, netplay->desc.session, m)) {
        ++netplay->stats.in_damaged_count;
        return NB_ERR_RANGE;
    }
    if (!is_other(netplay, m->from) || m->to != netplay->desc.local_player ||
        m->player_count != netplay->desc.player_count) {
        ++netplay->stats.in_foreign_count;
        return NB_ERR_RANGE;
    }
    nbi_player *from = &netplay->players[m->from];
    if (!is_possible(netplay, from, m)) {
        ++netplay->stats.in_absurd_count;
        return NB_ERR_RANGE;
    }
    ++netplay->stats.in_count;
    if (!take(netplay, from, m)) ++netplay->stats.in_stale_count;
    nbi_netplay_let_go(netplay);
    return NB_OK;
}
