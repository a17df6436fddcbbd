// SPDX-License-Identifier: MIT
// Matches with a dishonest player. Its messages stop nobody else, the others agree among themselves, and where they
// cannot it is the one that is named.

#include "net/netplay_fixture.h"

#include "net/message.h"

#define SEED UINT64_C(41)
#define LIAR 2u

typedef struct message_bytes {
    unsigned char at[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size;
} message_bytes;

static party_desc strangers(void) {
    return (party_desc){.player_count = 3, .seed = SEED, .conditions = {.latency_ns = 3 * PARTY_TICK_NS}};
}

static void open_strangers(party *p, uint32_t mute_count, bool is_broken) {
    party_desc desc = strangers();
    desc.mute_count = mute_count;
    desc.is_broken = is_broken;
    party_open(p, &desc);
}

static nbi_message message_of(seat *from, uint32_t to) {
    message_bytes bytes;
    nbi_message m;
    assert_int_equal(nb_netplay_send(from->play, to, bytes.at, sizeof bytes.at, &bytes.size), NB_OK);
    assert_true(nbi_message_read(bytes.at, bytes.size, SEED, &m));
    return m;
}

static nb_result hand_in(seat *to, uint32_t player, nbi_message *m) {
    message_bytes bytes;
    bytes.size = nbi_message_write(m, SEED, bytes.at);
    return nb_netplay_receive(to->play, player, bytes.at, bytes.size);
}

// All go on as if nothing had been, and the states are those of the clean run.
static void assert_goes_on(party *p) {
    uint64_t before[PARTY_MAX];
    for (uint32_t i = 0; i < p->desc.player_count; ++i) before[i] = play_stats(&p->seats[i]).confirmed_count;
    party_run(p, 150);
    for (uint32_t i = 0; i < p->desc.player_count; ++i) {
        nb_netplay_stats stats = play_stats(&p->seats[i]);
        assert_true(stats.confirmed_count >= before[i] + 140);
        assert_false(stats.has_desync);
    }
    if (p->problem[0] != '\0') print_error("%s\n", p->problem);
    assert_true(p->problem[0] == '\0');
}

TEST(message_in_the_name_of_another_stops_nobody) {
    static party p;
    open_strangers(&p, 0, false);
    party_run(&p, 40);
    nbi_message m = message_of(&p.seats[1], 0);
    m.tick_count += NB_NETPLAY_WINDOW_MAX + NB_NETPLAY_DELAY_MAX - 5;
    assert_int_equal(hand_in(&p.seats[0], LIAR, &m), NB_ERR_RANGE);
    assert_int_equal(play_stats(&p.seats[0]).in_foreign_count, 1);
    nb_netplay_peer named, honest;
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, LIAR, &named), NB_OK);
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, 1, &honest), NB_OK);
    assert_int_equal(named.refused_count, 1);
    assert_int_equal(honest.refused_count, 0);
    assert_goes_on(&p);
    party_close(&p);
}

// The carrier was deceived and says that it came from the other player.
TEST(tick_count_that_was_never_reached_stops_nobody) {
    static party p;
    for (uint64_t ahead = 1; ahead < 100; ahead += 11) {
        party_desc desc = strangers();
        party_open(&p, &desc);
        party_run(&p, 40);
        nbi_message m = message_of(&p.seats[1], 0);
        m.tick_count += ahead;
        bool can_be = m.tick_count <= m.input_acked + NB_NETPLAY_WINDOW_MAX;
        assert_int_equal(hand_in(&p.seats[0], 1, &m), can_be ? NB_OK : NB_ERR_RANGE);
        assert_goes_on(&p);
        // What the first one echoes is too much, and the victim takes its messages all the same.
        assert_int_equal(play_stats(&p.seats[1]).in_absurd_count, 0);
        party_close(&p);
    }
}

TEST(echo_and_hashes_of_the_future_are_ignored) {
    static party p;
    open_strangers(&p, 0, false);
    party_run(&p, 40);
    nb_netplay_peer before, after;
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, 1, &before), NB_OK);
    for (uint32_t i = 0; i < 3; ++i) {
        static const uint64_t echoes[] = {UINT64_MAX, 1000, 41};
        nbi_message m = message_of(&p.seats[1], 0);
        m.echo = m.hash_acked = echoes[i], m.tick_count = 40 + i;
        assert_int_equal(hand_in(&p.seats[0], 1, &m), NB_OK);
    }
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, 1, &after), NB_OK);
    assert_int_equal(after.rtt_ticks, before.rtt_ticks);
    assert_int_equal(after.tick_count, 42);
    assert_goes_on(&p);
    party_close(&p);
}

// One message says that inputs and hashes are there which were lost on their way. The next true one asks for them.
TEST(acknowledgement_of_what_never_came_is_taken_back) {
    static party p;
    open_strangers(&p, 0, false);
    party_run(&p, 40);
    nb_link_conditions cut = {.is_cut = true};
    assert_int_equal(nb_link_conditions_set(p.links[0][1], &cut), NB_OK);
    party_run(&p, 10);
    nbi_message m = message_of(&p.seats[1], 0), sent = message_of(&p.seats[0], 1);
    m.input_acked = sent.input_first + sent.input_count, m.hash_acked = sent.hash_first + sent.hash_count;
    assert_int_equal(hand_in(&p.seats[0], 1, &m), NB_OK);
    assert_int_equal(nb_link_conditions_set(p.links[0][1], &p.desc.conditions), NB_OK);
    assert_goes_on(&p);
    party_close(&p);
}

// --- any field, any value, from the start to the end ---

// One field of a copy is another number; inputs stay, so the liar plays one game with both.
static void distort(nbi_message *m, uint64_t *random) {
    static const uint64_t large[] = {UINT64_MAX, UINT64_MAX / 2, 0, 1, 300};
    uint64_t near = test_random(random) % 200;
    uint64_t *fields[] = {&m->tick_count, &m->echo, &m->input_acked, &m->hash_acked, &m->hash_first};
    uint64_t *field = fields[test_random(random) % 5];
    uint64_t value = test_random(random) % 4 == 0 ? large[near % 5] : *field + near - 100;
    switch (test_random(random) % 8) {
    case 0: m->advantage = (int32_t)(uint32_t)test_random(random); break;
    case 1: m->echo_age = (uint32_t)test_random(random); break;
    case 2: m->from = (uint32_t)near % 5, m->to = (uint32_t)(near / 5) % 4; break;
    default: *field = value; break;
    }
}

static uint64_t tamper_random;

static size_t send_distorted_too(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    static nbi_message m;
    message_bytes other;
    if (from != LIAR) return size;
    for (uint32_t i = 0; i < 2; ++i) {
        assert_true(nbi_message_read(bytes, size, SEED, &m));
        distort(&m, &tamper_random);
        if (m.hash_first > UINT64_MAX - m.hash_count) m.hash_first = 0;
        other.size = nbi_message_write(&m, SEED, other.at);
        nb_link_send(p->links[from][to], p->now_ns, other.at, other.size);
    }
    return size;
}

TEST(distorted_messages_of_one_player_stop_nobody) {
    uint64_t seed = test_seed(__func__);
    for (uint64_t round = 0; round < test_size(10, 100, 1000); ++round) {
        static party p;
        party_desc desc = strangers();
        desc.is_uneven = true;
        party_open(&p, &desc);
        tamper_random = seed + round;
        p.tamper = send_distorted_too;
        party_run(&p, 300);
        for (uint32_t i = 0; i < LIAR; ++i) {
            nb_netplay_stats stats = play_stats(&p.seats[i]);
            nb_netplay_peer honest, liar;
            assert_int_equal(nb_netplay_peer_get(p.seats[i].play, 1 - i, &honest), NB_OK);
            assert_int_equal(nb_netplay_peer_get(p.seats[i].play, LIAR, &liar), NB_OK);
            assert_true(stats.confirmed_count >= 200);
            assert_int_equal(honest.refused_count, 0);
            assert_true(liar.refused_count > 100);
            // Hashes were moved to other ticks: that is its own state.
            if (stats.has_desync) assert_int_equal(stats.desync_player, LIAR);
        }
        if (p.problem[0] != '\0') print_error("round %d: %s\n", (int)round, p.problem);
        assert_true(p.problem[0] == '\0');
        party_close(&p);
    }
}

TEST(sender_of_wrong_messages_is_logged_ever_more_rarely) {
    static party p;
    open_strangers(&p, 0, false);
    for (uint32_t i = 0; i < 100; ++i)
        assert_int_equal(nb_netplay_receive(p.seats[0].play, 1 + i % 2, "nonsense", 8), NB_ERR_RANGE);
    nb_netplay_peer peer;
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, 1, &peer), NB_OK);
    assert_int_equal(peer.refused_count, 50);
    assert_int_equal(play_stats(&p.seats[0]).in_damaged_count, 100);
    // 1, 2, 4, 8, 16 and 32, of both.
    assert_int_equal(test_log_count(&p.seats[0].r.log, NB_ITEM_NETPLAY_REFUSED), 12);
    assert_goes_on(&p);
    party_close(&p);
}

// --- hashes ---

TEST(player_that_sends_no_hashes_is_reported) {
    static party p;
    open_strangers(&p, 1, false);
    nb_netplay_peer peer;
    while (play_stats(&p.seats[0]).confirmed_count < NB_NETPLAY_SILENT_TICK_COUNT) {
        assert_int_equal(nb_netplay_peer_get(p.seats[0].play, LIAR, &peer), NB_OK);
        assert_false(peer.is_silent);
        party_run(&p, 1);
    }
    party_run(&p, 200);
    for (uint32_t i = 0; i < LIAR; ++i) {
        assert_int_equal(nb_netplay_peer_get(p.seats[i].play, LIAR, &peer), NB_OK);
        assert_true(peer.is_silent);
        assert_int_equal(peer.hash_count, 0);
        assert_int_equal(test_log_count(&p.seats[i].r.log, NB_ITEM_NETPLAY_SUSPECT), 1);
        assert_int_equal(nb_netplay_peer_get(p.seats[i].play, 1 - i, &peer), NB_OK);
        assert_false(peer.is_silent);
    }
    assert_int_equal(test_log_count(&p.seats[LIAR].r.log, NB_ITEM_NETPLAY_SUSPECT), 0); // it compares nothing
    assert_goes_on(&p);
    party_close(&p);
}

// Without its vote there are two, and nobody can say which of them is right.
TEST(silent_player_has_no_vote) {
    static party p;
    open_strangers(&p, 1, true);
    p.seats[1].wrong_tick = 30;
    party_run(&p, 300);
    for (uint32_t i = 0; i < LIAR; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_true(stats.has_desync);
        assert_int_equal(stats.desync_tick, 30);
        assert_int_equal(stats.desync_player, 1 - i);
        assert_int_equal(stats.desync_blame, NB_NETPLAY_BLAME_NONE);
    }
    party_close(&p);
}

static uint64_t hold_until;

static size_t hold_hashes_back(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    static nbi_message m;
    (void)to;
    if (from != LIAR || p->step >= hold_until) return size;
    assert_true(nbi_message_read(bytes, size, SEED, &m));
    m.hash_count = 0;
    return nbi_message_write(&m, SEED, bytes);
}

// They come when the hashes of those ticks are no longer kept: nothing is compared with what was overwritten since.
TEST(hashes_that_come_too_late_are_no_desync) {
    static party p;
    open_strangers(&p, 0, false);
    p.tamper = hold_hashes_back, hold_until = 400;
    party_run(&p, 400);
    assert_int_equal(test_log_count(&p.seats[0].r.log, NB_ITEM_NETPLAY_SUSPECT), 1);
    nbi_message m = message_of(&p.seats[LIAR], 0);
    m.hash_first = 1, m.hash_count = NBI_MESSAGE_HASHES_MAX;
    for (uint32_t i = 0; i < m.hash_count; ++i) m.hashes[i] = (uint32_t)p.reference[1 + i];
    assert_int_equal(hand_in(&p.seats[0], LIAR, &m), NB_OK);
    assert_goes_on(&p);
    party_close(&p);
}

// Of four one differs, and is named when the silent one has no vote any more. Then that one differs earlier.
TEST(verdict_stays_when_a_silent_player_speaks) {
    static party p;
    party_desc desc = strangers();
    desc.player_count = 4;
    desc.is_broken = true;
    party_open(&p, &desc);
    p.tamper = hold_hashes_back, hold_until = 180;
    p.seats[1].wrong_tick = 30, p.seats[LIAR].wrong_tick = 20;
    for (uint32_t i = 0; i < 2; ++i) {
        party_run(&p, i == 0 ? 180 : 60);
        nb_netplay_stats stats = play_stats(&p.seats[0]);
        assert_int_equal(stats.desync_blame, NB_NETPLAY_BLAME_STATE);
        assert_int_equal(stats.desync_player, 1);
        assert_int_equal(stats.desync_tick, 30);
    }
    nb_netplay_peer peer;
    assert_int_equal(nb_netplay_peer_get(p.seats[0].play, LIAR, &peer), NB_OK);
    assert_false(peer.is_silent);
    party_close(&p);
}

// --- two stories ---

// From some tick on the second player hears of other inputs.
static size_t tell_two_stories(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    static nbi_message m;
    (void)p;
    if (from != LIAR || to != 1) return size;
    assert_true(nbi_message_read(bytes, size, SEED, &m));
    for (uint32_t i = 0; i < m.input_count; ++i) m.inputs[i].code ^= m.input_first + i >= 50 ? 1 : 0;
    return nbi_message_write(&m, SEED, bytes);
}

// And each hears that the liar's state is as its own.
static size_t tell_two_stories_well(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    static nbi_message m;
    if (from != LIAR) return size;
    assert_true(nbi_message_read(bytes, tell_two_stories(p, from, to, bytes, size), SEED, &m));
    for (uint32_t i = 0; i < m.hash_count; ++i) {
        uint64_t hash = 0;
        if (nb_netplay_hash_get(p->seats[to].play, m.hash_first + i, &hash) != NB_OK) m.hash_count = i;
        m.hashes[i] = (uint32_t)hash;
    }
    return nbi_message_write(&m, SEED, bytes);
}

static void play_two_stories(party_tamper tamper) {
    static party p;
    open_strangers(&p, 0, true);
    p.tamper = tamper;
    party_run(&p, 150);
    for (uint32_t i = 0; i < LIAR; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_true(stats.has_desync);
        assert_int_equal(stats.desync_tick, 50);
        assert_int_equal(stats.desync_blame, NB_NETPLAY_BLAME_INPUTS);
        assert_int_equal(stats.desync_player, LIAR);
        assert_int_equal(stats.desync_witness, 1 - i);
        assert_int_equal(test_log_count(&p.seats[i].r.log, NB_ITEM_NETPLAY_SUSPECT), 1);
        assert_true(stats.confirmed_count > 130);
    }
    assert_true(p.problem[0] == '\0');
    party_close(&p);
}

TEST(player_that_tells_two_stories_is_named) {
    play_two_stories(tell_two_stories);
    play_two_stories(tell_two_stories_well);
}

// The liar says that some others told it something else.
static size_t accuse_players(const party *p, unsigned char *bytes, size_t size, uint32_t first) {
    static nbi_message m;
    assert_true(nbi_message_read(bytes, size, SEED, &m));
    for (uint32_t i = first; i < LIAR && p->step > 50; ++i) m.digests[i] ^= 1;
    return nbi_message_write(&m, SEED, bytes);
}

// Of two such claims neither is a majority, and its own is false.
static size_t accuse(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    (void)to;
    return from == LIAR ? accuse_players(p, bytes, size, 0) : size;
}

static size_t accuse_one(party *p, uint32_t from, uint32_t to, unsigned char *bytes, size_t size) {
    (void)to;
    return from == LIAR ? accuse_players(p, bytes, size, 1) : size;
}

TEST(accusation_without_a_desync_is_ignored) {
    static party p;
    open_strangers(&p, 0, false);
    p.tamper = accuse;
    party_run(&p, 100);
    assert_goes_on(&p);
    for (uint32_t i = 0; i < LIAR; ++i) assert_int_equal(test_log_count(&p.seats[i].r.log, NB_ITEM_NETPLAY_SUSPECT), 0);
    party_close(&p);
}

static void assert_named(party_tamper tamper, const uint32_t *named, const uint32_t *witnesses) {
    static party p;
    open_strangers(&p, 0, true);
    p.tamper = tamper;
    p.seats[LIAR].wrong_tick = 70;
    party_run(&p, 150);
    for (uint32_t i = 0; i < LIAR; ++i) {
        nb_netplay_stats stats = play_stats(&p.seats[i]);
        assert_int_equal(stats.desync_tick, 70);
        assert_int_equal(stats.desync_blame, NB_NETPLAY_BLAME_INPUTS);
        assert_int_equal(stats.desync_player, named[i]);
        assert_int_equal(stats.desync_witness, witnesses[i]);
    }
    party_close(&p);
}

TEST(player_that_accuses_all_others_is_named) {
    assert_named(accuse, (const uint32_t[]){LIAR, LIAR}, (const uint32_t[]){0, 1});
}

// The first player cannot know which of the two lies: it names the accused with its witness. The accused knows.
TEST(player_that_accuses_one_other_is_the_witness_or_named) {
    assert_named(accuse_one, (const uint32_t[]){1, LIAR}, (const uint32_t[]){LIAR, 1});
}
