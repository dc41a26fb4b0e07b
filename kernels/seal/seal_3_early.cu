// seal_early_*: step 2, beginning while the previous kernel ends.
// Target: compute_90
//
// The idea: until the previous kernel has ended nothing it may still write can be read. But the
// first of nine blocks of key stream needs nothing but arguments, and the first unit of weights can
// be prefetched to the L2 cache, which stays coherent. Blocks that leave room for others on a
// multiprocessor let the next kernel begin when they end: else its blocks would join some of them
// and not others.
// Owner and bound: as sealed_product.cuh says.
// Requires: the same, and a programmatic launch.
#include "../bulk.cuh"
#include "sealed_product.cuh"

struct prepare_early {
    bool fills; // a block leaves no room for another one

    __device__ inline void ask(const uint8_t *at) {
        if (fills) let_next_begin();
        asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
    }
    __device__ inline void wait() { wait_for_kernel_in_front(); }
    __device__ inline void leave() {
        if (!fills) let_next_begin();
    }
};

#define SEALED(rounds)                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        seal_early_##rounds(sealed_product_arguments a) {                                          \
        sealed_product<rounds>(a, prepare_early{blockDim.x > 256});                                \
    }

SEALED(20)
SEALED(12)
SEALED(8)
