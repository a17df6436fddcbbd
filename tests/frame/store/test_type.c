// SPDX-License-Identifier: MIT
// Tables that are declared by the struct of a row: columns by member, rows as a whole, and descriptions that are wrong.

#include "store_fixture.h"
#include "support/log_lines.h"

#include "nebula/compare.h"
#include "nebula/snapshot.h"
#include "nebula/store_view.h"
#include "nebula/type.h"

typedef struct pose {
    double x;
    uint8_t kind; // seven bytes of padding behind it
} pose;
NB_STRUCT(pose, NB_FIELD(x), NB_FIELD(kind))

typedef struct track {
    pose from, to[2];
} track;
NB_STRUCT(track, NB_FIELD_OF(from, pose), NB_FIELD_OF(to, pose))

typedef struct ship {
    pose at;
    float speed;
    uint16_t hits[3];
    bool is_armed;
    nb_entity target;
    track path;
    uint32_t shade;
} ship;
NB_ROW(ship, NB_COLUMN_OF(at, pose, NB_INTERPOLATE), NB_COLUMN(speed, NB_PLAIN), NB_COLUMN(hits, NB_TICK_ONLY),
       NB_COLUMN(is_armed, NB_PLAIN), NB_COLUMN(target, NB_PLAIN), NB_COLUMN_OF(path, track, NB_PLAIN),
       NB_COLUMN(shade, NB_LOCAL))

enum { AT, SPEED, HITS, IS_ARMED, TARGET, PATH, SHADE, SHIP_COLUMNS };

typedef struct dock {
    test_heap heap;
    test_log log;
    nb_store *store;
    nb_table ships;
} dock;

static void dock_open(dock *d) {
    memset(d, 0, sizeof *d);
    nb_store_desc desc = {.hooks = test_hooks(&d->log, &d->heap)};
    assert_int_equal(nb_store_create(&desc, &d->store), NB_OK);
    nb_table_desc ships = {.name = "ships", .row_count_max = 200, .type = ship_type()};
    assert_int_equal(nb_store_table_add(d->store, &ships, &d->ships), NB_OK);
}

static void dock_close(dock *d) {
    assert_true(nb_store_is_valid(d->store));
    nb_store_destroy(d->store);
    assert_int_equal(d->heap.live_count.value, 0);
}

// With noise in its padding.
static ship ship_of(uint32_t number) {
    ship s;
    memset(&s, (int)(number + 1), sizeof s);
    s.at.x = number, s.at.kind = (uint8_t)number;
    s.speed = 0.5f * (float)number;
    for (uint32_t i = 0; i < 3; ++i) s.hits[i] = (uint16_t)(number * 3 + i);
    s.is_armed = number % 2 == 1;
    s.target.value = number;
    s.path.from = s.path.to[0] = s.path.to[1] = s.at;
    s.shade = ~number;
    return s;
}

static bool is_same_pose(pose a, pose b) { return !(a.x < b.x) && !(a.x > b.x) && a.kind == b.kind; }

static void assert_ship(const dock *d, uint32_t row, uint32_t number) {
    ship found, wanted = ship_of(number);
    assert_int_equal(nb_store_row_get(d->store, d->ships, row, &found, sizeof found), NB_OK);
    assert_true(is_same_pose(found.at, wanted.at) && is_same_pose(found.path.to[1], wanted.path.to[1]));
    assert_true(found.speed <= wanted.speed && found.speed >= wanted.speed);
    assert_memory_equal(found.hits, wanted.hits, sizeof found.hits);
    assert_int_equal(found.is_armed, wanted.is_armed);
    assert_int_equal(found.target.value, wanted.target.value);
    assert_int_equal(found.shade, wanted.shade);
}

static void apply(dock *d, nb_store_stage *stage, nb_result wanted) {
    assert_int_equal(nb_store_apply(d->store, &stage, 1), wanted);
    assert_int_equal(nb_store_stage_reset(stage), NB_OK);
}

static unsigned char memory[65536];

static void stage_open(dock *d, nb_store_stage *stage) {
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = sizeof memory};
    assert_int_equal(nb_store_stage_init(stage, d->store, &desc), NB_OK);
}

TEST(a_type_knows_its_members) {
    const nb_type *type = ship_type();
    static const nb_kind kinds[SHIP_COLUMNS] = {NB_KIND_STRUCT, NB_KIND_F32,    NB_KIND_BYTES, NB_KIND_BOOL,
                                                NB_KIND_ENTITY, NB_KIND_STRUCT, NB_KIND_U32};
    assert_string_equal(type->name, "ship");
    assert_int_equal(type->size_bytes, sizeof(ship));
    assert_int_equal(type->member_count, SHIP_COLUMNS);
    for (uint32_t i = 0; i < SHIP_COLUMNS; ++i) assert_int_equal(type->members[i].kind, kinds[i]);
    assert_int_equal(type->members[HITS].size_bytes, 6);
    assert_int_equal(type->members[HITS].align_bytes, NB_ALIGNOF(uint16_t));
    assert_ptr_equal(type->members[PATH].type()->members[1].type(), pose_type());
    assert_int_equal(nb_type_check(type, NULL), NB_OK);
}

TEST(a_table_of_a_type_has_a_column_for_each_member) {
    dock d;
    dock_open(&d);
    static const char *const names[SHIP_COLUMNS] = {"at", "speed", "hits", "is_armed", "target", "path", "shade"};
    static const uint32_t flags[SHIP_COLUMNS] = {NB_COLUMN_SIMULATED | NB_COLUMN_SNAPSHOT | NB_COLUMN_INTERPOLATE,
                                                 NB_COLUMN_SIMULATED | NB_COLUMN_SNAPSHOT,
                                                 NB_COLUMN_SIMULATED,
                                                 NB_COLUMN_SIMULATED | NB_COLUMN_SNAPSHOT,
                                                 NB_COLUMN_SIMULATED | NB_COLUMN_SNAPSHOT,
                                                 NB_COLUMN_SIMULATED | NB_COLUMN_SNAPSHOT,
                                                 NB_COLUMN_LOCAL | NB_COLUMN_SNAPSHOT};
    for (uint32_t i = 0; i < SHIP_COLUMNS; ++i) {
        nb_column_info info;
        assert_int_equal(nb_store_column_info(d.store, d.ships, i, &info), NB_OK);
        assert_string_equal(info.name, names[i]);
        assert_int_equal(info.size_bytes, ship_type()->members[i].size_bytes);
        assert_int_equal(info.flags, flags[i]);
    }
    dock_close(&d);
}

TEST(rows_come_whole_one_by_one_and_many_at_once) {
    dock d;
    nb_store_stage stage;
    dock_open(&d);
    stage_open(&d, &stage);
    ship many[100], one = ship_of(0);
    nb_staged staged = {0};
    for (uint32_t i = 0; i < 100; ++i) many[i] = ship_of(i + 1);
    assert_int_equal(nb_store_stage_spawn_row(&stage, d.ships, &one, sizeof one, &staged), NB_OK);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 100), NB_OK);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 0), NB_OK);
    memset(many, 0, sizeof many); // they were copied
    nb_entity entity = {0};
    nb_store_stage *list = &stage;
    assert_int_equal(nb_store_apply(d.store, &list, 1), NB_OK);
    assert_int_equal(nb_store_stage_entity(&stage, staged, &entity), NB_OK);
    assert_int_equal(nb_store_row_count(d.store, d.ships), 101);
    for (uint32_t i = 0; i < 101; ++i) assert_ship(&d, i, i);
    uint32_t row = 1;
    assert_int_equal(nb_store_find(d.store, entity, &row), NB_OK);
    assert_int_equal(row, 0);
    dock_close(&d);
}

TEST(members_are_columns) {
    dock d;
    nb_store_stage stage;
    dock_open(&d);
    stage_open(&d, &stage);
    ship s = ship_of(7);
    assert_int_equal(nb_store_stage_spawn_row(&stage, d.ships, &s, sizeof s, NULL), NB_OK);
    apply(&d, &stage, NB_OK);
    const pose *at = NB_STORE_MEMBER(d.store, d.ships, ship, at);
    float *speed = NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, speed);
    assert_ptr_equal(at, NB_STORE_ROWS(d.store, d.ships, AT, pose));
    assert_ptr_equal(speed, NB_STORE_ROWS(d.store, d.ships, SPEED, float));
    assert_int_equal(at[0].kind, 7);
    uint64_t before = nb_store_hash(d.store);
    *NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, speed) = 9;
    assert_true(nb_store_hash(d.store) != before);
    before = nb_store_hash(d.store);
    *NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, shade) = 9; // local
    assert_true(nb_store_hash(d.store) == before);
    assert_int_equal(test_log_count(&d.log, NB_ITEM_STORE_ARGUMENT), 0);
    // A part of a column is none, and neither is another size.
    assert_null(NB_STORE_MEMBER(d.store, d.ships, ship, at.kind));
    assert_null(nb_store_member(d.store, d.ships, offsetof(ship, speed), 8));
    assert_null(nb_store_member_write(d.store, d.ships, sizeof(ship), 4));
    assert_null(nb_store_member(d.store, d.ships, offsetof(ship, speed) + 1, 4));
    assert_true(test_log_count(&d.log, NB_ITEM_STORE_ARGUMENT) > 0);
    dock_close(&d);
}

TEST(padding_inside_a_member_is_no_state) {
    dock d[2];
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 2; ++i) {
        nb_store_stage stage;
        dock_open(&d[i]);
        stage_open(&d[i], &stage);
        ship s = ship_of(3), noise;
        memset(&noise, i == 0 ? 0x55 : 0xAA, sizeof noise);
        noise.at.x = s.at.x, noise.at.kind = s.at.kind, noise.speed = s.speed, noise.is_armed = s.is_armed;
        memcpy(noise.hits, s.hits, sizeof noise.hits);
        noise.target = s.target, noise.shade = s.shade;
        pose *poses[] = {&noise.path.from, &noise.path.to[0], &noise.path.to[1]};
        for (uint32_t j = 0; j < 3; ++j) poses[j]->x = s.at.x, poses[j]->kind = s.at.kind;
        assert_int_equal(nb_store_stage_spawn_row(&stage, d[i].ships, &noise, sizeof noise, NULL), NB_OK);
        apply(&d[i], &stage, NB_OK);
        hashes[i] = nb_store_hash(d[i].store);
    }
    assert_true(hashes[0] == hashes[1]);
    for (uint32_t i = 0; i < 2; ++i) dock_close(&d[i]);
}

typedef struct rock {
    float x;
    uint32_t size;
} rock;
NB_ROW(rock, NB_COLUMN(x, NB_PLAIN), NB_COLUMN(size, NB_PLAIN))

// Saves of a table that was declared by columns load into one that is declared by its type.
TEST(layout_is_that_of_the_same_columns) {
    static const nb_column_desc columns[] = {{.name = "x", .size_bytes = 4, .flags = NB_COLUMN_SNAPSHOT},
                                             {.name = "size", .size_bytes = 4, .flags = NB_COLUMN_SNAPSHOT}};
    nb_table_desc descs[] = {{.name = "rocks", .row_count_max = 10, .columns = columns, .column_count = 2},
                             {.name = "rocks", .row_count_max = 10, .type = rock_type()}};
    uint64_t layouts[2];
    for (uint32_t i = 0; i < 2; ++i) {
        nb_store *store = NULL;
        nb_table table;
        assert_int_equal(nb_store_create(NULL, &store), NB_OK);
        assert_int_equal(nb_store_table_add(store, &descs[i], &table), NB_OK);
        layouts[i] = nb_store_layout_hash(store);
        nb_store_destroy(store);
    }
    assert_true(layouts[0] == layouts[1]);
}

TEST(many_rows_are_staged_all_or_none) {
    dock d;
    nb_store_stage stage;
    dock_open(&d);
    nb_store_stage_desc desc = {.memory = memory, .size_bytes = 10 * sizeof(ship)};
    assert_int_equal(nb_store_stage_init(&stage, d.store, &desc), NB_OK);
    ship many[20];
    for (uint32_t i = 0; i < 20; ++i) many[i] = ship_of(i);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 20), NB_FULL);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], UINT32_MAX), NB_FULL);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 8), NB_OK);
    apply(&d, &stage, NB_OK);
    assert_int_equal(nb_store_row_count(d.store, d.ships), 8);
    dock_close(&d);
}

TEST(many_rows_fill_a_table_to_its_end) {
    dock d;
    nb_store_stage stage;
    dock_open(&d);
    stage_open(&d, &stage);
    static ship many[150];
    for (uint32_t i = 0; i < 150; ++i) many[i] = ship_of(i);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 150), NB_OK);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 150), NB_OK);
    apply(&d, &stage, NB_FULL);
    assert_int_equal(nb_store_row_count(d.store, d.ships), 200);
    for (uint32_t i = 0; i < 50; ++i) assert_ship(&d, 150 + i, i);
    dock_close(&d);
}

// Two stores with the same rows: in the first they come one by one, the second is hashed before the last ones come.
TEST(many_rows_are_hashed_wherever_they_lie) {
    static ship many[150];
    uint64_t hashes[2];
    for (uint32_t i = 0; i < 150; ++i) many[i] = ship_of(i);
    for (uint32_t i = 0; i < 2; ++i) {
        dock d;
        nb_store_stage stage;
        dock_open(&d);
        stage_open(&d, &stage);
        assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many, sizeof many[0], 30), NB_OK);
        apply(&d, &stage, NB_OK);
        if (i == 1) nb_store_hash(d.store);
        for (uint32_t j = 30; j < 150 && i == 0; ++j)
            assert_int_equal(nb_store_stage_spawn_row(&stage, d.ships, &many[j], sizeof many[0], NULL), NB_OK);
        if (i == 1) assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, many + 30, sizeof many[0], 120), NB_OK);
        apply(&d, &stage, NB_OK);
        hashes[i] = nb_store_hash(d.store);
        dock_close(&d);
    }
    assert_true(hashes[0] == hashes[1]);
}

TEST(rows_of_another_size_are_refused) {
    dock d;
    nb_store_stage stage;
    dock_open(&d);
    static const nb_column_desc columns[] = {{.name = "x", .size_bytes = 4}};
    nb_table_desc plain = {.name = "plain", .columns = columns, .column_count = 1};
    nb_table untyped;
    assert_int_equal(nb_store_table_add(d.store, &plain, &untyped), NB_OK);
    stage_open(&d, &stage);
    rock r = {0};
    uint32_t x = 0;
    assert_int_equal(nb_store_stage_spawn_row(&stage, d.ships, &r, sizeof r, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_store_stage_spawn_rows(&stage, d.ships, NULL, sizeof(ship), 1), NB_ERR_MISUSE);
    assert_int_equal(nb_store_stage_spawn_row(&stage, untyped, &x, sizeof x, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_store_stage_spawn_row(&stage, untyped, &x, 0, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_store_row_get(d.store, untyped, 0, &x, sizeof x), NB_ERR_MISUSE);
    assert_int_equal(nb_store_row_get(d.store, d.ships, 0, &(ship){0}, sizeof(ship)), NB_ERR_RANGE);
    assert_null(nb_store_member(d.store, untyped, 0, 4));
    apply(&d, &stage, NB_OK);
    assert_int_equal(nb_store_row_count(d.store, d.ships), 0);
    dock_close(&d);
}

// --- single structs ---

typedef struct rules {
    uint32_t wave;
    int16_t score;
    pose goal;
    nb_entity leader;
} rules;
NB_STRUCT(rules, NB_FIELD(wave), NB_FIELD(score), NB_FIELD_OF(goal, pose), NB_FIELD(leader))

static void rules_open(dock *d, nb_table *table) {
    dock_open(d);
    nb_table_desc desc = {.name = "rules", .type = rules_type(), .is_singleton = true};
    assert_int_equal(nb_store_table_add(d->store, &desc, table), NB_OK);
}

TEST(a_singleton_of_a_type_is_one_struct) {
    dock d;
    nb_table table;
    rules_open(&d, &table);
    rules *r = NB_STORE_STATE_WRITE(d.store, table, rules);
    uint64_t empty = nb_store_hash(d.store);
    *NB_STORE_STATE_WRITE(d.store, table, rules) = (rules){.wave = 3, .score = -5};
    assert_ptr_equal(NB_STORE_STATE(d.store, table, rules), r);
    assert_int_equal(r->wave, 3);
    assert_true(nb_store_hash(d.store) != empty);
    // Noise in padding is no other state.
    uint64_t before = nb_store_hash(d.store);
    rules noise;
    memset(&noise, 0xEE, sizeof noise);
    noise.wave = 3, noise.score = -5, noise.goal.x = 0, noise.goal.kind = 0, noise.leader.value = 0;
    memcpy(NB_STORE_STATE_WRITE(d.store, table, rules), &noise, sizeof noise);
    assert_true(nb_store_hash(d.store) == before);
    rules copy;
    assert_int_equal(nb_store_row_get(d.store, table, 0, &copy, sizeof copy), NB_OK);
    assert_int_equal(copy.score, -5);
    dock_close(&d);
}

typedef struct half {
    uint32_t a, b;
} half;
NB_STRUCT(half, NB_COLUMN(a, NB_PLAIN), NB_COLUMN(b, NB_LOCAL))

TEST(a_singleton_is_kept_in_one_way) {
    dock d;
    dock_open(&d);
    nb_table table;
    nb_table_desc desc = {.name = "half", .type = half_type(), .is_singleton = true};
    assert_int_equal(nb_store_table_add(d.store, &desc, &table), NB_ERR_MISUSE);
    dock_close(&d);
}

// --- reports ---

typedef struct saves {
    unsigned char bytes[2][1 << 16];
    size_t sizes[2];
} saves;

static void save_one(const dock *d, saves *s, uint32_t index) {
    assert_int_equal(nb_store_save(d->store, NB_SAVE_FILE, s->bytes[index], sizeof s->bytes[index], &s->sizes[index]),
                     NB_OK);
}

static void assert_differ(const dock *d, const saves *s, const char *member, nb_kind kind, const char *text) {
    nb_difference found;
    assert_int_equal(nb_store_compare(d->store, s->bytes[0], s->sizes[0], s->bytes[1], s->sizes[1], &found), NB_OK);
    assert_string_equal(found.member, member);
    assert_int_equal(found.value_kind, kind);
    if (strstr(found.text, text) == NULL) fail_msg("\"%s\" is not in \"%s\"", text, found.text);
}

TEST(reports_name_members_and_their_values) {
    static saves s;
    dock d;
    nb_table table;
    nb_store_stage stage;
    rules_open(&d, &table);
    stage_open(&d, &stage);
    ship one = ship_of(2);
    assert_int_equal(nb_store_stage_spawn_row(&stage, d.ships, &one, sizeof one, NULL), NB_OK);
    apply(&d, &stage, NB_OK);
    rules *r = NB_STORE_STATE_WRITE(d.store, table, rules);
    save_one(&d, &s, 0);
    r->wave = 4, save_one(&d, &s, 1), r->wave = 0;
    assert_differ(&d, &s, "wave", NB_KIND_U32, "world: rules.wave: 0 here, 4 there");
    r->score = -300, save_one(&d, &s, 1), r->score = 0;
    assert_differ(&d, &s, "score", NB_KIND_I16, "rules.score: 0 here, -300 there");
    r->goal.x = 0.1, save_one(&d, &s, 1), r->goal.x = 0;
    assert_differ(&d, &s, "goal.x", NB_KIND_F64, "rules.goal.x: 0 here, 0.10000000000000001 there");
    r->leader.value = 0x100, save_one(&d, &s, 1), r->leader.value = 0;
    assert_differ(&d, &s, "leader", NB_KIND_ENTITY, "rules.leader: 0x0000000000000000 here, 0x0000000000000100 there");
    pose *at = NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, at);
    at->kind = 9, save_one(&d, &s, 1), at->kind = 2;
    assert_differ(&d, &s, "kind", NB_KIND_U8, "ships.at.kind, row 0 (entity");
    assert_differ(&d, &s, "kind", NB_KIND_U8, ": 2 here, 9 there");
    float *speed = NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, speed);
    *speed = -1.5f, save_one(&d, &s, 1), *speed = 1;
    assert_differ(&d, &s, "", NB_KIND_F32, "ships.speed, row 0");
    assert_differ(&d, &s, "", NB_KIND_F32, ": 1 here, -1.5 there");
    bool *is_armed = NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, is_armed);
    *is_armed = true, save_one(&d, &s, 1), *is_armed = false;
    assert_differ(&d, &s, "", NB_KIND_BOOL, ": false here, true there");
    track *path = NB_STORE_MEMBER_WRITE(d.store, d.ships, ship, path);
    path->to[1].kind = 200, save_one(&d, &s, 1);
    assert_differ(&d, &s, "to[1].kind", NB_KIND_U8, "ships.path.to[1].kind, row 0");
    dock_close(&d);
}

typedef struct match {
    uint32_t state, state_ticks;
} match;
NB_STRUCT(match, NB_FIELD(state), NB_FIELD(state_ticks))

typedef struct swapped {
    uint32_t state_ticks, state;
} swapped;
NB_STRUCT(swapped, NB_FIELD(state_ticks), NB_FIELD(state))

// A member or a column may be called like the column of a single struct.
TEST(reports_keep_names_that_look_like_their_own) {
    static saves s;
    dock d;
    nb_table table, npcs;
    dock_open(&d);
    nb_table_desc one = {.name = "match", .type = match_type(), .is_singleton = true};
    nb_table_desc many = {.name = "npcs", .row_count_max = 4, .type = match_type()};
    assert_int_equal(nb_store_table_add(d.store, &one, &table), NB_OK);
    assert_int_equal(nb_store_table_add(d.store, &many, &npcs), NB_OK);
    nb_entity entity;
    assert_int_equal(nb_store_spawn(d.store, npcs, &entity), NB_OK);
    save_one(&d, &s, 0);
    match *m = NB_STORE_STATE_WRITE(d.store, table, match);
    m->state_ticks = 7, save_one(&d, &s, 1);
    assert_differ(&d, &s, "state_ticks", NB_KIND_U32, "world: match.state_ticks: 0 here, 7 there");
    m->state = 2, save_one(&d, &s, 1);
    assert_differ(&d, &s, "state", NB_KIND_U32, "match.state: 0 here, 2 there");
    assert_differ(&d, &s, "state", NB_KIND_U32, "also match.state_ticks");
    *m = (match){0, 0};
    *NB_STORE_MEMBER_WRITE(d.store, npcs, match, state) = 2, save_one(&d, &s, 1);
    assert_differ(&d, &s, "", NB_KIND_U32, "npcs.state, row 0");
    dock_close(&d);
}

TEST(a_single_struct_with_other_members_is_another_layout) {
    const nb_type *types[] = {match_type(), swapped_type(), match_type()};
    uint64_t layouts[3];
    for (uint32_t i = 0; i < 3; ++i) {
        nb_store *store = NULL;
        nb_table table;
        nb_table_desc desc = {.name = "match", .type = types[i], .is_singleton = true};
        assert_int_equal(nb_store_create(NULL, &store), NB_OK);
        assert_int_equal(nb_store_table_add(store, &desc, &table), NB_OK);
        layouts[i] = nb_store_layout_hash(store);
        nb_store_destroy(store);
    }
    assert_true(layouts[0] != layouts[1] && layouts[0] == layouts[2]);
}

// --- descriptions that are wrong ---

typedef struct hole {
    uint32_t a, b, c;
} hole;
NB_ROW(hole, NB_COLUMN(a, NB_PLAIN), NB_COLUMN(c, NB_PLAIN))

typedef struct tail {
    uint64_t a;
    uint32_t b[4];
} tail;
NB_ROW(tail, NB_COLUMN(a, NB_PLAIN))

typedef struct twice {
    uint32_t a, b;
} twice;
NB_ROW(twice, NB_COLUMN(a, NB_PLAIN), NB_COLUMN(b, NB_PLAIN), NB_COLUMN(a, NB_PLAIN))

static const nb_type *endless_type(void) {
    static const nb_member members[] = {{"next", 0, 4, 4, 0, NB_KIND_STRUCT, endless_type}};
    static const nb_type type = {"endless", 4, 1, members};
    return &type;
}

static const nb_type *no_type(void) { return NULL; }

static void assert_refused(const nb_type *type, nb_result wanted, const char *text) {
    static log_lines log;
    memset(&log, 0, sizeof log);
    nb_hooks hooks = log_lines_hooks(&log);
    assert_int_equal(nb_type_check(type, &hooks), wanted);
    assert_says(&log, NB_ITEM_STORE_TYPE, text);
    nb_store *store = NULL;
    nb_table table = {77};
    nb_store_desc desc = {.hooks = hooks};
    assert_int_equal(nb_store_create(&desc, &store), NB_OK);
    nb_table_desc wrong = {.name = "wrong", .type = type};
    if (type != NULL) assert_int_equal(nb_store_table_add(store, &wrong, &table), wanted);
    assert_int_equal(table.value, 77);
    nb_store_destroy(store);
}

TEST(bytes_of_no_member_are_named) {
    assert_refused(hole_type(), NB_ERR_MISUSE, "type \"hole\": bytes 4 to 7 belong to no member");
    assert_refused(tail_type(), NB_ERR_MISUSE, "type \"tail\": bytes 8 to 23 belong to no member");
    assert_refused(twice_type(), NB_ERR_MISUSE, "type \"twice\": member \"a\" begins inside another one");
}

TEST(descriptions_made_by_hand_are_checked) {
    const nb_member good = {"a", 0, 4, 4, 0, NB_KIND_U32, NULL};
    nb_member m = good;
    nb_type type = {"t", 4, 1, &m};
    assert_int_equal(nb_type_check(&type, NULL), NB_OK);
    assert_refused(NULL, NB_ERR_MISUSE, "a type is NULL");
    assert_refused(&(nb_type){"", 4, 1, &m}, NB_ERR_MISUSE, "no name");
    assert_refused(&(nb_type){"t", 4, 0, &m}, NB_ERR_MISUSE, "no members");
    m.name = "";
    assert_refused(&type, NB_ERR_MISUSE, "a member has no name");
    m = good, m.size_bytes = 8;
    assert_refused(&type, NB_ERR_RANGE, "member \"a\" has offset 0, size 8 and alignment 4 in 4 bytes");
    m = good, m.offset_bytes = UINT32_MAX;
    assert_refused(&type, NB_ERR_RANGE, "offset 4294967295");
    m = good, m.align_bytes = 3;
    assert_refused(&type, NB_ERR_RANGE, "alignment 3");
    m = good, m.align_bytes = 128;
    assert_refused(&type, NB_ERR_RANGE, "alignments end at 64");
    m = good, m.kind = NB_KIND_F64;
    assert_refused(&type, NB_ERR_MISUSE, "member \"a\" has 4 bytes, and its type or kind has 8");
    m = good, m.flags = NB_LOCAL | NB_TICK_ONLY;
    assert_refused(&type, NB_ERR_MISUSE, "contradict");
    m = good, m.flags = NB_COLUMN_SIMULATED;
    assert_refused(&type, NB_ERR_MISUSE, "flags 0x4");
    m = good, m.flags = 0xc0;
    assert_refused(&type, NB_ERR_MISUSE, "member \"a\" has flags 0xc0, which contradict or mean nothing here");
    m = good, m.kind = NB_KIND_STRUCT;
    assert_refused(&type, NB_ERR_MISUSE, "a struct without a type");
    m.type = no_type;
    assert_refused(&type, NB_ERR_MISUSE, "a struct without a type");
    m = good, m.kind = NB_KIND_STRUCT, m.type = rock_type;
    assert_refused(&type, NB_ERR_MISUSE, "member \"a\" has 4 bytes, and its type or kind has 8");
    m = good, m.type = rock_type;
    assert_refused(&type, NB_ERR_MISUSE, "or the reverse");
    m = good, m.kind = NB_KIND_COUNT;
    assert_refused(&type, NB_ERR_MISUSE, "unknown kind");
    assert_refused(endless_type(), NB_ERR_RANGE, "more than 8 structs deep");
}
