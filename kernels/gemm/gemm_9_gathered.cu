// gemm, step 9: step 6 for matrices of any alignment.
// Target: compute_80
//
// The idea: cp.async needs 16 bytes that begin at a multiple of 16. Where rows do not, elements go
// through registers, one load each, into the same tiles, always with steps contiguous: one kernel
// serves all transpositions. Neighbours in a warp load neighbours where steps are far apart in
// memory, and the same few lines where they are contiguous.
// Owner and requirements: as gemm_async.cuh says, except for the alignment; four warps.
// Bound by: the loads, eight where step 6 has one copy.
#include "gemm_async.cuh"

enum { GATHERED_WARPS = 2, GATHERED_ROWS = GATHERED_WARPS * WARP_TILE };
enum { GATHERED_THREADS = GATHERED_WARPS * GATHERED_WARPS * WARP };

// A thread's pieces of a tile: one piece of each APART-th row, or all pieces of one row.
template <typename T> struct gatherer {
    enum { PIECE = 16 / sizeof(T), PASSES = ROW_BYTES / 16, AT_ONCE = 4 };
    enum { APART = GATHERED_THREADS / PASSES };
    static_assert(GATHERED_ROWS == GATHERED_THREADS, "a thread a row, or a piece of some");
    const T *at; // element 0 of the thread's first piece, at step 0
    long long to_row, to_step;
    int rows, first_row, first_step; // rows from the thread's first on; its first row and step
    bool by_step;

    __device__ gatherer(const T *matrix, long long leading, int first, int count, bool by_step)
        : to_row(by_step ? leading : 1), to_step(by_step ? 1 : leading), by_step(by_step) {
        first_row = by_step ? threadIdx.x / PASSES : threadIdx.x;
        first_step = by_step ? threadIdx.x % PASSES * PIECE : 0;
        rows = count - first - first_row;
        at = matrix + (first + first_row) * to_row + first_step * to_step;
    }
    // AT_ONCE pieces are in flight before the first is used.
    __device__ void load(uint32_t stage, int step, int steps) const {
#pragma unroll 1
        for (int first = 0; first < PASSES; first += AT_ONCE) {
            uint4 pieces[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int down = by_step ? (first + i) * APART : 0;
                const int along = by_step ? 0 : (first + i) * PIECE;
                const int left = steps - step - first_step - along;
                const T *from = at + down * to_row + (step + along) * to_step;
                T *elements = (T *)&pieces[i];
#pragma unroll
                for (int j = 0; j < PIECE; j++) {
                    const bool inside = down < rows && j < left;
                    elements[j] = inside ? from[j * to_step] : from_float<T>(0.0f);
                }
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int row = first_row + (by_step ? (first + i) * APART : 0);
                const int chunk = first_step / PIECE + (by_step ? 0 : first + i);
                store_shared_4(stage + row * ROW_BYTES + (chunk ^ turn_of<T, true>(row)) * 16,
                               pieces[i]);
            }
        }
    }
};

template <typename T> __device__ inline void gemm_gathered(const gemm_arguments &x) {
    gemm_pipeline<T, true, true, gatherer<T>, gatherer<T>, GATHERED_WARPS, GATHERED_WARPS, false>(
        x);
}

extern "C" __global__ void __launch_bounds__(GATHERED_THREADS, 2)
    gemm_gathered_f16(gemm_arguments x) {
    gemm_gathered<__half>(x);
}
extern "C" __global__ void __launch_bounds__(GATHERED_THREADS, 2)
    gemm_gathered_bf16(gemm_arguments x) {
    gemm_gathered<__nv_bfloat16>(x);
}
extern "C" __global__ void __launch_bounds__(GATHERED_THREADS, 2)
    gemm_gathered_tf32(gemm_arguments x) {
    gemm_gathered<float>(x);
}
