// The direct way with its two meetings inside, for steps 6 and 7.
#pragma once

#include "../bulk.cuh"

#include "direct.cuh"
#include "flags.cuh"

// Whether all other ranks have written the number of this call to their words.
static __device__ bool wait_for_all(const unsigned *words, const collective_met &x) {
    for (unsigned r = 0; r < x.ranks; r++) {
        patience p = {0, 0, 0};
        while (r != x.rank && ((const volatile unsigned *)words)[r] != x.epoch) {
            if (!look_again(p, r, x.status, x.patience_ns)) return false;
        }
    }
    __threadfence_system();
    return true;
}

// Signals all other ranks, after what this thread and those that it waited for did before.
static __device__ void tell(const collective_met &x, bool is_done) {
    __threadfence_system();
    for (unsigned r = 0; r < x.ranks; r++) {
        collective_words *words = (collective_words *)x.words[r];
        if (r != x.rank) {
            ((volatile unsigned *)(is_done ? words->done : words->came))[x.rank] = x.epoch;
        }
    }
}

template <typename T> static __device__ inline void met(const collective_met &x) {
#if defined EARLY && __CUDA_ARCH__ >= 900
    let_next_begin();
    wait_for_kernel_in_front();
#endif
    collective_words *own = (collective_words *)x.words[x.rank];
    __shared__ bool have_come;
    if (threadIdx.x == 0) {
        if (blockIdx.x == 0) tell(x, false);
        have_come = wait_for_all(own->came, x);
    }
    __syncthreads();
    if (!have_come) return;
    direct<T>(x.direct);
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence_system();
    if (atomicAdd(&own->blocks, 1) != gridDim.x - 1) return;
    own->blocks = 0;
    tell(x, true);
    wait_for_all(own->done, x);
}
