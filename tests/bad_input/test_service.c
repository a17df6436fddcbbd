// SPDX-License-Identifier: MIT
// nebula/service.h: services and sets that are none, bad descs and messages, foreign threads.

#include "bad_input/bad_input.h"

#include "nebula/service.h"

static nb_result serve(nb_service *service, void *user) {
    (void)user;
    uint64_t message;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) continue;
    return NB_OK;
}

TEST(services_refuse_a_bad_desc) {
    test_heap heap = {0};
    nb_services *set = UNTOUCHED(nb_services);
    nb_services_desc desc = {.service_count_max = NB_SERVICE_COUNT_MAX + 1, .hooks = bad_hooks(&heap)};
    refused(NB_ERR_RANGE, NB_ITEM_SERVICE_ARGUMENT, nb_services_create(&desc, &set));
    desc.service_count_max = 0;
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_services_create(&desc, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_services_create(NULL, NULL));
    refused_memory(heap, 1, set, nb_services_create(&desc, &set));
    accepted(NB_OK, nb_services_destroy(NULL));
}

TEST(service_refuses_a_bad_desc) {
    test_heap heap = {0};
    nb_services *set = NULL;
    nb_services_desc set_desc = {.service_count_max = 1, .hooks = bad_hooks(&heap)};
    accepted(NB_OK, nb_services_create(&set_desc, &set));
    nb_service *service = UNTOUCHED(nb_service);
    const nb_service_desc fine = {.name = "a", .run = serve};
    nb_service_desc wrong = fine;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_service_start(NULL, &fine, &service));
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, NULL, &service));
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &fine, NULL));
    wrong.name = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &wrong, &service));
    wrong.name = "";
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &wrong, &service));
    wrong.name = "a name of more than thirty-one bytes";
    refused(NB_ERR_RANGE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &wrong, &service));
    wrong = fine;
    wrong.run = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &wrong, &service));
    wrong = fine;
    wrong.restart_limit = NB_SERVICE_RESTART_LIMIT_MAX + 1;
    refused(NB_ERR_RANGE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &wrong, &service));
    wrong = fine;
    wrong.mailbox_count = UINT32_MAX;
    refused(NB_ERR_RANGE, NB_ITEM_CHANNEL_ARGUMENT, nb_service_start(set, &wrong, &service));
    assert_ptr_equal(service, UNTOUCHED(nb_service));
    assert_int_equal(heap.live_count.value, 1);
    accepted(NB_OK, nb_service_start(set, &fine, &service));
    nb_service *second = NULL;
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_start(set, &fine, &second)); // the name is taken
    wrong = fine;
    wrong.name = "b";
    accepted(NB_FULL, nb_service_start(set, &wrong, &second));
    accepted(NB_OK, nb_services_destroy(set));
    assert_int_equal(heap.live_count.value, 0);
}

TEST(service_functions_refuse_null) {
    uint64_t message = 0;
    nb_service_stats stats;
    const char *name = NULL;
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_service_send(NULL, &message));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_service_recv(NULL, &message, 0));
    refused_default(true, NB_ITEM_BASE_NULL, nb_service_should_stop(NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_service_stop(NULL, 0));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_services_stop(NULL, 0));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_services_find(NULL, "a"));
    reported_default(NB_ITEM_BASE_NULL, name = nb_service_name(NULL));
    assert_string_equal(name, "");
    reported_default(NB_ITEM_BASE_NULL, stats = nb_service_stats_get(NULL));
    assert_int_equal(stats.run_count + stats.state, 0);
}

TEST(service_refuses_null_messages_and_foreign_threads) {
    nb_services *set = NULL;
    nb_service *service = NULL;
    nb_services_desc set_desc = {.hooks = bad_hooks(NULL)};
    nb_service_desc desc = {.name = "a", .run = serve};
    uint64_t message = 0x5A;
    accepted(NB_OK, nb_services_create(&set_desc, &set));
    accepted(NB_OK, nb_service_start(set, &desc, &service));
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_send(service, NULL));
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_service_recv(service, NULL, 0));
    refused(NB_ERR_THREAD, NB_ITEM_SERVICE_ARGUMENT, nb_service_recv(service, &message, NB_NEVER_NS));
    refused_default(NULL, NB_ITEM_BASE_NULL, nb_services_find(set, NULL));
    assert_int_equal(message, 0x5A);
    accepted(NB_OK, nb_services_destroy(set));
}
