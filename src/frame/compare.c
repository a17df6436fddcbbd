// SPDX-License-Identifier: MIT
// Where two saved states differ, and how to say it.

#include "compare.h"

#include "../base/base.h"
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// --- bytes ---

size_t nbi_differ_at(const void *here, const void *there, size_t size_bytes) {
    const unsigned char *a = here, *b = there;
    size_t at = 0;
    if (size_bytes == 0 || memcmp(a, b, size_bytes) == 0) return size_bytes;
    while (a[at] == b[at]) ++at;
    return at;
}

void nbi_difference_value(nb_difference *self, const unsigned char *here, const unsigned char *there, size_t size_bytes,
                          size_t offset_bytes) {
    size_t begin = size_bytes <= NB_DIFFERENCE_VALUE_SIZE ? 0 : offset_bytes;
    self->size_bytes = size_bytes;
    self->offset_bytes = offset_bytes;
    self->value_bytes = (uint32_t)nbi_min_u64(size_bytes - begin, NB_DIFFERENCE_VALUE_SIZE);
    memcpy(self->here, here + begin, self->value_bytes);
    memcpy(self->there, there + begin, self->value_bytes);
}

// --- the text ---

typedef struct line {
    char *text;
    size_t size_bytes, used_bytes;
} line;

NB_PRINTF(2, 3) static void add(line *self, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int count = vsnprintf(self->text + self->used_bytes, self->size_bytes - self->used_bytes, format, args);
    va_end(args);
    if (count > 0) self->used_bytes = (size_t)nbi_min_u64(self->used_bytes + (size_t)count, self->size_bytes - 1);
}

// A value of the size of a number reads as one, others as bytes in their order.
static void add_value(line *self, const nb_difference *from, const unsigned char *value) {
    size_t size_bytes = from->size_bytes;
    bool is_number = size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
    if (is_number) add(self, "0x");
    for (uint32_t i = 0; i < from->value_bytes; ++i) {
        add(self, "%02x", value[is_number ? from->value_bytes - 1 - i : i]);
    }
}

static void add_values(line *self, const nb_difference *from) {
    if (from->size_bytes > NB_DIFFERENCE_VALUE_SIZE)
        add(self, ", byte %zu of %zu", from->offset_bytes, from->size_bytes);
    add(self, ": ");
    add_value(self, from, from->here);
    add(self, " here, ");
    add_value(self, from, from->there);
    add(self, " there");
}

static void add_row(line *self, const nb_difference *from) {
    add(self, ", row %u", from->row);
    if (from->entity_here.value != 0 && from->entity_here.value == from->entity_there.value)
        add(self, " (entity 0x%llx)", (unsigned long long)from->entity_here.value);
}

static void add_entities(line *self, const nb_difference *from) {
    add(self, ": entity 0x%llx here, 0x%llx there", (unsigned long long)from->entity_here.value,
        (unsigned long long)from->entity_there.value);
}

static void add_counts(line *self, const nb_difference *from, const char *what) {
    add(self, ": %llu %s here, %llu there", (unsigned long long)from->count_here, what,
        (unsigned long long)from->count_there);
}

static void add_bytes(line *self, const nb_difference *from) {
    size_t at = from->size_bytes <= NB_DIFFERENCE_VALUE_SIZE ? from->offset_bytes % NB_DIFFERENCE_VALUE_SIZE : 0;
    add(self, ": byte %zu of %llu: %02x here, %02x there", from->offset_bytes, (unsigned long long)from->count_here,
        from->here[at], from->there[at]);
}

// Where one of many: how many.
static void add_rest(line *self, const nb_difference *from) {
    if (from->row_count > 1 || from->column_count > 1)
        add(self, " (%llu rows, %llu columns differ)", (unsigned long long)from->row_count,
            (unsigned long long)from->column_count);
}

void nbi_difference_describe(nb_difference *self) {
    line out = {.text = self->text, .size_bytes = sizeof self->text};
    add(&out, "%s", self->provider);
    if (self->table[0] != '\0') add(&out, ": %s", self->table);
    if (self->column[0] != '\0') add(&out, ".%s", self->column);
    switch (self->kind) {
    case NB_DIFFERENCE_BYTES: add_bytes(&out, self); break;
    case NB_DIFFERENCE_SIZE: add_counts(&out, self, "bytes"); break;
    case NB_DIFFERENCE_VALUE: add_row(&out, self), add_values(&out, self), add_rest(&out, self); break;
    case NB_DIFFERENCE_ROW_COUNT: add_counts(&out, self, "rows"), add_row(&out, self), add_entities(&out, self); break;
    case NB_DIFFERENCE_ROW_ORDER: add_row(&out, self), add_entities(&out, self); break;
    case NB_DIFFERENCE_TELEPORT: add_row(&out, self), add(&out, ", teleport mark"), add_values(&out, self); break;
    case NB_DIFFERENCE_HANDLES: add(&out, ": the same rows, other handles to come"); break;
    default: break;
    }
}

// --- comparing ---

// What can be said without knowing what the bytes mean.
static bool compare_bytes(const nbi_saved_part *here, const nbi_saved_part *there, nb_difference *out) {
    size_t shared = (size_t)nbi_min_u64(here->size_bytes, there->size_bytes);
    size_t at = nbi_differ_at(here->bytes, there->bytes, shared);
    if (at == shared && here->size_bytes == there->size_bytes) return false;
    out->kind = at == shared ? NB_DIFFERENCE_SIZE : NB_DIFFERENCE_BYTES;
    out->count_here = here->size_bytes;
    out->count_there = there->size_bytes;
    out->offset_bytes = at;
    if (at != shared) nbi_difference_value(out, here->bytes, there->bytes, shared, at);
    return true;
}

static nb_result compare_all(const nb_states *states, const void *here, const void *there, nb_difference *out) {
    nbi_saved_part a = {0}, b = {0};
    bool is_other = false;
    while (!is_other && nbi_saved_part_next(states, here, &a) && nbi_saved_part_next(states, there, &b)) {
        is_other = compare_bytes(&a, &b, out);
    }
    if (!is_other) return NB_EMPTY;
    const char *name = NULL;
    const nb_state_desc *desc = nbi_states_desc_at(states, a.provider_end - 1, &name);
    nb_result result = NB_OK;
    if (desc->locate != NULL) {
        nb_difference told = *out;
        result = desc->locate(desc->user, a.bytes, a.size_bytes, b.bytes, b.size_bytes, &told);
        if (result == NB_OK) *out = told;
    }
    snprintf(out->provider, sizeof out->provider, "%s", name);
    out->table[sizeof out->table - 1] = out->column[sizeof out->column - 1] = '\0';
    out->value_bytes = (uint32_t)nbi_min_u64(out->value_bytes, NB_DIFFERENCE_VALUE_SIZE);
    return result < 0 ? result : NB_OK;
}

static nb_result check_both(const nb_states *states, const void *here, size_t here_bytes, const void *there,
                            size_t there_bytes) {
    nb_result result = nbi_states_check(states, here, here_bytes);
    return result == NB_OK ? nbi_states_check(states, there, there_bytes) : result;
}

nb_result nb_states_compare(const nb_states *states, const void *here, size_t here_bytes, const void *there,
                            size_t there_bytes, nb_difference *out) {
    if (states == NULL) return NBI_FAIL_NULL("states");
    const nb_hooks *hooks = nbi_states_hooks(states);
    if (here == NULL || there == NULL || out == NULL)
        return NBI_FAIL(hooks, NB_ITEM_STATE_ARGUMENT, NB_ERR_MISUSE, "here, there or out is NULL");
    nb_result result = check_both(states, here, here_bytes, there, there_bytes);
    if (result != NB_OK) return NBI_FAIL(hooks, NB_ITEM_STATE_SAVE, result, "not a save of these providers");
    nb_difference found = {0};
    result = compare_all(states, here, there, &found);
    if (result != NB_OK) return result;
    nbi_difference_describe(&found);
    *out = found;
    return NB_OK;
}
