// Sums and extremes of a block by shared memory and shuffles, as templates over type and operation.
#include <stdint.h>

template <typename T> struct plus {
    static __device__ T apply(T a, T b) { return a + b; }
    static __device__ T none() { return T(0); }
};
template <typename T> struct most {
    static __device__ T apply(T a, T b) { return a > b ? a : b; }
    static __device__ T none() { return T(-1); }
};

template <typename T, template <typename> class Op> __device__ T warp_reduce(T value) {
    for (int offset = 16; offset > 0; offset /= 2) {
        value = Op<T>::apply(value, __shfl_down_sync(0xffffffffu, value, offset));
    }
    return value;
}

template <typename T, template <typename> class Op>
__device__ void reduce(const T *in, T *out, uint32_t count) {
    __shared__ T sums[32];
    T value = Op<T>::none();
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        value = Op<T>::apply(value, in[i]);
    }
    value = warp_reduce<T, Op>(value);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : Op<T>::none();
        value = warp_reduce<T, Op>(value);
        if (threadIdx.x == 0) out[blockIdx.x] = value;
    }
}

extern "C" __global__ void sum_int(const int *in, int *out, uint32_t n) {
    reduce<int, plus>(in, out, n);
}
extern "C" __global__ void sum_float(const float *in, float *out, uint32_t n) {
    reduce<float, plus>(in, out, n);
}
extern "C" __global__ void sum_double(const double *in, double *out, uint32_t n) {
    reduce<double, plus>(in, out, n);
}
extern "C" __global__ void sum_long(const long long *in, long long *out, uint32_t n) {
    reduce<long long, plus>(in, out, n);
}
extern "C" __global__ void most_double(const double *in, double *out, uint32_t n) {
    reduce<double, most>(in, out, n);
}

// The same with the barrier that counts, and one that a block may leave early.
extern "C" __global__ void count_large(const int *in, int *out, int limit) {
    int count = __syncthreads_count(in[blockIdx.x * blockDim.x + threadIdx.x] > limit);
    int any = __syncthreads_or(in[blockIdx.x * blockDim.x + threadIdx.x] > 10 * limit);
    int all = __syncthreads_and(in[blockIdx.x * blockDim.x + threadIdx.x] >= 0);
    if (threadIdx.x == 0) out[blockIdx.x] = count + 1000 * (any != 0) + 10000 * (all != 0);
}
