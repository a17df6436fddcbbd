// SPDX-License-Identifier: MIT
// Snapshots on one thread: what is published is what is read, for as long as it is held; what is copied again, and what
// happens when every slot is held or a filling fails.

#include "support/support.h"

#include "frame/snapshot/snapshot.h"

#define BLOCK 64
#define BLOCK_COUNT 16

typedef struct stage {
    nb_snapshots *snapshots;
    test_log log;
    test_heap heap;
    uint32_t region;
    unsigned char state[BLOCK * BLOCK_COUNT];
    uint64_t versions[BLOCK_COUNT];
} stage;

static void stage_open(stage *s, uint32_t slot_count) {
    memset(s, 0, sizeof *s);
    nb_snapshots_desc desc = {.slot_count = slot_count, .hooks = test_hooks(&s->log, &s->heap)};
    assert_int_equal(nb_snapshots_create(&desc, &s->snapshots), NB_OK);
}

static void stage_add(stage *s, size_t size_bytes) {
    nb_snapshot_region_desc desc = {.name = "state",
                                    .base = s->state,
                                    .size_bytes = size_bytes,
                                    .size_bytes_max = sizeof s->state,
                                    .block_size_bytes = BLOCK,
                                    .block_versions = s->versions};
    assert_int_equal(nb_snapshots_region_add(s->snapshots, &desc, &s->region), NB_OK);
}

static void stage_open_full(stage *s, uint32_t slot_count) {
    stage_open(s, slot_count);
    stage_add(s, sizeof s->state);
}

static void stage_close(stage *s) {
    assert_int_equal(nb_snapshots_destroy(s->snapshots), NB_OK);
    assert_int_equal(s->heap.live_count.value, 0);
    assert_int_equal(s->heap.live_bytes.value, 0);
}

static void publish(stage *s) { assert_int_equal(nb_snapshots_publish(s->snapshots, NULL), NB_OK); }

static void write_block(stage *s, size_t block, int value) {
    memset(s->state + block * BLOCK, value, BLOCK);
    ++s->versions[block];
}

static uint64_t copied_blocks(const stage *s) { return nb_snapshots_stats_get(s->snapshots).copied_blocks; }

// The newest snapshot has exactly the live bytes.
static void assert_same_as_live(const stage *s, size_t size_bytes) {
    const nb_snapshot *snapshot = nb_snapshots_acquire(s->snapshots);
    size_t size = 0;
    const void *bytes = nb_snapshot_region(snapshot, s->region, &size);
    assert_int_equal(size, size_bytes);
    assert_memory_equal(bytes, s->state, size_bytes);
    nb_snapshot_release(snapshot);
}

static stage s; // of the case that runs

// --- publishing and reading ---

TEST(nothing_is_acquired_before_the_first_publication) {
    stage_open(&s, 0);
    assert_null(nb_snapshots_acquire(s.snapshots));
    assert_int_equal(nb_snapshots_version(s.snapshots), 0);
    nb_snapshots_stats stats = nb_snapshots_stats_get(s.snapshots);
    assert_int_equal(stats.slot_count, NB_SNAPSHOT_SLOT_COUNT_DEFAULT);
    assert_int_equal(stats.version + stats.publish_count + stats.pin_count + stats.region_count, 0);
    stage_close(&s);
}

TEST(published_values_reach_the_reader) {
    stage_open_full(&s, 3);
    nb_snapshot_info info = {.frame = 7,
                             .tick = 70,
                             .tick_previous = 69,
                             .epoch = 3,
                             .alpha = 0.25,
                             .budget_ns = 4000000,
                             .quality_level = 2};
    write_block(&s, 3, 'x');
    assert_int_equal(nb_snapshots_publish(s.snapshots, &info), NB_OK);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    assert_int_equal(snapshot->version, 1);
    assert_int_equal(snapshot->info.frame, 7);
    assert_int_equal(snapshot->info.tick, 70);
    assert_int_equal(snapshot->info.tick_previous, 69);
    assert_int_equal(snapshot->info.epoch, 3);
    assert_true(snapshot->info.alpha == 0.25);
    assert_int_equal(snapshot->info.budget_ns, 4000000);
    assert_int_equal(snapshot->info.quality_level, 2);
    assert_int_equal(snapshot->region_count, 1);
    assert_memory_equal(snapshot->regions[s.region].base, s.state, sizeof s.state);
    assert_int_equal((uintptr_t)snapshot->regions[s.region].base % nbi_page_size(), 0);
    nb_snapshot_release(snapshot);
    stage_close(&s);
}

TEST(newest_is_acquired_and_the_old_one_stays) {
    stage_open_full(&s, 3);
    const nb_snapshot *held[2];
    for (int i = 0; i < 2; ++i) {
        write_block(&s, 0, 'a' + i);
        publish(&s);
        held[i] = nb_snapshots_acquire(s.snapshots);
        assert_int_equal(held[i]->version, i + 1);
    }
    assert_ptr_not_equal(held[0], held[1]);
    assert_int_equal(*(const char *)held[0]->regions[0].base, 'a');
    assert_int_equal(*(const char *)held[1]->regions[0].base, 'b');
    nb_snapshots_stats stats = nb_snapshots_stats_get(s.snapshots);
    assert_int_equal(stats.pin_count, 2);
    assert_int_equal(stats.pinned_slots, 2);
    assert_int_equal(stats.oldest_pinned_version, 1);
    nb_snapshot_release(held[0]);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).oldest_pinned_version, 2);
    nb_snapshot_release(held[1]);
    stage_close(&s);
}

TEST(retained_snapshot_needs_both_releases) {
    stage_open_full(&s, 3);
    publish(&s);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    assert_ptr_equal(nb_snapshot_retain(snapshot), snapshot);
    nb_snapshot_release(snapshot);
    for (int i = 0; i < 10; ++i) {
        write_block(&s, 0, i);
        publish(&s);
    }
    assert_int_equal(snapshot->version, 1);
    assert_int_equal(*(const char *)snapshot->regions[0].base, 0);
    assert_int_equal(nb_snapshots_destroy(s.snapshots), NB_BUSY);
    assert_int_equal(test_log_count(&s.log, NB_ITEM_SNAPSHOT_BUSY), 1);
    nb_snapshot_release(snapshot);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).pin_count, 0);
    stage_close(&s);
}

// Double buffering would have written over it at the second publication.
TEST(snapshot_held_for_many_frames_is_never_written) {
    stage_open_full(&s, 3);
    memset(s.state, 0x11, sizeof s.state);
    publish(&s);
    const nb_snapshot *held = nb_snapshots_acquire(s.snapshots);
    unsigned char expected[sizeof s.state];
    memcpy(expected, s.state, sizeof expected);
    for (int i = 0; i < 1000; ++i) {
        write_block(&s, (size_t)i % BLOCK_COUNT, i);
        publish(&s); // never full: two slots are left
        assert_memory_equal(held->regions[0].base, expected, sizeof expected);
    }
    assert_same_as_live(&s, sizeof s.state);
    nb_snapshot_release(held);
    stage_close(&s);
}

// --- no free slot ---

TEST(leaked_pins_skip_publications_and_say_so_once) {
    stage_open_full(&s, 3);
    const nb_snapshot *held[3];
    for (int i = 0; i < 3; ++i) {
        write_block(&s, 0, 'a' + i);
        publish(&s);
        held[i] = nb_snapshots_acquire(s.snapshots);
    }
    for (int run = 1; run <= 2; ++run) {
        uint64_t version = nb_snapshots_version(s.snapshots);
        for (int i = 0; i < 5; ++i) {
            write_block(&s, 0, 'z');
            assert_int_equal(nb_snapshots_publish(s.snapshots, NULL), NB_FULL);
        }
        assert_int_equal(test_log_count(&s.log, NB_ITEM_SNAPSHOT_SKIPPED), run);
        assert_int_equal(nb_snapshots_stats_get(s.snapshots).skip_count, 5 * run);
        const nb_snapshot *last = nb_snapshots_acquire(s.snapshots); // readers keep the last one
        assert_int_equal(last->version, version);
        nb_snapshot_release(last);
        // One reader lets go: it goes on, with everything that was not published meanwhile.
        nb_snapshot_release(held[run - 1]);
        publish(&s);
        assert_int_equal(nb_snapshots_version(s.snapshots), version + 1);
        assert_same_as_live(&s, sizeof s.state);
        held[run - 1] = nb_snapshots_acquire(s.snapshots);
    }
    assert_int_equal(*(const char *)held[2]->regions[0].base, 'c');
    for (int i = 0; i < 3; ++i) nb_snapshot_release(held[i]);
    stage_close(&s);
}

TEST(one_leaked_pin_stops_nothing) {
    stage_open_full(&s, 3);
    publish(&s);
    const nb_snapshot *leaked = nb_snapshots_acquire(s.snapshots);
    for (int i = 0; i < 100; ++i) publish(&s);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).skip_count, 0);
    assert_int_equal(leaked->version, 1);
    nb_snapshot_release(leaked);
    stage_close(&s);
}

// --- what is copied ---

TEST(only_changed_blocks_are_copied) {
    stage_open_full(&s, 4);
    publish(&s);
    assert_int_equal(copied_blocks(&s), BLOCK_COUNT);
    publish(&s); // a slot that was never filled
    assert_int_equal(copied_blocks(&s), BLOCK_COUNT);
    publish(&s); // back in the first
    assert_int_equal(copied_blocks(&s), 0);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_bytes, 0);
    write_block(&s, 5, 1);
    write_block(&s, 6, 1);
    write_block(&s, 15, 1);
    publish(&s);
    assert_int_equal(copied_blocks(&s), 3);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_bytes, 3 * BLOCK);
    assert_same_as_live(&s, sizeof s.state);
    write_block(&s, 0, 2);
    publish(&s); // the other slot lacks the three before as well
    assert_int_equal(copied_blocks(&s), 4);
    assert_same_as_live(&s, sizeof s.state);
    nb_snapshots_stats stats = nb_snapshots_stats_get(s.snapshots);
    assert_int_equal(stats.copied_blocks_total, 2 * BLOCK_COUNT + 7);
    assert_int_equal(stats.copied_bytes_total, (2 * BLOCK_COUNT + 7) * BLOCK);
    stage_close(&s);
}

TEST(unmarked_write_is_not_copied) {
    stage_open_full(&s, 3);
    for (int i = 0; i < 3; ++i) publish(&s);
    s.state[0] = 'x'; // without a new version: the owner's mistake, and the proof that nothing is copied for nothing
    publish(&s);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    assert_int_equal(*(const char *)snapshot->regions[0].base, 0);
    nb_snapshot_release(snapshot);
    stage_close(&s);
}

TEST(version_may_be_any_other_number) {
    stage_open_full(&s, 3);
    s.versions[2] = UINT64_MAX;
    for (int i = 0; i < 3; ++i) publish(&s);
    s.state[2 * BLOCK] = 'x';
    s.versions[2] = 5; // smaller than before: an owner's counter that has wrapped, or a time of another clock
    publish(&s);
    assert_int_equal(copied_blocks(&s), 1);
    assert_same_as_live(&s, sizeof s.state);
    stage_close(&s);
}

// Slots that readers kept from being filled for a while copy all that changed meanwhile.
TEST(random_writes_and_pins_always_read_as_written) {
    stage_open(&s, 5);
    stage_add(&s, sizeof s.state - 7); // the last block is short
    uint64_t random = test_seed("random_writes_and_pins_always_read_as_written");
    const nb_snapshot *held[3] = {NULL};
    unsigned char copies[3][sizeof s.state];
    for (uint64_t i = 0; i < test_size(2000, 50000, 1000000); ++i) {
        for (uint64_t n = test_random(&random) % 4; n > 0; --n) {
            write_block(&s, test_random(&random) % BLOCK_COUNT, (int)(test_random(&random) & 255));
        }
        publish(&s);
        assert_same_as_live(&s, sizeof s.state - 7);
        uint64_t at = test_random(&random) % 3;
        if (held[at] != NULL) assert_memory_equal(held[at]->regions[0].base, copies[at], sizeof s.state - 7);
        nb_snapshot_release(held[at]);
        held[at] = test_random(&random) % 2 != 0 ? nb_snapshots_acquire(s.snapshots) : NULL;
        memcpy(copies[at], s.state, sizeof s.state);
    }
    for (int i = 0; i < 3; ++i) nb_snapshot_release(held[i]);
    stage_close(&s);
}

TEST(region_without_versions_is_copied_whole) {
    stage_open(&s, 3);
    nb_snapshot_region_desc desc = {.name = "plain", .base = s.state, .size_bytes = 100};
    assert_int_equal(nb_snapshots_region_add(s.snapshots, &desc, &s.region), NB_OK);
    for (int i = 0; i < 6; ++i) {
        s.state[99] = (unsigned char)i;
        publish(&s);
        assert_int_equal(copied_blocks(&s), 1);
        assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_bytes, 100);
        assert_same_as_live(&s, 100);
    }
    stage_close(&s);
}

// --- memory that moves, grows and shrinks ---

TEST(grown_and_shrunk_regions_read_as_they_are) {
    stage_open(&s, 3);
    stage_add(&s, 0);
    uint64_t random = test_seed("grown_and_shrunk_regions_read_as_they_are");
    for (int i = 0; i < 2000; ++i) {
        size_t size_bytes = test_random(&random) % (sizeof s.state + 1);
        write_block(&s, test_random(&random) % BLOCK_COUNT, i);
        assert_int_equal(nb_snapshots_region_move(s.snapshots, s.region, s.state, size_bytes, s.versions), NB_OK);
        publish(&s);
        assert_same_as_live(&s, size_bytes);
    }
    assert_int_equal(nb_snapshots_region_move(s.snapshots, s.region, NULL, 0, NULL), NB_OK);
    publish(&s);
    assert_same_as_live(&s, 0);
    assert_int_equal(copied_blocks(&s), 0);
    stage_close(&s);
}

// Rows appended within the last block, without a mark: the block's new part is copied all the same.
TEST(bytes_beyond_the_old_size_are_copied) {
    stage_open(&s, 3);
    memset(s.state, 'q', sizeof s.state);
    stage_add(&s, BLOCK + 10);
    for (int i = 0; i < 3; ++i) publish(&s);
    assert_int_equal(nb_snapshots_region_move(s.snapshots, s.region, s.state, 3 * BLOCK - 1, s.versions), NB_OK);
    publish(&s);
    assert_int_equal(copied_blocks(&s), 2);
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_bytes, 2 * BLOCK - 1);
    assert_same_as_live(&s, 3 * BLOCK - 1);
    stage_close(&s);
}

TEST(moved_memory_is_read_from_its_new_place) {
    stage_open_full(&s, 3);
    for (int i = 0; i < 3; ++i) publish(&s);
    unsigned char elsewhere[sizeof s.state] = {0};
    uint64_t versions[BLOCK_COUNT] = {0};
    assert_int_equal(nb_snapshots_region_move(s.snapshots, s.region, elsewhere, sizeof elsewhere, versions), NB_OK);
    publish(&s);
    assert_int_equal(copied_blocks(&s), 0); // a move alone changes no byte
    memset(s.state, 'x', sizeof s.state);
    elsewhere[BLOCK] = 'y';
    ++versions[1];
    publish(&s);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    assert_memory_equal(snapshot->regions[0].base, elsewhere, sizeof elsewhere);
    nb_snapshot_release(snapshot);
    stage_close(&s);
}

TEST(region_added_later_is_in_later_publications) {
    stage_open_full(&s, 3);
    publish(&s);
    const nb_snapshot *before = nb_snapshots_acquire(s.snapshots);
    uint32_t late = 0, found = 77;
    nb_snapshot_region_desc desc = {.name = "late", .base = "abc", .size_bytes = 4};
    assert_int_equal(nb_snapshots_region_find(s.snapshots, "late", &found), NB_EMPTY);
    assert_int_equal(nb_snapshots_region_add(s.snapshots, &desc, &late), NB_OK);
    assert_int_equal(nb_snapshots_region_find(s.snapshots, "late", &found), NB_OK);
    assert_int_equal(found, late);
    publish(&s);
    const nb_snapshot *after = nb_snapshots_acquire(s.snapshots);
    size_t size = 5;
    assert_null(nb_snapshot_region(before, late, &size));
    assert_int_equal(size, 0);
    assert_string_equal((const char *)nb_snapshot_region(after, late, NULL), "abc");
    nb_snapshot_release(before);
    nb_snapshot_release(after);
    assert_int_equal(test_log_count(&s.log, NB_ITEM_SNAPSHOT_ARGUMENT), 0);
    stage_close(&s);
}

// --- regions written by the host ---

typedef struct writer {
    nb_result result;
    size_t size_bytes;
    nb_snapshot_fill seen; // what the last call got
    char text_before[16];  // what the memory held then
    char text[16];
} writer;

static nb_result writer_fill(void *user, const nb_snapshot_fill *fill, size_t *size_bytes) {
    writer *w = user;
    w->seen = *fill;
    memcpy(w->text_before, fill->memory, sizeof w->text_before);
    memcpy(fill->memory, w->text, sizeof w->text);
    *size_bytes = w->size_bytes;
    return w->result;
}

static void writer_add(const char *name, writer *w) {
    nb_snapshot_region_desc desc = {.name = name, .size_bytes_max = 100, .fill = writer_fill, .user = w};
    assert_int_equal(nb_snapshots_region_add(s.snapshots, &desc, &s.region), NB_OK);
}

static void assert_text(const char *expected) {
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    size_t size = 0;
    assert_string_equal((const char *)nb_snapshot_region(snapshot, s.region, &size), expected);
    assert_int_equal(size, 16);
    nb_snapshot_release(snapshot);
}

TEST(fill_callback_knows_what_the_memory_holds) {
    writer w = {.size_bytes = 16};
    stage_open(&s, 3);
    writer_add("writer", &w);
    for (uint64_t version = 1; version <= 6; ++version) {
        snprintf(w.text, sizeof w.text, "version %d", (int)version);
        publish(&s);
        assert_text(w.text);
        assert_int_equal(w.seen.version, version);
        assert_int_equal(w.seen.capacity_bytes, 100);
        // Two slots take turns while nobody holds one.
        assert_int_equal(w.seen.version_before, version > 2 ? version - 2 : 0);
        assert_int_equal(w.seen.size_before_bytes, version > 2 ? 16 : 0);
        char before[16] = "";
        if (version > 2) snprintf(before, sizeof before, "version %d", (int)version - 2);
        assert_string_equal(w.text_before, before);
    }
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_bytes, 16);
    stage_close(&s);
}

TEST(failed_filling_keeps_the_last_publication) {
    writer first = {.size_bytes = 16}, w = {.size_bytes = 16, .text = "good"};
    stage_open_full(&s, 3);
    writer_add("first", &first);
    writer_add("writer", &w);
    for (int i = 0; i < 3; ++i) publish(&s);
    write_block(&s, 0, 'n');
    snprintf(w.text, sizeof w.text, "bad");
    w.result = NB_ERR_OS;
    assert_int_equal(nb_snapshots_publish(s.snapshots, NULL), NB_ERR_OS);
    w.result = NB_OK;
    w.size_bytes = 101;
    assert_int_equal(nb_snapshots_publish(s.snapshots, NULL), NB_ERR_RANGE);
    assert_int_equal(test_log_count(&s.log, NB_ITEM_SNAPSHOT_FILL), 2);
    nb_snapshots_stats stats = nb_snapshots_stats_get(s.snapshots);
    assert_int_equal(stats.fail_count, 2);
    assert_int_equal(stats.version, 3);
    assert_int_equal(stats.skip_count, 0);
    assert_text("good");
    w.size_bytes = 16;
    snprintf(w.text, sizeof w.text, "new");
    publish(&s);
    assert_int_equal(w.seen.version, 4);
    // Nothing of a failed attempt counts as known, not even what was written in full: its number is another's now.
    assert_int_equal(first.seen.version_before + w.seen.version_before, 0);
    assert_text("new");
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    assert_memory_equal(snapshot->regions[0].base, s.state, sizeof s.state);
    nb_snapshot_release(snapshot);
    stage_close(&s);
}

typedef struct climber {
    nb_snapshots *snapshots;
    nb_result publish, add, move, disown, destroy;
} climber;

static nb_result climb(void *user, const nb_snapshot_fill *fill, size_t *size_bytes) {
    climber *c = user;
    (void)fill;
    uint32_t region;
    nb_snapshot_region_desc desc = {.name = "new", .base = "x", .size_bytes = 1};
    c->publish = nb_snapshots_publish(c->snapshots, NULL);
    c->add = nb_snapshots_region_add(c->snapshots, &desc, &region);
    c->move = nb_snapshots_region_move(c->snapshots, 0, NULL, 0, NULL);
    c->disown = nb_snapshots_disown(c->snapshots);
    c->destroy = nb_snapshots_destroy(c->snapshots);
    *size_bytes = 0;
    return NB_OK;
}

TEST(fill_callback_may_not_publish) {
    stage_open(&s, 3);
    climber c = {.snapshots = s.snapshots};
    nb_snapshot_region_desc desc = {.name = "climber", .size_bytes_max = 1, .fill = climb, .user = &c};
    assert_int_equal(nb_snapshots_region_add(s.snapshots, &desc, &s.region), NB_OK);
    publish(&s);
    assert_int_equal(c.publish, NB_ERR_MISUSE);
    assert_int_equal(c.add, NB_ERR_MISUSE);
    assert_int_equal(c.move, NB_ERR_MISUSE);
    assert_int_equal(c.disown, NB_ERR_MISUSE);
    assert_int_equal(c.destroy, NB_BUSY);
    assert_int_equal(nb_snapshots_version(s.snapshots), 1);
    stage_close(&s);
}

// --- limits ---

TEST(snapshot_takes_no_more_pins_than_it_can_count) {
    stage_open(&s, 3);
    publish(&s);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    for (uint32_t i = 1; i < NB_SNAPSHOT_PIN_COUNT_MAX; ++i) {
        if (nb_snapshot_retain(snapshot) != snapshot) fail();
    }
    assert_null(nb_snapshot_retain(snapshot));
    assert_null(nb_snapshots_acquire(s.snapshots));
    assert_int_equal(test_log_count(&s.log, NB_ITEM_SNAPSHOT_STALE), 2);
    nb_snapshots_stats stats = nb_snapshots_stats_get(s.snapshots);
    assert_int_equal(stats.pin_count, NB_SNAPSHOT_PIN_COUNT_MAX);
    assert_int_equal(stats.oldest_pinned_version, 1);
    for (uint32_t i = 0; i < NB_SNAPSHOT_PIN_COUNT_MAX; ++i) nb_snapshot_release(snapshot);
    stage_close(&s);
}

TEST(versions_end_and_never_wrap) {
    stage_open(&s, 3);
    nbi_snapshots_set_version(s.snapshots, NBI_SNAPSHOT_VERSION_MAX - 3);
    for (uint64_t left = 3; left > 0; --left) {
        publish(&s);
        const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
        assert_true(snapshot->version == NBI_SNAPSHOT_VERSION_MAX - left + 1);
        nb_snapshot_release(snapshot);
    }
    assert_int_equal(nb_snapshots_publish(s.snapshots, NULL), NB_ERR_RANGE);
    assert_true(nb_snapshots_version(s.snapshots) == NBI_SNAPSHOT_VERSION_MAX);
    stage_close(&s);
}

TEST(slots_nobody_needs_are_never_used) {
    stage_open(&s, NB_SNAPSHOT_SLOT_COUNT_MAX);
    stage_add(&s, sizeof s.state);
    for (int i = 0; i < 100; ++i) publish(&s);
    // Two fillings of everything, and nothing after them.
    assert_int_equal(nb_snapshots_stats_get(s.snapshots).copied_blocks_total, 2 * BLOCK_COUNT);
    stage_close(&s);
}

TEST(address_tells_region_and_version) {
    stage_open_full(&s, 3);
    nb_snapshot_region_desc desc = {.name = "other", .base = s.state, .size_bytes = sizeof s.state};
    uint32_t other = 0;
    assert_int_equal(nb_snapshots_region_add(s.snapshots, &desc, &other), NB_OK);
    for (int i = 0; i < 4; ++i) publish(&s);
    const nb_snapshot *snapshot = nb_snapshots_acquire(s.snapshots);
    nb_snapshot_place place;
    const char *address = (const char *)snapshot->regions[other].base + 17;
    assert_int_equal(nb_snapshots_locate(s.snapshots, address, &place), NB_OK);
    assert_string_equal(place.name, "other");
    assert_int_equal(place.region, other);
    assert_int_equal(place.offset_bytes, 17);
    assert_int_equal(place.version, 4);
    assert_int_equal(nb_snapshots_locate(s.snapshots, s.state, &place), NB_EMPTY);
    assert_int_equal(nb_snapshots_locate(s.snapshots, NULL, &place), NB_EMPTY);
    nb_snapshot_release(snapshot);
    stage_close(&s);
}
