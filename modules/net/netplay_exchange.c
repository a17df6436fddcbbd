// SPDX-License-Identifier: MIT
// Messages of a match: made of what the other side has not acknowledged, and taken only where all of it can be.

#include "netplay.h"

#include <string.h>

// A new sample is an eighth of the average.
#define RTT_PARTS 8

// Most ticks between two players' tick counts as one of them sees them: a window that is guessed, and a delay.
#define AHEAD_MAX (NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX)
#define ADVANTAGE_MAX ((int32_t)AHEAD_MAX * NBI_TICK_PARTS)

// A frame may begin a window and a delay behind the others, run up to a window ahead of them, and then hear of inputs a
// window and a delay beyond its own: those must not replace inputs of ticks that are not confirmed.
NB_STATIC_ASSERT(3 * AHEAD_MAX + NB_NETPLAY_DELAY_MAX <= NB_NETPLAY_KEEP_COUNT, "inputs that are needed are kept");

static bool is_other(const nb_netplay *netplay, uint32_t player) {
    return player < netplay->desc.player_count && player != netplay->desc.local_player;
}

// --- making ---

static void fill_inputs(const nb_netplay *netplay, const nbi_player *to, nbi_message *m) {
    const nbi_player *local = &netplay->players[netplay->desc.local_player];
    uint64_t oldest = local->known - nbi_min_u64(local->known, NBI_MESSAGE_INPUTS_MAX);
    m->input_first = nbi_max_u64(to->input_from, oldest);
    m->input_count = (uint32_t)(local->known - m->input_first);
    for (uint32_t i = 0; i < m->input_count; ++i) m->inputs[i] = local->inputs[(m->input_first + i) & NBI_KEEP_MASK];
}

static void fill_hashes(const nb_netplay *netplay, const nbi_player *to, nbi_message *m) {
    bool has_hashes = netplay->has_hashes && netplay->tick_count - to->hash_from < NB_NETPLAY_KEEP_COUNT;
    uint64_t count = has_hashes ? netplay->confirmed + 1 - to->hash_from : 0;
    m->hash_first = to->hash_from;
    m->hash_count = (uint32_t)nbi_min_u64(count, NBI_MESSAGE_HASHES_MAX);
    for (uint32_t i = 0; i < m->hash_count; ++i)
        m->hashes[i] = (uint32_t)netplay->hashes[(m->hash_first + i) & NBI_KEEP_MASK];
    uint64_t newest = m->hash_first + m->hash_count - 1;
    for (uint32_t i = 0; i < NB_NETPLAY_PLAYER_COUNT_MAX; ++i)
        m->digests[i] = m->hash_count != 0 ? (uint32_t)netplay->players[i].digests[newest & NBI_KEEP_MASK] : 0;
}

static void fill(const nb_netplay *netplay, uint32_t player, nbi_message *m) {
    const nbi_player *to = &netplay->players[player];
    m->from = netplay->desc.local_player, m->to = player, m->player_count = netplay->desc.player_count;
    m->advantage = (int32_t)to->advantage;
    m->tick_count = netplay->tick_count;
    m->echo = to->tick_count;
    m->echo_age =
        (uint32_t)nbi_min_u64(netplay->tick_count - nbi_min_u64(to->tick_seen_at, netplay->tick_count), UINT32_MAX);
    m->input_acked = to->known, m->hash_acked = to->hash_known;
    fill_inputs(netplay, to, m);
    fill_hashes(netplay, to, m);
}

nb_result nb_netplay_send(nb_netplay *netplay, uint32_t player, void *bytes, size_t capacity_bytes,
                          size_t *size_bytes) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (bytes == NULL)
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_MISUSE, "netplay: player %u: bytes is NULL", player);
    if (size_bytes == NULL)
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_MISUSE, "netplay: player %u: size_bytes is NULL", player);
    if (!is_other(netplay, player) || capacity_bytes < NB_NETPLAY_MESSAGE_BYTES_MAX)
        return NBI_NETPLAY_FAIL(
            netplay, player, NB_ERR_RANGE,
            "netplay: player %u with %zu bytes: name one of the other players (of %u, and player %u "
            "plays here), and give %u bytes",
            player, capacity_bytes, netplay->desc.player_count, netplay->desc.local_player,
            NB_NETPLAY_MESSAGE_BYTES_MAX);
    if (netplay->engine == NULL || netplay->stats.has_left) return NB_CLOSED;
    nbi_message *m = &netplay->message;
    nbi_player *to = &netplay->players[player];
    fill(netplay, player, m);
    *size_bytes = nbi_message_write(m, netplay->desc.session, bytes);
    to->input_sent = nbi_max_u64(to->input_sent, m->input_first + m->input_count);
    to->hash_sent = nbi_max_u64(to->hash_sent, m->hash_first + m->hash_count);
    ++netplay->stats.out_count;
    netplay->stats.out_bytes += *size_bytes;
    return NB_OK;
}

// --- taking ---

// False: an input that came before was another one. A hash may change: it is no part of the game, so the first counts.
static bool is_consistent(const nbi_player *from, const nbi_message *m) {
    uint64_t oldest = from->known - nbi_min_u64(from->known, NB_NETPLAY_KEEP_COUNT);
    uint64_t end = nbi_min_u64(m->input_first + m->input_count, from->known);
    for (uint64_t tick = nbi_max_u64(m->input_first, oldest); tick < end; ++tick) {
        const nb_input_event *known = &from->inputs[tick & NBI_KEEP_MASK];
        if (memcmp(known, &m->inputs[tick - m->input_first], sizeof *known) != 0) return false;
    }
    return true;
}

// What no sender can know or have done, or NULL. A sender runs at most a window ahead of the inputs of ours that it
// acknowledges, samples at most a delay ahead of that, and hashes only ticks of which it has all inputs. The echo and
// the acknowledged hashes are no part of it: they repeat what a message in our name said. One forged there would make
// every later message wrong, and neither is needed to play, so what is too much of them is ignored.
static const char *impossible_of(const nb_netplay *netplay, const nbi_player *from, const nbi_message *m) {
    uint64_t base = netplay->base;
    bool is_early = m->tick_count < base || m->input_acked < base || m->hash_acked <= base || m->input_first < base ||
                    m->hash_first <= base;
    if (is_early) return "a tick before the match";
    if (m->input_acked > from->input_sent) return "it acknowledges an input that was not sent";
    if (m->tick_count > m->input_acked + NB_NETPLAY_WINDOW_MAX) return "a tick beyond its window";
    if (m->input_first + m->input_count > m->tick_count + NB_NETPLAY_DELAY_MAX) return "an input beyond its delay";
    if (m->hash_first + m->hash_count > nbi_min_u64(m->tick_count, m->input_acked) + 1)
        return "the hash of a tick that it cannot have confirmed";
    if (m->input_first > from->known || m->hash_first > from->hash_known) return "ticks are left out";
    if (m->advantage > ADVANTAGE_MAX || m->advantage < -ADVANTAGE_MAX) return "it is ahead by more than its window";
    return is_consistent(from, m) ? NULL : "it contradicts an earlier message";
}

static void take_rtt(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    uint64_t ticks = netplay->tick_count + 1 - m->echo;
    if (m->echo <= netplay->base || m->echo > netplay->tick_count || m->echo_age > ticks) return;
    int64_t rtt = (int64_t)nbi_min_u64(ticks - m->echo_age, NB_NETPLAY_KEEP_COUNT) * NBI_TICK_PARTS;
    from->rtt = from->has_rtt ? from->rtt + (rtt - from->rtt) / RTT_PARTS : rtt;
    from->has_rtt = true;
}

static void take_time(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    if (m->tick_count <= from->tick_count) return;
    from->tick_count = m->tick_count;
    from->tick_seen_at = netplay->tick_count + 1; // messages come before a tick and go after it
    from->advantage_theirs = m->advantage;
    take_rtt(netplay, from, m);
}

// Digests are kept as of the newest hash, until a state differs: then they say whether the inputs did.
static void take_digests(nbi_player *from, const nbi_message *m) {
    uint64_t newest = m->hash_first + m->hash_count - 1;
    if (m->hash_count == 0 || newest < from->hash_known || from->differs_at != 0) return;
    memcpy(from->digests_theirs, m->digests, sizeof m->digests);
    from->digests_at = newest;
}

// False: nothing of it is new.
static bool take(const nb_netplay *netplay, nbi_player *from, const nbi_message *m) {
    uint64_t input_end = m->input_first + m->input_count, hash_end = m->hash_first + m->hash_count;
    uint64_t hash_acked = nbi_min_u64(m->hash_acked, from->hash_sent);
    bool is_new = input_end > from->known || hash_end > from->hash_known || m->input_acked > from->acked ||
                  hash_acked > from->hash_acked || m->tick_count > from->tick_count;
    take_digests(from, m);
    for (; from->known < input_end; ++from->known)
        from->inputs[from->known & NBI_KEEP_MASK] = m->inputs[from->known - m->input_first];
    for (; from->hash_known < hash_end; ++from->hash_known)
        from->hashes[from->hash_known & NBI_KEEP_MASK] = m->hashes[from->hash_known - m->hash_first];
    from->acked = nbi_max_u64(from->acked, m->input_acked);
    from->hash_acked = nbi_max_u64(from->hash_acked, hash_acked);
    // What one wrong message acknowledges too much, the next true one takes back.
    from->input_from = m->input_acked, from->hash_from = hash_acked;
    take_time(netplay, from, m);
    return is_new;
}

// Counts a message that is refused. A player's first one is logged, and then each time that there are twice as many.
static nb_result refuse(nb_netplay *netplay, uint32_t player, uint64_t *count, const char *reason) {
    uint64_t refused_count = ++netplay->players[player].refused_count;
    ++*count;
    if ((refused_count & (refused_count - 1)) == 0)
        nb_report(&netplay->hooks, NB_LOG_WARNING, NB_ITEM_NETPLAY_REFUSED, "nb_netplay_receive",
                  "netplay: refused a message from player %u (its %llu. so far): %s", player, nb_llu(refused_count),
                  reason);
    return NB_ERR_RANGE;
}

nb_result nb_netplay_receive(nb_netplay *netplay, uint32_t player, const void *bytes, size_t size_bytes) {
    if (netplay == NULL) return NB_FAIL_NULL("netplay");
    if (bytes == NULL)
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_MISUSE, "netplay: player %u: bytes is NULL", player);
    if (!is_other(netplay, player))
        return NBI_NETPLAY_FAIL(netplay, player, NB_ERR_RANGE,
                                "netplay: player %u is no other player; there are %u, and player %u plays here", player,
                                netplay->desc.player_count, netplay->desc.local_player);
    nbi_message *m = &netplay->message;
    nb_netplay_stats *stats = &netplay->stats;
    if (!nbi_message_read(bytes, size_bytes, netplay->desc.session, m))
        return refuse(netplay, player, &stats->in_damaged_count, "it is damaged, or of another version or match");
    if (m->from != player || m->to != netplay->desc.local_player || m->player_count != netplay->desc.player_count)
        return refuse(netplay, player, &stats->in_foreign_count, "it names another sender, receiver or player count");
    nbi_player *from = &netplay->players[player];
    const char *impossible = impossible_of(netplay, from, m);
    if (impossible != NULL) return refuse(netplay, player, &stats->in_absurd_count, impossible);
    ++stats->in_count;
    if (!take(netplay, from, m)) ++stats->in_stale_count;
    nbi_netplay_loop_release(netplay);
    return NB_OK;
}
