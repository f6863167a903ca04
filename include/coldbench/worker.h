/* worker.h: lets a program that embeds coldbench be its own measuring process.
 *
 * Everything is measured in a child process that runs the same program again. The first lines of
 * its main are
 *
 *     int status = cb_worker_entry(argc, argv);
 *     if (status >= 0)
 *         return status;
 *
 * In a worker the call serves requests on standard input until it is closed and gives the exit
 * status; in every other process it returns -1 at once. A copy of the program that is one round of
 * a comparison of its functions (coldbench/compare.h) gets -1 too, goes on to that comparison, and
 * ends there; its standard input and output are then /dev/null. Call it first: what main does
 * before, it does in every worker. */
#ifndef COLDBENCH_WORKER_H
#define COLDBENCH_WORKER_H

#ifdef __cplusplus
extern "C" {
#endif

int cb_worker_entry(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
