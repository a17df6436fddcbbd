// SPDX-License-Identifier: MIT
// A server with many rooms: each is an engine with modules, and all share one scheduler. Each room knows its own tasks,
// and where there is no number for a further room or module, that one is refused.

#include "frame/engine/engine_fixture.h"
#include "tasks/tasks_fixture.h"

#define ROOM_COUNT 200
#define ROOM_MODULE_COUNT 63
#define OWNER_COUNT 2047

static rig rooms[ROOM_COUNT];

static nb_scheduler *scheduler_with_one(void) {
    nb_scheduler_desc desc = {.worker_count = 1};
    nb_scheduler *scheduler = NULL;
    assert_int_equal(nb_scheduler_create(&desc, &scheduler), NB_OK);
    return scheduler;
}

static nb_engine_desc room_desc(nb_scheduler *scheduler) {
    nb_engine_desc desc = rig_desc(0);
    desc.scheduler = scheduler;
    desc.shutdown_ns = 20000000;
    return desc;
}

static nb_result submit_holder(const nb_context *context, void *user) {
    nb_task_desc desc = {.run = run_held, .argument = &user, .argument_size_bytes = sizeof user};
    return nb_task_submit(context->scheduler, &desc, NULL);
}

static nb_module_desc holder(held *task) {
    nb_module_desc desc = {.name = "holder", .user = task};
    desc.handlers[NB_PHASE_FRAME_END] = submit_holder;
    return desc;
}

TEST(last_of_many_rooms_waits_for_its_task) {
    nb_scheduler *scheduler = scheduler_with_one();
    held task = {0};
    for (uint32_t i = 0; i < ROOM_COUNT; ++i) rig_open_desc(&rooms[i], room_desc(scheduler));
    rig *last = &rooms[ROOM_COUNT - 1];
    for (rig *room = rooms; room < last; ++room) attach(room, (nb_module_desc){.name = "room"});
    attach(last, holder(&task));
    run_ticks(last, 1);
    assert_true(event_await(&task.started, 1));
    assert_int_equal(nb_engine_destroy(last->engine), NB_BUSY);
    assert_int_equal(test_log_count(&last->log, NB_ITEM_ENGINE_LEFTOVER), 1);
    for (rig *room = rooms; room < last; ++room) rig_close(room); // it is none of theirs
    event_set(&task.may_end);
    assert_true(event_await(&task.ended, 1));
    while (nb_engine_destroy(last->engine) == NB_BUSY) nbi_thread_yield();
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
}

static nb_result attach_one(rig *room, uint32_t index) {
    char name[16];
    snprintf(name, sizeof name, "module %u", (unsigned)index);
    nb_module_desc desc = {.name = name};
    return nb_engine_module_attach(room->engine, &desc, NULL);
}

// Fills rooms with modules until a number is missing. Returns how many rooms there are; *count: with their modules.
static uint32_t fill_rooms(nb_scheduler *scheduler, uint32_t room_count, uint32_t *count) {
    bool has_room = true;
    for (*count = room_count; has_room && room_count < ROOM_COUNT; ++room_count) {
        rig_open_desc(&rooms[room_count], room_desc(scheduler));
        ++*count;
        for (uint32_t i = 0; i < ROOM_MODULE_COUNT && has_room; ++i) {
            has_room = attach_one(&rooms[room_count], i) == NB_OK;
            *count += has_room ? 1 : 0;
        }
    }
    return room_count;
}

TEST(number_of_a_module_that_left_work_is_not_given_away) {
    nb_scheduler *scheduler = scheduler_with_one();
    held task = {0};
    rig_open_desc(&rooms[0], room_desc(scheduler));
    nb_module_id leaver = attach(&rooms[0], holder(&task));
    run_ticks(&rooms[0], 1);
    assert_true(event_await(&task.started, 1));
    uint32_t count = 0, room_count = fill_rooms(scheduler, 1, &count);
    assert_int_equal(count + 1, OWNER_COUNT); // and the leaver
    rig refused = {0};
    nb_engine_desc desc = room_desc(scheduler);
    desc.hooks = test_hooks(&refused.log, &refused.heap);
    assert_int_equal(nb_engine_create(&desc, &refused.engine), NB_FULL);
    assert_int_equal(refused.heap.live_count.value, 0);
    assert_int_equal(nb_engine_module_detach(rooms[0].engine, leaver), NB_OK);
    assert_int_equal(attach_one(&rooms[0], 0), NB_FULL); // its task goes on
    event_set(&task.may_end);
    assert_true(event_await(&task.ended, 1));
    nb_result result = NB_FULL;
    while (result == NB_FULL) result = attach_one(&rooms[0], 0);
    assert_int_equal(result, NB_OK);
    assert_int_equal(attach_one(&rooms[0], 1), NB_FULL);
    while (room_count-- > 0) rig_close(&rooms[room_count]);
    assert_int_equal(nb_scheduler_destroy(scheduler), NB_OK);
}
