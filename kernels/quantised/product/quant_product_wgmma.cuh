// What step 8 of the quant product is made of: many columns by wgmma and TMA (compute_90a).
//
// The idea: no memory holds dequantised weights, not even shared memory. One producer thread of the
// first warpgroup copies TMA boxes into two rings: weights as they are stored, 256 of each row per
// slot, and x as halves, 64 of each column per stage. Two consumer warpgroups own 64 rows each. A
// thread makes halves of the weights that its fragment of A has, in registers, and multiplies them
// by x in shared memory. While the products of 64 steps run, it makes the fragments of the next. A
// thread's fragment takes four elements of each 16 steps of a row. Which four is free if x has the
// same order, so the prologue stores x in that order: of each 64 elements, lane t of the four of a
// row has those from 8 t on and from 32 + 8 t on, eight each, which are two words of quants in any
// of the formats. A weight is one float that is rounded once, as in step 4. With its scale as a
// half it would be off by 2^-11 of the minimum that is subtracted, which the declared bound does
// not allow.
// Owner: a block owns a tile of 128 rows and N columns of y, wgmma_tile; a thread the sums that
// wgmma gives it. With N of 256 a weight is made once for twice the products, and with 128 the grid
// has twice the tiles.
// Requires: blockDim = (KN_QUANT_WGMMA_THREADS, 1, 1), gridDim = (rows / 128, columns / N) rounded
// up, KN_QUANT_WGMMA_BYTES of dynamic shared memory, k a multiple of 256 and above 0, the tensor
// maps that product_launch.c makes. It may be launched by PDL after a kernel that writes only x and
// was itself not launched by PDL.
#pragma once

#include "../../hopper.cuh"
#include "../formats/quant.cuh"
#include "quant_product_arguments.h"

#if __CUDA_ARCH__ >= 900
enum {
    TILE_ROWS = KN_QUANT_WGMMA_ROWS, // rows of a block
    CONSUMERS = 2,                   // warpgroups
    CONSUMER_ROWS = TILE_ROWS / CONSUMERS,
    CHUNK = KN_QUANT_WGMMA_CHUNK, // elements of a row in a slot
    GROUP = 64,                   // steps of a stage of x
    GROUPS = CHUNK / GROUP,
    STEPS = GROUP / 16, // of a group: a product each
    ROOM = KN_QUANT_WGMMA_BYTES
};
static_assert((1 + CONSUMERS) * WARPGROUP == KN_QUANT_WGMMA_THREADS, "as the host has it");

// ---- the formats -------------------------------------------------------------------------------
//
// What a thread holds of a row's chunk. BYTES: of a row in a slot; APART: from chunk to chunk in
// memory; SLOTS of weights. load: from the row's bytes in shared memory, as lane t of four. make:
// word 2 s + h is two halves of step s of group g, of elements 8 t + 32 (s / 2) + 4 (s % 2) + 2 h
// on.

// Bytes become floats in the mantissa of 2^23, since conversions have a slow unit. Its bits must
// stand in a register, or one more instruction moves them there for each byte: the compiler does
// not know the result of a shuffle, nor that k is even.
__device__ inline uint32_t two_to_23(uint32_t k) {
    return __shfl_sync(~0u, 0x4b000000 | (k & 1), 0);
}

// 2^23 and byte i of a word.
__device__ inline float above_2_to_23(uint32_t power, uint32_t word, int i) {
    return __uint_as_float(__byte_perm(word, power, 0x7650 + i));
}

// Byte i of a word, less `less`.
__device__ inline float unsigned_byte(uint32_t power, uint32_t word, int i, int less = 0) {
    return above_2_to_23(power, word, i) - (float)((1 << 23) + less);
}

// d times byte i of a word, for a d of 11 digits: all of it is exact.
__device__ inline float times_byte(float d, uint32_t power, uint32_t word, int i) {
    return fmaf(d, above_2_to_23(power, word, i), -d * (float)(1 << 23));
}

__device__ inline uint32_t two_halves(float first, float second) {
    const __half2 both = __floats2half2_rn(first, second);
    return *(const uint32_t *)&both;
}

struct chunk_q4_k {
    enum { BYTES = Q4_K_BYTES, APART = BYTES, SLOTS = 3 };
    uint4 header;
    uint2 qs[GROUPS];

    __device__ inline void load(const uint8_t *row, int t, int) {
        header = *(const uint4 *)row;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) qs[g] = *(const uint2 *)(row + 16 + 32 * g + 8 * t);
    }
    __device__ inline void make(int g, int, uint32_t power, uint32_t (&out)[2 * STEPS]) const {
        const q4_k_scales s = q4_k_scales_of(header, g);
        const float2 d = q4_k_d(header);
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            // An upper nibble stays where it is, as 16 of what it means.
            const int high = step / 2;
            const float scale = times_byte(high != 0 ? d.x / 16 : d.x, power, s.scales, high);
            const float minimum = times_byte(d.y, power, s.minimums, high);
            const uint32_t four = (step % 2 ? qs[g].y : qs[g].x) & 0x0f0f0f0fu << 4 * high;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                out[2 * step + h] =
                    two_halves(fmaf(scale, unsigned_byte(power, four, 2 * h), -minimum),
                               fmaf(scale, unsigned_byte(power, four, 2 * h + 1), -minimum));
            }
        }
    }
};

// Words at an even address.
template <int COUNT>
__device__ inline void load_even(const uint8_t *from, uint32_t (&words)[COUNT]) {
    const uint32_t odd = (uint32_t)(uintptr_t)from & 2, select = odd != 0 ? 0x5432 : 0x3210;
    const uint32_t *aligned = (const uint32_t *)(from - odd);
    uint32_t before = aligned[0];
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const uint32_t next = aligned[i + 1];
        words[i] = __byte_perm(before, next, select);
        before = next;
    }
}

// A box begins at the multiple of 16 at or before its block of 210 bytes, and ends at one after
// it. Quarters 0 and 1 of half h of a block are group 2 h, and quarters 2 and 3 group 2 h + 1.
struct chunk_q6_k {
    enum { BYTES = Q6_K_BYTES + 14, APART = Q6_K_BYTES, SLOTS = 3 };
    uint32_t ql[2][2][2], qh[2][2]; // of a half; ql of its two parts of 32 bytes
    uint32_t scales[GROUPS], d;

    __device__ inline void load(const uint8_t *row, int t, int chunk) {
        const uint8_t *block = row + chunk * Q6_K_BYTES % 16;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            load_even(block + 64 * half + 8 * t, ql[half][0]);
            load_even(block + 64 * half + 32 + 8 * t, ql[half][1]);
            load_even(block + 128 + 32 * half + 8 * t, qh[half]);
        }
        load_even(block + 192, scales);
        d = *(const uint16_t *)(block + 208);
    }
    __device__ inline void make(int g, int t, uint32_t power, uint32_t (&out)[2 * STEPS]) const {
        const int half = g / 2, upper = g % 2;
        // As 128 more than they are, so that they are unsigned.
        const uint32_t shifted = (scales[g] ^ 0x80808080) >> t / 2 * 8;
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const float scale = half_value(d) * unsigned_byte(power, shifted, step / 2 * 2, 128);
            const uint32_t low = ql[half][step / 2][step % 2] >> 4 * upper & 0x0f0f0f0f;
            const uint32_t high = qh[half][step % 2] >> (4 * upper + 2 * (step / 2)) & 0x03030303;
            const uint32_t four = low | high << 4;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                out[2 * step + h] = two_halves(scale * unsigned_byte(power, four, 2 * h, 32),
                                               scale * unsigned_byte(power, four, 2 * h + 1, 32));
            }
        }
    }
};

// A product of a half and a byte is exact as a float, so the product of halves rounds it as well.
struct chunk_q8_0 {
    enum { BYTES = CHUNK / 32 * Q8_0_BYTES, APART = BYTES, SLOTS = 3 };
    uint32_t qs[CHUNK / 32][2], d[CHUNK / 32];

    // The quants of every second block begin at an odd multiple of 2.
    __device__ inline void load(const uint8_t *row, int t, int) {
#pragma unroll
        for (int b = 0; b < CHUNK / 32; b++) {
            const uint8_t *block = row + b * Q8_0_BYTES;
            d[b] = *(const uint16_t *)block;
            if (b % 2 == 1) {
                const uint32_t *words = (const uint32_t *)(block + 2 + 8 * t);
                qs[b][0] = words[0], qs[b][1] = words[1];
            } else {
                const uint32_t *words = (const uint32_t *)(block + 8 * t);
                const uint32_t middle = words[1];
                qs[b][0] = __byte_perm(words[0], middle, 0x5432);
                qs[b][1] = __byte_perm(middle, words[2], 0x5432);
            }
        }
    }
    __device__ inline void make(int g, int, uint32_t power, uint32_t (&out)[2 * STEPS]) const {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            const int b = 2 * g + step / 2;
            const __half2 by = __half2half2(__ushort_as_half((unsigned short)d[b]));
            // 1024 and what is 128 more than a quant, as halves.
            const uint32_t four = qs[b][step % 2] ^ 0x80808080;
            const __half2 bias = __floats2half2_rn(1024 + 128, 1024 + 128);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const uint32_t two = __byte_perm(four, 0x64646464, h == 0 ? 0x4140 : 0x4342);
                const __half2 made = __hmul2(by, __hsub2(*(const __half2 *)&two, bias));
                out[2 * step + h] = *(const uint32_t *)&made;
            }
        }
    }
};

// ---- x -----------------------------------------------------------------------------------------

// Rounds x to halves, and stores them in the order of its fragments: a group of 64 is four products
// s of 16 steps, each the two halves h of a fragment, each four lanes t, each two neighbours. A
// thread owns eight halves that are stored as one word of 16 bytes.
__device__ inline void round_x(const kn_quant_product_arguments &a) {
    const uint32_t piece = blockIdx.x * WARPGROUP + threadIdx.x, inside = piece % 8;
    if (piece >= a.k / 8) return;
    const uint32_t step = inside / 2, h = inside % 2;
    const float *from = (const float *)a.x + blockIdx.y * a.x_stride + piece / 8 * GROUP +
                        step / 2 * 32 + step % 2 * 4 + 2 * h;
    uint32_t words[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        const float2 two = __ldg((const float2 *)(from + 8 * t));
        words[t] = two_halves(two.x, two.y);
    }
    ((uint4 *)a.quants)[(uint64_t)blockIdx.y * (a.k / 8) + piece] = {words[0], words[1], words[2],
                                                                     words[3]};
}

// ---- the pipeline ------------------------------------------------------------------------------

// N: the columns of a tile. STAGES: the stages of x that fit.
template <typename Q, int N> struct wgmma_shared {
    static constexpr int SLOTS = Q::SLOTS, STAGE = N * BOX_ROW, SLOT = TILE_ROWS * Q::BYTES;
    static constexpr int STAGES = (ROOM - 2048 - SLOTS * SLOT) / STAGE;
    alignas(1024) uint8_t x[STAGES][STAGE];
    alignas(128) uint8_t weights[SLOTS][SLOT];
    alignas(8) uint64_t x_full[STAGES], x_empty[STAGES];
    uint64_t weights_full[SLOTS], weights_empty[SLOTS];
};

// A position in a ring, and the parity of the phase that its barriers are in.
template <int COUNT> struct wgmma_ring {
    uint32_t at, parity;

    __device__ inline void next() {
        if (++at == COUNT) {
            at = 0;
            parity ^= 1;
        }
    }
};

// One defect a kernel, for quant_product_planted.cu.
enum wgmma_defect {
    WGMMA_RIGHT,
    WGMMA_EARLY_STAGE, // a stage of x is given back before it is multiplied
    WGMMA_LOST_CHUNK,  // the weights of the second chunk are not read, and the first's used again
    WGMMA_STALE_FRAGMENTS, // the last group of a chunk is multiplied by fragments of the one before
    WGMMA_LOST_CONSUMER,   // the second warpgroup stores nothing
    WGMMA_LOST_SHARE       // the sums of the last share of k are not added
};

// The first row and column of a block's tile. Blocks follow each other across bands of 1024
// columns, so that those at work share weights, and the x of a band, in the L2 cache.
template <int N> struct wgmma_tile {
    uint32_t row, column;

    __device__ inline wgmma_tile() {
        enum { BAND = 1024 / N };
        const uint32_t first = blockIdx.y / BAND * BAND, wide = min(gridDim.y - first, BAND);
        const uint32_t inside = (blockIdx.y - first) * gridDim.x + blockIdx.x;
        row = inside / wide * TILE_ROWS;
        column = (first + inside % wide) * N;
    }
};

template <typename Q, int N>
__device__ inline void wgmma_produce(const kn_quant_product_arguments &a, wgmma_shared<Q, N> *s,
                                     const tensor_map *weights, const tensor_map *x) {
    const wgmma_tile<N> tile;
    const int chunks = a.k / CHUNK;
    wgmma_ring<wgmma_shared<Q, N>::STAGES> of_x = {0, 1}; // a new barrier has completed phase 1
    wgmma_ring<Q::SLOTS> of_weights = {0, 1};
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk++) {
        uint64_t *full = &s->weights_full[of_weights.at];
        barrier_wait(&s->weights_empty[of_weights.at], of_weights.parity);
        barrier_expect(full, sizeof s->weights[0]);
        load_box(weights, s->weights[of_weights.at], full, (uint32_t)chunk * Q::APART / 16 * 8,
                 tile.row, 0);
        of_weights.next();
        // Only x comes from the prologue, before which all other kernels have ended.
        if (chunk == 0) wait_for_kernel_in_front();
#pragma unroll 1
        for (int g = 0; g < GROUPS; g++) {
            full = &s->x_full[of_x.at];
            barrier_wait(&s->x_empty[of_x.at], of_x.parity);
            barrier_expect(full, sizeof s->x[0]);
            load_box(x, s->x[of_x.at], full, chunk * CHUNK + g * GROUP, tile.column, 0);
            of_x.next();
        }
    }
}

// The 64 rows of a consumer; a thread has rows lane / 4 and lane / 4 + 8 of the 16 of its warp.
template <typename Q, int N, wgmma_defect DEFECT> struct wgmma_consumer {
    static constexpr int STAGES = wgmma_shared<Q, N>::STAGES;
    wgmma_shared<Q, N> *s;
    const int consumer, lane, first; // the first row of the thread
    const uint32_t power;
    wgmma_ring<STAGES> of_x;
    wgmma_ring<Q::SLOTS> of_weights;
    Q rows[2];
    uint32_t fragments[2][STEPS][4]; // of two groups, in turn
    float sums[N / 2];

    __device__ inline wgmma_consumer(wgmma_shared<Q, N> *s_, int consumer_, uint32_t k)
        : s(s_), consumer(consumer_), lane(threadIdx.x % WARP),
          first(consumer * CONSUMER_ROWS + threadIdx.x % WARPGROUP / WARP * 16 + lane / 4),
          power(two_to_23(k)), of_x{0, 0}, of_weights{0, 0} {
#pragma unroll
        for (int i = 0; i < N / 2; i++) sums[i] = 0;
    }

    // Brings the next chunk to registers, and gives its slot back.
    __device__ inline void load(int chunk) {
        barrier_wait(&s->weights_full[of_weights.at], of_weights.parity);
        const uint8_t *slot = s->weights[of_weights.at];
        if (DEFECT != WGMMA_LOST_CHUNK || chunk != 1) {
            rows[0].load(slot + first * Q::BYTES, lane % 4, chunk);
            rows[1].load(slot + (first + 8) * Q::BYTES, lane % 4, chunk);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(&s->weights_empty[of_weights.at]);
        of_weights.next();
    }

    // Makes the fragments of group g of the chunk.
    __device__ inline void make(int g) {
        uint32_t upper[2 * STEPS], lower[2 * STEPS];
        rows[0].make(g, lane % 4, power, upper);
        rows[1].make(g, lane % 4, power, lower);
#pragma unroll
        for (int i = 0; i < 2 * STEPS; i++) {
            fragments[g % 2][i / 2][i % 2 * 2] = upper[i];
            fragments[g % 2][i / 2][i % 2 * 2 + 1] = lower[i];
        }
        // In their registers before the fence that precedes the products.
#pragma unroll
        for (int i = 0; i < 4 * STEPS; i++) {
            asm volatile("" : "+r"(fragments[g % 2][i / 4][i % 4])::"memory");
        }
    }

    __device__ inline void release(uint64_t *empty) {
        if (threadIdx.x % WARPGROUP == 0) barrier_arrive(empty);
    }

    // sums += the group's fragments by a stage of x; not waited for.
    __device__ inline void multiply(const uint32_t (&a)[STEPS][4]) {
        wgmma_fence();
        uint64_t b = factor_of<true>(s->x[of_x.at]);
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            product<__half, N>::template add_part<true>(sums, a[step], b);
            b += factor_step<true>();
        }
        wgmma_commit();
    }

    // Multiplies the chunks from `begin` to `end`, of which there is one at least.
    __device__ inline void run(int begin, int end) {
        uint32_t before = 0;
        load(begin);
        make(0);
#pragma unroll 1
        for (int chunk = begin; chunk < end; chunk++) {
#pragma unroll
            for (int g = 0; g < GROUPS; g++) {
                barrier_wait(&s->x_full[of_x.at], of_x.parity);
                if (DEFECT == WGMMA_EARLY_STAGE) {
                    release(&s->x_empty[of_x.at]);
                    const bool is_filled_again = chunk * GROUPS + g + STAGES < end * GROUPS;
                    if (is_filled_again) barrier_wait(&s->x_full[of_x.at], of_x.parity ^ 1);
                }
                const bool is_stale = DEFECT == WGMMA_STALE_FRAGMENTS && g == GROUPS - 1;
                multiply(fragments[is_stale ? 0 : g % 2]);
                // The products before these are done, and their fragments are free.
                wgmma_wait<1>();
                if (DEFECT != WGMMA_EARLY_STAGE && (chunk > begin || g > 0)) {
                    release(&s->x_empty[before]);
                }
                before = of_x.at;
                of_x.next();
                // Behind the last chunk the fragments of its first group are made again and not
                // used: a branch around them would end the block of products in flight.
                make((g + 1) % GROUPS);
                if (g == GROUPS - 2 && chunk + 1 < end) load(chunk + 1);
            }
        }
        wgmma_wait<0>();
        hold(sums);
    }

    __device__ inline void store(const kn_quant_product_arguments &a) const {
        const wgmma_tile<N> tile;
        const uint32_t row = tile.row + first, column = tile.column + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            const uint32_t m = row + i % 4 / 2 * 8, n = column + i / 4 * 8 + i % 2;
            if (m < a.rows && n < a.columns) ((float *)a.y)[n * a.y_stride + m] = sums[i];
        }
    }
};

// The shared memory of a block with its barriers made, which all threads see.
template <typename Q, int N>
__device__ inline wgmma_shared<Q, N> *wgmma_begin(const tensor_map *weights, const tensor_map *x) {
    using shared = wgmma_shared<Q, N>;
    static_assert(sizeof(shared) + 1024 <= ROOM, "it fits the shared memory of the launch");
    extern __shared__ uint8_t room[];
    shared *s = reinterpret_cast<shared *>(room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        prefetch_map(weights);
        prefetch_map(x);
        for (int i = 0; i < shared::STAGES; i++) {
            barrier_make(&s->x_full[i], 1);
            barrier_make(&s->x_empty[i], CONSUMERS);
        }
        for (int i = 0; i < shared::SLOTS; i++) {
            barrier_make(&s->weights_full[i], 1);
            barrier_make(&s->weights_empty[i], CONSUMERS * WARPGROUP / WARP);
        }
        barriers_made();
    }
    __syncthreads();
    return s;
}

template <typename Q, int N, wgmma_defect DEFECT = WGMMA_RIGHT>
__device__ inline void wgmma_product(const kn_quant_product_arguments &a, const tensor_map *weights,
                                     const tensor_map *x) {
    wgmma_shared<Q, N> *s = wgmma_begin<Q, N>(weights, x);
    if (threadIdx.x < WARPGROUP) {
        give_registers<40>();
        if (threadIdx.x == 0) wgmma_produce(a, s, weights, x);
    } else {
        take_registers<232>();
        wgmma_consumer<Q, N, DEFECT> consumer(s, threadIdx.x / WARPGROUP - 1, a.k);
        consumer.run(0, a.k / CHUNK);
        if (DEFECT != WGMMA_LOST_CONSUMER || consumer.consumer == 0) consumer.store(a);
    }
}

// A kernel of a name, by a function of this file's parameters.
#define QUANT_BY_MAPS(name, ...)                                                                   \
    extern "C" __global__ void __launch_bounds__(KN_QUANT_WGMMA_THREADS, 1)                        \
        name(const __grid_constant__ tensor_map weights, const __grid_constant__ tensor_map x,     \
             const __grid_constant__ kn_quant_product_arguments a) {                               \
        __VA_ARGS__(a, &weights, &x);                                                              \
    }
#define QUANT_WGMMA(name, ...) QUANT_BY_MAPS(name, wgmma_product<__VA_ARGS__>)
#endif
