// SPDX-License-Identifier: MIT
#pragma once

// Every report the library can make, by number. Numbers are stable: an item may be added, never renumbered.
// The hundreds say where it comes from: 1 base, 2 loop and input, 3 arena, 4 token, 5 channel, 6 handle and label, 7
// tasks and fence, 8 trace, 9 frame, 985 to 990 of it the record module, 993 to 996 the net module, 10 the
// gpu module (1000 to 1019 the frame graph, 1020 to 1059 the device, 1060 to 1079 Vulkan), 11 the scene module.
//
//     static void my_log(void *user, const nb_log_record *record) {
//         if (record->item == NB_ITEM_ARENA_FULL) ++*(int *)user;
//     }

#define NB_LOG_ITEMS(X)                                \
    X(NONE, none, 0)                                   \
    X(BASE_NULL, base_null, 100)                       \
    X(BASE_ARGUMENT, base_argument, 101)               \
    X(BASE_MEMORY, base_memory, 102)                   \
    X(BASE_OS, base_os, 103)                           \
    X(BASE_THREAD, base_thread, 104)                   \
    X(BASE_CORRUPT, base_corrupt, 105)                 \
    X(LOOP_CLAMPED, loop_clamped, 200)                 \
    X(LOOP_DISCONTINUITY, loop_discontinuity, 201)     \
    X(LOOP_CLOCK_BACKWARDS, loop_clock_backwards, 202) \
    X(LOOP_REENTERED, loop_reentered, 203)             \
    X(LOOP_ARGUMENT, loop_argument, 204)               \
    X(LOOP_OVERRUN, loop_overrun, 205)                 \
    X(INPUT_FULL, input_full, 250)                     \
    X(INPUT_ARGUMENT, input_argument, 251)             \
    X(ARENA_FULL, arena_full, 300)                     \
    X(ARENA_ARGUMENT, arena_argument, 301)             \
    X(ARENA_PINNED, arena_pinned, 302)                 \
    X(ARENA_THREAD, arena_thread, 303)                 \
    X(ARENA_STALE, arena_stale, 304)                   \
    X(TOKEN_ARGUMENT, token_argument, 400)             \
    X(TOKEN_CANCELLED, token_cancelled, 401)           \
    X(TOKEN_STALE, token_stale, 402)                   \
    X(CHANNEL_ARGUMENT, channel_argument, 500)         \
    X(CHANNEL_CLOSED, channel_closed, 501)             \
    X(CHANNEL_UNDRAINED, channel_undrained, 502)       \
    X(CHANNEL_THREAD, channel_thread, 503)             \
    X(HANDLE_ARGUMENT, handle_argument, 600)           \
    X(HANDLE_FULL, handle_full, 601)                   \
    X(HANDLE_STALE, handle_stale, 602)                 \
    X(LABEL_ARGUMENT, label_argument, 650)             \
    X(LABEL_FULL, label_full, 651)                     \
    X(TASK_ARGUMENT, task_argument, 700)               \
    X(TASK_STALE, task_stale, 701)                     \
    X(TASK_DEADLOCK, task_deadlock, 702)               \
    X(TASK_THREAD, task_thread, 703)                   \
    X(TASK_OS, task_os, 704)                           \
    X(TASK_CHECK, task_check, 705)                     \
    X(FENCE_ARGUMENT, fence_argument, 750)             \
    X(FENCE_TIMEOUT, fence_timeout, 751)               \
    X(FENCE_FULL, fence_full, 752)                     \
    X(FENCE_BUSY, fence_busy, 753)                     \
    X(FENCE_STALE, fence_stale, 754)                   \
    X(FENCE_THREAD, fence_thread, 755)                 \
    X(FENCE_QUARANTINED, fence_quarantined, 756)       \
    X(TRACE_ARGUMENT, trace_argument, 800)             \
    X(TRACE_FULL, trace_full, 801)                     \
    X(TRACE_WRITE, trace_write, 802)                   \
    X(TRACE_SHARED, trace_shared, 803)                 \
    X(ENGINE_ARGUMENT, engine_argument, 900)           \
    X(ENGINE_THREAD, engine_thread, 901)               \
    X(ENGINE_STALE, engine_stale, 902)                 \
    X(ENGINE_ORDER, engine_order, 903)                 \
    X(ENGINE_FAILURE, engine_failure, 904)             \
    X(ENGINE_DISABLED, engine_disabled, 905)           \
    X(ENGINE_BARRIER, engine_barrier, 906)             \
    X(ENGINE_VIOLATION, engine_violation, 907)         \
    X(ENGINE_LEFTOVER, engine_leftover, 908)           \
    X(ENGINE_FULL, engine_full, 909)                   \
    X(ENGINE_NOTE, engine_note, 910)                   \
    X(ENGINE_GUARD, engine_guard, 918)                 \
    X(STATE_ARGUMENT, state_argument, 920)             \
    X(STATE_STALE, state_stale, 921)                   \
    X(STATE_SAVE, state_save, 922)                     \
    X(STATE_LAYOUT, state_layout, 923)                 \
    X(STATE_ADDRESS, state_address, 924)               \
    X(STORE_TYPE, store_type, 929)                     \
    X(STORE_ARGUMENT, store_argument, 930)             \
    X(STORE_NAME, store_name, 931)                     \
    X(STORE_STARTED, store_started, 932)               \
    X(STORE_TICK, store_tick, 933)                     \
    X(STORE_FULL, store_full, 934)                     \
    X(STORE_STALE, store_stale, 935)                   \
    X(STORE_STAGE, store_stage, 936)                   \
    X(STORE_LAYOUT, store_layout, 937)                 \
    X(STORE_CORRUPT, store_corrupt, 938)               \
    X(STORE_DENIED, store_denied, 939)                 \
    X(SNAPSHOT_ARGUMENT, snapshot_argument, 940)       \
    X(SNAPSHOT_SKIPPED, snapshot_skipped, 941)         \
    X(SNAPSHOT_FILL, snapshot_fill, 942)               \
    X(SNAPSHOT_STALE, snapshot_stale, 943)             \
    X(SNAPSHOT_BUSY, snapshot_busy, 944)               \
    X(SNAPSHOT_THREAD, snapshot_thread, 945)           \
    X(SNAPSHOT_OS, snapshot_os, 946)                   \
    X(GUARD_ARGUMENT, guard_argument, 947)             \
    X(GUARD_FULL, guard_full, 948)                     \
    X(STORE_PROTECTED, store_protected, 949)           \
    X(ASYNC_ARGUMENT, async_argument, 950)             \
    X(ASYNC_THREAD, async_thread, 951)                 \
    X(ASYNC_STATUS, async_status, 952)                 \
    X(ASYNC_STUCK, async_stuck, 953)                   \
    X(ASYNC_OS, async_os, 954)                         \
    X(ASYNC_BUSY, async_busy, 955)                     \
    X(SERVICE_ARGUMENT, service_argument, 960)         \
    X(SERVICE_RESTARTED, service_restarted, 961)       \
    X(SERVICE_FAILED, service_failed, 962)             \
    X(SERVICE_STUCK, service_stuck, 963)               \
    X(SERVICE_OS, service_os, 964)                     \
    X(SERVICE_UNDELIVERED, service_undelivered, 965)   \
    X(SERVICE_LOG_DROPPED, service_log_dropped, 966)   \
    X(BUDGET_ARGUMENT, budget_argument, 970)           \
    X(BUDGET_LEVEL, budget_level, 971)                 \
    X(TIMELINE_ARGUMENT, timeline_argument, 975)       \
    X(TIMELINE_BACKWARDS, timeline_backwards, 976)     \
    X(TIMELINE_FULL, timeline_full, 977)               \
    X(TIMELINE_UNREACHED, timeline_unreached, 978)     \
    X(HISTORY_ARGUMENT, history_argument, 980)         \
    X(HISTORY_FULL, history_full, 981)                 \
    X(HISTORY_RESTARTED, history_restarted, 982)       \
    X(HISTORY_LOAD, history_load, 983)                 \
    X(SYNCTEST_DIVERGED, synctest_diverged, 984)       \
    X(RECORD_ARGUMENT, record_argument, 985)           \
    X(RECORD_FILE, record_file, 986)                   \
    X(RECORD_FORMAT, record_format, 987)               \
    X(RECORD_STOPPED, record_stopped, 988)             \
    X(RECORD_DIVERGED, record_diverged, 989)           \
    X(SAVE_LAYOUT, save_layout, 990)                   \
    X(SYNCTEST_OUTSIDE, synctest_outside, 991)         \
    X(LINK_ARGUMENT, link_argument, 993)               \
    X(NETPLAY_ARGUMENT, netplay_argument, 994)         \
    X(NETPLAY_DESYNC, netplay_desync, 995)             \
    X(NETPLAY_LOST, netplay_lost, 996)                 \
    X(NETPLAY_REFUSED, netplay_refused, 998)           \
    X(NETPLAY_SUSPECT, netplay_suspect, 999)           \
    X(GRAPH_ARGUMENT, graph_argument, 1000)            \
    X(GRAPH_STALE, graph_stale, 1001)                  \
    X(GRAPH_MOMENT, graph_moment, 1002)                \
    X(GRAPH_FULL, graph_full, 1003)                    \
    X(GRAPH_NAME, graph_name, 1004)                    \
    X(GRAPH_CYCLE, graph_cycle, 1005)                  \
    X(GRAPH_UNWRITTEN, graph_unwritten, 1006)          \
    X(GRAPH_CONFLICT, graph_conflict, 1007)            \
    X(GRAPH_SIZE, graph_size, 1008)                    \
    X(GPU_ARGUMENT, gpu_argument, 1020)                \
    X(GPU_STALE, gpu_stale, 1021)                      \
    X(GPU_MOMENT, gpu_moment, 1022)                    \
    X(GPU_FULL, gpu_full, 1023)                        \
    X(GPU_LOST, gpu_lost, 1024)                        \
    X(GPU_UNRESTORED, gpu_unrestored, 1025)            \
    X(GPU_VALUE, gpu_value, 1026)                      \
    X(GPU_COMMAND, gpu_command, 1027)                  \
    X(GPU_RECORD, gpu_record, 1028)                    \
    X(GPU_IMPORT, gpu_import, 1029)                    \
    X(GPU_SUBMIT, gpu_submit, 1030)                    \
    X(GPU_PRESENT, gpu_present, 1031)                  \
    X(GPU_ORDER, gpu_order, 1032)                      \
    X(GPU_UPLOAD, gpu_upload, 1033)                    \
    X(VULKAN_LOADER, vulkan_loader, 1060)              \
    X(VULKAN_DEVICE, vulkan_device, 1061)              \
    X(VULKAN_RESULT, vulkan_result, 1062)              \
    X(VULKAN_MESSAGE, vulkan_message, 1063)            \
    X(VULKAN_LAYER, vulkan_layer, 1064)                \
    X(VULKAN_MEMORY, vulkan_memory, 1065)              \
    X(VULKAN_FORMAT, vulkan_format, 1066)              \
    X(VULKAN_SURFACE, vulkan_surface, 1067)            \
    X(SCENE_ARGUMENT, scene_argument, 1100)            \
    X(SCENE_STALE, scene_stale, 1101)                  \
    X(SCENE_PARENT, scene_parent, 1102)

typedef enum nb_log_item {
#define NBI_ITEM(upper, lower, number) NB_ITEM_##upper = number,
    NB_LOG_ITEMS(NBI_ITEM)
#undef NBI_ITEM
} nb_log_item;
