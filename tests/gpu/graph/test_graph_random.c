// SPDX-License-Identifier: MIT
// Random frame graphs against a model of the rules. The plan is run on memory that remembers what was done to it: every
// use must find the layout it needs, nothing may be used that is still being written, and what is found must be what
// would be found if each resource had memory of its own and no pass were left out.

#include "gpu/graph/graph_model.h"

// --- random graphs ---

static uint32_t below(uint64_t *random, uint32_t count) { return (uint32_t)(test_random(random) % count); }

// Passes have hidden ranks. Names of one memory have ranges of ranks that follow each other, in each of which the first
// ranks write and the rest read: so that most graphs have no circle.
typedef struct range {
    uint32_t first, middle, end;
} range;

static void random_resources(model *m, range *ranges, uint64_t *random) {
    for (uint32_t i = 0; i < m->resource_count; ++i) {
        model_resource *r = &m->resources[i];
        *r = (model_resource){.predecessor = MODEL_NONE, .class = below(random, 2)};
        uint32_t old = i > 0 ? below(random, i) : 0;
        bool is_renewed = i > 0 && below(random, 3) == 0 && model_is_newest(m, old);
        // Short lives can share memory.
        uint32_t width = below(random, 2) == 0 ? m->pass_count : 1 + m->pass_count / 3;
        uint32_t first = below(random, m->pass_count - width + 1);
        ranges[i] = (range){first, first, first + width};
        if (is_renewed) {
            *r = m->resources[old];
            r->predecessor = old;
            width = ranges[old].end - ranges[old].first;
            ranges[i] = (range){ranges[old].first + width / 2, 0, ranges[old].end};
            ranges[old].end = ranges[i].first;
            ranges[old].middle = ranges[old].first + (ranges[old].end - ranges[old].first) / 2;
        } else {
            uint32_t kind = below(random, 4);
            r->is_buffer = kind == 0, r->is_depth = kind == 1;
            r->is_imported = below(random, 4) == 0;
            nb_gpu_access some[] = {0, SAMPLED, COPY_FROM, COPY_TO, r->is_buffer ? VERTEX | UNIFORM : SAMPLED};
            for (uint32_t j = 0; j < 5 && r->is_buffer; ++j) some[j] &= ~SAMPLED;
            if (r->is_imported) r->before = some[below(random, 5)], r->after = some[below(random, 5)];
        }
        r->is_kept = below(random, 8) == 0;
        ranges[i].middle = ranges[i].first + 1 + below(random, (ranges[i].end - ranges[i].first) / 2 + 1);
    }
}

static nb_gpu_access random_access(const model_resource *r, bool is_write, uint64_t *random) {
    static const nb_gpu_access tables[3][2][4] = {
        {{SAMPLED, SAMPLED, STORAGE_READ, COPY_FROM}, {COLOR, COLOR, STORAGE, COPY_TO}},
        {{SAMPLED, DEPTH_READ, DEPTH_READ | SAMPLED, COPY_FROM}, {DEPTH, DEPTH, DEPTH | DEPTH_READ, COPY_TO}},
        {{VERTEX, UNIFORM | INDIRECT, STORAGE_READ, COPY_FROM},
         {STORAGE, COPY_TO, STORAGE | STORAGE_READ, COPY_TO | VERTEX}},
    };
    return tables[r->is_buffer ? 2 : r->is_depth ? 1 : 0][is_write][below(random, 4)];
}

static bool has_room(const model *m, uint32_t pass, nb_gpu_access access) {
    uint32_t colors = 0, depths = 0;
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        colors += (m->access[pass][r] & COLOR) != 0;
        depths += (m->access[pass][r] & (DEPTH | DEPTH_READ)) != 0;
    }
    if ((access & COLOR) != 0 && colors == NB_GRAPH_COLOR_COUNT_MAX) return false;
    return (access & (DEPTH | DEPTH_READ)) == 0 || depths == 0;
}

static void random_uses(model *m, const range *ranges, uint64_t *random) {
    bool is_in_order = below(random, 2) == 0, is_wild = below(random, 16) == 0;
    uint32_t ranks[MODEL_PASSES_MAX];
    for (uint32_t p = 0; p < m->pass_count; ++p) ranks[p] = is_in_order ? p : m->pass_count - 1 - p;
    for (uint32_t p = 0; p < m->pass_count; ++p) {
        m->is_kept[p] = below(random, 4) == 0;
        for (uint32_t i = 2 + below(random, 6); i > 0; --i) {
            uint32_t r = below(random, m->resource_count), rank = ranks[p];
            bool is_inside = rank >= ranges[r].first && rank < ranges[r].end;
            if (m->access[p][r] != 0 || (!is_inside && !is_wild)) continue;
            bool is_write = is_wild ? below(random, 2) == 0 : rank < ranges[r].middle;
            nb_gpu_access access = random_access(&m->resources[r], is_write, random);
            if (!has_room(m, p, access)) continue;
            m->access[p][r] = access;
            m->is_cleared[p][r] = (access & (COLOR | DEPTH)) != 0 && below(random, 3) == 0;
        }
        uint32_t other = below(random, m->pass_count);
        bool is_forward = is_wild || ranks[other] < ranks[p];
        if (below(random, 8) == 0 && other != p && is_forward) m->is_behind[p][other] = true;
    }
}

// Most who would read what nobody writes do not.
static void drop_unwritten(model *m, uint64_t *random) {
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        bool is_written = model_write_before(m, (moment){r, MODEL_LAST}).resource != MODEL_NONE;
        for (uint32_t p = 0; p < m->pass_count && !is_written && !m->resources[r].is_imported; ++p) {
            if (below(random, 16) != 0) m->access[p][r] = 0;
        }
    }
}

static void random_model(model *m, uint64_t *random) {
    memset(m, 0, sizeof *m);
    m->pass_count = 1 + below(random, below(random, 8) == 0 ? MODEL_PASSES_MAX : 12);
    m->resource_count = 1 + below(random, below(random, 4) == 0 ? MODEL_RESOURCES_MAX : 8);
    range ranges[MODEL_RESOURCES_MAX];
    random_resources(m, ranges, random);
    random_uses(m, ranges, random);
    drop_unwritten(m, random);
}

// --- assembly ---

typedef struct assembly {
    nb_graph_resource resources[MODEL_RESOURCES_MAX];
    nb_graph_pass passes[MODEL_PASSES_MAX];
} assembly;

static nb_graph_resource add_resource(nb_graph *graph, const model *m, const assembly *a, uint32_t index) {
    static const nb_gpu_format formats[2][2] = {{NB_GPU_FORMAT_RGBA8, NB_GPU_FORMAT_RGBA16F},
                                                {NB_GPU_FORMAT_DEPTH32F, NB_GPU_FORMAT_DEPTH32F}};
    const model_resource *r = &m->resources[index];
    nb_gpu_format format = formats[r->is_depth][r->class];
    nb_graph_resource out = {0};
    char name[16];
    snprintf(name, sizeof name, "r%u", index);
    nb_graph_buffer_desc buffer_desc = {name, 256u << r->class};
    nb_graph_image_desc image_desc = {name, format, 64, 64};
    nb_graph_import_desc import_desc = {.name = name,
                                        .is_buffer = r->is_buffer,
                                        .format = format,
                                        .width = 64,
                                        .height = 64,
                                        .before = r->before,
                                        .after = r->after};
    nb_result result = NB_OK;
    if (r->predecessor != MODEL_NONE)
        result = nb_graph_renew(graph, a->resources[r->predecessor], name, &out);
    else if (r->is_imported)
        result = nb_graph_import(graph, &import_desc, &out);
    else
        result = r->is_buffer ? nb_graph_buffer_add(graph, &buffer_desc, &out)
                              : nb_graph_image_add(graph, &image_desc, &out);
    assert_int_equal(result, NB_OK);
    return out;
}

static void add_uses(nb_graph *graph, const model *m, const assembly *a, uint32_t pass) {
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        nb_gpu_access access = m->access[pass][r], first_bit = access & (0u - access);
        if (access == 0) continue;
        // In two calls where there are two bits: they add up.
        assert_int_equal(nb_graph_use(graph, a->passes[pass], a->resources[r], first_bit), NB_OK);
        assert_int_equal(nb_graph_use(graph, a->passes[pass], a->resources[r], access), NB_OK);
        nb_gpu_clear value = {{1}};
        if (m->is_cleared[pass][r])
            assert_int_equal(nb_graph_clear(graph, a->passes[pass], a->resources[r], value), NB_OK);
    }
}

static void assemble(nb_graph *graph, const model *m, assembly *a) {
    assert_int_equal(nb_graph_begin(graph), NB_OK);
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        a->resources[r] = add_resource(graph, m, a, r);
        if (m->resources[r].is_kept) assert_int_equal(nb_graph_keep(graph, a->resources[r]), NB_OK);
    }
    for (uint32_t p = 0; p < m->pass_count; ++p) {
        char name[16];
        snprintf(name, sizeof name, "p%u", p);
        nb_graph_pass_desc desc = {.name = name, .kind = NB_GPU_PASS_RENDER, .is_kept = m->is_kept[p]};
        assert_int_equal(nb_graph_pass_add(graph, &desc, &a->passes[p]), NB_OK);
    }
    for (uint32_t p = m->pass_count; p-- > 0;) add_uses(graph, m, a, p);
    for (uint32_t later = 0; later < m->pass_count; ++later) {
        for (uint32_t p = 0; p < m->pass_count; ++p) {
            if (m->is_behind[later][p]) assert_int_equal(nb_graph_after(graph, a->passes[later], a->passes[p]), NB_OK);
        }
    }
}

// --- running a plan ---

// One piece of memory: a slot, or an import.
typedef struct memory {
    uint32_t owner;      // root of who has it; MODEL_NONE: nobody yet
    nb_gpu_access state; // what it is ready for
    nb_gpu_access done;  // what was done since
    bool is_moved;       // there was a transition in this frame
    bool is_used;        // by its owner
    uint64_t contents;
} memory;

typedef struct machine {
    model *m;
    const nb_graph_plan *plan;
    memory slots[MODEL_RESOURCES_MAX], imports[MODEL_RESOURCES_MAX];
} machine;

static memory *memory_of(machine *x, uint32_t resource) {
    const nb_graph_plan_resource *r = &x->plan->resources[resource];
    assert_int_equal(r->root, model_root(x->m, resource));
    if (r->is_imported) return &x->imports[r->root];
    assert_true(r->slot < x->plan->slot_count);
    return &x->slots[r->slot];
}

#define WRITES (COLOR | DEPTH | STORAGE | COPY_TO)

static bool is_one_layout(nb_gpu_access access) {
    switch (access) {
    case DEPTH | DEPTH_READ:
    case DEPTH_READ | SAMPLED:
    case STORAGE | STORAGE_READ: return true;
    default: return (access & (access - 1)) == 0;
    }
}

static void run_transition(machine *x, const nb_graph_transition *t, bool is_at_end) {
    memory *at = memory_of(x, t->resource);
    uint32_t root = model_root(x->m, t->resource);
    bool is_buffer = x->m->resources[t->resource].is_buffer;
    assert_int_equal(t->before, at->state);
    assert_int_not_equal(t->after, 0);
    assert_true(is_buffer || is_one_layout(t->after));
    // The last one was for what was done, all of it.
    if (at->is_moved) assert_int_equal(at->done, at->state);
    // Another's contents, or none, are not kept.
    if (at->owner != root || at->state == 0) assert_true(t->is_discarded);
    // Between those who only read there is one only where nothing else helps. What was before the frame and what is
    // after it is of others, who know of nothing but what was said.
    bool is_between_reads = !t->is_discarded && ((t->before | t->after) & WRITES) == 0;
    if (is_between_reads && at->is_moved && !is_at_end) assert_false(is_buffer || is_one_layout(t->before | t->after));
    if (is_between_reads) assert_true(t->after != t->before);
    at->is_used = at->is_used && at->owner == root;
    at->owner = root;
    at->state = t->after;
    at->done = 0;
    at->is_moved = true;
    if (t->is_discarded) at->contents = MODEL_EMPTY;
}

static void check_attachment(const machine *x, const nb_graph_step *step, uint32_t resource, const memory *at) {
    nb_gpu_access access = x->m->access[step->pass][resource];
    if ((access & (COLOR | DEPTH | DEPTH_READ)) == 0) return;
    const nb_graph_attachment *attachment = (access & COLOR) == 0 ? &step->depth : NULL;
    for (uint32_t i = 0; i < step->color_count && (access & COLOR) != 0; ++i) {
        if (step->colors[i].resource == resource) attachment = &step->colors[i];
    }
    assert_non_null(attachment);
    assert_int_equal(attachment->resource, resource);
    assert_int_equal(attachment->access, access);
    bool is_cleared = x->m->is_cleared[step->pass][resource];
    assert_int_equal(attachment->is_cleared, is_cleared);
    assert_int_equal(attachment->is_discarded, !is_cleared && at->contents == MODEL_EMPTY && !at->is_used);
}

static uint64_t run_use(machine *x, const nb_graph_step *step, uint32_t resource) {
    nb_gpu_access access = x->m->access[step->pass][resource];
    memory *at = memory_of(x, resource);
    assert_int_equal(access & ~at->state, 0); // it was waited for, and the layout is right
    if ((access & WRITES) != 0) {
        assert_int_equal(at->state, access); // who writes is alone,
        assert_int_equal(at->done, 0);       // from the transition on
    } else {
        assert_int_equal(at->done & WRITES, 0);
    }
    at->done |= access;
    check_attachment(x, step, resource, at);
    at->is_used = true;
    return x->m->is_cleared[step->pass][resource] ? MODEL_CLEARED : at->contents;
}

static void run_step(machine *x, const nb_graph_step *step) {
    uint64_t value = model_mix(7, step->pass);
    for (uint32_t i = 0; i < step->transition_count; ++i)
        run_transition(x, &x->plan->transitions[step->transition_first + i], false);
    for (uint32_t r = 0; r < x->m->resource_count; ++r) {
        if (x->m->access[step->pass][r] != 0) value = model_mix(value, run_use(x, step, r));
    }
    assert_true(value == model_value(x->m, step->pass)); // it found what it should
    for (uint32_t r = 0; r < x->m->resource_count; ++r) {
        if (!model_writes(x->m, step->pass, r)) continue;
        memory *at = memory_of(x, r);
        at->contents = model_mix(x->m->is_cleared[step->pass][r] ? MODEL_CLEARED : at->contents, value);
    }
}

// Nobody who runs writes under a later name.
static bool is_final(const model *m, uint32_t resource) {
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        bool is_later = model_root(m, r) == model_root(m, resource) && model_age(m, r) > model_age(m, resource);
        for (uint32_t p = 0; p < m->pass_count && is_later; ++p) {
            if (m->is_needed[p] && model_writes(m, p, r)) return false;
        }
    }
    return true;
}

static void check_end(machine *x) {
    for (uint32_t i = 0; i < x->plan->final_count; ++i)
        run_transition(x, &x->plan->transitions[x->plan->final_first + i], true);
    for (uint32_t r = 0; r < x->m->resource_count; ++r) {
        const model_resource *resource = &x->m->resources[r];
        bool is_there = x->plan->resources[r].is_used || resource->is_imported;
        if (resource->is_imported && resource->after != 0) assert_int_equal(memory_of(x, r)->state, resource->after);
        if (is_there && model_is_wanted(x->m, r) && is_final(x->m, r))
            assert_true(memory_of(x, r)->contents == model_contents(x->m, (moment){r, MODEL_LAST}));
    }
    for (uint32_t i = 0; i < x->plan->slot_count; ++i)
        assert_int_equal(x->plan->slots[i].access_last, x->slots[i].state);
}

static void run_plan(model *m, const nb_graph_plan *plan) {
    machine x = {.m = m, .plan = plan};
    for (uint32_t r = 0; r < MODEL_RESOURCES_MAX; ++r)
        x.slots[r] = (memory){.owner = MODEL_NONE, .contents = MODEL_EMPTY};
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        x.imports[r] = (memory){.owner = r, .state = m->resources[r].before, .contents = model_first_contents(m, r)};
    }
    uint32_t transition = 0;
    for (uint32_t i = 0; i < plan->step_count; ++i) {
        assert_int_equal(plan->steps[i].transition_first, transition);
        transition += plan->steps[i].transition_count;
        run_step(&x, &plan->steps[i]);
    }
    assert_int_equal(plan->final_first, transition);
    assert_int_equal(plan->transition_count, transition + plan->final_count);
    check_end(&x);
}

// --- the properties ---

static void check_plan(model *m, const nb_graph_plan *plan) {
    assert_int_equal(plan->step_count, m->step_count);
    assert_int_equal(plan->culled_count, m->pass_count - m->step_count);
    for (uint32_t i = 0; i < m->step_count; ++i) assert_int_equal(plan->steps[i].pass, m->order[i]);
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        nb_gpu_access access = 0;
        for (uint32_t p = 0; p < m->pass_count; ++p) access |= m->is_needed[p] ? m->access[p][r] : 0;
        assert_int_equal(plan->resources[r].access, access);
        assert_int_equal(plan->resources[r].is_used, access != 0);
        uint32_t slot = plan->resources[r].slot;
        if (slot == NB_GRAPH_SLOT_NONE) continue;
        assert_int_equal(access & ~plan->slots[slot].access, 0);
        assert_int_equal(plan->slots[slot].format, plan->resources[r].format);
        assert_int_equal(plan->slots[slot].size_bytes, plan->resources[r].size_bytes);
    }
    run_plan(m, plan);
}

static void check_error(const model *m, const nb_graph_error *error, nb_result expected) {
    assert_non_null(error);
    assert_int_equal(error->result, expected);
    assert_int_equal(error->pass[0], 'p');
    uint32_t pass_index = (uint32_t)strtoul(error->pass + 1, NULL, 10);
    assert_true(pass_index < m->pass_count && m->is_needed[pass_index]);
    if (expected == NB_ERR_DEADLOCK) assert_true(model_is_in_circle(m, pass_index));
}

typedef struct text {
    char bytes[16384];
    size_t size;
} text;

static void write_text(void *user, const char *bytes, size_t size_bytes) {
    text *t = user;
    assert_true(t->size + size_bytes <= sizeof t->bytes);
    memcpy(t->bytes + t->size, bytes, size_bytes);
    t->size += size_bytes;
}

static void check_again(nb_graph *graph, nb_graph *other, const model *m) {
    static text one, two;
    assembly a;
    one.size = two.size = 0;
    assert_int_equal(nb_graph_print(graph, write_text, &one), NB_OK);
    assemble(other, m, &a);
    assert_int_equal(nb_graph_compile(other, NULL), NB_OK);
    assert_int_equal(nb_graph_print(other, write_text, &two), NB_OK);
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.bytes, two.bytes, one.size);
}

TEST(random_graphs_are_planned_as_the_rules_say) {
    static model m;
    uint64_t seed = test_seed("random_graphs_are_planned_as_the_rules_say"), count = test_size(10000, 50000, 1000000);
    uint64_t good_count = 0, circle_count = 0, unwritten_count = 0, shared_count = 0, step_count = 0;
    test_log log = {0};
    nb_graph_desc desc = {.hooks = test_hooks(&log, NULL)};
    nb_graph *graph = NULL, *other = NULL;
    assert_int_equal(nb_graph_create(&desc, &graph), NB_OK);
    assert_int_equal(nb_graph_create(&desc, &other), NB_OK);
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t random = seed + i;
        assembly a;
        const nb_graph_plan *plan = NULL;
        random_model(&m, &random);
        model_solve(&m);
        assemble(graph, &m, &a);
        nb_result expected = m.is_unwritten ? NB_ERR_MISUSE : m.is_circle ? NB_ERR_DEADLOCK : NB_OK;
        nb_result result = nb_graph_compile(graph, &plan);
        if (result != expected) print_error("graph %llu of the seed: %s\n", (unsigned long long)i, log.last_message);
        assert_int_equal(result, expected);
        if (result != NB_OK) check_error(&m, nb_graph_error_get(graph), expected);
        circle_count += result == NB_ERR_DEADLOCK, unwritten_count += result == NB_ERR_MISUSE;
        for (uint32_t p = 0; p < m.pass_count; ++p) {
            for (uint32_t r = 0; r < m.resource_count; ++r)
                assert_int_equal(nb_graph_declared(graph, p, a.resources[r]), m.access[p][r]);
        }
        if (result != NB_OK) continue;
        check_plan(&m, plan);
        if (i % 8 == 0) check_again(graph, other, &m);
        ++good_count, step_count += plan->step_count;
        uint32_t memory_count = 0;
        for (uint32_t r = 0; r < m.resource_count; ++r)
            memory_count += plan->resources[r].slot != NB_GRAPH_SLOT_NONE && plan->resources[r].root == r;
        shared_count += memory_count > plan->slot_count;
    }
    // The graphs are worth looking at.
    print_message("%llu good of %llu steps, %llu circles, %llu unwritten, %llu share memory\n",
                  (unsigned long long)good_count, (unsigned long long)step_count, (unsigned long long)circle_count,
                  (unsigned long long)unwritten_count, (unsigned long long)shared_count);
    assert_true(good_count > count / 3 && step_count > 3 * good_count && circle_count > count / 200);
    assert_true(unwritten_count > count / 200 && shared_count > count / 50);
    nb_graph_destroy(graph);
    nb_graph_destroy(other);
}
