// What softmax_7_cluster_ring and norm_8_cluster_ring share: clusters that stay on their
// multiprocessors and go from row to row, with the next rows on their way into shared memory.
//
// Each block has a ring of stages for its share of a row. One thread issues the bulk copy that
// refills a stage once the block has the stage's pieces in registers, which the barrier of the
// row's first reduction shows. So while a row is reduced, exchanged and stored, the following ones
// arrive.
#pragma once

#include "row_cluster.cuh"

// Stages of a ring at most: row_variant.c gives no more shared memory.
constexpr int CLUSTER_RING_STAGES = 3;

// One defect a kernel, for softmax_ring_planted.cu. What a defect does not wait for comes as late as
// it may: behind the read. So the read is wrong on every device, and not only where it wins a race.
enum ring_defect {
    RING_RIGHT,
    RING_EARLY_RELEASE, // a stage is refilled before its pieces are in registers
    RING_WRONG_PHASE,   // a stage is read behind a wait for the phase before
    RING_NO_WAIT,       // a stage is read without a wait for its copy
    RING_NO_MEETING     // a block does not wait for the numbers of the others
};

#if __CUDA_ARCH__ >= 900
// cluster_sync in two parts.
__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Stores to the same place of the shared memory of the block of this rank.
__device__ inline void store_to_block(const float2 *place, uint32_t rank, float2 value) {
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "st.shared::cluster.v2.f32 [remote], {%2, %3};\n}" ::"r"(shared_address(place)),
                 "r"(rank), "f"(value.x), "f"(value.y)
                 : "memory");
}

// Waits as barrier_wait does, but gives up: the wait for a wrong phase might not end.
__device__ inline void barrier_wait_briefly(uint64_t *barrier, uint32_t parity) {
    uint32_t is_over = 0;
    for (int i = 0; i < 1000 && is_over == 0; i++) {
        asm volatile("{\n.reg .pred over;\n"
                     "mbarrier.test_wait.parity.shared.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n}"
                     : "=r"(is_over)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    }
}

__device__ inline int dynamic_shared_bytes() {
    int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

// As cluster_exchange, but a block writes its numbers into the shared memory of all, which then
// read their own: no read crosses the cluster, and a block may end after its last exchange. All
// blocks must have begun before the first one.
template <int BLOCKS, ring_defect DEFECT = RING_RIGHT> struct cluster_meeting {
    float2 (*places)[BLOCKS]; // two of them, in shared memory
    int turn;

    __device__ inline void of(float2 (&all)[BLOCKS], float2 mine) {
        const float2 *place = places[turn];
        turn ^= 1;
        if (DEFECT == RING_NO_MEETING) return of_late(all, mine, place);
        if (threadIdx.x < BLOCKS) store_to_block(place + cluster_rank(), threadIdx.x, mine);
        cluster_sync();
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) all[i] = place[i];
    }

private:
    // The defect: the places are read before the other blocks have written them.
    __device__ inline void of_late(float2 (&all)[BLOCKS], float2 mine, const float2 *place) const {
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) all[i] = i == (int)cluster_rank() ? mine : place[i];
        cluster_sync();
        if (threadIdx.x < BLOCKS) store_to_block(place + cluster_rank(), threadIdx.x, mine);
        cluster_sync();
    }
};

// The ring of a block. `kept` shares of a row lie behind the stages.
template <typename T, int PIECES, int BLOCKS, ring_defect DEFECT = RING_RIGHT> struct cluster_ring {
    const T *in; // this block's share of row 0
    long long in_stride, rows, row, next, step;
    int first, count, each; // pieces: those of this block, and of a stage
    int stages, slot;
    uint32_t parity;
    bool is_held; // the current stage is in registers and not refilled yet
    uint4 *slots;
    uint64_t *arrived; // a barrier a stage, and one for what is kept

    template <typename ARGUMENTS>
    __device__ inline cluster_ring(const ARGUMENTS &x, int kept, uint4 *shared, uint64_t *barriers)
        : in_stride(x.in_stride), rows(x.rows), row(blockIdx.x / BLOCKS), next(row),
          step(gridDim.x / BLOCKS), slot(0), parity(1), is_held(false), slots(shared),
          arrived(barriers) {
        const int pieces = whole_pieces<T>(x.columns);
        const cluster_pieces own = cluster_pieces::of<BLOCKS>(pieces);
        first = own.first, count = own.count, each = ceil_div(pieces, BLOCKS);
        in = (const T *)x.in + (long long)first * PIECE<T>;
        stages = min(CLUSTER_RING_STAGES, dynamic_shared_bytes() / (16 * each) - kept);
        if (threadIdx.x == 0) {
            for (int i = 0; i <= CLUSTER_RING_STAGES; i++) barrier_make(&arrived[i], 1);
            barriers_made();
        }
        __syncthreads();
        cluster_arrive(); // the first exchange is behind meet
        for (int i = 0; i < stages; i++) ask();
    }

    // Waits until all blocks have begun.
    __device__ inline void meet() const { cluster_wait(); }

    // A share that is kept, and the copy of a row's share to there, counted on the barrier.
    __device__ inline uint4 *kept(int place) const { return slots + (stages + place) * each; }
    __device__ inline void keep(const void *row_of_pieces, int place) const {
        if (count == 0) return;
        copy_bulk(kept(place), (const uint4 *)row_of_pieces + first, count * 16, kept_barrier());
    }
    __device__ inline uint64_t *kept_barrier() const { return arrived + CLUSTER_RING_STAGES; }

    // The current row, once it is there.
    __device__ inline void take(uint4 (&bits)[PIECES], uint32_t fill) {
        const uint4 *stage = slots + slot * each;
        if (DEFECT == RING_WRONG_PHASE) barrier_wait_briefly(&arrived[slot], parity ^ 1);
        if (!waits_late) barrier_wait(&arrived[slot], parity);
        is_held = true;
        if (DEFECT == RING_EARLY_RELEASE) refill_early();
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            bits[p] = make_uint4(fill, fill, fill, fill);
            if (piece_of_thread(p) < count) bits[p] = stage[piece_of_thread(p)];
        }
        if (waits_late) {
            __syncthreads(); // all have read
            if (threadIdx.x == 0) copy(row);
            barrier_wait(&arrived[slot], parity);
        }
    }

    // Refills the stage of the row that was taken. All threads of the block have taken it: a
    // barrier lies between, or the block is one warp. What is called again does nothing.
    __device__ inline void release() {
        if (!is_held) return;
        is_held = false;
        __syncwarp();
        ask();
    }

private:
    static constexpr bool waits_late = DEFECT == RING_WRONG_PHASE || DEFECT == RING_NO_WAIT;

    // Copies the share of a row into the current stage.
    __device__ inline void copy(long long of) const {
        if (count == 0) return;
        copy_bulk(slots + slot * each, in + of * in_stride, count * 16, &arrived[slot]);
    }

    // Requests the next row into the current stage, and moves on to the next stage.
    __device__ inline void ask() {
        if (threadIdx.x == 0 && next < rows) {
            barrier_expect(&arrived[slot], count * 16);
            if (!waits_late) copy(next);
        }
        next += step;
        slot = slot + 1 == stages ? 0 : slot + 1;
        parity ^= slot == 0;
    }

    // The defect: the row in the current stage is replaced before it is read.
    __device__ inline void refill_early() {
        uint64_t *barrier = &arrived[slot];
        const uint32_t refilled = parity ^ 1;
        const bool refills = next < rows;
        __syncthreads();
        release();
        if (refills) barrier_wait(barrier, refilled);
    }
};

// As cluster_reducer. The first reduction of a row shows that all threads have taken it.
template <int BLOCKS, typename RING> struct ring_reducer {
    row_reducer inside;
    cluster_meeting<BLOCKS> between;
    RING &ring;

    __device__ inline float sum(float x) {
        float2 all[BLOCKS];
        x = inside.sum(x);
        ring.release();
        between.of(all, {x, 0});
        x = 0;
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) x += all[i].x;
        return x;
    }
};
#endif
