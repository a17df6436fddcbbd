#!/bin/sh
# SPDX-License-Identifier: MIT
# handler_uses.sh [--check | --table] [ROOT]: every handler of the tree, where it is registered, and its uses of the engine.
#     handler_uses.sh            one line per handler: file function kind uses
#     handler_uses.sh --check    fails if a plain search finds a function with `const nb_context *` that has no such line
#     handler_uses.sh --table    the tables of docs/handlers.md
# The uses of a handler include those of the functions that it calls in its own file, in the fixtures that its file includes,
# and in other files of the same folder. The parser relies on the format: a definition starts at the left margin.
set -eu
. "$(dirname "$0")/files.sh"
mode=
case ${1:-} in --check | --table) mode=$1 && shift ;; --*) echo "handler_uses: unknown option $1" >&2 && exit 2 ;; esac
root=${1:-$(dirname "$0")/..}
cd "$root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
for folder in src modules demo examples tools bench tests; do
    [ ! -d "$folder" ] || find "$folder" -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \)
done | LC_ALL=C sort >"$work/files"
[ -s "$work/files" ] || { report_files handler_uses 0; exit 1; }

# One tab-separated row per handler: file, function, kind, uses, line.
# shellcheck disable=SC2016
# shellcheck disable=SC2046
awk '
# --- reading: comments and strings go, then the text is cut at the left margin ---

function strip(line,    out, c, two) {
    out = ""
    while (line != "") {
        if (in_comment) {
            c = index(line, "*/")
            if (c == 0) return out
            line = substr(line, c + 2); in_comment = 0
            continue
        }
        if (!match(line, /["\047]|\/\/|\/\*/)) return out line
        out = out substr(line, 1, RSTART - 1)
        two = substr(line, RSTART, 2)
        line = substr(line, RSTART)
        if (two == "//") return out
        if (two == "/*") { in_comment = 1; line = substr(line, 3); continue }
        c = substr(line, 1, 1)
        line = substr(line, 2)
        while (line != "" && substr(line, 1, 1) != c) line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
        line = substr(line, 2)
        out = out "0"
    }
    return out
}

function trim(s) { sub(/^[ \t]+/, "", s); sub(/[ \t]+$/, "", s); return s }

# A chunk at the left margin: a function, or a declaration that may register handlers.
function close_chunk(    head, brace, i, depth, c, name, params, before) {
    if (chunk == "") return
    brace = index(chunk, "{")
    head = brace > 0 ? trim(substr(chunk, 1, brace - 1)) : ""
    if (brace == 0 || head !~ /\)$/ || head ~ /=/ || head ~ /^(typedef|struct|enum|union)/) {
        globals[file] = globals[file] " " chunk
        chunk = ""
        return
    }
    for (i = length(head); i > 0; --i) {
        c = substr(head, i, 1)
        if (c == ")") ++depth
        if (c == "(" && --depth == 0) break
    }
    params = substr(head, i + 1, length(head) - i - 1)
    before = substr(head, 1, i - 1)
    if (!match(before, /[A-Za-z_][A-Za-z0-9_]*$/)) { chunk = ""; return }
    name = substr(before, RSTART)
    before = trim(substr(before, 1, RSTART - 1))
    if (before == "") name = name "(" params ")"
    if ((file SUBSEP name) in at) { chunk = ""; return }
    ++function_count
    at[file, name] = function_count
    f_file[function_count] = file; f_name[function_count] = name; f_params[function_count] = params
    f_returns[function_count] = before; f_line[function_count] = chunk_line
    f_body[function_count] = substr(chunk, brace)
    if (before !~ /static/ || file ~ /\.h$/) {
        homes[name] = homes[name] " " function_count
    }
    chunk = ""
}

FNR == 1 { close_chunk(); file = FILENAME; in_comment = 0; depth = 0; in_macro = 0; files[++file_count] = file }
{ raw = $0 }
in_macro { in_macro = raw ~ /\\$/; next }
/^[ \t]*#/ {
    if (raw ~ /^#include "/) { split(raw, quoted, "\""); includes[file] = includes[file] " " quoted[2] }
    in_macro = raw ~ /\\$/
    next
}
{
    text = strip(raw)
    if (chunk == "" && (text !~ /^[A-Za-z_]/ || text ~ /^[A-Z_]+$/ || text ~ /^extern "?0?"? *\{/)) next
    if (chunk == "") { chunk_line = FNR; depth = 0 }
    chunk = chunk " " trim(text)
    if (chunk_line == FNR) chunk = trim(chunk)
    open = gsub(/\{/, "{", text); shut = gsub(/\}/, "}", text)
    depth += open - shut
    if (depth <= 0 && text ~ /[;}][ \t]*$/) close_chunk()
}

# --- what a function is, by its parameters ---

function kind_by_signature(f,    p, r) {
    p = f_params[f]; r = f_returns[f]
    if (p ~ /^void \*host, void \*state, nb_result /) return "async.discard"
    if (p ~ /^void \*host, void \*state$/) return r ~ /nb_result/ ? "async.commit" : "async.publish"
    if (p ~ /^void \*user, uint64_t generation, const void \*/) return "async.is_wanted"
    if (p ~ /^nb_async_call \*[a-z]+, void \*[a-z]+$/) return "async.step"
    if (p ~ /^nb_task_context \*[a-z]+, void \*[a-z]+, uint64_t /) return "part"
    if (p ~ /^nb_task_context \*[a-z]+, void \*[a-z]+$/) return "task"
    if (p ~ /^void \*[a-z]+, const nb_task_result \*/) return "on_complete"
    if (p ~ /^nb_engine \*[a-z]+, void \*user$/) return r ~ /nb_result/ ? "attach" : "detach"
    if (p ~ /^void \*user, nb_engine \*/) return "replay.attach"
    if (p ~ /^void \*[a-z]+, nb_tick_view \*/) return "watch.begin"
    if (p ~ /^void \*[a-z]+, const nb_tick_view \*[a-z]+$/) return "watch.end"
    if (p ~ /^void \*[a-z]+, const nb_tick_view \*[a-z]+, nb_input_event \*/) return "netplay.sample"
    if (p ~ /^nb_gpu_command \*[a-z]+, uint32_t [a-z]+, uint32_t [a-z_]+, void \*/) return "gpu.pass"
    if (p ~ /^nb_service \*[a-z]+, void \*/) return "service"
    return ""
}
function has_context(f) { return f_params[f] ~ /(^|[ (])const nb_context \*/ && f_params[f] !~ /\([^)]*const nb_context \*/ }
function is_handler(f) {
    return f_returns[f] ~ /nb_result$/ && f_params[f] ~ /^const nb_context \*[a-z]+, void \*[a-z]+(, const nb_output_list \*[a-z]+)?$/
}

# --- names to functions ---

function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }
function find_include(from, name,    base, i, path) {
    path = folder_of(from) "/" name
    if (path in globals_known) return path
    base = name; sub(/.*\//, "", base)
    for (i = 1; i <= file_count; ++i) {
        path = files[i]; sub(/.*\//, "", path)
        if (path == base && files[i] ~ /^tests\//) return files[i]
    }
    return ""
}
function resolve(from, name,    i, n, list, path, near) {
    if ((from SUBSEP name) in at) return at[from, name]
    if (!(name in homes) || name ~ /^nb_/) return 0
    if ((from SUBSEP name) in resolved) return resolved[from, name]
    n = split(include_paths[from], list, " ")
    for (i = 1; i <= n; ++i) if ((list[i] SUBSEP name) in at) return resolved[from, name] = at[list[i], name]
    n = split(homes[name], list, " ")
    near = 0
    for (i = 1; i <= n; ++i) {
        path = f_file[list[i]]
        if (path ~ /\.h$/ && path !~ /^(demo|modules)/) continue
        if (n == 1 && path !~ /^src\// && split(path, there, "/") && split(from, here, "/") && there[1] == here[1]) near = list[i]
        if (folder_of(path) == folder_of(from)) { near = list[i]; break }
    }
    return resolved[from, name] = near
}

# --- registration: where a handler-like function is named ---

function phase_name(word,    n, parts, i, out) {
    sub(/^NB_PHASE_/, "", word)
    n = split(tolower(word), parts, "_")
    out = ""
    for (i = 1; i <= n; ++i) out = out toupper(substr(parts[i], 1, 1)) substr(parts[i], 2)
    if (out == "FixedSim") return "tick"
    return out
}
function add_kind(f, kind) {
    if (index(" " kinds[f] " ", " " kind " ") == 0) kinds[f] = trim(kinds[f] " " kind)
}
# The functions that a value names, up to the comma or semicolon that ends it.
function register(from, kind, value,    c, i, depth, word, f, rest) {
    depth = 0
    for (i = 1; i <= length(value); ++i) {
        c = substr(value, i, 1)
        if (c ~ /[({[]/) ++depth
        if (c ~ /[)}\]]/ && --depth < 0) break
        if (c ~ /[,;]/ && depth == 0) break
    }
    value = substr(value, 1, i - 1)
    while (match(value, /[A-Za-z_][A-Za-z0-9_]*/)) {
        word = substr(value, RSTART, RLENGTH)
        rest = substr(value, RSTART + RLENGTH)
        f = resolve(from, word)
        if (f && kind == "again" && kind_by_signature(f) == "watch.end") add_kind(f, "watch.again")
        if (f && rest !~ /^\(/ && (is_handler(f) || has_context(f))) {
            if (is_handler(f) && kind !~ /^(inside|mail|again)$/) add_kind(f, kind)
            by_member[from, kind] = by_member[from, kind] " " f
            is_named[f] = 1
        }
        value = rest
    }
}
function scan_registrations(from, text,    member, rest, index_text, kind, word, found) {
    rest = text
    while (match(rest, /(handlers)?\[[^]]*(\[[^]]*\])?\] = |[.>](tick|frame|parallel|merge|record|submit|again|inside|mail) = /)) {
        member = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        if (member ~ /^[.>]/) {
            kind = substr(member, 2); sub(/ = $/, "", kind)
            register(from, kind == "frame" ? "Gameplay" : kind == "parallel" ? "job" : kind, rest)
            continue
        }
        found = 0
        index_text = member
        while (match(index_text, /NB_PHASE_[A-Z_]+/)) {
            word = substr(index_text, RSTART, RLENGTH)
            index_text = substr(index_text, RSTART + RLENGTH)
            if (word == "NB_PHASE_NONE" || word == "NB_PHASE_COUNT") continue
            register(from, phase_name(word), rest)
            found = 1
        }
        if (found || member !~ /^handlers/) continue
        # A loop over a list of phases that stands in front of it, or over all phases.
        index_text = member ~ /phases\[/ && match(text, /phases\[[A-Z_]*\] = \{[^}]*\}/) ? substr(text, RSTART, RLENGTH) : ""
        if (index_text == "") register(from, "EachPhase", rest)
        while (match(index_text, /NB_PHASE_[A-Z_]+/)) {
            word = substr(index_text, RSTART, RLENGTH)
            index_text = substr(index_text, RSTART + RLENGTH)
            register(from, phase_name(word), rest)
        }
    }
}

# --- the uses of one function ---

function use(f, name) { if (index(uses[f], " " name " ") == 0) uses[f] = (uses[f] == "" ? " " : uses[f]) name " " }
function surface_of(word) {
    if (word ~ /^NB_(COLUMN|RANGE|ROW|SINGLETON)_WRITE$/ || word ~ /^nb_store_rows?_write$/) return "world.write"
    if (word == "NB_STORE_ROWS_PREVIOUS" || word == "nb_store_rows_previous" || word == "nb_store_previous_view") return "world.previous"
    if (word ~ /^NB_(COLUMN|ROW|SINGLETON|EACH_ROW)$/ || word ~ /^nb_store_(rows?|row_count|find|entity|resolve|ref)$/) return "world.read"
    if (word ~ /^nb_store_((column|entity|teleport)_view|version|table_find|.*_info|is_valid|stats_get)$/) return "world.read"
    if (word ~ /^nb_store_(spawn|despawn)$/) return "world.spawn"
    if (word ~ /^nb_store_/) return word
    if (word == "NB_STORE_STAGED_WRITE" || word ~ /^nb_stage_/) return "stage"
    if (word == "NB_STORE_VIEW_PREVIOUS" || word == "nb_store_view_rows_previous") return "snapshot.previous"
    if (word == "NB_STORE_VIEW" || word ~ /^nb_store_view_/ || word == "nb_snapshot_region") return "snapshot.read"
    if (word ~ /^nb_gpu_/) return "gpu"
    if (word ~ /^nb_graph_/) return "graph"
    if (word ~ /^nb_buttons_/) return "buttons"
    if (word ~ /^nb_random_/) return "random"
    if (word ~ /^nb_(thread_)?arena_/) return "arena_memory"
    if (word ~ /^nb_(context|engine|outputs?|snapshots?|task|group|parallel|scheduler|fence|token|async|loop|budget|trace)_/) return word
    if (word ~ /^nb_(history|states?|services?|timelines?|input|scene|netplay|recorder|replay|save|synctest|rollback)_/) return word
    return ""
}
# The variables of a function whose members are uses, each as " name=prefix ".
function typed_names(text,    names, one, prefix) {
    names = " "
    while (match(text, /nb_(context|task_context|tick_view|async_call) \*?[a-z_]+/)) {
        one = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        prefix = one ~ /^nb_context/ ? "" : one ~ /^nb_task/ ? "task" : one ~ /^nb_tick/ ? "view" : "call"
        sub(/.*[ *]/, "", one)
        names = names one "=" prefix " "
    }
    return names
}
# What a body does with its user pointer: const, write (an assignment through it is seen), mutable (the pointer goes elsewhere).
function user_use(f, user,    text, variable) {
    text = f_body[f]
    gsub("[(]void[)] ?" user, "", text)
    if (text !~ ("[^A-Za-z0-9_]" user "[^A-Za-z0-9_]")) return ""
    if (match(text, "const [A-Za-z0-9_ ]+[*] ?(const )?[A-Za-z0-9_]+ = ([(][^)]*[)])?[*]?" user)) return "user.const"
    if (text ~ ("[(]+[a-z0-9_ ]+[*]+[)]" user "[)]?(->[A-Za-z0-9_.]+)? ?([-+*|^&]?=[^=]|[+][+]|--)")) return "user.write"
    if (text ~ ("[+][+][*]?[(]+[a-z0-9_ ]+[*]+[)]" user)) return "user.write"
    if (!match(text, "[A-Za-z0-9_]+ [*]+[A-Za-z0-9_]+ = ([(][^)]*[)])?[*]?" user "[;,]")) return "user.mutable"
    variable = substr(text, RSTART, RLENGTH)
    sub(/ = .*/, "", variable); sub(/.*[ *]/, "", variable)
    if (text ~ ("[^A-Za-z0-9_]" variable "->[][A-Za-z0-9_.+ >-]+ ([-+*|^&]|<<|>>)?= ")) return "user.write"
    if (text ~ ("([+][+]|--)[*]?" variable "[^A-Za-z0-9_]")) return "user.write"
    if (text ~ ("[^A-Za-z0-9_]" variable "->[][A-Za-z0-9_.>-]+([+][+]|--)")) return "user.write"
    if (text ~ ("[;{] ?[*]" variable " [-+*|^&]?= ")) return "user.write"
    return "user.mutable"
}
function scan_body(f,    body, word, before, after, previous, previous_before, names, one, prefix, surface, target, user, is_passed) {
    body = f_body[f]
    names = typed_names(f_params[f] " ; " body)
    if (f_params[f] ~ /^void \*host/) names = names "host= "
    previous = ""; previous_before = ""
    while (match(body, /[A-Za-z_][A-Za-z0-9_]*/)) {
        before = substr(body, 1, RSTART - 1)
        word = substr(body, RSTART, RLENGTH)
        body = substr(body, RSTART + RLENGTH)
        after = substr(body, 1, 1)
        gsub(/[ \t]/, "", before)
        prefix = "none"
        if (before ~ /^(->|\.)$/ && match(names, " " previous "=[a-z]* ") && previous_before !~ /(->|\.)$/) {
            prefix = substr(names, RSTART, RLENGTH)
            sub(/^[^=]*=/, "", prefix); sub(/ $/, "", prefix)
        } else if (before ~ /^(->|\.)$/ && previous == "context" && previous_before ~ /(->|\.)$/) {
            if (globals[f_file[f]] ~ /nb_context \*?context;/) prefix = "" # a struct carries it
        }
        if (prefix != "none") {
            one = ""
            if (word ~ /^(tick|time|snapshot)$/ && match(body, /^(->|\.)[a-z0-9_]+/)) {
                one = substr(body, RSTART, RLENGTH); sub(/^(->|\.)/, ".", one)
            }
            use(f, prefix "." word one)
        } else if (before ~ /(->|\.)$/) {
            is_passed = after == "(" && match(body, /^\([^;]*/) && substr(body, RSTART, RLENGTH) ~ /[ (]context[,)]/
            if (is_passed && index(names, " context= ")) pointer_call[f] = pointer_call[f] " " word
        } else if (index(names, " " word "= ") && before ~ /=\*$/) {
            use(f, ".copy")
        } else {
            surface = surface_of(word)
            if (surface != "" && (after == "(" || word ~ /^NB_/)) use(f, surface)
            target = surface == "" ? resolve(f_file[f], word) : 0
            if (target && target != f && after == "(") calls[f] = calls[f] " " target
            else if (target && target != f) names_of[f] = names_of[f] " " target
        }
        previous = word; previous_before = before
    }
    if (f_params[f] !~ /void \*(user|argument)/) return
    user = user_use(f, f_params[f] ~ /void \*argument/ ? "argument" : "user")
    if (user != "") use(f, user)
}

# --- uses over calls ---

function gather(f,    i, n, list, one) {
    if ((f SUBSEP gather_id) in visited) return
    visited[f, gather_id] = 1
    n = split(uses[f], list, " ")
    for (i = 1; i <= n; ++i) if (f == gather_root || list[i] !~ /^user\./) gathered[list[i]] = 1
    n = split(calls[f], list, " ")
    for (i = 1; i <= n; ++i) gather(list[i] + 0)
    # A part or a task that the handler starts is a handler of its own kind.
    n = split(names_of[f], list, " ")
    for (i = 1; i <= n; ++i) {
        one = list[i] + 0
        if (kind_by_signature(one) ~ /^(part|task)$/) started[one] = started[one] " " (gather_kind == "helper" ? "" : gather_kind)
        else if (has_context(one) && !is_handler(one)) gather(one)
    }
}
function collect(f, kind,    one, list, n, i, j, word, out) {
    ++gather_id; gather_root = f; gather_kind = kind
    for (one in gathered) delete gathered[one]
    gather(f)
    n = 0
    for (one in gathered) list[++n] = one
    for (i = 2; i <= n; ++i) {
        word = list[i]
        for (j = i - 1; j >= 1 && list[j] > word; --j) list[j + 1] = list[j]
        list[j + 1] = word
    }
    out = ""
    for (i = 1; i <= n; ++i) out = out (i > 1 ? "," : "") list[i]
    return out == "" ? "-" : out
}
END {
    close_chunk()
    for (i = 1; i <= file_count; ++i) globals_known[files[i]] = 1
    for (i = 1; i <= file_count; ++i) {
        n = split(includes[files[i]], list, " ")
        for (j = 1; j <= n; ++j) {
            path = find_include(files[i], list[j])
            if (path != "") include_paths[files[i]] = include_paths[files[i]] " " path
        }
    }
    for (i = 1; i <= file_count; ++i) scan_registrations(files[i], globals[files[i]])
    for (f = 1; f <= function_count; ++f) scan_registrations(f_file[f], f_body[f])
    for (f = 1; f <= function_count; ++f) scan_body(f)

    for (f = 1; f <= function_count; ++f) {
        n = split(calls[f], list, " ")
        for (i = 1; i <= n; ++i) is_called[list[i] + 0] = 1
    }
    # A handler that passes its context to a function through a pointer reaches each function that may be behind it: those
    # that the member of this name is set to, and those that are not called by name and were given as arguments.
    for (f = 1; f <= function_count; ++f) {
        n = split(pointer_call[f], list, " ")
        for (i = 1; i <= n; ++i) for (g = 1; g <= function_count; ++g) {
            if (!has_context(g) || g == f || kinds[g] != "") continue
            if (f_file[g] != f_file[f] && index(include_paths[f_file[g]] " ", " " f_file[f] " ") == 0) continue
            is_there = 0
            m = split(by_member[f_file[g], list[i]], others, " ")
            for (j = 1; j <= m; ++j) if (others[j] + 0 == g) is_there = 1
            if (!is_there && (is_called[g] || is_named[g] || is_handler(g))) continue
            calls[f] = calls[f] " " g
            reached[g] = 1
        }
    }

    for (f = 1; f <= function_count; ++f) {
        # A callback in a file that names an engine may belong to it. A scheduler or an nb_async alone has no contexts.
        text = globals[f_file[f]] f_body[f] f_params[f]
        if (f_file[f] ~ /^(modules|demo)\// || text ~ /nb_engine|nb_context/) is_host_file[f_file[f]] = 1
    }
    for (f = 1; f <= function_count; ++f) {
        kind = ""
        if (f_file[f] ~ /^src\//) kind = has_context(f) ? "engine" : ""
        else if (kinds[f] != "") kind = kinds[f]
        else if (is_handler(f)) kind = is_called[f] || reached[f] ? "helper" : "unregistered"
        else if (has_context(f)) kind = "helper"
        else if (is_host_file[f_file[f]] && kind_by_signature(f) !~ /^(part|task)$/) kind = kind_by_signature(f)
        if (kind != "") row_kind[f] = kind
    }
    for (f = 1; f <= function_count; ++f) if (f in row_kind) row_uses[f] = collect(f, row_kind[f])
    for (pass = 1; pass <= 2; ++pass) for (f = 1; f <= function_count; ++f) {
        if (!(f in started) || (f in row_uses)) continue
        row_uses[f] = collect(f, "")
        n = split(started[f], list, " ")
        started_by = ""
        for (i = 1; i <= n; ++i) if (index(" " started_by " ", " " list[i] " ") == 0) started_by = trim(started_by " " list[i])
        row_kind[f] = kind_by_signature(f) (started_by != "" ? " of " started_by : "")
    }
    for (f = 1; f <= function_count; ++f) {
        if (!(f in row_uses)) continue
        kind = row_kind[f]
        if (sub(/ of /, ":", kind)) gsub(/ /, "/", kind)
        gsub(/ /, "+", kind)
        print f_file[f] "\t" f_name[f] "\t" kind "\t" row_uses[f] "\t" f_line[f]
    }
}' $(cat "$work/files") | LC_ALL=C sort >"$work/rows"
[ -s "$work/rows" ] || { echo "handler_uses: no handler was found" >&2; exit 1; }

handlers=$(awk -F '\t' '$3 != "helper" && $3 != "engine"' "$work/rows" | wc -l)
helpers=$(awk -F '\t' '$3 == "helper"' "$work/rows" | wc -l)
counted="$handlers handlers, $helpers helpers"

# What a plain search finds: functions with a context among their parameters, callbacks of async jobs in files of the engine.
plain_search() {
    while read -r file; do
        tr '\n' ' ' <"$file" >"$work/one"
        pattern='const nb_context \*'
        case $file in src/*) ;; *) if grep -q nb_engine "$file"; then pattern='(const nb_context \*|void \*host, void \*)'; fi ;; esac
        grep -oE "[A-Za-z_][A-Za-z0-9_]*\([^()]*$pattern" "$work/one" | sed "s|(.*||; s|^|$file |" || :
    done <"$work/files" | LC_ALL=C sort -u
}

if [ "$mode" = --check ]; then
    plain_search >"$work/found"
    # A header may only declare the function.
    awk -F '[\t ]' 'FNR == NR { known[$1 " " $2] = 1; names[$2] = 1; next }
        !($0 in known) && !($1 ~ /\.h$/ && $2 in names) { print "handler_uses: " $1 ": " $2 " is in no line of the table" > "/dev/stderr"; bad = 1 }
        END { exit bad }' "$work/rows" "$work/found"
    awk -F '\t' '$3 == "unregistered" { print "handler_uses: " $1 ":" $5 ": " $2 " is registered nowhere" > "/dev/stderr"; bad = 1 }
        END { exit bad }' "$work/rows"
    counted="$counted, $(wc -l <"$work/found") found by a plain search"
elif [ "$mode" = "" ]; then
    cut -f 1-4 "$work/rows" | tr '\t' ' '
fi
if [ "$mode" = --table ]; then
    # Columns: kinds; uses; their name in the table; the member that replaces them. The first two are regular expressions.
    cat >"$work/map" <<'MAP'
tick ; .* ; **tick** ; `nb_tick`
tick ; user\.(write|mutable) ; `user` that is not const ; tables, `NB_STATE`, `NB_CACHE`; `user` is const
tick ; \.tick|\.tick\.(index|dt_s) ; `tick->index`, `tick->dt_s` ; `tick->index`, `tick->dt`
tick ; \.tick\.input_until_ns|\.input|buttons ; `input`, buttons ; `sample->events`; a tick reads pads
tick ; \.commands ; `commands` ; `tick->commands`
tick ; \.world|world\..*|nb_store_teleport ; columns, teleports ; `tick->world`
tick ; nb_scene_(local_write|parent_set|stage|despawn|pose_get) ; nodes of scene ; functions that take `tick->world`
tick ; nb_context_stage|stage ; stages ; `tick->stage`
tick ; \.scheduler|nb_parallel_.*|nb_group_.*|nb_task_.*|nb_scheduler_.* ; loops, reductions, groups ; `tick->tasks`
tick ; \.seed|random|\.arena|arena_memory ; random numbers, arena ; `tick->seed`, `tick->arena`
tick ; \.is_resimulated|nb_context_(log|submit)|nb_async_submit|nb_engine_async ; effects, `is_resimulated` ; `tick->effects`
tick ; nb_engine_stop|nb_engine_loop|nb_loop_(pause|quit) ; stop, pause ; `tick->stop`
tick ; nb_engine_stats_get ; hash of the tick before ; `end` of a tick watch
tick ; nb_store_version_advance ; block versions ; `NB_CACHE`
(part|task):tick.* ; .* ; **part or task of a tick** ; `nb_part`
(part|task):tick.* ; \.seed|\.tick\..*|random|world\..*|nb_store_teleport|stage ; numbers, columns, stages ; `part->tick`, `part->world`, `part->stage`
(part|task)(:[^t].*)? ; .+ ; **part or task of another kind** ; `nb_part` with `part->local`, `nb_task_context`
FrameStart ; .* ; **FrameStart** ; `nb_begin`
FrameStart|Present|FrameGraph|submit ; \.fence|\.frame|nb_fence_.*|nb_timeline.* ; fence, ticket, timeline ; `begin->ticket`; waits stay inside gpu
FrameStart|Present|Input|Gameplay|AsyncPoll ; nb_engine_(wait_begin|wait_end|note_device) ; waits, time of the device ; `begin->waits`, `present->device`
NetworkReconciliation ; .* ; **NetworkReconciliation** ; `nb_reconcile`
NetworkReconciliation ; nb_context_correct_.* ; corrections ; `reconcile->corrections`
NetworkReconciliation ; nb_tick_count|nb_engine_loop|\.frame_index|random ; tick count ; `reconcile->tick_count`
NetworkReconciliation|RandomSeed ; nb_history_.*|nb_engine_history|nb_loop_hold|nb_states_layout_hash ; history, hold of the loop ; `->history`, `->hold` of both kinds
RandomSeed ; .* ; **RandomSeed** ; `nb_settle`: after the rollback
RandomSeed|NetworkReconciliation ; nb_engine_rollback_stats|world\.read ; rows before and after, rollback count ; `->view` of both, `settle->rollback_count`
Gameplay|Input|SceneMutation ; .* ; **Input, Gameplay, SceneMutation** ; `nb_frame`
Gameplay|Input|SceneMutation ; \.input|buttons ; `input`, buttons ; `frame->events`
Gameplay|Input|SceneMutation ; \.frame_index|\.time.*|\.quality_level|\.seed|random ; numbers of the frame ; `frame->index`, `->alpha`, `->quality`
Gameplay|Input|SceneMutation ; nb_context_command|\.commands ; commands ; `frame->sender`
NetworkReconciliation|RandomSeed|merge|submit|async\..* ; nb_context_command ; commands of other kinds ; `->sender` of each
Gameplay|Input|SceneMutation ; world\.(write|spawn)|nb_context_stage|stage ; local rows ; `frame->local`, `frame->stage`
Gameplay|Input|SceneMutation ; \.world|world\.(read|previous)|nb_store_.* ; simulated rows, read ; `frame->view`
Gameplay|Input|SceneMutation|FrameEnd ; \.scheduler|\.fence|\.frame|nb_task_.*|nb_parallel_.*|nb_fence_.* ; tasks, fence, ticket ; `frame->tasks`, bound to the frame
Gameplay|Input|SceneMutation|FrameEnd ; nb_(async|token|timeline|service)_.*|nb_engine_(async|token|epochs|labels|services)|\.token ; async jobs, tokens, services ; `frame->async`, `frame->token`, handles of setup
Gameplay|Input|SceneMutation ; nb_engine_stop ; stop ; `frame->stop`
Transforms ; .* ; **Transforms** ; `nb_transforms`
Transforms ; world\..*|nb_store_version_advance ; local, simulated columns, versions ; `->local`, `->view`, `NB_CACHE`
Transforms ; \.scheduler|nb_parallel_for|\.time\..*|nb_tick_count|nb_engine_loop ; loops, alpha, tick count ; `transforms->tasks`, `->alpha`, `->tick_count`
Snapshot ; .* ; **Snapshot** ; `nb_publish`
Snapshot ; nb_snapshots_.*|nb_engine_snapshots|world\.read|nb_store_protect ; raw regions, live rows ; `publish->regions`, `publish->view`
job ; .* ; **job** ; `nb_job`, with a const `user`
job ; user\.(write|mutable) ; `user` that is not const ; outputs
job ; \.job_index|\.job_count|nb_output_add|\.outputs ; share of the job, outputs ; `job->index`, `NB_OUTPUT(job, ..)`
job ; \.snapshot.*|snapshot\..*|nb_snapshot.* ; snapshot, raw regions ; `job->view`
job ; \.arena|arena_memory ; scratch memory ; `job->arena`
job ; \.frame_index|\.time\..*|\.quality_level|random ; numbers of the frame ; `job->frame`, by value
job ; \.frame|gpu|\.fence|\.scheduler|\.token|nb_task_.*|nb_token_.* ; ticket, token, tasks ; `job->ticket`, `job->token`
job|record ; world\..*|\.world|nb_store_.*|stage ; live world ; no member
merge ; .* ; **merge** ; `nb_merge`
merge ; nb_output_list_next|\.job_index|\.job_count ; outputs, index ; `NB_OUTPUT_NEXT`, `merge->index`
merge ; \.job_age|\.frame_index|\.snapshot.*|snapshot.* ; age, snapshot, its frame ; `merge->age`, `->view`, `->is_current`
merge|PostParallel ; \.world|world\..*|random ; local columns ; `merge->local`, `frame->local`
PostParallel ; .* ; **PostParallel** ; `nb_frame`
FrameGraph ; .* ; **FrameGraph** ; `nb_plan`
FrameGraph|FrameStart ; gpu|graph ; passes, graph ; functions of the module gpu
FrameGraph ; nb_engine_(module_name|order_get)|\.module ; order of modules ; `plan->order`
FrameGraph|FrameEnd ; \.frame_index|\.time\..*|\.quality_level|world\.read|nb_scene_table ; numbers of the frame, rows ; `plan->alpha`, `plan->view`, `poll->view`
FrameGraph|FrameEnd|FrameStart ; nb_engine_(desc_get|scheduler|stats_get|budget|module_name)|nb_scheduler_.*|nb_budget_level ; statistics, desc ; `->stats` of each
record ; .* ; **record** ; `nb_record`
submit ; .* ; **submit** ; `nb_submit`
record|submit ; \.job_.*|nb_output.*|\.snapshot.*|snapshot.*|\.frame_index|\.time\..* ; index, outputs, snapshot ; members of `nb_job` and `nb_merge`
gpu\.pass ; .+ ; **record function of a pass** ; `nb_gpu_command`
Present ; .* ; **Present** ; `nb_present`
AsyncPoll|BudgetAdapt|FrameEnd ; .* ; **AsyncPoll, BudgetAdapt, FrameEnd** ; `nb_poll`
async\..* ; .+ ; **async callbacks** ; one context for each, `host` goes
async\..* ; world\..*|\.frame_index|\.engine ; local rows, frame ; `publish->local`, `publish->index`
watch\..* ; .* ; **tick watches** ; `nb_tick_view`
watch\..* ; view\..*|nb_provider.*|nb_engine_states|nb_store_hash_.*|nb_.*stats_get|nb_service_send|nb_re(play|corder)_.*|random|world\.read ; tick, inputs, hashes, saves ; the same members, `view->states`
watch\..* ; nb_loop_hold|nb_engine_(loop|stop) ; hold, stop ; `view->hold`, `view->stop`
netplay\.sample ; .+ ; **sample of netplay** ; `nb_sample`
attach|replay\.attach ; .+ ; **attach** ; `nb_setup`
detach ; .+ ; **detach** ; `nb_teardown`
on_complete|service ; .+ ; **results of tasks, services** ; context of the delivering phase, `nb_service`
EachPhase ; .+ ; **one function in each phase** ; one function for each kind
.* ; \.engine ; `engine` ; no member
.* ; \.phase|\.copy|\.module|nb_engine_phase|\.capabilities|nb_context_check.* ; phase, rights, copies ; no member; a record that can be closed
[A-Z].*|merge|submit ; nb_states_(hash|save|compare)|nb_engine_(states|loop)|nb_tick_count ; states, tick count ; a probe of the engine, `->tick_count`
.* ; nb_engine_(create|destroy|frame|frame_delta|run|run_ticks|load|rewind|set_tick|watch_.*)|nb_(netplay|recorder|replay|save)_.*|nb_scene_(create|destroy)|nb_loop_set_tick|nb_store_(apply|load|tick_begin|tick_end|table_add) ; calls for between frames ; `NB_BUSY`, or the host callback
.* ; nb_engine_module_(attach|detach|replace) ; modules that come and go ; a request, kept until the frame ends
MAP
    awk -F '\t' '
    function trim(s) { sub(/^ +/, "", s); sub(/ +$/, "", s); return s }
    FNR == NR {
        split($0, part, " ; ")
        ++map_count
        map_kind[map_count] = "^(" trim(part[1]) ")$"; map_use[map_count] = "^(" trim(part[2]) ")$"
        map_text[map_count] = trim(part[3]); map_new[map_count] = trim(part[4])
        next
    }
    $3 == "helper" || $3 == "engine" { next }
    function note(row, is_test, file, size) {
        ++count[row, is_test]
        if (!is_test || ((row in example) && size >= example_size[row])) return
        example[row] = file; example_size[row] = size
    }
    {
        is_test = $1 ~ /^tests\//
        kind_count = split($3, kinds, "+")
        use_count = split($4, uses, ",")
        size = length($4)
        if (kind_count >= 5 && $3 !~ /EachPhase/) kinds[++kind_count] = "EachPhase"
        for (key in known) delete known[key]
        for (i = 1; i <= map_count; ++i) {
            has = 0
            for (k = 1; k <= kind_count; ++k) {
                if (kinds[k] !~ map_kind[i]) continue
                if (map_use[i] ~ /^\^\(\.[*+]\)\$$/) {
                    has = 1
                    if (map_use[i] ~ /\.[+]/) for (u = 1; u <= use_count; ++u) known[kinds[k], uses[u]] = 1
                    continue
                }
                for (u = 1; u <= use_count; ++u) if (uses[u] ~ map_use[i]) { has = 1; known[kinds[k], uses[u]] = 1 }
            }
            if (has) note(i, is_test, $1, size)
        }
        is_other = 0
        for (k = 1; k <= kind_count; ++k) for (u = 1; u <= use_count; ++u) {
            if (uses[u] ~ /^(-|user\..*|(task|call)\..*)$/ || ((kinds[k] SUBSEP uses[u]) in known)) continue
            is_other = 1
            if (is_test) continue
            print "handler_uses: " $1 ":" $5 ": " $2 ", " kinds[k] ": no row of the table names the use " uses[u] > "/dev/stderr"
            bad = 1
        }
        if (is_other) note("other", is_test, $1, size)
    }
    END {
        map_text[++map_count] = "other uses, in tests"; map_new[map_count] = "no member"
        count[map_count, 1] = count["other", 1]; example[map_count] = example["other"]
        print "| kind, or use of it | outside tests | in tests | becomes | a test |"
        print "|---|---:|---:|---|---|"
        for (i = 1; i <= map_count; ++i) {
            file = example[i]; sub(/.*\//, "", file)
            printf "| %s | %d | %d | %s | %s |\n", map_text[i], count[i, 0], count[i, 1], map_new[i], file
        }
        exit bad
    }' "$work/map" "$work/rows"
    echo
    awk -F '\t' '
    function label(path,    n, part) {
        n = split(path, part, "/")
        sub(/\.[ch]$/, "", part[n])
        return part[n] == "main" && part[1] == "examples" ? part[n - 1] : part[n]
    }
    # Without what another use says already.
    function fold(kind, uses,    n, list, i, all, out, one) {
        n = split(uses, list, ",")
        all = "," uses ","
        for (i = 1; i <= n; ++i) {
            one = list[i]
            if (one == ".engine" && all ~ /,nb_engine_/ || one == "nb_engine_loop" && all ~ /,nb_loop_/) continue
            if (one == ".scheduler" && all ~ /,nb_(parallel|task|group)_/ || one == "nb_engine_budget") continue
            if (one ~ /^(arena_memory|\.snapshot|nb_context_stage|view\.tick\.index|nb_engine_states|user\.const)$/) continue
            if (one ~ /^user\./ && kind !~ /^(tick|part|job)/) continue
            if (one ~ /^nb_(state_flags|states_at|states_count|world_hash_at|world_hash_count)$/) continue
            if (one ~ /^nb_trace_(begin|end)$/ || one == "nb_token_release" && all ~ /,nb_token_c/) continue
            if (one == "-") continue
            sub(/^\./, "", one); sub(/^nb_(context_)?/, "", one)
            out = out (out == "" ? "" : " ") one
        }
        return out == "" ? "nothing" : out
    }
    $3 == "helper" || $3 == "engine" || $1 ~ /^tests\// { next }
    {
        kind = split($3, part, "+") >= 5 ? "many phases" : $3
        key = kind "\t" fold(kind, $4)
        name = label($1) ":" $2
        if (last[key] == $1) name = $2
        last[key] = $1
        if (!(key in text)) keys[++key_count] = key
        text[key] = text[key] (text[key] == "" ? "" : ", ") name
    }
    END { for (i = 1; i <= key_count; ++i) print keys[i] "\t" text[keys[i]] }' "$work/rows" | LC_ALL=C sort | awk -F '\t' -v width=130 '
    function flush_line() { if (line != "") print line; line = "" }
    function put(word) {
        if (length(line) + length(word) + 1 > width) { flush_line(); line = "  " word } else line = line (line == "" ? "" : " ") word
    }
    {
        if ($1 != kind) { flush_line(); line = "-"; put("**" $1 "**:") } else line = line ";"
        kind = $1
        count = split($3 " = " $2, words, " ")
        for (i = 1; i <= count; ++i) put(words[i])
    }
    END { flush_line() }'
fi
[ "$mode" = --table ] || report_files handler_uses "$(wc -l <"$work/files")" "$counted"
