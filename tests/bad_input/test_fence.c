// SPDX-License-Identifier: MIT
// nebula/fence.h: fences and frames that are none, foreign threads, calls at the wrong moment.

#include "bad_input/bad_input.h"

#include "nebula/fence.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
#define NO_LABEL ((nb_label){0})
#define NO_FRAME ((nb_fence_frame){0})

static nb_fence *fence_open(test_heap *heap) {
    nb_fence *fence = NULL;
    nb_fence_desc desc = {.ticket_count_max = 4, .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_fence_create(&desc, &fence));
    return fence;
}

static void fence_end(nb_fence *fence, test_heap *heap) {
    accepted(NB_OK, nb_fence_destroy(fence));
    assert_int_equal(heap->live_count.value, 0);
}

static test_heap heap; // of the case that runs

TEST(creation_refuses_a_bad_desc) {
    nb_fence *out = UNTOUCHED(nb_fence);
    nb_fence_desc fine = {.hooks = bad_hooks(&heap)};
    nb_fence_desc bad[7];
    for (size_t i = 0; i < COUNT_OF(bad); ++i) bad[i] = fine;
    bad[0].slot_count = 1;
    bad[1].slot_count = NB_FENCE_SLOT_COUNT_MAX + 1;
    bad[2].slot_count_max = NB_FENCE_SLOT_COUNT_MAX + 1;
    bad[3].slot_count = 5, bad[3].slot_count_max = 4;
    bad[4].slot_count = bad[4].slot_count_max = UINT32_MAX;
    bad[5].ticket_count_max = NB_FENCE_TICKET_COUNT_MAX + 1;
    bad[6].ticket_count_max = UINT32_MAX;
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NB_ERR_RANGE, NB_ITEM_FENCE_ARGUMENT, nb_fence_create(&bad[i], &out));
    }
    const nb_fence_policy policies[] = {NB_FENCE_POLICY_COUNT, (nb_fence_policy)-1};
    for (size_t i = 0; i < COUNT_OF(policies); ++i) {
        nb_fence_desc desc = fine;
        desc.policy = policies[i];
        refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_create(&desc, &out));
    }
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_create(&fine, NULL));
    refused_memory(heap, 1, out, nb_fence_create(&fine, &out));
}

TEST(functions_refuse_null) {
    nb_fence_frame frame = {0x5A5A};
    nb_fence_ticket ticket = {0x5A5A};
    nb_fence_report report;
    nb_fence_stats stats;
    memset(&report, 0x5A, sizeof report);
    accepted(NB_OK, nb_fence_destroy(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_begin(NULL, &frame));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_disown(NULL));
    refused_default(0, NB_ITEM_BASE_NULL, nb_fence_current(NULL).value);
    refused_default(0, NB_ITEM_BASE_NULL, nb_fence_arena_frame(NULL, frame).value);
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_take(NULL, frame, NO_LABEL, &ticket));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_return(NULL, ticket));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_seal(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_wait(NULL, frame, NB_NEVER_NS, NULL, &report));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_poke(NULL, frame));
    refused_default(false, NB_ITEM_BASE_NULL, nb_fence_is_degraded(NULL, frame));
    refused_default(false, NB_ITEM_BASE_NULL, nb_fence_is_quarantined(NULL, NO_LABEL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_forgive(NULL, true));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_fence_close(NULL));
    reported_default(NB_ITEM_BASE_NULL, stats = nb_fence_stats_get(NULL));
    assert_int_equal(stats.frame_count + stats.ticket_count + stats.slot_count, 0);
    assert_int_equal(frame.value, 0x5A5A);
    assert_int_equal(ticket.value, 0x5A5A);
    assert_untouched(report, 0x5A);
    accepted(0, nb_fence_frame_number(NO_FRAME));
    accepted(0, nb_fence_frame_age(NO_FRAME, NO_FRAME));
    accepted(0, nb_fence_frame_age((nb_fence_frame){UINT64_MAX}, NO_FRAME));
}

TEST(out_pointers_may_not_be_null) {
    nb_fence *fence = fence_open(&heap);
    nb_fence_frame frame;
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_begin(fence, NULL));
    accepted(0, nb_fence_current(fence).value);
    accepted(NB_OK, nb_fence_begin(fence, &frame));
    assert_int_equal(nb_fence_frame_number(frame), 1); // the refused call began nothing
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_take(fence, frame, NO_LABEL, NULL));
    accepted(0, nb_fence_stats_get(fence).ticket_count);
    accepted(NB_OK, nb_fence_wait(fence, frame, 0, NULL, NULL)); // a report is not asked for
    fence_end(fence, &heap);
}

// Null, no slot, a slot beyond the ring, a number not begun yet.
TEST(functions_refuse_frames_that_never_were) {
    nb_fence *fence = fence_open(&heap);
    nb_fence_frame frame = {0};
    nb_fence_ticket ticket = {0x5A5A};
    nb_fence_report report;
    memset(&report, 0x5A, sizeof report);
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_take(fence, NO_FRAME, NO_LABEL, &ticket)); // none yet
    refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_wait(fence, NO_FRAME, NB_NEVER_NS, NULL, &report));
    accepted(NB_OK, nb_fence_begin(fence, &frame));
    const nb_fence_frame bad[] = {{5},
                                  {frame.value & ~(uint64_t)0xFF},
                                  {frame.value | 0xFF},
                                  {frame.value + 0x100},
                                  {frame.value + 1},
                                  {UINT64_MAX},
                                  {frame.value + NB_FENCE_SLOT_COUNT_MAX}};
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_take(fence, bad[i], NO_LABEL, &ticket));
        refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_wait(fence, bad[i], NB_NEVER_NS, NULL, &report));
        refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_poke(fence, bad[i]));
        accepted(false, nb_fence_is_degraded(fence, bad[i]));
        accepted(0, nb_fence_arena_frame(fence, bad[i]).value);
    }
    refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_poke(fence, NO_FRAME));
    assert_int_equal(ticket.value, 0x5A5A);
    assert_untouched(report, 0x5A);
    accepted(0, nb_fence_stats_get(fence).ticket_count);
    accepted(0, nb_fence_arena_frame(fence, frame).value); // without arenas
    accepted(NB_OK, nb_fence_wait(fence, frame, NB_NEVER_NS, NULL, NULL));
    fence_end(fence, &heap);
}

TEST(tickets_that_are_none_are_refused) {
    nb_fence *fence = fence_open(&heap);
    nb_fence_frame frame;
    nb_fence_ticket ticket;
    accepted(NB_OK, nb_fence_begin(fence, &frame));
    accepted(NB_OK, nb_fence_take(fence, frame, (nb_label){UINT32_MAX}, &ticket)); // any label will do
    const nb_fence_ticket bad[] = {{0}, {1}, {UINT64_MAX}, {ticket.value + 1}, {ticket.value + ((uint64_t)1 << 22)}};
    for (size_t i = 0; i < COUNT_OF(bad); ++i) {
        refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_return(fence, bad[i]));
    }
    refused(NB_BUSY, NB_ITEM_FENCE_BUSY, nb_fence_destroy(fence));
    accepted(NB_OK, nb_fence_return(fence, ticket));
    refused(NB_ERR_STALE, NB_ITEM_FENCE_STALE, nb_fence_return(fence, ticket));
    accepted(6, nb_fence_stats_get(fence).refused_count);
    fence_end(fence, &heap);
}

TEST(sealing_needs_an_open_frame) {
    nb_fence *fence = fence_open(&heap);
    nb_fence_frame frame;
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_seal(fence));
    accepted(NB_OK, nb_fence_begin(fence, &frame));
    accepted(NB_OK, nb_fence_seal(fence));
    refused(NB_ERR_MISUSE, NB_ITEM_FENCE_ARGUMENT, nb_fence_seal(fence));
    fence_end(fence, &heap);
}

typedef struct stranger {
    nb_fence *fence;
    nb_result begin, seal, forgive, wait;
    nb_fence_frame frame;
} stranger;

static void act_as_stranger(void *user) {
    stranger *s = user;
    nb_fence_frame none = {0x5A5A};
    s->begin = nb_fence_begin(s->fence, &none);
    s->seal = nb_fence_seal(s->fence);
    s->forgive = nb_fence_forgive(s->fence, true);
    s->wait = nb_fence_wait(s->fence, s->frame, 0, NULL, NULL); // allowed, and seals nothing
    if (none.value != 0x5A5A) s->begin = NB_OK;
}

TEST(other_threads_are_not_the_coordinator) {
    stranger s = {.fence = fence_open(&heap)};
    accepted(NB_OK, nb_fence_begin(s.fence, &s.frame));
    LISTENED(OWN_LOGGER, NB_ITEM_FENCE_THREAD, 3, test_thread_run(act_as_stranger, &s));
    assert_int_equal(s.begin, NB_ERR_THREAD);
    assert_int_equal(s.seal, NB_ERR_THREAD);
    assert_int_equal(s.forgive, NB_ERR_THREAD);
    assert_int_equal(s.wait, NB_TIMEOUT);
    accepted(NB_OK, nb_fence_seal(s.fence)); // still open
    fence_end(s.fence, &heap);
}

TEST(closed_fence_refuses_quietly) {
    nb_fence *fence = fence_open(&heap);
    nb_fence_frame frame, none = {0x5A5A};
    nb_fence_ticket ticket = {0x5A5A};
    accepted(NB_OK, nb_fence_begin(fence, &frame));
    accepted(NB_OK, nb_fence_close(fence));
    accepted(NB_OK, nb_fence_close(fence)); // twice is fine
    accepted(NB_CLOSED, nb_fence_begin(fence, &none));
    accepted(NB_CLOSED, nb_fence_take(fence, frame, NO_LABEL, &ticket));
    accepted(NB_CLOSED, nb_fence_take(fence, NO_FRAME, NO_LABEL, &ticket));
    assert_int_equal(none.value, 0x5A5A);
    assert_int_equal(ticket.value, 0x5A5A);
    fence_end(fence, &heap);
}
