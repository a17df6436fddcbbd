# SPDX-License-Identifier: MIT
# Part of mutants.sh: reads the files that are its arguments, tests/mutants/<source>.mutants, with -v root= of the tree.
# Without more it prints one line for each mutant, with tabs between the fields: its full name (<source>:<name>), its test,
# kind, size, the files it changes, and its why. A mutant that is rotten has a line "rotten", its full name and the reason.
# With -v name=NAME -v tree=TREE it applies that mutant to the copy of the sources below TREE instead.

function read_all(path,    line, text) {
    text = ""
    while ((getline line < path) > 0) text = text line "\n"
    close(path)
    return text
}

# Of the tree's own sources, read once.
function text_of(path) {
    if (!(path in texts)) texts[path] = read_all(root "/" path)
    return texts[path]
}

function rotten(reason) {
    if (!has_rotted) printf "rotten\t%s\t%s\n", source ":" mutant, reason
    has_rotted = 1
}

# What stands in the first brackets of each line that begins with a macro, such as TEST(name) or TEST_IN(fixture, name).
function read_cases(file,    line, words, count, i) {
    cases[file] = " "
    while ((getline line < (root "/" file)) > 0) {
        if (line !~ /^[A-Z][A-Z_]*\(/ || line ~ /^NB_/) continue
        count = split(line, words, /[^A-Za-z0-9_]+/)
        for (i = 2; i <= count && i <= 3; ++i) cases[file] = cases[file] words[i] " "
    }
    close(file)
}

function check_test(    folder, file, wanted) {
    if (test == "simulate") return
    folder = test
    if (!sub(/\/[^\/]*$/, "", folder)) { rotten("its test is no <folder>/<concept>.<case>: " test); return }
    # Their sources are not built for mutants: what only the demo notices needs a test of its own.
    if (test ~ /^(demo|window|reload)\//) { rotten("a test of " folder " judges no mutant"); return }
    wanted = file = substr(test, length(folder) + 2)
    sub(/\..*/, "", file)
    sub(/^[^.]*\.?/, "", wanted)
    file = "tests/" folder "/test_" file ".c"
    if (text_of(file) == "") { rotten("there is no " file); return }
    if (!(file in cases)) read_cases(file)
    gsub(/\*/, "[A-Za-z0-9_]*", wanted)
    if (wanted == "" || cases[file] !~ (" " wanted " ")) rotten("there is no case " test)
}

function kind_of() {
    return (test ~ /^explore\// || test == "simulate" ? "explore" : "plain") (sanitizer != "" ? "+" sanitizer : "")
}

function end_mutant() {
    if (mutant == "") return
    if (state != "" || block_count == 0) rotten("no complete block")
    if (why == "") rotten("it has no why")
    if (mutant !~ /^[a-z0-9_]+$/ || (source ":" mutant) in seen) rotten("its name is not a new one of its file")
    if (sanitizer !~ /^(address|thread)?$/) rotten("no such sanitizer: " sanitizer)
    seen[source ":" mutant] = 1
    check_test()
    if (!has_rotted) printf "%s\t%s\t%s\t%s\t%s\t%s\n", source ":" mutant, test, kind_of(), size, changed, why
}

function begin_mutant(its_name) {
    mutant = its_name
    file = source
    test = why = sanitizer = size = changed = state = ""
    block_count = has_rotted = 0
}

# Replaces the text, or only looks whether it could.
function take_block(    text, at) {
    ++block_count
    if (index(" " changed " ", " " file " ") == 0) changed = changed (changed == "" ? "" : " ") file
    text = tree != "" ? read_all(tree "/" file) : text_of(file)
    at = index(text, old)
    if (file !~ /^(src|include|modules)\//) rotten(file " is not below src, include or modules")
    else if (old == "" || at == 0) rotten("the old text is not in " file)
    else if (index(substr(text, at + 1), old) != 0) rotten("the old text is more than once in " file)
    else if (old == new) rotten("a block changes nothing")
    if (tree == "" || has_rotted) return
    printf "%s", substr(text, 1, at - 1) new substr(text, at + length(old)) > (tree "/" file)
    close(tree "/" file)
}

FNR == 1 {
    if (tree == "") end_mutant()
    source = FILENAME
    sub(/.*tests\/mutants\//, "", source)
    sub(/\.mutants$/, "", source)
    mutant = ""
}
state == "" && /^--- / {
    if (tree == "") end_mutant()
    begin_mutant($2)
    next
}
mutant == "" || (tree != "" && mutant != name) { next }
state == "" && /^why: / { why = substr($0, 6); next }
state == "" && /^test: / { test = $2; next }
state == "" && /^sanitizer: / { sanitizer = $2; next }
state == "" && /^size: / { size = $2; next }
state == "" && /^file: / { file = $2; next }
state == "" && /^<<<<$/ { state = "old"; old = ""; is_first = 1; next }
state == "old" && /^====$/ { state = "new"; new = ""; is_first = 1; next }
state == "new" && /^>>>>$/ { state = ""; take_block(); next }
state == "old" { old = old (is_first ? "" : "\n") $0; is_first = 0; next }
state == "new" { new = new (is_first ? "" : "\n") $0; is_first = 0; next }
$0 != "" { rotten("a line that is none of a mutant: " $0) }
END { if (tree == "") end_mutant() }
