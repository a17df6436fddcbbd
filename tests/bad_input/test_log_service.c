// SPDX-License-Identifier: MIT
// nebula/log_service.h: log services that are none.

#include "bad_input/bad_input.h"

#include "nebula/log_service.h"

TEST(log_service_refuses_null) {
    nb_log_service log;
    memset(&log, 0x5A, sizeof log);
    nb_services *set = NULL;
    nb_logger logger;
    nb_log_service_stats stats;
    nb_services_desc set_desc = {.hooks = bad_hooks(NULL)};
    accepted(NB_OK, nb_services_create(&set_desc, &set));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_log_service_start(NULL, set, NULL));
    refused_default(NB_ERR_MISUSE, NB_ITEM_BASE_NULL, nb_log_service_start(&log, NULL, NULL));
    nb_log_service_desc desc = {.name = ""};
    refused(NB_ERR_MISUSE, NB_ITEM_SERVICE_ARGUMENT, nb_log_service_start(&log, set, &desc));
    assert_untouched(log, 0x5A);
    reported_default(NB_ITEM_BASE_NULL, logger = nb_log_service_logger(NULL));
    assert_true(logger.log == NULL);
    reported_default(NB_ITEM_BASE_NULL, stats = nb_log_service_stats_get(NULL));
    assert_int_equal(stats.written_count, 0);
    accepted(NB_OK, nb_services_destroy(set));
}
