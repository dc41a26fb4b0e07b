// What kernels share whose blocks copy for each other: boxes that go to several blocks of a cluster, and
// arrivals at another block's barrier. Beside hopper.cuh, for compute_90a. Source: PTX ISA 8.0,
// cp.async.bulk.tensor with .multicast::cluster, mbarrier.arrive.
#pragma once

#include "hopper.cuh"

#if __CUDA_ARCH__ >= 900
// Arrives at the barrier in the same place of the block of this rank.
__device__ inline void barrier_arrive_at(uint64_t *barrier, uint32_t rank) {
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(
                     shared_address(barrier)),
                 "r"(rank)
                 : "memory");
}

// As load_box, to the blocks of the cluster whose bits are set in `blocks`: to the same place of
// each, and counted on the barrier in the same place of each.
__device__ inline void load_box_for(const tensor_map *map, void *to, uint64_t *barrier, int x,
                                    int y, int z, uint16_t blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(x), "r"(y), "r"(z), "h"(blocks)
        : "memory");
}
#endif
