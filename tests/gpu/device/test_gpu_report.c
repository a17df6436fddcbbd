// SPDX-License-Identifier: MIT
// What the log says of a host that makes the same mistake in each of a thousand frames: a bounded number of lines, each
// with the name of the object, and the first mistake with another object all the same.

#include "support/log_lines.h"

#include "gpu/device/gpu_fixture.h"

#define FRAMES 1000

typedef struct host {
    nb_gpu *gpu;
    log_lines log;
    uint32_t asserted_count;
    void (*begun)(struct host *h); // in the frame, before the graph is compiled; may be NULL
    void (*recorded)(struct host *h, nb_gpu_command *command); // in the pass "ground"; may be NULL
    nb_gpu_buffer mesh, sand, dead;
    nb_gpu_span old;
    bool is_other; // the same mistake with another object
} host;

static void count_assertion(void *user, const nb_log_record *record) {
    (void)record;
    ++*(uint32_t *)user;
}

static nb_gpu_buffer make_buffer(host *h, const char *name) {
    nb_gpu_buffer_desc desc = {.name = name, .size_bytes = 256};
    nb_gpu_buffer buffer = {0};
    assert_int_equal(nb_gpu_buffer_create(h->gpu, &desc, &buffer), NB_OK);
    return buffer;
}

static void host_open(host *h) {
    memset(h, 0, sizeof *h);
    nb_gpu_desc desc = gpu_rig_desc();
    desc.hooks = log_lines_hooks(&h->log);
    desc.hooks.assertion = (nb_assert_hook){count_assertion, &h->asserted_count};
    assert_int_equal(nb_gpu_create(&desc, &h->gpu), NB_OK);
    h->mesh = make_buffer(h, "mesh");
    h->sand = make_buffer(h, "sand");
    h->dead = make_buffer(h, "dead");
    assert_int_equal(nb_gpu_buffer_destroy(h->gpu, h->dead), NB_OK);
}

static nb_result record_ground(nb_gpu_command *command, uint32_t bucket, uint32_t bucket_count, void *user) {
    host *h = user;
    (void)bucket, (void)bucket_count;
    if (h->recorded != NULL) h->recorded(h, command);
    return NB_OK;
}

static void play(host *h, uint32_t frame_count) {
    for (uint32_t i = 0; i < frame_count; ++i) {
        assert_int_equal(nb_gpu_frame_begin(h->gpu), NB_OK);
        if (h->begun != NULL) h->begun(h);
        gpu_pass_add(h->gpu, (gpu_pass){.name = h->is_other ? "sky" : "ground", .record = record_ground, .user = h});
        gpu_finish(h->gpu);
    }
}

// The mistake for a thousand frames, then once with the other object.
static void assert_bounded(host *h, const char *text, const char *other) {
    play(h, FRAMES);
    assert_throttled(&h->log, text);
#if !defined(NDEBUG)
    assert_int_equal(h->asserted_count, FRAMES);
#endif
    h->is_other = true;
    play(h, 1);
    assert_int_equal(log_lines_saying(&h->log, other), 1);
    assert_int_equal(h->log.count.value, 5);
    assert_int_equal(nb_gpu_destroy(h->gpu), NB_OK);
}

static nb_gpu_buffer target(const host *h) { return h->is_other ? h->sand : h->mesh; }

// --- commands ---

static void bind_nothing(host *h, nb_gpu_command *command) {
    (void)h;
    nb_gpu_set_buffer(command, 0, (nb_gpu_buffer){0}, 0, 0);
}

static void bind_dead(host *h, nb_gpu_command *command) { nb_gpu_set_buffer(command, 0, h->dead, 0, 0); }

static void bind_odd(host *h, nb_gpu_command *command) { nb_gpu_set_buffer(command, 0, target(h), 3, 0); }

TEST(commands_that_are_refused_in_each_frame_are_throttled) {
    static host h;
    host_open(&h);
    h.recorded = bind_nothing;
    assert_bounded(&h, "pass ground, a buffer: it does not live; create it", "pass sky, a buffer: it does not live");
    host_open(&h);
    h.recorded = bind_dead;
    assert_bounded(&h, "pass ground, dead: it does not live; create it", "pass sky, dead: it does not live");
    host_open(&h);
    h.recorded = bind_odd;
    assert_bounded(&h, "pass ground, mesh: the part is empty, outside", "pass sky, sand: the part");
}

// --- uploads ---

static void upload_odd(host *h) {
    nb_gpu_span span = {0};
    assert_int_equal(nb_gpu_frame_alloc(h->gpu, 16, 16, &span), NB_OK);
    assert_int_equal(nb_gpu_upload_buffer(h->gpu, span, target(h), 250), NB_ERR_RANGE);
}

static void upload_to_dead(host *h) {
    nb_gpu_span span = {0};
    assert_int_equal(nb_gpu_frame_alloc(h->gpu, 16, 16, &span), NB_OK);
    nb_gpu_buffer none = {0};
    assert_int_equal(nb_gpu_upload_buffer(h->gpu, span, h->is_other ? none : h->dead, 0), NB_ERR_STALE);
}

// With the span of the first frame.
static void upload_late(host *h) {
    if (h->old.size_bytes == 0) assert_int_equal(nb_gpu_frame_alloc(h->gpu, 16, 16, &h->old), NB_OK);
    nb_gpu_span late = h->old;
    late.buffer.value ^= UINT64_C(1) << 50; // the picture of another frame, already in the first one
    assert_int_equal(nb_gpu_upload_buffer(h->gpu, late, target(h), 0), NB_ERR_MISUSE);
}

TEST(uploads_that_are_refused_in_each_frame_are_throttled) {
    static host h;
    host_open(&h);
    h.begun = upload_odd;
    assert_bounded(&h, "buffer \"mesh\" of 256 bytes: 16 bytes at 250 are not inside", "buffer \"sand\" of 256 bytes");
    host_open(&h);
    h.begun = upload_to_dead;
    assert_bounded(&h, "upload to buffer \"dead\"", "upload to buffer \"unknown\"");
    host_open(&h);
    h.begun = upload_late;
    assert_bounded(&h, "upload to buffer \"mesh\": the span is of another frame; call nb_gpu_frame_alloc",
                   "upload to buffer \"sand\": the span is of another frame");
}

// --- creation and the wrong moment ---

static void create_bad(host *h) {
    nb_gpu_buffer_desc desc = {.name = h->is_other ? "empty" : "void"};
    nb_gpu_buffer out;
    assert_int_equal(nb_gpu_buffer_create(h->gpu, &desc, &out), NB_ERR_RANGE);
}

static void destroy_dead(host *h) {
    nb_gpu_buffer none = {0};
    assert_int_equal(nb_gpu_buffer_destroy(h->gpu, h->is_other ? none : h->dead), NB_ERR_STALE);
}

static void create_while_recording(host *h, nb_gpu_command *command) {
    nb_gpu_buffer_desc desc = {.name = h->is_other ? "late too" : "late", .size_bytes = 16};
    nb_gpu_buffer out;
    (void)command;
    assert_int_equal(nb_gpu_buffer_create(h->gpu, &desc, &out), NB_BUSY);
}

TEST(creation_that_is_refused_in_each_frame_is_throttled) {
    static host h;
    host_open(&h);
    h.begun = create_bad;
    assert_bounded(&h, "buffer \"void\": ", "buffer \"empty\": ");
    host_open(&h);
    h.begun = destroy_dead;
    assert_bounded(&h, "buffer \"dead\" (handle 0x", "buffer \"unknown\" (handle 0x0) does not live");
    host_open(&h);
    h.recorded = create_while_recording;
    assert_bounded(&h, "buffer \"late\": the frame is being recorded; create", "buffer \"late too\": the frame is");
}

static void begin_again(host *h) {
    if (h->is_other)
        assert_int_equal(nb_gpu_frame_submit(h->gpu), NB_ERR_MISUSE);
    else
        assert_int_equal(nb_gpu_frame_begin(h->gpu), NB_ERR_MISUSE);
}

TEST(calls_at_the_wrong_moment_of_each_frame_are_throttled) {
    static host h;
    host_open(&h);
    h.begun = begin_again;
    assert_bounded(&h, "a frame is begun, or an engine runs the frames; end",
                   "no frame is compiled, or it was submitted");
}

// --- the graph ---

static void import_dead(host *h) {
    nb_graph_resource resource = {0};
    nb_graph_import_desc desc = {.name = h->is_other ? "rain" : "snow",
                                 .is_buffer = true,
                                 .buffer = h->dead,
                                 .before = NB_GPU_ACCESS_COPY_TO,
                                 .after = NB_GPU_ACCESS_STORAGE_READ};
    nb_graph_pass pass = {0};
    nb_graph_pass_desc pass_desc = {.name = "melt", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    assert_int_equal(nb_graph_import(nb_gpu_graph(h->gpu), &desc, &resource), NB_OK);
    assert_int_equal(nb_graph_pass_add(nb_gpu_graph(h->gpu), &pass_desc, &pass), NB_OK);
    assert_int_equal(nb_graph_use(nb_gpu_graph(h->gpu), pass, resource, NB_GPU_ACCESS_STORAGE_READ), NB_OK);
}

static void name_twice(host *h) {
    nb_graph_image_desc desc = {h->is_other ? "haze" : "glow", NB_GPU_FORMAT_R8, 4, 4};
    nb_graph_resource resource;
    assert_int_equal(nb_graph_image_add(nb_gpu_graph(h->gpu), &desc, &resource), NB_OK);
    assert_int_equal(nb_graph_image_add(nb_gpu_graph(h->gpu), &desc, &resource), NB_ERR_MISUSE);
}

// With the handle of an earlier frame, which is another number in each frame.
static void use_of_the_frame_before(host *h) {
    static nb_graph_pass last;
    nb_graph_pass_desc desc = {.name = h->is_other ? "blur too" : "blur", .kind = NB_GPU_PASS_COMPUTE, .is_kept = true};
    nb_graph_image_desc image_desc = {"kept", NB_GPU_FORMAT_R8, 4, 4};
    nb_graph_resource kept = {0}, stale = {last.value != 0 ? last.value : 1};
    nb_graph_pass pass = {0};
    assert_int_equal(nb_graph_image_add(nb_gpu_graph(h->gpu), &image_desc, &kept), NB_OK);
    assert_int_equal(nb_graph_pass_add(nb_gpu_graph(h->gpu), &desc, &pass), NB_OK);
    assert_int_equal(nb_graph_use(nb_gpu_graph(h->gpu), pass, stale, NB_GPU_ACCESS_STORAGE), NB_ERR_STALE);
    last = pass; // the second resource had the same number
}

TEST(graphs_that_are_wrong_in_each_frame_are_throttled) {
    static host h;
    host_open(&h);
    h.begun = import_dead;
    assert_bounded(&h, "gpu: import \"snow\": ", "gpu: import \"rain\": ");
    host_open(&h);
    h.begun = name_twice;
    assert_bounded(&h, "a resource 'glow' is there already", "a resource 'haze' is there already");
    host_open(&h);
    h.begun = use_of_the_frame_before;
    assert_bounded(&h, "'blur': resource 1 is of no assembly", "'blur too': resource 1 is of no assembly");
}

// --- what the device refuses ---

TEST(failures_of_each_frame_are_counted_and_not_asserted) {
    static host h;
    memset(&h, 0, sizeof h);
    nb_gpu_null *control = NULL;
    assert_int_equal(nb_gpu_null_create(NULL, &control), NB_OK);
    nb_gpu_null_desc null_desc = {.control = control, .has_surface = true};
    nb_gpu_desc desc = gpu_rig_desc();
    desc.backend_desc = &null_desc;
    desc.buffer_count_max = 1;
    desc.hooks = log_lines_hooks(&h.log);
    desc.hooks.assertion = (nb_assert_hook){count_assertion, &h.asserted_count};
    assert_int_equal(nb_gpu_create(&desc, &h.gpu), NB_OK);
    make_buffer(&h, "only");
    nb_gpu_buffer_desc more = {.name = "more", .size_bytes = 16};
    nb_gpu_buffer out;
    for (int i = 0; i < FRAMES; ++i) assert_int_equal(nb_gpu_buffer_create(h.gpu, &more, &out), NB_FULL);
    assert_throttled(&h.log, "gpu: buffer \"more\" has no room: 1 are alive or wait for the device; raise "
                             "nb_gpu_desc.buffer_count_max");
    assert_int_equal(h.asserted_count, 0);
    assert_int_equal(nb_gpu_destroy(h.gpu), NB_OK);
    nb_gpu_null_destroy(control);
}
