/*
 * The checks of a product of groups, and the problem as its kernels see it. Internal to the
 * operation. Thread-safe.
 */
#ifndef KN_GROUPED_CHECK_H
#define KN_GROUPED_CHECK_H

#include "grouped.h"
#include "grouped_arguments.h"

struct grouped_problem {
    const struct kn_grouped *grouped;
    struct grouped_arguments arguments;
    bool is_aligned; /* each row of a and b begins at a multiple of 16 bytes */
    bool has_maps;   /* the driver makes tensor maps, and they can describe a and b */
};

/* Fails as kn_grouped does before it picks a kernel. */
tol_status grouped_check(struct kn_kernels *kernels, const struct kn_grouped *grouped,
                         struct grouped_problem *problem);

/* What a tuning knows a checked problem by. */
struct kn_tuning_key grouped_key_of(const struct grouped_problem *problem);

/* No more tiles of rows x columns than this can be needed, wherever groups begin. */
static inline size_t grouped_tiles_most(const struct grouped_arguments *x, size_t rows,
                                        size_t columns) {
    const size_t down = ((size_t)x->m + rows - 1) / rows + (size_t)x->groups - 1;
    return down * (((size_t)x->n + columns - 1) / columns);
}

#endif
