// SPDX-License-Identifier: MIT
// The demo without the module gpu: nothing is shown.

#include "../../show/show.h"

nb_result show_open(const demo_options *options, const script *flight, show **out) {
    (void)flight;
    *out = NULL;
    if (options->gpu != DEMO_GPU_VULKAN && options->gpu != DEMO_GPU_NULL) return NB_OK;
    fputs("nebula-demo: built without the module gpu; --gpu none runs\n", stderr);
    return NB_ERR_UNSUPPORTED;
}

nb_result show_attach(show *s, nb_engine *engine, const show_scene *scene) {
    (void)s, (void)engine, (void)scene;
    return NB_OK;
}

bool show_has_window(const show *s) {
    (void)s;
    return false;
}

bool show_begin(show *s, bool *is_back) {
    (void)s, (void)is_back;
    return true;
}

nb_result show_end_frame(show *s) {
    (void)s;
    return NB_OK;
}

bool show_is_settled(const show *s) {
    (void)s;
    return true;
}

void show_measure(const show *s, numbers_frame *out) { (void)s, (void)out; }

void show_print(const show *s, FILE *to) { (void)s, (void)to; }

void show_close(show *s) { (void)s; }
