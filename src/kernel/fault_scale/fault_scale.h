/* fault_scale.h: what kernel.c and cpu_portable.c of fault_scale share. */
#ifndef COLDBENCH_KERNEL_FAULT_SCALE_H
#define COLDBENCH_KERNEL_FAULT_SCALE_H

#include "coldbench/kernel.h"

enum { X, FACTOR, Y, OPERANDS };

/* Name, a GPU's geometry, and what goes wrong. */
#define FAULT_SCALE_TABLE(F)                                                                       \
    F(clean, whole, "nothing goes wrong")                                                          \
    F(unwritten, whole, "the last eighth is never written, and of few elements the last")          \
    F(short_grid, half, "half of the workers, or blocks, that are needed")                         \
    F(beyond, whole, "one element is written past the end")                                        \
    F(before, whole, "one element is written before the start")                                    \
    F(wrong, whole, "the last element is off by a hundredth")                                      \
    F(imprecise, whole, "products are rounded to bf16")                                            \
    F(nan, whole, "the last element is no number")                                                 \
    F(edits, whole, "the last element of x is changed")                                            \
    F(fails, whole, "the launch fails")

#define FAULT_SCALE_DECLARE(name, geometry, help)                                                  \
    int cb__fault_scale_##name(const cb_launch *launch);
FAULT_SCALE_TABLE(FAULT_SCALE_DECLARE)

#endif
