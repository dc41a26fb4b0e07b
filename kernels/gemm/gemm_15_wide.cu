// gemm, step 15: floats without tensor cores, with hardly any instruction but FMAs.
// Target: compute_80
//
// The idea and the owner: gemm_wide.cuh. `wide_64` has tiles of 64 x 128, 8 x 8 elements a thread
// and four blocks on a multiprocessor; while one waits at a barrier, others multiply. `wide_short`
// has tiles of 128 x 128, 16 x 8 elements a thread, two blocks and tiles of 8 steps; where both
// factors are turned on their way to shared memory, it has half as many copies for a product.
// Bound by: FMAs, and the registers' reads.
// Requires: as step 4; compute capability 8.0.
#include "gemm_wide.cuh"

#define GEMM_WIDE(which, threads, blocks, rows, own, steps, stages, op, transpose_a, transpose_b)  \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        gemm_##which##_##op(gemm_arguments x) {                                                    \
        gemm_wide<transpose_a, transpose_b, rows, own, steps, stages>(x);                          \
    }
GEMM_WIDE(wide_short, 128, 2, 128, 16, 8, 4, nt, false, true)
GEMM_WIDE(wide_64, 128, 4, 64, 8, 16, 3, nn, false, false)
GEMM_WIDE(wide_64, 128, 4, 64, 8, 16, 3, nt, false, true)
GEMM_WIDE(wide_64, 128, 4, 64, 8, 16, 3, tn, true, false)
GEMM_WIDE(wide_64, 128, 4, 64, 8, 16, 3, tt, true, true)
