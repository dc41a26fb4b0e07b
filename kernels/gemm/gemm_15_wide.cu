// gemm, step 15: floats without tensor cores, with hardly any instruction but FMAs.
// Target: compute_80
//
// The idea and the owner: gemm_wide.cuh. Five forms of it, which one run on a GPU can compare.
// `wide_128` has tiles of 128 x 128 and 16 x 8 elements a thread; of the two blocks on a
// multiprocessor, one multiplies while the other waits at a barrier. `wide_256` has one block with
// 256 x 128, which reads a quarter less. `wide_short` is wide_128 with tiles of 8 steps: half the
// instructions in the loop, twice the barriers. `wide_64` has tiles of 64 x 128, 8 x 8 elements a
// thread and four blocks: twice the warps, and more blocks where tiles are few.
// `wide_eight` is wide_128 where a warp turns eight rows by four steps at once, and not four by
// eight: half the addresses, of twice the lines in the L1 cache.
// Bound by: FMAs, and the registers' reads.
// Requires: as step 4; compute capability 8.0.
#include "gemm_wide.cuh"

#define GEMM_WIDE(which, threads, blocks, rows, own, steps, stages, turned, op, transpose_a,       \
                  transpose_b)                                                                     \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        gemm_##which##_##op(gemm_arguments x) {                                                    \
        gemm_wide<transpose_a, transpose_b, rows, own, steps, stages, turned>(x);                  \
    }
#define GEMM_WIDE_TURNED(...)                                                                      \
    GEMM_WIDE(__VA_ARGS__, nn, false, false)                                                       \
    GEMM_WIDE(__VA_ARGS__, nt, false, true)                                                        \
    GEMM_WIDE(__VA_ARGS__, tt, true, true)
#define GEMM_WIDE_ALL(...)                                                                         \
    GEMM_WIDE_TURNED(__VA_ARGS__)                                                                  \
    GEMM_WIDE(__VA_ARGS__, tn, true, false)
GEMM_WIDE_ALL(wide_128, 128, 2, 128, 16, 16, 3, 4)
GEMM_WIDE_TURNED(wide_eight, 128, 2, 128, 16, 16, 3, 8)
GEMM_WIDE_ALL(wide_short, 128, 2, 128, 16, 8, 4, 4)
GEMM_WIDE_ALL(wide_256, 256, 1, 256, 16, 16, 4, 4)
GEMM_WIDE_ALL(wide_64, 128, 4, 64, 8, 16, 3, 4)
