// SPDX-License-Identifier: MIT
// An append-only hash table. Names and entries never change once a slot of the index points to them, so lookups read
// without a lock; only adding takes one.

#include "nebula/label.h"

#include "nebula/hash.h"

#include "base.h"
#include "lock.h"

#include <stdio.h>
#include <string.h>

// Some ten times the distinct span, task and channel names of a large game; 200 KiB in all.
#define LABEL_COUNT_DEFAULT 4096
// Names are words: 16 bytes is typical, twice that leaves room.
#define NAME_BYTES_PER_LABEL 32

typedef struct entry {
    uint64_t hash;
    uint32_t offset;     // into bytes
    uint32_t size_bytes; // without the final zero
} entry;

struct nb_labels {
    nb_hooks hooks;
    size_t memory_bytes;
    uint32_t label_count_max;
    uint32_t name_bytes_max;
    uint32_t index_mask;
    nb_atomic_u32 *index; // open addressing by hash: a label id, or 0; at most half full, so every search ends
    entry *entries;       // by id - 1
    char *bytes;
    nbi_lock lock;             // serialises adding: entries beyond label_count, bytes beyond name_bytes, empty slots
    nb_atomic_u32 label_count; // written under the lock
    nb_atomic_u32 name_bytes;  // written under the lock
    nb_atomic_u64 full_count;
};

nb_labels_desc nb_labels_desc_default(void) {
    return (nb_labels_desc){
        .label_count_max = LABEL_COUNT_DEFAULT,
        .name_bytes_max = LABEL_COUNT_DEFAULT * NAME_BYTES_PER_LABEL,
        .hooks = nb_hooks_default(),
    };
}

static uint32_t index_count_for(uint32_t label_count_max) {
    uint32_t count = 2;
    while (count < 2 * label_count_max) count *= 2; // label_count_max <= 2^20: cannot wrap
    return count;
}

// Lays struct, entries, index and bytes out in one allocation, in order of falling alignment.
static nb_labels *allocate(const nb_hooks *hooks, uint32_t label_count_max, uint32_t name_bytes_max) {
    uint32_t index_count = index_count_for(label_count_max);
    size_t entries_bytes = label_count_max * sizeof(entry);
    size_t index_bytes = index_count * sizeof(nb_atomic_u32);
    size_t memory_bytes = sizeof(nb_labels) + entries_bytes + index_bytes;
    if (!nbi_size_add(memory_bytes, name_bytes_max, &memory_bytes)) return NULL;
    char *memory = (char *)nbi_alloc(hooks, memory_bytes, NB_ALIGNOF(nb_labels), "nb_labels_create");
    if (memory == NULL) return NULL;
    nb_labels *labels = (nb_labels *)(void *)memory;
    *labels = (nb_labels){
        .hooks = *hooks,
        .memory_bytes = memory_bytes,
        .label_count_max = label_count_max,
        .name_bytes_max = name_bytes_max,
        .index_mask = index_count - 1,
        .entries = (entry *)(void *)(memory + sizeof(nb_labels)),
        .index = (nb_atomic_u32 *)(void *)(memory + sizeof(nb_labels) + entries_bytes),
        .bytes = memory + sizeof(nb_labels) + entries_bytes + index_bytes,
    };
    memset(labels->index, 0, index_bytes);
    return labels;
}

NB_STATIC_ASSERT(sizeof(nb_labels) % NB_ALIGNOF(entry) == 0, "entries follow the struct directly");
NB_STATIC_ASSERT(sizeof(entry) % NB_ALIGNOF(nb_atomic_u32) == 0, "the index follows the entries directly");

nb_result nb_labels_create(const nb_labels_desc *desc, nb_labels **out) {
    nb_labels_desc asked = desc != NULL ? *desc : (nb_labels_desc){0};
    nb_hooks hooks = nbi_hooks_resolve(&asked.hooks);
    if (out == NULL) return NBI_FAIL(&hooks, NB_ITEM_LABEL_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    if (asked.label_count_max == 0) asked.label_count_max = LABEL_COUNT_DEFAULT;
    if (asked.label_count_max > NB_LABEL_COUNT_MAX) {
        return NBI_FAIL(&hooks, NB_ITEM_LABEL_ARGUMENT, NB_ERR_RANGE, "label_count_max %u is more than %u",
                        asked.label_count_max, NB_LABEL_COUNT_MAX);
    }
    if (asked.name_bytes_max == 0) asked.name_bytes_max = asked.label_count_max * NAME_BYTES_PER_LABEL;
    nb_labels *labels = allocate(&hooks, asked.label_count_max, asked.name_bytes_max);
    if (labels == NULL) return NB_ERR_MEMORY;
    *out = labels;
    return NB_OK;
}

static bool is_entry(const nb_labels *labels, uint32_t id, const char *name, size_t size, uint64_t hash) {
    const entry *found = &labels->entries[id - 1];
    return found->hash == hash && found->size_bytes == size && memcmp(labels->bytes + found->offset, name, size) == 0;
}

// The id of a name, or 0 with *slot at the empty slot where it belongs. Needs no lock: a slot goes from 0 to its id
// once, and what it points to was complete by then. A 0 read without the lock may be out of date.
static uint32_t find(const nb_labels *labels, const char *name, size_t size, uint64_t hash, uint32_t *slot) {
    uint32_t position = (uint32_t)hash & labels->index_mask;
    for (;;) { // ends at an empty slot at the latest: half of them are
        uint32_t id = nbi_atomic_load_acquire_u32(&labels->index[position]);
        if (id != 0 && is_entry(labels, id, name, size, hash)) return id;
        if (id == 0) {
            *slot = position;
            return 0;
        }
        position = (position + 1) & labels->index_mask;
    }
}

// Appends the name and publishes it at the empty slot; 0 when the table is full. Under the lock.
static uint32_t append(nb_labels *labels, const char *name, size_t size, uint64_t hash, uint32_t slot) {
    uint32_t count = nbi_atomic_load_relaxed_u32(&labels->label_count);
    uint32_t offset = nbi_atomic_load_relaxed_u32(&labels->name_bytes);
    if (count == labels->label_count_max || size + 1 > labels->name_bytes_max - offset) return 0;
    uint32_t id = count + 1;
    labels->entries[count] = (entry){.hash = hash, .offset = offset, .size_bytes = (uint32_t)size};
    memcpy(labels->bytes + offset, name, size + 1);
    nbi_atomic_store_relaxed_u32(&labels->name_bytes, offset + (uint32_t)size + 1);
    // Publishes the entry and its bytes; read by the acquire load in nb_labels_name.
    nbi_atomic_store_release_u32(&labels->label_count, id);
    // Publishes the same to lookups; read by the acquire load in find.
    nbi_atomic_store_release_u32(&labels->index[slot], id);
    return id;
}

static uint32_t add(nb_labels *labels, const char *name, size_t size, uint64_t hash) {
    uint32_t slot = 0;
    nbi_lock_acquire(&labels->lock);
    // Again, now that nobody else adds: another thread may have added the name since the lookup without the lock.
    uint32_t id = find(labels, name, size, hash, &slot);
    if (id == 0) id = append(labels, name, size, hash, slot);
    nbi_lock_release(&labels->lock);
    return id;
}

static nb_result report_full(nb_labels *labels, const char *name) {
    if (nbi_atomic_fetch_add_relaxed_u64(&labels->full_count, 1) == 0) {
        nbi_log(&labels->hooks, NB_LOG_WARNING, NB_ITEM_LABEL_FULL, "nb_labels_intern",
                "no room for \"%s\" (%u labels, %u name bytes at most); further refusals are only counted", name,
                labels->label_count_max, labels->name_bytes_max);
    }
    return NB_FULL;
}

nb_result nb_labels_intern(nb_labels *labels, const char *name, nb_label *out) {
    if (labels == NULL) return NBI_FAIL_NULL("labels");
    if (name == NULL || out == NULL) {
        return NBI_FAIL(&labels->hooks, NB_ITEM_LABEL_ARGUMENT, NB_ERR_MISUSE, "name or out is NULL");
    }
    size_t size = 0;
    while (size <= NB_LABEL_SIZE_MAX && name[size] != '\0') ++size;
    if (size > NB_LABEL_SIZE_MAX) {
        return NBI_FAIL(&labels->hooks, NB_ITEM_LABEL_ARGUMENT, NB_ERR_RANGE, "name longer than %d bytes: \"%.32s...\"",
                        NB_LABEL_SIZE_MAX, name);
    }
    uint32_t id = 0; // the null label for ""
    if (size != 0) {
        uint32_t slot = 0;
        uint64_t hash = nb_hash64(name, size, 0);
        id = find(labels, name, size, hash, &slot);
        if (id == 0) id = add(labels, name, size, hash);
        if (id == 0) return report_full(labels, name);
    }
    out->id = id;
    return NB_OK;
}

const char *nb_labels_name(const nb_labels *labels, nb_label label) {
    if (labels == NULL) {
        NBI_FAIL_NULL("labels");
        return "?";
    }
    if (label.id == 0) return "";
    if (label.id > nbi_atomic_load_acquire_u32(&labels->label_count)) {
        NBI_FAIL(&labels->hooks, NB_ITEM_LABEL_ARGUMENT, NB_ERR_MISUSE, "label %u is not of this table", label.id);
        return "?";
    }
    return labels->bytes + labels->entries[label.id - 1].offset;
}

const char *nbi_label_text(const nb_labels *labels, nb_label label, char number[NBI_LABEL_NUMBER_SIZE]) {
    if (label.id == 0) return "unlabelled";
    if (labels != NULL) return nb_labels_name(labels, label);
    snprintf(number, NBI_LABEL_NUMBER_SIZE, "#%u", (unsigned)label.id);
    return number;
}

nb_labels_stats nb_labels_stats_get(const nb_labels *labels) {
    if (labels == NULL) {
        NBI_FAIL_NULL("labels");
        return (nb_labels_stats){0};
    }
    return (nb_labels_stats){
        .label_count = nbi_atomic_load_relaxed_u32(&labels->label_count),
        .label_count_max = labels->label_count_max,
        .name_bytes = nbi_atomic_load_relaxed_u32(&labels->name_bytes),
        .name_bytes_max = labels->name_bytes_max,
        .full_count = nbi_atomic_load_relaxed_u64(&labels->full_count),
    };
}

void nb_labels_destroy(nb_labels *labels) {
    if (labels == NULL) return;
    nb_hooks hooks = labels->hooks;
    nbi_free(&hooks, labels, labels->memory_bytes);
}
