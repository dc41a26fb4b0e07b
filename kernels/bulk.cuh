// What kernels for compute capability 9.0 share: copies of whole rows of bytes that one thread asks
// for and an mbarrier tells of, and beginning while the kernel in front ends. Each is the PTX
// instruction of its name. Addresses and sizes of copies are multiples of 16 bytes.
#pragma once

#include "tile.cuh"

#if __CUDA_ARCH__ >= 900
// An mbarrier for so many arrivals a phase. Call barriers_made, then let the block or the warp that
// uses it meet, before its first use.
__device__ inline void barrier_make(uint64_t *barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
                 : "memory");
}
__device__ inline void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// An arrival, after which so many more bytes must come before the phase ends.
__device__ inline void barrier_expect(uint64_t *barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Waits for the end of the phase of this parity; the first has 0. What came is then to be seen.
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

// To shared memory; the barrier is told of the bytes.
__device__ inline void copy_bulk(void *shared, const void *global, uint32_t bytes,
                                 uint64_t *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

// To the L2 cache. Nothing is read that another kernel may still be writing: it stays coherent.
__device__ inline void prefetch_bulk(const void *global, uint32_t bytes) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                     __cvta_generic_to_global(global)),
                 "r"(bytes));
}

// Lets the next kernel begin as soon as blocks of this one leave room, and waits until all of the
// kernel in front is done and seen. Between the two nothing may be read or written, but prefetched.
__device__ inline void let_next_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
__device__ inline void wait_for_kernel_in_front() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#endif
