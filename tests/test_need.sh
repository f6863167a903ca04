#!/bin/sh
# test_need.sh ROOT: scripts/need.sh run with only some commands on the PATH, as on a bare machine, and
# with an id that is not root's.
set -u
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

# machine NAME...: a folder for PATH with what every system has, and the commands named.
machine() {
    rm -rf "$scratch/bin"
    mkdir "$scratch/bin"
    for name in env sed cat mkdir tail "$@"; do
        ln -s "$(command -v "$name")" "$scratch/bin/$name"
    done
    printf '#!/bin/sh\necho 1000\n' >"$scratch/bin/id"
    chmod +x "$scratch/bin/id"
}

# command_is NAME SCRIPT: puts a stand-in on that PATH.
command_is() {
    printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

# expect STATUS WORDS GROUP...: status and a text in the output of need.sh there, without a terminal.
expect() {
    wanted=$1
    words=$2
    shift 2
    output=$(cd "$scratch" && PATH="$scratch/bin" "$sh" "$root/scripts/need.sh" "$@" 2>&1 </dev/null)
    status=$?
    case $output in *"$words"*) found=1 ;; *) found=0 ;; esac
    if [ $status -ne "$wanted" ] || [ $found -eq 0 ]; then
        printf 'status %s, expected %s and "%s":\n%s\n' $status "$wanted" "$words" "$output"
        failed=1
    fi
}

root=$1
sh=$(command -v sh)
install="sudo apt-get install -y --no-install-recommends"
all="gcc libc6-dev cmake ninja-build pkgconf libjansson-dev libhwloc-dev"

machine
expect 2 "install what Debian calls: $all; then run make again" build
command_is apt-get 'echo "apt-get was run"; exit 1'
expect 2 "
sudo apt-get update && $install $all" build
command_is apt-cache 'exit 0'
expect 2 "
$install $all" build
expect 2 "$install $all libcmocka-dev clang" build test

command_is gcc 'exit 0'
command_is pkg-config 'exit 0'
command_is ninja 'exit 0'
command_is cmake 'echo cmake version 3.22.1'
expect 2 "missing: cmake 3.25 or newer" build
command_is cmake 'echo cmake version 3.25.1'
expect 0 "" build
command_is cmake 'echo cmake version 4.1.0'
expect 0 "" build
command_is pkg-config '[ "$2" != jansson ]'
expect 2 "$install libjansson-dev" build

# Root: an apt-get that installs nothing, and one that does.
command_is id 'echo 0'
command_is apt-get 'exit 1'
expect 2 "apt-get failed" build
command_is apt-get 'exit 0'
expect 2 "still missing after installing libjansson-dev" build
command_is apt-get "printf '#!/bin/sh\\nexit 0\\n' >'$scratch/bin/pkg-config'"
expect 0 "installing libjansson-dev" build
exit $failed
