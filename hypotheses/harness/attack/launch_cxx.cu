// launch_cxx: launches as C++ programs make them, kernel<<<grid, block, 0, stream>>>(...), for H11
// to compare with: a library of its own, since it needs nvcc and NVIDIA's runtime, and nothing else
// here does. ci/launch_cxx builds it; launcher.h has the function's type.
//
// The runtime API uses the device's primary context, as ours does, so both launch on one stream.
#include <cuda_runtime.h>

__global__ void tick_1(unsigned *count) {
    *count += 1;
}

__global__ void tick_4(unsigned *count, unsigned first, unsigned long long second, float third) {
    *count += first + (unsigned)(second >> 32) - (unsigned)third;
}

__global__ void tick_16(unsigned *count, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e,
                        unsigned f, unsigned g, unsigned h, unsigned i, unsigned j, unsigned k,
                        unsigned l, unsigned m, unsigned n, unsigned o) {
    *count += a - b - c - d - e - f - g - h - i - j - k - l - m - n - o;
}

extern "C" int hyp_launch_cxx(int arguments, unsigned long long count, void *handle, unsigned calls,
                              int synchronizes) {
    unsigned *at = (unsigned *)count;
    cudaStream_t stream = (cudaStream_t)handle;
    cudaError_t error = cudaSuccess;
    for (unsigned i = 0; i < calls && error == cudaSuccess; i++) {
        if (arguments == 1) {
            tick_1<<<1, 1, 0, stream>>>(at);
        } else if (arguments == 4) {
            tick_4<<<1, 1, 0, stream>>>(at, 2u, 3ull << 32, 4.0f);
        } else {
            tick_16<<<1, 1, 0, stream>>>(at, 106u, 14u, 13u, 12u, 11u, 10u, 9u, 8u, 7u, 6u, 5u, 4u,
                                         3u, 2u, 1u);
        }
        if (synchronizes) error = cudaStreamSynchronize(stream);
    }
    return (int)error;
}

// The error that a launch left. Not part of hyp_launch_cxx: a single launch is timed, and asking
// for its error is not part of it.
extern "C" int hyp_launch_cxx_error(void) {
    return (int)cudaGetLastError();
}
