// SPDX-License-Identifier: MIT
// The program's own variables: kept before each tick, compared where a tick ends otherwise, and put back in a copy of
// the process. In the game's own they are only read: an old value in a variable that another thread or an allocator
// uses could end it.

#include "../state/compare.h"
#include "../state/state.h"
#include "synctest.h"

#include <stdio.h>
#include <string.h>

// Registered memory from this size on is left out of the copies; smaller pieces cost less than their gaps.
#define HOLE_BYTES_MIN ((size_t)4096)

// Of one copy, and there are as many as ticks to go back: a game's variables are tens to hundreds of KiB.
#define PROGRAM_BYTES_MAX ((size_t)16 << 20)

// Variables that are named: each takes a walk through the symbols.
#define NAMED_COUNT_MAX 8u

#define WORD_BYTES sizeof(uint64_t)

// --- which memory ---

// Takes a registered piece out of the run it lies in, and what is behind it becomes one more.
static void cut_hole(nbi_sync_program *program, const unsigned char *begin, size_t size_bytes) {
    for (uint32_t i = 0; i < program->run_count; ++i) {
        nbi_program_run *run = &program->runs[i];
        if (begin < run->begin || begin >= run->begin + run->size_bytes) continue;
        size_t at = (size_t)(begin - run->begin), end = at + size_bytes;
        size_t before = (at + WORD_BYTES - 1) / WORD_BYTES * WORD_BYTES, behind = end / WORD_BYTES * WORD_BYTES;
        bool has_rest = behind < run->size_bytes && program->run_count < NBI_SYNC_RUN_MAX;
        if (has_rest) {
            nbi_program_run rest = {run->begin + behind, run->size_bytes - behind};
            program->runs[program->run_count++] = rest;
        }
        run->size_bytes = before;
        return;
    }
}

static void list_runs(nbi_synctest *self) {
    nbi_sync_program *program = &self->program;
    const nb_states *states = self->engine->states;
    const char *name = NULL;
    const nb_provider_desc *desc = NULL;
    program->run_count = nbi_program_runs(program->runs, NBI_SYNC_RUN_MAX);
    for (uint32_t i = 0; (desc = nbi_states_desc_at(states, i, &name)) != NULL; ++i) {
        if (desc->data != NULL && desc->size_bytes >= HOLE_BYTES_MIN) cut_hole(program, desc->data, desc->size_bytes);
    }
    size_t left = PROGRAM_BYTES_MAX;
    for (uint32_t i = 0; i < program->run_count; ++i) {
        nbi_program_run *run = &program->runs[i];
        run->size_bytes = (size_t)nbi_min_u64(run->size_bytes, left);
        left -= run->size_bytes;
    }
    program->size_bytes = PROGRAM_BYTES_MAX - left;
}

// A copy: the runs, so that two of the same memory can be told, then their bytes.
#define HEAD_BYTES sizeof((nbi_sync_program *)NULL)->runs

void nbi_sync_program_keep(nbi_synctest *self, nbi_copy *copy) {
    nbi_sync_program *program = &self->program;
    copy->size_bytes = 0;
    if (!nbi_platform_has(NBI_ABILITY_PROGRAM_MEMORY)) return;
    memset(program->runs, 0, sizeof program->runs);
    list_runs(self);
    if (!nbi_copy_reserve(self, copy, HEAD_BYTES + program->size_bytes)) return;
    memcpy(copy->bytes, program->runs, HEAD_BYTES);
    copy->size_bytes = HEAD_BYTES;
    for (uint32_t i = 0; i < program->run_count; ++i) {
        const nbi_program_run *run = &program->runs[i];
        nbi_program_read(copy->bytes + copy->size_bytes, run->begin, run->size_bytes);
        copy->size_bytes += run->size_bytes;
    }
}

// --- what differs ---

// A byte of a run that may be behind the divergence: where it is, what it was, what it is now.
typedef struct spot {
    const unsigned char *address;
    const unsigned char *before, *now; // in the copies
} spot;

typedef void (*spot_visit)(nbi_synctest *self, spot at, void *user);

// Of one run.
typedef struct copies {
    const unsigned char *first, *now, *then;
    nbi_program_run run;
} copies;

// Where tries end otherwise each time, what changes with each of them is a suspect. Where all end alike it is not, and
// what has been different since the first run is.
static void visit_run(nbi_synctest *self, const copies *of, spot_visit visit, void *user) {
    bool is_steady = self->program.is_steady;
    for (size_t at = 0; at < of->run.size_bytes; at += WORD_BYTES) {
        bool is_new = memcmp(of->first + at, of->now + at, WORD_BYTES) != 0;
        bool is_moving = memcmp(of->then + at, of->now + at, WORD_BYTES) != 0;
        if (is_steady ? !is_new || is_moving : !is_moving) continue;
        const unsigned char *before = is_steady ? of->first : of->then;
        for (size_t i = at; i < at + WORD_BYTES; ++i) {
            if (before[i] != of->now[i]) visit(self, (spot){of->run.begin + i, before + i, of->now + i}, user);
        }
    }
}

static void visit_all(nbi_synctest *self, spot_visit visit, void *user) {
    const nbi_copy *then = &self->program.tries[0], *now = &self->program.tries[1];
    size_t at = HEAD_BYTES;
    copies of;
    for (uint32_t i = 0; at < now->size_bytes; ++i, at += of.run.size_bytes) {
        of = (copies){self->program.first->bytes + at, now->bytes + at, then->bytes + at, {NULL, 0}};
        memcpy(&of.run, now->bytes + i * sizeof of.run, sizeof of.run);
        visit_run(self, &of, visit, user);
    }
}

static bool is_registered(const nb_states *states, const unsigned char *address) {
    const char *name = NULL;
    const nb_provider_desc *desc = NULL;
    for (uint32_t i = 0; (desc = nbi_states_desc_at(states, i, &name)) != NULL; ++i) {
        const unsigned char *data = desc->data;
        if (data != NULL && address >= data && (size_t)(address - data) < desc->size_bytes) return true;
    }
    return false;
}

// Bytes less than a word apart are of one place.
static void add_spot(nbi_synctest *self, spot at, void *user) {
    nbi_sync_program *program = &self->program;
    (void)user;
    if (is_registered(self->engine->states, at.address)) return;
    nbi_sync_range *last = program->range_count != 0 ? &program->last : NULL;
    if (last != NULL && at.address < last->address + last->size_bytes + WORD_BYTES) {
        last->size_bytes = (size_t)(at.address - last->address) + 1;
    } else {
        program->last = (nbi_sync_range){at.address, at.before, at.now, 1};
        program->range_count += 1;
    }
    if (program->range_count <= NBI_SYNC_RANGE_MAX) program->ranges[program->range_count - 1] = program->last;
}

uint32_t nbi_sync_program_search(nbi_synctest *self, const nbi_copy *first, bool is_steady) {
    nbi_sync_program *program = &self->program;
    const nbi_copy *then = &program->tries[0], *now = &program->tries[1];
    program->is_steady = is_steady;
    program->range_count = 0;
    program->first = first;
    bool is_there = first->size_bytes > HEAD_BYTES && first->size_bytes == now->size_bytes &&
                    now->size_bytes == then->size_bytes && memcmp(first->bytes, now->bytes, HEAD_BYTES) == 0 &&
                    memcmp(then->bytes, now->bytes, HEAD_BYTES) == 0;
    if (!is_there) return 0;
    self->report.program_bytes = now->size_bytes - HEAD_BYTES;
    visit_all(self, add_spot, NULL);
    return program->range_count;
}

// --- putting back ---

static void put_spot(nbi_synctest *self, spot at, void *user) {
    (void)user;
    if (!is_registered(self->engine->states, at.address)) *(unsigned char *)(uintptr_t)at.address = *at.before;
}

void nbi_sync_program_put(nbi_synctest *self, uint32_t index) {
    if (index == NBI_SYNC_ALL) {
        visit_all(self, put_spot, NULL);
        return;
    }
    const nbi_sync_range *at = &self->program.ranges[index];
    for (size_t i = 0; i < at->size_bytes; ++i) put_spot(self, (spot){at->address + i, at->before + i, NULL}, NULL);
}

// --- saying it ---

// A variable of the size of a number reads as one, others as bytes in their order, as in nb_difference.
static void describe_value(nbi_line *out, const unsigned char *bytes, size_t size_bytes, bool is_number) {
    if (is_number) nbi_line_add(out, "0x");
    for (size_t i = 0; i < size_bytes && i < WORD_BYTES; ++i)
        nbi_line_add(out, "%02x", bytes[is_number ? size_bytes - 1 - i : i]);
}

// The part of a place that is one variable. Returns its size.
static size_t describe_part(nbi_line *out, const nbi_sync_range *at, char *culprit, size_t culprit_bytes) {
    nbi_program_symbol symbol = {.size_bytes = 0};
    char name[96];
    size_t size_bytes = at->size_bytes, value_bytes, begin = 0;
    if (nbi_program_name(at->address, &symbol)) {
        size_t offset = (size_t)(at->address - symbol.begin);
        size_bytes = (size_t)nbi_min_u64(size_bytes, symbol.size_bytes - offset);
        bool is_inside = offset != 0 && symbol.size_bytes > WORD_BYTES;
        snprintf(name, sizeof name, is_inside ? "%s+0x%zx" : "%s", symbol.name, offset);
    } else {
        snprintf(name, sizeof name, "at 0x%zx, without a symbol", nbi_program_offset(at->address));
    }
    if (culprit[0] == '\0') snprintf(culprit, culprit_bytes, "%s", name);
    bool is_number =
        symbol.size_bytes != 0 && symbol.size_bytes <= WORD_BYTES && nbi_is_power_of_two(symbol.size_bytes);
    if (is_number) begin = (size_t)(at->address - symbol.begin);
    value_bytes = is_number ? symbol.size_bytes : size_bytes;
    nbi_line_add(out, "%s%s (", out->used_bytes != 0 ? ", " : "", name);
    describe_value(out, at->before - begin, value_bytes, is_number);
    nbi_line_add(out, " before, ");
    describe_value(out, at->now - begin, value_bytes, is_number);
    nbi_line_add(out, " now)");
    return size_bytes;
}

// Returns how many variables it has.
static uint32_t describe_range(nbi_synctest *self, nbi_line *out, nbi_sync_range rest, uint32_t count_max) {
    nb_synctest_report *report = &self->report;
    uint32_t count = 0;
    for (; rest.size_bytes != 0 && count < count_max; ++count) {
        size_t size_bytes = describe_part(out, &rest, report->culprit, sizeof report->culprit);
        rest.address += size_bytes, rest.before += size_bytes, rest.now += size_bytes;
        rest.size_bytes -= size_bytes;
        // Behind a variable's end the next one begins where it differs.
        while (rest.size_bytes != 0 && *rest.before == *rest.now)
            ++rest.address, ++rest.before, ++rest.now, --rest.size_bytes;
    }
    return count;
}

void nbi_sync_program_describe(nbi_synctest *self, uint32_t index) {
    nbi_sync_program *program = &self->program;
    nbi_line out = {.text = program->text, .size_bytes = sizeof program->text};
    bool is_all = index == NBI_SYNC_ALL;
    uint32_t i = is_all ? 0 : index, end = is_all ? program->range_count : index + 1, named_count = 0;
    program->text[0] = '\0';
    for (; i < end && i < NBI_SYNC_RANGE_MAX && named_count < NAMED_COUNT_MAX; ++i)
        named_count += describe_range(self, &out, program->ranges[i], NAMED_COUNT_MAX - named_count);
    self->report.variable_count = named_count + (end - i);
    if (end > i) nbi_line_add(&out, ", and %u more places", (unsigned)(end - i));
}
