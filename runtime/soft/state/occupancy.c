/*
 * The four limits: threads, block slots, registers and shared memory. Figures of compute capability
 * 9.0, as device.def reports them; the granules are of the CUDA Programming Guide's table of
 * technical specifications.
 */
#include "occupancy.h"

#include "function_attribute.h"
#include "base/options.h"
#include "machine/machine_state.h"
#include "base/round_up.h"

enum {
    THREADS_MAX = 2048,
    BLOCKS_MAX = 32,
    REGISTERS_MAX = 65536,
    WARP_REGISTERS_GRANULE = 256,
    SHARED_MAX = 233472,
    SHARED_RESERVED = 1024, /* of each block, for the system */
    SHARED_GRANULE = 128
};

unsigned soft_occupancy_processors(void) {
    return (unsigned)soft_options()->workers;
}

/* The number of blocks by all limits except shared memory. */
static unsigned blocks_without_shared(const struct soft_function *function, unsigned threads) {
    const struct soft_code *code = function->code;
    if (threads == 0 || threads > code->block_threads_max) return 0;
    if (!soft_module_complete(function)) return 0;
    unsigned warps = (threads + SOFT_LANES - 1) / SOFT_LANES;
    uint64_t registers =
        soft_round_up((uint64_t)code->registers * SOFT_LANES, WARP_REGISTERS_GRANULE);
    unsigned blocks = THREADS_MAX / (warps * SOFT_LANES);
    if (blocks > BLOCKS_MAX) blocks = BLOCKS_MAX;
    if (registers > 0) {
        /* The registers of the text, limited so that a block that may be launched fits, because
         * ptxas would use fewer. */
        uint64_t by_registers = REGISTERS_MAX / registers / warps;
        if (by_registers == 0) by_registers = 1;
        if (by_registers < blocks) blocks = (unsigned)by_registers;
    }
    return blocks;
}

unsigned soft_occupancy_blocks(const struct soft_function *function, unsigned threads,
                               uint64_t dynamic_shared) {
    const struct soft_code *code = function->code;
    unsigned blocks = blocks_without_shared(function, threads);
    if (dynamic_shared > function->dynamic_shared_max) return 0;
    uint64_t shared =
        soft_round_up(code->shared_bytes + dynamic_shared + SHARED_RESERVED, SHARED_GRANULE);
    uint64_t by_shared = SHARED_MAX / shared;
    return by_shared < blocks ? (unsigned)by_shared : blocks;
}

uint64_t soft_occupancy_shared(const struct soft_function *function, unsigned blocks,
                               unsigned threads) {
    const struct soft_code *code = function->code;
    if (blocks == 0 || blocks > blocks_without_shared(function, threads)) return 0;
    uint64_t each = SHARED_MAX / blocks / SHARED_GRANULE * SHARED_GRANULE;
    uint64_t taken = (uint64_t)code->shared_bytes + SHARED_RESERVED;
    /* At most the limit of a block, also if it is alone. */
    _Static_assert(SHARED_MAX - SHARED_RESERVED <= SOFT_SHARED_OPTIN_BYTES, "a block has all");
    return each > taken ? each - taken : 0;
}

uint32_t soft_occupancy_cluster_max(const struct soft_function *function) {
    uint32_t most = function->clusters.large ? SOFT_CLUSTER_MAX : SOFT_CLUSTER_PORTABLE;
    uint32_t own = function->code->cluster_max;
    return own > 0 && own < most ? own : most;
}

CUresult soft_occupancy_cluster(const struct soft_function *function, uint32_t extent[3]) {
    const struct soft_code *code = function->code;
    const uint32_t *demands =
        code->cluster_required[0] > 0 ? code->cluster_required : function->clusters.required;
    bool demanded = demands[0] > 0 || demands[1] > 0 || demands[2] > 0, asked = extent[0] > 0;
    uint64_t blocks = 1;
    if (code->cluster_needed && !demanded && !asked) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    for (int i = 0; i < 3; i++) {
        uint32_t wanted = demanded && demands[i] > 0 ? demands[i] : 1;
        if (demanded && asked && extent[i] != wanted) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        if (!asked) extent[i] = wanted;
        if (extent[i] > SOFT_CLUSTER_MAX) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks *= extent[i];
    }
    return blocks <= soft_occupancy_cluster_max(function) ? CUDA_SUCCESS
                                                          : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}
