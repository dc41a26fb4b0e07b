// What the kernels for compute capability 9.0 share: bulk copies, mbarriers, and programmatic
// launches. Each function is the PTX instruction of its name. Addresses and sizes of bulk copies
// are multiples of 16 bytes.
#pragma once

#include "tile.cuh"

#if __CUDA_ARCH__ >= 900
// Makes an mbarrier with this many arrivals a phase. Before its first use, call barriers_made and
// then synchronise the block or the warp that uses it.
__device__ inline void barrier_make(uint64_t *barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
__device__ inline void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive(uint64_t *barrier) {
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and adds to the bytes that must be copied before the phase ends.
__device__ inline void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Waits for the end of the phase of this parity; the first phase has parity 0. The copied bytes are
// visible afterwards.
__device__ inline void barrier_wait(uint64_t *barrier, uint32_t parity) {
    uint32_t is_over;
    do {
        asm volatile("{\n.reg .pred over;\n"
                     "mbarrier.try_wait.parity.shared.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n}"
                     : "=r"(is_over)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    } while (is_over == 0);
}

// Copies to shared memory and counts the bytes on the barrier.
__device__ inline void copy_bulk(void *shared, const void *global, uint32_t bytes,
                                 uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// Prefetches to the L2 cache. That is safe while another kernel may still write there: L2 stays
// coherent.
__device__ inline void prefetch_bulk(const void *global, uint32_t bytes) {
    asm volatile(
        "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(global)),
        "r"(bytes));
}

// let_next_begin lets the next kernel begin as soon as blocks of this one leave room.
// wait_for_kernel_in_front waits until the previous kernel has ended and its writes are visible;
// before it, memory may be prefetched but not read or written.
__device__ inline void let_next_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ inline void wait_for_kernel_in_front() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#endif
