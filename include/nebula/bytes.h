// SPDX-License-Identifier: MIT
#pragma once

// Integers in files and messages: little-endian at any address, whatever the machine is. The one rule: the caller knows
// that the bytes are there; nothing here can see where they end.
//
//     unsigned char head[12];
//     nb_bytes_put_u32(head, 0x42454E31u), nb_bytes_put_u64(head + 4, 99);
//     if (nb_bytes_get_u32(head) != 0x42454E31u) return;
//     uint64_t tick = nb_bytes_get_u64(head + 4);
//     printf("tick %llu\n", (unsigned long long)tick);

#include "nebula/types.h"

// Writes the two bytes at `at`, the lowest first. NULL: writes nothing.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE void nb_bytes_put_u16(unsigned char *at, uint16_t value) {
    if (at == NULL) return;
    at[0] = (unsigned char)value, at[1] = (unsigned char)(value >> 8);
}

// Writes the four bytes at `at`, the lowest first. NULL: writes nothing.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE void nb_bytes_put_u32(unsigned char *at, uint32_t value) {
    if (at == NULL) return;
    for (uint32_t i = 0; i < 4; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

// Writes the eight bytes at `at`, the lowest first. NULL: writes nothing.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE void nb_bytes_put_u64(unsigned char *at, uint64_t value) {
    if (at == NULL) return;
    for (uint32_t i = 0; i < 8; ++i) at[i] = (unsigned char)(value >> 8 * i);
}

// The number in the two bytes at `at`. NULL: 0.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE uint16_t nb_bytes_get_u16(const unsigned char *at) {
    if (at == NULL) return 0;
    return (uint16_t)(at[0] | at[1] << 8);
}

// The number in the four bytes at `at`. NULL: 0.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE uint32_t nb_bytes_get_u32(const unsigned char *at) {
    if (at == NULL) return 0;
    return (uint32_t)nb_bytes_get_u16(at) | (uint32_t)nb_bytes_get_u16(at + 2) << 16;
}

// The number in the eight bytes at `at`. NULL: 0.
// Thread: any. Owner: the bytes are the caller's. Fails: never.
NB_INLINE uint64_t nb_bytes_get_u64(const unsigned char *at) {
    if (at == NULL) return 0;
    return (uint64_t)nb_bytes_get_u32(at) | (uint64_t)nb_bytes_get_u32(at + 4) << 32;
}
