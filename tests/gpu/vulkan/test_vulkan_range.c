// SPDX-License-Identifier: MIT
// Ranges of device memory: whatever is taken and given back in whatever order, no two overlap, and all of it becomes
// one again.

#include "support/support.h"

#include "gpu/vulkan/vulkan_range.h"

#define UNIT_COUNT 256u // a model of the block, unit by unit
#define RECORD_COUNT 80u

typedef struct model {
    nbi_range records[RECORD_COUNT];
    nbi_ranges ranges;
    uint32_t first;
    uint32_t owner[UNIT_COUNT]; // 0: free
    uint32_t live[UNIT_COUNT], live_count;
} model;

static void model_open(model *m) {
    memset(m, 0, sizeof *m);
    nbi_ranges_init(&m->ranges, m->records, RECORD_COUNT);
    m->first = nbi_ranges_block(&m->ranges, UNIT_COUNT);
    assert_int_not_equal(m->first, NBI_RANGE_NONE);
}

// The records cover the block without gaps, two free ones are no neighbours, and they say what the model says.
static void model_check(const model *m) {
    uint64_t at = 0;
    uint32_t previous = NBI_RANGE_NONE, count = 0;
    bool was_free = false;
    for (uint32_t i = m->first; i != NBI_RANGE_NONE; i = m->records[i].next) {
        const nbi_range *range = &m->records[i];
        assert_int_equal(range->offset, at);
        assert_int_equal(range->previous, previous);
        assert_true(range->size_bytes > 0);
        assert_false(range->is_free && was_free);
        for (uint64_t unit = at; unit < at + range->size_bytes; ++unit)
            assert_int_equal(m->owner[unit], range->is_free ? 0 : i + 1);
        at += range->size_bytes;
        previous = i;
        was_free = range->is_free;
        ++count;
    }
    assert_int_equal(at, UNIT_COUNT);
    assert_int_equal(count + m->ranges.unused_count, RECORD_COUNT);
}

static bool model_has_room(const model *m, uint64_t size, uint64_t alignment) {
    for (uint64_t at = 0; at + size <= UNIT_COUNT; at += alignment) {
        uint64_t unit = at;
        while (unit < at + size && m->owner[unit] == 0) ++unit;
        if (unit == at + size) return true;
    }
    return false;
}

static void model_take(model *m, uint64_t size, uint64_t alignment) {
    uint32_t range = nbi_ranges_take(&m->ranges, m->first, size, alignment);
    if (range == NBI_RANGE_NONE) {
        assert_true(!model_has_room(m, size, alignment) || m->ranges.unused_count < 2);
        return;
    }
    assert_int_equal(m->records[range].size_bytes, size);
    assert_int_equal(m->records[range].offset % alignment, 0);
    for (uint64_t i = 0; i < size; ++i) {
        uint64_t unit = m->records[range].offset + i;
        assert_int_equal(m->owner[unit], 0);
        m->owner[unit] = range + 1;
    }
    m->live[m->live_count++] = range;
}

static void model_give(model *m, uint32_t at) {
    uint32_t range = m->live[at];
    m->live[at] = m->live[--m->live_count];
    for (uint32_t i = 0; i < UNIT_COUNT; ++i) {
        if (m->owner[i] == range + 1) m->owner[i] = 0;
    }
    nbi_ranges_give(&m->ranges, range);
}

TEST(ranges_never_overlap_and_become_one_again) {
    uint64_t random = test_seed(__func__);
    uint64_t run_count = test_size(50, 500, 5000);
    static model m;
    for (uint64_t run = 0; run < run_count; ++run) {
        model_open(&m);
        for (uint32_t i = 0; i < 200; ++i) {
            uint64_t r = test_random(&random);
            if (r % 5 < 3 || m.live_count == 0)
                model_take(&m, 1 + (r >> 8) % 40, UINT64_C(1) << (r >> 16) % 6);
            else
                model_give(&m, (uint32_t)((r >> 8) % m.live_count));
            model_check(&m);
        }
        while (m.live_count > 0) model_give(&m, m.live_count - 1);
        model_check(&m);
        assert_int_equal(m.records[m.first].size_bytes, UNIT_COUNT);
        nbi_ranges_unblock(&m.ranges, m.first);
        assert_int_equal(m.ranges.unused_count, RECORD_COUNT);
    }
}

TEST(range_without_records_is_refused_and_changes_nothing) {
    nbi_range records[3];
    nbi_ranges ranges;
    nbi_ranges_init(&ranges, records, 3);
    uint32_t first = nbi_ranges_block(&ranges, 100);
    uint32_t range = nbi_ranges_take(&ranges, first, 10, 1);
    assert_int_not_equal(range, NBI_RANGE_NONE);
    assert_int_equal(nbi_ranges_take(&ranges, first, 10, 1), NBI_RANGE_NONE);
    assert_int_equal(ranges.unused_count, 1);
    nbi_ranges_give(&ranges, range);
    assert_int_equal(ranges.unused_count, 2);
    assert_int_equal(records[first].size_bytes, 100);
}
