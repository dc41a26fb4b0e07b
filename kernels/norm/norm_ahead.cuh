// What norm_5_ahead and norm_6_early share: weight and bias in shared memory before the row.
//
// The idea: in the first blocks of a grid, a weight requested after the row arrives after the first
// rows of all multiprocessors, and every block waits for it with nothing else in flight. Requested
// before the row it arrives first.
#pragma once

#include "norm_whole.cuh"

#if __CUDA_ARCH__ >= 800
// Each thread copies the pieces that it reads itself, so it waits for its own copies only.
template <int PIECES> struct norm_parameters_ahead {
    uint4 *slots; // of this thread: its pieces of the weight, then of the bias
    bool has_weight;

    __device__ inline norm_parameters_ahead(uint4 *shared, const norm_arguments &x, int count)
        : slots(shared + threadIdx.y * blockDim.x + threadIdx.x), has_weight(x.weight != nullptr) {
        ask(x.weight, 0, count);
        ask(x.bias, has_weight ? PIECES : 0, count);
        copy_async_commit();
    }
    __device__ inline void wait() const { copy_async_wait<0>(); }
    __device__ inline uint4 weight(int p) const { return *at(p); }
    __device__ inline uint4 bias(int p) const { return *at((has_weight ? PIECES : 0) + p); }

private:
    __device__ inline uint4 *at(int p) const { return slots + p * (int)(blockDim.x * blockDim.y); }
    // Copies through L1, where later blocks find the pieces.
    __device__ inline void ask(const void *values, int first, int count) const {
        if (values == nullptr) return;
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            if (piece_of_thread(p) < count) {
                asm volatile(
                    "cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(
                        shared_address(at(first + p))),
                    "l"(__cvta_generic_to_global((const uint4 *)values + piece_of_thread(p)))
                    : "memory");
            }
        }
    }
};

template <typename T, int PIECES> __device__ inline void norm_ahead(const norm_arguments &x) {
    __shared__ float parts[2][WARP];
    extern __shared__ uint4 shared[];
    const long long row = row_of_thread();
    if (row >= x.rows) return; // only whole warps leave: no thread waits for them
    const int count = whole_pieces<T>(x.columns);
    const norm_parameters_ahead<PIECES> parameters(shared, x, count);
    row_reducer reducer = {parts, 0};
    uint4 bits[PIECES];
    float values[PIECES][PIECE<T>];
    load_whole<T>(bits, (const T *)x.in + row * x.in_stride, count, 0);
    norm_of_pieces<T>(values, bits, count, x, reducer, parameters);
    store_whole<T>(values, (T *)x.out + row * x.out_stride, count);
}
#endif
