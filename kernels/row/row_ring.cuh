// What softmax_5_ring and norm_4_ring share: blocks that stay on a multiprocessor and go from row
// to row, with the next rows on their way into shared memory.
//
// No barrier guards the copies, since no thread reads what another one copied: each has slots of
// its own, RING_THREADS apart. cp.async.wait_group makes the writes of the waiting thread's own
// groups visible to that thread (PTX ISA, cp.async.wait_group); another thread would need a barrier
// after it. A copy that refills a slot follows the loads from the slot in the same thread, and
// copy_async_16 clobbers memory, so it is not moved before them. The only barriers are those of
// row_reducer.
#pragma once

#include "row_whole.cuh"

constexpr int RING_THREADS = 128, RING_ROWS = 3;

#if __CUDA_ARCH__ >= 800
template <typename T, int PIECES> struct row_ring {
    const T *in;
    long long in_stride, rows, next, step; // the next row to request
    int count;                             // pieces of a row
    uint32_t fill;
    uint4 *slots; // of this thread's first piece; its slots are RING_THREADS apart
    int slot;

    __device__ inline void ask() {
        if (next < rows) {
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int piece = piece_of_thread(p);
                if (piece < count) {
                    copy_async_16(shared_address(at(p)),
                                  (const uint4 *)(in + next * in_stride) + piece, 16);
                }
            }
        }
        copy_async_commit(); // an empty group too, so that groups can be counted
        next += step;
        slot = slot + 1 == RING_ROWS ? 0 : slot + 1;
    }

    // Takes the oldest row out of the ring, and requests the next one into its slot.
    __device__ inline void take(uint4 (&bits)[PIECES]) {
        copy_async_wait<RING_ROWS - 1>();
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            bits[p] = make_uint4(fill, fill, fill, fill);
            if (piece_of_thread(p) < count) bits[p] = *at(p);
        }
        ask();
    }

private:
    __device__ inline uint4 *at(int p) {
        return slots + (slot * PIECES + p) * RING_THREADS;
    }
};

template <typename T, int PIECES, typename ARGUMENTS>
__device__ inline row_ring<T, PIECES> ring_of(const ARGUMENTS &x, uint32_t fill, uint4 *slots) {
    row_ring<T, PIECES> ring = {(const T *)x.in,
                                x.in_stride,
                                x.rows,
                                row_of_thread(),
                                (long long)gridDim.x * blockDim.y,
                                whole_pieces<T>(x.columns),
                                fill,
                                slots + threadIdx.y * blockDim.x + threadIdx.x,
                                0};
    for (int i = 0; i < RING_ROWS; i++) ring.ask();
    return ring;
}
#endif
