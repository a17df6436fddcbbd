// SPDX-License-Identifier: MIT
// The explorer's fibers, scheduler, heap and runner, and the platform functions on top of them.

#define _GNU_SOURCE

#include "explore.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/owner.h"
#include "platform/platform.h"

#define STACK_SIZE (128 * 1024)
#define HEAP_SIZE (16 * 1024 * 1024) // only what a schedule uses is touched
#define HEAP_GRAIN 16                // shadow resolution; every block starts on it
#define PAGE_SIZE 4096
#define PAGES_SIZE (2048 * PAGE_SIZE)    // what the small reservations of one schedule come from
#define PAGES_SMALL_MAX (16 * PAGE_SIZE) // larger ones are the OS's: too slow for every schedule, too large to clear
#define STEP_LIMIT 200000  // a schedule of the tests here ends within a few thousand steps: beyond is a livelock
#define HISTORY_SIZE 48    // switches shown with a failure
#define FIBER_COUNT_MAX 24 // threads of the test, and those that the library starts

// Steps between two changes of priority in a long schedule, on average: a few in each frame of an engine.
#define LONG_CHANGE_PERIOD 512

typedef enum fiber_state { FIBER_READY, FIBER_PARKED, FIBER_DONE } fiber_state;

typedef struct fiber {
    fiber_state state;
    sigjmp_buf resume_at;
    char *stack;
    const void *parked_on;
    uint64_t deadline_ns;
    nb_result park_result;
    uint32_t priority;       // larger runs first, in the priority strategy
    bool has_yielded;        // skipped until another fiber has taken a step
    void (*run)(void *user); // of a thread that the library has started; NULL = one of the test
    void *user;
    bool is_joined;   // its place may be taken
    bool is_reusable; // stopped in the loop of fiber_main: it needs no new stack frame
    nbi_owner *owner; // nbi_owner_now, while it is away
} fiber;

typedef struct history_entry {
    uint32_t fiber;
    const volatile void *address;
} history_entry;

typedef enum heap_shadow { SHADOW_UNUSED, SHADOW_LIVE, SHADOW_FREED } heap_shadow;

// One explorer a process: fibers cannot be handed a context through the platform's fixed signatures.
static struct explorer {
    const explore_test *test;
    explore_options options;
    void *user;
    fiber fibers[FIBER_COUNT_MAX];
    uint32_t fiber_count; // in use
    uint32_t current;     // index of the running fiber; RUNNER: the runner itself
    sigjmp_buf runner, creator;
    bool refuses_threads;
    uint64_t random_state;
    uint64_t schedule_hash;
    bool uses_priorities;
    bool is_best;           // the running fiber is known to be the one that pick_highest would return
    uint32_t switch_chance; // of 256, at each point, in the random strategy
    uint32_t change_points_left;
    uint32_t change_period; // a change point comes every so many steps on average
    uint32_t step_count;
    uint64_t now_ns;
    bool has_failed;
    char failure[256];
    history_entry history[HISTORY_SIZE];
    uint32_t history_count;
    char *heap;
    uint8_t heap_shadow[HEAP_SIZE / HEAP_GRAIN];
    size_t heap_used, heap_live_count;
    char *pages;
    bool is_page_released[PAGES_SIZE / PAGE_SIZE];
    size_t pages_used;
} explorer;

#define RUNNER FIBER_COUNT_MAX

uint64_t explore_random(void) {
    uint64_t z = (explorer.random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void explore_fail(const char *file, int line, const char *message) {
    explorer.has_failed = true;
    // Some fiber is somewhere in its body, or on its way out.
    for (uint32_t i = 0; i < FIBER_COUNT_MAX; ++i) explorer.fibers[i].is_reusable = false;
    const char *name = strrchr(file, '/');
    snprintf(explorer.failure, sizeof explorer.failure, "%s:%d: %s", name != NULL ? name + 1 : file, line, message);
    explorer.current = RUNNER;
    siglongjmp(explorer.runner, 2);
}
#define FAIL(message) explore_fail(__FILE__, __LINE__, message)

// --- scheduling ---

// Bits of the fibers that can run, and of those among them that are not to be skipped.
typedef struct ready_fibers {
    uint32_t all, fresh;
} ready_fibers;

static ready_fibers fibers_ready(void) {
    ready_fibers ready = {0, 0};
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        const fiber *f = &explorer.fibers[i];
        if (f->state != FIBER_READY) continue;
        ready.all |= UINT32_C(1) << i;
        if (!f->has_yielded) ready.fresh |= UINT32_C(1) << i;
    }
    return ready;
}

static void set_state(fiber *f, fiber_state state) {
    f->state = state;
    explorer.is_best = false;
}

// Nobody can run: the earliest deadline passes. False when there is none.
static bool time_passes(void) {
    fiber *first = NULL;
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        fiber *f = &explorer.fibers[i];
        if (f->state != FIBER_PARKED || f->deadline_ns == NBI_NEVER_NS) continue;
        if (first == NULL || f->deadline_ns < first->deadline_ns) first = f;
    }
    if (first == NULL) return false;
    if (first->deadline_ns > explorer.now_ns) explorer.now_ns = first->deadline_ns;
    set_state(first, FIBER_READY);
    first->park_result = NB_TIMEOUT;
    return true;
}

static bool all_done(void) {
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        if (explorer.fibers[i].state != FIBER_DONE) return false;
    }
    return true;
}

static uint32_t pick_random(uint32_t fibers) {
    uint32_t count = 0;
    for (uint32_t left = fibers; left != 0; left &= left - 1) ++count;
    uint32_t nth = (uint32_t)(explore_random() % count);
    for (uint32_t i = 0;; ++i) {
        if ((fibers >> i & 1) != 0 && nth-- == 0) return i;
    }
}

static uint32_t pick_highest(uint32_t fibers) {
    uint32_t best = RUNNER;
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        if ((fibers >> i & 1) == 0) continue;
        if (best == RUNNER || explorer.fibers[i].priority > explorer.fibers[best].priority) best = i;
    }
    return best;
}

static uint32_t pick_next(void) {
    ready_fibers ready = fibers_ready();
    if (ready.all == 0) {
        if (all_done()) return RUNNER;
        if (!time_passes()) FAIL("deadlock: every thread is parked and no deadline is left");
        ready = fibers_ready();
    }
    uint32_t fibers = ready.fresh != 0 ? ready.fresh : ready.all;
    return explorer.uses_priorities ? pick_highest(fibers) : pick_random(fibers);
}

static void note_switch(uint32_t next, const volatile void *address) {
    explorer.schedule_hash = (explorer.schedule_hash ^ (next + 1u)) * 0x100000001B3u;
    explorer.history[explorer.history_count++ % HISTORY_SIZE] = (history_entry){next, address};
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        if (i == next || !explorer.fibers[i].has_yielded) continue;
        explorer.fibers[i].has_yielded = false;
        explorer.is_best = false;
    }
}

_Noreturn static void resume(uint32_t next) {
    if (explorer.current != RUNNER) explorer.fibers[explorer.current].owner = nbi_owner_now;
    nbi_owner_now = next != RUNNER ? explorer.fibers[next].owner : NULL;
    explorer.current = next;
    siglongjmp(next == RUNNER ? explorer.runner : explorer.fibers[next].resume_at, 1);
}

static void switch_to(uint32_t next, const volatile void *address) {
    uint32_t self = explorer.current;
    if (next == self) return;
    note_switch(next == RUNNER ? self : next, address);
    if (self == RUNNER || sigsetjmp(explorer.fibers[self].resume_at, 0) == 0) resume(next);
}

static inline void count_step(void) {
    if (++explorer.step_count > explorer.options.step_limit) FAIL("livelock: the schedule does not end");
}

// The running fiber's priority falls below everybody's at a few random steps: what is preempted there stays away long.
static void maybe_change_priority(void) {
    if (explorer.options.is_long) {
        // There is no end to the points: everybody comes first for a while.
        if (explore_random() % LONG_CHANGE_PERIOD != 0) return;
        explorer.fibers[explorer.current].priority = 16 + (uint32_t)(explore_random() % 1024);
        explorer.is_best = false;
        return;
    }
    // The period is a power of two.
    if (explorer.change_points_left == 0 || (explore_random() & (explorer.change_period - 1)) != 0) return;
    --explorer.change_points_left;
    explorer.fibers[explorer.current].priority = explorer.change_points_left;
    explorer.is_best = false;
}

static inline void check_address(const volatile void *address) {
    uintptr_t offset = (uintptr_t)address - (uintptr_t)explorer.heap;
    if (offset < HEAP_SIZE && explorer.heap_shadow[offset / HEAP_GRAIN] == SHADOW_FREED) {
        FAIL("atomic access to freed memory");
    }
    offset = (uintptr_t)address - (uintptr_t)explorer.pages;
    if (offset < PAGES_SIZE && explorer.is_page_released[offset / PAGE_SIZE]) FAIL("atomic access to released pages");
}

// The fiber that comes next at a point.
static uint32_t pick_at_point(void) {
    if (!explorer.uses_priorities)
        return (explore_random() & 255) < explorer.switch_chance ? pick_next() : explorer.current;
    maybe_change_priority();
    if (explorer.is_best) return explorer.current;
    uint32_t next = pick_next();
    explorer.is_best = true; // of the fiber that runs from here on
    return next;
}

void nbi_explore_point(const volatile void *address) {
    if (explorer.current == RUNNER) return;
    check_address(address);
    count_step();
    uint32_t next = pick_at_point();
    if (next == explorer.current) return;
    switch_to(next, address);
    // Another fiber may have freed it while this one was away.
    check_address(address);
}

// --- the platform on top ---

uint64_t nbi_clock_now_ns(void) { return explorer.now_ns; }

uint64_t nbi_thread_id(void) { return explorer.current + 1u; }

// Deadlines race with threads that can still run.
static void fire_due(void) {
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        fiber *f = &explorer.fibers[i];
        if (f->state != FIBER_PARKED || f->deadline_ns > explorer.now_ns) continue;
        set_state(f, FIBER_READY);
        f->park_result = NB_TIMEOUT;
    }
}

static void yield_now(void) {
    if (explorer.current == RUNNER) return;
    count_step();
    // A spin takes time, so that bounded spins against the clock end; now and then much of it, as after a preemption.
    explorer.now_ns += explore_random() % 8 == 0 ? 60000 : 100;
    fire_due();
    explorer.fibers[explorer.current].has_yielded = true;
    explorer.is_best = false;
    switch_to(pick_next(), NULL);
}

void nbi_cpu_relax(void) { yield_now(); }
void nbi_thread_yield(void) { yield_now(); }

static void park_fiber(const void *address, uint64_t deadline_ns) {
    fiber *self = &explorer.fibers[explorer.current];
    set_state(self, FIBER_PARKED);
    self->parked_on = address;
    self->deadline_ns = deadline_ns;
    self->park_result = NB_OK;
    switch_to(pick_next(), address);
}

nb_result nbi_park_until(const nb_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns) {
    if (explorer.current == RUNNER) FAIL("park outside of a thread");
    nbi_explore_point(word);
    // The kernel compares and sleeps in one step, and may return for no reason: one park in 16 does.
    if (word->value != expected || explore_random() % 16 == 0) return NB_OK;
    if (deadline_ns <= explorer.now_ns) return NB_TIMEOUT;
    park_fiber(word, deadline_ns);
    return explorer.fibers[explorer.current].park_result;
}

void nbi_unpark(const nb_atomic_u32 *word, uint32_t count) {
    if (explorer.current != RUNNER) {
        count_step();
        // The word is an address only: no use-after-free check. The switch lets its owner go away in between.
        if ((explore_random() & 255) < 64) switch_to(pick_next(), word);
    }
    uint32_t start = (uint32_t)(explore_random() % explorer.fiber_count);
    for (uint32_t i = 0; i < explorer.fiber_count && count > 0; ++i) {
        fiber *f = &explorer.fibers[(start + i) % explorer.fiber_count];
        if (f->state != FIBER_PARKED || f->parked_on != word) continue;
        set_state(f, FIBER_READY);
        --count;
    }
}

void nbi_sleep_until_ns(uint64_t deadline_ns) {
    if (explorer.current == RUNNER || deadline_ns <= explorer.now_ns) return;
    park_fiber(NULL, deadline_ns);
}

bool nbi_platform_has(nbi_ability ability) {
    (void)ability;
    return false;
}

uint32_t nbi_program_runs(nbi_program_run *runs, uint32_t count_max) {
    (void)runs, (void)count_max;
    return 0;
}

void nbi_program_read(void *to, const unsigned char *from, size_t size_bytes) { memcpy(to, from, size_bytes); }

bool nbi_program_name(const void *address, nbi_program_symbol *out) {
    (void)address, (void)out;
    return false;
}

size_t nbi_program_offset(const void *address) { return (size_t)address; }

nb_result nbi_probe(uint64_t (*run)(void *user), void *user, uint64_t deadline_ns, uint64_t *out) {
    (void)run, (void)user, (void)deadline_ns, (void)out;
    return NB_ERR_UNSUPPORTED;
}

nbi_program nbi_program_get(void) { return (nbi_program){0}; }

uint32_t nbi_program_segments(nbi_segment *segments, uint32_t count_max) {
    (void)segments, (void)count_max;
    return 0;
}

static void fiber_create(uint32_t index);

// A place whose fiber has ended and was joined, or a new one.
static uint32_t fiber_place(void) {
    for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
        if (explorer.fibers[i].state == FIBER_DONE && explorer.fibers[i].is_joined) return i;
    }
    return explorer.fiber_count;
}

// Where the options do not ask for them, threads of the library do not exist: a test gives its fibers their parts.
nb_result nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc) {
    if (!explorer.options.has_threads) return NB_ERR_UNSUPPORTED;
    uint32_t place = fiber_place();
    if (place == FIBER_COUNT_MAX || explorer.refuses_threads) return NB_ERR_OS;
    fiber_create(place);
    fiber *f = &explorer.fibers[place];
    f->run = desc->run, f->user = desc->user;
    set_state(f, FIBER_READY);
    f->is_joined = f->has_yielded = false;
    f->priority = 16 + (uint32_t)(explore_random() % 1024);
    if (place == explorer.fiber_count) ++explorer.fiber_count;
    thread->os = place + 1u;
    return NB_OK;
}

void nbi_thread_join(nbi_thread *thread) {
    if (thread->os == 0) return;
    fiber *f = &explorer.fibers[thread->os - 1];
    while (f->state != FIBER_DONE) park_fiber(f, NBI_NEVER_NS);
    f->is_joined = true;
    thread->os = 0;
}

void nbi_thread_set_name(const char *name) { (void)name; }
nb_result nbi_thread_set_affinity(const nbi_thread *thread, uint64_t cpu_mask) {
    (void)thread;
    (void)cpu_mask;
    return NB_ERR_UNSUPPORTED;
}
nb_result nbi_thread_set_timer_slack(uint64_t slack_ns) {
    (void)slack_ns;
    return NB_ERR_UNSUPPORTED;
}
int nbi_cpu_current(void) { return -1; }
uint32_t nbi_cpu_count(void) { return 1; }
uint64_t nbi_cpu_mask(void) { return 0; }
nb_result nbi_fault_watch_add(const nbi_fault_watch *watch) {
    (void)watch;
    return NB_ERR_UNSUPPORTED;
}
void nbi_fault_watch_remove(const nbi_fault_watch *watch) { (void)watch; }
void nbi_stderr_write(const char *text, size_t size_bytes) { fwrite(text, 1, size_bytes, stderr); }
uint32_t nbi_fp_enter(void) { return 0; }
void nbi_fp_leave(uint32_t mode) { (void)mode; }

size_t nbi_page_size(void) { return PAGE_SIZE; }
void *nbi_pages_reserve(size_t size_bytes) {
    if (size_bytes <= PAGES_SMALL_MAX && size_bytes <= PAGES_SIZE - explorer.pages_used) {
        char *small = explorer.pages + explorer.pages_used;
        explorer.pages_used += (size_bytes + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
        return small;
    }
    void *pages = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return pages != MAP_FAILED ? pages : NULL;
}
nb_result nbi_pages_commit(void *address, size_t size_bytes) {
    (void)address;
    (void)size_bytes;
    return NB_OK;
}
nb_result nbi_pages_decommit(void *address, size_t size_bytes) {
    return madvise(address, size_bytes, MADV_DONTNEED) == 0 ? NB_OK : NB_ERR_OS;
}
nb_result nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access) {
    (void)address;
    (void)size_bytes;
    (void)access;
    return NB_ERR_UNSUPPORTED;
}
void nbi_pages_release(void *address, size_t size_bytes) {
    size_t offset = (size_t)((uintptr_t)address - (uintptr_t)explorer.pages);
    if (offset >= PAGES_SIZE) {
        munmap(address, size_bytes);
        return;
    }
    size_t first = offset / PAGE_SIZE, last = (offset + size_bytes + PAGE_SIZE - 1) / PAGE_SIZE;
    for (size_t i = first; i < last; ++i) {
        if (explorer.is_page_released[i]) FAIL("pages released twice");
        explorer.is_page_released[i] = true;
    }
}

// --- heap: a bump region whose freed blocks are never handed out again within a schedule ---

// Bytes that tell memory never written, or freed, at both ends of a block. The middle of a large one is rarely looked
// at, and filling it in each schedule takes a fifth of the time of those with an engine.
#define FILL_SIZE 8192
static void fill(void *memory, int byte, size_t size_bytes) {
    size_t end = size_bytes < FILL_SIZE ? size_bytes : FILL_SIZE;
    memset(memory, byte, end);
    memset((char *)memory + size_bytes - end, byte, end);
}

static void *heap_alloc(void *user, size_t size_bytes, size_t alignment) {
    (void)user;
    size_t grain = alignment > HEAP_GRAIN ? alignment : HEAP_GRAIN;
    size_t start = (explorer.heap_used + grain - 1) & ~(grain - 1);
    if (size_bytes > HEAP_SIZE || start > HEAP_SIZE - size_bytes) return NULL;
    explorer.heap_used = (start + size_bytes + HEAP_GRAIN - 1) & ~(size_t)(HEAP_GRAIN - 1);
    ++explorer.heap_live_count;
    fill(explorer.heap + start, 0xA5, size_bytes);
    memset(explorer.heap_shadow + start / HEAP_GRAIN, SHADOW_LIVE, (explorer.heap_used - start) / HEAP_GRAIN);
    return explorer.heap + start;
}

static void heap_free(void *user, void *memory, size_t size_bytes) {
    (void)user;
    size_t first = (size_t)((char *)memory - explorer.heap) / HEAP_GRAIN;
    size_t last = first + (size_bytes + HEAP_GRAIN - 1) / HEAP_GRAIN;
    uint8_t differing = 0; // without a branch: compilers look at many grains in one step
    for (size_t i = first; i < last; ++i) {
        differing = (uint8_t)(differing | (explorer.heap_shadow[i] ^ SHADOW_LIVE));
    }
    if (differing != 0) FAIL("freed twice, or never allocated");
    memset(explorer.heap_shadow + first, SHADOW_FREED, last - first);
    fill(memory, 0xDD, size_bytes);
    --explorer.heap_live_count;
}

static void log_nothing(void *user, const nb_log_record *record) {
    (void)user;
    (void)record;
}

nb_hooks explore_hooks(void) {
    return (nb_hooks){.allocator = {.alloc = heap_alloc, .free = heap_free},
                      .logger = {.log = log_nothing, .level_min = NB_LOG_ERROR}};
}

// --- running one schedule ---

static void fiber_main(void) {
    for (;;) {
        uint32_t self = explorer.current;
        fiber *f = &explorer.fibers[self];
        if (f->run != NULL)
            f->run(f->user);
        else
            explorer.test->thread(explorer.user, self);
        set_state(f, FIBER_DONE);
        f->is_reusable = true;
        for (uint32_t i = 0; i < explorer.fiber_count; ++i) {
            fiber *other = &explorer.fibers[i];
            if (other->state == FIBER_PARKED && other->parked_on == f) set_state(other, FIBER_READY);
        }
        switch_to(pick_next(), NULL);
    }
}

// Stops the fiber at the beginning of its body. A fiber whose last body has returned is there already; one that a
// failure has left somewhere else gets a fresh stack frame of fiber_main, which costs two system calls.
static void fiber_create(uint32_t index) {
    fiber *f = &explorer.fibers[index];
    f->owner = NULL;
    bool is_there = f->is_reusable;
    f->is_reusable = false;
    if (is_there) return;
    if (f->stack == NULL) f->stack = malloc(STACK_SIZE);
    if (f->stack == NULL) abort();
    ucontext_t context, back;
    getcontext(&context);
    context.uc_stack.ss_sp = f->stack;
    context.uc_stack.ss_size = STACK_SIZE;
    context.uc_link = NULL;
    void fiber_entry(void);
    makecontext(&context, fiber_entry, 0);
    uint32_t self = explorer.current;
    explorer.current = index;
    if (sigsetjmp(explorer.creator, 0) == 0) swapcontext(&back, &context);
    explorer.current = self;
}

// Runs on the fiber's own stack: remembers the place, returns to the creator, and starts the body when resumed.
void fiber_entry(void) {
    if (sigsetjmp(explorer.fibers[explorer.current].resume_at, 0) == 0) siglongjmp(explorer.creator, 1);
    fiber_main();
}

static void seed_strategy(uint64_t seed) {
    explorer.random_state = seed * 0xD1342543DE82EF95u + 1;
    explorer.uses_priorities = (seed & 1) != 0;
    explorer.switch_chance = 16u << (explore_random() % 4); // 1/16 to 1/2: short and long runs between switches
    explorer.change_points_left = 1 + (uint32_t)(explore_random() % 3);
    explorer.change_period =
        8u << (explore_random() % 5); // 8 to 128: schedules here are tens to hundreds of steps long
    for (uint32_t i = 0; i < EXPLORE_THREADS_MAX; ++i) {
        explorer.fibers[i].priority = 16 + (uint32_t)(explore_random() % 1024);
    }
}

static void reset_schedule(uint64_t seed) {
    explorer.current = RUNNER;
    explorer.has_failed = false;
    explorer.is_best = false;
    explorer.step_count = 0;
    explorer.history_count = 0;
    explorer.schedule_hash = 0xCBF29CE484222325u;
    explorer.now_ns = 1000000;
    memset(explorer.heap_shadow, SHADOW_UNUSED, explorer.heap_used / HEAP_GRAIN + 1);
    explorer.heap_used = 0;
    explorer.heap_live_count = 0;
    memset(explorer.pages, 0, explorer.pages_used);
    memset(explorer.is_page_released, 0, explorer.pages_used / PAGE_SIZE);
    explorer.pages_used = 0;
    memset(explorer.user, 0, explorer.test->user_size_bytes);
    seed_strategy(seed);
}

static bool run_schedule(const explore_test *test, uint64_t seed) {
    explorer.test = test;
    explorer.fiber_count = test->thread_count;
    explorer.refuses_threads = false;
    reset_schedule(seed);
    for (uint32_t i = 0; i < test->thread_count; ++i) {
        fiber_create(i);
        explorer.fibers[i].run = NULL;
        explorer.fibers[i].state = FIBER_READY;
        explorer.fibers[i].has_yielded = false;
    }
    switch (sigsetjmp(explorer.runner, 0)) {
    case 0: // the way in
        explorer.current = RUNNER;
        if (test->setup != NULL) test->setup(explorer.user);
        switch_to(pick_next(), NULL);
        break;
    case 1: // the last thread has ended
        explorer.current = RUNNER;
        if (test->check != NULL) test->check(explorer.user);
        if (explorer.heap_live_count != 0) FAIL("leak: blocks are live at the end");
        break;
    default: break; // a check has failed
    }
    return !explorer.has_failed;
}

static void explorer_open(const explore_options *options) {
    explorer.options = options != NULL ? *options : (explore_options){0};
    if (explorer.options.step_limit == 0) explorer.options.step_limit = STEP_LIMIT;
    explorer.heap = aligned_alloc(4096, HEAP_SIZE);
    explorer.pages = mmap(NULL, PAGES_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (explorer.heap == NULL || explorer.pages == MAP_FAILED) abort();
}

static void explorer_close(void) {
    free(explorer.heap);
    munmap(explorer.pages, PAGES_SIZE);
    for (uint32_t i = 0; i < FIBER_COUNT_MAX; ++i) {
        free(explorer.fibers[i].stack);
        explorer.fibers[i].stack = NULL;
        explorer.fibers[i].is_reusable = false;
    }
}

static void print_failure(const explore_test *test, uint64_t seed) {
    fprintf(stderr, "%s: seed 0x%llx: %s\n", test->name, (unsigned long long)seed, explorer.failure);
    uint32_t first = explorer.history_count > HISTORY_SIZE ? explorer.history_count - HISTORY_SIZE : 0;
    fprintf(stderr, "  last switches (thread @ address):");
    for (uint32_t i = first; i < explorer.history_count; ++i) {
        history_entry entry = explorer.history[i % HISTORY_SIZE];
        fprintf(stderr, " %u@%04x", entry.fiber, (unsigned)((uintptr_t)entry.address & 0xFFFF));
    }
    fprintf(stderr, "\n");
}

// A failing seed must fail again in the same way, or its report is worth nothing.
static bool replays(const explore_test *test, uint64_t seed) {
    uint64_t hash = explorer.schedule_hash;
    return !run_schedule(test, seed) && explorer.schedule_hash == hash;
}

static bool explore_one(const explore_test *test, uint64_t seed, uint64_t schedule_count) {
    explorer.user = calloc(1, test->user_size_bytes + 1);
    if (explorer.user == NULL) abort();
    bool passed = true;
    for (uint64_t i = 0; i < schedule_count && passed; ++i) {
        if (run_schedule(test, seed + i)) continue;
        passed = false;
        print_failure(test, seed + i);
        fprintf(stderr, "  replay: NB_TEST_SEED=0x%llx NB_TEST_SCHEDULES=1 test_explore %s (%s)\n",
                (unsigned long long)(seed + i), test->name,
                replays(test, seed + i) ? "replayed identically" : "DOES NOT REPLAY");
    }
    free(explorer.user);
    if (passed) printf("ok %s: %llu schedules\n", test->name, (unsigned long long)schedule_count);
    return passed;
}

// --- schedules one by one ---

void explore_open(const explore_test *test, const explore_options *options) {
    explorer_open(options);
    explorer.user = calloc(1, test->user_size_bytes + 1);
    if (explorer.user == NULL) abort();
}

bool explore_run(const explore_test *test, uint64_t seed, explore_outcome *outcome) {
    bool passed = run_schedule(test, seed);
    *outcome = (explore_outcome){.failure = passed ? NULL : explorer.failure,
                                 .schedule_hash = explorer.schedule_hash,
                                 .step_count = explorer.step_count};
    return passed;
}

void explore_close(void) {
    free(explorer.user);
    explorer_close();
}

void *explore_user(void) { return explorer.user; }

uint32_t explore_step_count(void) { return explorer.step_count; }

size_t explore_heap_live_count(void) { return explorer.heap_live_count; }

void explore_refuse_threads(bool refuses) { explorer.refuses_threads = refuses; }

static uint64_t default_schedule_count(void) {
    const char *size = getenv("NB_TEST_SIZE");
    if (size != NULL && strcmp(size, "full") == 0) return 2000000;
    if (size != NULL && strcmp(size, "check") == 0) return 100000;
    return 4000;
}

bool explore_passes(const explore_test *test) {
    const char *seed = getenv("NB_TEST_SEED"), *schedules = getenv("NB_TEST_SCHEDULES");
    explorer_open(NULL);
    bool passed = explore_one(test, seed != NULL ? strtoull(seed, NULL, 0) : 1,
                              schedules != NULL ? strtoull(schedules, NULL, 0) : default_schedule_count());
    explorer_close();
    return passed;
}
