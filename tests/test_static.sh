#!/bin/sh
# test_static.sh PROGRAM DYNAMIC: PROGRAM needs glibc's libraries and nothing else; DYNAMIC, a program that
# is linked to another shared library, is refused by the same check.
set -u

# strangers PROGRAM: prints what it needs that is not glibc's.
strangers() {
    readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux[a-z0-9_-]*)\.so\.[0-9]+$'
}

[ -n "$(readelf -dW "$1" | grep NEEDED)" ] || { echo "$1 is not a dynamic program"; exit 1; }
if strangers "$1"; then
    echo "$1 needs the above"
    exit 1
fi
strangers "$2" >/dev/null || { echo "$2 is not refused"; exit 1; }
