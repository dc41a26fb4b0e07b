// gemm with one defect per kernel, for sabotage: an attack on gemm must notice each.
//
// The idea: step 1 with one mistake. No table offers these kernels; saboteurs force them by name.
// Owner and requirements: as step 1.
#include "gemm.cuh"

enum { TILE = 16 };
enum defect { LOST_STEP, LOST_TAIL, LOST_BETA, READS_C, SWAPPED, HALF_SUM, WRITES_GAP, LOST_SHARE };

template <typename T, defect DEFECT> __device__ inline void gemm_planted(gemm_arguments x) {
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, TILE), ceil_div(x.n, TILE));
    const int row = tile.row * TILE + threadIdx.x / TILE;
    const int column = tile.column * TILE + threadIdx.x % TILE;
    if (DEFECT == LOST_BETA) x.beta = 0;
    if (DEFECT == READS_C && x.beta == 0) x.beta = 0x1p-149f;
    if (DEFECT == SWAPPED && x.m == x.k && x.k == x.n) {
        const int transpose_a = x.transpose_a;
        x.transpose_a = x.transpose_b;
        x.transpose_b = transpose_a;
    }
    const int tail = DEFECT == LOST_TAIL && x.m > 1, gap = DEFECT == WRITES_GAP && x.ldc > x.n;
    if (row >= x.m - tail || column >= x.n + gap) return;
    const long long a_row = x.transpose_a ? 1 : x.lda, a_step = x.transpose_a ? x.lda : 1;
    const long long b_column = x.transpose_b ? x.ldb : 1, b_step = x.transpose_b ? 1 : x.ldb;
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const bool is_lost = DEFECT == LOST_SHARE && x.splits > 1 && (part + 1) % x.splits == 0;
        const int steps = is_lost ? 0 : DEFECT == LOST_STEP ? max(share.k - 1, 0) : share.k;
        const T *a = (const T *)x.a + share.a + row * a_row;
        const T *b = (const T *)x.b + share.b + min(column, x.n - 1) * b_column;
        float sum = 0;
#pragma unroll 1
        for (int l = 0; l < steps; l++) {
            sum = fmaf(to_float(a[l * a_step]), to_float(b[l * b_step]), sum);
            if (DEFECT == HALF_SUM) sum = to_float(from_float<__nv_bfloat16>(sum));
        }
        gemm_store<T>(x, part * x.batch_c + row * x.ldc + column, sum);
    }
}

#define GEMM_PLANTED(name, defect)                                                                 \
    extern "C" __global__ void gemm_##name##_f32(gemm_arguments x) {                               \
        gemm_planted<float, defect>(x);                                                            \
    }                                                                                              \
    extern "C" __global__ void gemm_##name##_f16(gemm_arguments x) {                               \
        gemm_planted<__half, defect>(x);                                                           \
    }                                                                                              \
    extern "C" __global__ void gemm_##name##_bf16(gemm_arguments x) {                              \
        gemm_planted<__nv_bfloat16, defect>(x);                                                    \
    }
GEMM_PLANTED(lost_step, LOST_STEP)
GEMM_PLANTED(lost_tail, LOST_TAIL)
GEMM_PLANTED(lost_beta, LOST_BETA)
GEMM_PLANTED(reads_c, READS_C)
GEMM_PLANTED(swapped, SWAPPED)
GEMM_PLANTED(half_sum, HALF_SUM)
GEMM_PLANTED(writes_gap, WRITES_GAP)
GEMM_PLANTED(lost_share, LOST_SHARE)
