// SPDX-License-Identifier: MIT
// Cancellation: the check that work makes all the time, and the cancel that happens once.

#include "bench.h"
#include "peers/peers.h"

#include <nebula/token.h>

#include <stdlib.h>

// A check takes a fraction of a nanosecond; this many take some milliseconds.
#define CHECKS ((size_t)1 << 24)
#define TREE_TOKENS ((size_t)1000000)
#define CHILDREN ((size_t)200000)

typedef struct token_fixture {
    nb_token *root;
    uint32_t bare_flag;
    nb_token **tokens; // room for TREE_TOKENS
} token_fixture;

static void close_fixture(void *context) {
    token_fixture *fixture = context;
    nb_token_release(fixture->root);
    free(fixture->tokens);
    free(fixture);
}

static void *open_fixture(void) {
    token_fixture *fixture = calloc(1, sizeof *fixture);
    if (!fixture) return NULL;
    fixture->tokens = calloc(TREE_TOKENS, sizeof *fixture->tokens);
    if (fixture->tokens && nb_token_create(NULL, &fixture->root) == NB_OK) return fixture;
    close_fixture(fixture);
    return NULL;
}

// The two loops differ in the one line they compare. An atomic load is neither merged nor moved out of the loop by the
// compilers in use, so no barrier is needed that would tell them apart.
BENCH_NOINLINE static size_t check_nebula(const nb_token *token, size_t count) {
    size_t i = 0;
    for (; i < count; ++i)
        if (nb_token_is_cancelled(token)) break;
    return i;
}

BENCH_NOINLINE static size_t check_bare(const uint32_t *flag, size_t count) {
    size_t i = 0;
    for (; i < count; ++i)
        if (__atomic_load_n(flag, __ATOMIC_RELAXED)) break;
    return i;
}

static bool run_check_nebula(void *context, const void *argument, double *values) {
    const token_fixture *fixture = context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    size_t done = check_nebula(fixture->root, CHECKS);
    values[0] = (double)(bench_now_ns() - start_ns) / (double)CHECKS;
    return done == CHECKS;
}

static bool run_check_bare(void *context, const void *argument, double *values) {
    const token_fixture *fixture = context;
    (void)argument;
    uint64_t start_ns = bench_now_ns();
    size_t done = check_bare(&fixture->bare_flag, CHECKS);
    values[0] = (double)(bench_now_ns() - start_ns) / (double)CHECKS;
    return done == CHECKS;
}

// A million tokens under one root, side by side or each below the one before; then one cancel at the root.
static bool cancel_tree(token_fixture *fixture, bool is_deep, double *values) {
    nb_token *root = NULL;
    nb_cancel_counts counts = {0, 0, 0};
    if (nb_token_create(NULL, &root) != NB_OK) return false;
    bool is_good = true;
    size_t made = 0;
    for (nb_token *parent = root; is_good && made < TREE_TOKENS; made += is_good) {
        is_good = nb_token_child(parent, "node", &fixture->tokens[made]) == NB_OK;
        if (is_good && is_deep) parent = fixture->tokens[made];
    }
    uint64_t start_ns = bench_now_ns();
    is_good = is_good && nb_token_cancel(root, NB_CANCEL_REQUESTED, 0, &counts) == NB_OK;
    values[0] = (double)(bench_now_ns() - start_ns) / (double)TREE_TOKENS;
    for (size_t i = 0; i < made; ++i) nb_token_release(fixture->tokens[i]);
    nb_token_release(root);
    return is_good && counts.token_count == TREE_TOKENS + 1;
}

static bool run_wide_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    return cancel_tree(context, false, values);
}

static bool run_deep_nebula(void *context, const void *argument, double *values) {
    (void)argument;
    return cancel_tree(context, true, values);
}

static bool run_child_nebula(void *context, const void *argument, double *values) {
    token_fixture *fixture = context;
    (void)argument;
    bool is_good = true;
    uint64_t start_ns = bench_now_ns();
    for (size_t i = 0; is_good && i < CHILDREN; ++i) {
        nb_token *child = NULL;
        is_good = nb_token_child(fixture->root, "child", &child) == NB_OK;
        nb_token_release(child);
    }
    values[0] = (double)(bench_now_ns() - start_ns) / (double)CHILDREN;
    return is_good;
}

#if BENCH_HAVE_STOP_TOKEN
typedef struct stop_work {
    double (*run)(size_t count);
    size_t count;
} stop_work;

static const stop_work stop_check = {peer_stop_token_check, CHECKS};
static const stop_work stop_wide = {peer_stop_token_cancel_wide, TREE_TOKENS};
static const stop_work stop_deep = {peer_stop_token_cancel_deep, TREE_TOKENS};
static const stop_work stop_child = {peer_stop_token_child, CHILDREN};

static bool run_stop(void *context, const void *argument, double *values) {
    const stop_work *work = argument;
    (void)context;
    double elapsed_ns = work->run(work->count);
    values[0] = elapsed_ns / (double)work->count;
    return elapsed_ns >= 0.0;
}
#endif

#define STOP_PEER(name, work) \
    BENCH_CONTENDER_IF(BENCH_HAVE_STOP_TOKEN, name, BENCH_PEER, run_stop, work, "g++ with C++20")

static const bench_row check_rows[] = {
    {.name = "token.check", .unit = "ns", .goals = {{.kind = BENCH_GOAL_PEER, .factor = 1.05, .peer = "bare_load"}}},
};
static const bench_contender check_contenders[] = {
    {"nebula", BENCH_NEBULA, run_check_nebula, NULL, NULL},
    {"bare_load", BENCH_PEER, run_check_bare, NULL, NULL},
    STOP_PEER("std::stop_token", &stop_check),
};

static const bench_row wide_rows[] = {{.name = "token.cancel_1m_wide", .unit = "ns/token"}};
static const bench_contender wide_contenders[] = {
    {"nebula", BENCH_NEBULA, run_wide_nebula, NULL, NULL},
    STOP_PEER("std::stop_callback", &stop_wide),
};

static const bench_row deep_rows[] = {{.name = "token.cancel_1m_deep", .unit = "ns/token"}};
static const bench_contender deep_contenders[] = {
    {"nebula", BENCH_NEBULA, run_deep_nebula, NULL, NULL},
    STOP_PEER("std::stop_callback", &stop_deep),
};

static const bench_row child_rows[] = {{.name = "token.child_release", .unit = "ns"}};
static const bench_contender child_contenders[] = {
    {"nebula", BENCH_NEBULA, run_child_nebula, NULL, NULL},
    STOP_PEER("std::stop_callback", &stop_child),
};

static const bench_case cases[] = {
    {"token.check", "is it cancelled?, asked in a loop", check_rows, BENCH_COUNT(check_rows), check_contenders,
     BENCH_COUNT(check_contenders), 5, open_fixture, close_fixture},
    {"token.cancel_1m_wide", "one cancel over 1,000,000 children of one token", wide_rows, BENCH_COUNT(wide_rows),
     wide_contenders, BENCH_COUNT(wide_contenders), 1, open_fixture, close_fixture},
    {"token.cancel_1m_deep", "one cancel over a chain of 1,000,000 tokens", deep_rows, BENCH_COUNT(deep_rows),
     deep_contenders, BENCH_COUNT(deep_contenders), 1, open_fixture, close_fixture},
    {"token.child_release", "a child made and released; a stop_source with a callback made and destroyed", child_rows,
     BENCH_COUNT(child_rows), child_contenders, BENCH_COUNT(child_contenders), 1, open_fixture, close_fixture},
};

const bench_case *bench_token_cases(size_t *count) {
    *count = BENCH_COUNT(cases);
    return cases;
}
