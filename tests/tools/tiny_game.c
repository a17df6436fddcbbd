// SPDX-License-Identifier: MIT
// A game for the test of nebula-replay, built several times: as the program that records it (TINY_RECORDER: FILE, how
// many ticks), as the library that nebula-replay loads, and as libraries that are wrong. TINY_WRONG moves a row further
// from tick 100 on, TINY_OTHER has another layout, TINY_NONE has no game in it.

#include <nebula/verify.h>

#include <stdlib.h>

#if !defined(TINY_WRONG)
#define TINY_WRONG 0
#endif
#if !defined(TINY_OTHER)
#define TINY_OTHER 0
#endif

typedef struct tiny {
    nb_store *world;
    nb_table things;
} tiny;

static nb_result tick(const nb_context *context, void *user) {
    tiny *t = user;
    int32_t *x = NB_STORE_ROWS_WRITE(t->world, t->things, 0, int32_t);
    NB_STORE_EACH_ROW(row, t->world, t->things) x[row] += (int32_t)row;
    if (TINY_WRONG && context->tick->index >= 100) ++x[3];
    return NB_OK;
}

static nb_result begin(const nb_record_head *head, nb_engine_desc *desc, void **user) {
    (void)head;
    desc->is_headless = true;
    *user = calloc(1, sizeof(tiny));
    return *user != NULL ? NB_OK : NB_ERR_MEMORY;
}

static nb_result attach(void *user, nb_engine *engine) {
    tiny *t = user;
    nb_column_desc columns[] = {{.name = "x", .size_bytes = sizeof(int32_t)}};
    nb_table_desc table = {.name = "things", .row_count_max = 10 + TINY_OTHER, .columns = columns, .column_count = 1};
    t->world = nb_engine_world(engine);
    if (t->world == NULL) return NB_ERR_MEMORY;
    nb_result result = nb_store_table_add(t->world, &table, &t->things);
    nb_entity entity;
    for (int i = 0; result == NB_OK && i < 5; ++i) result = nb_store_spawn(t->world, t->things, &entity);
    nb_module_desc module = {.name = "tiny", .tick = tick, .user = t};
    return result == NB_OK ? nb_engine_module_attach(engine, &module, NULL) : result;
}

static void end(void *user) { free(user); }

static const nb_replay_game game = {.name = "tiny", .build_id = "tiny 1", .begin = begin, .attach = attach, .end = end};

#if !defined(TINY_NONE)
const nb_replay_game *nebula_replay_game(void);
const nb_replay_game *nebula_replay_game(void) { return &game; }
#else
int tiny_none(void);
int tiny_none(void) { return game.name[0]; }
#endif

#if defined(TINY_RECORDER)
// Records as it is told; keys every 60 ticks.
static int record(const char *path, uint64_t tick_count, bool hashes_states) {
    nb_record_head head = {.game_name = "tiny", .build_id = "tiny 1", .tick_rate = {60, 1}};
    nb_engine_desc desc = {.scheduler_desc = {.worker_count = NB_WORKER_COUNT_NONE}, .hashes_ticks = true};
    nb_recorder_desc recorder_desc = {
        .path = path, .head = head, .key_ticks = 60, .hashes_states = hashes_states, .queue_count = 256};
    nb_engine *engine = NULL;
    nb_recorder *recorder = NULL;
    void *user = NULL;
    nb_result result = begin(&head, &desc, &user);
    if (result == NB_OK) result = nb_engine_create(&desc, &engine);
    if (result == NB_OK) result = attach(user, engine);
    if (result == NB_OK) result = nb_recorder_attach(engine, &recorder_desc, &recorder);
    for (uint64_t i = 0; result == NB_OK && i < tick_count; ++i) {
        // The writer has written all key states but the newest, however slow it is: there is a place for the next.
        result = nb_engine_run_ticks(engine, 1);
        while (result == NB_OK && nb_recorder_stats_get(recorder).block_count < i / 60) continue;
    }
    nb_result ended = recorder != NULL ? nb_recorder_destroy(recorder) : NB_OK;
    if (result == NB_OK) result = ended;
    nb_engine_destroy(engine);
    end(user);
    return result == NB_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    return record(argv[1], strtoull(argv[2], NULL, 10), argc == 3);
}
#endif
