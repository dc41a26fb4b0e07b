/*
 * Maps an address in shared memory to the same address in another block, and to its block. Sources:
 * PTX ISA 9.0, sections 9.7.9.23 (mapa) and 9.7.9.24 (getctarank).
 */
#include "cluster_map.h"

#include "tollens/cuda_abi.h"
#include "access.h"
#include "cluster_member.h"
#include "finding.h"

bool soft_cluster_map(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                      uint32_t rank, uint64_t *address) {
    struct soft_cta *cta = warp->cta;
    uint32_t count = soft_cluster_count(cta), offset = 0;
    bool generic = soft_access_space(in->mode) == SOFT_SPACE_GENERIC;
    uint64_t own = *address;
    if (rank >= count) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, 0,
                         "block %u of a cluster of %u", rank, count);
        return false;
    }
    if (generic && soft_access_resolve(&own) != SOFT_SPACE_SHARED) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, *address,
                         "0x%llx is no address in shared memory", (unsigned long long)*address);
        return false;
    }
    /* The offset is checked when the address is used. */
    (void)soft_cluster_find(cta, (uint32_t)own, &offset);
    *address = *address - own + soft_cluster_name(cta, soft_cluster_member(cta, rank), offset);
    return true;
}

bool soft_cluster_rank(struct soft_warp *warp, const struct soft_instruction *in, uint32_t lane,
                       uint64_t address, uint32_t *rank) {
    bool generic = soft_access_space(in->mode) == SOFT_SPACE_GENERIC;
    uint64_t place = address;
    uint32_t offset = 0;
    bool shared = !generic || soft_access_resolve(&place) == SOFT_SPACE_SHARED;
    const struct soft_cta *cta =
        shared ? soft_cluster_find(warp->cta, (uint32_t)place, &offset) : NULL;
    if (cta == NULL) {
        soft_launch_fail(warp, in, CUDA_ERROR_ILLEGAL_INSTRUCTION, 1u << lane, address,
                         "0x%llx is no address in the shared memory of the cluster",
                         (unsigned long long)address);
        return false;
    }
    *rank = cta->rank;
    return true;
}
