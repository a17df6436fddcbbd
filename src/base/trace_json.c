// SPDX-License-Identifier: MIT
// Chrome's trace format: one JSON object with an array of events. Every number is written without the locale's help.

#include "trace.h"

#include "base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Bytes gathered before the output is called; a page, so that a file gets few writes and the stack stays small.
#define BUFFER_SIZE 4096
// Room for any number this file formats: 17 digits, sign, point and exponent need 24.
#define NUMBER_SIZE 48

typedef struct json {
    nb_trace_output output;
    void *user;
    uint32_t thread_number; // whose name was written last
    bool has_event;         // a comma is due before the next
    bool has_failed;        // output returned false: nothing more is written
    size_t size_bytes;
    char buffer[BUFFER_SIZE];
} json;

static void flush(json *out) {
    if (out->size_bytes != 0 && !out->has_failed) {
        out->has_failed = !out->output(out->user, out->buffer, out->size_bytes);
    }
    out->size_bytes = 0;
}

static void put_char(json *out, char character) {
    if (out->size_bytes == BUFFER_SIZE) flush(out);
    out->buffer[out->size_bytes++] = character;
}

static void put(json *out, const char *text) {
    while (*text != '\0') put_char(out, *text++);
}

static void put_u64(json *out, uint64_t value) {
    char text[NUMBER_SIZE];
    snprintf(text, sizeof text, "%llu", nb_llu(value));
    put(out, text);
}

static void put_i64(json *out, int64_t value) {
    char text[NUMBER_SIZE];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put(out, text);
}

// The shortest of 15 to 17 digits that reads back as the same double. What is not a digit, sign or exponent is the
// locale's decimal point, of one byte or several.
static void put_f64(json *out, double value) {
    if (!isfinite(value)) {
        put(out, "null");
        return;
    }
    char text[NUMBER_SIZE];
    for (int digits = 15; digits <= 17; ++digits) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    bool is_point = false;
    for (const char *c = text; *c != '\0'; ++c) {
        bool is_plain = (*c >= '0' && *c <= '9') || *c == '-' || *c == '+' || *c == 'e';
        if (is_plain || !is_point) put_char(out, is_plain ? *c : '.');
        is_point = !is_plain;
    }
}

// Chrome's unit is the microsecond.
static void put_time(json *out, uint64_t time_ns) {
    char text[NUMBER_SIZE];
    snprintf(text, sizeof text, "%llu.%03u", nb_llu(time_ns / 1000), (unsigned)(time_ns % 1000));
    put(out, text);
}

// How many bytes the UTF-8 character at text has, 0 where it is none: overlong forms, surrogates and values above
// U+10FFFF are refused by the range of the second byte.
static size_t utf8_size(const unsigned char *text) {
    unsigned lead = text[0], low = 0x80, high = 0xBF;
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (text[1] < low || text[1] > high) return 0;
    for (size_t i = 2; i < size; ++i) {
        if (text[i] < 0x80 || text[i] > 0xBF) return 0; // the final zero ends the walk here too
    }
    return size;
}

static void put_string(json *out, const char *string) {
    const unsigned char *text = (const unsigned char *)string;
    put_char(out, '"');
    while (*text != '\0') {
        size_t size = utf8_size(text);
        if (size == 0) {
            put(out, "\\ufffd");
            size = 1;
        } else if (*text < 0x20 || *text == '"' || *text == '\\') {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*text);
            put(out, escape);
        } else {
            for (size_t i = 0; i < size; ++i) put_char(out, (char)text[i]);
        }
        text += size;
    }
    put_char(out, '"');
}

// {"ph":"B","pid":1,"tid":3, without the closing brace.
static void put_head(json *out, const char *phase, uint32_t thread_number) {
    put(out, out->has_event ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    put(out, phase);
    put(out, "\",\"pid\":1,\"tid\":");
    put_u64(out, thread_number);
    out->has_event = true;
}

static void put_thread_name(json *out, const nb_trace_event *event) {
    put_head(out, "M", event->thread_number);
    put(out, ",\"name\":\"thread_name\",\"args\":{\"name\":");
    put_string(out, event->thread_name);
    put(out, "}}");
    out->thread_number = event->thread_number;
}

static const char *phase_of(nb_trace_kind kind) {
    switch (kind) {
    case NB_TRACE_KIND_BEGIN: return "B";
    case NB_TRACE_KIND_END: return "E";
    case NB_TRACE_KIND_COUNTER_I64:
    case NB_TRACE_KIND_COUNTER_F64: return "C";
    default: return "i";
    }
}

static void put_arguments(json *out, const nb_trace_event *event) {
    switch (event->kind) {
    case NB_TRACE_KIND_INSTANT: put(out, ",\"s\":\"t\""); break;
    case NB_TRACE_KIND_FRAME:
        put(out, ",\"s\":\"p\",\"args\":{\"frame\":");
        put_u64(out, event->frame);
        put_char(out, '}');
        break;
    case NB_TRACE_KIND_COUNTER_I64:
    case NB_TRACE_KIND_COUNTER_F64:
        put(out, ",\"args\":{\"value\":");
        if (event->kind == NB_TRACE_KIND_COUNTER_I64) put_i64(out, event->value_i64);
        if (event->kind == NB_TRACE_KIND_COUNTER_F64) put_f64(out, event->value_f64);
        put_char(out, '}');
        break;
    default: break;
    }
}

static void put_event(void *user, const nb_trace_event *event) {
    json *out = (json *)user;
    if (out->has_failed) return;
    if (event->thread_number != out->thread_number) put_thread_name(out, event);
    put_head(out, phase_of(event->kind), event->thread_number);
    put(out, ",\"ts\":");
    put_time(out, event->time_ns);
    if (event->kind != NB_TRACE_KIND_END) {
        put(out, ",\"name\":");
        put_string(out, event->kind == NB_TRACE_KIND_FRAME ? "frame" : event->name);
    }
    put_arguments(out, event);
    put_char(out, '}');
}

nb_result nb_trace_write_json(nb_trace *trace, nb_trace_output output, void *user) {
    if (trace == NULL) return NBI_FAIL_NULL("trace");
    if (output == NULL) return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "output is NULL");
    json out = {.output = output, .user = user};
    put(&out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    nb_result result = nb_trace_read(trace, put_event, &out);
    if (result != NB_OK) return result; // nothing was output: the start is still in the buffer
    put(&out, "\n]}\n");
    flush(&out);
    if (!out.has_failed) return NB_OK;
    nbi_log(&trace->hooks, NB_LOG_ERROR, NB_ITEM_TRACE_WRITE, __func__, "the output refused; the trace is incomplete");
    return NB_ERR_OS;
}

static bool write_to_file(void *user, const char *bytes, size_t size_bytes) {
    return fwrite(bytes, 1, size_bytes, (FILE *)user) == size_bytes;
}

nb_result nb_trace_write_json_file(nb_trace *trace, const char *path) {
    if (trace == NULL) return NBI_FAIL_NULL("trace");
    if (path == NULL) return NBI_FAIL(&trace->hooks, NB_ITEM_TRACE_ARGUMENT, NB_ERR_MISUSE, "path is NULL");
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        nbi_log(&trace->hooks, NB_LOG_ERROR, NB_ITEM_TRACE_WRITE, __func__, "cannot open \"%s\"", path);
        return NB_ERR_OS;
    }
    nb_result result = nb_trace_write_json(trace, write_to_file, file);
    // What the buffer of stdio still holds fails here, on a full disk for instance.
    if (fclose(file) != 0 && result == NB_OK) {
        nbi_log(&trace->hooks, NB_LOG_ERROR, NB_ITEM_TRACE_WRITE, __func__, "cannot write \"%s\"", path);
        result = NB_ERR_OS;
    }
    return result;
}
