/* fault_read: reads a set as twin_read is meant to, with one fault seeded. `coldbench selftest`
 * runs it to see that each check finds the fault it is for; nothing else should.
 */
#include "fault_read.h"
#include "kernel/twin/launch.h"
#include "kernel/twin/read_define.h"

#ifndef CB_X86
#define CB_X86 0
#endif

static const cb_dim DIMS[] = {
    {"bytes", "size of the set, in whole 64-byte lines", CB__LINE, CB__BYTES_MAX},
};

static const char *const FAULTS[] = {"folded", "underdriven", "shrunk", "misaligned", NULL};

static const cb_choice PARAMS[] = {
    CB__READ_PASSES,
    {.name = "fault",
     .help = "folded: one pass, whatever passes says; underdriven: each load waits for the one "
             "before; shrunk: half of the set; misaligned: four bytes off the lines",
     .words = FAULTS,
     .preset = FAULT_FOLDED},
};

static const int64_t SWITCH[] = {0, 1};
static const cb_choice CUDA_TUNABLES[] = {
    CB__LAUNCH_CHOICES(32, 512, 8),
    CB__LAUNCH_CHOICE("l1", "as of twin_read", SWITCH, 0),
};

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    return cb__launch_geometry((uint64_t)problem->shape[0], problem->params[FAULT_PASSES], tunables,
                               processors, out);
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "fault_read", .least = 75, .geometry = cuda_geometry};

static const cb_impl IMPLS[] = {
    {.name = "cuda",
     .help = "16-byte loads; underdriven: one warp a block; misaligned: 4-byte loads",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_TUNABLES,
     .ntunables = CB__LAUNCH_TUNABLES + 1,
     .device = &CUDA},
#if CB_X86
    {.name = "avx512", .help = "512-bit loads", .isa = CB_ISA_AVX512, .run = cb__fault_read_avx512},
    {.name = "avx2",
     .help = "256-bit loads in pairs",
     .isa = CB_ISA_AVX2,
     .run = cb__fault_read_avx2},
#endif
    {.name = "portable", .help = "16-byte vectors in C", .run = cb__fault_read_portable},
};

static const cb_kernel KERNEL = {
    .name = "fault_read",
    .summary = "reads a set wrongly, a fault seeded for coldbench selftest",
    .formula = CB__READ_FORMULA,
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 2,
    .operands = CB__READ_TABLE,
    .noperands = READ_OPERANDS,
    .bytes = cb__read_bytes,
    .cost = cb__read_cost,
    .fill = cb__read_fill,
    .reference = cb__read_reference,
    .impls = IMPLS,
    .nimpls = (int)(sizeof IMPLS / sizeof IMPLS[0]),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&KERNEL};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
