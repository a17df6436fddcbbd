// SPDX-License-Identifier: MIT
// Messages of a match: what is written is read, and what was cut, changed, forged, late or for somebody else changes
// nothing but a counter.

#include "net/netplay_fixture.h"

#include "net/message.h"

#define SESSION UINT64_C(23) // the party's seed

// --- bytes ---

static bool is_same(const nbi_message *a, const nbi_message *b) {
    bool is_head = a->from == b->from && a->to == b->to && a->player_count == b->player_count &&
                   a->advantage == b->advantage && a->tick_count == b->tick_count && a->echo == b->echo &&
                   a->echo_age == b->echo_age && a->input_acked == b->input_acked && a->hash_acked == b->hash_acked;
    bool is_range = a->input_first == b->input_first && a->hash_first == b->hash_first &&
                    a->input_count == b->input_count && a->hash_count == b->hash_count;
    return is_head && is_range && memcmp(a->hashes, b->hashes, a->hash_count * sizeof a->hashes[0]) == 0 &&
           memcmp(a->digests, b->digests, sizeof a->digests) == 0 &&
           memcmp(a->inputs, b->inputs, a->input_count * sizeof a->inputs[0]) == 0;
}

// `noise` of 256 bytes of each event are random, the others zero or as before.
static void make_message(nbi_message *m, uint64_t *random, uint32_t input_count, uint32_t hash_count, uint32_t noise) {
    memset(m, 0, sizeof *m);
    m->from = (uint32_t)(test_random(random) % 8), m->to = (uint32_t)(test_random(random) % 8), m->player_count = 8;
    m->advantage = (int32_t)test_random(random);
    m->tick_count = test_random(random), m->echo = test_random(random), m->echo_age = (uint32_t)test_random(random);
    m->input_acked = test_random(random), m->hash_acked = test_random(random);
    m->input_first = test_random(random) >> 1, m->hash_first = test_random(random) >> 1;
    m->input_count = input_count, m->hash_count = hash_count;
    for (uint32_t i = 0; i < hash_count; ++i) m->hashes[i] = (uint32_t)test_random(random);
    for (uint32_t i = 0; i < NB_NETPLAY_PLAYER_COUNT_MAX; ++i) m->digests[i] = (uint32_t)test_random(random);
    for (uint32_t i = 0; i < input_count; ++i) {
        unsigned char *bytes = (unsigned char *)&m->inputs[i];
        if (i > 0) m->inputs[i] = m->inputs[i - 1];
        for (size_t j = 8; j < sizeof m->inputs[i]; ++j) {
            if (test_random(random) % 256 < noise) bytes[j] = (unsigned char)test_random(random);
        }
    }
}

TEST(what_is_written_is_read) {
    uint64_t random = test_seed(__func__);
    for (uint64_t i = 0; i < test_size(2000, 20000, 200000); ++i) {
        static nbi_message written, read;
        unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
        uint32_t noise = (uint32_t)(i % 5 * 64),
                 inputs = (uint32_t)(test_random(&random) % (NBI_MESSAGE_INPUTS_MAX + 1));
        make_message(&written, &random, inputs, (uint32_t)(test_random(&random) % (NBI_MESSAGE_HASHES_MAX + 1)), noise);
        size_t size = nbi_message_write(&written, i, bytes);
        assert_true(size <= sizeof bytes);
        assert_true(nbi_message_read(bytes, size, i, &read));
        // What did not fit is left for later: the first ones are there, and many.
        assert_true(read.input_count == inputs || read.input_count >= 30);
        assert_true(is_same(&written, &read));
        assert_false(nbi_message_read(bytes, size, i + 1, &read));
    }
}

TEST(inputs_that_are_held_cost_nothing) {
    static nbi_message m;
    uint64_t random = 1;
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    make_message(&m, &random, NBI_MESSAGE_INPUTS_MAX, 0, 0);
    assert_int_equal(nbi_message_write(&m, 0, bytes), NBI_MESSAGE_BYTES_MIN + 4);
    m.inputs[100].code = 3; // two changes, of one byte each
    assert_int_equal(nbi_message_write(&m, 0, bytes), NBI_MESSAGE_BYTES_MIN + 3 * 4 + 2);
}

// The bytes of version 2, which other builds have to understand.
TEST(bytes_of_a_message_are_fixed) {
    static nbi_message m;
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    m = (nbi_message){.from = 1,
                      .player_count = 2,
                      .advantage = -2,
                      .tick_count = 300,
                      .echo = 299,
                      .echo_age = 1,
                      .input_acked = 298,
                      .hash_acked = 290,
                      .input_first = 297,
                      .input_count = 3,
                      .hash_first = 291,
                      .hash_count = 1,
                      .hashes = {0x01020304},
                      .digests = {0x0A0B0C0D, 7}};
    for (uint32_t i = 0; i < 3; ++i) m.inputs[i] = (nb_input_event){.kind = 5, .code = i / 2 + 1};
    m.inputs[2].payload.bytes[15] = 9;
    size_t size = nbi_message_write(&m, 7, bytes);
    static const unsigned char body[] = {4, 3, 2, 1, 2, 0x11, 0, 0, 5, 1, 1, 0x10, 0, 0x80, 2, 9};
    assert_int_equal(size, NBI_MESSAGE_BYTES_MIN + sizeof body);
    assert_memory_equal(bytes, "NBNP\2\0\1\0\2\3\1\0\xFE\xFF\xFF\xFF\1\0\0\0\0\0\0\0\x2C\1", 26);
    assert_memory_equal(bytes + 72, "\x0D\x0C\x0B\x0A\7\0\0\0\0", 9);
    assert_memory_equal(bytes + NBI_MESSAGE_HEAD_BYTES, body, sizeof body);
}

// --- a match that gets more than its messages ---

typedef struct fight {
    party p;
    uint64_t damaged, foreign, absurd; // that should have been counted
} fight;

static void fight_open(fight *f, const nb_link_conditions *conditions) {
    f->damaged = f->foreign = f->absurd = 0;
    party_open(&f->p, &(party_desc){.player_count = 2, .seed = SESSION, .conditions = *conditions, .delays = {1, 2}});
}

// Nothing but what was expected was refused, and the states are those of the clean run.
static void fight_close(fight *f) {
    party_run(&f->p, 30);
    party_settle(&f->p);
    nb_netplay_stats stats = play_stats(&f->p.seats[0]);
    assert_int_equal(stats.in_damaged_count, f->damaged);
    assert_int_equal(stats.in_foreign_count, f->foreign);
    assert_int_equal(stats.in_absurd_count, f->absurd);
    assert_int_equal(roll_stats(&f->p.seats[0]).refuse_count, 0);
    assert_false(stats.has_desync || stats.has_lost);
    assert_true(f->p.problem[0] == '\0');
    assert_true(stats.confirmed_count + 2 >= ticks_of(&f->p.seats[1]));
    party_close(&f->p);
}

static size_t message_of(seat *from, unsigned char *bytes) {
    size_t size = 0;
    assert_int_equal(nb_netplay_send(from->play, 1 - from->index, bytes, NB_NETPLAY_MESSAGE_BYTES_MAX, &size), NB_OK);
    return size;
}

static bool is_same_peer(const nb_netplay_peer *a, const nb_netplay_peer *b) {
    return a->known_count == b->known_count && a->acked_count == b->acked_count && a->tick_count == b->tick_count &&
           a->hash_count == b->hash_count && a->rtt_ticks == b->rtt_ticks && a->ahead_ticks == b->ahead_ticks &&
           a->is_silent == b->is_silent;
}

// It has no effect but a count.
static void refuse(seat *s, const void *bytes, size_t size) {
    nb_netplay_peer before, after;
    nb_netplay_peer_get(s->play, 1 - s->index, &before);
    uint64_t taken = play_stats(s).in_count;
    assert_int_equal(nb_netplay_receive(s->play, 1 - s->index, bytes, size), NB_ERR_RANGE);
    nb_netplay_peer_get(s->play, 1 - s->index, &after);
    assert_true(is_same_peer(&before, &after));
    assert_int_equal(after.refused_count, before.refused_count + 1);
    assert_int_equal(play_stats(s).in_count, taken);
}

TEST(every_cut_and_every_bit_is_noticed) {
    static fight f;
    nb_link_conditions link = {.latency_ns = 3 * PARTY_TICK_NS};
    fight_open(&f, &link);
    seat *s = &f.p.seats[0];
    for (int round = 0; round < 3; ++round) {
        unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
        party_run(&f.p, 20);
        size_t size = message_of(&f.p.seats[1], bytes);
        assert_true(size > NBI_MESSAGE_BYTES_MIN);
        for (size_t cut = 0; cut < size; ++cut, ++f.damaged) refuse(s, bytes, cut);
        for (size_t bit = 0; bit < size * 8; ++bit, ++f.damaged) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            refuse(s, bytes, size);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        assert_int_equal(nb_netplay_receive(s->play, 1, bytes, size), NB_OK);
    }
    // Sizes that cannot be are not looked behind.
    unsigned char zeros[NB_NETPLAY_MESSAGE_BYTES_MAX + 1] = {0};
    refuse(s, zeros, sizeof zeros), refuse(s, zeros, sizeof zeros - 1), refuse(s, zeros, 0xFFFFFFFFu);
    refuse(s, zeros, SIZE_MAX), refuse(s, zeros, 0);
    f.damaged += 5;
    fight_close(&f);
}

// What may be changed before it is signed again.
typedef struct forgery {
    const char *what;
    size_t at;       // of a number in the bytes,
    uint32_t width;  // with so many,
    uint64_t value;  // which becomes this
    uint64_t *count; // of what it is refused as
} forgery;

static void forge(seat *s, const unsigned char *bytes, size_t size, const forgery *f) {
    unsigned char forged[NB_NETPLAY_MESSAGE_BYTES_MAX];
    memcpy(forged, bytes, size);
    for (uint32_t i = 0; i < f->width; ++i) forged[f->at + i] = (unsigned char)(f->value >> 8 * i);
    uint64_t hash = nb_hash64(forged, size - 8, SESSION);
    for (uint32_t i = 0; i < 8; ++i) forged[size - 8 + i] = (unsigned char)(hash >> 8 * i);
    refuse(s, forged, size);
    ++*f->count;
}

TEST(forged_messages_change_nothing) {
    static fight f;
    nb_link_conditions link = {.latency_ns = 5 * PARTY_TICK_NS};
    fight_open(&f, &link);
    party_run(&f.p, 40);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = message_of(&f.p.seats[1], bytes);
    uint64_t now = ticks_of(&f.p.seats[0]);
    static const uint64_t far_ticks[] = {UINT64_MAX, UINT64_MAX - 3, (uint64_t)-10000, UINT64_MAX / 2, 10000};
    for (uint32_t i = 0; i < 5; ++i) {
        // Each range that does not even end is damage; all else is a tick that cannot be.
        bool wraps = far_ticks[i] >= UINT64_MAX - 3;
        uint64_t *range = wraps ? &f.damaged : &f.absurd;
        const forgery forgeries[] = {{"tick count", 24, 8, far_ticks[i], &f.absurd},
                                     {"inputs acknowledged", 40, 8, far_ticks[i], &f.absurd},
                                     {"first input", 56, 8, far_ticks[i], range},
                                     {"first hash", 64, 8, far_ticks[i], range}};
        for (uint32_t j = 0; j < 4; ++j) forge(&f.p.seats[0], bytes, size, &forgeries[j]);
    }
    const forgery forgeries[] = {
        {"magic", 0, 4, 0, &f.damaged},
        {"version", 4, 2, 3, &f.damaged},
        {"version", 4, 2, 1, &f.damaged},
        {"of the local player", 6, 1, 0, &f.foreign},
        {"of nobody", 6, 1, 2, &f.foreign},
        {"of nobody", 6, 1, 255, &f.foreign},
        {"for somebody else", 7, 1, 1, &f.foreign},
        {"of a larger match", 8, 1, 3, &f.foreign},
        {"more inputs than there are", 9, 1, (uint64_t)bytes[9] + 1, &f.damaged},
        {"fewer inputs than there are", 9, 1, (uint64_t)bytes[9] - 1, &f.damaged},
        {"more inputs than can be", 9, 1, 255, &f.damaged},
        {"more hashes than there are", 10, 1, (uint64_t)bytes[10] + 1, &f.damaged},
        {"more hashes than can be", 10, 1, 255, &f.damaged},
        {"what is to be zero", 11, 1, 1, &f.damaged},
        {"what is to be zero", 20, 4, 1, &f.damaged},
        {"a run of none", NBI_MESSAGE_HEAD_BYTES + (size_t)bytes[10] * 4, 1, 0, &f.damaged},
        {"a tick that nobody has sampled is acknowledged", 40, 8, now + 2, &f.absurd},
        {"a tick is left out", 56, 8, now, &f.absurd},
        {"other inputs than before", 56, 8, 10, &f.absurd},
        {"hashes acknowledged before the match", 48, 8, 0, &f.absurd},
        {"the hash of no tick", 64, 8, 0, &f.absurd},
        {"ahead by more than can be", 12, 4, (NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX) * 256 + 1, &f.absurd},
        {"behind by more than can be", 12, 4, 0u - (NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX) * 256 - 1, &f.absurd},
        {"an input beyond its delay", 24, 8, 20, &f.absurd},
        {"a hash beyond what it knows", 40, 8, 20, &f.absurd},
    };
    for (uint32_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; ++i)
        forge(&f.p.seats[0], bytes, size, &forgeries[i]);
    assert_int_equal(nb_netplay_receive(f.p.seats[0].play, 1, bytes, size), NB_OK);
    fight_close(&f);
}

// Counts that are right for themselves, and not for what is there.
TEST(counts_that_are_too_large_are_refused) {
    static fight f;
    static const nb_link_conditions clean;
    static nbi_message m;
    fight_open(&f, &clean);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    m = (nbi_message){.from = 1, .player_count = 2};
    size_t size = nbi_message_write(&m, SESSION, bytes);
    forge(&f.p.seats[0], bytes, size, &(forgery){"a hash where there is none", 10, 1, 1, &f.damaged});
    m.input_count = 3; // one run
    size = nbi_message_write(&m, SESSION, bytes);
    forge(&f.p.seats[0], bytes, size, &(forgery){"a run longer than all inputs", 9, 1, 2, &f.damaged});
    fight_close(&f);
}

// Inputs of far ahead: as many as an honest player may have sent come, and no more.
TEST(flood_of_inputs_is_refused) {
    static fight f;
    static const nb_link_conditions clean;
    fight_open(&f, &clean);
    party_run(&f.p, 20);
    seat *s = &f.p.seats[0];
    static nbi_message m;
    nb_netplay_peer peer;
    nb_netplay_peer_get(s->play, 1, &peer);
    uint64_t latest = ticks_of(s) + 1 + NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX;
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    m = (nbi_message){.from = 1, .player_count = 2, .input_first = peer.known_count, .hash_first = 1, .hash_acked = 1};
    m.input_acked = ticks_of(s) + 1, m.tick_count = m.input_acked + NB_NETPLAY_WINDOW_MAX;
    m.input_count = NBI_MESSAGE_INPUTS_MAX;
    refuse(s, bytes, nbi_message_write(&m, SESSION, bytes));
    m.input_count = (uint32_t)(latest - peer.known_count) + 1;
    refuse(s, bytes, nbi_message_write(&m, SESSION, bytes));
    m.input_count = 0;
    m.hash_first = peer.hash_count + 1,
    m.hash_count = (uint32_t)(ticks_of(s) + 3 - m.hash_first); // states of ticks that nobody can have confirmed
    refuse(s, bytes, nbi_message_write(&m, SESSION, bytes));
    f.absurd += 3;
    nb_netplay_stats stats = play_stats(s);
    assert_int_equal(stats.in_absurd_count, f.absurd);
    // The most that an honest one may be ahead.
    m.hash_count = 0, m.input_count = (uint32_t)(latest - peer.known_count);
    assert_int_equal(nb_netplay_receive(s->play, 1, bytes, nbi_message_write(&m, SESSION, bytes)), NB_OK);
    party_close(&f.p);
}

TEST(messages_that_come_late_and_often_are_ignored) {
    static fight f;
    nb_link_conditions link = {.latency_ns = 2 * PARTY_TICK_NS};
    fight_open(&f, &link);
    static unsigned char kept[40][NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t sizes[40];
    for (uint32_t i = 0; i < 40; ++i) {
        party_run(&f.p, 3);
        sizes[i] = message_of(&f.p.seats[1], kept[i]);
    }
    party_run(&f.p, 5);
    uint64_t stale = play_stats(&f.p.seats[0]).in_stale_count, rolled = roll_stats(&f.p.seats[0]).correction_count;
    for (uint32_t i = 120; i > 0; --i)
        assert_int_equal(nb_netplay_receive(f.p.seats[0].play, 1, kept[i % 40], sizes[i % 40]), NB_OK);
    assert_int_equal(play_stats(&f.p.seats[0]).in_stale_count, stale + 120);
    assert_int_equal(nb_engine_frame_delta(f.p.seats[0].r.engine, 0), NB_OK);
    assert_int_equal(roll_stats(&f.p.seats[0]).correction_count, rolled);
    fight_close(&f);
}

// A match between others with the same players.
TEST(message_of_another_match_is_refused) {
    static fight f;
    static party other;
    static const nb_link_conditions clean;
    fight_open(&f, &clean);
    party_open(&other, &(party_desc){.player_count = 2, .seed = SESSION + 1});
    party_run(&f.p, 10), party_run(&other, 10);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = message_of(&other.seats[1], bytes);
    refuse(&f.p.seats[0], bytes, size);
    ++f.damaged;
    party_close(&other);
    fight_close(&f);
}
