// SPDX-License-Identifier: MIT
// Random graphs of passes that compute, draw, clear and copy numbers, next to a model that does the same on the CPU:
// the numbers agree, whatever memory the graph shares between resources and however many frames are in flight.

#include "gpu/vulkan/gpu_vulkan_stage.h"

#include "shaders/fill.comp.h"
#include "shaders/image.comp.h"
#include "shaders/mix.comp.h"
#include "shaders/numbers.frag.h"
#include "shaders/screen.vert.h"

#define SIDE 8u
#define COUNT (SIDE * SIDE) // numbers of every resource
#define BYTES (4u * COUNT)
#define VERSION_COUNT_MAX 12u
#define OP_COUNT_MAX 64u
#define IMPORT_COUNT 2u // buffers that stay from frame to frame, and as many images
#define READ_COUNT_MAX 512u

typedef enum op_kind {
    OP_FILL,   // a shader fills a buffer
    OP_MIX,    // of two buffers, into a third
    OP_DRAW,   // a buffer to an image
    OP_CHANGE, // an image, by what it was
    OP_CLEAR,  // an image
    OP_COPY,   // from one buffer that stays to another
    OP_TAKE,   // an image to a buffer that stays
    OP_KIND_COUNT,
    OP_READ, // an image to the CPU
} op_kind;

// What a piece of memory is between two writes.
typedef struct version {
    nb_graph_resource resource;
    uint32_t numbers[COUNT];
    bool is_image;
    bool is_import;
    uint32_t import;
} version;

typedef struct world world;

typedef struct op {
    world *w;
    op_kind kind;
    nb_graph_resource a, b, out;
    nb_gpu_buffer from, to; // of copies
    uint64_t to_offset;
    uint32_t push[3];
} op;

struct world {
    stage s;
    nb_graph *graph;
    nb_gpu_pipeline fill, mix, draw, change;
    nb_gpu_buffer buffers[IMPORT_COUNT], readback;
    nb_gpu_image images[IMPORT_COUNT];
    uint32_t kept[2][IMPORT_COUNT][COUNT]; // what the imports hold, buffers first
    bool is_written;                       // they hold something
    version versions[VERSION_COUNT_MAX];
    uint32_t version_count, name_count;
    op ops[OP_COUNT_MAX];
    uint32_t op_count;
    uint32_t read_count;
    uint32_t expected[READ_COUNT_MAX][COUNT];
    uint64_t random;
};

static uint32_t pick(world *w, uint32_t below) { return (uint32_t)((test_random(&w->random) >> 16) % below); }

// --- on the device ---

static void dispatch(nb_gpu_command *command, const op *o) {
    nb_gpu_push(command, o->push, sizeof o->push);
    nb_gpu_dispatch(command, 1, 1, 1);
}

static void bind(nb_gpu_command *command, uint32_t binding, nb_graph_resource resource) {
    nb_gpu_set_resource(command, binding, resource, NB_GPU_SAMPLER_NEAREST);
}

static void record_shader(nb_gpu_command *command, const op *o) {
    const world *w = o->w;
    const uint32_t side = SIDE;
    nb_gpu_set_pipeline(command, o->kind == OP_FILL   ? w->fill
                                 : o->kind == OP_MIX  ? w->mix
                                 : o->kind == OP_DRAW ? w->draw
                                                      : w->change);
    if (o->kind == OP_MIX) bind(command, 0, o->a), bind(command, 1, o->b);
    if (o->kind == OP_FILL || o->kind == OP_MIX) bind(command, 2, o->out);
    if (o->kind == OP_CHANGE) bind(command, 8, o->out);
    if (o->kind != OP_DRAW) {
        dispatch(command, o);
        return;
    }
    bind(command, 2, o->a);
    nb_gpu_push(command, &side, sizeof side);
    nb_gpu_draw(command, 3, 1, 0, 0);
}

static nb_result record_op(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    const op *o = (const op *)user;
    (void)bucket, (void)bucket_count;
    if (o->kind == OP_COPY) return nb_gpu_copy_buffer(command, o->from, 0, o->to, 0, BYTES);
    if (o->kind == OP_TAKE || o->kind == OP_READ) return nb_gpu_copy_to_buffer(command, o->a, o->to, o->to_offset);
    record_shader(command, o);
    return NB_OK;
}

static void pass_add(world *w, uint32_t index) {
    static const nb_gpu_access out_access[] = {NB_GPU_ACCESS_STORAGE, NB_GPU_ACCESS_STORAGE, NB_GPU_ACCESS_COLOR,
                                               NB_GPU_ACCESS_STORAGE, NB_GPU_ACCESS_COLOR,   NB_GPU_ACCESS_COPY_TO,
                                               NB_GPU_ACCESS_COPY_TO};
    op *o = &w->ops[index];
    char name[16];
    snprintf(name, sizeof name, "pass %u", index);
    bool draws = o->kind == OP_DRAW || o->kind == OP_CLEAR;
    bool copies = o->kind == OP_COPY || o->kind == OP_TAKE || o->kind == OP_READ;
    nb_graph_pass_desc desc = {.name = name,
                               .kind = draws ? NB_GPU_PASS_RENDER : NB_GPU_PASS_COMPUTE,
                               .record = o->kind == OP_CLEAR ? NULL : record_op,
                               .user = o,
                               .is_kept = o->kind == OP_READ};
    nb_graph_pass pass = {0};
    assert_int_equal(nb_graph_pass_add(w->graph, &desc, &pass), NB_OK);
    nb_gpu_access in_access = copies ? NB_GPU_ACCESS_COPY_FROM : NB_GPU_ACCESS_STORAGE_READ;
    if (o->a.value != 0) stage_use(w->graph, pass, o->a, in_access);
    if (o->b.value != 0) stage_use(w->graph, pass, o->b, in_access);
    if (o->out.value != 0) stage_use(w->graph, pass, o->out, out_access[o->kind]);
    nb_gpu_clear clear = {{(float)o->push[0]}};
    if (o->kind == OP_CLEAR) assert_int_equal(nb_graph_clear(w->graph, pass, o->out, clear), NB_OK);
}

// --- versions ---

static version *version_add(world *w, bool is_image) {
    version *v = &w->versions[w->version_count++];
    char name[16];
    snprintf(name, sizeof name, "resource %u", w->name_count++);
    *v = (version){.is_image = is_image};
    v->resource = is_image ? stage_transient(w->graph, name, NB_GPU_FORMAT_R32_UINT, SIDE, SIDE)
                           : stage_transient_buffer(w->graph, name, BYTES);
    return v;
}

// The same memory under a new name: what was read before stays right.
static void version_renew(world *w, version *v) {
    char name[16];
    snprintf(name, sizeof name, "resource %u", w->name_count++);
    nb_graph_resource renewed = {0};
    assert_int_equal(nb_graph_renew(w->graph, v->resource, name, &renewed), NB_OK);
    v->resource = renewed;
}

// Any of the kind beside two others; NULL: there is none.
static version *version_pick(world *w, bool is_image, bool is_import, const version *not_this,
                             const version *nor_this) {
    uint32_t first = pick(w, VERSION_COUNT_MAX);
    for (uint32_t i = 0; i < w->version_count; ++i) {
        version *v = &w->versions[(first + i) % w->version_count];
        if (v->is_image == is_image && (!is_import || v->is_import) && v != not_this && v != nor_this) return v;
    }
    return NULL;
}

// Where something is written to: new memory, or what something else was in.
static version *version_out(world *w, bool is_image, const version *a, const version *b) {
    version *v = version_pick(w, is_image, false, a, b);
    if (w->version_count < VERSION_COUNT_MAX && (v == NULL || pick(w, 2) == 0)) return version_add(w, is_image);
    if (v != NULL) version_renew(w, v);
    return v;
}

// --- operations, on the model ---

static op *op_add(world *w, op_kind kind) {
    op *o = &w->ops[w->op_count++];
    *o = (op){.w = w, .kind = kind, .push = {COUNT, 1 + pick(w, 9), pick(w, 1000)}};
    return o;
}

static void op_fill(world *w, version *out) {
    op *o = op_add(w, OP_FILL);
    o->out = out->resource;
    for (uint32_t i = 0; i < COUNT; ++i) out->numbers[i] = i * o->push[1] + o->push[2];
}

static void op_clear(world *w, version *out) {
    op *o = op_add(w, OP_CLEAR);
    o->out = out->resource;
    for (uint32_t i = 0; i < COUNT; ++i) out->numbers[i] = o->push[0] = 3 * o->push[1];
}

static void op_mix(world *w, const version *a, const version *b) {
    version *out = a != NULL && b != NULL ? version_out(w, false, a, b) : NULL;
    if (out == NULL) return;
    op *o = op_add(w, OP_MIX);
    o->a = a->resource, o->b = b->resource, o->out = out->resource;
    for (uint32_t i = 0; i < COUNT; ++i)
        out->numbers[i] = a->numbers[i] * o->push[1] + b->numbers[COUNT - 1 - i] + o->push[2];
}

static version *op_draw(world *w, const version *a) {
    version *out = a != NULL ? version_out(w, true, NULL, NULL) : NULL;
    if (out == NULL) return NULL;
    op *o = op_add(w, OP_DRAW);
    o->a = a->resource, o->out = out->resource;
    memcpy(out->numbers, a->numbers, BYTES);
    return out;
}

static void op_change(world *w, version *v) {
    if (v == NULL) return;
    version_renew(w, v);
    op *o = op_add(w, OP_CHANGE);
    o->out = v->resource;
    for (uint32_t i = 0; i < COUNT; ++i) v->numbers[i] = v->numbers[i] * o->push[1] + o->push[2] + i;
}

static void op_copy(world *w, const version *a, version *out) {
    if (a == NULL || out == NULL) return;
    version_renew(w, out);
    op *o = op_add(w, a->is_image ? OP_TAKE : OP_COPY);
    o->a = a->resource, o->out = out->resource;
    if (!a->is_image) o->from = w->buffers[a->import];
    o->to = w->buffers[out->import];
    memcpy(out->numbers, a->numbers, BYTES);
}

static void op_read(world *w, const version *a) {
    if (a == NULL || w->read_count == READ_COUNT_MAX) return;
    op *o = op_add(w, OP_READ);
    o->a = a->resource;
    o->to = w->readback;
    o->to_offset = (uint64_t)BYTES * w->read_count;
    memcpy(w->expected[w->read_count++], a->numbers, BYTES);
}

static void op_random(world *w) {
    version *a = version_pick(w, false, false, NULL, NULL);
    switch (pick(w, OP_KIND_COUNT)) {
    case OP_FILL: {
        version *out = version_out(w, false, NULL, NULL);
        if (out != NULL) op_fill(w, out);
        break;
    }
    case OP_MIX: op_mix(w, a, version_pick(w, false, false, a, NULL)); break;
    case OP_DRAW: op_draw(w, a); break;
    case OP_CHANGE: op_change(w, version_pick(w, true, false, NULL, NULL)); break;
    case OP_CLEAR: {
        version *out = version_out(w, true, NULL, NULL);
        if (out != NULL) op_clear(w, out);
        break;
    }
    case OP_COPY:
        a = version_pick(w, false, true, NULL, NULL);
        op_copy(w, a, version_pick(w, false, true, a, NULL));
        break;
    default: op_copy(w, version_pick(w, true, false, NULL, NULL), version_pick(w, false, true, NULL, NULL)); break;
    }
}

// --- frames ---

static void import_all(world *w) {
    for (uint32_t i = 0; i < 2 * IMPORT_COUNT; ++i) {
        bool is_image = i >= IMPORT_COUNT;
        version *v = &w->versions[w->version_count++];
        *v = (version){.is_image = is_image, .is_import = true, .import = i % IMPORT_COUNT};
        memcpy(v->numbers, w->kept[is_image][v->import], BYTES);
        nb_gpu_access rest = is_image ? NB_GPU_ACCESS_COPY_FROM : NB_GPU_ACCESS_STORAGE_READ;
        char name[16];
        snprintf(name, sizeof name, "import %u", i);
        nb_graph_import_desc desc = {
            .name = name, .is_buffer = !is_image, .before = w->is_written ? rest : NB_GPU_ACCESS_NONE, .after = rest};
        if (is_image) {
            desc.image = w->images[v->import];
            desc.format = NB_GPU_FORMAT_R32_UINT;
            desc.width = desc.height = SIDE;
        } else {
            desc.buffer = w->buffers[v->import];
            desc.size_bytes = BYTES;
        }
        assert_int_equal(nb_graph_import(w->graph, &desc, &v->resource), NB_OK);
        if (!w->is_written && is_image) op_clear(w, v);
        if (!w->is_written && !is_image) op_fill(w, v);
    }
    w->is_written = true;
}

// All that is there at the end is read, by way of an image.
static void read_all(world *w) {
    for (uint32_t i = 0; i < w->version_count; ++i) {
        version *v = &w->versions[i];
        if (v->is_import) memcpy(w->kept[v->is_image][v->import], v->numbers, BYTES);
        if (v->is_image) op_read(w, v);
    }
    version *buffer = version_pick(w, false, false, NULL, NULL);
    uint32_t before = w->version_count;
    if (before < VERSION_COUNT_MAX) {
        version *shown = version_add(w, true);
        op *o = op_add(w, OP_DRAW);
        o->a = buffer->resource, o->out = shown->resource;
        memcpy(shown->numbers, buffer->numbers, BYTES);
        op_read(w, shown);
    }
}

static void random_frame(world *w, uint32_t op_count) {
    w->graph = stage_begin(&w->s);
    w->version_count = w->name_count = w->op_count = 0;
    import_all(w);
    for (uint32_t i = 0; i < op_count; ++i) op_random(w);
    read_all(w);
    // In any order: what depends on what is said by the resources.
    uint32_t order[OP_COUNT_MAX];
    for (uint32_t i = 0; i < w->op_count; ++i) {
        uint32_t j = pick(w, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (uint32_t i = 0; i < w->op_count; ++i) pass_add(w, order[i]);
    stage_end(&w->s);
}

static void world_open(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    stage_open(&w->s, 16, 16);
    w->random = seed;
    nb_gpu_pipeline_desc desc = {.compute = STAGE_SHADER(fill_comp), .push_bytes = 12, .storage_mask = 1u << 2};
    w->fill = stage_pipeline(&w->s, desc);
    desc = (nb_gpu_pipeline_desc){.compute = STAGE_SHADER(mix_comp), .push_bytes = 12, .storage_mask = 7};
    w->mix = stage_pipeline(&w->s, desc);
    desc = (nb_gpu_pipeline_desc){.compute = STAGE_SHADER(image_comp), .push_bytes = 12, .storage_image_mask = 1};
    w->change = stage_pipeline(&w->s, desc);
    desc = (nb_gpu_pipeline_desc){.vertex = STAGE_SHADER(screen_vert),
                                  .fragment = STAGE_SHADER(numbers_frag),
                                  .colors = {NB_GPU_FORMAT_R32_UINT},
                                  .color_count = 1,
                                  .push_bytes = 4,
                                  .storage_mask = 1u << 2};
    w->draw = stage_pipeline(&w->s, desc);
    nb_gpu_access access = NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_COPY_FROM;
    for (uint32_t i = 0; i < IMPORT_COUNT; ++i) {
        w->buffers[i] = stage_buffer(&w->s, BYTES, NB_GPU_MEMORY_DEVICE);
        w->images[i] = stage_image(&w->s, NB_GPU_FORMAT_R32_UINT, SIDE, SIDE, 1, access);
    }
    w->readback = stage_buffer(&w->s, (uint64_t)BYTES * READ_COUNT_MAX, NB_GPU_MEMORY_READBACK);
}

TEST(random_graphs_agree_with_the_model) {
    uint64_t seed = test_seed(__func__);
    uint32_t frame_count = (uint32_t)test_size(40, 200, 2000);
    static world w;
    world_open(&w, seed);
    for (uint32_t frame = 0; frame < frame_count; ++frame) {
        random_frame(&w, 1 + pick(&w, 20));
        if (w.read_count + VERSION_COUNT_MAX < READ_COUNT_MAX && frame + 1 < frame_count) continue;
        stage_wait(&w.s);
        const uint32_t *found = (const uint32_t *)nb_gpu_buffer_memory(w.s.gpu, w.readback);
        assert_true(w.read_count > 0);
        for (uint32_t i = 0; i < w.read_count * COUNT; ++i)
            assert_int_equal(found[i], w.expected[i / COUNT][i % COUNT]);
        w.read_count = 0;
    }
    stage_close(&w.s);
}
