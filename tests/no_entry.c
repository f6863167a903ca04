/* no_entry.c: what a program calls that was built with -Dcb_worker_entry=no_entry: nothing enters.
 */
#include "coldbench/worker.h"

int cb_worker_entry(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return -1;
}
