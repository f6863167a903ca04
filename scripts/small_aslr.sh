#!/bin/sh
# small_aslr.sh COMMAND...: runs a program built with the thread sanitizer. The run-time of gcc 12 to 13
# and clang 14 to 17 stops with "unexpected memory mapping" where the kernel randomises more than 28 bits
# of an address (Ubuntu 24.04 sets 32), so randomisation is switched off for the program there. Elsewhere
# it is left alone: many containers forbid the call that setarch makes.
bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)
if [ "$bits" -gt 28 ]; then
    exec setarch -R "$@"
fi
exec "$@"
