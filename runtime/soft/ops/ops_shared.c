/*
 * Shared memory, fast: the range is the CTA's own, and addresses are 32-bit offsets in it.
 */
#define ADDRESS uint32_t
#define HAS_STEP soft_has_step_32
#define ANY_WRONG soft_any_wrong_32
#define RANGE ops_shared_range_of
#include "ops_memory.h"
#include "ops_fused.h"

static inline struct range ops_shared_range_of(const struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    const struct soft_cta *cta = warp->cta;
    (void)in;
    return (struct range){
        .low = 0, .span = cta->shared_bytes, .host = cta->shared, .shadow = cta->shared_shadow};
}

LOADS(shared)
STORES(shared)
LOAD_LOAD_FMA(product_shared, ld_shared_32)
