// Copies that overlap computation: double buffering with the pipeline primitives, with a group of
// threads, and with a barrier that counts arrived bytes.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda_pipeline.h>
#include <stdint.h>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

// Each thread sums what its mirror image has copied, one row of 128 after the other.
extern "C" __global__ void two_buffers(const int32_t *in, int32_t *out, uint32_t rows) {
    __shared__ int32_t buffer[2][128];
    uint32_t t = threadIdx.x;
    int32_t sum = 0;
    __pipeline_memcpy_async(&buffer[0][t], &in[t], 4);
    __pipeline_commit();
    for (uint32_t row = 0; row < rows; row++) {
        if (row + 1 < rows) {
            __pipeline_memcpy_async(&buffer[(row + 1) % 2][t], &in[(row + 1) * 128 + t], 4);
        }
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += buffer[row % 2][127 - t];
        __syncthreads();
    }
    out[t] = sum;
}

// The same with 16 bytes per thread; the last row is partial, and the rest is zeros.
extern "C" __global__ void partial_rows(const int32_t *in, int32_t *out, uint32_t count) {
    __shared__ alignas(16) int32_t buffer[512];
    uint32_t t = threadIdx.x;
    int32_t sum = 0;
    for (uint32_t begin = 0; begin < count; begin += 512) {
        uint32_t at = begin + 4 * t;
        uint32_t left = at >= count ? 0 : count - at < 4 ? count - at : 4;
        __pipeline_memcpy_async(&buffer[4 * t], &in[at], 16, 16 - 4 * left);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        for (uint32_t i = 0; i < 4; i++) sum += buffer[(4 * t + i * 129) % 512];
        __syncthreads();
    }
    out[t] = sum;
}

extern "C" __global__ void by_a_group(const int32_t *in, int32_t *out, uint32_t rows) {
    __shared__ int32_t buffer[128];
    auto block = cg::this_thread_block();
    int32_t sum = 0;
    for (uint32_t row = 0; row < rows; row++) {
        cg::memcpy_async(block, buffer, in + row * 128, sizeof buffer);
        cg::wait(block);
        sum += buffer[127 - threadIdx.x];
        block.sync();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void by_a_barrier(const int32_t *in, int32_t *out, uint32_t rows) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ alignas(16) int32_t buffer[128];
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    int32_t sum = 0;
    for (uint32_t row = 0; row < rows; row++) {
        cuda::memcpy_async(cg::this_thread_block(), buffer, in + row * 128,
                           cuda::aligned_size_t<16>(sizeof buffer), barrier);
        barrier.arrive_and_wait();
        sum += buffer[127 - threadIdx.x];
        barrier.arrive_and_wait();
    }
    out[threadIdx.x] = sum;
}

// A producer warp fills buffers for consumer warps; one barrier signals full, another empty.
extern "C" __global__ void producer_and_consumers(const int32_t *in, int32_t *out, uint32_t rows) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ barrier full[2], empty[2];
    __shared__ int32_t buffer[2][96];
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 128);
        init(&empty[threadIdx.x], 128);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (uint32_t row = 0; row < rows; row++) {
            if (row >= 2) empty[row % 2].arrive_and_wait();
            for (uint32_t i = threadIdx.x; i < 96; i += 32) {
                cuda::memcpy_async(&buffer[row % 2][i], &in[row * 96 + i], 4, full[row % 2]);
            }
            auto token = full[row % 2].arrive();
            (void)token;
        }
    } else {
        int32_t sum = 0;
        for (uint32_t row = 0; row < rows; row++) {
            full[row % 2].arrive_and_wait();
            sum = 3 * sum + buffer[row % 2][127 - threadIdx.x];
            auto token = empty[row % 2].arrive();
            (void)token;
        }
        out[threadIdx.x - 32] = sum;
    }
}
