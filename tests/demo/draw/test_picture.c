// SPDX-License-Identifier: MIT
// The demo's pictures on a real driver: things are where the camera says, on all faces of the planet, and the same
// frame is the same picture.

#include "gpu/vulkan/gpu_vulkan_fixture.h"

#include <math.h>
#include <stdlib.h>

#include "demo/chunks/mesher.h"
#include "demo/draw/render.h"
#include "demo/planet/sphere.h"

#define WIDTH 64
#define HEIGHT 48

static vulkan_log messages;
static nb_gpu *gpu;
static render *r;
static nb_result opened = NB_ERR_UNSUPPORTED;
static uint8_t pixels[2][WIDTH * HEIGHT * 4];
static overlay canvas;

// Where there is no device, each test is skipped.
static int device_setup(void **state) {
    (void)state;
    if (is_vulkan_left_out() || !render_has_shaders()) return 0;
    vulkan_keep_loaded();
    nb_gpu_vulkan_desc vulkan = {.is_validated = true};
    nb_gpu_desc desc = {.backend = nb_gpu_vulkan_backend(), .backend_desc = &vulkan, .width = WIDTH, .height = HEIGHT};
    desc.wait_ns = desc.stuck_ns = UINT64_C(60000000000);
    desc.hooks = vulkan_hooks(&messages, NULL);
    opened = nb_gpu_create(&desc, &gpu);
    if (opened != NB_OK) return 0;
    render_desc made = {.gpu = gpu, .quad_count_max = 65536};
    return render_create(&made, &r) == NB_OK ? 0 : -1;
}

static void device_need(void) {
    if (is_vulkan_left_out() || !render_has_shaders()) skip();
    vulkan_skip_unless(opened, "no device");
}

static int device_teardown(void **state) {
    (void)state;
    render_destroy(r);
    nb_gpu_destroy(gpu);
    return nbi_atomic_load_seq_cst_u32(&messages.message_count) == 0 ? 0 : -1;
}

static void draw(const render_frame *frame, uint8_t out[WIDTH * HEIGHT * 4]) {
    assert_int_equal(nb_gpu_frame_begin(gpu), NB_OK);
    assert_int_equal(render_add(r, frame), NB_OK);
    assert_int_equal(nb_gpu_capture_ask(gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_compile(gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_record(gpu, 0), NB_OK);
    assert_int_equal(nb_gpu_frame_submit(gpu), NB_OK);
    assert_int_equal(nb_gpu_frame_end(gpu), NB_OK);
    nb_gpu_capture capture;
    assert_int_equal(nb_gpu_capture_take(gpu, UINT64_C(60000000000), &capture), NB_OK);
    assert_int_equal(capture.width, WIDTH);
    memcpy(out, capture.pixels, WIDTH * HEIGHT * 4);
    assert_int_equal(nb_gpu_stats_get(gpu).misuse_count, 0);
}

static const render_material LOOKS[4] = {
    {.glow = 0}, {.colour = {1, 0, 0}, .glow = 1}, {.colour = {0, 0.2f, 0.6f}}, {.colour = {0.4f, 0.5f, 0.3f}}};

static render_mesh mesh_of(lod_node node, const mesh_rect *rects, uint32_t count, bool is_water) {
    mesh_quad quads[64];
    for (uint32_t i = 0; i < count; ++i) quads[i] = mesh_quad_pack(&rects[i]);
    render_mesh_desc desc = {node.face, node.level, node.x, node.y, -8, 2, NULL, 0, NULL, 0};
    desc.quads = desc.water = (const render_quad *)quads;
    *(is_water ? &desc.water_count : &desc.quad_count) = count;
    render_mesh mesh;
    assert_int_equal(render_mesh_add(r, &desc, &mesh), NB_OK);
    return mesh;
}

// --- where things are ---

typedef struct box2 {
    float x0, y0, x1, y1; // pixels
} box2;

static box2 red_box(const uint8_t *p) {
    box2 box = {1e9f, 1e9f, -1e9f, -1e9f};
    for (int y = 0; y < HEIGHT; ++y)
        for (int x = 0; x < WIDTH; ++x) {
            const uint8_t *c = &p[(y * WIDTH + x) * 4];
            if (c[0] < 100 || c[1] > c[0] / 2) continue;
            box.x0 = fminf(box.x0, (float)x);
            box.x1 = fmaxf(box.x1, (float)x + 1);
            box.y0 = fminf(box.y0, (float)y);
            box.y1 = fmaxf(box.y1, (float)y + 1);
        }
    return box;
}

// A corner of a quad on the planet, by sphere.h: a and b are 0 or 1 along w and h.
static vec3d corner_of(lod_node n, const mesh_rect *q, uint32_t a, uint32_t b) {
    double at[3] = {q->x, q->y, q->z};
    uint32_t axis = q->face / 2, along = axis == 0 ? 2 : 0, up = axis == 1 ? 2 : 1;
    at[along] += a * q->w;
    at[up] += b * q->h;
    at[axis] += q->face & 1;
    double size = node_cell_columns(n.level);
    return sphere_position(n.face, (n.x * 32 + at[0]) * size, (n.y * 32 + at[2]) * size, -8 + 2 * at[1]);
}

static box2 expected_box(lod_node n, const mesh_rect *q, const camera_view *view) {
    camera_matrix clip = camera_clip(view, (float)WIDTH / HEIGHT);
    box2 box = {1e9f, 1e9f, -1e9f, -1e9f};
    for (uint32_t i = 0; i < 4; ++i) {
        camera_point p = camera_apply(&clip, camera_relative(view, corner_of(n, q, i & 1, i >> 1)), 1);
        float x = (p.x / p.w * 0.5f + 0.5f) * WIDTH, y = (p.y / p.w * 0.5f + 0.5f) * HEIGHT;
        box = (box2){fminf(box.x0, x), fminf(box.y0, y), fmaxf(box.x1, x), fmaxf(box.y1, y)};
    }
    return box;
}

// Looks at the quad from before it, or from behind.
static camera_view view_of(lod_node n, const mesh_rect *q, double side) {
    vec3d a = corner_of(n, q, 0, 0), b = corner_of(n, q, 1, 0), c = corner_of(n, q, 0, 1), d = corner_of(n, q, 1, 1);
    vec3d middle = vec3d_scale(vec3d_add(vec3d_add(a, b), vec3d_add(c, d)), 0.25), up = vec3d_normal(middle, middle);
    mesh_rect beyond = *q;
    beyond.x += q->face == 1, beyond.y += q->face == 3, beyond.z += q->face == 5;
    beyond.x -= q->face == 0, beyond.y -= q->face == 2, beyond.z -= q->face == 4;
    vec3d ahead = vec3d_normal(vec3d_sub(corner_of(n, &beyond, 0, 0), a), up);
    double far = 2.0 * vec3d_length(vec3d_sub(d, a));
    camera_view view = {.tan_half_y = CAMERA_TAN_HALF_Y, .near = CAMERA_NEAR};
    view.position = vec3d_add(middle, vec3d_scale(ahead, side * far));
    // Askew, so that no side lies along the picture's.
    view.position = vec3d_add(view.position, vec3d_scale(vec3d_sub(b, a), 0.15));
    camera_aim(&view, vec3_of(vec3d_sub(middle, view.position)),
               q->face / 2 == 1 ? vec3_of(vec3d_sub(b, a)) : vec3_of(up));
    return view;
}

static bool is_close(float a, float b) { return fabsf(a - b) < 1.6f; }

TEST_IN(device, quads_are_where_the_planet_says) {
    device_need();
    // Every direction and every face, or all pairs of them.
    uint32_t step = (uint32_t)test_size(5, 1, 1);
    for (uint32_t i = 0; i < SPHERE_FACE_COUNT * MESH_FACE_COUNT; i += step) {
        lod_node node = {(uint8_t)(i / MESH_FACE_COUNT), (uint8_t)(i % 3), (uint8_t)(5 + i % 20),
                         (uint8_t)(27 - i % 20), 0};
        mesh_rect q = {.x = 3 + i % 7, .y = 4, .z = 9, .w = 3, .h = 2, .face = i % MESH_FACE_COUNT, .material = 1};
        q.light = i % 2 ? 0xff : 0x3c; // cut along one diagonal or the other
        render_mesh mesh = mesh_of(node, &q, 1, false);
        render_chunk chunk = {.mesh = mesh, .faces = RENDER_FACES_ALL};
        render_frame frame = {.sun = {0, 1, 0}, .quality = 2, .chunks = &chunk, .chunk_count = 1};
        frame.materials = LOOKS, frame.material_count = 4;
        frame.camera = view_of(node, &q, 1);
        draw(&frame, pixels[0]);
        box2 seen = red_box(pixels[0]), wanted = expected_box(node, &q, &frame.camera);
        if (!is_close(seen.x0, wanted.x0) || !is_close(seen.y0, wanted.y0) || !is_close(seen.x1, wanted.x1) ||
            !is_close(seen.y1, wanted.y1))
            fail_msg("face %u direction %u: %.1f %.1f %.1f %.1f, wanted %.1f %.1f %.1f %.1f", node.face, q.face,
                     (double)seen.x0, (double)seen.y0, (double)seen.x1, (double)seen.y1, (double)wanted.x0,
                     (double)wanted.y0, (double)wanted.x1, (double)wanted.y1);
        frame.camera = view_of(node, &q, -1);
        draw(&frame, pixels[0]);
        assert_true(red_box(pixels[0]).x1 < 0); // from behind nothing is seen
        render_mesh_remove(r, mesh);
    }
}

// --- everything at once ---

static render_chunk chunks[2];
static render_creature creature;
static render_impostor impostor;
static render_particle particles[2];
static render_light light;
static render_cluster clusters[4 * 3 * 2];

// Ground and sea at one's feet, an animal, fire and smoke, a light that reaches everywhere.
static render_frame whole_frame(render_mesh meshes[2]) {
    lod_node node = {2, 0, 64, 64, 0};
    mesh_rect ground = {.x = 0, .y = 3, .z = 0, .w = 32, .h = 32, .face = 3, .material = 3, .light = 0xff};
    mesh_rect water = {.x = 0, .y = 4, .z = 0, .w = 12, .h = 32, .face = 3, .material = 2, .light = 0xff};
    meshes[0] = mesh_of(node, &ground, 1, false);
    meshes[1] = mesh_of(node, &water, 1, true);
    vec3d up = sphere_direction(2, 2064, 2064), feet = vec3d_scale(up, SPHERE_RADIUS);
    vec3d ahead = vec3d_normal(vec3d_sub(sphere_position(2, 2064, 2070, 0), feet), up);
    vec3d there = vec3d_add(feet, vec3d_scale(ahead, 6));
    creature = (render_creature){
        .position = there, .up = vec3_of(up), .forward = vec3_of(ahead), .size = 1, .colour = 0xc0a080};
    impostor = (render_impostor){vec3d_add(feet, vec3d_scale(ahead, 12)), 1, 0x806040, 0};
    particles[0] = (render_particle){there, 1, 0xffff8020u, RENDER_PARTICLE_FLAME};
    particles[1] = (render_particle){vec3d_add(there, up), 1, 0x80606060u, RENDER_PARTICLE_SMOKE};
    light = (render_light){there, 20, {4, 2, 1}};
    for (uint32_t i = 0; i < 24; ++i) clusters[i] = (render_cluster){.light_count = 1};
    overlay_clear(&canvas);
    overlay_add(&canvas, 1, 1, 8, 4, 0xffffffffu);
    render_frame f = {.sun = vec3_of(vec3d_normal(vec3d_add(up, ahead), up)), .time_s = 3, .tick_pulse = 0.5f};
    f.camera.position = vec3d_add(feet, vec3d_scale(up, 2));
    camera_aim(&f.camera, vec3_of(vec3d_sub(there, f.camera.position)), vec3_of(up));
    for (uint32_t i = 0; i < 2; ++i) chunks[i] = (render_chunk){.mesh = meshes[i], .faces = RENDER_FACES_ALL};
    f.materials = LOOKS, f.material_count = 4;
    f.chunks = chunks, f.chunk_count = 2;
    f.creatures = &creature, f.creature_count = 1;
    f.impostors = &impostor, f.impostor_count = 1;
    f.particles = particles, f.particle_count = 2;
    f.lights = &light, f.light_count = 1;
    f.clusters = (render_clusters){clusters, 4, 3, 2, 0.5f, 50};
    f.overlay = &canvas;
    return f;
}

static uint32_t colour_count(const uint8_t *p) {
    static uint8_t seen[1u << 15];
    uint32_t count = 0;
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < WIDTH * HEIGHT; ++i) {
        uint32_t key = (uint32_t)(p[i * 4] >> 3) << 10 | (uint32_t)(p[i * 4 + 1] >> 3) << 5 | p[i * 4 + 2] >> 3;
        count += !seen[key];
        seen[key] = 1;
    }
    return count;
}

TEST_IN(device, every_quality_draws_everything_alike_each_time) {
    device_need();
    render_mesh meshes[2];
    render_frame frame = whole_frame(meshes);
    for (uint32_t quality = 0; quality < RENDER_QUALITY_COUNT; ++quality) {
        for (uint32_t night = 0; night < 2; ++night) {
            frame.quality = quality;
            frame.sun = night ? vec3_scale(frame.sun, -1) : frame.sun;
            frame.bucket_count = 1;
            draw(&frame, pixels[0]);
            frame.bucket_count = 5;
            draw(&frame, pixels[1]);
            assert_memory_equal(pixels[0], pixels[1], sizeof pixels[0]);
            assert_true(colour_count(pixels[0]) > 40);
            static const uint8_t WHITE[3] = {255, 255, 255};
            assert_memory_equal(&pixels[0][(2 * WIDTH + 3) * 4], WHITE, 3); // the overlay
        }
        frame.sun = vec3_scale(frame.sun, -1);
    }
}

// Where two pictures differ: how wide that is, and how far its top is to the right of the picture's middle, in pixels.
static void change_of(const uint8_t *a, const uint8_t *b, int32_t *width, int32_t *top) {
    int32_t low = WIDTH, high = -1, top_row = -1, sum = 0, count = 0;
    for (int32_t i = 0; i < WIDTH * HEIGHT; ++i) {
        if (memcmp(&a[i * 4], &b[i * 4], 3) == 0) continue;
        int32_t x = i % WIDTH;
        low = x < low ? x : low, high = x > high ? x : high;
        if (top_row < 0) top_row = i / WIDTH;
        if (i / WIDTH == top_row) sum += x, ++count;
    }
    *width = high - low + 1;
    *top = count > 0 ? sum / count - WIDTH / 2 : 0;
}

// Straight ahead of the camera: its head is where it looks, and from before it is narrow.
TEST_IN(device, impostors_show_the_side_that_the_camera_is_on) {
    device_need();
    render_mesh meshes[2];
    render_frame frame = whole_frame(meshes);
    int32_t widths[8], heads[8];
    frame.quality = 2;
    frame.creature_count = frame.particle_count = frame.light_count = 0;
    vec3 line = vec3_scale(frame.camera.forward, 3);
    impostor.position = vec3d_add(frame.camera.position, (vec3d){line.x, line.y, line.z});
    frame.impostor_count = 0;
    draw(&frame, pixels[0]);
    frame.impostor_count = 1;
    for (uint32_t i = 0; i < 8; ++i) {
        impostor.direction = i;
        draw(&frame, pixels[1]);
        change_of(pixels[0], pixels[1], &widths[i], &heads[i]);
    }
    print_message("%d and %d wide, heads at %d, %d and %d\n", widths[0], widths[2], heads[0], heads[2], heads[6]);
    assert_true(widths[2] > 20 && abs(widths[2] - widths[6]) <= 2);
    assert_true(widths[0] * 3 < widths[2] * 2 && abs(widths[0] - widths[4]) <= 2);
    assert_true(heads[2] > 5 && heads[6] < -5 && abs(heads[0]) <= 1);
    for (uint32_t i = 0; i < 2; ++i) render_mesh_remove(r, meshes[i]);
}

static uint64_t light_of(const uint8_t *p) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < WIDTH * HEIGHT * 4; ++i) sum += i % 4 == 3 ? 0 : p[i];
    return sum;
}

TEST_IN(device, nights_are_darker_than_days_and_fires_give_light) {
    device_need();
    render_mesh meshes[2];
    render_frame frame = whole_frame(meshes);
    frame.quality = 2;
    frame.particle_count = 0;
    frame.light_count = 0;
    draw(&frame, pixels[0]);
    uint64_t day = light_of(pixels[0]);
    frame.sun = vec3_scale(frame.sun, -1);
    draw(&frame, pixels[0]);
    uint64_t night = light_of(pixels[0]);
    frame.light_count = 1;
    draw(&frame, pixels[0]);
    uint64_t lit = light_of(pixels[0]);
    assert_true(night * 2 < day);
    assert_true(lit > night + night / 5);
}
