// SPDX-License-Identifier: MIT
// std::stop_token (C++20).

#include "peers.h"

#include <memory>
#include <pthread.h>
#include <stop_token>
#include <vector>

namespace {

double since(uint64_t start_ns) { return static_cast<double>(bench_now_ns() - start_ns); }

// A node of a tree built from the standard parts: a source of its own, stopped by a callback on its parent.
struct stop_node {
    struct stop_own {
        std::stop_source *source;
        void operator()() const { source->request_stop(); }
    };
    std::stop_source source;
    std::stop_callback<stop_own> link;
    explicit stop_node(const std::stop_token &parent) : source(), link(parent, stop_own{&source}) {}
};

// Each callback stops the next source from inside its own stop, so a chain is a recursion: a default stack overflows
// after some ten thousand of them. The peer gets a stack that holds the whole chain.
constexpr size_t deep_frame_bytes = 512;

struct deep_work {
    size_t count;
    double elapsed_ns;
};

void *cancel_deep(void *argument) {
    auto *work = static_cast<deep_work *>(argument);
    std::stop_source root;
    std::vector<std::unique_ptr<stop_node>> nodes;
    nodes.reserve(work->count);
    std::stop_token parent = root.get_token();
    for (size_t i = 0; i < work->count; ++i) {
        nodes.push_back(std::make_unique<stop_node>(parent));
        parent = nodes.back()->source.get_token();
    }
    uint64_t start_ns = bench_now_ns();
    root.request_stop();
    double elapsed_ns = since(start_ns);
    if (nodes.back()->source.stop_requested()) work->elapsed_ns = elapsed_ns;
    return nullptr;
}

} // namespace

double peer_stop_token_check(size_t count) {
    std::stop_source source;
    std::stop_token token = source.get_token();
    size_t i = 0;
    uint64_t start_ns = bench_now_ns();
    for (; i < count; ++i)
        if (token.stop_requested()) break;
    double elapsed_ns = since(start_ns);
    return i == count ? elapsed_ns : -1.0;
}

double peer_stop_token_cancel_wide(size_t count) {
    std::stop_source root;
    std::vector<std::unique_ptr<stop_node>> nodes;
    nodes.reserve(count);
    for (size_t i = 0; i < count; ++i) nodes.push_back(std::make_unique<stop_node>(root.get_token()));
    uint64_t start_ns = bench_now_ns();
    root.request_stop();
    double elapsed_ns = since(start_ns);
    return nodes.back()->source.stop_requested() ? elapsed_ns : -1.0;
}

double peer_stop_token_cancel_deep(size_t count) {
    deep_work work{count, -1.0};
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0) return -1.0;
    bool is_started = pthread_attr_setstacksize(&attributes, count * deep_frame_bytes) == 0 &&
                      pthread_create(&thread, &attributes, cancel_deep, &work) == 0;
    pthread_attr_destroy(&attributes);
    if (is_started) pthread_join(thread, nullptr);
    return work.elapsed_ns;
}

double peer_stop_token_child(size_t count) {
    std::stop_source root;
    std::stop_token parent = root.get_token();
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; i < count; ++i) {
        stop_node child(parent);
        bench_keep(&child);
    }
    return since(start_ns);
}
