// What kernels share on the device: accesses to shared memory and to tensor cores. Each function is
// the PTX instruction of its name.
//
// Fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"): with g = lane / 4 and
// t = lane % 4, a lane holds of C rows g and g + 8, columns 2 t and 2 t + 1; of A these rows,
// columns 2 t, 2 t + 1 and 8 more; of B column g, rows 2 t, 2 t + 1 and 8 more.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

enum { WARP = 32 };

__host__ __device__ constexpr int ceil_div(int a, int b) {
    return (a + b - 1) / b;
}

// The address in shared memory that instructions expect.
__device__ inline uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// Elements as floats and back, rounded to nearest.
__device__ inline float to_float(float x) {
    return x;
}
__device__ inline float to_float(__half x) {
    return __half2float(x);
}
__device__ inline float to_float(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
template <typename T> __device__ inline T from_float(float x);
template <> __device__ inline float from_float<float>(float x) {
    return x;
}
template <> __device__ inline __half from_float<__half>(float x) {
    return __float2half_rn(x);
}
template <> __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
    return __float2bfloat16_rn(x);
}

#if __CUDA_ARCH__ >= 800
// Copies 16 bytes from global to shared memory, asynchronously and past the L1 cache. Only the
// first `bytes` of them are read; the others become zero.
__device__ inline void copy_async_16(uint32_t shared, const void *global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
}
// The same for 4 bytes, through L1.
__device__ inline void copy_async_4(uint32_t shared, const void *global, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
}
// Closes a group of copies; waits until all but the latest N groups have arrived.
__device__ inline void copy_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> __device__ inline void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
// Waits for all copies of the thread, also those in no group.
__device__ inline void copy_async_wait_all() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

// Loads four matrices of 8 x 8 16-bit elements. Lane i passes the address of a row of 16 bytes: row
// i % 8 of matrix i / 8. A lane then holds two neighbours of row lane / 4 of each matrix;
// transposed, two neighbours of that column.
__device__ inline void load_matrix_4(uint32_t (&x)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared)
                 : "memory");
}
__device__ inline void load_matrix_4_transposed(uint32_t (&x)[4], uint32_t shared) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(shared)
                 : "memory");
}

// Loads a word; two words at a multiple of 8 bytes.
__device__ inline uint32_t load_shared_1(uint32_t shared) {
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(shared) : "memory");
    return x;
}
__device__ inline void load_shared_2(uint32_t &x, uint32_t &y, uint32_t shared) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(shared) : "memory");
}

// Stores four words at a multiple of 16 bytes.
__device__ inline void store_shared_4(uint32_t shared, uint4 x) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(x.x), "r"(x.y),
                 "r"(x.z), "r"(x.w)
                 : "memory");
}

#if __CUDA_ARCH__ >= 800
// c += a b of 16 x 8 x 16, in fp32. The tensor core adds with fewer bits than fmaf and truncates.
template <typename T>
__device__ inline void mma_16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ inline void mma_16<__half>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                      uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void mma_16<__nv_bfloat16>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                             uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a b of 16 x 8 x 8 in tf32: a lane holds of A rows g and g + 8, columns t and t + 4, of B
// column g, rows t and t + 4.
__device__ inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Rounds to nearest, ties away from zero. Without it the tensor core truncates.
__device__ inline uint32_t to_tf32(float x) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

// The mma of a type: 32 bytes of each row of a and column of b.
template <typename T>
__device__ inline void mma_32_bytes(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
    mma_16<T>(c, a, b0, b1);
}
template <>
__device__ inline void mma_32_bytes<float>(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                           uint32_t b1) {
    mma_tf32(c, a, b0, b1);
}
#endif

// Sum or maximum over a warp, in all of its lanes.
__device__ inline float warp_sum(float x) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}
__device__ inline float warp_max(float x) {
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
    }
    return x;
}
