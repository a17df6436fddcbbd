// SPDX-License-Identifier: MIT
// Random operations on a world and on a model of it that is nothing but arrays: both agree after every step, the mirror
// that copies by block versions agrees, and the hash kept from step to step is that of a world loaded fresh.

#include "frame/store/store_fixture.h"

#define UNITS_MAX 200

typedef struct unit {
    nb_entity entity;
    nb_entity_ref ref;
    vec3 position, previous;
    uint32_t health;
    uint64_t number;
    uint16_t cache;
    uint8_t is_teleported;
} unit;

typedef struct model {
    unit units[UNITS_MAX];
    uint32_t count;
    uint64_t clock;
} model;

typedef struct past {
    model state;
    saved bytes; // NULL bytes: none yet
    uint64_t hash;
} past;

typedef struct run {
    fixture f;
    model now;
    past past;
    mirror mirror;
    fixture fresh; // loads what f saves
    uint64_t random;
    uint64_t hash;
    bool is_in_tick;
    bool is_growing; // more spawns than despawns, for a while
} run;

static uint32_t pick(run *r, uint32_t count) { return (uint32_t)(test_random(&r->random) % count); }

// --- operations, each on both ---

static void model_add(run *r, nb_entity entity, unit values) {
    values.entity = entity;
    values.is_teleported = 1;
    assert_int_equal(nb_store_ref(r->f.world, entity, &values.ref), NB_OK);
    r->now.units[r->now.count++] = values;
}

static void model_remove(run *r, uint32_t row) {
    r->now.units[row] = r->now.units[--r->now.count];
    memset(&r->now.units[r->now.count], 0, sizeof(unit));
}

static void step_spawn(run *r) {
    nb_entity entity = {0};
    nb_result result = nb_store_spawn(r->f.world, r->f.units, &entity);
    assert_int_equal(result, r->now.count < UNITS_MAX ? NB_OK : NB_FULL);
    if (result == NB_OK) model_add(r, entity, (unit){0});
}

static void step_despawn(run *r) {
    if (r->now.count == 0) return;
    uint32_t row = pick(r, r->now.count);
    assert_int_equal(nb_store_despawn(r->f.world, r->now.units[row].entity), NB_OK);
    model_remove(r, row);
}

static void step_write(run *r) {
    fixture *f = &r->f;
    if (r->now.count == 0) return;
    uint32_t row = pick(r, r->now.count);
    unit *u = &r->now.units[row];
    uint64_t value = test_random(&r->random);
    switch (value % 5) {
    case 0:
        u->position.x += 1.0f;
        NB_STORE_ROW_WRITE(f->world, f->units, POSITION, vec3, row)->x += 1.0f;
        break;
    case 1: *NB_STORE_ROW_WRITE(f->world, f->units, HEALTH, uint32_t, row) = u->health = (uint32_t)(value >> 8); break;
    case 2: {
        padded *note = NB_STORE_ROW_WRITE(f->world, f->units, NOTE, padded, row);
        memset(note, (int)(value >> 8 & 255), sizeof *note); // padding too
        note->kind = 0;
        note->number = u->number = value;
        break;
    }
    case 3: *NB_STORE_ROW_WRITE(f->world, f->units, CACHE, uint16_t, row) = u->cache = (uint16_t)(value >> 8); break;
    default: *NB_STORE_SINGLETON_WRITE(f->world, f->clock, CLOCK_TICK, uint64_t) = r->now.clock = value; break;
    }
}

static void step_write_range(run *r) {
    if (r->now.count == 0) return;
    uint32_t first = pick(r, r->now.count), count = 1 + pick(r, r->now.count - first);
    uint32_t *health = NB_STORE_RANGE_WRITE(r->f.world, r->f.units, HEALTH, uint32_t, first, count);
    for (uint32_t row = first; row < first + count; ++row) r->now.units[row].health = ++health[row];
}

static void step_teleport(run *r) {
    if (r->now.count == 0) return;
    unit *u = &r->now.units[pick(r, r->now.count)];
    assert_int_equal(nb_store_teleport(r->f.world, u->entity), NB_OK);
    u->is_teleported = 1;
}

static void step_tick_begin(run *r) {
    assert_int_equal(nb_store_tick_begin(r->f.world), NB_OK);
    r->is_in_tick = true;
    for (uint32_t row = 0; row < r->now.count; ++row) {
        r->now.units[row].previous = r->now.units[row].position;
        r->now.units[row].is_teleported = 0;
    }
}

// Two stages handed over in the wrong order; the model applies them in the right one.
typedef struct plan {
    nb_store_stage stage;
    unsigned char memory[2048];
    uint32_t count;
    nb_staged staged[8]; // zero: a despawn
    unit units[8];
} plan;

static void plan_fill(run *r, plan *p, uint32_t handler) {
    nb_store_stage_desc desc = {.handler = handler, .job = 0, .memory = p->memory, .size_bytes = sizeof p->memory};
    memset(p, 0, sizeof *p);
    assert_int_equal(nb_store_stage_init(&p->stage, r->f.world, &desc), NB_OK);
    for (p->count = 0; p->count < 8; ++p->count) {
        unit *u = &p->units[p->count];
        nb_staged *staged = &p->staged[p->count];
        if (r->now.count != 0 && pick(r, 4) < (r->is_growing ? 1u : 3u)) {
            u->entity = r->now.units[pick(r, r->now.count)].entity;
            assert_int_equal(nb_store_stage_despawn(&p->stage, u->entity), NB_OK);
            continue;
        }
        assert_int_equal(nb_store_stage_spawn(&p->stage, r->f.units, staged), NB_OK);
        *NB_STORE_STAGED_WRITE(&p->stage, *staged, HEALTH, uint32_t) = u->health = pick(r, 1000);
        NB_STORE_STAGED_WRITE(&p->stage, *staged, POSITION, vec3)->z = u->position.z = (float)pick(r, 1000);
        u->previous = u->position;
    }
}

static void plan_follow(run *r, const plan *p) {
    for (uint32_t i = 0; i < p->count; ++i) {
        nb_entity entity = {0};
        if (p->staged[i].value != 0) {
            nb_result result = nb_store_stage_entity(&p->stage, p->staged[i], &entity);
            assert_int_equal(result, r->now.count < UNITS_MAX ? NB_OK : NB_FULL);
            unit values = p->units[i];
            values.entity = entity;
            values.is_teleported = 1;
            if (result == NB_OK) r->now.units[r->now.count++] = values;
            continue;
        }
        for (uint32_t row = 0; row < r->now.count; ++row) {
            if (r->now.units[row].entity.value != p->units[i].entity.value) continue;
            model_remove(r, row);
            break;
        }
    }
}

static void step_apply(run *r) {
    static plan plans[2];
    nb_store_stage *stages[2] = {&plans[1].stage, &plans[0].stage};
    plan_fill(r, &plans[0], 1);
    plan_fill(r, &plans[1], 2);
    nb_result result = nb_store_apply(r->f.world, stages, 2);
    assert_true(result == NB_OK || result == NB_FULL);
    plan_follow(r, &plans[0]);
    plan_follow(r, &plans[1]);
    for (uint32_t row = 0; row < r->now.count; ++row) {
        unit *u = &r->now.units[row];
        if (u->ref.incarnation == 0) assert_int_equal(nb_store_ref(r->f.world, u->entity, &u->ref), NB_OK);
    }
}

static void step_tick_end(run *r) {
    step_apply(r);
    assert_int_equal(nb_store_tick_end(r->f.world), NB_OK);
    r->is_in_tick = false;
    for (uint32_t row = 0; row < r->now.count; ++row) {
        unit *u = &r->now.units[row];
        if (u->is_teleported) u->previous = u->position;
    }
}

static void step_save(run *r) {
    free(r->past.bytes.bytes);
    r->past = (past){.state = r->now, .bytes = fixture_save(&r->f, NB_SAVE_HISTORY), .hash = nb_store_hash(r->f.world)};
}

static void step_rewind(run *r) {
    if (r->past.bytes.bytes == NULL) return;
    assert_int_equal(nb_store_load(r->f.world, r->past.bytes.bytes, r->past.bytes.size_bytes), NB_OK);
    r->now = r->past.state;
    for (uint32_t row = 0; row < r->now.count; ++row) {
        r->now.units[row].previous = r->now.units[row].position;
        r->now.units[row].cache = 0;
    }
    assert_int_equal(nb_store_hash(r->f.world), r->past.hash);
}

// --- comparing ---

static void check_rows(run *r) {
    const fixture *f = &r->f;
    const vec3 *position = NB_STORE_ROWS(f->world, f->units, POSITION, vec3);
    const vec3 *previous = NB_STORE_ROWS_PREVIOUS(f->world, f->units, POSITION, vec3);
    nb_column_view marks;
    assert_int_equal(nb_store_teleport_view(f->world, f->units, &marks), NB_OK);
    assert_int_equal(nb_store_row_count(f->world, f->units), r->now.count);
    for (uint32_t row = 0; row < r->now.count; ++row) {
        const unit *u = &r->now.units[row];
        uint32_t found = UINT32_MAX;
        assert_int_equal(nb_store_entity(f->world, f->units, row).value, u->entity.value);
        assert_int_equal(nb_store_resolve(f->world, u->ref, &found), NB_OK);
        assert_int_equal(found, row);
        assert_memory_equal(&position[row], &u->position, sizeof(vec3));
        // A row spawned directly and then written is settled by the next tick; until then its mark says so.
        if (!u->is_teleported) assert_memory_equal(&previous[row], &u->previous, sizeof(vec3));
        assert_int_equal(((const uint8_t *)marks.base)[row], u->is_teleported);
        assert_int_equal(*NB_STORE_ROW(f->world, f->units, HEALTH, uint32_t, row), u->health);
        assert_int_equal(NB_STORE_ROW(f->world, f->units, NOTE, padded, row)->number, u->number);
        assert_int_equal(*NB_STORE_ROW(f->world, f->units, CACHE, uint16_t, row), u->cache);
    }
    assert_int_equal(*NB_STORE_SINGLETON(f->world, f->clock, CLOCK_TICK, uint64_t), r->now.clock);
    assert_true(nb_store_is_valid(f->world));
}

static void check_hash(run *r) {
    uint64_t hash = nb_store_hash(r->f.world);
    saved bytes = fixture_save(&r->f, NB_SAVE_FILE);
    assert_int_equal(nb_store_load(r->fresh.world, bytes.bytes, bytes.size_bytes), NB_OK);
    assert_int_equal(nb_store_hash(r->fresh.world), hash);
    free(bytes.bytes);
}

static void step_any(run *r) {
    uint32_t dice = pick(r, 100);
    if (pick(r, 200) == 0) r->is_growing = !r->is_growing;
    if (dice < 40)
        step_write(r);
    else if (dice < 50)
        step_write_range(r);
    else if (dice < 60)
        step_teleport(r);
    else if (dice < 75)
        r->is_in_tick ? step_tick_end(r) : step_tick_begin(r);
    else if (r->is_in_tick)
        step_write(r);
    else if (dice < 84)
        step_spawn(r);
    else if (dice < 92)
        step_despawn(r);
    else if (dice < 95)
        step_apply(r);
    else if (dice < 98)
        step_save(r);
    else
        step_rewind(r);
}

TEST(world_agrees_with_its_model) {
    static run r;
    static test_log log;
    uint64_t step_count = test_size(20000, 200000, 5000000);
    nb_hooks hooks = test_hooks(&log, NULL);
    memset(&r, 0, sizeof r);
    r.random = test_seed("world_agrees_with_its_model");
    r.f = fixture_open(UNITS_MAX, &hooks);
    r.fresh = fixture_plain(UNITS_MAX);
    mirror_open(&r.mirror, &r.f);
    for (uint64_t step = 0; step < step_count; ++step) {
        step_any(&r);
        if (step % 4 == 0) check_rows(&r);
        if (step % 3 == 0) mirror_follow(&r.mirror, &r.f);
        if (step % 5 == 0) check_hash(&r);
    }
    assert_true(nb_store_stats_get(r.f.world).spawn_count > step_count / 100);
    assert_true(nb_store_stats_get(r.f.world).full_count > 0);
    free(r.past.bytes.bytes);
    mirror_close(&r.mirror);
    nb_store_destroy(r.f.world);
    nb_store_destroy(r.fresh.world);
}

// A snapshot's work follows what changed, not what there is.
TEST(mirror_copies_little_after_little_change) {
    fixture f = fixture_plain(6400);
    mirror m;
    for (uint32_t i = 0; i < 6400; ++i) unit_spawn(&f, i);
    mirror_open(&m, &f);
    mirror_follow(&m, &f);
    assert_true(m.copied_blocks > 600);
    mirror_follow(&m, &f);
    assert_int_equal(m.copied_blocks, 0);
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 3000) = 1;
    mirror_follow(&m, &f);
    assert_int_equal(m.copied_blocks, 1);
    mirror_close(&m);
    nb_store_destroy(f.world);
}
