// SPDX-License-Identifier: MIT
// What the log says of a host that makes the same mistake in each of a thousand frames: a bounded number of lines with
// the number of the player or the link, and the first mistake with another player all the same.

#include "frame/engine/engine_fixture.h"
#include "support/log_lines.h"

#include "nebula/link.h"
#include "nebula/netplay.h"

#define FRAMES 1000

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) { (void)user, (void)view, (void)event; }

static nb_netplay *match_open(nb_engine **engine, log_lines *log) {
    nb_engine_desc desc = rig_desc(0);
    nb_netplay *play = NULL;
    desc.hooks = log_lines_hooks(log);
    desc.hashes_ticks = desc.keeps_history = true;
    assert_int_equal(nb_engine_create(&desc, engine), NB_OK);
    nb_netplay_desc play_desc = {.player_count = 3, .local_player = 1, .sample = sample, .hooks = desc.hooks};
    assert_int_equal(nb_netplay_create(*engine, &play_desc, &play), NB_OK);
    return play;
}

TEST(mistakes_about_a_player_in_each_frame_are_throttled) {
    static log_lines log;
    nb_engine *engine = NULL;
    nb_netplay *play = match_open(&engine, &log);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = 0;
    nb_netplay_peer peer;
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_netplay_receive(play, 7, "x", 1), NB_ERR_RANGE);
    assert_throttled(&log, "netplay: player 7 is no other player; there are 3, and player 1 plays here");
    assert_int_equal(nb_netplay_receive(play, 1, "x", 1), NB_ERR_RANGE);
    assert_int_equal(log_lines_saying(&log, "netplay: player 1 is no other player"), 1);
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_netplay_send(play, 0, bytes, 100, &size), NB_ERR_RANGE);
    assert_throttled(&log, "netplay: player 0 with 100 bytes");
    assert_int_equal(nb_netplay_send(play, 2, bytes, 100, &size), NB_ERR_RANGE);
    assert_int_equal(log_lines_saying(&log, "netplay: player 2 with 100 bytes"), 1);
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_netplay_peer_get(play, 2, NULL), NB_ERR_MISUSE);
    assert_throttled(&log, "netplay: player 2: peer is NULL");
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_netplay_peer_get(play, 9, &peer), NB_ERR_RANGE);
    assert_throttled(&log, "netplay: player 9 is no other player");
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_netplay_hash_get(play, 1, NULL), NB_ERR_MISUSE);
    assert_throttled(&log, "netplay: player 1: hash is NULL");
    assert_int_equal(log.count.value, 5 * 4 + 2);
    assert_int_equal(nb_netplay_destroy(play), NB_OK);
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

TEST(messages_that_a_link_refuses_in_each_frame_are_throttled) {
    static log_lines log;
    nb_link *link = NULL;
    nb_link_desc desc = {.stream = 5, .message_bytes_max = 16, .hooks = log_lines_hooks(&log)};
    assert_int_equal(nb_link_create(&desc, &link), NB_OK);
    unsigned char bytes[32] = {0};
    size_t size = 0;
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_link_send(link, 0, bytes, sizeof bytes), NB_ERR_RANGE);
    assert_throttled(&log, "link of stream 5: message of 32 bytes: at most 16; raise nb_link_desc.message_bytes_max");
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_link_receive(link, 0, NULL, 4, &size), NB_ERR_MISUSE);
    assert_throttled(&log, "link of stream 5: bytes is NULL");
    nb_link_conditions bad = {.loss_ppm = UINT32_MAX}, other = {.jitter_ns = UINT64_MAX};
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_link_conditions_set(link, &bad), NB_ERR_RANGE);
    assert_throttled(&log, "link of stream 5: loss_ppm is over NB_LINK_ALWAYS_PPM");
    assert_int_equal(nb_link_conditions_set(link, &other), NB_ERR_RANGE);
    assert_int_equal(log_lines_saying(&log, "link of stream 5: jitter_ns is over NB_LINK_NS_MAX"), 1);
    assert_int_equal(log.count.value, 3 * 4 + 1);
    nb_link_destroy(link);
}
