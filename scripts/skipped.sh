#!/bin/sh
# skipped.sh BUILD OUTPUT: lists what a ctest run skipped, one "program case" a line: cmocka cases from
# ctest's log in BUILD, whole programs (case "-") from the OUTPUT it printed, since the log calls those
# passed. Status 1 when one of them is not in tests/may_skip.txt; it is then marked.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
awk '
    function skip(what) {
        if (what in seen) return
        seen[what] = 1
        if (what in may) { print what; return }
        print what " (must run)"
        bad = 1
    }
    from == "list" && !/^#/ && NF >= 2 { may[$1 " " $2] = 1 }
    from == "log" && / Testing: / { program = $NF }
    # In the summary a count follows the mark, then the same names again.
    from == "log" && /^\[  SKIPPED \] [^0-9]/ { skip(program " " $4) }
    from == "output" && /Test +#[0-9]+: .*\*\*\*(Skipped|Not Run)/ {
        name = $0
        sub(/.*Test +#[0-9]+: /, "", name)
        sub(/[ .].*/, "", name)
        skip(name " -")
    }
    END { exit bad }
' from=list "$root/tests/may_skip.txt" from=log "$1/Testing/Temporary/LastTest.log" from=output "$2"
