#!/bin/sh
# need.sh GROUP...: makes sure that what a group (build, test, format) needs is on this machine. It looks
# for the thing itself, not for a package. What is missing is installed when root; otherwise the line
# that installs it is shown and, at a terminal, offered. Status: 0 all there, 2 something is missing.
set -u
export LC_ALL=C

# group, kind, thing, package of Debian and Ubuntu
table='
build  command gcc        gcc
build  header  stdio.h    libc6-dev
build  cmake   3.25       cmake
build  command ninja      ninja-build
build  command pkg-config pkgconf
build  module  jansson    libjansson-dev
build  module  hwloc      libhwloc-dev
test   module  cmocka     libcmocka-dev
test   command clang      clang
test   file    /usr/share/i18n/locales/de_DE locales
format command clang-format clang-format
'

say() {
    printf 'coldbench: %s\n' "$*" >&2
}

# has_version FOUND LEAST: compares MAJOR.MINOR
has_version() {
    found_major=${1%%.*}
    found_rest=${1#*.}
    found_minor=${found_rest%%.*}
    [ "$found_major" -gt "${2%%.*}" ] ||
        { [ "$found_major" -eq "${2%%.*}" ] && [ "$found_minor" -ge "${2#*.}" ]; }
}

has() {
    case $1 in
    command) command -v "$2" >/dev/null 2>&1 ;;
    header) printf '#include <%s>\n' "$2" | gcc -fsyntax-only -x c - >/dev/null 2>&1 ;;
    file) [ -e "$2" ] ;;
    module) pkg-config --exists "$2" 2>/dev/null ;;
    cmake)
        found=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
        [ -n "$found" ] && has_version "$found" "$2"
        ;;
    esac
}

# Sets things (to name) and packages (to install) for what is missing of the groups.
look() {
    things=
    packages=
    while read -r group kind thing package; do
        case " $groups " in *" $group "*) ;; *) continue ;; esac
        has "$kind" "$thing" && continue
        case $kind in
        cmake) things="$things, cmake $thing or newer" ;;
        header) things="$things, <$thing>" ;;
        module) things="$things, library $thing" ;;
        *) things="$things, $thing" ;;
        esac
        packages="$packages $package"
    done <<EOF
$(printf '%s\n' "$table" | sed '/^$/d')
EOF
    things=${things#, }
    packages=${packages# }
}

# apt_get ARGUMENT...: as root (sudo or nothing), asking nothing, waiting for another apt-get to end.
apt_get() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 "$@" >>"$log" 2>&1
}

# The lists are fetched when they do not know a package, or are so old that its file is gone.
install() {
    log=build/apt.log
    mkdir -p build
    : >"$log"
    say "installing $packages"
    # shellcheck disable=SC2086 # one word a package
    set -- install -y --no-install-recommends $packages
    [ -z "$update" ] && apt_get "$@" && return
    apt_get update && apt_get "$@" && return
    tail -n 15 "$log" >&2
    say "apt-get failed (all of it: $log); is the network there? The line is: $line"
    exit 2
}

groups=$*
look
[ -z "$things" ] && exit 0

say "missing: $things"
if ! command -v apt-get >/dev/null 2>&1; then
    say "install what Debian calls: $packages; then run make again"
    exit 2
fi
update=
# shellcheck disable=SC2086 # one word a package
apt-cache show $packages >/dev/null 2>&1 || update="sudo apt-get update && "
line="${update}sudo apt-get install -y --no-install-recommends $packages"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    say "this installs it:"
    printf '%s\n' "$line" >&2
    sudo=sudo
    [ -t 0 ] && [ -t 2 ] && command -v sudo >/dev/null 2>&1 || exit 2
    printf 'Run it now? [y/N] ' >&2
    read -r answer || exit 2
    case $answer in [yY]*) ;; *) exit 2 ;; esac
fi
install

look
[ -z "$things" ] && exit 0
say "still missing after installing $packages: $things; this system's packages may be too old"
exit 2
