// gemm, step 4: four words a load, and the next tile is on its way while this one is multiplied.
//
// The idea: a load of 16 bytes costs as much to issue as one of 4, so matrices whose rows begin at
// multiples of 16 bytes are read that way; and with two buffers in shared memory a block needs one
// barrier a tile, and device memory has the time of a whole tile to answer.
// Owner: gemm_registers.cuh says which thread owns which elements.
// Requires: as step 3; a, b, c at multiples of 16 bytes, lda, ldb, ldc and the strides between the
// matrices of a batch multiples of 4.
#include "gemm_registers.cuh"
#include "gemm_words.cuh"

// A thread's four words of a tile, which are contiguous along the steps or across them. They stay
// in registers until the previous tile has been multiplied.
template <bool BY_STEP> struct carrier {
    const float *at;
    long long leading;
    int other, l; // across the steps, and along them, in the tile
    int left;     // rows or columns of the matrix from `other` on
    float4 four;

    __device__ carrier(const float *matrix, long long leading, int first, int count)
        : leading(leading) {
        other = BY_STEP ? threadIdx.x / 2 : threadIdx.x % 32 * 4;
        l = BY_STEP ? threadIdx.x % 2 * 4 : threadIdx.x / 32;
        left = count - first - other;
        at = matrix + (BY_STEP ? (first + other) * leading + l : l * leading + first + other);
    }
    // Loads the words of the current tile, of which `steps` steps exist, and moves on to the next.
    __device__ void load(int steps) {
        const int count = BY_STEP ? (left > 0 ? steps - l : 0) : (steps > l ? left : 0);
        four = load_4(at, count);
        at += BY_STEP ? STEP : STEP * leading;
    }
    __device__ void store(float (&tile)[STEP][PITCH]) const {
        if (BY_STEP) {
            tile[l][other] = four.x;
            tile[l + 1][other] = four.y;
            tile[l + 2][other] = four.z;
            tile[l + 3][other] = four.w;
        } else {
            *(float4 *)&tile[l][other] = four;
        }
    }
};

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
__device__ inline void gemm_vector(const gemm_arguments &x) {
    __shared__ __align__(16) float a_tiles[2][STEP][PITCH], b_tiles[2][STEP][PITCH];
    const gemm_tile tile =
        gemm_tile_of(blockIdx.x, ceil_div(x.m, BLOCK_TILE), ceil_div(x.n, BLOCK_TILE));
    const int row = tile.row * BLOCK_TILE, column = tile.column * BLOCK_TILE;
    const gemm_place place = gemm_place_of(threadIdx.x);
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        carrier<!TRANSPOSE_A> a((const float *)x.a + share.a, x.lda, row, x.m);
        carrier<TRANSPOSE_B> b((const float *)x.b + share.b, x.ldb, column, x.n);
        float sum[8][8] = {};
        a.load(share.k);
        b.load(share.k);
        __syncthreads(); // all have read the buffers of the previous share
        a.store(a_tiles[0]);
        b.store(b_tiles[0]);
        __syncthreads(); // other threads wrote what this one reads
        for (int l = 0, now = 0; l < share.k; l += STEP, now ^= 1) {
            const int left = share.k - l - STEP;
            if (left > 0) {
                a.load(left);
                b.load(left);
            }
            gemm_multiply(sum, a_tiles[now], b_tiles[now], place);
            if (left > 0) {
                a.store(a_tiles[now ^ 1]);
                b.store(b_tiles[now ^ 1]);
            }
            __syncthreads(); // the other buffer is full, and no thread reads this one any more
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int r = row + place.row + gemm_row_of(i);
            const int c = column + place.column;
            if (r >= x.m) continue;
            const long long at = part * x.batch_c + r * x.ldc + c;
            store_4(x, at, x.n - c, &sum[i][0]);
            store_4(x, at + 16, x.n - c - 16, &sum[i][4]);
        }
    }
}

#define GEMM_VECTOR(name, transpose_a, transpose_b)                                                \
    extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 2) name(gemm_arguments x) {        \
        gemm_vector<transpose_a, transpose_b>(x);                                                  \
    }
GEMM_VECTOR(gemm_vector_nn, false, false)
GEMM_VECTOR(gemm_vector_nt, false, true)
GEMM_VECTOR(gemm_vector_tn, true, false)
GEMM_VECTOR(gemm_vector_tt, true, true)
