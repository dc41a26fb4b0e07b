/*
 * The search in a ladder.
 */
#include "limit.h"

#include <stdio.h>
#include <string.h>

bool hyp_limit_search(const struct hyp_ladder *ladder, hyp_limit_try try_step, void *user,
                      struct hyp_limit *limit) {
    memset(limit, 0, sizeof *limit);
    snprintf(limit->fault, sizeof limit->fault, "%s", ladder->fault);
    /* Steps before noticed are noticed, those from missed on are not. */
    size_t noticed = 0, missed = ladder->count;
    while (noticed < missed) {
        const size_t at = missed == ladder->count ? ladder->count - 1 : (noticed + missed) / 2;
        bool is_noticed = false;
        if (!try_step(user, ladder->steps[at], &is_noticed)) return false;
        if (is_noticed) {
            noticed = at + 1;
        } else {
            missed = at;
        }
    }
    if (noticed > 0) memcpy(limit->noticed, ladder->steps[noticed - 1], sizeof limit->noticed);
    if (missed < ladder->count) {
        memcpy(limit->missed, ladder->steps[missed], sizeof limit->missed);
    }
    return true;
}
