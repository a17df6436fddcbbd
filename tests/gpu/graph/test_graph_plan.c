// SPDX-License-Identifier: MIT
// The plan of a frame graph: transitions, attachments, slots, and how it is written down.

#include "gpu/graph/graph_fixture.h"

static graph_fixture f; // of the case that runs

// --- transitions ---

TEST(first_use_comes_from_nothing_and_reads_wait_for_writes) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a");
    use(&f, pass(&f, "w1"), a, COLOR);
    use(&f, pass(&f, "w2"), a, COLOR);
    use(&f, kept_pass(&f, "r"), a, SAMPLED);
    assert_transitions(&f, "w1 a:none>color!; w2 a:color>color; r a:color>sampled");
    graph_close(&f);
}

TEST(reads_of_one_layout_share_a_transition) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), d = depth(&f, "d");
    use(&f, pass(&f, "wa"), a, COLOR);
    use(&f, pass(&f, "wd"), d, DEPTH);
    const nb_gpu_access of_a[] = {SAMPLED, SAMPLED, COPY_FROM, STORAGE_READ, SAMPLED};
    const nb_gpu_access of_d[] = {SAMPLED, DEPTH_READ, SAMPLED, COPY_FROM, DEPTH_READ};
    const char *names[] = {"r0", "r1", "r2", "r3", "r4"};
    for (int i = 0; i < 5; ++i) {
        nb_graph_pass p = kept_pass(&f, names[i]);
        use(&f, p, a, of_a[i]);
        use(&f, p, d, of_d[i]);
    }
    assert_transitions(&f, "wa a:none>color!; wd d:none>depth!; r0 a:color>sampled d:depth>depth_read+sampled; r1; "
                           "r2 a:sampled>copy_from; r3 a:copy_from>storage_read d:depth_read+sampled>copy_from; "
                           "r4 a:storage_read>sampled d:copy_from>depth_read");
    graph_close(&f);
}

TEST(reads_of_buffers_share_a_transition_in_any_way) {
    graph_open(&f);
    nb_graph_resource b = buffer(&f, "b"), next = renew(&f, b, "next");
    use(&f, pass(&f, "fill"), b, COPY_TO);
    use(&f, kept_pass(&f, "r0"), b, VERTEX);
    use(&f, kept_pass(&f, "r1"), b, UNIFORM | INDIRECT);
    use(&f, kept_pass(&f, "again"), next, STORAGE);
    use(&f, kept_pass(&f, "r2"), next, COPY_FROM);
    assert_transitions(&f, "fill b:none>copy_to!; r0 b:copy_to>uniform+vertex+indirect; r1; "
                           "again next:uniform+vertex+indirect>storage; r2 next:storage>copy_from");
    graph_close(&f);
}

TEST(imports_come_from_and_go_where_they_are_said_to) {
    graph_open(&f);
    nb_graph_resource screen = import(&f, "screen", 0, PRESENT), old = import(&f, "old", COLOR, SAMPLED);
    import(&f, "unused", COPY_TO, SAMPLED);
    import(&f, "stays", SAMPLED, SAMPLED);
    nb_graph_pass p = pass(&f, "p"), q = kept_pass(&f, "q");
    use(&f, p, screen, COLOR);
    use(&f, p, old, SAMPLED);
    use(&f, q, old, SAMPLED);
    // What is left as it was used last needs nothing at the end.
    assert_transitions(&f,
                       "p screen:none>color! old:color>sampled; q; end screen:color>present unused:copy_to>sampled");
    assert_int_equal(f.plan->resources[0].slot, NB_GRAPH_SLOT_NONE);
    assert_true(f.plan->resources[0].is_imported);
    assert_false(f.plan->resources[2].is_used);
    graph_close(&f);
}

TEST(imports_that_are_read_as_before_need_nothing) {
    graph_open(&f);
    nb_graph_resource same = import(&f, "same", SAMPLED, 0), other = import(&f, "other", SAMPLED, 0);
    nb_graph_import_desc desc = {.name = "b", .is_buffer = true, .before = VERTEX | UNIFORM};
    nb_graph_resource b, next;
    assert_int_equal(nb_graph_import(f.graph, &desc, &b), NB_OK);
    next = renew(&f, b, "next");
    nb_graph_pass p = kept_pass(&f, "p"), q = kept_pass(&f, "q");
    use(&f, p, same, SAMPLED);
    use(&f, p, other, COPY_FROM);
    use(&f, p, b, VERTEX);
    use(&f, q, next, STORAGE); // waits for what was before the frame too
    assert_transitions(&f, "p other:sampled>copy_from; q next:uniform+vertex>storage");
    graph_close(&f);
}

TEST(cleared_contents_are_not_kept) {
    graph_open(&f);
    nb_graph_resource a = import(&f, "a", SAMPLED, SAMPLED);
    nb_graph_pass p = pass(&f, "p"), q = pass(&f, "q");
    use(&f, p, a, COLOR);
    use(&f, q, a, COLOR);
    clear(&f, p, a);
    assert_transitions(&f, "p a:sampled>color!; q a:color>color; end a:color>sampled");
    graph_close(&f);
}

// --- attachments ---

TEST(attachments_are_cleared_discarded_or_kept) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), d = depth(&f, "d"), again = renew(&f, a, "again");
    nb_graph_resource old = import(&f, "old", COPY_TO, 0), fresh = import(&f, "fresh", 0, 0);
    nb_graph_pass p = kept_pass(&f, "p"), q = kept_pass(&f, "q");
    use(&f, p, a, COLOR);
    use(&f, p, d, DEPTH);
    use(&f, p, old, COLOR);
    use(&f, p, fresh, COLOR);
    clear(&f, p, d);
    use(&f, q, again, COLOR);
    use(&f, q, d, DEPTH_READ);
    compile(&f);
    const nb_graph_step *first = &f.plan->steps[0], *second = &f.plan->steps[1];
    assert_int_equal(first->color_count, 3);
    assert_true(first->colors[0].is_discarded && !first->colors[0].is_cleared);
    assert_true(first->depth.is_cleared && !first->depth.is_discarded);
    assert_true(first->depth.clear.value[0] == 0.5f && first->depth.clear.value[3] == 1.0f);
    assert_true(!first->colors[1].is_discarded && !first->colors[1].is_cleared);   // an import with contents
    assert_true(first->colors[2].is_discarded);                                    // and one without
    assert_true(!second->colors[0].is_discarded && !second->colors[0].is_cleared); // renewed: kept
    assert_true(!second->depth.is_discarded && !second->depth.is_cleared);
    assert_int_equal(second->depth.access, DEPTH_READ);
    graph_close(&f);
}

static nb_result record_nothing(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    (void)command, (void)bucket, (void)bucket_count, (void)user;
    return NB_OK;
}

TEST(steps_carry_what_was_said_of_the_pass) {
    graph_open(&f);
    nb_graph_pass_desc desc = {.name = "p",
                               .kind = NB_GPU_PASS_COMPUTE,
                               .record = record_nothing,
                               .user = &f,
                               .bucket_count = 7,
                               .is_kept = true};
    nb_graph_pass p;
    assert_int_equal(nb_graph_pass_add(f.graph, &desc, &p), NB_OK);
    kept_pass(&f, "q");
    compile(&f);
    const nb_graph_step *step = &f.plan->steps[0];
    assert_string_equal(step->name, "p");
    assert_int_equal(step->kind, NB_GPU_PASS_COMPUTE);
    assert_true(step->record == record_nothing && step->user == &f);
    assert_int_equal(step->bucket_count, 7);
    assert_int_equal(step->width, 0);
    assert_int_equal(step->depth.access, 0);
    assert_int_equal(f.plan->steps[1].bucket_count, 1);
    graph_close(&f);
}

// --- slots ---

TEST(memory_alike_is_shared_and_waits_for_who_had_it) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = image(&f, "b"), c = image(&f, "c");
    nb_graph_resource large = image_of(&f, "large", NB_GPU_FORMAT_RGBA8, 128), bits = buffer(&f, "bits");
    use(&f, pass(&f, "wa"), a, COLOR);
    nb_graph_pass ab = pass(&f, "ab"), bc = kept_pass(&f, "bc"), more = kept_pass(&f, "more");
    use(&f, ab, a, SAMPLED);
    use(&f, ab, b, COLOR); // a is in use: other memory
    use(&f, bc, b, SAMPLED);
    use(&f, bc, c, COLOR); // that of a, which is done
    use(&f, more, large, COLOR);
    use(&f, more, bits, STORAGE);
    assert_transitions(&f, "wa a:none>color!; ab a:color>sampled b:none>color!; bc b:color>sampled c:sampled>color!; "
                           "more large:none>color! bits:none>storage!");
    const nb_graph_plan_resource *r = f.plan->resources;
    assert_int_equal(r[0].slot, r[2].slot);
    assert_int_not_equal(r[0].slot, r[1].slot);
    assert_int_equal(f.plan->slot_count, 4);
    assert_int_equal(r[0].step_first, 0);
    assert_int_equal(r[0].step_last, 1);
    assert_int_equal(f.plan->slots[r[0].slot].access, COLOR | SAMPLED);
    assert_int_equal(f.plan->slots[r[0].slot].access_last, COLOR); // of c
    assert_int_equal(f.plan->slots[r[1].slot].access_last, SAMPLED);
    assert_int_equal(f.plan->slots[r[3].slot].width, 128);
    assert_true(f.plan->slots[r[4].slot].is_buffer);
    assert_int_equal(f.plan->slots[r[4].slot].size_bytes, 256);
    assert_true(f.plan->steps[2].colors[0].is_discarded);
    graph_close(&f);
}

TEST(renewed_memory_stays_where_it_is_until_its_last_name_is_done) {
    graph_open(&f);
    nb_graph_resource a = image(&f, "a"), b = image(&f, "b"), again = renew(&f, a, "again");
    use(&f, kept_pass(&f, "wa"), a, COLOR);
    use(&f, kept_pass(&f, "wb"), b, COLOR);
    use(&f, kept_pass(&f, "more"), again, COLOR);
    assert_transitions(&f, "wa a:none>color!; wb b:none>color!; more again:color>color");
    const nb_graph_plan_resource *r = f.plan->resources;
    assert_int_equal(r[2].slot, r[0].slot);
    assert_int_equal(r[2].root, 0);
    assert_int_equal(r[0].root, 0);
    assert_int_not_equal(r[1].slot, r[0].slot);
    assert_int_equal(r[0].step_last, 0);
    assert_int_equal(r[2].step_first, 2);
    graph_close(&f);
}

TEST(what_is_wanted_keeps_its_memory_to_the_end) {
    for (int is_wanted = 0; is_wanted < 2; ++is_wanted) {
        graph_open(&f);
        nb_graph_resource a = image(&f, "a"), b = image(&f, "b");
        use(&f, kept_pass(&f, "wa"), a, COLOR);
        use(&f, kept_pass(&f, "wb"), b, COLOR);
        if (is_wanted) assert_int_equal(nb_graph_keep(f.graph, a), NB_OK);
        compile(&f);
        assert_int_equal(f.plan->slot_count, is_wanted ? 2 : 1);
        graph_close(&f);
    }
}

// --- text ---

static void write_line(void *user, const char *text, size_t size_bytes) {
    (void)user;
    size_t length = strlen(f.line);
    assert_true(length + size_bytes < sizeof f.line);
    memcpy(f.line + length, text, size_bytes);
    f.line[length + size_bytes] = '\0';
}

// Everything that a line may say: buckets, buffers, names that are quoted, links, what is renewed or left out.
static void assemble_for_text(void) {
    nb_graph_resource a = image(&f, "a \"b\" \\c"), again = renew(&f, a, "again"), b = buffer(&f, "bits");
    nb_graph_resource screen = import(&f, "screen", 0, PRESENT);
    nb_graph_import_desc desc = {.name = "shared", .is_buffer = true, .before = VERTEX};
    nb_graph_resource shared;
    assert_int_equal(nb_graph_import(f.graph, &desc, &shared), NB_OK);
    nb_graph_pass_desc draw_desc = {.name = "draw", .kind = NB_GPU_PASS_RENDER, .bucket_count = 4};
    nb_graph_pass draw, over = pass(&f, "over"), idle = pass(&f, "idle");
    assert_int_equal(nb_graph_pass_add(f.graph, &draw_desc, &draw), NB_OK);
    use(&f, draw, a, COLOR);
    clear(&f, draw, a);
    use(&f, draw, shared, VERTEX);
    use(&f, over, again, COLOR);
    use(&f, over, screen, COLOR);
    use(&f, idle, b, STORAGE | STORAGE_READ);
    assert_int_equal(nb_graph_after(f.graph, over, idle), NB_OK);
    compile(&f);
}

TEST(plan_is_printed) {
    graph_open(&f);
    assemble_for_text();
    assert_int_equal(nb_graph_print(f.graph, write_line, NULL), NB_OK);
    assert_string_equal(f.line, "2 passes, 1 left out, 4 transitions, 5 resources, 1 slots\n"
                                "\n0 draw (render, 64 x 64, 4 buckets)\n"
                                "    a \"b\" \\c             color, cleared               none -> color, discards\n"
                                "    shared               vertex\n"
                                "\n1 over (render, 64 x 64)\n"
                                "    again                color                        color -> color\n"
                                "    screen               color                        none -> color, discards\n"
                                "\nat the end\n"
                                "    screen                                            color -> present\n"
                                "\nleft out\n"
                                "    idle                 render\n"
                                "\nresources\n"
                                "    a \"b\" \\c             rgba8 64 x 64                slot 0, steps 0 to 0\n"
                                "    again                rgba8 64 x 64                slot 0, steps 1 to 1\n"
                                "    bits                 256 bytes                    not used\n"
                                "    screen               rgba8 64 x 64                imported, steps 1 to 1\n"
                                "    shared               buffer                       imported, steps 0 to 0\n");
    graph_close(&f);
}

TEST(graph_is_drawn) {
    graph_open(&f);
    assemble_for_text();
    assert_int_equal(nb_graph_dot(f.graph, write_line, NULL), NB_OK);
    assert_string_equal(f.line, "digraph frame {\n    rankdir=LR;\n"
                                "    p0 [label=\"over\", shape=box];\n"
                                "    p1 [label=\"idle\", shape=box, color=grey, fontcolor=grey];\n"
                                "    p2 [label=\"draw\", shape=box];\n"
                                "    r0 [label=\"a \\\"b\\\" \\\\c\\nrgba8 64 x 64\", shape=ellipse];\n"
                                "    r1 [label=\"again\\nrgba8 64 x 64\", shape=ellipse];\n"
                                "    r2 [label=\"bits\\n256 bytes\", shape=ellipse, color=grey, fontcolor=grey];\n"
                                "    r3 [label=\"screen\\nrgba8 64 x 64\", shape=ellipse];\n"
                                "    r4 [label=\"shared\\nbuffer\", shape=ellipse];\n"
                                "    p0 -> r1 [label=\"color\"];\n"
                                "    p0 -> r3 [label=\"color\"];\n"
                                "    p1 -> r2 [label=\"storage_read, storage\", color=grey, fontcolor=grey];\n"
                                "    p1 -> p0 [style=dotted, color=grey, fontcolor=grey];\n"
                                "    p2 -> r0 [label=\"color\"];\n"
                                "    r4 -> p2 [label=\"vertex\"];\n"
                                "    r0 -> r1 [style=dashed];\n"
                                "}\n");
    graph_close(&f);
}
