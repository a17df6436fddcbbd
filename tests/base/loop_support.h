// SPDX-License-Identifier: MIT
#pragma once

// What the tests of the loop share.

#include "support/support.h"

#include "nebula/loop.h"

static inline nb_loop_report report_of(const nb_loop *loop) {
    nb_loop_report report = nb_loop_report_get(loop);
    assert_int_equal(report.frame_count, nb_loop_frame_count(loop));
    return report;
}
