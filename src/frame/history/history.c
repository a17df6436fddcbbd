// SPDX-License-Identifier: MIT
// The history: what it is made of, saving a tick, going to another, and inputs. A save lets the shadows follow the
// state and keeps what they were; a rewind moves the shadows, and lets the state follow them.

#include "history.h"

#include "../../base/throttle.h"
#include "../../platform/platform.h"
#include "../state/state.h"
#include "../store/store.h"

#include <string.h>

// Shadows begin on a cache line, as the rows of a world do.
#define SHADOW_ALIGNMENT NB_CACHE_LINE

// A provider. Where it has callbacks, live bytes and shadow are two halves of `memory`, each {size as 64 bits, bytes}.
typedef struct source {
    nb_provider_desc desc;
    const char *name; // of the states; theirs until providers come or go
    unsigned char *memory;
    size_t half_bytes;
} source;

#define SIZE_BYTES sizeof(uint64_t)

typedef struct input_slot {
    uint64_t tick;
    uint32_t event_count, command_count;
    bool is_set;
} input_slot;

struct nb_history {
    nb_history_desc desc; // resolved
    nb_hooks hooks;
    const char *caller; // the engine's function that drives it; NULL = no engine does
    nbi_throttle throttle;
    nbi_undo undo;
    size_t block_bytes; // of this memory, with records and slots

    unsigned char *pages; // the ring, which images take from, then inputs
    size_t pages_bytes;
    nb_input_event *inputs;
    input_slot *slots; // tick_count_max + 1: of the ticks behind the oldest one, and the one to come
    uint32_t slot_count;

    // Made with the first save, and again when providers came or went.
    nbi_region *regions; // of the sources, then of the world
    source *sources;
    nbi_table_head *heads;
    uint32_t region_count, source_count;
    size_t regions_bytes; // of these three, in one piece
    unsigned char *shadows;
    size_t shadows_bytes;
    uint64_t states_added;
    uint32_t states_count;

    uint64_t since; // the world's version at the last save or rewind: larger ones are news
    bool has_begun;
    uint64_t tick_newest;
    uint64_t tick_top; // the latest that was ever saved since it began
    nb_history_stats stats;
};

// --- creation ---

// A quarter of all addresses leaves room for inputs and for rounding up.
static const nbi_desc_number numbers[] = {
    NBI_NUMBER(nb_history_desc, bytes_max, NB_HISTORY_BYTES_DEFAULT, NB_HISTORY_CHANGE_BYTES_MIN, SIZE_MAX / 4),
    NBI_NUMBER(nb_history_desc, tick_count_max, NB_HISTORY_TICK_COUNT_DEFAULT, 1, NB_HISTORY_TICK_COUNT_MAX),
    NBI_NUMBER(nb_history_desc, event_count_max, NB_HISTORY_INPUT_COUNT_DEFAULT, 1, NB_INPUT_COUNT_LIMIT),
    NBI_NUMBER(nb_history_desc, command_count_max, NB_HISTORY_INPUT_COUNT_DEFAULT, 1, NB_INPUT_COUNT_LIMIT),
};
const nbi_desc_rules nbi_history_rules = NBI_RULES(nb_history_desc, numbers);

nb_history_desc nb_history_desc_default(void) {
    nb_history_desc desc = {.hooks = nb_hooks_default()};
    nbi_desc_fill(&nbi_history_rules, &desc);
    return desc;
}

static nb_history_desc resolve(const nb_history_desc *desc) {
    nb_history_desc out = *desc;
    out.hooks = nbi_hooks_resolve(&out.hooks);
    nbi_desc_fill(&nbi_history_rules, &out);
    return out;
}

// Address space for inputs: sixteen times what all ticks there may be take with the default counts.
#define INPUT_BYTES_MAX (UINT64_C(1) << 36)

// At most 2^20 ticks of 2^17 events of 32 bytes: far from overflow.
static size_t inputs_bytes(const nb_history_desc *desc) {
    size_t event_count = (size_t)desc->event_count_max + desc->command_count_max;
    return ((size_t)desc->tick_count_max + 1) * event_count * sizeof(nb_input_event);
}

// What a report names: the function that the user called, and where the fields are that the user sets.
static const char *called(const char *caller, const char *function) { return caller != NULL ? caller : function; }
static const char *fields_of(const char *caller) {
    return caller != NULL ? "nb_engine_desc.history" : "nb_history_desc";
}

static nb_result check_desc(const nb_history_desc *desc, const char *caller) {
    const char *function = called(caller, "nb_history_create"), *fields = fields_of(caller);
    nbi_desc_place place = {&desc->hooks, NB_ITEM_HISTORY_ARGUMENT, function, fields};
    nb_result result = nbi_desc_check(&nbi_history_rules, desc, &place);
    if (result != NB_OK || inputs_bytes(desc) <= INPUT_BYTES_MAX) return result;
    return nbi_fail(&desc->hooks, NB_ITEM_HISTORY_ARGUMENT, NB_ERR_RANGE, function,
                    "%s: the inputs of %u ticks take %zu bytes, at most %llu; lower tick_count_max, event_count_max or "
                    "command_count_max",
                    fields, desc->tick_count_max, inputs_bytes(desc), nb_llu(INPUT_BYTES_MAX));
}

nb_result nbi_history_check(const nb_history_desc *desc) {
    nb_history_desc resolved = resolve(desc);
    return check_desc(&resolved, "nb_engine_create");
}

static unsigned char *pages_take(const nb_hooks *hooks, size_t size_bytes, const char *function) {
    unsigned char *pages = nbi_pages_reserve(size_bytes);
    if (pages != NULL && nbi_pages_commit(pages, size_bytes) == NB_OK) return pages;
    nbi_pages_release(pages, size_bytes);
    nbi_log(hooks, NB_LOG_ERROR, NB_ITEM_BASE_MEMORY, function, "no %zu bytes of pages", size_bytes);
    return NULL;
}

static size_t round_up(size_t size_bytes, size_t to) { return (size_bytes + to - 1) / to * to; }

nb_result nb_history_create(const nb_history_desc *given, nb_history **out) {
    if (given == NULL || out == NULL) return NBI_FAIL_NULL("desc or out");
    return nbi_history_create(given, NULL, out);
}

nb_result nbi_history_create(const nb_history_desc *given, const char *caller, nb_history **out) {
    const char *function = called(caller, "nb_history_create");
    nb_history_desc desc = resolve(given);
    if (desc.states == NULL && desc.world == NULL) {
        return nbi_fail(&desc.hooks, NB_ITEM_HISTORY_ARGUMENT, NB_ERR_MISUSE, function, "neither states nor world");
    }
    nb_result result = check_desc(&desc, caller);
    if (result != NB_OK) return result;
    uint32_t slot_count = desc.tick_count_max + 1;
    size_t records_at = sizeof(nb_history), slots_at = records_at + desc.tick_count_max * sizeof(nbi_record);
    size_t block_bytes = slots_at + slot_count * sizeof(input_slot);
    unsigned char *block = nbi_alloc(&desc.hooks, block_bytes, 16, function);
    if (block == NULL) return NB_ERR_MEMORY;
    size_t inputs_at = round_up(desc.bytes_max, NB_CACHE_LINE);
    size_t pages_bytes = round_up(inputs_at + inputs_bytes(&desc), nbi_page_size());
    unsigned char *pages = pages_take(&desc.hooks, pages_bytes, function);
    if (pages == NULL) {
        nbi_free(&desc.hooks, block, block_bytes);
        return NB_ERR_MEMORY;
    }
    memset(block, 0, block_bytes);
    nb_history *history = (nb_history *)(void *)block;
    *history = (nb_history){.desc = desc, .hooks = desc.hooks, .block_bytes = block_bytes, .slot_count = slot_count};
    history->caller = caller;
    history->pages = pages;
    history->pages_bytes = pages_bytes;
    history->slots = (input_slot *)(void *)(block + slots_at);
    history->inputs = (nb_input_event *)(void *)(pages + inputs_at);
    history->undo = (nbi_undo){.bytes = pages,
                               .size_bytes = desc.bytes_max,
                               .records = (nbi_record *)(void *)(block + records_at),
                               .record_count_max = desc.tick_count_max};
    *out = history;
    return NB_OK;
}

static void regions_free(nb_history *history) {
    for (uint32_t i = 0; i < history->source_count; ++i) {
        source *from = &history->sources[i];
        if (from->memory != NULL) nbi_free(&history->hooks, from->memory, 2 * from->half_bytes);
    }
    nbi_pages_release(history->shadows, history->shadows_bytes);
    if (history->regions != NULL) nbi_free(&history->hooks, history->regions, history->regions_bytes);
    history->regions = history->undo.regions = NULL;
    history->undo.region_count = 0;
    history->shadows = NULL;
    history->region_count = history->source_count = 0;
    history->since = 0;
}

void nbi_history_call(nb_history *history, const char *caller) { history->caller = caller; }

void nb_history_destroy(nb_history *history) {
    if (history == NULL) return;
    regions_free(history);
    nbi_pages_release(history->pages, history->pages_bytes);
    nb_hooks hooks = history->hooks;
    nbi_free(&hooks, history, history->block_bytes);
}

// --- what is kept ---

// The world's own provider saves what the regions of the world have.
static bool is_kept(const nb_history *history, const nb_provider_desc *desc, const char *name) {
    if ((desc->flags & NB_PROVIDER_LOCAL) != 0) return false;
    bool is_world = history->desc.world != NULL && desc->user == history->desc.world && strcmp(name, "world") == 0;
    return !is_world;
}

// Fills `sources`, where there are any, and gives their number.
static uint32_t sources_list(const nb_history *history, source *sources) {
    uint32_t count = 0;
    const nb_provider_desc *desc;
    const char *name;
    if (history->desc.states == NULL) return 0;
    for (uint32_t i = 0; (desc = nbi_states_desc_at(history->desc.states, i, &name)) != NULL; ++i) {
        if (!is_kept(history, desc, name)) continue;
        if (sources != NULL) sources[count] = (source){.desc = *desc, .name = name};
        ++count;
    }
    return count;
}

// Shadows one behind the other, with the marks of those that have some; with base NULL only their size.
static size_t shadows_carve(const nb_history *history, unsigned char *base) {
    size_t used_bytes = 0;
    for (uint32_t i = 0; i < history->region_count; ++i) {
        nbi_region *region = &history->regions[i];
        if (base != NULL && region->size_bytes_max != 0) region->shadow = region->home = base + used_bytes;
        used_bytes += round_up(region->size_bytes_max, SHADOW_ALIGNMENT);
        if (!region->may_image) continue;
        if (base != NULL) region->marks = (uint64_t *)(void *)(base + used_bytes);
        used_bytes += round_up(nbi_region_marks_bytes(region->size_bytes_max), SHADOW_ALIGNMENT);
    }
    return used_bytes;
}

static void regions_describe(nb_history *history) {
    for (uint32_t i = 0; i < history->source_count; ++i) {
        const nb_provider_desc *desc = &history->sources[i].desc;
        if (desc->save != NULL) continue; // both halves come with the first filling
        history->regions[i] =
            (nbi_region){.live = desc->data, .size_bytes = desc->size_bytes, .size_bytes_max = desc->size_bytes};
        history->regions[i].may_image = true;
    }
    nb_store *world = history->desc.world;
    if (world != NULL) nbi_store_regions_describe(world, history->regions + history->source_count, history->heads);
}

static nb_result regions_make(nb_history *history) {
    const char *function = called(history->caller, "nb_history_save");
    nb_store *world = history->desc.world;
    uint32_t source_count = sources_list(history, NULL);
    uint32_t region_count = source_count + (world != NULL ? nbi_store_region_count(world) : 0);
    uint32_t head_count = world != NULL ? world->table_count : 0;
    size_t sources_at = region_count * sizeof(nbi_region), heads_at = sources_at + source_count * sizeof(source);
    // One more byte: there may be nothing to keep.
    history->regions_bytes = heads_at + head_count * sizeof(nbi_table_head) + 1;
    unsigned char *memory = nbi_alloc(&history->hooks, history->regions_bytes, 16, function);
    if (memory == NULL) return NB_ERR_MEMORY;
    memset(memory, 0, history->regions_bytes);
    history->regions = (nbi_region *)(void *)memory;
    history->sources = (source *)(void *)(memory + sources_at);
    history->heads = (nbi_table_head *)(void *)(memory + heads_at);
    history->source_count = sources_list(history, history->sources);
    history->region_count = region_count;
    if (history->desc.states != NULL) {
        history->states_added = nbi_states_added_count(history->desc.states);
        history->states_count = nb_states_count(history->desc.states);
    }
    regions_describe(history);
    history->shadows_bytes = round_up(shadows_carve(history, NULL) + 1, nbi_page_size());
    history->shadows = pages_take(&history->hooks, history->shadows_bytes, function);
    if (history->shadows == NULL) {
        regions_free(history);
        return NB_ERR_MEMORY;
    }
    shadows_carve(history, history->shadows);
    history->undo.regions = history->regions;
    history->undo.region_count = history->region_count;
    nbi_images_begin(&history->undo, history->desc.bytes_max);
    return NB_OK;
}

static bool has_other_providers(const nb_history *history) {
    const nb_states *states = history->desc.states;
    if (history->regions == NULL || states == NULL) return false;
    return nbi_states_added_count(states) != history->states_added || nb_states_count(states) != history->states_count;
}

static void forget(nb_history *history) {
    history->has_begun = false;
    history->tick_newest = history->tick_top = 0;
    nbi_undo_clear(&history->undo, 0);
    for (uint32_t i = 0; i < history->slot_count; ++i) history->slots[i].is_set = false;
}

static void report_restart(nb_history *history, const char *function, const char *reason) {
    if (!history->has_begun) return;
    history->stats.restart_count += 1;
    nbi_log(&history->hooks, NB_LOG_WARNING, NB_ITEM_HISTORY_RESTARTED, called(history->caller, function),
            "history: %s: all %llu ticks are forgotten", reason,
            nb_llu(history->tick_newest - history->undo.tick_oldest));
}

static void restart(nb_history *history, const char *function, const char *reason) {
    report_restart(history, function, reason);
    forget(history);
}

// Inputs stay: where a tick that was simulated again could not be saved, those of the ticks behind it are still needed.
static void leave_out(nb_history *history, uint64_t tick, const char *function) {
    report_restart(history, function, "ticks were left out");
    history->has_begun = false;
    nbi_undo_clear(&history->undo, tick);
}

// Regions of providers that are gone must not be touched again.
static void follow_providers(nb_history *history, const char *function) {
    if (!has_other_providers(history)) return;
    restart(history, function, "states were added or removed");
    regions_free(history);
}

// --- providers with callbacks ---

static uint64_t half_size(const unsigned char *half) {
    uint64_t size;
    memcpy(&size, half, sizeof size);
    return size;
}

// Half as much again: a state that grows by a row a tick is not to need the heap each time.
static nb_result source_grow(nb_history *history, uint32_t index, size_t size_bytes, const char *function) {
    source *from = &history->sources[index];
    nbi_region *region = &history->regions[index];
    // A quarter of all addresses is more than any allocator has.
    size_t half_bytes = round_up(nbi_min_u64(size_bytes, SIZE_MAX / 8) * 3 / 2 + 64, 16);
    unsigned char *memory = nbi_alloc(&history->hooks, 2 * half_bytes, 16, called(history->caller, function));
    if (memory == NULL) return NB_ERR_MEMORY;
    memset(memory, 0, 2 * half_bytes);
    if (from->memory != NULL) {
        memcpy(memory, region->live, from->half_bytes);
        memcpy(memory + half_bytes, region->shadow, from->half_bytes);
        nbi_free(&history->hooks, from->memory, 2 * from->half_bytes);
    }
    from->memory = region->live = memory;
    from->half_bytes = half_bytes;
    region->shadow = memory + half_bytes;
    return NB_OK;
}

// Takes over what the provider saves now: what lies behind it is zero, as in the shadow.
static void source_settle(nbi_region *region, uint64_t size) {
    uint64_t before = half_size(region->live), shadow_size = half_size(region->shadow);
    if (before > size) memset(region->live + SIZE_BYTES + size, 0, (size_t)(before - size));
    memcpy(region->live, &size, sizeof size);
    region->size_bytes = SIZE_BYTES + (size_t)nbi_max_u64(size, shadow_size);
}

// How much it is comes first, unless it fits into what there is. A provider whose size changes between the calls is
// asked again.
static nb_result source_fill(nb_history *history, uint32_t index, const char *function) {
    const source *from = &history->sources[index];
    nbi_region *region = &history->regions[index];
    for (int attempt = 0; attempt < 3; ++attempt) {
        bool has_memory = from->memory != NULL;
        size_t capacity = has_memory ? from->half_bytes - SIZE_BYTES : 0;
        size_t size = from->desc.save(from->desc.user, has_memory ? region->live + SIZE_BYTES : NULL, capacity);
        if (has_memory && size <= capacity) {
            source_settle(region, size);
            return NB_OK;
        }
        nb_result result = source_grow(history, index, size, function);
        if (result != NB_OK) return result;
    }
    return nbi_fail_throttled(&history->hooks, &history->throttle, index, NB_ITEM_HISTORY_LOAD, NB_ERR_MISUSE,
                              called(history->caller, function),
                              "state \"%s\": save asks for more room with each call: the tick is not kept", from->name);
}

static nb_result sources_fill(nb_history *history, const char *function) {
    for (uint32_t i = 0; i < history->source_count; ++i) {
        if (history->sources[i].desc.save == NULL) continue;
        nb_result result = source_fill(history, i, function);
        if (result != NB_OK) return result;
    }
    return NB_OK;
}

static bool is_changed(const nb_history *history, uint32_t index) {
    const nbi_region *region = &history->regions[index];
    if (history->sources[index].desc.save == NULL) return false;
    uint64_t size = half_size(region->live);
    return size != half_size(region->shadow) ||
           memcmp(region->live + SIZE_BYTES, region->shadow + SIZE_BYTES, (size_t)size) != 0;
}

static nb_result source_load(const nb_history *history, uint32_t index, const unsigned char *half) {
    const nb_provider_desc *desc = &history->sources[index].desc;
    nb_result result = desc->load(desc->user, half + SIZE_BYTES, (size_t)half_size(half));
    return result < 0 ? result : NB_OK;
}

// Where one refuses, those before it get back what they had.
static nb_result sources_load(nb_history *history) {
    for (uint32_t i = 0; i < history->source_count; ++i) {
        const nbi_region *region = &history->regions[i];
        nb_result result = is_changed(history, i) ? source_load(history, i, region->shadow) : NB_OK;
        if (result == NB_OK) continue;
        for (uint32_t j = 0; j < i; ++j) {
            if (is_changed(history, j)) source_load(history, j, history->regions[j].live);
        }
        return nbi_fail_throttled(&history->hooks, &history->throttle, i, NB_ITEM_HISTORY_LOAD, result,
                                  called(history->caller, "nb_history_rewind"),
                                  "state \"%s\": load refused what its save gave (%s): nothing was rewound",
                                  history->sources[i].name, nb_result_name(result));
    }
    return NB_OK;
}

// --- saving ---

static nb_result check_save(const nb_history *history, uint64_t tick) {
    const nb_store *world = history->desc.world;
    const char *function = called(history->caller, "nb_history_save");
    if (world != NULL && nbi_store_const_of(world)->is_in_tick)
        return nbi_fail(&history->hooks, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, function, "a tick is on");
    bool is_old = history->has_begun && !has_other_providers(history) && tick < history->tick_newest;
    if (tick <= NB_TICK_COUNT_MAX && !is_old) return NB_OK;
    return nbi_fail(&history->hooks, NB_ITEM_HISTORY_ARGUMENT, NB_ERR_MISUSE, function,
                    "tick %llu comes after %llu; rewind goes back", nb_llu(tick), nb_llu(history->tick_newest));
}

// Shadows follow. False: what they were did not fit.
static bool shadows_follow(nb_history *history) {
    nb_store *world = history->desc.world;
    if (world != NULL) nbi_store_regions_locate(world, history->regions + history->source_count);
    for (uint32_t i = 0; i < history->region_count; ++i) {
        nbi_region_follow(&history->regions[i], i, history->since, &history->undo);
    }
    if (world == NULL) return nbi_undo_end(&history->undo);
    // What is written from here on is newer than what was seen.
    history->since = world->version;
    world->version += 1;
    return nbi_undo_end(&history->undo);
}

nb_result nb_history_save(nb_history *history, uint64_t tick) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    nb_result result = check_save(history, tick);
    if (result != NB_OK) return result;
    follow_providers(history, __func__);
    if (history->regions == NULL) result = regions_make(history);
    if (result == NB_OK) result = sources_fill(history, __func__);
    if (result != NB_OK) return result;
    if (history->has_begun && tick > history->tick_newest + 1) leave_out(history, tick, __func__);
    if (history->has_begun)
        nbi_undo_begin(&history->undo, tick);
    else
        nbi_undo_clear(&history->undo, tick);
    bool is_kept_whole = shadows_follow(history);
    history->has_begun = true;
    history->tick_newest = tick;
    history->tick_top = nbi_max_u64(history->tick_top, tick);
    history->stats.save_count += 1;
    if (is_kept_whole) return NB_OK;
    if (history->stats.full_count++ == 0) {
        nbi_log(&history->hooks, NB_LOG_WARNING, NB_ITEM_HISTORY_FULL, called(history->caller, __func__),
                "history: tick %llu changed %llu bytes and there is room for %zu: no rewind goes behind it; raise "
                "%s.bytes_max; later ones are only counted",
                nb_llu(tick), nb_llu(history->undo.changed_bytes), history->undo.size_bytes,
                fields_of(history->caller));
    }
    return NB_FULL;
}

// --- rewinding ---

static nb_result check_rewind(nb_history *history) {
    if (history->desc.world == NULL) return NB_OK;
    nbi_store *world = nbi_store_of(history->desc.world);
    const char *function = called(history->caller, "nb_history_rewind");
    if (world->is_in_tick)
        return nbi_fail(&history->hooks, NB_ITEM_STORE_TICK, NB_ERR_MISUSE, function, "a tick is on");
    if (world->is_protected)
        return nbi_fail(&history->hooks, NB_ITEM_STORE_PROTECTED, NB_ERR_MISUSE, function,
                        "the world is read-only now");
    if ((nbi_atomic_load_relaxed_u32(&world->visible.writable) & NB_COLUMN_SIMULATED) != 0) return NB_OK;
    nbi_atomic_fetch_add_relaxed_u64(&world->denied_count, 1);
    return nbi_fail(&history->hooks, NB_ITEM_STORE_DENIED, NB_ERR_PERMISSION, function,
                    "simulated state is not to be written");
}

static uint64_t tick_last(const nb_history *history) {
    const nbi_undo *undo = &history->undo;
    if (undo->last == undo->now) return history->tick_newest;
    return undo->records[(undo->last - 1) % undo->record_count_max].tick;
}

static nb_result refuse_tick(nb_history *history) {
    history->stats.refuse_count += 1;
    return NB_ERR_RANGE;
}

// Live bytes become the shadows; nothing can fail any more.
static void state_follows(nb_history *history, uint64_t version) {
    nb_store *world = history->desc.world;
    for (uint32_t i = 0; i < history->source_count; ++i) {
        bool is_loaded = history->sources[i].desc.save != NULL;
        if (!is_loaded) nbi_region_restore(&history->regions[i], history->since, version);
    }
    if (world == NULL) return;
    nbi_store_regions_restore(world, history->regions + history->source_count, history->since, version);
    history->since = version;
    world->version = version + 1;
}

nb_result nb_history_rewind(nb_history *history, uint64_t tick) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    nb_result result = check_rewind(history);
    if (result != NB_OK) return result;
    follow_providers(history, __func__);
    bool is_there = history->has_begun && tick >= history->undo.tick_oldest && tick <= tick_last(history);
    if (!is_there) return refuse_tick(history);
    result = sources_fill(history, __func__);
    if (result != NB_OK) return result;
    nb_store *world = history->desc.world;
    // One that no block has: whoever copies by versions sees all that changes here.
    uint64_t version = world != NULL ? ++world->version : 0;
    nbi_undo_move(&history->undo, tick, version);
    result = sources_load(history);
    if (result != NB_OK) {
        nbi_undo_move(&history->undo, history->tick_newest, version);
        if (world != NULL) world->version += 1;
        return result;
    }
    state_follows(history, version);
    history->tick_newest = tick;
    history->stats.rewind_count += 1;
    return NB_OK;
}

nb_result nbi_history_return(nb_history *history, uint64_t tick) {
    nb_store *world = history->desc.world;
    uint64_t version = world != NULL ? ++world->version : 0;
    nb_result result = NB_OK;
    nbi_undo_move(&history->undo, tick, version);
    for (uint32_t i = 0; i < history->source_count; ++i) {
        if (history->sources[i].desc.save == NULL) continue;
        nb_result loaded = source_load(history, i, history->regions[i].shadow);
        if (loaded != NB_OK) result = loaded;
    }
    state_follows(history, version);
    history->tick_newest = tick;
    return result;
}

const nb_store *nbi_history_world(const nb_history *history) { return history->desc.world; }

nb_result nb_history_confirm(nb_history *history, uint64_t tick) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    follow_providers(history, __func__);
    if (!history->has_begun || tick > history->tick_newest) return refuse_tick(history);
    history->stats.confirmed_count += nbi_undo_confirm(&history->undo, tick);
    return NB_OK;
}

nb_result nb_history_reset(nb_history *history) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    forget(history);
    return NB_OK;
}

// --- inputs ---

// NULL: no tick that can be simulated.
static input_slot *slot_of(nb_history *history, uint64_t tick) {
    bool is_there = history->has_begun && tick > history->undo.tick_oldest && tick <= history->tick_top + 1;
    return is_there ? &history->slots[tick % history->slot_count] : NULL;
}

// Room for a slot's events; commands are behind them.
static nb_input_event *slot_events(const nb_history *history, const input_slot *slot) {
    size_t count = (size_t)history->desc.event_count_max + history->desc.command_count_max;
    return history->inputs + (size_t)(slot - history->slots) * count;
}

static bool is_view(const nb_input_view *view) { return view->count == 0 || view->events != NULL; }

nb_result nb_history_input_set(nb_history *history, uint64_t tick, const nb_history_input *input) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    if (input == NULL || !is_view(&input->events) || !is_view(&input->commands)) {
        return NBI_FAIL(&history->hooks, NB_ITEM_HISTORY_ARGUMENT, NB_ERR_MISUSE, "input or its events are NULL");
    }
    follow_providers(history, __func__);
    input_slot *slot = slot_of(history, tick);
    if (slot == NULL) return refuse_tick(history);
    const nb_input_view *events = &input->events, *commands = &input->commands;
    if (events->count > history->desc.event_count_max || commands->count > history->desc.command_count_max)
        return NB_FULL;
    nb_input_event *slot_event = slot_events(history, slot);
    // The caller may hand back what nb_history_input_get gave it.
    if (events->count != 0) memmove(slot_event, events->events, events->count * sizeof *slot_event);
    slot_event += history->desc.event_count_max;
    if (commands->count != 0) memmove(slot_event, commands->events, commands->count * sizeof *slot_event);
    *slot = (input_slot){.tick = tick, .event_count = events->count, .command_count = commands->count, .is_set = true};
    return NB_OK;
}

nb_result nb_history_input_get(nb_history *history, uint64_t tick, nb_history_input *out) {
    if (history == NULL) return NBI_FAIL_NULL("history");
    if (out == NULL) return NBI_FAIL(&history->hooks, NB_ITEM_HISTORY_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    follow_providers(history, __func__);
    const input_slot *slot = slot_of(history, tick);
    if (slot == NULL) return refuse_tick(history);
    if (!slot->is_set || slot->tick != tick) return NB_EMPTY;
    const nb_input_event *events = slot_events(history, slot), *commands = events + history->desc.event_count_max;
    *out = (nb_history_input){
        .events = {slot->event_count != 0 ? events : NULL, slot->event_count},
        .commands = {slot->command_count != 0 ? commands : NULL, slot->command_count},
    };
    return NB_OK;
}

// --- numbers ---

nb_history_stats nb_history_stats_get(const nb_history *history) {
    if (history == NULL) {
        NBI_FAIL_NULL("history");
        return (nb_history_stats){0};
    }
    nb_history_stats stats = history->stats;
    const nbi_undo *undo = &history->undo;
    stats.has_begun = history->has_begun && !has_other_providers(history);
    stats.fallen_count = undo->fallen_count;
    stats.changed_bytes = undo->changed_bytes;
    stats.change_bytes_max = undo->size_bytes + undo->images.size_bytes;
    stats.copy_bytes = history->shadows != NULL ? history->shadows_bytes : 0;
    if (!stats.has_begun) return stats;
    stats.tick_newest = history->tick_newest;
    stats.tick_oldest = undo->tick_oldest;
    stats.tick_last = tick_last(history);
    stats.used_bytes = (size_t)(undo->head - undo->tail) + undo->images.held_bytes;
    return stats;
}
