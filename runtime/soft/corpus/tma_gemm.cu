// Target: compute_90a
// A warp-specialised matrix product for Hopper: a producer warp copies TMA boxes into a ring of
// stages, two consumer warpgroups multiply them (wgmma), and C leaves through shared memory as TMA
// boxes. In a cluster, two blocks share the tile of B: each copies half of it into the shared
// memory of both by multicast.
//
// The kernels after the first two have one mistake each. They are for the checks of the soft
// device; their results are not compared.
#include "tma_gemm.h"

enum {
    TILE_M = TMA_GEMM_TILE_M,
    TILE_N = TMA_GEMM_TILE_N,
    TILE_K = TMA_GEMM_TILE_K,
    STAGES = TMA_GEMM_STAGES,
    ROWS = TMA_GEMM_ROWS,
    FACTOR_BYTES = 128 * 128, // 128 rows of 64 elements of k
    GROUP = 128,              // threads of a warpgroup
    CONSUMERS = 2,
    STEP_K = 16 // of one wgmma
};

enum mistake {
    NONE,
    NO_WGMMA_FENCE,     // accumulators are set and used without wgmma.fence
    NO_PROXY_FENCE,     // C is written by threads and read by a copy
    NO_PRODUCT_WAIT,    // accumulators are read before the last products are there
    NO_FULL_WAIT,       // a stage is read before its boxes are there
    WRONG_PHASE,        // the consumers wait for the phase before
    WRONG_SWIZZLE,      // the descriptors say 64 bytes, the maps 128
    EARLY_RELEASE,      // a stage is given back before its products are there
    NO_CLUSTER_BARRIER, // boxes go to a block that may not have begun
    BOX_OUTSIDE,        // the last boxes begin after the end of k
    SMALL_COUNT,        // the barrier expects A's bytes alone
    LARGE_COUNT         // the barrier expects bytes that never come
};

// The layout of cuTensorMapEncodeTiled.
struct alignas(64) tensor_map {
    uint64_t opaque[16];
};

struct shared {
    alignas(1024) uint8_t a[STAGES][FACTOR_BYTES];
    alignas(1024) uint8_t b[STAGES][FACTOR_BYTES];
    alignas(1024) float c[TILE_M][TILE_N];
    alignas(8) uint64_t full[STAGES], empty[STAGES];
};
static_assert(sizeof(shared) + 1024 <= TMA_GEMM_SHARED, "the launch has room for it");

static __device__ uint32_t address_of(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// ---- barriers ----

static __device__ void barrier_init(uint64_t *barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}

static __device__ void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     address_of(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Arrives at the same barrier of the block of this rank in the cluster.
static __device__ void barrier_arrive(uint64_t *barrier, uint32_t rank) {
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
                 "}" ::"r"(address_of(barrier)),
                 "r"(rank)
                 : "memory");
}

static __device__ void barrier_wait(uint64_t *barrier, uint32_t parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "AGAIN:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra DONE;\n"
                 "bra AGAIN;\n"
                 "DONE:\n"
                 "}" ::"r"(address_of(barrier)),
                 "r"(parity)
                 : "memory");
}

static __device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

static __device__ uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// ---- copies ----

static __device__ void load_box(const tensor_map *map, void *to, uint64_t *barrier, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(address_of(to)),
                 "l"(map), "r"(address_of(barrier)), "r"(x), "r"(y)
                 : "memory");
}

static __device__ void load_box_of_both(const tensor_map *map, void *to, uint64_t *barrier, int x,
                                        int y) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(address_of(to)),
                 "l"(map), "r"(address_of(barrier)), "r"(x), "r"(y), "h"((uint16_t)3)
                 : "memory");
}

static __device__ void store_box(const tensor_map *map, const void *from, int x, int y) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
                 " [%0, {%2, %3}], [%1];" ::"l"(map),
                 "r"(address_of(from)), "r"(x), "r"(y)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;" ::
                     : "memory");
}

// ---- products ----

// K-major rows of 128 bytes, swizzled by 128; eight rows are 1024 bytes.
static __device__ uint64_t descriptor_of(const uint8_t *tile, uint64_t swizzle) {
    return (address_of(tile) & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | swizzle << 62;
}

#define EIGHT(d, i)                                                                                \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])

// d = d + A B, of 64 rows, 128 columns and 16 elements of k; without d where scale is 0.
static __device__ void multiply(float (&d)[64], uint64_t a, uint64_t b, int scale) {
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, adds, 1, 1, 0, 0;\n"
                 "}"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24), EIGHT(d, 32), EIGHT(d, 40),
                   EIGHT(d, 48), EIGHT(d, 56)
                 : "l"(a), "l"(b), "r"(scale)
                 : "memory");
}

// Keeps the compiler from moving uses of the accumulators across a wait.
static __device__ void hold(float (&d)[64]) {
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// ---- the two kinds of threads ----

struct place {
    int row, column, k_tiles; // of C's tile; boxes along k
};

template <int mistake, int blocks>
static __device__ __forceinline__ void produce(shared *s, const tensor_map *a, const tensor_map *b,
                                               struct place place) {
    uint32_t bytes = 2 * FACTOR_BYTES;
    if (mistake == SMALL_COUNT) bytes = FACTOR_BYTES;
    if (mistake == LARGE_COUNT) bytes = 3 * FACTOR_BYTES;
    uint32_t stage = 0, phase = 0;
#pragma unroll 1
    for (int i = 0; i < place.k_tiles; i++) {
        // A new barrier counts as past its phase 1.
        barrier_wait(&s->empty[stage], phase ^ 1);
        barrier_expect(&s->full[stage], bytes);
        int k = (mistake == BOX_OUTSIDE ? i + 1 : i) * TILE_K;
        load_box(a, s->a[stage], &s->full[stage], k, place.row);
        if (blocks == 1) {
            load_box(b, s->b[stage], &s->full[stage], k, place.column);
        } else {
            // The map's boxes have half of the rows.
            uint32_t half = cluster_rank() * (TILE_N / TMA_GEMM_PAIR);
            load_box_of_both(b, s->b[stage] + half * 128, &s->full[stage], k,
                             place.column + (int)half);
        }
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
}

// One thread of each warpgroup signals to the blocks that copy into the stage that it is free.
template <int blocks>
static __device__ __forceinline__ void release(shared *s, uint32_t stage) {
    uint32_t thread = threadIdx.x % GROUP;
    if (thread < blocks) barrier_arrive(&s->empty[stage], blocks == 1 ? 0 : thread);
}

template <int mistake, int blocks>
static __device__ __forceinline__ void consume(shared *s, uint32_t group, const tensor_map *c,
                                               struct place place) {
    float d[64];
    const uint64_t swizzle = mistake == WRONG_SWIZZLE ? 2 : 1;
    uint32_t stage = 0, phase = mistake == WRONG_PHASE, before = 0;
#pragma unroll 1
    for (int i = 0; i < place.k_tiles; i++) {
        if (mistake != NO_FULL_WAIT) barrier_wait(&s->full[stage], phase);
        if (mistake != NO_WGMMA_FENCE) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        uint64_t left = descriptor_of(s->a[stage] + group * ROWS * 128, swizzle);
        uint64_t right = descriptor_of(s->b[stage], swizzle);
#pragma unroll
        for (int step = 0; step < TILE_K / STEP_K; step++) {
            multiply(d, left, right, i > 0 || step > 0);
            left += STEP_K * 2 >> 4;
            right += STEP_K * 2 >> 4;
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The products of one stage run while the next is waited for.
        if (mistake == EARLY_RELEASE) {
            release<blocks>(s, stage);
        } else {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (i > 0) release<blocks>(s, before);
        }
        before = stage;
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    if (mistake != NO_PRODUCT_WAIT) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    hold(d);
    uint32_t thread = threadIdx.x % GROUP, row = thread / 32 * 16 + thread % 32 / 4;
    float(*tile)[TILE_N] = s->c + group * ROWS;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        float2 both = {d[i], d[i + 1]};
        uint32_t column = i / 4 * 8 + thread % 4 * 2;
        *reinterpret_cast<float2 *>(&tile[row + i % 4 / 2 * 8][column]) = both;
    }
    if (mistake != NO_PROXY_FENCE) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(GROUP) : "memory");
    if (thread == 0) store_box(c, tile, place.column, place.row + (int)(group * ROWS));
    if (mistake == NO_PRODUCT_WAIT) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

template <int mistake, int blocks>
static __device__ __forceinline__ void gemm(const tensor_map *a, const tensor_map *b,
                                            const tensor_map *c, int k_tiles) {
    extern __shared__ uint8_t room[];
    shared *s = reinterpret_cast<shared *>(room + (1024 - address_of(room) % 1024) % 1024);
    // Blocks of a cluster are one above the other.
    struct place place = {(int)blockIdx.x * TILE_M, (int)blockIdx.y * TILE_N, k_tiles};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(&s->full[i], 1);
            barrier_init(&s->empty[i], CONSUMERS * blocks);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (blocks == 1 || mistake == NO_CLUSTER_BARRIER) {
        __syncthreads();
    } else {
        cluster_sync();
    }
    if (threadIdx.x < GROUP) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) produce<mistake, blocks>(s, a, b, place);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume<mistake, blocks>(s, threadIdx.x / GROUP - 1, c, place);
    }
    // The other block may still arrive here, and its boxes come.
    if (blocks > 1) cluster_sync();
}

#define KERNEL(name, mistake)                                                                      \
    extern "C" __global__ void __launch_bounds__(TMA_GEMM_THREADS, 1)                              \
        name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,           \
             const __grid_constant__ tensor_map c, int k_tiles) {                                  \
        gemm<mistake, 1>(&a, &b, &c, k_tiles);                                                     \
    }

#define KERNEL_OF_PAIRS(name, mistake)                                                             \
    extern "C" __global__ void __cluster_dims__(TMA_GEMM_PAIR, 1, 1)                               \
        __launch_bounds__(TMA_GEMM_THREADS, 1)                                                     \
            name(const __grid_constant__ tensor_map a, const __grid_constant__ tensor_map b,       \
                 const __grid_constant__ tensor_map c, int k_tiles) {                              \
        gemm<mistake, TMA_GEMM_PAIR>(&a, &b, &c, k_tiles);                                         \
    }

KERNEL(tma_gemm, NONE)
KERNEL_OF_PAIRS(tma_gemm_pairs, NONE)
KERNEL(no_wgmma_fence, NO_WGMMA_FENCE)
KERNEL(no_proxy_fence, NO_PROXY_FENCE)
KERNEL(no_product_wait, NO_PRODUCT_WAIT)
KERNEL(no_full_wait, NO_FULL_WAIT)
KERNEL(wrong_phase, WRONG_PHASE)
KERNEL(wrong_swizzle, WRONG_SWIZZLE)
KERNEL(early_release, EARLY_RELEASE)
KERNEL_OF_PAIRS(no_cluster_barrier, NO_CLUSTER_BARRIER)
KERNEL(box_outside, BOX_OUTSIDE)
KERNEL(small_count, SMALL_COUNT)
KERNEL(large_count, LARGE_COUNT)
