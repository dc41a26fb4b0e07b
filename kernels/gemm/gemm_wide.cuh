// What the kernels of step 15 of gemm share: tiles by cp.async, and many elements a thread.
//
// The idea: a scheduler of a multiprocessor of 9.0 issues one instruction a cycle, and its lanes
// can do one FMA a cycle, so each other instruction costs an FMA. With 16 x 8 elements a thread
// loads 24 words for 128 FMAs, as six loads of 16 bytes; with 8 x 8, as in step 4, four loads for
// 64. Words go from device to shared memory past the registers, and addresses are sums. The words
// of a step are loaded while the previous step is multiplied, also across the end of a tile, with
// one barrier a tile.
// A step is multiplied row by row, to and fro, so that two FMAs in succession have a factor in
// common: an FMA takes three words from the registers, and their two banks seem to give one each a
// cycle. A load of 16 bytes fills registers of either bank in turn, which balances the banks if
// neighbours in a row follow each other; so tiles are turned on their way to shared memory, and not
// read along the steps, which would load registers of one bank for each step.
// Owner: the warps of a block form ROWS / (4 OWN) x 2, each with 4 OWN x 64 elements of C, the
// lanes 4 x 8. Lane (y, x) owns the rows 16 q + 4 y + (0 to 3), for q < OWN / 4, and the columns
// 4 x + (0 to 3) and 32 + 4 x + (0 to 3). y is bits 1 and 3 of the lane's number: shared memory
// serves 16 lanes of a load at once if each pair of bit 0, or each of bit 1, has one address.
// Requires: compute capability 8.0, blockDim = (ROWS / (4 OWN) * 64, 1, 1), STAGES tiles of A and B
// in dynamic shared memory, gridDim.x = tiles, gridDim.y walks the shares; rows of A, B and C at
// multiples of 16 bytes.
#pragma once

#include "gemm_words.cuh"

// TURNED: rows that a warp turns at once.
enum { COLUMNS = 128, OWN_COLUMNS = 8, TURNED = 4 };

__device__ inline float4 load_shared_4(uint32_t shared) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(shared)
                 : "memory");
    return x;
}

// Copies of 16 and of 4 bytes, if `is_wanted`: without a branch, which no instruction is moved
// across.
__device__ inline void copy_if_16(uint32_t shared, const void *global, int is_wanted) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t"
                 "@p cp.async.cg.shared.global [%0], [%1], 16;\n\t}" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(is_wanted)
                 : "memory");
}
__device__ inline void copy_if_4(uint32_t shared, const void *global, int is_wanted) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t"
                 "@p cp.async.ca.shared.global [%0], [%1], 4;\n\t}" ::"r"(shared),
                 "l"(__cvta_generic_to_global(global)), "r"(is_wanted)
                 : "memory");
}

// The same value, but one that the compiler keeps: it would compute addresses again in each tile.
__device__ inline uint32_t kept(uint32_t x) {
    return __shfl_sync(~0u, x, threadIdx.x % WARP);
}
// at += bytes, as one sum after another: the compiler would make products of them.
__device__ inline void advance(const char *&at, long long bytes) {
    asm volatile("add.s64 %0, %0, %1;" : "+l"(at) : "l"(bytes));
}

// A thread's copies of a tile of SPAN rows of op(A), or columns of op(B), which is [step][SPAN] in
// shared memory. BY_STEP: steps are contiguous in device memory, and turned by copies of 4 bytes.
// A warp copies TURNED rows at once; PITCH puts its words in different banks. Else copies have 16
// bytes, and all of a thread are of one step.
template <bool BY_STEP, int SPAN, int STEPS, int THREADS> struct wide_carrier {
    enum {
        PITCH = SPAN + TURNED,
        BYTES = PITCH * STEPS * 4,
        LANES = THREADS / STEPS,                             // threads of a step
        ALONG = WARP / TURNED,                               // steps that a warp copies at once
        BESIDE = BY_STEP ? STEPS / ALONG : SPAN / 4 / LANES, // copies of a thread in one row
        APART = BY_STEP ? THREADS / ALONG : 0,               // rows to a thread's next copies
        PASSES = BY_STEP ? SPAN / (THREADS / ALONG) : 1,
        NEXT = BY_STEP ? ALONG : LANES * 4, // elements from copy to copy
        NEXT_PLACE = BY_STEP ? ALONG * PITCH : LANES * 4
    };
    const char *source;    // of the first copy of the next tile
    long long apart, next; // bytes from pass to pass, and from the last pass to the next tile
    uint32_t place;
    int left, own_step; // rows of op(matrix) from the first copy's on; its first step
    bool is_inside;     // all rows of the tile are rows of op(matrix)

    __device__ wide_carrier(const float *matrix, long long leading, int first, int count) {
        const int lane = threadIdx.x % WARP;
        const int own =
            BY_STEP ? threadIdx.x / WARP * TURNED + lane % TURNED : threadIdx.x % LANES * 4;
        const long long row = first + own;
        own_step = BY_STEP ? lane / TURNED : threadIdx.x / LANES;
        left = count - first - own;
        is_inside = first + SPAN <= count;
        source = (const char *)(matrix +
                                (BY_STEP ? row * leading + own_step : own_step * leading + row));
        apart = APART * leading * 4;
        next = BY_STEP ? STEPS * 4 - (PASSES - 1) * apart : STEPS * leading * 4;
        place = kept((own_step * PITCH + own) * 4);
    }
    // Moves on to the next tile without a copy.
    __device__ void skip() { source += (PASSES - 1) * apart + next; }
    // Copies a tile that has no edge, if `is_wanted`, and moves on to the next.
    __device__ void copy(uint32_t stage, int is_wanted) {
        stage += place;
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
#pragma unroll
            for (int i = 0; i < BESIDE; i++) {
                const uint32_t to = stage + (pass * APART + i * NEXT_PLACE) * 4;
                if (BY_STEP) {
                    copy_if_4(to, source + i * NEXT * 4, is_wanted);
                } else {
                    copy_if_16(to, source + i * NEXT * 4, is_wanted);
                }
            }
            advance(source, pass + 1 < PASSES ? apart : next);
        }
    }
    // Copies a tile of `steps` steps or more, and does not move on. What is outside the matrix
    // becomes 0. Not unrolled: it is for edges and the first tiles.
    __device__ void copy_some(uint32_t stage, int steps) const {
        stage += place;
#pragma unroll 1
        for (int i = 0; i < PASSES * BESIDE; i++) {
            const int down = i / BESIDE * APART, along = i % BESIDE;
            const uint32_t to = stage + (down + along * NEXT_PLACE) * 4;
            const char *from = source + i / BESIDE * apart + along * NEXT * 4;
            if (BY_STEP) {
                copy_async_4(to, from, down < left && own_step + along * NEXT < steps ? 4 : 0);
            } else {
                const int count = own_step < steps ? left - along * NEXT : 0;
                copy_async_16(to, from, max(0, min(count, 4)) * 4);
            }
        }
    }
};

// Loads a thread's words of a step: N, four neighbours at a time, APART from four to four.
template <int N, int APART> __device__ inline void load_words(float (&x)[N], uint32_t at) {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const float4 four = load_shared_4(at + i / 4 * APART * 4);
        x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
}

// sum += a b^T, row by row, to and fro.
template <int OWN>
__device__ inline void multiply_step(float (&sum)[OWN][OWN_COLUMNS], const float (&a)[OWN],
                                     const float (&b)[OWN_COLUMNS]) {
#pragma unroll
    for (int i = 0; i < OWN; i++) {
#pragma unroll
        for (int l = 0; l < OWN_COLUMNS; l++) {
            const int j = i % 2 == 0 ? l : OWN_COLUMNS - 1 - l;
            sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
    }
}

template <bool TRANSPOSE_A, bool TRANSPOSE_B, int ROWS, int OWN, int STEPS, int STAGES>
__device__ inline void gemm_wide(const gemm_arguments &x) {
    constexpr int THREADS = ROWS / (4 * OWN) * 2 * WARP;
    typedef wide_carrier<!TRANSPOSE_A, ROWS, STEPS, THREADS> a_carrier;
    typedef wide_carrier<TRANSPOSE_B, COLUMNS, STEPS, THREADS> b_carrier;
    constexpr int STAGE_BYTES = a_carrier::BYTES + b_carrier::BYTES;
    extern __shared__ __align__(128) unsigned char shared[];
    const uint32_t base = kept(shared_address(shared)), end = kept(base + STAGES * STAGE_BYTES);
    const gemm_tile tile = gemm_tile_of(blockIdx.x, ceil_div(x.m, ROWS), ceil_div(x.n, COLUMNS));
    const int row = tile.row * ROWS, column = tile.column * COLUMNS;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int own_row = warp / 2 * 4 * OWN + (lane / 2 % 2 + lane / 8 % 2 * 2) * 4;
    const int own_column = warp % 2 * 64 + (lane % 2 + lane / 4 % 2 * 2 + lane / 16 * 4) * 4;
    const uint32_t of_a = kept(own_row * 4), of_b = kept(own_column * 4); // in a tile
    for (int part = blockIdx.y; part < x.batch * x.splits; part += gridDim.y) {
        const gemm_share share = gemm_share_of(x, part);
        const int tiles = ceil_div(share.k, STEPS);
        a_carrier a((const float *)x.a + share.a, x.lda, row, x.m);
        b_carrier b((const float *)x.b + share.b, x.ldb, column, x.n);
        const int whole = a.is_inside && b.is_inside ? share.k / STEPS : 0; // tiles without edges
        float sum[OWN][OWN_COLUMNS] = {};
        __syncthreads(); // all have read the stages of the previous share
#pragma unroll 1
        for (int i = 0; i < STAGES - 1; i++) {
            if (i < tiles) {
                a.copy_some(base + i * STAGE_BYTES, share.k - i * STEPS);
                b.copy_some(base + i * STAGE_BYTES + a_carrier::BYTES, share.k - i * STEPS);
            }
            a.skip();
            b.skip();
            copy_async_commit(); // an empty group too, so that groups can be counted
        }
        copy_async_wait<STAGES - 2>();
        __syncthreads(); // all see the first tile
        // The stages that are read and filled; the words of this step and the next.
        uint32_t now = base, free = base + (STAGES - 1) * STAGE_BYTES;
        float a_words[2][OWN], b_words[2][OWN_COLUMNS];
        if (tiles > 0) {
            load_words<OWN, 16>(a_words[0], now + of_a);
            load_words<OWN_COLUMNS, 32>(b_words[0], now + of_b + a_carrier::BYTES);
        }
#pragma unroll 1
        for (int i = 0; i < tiles; i++) {
            const int ahead = i + STAGES - 1;
            if (ahead >= whole && ahead < tiles) {
                a.copy_some(free, share.k - ahead * STEPS);
                b.copy_some(free + a_carrier::BYTES, share.k - ahead * STEPS);
            }
#pragma unroll
            for (int l = 0; l < STEPS; l++) {
                const int this_one = l % 2, other = 1 - this_one, next = (l + 1) % STEPS;
                if (l == 1) a.copy(free, ahead < whole);
                if (l == STEPS / 2) b.copy(free + a_carrier::BYTES, ahead < whole);
                if (next == 0) {
                    copy_async_commit();
                    copy_async_wait<STAGES - 2>();
                    __syncthreads(); // all see tile i + 1, and have tile i in registers
                    free = now;
                    now = now + STAGE_BYTES < end ? now + STAGE_BYTES : base;
                    if (i + 1 == tiles) now = free; // no next tile: read this one again
                }
                load_words<OWN, 16>(a_words[other], now + of_a + next * a_carrier::PITCH * 4);
                load_words<OWN_COLUMNS, 32>(b_words[other], now + of_b + a_carrier::BYTES +
                                                                next * b_carrier::PITCH * 4);
                multiply_step(sum, a_words[this_one], b_words[this_one]);
            }
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int r = row + own_row + i / 4 * 16 + i % 4, c = column + own_column;
            if (r >= x.m) continue;
            const long long at = part * x.batch_c + r * x.ldc + c;
            store_4(x, at, x.n - c, &sum[i][0]);
            store_4(x, at + 32, x.n - c - 32, &sum[i][4]);
        }
    }
}
