// SPDX-License-Identifier: MIT
// Linux: raw futexes with absolute monotonic deadlines, pthreads, mmap. The only file with OS includes.

#if defined(__linux__)

#define _GNU_SOURCE

#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

// clang links its sanitizers into the program, where their own variables would be taken for the game's.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_PROGRAM_MEMORY false
#endif
#endif
#if !defined(HAS_PROGRAM_MEMORY)
#define HAS_PROGRAM_MEMORY true
#endif

// The thread sanitizer takes a copy without the other threads for an error.
#if defined(__SANITIZE_THREAD__)
#define HAS_PROBE false
#else
#define HAS_PROBE HAS_PROGRAM_MEMORY
#endif

bool nbi_platform_has(nbi_ability ability) {
    if (ability == NBI_ABILITY_PROGRAM_MEMORY) return HAS_PROGRAM_MEMORY;
    if (ability == NBI_ABILITY_PROBE) return HAS_PROBE;
    // Everything else on the list exists on Linux; another OS answers for each.
    return (unsigned)ability < NBI_ABILITY_COUNT;
}

// --- time ---

uint64_t nbi_clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t time_ns) {
    return (struct timespec){.tv_sec = (time_t)(time_ns / NS_PER_S), .tv_nsec = (long)(time_ns % NS_PER_S)};
}

void nbi_sleep_until_ns(uint64_t deadline_ns) {
    struct timespec deadline = timespec_of(deadline_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR) {
        // A signal came first; the deadline is absolute, so the rest is slept without drift.
    }
}

// --- park and unpark on a word ---

nb_result nbi_park_until(const nb_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns) {
    struct timespec deadline = timespec_of(deadline_ns);
    const struct timespec *limit = deadline_ns == NBI_NEVER_NS ? NULL : &deadline;
    // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, FUTEX_WAIT only a relative one that restarts after
    // signals.
    long status = syscall(SYS_futex, &word->value, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, limit, NULL,
                          FUTEX_BITSET_MATCH_ANY);
    return status != 0 && errno == ETIMEDOUT ? NB_TIMEOUT : NB_OK;
}

void nbi_unpark(const nb_atomic_u32 *word, uint32_t count) {
    uint32_t wake_count = count > INT_MAX ? (uint32_t)INT_MAX : count;
    syscall(SYS_futex, &word->value, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, wake_count, NULL, NULL, 0);
}

void nbi_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// --- threads ---

// What a new thread needs before its function runs. The starter keeps it on its stack until the thread has taken a
// copy.
typedef struct thread_start {
    nbi_thread_desc desc;
    nb_atomic_u32 is_taken;
} thread_start;

static void *thread_main(void *user) {
    thread_start *start = user;
    nbi_thread_desc desc = start->desc;
    if (desc.name != NULL) nbi_thread_set_name(desc.name);
    // A mask with no usable cpu is a wish that cannot be met: the thread then runs anywhere.
    if (desc.affinity_mask != 0) nbi_thread_set_affinity(NULL, desc.affinity_mask);
    // Read by the acquire load in nbi_thread_start, after which `start` and the name may be gone.
    nbi_atomic_store_release_u32(&start->is_taken, 1);
    nbi_unpark(&start->is_taken, 1);
    desc.run(desc.user);
    return NULL;
}

static size_t stack_size_of(const nbi_thread_desc *desc) {
    size_t page = nbi_page_size();
    size_t minimum = (size_t)PTHREAD_STACK_MIN;
    size_t size = desc->stack_size_bytes < minimum ? minimum : desc->stack_size_bytes;
    return (size + page - 1) & ~(page - 1);
}

nb_result nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return NB_ERR_MEMORY;
    if (desc->stack_size_bytes != 0) pthread_attr_setstacksize(&attributes, stack_size_of(desc));
    thread_start start = {.desc = *desc};
    pthread_t handle;
    int status = pthread_create(&handle, &attributes, thread_main, &start);
    pthread_attr_destroy(&attributes);
    if (status == EAGAIN || status == ENOMEM) return NB_ERR_MEMORY;
    if (status != 0) return NB_ERR_OS;
    while (nbi_atomic_load_acquire_u32(&start.is_taken) == 0) nbi_park_until(&start.is_taken, 0, NBI_NEVER_NS);
    thread->os = (uint64_t)handle;
    return NB_OK;
}

void nbi_thread_join(nbi_thread *thread) {
    if (thread->os == 0) return;
    pthread_join((pthread_t)thread->os, NULL);
    thread->os = 0;
}

uint64_t nbi_thread_id(void) { return (uint64_t)pthread_self(); }

void nbi_thread_set_name(const char *name) {
    char cut[NBI_THREAD_NAME_MAX + 1];
    snprintf(cut, sizeof cut, "%s", name);
    pthread_setname_np(pthread_self(), cut);
}

nb_result nbi_thread_set_affinity(const nbi_thread *thread, uint64_t cpu_mask) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < 64; ++cpu) {
        if ((cpu_mask >> cpu) & 1u) CPU_SET(cpu, &set);
    }
    pthread_t target = thread != NULL ? (pthread_t)thread->os : pthread_self();
    return pthread_setaffinity_np(target, sizeof set, &set) == 0 ? NB_OK : NB_ERR_OS;
}

nb_result nbi_thread_set_timer_slack(uint64_t slack_ns) {
    return prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0) == 0 ? NB_OK : NB_ERR_UNSUPPORTED;
}

void nbi_thread_yield(void) { sched_yield(); }

int nbi_cpu_current(void) { return sched_getcpu(); }

// --- how many cpus: the affinity mask, then the cgroup's quota ---

// Reads a small file of the kernel into a string; false when it is not there.
static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, text, size - 1);
    close(file);
    if (length < 0) return false;
    text[length] = 0;
    return true;
}

// Quota divided by period, rounded up: a quota of 1.5 cpus can keep two threads busy. 0 = no limit.
static uint32_t cpus_of_quota(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return 0;
    long long cpus = (quota + period - 1) / period;
    return cpus > INT_MAX ? (uint32_t)INT_MAX : (uint32_t)cpus;
}

static uint32_t quota_v2(const char *folder) {
    char path[PATH_MAX], text[64];
    long long quota = 0, period = 0;
    if (snprintf(path, sizeof path, "%s/cpu.max", folder) >= (int)sizeof path) return 0;
    if (!read_text(path, text, sizeof text)) return 0;
    // "max 100000" has no number in front: no limit.
    if (sscanf(text, "%lld %lld", &quota, &period) != 2) return 0;
    return cpus_of_quota(quota, period);
}

static uint32_t quota_v1(const char *folder) {
    char path[PATH_MAX], text[64];
    if (snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= (int)sizeof path) return 0;
    if (!read_text(path, text, sizeof text)) return 0;
    long long quota = strtoll(text, NULL, 10);
    if (snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) >= (int)sizeof path) return 0;
    if (!read_text(path, text, sizeof text)) return 0;
    return cpus_of_quota(quota, strtoll(text, NULL, 10));
}

static uint32_t smaller_limit(uint32_t a, uint32_t b) {
    if (a == 0 || b == 0) return a > b ? a : b;
    return a < b ? a : b;
}

// Whether a comma-separated list such as "cpu,cpuacct" has exactly this name in it; the empty list has only "".
static bool list_has(const char *list, const char *name) {
    size_t length = strlen(name);
    for (const char *item = list; item != NULL; item = strchr(item, ',') != NULL ? strchr(item, ',') + 1 : NULL) {
        size_t item_length = strcspn(item, ",");
        if (item_length == length && strncmp(item, name, length) == 0) return true;
    }
    return false;
}

// The path of this process in the hierarchy whose line in /proc/self/cgroup lists `controller` ("" is version 2).
static bool cgroup_path(const char *controller, char *path, size_t size) {
    char text[4096];
    if (!read_text("/proc/self/cgroup", text, sizeof text)) return false;
    char *line_state = NULL;
    for (char *line = strtok_r(text, "\n", &line_state); line != NULL; line = strtok_r(NULL, "\n", &line_state)) {
        char *names = strchr(line, ':');
        char *where = names != NULL ? strchr(names + 1, ':') : NULL;
        if (where == NULL) continue;
        *where = 0;
        if (list_has(names + 1, controller)) return snprintf(path, size, "%s", where + 1) < (int)size;
    }
    return false;
}

// A limit may stand on any level from the process's own group up to the mount point: the smallest counts.
static uint32_t quota_along(const char *mount, char *group, uint32_t (*quota_of)(const char *folder)) {
    char folder[PATH_MAX];
    uint32_t limit = quota_of(mount);
    // Each turn cuts one component off, so the path's length bounds the loop.
    while (group[0] != 0 && strcmp(group, "/") != 0) {
        if (snprintf(folder, sizeof folder, "%s%s", mount, group) < (int)sizeof folder) {
            limit = smaller_limit(limit, quota_of(folder));
        }
        char *last = strrchr(group, '/');
        if (last == NULL) break;
        *last = 0;
    }
    return limit;
}

static uint32_t cgroup_cpu_limit(void) {
    char group[PATH_MAX];
    uint32_t limit = 0;
    if (cgroup_path("", group, sizeof group)) limit = quota_along("/sys/fs/cgroup", group, quota_v2);
    if (cgroup_path("cpu", group, sizeof group)) {
        limit = smaller_limit(limit, quota_along("/sys/fs/cgroup/cpu", group, quota_v1));
    }
    return limit;
}

uint32_t nbi_cpu_count(void) {
    cpu_set_t set;
    uint32_t count = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        count = (uint32_t)CPU_COUNT(&set);
    } else {
        // More cpus than cpu_set_t holds (1024): the kernel refuses the short mask.
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online > 0) count = (uint32_t)online;
    }
    count = smaller_limit(count, cgroup_cpu_limit());
    return count > 0 ? count : 1;
}

uint64_t nbi_cpu_mask(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    uint64_t mask = 0;
    for (unsigned cpu = 0; cpu < 64; ++cpu) {
        if (CPU_ISSET(cpu, &set)) mask |= (uint64_t)1 << cpu;
    }
    return mask;
}

// --- floating point ---

#if defined(__SSE__)
// Below, MXCSR: all exceptions masked, round to nearest, flush-to-zero and denormals-are-zero off; the low bits are
// flags of past operations. Above, the control word of the x87, which computes long double and is what fegetround
// reads.
#define FP_MODE 0x037F1F80u
#define FP_FLAGS 0x3Fu
static uint32_t fp_get(void) {
    uint16_t control = 0; // the memory sanitizer does not see what the instruction writes
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return (__builtin_ia32_stmxcsr() & 0xFFFFu) | (uint32_t)control << 16;
}
static void fp_set(uint32_t mode) {
    uint16_t control = (uint16_t)(mode >> 16);
    __builtin_ia32_ldmxcsr(mode & 0xFFFFu);
    __asm__ volatile("fldcw %0" : : "m"(control));
}
#elif defined(__aarch64__)
// The flags have a register of their own.
#define FP_MODE 0u
#define FP_FLAGS 0u
static uint32_t fp_get(void) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (uint32_t)control;
}
static void fp_set(uint32_t mode) {
    uint64_t wide = mode;
    __asm__ volatile("msr fpcr, %0" : : "r"(wide));
}
#else
#define FP_MODE 0u
#define FP_FLAGS 0u
static uint32_t fp_get(void) { return FP_MODE; }
static void fp_set(uint32_t mode) { (void)mode; }
#endif

// A write stalls the CPU, a read does not.
static void fp_change(uint32_t now, uint32_t mode) {
    if (((now ^ mode) & ~FP_FLAGS) != 0) fp_set((mode & ~FP_FLAGS) | (now & FP_FLAGS));
}

uint32_t nbi_fp_enter(void) {
    uint32_t now = fp_get();
    fp_change(now, FP_MODE);
    return now;
}

void nbi_fp_leave(uint32_t mode) { fp_change(fp_get(), mode); }

// --- pages ---

size_t nbi_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *nbi_pages_reserve(size_t size_bytes) {
    void *address = mmap(NULL, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address != MAP_FAILED ? address : NULL;
}

nb_result nbi_pages_commit(void *address, size_t size_bytes) {
    return mprotect(address, size_bytes, PROT_READ | PROT_WRITE) == 0 ? NB_OK : NB_ERR_MEMORY;
}

nb_result nbi_pages_decommit(void *address, size_t size_bytes) {
    // A fresh mapping over the old one drops the memory and the commit charge in one step.
    void *fresh = mmap(address, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return fresh != MAP_FAILED ? NB_OK : NB_ERR_OS;
}

nb_result nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access) {
    int flags = access == NBI_PAGE_NONE ? PROT_NONE : access == NBI_PAGE_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    return mprotect(address, size_bytes, flags) == 0 ? NB_OK : NB_ERR_OS;
}

void nbi_pages_release(void *address, size_t size_bytes) {
    if (address != NULL) munmap(address, size_bytes);
}

// --- a copy of the process ---

// Whatever handles crashes is of no use here: the copy ends, and leaves no core file.
static void probe_calm(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    struct rlimit none = {0, 0};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i) sigaction(signals[i], &action, NULL);
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
}

static nb_result probe_read(int file, uint64_t deadline_ns, uint64_t *out) {
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    for (;;) {
        uint64_t now_ns = nbi_clock_now_ns();
        if (now_ns >= deadline_ns) return NB_TIMEOUT;
        uint64_t left_ms = (deadline_ns - now_ns) / 1000000 + 1;
        int count = poll(&wanted, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
        if (count < 0 && errno != EINTR) return NB_ERR_OS;
        if (count > 0) return read(file, out, sizeof *out) == (ssize_t)sizeof *out ? NB_OK : NB_CLOSED;
    }
}

nb_result nbi_probe(uint64_t (*run)(void *user), void *user, uint64_t deadline_ns, uint64_t *out) {
    int files[2];
    uint64_t value = 0;
    if (!nbi_platform_has(NBI_ABILITY_PROBE)) return NB_ERR_UNSUPPORTED;
    if (pipe2(files, O_CLOEXEC) != 0) return NB_ERR_OS;
    pid_t copy = fork();
    if (copy == 0) {
        probe_calm();
        value = run(user);
        _exit(write(files[1], &value, sizeof value) == (ssize_t)sizeof value ? 0 : 1);
    }
    close(files[1]);
    nb_result result = copy > 0 ? probe_read(files[0], deadline_ns, &value) : NB_ERR_OS;
    close(files[0]);
    if (copy > 0) kill(copy, SIGKILL);
    while (copy > 0 && waitpid(copy, NULL, 0) < 0 && errno == EINTR) {
        // A signal came first.
    }
    if (result == NB_OK) *out = value;
    return result;
}

// --- the program ---

// The build id in a segment of notes: each is {name size, description size, type, name, description}, padded to 4.
static bool find_build_id(const unsigned char *notes, size_t size_bytes, nbi_program *program) {
    ElfW(Nhdr) note;
    for (size_t at = 0; size_bytes - at >= sizeof note;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name_at = at + sizeof note, text_at = name_at + (((size_t)note.n_namesz + 3) & ~(size_t)3);
        size_t end = text_at + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (end > size_bytes) return false;
        bool is_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name_at, "GNU", 4) == 0;
        if (is_id) program->identity = notes + text_at, program->identity_bytes = note.n_descsz;
        if (is_id) return true;
        at = end;
    }
    return false;
}

// The first object is the program.
static int take_program(struct dl_phdr_info *info, size_t size_bytes, void *user) {
    nbi_program *program = user;
    (void)size_bytes;
    program->address = info->dlpi_addr;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const unsigned char *bytes = (const unsigned char *)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_NOTE && find_build_id(bytes, header->p_memsz, program)) return 1;
        bool is_code = header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0;
        if (is_code) program->identity = bytes, program->identity_bytes = header->p_filesz;
    }
    return 1;
}

nbi_program nbi_program_get(void) {
    nbi_program program = {0};
    dl_iterate_phdr(take_program, &program);
    return program;
}

typedef struct segment_list {
    nbi_segment *segments;
    uint32_t count, count_max;
} segment_list;

static int take_segments(struct dl_phdr_info *info, size_t size_bytes, void *user) {
    segment_list *list = user;
    (void)size_bytes;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum && list->count < list->count_max; ++i) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD) continue;
        uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        list->segments[list->count++] = (nbi_segment){begin, begin + header->p_memsz};
    }
    return list->count == list->count_max;
}

uint32_t nbi_program_segments(nbi_segment *segments, uint32_t count_max) {
    segment_list list = {.segments = segments, .count_max = count_max};
    if (count_max != 0) dl_iterate_phdr(take_segments, &list);
    return list.count;
}

// --- faults ---

// The one mutable static of the library: a signal handler gets no argument, and there is one for the process.
static struct {
    pthread_mutex_t lock;                             // guards all but the watches, which the handler reads
    nb_atomic_ptr watches[NBI_FAULT_WATCH_COUNT_MAX]; // const nbi_fault_watch; NULL = free
    uint32_t count;
    bool is_installed;         // our handler stands, or others pass on to it
    struct sigaction previous; // does not change while our handler stands
} fault_watches = {.lock = PTHREAD_MUTEX_INITIALIZER};

// The default action then comes when the instruction is tried again, which is where a debugger or a core file should
// be. What somebody has sent is not repeated by itself.
static void fault_end(int number, const siginfo_t *info) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, NULL);
    if (info->si_code <= 0) raise(number);
}

static void fault_pass_on(int number, siginfo_t *info, void *context) {
    const struct sigaction *next = &fault_watches.previous;
    bool is_sent = info->si_code <= 0;
    if (next->sa_handler == SIG_IGN && is_sent) return;
    // The OS lets no thread ignore a fault of its own.
    if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN)
        fault_end(number, info);
    else if ((next->sa_flags & SA_SIGINFO) != 0)
        next->sa_sigaction(number, info, context);
    else
        next->sa_handler(number);
}

static bool fault_report(const void *address) {
    for (uint32_t i = 0; i < NBI_FAULT_WATCH_COUNT_MAX; ++i) {
        // Pairs with the release in nbi_fault_watch_add.
        const nbi_fault_watch *watch = nbi_atomic_load_acquire_ptr(&fault_watches.watches[i]);
        if (watch != NULL && watch->report(watch->user, address)) return true;
    }
    return false;
}

static void fault_handle(int number, siginfo_t *info, void *context) {
    int error = errno;
    // Only this kind is about the protection of pages that are there.
    bool is_ours = info->si_code == SEGV_ACCERR && fault_report(info->si_addr);
    if (is_ours)
        fault_end(number, info);
    else
        fault_pass_on(number, info, context);
    errno = error;
}

static bool fault_is_current(void) {
    struct sigaction now;
    return sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == fault_handle;
}

static nb_result fault_install(void) {
    if (fault_watches.is_installed) return NB_OK;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = fault_handle;
    // A thread's own stack for signals is used where it has one: whoever is passed a fault may count on it. A write to
    // pages of data leaves the stack in order, so none is made here.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    // Known before the handler can run.
    if (sigaction(SIGSEGV, NULL, &fault_watches.previous) != 0) return NB_ERR_OS;
    action.sa_mask = fault_watches.previous.sa_mask;
    if (sigaction(SIGSEGV, &action, NULL) != 0) return NB_ERR_OS;
    fault_watches.is_installed = true;
    return NB_OK;
}

nb_result nbi_fault_watch_add(const nbi_fault_watch *watch) {
    pthread_mutex_lock(&fault_watches.lock);
    nb_result result = fault_watches.count < NBI_FAULT_WATCH_COUNT_MAX ? fault_install() : NB_FULL;
    for (uint32_t i = 0; result == NB_OK && i < NBI_FAULT_WATCH_COUNT_MAX; ++i) {
        if (nbi_atomic_load_relaxed_ptr(&fault_watches.watches[i]) != NULL) continue;
        // Publishes *watch; read by the acquire load in fault_report.
        nbi_atomic_store_release_ptr(&fault_watches.watches[i], (void *)(uintptr_t)watch);
        ++fault_watches.count;
        break;
    }
    pthread_mutex_unlock(&fault_watches.lock);
    return result;
}

void nbi_fault_watch_remove(const nbi_fault_watch *watch) {
    pthread_mutex_lock(&fault_watches.lock);
    for (uint32_t i = 0; i < NBI_FAULT_WATCH_COUNT_MAX; ++i) {
        if (nbi_atomic_load_relaxed_ptr(&fault_watches.watches[i]) != watch) continue;
        nbi_atomic_store_relaxed_ptr(&fault_watches.watches[i], NULL);
        --fault_watches.count;
        break;
    }
    // One that came later passes on to us for ever: then our handler stays, and passes on in turn.
    bool is_last = fault_watches.count == 0 && fault_watches.is_installed && fault_is_current();
    if (is_last && sigaction(SIGSEGV, &fault_watches.previous, NULL) == 0) fault_watches.is_installed = false;
    pthread_mutex_unlock(&fault_watches.lock);
}

void nbi_stderr_write(const char *text, size_t size_bytes) {
    while (size_bytes > 0) {
        ssize_t written = write(STDERR_FILENO, text, size_bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        text += written;
        size_bytes -= (size_t)written;
    }
}

#endif
