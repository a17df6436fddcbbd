// SPDX-License-Identifier: MIT
// nebula/netplay.h and nebula/link.h: links and matches that are none, bad descs, bytes and players.

#include "bad_input/bad_input.h"

#include "nebula/link.h"
#include "nebula/netplay.h"

TEST(null_is_refused_everywhere) {
    nb_link_conditions conditions = {0};
    char bytes[4] = "";
    size_t size = 77;
    uint64_t hash = 77;
    nb_netplay_peer peer;
    memset(&peer, 0x5A, sizeof peer);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_link_create(NULL, NULL));
    silent(nb_link_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_link_conditions_set(NULL, &conditions));
    refused_default(0, NB_ITEM_BASE_NULL, nb_link_conditions_get(NULL).latency_ns);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_link_send(NULL, 0, bytes, 4));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_link_receive(NULL, 0, bytes, 4, &size));
    refused_default(UINT64_MAX, NB_ITEM_BASE_NULL, nb_link_next_ns(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_link_stats_get(NULL).sent_count);
    accepted(NB_OK, nb_netplay_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_receive(NULL, 1, bytes, 4));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_send(NULL, 0, bytes, 4, &size));
    refused_default(0, NB_ITEM_BASE_NULL, nb_netplay_advice_get(NULL).hold_tick_count);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_hash_get(NULL, 1, &hash));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_peer_get(NULL, 0, &peer));
    refused_default(0, NB_ITEM_BASE_NULL, nb_netplay_stats_get(NULL).in_count);
    assert_int_equal(size, 77);
    assert_int_equal(hash, 77);
    assert_untouched(peer, 0x5A);
}

TEST(impossible_links_are_refused) {
    test_heap heap = {0};
    nb_link *link = UNTOUCHED(nb_link);
    nb_link_desc bad[9];
    for (int i = 0; i < 9; ++i) bad[i] = (nb_link_desc){.hooks = bad_hooks(&heap)};
    bad[0].conditions.latency_ns = NB_LINK_NS_MAX + 1;
    bad[1].conditions.jitter_ns = UINT64_MAX;
    bad[2].conditions.reorder_ns = NB_LINK_NS_MAX + 1;
    bad[3].conditions.reorder_ppm = NB_LINK_ALWAYS_PPM + 1;
    bad[4].conditions.loss_ppm = NB_LINK_ALWAYS_PPM + 1;
    bad[5].conditions.duplicate_ppm = UINT32_MAX;
    bad[6].conditions.corrupt_ppm = NB_LINK_ALWAYS_PPM + 1;
    bad[7].message_count_max = NB_LINK_MESSAGE_COUNT_MAX + 1;
    bad[8].message_bytes_max = NB_LINK_MESSAGE_BYTES_MAX + 1;
    for (int i = 0; i < 9; ++i) refused(NB_ERR_RANGE, NB_ITEM_LINK_ARGUMENT, nb_link_create(&bad[i], &link));
    heap.fail_at = 1;
    nb_link_desc fine = {.hooks = bad_hooks(&heap)};
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_link_create(&fine, &link));
    assert_ptr_equal(link, UNTOUCHED(nb_link));
    assert_int_equal(heap.live_count.value, 0);
    accepted(NB_OK, nb_link_create(&fine, &link));
    for (int i = 0; i < 7; ++i)
        refused(NB_ERR_RANGE, NB_ITEM_LINK_ARGUMENT, nb_link_conditions_set(link, &bad[i].conditions));
    refused(NB_ERR_MISUSE, NB_ITEM_LINK_ARGUMENT, nb_link_conditions_set(link, NULL));
    assert_int_equal(nb_link_conditions_get(link).latency_ns, 0);
    static char large[NB_LINK_MESSAGE_BYTES_DEFAULT + 1];
    char bytes[4];
    size_t size = 77;
    refused(NB_ERR_RANGE, NB_ITEM_LINK_ARGUMENT, nb_link_send(link, 0, large, sizeof large));
    refused(NB_ERR_MISUSE, NB_ITEM_LINK_ARGUMENT, nb_link_send(link, 0, NULL, 1));
    refused(NB_ERR_MISUSE, NB_ITEM_LINK_ARGUMENT, nb_link_receive(link, 0, NULL, 4, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_LINK_ARGUMENT, nb_link_receive(link, 0, bytes, 4, NULL));
    accepted(NB_EMPTY, nb_link_receive(link, 0, bytes, 4, &size));
    assert_int_equal(size, 77);
    assert_int_equal(nb_link_stats_get(link).sent_count, 0);
    nb_link_destroy(link);
}

// --- netplay ---

static void sample(void *user, const nb_tick_view *view, nb_input_event *event) { (void)user, (void)view, (void)event; }

static nb_engine *open_engine(nb_engine_desc desc) {
    nb_engine *engine = NULL;
    desc.scheduler_desc.worker_count = NB_WORKER_COUNT_NONE;
    desc.hooks = bad_hooks(NULL);
    assert_int_equal(nb_engine_create(&desc, &engine), NB_OK);
    return engine;
}

static nb_netplay_desc fine_desc(test_heap *heap) {
    return (nb_netplay_desc){.player_count = 2, .sample = sample, .hooks = bad_hooks(heap)};
}

TEST(impossible_matches_are_refused) {
    test_heap heap = {0};
    nb_engine *engine = open_engine((nb_engine_desc){.keeps_history = true});
    nb_netplay *play = UNTOUCHED(nb_netplay);
    nb_netplay_desc fine = fine_desc(&heap), mute = fine;
    mute.sample = NULL;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_create(NULL, &fine, &play));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_create(engine, NULL, &play));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_netplay_create(engine, &fine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &mute, &play));
    nb_netplay_desc bad[5];
    for (int i = 0; i < 5; ++i) bad[i] = fine;
    bad[0].player_count = 1;
    bad[1].player_count = NB_NETPLAY_PLAYER_COUNT_MAX + 1;
    bad[2].local_player = 2;
    bad[3].input_delay = NB_NETPLAY_DELAY_MAX + 1;
    bad[4].window = NB_NETPLAY_WINDOW_MAX + 1;
    for (int i = 0; i < 5; ++i)
        refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &bad[i], &play));
    refused_memory(heap, 1, play, nb_netplay_create(engine, &fine, &play));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}

TEST(engines_that_cannot_play_are_refused) {
    test_heap heap = {0};
    nb_netplay *play = UNTOUCHED(nb_netplay);
    nb_engine_desc none = {0}, near = {.keeps_history = true, .rollback_count_max = 8};
    nb_engine_desc brief = {.keeps_history = true, .history = {.tick_count_max = 16}};
    nb_engine_desc narrow = {.keeps_history = true, .history = {.command_count_max = 1}};
    nb_netplay_desc fine = fine_desc(&heap), wide = fine;
    wide.window = 9;
    nb_engine *engine = open_engine(none);
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &fine, &play));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    engine = open_engine(brief);
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &fine, &play));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    engine = open_engine(narrow);
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &fine, &play));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    engine = open_engine(near);
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_create(engine, &wide, &play));
    // With no window said it is what the engine goes back.
    accepted(NB_OK, nb_netplay_create(engine, &fine, &play));
    // One engine plays one match: the name is taken, and the watch is gone again.
    nb_netplay *second = UNTOUCHED(nb_netplay);
    refused(NB_ERR_MISUSE, NB_ITEM_ENGINE_ARGUMENT, nb_netplay_create(engine, &fine, &second));
    assert_ptr_equal(second, UNTOUCHED(nb_netplay));
    accepted(NB_OK, nb_engine_run_ticks(engine, 8));
    assert_true(nb_netplay_advice_get(play).must_wait);
    accepted(NB_OK, nb_netplay_destroy(play));
    int users[NB_TICK_WATCH_COUNT_MAX];
    for (uint32_t i = 0; i < NB_TICK_WATCH_COUNT_MAX; ++i) {
        nb_tick_watch watch = {.user = &users[i]};
        accepted(NB_OK, nb_engine_watch_add(engine, &watch));
    }
    accepted(NB_FULL, nb_netplay_create(engine, &fine, &second));
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
    assert_int_equal(heap.live_count.value, 0);
}

typedef struct leaver {
    nb_netplay *play;
    nb_result result;
} leaver;

static nb_result leave(const nb_context *context, void *user) {
    leaver *l = user;
    (void)context;
    l->result = nb_netplay_destroy(l->play);
    return NB_OK;
}

TEST(bad_questions_to_a_match_are_refused) {
    nb_engine *engine = open_engine((nb_engine_desc){.keeps_history = true, .hashes_ticks = true});
    nb_netplay_desc desc = fine_desc(NULL);
    leaver l = {0};
    assert_int_equal(nb_netplay_create(engine, &desc, &l.play), NB_OK);
    nb_module_desc module = {.name = "leaver", .frame = leave, .user = &l};
    assert_int_equal(nb_engine_module_attach(engine, &module, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(engine, 3), NB_OK);
    assert_int_equal(l.result, NB_BUSY);
    unsigned char bytes[NB_NETPLAY_MESSAGE_BYTES_MAX];
    size_t size = 77;
    uint64_t hash = 77;
    nb_netplay_peer peer;
    memset(&peer, 0x5A, sizeof peer);
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_receive(l.play, 1, NULL, 4));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_receive(l.play, 0, "nonsense", 8));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_receive(l.play, 2, "nonsense", 8));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_receive(l.play, UINT32_MAX, "nonsense", 8));
    accepted(NB_ERR_RANGE, nb_netplay_receive(l.play, 1, "nonsense", 8));
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_send(l.play, 1, NULL, sizeof bytes, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_send(l.play, 1, bytes, sizeof bytes, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_send(l.play, 0, bytes, sizeof bytes, &size));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_send(l.play, 2, bytes, sizeof bytes, &size));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_send(l.play, 1, bytes, sizeof bytes - 1, &size));
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_hash_get(l.play, 1, NULL));
    accepted(NB_ERR_RANGE, nb_netplay_hash_get(l.play, 0, &hash));
    accepted(NB_ERR_RANGE, nb_netplay_hash_get(l.play, 1, &hash));
    accepted(NB_ERR_RANGE, nb_netplay_hash_get(l.play, UINT64_MAX, &hash));
    refused(NB_ERR_MISUSE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_peer_get(l.play, 1, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_peer_get(l.play, 0, &peer));
    refused(NB_ERR_RANGE, NB_ITEM_NETPLAY_ARGUMENT, nb_netplay_peer_get(l.play, 2, &peer));
    assert_untouched(peer, 0x5A);
    assert_int_equal(size, 77);
    assert_int_equal(hash, 77);
    accepted(NB_OK, nb_netplay_destroy(l.play));
    l.play = NULL;
    assert_int_equal(nb_engine_destroy(engine), NB_OK);
}
