// SPDX-License-Identifier: MIT
// Assembly of a frame graph, which passes run, their order, and what is wrong with them.

#include "gpu/graph/graph_fixture.h"

static graph_fixture f; // of the case that runs

// --- order ---

TEST(writers_run_before_readers_whatever_the_order_of_adding) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), screen = import(&f, "screen", 0, PRESENT);
    nb_graph_pass last = pass(&f, "last"), second = pass(&f, "second"), first = pass(&f, "first");
    use(&f, last, a, SAMPLED);
    use(&f, last, screen, COLOR);
    use(&f, second, a, COLOR);
    use(&f, first, a, COLOR);
    assert_order(&f, "second first last"); // those who write: in the order of adding
    assert_int_equal(f.plan->steps[2].pass, 0);
    assert_int_equal(f.plan->culled_count, 0);
    graph_close(&f);
}

TEST(passes_without_relation_keep_the_order_of_adding) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a");
    nb_graph_pass p[6];
    const char *names[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    for (int i = 0; i < 6; ++i) p[i] = kept_pass(&f, names[i]);
    use(&f, p[1], a, SAMPLED); // waits for the last one, and is the first again then
    use(&f, p[4], a, COLOR);
    assert_order(&f, "p0 p2 p3 p4 p1 p5");
    graph_close(&f);
}

TEST(renewed_memory_waits_for_all_who_use_it_under_the_old_name) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = renew(&f, a, "b"), out = image(&f, "out");
    nb_graph_pass reads_new = kept_pass(&f, "reads_new"), over = pass(&f, "over"),
                  reads_old = kept_pass(&f, "reads_old"), also_old = kept_pass(&f, "also_old"),
                  draws = pass(&f, "draws");
    use(&f, reads_new, b, SAMPLED);
    use(&f, over, b, COLOR);
    use(&f, reads_old, a, SAMPLED);
    use(&f, also_old, a, SAMPLED);
    use(&f, also_old, out, COLOR);
    use(&f, draws, a, COLOR);
    assert_order(&f, "draws reads_old also_old over reads_new");
    graph_close(&f);
}

TEST(renewed_memory_without_writers_still_waits) {
    graph_open(&f);
    // b is used by nobody: what waits for it waits for a.
    nb_graph_resource a = image(&f, "a"), b = renew(&f, a, "b"), c = renew(&f, b, "c");
    use(&f, kept_pass(&f, "reads_c"), c, SAMPLED);
    use(&f, kept_pass(&f, "also_c"), c, COPY_FROM);
    use(&f, kept_pass(&f, "reads_a"), a, SAMPLED);
    use(&f, pass(&f, "draws"), a, COLOR);
    assert_order(&f, "draws reads_a reads_c also_c");
    nb_graph_resource newest;
    assert_int_equal(nb_graph_newest(f.graph, a, &newest), NB_OK);
    assert_true(newest.value == c.value);
    assert_int_equal(nb_graph_newest(f.graph, c, &newest), NB_OK);
    assert_true(newest.value == c.value);
    graph_close(&f);
}

TEST(pass_put_behind_another_runs_behind_it) {
    graph_open(&f);
    nb_graph_pass a = kept_pass(&f, "a"), b = kept_pass(&f, "b"), c = kept_pass(&f, "c"), idle = pass(&f, "idle");
    assert_int_equal(nb_graph_after(f.graph, a, c), NB_OK);
    assert_int_equal(nb_graph_after(f.graph, a, c), NB_OK); // twice is once
    assert_int_equal(nb_graph_after(f.graph, b, a), NB_OK);
    // Those that are left out are so all the same.
    assert_int_equal(nb_graph_after(f.graph, c, idle), NB_OK);
    assert_int_equal(nb_graph_after(f.graph, pass(&f, "late"), c), NB_OK);
    assert_order(&f, "c a b");
    assert_int_equal(f.plan->culled_count, 2);
    graph_close(&f);
}

TEST(pass_that_reads_and_writes_counts_as_writer) {
    graph_open(&f);
    nb_graph_resource b = buffer(&f, "b");
    use(&f, kept_pass(&f, "read"), b, UNIFORM);
    nb_graph_pass both = pass(&f, "both");
    use(&f, both, b, STORAGE_READ);
    use(&f, both, b, STORAGE);
    use(&f, pass(&f, "fill"), b, COPY_TO);
    assert_order(&f, "both fill read");
    assert_int_equal(nb_graph_declared(f.graph, 1, b), STORAGE | STORAGE_READ);
    assert_int_equal(nb_graph_declared(f.graph, 0, b), UNIFORM);
    assert_int_equal(nb_graph_declared(f.graph, 3, b), 0);
    graph_close(&f);
}

// --- which passes run ---

// Two passes, of which the second reads what the first draws.
static void use_a_to_b(nb_graph_resource a, nb_graph_resource b) {
    use(&f, pass(&f, "makes_a"), a, COLOR);
    nb_graph_pass a_to_b = pass(&f, "a_to_b");
    use(&f, a_to_b, a, SAMPLED);
    use(&f, a_to_b, b, COLOR);
}

TEST(passes_that_nobody_needs_are_left_out) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = image(&f, "b"), screen = import(&f, "screen", 0, PRESENT);
    nb_graph_resource old = import(&f, "old", SAMPLED, 0);
    use_a_to_b(a, b);
    use(&f, pass(&f, "shows"), screen, COLOR);
    use(&f, pass(&f, "writes_old"), old, COLOR);
    assert_order(&f, "shows");
    assert_int_equal(f.plan->culled_count, 3);
    assert_false(f.plan->resources[0].is_used);
    assert_int_equal(f.plan->resources[0].slot, NB_GRAPH_SLOT_NONE);
    assert_int_equal(f.plan->slot_count, 0);
    graph_close(&f);
}

TEST(what_is_wanted_brings_all_it_needs) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = image(&f, "b");
    use_a_to_b(a, b);
    use(&f, pass(&f, "reads_b"), b, SAMPLED);
    assert_int_equal(nb_graph_keep(f.graph, b), NB_OK);
    assert_order(&f, "makes_a a_to_b");
    graph_close(&f);
}

TEST(writers_before_a_clear_are_left_out) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a");
    use(&f, pass(&f, "lost"), a, COLOR);
    nb_graph_pass clears = pass(&f, "clears");
    use(&f, clears, a, COLOR);
    clear(&f, clears, a);
    use(&f, pass(&f, "adds"), a, COLOR);
    assert_int_equal(nb_graph_keep(f.graph, a), NB_OK);
    assert_order(&f, "clears adds");
    graph_close(&f);
}

TEST(writer_needs_those_before_it_and_none_behind) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a");
    use(&f, pass(&f, "first"), a, COLOR);
    use(&f, kept_pass(&f, "kept"), a, COLOR);
    use(&f, pass(&f, "behind"), a, COLOR);
    assert_order(&f, "first kept");
    graph_close(&f);
}

TEST(contents_of_renewed_memory_are_needed_unless_cleared) {
    for (int is_cleared = 0; is_cleared < 2; ++is_cleared) {
        graph_open(&f);
        nb_graph_resource screen = import(&f, "screen", 0, PRESENT), again = renew(&f, screen, "again"),
                          third = renew(&f, again, "third");
        nb_graph_pass over = pass(&f, "over"), under = pass(&f, "under");
        use(&f, over, third, COLOR);
        if (is_cleared) clear(&f, over, third);
        use(&f, under, screen, COLOR);
        if (is_cleared)
            assert_order(&f, "over");
        else
            assert_order(&f, "under over");
        graph_close(&f);
    }
}

TEST(long_chains_and_wide_readers_are_followed_once) {
    graph_open(&f);
    // Each of 100 passes reads the last and writes the next; the kept one wants the last. A hundred are not wanted.
    nb_graph_resource before = image(&f, "r0");
    nb_graph_pass p = pass(&f, "p0");
    use(&f, p, before, COLOR);
    for (int i = 1; i < 100; ++i) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        nb_graph_resource next = image(&f, name);
        snprintf(name, sizeof name, "p%d", i);
        p = pass(&f, name);
        use(&f, p, before, SAMPLED);
        use(&f, p, next, COLOR);
        snprintf(name, sizeof name, "idle%d", i);
        use(&f, pass(&f, name), before, SAMPLED);
        before = next;
    }
    assert_int_equal(nb_graph_keep(f.graph, before), NB_OK);
    compile(&f);
    assert_int_equal(f.plan->step_count, 100);
    assert_int_equal(f.plan->culled_count, 99);
    // Only two of them are alive at once, but for the last, which is wanted.
    assert_int_equal(f.plan->slot_count, 2);
    graph_close(&f);
}

// Each reads what the one added behind it draws, and in the end all read what is renewed under them.
TEST(thousands_of_passes_are_turned_round) {
    enum { COUNT = 4000 };
    memset(&f, 0, sizeof f);
    nb_graph_desc desc = {.pass_count_max = COUNT,
                          .resource_count_max = COUNT + 2,
                          .use_count_max = 4 * COUNT,
                          .hooks = test_hooks(&f.log, &f.heap)};
    assert_int_equal(nb_graph_create(&desc, &f.graph), NB_OK);
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_resource shared = import(&f, "shared", SAMPLED, 0), renewed = renew(&f, shared, "renewed"), before = {0};
    for (int i = 0; i < COUNT; ++i) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        nb_graph_pass p = kept_pass(&f, name);
        // Those in the second half run first.
        use(&f, p, i < COUNT / 2 ? renewed : shared, SAMPLED);
        if (i > 0) use(&f, p, before, COLOR);
        before = image(&f, name);
        if (i + 1 < COUNT) use(&f, p, before, SAMPLED);
    }
    compile(&f);
    assert_int_equal(f.plan->step_count, COUNT);
    for (uint32_t i = 0; i < COUNT; ++i) assert_int_equal(f.plan->steps[i].pass, COUNT - 1 - i);
    assert_int_equal(f.plan->slot_count, 2);
    graph_close(&f);
}

// --- mistakes ---

TEST(circle_is_named_from_pass_to_pass) {
    graph_open(&f);
    nb_graph_resource d = depth(&f, "depth"), c = image(&f, "color"), other = image(&f, "other");
    nb_graph_pass in = pass(&f, "in"), a = kept_pass(&f, "a"), b = pass(&f, "b"), out = kept_pass(&f, "out");
    use(&f, in, other, COLOR);
    use(&f, a, other, SAMPLED);
    use(&f, a, d, DEPTH);
    use(&f, a, c, SAMPLED);
    use(&f, b, d, SAMPLED);
    use(&f, b, c, COLOR);
    use(&f, out, c, SAMPLED);
    assert_refused(&f, NB_ERR_DEADLOCK, NB_ITEM_GRAPH_CYCLE, "a", "depth",
                   "passes wait for each other: a -> (depth) -> b -> (color) -> a; renew a resource between them");
    // The next assembly is a new one.
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    assert_null(nb_graph_error_get(f.graph));
    kept_pass(&f, "a");
    assert_order(&f, "a");
    graph_close(&f);
}

TEST(circles_through_links_and_renewed_memory_are_named) {
    graph_open(&f);
    nb_graph_pass a = kept_pass(&f, "a"), b = kept_pass(&f, "b"), c = kept_pass(&f, "c");
    nb_graph_resource image_ = image(&f, "image");
    assert_int_equal(nb_graph_after(f.graph, b, a), NB_OK);
    assert_int_equal(nb_graph_after(f.graph, c, b), NB_OK);
    use(&f, c, image_, COLOR);
    use(&f, a, image_, SAMPLED);
    assert_refused(&f, NB_ERR_DEADLOCK, NB_ITEM_GRAPH_CYCLE, "a", "",
                   "passes wait for each other: a -> (after) -> b -> (after) -> c -> (image) -> a; renew a resource "
                   "between them");
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_resource old = image(&f, "old"), next = renew(&f, old, "next"), last = renew(&f, next, "last");
    a = kept_pass(&f, "a");
    use(&f, a, old, COLOR);
    use(&f, a, last, COLOR);
    assert_refused(&f, NB_ERR_DEADLOCK, NB_ITEM_GRAPH_CYCLE, "a", "last",
                   "passes wait for each other: a -> (last) -> a; renew a resource between them");
    graph_close(&f);
}

TEST(long_circle_is_cut) {
    graph_open(&f);
    nb_graph_pass p[40];
    for (int i = 0; i < 40; ++i) {
        char name[48];
        snprintf(name, sizeof name, "pass with quite a long name %d", i);
        p[i] = kept_pass(&f, name);
    }
    for (int i = 0; i < 40; ++i) assert_int_equal(nb_graph_after(f.graph, p[(i + 1) % 40], p[i]), NB_OK);
    assert_int_equal(nb_graph_compile(f.graph, NULL), NB_ERR_DEADLOCK);
    const nb_graph_error *error = nb_graph_error_get(f.graph);
    assert_non_null(strstr(error->text, "name 0 -> (after) -> pass with quite a long name 1 -> "));
    assert_non_null(strstr(error->text, " -> ...; renew a resource between them"));
    graph_close(&f);
}

TEST(circle_of_passes_left_out_is_no_mistake) {
    graph_open(&f);
    nb_graph_resource x = image(&f, "x"), y = image(&f, "y");
    nb_graph_pass a = pass(&f, "a"), b = pass(&f, "b");
    use(&f, a, x, COLOR);
    use(&f, a, y, SAMPLED);
    use(&f, b, y, COLOR);
    use(&f, b, x, SAMPLED);
    kept_pass(&f, "kept");
    assert_order(&f, "kept");
    graph_close(&f);
}

TEST(reading_what_nobody_writes_is_refused) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = renew(&f, a, "b");
    use(&f, kept_pass(&f, "reader"), b, SAMPLED);
    assert_refused(&f, NB_ERR_MISUSE, NB_ITEM_GRAPH_UNWRITTEN, "reader", "b",
                   "pass 'reader' reads 'b', which no pass writes: add one that does, or import it");
    // What was there before is written.
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_resource old = import(&f, "old", SAMPLED, 0);
    use(&f, kept_pass(&f, "reader"), old, SAMPLED);
    assert_order(&f, "reader");
    graph_close(&f);
}

TEST(uses_that_exclude_each_other_are_refused) {
    static const nb_gpu_access bad[] = {COLOR | SAMPLED, COLOR | STORAGE, SAMPLED | STORAGE_READ, COPY_FROM | COPY_TO,
                                        SAMPLED | COPY_FROM};
    graph_open(&f);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        assert_int_equal(nb_graph_begin(f.graph), NB_OK);
        use(&f, kept_pass(&f, "p"), import(&f, "a", SAMPLED, 0), bad[i]);
        assert_int_equal(nb_graph_compile(f.graph, NULL), NB_ERR_MISUSE);
        assert_int_equal(test_log_count(&f.log, NB_ITEM_GRAPH_CONFLICT), i + 1);
    }
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_resource d = depth(&f, "d");
    nb_graph_pass p = kept_pass(&f, "p");
    use(&f, p, d, DEPTH);
    use(&f, p, d, SAMPLED);
    assert_refused(&f, NB_ERR_MISUSE, NB_ITEM_GRAPH_CONFLICT, "p", "d",
                   "pass 'p' uses image 'd' as depth, sampled, which exclude each other: make two passes of it");
    // Depth that is only read can be sampled too, and parts of a buffer used in any way.
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_resource b = buffer(&f, "b");
    d = depth(&f, "d");
    use(&f, pass(&f, "w"), d, DEPTH);
    use(&f, kept_pass(&f, "r"), d, DEPTH_READ | SAMPLED);
    use(&f, kept_pass(&f, "all"), b, COPY_TO | STORAGE_READ | VERTEX | INDIRECT);
    assert_order(&f, "w r all");
    graph_close(&f);
}

TEST(attachments_of_different_sizes_are_refused) {
    graph_open(&f);
    nb_graph_import_desc wide = {.name = "wide", .format = NB_GPU_FORMAT_R8, .width = 64, .height = 32};
    nb_graph_resource w;
    assert_int_equal(nb_graph_import(f.graph, &wide, &w), NB_OK);
    nb_graph_pass p = kept_pass(&f, "p");
    use(&f, p, image(&f, "a"), COLOR);
    use(&f, p, w, COLOR);
    assert_refused(&f, NB_ERR_MISUSE, NB_ITEM_GRAPH_SIZE, "p", "wide",
                   "pass 'p' attaches 'a' of 64 x 64 and 'wide' of 64 x 32: make them alike");
    graph_close(&f);
}

TEST(mistakes_of_passes_left_out_are_not_looked_for) {
    graph_open(&f);
    nb_graph_pass p = pass(&f, "p");
    use(&f, p, image(&f, "never"), SAMPLED);
    use(&f, p, image(&f, "both"), COLOR | SAMPLED);
    kept_pass(&f, "kept");
    assert_order(&f, "kept");
    graph_close(&f);
}

// --- assembly ---

TEST(names_are_unique_and_cut) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), found = {0};
    nb_graph_pass p = pass(&f, "a"); // passes have names of their own
    nb_graph_image_desc again = {"a", NB_GPU_FORMAT_R8, 1, 1};
    nb_graph_pass_desc again_pass = {.name = "a", .kind = NB_GPU_PASS_COMPUTE};
    assert_int_equal(nb_graph_image_add(f.graph, &again, &found), NB_ERR_MISUSE);
    assert_string_equal(f.log.last_message, "a resource 'a' is there already; choose another name");
    assert_int_equal(nb_graph_renew(f.graph, a, "a", &found), NB_ERR_MISUSE);
    assert_int_equal(nb_graph_pass_add(f.graph, &again_pass, &p), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_GRAPH_NAME), 3);
    nb_graph_resource cut = image(&f, "0123456789012345678901234567890 and more");
    again.name = "0123456789012345678901234567890 and other things";
    assert_int_equal(nb_graph_image_add(f.graph, &again, &found), NB_ERR_MISUSE);
    assert_int_equal(nb_graph_resource_find(f.graph, "0123456789012345678901234567890", &found), NB_OK);
    assert_true(found.value == cut.value);
    image(&f, "two\nlines");
    assert_int_equal(nb_graph_resource_find(f.graph, "two?lines", &found), NB_OK);
    assert_int_equal(nb_graph_resource_find(f.graph, "b", &found), NB_EMPTY);
    // They are free again in the next assembly.
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    assert_int_equal(nb_graph_resource_find(f.graph, "a", &found), NB_EMPTY);
    image(&f, "a");
    graph_close(&f);
}

TEST(handles_of_other_assemblies_are_stale) {
    graph_fixture other;
    graph_open(&f);
    graph_open(&other);
    // The index tells reports apart, so a host that keeps handles over frames is throttled.
    image(&other, "first"), pass(&other, "first");
    nb_graph_resource a = image(&f, "a"), foreign = image(&other, "a"), out;
    nb_graph_pass p = pass(&f, "p"), foreign_pass = pass(&other, "p");
    assert_int_equal(nb_graph_use(f.graph, p, foreign, COLOR), NB_ERR_STALE);
    assert_int_equal(nb_graph_use(f.graph, foreign_pass, a, COLOR), NB_ERR_STALE);
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    nb_graph_pass now = pass(&f, "p");
    nb_graph_resource b = image(&f, "b");
    assert_int_equal(nb_graph_use(f.graph, now, a, COLOR), NB_ERR_STALE);
    assert_int_equal(nb_graph_use(f.graph, p, b, COLOR), NB_ERR_STALE);
    assert_int_equal(nb_graph_keep(f.graph, a), NB_ERR_STALE);
    assert_int_equal(nb_graph_renew(f.graph, a, "c", &out), NB_ERR_STALE);
    assert_int_equal(nb_graph_after(f.graph, now, p), NB_ERR_STALE);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_GRAPH_STALE), 7);
    use(&f, now, b, COLOR);
    assert_int_equal(nb_graph_declared(f.graph, 0, b), COLOR);
    assert_int_equal(nb_graph_declared(f.graph, 0, a), 0);
    assert_int_equal(nb_graph_declared(f.graph, 99, b), 0);
    uint32_t index = 77;
    assert_int_equal(nb_graph_resource_index(f.graph, b, &index), NB_OK);
    assert_int_equal(index, 0);
    assert_int_equal(nb_graph_resource_index(f.graph, a, &index), NB_ERR_STALE);
    graph_close(&f);
    graph_close(&other);
}

TEST(full_pools_refuse_and_keep_what_is_there) {
    memset(&f, 0, sizeof f);
    nb_graph_desc desc = {
        .pass_count_max = 2, .resource_count_max = 3, .use_count_max = 4, .hooks = test_hooks(&f.log, &f.heap)};
    assert_int_equal(nb_graph_create(&desc, &f.graph), NB_OK);
    for (int round = 0; round < 3; ++round) {
        assert_int_equal(nb_graph_begin(f.graph), NB_OK);
        nb_graph_resource a = image(&f, "a"), b = image(&f, "b"), c = image(&f, "c"), out;
        nb_graph_pass p = pass(&f, "p"), q = pass(&f, "q"), no_pass;
        nb_graph_image_desc image_desc = {"d", NB_GPU_FORMAT_R8, 1, 1};
        nb_graph_pass_desc pass_desc = {.name = "r", .kind = NB_GPU_PASS_COMPUTE};
        assert_int_equal(nb_graph_image_add(f.graph, &image_desc, &out), NB_FULL);
        assert_int_equal(nb_graph_renew(f.graph, a, "d", &out), NB_FULL);
        assert_int_equal(nb_graph_pass_add(f.graph, &pass_desc, &no_pass), NB_FULL);
        use(&f, p, a, COLOR);
        use(&f, q, a, SAMPLED);
        use(&f, q, b, COLOR);
        assert_int_equal(nb_graph_after(f.graph, q, p), NB_OK);
        assert_int_equal(nb_graph_after(f.graph, q, p), NB_FULL);
        assert_int_equal(nb_graph_use(f.graph, q, c, COLOR), NB_FULL);
        use(&f, q, b, COLOR); // nothing new
        assert_int_equal(nb_graph_keep(f.graph, b), NB_OK);
        assert_order(&f, "p q");
        assert_int_equal(test_log_count(&f.log, NB_ITEM_GRAPH_FULL), 5); // each once, not once an assembly
    }
    graph_close(&f);
}

TEST(attachments_have_a_bound) {
    graph_open(&f);
    nb_graph_pass p = kept_pass(&f, "p");
    nb_graph_resource colors[5], d = depth(&f, "d"), d2 = depth(&f, "d2");
    const char *names[] = {"c0", "c1", "c2", "c3", "c4"};
    for (int i = 0; i < 5; ++i) colors[i] = image(&f, names[i]);
    for (int i = 3; i >= 0; --i) use(&f, p, colors[i], COLOR);
    use(&f, p, colors[2], COLOR);
    assert_int_equal(nb_graph_use(f.graph, p, colors[4], COLOR), NB_ERR_RANGE);
    use(&f, p, d, DEPTH);
    use(&f, p, d, DEPTH_READ);
    assert_int_equal(nb_graph_use(f.graph, p, d2, DEPTH_READ), NB_ERR_RANGE);
    compile(&f);
    const nb_graph_step *step = &f.plan->steps[0];
    assert_int_equal(step->color_count, 4);
    for (uint32_t i = 0; i < 4; ++i) assert_int_equal(step->colors[i].resource, 5 - i); // in the order of the calls
    assert_int_equal(step->depth.resource, 0);
    assert_int_equal(step->depth.access, DEPTH | DEPTH_READ);
    assert_int_equal(step->width, 64);
    assert_int_equal(nb_graph_declared(f.graph, 0, colors[4]), 0);
    graph_close(&f);
}

TEST(only_an_open_assembly_is_added_to) {
    memset(&f, 0, sizeof f);
    nb_graph_desc desc = {.hooks = test_hooks(&f.log, &f.heap)};
    nb_graph_resource a;
    nb_graph_image_desc image_desc = {"a", NB_GPU_FORMAT_R8, 1, 1};
    assert_int_equal(nb_graph_create(&desc, &f.graph), NB_OK);
    assert_int_equal(nb_graph_image_add(f.graph, &image_desc, &a), NB_ERR_MISUSE);
    assert_int_equal(nb_graph_compile(f.graph, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_graph_begin(f.graph), NB_OK);
    compile(&f); // nothing is a frame too
    assert_int_equal(f.plan->step_count + f.plan->transition_count + f.plan->resource_count, 0);
    assert_int_equal(nb_graph_image_add(f.graph, &image_desc, &a), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&f.log, NB_ITEM_GRAPH_MOMENT), 3);
    graph_close(&f);
}

TEST(all_memory_is_taken_at_creation) {
    graph_open(&f);
    uint64_t calls = f.heap.call_count.value;
    for (int round = 0; round < 3; ++round) {
        assert_int_equal(nb_graph_begin(f.graph), NB_OK);
        nb_graph_resource a = image(&f, "a");
        use(&f, pass(&f, "w"), a, COLOR);
        use(&f, kept_pass(&f, "r"), a, SAMPLED);
        assert_order(&f, "w r");
    }
    assert_int_equal(f.heap.call_count.value, calls);
    graph_close(&f);
    test_log log = {0};
    test_heap heap = {.fail_at = 1};
    nb_graph_desc desc = {.hooks = test_hooks(&log, &heap)};
    nb_graph *none = NULL;
    assert_int_equal(nb_graph_create(&desc, &none), NB_ERR_MEMORY);
    assert_null(none);
    assert_int_equal(test_log_count(&log, NB_ITEM_BASE_MEMORY), 1);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(names_of_types_are_told) {
    for (int i = 1; i < NB_GPU_FORMAT_COUNT; ++i) {
        assert_string_not_equal(nb_gpu_format_name((nb_gpu_format)i), "unknown");
        assert_true(nb_gpu_format_bytes((nb_gpu_format)i) != 0);
        for (int j = 1; j < i; ++j)
            assert_string_not_equal(nb_gpu_format_name((nb_gpu_format)i), nb_gpu_format_name((nb_gpu_format)j));
    }
    assert_int_equal(nb_gpu_format_bytes(NB_GPU_FORMAT_RGBA16F), 8);
    for (nb_gpu_access bit = 1; bit < NB_GPU_ACCESS_ALL; bit <<= 1) {
        assert_string_not_equal(nb_gpu_access_name(bit), "unknown");
        assert_string_not_equal(nb_gpu_access_name(bit), "several");
    }
    assert_string_equal(nb_gpu_access_name(SAMPLED), "sampled");
    assert_string_equal(nb_gpu_access_name(0), "none");
    assert_string_equal(nb_gpu_access_name(COLOR | DEPTH), "several");
}
