// SPDX-License-Identifier: MIT
// nebula/channel.h: channels that are none, bad descs and counts, foreign threads.

#include "bad_input/bad_input.h"

#include "nebula/arena.h"
#include "nebula/channel.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

NB_CHANNEL_DEFINE(numbers, uint32_t);

static numbers channel_open(nb_channel_kind kind, test_heap *heap) {
    numbers channel = {NULL};
    nb_channel_desc desc = {.name = "numbers", .kind = kind, .capacity = 2, .hooks = bad_hooks(heap)};
    accepted(NB_OK, numbers_create(&desc, &channel));
    return channel;
}

// Nothing went in or out so far, and now two items do, in order.
static void channel_still_works(numbers channel) {
    nb_channel_stats stats;
    silent(stats = nb_channel_stats_get(channel.base));
    assert_int_equal(stats.sent_count + stats.received_count + stats.full_count, 0);
    uint32_t item = 1;
    accepted(NB_OK, numbers_try_send(channel, &item));
    item = 2;
    accepted(NB_OK, nb_channel_send(channel.base, &item, NB_NEVER_NS));
    accepted(NB_OK, numbers_try_recv(channel, &item));
    assert_int_equal(item, 1);
    accepted(NB_OK, nb_channel_recv(channel.base, &item, NB_NEVER_NS));
    assert_int_equal(item, 2);
    accepted(NB_EMPTY, nb_channel_try_recv(channel.base, &item));
}

static void channel_close_and_check(numbers channel, test_heap *heap) {
    silent(nb_channel_destroy(channel.base));
    assert_int_equal(heap->live_count.value, 0);
}

TEST(channel_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_channel *channel = UNTOUCHED(nb_channel);
    const nb_channel_desc fine = {.item_size_bytes = 4, .hooks = bad_hooks(&heap)};
    nb_channel_desc wrong[] = {fine, fine, fine, fine, fine};
    wrong[0].item_size_bytes = 0;
    wrong[1].item_alignment = 3;
    wrong[2].item_alignment = SIZE_MAX;
    wrong[3].kind = NB_CHANNEL_KIND_COUNT;
    wrong[4].kind = (nb_channel_kind)-1;
    for (size_t i = 0; i < COUNT_OF(wrong); ++i) {
        refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_create(&wrong[i], &channel));
    }
    nb_channel_desc large[] = {fine, fine, fine, fine, fine, fine};
    large[0].capacity = NB_CHANNEL_CAPACITY_MAX + 1;
    large[1].capacity = SIZE_MAX;
    large[2].item_size_bytes = SIZE_MAX;
    large[3].item_size_bytes = SIZE_MAX / 4; // times the default capacity
    large[4].item_alignment = NB_ARENA_ALIGNMENT_MAX * 2;
    large[5].item_alignment = SIZE_MAX / 2 + 1;
    for (size_t i = 0; i < COUNT_OF(large); ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_create(&large[i], &channel));
    }
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_create(NULL, &channel));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_create(&fine, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, numbers_create(&fine, NULL));
    assert_int_equal(heap.call_count.value, 0);
    refused_memory(heap, 1, channel, nb_channel_create(&fine, &channel));
    silent(nb_channel_destroy(NULL));
}

TEST(channel_functions_refuse_a_null_channel) {
    const numbers none = {NULL};
    uint32_t item = 0x5A;
    size_t count = 0x5A;
    void *items = UNTOUCHED(void);
    const char *name = NULL;
    nb_arena arena;
    nb_channel_stats stats;
    accepted(NB_OK, nb_arena_init(&arena, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_try_send(NULL, &item));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_try_recv(NULL, &item));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_send(NULL, &item, NB_NEVER_NS));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_recv(NULL, &item, NB_NEVER_NS));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_try_send_many(NULL, &item, 1, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_try_recv_many(NULL, &item, 1, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_drain(NULL, &arena, &items, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_drain_max(NULL, &arena, 1, &items, &count));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, numbers_try_send(none, &item)); // the inline ways
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, numbers_recv(none, &item, NB_NEVER_NS));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_close(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_channel_disown(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_channel_stats_get(NULL));
    assert_zero(stats);
    refused_default(true, NB_ITEM_BASE_NULL, nb_channel_is_closed(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_channel_capacity(NULL));
    reported_default(NB_ITEM_BASE_NULL, name = nb_channel_name(NULL));
    assert_string_equal(name, "");
    assert_int_equal(item, 0x5A);
    assert_int_equal(count, 0x5A);
    assert_ptr_equal(items, UNTOUCHED(void));
    nb_arena_deinit(&arena);
}

TEST(channel_refuses_null_items_and_empty_batches) {
    test_heap heap = {0};
    numbers channel = channel_open(NB_CHANNEL_KIND_MPMC, &heap);
    nb_channel *base = channel.base;
    uint32_t item = 0x5A;
    size_t count = 0x5A;
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_send(base, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_recv(base, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_send(base, NULL, NB_NEVER_NS));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_recv(base, NULL, NB_NEVER_NS));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, numbers_try_send(channel, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, numbers_try_recv(channel, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_send_many(base, NULL, 1, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_send_many(base, &item, 0, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_send_many(base, &item, 1, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_recv_many(base, NULL, 1, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_recv_many(base, &item, 0, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_try_recv_many(base, &item, 1, NULL));
    accepted(NB_EMPTY, nb_channel_try_recv_many(base, &item, SIZE_MAX, &count));
    assert_int_equal(item, 0x5A);
    assert_int_equal(count, 0x5A);
    channel_still_works(channel);
    channel_close_and_check(channel, &heap);
}

TEST(draining_refuses_null_and_keeps_what_does_not_fit) {
    test_heap heap = {0};
    unsigned char bytes[16];
    numbers channel = channel_open(NB_CHANNEL_KIND_SPSC, &heap);
    nb_channel *base = channel.base;
    nb_arena arena, zeroed;
    nb_arena_desc desc = {.buffer = bytes, .capacity_bytes = 4, .hooks = bad_hooks(NULL)};
    memset(&zeroed, 0, sizeof zeroed);
    accepted(NB_OK, nb_arena_init(&arena, &desc));
    uint32_t sent[] = {1, 2}, *numbers_out = UNTOUCHED(uint32_t);
    size_t count = 0x5A;
    void *items = UNTOUCHED(void);
    size_t sent_count = 0;
    accepted(NB_OK, nb_channel_try_send_many(base, sent, 2, &sent_count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_drain(base, NULL, &items, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_drain(base, &arena, NULL, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_drain(base, &arena, &items, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_drain_max(base, &arena, 0, &items, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, nb_channel_drain_max(base, NULL, 1, &items, &count));
    refused(NB_ERR_MISUSE, NB_ITEM_CHANNEL_ARGUMENT, numbers_drain(channel, &arena, NULL, &count));
    refused_default(NB_ERR_MEMORY, NB_ITEM_ARENA_ARGUMENT, nb_channel_drain(base, &zeroed, &items, &count));
    accepted(NB_ERR_MEMORY, numbers_drain(channel, &arena, &numbers_out, &count)); // a warning of the arena
    assert_int_equal(count, 0x5A);
    assert_ptr_equal(items, UNTOUCHED(void));
    assert_ptr_equal(numbers_out, UNTOUCHED(uint32_t));
    accepted(NB_OK, nb_channel_drain_max(base, &arena, 1, &items, &count)); // both items are still there
    assert_int_equal(count, 1);
    assert_int_equal(*(uint32_t *)items, 1);
    uint32_t item = 0;
    accepted(NB_OK, numbers_try_recv(channel, &item));
    assert_int_equal(item, 2);
    nb_arena_deinit(&arena);
    channel_close_and_check(channel, &heap);
}

TEST(closed_channel_refuses_sends_and_is_closed_twice) {
    test_heap heap = {0};
    numbers channel = channel_open(NB_CHANNEL_KIND_MPSC, &heap);
    uint32_t item = 7;
    size_t count = 0x5A;
    accepted(NB_OK, nb_channel_close(channel.base));
    accepted(NB_OK, nb_channel_close(channel.base));
    accepted(NB_CLOSED, nb_channel_try_send(channel.base, &item));
    accepted(NB_CLOSED, nb_channel_send(channel.base, &item, NB_NEVER_NS));
    accepted(NB_CLOSED, nb_channel_try_send_many(channel.base, &item, 1, &count));
    accepted(NB_CLOSED, nb_channel_recv(channel.base, &item, NB_NEVER_NS));
    assert_int_equal(item, 7);
    assert_int_equal(count, 0x5A);
    channel_close_and_check(channel, &heap);
}

// --- foreign threads ---

typedef struct foreign_caller {
    numbers channel;
    nb_arena *arena;
    nb_result sends[4], receives[5];
} foreign_caller;

static void call_channel(void *user, uint32_t index) {
    (void)index;
    foreign_caller *caller = (foreign_caller *)user;
    nb_channel *base = caller->channel.base;
    uint32_t item = 1;
    size_t count = 0;
    void *items = NULL;
    const nb_result sends[] = {numbers_try_send(caller->channel, &item), nb_channel_try_send(base, &item),
                               nb_channel_send(base, &item, NB_NEVER_NS),
                               nb_channel_try_send_many(base, &item, 1, &count)};
    const nb_result receives[] = {numbers_try_recv(caller->channel, &item), nb_channel_try_recv(base, &item),
                                  nb_channel_recv(base, &item, NB_NEVER_NS),
                                  nb_channel_try_recv_many(base, &item, 1, &count),
                                  nb_channel_drain(base, caller->arena, &items, &count)};
    memcpy(caller->sends, sends, sizeof sends);
    memcpy(caller->receives, receives, sizeof receives);
}

TEST(single_ends_refuse_a_second_thread) {
    if (!has_assertions()) skip(); // the check is compiled out; nothing is corrupted without it
    test_heap heap = {0};
    nb_arena arena;
    accepted(NB_OK, nb_arena_init(&arena, NULL));
    foreign_caller caller = {.channel = channel_open(NB_CHANNEL_KIND_SPSC, &heap), .arena = &arena};
    uint32_t item = 1;
    accepted(NB_OK, numbers_try_send(caller.channel, &item));
    accepted(NB_OK, numbers_try_recv(caller.channel, &item));
    test_thread thread;
    LISTENED(OWN_LOGGER, NB_ITEM_CHANNEL_THREAD, COUNT_OF(caller.sends) + COUNT_OF(caller.receives),
             test_threads_start(&thread, 1, call_channel, &caller), test_threads_join(&thread, 1));
    for (size_t i = 0; i < COUNT_OF(caller.sends); ++i) assert_int_equal(caller.sends[i], NB_ERR_THREAD);
    for (size_t i = 0; i < COUNT_OF(caller.receives); ++i) assert_int_equal(caller.receives[i], NB_ERR_THREAD);
    accepted(NB_OK, numbers_try_send(caller.channel, &item));
    accepted(NB_OK, numbers_try_recv(caller.channel, &item));
    nb_arena_deinit(&arena);
    channel_close_and_check(caller.channel, &heap);
}
