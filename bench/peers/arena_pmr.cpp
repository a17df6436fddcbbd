// SPDX-License-Identifier: MIT
// std::pmr::monotonic_buffer_resource over a buffer that holds a whole frame.

#include "peers.h"

#include <memory>
#include <memory_resource>
#include <new>

namespace {

// Through the base class every allocation is a virtual call, which doubles its cost. This gives the peer its best form:
// the function named by its class, so that the compiler sees what it does.
struct direct_resource : std::pmr::monotonic_buffer_resource {
    using std::pmr::monotonic_buffer_resource::monotonic_buffer_resource;
    void *take(size_t size_bytes, size_t alignment) {
        return std::pmr::monotonic_buffer_resource::do_allocate(size_bytes, alignment);
    }
};

struct pmr_state {
    std::unique_ptr<std::byte[]> buffer{new (std::nothrow) std::byte[ARENA_FRAME_BYTES]};
    direct_resource resource{buffer.get(), ARENA_FRAME_BYTES, std::pmr::null_memory_resource()};
};

void *create() { return new (std::nothrow) pmr_state; }
void destroy(void *state) { delete static_cast<pmr_state *>(state); }

bool frame_run(void *state, arena_frame frame) {
    auto *self = static_cast<pmr_state *>(state);
    for (size_t i = 0; i < frame.count; ++i) {
        size_t size_bytes = frame.sizes[i];
        void *block = self->resource.take(size_bytes, ARENA_FRAME_ALIGNMENT);
        arena_touch(block, size_bytes);
    }
    self->resource.release();
    return true;
}

} // namespace

const arena_peer peer_pmr_monotonic = {create, frame_run, destroy};
