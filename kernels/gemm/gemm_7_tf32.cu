// gemm, step 7: step 6 for floats, rounded to tf32 on their way into the tensor cores.
// Target: compute_80
//
// The idea: a fragment of tf32 holds one number of 32 bits where one of fp16 holds two of 16, so
// ldmatrix takes it out of rows with contiguous steps just so; but it cannot turn numbers of 32
// bits. Where steps are not contiguous plain loads put each number where the mma wants it. An mma
// wants two steps of b in neighbouring registers, which are not neighbours in memory, so those are
// loads of 4 bytes (out of loads of 16 they would have to be moved, which takes more instructions).
// Each number is rounded as it comes out of shared memory: in registers that costs no traffic.
// Owner and requirements: as gemm_async.cuh says; a tile has 32 steps.
// Bound by: mma.sync, and the instructions of the rounding, two for each number.
#include "gemm_async.cuh"

enum { SLAB_BYTES = ROW_BYTES / sizeof(float) * ROW_BYTES };

// Of a: an mma does not care which of 16 rows its rows are, as long as the sums go where they
// belong. So rows g and g + 8 of a fragment are neighbours in memory, read at once. The sixteen
// lanes that are served together have two chunks of four steps.
template <> struct fragments<float, false, true> {
    uint32_t row;

    __device__ fragments(int lane, int warp_first) {
        const int g = lane / 4, t = lane % 4;
        row = (warp_first + t) * ROW_BYTES + (g / 2 ^ turn_of<float, false>(t)) * 16 + g % 2 * 8;
    }
    __device__ void load(uint32_t (&part)[4][4], uint32_t stage, int step) const {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t at = (stage + row + step * 8 * ROW_BYTES) ^ i % 2 * 64;
            load_shared_2(part[i][0], part[i][1], at + i / 2 * SLAB_BYTES);
            load_shared_2(part[i][2], part[i][3], at + i / 2 * SLAB_BYTES + 4 * ROW_BYTES);
        }
    }
    static __device__ int row_of(int i, int lower, int g) {
        return 16 * i + 2 * g + lower;
    }
};

// Of b: of four steps a warp reads eight neighbours each, two chunks.
template <> struct fragments<float, false, false> {
    uint32_t row;

    __device__ fragments(int lane, int warp_first) {
        const int g = lane / 4, t = lane % 4;
        row = (warp_first + t) * ROW_BYTES + (g / 4 ^ turn_of<float, false>(t)) * 16 + g % 4 * 4;
    }
    __device__ void load(uint32_t (&part)[4][4], uint32_t stage, int step) const {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const uint32_t at = (stage + row + step * 8 * ROW_BYTES) ^ i % 4 * 32;
            part[i / 2][i % 2 * 2] = load_shared_1(at + i / 4 * SLAB_BYTES);
            part[i / 2][i % 2 * 2 + 1] = load_shared_1(at + i / 4 * SLAB_BYTES + 4 * ROW_BYTES);
        }
    }
};

GEMM_ASYNC_ALL(tf32, float)
