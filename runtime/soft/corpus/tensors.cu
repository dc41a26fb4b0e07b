// Matrix products on tensor cores: through nvcuda::wmma, and by inline mma with ldmatrix.
#include "tensors.h"

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

enum { M = TENSORS_M, N = TENSORS_N, K = TENSORS_K };

extern "C" __global__ void fill(half *a, half *b, signed char *small_a, signed char *small_b) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < M * K) {
        a[i] = __float2half(tensors_quarter(i));
        small_a[i] = (signed char)tensors_input(i);
    }
    if (i < K * N) {
        b[i] = __float2half(tensors_quarter(i + 7777));
        small_b[i] = (signed char)tensors_input(i + 7777);
    }
}

// A warp computes a 16 by 16 tile of C; A and B are row-major, read directly from global memory.
extern "C" __global__ void product_wmma(const half *a, const half *b, float *c) {
    int row = blockIdx.y * 16, column = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(left, a + row * K + k, K);
        wmma::load_matrix_sync(right, b + k * N + column, N);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = 2.0f * sum.x[i] + 1.0f;
    wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);
}

// The same for small integers, in tiles of 32 by 8, from shared memory, stored column-major.
extern "C" __global__ void product_wmma_int(const signed char *a, const signed char *b, int *c) {
    __shared__ __align__(32) signed char left_tile[32 * 16], right_tile[16 * 16];
    int row = blockIdx.y * 32, column = blockIdx.x * 8;
    wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 32, 8, 16, int> sum;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < K; k += 16) {
        for (int i = threadIdx.x; i < 32 * 16; i += 32) {
            left_tile[i] = a[(row + i / 16) * K + k + i % 16];
        }
        for (int i = threadIdx.x; i < 16 * 8; i += 32) {
            right_tile[i] = b[(k + i % 16) * N + column + i / 16];
        }
        __syncthreads();
        wmma::load_matrix_sync(left, left_tile, 16);
        wmma::load_matrix_sync(right, right_tile, 16);
        wmma::mma_sync(sum, left, right, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(c + column * M + row, sum, M, wmma::mem_col_major);
}

__device__ static uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

// Four warps compute a 32 by 16 tile of C from shared memory. ldmatrix loads A directly and
// transposes the row-major B. Uses one m16n8k16 if available, else two m16n8k8.
extern "C" __global__ void product_mma(const half *a, const half *b, float *c) {
    __shared__ __align__(16) half left[32][24], right[16][40]; // rows apart: fewer bank conflicts
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = blockIdx.y * 32, column = blockIdx.x * 16;
    float sum[4] = {0};
    for (int k = 0; k < K; k += 16) {
        for (int i = threadIdx.x; i < 32 * 16; i += 128) {
            left[i / 16][i % 16] = a[(row + i / 16) * K + k + i % 16];
        }
        for (int i = threadIdx.x; i < 16 * 16; i += 128) {
            right[i / 16][i % 16] = b[(k + i / 16) * N + column + i % 16];
        }
        __syncthreads();
        int top = warp / 2 * 16, left_column = warp % 2 * 8;
        uint32_t x[4], y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(shared_address(&left[top + lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_address(&right[lane % 16][left_column])));
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
#else
        for (int i = 0; i < 2; i++) {
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                         "{%4, %5}, {%6}, {%0, %1, %2, %3};"
                         : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                         : "r"(x[2 * i]), "r"(x[2 * i + 1]), "r"(y[i]));
        }
#endif
        __syncthreads();
    }
    row += warp / 2 * 16 + lane / 4;
    column += warp % 2 * 8 + lane % 4 * 2;
    c[row * N + column] = sum[0];
    c[row * N + column + 1] = sum[1];
    c[(row + 8) * N + column] = sum[2];
    c[(row + 8) * N + column + 1] = sum[3];
}
