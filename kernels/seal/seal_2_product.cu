// seal_product_*: y[m] = sum_k W[m][k] x[k] for one column and Q4_K that is encrypted.
//
// Idea, owner, bound and requirements: as sealed_product.cuh says.
#include "sealed_product.cuh"

// Nothing is in front.
struct prepare_nothing {
    __device__ inline void ask(const uint8_t *) {}
    __device__ inline void wait() {}
    __device__ inline void leave() {}
};

#define SEALED(rounds)                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                              \
        seal_product_##rounds(sealed_product_arguments a) {                                        \
        sealed_product<rounds>(a, prepare_nothing());                                              \
    }

SEALED(20)
SEALED(12)
SEALED(8)
