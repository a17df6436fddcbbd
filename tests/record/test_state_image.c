// SPDX-License-Identifier: MIT
// Raw memory full of addresses, as old games have it: as an image it is loaded where its addresses mean something and
// refused elsewhere, and where nobody said that it is one, builds with assertions find out.

#include "frame/engine/engine_fixture.h"
#include "support/faults.h"
#include "support/log_lines.h"

#include "nebula/rollback.h"
#include "nebula/save_file.h"
#include "platform/platform.h"

#define PATH "test_state_image.nbs"

// --- a program that can be another one ---

static unsigned char other_identity[20];
static uint64_t moved_by;
static uint32_t program_kind; // 0 = this one, 1 = another build, 2 = moved, 3 = one that nothing is known of

static void change_program(nbi_program *program) {
    if (program_kind == 1) program->identity = other_identity, program->identity_bytes = sizeof other_identity;
    if (program_kind == 2) program->address += moved_by;
    if (program_kind == 3) *program = (nbi_program){0};
}

// --- a game in one piece of memory, linked by addresses ---

#define NODE_COUNT 64u

typedef struct node {
    struct node *next;
    uint64_t value;
} node;

typedef struct zone {
    node *first;
    node nodes[NODE_COUNT];
} zone;

typedef struct client {
    nb_engine *engine;
    zone *memory;
    uint32_t count; // of nodes that the newest tick came by
    log_lines log;
} client;

// Follows the addresses, as the game would.
static nb_result client_tick(const nb_context *context, void *user) {
    client *c = user;
    c->count = 0;
    for (node *at = c->memory->first; at != NULL && c->count < NODE_COUNT; at = at->next, ++c->count)
        at->value = at->value * 3 + context->tick->index;
    return NB_OK;
}

static void client_open(client *c, zone *memory, uint32_t flags) {
    *c = (client){.memory = memory};
    memset(memory, 0, sizeof *memory);
    memory->first = &memory->nodes[7];
    for (uint32_t i = 0; i < NODE_COUNT; ++i)
        memory->nodes[i].next = i == 6 ? NULL : &memory->nodes[(i + 1) % NODE_COUNT];
    nb_engine_desc desc = rig_desc(0);
    desc.hooks = log_lines_hooks(&c->log);
    assert_int_equal(nb_engine_create(&desc, &c->engine), NB_OK);
    nb_provider_desc state = {.name = "zone", .data = memory, .size_bytes = sizeof *memory, .flags = flags};
    assert_int_equal(nb_states_add(nb_engine_states(c->engine), &state, NULL), NB_OK);
    nb_module_desc module = {.name = "client", .tick = client_tick, .user = c};
    assert_int_equal(nb_engine_module_attach(c->engine, &module, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(c->engine, 5), NB_OK);
    assert_int_equal(c->count, NODE_COUNT);
}

static void client_close(client *c) { assert_int_equal(nb_engine_destroy(c->engine), NB_OK); }

static nb_result client_load(client *c) {
    nb_save_desc desc = {.hooks = {.logger = {.log = log_lines_record, .user = &c->log}}};
    return nb_load_engine(PATH, c->engine, &desc, NULL);
}

static const char *message_of(const log_lines *log, nb_log_item item) {
    uint32_t total = nbi_atomic_load_seq_cst_u32(&log->count);
    for (uint32_t i = 0; i < total; ++i) {
        if (log->lines[i].item == item) return log->lines[i].message;
    }
    return "";
}

static zone here, there;

// What the log says of an image: all three numbers of both sides.
static void expect_said(const client *c, const zone *saved, const zone *now) {
    const char *message = message_of(&c->log, NB_ITEM_STATE_LAYOUT);
    char saved_text[64], now_text[64];
    snprintf(saved_text, sizeof saved_text, "image \"zone\" was saved at address 0x%llx",
             (unsigned long long)(uintptr_t)saved);
    snprintf(now_text, sizeof now_text, "here it is at address 0x%llx", (unsigned long long)(uintptr_t)now);
    assert_non_null(strstr(message, saved_text));
    assert_non_null(strstr(message, now_text));
    assert_int_equal(log_lines_count(&c->log, NB_ITEM_SAVE_LAYOUT), 1);
}

TEST(an_image_loads_where_it_was_saved) {
    static client first, second;
    client_open(&first, &here, NB_PROVIDER_IMAGE);
    assert_int_equal(nb_save_engine(PATH, first.engine, NULL), NB_OK);
    uint64_t hash = nb_states_hash(nb_engine_states(first.engine));
    assert_int_equal(nb_engine_run_ticks(first.engine, 9), NB_OK);
    assert_int_equal(client_load(&first), NB_OK);
    assert_true(nb_states_hash(nb_engine_states(first.engine)) == hash);
    client_close(&first);
    // Another engine, as after a restart.
    client_open(&second, &here, NB_PROVIDER_IMAGE);
    here.first = NULL;
    assert_int_equal(client_load(&second), NB_OK);
    assert_true(nb_states_hash(nb_engine_states(second.engine)) == hash);
    assert_int_equal(nb_engine_run_ticks(second.engine, 1), NB_OK);
    assert_int_equal(second.count, NODE_COUNT);
    client_close(&second);
    remove(PATH);
}

TEST(an_image_at_another_address_is_refused_with_both) {
    static client first, second;
    client_open(&first, &here, NB_PROVIDER_IMAGE);
    assert_int_equal(nb_save_engine(PATH, first.engine, NULL), NB_OK);
    client_open(&second, &there, NB_PROVIDER_IMAGE);
    uint64_t hash = nb_states_hash(nb_engine_states(second.engine));
    assert_int_equal(client_load(&second), NB_ERR_UNSUPPORTED);
    expect_said(&second, &here, &there);
    assert_true(nb_states_hash(nb_engine_states(second.engine)) == hash);
    // Where it had been loaded, this would run through the first engine's memory.
    assert_ptr_equal(there.first, &there.nodes[7]);
    assert_int_equal(nb_engine_run_ticks(second.engine, 3), NB_OK);
    assert_int_equal(second.count, NODE_COUNT);
    client_close(&first), client_close(&second);
    remove(PATH);
}

TEST(an_image_of_another_program_is_refused) {
    for (uint32_t kind = 1; kind <= 3; ++kind) {
        static client first, second;
        moved_by = 0x1000;
        client_open(&first, &here, NB_PROVIDER_IMAGE);
        assert_int_equal(nb_save_engine(PATH, first.engine, NULL), NB_OK);
        client_close(&first);
        program_kind = kind;
        os.change_program = change_program;
        client_open(&second, &here, NB_PROVIDER_IMAGE);
        assert_int_equal(client_load(&second), NB_ERR_UNSUPPORTED);
        expect_said(&second, &here, &here);
        assert_int_equal(nb_loop_tick_count(nb_engine_loop(second.engine)), 5);
        // By itself it is as good as any.
        assert_int_equal(nb_save_engine(PATH, second.engine, NULL), NB_OK);
        assert_int_equal(client_load(&second), NB_OK);
        client_close(&second);
        program_kind = 0;
    }
    remove(PATH);
}

TEST(the_program_has_an_identity) {
    if (!nbi_platform_has(NBI_ABILITY_PROGRAM)) skip();
    nbi_program first = nbi_program_get(), again = nbi_program_get();
    assert_true(first.identity_bytes >= 8);
    assert_memory_equal(first.identity, again.identity, first.identity_bytes);
    assert_true(first.address == again.address);
    nbi_segment segments[64];
    uint32_t count = nbi_program_segments(segments, 64), hit_count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        hit_count += (uintptr_t)&here >= segments[i].begin && (uintptr_t)&here < segments[i].end;
        hit_count += (uintptr_t)&client_tick >= segments[i].begin && (uintptr_t)&client_tick < segments[i].end;
    }
    assert_int_equal(hit_count, 2);
    assert_int_equal(nbi_program_segments(segments, 1), 1);
    assert_int_equal(nbi_program_segments(segments, 0), 0);
}

// --- addresses where none should be ---

static void note_assertion(void *user, const nb_log_record *record) {
    (void)record;
    *(bool *)user = true;
}

// The library and the test may be built with different flags, so the library is asked.
static bool has_assertions(void) {
    static log_lines quiet;
    bool has_any = false;
    nb_states_desc desc = {.state_count_max = NB_PROVIDER_COUNT_MAX + 1, .hooks = log_lines_hooks(&quiet)};
    desc.hooks.assertion = (nb_assert_hook){.failed = note_assertion, .user = &has_any};
    nb_states *states = NULL;
    assert_int_equal(nb_states_create(&desc, &states), NB_ERR_RANGE);
    return has_any;
}

static void expect_found(nb_states *states, log_lines *log, uint32_t count, const char *text) {
    static unsigned char bytes[4u << 20];
    size_t size = 0;
    assert_int_equal(nb_states_save(states, bytes, sizeof bytes, &size), NB_OK);
    if (!has_assertions()) return;
    assert_int_equal(log_lines_count(log, NB_ITEM_STATE_ADDRESS), count);
    if (text != NULL && strstr(log->lines[count - 1].message, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, log->lines[count - 1].message);
}

TEST(an_address_in_a_plain_state_is_named_once) {
    static client c;
    client_open(&c, &here, 0);
    nb_states *states = nb_engine_states(c.engine);
    bool is_high = (uintptr_t)&here >> 32 != 0;
    if (!is_high || !nbi_platform_has(NBI_ABILITY_PROGRAM)) skip(); // a program at low addresses
    expect_found(states, &c.log, 1, "state \"zone\": byte 0 holds an address");
    assert_int_equal(nb_engine_run_ticks(c.engine, 5), NB_OK);
    expect_found(states, &c.log, 1, NULL); // once
    client_close(&c);
}

// One that saves what it is given.
typedef struct blob {
    uint64_t *words;
    size_t size_bytes;
} blob;

static size_t blob_save(void *user, void *bytes, size_t capacity_bytes) {
    const blob *b = user;
    if (bytes != NULL && b->size_bytes <= capacity_bytes) memcpy(bytes, b->words, b->size_bytes);
    return b->size_bytes;
}

static nb_result blob_load(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_OK;
}

TEST(numbers_are_no_addresses_and_far_ones_are_found_later) {
    if (!nbi_platform_has(NBI_ABILITY_PROGRAM)) skip();
    static log_lines log;
    nb_states_desc desc = {.hooks = log_lines_hooks(&log)};
    nb_states *states = NULL;
    assert_int_equal(nb_states_create(&desc, &states), NB_OK);
    // On the heap, whose addresses nobody knows but by the states in it.
    size_t word_count = (size_t)(3u << 20) / sizeof(uint64_t);
    uint64_t *words = calloc(word_count, sizeof *words), *heap = calloc(4, sizeof *heap), seed = 5;
    assert_non_null(words);
    assert_non_null(heap);
    for (size_t i = 0; i < word_count; i += 4) {
        double real = (double)i * 0.37;
        words[i] = i, words[i + 1] = (uint64_t)i << 20; // far below where programs and heaps are
        memcpy(&words[i + 2], &real, sizeof real);
        words[i + 3] = test_random(&seed) | UINT64_C(1) << 63;
    }
    blob b = {words, word_count * sizeof *words};
    nb_provider_desc state_desc = {.name = "blob", .save = blob_save, .load = blob_load, .user = &b};
    nb_provider_desc heap_desc = {.name = "heap", .data = heap, .size_bytes = 4 * sizeof *heap};
    assert_int_equal(nb_states_add(states, &state_desc, NULL), NB_OK);
    assert_int_equal(nb_states_add(states, &heap_desc, NULL), NB_OK);
    for (uint32_t i = 0; i < 4; ++i) expect_found(states, &log, 0, NULL);
    // Far behind: each save goes on where the one before ended, and so comes by once in 48 saves.
    bool is_high = (uintptr_t)heap >> 32 != 0;
    words[200000] = (uintptr_t)&heap[1];
    for (uint32_t i = 0; is_high && i < 48; ++i) {
        size_t size = 0;
        assert_int_equal(nb_states_save(states, NULL, 0, &size), NB_FULL); // asks for the size alone
        static unsigned char bytes[4u << 20];
        assert_int_equal(nb_states_save(states, bytes, sizeof bytes, &size), NB_OK);
    }
    if (is_high) expect_found(states, &log, 1, "state \"blob\": byte 1600000 holds an address in state heap");
    nb_states_destroy(states);
    free(words), free(heap);
}

TEST(a_provider_that_cannot_be_is_named) {
    static log_lines log;
    nb_states_desc desc = {.hooks = log_lines_hooks(&log)};
    nb_states *states = NULL;
    assert_int_equal(nb_states_create(&desc, &states), NB_OK);
    nb_provider_desc empty = {.name = "zone", .data = &here};
    assert_int_equal(nb_states_add(states, &empty, NULL), NB_ERR_MISUSE);
    assert_string_equal(message_of(&log, NB_ITEM_STATE_ARGUMENT), "state \"zone\": memory without a size");
    nb_states_destroy(states);
}
