// SPDX-License-Identifier: MIT
// Any bytes against netplay. The first byte says what they are: a message as it is (0), or with its checksum made
// right, so that what lies behind it is reached (1); a conversation of three players, of which the third is dishonest
// (2, 3).
//
// In a conversation each byte is a step: a player runs a tick, or sends, or a message arrives, is lost, comes twice or
// late. Some steps take more bytes, and with them change a message of the third player, sign it and deliver it. In the
// end all messages arrive, and nothing else happens. The two honest players never refuse each other's messages, name
// each other only where the third one is the witness, and agree and go on for as long as it tells them one story.

#include "fuzz.h"

#include "nebula/bytes.h"
#include "nebula/netplay.h"
#include "nebula/rollback.h"
#include "net/message.h"

#define SESSION 5u
#define PLAYERS 3u
#define LIAR 2u
#define QUEUE 8u
#define BASE 4u // ticks before the match
#define CALM_ROUNDS 12u
#define HASHES_KEPT (NB_NETPLAY_KEEP_COUNT / 2) // as many as nb_netplay_hash_get answers for

#define CHECK(condition)           \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

static void sign(unsigned char *bytes, size_t size) {
    if (size >= 8) nb_bytes_put_u64(bytes + size - 8, nb_hash64(bytes, size - 8, SESSION));
}

// What was read can be written, and is read again as the same.
static void read_message(const unsigned char *bytes, size_t size) {
    static nbi_message first, second;
    unsigned char written[NB_NETPLAY_MESSAGE_BYTES_MAX];
    if (!nbi_message_read(bytes, size, SESSION, &first)) return;
    CHECK(first.input_count <= NBI_MESSAGE_INPUTS_MAX && first.hash_count <= NBI_MESSAGE_HASHES_MAX);
    second = first;
    size_t written_size = nbi_message_write(&second, SESSION, written);
    CHECK(written_size <= sizeof written && second.input_count <= first.input_count);
    CHECK(nbi_message_read(written, written_size, SESSION, &second) && second.input_count <= first.input_count);
    CHECK(memcmp(first.inputs, second.inputs, second.input_count * sizeof second.inputs[0]) == 0);
    CHECK(memcmp(first.hashes, second.hashes, first.hash_count * sizeof first.hashes[0]) == 0);
    CHECK(memcmp(first.digests, second.digests, sizeof first.digests) == 0);
}

// --- a match ---

typedef struct letter {
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size;
} letter;

typedef struct mailbox {
    letter letters[QUEUE]; // the oldest is at first % QUEUE; where there is no room the newest is lost
    uint32_t first, count;
} mailbox;

typedef struct seat {
    uint32_t index;
    nb_engine *engine;
    nb_netplay *play;
    uint64_t sum;
} seat;

typedef struct match {
    seat seats[PLAYERS];
    mailbox boxes[PLAYERS][PLAYERS]; // from, to
    bool has_two_stories;            // what was taken of the liar is not what its own engine does
    bool has_false_hash;             // a hash that was taken of the liar is not one of its own engine's
} match;

static match m;

// Each player's delay is its number.
static nb_input_event input_of(uint32_t player, uint64_t tick) {
    if (tick < BASE + player) return (nb_input_event){0};
    return (nb_input_event){.kind = NB_INPUT_COMMAND, .code = (uint32_t)(tick / (2 + player)) + player};
}

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    const seat *s = user;
    *event = input_of(s->index, view->tick->index + s->index);
}

static nb_result tick(const nb_context *context, void *user) {
    seat *s = user;
    for (uint32_t i = 0; i < context->commands.count; ++i)
        s->sum = s->sum * 31 + context->commands.events[i].code + (uint64_t)context->commands.events[i].payload.i32[3];
    return NB_OK;
}

static void open_seat(uint32_t index) {
    seat *s = &m.seats[index];
    s->index = index;
    nb_engine_desc desc = {
        .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE, .task_count_max = 16, .group_count_max = 16},
        .hashes_ticks = true,
        .keeps_history = true,
        .is_headless = true,
        .history = {.bytes_max = 1u << 16, .tick_count_max = 128, .event_count_max = 1, .command_count_max = PLAYERS}};
    nb_provider_desc state = {.name = "sum", .data = &s->sum, .size_bytes = sizeof s->sum};
    nb_module_desc module = {.name = "game", .tick = tick, .user = s};
    nb_netplay_desc netplay = {.player_count = PLAYERS, .local_player = index, .input_delay = index};
    netplay.session = SESSION, netplay.sample = sample, netplay.user = s, netplay.hooks.logger.log = fuzz_log;
    CHECK(nb_engine_create(&desc, &s->engine) == NB_OK);
    CHECK(nb_states_add(nb_engine_states(s->engine), &state, NULL) == NB_OK);
    CHECK(nb_engine_module_attach(s->engine, &module, NULL) == NB_OK);
    CHECK(nb_engine_run_ticks(s->engine, BASE) == NB_OK);
    CHECK(nb_netplay_create(s->engine, &netplay, &s->play) == NB_OK);
}

static nb_netplay_stats stats_of(uint32_t player) { return nb_netplay_stats_get(m.seats[player].play); }

// --- steps ---

static void run(uint32_t player) {
    CHECK(nb_engine_run_ticks(m.seats[player].engine, 1) == NB_OK);
    nb_netplay_stats stats = stats_of(player);
    CHECK(stats.tick_count <= stats.confirmed_count + NB_NETPLAY_WINDOW_MAX && !stats.has_lost);
    CHECK(nb_engine_rollback_stats(m.seats[player].engine).refuse_count == 0);
}

static void send(uint32_t from) {
    for (uint32_t to = 0; to < PLAYERS; ++to) {
        mailbox *box = &m.boxes[from][to];
        if (to == from || box->count == QUEUE) continue;
        letter *l = &box->letters[(box->first + box->count++) % QUEUE];
        CHECK(nb_netplay_send(m.seats[from].play, to, l->bytes, sizeof l->bytes, &l->size) == NB_OK);
    }
}

// What an engine sends is taken, unless the liar has told another story before. What it acknowledged falsely is missing
// in the next message that it gets.
static void deliver(uint32_t from, uint32_t to, const letter *l) {
    nb_result result = nb_netplay_receive(m.seats[to].play, from, l->bytes, l->size);
    CHECK(result == NB_OK || to == LIAR || (from == LIAR && m.has_two_stories));
}

static void lose(mailbox *box) { ++box->first, --box->count; }

static void take(uint32_t from, uint32_t to) {
    mailbox *box = &m.boxes[from][to];
    if (box->count == 0) return;
    deliver(from, to, &box->letters[box->first % QUEUE]);
    lose(box);
}

// The newest before the oldest, and both stay.
static void take_late(uint32_t from, uint32_t to) {
    mailbox *box = &m.boxes[from][to];
    if (box->count == 0) return;
    deliver(from, to, &box->letters[(box->first + box->count - 1) % QUEUE]);
    deliver(from, to, &box->letters[box->first % QUEUE]);
}

// Inputs of ticks that the liar has run, as it has made them. Hashes may be any.
static bool is_true_story(const letter *l) {
    static nbi_message read;
    nb_netplay_stats liar = stats_of(LIAR);
    if (!nbi_message_read(l->bytes, l->size, SESSION, &read)) return true;
    for (uint32_t i = 0; i < read.input_count; ++i) {
        nb_input_event made = input_of(LIAR, read.input_first + i);
        if (memcmp(&made, &read.inputs[i], sizeof made) != 0) return false;
    }
    return read.input_first + read.input_count <= liar.tick_count + LIAR;
}

// Of the hashes of tick counts after `first` up to `last`, which a message brought.
static bool has_true_hashes(const letter *l, uint64_t first, uint64_t last) {
    static nbi_message read;
    CHECK(nbi_message_read(l->bytes, l->size, SESSION, &read));
    for (uint64_t count = first + 1; count <= last; ++count) {
        uint64_t made = 0;
        bool has_made = nb_netplay_hash_get(m.seats[LIAR].play, count, &made) == NB_OK;
        if (!has_made || read.hashes[count - read.hash_first] != (uint32_t)made) return false;
    }
    return true;
}

static void hand_in(uint32_t to, const letter *l) {
    nb_netplay_peer before, after;
    CHECK(nb_netplay_peer_get(m.seats[to].play, LIAR, &before) == NB_OK);
    bool is_true = is_true_story(l);
    nb_netplay_receive(m.seats[to].play, LIAR, l->bytes, l->size);
    CHECK(nb_netplay_peer_get(m.seats[to].play, LIAR, &after) == NB_OK);
    bool is_known = before.known_count != after.known_count || before.hash_count != after.hash_count;
    if (before.known_count != after.known_count && !is_true) m.has_two_stories = true;
    if (before.hash_count != after.hash_count && !has_true_hashes(l, before.hash_count, after.hash_count))
        m.has_false_hash = true;
    if (after.refused_count == before.refused_count) return;
    CHECK(!is_known && after.acked_count == before.acked_count && after.tick_count == before.tick_count);
}

// A message of the liar with `count` bytes changed; each change takes two: where, from the begin or back from the end,
// and by how much.
static void forge(uint32_t to, bool is_back, const uint8_t *changes, uint32_t count) {
    letter l;
    CHECK(nb_netplay_send(m.seats[LIAR].play, to, l.bytes, sizeof l.bytes, &l.size) == NB_OK);
    for (uint32_t i = 0; i < count; ++i) {
        size_t at = changes[2 * i] % (l.size - 8);
        l.bytes[is_back ? l.size - 9 - at : at] += changes[2 * i + 1];
    }
    sign(l.bytes, l.size);
    hand_in(to, &l);
}

// Bytes of no message at all, signed where there are enough.
static void hand_in_raw(uint32_t to, const uint8_t *bytes, size_t size) {
    letter l = {.size = size < sizeof l.bytes ? size : sizeof l.bytes};
    memcpy(l.bytes, bytes, l.size);
    sign(l.bytes, l.size);
    hand_in(to, &l);
}

// Returns how many bytes it took. The three high bits say what, the two low ones who, and the third to whom.
static size_t step(const uint8_t *data, size_t size) {
    uint32_t player = (data[0] & 3) % PLAYERS, other = (player + 1 + (data[0] >> 2) % 2) % PLAYERS;
    uint32_t honest = data[0] & 1;
    uint32_t count = 1 + (data[0] >> 3) % 2;
    switch (data[0] >> 5) {
    case 0: run(player); return 1;
    case 1: send(player); return 1;
    case 2: take(player, other); return 1;
    case 3: take_late(player, other); return 1;
    case 4:
        if (m.boxes[player][other].count != 0) lose(&m.boxes[player][other]);
        return 1;
    case 5:
        for (uint32_t i = 0; i < PLAYERS; ++i) run(i), send(i);
        for (uint32_t i = 0; i < PLAYERS * PLAYERS; ++i) take(i / PLAYERS, i % PLAYERS);
        return 1;
    case 6:
        if (size < 1 + 2 * (size_t)count) return size;
        forge(honest, (data[0] & 16) != 0, data + 1, count);
        return 1 + 2 * (size_t)count;
    default: {
        size_t left = size - 1, taken = left < 160 ? left : 160;
        hand_in_raw(honest, data + 1, taken);
        return 1 + taken;
    }
    }
}

// --- the end ---

// The liar can accuse anybody of false inputs, and is known as the witness then.
static bool has_liar_in_it(const nb_netplay_stats *stats) {
    bool is_witness = stats->desync_blame == NB_NETPLAY_BLAME_INPUTS && stats->desync_witness == LIAR;
    return stats->desync_player == LIAR || is_witness;
}

// Whatever was said: the honest players understand each other, no word of theirs is held against one of them, and none
// believes that its own inputs were false. A desync begins with two stories or with a false hash of the liar's.
static void check_honest(void) {
    for (uint32_t i = 0; i < LIAR; ++i) {
        nb_netplay_stats stats = stats_of(i);
        nb_netplay_peer peer;
        CHECK(nb_netplay_peer_get(m.seats[i].play, 1 - i, &peer) == NB_OK && peer.refused_count == 0);
        CHECK(!stats.has_desync || m.has_two_stories || (m.has_false_hash && has_liar_in_it(&stats)));
        CHECK(stats.desync_blame != NB_NETPLAY_BLAME_STATE || stats.desync_player == LIAR || m.has_two_stories);
        CHECK(stats.desync_blame != NB_NETPLAY_BLAME_INPUTS || (has_liar_in_it(&stats) && stats.desync_player != i));
    }
    uint64_t first = stats_of(0).confirmed_count, second = stats_of(1).confirmed_count;
    uint64_t end = first < second ? first : second, newest = first < second ? second : first;
    uint64_t begin = newest > BASE + HASHES_KEPT ? newest - HASHES_KEPT : BASE; // one may be far ahead
    for (uint64_t count = begin + 1; count <= end && !m.has_two_stories; ++count) {
        uint64_t hashes[LIAR] = {0};
        for (uint32_t i = 0; i < LIAR; ++i) CHECK(nb_netplay_hash_get(m.seats[i].play, count, &hashes[i]) == NB_OK);
        CHECK(hashes[0] == hashes[1]);
    }
}

static void run_calm(void) {
    for (uint32_t round = 0; round < CALM_ROUNDS; ++round) {
        for (uint32_t i = 0; i < PLAYERS; ++i) run(i), send(i);
        for (uint32_t i = 0; i < PLAYERS * PLAYERS; ++i) take(i / PLAYERS, i % PLAYERS);
    }
}

// All messages arrive, and all go on: also the liar's engine, which has told the truth again.
static void calm_down(void) {
    memset(m.boxes, 0, sizeof m.boxes);
    run_calm();
    uint64_t before[PLAYERS];
    for (uint32_t i = 0; i < PLAYERS; ++i) before[i] = stats_of(i).confirmed_count;
    run_calm();
    check_honest();
    for (uint32_t i = 0; i < PLAYERS && !m.has_two_stories; ++i)
        CHECK(stats_of(i).confirmed_count >= before[i] + CALM_ROUNDS / 2);
}

static void converse(const uint8_t *data, size_t size) {
    memset(&m, 0, sizeof m);
    for (uint32_t i = 0; i < PLAYERS; ++i) open_seat(i);
    for (size_t at = 0, steps = 0; at < size && steps < 300; ++steps) at += step(data + at, size - at);
    check_honest();
    calm_down();
    for (uint32_t i = 0; i < PLAYERS; ++i)
        CHECK(nb_netplay_destroy(m.seats[i].play) == NB_OK && nb_engine_destroy(m.seats[i].engine) == NB_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    uint32_t mode = FUZZ_MODE(data[0]);
    ++data, --size;
    if (mode >= 2) {
        converse(data, size);
        return 0;
    }
    unsigned char *bytes = malloc(size != 0 ? size : 1); // of its own, so that a byte too far is seen
    CHECK(bytes != NULL);
    memcpy(bytes, data, size);
    if (mode == 1) sign(bytes, size);
    read_message(bytes, size);
    free(bytes);
    return 0;
}
