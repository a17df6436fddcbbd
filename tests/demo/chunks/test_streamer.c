// SPDX-License-Identifier: MIT
// The demo's chunks in an engine: from the first moment on the planet is whole, wherever the explorer goes, and what is
// taken is given back.

#include "frame/engine/engine_fixture.h"

#include "demo/chunks/quality.h"
#include "demo/chunks/streamer.h"
#include "demo/jobs/picture.h"

#define FACE_AREA (NODE_COUNT_0 * NODE_COUNT_0)

// Frames that everything may take; each does some of it, however slow the machine is.
#define FRAMES_MAX 200000u

typedef struct scene {
    rig r;
    planet p;
    streamer s;
} scene;

static void scene_open(scene *c, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.is_headless = true;
    desc.budget.level_count = QUALITY_COUNT, desc.budget.level_lowered = 2; // as cards have it
    rig_open_desc(&c->r, desc);
    c->p = (planet){.seed = 1};
    assert_int_equal(planet_attach(&c->p, c->r.engine), NB_OK);
    assert_int_equal(streamer_attach(&c->s, c->r.engine, &c->p), NB_OK);
    assert_int_equal(planet_populate(&c->p), NB_OK);
}

static void scene_close(scene *c) {
    assert_int_equal(nb_engine_destroy(c->r.engine), NB_OK);
    streamer_end(&c->s); // it holds a token
    planet_end(&c->p);
    assert_int_equal(c->r.heap.live_count.value, 0);
}

static nb_input_event order;

// High up, where some dozen nodes are wanted.
static nb_result send_order(const nb_context *context, void *user) {
    (void)user;
    if (order.kind == 0) return NB_OK;
    nb_result result = nb_context_command(context, &order);
    order.kind = 0;
    return result;
}

static uint32_t free_buffers(const streamer *s) {
    uint32_t count = 0;
    for (const streamer_buffer *b = s->free_buffer; b != NULL; b = b->next) ++count;
    return count;
}

// Every face whose root was ready once is covered exactly once, by what is ready, and the table says the same.
static void check_whole(scene *c, bool was_whole[6]) {
    uint32_t areas[6] = {0}, rows = 0;
    for (uint32_t i = 0; i < c->s.drawn_count; ++i) {
        // As it is wanted, where that is ready; else as it was wanted before.
        lod_node node = c->s.drawn[i];
        node.coarse = c->s.coarse;
        chunk_ref ref = chunk_table_find(&c->s.table, node);
        if (ref.generation == 0 || c->s.table.slots[ref.slot].state != CHUNK_READY) {
            node.coarse = !c->s.coarse;
            ref = chunk_table_find(&c->s.table, node);
        }
        assert_true(ref.generation != 0 && c->s.table.slots[ref.slot].state == CHUNK_READY);
        assert_true(c->s.slots[ref.slot].is_drawn);
        areas[c->s.drawn[i].face] += 1u << 2 * c->s.drawn[i].level;
    }
    for (uint32_t face = 0; face < 6; ++face) {
        assert_true(areas[face] == FACE_AREA || (areas[face] == 0 && !was_whole[face]));
        was_whole[face] = areas[face] != 0;
    }
    uint32_t count = nb_store_row_count(c->p.world, c->s.chunks);
    const uint8_t *is_drawn = NB_STORE_ROWS(c->p.world, c->s.chunks, CHUNK_IS_DRAWN, uint8_t);
    for (uint32_t row = 0; row < count; ++row) rows += is_drawn[row];
    assert_int_equal(count, c->s.table.state_counts[CHUNK_READY]);
    assert_int_equal(rows, c->s.drawn_count);
}

// Every page of the pool belongs to a chunk.
static void check_pages(const scene *c) {
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < c->s.table.slot_count_max; ++slot) count += c->s.slots[slot].page_count;
    assert_int_equal(count, c->s.pool.used_count);
    assert_int_equal(c->s.full_count, 0);
}

static void settle(scene *c, bool was_whole[6]) {
    uint32_t frame = 0;
    do {
        assert_int_equal(nb_engine_frame_delta(c->r.engine, 0), NB_OK);
        check_whole(c, was_whole);
    } while (!streamer_is_settled(&c->s) && ++frame < FRAMES_MAX);
    assert_true(streamer_is_settled(&c->s));
    check_pages(c);
}

static void go_to(scene *c, uint32_t face, int32_t x, int32_t z, int32_t height) {
    order = planet_teleport(0, (creature_home){face, x, z}, height);
    assert_int_equal(nb_engine_frame_delta(c->r.engine, 0), NB_OK); // the order is staged
    run_ticks(&c->r, 1);
}

static void go(scene *c, uint32_t face, int32_t x, int32_t z) { go_to(c, face, x, z, 9000); }

TEST(the_planet_is_whole_wherever_one_goes) {
    static scene c;
    bool was_whole[6] = {false};
    for (uint32_t workers = 0; workers < 3; workers += 2) {
        memset(was_whole, 0, sizeof was_whole);
        scene_open(&c, workers);
        attach(&c.r, (nb_module_desc){.name = "player", .frame = send_order});
        go(&c, 0, 2048, 2048);
        settle(&c, was_whole);
        for (uint32_t face = 0; face < 6; ++face) assert_true(was_whole[face]);
        assert_int_equal(c.s.drawn_count, c.s.choices[c.s.choice].leaf_count);
        for (uint32_t i = 0; i < test_size(2, 10, 100); ++i) {
            go(&c, (i * 5 + 3) % 6, (int32_t)(i * 977 % 4096), 3000);
            // On before all is there, now and then.
            for (uint32_t frame = 0; frame < i % 3 * 5; ++frame) {
                assert_int_equal(nb_engine_frame_delta(c.r.engine, 0), NB_OK);
                check_whole(&c, was_whole);
            }
        }
        settle(&c, was_whole);
        assert_int_equal(free_buffers(&c.s), STREAMER_JOBS_MAX);
        assert_int_equal(c.s.dropped_quad_count, 0);
        assert_int_equal(c.s.table.slot_count, c.s.choices[c.s.choice].node_count);
        scene_close(&c);
    }
}

static void set_quality(scene *c, uint32_t level) {
    assert_int_equal(nb_budget_set_level(nb_engine_budget(c->r.engine), level), NB_OK);
}

// Between cells of two sizes, too.
TEST(the_planet_is_whole_while_its_quality_changes) {
    static scene c;
    bool was_whole[6] = {false};
    scene_open(&c, 2);
    attach(&c.r, (nb_module_desc){.name = "player", .frame = send_order});
    set_quality(&c, 1);
    go(&c, 3, 500, 900);
    settle(&c, was_whole);
    assert_int_equal(c.s.coarse, 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < test_size(3, 12, 100); ++i) {
        set_quality(&c, i % 3 == 0 ? 3 : i % 3 == 1 ? 1 : 2);
        // On before all is there, now and then.
        for (uint32_t frame = 0; frame < i % 4 * 5; ++frame) {
            assert_int_equal(nb_engine_frame_delta(c.r.engine, 0), NB_OK);
            check_whole(&c, was_whole);
        }
        if (i % 4 == 0) settle(&c, was_whole);
        count += c.s.coarse;
    }
    settle(&c, was_whole);
    assert_true(count > 0);
    assert_int_equal(c.s.table.slot_count, c.s.choices[c.s.choice].node_count);
    for (uint32_t slot = 0; slot < c.s.table.slot_count_max; ++slot)
        if (c.s.table.slots[slot].is_used) assert_int_equal(c.s.table.slots[slot].node.coarse, c.s.coarse);
    scene_close(&c);
}

// What a frame uploads is what has become ready in it, quad by quad.
TEST(chunks_are_uploaded_when_they_become_ready) {
    static scene c;
    uint64_t before = 0, uploaded = 0;
    scene_open(&c, 0);
    attach(&c.r, (nb_module_desc){.name = "player", .frame = send_order});
    go(&c, 4, 100, 100);
    for (uint32_t frame = 0; frame < FRAMES_MAX && !streamer_is_settled(&c.s); ++frame) {
        before = c.s.ring.head;
        assert_int_equal(nb_engine_frame_delta(c.r.engine, 0), NB_OK);
        uploaded += c.s.ring.head - before;
        assert_int_equal(c.s.ring.head, c.s.ring.tail); // and drawn
    }
    uint64_t quads = 0;
    const material_draw *draws = NB_STORE_ROWS(c.p.world, c.s.chunks, CHUNK_DRAW, material_draw);
    for (uint32_t row = 0; row < nb_store_row_count(c.p.world, c.s.chunks); ++row) {
        assert_int_equal(c.s.slots[draws[row].slot].draw.slot, draws[row].slot);
        quads += draws[row].quad_count + draws[row].water_count;
    }
    // The ring may have left out its end now and then.
    assert_true(quads > 5000 && uploaded >= quads && uploaded < quads + 4 * STREAMER_SLOT_QUADS + quads / 8);
    scene_close(&c);
}

// From the cells of a node: where it is solid nothing can be seen through it, and nothing is above its bounds' top.
static void check_land(uint64_t seed, lod_node node, const occlusion_land *land, double top) {
    static volume v;
    volume_begin(&v, seed, node);
    for (int32_t z = -1; z <= NODE_CELLS; ++z) volume_columns(&v, z);
    volume_fit(&v);
    for (int32_t z = -1; z <= NODE_CELLS; ++z) volume_fill(&v, z);
    for (int32_t i = 0; i < NODE_CELLS * NODE_CELLS; ++i) {
        for (int32_t y = 0; y < (int32_t)v.layer_count; ++y) {
            uint8_t cell = v.cells[mesh_cell_index(i % NODE_CELLS, y, i / NODE_CELLS)];
            float low = (float)(SPHERE_RADIUS + v.base + y * v.step), high = low + (float)v.step;
            if (low < land->solid) assert_false(terrain_is_clear(cell));
            if (cell != TERRAIN_AIR) assert_true(high <= (float)top + 0.001f);
        }
    }
    assert_true(land->solid > (float)(SPHERE_RADIUS + v.base)); // and something is solid
}

TEST(what_hides_is_solid_and_what_is_hidden_is_not_higher) {
    static scene c;
    bool was_whole[6] = {false};
    uint32_t levels = 0;
    for (uint32_t coarse = 0; coarse < 2; ++coarse) {
        scene_open(&c, 2);
        attach(&c.r, (nb_module_desc){.name = "player", .frame = send_order});
        set_quality(&c, coarse ? 1 : 3);
        go_to(&c, 1, 1000, 1000, 40);
        memset(was_whole, 0, sizeof was_whole);
        settle(&c, was_whole);
        assert_int_equal(c.s.coarse, coarse);
        const material_draw *draws = NB_STORE_ROWS(c.p.world, c.s.chunks, CHUNK_DRAW, material_draw);
        const occlusion_land *lands = NB_STORE_ROWS(c.p.world, c.s.chunks, CHUNK_LAND, occlusion_land);
        const lod_bounds *bounds = NB_STORE_ROWS(c.p.world, c.s.chunks, CHUNK_BOUNDS, lod_bounds);
        for (uint32_t row = 0; row < nb_store_row_count(c.p.world, c.s.chunks); ++row) {
            check_land(c.p.seed, draws[row].node, &lands[row], bounds[row].high);
            levels |= 1u << draws[row].node.level;
        }
        scene_close(&c);
    }
    assert_int_equal(levels, (2u << NODE_ROOT_LEVEL) - 1); // of all levels
}

static void check_visible(const scene *c, const picture *made) {
    uint32_t chunks = nb_store_row_count(c->p.world, c->s.chunks), drawn = 0, animals = 0;
    const uint8_t *is_drawn = NB_STORE_ROWS(c->p.world, c->s.chunks, CHUNK_IS_DRAWN, uint8_t);
    for (uint32_t i = 0; i < made->last.visible_count; ++i) {
        uint32_t number = made->made.visible[i];
        if (i > 0) assert_true(number > made->made.visible[i - 1]);
        if (number < chunks) assert_int_equal(is_drawn[number], 1);
        drawn += number < chunks;
        animals += number >= chunks;
    }
    // Half of the planet is on the other side.
    assert_true(drawn > 3 && drawn < c->s.drawn_count);
    assert_true(animals > 100 && animals < PLANET_CREATURES_START);
}

// What one job alone would see is what all of them have seen together.
static void check_seen(const scene *c, const picture *made) {
    static float horizon[(OCCLUSION_SECTORS + 1) * OCCLUSION_RINGS];
    static occlusion_outline outlines[PICTURE_THINGS_MAX];
    static uint64_t words[(PICTURE_THINGS_MAX + 63) / 64];
    nb_store *w = c->p.world;
    const planet_eye *eye = NB_STORE_SINGLETON(w, c->p.eye, 0, planet_eye);
    occlusion_input input = {.eye = eye->position,
                             .frustum = frustum_of(&eye->camera),
                             .bounds = NB_STORE_ROWS(w, c->s.chunks, CHUNK_BOUNDS, lod_bounds),
                             .lands = NB_STORE_ROWS(w, c->s.chunks, CHUNK_LAND, occlusion_land),
                             .is_drawn = NB_STORE_ROWS(w, c->s.chunks, CHUNK_IS_DRAWN, uint8_t),
                             .land_count = nb_store_row_count(w, c->s.chunks),
                             .spheres = NB_STORE_ROWS(w, c->p.creatures, CREATURE_PLACE, vec3),
                             .sphere_count = nb_store_row_count(w, c->p.creatures),
                             .sphere_radius = PICTURE_CREATURE_RADIUS};
    occlusion_room room = {horizon, outlines};
    occlusion_run(&input, 0, 1, &room, words);
    uint32_t count = input.land_count + input.sphere_count, hidden = 0;
    assert_memory_equal(words, made->made.seen, occlusion_word_count(count) * sizeof *words);
    for (uint32_t i = 0; i < count; ++i) hidden += !picture_is_seen(&made->made, made->now_end, i);
    assert_true(hidden > 0);
}

// What the nine kinds of work leave for who draws is about what is there, row by row.
TEST(the_picture_is_made_of_what_is_there) {
    static scene c;
    static picture made;
    bool was_whole[6] = {false};
    scene_open(&c, 2);
    assert_int_equal(picture_attach(&made, c.r.engine, &c.p, &c.s), NB_OK);
    attach(&c.r, (nb_module_desc){.name = "player", .frame = send_order});
    go(&c, 1, 1000, 1000);
    settle(&c, was_whole);
    for (uint32_t i = 0; i < 9; ++i) assert_int_equal(nb_engine_frame_delta(c.r.engine, 16000000), NB_OK);
    const picture_numbers *n = &made.last;
    uint32_t chunks = nb_store_row_count(c.p.world, c.s.chunks);
    assert_int_equal(n->pose_count, nb_store_row_count(c.p.world, c.p.creatures));
    assert_int_equal(n->draw_count, chunks);
    assert_true(n->sprite_count > 0 && n->sprite_count <= PICTURE_PARTICLES && n->material_count > 10);
    const material_draw *draws = NB_STORE_ROWS(c.p.world, c.s.chunks, CHUNK_DRAW, material_draw);
    const pose_body *bodies = NB_STORE_ROWS(c.p.world, c.p.creatures, CREATURE_BODY, pose_body);
    vec3d eye = NB_STORE_SINGLETON(c.p.world, c.p.eye, 0, planet_eye)->position;
    for (uint32_t row = 0; row < chunks; ++row) {
        assert_int_equal(made.made.draws[row].faces, material_faces(eye, draws[row].node));
        assert_true(picture_is_seen(&made.made, made.now_end, row)); // no hill hides a chunk of hundreds of metres
        for (uint32_t m = 0; m < TERRAIN_MATERIAL_COUNT; ++m)
            if (draws[row].material_bits >> m & 1) assert_true(made.made.materials[m].opacity > 0);
    }
    uint32_t turned = 0;
    for (uint32_t row = 0; row < n->pose_count; ++row) {
        vec3 line = vec3_sub(made.made.poses[row].legs[0].hip, bodies[row].feet), look = made.made.looks[row];
        assert_true(vec3_length(line) < 2);
        assert_true(vec3_length(look) > 0.999f && vec3_length(look) < 1.001f && look.x > 0.3f);
        turned += look.x < 0.99f;
    }
    assert_true(made.made.seen_end == made.now_end && made.made.draws_end == made.now_end);
    assert_true(n->answer_count >= n->pose_count && turned > n->pose_count / 20);
    check_visible(&c, &made);
    // And near the ground, among animals, where hills hide some.
    creature_home home = c.p.homes[3];
    set_quality(&c, 3);
    go_to(&c, home.face, home.x, home.z, 4);
    settle(&c, was_whole);
    assert_int_equal(nb_engine_frame_delta(c.r.engine, 0), NB_OK);
    check_seen(&c, &made);
    assert_int_equal(nb_engine_destroy(c.r.engine), NB_OK);
    picture_end(&made);
    streamer_end(&c.s);
    planet_end(&c.p);
}
