// SPDX-License-Identifier: MIT
// oneTBB with two threads: one arena, whose worker an observer pins. Trees are built twice, with task_group and with
// parallel_invoke, and both share one context: a context per group costs as much as the tasks in it.

#include "peers.h"

#include <memory>
#include <new>
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/task_scheduler_observer.h>

namespace {

namespace tbb = oneapi::tbb;

enum class place { unknown, pinned, free };

// Workers go from arena to arena, enter anew whenever they wake, and keep their cpus. So they are set free again where
// nothing is pinned, and left alone where they are as they should be: the call would cost more than the wake-up.
class placement final : public tbb::task_scheduler_observer {
  public:
    placement(tbb::task_arena &arena, bool is_pinned) : tbb::task_scheduler_observer(arena), is_pinned_(is_pinned) {
        observe(true);
    }
    ~placement() override { observe(false); }
    placement(const placement &) = delete;
    placement &operator=(const placement &) = delete;

    void on_scheduler_entry(bool is_worker) override {
        static thread_local place current = place::unknown;
        place wanted = is_pinned_ ? place::pinned : place::free;
        if (!is_worker || current == wanted) return;
        if (is_pinned_)
            bench_pin(TASK_WORKER_CPU);
        else
            bench_unpin();
        current = wanted;
    }

  private:
    bool is_pinned_;
};

struct tbb_pool {
    explicit tbb_pool(const task_setup &setup)
        : limit(tbb::global_control::max_allowed_parallelism, setup.worker_count + 1),
          arena(static_cast<int>(setup.worker_count) + 1), observer(arena, setup.is_pinned),
          low(static_cast<int>(setup.worker_count) + 1, 1, tbb::task_arena::priority::low),
          high(static_cast<int>(setup.worker_count) + 1, 1, tbb::task_arena::priority::high),
          low_observer(low, setup.is_pinned), high_observer(high, setup.is_pinned) {}
    tbb::global_control limit;
    tbb::task_group_context context;
    tbb::task_arena arena;
    placement observer;
    tbb::task_arena low; // tasks.priority: levels are arenas
    tbb::task_arena high;
    placement low_observer;
    placement high_observer;
};

tbb_pool *pool_of(void *pool) { return static_cast<tbb_pool *>(pool); }

void *open_pool(const task_setup *setup) { return new (std::nothrow) tbb_pool(*setup); }
void close_pool(void *pool) { delete pool_of(pool); }

bool flat(void *pool, size_t count) {
    pool_of(pool)->arena.execute([&] {
        tbb::task_group group(pool_of(pool)->context);
        task_submits(true);
        for (size_t i = 0; i < count; ++i) group.run([] { task_note(1); });
        task_submits(false);
        group.wait();
    });
    return true;
}

// The second task is handed to the wait: a task like the other, but one that need not be queued.
uint64_t fibonacci(tbb::task_group_context &context, unsigned n) {
    task_note(1);
    if (n < 2) return n;
    uint64_t first = 0, second = 0;
    tbb::task_group group(context);
    group.run([&] { first = fibonacci(context, n - 1); });
    group.run_and_wait([&] { second = fibonacci(context, n - 2); });
    return first + second;
}

uint64_t fibonacci_invoke(tbb::task_group_context &context, unsigned n) {
    task_note(1);
    if (n < 2) return n;
    uint64_t first = 0, second = 0;
    tbb::parallel_invoke([&] { first = fibonacci_invoke(context, n - 1); },
                         [&] { second = fibonacci_invoke(context, n - 2); }, context);
    return first + second;
}

bool tree(void *pool, unsigned n, uint64_t *result) {
    pool_of(pool)->arena.execute([&] { *result = fibonacci(pool_of(pool)->context, n); });
    return true;
}

bool tree_invoke(void *pool, unsigned n, uint64_t *result) {
    pool_of(pool)->arena.execute([&] { *result = fibonacci_invoke(pool_of(pool)->context, n); });
    return true;
}

template <typename Partitioner>
void range_with(void *pool, float *items, size_t count, size_t grain, const Partitioner &partitioner) {
    pool_of(pool)->arena.execute([&] {
        tbb::parallel_for(
            tbb::blocked_range<size_t>(0, count, grain),
            [items](const tbb::blocked_range<size_t> &piece) {
                task_range_items(items, piece.begin(), piece.end());
                task_note(piece.size());
            },
            partitioner);
    });
}

// With a grain given, the simple partitioner is the one that keeps to it.
bool range(void *pool, float *items, size_t count, size_t grain) {
    if (grain == 0)
        range_with(pool, items, count, 1, tbb::auto_partitioner());
    else
        range_with(pool, items, count, grain, tbb::simple_partitioner());
    return true;
}

bool range_static(void *pool, float *items, size_t count, size_t grain) {
    range_with(pool, items, count, grain ? grain : 1, tbb::static_partitioner());
    return true;
}

bool batch(void *pool, task_fn *run, void *argument, size_t count) {
    pool_of(pool)->arena.execute([&] {
        tbb::task_group group(pool_of(pool)->context);
        for (size_t i = 0; i < count; ++i) group.run([run, argument] { run(argument); });
        group.wait();
    });
    return true;
}

bool wake_worker(void *pool, task_wake *wake) {
    pool_of(pool)->arena.execute([&] {
        tbb::task_group group(pool_of(pool)->context);
        group.run([wake] { task_wake_run(wake); });
        task_wake_await(wake);
        group.wait();
    });
    return true;
}

bool race_submit(void *pool, task_race *race, bool is_critical) {
    if (is_critical)
        pool_of(pool)->high.enqueue([race] { task_race_critical(race); });
    else
        pool_of(pool)->low.enqueue([race] { task_race_low(race); });
    return true;
}

bool race_all(void *pool, task_race *race) { return task_race_run(pool, race, race_submit); }

} // namespace

const task_pool task_pool_tbb = {open_pool, close_pool, flat, tree, range, batch, wake_worker, race_all, nullptr};
const task_pool task_pool_tbb_other = {open_pool, close_pool,  flat,     tree_invoke, range_static,
                                       batch,     wake_worker, race_all, nullptr};
