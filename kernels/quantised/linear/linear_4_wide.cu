// linear, step 4: quantised weights on tensor cores, for many columns.
// Target: compute_80
//
// The idea: step 3 converts a weight for eight columns, and x once for 16 rows. Here a warp has 32
// rows and 64 columns, so it uses a converted weight for 64 columns and a loaded x for two
// fragments of weights. A prologue kernel splits x into two bfloat16 numbers; cp.async brings them
// to shared memory, a quarter of a chunk at a time, three quarters ahead. A warp takes the chunks
// in the order in which step 3 gives them to its warps, and adds the same partial sums: an element
// of y is the same bits as of step 3.
// Owner: with W warps per block, block (i, j) owns rows 32 W i on (gated: 16 W i on, of both
// matrices) and columns 64 j on; warp w owns 32 (or 16) of the rows. linear_split: block (i, j)
// splits chunk i of columns 64 j on; what is beyond the last column or k is 0.
// Bound by: tensor cores, which multiply twice, and the conversion of weights.
// Requires: blockDim = (32 W, 1, 1) with W up to 8, gridDim = (rows / 32 W, or 16 W gated, columns
// / 64), rounded up; dynamic shared memory of LINEAR_WIDE_BYTES + 4 W LINEAR_WIDE_TOTALS; at
// a.split, aligned to 16 bytes, what linear_split of the same format made. linear_split: blockDim =
// (256, 1, 1), gridDim = (k / 256, columns / 64), rounded up. Alignment as in step 3.
#include "split.cuh"

enum {
    MATRICES = 2, // fragments of 16 rows that a warp has
    TILES = LINEAR_WIDE_COLUMNS / 8,
    TURNS = 2, // tiles of columns whose instructions take turns
    QUARTER_SUBS = SUBS / LINEAR_WIDE_STAGES,
    QUARTER = LINEAR_WIDE_NUMBERS / LINEAR_WIDE_STAGES,
    SUB = LINEAR_WIDE_COLUMNS * SUB_BYTES,
    UNIT = sizeof(uint4)
};

template <typename Q> __device__ inline void linear_split(const linear_arguments &a) {
    const uint32_t column = blockIdx.y * LINEAR_WIDE_COLUMNS;
    char *out =
        (char *)a.split + ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * LINEAR_WIDE_CHUNK;
    for (uint32_t i = threadIdx.x; i < SUBS * LINEAR_WIDE_COLUMNS * 4; i += LINEAR_SPLIT_THREADS) {
        const uint32_t t = i % 4, c = i / 4 % LINEAR_WIDE_COLUMNS;
        const uint32_t sub = i / 4 / LINEAR_WIDE_COLUMNS, k = blockIdx.x * CHUNK + sub * 32;
        const float *from = (const float *)a.x + (column + c) * a.x_stride + k;
        const split_eight eight = split<Q>(column + c < a.columns && k < a.k ? from : NULL, (int)t);
        uint4 *numbers = (uint4 *)(out + sub * SUB) + c * 4 + t;
        numbers[0] = eight.first;
        numbers[SUB / 2 / UNIT] = eight.second;
        if (Q::HAS_LEAST && t == 0) {
            put_sum((uint16_t *)(out + LINEAR_WIDE_NUMBERS) + c * CHUNK_SUMS, (int)sub, eight.sum);
        }
    }
}

#if __CUDA_ARCH__ >= 800
// Which chunk comes next: `shares` shares, one after the other, of every shares-th chunk.
struct order {
    uint32_t chunks, shares, share, chunk;

    __device__ inline bool has_ended() const { return chunk >= chunks; }
    // Steps on. Returns whether a share has ended.
    __device__ inline bool next() {
        chunk += shares;
        if (chunk < chunks) return false;
        share++;
        chunk = share < shares ? share : chunks;
        return true;
    }
};

// Queues the copy of quarter `quarter` of a chunk; with the first one come the chunk's sums.
template <typename Q>
__device__ inline void copy_quarter(const char *from, uint32_t numbers, uint32_t sums,
                                    uint32_t quarter) {
    for (uint32_t i = threadIdx.x * UNIT; i < QUARTER; i += blockDim.x * UNIT) {
        copy_async_16(numbers + quarter * QUARTER + i, from + quarter * QUARTER + i, UNIT);
    }
    if constexpr (Q::HAS_LEAST) {
        for (uint32_t i = threadIdx.x * UNIT; quarter == 0 && i < LINEAR_WIDE_SUMS;
             i += blockDim.x * UNIT) {
            copy_async_16(sums + i, from + LINEAR_WIDE_NUMBERS + i, UNIT);
        }
    }
}

template <typename Q>
__device__ inline void add_quarter(float (&sums)[TILES][MATRICES][4], const Q (&weights)[MATRICES],
                                   const float (&own)[MATRICES][2][4], const char *numbers,
                                   int quarter) {
    const uint32_t lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < QUARTER_SUBS; i++) {
        const int s = quarter * QUARTER_SUBS + i;
        const uint4 *of_x = (const uint4 *)(numbers + s * SUB) + lane;
        uint32_t a[MATRICES][2][4];
        float scales[MATRICES][2][2];
#pragma unroll
        for (int m = 0; m < MATRICES; m++) {
            weights[m].quants(s, a[m]);
            scales_of<Q>(scales[m], own[m], s);
        }
#pragma unroll
        for (int n = 0; n < TILES; n += TURNS) {
            uint4 first[TURNS], second[TURNS];
#pragma unroll
            for (int j = 0; j < TURNS; j++) {
                first[j] = of_x[(n + j) * WARP];
                second[j] = of_x[SUB / 2 / UNIT + (n + j) * WARP];
            }
            add_subs<Q, TURNS, MATRICES>(&sums[n], a, scales, first, second);
        }
    }
}

template <typename Q>
__device__ inline void add_minimums(float (&sums)[TILES][MATRICES][4], const Q (&weights)[MATRICES],
                                    const char *of_x) {
    const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int m = 0; m < MATRICES; m++) {
        uint32_t a[4];
        float factors[2];
        weights[m].least(a, factors, (int)t);
#pragma unroll
        for (int n = 0; n < TILES; n++) {
            const uint32_t *words = (const uint32_t *)of_x + (n * 8 + g) * CHUNK_WORDS;
            add_least(sums[n][m], a, factors, words[t], words[4 + t]);
        }
    }
}

template <bool GATED>
__device__ inline void put_tiles(const linear_arguments &a, uint32_t row, uint32_t column,
                                 const float *totals) {
    const uint32_t lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int n = 0; n < TILES; n++) {
#pragma unroll
        for (int m = 0; m < (GATED ? 1 : MATRICES); m++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t r = row + m * 16 + g + i / 2 * 8, c = column + n * 8 + 2 * t + i % 2;
                const float sum = totals[((n * MATRICES + m) * 4 + i) * WARP];
                const float gate = totals[((n * MATRICES + 1) * 4 + i) * WARP];
                if (r < a.rows && c < a.columns) put_element<GATED>(a, r, c, sum, gate);
            }
        }
    }
}

template <typename Q, typename FORMAT, bool GATED>
__device__ inline void linear_wide(const linear_arguments &a) {
    extern __shared__ uint4 shared[];
    char *numbers = (char *)shared, *sums_of_x = numbers + LINEAR_WIDE_NUMBERS;
    const uint32_t to = shared_address(numbers), sums_to = shared_address(sums_of_x);
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    float *totals = (float *)(numbers + LINEAR_WIDE_BYTES) + warp * LINEAR_WIDE_TOTALS + lane;
    const uint32_t row = (blockIdx.x * warps + warp) * (GATED ? 16 : LINEAR_WIDE_ROWS);
    const uint32_t chunks = (a.k + CHUNK - 1) / CHUNK;
    const char *split = (const char *)a.split + (uint64_t)blockIdx.y * chunks * LINEAR_WIDE_CHUNK;
    order here = {chunks, GATED ? 4u : 8u, 0, 0}, ahead = here;
    const uint8_t *rows[MATRICES][2];
    float sums[TILES][MATRICES][4] = {};
#pragma unroll
    for (int m = 0; m < MATRICES; m++) {
#pragma unroll
        for (int r = 0; r < 2; r++) { // past the last row the last is computed again
            const uint32_t index = min(row + lane / 4 + 8 * r + (GATED ? 0 : 16 * m), a.rows - 1);
            rows[m][r] = (const uint8_t *)(GATED && m == 1 ? a.gate : a.weights) +
                         index * FORMAT::row_bytes(a.k);
        }
    }
#pragma unroll
    for (int i = 0; i < MATRICES * TILES * 4; i++) totals[i * WARP] = 0;
#pragma unroll
    for (uint32_t quarter = 0; quarter < LINEAR_WIDE_STAGES - 1; quarter++) {
        copy_quarter<Q>(split, to, sums_to, quarter);
        copy_async_commit();
    }
    for (uint32_t count = 0; !here.has_ended(); count++) {
        Q weights[MATRICES];
        float own[MATRICES][2][4];
#pragma unroll
        for (int m = 0; m < MATRICES; m++) weights[m].load(rows[m], here.chunk, a.k, lane % 4);
#pragma unroll
        for (int m = 0; m < MATRICES; m++) weights[m].scales(own[m], lane % 4);
#pragma unroll
        for (int quarter = 0; quarter < LINEAR_WIDE_STAGES; quarter++) {
            copy_async_wait<LINEAR_WIDE_STAGES - 2>();
            __syncthreads(); // what was copied is there, and the quarter before is used no more
            if (quarter == 1) ahead.next();
            if (!ahead.has_ended()) {
                copy_quarter<Q>(split + (uint64_t)ahead.chunk * LINEAR_WIDE_CHUNK, to,
                                sums_to + (count + (quarter > 0)) % 2 * LINEAR_WIDE_SUMS,
                                (quarter + LINEAR_WIDE_STAGES - 1) % LINEAR_WIDE_STAGES);
            }
            copy_async_commit();
            add_quarter<Q>(sums, weights, own, numbers, quarter);
        }
        if constexpr (Q::HAS_LEAST) {
            add_minimums<Q>(sums, weights, sums_of_x + count % 2 * LINEAR_WIDE_SUMS);
        }
        if (!here.next()) continue;
#pragma unroll
        for (int i = 0; i < MATRICES * TILES * 4; i++) {
            float *sum = &sums[i / (MATRICES * 4)][i / 4 % MATRICES][i % 4];
            totals[i * WARP] += *sum;
            *sum = 0;
        }
    }
    put_tiles<GATED>(a, row, blockIdx.y * LINEAR_WIDE_COLUMNS, totals);
}

#else
template <typename Q, typename FORMAT, bool GATED>
__device__ inline void linear_wide(const linear_arguments &) {}
#endif

#define LINEAR(format, fragments)                                                                  \
    extern "C" __global__ void __launch_bounds__(LINEAR_SPLIT_THREADS)                             \
        linear_split_##format(linear_arguments a) {                                                \
        linear_split<fragments>(a);                                                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_WIDE_WARPS *WARP, 1)                       \
        linear_wide_##format(linear_arguments a) {                                                 \
        linear_wide<fragments, of_##format, false>(a);                                             \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LINEAR_WIDE_WARPS *WARP, 1)                       \
        linear_wide_gated_##format(linear_arguments a) {                                           \
        linear_wide<fragments, of_##format, true>(a);                                              \
    }
LINEAR(q8_0, fragments_q8_0)
LINEAR(q4_k, fragments_k<false>)
LINEAR(q5_k, fragments_k<true>)
LINEAR(q6_k, fragments_q6_k)
