// What step 7 of softmax is made of: rows by clusters that stay, as softmax_7_cluster_ring.cu says.
#pragma once

#include "../row/row_cluster_ring.cuh"
#include "softmax_cluster.cuh"

#if __CUDA_ARCH__ >= 900
template <typename T, int PIECES, int BLOCKS, ring_defect DEFECT = RING_RIGHT>
__device__ inline void softmax_cluster_ring(const softmax_arguments &x) {
    __shared__ float parts[2][WARP];
    __shared__ float2 places[2][BLOCKS];
    __shared__ uint64_t arrived[CLUSTER_RING_STAGES + 1];
    extern __shared__ uint4 shared[];
    cluster_ring<T, PIECES, BLOCKS, DEFECT> ring(x, 0, shared, arrived);
    row_reducer reducer = {parts, 0};
    cluster_meeting<BLOCKS, DEFECT> meeting = {places, 0};
    T *out = (T *)x.out + (long long)ring.first * PIECE<T>;
    ring.meet();
    for (; ring.row < x.rows; ring.row += ring.step) {
        uint4 bits[PIECES];
        float values[PIECES][PIECE<T>];
        ring.take(bits, softmax_fill<T>(x));
        softmax_of_share<T, BLOCKS>(values, bits, x.scale, reducer, meeting,
                                    [&] { ring.release(); });
        store_whole<T>(values, out + ring.row * x.out_stride, ring.count);
    }
}
#endif
