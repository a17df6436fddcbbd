// SPDX-License-Identifier: MIT
// A game's code for test_reload.c, built several times: RELOAD_VERSION tells them apart, and that of version 0 fails to
// attach. Every frame begins work of each kind, and none of it waits for the frame's end.

#include "reload.h"

__attribute__((visibility("default"))) nb_module_desc reload_module(reload_shared *shared);

// --- tasks ---

static void hold(const reload_shared *shared) {
    while (nbi_atomic_load_acquire_u32(&shared->is_held) != 0) continue;
}

static void run_child(nb_task_context *context, void *argument) {
    reload_shared *shared = *(reload_shared **)argument;
    (void)context;
    hold(shared);
    reload_end(&shared->tasks);
}

static void run_task(nb_task_context *context, void *argument) {
    reload_shared *shared = *(reload_shared **)argument;
    nb_task_desc child = {
        .run = run_child, .argument = &shared, .argument_size_bytes = sizeof shared, .label = shared->label};
    hold(shared);
    reload_begin(&shared->tasks);
    if (nb_task_submit(context->scheduler, &child, NULL) != NB_OK) reload_end(&shared->tasks);
    reload_end(&shared->tasks);
}

static void run_bound(nb_task_context *context, void *argument) {
    (void)context;
    reload_end(&(*(reload_shared **)argument)->bound);
}

static void note_result(void *user, const nb_task_result *result) {
    (void)result;
    reload_end(&((reload_shared *)user)->results);
}

static void begin_tasks(reload_shared *shared, const nb_context *context) {
    nb_task_desc desc = {.run = run_task,
                         .argument = &shared,
                         .argument_size_bytes = sizeof shared,
                         .label = shared->label,
                         .on_complete = note_result,
                         .user = shared};
    reload_begin(&shared->tasks), reload_begin(&shared->results);
    if (nb_task_submit(context->scheduler, &desc, NULL) != NB_OK) {
        reload_end(&shared->tasks);
        reload_end(&shared->results);
    }
    nb_task_desc bound = {.run = run_bound,
                          .argument = &shared,
                          .argument_size_bytes = sizeof shared,
                          .lifetime = NB_LIFETIME_FRAME,
                          .fence = context->fence,
                          .frame = context->frame};
    reload_begin(&shared->bound);
    if (nb_task_submit(context->scheduler, &bound, NULL) != NB_OK) reload_end(&shared->bound);
}

// --- async jobs ---

static nb_result read_file(void *argument) {
    (void)argument;
    return NB_OK;
}

static nb_async_status step(nb_async_call *call, void *state) {
    NB_ASYNC_BEGIN(call);
    NB_ASYNC_FRAME(call);
    NB_ASYNC_IO(call, read_file, state);
    NB_ASYNC_YIELD(call);
    NB_ASYNC_END(call);
}

static void publish(void *host, void *state) {
    (void)host;
    reload_end(&(*(reload_shared **)state)->jobs);
}

static void begin_job(reload_shared *shared, nb_engine *engine) {
    nb_async_job_desc desc = {
        .step = step, .publish = publish, .state = &shared, .state_size_bytes = sizeof shared, .label = shared->label};
    reload_begin(&shared->jobs);
    if (nb_async_submit(nb_engine_async(engine), &desc, NULL) != NB_OK) reload_end(&shared->jobs);
}

// --- token callbacks ---

static void note_deadline(void *user, nb_token *token) {
    (void)token;
    reload_end(&((reload_shared *)user)->callbacks);
}

static void begin_callback(reload_shared *shared, const nb_context *context) {
    uint32_t place = (uint32_t)(context->frame_index % RELOAD_CALLBACK_COUNT);
    nb_token_callback_unregister(&shared->tokens[place]);
    nb_token_release(shared->token_of[place]);
    shared->token_of[place] = NULL;
    if (nb_token_child(context->token, "deadline", &shared->token_of[place]) != NB_OK) return;
    nb_token *token = shared->token_of[place];
    if (nb_token_callback_register(token, &shared->tokens[place], note_deadline, shared) == NB_OK) {
        reload_begin(&shared->callbacks);
    }
    nb_token_set_deadline(token, 0, context->frame_index + 2);
}

// --- the module ---

static nb_result frame(const nb_context *context, void *user) {
    reload_shared *shared = user;
    shared->version = RELOAD_VERSION;
    if (shared->is_quiet) return NB_OK;
    begin_tasks(shared, context);
    begin_job(shared, context->engine);
    begin_callback(shared, context);
    return NB_OK;
}

static nb_result run_part(const nb_context *context, void *user) {
    reload_begin(&((reload_shared *)user)->parts);
    return nb_output_add(context, 8) != NULL ? NB_OK : NB_ERR_MEMORY;
}

static nb_result merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)context, (void)outputs;
    reload_end(&((reload_shared *)user)->parts);
    return NB_OK;
}

static nb_result on_attach(nb_engine *engine, void *user) {
    (void)engine;
    ++((reload_shared *)user)->attach_count;
    return RELOAD_VERSION != 0 ? NB_OK : NB_ERR_UNSUPPORTED;
}

static void on_detach(nb_engine *engine, void *user) {
    (void)engine;
    ++((reload_shared *)user)->detach_count;
}

nb_module_desc reload_module(reload_shared *shared) {
    return (nb_module_desc){.name = "game",
                            .frame = frame,
                            .parallel = run_part,
                            .merge = merge,
                            .job_count = 4,
                            .on_attach = on_attach,
                            .on_detach = on_detach,
                            .user = shared};
}
