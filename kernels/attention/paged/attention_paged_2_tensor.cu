// attention over paged sequences, step 2: fp16 and bf16 on tensor cores.
// Target: compute_80
//
// The idea: attention_3_tensor, whose copies look up the page of each row.
// Registers: on 9.0, ptxas 13.0 spills 36 bytes per thread for heads of 128 elements, and 16 for
// heads of 64.
// Owner: block (t, h, s) owns tile t of the rows of one head of sequence s, with causal the last
// tile first. Bound and requirements: as attention_tensor.cuh says, with four warps, and gridDim =
// (tiles of the longest sequence, heads, sequences); each piece of 8 elements of keys and values
// begins at a multiple of 16 bytes.
#include "../forward/attention_tensor.cuh"
#include "attention_paged.cuh"

// A thread's copies of tiles of keys and values: a piece of every STEP-th row, as those of
// attention_copier. Rows after the last position become zeros, and their pages are not looked up.
template <typename T, int D, int KEYS, int THREADS> struct paged_tiles {
    using tile_of = attention_tile<D>;
    // LOOKUPS look-ups are in flight together.
    static constexpr int STEP = THREADS / tile_of::CHUNKS, LOOKUPS = 4;
    static constexpr int TILE_BYTES = KEYS * tile_of::ROW_BYTES;
    const attention_paged_arguments &p;
    const attention_arguments &x;
    const uint64_t *pages;
    int first;                // the thread's first row of a tile
    long long k_from, v_from; // bytes from the beginning of a page to the thread's pieces
    uint32_t place;

    __device__ inline paged_tiles(const attention_arguments &x, int batch, int head,
                                  const attention_paged_arguments &p)
        : p(p), x(x), pages(pages_of(p, batch)) {
        const int thread = threadIdx.x % THREADS, chunk = thread % tile_of::CHUNKS;
        // A thread that is left over has no row of a tile.
        first = thread < STEP * tile_of::CHUNKS ? thread / tile_of::CHUNKS : KEYS;
        k_from = (long long)(paged_key<T>(p, 0, head / x.group, 0) + chunk * p.k_piece);
        v_from = (long long)(paged_value<T>(p, 0, head / x.group, 0) + chunk * p.v_piece);
        place = tile_of::at(thread / tile_of::CHUNKS, chunk);
    }
    __device__ inline void begin(int) {}
    __device__ inline void copy(int i, uint32_t to) {
#pragma unroll
        for (int begin = 0; begin < KEYS; begin += LOOKUPS * STEP) {
            uint64_t page[LOOKUPS];
#pragma unroll
            for (int c = 0; c < LOOKUPS; c++) {
                const int row = first + begin + c * STEP, position = i * KEYS + row;
                const bool there = row < KEYS && position < x.kv_length;
                page[c] = there ? pages[position >> p.page_shift] : 0;
            }
#pragma unroll
            for (int c = 0; c < LOOKUPS; c++) {
                const int row = first + begin + c * STEP;
                if (begin + c * STEP < KEYS && row < KEYS) {
                    copy_row(page[c], i * KEYS + row,
                             tile_of::template below<STEP>(to + place, begin + c * STEP));
                }
            }
        }
    }
    // What is not there is not read from anywhere: of q.
    __device__ inline void copy_row(uint64_t page, int position, uint32_t to) const {
        const bool there = position < x.kv_length;
        const T *k = (const T *)(page + k_from) + inside_page(p, position) * p.x.k_strides.row;
        const T *v = (const T *)(page + v_from) + inside_page(p, position) * p.x.v_strides.row;
        copy_async_16(to, there ? k : (const T *)p.x.q, there ? 16 : 0);
        copy_async_16(to + TILE_BYTES, there ? v : (const T *)p.x.q, there ? 16 : 0);
    }
};

template <typename T, int D, int BANDS, int KEYS>
__device__ inline void attention_paged_tensor(const attention_paged_arguments &p) {
    constexpr int WARPS = 4, QUERIES = WARPS * 16 * BANDS;
    const attention_arguments x = paged_sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    if (tile * QUERIES >= x.q_length) return;
    attention_tensor<T, D, BANDS, KEYS, WARPS, SOUND, paged_tiles<T, D, KEYS, WARPS * WARP>>(x, p);
}

#define PAGED_TENSOR(name, T, d, bands, keys, blocks)                                              \
    extern "C" __global__ void __launch_bounds__(128, blocks)                                      \
        attention_paged_tensor_##name##_##d(const __grid_constant__ attention_paged_arguments p) { \
        attention_paged_tensor<T, d, bands, keys>(p);                                              \
    }
#define PAGED_TENSOR_OF(name, T)                                                                   \
    PAGED_TENSOR(name, T, 64, 2, 128, 2)                                                           \
    PAGED_TENSOR(name, T, 96, 2, 64, 2)                                                            \
    PAGED_TENSOR(name, T, 128, 2, 64, 2)                                                           \
    PAGED_TENSOR(name, T, 256, 1, 32, 2)
PAGED_TENSOR_OF(f16, __half)
PAGED_TENSOR_OF(bf16, __nv_bfloat16)
