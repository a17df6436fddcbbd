// SPDX-License-Identifier: MIT
// The injectable clock and the manual one.

#include "nebula/clock.h"

#include "../platform/platform.h"
#include "base.h"

uint64_t nb_clock_now_ns(const nb_clock *clock) {
    if (clock == NULL || clock->now_ns == NULL) return nbi_clock_now_ns();
    return clock->now_ns(clock->user);
}

nb_result nb_clock_sleep_until_ns(const nb_clock *clock, uint64_t deadline_ns) {
    if (clock != NULL && clock->sleep_until_ns != NULL) {
        clock->sleep_until_ns(clock->user, deadline_ns);
        return NB_OK;
    }
    // The machine's sleep knows nothing of a foreign clock's time.
    if (clock != NULL && clock->now_ns != NULL) {
        return NBI_FAIL(NULL, NB_ITEM_BASE_ARGUMENT, NB_ERR_UNSUPPORTED, "the clock cannot sleep");
    }
    nbi_sleep_until_ns(deadline_ns);
    return NB_OK;
}

static uint64_t manual_now(void *user) {
    const nb_clock_manual *manual = (const nb_clock_manual *)user;
    // Pairs with the compare-exchanges and the store below: who sees the new time sees what was written before it.
    return nbi_atomic_load_acquire_u64(&manual->now_ns);
}

static void manual_sleep(void *user, uint64_t deadline_ns) {
    nb_clock_manual *manual = (nb_clock_manual *)user;
    uint64_t now_ns = nbi_atomic_load_acquire_u64(&manual->now_ns);
    while (now_ns < deadline_ns) {
        if (nbi_atomic_compare_exchange_acq_rel_u64(&manual->now_ns, &now_ns, deadline_ns)) return;
    }
}

nb_result nb_clock_manual_init(nb_clock_manual *manual, uint64_t start_ns) {
    return nb_clock_manual_set(manual, start_ns);
}

nb_clock nb_clock_manual_get(nb_clock_manual *manual) {
    nb_clock clock = {0};
    if (manual == NULL) {
        NBI_FAIL_NULL("manual");
        return clock;
    }
    clock.now_ns = manual_now;
    clock.sleep_until_ns = manual_sleep;
    clock.user = manual;
    return clock;
}

nb_result nb_clock_manual_advance(nb_clock_manual *manual, uint64_t delta_ns) {
    if (manual == NULL) return NBI_FAIL_NULL("manual");
    uint64_t now_ns = nbi_atomic_load_acquire_u64(&manual->now_ns);
    uint64_t next_ns;
    do {
        next_ns = delta_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + delta_ns;
    } while (!nbi_atomic_compare_exchange_acq_rel_u64(&manual->now_ns, &now_ns, next_ns));
    return NB_OK;
}

nb_result nb_clock_manual_set(nb_clock_manual *manual, uint64_t now_ns) {
    if (manual == NULL) return NBI_FAIL_NULL("manual");
    nbi_atomic_store_release_u64(&manual->now_ns, now_ns); // read by the acquire load in manual_now
    return NB_OK;
}
