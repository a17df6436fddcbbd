// SPDX-License-Identifier: MIT
#pragma once

// The numbers of a desc: one table per desc says what 0 means and how small and large each may be. Defaults, checks and
// the texts of refusals all come from it.
//
//     static const nbi_desc_number numbers[] = {NBI_NUMBER(nb_thing_desc, count_max, 64, 1, 1024)};
//     const nbi_desc_rules nbi_thing_rules = NBI_RULES(nb_thing_desc, numbers);

#include "base.h"

typedef struct nbi_desc_number {
    const char *name;
    uint32_t offset_bytes, size_bytes; // 4 or 8 bytes, without a sign
    uint64_t zero_means;
    uint64_t least, most;
} nbi_desc_number;

typedef struct nbi_desc_rules {
    const char *type;
    const nbi_desc_number *numbers;
    uint32_t count;
} nbi_desc_rules;

#define NBI_NUMBER(type, member, zero_means, least, most) \
    { #member, (uint32_t)offsetof(type, member), (uint32_t)sizeof(((type *)0)->member), (zero_means), (least), (most) }
#define NBI_RULES(type, numbers) \
    { #type, numbers, (uint32_t)(sizeof(numbers) / sizeof((numbers)[0])) }

// Puts its default into each number that is 0.
void nbi_desc_fill(const nbi_desc_rules *rules, void *desc);

// What a refusal of `function` names.
typedef struct nbi_desc_place {
    const nb_hooks *hooks;
    nb_log_item item;
    const char *function;
    const char *desc; // where the user has set the fields, such as "nb_engine_desc.history"; NULL = the desc's own type
} nbi_desc_place;

// NB_ERR_RANGE, with the field, its value and its range, for the first number that is out of its range.
nb_result nbi_desc_check(const nbi_desc_rules *rules, const void *desc, const nbi_desc_place *place);
