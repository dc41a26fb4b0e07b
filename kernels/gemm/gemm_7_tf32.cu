// gemm, step 7: step 6 for floats, rounded to tf32 before the tensor cores.
// Target: compute_80
//
// The idea: a tf32 fragment holds one 32-bit number where one of fp16 holds two of 16 bits. So
// ldmatrix loads it from rows with contiguous steps, but cannot transpose it. Where steps are not
// contiguous, plain loads fetch each number to its lane. An mma needs two steps of b in
// neighbouring registers, and they are not neighbours in memory, so these are loads of 4 bytes;
// loads of 16 bytes would need more instructions to move the words. Each number is rounded in
// registers after its load from shared memory, which costs no traffic.
// Owner and requirements: as gemm_async.cuh says; a tile has 32 steps.
// Bound by: mma.sync, and the instructions of the rounding, two for each number.
#include "gemm_async.cuh"

enum { SLAB_BYTES = ROW_BYTES / sizeof(float) * ROW_BYTES };

// Of A: an mma works for any order of its 16 rows if the sums are stored in the same order. So rows
// g and g + 8 of a fragment are neighbours in memory, and one load reads both. The sixteen lanes
// that are served in one cycle read two chunks of four steps.
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

// Of B: a warp reads eight neighbours, which are two chunks, of each of four steps.
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
