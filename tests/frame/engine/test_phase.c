// SPDX-License-Identifier: MIT
// The table of phases: complete, consistent, and what docs/frame.md says.

#include "support/support.h"

#include "nebula/phase.h"

// --- docs/frame.md ---

typedef struct document {
    char text[16384];
    size_t used;
} document;

static void NB_PRINTF(2, 3) add(document *d, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(d->text + d->used, sizeof d->text - d->used, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && d->used + (size_t)length < sizeof d->text);
    d->used += (size_t)length;
}

static const char *const layer_names[] = {"simulated", "game", "frame", "engine"};
static const char *const capability_names[] = {"advance", "publish", "submit", "mutate-engine"};

static void add_bits(document *d, uint32_t bits, const char *const *names) {
    bool is_first = true;
    for (uint32_t i = 0; i < 4; ++i) {
        if ((bits & 1u << i) == 0) continue;
        add(d, "%s%s", is_first ? "" : ", ", names[i]);
        is_first = false;
    }
    if (is_first) add(d, "–");
}

static void add_row(document *d, const nb_phase_info *info) {
    static const char *const threads[] = {"", "coordinator", "all", "its own"};
    add(d, "| %d | %s | %c | %s | %s | ", (int)info->phase, info->name, nb_phase_category_letter(info->category),
        info->summary, threads[info->threads]);
    add_bits(d, info->mutates, layer_names);
    add(d, " | ");
    add_bits(d, info->conditional, layer_names);
    add(d, " | ");
    add_bits(d, info->capabilities, capability_names);
    if (info->barrier == NB_BARRIER_NONE)
        add(d, " | – |\n");
    else
        add(d, " | B%d %s |\n", (int)info->barrier, nb_barrier_name(info->barrier));
}

static void add_boxes(document *d) {
    for (uint32_t i = 1; i < NB_PHASE_DETACHED_SERVICES; ++i) {
        const nb_phase_info *info = nb_phase_info_get((nb_phase)i);
        bool is_parallel = info->category == NB_CATEGORY_PARALLEL;
        add(d, "    %s %-21s %s%s\n", is_parallel ? "[= " : "[  ", info->name, is_parallel ? "=]" : " ]",
            info->is_rendering ? "  (not on a server)" : "");
        if (info->barrier != NB_BARRIER_NONE)
            add(d, "    ----- B%d %s\n", (int)info->barrier, nb_barrier_name(info->barrier));
    }
}

static void write_document(document *d) {
    add(d, "# One frame\n\nPrinted from the table in `src/frame/engine/phase.c` by `tests/frame/engine/test_phase.c`, "
           "which fails "
           "where this "
           "page says something else.\n`src/frame/frame.c` has the same boxes in the same order; `[= =]` runs on all "
           "threads, a line is a barrier.\n\n");
    add_boxes(d);
    add(d, "\nA: one handler after the other on the coordinator, which may hand out tasks and wait for them inside the "
           "phase.\nB: jobs on all threads over a snapshot, each with outputs of its own. C: work of many frames. D: "
           "beside the frame.\nWhat a handler may change \"with\" needs its module's capability. A tick handler is one "
           "of FixedSim; only those change what is simulated.\n\n");
    add(d, "| | phase | | what happens | threads | changes | with | capabilities | closes |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) add_row(d, nb_phase_info_get((nb_phase)i));
}

static FILE *open_page(const char *mode) {
    char path[1024];
    const char *end = strrchr(__FILE__, '/');
    int length = end != NULL ? (int)(end - __FILE__) : 0;
    snprintf(path, sizeof path, "%.*s/../../../docs/frame.md", length, __FILE__);
    FILE *file = fopen(path, mode);
    if (file == NULL) fail_msg("cannot open %s", path);
    return file;
}

TEST(page_is_what_the_table_says) {
    static document expected, found;
    write_document(&expected);
    if (getenv("NB_WRITE_DOCS") != NULL) {
        FILE *out = open_page("w");
        assert_int_equal(fwrite(expected.text, 1, expected.used, out), expected.used);
        fclose(out);
    }
    FILE *in = open_page("r");
    found.used = fread(found.text, 1, sizeof found.text - 1, in);
    fclose(in);
    if (strcmp(found.text, expected.text) != 0) fail_msg("docs/frame.md is old: run this with NB_WRITE_DOCS=1");
}

// --- the table ---

TEST(every_phase_has_its_row) {
    assert_int_equal(NB_PHASE_COUNT, 19); // 18 and none
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        const nb_phase_info *info = nb_phase_info_get((nb_phase)i);
        assert_int_equal(info->phase, i);
        assert_true(info->name[0] != '\0' && info->summary[0] != '\0');
        assert_true(info->category > NB_CATEGORY_NONE && info->category < NB_CATEGORY_COUNT);
        assert_true(info->threads > NB_THREADS_NONE && info->threads < NB_THREADS_COUNT);
        for (uint32_t j = 1; j < i; ++j) assert_string_not_equal(info->name, nb_phase_info_get((nb_phase)j)->name);
    }
    assert_int_equal(nb_phase_info_get((nb_phase)-1)->phase, NB_PHASE_NONE);
    assert_int_equal(nb_phase_info_get(NB_PHASE_COUNT)->phase, NB_PHASE_NONE);
}

TEST(each_barrier_is_the_end_of_one_phase) {
    static const nb_phase closers[NB_BARRIER_COUNT] = {
        NB_PHASE_INPUT,    NB_PHASE_RANDOM_SEED,    NB_PHASE_FIXED_SIM,      NB_PHASE_SCENE_MUTATION,
        NB_PHASE_SNAPSHOT, NB_PHASE_PARALLEL_TASKS, NB_PHASE_COMMAND_RECORD, NB_PHASE_ASYNC_POLL};
    for (int32_t barrier = 0; barrier < NB_BARRIER_COUNT; ++barrier) {
        assert_int_equal(nb_barrier_phase(barrier), closers[barrier]);
        assert_true(nb_barrier_name(barrier)[0] != '\0');
        uint32_t count = 0;
        for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
            count += nb_phase_info_get((nb_phase)i)->barrier == barrier ? 1 : 0;
        }
        assert_int_equal(count, 1);
    }
    assert_int_equal(nb_barrier_phase(NB_BARRIER_NONE), NB_PHASE_NONE);
    assert_int_equal(nb_barrier_phase(NB_BARRIER_COUNT), NB_PHASE_NONE);
    assert_string_equal(nb_barrier_name(NB_BARRIER_NONE), "");
    assert_string_equal(nb_barrier_name(NB_BARRIER_COUNT), "");
}

TEST(rules_of_the_design_hold) {
    for (uint32_t i = 1; i < NB_PHASE_COUNT; ++i) {
        const nb_phase_info *info = nb_phase_info_get((nb_phase)i);
        // Only ticks change what is simulated.
        assert_int_equal((info->mutates & NB_LAYER_SIMULATED) != 0, i == NB_PHASE_FIXED_SIM);
        assert_int_equal(info->conditional & (NB_LAYER_SIMULATED | NB_LAYER_GAME), 0);
        // Parallel and detached code changes no state at all.
        bool is_ordered = info->category == NB_CATEGORY_ORDERED || info->category == NB_CATEGORY_ASYNC;
        if (!is_ordered) assert_int_equal(info->mutates & ~NB_LAYER_FRAME, 0);
        assert_int_equal(info->mutates & info->conditional, 0);
        // What is conditional can be had.
        if (info->conditional != 0) assert_true((info->capabilities & NB_CAPABILITY_MUTATE_ENGINE) != 0);
        for (uint32_t bit = 0; bit < 4; ++bit) {
            uint32_t layer = 1u << bit;
            bool is_free = (info->mutates & layer) != 0, is_bound = (info->conditional & layer) != 0;
            assert_int_equal(nb_phase_may_mutate((nb_phase)i, layer, 0), is_free);
            assert_int_equal(nb_phase_may_mutate((nb_phase)i, layer, NB_CAPABILITY_MUTATE_ENGINE), is_free || is_bound);
            assert_int_equal(nb_phase_may_mutate((nb_phase)i, layer, NB_CAPABILITY_SUBMIT), is_free);
            assert_int_equal(nb_phase_has_capability((nb_phase)i, layer), (info->capabilities & layer) != 0);
        }
        assert_false(nb_phase_may_mutate((nb_phase)i, 0, NB_CAPABILITY_ALL));
        assert_false(nb_phase_may_mutate((nb_phase)i, 15, NB_CAPABILITY_ALL));
        assert_false(nb_phase_has_capability((nb_phase)i, 0));
        assert_false(nb_phase_has_capability((nb_phase)i, 16));
    }
    assert_int_equal(nb_phase_category_letter(NB_CATEGORY_ORDERED), 'A');
    assert_int_equal(nb_phase_category_letter(NB_CATEGORY_DETACHED), 'D');
    assert_int_equal(nb_phase_category_letter(NB_CATEGORY_NONE), '-');
    assert_int_equal(nb_phase_category_letter(NB_CATEGORY_COUNT), '-');
}
