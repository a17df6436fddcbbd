// SPDX-License-Identifier: MIT
// Button states from the events of a tick.

#include <string.h>

#include "base.h"
#include "nebula/input.h"

static void apply(nb_buttons *buttons, const nb_input_event *event) {
    if (event->kind != NB_INPUT_PRESS && event->kind != NB_INPUT_RELEASE) return;
    if (buttons->device != 0 && event->device != buttons->device) return;
    if (event->code >= NB_BUTTON_COUNT_MAX) {
        ++buttons->ignored_count;
        return;
    }
    uint32_t word = event->code / 64;
    uint64_t bit = UINT64_C(1) << (event->code % 64);
    // A press of a button that is down is a key repeat, no edge; the same for releases.
    if (event->kind == NB_INPUT_PRESS && (buttons->down[word] & bit) == 0) {
        buttons->down[word] |= bit;
        buttons->pressed[word] |= bit;
    } else if (event->kind == NB_INPUT_RELEASE && (buttons->down[word] & bit) != 0) {
        buttons->down[word] &= ~bit;
        buttons->released[word] |= bit;
    }
}

nb_result nb_buttons_apply(nb_buttons *buttons, const nb_input_view *view) {
    if (buttons == NULL) return NBI_FAIL_NULL("buttons");
    if (view == NULL || (view->events == NULL && view->count != 0)) return NBI_FAIL_NULL("view or its events");
    memset(buttons->pressed, 0, sizeof buttons->pressed);
    memset(buttons->released, 0, sizeof buttons->released);
    for (uint32_t i = 0; i < view->count; ++i) apply(buttons, &view->events[i]);
    return NB_OK;
}

nb_result nb_buttons_release_all(nb_buttons *buttons) {
    if (buttons == NULL) return NBI_FAIL_NULL("buttons");
    for (size_t i = 0; i < NB_BUTTON_COUNT_MAX / 64; ++i) {
        buttons->released[i] |= buttons->down[i];
        buttons->down[i] = 0;
    }
    return NB_OK;
}
