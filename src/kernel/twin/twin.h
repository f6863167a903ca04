/* twin.h: what kernel.c and the cpu_*.c files of the twins share. */
#ifndef COLDBENCH_KERNEL_TWIN_TWIN_H
#define COLDBENCH_KERNEL_TWIN_TWIN_H

#include "coldbench/kernel.h"

/* The operands, in the order of the tables in kernel.c. */
enum { READ_SRC, READ_CHECKSUM, READ_PARTIAL, READ_OPERANDS };
enum { WRITE_SEED, WRITE_DST, WRITE_OPERANDS };
enum { COPY_SRC, COPY_DST, COPY_OPERANDS };

/* The parameters of twin_read likewise. */
enum { READ_PASSES, READ_SLICES };

/* The tunables likewise; the portable code has no non-temporal stores. */
enum { READ_STREAMS };
enum { WRITE_NONTEMPORAL };
enum { COPY_STREAMS, COPY_NONTEMPORAL };

int cb__twin_read_avx512(const cb_launch *launch);
int cb__twin_write_avx512(const cb_launch *launch);
int cb__twin_copy_avx512(const cb_launch *launch);
int cb__twin_read_avx2(const cb_launch *launch);
int cb__twin_write_avx2(const cb_launch *launch);
int cb__twin_copy_avx2(const cb_launch *launch);
int cb__twin_read_portable(const cb_launch *launch);
int cb__twin_write_portable(const cb_launch *launch);
int cb__twin_copy_portable(const cb_launch *launch);

#endif
