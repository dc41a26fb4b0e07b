// gemm, step 2: tiles of a and b in shared memory.
//
// The idea: the 32 x 32 threads of a block need the same rows of a and columns of b, so each
// element is read from device memory once for 32 uses. Threads read along the dimension that is
// contiguous in memory, whether transposed or not; a column more than needed keeps a column of the
// tile in different banks.
// Owner: thread (x, y) of the block's 32 x 32 owns one element of c, as in step 1.
// Requires: blockDim = (1024, 1, 1), gridDim.x = tiles of 32 x 32, gridDim.y walks the shares.
#include "gemm.cuh"

enum { TILE = 32 };

// tile[i][j] = the element at (row + i, column + j) of the matrix as stored, and 0 outside of it;
// the other way round for a matrix that is used transposed.
template <typename T>
__device__ inline void load_tile(float (&tile)[TILE][TILE + 1], const T *matrix, long long leading,
                                 int row, int rows, int column, int columns, int transpose) {
    const int y = threadIdx.x / TILE, x = threadIdx.x % TILE;
    const bool inside =
        transpose ? row + x < rows && column + y < columns : row + y < rows && column + x < columns;
    const long long at =
        transpose ? (column + y) * leading + row + x : (row + y) * leading + column + x;
    const float value = inside ? to_float(matrix[at]) : 0.0f;
    if (transpose) {
        tile[x][y] = value;
    } else {
        tile[y][x] = value;
    }
}

template <typename T> __device__ inline void gemm_shared(const gemm_arguments &x) {
    __shared__ float a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, TILE), ceil_div(x.n, TILE));
    const int own_row = threadIdx.x / TILE, own_column = threadIdx.x % TILE;
    const int row = tile.row * TILE, column = tile.column * TILE;
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const T *a = (const T *)x.a + share.a;
        const T *b = (const T *)x.b + share.b;
        float sum = 0;
        for (int l = 0; l < share.k; l += TILE) {
            load_tile(a_tile, a, x.lda, row, x.m, l, share.k, x.transpose_a);
            load_tile(b_tile, b, x.ldb, l, share.k, column, x.n, x.transpose_b);
            __syncthreads(); // other threads wrote what this one reads
#pragma unroll 8
            for (int i = 0; i < TILE; i++) {
                sum = fmaf(a_tile[own_row][i], b_tile[i][own_column], sum);
            }
            __syncthreads(); // the tiles are overwritten next
        }
        if (row + own_row < x.m && column + own_column < x.n) {
            gemm_store<T>(x, part * x.batch_c + (row + own_row) * x.ldc + column + own_column, sum);
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024) gemm_shared_f32(gemm_arguments x) {
    gemm_shared<float>(x);
}
extern "C" __global__ void __launch_bounds__(1024) gemm_shared_f16(gemm_arguments x) {
    gemm_shared<__half>(x);
}
extern "C" __global__ void __launch_bounds__(1024) gemm_shared_bf16(gemm_arguments x) {
    gemm_shared<__nv_bfloat16>(x);
}
