// SPDX-License-Identifier: MIT
// nebula/label.h: tables that are none or too large, names that are none or too long, labels of other tables.

#include "bad_input/bad_input.h"

#include "nebula/label.h"

TEST(label_table_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_labels *labels = UNTOUCHED(nb_labels);
    nb_labels_desc desc = {.label_count_max = NB_LABEL_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(&desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(NULL, NULL));
    refused(NB_ERR_RANGE, NB_ITEM_LABEL_ARGUMENT, nb_labels_create(&desc, &labels));
    assert_int_equal(heap.call_count.value, 0);
    desc.label_count_max = 1;
    refused_memory(heap, 1, labels, nb_labels_create(&desc, &labels));
    silent(nb_labels_destroy(NULL));
}

TEST(label_functions_refuse_null_and_foreign_labels) {
    nb_labels *labels = NULL;
    nb_label label = {0x5A};
    nb_labels_stats stats = {.label_count = 1};
    const char *name = NULL;
    char text[NB_LABEL_SIZE_MAX + 2];
    memset(text, 'x', sizeof text); // no final zero: no byte past the longest name may be read
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_labels_intern(NULL, "a", &label));
    reported_default(NB_ITEM_BASE_NULL, name = nb_labels_name(NULL, label));
    assert_string_equal(name, "?");
    reported_default(NB_ITEM_BASE_NULL, stats = nb_labels_stats_get(NULL));
    assert_zero(stats);
    assert_int_equal(nb_labels_create(&(nb_labels_desc){.label_count_max = 1, .hooks = bad_hooks(NULL)}, &labels),
                     NB_OK);
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, NULL, &label));
    refused(NB_ERR_MISUSE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, "a", NULL));
    refused(NB_ERR_RANGE, NB_ITEM_LABEL_ARGUMENT, nb_labels_intern(labels, text, &label));
    assert_int_equal(label.id, 0x5A);
    reported(NB_ITEM_LABEL_ARGUMENT, name = nb_labels_name(labels, label));
    assert_string_equal(name, "?");
    reported(NB_ITEM_LABEL_ARGUMENT, name = nb_labels_name(labels, (nb_label){UINT32_MAX}));
    assert_string_equal(name, "?");
    accepted(NB_OK, nb_labels_intern(labels, "a", &label));
    nb_label other = {0x5A};
    accepted(NB_FULL, nb_labels_intern(labels, "b", &other)); // a warning, once
    assert_int_equal(other.id, 0x5A);
    assert_string_equal(nb_labels_name(labels, label), "a");
    nb_labels_destroy(labels);
}
