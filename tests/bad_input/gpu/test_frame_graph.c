// SPDX-License-Identifier: MIT
// nebula/frame_graph.h, with the names of nebula/gpu_types.h: graphs, passes and resources that are none, bad descs.

#include "bad_input/bad_input.h"

#include "nebula/frame_graph.h"

static void write_nothing(void *user, const char *text, size_t size_bytes) { (void)user, (void)text, (void)size_bytes; }

static nb_graph *open_graph(void) {
    nb_graph *graph = NULL;
    nb_graph_desc desc = {.hooks = bad_hooks(NULL)};
    assert_int_equal(nb_graph_create(&desc, &graph), NB_OK);
    return graph;
}

static const nb_graph_image_desc an_image = {"a", NB_GPU_FORMAT_R8, 1, 1};
static const nb_graph_buffer_desc a_buffer = {"a", 1};
static const nb_graph_import_desc an_import = {.name = "a", .is_buffer = true};
static const nb_graph_pass_desc a_pass = {.name = "a", .kind = NB_GPU_PASS_RENDER};
static const nb_gpu_clear a_clear = {{0}};

TEST(null_is_refused_everywhere) {
    nb_graph_resource resource = {77};
    nb_graph_pass pass = {77};
    const nb_graph_plan *plan = UNTOUCHED(nb_graph_plan);
    uint32_t index = 77;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_create(NULL, NULL));
    silent(nb_graph_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_begin(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_image_add(NULL, &an_image, &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_buffer_add(NULL, &a_buffer, &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_import(NULL, &an_import, &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_renew(NULL, resource, "b", &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_newest(NULL, resource, &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_resource_find(NULL, "a", &resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_pass_add(NULL, &a_pass, &pass));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_use(NULL, pass, resource, NB_GPU_ACCESS_COLOR));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_clear(NULL, pass, resource, a_clear));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_after(NULL, pass, pass));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_keep(NULL, resource));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_compile(NULL, &plan));
    refused_default(0, NB_ITEM_BASE_NULL, nb_graph_error_get(NULL));
    accepted(0, nb_graph_declared(NULL, 0, resource)); // asked for each command that is recorded
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_resource_index(NULL, resource, &index));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_print(NULL, write_nothing, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_graph_dot(NULL, write_nothing, NULL));
    assert_int_equal(resource.value + pass.value + index, 3 * 77);
    assert_ptr_equal(plan, UNTOUCHED(nb_graph_plan));
}

TEST(counts_beyond_the_bounds_are_refused) {
    nb_graph *graph = UNTOUCHED(nb_graph);
    nb_graph_desc passes = {.pass_count_max = NB_GRAPH_PASS_COUNT_MAX + 1, .hooks = bad_hooks(NULL)};
    nb_graph_desc resources = {.resource_count_max = NB_GRAPH_RESOURCE_COUNT_MAX + 1, .hooks = bad_hooks(NULL)};
    nb_graph_desc uses = {.use_count_max = NB_GRAPH_USE_COUNT_MAX + 1, .hooks = bad_hooks(NULL)};
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_create(&passes, &graph));
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_create(&resources, &graph));
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_create(&uses, &graph));
    assert_ptr_equal(graph, UNTOUCHED(nb_graph));
}

TEST(nothing_happens_before_begin_or_after_compile) {
    nb_graph *graph = open_graph();
    nb_graph_resource resource = {77};
    nb_graph_pass pass = {77};
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_compile(graph, NULL));
    for (int round = 0; round < 2; ++round) {
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_image_add(graph, &an_image, &resource));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_buffer_add(graph, &a_buffer, &resource));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_import(graph, &an_import, &resource));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_renew(graph, resource, "b", &resource));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_pass_add(graph, &a_pass, &pass));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_use(graph, pass, resource, NB_GPU_ACCESS_COLOR));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_clear(graph, pass, resource, a_clear));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_after(graph, pass, pass));
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_keep(graph, resource));
        accepted(NB_EMPTY, nb_graph_resource_find(graph, "a", &resource));
        accepted(0, nb_graph_error_get(graph));
        accepted(NB_OK, nb_graph_begin(graph));
        refused_nth(round, NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_print(graph, write_nothing, NULL));
        refused_nth(round, NB_ERR_MISUSE, NB_ITEM_GRAPH_MOMENT, nb_graph_dot(graph, write_nothing, NULL));
        accepted(NB_OK, nb_graph_compile(graph, NULL));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_print(graph, NULL, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_dot(graph, NULL, NULL));
    assert_int_equal(resource.value + pass.value, 2 * 77);
    nb_graph_destroy(graph);
}

TEST(resources_without_name_format_or_size_are_refused) {
    nb_graph *graph = open_graph();
    nb_graph_resource out = {77};
    nb_graph_image_desc images[] = {{NULL, NB_GPU_FORMAT_R8, 1, 1},
                                    {"", NB_GPU_FORMAT_R8, 1, 1},
                                    {"a", NB_GPU_FORMAT_NONE, 1, 1},
                                    {"b", NB_GPU_FORMAT_COUNT, 1, 1},
                                    {"c", (nb_gpu_format)-1, 1, 1}};
    nb_graph_image_desc sizes[] = {{"a", NB_GPU_FORMAT_R8, 0, 1},
                                   {"b", NB_GPU_FORMAT_R8, 1, 0},
                                   {"c", NB_GPU_FORMAT_R8, NB_GRAPH_IMAGE_SIZE_MAX + 1, 1},
                                   {"d", NB_GPU_FORMAT_R8, 1, UINT32_MAX}};
    nb_graph_buffer_desc empty = {"a", 0}, large = {"b", NB_GRAPH_BUFFER_BYTES_MAX + 1}, nameless = {NULL, 1};
    accepted(NB_OK, nb_graph_begin(graph));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_image_add(graph, NULL, &out));
    for (int i = 0; i < 2; ++i)
        refused_again(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_image_add(graph, &images[i], &out));
    for (int i = 2; i < 5; ++i)
        refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_image_add(graph, &images[i], &out));
    for (int i = 0; i < 4; ++i)
        refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_image_add(graph, &sizes[i], &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_image_add(graph, &sizes[0], NULL));
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_buffer_add(graph, &empty, &out));
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_buffer_add(graph, &large, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_buffer_add(graph, &nameless, &out));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_buffer_add(graph, NULL, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_resource_find(graph, NULL, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_resource_find(graph, "a", NULL));
    assert_int_equal(out.value, 77);
    nb_graph_destroy(graph);
}

TEST(imports_that_contradict_themselves_are_refused) {
    nb_graph *graph = open_graph();
    nb_graph_resource out = {77};
    nb_graph_import_desc fine = {.name = "a", .format = NB_GPU_FORMAT_R8, .width = 1, .height = 1}, bad = fine;
    accepted(NB_OK, nb_graph_begin(graph));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, NULL, &out));
    bad.before = NB_GPU_ACCESS_VERTEX; // of buffers
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad.before = 0, bad.after = NB_GPU_ACCESS_SAMPLED | NB_GPU_ACCESS_COPY_FROM; // two layouts
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad.after = 0x80000000u;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad = fine, bad.buffer.value = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad = fine, bad.name = "b", bad.is_buffer = true, bad.image.value = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad.image.value = 0, bad.after = NB_GPU_ACCESS_PRESENT; // of images
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    bad = fine, bad.width = 0;
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_import(graph, &bad, &out));
    assert_int_equal(out.value, 77);
    nb_graph_destroy(graph);
}

TEST(passes_and_uses_that_cannot_be_are_refused) {
    nb_graph *graph = open_graph();
    nb_graph_resource image, depth, buffer, out = {77}, null_resource = {0}, wild_resource = {UINT64_MAX};
    nb_graph_pass render, compute, none = {77}, null_pass = {0};
    nb_graph_image_desc image_desc = {"a", NB_GPU_FORMAT_R8, 1, 1}, depth_desc = {"d", NB_GPU_FORMAT_DEPTH32F, 1, 1};
    nb_graph_buffer_desc buffer_desc = {"b", 1};
    nb_graph_pass_desc render_desc = {.name = "r", .kind = NB_GPU_PASS_RENDER}, bad = render_desc;
    nb_graph_pass_desc compute_desc = {.name = "c", .kind = NB_GPU_PASS_COMPUTE};
    nb_gpu_clear clear = {{0}};
    uint32_t index = 77;
    accepted(NB_OK, nb_graph_begin(graph));
    accepted(NB_OK, nb_graph_image_add(graph, &image_desc, &image));
    accepted(NB_OK, nb_graph_image_add(graph, &depth_desc, &depth));
    accepted(NB_OK, nb_graph_buffer_add(graph, &buffer_desc, &buffer));
    accepted(NB_OK, nb_graph_pass_add(graph, &render_desc, &render));
    accepted(NB_OK, nb_graph_pass_add(graph, &compute_desc, &compute));
    bad.name = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, &bad, &none));
    refused_again(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, NULL, &none));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_NAME, nb_graph_pass_add(graph, &render_desc, &none));
    bad = (nb_graph_pass_desc){.name = "x"};
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, &bad, &none));
    bad.name = "y", bad.kind = NB_GPU_PASS_KIND_COUNT;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, &bad, &none));
    bad.kind = NB_GPU_PASS_RENDER, bad.bucket_count = NB_GRAPH_BUCKET_COUNT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, &bad, &none));
    bad.bucket_count = 1;
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_pass_add(graph, &bad, NULL));

    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, image, 0));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, image, NB_GPU_ACCESS_PRESENT));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, image, NB_GPU_ACCESS_INDEX));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, image, 0x10000u));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, buffer, NB_GPU_ACCESS_SAMPLED));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, compute, image, NB_GPU_ACCESS_COLOR));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, image, NB_GPU_ACCESS_DEPTH));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, render, depth, NB_GPU_ACCESS_COLOR));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_use(graph, compute, depth, NB_GPU_ACCESS_STORAGE));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_use(graph, null_pass, image, NB_GPU_ACCESS_COLOR));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_use(graph, render, null_resource, NB_GPU_ACCESS_COLOR));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_use(graph, render, wild_resource, NB_GPU_ACCESS_COLOR));
    accepted(NB_OK, nb_graph_use(graph, render, depth, NB_GPU_ACCESS_DEPTH_READ));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_clear(graph, render, image, clear));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_clear(graph, render, depth, clear));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_clear(graph, null_pass, image, clear));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_after(graph, render, null_pass));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_after(graph, render, render));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_keep(graph, null_resource));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_renew(graph, wild_resource, "n", &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_renew(graph, image, NULL, &out));
    accepted(NB_OK, nb_graph_renew(graph, image, "n", &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_renew(graph, image, "m", &out));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_newest(graph, null_resource, &out));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_newest(graph, image, NULL));
    refused(NB_ERR_STALE, NB_ITEM_GRAPH_STALE, nb_graph_resource_index(graph, wild_resource, &index));
    refused(NB_ERR_MISUSE, NB_ITEM_GRAPH_ARGUMENT, nb_graph_resource_index(graph, image, NULL));
    accepted(0, nb_graph_declared(graph, UINT32_MAX, image));
    accepted(0, nb_graph_declared(graph, 0, wild_resource));
    assert_int_equal(none.value + index, 2 * 77);
    accepted(NB_OK, nb_graph_compile(graph, NULL)); // nobody needs anything
    nb_graph_destroy(graph);
}

TEST(types_that_are_none_have_no_name) {
    assert_string_equal(nb_gpu_format_name((nb_gpu_format)-1), "unknown");
    assert_string_equal(nb_gpu_format_name(NB_GPU_FORMAT_NONE), "unknown");
    assert_string_equal(nb_gpu_format_name(NB_GPU_FORMAT_COUNT), "unknown");
    accepted(0, nb_gpu_format_bytes(NB_GPU_FORMAT_COUNT));
    accepted(0, nb_gpu_format_bytes((nb_gpu_format)-1));
    assert_string_equal(nb_gpu_access_name(0x80000000u), "unknown");
    assert_string_equal(nb_gpu_access_name(UINT32_MAX), "unknown");
}
