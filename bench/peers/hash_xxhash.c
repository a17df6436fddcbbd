// SPDX-License-Identifier: MIT
// libxxhash as Debian ships it: the plain entry points, which a program gets without asking for more.

#include "peers.h"

#include <xxhash.h>

uint64_t peer_xxhash_64(const void *data, size_t size_bytes) { return XXH3_64bits_withSeed(data, size_bytes, 0); }

uint64_t peer_xxhash_128(const void *data, size_t size_bytes) {
    XXH128_hash_t digest = XXH3_128bits_withSeed(data, size_bytes, 0);
    return digest.low64 ^ digest.high64;
}
