// SPDX-License-Identifier: MIT
// Orders for null devices: which call is to fail, and when.

#include "null.h"

#include "nebula/report.h"

#include <string.h>

struct nb_gpu_null {
    nb_hooks hooks;
    struct {
        nb_gpu_null_fault fault;
        uint32_t after;
    } orders[NB_GPU_NULL_ORDER_COUNT_MAX];
    uint32_t order_count;
    uint32_t object_count;
};

nb_result nb_gpu_null_create(const nb_hooks *hooks, nb_gpu_null **out) {
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_hooks resolved = nb_hooks_resolve(hooks);
    nb_gpu_null *control = nb_hooks_alloc(&resolved, sizeof *control, NB_CACHE_LINE, __func__);
    if (control == NULL) return NB_ERR_MEMORY;
    memset(control, 0, sizeof *control);
    control->hooks = resolved;
    *out = control;
    return NB_OK;
}

void nb_gpu_null_destroy(nb_gpu_null *control) {
    if (control == NULL) return;
    nb_hooks hooks = control->hooks;
    nb_hooks_free(&hooks, control, sizeof *control);
}

nb_result nb_gpu_null_fail(nb_gpu_null *control, nb_gpu_null_fault fault, uint32_t after) {
    if (control == NULL) return NB_FAIL_NULL("control");
    if (fault <= NB_GPU_NULL_NONE || fault >= NB_GPU_NULL_FAULT_COUNT)
        return nb_report_mistake(&control->hooks, NB_ITEM_GPU_ARGUMENT, NB_ERR_MISUSE, __func__,
                                 "there is no such fault");
    if (control->order_count == NB_GPU_NULL_ORDER_COUNT_MAX) return NB_FULL;
    control->orders[control->order_count].fault = fault;
    control->orders[control->order_count++].after = after;
    return NB_OK;
}

uint32_t nb_gpu_null_object_count(const nb_gpu_null *control) {
    if (control == NULL) NB_FAIL_NULL("control");
    return control != NULL ? control->object_count : 0;
}

bool nbi_null_shows(nb_gpu_null *control, nb_gpu_null_fault fault) {
    if (control == NULL) return false;
    bool is_shown = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < control->order_count; ++i) {
        bool is_it = control->orders[i].fault == fault;
        bool is_due = is_it && control->orders[i].after == 0;
        if (is_it && !is_due) --control->orders[i].after;
        bool is_first = is_due && !is_shown;
        is_shown |= is_due;
        if (!is_first) control->orders[kept++] = control->orders[i];
    }
    control->order_count = kept;
    return is_shown;
}

void nbi_null_count(nb_gpu_null *control, int32_t change) {
    if (control != NULL) control->object_count += (uint32_t)change;
}
