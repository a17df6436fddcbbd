// SPDX-License-Identifier: MIT
#pragma once

// How a test case registers itself, so that none can be forgotten:
//
//     TEST(sum_of_nothing_is_zero) { assert_int_equal(sum(NULL, 0), 0); }
//
// The program of a folder (tests/support/runner.c) runs each case in a process of its own, with its own time-out.

#include <stdbool.h>

typedef struct test_case {
    const char *name, *file;
    int line;
    void (*run)(void **state);
    int (*setup)(void **state), (*teardown)(void **state); // either may be NULL
    bool has_one_thread; // starts none, so the thread sanitizer leaves it out; a case that does start one fails
    struct test_case *next;
} test_case;

// Thread: that of the constructors, before main.
void test_case_register(test_case *added);

// The function of a case has a name of its own, so that a helper may be called like the case.
#define TEST_REGISTER(name, setup, teardown, one)                                                      \
    static void case_##name(void **state);                                                             \
    __attribute__((constructor)) static void register_##name(void) {                                   \
        static test_case added = {#name, __FILE__, __LINE__, case_##name, setup, teardown, one, NULL}; \
        test_case_register(&added);                                                                    \
    }

#define TEST(name)                         \
    TEST_REGISTER(name, NULL, NULL, false) \
    static void case_##name(__attribute__((unused)) void **no_state)

// A case that starts no thread, in a file with others that do.
#define TEST_ONE_THREAD(name)             \
    TEST_REGISTER(name, NULL, NULL, true) \
    static void case_##name(__attribute__((unused)) void **no_state)

// A case of a fixture, which defines `fixture_setup` and `fixture_teardown`: these get the same `state` as the body,
// and return 0 on success.
#define TEST_IN(fixture, name)                                      \
    TEST_REGISTER(name, fixture##_setup, fixture##_teardown, false) \
    static void case_##name(__attribute__((unused)) void **state)

// How many threads this process has started so far. Only where the program has the shim of tests/support/faults.c.
// Thread: any.
__attribute__((weak)) unsigned test_threads_started(void);
