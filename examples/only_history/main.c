// SPDX-License-Identifier: MIT
// The history alone, without the engine: a rabbit that hops as it is told, a tick that turns out to have been told
// wrong, and the way back: rewind, put the input right, simulate again.

#include "nebula/history.h"

#include <stdio.h>

#define TICKS 20u

typedef struct rabbit {
    int32_t place;
    uint32_t carrots; // one at every fifth place
} rabbit;

static void tick(rabbit *self, const nb_history_input *input) {
    for (uint32_t i = 0; i < input->events.count; ++i) {
        self->place += input->events.events[i].payload.i32[0];
        if (self->place % 5 == 0) self->carrots += 1;
    }
}

static nb_result tell(nb_history *history, uint64_t number, int32_t hop) {
    nb_input_event event = {.kind = NB_INPUT_MOTION, .payload = {{hop}}};
    nb_history_input input = {.events = {&event, 1}};
    return nb_history_input_set(history, number, &input);
}

// One tick, the first time or again: its input, the tick itself, and the state it leads to.
static bool simulate(nb_history *history, uint64_t number, rabbit *self) {
    nb_history_input input;
    if (nb_history_input_get(history, number, &input) != NB_OK) return false;
    tick(self, &input);
    return nb_history_save(history, number) == NB_OK;
}

int main(void) {
    static rabbit hazel;
    nb_states *states = NULL;
    nb_history *history = NULL;
    nb_provider_desc state = {.name = "rabbit", .data = &hazel, .size_bytes = sizeof hazel};
    if (nb_states_create(NULL, &states) != NB_OK || nb_states_add(states, &state, NULL) != NB_OK) return 1;
    nb_history_desc desc = {.states = states, .bytes_max = 1 << 20, .tick_count_max = 64};
    if (nb_history_create(&desc, &history) != NB_OK) return 1;

    bool is_good = nb_history_save(history, 0) == NB_OK;
    for (uint64_t number = 1; is_good && number <= TICKS; ++number) {
        is_good = tell(history, number, 1) == NB_OK && simulate(history, number, &hazel);
    }
    printf("as predicted: at %d with %u carrots\n", hazel.place, hazel.carrots);

    // Word comes late that in tick 12 it was a great leap. Ticks before it stand; those behind it are simulated again.
    is_good = is_good && nb_history_rewind(history, 11) == NB_OK;
    printf("back at tick 11: at %d with %u carrots\n", hazel.place, hazel.carrots);
    is_good = is_good && tell(history, 12, 4) == NB_OK;
    for (uint64_t number = 12; is_good && number <= TICKS; ++number) is_good = simulate(history, number, &hazel);
    printf("as it was: at %d with %u carrots\n", hazel.place, hazel.carrots);

    // Nobody will have a say in what came before tick 15 any more.
    is_good = is_good && nb_history_confirm(history, 15) == NB_OK;
    nb_history_stats stats = nb_history_stats_get(history);
    printf("ticks %llu to %llu are kept, in %zu bytes\n", (unsigned long long)stats.tick_oldest,
           (unsigned long long)stats.tick_newest, stats.used_bytes);
    is_good = is_good && hazel.place == 23 && stats.tick_oldest == 15;
    nb_history_destroy(history);
    nb_states_destroy(states);
    return is_good ? 0 : 1;
}
