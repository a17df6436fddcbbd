// SPDX-License-Identifier: MIT
// What is in a recording, without simulating it.

#include "tool.h"

#include <inttypes.h>
#include <stdio.h>

static const char *end_name(nb_replay_end end) {
    switch (end) {
    case NB_REPLAY_END_WHOLE: return "whole";
    case NB_REPLAY_END_STOPPED: return "stopped";
    case NB_REPLAY_END_CUT: return "cut";
    case NB_REPLAY_END_DAMAGED: return "damaged";
    default: return "unknown";
    }
}

int end_status(const nb_replay *replay) {
    return nb_replay_info_get(replay).end == NB_REPLAY_END_WHOLE ? EXIT_FINE : EXIT_PARTIAL;
}

int run_list(const options *o, char **words) {
    (void)o;
    nb_replay *replay = open_file(words[0]);
    if (replay == NULL) return EXIT_WRONG;
    nb_record_tick tick;
    nb_result result;
    while ((result = nb_replay_next(replay, &tick)) == NB_OK) {
        printf("tick %" PRIu64 " events %u commands %u hash %016" PRIx64 "\n", tick.index, (unsigned)tick.input.count,
               (unsigned)tick.commands.count, tick.hash);
    }
    int status = result == NB_EMPTY ? end_status(replay) : EXIT_PARTIAL;
    nb_replay_close(replay);
    return status;
}

int run_info(const options *o, char **words) {
    (void)o;
    nb_replay *replay = open_file(words[0]);
    if (replay == NULL) return EXIT_WRONG;
    nb_replay_info info = nb_replay_info_get(replay);
    printf("game      %s\n", info.head.game_name);
    printf("build     %s\n", info.head.build_id);
    printf("format    %u\n", (unsigned)info.version);
    printf("rate      %u/%u ticks a second\n", (unsigned)info.head.tick_rate.num, (unsigned)info.head.tick_rate.den);
    printf("seed      %" PRIu64 "\n", info.head.seed);
    printf("layout    %016" PRIx64 "\n", info.head.layout_hash);
    printf("config    %zu bytes\n", info.head.config_bytes);
    printf("ticks     %" PRIu64 " from %" PRIu64 "\n", info.tick_count, info.first_tick);
    printf("keys      %u\n", (unsigned)info.key_count);
    printf("blocks    %u\n", (unsigned)info.block_count);
    printf("bytes     %" PRIu64 " of %" PRIu64 "\n", info.whole_bytes, info.size_bytes);
    printf("end       %s: %s\n", end_name(info.end), info.reason);
    int status = end_status(replay);
    nb_replay_close(replay);
    return status;
}
