/* cuda.cu: stream_read for NVIDIA GPUs. */
#include "kernel/twin/hand_in.cuh"
#include "kernel/twin/read.cuh"

extern "C" __global__
__launch_bounds__(CB_THREADS) void stream_read(const uint4 *src, unsigned *checksum,
                                               unsigned *partial, long long bytes, long long work)
{
    long long wanted = (unsigned long long)(bytes * work) / 1000 / 64 * 64;
    hand_in(read_pass(src, slice_of(wanted)), checksum, partial);
}
