// SPDX-License-Identifier: MIT
// A frame graph: its memory, its handles, and how it is assembled.

#include "graph.h"

#include <string.h>

#define ATTACHMENTS (NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ)
#define OF_DEPTH (NB_GPU_ACCESS_DEPTH | NB_GPU_ACCESS_DEPTH_READ)
#define NOT_OF_DEPTH (NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_STORAGE | NB_GPU_ACCESS_STORAGE_READ)

// `name` is that of the pass or resource, or NULL.
#define FAIL(name, item, result, ...) \
    NBI_GRAPH_MISTAKE(graph, nbi_graph_key((name), NULL), (item), (result), function, __VA_ARGS__)
#define FAIL_USE(pass, resource, item, result, ...) \
    NBI_GRAPH_MISTAKE(graph, nbi_graph_key((pass), (resource)), (item), (result), function, __VA_ARGS__)

nb_graph_desc nb_graph_desc_default(void) {
    return (nb_graph_desc){.pass_count_max = NB_GRAPH_PASS_COUNT_DEFAULT,
                           .resource_count_max = NB_GRAPH_RESOURCE_COUNT_DEFAULT,
                           .use_count_max = NB_GRAPH_USE_COUNT_DEFAULT,
                           .hooks = nb_hooks_default()};
}

// --- beginning and end ---

// The next piece of one block of memory; without a block it only counts.
static void *take(unsigned char *base, size_t *at_bytes, size_t count, size_t size_bytes) {
    size_t from = *at_bytes;
    *at_bytes = (from + count * size_bytes + 15) & ~(size_t)15;
    return base != NULL ? base + from : NULL;
}

#define TAKE(field, count) (field) = take(base, at_bytes, (count), sizeof *(field))

static void take_table(nbi_graph_table *table, unsigned char *base, size_t *at_bytes, uint32_t count_max) {
    uint32_t bucket_count = 2;
    while (bucket_count < 2 * count_max) bucket_count *= 2;
    table->mask = bucket_count - 1;
    TAKE(table->buckets, bucket_count);
    TAKE(table->bucket_of, count_max);
    TAKE(table->keys, count_max);
}

static void take_all(nb_graph *graph, unsigned char *base, size_t *at_bytes) {
    uint32_t pass_max = graph->desc.pass_count_max, resource_max = graph->desc.resource_count_max;
    uint32_t use_max = graph->desc.use_count_max;
    TAKE(graph->passes, pass_max);
    TAKE(graph->resources, resource_max);
    TAKE(graph->uses, use_max);
    TAKE(graph->clears, use_max);
    TAKE(graph->links, use_max);
    TAKE(graph->waits, (size_t)pass_max + resource_max);
    TAKE(graph->heap, pass_max);
    TAKE(graph->order, (size_t)pass_max + resource_max);
    TAKE(graph->via, (size_t)pass_max + resource_max);
    TAKE(graph->class_free, resource_max);
    TAKE(graph->slot_next, resource_max);
    TAKE(graph->steps, pass_max);
    TAKE(graph->transitions, (size_t)use_max + resource_max); // one before each use, one at the end
    TAKE(graph->plan_resources, resource_max);
    TAKE(graph->slots, resource_max);
    take_table(&graph->pass_names, base, at_bytes, pass_max);
    take_table(&graph->resource_names, base, at_bytes, resource_max);
    take_table(&graph->use_keys, base, at_bytes, use_max);
    take_table(&graph->classes, base, at_bytes, resource_max);
}

static nb_graph_desc resolve(const nb_graph_desc *desc) {
    nb_graph_desc resolved = desc != NULL ? *desc : nb_graph_desc_default();
    if (resolved.pass_count_max == 0) resolved.pass_count_max = NB_GRAPH_PASS_COUNT_DEFAULT;
    if (resolved.resource_count_max == 0) resolved.resource_count_max = NB_GRAPH_RESOURCE_COUNT_DEFAULT;
    if (resolved.use_count_max == 0) resolved.use_count_max = NB_GRAPH_USE_COUNT_DEFAULT;
    resolved.hooks = nb_hooks_resolve(&resolved.hooks);
    return resolved;
}

nb_result nb_graph_create(const nb_graph_desc *desc, nb_graph **out) {
    if (out == NULL) return NB_FAIL_NULL("out");
    nb_graph fresh = {.desc = resolve(desc)};
    const nb_graph_desc *d = &fresh.desc;
    bool is_fine = d->pass_count_max <= NB_GRAPH_PASS_COUNT_MAX &&
                   d->resource_count_max <= NB_GRAPH_RESOURCE_COUNT_MAX && d->use_count_max <= NB_GRAPH_USE_COUNT_MAX;
    if (!is_fine)
        return nb_report_mistake(&d->hooks, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_RANGE, __func__, "a count is too large");
    size_t head_bytes = (sizeof fresh + NB_CACHE_LINE - 1) & ~(size_t)(NB_CACHE_LINE - 1), size_bytes = head_bytes;
    take_all(&fresh, NULL, &size_bytes);
    nb_graph *graph = nb_hooks_alloc(&d->hooks, size_bytes, NB_CACHE_LINE, __func__);
    if (graph == NULL) return NB_ERR_MEMORY;
    // Tables look at places that were never written; whatever stands there is fine, as long as it is something.
    memset(graph, 0, size_bytes);
    *graph = fresh;
    graph->memory_bytes = size_bytes;
    // Graphs begin with different generations, so that handles of one are stale in another.
    graph->generation = (uint32_t)((uintptr_t)graph >> 6) * 0x9E3779B1u;
    take_all(graph, (unsigned char *)graph, &head_bytes);
    *out = graph;
    return NB_OK;
}

void nb_graph_destroy(nb_graph *graph) {
    if (graph == NULL) return;
    nb_hooks hooks = graph->desc.hooks;
    nb_hooks_free(&hooks, graph, graph->memory_bytes);
}

nb_result nb_graph_begin(nb_graph *graph) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    if (++graph->generation == 0) graph->generation = 1;
    graph->pass_names.count = graph->resource_names.count = graph->use_keys.count = graph->link_count = 0;
    graph->state = NBI_GRAPH_OPEN;
    return NB_OK;
}

// --- handles and names ---

// name: of the new pass or resource, or NULL.
static nb_result check_open(const nb_graph *graph, const char *name, const char *function) {
    if (graph->state == NBI_GRAPH_OPEN) return NB_OK;
    const char *why = graph->state == NBI_GRAPH_IDLE ? "no assembly was begun" : "the assembly was compiled already";
    if (name == NULL) return FAIL(why, NB_ITEM_GRAPH_MOMENT, NB_ERR_MISUSE, "%s; call nb_graph_begin first", why);
    return FAIL_USE(name, why, NB_ITEM_GRAPH_MOMENT, NB_ERR_MISUSE, "'%s': %s; call nb_graph_begin first", name, why);
}

// The index of a handle of this assembly; NBI_NONE for every other.
static uint32_t index_of(const nb_graph *graph, uint64_t value, uint32_t count) {
    uint32_t index = (uint32_t)value - 1; // null becomes the largest
    return value >> 32 == graph->generation && index < count ? index : NBI_NONE;
}

static uint64_t handle_of(const nb_graph *graph, uint32_t index) {
    return (uint64_t)graph->generation << 32 | (index + 1);
}

static nb_result find_pass(const nb_graph *graph, nb_graph_pass pass, const char *function, uint32_t *index) {
    *index = index_of(graph, pass.value, graph->pass_names.count);
    if (*index != NBI_NONE) return NB_OK;
    return NBI_GRAPH_MISTAKE(graph, (uint32_t)pass.value, NB_ITEM_GRAPH_STALE, NB_ERR_STALE, function,
                             "pass %u is of no assembly, of an earlier one or of another graph; add passes in each "
                             "assembly",
                             (uint32_t)pass.value);
}

// user: the name of the pass that uses it, or of what it becomes; or NULL.
static nb_result find_resource(const nb_graph *graph, nb_graph_resource resource, const char *user,
                               const char *function, uint32_t *index) {
    *index = index_of(graph, resource.value, graph->resource_names.count);
    if (*index != NBI_NONE) return NB_OK;
    return NBI_GRAPH_MISTAKE(
        graph, nbi_graph_key(user, NULL) ^ (uint32_t)resource.value, NB_ITEM_GRAPH_STALE, NB_ERR_STALE, function,
        "%s%s%sresource %u is of no assembly, of an earlier one or of another graph; add, import "
        "or find it in each assembly",
        user != NULL ? "'" : "", user != NULL ? user : "", user != NULL ? "': " : "", (uint32_t)resource.value);
}

// A name as it is kept: cut, of one line, zeros behind it.
typedef struct short_name {
    char text[NB_GPU_NAME_SIZE_MAX + 1];
} short_name;

static short_name shorten(const char *name) {
    short_name kept = {{0}};
    for (size_t i = 0; i < NB_GPU_NAME_SIZE_MAX && name[i] != '\0'; ++i)
        kept.text[i] = (unsigned char)name[i] < 0x20 ? '?' : name[i];
    return kept;
}

static uint64_t key_of(const short_name *name) {
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof name->text; i += sizeof key) {
        uint64_t word;
        memcpy(&word, name->text + i, sizeof word);
        key = (key ^ word) * 0x9E3779B97F4A7C15u;
        key ^= key >> 32;
    }
    return key;
}

// Names are the first field of what has one, `stride_bytes` from each to the next.
static uint32_t find_name(const nbi_graph_table *table, const void *named, size_t stride_bytes, const short_name *name,
                          uint32_t *at) {
    uint64_t key = key_of(name);
    uint32_t entry = nbi_graph_table_find(table, key, at);
    while (entry != NBI_NONE && memcmp((const char *)named + entry * stride_bytes, name, sizeof *name) != 0) {
        *at = (*at + 1) & table->mask;
        entry = nbi_graph_table_next(table, key, at);
    }
    return entry;
}

// --- resources ---

static nb_result check_image(const nb_graph *graph, const nb_graph_import_desc *desc, const char *function) {
    bool is_format = (int)desc->format > NB_GPU_FORMAT_NONE && desc->format < NB_GPU_FORMAT_COUNT;
    if (!is_format)
        return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, "image '%s' has no format", desc->name);
    // Zero wraps to the largest.
    bool is_size = desc->width - 1 < NB_GRAPH_IMAGE_SIZE_MAX && desc->height - 1 < NB_GRAPH_IMAGE_SIZE_MAX;
    if (is_size) return NB_OK;
    return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_RANGE, "image '%s' is %u x %u; 1 to %u are possible",
                desc->name, desc->width, desc->height, NB_GRAPH_IMAGE_SIZE_MAX);
}

static nb_result check_import(const nb_graph *graph, const nb_graph_import_desc *desc, const char *function) {
    nb_gpu_access possible =
        desc->is_buffer ? NB_GPU_ACCESS_OF_BUFFERS : NB_GPU_ACCESS_OF_IMAGES | NB_GPU_ACCESS_PRESENT;
    nb_gpu_access both[2] = {desc->before, desc->after};
    for (int i = 0; i < 2; ++i) {
        char text[NBI_GRAPH_ACCESS_TEXT_SIZE];
        bool is_fine = (both[i] & ~possible) == 0 && (desc->is_buffer || nbi_graph_has_one_layout(both[i]));
        if (!is_fine)
            return NBI_GRAPH_MISTAKE(graph, nbi_graph_key(desc->name, NULL) ^ both[i], NB_ITEM_GRAPH_ARGUMENT,
                                     NB_ERR_MISUSE, function, "%s '%s' cannot be %s for %s at once; choose other uses",
                                     desc->is_buffer ? "buffer" : "image", desc->name,
                                     i == 0 ? "left before" : "left after", nbi_graph_access_text(both[i], text));
    }
    bool is_of_kind = desc->is_buffer ? desc->image.value == 0 : desc->buffer.value == 0;
    if (is_of_kind) return NB_OK;
    return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, "'%s' is %s; set is_buffer to what it is",
                desc->name, desc->is_buffer ? "a buffer and has an image" : "an image and has a buffer");
}

// Adds a version with its name checked; the rest of the desc is. The new one is returned by its index.
static nb_result add_resource(nb_graph *graph, const nb_graph_import_desc *desc, const char *function,
                              uint32_t *index) {
    short_name name = shorten(desc->name);
    uint32_t at;
    if (find_name(&graph->resource_names, graph->resources, sizeof *graph->resources, &name, &at) != NBI_NONE)
        return FAIL(name.text, NB_ITEM_GRAPH_NAME, NB_ERR_MISUSE,
                    "a resource '%s' is there already; choose another name", name.text);
    if (graph->resource_names.count == graph->desc.resource_count_max)
        return FAIL(name.text, NB_ITEM_GRAPH_FULL, NB_FULL,
                    "no room for resource '%s'; %u are there, raise resource_count_max", name.text,
                    graph->resource_names.count);
    *index = nbi_graph_table_add(&graph->resource_names, key_of(&name), at);
    nbi_graph_resource *resource = &graph->resources[*index];
    *resource = (nbi_graph_resource){.desc = *desc, .root = *index, .predecessor = NBI_NONE, .successor = NBI_NONE};
    resource->desc.name = NULL;
    memcpy(resource->name, name.text, sizeof resource->name);
    return NB_OK;
}

static nb_result check_name(const nb_graph *graph, const char *name, const void *out, const char *function) {
    if (name == NULL || name[0] == '\0')
        return FAIL(NULL, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE,
                    "desc or its name is NULL, or the name is empty; give each pass and resource a name");
    if (out == NULL) return FAIL(name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, "out is NULL, for '%s'", name);
    return NB_OK;
}

static nb_result check_named(const nb_graph *graph, const char *name, const void *out, const char *function) {
    nb_result result = check_open(graph, name, function);
    return result == NB_OK ? check_name(graph, name, out, function) : result;
}

nb_result nb_graph_image_add(nb_graph *graph, const nb_graph_image_desc *desc, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    nb_result result = check_named(graph, desc != NULL ? desc->name : NULL, out, __func__);
    if (result != NB_OK) return result;
    nb_graph_import_desc memory = {
        .name = desc->name, .format = desc->format, .width = desc->width, .height = desc->height};
    uint32_t index;
    result = check_image(graph, &memory, __func__);
    if (result == NB_OK) result = add_resource(graph, &memory, __func__, &index);
    if (result == NB_OK) out->value = handle_of(graph, index);
    return result;
}

nb_result nb_graph_buffer_add(nb_graph *graph, const nb_graph_buffer_desc *desc, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    nb_result result = check_named(graph, desc != NULL ? desc->name : NULL, out, function);
    if (result != NB_OK) return result;
    if (desc->size_bytes - 1 >= NB_GRAPH_BUFFER_BYTES_MAX)
        return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_RANGE,
                    "buffer '%s' has %llu bytes; 1 to %llu are possible", desc->name, nb_llu(desc->size_bytes),
                    nb_llu(NB_GRAPH_BUFFER_BYTES_MAX));
    nb_graph_import_desc memory = {.name = desc->name, .is_buffer = true, .size_bytes = desc->size_bytes};
    uint32_t index;
    result = add_resource(graph, &memory, function, &index);
    if (result == NB_OK) out->value = handle_of(graph, index);
    return result;
}

nb_result nb_graph_import(nb_graph *graph, const nb_graph_import_desc *desc, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    uint32_t index;
    nb_result result = check_named(graph, desc != NULL ? desc->name : NULL, out, __func__);
    if (result == NB_OK && !desc->is_buffer) result = check_image(graph, desc, __func__);
    if (result == NB_OK) result = check_import(graph, desc, __func__);
    if (result == NB_OK) result = add_resource(graph, desc, __func__, &index);
    if (result != NB_OK) return result;
    graph->resources[index].is_imported = true;
    out->value = handle_of(graph, index);
    return NB_OK;
}

nb_result nb_graph_renew(nb_graph *graph, nb_graph_resource resource, const char *name, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t old, index;
    nb_result result = check_named(graph, name, out, function);
    if (result == NB_OK) result = find_resource(graph, resource, name, function, &old);
    if (result != NB_OK) return result;
    nbi_graph_resource *before = &graph->resources[old];
    if (before->successor != NBI_NONE)
        return FAIL(before->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE,
                    "'%s' was renewed as '%s' already; renew that one as '%s'", before->name,
                    graph->resources[before->successor].name, name);
    nb_graph_import_desc memory = before->desc;
    memory.name = name;
    result = add_resource(graph, &memory, function, &index);
    if (result != NB_OK) return result;
    nbi_graph_resource *renewed = &graph->resources[index];
    renewed->root = before->root;
    renewed->predecessor = old;
    renewed->is_imported = before->is_imported;
    before->successor = index;
    out->value = handle_of(graph, index);
    return NB_OK;
}

nb_result nb_graph_resource_find(nb_graph *graph, const char *name, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    nb_result result = check_name(graph, name, out, __func__);
    if (result != NB_OK) return result;
    short_name kept = shorten(name);
    uint32_t at, index = find_name(&graph->resource_names, graph->resources, sizeof *graph->resources, &kept, &at);
    if (index == NBI_NONE) return NB_EMPTY;
    out->value = handle_of(graph, index);
    return NB_OK;
}

// Bound: versions have larger numbers than what they renew.
nb_result nb_graph_newest(nb_graph *graph, nb_graph_resource resource, nb_graph_resource *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t index;
    if (out == NULL) return FAIL(NULL, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nb_result result = find_resource(graph, resource, NULL, function, &index);
    if (result != NB_OK) return result;
    while (graph->resources[index].successor != NBI_NONE) index = graph->resources[index].successor;
    out->value = handle_of(graph, index);
    return NB_OK;
}

nb_result nb_graph_keep(nb_graph *graph, nb_graph_resource resource) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    uint32_t index;
    nb_result result = check_open(graph, NULL, __func__);
    if (result == NB_OK) result = find_resource(graph, resource, NULL, __func__, &index);
    if (result == NB_OK) graph->resources[index].is_kept = true;
    return result;
}

// --- passes ---

nb_result nb_graph_pass_add(nb_graph *graph, const nb_graph_pass_desc *desc, nb_graph_pass *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    nb_result result = check_named(graph, desc != NULL ? desc->name : NULL, out, function);
    if (result != NB_OK) return result;
    bool is_kind = (int)desc->kind > NB_GPU_PASS_NONE && desc->kind < NB_GPU_PASS_KIND_COUNT;
    if (!is_kind)
        return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE,
                    "pass '%s' has no kind; set nb_graph_pass_desc.kind", desc->name);
    if (desc->bucket_count > NB_GRAPH_BUCKET_COUNT_MAX)
        return FAIL(desc->name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_RANGE, "pass '%s' has %u buckets; %u are possible",
                    desc->name, desc->bucket_count, NB_GRAPH_BUCKET_COUNT_MAX);
    short_name name = shorten(desc->name);
    uint32_t at;
    if (find_name(&graph->pass_names, graph->passes, sizeof *graph->passes, &name, &at) != NBI_NONE)
        return FAIL(name.text, NB_ITEM_GRAPH_NAME, NB_ERR_MISUSE, "a pass '%s' is there already; choose another name",
                    name.text);
    if (graph->pass_names.count == graph->desc.pass_count_max)
        return FAIL(name.text, NB_ITEM_GRAPH_FULL, NB_FULL, "no room for pass '%s'; %u are there, raise pass_count_max",
                    name.text, graph->pass_names.count);
    uint32_t index = nbi_graph_table_add(&graph->pass_names, key_of(&name), at);
    nbi_graph_pass *pass = &graph->passes[index];
    *pass = (nbi_graph_pass){
        .desc = *desc, .use_first = NBI_NONE, .use_last = NBI_NONE, .after_first = NBI_NONE, .depth_use = NBI_NONE};
    pass->desc.name = NULL;
    if (pass->desc.bucket_count == 0) pass->desc.bucket_count = 1;
    memcpy(pass->name, name.text, sizeof pass->name);
    out->value = handle_of(graph, index);
    return NB_OK;
}

static bool is_full(const nb_graph *graph) {
    return graph->use_keys.count + graph->link_count >= graph->desc.use_count_max;
}

nb_result nb_graph_after(nb_graph *graph, nb_graph_pass pass, nb_graph_pass earlier) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t behind, before;
    nb_result result = check_open(graph, NULL, function);
    if (result == NB_OK) result = find_pass(graph, pass, function, &behind);
    if (result == NB_OK) result = find_pass(graph, earlier, function, &before);
    if (result != NB_OK) return result;
    if (behind == before)
        return FAIL(graph->passes[behind].name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE,
                    "pass '%s' cannot run behind itself", graph->passes[behind].name);
    if (is_full(graph))
        return FAIL_USE(graph->passes[behind].name, graph->passes[before].name, NB_ITEM_GRAPH_FULL, NB_FULL,
                        "no room to put pass '%s' behind '%s'; raise use_count_max", graph->passes[behind].name,
                        graph->passes[before].name);
    graph->links[graph->link_count] = (nbi_graph_link){behind, graph->passes[before].after_first};
    graph->passes[before].after_first = graph->link_count++;
    return NB_OK;
}

// --- uses ---

static uint64_t use_key(uint32_t pass, uint32_t resource) { return (uint64_t)pass << 32 | resource; }

// Why a pass cannot use a resource so; NULL: it can.
static const char *why_not(const nbi_graph_pass *pass, const nbi_graph_resource *resource, nb_gpu_access access) {
    const nb_graph_import_desc *desc = &resource->desc;
    bool is_depth = desc->format == NB_GPU_FORMAT_DEPTH32F;
    if (access == NB_GPU_ACCESS_NONE) return "name at least one use";
    if (desc->is_buffer && (access & ~NB_GPU_ACCESS_OF_BUFFERS) != 0) return "a buffer has no such use";
    if (!desc->is_buffer && (access & ~NB_GPU_ACCESS_OF_IMAGES) != 0) return "an image has no such use";
    if (is_depth && (access & NOT_OF_DEPTH) != 0) return "a depth format is neither colour nor storage";
    if (!is_depth && (access & OF_DEPTH) != 0) return "its format is none of depth";
    if ((access & ATTACHMENTS) != 0 && pass->desc.kind != NB_GPU_PASS_RENDER) return "only render passes attach";
    return NULL;
}

static bool has_room_to_attach(const nbi_graph_pass *pass, uint32_t use, nb_gpu_access fresh) {
    if ((fresh & NB_GPU_ACCESS_COLOR) != 0 && pass->color_count == NB_GRAPH_COLOR_COUNT_MAX) return false;
    return (fresh & OF_DEPTH) == 0 || pass->depth_use == NBI_NONE || pass->depth_use == use;
}

static nb_result find_both(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, const char *function,
                           uint32_t *pass_index, uint32_t *resource_index) {
    nb_result result = check_open(graph, NULL, function);
    if (result == NB_OK) result = find_pass(graph, pass, function, pass_index);
    if (result != NB_OK) return result;
    return find_resource(graph, resource, graph->passes[*pass_index].name, function, resource_index);
}

static uint32_t add_use(nb_graph *graph, uint32_t pass, uint32_t resource, uint32_t at) {
    uint32_t use = nbi_graph_table_add(&graph->use_keys, use_key(pass, resource), at);
    nbi_graph_pass *owner = &graph->passes[pass];
    graph->uses[use] = (nbi_graph_use){.pass = pass, .resource = resource, .next = NBI_NONE};
    if (owner->use_first == NBI_NONE) owner->use_first = use;
    if (owner->use_last != NBI_NONE) graph->uses[owner->use_last].next = use;
    owner->use_last = use;
    return use;
}

nb_result nb_graph_use(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_access access) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t p, r, at;
    nb_result result = find_both(graph, pass, resource, function, &p, &r);
    if (result != NB_OK) return result;
    nbi_graph_pass *owner = &graph->passes[p];
    const char *name = graph->resources[r].name, *problem = why_not(owner, &graph->resources[r], access);
    char text[NBI_GRAPH_ACCESS_TEXT_SIZE];
    if (problem != NULL)
        return NBI_GRAPH_MISTAKE(graph, nbi_graph_key(owner->name, name) ^ access, NB_ITEM_GRAPH_ARGUMENT,
                                 NB_ERR_MISUSE, function, "pass '%s' cannot use '%s' as %s: %s", owner->name, name,
                                 nbi_graph_access_text(access, text), problem);
    uint32_t use = nbi_graph_table_find(&graph->use_keys, use_key(p, r), &at);
    nb_gpu_access fresh = use != NBI_NONE ? access & ~graph->uses[use].access : access;
    if (!has_room_to_attach(owner, use, fresh))
        return FAIL_USE(owner->name, name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_RANGE,
                        "pass '%s' has no room to attach '%s'; %u colours and one depth are possible", owner->name,
                        name, NB_GRAPH_COLOR_COUNT_MAX);
    if (use == NBI_NONE && is_full(graph))
        return FAIL_USE(owner->name, name, NB_ITEM_GRAPH_FULL, NB_FULL,
                        "no room for '%s' in pass '%s'; raise use_count_max", name, owner->name);
    if (use == NBI_NONE) use = add_use(graph, p, r, at);
    graph->uses[use].access |= access;
    if ((fresh & NB_GPU_ACCESS_COLOR) != 0) ++owner->color_count;
    if ((fresh & OF_DEPTH) != 0) owner->depth_use = use;
    return NB_OK;
}

nb_result nb_graph_clear(nb_graph *graph, nb_graph_pass pass, nb_graph_resource resource, nb_gpu_clear clear) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t p, r, at;
    nb_result result = find_both(graph, pass, resource, function, &p, &r);
    if (result != NB_OK) return result;
    uint32_t use = nbi_graph_table_find(&graph->use_keys, use_key(p, r), &at);
    bool is_written = use != NBI_NONE && (graph->uses[use].access & (NB_GPU_ACCESS_COLOR | NB_GPU_ACCESS_DEPTH)) != 0;
    if (!is_written)
        return FAIL_USE(graph->passes[p].name, graph->resources[r].name, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE,
                        "pass '%s' does not draw into '%s'; declare that first", graph->passes[p].name,
                        graph->resources[r].name);
    graph->uses[use].is_cleared = true;
    graph->clears[use] = clear;
    return NB_OK;
}

// --- what was declared ---

nb_gpu_access nbi_graph_declared_at(const nb_graph *graph, uint32_t pass, uint32_t resource) {
    uint32_t at, use = nbi_graph_table_find(&graph->use_keys, use_key(pass, resource), &at);
    return use != NBI_NONE ? graph->uses[use].access : NB_GPU_ACCESS_NONE;
}

nb_gpu_access nb_graph_declared(const nb_graph *graph, uint32_t pass, nb_graph_resource resource) {
    if (graph == NULL) return NB_GPU_ACCESS_NONE;
    uint32_t index = index_of(graph, resource.value, graph->resource_names.count);
    return index != NBI_NONE ? nbi_graph_declared_at(graph, pass, index) : NB_GPU_ACCESS_NONE;
}

nb_result nb_graph_resource_index(const nb_graph *graph, nb_graph_resource resource, uint32_t *out) {
    if (graph == NULL) return NB_FAIL_NULL("graph");
    const char *function = __func__;
    uint32_t index;
    if (out == NULL) return FAIL(NULL, NB_ITEM_GRAPH_ARGUMENT, NB_ERR_MISUSE, "out is NULL");
    nb_result result = find_resource(graph, resource, NULL, function, &index);
    if (result == NB_OK) *out = index;
    return result;
}
