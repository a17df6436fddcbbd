// SPDX-License-Identifier: MIT
// State providers: kept in the order of their names, hashed, saved, loaded.

#include "state.h"

#include "../../base/base.h"
#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "state_image.h"

#include <stdio.h>
#include <string.h>

typedef struct provider {
    nb_provider_desc desc;
    char name[NB_PROVIDER_NAME_SIZE_MAX + 1];
    uint64_t number; // how many were added before, + 1
    uint64_t name_hash;
    bool is_loaded_last;
    nbi_image image;  // where desc.flags say so
    size_t looked_at; // how far its saves were searched for addresses
    bool has_address; // one was found, and said
    uint32_t *calls;  // of the registry
    // What save wrote last, for the hash.
    void *buffer;
    size_t buffer_bytes;
} provider;

struct nb_states {
    nb_states_desc desc;
    nb_hooks hooks;
    provider *providers; // by name
    uint32_t count;
    uint64_t number;
    uint64_t load_count;
    uint32_t calls; // of providers, under way: nothing may be freed under them
};

// --- a save ---

// Integers of a save are little-endian 64-bit words, so that it can be read anywhere:
//     magic, version, provider count, hash of all behind this head
//     for each provider: name hash, layout hash, size, bytes, zeros up to 8
// The bytes of an image begin with NBI_IMAGE_BYTES about where it was.
#define SAVE_MAGIC UINT64_C(0x317461747362656E) // "nebstat1"
#define SAVE_VERSION UINT64_C(1)
#define HEAD_BYTES 32u
#define ROW_BYTES 24u

static size_t round_up(size_t size_bytes) { return (size_bytes + 7) & ~(size_t)7; }

// --- providers ---

static bool is_local(const provider *p) { return (p->desc.flags & NB_PROVIDER_LOCAL) != 0; }
static bool is_image(const provider *p) { return (p->desc.flags & NB_PROVIDER_IMAGE) != 0; }

// Of a part, before what the provider itself saves.
static size_t prefix_bytes(const provider *p) { return is_image(p) ? NBI_IMAGE_BYTES : 0; }

static size_t call_save(const provider *p, void *bytes, size_t capacity_bytes) {
    uint32_t *calls = p->calls;
    ++*calls;
    size_t size_bytes = p->desc.save(p->desc.user, bytes, capacity_bytes);
    --*calls;
    return size_bytes;
}

static nb_result call_load(const provider *p, const void *bytes, size_t size_bytes) {
    uint32_t *calls = p->calls;
    ++*calls;
    nb_result result = p->desc.load(p->desc.user, bytes, size_bytes);
    --*calls;
    return result;
}

// A function that gives a number: a layout, a hash.
static uint64_t call_number(const provider *p, uint64_t (*number)(void *user)) {
    uint32_t *calls = p->calls;
    ++*calls;
    uint64_t value = number(p->desc.user);
    --*calls;
    return value;
}

static size_t provider_save(const provider *p, void *bytes, size_t capacity_bytes) {
    if (p->desc.save != NULL) return call_save(p, bytes, capacity_bytes);
    if (bytes != NULL && p->desc.size_bytes <= capacity_bytes) memcpy(bytes, p->desc.data, p->desc.size_bytes);
    return p->desc.size_bytes;
}

static nb_result provider_load(const provider *p, const void *bytes, size_t size_bytes) {
    if (p->desc.load != NULL) return call_load(p, bytes, size_bytes);
    memcpy(p->desc.data, bytes, p->desc.size_bytes); // check_save has seen that it is the size of a save, too
    return NB_OK;
}

// False: no memory. A provider whose size changes between the two calls is asked again.
static bool provider_bytes(nb_states *states, provider *p, const void **bytes, size_t *size_bytes) {
    if (p->desc.save == NULL) {
        *bytes = p->desc.data, *size_bytes = p->desc.size_bytes;
        return true;
    }
    for (int attempt = 0; attempt < 2; ++attempt) {
        size_t size = call_save(p, p->buffer, p->buffer_bytes);
        if (size <= p->buffer_bytes) {
            *bytes = p->buffer, *size_bytes = size;
            return true;
        }
        if (p->buffer != NULL) nbi_free(&states->hooks, p->buffer, p->buffer_bytes);
        // Half as much again: a state that grows by a row a tick is not to need the heap each time.
        p->buffer_bytes = size + size / 2 + 16;
        p->buffer = nbi_alloc(&states->hooks, p->buffer_bytes, 16, "nb_provider_hash");
        if (p->buffer == NULL) {
            p->buffer_bytes = 0;
            return false;
        }
    }
    return false;
}

static uint64_t provider_layout(const provider *p) {
    uint64_t layout = p->desc.layout != NULL ? call_number(p, p->desc.layout) : p->desc.layout_hash;
    return is_image(p) ? nbi_image_layout(&p->image, layout) : layout;
}

static bool provider_hash(nb_states *states, provider *p, uint64_t *hash) {
    if (p->desc.hash != NULL) {
        *hash = call_number(p, p->desc.hash);
        return true;
    }
    const void *bytes;
    size_t size_bytes;
    if (!provider_bytes(states, p, &bytes, &size_bytes)) return false;
    *hash = nb_hash64(bytes, size_bytes, 0);
    return true;
}

// --- the registry ---

nb_states_desc nb_states_desc_default(void) {
    return (nb_states_desc){.state_count_max = NB_PROVIDER_COUNT_DEFAULT, .hooks = nb_hooks_default()};
}

nb_result nb_states_create(const nb_states_desc *desc, nb_states **out) {
    if (out == NULL) return NBI_FAIL_NULL("out");
    nb_states_desc resolved = desc != NULL ? *desc : (nb_states_desc){0};
    resolved.hooks = nbi_hooks_resolve(&resolved.hooks);
    if (resolved.state_count_max == 0) resolved.state_count_max = NB_PROVIDER_COUNT_DEFAULT;
    if (resolved.state_count_max > NB_PROVIDER_COUNT_MAX) {
        return NBI_FAIL(&resolved.hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_RANGE, "state_count_max is too large");
    }
    nb_states *states = nbi_alloc(&resolved.hooks, sizeof *states, 16, __func__);
    if (states == NULL) return NB_ERR_MEMORY;
    *states = (nb_states){.desc = resolved, .hooks = resolved.hooks};
    size_t size_bytes = resolved.state_count_max * sizeof *states->providers;
    states->providers = nbi_alloc(&states->hooks, size_bytes, 16, __func__);
    if (states->providers == NULL) {
        nbi_free(&resolved.hooks, states, sizeof *states);
        return NB_ERR_MEMORY;
    }
    *out = states;
    return NB_OK;
}

void nb_states_destroy(nb_states *states) {
    if (states == NULL) return;
    if (states->calls != 0) {
        NBI_FAIL(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "a provider of the registry is being called");
        return;
    }
    nb_hooks hooks = states->hooks;
    for (uint32_t i = 0; i < states->count; ++i) {
        provider *p = &states->providers[i];
        if (p->buffer != NULL) nbi_free(&hooks, p->buffer, p->buffer_bytes);
    }
    nbi_free(&hooks, states->providers, states->desc.state_count_max * sizeof *states->providers);
    nbi_free(&hooks, states, sizeof *states);
}

static provider *find(const nb_states *states, nb_provider state) {
    for (uint32_t i = 0; i < states->count; ++i) {
        if (states->providers[i].number == state.value) return &states->providers[i];
    }
    return NULL;
}

static nb_result check_desc(const nb_states *states, const nb_provider_desc *desc) {
    const char *problem = NULL;
    bool has_name = desc != NULL && desc->name != NULL && desc->name[0] != '\0';
    if (!has_name)
        problem = "no name";
    else if (strlen(desc->name) > NB_PROVIDER_NAME_SIZE_MAX)
        return nbi_fail(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_RANGE, "nb_states_add",
                        "state \"%.*s...\": the name is too long", NB_PROVIDER_NAME_SIZE_MAX, desc->name);
    else if ((desc->flags & ~(NB_PROVIDER_LOCAL | NB_PROVIDER_IMAGE)) != 0)
        problem = "an unknown flag";
    else if ((desc->save != NULL) != (desc->load != NULL))
        problem = "save without load, or load without save";
    else if ((desc->data != NULL) == (desc->save != NULL))
        problem = "neither or both of memory and callbacks";
    else if (desc->data != NULL && desc->size_bytes == 0)
        problem = "memory without a size";
    else if ((desc->flags & NB_PROVIDER_IMAGE) != 0 && desc->data == NULL)
        problem = "an image without memory";
    if (problem == NULL) return NB_OK;
    return nbi_fail(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "nb_states_add", "state \"%s\": %s",
                    has_name ? desc->name : "", problem);
}

// The place of a name: that of the first which is not before it.
static uint32_t index_of(const nb_states *states, const char *name) {
    uint32_t index = 0;
    while (index < states->count && strcmp(states->providers[index].name, name) < 0) ++index;
    return index;
}

nb_result nb_states_add(nb_states *states, const nb_provider_desc *desc, nb_provider *out) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    nb_result result = check_desc(states, desc);
    if (result != NB_OK) return result;
    if (states->calls != 0) return NB_BUSY;
    uint32_t index = index_of(states, desc->name);
    if (index < states->count && strcmp(states->providers[index].name, desc->name) == 0) {
        return NBI_FAIL(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "the name %s is taken", desc->name);
    }
    if (states->count == states->desc.state_count_max) return NB_FULL;
    provider *p = &states->providers[index];
    memmove(p + 1, p, (states->count - index) * sizeof *p);
    ++states->count;
    *p = (provider){.desc = *desc, .number = ++states->number, .calls = &states->calls};
    memcpy(p->name, desc->name, strlen(desc->name) + 1);
    p->desc.name = NULL; // p->name moves with the provider
    p->name_hash = nb_hash64(p->name, strlen(p->name), 0);
    if (p->desc.layout_hash == 0)
        p->desc.layout_hash = nb_hash64(&p->name_hash, sizeof p->name_hash, p->desc.size_bytes);
    if (is_image(p)) p->image = nbi_image_of(p->desc.data);
    if (out != NULL) *out = (nb_provider){p->number};
    return NB_OK;
}

nb_result nb_states_remove(nb_states *states, nb_provider state) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    provider *p = find(states, state);
    if (p == NULL) return NBI_FAIL(&states->hooks, NB_ITEM_STATE_STALE, NB_ERR_STALE, "no such provider");
    if (states->calls != 0) return NB_BUSY;
    if (p->buffer != NULL) nbi_free(&states->hooks, p->buffer, p->buffer_bytes);
    --states->count;
    memmove(p, p + 1, (size_t)(states->providers + states->count - p) * sizeof *p);
    return NB_OK;
}

uint32_t nb_states_count(const nb_states *states) {
    if (states == NULL) return NBI_FAIL_NULL("states") == NB_OK;
    return states->count;
}

nb_provider nb_states_at(const nb_states *states, uint32_t index, const char **name) {
    if (states == NULL) NBI_FAIL_NULL("states");
    bool is_there = states != NULL && index < states->count;
    if (name != NULL) *name = is_there ? states->providers[index].name : "";
    return (nb_provider){is_there ? states->providers[index].number : 0};
}

const nb_provider_desc *nbi_states_desc_at(const nb_states *states, uint32_t index, const char **name) {
    if (index >= states->count) return NULL;
    *name = states->providers[index].name;
    return &states->providers[index].desc;
}

const nb_hooks *nbi_states_hooks(const nb_states *states) { return &states->hooks; }

void nbi_states_load_last(nb_states *states, nb_provider state) { find(states, state)->is_loaded_last = true; }

uint64_t nbi_states_added_count(const nb_states *states) { return states->number; }

uint64_t nbi_states_load_count(const nb_states *states) { return states->load_count; }

bool nbi_states_are_calling(const nb_states *states) { return states->calls != 0; }

uint32_t nb_provider_flags(const nb_states *states, nb_provider state) {
    if (states == NULL) return NBI_FAIL_NULL("states") == NB_OK;
    const provider *p = find(states, state);
    if (p == NULL) NBI_FAIL(&states->hooks, NB_ITEM_STATE_STALE, NB_ERR_STALE, "no such provider");
    return p != NULL ? p->desc.flags : 0;
}

// --- hashing ---

uint64_t nb_provider_hash(nb_states *states, nb_provider state) {
    if (states == NULL) return NBI_FAIL_NULL("states") == NB_OK;
    provider *p = find(states, state);
    if (p == NULL) {
        NBI_FAIL(&states->hooks, NB_ITEM_STATE_STALE, NB_ERR_STALE, "no such provider");
        return 0;
    }
    uint64_t hash = 0;
    return provider_hash(states, p, &hash) ? hash : 0;
}

uint64_t nb_states_hash(nb_states *states) {
    if (states == NULL) return NBI_FAIL_NULL("states") == NB_OK;
    uint64_t all = 0;
    for (uint32_t i = 0; i < states->count; ++i) {
        provider *p = &states->providers[i];
        uint64_t hash;
        if (is_local(p)) continue;
        if (!provider_hash(states, p, &hash)) return 0;
        unsigned char words[24];
        nb_bytes_put_u64(words, all), nb_bytes_put_u64(words + 8, p->name_hash), nb_bytes_put_u64(words + 16, hash);
        all = nb_hash64(words, sizeof words, 0);
    }
    return all;
}

uint64_t nb_states_layout_hash(const nb_states *states) {
    if (states == NULL) return NBI_FAIL_NULL("states") == NB_OK;
    uint64_t all = 0;
    for (uint32_t i = 0; i < states->count; ++i) {
        const provider *p = &states->providers[i];
        if (is_local(p)) continue;
        unsigned char words[24];
        nb_bytes_put_u64(words, all), nb_bytes_put_u64(words + 8, p->name_hash);
        nb_bytes_put_u64(words + 16, provider_layout(p));
        all = nb_hash64(words, sizeof words, 0);
    }
    return all;
}

// --- saving ---

// Writes one provider's row and bytes, as far as there is room. Returns what it takes.
static size_t save_one(const provider *p, unsigned char *at, size_t capacity_bytes) {
    size_t head_bytes = ROW_BYTES + prefix_bytes(p);
    bool has_head = capacity_bytes >= head_bytes;
    size_t size = provider_save(p, has_head ? at + head_bytes : NULL, has_head ? capacity_bytes - head_bytes : 0);
    size_t part_bytes = prefix_bytes(p) + size, whole = ROW_BYTES + round_up(part_bytes);
    if (whole > capacity_bytes) return whole;
    nb_bytes_put_u64(at, p->name_hash), nb_bytes_put_u64(at + 8, provider_layout(p));
    nb_bytes_put_u64(at + 16, part_bytes);
    if (is_image(p)) nbi_image_write(&p->image, at + ROW_BYTES);
    memset(at + ROW_BYTES + part_bytes, 0, round_up(part_bytes) - part_bytes);
    return whole;
}

#if NB_ASSERTIONS
// Of each state in one save, which takes 0.1 ms without optimization; the next save goes on from there.
#define LOOK_BYTES ((size_t)1 << 16)

// What an address in a state may point to: the program, and states in memory.
static uint32_t list_spans(const nb_states *states, nbi_span spans[NBI_SPAN_COUNT_MAX]) {
    uint32_t count = nbi_spans_of_program(spans);
    for (uint32_t i = 0; i < states->count && count < NBI_SPAN_COUNT_MAX; ++i) {
        const provider *p = &states->providers[i];
        uintptr_t begin = (uintptr_t)p->desc.data;
        if (p->desc.data != NULL) spans[count++] = (nbi_span){begin, begin + p->desc.size_bytes, p->name};
    }
    return count;
}

static void find_address_in(nb_states *states, provider *p, const nbi_saved_part *part, const nbi_span *spans,
                            uint32_t count) {
    if (is_image(p) || p->has_address) return;
    if (p->looked_at >= part->size_bytes) p->looked_at = 0;
    size_t end = (size_t)nbi_min_u64(part->size_bytes, p->looked_at + LOOK_BYTES);
    const nbi_span *found = NULL;
    size_t at = nbi_find_address(part->bytes, p->looked_at, end, spans, count, &found);
    p->looked_at = round_up(end);
    p->has_address = at < end;
    if (!p->has_address) return;
    nbi_log(&states->hooks, NB_LOG_WARNING, NB_ITEM_STATE_ADDRESS, "nb_states_save",
            "state \"%s\": byte %zu holds an address %s%s: another run has nothing there; keep an index, or flag the "
            "state NB_PROVIDER_IMAGE",
            p->name, at, found->name != NULL ? "in state " : "of the program", found->name != NULL ? found->name : "");
}

static void find_addresses(nb_states *states, const void *bytes) {
    nbi_span spans[NBI_SPAN_COUNT_MAX];
    uint32_t count = list_spans(states, spans);
    nbi_saved_part part = {0};
    while (nbi_saved_part_next(states, bytes, &part))
        find_address_in(states, &states->providers[part.provider_end - 1], &part, spans, count);
}
#else
static void find_addresses(nb_states *states, const void *bytes) { (void)states, (void)bytes; }
#endif

nb_result nb_states_save(nb_states *states, void *bytes, size_t capacity_bytes, size_t *size_bytes) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    if (size_bytes == NULL || (bytes == NULL && capacity_bytes != 0)) {
        return NBI_FAIL(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "bytes or size_bytes is NULL");
    }
    unsigned char *start = bytes;
    size_t used = HEAD_BYTES;
    uint64_t count = 0;
    for (uint32_t i = 0; i < states->count; ++i) {
        const provider *p = &states->providers[i];
        if (is_local(p)) continue;
        size_t left = used < capacity_bytes ? capacity_bytes - used : 0;
        used += save_one(p, left != 0 ? start + used : NULL, left);
        ++count;
    }
    *size_bytes = used;
    if (used > capacity_bytes) return NB_FULL;
    nb_bytes_put_u64(start, SAVE_MAGIC), nb_bytes_put_u64(start + 8, SAVE_VERSION), nb_bytes_put_u64(start + 16, count);
    nb_bytes_put_u64(start + 24, nb_hash64(start + HEAD_BYTES, used - HEAD_BYTES, count));
    find_addresses(states, start);
    return NB_OK;
}

// --- loading ---

nb_result nbi_states_check(const nb_states *states, const void *bytes, size_t size_bytes) {
    const unsigned char *start = bytes;
    if (size_bytes < HEAD_BYTES) return NB_ERR_RANGE;
    if (nb_bytes_get_u64(start) != SAVE_MAGIC || nb_bytes_get_u64(start + 8) != SAVE_VERSION) return NB_ERR_UNSUPPORTED;
    uint64_t count = nb_bytes_get_u64(start + 16);
    if (nb_bytes_get_u64(start + 24) != nb_hash64(start + HEAD_BYTES, size_bytes - HEAD_BYTES, count))
        return NB_ERR_RANGE;
    size_t at = HEAD_BYTES;
    for (uint32_t i = 0; i < states->count; ++i) {
        const provider *p = &states->providers[i];
        if (is_local(p)) continue;
        if (count-- == 0 || size_bytes - at < ROW_BYTES) return NB_ERR_UNSUPPORTED;
        bool is_same =
            nb_bytes_get_u64(start + at) == p->name_hash && nb_bytes_get_u64(start + at + 8) == provider_layout(p);
        if (!is_same) return NB_ERR_UNSUPPORTED;
        uint64_t size = nb_bytes_get_u64(start + at + 16);
        at += ROW_BYTES;
        if (size > size_bytes - at || round_up((size_t)size) > size_bytes - at) return NB_ERR_RANGE;
        if (p->desc.load == NULL && size != prefix_bytes(p) + p->desc.size_bytes) return NB_ERR_RANGE;
        at += round_up((size_t)size);
    }
    return count == 0 && at == size_bytes ? NB_OK : NB_ERR_UNSUPPORTED;
}

#define REFUSAL_SIZE 288

// Why nbi_states_check refused a save, in words: the first provider that it has otherwise.
static const char *describe_refusal(const nb_states *states, const unsigned char *start, size_t size_bytes,
                                    nb_result result, char text[REFUSAL_SIZE]) {
    snprintf(text, REFUSAL_SIZE, "not a save of these providers");
    size_t at = HEAD_BYTES;
    for (uint32_t i = 0; result == NB_ERR_UNSUPPORTED && i < states->count; ++i) {
        const provider *p = &states->providers[i];
        if (is_local(p)) continue;
        bool is_there =
            size_bytes >= ROW_BYTES && at <= size_bytes - ROW_BYTES && nb_bytes_get_u64(start + at) == p->name_hash;
        if (!is_there) break;
        uint64_t layout = nb_bytes_get_u64(start + at + 8), size = nb_bytes_get_u64(start + at + 16);
        size_t left_bytes = size_bytes - at - ROW_BYTES;
        if (is_image(p) && left_bytes >= NBI_IMAGE_BYTES) {
            nbi_image saved = nbi_image_read(start + at + ROW_BYTES);
            if (nbi_image_describe(&saved, &p->image, p->name, text, REFUSAL_SIZE)) break;
        }
        if (layout != provider_layout(p)) {
            snprintf(text, REFUSAL_SIZE, "state \"%s\" was saved with layout %016llx, here it has %016llx", p->name,
                     nb_llu(layout), nb_llu(provider_layout(p)));
            break;
        }
        at += ROW_BYTES + round_up((size_t)nbi_min_u64(size, size_bytes));
    }
    return text;
}

nb_result nb_states_check(const nb_states *states, const void *bytes, size_t size_bytes) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    if (bytes == NULL) return NBI_FAIL(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "bytes is NULL");
    nb_result result = nbi_states_check(states, bytes, size_bytes);
    char text[REFUSAL_SIZE];
    if (result == NB_OK) return NB_OK;
    return nb_report_failure(&states->hooks, NB_ITEM_STATE_LAYOUT, result, __func__, "%s",
                             describe_refusal(states, bytes, size_bytes, result, text));
}

bool nbi_saved_part_next(const nb_states *states, const void *bytes, nbi_saved_part *part) {
    uint32_t index = part->provider_end;
    while (index < states->count && is_local(&states->providers[index])) ++index;
    if (index == states->count) return false;
    const provider *p = &states->providers[index];
    size_t at = part->end != 0 ? part->end : HEAD_BYTES;
    const unsigned char *row = (const unsigned char *)bytes + at;
    size_t part_bytes = (size_t)nb_bytes_get_u64(row + 16);
    part->provider_end = index + 1;
    part->bytes = row + ROW_BYTES + prefix_bytes(p);
    part->size_bytes = part_bytes - prefix_bytes(p);
    part->end = at + ROW_BYTES + round_up(part_bytes);
    return true;
}

// The turns of loading. Those whose load may refuse come first: a refusal then undoes nothing else. A world checks all
// of its part before it changes, and going back would cost its local columns: it comes when no other can refuse any
// more. Memory cannot refuse.
typedef enum load_turn { TURN_CALLBACKS, TURN_LAST, TURN_MEMORY } load_turn;

static load_turn turn_of(const provider *p) {
    if (p->desc.load == NULL) return TURN_MEMORY;
    return p->is_loaded_last ? TURN_LAST : TURN_CALLBACKS;
}

// Loads the providers of a turn before the place *end; where one refuses, *end is its place.
static nb_result load_some(const nb_states *states, const unsigned char *start, load_turn turn, uint32_t *end,
                           const char *function) {
    nbi_saved_part part = {0};
    while (nbi_saved_part_next(states, start, &part) && part.provider_end <= *end) {
        const provider *p = &states->providers[part.provider_end - 1];
        nb_result result = turn_of(p) == turn ? provider_load(p, part.bytes, part.size_bytes) : NB_OK;
        if (result >= 0) continue;
        *end = part.provider_end - 1;
        nbi_fail(&states->hooks, NB_ITEM_STATE_SAVE, result, function, "state \"%s\" refuses its part", p->name);
        return result;
    }
    return NB_OK;
}

// Where a provider refuses, those before it get back what was kept.
static nb_result load_all(nb_states *states, const unsigned char *start, const unsigned char *kept,
                          const char *function) {
    uint32_t end = states->count, last = states->count, all = states->count;
    nb_result result = load_some(states, start, TURN_CALLBACKS, &end, function);
    if (result == NB_OK) result = load_some(states, start, TURN_LAST, &last, function);
    if (result != NB_OK) {
        load_some(states, kept, TURN_CALLBACKS, &end, function);
        return result;
    }
    ++states->load_count;
    return load_some(states, start, TURN_MEMORY, &all, function);
}

nb_result nbi_states_load(nb_states *states, const void *bytes, size_t size_bytes, const char *function) {
    nb_result result = nbi_states_check(states, bytes, size_bytes);
    char text[REFUSAL_SIZE];
    if (result != NB_OK) {
        return nbi_fail(&states->hooks, NB_ITEM_STATE_SAVE, result, function, "%s",
                        describe_refusal(states, bytes, size_bytes, result, text));
    }
    size_t kept_bytes = 0, saved_bytes = 0;
    nb_states_save(states, NULL, 0, &kept_bytes);
    void *kept = nbi_alloc(&states->hooks, kept_bytes, 16, function);
    if (kept == NULL) return NB_ERR_MEMORY;
    result = nb_states_save(states, kept, kept_bytes, &saved_bytes);
    if (result == NB_OK)
        result = load_all(states, bytes, kept, function);
    else
        result =
            nbi_fail(&states->hooks, NB_ITEM_STATE_SAVE, NB_ERR_MISUSE, function, "a provider grows while it is saved");
    nbi_free(&states->hooks, kept, kept_bytes);
    return result;
}

nb_result nb_states_load(nb_states *states, const void *bytes, size_t size_bytes) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    if (bytes == NULL) return NBI_FAIL(&states->hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "bytes is NULL");
    return nbi_states_load(states, bytes, size_bytes, __func__);
}
