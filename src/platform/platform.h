// SPDX-License-Identifier: MIT
#pragma once

// The only list of operating-system calls the library makes, and platform_<os>.c the only files with OS includes.
// A port is one .c file that defines every function below; abilities an OS may lack are asked for with
// nbi_platform_has.

#include "nebula/atomic.h"
#include "nebula/types.h"

typedef enum nbi_ability {
    NBI_ABILITY_THREAD_AFFINITY, // nbi_thread_set_affinity
    NBI_ABILITY_THREAD_NAME,     // names show in debuggers
    NBI_ABILITY_PAGE_PROTECT,    // nbi_pages_protect
    NBI_ABILITY_TIMER_SLACK,     // nbi_thread_set_timer_slack
    NBI_ABILITY_FAULT_WATCH,     // nbi_fault_watch_add
    NBI_ABILITY_PROGRAM_MEMORY,  // nbi_program_runs and the others of its kind
    NBI_ABILITY_PROBE,           // nbi_probe
    NBI_ABILITY_PROGRAM,         // nbi_program_get, nbi_program_segments
    NBI_ABILITY_COUNT,
} nbi_ability;

// Thread: any. Owner: nothing. Fails: never.
bool nbi_platform_has(nbi_ability ability);

// --- time ---

// Nanoseconds of a clock that never steps back. It stands still while the machine is suspended (Linux CLOCK_MONOTONIC).
// Thread: any. Owner: nothing. Fails: never.
uint64_t nbi_clock_now_ns(void);

// No deadline: nbi_park_until and nbi_sleep_until_ns then wait for ever.
#define NBI_NEVER_NS UINT64_MAX

// Sleeps until the absolute time; returns at once when it has passed.
// Thread: any. Owner: nothing. Fails: never.
void nbi_sleep_until_ns(uint64_t deadline_ns);

// --- park and unpark on a word ---

// Sleeps while *word == expected, until woken or past the absolute deadline. May return spuriously: callers loop.
// Returns NB_OK (woken, spurious, or the word differed) or NB_TIMEOUT.
// Thread: any. Owner: the word must outlive the call. Fails: NB_TIMEOUT only.
nb_result nbi_park_until(const nb_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns);

// Wakes up to `count` threads parked on the word. The word is used as an address only: it may already be freed.
// Thread: any. Owner: nothing. Fails: never.
void nbi_unpark(const nb_atomic_u32 *word, uint32_t count);

// A hint inside a bounded spin.
// Thread: any. Owner: nothing. Fails: never.
void nbi_cpu_relax(void);

// --- threads ---

// Longest visible thread name, without the final zero (Linux: 15).
#define NBI_THREAD_NAME_MAX 15

typedef struct nbi_thread {
    uint64_t os; // the OS's handle; 0 = not started
} nbi_thread;

typedef struct nbi_thread_desc {
    void (*run)(void *user);
    void *user;
    const char *name;        // cut to NBI_THREAD_NAME_MAX
    size_t stack_size_bytes; // 0 = the OS's default; raised to the OS's minimum
    uint64_t affinity_mask;  // bit = cpu; 0 = anywhere
} nbi_thread_desc;

// Thread: any. Owner: *thread is filled on NB_OK and must be joined. Fails: NB_ERR_MEMORY, NB_ERR_OS.
nb_result nbi_thread_start(nbi_thread *thread, const nbi_thread_desc *desc);

// Waits for the end of a started thread and forgets it; a thread never started is fine.
// Thread: any but the thread itself. Owner: *thread becomes zero. Fails: never.
void nbi_thread_join(nbi_thread *thread);

// A number that differs between all threads alive; never 0.
// Thread: any. Owner: nothing. Fails: never.
uint64_t nbi_thread_id(void);

// Names the calling thread.
// Thread: any, acts on the caller. Owner: the name is copied. Fails: never (best effort).
void nbi_thread_set_name(const char *name);

// Thread: any, acts on `thread`, or on the caller where thread is NULL. Owner: nothing. Fails: NB_ERR_OS,
// NB_ERR_UNSUPPORTED.
nb_result nbi_thread_set_affinity(const nbi_thread *thread, uint64_t cpu_mask);

// How late the OS may fire the calling thread's timers.
// Thread: any, acts on the caller. Owner: nothing. Fails: NB_ERR_UNSUPPORTED.
nb_result nbi_thread_set_timer_slack(uint64_t slack_ns);

// Gives the rest of the time slice away.
// Thread: any. Owner: nothing. Fails: never.
void nbi_thread_yield(void);

// The cpu the caller runs on now, or -1.
// Thread: any. Owner: nothing. Fails: -1.
int nbi_cpu_current(void);

// CPUs this process may use: affinity mask and cgroup quota (v2 and v1, rounded up) taken into account; at least 1.
// Thread: any. Owner: nothing. Fails: never.
uint32_t nbi_cpu_count(void);

// The first 64 CPUs this process may run on, as bits; 0 = unknown.
// Thread: any. Owner: nothing. Fails: 0.
uint64_t nbi_cpu_mask(void);

// Gives the calling thread the floating-point mode in which results are the same on every thread: round to nearest,
// keep denormals, trap nothing. Returns the mode from before, for nbi_fp_leave. Exception flags stay. Cheap where the
// mode is right already. Thread: any, acts on the caller. Owner: nothing. Fails: no effect on CPUs without a mode.
uint32_t nbi_fp_enter(void);
void nbi_fp_leave(uint32_t mode);

// --- pages ---

// Thread: any. Owner: nothing. Fails: never.
size_t nbi_page_size(void);

// Reserves address space without memory. size_bytes is a multiple of the page size.
// Thread: any. Owner: the caller, until nbi_pages_release. Fails: NULL.
void *nbi_pages_reserve(size_t size_bytes);

// Makes reserved pages usable; they read as zero the first time.
// Thread: any. Owner: unchanged. Fails: NB_ERR_MEMORY; the pages stay reserved.
nb_result nbi_pages_commit(void *address, size_t size_bytes);

// Gives the memory back, keeps the address space. Committed again, the pages read as zero.
// Thread: any. Owner: unchanged. Fails: NB_ERR_OS; the pages stay usable.
nb_result nbi_pages_decommit(void *address, size_t size_bytes);

typedef enum nbi_page_access {
    NBI_PAGE_NONE,
    NBI_PAGE_READ,
    NBI_PAGE_READ_WRITE,
} nbi_page_access;

// Thread: any. Owner: unchanged. Fails: NB_ERR_OS, NB_ERR_UNSUPPORTED.
nb_result nbi_pages_protect(void *address, size_t size_bytes, nbi_page_access access);

// Ends a reservation made with nbi_pages_reserve, whole.
// Thread: any. Owner: the range is gone. Fails: never.
void nbi_pages_release(void *address, size_t size_bytes);

// --- the program's own variables ---

// Memory of static variables, in whole words of 64 bits.
typedef struct nbi_program_run {
    const unsigned char *begin;
    size_t size_bytes;
} nbi_program_run;

// A variable, by the symbol table of the file that it comes from.
typedef struct nbi_program_symbol {
    char name[64]; // cut where it is longer
    const unsigned char *begin;
    size_t size_bytes;
} nbi_program_symbol;

// Lists the writable memory of the program and of the libraries that it brought along: not of the system's libraries,
// nor of Nebula as a library of its own, nor what the loader writes. Variables of one thread are no part of it. Returns
// how many runs are filled in.
// Thread: any. Owner: the memory may go with its library. Fails: 0.
uint32_t nbi_program_runs(nbi_program_run *runs, uint32_t count_max);

// Copies whole words of what is listed, which other threads may write meanwhile.
// Thread: any. Owner: unchanged. Fails: never.
void nbi_program_read(void *to, const unsigned char *from, size_t size_bytes);

// The variable at an address. It reads files, without the heap.
// Thread: any. Owner: *out is a value. Fails: false (no symbol says).
bool nbi_program_name(const void *address, nbi_program_symbol *out);

// The address as the file counts it, for a debugger.
// Thread: any. Owner: nothing. Fails: the address itself.
size_t nbi_program_offset(const void *address);

// --- a copy of the process ---

// Runs a function in a copy of this process, in which the calling thread is the only one: nothing it writes is seen
// here, and a crash or a lock that nobody opens ends the copy alone. Its standard output and error go nowhere.
// Thread: any. Owner: *out is what it returned, written on NB_OK alone. Fails: NB_TIMEOUT (past the absolute deadline),
// NB_CLOSED (the copy has crashed), NB_ERR_OS, NB_ERR_UNSUPPORTED.
nb_result nbi_probe(uint64_t (*run)(void *user), void *user, uint64_t deadline_ns, uint64_t *out);

// --- the program ---

// The running program, without its libraries.
typedef struct nbi_program {
    uint64_t address; // by which its addresses differ from those in its file: other in each run of one that moves
    // Bytes that no other build has: the build id of its file (Linux: the ELF note), else its code. They stay.
    const void *identity;
    size_t identity_bytes;
} nbi_program;

// Thread: any. Owner: *program is a value. Fails: zeros, where the OS cannot tell.
nbi_program nbi_program_get(void);

// Addresses from begin up to end.
typedef struct nbi_segment {
    uintptr_t begin, end;
} nbi_segment;

// Where the program and its libraries are loaded: up to count_max of their segments; how many are there is returned.
// Thread: any. Owner: the caller's array is filled. Fails: 0.
uint32_t nbi_program_segments(nbi_segment *segments, uint32_t count_max);

// --- faults ---

// Watches of one process: an engine under a debugger has one, and tests a few.
#define NBI_FAULT_WATCH_COUNT_MAX 16

// Somebody who wants to know of accesses that the protection of pages forbids.
typedef struct nbi_fault_watch {
    // Runs where a signal handler may: it reads memory and calls nbi_stderr_write. True: the memory is this watch's and
    // all is said; the process then ends by the OS's default action, at the instruction that did it.
    bool (*report)(void *user, const void *address);
    void *user;
} nbi_fault_watch;

// From here on the watch is asked about each fault, before whoever handles such faults already. What no watch takes as
// its own is passed on to that one. A handler put in place later sees faults first.
// Thread: any. Owner: the watch stays the caller's and in place until nbi_fault_watch_remove. Fails: NB_FULL,
// NB_ERR_OS, NB_ERR_UNSUPPORTED.
nb_result nbi_fault_watch_add(const nbi_fault_watch *watch);

// Ends a watch; with the last one the handler from before is back, unless somebody has put another in our place.
// Thread: any, while no other thread can fault on the watch's memory. Owner: the watch is free. Fails: never.
void nbi_fault_watch_remove(const nbi_fault_watch *watch);

// Writes to the standard error, unbuffered.
// Thread: any, also a signal handler. Owner: nothing. Fails: never (best effort).
void nbi_stderr_write(const char *text, size_t size_bytes);
