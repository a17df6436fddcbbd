// SPDX-License-Identifier: MIT
#include "desc.h"

#include <string.h>

static uint64_t number_get(const nbi_desc_number *number, const void *desc) {
    const unsigned char *at = (const unsigned char *)desc + number->offset_bytes;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    if (number->size_bytes == sizeof wide) memcpy(&wide, at, sizeof wide);
    if (number->size_bytes == sizeof narrow) memcpy(&narrow, at, sizeof narrow);
    return wide | narrow;
}

static void number_set(const nbi_desc_number *number, void *desc, uint64_t value) {
    unsigned char *at = (unsigned char *)desc + number->offset_bytes;
    uint32_t narrow = (uint32_t)value;
    if (number->size_bytes == sizeof value) memcpy(at, &value, sizeof value);
    if (number->size_bytes == sizeof narrow) memcpy(at, &narrow, sizeof narrow);
}

void nbi_desc_fill(const nbi_desc_rules *rules, void *desc) {
    for (uint32_t i = 0; i < rules->count; ++i) {
        const nbi_desc_number *number = &rules->numbers[i];
        if (number_get(number, desc) == 0) number_set(number, desc, number->zero_means);
    }
}

nb_result nbi_desc_check(const nbi_desc_rules *rules, const void *desc, const nbi_desc_place *place) {
    const char *where = place->desc != NULL ? place->desc : rules->type;
    for (uint32_t i = 0; i < rules->count; ++i) {
        const nbi_desc_number *number = &rules->numbers[i];
        uint64_t value = number_get(number, desc);
        if (value >= number->least && value <= number->most) continue;
        return nbi_fail(place->hooks, place->item, NB_ERR_RANGE, place->function,
                        "%s.%s is %llu; %llu to %llu are possible", where, number->name, nb_llu(value),
                        nb_llu(number->least), nb_llu(number->most));
    }
    return NB_OK;
}
