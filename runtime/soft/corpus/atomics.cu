// Atomics as programs build them: by compare-and-swap, by punning, in locks, and joined in a warp.
#include "corpus.h"

__device__ double add_double(double *at, double value) {
    unsigned long long *bits = (unsigned long long *)at, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}

// The larger of two floats, as whole numbers of the right sign.
__device__ void most_float(float *at, float value) {
    if (value >= 0) {
        atomicMax((int *)at, __float_as_int(value));
    } else {
        atomicMin((unsigned *)at, __float_as_uint(value));
    }
}

__device__ void average_halves(uint16_t *at, uint16_t value) {
    unsigned short old = *at, assumed;
    do {
        assumed = old;
        old = atomicCAS((unsigned short *)at, assumed, (unsigned short)(assumed + value));
    } while (assumed != old);
}

struct cells {
    double sum;
    float most, least;
    unsigned ands, ors, xors, wrapped, down, largest, smallest;
    unsigned long long wide, wide_most;
    uint16_t half[2];
    unsigned exchanged;
};

extern "C" __global__ void combine(struct cells *c, const float *in, uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    add_double(&c->sum, in[i]);
    most_float(&c->most, in[i]);
    most_float(&c->least, -in[i]);
    atomicAnd(&c->ands, ~(1u << (i % 7)));
    atomicOr(&c->ors, 1u << (i % 11));
    atomicXor(&c->xors, i);
    atomicInc(&c->wrapped, 9);
    atomicDec(&c->down, 9);
    atomicMax(&c->largest, i ^ 0x55);
    atomicMin(&c->smallest, i ^ 0x55);
    atomicAdd(&c->wide, (unsigned long long)i << 30);
    atomicMax(&c->wide_most, (unsigned long long)i << 40);
    average_halves(&c->half[i & 1], 3);
    atomicExch(&c->exchanged, i);
}

extern "C" __global__ void joined(const uint32_t *keys, uint32_t *counts, uint32_t *ranks,
                                  uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned active = __ballot_sync(0xffffffffu, i < count);
    if (i >= count) return;
    // Lanes with one key send one of them.
    unsigned peers = __match_any_sync(active, keys[i]);
    unsigned lane = threadIdx.x & 31, leader = __ffs(peers) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&counts[keys[i]], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    ranks[i] = base + __popc(peers & ((1u << lane) - 1));
    int same = 0;
    unsigned all = __match_all_sync(__activemask(), keys[i] / 1000, &same);
    if (all == 0 || !same) counts[0] = 0xffffffffu;
}

__device__ unsigned mutex, ticket, serving;

extern "C" __global__ void locked(volatile uint32_t *total, volatile uint32_t *order) {
    // A lock that the lanes of a warp take one after the other.
    for (bool done = false; !done;) {
        if (atomicCAS(&mutex, 0, 1) == 0) {
            __threadfence();
            total[0] = total[0] + 1 + threadIdx.x % 2;
            __threadfence();
            atomicExch(&mutex, 0);
            done = true;
        }
    }
    // A ticket for each block's first thread.
    if (threadIdx.x == 0) {
        unsigned mine = atomicAdd(&ticket, 1);
        while (*(volatile unsigned *)&serving != mine) __nanosleep(20);
        order[mine] = blockIdx.x + 1;
        __threadfence();
        atomicAdd(&serving, 1);
    }
}

extern "C" __global__ void insert(const uint32_t *keys, uint32_t *table, uint32_t mask,
                                  uint32_t count) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    for (uint32_t at = corpus_mix(keys[i]) & mask;; at = (at + 1) & mask) {
        uint32_t found = atomicCAS(&table[at], 0, keys[i]);
        if (found == 0 || found == keys[i]) return;
    }
}

__shared__ unsigned bins[64];
extern "C" __global__ void __launch_bounds__(256)
    histogram64(const uint8_t *bytes, unsigned *out, uint32_t count) {
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += gridDim.x * blockDim.x) {
        atomicAdd(&bins[bytes[i] / 4], 1);
    }
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
