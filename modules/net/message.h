// SPDX-License-Identifier: MIT
#pragma once

// The bytes of a message between two players. All integers are little-endian; ticks are those of the engines, and a
// range [first, first + count) never wraps.
//
//    0 magic (4)            4 version (2)          6 from player (1)      7 to player (1)
//    8 player count (1)     9 input count (1)     10 hash count (1)      11 zero (1)
//   12 advantage (4)       16 echo age (4)        20 zero (4)
//   24 tick count (8)      32 echo (8)
//   40 inputs acknowledged (8)                    48 hashes acknowledged (8)
//   56 first input (8)     64 first hash (8)
//   72 digest of each player's inputs (4 each, 8 of them)
//  104 hashes (4 each), then inputs, then the hash of all before (8), with the match's number as its seed
//
// A digest covers all inputs of a player that are in the newest of the hashes. Without hashes all digests are zero.
// Inputs are runs: how many ticks have it (1), which of its 24 bytes differ from the input before (3, a bit each), and
// those bytes. The 24 bytes are kind (2), device (2), code (4) and payload (16); before the first one all are zero.

#include "nebula/netplay.h"

#define NBI_MESSAGE_VERSION 2u
#define NBI_MESSAGE_HEAD_BYTES 104u
#define NBI_MESSAGE_BYTES_MIN (NBI_MESSAGE_HEAD_BYTES + 8u)

// More than are ever unacknowledged; what does not fit is sent when the first have been acknowledged.
#define NBI_MESSAGE_INPUTS_MAX 192u
#define NBI_MESSAGE_HASHES_MAX 62u

typedef struct nbi_message {
    uint32_t from, to, player_count;
    int32_t advantage;    // how far the sender sees itself ahead, in 1/256 tick
    uint64_t tick_count;  // of the sender
    uint64_t echo;        // the newest tick_count that it has of the receiver,
    uint32_t echo_age;    // and how many of its ticks ago that came
    uint64_t input_acked; // it has the receiver's inputs of all ticks below,
    uint64_t hash_acked;  // and its hashes of all tick counts below
    uint64_t input_first; // tick of inputs[0]
    uint64_t hash_first;  // tick count of hashes[0]
    uint32_t input_count, hash_count;
    uint32_t digests[NB_NETPLAY_PLAYER_COUNT_MAX]; // of each player's inputs before hashes[hash_count - 1]
    uint32_t hashes[NBI_MESSAGE_HASHES_MAX];
    nb_input_event inputs[NBI_MESSAGE_INPUTS_MAX];
} nbi_message;

// Writes up to NB_NETPLAY_MESSAGE_BYTES_MAX bytes and returns how many. Inputs that do not fit are left out, and
// message->input_count becomes the number of those that are in.
size_t nbi_message_write(nbi_message *message, uint64_t session, unsigned char *bytes);

// False: these bytes are no message of this match; *message is garbage then.
bool nbi_message_read(const unsigned char *bytes, size_t size_bytes, uint64_t session, nbi_message *message);
