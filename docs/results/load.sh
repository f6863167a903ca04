# load.sh: read in by the scripts beside it: $work, a folder that goes when they end, and --load as the
# first argument: one generator a core while they run, that computes and streams by turns. $load: which.
work=$(mktemp -d)
generators=
stop() {
    for pid in $generators; do kill -- "-$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM

load=idle
if [ "$1" = --load ]; then
    load=loaded
    shift
    for core in $(seq "$(nproc)"); do
        setsid sh -c 'while :; do
            awk "BEGIN { for (i = 0; i < 3e6; i++) x += i * i }"
            dd if=/dev/zero of=/dev/null bs=32M count=30 2>/dev/null
        done' &
        generators="$generators $!"
    done
    sleep 1
fi
