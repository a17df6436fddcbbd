// SPDX-License-Identifier: MIT
// Hash, save and load of simulated state: what counts and what does not, and that bad bytes change nothing.

#include "frame/store/store_fixture.h"

// Rows with gaps in their history: slots wait, some rows moved.
static void populate(fixture *f, uint32_t count, uint64_t seed) {
    for (uint32_t i = 0; i < count; ++i) {
        nb_entity entity = unit_spawn(f, (uint32_t)test_random(&seed));
        uint32_t row = unit_row(f, entity);
        NB_STORE_ROW_WRITE(f->world, f->units, POSITION, vec3, row)->y = (float)i;
        NB_STORE_ROW_WRITE(f->world, f->units, NOTE, padded, row)->number = i;
    }
    for (uint32_t i = 0; i < count / 4; ++i) {
        uint32_t row = (uint32_t)(test_random(&seed) % nb_store_row_count(f->world, f->units));
        assert_int_equal(nb_store_despawn(f->world, nb_store_entity(f->world, f->units, row)), NB_OK);
    }
}

// --- hash ---

TEST(hash_reads_only_changed_blocks) {
    fixture f = fixture_plain(1000);
    populate(&f, 1000, 1);
    uint64_t first = nb_store_hash(f.world);
    assert_true(nb_store_stats_get(f.world).hashed_block_count > 30);
    assert_int_equal(nb_store_hash(f.world), first);
    assert_int_equal(nb_store_stats_get(f.world).hashed_block_count, 0);
    uint32_t *health = NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 500);
    uint64_t table = nb_store_table_hash(f.world, f.units), clock = nb_store_table_hash(f.world, f.clock);
    uint64_t column = nb_store_column_hash(f.world, f.units, HEALTH);
    uint64_t other = nb_store_column_hash(f.world, f.units, POSITION);
    *health += 1;
    assert_int_not_equal(nb_store_hash(f.world), first);
    assert_int_equal(nb_store_stats_get(f.world).hashed_block_count, 1);
    assert_int_not_equal(nb_store_table_hash(f.world, f.units), table);
    assert_int_equal(nb_store_table_hash(f.world, f.clock), clock);
    assert_int_not_equal(nb_store_column_hash(f.world, f.units, HEALTH), column);
    assert_int_equal(nb_store_column_hash(f.world, f.units, POSITION), other);
    *NB_STORE_ROW_WRITE(f.world, f.units, HEALTH, uint32_t, 500) -= 1;
    assert_int_equal(nb_store_hash(f.world), first);
    assert_int_equal(nb_store_table_hash(f.world, f.sparks), 0);
    assert_int_equal(nb_store_column_hash(f.world, f.units, CACHE), 0);
    nb_store_destroy(f.world);
}

TEST(hash_leaves_out_what_is_not_simulated) {
    fixture f = fixture_plain(100);
    nb_entity spark;
    populate(&f, 80, 2);
    uint64_t hash = nb_store_hash(f.world);
    *NB_STORE_ROW_WRITE(f.world, f.units, CACHE, uint16_t, 3) = 9;
    assert_int_equal(nb_store_hash(f.world), hash);
    assert_int_equal(nb_store_spawn(f.world, f.sparks, &spark), NB_OK);
    assert_int_equal(nb_store_hash(f.world), hash);
    for (int i = 0; i < 5; ++i) nb_store_version_advance(f.world);
    assert_non_null(NB_STORE_ROWS_WRITE(f.world, f.units, HEALTH, uint32_t)); // marked, not changed
    assert_int_equal(nb_store_hash(f.world), hash);
    // Padding: the same values with other bytes between them.
    padded *note = NB_STORE_ROW_WRITE(f.world, f.units, NOTE, padded, 7), copy = *note;
    memset(note, 0xEE, sizeof *note);
    note->kind = copy.kind;
    note->number = copy.number;
    assert_int_equal(nb_store_hash(f.world), hash);
    note = NB_STORE_ROW_WRITE(f.world, f.units, NOTE, padded, 7);
    note->kind += 1;
    assert_int_not_equal(nb_store_hash(f.world), hash);
    nb_store_destroy(f.world);
}

// The same rows by another way: other incarnations, versions, memory; and the free slots are part of the state.
TEST(hash_depends_on_the_state_alone) {
    fixture a = fixture_plain(100), b = fixture_plain(100);
    nb_entity entity;
    for (int i = 0; i < 10; ++i) nb_store_version_advance(b.world);
    assert_int_equal(nb_store_hash(a.world), nb_store_hash(b.world));
    nb_store_spawn(b.world, b.sparks, &entity); // takes an incarnation
    populate(&a, 70, 3);
    nb_store_hash(b.world);
    populate(&b, 70, 3);
    uint64_t hash = nb_store_hash(a.world);
    assert_int_equal(nb_store_hash(b.world), hash);
    // One row less and again the same values, but the next spawn would get another entity.
    entity = unit_spawn(&a, 1);
    nb_store_hash(a.world);
    assert_int_equal(nb_store_despawn(a.world, entity), NB_OK);
    assert_int_not_equal(nb_store_hash(a.world), hash);
    nb_store_destroy(a.world);
    nb_store_destroy(b.world);
}

TEST(hash_depends_on_the_order_of_rows) {
    fixture a = fixture_plain(100), b = fixture_plain(100);
    unit_spawn(&a, 1), unit_spawn(&a, 2);
    unit_spawn(&b, 2), unit_spawn(&b, 1);
    assert_int_not_equal(nb_store_hash(a.world), nb_store_hash(b.world));
    nb_store_destroy(a.world);
    nb_store_destroy(b.world);
}

// --- save and load ---

TEST(loaded_state_is_the_saved_one_byte_for_byte) {
    for (nb_save_kind kind = NB_SAVE_FILE; kind < NB_SAVE_KIND_COUNT; ++kind) {
        fixture a = fixture_plain(500), b = fixture_plain(500);
        populate(&a, 400, 4);
        populate(&b, kind == NB_SAVE_HISTORY ? 500 : 20, 5); // history needs a world that gave out as many lives
        assert_int_equal(nb_store_tick_begin(a.world), NB_OK);
        assert_int_equal(nb_store_teleport(a.world, nb_store_entity(a.world, a.units, 77)), NB_OK);
        assert_int_equal(nb_store_tick_end(a.world), NB_OK);
        *NB_STORE_ROW_WRITE(b.world, b.units, CACHE, uint16_t, 2) = 5;
        uint64_t hash = nb_store_hash(a.world);
        nb_store_hash(b.world);
        saved bytes = fixture_save(&a, kind);
        assert_int_equal(nb_store_load(b.world, bytes.bytes, bytes.size_bytes), NB_OK);
        assert_int_equal(nb_store_hash(b.world), hash);
        assert_true(nb_store_is_valid(b.world));
        saved again = fixture_save(&b, kind);
        assert_int_equal(again.size_bytes, bytes.size_bytes);
        assert_memory_equal(again.bytes, bytes.bytes, bytes.size_bytes);
        assert_int_equal(*NB_STORE_ROW(b.world, b.units, CACHE, uint16_t, 2), 0);
        size_t position_bytes = sizeof(vec3) * nb_store_row_count(a.world, a.units);
        assert_memory_equal(NB_STORE_ROWS_PREVIOUS(b.world, b.units, POSITION, vec3),
                            NB_STORE_ROWS(a.world, a.units, POSITION, vec3), position_bytes);
        // And both go on alike: slots are released behind those that wait, and the next entities are the same.
        for (uint32_t i = 0; i < 50; ++i) {
            nb_entity entity = nb_store_entity(a.world, a.units, 3 * i);
            assert_int_equal(nb_store_despawn(a.world, entity), NB_OK);
            assert_int_equal(nb_store_despawn(b.world, entity), NB_OK);
            assert_int_equal(nb_store_hash(a.world), nb_store_hash(b.world));
        }
        for (uint32_t i = 0; i < 100; ++i) assert_int_equal(unit_spawn(&a, i).value, unit_spawn(&b, i).value);
        for (uint32_t i = 0; i < 100; ++i) {
            nb_entity entity = nb_store_entity(a.world, a.units, 2 * i);
            assert_int_equal(nb_store_despawn(a.world, entity), NB_OK);
            assert_int_equal(nb_store_despawn(b.world, entity), NB_OK);
            assert_int_equal(nb_store_hash(a.world), nb_store_hash(b.world));
        }
        free(bytes.bytes);
        free(again.bytes);
        nb_store_destroy(a.world);
        nb_store_destroy(b.world);
    }
}

// A release writes the link of the slot released before it, also when that was before the save.
TEST(hash_follows_slots_released_before_and_after_a_load) {
    fixture a = fixture_plain(500), b = fixture_plain(500);
    nb_entity entities[300];
    for (uint32_t i = 0; i < 300; ++i) entities[i] = unit_spawn(&a, i);
    assert_int_equal(nb_store_despawn(a.world, entities[299]), NB_OK); // in another block than the next
    saved bytes = fixture_save(&a, NB_SAVE_FILE);
    assert_int_equal(nb_store_load(b.world, bytes.bytes, bytes.size_bytes), NB_OK);
    assert_int_equal(nb_store_hash(a.world), nb_store_hash(b.world));
    assert_int_equal(nb_store_despawn(a.world, entities[0]), NB_OK);
    assert_int_equal(nb_store_despawn(b.world, entities[0]), NB_OK);
    assert_int_equal(nb_store_hash(a.world), nb_store_hash(b.world));
    free(bytes.bytes);
    nb_store_destroy(a.world);
    nb_store_destroy(b.world);
}

TEST(file_brings_new_lives) {
    fixture f = fixture_plain(10);
    nb_entity entity = unit_spawn(&f, 1);
    nb_entity_ref ref;
    uint32_t row;
    assert_int_equal(nb_store_ref(f.world, entity, &ref), NB_OK);
    saved bytes = fixture_save(&f, NB_SAVE_FILE);
    assert_int_equal(nb_store_load(f.world, bytes.bytes, bytes.size_bytes), NB_OK);
    assert_int_equal(nb_store_find(f.world, entity, &row), NB_OK);
    assert_int_equal(nb_store_resolve(f.world, ref, &row), NB_ERR_STALE);
    free(bytes.bytes);
    nb_store_destroy(f.world);
}

TEST(too_small_a_buffer_is_left_alone) {
    fixture f = fixture_plain(10);
    unit_spawn(&f, 1);
    size_t size_bytes = nb_store_save_size(f.world, NB_SAVE_FILE), written = 0x5A;
    unsigned char *buffer = calloc(1, size_bytes);
    assert_int_equal(nb_store_save(f.world, NB_SAVE_FILE, buffer, size_bytes - 1, &written), NB_FULL);
    assert_int_equal(written, 0x5A);
    for (size_t i = 0; i < size_bytes; ++i) assert_int_equal(buffer[i], 0);
    free(buffer);
    nb_store_destroy(f.world);
}

TEST(another_layout_is_refused) {
    static test_log log;
    memset(&log, 0, sizeof log);
    nb_hooks hooks = test_hooks(&log, NULL);
    fixture a = fixture_plain(10), b = fixture_open(11, &hooks);
    assert_int_not_equal(nb_store_layout_hash(a.world), nb_store_layout_hash(b.world));
    saved bytes = fixture_save(&a, NB_SAVE_FILE);
    assert_int_equal(nb_store_load(b.world, bytes.bytes, bytes.size_bytes), NB_ERR_UNSUPPORTED);
    assert_int_equal(test_log_count(&log, NB_ITEM_STORE_LAYOUT), 1);
    free(bytes.bytes);
    nb_store_destroy(a.world);
    nb_store_destroy(b.world);
}

// --- bad bytes ---

typedef struct victim {
    fixture f;
    saved before; // history of what must stay
    uint64_t hash;
} victim;

static test_log victim_log;

static victim victim_open(void) {
    nb_hooks hooks = test_hooks(&victim_log, NULL);
    victim v = {.f = fixture_open(100, &hooks)};
    populate(&v.f, 30, 6);
    *NB_STORE_ROW_WRITE(v.f.world, v.f.units, CACHE, uint16_t, 1) = 3;
    v.before = fixture_save(&v.f, NB_SAVE_HISTORY);
    v.hash = nb_store_hash(v.f.world);
    return v;
}

static void victim_is_unchanged(victim *v) {
    assert_int_equal(nb_store_hash(v->f.world), v->hash);
    assert_int_equal(*NB_STORE_ROW(v->f.world, v->f.units, CACHE, uint16_t, 1), 3);
    saved now = fixture_save(&v->f, NB_SAVE_HISTORY);
    assert_int_equal(now.size_bytes, v->before.size_bytes);
    assert_memory_equal(now.bytes, v->before.bytes, now.size_bytes);
    assert_true(nb_store_is_valid(v->f.world));
    free(now.bytes);
}

static void victim_close(victim *v) {
    free(v->before.bytes);
    nb_store_destroy(v->f.world);
}

static void refuse_bytes(victim *v, const unsigned char *bytes, size_t size_bytes) {
    // A copy of the exact size: a read behind it is seen by the address sanitizer.
    unsigned char *copy = malloc(size_bytes != 0 ? size_bytes : 1);
    memcpy(copy, bytes, size_bytes);
    nb_result result = nb_store_load(v->f.world, copy, size_bytes);
    assert_true(result == NB_ERR_RANGE || result == NB_ERR_UNSUPPORTED);
    free(copy);
}

TEST(cut_bytes_are_refused_at_every_length) {
    victim v = victim_open();
    fixture other = fixture_plain(100);
    populate(&other, 60, 7);
    saved bytes = fixture_save(&other, NB_SAVE_FILE);
    for (size_t size = 0; size < bytes.size_bytes; ++size) refuse_bytes(&v, bytes.bytes, size);
    unsigned char *longer = calloc(1, bytes.size_bytes + 1);
    memcpy(longer, bytes.bytes, bytes.size_bytes);
    refuse_bytes(&v, longer, bytes.size_bytes + 1);
    victim_is_unchanged(&v);
    assert_int_equal(nb_store_load(v.f.world, bytes.bytes, bytes.size_bytes), NB_OK);
    free(longer);
    free(bytes.bytes);
    nb_store_destroy(other.world);
    victim_close(&v);
}

TEST(every_flipped_bit_is_refused) {
    victim v = victim_open();
    saved bytes = {.size_bytes = v.before.size_bytes, .bytes = malloc(v.before.size_bytes)};
    memcpy(bytes.bytes, v.before.bytes, bytes.size_bytes);
    for (size_t bit = 0; bit < bytes.size_bytes * 8; ++bit) {
        bytes.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        refuse_bytes(&v, bytes.bytes, bytes.size_bytes);
        bytes.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    victim_is_unchanged(&v);
    free(bytes.bytes);
    victim_close(&v);
}

// Damaged, but with the right sums: as if written by someone who knows the format.
#define HEADER_BYTES 40
static void forge(saved *bytes, nb_save_kind kind) {
    uint64_t size_bytes = bytes->size_bytes;
    uint64_t hash = nb_hash64(bytes->bytes + HEADER_BYTES, bytes->size_bytes - HEADER_BYTES, kind);
    memcpy(bytes->bytes + 16, &size_bytes, 8);
    memcpy(bytes->bytes + 24, &hash, 8);
}

TEST(forged_bytes_load_soundly_or_not_at_all) {
    uint64_t random = test_seed("forged_bytes_load_soundly_or_not_at_all");
    uint64_t rounds = test_size(10000, 200000, 5000000), accepted = 0;
    victim v = victim_open();
    fixture other = fixture_plain(100);
    populate(&other, 30, 8);
    for (uint64_t round = 0; round < rounds; ++round) {
        nb_save_kind kind = (nb_save_kind)(test_random(&random) % NB_SAVE_KIND_COUNT);
        saved bytes = fixture_save(&other, kind);
        uint64_t damages = 1 + test_random(&random) % 3;
        for (uint64_t i = 0; i < damages; ++i) {
            // Mostly where counts, pool and entities are.
            size_t span = test_random(&random) % 4 != 0 ? 800 : bytes.size_bytes - HEADER_BYTES;
            size_t at = HEADER_BYTES + (size_t)(test_random(&random) % span);
            static const unsigned char values[] = {0, 1, 2, 3, 64, 100, 101, 255};
            bool is_flip = test_random(&random) % 2 == 0;
            if (is_flip) bytes.bytes[at] ^= (unsigned char)(1u << test_random(&random) % 8);
            if (!is_flip) bytes.bytes[at] = values[test_random(&random) % sizeof values];
        }
        if (test_random(&random) % 8 == 0) bytes.size_bytes -= test_random(&random) % 100;
        bytes.bytes = realloc(bytes.bytes, bytes.size_bytes); // a read behind it is seen by the address sanitizer
        forge(&bytes, kind);
        nb_result result = nb_store_load(v.f.world, bytes.bytes, bytes.size_bytes);
        if (result == NB_OK) {
            // Nothing but values can have been damaged: the world is sound and goes back where it was.
            ++accepted;
            assert_true(nb_store_is_valid(v.f.world));
            nb_entity entity;
            assert_int_equal(nb_store_spawn(v.f.world, v.f.units, &entity), NB_OK);
            assert_int_equal(nb_store_despawn(v.f.world, entity), NB_OK);
            assert_int_equal(nb_store_load(v.f.world, v.before.bytes, v.before.size_bytes), NB_OK);
            *NB_STORE_ROW_WRITE(v.f.world, v.f.units, CACHE, uint16_t, 1) = 3;
        } else {
            assert_int_equal(result, NB_ERR_RANGE);
        }
        if (round % 64 == 0) victim_is_unchanged(&v);
        free(bytes.bytes);
    }
    victim_is_unchanged(&v);
    assert_in_range(accepted, 1, rounds - 1);
    nb_store_destroy(other.world);
    victim_close(&v);
}

// Two slots whose links look like the last that was released: what the next release changes would not be noted, and the
// hash would not follow it.
TEST(forged_end_of_the_waiting_slots_is_refused) {
    victim v = victim_open();
    fixture other = fixture_plain(100);
    populate(&other, 80, 9);
    saved bytes = fixture_save(&other, NB_SAVE_FILE);
    uint32_t used = 80, live = 0;
    uint64_t generation = 0;
    unsigned char *generations = bytes.bytes + HEADER_BYTES + 8 + 24; // behind the counts and the pool's header
    for (memcpy(&generation, generations, 8); generation % 2 == 0; ++live)
        memcpy(&generation, generations + (live + 1) * sizeof generation, 8);
    memset(generations + used * sizeof generation + live * sizeof(uint32_t), 0xFF, sizeof(uint32_t));
    forge(&bytes, NB_SAVE_FILE);
    refuse_bytes(&v, bytes.bytes, bytes.size_bytes);
    victim_is_unchanged(&v);
    free(bytes.bytes);
    nb_store_destroy(other.world);
    victim_close(&v);
}
