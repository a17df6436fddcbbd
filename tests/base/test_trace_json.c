// SPDX-License-Identifier: MIT
// The trace's JSON: exact output for a known history, and strictly valid whatever names, values and histories there
// are.

#include "support/support.h"

#include "nebula/trace.h"

#include <locale.h>
#include <math.h>

static uint64_t step_clock(void *user) { return *(uint64_t *)user += 1001; }

typedef struct text {
    char *bytes;
    size_t size, capacity;
    size_t limit; // output refuses to take more than this; 0 = no limit
} text;

static bool append(void *user, const char *bytes, size_t size) {
    text *self = (text *)user;
    if (self->limit != 0 && self->size + size > self->limit) return false;
    if (self->size + size + 1 > self->capacity) {
        self->capacity = 2 * (self->size + size + 1);
        self->bytes = (char *)realloc(self->bytes, self->capacity);
        if (self->bytes == NULL) return false;
    }
    memcpy(self->bytes + self->size, bytes, size);
    self->size += size;
    self->bytes[self->size] = '\0';
    return true;
}

typedef struct fixture {
    uint64_t now;
    test_log log;
    nb_trace *trace;
    nb_trace_thread *thread;
    text json;
} fixture;

static void start(fixture *room, uint32_t record_count_max, const char *thread_name) {
    *room = (fixture){0};
    nb_trace_desc desc = {.thread_count_max = 2,
                          .record_count_max = record_count_max,
                          .now = step_clock,
                          .now_user = &room->now,
                          .hooks = test_hooks(&room->log, NULL)};
    assert_int_equal(nb_trace_create(&desc, &room->trace), NB_OK);
    assert_int_equal(nb_trace_attach(room->trace, thread_name, &room->thread), NB_OK);
}

static nb_label label_of(fixture *room, const char *name) {
    nb_label label = {0};
    assert_int_equal(nb_labels_intern(nb_trace_labels(room->trace), name, &label), NB_OK);
    return label;
}

static const char *write_json(fixture *room) {
    room->json.size = 0;
    assert_int_equal(nb_trace_write_json(room->trace, append, &room->json), NB_OK);
    return room->json.bytes;
}

static void finish(fixture *room) {
    free(room->json.bytes);
    assert_int_equal(nb_trace_destroy(room->trace), NB_OK);
}

// --- a strict checker: RFC 8259, UTF-8, nothing after the end ---

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *check_digits(const char *at) {
    size_t count = strspn(at, "0123456789");
    return count == 0 ? NULL : at + count;
}

static const char *check_number(const char *at) {
    if (*at == '-') ++at;
    at = *at == '0' ? at + 1 : check_digits(at);
    if (at != NULL && *at == '.') at = check_digits(at + 1);
    if (at != NULL && (*at == 'e' || *at == 'E')) {
        ++at;
        if (*at == '+' || *at == '-') ++at;
        at = check_digits(at);
    }
    return at;
}

// Decodes one character of more than one byte by the book, independently of how the writer does it.
static const char *check_utf8(const char *at) {
    const unsigned char *c = (const unsigned char *)at;
    size_t more = c[0] >= 0xF0 ? 3 : c[0] >= 0xE0 ? 2 : 1;
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    if (c[0] < 0xC0 || c[0] > 0xF7) return NULL;
    uint32_t value = c[0] & (0x3Fu >> more);
    for (size_t i = 1; i <= more; ++i) {
        if ((c[i] & 0xC0) != 0x80) return NULL;
        value = value << 6 | (c[i] & 0x3Fu);
    }
    bool is_valid = value >= smallest[more] && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
    return is_valid ? at + more + 1 : NULL;
}

static const char *check_escape(const char *at) {
    if (*at != 'u') return *at != '\0' && strchr("\"\\/bfnrt", *at) != NULL ? at + 1 : NULL;
    return strspn(at + 1, "0123456789abcdefABCDEF") >= 4 ? at + 5 : NULL;
}

static const char *check_string(const char *at) {
    if (*at != '"') return NULL;
    for (++at; at != NULL && *at != '"';) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20) return NULL;
        at = c == '\\' ? check_escape(at + 1) : c < 0x80 ? at + 1 : check_utf8(at);
    }
    return at == NULL ? NULL : at + 1;
}

static const char *check_value(const char *at, int depth);

// The members of an object or array, after its opening bracket.
static const char *check_members(const char *at, char close, int depth) {
    at = skip_space(at);
    if (*at == close) return at + 1;
    for (;;) {
        if (close == '}') {
            at = check_string(skip_space(at));
            if (at == NULL || *(at = skip_space(at)) != ':') return NULL;
            ++at;
        }
        at = check_value(at, depth);
        if (at == NULL) return NULL;
        at = skip_space(at);
        if (*at == close) return at + 1;
        if (*at++ != ',') return NULL;
    }
}

static const char *check_value(const char *at, int depth) {
    if (depth > 8) return NULL;
    at = skip_space(at);
    if (*at == '{') return check_members(at + 1, '}', depth + 1);
    if (*at == '[') return check_members(at + 1, ']', depth + 1);
    if (*at == '"') return check_string(at);
    if (strncmp(at, "null", 4) == 0 || strncmp(at, "true", 4) == 0) return at + 4;
    if (strncmp(at, "false", 5) == 0) return at + 5;
    return check_number(at);
}

static bool is_json(const char *json) {
    const char *end = check_value(json, 0);
    return end != NULL && *skip_space(end) == '\0';
}

TEST(checker_refuses_what_is_not_json) {
    const char *good[] = {"{}", "[1,-0.5e+3,\"\\u00e9\xC3\xA9\",null,{\"a\":[]}] ", "0"};
    const char *bad[] = {
        "",    "{",        "[1,]",  "01",           "1.",  "[\"\x01\"]", "\"\\x\"", "[}",    "{\"a\"}",
        "nan", "\"\xFF\"", "[1] 2", "\"\xC0\x80\"", "1,5", "-",          "\"open",  "{a:1}", "\"\xED\xA0\x80\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) assert_true(is_json(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        if (is_json(bad[i])) fail_msg("\"%s\" passed as JSON", bad[i]);
    }
}

// --- the writer ---

TEST(trace_json_of_a_known_history_is_exact) {
    fixture room;
    start(&room, 64, "main");
    nb_label work = label_of(&room, "work"), load = label_of(&room, "load");
    nb_trace_frame(room.thread, 41);
    nb_trace_begin(room.thread, work);
    nb_trace_instant(room.thread, load);
    nb_trace_counter(room.thread, load, -12);
    nb_trace_counter_f64(room.thread, load, 0.1);
    nb_trace_end(room.thread);
    nb_trace_begin(room.thread, work);
    const char expected[] =
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"main\"}},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1.001,\"name\":\"frame\",\"s\":\"p\",\"args\":"
        "{\"frame\":41}},\n"
        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":2.002,\"name\":\"work\"},\n"
        "{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":3.003,\"name\":\"load\",\"s\":\"t\"},\n"
        "{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":4.004,\"name\":\"load\",\"args\":{\"value\":-12}},\n"
        "{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":5.005,\"name\":\"load\",\"args\":{\"value\":0.1}},\n"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":6.006},\n"
        "{\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":7.007,\"name\":\"work\"},\n"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":8.008}\n"
        "]}\n";
    assert_string_equal(write_json(&room), expected);
    assert_true(is_json(expected));
    finish(&room);
}

TEST(trace_json_of_nothing_is_valid) {
    fixture room;
    start(&room, 16, "main");
    assert_string_equal(write_json(&room), "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
    assert_true(is_json(room.json.bytes));
    finish(&room);
}

TEST(trace_json_of_hostile_names_is_valid) {
    uint64_t random = test_seed(__func__);
    fixture room;
    start(&room, 4096, "\"main\\\n\xFF");
    const char *names[] = {"\"",
                           "\\",
                           "a\"b\\c",
                           "\n\r\t\b\f\x01\x1F\x7F",
                           "\xC3\xA9",
                           "\xF0\x9F\x8E\xAE",
                           "\x80",
                           "\xC3",
                           "\xE2\x82",
                           "\xF0\x9F\x8E",
                           "\xC0\x80",
                           "\xED\xA0\x80",
                           "\xF4\x90\x80\x80",
                           "\xF8",
                           "\xE0\x80\x80",
                           "</script>",
                           "%s%n"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        nb_trace_instant(room.thread, label_of(&room, names[i]));
    for (int i = 0; i < 1000; ++i) {
        char name[24] = {0};
        size_t size = (size_t)(1 + test_random(&random) % 23);
        for (size_t k = 0; k < size; ++k) name[k] = (char)(1 + test_random(&random) % 255);
        nb_trace_begin(room.thread, label_of(&room, name));
    }
    assert_true(is_json(write_json(&room)));
    assert_non_null(strstr(room.json.bytes, "\"\xF0\x9F\x8E\xAE\""));
    assert_non_null(strstr(room.json.bytes, "\"a\\u0022b\\u005cc\""));
    assert_non_null(strstr(room.json.bytes, "{\"name\":\"\\u0022main\\u005c\\u000a\\ufffd\"}"));
    finish(&room);
}

TEST(trace_json_numbers_are_valid_and_exact) {
    const double values[] = {0.0,     -0.0, 0.1,           1.0 / 3, 1e300,    -1e-300,  5e-324, 1.7976931348623157e308,
                             1234567, 1e21, 123456789.125, NAN,     INFINITY, -INFINITY};
    const size_t count = sizeof values / sizeof values[0];
    fixture room;
    start(&room, 64, "main");
    nb_label label = label_of(&room, "v");
    for (size_t i = 0; i < count; ++i) nb_trace_counter_f64(room.thread, label, values[i]);
    nb_trace_counter(room.thread, label, INT64_MIN);
    nb_trace_counter(room.thread, label, INT64_MAX);
    nb_trace_frame(room.thread, NB_TRACE_FRAME_MAX);
    const char *at = write_json(&room);
    assert_true(is_json(at));
    for (size_t i = 0; i < count; ++i) {
        at = strstr(at, "\"value\":");
        assert_non_null(at);
        at += strlen("\"value\":");
        if (!isfinite(values[i])) {
            assert_memory_equal(at, "null", 4);
        } else {
            assert_true(strtod(at, NULL) == values[i]);
        }
    }
    assert_non_null(strstr(at, "\"value\":-9223372036854775808}"));
    assert_non_null(strstr(at, "\"value\":9223372036854775807}"));
    assert_non_null(strstr(at, "\"frame\":1152921504606846975}"));
    finish(&room);
}

// Locales whose decimal point is a comma; a machine may have none of them, then this shows nothing.
TEST(trace_json_does_not_depend_on_the_locale) {
    const char *locales[] = {"de_DE.UTF-8", "de_DE.utf8",  "de_DE", "fr_FR.UTF-8",
                             "nl_NL.UTF-8", "pt_BR.UTF-8", "ps_AF"};
    bool has_locale = false;
    for (size_t i = 0; i < sizeof locales / sizeof locales[0] && !has_locale; ++i) {
        has_locale = setlocale(LC_ALL, locales[i]) != NULL;
    }
    fixture room;
    start(&room, 64, "main");
    nb_trace_counter_f64(room.thread, label_of(&room, "v"), 1234567.5);
    assert_true(is_json(write_json(&room)));
    assert_non_null(strstr(room.json.bytes, "\"value\":1234567.5}"));
    finish(&room);
    setlocale(LC_ALL, "C");
    if (!has_locale) print_message("no locale with a decimal comma is installed\n");
}

// Follows the spans of one thread through the lines of the output.
static void assert_balanced(const char *json) {
    int depth = 0;
    for (const char *at = json; (at = strstr(at, "{\"ph\":\"")) != NULL; ++at) {
        char phase = at[strlen("{\"ph\":\"")];
        if (phase == 'B') ++depth;
        if (phase == 'E') --depth;
        assert_true(depth >= 0);
    }
    assert_int_equal(depth, 0);
}

TEST(trace_json_spans_are_balanced_whatever_was_overwritten) {
    uint64_t random = test_seed(__func__);
    fixture room;
    start(&room, 32, "main");
    nb_label label = label_of(&room, "span");
    for (int round = 0; round < 300; ++round) {
        for (uint64_t steps = test_random(&random) % 12; steps > 0; --steps) {
            uint64_t pick = test_random(&random) % 5;
            if (pick < 2) nb_trace_begin(room.thread, label);
            if (pick == 2 || pick == 3) nb_trace_end(room.thread);
            if (pick == 4) nb_trace_counter(room.thread, label, 1);
        }
        assert_balanced(write_json(&room));
        assert_true(is_json(room.json.bytes));
    }
    finish(&room);
}

TEST(trace_json_output_that_refuses_is_an_error) {
    fixture room;
    start(&room, 4096, "main");
    nb_label label = label_of(&room, "span");
    for (int i = 0; i < 1000; ++i) nb_trace_instant(room.thread, label);
    size_t size = strlen(write_json(&room));
    for (size_t limit = 1; limit < size; limit += 4000) {
        room.json.size = 0;
        room.json.limit = limit;
        assert_int_equal(nb_trace_write_json(room.trace, append, &room.json), NB_ERR_OS);
        assert_true(room.json.size <= limit);
    }
    assert_true(test_log_count(&room.log, NB_ITEM_TRACE_WRITE) > 5);
    room.json.limit = 0;
    assert_true(is_json(write_json(&room)));
    finish(&room);
}

static void read_whole_file(FILE *file, text *out) {
    char buffer[512];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) assert_true(append(out, buffer, got));
}

TEST(trace_json_file_holds_the_same_bytes) {
    fixture room;
    text content = {0};
    char path[64];
    start(&room, 64, "main");
    nb_trace_instant(room.thread, label_of(&room, "once"));
    snprintf(path, sizeof path, "test_trace_json_%llx.json", (unsigned long long)nbi_clock_now_ns());
    assert_int_equal(nb_trace_write_json_file(room.trace, path), NB_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    read_whole_file(file, &content);
    fclose(file);
    remove(path);
    assert_string_equal(content.bytes, write_json(&room));
    free(content.bytes);
    finish(&room);
}

TEST(trace_json_bad_arguments_and_paths_are_refused) {
    fixture room;
    start(&room, 64, "main");
    nb_trace_instant(room.thread, label_of(&room, "once"));
    assert_int_equal(nb_trace_write_json(NULL, append, &room.json), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_write_json(room.trace, NULL, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_write_json_file(NULL, "x"), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_write_json_file(room.trace, NULL), NB_ERR_MISUSE);
    assert_int_equal(nb_trace_write_json_file(room.trace, "no/such/folder/trace.json"), NB_ERR_OS);
    FILE *full = fopen("/dev/full", "wb");
    if (full != NULL) {
        fclose(full);
        assert_int_equal(nb_trace_write_json_file(room.trace, "/dev/full"), NB_ERR_OS);
    }
    assert_true(test_log_count(&room.log, NB_ITEM_TRACE_WRITE) >= 1);
    finish(&room);
}
