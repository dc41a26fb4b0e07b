// argmax, step 2: whole rows.
// Target: compute_90
//
// The idea: elements are compared as they are, two of 16 bits at once (row_reach.cuh), so an
// element costs half an instruction where step 1 makes a key of each. A thread keeps its largest
// element and the four pieces in which it first had it. Once the largest of the row is known, only
// the threads that have it read these pieces again and look for its column.
// Owner: blockDim.x threads own a row, and a block has blockDim.y of them, more than one only if a
// warp owns each; thread t owns the pieces t, t + blockDim.x, ... of its row.
// Bound by: reads. Requires: blockDim.x a multiple of 32, enough blocks for all rows; whole rows.
#include "row_reach.cuh"

#if __CUDA_ARCH__ >= 900
constexpr int ARGMAX_PIECES = 4;

// Pieces first, first + blockDim.x, ... of a row of `count`.
template <typename T>
__device__ inline void load_pieces(uint4 (&bits)[ARGMAX_PIECES], const uint4 *in, int first,
                                   int count) {
#pragma unroll
    for (int p = 0; p < ARGMAX_PIECES; p++) {
        const int piece = first + p * (int)blockDim.x;
        bits[p] = make_uint4(LOWEST_BITS<T>, LOWEST_BITS<T>, LOWEST_BITS<T>, LOWEST_BITS<T>);
        if (piece < count) bits[p] = in[piece];
    }
}

// The first column of an element of this order; INT_MAX if there is none.
template <typename T>
__device__ inline int first_column(const uint4 *in, int first, int count, int order) {
    using reach = reach_masks<T, ARGMAX_PIECES>;
    uint4 bits[ARGMAX_PIECES];
    reach found;
    load_pieces<T>(bits, in, first, count);
    found.find(bits, order, first, (int)blockDim.x, count);
    uint32_t mask = found.masks[0]; // words in the order of their columns
    if (sizeof(T) == 2) mask = (mask | mask >> 16) & 0xffff;
    if (mask == 0) return INT_MAX;
    const unsigned word = lowest_bit(mask);
    const bool is_lower = (found.masks[0] >> word & 1) != 0;
    return reach::column_of(0, word + (is_lower ? 0 : 16), first, (int)blockDim.x);
}

// Of the threads of a row; all of them get it. The two reductions have places of their own.
template <typename COMBINE>
__device__ inline int over_row(int x, int neutral, int *parts, COMBINE combine) {
    x = combine(x);
    if (blockDim.x == WARP) return x;
    const int lane = (int)threadIdx.x % WARP, warps = (int)blockDim.x / WARP;
    if (lane == 0) parts[threadIdx.x / WARP] = x;
    __syncthreads();
    return combine(lane < warps ? parts[lane] : neutral);
}

template <typename T> __device__ inline void argmax_whole(const argmax_arguments &x) {
    __shared__ int parts[2][WARP];
    const long long row = row_of_thread();
    if (row >= x.rows) return;
    const uint4 *in = (const uint4 *)((const T *)x.in + row * x.in_stride);
    const int count = whole_pieces<T>(x.columns);
    int best = INT_MIN, where = 0;
    for (int first = (int)threadIdx.x; first < count; first += ARGMAX_PIECES * (int)blockDim.x) {
        uint4 bits[ARGMAX_PIECES];
        uint32_t largest[1];
        load_pieces<T>(bits, in, first, count);
        largest_words<T>(largest, bits);
        const int order = order_of_word<T>(largest[0]);
        if (order > best) best = order, where = first;
    }
    const int order = over_row(best, INT_MIN, parts[0], largest_of_warp);
    int column = INT_MAX;
    if (best == order) column = first_column<T>(in, where, count, order);
    column = over_row(column, INT_MAX, parts[1], smallest_of_warp);
    if (threadIdx.x == 0) ((int *)x.out)[row] = column;
}
#endif

#if __CUDA_ARCH__ >= 900
#define ARGMAX_WHOLE(name, T)                                                                      \
    extern "C" __global__ void __launch_bounds__(512, 3) argmax_whole_##name(argmax_arguments x) { \
        argmax_whole<T>(x);                                                                        \
    }
ARGMAX_WHOLE(f32, float)
ARGMAX_WHOLE(f16, __half)
ARGMAX_WHOLE(bf16, __nv_bfloat16)
#endif
