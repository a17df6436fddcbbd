// SPDX-License-Identifier: MIT
#pragma once

// A frame graph as the rules say it, without any thought of speed: which passes run, in which order, and what each of
// them finds in memory. Shares nothing with the library.

#include "gpu/graph/graph_fixture.h"

#define MODEL_PASSES_MAX 40u
#define MODEL_RESOURCES_MAX 24u
#define MODEL_NONE UINT32_MAX
#define MODEL_EMPTY UINT64_C(1)   // contents that nobody has made
#define MODEL_CLEARED UINT64_C(2) // contents right after a clear
// The place behind all who write a version.
#define MODEL_LAST UINT32_MAX

typedef struct model_resource {
    bool is_buffer, is_depth, is_imported, is_kept;
    uint32_t class; // of what is alike
    nb_gpu_access before, after;
    uint32_t predecessor; // MODEL_NONE: none
} model_resource;

typedef struct model {
    uint32_t pass_count, resource_count;
    bool is_kept[MODEL_PASSES_MAX];
    nb_gpu_access access[MODEL_PASSES_MAX][MODEL_RESOURCES_MAX]; // 0: not used
    bool is_cleared[MODEL_PASSES_MAX][MODEL_RESOURCES_MAX];
    bool is_behind[MODEL_PASSES_MAX][MODEL_PASSES_MAX]; // [later][earlier], by nb_graph_after
    model_resource resources[MODEL_RESOURCES_MAX];
    // What the rules give.
    bool is_needed[MODEL_PASSES_MAX];
    bool waits[MODEL_PASSES_MAX][MODEL_PASSES_MAX]; // [later][earlier], of those that run
    uint32_t order[MODEL_PASSES_MAX], step_count;
    bool is_unwritten, is_circle;
    uint64_t values[MODEL_PASSES_MAX]; // what a pass makes of all it finds; 0: not asked yet
} model;

static inline bool model_writes(const model *m, uint32_t pass, uint32_t resource) {
    return (m->access[pass][resource] & (COLOR | DEPTH | STORAGE | COPY_TO)) != 0;
}

static inline uint32_t model_root(const model *m, uint32_t resource) {
    while (m->resources[resource].predecessor != MODEL_NONE) resource = m->resources[resource].predecessor;
    return resource;
}

// How often it was renewed.
static inline uint32_t model_age(const model *m, uint32_t resource) {
    uint32_t age = 0;
    for (; m->resources[resource].predecessor != MODEL_NONE; ++age) resource = m->resources[resource].predecessor;
    return age;
}

static inline bool model_is_newest(const model *m, uint32_t resource) {
    for (uint32_t i = 0; i < m->resource_count; ++i) {
        if (m->resources[i].predecessor == resource) return false;
    }
    return true;
}

static inline bool model_is_wanted(const model *m, uint32_t resource) {
    const model_resource *r = &m->resources[resource];
    return r->is_kept || (r->is_imported && r->after != 0 && model_is_newest(m, resource));
}

// A moment in the life of memory: the write of a pass under one name, or after all of them.
typedef struct moment {
    uint32_t resource, pass; // MODEL_LAST: behind all
} moment;

static inline bool model_is_earlier(const model *m, moment a, moment b) {
    uint32_t age_a = model_age(m, a.resource), age_b = model_age(m, b.resource);
    return age_a < age_b || (age_a == age_b && a.pass < b.pass);
}

// The newest write before a moment; its resource is MODEL_NONE where there is none.
static inline moment model_write_before(const model *m, moment at) {
    moment found = {MODEL_NONE, 0};
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        if (model_root(m, r) != model_root(m, at.resource)) continue;
        for (uint32_t p = 0; p < m->pass_count; ++p) {
            moment here = {r, p};
            if (!model_writes(m, p, r) || !model_is_earlier(m, here, at)) continue;
            if (found.resource == MODEL_NONE || model_is_earlier(m, found, here)) found = here;
        }
    }
    return found;
}

static inline moment model_moment_of(const model *m, uint32_t pass, uint32_t resource) {
    return (moment){resource, model_writes(m, pass, resource) ? pass : MODEL_LAST};
}

// --- which passes run ---

static inline bool model_need_before(model *m, moment at) {
    bool is_changed = false;
    for (at = model_write_before(m, at); at.resource != MODEL_NONE; at = model_write_before(m, at)) {
        is_changed = is_changed || !m->is_needed[at.pass];
        m->is_needed[at.pass] = true;
        if (m->is_cleared[at.pass][at.resource]) break;
    }
    return is_changed;
}

static inline void model_cull(model *m) {
    for (uint32_t p = 0; p < m->pass_count; ++p) m->is_needed[p] = m->is_kept[p];
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        if (model_is_wanted(m, r)) model_need_before(m, (moment){r, MODEL_LAST});
    }
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (uint32_t p = 0; p < m->pass_count; ++p) {
            for (uint32_t r = 0; r < m->resource_count && m->is_needed[p]; ++r) {
                if (m->access[p][r] == 0 || m->is_cleared[p][r]) continue;
                if (model_need_before(m, model_moment_of(m, p, r))) is_changed = true;
            }
        }
    }
}

// --- order ---

static inline bool model_must_wait(const model *m, uint32_t later, uint32_t earlier) {
    if (m->is_behind[later][earlier]) return true;
    for (uint32_t a = 0; a < m->resource_count; ++a) {
        for (uint32_t b = 0; b < m->resource_count; ++b) {
            if (m->access[earlier][a] == 0 || m->access[later][b] == 0 || model_root(m, a) != model_root(m, b))
                continue;
            if (model_age(m, a) < model_age(m, b)) return true;
            if (a != b || !model_writes(m, earlier, a)) continue;
            if (!model_writes(m, later, a) || earlier < later) return earlier != later;
        }
    }
    return false;
}

static inline bool model_is_free(const model *m, uint32_t pass, const bool *is_done) {
    for (uint32_t p = 0; p < m->pass_count; ++p) {
        if (m->waits[pass][p] && !is_done[p]) return false;
    }
    return true;
}

static inline void model_sort(model *m) {
    bool is_done[MODEL_PASSES_MAX] = {false};
    uint32_t needed_count = 0;
    for (uint32_t a = 0; a < m->pass_count; ++a) {
        needed_count += m->is_needed[a];
        for (uint32_t b = 0; b < m->pass_count; ++b)
            m->waits[a][b] = m->is_needed[a] && m->is_needed[b] && model_must_wait(m, a, b);
    }
    m->step_count = 0;
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        for (uint32_t p = 0; p < m->pass_count && !is_changed; ++p) {
            if (!m->is_needed[p] || is_done[p] || !model_is_free(m, p, is_done)) continue;
            is_done[p] = is_changed = true;
            m->order[m->step_count++] = p;
        }
    }
    m->is_circle = m->step_count != needed_count;
}

static inline bool model_is_in_circle(const model *m, uint32_t pass) {
    bool is_reached[MODEL_PASSES_MAX] = {false};
    is_reached[pass] = true;
    for (uint32_t round = 0; round < m->pass_count; ++round) {
        for (uint32_t a = 0; a < m->pass_count; ++a) {
            for (uint32_t b = 0; b < m->pass_count; ++b) {
                if (!m->waits[a][b] || !is_reached[b]) continue;
                if (a == pass) return true;
                is_reached[a] = true;
            }
        }
    }
    return false;
}

static inline void model_find_unwritten(model *m) {
    m->is_unwritten = false;
    for (uint32_t p = 0; p < m->pass_count; ++p) {
        for (uint32_t r = 0; r < m->resource_count; ++r) {
            bool reads = m->is_needed[p] && m->access[p][r] != 0 && !model_writes(m, p, r);
            if (!reads || m->resources[r].is_imported) continue;
            if (model_write_before(m, (moment){r, MODEL_LAST}).resource == MODEL_NONE) m->is_unwritten = true;
        }
    }
}

static inline void model_solve(model *m) {
    model_cull(m);
    model_find_unwritten(m);
    model_sort(m);
    memset(m->values, 0, sizeof m->values);
}

// --- what is found ---

static inline uint64_t model_mix(uint64_t a, uint64_t b) {
    uint64_t state = a * 31 + b;
    return test_random(&state) | 4; // neither empty nor cleared
}

static inline uint64_t model_first_contents(const model *m, uint32_t resource) {
    const model_resource *root = &m->resources[model_root(m, resource)];
    return root->is_imported && root->before != 0 ? model_mix(99, model_root(m, resource)) : MODEL_EMPTY;
}

static inline uint64_t model_contents(model *m, moment at);

// What a pass makes: of its number and of all it finds.
static inline uint64_t model_value(model *m, uint32_t pass) {
    if (m->values[pass] != 0) return m->values[pass];
    uint64_t value = model_mix(7, pass);
    for (uint32_t r = 0; r < m->resource_count; ++r) {
        if (m->access[pass][r] == 0) continue;
        uint64_t found = m->is_cleared[pass][r] ? MODEL_CLEARED : model_contents(m, model_moment_of(m, pass, r));
        value = model_mix(value, found);
    }
    return m->values[pass] = value;
}

// Only where there is no circle.
static inline uint64_t model_contents(model *m, moment at) {
    moment write = model_write_before(m, at);
    if (write.resource == MODEL_NONE) return model_first_contents(m, at.resource);
    bool is_cleared = m->is_cleared[write.pass][write.resource];
    uint64_t before = is_cleared ? MODEL_CLEARED : model_contents(m, write);
    return model_mix(before, model_value(m, write.pass));
}
