// SPDX-License-Identifier: MIT
// Channels, one thread at a time: what each call returns, at every capacity, position and kind.

#include "support/support.h"

#include "base/base.h"
#include "base/channel.h"
#include "nebula/arena.h"
#include "nebula/channel.h"

typedef struct message {
    uint64_t id;
    unsigned char bytes[56];
} message;
_Static_assert(sizeof(message) == 64, "one cache line, as in the benchmark");

NB_CHANNEL_DEFINE(messages, message);
NB_CHANNEL_DEFINE(numbers, uint64_t);

static message message_of(uint64_t id) {
    message made = {.id = id};
    for (size_t i = 0; i < sizeof made.bytes; ++i) made.bytes[i] = (unsigned char)(id * 31 + i);
    return made;
}

static void assert_message(const message *found, uint64_t id) {
    message wanted = message_of(id);
    assert_memory_equal(found, &wanted, sizeof wanted);
}

static const nb_channel_kind kinds[] = {NB_CHANNEL_KIND_SPSC, NB_CHANNEL_KIND_MPSC, NB_CHANNEL_KIND_MPMC};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static messages open_messages(nb_channel_kind kind, size_t capacity) {
    nb_channel_desc desc = {.name = "test", .kind = kind, .capacity = capacity};
    messages channel = {NULL};
    assert_int_equal(messages_create(&desc, &channel), NB_OK);
    return channel;
}

static nb_channel_stats stats_of(const nb_channel *channel) {
    assert_non_null(channel);
    return nb_channel_stats_get(channel);
}

static numbers numbers_of(size_t capacity) {
    numbers channel = {NULL};
    nb_channel_desc desc = {.capacity = capacity};
    assert_int_equal(numbers_create(&desc, &channel), NB_OK);
    return channel;
}

TEST(items_come_out_in_order_for_every_kind_and_capacity) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        for (size_t capacity = 1; capacity <= 64; capacity *= 2) {
            messages channel = open_messages(kinds[k], capacity);
            uint64_t sent = 0, received = 0;
            message item;
            // Fill and empty by different amounts, so that every cell is first, last and in the middle.
            for (size_t round = 0; round < 3 * capacity + 3; ++round) {
                size_t burst = round % capacity + 1;
                for (size_t i = 0; i < burst; ++i) {
                    item = message_of(sent);
                    if (messages_try_send(channel, &item) == NB_OK) ++sent;
                }
                for (size_t i = 0; i < burst; ++i) {
                    if (messages_try_recv(channel, &item) == NB_OK) assert_message(&item, received++);
                }
                assert_int_equal(sent, received);
            }
            assert_int_equal(messages_try_recv(channel, &item), NB_EMPTY);
            nb_channel_destroy(channel.base);
        }
    }
}

TEST(full_is_a_status_and_a_counter) {
    for (size_t capacity = 1; capacity <= 256; capacity *= 4) {
        messages channel = open_messages(NB_CHANNEL_KIND_SPSC, capacity);
        message item = message_of(1);
        for (size_t i = 0; i < capacity; ++i) assert_int_equal(messages_try_send(channel, &item), NB_OK);
        assert_int_equal(messages_try_send(channel, &item), NB_FULL);
        assert_int_equal(messages_send(channel, &item, 0), NB_FULL);
        nb_channel_stats stats = stats_of(channel.base);
        assert_int_equal(stats.full_count, 2);
        assert_int_equal(stats.sent_count, capacity);
        assert_int_equal(stats.depth, capacity);
        assert_int_equal(stats.depth_peak, capacity);
        assert_int_equal(messages_try_recv(channel, &item), NB_OK);
        assert_int_equal(messages_try_send(channel, &item), NB_OK); // room for exactly one
        assert_int_equal(messages_try_send(channel, &item), NB_FULL);
        nb_channel_close(channel.base);
        while (messages_try_recv(channel, &item) == NB_OK) {
        }
        stats = stats_of(channel.base);
        assert_int_equal(stats.received_count, capacity + 1);
        assert_int_equal(stats.depth, 0);
        nb_channel_destroy(channel.base);
    }
}

TEST(capacity_is_rounded_up_and_can_be_asked) {
    static const size_t wanted[][2] = {{0, 256}, {1, 1}, {2, 2}, {3, 4}, {100, 128}, {128, 128}, {129, 256}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; ++i) {
        messages channel = open_messages(NB_CHANNEL_KIND_DEFAULT, wanted[i][0]);
        assert_int_equal(nb_channel_capacity(channel.base), wanted[i][1]);
        nb_channel_destroy(channel.base);
    }
}

TEST(name_is_copied_and_cut) {
    char name[200];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    nb_channel_desc desc = {.name = name, .item_size_bytes = 1};
    nb_channel *channel = NULL;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_OK);
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(strlen(nb_channel_name(channel)), NB_CHANNEL_NAME_SIZE_MAX);
    assert_int_equal(nb_channel_name(channel)[0], 'n');
    nb_channel_destroy(channel);
    desc.name = NULL;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_OK);
    assert_string_equal(nb_channel_name(channel), "channel");
    nb_channel_destroy(channel);
}

TEST(closed_channel_refuses_sends_and_keeps_its_items) {
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        messages channel = open_messages(kinds[k], 4);
        message item = message_of(0);
        assert_int_equal(messages_try_send(channel, &item), NB_OK);
        item = message_of(1);
        assert_int_equal(messages_try_send(channel, &item), NB_OK);
        assert_false(nb_channel_is_closed(channel.base));
        assert_int_equal(nb_channel_close(channel.base), NB_OK);
        assert_int_equal(nb_channel_close(channel.base), NB_OK);
        assert_true(nb_channel_is_closed(channel.base));
        size_t count = 77;
        assert_int_equal(messages_try_send(channel, &item), NB_CLOSED);
        assert_int_equal(messages_send(channel, &item, NB_NEVER_NS), NB_CLOSED);
        assert_int_equal(messages_try_send_many(channel, &item, 1, &count), NB_CLOSED);
        assert_int_equal(count, 77);
        for (uint64_t id = 0; id < 2; ++id) {
            assert_int_equal(messages_recv(channel, &item, NB_NEVER_NS), NB_OK);
            assert_message(&item, id);
        }
        assert_int_equal(messages_try_recv(channel, &item), NB_CLOSED);
        assert_int_equal(messages_recv(channel, &item, NB_NEVER_NS), NB_CLOSED);
        assert_int_equal(messages_try_recv_many(channel, &item, 1, &count), NB_CLOSED);
        nb_channel_destroy(channel.base);
    }
}

TEST(closed_full_channel_says_closed_to_senders) {
    numbers channel = numbers_of(1);
    uint64_t item = 5;
    assert_int_equal(numbers_try_send(channel, &item), NB_OK);
    nb_channel_close(channel.base);
    assert_int_equal(numbers_try_send(channel, &item), NB_CLOSED);
    assert_int_equal(numbers_try_recv(channel, &item), NB_OK);
    assert_int_equal(numbers_try_recv(channel, &item), NB_CLOSED);
    nb_channel_destroy(channel.base);
}

TEST(positions_wrap_without_a_trace) {
    // Around 2^32 steps, around the sign bit, and at the end of the word.
    static const uint64_t starts[] = {((uint64_t)1 << 32) - 4 * 10, (uint64_t)1 << 34, ((uint64_t)1 << 63) - 4 * 10,
                                      UINT64_MAX - 4 * 10 + 1, UINT64_MAX - 3};
    for (size_t s = 0; s < sizeof starts / sizeof starts[0]; ++s) {
        for (size_t capacity = 1; capacity <= 32; capacity *= 2) {
            nb_channel_desc desc = {.capacity = capacity, .item_size_bytes = sizeof(uint64_t)};
            numbers channel = {NULL};
            assert_int_equal(nbi_channel_create_at(&desc, starts[s], &channel.base), NB_OK);
            uint64_t received = 0, item = 0, sent = 0;
            while (received < 200) {
                while (numbers_try_send(channel, &sent) == NB_OK) ++sent;
                assert_int_equal(stats_of(channel.base).depth, capacity);
                while (numbers_try_recv(channel, &item) == NB_OK) assert_int_equal(item, received++);
                assert_int_equal(sent, received);
            }
            nb_channel_stats stats = stats_of(channel.base);
            assert_int_equal(stats.sent_count, sent);
            assert_int_equal(stats.received_count, sent);
            nb_channel_close(channel.base);
            assert_int_equal(numbers_try_recv(channel, &item), NB_CLOSED);
            nb_channel_destroy(channel.base);
        }
    }
}

TEST(batches_send_what_fits_and_keep_order) {
    uint64_t seed = test_seed(__func__);
    for (size_t capacity = 1; capacity <= 64; capacity *= 4) {
        nb_channel_desc desc = {.capacity = capacity};
        numbers channel = {NULL};
        assert_int_equal(numbers_create(&desc, &channel), NB_OK);
        uint64_t items[100], sent = 0, received = 0;
        for (int round = 0; round < 500; ++round) {
            size_t wanted = 1 + (size_t)(test_random(&seed) % 100), done = 0;
            for (size_t i = 0; i < wanted; ++i) items[i] = sent + i;
            size_t room = capacity - (size_t)(sent - received);
            nb_result result = numbers_try_send_many(channel, items, wanted, &done);
            assert_int_equal(result, room == 0 ? NB_FULL : NB_OK);
            assert_int_equal(done, wanted < room ? wanted : room);
            sent += done;
            memset(items, 0xEE, sizeof items);
            wanted = 1 + (size_t)(test_random(&seed) % 100), done = 0;
            size_t present = (size_t)(sent - received);
            result = numbers_try_recv_many(channel, items, wanted, &done);
            assert_int_equal(result, present == 0 ? NB_EMPTY : NB_OK);
            assert_int_equal(done, wanted < present ? wanted : present);
            for (size_t i = 0; i < done; ++i) assert_int_equal(items[i], received++);
            for (size_t i = done; i < 100; ++i) assert_int_equal(items[i], 0xEEEEEEEEEEEEEEEEu); // not touched
        }
        nb_channel_close(channel.base);
        size_t done = 0;
        while (numbers_try_recv_many(channel, items, 100, &done) == NB_OK) received += done;
        assert_int_equal(received, sent);
        nb_channel_destroy(channel.base);
    }
}

TEST(batch_sends_and_single_receives_mix) {
    messages channel = open_messages(NB_CHANNEL_KIND_MPMC, 8);
    message items[3];
    for (uint64_t i = 0; i < 3; ++i) items[i] = message_of(i);
    size_t count = 0;
    assert_int_equal(messages_try_send_many(channel, items, 3, &count), NB_OK);
    assert_int_equal(count, 3);
    message item = message_of(3);
    assert_int_equal(messages_try_send(channel, &item), NB_OK);
    assert_int_equal(messages_try_recv(channel, &item), NB_OK);
    assert_message(&item, 0);
    message rest[8];
    assert_int_equal(messages_try_recv_many(channel, rest, 8, &count), NB_OK);
    assert_int_equal(count, 3);
    for (uint64_t i = 0; i < 3; ++i) assert_message(&rest[i], i + 1);
    nb_channel_destroy(channel.base);
}

// --- drain ---

typedef struct aligned_item {
    _Alignas(32) unsigned char bytes[32];
} aligned_item;
NB_CHANNEL_DEFINE(aligned_items, aligned_item);

TEST(drain_takes_everything_into_the_arena) {
    nb_arena arena;
    assert_int_equal(nb_arena_init(&arena, NULL), NB_OK);
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        messages channel = open_messages(kinds[k], 64);
        message *items = NULL;
        size_t count = 99;
        assert_int_equal(messages_drain(channel, &arena, &items, &count), NB_EMPTY);
        assert_null(items);
        assert_int_equal(count, 99);
        for (uint64_t id = 0; id < 40; ++id) {
            message item = message_of(id);
            assert_int_equal(messages_try_send(channel, &item), NB_OK);
        }
        assert_int_equal(messages_drain(channel, &arena, &items, &count), NB_OK);
        assert_int_equal(count, 40);
        for (uint64_t id = 0; id < 40; ++id) assert_message(&items[id], id);
        nb_channel_stats stats = stats_of(channel.base);
        assert_int_equal(stats.drained_count, 40);
        assert_int_equal(stats.received_count, 40);
        assert_int_equal(stats.depth_peak, 40); // drains look at the depth
        nb_channel_close(channel.base);
        assert_int_equal(messages_drain(channel, &arena, &items, &count), NB_CLOSED);
        nb_channel_destroy(channel.base);
    }
    nb_arena_deinit(&arena);
}

TEST(drain_respects_its_bound_and_the_alignment) {
    nb_arena arena;
    assert_int_equal(nb_arena_init(&arena, NULL), NB_OK);
    nb_channel_desc desc = {.capacity = 16};
    aligned_items channel = {NULL};
    assert_int_equal(aligned_items_create(&desc, &channel), NB_OK);
    aligned_item item = {{0}}, *items = NULL;
    for (unsigned char i = 0; i < 10; ++i) {
        item.bytes[31] = i;
        assert_int_equal(aligned_items_try_send(channel, &item), NB_OK);
    }
    size_t count = 0, total = 0;
    nb_arena_alloc(&arena, 1, 1); // the arena's own position is odd
    while (aligned_items_drain_max(channel, &arena, 4, &items, &count) == NB_OK) {
        assert_true(count <= 4);
        assert_int_equal((uintptr_t)items % 32, 0);
        for (size_t i = 0; i < count; ++i) assert_int_equal(items[i].bytes[31], total + i);
        total += count;
    }
    assert_int_equal(total, 10);
    nb_channel_destroy(channel.base);
    nb_arena_deinit(&arena);
}

TEST(drain_into_a_full_arena_loses_nothing) {
    test_log log = {0};
    static unsigned char buffer[4096];
    nb_arena arena;
    nb_arena_desc arena_desc = {.buffer = buffer, .capacity_bytes = 1000, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_arena_init(&arena, &arena_desc), NB_OK);
    messages channel = open_messages(NB_CHANNEL_KIND_MPSC, 32);
    for (uint64_t id = 0; id < 20; ++id) {
        message item = message_of(id);
        assert_int_equal(messages_try_send(channel, &item), NB_OK);
    }
    message *items = NULL;
    size_t count = 0;
    uint64_t next = 0;
    assert_int_equal(messages_drain(channel, &arena, &items, &count), NB_ERR_MEMORY); // 1280 bytes
    assert_null(items);
    assert_int_equal(stats_of(channel.base).depth, 20);
    assert_int_equal(stats_of(channel.base).drained_count, 0);
    while (messages_drain_max(channel, &arena, 7, &items, &count) == NB_OK) {
        for (size_t i = 0; i < count; ++i) assert_message(&items[i], next++);
        nb_arena_reset(&arena);
    }
    assert_int_equal(next, 20);
    nb_channel_destroy(channel.base);
    nb_arena_deinit(&arena);
}

// --- time ---

TEST(waiting_ends_at_the_deadline) {
    numbers channel = numbers_of(1);
    uint64_t item = 1, untouched = 42;
    for (int end = 0; end < 2; ++end) {
        uint64_t start_ns = nbi_clock_now_ns(), deadline_ns = start_ns + 3000000;
        nb_result result =
            end == 0 ? numbers_recv(channel, &untouched, deadline_ns) : numbers_send(channel, &item, deadline_ns);
        assert_int_equal(result, NB_TIMEOUT);
        assert_true(nbi_clock_now_ns() >= deadline_ns);
        // A deadline that has passed: one look, then the same answer.
        result = end == 0 ? numbers_recv(channel, &untouched, 1) : numbers_send(channel, &item, 1);
        assert_int_equal(result, NB_TIMEOUT);
        assert_int_equal(numbers_try_send(channel, &item), end == 0 ? NB_OK : NB_FULL);
    }
    assert_int_equal(untouched, 42);
    nb_channel_stats stats = stats_of(channel.base);
    assert_true(stats.send_park_count >= 1);
    assert_true(stats.recv_park_count >= 1);
    assert_int_equal(numbers_recv(channel, &item, 1), NB_OK); // what is there needs no time
    nb_channel_destroy(channel.base);
}

// One sleep to the deadline, however long: a channel that looked again every so often would never need to be woken, and
// every other test would pass without a single wake-up.
TEST(waiting_alone_sleeps_in_one_piece) {
    numbers channel = numbers_of(1);
    uint64_t item = 1;
    assert_int_equal(numbers_recv(channel, &item, nbi_clock_now_ns() + 50000000), NB_TIMEOUT);
    assert_int_equal(numbers_try_send(channel, &item), NB_OK);
    assert_int_equal(numbers_send(channel, &item, nbi_clock_now_ns() + 50000000), NB_TIMEOUT);
    nb_channel_stats stats = stats_of(channel.base);
    // The kernel may end a sleep early now and then.
    assert_in_range(stats.recv_park_count, 1, 3);
    assert_in_range(stats.send_park_count, 1, 3);
    nb_channel_destroy(channel.base);
}

TEST(nobody_parks_while_there_is_room_and_work) {
    messages channel = open_messages(NB_CHANNEL_KIND_MPMC, 4);
    for (uint64_t id = 0; id < 1000; ++id) {
        message item = message_of(id);
        assert_int_equal(messages_send(channel, &item, NB_NEVER_NS), NB_OK);
        assert_int_equal(messages_recv(channel, &item, NB_NEVER_NS), NB_OK);
        assert_message(&item, id);
    }
    nb_channel_stats stats = stats_of(channel.base);
    assert_int_equal(stats.send_park_count + stats.recv_park_count, 0);
    nb_channel_destroy(channel.base);
}

// --- mistakes ---

TEST(bad_descs_are_refused) {
    test_log log = {0};
    nb_channel *channel = NULL;
    assert_int_equal(nb_channel_create(NULL, &channel), NB_ERR_MISUSE);
    nb_channel_desc desc = nb_channel_desc_default();
    assert_string_equal(desc.name, "channel");
    assert_int_equal(desc.kind, NB_CHANNEL_KIND_MPMC);
    assert_int_equal(desc.capacity, NB_CHANNEL_CAPACITY_DEFAULT);
    assert_int_equal(desc.item_size_bytes + desc.item_alignment, 0);
    assert_non_null(desc.hooks.logger.log);
    desc.hooks = test_hooks(&log, NULL);
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_MISUSE); // no item size
    desc.item_size_bytes = 8;
    assert_int_equal(nb_channel_create(&desc, NULL), NB_ERR_MISUSE);
    desc.kind = NB_CHANNEL_KIND_COUNT;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_MISUSE);
    desc.kind = (nb_channel_kind)-1;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_MISUSE);
    desc.kind = NB_CHANNEL_KIND_DEFAULT;
    desc.item_alignment = 12;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_MISUSE);
    desc.item_alignment = 2 * NB_ARENA_ALIGNMENT_MAX; // every drain would fail
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_RANGE);
    desc.item_alignment = 0;
    desc.capacity = SIZE_MAX;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_RANGE);
    desc.capacity = 0;
    for (size_t shift = 0; shift < 4; ++shift) {
        desc.item_size_bytes = (SIZE_MAX >> shift) - 6;
        assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_RANGE);
    }
    assert_null(channel);
    assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_ARGUMENT), 11);
    assert_int_equal(numbers_create(&desc, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_ARGUMENT), 12);
}

TEST(null_arguments_are_refused) {
    test_log log = {0};
    nb_channel_desc desc = {.hooks = test_hooks(&log, NULL)};
    numbers none = {NULL}, channel = {NULL};
    assert_int_equal(numbers_create(&desc, &channel), NB_OK);
    nb_arena arena = {0};
    uint64_t item = 1, *items = &item;
    void *memory = NULL;
    size_t count = 0;
    assert_int_equal(numbers_try_send(none, &item), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv(none, &item), NB_ERR_MISUSE);
    assert_int_equal(numbers_send(none, &item, 0), NB_ERR_MISUSE);
    assert_int_equal(numbers_recv(none, &item, 0), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_send_many(none, &item, 1, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv_many(none, &item, 1, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_drain(none, &arena, &items, &count), NB_ERR_MISUSE);
    assert_int_equal(nb_channel_close(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_channel_disown(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_channel_stats_get(NULL).sent_count, 0);
    assert_true(nb_channel_is_closed(NULL));
    assert_string_equal(nb_channel_name(NULL), "");
    assert_int_equal(nb_channel_capacity(NULL), 0);
    nb_channel_destroy(NULL);
    assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_ARGUMENT), 0);

    assert_int_equal(numbers_try_send(channel, NULL), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv(channel, NULL), NB_ERR_MISUSE);
    assert_int_equal(numbers_send(channel, NULL, NB_NEVER_NS), NB_ERR_MISUSE);
    assert_int_equal(numbers_recv(channel, NULL, NB_NEVER_NS), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_send_many(channel, NULL, 1, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_send_many(channel, &item, 0, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_send_many(channel, &item, 1, NULL), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv_many(channel, NULL, 1, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv_many(channel, &item, 0, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_try_recv_many(channel, &item, 1, NULL), NB_ERR_MISUSE);
    assert_int_equal(numbers_drain(channel, &arena, NULL, &count), NB_ERR_MISUSE);
    assert_int_equal(numbers_drain(channel, &arena, &items, NULL), NB_ERR_MISUSE);
    assert_int_equal(numbers_drain_max(channel, &arena, 0, &items, &count), NB_ERR_MISUSE);
    assert_int_equal(nb_channel_drain(channel.base, NULL, &memory, &count), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_ARGUMENT), 14);
    assert_int_equal(stats_of(channel.base).sent_count, 0); // nothing of it had an effect
    assert_ptr_equal(items, &item);
    nb_channel_destroy(channel.base);
}

TEST(failed_allocation_is_reported_and_leaks_nothing) {
    test_log log = {0};
    test_heap heap = {.fail_at = 1};
    nb_channel_desc desc = {.item_size_bytes = 8, .hooks = test_hooks(&log, &heap)};
    nb_channel *channel = NULL;
    assert_int_equal(nb_channel_create(&desc, &channel), NB_ERR_MEMORY);
    assert_null(channel);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
    assert_int_equal(nb_channel_create(&desc, &channel), NB_OK);
    assert_int_equal(heap.call_count.value, 2); // one allocation a channel
    nb_channel_destroy(channel);
    assert_int_equal(heap.live_count.value, 0);
    assert_int_equal(heap.live_bytes.value, 0);
}

TEST(destroying_with_items_inside_is_reported) {
    test_log log = {0};
    nb_channel_desc desc = {.name = "lossy", .hooks = test_hooks(&log, NULL)};
    numbers channel = {NULL};
    for (int items = 0; items < 2; ++items) {
        assert_int_equal(numbers_create(&desc, &channel), NB_OK);
        uint64_t item = 3;
        if (items > 0) assert_int_equal(numbers_try_send(channel, &item), NB_OK);
        nb_channel_destroy(channel.base);
        assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_UNDRAINED), items);
    }
    assert_non_null(strstr(log.last_message, "lossy"));
    assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_CLOSED), 2); // destroying closes
}

// --- single ends ---

typedef struct foreign_use {
    numbers channel;
    nb_result send, recv;
} foreign_use;

static void use_both_ends(void *user) {
    foreign_use *use = user;
    uint64_t item = 9;
    use->send = numbers_try_send(use->channel, &item);
    use->recv = numbers_try_recv(use->channel, &item);
}

static void use_from_another_thread(foreign_use *use) { test_thread_run(use_both_ends, use); }

TEST(single_end_is_refused_to_a_second_thread) {
    if (!NB_ASSERTIONS) skip();
    for (size_t k = 0; k < KIND_COUNT; ++k) {
        test_log log = {0};
        nb_channel_desc desc = {.kind = kinds[k], .hooks = test_hooks(&log, NULL)};
        foreign_use use = {{NULL}, NB_OK, NB_OK};
        assert_int_equal(numbers_create(&desc, &use.channel), NB_OK);
        uint64_t item = 1;
        assert_int_equal(numbers_try_send(use.channel, &item), NB_OK);
        assert_int_equal(numbers_try_recv(use.channel, &item), NB_OK);
        use_from_another_thread(&use);
        bool is_sender_single = kinds[k] == NB_CHANNEL_KIND_SPSC, is_receiver_single = kinds[k] != NB_CHANNEL_KIND_MPMC;
        assert_int_equal(use.send, is_sender_single ? NB_ERR_THREAD : NB_OK);
        assert_int_equal(use.recv, is_receiver_single ? NB_ERR_THREAD : NB_OK);
        assert_int_equal(test_log_count(&log, NB_ITEM_CHANNEL_THREAD), is_sender_single + is_receiver_single);
        assert_int_equal(nb_channel_disown(use.channel.base), NB_OK); // handed over
        use_from_another_thread(&use);
        assert_int_equal(use.send, NB_OK);
        assert_int_equal(use.recv, NB_OK);
        nb_channel_close(use.channel.base); // now anybody may collect the rest
        nb_result rest = numbers_try_recv(use.channel, &item);
        assert_true(rest == NB_OK || rest == NB_CLOSED);
        nb_channel_destroy(use.channel.base);
    }
}

TEST(one_byte_items_and_large_items_travel_whole) {
    static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 1000};
    unsigned char sent[1000], received[1000];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s) {
        nb_channel_desc desc = {.item_size_bytes = sizes[s], .capacity = 4};
        nb_channel *channel = NULL;
        assert_int_equal(nb_channel_create(&desc, &channel), NB_OK);
        for (unsigned round = 0; round < 10; ++round) {
            for (unsigned in = 0; in < 4; ++in) {
                for (size_t i = 0; i < sizes[s]; ++i) sent[i] = (unsigned char)(i * 7 + round + in);
                assert_int_equal(nb_channel_try_send(channel, sent), NB_OK);
            }
            for (unsigned out = 0; out < 4; ++out) {
                memset(received, 0xEE, sizeof received);
                assert_int_equal(nb_channel_try_recv(channel, received), NB_OK);
                for (size_t i = 0; i < sizes[s]; ++i)
                    assert_int_equal(received[i], (unsigned char)(i * 7 + round + out));
                if (sizes[s] < sizeof received) assert_int_equal(received[sizes[s]], 0xEE);
            }
        }
        nb_channel_destroy(channel);
    }
}
