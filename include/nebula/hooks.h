// SPDX-License-Identifier: MIT
#pragma once

// What a host may replace: memory, log, assertions. Hooks travel inside each object's desc and are copied at creation;
// nothing here is process-global. A zero field means the default: aligned libc heap, stderr, assertions that log.
//
//     nb_hooks hooks = {.logger = {.log = my_log, .level_min = NB_LOG_INFO}};
//     nb_token *root = NULL;
//     nb_token_create(&(nb_token_desc){.label = "root", .hooks = hooks}, &root);

#include "nebula/log_items.h"
#include "nebula/types.h"

// alloc returns memory of at least size bytes aligned to alignment (a power of two), or NULL. free gets the same size
// back. Both may be called from any thread that calls the owning object. One without the other counts as none.
typedef struct nb_allocator {
    void *(*alloc)(void *user, size_t size_bytes, size_t alignment);
    void (*free)(void *user, void *memory, size_t size_bytes);
    void *user;
} nb_allocator;

typedef enum nb_log_level {
    NB_LOG_DEFAULT = 0, // in a desc: NB_LOG_WARNING
    NB_LOG_TRACE,
    NB_LOG_INFO,
    NB_LOG_WARNING,
    NB_LOG_ERROR,
    NB_LOG_OFF,
} nb_log_level;

// One report. All pointers are valid during the callback only.
typedef struct nb_log_record {
    nb_log_level level;
    nb_log_item item;     // stable number: tests and tools match on it, never on the text
    const char *name;     // the item's name, such as "arena_full"
    const char *function; // the public function that reports
    const char *message;  // one line for a person, without a newline
} nb_log_record;

// log may be called from any thread that calls the owning object, and must not call back into that object.
typedef struct nb_logger {
    void (*log)(void *user, const nb_log_record *record);
    void *user;
    nb_log_level level_min; // records below it are not formatted at all
} nb_logger;

// Called when a caller's mistake is found, after the log record, where assertions are compiled in (NB_ASSERTIONS), and
// for each violation under NB_VIOLATION_TRAP.
// It may abort, break into a debugger or return; after a return the library gives its error result as usual.
typedef struct nb_assert_hook {
    void (*failed)(void *user, const nb_log_record *record);
    void *user;
} nb_assert_hook;

typedef struct nb_hooks {
    nb_allocator allocator;
    nb_logger logger;
    nb_assert_hook assertion;
} nb_hooks;

NB_EXTERN_C_BEGIN

// The defaults, spelled out: aligned libc heap, stderr from NB_LOG_WARNING up, assertions that only log.
// Thread: any. Owner: the caller gets a value. Fails: never.
NB_API nb_hooks nb_hooks_default(void);

// The name of a log item, such as "arena_full"; "unknown" for a number that is not one.
// Thread: any. Owner: a static string. Fails: never.
NB_API const char *nb_log_item_name(nb_log_item item);

// The name of a level, such as "warning"; "unknown" for a value outside the enum.
// Thread: any. Owner: a static string. Fails: never.
NB_API const char *nb_log_level_name(nb_log_level level);

NB_EXTERN_C_END
