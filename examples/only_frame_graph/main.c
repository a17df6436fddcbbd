// SPDX-License-Identifier: MIT
// module: gpu
// The frame graph without a device: the passes of a deferred renderer, in any order. Prints the plan; `--dot` draws it:
//   example_only_frame_graph --dot | dot -Tsvg > frame.svg

#include <nebula/frame_graph.h>

#include <stdio.h>
#include <string.h>

static void write_text(void *user, const char *text, size_t size_bytes) { fwrite(text, 1, size_bytes, user); }

static nb_graph_pass add_pass(nb_graph *graph, const char *name, nb_gpu_pass_kind kind) {
    nb_graph_pass pass = {0};
    nb_graph_pass_add(graph, &(nb_graph_pass_desc){.name = name, .kind = kind}, &pass);
    return pass;
}

static nb_graph_resource add_image(nb_graph *graph, const char *name, nb_gpu_format format, uint32_t side) {
    nb_graph_resource image = {0};
    nb_graph_image_add(graph, &(nb_graph_image_desc){name, format, side, side}, &image);
    return image;
}

static void assemble(nb_graph *graph) {
    nb_graph_resource screen, depth = add_image(graph, "depth", NB_GPU_FORMAT_DEPTH32F, 1024);
    nb_graph_import_desc import = {
        .name = "screen", .format = NB_GPU_FORMAT_BGRA8, .width = 1024, .height = 1024, .after = NB_GPU_ACCESS_PRESENT};
    nb_graph_import(graph, &import, &screen);
    nb_graph_resource albedo = add_image(graph, "albedo", NB_GPU_FORMAT_RGBA8, 1024);
    nb_graph_resource normal = add_image(graph, "normal", NB_GPU_FORMAT_RGBA16F, 1024);
    nb_graph_resource shadow = add_image(graph, "shadow", NB_GPU_FORMAT_DEPTH32F, 2048);
    nb_graph_resource light = add_image(graph, "light", NB_GPU_FORMAT_RGBA16F, 1024);
    nb_graph_resource bloom = add_image(graph, "bloom", NB_GPU_FORMAT_RGBA16F, 1024);
    nb_graph_resource debug = add_image(graph, "debug", NB_GPU_FORMAT_RGBA8, 1024);

    nb_graph_pass tone = add_pass(graph, "tone", NB_GPU_PASS_RENDER); // first in the code, last in the frame
    nb_graph_use(graph, tone, light, NB_GPU_ACCESS_SAMPLED);
    nb_graph_use(graph, tone, bloom, NB_GPU_ACCESS_SAMPLED);
    nb_graph_use(graph, tone, screen, NB_GPU_ACCESS_COLOR);
    nb_graph_pass ground = add_pass(graph, "ground", NB_GPU_PASS_RENDER);
    nb_graph_use(graph, ground, albedo, NB_GPU_ACCESS_COLOR);
    nb_graph_use(graph, ground, normal, NB_GPU_ACCESS_COLOR);
    nb_graph_use(graph, ground, depth, NB_GPU_ACCESS_DEPTH);
    nb_graph_clear(graph, ground, depth, (nb_gpu_clear){{0}});
    nb_graph_pass sun = add_pass(graph, "sun", NB_GPU_PASS_RENDER);
    nb_graph_use(graph, sun, shadow, NB_GPU_ACCESS_DEPTH);
    nb_graph_clear(graph, sun, shadow, (nb_gpu_clear){{0}});
    nb_graph_pass shade = add_pass(graph, "shade", NB_GPU_PASS_COMPUTE);
    nb_graph_resource read[] = {albedo, normal, depth, shadow};
    for (int i = 0; i < 4; ++i) nb_graph_use(graph, shade, read[i], NB_GPU_ACCESS_SAMPLED);
    nb_graph_use(graph, shade, light, NB_GPU_ACCESS_STORAGE);
    nb_graph_pass blur = add_pass(graph, "blur", NB_GPU_PASS_COMPUTE);
    nb_graph_use(graph, blur, light, NB_GPU_ACCESS_SAMPLED);
    nb_graph_use(graph, blur, bloom, NB_GPU_ACCESS_STORAGE); // in the memory of `normal`
    nb_graph_pass lines = add_pass(graph, "lines", NB_GPU_PASS_RENDER);
    nb_graph_use(graph, lines, debug, NB_GPU_ACCESS_COLOR); // nobody looks at it: left out
}

int main(int argc, char **argv) {
    nb_graph *graph = NULL;
    if (nb_graph_create(NULL, &graph) != NB_OK || nb_graph_begin(graph) != NB_OK) return 1;
    assemble(graph);
    bool is_dot = argc > 1 && strcmp(argv[1], "--dot") == 0, is_good = nb_graph_compile(graph, NULL) == NB_OK;
    if (is_good) is_good = (is_dot ? nb_graph_dot : nb_graph_print)(graph, write_text, stdout) == NB_OK;
    nb_graph_destroy(graph);
    return is_good ? 0 : 1;
}
