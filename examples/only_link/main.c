// SPDX-License-Identifier: MIT
// module: net
// A virtual link without anything else: a bad network, the same on every machine, in virtual time.

#include <nebula/link.h>

#include <stdio.h>

#define MS UINT64_C(1000000)

int main(void) {
    nb_link_desc desc = nb_link_desc_default();
    desc.seed = 2024;
    desc.conditions.latency_ns = 40 * MS;
    desc.conditions.jitter_ns = 30 * MS;
    desc.conditions.loss_ppm = 200000;      // one in five
    desc.conditions.duplicate_ppm = 100000; // one in ten
    nb_link *link = NULL;
    if (nb_link_create(&desc, &link) != NB_OK) return 1;
    for (uint64_t now_ns = 0; now_ns < 300 * MS; now_ns += 10 * MS) {
        char text[NB_LINK_MESSAGE_BYTES_DEFAULT];
        size_t size_bytes = 0;
        int length = snprintf(text, sizeof text, "sent at %d ms", (int)(now_ns / MS));
        if (now_ns < 200 * MS) nb_link_send(link, now_ns, text, (size_t)length);
        while (nb_link_receive(link, now_ns, text, sizeof text, &size_bytes) == NB_OK)
            printf("%3d ms: %.*s\n", (int)(now_ns / MS), (int)size_bytes, text);
    }
    nb_link_stats stats = nb_link_stats_get(link);
    printf("%d sent, %d lost, %d twice there, %d received\n", (int)stats.sent_count, (int)stats.lost_count,
           (int)stats.duplicated_count, (int)stats.received_count);
    bool is_accounted = stats.sent_count + stats.duplicated_count == stats.received_count + stats.lost_count;
    nb_link_destroy(link);
    return is_accounted ? 0 : 1;
}
