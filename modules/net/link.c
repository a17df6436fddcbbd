// SPDX-License-Identifier: MIT
// A virtual link: a set of slots, each with a message and the time at which it arrives.

#include "nebula/link.h"

#include "nebula/hash.h"
#include "nebula/random.h"
#include "nebula/report.h"

#include <string.h>

// What is drawn for a message; the number of the message takes the place of the tick.
typedef enum chance {
    CHANCE_LOSS,
    CHANCE_DUPLICATE,
    CHANCE_JITTER,        // of the first copy,
    CHANCE_JITTER_SECOND, // and of the second
    CHANCE_REORDER,
    CHANCE_REORDER_SECOND,
    CHANCE_CORRUPT,
    CHANCE_CORRUPT_SECOND,
    CHANCE_BIT,
    CHANCE_BIT_SECOND,
} chance;

typedef struct packet {
    uint64_t arrive_ns;
    uint64_t order; // of sending, copies too
    uint32_t slot;  // of its bytes
    uint32_t size_bytes;
} packet;

struct nb_link {
    nb_link_desc desc; // resolved
    nb_hooks hooks;
    nb_throttle throttle; // of mistakes that frames repeat
    nb_link_stats stats;
    uint64_t order;
    packet *packets; // the first waiting_count are on their way, in no order; the slots of the others are free
    unsigned char *bytes;
    size_t memory_bytes;
};

nb_link_desc nb_link_desc_default(void) {
    return (nb_link_desc){.message_count_max = NB_LINK_MESSAGE_COUNT_DEFAULT,
                          .message_bytes_max = NB_LINK_MESSAGE_BYTES_DEFAULT,
                          .bytes_max = (size_t)NB_LINK_MESSAGE_COUNT_DEFAULT * NB_LINK_MESSAGE_BYTES_DEFAULT,
                          .hooks = nb_hooks_default()};
}

// A link is named by its stream.
static nb_result fail(nb_link *link, nb_result result, const char *function, const char *problem) {
    return nb_report_throttled(&link->hooks, &link->throttle, nb_hash64(problem, strlen(problem), 0), true,
                               NB_ITEM_LINK_ARGUMENT, result, function, "link of stream %u: %s", link->desc.stream,
                               problem);
}

// --- beginning and end ---

// The first field that is over its limit, or NULL.
static const char *impossible_of(const nb_link_conditions *c) {
    if (c->latency_ns > NB_LINK_NS_MAX) return "latency_ns is over NB_LINK_NS_MAX";
    if (c->jitter_ns > NB_LINK_NS_MAX) return "jitter_ns is over NB_LINK_NS_MAX";
    if (c->reorder_ns > NB_LINK_NS_MAX) return "reorder_ns is over NB_LINK_NS_MAX";
    if (c->reorder_ppm > NB_LINK_ALWAYS_PPM) return "reorder_ppm is over NB_LINK_ALWAYS_PPM";
    if (c->loss_ppm > NB_LINK_ALWAYS_PPM) return "loss_ppm is over NB_LINK_ALWAYS_PPM";
    if (c->duplicate_ppm > NB_LINK_ALWAYS_PPM) return "duplicate_ppm is over NB_LINK_ALWAYS_PPM";
    return c->corrupt_ppm > NB_LINK_ALWAYS_PPM ? "corrupt_ppm is over NB_LINK_ALWAYS_PPM" : NULL;
}

static nb_link_desc resolve(const nb_link_desc *desc) {
    nb_link_desc resolved = desc != NULL ? *desc : nb_link_desc_default();
    if (resolved.message_count_max == 0) resolved.message_count_max = NB_LINK_MESSAGE_COUNT_DEFAULT;
    if (resolved.message_bytes_max == 0) resolved.message_bytes_max = NB_LINK_MESSAGE_BYTES_DEFAULT;
    if (resolved.bytes_max == 0) resolved.bytes_max = (size_t)resolved.message_count_max * resolved.message_bytes_max;
    resolved.hooks = nb_hooks_resolve(&resolved.hooks);
    return resolved;
}

nb_result nb_link_create(const nb_link_desc *desc, nb_link **out) {
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_link_desc d = resolve(desc);
    const char *problem = impossible_of(&d.conditions);
    if (d.message_count_max > NB_LINK_MESSAGE_COUNT_MAX)
        problem = "message_count_max is over NB_LINK_MESSAGE_COUNT_MAX";
    if (d.message_bytes_max > NB_LINK_MESSAGE_BYTES_MAX)
        problem = "message_bytes_max is over NB_LINK_MESSAGE_BYTES_MAX";
    if (problem != NULL)
        return NB_FAIL(&d.hooks, NB_ITEM_LINK_ARGUMENT, NB_ERR_RANGE, "nb_link_desc of stream %u: %s", d.stream,
                       problem);
    size_t packets_bytes = d.message_count_max * sizeof(packet);
    size_t memory_bytes = sizeof(nb_link) + packets_bytes + (size_t)d.message_count_max * d.message_bytes_max;
    nb_link *link = nb_hooks_alloc(&d.hooks, memory_bytes, NB_CACHE_LINE, __func__);
    if (link == NULL) return NB_ERR_MEMORY;
    *link = (nb_link){.desc = d, .hooks = d.hooks, .memory_bytes = memory_bytes};
    link->packets = (packet *)(link + 1);
    link->bytes = (unsigned char *)link->packets + packets_bytes;
    for (uint32_t i = 0; i < d.message_count_max; ++i) link->packets[i] = (packet){.slot = i};
    *out = link;
    return NB_OK;
}

void nb_link_destroy(nb_link *link) {
    if (link == NULL) return;
    nb_hooks hooks = link->hooks;
    nb_hooks_free(&hooks, link, link->memory_bytes);
}

nb_result nb_link_conditions_set(nb_link *link, const nb_link_conditions *conditions) {
    if (link == NULL) return NB_FAIL_NULL("link");
    if (conditions == NULL) return fail(link, NB_ERR_MISUSE, __func__, "conditions is NULL");
    const char *problem = impossible_of(conditions);
    if (problem != NULL) return fail(link, NB_ERR_RANGE, __func__, problem);
    link->desc.conditions = *conditions;
    return NB_OK;
}

nb_link_conditions nb_link_conditions_get(const nb_link *link) {
    if (link == NULL) NB_FAIL_NULL("link");
    return link != NULL ? link->desc.conditions : (nb_link_conditions){0};
}

// --- sending ---

static bool happens(nb_random random, chance which, uint32_t ppm) {
    return ppm != 0 && nb_random_range(random, (uint32_t)which, NB_LINK_ALWAYS_PPM) < ppm;
}

static uint64_t add_ns(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// `second` is 0 or 1, the step from a chance of the first copy to that of the second.
static uint64_t arrival(nb_link *link, nb_random random, uint64_t now_ns, uint32_t second) {
    const nb_link_conditions *c = &link->desc.conditions;
    uint64_t arrive_ns = add_ns(now_ns, c->latency_ns);
    if (c->jitter_ns != 0)
        arrive_ns = add_ns(arrive_ns, nb_random_range(random, CHANCE_JITTER + second, c->jitter_ns + 1));
    if (!happens(random, (chance)(CHANCE_REORDER + second), c->reorder_ppm)) return arrive_ns;
    ++link->stats.reordered_count;
    return add_ns(arrive_ns, c->reorder_ns);
}

static void corrupt(nb_link *link, nb_random random, unsigned char *bytes, size_t size_bytes, uint32_t second) {
    if (size_bytes == 0 || !happens(random, (chance)(CHANCE_CORRUPT + second), link->desc.conditions.corrupt_ppm))
        return;
    uint64_t bit = nb_random_range(random, CHANCE_BIT + second, (uint64_t)size_bytes * 8);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    ++link->stats.corrupted_count;
}

static nb_result put(nb_link *link, nb_random random, uint64_t now_ns, const void *bytes, size_t size_bytes,
                     uint32_t second) {
    nb_link_stats *stats = &link->stats;
    bool has_room = stats->waiting_count < link->desc.message_count_max &&
                    size_bytes <= link->desc.bytes_max - stats->waiting_bytes;
    if (!has_room) {
        ++stats->dropped_count;
        return NB_FULL;
    }
    packet *l = &link->packets[stats->waiting_count++];
    stats->waiting_bytes += size_bytes;
    unsigned char *to = link->bytes + (size_t)l->slot * link->desc.message_bytes_max;
    if (size_bytes != 0) memcpy(to, bytes, size_bytes);
    corrupt(link, random, to, size_bytes, second);
    l->arrive_ns = arrival(link, random, now_ns, second);
    l->order = link->order++;
    l->size_bytes = (uint32_t)size_bytes;
    return NB_OK;
}

nb_result nb_link_send(nb_link *link, uint64_t now_ns, const void *bytes, size_t size_bytes) {
    if (link == NULL) return NB_FAIL_NULL("link");
    if (bytes == NULL && size_bytes != 0) return fail(link, NB_ERR_MISUSE, __func__, "bytes is NULL");
    if (size_bytes > link->desc.message_bytes_max)
        return nb_report_throttled(&link->hooks, &link->throttle, 0, true, NB_ITEM_LINK_ARGUMENT, NB_ERR_RANGE,
                                   __func__,
                                   "link of stream %u: message of %zu bytes: at most %u; raise "
                                   "nb_link_desc.message_bytes_max",
                                   link->desc.stream, size_bytes, link->desc.message_bytes_max);
    const nb_link_conditions *c = &link->desc.conditions;
    nb_random random = nb_random_make(link->desc.seed, link->stats.sent_count, link->desc.stream);
    ++link->stats.sent_count;
    link->stats.sent_bytes += size_bytes;
    if (c->is_cut || happens(random, CHANCE_LOSS, c->loss_ppm)) {
        ++link->stats.lost_count;
        return NB_OK;
    }
    nb_result result = put(link, random, now_ns, bytes, size_bytes, 0);
    if (!happens(random, CHANCE_DUPLICATE, c->duplicate_ppm)) return result;
    ++link->stats.duplicated_count;
    put(link, random, now_ns, bytes, size_bytes, 1);
    return result;
}

// --- receiving ---

// The one that arrives first, or NULL.
static packet *first_of(const nb_link *link) {
    packet *first = NULL;
    for (uint64_t i = 0; i < link->stats.waiting_count; ++i) {
        packet *l = &link->packets[i];
        bool is_earlier = first == NULL || l->arrive_ns < first->arrive_ns ||
                          (l->arrive_ns == first->arrive_ns && l->order < first->order);
        if (is_earlier) first = l;
    }
    return first;
}

nb_result nb_link_receive(nb_link *link, uint64_t now_ns, void *bytes, size_t capacity_bytes, size_t *size_bytes) {
    if (link == NULL) return NB_FAIL_NULL("link");
    if (bytes == NULL) return fail(link, NB_ERR_MISUSE, __func__, "bytes is NULL");
    if (size_bytes == NULL) return fail(link, NB_ERR_MISUSE, __func__, "size_bytes is NULL");
    packet *l = first_of(link);
    if (l == NULL || l->arrive_ns > now_ns) return NB_EMPTY;
    if (l->size_bytes > capacity_bytes) return NB_FULL;
    memcpy(bytes, link->bytes + (size_t)l->slot * link->desc.message_bytes_max, l->size_bytes);
    *size_bytes = l->size_bytes;
    ++link->stats.received_count;
    link->stats.waiting_bytes -= l->size_bytes;
    // The last one takes its place, its slot the place of the last one's.
    packet *last = &link->packets[--link->stats.waiting_count], taken = *l;
    *l = *last;
    *last = taken;
    return NB_OK;
}

uint64_t nb_link_next_ns(const nb_link *link) {
    if (link == NULL) NB_FAIL_NULL("link");
    const packet *l = link != NULL ? first_of(link) : NULL;
    return l != NULL ? l->arrive_ns : UINT64_MAX;
}

nb_link_stats nb_link_stats_get(const nb_link *link) {
    if (link == NULL) NB_FAIL_NULL("link");
    return link != NULL ? link->stats : (nb_link_stats){0};
}
