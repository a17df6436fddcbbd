// SPDX-License-Identifier: MIT
// Messages as bytes. Every number is compared with what is there before it is used.

#include "message.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"

#include <string.h>

#define MAGIC 0x504E424Eu // "NBNP"

// An input as it is sent: all of an event but its time.
#define PACKED_BYTES 24u
#define RUN_HEAD_BYTES 4u

#define DIGESTS_AT 72u
NB_STATIC_ASSERT(DIGESTS_AT + 4 * NB_NETPLAY_PLAYER_COUNT_MAX == NBI_MESSAGE_HEAD_BYTES, "digests end the head");

// --- inputs ---

static void pack(const nb_input_event *event, unsigned char *bytes) {
    nb_bytes_put_u16(bytes, event->kind), nb_bytes_put_u16(bytes + 2, event->device);
    nb_bytes_put_u32(bytes + 4, event->code);
    memcpy(bytes + 8, event->payload.bytes, sizeof event->payload.bytes);
}

static void unpack(const unsigned char *bytes, nb_input_event *event) {
    *event = (nb_input_event){
        .kind = nb_bytes_get_u16(bytes), .device = nb_bytes_get_u16(bytes + 2), .code = nb_bytes_get_u32(bytes + 4)};
    memcpy(event->payload.bytes, bytes + 8, sizeof event->payload.bytes);
}

// The run that begins with inputs[first]: how many are like it.
static uint32_t run_length(const nbi_message *message, uint32_t first) {
    uint32_t count = 1;
    const nb_input_event *event = &message->inputs[first];
    while (first + count < message->input_count && memcmp(event, event + count, sizeof *event) == 0) ++count;
    return count;
}

// Returns the bytes of the run, RUN_HEAD_BYTES + PACKED_BYTES at most.
static size_t write_run(unsigned char *bytes, uint32_t count, const unsigned char *event, const unsigned char *before) {
    uint32_t mask = 0;
    size_t size = RUN_HEAD_BYTES;
    for (uint32_t i = 0; i < PACKED_BYTES; ++i) {
        if (event[i] == before[i]) continue;
        mask |= 1u << i;
        bytes[size++] = event[i];
    }
    bytes[0] = (unsigned char)count;
    nb_bytes_put_u16(bytes + 1, (uint16_t)mask);
    bytes[3] = (unsigned char)(mask >> 16);
    return size;
}

// Returns the bytes, and leaves in the message how many inputs are in them.
static size_t write_inputs(nbi_message *message, unsigned char *bytes, size_t capacity) {
    unsigned char before[PACKED_BYTES] = {0}, event[PACKED_BYTES];
    size_t size = 0;
    uint32_t done = 0;
    while (done < message->input_count && capacity - size >= RUN_HEAD_BYTES + PACKED_BYTES) {
        uint32_t count = run_length(message, done);
        pack(&message->inputs[done], event);
        size += write_run(bytes + size, count, event, before);
        memcpy(before, event, sizeof before);
        done += count;
    }
    message->input_count = done;
    return size;
}

// Applies the run at `bytes` to the event before it; returns its bytes, 0: it is cut.
static size_t read_run(const unsigned char *bytes, size_t size_bytes, unsigned char *event) {
    if (size_bytes < RUN_HEAD_BYTES) return 0;
    uint32_t mask = nb_bytes_get_u16(bytes + 1) | (uint32_t)bytes[3] << 16;
    size_t size = RUN_HEAD_BYTES;
    for (uint32_t i = 0; i < PACKED_BYTES; ++i) {
        if ((mask >> i & 1) == 0) continue;
        if (size == size_bytes) return 0;
        event[i] = bytes[size++];
    }
    return size;
}

// False: they are cut, too few or too many.
static bool read_inputs(const unsigned char *bytes, size_t size_bytes, nbi_message *message) {
    unsigned char event[PACKED_BYTES] = {0};
    uint32_t done = 0;
    while (done < message->input_count) {
        size_t size = read_run(bytes, size_bytes, event);
        uint32_t count = size != 0 ? bytes[0] : 0;
        if (count == 0 || count > message->input_count - done) return false;
        for (uint32_t i = 0; i < count; ++i) unpack(event, &message->inputs[done + i]);
        done += count;
        bytes += size;
        size_bytes -= size;
    }
    return size_bytes == 0;
}

// --- the whole ---

static void write_head(const nbi_message *m, unsigned char *bytes) {
    nb_bytes_put_u32(bytes, MAGIC), nb_bytes_put_u16(bytes + 4, NBI_MESSAGE_VERSION);
    bytes[6] = (unsigned char)m->from, bytes[7] = (unsigned char)m->to;
    bytes[8] = (unsigned char)m->player_count, bytes[9] = (unsigned char)m->input_count;
    bytes[10] = (unsigned char)m->hash_count, bytes[11] = 0;
    nb_bytes_put_u32(bytes + 12, (uint32_t)m->advantage), nb_bytes_put_u32(bytes + 16, m->echo_age);
    nb_bytes_put_u32(bytes + 20, 0);
    nb_bytes_put_u64(bytes + 24, m->tick_count), nb_bytes_put_u64(bytes + 32, m->echo);
    nb_bytes_put_u64(bytes + 40, m->input_acked), nb_bytes_put_u64(bytes + 48, m->hash_acked);
    nb_bytes_put_u64(bytes + 56, m->input_first), nb_bytes_put_u64(bytes + 64, m->hash_first);
    for (uint32_t i = 0; i < NB_NETPLAY_PLAYER_COUNT_MAX; ++i)
        nb_bytes_put_u32(bytes + DIGESTS_AT + i * 4, m->digests[i]);
}

size_t nbi_message_write(nbi_message *message, uint64_t session, unsigned char *bytes) {
    size_t size = NBI_MESSAGE_HEAD_BYTES;
    for (uint32_t i = 0; i < message->hash_count; ++i, size += 4) nb_bytes_put_u32(bytes + size, message->hashes[i]);
    size += write_inputs(message, bytes + size, NB_NETPLAY_MESSAGE_BYTES_MAX - 8 - size);
    write_head(message, bytes);
    nb_bytes_put_u64(bytes + size, nb_hash64(bytes, size, session));
    return size + 8;
}

// False: another version, or counts and ranges that cannot be.
static bool read_head(const unsigned char *bytes, nbi_message *m) {
    if (nb_bytes_get_u32(bytes) != MAGIC || nb_bytes_get_u16(bytes + 4) != NBI_MESSAGE_VERSION) return false;
    m->from = bytes[6], m->to = bytes[7], m->player_count = bytes[8];
    m->input_count = bytes[9], m->hash_count = bytes[10];
    m->advantage = (int32_t)nb_bytes_get_u32(bytes + 12), m->echo_age = nb_bytes_get_u32(bytes + 16);
    m->tick_count = nb_bytes_get_u64(bytes + 24), m->echo = nb_bytes_get_u64(bytes + 32);
    m->input_acked = nb_bytes_get_u64(bytes + 40), m->hash_acked = nb_bytes_get_u64(bytes + 48);
    m->input_first = nb_bytes_get_u64(bytes + 56), m->hash_first = nb_bytes_get_u64(bytes + 64);
    for (uint32_t i = 0; i < NB_NETPLAY_PLAYER_COUNT_MAX; ++i)
        m->digests[i] = nb_bytes_get_u32(bytes + DIGESTS_AT + i * 4);
    if (bytes[11] != 0 || nb_bytes_get_u32(bytes + 20) != 0) return false;
    if (m->input_count > NBI_MESSAGE_INPUTS_MAX || m->hash_count > NBI_MESSAGE_HASHES_MAX) return false;
    return m->input_first <= UINT64_MAX - m->input_count && m->hash_first <= UINT64_MAX - m->hash_count;
}

bool nbi_message_read(const unsigned char *bytes, size_t size_bytes, uint64_t session, nbi_message *message) {
    if (size_bytes < NBI_MESSAGE_BYTES_MIN || size_bytes > NB_NETPLAY_MESSAGE_BYTES_MAX) return false;
    size_t size = size_bytes - 8;
    if (nb_bytes_get_u64(bytes + size) != nb_hash64(bytes, size, session)) return false;
    if (!read_head(bytes, message)) return false;
    size_t at = NBI_MESSAGE_HEAD_BYTES + (size_t)message->hash_count * 4;
    if (at > size) return false;
    for (uint32_t i = 0; i < message->hash_count; ++i)
        message->hashes[i] = nb_bytes_get_u32(bytes + NBI_MESSAGE_HEAD_BYTES + i * 4);
    return read_inputs(bytes + at, size - at, message);
}
