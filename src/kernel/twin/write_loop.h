/* write_loop.h: writing and copying lines. Include one lines_*.h first.
 *
 * `streams` as in read_loop.h. It, `store` and whether `from` is NULL are constants where these are
 * inlined; without `from` every line becomes `value`.
 */
#ifndef COLDBENCH_KERNEL_TWIN_WRITE_LOOP_H
#define COLDBENCH_KERNEL_TWIN_WRITE_LOOP_H

#include "kernel/twin/share.h"

enum { CB__MOVE_UNIT = 8 };

typedef void line_store_fn(char *p, line_value value);

LINE_INLINE void cb__move_lines(char *to, const char *from, line_value value, size_t lines,
                                line_store_fn *store)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < lines * CB__LINE; i += CB__LINE)
        store(to + i, from ? line_load(from + i) : value);
}

LINE_INLINE void cb__move_pass(char *to, const char *from, line_value value, size_t lines,
                               size_t streams, line_store_fn *store)
{
    const size_t each = lines / streams;
    size_t done = 0;
    for (; done + CB__MOVE_UNIT <= each; done += CB__MOVE_UNIT) {
#pragma GCC unroll 2
        for (size_t k = 0; k < streams; k++) {
            size_t at = (k * each + done) * CB__LINE;
            cb__move_lines(to + at, from ? from + at : NULL, value, CB__MOVE_UNIT, store);
        }
        __asm__ volatile("" ::: "memory"); /* no compiler makes this loop a call of memcpy */
    }
    for (size_t k = 0; k < streams; k++) {
        size_t at = (k * each + done) * CB__LINE;
        cb__move_lines(to + at, from ? from + at : NULL, value, each - done, store);
    }
    size_t at = each * streams * CB__LINE;
    cb__move_lines(to + at, from ? from + at : NULL, value, lines - each * streams, store);
}

LINE_INLINE void cb__move_passes(char *to, const char *from, line_value value, size_t lines,
                                 int64_t passes, size_t streams, line_store_fn *store)
{
    for (int64_t pass = 0; pass < passes; pass++) {
        __asm__ volatile("" ::: "memory"); /* no pass is dropped for being overwritten */
        cb__move_pass(to, from, value, lines, streams, store);
    }
}

#endif
