// SPDX-License-Identifier: MIT
// A flight that somebody has written down.

#include "script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../game/explorer.h"
#include "../game/homes.h"
#include "../planet/angle.h"

// When, what, and up to three numbers; one more is seen, and refused.
#define WORDS_MAX 6u

// A word in a message is cut here: it may be anything.
#define SHOWN_MAX 32

// What is read, and what holds until another line changes it.
typedef struct reader {
    script *script;
    uint64_t seed;
    nb_rate tick_rate;
    const char *path;
    char *why;
    uint32_t line; // from 1
    char *words[WORDS_MAX];
    uint32_t word_count;
    double seconds; // of the last line with a command
    uint64_t tick;
    int32_t turn, look, pace, climb;
    explorer_mode mode;
} reader;

static bool fail(reader *r, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(r->why, SCRIPT_WHY_SIZE, "%.300s", r->path);
    if (r->line > 0) used += snprintf(r->why + used, SCRIPT_WHY_SIZE - (size_t)used, ":%u", r->line);
    used += snprintf(r->why + used, SCRIPT_WHY_SIZE - (size_t)used, ": ");
    vsnprintf(r->why + used, SCRIPT_WHY_SIZE - (size_t)used, format, arguments);
    va_end(arguments);
    // A file may hold anything; a message is one line of letters.
    for (char *c = r->why + used; *c != '\0'; ++c) *c = *c >= ' ' && *c <= '~' ? *c : '?';
    return false;
}

// --- words ---

// Decimals with a sign, as a person writes them: strtod takes more.
static bool read_number(const char *word, double *out) {
    bool has_digit = false;
    for (const char *c = word; *c != '\0'; ++c) {
        bool is_digit = *c >= '0' && *c <= '9', is_sign = (*c == '-' || *c == '+') && c == word;
        if (!is_digit && !is_sign && *c != '.') return false;
        has_digit = has_digit || is_digit;
    }
    char *end = NULL;
    *out = strtod(word, &end);
    return has_digit && *end == '\0';
}

// The number of a word between two others; what = as the message calls it.
static bool take_number(reader *r, uint32_t word, const char *what, double low, double high, double *out) {
    if (word >= r->word_count) return fail(r, "%s is missing", what);
    bool is_good = read_number(r->words[word], out) && *out >= low && *out <= high;
    return is_good || fail(r, "%s is %.7g to %.7g, not '%.*s'", what, low, high, SHOWN_MAX, r->words[word]);
}

static bool take_whole(reader *r, uint32_t word, const char *what, int32_t low, int32_t high, int32_t *out) {
    double value = 0;
    if (!take_number(r, word, what, low, high, &value)) return false;
    *out = (int32_t)value;
    return (double)*out == value || fail(r, "%s is a whole number, not '%.*s'", what, SHOWN_MAX, r->words[word]);
}

static bool ends_at(reader *r, uint32_t word_count) {
    return r->word_count <= word_count || fail(r, "'%.*s' is too much", SHOWN_MAX, r->words[word_count]);
}

// --- commands: words[0] is when, words[1] what ---

static bool add(reader *r, nb_input_event event) {
    script *s = r->script;
    uint32_t count = s->command_count;
    if (count == SCRIPT_COMMANDS_MAX) return fail(r, "more than %u commands", SCRIPT_COMMANDS_MAX);
    if (count >= SCRIPT_TICK_COMMANDS_MAX && s->commands[count - SCRIPT_TICK_COMMANDS_MAX].tick == r->tick)
        return fail(r, "more than %u commands in one tick", SCRIPT_TICK_COMMANDS_MAX);
    s->commands[s->command_count++] = (script_command){r->tick, event};
    return true;
}

static bool add_steer(reader *r) { return add(r, planet_steer(0, r->turn, r->look, r->pace)); }
static bool add_move(reader *r) { return add(r, planet_move(0, r->climb, r->mode)); }

static bool read_percent(reader *r, int32_t *out) {
    double percent = 0;
    if (!take_number(r, 2, "a percentage", -100, 100, &percent)) return false;
    *out = (int32_t)(percent / 100 * PLANET_PACE_MAX);
    return ends_at(r, 3);
}

// Degrees a second, as parts of a turn in a tick.
static bool read_turn(reader *r, int32_t *out) {
    double rate = (double)r->tick_rate.num / r->tick_rate.den, unit = 65536 / (360 * rate), degrees = 0;
    double limit = PLANET_TURN_MAX / unit;
    if (!take_number(r, 2, "degrees a second", -limit, limit, &degrees)) return false;
    double value = degrees * unit;
    *out = (int32_t)(value < 0 ? value - 0.5 : value + 0.5);
    return ends_at(r, 3);
}

static bool read_pace(reader *r) { return read_percent(r, &r->pace) && add_steer(r); }
static bool read_climb(reader *r) { return read_percent(r, &r->climb) && add_move(r); }
static bool read_turning(reader *r) { return read_turn(r, &r->turn) && add_steer(r); }
static bool read_looking(reader *r) { return read_turn(r, &r->look) && add_steer(r); }

static bool read_walk(reader *r) {
    r->mode = EXPLORER_WALKS;
    return ends_at(r, 2) && add_move(r);
}

static bool read_fly(reader *r) {
    r->mode = EXPLORER_FLIES;
    return ends_at(r, 2) && add_move(r);
}

static bool read_stop(reader *r) {
    r->turn = r->look = r->pace = r->climb = 0;
    return ends_at(r, 2) && add_steer(r) && add_move(r);
}

// Latitudes are north, longitudes east, from the middle of face 0.
static creature_home column_at(double latitude, double longitude) {
    double north = 0, out = 0, east = 0, ahead = 0;
    angle_of(latitude / 360, &north, &out);
    angle_of(longitude / 360, &east, &ahead);
    sphere_place at = sphere_locate((vec3d){out * ahead, north, -out * east});
    return (creature_home){at.face, sphere_column(at.u), sphere_column(at.v)};
}

static bool read_teleport(reader *r) {
    creature_home at = {0, 0, 0};
    int32_t number = 0, height = 0;
    if (r->word_count > 2 && strcmp(r->words[2], "home") == 0) {
        if (!take_whole(r, 3, "a home", 1, HOME_COUNT, &number)) return false;
        at = home_of(r->seed, (uint32_t)number - 1);
    } else {
        double latitude = 0, longitude = 0;
        if (!take_number(r, 2, "a latitude", -90, 90, &latitude)) return false;
        if (!take_number(r, 3, "a longitude", -180, 180, &longitude)) return false;
        at = column_at(latitude, longitude);
    }
    bool has_height = r->word_count > 4;
    if (has_height && !take_whole(r, 4, "a height", 0, PLANET_ALTITUDE_MAX, &height)) return false;
    return ends_at(r, 5) && add(r, planet_teleport(0, at, height));
}

static bool is_name(const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i < size; ++i) {
        char c = word[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '_' && c != '-') return false;
    }
    return size < SCRIPT_NAME_SIZE;
}

static bool read_shot(reader *r) {
    script *s = r->script;
    if (r->word_count < 3) return fail(r, "a name is missing");
    const char *name = r->words[2];
    if (!is_name(name))
        return fail(r, "a name is up to %d of a-z A-Z 0-9 _ -, not '%.*s'", SCRIPT_NAME_SIZE - 1, SHOWN_MAX, name);
    for (uint32_t i = 0; i < s->shot_count; ++i) {
        if (strcmp(s->shots[i].name, name) == 0) return fail(r, "there is a shot '%.*s' already", SHOWN_MAX, name);
    }
    if (s->shot_count == SCRIPT_SHOTS_MAX) return fail(r, "more than %u shots", SCRIPT_SHOTS_MAX);
    script_shot *shot = &s->shots[s->shot_count++];
    shot->tick_count = r->tick + 1;
    snprintf(shot->name, sizeof shot->name, "%s", name);
    return ends_at(r, 3);
}

static const struct {
    const char *name;
    bool (*read)(reader *r);
} COMMANDS[] = {
    {"walk", read_walk},   {"fly", read_fly},           {"stop", read_stop},
    {"pace", read_pace},   {"turn", read_turning},      {"look", read_looking},
    {"climb", read_climb}, {"teleport", read_teleport}, {"shot", read_shot},
};
#define COMMAND_COUNT (sizeof COMMANDS / sizeof COMMANDS[0])

// --- lines ---

// "+2" is two seconds after the line before.
static bool read_time(reader *r) {
    const char *word = r->words[0];
    bool is_later = word[0] == '+';
    double seconds = 0;
    bool is_time = read_number(word + is_later, &seconds) && word[is_later] != '+' && word[is_later] != '-';
    if (!is_time) return fail(r, "a line begins with seconds, such as 2.5 or +0.5, not '%.*s'", SHOWN_MAX, word);
    if (is_later) seconds += r->seconds;
    if (seconds > SCRIPT_SECONDS_MAX) return fail(r, "%.7g s is after the last, %d s", seconds, SCRIPT_SECONDS_MAX);
    if (seconds < r->seconds) return fail(r, "%.7g s is before the line above, %.7g s", seconds, r->seconds);
    r->seconds = seconds;
    r->tick = (uint64_t)(seconds * r->tick_rate.num / r->tick_rate.den + 0.5);
    return true;
}

static bool read_command(reader *r) {
    if (r->word_count < 2) return fail(r, "a command is missing");
    for (size_t i = 0; i < COMMAND_COUNT; ++i) {
        if (strcmp(r->words[1], COMMANDS[i].name) != 0) continue;
        r->script->tick_last = r->tick;
        return COMMANDS[i].read(r);
    }
    return fail(r, "there is no command '%.*s'", SHOWN_MAX, r->words[1]);
}

static bool read_line(reader *r, char *text) {
    text[strcspn(text, "#")] = '\0';
    r->word_count = 0;
    for (char *at = text; r->word_count < WORDS_MAX;) {
        at += strspn(at, " \t\r");
        if (*at == '\0') break;
        r->words[r->word_count++] = at;
        at += strcspn(at, " \t\r");
        if (*at != '\0') *at++ = '\0';
    }
    return r->word_count == 0 || (read_time(r) && read_command(r));
}

static bool read_lines(reader *r, FILE *file) {
    char text[SCRIPT_LINE_MAX + 1];
    uint32_t size = 0;
    for (int c = getc(file); c != EOF || size > 0; c = getc(file)) {
        if (size == 0) ++r->line;
        if (c == '\0') return fail(r, "this is no text");
        if (c != '\n' && c != EOF) {
            if (size == SCRIPT_LINE_MAX) return fail(r, "a line has up to %u characters", SCRIPT_LINE_MAX);
            text[size++] = (char)c;
            continue;
        }
        text[size] = '\0';
        size = 0;
        if (!read_line(r, text)) return false;
    }
    r->line = 0;
    if (ferror(file)) return fail(r, "it cannot be read");
    return r->script->command_count + r->script->shot_count > 0 || fail(r, "there is no command in it");
}

bool script_read(script *s, const char *path, uint64_t seed, nb_rate tick_rate, char why[SCRIPT_WHY_SIZE]) {
    memset(s, 0, sizeof *s);
    reader r = {.script = s, .seed = seed, .tick_rate = tick_rate, .path = path, .why = why};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return fail(&r, "it cannot be read");
    bool is_read = read_lines(&r, file);
    fclose(file);
    return is_read;
}

uint32_t script_commands(const script *s, uint32_t player, uint64_t tick, nb_input_event events[SCRIPT_EVENTS_MAX]) {
    uint32_t low = 0, high = s->command_count, count = 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->commands[middle].tick < tick)
            low = middle + 1;
        else
            high = middle;
    }
    if (tick == 0) events[count++] = planet_steer(player, 0, 0, 0);
    for (; low < s->command_count && s->commands[low].tick == tick; ++low) {
        events[count] = s->commands[low].event;
        events[count++].payload.i32[0] = (int32_t)player;
    }
    return count;
}
