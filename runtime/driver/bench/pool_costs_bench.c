/*
 * The driver's memory calls, priced as on an H100: a simulated clock that only these calls advance.
 *
 * With it, the times of a walk are the sum of the prices of its driver calls. They are the same on
 * any machine and in any run, so two versions of the pool can be compared without a GPU. It leaves
 * out the variation of the calls' times, a factor of two at the 99th percentile, and the pool's own
 * work. Source: medians of raw calls with handles of 2 to 64 MiB on an H100,
 * reports/published/2026-11-26-h100-memory/driver-calls.txt.
 */
#include "pool_bench.h"
#include "tollens/interpose.h"

enum { CREATE_NS = 8300, MAP_NS = 700, ACCESS_NS = 22000, UNMAP_NS = 16400, RELEASE_NS = 9700 };

/* One thread makes all calls. */
static struct {
    uint64_t now_ns;
    unsigned mapped;  /* handles since the last call that set access, which pays for each */
    unsigned handles; /* created or released since the last query */
} model;

static void pool_bench_price(struct tol_interpose_call *call, void *user) {
    (void)user;
    switch (call->index) {
    case TOL_DRIVER_INDEX_cuMemCreate:
        model.now_ns += CREATE_NS;
        model.handles++;
        break;
    case TOL_DRIVER_INDEX_cuMemMap:
        model.now_ns += MAP_NS;
        model.mapped++;
        break;
    case TOL_DRIVER_INDEX_cuMemSetAccess:
        model.now_ns += ACCESS_NS * (uint64_t)(model.mapped > 0 ? model.mapped : 1);
        model.mapped = 0;
        break;
    case TOL_DRIVER_INDEX_cuMemUnmap:
        model.now_ns += UNMAP_NS;
        break;
    case TOL_DRIVER_INDEX_cuMemRelease:
        model.now_ns += RELEASE_NS;
        model.handles++;
        break;
    default:
        break;
    }
}

void price_calls(struct tol_driver *driver) {
    must(tol_interpose_install(driver, &(struct tol_interpose_options){.after = pool_bench_price}),
         "the prices of calls");
}

uint64_t bench_now_ns(void) {
    return bench.is_priced ? model.now_ns : tol_now_ns();
}

unsigned take_handle_count(void) {
    const unsigned count = model.handles;
    model.handles = 0;
    return count;
}
