// SPDX-License-Identifier: MIT
// module: record
// Recordings and save files without an engine: a bouncing ball that is recorded, replayed to the same state, and saved.

#include <nebula/replay.h>
#include <nebula/save_file.h>

#include <stdio.h>

typedef struct ball {
    int32_t height, speed;
} ball;

// One tick: gravity, and a kick where an event says so.
static void step(ball *b, nb_input_view input) {
    for (uint32_t i = 0; i < input.count; ++i) b->speed += input.events[i].payload.i32[0];
    b->speed -= 1;
    b->height += b->speed;
    if (b->height < 0) b->height = -b->height, b->speed = -b->speed;
}

static nb_result play_and_record(ball *b, nb_states *states, const char *path) {
    nb_recorder_desc desc = nb_recorder_desc_default();
    nb_recorder *recorder = NULL;
    desc.path = path;
    desc.head.game_name = "ball";
    nb_result result = nb_recorder_create(&desc, &recorder);
    if (result != NB_OK) return result;
    for (uint64_t tick = 0; tick < 100 && result == NB_OK; ++tick) {
        nb_input_event kick = {.kind = NB_INPUT_COMMAND, .payload = {.i32 = {7}}};
        nb_input_view input = {tick % 25 == 0 ? &kick : NULL, tick % 25 == 0};
        step(b, input);
        nb_record_tick recorded = {.index = tick, .input = input, .hash = nb_states_hash(states)};
        result = nb_recorder_push(recorder, &recorded);
    }
    nb_result ended = nb_recorder_destroy(recorder);
    return result != NB_OK ? result : ended;
}

// False: the state after some tick is another one.
static bool replay(ball *b, nb_states *states, const char *path) {
    nb_replay *file = NULL;
    nb_record_tick tick;
    bool is_same = nb_replay_open(path, NULL, &file) == NB_OK;
    while (is_same && nb_replay_next(file, &tick) == NB_OK) {
        step(b, tick.input);
        is_same = nb_states_hash(states) == tick.hash;
    }
    nb_replay_close(file);
    return is_same;
}

int main(void) {
    ball b = {.height = 50};
    nb_states *states = NULL;
    nb_provider_desc state = {.name = "ball", .data = &b, .size_bytes = sizeof b};
    if (nb_states_create(NULL, &states) != NB_OK || nb_states_add(states, &state, NULL) != NB_OK) return 1;
    bool is_fine = play_and_record(&b, states, "only_record.nbr") == NB_OK;
    is_fine = is_fine && nb_save_write("only_record.nbs", states, NULL) == NB_OK;
    ball played = b;
    b = (ball){.height = 50};
    is_fine = is_fine && replay(&b, states, "only_record.nbr") && b.height == played.height;
    b = (ball){0};
    is_fine = is_fine && nb_save_read("only_record.nbs", states, NULL, NULL) == NB_OK && b.height == played.height;
    printf("%s, height %d\n", is_fine ? "the same state three times" : "something is wrong", (int)b.height);
    nb_states_destroy(states);
    remove("only_record.nbr");
    remove("only_record.nbs");
    return is_fine ? 0 : 1;
}
