#!/bin/sh
# headers.sh COMPILER STANDARD INCLUDE_DIR: each public header compiles alone, and twice, without a
# warning. Status 77 where the compiler is not there: skipped.
compiler=$1 standard=$2 include=$3
command -v "$compiler" >/dev/null || exit 77
case $standard in
c++*) language=c++ ;;
*) language=c ;;
esac

# alone HEADER FOLDER
alone() {
    printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
        "$compiler" -x $language -std="$standard" -pedantic -Wall -Wextra -Wshadow -Wundef -Werror \
            -I "$2" -fsyntax-only -
}

status=0 found=0
for path in "$include"/coldbench/*.h; do
    header=coldbench/${path##*/}
    found=$((found + 1))
    alone "$header" "$include" || { echo "$header does not compile alone"; status=1; }
done
echo "$compiler -std=$standard: $found headers"
[ "$found" -gt 0 ] || status=1

# The check is worth something: it refuses a header that leans on another, one that cannot be included
# twice, and a language extension.
seeded=$(mktemp -d) || exit 1
trap 'rm -rf "$seeded"' EXIT
echo 'uint64_t lean(void);' >"$seeded/lean.h"
echo 'struct twice { int a; };' >"$seeded/twice.h"
printf '#ifndef E\n#define E\nextern int empty[0];\n#endif\n' >"$seeded/extension.h"
for header in lean.h twice.h extension.h; do
    alone $header "$seeded" 2>/dev/null && { echo "$header was let through"; status=1; }
done
exit $status
