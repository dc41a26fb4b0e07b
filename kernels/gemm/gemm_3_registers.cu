// gemm, step 3: a tile of 128 x 128 a block, 8 x 8 of it in the registers of each thread.
//
// The idea: shared memory gives 32 words a cycle and the multipliers use 256, so a word that was
// read must be used eight times. It reads word by word, so matrices may have any alignment.
// Owner: gemm_registers.cuh says which thread owns which elements.
// Requires: blockDim = (256, 1, 1), gridDim.x = tiles of 128 x 128, gridDim.y walks the shares.
#include "gemm_registers.cuh"

// tile[l][i] = op(matrix)(first + i, step + l), 0 outside; by_step says that steps are contiguous
// in memory, so that neighbours in a warp read neighbours.
__device__ inline void load_tile(float (&tile)[STEP][PITCH], const float *matrix, long long leading,
                                 int first, int count, int step, int steps, bool by_step) {
#pragma unroll 2
    for (int i = threadIdx.x; i < BLOCK_TILE * STEP; i += BLOCK_THREADS) {
        const int l = by_step ? i % STEP : i / BLOCK_TILE;
        const int other = by_step ? i / STEP : i % BLOCK_TILE;
        const bool inside = first + other < count && step + l < steps;
        const long long at =
            by_step ? (first + other) * leading + step + l : (step + l) * leading + first + other;
        tile[l][other] = inside ? matrix[at] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2)
    gemm_registers_f32(gemm_arguments x) {
    __shared__ __align__(16) float a_tile[STEP][PITCH], b_tile[STEP][PITCH];
    const gemm_tile tile =
        gemm_tile_of(blockIdx.x, ceil_div(x.m, BLOCK_TILE), ceil_div(x.n, BLOCK_TILE));
    const int row = tile.row * BLOCK_TILE, column = tile.column * BLOCK_TILE;
    const gemm_place place = gemm_place_of(threadIdx.x);
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const float *a = (const float *)x.a + share.a;
        const float *b = (const float *)x.b + share.b;
        float sum[8][8] = {};
        for (int l = 0; l < share.k; l += STEP) {
            load_tile(a_tile, a, x.lda, row, x.m, l, share.k, !x.transpose_a);
            load_tile(b_tile, b, x.ldb, column, x.n, l, share.k, x.transpose_b);
            __syncthreads(); // other threads wrote what this one reads
            gemm_multiply(sum, a_tile, b_tile, place);
            __syncthreads(); // the tiles are overwritten next
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const int r = row + place.row + gemm_row_of(i);
                const int c = column + place.column + gemm_column_of(j);
                if (r < x.m && c < x.n) {
                    gemm_store<float>(x, part * x.batch_c + r * x.ldc + c, sum[i][j]);
                }
            }
        }
    }
}
