// SPDX-License-Identifier: MIT
#include "script.h"

#include "game.h"
#include "nebula/random.h"

enum { STREAM_TICK = 101, STREAM_EVENT, STREAM_COMMAND };

// A multiple of 1/16, from -4 on.
static float payload(uint32_t word) { return (float)(int32_t)(word % 128) / 16.0f - 4.0f; }

static nb_input_event event_of(uint64_t tick, uint32_t index) {
    static const uint16_t kinds[] = {NB_INPUT_PRESS, NB_INPUT_RELEASE, NB_INPUT_MOTION, NB_INPUT_TEXT};
    nb_random_block draw = nb_random_words(nb_random_make(GAME_SEED, tick, STREAM_EVENT), index);
    nb_input_event event = {.kind = kinds[draw.words[0] % 4], .code = draw.words[1] % 8};
    event.payload.f32[0] = payload(draw.words[2]);
    event.payload.f32[1] = payload(draw.words[3]);
    return event;
}

static nb_input_event command_of(uint64_t tick, uint32_t index) {
    nb_random_block draw = nb_random_words(nb_random_make(GAME_SEED, tick, STREAM_COMMAND), index);
    nb_input_event command = {.kind = NB_INPUT_COMMAND, .code = draw.words[0] % 1000};
    for (uint32_t i = 0; i < 3; ++i) command.payload.f32[i] = payload(draw.words[1 + i]);
    return command;
}

script script_of(uint64_t tick, uint64_t start_ns, uint64_t tick_ns) {
    nb_random_block draw = nb_random_words(nb_random_make(GAME_SEED, tick, STREAM_TICK), 0);
    script s = {.event_count = draw.words[0] % (SCRIPT_EVENT_MAX + 1), .command_count = draw.words[1] % 8};
    s.command_count = s.command_count <= SCRIPT_COMMAND_MAX ? s.command_count : 0;
    if (draw.words[2] % 32 == 0) s.late = 1 + draw.words[3] % SCRIPT_LATE_MAX;
    uint64_t slice_ns = tick_ns / SCRIPT_EVENT_MAX;
    for (uint32_t i = 0; i < s.event_count; ++i) {
        s.events[i] = event_of(tick, i);
        s.events[i].timestamp_ns = start_ns + i * slice_ns + draw.words[i] % slice_ns;
    }
    for (uint32_t i = 0; i < s.command_count; ++i) s.commands[i] = command_of(tick, i);
    return s;
}
