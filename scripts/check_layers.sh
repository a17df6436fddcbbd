#!/bin/sh
# SPDX-License-Identifier: MIT
# check_layers.sh [ROOT]: includes point down only, OS headers stay in src/platform/platform_*.c, and public headers are
# free of _Atomic. Modules include public headers of the core and their own files; OS headers stay in their *_posix.c and
# *_<os>.c. The layers, lowest first:
#   types.h, atomic.h < platform < base < tasks < frame < modules < programs (public headers only)
# The demo's folders have an order of their own, below. Those that are simulated include no header of the module gpu.
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

list=$(find src include modules demo tools examples bench -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) 2>/dev/null | sort)
[ -n "$list" ] || { echo "check_layers: no sources below $root" >&2; exit 1; }

# shellcheck disable=SC2086
awk '
BEGIN {
    split("platform base tasks frame", names, " ")
    for (i in names) rank[names[i]] = i
    MODULE = 5; PROGRAM = 6
    # Of the demo, lowest first; main.c is above them all.
    DEMO_MAIN = split("planet game players chunks jobs shell draw show record net without", names, " ") + 1
    for (i = 1; i < DEMO_MAIN; ++i) demo_rank[names[i]] = i
    DEMO_SIMULATED = demo_rank["players"] # and what is below
    # Public headers without a source file of the same name.
    public["types"] = public["atomic"] = 0
    public["hooks"] = public["log_items"] = public["report"] = public["bytes"] = rank["base"]
    public["tasks"] = rank["tasks"]
    public["budget"] = rank["frame"]
    public["nebula"] = PROGRAM
    # ISO C without what the platform layer replaces (stdatomic.h, threads.h, time.h, signal.h), and headers of the compiler.
    n = split("assert ctype errno float inttypes iso646 limits math setjmp stdalign stdarg stdbool stddef stdint stdio stdlib stdnoreturn string " \
              "cpuid arm_neon arm_acle intrin sanitizer/asan_interface sanitizer/msan_interface sanitizer/tsan_interface", iso, " ")
    for (i = 1; i <= n; ++i) allowed[iso[i] ".h"] = 1
    allowed["type_traits"] = 1 # in C++, where C has typeof
    for (i = 1; i < ARGC; ++i) {
        parts = split(ARGV[i], part, "/")
        if (part[1] == "src" && parts >= 3) {
            stem = part[parts]; sub(/\.[ch]$/, "", stem)
            if (!(stem in public)) public[stem] = rank[part[2]]
        }
        # Public headers of modules, included as "nebula/<name>.h".
        if (part[1] == "modules" && part[3] == "include") {
            header = ARGV[i]; sub(/^modules\/[^\/]*\//, "", header)
            module_of[header] = part[1] "/" part[2]
        }
    }
}

function report(message) { printf "%s:%d: %s\n", FILENAME, FNR, message; bad = 1 }

# "a/b/../c" -> "a/c"
function normalize(path,    count, part, i, depth, stack, out) {
    count = split(path, part, "/"); depth = 0
    for (i = 1; i <= count; ++i) {
        if (part[i] == "." || part[i] == "") continue
        if (part[i] == "..") { if (depth > 0) --depth; continue }
        stack[++depth] = part[i]
    }
    out = ""
    for (i = 1; i <= depth; ++i) out = out (i > 1 ? "/" : "") stack[i]
    return out
}

# The layer of a path: its rank, and in `home` the folder that siblings may not share.
function classify(path,    part, count, stem) {
    count = split(path, part, "/")
    home = part[1] "/" part[2]
    if (part[1] == "src") return (part[2] in rank) ? rank[part[2]] : -1
    if (part[1] == "modules") return MODULE
    if (part[1] == "include") {
        if (path in module_of) { home = module_of[path]; return MODULE }
        home = "include"
        stem = part[count]; sub(/\.h$/, "", stem)
        return (stem in public) ? public[stem] : -1
    }
    if (part[1] == "demo" || part[1] == "bench") home = part[1]
    return PROGRAM
}

# The same among the folders of the demo; 0 for a folder that is not named above.
function classify_demo(path,    part) {
    split(path, part, "/")
    return part[2] == "main.c" ? DEMO_MAIN : demo_rank[part[2]] + 0
}

FNR == 1 {
    own = classify(FILENAME); own_home = home
    if (own < 0) report("no layer is known for this file; name it in scripts/check_layers.sh")
    folder = FILENAME; sub(/\/[^\/]*$/, "", folder)
    is_core = FILENAME ~ /^(src|include)\//
    is_os = FILENAME ~ /^src\/platform\/([a-z0-9_]+\/)*platform_[a-z0-9]+\.c$/
    is_module = FILENAME ~ /^modules\//
    is_module_os = FILENAME ~ /^modules\/[a-z0-9_]+\/([a-z0-9_]+\/)*[a-z0-9_]+_(posix|linux|windows)\.c$/
    is_public = FILENAME ~ /^include\// || FILENAME ~ /^modules\/[a-z0-9_]+\/include\//
    is_program = own == PROGRAM && !is_public
    own_demo = own_home == "demo" ? classify_demo(FILENAME) : DEMO_MAIN
    if (own_demo == 0) report("no layer is known for this folder of the demo; name it in scripts/check_layers.sh")
}

is_public && /_Atomic/ { code = $0; sub(/\/\/.*/, "", code); if (code ~ /_Atomic/) report("_Atomic in a public header") }

own < 0 { next }

/^[ \t]*#[ \t]*include[ \t]*</ {
    name = $0; sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
    if (name ~ /^nebula\//) {
        if (is_core) { report("include Nebula headers with quotes"); next }
        if (classify("include/" name) > own) report("<" name "> is of a higher layer")
        next
    }
    if (is_core && !is_os && !(name in allowed) && name !~ /^[a-z0-9]+intrin\.h$/) report("<" name "> belongs into src/platform/platform_<os>.c alone")
}

# What an operating system has, and what other libraries may not be mistaken for.
is_module && !is_module_os && /^[ \t]*#[ \t]*include[ \t]*<(unistd|fcntl|pthread|dirent|poll|sched|semaphore|signal|time|threads|stdatomic|windows|sys\/[a-z]+|netinet\/[a-z]+|arpa\/[a-z]+)\.h>/ {
    name = $0; sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
    report("<" name "> belongs into a *_posix.c or *_<os>.c of the module")
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    name = $0; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
    if (name ~ /^nebula\//) path = "include/" name
    else path = normalize(folder "/" name)
    target = classify(path); target_home = home
    if (is_module && path ~ /^src\//) report("a module includes \"" name "\": public headers of the core only")
    else if (is_public && path !~ /^include\//) report("a public header includes the private \"" name "\"")
    # The benchmark measures parts of the demo.
    else if (is_program && path !~ /^include\// && target_home != own_home && !(own_home == "bench" && target_home == "demo")) report("a program includes \"" name "\": public headers only")
    else if (target < 0) report("\"" name "\" is of no known layer")
    else if (target > own) report("\"" name "\" is of a higher layer")
    else if (own_home == "demo" && target_home == "demo" && classify_demo(path) > own_demo) report("\"" name "\" is of a higher layer of the demo")
    else if (own_home == "demo" && own_demo <= DEMO_SIMULATED && target_home == "modules/gpu") report("\"" name "\" draws, and this part of the demo is simulated")
    else if (target == MODULE && own == MODULE && target_home != own_home) report("\"" name "\" is of a sibling module")
}

END { if (bad) exit 1; print "check_layers: " ARGC - 1 " files" }
' $list
