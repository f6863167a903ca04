#!/bin/sh
# test.sh [PRESET...]: builds and tests each preset and ends with one line for each. dev runs every test,
# asan those of the program, tsan those labelled threads; clang is built for its warnings, static for what it links.
# With CI=true a skipped test that tests/may_skip.txt does not name is a failure.
set -u
cd "$(dirname "$0")/.." || exit 1
sh scripts/need.sh build test || exit
summary=build/summary.txt
mkdir -p build
: >"$summary"
status=0

report() {
    printf 'coldbench: %-8s %s\n' "$preset" "$1" >>"$summary"
}

run_tests() {
    log=build/$preset-tests.log
    printf 'coldbench: %s: testing\n' "$preset" >&2
    if ! ctest --preset "$preset" -j "$(nproc)" "$@" >"$log" 2>&1; then
        grep -vE '^ *Start |Passed +[0-9.]+ sec$' "$log" >&2
        failures=$(sed -n 's/.*, \([0-9]* tests failed out of [0-9]*\)$/\1/p' "$log")
        report "FAILED: ${failures:-ctest ran no test}; see $log"
        return 1
    fi
    tests=$(sed -n 's/.* tests failed out of //p' "$log")
    if ! skipped=$(sh scripts/skipped.sh "build/$preset" "$log"); then
        printf '%s\n' "$skipped" >&2
        if [ "${CI:-}" = true ]; then
            report "FAILED: skipped a test that must run"
            return 1
        fi
    fi
    report "passed: ${tests:-0} test programs$(printf '%s' "${skipped:+, skipped: }$skipped" | tr '\n' ';')"
}

for preset in ${*:-dev clang asan tsan static}; do
    case $preset in
    clang) sh scripts/build.sh clang && report "built without a warning" ;;
    static) sh scripts/build.sh static coldbench shared_jansson && run_tests -R '^test_static$' ;;
    *) sh scripts/build.sh "$preset" && run_tests ;;
    esac && continue
    status=1
    grep -q "^coldbench: $preset " "$summary" || report "FAILED: did not build; see build/$preset.log"
done
cat "$summary"
exit $status
