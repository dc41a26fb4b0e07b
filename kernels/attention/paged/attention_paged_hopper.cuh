// attention over paged sequences by the pipeline of attention_hopper.cuh.
//
// The idea: the tensor maps of k and v describe a page at each unit of the pool, so the address
// that the page table gives selects the box: a page, or a tile of keys if pages are larger. Each
// lane of the first warp copies one box of each tile of keys, and one of values. Keys after the
// last position are masked, and values become zeros in shared memory. The rest is as in
// attention_packed_hopper.cuh, so the bits are those of attention_7_hopper for the same keys in
// rows.
// Owner: block (t, h, s) owns tile t of the rows of one head of sequence s, with causal the last
// tile first. Bound and requirements: as attention_hopper.cuh says, except that a sequence may
// have no key, and gridDim = (tiles of the longest sequence, heads, sequences); a page has 16
// positions or more.
#pragma once

#include "../forward/attention_hopper.cuh"
#include "attention_paged.cuh"

#if __CUDA_ARCH__ >= 900
// Planted defects, one per kernel, of attention_paged_defects.cu.
enum paged_defect {
    PAGED_RIGHT,
    PAGED_NEXT_PAGE, // the page after a box's own is taken
    PAGED_OLD_PAGE   // when a stage is reused, the page that it had before
};

template <paged_defect DEFECT> struct paged_boxes {
    const attention_paged_arguments &p;
    const uint64_t *pages;

    static __device__ inline bool copies() { return threadIdx.x < WARP; }
    template <int D> __device__ inline void make_barriers(attention_hopper_shared<D> *) const {}
    __device__ inline float value_scale() const { return 1; }
    // The place of a page along the maps; after their last unit if it is not in the pool.
    __device__ inline int unit_of(uint64_t page) const {
        const uint64_t unit = (page - (uint64_t)p.pool) / ATTENTION_PAGE_UNIT;
        return (int)min(unit, (uint64_t)p.units);
    }

    template <int D, attention_after AFTER>
    __device__ inline void produce(const attention_arguments &x, attention_hopper_shared<D> *s,
                                   const tensor_map *q, const tensor_map *k, const tensor_map *v,
                                   const attention_place &place) const {
        using shape = attention_shape<D>;
        enum { SLABS = shape::SLABS, KEYS = shape::KEYS, SLAB = shape::SLAB };
        static_assert(SLABS * KEYS / 16 <= WARP, "a lane copies a box");
        const int kv_head = place.head / x.group, box = min(1 << p.page_shift, (int)KEYS);
        const int slab = threadIdx.x % SLABS, down = threadIdx.x / SLABS * box; // the lane's box
        const bool is_leader = threadIdx.x == 0;
        if (is_leader) attention_load_rows<D, AFTER>(x, s, q, place);
#pragma unroll 1
        for (int i = 0; i < place.tiles; i++) {
            const int stage = i % STAGES, parity = i / STAGES % 2 ^ 1;
            const int key = (place.begin + i) * KEYS + down;
            uint64_t *v_full =
                attention_is_cut<D, AFTER>(x, place, i) ? &s->v_cut : &s->v_full[stage];
            // A box that would begin after the last page is a copy of that page: its keys are
            // masked, and its values become zeros.
            const bool is_old = DEFECT == PAGED_OLD_PAGE && i >= STAGES;
            const int sought = min(is_old ? key - STAGES * KEYS : key, x.kv_length - 1);
            const int unit =
                unit_of(pages[(sought >> p.page_shift) + (DEFECT == PAGED_NEXT_PAGE ? 1 : 0)]);
            barrier_wait(&s->k_empty[stage], parity);
            if (is_leader) barrier_expect(&s->k_full[stage], SLABS * SLAB);
            __syncwarp(); // bytes are expected before they come
            if (down < KEYS) {
                load_box(k, s->k[stage][slab] + down * BOX_ROW, &s->k_full[stage], slab * 64,
                         inside_page(p, key), kv_head, unit);
            }
            barrier_wait(&s->v_empty[stage], parity);
            if (is_leader) barrier_expect(v_full, SLABS * SLAB);
            __syncwarp(); // bytes are expected before they come
            if (down < KEYS) {
                load_box(v, s->v[stage][slab] + down * BOX_ROW, v_full, slab * 64,
                         inside_page(p, key), kv_head, unit);
            }
        }
    }
};

template <typename T, int D, attention_after AFTER, paged_defect DEFECT>
__device__ inline void attention_paged_hopper(const attention_paged_arguments &p,
                                              const tensor_map *q, const tensor_map *k,
                                              const tensor_map *v, const tensor_map *out) {
    const attention_arguments x = paged_sequence_of<T>(p, blockIdx.z, blockIdx.y);
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    if (tile * attention_shape<D>::QUERIES >= x.q_length) return;
    const packed_rows rows = packed_rows_of(p.q_begins, blockIdx.z, p.q_rows, p.x.q_length);
    const paged_boxes<DEFECT> boxes = {p, pages_of(p, blockIdx.z)};
    attention_hopper<T, D, AFTER>(x, q, k, v, out, rows.begin, 0, boxes);
}

#define PAGED_HOPPER(name, T, D, AFTER, DEFECT)                                                   \
    extern "C" __global__ void __launch_bounds__(attention_shape<D>::THREADS, 1)                   \
        attention_paged_##name(                                                                    \
            const __grid_constant__ tensor_map q, const __grid_constant__ tensor_map k,            \
            const __grid_constant__ tensor_map v, const __grid_constant__ tensor_map out,          \
            const __grid_constant__ attention_paged_arguments p) {                                 \
        attention_paged_hopper<T, D, AFTER, DEFECT>(p, &q, &k, &v, &out);                         \
    }
#endif
