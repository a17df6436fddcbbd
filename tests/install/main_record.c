// SPDX-License-Identifier: MIT
// A user's program with the module record.
#include <nebula/replay.h>
#include <nebula/save_file.h>
#include <stdio.h>

static nb_result take(void *user, const void *bytes, size_t size_bytes) {
    (void)bytes;
    *(size_t *)user += size_bytes;
    return NB_OK;
}

int main(void) {
    size_t size_bytes = 0;
    nb_recorder_desc desc = nb_recorder_desc_default();
    nb_recorder *recorder = NULL;
    desc.sink.write = take;
    desc.sink.user = &size_bytes;
    if (nb_recorder_create(&desc, &recorder) != NB_OK) return 1;
    nb_record_tick tick = {.index = 0};
    if (nb_recorder_push(recorder, &tick) != NB_OK || nb_recorder_destroy(recorder) != NB_OK) return 1;
    printf("%zu bytes\n", size_bytes);
    return size_bytes > 0 ? 0 : 1;
}
