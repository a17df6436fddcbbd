// SPDX-License-Identifier: MIT
#pragma once

// What tests of the Vulkan backend share: a device with the validation layer on, or a skipped test where there is none.
// With NB_TEST_VULKAN=1 in the environment a missing driver or layer is a failure.

#include "support/support.h"

#include "nebula/gpu_vulkan.h"

#include <dlfcn.h>

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define TEST_HAS_MSAN 1
#endif
#endif

typedef struct vulkan_log {
    nb_atomic_u32 message_count; // of the validation layer
    nb_atomic_u32 is_quiet;      // messages are expected
    nb_atomic_u32 counts[TEST_LOG_ITEM_MAX];
    char last[NB_LOG_OFF + 1][400]; // by level; read it when no other thread logs
} vulkan_log;

static inline void vulkan_log_record(void *user, const nb_log_record *record) {
    vulkan_log *log = (vulkan_log *)user;
    bool is_message = record->item == NB_ITEM_VULKAN_MESSAGE && record->level >= NB_LOG_WARNING;
    if (record->item < TEST_LOG_ITEM_MAX) nbi_atomic_fetch_add_seq_cst_u32(&log->counts[record->item], 1);
    if (is_message) nbi_atomic_fetch_add_seq_cst_u32(&log->message_count, 1);
    if (!nbi_atomic_load_seq_cst_u32(&log->is_quiet)) {
        snprintf(log->last[record->level], sizeof log->last[0], "%s", record->message);
        if (is_message) fprintf(stderr, "%s\n", record->message);
    }
}

static inline nb_hooks vulkan_hooks(vulkan_log *log, test_heap *heap) {
    nb_hooks hooks = test_hooks(NULL, heap);
    hooks.logger = (nb_logger){.log = vulkan_log_record, .user = log, .level_min = NB_LOG_INFO};
    return hooks;
}

static inline uint32_t vulkan_log_count(const vulkan_log *log, nb_log_item item) {
    return nbi_atomic_load_seq_cst_u32(&log->counts[item]);
}

static inline bool is_vulkan_needed(void) {
    const char *needed = getenv("NB_TEST_VULKAN");
    return needed != NULL && strcmp(needed, "1") == 0;
}

// Before the first device: what a driver leaves behind in its own memory is not lost as long as it stays loaded.
static inline void vulkan_keep_loaded(void) {
    const char *libraries[] = {"libvulkan.so.1", "libvulkan_lvp.so", "libVkLayer_khronos_validation.so"};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; ++i) dlopen(libraries[i], RTLD_NOW | RTLD_NODELETE);
}

// Ends the test as skipped where there is nothing to test with.
static inline void vulkan_skip_unless(nb_result result, const char *reason) {
    if (result == NB_OK) return;
    bool can_skip = result == NB_ERR_UNSUPPORTED && !is_vulkan_needed();
    fprintf(stderr, "no Vulkan here, %s: %s (%s)\n", can_skip ? "skipped" : "failed", reason, nb_result_name(result));
    if (!can_skip) fail();
    skip();
}

// The memory sanitizer does not see what drivers write.
static inline bool is_vulkan_left_out(void) {
#if defined(TEST_HAS_MSAN)
    return true;
#else
    return nb_gpu_vulkan_backend() == NULL;
#endif
}
