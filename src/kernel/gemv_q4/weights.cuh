/* weights.cuh: a warp's walk over the matrix, and its steps of weights on their way: to registers,
 * or with CB_RING to shared memory. Part of cuda.cu. */
#ifndef COLDBENCH_KERNEL_GEMV_Q4_WEIGHTS_CUH
#define COLDBENCH_KERNEL_GEMV_Q4_WEIGHTS_CUH

#ifndef CB_RING
static __device__ __forceinline__ void stream16(u32 *v, const char *p)
{
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "l"(p));
}

#if TENSOR && GROUPS == 4
static __device__ __forceinline__ void stream8(u32 *v, const char *p)
{
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1])
                 : "l"(p));
}
#endif
#endif

/* ---- the walk ---- */

/* The first of this warp's steps in the window from step `from` of a tile on; past the end if it
 * has none. */
static __device__ __forceinline__ cursor cursor_at(const job &j, int from)
{
    int turns = (j.steps - from - j.warp + CB_WARPS - 1) / CB_WARPS;
    turns = turns < j.turns ? turns : j.turns;
    cursor c = {turns > 0 ? (int)blockIdx.x * TILES * j.steps + from + j.warp : j.end, 0, turns};
    return c;
}

static __device__ __forceinline__ void move(const job &j, cursor &c)
{
    c.index += CB_WARPS;
    if (++c.turn == c.turns) {
        c.turn = 0;
        c.index += j.stride - c.turns * CB_WARPS;
    }
}

#ifndef CB_RING
static __device__ __forceinline__ void fetch_tile(const char *w, const char *s, u32 into[2][2][4],
                                                  u32 *scales)
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < 4; i++)
        stream16(into[i / 2][i % 2], w + (i * LANES + lane) * 16);
#if !TENSOR || GROUPS == 1
    stream16(scales, s + lane / 4 * 32);
    stream16(scales + 4, s + lane / 4 * 32 + 16);
#elif GROUPS == 2
    stream16(scales, s + lane / 2 * 16);
#else
    stream8(scales, s + lane * 8);
#endif
}

static __device__ __forceinline__ void fetch(const job &j, const cursor &c, step &out)
{
    if (c.index >= j.end)
        return;
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        int index = c.index + r * j.steps;
        if (r > 0 && index >= j.end) /* no second tile: the first again */
            index = c.index;
        fetch_tile(j.w + (long long)index * STEP_W_BYTES,
                   j.w_scale + (long long)index * STEP_SCALE_BYTES, out.w[r], out.s[r]);
    }
}

#else /* through shared memory, by the engine that copies whole steps */

#if __CUDA_ARCH__ < 900
#error "CB_RING needs compute capability 9.0"
#endif

#define RING_TILE (STEP_W_BYTES + STEP_SCALE_BYTES)
#define RING_STAGE (TILES * RING_TILE)

/* A warp's stages of weights on their way, and one barrier each that counts bytes. */
struct ring {
    u32 stages, barriers; /* addresses in shared memory, as are these: */
    u32 weights, scales;  /* what this lane reads of the first stage */
    int next;             /* stage that is read next */
    u32 phase;
};

/* Where in a tile's scales those of this lane are: SCALE_WORDS words. */
static __device__ __forceinline__ int place_of_scales(void)
{
    const int lane = threadIdx.x % LANES;
    return GROUPS == 1 ? lane / 4 * 32 : GROUPS == 2 ? lane / 2 * 16 : lane * 8;
}

static __device__ __forceinline__ void ring_init(ring &r, char *stages, char *barriers)
{
    r.stages = shared_address(stages);
    r.barriers = shared_address(barriers);
    r.weights = kept(r.stages + threadIdx.x % LANES * 16);
    r.scales = kept(r.stages + STEP_W_BYTES + place_of_scales());
    r.next = 0;
    r.phase = 0;
    if (threadIdx.x % LANES < CB_RING)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                     :
                     : "r"(r.barriers + threadIdx.x % LANES * 8)
                     : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    __syncwarp();
}

static __device__ __forceinline__ void copy(u32 to, const char *from, int bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :
                 : "r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* One lane of the warp, in a way that leaves the addresses uniform for the compiler. */
static __device__ __forceinline__ bool elected(void)
{
    u32 yes;
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, chosen;\n"
                 "}"
                 : "=r"(yes));
    return yes != 0;
}

/* Asks for a step into a stage that no lane reads any more: after released(). */
static __device__ __forceinline__ void fetch(const job &j, const cursor &c, const ring &ring,
                                             int stage)
{
    if (c.index >= j.end || !elected())
        return;
    const u32 barrier = ring.barriers + stage * 8;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(barrier), "r"(RING_STAGE)
                 : "memory");
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        int index = c.index + r * j.steps;
        if (r > 0 && index >= j.end) /* no second tile: the first again */
            index = c.index;
        const u32 to = ring.stages + stage * RING_STAGE + r * RING_TILE;
        copy(to, j.w + (long long)index * STEP_W_BYTES, STEP_W_BYTES, barrier);
        copy(to + STEP_W_BYTES, j.w_scale + (long long)index * STEP_SCALE_BYTES, STEP_SCALE_BYTES,
             barrier);
    }
}

static __device__ __forceinline__ void read16(u32 *v, u32 at)
{
    const uint4 q = shared16(at);
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
}

/* Waits for the next stage and takes it to registers. */
static __device__ __forceinline__ void take(ring &ring, step &out)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}"
                 :
                 : "r"(ring.barriers + ring.next * 8), "r"(ring.phase)
                 : "memory");
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        const u32 tile = ring.next * RING_STAGE + r * RING_TILE;
#pragma unroll
        for (int i = 0; i < 4; i++)
            read16(out.w[r][i / 2][i % 2], ring.weights + tile + i * LANES * 16);
#if SCALE_WORDS == 2
        const uint2 q = shared8(ring.scales + tile);
        out.s[r][0] = q.x, out.s[r][1] = q.y;
#else
#pragma unroll
        for (int i = 0; i < SCALE_WORDS; i += 4)
            read16(out.s[r] + i, ring.scales + tile + i * 4);
#endif
    }
}

/* Orders the copy that fills a stage again behind all reads of it, for which it waits. */
static __device__ __forceinline__ void released(void)
{
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncwarp();
}

static __device__ __forceinline__ void turn_ring(ring &ring)
{
    if (++ring.next == CB_RING) {
        ring.next = 0;
        ring.phase ^= 1;
    }
}
#endif

#endif
