// What kernels for compute capability 9.0 (compute_90a) share beside bulk.cuh: boxes copied by
// tensor maps, clusters, and products by a warpgroup. Each function is the PTX instruction of its
// name. Source: PTX ISA 8.0, cp.async.bulk.tensor, mbarrier, wgmma.mma_async, setmaxnreg.
#pragma once

#include "bulk.cuh"

enum {
    WARPGROUP = 128, // threads
    BOX_ROW = 128,   // bytes of a row of a box, which are swizzled
    BOX_ROWS = 64,   // of a box of MN-major elements, and of one of C
    BOX = BOX_ROW * BOX_ROWS
};

// What cuTensorMapEncodeTiled makes.
struct alignas(64) tensor_map {
    uint64_t opaque[16];
};

#if __CUDA_ARCH__ >= 900
// ---- clusters ----

__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster. Orders shared memory.
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

// Loads from the same place of the shared memory of the block of this rank.
__device__ inline float4 load_of_block(const float *place, uint32_t rank) {
    float4 value;
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(shared_address(place)), "r"(rank)
                 : "memory");
    return value;
}

// ---- boxes ----

__device__ inline void prefetch_map(const tensor_map *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Copies a box to shared memory and counts its bytes on the barrier. What is outside of the tensor
// becomes 0.
__device__ inline void load_box(const tensor_map *map, void *to, uint64_t *barrier, int x, int y,
                                int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z)
                 : "memory");
}

// The same of four dimensions.
__device__ inline void load_box(const tensor_map *map, void *to, uint64_t *barrier, int x, int y,
                                int z, int w) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

// Copies a box from shared memory, in a group of its own. What is outside of the tensor is left
// out, except that rows are written in whole units of 16 bytes: a row of the tensor must be a
// multiple of that.
__device__ inline void store_box(const tensor_map *map, const void *from, int x, int y, int z,
                                 int w) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group"
                 " [%0, {%2, %3, %4, %5}], [%1];\n"
                 "cp.async.bulk.commit_group;" ::"l"(map),
                 "r"(shared_address(from)), "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

// Waits until all but the latest N groups of this thread have been read from shared memory.
template <int N> __device__ inline void wait_boxes_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// What threads wrote to shared memory before it is seen by copies that are issued after it.
__device__ inline void fence_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- warpgroups ----

template <int REGISTERS> __device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS> __device__ inline void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// A barrier of `threads` threads; 0 is __syncthreads.
__device__ inline void named_barrier(uint32_t id, uint32_t threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Arrives at it without waiting.
__device__ inline void named_barrier_arrive(uint32_t id, uint32_t threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// A matrix in shared memory as a factor of wgmma, swizzled by 128 bytes.
// K-major: rows of 128 bytes, which are 64 steps; eight of them are 1024 bytes.
// MN-major: one box of 64 elements along M or N and STEPS steps after the other; eight steps are
// 1024 bytes.
template <bool K_MAJOR, int STEPS = 64> __device__ inline uint64_t factor_of(const uint8_t *tile) {
    const uint64_t leading = K_MAJOR ? 16 : STEPS * BOX_ROW, stride = 1024, swizzle_128 = 1;
    return (shared_address(tile) & 0x3ffff) >> 4 | leading >> 4 << 16 | stride >> 4 << 32 |
           swizzle_128 << 62;
}
// What is added to it for the next 32 bytes of steps (K-major), or 16 steps.
template <bool K_MAJOR> __device__ constexpr uint64_t factor_step() {
    return (K_MAJOR ? 32 : 16 * BOX_ROW) >> 4;
}

__device__ inline void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> __device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler from using accumulators before what stands in front.
template <int N> __device__ inline void hold(float (&sum)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

#define HOPPER_8(d, i)                                                                             \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_32(d, i) HOPPER_8(d, i), HOPPER_8(d, i + 8), HOPPER_8(d, i + 16), HOPPER_8(d, i + 24)

#define HOPPER_SUMS_32                                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, "                                                             \
    "%8, %9, %10, %11, %12, %13, %14, %15, "                                                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, "                                                     \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define HOPPER_SUMS_64                                                                             \
    HOPPER_SUMS_32 ", "                                                                            \
                   "%32, %33, %34, %35, %36, %37, %38, %39, "                                      \
                   "%40, %41, %42, %43, %44, %45, %46, %47, "                                      \
                   "%48, %49, %50, %51, %52, %53, %54, %55, "                                      \
                   "%56, %57, %58, %59, %60, %61, %62, %63"
#define HOPPER_SUMS_128                                                                            \
    HOPPER_SUMS_64 ", "                                                                            \
                   "%64, %65, %66, %67, %68, %69, %70, %71, "                                      \
                   "%72, %73, %74, %75, %76, %77, %78, %79, "                                      \
                   "%80, %81, %82, %83, %84, %85, %86, %87, "                                      \
                   "%88, %89, %90, %91, %92, %93, %94, %95, "                                      \
                   "%96, %97, %98, %99, %100, %101, %102, %103, "                                  \
                   "%104, %105, %106, %107, %108, %109, %110, %111, "                              \
                   "%112, %113, %114, %115, %116, %117, %118, %119, "                              \
                   "%120, %121, %122, %123, %124, %125, %126, %127"

// product<T, N>::add: sum = sum + A B, of 64 rows, N columns and 32 bytes of steps; without sum
// where adds is 0. The sums lie as those of mma.m16n8: a warp has 16 rows, sum[4 i] to [4 i + 3]
// are of columns 8 i to 8 i + 7. A lies in shared memory, or for add_part in registers, as that of
// mma.m16n8k16.
template <typename T, int N> struct product;
#define HOPPER_PRODUCT(T, type, N, sums, all, o0, o1, o2, o3, o4, o5)                              \
    template <> struct product<T, N> {                                                             \
        template <bool A_K_MAJOR, bool B_K_MAJOR>                                                  \
        static __device__ inline void add(float (&sum)[N / 2], uint64_t a, uint64_t b, int adds) { \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, " o2 ", 0;\n"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" sums \
                         "}, " o0 ", " o1 ", adds, 1, 1, " o3 ", " o4 ";\n}"                       \
                         : all                                                                     \
                         : "l"(a), "l"(b), "r"(adds), "n"(!A_K_MAJOR), "n"(!B_K_MAJOR)             \
                         : "memory");                                                              \
        }                                                                                          \
        template <bool B_K_MAJOR>                                                                  \
        static __device__ inline void add_part(float (&sum)[N / 2], const uint32_t *a,             \
                                               uint64_t b) {                                       \
            asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, 1, 0;\n"                          \
                         "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" sums \
                         "}, {" o0 ", " o1 ", " o2 ", " o3 "}, " o4 ", adds, 1, 1, " o5 ";\n}"     \
                         : all                                                                     \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(!B_K_MAJOR)     \
                         : "memory");                                                              \
        }                                                                                          \
    };
#define HOPPER_ALL_32 HOPPER_32(sum, 0)
#define HOPPER_ALL_64 HOPPER_ALL_32, HOPPER_32(sum, 32)
#define HOPPER_ALL_128 HOPPER_ALL_64, HOPPER_32(sum, 64), HOPPER_32(sum, 96)
#define HOPPER_PRODUCTS(T, type)                                                                   \
    HOPPER_PRODUCT(T, type, 64, HOPPER_SUMS_32, HOPPER_ALL_32, "%32", "%33", "%34", "%35", "%36",  \
                   "%37")                                                                          \
    HOPPER_PRODUCT(T, type, 128, HOPPER_SUMS_64, HOPPER_ALL_64, "%64", "%65", "%66", "%67", "%68", \
                   "%69")                                                                          \
    HOPPER_PRODUCT(T, type, 256, HOPPER_SUMS_128, HOPPER_ALL_128, "%128", "%129", "%130", "%131",  \
                   "%132", "%133")
HOPPER_PRODUCTS(__half, "f16")
HOPPER_PRODUCTS(__nv_bfloat16, "bf16")
#endif
