// SPDX-License-Identifier: MIT
// Save files: what was saved comes back, a file that is not exactly that changes nothing, and no failure or crash at
// any moment of writing leaves less than the old file or the new one.

#include "support/support.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/save_file.h"
#include "record/compress.h"
#include "record/save_file.h"

typedef struct game {
    uint64_t numbers[16];
} game;

typedef struct bed {
    game state;
    nb_states *states;
    test_heap heap;
    test_log log;
    nb_save_desc desc;
    bool is_refusing; // a provider says no
} bed;

static size_t refusing_save(void *user, void *bytes, size_t capacity_bytes) {
    (void)user;
    if (bytes != NULL && capacity_bytes >= 1) memset(bytes, 7, 1);
    return 1;
}

static nb_result refusing_load(void *user, const void *bytes, size_t size_bytes) {
    (void)bytes, (void)size_bytes;
    return ((bed *)user)->is_refusing ? NB_ERR_RANGE : NB_OK;
}

static void bed_fill(bed *b, uint64_t seed) {
    for (uint32_t i = 0; i < 16; ++i) b->state.numbers[i] = test_random(&seed);
}

static void bed_open(bed *b) {
    memset(b, 0, sizeof *b);
    nb_states_desc desc = {.hooks = test_hooks(&b->log, &b->heap)};
    assert_int_equal(nb_states_create(&desc, &b->states), NB_OK);
    nb_provider_desc state = {.name = "game", .data = &b->state, .size_bytes = sizeof b->state};
    nb_provider_desc refusing = {.name = "second", .save = refusing_save, .load = refusing_load, .user = b};
    assert_int_equal(nb_states_add(b->states, &state, NULL), NB_OK);
    assert_int_equal(nb_states_add(b->states, &refusing, NULL), NB_OK);
    b->desc = (nb_save_desc){.version = 3, .tick = 600, .seed = 42, .hooks = test_hooks(&b->log, &b->heap)};
}

static void bed_close(bed *b) {
    nb_states_destroy(b->states);
    assert_int_equal(b->heap.live_count.value, 0);
}

static void expect_state(const bed *b, uint64_t seed) {
    for (uint32_t i = 0; i < 16; ++i) assert_int_equal(b->state.numbers[i], test_random(&seed));
}

#define PATH "test_save_file.nbs"
#define TEMPORARY PATH ".tmp"

static bool is_there(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

// --- files ---

TEST(a_save_comes_back) {
    bed b;
    bed_open(&b);
    for (uint64_t seed = 1; seed < 5; ++seed) {
        bed_fill(&b, seed);
        assert_int_equal(nb_save_write(PATH, b.states, &b.desc), NB_OK);
        assert_false(is_there(TEMPORARY));
        bed_fill(&b, 99);
        nb_save_info info = {0}, menu = {0};
        assert_int_equal(nb_save_read(PATH, b.states, &b.desc, &info), NB_OK);
        expect_state(&b, seed);
        assert_int_equal(info.version, 3);
        assert_int_equal(info.tick, 600);
        assert_int_equal(info.seed, 42);
        assert_int_equal(info.format, NB_SAVE_VERSION);
        assert_int_equal(info.layout_hash, nb_states_layout_hash(b.states));
        assert_int_equal(nb_save_info_read(PATH, &b.desc, &menu), NB_OK);
        assert_memory_equal(&menu, &info, sizeof info);
    }
    remove(PATH);
    bed_close(&b);
}

TEST(what_is_no_file_is_refused) {
    bed b;
    bed_open(&b);
    bed_fill(&b, 1);
    nb_save_info info;
    memset(&info, 0x5A, sizeof info);
    assert_int_equal(nb_save_read("no_such_file.nbs", b.states, &b.desc, &info), NB_ERR_OS);
    assert_int_equal(nb_save_read("/", b.states, &b.desc, &info), NB_ERR_OS);
    assert_int_equal(nb_save_read("/dev/zero", b.states, &b.desc, &info), NB_ERR_OS);
    assert_int_equal(nb_save_info_read("no_such_file.nbs", &b.desc, &info), NB_ERR_OS);
    assert_int_equal(nb_save_write("/no/such/folder/file", b.states, &b.desc), NB_ERR_OS);
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(nb_save_read(PATH, b.states, &b.desc, &info), NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_save_info_read(PATH, &b.desc, &info), NB_ERR_UNSUPPORTED);
    assert_int_equal(nb_save_write(PATH, b.states, &b.desc), NB_OK);
    nb_save_desc tiny = b.desc;
    tiny.state_bytes_max = 16;
    assert_int_equal(nb_save_read(PATH, b.states, &tiny, &info), NB_ERR_RANGE);
    expect_state(&b, 1);
    assert_int_equal(((unsigned char *)&info)[0], 0x5A);
    remove(PATH);
    bed_close(&b);
}

// --- bytes ---

typedef struct bytes {
    unsigned char *at;
    size_t size;
} bytes;

// The save of a bed, as a file has it.
static bytes save_bytes(bed *b) {
    assert_int_equal(nb_save_write(PATH, b->states, &b->desc), NB_OK);
    FILE *file = fopen(PATH, "rb");
    assert_non_null(file);
    bytes found = {.at = malloc(4096)};
    assert_non_null(found.at);
    found.size = fread(found.at, 1, 4096, file);
    fclose(file);
    remove(PATH);
    assert_true(found.size > NBI_SAVE_HEAD_BYTES && found.size < 4096);
    return found;
}

// Opens and fills it, and saves that.
static bytes bed_save(bed *b, uint32_t seed) {
    bed_open(b);
    bed_fill(b, seed);
    return save_bytes(b);
}

// From a copy of exactly this size. What is refused has changed nothing.
static nb_result try_read(bed *b, const unsigned char *from, size_t size) {
    unsigned char *copy = malloc(size != 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, from, size);
    bed_fill(b, 77);
    nb_save_info info;
    memset(&info, 0x5A, sizeof info);
    uint64_t live_count = b->heap.live_count.value;
    nb_result result = nb_save_read_memory(copy, size, b->states, &b->desc, &info);
    free(copy);
    if (result != NB_OK) {
        expect_state(b, 77);
        for (size_t i = 0; i < sizeof info; ++i) assert_int_equal(((unsigned char *)&info)[i], 0x5A);
    }
    assert_int_equal(b->heap.live_count.value, live_count);
    return result;
}

TEST(cut_at_each_byte_it_is_refused) {
    bed b;
    bytes saved = bed_save(&b, 5);
    for (size_t size = 0; size < saved.size; ++size) {
        nb_result result = try_read(&b, saved.at, size);
        assert_int_equal(result, size < 8 ? NB_ERR_UNSUPPORTED : NB_ERR_RANGE);
    }
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_OK);
    expect_state(&b, 5);
    unsigned char *longer = calloc(1, saved.size + 1);
    assert_non_null(longer);
    memcpy(longer, saved.at, saved.size);
    assert_int_equal(try_read(&b, longer, saved.size + 1), NB_ERR_RANGE);
    free(longer);
    free(saved.at);
    bed_close(&b);
}

TEST(each_flipped_bit_is_refused) {
    bed b;
    bytes saved = bed_save(&b, 5);
    for (size_t i = 0; i < saved.size * 8; ++i) {
        saved.at[i / 8] ^= (unsigned char)(1u << i % 8);
        nb_result result = try_read(&b, saved.at, saved.size);
        assert_true(result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
        saved.at[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    free(saved.at);
    bed_close(&b);
}

static void sign(bytes saved) {
    nb_bytes_put_u64(saved.at + 56, nb_hash64(saved.at + NBI_SAVE_HEAD_BYTES, saved.size - NBI_SAVE_HEAD_BYTES, 0));
    nb_bytes_put_u64(saved.at + 64, nb_hash64(saved.at, 64, 0));
}

TEST(forged_numbers_are_refused) {
    bed b;
    bytes saved = bed_save(&b, 5);
    static const struct {
        size_t offset;
        uint64_t value;
        nb_result expected;
    } cases[] = {
        {8, 0, NB_ERR_UNSUPPORTED},
        {8, NB_SAVE_VERSION + 1, NB_ERR_UNSUPPORTED},
        {8, (uint64_t)3 << 32 | NB_SAVE_VERSION_OLDEST, NB_ERR_UNSUPPORTED}, // whose content is the state alone
        {24, NB_TICK_COUNT_MAX + 1, NB_ERR_RANGE},
        {24, UINT64_MAX, NB_ERR_RANGE},
        {16, 0, NB_ERR_UNSUPPORTED},
        {40, 0, NB_ERR_RANGE},
        {40, 1, NB_ERR_RANGE},
        {40, UINT64_MAX, NB_ERR_RANGE},
        {40, (uint64_t)1 << 40, NB_ERR_RANGE},
        {40, 256u << 20, NB_ERR_RANGE},
        {48, 0, NB_ERR_RANGE},
        {48, UINT64_MAX, NB_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        uint64_t before = nb_bytes_get_u64(saved.at + cases[i].offset);
        nb_bytes_put_u64(saved.at + cases[i].offset, cases[i].value);
        sign(saved);
        assert_int_equal(try_read(&b, saved.at, saved.size), cases[i].expected);
        nb_bytes_put_u64(saved.at + cases[i].offset, before);
        sign(saved);
    }
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_OK);
    // Another layout says so by its own number.
    uint32_t layout_count = test_log_count(&b.log, NB_ITEM_SAVE_LAYOUT);
    assert_int_equal(layout_count, 1);
    // Every byte of the zstd frame, signed again.
    for (size_t i = NBI_SAVE_HEAD_BYTES * 8; i < saved.size * 8; ++i) {
        saved.at[i / 8] ^= (unsigned char)(1u << i % 8);
        sign(saved);
        try_read(&b, saved.at, saved.size);
        saved.at[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    free(saved.at);
    bed_close(&b);
}

TEST(a_right_frame_with_a_wrong_state_is_refused) {
    bed b;
    bytes saved = bed_save(&b, 5);
    size_t raw_bytes = (size_t)nb_bytes_get_u64(saved.at + 40);
    unsigned char *raw = malloc(raw_bytes), *file = malloc(4096);
    assert_non_null(raw);
    assert_non_null(file);
    nbi_compress compress = {.hooks = nb_hooks_default()};
    assert_int_equal(nbi_compress_unpack(&compress, saved.at + NBI_SAVE_HEAD_BYTES, saved.size - NBI_SAVE_HEAD_BYTES,
                                         raw, raw_bytes),
                     NB_OK);
    for (size_t i = 0; i < raw_bytes; ++i) {
        raw[i] ^= 1;
        size_t stored = 0;
        memcpy(file, saved.at, NBI_SAVE_HEAD_BYTES);
        assert_int_equal(nbi_compress_pack(&compress, 1, raw, raw_bytes, file + NBI_SAVE_HEAD_BYTES,
                                           4096 - NBI_SAVE_HEAD_BYTES, &stored),
                         NB_OK);
        nb_bytes_put_u64(file + 48, stored);
        bytes forged = {file, NBI_SAVE_HEAD_BYTES + stored};
        sign(forged);
        assert_true(try_read(&b, forged.at, forged.size) < 0);
        raw[i] ^= 1;
    }
    nbi_compress_end(&compress);
    free(raw);
    free(file);
    free(saved.at);
    bed_close(&b);
}

TEST(a_provider_that_refuses_loses_nothing) {
    bed b;
    bytes saved = bed_save(&b, 5);
    b.is_refusing = true;
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_ERR_RANGE);
    b.is_refusing = false;
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_OK);
    expect_state(&b, 5);
    free(saved.at);
    bed_close(&b);
}

TEST(another_layout_is_refused) {
    bed b;
    bytes saved = bed_save(&b, 5);
    uint64_t more = 0;
    nb_provider_desc added = {.name = "added", .data = &more, .size_bytes = sizeof more};
    nb_provider handle;
    assert_int_equal(nb_states_add(b.states, &added, &handle), NB_OK);
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&b.log, NB_ITEM_SAVE_LAYOUT), 1);
    assert_int_equal(nb_states_remove(b.states, handle), NB_OK);
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_OK);
    // What is local has no part in it.
    added.flags = NB_PROVIDER_LOCAL;
    assert_int_equal(nb_states_add(b.states, &added, &handle), NB_OK);
    assert_int_equal(nb_provider_flags(b.states, handle), NB_PROVIDER_LOCAL);
    assert_int_equal(try_read(&b, saved.at, saved.size), NB_OK);
    free(saved.at);
    bed_close(&b);
}

// --- a disk of the test's own ---

// Two names, each with content on the disk (what a loss of power leaves) and in the cache (what the others see).
// Content is a number: 0 = no file, 1 = the old save, 2 = the new one, 3 = a part of it.
typedef struct disk {
    int cached[2], lasting[2]; // [0] the save, [1] the temporary file

    int fail_at, step; // this call fails (1 = the first)
    int crash_at;      // the machine loses power before this call
    bool has_crashed;
    int after[2]; // what is on the disk then
    uint32_t order_count;
    char order[16];

} disk;

static int which(const char *path) { return strstr(path, ".tmp") != NULL ? 1 : 0; }

static int step(disk *d, char name) {
    ++d->step;
    if (d->step == d->crash_at) {
        d->has_crashed = true;
        memcpy(d->after, d->lasting, sizeof d->after);
    }
    if (d->order_count < sizeof d->order - 1) d->order[d->order_count++] = name;
    return d->step == d->fail_at ? 5 : 0;
}

static int disk_open(void *user, const char *path, nbi_file *file) {
    disk *d = user;
    int error = step(d, 'o');
    if (error != 0) return error;
    assert_int_equal(which(path), 1); // never the save itself
    file->os = 2;
    d->cached[1] = 3;
    return 0;
}

static int disk_write(void *user, nbi_file file, const void *content, size_t size_bytes) {
    (void)content;
    disk *d = user;
    assert_int_equal(file.os, 2);
    assert_true(size_bytes > NBI_SAVE_HEAD_BYTES);
    int error = step(d, 'w');
    if (error == 0) d->cached[1] = 2;
    return error;
}

static int disk_sync(void *user, nbi_file file) {
    (void)file;
    disk *d = user;
    int error = step(d, 's');
    if (error == 0) d->lasting[1] = d->cached[1];
    return error;
}

static int disk_close(void *user, nbi_file file) {
    (void)file;
    return step(user, 'c');
}

// A file system may make the new name last at any time, before the bytes of a file that was not synced.
static int disk_rename(void *user, const char *from, const char *to) {
    disk *d = user;
    int error = step(d, 'r');
    if (error != 0) return error;
    assert_int_equal(which(from), 1);
    assert_int_equal(which(to), 0);
    d->cached[0] = d->cached[1];
    d->cached[1] = 0;
    d->lasting[0] = d->lasting[1] == 2 ? 2 : 3;
    return 0;
}

static int disk_sync_folder(void *user, const char *path) {
    (void)path;
    return step(user, 'f');
}

static int disk_remove(void *user, const char *path) {
    disk *d = user;
    assert_int_equal(which(path), 1);
    d->cached[1] = 0;
    if (d->order_count < sizeof d->order - 1) d->order[d->order_count++] = 'x';
    return 0;
}

static nb_result write_to(bed *b, disk *d) {
    d->cached[0] = d->lasting[0] = 1;
    nbi_file_ops ops = {.open = disk_open, .write = disk_write, .sync = disk_sync, .close = disk_close, .user = d};
    ops.rename = disk_rename, ops.sync_folder = disk_sync_folder, ops.remove = disk_remove;
    return nbi_save_write(PATH, b->states, (nb_input_view){NULL, 0}, &b->desc, &ops);
}

TEST(each_failing_step_keeps_the_old_file) {
    bed b;
    bed_open(&b);
    bed_fill(&b, 5);
    disk fine = {0};
    assert_int_equal(write_to(&b, &fine), NB_OK);
    assert_string_equal(fine.order, "owscrf");
    assert_int_equal(fine.cached[0], 2);
    for (int fail_at = 1; fail_at <= 6; ++fail_at) {
        disk d = {.fail_at = fail_at};
        assert_int_equal(write_to(&b, &d), NB_ERR_OS);
        assert_int_equal(d.cached[0], fail_at == 6 ? 2 : 1);
        assert_int_equal(d.cached[1], 0); // the temporary one is removed
        assert_int_equal(test_log_count(&b.log, NB_ITEM_RECORD_FILE), fail_at);
    }
    bed_close(&b);
}

TEST(a_loss_of_power_at_any_step_leaves_a_whole_file) {
    bed b;
    bed_open(&b);
    for (int crash_at = 1; crash_at <= 6; ++crash_at) {
        disk d = {.crash_at = crash_at};
        assert_int_equal(write_to(&b, &d), NB_OK);
        assert_true(d.has_crashed);
        assert_int_equal(d.after[0], crash_at <= 5 ? 1 : 2);
    }
    bed_close(&b);
}

TEST(what_a_crash_left_behind_is_overwritten) {
    bed b;
    bed_open(&b);
    bed_fill(&b, 5);
    FILE *left = fopen(TEMPORARY, "wb");
    assert_non_null(left);
    for (int i = 0; i < 5000; ++i) fputc('x', left);
    fclose(left);
    assert_int_equal(nb_save_write(PATH, b.states, &b.desc), NB_OK);
    assert_false(is_there(TEMPORARY));
    bed_fill(&b, 6);
    assert_int_equal(nb_save_read(PATH, b.states, &b.desc, NULL), NB_OK);
    expect_state(&b, 5);
    remove(PATH);
    bed_close(&b);
}

TEST(every_failed_allocation_is_survived) {
    bed b;
    bed_open(&b);
    bed_fill(&b, 1);
    assert_int_equal(nb_save_write(PATH, b.states, &b.desc), NB_OK);
    bool has_passed = false;
    for (uint64_t fail_at = 1; fail_at < 50 && !has_passed; ++fail_at) {
        bed_fill(&b, 2);
        b.heap.call_count.value = 0;
        b.heap.fail_at = fail_at;
        nb_result result = nb_save_write(PATH, b.states, &b.desc);
        has_passed = b.heap.call_count.value < fail_at;
        b.heap.fail_at = 0;
        assert_int_equal(result, has_passed ? NB_OK : NB_ERR_MEMORY);
        assert_int_equal(nb_save_read(PATH, b.states, &b.desc, NULL), NB_OK);
        expect_state(&b, has_passed ? 2 : 1);
    }
    assert_true(has_passed);
    has_passed = false;
    for (uint64_t fail_at = 1; fail_at < 50 && !has_passed; ++fail_at) {
        bed_fill(&b, 9);
        b.heap.call_count.value = 0;
        b.heap.fail_at = fail_at;
        nb_result result = nb_save_read(PATH, b.states, &b.desc, NULL);
        has_passed = b.heap.call_count.value < fail_at;
        b.heap.fail_at = 0;
        assert_int_equal(result, has_passed ? NB_OK : NB_ERR_MEMORY);
        expect_state(&b, has_passed ? 2 : 9);
    }
    assert_true(has_passed);
    remove(PATH);
    bed_close(&b);
}

// --- engines ---

typedef struct saver {
    uint64_t sum; // simulated
    nb_engine *engine;
    nb_result inside; // what saving within a frame says
} saver;

static nb_result add_tick(const nb_context *context, void *user) {
    saver *s = user;
    s->sum = s->sum * 31 + context->tick->index;
    s->inside = nb_save_engine("/no/such/folder/save", context->engine, NULL);
    return NB_OK;
}

static void saver_open(saver *s, uint64_t seed) {
    memset(s, 0, sizeof *s);
    nb_engine_desc desc = {.seed = seed,
                           .hashes_ticks = true,
                           .keeps_history = true,
                           .scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}};
    assert_int_equal(nb_engine_create(&desc, &s->engine), NB_OK);
    nb_provider_desc state = {.name = "sum", .data = &s->sum, .size_bytes = sizeof s->sum};
    assert_int_equal(nb_states_add(nb_engine_states(s->engine), &state, NULL), NB_OK);
    nb_module_desc module = {.name = "saver", .tick = add_tick, .user = s};
    assert_int_equal(nb_engine_module_attach(s->engine, &module, NULL), NB_OK);
}

TEST(an_engine_goes_on_where_it_was_saved) {
    static const char path[] = "test_save_engine.nbs";
    saver first, second, other;
    saver_open(&first, 7), saver_open(&second, 7), saver_open(&other, 8);
    assert_int_equal(nb_engine_run_ticks(first.engine, 40), NB_OK);
    assert_int_equal(first.inside, NB_BUSY);
    assert_int_equal(nb_save_engine(path, first.engine, NULL), NB_OK);
    assert_int_equal(nb_engine_run_ticks(first.engine, 20), NB_OK);
    assert_int_equal(nb_engine_run_ticks(second.engine, 10), NB_OK);
    nb_save_info info;
    assert_int_equal(nb_load_engine(path, second.engine, NULL, &info), NB_OK);
    assert_int_equal(info.tick, 40);
    assert_int_equal(nb_engine_run_ticks(second.engine, 20), NB_OK);
    assert_int_equal(second.sum, first.sum);
    assert_int_equal(nb_engine_stats_get(second.engine).tick_hash, nb_engine_stats_get(first.engine).tick_hash);
    assert_int_equal(nb_load_engine(path, other.engine, NULL, NULL), NB_ERR_UNSUPPORTED);
    assert_int_equal(other.sum, 0);
    assert_int_equal(nb_load_engine("/no/such/save", other.engine, NULL, NULL), NB_ERR_OS);
    nb_engine_destroy(first.engine), nb_engine_destroy(second.engine), nb_engine_destroy(other.engine);
    remove(path);
}
