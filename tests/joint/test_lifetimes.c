// SPDX-License-Identifier: MIT
// A careless host: every destroy and detach there is, called from every callback there is. Frames go on after each of
// them, and then everything can be destroyed. The address sanitizer finds memory that was freed too early.

#include "frame/engine/engine_fixture.h"
#include "record/record_fixture.h"
#include "support/async_job.h"

#include "nebula/gpu.h"
#include "nebula/gpu_null.h"
#include "nebula/netplay.h"
#include "nebula/scene.h"

#define LIMIT_NS UINT64_C(20000000000)
#define FRAME_COUNT 3u

// Under the thread sanitizer, which has nothing to say of one thread and takes its time, only other threads call.
#if defined(__SANITIZE_THREAD__)
#define IS_THREADS_ONLY true
#else
#define IS_THREADS_ONLY false
#endif

// Phases are places by their own number; these follow.
enum {
    PLACE_ATTACH = NB_PHASE_COUNT,
    PLACE_DETACH,      // by a detach
    PLACE_DETACH_LAST, // by the engine's end
    PLACE_TICK,
    PLACE_FRAME,
    PLACE_JOB,
    PLACE_MERGE,
    PLACE_RECORD,
    PLACE_SUBMIT,
    PLACE_STEP,
    PLACE_IO,
    PLACE_IS_WANTED,
    PLACE_COMMIT,
    PLACE_PUBLISH,
    PLACE_DISCARD,
    PLACE_DISCARD_LAST, // of a job that only the engine's end ends
    PLACE_TASK,
    PLACE_COMPLETE,
    PLACE_WATCH_BEGIN,
    PLACE_WATCH_END,
    PLACE_SAMPLE, // of the netplay
    PLACE_TOKEN,
    PLACE_SERVICE,
    PLACE_RETIRED,
    PLACE_CLOCK,
    PLACE_STATE,
    PLACE_COUNT,
};

typedef enum action {
    DESTROY_ENGINE,
    DESTROY_SCENE,
    DESTROY_NETPLAY,
    DESTROY_GPU,
    DESTROY_RECORDER,
    CLOSE_REPLAY,
    DETACH_SCENE, // as somebody who found the module by its name
    DETACH_NETPLAY,
    DETACH_GPU,
    DETACH_GPU_RECORD,
    DETACH_SELF,
    REPLACE_SELF,
    REPLACE_GPU_RECORD, // by something else
    REMOVE_WATCH,
    CREATE_SCENE,    // that fails half way: its table is there already
    CREATE_NETPLAY,  // the same: its module is there already
    ATTACH_GPU,      // of a second device: its names are taken
    ATTACH_RECORDER, // the watches are all taken
    RUN_FRAME,
    ACTION_COUNT,
} action;

typedef struct careless {
    rig r;
    memory_sink sink, other_sink;
    nb_scene *scene;
    nb_netplay *netplay;
    nb_gpu *gpu, *other_gpu;
    nb_recorder *recorder;
    nb_replay *replay;
    nb_module_id self, scene_module, netplay_module, gpu_module, gpu_record_module;
    nb_token *token;
    nb_token_callback callback;
    nb_service *service;
    uint32_t place;
    action what;
    nb_atomic_u32 is_armed, has_acted;
    nb_result result;
    bool is_paused; // the job that only the engine's end ends was begun
    uint64_t now_ns;
    uint64_t plain;
} careless;

// --- what is done ---

static nb_hooks hooks_of(careless *c) { return test_hooks(&c->r.log, &c->r.heap); }

static nb_result forget(nb_result result, void *handle, size_t size_bytes) {
    if (result == NB_OK) memset(handle, 0, size_bytes);
    return result;
}
#define FORGET(call, handle) forget((call), &(handle), sizeof(handle))

static void sample(void *user, const nb_tick_view *view, nb_input_event *event);

static nb_netplay_desc netplay_desc(careless *c) {
    return (nb_netplay_desc){.player_count = 2, .sample = sample, .user = c, .hooks = hooks_of(c)};
}

static nb_recorder_desc recorder_desc(careless *c) {
    return (nb_recorder_desc){.sink = {.write = sink_write, .user = &c->sink},
                              .block_bytes = NB_RECORD_BLOCK_BYTES_MIN,
                              .queue_count = 2,
                              .key_ticks = NB_RECORD_KEY_TICKS_NEVER,
                              .hooks = hooks_of(c)};
}

static nb_result create_again(careless *c) {
    nb_scene *scene = NULL;
    nb_netplay *netplay = NULL;
    nb_recorder *recorder = NULL;
    // The module "two" is free; the table of the name is not.
    nb_scene_desc scene_desc = {.name = "table", .node_count_max = 16, .hooks = hooks_of(c)};
    nb_netplay_desc play = netplay_desc(c);
    nb_recorder_desc record_desc = recorder_desc(c);
    record_desc.sink.user = &c->other_sink;
    nb_result result = NB_OK;
    if (c->what == CREATE_SCENE) result = nb_scene_create(c->r.engine, &scene_desc, &scene);
    if (c->what == CREATE_NETPLAY) nb_engine_watch_remove(c->r.engine, c); // makes room for its watch
    if (c->what == CREATE_NETPLAY) result = nb_netplay_create(c->r.engine, &play, &netplay);
    if (c->what == ATTACH_GPU) result = nb_gpu_attach(c->other_gpu, c->r.engine);
    if (c->what == ATTACH_RECORDER) result = nb_recorder_attach(c->r.engine, &record_desc, &recorder);
    nb_scene_destroy(scene);
    nb_netplay_destroy(netplay);
    nb_recorder_destroy(recorder);
    return result;
}

// Anything but NB_BUSY ends it.
static nb_result destroy_recorder(careless *c) {
    nb_result result = nb_recorder_destroy(c->recorder);
    if (result != NB_BUSY) c->recorder = NULL;
    return result;
}

static nb_result do_it(careless *c) {
    nb_module_desc other = {.name = "other"}, record = {.name = "gpu.record"};
    switch (c->what) {
    case DESTROY_ENGINE: return nb_engine_destroy(c->r.engine);
    case DESTROY_SCENE: return FORGET(nb_scene_destroy(c->scene), c->scene);
    case DESTROY_NETPLAY: return FORGET(nb_netplay_destroy(c->netplay), c->netplay);
    case DESTROY_GPU: return FORGET(nb_gpu_destroy(c->gpu), c->gpu);
    case DESTROY_RECORDER: return destroy_recorder(c);
    case CLOSE_REPLAY: return FORGET(nb_replay_close(c->replay), c->replay);
    case DETACH_SCENE: return nb_engine_module_detach(c->r.engine, c->scene_module);
    case DETACH_NETPLAY: return nb_engine_module_detach(c->r.engine, c->netplay_module);
    case DETACH_GPU: return nb_engine_module_detach(c->r.engine, c->gpu_module);
    case DETACH_GPU_RECORD: return nb_engine_module_detach(c->r.engine, c->gpu_record_module);
    case DETACH_SELF: return nb_engine_module_detach(c->r.engine, c->self);
    case REPLACE_SELF: return nb_engine_module_replace(c->r.engine, c->self, &other);
    case REPLACE_GPU_RECORD: return nb_engine_module_replace(c->r.engine, c->gpu_record_module, &record);
    case REMOVE_WATCH: return nb_engine_watch_remove(c->r.engine, c);
    case RUN_FRAME: return nb_engine_frame_delta(c->r.engine, 0);
    default: return create_again(c);
    }
}

// Once, at the chosen place.
static void act(careless *c, uint32_t place) {
    if (place != c->place || nbi_atomic_exchange_seq_cst_u32(&c->is_armed, 0) == 0) return;
    c->result = do_it(c);
    nbi_atomic_store_release_u32(&c->has_acted, 1);
}

// --- callbacks ---

static nb_result on_phase(const nb_context *context, void *user) {
    act(user, (uint32_t)context->phase);
    return NB_OK;
}
static nb_result on_tick(const nb_context *context, void *user) {
    (void)context;
    act(user, PLACE_TICK);
    return NB_OK;
}
static nb_result on_frame(const nb_context *context, void *user) {
    (void)context;
    act(user, PLACE_FRAME);
    return NB_OK;
}
static nb_result on_job(const nb_context *context, void *user) {
    act(user, context->phase == NB_PHASE_COMMAND_RECORD ? PLACE_RECORD : PLACE_JOB);
    return NB_OK;
}
static nb_result on_merge(const nb_context *context, void *user, const nb_output_list *outputs) {
    (void)outputs;
    act(user, context->phase == NB_PHASE_COMMAND_RECORD ? PLACE_SUBMIT : PLACE_MERGE);
    return NB_OK;
}
static nb_result on_attach(nb_engine *engine, void *user) {
    (void)engine;
    act(user, PLACE_ATTACH);
    return NB_OK;
}
static void on_detach(nb_engine *engine, void *user) {
    (void)engine;
    act(user, PLACE_DETACH);
    act(user, PLACE_DETACH_LAST);
}
static nb_result on_io(void *argument) {
    act(*(careless **)argument, PLACE_IO);
    return NB_OK;
}
static nb_async_status on_step(nb_async_call *call, void *state) {
    NB_ASYNC_BEGIN(call);
    act(*(careless **)state, PLACE_STEP);
    NB_ASYNC_IO(call, on_io, state);
    NB_ASYNC_END(call);
}
static bool is_wanted(void *user, uint64_t generation, const void *state) {
    (void)state;
    act(user, PLACE_IS_WANTED);
    return generation == 0;
}
static nb_result on_commit(void *host, void *state) {
    (void)host;
    act(*(careless **)state, PLACE_COMMIT);
    return NB_OK;
}
static void on_publish(void *host, void *state) {
    (void)host;
    act(*(careless **)state, PLACE_PUBLISH);
}
static void on_discard(void *host, void *state, nb_result reason) {
    (void)host;
    act(*(careless **)state, reason == NB_ERR_STALE ? PLACE_DISCARD : PLACE_DISCARD_LAST);
}
static void on_task(nb_task_context *context, void *argument) {
    (void)context;
    act(*(careless **)argument, PLACE_TASK);
}
static void on_complete(void *user, const nb_task_result *result) {
    (void)result;
    act(user, PLACE_COMPLETE);
}
static void on_watch_begin(void *user, nb_tick_view *view) {
    (void)view;
    act(user, PLACE_WATCH_BEGIN);
}
static void on_watch_end(void *user, const nb_tick_view *view) {
    (void)view;
    act(user, PLACE_WATCH_END);
}
static void sample(void *user, const nb_tick_view *view, nb_input_event *event) {
    (void)view, (void)event;
    act(user, PLACE_SAMPLE);
}
static void on_token(void *user, nb_token *token) {
    (void)token;
    act(user, PLACE_TOKEN);
}
static nb_result on_service(nb_service *service, void *user) {
    uint64_t message = 0;
    while (nb_service_recv(service, &message, NB_NEVER_NS) == NB_OK) act(user, PLACE_SERVICE);
    return NB_OK;
}
static void on_retired(void *object, void *user) {
    (void)object;
    act(user, PLACE_RETIRED);
}
static uint64_t on_clock(void *user) {
    careless *c = user;
    act(c, PLACE_CLOCK);
    return c->now_ns;
}
static size_t on_state_save(void *user, void *bytes, size_t capacity_bytes) {
    careless *c = user;
    if (nb_engine_phase(c->r.engine) == NB_PHASE_NONE) act(c, PLACE_STATE);
    if (bytes != NULL && capacity_bytes >= sizeof c->plain) memcpy(bytes, &c->plain, sizeof c->plain);
    return sizeof c->plain;
}
static nb_result on_state_load(void *user, const void *bytes, size_t size_bytes) {
    (void)user, (void)bytes, (void)size_bytes;
    return NB_OK;
}

// --- the host ---

static nb_module_id find_module(const careless *c, const char *name) {
    nb_module_id modules[32];
    for (uint32_t phase = 1; phase < NB_PHASE_COUNT; ++phase) {
        uint32_t count = nb_engine_order_get(c->r.engine, (nb_phase)phase, modules, 32);
        for (uint32_t i = 0; i < count; ++i) {
            if (strcmp(nb_engine_module_name(c->r.engine, modules[i]), name) == 0) return modules[i];
        }
    }
    return (nb_module_id){0};
}

static nb_module_desc actor(careless *c) {
    nb_module_desc desc = {.name = "other", .tick = on_tick, .frame = on_frame, .user = c};
    desc.parallel = desc.record = on_job, desc.job_count = desc.record_count = 2;
    desc.merge = desc.submit = on_merge;
    desc.on_attach = on_attach, desc.on_detach = on_detach;
    for (uint32_t i = NB_PHASE_FRAME_START; i <= NB_PHASE_FRAME_END; ++i) {
        bool has_other = i == NB_PHASE_FIXED_SIM || i == NB_PHASE_GAMEPLAY || i == NB_PHASE_PARALLEL_TASKS ||
                         i == NB_PHASE_COMMAND_RECORD;
        if (!has_other) desc.handlers[i] = on_phase;
    }
    return desc;
}

static void open_engine(careless *c, uint32_t worker_count) {
    nb_engine_desc desc = rig_desc(worker_count);
    desc.keeps_history = desc.hashes_ticks = true;
    desc.history.tick_count_max = 70;
    desc.loop.clock = (nb_clock){.now_ns = on_clock, .user = c};
    desc.loop.is_unpaced = true;
    desc.output_bytes = desc.frame_bytes = desc.stage_bytes_max = 1 << 16;
    desc.stage_count_max = 4;
    desc.async.job_count_max = 8;
    rig_open_desc(&c->r, desc);
    nb_provider_desc state = {.name = "plain", .save = on_state_save, .load = on_state_load, .user = c};
    assert_int_equal(nb_states_add(nb_engine_states(c->r.engine), &state, NULL), NB_OK);
}

static nb_gpu *open_gpu(careless *c) {
    nb_gpu *gpu = NULL;
    nb_gpu_desc desc = {.width = 8, .height = 8, .frame_bytes = 4096, .lane_count = 2, .hooks = hooks_of(c)};
    desc.buffer_count_max = desc.image_count_max = desc.pipeline_count_max = 4;
    desc.graph = (nb_graph_desc){.pass_count_max = 4, .resource_count_max = 4, .use_count_max = 8};
    assert_int_equal(nb_gpu_create(&desc, &gpu), NB_OK);
    return gpu;
}

// An empty recording of these states, the same for all cases.
static memory_sink recorded;

static void open_replay(careless *c) {
    nb_recorder_desc desc = recorder_desc(c);
    desc.sink.user = &recorded;
    nb_recorder *recorder = NULL;
    if (recorded.size_bytes == 0) {
        assert_int_equal(nb_recorder_attach(c->r.engine, &desc, &recorder), NB_OK);
        assert_int_equal(nb_recorder_destroy(recorder), NB_OK);
    }
    nb_replay_desc replay = {.hooks = hooks_of(c)};
    assert_int_equal(nb_replay_open_memory(recorded.bytes, recorded.size_bytes, &replay, &c->replay), NB_OK);
    assert_int_equal(nb_replay_attach(c->replay, c->r.engine), NB_OK);
}

static void open_pieces(careless *c) {
    nb_scene_desc scene = {.node_count_max = 16, .hooks = hooks_of(c)};
    assert_int_equal(nb_scene_create(c->r.engine, &scene, &c->scene), NB_OK);
    nb_column_desc column = {.name = "value", .size_bytes = 4};
    nb_table_desc table = {.name = "table", .row_count_max = 4, .columns = &column, .column_count = 1};
    nb_table added;
    assert_int_equal(nb_store_table_add(nb_engine_world(c->r.engine), &table, &added), NB_OK);
    open_replay(c);
    nb_netplay_desc play = netplay_desc(c);
    assert_int_equal(nb_netplay_create(c->r.engine, &play, &c->netplay), NB_OK);
    c->gpu = open_gpu(c);
    if (c->what == ATTACH_GPU) c->other_gpu = open_gpu(c);
    assert_int_equal(nb_gpu_attach(c->gpu, c->r.engine), NB_OK);
    nb_recorder_desc record_desc = recorder_desc(c);
    assert_int_equal(nb_recorder_attach(c->r.engine, &record_desc, &c->recorder), NB_OK);
    nb_tick_watch watch = {.begin = on_watch_begin, .end = on_watch_end, .user = c};
    assert_int_equal(nb_engine_watch_add(c->r.engine, &watch), NB_OK);
    c->scene_module = find_module(c, "scene");
    c->netplay_module = find_module(c, "netplay");
    c->gpu_module = find_module(c, "gpu");
    c->gpu_record_module = find_module(c, "gpu.record");
    assert_true(c->gpu_module.value != 0 && c->gpu_record_module.value != 0);
}

static void submit_all(careless *c) {
    nb_async_job_desc job = async_job_of(on_step, on_commit, on_publish, on_discard, &c, sizeof c);
    job.is_wanted = is_wanted, job.user = c;
    nb_async *async = nb_engine_async(c->r.engine);
    assert_int_equal(nb_async_submit(async, &job, NULL), NB_OK);
    job.generation = 1; // not wanted
    assert_int_equal(nb_async_submit(async, &job, NULL), NB_OK);
    nb_async_job_desc last = {
        .step = async_pause_for_ever, .discard = on_discard, .state = &c, .state_size_bytes = sizeof c};
    assert_int_equal(nb_async_submit(async, &last, NULL), NB_OK);
    nb_task_desc task = {
        .run = on_task, .argument = &c, .argument_size_bytes = sizeof c, .on_complete = on_complete, .user = c};
    assert_int_equal(nb_task_submit(nb_engine_scheduler(c->r.engine), &task, NULL), NB_OK);
    assert_int_equal(nb_token_child(nb_engine_token(c->r.engine), "deadline", &c->token), NB_OK);
    assert_int_equal(nb_token_callback_register(c->token, &c->callback, on_token, c), NB_OK);
    assert_int_equal(nb_token_set_deadline(c->token, 0, 1), NB_OK);
    nb_service_desc service = {.name = "service", .run = on_service, .user = c};
    assert_int_equal(nb_service_start(nb_engine_services(c->r.engine), &service, &c->service), NB_OK);
    uint64_t message = 1;
    assert_int_equal(nb_service_send(c->service, &message), NB_OK);
    assert_int_equal(nb_timeline_retire(nb_engine_epochs(c->r.engine), 1, NULL, on_retired, c), NB_OK);
}

static void frame(careless *c) {
    c->now_ns += UINT64_C(16666667);
    nb_result result = nb_engine_frame(c->r.engine);
    assert_int_equal(result, NB_OK);
}

// Only the end of the engine comes to these.
static bool is_last(uint32_t place) { return place == PLACE_DETACH_LAST || place == PLACE_DISCARD_LAST; }

static void run_to_the_act(careless *c) {
    uint64_t end_ns = nbi_clock_now_ns() + LIMIT_NS;
    for (uint32_t i = 0; i < FRAME_COUNT; ++i) frame(c);
    if (c->place == PLACE_DETACH) assert_int_equal(nb_engine_module_detach(c->r.engine, c->self), NB_OK);
    if (c->place == PLACE_STATE) {
        unsigned char bytes[4096];
        size_t size_bytes = 0;
        nb_states_save(nb_engine_states(c->r.engine), bytes, sizeof bytes, &size_bytes);
    }
    while (!is_last(c->place) && nbi_atomic_load_acquire_u32(&c->has_acted) == 0 && nbi_clock_now_ns() < end_ns) {
        frame(c);
        nbi_thread_yield();
    }
    assert_true(is_last(c->place) || c->has_acted.value != 0);
    for (uint32_t i = 0; i < FRAME_COUNT; ++i) frame(c);
}

static void destroy_pieces(careless *c) {
    assert_int_equal(nb_scene_destroy(c->scene), NB_OK);
    assert_int_equal(nb_netplay_destroy(c->netplay), NB_OK);
    assert_int_equal(nb_gpu_destroy(c->gpu), NB_OK);
    assert_int_equal(nb_gpu_destroy(c->other_gpu), NB_OK);
    c->scene = NULL, c->netplay = NULL, c->gpu = NULL, c->other_gpu = NULL;
}

static nb_result run_case(uint32_t place, action what, uint32_t worker_count) {
    bool is_engine_first = is_last(place) || (place + what) % 2 == 0;
    static careless c;
    memset(&c, 0, sizeof c);
    c.place = place, c.what = what;
    open_engine(&c, worker_count);
    open_pieces(&c);
    c.is_armed.value = 1;
    nb_module_desc desc = actor(&c);
    assert_int_equal(nb_engine_module_attach(c.r.engine, &desc, &c.self), NB_OK);
    submit_all(&c);
    run_to_the_act(&c);
    // These come before the engine's end, as record.h says.
    // A recording whose writer was too slow for so many frames ends with NB_FULL.
    if (!is_last(place) || what != DESTROY_RECORDER) assert_true(destroy_recorder(&c) != NB_BUSY);
    if (!is_last(place) || what != CLOSE_REPLAY) assert_int_equal(FORGET(nb_replay_close(c.replay), c.replay), NB_OK);
    if (!is_engine_first) destroy_pieces(&c);
    assert_int_equal(nb_engine_destroy(c.r.engine), NB_OK);
    if (is_engine_first) destroy_pieces(&c);
    nb_token_callback_unregister(&c.callback);
    nb_token_release(c.token);
    assert_int_equal(c.has_acted.value, 1);
    if (what == DESTROY_ENGINE || what == RUN_FRAME) assert_true(c.result == NB_BUSY || c.result == NB_ERR_THREAD);
    assert_int_equal(c.r.heap.live_count.value, 0);
    free(c.sink.bytes);
    free(c.other_sink.bytes);
    return c.result;
}

// On the coordinator alone: everything else is refused before it looks at anything.
static bool is_elsewhere(uint32_t place) {
    return place == PLACE_JOB || place == PLACE_RECORD || place == PLACE_STEP || place == PLACE_IO ||
           place == PLACE_TASK || place == PLACE_SERVICE;
}

// Of a phase that has no jobs and no ticks: those have places of their own.
static bool is_in_handlers(uint32_t phase) {
    return phase != NB_PHASE_NONE && phase != NB_PHASE_FIXED_SIM && phase != NB_PHASE_GAMEPLAY &&
           phase != NB_PHASE_PARALLEL_TASKS && phase != NB_PHASE_COMMAND_RECORD && phase != NB_PHASE_DETACHED_SERVICES;
}

static bool is_tested(uint32_t place, action what) {
    bool is_of_thread = what == DESTROY_GPU || what == ATTACH_GPU || what == ATTACH_RECORDER || what == CREATE_NETPLAY;
    if (is_elsewhere(place) ? is_of_thread : IS_THREADS_ONLY) return false;
    return place >= NB_PHASE_COUNT || is_in_handlers(place);
}

TEST(everything_is_destroyed_from_every_callback) {
    for (uint32_t place = 1; place < PLACE_COUNT; ++place) {
        for (uint32_t what = 0; what < ACTION_COUNT; ++what) {
            if (!is_tested(place, (action)what)) continue;
            run_case(place, (action)what, 1);
            if (is_elsewhere(place) && !IS_THREADS_ONLY) run_case(place, (action)what, 0); // on the coordinator
        }
    }
}

// Between frames a destroy ends what it is asked to end, also under the callback of somebody else.
TEST(destroy_between_frames_is_no_promise_for_later) {
    static const action all[] = {DESTROY_SCENE, DESTROY_NETPLAY, DESTROY_GPU, DESTROY_RECORDER, CLOSE_REPLAY};
    static const uint32_t places[] = {PLACE_ATTACH, PLACE_DETACH, PLACE_DETACH_LAST, PLACE_CLOCK, PLACE_STATE};
    for (uint32_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        for (uint32_t j = 0; j < sizeof all / sizeof all[0]; ++j) {
            assert_int_equal(run_case(places[i], all[j], 0), NB_OK);
        }
    }
}

// --- a device that cannot attach as a whole ---

typedef struct half {
    careless c;
    nb_result attached, destroyed;
} half;

static void attach_half(half *h) {
    h->attached = nb_gpu_attach(h->c.gpu, h->c.r.engine);
    h->destroyed = FORGET(nb_gpu_destroy(h->c.gpu), h->c.gpu);
}

static nb_result half_on_attach(nb_engine *engine, void *user) {
    (void)engine;
    attach_half(user);
    return NB_OK;
}

static nb_result half_on_phase(const nb_context *context, void *user) {
    half *h = user;
    (void)context;
    if (h->attached == NB_OK) attach_half(h);
    return NB_OK;
}

TEST(device_that_attaches_half_way_can_be_destroyed) {
    for (uint32_t phase = NB_PHASE_NONE; phase <= NB_PHASE_FRAME_END; ++phase) {
        static half h;
        if (phase != NB_PHASE_NONE && !is_in_handlers(phase)) continue;
        memset(&h, 0, sizeof h);
        rig_open(&h.c.r, 0);
        h.c.gpu = open_gpu(&h.c);
        attach(&h.c.r, (nb_module_desc){.name = "gpu"}); // the second name that it needs
        nb_module_desc desc = {.name = "half", .user = &h};
        if (phase == NB_PHASE_NONE)
            desc.on_attach = half_on_attach;
        else
            desc.handlers[phase] = half_on_phase;
        attach(&h.c.r, desc);
        for (uint32_t i = 0; i < FRAME_COUNT; ++i) assert_int_equal(nb_engine_frame_delta(h.c.r.engine, 0), NB_OK);
        assert_int_equal(h.attached, NB_ERR_MISUSE); // the name is taken
        assert_int_equal(h.destroyed, phase == NB_PHASE_NONE ? NB_OK : NB_BUSY);
        assert_int_equal(nb_gpu_destroy(h.c.gpu), NB_OK);
        rig_close(&h.c.r);
    }
}
