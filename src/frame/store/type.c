// SPDX-License-Identifier: MIT
// Descriptions of structs: whether they name every byte that is not padding, and where their values are.

#include "type.h"

#include <stdio.h>
#include <string.h>

#include "../../base/base.h"

#define REFUSE(result, ...) nbi_fail(hooks, NB_ITEM_STORE_TYPE, (result), "nb_type_check", __VA_ARGS__)

static uint32_t round_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

static bool is_named(const char *name) {
    return name != NULL && name[0] != 0 && memchr(name, 0, NB_STORE_NAME_SIZE) != NULL;
}

// The members in the order of their offsets: the one behind `last`, or the first for NULL; NULL at the end.
static const nb_member *next_member(const nb_type *type, const nb_member *last) {
    const nb_member *found = NULL;
    for (uint32_t i = 0; i < type->member_count; ++i) {
        const nb_member *member = &type->members[i];
        bool is_behind = last == NULL || member->offset_bytes > last->offset_bytes ||
                         (member->offset_bytes == last->offset_bytes && member > last);
        if (is_behind && (found == NULL || member->offset_bytes < found->offset_bytes)) found = member;
    }
    return found;
}

// What a value of this kind takes; 0 = any number of bytes.
static uint32_t kind_bytes(nb_kind kind) {
    static const uint8_t bytes[NB_KIND_COUNT] = {
        [NB_KIND_BOOL] = 1, [NB_KIND_I8] = 1,  [NB_KIND_U8] = 1,  [NB_KIND_I16] = 2,
        [NB_KIND_U16] = 2,  [NB_KIND_I32] = 4, [NB_KIND_U32] = 4, [NB_KIND_I64] = 8,
        [NB_KIND_U64] = 8,  [NB_KIND_F32] = 4, [NB_KIND_F64] = 8, [NB_KIND_ENTITY] = 8};
    return bytes[kind];
}

static nb_result check_place(const nb_type *type, const nb_member *member, const nb_hooks *hooks) {
    bool is_inside = member->size_bytes > 0 && member->offset_bytes < type->size_bytes &&
                     member->size_bytes <= type->size_bytes - member->offset_bytes;
    // Rows begin on a cache line.
    bool is_aligned = nbi_is_power_of_two(member->align_bytes) && member->align_bytes <= NB_CACHE_LINE;
    if (is_inside && is_aligned) return NB_OK;
    return REFUSE(
        NB_ERR_RANGE,
        "type \"%s\": member \"%s\" has offset %u, size %u and alignment %u in %u bytes; alignments end at %d",
        type->name, member->name, member->offset_bytes, member->size_bytes, member->align_bytes, type->size_bytes,
        NB_CACHE_LINE);
}

static nb_result check_kind(const nb_type *type, const nb_member *member, const nb_hooks *hooks) {
    if ((uint32_t)member->kind >= NB_KIND_COUNT) {
        return REFUSE(NB_ERR_MISUSE, "type \"%s\": member \"%s\" has unknown kind %d", type->name, member->name,
                      (int)member->kind);
    }
    const nb_type *inner = member->type != NULL ? member->type() : NULL;
    if ((inner != NULL) != (member->kind == NB_KIND_STRUCT)) {
        return REFUSE(NB_ERR_MISUSE, "type \"%s\": member \"%s\" is a struct without a type, or the reverse",
                      type->name, member->name);
    }
    uint32_t bytes = inner != NULL ? inner->size_bytes : kind_bytes(member->kind);
    bool is_array_of = inner != NULL && bytes != 0 && member->size_bytes % bytes == 0;
    if (is_array_of || (inner == NULL && (bytes == 0 || bytes == member->size_bytes))) return NB_OK;
    return REFUSE(NB_ERR_MISUSE, "type \"%s\": member \"%s\" has %u bytes, and its type or kind has %u", type->name,
                  member->name, member->size_bytes, bytes);
}

static nb_result check_flags(const nb_type *type, const nb_member *member, uint32_t depth, const nb_hooks *hooks) {
    uint32_t known = depth == 0 ? NB_INTERPOLATE | NB_TICK_ONLY | NB_LOCAL : 0;
    bool is_both = (member->flags & NB_TICK_ONLY) != 0 && (member->flags & NB_LOCAL) != 0;
    if ((member->flags & ~known) == 0 && !is_both) return NB_OK;
    return REFUSE(NB_ERR_MISUSE, "type \"%s\": member \"%s\" has flags 0x%x, which contradict or mean nothing here",
                  type->name, member->name, member->flags);
}

static nb_result check_member(const nb_type *type, const nb_member *member, uint32_t depth, const nb_hooks *hooks) {
    if (!is_named(member->name)) {
        return REFUSE(NB_ERR_MISUSE, "type \"%s\": a member has no name of 1 to %d bytes", type->name,
                      NB_STORE_NAME_SIZE - 1);
    }
    nb_result result = check_place(type, member, hooks);
    if (result == NB_OK) result = check_flags(type, member, depth, hooks);
    return result == NB_OK ? check_kind(type, member, hooks) : result;
}

// Bytes that belong to no member, but for the padding in front of what needs an alignment.
static nb_result refuse_gap(const nb_type *type, uint32_t from, uint32_t to, const nb_hooks *hooks) {
    return REFUSE(NB_ERR_MISUSE, "type \"%s\": bytes %u to %u belong to no member; name all members of the struct",
                  type->name, from, to - 1);
}

static nb_result check_coverage(const nb_type *type, const nb_hooks *hooks) {
    uint32_t end = 0, align = 1;
    const nb_member *member = NULL;
    while ((member = next_member(type, member)) != NULL) {
        if (member->offset_bytes < end) {
            return REFUSE(NB_ERR_MISUSE, "type \"%s\": member \"%s\" begins inside another one; name each member once",
                          type->name, member->name);
        }
        if (member->offset_bytes != round_up(end, member->align_bytes))
            return refuse_gap(type, end, member->offset_bytes, hooks);
        end = member->offset_bytes + member->size_bytes;
        if (member->align_bytes > align) align = member->align_bytes;
    }
    return round_up(end, align) == type->size_bytes ? NB_OK : refuse_gap(type, end, type->size_bytes, hooks);
}

static nb_result check(const nb_type *type, uint32_t depth, const nb_hooks *hooks) {
    if (type == NULL || !is_named(type->name) || type->members == NULL || type->member_count == 0) {
        return REFUSE(NB_ERR_MISUSE, "a type is NULL, or has no name of 1 to %d bytes or no members",
                      NB_STORE_NAME_SIZE - 1);
    }
    if (depth == NB_TYPE_DEPTH_MAX) {
        return REFUSE(NB_ERR_RANGE, "type \"%s\" is more than %u structs deep", type->name, NB_TYPE_DEPTH_MAX);
    }
    nb_result result = NB_OK;
    for (uint32_t i = 0; i < type->member_count && result == NB_OK; ++i) {
        const nb_member *member = &type->members[i];
        result = check_member(type, member, depth, hooks);
        if (result == NB_OK && member->kind == NB_KIND_STRUCT) result = check(member->type(), depth + 1, hooks);
    }
    return result == NB_OK ? check_coverage(type, hooks) : result;
}

nb_result nb_type_check(const nb_type *type, const nb_hooks *hooks) {
    nb_hooks resolved = nbi_hooks_resolve(hooks != NULL ? hooks : &(nb_hooks){0});
    return check(type, 0, &resolved);
}

static bool add_leaf(const nb_member *member, uint32_t offset_bytes, const char *name, nbi_leaves *out) {
    if (out->count == out->count_max) return false;
    nbi_leaf *leaf = &out->all[out->count++];
    *leaf = (nbi_leaf){.offset_bytes = offset_bytes, .size_bytes = member->size_bytes, .kind = member->kind};
    snprintf(leaf->name, sizeof leaf->name, "%.*s", NB_STORE_NAME_SIZE - 1, name);
    return true;
}

// A struct, or an array of them.
static bool add_structs(const nb_member *member, uint32_t offset_bytes, const char *name, nbi_leaves *out) {
    const nb_type *inner = member->type();
    uint32_t count = member->size_bytes / inner->size_bytes;
    for (uint32_t i = 0; i < count; ++i) {
        char element[2 * NB_STORE_NAME_SIZE];
        snprintf(element, sizeof element, count > 1 ? "%s[%u]" : "%s", name, i);
        if (!nbi_type_leaves(inner, offset_bytes + i * inner->size_bytes, element, out)) return false;
    }
    return true;
}

bool nbi_type_leaves(const nb_type *type, uint32_t base_bytes, const char *name, nbi_leaves *out) {
    for (uint32_t i = 0; i < type->member_count; ++i) {
        const nb_member *member = &type->members[i];
        uint32_t at = base_bytes + member->offset_bytes;
        char full[2 * NB_STORE_NAME_SIZE];
        snprintf(full, sizeof full, "%.*s%s%s", NB_STORE_NAME_SIZE, name, name[0] != 0 ? "." : "", member->name);
        bool is_added =
            member->kind == NB_KIND_STRUCT ? add_structs(member, at, full, out) : add_leaf(member, at, full, out);
        if (!is_added) return false;
    }
    return true;
}
