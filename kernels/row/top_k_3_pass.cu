// top_k, step 3: long whole rows, a block each, in one pass; k up to TOP_K_FEW.
// Target: compute_90
//
// The idea: step 1 reads a row once for its threshold and once more for what reaches it. Here the
// threshold comes from the first sixteenth of the row at most, as in step 2 from delegates: the
// largest of each thread's first pieces, or of two threads'. What reaches it later is some hundred
// elements of a row that was drawn, and their columns find room in shared memory. Elements are
// compared as they are (row_reach.cuh), a chunk of four pieces per thread while the next one is on
// its way. Then the same is done to those few: delegates, a threshold, and what reaches that is
// sorted by one warp. A row whose large elements come late leaves more than there is room for; it
// is left to step 1.
// Owner: block r owns row r; thread t its pieces t, t + blockDim.x, ...
// Bound by: reads. Requires: gridDim.x = rows, blockDim.x 256 or TOP_K_THREADS; whole rows.
// Source: as step 1.
#include "top_k_block.cuh"
#include "top_k_sort.cuh"

#if __CUDA_ARCH__ >= 900
constexpr int PASS_PIECES = 4, PASS_DELEGATES = 256, PASS_PART = 16, PASS_KEYS = 4;

struct pass_shared {
    top_k_shared block; // its keys, once there are any
    int places[TOP_K_CANDIDATES];
    int delegates[PASS_DELEGATES];
};

// Of the elements of a thread's pieces in a chunk of blockDim.x PASS_PIECES pieces.
template <typename T>
__device__ inline void load_chunk(uint4 (&bits)[PASS_PIECES], const uint4 *in, int first,
                                  int count) {
#pragma unroll
    for (int p = 0; p < PASS_PIECES; p++) {
        const int piece = first + p * (int)blockDim.x;
        bits[p] = make_uint4(LOWEST_BITS<T>, LOWEST_BITS<T>, LOWEST_BITS<T>, LOWEST_BITS<T>);
        if (piece < count) bits[p] = in[piece];
    }
}

// A number that at least k of the threads' numbers reach. All threads get it.
template <typename T> __device__ inline int block_reached_by(int number, int k, pass_shared *s) {
    const int lane = (int)threadIdx.x % WARP;
    int numbers[PASS_DELEGATES / WARP];
    const bool pairs = blockDim.x > PASS_DELEGATES;
    if (pairs) number = max(number, __shfl_xor_sync(~0u, number, 1));
    if (!pairs || lane % 2 == 0) s->delegates[threadIdx.x / (pairs ? 2 : 1)] = number;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PASS_DELEGATES / WARP; i++) {
        numbers[i] = s->delegates[lane + i * WARP];
    }
    return reached_by<T>(numbers, k);
}

// Keeps the columns of what reaches the threshold, while there is room.
template <typename T>
__device__ inline void keep(const uint4 (&bits)[PASS_PIECES], int least, int first, int count,
                            pass_shared *s) {
    using reach = reach_masks<T, PASS_PIECES>;
    reach found;
    found.find(bits, least, first, (int)blockDim.x, count);
    uint32_t mask = found.masks[0];
    if (mask == 0) return;
    int at = atomicAdd(&s->block.count, __popc(mask));
    for (; mask != 0; mask &= mask - 1, at++) {
        if (at >= TOP_K_CANDIDATES) return;
        s->places[at] = reach::column_of(0, lowest_bit(mask), first, (int)blockDim.x);
    }
}

// Leaves in places what reaches a threshold that at least k elements reach; says how many do.
template <typename T>
__device__ inline int one_pass(const top_k_arguments &x, const uint4 *in, pass_shared *s) {
    const int count = whole_pieces<T>(x.columns), step = PASS_PIECES * (int)blockDim.x;
    const int chunks = ceil_div(ceil_div(count, step), PASS_PART);
    uint4 bits[PASS_PIECES];
    uint32_t largest[1];
    int best = ORDER_LOWEST<T>, first = (int)threadIdx.x;
    for (int i = chunks - 1; i >= 0; i--) { // the first chunk at last: it stays in registers
        load_chunk<T>(bits, in, first + i * step, count);
        largest_words<T>(largest, bits);
        best = max(best, order_of_word<T>(largest[0]));
    }
    if (threadIdx.x == 0) s->block.count = 0;
    uint4 next[PASS_PIECES];
    load_chunk<T>(next, in, first + step, count);
    const int least = block_reached_by<T>(best, x.k, s);
    for (;;) {
        keep<T>(bits, least, first, count, s);
        first += step;
        if (first >= count) break;
#pragma unroll
        for (int p = 0; p < PASS_PIECES; p++) bits[p] = next[p];
        load_chunk<T>(next, in, first + step, count);
    }
    __syncthreads();
    return s->block.count;
}

// Leaves in block.keys the keys of what is in places, or of those of them that reach a threshold,
// at least k; says how many there are.
template <typename T>
__device__ inline int keep_keys(const T *in, int count, int k, pass_shared *s) {
    unsigned long long keys[PASS_KEYS];
    int orders[PASS_KEYS], best = ORDER_LOWEST<T>;
#pragma unroll
    for (int i = 0; i < PASS_KEYS; i++) {
        const int at = (int)threadIdx.x + i * (int)blockDim.x;
        orders[i] = INT_MIN;
        if (at >= count) continue;
        const int column = s->places[at];
        orders[i] = order_of_bits<T>(bits_of_element(in[column]));
        keys[i] = key_of<unsigned long long, T>(orders[i], column);
        best = max(best, orders[i]);
    }
    const int least = count <= TOP_K_SORTED ? ORDER_LOWEST<T> : block_reached_by<T>(best, k, s);
    __syncthreads(); // all have read the count
    if (threadIdx.x == 0) s->block.count = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PASS_KEYS; i++) {
        if (orders[i] != INT_MIN && orders[i] >= least) {
            s->block.keys[atomicAdd(&s->block.count, 1)] = keys[i];
        }
    }
    __syncthreads();
    return s->block.count;
}

template <typename T> __device__ inline void top_k_pass(const top_k_arguments &x) {
    __shared__ pass_shared shared;
    pass_shared *s = &shared;
    const T *in = (const T *)x.in + blockIdx.x * x.in_stride;
    int count = one_pass<T>(x, (const uint4 *)in, s);
    if (count > min(TOP_K_CANDIDATES, PASS_KEYS * (int)blockDim.x)) {
        top_k_block<T>(x, &s->block);
        return;
    }
    count = keep_keys(in, count, x.k, s);
    if (count > TOP_K_SORTED) { // many are equal
        sort_with_zeros(s->block.keys, count);
        store_keys<T>(x, in, s->block.keys);
    } else if (threadIdx.x < WARP) {
        sort_and_store<unsigned long long>(x, blockIdx.x, in, count,
                                           [&](int i) { return s->block.keys[i]; });
    }
}

#define TOP_K_PASS(name, T)                                                                        \
    extern "C" __global__ void __launch_bounds__(TOP_K_THREADS, 2)                                 \
        top_k_pass_##name(top_k_arguments x) {                                                     \
        top_k_pass<T>(x);                                                                          \
    }
TOP_K_PASS(f32, float)
TOP_K_PASS(f16, __half)
TOP_K_PASS(bf16, __nv_bfloat16)
#endif
