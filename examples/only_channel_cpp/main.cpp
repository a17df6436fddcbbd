// SPDX-License-Identifier: MIT
// Channels alone, from C++17: three workers send results, the main thread collects them frame by frame.

#include <cstdio>
#include <thread>
#include <vector>

#include "nebula/arena.h"
#include "nebula/channel.h"

struct result {
    int worker;
    int input;
    long square;
};

NB_CHANNEL_DEFINE(results, result);

constexpr int worker_count = 3;
constexpr int input_count = 1000;

static void work(results channel, int worker) {
    for (int i = 0; i < input_count; ++i) {
        result made{worker, i, static_cast<long>(i) * i};
        // Waits while the channel is full: a slow frame slows the workers down instead of losing results.
        if (results_send(channel, &made, NB_NEVER_NS) != NB_OK) return;
    }
}

// One frame: everything that has arrived, in one array that lives until the frame's arena is reset.
static long collect(results channel, nb_arena &frame, long &sum) {
    result *items = nullptr;
    size_t count = 0;
    if (results_drain(channel, &frame, &items, &count) == NB_OK) {
        for (size_t i = 0; i < count; ++i) sum += items[i].square;
    }
    nb_arena_reset(&frame);
    return static_cast<long>(count);
}

int main() {
    results channel{};
    nb_channel_desc desc = nb_channel_desc_default();
    desc.name = "results";
    desc.kind = NB_CHANNEL_KIND_MPSC;
    desc.capacity = 64;
    nb_arena frame;
    if (results_create(&desc, &channel) != NB_OK || nb_arena_init(&frame, nullptr) != NB_OK) return 1;

    std::vector<std::thread> threads;
    for (int i = 0; i < worker_count; ++i) threads.emplace_back(work, channel, i);
    long received = 0, sum = 0;
    while (received < static_cast<long>(worker_count) * input_count) {
        long count = collect(channel, frame, sum);
        if (count == 0) std::this_thread::yield();
        received += count;
    }
    for (std::thread &thread : threads) thread.join();

    std::printf("%s: %ld results, sum %ld\n", nb_channel_name(channel.base), received, sum);
    nb_channel_destroy(channel.base);
    nb_arena_deinit(&frame);
    return sum == worker_count * 332833500L ? 0 : 1;
}
