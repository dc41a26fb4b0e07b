// quant product, step 7: one column of Q4_K with persistent thread blocks and bulk copies.
// Target: compute_90
//
// The idea: each warp has a ring of weights in shared memory. As soon as the warp has read a slot,
// one lane issues the bulk copy that refills it. So a multiprocessor has most of its weights in
// flight before x has been rounded, and no registers hold them. x is requested before the weights,
// since memory serves requests in their order.
// Owner: a warp owns two neighbouring rows at a time, which use the same loads of x, and then the
// rows that follow by 2 * warps of the grid.
// Bound by: reads of the weights.
// Requires: blockDim = (STAGED_THREADS, 1, 1), gridDim.x at most the multiprocessors,
// KN_QUANT_BULK_RING_BYTES and the bytes of x of dynamic shared memory; weights and x at multiples
// of 16 bytes. It may be launched by PDL.
#include "../../bulk.cuh"
#include "quant_product_staged.cuh"

#if __CUDA_ARCH__ >= 900
enum {
    ROWS = KN_QUANT_BULK_ROWS,
    SLOTS = KN_QUANT_BULK_SLOTS,
    STEP = WARP / 4,                // blocks of a row at a time: a lane owns a group of one
    STEP_BYTES = STEP * Q4_K_BYTES, // of one row
    SLOT_BYTES = ROWS * STEP_BYTES, // a slot of the ring
    EIGHTS = 4                      // of x that a thread requests at once
};
static_assert(STAGED_WARPS * SLOTS * SLOT_BYTES == KN_QUANT_BULK_RING_BYTES, "as the host has it");

// The state of a warp's ring: the next bytes of its rows to request, and the slot that receives
// them.
struct bulk_ring {
    const kn_quant_product_arguments &a;
    uint8_t *slots;
    uint64_t *arrived;
    uint32_t pair, stride, block; // the next to request
    uint32_t slot, parity;

    __device__ inline const uint8_t *row(uint32_t p, uint32_t r) const {
        return (const uint8_t *)a.weights +
               (uint64_t)min(p * ROWS + r, a.rows - 1) * a.blocks * Q4_K_BYTES;
    }

    // Requests the bytes of the current slot, and moves on to the next slot.
    __device__ inline void ask() {
        if (block < a.blocks && pair * ROWS < a.rows) {
            if (threadIdx.x % WARP == 0) {
                const uint32_t bytes = min(a.blocks - block, (uint32_t)STEP) * Q4_K_BYTES;
                barrier_expect(&arrived[slot], ROWS * bytes);
#pragma unroll
                for (uint32_t r = 0; r < ROWS; r++) {
                    copy_bulk(slots + slot * SLOT_BYTES + r * STEP_BYTES,
                              row(pair, r) + (uint64_t)block * Q4_K_BYTES, bytes, &arrived[slot]);
                }
            }
            block += STEP;
            if (block >= a.blocks) {
                block = 0;
                pair += stride;
            }
        }
        slot = slot + 1 == SLOTS ? 0 : slot + 1;
        parity ^= slot == 0;
    }

    // The current slot, once it is full.
    __device__ inline const uint8_t *wait() const {
        barrier_wait(&arrived[slot], parity);
        return slots + slot * SLOT_BYTES;
    }
};

// Prefetches the first requests of the ring to L2 while the previous kernel ends.
__device__ inline void ask_early(const bulk_ring &ring) {
    if (threadIdx.x % WARP != 0 || ring.pair * ROWS >= ring.a.rows) return;
    const uint32_t bytes = min(ring.a.blocks, (uint32_t)(SLOTS * STEP)) * Q4_K_BYTES;
    if (bytes == 0) return;
#pragma unroll
    for (uint32_t r = 0; r < ROWS; r++) prefetch_bulk(ring.row(ring.pair, r), bytes);
}

// Brings x into shared memory. The first loads of x are issued before the ring requests weights.
__device__ inline void stage_and_ask(const staged_x &x, const float *from, bulk_ring &ring) {
    uint4 parts[EIGHTS][2];
    for (uint32_t first = threadIdx.x;; first += EIGHTS * STAGED_THREADS) {
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            const uint32_t i = first + e * STAGED_THREADS;
            if (i >= x.items * 8) continue;
            parts[e][0] = load_global_16(from + (size_t)8 * i);
            parts[e][1] = load_global_16(from + (size_t)8 * i + 4);
        }
        if (first == threadIdx.x) {
#pragma unroll 1
            for (int i = 0; i < SLOTS; i++) ring.ask();
            ring.parity = 0;
        }
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
            const uint32_t i = first + e * STAGED_THREADS;
            if (i < x.items * 8) stage_eight(x, i, parts[e][0], parts[e][1]);
        }
        if (first + EIGHTS * STAGED_THREADS >= x.items * 8) break;
    }
}

__device__ inline void bulk_product(const kn_quant_product_arguments &a) {
    __shared__ uint64_t arrived[STAGED_WARPS][SLOTS];
    extern __shared__ int4 shared[];
    const uint32_t lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const staged_x x((char *)shared + KN_QUANT_BULK_RING_BYTES, a.k);
    const staged_group group(lane % 4);
    const uint32_t stride = gridDim.x * STAGED_WARPS;
    bulk_ring ring = {a,
                      (uint8_t *)shared + warp * SLOTS * SLOT_BYTES,
                      arrived[warp],
                      warp * gridDim.x + blockIdx.x,
                      stride,
                      0,
                      0,
                      0};
    ask_early(ring);
    let_next_begin();
    if (lane == 0) {
#pragma unroll 1
        for (int i = 0; i < SLOTS; i++) barrier_make(&arrived[warp][i], 1);
        barriers_made();
    }
    __syncwarp();
    wait_for_kernel_in_front();
    stage_and_ask(x, (const float *)a.x, ring);
    __syncthreads();
    for (uint32_t pair = warp * gridDim.x + blockIdx.x; pair * ROWS < a.rows; pair += stride) {
        float sums[ROWS] = {};
        for (uint32_t block = lane / 4; block - lane / 4 < a.blocks; block += STEP) {
            const uint8_t *from = ring.wait() + lane / 4 * Q4_K_BYTES;
            staged_item items[ROWS];
            if (block < a.blocks) {
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    items[r].load_shared(from + r * STEP_BYTES, group.index);
                }
            }
            __syncwarp(); // all lanes have read the slot
            ring.ask();
            if (block < a.blocks) add(sums, items, x, block * 4 + group.index, group);
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float sum = warp_sum(sums[r]);
            const uint32_t row = pair * ROWS + r;
            if (lane == 0 && row < a.rows) ((float *)a.y)[row] = sum;
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(STAGED_THREADS, 1)
    quant_product_bulk(kn_quant_product_arguments a) {
#if __CUDA_ARCH__ >= 900
    bulk_product(a);
#endif
}
