#!/bin/sh
# test_includes.sh ROOT: reads the #include lines and enforces that dependencies point one way, down the
# list of parts below. Then seeds each kind of violation in a copy and expects it to be found.
set -u

# check ROOT: prints each violation; status 1 when there is one.
check() (
    cd "$1" || exit 1
    files=$(find src cli include -name '*.[chS]' -type f 2>/dev/null | sort)
    # shellcheck disable=SC2086 # one word a file
    printf '%s\n' $files | awk '
    BEGIN {
        # From the top down; a number is shared by parts that do not include each other.
        split("cli:1 report:2 record:3 run:4 tune:5 gate:5 compare:6 worker:7 measure:8 probe:9 " \
              "timing:10 model:11 kernel:12 device:13 stats:14 host:15 base:16", parts, " ")
        for (i in parts) { split(parts[i], pair, ":"); rank[pair[1]] = pair[2] }
    }
    { known[$0] = 1; list[++n] = $0 }
    END { for (f = 1; f <= n; f++) read_file(list[f]); exit bad }

    function fault(rule) { printf "%s:%d: %s: %s\n", file, line, text, rule; bad = 1 }

    function read_file(path) {
        file = path
        line = 0
        locate(path)
        while ((getline text < path) > 0) {
            line++
            if (text !~ /^[ \t]*#[ \t]*include[ \t]*["<]/) continue
            name = text
            sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", name)
            sub(/[">].*/, "", name)
            if (text ~ /</) system_header(name)
            else if (part == "coldbench") public_header(name)
            else if (module != "") module_source(name)
            else source(name)
        }
        close(path)
    }

    # Sets part, module (a folder under src/kernel) and folder of the file that is read.
    function locate(path,   p, count) {
        count = split(path, p, "/")
        folder = path
        sub(/\/[^\/]*$/, "", folder)
        part = (p[1] == "cli") ? "cli" : (p[1] == "include") ? "coldbench" : p[2]
        module = (p[1] == "src" && p[2] == "kernel" && count > 3) ? p[3] : ""
        if (part != "coldbench" && !(part in rank)) { line = 0; text = path; fault("no part of that name") }
    }

    function system_header(name) {
        if (name == "jansson.h" && path_is("src/base/json")) return
        if (name == "yaml.h" && path_is("src/base/yaml")) return
        if (name == "jansson.h" || name == "yaml.h") fault("only src/base reads " name)
        if (module != "" && name ~ /^(hwloc|sqlite3|coldbench|cuda|CL)/)
            fault("a kernel module includes libc and its own folder")
    }

    function path_is(start) { return index(file, start) == 1 }

    function public_header(name) {
        if (!(("include/" name) in known) || name !~ /^coldbench\//)
            fault("a public header includes public headers")
    }

    function module_source(name) {
        if (name ~ /^coldbench\// && (("include/" name) in known)) return
        if ((folder "/" name) in known && name !~ /\.\./) return
        if (name ~ "^kernel/" module "/" || name ~ /^kernel\/twin\// || name ~ /^\.\.\/twin\//) return
        fault("a kernel module includes its own folder, kernel/twin and coldbench/")
    }

    function source(name,   p, other) {
        if (name == "cb_build_info.h" || (name ~ /^coldbench\// && (("include/" name) in known))) return
        if (name !~ /\//) {
            if (!((folder "/" name) in known)) fault("no such header beside this file")
            return
        }
        split(name, p, "/")
        other = p[1]
        if (!(other in rank) || !(("src/" name) in known)) { fault("no such header in src/"); return }
        if (name ~ /^kernel\/[^\/]*\// && name !~ /^kernel\/twin\//) fault("inside of a kernel module")
        if (other != part && rank[other] <= rank[part]) fault(part " is below or beside " other)
    }
    '
)

# seeded FILE LINE WORDS: adds a line to a file of the copy; the check must name that file and say WORDS.
seeded() {
    mkdir -p "$copy/$(dirname "$1")"
    cp "$copy/$1" "$copy.saved" 2>/dev/null || : >"$copy.saved"
    printf '%s\n' "$2" >>"$copy/$1"
    if found=$(check "$copy"); then
        echo "not found: $2 in $1"
        failed=1
    elif ! printf '%s\n' "$found" | grep -q "^$1:.*$3"; then
        printf 'found, but not as "%s": %s\n' "$3" "$found"
        failed=1
    fi
    if [ -s "$copy.saved" ]; then cp "$copy.saved" "$copy/$1"; else rm "$copy/$1"; fi
}

root=$1
failed=0
check "$root" || failed=1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/tree
mkdir -p "$copy/src/host" "$copy/src/base" "$copy/src/kernel/one" "$copy/src/kernel/two" "$copy/cli" \
    "$copy/include/coldbench" "$copy/src/tune" "$copy/src/gate" "$copy/src/report"
echo '#include <stddef.h>' >"$copy/include/coldbench/status.h"
for header in host/clock base/buf tune/tune gate/gate report/table kernel/one/one kernel/two/two; do
    echo '#include "coldbench/status.h"' >"$copy/src/$header.h"
done
printf '#include "one.h"\n#include "coldbench/status.h"\n' >"$copy/src/kernel/one/kernel.c"
printf '#include "report/table.h"\n#include "base/buf.h"\n' >"$copy/cli/main.c"
check "$copy" || { echo "the clean copy is accused"; failed=1; }

seeded src/base/buf.c '#include "host/clock.h"' "base is below or beside host"
seeded src/host/clock.c '  #  include "report/table.h"' "host is below or beside report"
seeded src/tune/tune.c '#include "gate/gate.h"' "tune is below or beside gate"
seeded src/host/clock.c '#include "missing.h"' "no such header beside"
seeded src/host/clock.c '#include "../base/buf.h"' "no such header in src"
seeded src/misc/misc.c '#include "base/buf.h"' "no part of that name"
seeded src/host/clock.c '#include <jansson.h>' "only src/base"
seeded src/kernel/one/kernel.c '#include "base/buf.h"' "a kernel module includes its own"
seeded src/kernel/one/kernel.c '#include "kernel/two/two.h"' "a kernel module includes its own"
seeded src/kernel/one/kernel.c '#include "../two/two.h"' "a kernel module includes its own"
seeded src/kernel/one/kernel.c '#include <hwloc.h>' "a kernel module includes libc"
seeded src/report/table.c '#include "kernel/one/one.h"' "inside of a kernel module"
seeded include/coldbench/status.h '#include "base/buf.h"' "a public header includes"
exit $failed
