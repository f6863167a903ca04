/* mma.cuh: peak_mma, tiles of 64 x 256 results from tensor cores, a tile a warpgroup (four warps).
 *
 * Whatever the type of the inputs, a step of the tensor cores takes 32 bytes of a row, and a thread
 * holds the same results of it. a and b lie in shared memory in pieces of 8 rows x 16 bytes, first
 * by row: what warpgroup products ask for without a swizzle, and free of bank conflicts for both
 * kinds of instructions. Warpgroup products need the architecture sm_90a; without them an H200
 * reached 624, 320 and 1200 TFLOP/s (bf16, tf32, s8) instead of 916, 471 and 1699 (November 2026).
 */
enum {
    TILE_M = 64,
    TILE_N = 256,
    DEPTH = 32, /* columns of a and b */
    REPEATS = 512,
    WARPGROUP = 128,
    WARPGROUPS = 2, /* of a block: one waits while the other multiplies */
    PIECE = 128,
    STEP_BYTES = 32
};

#if CB_INPUTS == 2
typedef int sum_type;
#define SUM "r"
#define TYPES "s32.s8.s8"
#define MMA_TYPES TYPES ".s32"
#else
typedef float sum_type;
#define SUM "f"
#if CB_INPUTS == 0
#define TYPES "f32.bf16.bf16"
#else
#define TYPES "f32.tf32.tf32"
#endif
#define MMA_TYPES TYPES ".f32"
#endif
#if CB_INPUTS == 0
#define ELEMENT_BYTES 2
#define DEPTH_OF_STEP "k16"
#elif CB_INPUTS == 1
#define ELEMENT_BYTES 4
#define DEPTH_OF_STEP "k8"
#else
#define ELEMENT_BYTES 1
#define DEPTH_OF_STEP "k32"
#endif
enum { ROW_STEPS = DEPTH * ELEMENT_BYTES / STEP_BYTES };

struct __align__(128) inputs
{
    char a[TILE_M * DEPTH * ELEMENT_BYTES];
    char b[TILE_N * DEPTH * ELEMENT_BYTES];
};

/* Where byte `byte` of row `row` lies in a matrix of `rows` rows. */
__device__ __forceinline__ int place(int rows, int row, int byte)
{
    return (byte / 16 * (rows / 8) + row / 8) * PIECE + row % 8 * 16 + byte % 16;
}

/* -127 to 127 are exact in every type; bf16 and tf32 are the upper bits of an f32. */
__device__ __forceinline__ void convert(char *to, const signed char *from, int rows)
{
    for (int i = threadIdx.x; i < rows * DEPTH; i += WARPGROUPS * WARPGROUP) {
        int at = place(rows, i / DEPTH, i % DEPTH * ELEMENT_BYTES);
#if CB_INPUTS == 0
        *(unsigned short *)(to + at) = (unsigned short)(__float_as_uint((float)from[i]) >> 16);
#elif CB_INPUTS == 1
        *(float *)(to + at) = (float)from[i];
#else
        to[at] = from[i];
#endif
    }
}

/* Results that a thread holds of columns [8*i, 8*i + 8) are 4*i to 4*i + 3: two neighbours of its
 * row, and two of the row 8 below. */
__device__ __forceinline__ void put(sum_type *tile, const sum_type *sums, int first_column,
                                    int count)
{
    int lane = threadIdx.x % 32, row = threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
    sum_type *to = tile + row * TILE_N + first_column + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < count; i += 4) {
        to[i * 2] = sums[i];
        to[i * 2 + 1] = sums[i + 1];
        to[8 * TILE_N + i * 2] = sums[i + 2];
        to[8 * TILE_N + i * 2 + 1] = sums[i + 3];
    }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

enum { SUMS = TILE_M * TILE_N / WARPGROUP, BATCH = 16 };

/* Where a matrix lies: 16-byte units of its address, of the distance between pieces along a row,
 * and of that between pieces down the rows. */
__device__ __forceinline__ unsigned long long descriptor(const char *matrix, int rows)
{
    unsigned long long at = (unsigned long long)__cvta_generic_to_shared(matrix);
    return at >> 4 | (unsigned long long)rows << 16 | (unsigned long long)(PIECE >> 4) << 32;
}

#if CB_INPUTS == 0
#define MODES "p, 1, 1, 0, 0"
#elif CB_INPUTS == 1
#define MODES "p, 1, 1"
#else
#define MODES "p"
#endif
#define REGISTERS                                                                                  \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127"
#define HOLD1(i) "+" SUM(sums[i])
#define HOLD4(i) HOLD1(i), HOLD1(i + 1), HOLD1(i + 2), HOLD1(i + 3)
#define HOLD16(i) HOLD4(i), HOLD4(i + 4), HOLD4(i + 8), HOLD4(i + 12)
#define HOLD64(i) HOLD16(i), HOLD16(i + 16), HOLD16(i + 32), HOLD16(i + 48)

__device__ __forceinline__ void multiply_step(sum_type (&sums)[SUMS], unsigned long long a,
                                              unsigned long long b)
{
    asm volatile("{ .reg .pred p; setp.eq.u32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256" DEPTH_OF_STEP "." TYPES "\n"
                 "{" REGISTERS "}, %128, %129, " MODES ";\n}"
                 : HOLD64(0), HOLD64(64)
                 : "l"(a), "l"(b));
}

__device__ __forceinline__ void multiply_tile(const inputs *in, sum_type *tile, sum_type start)
{
    sum_type sums[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] = start;
    unsigned long long a = descriptor(in->a, TILE_M), b = descriptor(in->b, TILE_N);
#pragma unroll 1
    for (int batch = 0; batch < REPEATS * ROW_STEPS / BATCH; batch++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < BATCH; i++)
            multiply_step(sums, a + i % ROW_STEPS * 2 * TILE_M, b + i % ROW_STEPS * 2 * TILE_N);
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::
                         : "memory");
    }
    put(tile, sums, 0, SUMS);
}

#else

/* 64 columns at a time, all of whose inputs stay in registers. */
enum { PART = 8, SUMS = PART * 4 };

__device__ __forceinline__ void multiply_step(sum_type *sums, const unsigned *a, const unsigned *b)
{
    asm volatile("mma.sync.aligned.m16n8" DEPTH_OF_STEP ".row.col." MMA_TYPES
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+" SUM(sums[0]), "+" SUM(sums[1]), "+" SUM(sums[2]), "+" SUM(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply_part(const inputs *in, sum_type *tile, sum_type start,
                                              int column)
{
    unsigned a[ROW_STEPS][4], b[ROW_STEPS][PART][2];
    int lane = threadIdx.x % 32, row = threadIdx.x % WARPGROUP / 32 * 16 + lane / 4;
#pragma unroll
    for (int step = 0; step < ROW_STEPS; step++) {
        int byte = step * STEP_BYTES + lane % 4 * 4;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[step][i] =
                *(const unsigned *)(in->a + place(TILE_M, row + i % 2 * 8, byte + i / 2 * 16));
#pragma unroll
        for (int i = 0; i < PART * 2; i++)
            b[step][i / 2][i % 2] =
                *(const unsigned *)(in->b + place(TILE_N, column + i / 2 * 8 + lane / 4,
                                                  byte + i % 2 * 16));
    }
    sum_type sums[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] = start;
#pragma unroll 2
    for (int repeat = 0; repeat < REPEATS; repeat++)
#pragma unroll
        for (int step = 0; step < ROW_STEPS; step++)
#pragma unroll
            for (int i = 0; i < PART; i++)
                multiply_step(sums + i * 4, a[step], b[step][i]);
    put(tile, sums, column, SUMS);
}

__device__ __forceinline__ void multiply_tile(const inputs *in, sum_type *tile, sum_type start)
{
#pragma unroll 1
    for (int column = 0; column < TILE_N; column += PART * 8)
        multiply_part(in, tile, start, column);
}

#endif

extern "C" __global__ __launch_bounds__(WARPGROUPS *WARPGROUP) void peak_mma(
    const signed char *a, const signed char *b, float *result_f32, int *result_i32, long long tiles)
{
    __shared__ inputs in;
    convert(in.a, a, TILE_M);
    convert(in.b, b, TILE_N);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
#if CB_INPUTS == 2
    sum_type *result = result_i32;
#else
    sum_type *result = result_f32;
#endif
    for (long long t = blockIdx.x * WARPGROUPS + threadIdx.x / WARPGROUP; t < tiles;
         t += gridDim.x * WARPGROUPS)
        multiply_tile(&in, result + t * (TILE_M * TILE_N), (sum_type)(t % 256));
}
