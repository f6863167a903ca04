#!/bin/sh
# test_format.sh ROOT: the C files are as clang-format 14 leaves them. Other versions break lines at other
# places, so the test is skipped (77) without that one.
set -u
command -v clang-format-14 >/dev/null 2>&1 || exit 77
cd "$1" || exit 1

# formatted FILE...: status 1 and the first places when one of the files is not.
formatted() {
    clang-format-14 --dry-run -Werror --ferror-limit=1 "$@" 2>&1 | grep 'error:' && return 1
    return 0
}

wrong=$(mktemp -d) || exit 1
trap 'rm -rf "$wrong"' EXIT
echo 'int  x ;' >"$wrong/x.c"
formatted "$wrong/x.c" >/dev/null && { echo "the check accepts anything"; exit 1; }

failed=0
for file in $(find src cli include tests examples -name '*.[ch]' -type f 2>/dev/null | sort); do
    formatted "$file" || failed=1
done
[ $failed -eq 0 ] || echo "make format mends this"
exit $failed
