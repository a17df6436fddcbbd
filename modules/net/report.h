// SPDX-License-Identifier: MIT
#pragma once

// What every file of the module uses: hooks with defaults filled in, memory through them, reports, and integers in the
// byte order of messages. A module sees the core's public headers only, so these are its own.

#include "nebula/hooks.h"
#include "nebula/types.h"

// Copies hooks with every zero field replaced by its default; NULL gives all defaults.
nb_hooks nbi_net_hooks(const nb_hooks *hooks);

// Memory through the hooks; a failure is logged with the function's name. NULL may be freed.
void *nbi_net_alloc(const nb_hooks *hooks, size_t size_bytes, const char *function);
void nbi_net_free(const nb_hooks *hooks, void *memory, size_t size_bytes);

// Reports what is nobody's mistake: what comes from outside. Returns `result`.
nb_result nbi_net_log(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                      const char *format, ...) NB_PRINTF(5, 6);

// Reports a caller's mistake: as above, and to the assertion hook where that is compiled in. hooks NULL: the default.
nb_result nbi_net_fail(const nb_hooks *hooks, nb_log_item item, nb_result result, const char *function,
                       const char *format, ...) NB_PRINTF(5, 6);

#define NBI_NET_NULL(what) nbi_net_fail(NULL, NB_ITEM_BASE_NULL, NB_ERR_MISUSE, __func__, "%s is NULL", (what))

// Integers of messages are little-endian.
static inline void nbi_put_u64(unsigned char *at, uint64_t value) {
    for (uint32_t i = 0; i < 8; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

static inline void nbi_put_u32(unsigned char *at, uint32_t value) {
    for (uint32_t i = 0; i < 4; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

static inline void nbi_put_u16(unsigned char *at, uint32_t value) {
    at[0] = (unsigned char)value, at[1] = (unsigned char)(value >> 8);
}

static inline uint32_t nbi_get_u16(const unsigned char *at) { return (uint32_t)at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t nbi_get_u32(const unsigned char *at) { return nbi_get_u16(at) | nbi_get_u16(at + 2) << 16; }

static inline uint64_t nbi_get_u64(const unsigned char *at) {
    return (uint64_t)nbi_get_u32(at) | (uint64_t)nbi_get_u32(at + 4) << 32;
}
