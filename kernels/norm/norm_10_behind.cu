// norm, step 10: rows by clusters of persistent blocks, stored after the sums of the next row.
// Target: compute_90
//
// The idea: where the blocks of a row are not on neighbouring multiprocessors, a number takes
// microseconds from one to the other while memory is busy. Here it has the time of a row: a block
// tells its numbers of a row, goes on to the sums of the next one, and then makes the results of
// the first (row_slices.cuh). So that there is one exchange a row, layernorm's blocks tell their
// own mean and the squares about it.
// Owner: the blocks of cluster r own rows r, r + clusters, ...; each warp neighbouring pieces.
// Bound by: memory.
// Requires: as step 9.
#include "norm_slices.cuh"

#if __CUDA_ARCH__ >= 900
// Sums of a block: all, and the squares about the block's mean; or 0 and the squares.
template <typename T, int PIECES, typename SLICES>
__device__ inline float2 norm_sums(uint4 (&bits)[PIECES], const SLICES &slices, int columns,
                                   row_reducer &reducer, const norm_arguments &x) {
    float sum = 0, square = 0, y[PIECE<T>];
    if (x.centred) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            unpack_piece<T>(y, bits[p]);
#pragma unroll
            for (int i = 0; i < PIECE<T>; i++) sum += y[i];
        }
        sum = reducer.sum(sum);
    }
    const float mean = columns > 0 ? sum / (float)columns : 0;
#pragma unroll
    for (int p = 0; p < PIECES; p++) {
        if (!slices.has(p)) continue;
        keep_packed(bits[p]);
        unpack_piece<T>(y, bits[p]);
#pragma unroll
        for (int i = 0; i < PIECE<T>; i++) {
            if (x.centred) y[i] -= mean;
            square = fmaf(y[i], y[i], square);
        }
    }
    return make_float2(sum, reducer.sum(square));
}

// Mean and factor of a row. Squares about the row's mean are those about a block's, and the square
// of what lies between the two for each element.
template <typename T, int BLOCKS>
__device__ inline float2 norm_of_sums(const float2 (&all)[BLOCKS], const norm_arguments &x) {
    const int pieces = whole_pieces<T>(x.columns), each = ceil_div(pieces, BLOCKS);
    float mean = 0, square = 0;
    if (x.centred) {
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) mean += all[i].x;
        mean /= (float)x.columns;
    }
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        square += all[i].y;
        const float columns = (float)(max(0, min(pieces - i * each, each)) * PIECE<T>);
        if (!x.centred || columns == 0) continue;
        const float between = all[i].x / columns - mean;
        square = fmaf(between * columns, between, square);
    }
    return make_float2(mean, norm_share(square, x));
}

template <typename T, int PIECES, int BLOCKS>
__device__ inline void norm_behind(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ uint64_t arrived[SLICE_WARPS][SLICE_STAGES];
    __shared__ slices_place<BLOCKS, 2> places[SLICE_PLACES];
    extern __shared__ uint4 shared[];
    row_slices<T, BLOCKS, SLICES_RIGHT, norm_arguments> slices(x, shared, arrived);
    row_reducer reducer = {parts, 0};
    slices_meeting<BLOCKS, 2> meeting(places);
    const int columns = cluster_pieces::of<BLOCKS>(whole_pieces<T>(x.columns)).count * PIECE<T>;
    uint4 weight[PIECES];
    slices.begin();
    norm_weights_of_slice(weight, slices, x);
    slices.begin_others();
    for (; slices.has_row() || slices.has_before(); slices.next()) {
        const bool is_last = !slices.has_row();
        uint4 bits[PIECES];
        if (!is_last) {
            slices.take(bits, 0);
            meeting.tell(norm_sums<T>(bits, slices, columns, reducer, x));
        }
        if (slices.has_before()) {
            float2 all[BLOCKS];
            meeting.hear(all);
            const float2 row = norm_of_sums<T>(all, x);
            uint4 *results = slices.results_before();
            slices.take_before(bits, 0);
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                float y[PIECE<T>];
                if (!slices.has(p)) continue;
                norm_piece<T>(y, bits[p], weight[p], slices.first + slices.piece(p), row.x, row.y,
                              x);
                results[slices.piece(p)] = pack_piece<T>(y);
            }
        }
        if (is_last) break;
    }
    slices.end();
}

#define NORM_BEHIND(name, T, blocks)                                                               \
    extern "C" __global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(512, 1)            \
        norm_behind_##name##_##blocks(norm_arguments x) {                                          \
        norm_behind<T, 8, blocks>(x);                                                              \
    }
NORM_BEHIND(f16, __half, 2)
NORM_BEHIND(f16, __half, 8)
NORM_BEHIND(bf16, __nv_bfloat16, 2)
NORM_BEHIND(bf16, __nv_bfloat16, 8)
NORM_BEHIND(f32, float, 8)
#endif
