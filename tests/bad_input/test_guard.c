// SPDX-License-Identifier: MIT
// nebula/guard.h, with nb_store_protect: guards that are none, and what cannot be protected.

#include "bad_input/bad_input.h"

#include "nebula/guard.h"

static nb_store *world_open(bool is_protectable, test_heap *heap) {
    nb_store *world = NULL;
    nb_store_desc desc = {.is_protectable = is_protectable, .hooks = bad_hooks(heap)};
    accepted(NB_OK, nb_store_create(&desc, &world));
    return world;
}

TEST(creation_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_guard *out = UNTOUCHED(nb_guard);
    nb_store *plain = world_open(false, &heap), *pages = world_open(true, &heap);
    nb_snapshots *snapshots = NULL;
    nb_snapshots_desc snapshots_desc = {.hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_snapshots_create(&snapshots_desc, &snapshots));
    uint64_t live_count = heap.live_count.value;
    nb_guard_desc desc = {.hooks = bad_hooks(&heap)};
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_guard_create(NULL, &out));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_guard_create(&desc, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_GUARD_ARGUMENT, nb_guard_create(&desc, &out)); // nothing to guard
    desc.store = plain;
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_GUARD_ARGUMENT, nb_guard_create(&desc, &out));
    desc.store = pages, desc.snapshots = snapshots;
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_GUARD_ARGUMENT, nb_guard_create(&desc, &out));
    desc.snapshots = NULL;
    heap.fail_from = heap.call_count.value + 1;
    refused(NB_ERR_MEMORY, NB_ITEM_BASE_MEMORY, nb_guard_create(&desc, &out));
    assert_ptr_equal(out, UNTOUCHED(nb_guard));
    assert_int_equal(heap.live_count.value, live_count);
    heap.fail_from = 0;
    accepted(NB_OK, nb_guard_create(&desc, &out));
    silent(nb_guard_destroy(out));
    silent(nb_guard_destroy(NULL));
    accepted(NB_OK, nb_snapshots_destroy(snapshots));
    silent(nb_store_destroy(plain));
    silent(nb_store_destroy(pages));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(protection_refuses_what_it_cannot) {
    test_heap heap = {0};
    nb_store *plain = world_open(false, &heap);
    nb_store_place place;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_protect(NULL, true));
    refused(NB_ERR_UNSUPPORTED, NB_ITEM_STORE_PROTECTED, nb_store_protect(plain, true));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_store_locate(NULL, &place, &place));
    refused(NB_ERR_MISUSE, NB_ITEM_STORE_ARGUMENT, nb_store_locate(plain, &place, NULL));
    accepted(NB_EMPTY, nb_store_locate(plain, NULL, &place));
    silent(nb_store_destroy(plain));
    assert_int_equal(heap.live_count.value, 0);
}
