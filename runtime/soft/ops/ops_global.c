/*
 * Global memory, fast: the range is the allocation that the same instruction touched last.
 */
#define ADDRESS uint64_t
#define HAS_STEP soft_has_step_64
#define ANY_WRONG soft_any_wrong_64
#define RANGE ops_global_range_of
#include "ops_memory.h"
#include "ops_fused.h"

static inline struct range ops_global_range_of(const struct soft_warp *warp,
                                               const struct soft_instruction *in) {
    const struct soft_view *view = &warp->views[in->site];
    return (struct range){.low = view->low,
                          .span = view->high - view->low,
                          .host = view->host,
                          .shadow = view->shadow};
}

LOADS(global)
STORES(global)
LOAD_LOAD_FMA(product_global, ld_global_32)
SLOW(ld_slow, soft_access_load)
SLOW(st_slow, soft_access_store)
