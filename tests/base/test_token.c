// SPDX-License-Identifier: MIT
// Cancellation tokens, one thread at a time: the tree, tasks, bulk cancel, failures. The rest is in
// test_token_signals.c, the races in test_token_stress.c.

#include "base/token_fixture.h"

// --- the seed's tests ---

TEST_IN(token, test_uncancelled_token_returns_false) {
    nb_token *token = root_create(*state, "test");
    assert_false(nb_token_is_cancelled(token));
    assert_int_equal(nb_token_reason(token).cause, NB_CANCEL_NONE);
    nb_token_release(token);
}

TEST_IN(token, test_cancelled_token_returns_true) {
    nb_token *token = root_create(*state, "test");
    assert_int_equal(cancel(token).token_count, 1);
    assert_true(nb_token_is_cancelled(token));
    assert_int_equal(cancel(token).token_count, 0);
    nb_token_release(token);
}

TEST_IN(token, test_child_cancelled_when_parent_cancelled) {
    nb_token *parent = root_create(*state, "parent");
    nb_token *child = child_create(parent, "child");
    assert_int_equal(cancel(parent).token_count, 2);
    assert_true(nb_token_is_cancelled(child));
    nb_token_release(child);
    nb_token_release(parent);
}

TEST_IN(token, test_parent_not_cancelled_when_child_cancelled) {
    nb_token *parent = root_create(*state, "parent");
    nb_token *child = child_create(parent, "child");
    nb_token *sibling = child_create(parent, "sibling");
    assert_int_equal(cancel(child).token_count, 1);
    assert_false(nb_token_is_cancelled(parent));
    assert_false(nb_token_is_cancelled(sibling));
    assert_true(nb_token_is_cancelled(child));
    nb_token_release(sibling);
    nb_token_release(child);
    nb_token_release(parent);
}

TEST_IN(token, test_task_checks_and_exits_early) {
    nb_token *token = root_create(*state, "test");
    cancel(token);
    uint32_t iterations = 0;
    while (!nb_token_is_cancelled(token) && iterations < 1000) ++iterations;
    assert_int_equal(iterations, 0);
    nb_token_release(token);
}

typedef struct spinner {
    nb_token *token;
    uint32_t payload; // written by the canceller before its call
    uint32_t payload_seen;
    bool gave_up;
} spinner;

static void spin_until_cancelled(void *user) {
    spinner *s = user;
    uint64_t give_up_ns = nbi_clock_now_ns() + 10000000000u;
    while (!nb_token_is_cancelled(s->token)) {
        nbi_thread_yield();
        if (nbi_clock_now_ns() > give_up_ns) {
            s->gave_up = true;
            return;
        }
    }
    if (nb_token_reason(s->token).cause == NB_CANCEL_STALE) s->payload_seen = s->payload;
}

TEST_IN(token, test_cancellation_is_immediate) {
    spinner s = {.token = root_create(*state, "test")};
    nbi_thread thread = {0};
    nbi_thread_desc desc = {.run = spin_until_cancelled, .user = &s, .name = "spinner"};
    assert_int_equal(nbi_thread_start(&thread, &desc), NB_OK);
    s.payload = 47;
    cancel(s.token);
    nbi_thread_join(&thread);
    assert_false(s.gave_up);
    assert_int_equal(s.payload_seen, 47);
    nb_token_release(s.token);
}

// Builds, cancels and releases a chain of which only the last token has a handle, beside the root's.
static void chain_life(void *user) {
    deep_chain *chain = user;
    nb_token_desc desc = {.hooks = chain->f->hooks};
    nb_token *root = NULL;
    if (nb_token_create(&desc, &root) != NB_OK) {
        chain->failed_count = 1;
        return;
    }
    nb_token *last = nb_token_retain(root);
    for (uint32_t i = 0; i < chain->depth; ++i) {
        nb_token *child = NULL;
        if (nb_token_child(last, "link", &child) != NB_OK) ++chain->failed_count;
        nb_token_release(last);
        last = child;
    }
    nb_cancel_counts counts = {0};
    nb_token_cancel(root, NB_CANCEL_STALE, 0, &counts);
    chain->cancelled_count = counts.token_count;
    if (!nb_token_is_cancelled(last)) ++chain->uncancelled_count;
    nb_token_release(root);
    nb_token_release(last);
}

TEST_IN(token, test_deep_hierarchy_cancellation) {
    nb_token *tokens[4] = {root_create(*state, "root")};
    for (int i = 1; i < 4; ++i) tokens[i] = child_create(tokens[i - 1], "level");
    assert_int_equal(cancel(tokens[0]).token_count, 4);
    for (int i = 0; i < 4; ++i) assert_true(nb_token_is_cancelled(tokens[i]));
    for (int i = 0; i < 4; ++i) nb_token_release(tokens[i]);

    deep_chain chain = {.f = *state, .depth = (uint32_t)test_size(250000, 1000000, 1000000)};
    run_on_small_stack(chain_life, &chain);
    assert_int_equal(chain.failed_count, 0);
    assert_int_equal(chain.uncancelled_count, 0);
    assert_int_equal(chain.cancelled_count, chain.depth + 1u);
}

TEST_IN(token, test_clone_shares_state) {
    nb_token *token = root_create(*state, "test");
    nb_token *clone = nb_token_retain(token);
    assert_ptr_equal(clone, token);
    cancel(token);
    nb_token_release(token);
    assert_true(nb_token_is_cancelled(clone));
    nb_token_release(clone);
}

TEST_IN(token, test_pre_cancelled_child_of_cancelled_parent) {
    nb_token *parent = root_create(*state, "parent");
    nb_token_cancel(parent, NB_CANCEL_FAILED, 9, NULL);
    nb_token *child = child_create(parent, "child");
    assert_true(nb_token_is_cancelled(child));
    assert_int_equal(nb_token_reason(child).cause, NB_CANCEL_FAILED);
    assert_int_equal(nb_token_reason(child).code, 9);
    assert_int_equal(nb_token_task_enter(child), NB_CANCELLED);
    assert_int_equal(cancel(child).token_count, 0);
    nb_token_release(child);
    nb_token_release(parent);
}

TEST_IN(token, test_prune_removes_dead_children) {
    nb_token *parent = root_create(*state, "parent");
    nb_token *children[5];
    for (int i = 0; i < 5; ++i) children[i] = child_create(parent, "child");
    for (int i = 0; i < 3; ++i) nb_token_release(children[i]);
    assert_int_equal(nb_token_child_count(parent), 2);
    assert_int_equal(nb_token_prune(parent), 2);
    assert_int_equal(nb_token_child_count(parent), 2);

    // A middle token nobody holds stays, because its own child does.
    nb_token *middle = child_create(parent, "middle");
    nb_token *grandchild = child_create(middle, "grandchild");
    nb_token_release(middle);
    assert_int_equal(nb_token_prune(parent), 3);
    assert_int_equal(cancel(parent).token_count, 5);
    assert_true(nb_token_is_cancelled(grandchild));
    nb_token_release(grandchild);
    assert_int_equal(nb_token_child_count(parent), 2);
    nb_token_release(children[3]);
    nb_token_release(children[4]);
    nb_token_release(parent);
}

// --- the tree ---

static void wide_life(void *user) {
    deep_chain *wide = user;
    nb_token_desc desc = {.hooks = wide->f->hooks};
    nb_token *root = NULL;
    nb_token **children = malloc(wide->depth * sizeof *children);
    if (nb_token_create(&desc, &root) != NB_OK) wide->failed_count = 1;
    for (uint32_t i = 0; i < wide->depth; ++i) {
        if (nb_token_child(root, "child", &children[i]) != NB_OK) ++wide->failed_count;
    }
    nb_cancel_counts counts = {0};
    nb_token_cancel(root, NB_CANCEL_STALE, 0, &counts);
    wide->cancelled_count = counts.token_count;
    nb_token_release(root);
    for (uint32_t i = 0; i < wide->depth; ++i) {
        if (!nb_token_is_cancelled(children[i])) ++wide->uncancelled_count;
        nb_token_release(children[i]);
    }
    free(children);
}

TEST_IN(token, wide_tree_is_cancelled_whole) {
    deep_chain wide = {.f = *state, .depth = (uint32_t)test_size(250000, 1000000, 1000000)};
    run_on_small_stack(wide_life, &wide);
    assert_int_equal(wide.failed_count, 0);
    assert_int_equal(wide.uncancelled_count, 0);
    assert_int_equal(wide.cancelled_count, wide.depth + 1u);
}

// A random tree against a plain model: after random cancels and releases each live token is cancelled exactly if one of
// its parents or itself was.
#define MODEL_COUNT 600
typedef struct model_token {
    nb_token *token; // NULL: released
    int parent;      // index, -1 for the root
    bool is_cancelled;
} model_token;

static uint32_t model_cancel(model_token *model, int count, int top) {
    uint32_t newly = 0;
    for (int i = top; i < count; ++i) {
        // Parents come before their children, so one pass is enough.
        bool is_below = i == top || (model[i].parent >= top && model[model[i].parent].is_cancelled);
        if (!is_below || model[i].is_cancelled) continue;
        model[i].is_cancelled = true;
        ++newly;
    }
    return newly;
}

// Released tokens that are still there because of a live one below them are counted by the tree too.
static uint32_t model_ghosts(const model_token *before, const model_token *after, int count) {
    uint32_t gone = 0;
    for (int i = 0; i < count; ++i) {
        bool is_kept = after[i].token != NULL;
        for (int j = i + 1; j < count && !is_kept; ++j) {
            int up = after[j].token != NULL ? j : -1;
            while (up > i) up = after[up].parent;
            is_kept = up == i;
        }
        if (!is_kept && after[i].is_cancelled && !before[i].is_cancelled) ++gone;
    }
    return gone;
}

TEST_IN(token, random_trees_agree_with_a_model) {
    uint64_t random = test_seed("random_trees_agree_with_a_model");
    uint64_t tree_count = test_size(50, 500, 5000);
    static model_token model[MODEL_COUNT], before[MODEL_COUNT];
    for (uint64_t tree = 0; tree < tree_count; ++tree) {
        int count = 1 + (int)(test_random(&random) % (MODEL_COUNT - 1));
        model[0] = (model_token){.token = root_create(*state, "root"), .parent = -1};
        for (int i = 1; i < count; ++i) {
            // Mostly near the newest, so that the tree is deep.
            uint64_t reach = test_random(&random) % 4 == 0 ? (uint64_t)i : (uint64_t)(i < 3 ? i : 3);
            int parent = i - 1 - (int)(test_random(&random) % reach);
            model[i] = (model_token){.token = child_create(model[parent].token, "node"), .parent = parent};
        }
        for (int i = 1; i < count; ++i) {
            if (test_random(&random) % 3 != 0) continue;
            nb_token_release(model[i].token);
            model[i].token = NULL;
        }
        for (int step = 0; step < 5; ++step) {
            int top = (int)(test_random(&random) % (uint64_t)count);
            if (model[top].token == NULL) continue;
            memcpy(before, model, sizeof model);
            uint32_t newly = model_cancel(model, count, top);
            newly -= model_ghosts(before, model, count);
            assert_int_equal(cancel(model[top].token).token_count, newly);
        }
        for (int i = 0; i < count; ++i) {
            if (model[i].token == NULL) continue;
            assert_int_equal(nb_token_is_cancelled(model[i].token), model[i].is_cancelled);
        }
        for (int i = 0; i < count; ++i) nb_token_release(model[i].token);
        assert_int_equal(((fixture *)*state)->heap.live_count.value, 0);
    }
}

TEST_IN(token, created_cancelled_token_is_cancelled) {
    fixture *f = *state;
    nb_token_desc desc = {.label = "late", .hooks = f->hooks};
    nb_token *token = NULL;
    assert_int_equal(nb_token_create_cancelled(&desc, NB_CANCEL_SHUTDOWN, 3, &token), NB_OK);
    assert_true(nb_token_is_cancelled(token));
    assert_int_equal(nb_token_reason(token).cause, NB_CANCEL_SHUTDOWN);
    assert_int_equal(nb_token_reason(token).code, 3);
    nb_token_release(token);
}

TEST_IN(token, first_cancel_writes_the_reason) {
    nb_token *root = root_create(*state, "root");
    nb_token *child = child_create(root, "child");
    nb_token_cancel(child, NB_CANCEL_FAILED, 7, NULL);
    nb_token_cancel(root, NB_CANCEL_SHUTDOWN, 8, NULL);
    nb_token_cancel(root, NB_CANCEL_STALE, 9, NULL);
    assert_int_equal(nb_token_reason(child).cause, NB_CANCEL_FAILED);
    assert_int_equal(nb_token_reason(child).code, 7);
    assert_int_equal(nb_token_reason(root).cause, NB_CANCEL_SHUTDOWN);
    assert_int_equal(nb_token_reason(root).code, 8);
    assert_string_equal(nb_cancel_cause_name(nb_token_reason(root).cause), "shutdown");
    nb_token_release(child);
    nb_token_release(root);
}

TEST_IN(token, cancel_without_a_cause_means_requested) {
    nb_token *root = root_create(*state, "root");
    nb_token_cancel(root, NB_CANCEL_NONE, 0, NULL);
    assert_int_equal(nb_token_reason(root).cause, NB_CANCEL_REQUESTED);
    assert_int_equal(test_log_count(&((fixture *)*state)->log, NB_ITEM_TOKEN_CANCELLED), 1);
    nb_token_release(root);
}

TEST_IN(token, label_is_copied) {
    char label[] = "chunk 3";
    nb_token *token = root_create(*state, label);
    memset(label, 'x', sizeof label - 1);
    assert_string_equal(nb_token_label(token), "chunk 3");
    nb_token *unnamed = child_create(token, NULL);
    assert_string_equal(nb_token_label(unnamed), "token");
    nb_token_release(unnamed);
    nb_token_release(token);
}

TEST_IN(token, longest_label_fits_and_a_longer_one_is_refused) {
    fixture *f = *state;
    char label[NB_TOKEN_LABEL_SIZE_MAX + 2];
    memset(label, 'a', sizeof label);
    label[NB_TOKEN_LABEL_SIZE_MAX + 1] = 0;
    nb_token *root = root_create(f, "root");
    nb_token *child = NULL;
    assert_int_equal(nb_token_child(root, label, &child), NB_ERR_RANGE);
    assert_null(child);
    assert_int_equal(test_log_count(&f->log, NB_ITEM_TOKEN_ARGUMENT), 1);
    label[NB_TOKEN_LABEL_SIZE_MAX] = 0;
    for (int i = 0; i < 3; ++i) {
        child = child_create(root, label);
        assert_string_equal(nb_token_label(child), label);
        nb_token_release(child);
    }
    nb_token_release(root);
}

TEST_IN(token, path_names_every_parent) {
    nb_token *root = root_create(*state, "root");
    nb_token *planet = child_create(root, "planet");
    nb_token *face = child_create(planet, "face3");
    nb_token *chunk = child_create(face, "chunkA");
    nb_token_release(planet);
    nb_token_release(face);
    const char *whole = "root/planet/face3/chunkA";
    char buffer[64];
    assert_int_equal(nb_token_path(chunk, buffer, sizeof buffer), strlen(whole));
    assert_string_equal(buffer, whole);
    for (size_t size = 0; size <= strlen(whole) + 1; ++size) {
        memset(buffer, 'x', sizeof buffer);
        assert_int_equal(nb_token_path(chunk, buffer, size), strlen(whole));
        assert_int_equal(buffer[size], 'x');
        if (size == 0) continue;
        assert_int_equal(strlen(buffer), size - 1);
        assert_memory_equal(buffer, whole, size - 1);
    }
    assert_int_equal(nb_token_path(chunk, NULL, 10), strlen(whole));
    assert_int_equal(nb_token_path(root, buffer, sizeof buffer), 4);
    assert_string_equal(buffer, "root");
    nb_token_release(chunk);
    nb_token_release(root);
}

TEST_IN(token, root_stays_until_its_last_child_goes) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    nb_token *child = child_create(root, "child");
    nb_token_release(root);
    char path[32];
    nb_token_path(child, path, sizeof path);
    assert_string_equal(path, "root/child");
    assert_true(f->heap.live_count.value > 0);
    nb_token_release(child);
    assert_int_equal(f->heap.live_count.value, 0);
}

TEST_IN(token, short_children_leave_nothing_behind) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    uint64_t count = test_size(1000000, 2000000, 10000000);
    uint64_t live_count_max = 0;
    nb_token *kept[500] = {0};
    for (uint64_t i = 0; i < count; ++i) {
        nb_token **slot = &kept[i % 500];
        nb_token_release(*slot);
        *slot = child_create(root, "short");
        if (f->heap.live_count.value > live_count_max) live_count_max = f->heap.live_count.value;
    }
    assert_in_range(live_count_max, 500, 1000);
    assert_int_equal(nb_token_child_count(root), 500);
    for (int i = 0; i < 500; ++i) nb_token_release(kept[i]);
    assert_int_equal(nb_token_prune(root), 0);
    assert_int_equal(f->heap.live_count.value, 1);
    nb_token_release(root);
}

// --- tasks ---

TEST_IN(token, cancel_counts_tasks_apart_from_tokens) {
    nb_token *planet = root_create(*state, "planet");
    nb_token *chunk = child_create(planet, "chunk");
    nb_token *other = root_create(*state, "other");
    for (int i = 0; i < 47; ++i) assert_int_equal(nb_token_task_enter(chunk), NB_OK);
    for (int i = 0; i < 5; ++i) assert_int_equal(nb_token_task_start(chunk), NB_OK);
    assert_int_equal(nb_token_task_leave(chunk), NB_OK);
    assert_int_equal(nb_token_task_withdraw(chunk), NB_OK);
    assert_int_equal(nb_token_task_enter(planet), NB_OK);
    assert_int_equal(nb_token_task_enter(other), NB_OK);
    nb_cancel_counts counts = cancel(planet);
    assert_int_equal(counts.token_count, 2);
    assert_int_equal(counts.task_queued_count, 47 - 5 - 1 + 1);
    assert_int_equal(counts.task_running_count, 4);
    counts = cancel(chunk);
    assert_int_equal(counts.task_queued_count + counts.task_running_count, 0);
    nb_token_release(chunk);
    nb_token_release(planet);
    nb_token_release(other);
}

TEST_IN(token, queued_task_of_a_cancelled_token_never_starts) {
    nb_token *token = root_create(*state, "token");
    assert_int_equal(nb_token_task_enter(token), NB_OK);
    assert_int_equal(nb_token_task_enter(token), NB_OK);
    assert_int_equal(nb_token_task_start(token), NB_OK);
    assert_int_equal(cancel(token).task_queued_count, 1);
    assert_int_equal(nb_token_task_enter(token), NB_CANCELLED);
    assert_int_equal(nb_token_task_start(token), NB_CANCELLED);
    assert_int_equal(nb_token_task_leave(token), NB_OK);
    // Both are gone now.
    assert_int_equal(nb_token_task_start(token), NB_ERR_MISUSE);
    assert_int_equal(nb_token_task_leave(token), NB_ERR_MISUSE);
    assert_int_equal(nb_token_task_withdraw(token), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&((fixture *)*state)->log, NB_ITEM_TOKEN_ARGUMENT), 3);
    nb_token_release(token);
}

TEST_IN(token, tasks_without_a_token_are_not_counted) {
    assert_int_equal(nb_token_task_enter(NULL), NB_OK);
    assert_int_equal(nb_token_task_start(NULL), NB_OK);
    assert_int_equal(nb_token_task_leave(NULL), NB_OK);
    assert_int_equal(nb_token_task_withdraw(NULL), NB_OK);
    assert_false(nb_token_is_cancelled(NULL));
}

// --- many at once ---

typedef struct load_radius {
    uint64_t centre, radius;
    uint32_t offered_count;
} load_radius;

static bool is_outside(void *user, nb_token *child) {
    load_radius *area = user;
    ++area->offered_count;
    uint64_t key = nb_token_key(child);
    uint64_t distance = key > area->centre ? key - area->centre : area->centre - key;
    return distance > area->radius;
}

TEST_IN(token, camera_move_cancels_the_chunks_outside_the_radius) {
    nb_token *planet = root_create(*state, "planet");
    nb_token *chunks[100];
    for (uint64_t i = 0; i < 100; ++i) {
        chunks[i] = child_with_key(planet, i);
        assert_int_equal(nb_token_task_enter(chunks[i]), NB_OK);
    }
    load_radius area = {.centre = 50, .radius = 10};
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel_children(planet, is_outside, &area, NB_CANCEL_STALE, 0, &counts), NB_OK);
    assert_int_equal(area.offered_count, 100);
    assert_int_equal(counts.token_count, 79);
    assert_int_equal(counts.task_queued_count, 79);
    for (uint64_t i = 0; i < 100; ++i) assert_int_equal(nb_token_is_cancelled(chunks[i]), i < 40 || i > 60);
    // Cancelled ones are neither offered nor counted again.
    assert_int_equal(nb_token_cancel_children(planet, is_outside, &area, NB_CANCEL_STALE, 0, &counts), NB_OK);
    assert_int_equal(area.offered_count, 121);
    assert_int_equal(counts.token_count, 0);
    for (uint64_t i = 0; i < 100; ++i) nb_token_release(chunks[i]);
    assert_int_equal(nb_token_child_count(planet), 0);
    nb_token_release(planet);
}

TEST_IN(token, cancel_by_key_finds_every_child_with_it) {
    nb_token *planet = root_create(*state, "planet");
    nb_token *chunks[6];
    for (uint64_t i = 0; i < 6; ++i) chunks[i] = child_with_key(planet, i % 3);
    nb_cancel_counts counts = {0};
    assert_int_equal(nb_token_cancel_key(planet, 2, NB_CANCEL_STALE, 4, &counts), NB_OK);
    assert_int_equal(counts.token_count, 2);
    for (uint64_t i = 0; i < 6; ++i) assert_int_equal(nb_token_is_cancelled(chunks[i]), i % 3 == 2);
    assert_int_equal(nb_token_reason(chunks[5]).code, 4);
    for (uint64_t i = 0; i < 6; ++i) nb_token_release(chunks[i]);
    nb_token_release(planet);
}

// A predicate that releases what it is offered, and makes new children: the walk must survive both.
typedef struct shuffler {
    nb_token *parent;
    nb_token *held[8], *added[8];
    uint32_t offered_count;
} shuffler;

static bool release_and_add(void *user, nb_token *child) {
    shuffler *s = user;
    uint32_t i = s->offered_count++;
    nb_token_child(s->parent, "new", &s->added[i]);
    for (int j = 0; j < 8; ++j) {
        if (s->held[j] != child) continue;
        s->held[j] = NULL;
        nb_token_release(child);
    }
    return i % 2 == 0;
}

TEST_IN(token, predicate_may_release_and_create_children) {
    shuffler s = {.parent = root_create(*state, "parent")};
    for (int i = 0; i < 8; ++i) s.held[i] = child_create(s.parent, "old");
    nb_cancel_counts counts = {0};
    nb_token_cancel_children(s.parent, release_and_add, &s, NB_CANCEL_STALE, 0, &counts);
    assert_int_equal(s.offered_count, 8);
    assert_int_equal(counts.token_count, 4);
    assert_int_equal(nb_token_child_count(s.parent), 8);
    for (int i = 0; i < 8; ++i) nb_token_release(s.added[i]);
    nb_token_release(s.parent);
}

// --- failures ---

// One of everything, under a heap that fails; returns the first failure.
static nb_result live_once(fixture *f) {
    nb_token_desc desc = {.label = "root", .hooks = f->hooks};
    nb_token *root = NULL, *child = NULL, *long_child = NULL, *any = NULL;
    char label[200];
    memset(label, 'a', sizeof label);
    label[199] = 0;
    nb_result result = nb_token_create(&desc, &root);
    if (result == NB_OK) result = nb_token_child(root, "child", &child);
    if (result == NB_OK) result = nb_token_child(child, label, &long_child);
    if (result == NB_OK) result = nb_token_set_deadline(child, 5, 5);
    if (result == NB_OK) result = nb_token_create_any(&desc, (nb_token *[]){root, child, long_child}, 3, &any);
    if (result == NB_OK) {
        assert_int_equal(expire(root, 5, 0), 3);
        assert_true(nb_token_is_cancelled(any));
    } else if (child != NULL) {
        // Nothing is half done: the deadline was refused, or nobody watches.
        assert_int_equal(cancel(child).token_count, long_child != NULL ? 2 : 1);
    }
    nb_token_release(any);
    nb_token_release(long_child);
    nb_token_release(child);
    nb_token_release(root);
    return result;
}

TEST_IN(token, every_allocation_may_fail) {
    fixture *f = *state;
    for (int persistent = 0; persistent < 2; ++persistent) {
        uint64_t failures = 0;
        for (uint64_t n = 1;; ++n) {
            f->heap.call_count.value = 0;
            f->heap.fail_at = persistent ? 0 : n;
            f->heap.fail_from = persistent ? n : 0;
            nb_result result = live_once(f);
            assert_int_equal(f->heap.live_count.value, 0);
            if (result == NB_OK) break;
            assert_int_equal(result, NB_ERR_MEMORY);
            ++failures;
        }
        // Root, two children, two heaps, the linked token and its three links.
        assert_int_equal(failures, 9);
    }
    assert_int_equal(test_log_count(&f->log, NB_ITEM_BASE_MEMORY), 18);
}

static void never_called(void *user, nb_token *token) {
    (void)token;
    ++*(int *)user;
}

TEST_IN(token, null_arguments_are_refused) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    nb_token *out = NULL;
    nb_cancel_counts counts = {.token_count = 99};
    nb_token_callback callback = {0};
    assert_int_equal(nb_token_create(NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_cancelled(NULL, NB_CANCEL_STALE, 0, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_any(NULL, &root, 1, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_any(NULL, NULL, 1, &out), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_any(NULL, &out, 1, &out), NB_ERR_MISUSE);
    assert_int_equal(nb_token_child(root, "x", NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_child(NULL, "x", &out), NB_ERR_MISUSE);
    assert_null(nb_token_retain(NULL));
    nb_token_release(NULL);
    assert_int_equal(nb_token_reason(NULL).cause, NB_CANCEL_NONE);
    assert_string_equal(nb_token_label(NULL), "");
    assert_int_equal(nb_token_key(NULL), 0);
    char path[4] = "abc";
    assert_int_equal(nb_token_path(NULL, path, sizeof path), 0);
    assert_string_equal(path, "");
    assert_int_equal(nb_token_child_count(NULL), 0);
    assert_int_equal(nb_token_prune(NULL), 0);
    assert_int_equal(nb_token_cancel(NULL, NB_CANCEL_STALE, 0, &counts), NB_ERR_MISUSE);
    assert_int_equal(nb_token_cancel_children(root, NULL, NULL, NB_CANCEL_STALE, 0, &counts), NB_ERR_MISUSE);
    assert_int_equal(nb_token_cancel_children(NULL, is_outside, NULL, NB_CANCEL_STALE, 0, &counts), NB_ERR_MISUSE);
    assert_int_equal(nb_token_cancel_key(NULL, 0, NB_CANCEL_STALE, 0, &counts), NB_ERR_MISUSE);
    assert_int_equal(nb_token_set_deadline(NULL, 1, 1), NB_ERR_MISUSE);
    assert_int_equal(nb_token_expire(NULL, 1, 1, &counts), NB_ERR_MISUSE);
    assert_int_equal(nb_token_callback_register(NULL, &callback, never_called, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_callback_register(root, NULL, never_called, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_callback_register(root, &callback, NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_callback_unregister(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_wait(NULL, 1), NB_ERR_MISUSE);
    assert_int_equal(nb_token_shield_begin(NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_shield_end(NULL, &counts), NB_ERR_MISUSE);
    assert_null(out);
    assert_int_equal(counts.token_count, 99);
    assert_false(nb_token_is_cancelled(root));
    nb_token_release(root);
}

TEST_IN(token, wrong_arguments_are_refused_with_a_report) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    nb_token *out = NULL;
    nb_token_callback callback = {0};
    nb_token_desc desc = {.hooks = f->hooks};
    assert_int_equal(nb_token_cancel(root, NB_CANCEL_COUNT, 0, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_cancelled(&desc, (nb_cancel_cause)-1, 0, &out), NB_ERR_MISUSE);
    assert_int_equal(nb_token_create_any(&desc, &root, 0, &out), NB_ERR_RANGE);
    assert_int_equal(nb_token_create_any(&desc, &root, NB_TOKEN_SOURCE_COUNT_MAX + 1, &out), NB_ERR_RANGE);
    desc.parent = root;
    assert_int_equal(nb_token_create_any(&desc, &root, 1, &out), NB_ERR_MISUSE);
    assert_int_equal(nb_token_callback_register(root, &callback, never_called, NULL), NB_OK);
    assert_int_equal(nb_token_callback_register(root, &callback, never_called, NULL), NB_ERR_MISUSE);
    assert_int_equal(test_log_count(&f->log, NB_ITEM_TOKEN_ARGUMENT), 6);
    assert_null(out);
    assert_false(nb_token_is_cancelled(root));
    assert_string_equal(nb_cancel_cause_name(NB_CANCEL_COUNT), "unknown");
    nb_token_callback_unregister(&callback);
    nb_token_release(root);
}

// A token in the tree's own reserve can be told from a live one. Under the address sanitizer nothing is kept, and the
// sanitizer tells.
TEST_IN(token, released_token_is_found_stale) {
    fixture *f = *state;
    nb_token *root = root_create(f, "root");
    nb_token *child = child_create(root, "child");
    uint64_t live_count = f->heap.live_count.value;
    nb_token_release(child);
    if (f->heap.live_count.value == live_count) {
        nb_token *out = NULL;
        assert_int_equal(nb_token_cancel(child, NB_CANCEL_STALE, 0, NULL), NB_ERR_STALE);
        assert_int_equal(nb_token_child(child, "x", &out), NB_ERR_STALE);
        assert_null(nb_token_retain(child));
        nb_token_release(child);
    }
    // Memory that never was a token.
    uint64_t foreign[64] = {0};
    assert_int_equal(nb_token_cancel((nb_token *)(void *)foreign, NB_CANCEL_STALE, 0, NULL), NB_ERR_STALE);
    assert_int_equal(nb_token_child_count(root), 0);
    assert_int_equal(cancel(root).token_count, 1);
    nb_token_release(root);
}
