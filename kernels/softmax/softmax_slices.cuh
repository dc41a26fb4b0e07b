// What steps 8 and 9 of softmax are made of: rows by persistent blocks, as softmax_8_slices.cu and
// softmax_9_behind.cu say.
#pragma once

#include "../row/row_slices.cuh"
#include "softmax_cluster.cuh"

#if __CUDA_ARCH__ >= 900
template <typename T, int PIECES, int BLOCKS, slice_defect DEFECT = SLICES_RIGHT>
__device__ inline void softmax_slices(const softmax_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ uint64_t arrived[SLICE_WARPS][SLICE_STAGES];
    __shared__ slices_place<BLOCKS, 2> places[SLICE_PLACES];
    extern __shared__ uint4 shared[];
    row_slices<T, BLOCKS, DEFECT, softmax_arguments> slices(x, shared, arrived);
    row_reducer reducer = {parts, 0};
    slices_meeting<BLOCKS, 2, DEFECT> meeting(places);
    slices.begin();
    slices.begin_others();
    for (; slices.has_row(); slices.next()) {
        uint4 bits[PIECES];
        float values[PIECES][PIECE<T>];
        slices.take(bits, softmax_fill<T>(x));
        softmax_of_share<T, BLOCKS>(values, bits, x.scale, reducer, meeting,
                                    [&] { slices.refill(); });
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (slices.has(p)) slices.results()[slices.piece(p)] = pack_piece<T>(values[p]);
        }
        slices.give();
    }
    slices.end();
}

// The largest element of a block, scaled, and the sum of exponentials against it.
template <typename T, int PIECES>
__device__ inline float2 softmax_sums(uint4 (&bits)[PIECES], float scale, row_reducer &reducer) {
    float largest = -INFINITE, sum = 0, y[PIECE<T>];
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        unpack_piece<T>(y, bits[p]);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) largest = fmaxf(largest, y[i] * scale);
    }
    largest = reducer.max(largest);
    const float base = largest == -INFINITE ? 0 : largest;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        keep_packed(bits[p]);
        unpack_piece<T>(y, bits[p]);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) sum += exp_of(y[i] * scale - base, T());
    }
    return make_float2(largest, reducer.sum(sum));
}

// The row's largest element, and the factor of its exponentials.
template <int BLOCKS> __device__ inline float2 softmax_of_sums(const float2 (&all)[BLOCKS]) {
    float largest = -INFINITE, sum = 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) largest = fmaxf(largest, all[i].x);
    const float base = largest == -INFINITE ? 0 : largest;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) sum = fmaf(all[i].y, expf(all[i].x - base), sum);
    return make_float2(base, sum == 0 ? 0 : 1 / sum);
}

template <typename T, int PIECES, int BLOCKS, slice_defect DEFECT = SLICES_RIGHT>
__device__ inline void softmax_behind(const softmax_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ uint64_t arrived[SLICE_WARPS][SLICE_STAGES];
    __shared__ slices_place<BLOCKS, 2> places[SLICE_PLACES];
    extern __shared__ uint4 shared[];
    row_slices<T, BLOCKS, DEFECT, softmax_arguments> slices(x, shared, arrived);
    row_reducer reducer = {parts, 0};
    slices_meeting<BLOCKS, 2, DEFECT> meeting(places);
    slices.begin();
    slices.begin_others();
    for (; slices.has_row() || slices.has_before(); slices.next()) {
        const bool is_last = !slices.has_row();
        uint4 bits[PIECES];
        if (!is_last) {
            slices.take(bits, softmax_fill<T>(x));
            meeting.tell(softmax_sums<T>(bits, x.scale, reducer));
        }
        if (slices.has_before()) {
            float2 all[BLOCKS];
            meeting.hear(all);
            const float2 row = softmax_of_sums(all);
            uint4 *results = slices.results_before();
            slices.take_before(bits, 0);
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                float y[PIECE<T>];
                if (!slices.has(p)) continue;
                unpack_piece<T>(y, bits[p]);
#pragma unroll
                for (int i = 0; i < PIECE<T>; i++) {
                    y[i] = exp_of(y[i] * x.scale - row.x, T()) * row.y;
                }
                results[slices.piece(p)] = pack_piece<T>(y);
            }
        }
        if (is_last) break;
    }
    slices.end();
}
#endif
