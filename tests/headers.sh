#!/bin/sh
# headers.sh COMPILER STANDARD INCLUDE_DIR: each public header compiles alone, included twice, without
# a warning. Status 77 where the compiler is not there: skipped.
compiler=$1 standard=$2 include=$3
command -v "$compiler" >/dev/null || exit 77
case $standard in
c++*) language=c++ ;;
*) language=c ;;
esac
status=0
found=0
for header in "$include"/coldbench/*.h; do
    found=$((found + 1))
    name=coldbench/$(basename "$header")
    printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
        "$compiler" -x $language -std="$standard" -pedantic -Wall -Wextra -Wshadow -Wundef -Werror \
            -I "$include" -fsyntax-only - || { echo "$name: does not compile alone"; status=1; }
done
echo "$compiler -std=$standard: $found headers"
[ "$found" -gt 0 ] || status=1
exit $status
