// What softmax_8_slices, softmax_9_behind, norm_9_slices and norm_10_behind share: persistent
// thread blocks that walk over rows, where each warp moves its own slice of a row.
//
// A warp has three stages of shared memory for its slices, and a bulk copy brings a slice. In the
// kernels of slices the results take its place, and a bulk copy stores them from there. So no
// thread waits for its stores, and the only barriers are those of the reductions; a stage is
// refilled one row later, once its results have been read. In the pipelined kernels (*_behind) the
// results of a row are stored from registers after the sums of the next row, so that the numbers of
// the other blocks have the time of a row to arrive.
//
// The blocks of a row do not meet at a barrier of the cluster. Each block stores its numbers into
// the shared memory of all blocks by st.async, and waits at its own mbarrier, which counts the bytes
// that arrive. A cluster's barrier costs more: its release waits for all earlier stores of the
// threads (MEMBAR.ALL.GPU), and its acquire empties the L1 cache (CCTL.IVALL).
//
// Another block stores the numbers, so PTX's memory model asks for waits that acquire at .cluster
// scope, and those empty the L1 cache, too. These waits acquire at .cta scope. On Hopper that is
// enough: the numbers are in the block's own shared memory, and the L1 cache does not cache it.
//
// st.async came with CUDA 12.1; kn_row_refuse_slices keeps these kernels from older drivers.
// PTX: 8.1
#pragma once

#include "row_cluster.cuh"

constexpr int SLICE_STAGES = 3; // row_variant.c gives shared memory for as many
constexpr int SLICE_WARPS = 16; // of a block, at most

// One defect per kernel, for softmax_slices_planted.cu. What a defect does not wait for comes as
// late as it may: after the read.
enum slice_defect {
    SLICES_RIGHT,
    SLICES_EARLY_REFILL, // a stage is refilled before its row is read
    SLICES_EARLY_BEFORE, // the stage of the row before is refilled before that row is read again
    SLICES_EARLY_STORE,  // a stage is stored before the results are in it
    SLICES_WRONG_PHASE,  // a stage is read after a wait for the previous phase
    SLICES_NO_WAIT,      // a stage is read without a wait for its copy
    SLICES_UNHEARD       // the numbers of other blocks are read without a wait for them
};

#if __CUDA_ARCH__ >= 900
// cluster_sync in two parts.
__device__ inline void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
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

// Copies from shared memory, in a group of its own.
__device__ inline void store_bulk(void *global, const void *shared, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
                 "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(global)),
                 "r"(shared_address(shared)), "r"(bytes)
                 : "memory");
}

template <typename T> __device__ inline uint4 pack_piece(const float (&x)[PIECE<T>]) {
    uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; w++) words[w] = pack_word(x + w * PIECE<T> / 4, T());
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Keeps the compiler from holding a piece unpacked, in twice the registers.
__device__ inline void keep_packed(uint4 &bits) {
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
}

// The slices of a warp. BLOCKS blocks have a row.
template <typename T, int BLOCKS, slice_defect DEFECT, typename ARGUMENTS> struct row_slices {
    const ARGUMENTS &x;
    int first, size; // pieces: where the slice begins in a row, and how many it has
    int row, slot;
    uint32_t parity;
    uint4 *stages; // of this warp
    int stage_pieces;
    uint64_t *arrived; // barriers of this warp, one per stage

    __device__ inline row_slices(const ARGUMENTS &arguments, uint4 *shared,
                                 uint64_t (*barriers)[SLICE_STAGES])
        : x(arguments), row(blockIdx.x / BLOCKS), slot(0), parity(0) {
        const int pieces = whole_pieces<T>(x.columns);
        const int warps = (int)blockDim.x / WARP, warp = (int)threadIdx.x / WARP;
        const cluster_pieces own = cluster_pieces::of<BLOCKS>(pieces);
        const int each = ceil_div(own.count, warps), begin = min(warp * each, own.count);
        first = own.first + begin, size = min(each, own.count - begin);
        stages = shared + begin, stage_pieces = ceil_div(pieces, BLOCKS);
        arrived = barriers[warp];
        if (is_leader()) {
            for (int i = 0; i < SLICE_STAGES; i++) barrier_make(&arrived[i], 1);
            barriers_made();
        }
        __syncwarp();
    }

    // Prefetches what can be while the kernel in front ends, waits for its end, and requests the
    // first row.
    __device__ inline void begin() {
        if (BLOCKS > 1) cluster_arrive();
        if (is_leader() && size > 0) {
            for (int i = 0; i < SLICE_STAGES && row + i * step() < x.rows; i++) {
                prefetch_bulk(of_row(row + i * step()), size * 16);
            }
        }
        let_next_begin();
        wait_for_kernel_in_front();
        if (is_leader()) ask(0, row);
    }
    // Requests the following rows, each after all slices of the previous one, and waits until all
    // blocks of the row have begun.
    __device__ inline void begin_others() {
        for (int i = 1; i < SLICE_STAGES; i++) {
            __syncthreads();
            if (is_leader()) ask(i, row + i * step());
        }
        if (BLOCKS > 1) cluster_wait();
    }

    __device__ inline bool has_row() const { return row < x.rows; }
    // The piece of the slice that is piece p of this thread, and whether there is one.
    __device__ inline int piece(int p) const { return (int)threadIdx.x % WARP + p * WARP; }
    __device__ inline bool has(int p) const { return piece(p) < size; }
    __device__ inline bool has_before() const { return row >= step() + (int)blockIdx.x / BLOCKS; }
    // Where results go: the stage of the current row, or the row before in memory.
    __device__ inline uint4 *results() const { return stages + slot * stage_pieces; }
    __device__ inline uint4 *results_before() const {
        return (uint4 *)((T *)x.out + (row - step()) * x.out_stride) + first;
    }

    // The current row, once it is there.
    template <int PIECES> __device__ inline void take(uint4 (&bits)[PIECES], uint32_t fill) {
        if (DEFECT == SLICES_WRONG_PHASE) barrier_wait_briefly(&arrived[slot], parity ^ 1);
        if (!waits_late) wait();
        if (DEFECT == SLICES_EARLY_REFILL) {
            const int later = row + SLICE_STAGES * step();
            if (is_leader()) ask(slot, later);
            if (later < x.rows) barrier_wait(&arrived[slot], parity ^ 1);
        }
        read(bits, fill, slot);
        if (waits_late) {
            __syncwarp(); // all have read
            if (is_leader()) copy(slot, row);
            wait();
        }
    }

    // Refills the stage of the row before, whose results were stored by a bulk copy. The results of
    // this row are about to be put into its stage.
    __device__ inline void refill() {
        if (DEFECT == SLICES_EARLY_STORE) store();
        if (is_leader()) {
            wait_boxes_read<0>();
            if (DEFECT != SLICES_EARLY_REFILL && has_before()) {
                ask(slot_before(), row + (SLICE_STAGES - 1) * step());
            }
        }
        __syncwarp();
    }

    // Stores the results that all threads of the warp have put into the stage.
    __device__ inline void give() {
        if (DEFECT != SLICES_EARLY_STORE) store();
    }

    // The row before, again, whose stage is refilled then.
    template <int PIECES> __device__ inline void take_before(uint4 (&bits)[PIECES], uint32_t fill) {
        const int later = row + (SLICE_STAGES - 1) * step();
        if (DEFECT == SLICES_EARLY_BEFORE) {
            if (is_leader()) ask(slot_before(), later);
            const uint32_t refilled = slot == 0 ? parity : parity ^ 1;
            if (later < x.rows) barrier_wait(&arrived[slot_before()], refilled);
        }
        read(bits, fill, slot_before());
        __syncwarp();
        if (DEFECT != SLICES_EARLY_BEFORE && is_leader()) ask(slot_before(), later);
    }

    __device__ inline void next() {
        row += step();
        slot = slot + 1 == SLICE_STAGES ? 0 : slot + 1;
        parity ^= slot == 0;
    }

    // A block may not end before its results have been read, nor before the other blocks of the row
    // have told it all.
    __device__ inline void end() {
        if (BLOCKS > 1) cluster_arrive();
        if (is_leader()) wait_boxes_read<0>();
        __syncwarp();
        if (BLOCKS > 1) cluster_wait();
    }

private:
    static constexpr bool waits_late = DEFECT == SLICES_WRONG_PHASE || DEFECT == SLICES_NO_WAIT;

    __device__ inline bool is_leader() const { return threadIdx.x % WARP == 0; }
    __device__ inline int step() const { return (int)gridDim.x / BLOCKS; }
    __device__ inline int slot_before() const { return slot == 0 ? SLICE_STAGES - 1 : slot - 1; }
    __device__ inline void wait() const { barrier_wait(&arrived[slot], parity); }
    __device__ inline const uint4 *of_row(int r) const {
        return (const uint4 *)((const T *)x.in + r * x.in_stride) + first;
    }

    template <int PIECES>
    __device__ inline void read(uint4 (&bits)[PIECES], uint32_t fill, int from) const {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            bits[p] = make_uint4(fill, fill, fill, fill);
            if (has(p)) bits[p] = stages[from * stage_pieces + piece(p)];
        }
    }

    // Copies the slice of a row into a stage.
    __device__ inline void copy(int into, int r) const {
        if (size == 0) return;
        copy_bulk(stages + into * stage_pieces, of_row(r), size * 16, &arrived[into]);
    }

    // Requests a row into a stage.
    __device__ inline void ask(int into, int r) const {
        if (r >= x.rows) return;
        barrier_expect(&arrived[into], size * 16);
        if (!waits_late) copy(into, r);
    }

    __device__ inline void store() const {
        fence_copies();
        __syncwarp();
        if (is_leader() && size > 0) {
            store_bulk((uint4 *)((T *)x.out + row * x.out_stride) + first, results(),
                       size * 16);
        }
    }
};

// The numbers of all blocks of a turn, and the mbarrier that counts their bytes.
template <int BLOCKS, int NUMBERS> struct alignas(16) slices_place {
    float numbers[BLOCKS][NUMBERS];
    uint64_t told;
};

// Stores numbers into the same place of the block of this rank, and counts their bytes on the
// mbarrier there. Source: PTX ISA 8.1, st.async.
__device__ inline void tell_block(const float (&numbers)[1], uint64_t *told, uint32_t rank,
                                  float2 mine) {
    asm volatile("{\n.reg .b32 remote, barrier;\n"
                 "mapa.shared::cluster.u32 remote, %0, %2;\n"
                 "mapa.shared::cluster.u32 barrier, %1, %2;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32"
                 " [remote], %3, [barrier];\n}" ::"r"(shared_address(numbers)),
                 "r"(shared_address(told)), "r"(rank), "r"(__float_as_uint(mine.x))
                 : "memory");
}
__device__ inline void tell_block(const float (&numbers)[2], uint64_t *told, uint32_t rank,
                                  float2 mine) {
    asm volatile("{\n.reg .b32 remote, barrier;\n.reg .b64 both;\n"
                 "mapa.shared::cluster.u32 remote, %0, %2;\n"
                 "mapa.shared::cluster.u32 barrier, %1, %2;\n"
                 "mov.b64 both, {%3, %4};\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64"
                 " [remote], both, [barrier];\n}" ::"r"(shared_address(numbers)),
                 "r"(shared_address(told)), "r"(rank), "r"(__float_as_uint(mine.x)),
                 "r"(__float_as_uint(mine.y))
                 : "memory");
}

// Gives each thread NUMBERS numbers of all blocks of a row, in their order. Turn t has place
// t % SLICE_PLACES, whose mbarrier ends a phase each time that it is used: it expects one arrival,
// by which its own block says how many bytes all blocks store.
//
// A block may tell turn t before it hears turn t - 1. It has then heard turn t - 2, and so have all
// of its threads, since tell follows a reduction that each reaches when it has heard t - 2.
// So thread 0, when it tells t, arrives for turn t + 2 at the place of turn t - 2:
// * Without its arrival the phase of t + 2 cannot end, so no thread that still waits for t - 2 can
//   miss the end of that: threads that look at parities lag by at most one phase.
// * A block tells t + 2 when it has heard t, and so when all have told t: they have read t - 2, and
//   nothing is written before it was read, nor are bytes of t + 2 counted in the phase of t - 2.
//   Bytes that come before the arrival are counted too: it keeps the phase open.
constexpr int SLICE_PLACES = 4;
template <int BLOCKS, int NUMBERS, slice_defect DEFECT = SLICES_RIGHT> struct slices_meeting {
    using place = slices_place<BLOCKS, NUMBERS>;
    place *places; // SLICE_PLACES, in shared memory
    uint32_t told, heard;

    // Before the barrier that all blocks begin with.
    __device__ inline slices_meeting(place *shared) : places(shared), told(0), heard(0) {
        if (BLOCKS > 1 && threadIdx.x == 0) make();
    }
    __device__ inline void tell(float2 mine) {
        place &of_turn = places[told % SLICE_PLACES];
        if (threadIdx.x == 0 && told >= SLICE_PLACES / 2) expect(told + SLICE_PLACES / 2);
        if (threadIdx.x < BLOCKS) {
            tell_block(of_turn.numbers[cluster_rank()], &of_turn.told, threadIdx.x, mine);
        }
        told++;
    }
    __device__ inline void hear(float2 (&all)[BLOCKS]) {
        wait();
        read(all);
        heard++;
    }
    __device__ inline void of(float2 (&all)[BLOCKS], float2 mine) {
        if (BLOCKS == 1) {
            all[0] = mine;
            return;
        }
        if (DEFECT == SLICES_UNHEARD) {
            read(all);
            cluster_sync();
        }
        tell(mine);
        __syncwarp();
        if (DEFECT == SLICES_UNHEARD) {
            wait();
            heard++;
        } else {
            hear(all);
        }
    }

private:
    __device__ inline void make() const {
        if constexpr (DEFECT == SLICES_UNHEARD) {
            for (int i = 0; i < SLICE_PLACES; i++) places[i] = {};
        }
        for (int i = 0; i < SLICE_PLACES; i++) barrier_make(&places[i].told, 1);
        barriers_made();
        for (int i = 0; i < SLICE_PLACES; i++) expect(i);
    }
    __device__ inline void expect(uint32_t turn) const {
        barrier_expect(&places[turn % SLICE_PLACES].told, sizeof(float) * BLOCKS * NUMBERS);
    }
    __device__ inline void wait() const {
        barrier_wait(&places[heard % SLICE_PLACES].told, heard / SLICE_PLACES % 2);
    }
    __device__ inline void read(float2 (&all)[BLOCKS]) const {
        const place &of_turn = places[heard % SLICE_PLACES];
#pragma unroll
        for (int i = 0; i < BLOCKS; i++) {
            const float(&numbers)[NUMBERS] = of_turn.numbers[i];
            all[i] = make_float2(numbers[0], NUMBERS > 1 ? numbers[NUMBERS - 1] : 0);
        }
        __syncwarp(); // all have read
    }
};

template <int BLOCKS> using slices_reducer = cluster_reducer<BLOCKS, slices_meeting<BLOCKS, 1>>;
#endif
