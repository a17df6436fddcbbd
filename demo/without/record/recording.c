// SPDX-License-Identifier: MIT
// The demo without the module record: `--record` and `--replay` are refused.

#include "../../record/recording.h"

#include <stdio.h>

bool recording_open(recording *r, demo_options *options) {
    (void)r;
    if (options->replay_path == NULL && options->record_path == NULL) return true;
    fprintf(stderr, "nebula-demo: built without recordings; install libzstd-dev and build again\n");
    return false;
}

nb_result recording_attach(recording *r, nb_engine *engine, const demo_options *options) {
    (void)r, (void)engine, (void)options;
    return NB_OK;
}

nb_result recording_close(recording *r, const demo_options *options) {
    (void)r, (void)options;
    return NB_OK;
}
