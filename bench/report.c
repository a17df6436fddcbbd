// SPDX-License-Identifier: MIT
// Printing: the table on stdout and the JSON lines.

#define _GNU_SOURCE // uname and friends under -std=c17

#include "bench.h"

#include <nebula/types.h>

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define NO_PEER (-1)
// Fewer leave less than a hundred samples above a p99.
#define P99_SAMPLES_LEAST 10000u
// Where nothing at all went through; finite, because JSON has no infinity.
#define COST_OF_NOTHING 1e30

static size_t nebula_index(const bench_case *subject) {
    for (size_t i = 0; i < subject->contender_count; ++i)
        if (subject->contenders[i].role == BENCH_NEBULA) return i;
    return 0;
}

static bool has_result(const bench_result *result, size_t contender) {
    return result->subject->contenders[contender].run && !result->is_failed[contender];
}

// Rounds that count for this row.
static unsigned kept_count(const bench_result *result, size_t contender, size_t row) {
    unsigned count = 0;
    for (unsigned round = 0; round < result->round_count; ++round)
        count += isnan(result->samples[contender][row][round]) ? 0 : 1;
    return count;
}

static bool has_value(const bench_result *result, size_t contender, size_t row) {
    return has_result(result, contender) && kept_count(result, contender, row) > 0;
}

static bench_stat stat_of(const bench_result *result, size_t contender, size_t row) {
    const double *samples = result->samples[contender][row];
    double values[BENCH_ROUNDS_MAX];
    size_t count = 0;
    for (unsigned round = 0; round < result->round_count; ++round)
        if (!isnan(samples[round])) values[count++] = samples[round];
    double last = count ? values[count - 1] : 0.0;
    bench_stat stat = bench_stat_of(values, count);
    if (result->subject->rows[row].is_pooled) stat.median = last;
    return stat;
}

// What a value costs: rates are turned round, so that less is better everywhere.
static double cost_of(const bench_row *row, double value) {
    if (!row->is_rate) return value;
    return value > 0.0 ? 1.0 / value : COST_OF_NOTHING;
}

// How many times the cost of `other` that of `contender` is: the median over the rounds of the ratio within one round.
// A virtual machine's cores may move apart between two rounds and make everything several times slower; the median of
// one contender then falls into the fast time, another's into the slow one, and their quotient means nothing.
static double relative_cost(const bench_result *result, size_t row, size_t contender, size_t other) {
    const bench_row *what = &result->subject->rows[row];
    double ratios[BENCH_ROUNDS_MAX];
    size_t count = 0;
    for (unsigned round = 0; round < result->round_count; ++round) {
        double cost = cost_of(what, result->samples[contender][row][round]);
        double other_cost = cost_of(what, result->samples[other][row][round]);
        if (isnan(cost) || isnan(other_cost)) continue;
        ratios[count++] = other_cost > 0.0 ? cost / other_cost : 0.0;
    }
    // No round in which both count: all that is left is to compare across rounds.
    if (count == 0)
        return cost_of(what, stat_of(result, contender, row).median) /
               cost_of(what, stat_of(result, other, row).median);
    return what->is_pooled ? ratios[count - 1] : bench_stat_of(ratios, count).median;
}

static int best_peer(const bench_result *result, size_t row) {
    int best = NO_PEER;
    double best_cost = 0.0;
    if (result->subject->rows[row].is_note) return NO_PEER;
    for (size_t i = 0; i < result->subject->contender_count; ++i) {
        if (result->subject->contenders[i].role != BENCH_PEER || !has_value(result, i, row)) continue;
        double cost = relative_cost(result, row, i, nebula_index(result->subject));
        if (best == NO_PEER || cost < best_cost) {
            best = (int)i;
            best_cost = cost;
        }
    }
    return best;
}

static int peer_named(const bench_result *result, size_t row, const char *name) {
    for (size_t i = 0; i < result->subject->contender_count; ++i)
        if (strcmp(result->subject->contenders[i].name, name) == 0) return has_value(result, i, row) ? (int)i : NO_PEER;
    return NO_PEER;
}

static double ratio_of(const bench_result *result, size_t row, int peer) {
    return peer == NO_PEER ? 0.0 : relative_cost(result, row, nebula_index(result->subject), (size_t)peer);
}

static bool has_every_peer(const bench_result *result, size_t row) {
    bool has_all = true;
    for (size_t i = 0; i < result->subject->contender_count; ++i)
        has_all &= result->subject->contenders[i].role != BENCH_PEER || has_value(result, i, row);
    return has_all;
}

typedef enum verdict { VERDICT_MET, VERDICT_NOT_MET, VERDICT_UNKNOWN } verdict;

static verdict judge(const bench_result *result, size_t row, const bench_goal *goal) {
    size_t ours = nebula_index(result->subject);
    if (!has_value(result, ours, row)) return VERDICT_UNKNOWN;
    double value = stat_of(result, ours, row).median;
    if (goal->kind == BENCH_GOAL_LIMIT) return value <= goal->factor ? VERDICT_MET : VERDICT_NOT_MET;
    int peer = goal->kind == BENCH_GOAL_BEST ? best_peer(result, row) : peer_named(result, row, goal->peer);
    if (peer == NO_PEER) return VERDICT_UNKNOWN;
    // What may be added to the peer's cost counts as a part of it.
    double extra = goal->extra > 0.0 ? goal->extra / stat_of(result, (size_t)peer, row).median : 0.0;
    if (ratio_of(result, row, peer) > goal->factor + extra) return VERDICT_NOT_MET;
    // Being ahead of those present proves nothing about a peer that is not.
    return goal->kind == BENCH_GOAL_BEST && !has_every_peer(result, row) ? VERDICT_UNKNOWN : VERDICT_MET;
}

static void describe_goal(const bench_row *row, const bench_goal *goal, char *text, size_t size) {
    if (goal->kind == BENCH_GOAL_LIMIT)
        snprintf(text, size, "<= %g %s", goal->factor, row->unit);
    else if (goal->kind == BENCH_GOAL_BEST && goal->factor == 1.0)
        snprintf(text, size, "ahead of every counted peer");
    else if (goal->kind == BENCH_GOAL_BEST)
        snprintf(text, size, "<= %g x the best peer", goal->factor);
    else if (goal->extra > 0.0)
        snprintf(text, size, "<= %g x %s + %g %s", goal->factor, goal->peer, goal->extra, row->unit);
    else
        snprintf(text, size, "<= %g x %s", goal->factor, goal->peer);
}

static bool goal_counts(const bench_goal *goal) {
    return goal->kind != BENCH_GOAL_NONE && (!goal->applies || goal->applies());
}

static void print_contender(const bench_result *result, size_t contender, size_t row) {
    const bench_contender *shown = &result->subject->contenders[contender];
    if (!shown->run) {
        printf("    %-22s    missing   (package: %s)\n", shown->name, shown->package ? shown->package : "unknown");
        return;
    }
    if (result->is_failed[contender]) {
        printf("    %-22s     FAILED\n", shown->name);
        return;
    }
    unsigned away_count = result->round_count - kept_count(result, contender, row);
    if (away_count == result->round_count) {
        printf("    %-22s    no value   all %u rounds thrown away\n", shown->name, away_count);
        return;
    }
    bench_stat stat = stat_of(result, contender, row);
    size_t ours = nebula_index(result->subject);
    printf("    %-22s %10.4g   %6.2f   [%.4g .. %.4g]%s", shown->name, stat.median,
           has_value(result, ours, row) ? relative_cost(result, row, contender, ours) : 0.0, stat.low, stat.high,
           shown->role == BENCH_SHOWN ? "  not counted" : "");
    if (away_count) printf("  thrown away: %u of %u", away_count, result->round_count);
    printf("\n");
}

// A goal missed while other programs used the machine says little, and is marked so.
static bool is_busy(const bench_result *result) { return 2 * result->noisy_count > result->round_count; }

static unsigned print_goals(const bench_result *result, size_t row) {
    static const char *const words[] = {"met", "NOT MET", "not known: a figure is missing"};
    const bench_row *what = &result->subject->rows[row];
    unsigned not_met_count = 0;
    for (size_t i = 0; i < BENCH_GOALS_MAX; ++i) {
        if (!goal_counts(&what->goals[i])) continue;
        char text[128];
        describe_goal(what, &what->goals[i], text, sizeof text);
        verdict found = judge(result, row, &what->goals[i]);
        printf("    goal: %s: %s%s\n", text, words[found],
               found == VERDICT_NOT_MET && is_busy(result) ? ", but the machine was busy" : "");
        not_met_count += found == VERDICT_NOT_MET;
    }
    return not_met_count;
}

static void print_sample_count(const bench_result *result, size_t row) {
    unsigned count = result->subject->rows[row].sample_count * result->round_count;
    if (count == 0) return;
    printf("    n >= %u%s\n", count, count < P99_SAMPLES_LEAST ? ": too few for a p99 to be judged" : "");
}

static unsigned print_row(const bench_result *result, size_t row) {
    const bench_case *subject = result->subject;
    int best = best_peer(result, row);
    printf("%s, %s", subject->rows[row].name, subject->rows[row].unit);
    if (best != NO_PEER && has_value(result, nebula_index(subject), row))
        printf(": ratio %.3f to the best peer, %s", ratio_of(result, row, best), subject->contenders[best].name);
    printf("\n");
    for (size_t i = 0; i < subject->contender_count; ++i) print_contender(result, i, row);
    print_sample_count(result, row);
    return print_goals(result, row);
}

unsigned bench_print_result(const bench_result *result) {
    unsigned not_met_count = 0;
    for (size_t row = 0; row < result->subject->row_count; ++row) not_met_count += print_row(result, row);
    if (result->noisy_count)
        printf("    note: other programs used %.0f %% of a core; %u of %u rounds are noisy\n",
               result->other_load * 100.0, result->noisy_count, result->round_count);
    printf("\n");
    fflush(stdout);
    return not_met_count;
}

static void print_cpu_model(void) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon[strcspn(colon, "\n")] = '\0';
        printf("%s, ", colon + 2);
        break;
    }
    if (file) fclose(file);
}

void bench_print_header(unsigned run_count) {
    struct utsname system;
    bool has_system = uname(&system) == 0;
    printf("nebula %s: ", nb_version());
    print_cpu_model();
    printf("%u cpus, %s %s, compiler %s, invariant TSC: %s\n", bench_cpu_count(), has_system ? system.sysname : "?",
           has_system ? system.release : "?", __VERSION__, bench_has_invariant_tsc() ? "yes" : "no");
    printf("Contenders alternate in %u rounds or more. Columns: median, relative cost, [lowest .. highest].\n",
           run_count);
    printf(
        "Relative cost: to Nebula's in the same round, the median of that; the machine may change between rounds.\n");
    if (run_count < 7) printf("Fewer than 7 rounds: good for a look, not for a comparison.\n");
    if (!bench_pin(1) || !bench_pin(0)) printf("Threads cannot be bound to cpus here: expect a wide spread.\n");
    if (bench_cpu_count() < 2) printf("One cpu only: the channel cases measure the switch between threads.\n");
    printf("\n");
    fflush(stdout);
}

static void write_stat(FILE *json, const char *name, const bench_stat *stat) {
    fprintf(json, "\"%s\":[%.6g,%.6g]", name, stat->low, stat->high);
}

static void write_peers(FILE *json, const bench_result *result, size_t row) {
    const char *comma = "";
    fprintf(json, ",\"peers\":{");
    for (size_t i = 0; i < result->subject->contender_count; ++i) {
        if (result->subject->contenders[i].role == BENCH_NEBULA || !has_value(result, i, row)) continue;
        fprintf(json, "%s\"%s\":%.6g", comma, result->subject->contenders[i].name, stat_of(result, i, row).median);
        comma = ",";
    }
    fprintf(json, "}");
}

static void write_spread(FILE *json, const bench_result *result, size_t row) {
    const char *comma = "";
    fprintf(json, ",\"spread\":{");
    for (size_t i = 0; i < result->subject->contender_count; ++i) {
        if (!has_value(result, i, row)) continue;
        bench_stat stat = stat_of(result, i, row);
        fprintf(json, "%s", comma);
        write_stat(json, result->subject->contenders[i].name, &stat);
        comma = ",";
    }
    fprintf(json, "}");
}

// Names of the contenders for which `belongs` says yes.
static void write_names(FILE *json, const char *key, const bench_result *result,
                        bool (*belongs)(const bench_result *, size_t)) {
    const char *comma = "";
    fprintf(json, ",\"%s\":[", key);
    for (size_t i = 0; i < result->subject->contender_count; ++i) {
        if (!belongs(result, i)) continue;
        fprintf(json, "%s\"%s\"", comma, result->subject->contenders[i].name);
        comma = ",";
    }
    fprintf(json, "]");
}

// How many rounds of whom did not count; nothing where all did.
static void write_thrown_away(FILE *json, const bench_result *result, size_t row) {
    const char *comma = "";
    fprintf(json, ",\"thrown_away\":{");
    for (size_t i = 0; i < result->subject->contender_count; ++i) {
        unsigned away_count = result->round_count - kept_count(result, i, row);
        if (!has_result(result, i) || away_count == 0) continue;
        fprintf(json, "%s\"%s\":%u", comma, result->subject->contenders[i].name, away_count);
        comma = ",";
    }
    fprintf(json, "}");
}

static bool is_missing(const bench_result *result, size_t i) { return !result->subject->contenders[i].run; }
static bool is_failed(const bench_result *result, size_t i) { return result->is_failed[i]; }
static bool is_uncounted(const bench_result *result, size_t i) {
    return result->subject->contenders[i].role == BENCH_SHOWN && has_result(result, i);
}

// "met" is true, false, or null where a goal could not be judged.
static void write_goals(FILE *json, const bench_result *result, size_t row) {
    const bench_row *what = &result->subject->rows[row];
    const char *separator = "";
    bool has_goal = false, is_not_met = false, is_unknown = false;
    fprintf(json, ",\"goal\":");
    for (size_t i = 0; i < BENCH_GOALS_MAX; ++i) {
        if (!goal_counts(&what->goals[i])) continue;
        char text[128];
        describe_goal(what, &what->goals[i], text, sizeof text);
        fprintf(json, "%s%s%s", has_goal ? "" : "\"", separator, text);
        verdict found = judge(result, row, &what->goals[i]);
        is_not_met |= found == VERDICT_NOT_MET;
        is_unknown |= found == VERDICT_UNKNOWN;
        has_goal = true;
        separator = "; ";
    }
    const char *met = is_not_met ? "false" : has_goal && !is_unknown ? "true" : "null";
    fprintf(json, "%s,\"met\":%s", has_goal ? "\"" : "null", met);
}

static void write_row(FILE *json, const bench_result *result, size_t row) {
    const bench_case *subject = result->subject;
    size_t ours = nebula_index(subject);
    int best = best_peer(result, row);
    fprintf(json, "{\"case\":\"%s\",\"unit\":\"%s\"", subject->rows[row].name, subject->rows[row].unit);
    if (has_value(result, ours, row))
        fprintf(json, ",\"nebula\":%.6g", stat_of(result, ours, row).median);
    else
        fprintf(json, ",\"nebula\":null");
    write_peers(json, result, row);
    if (best != NO_PEER && has_value(result, ours, row))
        fprintf(json, ",\"best_peer\":\"%s\",\"ratio\":%.4f", subject->contenders[best].name,
                ratio_of(result, row, best));
    else
        fprintf(json, ",\"best_peer\":null,\"ratio\":null");
    write_spread(json, result, row);
    write_goals(json, result, row);
    write_names(json, "uncounted", result, is_uncounted);
    write_names(json, "missing", result, is_missing);
    write_names(json, "failed", result, is_failed);
    write_thrown_away(json, result, row);
    if (subject->rows[row].sample_count)
        fprintf(json, ",\"n\":%u", subject->rows[row].sample_count * result->round_count);
    fprintf(json, ",\"rounds\":%u,\"noisy_rounds\":%u}\n", result->round_count, result->noisy_count);
}

void bench_write_json(void *json, const bench_result *result) {
    for (size_t row = 0; row < result->subject->row_count; ++row) write_row((FILE *)json, result, row);
    fflush((FILE *)json);
}
