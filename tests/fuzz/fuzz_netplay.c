// SPDX-License-Identifier: MIT
// Any bytes as a message of a match. The first byte says how they are prepared: as they are (0); with the checksum made
// right, so that what lies behind it is reached (1); the same, handed to a player in the middle of a match (2); as they
// are, to such a one (3).

#include "fuzz.h"

#include "nebula/bytes.h"
#include "nebula/netplay.h"
#include "nebula/rollback.h"
#include "net/message.h"

#define SESSION 5u
#define TICKS 20u

static void sign(unsigned char *bytes, size_t size) {
    if (size >= 8) nb_bytes_put_u64(bytes + size - 8, nb_hash64(bytes, size - 8, SESSION));
}

// What was read can be written, and is read again as the same.
static void read_message(const unsigned char *bytes, size_t size) {
    static nbi_message first, second;
    unsigned char written[NB_NETPLAY_MESSAGE_BYTES_MAX];
    if (!nbi_message_read(bytes, size, SESSION, &first)) return;
    if (first.input_count > NBI_MESSAGE_INPUTS_MAX || first.hash_count > NBI_MESSAGE_HASHES_MAX) abort();
    size_t written_size = nbi_message_write(&first, SESSION, written);
    if (written_size > sizeof written || !nbi_message_read(written, written_size, SESSION, &second)) abort();
    size_t inputs_bytes = second.input_count * sizeof second.inputs[0];
    if (second.input_count > first.input_count || memcmp(first.inputs, second.inputs, inputs_bytes) != 0) abort();
    if (memcmp(first.hashes, second.hashes, first.hash_count * sizeof first.hashes[0]) != 0) abort();
}

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    (void)user;
    event->code = (uint32_t)view->tick->index;
}

static nb_result tick(const nb_context *context, void *user) {
    uint64_t *sum = user;
    for (uint32_t i = 0; i < context->commands.count; ++i) *sum = *sum * 31 + context->commands.events[i].code;
    return NB_OK;
}

// Refused, it changes no state; taken, nothing is simulated that cannot be put right.
static void play(const unsigned char *bytes, size_t size) {
    uint64_t sum = 0;
    nb_engine *engine = NULL;
    nb_netplay *netplay = NULL;
    nb_engine_desc desc = {
        .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 16},
        .hashes_ticks = true,
        .keeps_history = true,
        .history = {.bytes_max = 1u << 16, .tick_count_max = 128, .event_count_max = 1, .command_count_max = 2}};
    nb_state_desc state = {.name = "sum", .data = &sum, .size_bytes = sizeof sum};
    nb_module_desc module = {.name = "game", .tick = tick, .user = &sum};
    nb_netplay_desc match = {
        .player_count = 2, .session = SESSION, .sample = sample, .hooks = {.logger = {.log = fuzz_log}}};
    if (nb_engine_create(&desc, &engine) != NB_OK || nb_states_add(nb_engine_states(engine), &state, NULL) != NB_OK)
        abort();
    if (nb_engine_module_attach(engine, &module, NULL) != NB_OK) abort();
    if (nb_netplay_create(engine, &match, &netplay) != NB_OK || nb_engine_run_ticks(engine, TICKS) != NB_OK) abort();
    uint64_t before = sum;
    nb_result result = nb_netplay_receive(netplay, bytes, size);
    if (nb_engine_frame_delta(engine, 0) != NB_OK || (result != NB_OK && sum != before)) abort();
    if (nb_engine_run_ticks(engine, 2 * NB_NETPLAY_WINDOW_MAX) != NB_OK) abort();
    nb_netplay_stats stats = nb_netplay_stats_get(netplay);
    if (stats.tick_count > stats.confirmed_count + NB_NETPLAY_WINDOW_MAX || stats.has_lost) abort();
    if (nb_engine_rollback_stats(engine).refuse_count != 0) abort();
    unsigned char answer[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t answer_size = 0;
    if (nb_netplay_send(netplay, 1, answer, sizeof answer, &answer_size) != NB_OK) abort();
    if (nb_netplay_destroy(netplay) != NB_OK || nb_engine_destroy(engine) != NB_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    uint32_t mode = FUZZ_MODE(data[0]);
    ++data, --size;
    unsigned char *bytes = malloc(size != 0 ? size : 1); // of its own, so that a byte too far is seen
    if (bytes == NULL) abort();
    memcpy(bytes, data, size);
    if (mode == 1 || mode == 2) sign(bytes, size);
    if (mode < 2)
        read_message(bytes, size);
    else
        play(bytes, size);
    free(bytes);
    return 0;
}
