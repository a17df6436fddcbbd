// SPDX-License-Identifier: MIT
// Where two saved states differ, and how to say it.

#include "compare.h"

#include "../../base/base.h"
#include "nebula/bytes.h"
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

uint64_t nbi_difference_word(const void *bytes, size_t size_bytes, size_t offset_bytes) {
    size_t begin = offset_bytes / sizeof(uint64_t) * sizeof(uint64_t);
    unsigned char word[sizeof(uint64_t)] = {0};
    memcpy(word, (const unsigned char *)bytes + begin, (size_t)nbi_min_u64(size_bytes - begin, sizeof word));
    return nb_bytes_get_u64(word);
}

void nbi_difference_range(nb_difference *self, const nb_difference_range *range) {
    if (self->range_count < NB_DIFFERENCE_RANGE_MAX) self->ranges[self->range_count] = *range;
    self->range_count += 1;
}

void nbi_difference_other(nb_difference *self, const char *name, const char *part) {
    nbi_line line = {self->others, sizeof self->others, strlen(self->others)};
    nbi_line_add(&line, "%s%s%s%s", line.used_bytes != 0 ? ", " : "", name, part[0] != '\0' ? "." : "", part);
}

// --- the text ---

NB_PRINTF(2, 3) void nbi_line_add(nbi_line *self, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int count = vsnprintf(self->text + self->used_bytes, self->size_bytes - self->used_bytes, format, args);
    va_end(args);
    if (count > 0) self->used_bytes = (size_t)nbi_min_u64(self->used_bytes + (size_t)count, self->size_bytes - 1);
}

static int64_t signed_of(const unsigned char *value, size_t size_bytes) {
    uint64_t bits = 0;
    memcpy(&bits, value, size_bytes); // every machine here is little-endian
    uint64_t sign = UINT64_C(1) << (8 * size_bytes - 1);
    return (int64_t)((bits ^ sign) - sign);
}

// A value whose kind is known, as a programmer would write it. False: it is not known.
static bool add_known(nbi_line *self, nb_kind kind, const unsigned char *value, size_t size_bytes) {
    if (size_bytes == 0 || size_bytes > sizeof(uint64_t)) return false;
    uint64_t bits = 0;
    float narrow = 0;
    double wide = 0;
    memcpy(&bits, value, size_bytes);
    switch (kind) {
    case NB_KIND_BOOL: nbi_line_add(self, "%s", bits != 0 ? "true" : "false"); return true;
    case NB_KIND_I8:
    case NB_KIND_I16:
    case NB_KIND_I32:
    case NB_KIND_I64: nbi_line_add(self, "%lld", (long long)signed_of(value, size_bytes)); return true;
    case NB_KIND_U8:
    case NB_KIND_U16:
    case NB_KIND_U32:
    case NB_KIND_U64: nbi_line_add(self, "%llu", nb_llu(bits)); return true;
    // So many digits tell any two numbers apart.
    case NB_KIND_F32:
        if (size_bytes != sizeof narrow) return false;
        memcpy(&narrow, value, sizeof narrow);
        nbi_line_add(self, "%.9g", (double)narrow);
        return true;
    case NB_KIND_F64:
        if (size_bytes != sizeof wide) return false;
        memcpy(&wide, value, sizeof wide);
        nbi_line_add(self, "%.17g", wide);
        return true;
    default: return false;
    }
}

// A value of the size of a number reads as one, others as bytes in their order.
static void add_value(nbi_line *self, const nb_difference *from, const unsigned char *value) {
    size_t size_bytes = from->size_bytes;
    if (add_known(self, from->value_kind, value, size_bytes)) return;
    bool is_number = size_bytes == 1 || size_bytes == 2 || size_bytes == 4 || size_bytes == 8;
    if (is_number) nbi_line_add(self, "0x");
    for (uint32_t i = 0; i < from->value_bytes; ++i) {
        nbi_line_add(self, "%02x", value[is_number ? from->value_bytes - 1 - i : i]);
    }
}

static void add_values(nbi_line *self, const nb_difference *from) {
    if (from->size_bytes > NB_DIFFERENCE_VALUE_SIZE)
        nbi_line_add(self, ", byte %zu of %zu", from->offset_bytes, from->size_bytes);
    nbi_line_add(self, ": ");
    add_value(self, from, from->here);
    nbi_line_add(self, " here, ");
    add_value(self, from, from->there);
    nbi_line_add(self, " there");
}

static void add_row(nbi_line *self, const nb_difference *from) {
    if (from->is_single) return;
    nbi_line_add(self, ", row %u", from->row);
    if (from->entity_here.value != 0 && from->entity_here.value == from->entity_there.value)
        nbi_line_add(self, " (entity 0x%llx)", nb_llu(from->entity_here.value));
}

static void add_entities(nbi_line *self, const nb_difference *from) {
    nbi_line_add(self, ": entity 0x%llx here, 0x%llx there", nb_llu(from->entity_here.value),
                 nb_llu(from->entity_there.value));
}

static void add_counts(nbi_line *self, const nb_difference *from, const char *what) {
    nbi_line_add(self, ": %llu %s here, %llu there", nb_llu(from->count_here), what, nb_llu(from->count_there));
}

static void add_bytes(nbi_line *self, const nb_difference *from) {
    size_t at = from->size_bytes <= NB_DIFFERENCE_VALUE_SIZE ? from->offset_bytes % NB_DIFFERENCE_VALUE_SIZE : 0;
    nbi_line_add(self, ": byte %zu of %llu: %02x here, %02x there", from->offset_bytes, nb_llu(from->count_here),
                 from->here[at], from->there[at]);
}

// Where one of many: how many.
static void add_rest(nbi_line *self, const nb_difference *from) {
    if (from->row_count > 1 || from->column_count > 1)
        nbi_line_add(self, " (%llu rows, %llu columns differ)", nb_llu(from->row_count), nb_llu(from->column_count));
}

// One byte that is all has been said already; so has one row.
static void add_ranges(nbi_line *self, const nb_difference *from) {
    uint64_t count = from->range_count, listed = nbi_min_u64(count, NB_DIFFERENCE_RANGE_MAX);
    bool is_value = from->kind == NB_DIFFERENCE_VALUE;
    if (count < 2 && (is_value || from->differing_bytes < 2)) return;
    if (!is_value) nbi_line_add(self, "; %llu ranges, %llu bytes differ", nb_llu(count), nb_llu(from->differing_bytes));
    // The first row stands in front.
    for (uint64_t i = is_value ? 1 : 0; i < listed; ++i) {
        const nb_difference_range *range = &from->ranges[i];
        if (range->row != UINT32_MAX)
            nbi_line_add(self, "; row %u: 0x%llx here, 0x%llx there", range->row, nb_llu(range->here),
                         nb_llu(range->there));
        else
            nbi_line_add(self, "; %zu to %zu: word 0x%016llx here, 0x%016llx there", range->offset_bytes,
                         range->offset_bytes + range->size_bytes - 1, nb_llu(range->here), nb_llu(range->there));
    }
    if (count > listed) nbi_line_add(self, "; %llu more", nb_llu(count - listed));
}

static void add_others(nbi_line *self, const nb_difference *from) {
    if (from->others[0] != '\0') nbi_line_add(self, "; also %s", from->others);
}

void nbi_difference_describe(nb_difference *self) {
    nbi_line out = {.text = self->text, .size_bytes = sizeof self->text};
    nbi_line_add(&out, "%s", self->provider);
    if (self->table[0] != '\0') nbi_line_add(&out, ": %s", self->table);
    if (self->column[0] != '\0' && !self->is_single) nbi_line_add(&out, ".%s", self->column);
    if (self->member[0] != '\0') nbi_line_add(&out, "%s%s", self->member[0] == '[' ? "" : ".", self->member);
    switch (self->kind) {
    case NB_DIFFERENCE_BYTES: add_bytes(&out, self); break;
    case NB_DIFFERENCE_SIZE: add_counts(&out, self, "bytes"); break;
    case NB_DIFFERENCE_VALUE: add_row(&out, self), add_values(&out, self), add_rest(&out, self); break;
    case NB_DIFFERENCE_ROW_COUNT: add_counts(&out, self, "rows"), add_row(&out, self), add_entities(&out, self); break;
    case NB_DIFFERENCE_ROW_ORDER: add_row(&out, self), add_entities(&out, self); break;
    case NB_DIFFERENCE_TELEPORT:
        add_row(&out, self), nbi_line_add(&out, ", teleport mark"), add_values(&out, self);
        break;
    case NB_DIFFERENCE_HANDLES: nbi_line_add(&out, ": the same rows, other handles to come"); break;
    default: break;
    }
    add_ranges(&out, self);
    add_others(&out, self);
}

// --- comparing ---

// The range that begins with this byte: equal bytes within a word do not end it. Returns its end.
static size_t add_range(nb_difference *out, const unsigned char *here, const unsigned char *there, size_t size_bytes,
                        size_t begin) {
    size_t last = begin;
    for (size_t at = begin; at < size_bytes && at - last < sizeof(uint64_t); ++at) {
        if (here[at] == there[at]) continue;
        last = at;
        out->differing_bytes += 1;
    }
    nbi_difference_range(out, &(nb_difference_range){.offset_bytes = begin,
                                                     .size_bytes = last + 1 - begin,
                                                     .row = UINT32_MAX,
                                                     .here = nbi_difference_word(here, size_bytes, begin),
                                                     .there = nbi_difference_word(there, size_bytes, begin)});
    return last + 1;
}

static void add_all_ranges(nb_difference *out, const nbi_saved_part *here, const nbi_saved_part *there, size_t shared) {
    for (size_t at = out->offset_bytes; at < shared;) {
        at = add_range(out, here->bytes, there->bytes, shared, at);
        at += nbi_differ_at(here->bytes + at, there->bytes + at, shared - at);
    }
}

static bool is_same_part(const nbi_saved_part *here, const nbi_saved_part *there) {
    return here->size_bytes == there->size_bytes &&
           (here->size_bytes == 0 || memcmp(here->bytes, there->bytes, here->size_bytes) == 0);
}

// What can be said without knowing what the bytes mean.
static void compare_bytes(const nbi_saved_part *here, const nbi_saved_part *there, nb_difference *out) {
    size_t shared = (size_t)nbi_min_u64(here->size_bytes, there->size_bytes);
    size_t at = nbi_differ_at(here->bytes, there->bytes, shared);
    out->kind = at == shared ? NB_DIFFERENCE_SIZE : NB_DIFFERENCE_BYTES;
    out->count_here = here->size_bytes;
    out->count_there = there->size_bytes;
    out->offset_bytes = at;
    if (at != shared) nbi_difference_value(out, here->bytes, there->bytes, shared, at);
    add_all_ranges(out, here, there, shared);
}

// The first provider that differs, where it is asked for the place.
static nb_result compare_part(const nbi_saved_part *here, const nbi_saved_part *there, const nb_provider_desc *desc,
                              const char *name, nb_difference *out) {
    nb_result result = NB_OK;
    compare_bytes(here, there, out);
    if (desc->locate != NULL) {
        nb_difference located = *out;
        result = desc->locate(desc->user, here->bytes, here->size_bytes, there->bytes, there->size_bytes, &located);
        if (result == NB_OK) *out = located;
    }
    snprintf(out->provider, sizeof out->provider, "%s", name);
    out->table[sizeof out->table - 1] = out->column[sizeof out->column - 1] = '\0';
    out->others[sizeof out->others - 1] = out->member[sizeof out->member - 1] = '\0';
    if (out->value_bytes < out->size_bytes) out->value_kind = NB_KIND_BYTES; // a number is kept whole
    out->value_bytes = (uint32_t)nbi_min_u64(out->value_bytes, NB_DIFFERENCE_VALUE_SIZE);
    return result < 0 ? result : NB_OK;
}

static nb_result compare_all(const nb_states *states, const void *here, const void *there, nb_difference *out) {
    nbi_saved_part a = {0}, b = {0};
    nb_result result = NB_OK;
    uint32_t count = 0;
    while (result == NB_OK && nbi_saved_part_next(states, here, &a) && nbi_saved_part_next(states, there, &b)) {
        if (is_same_part(&a, &b)) continue;
        const char *name = NULL;
        const nb_provider_desc *desc = nbi_states_desc_at(states, a.provider_end - 1, &name);
        if (count++ == 0)
            result = compare_part(&a, &b, desc, name, out);
        else
            nbi_difference_other(out, name, "");
    }
    out->provider_count = count;
    return result == NB_OK && count == 0 ? NB_EMPTY : result;
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
