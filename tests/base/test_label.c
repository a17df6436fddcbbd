// SPDX-License-Identifier: MIT
// Interned names: one label a name for every thread, limits, bad input.

#include "support/support.h"

#include "nebula/label.h"

static nb_labels *labels_with(uint32_t label_count_max, uint32_t name_bytes_max, test_log *log, test_heap *heap) {
    nb_labels_desc desc = {
        .label_count_max = label_count_max, .name_bytes_max = name_bytes_max, .hooks = test_hooks(log, heap)};
    nb_labels *labels = NULL;
    assert_int_equal(nb_labels_create(&desc, &labels), NB_OK);
    return labels;
}

static nb_label intern(nb_labels *labels, const char *name) {
    nb_label label = {0};
    assert_int_equal(nb_labels_intern(labels, name, &label), NB_OK);
    return label;
}

TEST(label_of_equal_names_is_equal_and_outlives_the_string) {
    test_heap heap = {0};
    nb_labels *labels = labels_with(0, 0, NULL, &heap);
    char name[] = "physics";
    nb_label first = intern(labels, name);
    nb_label other = intern(labels, "render");
    memset(name, 'x', sizeof name - 1);
    assert_int_not_equal(first.id, 0);
    assert_int_not_equal(first.id, other.id);
    assert_int_equal(intern(labels, "physics").id, first.id);
    assert_string_equal(nb_labels_name(labels, first), "physics");
    assert_string_equal(nb_labels_name(labels, other), "render");
    assert_int_equal(nb_labels_stats_get(labels).label_count, 2);
    assert_int_equal(nb_labels_stats_get(labels).name_bytes, sizeof "physics" + sizeof "render");
    nb_labels_destroy(labels);
    assert_int_equal(heap.live_count.value, 0);
}

TEST(label_of_the_empty_name_is_null) {
    nb_labels *labels = labels_with(0, 0, NULL, NULL);
    assert_int_equal(intern(labels, "").id, 0);
    assert_string_equal(nb_labels_name(labels, (nb_label){0}), "");
    assert_int_equal(nb_labels_stats_get(labels).label_count, 0);
    nb_labels_destroy(labels);
}

TEST(label_table_full_of_labels_refuses_new_names_only) {
    test_log log = {0};
    nb_labels *labels = labels_with(3, 0, &log, NULL);
    char name[16];
    for (int i = 0; i < 3; ++i) {
        snprintf(name, sizeof name, "name%d", i);
        intern(labels, name);
    }
    nb_label label = {77};
    assert_int_equal(nb_labels_intern(labels, "one more", &label), NB_FULL);
    assert_int_equal(nb_labels_intern(labels, "another", &label), NB_FULL);
    assert_int_equal(label.id, 77);
    assert_int_equal(intern(labels, "name1").id, 2);
    assert_int_equal(nb_labels_stats_get(labels).full_count, 2);
    assert_int_equal(test_log_count(&log, NB_ITEM_LABEL_FULL), 1);
    nb_labels_destroy(labels);
}

TEST(label_table_full_of_bytes_still_takes_a_shorter_name) {
    test_log log = {0};
    nb_labels *labels = labels_with(8, 10, &log, NULL);
    nb_label label = {0};
    intern(labels, "abcdef"); // 7 bytes of 10
    assert_int_equal(nb_labels_intern(labels, "xyz", &label), NB_FULL);
    assert_int_equal(intern(labels, "xy").id, 2);
    assert_string_equal(nb_labels_name(labels, (nb_label){2}), "xy");
    assert_int_equal(nb_labels_intern(labels, "z", &label), NB_FULL);
    nb_labels_destroy(labels);
}

TEST(label_of_a_long_name_is_exact_up_to_the_limit) {
    test_log log = {0};
    nb_labels *labels = labels_with(0, 0, &log, NULL);
    char name[NB_LABEL_SIZE_MAX + 2];
    memset(name, 'n', sizeof name);
    name[NB_LABEL_SIZE_MAX + 1] = '\0';
    nb_label label = {5};
    assert_int_equal(nb_labels_intern(labels, name, &label), NB_ERR_RANGE);
    assert_int_equal(label.id, 5);
    name[NB_LABEL_SIZE_MAX] = '\0';
    assert_string_equal(nb_labels_name(labels, intern(labels, name)), name);
    assert_int_equal(test_log_count(&log, NB_ITEM_LABEL_ARGUMENT), 1);
    nb_labels_destroy(labels);
}

TEST(label_bad_arguments_are_refused) {
    test_log log = {0};
    nb_labels *labels = labels_with(4, 0, &log, NULL);
    nb_label label = {0};
    assert_int_equal(nb_labels_intern(NULL, "x", &label), NB_ERR_MISUSE);
    assert_int_equal(nb_labels_intern(labels, NULL, &label), NB_ERR_MISUSE);
    assert_int_equal(nb_labels_intern(labels, "x", NULL), NB_ERR_MISUSE);
    assert_string_equal(nb_labels_name(labels, (nb_label){1}), "?");
    assert_string_equal(nb_labels_name(labels, (nb_label){UINT32_MAX}), "?");
    assert_string_equal(nb_labels_name(NULL, (nb_label){1}), "?");
    assert_int_equal(nb_labels_stats_get(NULL).label_count_max, 0);
    assert_int_equal(test_log_count(&log, NB_ITEM_LABEL_ARGUMENT), 4);
    nb_labels_destroy(labels);
    nb_labels_destroy(NULL);

    nb_labels_desc desc = {.label_count_max = NB_LABEL_COUNT_MAX + 1, .hooks = test_hooks(&log, NULL)};
    assert_int_equal(nb_labels_create(&desc, &labels), NB_ERR_RANGE);
    assert_int_equal(nb_labels_create(NULL, NULL), NB_ERR_MISUSE);
}

TEST(label_table_without_memory_is_not_created) {
    test_log log = {0};
    test_heap heap = {.fail_at = 1};
    nb_labels_desc desc = {.hooks = test_hooks(&log, &heap)};
    nb_labels *labels = NULL;
    assert_int_equal(nb_labels_create(&desc, &labels), NB_ERR_MEMORY);
    assert_not_created(labels, &heap, &log, NB_ITEM_BASE_MEMORY);
}

TEST(label_desc_default_creates_the_same_table_as_null) {
    nb_labels_desc desc = nb_labels_desc_default();
    nb_labels *spelled = NULL, *implied = NULL;
    assert_int_equal(nb_labels_create(&desc, &spelled), NB_OK);
    assert_int_equal(nb_labels_create(NULL, &implied), NB_OK);
    nb_labels_stats a = nb_labels_stats_get(spelled), b = nb_labels_stats_get(implied);
    assert_int_equal(a.label_count_max, b.label_count_max);
    assert_int_equal(a.name_bytes_max, b.name_bytes_max);
    nb_labels_destroy(spelled);
    nb_labels_destroy(implied);
}

#define RACE_THREADS 4

typedef struct intern_race {
    nb_labels *labels;
    uint32_t name_count;
    uint32_t *ids; // [thread][name]
    test_gate gate;
    nb_atomic_u32 wrong_count;
} intern_race;

// Each thread walks the same names from another start, so that first uses collide; names are read back at once.
static void intern_all(void *user, uint32_t index) {
    intern_race *race = (intern_race *)user;
    test_gate_pass(&race->gate, RACE_THREADS);
    for (uint32_t i = 0; i < race->name_count; ++i) {
        uint32_t number = (i + index / 2) % race->name_count;
        char name[24];
        snprintf(name, sizeof name, "name %u", number);
        nb_label label = {0};
        bool is_ok = nb_labels_intern(race->labels, name, &label) == NB_OK &&
                     strcmp(nb_labels_name(race->labels, label), name) == 0;
        if (!is_ok) nbi_atomic_fetch_add_seq_cst_u32(&race->wrong_count, 1);
        race->ids[index * race->name_count + number] = label.id;
    }
}

TEST(label_interned_by_many_threads_at_once_is_one) {
    intern_race race = {.name_count = (uint32_t)test_size(20000, 100000, 500000)};
    race.labels = labels_with(race.name_count, 0, NULL, NULL);
    race.ids = (uint32_t *)calloc((size_t)race.name_count * RACE_THREADS, sizeof *race.ids);
    assert_non_null(race.ids);
    test_threads_run(RACE_THREADS, intern_all, &race);
    assert_int_equal(race.wrong_count.value, 0);
    for (uint32_t i = 0; i < race.name_count * RACE_THREADS; ++i) {
        if (race.ids[i] != race.ids[i % race.name_count]) fail_msg("name %u has two labels", i % race.name_count);
    }
    assert_int_equal(nb_labels_stats_get(race.labels).label_count, race.name_count);
    free(race.ids);
    nb_labels_destroy(race.labels);
}
