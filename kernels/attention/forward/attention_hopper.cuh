// What step 7 of attention is made of: a pipeline for compute capability 9.0 (compute_90a).
//
// The idea: warp-specialised producer and consumers. One thread of the first warpgroup, the
// producer, copies tiles of keys and values by TMA into two stages each. Two or three warpgroups,
// the consumers, own 64 rows of q each and multiply from shared memory (wgmma); weights are
// operands in registers. The scores of a tile are issued before the product with the values of the
// previous tile, so the softmax of one tile runs while the tensor cores add the other. Consumers
// take turns in issuing products: while one multiplies, the others compute their softmax. Rows of
// out are stored as TMA boxes. If a head has fewer than D elements, TMA fills the rest with zeros.
// The base of a row follows its maximum as attention_tensor.cuh says.
// Owner: block (t, h, b) owns tile t of the rows of out of one head, with causal the last tile
// first; each warp of a consumer owns 16 rows.
// Bound by: wgmma, and the exponentials.
// Requires: blockDim = (THREADS of the shape, 1, 1), gridDim = (tiles of rows, heads, batch), its
// ROOM bytes of dynamic shared memory; the maps that attention_maps.c makes; at least one key.
#pragma once

#include "../../hopper.cuh"
#include "attention.cuh"
#include "attention_tile.cuh"

#if __CUDA_ARCH__ >= 900
enum {
    STAGES = 2,
    STORE = 1, // the named barriers of consumers
    ORDER = STORE + 3
};
constexpr float HOPPER_GROWTH_MAX = 8;

// What follows the last row and the last key in the tensor maps. NOTHING: boxes are loaded with
// zeros there, and stores skip it. NEXT_SEQUENCE: see attention_packed_hopper.cuh. The others are
// planted defects of that, and of the pipeline.
enum attention_after {
    NOTHING,
    NEXT_SEQUENCE,
    NEXT_KEY_SEEN,
    NEXT_VALUES_KEPT,
    NEXT_ROWS_WRITTEN,
    NEXT_LSE_WRITTEN,
    EARLY_VALUES, // a stage of values is given back before it is multiplied
    LOST_CONSUMER // the second warpgroup of rows stores nothing
};

// How a block is made up for heads of up to D elements.
template <int D> struct attention_shape {
    static constexpr int SLABS = D / 64; // of 64 elements
    static constexpr int CONSUMERS = D == 64 ? 3 : 2, QUERIES = CONSUMERS * BOX_ROWS;
    static constexpr int KEYS = D == 256 ? 64 : 128; // of a tile
    static constexpr int SLAB = KEYS * BOX_ROW;      // bytes of 64 elements of each key
    static constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
    static constexpr int PRODUCER_REGISTERS = CONSUMERS == 3 ? 32 : 24;
    static constexpr int CONSUMER_REGISTERS = CONSUMERS == 3 ? 160 : 240;
    static constexpr int ROOM = SLABS * (CONSUMERS * BOX + 2 * STAGES * SLAB) + 2048;
};

template <int D> struct attention_hopper_shared {
    using shape = attention_shape<D>;
    alignas(1024) uint8_t q[shape::CONSUMERS][shape::SLABS][BOX]; // then the rows of out
    alignas(1024) uint8_t k[STAGES][shape::SLABS][shape::SLAB],
        v[STAGES][shape::SLABS][shape::SLAB];
    alignas(8) uint64_t q_full, k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
    uint64_t v_cut; // the last tile of values is here, and the next sequence's are in it
};

// The tile of rows that a block owns.
struct attention_place {
    int head, batch, first; // the first row
    int past;               // with causal row r sees keys up to r + past
    int begin;              // the first tile of keys that some row sees
    int tiles;              // how many tiles from there on
    int map_row, map_key;   // where row 0 and key 0 are in the maps
};

template <int D>
__device__ inline int attention_tiles(const attention_arguments &x, int past, int rows) {
    int seen = x.kv_length;
    if (x.causal) seen = min(seen, max(0, min(rows, x.q_length) + past));
    return ceil_div(seen, attention_shape<D>::KEYS);
}

// The first tile that this row or a later one sees.
template <int D>
__device__ inline int attention_first_tile(const attention_arguments &x, int past, int row) {
    return x.causal ? max(0, row + 1 + past - x.window) / attention_shape<D>::KEYS : 0;
}

template <int D>
__device__ inline attention_place attention_place_of(const attention_arguments &x, int map_row,
                                                     int map_key) {
    enum { QUERIES = attention_shape<D>::QUERIES };
    const int tile = x.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // the longest tiles first
    const int first = tile * QUERIES, past = x.kv_length - x.q_length;
    const int end = attention_tiles<D>(x, past, first + QUERIES);
    const int begin = min(end, attention_first_tile<D>(x, past, first));
    return {(int)blockIdx.y, (int)blockIdx.z, first, past, begin, end - begin, map_row, map_key};
}

// Sequences are no batches of the maps.
template <attention_after AFTER> __device__ inline int map_batch(const attention_place &place) {
    return AFTER == NOTHING ? place.batch : 0;
}

// Whether tile i of the block's keys ends with keys of the next sequence.
template <int D, attention_after AFTER>
__device__ inline bool attention_is_cut(const attention_arguments &x, const attention_place &place,
                                        int i) {
    return AFTER != NOTHING && AFTER != NEXT_VALUES_KEPT &&
           (place.begin + i + 1) * attention_shape<D>::KEYS > x.kv_length;
}

template <int D, attention_after AFTER>
__device__ inline void attention_load_rows(const attention_arguments &x,
                                           attention_hopper_shared<D> *s, const tensor_map *q,
                                           const attention_place &place) {
    enum { SLABS = attention_shape<D>::SLABS, CONSUMERS = attention_shape<D>::CONSUMERS };
    barrier_expect(&s->q_full, sizeof s->q);
#pragma unroll
    for (int i = 0; i < CONSUMERS * SLABS; i++) {
        // A box that would begin after the last row is a copy of the first box: none of it is
        // stored.
        const int below = place.first + i / SLABS * BOX_ROWS;
        load_box(q, s->q[i / SLABS][i % SLABS], &s->q_full, i % SLABS * 64,
                 place.map_row + (below < x.q_length ? below : place.first), place.head,
                 map_batch<AFTER>(place));
    }
}

template <int D, attention_after AFTER>
__device__ inline void
attention_produce(const attention_arguments &x, attention_hopper_shared<D> *s, const tensor_map *q,
                  const tensor_map *k, const tensor_map *v, const attention_place &place) {
    using shape = attention_shape<D>;
    enum { SLABS = shape::SLABS, KEYS = shape::KEYS, SLAB = shape::SLAB };
    const int kv_head = place.head / x.group;
    attention_load_rows<D, AFTER>(x, s, q, place);
#pragma unroll 1
    for (int i = 0; i < place.tiles; i++) {
        const int stage = i % STAGES, parity = i / STAGES % 2 ^ 1;
        const int key = place.map_key + (place.begin + i) * KEYS;
        uint64_t *v_full = attention_is_cut<D, AFTER>(x, place, i) ? &s->v_cut : &s->v_full[stage];
        barrier_wait(&s->k_empty[stage], parity);
        barrier_expect(&s->k_full[stage], SLABS * SLAB);
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            load_box(k, s->k[stage][j], &s->k_full[stage], j * 64, key, kv_head,
                     map_batch<AFTER>(place));
        }
        barrier_wait(&s->v_empty[stage], parity);
        barrier_expect(v_full, SLABS * SLAB);
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            load_box(v, s->v[stage][j], v_full, j * 64, key, kv_head, map_batch<AFTER>(place));
        }
    }
}

// Makes zeros of the values of the next sequence in the last tile, as the map does where nothing
// follows: their weights are 0, and 0 times NaN or infinity is NaN. By the first warp, which
// then gives the tile to the consumers.
template <int D, attention_after AFTER>
__device__ inline void attention_cut_values(const attention_arguments &x,
                                            attention_hopper_shared<D> *s,
                                            const attention_place &place) {
    using shape = attention_shape<D>;
    const int last = place.tiles - 1, stage = last % STAGES;
    if (last < 0 || !attention_is_cut<D, AFTER>(x, place, last)) return;
    const int own = (x.kv_length - (place.begin + last) * shape::KEYS) * BOX_ROW; // bytes
    barrier_wait(&s->v_cut, 0);
#pragma unroll
    for (int j = 0; j < shape::SLABS; j++) {
        for (int at = own + threadIdx.x * 16; at < shape::SLAB; at += WARP * 16) {
            *(uint4 *)(s->v[stage][j] + at) = make_uint4(0, 0, 0, 0);
        }
    }
    fence_copies();
    __syncwarp();
    if (threadIdx.x == 0) barrier_arrive(&s->v_full[stage]);
}

// The rows of a consumer. A thread holds, of the 16 rows of its warp, rows lane / 4 and lane / 4 +
// 8, under index 0 and 1.
template <typename T, int D, attention_after AFTER, typename E, typename OUT>
struct attention_consumer {
    using shape = attention_shape<D>;
    enum { SLABS = shape::SLABS, CONSUMERS = shape::CONSUMERS, KEYS = shape::KEYS };
    attention_hopper_shared<D> *s;
    const attention_arguments &x;
    int consumer, first, past; // the first row of the thread
    int key_begin;             // the first key of the block's tiles
    float sums[D / 2], scores[KEYS / 2], base[2], total[2], grown[2];
    uint32_t weights[KEYS / 4];
    float value_scale; // of elements of 8 bits

    // Scores get no values, which would be written between the fence and the first product.
    __device__ inline attention_consumer(attention_hopper_shared<D> *s_,
                                         const attention_arguments &x_, int consumer_, int first_,
                                         const attention_place &place)
        : s(s_), x(x_), consumer(consumer_), first(first_), past(place.past),
          key_begin(place.begin * KEYS) {
#pragma unroll
        for (int e = 0; e < D / 2; e++) sums[e] = 0;
        base[0] = base[1] = -INFINITE;
        total[0] = total[1] = 0;
    }

    // scores = q k^T; not waited for.
    __device__ inline void multiply_keys(int stage) {
#pragma unroll
        for (int step = 0; step < D * (int)sizeof(E) / 32; step++) {
            const uint64_t inside = step % 4 * factor_step<true>();
            product<E, KEYS>::template add<true, true>(
                scores, factor_of<true>(s->q[consumer][step / 4]) + inside,
                factor_of<true>(s->k[stage][step / 4]) + inside, step > 0);
        }
        wgmma_commit();
    }

    // sums += weights v; not waited for.
    __device__ inline void add_values(int stage) {
        const uint64_t values = factor_of<false, KEYS>(s->v[stage][0]);
#pragma unroll
        for (int step = 0; step < KEYS / 16; step++) {
            product<T, D>::template add_part<false>(sums, weights + step * 4,
                                                    values + step * factor_step<false>());
        }
        wgmma_commit();
    }

    __device__ inline int keys_end() const {
        return AFTER == NEXT_KEY_SEEN ? x.kv_length + 1 : x.kv_length;
    }

    // Turns the scores of the tile that begins with `key` into weights over the row's base, which
    // follows the maximum, and adds them up. grown: the factor of older sums.
    __device__ inline void weigh(int key) {
        const int row = first - (int)threadIdx.x % WARP / 4; // the first of the warp
        const bool is_edge = key + KEYS > row + past + 1 || key < row + 16 + past - x.window;
        if (key + KEYS > keys_end() || (x.causal && is_edge)) {
#pragma unroll
            for (int e = 0; e < KEYS / 2; e++) {
                const int of_key = key + e / 4 * 8 + threadIdx.x % 4 * 2 + e % 2;
                const int of_row = first + e % 4 / 2 * 8;
                // One comparison: as an unsigned number, the distance of a key after the row's
                // last is huge.
                const unsigned back = of_row + past - of_key;
                const bool sees = of_key < keys_end() && (!x.causal || back < (unsigned)x.window);
                if (!sees) scores[e] = -INFINITE;
            }
        }
        float most[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float m = -INFINITE;
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++) {
                m = fmaxf(m, fmaxf(scores[c * 4 + 2 * h], scores[c * 4 + 2 * h + 1]));
            }
            m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
            m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
            most[h] = fmaxf(base[h], m * x.scale_log2);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            // Each row by itself: its bits do not depend on the rows beside it.
            const bool grows = most[h] > base[h] + HOPPER_GROWTH_MAX;
            grown[h] = grows ? exp2_approximate(base[h] - finite_base(most[h])) : 1;
            base[h] = grows ? most[h] : base[h];
            total[h] *= grown[h];
            const float taken = finite_base(base[h]);
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++) {
#pragma unroll
                for (int e = c * 4 + 2 * h; e < c * 4 + 2 * h + 2; e++) {
                    scores[e] = exp2_approximate(fmaf(scores[e], x.scale_log2, -taken));
                    total[h] += scores[e];
                }
            }
        }
    }

    // Scales the sums, and rounds the weights for the next product. The registers of both are
    // written before the fence that precedes it.
    __device__ inline void settle() {
        if (grown[0] != 1 || grown[1] != 1) {
#pragma unroll
            for (int e = 0; e < D / 2; e++) sums[e] *= grown[e % 4 / 2];
        }
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) weights[i] = pack<T>(scores[2 * i], scores[2 * i + 1]);
        hold(sums);
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) asm volatile("" : "+r"(weights[i])::"memory");
    }

    __device__ inline void release(uint64_t *empty) {
        if (threadIdx.x % WARPGROUP == 0) barrier_arrive(empty);
    }

    // Consumers issue products in turn: each takes one turn per tile of keys of the block, 0 first,
    // and 0 once more at the end. A consumer waits at its own named barrier.
    __device__ inline void begin_turns() {
        if (consumer == CONSUMERS - 1) named_barrier_arrive(ORDER, 2 * WARPGROUP);
    }
    __device__ inline void take_turn() {
        named_barrier(ORDER + consumer, 2 * WARPGROUP);
    }
    __device__ inline void give_turn() {
        named_barrier_arrive(ORDER + (consumer + 1) % CONSUMERS, 2 * WARPGROUP);
    }
    __device__ inline void end_turns() {
        if (consumer == 0) take_turn();
    }

    // The tiles of the block from `from` to `tiles`, which the consumer's rows see. The wait for
    // the values of a tile precedes the wait for the running products. It is a loop, so it ends
    // the basic block: ptxas moves a wait for products to the start of its basic block, and
    // without the loop that would be before the exponentials.
    __device__ inline void attend(int from, int tiles) {
        const int place = from % STAGES;
        barrier_wait(&s->k_full[place], from / STAGES % 2);
        take_turn();
        wgmma_fence();
        multiply_keys(place);
        give_turn();
        wgmma_wait<0>();
        hold(scores);
        release(&s->k_empty[place]);
        weigh(key_begin + from * KEYS);
        barrier_wait(&s->v_full[place], from / STAGES % 2);
        settle();
#pragma unroll 1
        for (int i = from + 1; i < tiles; i++) {
            const int stage = i % STAGES, before = (i - 1) % STAGES;
            const bool is_early = AFTER == EARLY_VALUES && i + 1 < tiles;
            barrier_wait(&s->k_full[stage], i / STAGES % 2);
            if (is_early) { // and filled again
                release(&s->v_empty[before]);
                barrier_wait(&s->v_full[before], (i + 1) / STAGES % 2);
            }
            take_turn();
            wgmma_fence();
            multiply_keys(stage);
            add_values(before);
            give_turn();
            wgmma_wait<1>();
            hold(scores);
            release(&s->k_empty[stage]);
            weigh(key_begin + i * KEYS);
            hold(scores);
            barrier_wait(&s->v_full[stage], i / STAGES % 2);
            wgmma_wait<0>();
            hold(sums);
            if (!is_early) release(&s->v_empty[before]);
            settle();
        }
        wgmma_fence();
        add_values((tiles - 1) % STAGES);
        wgmma_wait<0>();
        hold(sums);
        release(&s->v_empty[(tiles - 1) % STAGES]);
    }

    // Tiles that only rows of other consumers see.
    __device__ inline void pass(int from, int of_block) {
        for (int i = from; i < of_block; i++) {
            barrier_wait(&s->k_full[i % STAGES], i / STAGES % 2);
            take_turn();
            give_turn();
            release(&s->k_empty[i % STAGES]);
            barrier_wait(&s->v_full[i % STAGES], i / STAGES % 2);
            release(&s->v_empty[i % STAGES]);
        }
    }

    __device__ inline void store(const tensor_map *out, const attention_place &place) {
        const int lane = threadIdx.x % WARP, down = threadIdx.x % WARPGROUP / WARP * 16 + lane / 4;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float all = total[h];
            all += __shfl_xor_sync(~0u, all, 1);
            all += __shfl_xor_sync(~0u, all, 2);
            const float share = sizeof(E) == 1 ? share_of(all) * value_scale : share_of(all);
            if (lane % 4 == 0 && (first + h * 8 < x.q_length || AFTER == NEXT_LSE_WRITTEN)) {
                store_lse(x, place.batch, place.head, first + h * 8, base[h], all);
            }
#pragma unroll
            for (int c = 0; c < D / 8; c++) {
                uint8_t *row = s->q[consumer][c / 8] + (down + h * 8) * BOX_ROW;
                *(uint32_t *)(row + (c % 8 ^ lane / 4) * 16 + lane % 4 * 4) =
                    pack<OUT>(sums[c * 4 + 2 * h] * share, sums[c * 4 + 2 * h + 1] * share);
            }
        }
        fence_copies();
        named_barrier(STORE + consumer, WARPGROUP);
        const int row = place.first + consumer * BOX_ROWS;
        const bool is_whole = row + BOX_ROWS <= x.q_length || AFTER == NEXT_ROWS_WRITTEN;
        if (AFTER != NOTHING && !is_whole) {
            store_part(place, row);
            return;
        }
        if (threadIdx.x % WARPGROUP != 0 || row >= x.q_length) return;
#pragma unroll
        for (int j = 0; j < SLABS; j++) {
            store_box(out, s->q[consumer][j], j * 64, place.map_row + row, place.head,
                      map_batch<AFTER>(place));
        }
        wait_boxes_read<0>();
    }

    // Of a box that would end in the next sequence, the rows from `row` on that are not its.
    __device__ inline void store_part(const attention_place &place, int row) {
        enum { PIECES = BOX_ROW / 16, LENGTH = 16 / sizeof(OUT) };
        const int thread = threadIdx.x % WARPGROUP, piece = thread % PIECES;
        for (int down = thread / PIECES; row + down < x.q_length; down += WARPGROUP / PIECES) {
            T *to =
                (T *)attention_row<T>(x.out, x.out_strides, place.batch, place.head, row + down);
#pragma unroll
            for (int j = 0; j < SLABS; j++) {
                const int column = j * 64 + piece * LENGTH;
                const uint8_t *from = s->q[consumer][j] + down * BOX_ROW + (piece ^ down % 8) * 16;
                if (column < x.head_size) *(uint4 *)(to + column) = *(const uint4 *)from;
            }
        }
    }
};

// Keys and values that maps describe as rows: one thread copies their boxes.
struct attention_boxes_in_rows {
    static __device__ inline bool copies() { return threadIdx.x == 0; }
    template <int D> __device__ inline void make_barriers(attention_hopper_shared<D> *) const {}
    __device__ inline float value_scale() const { return 1; }
    template <int D, attention_after AFTER>
    __device__ inline void produce(const attention_arguments &x, attention_hopper_shared<D> *s,
                                   const tensor_map *q, const tensor_map *k, const tensor_map *v,
                                   const attention_place &place) const {
        attention_produce<D, AFTER>(x, s, q, k, v, place);
    }
};

// boxes: which threads of the first warpgroup copy, and how. T: of weights and values; E: of q and
// k.
template <typename T, int D, attention_after AFTER = NOTHING,
          typename BOXES = attention_boxes_in_rows, typename E = T, typename OUT = T>
__device__ inline void attention_hopper(const attention_arguments &x, const tensor_map *q,
                                        const tensor_map *k, const tensor_map *v,
                                        const tensor_map *out, int map_row = 0, int map_key = 0,
                                        const BOXES &boxes = {}) {
    using shape = attention_shape<D>;
    static_assert(sizeof(attention_hopper_shared<D>) + 1024 <= shape::ROOM, "it fits");
    extern __shared__ uint8_t room[];
    attention_hopper_shared<D> *s = reinterpret_cast<attention_hopper_shared<D> *>(
        room + (1024 - shared_address(room) % 1024) % 1024);
    if (threadIdx.x == 0) {
        prefetch_map(q);
        prefetch_map(k);
        prefetch_map(v);
        prefetch_map(out);
        barrier_make(&s->q_full, 1);
        if (AFTER != NOTHING) barrier_make(&s->v_cut, 1);
        for (int i = 0; i < STAGES; i++) {
            barrier_make(&s->k_full[i], 1);
            barrier_make(&s->v_full[i], 1);
            barrier_make(&s->k_empty[i], shape::CONSUMERS);
            barrier_make(&s->v_empty[i], shape::CONSUMERS);
        }
        boxes.make_barriers(s);
        barriers_made();
    }
    __syncthreads();
    const attention_place place = attention_place_of<D>(x, map_row, map_key);
    if (threadIdx.x < WARPGROUP) {
        give_registers<shape::PRODUCER_REGISTERS>();
        if (BOXES::copies()) boxes.template produce<D, AFTER>(x, s, q, k, v, place);
        if (AFTER != NOTHING && threadIdx.x < WARP) {
            __syncwarp();
            attention_cut_values<D, AFTER>(x, s, place);
        }
    } else {
        take_registers<shape::CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / WARPGROUP - 1, thread = threadIdx.x % WARPGROUP;
        const int above = place.first + consumer * BOX_ROWS;
        const int end = attention_tiles<D>(x, place.past, above + BOX_ROWS) - place.begin;
        const int tiles = max(0, min(place.tiles, end));
        const int from = min(tiles, attention_first_tile<D>(x, place.past, above) - place.begin);
        attention_consumer<T, D, AFTER, E, OUT> rows(
            s, x, consumer, above + thread / WARP * 16 + thread % WARP / 4, place);
        rows.value_scale = boxes.value_scale();
        barrier_wait(&s->q_full, 0);
        rows.begin_turns();
        rows.pass(0, from);
        if (tiles > from) rows.attend(from, tiles);
        rows.pass(tiles, place.tiles);
        rows.end_turns();
        if (AFTER != LOST_CONSUMER || consumer != 1) rows.store(out, place);
    }
}
#endif
