#!/bin/sh
# test_headers.sh ROOT: each public header compiles alone, as C11 and as C++17. Skipped (77) where there is
# no clang, which reads both without a C++ library.
set -u
command -v clang >/dev/null 2>&1 || exit 77
failed=0
warnings="-Wall -Wextra -Wundef -Wpedantic -Werror"

# alone FILE LANGUAGE STANDARD
alone() {
    # shellcheck disable=SC2086 # one word an option
    printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
        clang -x "$2" -std="$3" $warnings -I "$include" -fsyntax-only -
}

include=$1/include
for path in "$include"/coldbench/*.h; do
    header=coldbench/${path##*/}
    alone "$header" c c11 || failed=1
    alone "$header" c++ c++17 || failed=1
done

# The check is worth something: a header that leans on another, and one that is no C++, are refused.
include=$(mktemp -d) || exit 1
trap 'rm -rf "$include"' EXIT
echo 'uint64_t lean(void);' >"$include/lean.h"
echo 'struct one { int class; };' >"$include/class.h"
alone lean.h c c11 2>/dev/null && { echo "lean.h passes as C11"; failed=1; }
alone class.h c++ c++17 2>/dev/null && { echo "class.h passes as C++17"; failed=1; }
exit $failed
