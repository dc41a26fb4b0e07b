// top_k, step 2: short whole rows, a warp each; k up to TOP_K_FEW.
// Target: compute_90
//
// The idea: a warp has the row in registers, so it reads it once and needs no barrier and no
// atomic. The four (f32) or two times two largest elements of each lane are the delegates of 128
// groups, and the k-th largest of them is a threshold that at least k elements reach. It is found
// by halving an interval; for k = 64 about 90 elements of a row that was drawn reach it. If more
// than TOP_K_SORTED do, the interval above it is halved further, counting elements. If too many
// are equal for any threshold, those above it are taken, and of the equal ones the first.
// What was taken is sorted in registers by shuffles.
// Owner: a warp per row, blockDim.y rows per block; lane t has pieces t, t + 32, ... of its row.
// Bound by: reads; instructions where rows are short. Requires: blockDim.x = 32, blockDim.y up to
// WARP_ROWS, whole rows of up to 32 PIECES pieces.
// Source: Gaihre et al., Dr. Top-k (SC 2021); Batcher, Sorting networks and their applications
// (1968).
#include "top_k_sort.cuh"

#if __CUDA_ARCH__ >= 900
constexpr int WARP_ROWS = 4;

template <typename T, int PIECES> struct warp_row {
    using reach = reach_masks<T, PIECES>;
    const T *in;
    int columns, k;
    uint4 bits[PIECES];
    uint16_t *places; // columns of elements that were taken

    // The masks of the elements of at least this order, and how many there are.
    __device__ inline int reaching(reach &found, int order) const {
        found.find(bits, order, (int)threadIdx.x, WARP, whole_pieces<T>(columns));
        return sum_of_warp(found.total());
    }

    // Takes elements.
    __device__ inline void take(const reach &found) const {
        const int lane = (int)threadIdx.x, mine = found.total();
        int at = mine;
#pragma unroll
        for (int lanes = 1; lanes < WARP; lanes *= 2) {
            const int before = __shfl_up_sync(~0u, at, lanes);
            if (lane >= lanes) at += before;
        }
        at -= mine;
#pragma unroll
        for (int m = 0; m < reach::COUNT; m++) {
            for (uint32_t mask = found.masks[m]; mask != 0; mask &= mask - 1) {
                places[at++] = (uint16_t)reach::column_of(m, lowest_bit(mask), lane, WARP);
            }
        }
    }

    // Takes the first elements of this order, until k are taken. Few rows come here.
    __device__ inline int take_first(int taken, int order) const {
        const int lane = (int)threadIdx.x;
        for (int first = 0; first < columns && taken < k; first += WARP) {
            bool is_one = false;
            if (first + lane < columns) {
                is_one = order_of_bits<T>(bits_of_element(in[first + lane])) == order;
            }
            const uint32_t ones = __ballot_sync(~0u, is_one);
            const int at = taken + __popc(ones & ((1u << lane) - 1));
            if (is_one && at < k) places[at] = (uint16_t)(first + lane);
            taken += __popc(ones);
        }
        return min(taken, k);
    }

    // Takes at least the k largest, and says how many.
    __device__ inline int take_largest() const {
        constexpr int PARTS = sizeof(T) == 2 ? 2 : 4;
        uint32_t largest[PARTS];
        int delegates[4];
        reach found;
        largest_words<T>(largest, bits);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t word = largest[i % PARTS];
            delegates[i] = order_of_bits<T>(sizeof(T) == 4 ? word : word >> i / 2 * 16 & 0xffff);
        }
        int lo = reached_by<T>(delegates, k), count = reaching(found, lo);
        for (int hi = ORDER_NAN<T>; count > TOP_K_SORTED;) { // count elements reach lo
            if (lo == hi) return take_first(take_above(found, lo), lo);
            const int middle = hi - (int)(((unsigned)hi - (unsigned)lo) / 2);
            const int fewer = reaching(found, middle);
            if (fewer >= k) {
                lo = middle, count = fewer;
            } else {
                hi = middle - 1; // fewer than k reach what is above hi
            }
        }
        take(found);
        return count;
    }

private:
    // Takes what is above this order, fewer than k elements.
    __device__ inline int take_above(reach &found, int order) const {
        if (order == ORDER_NAN<T>) return 0;
        const int count = reaching(found, order + 1);
        take(found);
        return count;
    }
};

template <typename T, int PIECES> __device__ inline void top_k_warp(const top_k_arguments &x) {
    using key = typename std::conditional<sizeof(T) == 2, uint32_t, unsigned long long>::type;
    __shared__ uint16_t places[WARP_ROWS][TOP_K_SORTED];
    const long long number = row_of_thread();
    if (number >= x.rows) return;
    warp_row<T, PIECES> row;
    row.in = (const T *)x.in + number * x.in_stride;
    row.columns = (int)x.columns, row.k = x.k, row.places = places[threadIdx.y];
    const int pieces = whole_pieces<T>(x.columns);
    if (pieces == WARP * PIECES) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            row.bits[p] = ((const uint4 *)row.in)[(int)threadIdx.x + p * WARP];
        }
    } else {
        load_whole<T>(row.bits, row.in, pieces, LOWEST_BITS<T>);
    }
    const int count = row.take_largest();
    __syncwarp();
    sort_and_store<key>(x, number, row.in, count, [&](int i) {
        const int column = row.places[i];
        return key_of<key, T>(order_of_bits<T>(bits_of_element(row.in[column])), column);
    });
}

#define TOP_K_WARP(name, T, pieces, blocks)                                                        \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                      \
        top_k_warp_##name##_##pieces(top_k_arguments x) {                                          \
        top_k_warp<T, pieces>(x);                                                                  \
    }
TOP_K_WARP(f32, float, 8, 7)
TOP_K_WARP(f32, float, 32, 3)
TOP_K_WARP(f16, __half, 4, 12)
TOP_K_WARP(f16, __half, 16, 4)
TOP_K_WARP(bf16, __nv_bfloat16, 4, 12)
TOP_K_WARP(bf16, __nv_bfloat16, 16, 4)
#endif
