// SPDX-License-Identifier: MIT
// A flight that is read from a file: what its lines become, and what is said about those that are wrong.

#include "frame/engine/engine_fixture.h"

#include <math.h>

#include "demo/players/bot.h"
#include "demo/players/script.h"

#define PATH "test_demo_script.txt"

static const nb_rate RATE = {60, 1};
static script flight;
static char why[SCRIPT_WHY_SIZE];

// Reads a text as a file.
static bool read_bytes(const char *text, size_t size_bytes, nb_rate rate) {
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
    why[0] = '\0';
    bool is_read = script_read(&flight, PATH, 1, rate, why);
    remove(PATH);
    assert_true(is_read || strstr(why, PATH) == why);
    assert_true(is_read || strchr(why, '\n') == NULL);
    return is_read;
}

static bool read_text(const char *text) { return read_bytes(text, strlen(text), RATE); }

static const int32_t *words_of(uint32_t command) { return flight.commands[command].event.payload.i32; }

static void check_command(uint32_t number, uint64_t tick, uint32_t code, int32_t a, int32_t b, int32_t c) {
    assert_true(number < flight.command_count);
    assert_int_equal(flight.commands[number].tick, tick);
    assert_int_equal(flight.commands[number].event.kind, NB_INPUT_COMMAND);
    assert_int_equal(flight.commands[number].event.code, code);
    assert_int_equal(words_of(number)[1], a);
    assert_int_equal(words_of(number)[2], b);
    assert_int_equal(words_of(number)[3], c);
}

TEST(every_command_becomes_an_event_of_its_tick) {
    assert_true(read_text("# a comment\n\n0 walk\n 0.5\tpace 50 # percent\r\n"
                          "1 turn -20\n+0.25 look 10.5\n+0.25 climb -100\n2 fly\n2 shot a_Picture-1\n2 stop"));
    assert_int_equal(flight.command_count, 8);
    check_command(0, 0, PLANET_MOVE, 0, EXPLORER_WALKS, 0);
    check_command(1, 30, PLANET_STEER, 0, 0, PLANET_PACE_MAX / 2);
    check_command(2, 60, PLANET_STEER, -61, 0, PLANET_PACE_MAX / 2); // 20 / 60 / 360 of 65536, rounded
    check_command(3, 75, PLANET_STEER, -61, 32, PLANET_PACE_MAX / 2);
    check_command(4, 90, PLANET_MOVE, -PLANET_PACE_MAX, EXPLORER_WALKS, 0);
    check_command(5, 120, PLANET_MOVE, -PLANET_PACE_MAX, EXPLORER_FLIES, 0);
    check_command(6, 120, PLANET_STEER, 0, 0, 0);
    check_command(7, 120, PLANET_MOVE, 0, EXPLORER_FLIES, 0);
    assert_int_equal(flight.tick_last, 120);
    assert_int_equal(flight.shot_count, 1);
    assert_string_equal(flight.shots[0].name, "a_Picture-1");
    assert_int_equal(flight.shots[0].tick_count, 121); // the tick of its line has run
}

static vec3d direction_of(uint32_t command) {
    const int32_t *words = words_of(command);
    creature_home at = {(uint32_t)words[1], words[2] % 65536, words[2] / 65536};
    return home_direction(at);
}

static void check_direction(uint32_t command, double x, double y, double z) {
    vec3d at = direction_of(command);
    if (fabs(at.x - x) + fabs(at.y - y) + fabs(at.z - z) > 0.002)
        fail_msg("command %u leads to %g %g %g", command, at.x, at.y, at.z);
}

// North is up, and from there on the right hand is east.
TEST(a_teleport_leads_to_a_latitude_and_a_longitude) {
    assert_true(read_text("0 teleport 0 0\n0 teleport 90 0 7\n0 teleport -90 77\n0 teleport 0 90 20000\n"
                          "0 teleport 0 -90\n0 teleport 0 180\n0 teleport 45 0\n0 teleport 30 -60"));
    check_direction(0, 1, 0, 0);
    check_direction(1, 0, 1, 0);
    check_direction(2, 0, -1, 0);
    check_direction(3, 0, 0, -1);
    check_direction(4, 0, 0, 1);
    check_direction(5, -1, 0, 0);
    check_direction(6, 0.7071, 0.7071, 0);
    check_direction(7, 0.4330, 0.5, 0.75);
    assert_int_equal(words_of(0)[3], 0);
    assert_int_equal(words_of(1)[3], 7);
    assert_int_equal(words_of(3)[3], 20000);
    explorer e = {.mode = EXPLORER_FLIES};
    explorer_put(&e, 1, (creature_home){(uint32_t)words_of(0)[1], 2048, 2048}, 100);
    vec3d east = vec3d_cross(e.forward, e.up);
    assert_true(vec3d_dot(east, direction_of(3)) > 0.99);
}

TEST(homes_are_numbered_as_the_keys_are) {
    assert_true(read_text("0 teleport home 1\n0 teleport home 24 300"));
    nb_input_event first = planet_teleport(0, home_of(1, 0), 0), last = planet_teleport(0, home_of(1, 23), 300);
    assert_memory_equal(&flight.commands[0].event, &first, sizeof first);
    assert_memory_equal(&flight.commands[1].event, &last, sizeof last);
}

TEST(seconds_are_the_same_at_any_rate) {
    const char *text = "0.5 turn 30\n1.001 shot a";
    assert_true(read_bytes(text, strlen(text), (nb_rate){120, 1}));
    check_command(0, 60, PLANET_STEER, 46, 0, 0); // half as much in each of twice as many
    assert_true(read_bytes(text, strlen(text), (nb_rate){60000, 1001}));
    assert_int_equal(flight.commands[0].tick, 30);
    assert_int_equal(flight.shots[0].tick_count, 61);
    assert_false(read_bytes(text, strlen(text), (nb_rate){20, 1})); // more than an explorer turns in a tick
    assert_non_null(strstr(why, ":1: degrees a second is -28.125 to 28.125, not '30'"));
}

TEST(commands_are_found_in_any_order_of_ticks) {
    nb_input_event events[SCRIPT_EVENTS_MAX];
    assert_true(read_text("0 fly\n1 pace 1\n1 turn 1\n1 look 1\n5 stop"));
    static const struct {
        uint64_t tick;
        uint32_t count;
    } CASES[] = {{300, 2}, {60, 3}, {0, 2}, {59, 0}, {61, 0}, {UINT64_MAX, 0}, {299, 0}, {60, 3}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; ++i)
        assert_int_equal(script_commands(&flight, 0, CASES[i].tick, events), CASES[i].count);
    script_commands(&flight, 1, 60, events);
    assert_int_equal(events[0].payload.i32[0], 1);
    assert_int_equal(events[2].payload.i32[2], 3);
}

// --- what is wrong ---

TEST(what_is_wrong_is_said_with_its_line) {
    static const struct {
        const char *text, *what;
    } CASES[] = {
        {"", "no command in it"},
        {"# nothing\n\n", "no command in it"},
        {"walk", ":1: a line begins with seconds"},
        {"0 walk\n\n# here:\nx walk", ":4: a line begins with seconds, such as 2.5 or +0.5, not 'x'"},
        {"-1 walk", "begins with seconds"},
        {"+-1 walk", "begins with seconds"},
        {"++1 walk", "begins with seconds"},
        {"1s walk", "begins with seconds"},
        {"1e1 walk", "begins with seconds"},
        {"0x1 walk", "begins with seconds"},
        {"nan walk", "begins with seconds"},
        {"inf walk", "begins with seconds"},
        {". walk", "begins with seconds"},
        {"1.2.3 walk", "begins with seconds"},
        {"3601 walk", "3601 s is after the last, 3600 s"},
        {"3600 walk\n+1 walk", ":2: 3601 s is after the last"},
        {"99999999999999999999999999999 walk", "after the last"},
        {"2 walk\n1.5 fly", ":2: 1.5 s is before the line above, 2 s"},
        {"0", ":1: a command is missing"},
        {"0 run", "no command 'run'"},
        {"0 Walk", "no command 'Walk'"},
        {"0 walk fast", "'fast' is too much"},
        {"0 stop now", "'now' is too much"},
        {"0 pace", "a percentage is missing"},
        {"0 pace 101", "a percentage is -100 to 100, not '101'"},
        {"0 pace 50%", "not '50%'"},
        {"0 pace nan", "not 'nan'"},
        {"0 climb -100.5", "not '-100.5'"},
        {"0 climb 1 2", "'2' is too much"},
        {"0 turn 85", "degrees a second is -84.375 to 84.375, not '85'"},
        {"0 look 1-", "not '1-'"},
        {"0 teleport", "a latitude is missing"},
        {"0 teleport 91 0", "a latitude is -90 to 90"},
        {"0 teleport 0", "a longitude is missing"},
        {"0 teleport 0 181", "a longitude is -180 to 180"},
        {"0 teleport 0 0 20001", "a height is 0 to 20000"},
        {"0 teleport 0 0 -1", "a height is 0 to 20000"},
        {"0 teleport 0 0 1.5", "a height is a whole number, not '1.5'"},
        {"0 teleport 0 0 1 1", "'1' is too much"},
        {"0 teleport home", "a home is missing"},
        {"0 teleport home 0", "a home is 1 to 24, not '0'"},
        {"0 teleport home 25", "a home is 1 to 24"},
        {"0 teleport home 1 2 3 4 5 6 7", "'3' is too much"},
        {"0 shot", "a name is missing"},
        {"0 shot a/b", "a name is up to 47"},
        {"0 shot ..", "a name is up to 47"},
        {"0 shot a.png", "a name is up to 47"},
        {"0 shot 123456789012345678901234567890123456789012345678", "a name is up to 47"},
        {"0 shot a\n1 shot a", ":2: there is a shot 'a' already"},
        {"0 shot a b", "'b' is too much"},
        {"0 \033[31mred", "no command '?[31mred'"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; ++i) {
        bool is_read = read_text(CASES[i].text);
        if (is_read || strstr(why, CASES[i].what) == NULL) fail_msg("'%s' gives '%s'", CASES[i].text, why);
    }
    assert_true(read_text("0 shot 12345678901234567890123456789012345678901234567"));
}

TEST(what_is_no_text_is_refused) {
    assert_false(read_bytes("0 walk\n0 fl\0y\n", 14, RATE));
    assert_non_null(strstr(why, ":2: this is no text"));
    static char line[400];
    memset(line, ' ', sizeof line);
    memcpy(line, "0 walk", 6);
    assert_true(read_bytes(line, SCRIPT_LINE_MAX, RATE));
    assert_false(read_bytes(line, SCRIPT_LINE_MAX + 1, RATE));
    assert_non_null(strstr(why, ":1: a line has up to 200 characters"));
    static const char *const PATHS[] = {"/no/such/file", "/tmp", ""};
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; ++i) {
        assert_false(script_read(&flight, PATHS[i], 1, RATE, why));
        assert_non_null(strstr(why, ": it cannot be read"));
    }
    // A path that is too long for the message is cut, not the message.
    static char path[2000];
    memset(path, 'p', sizeof path - 1);
    assert_false(script_read(&flight, path, 1, RATE, why));
    assert_non_null(strstr(why, ": it cannot be read"));
}

static char *many(char *text, uint32_t count, const char *format) {
    char *at = text;
    for (uint32_t i = 0; i < count; ++i) at += sprintf(at, format, i);
    return text;
}

TEST(there_is_room_for_so_many_and_no_more) {
    static char text[128 << 10];
    assert_true(read_text(many(text, SCRIPT_COMMANDS_MAX, "+1 fly # %u\n")));
    assert_int_equal(flight.command_count, SCRIPT_COMMANDS_MAX);
    assert_false(read_text(many(text, SCRIPT_COMMANDS_MAX + 1, "+1 fly # %u\n")));
    assert_non_null(strstr(why, ":2049: more than 2048 commands"));
    assert_true(read_text(many(text, SCRIPT_SHOTS_MAX, "0 shot s%u\n")));
    assert_false(read_text(many(text, SCRIPT_SHOTS_MAX + 1, "0 shot s%u\n")));
    assert_non_null(strstr(why, ":129: more than 128 shots"));
    assert_true(read_text(many(text, SCRIPT_TICK_COMMANDS_MAX, "0 fly # %u\n")));
    nb_input_event events[SCRIPT_EVENTS_MAX];
    assert_int_equal(script_commands(&flight, 0, 0, events), SCRIPT_EVENTS_MAX);
    assert_false(read_text(many(text, SCRIPT_TICK_COMMANDS_MAX + 1, "0 fly # %u\n")));
    assert_non_null(strstr(why, ":17: more than 16 commands in one tick"));
}

// --- in an engine ---

TEST(an_explorer_goes_where_the_file_says) {
    static rig r;
    static planet land;
    static bots players;
    assert_true(read_text("0.05 walk\n0.05 teleport 10 20\n0.1 pace 100"));
    nb_engine_desc desc = rig_desc(0);
    desc.is_headless = true;
    rig_open_desc(&r, desc);
    land = (planet){.seed = 1};
    players = (bots){.script = &flight};
    assert_int_equal(planet_attach(&land, r.engine), NB_OK);
    assert_int_equal(planet_populate(&land), NB_OK);
    assert_int_equal(bots_attach(&players, r.engine, 1), NB_OK);
    const explorer *e = NB_STORE_ROWS(land.world, land.explorers, 0, explorer);
    run_ticks(&r, 3);
    assert_true(e->journey == 0 && e->mode == EXPLORER_FLIES && e->pace == 0); // the built-in flight would be away
    run_ticks(&r, 1);
    assert_true(e->journey == 1 && e->mode == EXPLORER_WALKS && e->pace == 0);
    vec3d there = direction_of(1);
    assert_true(vec3d_dot(e->up, there) > 0.9999999);
    assert_true(fabs(e->up.y - 0.17365) < 0.001);
    run_ticks(&r, 62);
    assert_int_equal(e->pace, PLANET_PACE_MAX);
    assert_true(e->up.y > there.y + 0.001); // five metres to the north
    assert_int_equal(nb_engine_destroy(r.engine), NB_OK);
    planet_end(&land);
}
