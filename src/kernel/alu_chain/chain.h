/* chain.h: what kernel.c and the cpu_*.c files of alu_chain share. */
#ifndef COLDBENCH_KERNEL_ALU_CHAIN_H
#define COLDBENCH_KERNEL_ALU_CHAIN_H

#include "coldbench/kernel.h"

enum { START, RESULT, OPERANDS };

int cb__alu_chain_avx2(const cb_launch *launch);
int cb__alu_chain_portable(const cb_launch *launch);

#endif
