// SPDX-License-Identifier: MIT
// Loads, rewinds and jumps in an engine with work in flight: nothing of the abandoned run reaches the ticks that
// follow, a save brings its waiting commands along, and a load that fails has changed nothing.

#include "frame/rollback/rollback_fixture.h"

#include "nebula/bytes.h"
#include "nebula/hash.h"
#include "nebula/replay.h"
#include "nebula/save_file.h"
#include "nebula/synctest.h"
#include "record/compress.h"
#include "record/file.h"
#include "record/save_file.h"

#include "platform/platform.h"

#define PATH "test_load.nbs"
#define FILE_MAX 16384u

// The game of the rollback tests, with a second provider with callbacks, whose name is behind the world's, and a host
// that sends and stages what it likes.
typedef struct bed {
    game g;
    uint64_t verdict; // of the judge: simulated
    bool is_list_refusing, is_judge_refusing;
    uint32_t staged_count;                                      // commands to stage in this frame's Gameplay
    uint64_t command_count, event_count;                        // that ticks got
    uint64_t frame_event_count;                                 // that frames saw
    nb_result (*inside)(const nb_context *context, void *user); // called in every phase
    nb_result results[NB_PHASE_COUNT];
} bed;

static nb_result picky_list_load(void *user, const void *bytes, size_t size_bytes) {
    bed *b = user;
    return b->is_list_refusing ? NB_ERR_RANGE : list_load(&b->g, bytes, size_bytes);
}

static size_t picky_list_save(void *user, void *bytes, size_t capacity_bytes) {
    return list_save(&((bed *)user)->g, bytes, capacity_bytes);
}

static size_t judge_save(void *user, void *bytes, size_t capacity_bytes) {
    bed *b = user;
    if (bytes != NULL && sizeof b->verdict <= capacity_bytes) memcpy(bytes, &b->verdict, sizeof b->verdict);
    return sizeof b->verdict;
}

static nb_result judge_load(void *user, const void *bytes, size_t size_bytes) {
    bed *b = user;
    if (b->is_judge_refusing || size_bytes != sizeof b->verdict) return NB_ERR_RANGE;
    memcpy(&b->verdict, bytes, sizeof b->verdict);
    return NB_OK;
}

static nb_result judge_tick(const nb_context *context, void *user) {
    bed *b = user;
    b->verdict = b->verdict * 5 + context->tick->index;
    b->command_count += context->commands.count;
    b->event_count += context->input.count;
    if (b->inside != NULL) b->results[context->phase] = b->inside(context, b);
    return NB_OK;
}

static nb_result judge_phase(const nb_context *context, void *user) {
    bed *b = user;
    if (b->inside != NULL) b->results[context->phase] = b->inside(context, b);
    return NB_OK;
}

static nb_result judge_frame(const nb_context *context, void *user) {
    bed *b = user;
    b->frame_event_count += context->input.count;
    for (; b->staged_count > 0; --b->staged_count) {
        nb_input_event event = game_event(b->staged_count * 4 + 1);
        assert_int_equal(nb_context_command(context, &event), NB_OK);
    }
    return judge_phase(context, user);
}

static void bed_open_desc(bed *b, nb_engine_desc desc) {
    memset(b, 0, sizeof *b);
    game_open_desc(&b->g, desc);
    nb_states *states = nb_engine_states(b->g.r.engine);
    const char *name;
    nb_provider list = nb_states_at(states, 0, &name);
    assert_string_equal(name, "list");
    assert_int_equal(nb_states_remove(states, list), NB_OK);
    nb_provider_desc picky = {.name = "list", .save = picky_list_save, .load = picky_list_load, .user = b};
    nb_provider_desc judge = {.name = "zz judge", .save = judge_save, .load = judge_load, .user = b};
    assert_int_equal(nb_states_add(states, &picky, NULL), NB_OK);
    assert_int_equal(nb_states_add(states, &judge, NULL), NB_OK);
    nb_module_desc module = {.name = "judge", .tick = judge_tick, .frame = judge_frame, .user = b};
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        bool is_taken = i == NB_PHASE_FIXED_SIM || i == NB_PHASE_GAMEPLAY || i == NB_PHASE_PARALLEL_TASKS ||
                        i == NB_PHASE_COMMAND_RECORD || i == NB_PHASE_DETACHED_SERVICES;
        if (!is_taken) module.handlers[i] = judge_phase;
    }
    attach(&b->g.r, module);
}

static void bed_open(bed *b) {
    bed_open_desc(b, game_desc(0));
    b->g.mail = game_script;
    assert_non_null(nb_engine_input(b->g.r.engine));
}

static void bed_close(bed *b) { game_close(&b->g); }

static nb_engine *engine_of(const bed *b) { return b->g.r.engine; }
static uint32_t waiting_of(const bed *b) { return nb_engine_commands(engine_of(b)).count; }

// The script stages one command in each frame; here only as the host says.
static void run_silent(bed *b, uint64_t count) {
    game_mail mail = b->g.mail;
    b->g.mail = NULL;
    run_ticks(&b->g.r, count);
    b->g.mail = mail;
}

// A host that has work in flight: three commands wait, and four events.
static void leave_work(bed *b) {
    b->staged_count = 3;
    run_silent(b, 1);
    for (uint32_t i = 0; i < 4; ++i) {
        nb_input_event event = {.kind = NB_INPUT_PRESS, .code = 3};
        assert_int_equal(nb_input_send(nb_engine_input(engine_of(b)), &event), NB_OK);
    }
    assert_int_equal(waiting_of(b), 3);
}

// The hash after each of the next ticks. Time passes: events that wait are due.
#define TAIL 6u
static void run_tail(bed *b, uint64_t hashes[TAIL]) {
    game_mail mail = b->g.mail;
    b->g.mail = NULL;
    for (uint32_t i = 0; i < TAIL; ++i) {
        assert_int_equal(nb_engine_frame_delta(engine_of(b), UINT64_C(16666667)), NB_OK);
        hashes[i] = game_hash(&b->g);
    }
    b->g.mail = mail;
}

// --- the run that is abandoned ---

// A game at tick 20 that nobody has disturbed.
static void bed_at_20(bed *b) {
    bed_open(b);
    run_ticks(&b->g.r, 20);
    run_silent(b, 1);
    assert_int_equal(nb_engine_rewind(engine_of(b), 20), NB_OK);
    assert_int_equal(waiting_of(b), 0);
}

static nb_result by_load(bed *b) { return nb_load_engine(PATH, engine_of(b), NULL, NULL); }
static nb_result by_rewind(bed *b) { return nb_engine_rewind(engine_of(b), 20); }

static nb_result by_set_tick(bed *b) {
    nb_result result = nb_save_read(PATH, nb_engine_states(engine_of(b)), NULL, NULL);
    return result == NB_OK ? nb_engine_set_tick(engine_of(b), 20) : result;
}

TEST(nothing_of_the_abandoned_run_reaches_the_next_ticks) {
    nb_result (*const ways[])(bed * b) = {by_load, by_rewind, by_set_tick};
    static bed reference;
    uint64_t clean[TAIL], found[TAIL];
    bed_at_20(&reference);
    assert_int_equal(nb_save_engine(PATH, engine_of(&reference), NULL), NB_OK);
    run_tail(&reference, clean);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
        static bed b;
        bed_at_20(&b);
        run_ticks(&b.g.r, 7);
        leave_work(&b);
        uint64_t discarded = nb_input_stats_get(nb_engine_input(engine_of(&b))).discarded_count;
        uint64_t dropped = rig_stats(&b.g.r).command_dropped_count;
        assert_int_equal(ways[i](&b), NB_OK);
        assert_int_equal(game_now(&b.g), 20);
        assert_int_equal(waiting_of(&b), 0);
        // Dropped, and counted.
        assert_int_equal(nb_input_stats_get(nb_engine_input(engine_of(&b))).discarded_count - discarded, 4);
        assert_int_equal(rig_stats(&b.g.r).command_dropped_count - dropped, 3);
        b.command_count = b.event_count = b.frame_event_count = 0;
        run_tail(&b, found);
        assert_int_equal(b.command_count, 0);
        assert_int_equal(b.event_count, 0);
        assert_int_equal(b.frame_event_count, 4); // who listens to frames hears of keys that were let go
        assert_memory_equal(found, clean, sizeof clean);
        bed_close(&b);
    }
    bed_close(&reference);
    remove(PATH);
}

TEST(ticks_asked_for_in_a_pause_are_of_the_run_before) {
    nb_result (*const ways[])(bed * b) = {by_load, by_rewind, by_set_tick};
    static bed b;
    bed_at_20(&b);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    nb_loop *loop = nb_engine_loop(engine_of(&b));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
        run_silent(&b, 5);
        leave_work(&b);
        assert_int_equal(nb_loop_run_to_tick(loop, 100), NB_OK);
        assert_int_equal(ways[i](&b), NB_OK);
        // Still paused, and at the restored tick, however many frames come.
        b.command_count = b.event_count = 0;
        for (uint32_t frame = 0; frame < 3; ++frame)
            assert_int_equal(nb_engine_frame_delta(engine_of(&b), UINT64_C(40000000)), NB_OK);
        assert_int_equal(game_now(&b.g), 20);
        b.g.mail = NULL;
        assert_int_equal(nb_loop_resume(loop), NB_OK);
        run_silent(&b, 1);
        assert_int_equal(b.event_count, 0);
        b.g.mail = game_script;
    }
    bed_close(&b);
    remove(PATH);
}

// A late correction of the run before is refused, and one of the run that goes on counts at once.
static void correct_now(game *g, const nb_context *context) {
    game_save *save = g->mail_user;
    g->mail_result = nb_context_correct_state(context, game_now(g), save->bytes, save->size_bytes);
}

static void correct_old(game *g, const nb_context *context) {
    nb_history_input none = {0};
    g->mail_result = nb_context_correct_input(context, game_now(g) - 1, &none);
}

TEST(corrections_belong_to_the_run_that_goes_on) {
    static bed b;
    static game_save save;
    bed_at_20(&b);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    game_save_to(&b.g, &save);
    run_ticks(&b.g.r, 60);
    // Modules that come make what lies behind unknown: of that run, not of the loaded one.
    attach(&b.g.r, (nb_module_desc){.name = "late", .tick = judge_phase, .user = &b});
    assert_int_equal(by_load(&b), NB_OK);
    b.g.mail = correct_old;
    assert_int_equal(nb_engine_frame_delta(engine_of(&b), 0), NB_OK);
    assert_int_equal(b.g.mail_result, NB_ERR_RANGE);
    b.g.mail = correct_now, b.g.mail_user = &save;
    assert_int_equal(nb_engine_frame_delta(engine_of(&b), 0), NB_OK);
    assert_int_equal(b.g.mail_result, NB_OK);
    bed_close(&b);
    remove(PATH);
}

TEST(a_jump_of_a_replay_takes_nothing_along) {
    static bed b, reference;
    nb_recorder_desc desc = {.path = "test_load.nbr", .key_ticks = 8, .hooks = test_hooks(NULL, NULL)};
    nb_recorder *recorder = NULL;
    bed_open(&reference);
    assert_int_equal(nb_recorder_attach(engine_of(&reference), &desc, &recorder), NB_OK);
    run_ticks(&reference.g.r, 30);
    assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    bed_open(&b);
    nb_replay *replay = NULL;
    assert_int_equal(nb_replay_open("test_load.nbr", NULL, &replay), NB_OK);
    assert_int_equal(nb_replay_attach(replay, engine_of(&b)), NB_OK);
    b.g.mail = NULL;
    leave_work(&b);
    assert_int_equal(nb_replay_jump(replay, engine_of(&b), 30), NB_OK);
    assert_int_equal(game_hash(&b.g), game_hash(&reference.g));
    assert_int_equal(waiting_of(&b), 0);
    // Behind its end nothing is fed any more: what waited before the jump must not show up there.
    b.command_count = b.event_count = 0;
    uint64_t hashes[TAIL];
    run_tail(&b, hashes);
    assert_int_equal(b.command_count + b.event_count, 0);
    assert_int_equal(nb_replay_close(replay), NB_OK);
    bed_close(&b), bed_close(&reference);
    remove("test_load.nbr");
}

// A tick that reads what is not saved: synctest puts the states of the first run back, which is no load of the host's.
static uint64_t unsaved;

static nb_result unsaved_tick(const nb_context *context, void *user) {
    (void)context;
    ((bed *)user)->verdict += ++unsaved;
    return NB_OK;
}

TEST(synctest_and_recorder_tell_a_load_from_their_own) {
    static bed b;
    nb_engine_desc engine = game_desc(0);
    engine.synctest_depth = 4;
    bed_open_desc(&b, engine);
    attach(&b.g.r, (nb_module_desc){.name = "unsaved", .tick = unsaved_tick, .user = &b});
    run_ticks(&b.g.r, 20);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    nb_recorder_desc desc = {.path = "test_load.nbr", .hooks = test_hooks(NULL, NULL)};
    nb_recorder *recorder = NULL;
    assert_int_equal(nb_recorder_attach(engine_of(&b), &desc, &recorder), NB_OK);
    run_ticks(&b.g.r, 30);
    nb_synctest_report report;
    assert_int_equal(nb_engine_synctest_get(engine_of(&b), &report), NB_OK);
    assert_true(report.diverged_count > 0);
    assert_int_equal(nb_recorder_stats_get(recorder).stop, NB_RECORD_STOP_NONE);
    // To a tick that synctest knows of the run before, and whose state is another one now.
    for (uint32_t i = 0; i < 3; ++i) {
        assert_int_equal(by_load(&b), NB_OK);
        b.verdict += 7 + i;
        assert_int_equal(nb_engine_set_tick(engine_of(&b), 50), NB_OK);
        run_ticks(&b.g.r, 3);
        assert_int_equal(by_load(&b), NB_OK);
        run_ticks(&b.g.r, 3);
    }
    assert_int_equal(nb_engine_synctest_get(engine_of(&b), &report), NB_OK);
    assert_int_equal(report.outside_count, 0);
    assert_int_equal(nb_recorder_stats_get(recorder).stop, NB_RECORD_STOP_JUMPED);
    assert_int_equal(nb_recorder_destroy(recorder), NB_ERR_RANGE);
    bed_close(&b);
    remove(PATH), remove("test_load.nbr");
}

// --- a save brings its commands along ---

TEST(waiting_commands_are_saved_with_their_tick) {
    static bed first, second;
    uint64_t clean[TAIL], found[TAIL];
    bed_open(&first), bed_open(&second);
    run_ticks(&first.g.r, 12), run_ticks(&second.g.r, 40);
    first.staged_count = 3;
    run_silent(&first, 1);
    assert_int_equal(nb_save_engine(PATH, engine_of(&first), NULL), NB_OK);
    nb_input_event kept[3];
    memcpy(kept, nb_engine_commands(engine_of(&first)).events, sizeof kept);
    first.command_count = second.command_count = 0;
    run_tail(&first, clean);
    assert_int_equal(first.command_count, 3);
    leave_work(&second);
    nb_save_info info;
    assert_int_equal(nb_load_engine(PATH, engine_of(&second), NULL, &info), NB_OK);
    assert_int_equal(info.tick, 13);
    assert_int_equal(info.format, NB_SAVE_VERSION);
    assert_int_equal(waiting_of(&second), 3);
    assert_memory_equal(nb_engine_commands(engine_of(&second)).events, kept, sizeof kept);
    second.command_count = 0;
    run_tail(&second, found);
    assert_int_equal(second.command_count, 3);
    assert_memory_equal(found, clean, sizeof clean);
    // The states alone can be read from the same file.
    assert_int_equal(nb_save_read(PATH, nb_engine_states(engine_of(&second)), NULL, NULL), NB_OK);
    bed_close(&first), bed_close(&second);
    remove(PATH);
}

TEST(an_engine_may_load_its_own_commands) {
    static bed b;
    static game_save save;
    bed_open(&b);
    run_ticks(&b.g.r, 5);
    b.staged_count = 3;
    run_silent(&b, 1);
    nb_input_event kept[3];
    memcpy(kept, nb_engine_commands(engine_of(&b)).events, sizeof kept);
    game_save_to(&b.g, &save);
    nb_input_view commands = nb_engine_commands(engine_of(&b));
    ++commands.events, --commands.count;
    assert_int_equal(nb_engine_load(engine_of(&b), 100, save.bytes, save.size_bytes, commands), NB_OK);
    assert_int_equal(game_now(&b.g), 100);
    assert_int_equal(waiting_of(&b), 2);
    assert_memory_equal(nb_engine_commands(engine_of(&b)).events, kept + 1, 2 * sizeof kept[0]);
    bed_close(&b);
}

// --- files that are damaged on purpose ---

typedef struct file {
    unsigned char bytes[FILE_MAX];
    size_t size;
} file;

static void file_read(file *f) {
    FILE *from = fopen(PATH, "rb");
    assert_non_null(from);
    f->size = fread(f->bytes, 1, sizeof f->bytes, from);
    fclose(from);
    assert_true(f->size > NBI_SAVE_HEAD_BYTES && f->size < sizeof f->bytes);
}

static void file_write(const file *f) {
    FILE *to = fopen(PATH, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(f->bytes, 1, f->size, to), f->size);
    assert_int_equal(fclose(to), 0);
}

static void file_sign(file *f) {
    size_t stored = f->size - NBI_SAVE_HEAD_BYTES;
    nb_bytes_put_u64(f->bytes + 48, stored);
    nb_bytes_put_u64(f->bytes + 56, nb_hash64(f->bytes + NBI_SAVE_HEAD_BYTES, stored, 0));
    nb_bytes_put_u64(f->bytes + 64, nb_hash64(f->bytes, 64, 0));
}

// Another content under the same head.
static void file_pack(file *f, const unsigned char *content, size_t size) {
    nbi_compress compress = {.hooks = nb_hooks_default()};
    size_t stored = 0;
    assert_int_equal(nbi_compress_pack(&compress, 1, content, size, f->bytes + NBI_SAVE_HEAD_BYTES,
                                       sizeof f->bytes - NBI_SAVE_HEAD_BYTES, &stored),
                     NB_OK);
    nbi_compress_end(&compress);
    nb_bytes_put_u64(f->bytes + 40, size);
    f->size = NBI_SAVE_HEAD_BYTES + stored;
    file_sign(f);
}

static size_t file_unpack(const file *f, unsigned char *content) {
    nbi_compress compress = {.hooks = nb_hooks_default()};
    size_t size = (size_t)nb_bytes_get_u64(f->bytes + 40);
    assert_true(size <= FILE_MAX);
    assert_int_equal(
        nbi_compress_unpack(&compress, f->bytes + NBI_SAVE_HEAD_BYTES, f->size - NBI_SAVE_HEAD_BYTES, content, size),
        NB_OK);
    nbi_compress_end(&compress);
    return size;
}

TEST(a_save_of_version_1_is_read_and_has_no_commands) {
    static bed b;
    static file f;
    static unsigned char content[FILE_MAX];
    bed_open(&b);
    run_ticks(&b.g.r, 12);
    assert_int_equal(nb_engine_rewind(engine_of(&b), 12), NB_OK);
    uint64_t hash = game_hash(&b.g);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    file_read(&f);
    size_t size = file_unpack(&f, content);
    assert_int_equal(nb_bytes_get_u64(content), 0);
    nb_bytes_put_u32(f.bytes + 8, 1);
    file_pack(&f, content + NBI_SAVE_COUNT_BYTES, size - NBI_SAVE_COUNT_BYTES);
    file_write(&f);
    run_ticks(&b.g.r, 12);
    leave_work(&b);
    nb_save_info info;
    assert_int_equal(nb_load_engine(PATH, engine_of(&b), NULL, &info), NB_OK);
    assert_int_equal(info.format, 1);
    assert_int_equal(game_now(&b.g), 12);
    assert_int_equal(game_hash(&b.g), hash);
    assert_int_equal(waiting_of(&b), 0);
    bed_close(&b);
    remove(PATH);
}

// --- loads that fail ---

// All that a load could change.
typedef struct picture {
    uint64_t hash, tick, waiting_events, dropped_count;
    uint32_t command_count, row_count;
    nb_input_event commands[8];
    uint64_t labels[UNIT_MAX]; // a local column, which is neither saved nor hashed
    nb_entity_ref refs[UNIT_MAX];
    bool has_begun;
    uint64_t tick_oldest;
} picture;

static void take_picture(bed *b, picture *p) {
    memset(p, 0, sizeof *p);
    nb_input_view commands = nb_engine_commands(engine_of(b));
    nb_history_stats history = nb_history_stats_get(nb_engine_history(engine_of(b)));
    p->hash = game_hash(&b->g), p->tick = game_now(&b->g);
    p->waiting_events = nb_input_stats_get(nb_engine_input(engine_of(b))).waiting_count;
    p->dropped_count = rig_stats(&b->g.r).command_dropped_count;
    p->command_count = commands.count;
    memcpy(p->commands, commands.events, commands.count * sizeof *p->commands);
    p->row_count = nb_store_row_count(b->g.world, b->g.units);
    const uint64_t *labels = NB_STORE_ROWS(b->g.world, b->g.units, UNIT_LABEL, uint64_t);
    for (uint32_t row = 0; row < p->row_count; ++row) {
        p->labels[row] = labels[row];
        assert_int_equal(nb_store_ref(b->g.world, nb_store_entity(b->g.world, b->g.units, row), &p->refs[row]), NB_OK);
    }
    p->has_begun = history.has_begun, p->tick_oldest = history.tick_oldest;
}

// A game in the middle of it: rows with local values, commands and events that wait.
static void bed_busy(bed *b) {
    bed_open(b);
    run_ticks(&b->g.r, 33);
    leave_work(b);
    uint64_t *labels = NB_STORE_ROWS_WRITE(b->g.world, b->g.units, UNIT_LABEL, uint64_t);
    NB_STORE_EACH_ROW(row, b->g.world, b->g.units) labels[row] = 1000 + row;
    assert_true(nb_store_row_count(b->g.world, b->g.units) > 3);
}

static nb_save_desc quiet_desc(bed *b) { return (nb_save_desc){.hooks = test_hooks(&b->g.r.log, &b->g.r.heap)}; }

static void expect_unchanged(bed *b, const picture *before) {
    static picture after;
    take_picture(b, &after);
    assert_memory_equal(&after, before, sizeof after);
}

static void refuse_file(bed *b, const file *f, const picture *before) {
    nb_save_desc desc = quiet_desc(b);
    nb_save_info info;
    memset(&info, 0x5A, sizeof info);
    file_write(f);
    nb_result result = nb_load_engine(PATH, engine_of(b), &desc, &info);
    assert_true(result < 0);
    for (size_t i = 0; i < sizeof info; ++i) assert_int_equal(((unsigned char *)&info)[i], 0x5A);
    expect_unchanged(b, before);
}

// Goes on as a game that nobody tried to load into.
static void expect_same_end(bed *b) {
    static bed reference;
    uint64_t clean[TAIL], found[TAIL];
    bed_busy(&reference);
    run_tail(&reference, clean);
    run_tail(b, found);
    assert_memory_equal(found, clean, sizeof clean);
    assert_int_equal(nb_engine_rewind(engine_of(b), 30), NB_OK);
    assert_int_equal(nb_engine_rewind(engine_of(&reference), 30), NB_OK);
    assert_int_equal(game_hash(&b->g), game_hash(&reference.g));
    bed_close(&reference);
}

// A save of tick 20 with two commands.
static void save_make(file *f) {
    static bed b;
    bed_open(&b);
    run_ticks(&b.g.r, 20);
    b.staged_count = 2;
    run_silent(&b, 1);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    file_read(f);
    bed_close(&b);
}

TEST(a_damaged_file_changes_nothing) {
    static bed b;
    static file good, bad;
    static picture before;
    static unsigned char content[FILE_MAX];
    save_make(&good);
    bed_busy(&b);
    take_picture(&b, &before);
    // Cut, where heads and parts end and between.
    for (size_t size = 0; size < good.size; size += size < 90 ? 9 : 31) {
        bad = good, bad.size = size;
        refuse_file(&b, &bad, &before);
    }
    // One byte wrong, and the sums as they were.
    for (size_t at = 0; at < good.size; at += at < NBI_SAVE_HEAD_BYTES ? 5 : 37) {
        bad = good, bad.bytes[at] ^= 0x10;
        refuse_file(&b, &bad, &before);
    }
    // Forged: the sums are right.
    static const struct {
        size_t offset;
        uint64_t value;
    } heads[] = {{16, 1}, {24, UINT64_MAX}, {24, NB_TICK_COUNT_MAX + 1}, {32, 99}, {40, 0}, {40, 8}, {40, UINT64_MAX}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; ++i) {
        bad = good;
        nb_bytes_put_u64(bad.bytes + heads[i].offset, heads[i].value);
        file_sign(&bad);
        refuse_file(&b, &bad, &before);
    }
    // A content that is wrong behind right sums of the file: the number of commands, and each word of the state.
    size_t size = file_unpack(&good, content);
    assert_int_equal(nb_bytes_get_u64(content), 2);
    static const uint64_t counts[] = {0, 1, 3, 1000, NB_COMMAND_COUNT_DEFAULT + 1, UINT64_MAX, UINT64_MAX / 32};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        nb_bytes_put_u64(content, counts[i]);
        bad = good;
        file_pack(&bad, content, size);
        refuse_file(&b, &bad, &before);
    }
    nb_bytes_put_u64(content, 2);
    for (size_t at = NBI_SAVE_COUNT_BYTES + 64; at < size; at += 40) {
        content[at] ^= 1;
        bad = good;
        file_pack(&bad, content, size);
        content[at] ^= 1;
        refuse_file(&b, &bad, &before);
    }
    for (size_t cut = 0; cut < size; cut += 1 + size / 23) {
        bad = good;
        file_pack(&bad, content, cut);
        refuse_file(&b, &bad, &before);
    }
    expect_same_end(&b);
    bed_close(&b);
    remove(PATH);
}

TEST(more_commands_than_the_engine_takes_are_refused) {
    static bed b;
    static file good;
    save_make(&good);
    nb_engine_desc desc = game_desc(0);
    desc.command_count_max = 1;
    bed_open_desc(&b, desc);
    run_ticks(&b.g.r, 3);
    uint64_t hash = game_hash(&b.g);
    nb_save_desc quiet = quiet_desc(&b);
    file_write(&good);
    assert_int_equal(nb_load_engine(PATH, engine_of(&b), &quiet, NULL), NB_ERR_RANGE);
    assert_int_equal(game_hash(&b.g), hash);
    assert_int_equal(game_now(&b.g), 3);
    bed_close(&b);
    remove(PATH);
}

TEST(a_provider_that_refuses_changes_nothing) {
    static bed b;
    static file good;
    static picture before;
    save_make(&good);
    bed_busy(&b);
    take_picture(&b, &before);
    // One before the world, and one behind it: the local columns and refs of the world are those of now all the same.
    b.is_list_refusing = true;
    refuse_file(&b, &good, &before);
    b.is_list_refusing = false, b.is_judge_refusing = true;
    refuse_file(&b, &good, &before);
    b.is_judge_refusing = false;
    // The world itself.
    nb_store_allow(b.g.world, 0);
    refuse_file(&b, &good, &before);
    nb_store_allow(b.g.world, UINT32_MAX);
    expect_same_end(&b);
    nb_save_desc desc = quiet_desc(&b);
    file_write(&good);
    assert_int_equal(nb_load_engine(PATH, engine_of(&b), &desc, NULL), NB_OK);
    assert_int_equal(game_now(&b.g), 21);
    bed_close(&b);
    remove(PATH);
}

TEST(each_failed_allocation_changes_nothing) {
    static file good;
    static picture before;
    save_make(&good);
    bool has_passed = false;
    for (uint64_t fail_at = 1; fail_at < 40 && !has_passed; ++fail_at) {
        static bed b;
        bed_busy(&b);
        take_picture(&b, &before);
        file_write(&good);
        nb_save_desc desc = quiet_desc(&b);
        b.g.r.heap.call_count.value = 0;
        b.g.r.heap.fail_at = fail_at;
        nb_result result = nb_load_engine(PATH, engine_of(&b), &desc, NULL);
        has_passed = b.g.r.heap.call_count.value < fail_at;
        b.g.r.heap.fail_at = 0;
        assert_int_equal(result, has_passed ? NB_OK : NB_ERR_MEMORY);
        if (!has_passed) {
            expect_unchanged(&b, &before);
            expect_same_end(&b);
        }
        bed_close(&b);
    }
    assert_true(has_passed);
    remove(PATH);
}

// --- where a load can be tried ---

static nb_result load_inside(const nb_context *context, void *user) {
    bed *b = user;
    nb_save_desc desc = quiet_desc(b);
    static unsigned char byte;
    nb_result result = nb_load_engine(PATH, context->engine, &desc, NULL);
    if (result != nb_engine_load(context->engine, 5, &byte, 1, (nb_input_view){NULL, 0})) return NB_ERR_MISUSE;
    if (result != nb_engine_set_tick(context->engine, 5)) return NB_ERR_MISUSE;
    return result == nb_engine_rewind(context->engine, 20) ? result : NB_ERR_MISUSE;
}

TEST(inside_a_frame_every_load_is_refused) {
    static bed b, reference;
    static file good;
    uint64_t clean[TAIL], found[TAIL];
    save_make(&good);
    file_write(&good);
    bed_busy(&b), bed_busy(&reference);
    run_tail(&reference, clean);
    b.inside = load_inside;
    run_tail(&b, found);
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        bool has_handler =
            i != NB_PHASE_PARALLEL_TASKS && i != NB_PHASE_COMMAND_RECORD && i != NB_PHASE_DETACHED_SERVICES;
        if (has_handler) assert_int_equal(b.results[i], NB_BUSY);
    }
    assert_memory_equal(found, clean, sizeof clean);
    bed_close(&b), bed_close(&reference);
    remove(PATH);
}

typedef struct visitor {
    bed *b;
    nb_result attached, detached;
    picture before;
} visitor;

static nb_result try_load(bed *b) {
    nb_save_desc desc = quiet_desc(b);
    return nb_load_engine(PATH, engine_of(b), &desc, NULL);
}

static nb_result visitor_attach(nb_engine *engine, void *user) {
    visitor *v = user;
    (void)engine;
    v->attached = try_load(v->b);
    expect_unchanged(v->b, &v->before);
    return NB_OK;
}

static void visitor_detach(nb_engine *engine, void *user) {
    visitor *v = user;
    (void)engine;
    v->detached = try_load(v->b);
    expect_unchanged(v->b, &v->before);
}

// A busy bed beside a good file, and what it looks like.
static void visit(visitor *v, bed *b, file *good) {
    save_make(good);
    file_write(good);
    bed_busy(b);
    *v = (visitor){.b = b};
    take_picture(b, &v->before);
}

TEST(a_load_in_on_attach_is_refused_whole) {
    static bed b;
    static file good;
    static visitor v;
    visit(&v, &b, &good);
    nb_module_id module = attach(
        &b.g.r,
        (nb_module_desc){.name = "visitor", .on_attach = visitor_attach, .on_detach = visitor_detach, .user = &v});
    assert_int_equal(nb_engine_module_detach(engine_of(&b), module), NB_OK);
    assert_int_equal(v.attached, NB_BUSY);
    assert_int_equal(v.detached, NB_BUSY);
    expect_same_end(&b);
    bed_close(&b);
    remove(PATH);
}

static void run_elsewhere(void *user) {
    visitor *v = user;
    v->attached = try_load(v->b);
}

TEST(a_load_on_another_thread_is_refused_whole) {
    static bed b;
    static file good;
    static visitor v;
    visit(&v, &b, &good);
    nbi_thread thread = {0};
    nbi_thread_desc desc = {.run = run_elsewhere, .user = &v};
    assert_int_equal(nbi_thread_start(&thread, &desc), NB_OK);
    nbi_thread_join(&thread);
    assert_int_equal(v.attached, NB_ERR_THREAD);
    expect_unchanged(&b, &v.before);
    expect_same_end(&b);
    bed_close(&b);
    remove(PATH);
}

// --- ticks beyond all games ---

TEST(impossible_ticks_are_refused) {
    static bed b;
    static game_save save;
    static const uint64_t ticks[] = {NB_TICK_COUNT_MAX + 1, UINT64_MAX / 2, UINT64_MAX - 1, UINT64_MAX};
    static picture before;
    bed_busy(&b);
    take_picture(&b, &before);
    game_save_to(&b.g, &save);
    nb_save_desc desc = quiet_desc(&b);
    for (size_t i = 0; i < sizeof ticks / sizeof ticks[0]; ++i) {
        desc.tick = ticks[i];
        assert_int_equal(nb_engine_set_tick(engine_of(&b), ticks[i]), NB_ERR_RANGE);
        assert_int_equal(nb_engine_load(engine_of(&b), ticks[i], save.bytes, save.size_bytes, (nb_input_view){NULL, 0}),
                         NB_ERR_RANGE);
        assert_int_equal(nb_save_write(PATH, nb_engine_states(engine_of(&b)), &desc), NB_ERR_RANGE);
        assert_int_equal(nb_engine_rewind(engine_of(&b), ticks[i]), NB_ERR_RANGE);
        expect_unchanged(&b, &before);
    }
    // The last one of all runs, is kept, and can be saved and loaded.
    assert_int_equal(nb_engine_set_tick(engine_of(&b), NB_TICK_COUNT_MAX - 1), NB_OK);
    run_silent(&b, 1);
    assert_int_equal(game_now(&b.g), NB_TICK_COUNT_MAX);
    assert_int_equal(nb_engine_rewind(engine_of(&b), NB_TICK_COUNT_MAX - 1), NB_OK);
    assert_int_equal(nb_save_engine(PATH, engine_of(&b), NULL), NB_OK);
    assert_int_equal(try_load(&b), NB_OK);
    assert_int_equal(game_now(&b.g), NB_TICK_COUNT_MAX - 1);
    bed_close(&b);
    remove(PATH);
}
