// SPDX-License-Identifier: MIT
// Which buttons are down, as ticks know it, and what became of them in events that no tick gets.

#include "input.h"

static nbi_held_button *find(nbi_held *held, const nb_input_event *event) {
    for (uint32_t i = 0; i < held->count; ++i) {
        nbi_held_button *button = &held->buttons[i];
        if (button->code == event->code && button->device == event->device) return button;
    }
    return NULL;
}

static nbi_held_button *find_or_add(nbi_held *held, const nb_input_event *event) {
    nbi_held_button *button = find(held, event);
    if (button != NULL) return button;
    if (held->count == NBI_HELD_COUNT_MAX) {
        ++held->lost_count;
        return NULL;
    }
    button = &held->buttons[held->count++];
    *button = (nbi_held_button){.code = event->code, .device = event->device};
    return button;
}

static void drop_if_idle(nbi_held *held, nbi_held_button *button) {
    if (!button->is_down && !button->is_folded) *button = held->buttons[--held->count];
}

void nbi_held_deliver(nbi_held *held, const nb_input_event *event) {
    bool is_press = event->kind == NB_INPUT_PRESS;
    nbi_held_button *button = is_press ? find_or_add(held, event) : find(held, event);
    if (button == NULL) return;
    button->is_down = is_press;
    button->is_unsure = false;
    drop_if_idle(held, button);
}

void nbi_held_fold(nbi_held *held, const nb_input_event *event, uint64_t arrival) {
    nbi_held_button *button = find_or_add(held, event);
    if (button == NULL) return;
    if (!button->is_folded) ++held->folded_count;
    button->is_folded = true;
    button->is_pressed = event->kind == NB_INPUT_PRESS;
    button->timestamp_ns = event->timestamp_ns;
    button->arrival = arrival;
}

void nbi_held_mark_unsure(nbi_held *held) {
    for (uint32_t i = 0; i < held->count; ++i) held->buttons[i].is_unsure = true;
}

bool nbi_held_is_change(const nbi_held *held, const nb_input_event *event) {
    const nbi_held_button *button = find((nbi_held *)held, event);
    if (button != NULL && button->is_unsure) return true;
    bool is_down = button != NULL && button->is_down;
    return is_down != (event->kind == NB_INPUT_PRESS);
}

bool nbi_held_take(nbi_held *held, nbi_held_button *out) {
    if (held->folded_count == 0) return false;
    uint32_t i = 0;
    while (!held->buttons[i].is_folded) ++i;
    *out = held->buttons[i];
    --held->folded_count;
    held->buttons[i].is_folded = false;
    drop_if_idle(held, &held->buttons[i]);
    return true;
}
