#!/bin/sh
# build.sh PRESET [TARGET...]: configures and builds a preset, quietly: the output goes to a log, whose end
# is shown when something fails. At a terminal ninja's progress line is shown.
set -u
cd "$(dirname "$0")/.." || exit 1
preset=$1
shift
log=build/$preset.log
mkdir -p build

failed() {
    tail -n 30 "$log" >&2
    printf 'coldbench: %s: %s failed; all of it: %s\n' "$preset" "$1" "$log" >&2
    exit 1
}

printf 'coldbench: %s: building\n' "$preset" >&2
cmake --preset "$preset" >"$log" 2>&1 || failed "configuring"
if [ -t 2 ]; then
    cmake --build --preset "$preset" ${1:+--target "$@"} >&2 || exit 1
else
    cmake --build --preset "$preset" ${1:+--target "$@"} >>"$log" 2>&1 || failed "building"
fi
